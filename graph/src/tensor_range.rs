//! Ranges on tensors: many tasks of one kernel of a streaming run that are submitted in one call.
//!
//! From one task to the next a tensor moves by a step or follows a list, and scalars vary, as in a [`Link`]. The edges are those that the same tasks
//! would get one by one, in the order of the range: tasks of a range that write what others of it read wait for each other.
//!
//! ```
//! use pto_abi::{CoreKind, FuncId, GmAddr};
//! use pto_graph::{Arg, ElementType, TensorRange, TensorTask, TensorView, Variation};
//!
//! // Eight tiles of a row, side by side. Each task reads the same vector and changes its own tile.
//! let row = TensorView::dense(GmAddr(0x1000), ElementType::F32, &[8 * 64]);
//! let vector = TensorView::dense(GmAddr(0x9000), ElementType::F32, &[64]);
//! let tile = row.slice(0, 0, 64);
//! let args = [Arg::In(&vector), Arg::InOut(&tile), Arg::Scalar(0)];
//! let varies = [Variation::by(1, 64 * 4), Variation::by(2, 1)];
//! let task = TensorTask::new(FuncId(2), CoreKind::AIV, &args);
//! let range = TensorRange::new(task).times(8).varying(&varies);
//! assert_eq!((range.tasks(), range.check(8)), (8, Ok(())));
//! let last = range.view_at(1, 7).expect("a tile for each task");
//! assert_eq!(last.address(), row.slice(0, 7 * 64, 64).address());
//! ```

use pto_abi::Fault;

use crate::link::{Link, Variation};
use crate::tensor::TensorView;
use crate::tensor_task::{Arg, TensorTask};

/// Tasks of one kernel on tensors that are submitted in one call.
#[derive(Clone, Copy, Debug)]
pub struct TensorRange<'a> {
    task: TensorTask<'a>,
    link: Link<'a>,
}

impl<'a> TensorRange<'a> {
    /// One task.
    #[must_use]
    pub const fn new(task: TensorTask<'a>) -> Self {
        Self { task, link: Link::on_tensors(task.func_id, task.kind, task.args) }
    }

    /// Sets the number of tasks.
    #[must_use]
    pub const fn times(mut self, tasks: u32) -> Self {
        self.link = self.link.times(tasks);
        self
    }

    /// The same, with arguments that differ from task to task; two variations of one argument are applied in their order.
    #[must_use]
    pub const fn varying(mut self, variations: &'a [Variation<'a>]) -> Self {
        self.link = self.link.varying(variations);
        self
    }

    /// How many tasks it has.
    #[must_use]
    pub const fn tasks(&self) -> u32 {
        self.link.count()
    }

    /// The first task.
    #[must_use]
    pub const fn task(&self) -> &TensorTask<'a> {
        &self.task
    }

    /// What differs from task to task.
    #[must_use]
    pub const fn variations(&self) -> &'a [Variation<'a>] {
        self.link.variations()
    }

    /// What argument `arg` is in task `index`, if it is a tensor.
    #[must_use]
    pub fn view_at(&self, arg: usize, index: u32) -> Option<TensorView<'a>> {
        self.link.view_at(arg, index)
    }

    /// Whether it can be submitted as it is, with room for this many ids. A tensor that leaves its memory is found where its task is
    /// submitted.
    ///
    /// # Errors
    /// `BUILD_RANGE_LENGTH`, `BUILD_CHAIN_VARIES`, `BUILD_CHAIN_LIMIT`.
    pub fn check(&self, ids: usize) -> Result<(), Fault> {
        if ids != self.tasks() as usize {
            return Err(Fault::BUILD_RANGE_LENGTH);
        }
        if ids == 0 { Ok(()) } else { self.link.checked_columns().map(|_| ()) }
    }

    /// The word of argument `arg` in task `index`, which is `first` in the first one.
    #[must_use]
    #[inline]
    pub fn word_at(&self, arg: usize, index: u32, first: u64) -> u64 {
        let own = self.variations().iter().filter(|variation| variation.arg() == arg);
        own.fold(first, |word, variation| variation.at(index, word))
    }

    /// The argument `arg` of task `index`, whose tensor, if it is one, is `view`.
    pub(crate) fn arg_at<'v>(&self, arg: usize, index: u32, view: &'v TensorView<'v>) -> Arg<'v> {
        match self.task.args.get(arg) {
            Some(Arg::In(_)) => Arg::In(view),
            Some(Arg::Out(_)) => Arg::Out(view),
            Some(Arg::InOut(_)) => Arg::InOut(view),
            Some(Arg::NoDep(_)) => Arg::NoDep(view),
            Some(Arg::Scalar(first)) => Arg::Scalar(self.word_at(arg, index, *first)),
            Some(Arg::BoundScalar(at)) => Arg::BoundScalar(*at),
            None => Arg::Scalar(0),
        }
    }
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use alloc::format;

    use super::TensorRange;
    use crate::element::ElementType;
    use crate::link::Variation;
    use crate::tensor::{TensorView, ViewDefect};
    use crate::tensor_task::{Arg, TensorTask};
    use pto_abi::{CoreKind, Fault, FuncId, GmAddr};

    #[test]
    fn tensors_move_and_scalars_vary() {
        let matrix = TensorView::dense(GmAddr(0x1000), ElementType::F32, &[8, 8]);
        let tile = matrix.slice(0, 0, 2).slice(1, 0, 2);
        let args = [Arg::In(&tile), Arg::Out(&tile), Arg::Scalar(5)];
        let addresses = [0x1000 + 8, 0x1000, 0x1000 + 224];
        let varies = [Variation::by(0, 8), Variation::of(1, &addresses), Variation::by(2, -1)];
        let range = TensorRange::new(TensorTask::new(FuncId(1), CoreKind::AIC, &args)).times(3);
        let range = range.varying(&varies);
        assert_eq!(range.check(3), Ok(()));
        assert_eq!(range.check(2), Err(Fault::BUILD_RANGE_LENGTH));
        // Tiles of the matrix, with all of their extents.
        let is_tile = |arg, number, col| {
            let tile = matrix.slice(0, 0, 2).slice(1, col, 2);
            range
                .view_at(arg, number)
                .is_some_and(|view| format!("{view:?}") == format!("{tile:?}"))
        };
        assert!(is_tile(0, 2, 4) && is_tile(1, 0, 2) && !is_tile(1, 0, 3));
        let outside = range.view_at(1, 2).unwrap();
        assert_eq!(outside.defect(), Some(ViewDefect::Range));
        assert_eq!((range.view_at(2, 1).is_none(), range.word_at(2, 2, 5)), (true, 3));
        let few = range.times(4);
        assert_eq!(few.check(4), Err(Fault::BUILD_CHAIN_VARIES), "an address for each task");
        assert_eq!(range.times(0).check(0), Ok(()));
    }
}
