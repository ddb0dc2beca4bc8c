//! The backend `qemu`.
//!
//! ```text
//! (no machine) --ready--> booted --launch, wait_alive--> landed --let_go--> booted
//!       ^                                  |                       |
//!       '---------- ended or hangs: put down, FW_LOST -------------'
//! ```
//! A machine that is put down is gone: nothing writes to GM any more, so that no arena is ever lost. The next run
//! boots another one on the same RAM, and buffers keep what they hold.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pto_abi::arena::Arena;
use pto_abi::fw_image::qemu;
use pto_abi::runtime::{Epitaph, InstanceLine};
use pto_abi::sync::{AtomicU64, Ordering};
use pto_abi::{Fault, FuncId, GmAddr};

use super::placed::{PlacedKernels, check_images};
use crate::backend::{Backend, RunOutcome, StartTimes};
use crate::error::Error;
use crate::fw::{FlashDevice, Image, Tracing};
use crate::gm::Gm;
use crate::kernel::Kernel;
use crate::memory::Memory;
use crate::qemu::machine::{QemuError, QemuMachine, QemuOptions, Timeouts};
use crate::qemu::memory::{BYTES_BEFORE_GM, MAX_GM_BYTES, Ram, nameless_file};
use crate::qemu::process::{Execution, PROGRAM};

/// The device's name.
pub(crate) const NAME: &str = "qemu";
/// What instances may take to stop cores, on top of the bring-up budget.
const GRACE: Duration = Duration::from_secs(2);
/// How long a core may take to leave an arena: kernels that return do so before.
const LET_GO_BUDGET: Duration = Duration::from_secs(1);
/// Lines of the console that a report shows.
const CONSOLE_LINES: usize = 20;

/// What an emulated device consists of. Each AICPU instance and each core is one vCPU; together they are at
/// most 64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QemuDeviceOptions {
    /// AICPU instances, 1 to 16; a run may use fewer.
    pub aicpu: u32,
    /// Cube cores.
    pub aic: u32,
    /// Vector cores.
    pub aiv: u32,
    /// Size of GM in bytes, rounded up to 2 MiB; up to 8 GiB less 36 MiB. Memory is used as it is touched.
    pub gm_bytes: u64,
    /// How long the machine may take to boot.
    pub boot_budget: Duration,
    /// QEMU; a name is looked for in PATH.
    pub program: PathBuf,
    /// Where this process has the machine's memory.
    pub placement: Placement,
}

/// Where a process has the memory of an emulated machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// Wherever there is room: addresses of the device are none of the process.
    #[default]
    Anywhere,
    /// At the addresses that it has in the machine, so that the process reads and writes it by them, as on the simulator. One machine of a
    /// process can be so.
    InPlace,
}

impl Default for QemuDeviceOptions {
    /// A small die: 4 AICPU, 4 AIC, 8 AIV and 1 GiB. Four clusters, because each scheduler needs one.
    fn default() -> Self {
        Self {
            aicpu: 4,
            aic: 4,
            aiv: 8,
            gm_bytes: 1 << 30,
            boot_budget: Duration::from_secs(10),
            program: PROGRAM.into(),
            placement: Placement::default(),
        }
    }
}

impl QemuDeviceOptions {
    /// The size of GM that the machine gets: what is asked for, rounded up.
    ///
    /// # Errors
    /// `QemuGm`: no machine has so much.
    pub fn given_gm_bytes(&self) -> Result<u64, Error> {
        let bytes = self.gm_bytes.max(1).checked_next_multiple_of(qemu::RAM_GRANULE);
        let bytes = bytes.filter(|bytes| *bytes <= MAX_GM_BYTES);
        bytes.ok_or(Error::QemuGm { bytes: self.gm_bytes })
    }

    /// The machine for it, which boots `image`.
    fn machine(&self, image: &Image) -> Result<QemuOptions, Error> {
        let vcpus = [self.aic, self.aiv].iter().try_fold(self.aicpu, |sum, n| sum.checked_add(*n));
        let most = u32::try_from(qemu::MAX_VCPUS).unwrap_or(u32::MAX);
        let (aicpu, aic, aiv) = (self.aicpu, self.aic, self.aiv);
        let vcpus = vcpus.filter(|sum| aicpu > 0 && aic + aiv > 0 && *sum <= most);
        let vcpus = vcpus.ok_or(Error::QemuCores { aicpu, aic, aiv })?;
        let image_file = nameless_file("pto-qemu-image", image.bytes())
            .map_err(|source| QemuError::Io { what: "keeping the image", source })?;
        Ok(QemuOptions {
            image: PathBuf::from(&image.name),
            image_file: Some(Arc::new(image_file)),
            vcpus,
            ram_bytes: self.given_gm_bytes()? + BYTES_BEFORE_GM,
            boot_budget: self.boot_budget,
            execution: Execution::Parallel,
            program: self.program.clone(),
            extra: Vec::new(),
        })
    }
}

/// An emulated machine, and what it takes to start another one.
pub(crate) struct Qemu {
    options: QemuOptions,
    ram: Arc<Ram>,
    machine: Option<QemuMachine>,
    builders: Vec<String>,
    tracing: Tracing,
    kernels: PlacedKernels,
    times: StartTimes,
    post_mortem: Vec<String>,
}

impl Qemu {
    /// Boots `image` and puts the kernels into GM. Returns the memory as well.
    pub(crate) fn open(
        options: &QemuDeviceOptions,
        image: &Image,
        blob: &Image,
    ) -> Result<(Self, Arc<Memory>), Error> {
        check_images(FlashDevice::Qemu, image, blob)?;
        let machine_options = options.machine(image)?;
        machine_options.check()?;
        let ram = match options.placement {
            Placement::Anywhere => machine_options.make_ram()?,
            Placement::InPlace => machine_options.make_ram_in_place()?,
        };
        let memory = Arc::new(Memory::of(Gm::Machine(Arc::clone(&ram))));
        let kernels = PlacedKernels::place(&memory, blob)?;
        let mut device = Self {
            options: machine_options,
            ram,
            machine: None,
            builders: image.builders.clone(),
            tracing: image.tracing,
            kernels,
            times: StartTimes::default(),
            post_mortem: Vec::new(),
        };
        device.ready()?;
        Ok((device, memory))
    }

    /// The machine, started if there is none.
    fn ready(&mut self) -> Result<&mut QemuMachine, QemuError> {
        let machine = match self.machine.take() {
            Some(machine) => machine,
            None => {
                let machine = QemuMachine::boot_on(&self.options, &self.ram)?;
                let boot = machine.boot_times();
                self.times = StartTimes {
                    boot: boot.total,
                    guest_boot: boot.guest,
                    ..StartTimes::default()
                };
                machine
            }
        };
        Ok(self.machine.insert(machine))
    }

    fn launch(&mut self, arena: &Arena<'static>) -> Result<(), QemuError> {
        let mut times = self.times;
        let machine = self.ready()?;
        let (config, epoch) = (arena.config(), arena.header().bring_up_epoch);
        let timeouts = Timeouts {
            silence: Duration::from_nanos(config.stall_budget_ns) + GRACE,
            after_fault: Duration::from_nanos(config.bring_up_budget_ns) + GRACE,
        };
        let workers = arena.workers().get(..config.worker_count as usize).unwrap_or(&[]);
        let start = Instant::now();
        let order = machine.launch(arena.window().address(), arena.window().bytes());
        let landed = machine.wait_alive(&order, arena, timeouts, || {
            let answered = |epoch_of: &AtomicEpoch| epoch_of.load(Ordering::Relaxed) == epoch;
            if times.handshake.is_none()
                && workers.iter().all(|lines| answered(&lines.worker.aicore_done))
            {
                times.handshake = Some(start.elapsed());
            }
            let ran = |counter: &AtomicU64| counter.load(Ordering::Relaxed) > 0;
            if times.first_task.is_none()
                && workers.iter().any(|lines| ran(&lines.worker.tasks_run))
            {
                times.first_task = Some(start.elapsed());
            }
        });
        (self.times.handshake, self.times.first_task) = (times.handshake, times.first_task);
        landed
    }

    /// What the machine has left of a fault: exceptions with their registers, the console.
    fn collect(&mut self, error: Option<&QemuError>) {
        self.post_mortem =
            error.map(|error| format!("The machine: {error}.")).into_iter().collect();
        let Some(machine) = &self.machine else { return };
        let exceptions = machine.exceptions();
        self.post_mortem.extend(exceptions.iter().map(ToString::to_string));
        let console = machine.console_with(&exceptions);
        // An error shows the console itself.
        if error.is_none() && !console.is_empty() {
            let lines: Vec<_> = console.lines().collect();
            let shown = lines.get(lines.len().saturating_sub(CONSOLE_LINES)..).unwrap_or(&lines);
            self.post_mortem.push(format!("The console: {}", shown.join("\n    ")));
        }
    }
}

type AtomicEpoch = pto_abi::sync::AtomicU32;

/// What the host can say when the machine cannot any more.
fn write_epitaph(arena: &Arena<'_>, fault: Fault) {
    let sum = |counter: fn(&InstanceLine) -> &AtomicU64| {
        let counts = arena.instances().iter().map(|line| counter(line).load(Ordering::Relaxed));
        counts.fold(0, u64::wrapping_add)
    };
    arena.set_epitaph(&Epitaph {
        added: sum(|line| &line.added),
        published: sum(|line| &line.published),
        completed: sum(|line| &line.completed),
        ..Epitaph::of(fault)
    });
    arena.fault().seal_epitaph();
}

impl Backend for Qemu {
    fn name(&self) -> &'static str {
        NAME
    }

    fn builders(&self) -> Vec<String> {
        self.builders.clone()
    }

    fn kernel_address(&self, kernel: &Kernel) -> Result<GmAddr, Error> {
        self.kernels.address(kernel, NAME)
    }

    fn tracing(&self) -> Tracing {
        self.tracing
    }

    fn flashed_kernels(&self) -> Vec<(FuncId, Kernel)> {
        self.kernels.all()
    }

    fn run(&mut self, arena: Arena<'static>) -> RunOutcome {
        let start = Instant::now();
        self.post_mortem.clear();
        let launched = self.launch(&arena);
        let makespan = start.elapsed();
        if let Err(error) = launched {
            self.collect(Some(&error));
            // Ends the machine: from here on only the host writes to GM.
            self.machine = None;
            arena.fault().raise(Fault::FW_LOST);
            if !arena.fault().epitaph_is_sealed() {
                write_epitaph(&arena, arena.fault().first().unwrap_or(Fault::FW_LOST));
            }
        }
        let fault = arena.fault().first();
        if fault.is_some() && self.machine.is_some() {
            self.collect(None);
        }
        RunOutcome { fault, makespan, arena_lost: false }
    }

    fn release(&mut self) -> bool {
        let stuck = |machine: &mut QemuMachine| machine.let_go(LET_GO_BUDGET).is_err();
        if self.machine.as_mut().is_some_and(stuck) {
            // A kernel that does not return goes with its machine.
            self.machine = None;
        }
        true
    }

    fn renew(&mut self) -> bool {
        // The emulated machine ends, and its cores with it.
        self.machine = None;
        true
    }

    fn post_mortem(&self) -> &[String] {
        &self.post_mortem
    }

    fn process_id(&self) -> Option<u32> {
        self.machine.as_ref().map(|machine| machine.process().id())
    }

    fn start_times(&self) -> Option<StartTimes> {
        Some(self.times)
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_GM_BYTES, QemuDeviceOptions};

    #[test]
    fn the_limit_in_the_error_is_accepted() {
        let of = |gm_bytes| {
            QemuDeviceOptions { gm_bytes, ..QemuDeviceOptions::default() }.given_gm_bytes()
        };
        assert_eq!(of(MAX_GM_BYTES).unwrap(), MAX_GM_BYTES);
        assert_eq!(MAX_GM_BYTES, (8 << 30) - (36 << 20), "as the message says it");
        let refused = of(MAX_GM_BYTES + 1).unwrap_err().to_string();
        assert!(refused.contains(&MAX_GM_BYTES.to_string()), "{refused}");
        assert_eq!(of(1000).unwrap(), 2 << 20, "rounded up");
    }
}
