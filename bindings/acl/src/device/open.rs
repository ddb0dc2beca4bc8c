//! A device that is open: a session, and how much of its memory is in use.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pto_host::abi::limits::MAX_FUNC_ID;
use pto_host::abi::{CoreKind, FuncId, GmAddr};
use pto_host::fw::{FlashDevice, Store, StoreError};
use pto_host::session::{Drive, Others};
use pto_host::stitch::Stitcher;
use pto_host::virtual_time::{KernelCosts, VirtualOptions};
use pto_host::{
    Device, DeviceOptions, Hosting, Kernel, LIBRARY, Placement, QemuDeviceOptions, Session,
    SessionOptions,
};

use super::limits;
use super::settings::{DeviceKind, MEMORY_VARIABLE, settings};
use super::struck::Damage;
use crate::common::codes;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::spans;
use crate::common::table::Handle;

/// Addresses of a device. Most are only reserved: memory is counted apart, by [`Open::take`].
const ADDRESS_SPACE: u64 = 256 << 30;
/// Memory of an emulated machine in addition to the blocks of programs: rings, arenas, and what alignment takes.
const BESIDE_BLOCKS: u64 = 512 << 20;
/// The most memory that an emulated machine can have.
const MOST_OF_QEMU: u64 = (8 << 30) - (16 << 20);
/// Functions of the host that wait at the same time, over all streams of a device.
const HOST_FUNCTIONS: usize = 128;

/// An open device.
pub(crate) struct Open {
    pub(crate) index: i32,
    pub(crate) session: Session,
    stitcher: OnceLock<Stitcher>,
    /// When the clock of its session was 0, on the clock of the host.
    pub(crate) opened_ns: u64,
    start: usize,
    bytes: usize,
    /// The kernels of the machine, where it is one.
    flashed: Vec<Kernel>,
    used: AtomicU64,
    peak: AtomicU64,
    streams: AtomicU32,
    /// How often the commands of all streams were dropped.
    resets: AtomicU64,
    /// The kernels of functions that were launched here.
    kernels: Mutex<BTreeMap<Handle, FuncId>>,
    cores: [u32; 2],
    /// What faults that a user asks for have left.
    pub(crate) damage: Damage,
}

/// When the clock of a session began, on the clock of the calls. A thread may lose its processor between the readings of two clocks: of several pairs
/// the one that took the shortest counts.
fn begin_of(session: &Session) -> u64 {
    let pairs = (0..16).map(|_| {
        let before = spans::now_ns();
        let age = u64::try_from(session.now().as_nanos()).unwrap_or(0);
        (spans::now_ns() - before, before.saturating_sub(age))
    });
    pairs.min().map_or(0, |(_, began)| began)
}

impl Open {
    /// Opens it; `others` may end waits in virtual time.
    pub(crate) fn new(index: i32, others: &'static dyn Others) -> Answer<Arc<Self>> {
        let mut session =
            SessionOptions { host_functions: HOST_FUNCTIONS, ..SessionOptions::default() };
        session.run.task_budget = limits::LONGEST;
        let (mut device, bytes) = match settings().machine {
            DeviceKind::Simulator => (simulator(&mut session)?, ADDRESS_SPACE),
            DeviceKind::Qemu => emulated(&mut session)?,
        };
        // Models call kernels of the library.
        device.register_library()?;
        let cores = [device.cores(CoreKind::AIC), device.cores(CoreKind::AIV)];
        let start = usize::try_from(device.gm_address().0).unwrap_or(0);
        let flashed = device.flashed_kernels().into_iter().map(|(_, kernel)| kernel).collect();
        let session = device.session(session)?;
        session.ask_others(others);
        Ok(Arc::new(Self {
            index,
            opened_ns: begin_of(&session),
            session,
            stitcher: OnceLock::new(),
            start,
            bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
            flashed,
            used: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            streams: AtomicU32::new(0),
            resets: AtomicU64::new(0),
            kernels: Mutex::default(),
            cores,
            damage: Damage::default(),
        }))
    }

    /// Cube and vector cores.
    pub(crate) fn cores(&self) -> [u32; 2] {
        self.cores
    }

    /// Whether an address is one of this device.
    pub(crate) fn has(&self, address: usize) -> bool {
        address.wrapping_sub(self.start) < self.bytes
    }

    /// The kernel of the machine with this name.
    pub(crate) fn flashed(&self, name: &str) -> Option<Kernel> {
        self.flashed.iter().find(|kernel| kernel.name() == name).cloned()
    }

    /// A number for a new stream.
    pub(crate) fn next_stream(&self) -> i32 {
        i32::try_from(self.streams.fetch_add(1, Ordering::Relaxed)).unwrap_or(0)
    }

    /// How often the commands of all streams were dropped.
    pub(crate) fn resets(&self) -> u64 {
        // Relaxed: who waits looks again and again.
        self.resets.load(Ordering::Relaxed)
    }

    /// Drops the commands of all streams: the device is as new.
    pub(crate) fn reset(&self) -> Answer {
        // Relaxed: as for `resets`.
        self.resets.fetch_add(1, Ordering::Relaxed);
        self.session.reset()?;
        self.damage.heal();
        Ok(())
    }

    /// Counts memory as used.
    pub(crate) fn take(&self, bytes: u64) -> Answer {
        let total = settings().memory;
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes).filter(|sum| *sum <= total)
        });
        let used = taken.map_err(|used| {
            let free = total - used;
            let text = format!("device {} has {free} of {total} bytes free, and {bytes} were asked for; free memory", self.index);
            Refusal::new(codes::OUT_OF_MEMORY, text)
        })?;
        self.peak.fetch_max(used + bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Counts memory as free.
    pub(crate) fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Bytes in use, and the most that were.
    pub(crate) fn usage(&self) -> (u64, u64) {
        (self.used.load(Ordering::Relaxed), self.peak.load(Ordering::Relaxed))
    }

    /// The number that a function has on this device; registers it at its first launch.
    pub(crate) fn kernel(&self, function: Handle, kernel: &Kernel) -> Answer<FuncId> {
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kernels.get(&function) {
            return Ok(*known);
        }
        let next = u16::try_from(LIBRARY.len() + kernels.len());
        let next = next.ok().filter(|next| usize::from(*next) < MAX_FUNC_ID);
        let Some(next) = next else {
            let text = format!("device {} has no room for one more kernel", self.index);
            return Err(Refusal::new(codes::NO_RESOURCE, text));
        };
        self.session.register_kernel(FuncId(next), kernel.clone())?;
        kernels.insert(function, FuncId(next));
        Ok(FuncId(next))
    }

    /// What loads models onto the device.
    pub(crate) fn stitcher(&self) -> Answer<&Stitcher> {
        if let Some(stitcher) = self.stitcher.get() {
            return Ok(stitcher);
        }
        let stitcher = Stitcher::new(&self.session)?;
        Ok(self.stitcher.get_or_init(|| stitcher))
    }

    /// Waits for every stream; failures stay with their streams.
    pub(crate) fn wait(&self) -> Answer {
        Ok(self.session.synchronize()?)
    }

    /// Refuses where a stream is stuck: a wait for every stream would not end.
    pub(crate) fn check_unstuck(&self) -> Answer {
        self.damage.some_stuck().map_or(Ok(()), |stuck| stuck.refuse_to_wait())
    }

    /// As [`Open::wait`]. Where a stream is stuck, what waits on the device is dropped.
    pub(crate) fn drain(&self) -> Answer {
        if self.damage.release(&self.session) {
            // Relaxed: as for `resets`.
            self.resets.fetch_add(1, Ordering::Relaxed);
        }
        self.wait()
    }
}

/// The simulator, in real or in virtual time.
fn simulator(session: &mut SessionOptions) -> Answer<Device> {
    let mut options = DeviceOptions { gm_bytes: ADDRESS_SPACE, ..DeviceOptions::default() };
    if let Some(seed) = settings().seed {
        let defaults = VirtualOptions::default();
        let costs = settings()
            .kernel_ns
            .map_or(defaults.costs, |fallback| KernelCosts::Library { fallback });
        options.hosting = Hosting::Virtual(VirtualOptions { seed, costs, ..defaults });
        session.drive = Some(Drive::Stepped { seed });
    }
    pto_native::open_device(options)
        .map_err(|failure| Refusal::new(codes::INTERNAL, failure.to_string()))
}

/// The emulated machine with what is flashed to it, and bytes of its memory. Its addresses are those of the process.
fn emulated(session: &mut SessionOptions) -> Answer<(Device, u64)> {
    require(settings().seed.is_none(), || {
        let text =
            "the device qemu runs in real time; leave PTO_ACL_SEED out, or use the device a2a3sim";
        Refusal::unsupported(text)
    })?;
    let gm_bytes = settings().memory.saturating_add(BESIDE_BLOCKS);
    require(gm_bytes <= MOST_OF_QEMU, || {
        let most = MOST_OF_QEMU - BESIDE_BLOCKS;
        let asked = settings().memory;
        Refusal::value(format!(
            "{MEMORY_VARIABLE} is {asked}, and the device qemu has at most {most} bytes; ask for less"
        ))
    })?;
    session.run.aicpu_instances = 2;
    let refused = |error: StoreError| {
        let text = format!(
            "{error}; `pto compat cann run --device qemu` starts a program with the default ones"
        );
        Refusal::new(codes::INTERNAL, text)
    };
    let store = Store::open().map_err(refused)?;
    let (firmware, kernels) = store.load_both(FlashDevice::Qemu).map_err(refused)?;
    let options = QemuDeviceOptions {
        aicpu: 2,
        aic: 2,
        aiv: 4,
        gm_bytes,
        placement: Placement::InPlace,
        ..QemuDeviceOptions::default()
    };
    Ok((Device::open_qemu(&options, &firmware, &kernels)?, gm_bytes))
}

/// Converts an address to the session's type.
pub(crate) fn gm(address: usize) -> GmAddr {
    GmAddr(address as u64)
}

/// Refuses sizes that no device has.
pub(crate) fn check_size(bytes: usize) -> Answer {
    require(bytes > 0, || Refusal::argument("the size is 0; ask for at least one byte"))?;
    require((bytes as u64) < ADDRESS_SPACE, || {
        Refusal::new(
            codes::OUT_OF_MEMORY,
            format!("{bytes} bytes are more than a device has addresses"),
        )
    })
}
