//! A link of a chain: one kernel, run once or several times, and how its arguments differ from time to time.
//!
//! A link has words, or tensors. Of a tensor, what the whole link uses follows from its variations: a tile that moves by steps is one
//! view with one more dimension ([`Link::views`]). Invariant: the view of a turn begins where the word of that turn points to.

use pto_abi::chain::{
    MAX_CHAIN_ARGS, MAX_CHAIN_STEP, Turns, by_column, by_steps, link_words, of_variation,
    with_turns,
};
use pto_abi::{CoreKind, Fault, FuncId, GmAddr};

use crate::call::Call;
use crate::task::TaskSpec;
use crate::tensor::TensorView;
use crate::tensor_task::Arg;

/// How one argument differs between the kernels of a link: the word that says it to a core, and its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variation<'a> {
    word: u64,
    /// Empty, if it varies by steps.
    column: &'a [u64],
}

impl<'a> Variation<'a> {
    /// Argument number `arg` grows by `step` from each kernel to the next: a scalar by that number, a tensor by this many bytes.
    #[must_use]
    pub const fn by(arg: usize, step: i64) -> Self {
        let is_near = step.unsigned_abs() <= MAX_CHAIN_STEP.unsigned_abs();
        let turns = if is_near { Turns::EACH } else { Turns::WRONG };
        Self { word: by_steps(narrow(arg), turns, step), column: &[] }
    }

    /// Argument number `arg` is `words[n]` for the n-th kernel. Of a tensor, these are the addresses where its view begins.
    #[must_use]
    pub const fn of(arg: usize, words: &'a [u64]) -> Self {
        Self { word: by_column(narrow(arg), Turns::EACH), column: words }
    }

    /// The same, that goes on after every `turns` kernels: the outer one of two nested loops, whose inner one has so many turns. A column has a word for each
    /// of its own turns.
    #[must_use]
    pub const fn every(self, turns: u32) -> Self {
        self.in_turns(Turns::every(turns))
    }

    /// The same, that begins anew after every `turns` kernels: the inner one of two nested loops. A column has so many words.
    #[must_use]
    pub const fn within(self, turns: u32) -> Self {
        self.in_turns(Turns::within(turns))
    }

    /// Limits the variation to these turns.
    #[must_use]
    pub const fn in_turns(mut self, turns: Turns) -> Self {
        // A step that is too far stays wrong.
        if self.turns().is_right() {
            self.word = with_turns(self.word, turns);
        }
        self
    }

    /// The turns of the variation, which count the kernels.
    #[must_use]
    #[inline]
    pub const fn turns(&self) -> Turns {
        of_variation(self.word).1
    }

    /// Which argument.
    #[must_use]
    #[inline]
    pub const fn arg(&self) -> usize {
        of_variation(self.word).0 as usize
    }

    /// The step, if it varies by steps.
    #[must_use]
    #[inline]
    pub const fn step(&self) -> Option<i64> {
        of_variation(self.word).2
    }

    /// The step from each kernel to the next, if it varies so.
    #[must_use]
    #[inline]
    pub fn each_step(&self) -> Option<i64> {
        self.step().filter(|_| self.turns() == Turns::EACH)
    }

    /// A word for each of its turns, if it varies so.
    #[must_use]
    #[inline]
    pub const fn column(&self) -> &'a [u64] {
        self.column
    }

    /// The word that says it to a core.
    #[inline]
    pub(crate) const fn word(&self) -> u64 {
        self.word
    }

    /// What the argument is in kernel `turn` of its link, whose first one has `first`.
    #[must_use]
    #[inline]
    pub fn at(&self, turn: u32, first: u64) -> u64 {
        if self.turns() == Turns::EACH {
            self.in_own(turn, first)
        } else {
            self.at_own_turn(turn, first)
        }
    }

    /// The same, of a variation that has turns of its own. A function of its own, so that others pay nothing for it.
    #[cold]
    #[inline(never)]
    fn at_own_turn(&self, turn: u32, first: u64) -> u64 {
        self.in_own(self.turns().turn(turn), first)
    }

    /// The word in one of the variation's own turns.
    #[inline]
    fn in_own(&self, turn: u32, first: u64) -> u64 {
        match self.step() {
            Some(step) => first.wrapping_add(step.wrapping_mul(turn.into()).cast_unsigned()),
            None => self.column.get(turn as usize).copied().unwrap_or(first),
        }
    }

    /// Whether arguments of this many tasks or kernels, each of which has `args`, can vary so.
    ///
    /// # Errors
    /// `BUILD_CHAIN_VARIES`, `BUILD_CHAIN_LIMIT`.
    pub fn check_all(variations: &[Self], args: usize, times: u32) -> Result<(), Fault> {
        checked_columns(variations, args, times).map(|_| ())
    }

    /// The words of its column, if it can vary so an argument of a kernel that runs so often.
    #[inline]
    fn checked_column(&self, args: usize, times: u32) -> Option<usize> {
        let times = if self.turns() == Turns::EACH { times } else { self.own_turns(times)? };
        let words = if self.step().is_some() { 0 } else { times as usize };
        (self.column.len() == words && self.arg() < args).then_some(words)
    }

    /// How many turns it has in a link that has so many, if these can be.
    #[cold]
    #[inline(never)]
    fn own_turns(&self, times: u32) -> Option<u32> {
        let turns = self.turns();
        turns.is_right().then(|| turns.count(times))
    }
}

/// The number of an argument; one that no kernel in a chain has stays one.
const fn narrow(arg: usize) -> u8 {
    if arg < MAX_CHAIN_ARGS { arg.to_le_bytes()[0] } else { u8::MAX >> 1 }
}

/// What the arguments of a link are made of.
#[derive(Clone, Copy, Debug)]
enum Operands<'a> {
    Words(&'a [u64]),
    Tensors(&'a [Arg<'a>]),
}

/// One kernel of a chain, run once or several times.
#[derive(Clone, Copy, Debug)]
pub struct Link<'a> {
    func_id: FuncId,
    kind: CoreKind,
    kernel: GmAddr,
    operands: Operands<'a>,
    times: u32,
    variations: &'a [Variation<'a>],
    is_with_next: bool,
}

impl<'a> Link<'a> {
    /// A kernel that is run once, with the arguments of `task`.
    #[must_use]
    pub const fn new(task: TaskSpec<'a>) -> Self {
        let TaskSpec { func_id, kind, args, kernel } = task;
        let operands = Operands::Words(args);
        Self { func_id, kind, kernel, operands, times: 1, variations: &[], is_with_next: false }
    }

    /// A kernel that is run once, on tensors. In a streaming run the chain waits for what its tensors say.
    #[must_use]
    pub const fn on_tensors(func_id: FuncId, kind: CoreKind, args: &'a [Arg<'a>]) -> Self {
        let operands = Operands::Tensors(args);
        let (kernel, variations) = (GmAddr::NULL, &[]);
        Self { func_id, kind, kernel, operands, times: 1, variations, is_with_next: false }
    }

    /// [`on_tensors`](Self::on_tensors), of a call.
    #[must_use]
    pub const fn of<const N: usize>(call: &'a Call<Arg<'a>, N>) -> Self {
        let task = call.task();
        Self::on_tensors(task.func_id, task.kind, task.args)
    }

    /// Repeats the link `times` times.
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

    /// The same; the kernels of the next link take turns with these. Links that take turns run equally often: two of them with three times each run
    /// as `a b a b a b`.
    #[must_use]
    pub const fn with_next(mut self) -> Self {
        self.is_with_next = true;
        self
    }

    /// Whether the kernels of the next link take turns with these.
    #[must_use]
    pub const fn is_with_next(&self) -> bool {
        self.is_with_next
    }

    /// The kernel, as a task without arguments.
    #[must_use]
    pub const fn task(&self) -> TaskSpec<'static> {
        TaskSpec { func_id: self.func_id, kind: self.kind, args: &[], kernel: self.kernel }
    }

    /// How many arguments the kernel has.
    #[must_use]
    pub const fn arg_count(&self) -> usize {
        match self.operands {
            Operands::Words(words) => words.len(),
            Operands::Tensors(args) => args.len(),
        }
    }

    /// The arguments as the first kernel gets them.
    pub fn words(&self) -> impl Iterator<Item = u64> + use<'a> {
        let (words, args): (&[u64], &[Arg<'a>]) = match self.operands {
            Operands::Words(words) => (words, &[]),
            Operands::Tensors(args) => (&[], args),
        };
        words.iter().copied().chain(args.iter().map(word_of))
    }

    /// The arguments, if they were given as words.
    #[must_use]
    pub const fn plain_words(&self) -> Option<&'a [u64]> {
        match self.operands {
            Operands::Words(words) => Some(words),
            Operands::Tensors(_) => None,
        }
    }

    /// The arguments as they were given, if some of them may be tensors.
    #[must_use]
    pub const fn args(&self) -> &'a [Arg<'a>] {
        match self.operands {
            Operands::Words(_) => &[],
            Operands::Tensors(args) => args,
        }
    }

    /// Whether it was given tensors; words say nothing of what a kernel uses.
    #[must_use]
    pub const fn is_on_tensors(&self) -> bool {
        matches!(self.operands, Operands::Tensors(_))
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

    /// How many words say it to a core.
    #[must_use]
    pub fn word_count(&self) -> usize {
        let columns: usize = self.variations.iter().map(|it| it.column().len()).sum();
        link_words(self.arg_count(), self.variations.len(), columns)
    }

    /// The kernel of this turn as a task of its own; its arguments are written to `words`.
    #[must_use]
    pub fn task_at<'w>(&self, turn: u32, words: &'w mut [u64; MAX_CHAIN_ARGS]) -> TaskSpec<'w> {
        let count = self.arg_count().min(MAX_CHAIN_ARGS);
        let (args, _) = words.split_at_mut(count);
        args.iter_mut().zip(self.words()).for_each(|(to, word)| *to = word);
        for variation in self.variations {
            if let Some(arg) = args.get_mut(variation.arg()) {
                *arg = variation.at(turn, *arg);
            }
        }
        TaskSpec { func_id: self.func_id, kind: self.kind, args, kernel: self.kernel }
    }

    /// The part of a tensor that argument `arg` is in this turn; `None`: the argument is no tensor.
    #[must_use]
    pub fn view_at(&self, arg: usize, turn: u32) -> Option<TensorView<'a>> {
        let view = *self.args().get(arg)?.tensor()?;
        let own = self.variations.iter().filter(|variation| variation.arg() == arg);
        let address = own.fold(view.address().0, |word, variation| variation.at(turn, word));
        Some(if address == view.address().0 { view } else { view.moved_to(GmAddr(address)) })
    }

    /// The parts of a tensor that all kernels of the link use through argument `arg`, as few of them as it takes.
    pub fn views(&self, arg: usize) -> impl Iterator<Item = TensorView<'a>> + use<'a> {
        let whole = self.whole(arg);
        let has_views = whole.is_none() && self.args().get(arg).and_then(Arg::tensor).is_some();
        let turns = if has_views { self.times } else { 0 };
        let link = *self;
        whole.into_iter().chain((0..turns).filter_map(move |turn| link.view_at(arg, turn)))
    }

    /// Shows [`views`](Self::views) one after the other, where they are: a view is large, and a builder that looks at it needs no copy.
    ///
    /// # Errors
    /// The first one of `each`.
    #[inline]
    pub fn each_view<E>(
        &self,
        arg: usize,
        mut each: impl FnMut(&TensorView<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(view) = self.args().get(arg).and_then(Arg::tensor) else { return Ok(()) };
        if let Some(step) = self.step_of(arg) {
            let mut whole = *view;
            if whole.repeat(step, self.times) {
                return each(&whole);
            }
        }
        (0..self.times).filter_map(|turn| self.view_at(arg, turn)).try_for_each(|view| each(&view))
    }

    /// How many [`views`](Self::views) there are.
    #[must_use]
    pub fn view_count(&self, arg: usize) -> u32 {
        match self.args().get(arg).and_then(Arg::tensor) {
            None => 0,
            Some(_) if self.whole(arg).is_some() => 1,
            Some(_) => self.times,
        }
    }

    /// What the whole link uses through an argument, if one view can say it.
    fn whole(&self, arg: usize) -> Option<TensorView<'a>> {
        let view = *self.args().get(arg)?.tensor()?;
        view.repeated(self.step_of(arg)?, self.times)
    }

    /// By how much argument `arg` grows from each kernel to the next: 0 if it stays. `None`: it varies by words, or by several variations together.
    #[must_use]
    #[inline]
    pub fn step_of(&self, arg: usize) -> Option<i64> {
        let mut own = self.variations.iter().filter(|variation| variation.arg() == arg);
        match (own.next(), own.next()) {
            (None, _) => Some(0),
            (Some(only), None) => only.each_step(),
            _ => None,
        }
    }

    /// Whether it can be run as it is, in a chain on cores of this kind.
    pub(crate) fn check(&self, kind: CoreKind) -> Result<(), Fault> {
        self.checked_words(kind).map(|_| ())
    }

    /// The words that say it to a core, if it can be run as it is, in a chain on cores of this kind.
    #[inline]
    pub(crate) fn checked_words(&self, kind: CoreKind) -> Result<usize, Fault> {
        if self.times == 0 {
            return Err(Fault::BUILD_CHAIN_EMPTY);
        }
        if self.kind != kind {
            return Err(Fault::BUILD_CHAIN_KIND);
        }
        let columns = self.checked_columns()?;
        if self.args().iter().any(|arg| matches!(arg, Arg::BoundScalar(_))) {
            return Err(Fault::STREAM_NOT_RECORDING);
        }
        Ok(link_words(self.arg_count(), self.variations.len(), columns))
    }

    /// The words of all columns, if its arguments can vary as they are to.
    #[inline]
    pub(crate) fn checked_columns(&self) -> Result<usize, Fault> {
        checked_columns(self.variations, self.arg_count(), self.times)
    }
}

/// The words of all columns, if arguments can vary so.
#[inline]
fn checked_columns(variations: &[Variation<'_>], args: usize, times: u32) -> Result<usize, Fault> {
    if args > MAX_CHAIN_ARGS || variations.len() > MAX_CHAIN_ARGS {
        return Err(Fault::BUILD_CHAIN_LIMIT);
    }
    let mut columns = 0;
    for variation in variations {
        let column = variation.checked_column(args, times);
        columns += column.ok_or(Fault::BUILD_CHAIN_VARIES)?;
    }
    Ok(columns)
}

/// An argument as a kernel gets it.
const fn word_of(arg: &Arg<'_>) -> u64 {
    match arg {
        Arg::In(view) | Arg::Out(view) | Arg::InOut(view) | Arg::NoDep(view) => view.address().0,
        Arg::Scalar(word) => *word,
        // A chain with one is refused.
        Arg::BoundScalar(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::{Link, Variation};
    use crate::element::ElementType;
    use crate::task::TaskSpec;
    use crate::tensor::{TensorView, ViewDefect};
    use crate::tensor_task::Arg;
    use pto_abi::chain::{MAX_CHAIN_ARGS, MAX_CHAIN_KERNELS};
    use pto_abi::{CoreKind, Fault, FuncId, GmAddr};

    #[test]
    fn arguments_vary_by_steps_and_by_columns() {
        let varies = [Variation::by(0, -8), Variation::of(2, &[5, 6, 7])];
        let task = TaskSpec::new(FuncId(3), CoreKind::AIV, &[100, 1, 0]);
        let link = Link::new(task).times(3).varying(&varies);
        let mut words = [0; MAX_CHAIN_ARGS];
        let args = [0, 1, 2].map(|turn| {
            let args = link.task_at(turn, &mut words).args;
            [args[0], args[1], args[2]]
        });
        assert_eq!(args, [[100, 1, 5], [92, 1, 6], [84, 1, 7]]);
    }

    #[test]
    fn arguments_vary_in_nested_loops() {
        let bases = [1000, 2000];
        let varies = [Variation::of(0, &bases).every(2), Variation::by(0, 8).within(2)];
        let task = TaskSpec::new(FuncId(3), CoreKind::AIV, &[7, 1]);
        let link = Link::new(task).times(4).varying(&varies);
        let mut words = [0; MAX_CHAIN_ARGS];
        let args = [0, 1, 2, 3].map(|turn| link.task_at(turn, &mut words).args[0]);
        assert_eq!(args, [1000, 1008, 2000, 2008]);
        assert_eq!(link.checked_words(CoreKind::AIV), Ok(2 + 2 + 2 + 2));
        // The last row may be shorter.
        assert!(link.times(3).check(CoreKind::AIV).is_ok());
        let refused = Err(Fault::BUILD_CHAIN_VARIES);
        assert_eq!(link.times(5).check(CoreKind::AIV), refused, "a third row has no word");
        let wrong = [
            Variation::of(0, &bases).every(4),
            Variation::of(0, &bases).within(3),
            Variation::by(0, 8).every(0),
            Variation::by(0, 8).within(MAX_CHAIN_KERNELS + 1),
        ];
        for wrong in wrong {
            let link = link.varying(core::slice::from_ref(&wrong)).check(CoreKind::AIV);
            assert_eq!(link, refused, "{wrong:?}");
        }
    }

    #[test]
    fn a_tile_that_moves_in_nested_loops_is_a_view_for_each_turn() {
        let tile = matrix().slice(0, 0, 4).slice(1, 0, 4);
        let args = [Arg::In(&tile)];
        let varies = [Variation::by(0, 4 * 64).every(2), Variation::by(0, 16).within(2)];
        let link = Link::on_tensors(FuncId(3), CoreKind::AIV, &args).times(4).varying(&varies);
        let mut offsets = [0; 4];
        offsets.iter_mut().zip(link.views(0)).for_each(|(to, view)| *to = view.offset());
        assert_eq!((offsets, link.view_count(0)), ([0, 4, 64, 68], 4));
        let only = [varies[0]];
        assert_eq!(link.varying(&only).view_count(0), 4, "it does not move in each turn");
    }

    const BASE: u64 = 0x1000;

    fn matrix() -> TensorView<'static> {
        TensorView::dense(GmAddr(BASE), ElementType::F32, &[8, 16])
    }

    #[test]
    fn a_tile_that_moves_by_steps_is_one_view() {
        let tile = matrix().slice(0, 0, 4).slice(1, 0, 4);
        let row = matrix().slice(0, 7, 1);
        let args = [Arg::In(&tile), Arg::Scalar(9), Arg::Out(&row)];
        let varies = [Variation::by(0, 16), Variation::by(2, -64), Variation::by(1, 3)];
        let link = Link::on_tensors(FuncId(3), CoreKind::AIV, &args).times(4).varying(&varies);
        let whole = link.views(0).next().unwrap();
        assert_eq!((whole.shape(), whole.strides()), (&[4, 4, 4][..], &[4, 16, 1][..]));
        let rows = link.views(2).next().unwrap();
        assert_eq!((rows.offset(), rows.shape(), rows.is_dense()), (64, &[4, 1, 16][..], true));
        assert_eq!([0, 1, 2].map(|arg| link.view_count(arg)), [1, 0, 1]);
        let mut words = [0; MAX_CHAIN_ARGS];
        let last = link.task_at(3, &mut words).args;
        let views = [0, 2].map(|arg| link.view_at(arg, 3).unwrap());
        assert_eq!([views[0].address().0, views[1].address().0], [last[0], last[2]]);
        assert_eq!(last, [BASE + 48, 18, BASE + 4 * 64]);
        let far = link.times(6).views(0).next().unwrap();
        assert_eq!(far.defect(), None, "the next rows: within the tensor");
        let outside = link.times(9).views(2).next().unwrap();
        assert_eq!(outside.defect(), Some(ViewDefect::Range), "before its first row");
    }

    #[test]
    fn a_tile_without_a_rule_is_a_view_for_each_turn() {
        let tile = matrix().slice(0, 0, 2);
        let args = [Arg::InOut(&tile)];
        let column = [BASE + 128, BASE, BASE + 2];
        let varies = [Variation::of(0, &column)];
        let link = Link::on_tensors(FuncId(3), CoreKind::AIV, &args).times(3).varying(&varies);
        let mut views = link.views(0).map(|view| (view.offset(), view.defect()));
        assert_eq!(views.next(), Some((32, None)));
        assert_eq!(views.next(), Some((0, None)));
        assert_eq!(views.next().unwrap().1, Some(ViewDefect::Range), "between two elements");
        assert_eq!((views.next(), link.view_count(0)), (None, 3));
    }
}
