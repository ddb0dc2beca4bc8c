//! Everything that a submission can get wrong: the fault, and what it names.

use pto_host::abi::{BuildMode, CoreKind, Fault, GmAddr};
use pto_host::graph::{
    Arg, BuildError, DependencyMode, ElementType, RawView, StreamBuilder, TaskSpec, TensorTask,
    TensorView,
};
use pto_host::{Device, Error, RunOptions, Work, func};

use super::support::{open, pool, small};

const F32: ElementType = ElementType::F32;

fn submit<G: StreamBuilder>(stream: &mut G, args: &[Arg<'_>]) -> Result<(), BuildError> {
    stream.submit_tensors(&TensorTask::new(func::EMPTY_AIV, CoreKind::AIV, args))?;
    Ok(())
}

/// Does one thing wrong, after three tasks that are right.
pub(crate) fn bad<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let [case, base] = stream.orch_args() else { return Err(BuildError::Failed(1)) };
    let (case, base) = (*case, GmAddr(*base));
    let good = TensorView::dense(base, F32, &[16, 16]);
    for _ in 0..3 {
        submit(stream, &[Arg::InOut(&good)])?;
    }
    let stated = |element: u8, shape: &[u32], strides: &[u64]| {
        TensorView::alleged(&RawView { base, bytes: 1024, element, offset: 0, shape, strides })
    };
    match case {
        0 => submit(stream, &[Arg::In(&good), Arg::Out(&good.slice(0, 10, 7))]),
        1 => submit(stream, &[Arg::Scalar(1), Arg::NoDep(&stated(0, &[1; 6], &[1; 6]))]),
        2 => submit(stream, &[Arg::In(&stated(77, &[1], &[1]))]),
        3 => submit(stream, &[Arg::In(&stated(0, &[257], &[1]))]),
        4 => {
            let (left, right) = (good.slice(1, 0, 9), good.slice(1, 8, 8));
            submit(stream, &[Arg::Out(&left), Arg::In(&good), Arg::InOut(&right)])
        }
        5 => submit(stream, &[Arg::Scalar(0); 129]),
        6 => {
            let id = stream.open_scope(DependencyMode::DERIVED)?;
            stream.close_scope(id)?;
            Ok(stream.close_scope(id)?)
        }
        7 => {
            let outer = stream.open_scope(DependencyMode::DERIVED)?;
            stream.open_scope(DependencyMode::MANUAL)?;
            Ok(stream.close_scope(outer)?)
        }
        8 => {
            let escaped = stream.scope(DependencyMode::DERIVED, |scope| {
                Ok::<_, Fault>(scope.tensor(F32, &[8])?.detach())
            })?;
            // Another scope of the same depth does not make it valid again.
            stream.scope(DependencyMode::DERIVED, |scope| {
                submit(&mut **scope, &[Arg::In(&good), Arg::In(&escaped)])
            })
        }
        9 => Ok(stream.open_scope(DependencyMode::DERIVED).map(|_| ())?),
        10 => {
            for _ in 0..9 {
                stream.open_scope(DependencyMode::DERIVED)?;
            }
            Ok(())
        }
        // The heap holds 16 KiB: one request of 20 KiB; then requests of 6 KiB, of which two fit.
        11 => Ok(stream.alloc(F32, &[5 * 1024]).map(|_| ())?),
        12 => stream.scope(DependencyMode::DERIVED, |scope| {
            for _ in 0..3 {
                let tensor = scope.tensor(F32, &[3 * 512])?;
                submit(&mut **scope, &[Arg::Out(&tensor)])?;
            }
            Ok(())
        }),
        // A task that is never published holds the window.
        13 => {
            for _ in 0..100 {
                stream.add_task(TaskSpec::new(func::EMPTY_AIV, CoreKind::AIV, &[]))?;
            }
            Ok(())
        }
        14 => Ok(stream.get(&good, &[3, 16]).map(|_| ())?),
        15 => submit(stream, &[Arg::Scalar(0); 120]),
        16 => irregular(stream, base),
        _ => Err(BuildError::Failed(2)),
    }
}

const IRREGULAR: [[u64; 5]; 2] = [
    [1_000_003_017, 1_103_700_411, 1_217_900_983, 1_344_100_789, 1_481_000_309],
    [1_051_300_741, 1_163_000_837, 1_279_700_113, 1_409_900_661, 1_559_300_517],
];

/// Strides without any order: whether a sum of some of them equals a sum of others takes a search.
fn irregular<G: StreamBuilder>(stream: &mut G, base: GmAddr) -> Result<(), BuildError> {
    let view = |offset, strides: &[u64]| {
        let raw = RawView { base, bytes: 1 << 50, element: 4, offset, shape: &[6; 5], strides };
        TensorView::alleged(&raw)
    };
    let (one, other) = (view(0, &IRREGULAR[0]), view(501, &IRREGULAR[1]));
    submit(stream, &[Arg::Out(&one)])?;
    submit(stream, &[Arg::In(&other)])
}

fn report(device: &mut Device, case: u64, options: &RunOptions) -> (Fault, String) {
    let tensor = device.zeroed::<f32>(256).unwrap();
    let orch_args = [case, tensor.address().0];
    let work = Work::Stream { builder: "bad", orch_args: &orch_args };
    match device.run(work, options) {
        Err(Error::Fault { fault, report }) => (fault, report.to_string()),
        other => panic!("case {case}: {other:?}"),
    }
}

#[test]
fn each_mistake_is_a_fault_that_names_it() {
    let mut device = open(pool(1));
    let cases: &[(u64, Fault, &[&str])] = &[
        (0, Fault::STREAM_VIEW_RANGE, &["argument 1 ", "task 3", "empty_aiv"]),
        (1, Fault::STREAM_VIEW_RANK, &["argument 1 ", "task 3"]),
        (2, Fault::STREAM_VIEW_ELEMENT, &["argument 0 ", "task 3"]),
        (3, Fault::STREAM_VIEW_RANGE, &["argument 0 "]),
        (4, Fault::STREAM_OUT_OVERLAP, &["argument 2 ", "task 3"]),
        (5, Fault::BUILD_TOO_MANY_ARGS, &["129", "task 3"]),
        (6, Fault::STREAM_SCOPE_NOT_OPEN, &["Found 1 "]),
        (7, Fault::STREAM_SCOPE_NOT_OPEN, &["Found 1 "]),
        (8, Fault::STREAM_STALE_TENSOR, &["argument 1 ", "task 3", "Found 1 "]),
        (9, Fault::STREAM_SCOPE_LEFT_OPEN, &["Found 1 "]),
        (10, Fault::STREAM_SCOPE_DEPTH, &["expected was 3"]),
        (11, Fault::STREAM_HEAP_RING, &["\"heap 0\"", "the program's own scope", "40960 suffice"]),
        (
            12,
            Fault::STREAM_HEAP_RING,
            &["\"heap 1\"", "scope 1:", "12288 bytes are in use", "24576 suffice"],
        ),
        (13, Fault::STREAM_WINDOW_RING, &["\"window\"", "64 slots are in use", "128 suffice"]),
        (14, Fault::STREAM_VIEW_RANGE, &[]),
        (15, Fault::STREAM_ARGS_RING, &["\"arguments\"", "121 suffice"]),
        (16, Fault::STREAM_VIEW_IRREGULAR, &["argument 0 ", "task 4"]),
    ];
    for (case, fault, parts) in cases {
        let mut options = small(64);
        if *case == 15 {
            options.capacities.arg_words = 20;
        }
        let (found, text) = report(&mut device, *case, &options);
        assert_eq!(found, *fault, "case {case}: {text}");
        for part in *parts {
            assert!(text.contains(part), "case {case}: {part:?} in\n{text}");
        }
    }
}

#[test]
fn the_size_that_suffices_does() {
    let mut device = open(pool(1));
    let tensor = device.zeroed::<f32>(256).unwrap();
    let mut run = |case: u64, heap_bytes: u64| {
        let mut options = small(64);
        options.capacities.stream.heap_bytes = heap_bytes;
        let orch_args = [case, tensor.address().0];
        device.run(Work::Stream { builder: "bad", orch_args: &orch_args }, &options).is_ok()
    };
    assert!(run(11, 40_960) && run(12, 24_576));
}

#[test]
fn sizes_that_no_ring_can_have_are_refused() {
    let mut device = open(pool(1));
    let mut refused = |change: fn(&mut RunOptions)| {
        let mut options = small(64);
        change(&mut options);
        report(&mut device, 0, &options).0
    };
    let faults = [
        refused(|o| o.capacities.stream.window = 0),
        refused(|o| o.capacities.stream.window = 48),
        refused(|o| o.capacities.stream.map_entries = 0),
        refused(|o| o.capacities.stream.map_entries = 300),
        refused(|o| o.capacities.stream.heap_rings = 0),
        refused(|o| o.capacities.stream.heap_rings = 9),
        refused(|o| o.capacities.stream.heap_bytes = 100),
        refused(|o| o.capacities.edges = 0),
    ];
    let (window, map, heap) =
        (Fault::STREAM_WINDOW_SIZE, Fault::STREAM_MAP_SIZE, Fault::STREAM_HEAP_SIZE);
    let expected = [window, window, map, map, heap, heap, heap, Fault::STREAM_RING_SIZE];
    assert_eq!(faults, expected);
}

/// A program that waits for a task, where the schedulers wait for the program.
#[test]
fn waiting_for_what_cannot_come_is_proved() {
    let mut device = open(pool(1));
    let numbers = device.zeroed::<u32>(32).unwrap();
    let orch_args = [1000, numbers.address().0];
    let options = RunOptions { build_mode: BuildMode::SEQUENTIAL, ..small(64) };
    let work = Work::Stream { builder: "loop", orch_args: &orch_args };
    let Err(Error::Fault { fault, .. }) = device.run(work, &options) else { panic!("no fault") };
    assert_eq!(fault, Fault::STREAM_WAIT_FOREVER);
}
