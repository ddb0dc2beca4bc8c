//! The page tables: an identity map, built by vCPU 0 before any MMU is on, never changed afterwards.
//!
//! ```text
//! 0x0800_0000  GIC, UART     2 MiB blocks   Device-nGnRE, no execution
//! 0x4010_0000  boot block    pages          read, write
//! 0x4020_0000  image         pages          text: read, execute; constants: read; data: read, write
//! 0x4040_0000  stacks        pages          read, write; the gaps are not mapped
//! 0x4240_0000  GM            2 MiB blocks   read, write, execute (kernels are copied there)
//! ```
//! Everything else, address 0 above all, is not mapped: touching it is an exception.

use core::cell::UnsafeCell;

use pto_abi::fw_image::{BootBlock, qemu};

use crate::qemu::address::address;
use crate::qemu::uart;

const ENTRIES: usize = 512;
const BLOCK: u64 = 2 << 20;
const GIB: u64 = 1 << 30;
/// Tables of 2 MiB blocks for RAM: one a GiB.
const RAM_TABLES: usize = address(qemu::MAX_RAM_BYTES / GIB);
/// Tables of pages: boot block, image, stacks.
const PAGE_TABLES: usize = 2 + address((qemu::GM_ADDRESS - qemu::STACKS_ADDRESS).div_ceil(BLOCK));

const VALID_TABLE: u64 = 0b11;
const VALID_PAGE: u64 = 0b11;
const VALID_BLOCK: u64 = 0b01;
/// Accessed, inner shareable, attribute 0 (Normal write-back).
const NORMAL: u64 = 1 << 10 | 3 << 8;
/// Accessed, attribute 1 (Device-nGnRE), never executed.
const DEVICE: u64 = 1 << 10 | 1 << 2 | NO_EXECUTE;
const READ_ONLY: u64 = 1 << 7;
/// Neither at EL1 nor at EL0.
const NO_EXECUTE: u64 = 1 << 53 | 1 << 54;

type Table = [u64; ENTRIES];

/// All tables; the first is the one that TTBR0 points to.
#[repr(C, align(4096))]
pub(crate) struct PageTables {
    root: UnsafeCell<Table>,
    devices: UnsafeCell<Table>,
    ram: UnsafeCell<[Table; RAM_TABLES]>,
    pages: UnsafeCell<[Table; PAGE_TABLES]>,
}

// SAFETY: written by vCPU 0 before another one runs, then read by the MMU only.
unsafe impl Sync for PageTables {}

pub(crate) static TABLES: PageTables = PageTables {
    root: UnsafeCell::new([0; ENTRIES]),
    devices: UnsafeCell::new([0; ENTRIES]),
    ram: UnsafeCell::new([[0; ENTRIES]; RAM_TABLES]),
    pages: UnsafeCell::new([[0; ENTRIES]; PAGE_TABLES]),
};

unsafe extern "C" {
    static PTO_TEXT_END: u8;
    static PTO_RODATA_END: u8;
    static PTO_IMAGE_END: u8;
}

/// Fills the tables for a machine with `ram_bytes` of RAM.
pub(crate) fn build(ram_bytes: u64) {
    // SAFETY: vCPU 0 alone runs, and nothing else has a reference to this table.
    let root = unsafe { &mut *TABLES.root.get() };
    // SAFETY: vCPU 0 alone runs, and nothing else has a reference to this table.
    let devices = unsafe { &mut *TABLES.devices.get() };
    // SAFETY: vCPU 0 alone runs, and nothing else has a reference to this table.
    let ram = unsafe { &mut *TABLES.ram.get() };
    // SAFETY: vCPU 0 alone runs, and nothing else has a reference to this table.
    let pages = unsafe { &mut *TABLES.pages.get() };

    set(root, 0, address_of(devices) | VALID_TABLE);
    let device_blocks = crate::qemu::timer::GIC_ADDRESS..uart::UART_ADDRESS + BLOCK;
    for block in device_blocks.step_by(address(BLOCK)) {
        set(devices, block / BLOCK, block | DEVICE | VALID_BLOCK);
    }
    let end = qemu::RAM_ADDRESS.saturating_add(ram_bytes);
    for (gib, table) in (qemu::RAM_ADDRESS / GIB..).zip(ram.iter_mut()) {
        set(root, gib, address_of(table) | VALID_TABLE);
        for index in 0..ENTRIES as u64 {
            let at = gib * GIB + index * BLOCK;
            if at >= qemu::GM_ADDRESS && at < end {
                set(table, index, at | NORMAL | VALID_BLOCK);
            }
        }
    }
    let Some(first) = ram.first_mut() else { return };
    for (table, block) in pages.iter_mut().zip(PAGED_BLOCKS) {
        set(first, block % GIB / BLOCK, address_of(table) | VALID_TABLE);
        for index in 0..ENTRIES as u64 {
            set(table, index, page(block + index * qemu::PAGE_BYTES));
        }
    }
}

/// The 2 MiB blocks that are mapped by pages: the first of RAM, the image, the stacks.
const PAGED_BLOCKS: [u64; PAGE_TABLES] = {
    let mut blocks = [qemu::RAM_ADDRESS; PAGE_TABLES];
    let mut i = 1;
    while i < PAGE_TABLES {
        blocks[i] = qemu::IMAGE_ADDRESS + (i as u64 - 1) * BLOCK;
        i += 1;
    }
    blocks
};

/// The entry of one page below GM; zero: not mapped.
fn page(at: u64) -> u64 {
    let boot_block = qemu::BOOT_BLOCK_ADDRESS..qemu::BOOT_BLOCK_ADDRESS + BOOT_BLOCK_BYTES;
    if boot_block.contains(&at) {
        return at | NORMAL | NO_EXECUTE | VALID_PAGE;
    }
    if at >= qemu::STACKS_ADDRESS {
        return stack_page(at);
    }
    let (text_end, rodata_end, image_end) =
        (&raw const PTO_TEXT_END, &raw const PTO_RODATA_END, &raw const PTO_IMAGE_END);
    match at {
        _ if at < qemu::IMAGE_ADDRESS => 0,
        _ if at < text_end.addr() as u64 => at | NORMAL | READ_ONLY | VALID_PAGE,
        _ if at < rodata_end.addr() as u64 => at | NORMAL | READ_ONLY | NO_EXECUTE | VALID_PAGE,
        _ if at < image_end.addr() as u64 => at | NORMAL | NO_EXECUTE | VALID_PAGE,
        _ => 0,
    }
}

const BOOT_BLOCK_BYTES: u64 = (size_of::<BootBlock>() as u64).next_multiple_of(qemu::PAGE_BYTES);

/// From the bottom of a vCPU's part: gap, stack, gap, exception stack.
fn stack_page(at: u64) -> u64 {
    let in_part = (at - qemu::STACKS_ADDRESS) % qemu::STACK_STRIDE;
    let second_gap = qemu::STACK_STRIDE - qemu::EXCEPTION_STACK_BYTES - qemu::STACK_GAP;
    let is_gap = |gap: u64| in_part >= gap && in_part < gap + qemu::STACK_GAP;
    if is_gap(0) || is_gap(second_gap) {
        return 0;
    }
    at | NORMAL | NO_EXECUTE | VALID_PAGE
}

fn set(table: &mut Table, index: u64, entry: u64) {
    let slot = usize::try_from(index).ok().and_then(|index| table.get_mut(index));
    if let Some(slot) = slot {
        *slot = entry;
    }
}

fn address_of(table: &Table) -> u64 {
    (&raw const *table).addr() as u64
}
