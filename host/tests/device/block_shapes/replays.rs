//! Shaped tasks in recordings: what is replayed does what is submitted, on every hosting mode.

use pto_host::abi::{CoreKind, Fault, GmAddr};
use pto_host::graph::{
    Arg, Bindings, BuildError, Comparison, ElementType, Predicate, Priority, StreamBuilder,
    TensorTask, TensorView,
};
use pto_host::{Device, Error};

use super::kernels::{LANES, STORE};
use super::programs::{in_turn, kernels, table};
use super::support::{hostings, open, pool, run};

/// Tasks with shapes in a layer, and flags.
const TASKS: u32 = 12;
/// Blocks of the largest of them.
const BLOCKS: u32 = 3;
/// Cells of one layer: two tables.
const CELLS: u32 = 2 * 3 * BLOCKS;

/// Tasks of every shape on two tables, each after one that says whether it runs; a salt changes with the layer.
fn layer<G: StreamBuilder>(
    stream: &mut G,
    cells: &TensorView<'_>,
    flags: &TensorView<'_>,
    salt: Arg<'_>,
) -> Result<(), BuildError> {
    for number in 0..TASKS {
        let flag = flags.slice(0, number, 1);
        let args = [Arg::Out(&flag), Arg::Scalar(u64::from(number % 4))];
        stream.submit_tensors(&TensorTask::new(STORE, CoreKind::AIV, &args))?;
        let lanes = in_turn(&[1, 7, 2, 6, 3], number.into());
        let Some((func, kind, vectors)) = kernels(lanes) else { return Err(BuildError::Failed(2)) };
        let cells = cells.slice(0, number % 2 * 3 * BLOCKS, 3 * BLOCKS);
        let args = [Arg::InOut(&cells), salt];
        let task = TensorTask::new(func, kind, &args).mix(vectors).blocks(1 + number % BLOCKS);
        let task = task.priority(in_turn(Priority::ALL, number.into()));
        let task = if number % 3 == 0 { task.sync_start() } else { task };
        let predicate = Predicate::new(flags, &[number], Comparison::NOT_EQUAL, 2);
        let task = if number % 5 == 4 { task } else { task.when(&predicate) };
        stream.submit_tensors(&task)?;
    }
    Ok(())
}

/// Layers on two tensors in turn. Arguments: their cells, their flags, how many layers, whether they are replayed (1: yes; 2: with
/// flags that no scheduler can read).
pub(crate) fn layers<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let [cells, flags, count, how] = stream.orch_args() else { return Err(BuildError::Failed(1)) };
    let (cells, flags, count, how) = (*cells, *flags, *count, *how);
    let cells = [0, 1].map(|index| table(cells + 8 * u64::from(index * CELLS), CELLS));
    let flags = GmAddr(flags + how / 2);
    let flags = TensorView::dense(flags, ElementType::U32, &[TASKS]);
    let recording = match how {
        0 => None,
        _ => Some(stream.record(&[cells[0], flags], |stream, bound| {
            layer(stream, &bound.tensor(0), &bound.tensor(1), bound.scalar(0))
        })?),
    };
    for number in 0..count {
        let cells = in_turn(&cells, number);
        match &recording {
            None => layer(stream, &cells, &flags, Arg::Scalar(1 + number))?,
            Some(recording) => {
                let bindings = Bindings { tensors: &[cells, flags], scalars: &[1 + number] };
                stream.replay(recording, &bindings)?;
            }
        }
    }
    Ok(())
}

fn cells_after(device: &mut Device, how: u64) -> Vec<u64> {
    let cells = device.zeroed::<u64>(2 * CELLS as usize).unwrap();
    let flags = device.zeroed::<u32>(TASKS as usize).unwrap();
    let args = [cells.address().0, flags.address().0, 9, how];
    let report = run(device, "layers", &args).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(report.tasks, 9 * 2 * u64::from(TASKS));
    cells.read().unwrap()
}

#[test]
fn a_replayed_layer_does_what_a_submitted_one_does() {
    let expected = cells_after(&mut open(pool(1), 3, 6), 0);
    let is_used = |table: &[u64]| table.iter().any(|cell| *cell != 0);
    assert!(expected.chunks(LANES).all(is_used), "every block of every table: {expected:x?}");
    for hosting in hostings() {
        let mut device = open(hosting, 3, 6);
        for how in [0, 1] {
            assert_eq!(cells_after(&mut device, how), expected, "{hosting:?} {how}");
        }
    }
}

#[test]
fn flags_that_cannot_be_read_are_refused_when_they_are_bound() {
    let mut device = open(pool(1), 3, 6);
    let words = device.zeroed::<u64>(64).unwrap();
    let args = [words.address().0, words.address().0 + 8 * 40, 1, 2];
    match run(&mut device, "layers", &args) {
        Err(Error::Fault { fault: Fault::STREAM_PREDICATE, report }) => {
            let text = report.to_string();
            assert!(text.contains("argument 1"), "the binding's number in\n{text}");
        }
        other => panic!("{other:?}"),
    }
}
