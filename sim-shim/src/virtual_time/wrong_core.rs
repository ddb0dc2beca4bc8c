//! Wrong worker loops, to show that the checkers find a core that does not do as it must. In tests only; the right one is
//! `pto_aicore_kernels::worker::step`.

use std::cell::Cell;

use pto_abi::handshake::Command;
use pto_aicore_kernels::worker::{self, WorkerPort, WorkerStep};

use super::port::VirtualPort;

/// What is wrong with the cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// The core makes no mistake.
    Nothing,
    /// It reports a task before its kernel has run: what the kernel writes is not visible with the report.
    ReportsFirst,
    /// It takes the newer of two dispatches, and regards both as done.
    TakesTheNewer,
    /// The core runs each kernel twice.
    RunsTwice,
    /// It reports without having run the kernel.
    Skips,
    /// It does not report.
    NeverReports,
}

thread_local! {
    static WRONG: Cell<Wrong> = const { Cell::new(Wrong::Nothing) };
}

/// Makes the cores of this thread's machines wrong in this way, until the next call.
pub(super) fn choose(wrong: Wrong) {
    WRONG.set(wrong);
}

/// A turn of the loop, as it was chosen.
pub(super) fn step(port: &mut VirtualPort<'_>) -> WorkerStep {
    let wrong = WRONG.get();
    if wrong == Wrong::Nothing {
        return worker::step(port);
    }
    let dispatch = match port.command() {
        Command::Run(_) if wrong == Wrong::TakesTheNewer => port.core.newest(),
        Command::Run(dispatch) => dispatch,
        _ => return worker::step(port),
    };
    match wrong {
        Wrong::ReportsFirst => {
            port.finish(dispatch.id);
            port.run(&dispatch);
        }
        Wrong::RunsTwice => {
            port.run(&dispatch);
            port.run(&dispatch);
            port.finish(dispatch.id);
        }
        Wrong::Skips => port.finish(dispatch.id),
        Wrong::NeverReports => port.run(&dispatch),
        Wrong::TakesTheNewer | Wrong::Nothing => {
            port.run(&dispatch);
            port.finish(dispatch.id);
        }
    }
    WorkerStep::Worked
}
