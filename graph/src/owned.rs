//! Tasks that own what they name. A [`Submission`](crate::Submission) borrows it; what is kept of one is made of these: a task of a list that the host
//! writes, of a recorded program, of a program file.
//!
//! They differ in how they name kernels, tensors and elements, and in nothing else:
//!
//! | kept by | kernel `K` | argument `A` | element of a predicate `E` |
//! |---|---|---|---|
//! | [lists](crate::task_list) | func id | [`OwnedArg`] on a view with its address | a view with its address |
//! | recorded programs and graph files (`pto_check::Program`) | number | [`OwnedArg`] on a view of a numbered tensor | a view of a numbered tensor |
//! | program files (`pto_workload::program`) | name | a byte of a numbered tensor, or a word | an element of a numbered tensor |

use alloc::vec::Vec;

use pto_abi::ids::FuncId;
use pto_abi::kinds::CoreKind;

use crate::block_shape::{BlockShape, Priority, StartMode};
use crate::predicate::Comparison;
use crate::tensor::TensorView;

/// A task: one kernel, or a MIX of kernels, in one or more blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedTask<K, A, E> {
    /// The task's kernel.
    pub kernel: K,
    /// The cores that the kernel runs on.
    pub kind: CoreKind,
    /// The task's arguments, in the order of the kernel.
    pub args: Vec<A>,
    /// The numbers of the tasks that it waits for, besides those that its tensors say.
    pub producers: Vec<usize>,
    /// What it is beyond one kernel on one core.
    pub block_shape: OwnedBlockShape<K, E>,
}

impl<K, A, E> OwnedTask<K, A, E> {
    /// One kernel on one core, without arguments.
    #[must_use]
    pub const fn new(kernel: K, kind: CoreKind) -> Self {
        let block_shape = OwnedBlockShape::plain();
        Self { kernel, kind, args: Vec::new(), producers: Vec::new(), block_shape }
    }

    /// Its kernels with the kinds of core that they run on, its own kernel first.
    pub fn kernels(&self) -> impl Iterator<Item = (&K, CoreKind)> {
        let mix = self.block_shape.mix.iter().map(|kernel| (kernel, CoreKind::AIV));
        core::iter::once((&self.kernel, self.kind)).chain(mix)
    }
}

/// An argument; `V` is a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnedArg<V> {
    /// Read.
    In(V),
    /// Overwritten.
    Out(V),
    /// Read and written.
    InOut(V),
    /// An address from which no edges are derived, and what the task does there.
    NoDep(V, Use),
    /// A word.
    Scalar(u64),
    /// The word that a replay binds under this number.
    BoundScalar(u32),
}

/// What a task does with an argument from which no edges are derived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Use {
    /// Not stated. It is taken for a read, because a concurrent write is wrong in any case.
    #[default]
    Unknown,
    /// It reads.
    Read,
    /// It writes.
    Write,
    /// It touches nothing: the kernel uses the address only.
    None,
}

impl<V> OwnedArg<V> {
    /// The view, and the name of its role; `None`: a word.
    #[must_use]
    pub const fn view(&self) -> Option<(&V, &'static str)> {
        match self {
            Self::In(view) => Some((view, "in")),
            Self::Out(view) => Some((view, "out")),
            Self::InOut(view) => Some((view, "inout")),
            Self::NoDep(view, _) => Some((view, "nodep")),
            Self::Scalar(_) | Self::BoundScalar(_) => None,
        }
    }

    /// The view from which edges are derived, and whether the task writes it.
    #[must_use]
    pub const fn dependency(&self) -> Option<(&V, bool)> {
        match self {
            Self::In(view) => Some((view, false)),
            Self::Out(view) | Self::InOut(view) => Some((view, true)),
            Self::NoDep(..) | Self::Scalar(_) | Self::BoundScalar(_) => None,
        }
    }
}

impl OwnedArg<TensorView<'static>> {
    /// The word that the kernel gets: the address of the first element of a view. A word that a replay binds is not known before, and 0 here.
    #[must_use]
    pub const fn word(&self) -> u64 {
        match self {
            Self::In(view) | Self::Out(view) | Self::InOut(view) | Self::NoDep(view, _) => {
                view.address().0
            }
            Self::Scalar(word) => *word,
            Self::BoundScalar(_) => 0,
        }
    }
}

/// What a task is beyond one kernel on one core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedBlockShape<K, E> {
    /// Kernels that run on vector cores of the same cluster.
    pub mix: Vec<K>,
    /// The number of blocks.
    pub blocks: u32,
    /// How the blocks start.
    pub start: StartMode,
    /// Which of several ready tasks goes first.
    pub priority: Priority,
    /// The task runs if this is true when it becomes ready.
    pub when: Option<OwnedPredicate<E>>,
}

/// One element of a tensor, compared with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnedPredicate<E> {
    /// The element.
    pub element: E,
    /// How it is compared.
    pub comparison: Comparison,
    /// The value to compare with, in the low bits.
    pub value: u64,
}

impl<K, E> OwnedBlockShape<K, E> {
    /// One kernel on one core.
    #[must_use]
    pub const fn plain() -> Self {
        let (start, priority) = (StartMode::SPREAD, Priority::NORMAL);
        Self { mix: Vec::new(), blocks: 1, start, priority, when: None }
    }

    /// Whether it is [`plain`](Self::plain).
    #[must_use]
    pub fn is_plain(&self) -> bool {
        let Self { mix, blocks, start, priority, when } = self;
        let is_usual = *start == StartMode::SPREAD && *priority == Priority::NORMAL;
        mix.is_empty() && *blocks == 1 && when.is_none() && is_usual
    }

    /// What a submission asks for; `kernel` and `element` name what it names.
    #[must_use]
    pub fn of(
        shape: &BlockShape<'_>,
        kernel: impl Fn(FuncId) -> K,
        element: impl FnOnce(&TensorView<'_>) -> E,
    ) -> Self {
        Self {
            mix: shape.vectors().iter().map(|func_id| kernel(*func_id)).collect(),
            blocks: shape.blocks(),
            start: shape.start(),
            priority: shape.priority(),
            when: shape.when().map(|predicate| OwnedPredicate {
                element: element(predicate.element()),
                comparison: predicate.comparison(),
                value: predicate.value(),
            }),
        }
    }
}

impl<K, E> Default for OwnedBlockShape<K, E> {
    fn default() -> Self {
        Self::plain()
    }
}
