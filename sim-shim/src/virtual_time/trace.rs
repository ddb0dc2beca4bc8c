//! What happened in a run: events with virtual times, their hash, and as many of them as one wants to keep.
//!
//! The hash covers every event in the order in which the machine made them: times, kinds, agents and task
//! slots. No address, no wall clock and no iteration order of a hash map is in it, so it is the same on every
//! machine.

/// What happened to a task, or to the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EventKind {
    /// The builder made the task visible; agent: the instance.
    Published = 1,
    /// Its last producer was completed, or it had none; agent: the instance.
    Ready = 2,
    /// The task's doorbell was rung; agent: the worker.
    Dispatched = 3,
    /// The task's kernel started; agent: the worker.
    Started = 4,
    /// The task's kernel ended; agent: the worker.
    Finished = 5,
    /// The scheduler saw the report and released the consumers; agent: the instance.
    Completed = 6,
    /// A core answered the greeting; agent: the worker, task: the bring-up epoch.
    Answered = 7,
    /// A core left its loop; agent: the worker.
    Left = 8,
    /// An instance returned; agent: the instance, task: the fault's code.
    Returned = 9,
    /// A fault was injected; agent: the worker or instance concerned.
    Injected = 10,
    /// Its predicate is false, and it is complete without having run; agent: the instance.
    Skipped = 11,
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Virtual time, in nanoseconds from the launch.
    pub time_ns: u64,
    /// Slot of the task, as far as there is one.
    pub task: u32,
    /// The worker or the AICPU instance, as the kind says.
    pub agent: u16,
    /// What happened.
    pub kind: EventKind,
}

/// Which events are kept, in addition to their hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// None.
    #[default]
    Hash,
    /// The first ones, as many as this; further ones are counted.
    Events(u32),
}

/// The trace of one run.
#[derive(Clone, Debug)]
pub(super) struct EventTrace {
    hash: u64,
    keep: usize,
    events: Vec<Event>,
    dropped: u64,
    injections: u32,
}

impl EventTrace {
    pub(super) const fn new(keep: Keep) -> Self {
        let keep = match keep {
            Keep::Hash => 0,
            Keep::Events(count) => count as usize,
        };
        Self { hash: 0xCBF2_9CE4_8422_2325, keep, events: Vec::new(), dropped: 0, injections: 0 }
    }

    #[inline]
    pub(super) fn add(&mut self, time_ns: u64, kind: EventKind, agent: usize, task: u32) {
        self.injections += u32::from(kind == EventKind::Injected);
        let agent = u16::try_from(agent).unwrap_or(u16::MAX);
        let what = u64::from(kind as u8) << 48 | u64::from(agent) << 32 | u64::from(task);
        self.hash = fold(fold(self.hash, time_ns), what);
        if self.events.len() < self.keep {
            self.events.push(Event { time_ns, task, agent, kind });
        } else {
            self.dropped += 1;
        }
    }

    /// How often a fault was injected.
    pub(super) const fn injections(&self) -> u32 {
        self.injections
    }

    pub(super) const fn hash(&self) -> u64 {
        self.hash
    }

    /// The events that were kept, and how many were not although some were asked for.
    pub(super) fn take(&mut self) -> (Vec<Event>, u64) {
        let dropped = if self.keep == 0 { 0 } else { self.dropped };
        (std::mem::take(&mut self.events), dropped)
    }
}

/// A multiplication and a rotation a word: differences spread over all bits within a few words. Each step is a bijection of the hash, so that runs which differ in one word have
/// different hashes. Others have the same one in a chance of 2^-64; the hash is reported and compared in tests, and nothing goes by it.
#[inline]
const fn fold(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
}

#[cfg(test)]
mod tests {
    use super::{EventKind, EventTrace, Keep};

    #[test]
    fn the_hash_sees_every_field_and_the_order() {
        let hash = |events: &[(u64, EventKind, usize, u32)]| {
            let mut trace = EventTrace::new(Keep::Hash);
            events
                .iter()
                .for_each(|(time, kind, agent, task)| trace.add(*time, *kind, *agent, *task));
            trace.hash()
        };
        let (a, b) = ((5, EventKind::Ready, 1, 2), (6, EventKind::Started, 3, 2));
        let base = hash(&[a, b]);
        let others = [
            hash(&[b, a]),
            hash(&[a]),
            hash(&[(6, a.1, 1, 2), b]),
            hash(&[(5, EventKind::Published, 1, 2), b]),
            hash(&[(5, a.1, 2, 2), b]),
            hash(&[(5, a.1, 1, 3), b]),
        ];
        assert!(others.iter().all(|other| *other != base));
        assert_eq!(hash(&[a, b]), base);
    }

    #[test]
    fn what_is_not_kept_is_counted() {
        let mut trace = EventTrace::new(Keep::Events(2));
        (0..5).for_each(|task| trace.add(0, EventKind::Ready, 0, task));
        let (events, dropped) = trace.take();
        assert_eq!((events.len(), dropped), (2, 3));
        let mut trace = EventTrace::new(Keep::Hash);
        trace.add(0, EventKind::Ready, 0, 0);
        assert_eq!(trace.take().1, 0);
    }
}
