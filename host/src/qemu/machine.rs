//! The emulated machine that the backend `qemu` owns: boots it, launches runs, and waits for their end.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pto_abi::arena::Arena;
use pto_abi::fw_image::{BootBlock, LaunchOrder, VCPU_DEAD, qemu};
use pto_abi::sync::Ordering;
use pto_abi::{GmAddr, GmWindow};

use super::boot::{self, BootState, Exception};
use super::memory::Ram;
use super::process::{self, Execution, PROGRAM, Process, ProcessOptions};

/// How to boot.
#[derive(Clone, Debug)]
pub struct QemuOptions {
    /// The firmware image.
    pub image: PathBuf,
    /// The image as an open file, which is booted instead of the one at `image`.
    pub image_file: Option<Arc<OwnedFd>>,
    /// vCPUs: AICPU instances and workers together.
    pub vcpus: u32,
    /// Size of RAM, a multiple of 2 MiB.
    pub ram_bytes: u64,
    /// How long the boot may take.
    pub boot_budget: Duration,
    /// How guest code is executed.
    pub execution: Execution,
    /// QEMU; a name is looked for in PATH.
    pub program: PathBuf,
    /// Further arguments of QEMU.
    pub extra: Vec<OsString>,
}

impl QemuOptions {
    /// The image on a machine of `vcpus` vCPUs and 288 MiB, of which stacks and image take 36.
    #[must_use]
    pub fn new(image: PathBuf, vcpus: u32) -> Self {
        Self {
            image,
            image_file: None,
            vcpus,
            ram_bytes: 288 << 20,
            boot_budget: Duration::from_secs(10),
            execution: Execution::Parallel,
            program: PROGRAM.into(),
            extra: Vec::new(),
        }
    }
}

impl QemuOptions {
    /// Whether there can be such a machine; where QEMU is.
    ///
    /// # Errors
    /// `NoQemu`, `Vcpus`, `RamBytes`.
    pub fn check(&self) -> Result<PathBuf, QemuError> {
        if self.vcpus == 0 || self.vcpus as usize > qemu::MAX_VCPUS {
            return Err(QemuError::Vcpus(self.vcpus));
        }
        let smallest = qemu::GM_ADDRESS - qemu::RAM_ADDRESS + qemu::RAM_GRANULE;
        let is_usable = (smallest..=qemu::MAX_RAM_BYTES).contains(&self.ram_bytes)
            && self.ram_bytes.is_multiple_of(qemu::RAM_GRANULE);
        if !is_usable {
            return Err(QemuError::RamBytes(self.ram_bytes));
        }
        process::find(&self.program).ok_or_else(|| QemuError::NoQemu(self.program.clone()))
    }

    /// RAM for it.
    ///
    /// # Errors
    /// `Io`.
    pub fn make_ram(&self) -> Result<Arc<Ram>, QemuError> {
        let io = |source| QemuError::Io { what: "making the machine's RAM", source };
        Ram::new(self.ram_bytes).map(Arc::new).map_err(io)
    }

    /// RAM for it at the addresses of this process that it has in the machine.
    ///
    /// # Errors
    /// `Io`.
    pub fn make_ram_in_place(&self) -> Result<Arc<Ram>, QemuError> {
        let what = "making the machine's RAM at its own addresses";
        let io = |source| QemuError::Io { what, source };
        Ram::in_place(self.ram_bytes).map(Arc::new).map_err(io)
    }
}

/// Why the machine does not do what it should.
#[derive(thiserror::Error)]
pub enum QemuError {
    /// No QEMU.
    #[error("{0} is not installed: `apt-get install qemu-system-arm` brings it")]
    NoQemu(PathBuf),
    /// More vCPUs than the image provides for, or none.
    #[error("the machine cannot have {0} vCPUs: use 1 to {max}", max = qemu::MAX_VCPUS)]
    Vcpus(u32),
    /// RAM that cannot be mapped.
    #[error(
        "the machine cannot have {0} bytes of RAM: give a multiple of 2 MiB between 10 MiB and 8 GiB"
    )]
    RamBytes(u64),
    /// The system refuses.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// What the system says.
        source: std::io::Error,
    },
    /// The image refuses the boot header.
    #[error(
        "the image refuses the boot header: {found:#x} at offset {field}; image and host are of different releases"
    )]
    Refused {
        /// Offset of the field in `BootHeader`.
        field: u64,
        /// Its value.
        found: u64,
    },
    /// The process ended.
    #[error("QEMU ended ({status}) {when}; its console said:\n{console}")]
    Ended {
        /// In the course of what.
        when: &'static str,
        /// How.
        status: String,
        /// What the console said.
        console: String,
    },
    /// No answer within the budget.
    #[error(
        "the machine gave no answer {when} within {waited:?}: {vcpus}; the console said:\n{console}"
    )]
    Hangs {
        /// In the course of what.
        when: &'static str,
        /// For how long.
        waited: Duration,
        /// What each vCPU does.
        vcpus: String,
        /// What the console said.
        console: String,
    },
}

crate::debug_as_display::debug_as_display!(QemuError);

/// How long a run is waited for.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// While nothing at all moves on the machine.
    pub silence: Duration,
    /// After the run's fault.
    pub after_fault: Duration,
}

/// When the machine was last seen to live.
struct Watchdog {
    timeouts: Timeouts,
    beat: Vec<u64>,
    beat_at: Instant,
    fault_at: Option<Instant>,
}

impl Watchdog {
    /// Looks at the run; whether nothing has moved for too long.
    fn look(&mut self, machine: &QemuMachine, arena: &Arena<'_>) -> bool {
        let beat = machine.beat(arena);
        if beat != self.beat {
            (self.beat, self.beat_at) = (beat, Instant::now());
        }
        if self.fault_at.is_none() && arena.fault().first().is_some() {
            self.fault_at = Some(Instant::now());
        }
        let after_fault = |at: Instant| at.elapsed() > self.timeouts.after_fault;
        self.beat_at.elapsed() > self.timeouts.silence || self.fault_at.is_some_and(after_fault)
    }
}

/// How long the boot took.
#[derive(Clone, Copy, Debug)]
pub struct BootTimes {
    /// From the start of the process until all vCPUs are ready.
    pub total: Duration,
    /// The part of the boot time from the first instruction on.
    pub guest: Duration,
}

/// A machine that has booted. The process ends with it.
pub struct QemuMachine {
    // Before `ram`: the process goes first.
    process: Process,
    ram: Arc<Ram>,
    vcpus: u32,
    sequence: u32,
    boot: BootTimes,
}

impl QemuMachine {
    /// Starts a machine with RAM of its own, and waits until all its vCPUs are ready.
    ///
    /// # Errors
    /// See [`QemuError`].
    pub fn boot(options: &QemuOptions) -> Result<Self, QemuError> {
        options.check()?;
        Self::boot_on(options, &options.make_ram()?)
    }

    /// Starts a machine on RAM that may have been another one's: what is in GM stays.
    ///
    /// # Errors
    /// See [`QemuError`].
    pub fn boot_on(options: &QemuOptions, ram: &Arc<Ram>) -> Result<Self, QemuError> {
        let program = options.check()?;
        let start = Instant::now();
        ram.clear_boot_block();
        let block = ram.boot_block().ok_or(QemuError::RamBytes(ram.bytes()))?;
        boot::write_header(block, options.vcpus, ram.bytes());
        let process = ProcessOptions {
            program,
            image: options.image.clone(),
            image_file: options.image_file.clone(),
            vcpus: options.vcpus,
            execution: options.execution,
            extra: options.extra.clone(),
        };
        let io = |source| QemuError::Io { what: "starting QEMU", source };
        let process = Process::start(&process, ram).map_err(io)?;
        let none = BootTimes { total: Duration::ZERO, guest: Duration::ZERO };
        let ram = Arc::clone(ram);
        let mut machine = Self { process, ram, vcpus: options.vcpus, sequence: 0, boot: none };
        machine.await_boot(start, options.boot_budget)?;
        Ok(machine)
    }

    fn await_boot(&mut self, start: Instant, budget: Duration) -> Result<(), QemuError> {
        self.wait_until("of the boot", budget, |machine| {
            match boot::state(machine.block(), machine.vcpus) {
                BootState::Starting(_) => Ok(false),
                BootState::Ready => Ok(true),
                BootState::Refused(field, found) => Err(QemuError::Refused { field, found }),
            }
        })?;
        self.boot = BootTimes { total: start.elapsed(), guest: self.guest_boot_time() };
        Ok(())
    }

    fn guest_boot_time(&self) -> Duration {
        let firmware = &self.block().firmware;
        let lines = self.block().vcpus.iter().take(self.vcpus as usize);
        let ready = lines.map(|line| line.ready_ticks.load(Ordering::Relaxed)).max().unwrap_or(0);
        self.duration(ready.saturating_sub(firmware.entry_ticks.load(Ordering::Relaxed)))
    }

    /// Ticks of the machine's clock as time.
    #[must_use]
    pub fn duration(&self, ticks: u64) -> Duration {
        let hz = self.block().firmware.clock_hz.load(Ordering::Relaxed).max(1);
        let ns = u128::from(ticks) * 1_000_000_000 / u128::from(hz);
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// How long the boot took.
    #[must_use]
    pub const fn boot_times(&self) -> BootTimes {
        self.boot
    }

    /// How many vCPUs it has.
    #[must_use]
    pub const fn vcpus(&self) -> u32 {
        self.vcpus
    }

    /// GM.
    ///
    /// # Panics
    /// Never: `boot` has checked the size of RAM.
    #[must_use]
    pub fn gm(&self) -> GmWindow<'_> {
        self.ram.gm().expect("boot has checked the size of RAM")
    }

    /// The boot block.
    ///
    /// # Panics
    /// Never: `boot` has checked the size of RAM.
    #[must_use]
    pub fn block(&self) -> &BootBlock {
        self.ram.boot_block().expect("boot has checked the size of RAM")
    }

    /// Orders an arena, which must be complete, to be run.
    pub fn launch(&mut self, address: GmAddr, bytes: u64) -> LaunchOrder {
        self.sequence = self.sequence.checked_add(1).unwrap_or(1);
        let gm = self.gm();
        let order = LaunchOrder {
            sequence: self.sequence,
            arena_address: address,
            arena_bytes: bytes,
            gm_address: gm.address(),
            gm_bytes: gm.bytes(),
        };
        self.block().launch.post(&order);
        order
    }

    /// Waits until every AICPU instance has done its part of an order.
    ///
    /// # Errors
    /// `Ended`, `Hangs`: the machine must be replaced.
    pub fn wait(
        &self,
        order: &LaunchOrder,
        arena: &Arena<'_>,
        budget: Duration,
    ) -> Result<(), QemuError> {
        let instances = arena.config().aicpu_instances.clamp(1, self.vcpus);
        self.wait_until("of the run", budget, |machine| {
            Ok(boot::have_done(machine.block(), instances, order))
        })
    }

    /// Waits until every AICPU instance has done its part of an order, for as long as the machine shows that it
    /// lives; `look` is called again and again.
    ///
    /// # Errors
    /// `Ended`; `Hangs`: nothing on the machine has moved for `timeouts.silence`, or an instance has not returned
    /// `timeouts.after_fault` after the run's fault. The machine must be replaced.
    pub fn wait_alive(
        &self,
        order: &LaunchOrder,
        arena: &Arena<'_>,
        timeouts: Timeouts,
        mut look: impl FnMut(),
    ) -> Result<(), QemuError> {
        let instances = arena.config().aicpu_instances.clamp(1, self.vcpus);
        let now = Instant::now();
        let mut watch = Watchdog { timeouts, beat: Vec::new(), beat_at: now, fault_at: None };
        self.poll(
            "of the run",
            |machine| {
                look();
                Ok(boot::have_done(machine.block(), instances, order))
            },
            |machine, _| watch.look(machine, arena),
        )
    }

    /// Counters of which one moves as long as the machine lives: idle vCPUs nap, the others count what they do. All of them, because one number made of them can be
    /// the same again.
    fn beat(&self, arena: &Arena<'_>) -> Vec<u64> {
        let vcpus = self.block().vcpus.iter().take(self.vcpus as usize);
        let vcpus = vcpus.flat_map(|line| [&line.naps, &line.step_ticks]);
        let instances = arena.instances().iter();
        let instances = instances.flat_map(|line| [&line.added, &line.published, &line.completed]);
        let workers = arena.workers().iter().take(self.vcpus as usize);
        let workers = workers.map(|lines| &lines.worker.tasks_run);
        let counters = vcpus.chain(instances).chain(workers);
        counters.map(|counter| counter.load(Ordering::Relaxed)).collect()
    }

    /// Lets all vCPUs let go of the last arena, so that it may be freed.
    ///
    /// # Errors
    /// `Ended`, `Hangs`: one of them does not, because it is in a kernel that does not return; the arena must
    /// not be reused, and the machine must be replaced.
    pub fn let_go(&mut self, budget: Duration) -> Result<(), QemuError> {
        let order = self.launch(GmAddr::NULL, 0);
        self.wait_until("of the last kernel", budget, |machine| {
            Ok(boot::have_seen(machine.block(), machine.vcpus, &order))
        })
    }

    /// The most bytes that a vCPU's stack has held so far: RAM was zeros, and what a stack held is still there.
    #[must_use]
    pub fn stack_used(&self, vcpu: u32) -> u64 {
        let part = qemu::STACKS_ADDRESS + u64::from(vcpu) * qemu::STACK_STRIDE - qemu::RAM_ADDRESS;
        let top = part + qemu::STACK_STRIDE - qemu::EXCEPTION_STACK_BYTES - qemu::STACK_GAP;
        let is_used = |at: &u64| self.ram.window().read::<u64>(*at) != Some(0);
        top - (part..top).step_by(8).find(is_used).unwrap_or(top)
    }

    /// The exceptions so far.
    #[must_use]
    pub fn exceptions(&self) -> Vec<Exception> {
        boot::exceptions(self.block())
    }

    /// What the console said so far.
    #[must_use]
    pub fn console(&self) -> String {
        self.process.console()
    }

    /// What the console said, with the line of every exception of `exceptions`: a vCPU writes its line after the
    /// fault is known, and the bytes come through a pipe. A machine that cannot write any more is waited for
    /// half a second long.
    #[must_use]
    pub fn console_with(&self, exceptions: &[Exception]) -> String {
        let start = Instant::now();
        loop {
            let console = self.console();
            if exceptions.iter().all(|exception| exception.is_reported_in(&console))
                || start.elapsed() > CONSOLE_TIMEOUT
            {
                return console;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The process, for tests that do violence to it.
    #[must_use]
    pub const fn process(&self) -> &Process {
        &self.process
    }

    fn wait_until(
        &self,
        when: &'static str,
        budget: Duration,
        is_so: impl Fn(&Self) -> Result<bool, QemuError>,
    ) -> Result<(), QemuError> {
        self.poll(when, is_so, |_, waited| waited > budget)
    }

    /// Polls: at first without a pause, then with growing ones.
    fn poll(
        &self,
        when: &'static str,
        mut is_so: impl FnMut(&Self) -> Result<bool, QemuError>,
        mut is_late: impl FnMut(&Self, Duration) -> bool,
    ) -> Result<(), QemuError> {
        let start = Instant::now();
        let mut polls = 0_u32;
        loop {
            if is_so(self)? {
                return Ok(());
            }
            polls = polls.saturating_add(1);
            if polls < 2_000 {
                std::hint::spin_loop();
                continue;
            }
            if let Some(status) = self.process.ended() {
                // It may have been so before the end.
                if is_so(self)? {
                    return Ok(());
                }
                let (status, console) = (status.to_string(), self.console());
                return Err(QemuError::Ended { when, status, console });
            }
            let waited = start.elapsed();
            if is_late(self, waited) || self.has_dead_vcpu() {
                let (vcpus, console) = (self.describe_vcpus(), self.console());
                return Err(QemuError::Hangs { when, waited, vcpus, console });
            }
            std::thread::sleep((waited / 16).clamp(MIN_PAUSE, MAX_PAUSE));
        }
    }

    fn has_dead_vcpu(&self) -> bool {
        let lines = self.block().vcpus.iter().take(self.vcpus as usize);
        // Acquire: pairs with the Release store in the image's `exception::die`.
        lines.into_iter().any(|line| line.state.load(Ordering::Acquire) == VCPU_DEAD)
    }

    fn describe_vcpus(&self) -> String {
        let lines = self.block().vcpus.iter().take(self.vcpus as usize).enumerate();
        let words = lines.map(|(vcpu, line)| format!("vCPU {vcpu} {}", boot::describe(line)));
        words.collect::<Vec<_>>().join(", ")
    }
}

/// How long the line of an exception may be on its way through the console.
const CONSOLE_TIMEOUT: Duration = Duration::from_millis(500);
/// A pause between polls: the machine runs on the same CPUs.
const MIN_PAUSE: Duration = Duration::from_micros(20);
const MAX_PAUSE: Duration = Duration::from_millis(1);
