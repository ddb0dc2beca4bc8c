//! The start and the end of MPI, the communicators of the channels, and what MPI's errors mean.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use mpi::ffi::{
    MPI_Comm, MPI_Comm_dup, MPI_Comm_get_attr, MPI_Comm_rank, MPI_Comm_set_errhandler,
    MPI_Comm_size, MPI_Error_string, MPI_Finalize, MPI_Get_library_version, MPI_Get_processor_name,
    MPI_Init_thread, MPI_TAG_UB, RSMPI_COMM_NULL, RSMPI_COMM_WORLD, RSMPI_ERRORS_RETURN,
    RSMPI_THREAD_SERIALIZED,
};

use super::state::{self, BAD_ARGUMENT, NOT_STARTED, ONE_THREAD, State};
use crate::table::{MpiWorld, TEXT_BYTES};

/// More than any MPI writes as a version, a name or an error.
const MPI_TEXT_BYTES: usize = 16 * 1024;
/// Every MPI takes tags up to this one.
const LEAST_MAX_TAG: c_int = 32_767;

pub(crate) unsafe extern "C" fn start(world: *mut MpiWorld) -> i32 {
    let mut provided = 0;
    // SAFETY: MPI is started without arguments; a second start is MPI's to refuse.
    let error = unsafe {
        MPI_Init_thread(
            ptr::null_mut(),
            ptr::null_mut(),
            RSMPI_THREAD_SERIALIZED,
            &raw mut provided,
        )
    };
    if error != 0 {
        return error;
    }
    // SAFETY: MPI has started, and its constant is set.
    if provided < unsafe { RSMPI_THREAD_SERIALIZED } {
        return ONE_THREAD;
    }
    // SAFETY: MPI has started, and its constant is set.
    let all = unsafe { RSMPI_COMM_WORLD };
    let mut channels = [all; 2];
    for channel in &mut channels {
        let error = duplicate(all, channel);
        if error != 0 {
            return error;
        }
    }
    let answer = describe(all);
    // SAFETY: the caller passes a valid pointer for the answer.
    unsafe { world.write(answer) };
    state::put(Some(State::new(channels)));
    0
}

/// A communicator of its own for a channel. Its errors are returned; MPI would end the process otherwise.
fn duplicate(all: MPI_Comm, channel: &mut MPI_Comm) -> i32 {
    // SAFETY: MPI has started, and its constant is set.
    *channel = unsafe { RSMPI_COMM_NULL };
    // SAFETY: both communicators are variables of this thread.
    let error = unsafe { MPI_Comm_dup(all, channel) };
    if error != 0 {
        return error;
    }
    // SAFETY: MPI has started, and its constant is set.
    let handler = unsafe { RSMPI_ERRORS_RETURN };
    // SAFETY: the communicator has just been made.
    unsafe { MPI_Comm_set_errhandler(*channel, handler) }
}

fn describe(all: MPI_Comm) -> MpiWorld {
    let mut answer = MpiWorld {
        rank: 0,
        ranks: 0,
        max_tag: LEAST_MAX_TAG,
        reserved: 0,
        host: [0; TEXT_BYTES],
        library: [0; TEXT_BYTES],
    };
    // SAFETY: MPI has started; the pointer is valid.
    unsafe { MPI_Comm_rank(all, &raw mut answer.rank) };
    // SAFETY: as above.
    unsafe { MPI_Comm_size(all, &raw mut answer.ranks) };
    answer.max_tag = max_tag(all);
    let (mut text, mut length) = (vec![0; MPI_TEXT_BYTES], 0);
    // SAFETY: the text has more room than MPI needs.
    unsafe { MPI_Get_processor_name(text.as_mut_ptr(), &raw mut length) };
    copy(&text, &mut answer.host);
    text.fill(0);
    // SAFETY: as above.
    unsafe { MPI_Get_library_version(text.as_mut_ptr(), &raw mut length) };
    copy(&text, &mut answer.library);
    answer
}

/// `MPI_TAG_UB`.
fn max_tag(all: MPI_Comm) -> c_int {
    let (mut value, mut found): (*mut c_int, c_int) = (ptr::null_mut(), 0);
    let pointer: *mut c_void = (&raw mut value).cast();
    // The key's type is not the same with both MPIs.
    let key = MPI_TAG_UB as c_int;
    // SAFETY: the attribute is a pointer to an int of MPI's.
    let error = unsafe { MPI_Comm_get_attr(all, key, pointer, &raw mut found) };
    if error != 0 || found == 0 || value.is_null() {
        return LEAST_MAX_TAG;
    }
    // SAFETY: MPI says that it has found the int.
    unsafe { value.read() }
}

/// The first line of a text of MPI's, as far as there is room.
fn copy(from: &[c_char], to: &mut [c_char]) {
    let ends = |letter: &c_char| matches!(letter.to_ne_bytes()[0], 0 | b'\n');
    let length = from.iter().position(ends).unwrap_or(from.len()).min(to.len() - 1);
    to[..length].copy_from_slice(&from[..length]);
    to[length..].fill(0);
}

pub(crate) unsafe extern "C" fn error_text(error: i32, text: *mut c_char, bytes: usize) {
    if bytes == 0 {
        return;
    }
    let (mut whole, mut length): (Vec<c_char>, c_int) = (vec![0; MPI_TEXT_BYTES], 0);
    let own = match error {
        NOT_STARTED => Some("MPI is not running"),
        ONE_THREAD => {
            Some("this MPI takes calls from one thread only (MPI_THREAD_SERIALIZED is refused)")
        }
        BAD_ARGUMENT => Some("a message is longer than MPI counts, or no such request"),
        _ => None,
    };
    match own {
        Some(own) => whole.iter_mut().zip(own.bytes()).for_each(|(to, from)| {
            *to = c_char::from_ne_bytes([from]);
        }),
        None => {
            // SAFETY: the text has more room than MPI needs.
            unsafe { MPI_Error_string(error, whole.as_mut_ptr(), &raw mut length) };
        }
    }
    // SAFETY: the caller passes so many bytes.
    let to = unsafe { std::slice::from_raw_parts_mut(text, bytes) };
    copy(&whole, to);
}

pub(crate) unsafe extern "C" fn finish() -> i32 {
    let started = state::with(|_| 0);
    if started != 0 {
        return started;
    }
    state::put(None);
    // SAFETY: this thread has started MPI, and has not ended it.
    unsafe { MPI_Finalize() }
}
