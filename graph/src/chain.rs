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

use pto_abi::chain::{MAX_CHAIN_ARGS, MAX_CHAIN_KERNELS, MAX_CHAIN_STEP, header_words, link_words};
use pto_abi::{CoreKind, Fault};

use crate::task::TaskSpec;

/// How one argument differs between the kernels of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variation<'a> {
    arg: usize,
    how: How<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How<'a> {
    Steps(i64),
    Column(&'a [u64]),
}

impl<'a> Variation<'a> {
    /// Argument number `arg` grows by `step` from each kernel to the next.
    #[must_use]
    pub const fn by(arg: usize, step: i64) -> Self {
        Self { arg, how: How::Steps(step) }
    }

    /// Argument number `arg` is `words[n]` for the n-th kernel.
    #[must_use]
    pub const fn of(arg: usize, words: &'a [u64]) -> Self {
        Self { arg, how: How::Column(words) }
    }

    /// Which argument.
    #[must_use]
    pub const fn arg(&self) -> usize {
        self.arg
    }

    /// The step, if it varies by steps.
    #[must_use]
    pub const fn step(&self) -> Option<i64> {
        match self.how {
            How::Steps(step) => Some(step),
            How::Column(_) => None,
        }
    }

    /// A word for each kernel, if it varies so.
    #[must_use]
    pub const fn column(&self) -> &'a [u64] {
        match self.how {
            How::Steps(_) => &[],
            How::Column(words) => words,
        }
    }

    /// What the argument is in kernel `turn` of its link, whose first one has `first`.
    #[must_use]
    fn at(&self, turn: u32, first: u64) -> u64 {
        match self.how {
            How::Steps(step) => first.wrapping_add(step.wrapping_mul(turn.into()).cast_unsigned()),
            How::Column(words) => words.get(turn as usize).copied().unwrap_or(first),
        }
    }

    fn is_right(&self, args: usize, times: u32) -> bool {
        self.arg < args
            && match self.how {
                How::Steps(step) => step.unsigned_abs() <= MAX_CHAIN_STEP.unsigned_abs(),
                How::Column(words) => words.len() == times as usize,
            }
    }
}

/// One kernel of a chain, run once or several times.
#[derive(Clone, Copy, Debug)]
pub struct Link<'a> {
    task: TaskSpec<'a>,
    times: u32,
    variations: &'a [Variation<'a>],
}

impl<'a> Link<'a> {
    /// A kernel that is run once, with the arguments of `task`.
    #[must_use]
    pub const fn new(task: TaskSpec<'a>) -> Self {
        Self { task, times: 1, variations: &[] }
    }

    /// The same, so many times.
    #[must_use]
    pub const fn times(mut self, times: u32) -> Self {
        self.times = times;
        self
    }

    /// The same, with arguments that differ from time to time; two variations of one argument are applied in their order.
    #[must_use]
    pub const fn varying(mut self, variations: &'a [Variation<'a>]) -> Self {
        self.variations = variations;
        self
    }

    /// The first kernel as a task.
    #[must_use]
    pub const fn task(&self) -> TaskSpec<'a> {
        self.task
    }

    /// How often it runs.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.times
    }

    /// What differs from time to time.
    #[must_use]
    pub const fn variations(&self) -> &'a [Variation<'a>] {
        self.variations
    }

    /// The kernel of this turn as a task of its own; its arguments are written to `words`.
    #[must_use]
    pub fn task_at<'w>(&self, turn: u32, words: &'w mut [u64; MAX_CHAIN_ARGS]) -> TaskSpec<'w> {
        let count = self.task.args.len().min(MAX_CHAIN_ARGS);
        let (args, _) = words.split_at_mut(count);
        args.copy_from_slice(&self.task.args[..count]);
        for variation in self.variations {
            if let Some(arg) = args.get_mut(variation.arg) {
                *arg = variation.at(turn, *arg);
            }
        }
        TaskSpec {
            func_id: self.task.func_id,
            kind: self.task.kind,
            args,
            kernel: self.task.kernel,
        }
    }

    fn check(&self, kind: CoreKind) -> Result<(), Fault> {
        let (args, times) = (self.task.args.len(), self.times);
        if times == 0 {
            return Err(Fault::BUILD_CHAIN_EMPTY);
        }
        if self.task.kind != kind {
            return Err(Fault::BUILD_CHAIN_KIND);
        }
        if args > MAX_CHAIN_ARGS || self.variations.len() > MAX_CHAIN_ARGS {
            return Err(Fault::BUILD_CHAIN_LIMIT);
        }
        let is_right = self.variations.iter().all(|variation| variation.is_right(args, times));
        if is_right { Ok(()) } else { Err(Fault::BUILD_CHAIN_VARIES) }
    }
}

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

    /// Its links.
    #[must_use]
    pub const fn links(&self) -> &'a [Link<'a>] {
        self.links
    }

    /// How many kernels it has.
    #[must_use]
    pub fn kernels(&self) -> u64 {
        self.links.iter().map(|link| u64::from(link.times)).sum()
    }

    /// Its kernels in their order: the link, and which of its times.
    pub fn turns(&self) -> impl Iterator<Item = (&'a Link<'a>, u32)> + use<'a> {
        self.links.iter().flat_map(|link| (0..link.times).map(move |turn| (link, turn)))
    }

    /// The words that say it to a core.
    #[must_use]
    pub fn words(&self) -> usize {
        let of = |link: &Link<'_>| {
            let columns = link.variations.iter().filter(|variation| variation.step().is_none());
            let (args, variations) = (link.task.args.len(), link.variations.len());
            link_words(args, variations, columns.count(), link.times)
        };
        header_words() + self.links.iter().map(of).sum::<usize>()
    }

    /// Whether it can be run as it is.
    ///
    /// # Errors
    /// `BUILD_CHAIN_EMPTY`, `BUILD_CHAIN_KIND`, `BUILD_CHAIN_VARIES`, `BUILD_CHAIN_LIMIT`.
    pub fn check(&self) -> Result<(), Fault> {
        let first = self.links.first().ok_or(Fault::BUILD_CHAIN_EMPTY)?;
        for link in self.links {
            link.check(first.task.kind)?;
        }
        if self.kernels() > MAX_CHAIN_KERNELS.into() {
            return Err(Fault::BUILD_CHAIN_LIMIT);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Chain, Link, Variation};
    use crate::task::TaskSpec;
    use pto_abi::chain::{MAX_CHAIN_ARGS, MAX_CHAIN_STEP};
    use pto_abi::{CoreKind, Fault, FuncId};

    const fn task(args: &[u64]) -> TaskSpec<'_> {
        TaskSpec::new(FuncId(3), CoreKind::AIV, args)
    }

    #[test]
    fn arguments_vary_by_steps_and_by_columns() {
        let varies = [Variation::by(0, -8), Variation::of(2, &[5, 6, 7])];
        let link = Link::new(task(&[100, 1, 0])).times(3).varying(&varies);
        let mut words = [0; MAX_CHAIN_ARGS];
        let args = [0, 1, 2].map(|turn| {
            let args = link.task_at(turn, &mut words).args;
            [args[0], args[1], args[2]]
        });
        assert_eq!(args, [[100, 1, 5], [92, 1, 6], [84, 1, 7]]);
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
        assert_eq!(check(&[Link::new(task(&[0; 32]))]), Err(Fault::BUILD_CHAIN_LIMIT));
        assert_eq!(check(&[link.times(16_383), link]), Err(Fault::BUILD_CHAIN_LIMIT));
    }
}
