//! What a shape can get wrong: the fault, and what it names.

use std::time::Duration;

use pto_host::abi::{CoreKind, Fault, FuncId, GmAddr};
use pto_host::graph::{
    Arg, BuildError, Comparison, DependencyMode, ElementType, Predicate, StreamBuilder, TensorTask,
    TensorView,
};
use pto_host::{Device, Error, Hosting, RunOptions, Work};

use super::kernels::{MARK_AIC, MARK_AIV};
use super::programs::table;
use super::support::{open, pool, run, small};

/// Does one thing wrong, after a task that is right.
pub(crate) fn bad<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let [case, base] = stream.orch_args() else { return Err(BuildError::Failed(1)) };
    let (case, base) = (*case, *base);
    let cells = table(base, 64);
    let args = [Arg::InOut(&cells), Arg::Scalar(1)];
    let cube = TensorTask::new(MARK_AIC, CoreKind::AIC, &args);
    let vector = TensorTask::new(MARK_AIV, CoreKind::AIV, &args);
    stream.submit_tensors(&vector.blocks(2))?;
    let flags = TensorView::dense(GmAddr(base), ElementType::U32, &[4, 4]);
    let when = |index: &[u32]| Predicate::new(&flags, index, Comparison::EQUAL, 0);
    let (short, outside) = (when(&[1]), when(&[1, 4]));
    let nowhere = TensorView::dense(GmAddr(64), ElementType::U32, &[1]);
    let crooked = TensorView::dense(GmAddr(base + 1), ElementType::U32, &[1]);
    let [nowhere, crooked] =
        [nowhere, crooked].map(|view| Predicate::new(&view, &[0], Comparison::EQUAL, 0));
    let task = match case {
        0 => vector.blocks(0),
        1 => vector.blocks(1 << 24),
        2 => vector.blocks(7).sync_start(),
        3 => cube.blocks(4).sync_start(),
        4 => cube.mix(&[MARK_AIV, MARK_AIV]).blocks(4).sync_start(),
        5 => cube.mix(&[MARK_AIV, MARK_AIV, MARK_AIV]),
        6 => vector.mix(&[MARK_AIV, MARK_AIV]),
        7 => cube.mix(&[FuncId(999)]),
        8 => vector.when(&short),
        9 => vector.when(&outside),
        10 => vector.when(&nowhere),
        11 => vector.when(&crooked),
        12 => {
            let escaped = stream.scope(DependencyMode::DERIVED, |scope| {
                Ok::<_, Fault>(scope.tensor(ElementType::U32, &[1])?.detach())
            })?;
            let stale = Predicate::new(&escaped, &[0], Comparison::EQUAL, 0);
            stream.submit_tensors(&vector.when(&stale))?;
            return Ok(());
        }
        _ => return Err(BuildError::Failed(2)),
    };
    stream.submit_tensors(&task)?;
    Ok(())
}

fn report(device: &mut Device, case: u64) -> (Fault, String) {
    let cells = device.zeroed::<u64>(64).unwrap();
    match run(device, "bad", &[case, cells.address().0]) {
        Err(Error::Fault { fault, report }) => (fault, report.to_string()),
        other => panic!("case {case}: {other:?}"),
    }
}

#[test]
fn each_mistake_is_a_fault_that_names_it() {
    let mut device = open(pool(1), 3, 6);
    let cases: &[(u64, Fault, &[&str])] = &[
        (0, Fault::STREAM_BLOCKS, &["task 1", "mark_aiv"]),
        (1, Fault::STREAM_BLOCKS, &["Found 16777216", "expected was 16777215"]),
        (2, Fault::STREAM_SYNC_BLOCKS, &["task 1", "mark_aiv", "Found 7", "expected was 6"]),
        (3, Fault::STREAM_SYNC_BLOCKS, &["mark_aic", "Found 4", "expected was 3"]),
        (4, Fault::STREAM_SYNC_BLOCKS, &["Found 4", "expected was 3"]),
        (5, Fault::STREAM_MIX, &["task 1", "Found 4", "expected was 3"]),
        (6, Fault::STREAM_MIX, &["Found 3", "expected was 3"]),
        (7, Fault::BUILD_KERNEL_MISSING, &["999", "task 1"]),
        (8, Fault::STREAM_VIEW_RANK, &["argument 2 ", "task 1"]),
        (9, Fault::STREAM_VIEW_RANGE, &["argument 2 "]),
        (10, Fault::STREAM_PREDICATE, &["argument 2 ", "task 1", "Found 64 "]),
        (11, Fault::STREAM_PREDICATE, &["argument 2 "]),
        (12, Fault::STREAM_STALE_TENSOR, &["argument 2 "]),
    ];
    for (case, fault, parts) in cases {
        let (found, text) = report(&mut device, *case);
        assert_eq!(found, *fault, "case {case}: {text}");
        for part in *parts {
            assert!(text.contains(part), "case {case}: {part:?} in\n{text}");
        }
    }
}

/// Where no cluster has the cores, a mix is refused, not kept waiting.
#[test]
fn a_mix_needs_a_cluster() {
    let mut device = open(pool(1), 2, 1);
    let cells = device.zeroed::<u64>(64).unwrap();
    let mut fault =
        |lanes| match run(&mut device, "every_shape", &[cells.address().0, lanes, 1, 1, 0]) {
            Err(Error::Fault { fault, .. }) => Some(fault),
            Ok(_) => None,
            Err(error) => panic!("{error}"),
        };
    let mix = Some(Fault::STREAM_MIX);
    assert_eq!([3, 6, 7].map(&mut fault), [None, mix, mix]);
}

/// A part that does not come back is named: block, core and kernel.
#[test]
fn a_stuck_part_is_named() {
    let mut device = open(Hosting::Threads, 3, 6);
    let word = device.zeroed::<u64>(64).unwrap();
    let task_budget = Duration::from_millis(50);
    let options = RunOptions { task_budget, bring_up_budget: task_budget, ..small() };
    let work = Work::Stream { builder: "stuck", orch_args: &[word.address().0] };
    let Err(Error::Fault { fault, report }) = device.run(work, &options) else {
        panic!("no fault")
    };
    // The kernels end, so that the process can.
    word.write(&[1; 64]).unwrap();
    assert_eq!(fault, Fault::STALL_CORE);
    let text = report.to_string();
    for part in ["vector core in block ", " of 4 (counted", "kernel await_aiv", "1 by priority or"]
    {
        assert!(text.contains(part), "{part:?} in\n{text}");
    }
}
