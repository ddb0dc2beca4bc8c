//! What goes wrong on a device, and what a user is told: each trouble ends within the budgets with the fault of the
//! table in docs/reference/injected-faults.md, the report names what it must, the other cores are stopped, and the next run on the
//! same device succeeds. Full pools, queues and rings as well.

use pto_examples::host::{self, Inputs, Params, Prepared};
use pto_host::abi::{BuildMode, Fault};
use pto_host::virtual_time::soak::TROUBLES;
use pto_host::virtual_time::{
    EventKind, Injection, Keep, KernelCosts, VirtualOptions, VirtualReport,
};
use pto_host::{
    Capacities, Device, DeviceOptions, Error, FaultReport, Hosting, RunOptions, TraceOptions,
    WhenFull, Work,
};
use std::time::Duration;

const CORES: usize = 4 + 8;
const TASK_BUDGET: Duration = Duration::from_micros(1_000);
const STALL_BUDGET: Duration = Duration::from_micros(500);
/// Far less than the run takes, so that a core that does not answer ends it in its middle.
const BRING_UP_BUDGET: Duration = Duration::from_micros(50);

/// What a report names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    /// Core, task, kernel, and tasks that wait with their producers.
    CoreTaskKernelProducers,
    /// Core, task, kernel.
    CoreTaskKernel,
    /// The core.
    Core,
    /// The task.
    Task,
    /// Tasks that wait, with their producers.
    Producers,
    /// The builder's code.
    Code,
    /// How far the run was.
    Progress,
    /// How far the ring was read and written.
    Silence,
}

/// In a report that names tasks that wait.
const WAITS: &str = " waits for ";

impl Names {
    fn words(self) -> &'static [&'static str] {
        match self {
            Self::CoreTaskKernelProducers => {
                &["core 2 (aic, cluster 2)", "It concerns task", "kernel dag_node_aic", WAITS]
            }
            Self::CoreTaskKernel => {
                &["core 2 (aic, cluster 2)", "It concerns task", "kernel dag_node_aic"]
            }
            Self::Core => &["core 2 (aic, cluster 2)"],
            Self::Task => &["It concerns task 40"],
            Self::Producers => &["Task 40 waits for 1 producer"],
            Self::Code => &["The builder returned 4711"],
            Self::Progress => &[" were added"],
            Self::Silence => &["AICPU instance 0", "to its trace ring", "were read"],
        }
    }
}

/// Trouble, fault (`None`: the run must pass), what its report names, cores that cannot be stopped.
const TABLE: &[(&str, Option<Fault>, Names, usize)] = &[
    ("no-answer:core=2", Some(Fault::CORE_NO_ANSWER), Names::Core, 1),
    ("hang:core=2,task=1", Some(Fault::STALL_CORE), Names::CoreTaskKernelProducers, 1),
    ("slow=1000:core=2,task=1", Some(Fault::STALL_CORE), Names::CoreTaskKernelProducers, 0),
    ("finish-twice:core=2,task=1", Some(Fault::STALL_CORE), Names::CoreTaskKernel, 0),
    ("wrong-id:core=2,task=1", Some(Fault::CORE_WRONG_STATUS), Names::CoreTaskKernel, 0),
    ("old-id:core=2,task=1", Some(Fault::STALL_CORE), Names::CoreTaskKernelProducers, 0),
    ("doorbell-delayed=20us:core=2,task=1", None, Names::Progress, 0),
    (
        "doorbell-delayed=10ms:core=2,task=1",
        Some(Fault::STALL_CORE),
        Names::CoreTaskKernelProducers,
        0,
    ),
    ("doorbell-lost:core=2,task=1", Some(Fault::STALL_CORE), Names::CoreTaskKernelProducers, 0),
    ("status-delayed=20us:core=2,task=1", None, Names::Progress, 0),
    (
        "status-delayed=10ms:core=2,task=1",
        Some(Fault::STALL_CORE),
        Names::CoreTaskKernelProducers,
        0,
    ),
    ("no-flush:core=2,task=1", None, Names::Progress, 0),
    ("no-invalidate:core=2,task=1", None, Names::Progress, 0),
    ("corrupt-line:task=40", Some(Fault::SCHEDULE_TASK_STATE), Names::Task, 0),
    ("corrupt-count:task=40", Some(Fault::STALL_DEADLOCK), Names::Producers, 0),
    ("host-dies:task=40", Some(Fault::RUN_CANCELLED), Names::Progress, 0),
    // Nobody waits for a host that reads no rings, unless the run is traced as a whole: see below.
    ("host-silent:task=40", None, Names::Progress, 0),
    ("builder-stops:task=399", Some(Fault::STALL_BUILDER), Names::Progress, 0),
    ("builder-fails:task=40", Some(Fault::BUILD_FAILED), Names::Code, 0),
];

fn open(injection: Option<Injection>) -> Device {
    open_with(injection, 0)
}

fn open_with(injection: Option<Injection>, seed: u64) -> Device {
    let keep = Keep::Events(1_000_000);
    // Long enough that tasks wait for each other when something goes wrong.
    let costs = KernelCosts::Constant(2_000);
    let virtual_time = VirtualOptions { injection, keep, costs, seed, ..VirtualOptions::default() };
    let hosting = Hosting::Virtual(virtual_time);
    let options = DeviceOptions { aic: 4, aiv: 8, hosting, ..DeviceOptions::default() };
    let mut device = host::open_sim(options).expect("the device opens");
    device.register_library().expect("the library registers");
    device
}

fn prepare(device: &Device) -> Prepared {
    let example = host::find("random_dag").expect("the example exists");
    let mut params = Params::defaults(example.params());
    params.set("tasks", "400").expect("the size is accepted");
    example.prepare(&params, &Inputs::default(), device).expect("there is room")
}

fn options(capacities: Capacities) -> RunOptions {
    RunOptions {
        capacities,
        task_budget: TASK_BUDGET,
        stall_budget: STALL_BUDGET,
        bring_up_budget: BRING_UP_BUDGET,
        ..RunOptions::default()
    }
}

fn run(
    device: &mut Device,
    prepared: &mut Prepared,
    options: &RunOptions,
) -> Result<VirtualReport, Box<FaultReport>> {
    prepared.reset().expect("the outputs are reset");
    let work = Work::AicpuBuilder { builder: prepared.builder(), orch_args: prepared.orch_args() };
    match device.run(work, options) {
        Ok(report) => Ok(*report.virtual_report.expect("it is virtual")),
        Err(Error::Fault { report, .. }) => Err(report),
        Err(error) => panic!("{error}"),
    }
}

fn passes(device: &mut Device, prepared: &mut Prepared) -> VirtualReport {
    let options = options(prepared.capacities());
    let report = run(device, prepared, &options).unwrap_or_else(|fault| panic!("{fault}"));
    assert!(prepared.verify().expect("the outputs are read").passed());
    assert_eq!(report.violation_count, 0, "{:?}", report.violations);
    report
}

fn left(report: &VirtualReport) -> usize {
    report.events.iter().filter(|event| event.kind == EventKind::Left).count()
}

/// Places at which a trouble is tried: where a core has its next dispatch already, that one's doorbell or report may say
/// what was lost of the one before, and nothing comes of it.
const TRIES: u32 = 64;

/// Seeds with which they are tried.
const SEEDS: u64 = 8;

/// The first seed, and the first point from that of `injection` on, at which the run faults. If its report is to name tasks that wait, places at which nobody
/// waits for the task are passed over.
fn first_fault(injection: Injection, names: Names) -> (Box<FaultReport>, Device, Prepared) {
    let needs_waiters = names.words().contains(&WAITS);
    let places = if injection.trouble.is_builders() { 1 } else { TRIES };
    for seed in 0..SEEDS {
        for at in injection.at..injection.at + places {
            let mut device = open_with(Some(Injection { at, ..injection }), seed);
            let mut prepared = prepare(&device);
            let options = options(prepared.capacities());
            let report = match run(&mut device, &mut prepared, &options) {
                Err(fault_report) if needs_waiters && !fault_report.to_string().contains(WAITS) => {
                    continue;
                }
                Err(fault_report) => return (fault_report, device, prepared),
                Ok(report) => report,
            };
            assert!(prepared.verify().expect("the outputs are read").passed(), "{injection}");
            if report.injections == 0 {
                // The core has fewer tasks.
                assert!(at > injection.at, "{injection} did not happen");
                break;
            }
        }
    }
    panic!("{injection}: no fault");
}

fn check(spec: &str, fault_report: FaultReport, fault: Fault, names: Names, lost: usize) {
    let text = fault_report.to_string();
    assert_eq!(fault_report.fault, fault, "{spec}: {text}");
    for word in names.words().iter().chain(&["raised it", "What to do: "]) {
        assert!(text.contains(word), "{spec}: no {word:?} in\n{text}");
    }
    let report = fault_report.virtual_report.expect("it is virtual");
    assert!(report.injections > 0, "{spec} did not happen");
    let budgets = TASK_BUDGET + STALL_BUDGET + 2 * BRING_UP_BUDGET;
    // The run itself takes less than a millisecond.
    let bound = budgets.as_nanos() + 1_000_000;
    assert!(u128::from(report.makespan_ns) < bound, "{spec}: {} ns", report.makespan_ns);
    assert_eq!(left(&report), CORES - lost, "{spec}: cores that left their loops");
}

#[test]
fn each_trouble_is_told_as_the_table_says_and_the_next_run_succeeds() {
    for &(spec, fault, names, lost) in TABLE {
        let injection: Injection = spec.parse().expect("a fault");
        let (mut device, mut prepared) = match fault {
            None => {
                let mut device = open(Some(injection));
                let mut prepared = prepare(&device);
                assert!(passes(&mut device, &mut prepared).injections > 0, "{spec} did not happen");
                (device, prepared)
            }
            Some(fault) => {
                let (fault_report, device, prepared) = first_fault(injection, names);
                check(spec, *fault_report, fault, names, lost);
                (device, prepared)
            }
        };
        assert_eq!(passes(&mut device, &mut prepared).injections, 0, "{spec} happens once");
    }
}

#[test]
fn a_run_that_waits_for_a_silent_host_ends() {
    let injection: Injection = "host-silent:task=40".parse().expect("a fault");
    let mut device = open(Some(injection));
    let mut prepared = prepare(&device);
    let trace = TraceOptions {
        instance_events: Some(64),
        core_events: Some(64),
        when_full: WhenFull::Wait,
    };
    let options = RunOptions { trace: Some(trace), ..options(prepared.capacities()) };
    let fault_report =
        run(&mut device, &mut prepared, &options).expect_err("nobody reads the rings");
    // Instance 0, which builds, has written 64 events more before any other ring was full.
    check("host-silent", *fault_report, Fault::STALL_TRACE, Names::Silence, 0);
    // The same device, whose host answers again, and the whole run is traced.
    run(&mut device, &mut prepared, &options).unwrap_or_else(|fault| panic!("{fault}"));
    assert!(prepared.verify().expect("the outputs are read").passed());
}

#[test]
fn the_table_is_whole_and_stands_in_the_documentation() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/injected-faults.md");
    let page = std::fs::read_to_string(path).expect("the page is there");
    for (spec, fault, ..) in TABLE {
        let name = spec.split([':', '=']).next().unwrap_or_default();
        let fault = fault.map_or("none", |fault| fault.name());
        let row = page
            .lines()
            .find(|line| line.starts_with(&format!("| `{name}")) && line.contains(fault));
        assert!(
            row.is_some(),
            "docs/reference/injected-faults.md has no row for {name} with {fault}"
        );
    }
    for trouble in TROUBLES {
        let kind = trouble.to_string();
        let name = kind.split('=').next().unwrap_or_default();
        assert!(TABLE.iter().any(|(spec, ..)| spec.starts_with(name)), "{name}");
    }
}

#[test]
fn full_pools_name_the_capacity_and_the_next_run_succeeds() {
    type Short = fn(&mut Capacities);
    let cases: [(Short, Fault, &str); 3] = [
        (|c| c.tasks -= 1, Fault::BUILD_TASKS_FULL, "capacities.tasks"),
        (|c| c.arg_words -= 1, Fault::BUILD_PAYLOADS_FULL, "capacities.arg_words"),
        (|c| c.edges = 0, Fault::BUILD_EDGES_FULL, "capacities.edges"),
    ];
    for (shorten, fault, words) in cases {
        let mut device = open(None);
        let mut prepared = prepare(&device);
        let mut capacities = prepared.capacities();
        shorten(&mut capacities);
        let fault_report = run(&mut device, &mut prepared, &options(capacities)).expect_err(words);
        assert_eq!(fault_report.fault, fault);
        let text = fault_report.to_string();
        assert!(text.contains(words) && text.contains("AICPU instance 0"), "{text}");
        assert_eq!(left(&fault_report.virtual_report.expect("it is virtual")), CORES);
        passes(&mut device, &mut prepared);
    }
}

#[test]
fn full_queues_and_full_rings_are_no_fault() {
    let mut device = open(None);
    let mut prepared = prepare(&device);
    // Everything that is ready at once is in the queues before a scheduler takes the first.
    let sequential =
        RunOptions { build_mode: BuildMode::SEQUENTIAL, ..options(prepared.capacities()) };
    run(&mut device, &mut prepared, &sequential).unwrap_or_else(|fault| panic!("{fault}"));
    assert!(prepared.verify().expect("the outputs are read").passed());
    let trace =
        TraceOptions { instance_events: Some(8), core_events: Some(8), ..TraceOptions::default() };
    let traced = RunOptions { trace: Some(trace), ..options(prepared.capacities()) };
    run(&mut device, &mut prepared, &traced).unwrap_or_else(|fault| panic!("{fault}"));
    assert!(prepared.verify().expect("the outputs are read").passed());
}
