//! The service of a session: takes ready commands out of the rings, has them done, and updates the streams. Every turn is bounded.
//!
//! ```text
//! step: admit    streams that are new, or over
//!       collect  reports of jobs
//!       serve    ready commands: at once, or as jobs for workers; for launches the firmware comes up, and reads the rings itself
//!       untie    streams that wait for each other
//! ```
//! What is chosen is a pure function (`choice.rs`): round-robin if a thread steps the service, by a seed if the waiting threads do.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pto_abi::Fault;
use pto_abi::session::board;
use pto_abi::sync::Ordering;

use super::choice::{Candidate, Seeded, in_turn};
use super::error::FailureCause;
use super::executors::Executors;
use super::ids::StreamId;
use super::others::Quiet;
use super::session_core::SessionCore;
use super::stream_state::{HeadState, StreamState, WaitReason, Wants};
use super::wait_cycles::{self, WaitingStream};
use super::work::{FirmwareExit, Job, LaunchOutcome, Report};
use crate::error::Error;

/// Commands that the service does for one stream before it looks at the next one.
const IN_A_ROW: usize = 64;
/// Streams that are closed, and stay until the firmware returns.
const MOST_CLOSED: usize = 256;
/// Steps between two attempts to free memory.
const STEPS_A_ROTATION: u64 = 256;

/// The service.
pub(super) struct Service {
    shared: Arc<SessionCore>,
    streams: Vec<StreamState>,
    executors: Executors,
    seed: Option<Seeded>,
    version: u64,
    steps: u64,
    cores: CoreUse,
    /// Lists that a turn fills: kept, so that no turn allocates.
    turn: TurnLists,
    /// The firmware was up last: a run that is ready goes first.
    is_turn_of_runs: bool,
    /// Nothing can be done, and a wait has a time limit: since when, and since when no outsider can act either.
    idle: Option<Instant>,
    quiet: Quiet,
}

/// The lists of a turn.
#[derive(Default)]
struct TurnLists {
    /// The order of the streams.
    order: Vec<Candidate>,
    /// The streams that have something for the cores.
    for_cores: Vec<(usize, Wants)>,
}

/// What has the cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CoreUse {
    Free,
    /// A run, alone.
    Run,
    /// The resident firmware.
    Resident,
}

/// How the firmware comes up in a session that a seed decides.
struct SeededStart {
    /// The streams that it gets.
    streams: Vec<usize>,
    /// How many commands it begins.
    most: u64,
    seed: u64,
}

/// What can give the service work when it has nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WakeSource {
    /// The firmware has commands, and does not notify the host.
    Firmware,
    /// A stream waits for a word of GM, which the service has to poll.
    PolledValue,
    /// Only a ring of the bell.
    Bell,
}

impl Service {
    /// Without a seed it serves streams in turns.
    pub(super) fn new(shared: Arc<SessionCore>, executors: Executors, seed: Option<u64>) -> Self {
        let version = shared.version().wrapping_sub(1);
        let seed = seed.map(Seeded::new);
        Self {
            shared,
            streams: Vec::new(),
            executors,
            seed,
            version,
            steps: 0,
            cores: CoreUse::Free,
            turn: TurnLists::default(),
            is_turn_of_runs: false,
            idle: None,
            quiet: Quiet::default(),
        }
    }

    /// One turn; whether anything was done. Where those who wait make the turns and nothing can be done, at most `idle` passes.
    pub(super) fn step(&mut self, idle: Option<Duration>) -> bool {
        self.steps += 1;
        self.admit();
        if self.has_ended() {
            self.abort_rest();
        }
        let mut worked = self.collect();
        worked |= self.cores == CoreUse::Resident && self.catch_up();
        worked |= if self.seed.is_some() { self.serve_one() } else { self.serve() };
        let is_space_wanted = self.shared.is_space_wanted();
        if is_space_wanted || worked && self.steps.is_multiple_of(STEPS_A_ROTATION) {
            self.free_deferred();
        }
        if is_space_wanted {
            self.dismiss();
            self.shared.notify_reclaimed();
        }
        let worked = worked || self.pass_time() || self.untie() || self.expire(idle);
        if worked {
            (self.idle, self.quiet) = (None, Quiet::default());
        }
        worked
    }

    /// Where news come from, when there are none just now.
    pub(super) fn expects(&self) -> WakeSource {
        if self.cores == CoreUse::Resident && self.shared.deferred_frees.in_flight() > 0 {
            return WakeSource::Firmware;
        }
        let is_timed =
            |state: &StreamState| state.core.has_budgets() && state.block(&self.shared).is_some();
        let looks = self.waits_for_value() || self.streams.iter().any(is_timed);
        if looks { WakeSource::PolledValue } else { WakeSource::Bell }
    }

    fn waits_for_value(&self) -> bool {
        let is_polling = |state: &StreamState| {
            matches!(state.look(&self.shared), HeadState::Blocked(WaitReason::Value))
        };
        self.streams.iter().any(is_polling)
    }

    /// Whether its session has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.shared.has_ended()
    }

    /// Whether nothing is being done, and everything is over that was submitted.
    pub(super) fn is_done(&self) -> bool {
        let is_quiet =
            self.cores == CoreUse::Free && self.streams.iter().all(|state| !state.is_busy());
        is_quiet && self.shared.deferred_frees.in_flight() == 0
    }

    /// Skips what was submitted at the very end of the session, too.
    fn abort_rest(&self) {
        let has_rest = |state: &&StreamState| state.core.skip_to() < state.core.commands();
        self.streams.iter().filter(has_rest).for_each(|state| {
            state.core.abort();
        });
    }

    /// Which streams wait for what.
    pub(super) fn state(&self) -> String {
        let open = self.streams.iter().filter(|state| !state.core.is_idle());
        let states: Vec<_> = open.map(|state| self.describe(state)).collect();
        if states.is_empty() { "no stream has commands".to_owned() } else { states.join("; ") }
    }

    fn describe(&self, state: &StreamState) -> String {
        let stream = state.core.describe();
        match state.look(&self.shared) {
            HeadState::Blocked(WaitReason::Record(event, record)) => match event.recorder(record) {
                Some(other) => {
                    format!("{stream}, which waits for {}, record {record}, of {other}", event.id)
                }
                None => format!(
                    "{stream}, which waits for {}, record {record}, which was not submitted",
                    event.id
                ),
            },
            HeadState::Blocked(WaitReason::Value) => format!("{stream}, which waits for a value"),
            HeadState::Blocked(WaitReason::Barrier(_)) => {
                format!("{stream}, which waits for other streams")
            }
            _ => stream,
        }
    }

    /// Takes new streams in, and drops those that are over.
    fn admit(&mut self) {
        let version = self.shared.version();
        if version == self.version {
            return;
        }
        self.version = version;
        let resets = self.shared.resets();
        for core in self.shared.streams() {
            if !self.streams.iter().any(|state| state.core.id == core.id) {
                self.streams.push(StreamState::new(core, resets));
            }
        }
        for state in &mut self.streams {
            state.see_resets(resets);
        }
        self.dismiss();
    }

    /// Drops streams that are over. While the firmware is up, it may still look at one: it is asked to leave if they are many, or if a thread waits
    /// for their slots or memory.
    fn dismiss(&mut self) {
        if self.cores == CoreUse::Resident {
            let closed = self.streams.iter().filter(|state| state.core.is_closed()).count();
            let is_wanted =
                || self.shared.is_space_wanted() && self.streams.iter().any(StreamState::is_over);
            if closed > MOST_CLOSED || is_wanted() {
                self.shared.ask_to_leave();
            }
            return;
        }
        for state in self.streams.extract_if(.., |state| state.is_over()) {
            let stream = state.core.id;
            // A reset that waits for this stream may have come since `admit` looked for one, and no later look finds the stream.
            state.core.status.change(|status| status.stopped = None);
            // The last owner of the stream gives its memory back.
            drop(state);
            self.shared.retire(stream);
        }
    }

    /// Takes reports; whether there were any.
    fn collect(&mut self) -> bool {
        let mut worked = false;
        while let Some(report) = self.executors.report(self.shared.clock.now_ns()) {
            worked = true;
            match report {
                Report::FirmwareExited(exit) => self.firmware_exited(exit),
                Report::Over(stream, result) => self.job_over(stream, result, None),
                Report::Copied(stream, result, over_ns) => {
                    self.job_over(stream, result, Some(over_ns));
                }
            }
        }
        if worked && self.streams.iter().any(|state| state.core.is_closed()) {
            self.dismiss();
        }
        worked
    }

    fn stream(&mut self, stream: StreamId) -> Option<&mut StreamState> {
        self.streams.iter_mut().find(|state| state.core.id == stream)
    }

    fn job_over(
        &mut self,
        stream: StreamId,
        result: Result<(), FailureCause>,
        over_ns: Option<u64>,
    ) {
        let shared = Arc::clone(&self.shared);
        let Some(state) = self.streams.iter_mut().find(|state| state.core.id == stream) else {
            return;
        };
        if state.is_running() {
            self.cores = CoreUse::Free;
        }
        state.job_over(&shared, result, over_ns);
    }

    /// The firmware has returned: every stream is the host's.
    fn firmware_exited(&mut self, exit: FirmwareExit) {
        self.cores = CoreUse::Free;
        let shared = Arc::clone(&self.shared);
        shared.set_up(false);
        // From here on a submitter rings the service; earlier commands are seen by the looks that follow.
        for bell in shared.board.board().bells {
            board::fall_asleep(bell);
        }
        self.catch_up();
        let mut has_failed = false;
        let mut is_open = true;
        let mut slot = usize::MAX;
        for launch in exit.interrupted {
            // What comes after a launch that has not begun stays in the ring.
            is_open |= launch.slot != slot;
            slot = launch.slot;
            has_failed |= matches!(launch.outcome, LaunchOutcome::Failed(_));
            let state = self.streams.iter_mut().find(|state| state.core.slot == slot);
            if let Some(state) = state.filter(|_| is_open) {
                is_open = !matches!(launch.outcome, LaunchOutcome::NotBegun);
                state.launch_over(&shared, launch.outcome);
            }
        }
        if let Err(error) = exit.result
            && !has_failed
            && error.fault() != Some(Fault::RUN_CANCELLED)
        {
            self.fail_some_launch(&error);
        }
    }

    /// The run has failed and names no launch: one launch fails, so that the streams make progress.
    fn fail_some_launch(&mut self, error: &Arc<Error>) {
        let shared = Arc::clone(&self.shared);
        let is_launch = |state: &&mut StreamState| {
            matches!(state.look(&shared), HeadState::Ready(Wants::Launch))
        };
        if let Some(state) = self.streams.iter_mut().find(is_launch) {
            state.fail_head(&shared, FailureCause::Device(Arc::clone(error)));
        }
    }

    /// Takes over what the firmware has done; whether that is anything.
    fn catch_up(&mut self) -> bool {
        let shared = Arc::clone(&self.shared);
        self.streams.iter_mut().fold(false, |worked, state| state.catch_up(&shared) | worked)
    }

    /// Serves every stream, in turns; whether anything was done.
    fn serve(&mut self) -> bool {
        let TurnLists { mut order, mut for_cores } = std::mem::take(&mut self.turn);
        let streams = self.streams.iter().enumerate();
        order.extend(
            streams.map(|(index, of)| Candidate { index, priority: of.core.options.priority }),
        );
        in_turn(&mut order, usize::try_from(self.steps).unwrap_or(0));
        let mut worked = false;
        for candidate in &order {
            worked |= self.serve_stream(candidate.index, &mut for_cores);
        }
        worked |= self.serve_cores(&for_cores);
        order.clear();
        for_cores.clear();
        self.turn = TurnLists { order, for_cores };
        worked
    }

    /// Serves one stream until its next command is not for the service.
    fn serve_stream(&mut self, at: usize, for_cores: &mut Vec<(usize, Wants)>) -> bool {
        let shared = Arc::clone(&self.shared);
        for done in 0..IN_A_ROW {
            let state = &mut self.streams[at];
            state.catch_up(&shared);
            match state.look(&shared) {
                HeadState::Ready(Wants::Here) => state.do_here(&shared),
                HeadState::Ready(Wants::Worker) => {
                    self.start_job(at);
                    return true;
                }
                HeadState::Ready(Wants::Launch)
                | HeadState::Empty
                | HeadState::Blocked(WaitReason::Record(..) | WaitReason::Value)
                    if shared.is_up() =>
                {
                    state.give_back(&shared);
                    return done > 0;
                }
                HeadState::Ready(wants) => {
                    for_cores.push((at, wants));
                    return done > 0;
                }
                _ => return done > 0,
            }
        }
        true
    }

    fn start_job(&mut self, at: usize) {
        let now_ns = self.shared.clock.now_ns();
        if let Some(job) = self.streams[at].take_job(now_ns) {
            self.executors.start(job);
        }
    }

    /// Gives the cores something: a run, or the firmware comes up for the launches.
    fn serve_cores(&mut self, ready: &[(usize, Wants)]) -> bool {
        let run = ready.iter().find(|(_, wants)| *wants == Wants::Run).map(|(at, _)| *at);
        let has_launches = ready.iter().any(|(_, wants)| *wants == Wants::Launch);
        match (self.cores, run) {
            (CoreUse::Resident, Some(_)) => {
                self.shared.ask_to_leave();
                false
            }
            (CoreUse::Free, Some(at)) if !has_launches || self.is_turn_of_runs => {
                self.begin_run(at)
            }
            (CoreUse::Free, _) if has_launches => self.come_up(None),
            _ => false,
        }
    }

    fn begin_run(&mut self, at: usize) -> bool {
        self.is_turn_of_runs = false;
        let control = self.shared.new_control();
        let Some(job) = self.streams[at].take_run(control) else { return false };
        self.cores = CoreUse::Run;
        self.executors.start(job);
        true
    }

    /// Brings the firmware up; `false`: a thread wants the device first. With `chosen`, as a seed says: it returns as soon as
    /// nothing more can be done.
    fn come_up(&mut self, chosen: Option<SeededStart>) -> bool {
        let shared = Arc::clone(&self.shared);
        if !shared.may_come_up() {
            return false;
        }
        self.is_turn_of_runs = true;
        let joins = |at: usize| chosen.as_ref().is_none_or(|chosen| chosen.streams.contains(&at));
        for (at, state) in self.streams.iter().enumerate() {
            state.prepare(&shared, joins(at));
        }
        self.order(chosen.as_ref());
        shared.board.board().bells.iter().for_each(board::wake_up);
        shared.set_up(true);
        self.cores = CoreUse::Resident;
        self.executors.start(Job::Resident(shared.new_control()));
        true
    }

    /// Writes the orders.
    fn order(&self, chosen: Option<&SeededStart>) {
        let (orders, options) = (self.shared.board.board().orders, &self.shared.options);
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        // A device without shared memory sees new commands at the next launch.
        let lingers = chosen.is_none() && !self.shared.memory.gm().is_remote();
        let linger_ns = if lingers { nanoseconds(options.linger) } else { 0 };
        let limit = options.run.run_budget.or(self.shared.launch_limit);
        let limit_ns = limit.map_or(0, |limit| nanoseconds(limit / 2).max(1));
        let in_flight = u64::try_from(options.batch_launches).unwrap_or(u64::MAX);
        let words = [
            (&orders.base_ns, self.shared.clock.now_ns()),
            (&orders.linger_ns, linger_ns),
            (&orders.limit_ns, limit_ns),
            (&orders.seed, chosen.map_or(0, |chosen| chosen.seed)),
            (&orders.most, chosen.map_or(0, |chosen| chosen.most)),
            (&orders.in_flight, in_flight),
        ];
        // Relaxed: the launch of the firmware, which comes after these stores, publishes them.
        words.into_iter().for_each(|(word, value)| word.store(value, Ordering::Relaxed));
    }

    /// Serves one command of one stream, or a batch, as the seed says; whether there was one.
    fn serve_one(&mut self) -> bool {
        let shared = Arc::clone(&self.shared);
        let now_ns = shared.clock.now_ns();
        let looks = self.streams.iter_mut().map(|state| state.look_at(&shared, now_ns)).enumerate();
        let ready: Vec<(usize, Wants)> = looks
            .filter_map(|(at, look)| match look {
                HeadState::Ready(wants) => Some((at, wants)),
                _ => None,
            })
            .collect();
        let Some(seed) = self.seed.as_mut().filter(|_| !ready.is_empty()) else { return false };
        let chosen = seed.below(ready.len());
        // Which other streams the firmware gets, what it chooses, and how many commands it begins.
        let joins: Vec<bool> = self.streams.iter().map(|_| seed.below(2) == 1).collect();
        let most = 1 + seed.below(8) as u64;
        let of_firmware = 1 + seed.below(1 << 30) as u64;
        let (at, wants) = ready[chosen];
        match wants {
            Wants::Here => {
                self.streams[at].do_here(&shared);
                true
            }
            Wants::Worker => {
                self.start_job(at);
                true
            }
            Wants::Run => self.begin_run(at),
            Wants::Launch => {
                let joins = joins.into_iter().enumerate().filter(|(_, joins)| *joins);
                let streams = joins.map(|(index, _)| index).chain([at]).collect();
                self.come_up(Some(SeededStart { streams, most, seed: of_firmware }))
            }
        }
    }

    /// Ends the waits of streams that wait for each other; whether there were any.
    fn untie(&mut self) -> bool {
        let waiting: Vec<WaitingStream> =
            self.streams.iter().filter_map(|state| self.waiting(state)).collect();
        let Some(cycle) = wait_cycles::find(&waiting) else { return false };
        let shared = Arc::clone(&self.shared);
        if self.has_theirs(&cycle.streams) {
            // It returns when its commands are over; then the service looks for the cycle again.
            shared.ask_to_leave();
            return false;
        }
        for stream in &cycle.streams {
            let cause = FailureCause::Deadlock(cycle.text.clone());
            if let Some(state) = self.stream(*stream) {
                state.fail_head(&shared, cause);
            }
        }
        true
    }

    /// Whether the firmware has the head of one of these streams.
    fn has_theirs(&self, streams: &[StreamId]) -> bool {
        let mut named = self.streams.iter().filter(|state| streams.contains(&state.core.id));
        named.any(|state| state.is_theirs(&self.shared))
    }

    /// Nothing can be done before the next copy is over, or the time of a wait: whether it is a copy, to whose end the time goes on.
    fn pass_time(&mut self) -> bool {
        let Some(over_ns) = self.executors.next_copy_ns() else { return false };
        let is_first = self.next_deadline().is_none_or(|(deadline, _)| over_ns <= deadline);
        if is_first {
            self.shared.clock.advance_to(over_ns);
        }
        is_first
    }

    /// The wait whose time is over first, and its stream.
    fn next_deadline(&mut self) -> Option<(u64, usize)> {
        let shared = Arc::clone(&self.shared);
        let deadlines = self.streams.iter_mut().enumerate();
        deadlines.filter_map(|(at, state)| Some((state.deadline(&shared)?, at))).min()
    }

    /// Ends the wait that has lasted for longer than its stream allows; whether there was one. If the waiting threads step the service, nothing else
    /// can happen, so that the clock advances to the next deadline, unless that is further away than `idle`. While an outsider may act, the clock
    /// goes with real time.
    fn expire(&mut self, idle: Option<Duration>) -> bool {
        let shared = Arc::clone(&self.shared);
        let Some((deadline, at)) = self.next_deadline() else { return false };
        let now = shared.clock.now_ns();
        if self.seed.is_some() {
            let left = Duration::from_nanos(deadline.saturating_sub(now));
            let waited = self.idle.get_or_insert_with(Instant::now).elapsed();
            if waited < left && shared.driver.outside.may_act(&mut self.quiet) {
                return false;
            }
            // Commands that an outsider submitted just before it became unable to act come first.
            self.admit();
            if self.serve_one() {
                return true;
            }
            shared.clock.advance(idle.map_or(left, |idle| idle.min(left)));
            if idle.is_some_and(|idle| idle < left) {
                return false;
            }
        } else if now < deadline {
            return false;
        }
        let Some(state) = self.streams.get_mut(at) else { return false };
        if state.is_theirs(&shared) {
            shared.ask_to_leave();
            return false;
        }
        let budget = state.budget().unwrap_or_default();
        state.fail_head(&shared, FailureCause::TimedOut(budget));
        true
    }

    fn waiting(&self, state: &StreamState) -> Option<WaitingStream> {
        let block = state.block(&self.shared)?;
        let stream = state.core.id;
        let needs = match block {
            WaitReason::Record(event, record) => {
                let recorder = event.recorder(record)?;
                vec![(
                    recorder,
                    format!("record {record} of {}, which {recorder} has before it", event.id),
                )]
            }
            WaitReason::Barrier(barrier) => {
                let missing = self.streams.iter().filter(|other| {
                    barrier.streams().contains(&other.core.id) && !other.is_at(&barrier)
                });
                let need = |other: &StreamState| {
                    (other.core.id, format!("{} at a barrier", other.core.id))
                };
                missing.map(need).collect()
            }
            WaitReason::Value => return None,
        };
        Some(WaitingStream { stream, needs })
    }

    /// Frees memory whose commands are over.
    fn free_deferred(&self) {
        self.shared.deferred_frees.rotate(|| {
            // Streams too that the service has not taken in yet: their commands use memory.
            self.shared
                .streams()
                .into_iter()
                .map(|core| {
                    let last = core.ring().commands();
                    Box::new(move || core.completed() >= last) as Box<dyn Fn() -> bool + Send>
                })
                .collect()
        });
    }
}
