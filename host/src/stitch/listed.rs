//! A graph of a program as a list of tasks, which the device adds in a launch with plans, and the order of its tasks to the programs before and after it.
//!
//! The edges within a graph are those of the program. Where the table of the library says of every task which bytes it touches, the tasks
//! get these as views, and wait for the tiles of other programs. Where one task does not say it, the graph gets **gates**: before it a task for each of its tensors, which
//! waits for the earlier users of the tensor, and after it a task for each, which the later users of the tensor wait for. No core runs a gate.
//!
//! ```text
//! programs before --tensor--> gate --> tasks of the graph that use the tensor --> gate --tensor--> programs after it
//! ```

use std::collections::BTreeMap;

use pto_abi::{CoreKind, FuncId, GmAddr};
use pto_aicore_kernels::func;
use pto_aicore_kernels::library::{self, Access, LibraryKernel};
use pto_graph::owned::{OwnedArg, OwnedBlockShape, OwnedPredicate};
use pto_graph::task_list::{ListedArg, ListedTask, MAX_VIEWS};
use pto_graph::{Comparison, ElementType, RawView, TensorView};
use pto_workload::program::{GraphArgument, GraphTask, Program, Role, TensorElement};

/// Bytes of an element of the library's kernels.
const ELEMENT: u64 = 4;

/// A program of tasks, the func ids of their kernels, and where its tensors are.
pub(super) struct Listing<'p> {
    pub(super) program: &'p Program,
    pub(super) tasks: &'p [GraphTask],
    pub(super) funcs: &'p [Vec<FuncId>],
    pub(super) addresses: &'p [u64],
}

impl Listing<'_> {
    /// The tasks, of a list that will be written to `at`.
    pub(super) fn tasks(&self, at: GmAddr) -> Vec<ListedTask> {
        self.visible().unwrap_or_else(|| self.between_gates(at))
    }

    /// The tasks with the views of what they touch; `None`: it is unknown for one of them.
    pub(super) fn visible(&self) -> Option<Vec<ListedTask>> {
        let args: Option<Vec<_>> = self.tasks.iter().map(|task| self.views(task)).collect();
        let zipped = self.tasks.iter().zip(self.funcs).zip(args?);
        let listed = zipped
            .map(|((task, funcs), args)| self.listed(task, funcs, args, task.producers.clone()));
        Some(listed.collect())
    }

    /// The arguments of a task as words and views; `None`: it is unknown what the task touches.
    fn views(&self, task: &GraphTask) -> Option<Vec<ListedArg>> {
        let kernel = self.of_library(task)?;
        let words = self.words(task);
        let args: Option<Vec<_>> =
            (0..task.args.len()).map(|at| self.view(task, kernel, &words, at)).collect();
        let args = args?;
        let mut written = Vec::new();
        for (arg, given) in task.args.iter().zip(&args) {
            if let (GraphArgument::Tensor { tensor, .. }, OwnedArg::Out(_) | OwnedArg::InOut(_)) =
                (arg, given)
            {
                written.push(*tensor);
            }
        }
        let views = args.iter().filter(|arg| !matches!(arg, OwnedArg::Scalar(_))).count();
        let count = written.len();
        written.sort_unstable();
        written.dedup();
        // A task whose outputs may have elements in common is refused by the runtime where they are views.
        (written.len() == count && views <= MAX_VIEWS).then(|| without_doubles(args))
    }

    /// The kernel of a task that touches what the table of the library says.
    fn of_library(&self, task: &GraphTask) -> Option<&'static LibraryKernel> {
        let is_own = self.program.native().is_some_and(|own| own.kernel(&task.kernel).is_some());
        let shape = &task.block_shape;
        let is_one = shape.mix.is_empty() && shape.blocks == 1 && shape.when.is_none();
        let kernel = library::by_name(&task.kernel).filter(|_| is_one && !is_own)?;
        let is_known = task.args.len() >= kernel.args.len() && !kernel.takes_context;
        is_known.then_some(kernel)
    }

    fn view(
        &self,
        task: &GraphTask,
        kernel: &LibraryKernel,
        words: &[u64],
        at: usize,
    ) -> Option<ListedArg> {
        let word = words[at];
        let GraphArgument::Tensor { tensor, offset } = task.args[at] else {
            // A word where a tensor should be: its memory is unknown.
            let is_word = kernel.addresses.get(at).is_none_or(|is_address| !is_address);
            return is_word.then_some(OwnedArg::Scalar(word));
        };
        let footprint = (kernel.footprint)(words, 1, at)?;
        let [rows, cols, ld] = footprint.extents?.matrix();
        if rows == 0 || cols == 0 {
            return Some(OwnedArg::Scalar(word));
        }
        let bytes = self.program.tensors()[tensor].bytes();
        let reach = (rows - 1).checked_mul(ld)?.checked_add(cols)?.checked_mul(ELEMENT)?;
        let is_inside = offset.checked_add(reach)? <= bytes && offset.is_multiple_of(ELEMENT);
        if !is_inside || (rows > 1 && ld < cols) {
            return None;
        }
        let [rows, cols] = [u32::try_from(rows).ok()?, u32::try_from(cols).ok()?];
        let (shape, strides): (&[u32], &[u64]) = match rows {
            1 => (&[cols], &[1]),
            _ => (&[rows, cols], &[ld, 1]),
        };
        let base = GmAddr(self.addresses[tensor]);
        let (element, offset) = (ElementType::F32.get(), offset / ELEMENT);
        let raw = RawView { base, bytes, element, offset, shape, strides };
        let view = TensorView::alleged(&raw);
        Some(match footprint.access {
            Access::In => OwnedArg::In(view),
            Access::Out => OwnedArg::Out(view),
            Access::InOut => OwnedArg::InOut(view),
        })
    }

    fn words(&self, task: &GraphTask) -> Vec<u64> {
        words_of(&task.args, self.addresses)
    }

    /// A task of the program, with these arguments, which waits for these tasks of the list.
    fn listed(
        &self,
        task: &GraphTask,
        funcs: &[FuncId],
        args: Vec<ListedArg>,
        producers: Vec<usize>,
    ) -> ListedTask {
        let shape = &task.block_shape;
        let when = shape.when.map(|when| {
            let of = when.element;
            // By its own address where it is no element of the tensor, so that the runtime refuses it.
            let own = GmAddr(self.addresses[of.tensor].wrapping_add(of.offset));
            let element = element_at(self.tensor(of.tensor), of)
                .unwrap_or_else(|| TensorView::all_bytes(own, of.element.bytes()));
            OwnedPredicate { element, comparison: when.comparison, value: when.value }
        });
        let OwnedBlockShape { blocks, start, priority, .. } = *shape;
        let mix = funcs[1..].to_vec();
        let block_shape = OwnedBlockShape { mix, blocks, start, priority, when };
        ListedTask { kernel: funcs[0], kind: task.kind, args, producers, block_shape }
    }

    fn tensor(&self, number: usize) -> (GmAddr, u64) {
        (GmAddr(self.addresses[number]), self.program.tensors()[number].bytes())
    }

    /// The tasks by the words of their arguments, and the gates of their tensors.
    fn between_gates(&self, at: GmAddr) -> Vec<ListedTask> {
        let mut users: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let used: Vec<_> = self.tasks.iter().map(tensors_of).collect();
        for (number, tensors) in used.iter().enumerate() {
            for tensor in tensors {
                users.entry(*tensor).or_default().push(number);
            }
        }
        let Some(first) = self.tasks.first() else { return Vec::new() };
        // A kind of core that the device has. The kernel takes any arguments.
        let (kernel, kind) = match first.kind {
            CoreKind::AIC => (func::EMPTY_AIC, CoreKind::AIC),
            _ => (func::EMPTY_AIV, CoreKind::AIV),
        };
        let gate = |tensor: usize, producers: Vec<usize>| {
            let (base, bytes) = self.tensor(tensor);
            let view = TensorView::all_bytes(base, bytes);
            let arg = match self.program.tensors()[tensor].role {
                Role::Input | Role::Constant => OwnedArg::In(view),
                _ => OwnedArg::InOut(view),
            };
            let block_shape = OwnedBlockShape { when: Some(never(at)), ..OwnedBlockShape::plain() };
            ListedTask { kernel, kind, args: vec![arg], producers, block_shape }
        };
        let order: Vec<_> = users.keys().copied().collect();
        let gates = order.len();
        let index = |tensor: &usize| order.binary_search(tensor).unwrap_or(0);
        let mut listed: Vec<_> = order.iter().map(|tensor| gate(*tensor, Vec::new())).collect();
        for ((task, funcs), tensors) in self.tasks.iter().zip(self.funcs).zip(&used) {
            let words = self.words(task).into_iter().map(OwnedArg::Scalar).collect();
            let own = task.producers.iter().map(|producer| gates + producer);
            let producers = tensors.iter().map(index).chain(own).collect();
            listed.push(self.listed(task, funcs, words, producers));
        }
        for (tensor, users) in users {
            listed.push(gate(tensor, users.iter().map(|user| gates + user).collect()));
        }
        listed
    }
}

/// The arguments, with words instead of repeated views: the runtime need not look for their writers twice.
fn without_doubles(mut args: Vec<ListedArg>) -> Vec<ListedArg> {
    for at in 1..args.len() {
        let (before, rest) = args.split_at_mut(at);
        if let OwnedArg::In(view) = &rest[0]
            && before.iter().any(|other| matches!(other, OwnedArg::In(other) if other == view))
        {
            rest[0] = OwnedArg::Scalar(view.address().0);
        }
    }
    args
}

/// The tensors that a task uses, each once.
fn tensors_of(task: &GraphTask) -> Vec<usize> {
    let args = task.args.iter().filter_map(|arg| match arg {
        GraphArgument::Tensor { tensor, .. } => Some(*tensor),
        GraphArgument::Word(_) => None,
    });
    let mut tensors: Vec<_> =
        args.chain(task.block_shape.when.map(|when| when.element.tensor)).collect();
    tensors.sort_unstable();
    tensors.dedup();
    tensors
}

/// Arguments as words, of tensors at these addresses.
pub(super) fn words_of(args: &[GraphArgument], addresses: &[u64]) -> Vec<u64> {
    let word = |arg: &GraphArgument| match *arg {
        GraphArgument::Word(word) => word,
        GraphArgument::Tensor { tensor, offset } => addresses[tensor] + offset,
    };
    args.iter().map(word).collect()
}

/// An element of the tensor at this address, of this many bytes. `None`: no element begins at that byte.
fn element_at((base, bytes): (GmAddr, u64), at: TensorElement) -> Option<TensorView<'static>> {
    let size = at.element.bytes();
    let (element, offset) = (at.element.get(), at.offset / size);
    let raw = RawView { base, bytes, element, offset, shape: &[1], strides: &[1] };
    at.offset.is_multiple_of(size).then(|| TensorView::alleged(&raw))
}

/// A predicate that is always false: the first word of the list at `at`, which is the number of its tasks, is never so large.
fn never(at: GmAddr) -> OwnedPredicate<TensorView<'static>> {
    let element = TensorView::dense(at, ElementType::U64, &[1]);
    OwnedPredicate { element, comparison: Comparison::EQUAL, value: u64::MAX }
}
