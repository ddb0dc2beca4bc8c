//! Chains of a program: kernels that one core runs in one dispatch, as the file and the recorder know them.
//!
//! ```text
//! Chain (pto-graph) --of--> ChainLink --Task::kernels--> each kernel with its own arguments     --without_chains--> tasks
//!                               '--- Held (held.rs) ---> Chain (pto-graph)
//! ```
//! Invariant: a column of a tensor counts bytes from the tensor's first one, so that it holds wherever the tensor is.

use std::borrow::Cow;

use pto_abi::GmAddr;
use pto_abi::chain::{MAX_CHAIN_ARGS, MAX_CHAIN_KERNELS, Turns, header_words, link_words};
use pto_abi::numbers::{Counted, Grouped};
use pto_graph::{Arg, Link};

use crate::program::{
    Action, Argument, ChainLink, Program, Publish, Step, Task, Use, Vary, View, Way,
};

/// A kernel of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel<'t> {
    /// Its number in the chain.
    pub number: usize,
    /// Which kernel.
    pub func: u16,
    /// Its own arguments.
    pub args: Cow<'t, [Argument]>,
}

impl ChainLink {
    /// A link as a builder was given it. `view` gives the address of a tensor's part.
    pub(crate) fn of(
        link: &Link<'_>,
        mut argument: impl FnMut(&Arg<'_>) -> Argument,
        base: impl Fn(usize) -> Option<GmAddr>,
    ) -> Self {
        let args: Vec<_> = if link.is_on_tensors() {
            let args = link.args().iter().enumerate();
            let arg = |(at, arg): (usize, &Arg<'_>)| match arg.tensor() {
                // A graph's builder looks at no tensor: this one's addresses are as good as words.
                Some(view) if leaves(link, at) => Argument::Scalar(view.address().0),
                _ => argument(arg),
            };
            args.map(arg).collect()
        } else {
            link.words().map(Argument::Scalar).collect()
        };
        let origin = |arg: usize| base(args.get(arg)?.view()?.0.tensor);
        let vary = link.variations().iter().map(|variation| {
            let arg = variation.arg();
            let first = origin(arg).map_or(0, |base| base.0);
            let column = || variation.column().iter().map(|word| word.wrapping_sub(first));
            let way = variation.step().map_or_else(|| Way::Of(column().collect()), Way::By);
            Vary { arg, turns: variation.turns(), way }
        });
        let vary = vary.collect();
        Self {
            func: link.task().func_id.0,
            args,
            times: link.count(),
            with_next: link.is_with_next(),
            vary,
            uses: Vec::new(),
        }
    }

    /// What differs at this time, as a function of an argument.
    fn moved(&self, at: usize, turn: u32) -> Argument {
        let mut argument = self.args[at].clone();
        for vary in self.vary.iter().filter(|vary| vary.arg == at) {
            argument = vary.way.moved(&argument, vary.turns.turn(turn));
        }
        argument
    }

    /// The arguments as this time's kernel gets them.
    pub(crate) fn args_at(&self, turn: u32) -> Vec<Argument> {
        (0..self.args.len()).map(|at| self.moved(at, turn)).collect()
    }

    /// What this time's kernel does.
    pub(crate) fn uses_at(&self, turn: u32) -> Cow<'_, [Argument]> {
        match self.uses.get(turn as usize) {
            Some(uses) => Cow::Borrowed(uses),
            None if self.vary.is_empty() => Cow::Borrowed(&self.args),
            None => Cow::Owned(self.args_at(turn)),
        }
    }
}

/// Whether the tensor of an argument does not hold the view of each time.
fn leaves(link: &Link<'_>, arg: usize) -> bool {
    let mut views = (0..link.count()).filter_map(|turn| link.view_at(arg, turn));
    views.any(|view| view.defect().is_some())
}

impl Way {
    fn moved(&self, argument: &Argument, turn: u32) -> Argument {
        let view = |view: &View| {
            let bytes = view.element.bytes();
            let start = view.offset.wrapping_mul(bytes);
            let mut moved = *view;
            moved.offset = self.word(start, turn) / bytes;
            moved
        };
        if let Self::At(bytes) = self {
            let byte = bytes.get(turn as usize).and_then(|byte| byte.view());
            return byte.map_or_else(|| argument.clone(), |view| Argument::NoDep(view, Use::None));
        }
        match argument {
            Argument::In(of) => Argument::In(view(of)),
            Argument::Out(of) => Argument::Out(view(of)),
            Argument::InOut(of) => Argument::InOut(view(of)),
            Argument::NoDep(of, used) => Argument::NoDep(view(of), *used),
            Argument::Scalar(word) => Argument::Scalar(self.word(*word, turn)),
            Argument::BoundScalar(number) => Argument::BoundScalar(*number),
        }
    }

    fn word(&self, first: u64, turn: u32) -> u64 {
        match self {
            Self::By(step) => first.wrapping_add(step.wrapping_mul(turn.into()).cast_unsigned()),
            Self::Of(words) => words.get(turn as usize).copied().unwrap_or(first),
            // A place is no word.
            Self::At(_) => first,
        }
    }
}

impl Task {
    /// Whether it is a chain.
    #[must_use]
    pub fn is_chain(&self) -> bool {
        !self.links.is_empty()
    }

    /// Its kernels with what they do, in the order in which they run; one, if it is no chain.
    pub fn kernels(&self) -> impl Iterator<Item = Kernel<'_>> {
        self.each(ChainLink::uses_at)
    }

    /// Its kernels with the arguments that they get.
    pub fn calls(&self) -> impl Iterator<Item = Kernel<'_>> {
        self.each(|link, turn| Cow::Owned(link.args_at(turn)))
    }

    fn each<'t>(
        &'t self,
        args: impl Fn(&'t ChainLink, u32) -> Cow<'t, [Argument]>,
    ) -> impl Iterator<Item = Kernel<'t>> {
        let own = (!self.is_chain()).then_some((self.func, Cow::Borrowed(self.args.as_slice())));
        let turns = groups(&self.links).flat_map(|group| {
            let turns = group.first().map_or(0, |link| link.times);
            (0..turns).flat_map(move |turn| group.iter().map(move |link| (link, turn)))
        });
        let links = turns.map(move |(link, turn)| (link.func, args(link, turn)));
        let all = own.into_iter().chain(links);
        all.enumerate().map(|(number, (func, args))| Kernel { number, func, args })
    }

    /// How many kernels it has.
    #[must_use]
    pub fn kernel_count(&self) -> usize {
        let of_chain = self.links.iter().map(|link| link.times as usize).sum::<usize>();
        if self.is_chain() { of_chain } else { 1 }
    }

    /// Argument words that it takes: those of its kernels, or of the chain, whichever are more.
    #[must_use]
    pub fn arg_words(&self) -> u64 {
        let column = |vary: &Vary| match &vary.way {
            Way::By(_) => 0,
            Way::Of(words) => words.len(),
            Way::At(bytes) => bytes.len(),
        };
        let of_link = |link: &ChainLink| {
            let columns = link.vary.iter().map(column).sum::<usize>();
            let said = link_words(link.args.len(), link.vary.len(), columns);
            said.max(link.args.len() * link.times as usize)
        };
        let chain = header_words() + self.links.iter().map(of_link).sum::<usize>();
        if self.is_chain() { chain as u64 } else { self.args.len() as u64 }
    }

    /// The kernel, and which of its arguments, that has this number where all arguments of all kernels are counted.
    #[must_use]
    pub fn argument(&self, number: u32) -> Option<(Kernel<'_>, usize)> {
        let mut left = number as usize;
        self.kernels().find_map(|kernel| match left.checked_sub(kernel.args.len()) {
            Some(less) => {
                left = less;
                None
            }
            None => Some((kernel, left)),
        })
    }
}

/// Links of a chain, those that take turns together.
pub(crate) fn groups(links: &[ChainLink]) -> impl Iterator<Item = &[ChainLink]> {
    links.split_inclusive(|link| !link.with_next)
}

/// Why a link cannot be a link; `None`: it can.
pub(crate) fn defect(link: &ChainLink) -> Option<String> {
    if link.times == 0 {
        return Some("times: 0; a kernel of a chain runs at least once".to_owned());
    }
    if link.times > MAX_CHAIN_KERNELS {
        let (times, most) = (Grouped(link.times.into()), Grouped(MAX_CHAIN_KERNELS.into()));
        return Some(format!("times: {times} are more than the {most} kernels of a chain"));
    }
    if link.args.len() > MAX_CHAIN_ARGS {
        let count = link.args.len();
        return Some(format!("args: {count} are more than the {MAX_CHAIN_ARGS} of a chain"));
    }
    let turns = |vary: &Vary| {
        let name = if vary.turns == Turns::EACH { "time" } else { "turn" };
        Counted(vary.turns.count(link.times).into(), name)
    };
    let wrong = link.vary.iter().find_map(|vary| match &vary.way {
        _ if vary.arg >= link.args.len() => {
            Some(format!("the kernel has no argument {}", vary.arg))
        }
        _ if !vary.turns.is_right() => {
            Some(format!("\"every\" and \"within\" are from 1 to {MAX_CHAIN_KERNELS}"))
        }
        Way::Of(words) if words.len() != vary.turns.count(link.times) as usize => {
            let words = Counted(words.len() as u64, "word");
            Some(format!("{words} for {}; give a word for each", turns(vary)))
        }
        Way::At(bytes) if bytes.len() != vary.turns.count(link.times) as usize => {
            let bytes = Counted(bytes.len() as u64, "place");
            Some(format!("{bytes} for {}; give a place for each", turns(vary)))
        }
        Way::At(_) if !matches!(link.args[vary.arg], Argument::Scalar(_)) => Some(format!(
            "argument {} is a view, which stays in its tensor; give a number in its place, such as 0",
            vary.arg
        )),
        Way::At(_) if link.vary.iter().filter(|other| other.arg == vary.arg).count() > 1 => {
            Some(format!("argument {} has places, and varies otherwise as well", vary.arg))
        }
        _ => None,
    });
    let wrong = wrong.map(|what| format!("vary: {what}"));
    let uses = (!link.uses.is_empty() && link.uses.len() != link.times as usize)
        .then(|| format!("uses: {} for {} times", link.uses.len(), link.times));
    wrong.or(uses)
}

/// The same program with each kernel of a chain as a task, which waits for the one before.
#[must_use]
pub fn without_chains(program: &Program) -> Program {
    let mut flat = Program { tasks: Vec::new(), steps: Vec::new(), ..program.clone() };
    let mut next =
        program.tasks.iter().map(|task| task.id).max().map_or(0, |last| last.wrapping_add(1));
    let mut firsts = std::collections::HashMap::new();
    let put = |flat: &mut Program, task: Task, line: usize| {
        flat.tasks.push(task);
        flat.steps.push(Step { action: Action::Add(flat.tasks.len() - 1), line });
    };
    for step in &program.steps {
        let line = step.line;
        match &step.action {
            Action::Add(index) => {
                let task = &program.tasks[*index];
                let last = task.kernel_count() - 1;
                let mut before = None;
                for kernel in task.kernels() {
                    // Who waits for the chain waits for its last kernel.
                    let id = if kernel.number == last { task.id } else { next };
                    next = next.wrapping_add(u32::from(kernel.number != last));
                    let after = before.map_or_else(|| task.after.clone(), |id| vec![id]);
                    firsts.entry(task.id).or_insert(id);
                    let (func, args) = (kernel.func, kernel.args.into_owned());
                    let (links, task) = (Vec::new(), task.clone());
                    put(&mut flat, Task { id, func, args, after, links, ..task }, line);
                    before = Some(id);
                }
            }
            Action::Edge { producer, consumer } => {
                let consumer = *firsts.get(consumer).unwrap_or(consumer);
                let action = Action::Edge { producer: *producer, consumer };
                flat.steps.push(Step { action, line });
            }
            Action::Publish(id) => {
                let added = program.tasks.iter().find(|task| task.id == *id);
                let kernels = added.map_or(1, Task::kernel_count);
                let end = flat.tasks.iter().position(|task| task.id == *id);
                let ids = end.map_or_else(Vec::new, |end| {
                    flat.tasks[(end + 1).saturating_sub(kernels)..=end]
                        .iter()
                        .map(|task| task.id)
                        .collect()
                });
                let publish = |id| Step { action: Action::Publish(id), line };
                flat.steps.extend(ids.into_iter().map(publish));
            }
            _ => flat.steps.push(step.clone()),
        }
    }
    debug_assert!(flat.tasks.iter().all(|task| task.publish == Publish::Now || !task.is_chain()));
    flat
}
