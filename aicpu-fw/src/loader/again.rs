//! Running a graph again that stands in the arena: edges, arguments and kernels are as the run before has left them, and only
//! what it counted down is counted up again.

use pto_abi::image::{GraphHeader, SealedImage};
use pto_abi::kinds::TaskState;
use pto_abi::runtime::{InstanceLine, Progress};
use pto_abi::sync::{Ordering, Sharing};
use pto_abi::task::CLOSED;
use pto_abi::Fault;

use super::{Loader, TASKS_A_LOOK, refused};
use crate::blame::Blame;
use crate::builder::BuilderHost;
use crate::launch::Launch;
use crate::mutant::{self, Mutant};

/// Starts the graph of the last run again; how many tasks it has.
///
/// # Errors
/// `GRAPH_NOT_LOADED`: what stands in the arena is not the graph of the launch's image, or was not run to its end. Otherwise
/// as of an image, or the fault that somebody else has raised meanwhile.
pub(crate) fn again<S: Sharing, H: BuilderHost>(
    launch: &Launch<'_>,
    line: &InstanceLine,
    host: H,
) -> Result<u64, Blame> {
    let window = launch.image().map_err(Blame::of)?;
    let image = SealedImage::open_unsummed(window).map_err(refused)?;
    let (progress, header) = (launch.state.progress, image.header());
    if !is_loaded(progress, header) {
        let loaded = progress.loaded_checksum.load(Ordering::Relaxed);
        return Err(Blame::of(Fault::GRAPH_NOT_LOADED).detail(loaded, header.checksum));
    }
    let mut loader = Loader::new(launch, line, host, header.task_count)?;
    // It stands again when it has been started.
    progress.loaded_run.store(0, Ordering::Relaxed);
    let mut slot = 0;
    for some in loader.tasks.chunks(TASKS_A_LOOK) {
        loader.look_for_faults()?;
        for task in some {
            let state = task.state.load(Ordering::Relaxed);
            if state != TaskState::COMPLETED.get() {
                let blame = Blame::of(Fault::GRAPH_NOT_LOADED).task(loader.id(slot));
                return Err(blame.detail(state.into(), TaskState::COMPLETED.get().into()));
            }
            if !mutant::is(Mutant::LeavesFanoutsClosed) {
                let fanout = task.fanout.load(Ordering::Relaxed);
                task.fanout.store(fanout & !CLOSED, Ordering::Relaxed);
            }
            task.generation.store(launch.run_epoch, Ordering::Relaxed);
            loader.publish::<S>(slot, task, task.edges_in.load(Ordering::Relaxed));
            slot += 1;
        }
    }
    Ok(loader.start::<S>(header.edge_count))
}

fn is_loaded(progress: &Progress, header: &GraphHeader) -> bool {
    progress.loaded_run.load(Ordering::Relaxed) != 0
        && progress.loaded_tasks.load(Ordering::Relaxed) == header.task_count
        && progress.loaded_edges.load(Ordering::Relaxed) == header.edge_count
        && progress.loaded_checksum.load(Ordering::Relaxed) == header.checksum
}
