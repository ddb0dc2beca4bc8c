//! The state that all tasks of a run share on a device. The host writes zeros there before the run, and reads it after the run.
//!
//! Invariant: cells and the pool belong to the core that has taken the lock.

use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

/// Bytes after a [`RunState`], for the state that the kernels of a block share.
pub const POOL_BYTES: u64 = 1 << 20;
/// How many cells there are.
const CELLS: usize = 2048;

/// See the file.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct RunState {
    /// 1 while a core changes cells or the pool.
    pub lock: AtomicU32,
    /// The first code that a kernel's completion failed with; 0: none has.
    pub failed: AtomicI32,
    /// A [`KernelFault`], of the first kernel that was ended; 0: none was.
    pub refusal: AtomicU32,
    /// The flag that it is about.
    pub flag: AtomicU32,
    /// The [frame](super::TaskFrame) of its task.
    pub refused: AtomicU64,
    /// Bytes of the pool that are in use.
    pub pool_used: AtomicU64,
    /// When the tasks of a timing slot began, plus one, and ended, in nanoseconds of the device's clock; 0: never.
    pub timing: [[AtomicU64; 2]; 16],
    /// Cells from this one on have never been used.
    pub cells_used: AtomicU32,
    /// The state that the cores of a task share.
    pub cells: [Cell; CELLS],
}

/// A count of a core, or the memory of a block.
#[repr(C)]
#[derive(Debug)]
pub struct Cell {
    /// The task that owns the cell.
    pub task: AtomicU64,
    /// Block in bits 0 to 31, core of the block in 32 to 39, [`CellKind`] in 40 to 47; 0: free.
    pub owner: AtomicU64,
    /// The flag, or the key of the memory.
    pub key: AtomicU64,
    /// The count, or from where in the pool.
    pub value: AtomicU64,
}

/// What a cell is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellKind {
    /// How often a core has raised a flag that the others of its group have not raised yet.
    Raised = 1,
    /// How often a flag was raised for a core.
    Given = 2,
    /// Memory of a block.
    Memory = 3,
    /// How many kernels of a block have returned.
    Left = 4,
}

/// Why a kernel was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelFault {
    /// It waits for a flag that does not come.
    NoFlag = 1,
    /// It raises a flag with a mode that is none.
    Mode = 2,
    /// More flags at once than there are cells.
    Cells = 3,
    /// More shared state at once than the pool has.
    Pool = 4,
}

impl KernelFault {
    /// Of its number; `None`: it is none.
    #[must_use]
    pub const fn of(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::NoFlag),
            2 => Some(Self::Mode),
            3 => Some(Self::Cells),
            4 => Some(Self::Pool),
            _ => None,
        }
    }
}
