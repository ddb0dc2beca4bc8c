//! The loop of one OS thread of a pool: step its instances, run the cores that they rang, help others.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use pto_abi::graph::BuilderSet;
use pto_abi::log_ring::LogRing;
use pto_abi::sync::Sharing;
use pto_abi::trace::TraceOwner;
use pto_abi::{BuildMode, RuntimeVariant};
use pto_aicore_kernels::worker;
use pto_aicpu_fw::{Bell, BuilderHost, FanoutPolicy, Instance, LinesPlatform, Progressed, Tracer};

use super::PoolRun;
use super::offers::LONG_KERNEL_NS;
use crate::clock;
use crate::logging;
use crate::parker::{Backoff, Patience};

/// Turns after which an instance without busy cores is stepped although nobody shared work. 8: of 1, 4, 8
/// and 16 the smallest at which a chain of empty tasks no longer pays for its idle siblings (bench `graphs`).
const LOOK_AGAIN_AFTER: u32 = 8;
/// Publishes between two turns of the schedulers while a builder program runs on the only thread. 32: the
/// tasks of that many publishes stay in the first-level cache.
const PUBLISHES_A_TURN: u32 = 32;
/// Batches of rung cores between two measurements of how long kernels are.
const BATCHES_A_SAMPLE: u32 = 16;
/// How long an idle thread sleeps between two looks.
const NAP: Duration = Duration::from_micros(50);

/// What the platforms of one thread's instances tell the thread.
#[derive(Default)]
struct Rung {
    cores: [Cell<u64>; 2],
    work_shared: Cell<bool>,
}

#[derive(Clone)]
struct PoolBell(Rc<Rung>);

impl Bell for PoolBell {
    #[inline]
    fn ring(&mut self, worker: u32) {
        let word = &self.0.cores[worker as usize / 64 % 2];
        word.set(word.get() | 1 << (worker % 64));
    }

    #[inline]
    fn wake_siblings(&mut self) {
        self.0.work_shared.set(true);
    }

    fn relax(&mut self) {}

    #[inline]
    fn now_ns(&self) -> u64 {
        clock::now_ns()
    }
}

type PoolInstance<S, F, T> = Instance<'static, LinesPlatform<'static, S, PoolBell, T>, F>;

/// An instance, and how its last step went.
struct Seat<S: Sharing, F: FanoutPolicy, T: Tracer<'static>> {
    instance: PoolInstance<S, F, T>,
    log_ring: Option<LogRing<'static>>,
    idle_turns: u32,
    has_returned: bool,
}

/// The cores, as one thread of the pool runs them.
struct CoreRunner<'r, B> {
    run: &'r PoolRun<B>,
    me: usize,
    // Asked for once: which CPUs there are costs files to read.
    patience: Patience,
    batches: u32,
    kernels_are_long: bool,
}

pub(super) fn take_part<S, F, T, B>(run: &PoolRun<B>, me: usize)
where
    S: Sharing,
    F: FanoutPolicy,
    T: Tracer<'static>,
    B: BuilderSet,
{
    let rung = Rc::new(Rung::default());
    let mut seats: Vec<Seat<S, F, T>> = (me..run.launch.aicpu_instances as usize)
        .step_by(run.os_threads)
        .map(|index| seat(run, index, &rung))
        .collect();
    let patience = Patience::for_threads(run.os_threads);
    let mut runner = CoreRunner { run, me, patience, batches: 0, kernels_are_long: false };
    let mut backoff = Backoff::new(patience);
    while !run.is_over() {
        run.beats[me].turn();
        let mut worked = turn(&mut seats, &rung, &mut runner);
        if run.os_threads > 1 {
            worked |= runner.help(worked);
        }
        if worked {
            backoff.reset();
        } else if backoff.is_exhausted() {
            std::thread::park_timeout(NAP);
        }
    }
}

fn seat<S: Sharing, F: FanoutPolicy, T: Tracer<'static>, B>(
    run: &PoolRun<B>,
    index: usize,
    rung: &Rc<Rung>,
) -> Seat<S, F, T> {
    let launch = &run.launch;
    let number = u32::try_from(index).unwrap_or(u32::MAX);
    let tracer = T::over(launch.trace_lane(TraceOwner::Instance(number)));
    let platform = LinesPlatform::new(launch.arena.workers(), PoolBell(Rc::clone(rung)));
    let platform = platform.traced(tracer);
    Seat {
        instance: Instance::new(launch.clone(), number, platform),
        log_ring: launch.arena.log_ring(launch.log_region(), index),
        idle_turns: 0,
        has_returned: false,
    }
}

/// Steps every instance that may have something to do, and runs the cores that were rung.
fn turn<S: Sharing, F: FanoutPolicy, T: Tracer<'static>, B: BuilderSet>(
    seats: &mut [Seat<S, F, T>],
    rung: &Rung,
    runner: &mut CoreRunner<'_, B>,
) -> bool {
    let work_shared = rung.work_shared.take();
    let mut worked = false;
    if let Some((first, rest)) = seats.split_first_mut() {
        // Only instance 0 calls its host, from a builder program.
        let alone = runner.run.os_threads == 1;
        let host = StepOthers {
            seats: rest,
            rung,
            // Never, where other threads step schedulers as well.
            publishes_a_turn: if alone { PUBLISHES_A_TURN } else { u32::MAX },
            publishes: 0,
            backoff: Backoff::new(runner.patience),
            runner,
        };
        worked |= host_step(first, work_shared, host);
        for seat in rest {
            worked |= seat.step(runner.run, work_shared, ());
        }
    }
    worked | runner.run_rung(rung)
}

fn host_step<S: Sharing, F: FanoutPolicy, T: Tracer<'static>, B: BuilderSet>(
    seat: &mut Seat<S, F, T>,
    work_shared: bool,
    host: StepOthers<'_, '_, S, F, T, B>,
) -> bool {
    let run = host.runner.run;
    let concurrent = run.launch.build_mode == BuildMode::CONCURRENT;
    let streams = run.launch.variant == RuntimeVariant::TENSORMAP_AND_RINGBUFFER;
    if concurrent && (run.os_threads == 1 || streams) {
        seat.step(run, work_shared, host)
    } else {
        seat.step(run, work_shared, ())
    }
}

impl<S: Sharing, F: FanoutPolicy, T: Tracer<'static>> Seat<S, F, T> {
    #[inline]
    fn step<B: BuilderSet, H: BuilderHost>(
        &mut self,
        run: &PoolRun<B>,
        work_shared: bool,
        host: H,
    ) -> bool {
        if self.has_returned {
            return false;
        }
        let may_wait = !self.idle_turns.is_multiple_of(LOOK_AGAIN_AFTER) && !work_shared;
        if may_wait && self.instance.busy_count() == 0 {
            self.idle_turns += 1;
            return false;
        }
        logging::set_ring(self.log_ring);
        match self.instance.step(&*run.builders, host) {
            Progressed::Worked => {
                self.idle_turns = 0;
                true
            }
            Progressed::Idle => {
                self.idle_turns = self.idle_turns.wrapping_add(1);
                false
            }
            Progressed::Returned(_) => {
                self.has_returned = true;
                run.one_returned();
                true
            }
        }
    }
}

/// The machine under a builder program that runs on the only thread: now and then the others get a turn.
struct StepOthers<'s, 'r, S: Sharing, F: FanoutPolicy, T: Tracer<'static>, B> {
    seats: &'s mut [Seat<S, F, T>],
    rung: &'s Rung,
    runner: &'s mut CoreRunner<'r, B>,
    publishes_a_turn: u32,
    publishes: u32,
    backoff: Backoff,
}

impl<S: Sharing, F: FanoutPolicy, T: Tracer<'static>, B: BuilderSet> BuilderHost
    for StepOthers<'_, '_, S, F, T, B>
{
    #[inline]
    fn published(&mut self) {
        self.publishes += 1;
        if self.publishes >= self.publishes_a_turn {
            self.publishes = 0;
            self.step_others();
        }
    }

    fn relax(&mut self) {
        let mut worked = self.step_others();
        if self.runner.run.os_threads > 1 {
            worked |= self.runner.help(worked);
            if worked {
                self.backoff.reset();
            } else if self.backoff.is_exhausted() {
                std::thread::park_timeout(NAP);
            }
        }
    }
}

impl<S: Sharing, F: FanoutPolicy, T: Tracer<'static>, B: BuilderSet>
    StepOthers<'_, '_, S, F, T, B>
{
    #[inline(never)]
    fn step_others(&mut self) -> bool {
        self.runner.run.beats[self.runner.me].turn();
        let mut worked = false;
        for seat in &mut *self.seats {
            worked |= seat.step(self.runner.run, true, ());
        }
        worked | self.runner.run_rung(self.rung)
    }
}

impl<B> CoreRunner<'_, B> {
    /// Runs the cores that were rung.
    #[inline]
    fn run_rung(&mut self, rung: &Rung) -> bool {
        let cores = [rung.cores[0].take(), rung.cores[1].take()];
        cores != [0; 2] && self.run_cores(cores)
    }

    /// Runs what a busier thread has given away; asks for it when there was nothing else to do.
    fn help(&mut self, has_worked: bool) -> bool {
        let cores = self.run.offers.take(self.me);
        if cores != [0; 2] {
            return self.run_cores(cores);
        }
        if has_worked {
            self.run.offers.decline(self.me)
        } else {
            self.run.offers.ask(self.me)
        }
        false
    }

    #[inline]
    fn run_cores(&mut self, cores: [u64; 2]) -> bool {
        if self.run.os_threads > 1 {
            self.run_and_share(cores);
            return true;
        }
        for (first, mut bits) in [(0, cores[0]), (64, cores[1])] {
            while bits != 0 {
                self.step_core(first + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
        true
    }

    /// As long as kernels are long, hungry threads get some of the cores.
    fn run_and_share(&mut self, mut cores: [u64; 2]) {
        self.batches = self.batches.wrapping_add(1);
        let samples = self.batches % BATCHES_A_SAMPLE == 1;
        let start = if samples { clock::now_ns() } else { 0 };
        let count = u64::from(cores[0].count_ones() + cores[1].count_ones());
        for word in 0..2 {
            while cores[word] != 0 {
                if self.kernels_are_long {
                    cores = self.run.offers.give(self.me, cores);
                }
                let bit = cores[word].trailing_zeros();
                cores[word] &= cores[word].wrapping_sub(1);
                self.step_core(if word == 0 { bit } else { 64 + bit });
            }
        }
        if samples {
            self.kernels_are_long = (clock::now_ns() - start) / count.max(1) > LONG_KERNEL_NS;
        }
    }

    #[inline]
    fn step_core(&mut self, worker: u32) {
        let beat = &self.run.beats[self.me];
        beat.core(worker);
        if let Some(mut port) = self.run.cores.get(worker as usize) {
            worker::step(&mut port);
        }
        beat.no_core();
    }
}
