//! The memory of a graph on the host: its tasks, edges and arguments. The memory of a dropped graph is kept for the next one.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use pto_abi::image::ImageTask;
use pto_graph::GraphParts;

/// The memory of the last graph of a device, for the next one: fresh memory costs more than what is written to it. One graph's
/// memory is kept at most, that of the larger one.
#[derive(Clone, Default)]
pub(crate) struct Spare(Arc<Mutex<GraphParts>>);

impl Spare {
    /// Empty lists, with what memory there is.
    pub(crate) fn take(&self) -> GraphParts {
        std::mem::take(&mut *self.lists())
    }

    /// Takes the memory of lists that are no longer needed.
    pub(crate) fn give(&self, mut lists: GraphParts) {
        clear(&mut lists);
        let mut kept = self.lists();
        if bytes(&lists) > bytes(&kept) {
            *kept = lists;
        }
    }

    fn lists(&self) -> std::sync::MutexGuard<'_, GraphParts> {
        // What is kept has no contents that a panic could have left half written.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn clear(lists: &mut GraphParts) {
    lists.tasks.clear();
    lists.producers.clear();
    lists.args.clear();
}

/// Bytes that the lists have room for.
fn bytes(lists: &GraphParts) -> usize {
    let tasks = lists.tasks.capacity() * size_of::<ImageTask>();
    tasks + lists.producers.capacity() * 4 + lists.args.capacity() * 8
}

impl fmt::Debug for Spare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Spare of {} bytes", bytes(&self.lists()))
    }
}

#[cfg(test)]
mod tests {
    use super::{Spare, bytes};
    use pto_graph::GraphParts;

    #[test]
    fn memory_goes_from_graph_to_graph() {
        let spare = Spare::default();
        let lists = GraphParts { producers: vec![7; 1000], ..spare.take() };
        let memory = lists.producers.as_ptr();
        spare.give(lists);
        // A smaller one does not replace it.
        spare.give(GraphParts { producers: vec![7; 10], ..GraphParts::default() });
        let taken = spare.take();
        assert_eq!((taken.producers.as_ptr(), taken.producers.len()), (memory, 0));
        assert_eq!(bytes(&spare.take()), 0, "nobody else has it");
    }
}
