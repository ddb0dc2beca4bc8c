//! A run on a device whose memory and cores are not this process's: the emulated machine, or an Ascend device. The orchestration runs on the host, its tasks
//! go to the device as lists, and its kernels are those that are flashed there.
//!
//! ```text
//! orchestration -> calls.rs, submit.rs: as everywhere -> ListBuilder (pto-host): lists -> the device
//!                   frames: written here, copied to the device's memory (frames.rs)
//! ```

use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pto_host::abi::numbers::Counted;
use pto_host::abi::{Fault, FuncId, GmAddr};
use pto_host::{DeviceMemory, Kernel, ListBuilder, RunControl, RunOptions, RunReport};
use pto_native::foreign::field::{KernelFault, POOL_BYTES, RunState, TaskFrame};
use pto_native::{Failure, FailureKind, SharedDevice};

use crate::build::{Build, BuildContext};
use crate::call::MemorySpace::Device as InPlace;
use crate::call::Tensor;
use crate::loaded::LoadedCallable;
use crate::options::CallOptions;
use crate::shared::Crash;
use crate::wire::{ChipTensor, SourceLocation, pointer_word};

/// What all tasks of a run share, in the memory of the device. It is freed on drop.
pub(crate) struct State {
    memory: DeviceMemory,
    address: GmAddr,
}

impl State {
    pub(crate) fn new(memory: DeviceMemory) -> Result<Self, Failure> {
        let address = memory.alloc(size_of::<RunState>() as u64 + POOL_BYTES)?;
        let state = Self { memory, address };
        state.memory.copy_to_device(address, &vec![0; size_of::<RunState>()])?;
        Ok(state)
    }

    /// As the word that frames have of it.
    pub(crate) fn address(&self) -> *const RunState {
        std::ptr::without_provenance(pointer_word(self.address.0))
    }

    /// Copies failures and times that kernels have written there into the build.
    fn report_to(&self, build: &Build) {
        // SAFETY: all of its words are atomic integers.
        let Some(state) = (unsafe { fetched::<RunState>(&self.memory, self.address) }) else {
            return;
        };
        build.shared.failed.store(state.failed.load(Ordering::Relaxed), Ordering::Relaxed);
        for (ours, theirs) in build.shared.timing.iter().zip(&state.timing) {
            let [begin, end] = theirs.each_ref().map(|time| time.load(Ordering::Relaxed));
            // The beginning is one more than it was; 0: the slot was not used.
            if begin > 0 {
                ours[0].store(begin - 1, Ordering::Relaxed);
                ours[1].store(end, Ordering::Relaxed);
            }
        }
        if let Some(refusal) = KernelFault::of(state.refusal.load(Ordering::Relaxed)) {
            let frame = state.refused.load(Ordering::Relaxed);
            let flag = state.flag.load(Ordering::Relaxed);
            // SAFETY: the frame of a task has plain words and pointers.
            let frame = unsafe { fetched::<TaskFrame>(&self.memory, GmAddr(frame)) };
            build.shared.crashed(crash(refusal, flag, frame.as_deref()));
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        // It was allocated by us, and is freed once.
        self.memory.free(self.address).unwrap_or_default();
    }
}

/// What the device has at an address; `None`: it cannot be read, as after a fault that has ended the device.
///
/// # Safety
/// Whatever bytes there are, they are a `T`.
unsafe fn fetched<T>(memory: &DeviceMemory, address: GmAddr) -> Option<Box<T>> {
    let mut value = Box::new(MaybeUninit::<T>::zeroed());
    let bytes = value.as_mut_ptr().cast::<u8>();
    // SAFETY: they are the zeros of the value, which nothing else refers to.
    let bytes = unsafe { std::slice::from_raw_parts_mut(bytes, size_of::<T>()) };
    memory.copy_from_device(address, bytes).ok()?;
    // SAFETY: the caller vouches for it.
    Some(unsafe { value.assume_init() })
}

/// What a kernel did that was ended.
fn crash(refusal: KernelFault, flag: u32, frame: Option<&TaskFrame>) -> Crash {
    let whose = frame.map_or_else(String::new, |frame| {
        let location = SourceLocation { file: frame.file, line: frame.line, reserved: 0 };
        format!("{}: a kernel of task {} ", location.describe(), frame.task & 0x7FFF_FFFF)
    });
    let (why, hint) = match refusal {
        KernelFault::NoFlag => (
            format!("waits for flag {flag}, which no core of its task raises"),
            "Raise the flag on a core of the same task: flags do not go from one task to another.",
        ),
        KernelFault::Mode => (
            format!("raises flag {flag} with a mode that is none: modes are 0 to 2, and 4"),
            "Correct the word that the kernel raises.",
        ),
        KernelFault::Cells => (
            format!(
                "raises flag {flag} while as many are raised and not taken as the device has room for"
            ),
            "Take the flags that are raised, or run the program on the simulator.",
        ),
        KernelFault::Pool => (
            format!("asks for more shared state than there is, {POOL_BYTES} bytes"),
            "Ask for less, or run the program on the simulator.",
        ),
    };
    Crash { what: format!("{whose}{why}"), hint }
}

/// Refuses what is there on the simulator alone.
pub(crate) fn check_options(device: &str, options: &CallOptions) -> Result<(), Failure> {
    let refused = |what: &str| {
        let message = format!(
            "{what} on the device {device}, whose kernels run on another machine: use the simulator, in hosting mode `threads`, `pool` or \
             `virtual`"
        );
        Err(Failure::new(FailureKind::INVALID_ARGUMENT, message))
    };
    match options {
        _ if options.finds_shared_lines => refused("lines that kernels share are not looked for"),
        _ if options.keeps.spans => refused("neither swimlanes nor counters are kept"),
        _ if options.keeps.arguments != 0 => refused("arguments are not dumped"),
        _ => Ok(()),
    }
}

/// Refuses tensors that the device could not reach.
pub(crate) fn check_tensors(memory: &DeviceMemory, tensors: &[Tensor<'_>]) -> Result<(), Failure> {
    for (at, tensor) in tensors.iter().enumerate() {
        let first = GmAddr(tensor.pointer.addr() as u64);
        let bytes = ChipTensor::dense(first.0, tensor.dtype, tensor.shape).bytes;
        let end = first.0.saturating_add(bytes);
        let is_held = memory.allocation(first).is_some_and(|(from, held)| end <= from.0 + held);
        if tensor.space == InPlace && bytes > 0 && !is_held {
            let message = format!(
                "tensor {at} is used in place, and is none of the device's memory: take memory of FieldDevice::memory, or give a tensor of the host, which \
                 is copied"
            );
            return Err(Failure::new(FailureKind::INVALID_ARGUMENT, message));
        }
    }
    Ok(())
}

/// The kernels of a program, as the device has them.
pub(crate) fn kernels(
    device: &str,
    program: &LoadedCallable,
    flashed: &[(FuncId, Kernel)],
) -> Result<Vec<(FuncId, Kernel)>, Failure> {
    let mut found = Vec::new();
    for (id, name, kind) in program.needed() {
        let held = flashed.iter().find(|(held, _)| *held == id);
        let right = held.filter(|(_, kernel)| kernel.name() == name && kernel.kind() == kind);
        let Some((_, kernel)) = right else {
            let has = held.map_or_else(
                || "no kernel of this func id".to_owned(),
                |(_, kernel)| format!("`{}` for {}", kernel.name(), kernel.kind()),
            );
            let message = format!(
                "kernel {id} of {} is `{name}` for {kind}, and the kernels that the device {device} has been opened with have {has}. Build \
                 those of this program: pto fw build{} --kernel {id}:{kind}:{name}=FILE ..",
                program.name,
                if device == "a2a3" { " --image cann --aicore" } else { "" }
            );
            return Err(Failure::new(FailureKind::SYMBOL_MISSING, message));
        };
        found.push((id, kernel.clone()));
    }
    Ok(found)
}

/// Runs a program. What went wrong on the device is the `Err`; errors of the program are in its build.
pub(crate) fn run(
    device: &Arc<SharedDevice>,
    (build, state): (&mut Build, &State),
    options: &RunOptions,
    control: &RunControl,
    enter: impl FnOnce(&mut BuildContext<'_>),
) -> Result<RunReport, Failure> {
    let mut report: Option<RunReport> = None;
    let mut failure = None;
    let mut parts = 0_u64;
    let heap_bytes = options.capacities.stream.heap_bytes;
    let options = on_machine(options);
    let mut tasks = ListBuilder::new(device.memory().clone(), heap_bytes, |work| {
        parts += 1;
        match device.run(work, &options, control) {
            Ok(later) => {
                report = Some(match report.take() {
                    Some(earlier) => earlier.and_then(later),
                    None => later,
                });
                Ok(())
            }
            Err(why) => {
                let fault = Fault::from_code(why.code).unwrap_or(Fault::FW_LOST);
                failure = Some(why);
                Err(fault)
            }
        }
    });
    enter(&mut BuildContext { build, stream: &mut tasks });
    let ended = if build.is_over() { Ok(()) } else { tasks.run_all() };
    drop(tasks);
    state.report_to(build);
    if let Some(why) = failure {
        // The program got the fault alone.
        (build.error, build.fault) = (None, None);
        return Err(why);
    }
    if let Err(fault) = ended {
        let nowhere = SourceLocation { file: std::ptr::null(), line: 0, reserved: 0 };
        build.fail_with(fault, &nowhere, "the list of tasks");
    }
    if parts > 1 {
        build.note(|| {
            format!(
                "the program reads or writes elements of results while it is built: the device has run it in {}, one after the other",
                Counted(parts, "part")
            )
        });
    }
    report.map_or_else(|| nothing(device), Ok)
}

/// The device has tensors of the heap where the host has put them.
fn on_machine(options: &RunOptions) -> RunOptions {
    let mut options = options.clone();
    let stream = &mut options.capacities.stream;
    (stream.heap_rings, stream.heap_bytes) = (1, 4096);
    options
}

/// The report of a program without tasks.
fn nothing(device: &SharedDevice) -> Result<RunReport, Failure> {
    let list = device.memory().alloc(64)?;
    device.memory().copy_to_device(list, &[0; 64])?;
    let orch_args = pto_host::graph::plan::LaunchPart::TaskList(list).words();
    let builder = pto_host::graph::plan::BUILDER;
    let work = pto_host::Work::Stream { builder, orch_args: &orch_args };
    let ended = device.run(work, &RunOptions::default(), &RunControl::default());
    device.memory().free(list)?;
    ended
}
