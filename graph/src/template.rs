//! Templates of chains: what a builder has to know of a chain, worked out once for many that are alike.
//!
//! A builder checks a chain, finds the code of its kernels and writes its words. For short kernels that is most of what the builder does. A program whose
//! chains differ in a few words only, such as the tiles of a product, has it done once, sets those words, and submits the template as often as it likes.
//!
//! ```
//! use pto_abi::{CoreKind, FuncId};
//! use pto_graph::{BuildError, Chain, ChainTemplate, GraphBuilder, Link, TaskSpec, Variation};
//!
//! /// out = a + b, in 64 pieces of 256 elements: eight chains of eight kernels.
//! fn build<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
//!     let piece = TaskSpec::new(FuncId(2), CoreKind::AIV, &[0x10000, 0x20000, 0x30000, 256]);
//!     let grows = [0, 1, 2].map(|arg| Variation::by(arg, 256 * 4));
//!     let links = [Link::new(piece).times(8).varying(&grows)];
//!     let mut pieces = ChainTemplate::new();
//!     graph.fill_template(&mut pieces, &Chain::new(&links))?;
//!     for _ in 0..8 {
//!         graph.submit_template(&pieces, &[])?;
//!         // The next eight pieces of each tensor.
//!         for arg in 0..3 {
//!             pieces.advance(0, arg, 8 * 256 * 4)?;
//!         }
//!     }
//!     Ok(())
//! }
//! # let mut graph = pto_graph::SubmittedGraph::new(&[]);
//! # build(&mut graph).unwrap();
//! # assert_eq!(graph.finish().1.tasks.len(), 64);
//! ```
//! Invariant: the words are those of a chain that can be run, whatever a program sets: it sets arguments only.

use heapless::Vec;
use pto_abi::chain::{header_words, link_words, of_shape, of_variation};
use pto_abi::limits::MAX_ARGS;
use pto_abi::sync::{AtomicU64, Ordering::Relaxed};
use pto_abi::{CoreKind, Fault, FuncId, GmAddr};

use crate::chain::Chain;
use crate::link::{Link, Variation};
use crate::task::TaskSpec;

/// Words of a template, at most: what a chain of a streaming run may have.
const MAX_WORDS: usize = MAX_ARGS;
/// Links of a template, at most.
const MAX_LINKS: usize = 16;
/// Variations of all its links, at most.
const MAX_VARIATIONS: usize = 32;
/// Where the arguments of a link begin, after its code and its shape.
const ARGUMENTS: usize = link_words(0, 0, 0);

/// A chain whose words stand ready. [`GraphBuilder::fill_template`](crate::GraphBuilder::fill_template) puts them there, and its arguments can be set before
/// each submission. It has room for a kilobyte of words, so that it is filled where it is.
#[derive(Debug)]
pub struct ChainTemplate {
    /// Written by the writer of all chains, which writes where cores may read.
    words: Vec<AtomicU64, MAX_WORDS>,
    /// For each link: the word at which it begins, and its number of arguments.
    links: Vec<(u8, u8), MAX_LINKS>,
    func_id: FuncId,
    kind: CoreKind,
    /// The number of kernels; 0 if the template is not filled.
    kernels: u32,
    origin: Origin,
}

/// Gives the code of a kernel with this many arguments.
pub type CodeOf<'c> = &'c mut dyn FnMut(&TaskSpec<'_>, usize) -> Result<GmAddr, Fault>;

/// Why a template was not filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotFilled {
    /// The chain cannot be run, or is too large.
    Chain(Fault),
    /// One of its kernels has no code, and who was asked for it has said why.
    Kernel(Fault),
}

/// Which run a template belongs to, whose kernels its words name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The address of its tasks.
    pub run: usize,
    /// The generation of the run's tasks.
    pub generation: u32,
}

impl Origin {
    /// No run: the words name the kernels that the chain itself names.
    pub const NONE: Self = Self { run: 0, generation: 0 };

    /// The run of this generation that has its tasks there.
    #[must_use]
    #[inline]
    pub fn of<T>(tasks: &[T], generation: u32) -> Self {
        Self { run: tasks.as_ptr().addr(), generation }
    }
}

impl Default for ChainTemplate {
    fn default() -> Self {
        Self::new()
    }
}

impl ChainTemplate {
    /// A template that is not filled.
    #[must_use]
    #[inline]
    pub const fn new() -> Self {
        Self {
            words: Vec::new(),
            links: Vec::new(),
            func_id: FuncId(0),
            kind: CoreKind::AIC,
            kernels: 0,
            origin: Origin::NONE,
        }
    }

    /// Fills it with a chain, as the builders do; programs call [`fill_template`](crate::GraphBuilder::fill_template). `code` gives the code of each
    /// kernel with this many arguments. After an error it is not filled.
    ///
    /// # Errors
    /// `BUILD_TEMPLATE_LIMIT` and those of [`Chain::check`], of the chain; those of `code`, of a kernel.
    // A function of its own, of which there is one for all builders: images that are built for size have no room for more.
    #[inline(never)]
    pub fn fill(
        &mut self,
        chain: &Chain<'_>,
        origin: Origin,
        code: CodeOf<'_>,
    ) -> Result<(), NotFilled> {
        (self.kernels, self.origin) = (0, Origin::NONE);
        self.links.clear();
        chain.check().map_err(NotFilled::Chain)?;
        let too_large = NotFilled::Chain(Fault::BUILD_TEMPLATE_LIMIT);
        let (mut end, mut variations, mut kernels) = (header_words(), 0, 0);
        for link in chain.links() {
            let slot = u8::try_from(end).ok().zip(u8::try_from(link.arg_count()).ok());
            let slot = slot.filter(|_| !link.is_on_tensors());
            slot.and_then(|slot| self.links.push(slot).ok()).ok_or(too_large)?;
            end += link.word_count();
            variations += link.variations().len();
            kernels += link.count();
        }
        if variations > MAX_VARIATIONS || end > MAX_WORDS {
            return Err(too_large);
        }
        self.words.truncate(end);
        while self.words.len() < end && self.words.push(AtomicU64::new(0)).is_ok() {}
        chain.write(&self.words, code).map_err(NotFilled::Kernel)?;
        if let Some(first) = chain.links().first().map(Link::task) {
            (self.func_id, self.kind) = (first.func_id, first.kind);
        }
        (self.kernels, self.origin) = (kernels, origin);
        Ok(())
    }

    /// Sets argument `arg` of the first kernel of link `link`. An argument that varies by steps goes on from there; one that is in a column
    /// does not change.
    ///
    /// # Errors
    /// `BUILD_CHAIN_VARIES`: there is no such argument.
    #[inline]
    pub fn set(&mut self, link: usize, arg: usize, word: u64) -> Result<(), Fault> {
        self.slot(link, arg)?.store(word, Relaxed);
        Ok(())
    }

    /// Adds to an argument: to a scalar that number, to an address so many bytes; both may be negative. The argument is named as for [`set`](Self::set).
    ///
    /// # Errors
    /// Those of [`set`](Self::set).
    #[inline]
    pub fn advance(&mut self, link: usize, arg: usize, by: i64) -> Result<(), Fault> {
        let slot = self.slot(link, arg)?;
        slot.store(slot.load(Relaxed).wrapping_add_signed(by), Relaxed);
        Ok(())
    }

    #[inline]
    fn slot(&self, link: usize, arg: usize) -> Result<&AtomicU64, Fault> {
        let found = self.links.get(link).filter(|(_, args)| arg < usize::from(*args));
        let (begin, _) = found.ok_or(Fault::BUILD_CHAIN_VARIES)?;
        let slot = self.words.get(usize::from(*begin) + ARGUMENTS + arg);
        slot.ok_or(Fault::BUILD_CHAIN_VARIES)
    }

    /// Whether it holds a chain.
    #[must_use]
    #[inline]
    pub const fn is_filled(&self) -> bool {
        self.kernels > 0
    }

    /// How many words say it to a core.
    #[must_use]
    #[inline]
    pub fn word_count(&self) -> usize {
        self.words.len()
    }

    /// How many links it has.
    #[must_use]
    pub fn link_count(&self) -> usize {
        self.links.len()
    }

    /// How many arguments each kernel of a link has; zero if there is no such link.
    #[must_use]
    #[inline]
    pub fn arg_count(&self, link: usize) -> usize {
        self.links.get(link).map_or(0, |(_, args)| usize::from(*args))
    }

    /// How many kernels it has.
    #[must_use]
    #[inline]
    pub const fn kernels(&self) -> u32 {
        self.kernels
    }

    /// The template's first kernel, as a task without arguments.
    #[must_use]
    #[inline]
    pub const fn task(&self) -> TaskSpec<'static> {
        TaskSpec::new(self.func_id, self.kind, &[])
    }

    /// Copies its words into these, which are as many.
    #[inline]
    pub fn copy_to(&self, words: &[AtomicU64]) {
        let ((to, to_rest), (from, from_rest)) =
            (words.as_chunks::<4>(), self.words.as_chunks::<4>());
        for (to, from) in to.iter().zip(from) {
            // Loaded before the first one is stored, so that two loads can be one instruction.
            let [first, second, third, fourth] = from;
            let (first, second) = (first.load(Relaxed), second.load(Relaxed));
            let (third, fourth) = (third.load(Relaxed), fourth.load(Relaxed));
            to[0].store(first, Relaxed);
            to[1].store(second, Relaxed);
            to[2].store(third, Relaxed);
            to[3].store(fourth, Relaxed);
        }
        for (to, from) in to_rest.iter().zip(from_rest) {
            to.store(from.load(Relaxed), Relaxed);
        }
    }

    /// That it was filled, and in this run.
    ///
    /// # Errors
    /// `BUILD_CHAIN_EMPTY`, `BUILD_TEMPLATE_FOREIGN`.
    #[inline]
    pub fn check(&self, origin: Origin) -> Result<(), Fault> {
        if self.origin == origin {
            return Ok(());
        }
        Err(if !self.is_filled() {
            Fault::BUILD_CHAIN_EMPTY
        } else {
            Fault::BUILD_TEMPLATE_FOREIGN
        })
    }

    /// Calls `with` with the chain that its words say now: for builders that submit it as a chain. One that is not filled has no links.
    pub fn with_chain<R>(&self, with: impl FnOnce(&Chain<'_>) -> R) -> R {
        let own: &[_] = if self.is_filled() { &self.links } else { &[] };
        let mut words: Vec<u64, MAX_WORDS> = Vec::new();
        // As many as there are here; to collect them would be able to panic.
        self.words.iter().for_each(|word| words.push(word.load(Relaxed)).unwrap_or_default());
        let mut variations: Vec<Variation<'_>, MAX_VARIATIONS> = Vec::new();
        for (begin, _) in own {
            read_variations(words.get(usize::from(*begin)..).unwrap_or(&[]), &mut variations);
        }
        let (mut links, mut left): (Vec<Link<'_>, MAX_LINKS>, &[_]) = (Vec::new(), &variations);
        for (begin, _) in own {
            let words = words.get(usize::from(*begin)..).unwrap_or(&[]);
            let of_link = usize::from(of_shape(word(words, 1)).variations);
            let (own, others) = left.split_at_checked(of_link).unwrap_or((left, &[]));
            left = others;
            // There are as many links as places for them.
            links.push(read_link(words, self.kind, own)).unwrap_or_default();
        }
        with(&Chain::new(&links))
    }
}

/// A word.
fn word(words: &[u64], at: usize) -> u64 {
    words.get(at).copied().unwrap_or(0)
}

/// Returns `count` words from word `from` on.
fn part(words: &[u64], from: usize, count: usize) -> &[u64] {
    words.get(from..from + count).unwrap_or(&[])
}

/// The link whose words these begin with.
fn read_link<'t>(words: &'t [u64], kind: CoreKind, variations: &'t [Variation<'t>]) -> Link<'t> {
    let head = of_shape(word(words, 1));
    let task = TaskSpec::new(FuncId(head.func_id), kind, part(words, ARGUMENTS, head.args.into()));
    let task = TaskSpec { kernel: GmAddr(word(words, 0)), ..task };
    let link = Link::new(task).times(head.times).varying(variations);
    if head.is_with_next { link.with_next() } else { link }
}

/// The variations of the link whose words these begin with.
fn read_variations<'t>(words: &'t [u64], variations: &mut Vec<Variation<'t>, MAX_VARIATIONS>) {
    let head = of_shape(word(words, 1));
    let (first, count) = (ARGUMENTS + usize::from(head.args), usize::from(head.variations));
    let mut column = first + count;
    for word in part(words, first, count) {
        let (arg, turns, step) = of_variation(*word);
        let variation = if let Some(step) = step {
            Variation::by(arg.into(), step)
        } else {
            let words = part(words, column, turns.count(head.times) as usize);
            column += words.len();
            Variation::of(arg.into(), words)
        };
        // `fill` has counted them.
        variations.push(variation.in_turns(turns)).unwrap_or_default();
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    extern crate std;
    use super::{ChainTemplate, NotFilled, Origin};
    use crate::chain::Chain;
    use crate::link::{Link, Variation};
    use crate::task::TaskSpec;
    use crate::tensor_task::Arg;
    use pto_abi::sync::{AtomicU64, Ordering::Relaxed};
    use pto_abi::{CoreKind, Fault, FuncId, GmAddr};
    use std::vec::Vec;

    const RUN: Origin = Origin { run: 7, generation: 3 };

    /// The code of a kernel, which is not zero.
    fn code(task: &TaskSpec<'_>, _: usize) -> Result<GmAddr, Fault> {
        Ok(GmAddr(u64::from(task.func_id.0) << 8))
    }

    fn template(links: &[Link<'_>]) -> Result<ChainTemplate, NotFilled> {
        let mut template = ChainTemplate::new();
        template.fill(&Chain::new(links), RUN, &mut code).map(|()| template)
    }

    /// What a builder writes for a chain.
    fn words(chain: &Chain<'_>) -> Vec<u64> {
        let words: Vec<_> = (0..chain.words()).map(|_| AtomicU64::new(u64::MAX)).collect();
        chain.write(&words, code).unwrap();
        words.iter().map(|word| word.load(Relaxed)).collect()
    }

    const fn task<'a>(func_id: u16, args: &'a [u64]) -> TaskSpec<'a> {
        TaskSpec::new(FuncId(func_id), CoreKind::AIV, args)
    }

    #[test]
    fn a_template_is_the_chain_whose_words_were_set() {
        let varies = [Variation::of(2, &[9, 8]), Variation::by(0, -64), Variation::of(1, &[1, 2])];
        let steps = [Variation::by(0, 10).every(2), Variation::of(1, &[7, 8]).within(2)];
        let links = |first, other| {
            [
                Link::new(task(5, first)).times(2).varying(&varies),
                Link::new(task(6, other)).times(3).varying(&steps).with_next(),
                Link::new(task(7, &[])).times(3),
            ]
        };
        let mut template = template(&links(&[100, 7, 0], &[3, 4])).unwrap();
        template.set(1, 1, 40).unwrap();
        template.advance(0, 0, -10).unwrap();
        template.set(0, 1, 77).unwrap();
        let links = links(&[90, 77, 0], &[3, 40]);
        let expected = Chain::new(&links);
        let copied: Vec<_> = (0..template.word_count()).map(|_| AtomicU64::new(1)).collect();
        template.copy_to(&copied);
        let copied: Vec<_> = copied.iter().map(|word| word.load(Relaxed)).collect();
        assert_eq!(copied, words(&expected));
        assert_eq!(template.with_chain(|chain| (chain.check(), words(chain))), (Ok(()), copied));
        assert_eq!(template.with_chain(|chain| chain.kernels()), 8);
        let (kernels, first) = (template.kernels(), template.task().func_id);
        assert_eq!((kernels, template.link_count(), first), (8, 3, FuncId(5)));
    }

    #[test]
    fn only_arguments_can_be_set() {
        let links = [Link::new(task(5, &[1, 2])), Link::new(task(6, &[]))];
        let mut template = template(&links).unwrap();
        for (link, arg) in [(0, 2), (1, 0), (2, 0), (usize::MAX, 0), (0, usize::MAX)] {
            assert_eq!(template.set(link, arg, 9), Err(Fault::BUILD_CHAIN_VARIES));
            assert_eq!(template.advance(link, arg, 9), Err(Fault::BUILD_CHAIN_VARIES));
        }
        assert_eq!(template.with_chain(words), words(&Chain::new(&links)));
    }

    #[test]
    fn a_chain_that_is_too_large_is_refused() {
        let refused = |links: &[Link<'_>]| template(links).map(drop);
        let limit = Err(NotFilled::Chain(Fault::BUILD_TEMPLATE_LIMIT));
        let (args, column) = ([0; 31], [0; 94]);
        let varies = |words| [Variation::of(0, words)];
        // A header, two words, 31 arguments, a variation, and its column.
        let (fits, long) = (varies(&column[..93]), varies(&column));
        let wide = Link::new(task(5, &args));
        assert_eq!(refused(&[wide.times(93).varying(&fits)]), Ok(()));
        assert_eq!(refused(&[wide.times(94).varying(&long)]), limit);
        let small = Link::new(task(5, &[]));
        assert_eq!(refused(&[small; 16]), Ok(()));
        assert_eq!(refused(&[small; 17]), limit);
        let steps = [Variation::by(0, 1); 11];
        let varied = Link::new(task(5, &[0])).varying(&steps);
        assert_eq!(refused(&[varied, varied]), Ok(()));
        assert_eq!(refused(&[varied; 3]), limit);
        let tensors = [Arg::Scalar(1)];
        let on_tensors = Link::on_tensors(FuncId(5), CoreKind::AIV, &tensors);
        assert_eq!(refused(&[on_tensors]), limit);
        assert_eq!(refused(&[]), Err(NotFilled::Chain(Fault::BUILD_CHAIN_EMPTY)));
    }

    #[test]
    fn a_template_that_could_not_be_filled_again_is_empty() {
        let links = [Link::new(task(5, &[1]))];
        let (mut template, chain) = (template(&links).unwrap(), Chain::new(&links));
        let mut missing = |_: &TaskSpec<'_>, _| Err(Fault::BUILD_KERNEL_MISSING);
        let why = NotFilled::Kernel(Fault::BUILD_KERNEL_MISSING);
        assert_eq!(template.fill(&chain, RUN, &mut missing), Err(why));
        for empty in [template, ChainTemplate::new()] {
            assert_eq!(empty.check(RUN), Err(Fault::BUILD_CHAIN_EMPTY));
            assert_eq!(empty.with_chain(|chain| chain.check()), Err(Fault::BUILD_CHAIN_EMPTY));
        }
    }

    #[test]
    fn a_template_of_another_run_is_told() {
        let template = template(&[Link::new(task(5, &[]))]).unwrap();
        assert_eq!(template.check(RUN), Ok(()));
        for other in [Origin { run: 8, ..RUN }, Origin { generation: 4, ..RUN }, Origin::NONE] {
            assert_eq!(template.check(other), Err(Fault::BUILD_TEMPLATE_FOREIGN));
        }
    }
}
