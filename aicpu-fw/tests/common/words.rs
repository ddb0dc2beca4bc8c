//! The words that the instances of a run share, in ordinary memory; plain, under loom and under shuttle.

use pto_abi::kinds::CoreKind;
use pto_abi::ready::{QueueEnds, slots_for};
use pto_abi::runtime::{FaultLine, InstanceLine, Progress};
use pto_abi::sync::AtomicU64;
use pto_abi::task::{EdgeChunk, Task, chunks_for};
use pto_abi::{FuncId, GmAddr};
use pto_aicpu_fw::builder::BuilderInputs;
use pto_aicpu_fw::ready_queue::ReadyQueue;
use pto_aicpu_fw::{DeviceMemory, SharedState};

/// Where the argument words of the tests are in GM.
pub(crate) const PAYLOADS: GmAddr = GmAddr(0x10_0000);
/// The generation of the tests' ids.
pub(crate) const GENERATION: u32 = 7;
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

/// The memory behind a [`SharedState`].
pub(crate) struct Words {
    pub(crate) tasks: Vec<Task>,
    payloads: Vec<AtomicU64>,
    chunks: Vec<EdgeChunk>,
    pub(crate) ends: [QueueEnds; CoreKind::COUNT],
    slots: [Vec<AtomicU64>; CoreKind::COUNT],
    pub(crate) progress: Progress,
    pub(crate) fault: FaultLine,
    pub(crate) instances: Vec<InstanceLine>,
}

impl Words {
    pub(crate) fn new(size: Size) -> Self {
        let words = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
        let slots = slots_for(size.tasks) as usize;
        let chunks = usize::try_from(chunks_for(size.edges)).unwrap();
        Self {
            tasks: (0..size.tasks).map(|_| Task::default()).collect(),
            payloads: words(size.arg_words + size.tasks as usize),
            chunks: (0..chunks).map(|_| EdgeChunk::default()).collect(),
            ends: [QueueEnds::default(), QueueEnds::default()],
            slots: [words(slots), words(slots)],
            progress: Progress::default(),
            fault: FaultLine::default(),
            instances: (0..size.instances).map(|_| InstanceLine::default()).collect(),
        }
    }

    pub(crate) fn state(&self) -> SharedState<'_> {
        let queue = |kind: usize| ReadyQueue::new(&self.ends[kind], &self.slots[kind]).unwrap();
        SharedState {
            tasks: &self.tasks,
            payloads: &self.payloads,
            payloads_address: PAYLOADS,
            chunks: &self.chunks,
            ready: [queue(0), queue(1)],
            progress: &self.progress,
            fault: &self.fault,
            instances: &self.instances,
            shapes: None,
        }
    }

    /// What the builder on instance 0 is given.
    pub(crate) fn inputs(&self) -> BuilderInputs<'_> {
        BuilderInputs {
            state: self.state(),
            line: &self.instances[0],
            orch_args: &[],
            generation: GENERATION,
            has_kind: [true; CoreKind::COUNT],
        }
    }
}

/// A device with the kernels `0 .. REGISTERED`, and one page of memory where each word holds its address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernels;

impl DeviceMemory for Kernels {
    fn kernel_addr(&self, func_id: FuncId) -> GmAddr {
        if func_id.0 < REGISTERED { GmAddr(KERNELS + u64::from(func_id.0)) } else { GmAddr::NULL }
    }

    fn read_u32(&self, address: GmAddr) -> Option<u32> {
        let held = (0x1000..0x2000).contains(&address.0) && address.0.is_multiple_of(4);
        u32::try_from(address.0).ok().filter(|_| held)
    }
}
