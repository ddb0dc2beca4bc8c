//! Which threads of a pool run kernels: one while they are short, all when they take long.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use pto_host::abi::{CoreKind, FuncId};
use pto_host::graph::{BuildError, GraphBuilder, TaskSpec, builder_set};
use pto_host::{Device, DeviceOptions, Hosting, Kernel, KernelTimes, RunOptions, Work};

builder_set! { struct Programs { "build" => build } stream {} }

/// Argument: nanoseconds. Notes the thread that it runs on, and keeps it for so long.
const BUSY: FuncId = FuncId(900);

/// Argument: nothing.
const EMPTY: FuncId = FuncId(901);

/// The threads on which kernels have run.
static SEEN: Mutex<Option<HashSet<ThreadId>>> = Mutex::new(None);

unsafe extern "C" fn busy(args: *const u64) {
    // SAFETY: the program passes one word.
    let ns = unsafe { args.read() };
    let start = Instant::now();
    SEEN.lock().unwrap().get_or_insert_default().insert(std::thread::current().id());
    while start.elapsed() < Duration::from_nanos(ns) {
        std::hint::spin_loop();
    }
}

unsafe extern "C" fn empty(_: *const u64) {}

/// So many independent tasks of so many nanoseconds; of none, with an empty kernel.
fn build<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let &[tasks, ns] = graph.orch_args() else { return Err(BuildError::Failed(1)) };
    for _ in 0..tasks {
        let args = [ns];
        let task = match ns {
            0 => TaskSpec::new(EMPTY, CoreKind::AIV, &[]),
            _ => TaskSpec::new(BUSY, CoreKind::AIV, &args),
        };
        graph.submit(task, &[])?;
    }
    Ok(())
}

/// With times of kernels the pool rings the doorbells of all cores first; without, it runs each core at once.
#[test]
fn a_pool_calls_its_threads_when_kernels_take_long() {
    for kernel_times in [KernelTimes::Measure, KernelTimes::Skip] {
        let hosting = Hosting::Pool { os_threads: NonZeroUsize::new(2).unwrap() };
        let options = DeviceOptions { aic: 8, aiv: 16, gm_bytes: 1 << 28, hosting };
        let mut device = Device::open_sim(options, Programs).unwrap();
        device.register_kernel(BUSY, Kernel::from_fn("busy", CoreKind::AIV, busy)).unwrap();
        device.register_kernel(EMPTY, Kernel::from_fn("empty", CoreKind::AIV, empty)).unwrap();
        let options = RunOptions { kernel_times, ..RunOptions::default() };
        let mut threads = |tasks: u64, us: u64| {
            *SEEN.lock().unwrap() = None;
            let orch_args = [tasks, us * 1_000];
            let work = Work::AicpuBuilder { builder: "build", orch_args: &orch_args };
            let report = device.run(work, &options).unwrap();
            assert_eq!(report.tasks, tasks);
            SEEN.lock().unwrap().take().map_or(0, |seen| seen.len())
        };
        // The first kernels of a run are timed: two are too few to say anything.
        assert_eq!(threads(2, 2_000), 1);
        assert_eq!(threads(64, 2_000), 2);
        // These begin with both threads, because those of the last run took long.
        assert_eq!(threads(64, 2_000), 2);
        // After short kernels the first step may take all of these; what it has not run goes to the other thread as soon as two have taken long.
        assert_eq!(threads(4_000, 0), 0);
        assert_eq!(threads(8, 20_000), 2);
    }
}
