//! The timeline of tasks with several parts: each part is on the core that ran it, with its kernel and its block.

use std::collections::BTreeSet;

use pto_host::abi::CoreKind;
use pto_host::timeline::{Analysis, Trace, file};
use pto_host::{Device, Hosting, RunOptions, TraceOptions, Work};

use super::support::{hostings, open, small};

/// Four tasks over one table, one after the other.
const TASKS: u64 = 4;

fn traced(device: &mut Device, lanes: u64, blocks: u64, sync: u64) -> Trace {
    let cells = device.zeroed::<u64>(3 * usize::try_from(blocks).unwrap()).unwrap();
    let options =
        RunOptions { aicpu_instances: 4, trace: Some(TraceOptions::default()), ..small() };
    let args = [cells.address().0, lanes, blocks, TASKS, sync];
    let work = Work::Stream { builder: "every_shape", orch_args: &args };
    *device.run(work, &options).unwrap().trace.unwrap()
}

fn check(trace: &Trace, hosting: Hosting, lanes: u64, blocks: u32) {
    let kernels = |kind| if kind == CoreKind::AIC { "mark_aic" } else { "mark_aiv" };
    let count = blocks * lanes.count_ones();
    let parts = trace.parts.len();
    assert_eq!(parts as u64, TASKS * u64::from(count), "{hosting:?} {lanes:b} {blocks}");
    let mut seen = BTreeSet::new();
    for part in &trace.parts {
        let (run, at) = (part.run, part.run.at);
        let core = run.core.unwrap();
        assert_eq!((run.kind, trace.kernel(run.func_id)), {
            let kind = trace.cores[core as usize];
            (kind, kernels(kind).to_owned())
        });
        assert!(part.block < blocks && seen.insert((part.task, part.block, run.kind, part.lane)));
        let moments = [at.ready, at.dispatched, at.started, at.finished, at.completed];
        assert!(moments.iter().all(Option::is_some) && moments.is_sorted(), "{moments:?}");
        assert!(at.completed <= trace.task(part.task).unwrap().at.completed);
        // Parts of a block are in one cluster: cube core c, vector cores 2 c and 2 c + 1.
        let aic = u32::try_from(trace.core_count(CoreKind::AIC)).unwrap();
        let cluster = if core < aic { core } else { (core - aic) / 2 };
        let of_block = trace.parts.iter().filter(|p| (p.task, p.block) == (part.task, part.block));
        let clusters = of_block.map(|p| {
            let core = p.run.core.unwrap();
            if core < aic { core } else { (core - aic) / 2 }
        });
        assert!(clusters.into_iter().all(|other| other == cluster), "block {}", part.block);
    }
    let analysis = Analysis::of(trace).unwrap();
    assert_eq!(analysis.parts_run, parts);
    assert_eq!(analysis.kernels.iter().map(|kernel| kernel.count).sum::<usize>(), parts);
    for kind in &analysis.kinds {
        let no_work = kind.no_work.total_ns();
        let sum = kind.busy_ns + kind.staged_ns + kind.overhead_ns + kind.polling_ns + no_work;
        assert_eq!(sum, kind.cores as u64 * analysis.graph_ns, "{hosting:?} {lanes:b}: {kind:?}");
    }
    let mut bytes = Vec::new();
    file::write(trace, &mut bytes).unwrap();
    assert_eq!(file::read(&bytes).unwrap(), *trace);
}

#[test]
fn every_part_is_on_its_core_with_its_block() {
    for hosting in hostings() {
        let mut device = open(hosting, 3, 6);
        for (lanes, blocks, sync) in [(2, 11, 0), (7, 4, 0), (6, 3, 1), (3, 1, 0), (1, 3, 1)] {
            let trace = traced(&mut device, lanes, blocks, sync);
            check(&trace, hosting, lanes, u32::try_from(blocks).unwrap());
        }
        // One kernel on one core has no parts.
        assert_eq!(traced(&mut device, 2, 1, 0).parts, []);
    }
}
