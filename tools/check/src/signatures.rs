//! The kernels that tasks name, compared with those that there are: func id, kind of core, number of arguments.

use pto_abi::CoreKind;
use pto_abi::numbers::Counted;

use crate::finding::Finding;
use crate::program::{Action, Program, Task};

/// What is known of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
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
}

/// The kernels that there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signatures(Vec<Signature>);

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

    /// Every task whose kernels are not there, or take something else.
    #[must_use]
    pub fn compare(&self, program: &Program) -> Vec<Finding> {
        let steps = program.steps.iter().filter_map(|step| match step.action {
            Action::Add(place) => Some((&program.tasks[place], step.line)),
            _ => None,
        });
        steps.filter_map(|(task, line)| Some(finding(task, line, self.defect(task)?))).collect()
    }

    /// The first thing that is wrong with the kernels of a task.
    fn defect(&self, task: &Task) -> Option<String> {
        let args = task.args.len();
        let own = (!task.is_chain()).then_some((task.func, task.kind, args));
        let beside = task.block_shape.mix.iter().map(|func| (*func, CoreKind::AIV, args));
        let links = task.links.iter().map(|link| (link.func, task.kind, link.args.len()));
        own.into_iter().chain(beside).chain(links).find_map(|kernel| self.mismatch(kernel))
    }

    fn mismatch(&self, (func, kind, count): (u16, CoreKind, usize)) -> Option<String> {
        let Some(known) = self.of(func) else {
            return Some(format!(
                "no kernel has func id {func}; use the func id of a registered kernel"
            ));
        };
        let Signature { name, args, takes_more, .. } = known;
        if known.kind != kind {
            return Some(format!(
                "func id {func}, {name}, runs on {} cores, and the task is for {kind}; change the kind, or the kernel",
                known.kind
            ));
        }
        let needed = args.len();
        let fits = if *takes_more { needed <= count } else { needed == count };
        let at_least = if *takes_more { "at least " } else { "" };
        (!fits).then(|| {
            let (needed, args) = (Counted(needed as u64, "argument"), args.join(", "));
            format!(
                "func id {func}, {name}, takes {at_least}{needed} ({args}), and the task has {count}"
            )
        })
    }
}

fn finding(task: &Task, line: usize, what: String) -> Finding {
    Finding::of_kernel(task.id, line, format!("{task}: {what}"))
}
