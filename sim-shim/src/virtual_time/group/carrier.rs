//! The thread that runs the machines of a group, each as a coroutine: the one whose turn it is goes on, until it is another one's.
//!
//! ```text
//! Carrier::run(rank, machine)   from the thread of each machine, which waits until the machine is over
//!   serve: who is to run? --there--> resume --> it waits for its turn, or is over --> who is to run?
//!                         '-not yet there: wait for it, or for its giving up
//! ```
//! Invariants:
//! - `carried` is the rank whose coroutine is on the thread of the present `generation`. A coroutine that does not come back, because
//!   host code of it never returns, is left to its thread when its rank is given up: a new thread, of the next generation, carries the others.
//! - A machine has its own thread-local state: it is there while its coroutine runs, and nowhere else.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::coroutine::{Body, Coroutine, Stack};

/// How long a machine waits at most before it shows that it is there.
const BEAT: Duration = Duration::from_millis(500);

/// The thread-local state of a machine.
pub(in crate::virtual_time) trait Locals: Send {
    /// Swaps the value with that of the thread.
    fn exchange(&mut self);
}

/// A machine to run, on a stack.
pub(in crate::virtual_time) struct Machine {
    /// Runs it. Does not unwind.
    pub(in crate::virtual_time) body: Body,
    /// What it has in thread-local state.
    pub(in crate::virtual_time) locals: Box<dyn Locals>,
    /// What it runs on.
    pub(in crate::virtual_time) stack: Stack,
}

struct Carried {
    coroutine: Coroutine,
    locals: Box<dyn Locals>,
    over: Sender<Stack>,
}

impl Carried {
    /// Lets it go on; its stack, if it is over.
    fn resume(&mut self) -> Option<Stack> {
        self.locals.exchange();
        let stack = self.coroutine.resume();
        self.locals.exchange();
        stack
    }
}

#[derive(Default)]
struct State {
    /// Those that wait, by rank.
    waiting: Vec<Option<Carried>>,
    carried: Option<usize>,
    generation: u64,
    is_served: bool,
}

/// See the file.
#[derive(Default)]
pub(super) struct Carrier {
    state: Mutex<State>,
    changed: Condvar,
}

/// Who is to run.
pub(super) trait Turns: Send + Sync + 'static {
    /// The carrier of its machines.
    fn carrier(&self) -> &Carrier;
    /// The rank that is to run; `None`: all runs are over.
    fn running(&self) -> Option<usize>;
}

impl Carrier {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a machine in its turns, and waits until it is over; its stack, unless it was given up. While the machine waits for its turn, `beat`
    /// says that it is there.
    ///
    /// # Errors
    /// The process gets no further thread.
    pub(super) fn run(
        of: &Arc<impl Turns>,
        rank: usize,
        machine: Machine,
        beat: impl Fn(),
    ) -> io::Result<Option<Stack>> {
        let (over, is_over) = channel();
        let Machine { body, locals, stack } = machine;
        let carried = Carried { coroutine: Coroutine::new(stack, body), locals, over };
        let this = of.carrier();
        let mut state = this.state();
        if state.waiting.len() <= rank {
            state.waiting.resize_with(rank + 1, || None);
        }
        if !state.is_served {
            Self::start(of, state.generation)?;
            state.is_served = true;
        }
        state.waiting[rank] = Some(carried);
        drop(state);
        this.changed.notify_all();
        loop {
            match is_over.recv_timeout(BEAT) {
                Ok(stack) => return Ok(Some(stack)),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) if this.state().carried == Some(rank) => {}
                Err(RecvTimeoutError::Timeout) => beat(),
            }
        }
    }

    /// Another thread than the carrier's has changed who is to run.
    pub(super) fn tell_change(&self) {
        drop(self.state());
        self.changed.notify_all();
    }

    /// Waits for a change until `is_there`.
    pub(super) fn wait(&self, is_there: impl Fn() -> bool) {
        let mut state = self.state();
        while !is_there() {
            let waited = self.changed.wait_timeout(state, BEAT);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// A rank is given up. If its machine is the one that the thread carries, another thread carries the others from now on.
    pub(super) fn abandon(of: &Arc<impl Turns>, rank: usize) {
        let mut state = of.carrier().state();
        if state.carried == Some(rank) {
            state.carried = None;
            state.generation += 1;
            state.is_served = Self::start(of, state.generation).is_ok();
        }
    }

    fn start(of: &Arc<impl Turns>, generation: u64) -> io::Result<()> {
        let turns = Arc::clone(of);
        let named = std::thread::Builder::new().name("pto-virtual-net".to_owned());
        named.spawn(move || turns.carrier().serve(&*turns, generation)).map(drop)
    }

    fn serve(&self, turns: &impl Turns, generation: u64) {
        while let Some((rank, mut carried)) = self.next(turns, generation) {
            let stack = carried.resume();
            let mut state = self.state();
            if state.generation != generation {
                // The others have gone on without it.
                return;
            }
            state.carried = None;
            match stack {
                Some(stack) => carried.over.send(stack).unwrap_or_default(),
                None => state.waiting[rank] = Some(carried),
            }
        }
    }

    /// The machine that is to run, when it is there; `None`: the thread is not needed any more.
    fn next(&self, turns: &impl Turns, generation: u64) -> Option<(usize, Carried)> {
        let mut state = self.state();
        while state.generation == generation {
            let Some(rank) = turns.running() else {
                state.is_served = false;
                return None;
            };
            if let Some(carried) = state.waiting.get_mut(rank).and_then(Option::take) {
                state.carried = Some(rank);
                return Some((rank, carried));
            }
            self.changed.notify_all();
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }
}
