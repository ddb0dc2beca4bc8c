//! The memory of a graph on the host: its tasks, edges and arguments, and where it goes when a graph is no longer needed.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use pto_abi::image::ImageTask;

/// What a graph image consists of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lists {
    pub(crate) records: Vec<ImageTask>,
    /// The producers of all tasks, one task's after the other's.
    pub(crate) producers: Vec<u32>,
    pub(crate) args: Vec<u64>,
}

impl Lists {
    fn clear(&mut self) {
        self.records.clear();
        self.producers.clear();
        self.args.clear();
    }

    fn bytes(&self) -> usize {
        let records = self.records.capacity() * size_of::<ImageTask>();
        records + self.producers.capacity() * 4 + self.args.capacity() * 8
    }
}

/// The memory of the last graph of a device, for the next one: fresh memory costs more than what is written to it. One graph's
/// memory is kept at most, that of the larger one.
#[derive(Clone, Default)]
pub(crate) struct Spare(Arc<Mutex<Lists>>);

impl Spare {
    /// Empty lists, with what memory there is.
    pub(crate) fn take(&self) -> Lists {
        std::mem::take(&mut *self.lists())
    }

    /// Takes the memory of lists that nobody needs any more.
    pub(crate) fn give(&self, mut lists: Lists) {
        lists.clear();
        let mut kept = self.lists();
        if lists.bytes() > kept.bytes() {
            *kept = lists;
        }
    }

    fn lists(&self) -> std::sync::MutexGuard<'_, Lists> {
        // What is kept has no contents that a panic could have left half written.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Spare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Spare of {} bytes", self.lists().bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::{Lists, Spare};

    #[test]
    fn memory_goes_from_graph_to_graph() {
        let spare = Spare::default();
        let lists = Lists { producers: vec![7; 1000], ..spare.take() };
        let memory = lists.producers.as_ptr();
        spare.give(lists);
        // A smaller one does not replace it.
        spare.give(Lists { producers: vec![7; 10], ..Lists::default() });
        let taken = spare.take();
        assert_eq!((taken.producers.as_ptr(), taken.producers.len()), (memory, 0));
        assert_eq!(spare.take().bytes(), 0, "nobody else has it");
    }
}
