//! The backend of a device: the machine that runs an arena.
//!
//! ```text
//! simulator.rs   firmware and cores in this process            qemu.rs   an emulated machine: crate::qemu
//! placed.rs      kernels in the memory of a device             a2a3.rs   an Ascend device:    crate::a2a3
//! simulated_set.rs   the builders in the simulator's firmware
//! ```

#[cfg(feature = "a2a3")]
mod a2a3;
#[cfg(any(feature = "qemu", feature = "a2a3"))]
mod placed;
#[cfg(feature = "qemu")]
mod qemu;
#[cfg(feature = "sim")]
mod simulated_set;
#[cfg(feature = "sim")]
mod simulator;

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use pto_abi::arena::Arena;
use pto_abi::{Fault, FuncId, GmAddr};
use pto_aicore_kernels::cost::OnChip;
#[cfg(feature = "sim")]
use pto_sim_shim::{
    group::TransferEngine,
    virtual_time::{KernelCosts, VirtualReport, group::NetEndpoint},
};

#[cfg(feature = "a2a3")]
pub(crate) use self::a2a3::A2a3;
#[cfg(feature = "a2a3")]
pub use self::a2a3::A2a3Options;
#[cfg(feature = "qemu")]
pub(crate) use self::qemu::Qemu;
pub use self::qemu::{Placement, QemuDeviceOptions};
#[cfg(feature = "sim")]
pub(crate) use self::simulated_set::{CompiledIn, SimulatedSet};
#[cfg(feature = "sim")]
pub(crate) use self::simulator::Simulator;
use crate::copy_costs::CopyCosts;
use crate::error::Error;
use crate::fw::Tracing;
use crate::kernel::Kernel;

/// What became of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunOutcome {
    /// The first fault.
    pub(crate) fault: Option<Fault>,
    /// From the launch to the last instance's return.
    pub(crate) makespan: Duration,
    /// Some core or instance did not come back and may still write: the arena is never used again.
    pub(crate) arena_lost: bool,
}

/// How long a machine took until it worked; of the first run after its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StartTimes {
    /// From the start of the machine until it waits for a launch.
    pub boot: Duration,
    /// The part of the boot time from the firmware's first instruction on.
    pub guest_boot: Duration,
    /// From the launch until every core has answered the greeting; `None`: there was no run yet.
    pub handshake: Option<Duration>,
    /// From the launch until a core has finished a task.
    pub first_task: Option<Duration>,
}

/// Wakes a resident firmware that sleeps.
pub(crate) type RingDoorbell = Arc<dyn Fn() + Send + Sync>;

/// For as long as it lives, some addresses are known as a fast region.
pub(crate) type OnChipMark = Box<dyn Any + Send + Sync>;

/// A backend, which runs arenas.
pub(crate) trait Backend: Send {
    /// The device's name.
    fn name(&self) -> &'static str;

    /// The names of the builder programs in its firmware.
    fn builders(&self) -> Vec<String>;

    /// Whether builders of its firmware share a launch with plans (`sim-shim/src/builders/concurrent.rs`).
    fn shares_launches_with_builders(&self) -> bool {
        false
    }

    /// Where the code of `kernel` is on this device.
    fn kernel_address(&self, kernel: &Kernel) -> Result<GmAddr, Error>;

    /// The code at this address is that kernel, and has that func id.
    fn name_kernel(&self, _: GmAddr, _: FuncId, _: &Kernel) {}

    /// The kernels of the blob that was flashed to it: func id and kernel. None, where nothing is flashed.
    fn flashed_kernels(&self) -> Vec<(FuncId, Kernel)> {
        Vec::new()
    }

    /// Whether its kernels may be a part of the library: a program for AICores has those that are written in C++.
    fn has_part_of_library(&self) -> bool {
        false
    }

    /// Whether its cores run at once, so that a kernel may wait for what another one does meanwhile.
    fn runs_cores_at_once(&self) -> bool {
        true
    }

    /// Whether its runs take virtual time.
    fn has_virtual_clock(&self) -> bool {
        false
    }

    /// What transfers between cores and the fast region cost in virtual time; `None`: they take the time of this machine.
    fn on_chip_costs(&self) -> Option<OnChip> {
        None
    }

    /// Lets it know that these addresses are a fast region; `None`: it has no need to know.
    fn mark_on_chip(&self, _addresses: Range<u64>) -> Option<OnChipMark> {
        None
    }

    /// What copies of a session cost; `None`: they take the time of this machine.
    fn copy_costs(&self) -> Option<CopyCosts> {
        None
    }

    /// What its kernels are expected to cost: by default as the model of the library says.
    #[cfg(feature = "sim")]
    fn kernel_costs(&self) -> KernelCosts {
        KernelCosts::Library { fallback: 0 }
    }

    /// How long a launch may take by default; `None`: there is no limit.
    fn launch_limit(&self) -> Option<Duration> {
        None
    }

    /// Wakes its resident firmware while that sleeps; `None`: it does not sleep, and returns when it has nothing to do.
    fn doorbell(&self) -> Option<RingDoorbell> {
        None
    }

    /// Whether its firmware records runs.
    fn tracing(&self) -> Tracing {
        Tracing::On
    }

    /// Runs a prepared arena, and returns when every instance has returned or was given up.
    fn run(&mut self, arena: Arena<'static>) -> RunOutcome;

    /// Makes the cores let go of the arena of the last run, in which they stay in service after a run without a
    /// fault. Called before that arena is given up. `false`: a core did not come back; as `arena_lost`.
    fn release(&mut self) -> bool;

    /// Replaces everything that a lost arena may have taken with it. `true`: no core is left that could write to GM.
    fn renew(&mut self) -> bool;

    /// What the machine itself says of the fault of the last run.
    fn post_mortem(&self) -> &[String] {
        &[]
    }

    /// What the machine saw in virtual time; of the last run, if that is how it was hosted.
    #[cfg(feature = "sim")]
    fn take_virtual_report(&mut self) -> Option<Box<VirtualReport>> {
        None
    }

    /// Has the transfers of all further runs moved by `engine`; `false`: it cannot.
    #[cfg(feature = "sim")]
    fn attach(&mut self, _engine: Arc<dyn TransferEngine>) -> bool {
        false
    }

    /// Makes it a rank of a group in virtual time; `false`: it does not run in virtual time.
    #[cfg(feature = "sim")]
    fn join_network(&mut self, _seat: NetEndpoint) -> bool {
        false
    }

    /// The process that it runs in, if that is one of its own.
    fn process_id(&self) -> Option<u32> {
        None
    }

    /// How long it took to start; `None`: there is nothing to start.
    fn start_times(&self) -> Option<StartTimes> {
        None
    }
}

#[cfg(test)]
pub(crate) mod fake {
    //! A backend whose runs a test defines.

    use std::time::Duration;

    use pto_abi::GmAddr;
    use pto_abi::arena::Arena;

    use super::{Backend, RunOutcome};
    use crate::error::Error;
    use crate::kernel::Kernel;
    use crate::kernel::KernelCode;

    /// Plays the firmware with a closure.
    pub(crate) struct Fake<F> {
        pub(crate) play: F,
        pub(crate) renewed: u32,
        /// Is called when the cores are to let go of the arena.
        pub(crate) on_release: Box<dyn FnMut() + Send>,
    }

    impl<F> Fake<F> {
        pub(crate) fn new(play: F) -> Self {
            Self { play, renewed: 0, on_release: Box::new(|| ()) }
        }
    }

    pub(crate) const SUCCESS: RunOutcome =
        RunOutcome { fault: None, makespan: Duration::from_millis(2), arena_lost: false };

    impl<F: FnMut(Arena<'static>, u32) -> RunOutcome + Send> Backend for Fake<F> {
        fn name(&self) -> &'static str {
            "fake"
        }

        fn builders(&self) -> Vec<String> {
            vec!["known".to_owned()]
        }

        fn kernel_address(&self, kernel: &Kernel) -> Result<GmAddr, Error> {
            match kernel.code() {
                KernelCode::Library(library) => Ok(GmAddr(0x1000 + u64::from(library.func_id))),
                KernelCode::Function(_) | KernelCode::Flashed => {
                    Err(Error::KernelNotForDevice { name: kernel.name().into(), device: "fake" })
                }
            }
        }

        fn run(&mut self, arena: Arena<'static>) -> RunOutcome {
            (self.play)(arena, self.renewed)
        }

        fn release(&mut self) -> bool {
            (self.on_release)();
            true
        }

        fn renew(&mut self) -> bool {
            self.renewed += 1;
            false
        }
    }
}
