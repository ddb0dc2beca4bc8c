//! Streaming programs that keep tasks back, against exhaustive accounting: those that get stuck are told so, by proof and with
//! what they need, never by the watchdog; those that are not stuck are never told so; what a run says that it needs is what it
//! needs, and what `pto check` says.
//!
//! A seed that fails: `Failed` names it with all options.

mod oracle;
mod program;

use std::num::NonZeroUsize;

use pto_check::{Cores, Kind as Found, Memory, Options, RingReport, Rings};
use pto_host::abi::stream::StreamCapacities;
use pto_host::abi::{BuildMode, Fault, GmAddr};
use pto_host::virtual_time::VirtualOptions;
use pto_host::{
    Capacities, Device, DeviceOptions, Error, FaultReport, Hosting, RunOptions, RunReport, Work,
};

use oracle::{End, Sizes, Vain};
use program::{Kind, Programs, WORDS, orch_args, steps};

const CORES: Cores = Cores { aic: 2, aiv: 4 };
/// Rings in which nothing is ever stuck.
const AMPLE: Sizes = Sizes { window: 1024, words: 16_384 };

fn open(hosting: Hosting) -> Device {
    let Cores { aic, aiv } = CORES;
    let options = DeviceOptions { aic, aiv, gm_bytes: 1 << 26, hosting };
    let mut device = Device::open_sim(options, Programs {}).unwrap();
    device.register_library().unwrap();
    device
}

fn pool(os_threads: usize) -> Hosting {
    Hosting::Pool { os_threads: NonZeroUsize::new(os_threads).unwrap() }
}

/// Rings of these sizes; of all others, enough.
fn capacities(sizes: Sizes) -> Capacities {
    let window = u32::try_from(sizes.window).unwrap();
    let stream = StreamCapacities { window, map_entries: 8192, heap_rings: 2, heap_bytes: 1 << 12 };
    // Each task has a word besides those of the arguments.
    let arg_words = (sizes.words - sizes.window) as u64;
    Capacities { tasks: window, arg_words, edges: 1 << 14, stream, ..Capacities::default() }
}

fn run(device: &mut Device, seed: u64, kind: Kind, sizes: Sizes) -> Result<RunReport, Error> {
    run_as(device, BuildMode::CONCURRENT, (seed, kind), sizes)
}

fn run_as(
    device: &mut Device,
    build_mode: BuildMode,
    (seed, kind): (u64, Kind),
    sizes: Sizes,
) -> Result<RunReport, Error> {
    let tensors = device.zeroed::<u64>(WORDS).unwrap();
    let orch_args = orch_args(seed, kind, tensors.address());
    let work = Work::Stream { builder: "held", orch_args: &orch_args };
    let (capacities, aicpu_instances) = (capacities(sizes), 3);
    device
        .run(work, &RunOptions { capacities, build_mode, aicpu_instances, ..RunOptions::default() })
}

/// Whether a fault says what the oracle says.
fn is_told(report: &FaultReport, end: &End, sizes: Sizes) -> bool {
    let End::Stuck { vain, unpublished, circle, added } = end else { return false };
    let Some(epitaph) = &report.epitaph else { return false };
    let slot = epitaph.task.slot as usize;
    let is_one_of = |tasks: &[usize]| {
        let is_it = |task: &usize| task % sizes.window == slot && added - task <= sizes.window;
        tasks.iter().any(is_it)
    };
    if report.fault == Fault::STALL_DEADLOCK {
        return is_one_of(circle);
    }
    let is_right = match *vain {
        Vain::Ring(ring, detail) => {
            let faults = [Fault::STREAM_WINDOW_RING, Fault::STREAM_ARGS_RING];
            report.fault == faults[ring as usize]
                && (epitaph.ring, epitaph.detail) == (ring + 1, detail)
        }
        Vain::Task => report.fault == Fault::STREAM_WAIT_FOREVER,
    };
    // Where nothing is under way, what is added is too large.
    is_right && (is_one_of(unpublished) || unpublished.is_empty() && circle.is_empty())
}

/// Ends, by kind: done, window, words, a task, a circle.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally([u32; 5]);

fn compare(device: &mut Device, seeds: core::ops::Range<u64>) -> Tally {
    let mut tally = Tally::default();
    for seed in seeds {
        let kind = Kind::ALL[usize::try_from(seed % 3).unwrap()];
        let sizes = [(4, 44), (8, 30), (16, 200), (16, 60)][usize::try_from(seed / 3 % 4).unwrap()];
        let sizes = Sizes { window: sizes.0, words: sizes.1 };
        let steps = steps(seed, kind);
        let (end, _) = oracle::end(&steps, sizes);
        if end == End::Circle {
            // What is left then is the watchdog's.
            continue;
        }
        let failed = |found: &str| format!("seed {seed}, {kind:?}, {sizes:?}: {found}; {end:?}");
        let at = match (&end, run(device, seed, kind, sizes)) {
            (End::Done, Ok(report)) => {
                let clean = report.virtual_report.is_none_or(|seen| seen.violations.is_empty());
                assert!(clean, "{}", failed("a checker"));
                0
            }
            (End::Stuck { vain, .. }, Err(Error::Fault { fault, report })) => {
                assert!(is_told(&report, &end, sizes), "{}", failed(&report.to_string()));
                match vain {
                    _ if fault == Fault::STALL_DEADLOCK => 4,
                    Vain::Ring(0, _) => 1,
                    Vain::Ring(..) => 2,
                    Vain::Task => 3,
                }
            }
            (_, Ok(_)) => panic!("{}", failed("got through")),
            (_, Err(error)) => panic!("{}", failed(&error.to_string())),
        };
        tally.0[at] += 1;
    }
    tally
}

#[test]
fn pool_of_one() {
    let tally = compare(&mut open(pool(1)), 0..3000);
    assert!(tally.0.iter().all(|count| *count > 5), "not all ends were met: {tally:?}");
}

#[test]
fn pool_of_two() {
    compare(&mut open(pool(2)), 10_000..10_900);
}

#[test]
fn threads() {
    compare(&mut open(Hosting::Threads), 20_000..20_080);
}

#[test]
fn virtual_time() {
    for seed in 0..6 {
        let options = VirtualOptions { seed, ..VirtualOptions::default() };
        let first = 30_000 + 120 * seed;
        compare(&mut open(Hosting::Virtual(options)), first..first + 120);
    }
}

/// What the program reads is zero.
struct Zeros;

impl Memory for Zeros {
    fn read(&self, _: GmAddr, _: u64) -> Option<u64> {
        Some(0)
    }

    fn write(&self, _: GmAddr, _: u64, _: u64) -> Option<()> {
        Some(())
    }
}

/// What `pto check` says that a program needs: slots, and words.
fn checked(seed: u64, kind: Kind) -> Option<Sizes> {
    let words = orch_args(seed, kind, GmAddr(1 << 20));
    let program = pto_check::record((&Programs {}, "held"), &words, 256, (CORES, &Zeros)).unwrap();
    let rings = Rings::of(&capacities(AMPLE), BuildMode::CONCURRENT).unwrap();
    let report = pto_check::check(&program, &Options { rings, cores: CORES, kernels: None });
    let needs = |ring: &RingReport| usize::try_from(ring.needs).unwrap();
    if report.count(Found::Cycle) > 0 {
        return None;
    }
    let [window, words, ..] = report.rings.as_slice() else { panic!("{:?}", report.findings) };
    Some(Sizes { window: needs(window), words: needs(words) })
}

/// What a run says that it needed.
fn needed(report: &RunReport) -> Sizes {
    let of = |name: &str| {
        let rings = &report.stream.as_ref().unwrap().rings;
        let ring = rings.iter().find(|ring| ring.name == name).unwrap();
        usize::try_from(ring.needed).unwrap()
    };
    Sizes { window: of("window"), words: of("arguments") }
}

#[test]
fn what_a_run_says_that_it_needs_is_what_it_needs() {
    let mut device = open(pool(1));
    let (mut compared, mut estimated) = (0, 0);
    for seed in 0..600 {
        let kind = [Kind::Forward, Kind::Backward][usize::try_from(seed % 2).unwrap()];
        let steps = steps(seed, kind);
        let (end, least) = oracle::end(&steps, AMPLE);
        let least = Sizes { window: least.window.next_power_of_two(), ..least };
        if end != End::Done {
            continue;
        }
        let failed = format!("seed {seed}, {kind:?}");
        let report =
            run(&mut device, seed, kind, AMPLE).unwrap_or_else(|e| panic!("{failed}: {e}"));
        let needed = needed(&report);
        assert_eq!(checked(seed, kind), Some(least), "{failed}: pto check");
        if kind == Kind::Forward {
            assert_eq!(needed, least, "{failed}: the run");
        } else {
            // Who waits for a later task is counted until all that is kept back is published.
            let is_enough = needed.window >= least.window && needed.words >= least.words;
            assert!(is_enough, "{failed}: {needed:?}, {least:?}");
            estimated += u32::from(needed != least);
        }
        let mut gets_through = |sizes: Sizes| {
            sizes.words >= sizes.window && run(&mut device, seed, kind, sizes).is_ok()
        };
        let words = needed.words.max(needed.window);
        assert!(gets_through(Sizes { words, ..needed }), "{failed}: {needed:?}");
        if least.words > least.window {
            let less = Sizes { words: least.words - 1, ..least };
            assert!(!gets_through(less), "{failed}: {less:?}");
        }
        if least.window > 1 {
            let less = Sizes { window: least.window / 2, words: words.max(least.window) };
            assert!(!gets_through(less), "{failed}: {less:?}");
        }
        compared += 1;
    }
    assert!(
        compared > 250 && estimated < compared / 4,
        "{compared} compared, {estimated} estimated"
    );
}

/// Where the schedulers wait for the program, it needs room for all of it.
#[test]
fn what_a_sequential_run_says_that_it_needs_is_what_it_needs() {
    let mut device = open(pool(1));
    for seed in 0..60 {
        let which = (seed, Kind::Forward);
        let mut run = |sizes| run_as(&mut device, BuildMode::SEQUENTIAL, which, sizes);
        let needed = needed(&run(AMPLE).unwrap_or_else(|error| panic!("seed {seed}: {error}")));
        assert!(run(needed).is_ok(), "seed {seed}: {needed:?}");
        let less = [
            Sizes { window: needed.window / 2, ..needed },
            Sizes { words: needed.words - 1, ..needed },
        ];
        for less in less {
            let is_size = less.window > 0 && less.words >= less.window;
            assert!(!is_size || run(less).is_err(), "seed {seed}: {less:?}");
        }
    }
}
