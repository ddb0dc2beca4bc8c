//! The book of tasks: the state of each task, and what the checkers and the report need to know of it. 24 bytes a
//! task, indexed by slot; nothing of that grows with time. Of a streaming program it also follows the paths of tasks that have
//! retired (`paths.rs`), which grow by some 30 bytes a task.
//!
//! Checked here, on every run: each task is published, dispatched, started, finished and completed once and in
//! that order (*exactly once*); a task is dispatched only when all producers that it has edges from were
//! completed before (*edge order*).
//!
//! Why it is so: `docs/decisions/virtual-time-costs.md`.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};

use super::paths::{Paths, TensorAccess};

/// What was violated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invariant {
    /// A task went through a stage twice, or not in order.
    ExactlyOnce,
    /// A task was dispatched before a producer was completed.
    EdgeOrder,
    /// A doorbell was rung for a core that was not free.
    FreeCore,
    /// Two agents wrote one line, or one read a line that its writer had not written back.
    LineOwnership,
    /// A run without a fault left a task that is not completed, or a core that is occupied.
    Termination,
    /// A queue of the machine grew beyond its bound.
    BoundedMemory,
    /// Parts that start together did not, or were not in one cluster.
    Together,
    /// A task ran against its predicate, or did not run against it.
    Predicate,
    /// A core went to a task while one that comes first waited for it.
    Priority,
}

/// Something that must never happen, and when it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What was violated.
    pub rule: Invariant,
    /// When, in virtual nanoseconds.
    pub time_ns: u64,
    /// The task, or `u32::MAX`.
    pub task: u32,
    /// The worker or the other task concerned, or `u32::MAX`.
    pub other: u32,
    /// In words.
    pub what: &'static str,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, time_ns, task, other, what } = self;
        write!(f, "{rule:?} at {time_ns} ns: task {task}: {what} ({other})")
    }
}

/// What tasks waited for, summed over all of them, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Ready, and not dispatched.
    pub dispatch_ns: u64,
    /// Dispatched, and its kernel not started.
    pub start_ns: u64,
    /// Its kernel has ended, and the scheduler has not completed it.
    pub report_ns: u64,
}

/// How far a task is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub(super) enum TaskPhase {
    #[default]
    Absent,
    Published,
    Dispatched,
    Running,
    Finished,
    Completed,
}

/// One task.
#[derive(Clone, Copy, Debug, Default, Hash)]
struct Page {
    /// When it became ready; then, when it was dispatched; then, when its kernel ended.
    since_ns: u64,
    /// Until it has run: the longest path of kernels before it. Then: that path with its own kernel.
    path_ns: u64,
    /// Edges to it whose producer has been completed while they stood.
    released: u32,
    phase: TaskPhase,
    is_ready: bool,
    /// The instance that touched its line last, in whose cache the line is; 0: the builder's, until another one touches it.
    line_in: u8,
}

/// Violations that are kept; further ones are counted.
const KEPT: usize = 16;

#[derive(Default)]
pub(super) struct Ledger {
    pages: Vec<Page>,
    violations: Vec<Violation>,
    violation_count: u64,
    pub(super) waits: Waits,
    pub(super) published: u64,
    pub(super) completed: u64,
    pub(super) longest_path_ns: u64,
    /// The number of kernels of each chain that is in a slot.
    chains: BTreeMap<u32, u64>,
    /// Kernels of chains, without the first of each.
    pub(super) chained: u64,
    /// Of a streaming program, outside searches.
    paths: Option<Paths>,
    pub(super) first_ready_ns: Option<u64>,
    pub(super) last_completed_ns: u64,
}

impl Ledger {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// A book of a streaming program: producers retire, and paths lead on.
    pub(super) fn following_paths() -> Self {
        Self { paths: Some(Paths::default()), ..Self::default() }
    }

    /// From now on paths go along the edges that were added alone.
    pub(super) fn forget_paths(&mut self) {
        self.paths = None;
    }

    /// Hashes where each task is.
    pub(super) fn hash_state(&self, into: &mut impl Hasher) {
        (&self.pages, self.published, self.completed, self.violation_count).hash(into);
    }

    #[inline]
    fn page(&mut self, slot: u32) -> &mut Page {
        let at = slot as usize;
        if at >= self.pages.len() {
            self.pages.resize((at + 1).next_power_of_two().max(64), Page::default());
        }
        &mut self.pages[at]
    }

    #[cold]
    pub(super) fn violate(&mut self, violation: Violation) {
        self.violation_count += 1;
        if self.violations.len() < KEPT {
            self.violations.push(violation);
        }
    }

    pub(super) fn take_violations(&mut self) -> (Vec<Violation>, u64) {
        (std::mem::take(&mut self.violations), self.violation_count)
    }

    /// A new task is in `slot`, whose last one is over.
    pub(super) fn reuse(&mut self, slot: u32) {
        let page = self.page(slot);
        if page.phase == TaskPhase::Completed {
            *page = Page::default();
        }
    }

    /// Moves a task from one phase to the next.
    #[inline]
    fn advance(&mut self, slot: u32, time_ns: u64, to: TaskPhase, what: &'static str) {
        let page = self.page(slot);
        if page.phase as u8 + 1 == to as u8 {
            page.phase = to;
            return;
        }
        page.phase = to.max(page.phase);
        let rule = Invariant::ExactlyOnce;
        self.violate(Violation { rule, time_ns, task: slot, other: u32::MAX, what });
    }

    /// An edge whose producer had been completed when it was added.
    pub(super) fn satisfied(&mut self, producer: u32, consumer: u32, time_ns: u64) {
        let before = *self.page(producer);
        if before.phase != TaskPhase::Completed {
            let (task, what) =
                (consumer, "an edge counts as satisfied before its producer is done");
            let rule = Invariant::EdgeOrder;
            self.violate(Violation { rule, time_ns, task, other: producer, what });
        }
        let page = self.page(consumer);
        page.path_ns = page.path_ns.max(before.path_ns);
    }

    /// The program has added a task.
    pub(super) fn added(&mut self, slot: u32, generation: u32) {
        if let Some(paths) = &mut self.paths {
            paths.add(slot, generation);
        }
    }

    /// Whether no other task was added to the slot after the one of this generation; only a streaming program is asked.
    pub(super) fn was_last_in(&self, slot: u32, generation: u32) -> bool {
        self.paths.as_ref().is_some_and(|paths| paths.was_last_in(slot, generation))
    }

    /// Whether the task in this slot is completed.
    pub(super) fn sees_completed(&mut self, slot: u32) -> bool {
        self.page(slot).phase == TaskPhase::Completed
    }

    /// A task that is not published yet accesses a tensor: it comes after those that it conflicts with.
    pub(super) fn accessed(&mut self, slot: u32, access: &TensorAccess) {
        let Some(paths) = &mut self.paths else { return };
        let path_ns = paths.access(slot, access);
        self.lengthen(slot, path_ns);
    }

    /// A task that is not published yet comes after another one, which may have retired.
    pub(super) fn after_retired(&mut self, slot: u32, producer: (u32, u32)) {
        let Some(paths) = &self.paths else { return };
        let path_ns = paths.after(producer.0, producer.1);
        self.lengthen(slot, path_ns);
    }

    /// A task that is not published yet comes after another one, which has been completed, and whose slot is its own still.
    pub(super) fn carry(&mut self, producer: u32, consumer: u32) {
        if self.paths.is_some() {
            let path_ns = self.page(producer).path_ns;
            self.lengthen(consumer, path_ns);
        }
    }

    fn lengthen(&mut self, slot: u32, path_ns: u64) {
        let page = self.page(slot);
        page.path_ns = page.path_ns.max(path_ns);
    }

    /// `edges_in`: edges that the task waits for. Whether it is ready at once.
    pub(super) fn publish(&mut self, slot: u32, time_ns: u64, edges_in: u32) -> bool {
        self.advance(slot, time_ns, TaskPhase::Published, "published twice");
        self.published += 1;
        self.make_ready(slot, time_ns, edges_in)
    }

    /// One producer of `consumer` has been completed. Whether the consumer is ready by that.
    #[inline]
    pub(super) fn release(
        &mut self,
        producer: u32,
        consumer: u32,
        now: u64,
        edges_in: u32,
    ) -> bool {
        let path_ns = self.page(producer).path_ns;
        let page = self.page(consumer);
        page.released += 1;
        page.path_ns = page.path_ns.max(path_ns);
        page.phase >= TaskPhase::Published && self.make_ready(consumer, now, edges_in)
    }

    #[inline]
    fn make_ready(&mut self, slot: u32, now: u64, edges_in: u32) -> bool {
        let page = self.page(slot);
        if page.released != edges_in || page.is_ready {
            return false;
        }
        page.is_ready = true;
        page.since_ns = now;
        self.first_ready_ns.get_or_insert(now);
        true
    }

    /// How long the task was where it was, as it goes on at `time_ns`.
    #[inline]
    fn turn_page(&mut self, slot: u32, time_ns: u64) -> u64 {
        let page = self.page(slot);
        let waited_ns = time_ns.saturating_sub(page.since_ns);
        page.since_ns = time_ns;
        waited_ns
    }

    /// When the task became ready: it cannot be dispatched earlier.
    #[inline]
    pub(super) fn ready_ns(&mut self, slot: u32) -> u64 {
        let page = self.page(slot);
        if page.phase <= TaskPhase::Published { page.since_ns } else { 0 }
    }

    /// An instance touches the line of a task: whether that is in its cache already, where it is from now on.
    #[inline]
    pub(super) fn touch(&mut self, slot: u32, instance: usize) -> bool {
        let line_in = &mut self.page(slot).line_in;
        let before = std::mem::replace(line_in, u8::try_from(instance).unwrap_or(u8::MAX));
        before == *line_in
    }

    #[inline]
    pub(super) fn dispatch(&mut self, slot: u32, time_ns: u64) {
        self.advance(
            slot,
            time_ns,
            TaskPhase::Dispatched,
            "dispatched twice, or before its publish",
        );
        self.waits.dispatch_ns += self.turn_page(slot, time_ns);
        if !self.page(slot).is_ready {
            let (rule, what) =
                (Invariant::EdgeOrder, "dispatched before its producers were completed");
            self.violate(Violation { rule, time_ns, task: slot, other: u32::MAX, what });
        }
    }

    #[inline]
    pub(super) fn start(&mut self, slot: u32, time_ns: u64) {
        self.advance(slot, time_ns, TaskPhase::Running, "started twice");
        self.waits.start_ns += self.turn_page(slot, time_ns);
    }

    #[inline]
    pub(super) fn finish(&mut self, slot: u32, time_ns: u64, cost_ns: u64) {
        self.advance(slot, time_ns, TaskPhase::Finished, "finished twice");
        let page = self.page(slot);
        page.since_ns = time_ns;
        page.path_ns += cost_ns;
        let path_ns = page.path_ns;
        self.longest_path_ns = self.longest_path_ns.max(path_ns);
        if let Some(paths) = &mut self.paths {
            paths.end(slot, path_ns);
        }
    }

    #[inline]
    pub(super) fn complete(&mut self, slot: u32, time_ns: u64) {
        if self.page(slot).phase == TaskPhase::Finished && time_ns < self.page(slot).since_ns {
            let (rule, what) = (Invariant::ExactlyOnce, "completed before its kernel had ended");
            self.violate(Violation { rule, time_ns, task: slot, other: u32::MAX, what });
        }
        self.advance(slot, time_ns, TaskPhase::Completed, "completed twice, or before it finished");
        self.waits.report_ns += self.turn_page(slot, time_ns);
        self.completed += 1;
        self.last_completed_ns = self.last_completed_ns.max(time_ns);
    }

    /// The task's predicate is false: it is complete, without having run.
    pub(super) fn skip(&mut self, slot: u32, time_ns: u64) {
        let page = self.page(slot);
        let (is_ready, phase, path_ns) = (page.is_ready, page.phase, page.path_ns);
        page.phase = TaskPhase::Completed;
        if let Some(paths) = &mut self.paths {
            paths.end(slot, path_ns);
        }
        self.completed += 1;
        self.last_completed_ns = self.last_completed_ns.max(time_ns);
        if phase != TaskPhase::Published {
            let (rule, what) = (Invariant::ExactlyOnce, "skipped twice, or after it has run");
            self.violate(Violation { rule, time_ns, task: slot, other: u32::MAX, what });
        } else if !is_ready {
            let (rule, what) =
                (Invariant::EdgeOrder, "skipped before its producers were completed");
            self.violate(Violation { rule, time_ns, task: slot, other: u32::MAX, what });
        }
    }

    /// The program has added a chain of this many kernels.
    pub(super) fn chain_added(&mut self, slot: u32, kernels: u64) {
        self.chains.insert(slot, kernels);
        self.chained += kernels.saturating_sub(1);
    }

    /// A core is through with a chain, of which it has run so many kernels.
    pub(super) fn chain_has_run(&mut self, slot: u32, kernels: u64, time_ns: u64) {
        if self.chains.get(&slot) != Some(&kernels) {
            let (rule, what) =
                (Invariant::ExactlyOnce, "a core ran another number of the chain's kernels");
            let other = u32::try_from(kernels).unwrap_or(u32::MAX);
            self.violate(Violation { rule, time_ns, task: slot, other, what });
        }
    }

    /// After a run without a fault: every task that was published is completed.
    pub(super) fn check_end(&mut self, time_ns: u64) {
        let left = self.pages.iter().zip(0_u32..);
        let left = left
            .filter(|(page, _)| !matches!(page.phase, TaskPhase::Absent | TaskPhase::Completed));
        if let Some((_, task)) = left.min_by_key(|(_, slot)| *slot) {
            let (rule, what) =
                (Invariant::Termination, "the run ended, and the task is not completed");
            self.violate(Violation { rule, time_ns, task, other: u32::MAX, what });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Invariant, Ledger};

    fn run(ledger: &mut Ledger, slot: u32, at: u64, cost: u64) {
        ledger.dispatch(slot, at);
        ledger.start(slot, at);
        ledger.finish(slot, at + cost, cost);
        ledger.complete(slot, at + cost);
    }

    fn rules(mut ledger: Ledger) -> Vec<Invariant> {
        ledger.take_violations().0.iter().map(|violation| violation.rule).collect()
    }

    #[test]
    fn a_proper_life_and_its_critical_path() {
        let mut ledger = Ledger::new();
        assert!(ledger.publish(0, 1, 0) && ledger.publish(1, 1, 0) && !ledger.publish(2, 2, 2));
        run(&mut ledger, 0, 5, 10);
        assert!(!ledger.release(0, 2, 15, 2));
        run(&mut ledger, 1, 5, 30);
        assert!(ledger.release(1, 2, 36, 2));
        assert_eq!(ledger.ready_ns(2), 36);
        run(&mut ledger, 2, 36, 7);
        ledger.satisfied(2, 3, 60);
        assert!(ledger.publish(3, 60, 0));
        run(&mut ledger, 3, 61, 1);
        ledger.check_end(70);
        assert_eq!((ledger.longest_path_ns, ledger.first_ready_ns), (38, Some(1)));
        assert_eq!((ledger.published, ledger.completed), (4, 4));
        assert_eq!(rules(ledger), []);
    }

    #[test]
    fn a_line_is_in_the_cache_of_who_touched_it_last() {
        let mut ledger = Ledger::new();
        ledger.publish(3, 0, 0);
        let touched = [0, 1, 1, 2, 1, 0].map(|instance| ledger.touch(3, instance));
        assert_eq!(touched, [true, false, true, false, false, false], "the builder wrote it");
        run(&mut ledger, 3, 1, 1);
        assert!(!ledger.touch(3, 2));
        ledger.reuse(3);
        assert!(ledger.touch(3, 0), "the builder has written the next task there");
    }

    #[test]
    fn each_rule_can_be_violated() {
        let mut twice = Ledger::new();
        twice.publish(0, 0, 0);
        run(&mut twice, 0, 0, 1);
        twice.dispatch(0, 9);
        assert_eq!(rules(twice), [Invariant::ExactlyOnce]);
        let mut early = Ledger::new();
        early.publish(0, 0, 1);
        early.dispatch(0, 1);
        assert_eq!(rules(early), [Invariant::EdgeOrder]);
        let mut wrongly_satisfied = Ledger::new();
        wrongly_satisfied.publish(0, 0, 0);
        wrongly_satisfied.satisfied(0, 1, 0);
        assert_eq!(rules(wrongly_satisfied), [Invariant::EdgeOrder]);
        let mut lost = Ledger::new();
        lost.publish(0, 0, 0);
        lost.check_end(5);
        assert_eq!(rules(lost), [Invariant::Termination]);
    }
}
