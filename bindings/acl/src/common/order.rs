//! Which commands are known to be over when another one begins: vector clocks over the lanes of all devices, and over the host.
//!
//! All threads of the host count as one, because the library does not see how they wait for each other. A clock that has met a wait for something
//! that this library does not see is *blind*: everything after it is taken to be ordered. So races may be missed, and none is
//! made up.

use std::collections::BTreeMap;

/// The number of a lane.
pub(crate) type LaneNumber = u32;

/// How a command uses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryUse {
    Reads,
    Writes,
    /// A kernel has the address: it may read or write, and the range is not known.
    Passes,
}

impl MemoryUse {
    /// Whether two uses of the same bytes need an order.
    fn conflicts(self, other: Self) -> bool {
        // Whether two kernels conflict, only their code says.
        self == Self::Writes || other == Self::Writes
    }

    /// The word for messages.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Reads => "read",
            Self::Writes => "written",
            Self::Passes => "passed to a kernel",
        }
    }
}

/// Bytes that a command uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Touch {
    pub(crate) start: usize,
    pub(crate) bytes: usize,
    pub(crate) how: MemoryUse,
}

impl Touch {
    pub(crate) const fn new(how: MemoryUse, start: usize, bytes: usize) -> Self {
        Self { start, bytes, how }
    }

    fn overlaps(&self, start: usize, bytes: usize) -> bool {
        self.start < start.saturating_add(bytes) && start < self.start.saturating_add(self.bytes)
    }
}

/// How far each lane is known to be.
#[derive(Clone, Debug, Default)]
struct Clock {
    times: BTreeMap<LaneNumber, u64>,
    is_blind: bool,
}

impl Clock {
    fn join(&mut self, other: &Self) {
        for (lane, time) in &other.times {
            let own = self.times.entry(*lane).or_default();
            *own = (*own).max(*time);
        }
        self.is_blind |= other.is_blind;
    }

    fn knows<S>(&self, access: &MemoryAccess<S>) -> bool {
        self.is_blind || self.times.get(&access.lane).is_some_and(|time| *time >= access.time)
    }
}

/// A use of memory by a command, and where the program submitted it.
#[derive(Clone, Debug)]
pub(crate) struct MemoryAccess<S> {
    lane: LaneNumber,
    time: u64,
    pub(crate) touch: Touch,
    pub(crate) site: S,
}

/// What is known of the order of commands.
#[derive(Debug)]
pub(crate) struct HappensBefore<S> {
    host: Clock,
    lanes: BTreeMap<LaneNumber, Clock>,
    /// The clocks of events and notifies, as they were recorded last.
    signals: BTreeMap<usize, Clock>,
    /// What the host does not know to be over.
    accesses: Vec<MemoryAccess<S>>,
}

impl<S: Clone> HappensBefore<S> {
    pub(crate) const fn new() -> Self {
        let host = Clock { times: BTreeMap::new(), is_blind: false };
        Self { host, lanes: BTreeMap::new(), signals: BTreeMap::new(), accesses: Vec::new() }
    }

    /// A command is submitted; what it races with is returned.
    pub(crate) fn submit(
        &mut self,
        lane: LaneNumber,
        touches: &[Touch],
        site: &S,
    ) -> Vec<(Touch, MemoryAccess<S>)> {
        let clock = self.lanes.entry(lane).or_default();
        clock.join(&self.host);
        let time = clock.times.entry(lane).or_default();
        *time += 1;
        let (time, clock) = (*time, clock.clone());
        let mut races = Vec::new();
        for touch in touches {
            races.extend(self.races(touch, &clock).map(|access| (*touch, access.clone())));
            // A lane has its commands in order: the last of several equal ones represents all.
            self.accesses.retain(|access| access.lane != lane || access.touch != *touch);
            let site = site.clone();
            self.accesses.push(MemoryAccess { lane, time, touch: *touch, site });
        }
        races
    }

    /// The host itself uses memory.
    pub(crate) fn host_uses(&self, touch: &Touch) -> Vec<MemoryAccess<S>> {
        self.races(touch, &self.host).cloned().collect()
    }

    fn races<'a>(
        &'a self,
        touch: &'a Touch,
        clock: &'a Clock,
    ) -> impl Iterator<Item = &'a MemoryAccess<S>> {
        self.accesses.iter().filter(move |access| {
            access.touch.overlaps(touch.start, touch.bytes)
                && access.touch.how.conflicts(touch.how)
                && !clock.knows(access)
        })
    }

    /// A lane records an event, or raises a notify.
    pub(crate) fn record(&mut self, lane: LaneNumber, signal: usize) {
        let mut clock = self.host.clone();
        if let Some(own) = self.lanes.get(&lane) {
            clock.join(own);
        }
        self.signals.insert(signal, clock);
    }

    /// A lane waits for the last record. Where there is none, it waits for something that comes later.
    pub(crate) fn wait(&mut self, lane: LaneNumber, signal: usize) {
        let unknown = Clock { is_blind: true, ..Clock::default() };
        let seen = self.signals.get(&signal).cloned().unwrap_or(unknown);
        self.lanes.entry(lane).or_default().join(&seen);
    }

    /// A lane takes a notify: the next wait needs a record of its own.
    pub(crate) fn take(&mut self, lane: LaneNumber, signal: usize) {
        self.wait(lane, signal);
        self.signals.remove(&signal);
    }

    /// A lane waits for something that this library does not see.
    pub(crate) fn wait_for_unknown(&mut self, lane: LaneNumber) {
        self.lanes.entry(lane).or_default().is_blind = true;
    }

    /// The host has seen that everything of a lane is over.
    pub(crate) fn end(&mut self, lane: LaneNumber) {
        let Some(clock) = self.lanes.get_mut(&lane) else { return };
        let seen = clock.clone();
        clock.is_blind = false;
        self.learn(&seen);
    }

    /// The host has seen an event.
    pub(crate) fn see(&mut self, signal: usize) {
        if let Some(seen) = self.signals.get(&signal).cloned() {
            self.learn(&seen);
        }
    }

    fn learn(&mut self, seen: &Clock) {
        self.host.join(seen);
        if self.host.is_blind {
            // The thread that was waited for may have waited for any other.
            self.host.is_blind = false;
            for (lane, clock) in &self.lanes {
                self.host.times.insert(*lane, clock.times.get(lane).copied().unwrap_or(0));
            }
        }
        self.accesses.retain(|access| !self.host.knows(access));
    }

    /// Memory is given back; the uses that may not be over are returned.
    pub(crate) fn free(&mut self, start: usize, bytes: usize) -> Vec<MemoryAccess<S>> {
        let is_in = |access: &MemoryAccess<S>| access.touch.overlaps(start, bytes);
        let (freed, kept) = std::mem::take(&mut self.accesses).into_iter().partition(is_in);
        self.accesses = kept;
        freed
    }
}
