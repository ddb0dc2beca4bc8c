//! The device that a run asks for: its options, and how it is opened.

use pto_abi::CoreKind;
use pto_examples::host;
use pto_host::fw::Tracing;
use pto_host::virt::qemu::find;
use pto_host::virtual_time::{Span, VirtualOptions};
use pto_host::{Device, DeviceOptions, Hosting, RunOptions, VirtDeviceOptions};

use crate::args::{DeviceChoice, HostingMode, RunArgs};
use crate::errors::Failure;
use crate::fw::flashed;
use crate::programs::Programs;

/// A device, not opened yet.
#[derive(Clone, Debug)]
pub(crate) enum Wanted {
    /// The simulator.
    Simulator(DeviceOptions),
    /// The emulated machine.
    Virt(VirtDeviceOptions, Tracing),
}

impl Wanted {
    pub(crate) fn of(args: &RunArgs) -> Result<Self, Failure> {
        match args.device {
            DeviceChoice::A2a3sim => Ok(Self::Simulator(simulator(args)?)),
            DeviceChoice::Virt => Ok(Self::Virt(virt(args)?, tracing(args))),
        }
    }

    /// Opens it; `virt` is given an image first, if it has none.
    /// With these programs in its firmware, or those of the examples.
    pub(crate) fn open(&self, programs: Option<Programs>) -> Result<Device, Failure> {
        match (self, programs) {
            (Self::Simulator(options), None) => Ok(host::open_sim(*options)?),
            (Self::Simulator(options), Some(programs)) => Ok(Device::open_sim(*options, programs)?),
            (Self::Virt(options, tracing), _) => {
                need_qemu(options)?;
                let (firmware, kernels) = flashed::images_of_virt(*tracing)?;
                Ok(Device::open_virt(options, &firmware, &kernels)?)
            }
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
            Self::Virt(options, _) => (options.aic, options.aiv),
        };
        if kind == CoreKind::AIC { aic } else { aiv }
    }

    /// Size of GM.
    pub(crate) fn gm_bytes(&self) -> u64 {
        match self {
            Self::Simulator(options) => options.gm_bytes,
            Self::Virt(options, _) => options.gm_bytes,
        }
    }

    /// AICPU instances, where the command line does not say.
    pub(crate) fn aicpu(&self) -> u32 {
        match (self, self.virtual_options()) {
            (_, Some(options)) => count(options.profile.aicpu),
            (Self::Virt(options, _), None) => options.aicpu,
            (Self::Simulator(_), None) => RunOptions::default().aicpu_instances,
        }
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

    /// How it is hosted, in words.
    pub(crate) fn hosting(&self) -> String {
        match self {
            Self::Simulator(options) => options.hosting.to_string(),
            Self::Virt(..) => "QEMU".to_owned(),
        }
    }
}

/// Nothing is built for a machine that cannot be started.
fn need_qemu(options: &VirtDeviceOptions) -> Result<(), Failure> {
    match find(&options.qemu) {
        Some(_) => Ok(()),
        None => Err(Failure::usage(format!(
            "--device virt needs QEMU, and there is no '{}' on the PATH; install it (Debian: qemu-system-arm)",
            options.qemu.display()
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
        gm_bytes: args.gm_bytes.unwrap_or(base.gm_bytes),
        hosting,
    })
}

/// The cores or instances of a profile: more than fit are refused where the device is opened.
fn count(span: Span) -> u32 {
    u32::try_from(span.low).unwrap_or(u32::MAX)
}

fn is_virtual(args: &RunArgs) -> bool {
    args.hosting == Some(HostingMode::Virtual)
}

fn tracing(args: &RunArgs) -> Tracing {
    if args.trace.is_some() || args.gantt { Tracing::On } else { Tracing::Off }
}

fn virt(args: &RunArgs) -> Result<VirtDeviceOptions, Failure> {
    if let Some(option) = args.virtual_time.given() {
        return Err(Failure::usage(format!(
            "{option} belongs to --hosting virtual of the simulator, and --device virt has none; leave one of the two out"
        )));
    }
    if args.hosting.is_some() || args.pool_threads.is_some() {
        return Err(Failure::usage(
            "--hosting and --pool-threads belong to the simulator; leave them out with --device virt",
        ));
    }
    let base = VirtDeviceOptions::default();
    Ok(VirtDeviceOptions {
        aicpu: args.aicpu.unwrap_or(base.aicpu),
        aic: args.aic.unwrap_or(base.aic),
        aiv: args.aiv.unwrap_or(base.aiv),
        gm_bytes: args.gm_bytes.unwrap_or(base.gm_bytes),
        ..base
    })
}
