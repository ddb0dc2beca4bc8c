//! The analysis of traces whose numbers can be worked out by hand.

use pto_abi::CoreKind;
use pto_host::timeline::analysis::{Analysis, AnalysisError, KindTime, Link, NoWork};
use pto_host::timeline::{EndFault, Limit, Moments, RowNames, Task, Trace};

use crate::hand::{self, edge, task, three_tasks};

fn analysis(trace: &Trace) -> Analysis {
    Analysis::of(trace).expect("the trace can be analysed")
}

/// Everything that a core can do, summed, is all the time that there is.
fn adds_up(analysis: &Analysis) {
    for kind in &analysis.kinds {
        let spent = kind.busy_ns + kind.staged_ns + kind.overhead_ns + kind.polling_ns;
        let all = kind.cores as u64 * analysis.graph_ns;
        assert_eq!(spent + kind.no_work.total_ns(), all, "{kind:?}");
    }
}

#[test]
fn three_tasks_on_three_cores() {
    let trace = three_tasks();
    let found = analysis(&trace);
    adds_up(&found);
    assert_eq!((found.makespan_ns, found.graph_ns), (Some(250), 210));
    assert_eq!((found.tasks, found.tasks_timed, found.parts_run, found.edges), (3, 3, 3, 1));
    assert_eq!((found.bounds.critical_path_ns, found.bounds.largest_ns), (140, 140));
    let works: Vec<_> =
        found.bounds.work.iter().map(|work| (work.work_ns, work.bound_ns)).collect();
    assert_eq!(works, [(40, 40), (140, 70)]);
    assert_eq!(found.critical_path, [0, 2]);
    assert_eq!(found.overhead_ns, 30);
    let aic = KindTime {
        kind: CoreKind::AIC,
        cores: 1,
        busy_ns: 40,
        staged_ns: 10,
        overhead_ns: 20,
        polling_ns: 10,
        no_work: NoWork { producers_ns: 130, ..NoWork::default() },
        overhead_span_ns: 20,
    };
    let aiv = KindTime {
        kind: CoreKind::AIV,
        cores: 2,
        busy_ns: 140,
        staged_ns: 20,
        overhead_ns: 20,
        polling_ns: 80,
        no_work: NoWork { nothing_left_ns: 160, ..NoWork::default() },
        overhead_span_ns: 10,
    };
    assert_eq!(found.kinds, [aic, aiv]);
    assert!((found.over_bound() - 1.5).abs() < 1e-9);
}

/// A machine that has followed the paths of tasks that had retired knows a longer one than the edges show.
#[test]
fn the_bound_is_the_longest_path_that_is_known() {
    let known = Trace { critical_path_ns: Some(180), ..three_tasks() };
    let bounds = analysis(&known).bounds;
    assert_eq!(
        (bounds.critical_path_ns, bounds.traced_path_ns, bounds.largest_ns),
        (180, 140, 180)
    );
    let text = pto_host::timeline::report::text(&known, &analysis(&known));
    assert!(text.contains("of which the edges of the trace show 140 ns: 2 tasks"), "{text}");
    // The events of some tasks are lost: the path may lead through them.
    let mut lossy = known;
    lossy.lanes[0].dropped = 1;
    assert_eq!(analysis(&lossy).bounds.critical_path_ns, 140);
}

#[test]
fn a_change_that_is_shown_as_nothing_has_no_sign() {
    let change = |run, against| {
        pto_host::timeline::compare::Pair {
            name: String::new(),
            run: Some(run),
            against: Some(against),
        }
        .change()
    };
    let changes = [change(9_999, 10_000), change(10_001, 10_000), change(0, 0), change(7, 7)];
    assert_eq!(changes, ["0.0 %"; 4]);
    assert_eq!([change(9, 10), change(11, 10), change(1, 0)], ["-10.0 %", "+10.0 %", "-"]);
}

#[test]
fn the_chain_of_three_tasks_is_the_whole_run() {
    let chain = analysis(&three_tasks()).chain;
    let first =
        Link { task: 0, dispatching_ns: 10, starting_ns: 10, running_ns: 100, ..Link::default() };
    let second = Link {
        task: 2,
        collecting_ns: 10,
        dispatching_ns: 20,
        starting_ns: 10,
        running_ns: 40,
        ..Link::default()
    };
    assert_eq!(chain.links, [first, second]);
    assert_eq!((chain.collecting_ns, chain.dispatching_ns, chain.starting_ns), (10, 30, 20));
    assert_eq!(chain.running_ns, 140);
}

#[test]
fn waits_say_what_for_and_whether_a_core_was_idle() {
    let waits = analysis(&three_tasks()).waits;
    let found: Vec<_> = waits
        .iter()
        .map(|wait| {
            (wait.task, wait.wait_ns, wait.dispatching_ns, wait.idle_core_ns, wait.starting_ns)
        })
        .collect();
    assert_eq!(found, [(2, 30, 20, 20, 10), (0, 20, 10, 10, 10), (1, 20, 10, 10, 10)]);
    assert_eq!((waits[0].core.as_str(), waits[0].kernel.as_str()), ("aic 0", "matmul"));
}

/// The rows are streams: there is no scheduler that could be made faster.
#[test]
fn a_program_is_bound_by_its_commands_or_by_the_host() {
    let kinds = vec!["host".to_owned(), "stream".to_owned()];
    let rows = ["thread 1 calls", "stream 1", "stream 2"].map(str::to_owned).to_vec();
    let kernels = ["aclrtMemcpy", "copy to device, 64 bytes", "event wait", "scale"];
    let named = (0_u16..).zip(kernels.map(str::to_owned)).collect();
    let command = |func_id, kind, core, [started, finished]: [u64; 2]| Task {
        func_id,
        ..hand::task(kind, core, [started, started, started, started, finished, finished])
    };
    let mut trace = Trace {
        cores: vec![CoreKind::AIC, CoreKind::AIV, CoreKind::AIV],
        kernels: named,
        tasks: vec![
            command(0, CoreKind::AIC, 0, [0, 1000]),
            command(1, CoreKind::AIV, 1, [100, 800]),
            command(2, CoreKind::AIV, 2, [0, 800]),
            command(3, CoreKind::AIV, 2, [800, 1000]),
        ],
        end_ns: 1000,
        names: Some(RowNames { kinds, rows }),
        ..Trace::default()
    };
    let limit = |trace: &Trace| {
        let limit = Limit::of(trace, &analysis(trace)).expect("something takes time");
        (limit.name, limit.ns)
    };
    assert_eq!(limit(&trace), ("copy to device, 64 bytes".to_owned(), 700));
    // Two at once count once.
    trace.tasks.push(command(1, CoreKind::AIV, 2, [150, 250]));
    assert_eq!(limit(&trace).1, 700);
    trace.tasks.truncate(3);
    trace.end_ns = 2000;
    assert_eq!(limit(&trace), ("the host".to_owned(), 1300));
}

#[test]
fn statistics_per_kernel() {
    let mut trace = three_tasks();
    trace.end_ns = 10_000;
    trace.tasks = (1..=100).map(|n| task(CoreKind::AIV, 1, [0, 0, 5, 10, 10 + n, 200])).collect();
    trace.edges.clear();
    let found = analysis(&trace);
    let add = &found.kernels[0];
    assert_eq!((add.kernel.as_str(), add.count, add.total_ns), ("add", 100, 5050));
    assert_eq!((add.min_ns, add.median_ns, add.p95_ns, add.max_ns), (1, 50, 95, 100));
    assert_eq!((add.mean_wait_ns, found.waits.len()), (10, 10));
}

/// One AIV; the second task is published long after the first has finished.
#[test]
fn a_slow_builder_is_distinguished_from_dependencies() {
    let mut trace = three_tasks();
    trace.tasks = vec![
        task(CoreKind::AIV, 1, [50, 50, 50, 50, 80, 80]),
        task(CoreKind::AIV, 1, [180, 180, 180, 180, 210, 210]),
    ];
    trace.edges = vec![edge(0, 1)];
    let found = analysis(&trace);
    adds_up(&found);
    let aiv = &found.kinds[1];
    assert_eq!(aiv.no_work, NoWork { builder_ns: 130 + 100, producers_ns: 0, nothing_left_ns: 30 });
    assert_eq!((aiv.overhead_ns, found.overhead_ns), (0, 0));
    assert_eq!(found.chain.links.len(), 1, "the builder ends the chain");
    assert_eq!((found.graph_ns, found.chain.building_ns, found.chain.running_ns), (160, 130, 30));
}

/// The next task is staged while the core is busy: no core waits, and nothing is counted twice.
#[test]
fn a_task_staged_on_a_busy_core_is_not_a_staged_core() {
    let mut trace = three_tasks();
    trace.cores = vec![CoreKind::AIV];
    trace.end_ns = 200;
    trace.tasks = vec![
        task(CoreKind::AIV, 0, [0, 0, 0, 0, 100, 120]),
        task(CoreKind::AIV, 0, [0, 0, 50, 100, 200, 200]),
    ];
    trace.edges.clear();
    let found = analysis(&trace);
    adds_up(&found);
    let aiv = &found.kinds[0];
    assert_eq!((aiv.busy_ns, aiv.staged_ns, aiv.polling_ns, aiv.overhead_ns), (200, 0, 0, 0));
    assert_eq!(found.kinds.len(), 1);
}

#[test]
fn a_ready_task_while_an_end_is_unseen_is_overhead() {
    let mut trace = three_tasks();
    trace.cores = vec![CoreKind::AIV];
    trace.end_ns = 200;
    trace.tasks = vec![
        task(CoreKind::AIV, 0, [0, 0, 0, 0, 100, 130]),
        task(CoreKind::AIV, 0, [0, 0, 130, 130, 200, 200]),
    ];
    trace.edges.clear();
    let found = analysis(&trace);
    adds_up(&found);
    assert_eq!(
        (found.overhead_ns, found.kinds[0].overhead_ns, found.kinds[0].polling_ns),
        (30, 30, 0)
    );
}

#[test]
fn what_is_not_known_is_counted_and_invents_nothing() {
    let mut trace = three_tasks();
    trace.lanes[0].dropped = 4;
    trace.tasks[1].at = Moments { published: Some(0), ready: Some(0), ..Moments::default() };
    trace.tasks[2].at.finished = None;
    trace.tasks[2].at.completed = None;
    let found = analysis(&trace);
    adds_up(&found);
    assert_eq!((found.tasks, found.tasks_timed, found.events_dropped), (3, 1, 4));
    assert_eq!(found.kinds[0].busy_ns, 50, "it runs to the end");
    assert_eq!(found.kinds[1].overhead_span_ns, 210 - 10 + 10, "task 1 waits to the end");
}

/// The kernel of task 2 hangs: the run ends with a fault long after the last event, and the kernel has not run to its end.
#[test]
fn a_kernel_that_does_not_end_is_no_run_and_keeps_its_core_busy_to_the_fault() {
    let mut trace = Trace { end_ns: 1000, fault: Some(hang()), ..three_tasks() };
    (trace.tasks[2].at.finished, trace.tasks[2].at.completed) = (None, None);
    let found = analysis(&trace);
    adds_up(&found);
    assert_eq!((found.graph_ns, found.parts_run, found.parts_unfinished), (1000, 2, 1));
    assert!(found.kernels.iter().all(|kernel| kernel.kernel == "add"), "{:?}", found.kernels);
    assert_eq!(found.kinds[0].busy_ns, 1000 - 160);
    let text = pto_host::timeline::report::text(&trace, &found);
    assert!(text.contains("parts         2, 1 more did not end"), "{text}");
}

fn hang() -> EndFault {
    EndFault {
        code: 0x6_0001,
        name: "STALL_CORE".to_owned(),
        sentence: "A task runs too long.".to_owned(),
        remedy: "Look at its kernel.".to_owned(),
        core: Some(0),
        task: Some(2),
        instance: Some(1),
    }
}

#[test]
fn what_cannot_be_analysed_is_refused() {
    let mut trace = three_tasks();
    trace.edges = vec![edge(0, 2), edge(2, 0)];
    assert_eq!(Analysis::of(&trace), Err(AnalysisError::Cycle(0)));
    trace.tasks.clear();
    trace.edges.clear();
    assert_eq!(Analysis::of(&trace), Err(AnalysisError::Empty));
}
