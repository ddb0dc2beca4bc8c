//! Models: program files of the PTO Runtime in the memory of a device, and their runs on buffers of the program.
//!
//! A tensor that the model reads is one of its inputs, also where the model changes it in place; a tensor that it only writes is an
//! output. Constants and temporaries are the model's own.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use pto_host::stitch::{PlacedProgram, PlacedRun};
use pto_host::workload::WorkloadBindings;
use pto_host::workloads::plan::SymbolUse;
pub(crate) use pto_host::workloads::program::Program;
use pto_host::workloads::program::{Role, TensorDescription};

use super::lane::{Engine, Lane, NO_STREAM};
use super::memory_map;
use super::model_memory::{OwnMemory, Side, StatusReport, side_of};
use super::open::{Open, gm};
use crate::common::codes;
use crate::common::order::{MemoryUse, Touch};
use crate::common::refusal::{Answer, Refusal, require};

/// Sizes of memory are rounded up to multiples of this.
const SIZE_STEP: u64 = 64;

/// A loaded model.
pub(crate) struct LoadedModel {
    pub(crate) open: Arc<Open>,
    placed: PlacedProgram,
    /// Where runs go that the caller waits for; most programs never do, and a session has only so many streams.
    lane: OnceLock<Lane>,
    /// The sizes and symbols that the program has bound.
    values: Mutex<BTreeMap<String, Binding>>,
    /// Memory for what data sets do not have.
    own: OwnMemory,
}

/// Memory of the program that a tensor is in: its address, and how many bytes there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) address: usize,
    pub(crate) bytes: usize,
}

static MODELS: Mutex<BTreeMap<u32, Arc<LoadedModel>>> = Mutex::new(BTreeMap::new());
static NEXT: AtomicU32 = AtomicU32::new(1);
/// Runs that have ended without a failure.
static ENDED: AtomicU64 = AtomicU64::new(0);

fn loaded() -> MutexGuard<'static, BTreeMap<u32, Arc<LoadedModel>>> {
    MODELS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn count_run() {
    // Relaxed: the number alone is asked for.
    ENDED.fetch_add(1, Ordering::Relaxed);
}

/// How many runs of models, and of single operators, have ended without a failure on the devices of this process.
pub(crate) fn runs() -> u64 {
    // Relaxed: as above.
    ENDED.load(Ordering::Relaxed)
}

/// Reads a program; `name` is what messages call it.
pub(crate) fn read(bytes: &[u8], name: &str) -> Answer<Program> {
    Program::from_bytes(bytes).map_err(|error| {
        let text = format!(
            "{name} is no model for this library: {error}; make one with `pto program build`"
        );
        Refusal::new(codes::MODEL_FORMAT, text)
    })
}

/// Bytes of memory that a model needs: for its temporaries, and for its constants and its code.
pub(crate) fn sizes(program: &Program) -> [usize; 2] {
    let of = |role: Role| {
        let own = program.tensors().iter().filter(move |tensor| tensor.role == role);
        own.map(TensorDescription::bytes).fold(0_u64, u64::saturating_add)
    };
    let weights = of(Role::Constant).saturating_add(program.needs().code_bytes);
    [of(Role::Temporary), weights].map(|bytes| {
        let whole = bytes.max(1).checked_next_multiple_of(SIZE_STEP).unwrap_or(u64::MAX);
        usize::try_from(whole).unwrap_or(usize::MAX)
    })
}

/// Whether a run changes a tensor: an output, or an input that it updates in place.
const fn is_written(role: Role) -> bool {
    matches!(role, Role::Output | Role::Updated)
}

/// Loads a model onto a device; its number is returned.
pub(crate) fn load(open: &Arc<Open>, program: Program) -> Answer<u32> {
    let model = put(open, program)?;
    // The number comes from one counter, so it is unique.
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    loaded().insert(id, model);
    Ok(id)
}

/// Puts a program into the memory of a device.
pub(super) fn put(open: &Arc<Open>, program: Program) -> Answer<Arc<LoadedModel>> {
    if let Some(array) = program.arrays().first() {
        let text = format!(
            "the model {} needs the array {array} of an axis, which no data set can have; run it with `pto program run`",
            program.name()
        );
        return Err(Refusal::unsupported(text));
    }
    let native = pto_native::program::kernels(&program)?;
    Ok(Arc::new(LoadedModel {
        open: Arc::clone(open),
        own: OwnMemory::new(open, &program)?,
        placed: open.stitcher()?.place_with(program, native)?,
        lane: OnceLock::new(),
        values: Mutex::default(),
    }))
}

/// The model with this number.
pub(crate) fn get(id: u32) -> Answer<Arc<LoadedModel>> {
    loaded().get(&id).cloned().ok_or_else(|| no_model(id))
}

/// Forgets a model. Runs that were submitted still end.
pub(crate) fn unload(id: u32) -> Answer {
    get(id)?.open.check_unstuck()?;
    let model = loaded().remove(&id).ok_or_else(|| no_model(id))?;
    // The call that waited for a failed run has returned its error.
    model.open.wait().unwrap_or_default();
    Ok(())
}

/// Forgets the models of a device that is reset.
pub(crate) fn forget_all(device: i32) {
    loaded().retain(|_, model| model.open.index != device);
}

fn no_model(id: u32) -> Refusal {
    Refusal::new(codes::NO_MODEL, format!("there is no model {id}; it was unloaded, or never was"))
}

impl LoadedModel {
    pub(crate) fn program(&self) -> &Program {
        self.placed.program()
    }

    /// Binds a size or a symbol of the model, for all runs that are submitted from now on.
    pub(crate) fn bind(&self, name: &str, value: f64) -> Answer {
        let value = Binding::new(name, self.use_of(name)?, value)?;
        self.values().insert(name.to_owned(), value);
        Ok(())
    }

    fn use_of(&self, name: &str) -> Answer<SymbolUse> {
        let symbols = self.program().symbols();
        let found = symbols.iter().find(|(known, _)| known == name);
        found.map(|(_, used)| *used).ok_or_else(|| {
            let known: Vec<&str> = symbols.iter().map(|(known, _)| known.as_str()).collect();
            let model = self.program().name();
            Refusal::value(format!(
                "the model {model} has no size or symbol {name}; it has [{}]",
                known.join(", ")
            ))
        })
    }

    fn values(&self) -> MutexGuard<'_, BTreeMap<String, Binding>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bindings of a run.
    fn bindings(&self) -> WorkloadBindings {
        let bind = |bindings: WorkloadBindings, (name, value): (&String, &Binding)| match *value {
            Binding::Size(size) => bindings.size(name, size),
            Binding::Number(number) => bindings.symbol(name, number),
            Binding::Float(float) => bindings.symbol_f32(name, float),
        };
        self.values().iter().fold(WorkloadBindings::new(), bind)
    }

    /// Checks the buffers of a run, and puts their addresses into the order of the program.
    pub(crate) fn addresses(&self, inputs: &[Extent], outputs: &[Extent]) -> Answer<Vec<usize>> {
        let (mut inputs, mut outputs) = (
            BufferSide::new("input", inputs, codes::MODEL_INPUTS),
            BufferSide::new("output", outputs, codes::MODEL_OUTPUTS),
        );
        let mut addresses = Vec::new();
        for tensor in self.placed.outside() {
            addresses.push(match side_of(self.program(), tensor) {
                Side::Input => self.checked(&mut inputs, tensor)?,
                Side::Output => self.checked(&mut outputs, tensor)?,
                // A run has a status of its own.
                Side::Status | Side::Program => 0,
            });
        }
        inputs.check_end(self.program().name())?;
        outputs.check_end(self.program().name())?;
        Ok(addresses)
    }

    fn checked(&self, side: &mut BufferSide<'_>, tensor: &TensorDescription) -> Answer<usize> {
        let (number, extent) = side.next(self.program().name(), &tensor.name)?;
        let Extent { address, bytes } = extent;
        let refuse = |why: String| {
            let text = format!("{} {number} ({}): {why}", side.name, tensor.name);
            Refusal::new(side.code, text)
        };
        if let Some(scratch) = self.own.of_empty(self.program(), tensor) {
            return Ok(scratch);
        }
        let wanted = tensor.bytes();
        require(bytes as u64 >= wanted, || {
            refuse(format!("the buffer has {bytes} bytes, and the tensor takes {wanted}"))
        })?;
        require(address.is_multiple_of(tensor.dtype.bytes()), || {
            refuse(format!("the buffer at {address:#x} is not aligned to its elements"))
        })?;
        let device = memory_map::device_of(address, bytes)?.map(|open| open.index);
        require(device == Some(self.open.index), || {
            refuse(format!(
                "the buffer at {address:#x} is not memory of device {}, where the model is",
                self.open.index
            ))
        })?;
        Ok(address)
    }

    /// The memory that a run uses, with the buffers as [`LoadedModel::addresses`] has checked them.
    pub(crate) fn touches(&self, addresses: &[usize]) -> Vec<Touch> {
        let touch = |(tensor, address): (&TensorDescription, &usize)| {
            let bytes = usize::try_from(tensor.bytes()).unwrap_or(usize::MAX);
            // What a run updates in place is an input, and written all the same.
            let how = if is_written(tensor.role) { MemoryUse::Writes } else { MemoryUse::Reads };
            Touch::new(how, *address, bytes)
        };
        // What has no address yet is memory that no program knows.
        let of_data_sets =
            self.placed.outside().zip(addresses).filter(|(_, address)| **address != 0);
        of_data_sets.map(touch).collect()
    }

    /// Submits a run to a lane of the device. The program's description of a fault follows the device's.
    pub(crate) fn submit(&self, lane: &Lane, addresses: &[usize]) -> Answer {
        let (run, status) = self.begin(lane, addresses)?;
        lane.call(move || {
            run.check()?;
            status.map_or(Ok(()), StatusReport::check)?;
            count_run();
            Ok(())
        })
    }

    /// Runs it, and waits for the end. The program names a fault better than the device.
    pub(crate) fn run(&self, addresses: &[usize]) -> Answer {
        self.open.damage.check_healthy()?;
        let mut run = None;
        let own = self.lane()?;
        own.perform(Engine::Cores, &self.label(), |lane| {
            run = Some(self.begin(lane, addresses)?);
            Ok(())
        })?;
        let ended = own.synchronize(None);
        if let Some(run) = run {
            let (run, status): (PlacedRun, Option<StatusReport>) = run;
            run.check()?;
            ended?;
            status.map_or(Ok(()), StatusReport::check)?;
            count_run();
            return Ok(());
        }
        ended
    }

    /// What timelines and injected faults call a run.
    pub(crate) fn label(&self) -> String {
        format!("model {}", self.placed.program().name())
    }

    fn lane(&self) -> Answer<&Lane> {
        if let Some(lane) = self.lane.get() {
            return Ok(lane);
        }
        let lane = Lane::new(&self.open, 0, NO_STREAM, "models".to_owned())?;
        Ok(self.lane.get_or_init(|| lane))
    }

    fn begin(&self, lane: &Lane, addresses: &[usize]) -> Answer<(PlacedRun, Option<StatusReport>)> {
        let status = self.own.status()?;
        let at = status.as_ref().map_or(0, StatusReport::address);
        let addresses: Vec<_> =
            addresses.iter().map(|address| gm(if *address == 0 { at } else { *address })).collect();
        Ok((self.placed.submit(lane.stream(), &addresses, self.bindings())?, status))
    }
}

/// What a size or a symbol of a model is bound to.
#[derive(Clone, Copy, Debug)]
enum Binding {
    Size(u64),
    Number(u64),
    Float(f32),
}

impl Binding {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole numbers are checked before; a symbol of type f32 is rounded to it"
    )]
    fn new(name: &str, used: SymbolUse, value: f64) -> Answer<Self> {
        let is_whole = value.fract() == 0.0 && (0.0..WHOLE).contains(&value);
        require(matches!(used, SymbolUse::Float) || is_whole, || {
            Refusal::value(format!(
                "{name} takes a whole number from 0 to 2^53, and {value} is none"
            ))
        })?;
        Ok(match used {
            SymbolUse::Float => Self::Float(value as f32),
            SymbolUse::Number => Self::Number(value as u64),
            SymbolUse::Size(_) => Self::Size(value as u64),
        })
    }
}

/// 2^53: below it a number of type `double` can be every whole number.
const WHOLE: f64 = 9_007_199_254_740_992.0;

/// The buffers of one side, as they are taken one by one.
struct BufferSide<'b> {
    name: &'static str,
    code: i32,
    buffers: &'b [Extent],
    taken: usize,
}

impl<'b> BufferSide<'b> {
    const fn new(name: &'static str, buffers: &'b [Extent], code: i32) -> Self {
        Self { name, code, buffers, taken: 0 }
    }

    fn next(&mut self, model: &str, tensor: &str) -> Answer<(usize, Extent)> {
        let (number, name) = (self.taken, self.name);
        let extent = self.buffers.get(number).copied().ok_or_else(|| {
            let text = format!(
                "the model {model} has an {name} {number} ({tensor}), and the data set has {number} buffers"
            );
            Refusal::new(self.code, text)
        })?;
        self.taken += 1;
        Ok((number, extent))
    }

    fn check_end(&self, model: &str) -> Answer {
        let (name, taken, found) = (self.name, self.taken, self.buffers.len());
        require(taken == found, || {
            let text = format!(
                "the model {model} has {taken} {name}s, and the data set has {found} buffers"
            );
            Refusal::new(self.code, text)
        })
    }
}
