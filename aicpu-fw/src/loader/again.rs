//! Running a graph again that the arena still holds: edges, arguments and kernels are as the run before has left them, and only
//! the counters that it counted down are set again.

use pto_abi::Fault;
use pto_abi::image::{FieldMismatch, GraphHeader, SealedImage};
use pto_abi::kinds::TaskState;
use pto_abi::runtime::{NOBODY, Progress};
use pto_abi::sync::{Ordering, Sharing};
use pto_abi::task::CLOSED;

use super::{Loader, TASKS_A_LOOK};
use crate::machine::Machine;
use crate::mutant::{self, Mutant};

impl<M: Machine> Loader<'_, '_, M> {
    /// Makes the tasks of the last run wait for their producers again.
    ///
    /// # Errors
    /// `RUNTIME_FLAGS`: the run is traced. `GRAPH_NOT_LOADED`: the arena does not hold the graph of the launch's image, or the graph was not run to its end. Or the
    /// fault that another instance has raised meanwhile.
    pub(super) fn reset_all<S: Sharing>(&mut self, image: &SealedImage<'_>) -> Result<(), Fault> {
        if self.machine.traces() {
            // Only loading gives the events of its edges.
            return Err(Fault::RUNTIME_FLAGS);
        }
        let (progress, header) = (self.launch.state.progress, image.header());
        if !is_loaded(progress, header) {
            let loaded = progress.loaded_checksum.load(Ordering::Relaxed);
            return Err(self.not_loaded(NOBODY, loaded, header.checksum));
        }
        // It is complete again when it has been started.
        progress.loaded_run.store(0, Ordering::Relaxed);
        let generation = self.launch.run_epoch;
        let mut slot = 0;
        for some in self.tasks.chunks(TASKS_A_LOOK) {
            self.look_for_faults()?;
            for task in some {
                let state = task.state.load(Ordering::Relaxed);
                if state != TaskState::COMPLETED.get() {
                    let expected = TaskState::COMPLETED.get().into();
                    return Err(self.not_loaded(slot, state.into(), expected));
                }
                let fanout = task.fanout.load(Ordering::Relaxed);
                task.fanout.store(fanout & !CLOSED, Ordering::Relaxed);
                task.generation.store(generation, Ordering::Relaxed);
                self.publish::<S>(slot, task, task.edges_in.load(Ordering::Relaxed));
                if mutant::is(Mutant::LeavesTasksCountedDown) {
                    task.fanin.store(0, Ordering::Relaxed);
                }
                slot += 1;
            }
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn not_loaded(&mut self, slot: u32, found: u64, expected: u64) -> Fault {
        let fault = Fault::GRAPH_NOT_LOADED;
        self.refuse(slot, NOBODY, &FieldMismatch { fault, found, expected })
    }
}

fn is_loaded(progress: &Progress, header: &GraphHeader) -> bool {
    progress.loaded_run.load(Ordering::Relaxed) != 0
        && progress.loaded_tasks.load(Ordering::Relaxed) == header.task_count
        && progress.loaded_edges.load(Ordering::Relaxed) == header.edge_count
        && progress.loaded_checksum.load(Ordering::Relaxed) == header.checksum
}
