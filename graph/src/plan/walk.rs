//! A walk through a plan: what is bound, the values in scope, and the builder that gets the tasks.

use pto_abi::fault::Fault;
use pto_abi::ids::GmAddr;

use super::accept::Plan;
use super::bindings::Bindings;
use super::epitaph;
use super::grain::Run;
use super::layout::limits;
use super::measure::Measure;
use super::schedule::Pace;
use super::stop::Stop;
use super::values::Values;
use crate::stream::StreamBuilder;

/// Turns of loops after which the walk looks whether a tile kernel has faulted.
const TURNS_BETWEEN_LOOKS: u32 = 64;

/// The loops around a node.
#[derive(Clone, Copy)]
pub(super) struct Around {
    /// Iterations that may run side by side; of a ragged or a sparse axis, its rows.
    width: u64,
    /// Whether those of the innermost loop are in order.
    is_in_order: bool,
}

impl Around {
    const ROOT: Self = Self { width: 1, is_in_order: false };
}

/// How loops make their calls. Both ways submit the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Calls {
    /// Many at once, where their operands move by steps.
    Ahead,
    /// Each by its expressions: what the other way is compared with.
    #[cfg(test)]
    ByExpressions,
}

/// See the module.
pub(super) struct Walk<'w, G> {
    pub(super) stream: &'w mut G,
    pub(super) plan: &'w Plan<'w>,
    pub(super) bindings: Bindings,
    pub(super) values: Values,
    /// Loop variables in scope.
    pub(super) vars: u32,
    /// `None`: only tiles order tasks.
    pub(super) pace: Option<Pace>,
    /// Calls that were put together.
    pub(super) run: Run,
    pub(super) calls: Calls,
    around: Around,
    turns: u32,
    /// Whether there was a task since the last look.
    pub(super) has_task: bool,
    /// Turns before the last look that had none.
    idle_turns: u64,
}

impl<'w, G: StreamBuilder> Walk<'w, G> {
    pub(super) fn new(
        stream: &'w mut G,
        plan: &'w Plan<'w>,
        (bindings, values): (Bindings, Values),
        calls: Calls,
    ) -> Self {
        let pace = plan.schedule.map(|schedule| Pace::new(schedule, bindings.cores));
        Self {
            stream,
            plan,
            bindings,
            values,
            vars: 0,
            pace,
            run: Run::new(),
            calls,
            around: Around::ROOT,
            turns: 0,
            has_task: false,
            idle_turns: 0,
        }
    }

    /// A loop begins with this many iterations; what was around it, for [`leave`](Self::leave).
    pub(super) const fn enter(&mut self, iterations: u64, is_in_order: bool) -> Around {
        let before = self.around;
        let width = if is_in_order { 1 } else { iterations };
        self.around = Around { width: before.width.saturating_mul(width), is_in_order };
        before
    }

    /// A loop has ended.
    pub(super) const fn leave(&mut self, before: Around) {
        self.around = before;
        self.run.leave(before.width);
    }

    /// Whether the iterations of the innermost loop are in order.
    pub(super) const fn is_in_order(&self) -> bool {
        self.around.is_in_order
    }

    /// What decides how many calls of a kernel belong together.
    pub(super) fn measure(&self, kernel: u32) -> Measure {
        Measure {
            asked: self.bindings.grain,
            cost_ns: self.bindings.cost_ns(kernel),
            width: self.around.width,
            cores: self.bindings.cores,
        }
    }

    /// Submits what was put together, and publishes the tasks that the schedule holds back. No task waits for them, and at the end none is
    /// left.
    pub(super) fn release(&mut self, at: usize) -> Result<(), Stop> {
        self.run.submit(self.stream).map_err(|fault| Stop::new(fault, self.run.at()))?;
        let Some(pace) = &mut self.pace else { return Ok(()) };
        pace.release(self.stream).map_err(|fault| Stop::new(fault, at))
    }

    /// A turn of a loop begins: now and then [looks](Self::look) around.
    #[inline]
    pub(super) fn turn(&mut self, at: usize) -> Result<(), Stop> {
        self.turns = self.turns.wrapping_add(1);
        if self.turns.is_multiple_of(TURNS_BETWEEN_LOOKS) { self.look(at) } else { Ok(()) }
    }

    /// Turns until the next [look](Self::look).
    pub(super) const fn turns_to_look(&self) -> u64 {
        (TURNS_BETWEEN_LOOKS - self.turns % TURNS_BETWEEN_LOOKS) as u64
    }

    /// So many turns have gone by, each with a task, as many as there are [to the next look](Self::turns_to_look) at most.
    pub(super) fn turned(&mut self, count: u64, at: usize) -> Result<(), Stop> {
        self.has_task = true;
        self.turns = self.turns.wrapping_add(u32::try_from(count).unwrap_or(TURNS_BETWEEN_LOOKS));
        if self.turns.is_multiple_of(TURNS_BETWEEN_LOOKS) { self.look(at) } else { Ok(()) }
    }

    /// Ends the walk if a tile kernel has faulted. Where the turns since the last look had no task, which would have let the others
    /// work, gives way, and ends the walk with the run, or after too many such turns.
    #[cold]
    fn look(&mut self, at: usize) -> Result<(), Stop> {
        let state = self.stream.read_u32(state_of(self.bindings.epitaph));
        if state.map_err(|fault| Stop::new(fault, at))? != 0 {
            return Err(Stop::new(Fault::PLAN_KERNEL, at));
        }
        if core::mem::take(&mut self.has_task) {
            self.idle_turns = 0;
            return Ok(());
        }
        self.idle_turns += u64::from(TURNS_BETWEEN_LOOKS);
        let stopped = |fault| Stop::new(fault, at).detail(self.idle_turns, limits::IDLE_TURNS);
        self.stream.yield_now().map_err(stopped)?;
        if self.idle_turns > limits::IDLE_TURNS { Err(stopped(Fault::PLAN_TURNS)) } else { Ok(()) }
    }

    /// An element of an array, after the element's producers.
    pub(super) fn element(&mut self, array: u32, number: u64, at: usize) -> Result<i32, Stop> {
        let array = self.bindings.array(array);
        let short = Stop::new(Fault::PLAN_ARRAY, at).detail(array.length, number.saturating_add(1));
        if number >= array.length {
            return Err(short);
        }
        let index = u32::try_from(number).map_err(|_| short)?;
        self.release(at)?;
        let word = self.stream.get(&array.view, &[index]).map_err(|fault| Stop::new(fault, at))?;
        let [a, b, c, d, ..] = word.to_le_bytes();
        Ok(i32::from_le_bytes([a, b, c, d]))
    }
}

/// The half of the epitaph's state that is not zero after a fault.
const fn state_of(epitaph: GmAddr) -> GmAddr {
    epitaph.offset(epitaph::STATE as u64 * 8)
}
