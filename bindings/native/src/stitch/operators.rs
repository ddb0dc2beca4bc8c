//! Operators on arrays in the order of a stream: each is a launch of a kernel on tensors of the stream.
//!
//! ```text
//! run --types, attributes--> plan (kept) --> launch in the stream --> arrays, at once
//!                                              | an index stands for no element
//!                                              +--> told by the next wait
//! ```
//! An array is a dense part of a tensor, with a type and extents of its own: `Reshape` and its kin, and parts along the first dimension, take no task and no
//! memory. Arrays do not change.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pto_host::Kernel;
use pto_host::abi::FuncId;
use pto_host::session::SessionError;
use pto_host::stitch::{HostTensor, KernelArgument, ProgramStream};
use pto_host::workloads::program::TensorLayout;
use pto_operators::{
    BlockWork as _, DType, Input, LAUNCH_COST_WORD, LOST_FAULT, LaunchStatus, LaunchedOperator,
    MOST_LAUNCH_TENSORS, Operator, OperatorError, PreparedOperator, Tensor, TensorType, run_launch,
};

use super::tensor::{SharedTensor, WHAT};
use crate::failure::{Failure, FailureKind};

/// Plans that a stream keeps, at most. Then it waits, and forgets all of them.
const MOST_PLANS: usize = 4096;
/// Launches that may fail between two waits, at most. The next one waits.
const MOST_UNCHECKED: usize = 1024;

/// A stream of programs on which operators run.
pub struct OperatorStream {
    stream: Arc<ProgramStream>,
    state: Mutex<State>,
    /// Held from the look for a plan to its launch, so that no plan is forgotten meanwhile.
    submitting: Mutex<()>,
}

#[derive(Default)]
struct State {
    kernels: HashMap<&'static str, FuncId>,
    plans: HashMap<Box<[u64]>, Arc<LaunchedOperator>>,
    /// How launches went that may fail, with their numbers.
    unchecked: Vec<(u64, Arc<LaunchStatus>)>,
    /// Launches so far.
    launched: u64,
    /// The first ones of them, which are over: kernels refer to plans and to statuses.
    ended: u64,
}

/// A dense part of a tensor.
#[derive(Clone, Debug)]
pub struct OperatorArray {
    tensor: Arc<SharedTensor>,
    /// Bytes in front of its first element.
    first: u64,
    ty: TensorType,
}

/// An input of an operator.
#[derive(Clone, Debug)]
pub enum OperatorInput {
    /// An array.
    Array(OperatorArray),
    /// A number without dimensions: its type, and its bits in the lowest bytes.
    Number(DType, u64),
}

impl OperatorInput {
    fn ty(&self) -> TensorType {
        match self {
            Self::Array(array) => array.ty.clone(),
            Self::Number(dtype, _) => TensorType::new(*dtype, &[]),
        }
    }
}

fn refused(error: &OperatorError) -> Failure {
    Failure::new(FailureKind::INVALID_ARGUMENT, error.to_string())
}

fn invalid(message: String) -> Failure {
    Failure::new(FailureKind::INVALID_ARGUMENT, message)
}

impl OperatorArray {
    /// The element type and the extents.
    #[must_use]
    pub const fn ty(&self) -> &TensorType {
        &self.ty
    }

    /// The tensor of which it is a part, and how many bytes are in front of it.
    #[must_use]
    pub const fn tensor(&self) -> (&Arc<SharedTensor>, u64) {
        (&self.tensor, self.first)
    }

    /// Elements of the array from `first` on, in these extents.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`: the array has fewer elements.
    pub fn part(&self, first: usize, shape: &[usize]) -> Result<Self, Failure> {
        let ty = TensorType::new(self.ty.dtype, shape);
        let end = first.checked_add(ty.elements());
        if end.is_none_or(|end| end > self.ty.elements()) {
            return Err(invalid(format!("{ty} from element {first} on is no part of {}", self.ty)));
        }
        let before = (first * ty.dtype.bytes()) as u64;
        Ok(Self { tensor: Arc::clone(&self.tensor), first: self.first + before, ty })
    }
}

impl OperatorStream {
    /// Operators on this stream.
    #[must_use]
    pub fn new(stream: &Arc<ProgramStream>) -> Self {
        Self { stream: Arc::clone(stream), state: Mutex::default(), submitting: Mutex::default() }
    }

    /// The stream.
    #[must_use]
    pub const fn stream(&self) -> &Arc<ProgramStream> {
        &self.stream
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies elements of the host to a new array; the copy is taken at once.
    ///
    /// # Errors
    /// The device has no room; there are not as many bytes as the type has.
    pub fn to_device(&self, tensor: Tensor) -> Result<OperatorArray, Failure> {
        let ty = tensor.ty().clone();
        let shape = ty.stored_shape();
        let mut bytes = tensor.into_bytes();
        // Nothing is a vector of one element there.
        bytes.resize(bytes.len().max(ty.dtype.bytes()), 0);
        let host = HostTensor::new(ty.dtype.stored(), &shape, bytes)?;
        let made = self.stream.to_device(&host, &TensorLayout::device())?;
        Ok(OperatorArray { tensor: SharedTensor::new(made), first: 0, ty })
    }

    /// A tensor of the stream as an array, without a copy. `bool` is stored as `u8`.
    ///
    /// # Errors
    /// `TENSOR_MOVED`, `OTHER_STREAM`, `TENSOR_LAYOUT`; `INVALID_ARGUMENT`: the elements are of another size.
    pub fn array_of(
        &self,
        tensor: &Arc<SharedTensor>,
        dtype: Option<DType>,
    ) -> Result<OperatorArray, Failure> {
        tensor.look(|found| {
            if !found.is_of(self.stream.session()) {
                return Err(SessionError::OtherSession { what: "the tensor".to_owned() }.into());
            }
            if found.stream() != self.stream.id() {
                let message =
                    format!("the tensor belongs to {}, and this is {}", found.stream(), self.stream.id());
                return Err(Failure::new(FailureKind::OTHER_STREAM, message));
            }
            if *found.layout() != TensorLayout::device() {
                let message = format!(
                    "the tensor is in the layout '{}', and operators take row-major ones of the device; use to_layout",
                    found.layout()
                );
                return Err(Failure::new(FailureKind::TENSOR_LAYOUT, message));
            }
            let own = found.dtype();
            let dtype = match dtype {
                Some(dtype) if dtype.stored() == own => dtype,
                Some(dtype) => {
                    return Err(invalid(format!(
                        "elements of type {dtype} are asked for, and the tensor has {own}; use cast"
                    )));
                }
                None => DType::ALL
                    .into_iter()
                    .find(|dtype| dtype.stored() == own && *dtype != DType::Bool)
                    .ok_or_else(|| invalid(format!("no operator takes elements of type {own}")))?,
            };
            let shape: Option<Vec<usize>> =
                found.shape().iter().map(|extent| usize::try_from(*extent).ok()).collect();
            let ty = TensorType::new(dtype, &shape.unwrap_or_default());
            Ok(OperatorArray { tensor: Arc::clone(tensor), first: 0, ty })
        })?
    }

    /// Waits for an array, and copies its elements to the host.
    ///
    /// # Errors
    /// Those of [`synchronize`](Self::synchronize); `TENSOR_MOVED`.
    pub fn to_host(&self, array: &OperatorArray) -> Result<Tensor, Failure> {
        let read = self.wait(|stream| {
            let state = array.tensor.read();
            let found = state.tensor(WHAT)?;
            Ok(stream.read_bytes(found, array.first, array.ty.bytes())?)
        })?;
        Tensor::from_bytes(array.ty.clone(), read)
            .map_err(|found| invalid(format!("{found} bytes are not {}", array.ty)))
    }

    /// Waits for all operators so far, and says whether they went well.
    ///
    /// # Errors
    /// Those of [`ProgramStream::synchronize`]; `INVALID_ARGUMENT`: an index stood for no element; the elements of this operator's results are undefined. It is told
    /// once.
    pub fn synchronize(&self) -> Result<(), Failure> {
        self.wait(|stream| Ok(stream.synchronize()?))
    }

    /// Waits by `wait`, which synchronises the stream.
    fn wait<R>(
        &self,
        wait: impl FnOnce(&ProgramStream) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let launched = self.state().launched;
        let result = wait(&self.stream)?;
        if let Some(fault) = LOST_FAULT.get() {
            return Err(Failure::new(FailureKind::PANIC, fault.clone()));
        }
        let mut state = self.state();
        state.ended = state.ended.max(launched);
        // Another thread may have launched more meanwhile.
        let (ended, going_on) = std::mem::take(&mut state.unchecked)
            .into_iter()
            .partition(|(number, _)| *number <= launched);
        state.unchecked = going_on;
        drop(state);
        let ended: Vec<(u64, Arc<LaunchStatus>)> = ended;
        match ended.iter().find_map(|(_, status)| status.get()) {
            None => Ok(result),
            Some(why) => Err(invalid(why.clone())),
        }
    }

    /// Runs an operator, and returns at once: the first `results` of its results. Where the extents of the results depend on elements of the inputs, it waits for these.
    ///
    /// # Errors
    /// Those of [`Operator::infer`]; an array is of another stream, or its tensor was given to a run (`TENSOR_MOVED`); the device has no room, or runs no code of this
    /// process.
    pub fn run(
        &self,
        operator: &Operator,
        inputs: &[Option<OperatorInput>],
        results: usize,
    ) -> Result<Vec<OperatorArray>, Failure> {
        if operator.needs_elements() {
            return self.run_on_host(operator, inputs);
        }
        let types: Vec<_> =
            inputs.iter().map(|input| input.as_ref().map(OperatorInput::ty)).collect();
        let _submitting = self.submitting.lock().unwrap_or_else(PoisonError::into_inner);
        let plan = self.plan(operator, inputs, types, results)?;
        let outputs = plan.operator().outputs();
        if let (true, Some(Some(OperatorInput::Array(x)))) =
            (operator.keeps_elements(), inputs.first())
        {
            return Ok(vec![x.part(0, &outputs[0].shape)?]);
        }
        let made: Vec<OperatorArray> = outputs
            .iter()
            .map(|ty| {
                let tensor = self.stream.uninitialised(ty.dtype.stored(), &ty.stored_shape())?;
                Ok(OperatorArray { tensor: SharedTensor::new(tensor), first: 0, ty: ty.clone() })
            })
            .collect::<Result<_, Failure>>()?;
        if plan.operator().work().units > 0 {
            self.launch(operator, &plan, inputs, &made)?;
        }
        Ok(made)
    }

    /// The operator on these types, checked, which is kept.
    fn plan(
        &self,
        operator: &Operator,
        inputs: &[Option<OperatorInput>],
        types: Vec<Option<TensorType>>,
        results: usize,
    ) -> Result<Arc<LaunchedOperator>, Failure> {
        let by_value: Vec<bool> =
            inputs.iter().map(|input| matches!(input, Some(OperatorInput::Number(..)))).collect();
        let mut key = operator.words();
        key.push(results as u64);
        for (ty, by_value) in types.iter().zip(&by_value) {
            let Some(ty) = ty else {
                key.push(0);
                continue;
            };
            key.push(1 + u64::from(*by_value));
            key.extend([ty.dtype as u64, ty.rank() as u64]);
            key.extend(ty.shape.iter().map(|extent| *extent as u64));
        }
        if let Some(plan) = self.state().plans.get(&*key) {
            return Ok(Arc::clone(plan));
        }
        let given: Vec<_> = types.iter().map(|ty| ty.as_ref().map(Input::from)).collect();
        let mut outputs = operator.infer(&given).map_err(|error| refused(&error))?;
        if results == 0 || results > outputs.len() {
            return Err(invalid(format!(
                "operator {}: {results} results are asked for; ask for 1 to {}",
                operator.name(),
                outputs.len()
            )));
        }
        outputs.truncate(results);
        if types.len() + outputs.len() > MOST_LAUNCH_TENSORS {
            return Err(invalid(format!(
                "operator {}: there are {} inputs and results; a launch takes {MOST_LAUNCH_TENSORS}",
                operator.name(),
                types.len() + outputs.len()
            )));
        }
        let prepared = PreparedOperator::new(operator.clone(), types, outputs);
        let prepared = prepared.map_err(|error| refused(&error))?;
        let plan = Arc::new(LaunchedOperator::new(prepared, by_value));
        if self.state().plans.len() >= MOST_PLANS {
            self.synchronize()?;
            self.state().plans.clear();
        }
        self.state().plans.insert(key.into_boxed_slice(), Arc::clone(&plan));
        Ok(plan)
    }

    fn launch(
        &self,
        operator: &Operator,
        plan: &Arc<LaunchedOperator>,
        inputs: &[Option<OperatorInput>],
        made: &[OperatorArray],
    ) -> Result<(), Failure> {
        let func_id = self.kernel(operator, plan)?;
        let arrays = inputs.iter().flatten().filter_map(|input| match input {
            OperatorInput::Array(array) => Some(array),
            OperatorInput::Number(..) => None,
        });
        // Each tensor is locked once, in the order of their addresses, so that nobody gives it away meanwhile, and two threads do not wait for each other.
        let mut tensors: Vec<_> = arrays.chain(made).map(|array| &array.tensor).collect();
        tensors.sort_by_key(|tensor| Arc::as_ptr(tensor).addr());
        tensors.dedup_by(|one, other| Arc::ptr_eq(one, other));
        let states: Vec<_> = tensors.iter().map(|tensor| tensor.read()).collect();
        let argument = |array: &OperatorArray| {
            let at = tensors.iter().position(|tensor| Arc::ptr_eq(tensor, &array.tensor));
            let tensor = states[at.unwrap_or(0)].tensor(WHAT)?;
            Ok::<_, Failure>(KernelArgument::Tensor(tensor, array.first))
        };
        let status = plan.operator().work().can_fail.then(Arc::<LaunchStatus>::default);
        let address = |of: usize| KernelArgument::Word(of as u64);
        let mut args = vec![
            address(Arc::as_ptr(plan).expose_provenance()),
            address(status.as_ref().map_or(0, |status| Arc::as_ptr(status).expose_provenance())),
            KernelArgument::Word(plan.block_ns()),
        ];
        for input in inputs {
            args.push(match input {
                None => KernelArgument::Word(0),
                Some(OperatorInput::Number(_, bits)) => KernelArgument::Word(*bits),
                Some(OperatorInput::Array(array)) => argument(array)?,
            });
        }
        for array in made {
            args.push(argument(array)?);
        }
        if self.state().unchecked.len() >= MOST_UNCHECKED {
            self.synchronize()?;
        }
        self.stream.launch_kernel(func_id, plan.blocks(), &args)?;
        let mut state = self.state();
        state.launched += 1;
        let number = state.launched;
        state.unchecked.extend(status.map(|status| (number, status)));
        Ok(())
    }

    /// The kernel of an operator, by its name in timelines.
    fn kernel(&self, operator: &Operator, plan: &LaunchedOperator) -> Result<FuncId, Failure> {
        let name = operator.name();
        if let Some(func_id) = self.state().kernels.get(name) {
            return Ok(*func_id);
        }
        let kind = plan.operator().work().kind;
        let kernel = Kernel::from_fn(name, kind, run_launch::<LaunchedOperator>)
            .with_cost_word(LAUNCH_COST_WORD);
        let func_id = self.stream.session().func_id_of(kernel)?;
        self.state().kernels.insert(name, func_id);
        Ok(func_id)
    }

    /// Computes here what gives as many elements as the inputs say.
    fn run_on_host(
        &self,
        operator: &Operator,
        inputs: &[Option<OperatorInput>],
    ) -> Result<Vec<OperatorArray>, Failure> {
        let value = |input: &Option<OperatorInput>| match input {
            None => Ok(None),
            Some(OperatorInput::Array(array)) => self.to_host(array).map(Some),
            Some(OperatorInput::Number(dtype, bits)) => {
                let bytes = bits.to_ne_bytes()[..dtype.bytes()].to_vec();
                Ok(Tensor::from_bytes(TensorType::new(*dtype, &[]), bytes).ok())
            }
        };
        let values: Vec<Option<Tensor>> = inputs.iter().map(value).collect::<Result<_, _>>()?;
        let given: Vec<_> = values.iter().map(Option::as_ref).collect();
        let known: Vec<_> = given.iter().map(|value| value.map(Input::from)).collect();
        let types = operator.infer(&known).map_err(|error| refused(&error))?;
        let (size, _) = self.stream.session().memory().size();
        if let Some(ty) = types.iter().find(|ty| ty.bytes() as u64 > size) {
            let message = format!(
                "operator {}: the result is {ty}, of {} bytes, and the device has {size}",
                operator.name(),
                ty.bytes()
            );
            return Err(Failure::new(FailureKind::OUT_OF_MEMORY, message));
        }
        let made = operator.evaluate(&given).map_err(|error| refused(&error))?;
        made.into_iter().map(|tensor| self.to_device(tensor)).collect()
    }
}

impl Drop for OperatorStream {
    fn drop(&mut self) {
        let mut state = self.state();
        if state.ended < state.launched {
            // Kernels that are under way refer to these, and nobody waits for them any more.
            std::mem::forget(std::mem::take(&mut *state));
        }
    }
}
