//! Random programs with strided views that overlap, run in parallel, against the same tasks one after the other.

use pto_host::abi::{BuildMode, FanoutStrategy, Fault, GmAddr, TaskId, symbol::symbol};
use pto_host::graph::{
    Arg, BuilderSet, EdgeOutcome, GraphBuilder, HostedBuilder, LaunchArgs, OpResult, ScopeId,
    StreamBuilder, StreamOp, Submission, TaskDesc, TensorView,
};
use pto_host::{Device, Hosting, Work};

use super::program::{SHAPE, StreamingPrograms, mix_kernel};
use super::support::{open, pool, small};

/// Of three tensors.
pub(crate) const ELEMENTS: usize = (SHAPE[0] * SHAPE[1]) as usize * 3;

/// Runs each task as soon as it is submitted; its heap is never taken back.
struct Sequential {
    words: [u64; 3],
    heap: Vec<Vec<u32>>,
    scopes: u64,
}

impl HostedBuilder for Sequential {}

impl GraphBuilder for Sequential {
    fn launch_args(&self) -> LaunchArgs<'_> {
        LaunchArgs::of(&self.words)
    }
    fn submit_desc(&mut self, submission: Submission<'_>) -> Result<Option<TaskId>, Fault> {
        let TaskDesc::Tensors(task) = submission.desc else { return Ok(None) };
        let word = |arg: &Arg<'_>| match arg {
            Arg::Scalar(word) => *word,
            arg => arg.tensor().unwrap().address().0,
        };
        let words: Vec<u64> = task.args.iter().map(word).collect();
        // SAFETY: the words are those of a task of the program, on live memory.
        unsafe { mix_kernel(words.as_ptr()) };
        Ok(Some(TaskId::NONE))
    }
    fn add_edge(&mut self, _: TaskId, _: TaskId) -> Result<EdgeOutcome, Fault> {
        Ok(EdgeOutcome::Added)
    }
    fn publish(&mut self, _: TaskId) -> Result<(), Fault> {
        Ok(())
    }
    fn read_u32(&self, _: GmAddr) -> Result<u32, Fault> {
        Err(Fault::BUILD_GM_RANGE)
    }
}

impl StreamBuilder for Sequential {
    fn stream_op(&mut self, op: StreamOp<'_>) -> Result<OpResult, Fault> {
        match op {
            StreamOp::OpenScope(_) => {
                self.scopes += 1;
                Ok(OpResult::Scope(ScopeId { depth: 1, serial: self.scopes }))
            }
            StreamOp::CloseScope(_) => Ok(OpResult::Done),
            StreamOp::Alloc(element, shape) => {
                let mut tensor = vec![0; shape.iter().product::<u32>() as usize];
                let base = GmAddr(tensor.as_mut_ptr().expose_provenance() as u64);
                self.heap.push(tensor);
                Ok(OpResult::Tensor(TensorView::dense(base, element, shape)))
            }
            _ => Err(Fault::BUILD_GM_RANGE),
        }
    }
}

/// What a program with these two words makes of the tensors, task by task.
pub(crate) fn sequential(program: &str, words: [u64; 2]) -> Vec<u32> {
    let mut tensors: Vec<u32> = (0..u32::try_from(ELEMENTS).unwrap()).collect();
    let base = tensors.as_mut_ptr().expose_provenance() as u64;
    let words = [words[0], words[1], base];
    let mut stream = Sequential { words, heap: Vec::new(), scopes: 0 };
    StreamingPrograms.build_stream(symbol(program), &mut stream).unwrap().unwrap();
    core::hint::black_box(&mut tensors);
    tensors
}

fn check(device: &mut Device, seed: u64, groups: u64, window: u32, fanout: FanoutStrategy) {
    let values: Vec<u32> = (0..u32::try_from(ELEMENTS).unwrap()).collect();
    let tensors = device.upload(&values).unwrap();
    let orch_args = [seed, groups, tensors.address().0];
    let mut options = small(window);
    options.fanout = fanout;
    let work = Work::Stream { builder: "random", orch_args: &orch_args };
    let report =
        device.run(work, &options).unwrap_or_else(|e| panic!("seed {seed}, {window}: {e}"));
    assert_eq!(
        tensors.read().unwrap(),
        sequential("random", [seed, groups]),
        "seed {seed}, window {window}"
    );
    let stream = report.stream.expect("the run streamed");
    for ring in &stream.rings {
        assert!(ring.high_water <= ring.capacity, "seed {seed}: {ring:?}");
    }
    assert_eq!(stream.scopes, groups + groups.div_ceil(3));
}

fn programs(hosting: Hosting, seeds: core::ops::Range<u64>) {
    let mut device = open(hosting);
    for seed in seeds {
        for (window, fanout) in [
            (1, FanoutStrategy::LOCK_FREE),
            (8, FanoutStrategy::LOCKED),
            (64, FanoutStrategy::LOCK_FREE),
        ] {
            check(&mut device, seed, 40, window, fanout);
        }
    }
}

#[test]
fn pool_of_one() {
    programs(pool(1), 0..40);
}

#[test]
fn pool_of_two() {
    programs(pool(2), 100..120);
}

#[test]
fn threads() {
    programs(Hosting::Threads, 200..206);
}

/// Where the schedulers wait for the program, everything fits the window, or nothing does.
#[test]
fn sequential_mode_needs_a_window_for_all() {
    let mut device = open(pool(1));
    let tensors = device.upload(&vec![1_u32; ELEMENTS]).unwrap();
    let orch_args = [5, 10, tensors.address().0];
    let work = Work::Stream { builder: "random", orch_args: &orch_args };
    let mut options = small(256);
    options.capacities.edges = 6000;
    options.capacities.stream.heap_bytes = 1 << 18;
    options.build_mode = BuildMode::SEQUENTIAL;
    assert!(device.run(work, &options).is_ok());
    options.capacities.stream.window = 64;
    let error = device.run(work, &options).unwrap_err().to_string();
    assert!(error.contains("STREAM_WINDOW_RING") && error.contains("128 suffice"), "{error}");
}
