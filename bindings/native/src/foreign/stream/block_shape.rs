//! What a task of foreign code is beyond one kernel on one core.

use heapless::Vec;
use pto_abi::foreign::StreamTask;
use pto_abi::{CoreKind, Fault, FuncId};
use pto_graph::{Comparison, Predicate, Priority, StartMode, TensorTask, TensorView};

use crate::foreign::build::known;

/// What a task is beyond one kernel on one core.
pub(super) struct ForeignBlockShape {
    vectors: Vec<FuncId, 2>,
    blocks: u32,
    start: StartMode,
    priority: Priority,
    predicate: Option<Predicate<'static>>,
}

impl ForeignBlockShape {
    pub(super) fn of(task: &StreamTask) -> Result<Self, Fault> {
        let foreign = |_| Fault::BUILD_FOREIGN_STRUCT;
        let byte = |number: u32| u8::try_from(number).map_err(|_| Fault::BUILD_FOREIGN_STRUCT);
        let count = usize::try_from(task.vector_count).unwrap_or(usize::MAX);
        let mut vectors = Vec::new();
        for func_id in task.vectors.get(..count).ok_or(Fault::STREAM_MIX)? {
            let (func_id, _) = known((*func_id).into(), CoreKind::AIV.get().into())?;
            vectors.push(func_id).map_err(|_| Fault::STREAM_MIX)?;
        }
        let priority = match task.priority.checked_sub(1) {
            None => Priority::NORMAL,
            Some(priority) => Priority::try_from(byte(priority)?).map_err(foreign)?,
        };
        let predicate = match task.has_predicate {
            0 => None,
            1 => {
                let comparison = Comparison::try_from(byte(task.comparison)?).map_err(foreign)?;
                let rank = usize::try_from(task.index_rank).unwrap_or(usize::MAX);
                let index = task.index.get(..rank).ok_or(Fault::STREAM_VIEW_RANK)?;
                let view = TensorView::from(&task.element_of);
                Some(Predicate::new(&view, index, comparison, task.value))
            }
            _ => return Err(Fault::BUILD_FOREIGN_STRUCT),
        };
        let start = StartMode::try_from(byte(task.start)?).map_err(foreign)?;
        Ok(Self { vectors, blocks: task.blocks.max(1), start, priority, predicate })
    }

    /// The task with this shape.
    pub(super) fn give<'a>(&'a self, task: TensorTask<'a>) -> TensorTask<'a> {
        let task = task.mix(&self.vectors).blocks(self.blocks).priority(self.priority);
        let task = if self.start == StartMode::SYNC { task.sync_start() } else { task };
        match &self.predicate {
            Some(predicate) => task.when(predicate),
            None => task,
        }
    }
}
