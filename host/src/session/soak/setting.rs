//! What a seed decides besides the program: the device, the session, and what goes wrong on the device.

use std::time::Duration;

use pto_sim_shim::virtual_time::{Injection, Trouble};

use super::outcome::Wrong;
use crate::device::Device;
use crate::options::{DeviceOptions, RunOptions};
use crate::session::choice::Seeded;
use crate::session::options::{Drive, SessionOptions};
use crate::session::owner::Session;
use pto_graph::NoBuilders;
use pto_sim_shim::Hosting;
use pto_sim_shim::virtual_time::{KernelCosts, Profile, VirtualOptions};

/// Cores of the device: cube and vector.
const CORES: [u32; 2] = [2, 4];
const GM_BYTES: u64 = 32 << 20;
/// What a kernel takes, in virtual time. Short times and budgets make a seed cheap, because the firmware polls meanwhile.
const KERNEL_NS: u64 = 500;
/// How long a kernel may take.
const TASK_BUDGET: Duration = Duration::from_micros(40);
/// How long nothing may get on, and how long cores may take to answer.
const STALL_BUDGET: Duration = Duration::from_micros(100);
/// How long the firmware may be up where that is limited.
const RUN_BUDGET: Duration = Duration::from_micros(800);

/// What a seed has decided.
pub(super) struct Setting {
    pub(super) session: Session,
    /// Something goes wrong on the device, once.
    pub(super) is_injected: bool,
}

impl Setting {
    /// The setting of a seed; with `troubles` something may go wrong on the device.
    pub(super) fn drawn(seed: u64, troubles: bool) -> Result<Self, Wrong> {
        let mut random = Seeded::new(seed);
        let injection = (troubles && random.below(3) == 0).then(|| injection(&mut random));
        let profile = if random.below(4) == 0 { Profile::ideal() } else { Profile::a2a3() };
        let hosting = Hosting::Virtual(VirtualOptions {
            seed,
            profile,
            costs: KernelCosts::Library { fallback: KERNEL_NS },
            injection,
            ..VirtualOptions::default()
        });
        let options = DeviceOptions { aic: CORES[0], aiv: CORES[1], gm_bytes: GM_BYTES, hosting };
        let mut device = Device::open_sim(options, NoBuilders)?;
        device.register_library()?;
        let session = device.session(session_options(seed, &mut random))?;
        Ok(Self { session, is_injected: injection.is_some() })
    }

    /// Bytes of the device's memory that are free when no stream has commands.
    pub(super) fn free_bytes(&self) -> Result<u64, Wrong> {
        // Streams that are over give their rings back when the session looks at its streams again.
        self.session.synchronize()?;
        drop(self.session.stream()?);
        self.session.reset()?;
        Ok(self.session.with_device(|device| device.describe().gm_free_bytes)?)
    }
}

fn session_options(seed: u64, random: &mut Seeded) -> SessionOptions {
    let run = RunOptions {
        aicpu_instances: 2 + u32::try_from(random.below(2)).unwrap_or(0),
        task_budget: TASK_BUDGET,
        stall_budget: STALL_BUDGET,
        bring_up_budget: STALL_BUDGET,
        run_budget: (random.below(4) == 0).then_some(RUN_BUDGET),
        ..RunOptions::default()
    };
    SessionOptions {
        run,
        ring_entries: 32 << random.below(3),
        batch_launches: [1, 2, 8, 1024][random.below(4)],
        drive: Some(Drive::Stepped { seed }),
        ..SessionOptions::default()
    }
}

/// What goes wrong on the device.
fn injection(random: &mut Seeded) -> Injection {
    let troubles = [
        Trouble::NoAnswer,
        Trouble::Hang,
        Trouble::Slow(20),
        Trouble::FinishTwice,
        Trouble::WrongId,
        Trouble::OldId,
        Trouble::DoorbellDelayed(9_000),
        Trouble::DoorbellLost,
        Trouble::StatusDelayed(9_000),
    ];
    let trouble = troubles[random.below(troubles.len())];
    let mut number = |below| u32::try_from(random.below(below)).unwrap_or(0);
    Injection { trouble, worker: number(6), at: number(3) }
}
