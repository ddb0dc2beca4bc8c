//! Traces made by hand.

use std::collections::BTreeMap;

use pto_abi::CoreKind;
use pto_abi::trace::TraceOwner;
use pto_host::timeline::{Edge, Moments, RingCounts, Task, Trace};

/// A task on a core: published, ready, dispatched, started, finished, completed.
pub(crate) fn task(kind: CoreKind, core: u32, moments: [u64; 6]) -> Task {
    let [published, ready, dispatched, started, finished, completed] = moments.map(Some);
    let added = published;
    let at = Moments {
        added,
        published,
        ready,
        dispatched,
        started,
        finished,
        completed,
        skipped: None,
    };
    Task { func_id: u16::from(kind.get()), kind, core: Some(core), scheduler: Some(1), at }
}

pub(crate) fn edge(producer: u32, consumer: u32) -> Edge {
    Edge { producer, consumer }
}

/// One AIC, two AIV. Task 0 and 1 on the AIV, task 2 on the AIC after task 0.
///
/// ```text
///         0   10  20      60        120 130  150 160  200 210
/// aiv 0   r d     [ task 0          ] c
/// aiv 1   r d     [ task 1 ]          c
/// aic 0                                r    d    [ task 2 ] c
/// ```
pub(crate) fn three_tasks() -> Trace {
    let lane = RingCounts { owner: TraceOwner::Instance(1), read: 9, dropped: 0 };
    Trace {
        run: BTreeMap::from([("example".to_owned(), "by \"hand\"".to_owned())]),
        cores: vec![CoreKind::AIC, CoreKind::AIV, CoreKind::AIV],
        instances: 2,
        kernels: BTreeMap::from([(0, "matmul".to_owned()), (1, "add".to_owned())]),
        tasks: vec![
            task(CoreKind::AIV, 1, [0, 0, 10, 20, 120, 130]),
            task(CoreKind::AIV, 2, [0, 0, 10, 20, 60, 130]),
            task(CoreKind::AIC, 0, [0, 130, 150, 160, 200, 210]),
        ],
        task_names: Vec::new(),
        parts: Vec::new(),
        edges: vec![edge(0, 2)],
        lanes: vec![lane],
        end_ns: 210,
        makespan_ns: Some(250),
        critical_path_ns: None,
        fault: None,
        names: None,
        rank: None,
        began_ns: 0,
    }
}
