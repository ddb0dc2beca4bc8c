//! The kernel that tasks on a device call, and what a task tells it.
//!
//! ```text
//! arguments    links | nanoseconds on a core of the device | for each link:
//!              description's address | its words | first unit | units | node + 1 | status, or 0 | inputs, 0 where not given .. | outputs ..
//! description  operator | types of inputs | types of outputs      (words of 64 bits, a constant of the program)
//! status       node + 1 | index | extent of the axis | 0          (zeros: nothing was wrong; the first one that fails writes)
//! ```

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use pto_abi::CoreKind;
use pto_aicore_kernels::KernelFn;
use pto_workload::program::{GraphArgument, GraphTask, Program, ProgramBody, Role};

use super::compute;
use super::cost::{CostModel, TaskCost};
use super::failure::Failure;
use super::memory::{In, Out};
use super::split::WorkSplit;
use super::work::work;
use crate::error::{Argument, OperatorError};
use crate::infer::Input;
use crate::operator::Operator;
use crate::tensor::TensorType;
use crate::words::{AttributeWords as _, Reader, words, words_of};

words! {
    /// What a task does: an operator on tensors of these types.
    pub(crate) struct Description {
        /// The operator.
        pub operator: Operator,
        /// The inputs; `None`: not given.
        pub inputs: Vec<Option<TensorType>>,
        /// The outputs: all, or the first ones.
        pub outputs: Vec<TensorType>,
    }
}

/// The name of the output in which tasks report an index outside of its axis: `u64[4]`.
pub const STATUS: &str = "pto.status";
/// The name of the constant that describes what tasks do.
pub(crate) const DESCRIPTIONS: &str = "pto.operators";
/// Arguments in front of the links.
pub(crate) const HEAD: usize = 2;
/// The argument that says how many nanoseconds a core of the device takes for the task.
pub const COST_WORD: usize = 1;
/// Arguments of a link in front of its tensors.
pub(crate) const LINK: usize = 6;
/// Words of a status.
const STATUS_WORDS: usize = 4;
/// What stands in the place of an index where a kernel stopped by a fault of ours.
const PANIC: u64 = u64::MAX;

impl Description {
    /// The words.
    pub(crate) fn words(&self) -> Vec<u64> {
        words_of(self)
    }

    fn of_words(words: &[u64]) -> Option<Self> {
        let mut reader = Reader(words);
        let description = Self::read(&mut reader)?;
        reader.0.is_empty().then_some(description)
    }
}

/// A kernel that a program's tasks call: give `pto_host::Kernel::from_fn(name, kind, entry)` to `Stitcher::load_with`.
#[derive(Clone, Debug)]
pub struct OperatorKernel {
    /// The name that tasks have.
    pub name: String,
    /// The cores.
    pub kind: CoreKind,
    /// The code.
    pub entry: KernelFn,
}

/// The name of a node's kernel. A program file holds 128 bytes of a name, and no control characters.
pub(crate) fn kernel_name(operator: &Operator, node: Option<(&str, usize)>) -> String {
    let own = operator.name();
    match node {
        None => own.to_owned(),
        Some((name, _))
            if !name.is_empty()
                && name.len() + own.len() < 127
                && !name.chars().any(char::is_control) =>
        {
            format!("{own}/{name}")
        }
        Some((_, number)) => format!("{own}/#{number}"),
    }
}

/// The name of the kernel of a task with several operators: `nodes` are their nodes' names, `number` is that of the task.
pub(crate) fn chain_name(nodes: Option<Vec<&str>>, number: usize) -> String {
    const OWN: &str = "Chain";
    let Some(nodes) = nodes else { return OWN.to_owned() };
    let is_name = |name: &String| {
        name.len() + OWN.len() < 127 && !name.is_empty() && !name.chars().any(char::is_control)
    };
    let ends = [nodes.first(), nodes.last()].map(|node| node.copied().unwrap_or_default());
    let all = [nodes.join("+"), ends.join("+..+")];
    match all.into_iter().find(is_name) {
        Some(name) => format!("{OWN}/{name}"),
        None => format!("{OWN}/#{number}"),
    }
}

/// The kernels of operators that a program calls, each once; none of a program without operators. Every task is checked: its description, the types of its
/// tensors, and that these lie inside of the program's tensors.
///
/// # Errors
/// A task does not say what an operator needs, so that the file was changed.
pub fn kernels(program: &Program) -> Result<Vec<OperatorKernel>, OperatorError> {
    let Some((number, words)) = descriptions(program) else { return Ok(Vec::new()) };
    let ProgramBody::Graph(tasks) = program.body() else { return Ok(Vec::new()) };
    let mut known = BTreeMap::new();
    let mut found: BTreeMap<(String, u8), OperatorKernel> = BTreeMap::new();
    for (at, task) in tasks.iter().enumerate() {
        if pto_aicore_kernels::by_name(&task.kernel).is_some() {
            continue;
        }
        if !(TaskCheck { program, task, number, words: &words }).fits(&mut known) {
            let rule = format!(
                "task {at} ({}) of program {} does not say what an operator needs; make the program again",
                task.kernel,
                program.name()
            );
            return Err(OperatorError { operator: "program", argument: Argument::Operator, rule });
        }
        let kernel = OperatorKernel { name: task.kernel.clone(), kind: task.kind, entry: run_task };
        found.insert((task.kernel.clone(), task.kind.get()), kernel);
    }
    Ok(found.into_values().collect())
}

/// The number of the constant that describes what tasks do, and its words; `None`: the program has no operators.
fn descriptions(program: &Program) -> Option<(usize, Vec<u64>)> {
    let number = program.tensors().iter().position(|tensor| tensor.name == DESCRIPTIONS)?;
    let (words, _) = program.constant(number).unwrap_or(&[]).as_chunks();
    Some((number, words.iter().map(|word| u64::from_ne_bytes(*word)).collect()))
}

/// What messages call each node of a program that was made of a model: `operator Gather of node look_up`. A node without a task has its name alone.
#[must_use]
pub fn node_titles(program: &Program) -> Vec<String> {
    let names = program.model().map_or(&[][..], |model| &model.nodes);
    let mut operators = vec![None; names.len()];
    if let (Some((number, words)), ProgramBody::Graph(tasks)) =
        (descriptions(program), program.body())
    {
        let mut known = Known::new();
        for task in tasks {
            let check = TaskCheck { program, task, number, words: &words };
            for (node, operator) in check.nodes(&mut known).unwrap_or_default() {
                if let Some(found) = operators.get_mut(node) {
                    *found = Some(operator);
                }
            }
        }
    }
    let title = |(name, operator): (&String, Option<&str>)| match operator {
        Some(operator) => format!("operator {operator} of node {name}"),
        None => format!("node {name}"),
    };
    names.iter().zip(operators).map(title).collect()
}

/// A task under examination.
struct TaskCheck<'p> {
    program: &'p Program,
    task: &'p GraphTask,
    number: usize,
    words: &'p [u64],
}

/// Descriptions by their first word and their number of words; `None`: what stands there is none.
type Known = BTreeMap<(usize, usize), Option<(Description, usize, bool)>>;

impl TaskCheck<'_> {
    fn word(&self, at: usize) -> Option<u64> {
        match self.task.args.get(at)? {
            GraphArgument::Word(word) => Some(*word),
            GraphArgument::Tensor { .. } => None,
        }
    }

    /// Whether every link is an operator on memory of the program, and nothing is behind them.
    fn fits(&self, known: &mut Known) -> bool {
        let Some(links) = self.word(0).filter(|links| *links > 0) else { return false };
        let mut at = HEAD;
        for _ in 0..links {
            let Some(next) = self.link(at, known) else { return false };
            at = next;
        }
        self.word(COST_WORD).is_some()
            && self.task.block_shape.is_plain()
            && at == self.task.args.len()
    }

    /// The node of each link, and its operator; `None`: a link is none.
    fn nodes(&self, known: &mut Known) -> Option<Vec<(usize, &'static str)>> {
        let (mut at, mut found) = (HEAD, Vec::new());
        for _ in 0..self.word(0)? {
            let (Description { operator, inputs, outputs }, ..) = self.description(at, known)?;
            let next = at + LINK + inputs.len() + outputs.len();
            // 0: the link copies a value to an output, and belongs to no node.
            if let Some(node) = self.word(at + 4)?.checked_sub(1) {
                found.push((usize::try_from(node).ok()?, operator.name()));
            }
            at = next;
        }
        Some(found)
    }

    /// The argument behind the link that begins at `at`; `None`: it is no operator on memory of the program.
    fn link(&self, at: usize, known: &mut Known) -> Option<usize> {
        let (description, units, can_fail) = self.description(at, known)?;
        let Description { inputs, outputs, .. } = description;
        let (first, count) = (self.word(at + 2)?, self.word(at + 3)?);
        let are_units = first.checked_add(count).is_some_and(|end| end <= *units as u64);
        let status = match self.task.args.get(at + 5)? {
            GraphArgument::Tensor { tensor, offset: 0 } => {
                self.program.tensors().get(*tensor).is_some_and(|tensor| {
                    tensor.name == STATUS && tensor.bytes() >= 8 * STATUS_WORDS as u64
                })
            }
            GraphArgument::Word(0) => !can_fail,
            _ => false,
        };
        let tensors = at + LINK;
        let fits = are_units
            && status
            && inputs.iter().enumerate().all(|(number, ty)| match ty {
                Some(ty) => self.holds(tensors + number, ty, false),
                None => self.word(tensors + number) == Some(0),
            })
            && outputs
                .iter()
                .enumerate()
                .all(|(number, ty)| self.holds(tensors + inputs.len() + number, ty, true));
        fits.then(|| tensors + inputs.len() + outputs.len())
    }

    /// The description of a link, the number of units, and whether it can fail.
    fn description<'k>(
        &self,
        at: usize,
        known: &'k mut Known,
    ) -> Option<&'k (Description, usize, bool)> {
        let GraphArgument::Tensor { tensor, offset } = *self.task.args.get(at)? else {
            return None;
        };
        let (first, count) =
            (usize::try_from(offset).ok()?, usize::try_from(self.word(at + 1)?).ok()?);
        if tensor != self.number || first % 8 != 0 {
            return None;
        }
        let range = first / 8..(first / 8).checked_add(count)?;
        let decoded = known.entry((first, count)).or_insert_with(|| {
            let description = Description::of_words(self.words.get(range)?)?;
            let given: Vec<_> =
                description.inputs.iter().map(|ty| ty.as_ref().map(Input::from)).collect();
            let types = description.operator.infer(&given).ok()?;
            if description.outputs.is_empty() || !types.starts_with(&description.outputs) {
                return None;
            }
            let inputs: Vec<_> = description.inputs.iter().map(Option::as_ref).collect();
            let work = work(&description.operator, &inputs, &description.outputs);
            Some((description, work.units, work.can_fail))
        });
        decoded.as_ref()
    }

    /// Whether an argument is memory for a tensor of this type.
    fn holds(&self, at: usize, ty: &TensorType, is_written: bool) -> bool {
        let Some(GraphArgument::Tensor { tensor, offset }) = self.task.args.get(at) else {
            return false;
        };
        let Some(tensor) = self.program.tensors().get(*tensor) else { return false };
        let is_role =
            !is_written || matches!(tensor.role, Role::Output | Role::Temporary | Role::Updated);
        let end = offset.checked_add(ty.bytes() as u64);
        is_role && offset % 8 == 0 && end.is_some_and(|end| end <= tensor.bytes())
    }
}

fn pointer<T>(address: u64) -> *mut T {
    #[expect(clippy::cast_possible_truncation, reason = "addresses of this process have 64 bits")]
    ptr::with_exposed_provenance_mut(address as usize)
}

/// Runs the links of a task, one after another.
///
/// # Safety
/// `args` are the words at the head of this file: those of a task that [`kernels`] has checked, with the addresses of the program's tensors. Nobody writes what
/// the task reads meanwhile, and nobody else touches what it writes.
unsafe extern "C" fn run_task(args: *const u64) {
    // SAFETY: the caller promises so many words.
    let [links, _] = unsafe { args.cast::<[u64; HEAD]>().read() };
    let mut at = args.wrapping_add(HEAD);
    for _ in 0..links {
        // SAFETY: the caller promises as many links.
        match unsafe { run_link(at) } {
            Some(words) => at = at.wrapping_add(words),
            None => return,
        }
    }
}

/// Runs units of an operator. Gives the words of the link; `None`: they are none.
///
/// # Safety
/// As for [`run_task`]: `args` are the words of a link.
unsafe fn run_link(args: *const u64) -> Option<usize> {
    // SAFETY: the caller promises so many words.
    let [address, count, first, units, node, status] = unsafe { args.cast::<[u64; LINK]>().read() };
    #[expect(clippy::cast_possible_truncation, reason = "words of a checked task")]
    let (count, units) = (count as usize, (first as usize, units as usize));
    // SAFETY: the caller promises the description, a constant of the program.
    let words = unsafe { std::slice::from_raw_parts(pointer::<u64>(address).cast_const(), count) };
    let mut link = None;
    let done = catch_unwind(AssertUnwindSafe(|| {
        let Some(description) = Description::of_words(words) else {
            return Err(Failure::Index { index: i64::MIN, extent: PANIC });
        };
        let all = description.inputs.len() + description.outputs.len();
        link = Some(LINK + all);
        // SAFETY: the caller promises a word for each tensor behind the head.
        let tensors = unsafe { std::slice::from_raw_parts(args.wrapping_add(LINK), all) };
        // SAFETY: the caller promises the tensors, and that nobody writes what the task reads meanwhile.
        unsafe { compute_at(&description, tensors, units) }
    }));
    let (index, extent) = match done {
        Ok(Ok(())) => return link,
        Ok(Err(Failure::Index { index, extent })) => (index.cast_unsigned(), extent),
        Err(_) => (0, PANIC),
    };
    if status != 0 {
        // SAFETY: the caller promises the status.
        unsafe { tell(pointer::<u64>(status), [node, index, extent]) }
    }
    link
}

/// Runs units of what a description says on tensors at these addresses: those of the inputs, then those of the outputs.
///
/// # Safety
/// There are as many addresses as tensors, each of a dense tensor of its type, aligned for its elements. Nobody writes what the units read meanwhile, and nobody else
/// touches what they write.
unsafe fn compute_at(
    description: &Description,
    addresses: &[u64],
    units: (usize, usize),
) -> Result<(), Failure> {
    let (ins, outs) = addresses.split_at(description.inputs.len());
    let inputs: Vec<Option<In<'_>>> = description
        .inputs
        .iter()
        .zip(ins)
        .map(|(ty, address)| {
            ty.as_ref().map(|ty| {
                let bytes = match ty.bytes() {
                    0 => bytemuck::cast_slice::<u64, u8>(&[]),
                    // SAFETY: the caller promises the tensor, which nobody writes meanwhile.
                    bytes => unsafe {
                        std::slice::from_raw_parts(pointer::<u8>(*address).cast_const(), bytes)
                    },
                };
                In { ty, bytes }
            })
        })
        .collect();
    let mut outputs: Vec<Out<'_>> = description
        .outputs
        .iter()
        .zip(outs)
        // SAFETY: the caller promises the tensor; tasks of one operator have different units, which write different elements.
        .map(|(ty, address)| unsafe { Out::shared(ty, pointer::<u8>(*address), ty.bytes()) })
        .collect();
    compute(&description.operator, &inputs, &mut outputs, units)
}

/// An operator on tensors of known types, for callers that have the tensors in memory of their own.
#[derive(Clone, Debug)]
pub struct PreparedOperator {
    description: Description,
    work: WorkSplit,
}

impl PreparedOperator {
    /// Checks the operator on these types. Outputs are all that it gives, or the first ones.
    ///
    /// # Errors
    /// Those of [`Operator::infer`]; the outputs are not of the types that it gives.
    pub fn new(
        operator: Operator,
        inputs: Vec<Option<TensorType>>,
        outputs: Vec<TensorType>,
    ) -> Result<Self, OperatorError> {
        let given: Vec<_> = inputs.iter().map(Option::as_ref).collect();
        let work = operator.work(&given, &outputs)?;
        Ok(Self { description: Description { operator, inputs, outputs }, work })
    }

    /// The operator's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.description.operator.name()
    }

    /// How many addresses it needs: those of the inputs, then those of the outputs.
    #[must_use]
    pub const fn tensors(&self) -> usize {
        self.description.inputs.len() + self.description.outputs.len()
    }

    /// The types of the outputs.
    #[must_use]
    pub fn outputs(&self) -> &[TensorType] {
        &self.description.outputs
    }

    /// How it is split into units.
    #[must_use]
    pub const fn work(&self) -> &WorkSplit {
        &self.work
    }

    /// What units (first, count) take on a core of the device.
    #[must_use]
    pub fn cost(&self, units: (usize, usize)) -> TaskCost {
        let Description { operator, inputs, outputs } = &self.description;
        let inputs: Vec<_> = inputs.iter().map(Option::as_ref).collect();
        CostModel { operator, inputs: &inputs, outputs, work: &self.work }.task(units)
    }

    /// Runs units (first, count).
    ///
    /// # Errors
    /// An index that stands in memory stands for no element.
    ///
    /// # Panics
    /// There are not as many addresses as tensors, or not as many units.
    ///
    /// # Safety
    /// `addresses` are those of the inputs (any number where one is not given) and of the outputs, each of a dense tensor of its type, aligned for its elements.
    /// Nobody writes what the units read meanwhile, and nobody else touches what they write ([`WorkSplit`]).
    pub unsafe fn run(
        &self,
        addresses: &[u64],
        units: (usize, usize),
    ) -> Result<(), OperatorError> {
        let Description { inputs, outputs, operator } = &self.description;
        assert_eq!(addresses.len(), inputs.len() + outputs.len(), "an address for each tensor");
        assert!(units.0.saturating_add(units.1) <= self.work.units, "units {units:?}");
        // SAFETY: the caller promises it.
        unsafe { compute_at(&self.description, addresses, units) }
            .map_err(|failure| failure.into_error(operator))
    }
}

/// Writes why a task failed, unless another one has done so.
///
/// # Safety
/// `status` are four words, which tasks write by this function alone while the program runs.
unsafe fn tell(status: *mut u64, [node, index, extent]: [u64; 3]) {
    // SAFETY: the caller promises the word, and that it is used as an atomic one.
    let taken = unsafe { AtomicU64::from_ptr(status) };
    // Relaxed: who has taken it writes the rest alone, and the host reads it when the program has ended.
    if taken.compare_exchange(0, node, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
        // SAFETY: the caller promises four words, and this task alone writes them now.
        unsafe { status.wrapping_add(1).write(index) }
        // SAFETY: as above.
        unsafe { status.wrapping_add(2).write(extent) }
    }
}
