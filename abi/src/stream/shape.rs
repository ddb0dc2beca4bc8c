//! Shapes of work: what a task may be beyond one kernel on one core.
//!
//! | shape | how | what it means |
//! |---|---|---|
//! | MIX | [`TensorTask::mix`] | kernels for several cores of one cluster, started together; complete when all are |
//! | blocks | [`TensorTask::blocks`] | the same kernels so many times, each with its number ([`BlockContext`]) |
//! | sync start | [`TensorTask::sync_start`] | all blocks start at once, or none does |
//! | predicate | [`TensorTask::when`] | read when the task becomes ready; if false, it completes without running |
//! | priority | [`TensorTask::priority`] | which ready task goes first |
//!
//! They go together in every way. All parts of a task get the same arguments.
//!
//! [`TensorTask::mix`]: super::TensorTask::mix
//! [`TensorTask::blocks`]: super::TensorTask::blocks
//! [`TensorTask::sync_start`]: super::TensorTask::sync_start
//! [`TensorTask::when`]: super::TensorTask::when
//! [`TensorTask::priority`]: super::TensorTask::priority

use super::tensor::{ElementType, MAX_RANK, TensorView};
use crate::closed_set;
use crate::ids::FuncId;

closed_set! {
    /// Which ready task goes first: by priority, then by the time at which it became ready.
    pub struct Priority(u8) {
        /// When nothing else wants the core.
        LOW = 0, "low";
        /// What a task has that asks for nothing else.
        NORMAL = 1, "normal";
        /// Before those of normal priority.
        HIGH = 2, "high";
        /// Before all others.
        URGENT = 3, "urgent";
    }
}

closed_set! {
    /// How the blocks of a task start.
    pub struct StartMode(u8) {
        /// Each as a core becomes free for it.
        SPREAD = 0, "spread";
        /// All at once, when there is a free core for each.
        SYNC = 1, "sync";
    }
}

closed_set! {
    /// How a predicate compares an element with its value.
    pub struct Comparison(u8) {
        /// The element is the value.
        EQUAL = 0, "==";
        /// The element is not the value.
        NOT_EQUAL = 1, "!=";
        /// The element is less.
        LESS = 2, "<";
        /// The element is less, or the value.
        LESS_EQUAL = 3, "<=";
        /// The element is greater.
        GREATER = 4, ">";
        /// The element is greater, or the value.
        GREATER_EQUAL = 5, ">=";
    }
}

impl Comparison {
    /// Whether `found` compares so with `value`; both stand in the low bits, as elements of this type. As IEEE 754 has
    /// it, a NaN is not equal to anything, and neither less nor greater; the zeros are equal.
    #[must_use]
    pub fn holds(self, element: ElementType, found: u64, value: u64) -> bool {
        let (Some(found), Some(value)) = (ordered(element, found), ordered(element, value)) else {
            return self == Self::NOT_EQUAL;
        };
        match self {
            Self::EQUAL => found == value,
            Self::LESS => found < value,
            Self::LESS_EQUAL => found <= value,
            Self::GREATER => found > value,
            Self::GREATER_EQUAL => found >= value,
            _ => found != value,
        }
    }
}

/// A number in the order of the elements; `None`: not a number.
fn ordered(element: ElementType, bits: u64) -> Option<i64> {
    let unused = 64 - 8 * u32::try_from(element.bytes()).unwrap_or(8);
    let float = |exponent: u32| {
        // Sign and magnitude, at the top of the word.
        let word = bits << unused;
        let magnitude = word << 1 >> 1;
        let infinity = (1_u64 << exponent) - 1;
        if magnitude > infinity << (63 - exponent) {
            return None;
        }
        let magnitude = magnitude.cast_signed();
        Some(if word >> 63 == 1 { -magnitude } else { magnitude })
    };
    match element {
        ElementType::F16 => float(5),
        ElementType::F32 | ElementType::BF16 => float(8),
        ElementType::F64 => float(11),
        ElementType::I8 | ElementType::I16 | ElementType::I32 | ElementType::I64 => {
            Some((bits << unused).cast_signed() >> unused)
        }
        _ => Some((bits << unused >> unused ^ 1 << 63).cast_signed()),
    }
}

/// What decides whether a task runs: one element of a tensor, compared with a value when the task becomes ready.
///
/// The element is read by the task: it waits for those that write it, and they for it. Tasks may share a predicate; each
/// reads it for itself.
#[derive(Clone, Copy, Debug)]
pub struct Predicate<'a> {
    element: TensorView<'a>,
    comparison: Comparison,
    value: u64,
}

impl<'a> Predicate<'a> {
    /// The element of `view` at `index`, compared with `value`, which stands in the low bits of the word as
    /// [`get`](super::StreamBuilder::get) gives it.
    #[must_use]
    pub fn new(view: &TensorView<'a>, index: &[u32], comparison: Comparison, value: u64) -> Self {
        let mut element = *view;
        if index.len() != view.shape().len() {
            // There is no such dimension: the view becomes defective.
            element = element.slice(MAX_RANK, 0, 1);
        }
        for (dim, at) in index.iter().enumerate() {
            element = element.slice(dim, *at, 1);
        }
        Self { element, comparison, value }
    }

    /// The element, as a view of its own.
    #[must_use]
    pub const fn element(&self) -> &TensorView<'a> {
        &self.element
    }

    /// How it is compared.
    #[must_use]
    pub const fn comparison(&self) -> Comparison {
        self.comparison
    }

    /// With what.
    #[must_use]
    pub const fn value(&self) -> u64 {
        self.value
    }
}

/// What a task is beyond one kernel on one core.
#[derive(Clone, Copy, Debug)]
pub struct TaskShape<'a> {
    vectors: &'a [FuncId],
    when: Option<&'a Predicate<'a>>,
    blocks: u32,
    priority: Priority,
    start: StartMode,
    is_plain: bool,
}

impl<'a> TaskShape<'a> {
    /// One kernel on one core, whenever it is ready.
    pub const PLAIN: Self = Self {
        vectors: &[],
        when: None,
        blocks: 1,
        priority: Priority::NORMAL,
        start: StartMode::SPREAD,
        is_plain: true,
    };

    /// Whether it is [`PLAIN`](Self::PLAIN).
    #[must_use]
    #[inline]
    pub const fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Kernels that run on vector cores beside the task's own one.
    #[must_use]
    pub const fn vectors(&self) -> &'a [FuncId] {
        self.vectors
    }

    /// What it depends on whether the task runs.
    #[must_use]
    pub const fn when(&self) -> Option<&'a Predicate<'a>> {
        self.when
    }

    /// How many blocks.
    #[must_use]
    pub const fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Which of several ready tasks goes first.
    #[must_use]
    pub const fn priority(&self) -> Priority {
        self.priority
    }

    /// How the blocks start.
    #[must_use]
    pub const fn start(&self) -> StartMode {
        self.start
    }
}

impl<'a> super::TensorTask<'a> {
    /// Tasks that it waits for beside those that its tensors say.
    #[must_use]
    #[inline]
    pub const fn after(mut self, after: &'a [crate::TaskId]) -> Self {
        self.after = after;
        self
    }

    /// Runs these kernels on vector cores of the cluster in which the task's own kernel runs, started together with it.
    /// A task of a cube core takes one or two of them, one of a vector core takes one.
    #[must_use]
    #[inline]
    pub const fn mix(mut self, vectors: &'a [FuncId]) -> Self {
        self.shape.vectors = vectors;
        self.shape.is_plain &= vectors.is_empty();
        self
    }

    /// Runs so many blocks, each on cores of its own, as they become free: 1 to
    /// [`MAX_BLOCKS`](crate::limits::MAX_BLOCKS). A kernel finds its number behind its arguments, see [`BlockContext`].
    #[must_use]
    #[inline]
    pub const fn blocks(mut self, blocks: u32) -> Self {
        self.shape.blocks = blocks;
        self.shape.is_plain &= blocks == 1;
        self
    }

    /// Starts all blocks at once, as soon as there is a free core for each.
    #[must_use]
    #[inline]
    pub const fn sync_start(mut self) -> Self {
        self.shape.start = StartMode::SYNC;
        self.shape.is_plain = false;
        self
    }

    /// Runs only if `predicate` is true when the task becomes ready; otherwise it completes without running, and its
    /// outputs stay as they are.
    #[must_use]
    #[inline]
    pub const fn when(mut self, predicate: &'a Predicate<'a>) -> Self {
        self.shape.when = Some(predicate);
        self.shape.is_plain = false;
        self
    }

    /// Goes before ready tasks of lower priority.
    #[must_use]
    #[inline]
    pub const fn priority(mut self, priority: Priority) -> Self {
        self.shape.priority = priority;
        self.shape.is_plain &= priority.get() == Priority::NORMAL.get();
        self
    }
}

/// Which part of its task a kernel is: the word behind its arguments.
///
/// ```text
/// bits 23..0   number of the block
/// bits 31..24  number of the core among those of its kind in the block: 1 for the second vector core of a cluster
/// bits 63..32  how many blocks the task has
/// ```
/// A kernel with `n` arguments reads it at `args[n]`. A task without blocks has one, number 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockContext {
    /// Number of the block.
    pub block: u32,
    /// How many blocks the task has.
    pub blocks: u32,
    /// 0, or 1 on the second vector core of the block.
    pub lane: u32,
}

impl BlockContext {
    /// What a task has that has no blocks.
    pub const ONLY: Self = Self { block: 0, blocks: 1, lane: 0 };

    /// The word.
    #[must_use]
    #[inline]
    pub const fn word(self) -> u64 {
        let low = self.block & 0xFF_FFFF | self.lane << 24;
        low as u64 | (self.blocks as u64) << 32
    }

    /// Block and lane, as a trace event has them (`TraceKind::PART`).
    #[must_use]
    pub const fn part(self) -> u32 {
        self.block & 0xFF_FFFF | self.lane << 24
    }

    /// What a word says.
    #[must_use]
    #[inline]
    pub const fn of(word: u64) -> Self {
        // 24, 8 and 32 bits.
        let low = (word & 0xFFFF_FFFF) as u32;
        Self { block: low & 0xFF_FFFF, blocks: (word >> 32) as u32, lane: low >> 24 }
    }
}

#[cfg(test)]
mod tests {
    use super::{BlockContext, Comparison, Predicate, Priority, TaskShape};
    use crate::stream::{ElementType, TensorTask, TensorView, ViewDefect};
    use crate::{CoreKind, FuncId, GmAddr};

    #[test]
    fn numbers_compare_as_their_types_do() {
        let less = |element, a: u64, b: u64| Comparison::LESS.holds(element, a, b);
        assert!(less(ElementType::U8, 0x7F, 0xFF) && less(ElementType::I8, 0xFF, 0x7F));
        assert!(less(ElementType::U64, 1, u64::MAX) && less(ElementType::I64, u64::MAX, 1));
        assert!(less(ElementType::I32, 0x8000_0000, 0) && !less(ElementType::U32, 0x8000_0000, 0));
        for (a, b) in [(-2.0_f32, -1.0_f32), (-1.0, 0.0), (0.5, f32::INFINITY), (-3.0, 4.0)] {
            assert!(less(ElementType::F32, a.to_bits().into(), b.to_bits().into()), "{a} {b}");
            assert!(!less(ElementType::F32, b.to_bits().into(), a.to_bits().into()), "{b} {a}");
        }
        let (small, large) = ((-1.5_f64).to_bits(), 1e300_f64.to_bits());
        assert!(less(ElementType::F64, small, large));
        // -2.0 and 1.0 as f16, and as bf16.
        assert!(less(ElementType::F16, 0xC000, 0x3C00) && less(ElementType::BF16, 0xC000, 0x3F80));
    }

    #[test]
    fn zeros_are_equal_and_nans_are_not() {
        let (zero, minus) = (0.0_f32.to_bits().into(), (-0.0_f32).to_bits().into());
        assert!(Comparison::EQUAL.holds(ElementType::F32, zero, minus));
        let nan = f32::NAN.to_bits().into();
        let held = |other| {
            let holds = |c: &&Comparison| c.holds(ElementType::F32, nan, other);
            Comparison::ALL.iter().filter(holds).count()
        };
        assert_eq!((held(nan), held(zero)), (1, 1), "not equal, and nothing else");
    }

    #[test]
    fn every_comparison_is_what_its_name_says() {
        let table = |found| {
            let holds = |c: &Comparison| c.holds(ElementType::I32, found, 5);
            [0, 1, 2, 3, 4, 5].map(|n| holds(&Comparison::ALL[n]))
        };
        assert_eq!(table(5), [true, false, false, true, false, true]);
        assert_eq!(table(4), [false, true, true, true, false, false]);
        assert_eq!(table(6), [false, true, false, false, true, true]);
    }

    #[test]
    fn a_predicate_is_on_one_element() {
        let flags = TensorView::dense(GmAddr(0x1000), ElementType::U32, &[4, 8]);
        let predicate = Predicate::new(&flags, &[2, 3], Comparison::NOT_EQUAL, 0);
        let element = predicate.element();
        assert_eq!((element.address(), element.elements()), (GmAddr(0x1000 + 4 * 19), 1));
        let defect =
            |index: &[u32]| Predicate::new(&flags, index, Comparison::EQUAL, 0).element().defect();
        assert_eq!(defect(&[2]), Some(ViewDefect::Rank));
        assert_eq!(defect(&[2, 8]), Some(ViewDefect::Range));
    }

    #[test]
    fn a_task_is_plain_until_it_is_not() {
        let task = || TensorTask::new(FuncId(1), CoreKind::AIC, &[]);
        assert!(TaskShape::PLAIN.is_plain() && task().shape.is_plain());
        assert!(task().blocks(1).priority(Priority::NORMAL).mix(&[]).shape.is_plain());
        let shaped = [
            task().mix(&[FuncId(2)]),
            task().blocks(0),
            task().blocks(2),
            task().sync_start(),
            task().priority(Priority::LOW).priority(Priority::NORMAL).blocks(3),
        ];
        assert!(shaped.iter().all(|task| !task.shape.is_plain()));
    }

    #[test]
    fn a_context_goes_through_its_word() {
        let context = BlockContext { block: 0xAB_CDEF, blocks: 0xFF_FFFF, lane: 1 };
        assert_eq!(BlockContext::of(context.word()), context);
        assert_eq!(BlockContext::ONLY.word(), 1 << 32);
    }
}
