//! The state that the plug-in keeps between two calls: the communicators, and the requests in flight. A lock guards all of it, so that threads may
//! take turns, as MPI_THREAD_SERIALIZED asks.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::sync::{Mutex, PoisonError};

use mpi::ffi::{MPI_Comm, MPI_Request, MPI_Status};

use crate::table::Channel;

/// The answer to a call before `start` or after `finish`. MPI's own numbers are positive.
pub(crate) const NOT_STARTED: i32 = -1;
/// The answer to a call with an argument that MPI cannot take.
pub(crate) const BAD_ARGUMENT: i32 = -2;
/// The answer of `start` where this MPI takes calls from one thread only.
pub(crate) const ONE_THREAD: i32 = -3;

static STATE: Mutex<Option<State>> = Mutex::new(None);

/// Room for a test of several requests, which goes on all the time.
#[derive(Default)]
pub(crate) struct Room {
    pub(crate) requests: Vec<MPI_Request>,
    pub(crate) indices: Vec<c_int>,
    pub(crate) statuses: Vec<MPI_Status>,
}

impl Room {
    /// Takes these requests, and makes room for as many answers; how many there are.
    pub(crate) fn fill(&mut self, requests: impl Iterator<Item = MPI_Request>) -> usize {
        self.requests.clear();
        self.requests.extend(requests);
        let count = self.requests.len();
        // SAFETY: a status is plain numbers, and zeros are some.
        let none = unsafe { MaybeUninit::<MPI_Status>::zeroed().assume_init() };
        self.indices.resize(count, 0);
        self.statuses.resize(count, none);
        count
    }
}

/// Of a rank that has started.
pub(crate) struct State {
    channels: [MPI_Comm; 2],
    requests: Vec<Option<MPI_Request>>,
    free: Vec<usize>,
    pub(crate) room: Room,
}

// SAFETY: MPI gives handles (numbers, or pointers into its own memory) that any thread may use, one after the other; the lock sees to that.
unsafe impl Send for State {}

impl State {
    pub(crate) fn new(channels: [MPI_Comm; 2]) -> Self {
        Self { channels, requests: Vec::new(), free: Vec::new(), room: Room::default() }
    }

    pub(crate) fn channel(&self, channel: Channel) -> MPI_Comm {
        self.channels[channel as usize]
    }

    /// Keeps a request, and numbers it.
    pub(crate) fn keep(&mut self, request: MPI_Request) -> u64 {
        let slot = self.free.pop().unwrap_or(self.requests.len());
        if slot == self.requests.len() {
            self.requests.push(None);
        }
        self.requests[slot] = Some(request);
        slot as u64
    }

    /// The request of this number.
    pub(crate) fn request(&mut self, number: u64) -> Option<&mut MPI_Request> {
        self.requests.get_mut(usize::try_from(number).ok()?)?.as_mut()
    }

    /// Forgets a request.
    pub(crate) fn forget(&mut self, number: u64) {
        let Some(slot) = usize::try_from(number).ok().filter(|slot| *slot < self.requests.len())
        else {
            return;
        };
        if self.requests[slot].take().is_some() {
            self.free.push(slot);
        }
    }
}

/// Sets or clears the state.
pub(crate) fn put(state: Option<State>) {
    *STATE.lock().unwrap_or_else(PoisonError::into_inner) = state;
}

/// Calls `then` with the state.
pub(crate) fn with(then: impl FnOnce(&mut State) -> i32) -> i32 {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    state.as_mut().map_or(NOT_STARTED, then)
}
