//! The boot block from the host's side: what to write before the start, what to wait for, what to read after
//! an exception.

use std::fmt;

use pto_abi::fw_image::{
    BOOT_MAGIC, BootBlock, ExceptionFrame, FW_REFUSED, LaunchOrder, VCPU_DEAD, VCPU_INSTANCE,
    VCPU_OFF, VCPU_WORKER, VcpuLine,
};
use pto_abi::layout::LAYOUT_HASH;
use pto_abi::runtime::{ABI_MAJOR, ABI_MINOR};
use pto_abi::sync::Ordering;

/// Writes what the image checks before it starts.
pub fn write_header(block: &BootBlock, vcpus: u32, ram_bytes: u64) {
    let header = &block.header;
    header.magic.store(BOOT_MAGIC, Ordering::Relaxed);
    header.abi.store(u32::from(ABI_MAJOR) << 16 | u32::from(ABI_MINOR), Ordering::Relaxed);
    header.vcpus.store(vcpus, Ordering::Relaxed);
    header.layout_hash.store(LAYOUT_HASH, Ordering::Relaxed);
    // The process that reads it starts later.
    header.ram_bytes.store(ram_bytes, Ordering::Relaxed);
}

/// How far the boot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootState {
    /// The device is starting; this many vCPUs are ready.
    Starting(usize),
    /// All are.
    Ready,
    /// The image refuses the header: offset of the field, and its value.
    Refused(u64, u64),
}

/// See [`BootState`].
#[must_use]
pub fn state(block: &BootBlock, vcpus: u32) -> BootState {
    // Acquire: pairs with the Release stores in the image's `vcpu::accept_boot_header`.
    if block.firmware.state.load(Ordering::Acquire) == FW_REFUSED {
        let [field, found] = &block.firmware.refused;
        return BootState::Refused(field.load(Ordering::Relaxed), found.load(Ordering::Relaxed));
    }
    let lines = block.vcpus.iter().take(vcpus as usize);
    // Acquire: pairs with the Release store of state in the image's `serve::boot`.
    let ready = lines.filter(|line| line.state.load(Ordering::Acquire) != VCPU_OFF).count();
    if ready == vcpus as usize { BootState::Ready } else { BootState::Starting(ready) }
}

/// Whether the first `instances` vCPUs have done their part of an order.
#[must_use]
pub fn have_done(block: &BootBlock, instances: u32, order: &LaunchOrder) -> bool {
    // Acquire: pairs with the Release store of done in the image's `serve::finish`.
    let done = |line: &VcpuLine| line.done.load(Ordering::Acquire) == order.sequence;
    block.vcpus.iter().take(instances as usize).all(done)
}

/// Whether all vCPUs have taken up an order: none touches an earlier arena any more.
#[must_use]
pub fn have_seen(block: &BootBlock, vcpus: u32, order: &LaunchOrder) -> bool {
    // Acquire: pairs with the Release store of seen in the image's `serve::serve`.
    let seen = |line: &VcpuLine| line.seen.load(Ordering::Acquire) == order.sequence;
    block.vcpus.iter().take(vcpus as usize).all(seen)
}

/// What a vCPU does, in words.
#[must_use]
pub fn describe(line: &VcpuLine) -> String {
    let role = line.role.load(Ordering::Relaxed);
    match line.state.load(Ordering::Relaxed) {
        VCPU_OFF => "not started".to_owned(),
        VCPU_INSTANCE => format!("AICPU instance {role}"),
        VCPU_WORKER => format!("worker {role}"),
        VCPU_DEAD => "dead after a double exception".to_owned(),
        _ => "waits for a launch".to_owned(),
    }
}

/// The last exception of one vCPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exception {
    /// The vCPU.
    pub vcpu: usize,
    /// How many this vCPU has had, this one among them.
    pub count: u32,
    /// What it was: `VCPU_INSTANCE`, `VCPU_WORKER`, `VCPU_READY`.
    pub state: u32,
    /// Number of the instance or worker.
    pub role: u32,
    /// The vector; 16: a panic.
    pub vector: u32,
    /// `ESR_EL1`.
    pub syndrome: u64,
    /// `ELR_EL1`.
    pub pc: u64,
    /// `FAR_EL1`.
    pub fault_address: u64,
    /// `SPSR_EL1`.
    pub status: u64,
    /// The stack pointer.
    pub sp: u64,
    /// `x0` .. `x30`.
    pub x: [u64; 31],
}

impl Exception {
    /// Whether the console has the line that the vCPU writes of it.
    #[must_use]
    pub fn is_reported_in(&self, console: &str) -> bool {
        let start = format!("vcpu {}: ", self.vcpu);
        let lines = console.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        lines.filter(|line| line.starts_with(&start)).count() >= self.count as usize
    }

    /// The exception class, in words.
    #[must_use]
    pub const fn class(&self) -> &'static str {
        match (self.syndrome >> 26) & 0x3F {
            0x00 => "an undefined instruction",
            0x07 => "floating point that is not enabled",
            0x20 | 0x21 => "an instruction that cannot be fetched",
            0x22 => "a misaligned instruction address",
            0x24 | 0x25 => "a data access that is not allowed",
            0x26 => "a misaligned stack pointer",
            0x2C => "a floating-point exception",
            0x2F => "an SError",
            0x3C => "a breakpoint instruction",
            _ => "an exception",
        }
    }
}

impl fmt::Display for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { vcpu, pc, fault_address, syndrome, sp, .. } = self;
        write!(f, "vCPU {vcpu}: {} at pc {pc:#x}, address {fault_address:#x}", self.class())?;
        write!(f, " (ESR_EL1 {syndrome:#x}, SP {sp:#x})")?;
        for (number, value) in self.x.iter().enumerate() {
            let separator = if number % 4 == 0 { "\n   " } else { "" };
            write!(f, "{separator} x{number:<2} {value:#018x}")?;
        }
        Ok(())
    }
}

/// The exceptions that vCPUs have recorded.
#[must_use]
pub fn exceptions(block: &BootBlock) -> Vec<Exception> {
    let frames = block.exceptions.iter().enumerate();
    frames.filter_map(|(vcpu, frame)| read_exception(vcpu, frame)).collect()
}

fn read_exception(vcpu: usize, frame: &ExceptionFrame) -> Option<Exception> {
    // Acquire: pairs with the Release store of stamp in the image's `exception::keep`.
    let count = frame.stamp.load(Ordering::Acquire);
    (count > 0).then(|| Exception {
        vcpu,
        count,
        state: frame.state.load(Ordering::Relaxed),
        role: frame.role.load(Ordering::Relaxed),
        vector: frame.vector.load(Ordering::Relaxed),
        syndrome: frame.syndrome.load(Ordering::Relaxed),
        pc: frame.pc.load(Ordering::Relaxed),
        fault_address: frame.fault_address.load(Ordering::Relaxed),
        status: frame.status.load(Ordering::Relaxed),
        sp: frame.sp.load(Ordering::Relaxed),
        x: std::array::from_fn(|n| frame.x[n].load(Ordering::Relaxed)),
    })
}
