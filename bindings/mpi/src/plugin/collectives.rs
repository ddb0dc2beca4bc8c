//! MPI's own collectives: what `pto bench collectives` measures ours against, and the barrier between two measurements.

use std::ffi::c_int;

use mpi::ffi::{MPI_Allreduce, MPI_Barrier, RSMPI_FLOAT, RSMPI_SUM};

use super::state::{self, BAD_ARGUMENT};
use crate::table::Channel;

pub(crate) unsafe extern "C" fn all_reduce_sum(
    from: *const f32,
    to: *mut f32,
    count: usize,
) -> i32 {
    state::with(|state| {
        let Ok(count) = c_int::try_from(count) else { return BAD_ARGUMENT };
        // SAFETY: MPI has started, and its constants are set.
        let (kind, sum) = unsafe { (RSMPI_FLOAT, RSMPI_SUM) };
        // SAFETY: the caller's buffers have so many elements, and do not overlap.
        unsafe {
            MPI_Allreduce(from.cast(), to.cast(), count, kind, sum, state.channel(Channel::Payload))
        }
    })
}

pub(crate) unsafe extern "C" fn barrier() -> i32 {
    // SAFETY: the communicator is that of this thread's MPI.
    state::with(|state| unsafe { MPI_Barrier(state.channel(Channel::Payload)) })
}
