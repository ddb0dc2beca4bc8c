//! Ranges on tensors: tasks of one kernel that are submitted in one call.
//!
//! What the tasks have in common is worked out once: the kernel, what each argument does to its tensor, the row of the tensor in the map, whether every
//! position lies in the tensor. Each task is then added, gets its edges and is published before the next one, as if it were submitted by itself: who
//! looks on sees no difference, also where a ring is full in between. A range for which that cannot be said beforehand is submitted one by one:
//! in a recording, with block shapes, with regions of several strides, with tensors that leave their memory, with two
//! outputs in one tensor.

use heapless::Vec;
use pto_abi::stream::{MapRow, RingKind};
use pto_abi::sync::{AtomicU64, Ordering};
use pto_abi::{Fault, TaskId};
use pto_graph::{Arg, DependencyMode, TaskSpec, TensorRange, TensorView, Variation};

use super::super::accesses::access_of;
use super::super::map::{AccessKind, Hide, TensorAccess};
use super::super::region::Region;
use super::super::tasks::TaskWords;
use super::Stream;
use crate::blame::Blame;
use crate::config::Config;
use crate::machine::RangeNote;
use crate::mutant::{self, Mutant};

/// Arguments that have to be looked at for each task, at most: the stacks of the device are small. Tasks with more are submitted one by one.
const MOST_MOVING: usize = 12;

/// An argument of a range that varies, or is a tensor that edges are derived from.
struct Moving<'a> {
    index: u32,
    /// The argument's word in the first task.
    first: u64,
    /// What the first task does to its tensor, and the row of that.
    access: Option<(TensorAccess<'static>, Option<&'a MapRow>)>,
    /// The argument's variations: their numbers, one bit each.
    variations: u32,
}

/// The arguments of a range that have to be looked at for each task.
struct Plan<'a> {
    moving: Vec<Moving<'a>, MOST_MOVING>,
    accesses: u32,
}

impl<'a, C: Config> Stream<'a, C> {
    /// Plans what is the same for all tasks of a range, in place: a plan is large. `None`: they have to be submitted one by one.
    fn plan(&self, range: &TensorRange<'_>, plan: &mut Plan<'a>) -> Option<()> {
        let task = range.task();
        let is_right = range.check(range.tasks() as usize).is_ok();
        if self.draft.is_some() || !task.block_shape.is_plain() || !is_right {
            return None;
        }
        let derives = self.tasks.scopes().mode() == DependencyMode::DERIVED;
        for (index, arg) in (0_u32..).zip(task.args) {
            let variations = variations_of(range.variations(), index as usize);
            let (first, access) = match arg {
                Arg::Scalar(word) => (*word, None),
                Arg::BoundScalar(_) => return None,
                Arg::In(view) | Arg::Out(view) | Arg::InOut(view) | Arg::NoDep(view) => {
                    if !self.is_usable(view) {
                        return None;
                    }
                    let kind = access_of(arg).map(|(_, kind)| kind);
                    let access = one_stride(view, kind.unwrap_or(AccessKind::Read))?;
                    if !fits(range, (index as usize, variations), (view, &access)) {
                        return None;
                    }
                    (view.address().0, kind.map(|_| access))
                }
            };
            if access.is_some_and(|access| !plan.is_only_output(&access)) {
                return None;
            }
            plan.accesses += u32::from(access.is_some());
            if variations == 0 && access.is_none() {
                continue;
            }
            let map = self.tasks.storage().map();
            let row = |access: TensorAccess<'static>| {
                (access, if derives { map.row_of(view_base(arg)) } else { None })
            };
            let access = access.map(row);
            plan.moving.push(Moving { index, first, access, variations }).ok()?;
        }
        Some(())
    }

    /// Submits a range. `false`: its tasks have to be submitted one by one, and none was.
    #[inline(never)]
    pub(super) fn submit_range_of_tensors(
        &mut self,
        range: &TensorRange<'_>,
        ids: &mut [TaskId],
    ) -> Result<bool, Fault> {
        if let Err(fault) = range.check(ids.len()) {
            let next = self.tasks.storage().window().next_id();
            let blame = Blame::of(fault).task(next);
            return Err(self.tasks.refuse(blame.detail(ids.len() as u64, range.tasks().into())));
        }
        let mut plan = Plan::new();
        if ids.is_empty() || self.plan(range, &mut plan).is_none() {
            return Ok(false);
        }
        self.submit_planned(range, &plan, ids)?;
        Ok(true)
    }

    fn submit_planned(
        &mut self,
        range: &TensorRange<'_>,
        plan: &Plan<'a>,
        ids: &mut [TaskId],
    ) -> Result<(), Fault> {
        let task = range.task();
        let spec = TaskSpec::new(task.func_id, task.kind, &[]);
        let kernel = self.tasks.accept(&spec, task.args.len())?;
        let mode = self.tasks.scopes().mode();
        let entries = u64::from(plan.accesses) * TensorAccess::MAX_ENTRIES;
        let tensors = if mode == DependencyMode::MANUAL { 0 } else { plan.accesses };
        self.tasks.note_range(RangeNote::Range);
        for (turn, slot) in (0..).zip(ids) {
            self.tasks.make_room(task.args.len())?;
            self.tasks.make_room_in(RingKind::MAP, entries)?;
            plan.write(range, turn, self.tasks.storage().next_words(task.args.len()));
            self.tasks.storage_mut().takes(RingKind::MAP, entries);
            let number = self.tasks.storage().window().next();
            let id = self.tasks.open_slot(&spec, kernel, TaskWords::Arguments(task.args.len()))?;
            *slot = id;
            for &producer in task.after {
                self.tasks.edge_after(producer, number)?;
            }
            match mode {
                DependencyMode::DERIVED => self.derive_turn(range, plan, (turn, number))?,
                DependencyMode::EXPLICIT => self.note_turn(range, plan, (turn, number)),
                _ => {}
            }
            self.tasks.note_range(RangeNote::TensorTask { slot: id.slot, tensors });
            self.tasks.publish_added(id.slot)?;
        }
        Ok(())
    }

    /// The edges of a task, as `derive` has them of a task by itself.
    #[inline]
    fn derive_turn(
        &mut self,
        range: &TensorRange<'_>,
        plan: &Plan<'a>,
        (turn, number): (u32, u64),
    ) -> Result<(), Fault> {
        let turn = turn_of(range, turn, Mutant::RangeTakesTheWrongTile);
        for moving in &plan.moving {
            let Some((first, row)) = &moving.access else { continue };
            let access = first.moved(moving.at(range, turn).wrapping_sub(moving.first));
            let (map, tasks) = (self.tasks.storage().map(), &mut self.tasks);
            let derived = map.derive_at(*row, &access, number, None, |producer| {
                tasks.derived_edge(producer, number).map_err(Some)
            });
            if let Err(fault) = derived {
                // `None`: it takes too long to decide what the access meets.
                return Err(fault.unwrap_or_else(|| self.tasks.undecided(number, moving.index)));
            }
        }
        Ok(())
    }

    /// Notes what a task does.
    fn note_turn(&self, range: &TensorRange<'_>, plan: &Plan<'a>, (turn, number): (u32, u64)) {
        let map = self.tasks.storage().map();
        for moving in &plan.moving {
            let Some((first, _)) = &moving.access else { continue };
            let access = first.moved(moving.at(range, turn).wrapping_sub(moving.first));
            if let Some(position) = map.locate(&access) {
                map.note(&position, &access, (number, Hide::Nothing));
            }
        }
    }
}

impl Plan<'_> {
    /// An empty plan.
    const fn new() -> Self {
        Self { moving: Vec::new(), accesses: 0 }
    }

    /// Writes the words of a task to these, which are as many.
    #[inline]
    fn write(&self, range: &TensorRange<'_>, turn: u32, words: &[AtomicU64]) {
        let turn = turn_of(range, turn, Mutant::RangeRepeatsItsEnd);
        for (word, arg) in words.iter().zip(range.task().args) {
            word.store(first_word(arg), Ordering::Relaxed);
        }
        for moving in self.moving.iter().filter(|moving| moving.variations != 0) {
            if let Some(word) = words.get(moving.index as usize) {
                word.store(moving.at(range, turn), Ordering::Relaxed);
            }
        }
    }

    /// Whether no argument before writes the tensor that this access writes: which parts of it the tasks of a range write would have to be compared
    /// task by task.
    fn is_only_output(&self, access: &TensorAccess<'static>) -> bool {
        let mut before = self.moving.iter().filter_map(|moving| moving.access.as_ref());
        before.all(|(other, _)| !access.writes_with(other))
    }
}

impl Moving<'_> {
    /// The argument's word in task `turn`.
    #[inline]
    fn at(&self, range: &TensorRange<'_>, turn: u32) -> u64 {
        let (mut word, mut left) = (self.first, self.variations);
        while left != 0 {
            if let Some(variation) = range.variations().get(left.trailing_zeros() as usize) {
                word = variation.at(turn, word);
            }
            left &= left - 1;
        }
        word
    }
}

/// Which of the variations are of this argument: a bit each. A range has no more than bits.
fn variations_of(variations: &[Variation<'_>], arg: usize) -> u32 {
    let own = (0_u32..).zip(variations).filter(|(_, variation)| variation.arg() == arg);
    own.fold(0, |bits, (number, _)| bits | 1_u32.unbounded_shl(number))
}

/// What an access to a view is, if its region has one stride at most.
fn one_stride(view: &TensorView<'_>, kind: AccessKind) -> Option<TensorAccess<'static>> {
    let simple: Option<TensorAccess<'static>> = TensorAccess::simple(view, kind);
    simple.or_else(|| TensorAccess::of_rows(view.base().0, kind, &Region::of(view)))
}

/// Whether a tensor stays in its memory in all tasks of a range.
fn fits(
    range: &TensorRange<'_>,
    (arg, variations): (usize, u32),
    (view, access): (&TensorView<'_>, &TensorAccess<'_>),
) -> bool {
    let (first, size) = (view.address().0, view.element().bytes());
    let is_in = |word: u64| {
        let offset = word.wrapping_sub(view.base().0);
        let end = offset.checked_add(access.reach());
        offset.checked_rem(size) == Some(0) && end.is_some_and(|end| end <= view.tensor_bytes())
    };
    let Some(last) = range.tasks().checked_sub(1).filter(|_| variations != 0) else { return true };
    let only = range.variations().get(variations.trailing_zeros() as usize);
    let step = only.filter(|_| variations.is_power_of_two()).and_then(Variation::each_step);
    match step {
        // Between the first and the last task it goes one way.
        Some(step) => {
            let way = step.checked_mul(last.into());
            let end = way.and_then(|way| first.checked_add_signed(way));
            step.unsigned_abs().checked_rem(size) == Some(0) && end.is_some_and(is_in)
        }
        None => (0..=last).all(|turn| is_in(range.word_at(arg, turn, first))),
    }
}

/// The turn whose arguments a task gets: its own one.
#[inline(always)]
fn turn_of(range: &TensorRange<'_>, turn: u32, wrong: Mutant) -> u32 {
    turn - u32::from(mutant::is(wrong) && turn > 0 && turn + 1 == range.tasks())
}

/// Where the tensor of an argument begins.
fn view_base(arg: &Arg<'_>) -> u64 {
    arg.tensor().map_or(0, |view| view.base().0)
}

/// The word of an argument of the first task.
#[inline]
fn first_word(arg: &Arg<'_>) -> u64 {
    match arg {
        Arg::Scalar(word) => *word,
        _ => arg.tensor().map_or(0, |view| view.address().0),
    }
}
