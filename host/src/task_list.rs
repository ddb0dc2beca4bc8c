//! Lists of tasks, as the host writes them: [`pto_graph::task_list`] has the words, and reads them on the device.

use std::collections::BTreeSet;

use pto_abi::{CoreKind, FuncId, GmAddr};
use pto_graph::task_list::{IN, IN_OUT, OUT, WORD};
use pto_graph::{Comparison, ElementType, Priority, StartMode, TensorView};

/// A task of a list.
pub(crate) struct ListedTask {
    pub(crate) func: FuncId,
    pub(crate) kind: CoreKind,
    pub(crate) args: Vec<ListedArg>,
    /// Tasks that stand in front of it.
    pub(crate) producers: Vec<usize>,
    pub(crate) mix: Vec<FuncId>,
    pub(crate) blocks: u32,
    pub(crate) start: StartMode,
    pub(crate) priority: Priority,
    pub(crate) when: Option<ListedCondition>,
}

impl ListedTask {
    /// One kernel on one core, without arguments.
    pub(crate) const fn new(func: FuncId, kind: CoreKind) -> Self {
        Self {
            func,
            kind,
            args: Vec::new(),
            producers: Vec::new(),
            mix: Vec::new(),
            blocks: 1,
            start: StartMode::SPREAD,
            priority: Priority::NORMAL,
            when: None,
        }
    }
}

/// An argument: a word, or the address of the first element of a view.
#[derive(Clone, Debug)]
pub(crate) enum ListedArg {
    Word(u64),
    In(ListedView),
    Out(ListedView),
    InOut(ListedView),
}

impl ListedArg {
    /// What the kernel is given.
    pub(crate) fn word(&self) -> u64 {
        match self {
            Self::Word(word) => *word,
            Self::In(view) | Self::Out(view) | Self::InOut(view) => view.address(),
        }
    }

    /// The view, and whether the task writes there; `None`: it is a word.
    pub(crate) const fn view(&self) -> Option<(&ListedView, bool)> {
        match self {
            Self::Word(_) => None,
            Self::In(view) => Some((view, false)),
            Self::Out(view) | Self::InOut(view) => Some((view, true)),
        }
    }
}

/// A strided part of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListedView {
    pub(crate) base: GmAddr,
    /// Of the tensor.
    pub(crate) bytes: u64,
    pub(crate) element: ElementType,
    /// In elements.
    pub(crate) offset: u64,
    pub(crate) shape: Vec<u32>,
    pub(crate) strides: Vec<u64>,
}

/// When a task runs.
pub(crate) struct ListedCondition {
    /// One element.
    pub(crate) element: ListedView,
    pub(crate) comparison: Comparison,
    pub(crate) value: u64,
}

impl ListedView {
    /// All bytes of a tensor.
    pub(crate) fn whole(base: GmAddr, bytes: u64) -> Self {
        let view = TensorView::all_bytes(base, bytes);
        let (shape, strides) = (view.shape().to_vec(), view.strides().to_vec());
        Self { base, bytes, element: ElementType::U8, offset: 0, shape, strides }
    }

    /// Where its first element is.
    pub(crate) const fn address(&self) -> u64 {
        self.base.0 + self.offset * self.element.bytes()
    }

    /// One element of a tensor, so many bytes from its first one. `None`: no element begins there.
    pub(crate) fn element(
        (base, bytes): (GmAddr, u64),
        element: ElementType,
        offset: u64,
    ) -> Option<Self> {
        let is_there = offset.is_multiple_of(element.bytes());
        let offset = offset / element.bytes();
        let (shape, strides) = (vec![1], vec![1]);
        is_there.then_some(Self { base, bytes, element, offset, shape, strides })
    }

    /// Writes it as an argument of this role.
    fn write(&self, role: u8, words: &mut Vec<u64>) {
        let rank = self.shape.len() as u64;
        words.push(u64::from(role) | u64::from(self.element.get()) << 8 | rank << 16);
        words.extend([self.base.0, self.bytes, self.offset]);
        words.extend(self.shape.iter().map(|extent| u64::from(*extent)));
        words.extend(self.strides.iter().filter(|_| rank > 1));
    }
}

/// The tasks, each behind those that it waits for, and otherwise as they are. Tasks with views stay in the order in which they were added, from which the
/// device derives who waits for whom. `None`: some wait for each other.
pub(crate) fn in_order(tasks: Vec<ListedTask>) -> Option<Vec<ListedTask>> {
    let is_behind = |(number, task): (usize, &ListedTask)| {
        task.producers.iter().all(|producer| *producer < number)
    };
    if tasks.iter().enumerate().all(is_behind) {
        return Some(tasks);
    }
    let mut waits = vec![0_usize; tasks.len()];
    let mut consumers = vec![Vec::new(); tasks.len()];
    let mut with_views = None;
    for (number, task) in tasks.iter().enumerate() {
        let has_views = task.when.is_some() || task.args.iter().any(|arg| arg.view().is_some());
        let before = with_views.filter(|_| has_views);
        with_views = if has_views { Some(number) } else { with_views };
        for producer in task.producers.iter().copied().chain(before) {
            consumers[producer].push(number);
            waits[number] += 1;
        }
    }
    let free = (0..tasks.len()).filter(|number| waits[*number] == 0);
    let (mut ready, mut order): (BTreeSet<usize>, Vec<usize>) = (free.collect(), Vec::new());
    while let Some(number) = ready.pop_first() {
        order.push(number);
        for consumer in &consumers[number] {
            waits[*consumer] -= 1;
            if waits[*consumer] == 0 {
                ready.insert(*consumer);
            }
        }
    }
    let mut places = vec![None; tasks.len()];
    order.iter().enumerate().for_each(|(place, number)| places[*number] = Some(place));
    let mut tasks: Vec<_> = tasks.into_iter().zip(&places).collect();
    tasks.sort_by_key(|(_, place)| **place);
    let placed = tasks.into_iter().map(|(mut task, place)| {
        (*place)?;
        for producer in &mut task.producers {
            *producer = places[*producer]?;
        }
        Some(task)
    });
    placed.collect()
}

/// The words of tasks.
pub(crate) fn words(tasks: &[ListedTask]) -> Vec<u64> {
    let mut words = vec![tasks.len() as u64];
    // Where the device keeps their ids.
    words.resize(words.len() + tasks.len(), 0);
    let named: BTreeSet<usize> = tasks.iter().flat_map(|task| &task.producers).copied().collect();
    for (number, task) in tasks.iter().enumerate() {
        let bytes = [
            task.kind.get(),
            task.start.get(),
            task.priority.get(),
            u8::try_from(task.mix.len()).unwrap_or(u8::MAX),
            task.when.is_some().into(),
            named.contains(&number).into(),
        ];
        let head = bytes.iter().rev().fold(0, |head, byte| head << 8 | u64::from(*byte));
        words.push(u64::from(task.func.0) | head << 16);
        words.push(u64::from(task.blocks) | (task.args.len() as u64) << 32);
        words.push(task.producers.len() as u64);
        words.extend(task.mix.iter().map(|func| u64::from(func.0)));
        if let Some(when) = &task.when {
            when.element.write(IN, &mut words);
            words.extend([when.comparison.get().into(), when.value]);
        }
        for arg in &task.args {
            match arg {
                ListedArg::Word(word) => words.extend([WORD.into(), *word]),
                ListedArg::In(view) => view.write(IN, &mut words),
                ListedArg::Out(view) => view.write(OUT, &mut words),
                ListedArg::InOut(view) => view.write(IN_OUT, &mut words),
            }
        }
        words.extend(task.producers.iter().map(|producer| *producer as u64));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::{ListedArg, ListedTask, ListedView, in_order};
    use pto_abi::{CoreKind, FuncId, GmAddr};

    /// Tasks that wait for others; the first ones with a view.
    fn tasks(producers: &[&[usize]], with_views: usize) -> Vec<ListedTask> {
        let task = |(number, producers): (usize, &&[usize])| {
            let func = FuncId(u16::try_from(number).unwrap());
            let view = ListedArg::In(ListedView::whole(GmAddr(64), 64));
            let args = if number < with_views { vec![view] } else { Vec::new() };
            let producers = producers.to_vec();
            ListedTask { args, producers, ..ListedTask::new(func, CoreKind::AIV) }
        };
        producers.iter().enumerate().map(task).collect()
    }

    fn ordered(producers: &[&[usize]], with_views: usize) -> Option<Vec<(u16, Vec<usize>)>> {
        let ordered = in_order(tasks(producers, with_views))?;
        Some(ordered.into_iter().map(|task| (task.func.0, task.producers)).collect())
    }

    #[test]
    fn a_task_stands_behind_those_that_it_waits_for() {
        let as_they_are = vec![(0, vec![]), (1, vec![0])];
        assert_eq!(ordered(&[&[], &[0]], 0), Some(as_they_are));
        let turned = vec![(1, vec![]), (2, vec![]), (0, vec![1]), (3, vec![2, 1])];
        assert_eq!(ordered(&[&[2], &[], &[], &[0, 2]], 0), Some(turned));
        assert_eq!(ordered(&[&[1], &[0]], 0), None, "a circle");
        let views = vec![(2, vec![]), (0, vec![0]), (1, vec![])];
        assert_eq!(ordered(&[&[2], &[], &[]], 2), Some(views), "views stay in their order");
        assert_eq!(ordered(&[&[1], &[]], 2), None, "the second one derives an edge from the first");
    }
}
