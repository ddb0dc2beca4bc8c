//! One launch: what goes to the device, in which order, and the wait for it.
//!
//! ```text
//! arena and launch words to the device -> AICore launch, on a new stream -> AICPU launch -> wait: AICPU, then AICore
//!    -> the arena comes back
//! ```
//! The AICores are launched first: they wait for a greeting, and the greetings of the AICPUs come at once.

use std::mem::offset_of;
use std::time::{Duration, Instant};

use pto_abi::arena::Arena;
use pto_abi::handshake::{CONTROL_RUN, DOORBELL_IDLE, STATUS_EXITED};
use pto_abi::kinds::RunFlags;
use pto_abi::launch_words::{Architecture, LAUNCH_MAGIC, LaunchPlan, LaunchTickets, LaunchWords};
use pto_abi::layout::LAYOUT_HASH;
use pto_abi::runtime::{ABI_MAJOR, ABI_MINOR};
use pto_abi::sync::Ordering;
use pto_abi::{Fault, GmAddr};

use super::bring_up;
use super::calls::Handle;
use super::cores::Cores;
use super::dma::Dma;
use super::error::A2a3Error;
use super::exchange;
use super::layouts::{ArgsEx, TaskConfig};
use super::limits::Limits;
use super::port::Port;

/// Start only when all blocks fit.
const ALL_BLOCKS_AT_ONCE: u8 = 1;
/// What `aclrtStreamQuery` says of a stream that is done.
const COMPLETE: i32 = 0;
const SYNC_TIMEOUT: i32 = 507_046;
/// Looks at a stream: the first pause, and the longest.
const FIRST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);
/// How often the progress of a run is fetched, and the lines of its cores.
const PROGRESS_EVERY: Duration = Duration::from_millis(20);

/// How long cores may go on after the AICPUs have ended, which wait for them to leave.
const CORES_LEAVE_WITHIN: Duration = Duration::from_secs(2);

const QUERY: &str = "aclrtStreamQuery";
const AICPUS: &str = "waiting for the AICPUs";
const AICORES: &str = "waiting for the AICores";

/// What a launch needs of the device.
pub(crate) struct Ready<'a> {
    pub(crate) port: &'a Port,
    pub(crate) cores: &'a Cores,
    /// GM: its address and size.
    pub(crate) gm: (GmAddr, u64),
    /// Where the launch words are.
    pub(crate) words: GmAddr,
    /// The AICPUs' stream.
    pub(crate) stream: Handle,
    /// The firmware's entry.
    pub(crate) run: Handle,
    /// The AICores' code.
    pub(crate) kernels: Handle,
    /// The arena's memory was zeroed since the last launch.
    pub(crate) is_fresh: bool,
}

impl Ready<'_> {
    /// Runs an arena: what the launch words say of a fault that no arena can hold, or zero.
    pub(crate) fn run(&self, arena: &Arena<'static>) -> Result<u32, A2a3Error> {
        let limits = prepare(arena);
        self.port.enter("launching")?;
        let window = arena.window();
        // What the device writes there decides nothing of what is copied.
        let (fetched, of_fault) = (exchange::fetched(arena), exchange::fetched_of_fault(arena));
        exchange::send(self.port, &window, exchange::sent(arena))?;
        self.send_words(arena)?;
        // SAFETY: takes a number.
        let code = unsafe { (self.port.calls.set_op_timeout)(limits.launch_s) };
        self.port.check("setting the driver's time-out", "aclrtSetOpExecuteTimeOut", code)?;
        let cores = self.port.stream("making the AICores' stream")?;
        let landed = self.launch_and_wait(arena, cores, limits);
        if let Err(A2a3Error::CoresLeft { .. }) = landed {
            // The firmware is done: what it has left says why. A fault of the launch words is one of the arena then.
            exchange::fetch(self.port, &window, [fetched, of_fault].concat())?;
            if let Some(fault) = Fault::from_code(self.refused()?) {
                arena.fault().raise(fault);
            }
            return landed.and(Ok(0));
        }
        if landed.is_err() {
            // What is known of the cores is for the report; most devices refuse the copy.
            let lines = vec![exchange::cores(self.cores.positions().len())];
            if let Err(error) = exchange::fetch(self.port, &window, lines) {
                log::debug!("the lines of the cores stay as they were copied last: {error}");
            }
            // The stream goes with the reset.
            return landed.and(Ok(0));
        }
        self.port.end_stream("ending the AICores' stream", cores)?;
        exchange::fetch(self.port, &window, fetched)?;
        if arena.fault().first().is_some() {
            exchange::fetch(self.port, &window, of_fault)?;
        }
        self.refused()
    }

    fn launch_and_wait(
        &self,
        arena: &Arena<'static>,
        cores: Handle,
        limits: Limits,
    ) -> Result<(), A2a3Error> {
        self.launch_cores(cores)?;
        let instances = arena.config().aicpu_instances;
        let step = "launching the AICPUs";
        bring_up::launch(self.port, self.run, instances, self.stream, self.words, step)?;
        let deadline = Instant::now() + limits.stream;
        let streams = [(self.stream, AICPUS), (cores, AICORES)];
        let fetched = Instant::now();
        let mut watch = Watch {
            ready: self,
            arena,
            streams,
            deadline,
            fetched,
            has_told: false,
            aicpus_ended: None,
        };
        watch.wait()
    }

    fn launch_cores(&self, stream: Handle) -> Result<(), A2a3Error> {
        const STEP: &str = "launching the AICores";
        let (mut control, mut bytes) = (0, 0);
        // SAFETY: places for two numbers.
        let code = unsafe { (self.port.calls.c2c_address)(&raw mut control, &raw mut bytes) };
        self.port.check(STEP, "rtGetC2cCtrlAddr", code)?;
        let mut words = [control, self.words.0];
        let mut args = ArgsEx::of(&mut words);
        let config = TaskConfig { schedule_mode: ALL_BLOCKS_AT_ONCE, ..TaskConfig::default() };
        let blocks = u32::try_from(self.cores.clusters.len()).unwrap_or(u32::MAX);
        let (kernels, call) = (self.kernels, self.port.calls.launch_with_handle);
        let nothing = std::ptr::null_mut();
        // SAFETY: the structures are as the vendor knows them, and the call copies the arguments.
        let code =
            unsafe { call(kernels, 0, blocks, &raw mut args, nothing, stream, &raw const config) };
        self.port.check(STEP, "rtKernelLaunchWithHandleV2", code)
    }

    fn send_words(&self, arena: &Arena<'static>) -> Result<(), A2a3Error> {
        let positions = self.cores.positions();
        let window = arena.window();
        let plan = LaunchPlan {
            magic: LAUNCH_MAGIC,
            abi_major: ABI_MAJOR,
            abi_minor: ABI_MINOR,
            words_bytes: u32::try_from(size_of::<LaunchWords>()).unwrap_or(u32::MAX),
            layout_hash: LAYOUT_HASH,
            arena_address: window.address(),
            arena_bytes: window.bytes(),
            gm_address: self.gm.0,
            gm_bytes: self.gm.1,
            registers_address: self.cores.registers,
            registers_bytes: self.cores.register_bytes,
            architecture: Architecture::A2A3.get(),
            core_count: u32::try_from(positions.len()).unwrap_or(u32::MAX),
            fresh_arena: u32::from(self.is_fresh),
            reserved_word: 0,
            reserved: [0; 5],
        };
        let mut words = [0_u64; size_of::<LaunchWords>() / 8];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        bytes[..size_of::<LaunchPlan>()].copy_from_slice(bytemuck::bytes_of(&plan));
        let of_cores: &[u8] = bytemuck::cast_slice(&positions);
        bytes[offset_of!(LaunchWords, cores)..][..of_cores.len()].copy_from_slice(of_cores);
        self.port.to_device(self.words, bytes)
    }

    /// The fault that no arena can hold; zero: none.
    fn refused(&self) -> Result<u32, A2a3Error> {
        let at = offset_of!(LaunchWords, tickets) + offset_of!(LaunchTickets, refused);
        let mut code = [0; 4];
        self.port.to_host(self.words.offset(at as u64), &mut code)?;
        Ok(u32::from_le_bytes(code))
    }
}

/// Makes the arena one that this device can run: each launch brings its cores up anew, and they leave at its end.
fn prepare(arena: &Arena<'static>) -> Limits {
    let mut config = arena.config();
    let limits = Limits::of(config.run_budget_ns);
    config.run_budget_ns = limits.run_budget_ns;
    config.flags &= !RunFlags::KEEP_CORES.bits();
    arena.set_config(&config);
    for lines in arena.workers() {
        // A core that starts must not find the greeting of an earlier bring-up, nor its own answer to it.
        lines.scheduler.aicpu_ready.store(0, Ordering::Relaxed);
        lines.scheduler.control.store(CONTROL_RUN, Ordering::Relaxed);
        lines.scheduler.doorbell.store(DOORBELL_IDLE, Ordering::Relaxed);
        lines.worker.aicore_done.store(0, Ordering::Relaxed);
        lines.worker.status.store(STATUS_EXITED, Ordering::Relaxed);
    }
    limits
}

/// The wait for a launch. Meanwhile the progress comes back, and a fault that another thread of the host raised goes there.
struct Watch<'a> {
    ready: &'a Ready<'a>,
    arena: &'a Arena<'static>,
    /// The streams of the launch, each with the step that waits for it.
    streams: [(Handle, &'static str); 2],
    deadline: Instant,
    fetched: Instant,
    has_told: bool,
    /// When the AICPUs were seen to have ended.
    aicpus_ended: Option<Instant>,
}

impl Watch<'_> {
    fn wait(&mut self) -> Result<(), A2a3Error> {
        let mut pause = FIRST_PAUSE;
        while let Some(step) = self.unfinished()? {
            if step == AICORES {
                let since = *self.aicpus_ended.get_or_insert_with(Instant::now);
                if since.elapsed() > CORES_LEAVE_WITHIN {
                    return Err(A2a3Error::CoresLeft { after_ms: since.elapsed().as_millis() });
                }
            }
            if Instant::now() > self.deadline {
                let message = "the stream limit of this host is over".to_owned();
                return Err(A2a3Error::Call { step, call: QUERY, code: SYNC_TIMEOUT, message });
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
            if let Err(error) = self.look() {
                // A device that failed since the question above refuses the copy; one of the streams says why it failed.
                self.unfinished()?;
                return Err(error);
            }
        }
        Ok(())
    }

    /// The step of the first stream that still works. Both are asked each time: a failed core ends its own stream,
    /// and the AICPUs' stream goes on until the firmware notices.
    fn unfinished(&self) -> Result<Option<&'static str>, A2a3Error> {
        let port = self.ready.port;
        let mut first = None;
        for (stream, step) in self.streams {
            let mut status = COMPLETE;
            // SAFETY: the stream exists, and there is a place for a number.
            let code = unsafe { (port.calls.query_stream)(stream, &raw mut status) };
            port.check(step, QUERY, code)?;
            if status != COMPLETE {
                first = first.or(Some(step));
            }
        }
        Ok(first)
    }

    fn look(&mut self) -> Result<(), A2a3Error> {
        let window = self.arena.window();
        if !self.has_told && self.arena.fault().first().is_some() {
            self.has_told = true;
            return exchange::send(self.ready.port, &window, vec![exchange::fault()]);
        }
        if self.fetched.elapsed() >= PROGRESS_EVERY {
            self.fetched = Instant::now();
            let cores = exchange::cores(self.ready.cores.positions().len());
            return exchange::fetch(self.ready.port, &window, vec![exchange::progress(), cores]);
        }
        Ok(())
    }
}
