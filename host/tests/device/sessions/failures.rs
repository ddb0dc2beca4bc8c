//! Commands that fail: what is reported, what goes on, and what a reset does.

use std::sync::Arc;
use std::time::Duration;

use pto_host::abi::{CoreKind, Fault, FuncId};
use pto_host::func;
use pto_host::graph::{GraphBuilder, TaskSpec};
use pto_host::session::{
    CommandKind, FailureCause, OnFailure, SessionError, SessionOptions, StreamOptions, Submitted,
    ValueTest,
};
use pto_host::{HostGraph, Hosting, Kernel, RunOptions, Session};

use super::support::{LONG, device, far_beyond, on_each, options, pool, session, virtual_time};

/// The task budget of a session that waits for no long kernel.
const TASK_BUDGET: Duration = Duration::from_millis(30);

fn session_with_task_budget() -> Session {
    let run = RunOptions { task_budget: TASK_BUDGET, ..options().run };
    device(pool()).session(SessionOptions { run, ..options() }).unwrap()
}

fn stream_with(session: &Session, on_failure: OnFailure) -> pto_host::Stream {
    session.stream_with(StreamOptions { on_failure, ..StreamOptions::default() }).unwrap()
}

#[test]
fn a_fault_stays_with_its_stream_and_is_reported_with_its_post_mortem() {
    let session = session_with_task_budget();
    let (bad, good) = (session.stream().unwrap(), session.stream().unwrap());
    let bytes = session.zeroed::<u8>(2).unwrap();
    bad.launch(func::EMPTY_AIV, &[]).unwrap();
    bad.launch(func::SPIN_AIV, &[far_beyond(TASK_BUDGET)]).unwrap();
    bad.fill(bytes.address(), 1, 1).unwrap();
    for _ in 0..20 {
        good.launch(func::EMPTY_AIC, &[]).unwrap();
    }
    good.fill(bytes.address().offset(1), 1, 1).unwrap();
    let error = bad.synchronize_within(LONG).unwrap_err();
    let SessionError::Failed(failure) = &error else { panic!("{error}") };
    assert_eq!((failure.stream, failure.command), (bad.id(), 2), "{error}");
    assert_eq!(failure.kind, Some(CommandKind::LAUNCH));
    let fault = error.fault().unwrap();
    assert!([Fault::STALL_CORE, Fault::STALL_INSTANCE].contains(&fault), "{error}");
    assert!(error.to_string().contains("What to do"), "the whole post-mortem: {error}");
    // A launch that was on a core then may be lost; its stream reports that, and goes on as well.
    match good.synchronize_within(LONG) {
        Ok(()) => {}
        Err(SessionError::Failed(failure)) => {
            assert!(matches!(failure.cause, FailureCause::Interrupted(_)), "{failure}");
        }
        Err(error) => panic!("{error}"),
    }
    assert_eq!(good.completed(), 21);
    bad.synchronize_within(LONG).expect("it is reported once, and the stream goes on");
    assert_eq!(bytes.read().unwrap(), [1, 1]);
}

/// A cycle is reported although another stream keeps the firmware up.
#[test]
fn a_cycle_of_streams_is_reported_while_others_are_busy() {
    let linger = LONG;
    let session = device(pool()).session(SessionOptions { linger, ..options() }).unwrap();
    let (one, other, busy) =
        (session.stream().unwrap(), session.stream().unwrap(), session.stream().unwrap());
    let (first, second) = (session.event().unwrap(), session.event().unwrap());
    let stop = std::sync::atomic::AtomicBool::new(false);
    let waited = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                busy.launch(func::EMPTY_AIV, &[]).unwrap();
            }
        });
        one.wait_next(&first).unwrap();
        other.wait_next(&second).unwrap();
        one.record(&second).unwrap();
        other.record(&first).unwrap();
        let waited = one.synchronize_within(LONG);
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        waited
    });
    let Err(SessionError::Failed(failure)) = waited else { panic!("{waited:?}") };
    assert!(matches!(failure.cause, FailureCause::Deadlock(_)), "{failure}");
    busy.synchronize_within(LONG).unwrap();
}

/// A wait that lasts for longer than its stream allows fails, and the stream does what its `on_failure` says.
#[test]
fn a_wait_has_the_time_of_its_stream() {
    on_each(|session, mode| {
        let word = session.zeroed::<u64>(1).unwrap();
        let never = session.event().unwrap();
        let wait_budget = Some(Duration::from_millis(5));
        for on_failure in [OnFailure::Continue, OnFailure::Stop] {
            let options = StreamOptions { wait_budget, on_failure, ..StreamOptions::default() };
            let (stream, other) =
                (session.stream_with(options).unwrap(), session.stream().unwrap());
            stream.launch(func::EMPTY_AIV, &[]).unwrap();
            match on_failure {
                OnFailure::Continue => stream.wait_next(&never).unwrap(),
                _ => stream.wait_value(word.address(), ValueTest::EQUAL, 7).unwrap(),
            };
            let next = stream.launch(func::EMPTY_AIV, &[]).unwrap();
            other.launch(func::EMPTY_AIC, &[]).unwrap();
            let error = stream.synchronize_within(LONG).unwrap_err();
            let SessionError::Failed(failure) = &error else { panic!("{mode}: {error}") };
            assert!(matches!(failure.cause, FailureCause::TimedOut(_)), "{mode}: {error}");
            assert_eq!((failure.command, Some(stream.completed())), (2, next.number()), "{mode}");
            other.synchronize_within(LONG).unwrap();
            if on_failure == OnFailure::Stop {
                let refused = stream.launch(func::EMPTY_AIV, &[]).unwrap_err();
                assert!(matches!(refused, SessionError::Stopped { .. }), "{mode}: {refused}");
            }
        }
        session.reset().unwrap();
    });
}

/// A kernel has the time of its stream, in a launch, in a recording and in a run; an equally long kernel of another stream goes on.
#[test]
fn a_kernel_has_the_time_of_its_stream() {
    // How long a kernel may take in the session and in the stream, and for how many iterations one is at it for longer than the latter, where that
    // is not measured.
    let settings = [
        (virtual_time(3), 100, 5, Some(20_000_000_u64)),
        (Hosting::Threads, 60_000, 100, None),
        (pool(), 60_000, 20, None),
    ];
    for (hosting, session_ms, budget_ms, iterations) in settings {
        let run = RunOptions { task_budget: Duration::from_millis(session_ms), ..options().run };
        let session = device(hosting).session(SessionOptions { run, ..options() }).unwrap();
        let budget = Duration::from_millis(budget_ms);
        let kernel_budget = Some(budget);
        let short = StreamOptions { kernel_budget, ..StreamOptions::default() };
        let (stream, other) = (session.stream_with(short).unwrap(), session.stream().unwrap());
        let long = [iterations.unwrap_or_else(|| far_beyond(budget))];
        other.launch(func::SPIN_AIV, &long).unwrap();
        other.synchronize_within(LONG).expect("the session allows it");
        stream.launch(func::EMPTY_AIV, &[]).unwrap();
        stream.synchronize_within(LONG).unwrap();
        let failed = |what: &str, submitted: Submitted| {
            let Err(error) = stream.synchronize_within(LONG) else {
                panic!("{hosting}: {what} is done in spite of its stream's budget")
            };
            let SessionError::Failed(failure) = &error else { panic!("{what}: {error}") };
            assert_eq!(Some(failure.command), submitted.number(), "{what}: {error}");
            let fault = error.fault().unwrap();
            assert!([Fault::STALL_CORE, Fault::STALL_INSTANCE].contains(&fault), "{error}");
        };
        let number = stream.launch(func::SPIN_AIV, &long).unwrap();
        failed("a launch", number);
        stream.begin_capture().unwrap();
        assert_eq!(stream.launch(func::SPIN_AIV, &long).unwrap(), Submitted::Captured);
        let recording = stream.end_capture().unwrap();
        let number = stream.launch_recording(&recording, &[]).unwrap();
        failed("a recording", number);
        other.launch_recording(&recording, &[]).unwrap();
        other.synchronize_within(LONG).expect("the budget is the stream's, not the recording's");
        let graph = session
            .with_device(|device| {
                HostGraph::build(device, &[], |graph| {
                    graph.submit(TaskSpec::new(func::SPIN_AIV, CoreKind::AIV, &long), &[])?;
                    Ok(())
                })
            })
            .unwrap();
        stream.run(Arc::new(graph.unwrap())).unwrap();
        failed("a run", Submitted::Command(stream.completed() + 1));
        stream.launch(func::EMPTY_AIV, &[]).unwrap();
        stream.synchronize_within(LONG).expect("the stream goes on");
        stream.set_kernel_budget(None).unwrap();
        stream.launch(func::SPIN_AIV, &long).unwrap();
        stream.synchronize_within(LONG).expect("it has the time of the session now");
        stream.set_kernel_budget(kernel_budget).unwrap();
        let number = stream.launch(func::SPIN_AIV, &long).unwrap();
        failed("a launch after the budget was set again", number);
        let refused = stream.set_kernel_budget(Some(Duration::from_secs(3601))).unwrap_err();
        assert!(matches!(refused, SessionError::Option { option: "kernel_budget", .. }));
    }
}

/// In virtual time the watchdog looks as often as the budgets of streams need, not as those of the session: a kernel that takes somewhat
/// longer than its stream allows does not end before it is found, and one that takes less is left alone.
#[test]
fn a_stream_finds_a_kernel_in_time_in_virtual_time() {
    let session = device(virtual_time(3)).session(options()).unwrap();
    let spun = |session: &Session, iterations: u64| {
        let (other, before) = (session.stream().unwrap(), session.now());
        other.launch(func::SPIN_AIV, &[iterations]).unwrap();
        other.synchronize_within(LONG).unwrap();
        session.now() - before
    };
    let iterations = 2_000_000;
    let a_million =
        (spun(&session, iterations + 1_000_000) - spun(&session, iterations)).as_nanos();
    for budget_us in [300, 2_000, 10_000] {
        let kernel_budget = Some(Duration::from_micros(budget_us));
        let stream =
            session.stream_with(StreamOptions { kernel_budget, ..StreamOptions::default() });
        let stream = stream.unwrap();
        let of_budget = |percent: u64| {
            u64::try_from(u128::from(budget_us * 10 * percent) * 1_000_000 / a_million).unwrap()
        };
        stream.launch(func::SPIN_AIV, &[of_budget(90)]).unwrap();
        stream.synchronize_within(LONG).expect("it takes less than the budget");
        stream.launch(func::SPIN_AIV, &[of_budget(140)]).unwrap();
        let waited = stream.synchronize_within(LONG);
        let error = waited.expect_err(&format!("140 % of a budget of {budget_us} us"));
        assert_eq!(error.fault(), Some(Fault::STALL_CORE), "{error}");
    }
}

#[test]
fn a_budget_of_kernels_that_nothing_could_keep_is_refused() {
    let session = session_with_task_budget();
    for budget in [0, 999, 31_000_000].map(Duration::from_nanos) {
        let kernel_budget = Some(budget);
        let refused =
            session.stream_with(StreamOptions { kernel_budget, ..StreamOptions::default() });
        let error = refused.unwrap_err();
        let names_it = matches!(&error, SessionError::Option { option: "kernel_budget", .. });
        assert!(names_it && error.to_string().contains("30ms"), "{error}");
    }
}

#[test]
fn a_panic_of_a_function_is_a_failure_of_its_command() {
    on_each(|session, mode| {
        let stream = session.stream().unwrap();
        stream.call(|| panic!("{} of them", 3)).unwrap();
        stream.launch(func::EMPTY_AIV, &[]).unwrap();
        let error = stream.synchronize_within(LONG).unwrap_err();
        let SessionError::Failed(failure) = &error else { panic!("{mode}: {error}") };
        assert!(matches!(&failure.cause, FailureCause::HostFunction(text) if text == "3 of them"));
        assert_eq!(stream.completed(), 2, "{mode}");
    });
}

#[test]
fn a_stream_that_stops_skips_the_rest_until_a_reset() {
    on_each(|session, mode| {
        let (stops, goes_on) = (stream_with(session, OnFailure::Stop), session.stream().unwrap());
        let bytes = session.zeroed::<u8>(2).unwrap();
        let skipped = session.event().unwrap();
        stops.call(|| panic!("on purpose")).unwrap();
        stops.fill(bytes.address(), 1, 1).unwrap();
        stops.record(&skipped).unwrap();
        goes_on.wait(&skipped).unwrap();
        goes_on.fill(bytes.address().offset(1), 1, 1).unwrap();
        goes_on.synchronize_within(LONG).expect("no wait for a skipped record lasts");
        assert!(stops.synchronize_within(LONG).is_err());
        assert_eq!(bytes.read().unwrap(), [0, 1], "{mode}");
        assert!(skipped.is_complete() && skipped.time().is_none());
        let refused = stops.launch(func::EMPTY_AIV, &[]).unwrap_err();
        assert!(matches!(refused, SessionError::Stopped { .. }), "{mode}: {refused}");
        session.reset().unwrap();
        stops.fill(bytes.address(), 2, 1).unwrap();
        stops.synchronize_within(LONG).unwrap();
        assert_eq!(bytes.read().unwrap(), [2, 1], "{mode}");
    });
}

#[test]
fn a_failure_can_stop_every_stream() {
    on_each(|session, mode| {
        let (stops, other) = (stream_with(session, OnFailure::StopAll), session.stream().unwrap());
        stops.call(|| panic!("on purpose")).unwrap();
        assert!(stops.synchronize_within(LONG).is_err());
        let refused = other.launch(func::EMPTY_AIV, &[]).unwrap_err().to_string();
        assert!(refused.contains("command 1 of stream 0"), "{mode}: {refused}");
        session.reset().unwrap();
        other.launch(func::EMPTY_AIV, &[]).unwrap();
        other.synchronize_within(LONG).unwrap();
    });
}

#[test]
fn an_abort_drops_what_has_not_begun_and_ends_waits() {
    let session = session();
    let stream = session.stream().unwrap();
    let byte = session.zeroed::<u8>(1).unwrap();
    let event = session.event().unwrap();
    stream.wait_next(&event).unwrap();
    stream.fill(byte.address(), 1, 1).unwrap();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| stream.synchronize_within(LONG));
        while !waits.is_finished() {
            std::thread::sleep(Duration::from_millis(2));
            stream.abort();
        }
        // The thread may have come to its wait only after the last abort.
        let waited = waits.join().unwrap();
        assert!(matches!(waited, Err(SessionError::Aborted { .. }) | Ok(())), "{waited:?}");
    });
    assert_eq!((byte.read().unwrap()[0], stream.completed()), (0, 2));
    stream.fill(byte.address(), 2, 1).unwrap();
    stream.synchronize_within(LONG).unwrap();
    assert_eq!(byte.read().unwrap(), [2]);
}

#[test]
fn a_full_ring_is_reported_after_its_budget() {
    let session = session();
    let room_budget = Duration::from_millis(5);
    let options = StreamOptions { room_budget, ..StreamOptions::default() };
    let stream = session.stream_with(options).unwrap();
    let event = session.event().unwrap();
    stream.wait_next(&event).unwrap();
    let full = (0..65).find_map(|_| stream.launch(func::EMPTY_AIV, &[]).err()).unwrap();
    assert!(matches!(full, SessionError::RingFull { .. }), "{full}");
    stream.abort();
    stream.synchronize_within(LONG).unwrap_or_default();
    stream.launch(func::EMPTY_AIV, &[]).unwrap();
}

extern "C" fn naps(_: *const u64) {
    std::thread::sleep(Duration::from_millis(2));
}

extern "C" fn naps_long(_: *const u64) {
    std::thread::sleep(Duration::from_millis(400));
}

/// A session is a series of runs: it lasts longer than any run may, and has its state in GM meanwhile.
#[test]
fn a_session_outlives_the_limit_of_a_run() {
    let outcome = |hosting, kernel, launches| {
        let run = RunOptions { run_budget: Some(Duration::from_millis(150)), ..options().run };
        let all = SessionOptions { run, batch_launches: 8, ring_entries: 512, ..options() };
        let session = device(hosting).session(all).unwrap();
        let naps = Kernel::from_fn("naps", CoreKind::AIV, kernel);
        session.register_kernel(FuncId(201), naps).unwrap();
        let (stream, gate) = (session.stream().unwrap(), session.stream().unwrap());
        let event = session.event().unwrap();
        stream.wait_next(&event).unwrap();
        for _ in 0..launches {
            stream.launch(FuncId(201), &[]).unwrap();
        }
        gate.record(&event).unwrap();
        let waited = stream.synchronize_within(LONG).map_err(|error| error.fault());
        (waited, session.firmware_starts())
    };
    let (waited, starts) = outcome(pool(), naps, 200);
    assert_eq!(waited, Ok(()));
    assert!(starts >= 4, "0.4 s of kernels, in runs of less than 0.15 s: {starts}");
    let (waited, _) = outcome(Hosting::Threads, naps_long, 1);
    assert_eq!(waited, Err(Some(Fault::STALL_RUN_BUDGET)), "the limit is there");
}
