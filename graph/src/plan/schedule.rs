//! The schedule of a plan: which tasks wait for each other though their tiles do not say so.
//!
//! - A **lane** is a share of the cores: with `W` lanes on `C` cores, at most `C / W` tasks of a lane are under way (one, where its
//!   tasks are in order). The scheduler chooses the cores; task `n` of a lane waits for task `n - C / W` of it.
//! - Tasks that are **held** are published together: a batch, or all those before the first one may start.
//!
//! Both are bounded: the memory does not depend on the number of tasks.

use pto_abi::fault::Fault;
use pto_abi::ids::TaskId;

use super::cursor::Cursor;
use super::expression::eval;
use super::layout::{limits, node, schedule};
use super::stop::Stop;
use super::values::Values;
use crate::block_shape::Priority;
use crate::stream::StreamBuilder;

/// What a plan says of its schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Schedule {
    flags: u32,
    lanes: u32,
    batch: u32,
    start: u32,
}

impl Schedule {
    /// The schedule at the cursor, which moves past it; `None`: there is none.
    ///
    /// # Errors
    /// `PLAN_CODE`: an unknown flag. `PLAN_LIMIT`: too many lanes, or more tasks than can be held.
    pub(super) fn accept(cursor: &mut Cursor<'_>) -> Result<Option<Self>, Stop> {
        let (at, mut ahead) = (cursor.at(), *cursor);
        let (code, flags) = ahead.code();
        if code != node::SCHEDULE {
            return Ok(None);
        }
        let [lanes, batch, start] = [ahead.word(), ahead.word(), ahead.word()];
        *cursor = ahead;
        if flags & !schedule::ALL != 0 {
            return Err(Stop::new(Fault::PLAN_CODE, at).detail(flags.into(), schedule::ALL.into()));
        }
        let counts = [(lanes, limits::LANES), (batch, limits::HELD), (start, limits::HELD)];
        match counts.into_iter().find(|(count, most)| *count as usize > *most) {
            None => Ok(Some(Self { flags, lanes, batch, start })),
            Some((count, most)) => {
                Err(Stop::new(Fault::PLAN_LIMIT, at).detail(count.into(), most as u64))
            }
        }
    }

    const fn has(self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Expressions that a task has in addition to its arguments.
    pub(super) const fn expressions(self) -> u32 {
        (self.flags & (schedule::KEY | schedule::PRIORITY)).count_ones()
    }
}

/// What a task is beyond its arguments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    lane: usize,
    pub(super) priority: Priority,
    /// The task that it waits for.
    pub(super) after: Option<TaskId>,
}

/// A schedule at work.
pub(super) struct Pace {
    schedule: Schedule,
    /// Tasks of a lane that may be under way.
    width: usize,
    /// For each lane the last `width` tasks of it.
    last: [Option<TaskId>; limits::LANES],
    /// For each lane, the index of its next task among these.
    next: [u8; limits::LANES],
    turn: usize,
    added: u64,
    held: heapless::Vec<TaskId, { limits::HELD }>,
}

impl Pace {
    /// Before the first task, on a device with this many cores.
    pub(super) fn new(schedule: Schedule, cores: u64) -> Self {
        let lanes = u64::from(schedule.lanes).max(1);
        let share = cores.min(limits::LANES as u64).checked_div(lanes).unwrap_or(1).max(1);
        let width = if schedule.has(schedule::IN_ORDER) { 1 } else { share };
        Self {
            schedule,
            width: usize::try_from(width).unwrap_or(1),
            last: [None; limits::LANES],
            next: [0; limits::LANES],
            turn: 0,
            added: 0,
            held: heapless::Vec::new(),
        }
    }

    /// Reads the schedule of the next task. Its expressions are at the cursor, which moves past them.
    pub(super) fn choose(
        &mut self,
        cursor: &mut Cursor<'_>,
        values: &Values,
    ) -> Result<Choice, Stop> {
        let has_key = self.schedule.has(schedule::KEY);
        let key = if has_key { eval(cursor, values)? } else { self.in_turn() };
        let lane = key.checked_rem(u64::from(self.schedule.lanes)).unwrap_or(0);
        let lane = usize::try_from(lane).unwrap_or(0);
        let priority = if self.schedule.has(schedule::PRIORITY) {
            level(eval(cursor, values)?.cast_signed())
        } else {
            Priority::NORMAL
        };
        let after = self.slot(lane).and_then(|slot| *slot);
        Ok(Choice { lane, priority, after })
    }

    fn in_turn(&mut self) -> u64 {
        let turn = self.turn as u64;
        self.turn = self.turn.wrapping_add(1);
        turn
    }

    /// Where the task is that the next one of a lane waits for; `None`: any number of tasks may be under way.
    fn slot(&mut self, lane: usize) -> Option<&mut Option<TaskId>> {
        // One lane has all cores.
        let is_bound = self.schedule.lanes > 1 || self.schedule.has(schedule::IN_ORDER);
        let next = self.next.get(lane).filter(|_| is_bound)?;
        self.last.get_mut(lane.wrapping_mul(self.width).wrapping_add(usize::from(*next)))
    }

    /// A task was added as chosen: it is published, or held back until enough others are there.
    pub(super) fn added<G: StreamBuilder>(
        &mut self,
        stream: &mut G,
        id: TaskId,
        choice: Choice,
    ) -> Result<(), Fault> {
        if let Some(slot) = self.slot(choice.lane) {
            *slot = Some(id);
        }
        if let Some(next) = self.next.get_mut(choice.lane) {
            let following = usize::from(*next).wrapping_add(1);
            *next = if following < self.width { u8::try_from(following).unwrap_or(0) } else { 0 };
        }
        self.added = self.added.wrapping_add(1);
        // There is room for as many as were accepted.
        let _ = self.held.push(id);
        let wanted = self.schedule.batch.max(1) as usize;
        let is_begun = self.added >= u64::from(self.schedule.start);
        if is_begun && self.held.len() >= wanted { self.release(stream) } else { Ok(()) }
    }

    /// Publishes what is held: before a wait, and at the end.
    pub(super) fn release<G: StreamBuilder>(&mut self, stream: &mut G) -> Result<(), Fault> {
        let published = self.held.iter().try_for_each(|id| stream.publish(*id));
        self.held.clear();
        published
    }
}

/// The level of a priority: the lowest number goes first.
const fn level(number: i64) -> Priority {
    match number {
        ..=0 => Priority::URGENT,
        1 => Priority::HIGH,
        2 => Priority::NORMAL,
        _ => Priority::LOW,
    }
}

#[cfg(test)]
mod tests {
    use super::{Pace, Schedule, level};
    use crate::block_shape::Priority;
    use crate::plan::cursor::Cursor;
    use crate::plan::layout::{node, schedule};
    use pto_abi::fault::Fault;

    fn accepted(flags: u32, counts: [u32; 3]) -> Result<Option<Schedule>, Fault> {
        let words = [node::SCHEDULE | flags << 8, counts[0], counts[1], counts[2]];
        Schedule::accept(&mut Cursor::new(&words, 0)).map_err(|stop| stop.fault)
    }

    #[test]
    fn what_is_too_much_is_refused() {
        assert!(accepted(schedule::ALL, [128, 256, 256]).unwrap().is_some());
        for (flags, counts, fault) in [
            (8, [1, 0, 0], Fault::PLAN_CODE),
            (0, [129, 0, 0], Fault::PLAN_LIMIT),
            (0, [1, 257, 0], Fault::PLAN_LIMIT),
            (0, [1, 0, 257], Fault::PLAN_LIMIT),
        ] {
            assert_eq!(accepted(flags, counts), Err(fault));
        }
        assert_eq!(Schedule::accept(&mut Cursor::new(&[node::EMPTY], 0)), Ok(None));
    }

    #[test]
    fn lanes_share_the_cores() {
        for (flags, lanes, cores, width) in
            [(0, 4, 72, 18), (0, 100, 72, 1), (0, 3, 128, 42), (schedule::IN_ORDER, 4, 72, 1)]
        {
            let schedule = accepted(flags, [lanes, 0, 0]).unwrap().unwrap();
            assert_eq!(Pace::new(schedule, cores).width, width);
        }
    }

    #[test]
    fn the_lowest_number_goes_first() {
        let levels = [i64::MIN, 0, 1, 2, 3, i64::MAX].map(level);
        let [urgent, high, normal, low] =
            [Priority::URGENT, Priority::HIGH, Priority::NORMAL, Priority::LOW];
        assert_eq!(levels, [urgent, urgent, high, normal, low, low]);
    }
}
