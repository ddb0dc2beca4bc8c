//! Waiting for room, and for tasks.
//!
//! Rings retire at the watermark. It will move unless the oldest task that has not completed is one that the program has
//! not published, or the schedulers wait for the program, or there is no such task, or that task waits for others of
//! which none moves (proof.rs): those four are the proof that nothing can retire. Everything else that keeps it from moving is
//! the schedulers' business, and their watchdog's.

use pto_abi::stream::RingKind;
use pto_abi::sync::Ordering;
use pto_abi::{Fault, GmAddr};

use super::super::heaps::HeapFull;
use super::super::marks::{heap_ring, map_of};
use super::super::proof::{Blocker, ProofBackoff, Schedulers, Until, cause_of};
use super::super::storage::Storage;
use super::{Tasks, raised};
use crate::blame::Blame;
use crate::config::Config;
use crate::machine::Machine;

impl<C: Config> Tasks<'_, C> {
    /// Lets the others work. A program that waits looks again afterwards, and says for what; `None`: it computes, and waits for nothing.
    ///
    /// # Errors
    /// The fault of the run, if it has one.
    pub(in crate::stream) fn give_way(&mut self, at: Option<u64>) -> Result<(), Fault> {
        if self.state.fault.is_raised() {
            return Err(raised(&self.state));
        }
        let Some(at) = at else {
            self.events.machine().step_others();
            return Ok(());
        };
        self.report_state(at);
        self.events.machine().relax();
        self.storage.advance();
        Ok(())
    }

    /// Waits until `ring` takes `count` more, or task `complete` is complete.
    #[cold]
    #[inline(never)]
    pub(super) fn wait_for_room_or(
        &mut self,
        ring: RingKind,
        count: u64,
        complete: Option<u64>,
    ) -> Result<(), Fault> {
        self.storage.advance();
        self.storage.marks().needs(ring, count);
        if is_over(&self.storage, ring, count, complete) {
            return Ok(());
        }
        self.storage.marks().in_use(self.storage.in_use());
        self.storage.marks().waits(usize::from(ring.get()));
        let until = complete.map_or(Until::Retired, Until::RetiredOrComplete);
        let mut backoff = ProofBackoff::new();
        while !is_over(&self.storage, ring, count, complete) {
            // The states are read before room is looked for once more: a task may complete in between.
            let is_hopeless = until.give_up(self.storage.window(), self.schedulers, &mut backoff);
            self.storage.advance();
            if is_hopeless && !is_over(&self.storage, ring, count, complete) {
                let in_use = self.storage.in_use();
                let in_use = in_use.get(usize::from(ring.get())).copied().unwrap_or(0);
                let watermark = self.storage.window().watermark();
                let scope = self.scopes.innermost().serial;
                let blame = ring_blame(ring, (in_use, in_use + count), scope);
                return Err(self.hopeless(blame, watermark));
            }
            self.give_way(Some(count))?;
        }
        Ok(())
    }

    /// What is added at once is more than the whole ring.
    #[cold]
    pub(in crate::stream) fn too_large(&mut self, ring: RingKind, count: u64) -> Fault {
        let blame = ring_blame(ring, (0, count), self.scopes.innermost().serial);
        self.hopeless(blame, self.storage.window().next())
    }

    /// Waits for one task.
    pub(in crate::stream) fn wait_for_task(&mut self, number: u64) -> Result<(), Fault> {
        let mut backoff = ProofBackoff::new();
        while !self.storage.window().has_completed(number) {
            let is_hopeless = Until::Complete(number).give_up(
                self.storage.window(),
                self.schedulers,
                &mut backoff,
            );
            if is_hopeless && !self.storage.window().has_completed(number) {
                return Err(self.hopeless(Blame::of(Fault::STREAM_WAIT_FOREVER), number));
            }
            self.give_way(Some(number))?;
        }
        Ok(())
    }

    /// Takes a part of the innermost scope's heap; waits for closed scopes to retire.
    #[inline]
    pub(in crate::stream) fn take_heap(&mut self, bytes: u64) -> Result<GmAddr, Fault> {
        let depth = self.scopes.innermost().depth as usize;
        match self.storage.take_heap(depth, bytes) {
            None => Err(Fault::STREAM_SCOPE_DEPTH),
            Some(Ok(address)) => Ok(address),
            Some(Err(full)) => self.wait_for_heap(bytes, full),
        }
    }

    #[cold]
    #[inline(never)]
    fn wait_for_heap(&mut self, bytes: u64, mut full: HeapFull) -> Result<GmAddr, Fault> {
        let scope = self.scopes.innermost();
        let depth = scope.depth as usize;
        let ring = heap_ring(depth);
        let (mut waits, mut backoff) = (false, ProofBackoff::new());
        loop {
            let watermark = self.storage.window().watermark();
            let blame = Blame::of(Fault::STREAM_HEAP_RING).detail(full.in_use, full.suffices);
            let blame = blame.ring(u32::try_from(ring).unwrap_or(u32::MAX), scope.serial);
            if full.is_held {
                return Err(self.refuse(blame));
            }
            // Closed scopes go when the watermark passes them; it gets there unless it is stuck itself.
            let is_hopeless =
                Until::Retired.give_up(self.storage.window(), self.schedulers, &mut backoff);
            self.storage.advance();
            if is_hopeless && self.storage.window().watermark() == watermark {
                return Err(self.hopeless(blame, watermark));
            }
            if !waits {
                waits = true;
                self.storage.marks().waits(ring);
            }
            self.give_way(Some(bytes))?;
            match self.storage.take_heap(depth, bytes) {
                None => return Err(Fault::STREAM_SCOPE_DEPTH),
                Some(Ok(address)) => return Ok(address),
                Some(Err(still)) => full = still,
            }
        }
    }

    /// The fault of a wait that is hopeless, by what keeps `number` waiting: `blame`, or that tasks wait for each other.
    #[cold]
    fn hopeless(&mut self, blame: Blame, number: u64) -> Fault {
        let window = self.storage.window();
        let (blame, number) = match number < window.next() && self.schedulers == Schedulers::Run {
            true => match cause_of::<C::Fanout>(window, self.state.chunks, number) {
                Blocker::Unpublished(cause) => (blame, cause),
                Blocker::Deadlock(cause) => (Blame::of(Fault::STALL_DEADLOCK), cause),
            },
            // Nothing is under way, and the next task is too large; or nothing has run yet.
            false => (blame, number),
        };
        let blame = blame.task(window.id_of(number));
        let blame = match window.task(number).filter(|_| number < window.next()) {
            Some(task) => blame.func(task.func_id.load(Ordering::Relaxed).into()),
            None => blame,
        };
        self.refuse(blame)
    }
}

/// Whether a ring takes `count` more, or task `complete` is complete.
fn is_over(storage: &Storage<'_>, ring: RingKind, count: u64, complete: Option<u64>) -> bool {
    storage.has_room(ring, count)
        || complete.is_some_and(|task| storage.window().has_completed(task))
}

/// A ring is too small: what is in use of it, and what would suffice.
fn ring_blame(ring: RingKind, (in_use, suffices): (u64, u64), scope: u64) -> Blame {
    let (fault, suffices) = match ring {
        // As many as are added until the oldest one is published.
        RingKind::WINDOW => (Fault::STREAM_WINDOW_RING, suffices.next_power_of_two()),
        RingKind::ARGS => (Fault::STREAM_ARGS_RING, suffices),
        RingKind::EDGES => (Fault::STREAM_EDGES_RING, suffices),
        _ => (Fault::STREAM_MAP_RING, map_of(suffices)),
    };
    Blame::of(fault).detail(in_use, suffices).ring(ring.get().into(), scope)
}
