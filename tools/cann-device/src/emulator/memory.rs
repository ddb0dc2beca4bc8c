//! The memory of the device: GM, and the window of control registers.

use std::cell::Cell;

use bytemuck::Pod;
use pto_abi::launch_words::{Architecture, CorePosition};
use pto_abi::sync::{AtomicU32, Ordering};
use pto_abi::{GmAddr, GmWindow};

/// Memory of zeros, for the life of the process: a core that hangs may still touch it.
fn map(bytes: usize) -> *mut u8 {
    map_at(std::ptr::null_mut(), bytes)
}

/// The same at `wanted`, where nothing is; null: wherever there is room.
fn map_at(wanted: *mut libc::c_void, bytes: usize) -> *mut u8 {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let flags = if wanted.is_null() { flags } else { flags | libc::MAP_FIXED_NOREPLACE };
    // SAFETY: a new mapping, which replaces none.
    let start = unsafe { libc::mmap(wanted, bytes, protection, flags, -1, 0) };
    assert!(
        start != libc::MAP_FAILED,
        "mmap of {bytes} bytes: {}",
        std::io::Error::last_os_error()
    );
    start.cast()
}

/// GM: its addresses are addresses of this process.
pub(crate) struct Gm {
    pub(crate) window: GmWindow<'static>,
    used: Cell<u64>,
    end: u64,
}

impl Gm {
    /// The memory of a simulated device, of which `block` is ours.
    pub(crate) fn of(device: &pto_host::Device, block: GmAddr, block_bytes: u64) -> Self {
        let (address, bytes) = (device.gm_address(), device.describe().gm_bytes);
        let start = std::ptr::with_exposed_provenance_mut(address.0 as usize);
        // SAFETY: mapped for as long as the device lives, which outlives the scenario, page-aligned; both sides
        // reach it through windows only.
        let window = unsafe { GmWindow::from_raw(start, bytes, address) };
        let used = block.0 - address.0;
        Self { window, used: Cell::new(used), end: used + block_bytes }
    }

    pub(crate) fn map(bytes: u64) -> Self {
        let start = map(usize::try_from(bytes).expect("64-bit"));
        let address = GmAddr(start.expose_provenance() as u64);
        // SAFETY: mapped for the life of the process, page-aligned, reached by this window only (and by kernels,
        // through raw pointers).
        let window = unsafe { GmWindow::from_raw(start, bytes, address) };
        Self { window, used: Cell::new(0), end: bytes }
    }

    /// A new range, aligned to a line.
    pub(crate) fn alloc(&self, bytes: u64) -> GmAddr {
        let offset = self.used.get();
        self.used.set((offset + bytes).next_multiple_of(64));
        assert!(self.used.get() <= self.end, "the test's GM is too small");
        self.window.address().offset(offset)
    }

    pub(crate) fn upload<T: Pod>(&self, values: &[T]) -> GmAddr {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        let address = self.alloc(bytes.len().max(1) as u64);
        let offset = self.window.offset_of(address, bytes.len() as u64).expect("allocated");
        self.window.write_bytes(offset, bytes).expect("in GM");
        address
    }

    pub(crate) fn download<T: Pod>(&self, address: GmAddr, count: usize) -> Vec<T> {
        let mut values = vec![T::zeroed(); count];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut values);
        let offset = self.window.offset_of(address, bytes.len() as u64).expect("in GM");
        self.window.read_bytes(offset, bytes).expect("in GM");
        values
    }
}

/// The window of control registers, as memory.
#[derive(Clone, Copy)]
pub(crate) struct Registers {
    pub(crate) start: GmWindow<'static>,
    pub(crate) architecture: Architecture,
}

/// The registers of one core, from both sides.
#[derive(Clone, Copy)]
pub(crate) struct CoreRegisters {
    pub(crate) fast_path_enable: &'static AtomicU32,
    pub(crate) data_main_base: &'static AtomicU32,
    pub(crate) cond: &'static AtomicU32,
}

/// Clusters that the window has room for.
const CLUSTERS: u64 = 26;

impl Registers {
    pub(crate) fn map(architecture: Architecture) -> Self {
        Self::map_at(architecture, 0)
    }

    /// At this address; zero: wherever there is room.
    pub(crate) fn map_at(architecture: Architecture, address: u64) -> Self {
        let bytes = CLUSTERS * pto_abi::launch_words::CLUSTER_STRIDE;
        let wanted = usize::try_from(address).expect("64-bit");
        let wanted = std::ptr::with_exposed_provenance_mut(wanted);
        let start = map_at(wanted, usize::try_from(bytes).expect("64-bit"));
        let address = GmAddr(start.expose_provenance() as u64);
        // SAFETY: mapped for the life of the process, page-aligned, reached by atomics and volatile accesses only.
        let start = unsafe { GmWindow::from_raw(start, bytes, address) };
        Self { start, architecture }
    }

    /// The offsets are stated again here, from facts/hardware.md: the image's blocks are under test.
    pub(crate) fn core(&self, position: CorePosition) -> CoreRegisters {
        let (doorbell, status) = match self.architecture {
            Architecture::A5 => (0xD0, 0x5108),
            _ => (0xA0, 0x4C8),
        };
        let base = u64::from(position.cluster) * 0x80_0000 + u64::from(position.sub) * 0x10_0000;
        let register = |offset| self.start.live::<AtomicU32>(base + offset).expect("in the window");
        CoreRegisters {
            fast_path_enable: register(0x18),
            data_main_base: register(doorbell),
            cond: register(status),
        }
    }
}

impl CoreRegisters {
    /// What is in FAST_PATH_ENABLE.
    pub(crate) fn fast_path(&self) -> u32 {
        self.fast_path_enable.load(Ordering::Relaxed)
    }
}
