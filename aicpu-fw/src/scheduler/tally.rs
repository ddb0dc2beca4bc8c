//! What an instance says of itself: how many tasks it has completed, and how many of its cores are busy and free.
//!
//! Invariant: `outstanding` of the run falls by what [`Tally::flush`] takes off, and only after the consumers of the completed
//! tasks have been released: `count` is called after that.

use core::hash::{Hash, Hasher};

use pto_abi::CoreKind;
use pto_abi::runtime::{InstanceLine, Progress};
use pto_abi::sync::{Ordering, Sharing};

use crate::cores::CoreSet;
use crate::machine::Machine;
use crate::mutant::{self, Mutant};
use crate::platform::Platform;

/// Completions after which the counts are flushed even if the instance is never idle.
const FLUSH_EVERY: u64 = 4096;

/// See the module.
#[repr(C)]
pub(super) struct Tally<'a> {
    line: &'a InstanceLine,
    completed: u64,
    /// How many of them were published.
    flushed: u64,
}

impl<'a> Tally<'a> {
    #[inline(always)]
    pub(super) const fn new(line: &'a InstanceLine) -> Self {
        Self { line, completed: 0, flushed: 0 }
    }

    /// A task is completed, and its consumers are released.
    #[inline(always)]
    pub(super) fn count(&mut self) {
        self.completed += 1;
        self.flushed += u64::from(mutant::is(Mutant::CountsTooEarly));
    }

    /// Whether so much was completed that it should be published.
    #[inline(always)]
    pub(super) const fn is_large(&self) -> bool {
        self.unflushed() >= FLUSH_EVERY
    }

    #[inline(always)]
    const fn unflushed(&self) -> u64 {
        self.completed - self.flushed
    }

    /// Says in the own line what siblings need in order not to take a long kernel for a stall.
    #[inline(always)]
    pub(super) fn say<P: Platform>(&self, cores: &CoreSet) {
        self.line.completed.store(self.completed, Ordering::Relaxed);
        let busy = u32::try_from(cores.busy().len()).unwrap_or(u32::MAX);
        self.line.busy_cores.store(busy, Ordering::Relaxed);
        if P::Machine::SLOTS > 1 {
            self.say_free(cores);
        }
    }

    /// Says in the own line which cores wait for work: siblings do not pend a task that one of them could run.
    pub(super) fn say_free(&self, cores: &CoreSet) {
        for &kind in CoreKind::ALL {
            let free = u32::try_from(cores.free_count(kind)).unwrap_or(u32::MAX);
            self.line.free_cores[kind.index()].store(free, Ordering::Relaxed);
        }
    }

    /// Publishes how many tasks this instance has completed.
    pub(super) fn flush<P: Platform>(&mut self, cores: &CoreSet, progress: &Progress) {
        self.say::<P>(cores);
        let unflushed = self.unflushed();
        if unflushed > 0 {
            // Release: pairs with the Acquire load in `SharedState::outstanding`.
            P::Sharing::fetch_sub(&progress.outstanding, unflushed, Ordering::Release);
            self.flushed = self.completed;
        }
    }

    /// Hashes everything that later steps depend on.
    pub(super) fn hash_state<H: Hasher>(&self, into: &mut H) {
        let Self { line: _, completed, flushed } = self;
        (completed, flushed).hash(into);
    }
}
