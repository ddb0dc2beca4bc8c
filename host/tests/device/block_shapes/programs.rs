//! The programs of these tests.

use pto_host::abi::{CoreKind, FuncId, GmAddr};
use pto_host::graph::{
    Arg, BuildError, Comparison, DependencyMode, ElementType, Predicate, Priority, StreamBuilder,
    TensorTask, TensorView, builder_set,
};

use super::kernels::{AWAIT_AIV, MARK_AIC, MARK_AIV, MEET_AIC, MEET_AIV, ORDER_AIV, STORE};

builder_set! {
    /// All of them.
    pub(crate) struct BlockShapePrograms {}
    stream {
        "every_shape" => every_shape,
        "predicates" => predicates,
        "shared_predicate" => shared_predicate,
        "meet" => meet,
        "rivals" => rivals,
        "order" => order,
        "stuck" => stuck,
        "bad" => super::faults::bad,
        "layers" => super::replays::layers,
    }
}

pub(crate) fn table(at: u64, cells: u32) -> TensorView<'static> {
    TensorView::dense(GmAddr(at), ElementType::U64, &[cells])
}

/// The kernels of a block with these lanes, as bits: cube core, vector core, vector core.
pub(crate) fn kernels(lanes: u64) -> Option<(FuncId, CoreKind, &'static [FuncId])> {
    Some(match lanes {
        1 => (MARK_AIC, CoreKind::AIC, &[]),
        2 => (MARK_AIV, CoreKind::AIV, &[]),
        3 => (MARK_AIC, CoreKind::AIC, &[MARK_AIV]),
        6 => (MARK_AIV, CoreKind::AIV, &[MARK_AIV]),
        7 => (MARK_AIC, CoreKind::AIC, &[MARK_AIV, MARK_AIV]),
        _ => return None,
    })
}

/// One after the other, and again from the first.
pub(crate) fn in_turn<T: Copy>(of: &[T], number: u64) -> T {
    of[usize::try_from(number).unwrap_or(0) % of.len()]
}

/// `rounds` tasks over one table, one after the other, of these lanes and so many blocks; every other one starts its
/// blocks at once, if `sync` is set; priorities go round.
fn every_shape<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let [base, lanes, blocks, rounds, sync] = stream.orch_args() else {
        return Err(BuildError::Failed(1));
    };
    let (base, lanes, rounds, sync) = (*base, *lanes, *rounds, *sync);
    let blocks = u32::try_from(*blocks).unwrap_or(0);
    let cells = table(base, 3 * blocks);
    let Some((func, kind, vectors)) = kernels(lanes) else { return Err(BuildError::Failed(2)) };
    for round in 0..rounds {
        let args = [Arg::InOut(&cells), Arg::Scalar(1 + round)];
        let priority = in_turn(Priority::ALL, round);
        let task =
            TensorTask::new(func, kind, &args).mix(vectors).blocks(blocks).priority(priority);
        let task = if sync == 1 && round % 2 == 0 { task.sync_start() } else { task };
        stream.submit_tensors(&task)?;
    }
    Ok(())
}

/// Flag `i` is written with `i % 3`; task `i` runs if its flag is 1, and one after it in any case.
fn predicates<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let [base, flags, count] = stream.orch_args() else { return Err(BuildError::Failed(1)) };
    let (base, flags) = (*base, *flags);
    let count = u32::try_from(*count).unwrap_or(0);
    let flags = TensorView::dense(GmAddr(flags), ElementType::U32, &[count]);
    for i in 0..count {
        let flag = flags.slice(0, i, 1);
        let value = Arg::Scalar(u64::from(i % 3));
        let args = [Arg::Out(&flag), value];
        stream.submit_tensors(&TensorTask::new(STORE, CoreKind::AIV, &args))?;
        let predicate = Predicate::new(&flags, &[i], Comparison::EQUAL, 1);
        let cells = table(base + 8 * 6 * u64::from(i), 6);
        let args = [Arg::InOut(&cells), Arg::Scalar(1)];
        let lanes = [1, 2, 3, 7][i as usize % 4];
        let Some((func, kind, vectors)) = kernels(lanes) else { return Err(BuildError::Failed(2)) };
        let blocks = 1 + i / 4 % 2;
        let task = TensorTask::new(func, kind, &args).mix(vectors).blocks(blocks);
        stream.submit_tensors(&task.when(&predicate))?;
        // The flag is written again: the task above has read it before.
        let args = [Arg::Out(&flag), Arg::Scalar(u64::from(1 + i % 3))];
        stream.submit_tensors(&TensorTask::new(STORE, CoreKind::AIV, &args))?;
        let args = [Arg::InOut(&cells), Arg::Scalar(2)];
        stream.submit_tensors(&TensorTask::new(MARK_AIC, CoreKind::AIC, &args))?;
    }
    Ok(())
}

/// A chain of tasks under one predicate, on a value that the device computes; then one without.
fn shared_predicate<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let [base, flag, value, length] = stream.orch_args() else { return Err(BuildError::Failed(1)) };
    let (base, flag, value, length) = (*base, *flag, *value, *length);
    let flag = TensorView::dense(GmAddr(flag), ElementType::U32, &[1]);
    let args = [Arg::Out(&flag), Arg::Scalar(value)];
    stream.submit_tensors(&TensorTask::new(STORE, CoreKind::AIV, &args))?;
    let wanted = Predicate::new(&flag, &[0], Comparison::GREATER, 4);
    let cells = table(base, 3);
    stream.scope(DependencyMode::DERIVED, |scope| {
        for number in 0..length {
            let args = [Arg::InOut(&cells), Arg::Scalar(number % 5 + 1)];
            let task = TensorTask::new(MARK_AIV, CoreKind::AIV, &args);
            scope.submit_tensors(&task.when(&wanted))?;
        }
        Ok::<_, BuildError>(())
    })?;
    let args = [Arg::InOut(&cells), Arg::Scalar(9)];
    stream.submit_tensors(&TensorTask::new(MARK_AIV, CoreKind::AIV, &args))?;
    Ok(())
}

/// Parts that wait for each other: MIX blocks, or blocks that start at once, between tasks that keep the cores busy.
fn meet<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let [counters, lanes, blocks, rounds] = stream.orch_args() else {
        return Err(BuildError::Failed(1));
    };
    let (counters, lanes, rounds) = (*counters, *lanes, *rounds);
    let blocks = u32::try_from(*blocks).unwrap_or(0);
    let (func, kind, vectors): (_, _, &[FuncId]) = match lanes {
        1 => (MEET_AIC, CoreKind::AIC, &[]),
        2 => (MEET_AIV, CoreKind::AIV, &[]),
        6 => (MEET_AIV, CoreKind::AIV, &[MEET_AIV]),
        _ => (MEET_AIC, CoreKind::AIC, &[MEET_AIV, MEET_AIV]),
    };
    let parts = blocks * (1 + u32::try_from(vectors.len()).unwrap_or(0));
    for round in 0..rounds {
        let counter = table(counters + 64 * round, 1);
        let args = [Arg::NoDep(&counter), Arg::Scalar(parts.into())];
        let task = TensorTask::new(func, kind, &args).mix(vectors).blocks(blocks);
        let task = if blocks > 1 { task.sync_start() } else { task };
        stream.submit_tensors(&task)?;
        for (func, kind) in [(MARK_AIC, CoreKind::AIC), (MARK_AIV, CoreKind::AIV)] {
            let scratch = table(counters + 64 * (rounds + round), 8);
            let args = [Arg::NoDep(&scratch), Arg::Scalar(0)];
            stream.submit_tensors(&TensorTask::new(func, kind, &args))?;
        }
    }
    Ok(())
}

/// Tasks that start all at once and need most of the cores each, of every kind, with nothing between them.
fn rivals<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let [base, rounds] = stream.orch_args() else { return Err(BuildError::Failed(1)) };
    let (base, rounds) = (*base, *rounds);
    for round in 0..rounds {
        let (lanes, blocks) = in_turn(&[(2, 6), (7, 3), (1, 3), (6, 2), (2, 5), (3, 3)], round);
        let Some((func, kind, vectors)) = kernels(lanes) else { return Err(BuildError::Failed(2)) };
        let cells = table(base + 8 * 32 * round, 32);
        let args = [Arg::InOut(&cells), Arg::Scalar(1)];
        let task = TensorTask::new(func, kind, &args).mix(vectors).blocks(blocks);
        let task = task.priority(in_turn(Priority::ALL, round));
        stream.submit_tensors(&if round % 7 == 6 { task } else { task.sync_start() })?;
    }
    Ok(())
}

/// A task holds the only vector core until all others are ready; then they run by priority.
fn order<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let [gate, counter, cells, count] = stream.orch_args() else {
        return Err(BuildError::Failed(1));
    };
    let (gate, counter, cells, count) = (*gate, *counter, *cells, *count);
    let gate = table(gate, 1);
    let args = [Arg::NoDep(&gate)];
    stream.submit_tensors(&TensorTask::new(AWAIT_AIV, CoreKind::AIV, &args))?;
    for number in 0..count {
        let (counter, cell) = (table(counter, 1), table(cells + 8 * number, 1));
        let args = [Arg::NoDep(&counter), Arg::Out(&cell)];
        let priority = in_turn(Priority::ALL, number);
        let task = TensorTask::new(ORDER_AIV, CoreKind::AIV, &args).priority(priority);
        stream.submit_tensors(&task)?;
    }
    stream.set(&gate, &[0], 1)?;
    Ok(())
}

/// A MIX task of four blocks whose kernels on vector cores wait for a word that is never written.
fn stuck<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let [word] = stream.orch_args() else { return Err(BuildError::Failed(1)) };
    let word = table(*word, 1);
    let args = [Arg::NoDep(&word), Arg::Scalar(0)];
    let task = TensorTask::new(MARK_AIC, CoreKind::AIC, &args);
    stream.submit_tensors(&task.mix(&[AWAIT_AIV, AWAIT_AIV]).blocks(4))?;
    Ok(())
}
