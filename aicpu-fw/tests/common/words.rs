//! The words that the instances of a run share, sized by what a graph has; and a device with a few kernels.

use pto_abi::launch_args::LaunchArgs;
use pto_abi::task::chunks_for;
use pto_abi::{FuncId, GmAddr};
use pto_aicpu_fw::builder::BuilderInputs;
use pto_aicpu_fw::{DeviceMemory, SharedState};
use pto_check::run_memory::{RunSizes, RunWords};

pub(crate) use pto_check::run_memory::{GENERATION, PAYLOADS};

/// Func ids below this one are registered; the code of `func` is at `KERNELS + func`.
pub(crate) const REGISTERED: u16 = 16;
/// See [`REGISTERED`].
pub(crate) const KERNELS: u64 = 0x4000;

/// What a run of a test provides for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) tasks: u32,
    pub(crate) arg_words: usize,
    pub(crate) edges: u64,
    pub(crate) instances: usize,
}

/// The memory of a [`SharedState`].
pub(crate) struct StateMemory(RunWords);

impl core::ops::Deref for StateMemory {
    type Target = RunWords;

    fn deref(&self) -> &RunWords {
        &self.0
    }
}

impl StateMemory {
    pub(crate) fn new(size: Size) -> Self {
        Self(RunWords::new(RunSizes {
            tasks: size.tasks,
            payloads: size.arg_words + size.tasks as usize,
            chunks: usize::try_from(chunks_for(size.edges)).unwrap(),
            instances: size.instances,
        }))
    }

    pub(crate) fn state(&self) -> SharedState<'_> {
        self.0.state().unwrap()
    }

    /// What the builder on instance 0 is given.
    pub(crate) fn inputs(&self) -> BuilderInputs<'_> {
        self.0.inputs(LaunchArgs::default()).unwrap()
    }
}

/// A device with the kernels `0 .. REGISTERED`, and one page of memory where each word holds its address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FakeDevice;

impl DeviceMemory for FakeDevice {
    fn kernel_addr(&self, func_id: FuncId) -> GmAddr {
        if func_id.0 < REGISTERED { GmAddr(KERNELS + u64::from(func_id.0)) } else { GmAddr::NULL }
    }

    fn read_u32(&self, address: GmAddr) -> Option<u32> {
        let held = (0x1000..0x2000).contains(&address.0) && address.0.is_multiple_of(4);
        u32::try_from(address.0).ok().filter(|_| held)
    }
}

/// A machine on which nothing has to be done, for as long as a test runs. It has no size, so that nothing is leaked.
pub(crate) fn quiet() -> &'static mut () {
    Box::leak(Box::new(()))
}
