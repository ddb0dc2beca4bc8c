//! The device that a run asks for: its options, and how it is opened.

use pto_abi::CoreKind;
use pto_examples::Builders;
use pto_host::{Device, DeviceOptions, Hosting, VirtDeviceOptions};

use crate::args::{DeviceChoice, HostingMode, RunArgs};
use crate::errors::Failure;
use crate::fw::flashed;

/// A device, not opened yet.
#[derive(Clone, Debug)]
pub(crate) enum Wanted {
    /// The simulator.
    Simulator(DeviceOptions),
    /// The emulated machine.
    Virt(VirtDeviceOptions),
}

impl Wanted {
    pub(crate) fn of(args: &RunArgs) -> Result<Self, Failure> {
        match args.device {
            DeviceChoice::A2a3sim => Ok(Self::Simulator(simulator(args)?)),
            DeviceChoice::Virt => Ok(Self::Virt(virt(args)?)),
        }
    }

    /// Opens it; `virt` is given an image first, if it has none.
    pub(crate) fn open(&self) -> Result<Device, Failure> {
        match self {
            Self::Simulator(options) => Ok(Device::open_sim(*options, Builders)?),
            Self::Virt(options) => {
                let (firmware, kernels) = flashed::images_of_virt()?;
                Ok(Device::open_virt(options, &firmware, &kernels)?)
            }
        }
    }

    /// How many cores of `kind`.
    pub(crate) fn cores(&self, kind: CoreKind) -> u32 {
        let (aic, aiv) = match self {
            Self::Simulator(options) => (options.aic, options.aiv),
            Self::Virt(options) => (options.aic, options.aiv),
        };
        if kind == CoreKind::AIC { aic } else { aiv }
    }

    /// Size of GM.
    pub(crate) fn gm_bytes(&self) -> u64 {
        match self {
            Self::Simulator(options) => options.gm_bytes,
            Self::Virt(options) => options.gm_bytes,
        }
    }

    /// How it is hosted, in words.
    pub(crate) fn hosting(&self) -> String {
        match self {
            Self::Simulator(options) => options.hosting.to_string(),
            Self::Virt(_) => "QEMU".to_owned(),
        }
    }
}

fn simulator(args: &RunArgs) -> Result<DeviceOptions, Failure> {
    let base = DeviceOptions::default();
    let pool = |threads| match threads {
        Some(os_threads) => Hosting::Pool { os_threads },
        None => Hosting::Pool { os_threads: pto_host::default_pool_threads() },
    };
    let hosting = match (args.hosting, args.pool_threads) {
        (Some(HostingMode::Threads), Some(_)) => {
            return Err(Failure::usage(
                "--pool-threads belongs to --hosting pool; leave one of them out",
            ));
        }
        (Some(HostingMode::Threads), None) => Hosting::Threads,
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

fn virt(args: &RunArgs) -> Result<VirtDeviceOptions, Failure> {
    if args.hosting.is_some() || args.pool_threads.is_some() {
        return Err(Failure::usage(
            "--hosting and --pool-threads belong to the simulator; leave them out with --device virt",
        ));
    }
    if args.trace.is_some() || args.gantt {
        return Err(Failure::usage(
            "the device virt records no timeline; leave out --trace and --gantt, or use a2a3sim",
        ));
    }
    let base = VirtDeviceOptions::default();
    Ok(VirtDeviceOptions {
        aicpu: args.aicpu,
        aic: args.aic.unwrap_or(base.aic),
        aiv: args.aiv.unwrap_or(base.aiv),
        gm_bytes: args.gm_bytes.unwrap_or(base.gm_bytes),
        ..base
    })
}
