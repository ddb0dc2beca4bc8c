//! What a session and its streams are opened with.

use std::time::Duration;

use super::error::SessionError;
use crate::options::RunOptions;

/// What steps the service of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drive {
    /// A thread of the session: commands make progress while no thread waits for them.
    Thread,
    /// The waiting threads: nothing happens between two waits, and the seed decides which of the ready commands is next. The same
    /// calls and the same seed give the same order of commands.
    Stepped {
        /// Decides every choice.
        seed: u64,
    },
}

/// How a session is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionOptions {
    /// How kernels and programs are run, where a command does not say it itself.
    pub run: RunOptions,
    /// Entries of the ring of each stream: a power of two, 32 to 1,048,576. A command takes one, a launch with more than three
    /// arguments more.
    pub ring_entries: usize,
    /// The most launches that are in flight at once; at least one. Where `run.run_budget` limits the time of a
    /// run, so many must be over in half of it.
    pub batch_launches: usize,
    /// How long the firmware looks for commands when it has nothing to do. Then it sleeps for a while where the device can, and returns;
    /// the next command wakes it, or brings it up again.
    pub linger: Duration,
    /// Threads for copies; at least one.
    pub copy_workers: usize,
    /// The most functions of the host that run at once; at least one. Further ones wait.
    pub host_functions: usize,
    /// What steps the service; `None`: a thread, and on a device in virtual time the waiting threads, with seed 0.
    pub drive: Option<Drive>,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            run: RunOptions::default(),
            ring_entries: 1024,
            batch_launches: 1024,
            linger: Duration::from_micros(200),
            copy_workers: 2,
            host_functions: 16,
            drive: None,
        }
    }
}

/// What becomes of the commands after one that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// They run.
    #[default]
    Continue,
    /// They are skipped, and the stream takes no more commands before a reset. Other streams go on.
    Stop,
    /// As `Stop`, for every stream of the session.
    StopAll,
}

/// How a stream is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamOptions {
    /// 0 is served first, 7 last. Within a priority streams take turns.
    pub priority: u8,
    /// What becomes of the commands after one that failed.
    pub on_failure: OnFailure,
    /// How long a command is waited for room in the ring for, before the call gives up.
    pub room_budget: Duration,
    /// How long a wait of the stream may last, for an event, a word of GM or other streams, before it fails with the cause `TimedOut`; `None`: for
    /// ever.
    pub wait_budget: Option<Duration>,
    /// How long a kernel of the stream may be on a core, before its command fails with the fault `STALL_CORE`: in launches, recordings, and runs
    /// without options of their own. 1 us to `RunOptions::task_budget` of the session, in whole microseconds; `None`: that budget.
    pub kernel_budget: Option<Duration>,
}

impl StreamOptions {
    /// The budget of a kernel: the watchdog of the run would end a kernel that may take longer than any of the run.
    pub(super) fn check_kernel_budget(&self, of_session: Duration) -> Result<(), SessionError> {
        let Some(budget) = self.kernel_budget else { return Ok(()) };
        let is_whole = budget.subsec_nanos().is_multiple_of(1000) && !budget.is_zero();
        if is_whole && budget <= of_session && budget <= LONGEST_KERNEL_BUDGET {
            return Ok(());
        }
        Err(SessionError::Option {
            option: "kernel_budget",
            found: format!("{budget:?} in a session whose task budget is {of_session:?}"),
            allowed: "whole microseconds, from 1 to the task budget of the session, and at most an hour",
        })
    }

    /// The budget of a kernel in microseconds, as the firmware reads it; zero: it has that of the run.
    pub(super) fn kernel_budget_us(&self) -> u64 {
        let budget = self.kernel_budget.map_or(0, |budget| budget.as_micros());
        u64::try_from(budget).unwrap_or(u64::MAX)
    }
}

/// The firmware counts the microseconds of a kernel in 32 bits.
const LONGEST_KERNEL_BUDGET: Duration = Duration::from_secs(3600);

/// The priority that is served last.
pub const LAST_PRIORITY: u8 = 7;

impl Default for StreamOptions {
    fn default() -> Self {
        Self {
            priority: LAST_PRIORITY,
            on_failure: OnFailure::default(),
            room_budget: Duration::from_secs(60),
            wait_budget: None,
            kernel_budget: None,
        }
    }
}
