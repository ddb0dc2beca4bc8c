//! The service of a session: takes ready commands out of the rings, has them done, and tells the streams. Every turn is bounded.
//!
//! ```text
//! step: admit    streams that are new, or over
//!       collect  what has become of jobs
//!       serve    ready commands: at once, or as jobs for workers; launches of all streams as one batch for the cores
//!       untie    streams that wait for each other
//! ```
//! What is chosen is a pure function (`choice.rs`): in turns where a thread steps the service, by a seed where those who wait do.

use std::sync::Arc;

use super::choice::{Candidate, Seeded, in_turn, share};
use super::circles::{self, Waiting};
use super::error::Cause;
use super::hands::Hands;
use super::ids::StreamId;
use super::lane::{Block, Lane, Look, Wants};
use super::shared::Shared;
use super::work::{Job, Launch, Outcome, Report};

/// Commands that the service does for one stream before it looks at the next one.
const IN_A_ROW: usize = 64;
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
    /// The cores have a batch or a run.
    is_running: bool,
}

impl Service {
    /// Without a seed it serves streams in turns.
    pub(super) fn new(shared: Arc<Shared>, hands: Hands, seed: Option<u64>) -> Self {
        let version = shared.version().wrapping_sub(1);
        let seed = seed.map(Seeded::new);
        Self { shared, lanes: Vec::new(), hands, seed, version, steps: 0, is_running: false }
    }

    /// One turn; whether anything was done.
    pub(super) fn step(&mut self) -> bool {
        self.steps += 1;
        self.admit();
        let mut worked = self.collect();
        worked |= if self.seed.is_some() { self.serve_one() } else { self.serve() };
        if worked && self.steps.is_multiple_of(STEPS_A_HOLD) {
            self.turn_over();
        }
        worked || self.untie()
    }

    /// Whether a stream waits for a word of GM, which nobody tells the service about.
    pub(super) fn has_to_poll(&self) -> bool {
        let is_polling =
            |lane: &Lane| matches!(lane.look(&self.shared), Look::Blocked(Block::Value));
        self.lanes.iter().any(is_polling)
    }

    /// Whether nothing is being done.
    pub(super) fn is_quiet(&self) -> bool {
        !self.is_running && self.lanes.iter().all(|lane| !lane.is_busy())
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

    fn dismiss(&mut self) {
        let over: Vec<_> =
            self.lanes.iter().filter(|lane| lane.is_over()).map(|lane| lane.core.id).collect();
        for stream in over {
            self.lanes.retain(|lane| lane.core.id != stream);
            self.shared.retire(stream);
        }
    }

    /// Takes reports; whether there were any.
    fn collect(&mut self) -> bool {
        let mut worked = false;
        while let Some(report) = self.hands.report() {
            worked = true;
            match report {
                Report::Batch(outcomes) => self.batch_over(outcomes),
                Report::Over(stream, result) => self.job_over(stream, result),
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

    fn job_over(&mut self, stream: StreamId, result: Result<(), Cause>) {
        let shared = Arc::clone(&self.shared);
        let Some(lane) = self.lanes.iter_mut().find(|lane| lane.core.id == stream) else { return };
        if lane.is_running() {
            self.is_running = false;
        }
        lane.job_over(&shared, result);
    }

    fn batch_over(&mut self, outcomes: Vec<(StreamId, Outcome)>) {
        self.is_running = false;
        let shared = Arc::clone(&self.shared);
        if outcomes.iter().all(|(_, outcome)| matches!(outcome, Outcome::Done)) {
            let batch = self.lanes.iter_mut().filter(|lane| lane.is_in_batch());
            batch.for_each(|lane| lane.batch_done(&shared));
            return;
        }
        for (stream, outcome) in outcomes {
            if let Some(lane) = self.lane(stream) {
                lane.launch_over(&shared, outcome);
            }
        }
    }

    /// Serves every stream, in turns; whether anything was done.
    fn serve(&mut self) -> bool {
        let candidates = self.lanes.iter().enumerate();
        let candidates =
            candidates.map(|(lane, of)| Candidate { lane, priority: of.core.options.priority });
        let turn = usize::try_from(self.steps).unwrap_or(0);
        let order = in_turn(candidates.collect(), turn);
        let (mut worked, mut for_cores) = (false, Vec::new());
        for candidate in order {
            worked |= self.serve_lane(candidate.lane, &mut for_cores);
        }
        worked | self.serve_cores(&for_cores)
    }

    /// Serves one stream until its next command is not for the service.
    fn serve_lane(&mut self, at: usize, for_cores: &mut Vec<(usize, Wants)>) -> bool {
        let shared = Arc::clone(&self.shared);
        for done in 0..IN_A_ROW {
            match self.lanes[at].look(&shared) {
                Look::Ready(Wants::Here) => {
                    self.lanes[at].do_here(&shared);
                }
                Look::Ready(Wants::Worker) => {
                    self.give_job(at);
                    return true;
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
        if let Some(job) = self.lanes[at].take_job() {
            self.hands.give(job);
        }
    }

    /// Gives the cores something: the first of these decides whether a run or a batch of launches.
    fn serve_cores(&mut self, ready: &[(usize, Wants)]) -> bool {
        let Some(&(first, wants)) = ready.first().filter(|_| !self.is_running) else {
            return false;
        };
        let control = self.shared.new_control();
        let job = match wants {
            Wants::Run => self.lanes[first].take_run(control),
            _ => {
                let lanes = ready.iter().filter(|(_, wants)| *wants == Wants::Launch);
                let lanes: Vec<usize> = lanes.map(|(at, _)| *at).collect();
                let most = share(self.shared.options.batch_launches, lanes.len());
                Some(Job::Batch(self.batch_of(&lanes, most), control))
            }
        };
        let Some(job) = job else { return false };
        self.is_running = true;
        self.hands.give(job);
        true
    }

    fn batch_of(&mut self, lanes: &[usize], most: usize) -> Vec<Launch> {
        let mut batch = Vec::new();
        for &at in lanes.iter().take(self.shared.options.batch_launches) {
            self.lanes[at].take_launches(most, &mut batch);
        }
        batch
    }

    /// Serves one command of one stream, or a batch, as the seed says; whether there was one.
    fn serve_one(&mut self) -> bool {
        let shared = Arc::clone(&self.shared);
        let looks = self.lanes.iter().map(|lane| lane.look(&shared)).enumerate();
        let ready: Vec<(usize, Wants)> = looks
            .filter_map(|(at, look)| match look {
                Look::Ready(wants) => Some((at, wants)),
                _ => None,
            })
            .collect();
        let Some(seed) = self.seed.as_mut().filter(|_| !ready.is_empty()) else { return false };
        let chosen = seed.below(ready.len());
        // Launches of other streams that are in the same batch, and how many of each.
        let joins: Vec<bool> = ready.iter().map(|_| seed.below(2) == 1).collect();
        let most = 1 + seed.below(4);
        let (at, wants) = ready[chosen];
        match wants {
            Wants::Here => {
                self.lanes[at].do_here(&shared);
            }
            Wants::Worker => self.give_job(at),
            Wants::Run => return self.serve_cores(&[(at, wants)]),
            Wants::Launch => {
                let others = ready
                    .iter()
                    .zip(joins)
                    .filter(|((_, wants), joins)| *wants == Wants::Launch && *joins);
                let mut lanes = vec![at];
                lanes.extend(others.map(|((other, _), _)| *other).filter(|other| *other != at));
                let control = self.shared.new_control();
                let job = Job::Batch(self.batch_of(&lanes, most), control);
                self.is_running = true;
                self.hands.give(job);
            }
        }
        true
    }

    /// Ends the waits of streams that wait for each other; whether there were any.
    fn untie(&mut self) -> bool {
        let waiting: Vec<Waiting> =
            self.lanes.iter().filter_map(|lane| self.waiting(lane)).collect();
        let Some(circle) = circles::find(&waiting) else { return false };
        let shared = Arc::clone(&self.shared);
        for stream in &circle.streams {
            let cause = Cause::Deadlock(circle.text.clone());
            if let Some(lane) = self.lane(*stream) {
                lane.fail_head(&shared, cause);
            }
        }
        true
    }

    fn waiting(&self, lane: &Lane) -> Option<Waiting> {
        let Look::Blocked(block) = lane.look(&self.shared) else { return None };
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
            let open = self.lanes.iter().map(|lane| Arc::clone(&lane.core));
            open.map(|core| {
                let last = core.ring().commands();
                Box::new(move || core.told.lock().completed >= last) as Box<dyn Fn() -> bool + Send>
            })
            .collect()
        });
    }
}
