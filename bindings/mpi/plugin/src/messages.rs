//! Messages on their way: non-blocking sends and receives, and how far they are.

use std::ffi::c_int;
use std::mem::MaybeUninit;

use mpi::ffi::{
    MPI_Cancel, MPI_Get_count, MPI_Irecv, MPI_Isend, MPI_Request_free, MPI_Status, MPI_Test,
    RSMPI_ANY_SOURCE, RSMPI_REQUEST_NULL, RSMPI_UINT8_T,
};

use crate::state::{self, BAD_ARGUMENT};
use crate::table::{ANY_PEER, Lane, MAX_MESSAGE_BYTES, Progress};

fn count(bytes: usize) -> Option<c_int> {
    c_int::try_from(bytes).ok().filter(|_| bytes <= MAX_MESSAGE_BYTES)
}

pub(crate) unsafe extern "C" fn send(
    lane: Lane,
    from: *const u8,
    bytes: usize,
    peer: i32,
    tag: i32,
    number: *mut u64,
) -> i32 {
    state::with(|state| {
        let Some(count) = count(bytes) else { return BAD_ARGUMENT };
        // SAFETY: MPI has started, and its constants are set.
        let (mut request, kind) = unsafe { (RSMPI_REQUEST_NULL, RSMPI_UINT8_T) };
        // SAFETY: the caller keeps the bytes as they are until the request is complete.
        let error = unsafe {
            MPI_Isend(from.cast(), count, kind, peer, tag, state.lane(lane), &raw mut request)
        };
        if error == 0 {
            // SAFETY: the caller hands over a place for the number.
            unsafe { number.write(state.keep(request)) };
        }
        error
    })
}

pub(crate) unsafe extern "C" fn receive(
    lane: Lane,
    to: *mut u8,
    bytes: usize,
    peer: i32,
    tag: i32,
    number: *mut u64,
) -> i32 {
    state::with(|state| {
        let Some(count) = count(bytes) else { return BAD_ARGUMENT };
        // SAFETY: MPI has started, and its constants are set.
        let (mut request, kind) = unsafe { (RSMPI_REQUEST_NULL, RSMPI_UINT8_T) };
        // SAFETY: MPI has started, and its constant is set.
        let any = unsafe { RSMPI_ANY_SOURCE };
        let peer = if peer == ANY_PEER { any } else { peer };
        // SAFETY: the caller leaves the bytes alone until the request is complete.
        let error = unsafe {
            MPI_Irecv(to.cast(), count, kind, peer, tag, state.lane(lane), &raw mut request)
        };
        if error == 0 {
            // SAFETY: the caller hands over a place for the number.
            unsafe { number.write(state.keep(request)) };
        }
        error
    })
}

pub(crate) unsafe extern "C" fn test(number: u64, progress: *mut Progress) -> i32 {
    state::with(|state| {
        let Some(request) = state.request(number) else { return BAD_ARGUMENT };
        let (mut flag, mut status) = (0, MaybeUninit::<MPI_Status>::zeroed());
        // SAFETY: the request is under way, and the places are valid.
        let error = unsafe { MPI_Test(request, &raw mut flag, status.as_mut_ptr()) };
        if error != 0 {
            state.forget(number);
            return error;
        }
        let mut told = Progress { is_complete: flag, ..Progress::default() };
        if flag != 0 {
            state.forget(number);
            // SAFETY: a status is plain numbers, and zeros are some.
            let status = unsafe { status.assume_init() };
            (told.peer, told.tag, told.bytes) =
                (status.MPI_SOURCE, status.MPI_TAG, received(&status));
        }
        // SAFETY: the caller hands over a place for the answer.
        unsafe { progress.write(told) };
        0
    })
}

fn received(status: &MPI_Status) -> u64 {
    let mut bytes = 0;
    // SAFETY: MPI has started, and its constant is set.
    let kind = unsafe { RSMPI_UINT8_T };
    // SAFETY: the status is of a message that is through.
    unsafe { MPI_Get_count(status, kind, &raw mut bytes) };
    u64::try_from(bytes).unwrap_or(0)
}

pub(crate) unsafe extern "C" fn cancel(number: u64) -> i32 {
    state::with(|state| {
        let Some(request) = state.request(number) else { return BAD_ARGUMENT };
        // SAFETY: the request is under way.
        let error = unsafe { MPI_Cancel(request) };
        // SAFETY: a request that is cancelled may be freed; MPI completes the rest by itself.
        unsafe { MPI_Request_free(request) };
        state.forget(number);
        error
    })
}
