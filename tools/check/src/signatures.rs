//! The kernels that tasks name, compared with those that there are: func id, kind of core, arguments, and what the kernels do to the
//! tensors that they are given.

use std::fmt;

use pto_abi::CoreKind;
use pto_graph::signature::{self, ArgumentMemory, Arguments, FootprintFn};

use crate::chains::Kernel;
use crate::finding::Finding;
use crate::program::{Action, Argument, Program, Task, View};

/// What is known of a kernel.
#[derive(Clone, Debug)]
pub struct Signature {
    /// Its func id.
    pub func: u16,
    /// What people call it.
    pub name: String,
    /// The cores that it runs on.
    pub kind: CoreKind,
    /// What its argument words are called, in order.
    pub args: Vec<String>,
    /// Whether more argument words may follow these.
    pub takes_more: bool,
    /// What it does to its tensors; `None`: only its author knows it.
    pub footprint: Option<FootprintFn>,
}

/// The kernels that there are.
#[derive(Clone, Debug, Default)]
pub struct Signatures(Vec<Signature>);

/// Why a kernel that executes tile kernels cannot stand in a graph file.
const OF_A_PLAN: &str = "executes a tile kernel of a plan, which it finds by an address, and a graph file holds no plan; \
     run the .workload file, or make a program file of it (pto program build)";

impl Signatures {
    /// These kernels; of two with one func id the last one counts.
    #[must_use]
    pub fn new(kernels: Vec<Signature>) -> Self {
        Self(kernels)
    }

    /// The kernel with a func id.
    #[must_use]
    pub fn of(&self, func: u16) -> Option<&Signature> {
        self.0.iter().rev().find(|kernel| kernel.func == func)
    }

    /// Every task whose kernels are not there, or run on other cores, or take another number of arguments.
    #[must_use]
    pub fn compare(&self, program: &Program) -> Vec<Finding> {
        findings(program, |task| {
            let args = task.args.len();
            let own = (!task.is_chain()).then_some((task.func, task.kind, args));
            let mix = task.block_shape.mix.iter().map(|func| (*func, CoreKind::AIV, args));
            let links = task.links.iter().map(|link| (link.func, task.kind, link.args.len()));
            own.into_iter().chain(mix).chain(links).find_map(|kernel| self.mismatch(kernel))
        })
    }

    fn mismatch(&self, (func, kind, count): (u16, CoreKind, usize)) -> Option<String> {
        let Some(known) = self.of(func) else {
            return Some(format!(
                "no kernel has func id {func}; use the func id of a registered kernel"
            ));
        };
        known.with(|signature| {
            let defect = signature.check_form(kind, count).err()?;
            Some(format!("func id {func}: {}", defect.describe_form(signature)))
        })
    }

    /// Every task of a file that gives a kernel what that cannot take: a kernel is trusted with its words, so that a number instead of
    /// an address, or more rows than a tensor has, would end the process.
    #[must_use]
    pub fn compare_arguments(&self, program: &Program) -> Vec<Finding> {
        findings(program, |task| {
            task.calls().find_map(|kernel| {
                let what = self.refusal(program, task, &kernel)?;
                Some(if task.is_chain() {
                    format!("kernel {}, {what}", kernel.number)
                } else {
                    what
                })
            })
        })
    }

    fn refusal(&self, program: &Program, task: &Task, kernel: &Kernel<'_>) -> Option<String> {
        let call = FileCall::new(program, task, kernel);
        let mix = task.block_shape.mix.iter().map(|func| (*func, CoreKind::AIV));
        let mut funcs = std::iter::once((kernel.func, task.kind)).chain(mix);
        funcs.find_map(|(func, kind)| {
            let known = self.of(func)?;
            if known.executes_tiles() {
                return Some(format!("{} {OF_A_PLAN}", known.name));
            }
            known.with(|signature| {
                let defect = signature.check(kind, &call).err()?;
                Some(defect.describe(signature, &call).to_string())
            })
        })
    }

    /// The first task that executes a tile kernel, and so cannot stand in a graph file.
    #[must_use]
    pub fn of_a_plan(&self, program: &Program) -> Option<String> {
        program.tasks.iter().find_map(|task| {
            let funcs = std::iter::once(task.func).chain(task.links.iter().map(|link| link.func));
            let kernel =
                funcs.filter_map(|func| self.of(func)).find(|kernel| kernel.executes_tiles())?;
            Some(format!("{task}: {} {OF_A_PLAN}", kernel.name))
        })
    }
}

impl Signature {
    /// Whether it executes tile kernels, whose operands follow its own arguments. A kernel that takes any arguments names none.
    const fn executes_tiles(&self) -> bool {
        self.takes_more && !self.args.is_empty()
    }

    /// Calls `check` with the signature in the form of the check that all interfaces share.
    fn with<T>(&self, check: impl FnOnce(&signature::Signature<'_>) -> T) -> T {
        let args: Vec<&str> = self.args.iter().map(String::as_str).collect();
        let Self { name, kind, takes_more, footprint, .. } = self;
        check(&signature::Signature {
            name,
            kind: *kind,
            args: Some(&args),
            takes_more: *takes_more,
            footprint: *footprint,
        })
    }
}

/// The tasks of which `what` says something.
fn findings(program: &Program, what: impl Fn(&Task) -> Option<String>) -> Vec<Finding> {
    let steps = program.steps.iter().filter_map(|step| match step.action {
        Action::Add(index) => Some((&program.tasks[index], step.line)),
        _ => None,
    });
    let finding = |(task, line): (&Task, usize)| {
        Some(Finding::of_kernel(task.id, line, format!("{task}: {}", what(task)?)))
    };
    steps.filter_map(finding).collect()
}

/// A kernel of a task in a graph file.
struct FileCall<'p> {
    program: &'p Program,
    args: &'p [Argument],
    words: Vec<u64>,
    blocks: u32,
}

impl<'p> FileCall<'p> {
    fn new(program: &'p Program, task: &Task, kernel: &'p Kernel<'_>) -> Self {
        let words = words(&kernel.args);
        Self { program, args: &kernel.args, words, blocks: task.block_shape.blocks }
    }

    fn view(&self, at: usize) -> Option<&View> {
        self.args.get(at)?.view().map(|(view, _)| view)
    }
}

/// Arguments as words; of a view, and of a word that a replay binds, zero.
pub(crate) fn words(args: &[Argument]) -> Vec<u64> {
    let word = |arg: &Argument| match arg {
        Argument::Scalar(word) => *word,
        _ => 0,
    };
    args.iter().map(word).collect()
}

/// Whether all words are known: those that a replay binds are known to the replay.
pub(crate) fn are_words_known(args: &[Argument]) -> bool {
    args.iter().all(|arg| !matches!(arg, Argument::BoundScalar(_)))
}

impl Arguments for FileCall<'_> {
    fn words(&self) -> &[u64] {
        &self.words
    }

    fn blocks(&self) -> u32 {
        self.blocks
    }

    fn memory_of(&self, at: usize) -> ArgumentMemory {
        let memory = |view: &View| ArgumentMemory::Memory {
            offset: view.offset.saturating_mul(view.element.bytes()),
            bytes: self.program.tensors[view.tensor].bytes,
        };
        self.view(at).map_or(ArgumentMemory::Nowhere, memory)
    }

    fn is_view(&self, at: usize) -> bool {
        self.view(at).is_some()
    }

    fn has_sizes(&self) -> bool {
        are_words_known(self.args)
    }

    /// A file is what a builder program submitted, and its numbers are those of the program.
    fn is_vouched_for(&self) -> bool {
        true
    }

    fn describe_nowhere(&self, _: usize, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("the file gives a number; give a view of a tensor")
    }

    fn describe_memory(&self, at: usize, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.view(at).map(|view| self.program.tensor_name(view.tensor));
        to.write_str(&name.unwrap_or_default())
    }
}
