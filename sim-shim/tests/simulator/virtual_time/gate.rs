//! Who goes first where tasks have priorities and tasks gather cores: small cases, in virtual time.

use crate::common::{Device, LaunchOptions};
use pto_abi::arena::Capacities;
use pto_abi::{BuildMode, CoreKind, FuncId, RuntimeVariant, TaskId};
use pto_aicore_kernels::func;
use pto_graph::{BuildError, Priority, StreamBuilder, TensorTask, builder_set};
use pto_sim_shim::Hosting;
#[cfg(not(pto_mutants))]
use pto_sim_shim::virtual_time::EventKind;
use pto_sim_shim::virtual_time::{
    Compute, Keep, KernelCosts, Profile, VirtualOptions, VirtualReport,
};

const CUBE: FuncId = func::DAG_NODE_AIC;
const VECTOR: FuncId = func::DAG_NODE_AIV;
/// What a kernel takes; [`SLOW`] three times as much.
const KERNEL_NS: u64 = 1_000;
const SLOW: FuncId = func::ADD;
/// Slots of a small window.
const WINDOW: u32 = 16;
/// Tasks of a long stream.
const STREAM: u32 = 200;

builder_set! {
    struct GatePrograms {}
    stream {
        "beside_chains" => beside_chains, "higher_later" => higher_later, "stream" => a_stream,
        "every_kind" => every_kind
    }
}

const fn vector() -> TensorTask<'static> {
    TensorTask::new(VECTOR, CoreKind::AIV, &[])
}

/// Both vector cores.
const fn both() -> TensorTask<'static> {
    vector().blocks(2).sync_start()
}

fn chain<G: StreamBuilder>(
    stream: &mut G,
    mut last: Option<TaskId>,
    count: usize,
) -> Result<Vec<TaskId>, BuildError> {
    let mut ids = Vec::new();
    for _ in 0..count {
        let id = stream.submit_tensors(&vector().after(last.as_slice()))?;
        last = Some(id);
        ids.push(id);
    }
    Ok(ids)
}

/// A chain of 20; two blocks of low priority that start at once; from the fifth task on a second chain, of 15.
fn beside_chains<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let ids = chain(stream, None, 20)?;
    stream.submit_tensors(&both().priority(Priority::LOW))?;
    chain(stream, Some(ids[4]), 15)?;
    Ok(())
}

/// Tasks 1 and 2 have the vector cores; 3 waits for both of them, and so does 4, of high priority, from the end of 0 on.
fn higher_later<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let first = stream.submit_tensors(&TensorTask::new(CUBE, CoreKind::AIC, &[]))?;
    for _ in 0..2 {
        stream.submit_tensors(&TensorTask::new(SLOW, CoreKind::AIV, &[]))?;
    }
    stream.submit_tensors(&both().priority(Priority::LOW))?;
    stream.submit_tensors(&both().priority(Priority::HIGH).after(&[first]))?;
    Ok(())
}

/// While 0 and 1 have the vector cores come 2, of low priority, which starts two blocks at once if the argument says so, and many
/// after it, plain or of high priority.
fn a_stream<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let [is_sync, is_high] = [0, 1].map(|at| stream.orch_args()[at] == 1);
    for _ in 0..2 {
        let slow = TensorTask::new(SLOW, CoreKind::AIV, &[]);
        stream.submit_tensors(&slow.priority(Priority::HIGH))?;
    }
    let first = if is_sync { both() } else { vector() };
    stream.submit_tensors(&first.priority(Priority::LOW))?;
    let later = if is_high { vector().priority(Priority::HIGH) } else { vector() };
    for _ in 0..STREAM {
        stream.submit_tensors(&later)?;
    }
    Ok(())
}

/// Tasks of every kind at one priority, all of them ready at once, in turn: plain, blocks, blocks that start at once, and kernels
/// for several cores of a cluster.
fn every_kind<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let mix = TensorTask::new(CUBE, CoreKind::AIC, &[]);
    let mix = mix.mix(&[VECTOR]);
    for _ in 0..3 {
        stream.submit_tensors(&vector())?;
        stream.submit_tensors(&vector().blocks(2))?;
        stream.submit_tensors(&vector())?;
        stream.submit_tensors(&both())?;
        stream.submit_tensors(&vector())?;
        stream.submit_tensors(&mix)?;
    }
    Ok(())
}

/// One cube core and two vector cores, everything free but kernels.
fn run(builder: &str, orch_args: &[u64], build_mode: BuildMode) -> VirtualReport {
    run_seeded(builder, orch_args, build_mode, VirtualOptions::default().seed)
}

/// The same; `seed` decides who is first of those that do something at the same time.
fn run_seeded(builder: &str, orch_args: &[u64], build_mode: BuildMode, seed: u64) -> VirtualReport {
    let mut by_func = vec![KERNEL_NS; 1 + SLOW.index()];
    by_func[SLOW.index()] = 3 * KERNEL_NS;
    let costs = KernelCosts::Table { by_func: by_func.leak(), fallback: KERNEL_NS };
    let options = VirtualOptions {
        profile: Profile::ideal(),
        costs,
        compute: Compute::Off,
        keep: Keep::Events(10_000),
        seed,
        ..VirtualOptions::default()
    };
    let tasks = if build_mode == BuildMode::CONCURRENT { WINDOW } else { 1_024 };
    let shape = LaunchOptions {
        variant: RuntimeVariant::TENSORMAP_AND_RINGBUFFER,
        build_mode,
        aicpu: 2,
        aic: 1,
        aiv: 2,
        capacities: Capacities { tasks, log_entries: 4, ..Capacities::default() }.streamed_whole(),
        ..LaunchOptions::default()
    };
    let mut device = Device::new(Hosting::Virtual(options), shape, GatePrograms);
    let outcome = device.run(builder, orch_args);
    assert_eq!(outcome.fault, None);
    let report = *outcome.virtual_report.expect("the mode is virtual");
    assert_eq!(report.violation_count, 0, "{:?}", report.violations);
    report
}

/// The slots of the tasks whose parts started, in that order. Cores that start at the same time do so in any order.
#[cfg(not(pto_mutants))]
fn started(report: &VirtualReport) -> Vec<u32> {
    slots_of(report, EventKind::Started)
}

/// The slots of the tasks with an event of this kind, once for each event.
#[cfg(not(pto_mutants))]
fn slots_of(report: &VirtualReport, kind: EventKind) -> Vec<u32> {
    let events = report.events.iter().filter(|event| event.kind == kind);
    events.map(|event| event.task).collect()
}

/// The mutant waits for its turn. (A mutant is chosen for the whole process: the other tests are not in this build.)
#[cfg(pto_mutants)]
#[test]
fn a_task_that_gathers_in_its_turn_is_found() {
    use pto_aicpu_fw::mutant::{Mutant, choose};
    choose(Mutant::GathersInItsTurn);
    let graph_ns = run("beside_chains", &[], BuildMode::SEQUENTIAL).graph_ns;
    choose(Mutant::None);
    assert!(graph_ns > 30 * KERNEL_NS, "{graph_ns}");
    // In the same test: which mutant is chosen, is so for the whole process.
    plain_tasks_that_wait_are_found();
}

/// Each task has the cores that it needs before a later one has any of them, whatever kinds they are: in the order in which the
/// schedulers ring the cores.
#[cfg(not(pto_mutants))]
#[test]
fn at_one_priority_the_oldest_goes_first_whatever_its_kind() {
    let expected: Vec<u32> = (0..18)
        .flat_map(|slot| {
            let parts = if slot % 6 % 2 == 0 { 1 } else { 2 };
            std::iter::repeat_n(slot, parts)
        })
        .collect();
    for seed in 0..8 {
        let report = run_seeded("every_kind", &[], BuildMode::SEQUENTIAL, seed);
        assert_eq!(slots_of(&report, EventKind::Dispatched), expected, "seed {seed}");
    }
}

/// A firmware in which plain tasks wait for those with a block shape. (As above, in the build of mutants.)
#[cfg(pto_mutants)]
fn plain_tasks_that_wait_are_found() {
    use pto_aicpu_fw::mutant::{Mutant, choose};
    choose(Mutant::LetsPlainTasksWait);
    let found = std::panic::catch_unwind(|| run("every_kind", &[], BuildMode::SEQUENTIAL));
    choose(Mutant::None);
    assert!(found.is_err(), "the book of parts has seen no older task that waits");
}

/// The core that it has is idle meanwhile, and the second chain could have had it: a task that has cores waits for kernels under
/// way, and for nothing that is ready later.
#[cfg(not(pto_mutants))]
#[test]
fn a_task_that_has_cores_goes_first_whatever_its_priority() {
    let report = run("beside_chains", &[], BuildMode::SEQUENTIAL);
    assert_eq!(report.graph_ns, 21 * KERNEL_NS, "36 where it waits for the chains");
    assert_eq!(started(&report)[..3], [0, 20, 20]);
}

#[cfg(not(pto_mutants))]
#[test]
fn a_task_of_higher_priority_takes_the_place_of_one_that_has_no_core() {
    let report = run("higher_later", &[], BuildMode::SEQUENTIAL);
    assert_eq!(started(&report)[3..], [4, 4, 3, 3]);
    assert_eq!(report.graph_ns, 5 * KERNEL_NS);
}

/// In a run of any length: as long as it has not completed it keeps the window.
#[cfg(not(pto_mutants))]
#[test]
fn a_window_of_later_tasks_goes_before_a_task_of_low_priority_at_most() {
    for (is_sync, is_high) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let report = run("stream", &[is_sync, is_high], BuildMode::CONCURRENT);
        assert_eq!(report.tasks, u64::from(3 + STREAM));
        let before = started(&report).iter().position(|slot| *slot == 2).expect("it started");
        let before = before - 2;
        let most = WINDOW as usize - 1;
        println!("sync {is_sync}, high {is_high}: {before} of at most {most} went before it");
        assert!(before <= most && before > 8, "{before}");
    }
}
