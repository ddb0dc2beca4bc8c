//! The grain: calls of one kernel that follow each other are put together into one dispatch, which one core runs as a [`Chain`].
//!
//! ```text
//! a call --joins--> the run before it          same place in the plan, and each of its words is one step further
//!        --begins--> a run of its own          the run before it is submitted (Walk::release)
//!        --> a task of its own                 it would be alone: its work is large, or the cores need all calls
//! ```
//! A run is submitted when it has as many calls as [`Measure::most`] says, when another call does not join it, and before anybody
//! waits for a tensor. Invariants: a run has its calls in program order, and no call stands between them, so that a chain waits for
//! nothing that comes after it; every call of a run has tiles that stay in their dimensions; the words of a run fit those of a chain.

use pto_abi::chain::{MAX_CHAIN_ARGS, MAX_CHAIN_KERNELS, MAX_CHAIN_STEP};
use pto_abi::fault::Fault;

use super::accept::KernelEntry;
use super::operand::{Args, Given, Operand, fill};
use super::task;
use crate::builder::GraphBuilder;
use crate::chain::Chain;
use crate::link::{Link, Variation};
use crate::stream::StreamBuilder;
use crate::tensor_task::TensorTask;

/// Work beside which a dispatch costs little. On the profile a2a3 a dispatch costs 2 to 3 us of a builder, a scheduler and a core
/// (docs/decisions/0220).
const ENOUGH_NS: u64 = 20_000;

/// What a core needs from one kernel of a chain to the next, there.
const LINK_NS: u64 = 250;

/// The largest difference of a word from call to call.
const LONGEST_STEP: u64 = MAX_CHAIN_STEP.unsigned_abs();

/// Operands of a kernel that can be in a chain.
const OPERANDS: usize = MAX_CHAIN_ARGS - task::PARAMS;

/// No place of a plan.
const NOWHERE: usize = usize::MAX;

/// Kernels of a chain.
const MOST: u64 = MAX_CHAIN_KERNELS as u64;

/// What decides how many calls belong together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measure {
    /// As the bindings say it: 0 leaves the choice to this.
    pub(super) asked: u64,
    /// Nanoseconds of the kernel; 0: nobody knows.
    pub(super) cost_ns: u64,
    /// Iterations of the loops around the call that may run side by side.
    pub(super) width: u64,
    pub(super) cores: u64,
}

impl Measure {
    /// How many calls one dispatch has at most. Calls that are one after the other in any case take no core from each other;
    /// of others each core is to have one dispatch at least.
    #[must_use]
    pub(super) fn most(self, is_sequence: bool) -> u64 {
        if self.asked > 0 || self.cost_ns == 0 {
            return self.asked.clamp(1, MOST);
        }
        let enough = ENOUGH_NS.checked_div(self.cost_ns.saturating_add(LINK_NS)).unwrap_or(1);
        let share = self.width.checked_div(self.cores).unwrap_or(self.width);
        if is_sequence { enough.max(1) } else { enough.min(share).max(1) }
    }
}

/// An operand of a run.
struct Kept {
    /// As the first call has it.
    given: Given,
    /// Bytes of an element of a tile.
    element_bytes: i64,
    /// What varies from call to call: the first element of a tile, or a word.
    last: u64,
    step: i64,
}

impl Kept {
    /// What varies of an operand, if it goes on with this one: a tile of the same tensor, of which as much counts.
    #[inline]
    fn follow(&self, operand: &Operand<'_>) -> Option<u64> {
        match (&self.given, operand) {
            (Given::Tile(_, tile), Operand::View(view)) => {
                (tile.sides == view.sides() && view.is_regular()).then(|| view.first())
            }
            (Given::Word(_), Operand::Word(word)) => Some(*word),
            _ => None,
        }
    }

    /// The step to what comes next; `None`: it is no step of a chain.
    #[inline]
    fn step_to(&self, next: u64) -> Option<i64> {
        let step = next.wrapping_sub(self.last).cast_signed();
        self.can_step(step).then_some(step)
    }

    #[inline]
    fn can_step(&self, step: i64) -> bool {
        let bytes = step.checked_mul(self.element_bytes);
        bytes.is_some_and(|bytes| bytes.unsigned_abs() <= LONGEST_STEP)
    }
}

/// Calls that were put together and wait for more.
pub(super) struct Run {
    /// The call in the plan.
    at: usize,
    kernel: KernelEntry,
    head: [u64; task::PARAMS],
    operands: heapless::Vec<Kept, OPERANDS>,
    measure: Measure,
    /// Zero: there is no run; the operands are those of the last call at its place, unless they were forgotten.
    times: u32,
}

impl Run {
    /// No call.
    pub(super) const fn new() -> Self {
        let measure = Measure { asked: 0, cost_ns: 0, width: 0, cores: 0 };
        let (kernel, head) = (KernelEntry::NONE, [0; task::PARAMS]);
        Self { at: NOWHERE, kernel, head, operands: heapless::Vec::new(), measure, times: 0 }
    }

    /// Where its calls stand in the plan.
    pub(super) const fn at(&self) -> usize {
        self.at
    }

    /// Whether a call can be in a run: its tiles stay in their dimensions, and a chain has room for its words.
    pub(super) fn can_hold(operands: &[Operand<'_>]) -> bool {
        let words = |operand: &Operand<'_>| match operand {
            Operand::View(view) => view.is_regular().then_some(task::TENSOR_WORDS),
            Operand::Word(_) => Some(1),
        };
        let words = operands.iter().map(words).sum::<Option<usize>>();
        words.is_some_and(|words| Self::has_room(task::PARAMS + words))
    }

    /// Whether a chain has room for the words of a call.
    pub(super) const fn has_room(words: usize) -> bool {
        words <= MAX_CHAIN_ARGS
    }

    /// Begins with a call that [can be](Self::can_hold) in a run; the run before it was submitted.
    pub(super) fn begin(
        &mut self,
        (at, kernel, head): (usize, KernelEntry, [u64; task::PARAMS]),
        (operands, given): (&[Operand<'_>], &[Given]),
        measure: Measure,
    ) {
        (self.at, self.kernel, self.head) = (at, kernel, head);
        (self.measure, self.times) = (measure, 1);
        self.operands.clear();
        for (operand, given) in operands.iter().zip(given) {
            let (element_bytes, last) = match operand {
                Operand::View(view) => (view.element_bytes().cast_signed(), view.first()),
                Operand::Word(word) => (1, *word),
            };
            // There is room for as many as fit a chain.
            let _ = self.operands.push(Kept { given: *given, element_bytes, last, step: 0 });
        }
    }

    /// The last call was submitted by somebody else.
    pub(super) fn forget(&mut self) {
        (self.at, self.times) = (NOWHERE, 0);
    }

    /// Whether the last call stands at this place, so that others can [go on](Self::go_on) from it.
    pub(super) const fn is_kept(&self, at: usize) -> bool {
        self.at == at
    }

    /// Makes `left` calls more, each of which moves its operands by these steps, and stays as regular as the last one; `left` counts down when
    /// a call is reached. `is_alone`: each call is a task of its own.
    pub(super) fn go_on<G: StreamBuilder>(
        &mut self,
        stream: &mut G,
        (steps, is_alone): (&[i64], bool),
        left: &mut u64,
    ) -> Result<(), Fault> {
        let most = self.most_by(steps);
        let mut goes_on = self.times == 1 || self.has_steps(steps);
        while *left > 0 {
            let room = most.saturating_sub(self.times.into()).min(*left);
            if self.times > 0 && goes_on && room > 0 {
                self.extend(steps, room);
                *left -= room;
                continue;
            }
            *left -= 1;
            self.submit(stream)?;
            self.begin_again(steps);
            goes_on = true;
            if is_alone {
                self.submit(stream)?;
            }
        }
        Ok(())
    }

    /// How many calls a run has at most that move by these steps.
    fn most_by(&self, steps: &[i64]) -> u64 {
        let (mut is_sequence, mut fits) = (true, true);
        for (kept, step) in self.operands.iter().zip(steps) {
            is_sequence &= !kept.given.is_written() || *step == 0;
            fits &= kept.can_step(*step);
        }
        if fits { self.measure.most(is_sequence) } else { 1 }
    }

    fn has_steps(&self, steps: &[i64]) -> bool {
        self.operands.iter().zip(steps).all(|(kept, step)| kept.step == *step)
    }

    /// Takes so many calls in, of which each moves by these steps.
    fn extend(&mut self, steps: &[i64], count: u64) {
        for (kept, step) in self.operands.iter_mut().zip(steps) {
            let moved = step.cast_unsigned().wrapping_mul(count);
            (kept.step, kept.last) = (*step, kept.last.wrapping_add(moved));
        }
        self.times = self.times.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
    }

    /// Begins with the call after the last one; the run before it was submitted.
    #[inline]
    fn begin_again(&mut self, steps: &[i64]) {
        for (kept, step) in self.operands.iter_mut().zip(steps) {
            kept.last = kept.last.wrapping_add(step.cast_unsigned());
            kept.given.move_to(kept.last);
        }
        self.times = 1;
    }

    /// Takes a call in if it goes on as the run does; `false`: it does not, and nothing has changed.
    #[inline]
    pub(super) fn join(&mut self, at: usize, operands: &[Operand<'_>]) -> bool {
        if self.times == 0 || at != self.at || !self.goes_on(operands) {
            return false;
        }
        for (kept, operand) in self.operands.iter_mut().zip(operands) {
            let next = operand.place();
            kept.step = next.wrapping_sub(kept.last).cast_signed();
            kept.last = next;
        }
        self.times += 1;
        true
    }

    #[inline]
    fn goes_on(&self, operands: &[Operand<'_>]) -> bool {
        let mut is_sequence = true;
        for (kept, operand) in self.operands.iter().zip(operands) {
            let step = kept.follow(operand).and_then(|next| kept.step_to(next));
            let Some(step) = step.filter(|step| self.times == 1 || *step == kept.step) else {
                return false;
            };
            is_sequence &= !kept.given.is_written() || step == 0;
        }
        u64::from(self.times) < self.measure.most(is_sequence)
    }

    /// Submits what there is, and is empty then.
    pub(super) fn submit<G: StreamBuilder>(&mut self, stream: &mut G) -> Result<(), Fault> {
        let times = core::mem::take(&mut self.times);
        if times == 0 {
            return Ok(());
        }
        let mut args = Args::new();
        fill(&mut args, &self.head, self.operands.iter().map(|kept| &kept.given));
        let KernelEntry { func, kind, .. } = self.kernel;
        if times == 1 {
            return stream.submit_tensors(&TensorTask::new(func, kind, &args)).map(drop);
        }
        let varies = self.variations();
        let links = [Link::on_tensors(func, kind, &args).times(times).varying(&varies)];
        submit_chain(stream, &links)
    }

    /// What grows from call to call.
    fn variations(&self) -> heapless::Vec<Variation<'static>, MAX_CHAIN_ARGS> {
        let mut varies = heapless::Vec::new();
        let mut at = task::PARAMS;
        for kept in self.operands.iter() {
            // A tile is its address, and its first element. A step in bytes fits, as `step_to` has seen.
            let steps = match kept.given {
                Given::Tile(..) => [kept.step.wrapping_mul(kept.element_bytes), kept.step],
                Given::Word(_) => [kept.step, 0],
            };
            for (place, step) in (at..).zip(steps).filter(|(_, step)| *step != 0) {
                // There is room for as many as a chain has arguments.
                let _ = varies.push(Variation::by(place, step));
            }
            at += kept.given.args();
        }
        varies
    }
}

// Not inlined: a chain is rarer than the calls in it.
#[inline(never)]
fn submit_chain<G: GraphBuilder>(stream: &mut G, links: &[Link<'_>]) -> Result<(), Fault> {
    stream.submit_chain(&Chain::new(links), &[]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::{ENOUGH_NS, LINK_NS, MOST, Measure};

    const fn measure(asked: u64, cost_ns: u64, width: u64) -> Measure {
        Measure { asked, cost_ns, width, cores: 72 }
    }

    #[test]
    fn each_core_has_a_dispatch_and_no_dispatch_is_longer_than_it_must() {
        let enough = ENOUGH_NS / (LINK_NS + 50);
        for (measured, alone, in_sequence) in [
            (measure(0, 50, 72 * 1000), enough, enough),
            (measure(0, 50, 72 * 3 + 71), 3, enough),
            (measure(0, 50, 71), 1, enough),
            (measure(0, ENOUGH_NS * 2 / 3, 72 * 1000), 1, 1),
            (measure(0, 0, 72 * 1000), 1, 1),
            (measure(1, 50, 72 * 1000), 1, 1),
            (measure(9, 0, 1), 9, 9),
            (measure(u64::MAX, 50, 1), MOST, MOST),
            (measure(0, u64::MAX, u64::MAX), 1, 1),
        ] {
            assert_eq!(
                (measured.most(false), measured.most(true)),
                (alone, in_sequence),
                "{measured:?}"
            );
        }
    }
}
