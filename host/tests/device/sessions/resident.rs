//! The firmware that stays up: tasks of several streams share the cores, and an idle session has no firmware up.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pto_host::abi::{CoreKind, FuncId};
use pto_host::graph::{GraphBuilder as _, NoBuilders, TaskSpec};
use pto_host::session::SessionOptions;
use pto_host::{Device, DeviceOptions, HostGraph, Hosting, Kernel, RunOptions, Session, func};

use super::support::{LONG, device, on_each, options, pool, session, stepped, virtual_time};

/// Set when the kernel `held` may end.
static MAY_END: AtomicBool = AtomicBool::new(false);

extern "C" fn held(_: *const u64) {
    let start = Instant::now();
    while !MAY_END.load(Ordering::Relaxed) && start.elapsed() < LONG {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// One instance feeds, and each of the others needs a cluster.
#[test]
fn a_session_has_as_many_schedulers_as_clusters() {
    for hosting in [pool(), Hosting::Threads, virtual_time(1)] {
        for ([aic, aiv], clusters) in [([1, 0], 1), ([0, 1], 1), ([1, 2], 1), ([2, 2], 2)] {
            let open = |aicpu_instances| {
                let options = DeviceOptions { aic, aiv, gm_bytes: 64 << 20, hosting };
                let mut device = Device::open_sim(options, NoBuilders).unwrap();
                device.register_library().unwrap();
                let run = RunOptions { aicpu_instances, ..RunOptions::default() };
                device.session(SessionOptions { run, ..SessionOptions::default() })
            };
            let kernel = if aiv > 0 { func::EMPTY_AIV } else { func::EMPTY_AIC };
            for aicpu_instances in 1..=clusters + 1 {
                let session = open(aicpu_instances).unwrap();
                let stream = session.stream().unwrap();
                stream.launch(kernel, &[]).unwrap();
                let ended = stream.synchronize_within(LONG);
                let way = format!("{hosting}, {aicpu_instances} instances, {aic} AIC, {aiv} AIV");
                assert!(ended.is_ok(), "{way}: {ended:?}");
                assert_eq!(stream.completed(), 1, "{way}");
                // A graph needs no builder instance, and so one instance less.
                let kind = if aiv > 0 { CoreKind::AIV } else { CoreKind::AIC };
                let image = session
                    .with_device(|device| {
                        HostGraph::build(device, &[], |graph| {
                            graph.submit(TaskSpec::new(kernel, kind, &[]), &[])?;
                            Ok(())
                        })
                    })
                    .unwrap();
                let ticket = stream.run(image.unwrap()).unwrap();
                let ended = stream.synchronize_within(LONG);
                assert!(ended.is_ok(), "{way}, a graph: {ended:?}");
                assert_eq!(ticket.take_report().unwrap().tasks, 1, "{way}");
            }
            let refused = open(clusters + 2).map(drop).unwrap_err().to_string();
            let (asked, plural) = (clusters + 2, if clusters == 1 { "" } else { "s" });
            let found = format!("{asked} on a device with {clusters} cluster{plural}; use");
            assert!(refused.starts_with("run.aicpu_instances is "), "{refused}");
            assert!(refused.contains(&found), "{refused}");
        }
    }
}

#[test]
fn a_kernel_of_one_stream_does_not_hold_up_another_stream() {
    let session = device(Hosting::Threads).session(options()).unwrap();
    session.register_kernel(FuncId(202), Kernel::from_fn("held", CoreKind::AIV, held)).unwrap();
    let (slow, quick) = (session.stream().unwrap(), session.stream().unwrap());
    let event = session.event().unwrap();
    slow.launch(FuncId(202), &[]).unwrap();
    slow.launch(func::EMPTY_AIV, &[]).unwrap();
    for _ in 0..100 {
        quick.launch(func::EMPTY_AIV, &[]).unwrap();
        quick.record(&event).unwrap();
    }
    quick.synchronize_within(LONG).expect("its launches run concurrently with the long kernel");
    event.synchronize_within(LONG).unwrap();
    assert_eq!(slow.completed(), 0);
    MAY_END.store(true, Ordering::Relaxed);
    slow.synchronize_within(LONG).unwrap();
    assert_eq!((slow.completed(), quick.completed()), (2, 200));
}

/// Streams of different lengths: in some order that a seed chooses, the short one is done first although it was submitted last.
#[test]
fn in_virtual_time_streams_share_the_cores() {
    let times = |seed| {
        let session = stepped(virtual_time(seed), seed);
        let (slow, quick) = (session.stream().unwrap(), session.stream().unwrap());
        let (late, soon) = (session.event().unwrap(), session.event().unwrap());
        slow.launch(func::SPIN_AIV, &[1_000_000]).unwrap();
        slow.record(&late).unwrap();
        quick.launch(func::EMPTY_AIC, &[]).unwrap();
        quick.record(&soon).unwrap();
        session.synchronize().unwrap();
        (late.time().unwrap(), soon.time().unwrap())
    };
    let overtaken = (0..30).filter(|seed| times(*seed).1 < Duration::from_millis(1)).count();
    assert!((1..30).contains(&overtaken), "{overtaken} of 30");
    assert!((0..30).all(|seed| times(seed).0 >= Duration::from_millis(1)));
}

fn launch_some(session: &Session, count: u32) {
    let stream = session.stream().unwrap();
    for _ in 0..count {
        stream.launch(func::EMPTY_AIV, &[]).unwrap();
    }
    stream.synchronize_within(LONG).unwrap();
}

#[test]
fn the_firmware_comes_up_once_for_what_follows_soon_and_returns_when_it_is_idle() {
    let session = session();
    launch_some(&session, 2000);
    let starts = session.firmware_starts();
    assert!((1..100).contains(&starts), "{starts} for 2,000 launches in a ring of 64 entries");
    let start = Instant::now();
    while session.is_firmware_up() && start.elapsed() < LONG {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(!session.is_firmware_up(), "it is idle");
    launch_some(&session, 1);
    assert!(session.firmware_starts() > starts, "the host wakes it");
}

/// Pauses of fifty times the linger: in a pool the firmware sleeps meanwhile, and a launch wakes it.
#[test]
fn a_firmware_that_sleeps_is_woken_by_a_launch() {
    let session = session();
    launch_some(&session, 1);
    let is_woken = || {
        let starts = session.firmware_starts();
        std::thread::sleep(50 * options().linger);
        launch_some(&session, 1);
        session.firmware_starts() == starts
    };
    // A busy machine may make a pause longer than the firmware sleeps, or keep its thread from falling asleep.
    let woken = (0..40).filter(|_| is_woken()).count();
    assert!(woken >= 8, "{woken} of 40");
}

/// A call that needs the cores does not wait for the end of that sleep, and the drop of a session does not either.
#[test]
fn a_firmware_that_sleeps_returns_when_it_is_asked_to() {
    let shortest = (0..50).map(|_| {
        let session = session();
        launch_some(&session, 1);
        std::thread::sleep(10 * options().linger);
        let start = Instant::now();
        session.with_device(|device| drop(device.describe())).unwrap();
        drop(session);
        start.elapsed()
    });
    let shortest = shortest.min().unwrap();
    assert!(shortest < Duration::from_millis(10), "{shortest:?}");
}

/// No thread waits, and everything is done.
#[test]
fn a_session_makes_progress_without_a_thread_that_waits() {
    let session = session();
    let (stream, done) = (session.stream().unwrap(), session.zeroed::<u8>(1).unwrap());
    stream.launch(func::EMPTY_AIV, &[]).unwrap();
    stream.fill(done.address(), 1, 1).unwrap();
    let start = Instant::now();
    while done.read().unwrap() == [0] && start.elapsed() < LONG {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(done.read().unwrap(), [1]);
}

#[test]
fn blocks_of_a_launch_are_begun_as_slots_are_free() {
    on_each(|session, mode| {
        let stream = session.stream().unwrap();
        let count = if mode == "threads" { 300 } else { 5000 };
        stream.launch_blocks(func::EMPTY_AIV, count, &[]).unwrap();
        stream.launch(func::EMPTY_AIC, &[]).unwrap();
        stream.launch_blocks(func::EMPTY_AIV, 3, &[]).unwrap();
        stream.synchronize_within(LONG).unwrap_or_else(|error| panic!("{mode}: {error}"));
        assert_eq!(stream.completed(), 3, "{mode}");
    });
}

#[test]
fn few_launches_may_be_on_their_way() {
    let session = device(super::support::pool());
    let session = session.session(SessionOptions { batch_launches: 1, ..options() }).unwrap();
    launch_some(&session, 100);
}

/// A device that limits the time of a launch: the firmware returns in time, again and again, and its state stays in GM between two launches.
#[test]
fn a_session_is_a_series_of_short_launches_where_time_is_limited() {
    let run = RunOptions { run_budget: Some(Duration::from_micros(150)), ..options().run };
    let linger = LONG;
    let of = || SessionOptions { run: run.clone(), linger, batch_launches: 4, ..options() };
    for (mode, session) in [
        ("virtual", device(super::support::virtual_time(3)).session(of()).unwrap()),
        ("pool", {
            let run = RunOptions { run_budget: Some(Duration::from_millis(100)), ..run.clone() };
            device(super::support::pool()).session(SessionOptions { run, ..of() }).unwrap()
        }),
    ] {
        let ones = session.upload(&[1.0_f32; 16]).unwrap();
        let sums: Vec<_> = (0..3).map(|_| session.zeroed::<f32>(16).unwrap()).collect();
        let streams: Vec<_> = (0..3).map(|_| session.stream().unwrap()).collect();
        let event = session.event().unwrap();
        let one = ones.address().0;
        let mut expected = 0.0;
        let start = Instant::now();
        // On this machine's clock until some launches have ended in time; in virtual time a fixed number.
        while expected < 200.0 || session.firmware_starts() < 4 && start.elapsed() < LONG {
            expected += 1.0;
            for (stream, sum) in streams.iter().zip(&sums) {
                let at = sum.address().0;
                stream.launch(func::ADD, &[at, one, at, 16]).unwrap();
            }
            streams[0].record(&event).unwrap();
            streams[1].wait(&event).unwrap();
            if mode == "pool" {
                session.synchronize_within(LONG).unwrap();
            }
        }
        session.synchronize_within(LONG).unwrap_or_else(|error| panic!("{mode}: {error}"));
        for sum in &sums {
            assert_eq!(sum.read().unwrap(), [expected; 16], "{mode}");
        }
        assert!(session.firmware_starts() >= 4, "{mode}: {} launches", session.firmware_starts());
    }
}

#[test]
fn a_call_on_the_device_does_not_wait_until_the_session_is_idle() {
    let session = session();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                launch_some(&session, 50);
            }
        });
        for _ in 0..20 {
            let kernels = session.with_device(|device| device.describe().kernels.len()).unwrap();
            assert!(kernels > 0);
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// Bytes of this process in memory.
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    4096 * text.split(' ').nth(1).unwrap().parse::<u64>().unwrap()
}

/// `PTO_SESSION_COMMANDS` sets how many commands there are: 10,000,000 take some seconds.
#[test]
fn a_long_session_needs_no_more_memory_than_a_short_one() {
    let commands = std::env::var("PTO_SESSION_COMMANDS").ok();
    let commands: u64 = commands.and_then(|text| text.parse().ok()).unwrap_or(200_000);
    let session = session();
    let (stream, other) = (session.stream().unwrap(), session.stream().unwrap());
    let event = session.event().unwrap();
    let some = |count: u64| {
        for number in 0..count / 4 {
            stream.launch(func::SPIN_AIV, &[number % 2]).unwrap();
            stream.record(&event).unwrap();
            other.wait(&event).unwrap();
            other.launch(func::SPIN_AIC, &[number % 2]).unwrap();
        }
        session.synchronize_within(Duration::from_secs(600)).unwrap();
    };
    let free = || session.with_device(|device| device.describe().gm_free_bytes).unwrap();
    some(20_000);
    let (gm_before, before) = (free(), resident_bytes());
    some(commands);
    assert_eq!(free(), gm_before);
    let grown = resident_bytes().saturating_sub(before);
    // Other tests of this process run meanwhile, each with a device.
    assert!(grown < 256 << 20, "{grown} bytes more after {commands} commands");
}
