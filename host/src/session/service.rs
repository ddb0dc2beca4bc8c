//! The service of a session: takes ready commands out of the rings, has them done, and tells the streams. Every turn is bounded.
//!
//! ```text
//! step: admit    streams that are new, or over
//!       collect  what has become of jobs
//!       serve    ready commands: at once, or as jobs for workers; for launches the firmware comes up, and reads the rings itself
//!       untie    streams that wait for each other
//! ```
//! What is chosen is a pure function (`choice.rs`): in turns where a thread steps the service, by a seed where those who wait do.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pto_abi::Fault;
use pto_abi::session::board;
use pto_abi::sync::Ordering;

use super::choice::{Candidate, Seeded, in_turn};
use super::circles::{self, Waiting};
use super::error::Cause;
use super::hands::Hands;
use super::ids::StreamId;
use super::lane::{Block, Lane, Look, Wants};
use super::others::Quiet;
use super::shared::Shared;
use super::work::{Ended, Job, Outcome, Report};
use crate::error::Error;

/// Commands that the service does for one stream before it looks at the next one.
const IN_A_ROW: usize = 64;
/// Streams that are closed, and stay until the firmware returns.
const MOST_CLOSED: usize = 256;
/// Steps between two looks for memory that can be let go of.
const STEPS_A_HOLD: u64 = 256;

/// The service.
pub(super) struct Service {
    shared: Arc<Shared>,
    lanes: Vec<Lane>,
    hands: Hands,
    seed: Option<Seeded>,
    version: u64,
    steps: u64,
    cores: Cores,
    /// Lists that a turn fills: kept, so that no turn allocates.
    turn: Turn,
    /// The firmware was up last: a run that is ready goes first.
    is_turn_of_runs: bool,
    /// Nothing can be done, and a wait has a time limit: since when, and since when nobody else can act either.
    idle: Option<Instant>,
    quiet: Quiet,
}

/// The lists of a turn.
#[derive(Default)]
struct Turn {
    /// The order of the streams.
    order: Vec<Candidate>,
    /// The streams that have something for the cores.
    for_cores: Vec<(usize, Wants)>,
}

/// Who has the cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cores {
    Free,
    /// A run, alone.
    Run,
    /// The resident firmware.
    Resident,
}

/// How the firmware comes up in a session that a seed decides.
struct Chosen {
    /// The streams that it gets.
    lanes: Vec<usize>,
    /// How many commands it begins.
    most: u64,
    seed: u64,
}

/// What the service expects when it has nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// The firmware has commands, and tells nobody.
    OfFirmware,
    /// A stream waits for a word of GM, which nobody tells the service about.
    OfValue,
    /// Whoever has news rings.
    ByBell,
}

impl Service {
    /// Without a seed it serves streams in turns.
    pub(super) fn new(shared: Arc<Shared>, hands: Hands, seed: Option<u64>) -> Self {
        let version = shared.version().wrapping_sub(1);
        let seed = seed.map(Seeded::new);
        Self {
            shared,
            lanes: Vec::new(),
            hands,
            seed,
            version,
            steps: 0,
            cores: Cores::Free,
            turn: Turn::default(),
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
        worked |= self.cores == Cores::Resident && self.catch_up();
        worked |= if self.seed.is_some() { self.serve_one() } else { self.serve() };
        let is_wanted = self.shared.is_wanted();
        if is_wanted || worked && self.steps.is_multiple_of(STEPS_A_HOLD) {
            self.turn_over();
        }
        if is_wanted {
            self.dismiss();
            self.shared.tell_reclaimed();
        }
        let worked = worked || self.pass_time() || self.untie() || self.expire(idle);
        if worked {
            (self.idle, self.quiet) = (None, Quiet::default());
        }
        worked
    }

    /// Where news come from, when there are none just now.
    pub(super) fn expects(&self) -> News {
        if self.cores == Cores::Resident && self.shared.holds.in_flight() > 0 {
            return News::OfFirmware;
        }
        let is_timed = |lane: &Lane| lane.core.has_budgets() && lane.block(&self.shared).is_some();
        let looks = self.waits_for_value() || self.lanes.iter().any(is_timed);
        if looks { News::OfValue } else { News::ByBell }
    }

    fn waits_for_value(&self) -> bool {
        let is_polling =
            |lane: &Lane| matches!(lane.look(&self.shared), Look::Blocked(Block::Value));
        self.lanes.iter().any(is_polling)
    }

    /// Whether its session has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.shared.has_ended()
    }

    /// Whether nothing is being done, and everything is over that was submitted.
    pub(super) fn is_done(&self) -> bool {
        let is_quiet = self.cores == Cores::Free && self.lanes.iter().all(|lane| !lane.is_busy());
        is_quiet && self.shared.holds.in_flight() == 0
    }

    /// Skips what was submitted at the very end of the session, too.
    fn abort_rest(&self) {
        let has_rest = |lane: &&Lane| lane.core.skip_to() < lane.core.commands();
        self.lanes.iter().filter(has_rest).for_each(|lane| {
            lane.core.abort();
        });
    }

    /// Which streams wait for what.
    pub(super) fn state(&self) -> String {
        let open = self.lanes.iter().filter(|lane| !lane.core.is_idle());
        let told: Vec<_> = open.map(|lane| self.describe(lane)).collect();
        if told.is_empty() { "no stream has commands".to_owned() } else { told.join("; ") }
    }

    fn describe(&self, lane: &Lane) -> String {
        let stream = lane.core.describe();
        match lane.look(&self.shared) {
            Look::Blocked(Block::Record(event, record)) => match event.recorder(record) {
                Some(other) => {
                    format!("{stream}, which waits for {}, record {record}, of {other}", event.id)
                }
                None => format!(
                    "{stream}, which waits for {}, record {record}, which nobody has submitted",
                    event.id
                ),
            },
            Look::Blocked(Block::Value) => format!("{stream}, which waits for a value"),
            Look::Blocked(Block::Barrier(_)) => format!("{stream}, which waits for other streams"),
            _ => stream,
        }
    }

    /// Takes new streams in, and lets go of those that are over.
    fn admit(&mut self) {
        let version = self.shared.version();
        if version == self.version {
            return;
        }
        self.version = version;
        let resets = self.shared.resets();
        for core in self.shared.streams() {
            if !self.lanes.iter().any(|lane| lane.core.id == core.id) {
                self.lanes.push(Lane::new(core, resets));
            }
        }
        for lane in &mut self.lanes {
            lane.see_resets(resets);
        }
        self.dismiss();
    }

    /// Lets go of streams that are over. While the firmware is up, it may still look at one: it is asked to leave where they are many, or somebody waits
    /// for what they have.
    fn dismiss(&mut self) {
        if self.cores == Cores::Resident {
            let closed = self.lanes.iter().filter(|lane| lane.core.is_closed()).count();
            let is_wanted = || self.shared.is_wanted() && self.lanes.iter().any(Lane::is_over);
            if closed > MOST_CLOSED || is_wanted() {
                self.shared.ask_to_leave();
            }
            return;
        }
        for lane in self.lanes.extract_if(.., |lane| lane.is_over()) {
            let stream = lane.core.id;
            // A reset that waits for this stream may have come since `admit` looked for one, and no later look finds the stream.
            lane.core.told.change(|told| told.stopped = None);
            // The last one who has the stream gives its memory back.
            drop(lane);
            self.shared.retire(stream);
        }
    }

    /// Takes reports; whether there were any.
    fn collect(&mut self) -> bool {
        let mut worked = false;
        while let Some(report) = self.hands.report(self.shared.clock.now_ns()) {
            worked = true;
            match report {
                Report::Ended(ended) => self.ended(ended),
                Report::Over(stream, result) => self.job_over(stream, result, None),
                Report::Copied(stream, result, over_ns) => {
                    self.job_over(stream, result, Some(over_ns));
                }
            }
        }
        if worked && self.lanes.iter().any(|lane| lane.core.is_closed()) {
            self.dismiss();
        }
        worked
    }

    fn lane(&mut self, stream: StreamId) -> Option<&mut Lane> {
        self.lanes.iter_mut().find(|lane| lane.core.id == stream)
    }

    fn job_over(&mut self, stream: StreamId, result: Result<(), Cause>, over_ns: Option<u64>) {
        let shared = Arc::clone(&self.shared);
        let Some(lane) = self.lanes.iter_mut().find(|lane| lane.core.id == stream) else { return };
        if lane.is_running() {
            self.cores = Cores::Free;
        }
        lane.job_over(&shared, result, over_ns);
    }

    /// The firmware has returned: every stream is the host's.
    fn ended(&mut self, ended: Ended) {
        self.cores = Cores::Free;
        let shared = Arc::clone(&self.shared);
        shared.set_up(false);
        // From here on a submitter rings the service; what was submitted before is seen by the looks that follow.
        for bell in shared.board.board().bells {
            board::fall_asleep(bell);
        }
        self.catch_up();
        let mut has_failed = false;
        let mut is_open = true;
        let mut stream = usize::MAX;
        for left in ended.left {
            // Behind a launch that has not begun, everything stays where it is.
            is_open |= left.stream != stream;
            stream = left.stream;
            has_failed |= matches!(left.outcome, Outcome::Failed(_));
            let lane = self.lanes.iter_mut().find(|lane| lane.core.place == stream);
            if let Some(lane) = lane.filter(|_| is_open) {
                is_open = !matches!(left.outcome, Outcome::NotBegun);
                lane.launch_over(&shared, left.outcome);
            }
        }
        if let Err(error) = ended.result
            && !has_failed
            && error.fault() != Some(Fault::RUN_CANCELLED)
        {
            self.fail_some_launch(&error);
        }
    }

    /// The run has failed and names no launch: one fails, so that the streams get on.
    fn fail_some_launch(&mut self, error: &Arc<Error>) {
        let shared = Arc::clone(&self.shared);
        let is_launch = |lane: &&mut Lane| matches!(lane.look(&shared), Look::Ready(Wants::Launch));
        if let Some(lane) = self.lanes.iter_mut().find(is_launch) {
            lane.fail_head(&shared, Cause::Device(Arc::clone(error)));
        }
    }

    /// Takes over what the firmware has done; whether that is anything.
    fn catch_up(&mut self) -> bool {
        let shared = Arc::clone(&self.shared);
        self.lanes.iter_mut().fold(false, |worked, lane| lane.catch_up(&shared) | worked)
    }

    /// Serves every stream, in turns; whether anything was done.
    fn serve(&mut self) -> bool {
        let Turn { mut order, mut for_cores } = std::mem::take(&mut self.turn);
        let lanes = self.lanes.iter().enumerate();
        order
            .extend(lanes.map(|(lane, of)| Candidate { lane, priority: of.core.options.priority }));
        in_turn(&mut order, usize::try_from(self.steps).unwrap_or(0));
        let mut worked = false;
        for candidate in &order {
            worked |= self.serve_lane(candidate.lane, &mut for_cores);
        }
        worked |= self.serve_cores(&for_cores);
        order.clear();
        for_cores.clear();
        self.turn = Turn { order, for_cores };
        worked
    }

    /// Serves one stream until its next command is not for the service.
    fn serve_lane(&mut self, at: usize, for_cores: &mut Vec<(usize, Wants)>) -> bool {
        let shared = Arc::clone(&self.shared);
        for done in 0..IN_A_ROW {
            let lane = &mut self.lanes[at];
            lane.catch_up(&shared);
            match lane.look(&shared) {
                Look::Ready(Wants::Here) => lane.do_here(&shared),
                Look::Ready(Wants::Worker) => {
                    self.give_job(at);
                    return true;
                }
                Look::Ready(Wants::Launch)
                | Look::Nothing
                | Look::Blocked(Block::Record(..) | Block::Value)
                    if shared.is_up() =>
                {
                    lane.give_back(&shared);
                    return done > 0;
                }
                Look::Ready(wants) => {
                    for_cores.push((at, wants));
                    return done > 0;
                }
                _ => return done > 0,
            }
        }
        true
    }

    fn give_job(&mut self, at: usize) {
        let now_ns = self.shared.clock.now_ns();
        if let Some(job) = self.lanes[at].take_job(now_ns) {
            self.hands.give(job);
        }
    }

    /// Gives the cores something: a run, or the firmware comes up for the launches.
    fn serve_cores(&mut self, ready: &[(usize, Wants)]) -> bool {
        let run = ready.iter().find(|(_, wants)| *wants == Wants::Run).map(|(at, _)| *at);
        let has_launches = ready.iter().any(|(_, wants)| *wants == Wants::Launch);
        match (self.cores, run) {
            (Cores::Resident, Some(_)) => {
                self.shared.ask_to_leave();
                false
            }
            (Cores::Free, Some(at)) if !has_launches || self.is_turn_of_runs => self.begin_run(at),
            (Cores::Free, _) if has_launches => self.come_up(None),
            _ => false,
        }
    }

    fn begin_run(&mut self, at: usize) -> bool {
        self.is_turn_of_runs = false;
        let control = self.shared.new_control();
        let Some(job) = self.lanes[at].take_run(control) else { return false };
        self.cores = Cores::Run;
        self.hands.give(job);
        true
    }

    /// Brings the firmware up; `false`: somebody wants the device first. With `chosen`, as a seed says: it returns as soon as
    /// nothing more can be done.
    fn come_up(&mut self, chosen: Option<Chosen>) -> bool {
        let shared = Arc::clone(&self.shared);
        if !shared.may_come_up() {
            return false;
        }
        self.is_turn_of_runs = true;
        let joins = |at: usize| chosen.as_ref().is_none_or(|chosen| chosen.lanes.contains(&at));
        for (at, lane) in self.lanes.iter().enumerate() {
            lane.prepare(&shared, joins(at));
        }
        self.order(chosen.as_ref());
        shared.board.board().bells.iter().for_each(board::wake_up);
        shared.set_up(true);
        self.cores = Cores::Resident;
        self.hands.give(Job::Resident(shared.new_control()));
        true
    }

    /// Writes the orders.
    fn order(&self, chosen: Option<&Chosen>) {
        let (orders, options) = (self.shared.board.board().orders, &self.shared.options);
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        // What is submitted to a device whose memory only copies reach is seen by the next launch.
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
        // Relaxed: the launch of the firmware is behind these stores.
        words.into_iter().for_each(|(word, value)| word.store(value, Ordering::Relaxed));
    }

    /// Serves one command of one stream, or a batch, as the seed says; whether there was one.
    fn serve_one(&mut self) -> bool {
        let shared = Arc::clone(&self.shared);
        let now_ns = shared.clock.now_ns();
        let looks = self.lanes.iter_mut().map(|lane| lane.look_at(&shared, now_ns)).enumerate();
        let ready: Vec<(usize, Wants)> = looks
            .filter_map(|(at, look)| match look {
                Look::Ready(wants) => Some((at, wants)),
                _ => None,
            })
            .collect();
        let Some(seed) = self.seed.as_mut().filter(|_| !ready.is_empty()) else { return false };
        let chosen = seed.below(ready.len());
        // Which other streams the firmware gets, what it chooses, and how many commands it begins.
        let joins: Vec<bool> = self.lanes.iter().map(|_| seed.below(2) == 1).collect();
        let most = 1 + seed.below(8) as u64;
        let of_firmware = 1 + seed.below(1 << 30) as u64;
        let (at, wants) = ready[chosen];
        match wants {
            Wants::Here => {
                self.lanes[at].do_here(&shared);
                true
            }
            Wants::Worker => {
                self.give_job(at);
                true
            }
            Wants::Run => self.begin_run(at),
            Wants::Launch => {
                let joins = joins.into_iter().enumerate().filter(|(_, joins)| *joins);
                let lanes = joins.map(|(lane, _)| lane).chain([at]).collect();
                self.come_up(Some(Chosen { lanes, most, seed: of_firmware }))
            }
        }
    }

    /// Ends the waits of streams that wait for each other; whether there were any.
    fn untie(&mut self) -> bool {
        let waiting: Vec<Waiting> =
            self.lanes.iter().filter_map(|lane| self.waiting(lane)).collect();
        let Some(circle) = circles::find(&waiting) else { return false };
        let shared = Arc::clone(&self.shared);
        if self.has_theirs(&circle.streams) {
            // It returns when what has begun is over; then the circle is looked for again.
            shared.ask_to_leave();
            return false;
        }
        for stream in &circle.streams {
            let cause = Cause::Deadlock(circle.text.clone());
            if let Some(lane) = self.lane(*stream) {
                lane.fail_head(&shared, cause);
            }
        }
        true
    }

    /// Whether the firmware has the head of one of these streams.
    fn has_theirs(&self, streams: &[StreamId]) -> bool {
        let mut named = self.lanes.iter().filter(|lane| streams.contains(&lane.core.id));
        named.any(|lane| lane.is_theirs(&self.shared))
    }

    /// Nothing can be done before the next copy is over, or the time of a wait: whether it is a copy, to whose end the time goes on.
    fn pass_time(&mut self) -> bool {
        let Some(over_ns) = self.hands.next_copy_ns() else { return false };
        let is_first = self.next_deadline().is_none_or(|(deadline, _)| over_ns <= deadline);
        if is_first {
            self.shared.clock.advance_to(over_ns);
        }
        is_first
    }

    /// The wait whose time is over first, and its stream.
    fn next_deadline(&mut self) -> Option<(u64, usize)> {
        let shared = Arc::clone(&self.shared);
        let deadlines = self.lanes.iter_mut().enumerate();
        deadlines.filter_map(|(at, lane)| Some((lane.deadline(&shared)?, at))).min()
    }

    /// Ends the wait that has lasted for longer than its stream allows; whether there was one. Where those who wait make the turns, nothing else can
    /// happen any more, so that the time of the next one has come, unless it is further away than `idle`. While somebody outside of the session may
    /// act, time passes as it does for them.
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
            // What somebody asked for just before he could not act any more comes first.
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
        let Some(lane) = self.lanes.get_mut(at) else { return false };
        if lane.is_theirs(&shared) {
            shared.ask_to_leave();
            return false;
        }
        let budget = lane.budget().unwrap_or_default();
        lane.fail_head(&shared, Cause::TimedOut(budget));
        true
    }

    fn waiting(&self, lane: &Lane) -> Option<Waiting> {
        let block = lane.block(&self.shared)?;
        let stream = lane.core.id;
        let needs = match block {
            Block::Record(event, record) => {
                let recorder = event.recorder(record)?;
                vec![(
                    recorder,
                    format!("record {record} of {}, which {recorder} has before it", event.id),
                )]
            }
            Block::Barrier(barrier) => {
                let missing = self.lanes.iter().filter(|other| {
                    barrier.streams().contains(&other.core.id) && !other.is_at(&barrier)
                });
                let need =
                    |other: &Lane| (other.core.id, format!("{} at a barrier", other.core.id));
                missing.map(need).collect()
            }
            Block::Value => return None,
        };
        Some(Waiting { stream, needs })
    }

    /// Lets go of memory that was freed.
    fn turn_over(&self) {
        self.shared.holds.turn_over(|| {
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
