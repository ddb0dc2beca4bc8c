//! The launch words: what the host says of arena and registers, checked once before anything is touched.

use core::mem::offset_of;

use pto_abi::arena::Arena;
use pto_abi::gm::GmWindow;
use pto_abi::image::{expect_at_most, expect_equal};
use pto_abi::launch_words::{
    Architecture, CORES_PER_CLUSTER, CorePosition, LAUNCH_MAGIC, LaunchPlan, LaunchTickets,
    LaunchWords,
};
use pto_abi::layout::LAYOUT_HASH;
use pto_abi::limits::MAX_WORKERS;
use pto_abi::runtime::{ABI_MAJOR, ABI_MINOR};
use pto_abi::{CoreKind, Fault, GmAddr};
use pto_aicpu_fw::Launch;
use pto_aicpu_fw::blame::Blame;

use crate::cann::barrier;
use crate::cann::coherence::{Coherence, Freshness};
use crate::cann::registers::RegisterWindow;

/// Launch words whose plan has been checked. Holding them proves: the words are of this firmware's ABI, the
/// arena lies in GM and holds a `Runtime`. It proves nothing of the positions before
/// [`check_positions`](Self::check_positions), and nothing of the arena's contents.
pub struct AcceptedWords {
    /// The arena.
    pub arena: Arena<'static>,
    /// The control registers.
    pub registers: RegisterWindow<'static>,
    /// Where each worker's registers are.
    pub positions: [CorePosition; MAX_WORKERS],
    /// Which instance is which.
    pub tickets: &'static LaunchTickets,
    /// How the host's writes reach this AICPU.
    pub coherence: Coherence,
    /// Whether the whole arena is new.
    pub freshness: Freshness,
    core_count: u32,
    words: *const u8,
}

/// The launch words at `words`, dropped from the caches first.
///
/// # Safety
/// Launch words are mapped there, aligned to 64 bytes, for as long as the image is loaded.
unsafe fn words_window(words: *mut u8) -> GmWindow<'static> {
    let bytes = size_of::<LaunchWords>();
    // SAFETY: mapped, by this function's contract.
    unsafe { barrier::clean_and_invalidate(words, bytes) };
    let address = GmAddr(words.addr() as u64);
    // SAFETY: mapped and aligned, by this function's contract; there are no references to the plan.
    unsafe { GmWindow::from_raw(words, bytes as u64, address) }
}

impl AcceptedWords {
    /// Checks the launch words at `words`.
    ///
    /// # Errors
    /// The first wrong field; its code is also left in the launch words where there are some.
    ///
    /// # Safety
    /// Launch words are mapped there, aligned to 64 bytes; GM and the register window are where they say,
    /// until the image is unloaded.
    pub unsafe fn accept(words: *mut u8) -> Result<Self, Fault> {
        // SAFETY: by this function's contract.
        let window = unsafe { words_window(words) };
        // The window is as large as the launch words.
        let plan: LaunchPlan = window.read(0).ok_or(Fault::LAUNCH_MAGIC)?;
        if plan.magic != LAUNCH_MAGIC {
            // No launch words: nothing is written there.
            return Err(Fault::LAUNCH_MAGIC);
        }
        let tickets = offset_of!(LaunchWords, tickets) as u64;
        let tickets: &'static LaunchTickets = window.live(tickets).ok_or(Fault::LAUNCH_MAGIC)?;
        let positions = window.read(offset_of!(LaunchWords, cores) as u64);
        let positions = positions.ok_or(Fault::LAUNCH_WORDS_BYTES)?;
        // SAFETY: by this function's contract.
        let accepted = unsafe { Self::check(&plan, tickets, positions, words) };
        accepted.inspect_err(|fault| {
            tickets.refuse(fault.code());
            // SAFETY: the launch words are mapped.
            unsafe { barrier::clean_and_invalidate(words, size_of::<LaunchWords>()) };
        })
    }

    /// # Safety
    /// GM and the register window are where the plan says.
    unsafe fn check(
        plan: &LaunchPlan,
        tickets: &'static LaunchTickets,
        positions: [CorePosition; MAX_WORKERS],
        words: *const u8,
    ) -> Result<Self, Fault> {
        let architecture = check_plan(plan)?;
        let gm = usize::try_from(plan.gm_address.0).map_err(|_| Fault::LAUNCH_ARENA)?;
        let gm = core::ptr::with_exposed_provenance_mut::<u8>(gm);
        // SAFETY: by this function's contract GM is mapped; `check_plan` checked the alignment; all code in this
        // image reaches it through windows.
        let gm = unsafe { GmWindow::from_raw(gm, plan.gm_bytes, plan.gm_address) };
        let arena = Arena::new(gm, plan.arena_address, plan.arena_bytes);
        let registers =
            usize::try_from(plan.registers_address).map_err(|_| Fault::LAUNCH_POSITION)?;
        let registers = core::ptr::with_exposed_provenance_mut::<u8>(registers);
        Ok(Self {
            arena: arena.ok_or(Fault::LAUNCH_ARENA)?,
            // SAFETY: by this function's contract the window is mapped; the host lists cores that are there.
            registers: unsafe {
                RegisterWindow::from_raw(registers, plan.registers_bytes, architecture)
            },
            positions,
            tickets,
            coherence: Coherence::of(architecture),
            freshness: if plan.fresh_arena == 0 { Freshness::Known } else { Freshness::Fresh },
            core_count: plan.core_count,
            words,
        })
    }

    /// Checks that every worker of the launch has registers, of its own, of its kind.
    ///
    /// # Errors
    /// `LAUNCH_CORE_COUNT`, `LAUNCH_POSITION` with the worker and its offset.
    pub fn check_positions(&self, launch: &Launch<'_>) -> Result<(), Blame> {
        let workers = launch.workers.len();
        if self.core_count as usize != workers {
            let blame = Blame::of(Fault::LAUNCH_CORE_COUNT);
            return Err(blame.detail(self.core_count.into(), workers as u64));
        }
        for (worker, position) in (0_u32..).zip(self.positions.iter().take(workers)) {
            let earlier = self.positions.iter().take(worker as usize);
            let is_cube = launch.workers.kind(worker) == Some(CoreKind::AIC);
            let usable = position.sub < CORES_PER_CLUSTER
                && (position.sub == 0) == is_cube
                && self.registers.core(*position).is_some()
                && earlier.into_iter().all(|other| other != position);
            if !usable {
                let blame = Blame::of(Fault::LAUNCH_POSITION).worker(worker);
                return Err(blame.detail(position.offset(), 0));
            }
        }
        Ok(())
    }

    /// The last instance is done with arena and launch words: writes both back for the host.
    pub fn write_back(&self) {
        self.coherence.leave(&self.arena);
        if self.coherence == Coherence::Maintained {
            // SAFETY: the launch words are mapped while the image is loaded.
            unsafe { barrier::clean_and_invalidate(self.words, size_of::<LaunchWords>()) };
        }
    }
}

fn check_plan(plan: &LaunchPlan) -> Result<Architecture, Fault> {
    let equal = |fault, found: u64, expected| {
        expect_equal(fault, found, expected).map_err(|refusal| refusal.fault)
    };
    equal(Fault::LAUNCH_ABI_MAJOR, plan.abi_major.into(), ABI_MAJOR.into())?;
    expect_at_most(Fault::LAUNCH_ABI_MINOR, plan.abi_minor.into(), ABI_MINOR.into())
        .map_err(|refusal| refusal.fault)?;
    let words_bytes = size_of::<LaunchWords>() as u64;
    equal(Fault::LAUNCH_WORDS_BYTES, plan.words_bytes.into(), words_bytes)?;
    equal(Fault::LAUNCH_LAYOUT_HASH, plan.layout_hash, LAYOUT_HASH)?;
    let reserved =
        plan.reserved.iter().fold(plan.reserved_word, |all, word| all | u32::from(*word != 0));
    equal(Fault::LAUNCH_RESERVED, (reserved | plan.fresh_arena & !1).into(), 0)?;
    let gm = plan.gm_address.0;
    if gm == 0 || !gm.is_multiple_of(64) || gm.checked_add(plan.gm_bytes).is_none() {
        return Err(Fault::LAUNCH_ARENA);
    }
    Architecture::try_from(plan.architecture).map_err(|_| Fault::LAUNCH_ARCHITECTURE)
}
