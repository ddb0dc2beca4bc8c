//! The backend `a2a3`.
//!
//! ```text
//! open: take the device -> memory -> cores -> firmware -> kernels -> standing
//! standing --run--> standing
//!     |  a call failed: FW_LOST, `recover` (reset by force, probe), and all of `open` again
//!     '-----> standing, with empty memory | gone: every further run says why
//! ```

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pto_abi::arena::Arena;
use pto_abi::launch_words::LaunchWords;
use pto_abi::runtime::Epitaph;
use pto_abi::{Fault, FuncId, GmAddr};

use super::placed::{PlacedKernels, check_images};
use crate::a2a3::bring_up::{self, Registered};
use crate::a2a3::calls::Handle;
use crate::a2a3::codes;
use crate::a2a3::cores::Cores;
use crate::a2a3::dma::Dma;
use crate::a2a3::error::A2a3Error;
use crate::a2a3::last_known;
use crate::a2a3::library::home_of;
use crate::a2a3::limits::USUAL_RUN;
use crate::a2a3::port::Port;
use crate::a2a3::run::Ready;
use crate::allocator::Owner;
use crate::backend::{Backend, RunOutcome};
use crate::error::Error;
use crate::fw::{FlashDevice, Image, ImageKind, Machine, Tracing};
use crate::gm::Gm;
use crate::kernel::Kernel;
use crate::memory::Memory;

/// The device's name.
pub(crate) const NAME: &str = "a2a3";
/// The name of the processor that the stand-in plays. Its cores run code of AArch64 or of a development machine; those of a real one do not.
const STAND_IN: &str = "PtoStandIn";
/// How the names of the processors begin whose AICores run code for dav-c220: an Ascend 910B, an Ascend 910C.
const C220: [&str; 2] = ["Ascend910B", "Ascend910_93"];

/// Which device, and what is taken of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct A2a3Options {
    /// Its id, as `aclrt*` counts.
    pub device: u32,
    /// Clusters of one AIC and two AIVs; `None`: all that are in service, up to 24.
    pub clusters: Option<u32>,
    /// Bytes of its memory.
    pub gm_bytes: u64,
    /// The folder of CANN; `None`: `$ASCEND_HOME_PATH`, else where the loader looks.
    pub home: Option<PathBuf>,
}

impl Default for A2a3Options {
    /// All cores of device 0, and 1 GiB.
    fn default() -> Self {
        Self { device: 0, clusters: None, gm_bytes: 1 << 30, home: None }
    }
}

/// The state on the device that survives from run to run.
struct Standing {
    cores: Cores,
    stream: Handle,
    registered: Registered,
    kernels: Handle,
}

// SAFETY: the handles are words of the vendor's, whose calls may come from any thread that has the device's context.
unsafe impl Send for Standing {}

/// An Ascend device.
pub(crate) struct A2a3 {
    options: A2a3Options,
    port: Arc<Port>,
    memory: Arc<Memory>,
    firmware: Image,
    blob: Image,
    kernels: PlacedKernels,
    words: GmAddr,
    /// `Err`: why there is nothing any more.
    standing: Result<Standing, String>,
    /// The arena that the last launch was on, by its bring-up.
    arena: Option<u32>,
    post_mortem: Vec<String>,
}

impl A2a3 {
    /// Opens the device, and brings firmware and kernels to it. Returns how many cores of each kind it has as well.
    pub(crate) fn open(
        options: &A2a3Options,
        firmware: &Image,
        blob: &Image,
    ) -> Result<(Self, [u32; 2]), Error> {
        check_images(FlashDevice::A2a3, firmware, blob)?;
        let home = home_of(options.home.as_deref());
        let port = Arc::new(Port::open(home.as_deref(), options.device)?);
        Self::bring_up(options, &port, firmware, blob).inspect_err(|error| leave(&port, error))
    }

    fn bring_up(
        options: &A2a3Options,
        port: &Arc<Port>,
        firmware: &Image,
        blob: &Image,
    ) -> Result<(Self, [u32; 2]), Error> {
        check_processor(port, blob)?;
        let gm = provide_memory(port, options.gm_bytes)?;
        let dma: Arc<dyn Dma> = Arc::<Port>::clone(port);
        let memory = Arc::new(Memory::of(Gm::remote(options.gm_bytes, gm, dma)?));
        let words = memory.alloc(size_of::<LaunchWords>() as u64, Owner::Runtime)?;
        let kernels = PlacedKernels::place(&memory, blob)?;
        let standing = Standing::raise(port, options, firmware, blob)?;
        let clusters = u32::try_from(standing.cores.clusters.len()).unwrap_or(u32::MAX);
        let device = Self {
            options: options.clone(),
            port: Arc::clone(port),
            memory,
            firmware: firmware.clone(),
            blob: blob.clone(),
            kernels,
            words,
            standing: Ok(standing),
            arena: None,
            post_mortem: Vec::new(),
        };
        Ok((device, [clusters, 2 * clusters]))
    }

    /// The memory of the device.
    pub(crate) fn memory(&self) -> Arc<Memory> {
        Arc::clone(&self.memory)
    }

    fn launch(&mut self, arena: &Arena<'static>) -> Result<u32, A2a3Error> {
        let standing = self.standing.as_ref().map_err(|why| A2a3Error::Unfit {
            device: self.options.device,
            what: format!("{why}. Open the device again"),
        })?;
        let asked = arena.config().aicpu_instances;
        if asked > standing.cores.aicpus {
            let what = format!(
                "the run asks for {asked} AICPU instances, and {} are in service. Ask for fewer (--aicpu)",
                standing.cores.aicpus
            );
            return Err(A2a3Error::Unfit { device: self.options.device, what });
        }
        // Each new arena has a bring-up of its own.
        let bring_up = arena.header().bring_up_epoch;
        let gm = self.memory.gm();
        let ready = Ready {
            port: &self.port,
            cores: &standing.cores,
            gm: (gm.address(), gm.bytes()),
            words: self.words,
            stream: standing.stream,
            run: standing.registered.run,
            kernels: standing.kernels,
            is_fresh: self.arena != Some(bring_up),
        };
        let landed = ready.run(arena);
        self.arena = landed.is_ok().then_some(bring_up);
        landed
    }

    /// After a call failed: resets the device by force, and brings everything to it again. Its memory is empty then.
    fn recover(&mut self) {
        let streams: Vec<Handle> = self.standing.iter().map(|standing| standing.stream).collect();
        let again = self.port.recover(&streams).map_err(Error::from).and_then(|()| self.again());
        match again {
            Ok(standing) => {
                self.standing = Ok(standing);
                self.post_mortem.push(
                    "The device was reset by force, and works again. What buffers held is lost: write them again.".to_owned(),
                );
            }
            Err(error) => {
                self.post_mortem
                    .push(format!("The device was reset by force, and does not work: {error}."));
                self.standing = Err(format!("it was lost after a fault: {error}"));
            }
        }
    }

    /// What is known of the cores when a launch has failed.
    fn tell_of_cores(&mut self, arena: &Arena<'_>, error: &A2a3Error) {
        let hint = error.code().and_then(codes::of_launch);
        let is_told = hint.is_some() || matches!(error, A2a3Error::CoresLeft { .. });
        let (true, Ok(standing)) = (is_told, &self.standing) else { return };
        self.post_mortem.extend(hint.map(|hint| format!("{hint}.")));
        let clusters = standing.cores.clusters.len();
        let kernel_at = |address| self.kernels.name_at(address);
        self.post_mortem.extend(last_known::sentences(arena, clusters, &kernel_at));
    }

    fn again(&self) -> Result<Standing, Error> {
        let gm = provide_memory(&self.port, self.options.gm_bytes)?;
        if gm != self.memory.gm().address() {
            let what = "its memory begins at another address after the reset. Open it again";
            let device = self.options.device;
            return Err(A2a3Error::Unfit { device, what: what.to_owned() }.into());
        }
        self.kernels.write_again(&self.memory, &self.blob)?;
        Ok(Standing::raise(&self.port, &self.options, &self.firmware, &self.blob)?)
    }

    fn close(&self) -> Result<(), A2a3Error> {
        let Ok(standing) = &self.standing else { return Ok(()) };
        self.port.enter("closing the device")?;
        standing.registered.unload(&self.port)?;
        self.port.end_stream("closing the device", standing.stream)
    }
}

impl Drop for A2a3 {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            log::warn!("{error}");
        }
    }
}

impl Standing {
    fn raise(
        port: &Port,
        options: &A2a3Options,
        firmware: &Image,
        blob: &Image,
    ) -> Result<Self, A2a3Error> {
        let cores = Cores::find(port, options.clusters)?;
        let stream = port.stream("making the AICPUs' stream")?;
        let registered = bring_up::firmware(port, firmware, stream)?;
        let kernels = bring_up::kernels(port, blob)?;
        Ok(Self { cores, stream, registered, kernels })
    }
}

/// A device that failed while it was opened is left as the next user needs it.
fn leave(port: &Port, error: &Error) {
    let Error::A2a3(error) = error else { return };
    if error.code().is_some_and(codes::is_of_device)
        && let Err(error) = port.recover(&[])
    {
        log::warn!("{error}");
    }
}

/// Device memory of zeros.
fn provide_memory(port: &Port, bytes: u64) -> Result<GmAddr, A2a3Error> {
    port.enter("taking memory of the device")?;
    let gm = port.alloc("taking memory of the device", bytes)?;
    port.keep_gm(gm);
    port.fill(gm, bytes, 0)?;
    Ok(gm)
}

/// Refuses code that the device's cores cannot run: of a real processor they run the program that the vendor's compiler has made, of the stand-in that of a
/// development machine or an AArch64 one.
fn check_processor(port: &Port, blob: &Image) -> Result<(), A2a3Error> {
    let name = port.soc_name();
    let is_for_aicores = blob.machine == Machine::DavC220;
    let what = if name == STAND_IN {
        if !is_for_aicores {
            return Ok(());
        }
        "it is the stand-in, whose cores are processors of a development machine, and what is flashed is for AICores. Build it with the stand-in's \
         compiler (ASCEND_HOME_PATH=target/stand-in), or go back with `pto fw rollback --device a2a3`"
            .to_owned()
    } else if !C220.iter().any(|start| name.starts_with(start)) {
        format!(
            "its processor is {name}, and there are programs for the AICores of an Ascend 910B or 910C alone"
        )
    } else if is_for_aicores {
        return Ok(());
    } else {
        let flashed = blob.machine;
        format!(
            "its processor is {name}, and the flashed kernels are {flashed} code, which only the stand-in runs. Build the program of its AICores \
             where CANN's compiler is: `pto fw build --image cann --aicore --pto-isa FOLDER --release`, and flash both images that it prints"
        )
    };
    Err(A2a3Error::Unfit { device: port.device(), what })
}

impl Backend for A2a3 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn builders(&self) -> Vec<String> {
        self.firmware.builders.clone()
    }

    fn kernel_address(&self, kernel: &Kernel) -> Result<GmAddr, Error> {
        self.kernels.address(kernel, NAME)
    }

    fn has_part_of_library(&self) -> bool {
        self.blob.kind == ImageKind::Aicore
    }

    fn tracing(&self) -> Tracing {
        self.firmware.tracing
    }

    fn launch_limit(&self) -> Option<Duration> {
        Some(USUAL_RUN)
    }

    fn flashed_kernels(&self) -> Vec<(FuncId, Kernel)> {
        self.kernels.all()
    }

    fn run(&mut self, arena: Arena<'static>) -> RunOutcome {
        let start = Instant::now();
        self.post_mortem.clear();
        let landed = self.launch(&arena);
        let makespan = start.elapsed();
        match landed {
            Ok(refused) => raise(&arena, Fault::from_code(refused)),
            Err(error) => {
                self.post_mortem.push(format!("The device: {error}."));
                self.tell_of_cores(&arena, &error);
                raise(&arena, Some(Fault::FW_LOST));
                if self.standing.is_ok() && !matches!(error, A2a3Error::Unfit { .. }) {
                    self.recover();
                }
            }
        }
        RunOutcome { fault: arena.fault().first(), makespan, arena_lost: false }
    }

    fn release(&mut self) -> bool {
        // The cores leave at the end of every launch.
        true
    }

    fn renew(&mut self) -> bool {
        true
    }

    fn post_mortem(&self) -> &[String] {
        &self.post_mortem
    }
}

/// Makes `fault` that of the arena, unless it has one.
fn raise(arena: &Arena<'_>, fault: Option<Fault>) {
    let Some(fault) = fault else { return };
    if arena.fault().raise(fault) {
        arena.set_epitaph(&Epitaph::of(fault));
        arena.fault().seal_epitaph();
    }
}
