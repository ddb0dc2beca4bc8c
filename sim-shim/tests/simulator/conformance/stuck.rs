//! What does not come back, what takes long, and what takes too long.

use std::time::{Duration, Instant};

use pto_abi::sync::{AtomicU32, Ordering};
use pto_abi::{CoreKind, Fault, FuncId, GmAddr};
use pto_graph::{BuildError, GraphBuilder, TaskSpec};
use pto_sim_shim::virtual_time::KernelCosts;

use super::dag::Dag;
use super::ways::{check, device, for_every_hosting, for_every_hosting_with, named, options};
use crate::common::{Device, LaunchOptions, hostings};

/// Something waits here, asleep, until the test opens it.
struct Gate(&'static AtomicU32);

impl Gate {
    fn new() -> Self {
        Self(Box::leak(Box::new(AtomicU32::new(0))))
    }

    fn word(&self) -> u64 {
        (&raw const *self.0).expose_provenance() as u64
    }

    fn of(word: u64) -> Self {
        let address = usize::try_from(word).unwrap();
        // SAFETY: the word of a gate, which lives for ever.
        Self(unsafe { &*std::ptr::with_exposed_provenance::<AtomicU32>(address) })
    }

    fn wait(&self) {
        while self.0.load(Ordering::Acquire) == 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.0.store(1, Ordering::Release);
    }
}

/// A builder that does not return while its gate is closed.
pub(crate) fn builder<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let gate = std::mem::ManuallyDrop::new(Gate::of(graph.orch_args()[0]));
    gate.wait();
    Ok(())
}

/// A kernel that does not return while its gate is closed. Argument: the gate.
unsafe extern "C" fn wait_at_gate(args: *const u64) {
    // SAFETY: the task has one argument.
    let word = unsafe { *args };
    std::mem::ManuallyDrop::new(Gate::of(word)).wait();
}

/// A kernel that takes a while and no CPU. Argument: milliseconds.
unsafe extern "C" fn sleep_ms(args: *const u64) {
    // SAFETY: the task has one argument.
    let millis = unsafe { *args };
    std::thread::sleep(Duration::from_millis(millis));
}

fn spec(entry: unsafe extern "C" fn(*const u64), args: &[u64]) -> TaskSpec<'_> {
    let kernel = GmAddr(entry as usize as u64);
    TaskSpec { kernel, ..TaskSpec::new(FuncId(77), CoreKind::AIC, args) }
}

pub(crate) fn kernel_task<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let gate = [graph.orch_args()[0]];
    graph.submit(spec(wait_at_gate, &gate), &[])?;
    Ok(())
}

/// Words: how many kernels, how long each.
pub(crate) fn slow_chain<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let (count, millis) = (graph.orch_args()[0], [graph.orch_args()[1]]);
    let mut last = graph.submit(spec(sleep_ms, &millis), &[])?;
    for _ in 1..count {
        last = graph.submit(spec(sleep_ms, &millis), &[last])?;
    }
    Ok(())
}

/// Runs `builder` against a closed gate on every hosting at once (they sleep): the arena is lost, within
/// the budgets, with one of `faults`; the process goes on, with another device.
fn does_not_return(builder: &str, faults: &[Fault], look: fn(&Device)) {
    let options = LaunchOptions {
        task_budget_ms: 400,
        stall_budget_ms: 200,
        bring_up_budget_ms: 300,
        aicpu: 3,
        aic: 2,
        aiv: 4,
        ..options()
    };
    std::thread::scope(|scope| {
        for hosting in hostings() {
            scope.spawn(move || {
                named(&hosting.to_string(), || {
                    let gate = Gate::new();
                    let mut stuck = device(hosting, options);
                    let start = Instant::now();
                    let outcome = stuck.run(builder, &[gate.word()]);
                    let taken = start.elapsed();
                    assert!(outcome.arena_lost, "{:?}", outcome.fault);
                    assert!(faults.contains(&outcome.fault.unwrap()), "{:?}", outcome.fault);
                    assert!(taken < Duration::from_secs(8), "{taken:?}");
                    look(&stuck);
                    drop(stuck);
                    let mut next = device(hosting, super::ways::options());
                    check(&mut next, &Dag::random(41, 40));
                });
            });
        }
    });
}

#[test]
fn a_builder_that_does_not_return() {
    let faults = [Fault::STALL_BUILDER, Fault::STALL_INSTANCE];
    does_not_return("stuck_builder", &faults, |_| {});
}

#[test]
fn a_kernel_that_does_not_return_is_named() {
    does_not_return("stuck_kernel", &[Fault::STALL_CORE], |device| {
        let epitaph = device.arena.epitaph();
        assert_eq!((epitaph.task.slot, epitaph.func_id), (0, 77));
        assert_eq!(epitaph.kernel, spec(wait_at_gate, &[]).kernel.0);
        assert!(epitaph.core < 2, "an AIC");
        assert!(epitaph.since_ns > 400_000_000);
    });
}

/// A kernel may take longer than the stall budget, and so may a chain of them on an instance that never
/// idles: what works is no stall.
#[test]
fn slow_kernels_are_no_stall() {
    for_every_hosting(LaunchOptions { stall_budget_ms: 50, ..options() }, |device| {
        for (count, millis) in [(1, 200), (20, 10)] {
            let outcome = device.run("slow_chain", &[count, millis]);
            assert_eq!(outcome.fault, None, "{count} of {millis} ms: {:?}", device.arena.epitaph());
        }
    });
}

/// The run budget holds although the run gets on all the time.
#[test]
fn the_run_budget_holds() {
    let good = Dag::random(42, 30);
    let options = LaunchOptions { run_budget_ms: 100, aicpu: 2, ..options() };
    // In virtual time a kernel takes what it is said to cost, however long it sleeps.
    for_every_hosting_with(KernelCosts::Constant(1_000_000), options, |device| {
        check(device, &good);
        let outcome = device.run("slow_chain", &[2_000, 1]);
        assert_eq!(outcome.fault, Some(Fault::STALL_RUN_BUDGET));
        assert!(!outcome.arena_lost);
        // 100 kernels fill the budget; a working instance looks at the clock every 64 steps.
        let completed = device.arena.epitaph().completed;
        assert!((50..400).contains(&completed), "{completed} of 2,000 tasks ran");
        check(device, &good);
    });
}
