//! What the environment says about the devices: `pto compat cann run` sets these variables from its options.

use std::sync::OnceLock;

/// Which device takes the calls: the library of entry points reads it first.
const DEVICE_VARIABLE: &str = "PTO_ACL_DEVICE";
/// How many devices the process sees.
pub(crate) const DEVICES_VARIABLE: &str = "PTO_ACL_DEVICES";
/// Bytes of memory of a device.
pub(crate) const MEMORY_VARIABLE: &str = "PTO_ACL_MEMORY";
/// The seed of devices in virtual time; without it devices run in real time.
pub(crate) const SEED_VARIABLE: &str = "PTO_ACL_SEED";
/// Microseconds that a kernel of the program takes in virtual time.
const KERNEL_VARIABLE: &str = "PTO_ACL_KERNEL_US";
/// The devices that a program sees, by their numbers, as for the vendor's library.
const VISIBLE_VARIABLE: &str = "ASCEND_RT_VISIBLE_DEVICES";

/// 1: a command of a stream that computes or moves bytes is over when its call returns. The vendor's frameworks know the variable.
const BLOCKING_VARIABLE: &str = "ASCEND_LAUNCH_BLOCKING";

/// The most devices of a process.
pub(crate) const MOST_DEVICES: usize = 64;

/// What the devices are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceKind {
    /// The simulator.
    Simulator,
    /// The emulated AArch64 machine. A process has one, because its memory is at the addresses of the machine.
    Qemu,
}

/// The settings of this process.
#[derive(Debug)]
pub(crate) struct Settings {
    /// What the devices are.
    pub(crate) machine: DeviceKind,
    /// The number of each device that the program sees.
    pub(crate) devices: Vec<u32>,
    /// Bytes of memory of each.
    pub(crate) memory: u64,
    /// The seed of virtual time.
    pub(crate) seed: Option<u64>,
    /// What a kernel of the program takes in virtual time, in nanoseconds; `None`: what the simulator takes for a kernel without a model.
    pub(crate) kernel_ns: Option<u64>,
    /// Whether the call of a kernel, an operator, a model or a copy returns when that is over.
    pub(crate) is_blocking: bool,
}

/// The settings, read once.
pub(crate) fn settings() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(|| {
        let is_qemu = std::env::var(DEVICE_VARIABLE).is_ok_and(|name| matches!(&*name, "qemu" | "virt"));
        let machine = if is_qemu { DeviceKind::Qemu } else { DeviceKind::Simulator };
        let (most, memory) = match machine {
            DeviceKind::Simulator => (MOST_DEVICES as u64, 16 << 30),
            DeviceKind::Qemu => (1, 4 << 30),
        };
        let asked = number(DEVICES_VARIABLE);
        if let Some(asked) = asked.filter(|asked| !(1..=most).contains(asked)) {
            eprintln!("pto cann: {DEVICES_VARIABLE} is {asked}, and a process has 1 to {most} of these devices; the nearest number holds");
        }
        let (seed, kernel_us) = (number(SEED_VARIABLE), number(KERNEL_VARIABLE));
        if seed.is_none() && kernel_us.is_some() {
            eprintln!("pto cann: {KERNEL_VARIABLE} has no effect, because the devices are in real time; set {SEED_VARIABLE} as well");
        }
        let count = asked.unwrap_or(8).clamp(1, most);
        let count = u32::try_from(count).unwrap_or(1);
        Settings {
            machine,
            devices: visible(count, std::env::var(VISIBLE_VARIABLE).ok().as_deref()),
            memory: number(MEMORY_VARIABLE).unwrap_or(memory),
            seed,
            kernel_ns: kernel_us.map(|microseconds| microseconds.saturating_mul(1000)),
            is_blocking: std::env::var(BLOCKING_VARIABLE).is_ok_and(|value| value == "1"),
        }
    })
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    let read = text.trim().parse();
    if read.is_err() {
        eprintln!("pto cann: {variable} is \"{text}\", which is no number; the default holds");
    }
    read.ok()
}

/// The numbers of the list before the first one that is not of a device.
fn visible(count: u32, list: Option<&str>) -> Vec<u32> {
    let Some(list) = list else { return (0..count).collect() };
    let numbers = list.split(',').map_while(|part| part.trim().parse().ok());
    numbers.take_while(|number| *number < count).collect()
}
