//! The grain: calls that follow each other are put together into one dispatch, which one core runs as a [`Chain`].
//!
//! ```text
//! a call --repeat-->    the calls before it    the call site of the last call, each of its words one step further: `b b b`
//!        --go_around--> the calls before it    the call site whose turn it is, likewise: `a b a b a b`
//!        --add-->       the calls before it    another call site, of another kernel perhaps: `a b`
//!        --begin-->     calls of its own       those before it are submitted (Walk::release)
//!        -->            a task of its own      it would be alone: its work is large, or it is unknown
//! ```
//! Calls are submitted when they have as much work as [`Measure`] says, when another call does not join them, and before the program waits
//! for a tensor. Invariants: a run has its calls in program order, and no other call comes between them, so that a chain never waits for a
//! later call; every call of a run has tiles that stay in their dimensions; the words of a run fit those of a chain.

use pto_abi::chain::{MAX_CHAIN_ARGS, header_words, link_words};
use pto_abi::fault::Fault;
use pto_abi::limits::MAX_ARGS;

use super::accept::KernelEntry;
use super::kept::{Kept, VARIATIONS, vary};
use super::measure::{ENOUGH_NS, MOST, Measure, TWO_DISPATCHES_NS};
use super::operand::{Args, Given, Next, fill};
use super::task;
use crate::builder::GraphBuilder;
use crate::chain::Chain;
use crate::link::{Link, Variation};
use crate::stream::StreamBuilder;
use crate::tensor_task::{Arg, TensorTask};

/// The largest number of call sites of a plan whose calls share a dispatch. A *place* is a call site.
const PLACES: usize = 7;

/// Operands of all calls that share a dispatch.
const OPERANDS: usize = 32;
const _: () = assert!(OPERANDS >= MAX_CHAIN_ARGS - task::PARAMS, "one call always has room");

/// A call: its index in the plan, its kernel, and the words before those of the parameters.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub(super) at: usize,
    pub(super) kernel: KernelEntry,
    pub(super) head: [u64; task::PARAMS],
}

/// A call of a call site that is in a run.
struct Entry {
    call: Call,
    measure: Measure,
    /// The first of its operands, and the one after the last.
    operands: [usize; 2],
    /// Calls of this call site one after another.
    times: u32,
}

/// Calls that were put together and wait for more.
pub(super) struct Run {
    /// Their call sites, in program order; with nothing pending, the last one's operands are those of its last call.
    entries: heapless::Vec<Entry, PLACES>,
    operands: heapless::Vec<Kept, OPERANDS>,
    is_pending: bool,
    /// Completed rounds of all call sites; one, until the first call site is called again.
    turns: u32,
    /// The call site whose turn it is.
    next: usize,
    /// Turns that there are at most.
    most_turns: u64,
    /// Iterations that may run side by side, of the loops that all calls are in.
    width: u64,
}

impl Run {
    /// No call.
    pub(super) const fn new() -> Self {
        Self {
            entries: heapless::Vec::new(),
            operands: heapless::Vec::new(),
            is_pending: false,
            turns: 1,
            next: 0,
            most_turns: 1,
            width: 0,
        }
    }

    /// The index in the plan of the last of its calls.
    pub(super) fn at(&self) -> usize {
        self.entries.last().map_or(0, |entry| entry.call.at)
    }

    /// Whether a chain has room for the words of a call.
    pub(super) const fn has_room(words: usize) -> bool {
        words <= MAX_CHAIN_ARGS
    }

    /// A loop was left, around which so many iterations may run side by side.
    pub(super) const fn leave(&mut self, width: u64) {
        if width < self.width {
            self.width = width;
        }
    }

    /// Begins with a call that can be in a run, whose tiles stay in their dimensions and whose words have [room](Self::has_room); the run
    /// before it was submitted.
    pub(super) fn begin<'g>(
        &mut self,
        call: &Call,
        given: impl Iterator<Item = &'g Given>,
        measure: Measure,
    ) {
        self.entries.clear();
        self.operands.clear();
        self.push(call, given, measure);
        self.width = measure.width;
    }

    fn push<'g>(&mut self, call: &Call, given: impl Iterator<Item = &'g Given>, measure: Measure) {
        let first = self.operands.len();
        // There is room, as the callers know.
        given.for_each(|given| drop(self.operands.push(Kept::of(given))));
        let operands = [first, self.operands.len()];
        let _ = self.entries.push(Entry { call: *call, measure, operands, times: 1 });
        (self.is_pending, self.turns, self.next) = (true, 1, 0);
    }

    /// The last call was submitted outside the grain.
    pub(super) fn forget(&mut self) {
        self.entries.clear();
        self.is_pending = false;
    }

    /// Whether the last call is at this call site, so that others can [go on](Self::go_on) from it.
    pub(super) fn is_kept(&self, at: usize) -> bool {
        !self.takes_turns() && self.entries.last().is_some_and(|entry| entry.call.at == at)
    }

    /// Whether the first call site was called again after others.
    const fn takes_turns(&self) -> bool {
        self.turns > 1 || self.next > 0
    }

    fn operands_of(&self, entry: &Entry) -> &[Kept] {
        let [first, end] = entry.operands;
        self.operands.get(first..end).unwrap_or(&[])
    }

    fn last_operands(&mut self) -> &mut [Kept] {
        let [first, end] = self.entries.last().map_or([0; 2], |entry| entry.operands);
        self.operands.get_mut(first..end).unwrap_or_default()
    }

    /// Makes `left` calls more, each of which moves its operands by these steps, and stays as regular as the last one; `left` counts down when
    /// a call is reached.
    pub(super) fn go_on<G: StreamBuilder>(
        &mut self,
        stream: &mut G,
        steps: &[i64],
        left: &mut u64,
    ) -> Result<(), Fault> {
        let mut most = self.most_by(steps);
        let mut goes_on = self.times() == 1 || self.has_steps(steps);
        while *left > 0 {
            let room = most.saturating_sub(self.times().into()).min(*left);
            if self.is_pending && goes_on && room > 0 {
                self.extend(steps, room);
                *left -= room;
                continue;
            }
            *left -= 1;
            self.submit(stream)?;
            if self.entries.len() > 1 {
                self.keep_last();
                most = self.most_by(steps);
            }
            self.begin_again(steps);
            goes_on = true;
        }
        Ok(())
    }

    /// How often the last call site was called.
    fn times(&self) -> u32 {
        self.entries.last().map_or(0, |entry| entry.times)
    }

    /// The largest number of calls of the last call site that move by these steps.
    fn most_by(&self, steps: &[i64]) -> u64 {
        let Some(last) = self.entries.last() else { return 1 };
        let (mut is_sequence, mut fits) = (true, true);
        for (kept, step) in self.operands_of(last).iter().zip(steps) {
            is_sequence &= !kept.given.is_written() || *step == 0;
            fits &= kept.can_step(*step);
        }
        if fits { self.most_of_last(is_sequence) } else { 1 }
    }

    /// The largest number of calls of the last call site, in addition to those of the call sites before it.
    #[inline]
    fn most_of_last(&self, is_sequence: bool) -> u64 {
        let [before @ .., last] = self.entries.as_slice() else { return 1 };
        let most = last.measure.most(is_sequence);
        if before.is_empty() { most } else { most.min(Self::room_beside(before, last.measure)) }
    }

    /// How many more calls of this kind fit into the work of a dispatch.
    fn room_beside(entries: &[Entry], measure: Measure) -> u64 {
        if measure.asked > 0 {
            let kernels = entries.iter().map(|entry| u64::from(entry.times)).sum();
            return measure.asked.min(MOST).saturating_sub(kernels);
        }
        let room = ENOUGH_NS.saturating_sub(Self::ns(entries));
        room.checked_div(measure.chained_ns()).unwrap_or(0)
    }

    fn ns(entries: &[Entry]) -> u64 {
        let of = |entry: &Entry| entry.measure.chained_ns().saturating_mul(entry.times.into());
        entries.iter().map(of).fold(0, u64::saturating_add)
    }

    fn has_steps(&self, steps: &[i64]) -> bool {
        let last = self.entries.last().map_or(&[][..], |entry| self.operands_of(entry));
        last.iter().zip(steps).all(|(kept, step)| kept.step == *step)
    }

    /// Adds this many calls of the last call site to the run; each moves by these steps.
    fn extend(&mut self, steps: &[i64], count: u64) {
        for (kept, step) in self.last_operands().iter_mut().zip(steps) {
            let moved = step.cast_unsigned().wrapping_mul(count);
            (kept.step, kept.last) = (*step, kept.last.wrapping_add(moved));
        }
        if let Some(last) = self.entries.last_mut() {
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            last.times = last.times.saturating_add(count);
        }
    }

    /// Forgets all call sites except the last one, after the run was submitted.
    fn keep_last(&mut self) {
        let Some(last) = self.entries.pop() else { return };
        self.width = last.measure.width;
        self.entries.clear();
        let _ = self.entries.push(last);
    }

    /// Begins a run with the call after the last one; its call site is the only one. The previous run was submitted.
    #[inline]
    fn begin_again(&mut self, steps: &[i64]) {
        for (kept, step) in self.last_operands().iter_mut().zip(steps) {
            kept.last = kept.last.wrapping_add(step.cast_unsigned());
            kept.given.move_to(kept.last);
        }
        if let Some(last) = self.entries.last_mut() {
            last.times = 1;
        }
        (self.is_pending, self.turns, self.next) = (true, 1, 0);
    }

    /// Takes a call in if it goes on as the run does; `false`: it does not. Turns that were not whole are submitted then as far as they were whole, and the
    /// rest waits on.
    #[inline]
    pub(super) fn join<G: StreamBuilder>(
        &mut self,
        stream: &mut G,
        at: usize,
        operands: &[impl Next],
    ) -> Result<bool, Fault> {
        if !self.is_pending {
            return Ok(false);
        }
        if self.entries.len() == 1 {
            return Ok(self.at() == at && self.repeat(operands));
        }
        if self.go_around(at, operands) {
            return Ok(true);
        }
        if self.next == 0 {
            return Ok(false);
        }
        self.submit_whole_turns(stream)?;
        Ok(self.at() == at && self.repeat(operands))
    }

    /// Adds another call of the last call site to the run, if its operands continue the steps of the calls before it.
    #[inline]
    fn repeat(&mut self, operands: &[impl Next]) -> bool {
        let Some(last) = self.entries.last() else { return false };
        let (mut is_sequence, times) = (true, last.times);
        for (kept, operand) in self.operands_of(last).iter().zip(operands) {
            let step = kept.step_to(operand);
            let Some(step) = step.filter(|step| times == 1 || *step == kept.step) else {
                return false;
            };
            is_sequence &= !kept.given.is_written() || step == 0;
        }
        if u64::from(times) >= self.most_of_last(is_sequence) {
            return false;
        }
        for (kept, operand) in self.last_operands().iter_mut().zip(operands) {
            kept.take(operand.position());
        }
        if let Some(last) = self.entries.last_mut() {
            last.times += 1;
        }
        true
    }

    /// Adds a call to a run with several call sites: of the last one again, or of the one whose turn it is.
    #[inline(never)]
    fn go_around(&mut self, at: usize, operands: &[impl Next]) -> bool {
        if !self.takes_turns() {
            if self.at() == at {
                return self.repeat(operands);
            }
            if self.entries.iter().any(|entry| entry.times > 1) {
                return false;
            }
            self.most_turns = self.enough_turns();
        }
        let Some(entry) = self.entries.get(self.next).filter(|entry| entry.call.at == at) else {
            return false;
        };
        if self.next == 0 && u64::from(self.turns) >= self.most_turns {
            return false;
        }
        let mut is_sequence = true;
        for (kept, operand) in self.operands_of(entry).iter().zip(operands) {
            let step = kept.step_to(operand);
            let Some(step) = step.filter(|step| self.turns == 1 || *step == kept.step) else {
                return false;
            };
            is_sequence &= !kept.given.is_written() || step == 0;
        }
        if self.turns == 1 && !is_sequence && entry.measure.asked == 0 {
            let share = entry.measure.share(self.width);
            if share <= 1 {
                return false;
            }
            self.most_turns = self.most_turns.min(share);
        }
        let [first, end] = entry.operands;
        let kept = self.operands.get_mut(first..end).unwrap_or_default();
        kept.iter_mut().zip(operands).for_each(|(kept, operand)| kept.take(operand.position()));
        self.next += 1;
        if self.next == self.entries.len() {
            (self.next, self.turns) = (0, self.turns + 1);
        }
        true
    }

    /// How many rounds of the call sites have the work of a dispatch, where no call site was called twice in succession.
    fn enough_turns(&self) -> u64 {
        let asked = self.entries.first().map_or(0, |entry| entry.measure.asked);
        if asked > 0 {
            return asked.min(MOST).checked_div(self.entries.len() as u64).unwrap_or(1);
        }
        ENOUGH_NS.checked_div(Self::ns(&self.entries)).unwrap_or(1)
    }

    /// Adds a call of another call site, if a dispatch has room for it and that leaves no core idle; `false`: nothing has changed. The call
    /// can be in a run.
    pub(super) fn add(&mut self, call: &Call, given: &[&Given], measure: Measure) -> bool {
        let Some(last) = self.entries.last().filter(|_| self.is_pending && !self.takes_turns())
        else {
            return false;
        };
        let is_new = self.entries.iter().all(|entry| entry.call.at != call.at);
        let is_right = is_new
            && last.call.kernel.kind == call.kernel.kind
            && measure.is_short()
            && last.measure.is_short();
        if !is_right || !self.is_worth(last, given, measure) || !self.has_room_for(given) {
            return false;
        }
        self.push(call, given.iter().copied(), measure);
        self.width = self.width.min(measure.width);
        true
    }

    /// Whether a core that runs the call after these makes no other core idle, and has not too much to do.
    fn is_worth(&self, last: &Entry, given: &[&Given], measure: Measure) -> bool {
        if Self::room_beside(&self.entries, measure) == 0 {
            return false;
        }
        if measure.asked > 0 || measure.share(self.width.min(measure.width)) > 0 {
            return true;
        }
        // There are fewer iterations than cores: what does not wait for the call before has a core of its own.
        let kept = self.operands_of(last);
        let waits = given.iter().any(|given| kept.iter().any(|kept| kept.meets(given)));
        let ns = Self::ns(&self.entries).saturating_add(measure.chained_ns());
        waits && self.width == measure.width && ns <= TWO_DISPATCHES_NS
    }

    /// Whether there is room for a call, and a chain for all words, even if each of them varies.
    fn has_room_for(&self, given: &[&Given]) -> bool {
        let link = |args: usize, varying: usize| link_words(task::PARAMS + args, varying, 0);
        let of_entry = |entry: &Entry| {
            let args = self.operands_of(entry).iter().map(|kept| kept.given.args()).sum();
            let varying = self.operands_of(entry).iter().map(|kept| kept.given.varying()).sum();
            link(args, varying)
        };
        let before = self.entries.iter().map(of_entry).sum::<usize>();
        let args = given.iter().map(|given| given.args()).sum();
        let own = link(args, given.iter().map(|given| given.varying()).sum());
        header_words() + before + own <= MAX_ARGS
            && self.operands.len() + given.len() <= OPERANDS
            && self.entries.len() < PLACES
    }

    /// Submits what there is, and has nothing pending then.
    pub(super) fn submit<G: StreamBuilder>(&mut self, stream: &mut G) -> Result<(), Fault> {
        if self.next > 0 {
            self.submit_whole_turns(stream)?;
        }
        if !core::mem::take(&mut self.is_pending) {
            return Ok(());
        }
        match self.entries.as_slice() {
            [entry @ Entry { call: Call { kernel, head, .. }, times: 1, .. }] => {
                let mut args = Args::new();
                fill(&mut args, head, self.operands_of(entry).iter().map(|kept| &kept.given));
                stream.submit_tensors(&TensorTask::new(kernel.func, kernel.kind, &args)).map(drop)
            }
            _ => self.submit_chain(stream),
        }
    }

    /// Submits the turns that are whole. The calls of the turn that is not are pending, once each.
    #[cold]
    #[inline(never)]
    fn submit_whole_turns<G: StreamBuilder>(&mut self, stream: &mut G) -> Result<(), Fault> {
        let begun = core::mem::take(&mut self.next);
        let submitted = self.submit_chain(stream);
        self.entries.truncate(begun);
        let end = self.entries.last().map_or(0, |entry| entry.operands[1]);
        self.operands.truncate(end);
        for kept in &mut self.operands {
            kept.given.move_to(kept.last);
        }
        self.turns = 1;
        if submitted.is_err() {
            // After a refused call, no further call is submitted.
            self.is_pending = false;
        }
        submitted
    }

    // Not inlined: a chain is rarer than the calls in it.
    #[inline(never)]
    fn submit_chain<G: GraphBuilder>(&self, stream: &mut G) -> Result<(), Fault> {
        let mut args: heapless::Vec<Arg<'_>, MAX_ARGS> = heapless::Vec::new();
        let mut varies: heapless::Vec<Variation<'_>, VARIATIONS> = heapless::Vec::new();
        let mut ends: heapless::Vec<[usize; 2], PLACES> = heapless::Vec::new();
        for entry in &self.entries {
            let kept = self.operands_of(entry);
            fill(&mut args, &entry.call.head, kept.iter().map(|kept| &kept.given));
            if self.times_of(entry) > 1 {
                vary(&mut varies, kept);
            }
            // There is room for as many as there are entries.
            let _ = ends.push([args.len(), varies.len()]);
        }
        let mut links: heapless::Vec<Link<'_>, PLACES> = heapless::Vec::new();
        let mut begins = [0; 2];
        for (entry, &end) in self.entries.iter().zip(&ends) {
            let KernelEntry { func, kind, .. } = entry.call.kernel;
            let args = args.get(begins[0]..end[0]).unwrap_or(&[]);
            let varies = varies.get(begins[1]..end[1]).unwrap_or(&[]);
            let link = Link::on_tensors(func, kind, args).times(self.times_of(entry));
            let takes_turns = self.turns > 1 && links.len() + 1 < self.entries.len();
            let link = if takes_turns { link.with_next() } else { link };
            // As above.
            let _ = links.push(link.varying(varies));
            begins = end;
        }
        stream.submit_chain(&Chain::new(&links), &[]).map(drop)
    }

    const fn times_of(&self, entry: &Entry) -> u32 {
        if self.turns > 1 { self.turns } else { entry.times }
    }
}
