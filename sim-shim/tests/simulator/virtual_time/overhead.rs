//! What the machine counts as overhead of tasks with shapes: small cases whose values can be worked out by hand.

use crate::common::{Device, LaunchOptions};
use pto_abi::{BuildMode, CoreKind, FuncId, RuntimeVariant};
use pto_aicore_kernels::func;
use pto_graph::{BuildError, Priority, StreamBuilder, TensorTask, builder_set};
use pto_sim_shim::Hosting;
use pto_sim_shim::virtual_time::{
    Compute, CostRange, KernelCosts, KindReport, KindTime, Profile, VirtualOptions,
};

const CUBE: FuncId = func::DAG_NODE_AIC;
const VECTOR: FuncId = func::DAG_NODE_AIV;
/// What a kernel takes; [`SLOW`] three times as much.
const KERNEL_NS: u64 = 1_000;
const SLOW: FuncId = func::ADD;

builder_set! {
    struct OverheadPrograms {}
    stream { "mix" => mix, "mix_behind" => mix_behind, "two_behind" => two_behind, "either" => either }
}

const fn vector() -> TensorTask<'static> {
    TensorTask::new(VECTOR, CoreKind::AIV, &[])
}

const fn cluster() -> TensorTask<'static> {
    TensorTask::new(CUBE, CoreKind::AIC, &[]).mix(&[VECTOR, VECTOR])
}

fn mix<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    stream.submit_tensors(&cluster())?;
    Ok(())
}

/// The vector core of the first one keeps the second one from starting.
fn mix_behind<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    stream.submit_tensors(&vector().priority(Priority::HIGH))?;
    stream.submit_tensors(&cluster())?;
    Ok(())
}

/// Two blocks that start at once wait for a vector core; a task that needs one waits for them.
fn two_behind<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    stream.submit_tensors(&vector().priority(Priority::HIGH))?;
    stream.submit_tensors(&vector().blocks(2).sync_start())?;
    stream.submit_tensors(&vector())?;
    Ok(())
}

/// A cube core and a vector core, whichever is free first: the second one, while the first one runs a slow kernel.
fn either<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    stream.submit_tensors(&vector().priority(Priority::HIGH))?;
    let slow = TensorTask::new(SLOW, CoreKind::AIV, &[]);
    stream.submit_tensors(&slow.priority(Priority::HIGH))?;
    stream.submit_tensors(&TensorTask::new(CUBE, CoreKind::AIC, &[]).mix(&[VECTOR]).blocks(2))?;
    Ok(())
}

/// One cluster, everything free but barriers; the kinds, and how long the graph took.
fn run(builder: &str, barrier_ns: u64) -> ([KindTime; 2], u64) {
    let barrier_ns = CostRange { low: barrier_ns, high: barrier_ns };
    let profile = Box::leak(Box::new(Profile { barrier_ns, ..Profile::ideal().clone() }));
    let mut by_func = vec![KERNEL_NS; 1 + SLOW.index().max(CUBE.index()).max(VECTOR.index())];
    by_func[SLOW.index()] = 3 * KERNEL_NS;
    let costs = KernelCosts::Table { by_func: by_func.leak(), fallback: KERNEL_NS };
    let compute = Compute::Off;
    let options = VirtualOptions { profile, costs, compute, ..VirtualOptions::default() };
    let shape = LaunchOptions {
        variant: RuntimeVariant::TENSORMAP_AND_RINGBUFFER,
        build_mode: BuildMode::SEQUENTIAL,
        aicpu: 2,
        aic: 1,
        aiv: 2,
        ..LaunchOptions::default()
    };
    let mut device = Device::new(Hosting::Virtual(options), shape, OverheadPrograms);
    let outcome = device.run(builder, &[]);
    assert_eq!(outcome.fault, None);
    let report = outcome.virtual_report.expect("the mode is virtual");
    assert_eq!(report.violation_count, 0, "{:?}", report.violations);
    for KindReport { cores, time, .. } in &report.kinds {
        let KindTime { overhead_core_ns, unfit_core_ns, .. } = time;
        let all = overhead_core_ns + unfit_core_ns + time.no_work_core_ns + time.occupied_core_ns;
        assert!(all >= u64::from(*cores) * report.graph_ns, "each core is somewhere: {time:?}");
    }
    (report.kinds.map(|kind| kind.time), report.graph_ns)
}

#[test]
fn a_mix_task_that_could_start_is_overhead_on_each_of_its_cores() {
    let ([aic, aiv], graph_ns) = run("mix", 100);
    assert_eq!(graph_ns, 100 + KERNEL_NS);
    assert_eq!((aic.overhead_ns, aic.overhead_core_ns, aic.all_idle_ns), (100, 100, 100));
    assert_eq!((aiv.overhead_ns, aiv.overhead_core_ns, aiv.all_idle_ns), (100, 200, 100));
    assert_eq!((aic.unfit_core_ns, aiv.unfit_core_ns), (0, 0));
}

#[test]
fn one_that_waits_for_a_core_of_its_cluster_is_none() {
    let ([aic, aiv], graph_ns) = run("mix_behind", 0);
    assert_eq!(graph_ns, 2 * KERNEL_NS);
    assert_eq!((aic.overhead_ns, aiv.overhead_ns), (0, 0));
    // The cube core and the other vector core, until the first task ends.
    assert_eq!((aic.unfit_core_ns, aiv.unfit_core_ns), (KERNEL_NS, KERNEL_NS));
}

#[test]
fn a_core_that_is_gathered_while_another_task_could_have_it_is_overhead() {
    let ([aic, aiv], graph_ns) = run("two_behind", 0);
    assert_eq!(graph_ns, 3 * KERNEL_NS);
    assert_eq!((aic.overhead_ns, aic.unfit_core_ns), (0, 0));
    assert_eq!((aiv.overhead_ns, aiv.overhead_core_ns), (KERNEL_NS, KERNEL_NS));
    assert_eq!(aiv.unfit_core_ns, 0, "the core is counted once");
}

#[test]
fn one_vector_kernel_goes_to_either_vector_core_of_the_cluster() {
    let ([aic, aiv], graph_ns) = run("either", 0);
    assert_eq!(graph_ns, 3 * KERNEL_NS, "two blocks one after the other during the slow kernel");
    assert_eq!((aic.overhead_ns, aiv.overhead_ns), (0, 0));
    assert_eq!((aic.unfit_core_ns, aiv.unfit_core_ns), (KERNEL_NS, 0));
}
