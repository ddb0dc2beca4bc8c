//! Messages in flight: non-blocking sends and receives, and their progress.

use std::ffi::c_int;

use mpi::ffi::{
    MPI_Cancel, MPI_ERR_IN_STATUS, MPI_Get_count, MPI_Irecv, MPI_Isend, MPI_Request_free,
    MPI_Status, MPI_Testsome, RSMPI_ANY_SOURCE, RSMPI_REQUEST_NULL, RSMPI_UINT8_T,
};

use super::state::{self, BAD_ARGUMENT, Room, State};
use crate::table::{ANY_PEER, Channel, MAX_MESSAGE_BYTES, Progress};

fn count(bytes: usize) -> Option<c_int> {
    c_int::try_from(bytes).ok().filter(|_| bytes <= MAX_MESSAGE_BYTES)
}

pub(crate) unsafe extern "C" fn send(
    channel: Channel,
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
            MPI_Isend(from.cast(), count, kind, peer, tag, state.channel(channel), &raw mut request)
        };
        if error == 0 {
            // SAFETY: the caller passes a valid pointer for the number.
            unsafe { number.write(state.keep(request)) };
        }
        error
    })
}

pub(crate) unsafe extern "C" fn receive(
    channel: Channel,
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
            MPI_Irecv(to.cast(), count, kind, peer, tag, state.channel(channel), &raw mut request)
        };
        if error == 0 {
            // SAFETY: the caller passes a valid pointer for the number.
            unsafe { number.write(state.keep(request)) };
        }
        error
    })
}

pub(crate) unsafe extern "C" fn test(
    numbers: *const u64,
    count: usize,
    progress: *mut Progress,
) -> i32 {
    state::with(|state| {
        if count == 0 {
            return 0;
        }
        // SAFETY: the caller passes so many numbers.
        let numbers = unsafe { std::slice::from_raw_parts(numbers, count) };
        // SAFETY: the caller passes room for as many answers, which are plain numbers.
        let progress = unsafe { std::slice::from_raw_parts_mut(progress, count) };
        progress.fill(Progress::default());
        let mut room = std::mem::take(&mut state.room);
        let error =
            match room.fill(numbers.iter().map_while(|number| state.request(*number).copied())) {
                filled if filled == count => test_some(state, (numbers, &mut room), progress),
                _ => BAD_ARGUMENT,
            };
        state.room = room;
        error
    })
}

/// One call for all of them: MPI looks at the network once, and not once for each.
fn test_some(
    state: &mut State,
    (numbers, room): (&[u64], &mut Room),
    progress: &mut [Progress],
) -> i32 {
    let Room { requests, indices, statuses } = room;
    let Ok(count) = c_int::try_from(requests.len()) else { return BAD_ARGUMENT };
    let mut complete = 0;
    // SAFETY: the requests are in flight, and the slices have room for all of them.
    let error = unsafe {
        MPI_Testsome(
            count,
            requests.as_mut_ptr(),
            &raw mut complete,
            indices.as_mut_ptr(),
            statuses.as_mut_ptr(),
        )
    };
    // Of requests that are none, the number is negative.
    let complete = usize::try_from(complete).unwrap_or(0);
    for (index, status) in indices.iter().zip(statuses.iter()).take(complete) {
        let Ok(at) = usize::try_from(*index) else { continue };
        let (Some(number), Some(entry)) = (numbers.get(at), progress.get_mut(at)) else { continue };
        state.forget(*number);
        *entry = Progress {
            is_complete: 1,
            peer: status.MPI_SOURCE,
            tag: status.MPI_TAG,
            bytes: received(status),
            ..Progress::default()
        };
    }
    if error == 0 || error != MPI_ERR_IN_STATUS as c_int {
        return error;
    }
    let failed = statuses.iter().take(complete).find(|status| status.MPI_ERROR != 0);
    failed.map_or(error, |status| status.MPI_ERROR)
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
        // SAFETY: the request is in flight.
        let error = unsafe { MPI_Cancel(request) };
        // SAFETY: a request that is cancelled may be freed; MPI completes the rest by itself.
        unsafe { MPI_Request_free(request) };
        state.forget(number);
        error
    })
}
