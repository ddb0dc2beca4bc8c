//! Chains: kernels that one core runs one after another, in one dispatch.
//!
//! A scheduler looks at a core, and hands it work, once for a whole chain. Where kernels are short, that is most of what
//! they cost on the device. A chain is one task to everybody else: it starts when the last of its producers has completed,
//! and its consumers start when its last kernel has ended.
//!
//! ```
//! use pto_abi::{CoreKind, FuncId};
//! use pto_graph::{Chain, Link, TaskSpec, Variation};
//!
//! // out[i] = a[i] * b, of eight rows of 256 bytes: eight kernels, two of whose arguments grow.
//! let args = [0x1000, 0x8000, 0x9000, 64];
//! let task = TaskSpec::new(FuncId(2), CoreKind::AIV, &args);
//! let grows = [Variation::by(0, 256), Variation::by(2, 256)];
//! let links = [Link::new(task).times(8).varying(&grows)];
//! let chain = Chain::new(&links);
//! assert_eq!((chain.kernels(), chain.check()), (8, Ok(())));
//! ```
//! Invariants of a chain that [`check`](Chain::check) accepts: all its kernels run on one kind of core; what varies is an
//! argument that the kernel has; a column has a word for each time.

use pto_abi::Fault;
use pto_abi::chain::{MAX_CHAIN_KERNELS, header_words};

use crate::link::Link;
use crate::tensor::TensorView;
use crate::tensor_task::Arg;

/// Kernels that one core runs in this order.
#[derive(Clone, Copy, Debug)]
pub struct Chain<'a> {
    links: &'a [Link<'a>],
}

impl<'a> Chain<'a> {
    /// The kernels of these links.
    #[must_use]
    pub const fn new(links: &'a [Link<'a>]) -> Self {
        Self { links }
    }

    /// The chain's links.
    #[must_use]
    pub const fn links(&self) -> &'a [Link<'a>] {
        self.links
    }

    /// How many kernels it has.
    #[must_use]
    pub fn kernels(&self) -> u64 {
        self.links.iter().map(|link| u64::from(link.count())).sum()
    }

    /// The chain's kernels in their order: the link, and which of its times.
    pub fn turns(&self) -> impl Iterator<Item = (&'a Link<'a>, u32)> + use<'a> {
        self.groups().flat_map(|group| {
            let turns = group.first().map_or(0, Link::count);
            (0..turns).flat_map(move |turn| group.iter().map(move |link| (link, turn)))
        })
    }

    /// The chain's links, those that take turns together.
    fn groups(&self) -> impl Iterator<Item = &'a [Link<'a>]> + use<'a> {
        self.links.split_inclusive(|link| !link.is_with_next())
    }

    /// The words that say it to a core.
    #[must_use]
    pub fn words(&self) -> usize {
        header_words() + self.links.iter().map(Link::word_count).sum::<usize>()
    }

    /// Whether a link has tensors.
    #[must_use]
    pub fn has_tensors(&self) -> bool {
        self.links.iter().any(|link| link.args().iter().any(|arg| arg.tensor().is_some()))
    }

    /// What the chain does to its tensors, links in their order: number of the argument, the argument, and a part of the tensor that
    /// its link uses.
    pub fn uses(&self) -> impl Iterator<Item = (u32, &'a Arg<'a>, TensorView<'a>)> + use<'a> {
        self.links.iter().flat_map(|link| {
            let args = (0_u32..).zip(link.args());
            args.flat_map(move |(at, arg)| link.views(at as usize).map(move |view| (at, arg, view)))
        })
    }

    /// Whether it can be run as it is.
    ///
    /// # Errors
    /// `BUILD_CHAIN_EMPTY`, `BUILD_CHAIN_KIND`, `BUILD_CHAIN_VARIES`, `BUILD_CHAIN_TURNS`, `BUILD_CHAIN_LIMIT`.
    pub fn check(&self) -> Result<(), Fault> {
        self.plan().map(|_| ())
    }

    /// What a builder has to know of it, found in one pass.
    ///
    /// # Errors
    /// Those of [`check`](Self::check).
    #[inline]
    pub fn plan(&self) -> Result<ChainPlan<'a>, Fault> {
        let first = self.links.first().ok_or(Fault::BUILD_CHAIN_EMPTY)?;
        let kind = first.task().kind;
        let (mut words, mut kernels) = (header_words(), 0_u64);
        // How often the links of the group under way run.
        let mut group = None;
        let (mut is_uneven, mut on_tensors) = (false, 0);
        for link in self.links {
            on_tensors += u32::from(link.is_on_tensors());
            words += link.checked_words(kind)?;
            let times = link.count();
            kernels += u64::from(times);
            is_uneven |= group.is_some_and(|group| group != times);
            group = link.is_with_next().then_some(times);
        }
        if is_uneven {
            return Err(Fault::BUILD_CHAIN_TURNS);
        }
        let kernels = u32::try_from(kernels).ok().filter(|kernels| *kernels <= MAX_CHAIN_KERNELS);
        let kernels = kernels.ok_or(Fault::BUILD_CHAIN_LIMIT)?;
        Ok(ChainPlan { first, words, kernels, on_tensors })
    }
}

/// A chain that can be run.
#[derive(Clone, Copy, Debug)]
pub struct ChainPlan<'a> {
    /// The chain's first link, whose kernel it is known by.
    pub first: &'a Link<'a>,
    /// The words that say it to a core.
    pub words: usize,
    /// How many kernels it has.
    pub kernels: u32,
    /// How many of its links were given tensors.
    pub on_tensors: u32,
}

#[cfg(test)]
mod tests {
    use super::Chain;
    use crate::link::{Link, Variation};
    use crate::task::TaskSpec;
    use pto_abi::chain::MAX_CHAIN_STEP;
    use pto_abi::{CoreKind, Fault, FuncId};

    const fn task(args: &[u64]) -> TaskSpec<'_> {
        TaskSpec::new(FuncId(3), CoreKind::AIV, args)
    }

    #[test]
    fn a_chain_that_cannot_run_is_refused() {
        let check = |links: &[Link<'_>]| Chain::new(links).check();
        let (link, cube) = (Link::new(task(&[1, 2])), TaskSpec::new(FuncId(3), CoreKind::AIC, &[]));
        assert_eq!(check(&[link, link.times(7)]), Ok(()));
        assert_eq!(check(&[]), Err(Fault::BUILD_CHAIN_EMPTY));
        assert_eq!(check(&[link.times(0)]), Err(Fault::BUILD_CHAIN_EMPTY));
        assert_eq!(check(&[link, Link::new(cube)]), Err(Fault::BUILD_CHAIN_KIND));
        let wrong =
            [Variation::by(2, 1), Variation::of(0, &[1]), Variation::by(0, MAX_CHAIN_STEP + 1)];
        for variation in wrong {
            let varies = [variation];
            let found = check(&[link.times(2).varying(&varies)]);
            assert_eq!(found, Err(Fault::BUILD_CHAIN_VARIES), "{variation:?}");
        }
        let (three, two) = (link.times(3).with_next(), link.times(2));
        assert_eq!(check(&[three, two]), Err(Fault::BUILD_CHAIN_TURNS));
        assert_eq!(check(&[three, three, link.times(3), two]), Ok(()));
        assert_eq!(check(&[Link::new(task(&[0; 32]))]), Err(Fault::BUILD_CHAIN_LIMIT));
        assert_eq!(check(&[link.times(16_383), link]), Err(Fault::BUILD_CHAIN_LIMIT));
    }

    #[test]
    fn links_that_take_turns_alternate() {
        let (a, b) = (Link::new(task(&[1])), Link::new(task(&[2])));
        let links = [a.times(2).with_next(), b.times(2), a];
        let chain = Chain::new(&links);
        let order = chain.turns().map(|(link, turn)| (link.words().next().unwrap_or(0), turn));
        assert!(order.eq([(1, 0), (2, 0), (1, 1), (2, 1), (1, 0)]));
        assert_eq!(chain.kernels(), 5);
    }
}
