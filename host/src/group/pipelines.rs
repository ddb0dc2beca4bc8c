//! Pipelines whose processes are on several ranks: tokens bring their tiles along, in every hosting mode, and channels keep their depth.

use pto_graph::NoBuilders;
use pto_graph::plan::BUILDER;
use pto_sim_shim::virtual_time::VirtualOptions;
use pto_workload::clock::{self, Bindings};
use pto_workload::plan::{Compiled, compile};
use pto_workload::tree::Workload;
use std::num::NonZeroUsize;
use std::time::Duration;

use super::{Group, GroupError, GroupOptions, GroupReport, GroupWork, NetFaults, NetworkProfile};
use crate::workload::{WorkloadBindings, WorkloadRun};
use crate::{DeviceBuffer, DeviceOptions, Hosting, RunOptions};

/// Two producers of different speed, so that the order of the tokens decides the sum; its halves are columns, which are not dense. The writer keeps
/// what it has got. Each of the four is on a rank of its own, and all tensors but `X` are written on one rank alone.
const FOLD: &str = include_str!("../../../examples/workloads/fold_on_ranks.workload");
const ROWS: usize = 48;
const COLUMNS: usize = 16;

/// The tensors of [`FOLD`], and the declared rank that has each at the end.
const TENSORS: [(&str, usize, u32); 4] = [
    ("X", ROWS * COLUMNS, 0),
    ("ROWS", ROWS * COLUMNS, 0),
    ("SUM", 2 * COLUMNS, 0),
    ("LOG", ROWS * COLUMNS, 3),
];
const POOL: Hosting = Hosting::Pool { os_threads: NonZeroUsize::MIN };

fn seeded(seed: u64) -> Hosting {
    Hosting::Virtual(VirtualOptions { seed, ..VirtualOptions::default() })
}

fn values(elements: usize) -> Vec<f32> {
    (0..elements).map(|at| (at * 37 % 101) as f32 / 101.0 - 0.5).collect()
}

fn text(depth: u64) -> String {
    FOLD.replace("channel rows depth 2", &format!("channel rows depth {depth}"))
}

fn group_with(size: u32, hosting: Hosting, faults: NetFaults) -> Group {
    let device = DeviceOptions { aic: 1, aiv: 3, gm_bytes: 512 << 20, hosting };
    let of_group = GroupOptions { device, ..GroupOptions::default() };
    match hosting {
        Hosting::Virtual(_) => {
            let network = (NetworkProfile::by_name("a3-pod").unwrap(), faults);
            Group::open_virtual(size, &of_group, network, NoBuilders).unwrap()
        }
        _ => Group::open_local(size, &of_group, NoBuilders).unwrap(),
    }
}

fn group(size: u32, hosting: Hosting) -> Group {
    group_with(size, hosting, NetFaults::default())
}

fn compiled(text: &str) -> Compiled {
    let workload = Workload::parse(text).unwrap();
    // What is printed is read again.
    assert_eq!(Workload::parse(&workload.to_string()).unwrap(), workload);
    compile(&workload.check().unwrap()).unwrap()
}

/// A run of a workload on the tensors of [`FOLD`], of a rank.
struct Rank {
    run: WorkloadRun,
    tensors: Vec<DeviceBuffer<f32>>,
}

fn bind(group: &Group, text: &str) -> Vec<Rank> {
    let bind = |member: &super::RankDevice| {
        let device = member.device();
        let fill = |(number, (_, elements, _)): (usize, &(&str, usize, u32))| match number {
            0 => device.upload(&values(*elements)).unwrap(),
            _ => device.zeroed::<f32>(*elements).unwrap(),
        };
        let tensors: Vec<_> = TENSORS.iter().enumerate().map(fill).collect();
        let named = TENSORS.iter().zip(&tensors);
        let bound = named.fold(WorkloadBindings::new(), |bound, ((name, ..), buffer)| {
            bound.tensor(name, buffer.address())
        });
        Rank { run: WorkloadRun::bind(device, compiled(text), &bound).unwrap(), tensors }
    };
    group.members().iter().map(bind).collect()
}

fn run(group: &mut Group, ranks: &[Rank], budget: Duration) -> Result<GroupReport, GroupError> {
    let args = |rank: u32| ranks[rank as usize].run.orch_args().to_vec();
    let options = RunOptions { aicpu_instances: 2, stall_budget: budget, ..RunOptions::default() };
    group.run(&GroupWork { builder: BUILDER, args: &args }, &options)
}

/// The bits of all tensors, each from the rank that has it.
fn outcome(group: &mut Group, text: &str) -> Vec<Vec<u32>> {
    let ranks = bind(group, text);
    run(group, &ranks, Duration::from_secs(60)).unwrap();
    let size = group.size();
    let read = |(number, (_, _, rank)): (usize, &(&str, usize, u32))| {
        ranks[(rank % size) as usize].tensors[number].read().unwrap()
    };
    let read = TENSORS.iter().enumerate().map(read);
    read.map(|tensor| tensor.into_iter().map(f32::to_bits).collect()).collect()
}

/// In program order on this machine.
fn reference(text: &str) -> Vec<Vec<u32>> {
    let checked = Workload::parse(text).unwrap().check().unwrap();
    let mut tensors: Vec<Vec<f32>> =
        TENSORS.iter().map(|(_, count, _)| vec![0.0; *count]).collect();
    tensors[0] = values(ROWS * COLUMNS);
    let bound =
        TENSORS.iter().zip(&mut tensors).fold(Bindings::new(), |bound, (tensor, memory)| {
            bound.dense(&checked, tensor.0, memory).unwrap()
        });
    clock::run(&checked, &bound).unwrap();
    drop(bound);
    tensors.into_iter().map(|tensor| tensor.into_iter().map(f32::to_bits).collect()).collect()
}

/// No token is lost, none comes twice, and their order is the same wherever the processes are.
#[test]
fn a_pipeline_on_ranks_has_the_bits_of_one_device() {
    for depth in [0, 1, 3] {
        let text = text(depth);
        let expected = reference(&text);
        for size in [1, 2, 3, 4, 5] {
            for hosting in [POOL, seeded(1), seeded(2)] {
                let found = outcome(&mut group(size, hosting), &text);
                for ((tensor, found), expected) in TENSORS.iter().zip(found).zip(&expected) {
                    assert!(found == *expected, "{} of {size} ranks, depth {depth}", tensor.0);
                }
            }
        }
    }
}

/// The fault of each rank after a run, as text; empty if it has none.
fn fault_texts(ranks: &[Rank]) -> Vec<String> {
    let faults = ranks.iter().map(|rank| rank.run.fault().unwrap());
    faults.map(|fault| fault.map(|fault| fault.to_string()).unwrap_or_default()).collect()
}

/// A sender whose receiver is slower: how long the rank of the sender is at work, with a channel of this depth.
fn sender_time(depth: u64) -> Duration {
    let text = format!(
        "{}
  do pipeline {{
    process sender on 1 produces rows {{
      each i in dense 24 {{
        send rows quick[i](x = X[i * 2 for 2], row = ROWS[i * 2 for 2])
      }}
    }}
    process receiver consumes rows {{
      consume rows as t {{
        sequential {{
          each turn in dense 8 {{ slow[t](x = ROWS[t * 2 for 2], row = SUM) }}
        }}
      }}
    }}
  }}
}}",
        text(depth).split("  do pipeline").next().unwrap().replace("channel sums depth 0", "")
    );
    let mut group = group(2, seeded(0));
    let ranks = bind(&group, &text);
    let report = run(&mut group, &ranks, Duration::from_secs(60)).unwrap();
    report.ranks[1].run.makespan
}

/// The receiver returns its slots by messages to the sender's rank, which does not run ahead without them.
#[test]
fn a_sender_waits_for_room_on_another_rank() {
    let [shallow, deeper, deep] = [1, 8, 24].map(sender_time);
    assert!(shallow > deeper && deeper > deep * 2, "{shallow:?}, {deeper:?}, {deep:?}");
}

/// Every rank that reaches the deadlock reports the same. In real time the failure of one rank may stop the other one before that.
#[test]
fn a_deadlock_of_processes_of_two_ranks_is_reported() {
    let head = text(1).replace("depth 0", "depth 1");
    let text = format!(
        "{}
  do pipeline {{
    process a consumes sums produces rows {{
      consume sums as t {{ send rows quick[t](x = X[t * 2 for 2], row = ROWS[t * 2 for 2]) }}
    }}
    process b on 1 consumes rows produces sums {{
      sequential {{
        each t in dense 3 {{ send sums quick[t](x = X[t * 2 for 2], row = SUM) }}
        each t in dense 3 {{ send sums quick[t](x = X[t * 2 for 2], row = SUM) }}
        consume rows as t {{ quick[t](x = ROWS[t * 2 for 2], row = LOG[t]) }}
      }}
    }}
  }}
}}",
        head.split("  do pipeline").next().unwrap()
    );
    let waits = "a waits until b on rank 1 takes a token of rows; b on rank 1 waits until a takes a token of sums";
    for hosting in [POOL, seeded(3)] {
        let mut group = group(2, hosting);
        let ranks = bind(&group, &text);
        let failed = run(&mut group, &ranks, Duration::from_secs(60)).unwrap_err().to_string();
        assert!(failed.contains("PLAN_DEADLOCK"), "{failed}");
        let texts = fault_texts(&ranks);
        assert!(
            texts.iter().any(|text| text.contains(&format!("in a deadlock: {waits}."))),
            "{texts:?}"
        );
        let reaches_it = |text: &String| text.is_empty() || text.contains(waits);
        let is_stopped = |text: &String| {
            matches!(hosting, Hosting::Pool { .. }) && text.contains("TRANSFER_FAILED")
        };
        assert!(texts.iter().all(|text| reaches_it(text) || is_stopped(text)), "{texts:?}");
    }
}

/// A transfer that the network loses, whichever it is, ends the run with its ranks.
#[test]
fn a_token_that_the_network_loses_is_reported() {
    for lost in [0, 1, 2, 7, 30, 100] {
        let faults = NetFaults { lost: Some(lost), ..NetFaults::default() };
        let mut group = group_with(4, seeded(lost), faults);
        let ranks = bind(&group, &text(2));
        let failed = run(&mut group, &ranks, Duration::from_millis(50)).unwrap_err().to_string();
        assert!(failed.contains("the network has lost") && failed.contains("to rank"), "{failed}");
    }
}

/// Ranks have different pipelines: no rank hangs, and the error names the ranks.
#[test]
fn ranks_whose_pipelines_differ_are_reported() {
    for hosting in [POOL, seeded(4)] {
        let mut group = group(4, hosting);
        let other = text(2).replace("each i in dense 16", "each i in dense 15");
        let mut ranks = bind(&group, &text(2));
        ranks[1] = bind(&group, &other).swap_remove(1);
        let failed = run(&mut group, &ranks, Duration::from_secs(2)).unwrap_err().to_string();
        assert!(failed.contains("rank 1 has 0 bytes of a pipeline with the print"), "{failed}");
    }
}

/// Several pipelines of one run do not take each other's tokens: each rank expands the same plan twice.
#[test]
fn two_pipelines_of_a_run_keep_their_tokens_apart() {
    let text = text(2);
    let expected = reference(&text);
    for hosting in [POOL, seeded(5)] {
        let mut group = group(4, hosting);
        let both = [bind(&group, &text), bind(&group, &text)];
        let args = |rank: u32| {
            let words = both.iter().flat_map(|ranks| ranks[rank as usize].run.orch_args());
            words.copied().collect()
        };
        let options = RunOptions { aicpu_instances: 2, ..RunOptions::default() };
        group.run(&GroupWork { builder: BUILDER, args: &args }, &options).unwrap();
        for ranks in &both {
            let log: Vec<f32> = ranks[3].tensors[3].read().unwrap();
            let log: Vec<u32> = log.into_iter().map(f32::to_bits).collect();
            assert!(log == expected[3]);
        }
    }
}
