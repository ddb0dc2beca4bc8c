//! A workload in the memory of a device, bound and ready to run.

use std::collections::BTreeMap;

use pto_abi::arena::Capacities;
use pto_abi::limits::MAX_FUNC_ID;
use pto_abi::numbers::Grouped;
use pto_abi::stream::StreamCapacities;
use pto_abi::{BuildMode, CoreKind, FuncId};
use pto_aicore_kernels::KernelFn;
use pto_graph::plan::LaunchPart;
use pto_graph::plan::layout::{binding, limits};
use pto_graph::plan::task::scratch;
use pto_graph::plan::{BUILDER, epitaph};
use pto_workload::plan::{Compiled, RunFault};

use super::bindings::{BindingError, WorkloadBindings};
use crate::buffer::DeviceBuffer;
use crate::control::RunControl;
use crate::device::Device;
use crate::error::Error;
use crate::kernel::Kernel;
use crate::options::{RunOptions, Work};
use crate::report::RunReport;

/// The func ids from which on kernels have names of their own in [`WorkloadRun::run_named`]: the last ones.
const FIRST_FUNC: u16 = 992;
const _: () = assert!(FIRST_FUNC as usize + limits::KERNELS == MAX_FUNC_ID);

/// Why a workload did not run, or not to its end.
#[derive(thiserror::Error)]
pub enum WorkloadError {
    /// Something is bound wrongly, or not at all.
    #[error(transparent)]
    Binding(#[from] BindingError),
    /// The device refuses it, or the run ended with a fault that is not the workload's.
    #[error(transparent)]
    Device(#[from] Error),
    /// The expansion stopped, or a kernel ended with a fault.
    #[error("workload {workload}: {fault}")]
    Fault {
        /// The workload.
        workload: String,
        /// The fault.
        fault: RunFault,
    },
}

crate::debug_as_display::debug_as_display!(WorkloadError);

/// A workload in the memory of a device. It is run any number of times; the tensors are the caller's.
#[derive(Debug)]
pub struct WorkloadRun {
    compiled: Compiled,
    plan: DeviceBuffer<u32>,
    code: Option<DeviceBuffer<u8>>,
    bindings: DeviceBuffer<u64>,
    epitaph: DeviceBuffer<u64>,
    scratch: DeviceBuffer<u64>,
    /// Cores that have a slot of the scratch memory.
    slots: usize,
    orch_args: [u64; LaunchPart::WORDS],
    /// Kernels whose bodies are functions of this process.
    functions: BTreeMap<String, KernelFn>,
}

/// The part of a launch that submits a plan.
pub(crate) fn plan_part(plan: &DeviceBuffer<u32>, bindings: &DeviceBuffer<u64>) -> LaunchPart {
    LaunchPart::Plan {
        plan: plan.address(),
        // A plan has some thousand words at most.
        words: u32::try_from(plan.len()).unwrap_or(u32::MAX),
        bindings: bindings.address(),
        binding_words: bindings.len() as u64,
    }
}

impl WorkloadRun {
    /// Puts a workload into the memory of `device`. The tensors and arrays that it is bound to must live as long as it runs.
    ///
    /// # Errors
    /// Something is not bound, or bound and not there; the device has no room.
    pub fn bind(
        device: &Device,
        compiled: Compiled,
        bound: &WorkloadBindings,
    ) -> Result<Self, WorkloadError> {
        let mut words = bound.words(&compiled)?;
        let plan = device.upload(compiled.words())?;
        let code = match compiled.code() {
            [] => None,
            code => Some(device.upload(code)?),
        };
        let epitaph = device.zeroed(usize::try_from(epitaph::WORDS).unwrap_or(0))?;
        let slots = CoreKind::ALL.iter().map(|kind| device.cores(*kind)).sum::<u32>();
        let slots = usize::try_from(slots).unwrap_or(usize::MAX);
        let scratch = device.zeroed(scratch::words(slots, compiled.frame_words()))?;
        words[binding::CODE] = code.as_ref().map_or(0, |code| code.address().0);
        words[binding::CODE_BYTES] = compiled.code().len() as u64;
        words[binding::EPITAPH] = epitaph.address().0;
        words[binding::SCRATCH] = scratch.address().0;
        words[binding::CORES] = slots as u64;
        let bindings = device.upload(&words)?;
        let orch_args = plan_part(&plan, &bindings).words();
        let functions = bound.functions().clone();
        let run =
            Self { compiled, plan, code, bindings, epitaph, scratch, slots, orch_args, functions };
        run.reset()?;
        Ok(run)
    }

    /// Binds it to something else. Nothing is compiled, and the plan stays where it is.
    ///
    /// # Errors
    /// Something is not bound, or bound and not there.
    pub fn rebind(&mut self, bound: &WorkloadBindings) -> Result<(), WorkloadError> {
        let mut words = bound.words(&self.compiled)?;
        let head = self.bindings.read()?;
        let kept = [
            binding::CODE,
            binding::CODE_BYTES,
            binding::EPITAPH,
            binding::SCRATCH,
            binding::CORES,
        ];
        for at in kept {
            words[at] = head[at];
        }
        self.functions.clone_from(bound.functions());
        Ok(self.bindings.write(&words)?)
    }

    /// The workload.
    #[must_use]
    pub const fn compiled(&self) -> &Compiled {
        &self.compiled
    }

    /// The orchestration words of a run.
    #[must_use]
    pub const fn orch_args(&self) -> &[u64] {
        &self.orch_args
    }

    /// What a device is to do.
    #[must_use]
    pub const fn work(&self) -> Work<'_> {
        Work::Stream { builder: BUILDER, orch_args: &self.orch_args }
    }

    /// Forgets the fault and the cycles of the last run. To be called before each run.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn reset(&self) -> Result<(), Error> {
        let frame_words = self.compiled.frame_words();
        let mut head = vec![0; scratch::places_at(self.slots)];
        head[scratch::PLACES] = self.slots as u64;
        head[scratch::PLACE_WORDS] = scratch::place_words(frame_words) as u64;
        self.scratch.write(&head)?;
        self.epitaph.write(&vec![0; self.epitaph.len()])
    }

    /// What the last run ended with, in the words of the workload; `None`: no fault of its own.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn fault(&self) -> Result<Option<RunFault>, Error> {
        Ok(self.compiled.fault(&self.epitaph.read()?))
    }

    /// Runs it.
    ///
    /// # Errors
    /// The fault that ended it: of the workload, or of the device.
    pub fn run(
        &self,
        device: &mut Device,
        options: &RunOptions,
    ) -> Result<RunReport, WorkloadError> {
        if !self.functions.is_empty() {
            // A function is reached by a func id of its own.
            return self.run_named(device, options, &RunControl::new());
        }
        self.reset()?;
        let result = device.run(self.work(), options);
        if let Some(fault) = self.fault()? {
            return Err(WorkloadError::Fault { workload: self.compiled.name().to_owned(), fault });
        }
        Ok(result?)
    }

    /// Runs it; in reports and timelines its kernels have the names that they have in the workload. `control` reaches the run from
    /// other threads. While the run lasts, the last 32 func ids of the device are those of the kernels.
    ///
    /// # Errors
    /// As [`run`](Self::run); `DuplicateFuncId`: one of these func ids is registered.
    pub fn run_named(
        &self,
        device: &mut Device,
        options: &RunOptions,
        control: &RunControl,
    ) -> Result<RunReport, WorkloadError> {
        self.reset()?;
        let options = self.sized(options);
        self.plan.write(&self.compiled.words_from_func(FuncId(FIRST_FUNC)))?;
        let mut named = Vec::new();
        let registered = self.register(device, &mut named);
        let result =
            registered.and_then(|()| device.run_controlled(self.work(), &options, control));
        named.into_iter().try_for_each(|func| device.unregister_kernel(func))?;
        self.plan.write(self.compiled.words())?;
        if let Some(fault) = self.fault()? {
            return Err(WorkloadError::Fault { workload: self.compiled.name().to_owned(), fault });
        }
        let mut report = result?;
        if let Some(trace) = &mut report.trace {
            trace.run.extend(self.cycle_facts()?);
        }
        Ok(report)
    }

    /// What the kernels of the last run say on the `v9` clock, for its timeline, which has the times of the device.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn cycle_facts(&self) -> Result<Vec<(String, String)>, Error> {
        let mut facts = vec![("v9 cycles".to_owned(), Grouped(self.kernel_cycles()?).to_string())];
        // What a body in another language says is known only when it has run.
        let tiles = self.compiled.tile_kernels().iter();
        for kernel in tiles.filter(|kernel| !self.functions.contains_key(kernel.name())) {
            let cycles = Grouped(kernel.code().whole_cycles());
            let name = format!("v9 cycles of {}", kernel.name());
            facts.push((name, format!("{cycles} on whole tiles")));
        }
        Ok(facts)
    }

    /// The options of a run that asks for no windows: the ring has the window of the workload's schedule, and no heap, since a plan
    /// has no tensors of its own. One that is sequential holds all of its tasks at once, as many as `capacities.tasks`.
    fn sized(&self, options: &RunOptions) -> RunOptions {
        let mut options = options.clone();
        if options.capacities.stream != StreamCapacities::OFF {
            return options;
        }
        if options.build_mode == BuildMode::SEQUENTIAL {
            options.capacities = options.capacities.streamed_whole();
        } else {
            options.capacities = for_plans(options.capacities, self.compiled.window());
        }
        without_heap(&mut options.capacities);
        options
    }

    /// Registers the kernels under their own names; `named` are those that were.
    fn register(&self, device: &mut Device, named: &mut Vec<FuncId>) -> Result<(), Error> {
        for (func, (name, executor)) in (FIRST_FUNC..).zip(self.compiled.kernels()) {
            let executor = Kernel::library(executor)?;
            let kernel = match self.functions.get(name) {
                Some(body) => Kernel::from_fn(name, executor.kind(), *body),
                None => executor.named(name),
            };
            device.register_kernel(FuncId(func), kernel)?;
            named.push(FuncId(func));
        }
        Ok(())
    }

    /// The cycles on the `v9` clock that the kernels of the last run have reported, in sum.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn kernel_cycles(&self) -> Result<u64, Error> {
        let head = self.scratch.read_first(scratch::places_at(self.slots))?;
        let lines = head.get(scratch::FLAGS..).unwrap_or(&[]).chunks(scratch::FLAG_WORDS);
        Ok(lines.filter_map(|line| line.get(scratch::CYCLES)).sum())
    }

    /// Bytes of GM that it takes in addition to its tensors.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let words = self.bindings.len() + self.epitaph.len() + self.scratch.len();
        4 * self.plan.len() + 8 * words + self.code.as_ref().map_or(0, DeviceBuffer::len)
    }
}

/// The capacities of a run of plans that asks for no windows: a window of so many slots, and no heap, since a plan has no tensors of its own. The usual
/// heaps are 256 MiB.
pub(crate) fn for_plans(asked: Capacities, window: u32) -> Capacities {
    if asked.stream != StreamCapacities::OFF {
        return asked;
    }
    let per_slot = 16 * u64::from(window);
    let mut capacities = Capacities {
        stream: StreamCapacities { window, ..StreamCapacities::STANDARD },
        arg_words: asked.arg_words.max(per_slot),
        edges: asked.edges.max(per_slot),
        ..asked
    };
    without_heap(&mut capacities);
    capacities
}

const fn without_heap(capacities: &mut Capacities) {
    (capacities.stream.heap_rings, capacities.stream.heap_bytes) = (1, 64);
}
