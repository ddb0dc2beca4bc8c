//! Where an instance's trace events go: a type, so that a machine that writes none pays nothing.
//!
//! [`NoTrace`] decides it at compile time. A host that traces on demand instantiates the firmware twice where an untraced run must
//! cost nothing more, and has an `Option<TraceWriter>` where one test of it at each event does no harm.
//!
//! A `TraceWriter` is the writing end of one agent's trace ring, and what the agent does while that is full and the run is recorded as a
//! whole (`WhenFull::Wait`): it waits for the host, but not for ever.
//!
//! A host that reads nothing for half the stall budget is `STALL_TRACE`: before a supervisor takes the wait itself for a
//! stall. From then on, as after every other fault, no writer waits: what a full ring does not take is counted.

use pto_abi::trace::TracePoint;

#[cfg(not(any(loom, shuttle)))]
pub use ring::TraceWriter;
/// No rings: they are in the arena, whose words are not those of a model checker.
#[cfg(any(loom, shuttle))]
pub type TraceWriter<'a> = core::marker::PhantomData<&'a ()>;

/// Takes the events of one agent.
pub trait Tracer<'a>: Copy {
    /// Whether it can take events at all.
    const TRACES: bool;

    /// Whether events are wanted: where not, nothing is computed for them.
    fn is_on(&self) -> bool;

    /// The tracer over a ring. Without a ring it takes events and drops them.
    fn over(writer: Option<TraceWriter<'a>>) -> Self;

    /// Takes an event. Where it has to wait for its reader, `pause` passes some time, and says what the clock shows then.
    fn write(&self, point: TracePoint, pause: impl FnMut() -> u64);
}

/// No events.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTrace;

impl Tracer<'_> for NoTrace {
    const TRACES: bool = false;

    #[inline(always)]
    fn is_on(&self) -> bool {
        false
    }

    fn over(_: Option<TraceWriter<'_>>) -> Self {
        Self
    }

    #[inline]
    fn write(&self, _: TracePoint, _: impl FnMut() -> u64) {}
}

/// Rings of an arena, whose words are not those of a model checker.
#[cfg(not(any(loom, shuttle)))]
mod ring {
    use pto_abi::Fault;
    use pto_abi::arena::Arena;
    use pto_abi::runtime::Epitaph;
    use pto_abi::runtime::region;
    use pto_abi::sync::Ordering;
    use pto_abi::task::Task;
    use pto_abi::trace::{TraceLane, TraceOwner, TracePoint, lap_of};

    use super::Tracer;

    /// The writing end of one agent's trace ring. See the module.
    #[derive(Clone, Copy)]
    pub struct TraceWriter<'a> {
        lane: TraceLane<'a>,
        arena: Arena<'a>,
        // Say in which lap a slot is: an event is recorded while its task has the slot.
        tasks: &'a [Task],
        owner: TraceOwner,
        timeout_ns: u64,
    }

    impl<'a> TraceWriter<'a> {
        /// The writer of a ring of this arena, whose configuration says how long it waits.
        #[must_use]
        pub fn new(lane: TraceLane<'a>, arena: Arena<'a>, owner: TraceOwner) -> Self {
            let timeout_ns = arena.config().stall_budget_ns / 2;
            let tasks = arena.tasks(arena.regions()[region::TASKS]).unwrap_or(&[]);
            Self { lane, arena, tasks, owner, timeout_ns }
        }

        /// The same, with this timeout: where the clock of its waits is not that of the budgets.
        #[must_use]
        pub const fn with_timeout(self, timeout_ns: u64) -> Self {
            Self { timeout_ns, ..self }
        }

        /// The ring.
        #[must_use]
        pub const fn lane(&self) -> &TraceLane<'a> {
            &self.lane
        }

        /// Writes an event. While the ring is full and the run waits for its reader, `pause` passes some time, and says
        /// what the clock shows then.
        #[inline]
        pub fn write(&self, point: TracePoint, pause: impl FnMut() -> u64) {
            let task = self.tasks.get(point.task as usize);
            let lap = task.map_or(0, |task| lap_of(task.generation.load(Ordering::Relaxed)));
            if !self.lane.write(point, lap) {
                self.wait(point, lap, pause);
            }
        }

        #[cold]
        #[inline(never)]
        fn wait(&self, point: TracePoint, lap: u8, mut pause: impl FnMut() -> u64) {
            let (mut since_ns, mut read) = (pause(), self.lane.read_so_far());
            while !self.lane.write(point, lap) {
                if self.arena.fault().is_raised() {
                    return self.lane.refuse();
                }
                let now_ns = pause();
                let read_now = self.lane.read_so_far();
                if read_now != read {
                    (since_ns, read) = (now_ns, read_now);
                } else if now_ns.saturating_sub(since_ns) > self.timeout_ns {
                    return self.give_up(point);
                }
            }
        }

        /// The host does not read the ring any more: raises `STALL_TRACE`, and counts the event as missing.
        #[cold]
        pub fn give_up(&self, point: TracePoint) {
            self.lane.refuse();
            let fault = self.arena.fault();
            if !fault.raise(Fault::STALL_TRACE) {
                return;
            }
            let mut epitaph = Epitaph::of(Fault::STALL_TRACE);
            match self.owner {
                TraceOwner::Instance(instance) => epitaph.instance = instance,
                TraceOwner::Core(core) => epitaph.core = core,
            }
            epitaph.since_ns = self.timeout_ns;
            epitaph.time_ns = point.time_ns.saturating_add(self.timeout_ns);
            let written = self.lane.written();
            epitaph.detail = [written.saturating_sub(self.lane.capacity()), written];
            let lines = self.arena.instances();
            epitaph.added = lines.iter().map(|line| line.added.load(Ordering::Relaxed)).sum();
            epitaph.published =
                lines.iter().map(|line| line.published.load(Ordering::Relaxed)).sum();
            epitaph.completed =
                lines.iter().map(|line| line.completed.load(Ordering::Relaxed)).sum();
            self.arena.set_epitaph(&epitaph);
            fault.seal_epitaph();
        }
    }

    impl<'a> Tracer<'a> for Option<TraceWriter<'a>> {
        const TRACES: bool = true;

        #[inline(always)]
        fn is_on(&self) -> bool {
            self.is_some()
        }

        fn over(writer: Self) -> Self {
            writer
        }

        #[inline]
        fn write(&self, point: TracePoint, pause: impl FnMut() -> u64) {
            if let Some(writer) = self {
                writer.write(point, pause);
            }
        }
    }
}
