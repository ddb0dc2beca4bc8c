//! What a task of an expanded plan costs, compared with the same task submitted by hand: expansion, submission and scheduling, without
//! the kernel and its times. One OS thread, one core, two tensors a task.
//!
//! `cargo run --profile dist -p pto-examples --example expansion -- [TASKS [NAME]]`. The ratios are taken in one process and mean something
//! on a busy machine as well; the times do not. With the name of a row, that row alone runs, once: two numbers of tasks under
//! `valgrind --tool=callgrind` then give the instructions of a task.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use pto_graph::plan::layout::binding;
use pto_graph::plan::task::{self, Sides, pack_sides};
use pto_graph::{Arg, BuildError, ElementType, StreamBuilder, TensorTask, TensorView};
use pto_host::abi::{CoreKind, Fault, GmAddr};
use pto_host::workload::{WorkloadBindings, WorkloadRun};
use pto_host::workloads::{Workload, plan::compile};
use pto_host::{Device, DeviceOptions, Hosting, Kernel, KernelTimes, RunOptions, Work, func};

pto_graph::builder_set! {
    /// The program that expands plans, and the one that does the same by hand.
    struct ExpansionPrograms {}
    stream { "workload" => pto_graph::plan::expand, "by_hand" => by_hand }
}

/// Rows of each tensor.
const ROWS: u64 = 1024;

/// The tasks of [`text`], submitted by a loop in Rust, with the same words.
fn by_hand<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let words = *stream.orch_args().first_chunk::<4>().ok_or(Fault::BUILD_ORCH_ARGS)?;
    let [from, to, tasks, epitaph] = words;
    let dense = |at| TensorView::dense(GmAddr(at), ElementType::F32, &[1024, 64]);
    let (from, to) = (dense(from), dense(to));
    for number in 0..tasks {
        let [read, written] = [number % ROWS, (number * 7 + 3) % ROWS];
        let row =
            |view: TensorView<'static>, row: u64| view.slice(0, u32::try_from(row).unwrap_or(0), 1);
        let (source, target) = (row(from, read), row(to, written));
        let sides = |tensor| pack_sides(Sides { tensor, extents: [1, 64], dims: [None, Some(1)] });
        let args = [
            Arg::Scalar(epitaph),
            Arg::Scalar(0),
            Arg::Scalar(epitaph),
            Arg::Scalar(epitaph),
            Arg::Scalar(0),
            Arg::Scalar(epitaph),
            Arg::In(&source),
            Arg::Scalar(read * 64),
            Arg::Scalar(sides(0)),
            Arg::Out(&target),
            Arg::Scalar(written * 64),
            Arg::Scalar(sides(1)),
        ];
        const { assert!(task::PARAMS + 2 * task::TENSOR_WORDS == 12) };
        stream.submit_tensors(&TensorTask::new(func::TILE_AIV, CoreKind::AIV, &args))?;
    }
    Ok(())
}

/// The same tasks by loops whose bodies have `calls` of them.
fn text(calls: u64) -> String {
    let body: String = (0..calls)
        .map(|call| {
            format!(
                "copy[i](x = X[(i * {calls} + {call}) % 1024], y = Y[((i * {calls} + {call}) * 7 + 3) % 1024]) "
            )
        })
        .collect();
    let body = if calls > 1 {
        format!("sequential {{ {body}}}")
    } else {
        "copy[i](x = X[i % 1024], y = Y[(i * 7 + 3) % 1024])".to_owned()
    };
    format!(
        "workload copies {{
  schedule round_robin workers 1 window 8192 stall
  tensor X : f32[1024, 64]
  tensor Y : f32[1024, 64]
  kernel copy(x: in f32[1, 64], y: out f32[1, 64]) {{
    %0 = load x : f32[1, 64]
    store y, %0
  }}
  do parallel i in dyn turns {{ {body} }}
}}"
    )
}

/// What is measured: its name, how many calls one dispatch has at most (0: the expansion chooses), and the calls in the body of the loop (0: a
/// program in Rust).
const ROWS_OF_TABLE: [(&str, u64, u64); 7] = [
    ("plan", 0, 1),
    ("four_calls", 0, 4),
    ("pairs", 2, 1),
    ("single", 1, 1),
    ("two_single", 1, 2),
    ("four_single", 1, 4),
    ("by_hand", 1, 0),
];

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let tasks: u64 = std::env::args().nth(1).map_or(Ok(1_000_000), |text| text.parse())?;
    let hosting = Hosting::Pool { os_threads: NonZeroUsize::MIN };
    let mut device = Device::open_sim(
        DeviceOptions { aic: 0, aiv: 1, gm_bytes: 1 << 29, hosting },
        ExpansionPrograms,
    )?;
    // A kernel that does nothing: what is left is the cost of the runtime.
    device.register_kernel(func::TILE_AIV, Kernel::library("empty_aiv")?)?;
    let only = std::env::args().nth(2);
    let tensors = [device.zeroed::<f32>(1024 * 64)?, device.zeroed::<f32>(1024 * 64)?];
    println!("tasks {tasks}, two tensors each");
    let mut by_hand_ns = None;
    for (name, grain, calls) in ROWS_OF_TABLE.into_iter().rev() {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let builder = if calls == 0 { "by_hand" } else { "workload" };
        let start = Instant::now();
        let compiled = compile(&Workload::parse(&text(calls.max(1)))?.check()?)?;
        let compiling = start.elapsed();
        let words = compiled.words().len();
        let tasks = tasks.next_multiple_of(calls.max(1));
        let bound = WorkloadBindings::new()
            .tensor("X", tensors[0].address())
            .tensor("Y", tensors[1].address())
            .size("turns", tasks / calls.max(1))
            .grain(grain);
        let run = WorkloadRun::bind(&device, compiled.clone(), &bound)?;
        let epitaph = run.orch_args()[2] + 8 * binding::EPITAPH as u64;
        let [from, to] = tensors.each_ref().map(|tensor| tensor.address().0);
        let by_hand = [from, to, tasks, epitaph];
        let orch_args = if builder == "by_hand" { &by_hand[..] } else { run.orch_args() };
        let rounds = if only.is_some() { 1 } else { 5 };
        let mut best = Duration::MAX;
        for _ in 0..rounds {
            let start = Instant::now();
            // A builder, and a scheduler.
            let options = RunOptions {
                aicpu_instances: 2,
                kernel_times: KernelTimes::Skip,
                ..RunOptions::default()
            };
            let report = device.run(Work::Stream { builder, orch_args }, &options)?;
            best = best.min(start.elapsed());
            assert_eq!(report.tasks, tasks);
        }
        let ns = best.as_secs_f64() * 1e9 / tasks as f64;
        let ratio = ns / *by_hand_ns.get_or_insert(ns);
        println!(
            "{name:12} {ns:7.1} ns a task, {ratio:5.2} of the first row; a plan of {words} words, compiled in {compiling:?}"
        );
    }
    Ok(())
}
