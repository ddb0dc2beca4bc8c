//! The AICore worker loop, step by step: look for a command, run it, report.
//!
//! ```text
//!  EXITED --Greet/introduce--> in service --Run/run,finish--> in service --Quit/leave--> EXITED
//! ```
//! The loop is the same on every machine; a [`WorkerPort`] is one core's way to its lines and to the code of
//! kernels. All state is in the core's own line, so a step may be made by any agent that has the core.

use core::ptr;

use pto_abi::chain::{CHAIN_KERNEL, ChainKernel, ChainReader, ChainWords, MAX_CHAIN_ARGS};
use pto_abi::handshake::{Command, Dispatch};

use crate::args::size;

/// One core's view of the machine.
pub trait WorkerPort {
    /// The dispatch that comes next, where that is known sooner than every [`command`](Self::command).
    #[inline(always)]
    fn next_dispatch(&mut self) -> Option<Dispatch> {
        None
    }

    /// What AICPU wants of the core; a `Run` has acquired what the task's producers wrote.
    fn command(&mut self) -> Command;

    /// Answers a greeting.
    fn introduce(&mut self, epoch: u32);

    /// Calls the kernel.
    fn run(&mut self, dispatch: &Dispatch);

    /// Calls one kernel of a chain: `dispatch` is the chain's, with the code and the arguments of this kernel, which are in
    /// `args` as well. Whether the core goes on with the next one.
    fn run_link(&mut self, dispatch: &Dispatch, _kernel: &ChainKernel, _args: &[u64]) -> bool {
        self.run(dispatch);
        true
    }

    /// Reports the dispatch; what the kernel wrote becomes visible with it.
    fn finish(&mut self, id: u32);

    /// Says that the core has left its loop.
    fn leave(&mut self);
}

/// What a step of a core did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerStep {
    /// The worker had nothing to do in this step.
    Idle,
    /// The core answered, or ran a task.
    Worked,
    /// The core has left its loop.
    Left,
}

/// One turn of the loop; as long as the kernel takes, if there is one to run. Part of its caller's loop, which then saves
/// registers once for many tasks.
#[inline(always)]
pub fn step<P: WorkerPort>(port: &mut P) -> WorkerStep {
    match port.next_dispatch() {
        Some(dispatch) => run(port, &dispatch),
        None => obey(port),
    }
}

/// Runs a dispatch that was found to come next, and reports it.
#[inline(always)]
pub fn run<P: WorkerPort>(port: &mut P, dispatch: &Dispatch) -> WorkerStep {
    if dispatch.kernel == CHAIN_KERNEL.0 {
        // A copy, so that the dispatch of a single kernel need not be in memory.
        run_chain(port, &{ *dispatch });
    } else {
        port.run(dispatch);
    }
    port.finish(dispatch.id);
    WorkerStep::Worked
}

/// Runs the kernels of a chain, one after another. Each finds its arguments in words of this core's own.
#[inline(never)]
fn run_chain<P: WorkerPort>(port: &mut P, dispatch: &Dispatch) {
    let words: *const u64 = ptr::with_exposed_provenance(size(dispatch.args));
    // SAFETY: the word is one of the chain, or its header: the builder that wrote the chain states there how many words it has, and the
    // reader asks for no others. They stay as they are until the chain has been reported.
    let mut reader = ChainReader::new(|at| unsafe { words.wrapping_add(at).read() });
    let mut own: ChainWords = [0; MAX_CHAIN_ARGS + 1];
    while let Some(kernel) = reader.next(&mut own) {
        let args = own.as_ptr().expose_provenance() as u64;
        let link = Dispatch { kernel: kernel.kernel, args, ..*dispatch };
        if !port.run_link(&link, &kernel, &own[..kernel.args.min(MAX_CHAIN_ARGS)]) {
            return;
        }
    }
}

/// Does whatever is wanted of the core.
#[inline(never)]
fn obey<P: WorkerPort>(port: &mut P) -> WorkerStep {
    match port.command() {
        Command::Run(dispatch) => run(port, &dispatch),
        Command::Wait => WorkerStep::Idle,
        Command::Greet(epoch) => {
            port.introduce(epoch);
            WorkerStep::Worked
        }
        Command::Quit => {
            port.leave();
            WorkerStep::Left
        }
    }
}
