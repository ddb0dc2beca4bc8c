//! What happens where the process gets no further thread. A limit of memory takes the stacks of threads away; it is one of the whole process, so that each
//! test runs in a process of its own.

use std::process::Command;

use pto_host::abi::{CoreKind, Fault};
use pto_host::graph::{GraphBuilder, NoBuilders, TaskSpec};
use pto_host::{
    Device, DeviceOptions, Error, GraphImage, HostGraph, Hosting, RunOptions, SessionError,
    SessionOptions, TraceOptions, WhenFull, Work, func,
};

/// Set in the process of the test itself.
const INSIDE: &str = "PTO_TEST_WITHOUT_THREADS";

/// Does `body` in a process of its own.
fn in_a_process_of_its_own(test: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    let this = std::env::current_exe().unwrap();
    let ended = Command::new(this).args([test, "--exact", "--nocapture"]).env(INSIDE, "1").output();
    let ended = ended.unwrap();
    let output = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && output.contains("1 passed"), "{output}\n{ended:?}");
}

fn set_limit(limit: libc::rlim_t) {
    let limits = libc::rlimit { rlim_cur: limit, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the call reads `limits`, which lives as long as the call.
    let failed = unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limits) };
    assert_eq!(failed, 0);
}

/// Does `body` while the process gets no further stack.
fn without_threads<R>(body: impl FnOnce() -> R) -> R {
    let size = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = size.split(' ').next().unwrap().parse().unwrap();
    // Room for small things.
    set_limit(4096 * pages + (600 << 10));
    let result = body();
    set_limit(libc::RLIM_INFINITY);
    result
}

fn device(hosting: Hosting) -> Device {
    let options = DeviceOptions { aic: 4, aiv: 8, gm_bytes: 64 << 20, hosting };
    let mut device = Device::open_sim(options, NoBuilders).unwrap();
    device.register_library().unwrap();
    device
}

fn one_task(device: &Device) -> GraphImage {
    let mut graph = HostGraph::new(device, &[]);
    graph.submit(TaskSpec::new(func::EMPTY_AIV, CoreKind::AIV, &[]), &[]).unwrap();
    graph.finish().unwrap()
}

/// A run that is refused leaves the arena to the cores that are in service on it.
#[test]
fn a_run_without_its_reader_of_traces_leaves_the_arena_where_it_is() {
    let test = "scarce::a_run_without_its_reader_of_traces_leaves_the_arena_where_it_is";
    in_a_process_of_its_own(test, || {
        let mut device = device(Hosting::Threads);
        let graph = one_task(&device);
        let traced = |when_full| {
            let (instance_events, core_events) = (Some(1024), Some(1024));
            let trace = TraceOptions { when_full, instance_events, core_events };
            RunOptions { trace: Some(trace), ..RunOptions::default() }
        };
        device.run(Work::HostGraph(&graph), &traced(WhenFull::DropOldest)).unwrap();
        let free = device.describe().gm_free_bytes;
        let refused =
            without_threads(|| device.run(Work::HostGraph(&graph), &traced(WhenFull::Wait)));
        assert!(matches!(refused, Err(Error::TraceReader { .. })), "{refused:?}");
        assert_eq!(device.describe().gm_free_bytes, free, "cores look at the arena");
        let watched = without_threads(|| {
            device.run_watched(Work::HostGraph(&graph), &RunOptions::default(), |_| ())
        });
        assert!(matches!(watched, Err(Error::Watcher { .. })), "{watched:?}");
        assert_eq!(device.describe().gm_free_bytes, free, "cores look at the arena");
        let report = device.run(Work::HostGraph(&graph), &RunOptions::default()).unwrap();
        assert_eq!(report.tasks, 1);
    });
}

/// The fault of a run that has no thread says so, and the next run works. The stacks of threads that have ended serve new ones: each mode has a process.
fn a_run_without_threads(test: &str, hosting: &str) {
    in_a_process_of_its_own(test, || {
        let mut device = device(hosting.parse().unwrap());
        let graph = one_task(&device);
        let work = Work::HostGraph(&graph);
        let error = without_threads(|| device.run(work, &RunOptions::default())).unwrap_err();
        assert_eq!(error.fault(), Some(Fault::RUN_PANIC), "{error}");
        let error = error.to_string();
        assert!(error.contains("No thread could be started for the run"), "{error}");
        assert!(error.contains("End other threads of this process"), "{error}");
        device.run(work, &RunOptions::default()).unwrap();
    });
}

#[test]
fn a_run_on_threads_says_that_there_are_none() {
    a_run_without_threads("scarce::a_run_on_threads_says_that_there_are_none", "threads");
}

#[test]
fn a_run_in_a_pool_says_that_there_are_no_threads() {
    a_run_without_threads("scarce::a_run_in_a_pool_says_that_there_are_no_threads", "pool");
}

#[test]
fn a_run_in_virtual_time_says_that_there_are_no_threads() {
    a_run_without_threads(
        "scarce::a_run_in_virtual_time_says_that_there_are_no_threads",
        "virtual",
    );
}

#[test]
fn a_session_without_threads_says_what_is_missing() {
    let test = "scarce::a_session_without_threads_says_what_is_missing";
    in_a_process_of_its_own(test, || {
        let device = device(Hosting::default());
        let refused = without_threads(|| device.session(SessionOptions::default()).map(drop));
        assert!(matches!(refused, Err(SessionError::Thread { .. })), "{refused:?}");
        assert!(refused.unwrap_err().to_string().contains("end other threads of this process"));
    });
}
