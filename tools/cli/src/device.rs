//! The device that a run asks for: its options, and how it is opened.

use pto_abi::{CoreKind, RuntimeVariant};
use pto_examples::host;
use pto_host::fw::Tracing;
use pto_host::qemu::process::find;
use pto_host::virtual_time::{CostRange, VirtualOptions};
use pto_host::{A2a3Options, Device, DeviceOptions, Hosting, QemuDeviceOptions, RunOptions};

use crate::args::{DeviceChoice, HostingMode, ProgramRunArgs, RunArgs};
use crate::errors::Failure;
use crate::fw::flashed;
use crate::programs::ProgramSource;

/// A device, not opened yet.
#[derive(Clone, Debug)]
pub(crate) enum Wanted {
    /// The simulator.
    Simulator(DeviceOptions),
    /// The emulated machine.
    Qemu(QemuDeviceOptions, Tracing),
    /// An Ascend device.
    A2a3(A2a3Options),
}

impl Wanted {
    pub(crate) fn of(args: &RunArgs) -> Result<Self, Failure> {
        if let (Some(_), false) = (args.device_id, args.device == DeviceChoice::A2a3) {
            return Err(Failure::usage("--device-id belongs to --device a2a3; leave it out"));
        }
        match args.device {
            DeviceChoice::A2a3 => Ok(Self::A2a3(a2a3(args)?)),
            DeviceChoice::A2a3sim => Ok(Self::Simulator(simulator(args)?)),
            DeviceChoice::Qemu => Ok(Self::Qemu(qemu(args)?, tracing(args))),
        }
    }

    /// The device of a program file, with the cores that it has by default.
    pub(crate) fn of_program(args: &ProgramRunArgs) -> Result<Self, Failure> {
        if let (true, Some(device)) = (args.hosting.is_some(), other_device(args.device)) {
            return Err(Failure::usage(format!(
                "--hosting belongs to the simulator; leave it out with --device {device}",
            )));
        }
        let hosting = match args.hosting {
            None | Some(HostingMode::Pool) => Hosting::default(),
            Some(HostingMode::Threads) => Hosting::Threads,
            Some(HostingMode::Virtual) => Hosting::Virtual(VirtualOptions::default()),
        };
        let tracing = if args.trace.is_some() { Tracing::On } else { Tracing::Off };
        Ok(match args.device {
            DeviceChoice::A2a3sim => {
                Self::Simulator(DeviceOptions { hosting, ..DeviceOptions::default() })
            }
            DeviceChoice::Qemu => Self::Qemu(QemuDeviceOptions::default(), tracing),
            DeviceChoice::A2a3 => Self::A2a3(A2a3Options::default()),
        })
    }

    /// Opens it; `qemu` is given an image first, if it has none.
    /// With these programs in its firmware, or those of the examples.
    pub(crate) fn open(&self, programs: Option<ProgramSource>) -> Result<Device, Failure> {
        match (self, programs) {
            (Self::Simulator(options), None) => Ok(host::open_sim(*options)?),
            (Self::Simulator(options), Some(programs)) => Ok(Device::open_sim(*options, programs)?),
            (Self::Qemu(options, tracing), _) => {
                need_qemu(options)?;
                let (firmware, kernels) = flashed::images_of_qemu(*tracing)?;
                Ok(Device::open_qemu(options, &firmware, &kernels)?)
            }
            (Self::A2a3(options), _) => {
                // Nothing is built for a device that cannot be reached.
                pto_host::a2a3::check(options.home.as_deref()).map_err(pto_host::Error::from)?;
                let (firmware, kernels) = flashed::images_of_a2a3()?;
                Ok(Device::open_a2a3(options, &firmware, &kernels)?)
            }
        }
    }

    /// Learns what is known only of an open device.
    pub(crate) fn learn(&mut self, device: &Device) {
        if let Self::A2a3(options) = self {
            options.clusters = Some(device.cores(CoreKind::AIC));
        }
    }

    /// Whether programs of this process run on it.
    pub(crate) const fn runs_here(&self) -> bool {
        matches!(self, Self::Simulator(_))
    }

    /// How many cores of `kind`.
    pub(crate) fn cores(&self, kind: CoreKind) -> u32 {
        let (aic, aiv) = match self {
            Self::Simulator(options) => (options.aic, options.aiv),
            Self::Qemu(options, _) => (options.aic, options.aiv),
            // How many are in service is known when it is open.
            Self::A2a3(options) => {
                let clusters = options.clusters.unwrap_or(MOST_CLUSTERS);
                (clusters, 2 * clusters)
            }
        };
        if kind == CoreKind::AIC { aic } else { aiv }
    }

    /// Size of GM.
    pub(crate) fn gm_bytes(&self) -> u64 {
        match self {
            Self::Simulator(options) => options.gm_bytes,
            Self::Qemu(options, _) => options.given_gm_bytes().unwrap_or(options.gm_bytes),
            Self::A2a3(options) => options.gm_bytes,
        }
    }

    /// AICPU instances of a run, where the command line does not say: no more schedulers than the device has clusters.
    pub(crate) fn aicpu(&self, variant: RuntimeVariant) -> u32 {
        let usual = match (self, self.virtual_options()) {
            (_, Some(options)) => count(options.profile.aicpu),
            (Self::Qemu(options, _), None) => options.aicpu,
            (Self::Simulator(_) | Self::A2a3(_), None) => RunOptions::USUAL_INSTANCES,
        };
        let (cube, vector) = (self.cores(CoreKind::AIC), self.cores(CoreKind::AIV));
        let clusters = cube.max(vector.div_ceil(2));
        RunOptions::fitting_instances(usual, variant, clusters)
    }

    /// AICPU instances of a session, where the command line does not say. One of them feeds the others, as a builder does.
    pub(crate) fn session_aicpu(&self) -> u32 {
        self.aicpu(RuntimeVariant::AICPU_BUILD_GRAPH)
    }

    /// How virtual time is made, if that is how it is hosted.
    pub(crate) fn virtual_options(&self) -> Option<&VirtualOptions> {
        match self {
            Self::Simulator(DeviceOptions { hosting: Hosting::Virtual(options), .. }) => {
                Some(options)
            }
            _ => None,
        }
    }

    /// Its name.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Simulator(_) => "a2a3sim",
            Self::Qemu(..) => "qemu",
            Self::A2a3(_) => "a2a3",
        }
    }

    /// How it is hosted, in words.
    pub(crate) fn hosting(&self) -> String {
        match self {
            Self::Simulator(options) => options.hosting.to_string(),
            Self::Qemu(..) => "QEMU".to_owned(),
            Self::A2a3(_) => "CANN".to_owned(),
        }
    }
}

/// The name of a device that is not the simulator.
const fn other_device(device: DeviceChoice) -> Option<&'static str> {
    match device {
        DeviceChoice::A2a3sim => None,
        DeviceChoice::Qemu => Some("qemu"),
        DeviceChoice::A2a3 => Some("a2a3"),
    }
}

/// Clusters that a run uses at most.
const MOST_CLUSTERS: u32 = 24;

/// Nothing is built for a machine that cannot be started.
/// Refuses where there is no QEMU.
pub(crate) fn need_qemu(options: &QemuDeviceOptions) -> Result<(), Failure> {
    match find(&options.program) {
        Some(_) => Ok(()),
        None => Err(Failure::usage(format!(
            "--device qemu needs QEMU, and there is no '{}' on the PATH; install it (Debian: qemu-system-arm)",
            options.program.display()
        ))),
    }
}

fn simulator(args: &RunArgs) -> Result<DeviceOptions, Failure> {
    let mut base = DeviceOptions::default();
    if let (Some(option), false) = (args.virtual_time.given(), is_virtual(args)) {
        return Err(Failure::usage(format!(
            "{option} belongs to --hosting virtual; add that, or leave {option} out"
        )));
    }
    let pool = |threads| match threads {
        Some(os_threads) => Hosting::Pool { os_threads },
        None => Hosting::Pool { os_threads: pto_host::default_pool_threads() },
    };
    let hosting = match (args.hosting, args.pool_threads) {
        (Some(HostingMode::Threads | HostingMode::Virtual), Some(_)) => {
            return Err(Failure::usage(
                "--pool-threads belongs to --hosting pool; leave one of the two out",
            ));
        }
        (Some(HostingMode::Threads), None) => Hosting::Threads,
        (Some(HostingMode::Virtual), None) => {
            let options = args.virtual_time.options()?;
            (base.aic, base.aiv) = (count(options.profile.aic), count(options.profile.aiv));
            Hosting::Virtual(options)
        }
        (Some(HostingMode::Pool), threads) => pool(threads),
        (None, None) => Hosting::default(),
        (None, threads) => pool(threads),
    };
    Ok(DeviceOptions {
        aic: args.aic.unwrap_or(base.aic),
        aiv: args.aiv.unwrap_or(base.aiv),
        gm_bytes: args.memory.unwrap_or(base.gm_bytes),
        hosting,
    })
}

/// The cores or instances of a profile: more than fit are refused where the device is opened.
fn count(span: CostRange) -> u32 {
    u32::try_from(span.low).unwrap_or(u32::MAX)
}

fn is_virtual(args: &RunArgs) -> bool {
    args.hosting == Some(HostingMode::Virtual)
}

fn tracing(args: &RunArgs) -> Tracing {
    if args.trace.is_some() || args.gantt { Tracing::On } else { Tracing::Off }
}

fn qemu(args: &RunArgs) -> Result<QemuDeviceOptions, Failure> {
    refuse_simulators_options(args, "qemu")?;
    let base = QemuDeviceOptions::default();
    Ok(QemuDeviceOptions {
        aicpu: args.aicpu.unwrap_or(base.aicpu),
        aic: args.aic.unwrap_or(base.aic),
        aiv: args.aiv.unwrap_or(base.aiv),
        gm_bytes: args.memory.unwrap_or(base.gm_bytes),
        ..base
    })
}

fn a2a3(args: &RunArgs) -> Result<A2a3Options, Failure> {
    refuse_simulators_options(args, "a2a3")?;
    if args.aiv.is_some_and(|aiv| args.aic.is_none_or(|aic| Some(aiv) != aic.checked_mul(2))) {
        return Err(Failure::usage(
            "a2a3 has clusters of one cube core and two vector cores; give --aic, and leave --aiv out",
        ));
    }
    let base = A2a3Options::default();
    Ok(A2a3Options {
        device: args.device_id.unwrap_or(base.device),
        clusters: args.aic,
        gm_bytes: args.memory.unwrap_or(base.gm_bytes),
        ..base
    })
}

fn refuse_simulators_options(args: &RunArgs, device: &str) -> Result<(), Failure> {
    if let Some(option) = args.virtual_time.given() {
        return Err(Failure::usage(format!(
            "{option} belongs to --hosting virtual of the simulator, and --device {device} has none; leave one of the two out"
        )));
    }
    if args.hosting.is_some() || args.pool_threads.is_some() {
        return Err(Failure::usage(format!(
            "--hosting and --pool-threads belong to the simulator; leave them out with --device {device}",
        )));
    }
    Ok(())
}
