//! The control registers of a core, as AICPU sees them (facts/hardware.md, Registers).
//!
//! ```text
//! window + cluster * 8 MiB + sub * 1 MiB         a2a3     a5
//!   FAST_PATH_ENABLE   written once a bring-up   0x018    0x018
//!   DATA_MAIN_BASE     the doorbell              0x0A0    0x0D0
//!   COND               the core's status         0x4C8    0x5108
//! ```
//! 32-bit accesses only: a 64-bit store to the window is split. A type says what AICPU may do: it never reads
//! DATA_MAIN_BASE, it never writes COND.

use core::marker::PhantomData;

use pto_abi::launch_words::{Architecture, CorePosition};
use volatile_register::{RO, WO};

/// `FAST_PATH_ENABLE`: AICPU's stores reach the core.
const FAST_PATH_OPEN: u32 = 0xE;
/// `FAST_PATH_ENABLE`: they do not.
const FAST_PATH_CLOSE: u32 = 0xF;

/// The gap between two registers. Never accessed; of a volatile type, so that no reference to a block
/// lets the compiler touch it.
type Gap<const WORDS: usize> = [WO<u32>; WORDS];

/// One core of an a2a3 device.
#[repr(C)]
pub struct A2a3Block {
    gap_0: Gap<6>,
    fast_path_enable: WO<u32>,
    gap_1: Gap<33>,
    data_main_base: WO<u32>,
    gap_2: Gap<265>,
    cond: RO<u32>,
}

/// One core of an a5 device.
#[repr(C)]
pub struct A5Block {
    gap_0: Gap<6>,
    fast_path_enable: WO<u32>,
    gap_1: Gap<45>,
    data_main_base: WO<u32>,
    gap_2: Gap<5133>,
    cond: RO<u32>,
}

const _: () = {
    use core::mem::offset_of;
    assert!(offset_of!(A2a3Block, fast_path_enable) == 0x18);
    assert!(offset_of!(A2a3Block, data_main_base) == 0xA0);
    assert!(offset_of!(A2a3Block, cond) == 0x4C8);
    assert!(offset_of!(A5Block, fast_path_enable) == 0x18);
    assert!(offset_of!(A5Block, data_main_base) == 0xD0);
    assert!(offset_of!(A5Block, cond) == 0x5108);
};

/// The window of control registers of a device, or memory in its stead.
#[derive(Clone, Copy)]
pub struct RegisterWindow<'a> {
    start: *mut u8,
    bytes: u64,
    architecture: Architecture,
    memory: PhantomData<&'a ()>,
}

impl<'a> RegisterWindow<'a> {
    /// The window of `bytes` bytes at `start`.
    ///
    /// # Safety
    /// The range is mapped for `'a`, as device memory or as memory to which there are no references; blocks
    /// of cores that are not there are not asked for.
    #[must_use]
    pub const unsafe fn from_raw(start: *mut u8, bytes: u64, architecture: Architecture) -> Self {
        Self { start, bytes, architecture, memory: PhantomData }
    }

    /// The registers of the core at `position`; `None`: they are not in the window.
    #[must_use]
    pub fn core(&self, position: CorePosition) -> Option<CoreRegisters<'a>> {
        match self.architecture {
            Architecture::A5 => self.block::<A5Block>(position).map(CoreRegisters::of_a5),
            _ => self.block::<A2a3Block>(position).map(CoreRegisters::of_a2a3),
        }
    }

    fn block<T>(&self, position: CorePosition) -> Option<&'a T> {
        let offset = position.offset();
        if offset.checked_add(size_of::<T>() as u64)? > self.bytes {
            return None;
        }
        let at = self.start.wrapping_add(usize::try_from(offset).ok()?).cast::<T>();
        if !at.is_aligned() {
            return None;
        }
        // SAFETY: in the window, which is mapped for 'a, and aligned; the block is made of volatile cells, for
        // which a shared reference allows nothing but the volatile accesses that are written below.
        Some(unsafe { &*at })
    }
}

/// The registers of one core that scheduling needs, wherever its architecture has them.
#[derive(Clone, Copy)]
pub struct CoreRegisters<'a> {
    fast_path_enable: &'a WO<u32>,
    data_main_base: &'a WO<u32>,
    cond: &'a RO<u32>,
}

impl<'a> CoreRegisters<'a> {
    const fn of_a2a3(block: &'a A2a3Block) -> Self {
        Self {
            fast_path_enable: &block.fast_path_enable,
            data_main_base: &block.data_main_base,
            cond: &block.cond,
        }
    }

    const fn of_a5(block: &'a A5Block) -> Self {
        Self {
            fast_path_enable: &block.fast_path_enable,
            data_main_base: &block.data_main_base,
            cond: &block.cond,
        }
    }

    /// Lets AICPU's stores reach the core.
    pub(crate) fn open(&self) {
        // SAFETY: this value opens the fast path and has no other effect.
        unsafe { self.fast_path_enable.write(FAST_PATH_OPEN) };
    }

    /// The end of [`open`](Self::open).
    pub(crate) fn close(&self) {
        // SAFETY: this value closes the fast path and has no other effect.
        unsafe { self.fast_path_enable.write(FAST_PATH_CLOSE) };
    }

    /// Writes the doorbell: a dispatch id or one of the reserved values.
    #[inline]
    pub(crate) fn ring(&self, value: u32) {
        // SAFETY: the core reads the word as a number; what it then reads in GM was written before.
        unsafe { self.data_main_base.write(value) };
    }

    /// The core's status. About 100 ns on a2a3.
    #[inline]
    pub(crate) fn status(&self) -> u32 {
        self.cond.read()
    }
}
