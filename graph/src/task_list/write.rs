//! Writing lists of tasks, on the host.

use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;

use pto_abi::ids::FuncId;

use super::role::{IN, IN_OUT, OUT, WORD};
use crate::owned::{OwnedArg, OwnedTask};
use crate::tensor::TensorView;

/// An argument of a task of a list.
pub type ListedArg = OwnedArg<TensorView<'static>>;

/// A task of a list.
pub type ListedTask = OwnedTask<FuncId, ListedArg, TensorView<'static>>;

/// The tasks in an order in which each follows its producers, and otherwise in their own order. Tasks with views stay in the order in which they
/// were added, from which the device derives edges. `None`: tasks wait for each other.
#[must_use]
pub fn in_order(tasks: Vec<ListedTask>) -> Option<Vec<ListedTask>> {
    let follows = |(number, task): (usize, &ListedTask)| {
        task.producers.iter().all(|producer| *producer < number)
    };
    if tasks.iter().enumerate().all(follows) {
        return Some(tasks);
    }
    let mut waits = vec![0_usize; tasks.len()];
    let mut consumers = vec![Vec::new(); tasks.len()];
    let mut last_with_views = None;
    for (number, task) in tasks.iter().enumerate() {
        let has_views = task.block_shape.when.is_some()
            || task.args.iter().any(|arg| arg.dependency().is_some());
        let before = last_with_views.filter(|_| has_views);
        last_with_views = if has_views { Some(number) } else { last_with_views };
        for producer in task.producers.iter().copied().chain(before) {
            consumers[producer].push(number);
            waits[number] += 1;
        }
    }
    let free = (0..tasks.len()).filter(|number| waits[*number] == 0);
    let (mut ready, mut count): (BTreeSet<usize>, _) = (free.collect(), 0);
    let mut positions = vec![None; tasks.len()];
    while let Some(number) = ready.pop_first() {
        positions[number] = Some(count);
        count += 1;
        for consumer in &consumers[number] {
            waits[*consumer] -= 1;
            if waits[*consumer] == 0 {
                ready.insert(*consumer);
            }
        }
    }
    let mut tasks: Vec<_> = tasks.into_iter().zip(&positions).collect();
    tasks.sort_by_key(|(_, position)| **position);
    let moved = tasks.into_iter().map(|(mut task, position)| {
        (*position)?;
        for producer in &mut task.producers {
            *producer = positions[*producer]?;
        }
        Some(task)
    });
    moved.collect()
}

/// The words of a list; the [module](super) has their layout. Of an argument from which no edges are derived, the list has the address.
#[must_use]
pub fn words(tasks: &[ListedTask]) -> Vec<u64> {
    let mut words = vec![tasks.len() as u64];
    // Where the device keeps their ids.
    words.resize(words.len() + tasks.len(), 0);
    let named: BTreeSet<usize> = tasks.iter().flat_map(|task| &task.producers).copied().collect();
    for (number, task) in tasks.iter().enumerate() {
        let shape = &task.block_shape;
        let bytes = [
            task.kind.get(),
            shape.start.get(),
            shape.priority.get(),
            u8::try_from(shape.mix.len()).unwrap_or(u8::MAX),
            shape.when.is_some().into(),
            named.contains(&number).into(),
        ];
        let head = bytes.iter().rev().fold(0, |head, byte| head << 8 | u64::from(*byte));
        words.push(u64::from(task.kernel.0) | head << 16);
        words.push(u64::from(shape.blocks) | (task.args.len() as u64) << 32);
        words.push(task.producers.len() as u64);
        words.extend(shape.mix.iter().map(|func| u64::from(func.0)));
        if let Some(when) = &shape.when {
            write_view(&when.element, (&[1], &[1]), IN, &mut words);
            words.extend([when.comparison.get().into(), when.value]);
        }
        for arg in &task.args {
            let role = match arg {
                OwnedArg::In(_) => IN,
                OwnedArg::Out(_) => OUT,
                OwnedArg::InOut(_) => IN_OUT,
                OwnedArg::NoDep(..) | OwnedArg::Scalar(_) | OwnedArg::BoundScalar(_) => WORD,
            };
            match arg.dependency() {
                None => words.extend([role.into(), arg.word()]),
                Some((view, _)) => match (view.shape(), view.strides()) {
                    // A list has no stride of a view of one dimension.
                    ([extent], [stride]) if *stride != 1 => {
                        write_view(view, (&[*extent, 1], &[*stride, 1]), role, &mut words);
                    }
                    extents => write_view(view, extents, role, &mut words),
                },
            }
        }
        words.extend(task.producers.iter().map(|producer| *producer as u64));
    }
    words
}

/// Writes a view of these extents and strides as an argument of this role.
fn write_view(
    view: &TensorView<'_>,
    (shape, strides): (&[u32], &[u64]),
    role: u8,
    words: &mut Vec<u64>,
) {
    let rank = shape.len() as u64;
    words.push(u64::from(role) | u64::from(view.element().get()) << 8 | rank << 16);
    words.extend([view.base().0, view.tensor_bytes(), view.offset()]);
    words.extend(shape.iter().map(|extent| u64::from(*extent)));
    words.extend(strides.iter().filter(|_| rank > 1));
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::{ListedTask, in_order};
    use crate::owned::OwnedArg;
    use crate::tensor::TensorView;
    use pto_abi::{CoreKind, FuncId, GmAddr};

    /// Tasks that wait for others; the first ones with a view.
    fn tasks(producers: &[&[usize]], with_views: usize) -> Vec<ListedTask> {
        let task = |(number, producers): (usize, &&[usize])| {
            let func = FuncId(u16::try_from(number).unwrap());
            let view = OwnedArg::In(TensorView::all_bytes(GmAddr(64), 64));
            let args = if number < with_views { vec![view] } else { Vec::new() };
            let producers = producers.to_vec();
            ListedTask { args, producers, ..ListedTask::new(func, CoreKind::AIV) }
        };
        producers.iter().enumerate().map(task).collect()
    }

    fn ordered(producers: &[&[usize]], with_views: usize) -> Option<Vec<(u16, Vec<usize>)>> {
        let ordered = in_order(tasks(producers, with_views))?;
        Some(ordered.into_iter().map(|task| (task.kernel.0, task.producers)).collect())
    }

    #[test]
    fn a_task_follows_its_producers() {
        let as_they_are = vec![(0, vec![]), (1, vec![0])];
        assert_eq!(ordered(&[&[], &[0]], 0), Some(as_they_are));
        let turned = vec![(1, vec![]), (2, vec![]), (0, vec![1]), (3, vec![2, 1])];
        assert_eq!(ordered(&[&[2], &[], &[], &[0, 2]], 0), Some(turned));
        assert_eq!(ordered(&[&[1], &[0]], 0), None, "a cycle");
        let views = vec![(2, vec![]), (0, vec![0]), (1, vec![])];
        assert_eq!(ordered(&[&[2], &[], &[]], 2), Some(views), "views stay in their order");
        assert_eq!(ordered(&[&[1], &[]], 2), None, "the second one derives an edge from the first");
    }
}
