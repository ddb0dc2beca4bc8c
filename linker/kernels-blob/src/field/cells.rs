//! Flags and shared state of the cores of a task: the rules of `bindings/field/src/flags.rs`, on cells in the memory of the run.

use core::sync::atomic::{AtomicU32, Ordering};

use pto_native::foreign::field::{Cell, CellKind, KernelFault, POOL_BYTES, RunState};

use crate::core_registers::{TIMEOUT, end_kernel, relax, ticks};
use crate::running::{RunningBlock, word_address};

const CUBE: &[u8] = &[0];
const VECTORS: &[u8] = &[1, 2];
/// Flags of mode 4 come after those of the others.
const PAIRS: u32 = 64;
/// A flag of mode 4 that is about the second vector core.
const SECOND: u32 = 16;

/// The cells of a run, taken by one core.
struct Taken<'s> {
    state: &'s RunState,
}

impl<'s> Taken<'s> {
    fn take(state: &'s RunState) -> Self {
        let mut look = 0;
        // Acquire: pairs with the Release of `drop`, so that this core sees what the last one wrote.
        while state.lock.compare_exchange_weak(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err()
        {
            relax(look);
            look += 1;
        }
        Self { state }
    }

    /// The cells that were ever used.
    fn used(&self) -> &'s [Cell] {
        let used = self.state.cells_used.load(Ordering::Relaxed) as usize;
        self.state.cells.get(..used).unwrap_or(&[])
    }

    fn find(&self, name: &Name) -> Option<&'s Cell> {
        self.used().iter().find(|cell| name.is_of(cell))
    }

    /// The cell of this name, a new one with 0 if need be.
    fn cell(&self, name: &Name) -> Option<&'s Cell> {
        if let Some(cell) = self.find(name) {
            return Some(cell);
        }
        let used = self.used();
        let free = used.iter().find(|cell| cell.owner.load(Ordering::Relaxed) == 0);
        let cell = free.or_else(|| {
            let cell = self.state.cells.get(used.len())?;
            self.state.cells_used.fetch_add(1, Ordering::Relaxed);
            Some(cell)
        })?;
        cell.task.store(name.task, Ordering::Relaxed);
        cell.key.store(name.key, Ordering::Relaxed);
        cell.value.store(0, Ordering::Relaxed);
        cell.owner.store(name.owner, Ordering::Relaxed);
        Some(cell)
    }

    /// Counts one more; whether there is room.
    fn count(&self, name: &Name) -> bool {
        self.cell(name).map(|cell| cell.value.fetch_add(1, Ordering::Relaxed)).is_some()
    }

    /// Takes one of a count; whether there was one.
    fn take_one(&self, name: &Name) -> bool {
        let Some(cell) = self.find(name) else { return false };
        if cell.value.fetch_sub(1, Ordering::Relaxed) == 1 {
            cell.owner.store(0, Ordering::Relaxed);
        }
        true
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire of `take`.
        self.state.lock.store(0, Ordering::Release);
    }
}

/// What a cell is of.
struct Name {
    task: u64,
    owner: u64,
    key: u64,
}

impl Name {
    const fn new(task: u64, block: u32, slot: u8, kind: CellKind, key: u64) -> Self {
        Self { task, owner: block as u64 | (slot as u64) << 32 | (kind as u64) << 40, key }
    }

    fn is_of(&self, cell: &Cell) -> bool {
        cell.owner.load(Ordering::Relaxed) == self.owner
            && cell.task.load(Ordering::Relaxed) == self.task
            && cell.key.load(Ordering::Relaxed) == self.key
    }
}

/// The blocks and the cores of each that take part in a flag.
#[derive(Clone, Copy)]
struct FlagGroup<'a> {
    first: u32,
    blocks: u32,
    slots: &'a [u8],
}

impl RunningBlock {
    fn has(&self, slot: u8) -> bool {
        self.frame.entries.get(usize::from(slot)).is_some_and(|entry| *entry != 0)
    }

    fn cores(&self) -> u32 {
        let of_a_block = u32::from(self.has(0)) + u32::from(self.has(1)) + u32::from(self.has(2));
        self.block.blocks.max(1) * of_a_block
    }

    /// Whether `act` is true for every core of a group.
    fn all(&self, group: FlagGroup<'_>, mut act: impl FnMut(u32, u8) -> bool) -> bool {
        (group.first..group.first + group.blocks).all(|block| {
            group.slots.iter().filter(|slot| self.has(**slot)).all(|slot| act(block, *slot))
        })
    }

    fn name(&self, block: u32, slot: u8, kind: CellKind, flag: u32) -> Name {
        Name::new(self.frame.task, block, slot, kind, flag.into())
    }

    /// Ends the kernel; the first one that is ended is reported.
    fn refuse(&self, refusal: KernelFault, flag: u32) -> ! {
        let state = self.state;
        let first =
            state.refusal.compare_exchange(0, refusal as u32, Ordering::Relaxed, Ordering::Relaxed);
        if first.is_ok() {
            state.flag.store(flag, Ordering::Relaxed);
            let frame = core::ptr::from_ref(self.frame).expose_provenance() as u64;
            state.refused.store(frame, Ordering::Relaxed);
        }
        end_kernel()
    }
}

/// A core raises a flag.
pub(crate) fn raise(own: &RunningBlock, mode: u32, flag: u32) {
    let is_cube = own.slot == 0;
    let same: &[u8] = if is_cube { CUBE } else { VECTORS };
    let other: &[u8] = if is_cube { VECTORS } else { CUBE };
    let in_block = |slots| FlagGroup { first: own.block.block, blocks: 1, slots };
    let in_task = |slots| FlagGroup { first: 0, blocks: own.block.blocks.max(1), slots };
    let own_slot = [own.slot];
    let (from, to, flag) = match (mode, own.slot) {
        (0, _) => (in_task(same), in_task(same), flag),
        (1, _) => (in_block(VECTORS), in_block(VECTORS), flag),
        (2, _) => (in_block(same), in_block(other), flag),
        (4, 0) if flag < SECOND => (in_block(&own_slot), in_block(&VECTORS[..1]), PAIRS + flag),
        (4, 0) => (in_block(&own_slot), in_block(&VECTORS[1..]), PAIRS + flag - SECOND),
        (4, 1) => (in_block(&own_slot), in_block(CUBE), PAIRS + flag),
        (4, _) => (in_block(&own_slot), in_block(CUBE), PAIRS + SECOND + flag),
        _ => own.refuse(KernelFault::Mode, flag),
    };
    let has_room = {
        let cells = Taken::take(own.state);
        let mut has_room =
            cells.count(&own.name(own.block.block, own.slot, CellKind::Raised, flag));
        let raised =
            |block, slot| cells.find(&own.name(block, slot, CellKind::Raised, flag)).is_some();
        if has_room && own.all(from, raised) {
            own.all(from, |block, slot| {
                cells.take_one(&own.name(block, slot, CellKind::Raised, flag))
            });
            has_room = own
                .all(to, |block, slot| cells.count(&own.name(block, slot, CellKind::Given, flag)));
        }
        has_room
    };
    if !has_room {
        own.refuse(KernelFault::Cells, flag);
    }
}

/// A core waits for a flag.
pub(crate) fn wait(own: &RunningBlock, flag: u32) {
    let name = own.name(own.block.block, own.slot, CellKind::Given, flag);
    let (since, mut look) = (ticks(), 0);
    while !Taken::take(own.state).take_one(&name) {
        let is_over = own.cores() == 1 || own.state.refusal.load(Ordering::Relaxed) != 0;
        if is_over || ticks().wrapping_sub(since) > TIMEOUT {
            own.refuse(KernelFault::NoFlag, flag);
        }
        relax(look);
        look += 1;
    }
}

/// Memory of `bytes` zeros that the kernels of a block find by `key`.
pub(crate) fn memory(own: &RunningBlock, key: u64, bytes: usize) -> *mut u8 {
    let pool = core::ptr::from_ref(own.state).wrapping_add(1).cast::<u8>().cast_mut();
    let given = {
        let cells = Taken::take(own.state);
        let name = Name::new(own.frame.task, own.block.block, 0, CellKind::Memory, key);
        match cells.find(&name) {
            // A second look with a larger size gets what is there: the kernels of a block agree on it.
            Some(cell) => Some(cell.value.load(Ordering::Relaxed)),
            None => cells.give(&name, bytes as u64, pool),
        }
    };
    match given {
        Some(at) => pool.wrapping_add(word_address(at)),
        None => own.refuse(KernelFault::Pool, 0),
    }
}

impl Taken<'_> {
    /// New memory of the pool; where it begins.
    fn give(&self, name: &Name, bytes: u64, pool: *mut u8) -> Option<u64> {
        let is_memory =
            |cell: &Cell| cell.owner.load(Ordering::Relaxed) >> 40 == CellKind::Memory as u64;
        let none_is_held = !self.used().iter().any(is_memory);
        let at = if none_is_held { 0 } else { self.state.pool_used.load(Ordering::Relaxed) };
        // A line of its own for each.
        let end = at.checked_add(bytes.checked_next_multiple_of(64)?)?;
        if end > POOL_BYTES {
            return None;
        }
        self.cell(name)?.value.store(at, Ordering::Relaxed);
        self.state.pool_used.store(end, Ordering::Relaxed);
        let words = pool.wrapping_add(word_address(at)).cast::<AtomicU32>();
        for word in 0..(end - at) / 4 {
            // SAFETY: the pool has so many bytes after the state, and this part belongs to no other block.
            let word = unsafe { &*words.wrapping_add(word_address(word)) };
            word.store(0, Ordering::Relaxed);
        }
        Some(at)
    }
}

/// A kernel of a block has returned: after the last one the block's flags and memory are freed.
pub(crate) fn leave(own: &RunningBlock) {
    let parts = own.frame.entries.iter().filter(|entry| **entry != 0).count() as u64;
    // No flag was raised, and the block holds none.
    if parts == 1 && own.state.cells_used.load(Ordering::Relaxed) == 0 {
        return;
    }
    let cells = Taken::take(own.state);
    let name = Name::new(own.frame.task, own.block.block, 0, CellKind::Left, 0);
    let left =
        cells.cell(&name).map_or(parts, |cell| cell.value.fetch_add(1, Ordering::Relaxed) + 1);
    if left < parts {
        return;
    }
    for cell in cells.used() {
        let owner = cell.owner.load(Ordering::Relaxed);
        let is_block = owner & 0xFFFF_FFFF == own.block.block.into() && owner != 0;
        if is_block && cell.task.load(Ordering::Relaxed) == own.frame.task {
            cell.owner.store(0, Ordering::Relaxed);
        }
    }
}
