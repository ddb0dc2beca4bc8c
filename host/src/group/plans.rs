//! Workloads that exchange tensors with other ranks: a plan is a program of the group like any other.

use pto_graph::NoBuilders;
use pto_graph::plan::BUILDER;
use pto_workload::clock::Bindings;
use pto_workload::plan::{Compiled, compile};
use pto_workload::program::{Program, TensorLayout};
use pto_workload::tree::Workload;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use super::{Group, GroupError, GroupOptions, GroupWork, NetFaults, NetworkProfile};
use crate::session::SessionOptions;
use crate::stitch::{HostTensor, Inputs, Stitcher};
use crate::virtual_time::VirtualOptions;
use crate::workload::{WorkloadBindings, WorkloadRun};
use crate::{DeviceBuffer, DeviceOptions, Hosting, RunOptions};

/// Every rank computes `p = x + x` of its own values, all add up theirs, and each adds its own again: `y = sum + x`. Tiles and the sum are one graph.
const SUM: &str = "workload sum_of_all {
  tensor x : f32[16, 64]
  tensor p : f32[16, 64]
  tensor y : f32[16, 64]
  kernel twice(a: in f32[4, 64], b: out f32[4, 64]) {
    %0 = load a : f32[4, 64]
    %1 = add %0, %0 : f32[4, 64]
    store b, %1
  }
  kernel plus(a: in f32[4, 64], b: in f32[4, 64], c: out f32[4, 64]) {
    %0 = load a : f32[4, 64]
    %1 = load b : f32[4, 64]
    %2 = add %0, %1 : f32[4, 64]
    store c, %2
  }
  do sequential {
    parallel i in dense 4 {
      twice[i](a = x[i * 4 for 4], b = p[i * 4 for 4])
    }
    exchange EXCHANGE
    parallel j in dense 4 {
      plus[j](a = p[j * 4 for 4], b = x[j * 4 for 4], c = y[j * 4 for 4])
    }
  }
}";
const ELEMENTS: usize = 16 * 64;

fn compiled(exchange: &str) -> Compiled {
    let workload = Workload::parse(&SUM.replace("EXCHANGE", exchange)).unwrap();
    let text = workload.to_string();
    let checked = workload.check().unwrap();
    // What is printed is read again.
    assert_eq!(Workload::parse(&text).unwrap().to_string(), text);
    compile(&checked).unwrap()
}

fn options() -> RunOptions {
    RunOptions {
        aicpu_instances: 2,
        stall_budget: Duration::from_secs(60),
        ..RunOptions::default()
    }
}

fn group(size: u32, hosting: Hosting) -> Group {
    let device = DeviceOptions { aic: 1, aiv: 2, gm_bytes: 512 << 20, hosting };
    let of_group = GroupOptions { device, ..GroupOptions::default() };
    match hosting {
        Hosting::Virtual(_) => {
            let network = (NetworkProfile::by_name("a3-pod").unwrap(), NetFaults::default());
            Group::open_virtual(size, &of_group, network, NoBuilders).unwrap()
        }
        _ => Group::open_local(size, &of_group, NoBuilders).unwrap(),
    }
}

/// Every element that rank `r` has: `r + 1`. What becomes of `y`, by rank; or the failure.
fn run(group: &mut Group, exchange: &str) -> Result<Vec<Vec<f32>>, GroupError> {
    run_each(group, |_| exchange)
}

/// As [`run`], with an exchange for each rank.
fn run_each<'e>(
    group: &mut Group,
    exchange: impl Fn(u32) -> &'e str,
) -> Result<Vec<Vec<f32>>, GroupError> {
    let mut runs: Vec<(WorkloadRun, [DeviceBuffer<f32>; 3])> = Vec::new();
    for member in group.members() {
        let device = member.device();
        let x = device.upload(&[member.rank() as f32 + 1.0; ELEMENTS]).unwrap();
        let [p, y] = [(), ()].map(|()| device.zeroed::<f32>(ELEMENTS).unwrap());
        let bound = WorkloadBindings::new()
            .tensor("x", x.address())
            .tensor("p", p.address())
            .tensor("y", y.address());
        runs.push((
            WorkloadRun::bind(device, compiled(exchange(member.rank())), &bound).unwrap(),
            [x, p, y],
        ));
    }
    let args = |rank: u32| runs[rank as usize].0.orch_args().to_vec();
    group.run(&GroupWork { builder: BUILDER, args: &args }, &options())?;
    Ok(runs.iter().map(|(_, [_, _, y])| y.read().unwrap()).collect())
}

const POOL: Hosting = Hosting::Pool { os_threads: NonZeroUsize::MIN };

/// What `y` is at a rank, if all of it is the same.
fn all(values: &[f32]) -> f32 {
    assert!(values.iter().all(|value| *value == values[0]), "{values:?}");
    values[0]
}

#[test]
fn a_plan_adds_up_what_all_ranks_have() {
    for hosting in [POOL, Hosting::Virtual(pto_sim_shim::virtual_time::VirtualOptions::default())] {
        for size in [1, 2, 4] {
            let found = run(&mut group(size, hosting), "all_reduce p sum").unwrap();
            let sum = (1..=size).map(|value| 2.0 * value as f32).sum::<f32>();
            for (rank, values) in (1..).zip(&found) {
                assert_eq!(all(values), sum + rank as f32, "{size} ranks");
            }
        }
    }
}

#[test]
fn a_plan_shares_parts_and_gathers_them() {
    let mut group = group(2, POOL);
    let found = run(&mut group, "broadcast p from 1").unwrap();
    assert_eq!([all(&found[0]), all(&found[1])], [4.0 + 1.0, 4.0 + 2.0]);
    let found = run(&mut group, "reduce p max to 0").unwrap();
    assert_eq!(all(&found[0]), 4.0 + 1.0);
    // Each rank has its half of the sum, and the other half is its own.
    let found = run(&mut group, "reduce_scatter p sum").unwrap();
    assert_eq!([all(&found[0][..ELEMENTS / 2]), all(&found[1][ELEMENTS / 2..])], [7.0, 8.0]);
    let found = run(&mut group, "all_gather p").unwrap();
    for (rank, values) in (1..).zip(&found) {
        let halves = [all(&values[..ELEMENTS / 2]), all(&values[ELEMENTS / 2..])];
        assert_eq!(halves, [2.0, 4.0].map(|half| half + rank as f32));
    }
}

/// A channel between two ranks: one sends what the other receives, and goes on with its own.
#[test]
fn a_plan_sends_what_the_plan_of_another_rank_receives() {
    let sides = ["send p to 1 tag 3", "receive p from 0 tag 3"];
    let found = run_each(&mut group(2, POOL), |rank| sides[rank as usize]).unwrap();
    assert_eq!([all(&found[0]), all(&found[1])], [2.0 + 1.0, 2.0 + 2.0]);
    let refused = run(&mut group(1, POOL), "send p to 1 tag 3").unwrap_err().to_string();
    assert!(refused.contains("TRANSFER_RANK"), "{refused}");
}

/// The ranks of a group may run different plans. The stall budget is a minute.
#[test]
fn plans_that_exchange_in_different_ways_are_reported_at_once() {
    let sides = ["broadcast p from 1", "all_reduce p sum"];
    for hosting in [POOL, Hosting::Virtual(VirtualOptions::default())] {
        let start = Instant::now();
        let found = run_each(&mut group(2, hosting), |rank| sides[rank as usize]);
        let error = found.unwrap_err().to_string();
        assert!(start.elapsed() < Duration::from_secs(20), "{error}");
        for part in ["rank 0 has", "call 1: broadcast", "rank 1 has", "call 1: all_reduce sum"] {
            assert!(error.contains(part), "no {part:?} in {error}");
        }
    }
}

/// One plan a launch, two, and more than a launch has room for with the words of the group.
#[test]
fn a_program_stream_gives_its_plans_the_words_of_the_group() {
    let text = SUM.replace("EXCHANGE", "all_reduce p sum");
    let sessions = group(2, POOL)
        .sessions(&SessionOptions { run: options(), ..SessionOptions::default() })
        .unwrap();
    for (overlap, runs) in [(1, 2), (2, 2), (usize::MAX, 32)] {
        let submitted: Vec<_> = sessions
            .members()
            .iter()
            .map(|member| {
                let stitcher = Stitcher::new(member.session()).unwrap();
                let checked = Workload::parse(&text).unwrap().check().unwrap();
                let program = stitcher.load(Program::of_workload(&checked).unwrap()).unwrap();
                let stream = stitcher.overlapping_stream(overlap).unwrap();
                let x = vec![member.rank() as f32 + 1.0; ELEMENTS];
                let x = HostTensor::of_f32(&[16, 64], &x).unwrap();
                let x = stream.to_device(&x, &TensorLayout::device()).unwrap();
                let run = |_| {
                    let outputs = stream.run(&program, Inputs::new().borrow("x", &x));
                    outputs.unwrap().take("y").unwrap()
                };
                let found: Vec<_> = (0..runs).map(run).collect();
                // The other rank waits for it.
                stream.flush().unwrap();
                (stream, found, x)
            })
            .collect();
        for (rank, (stream, found, _)) in (1..).zip(&submitted) {
            for y in found {
                let y = stream.to_host(y).unwrap().to_f32().unwrap();
                assert_eq!(all(&y), 6.0 + rank as f32, "{overlap} in a launch");
            }
        }
    }
    sessions.close().unwrap();
}

#[test]
fn the_clock_of_the_host_is_alone() {
    let run = |exchange| {
        let checked = Workload::parse(&SUM.replace("EXCHANGE", exchange)).unwrap().check().unwrap();
        let mut tensors = [[1.0_f32; ELEMENTS], [0.0; ELEMENTS], [0.0; ELEMENTS]];
        let [x, p, y] = &mut tensors;
        let bound = Bindings::new().dense(&checked, "x", x).unwrap();
        let bound = bound.dense(&checked, "p", p).unwrap().dense(&checked, "y", y).unwrap();
        pto_workload::clock::run(&checked, &bound)
    };
    assert!(run("all_reduce p sum").is_ok(), "rank 0 of 1 has the sum");
    let refused = run("send p to 0 tag 1").unwrap_err().to_string();
    assert!(refused.contains("send") && refused.contains("group"), "{refused}");
}
