//! Models on a device: a program is loaded once for certain extents, and runs any number of times.

use std::collections::BTreeMap;

use pto_host::stitch::{HostTensor, Inputs, LoadedProgram, ProgramStream, Stitcher};
use pto_host::workloads::program::TensorLayout;
use pto_host::{Kernel, Session};
use pto_operators::{
    COST_WORD, LowerOptions, Lowered, OperatorKernel, STATUS, Status, Tensor, TensorType, ValueId,
    node_titles,
};

use crate::build::Built;
use crate::error::ModelError;

impl Built {
    /// The program of the graph.
    ///
    /// # Errors
    /// `Lower`: operators do not become tasks; all of them are told.
    pub fn lower(&self, options: &LowerOptions) -> Result<Lowered, ModelError> {
        self.graph.lower(options).map_err(|errors| {
            let lines: Vec<_> = errors.iter().map(ToString::to_string).collect();
            ModelError::Lower(lines.join("\n"))
        })
    }

    /// What the graph gives of these inputs, computed on the host, one operator after another.
    ///
    /// # Errors
    /// `Input`: an input is missing, or has another type. `Lower`: an operator does not take the values.
    pub fn evaluate(
        &self,
        values: &BTreeMap<String, Tensor>,
    ) -> Result<Vec<(String, Tensor)>, ModelError> {
        let graph = &self.graph;
        let mut known: BTreeMap<ValueId, Tensor> = BTreeMap::new();
        for input in graph.inputs() {
            let value = graph.value(*input);
            let given = values.get(&value.name).filter(|given| *given.ty() == value.ty);
            let given = given.ok_or_else(|| ModelError::Input {
                input: value.name.clone(),
                reason: format!("{} is wanted", value.ty),
            })?;
            known.insert(*input, given.clone());
        }
        let find = |known: &BTreeMap<ValueId, Tensor>, value: ValueId| {
            known.get(&value).or(graph.value(value).constant.as_ref()).cloned()
        };
        for node in graph.nodes() {
            let inputs: Vec<_> = node
                .inputs
                .iter()
                .map(|input| input.and_then(|input| find(&known, input)))
                .collect();
            let inputs: Vec<_> = inputs.iter().map(Option::as_ref).collect();
            let results = node.operator.evaluate(&inputs);
            let results = results
                .map_err(|error| ModelError::Lower(format!("node {}: {error}", node.name)))?;
            known.extend(node.outputs.iter().copied().zip(results));
        }
        let outputs = graph.outputs().iter();
        Ok(outputs
            .filter_map(|(name, value)| Some((name.clone(), find(&known, *value)?)))
            .collect())
    }
}

/// Runs models on the device of a session.
pub struct Runner {
    stitcher: Stitcher,
    stream: ProgramStream,
}

/// A model in the memory of a device.
pub struct LoadedModel {
    program: LoadedProgram,
    inputs: Vec<(String, TensorType)>,
    outputs: Vec<(String, TensorType)>,
    /// What messages call its nodes.
    nodes: Vec<String>,
}

fn device(error: impl std::fmt::Display) -> ModelError {
    ModelError::Device(error.to_string())
}

impl Runner {
    /// A runner with a stream of its own.
    ///
    /// # Errors
    /// `Device`: the session has no room.
    pub fn new(session: &Session) -> Result<Self, ModelError> {
        let stitcher = Stitcher::new(session).map_err(device)?;
        let stream = stitcher.stream().map_err(device)?;
        Ok(Self { stitcher, stream })
    }

    /// What was copied, allocated and converted so far.
    #[must_use]
    pub fn counters(&self) -> pto_host::stitch::Counters {
        self.stitcher.counters()
    }

    /// The stream, for its reports.
    #[must_use]
    pub const fn stream(&self) -> &ProgramStream {
        &self.stream
    }

    /// Puts a model into the memory of the device.
    ///
    /// # Errors
    /// `Device`: the device has no room for it.
    pub fn load(&self, lowered: Lowered) -> Result<LoadedModel, ModelError> {
        let operators = pto_operators::kernels(&lowered.program)
            .map_err(|error| ModelError::Lower(error.to_string()))?;
        let kernel = |found: OperatorKernel| {
            Kernel::from_fn(found.name, found.kind, found.entry).with_cost_word(COST_WORD)
        };
        let kernels = operators.into_iter().map(kernel).collect();
        let nodes = node_titles(&lowered.program);
        let (inputs, outputs) = (lowered.inputs, lowered.outputs);
        let program = self.stitcher.load_with(lowered.program, kernels).map_err(device)?;
        Ok(LoadedModel { program, inputs, outputs, nodes })
    }

    /// Runs a model: its outputs, in their order.
    ///
    /// # Errors
    /// `Input`: an input is missing, or has another type. `Device`: the run ended with a fault.
    pub fn run(
        &self,
        model: &LoadedModel,
        values: &BTreeMap<String, Tensor>,
    ) -> Result<Vec<(String, Tensor)>, ModelError> {
        let mut given = Vec::new();
        for (name, ty) in &model.inputs {
            let refused = |reason: String| ModelError::Input { input: name.clone(), reason };
            let value = values.get(name).ok_or_else(|| refused("it is missing".to_owned()))?;
            if value.ty() != ty {
                return Err(refused(format!(
                    "{} is given, and the program is for {ty}",
                    value.ty()
                )));
            }
            let described = model.program.program().tensor(name).map_err(device)?;
            let mut bytes = value.bytes().to_vec();
            // Nothing is a vector of one element on a device.
            bytes.resize(usize::try_from(described.bytes()).unwrap_or(0), 0);
            let host = HostTensor::new(described.dtype, &described.shape, bytes).map_err(device)?;
            given.push((
                name,
                self.stream.to_device(&host, &TensorLayout::device()).map_err(device)?,
            ));
        }
        let inputs =
            given.iter().fold(Inputs::new(), |inputs, (name, tensor)| inputs.borrow(name, tensor));
        let mut outputs = self.stream.run(&model.program, inputs).map_err(device)?;
        self.stream.synchronize().map_err(device)?;
        let mut taken = |name: &str| -> Result<Vec<u8>, ModelError> {
            let tensor = outputs.take(name).map_err(device)?;
            Ok(self.stream.to_host(&tensor).map_err(device)?.bytes().to_vec())
        };
        if model.program.program().tensor(STATUS).is_ok() {
            let words: Vec<u64> =
                taken(STATUS)?.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).collect();
            if let Some(why) = Status::read(&words).reason(&model.nodes) {
                return Err(ModelError::Device(why));
            }
        }
        let mut results = Vec::new();
        for (name, ty) in &model.outputs {
            let mut bytes = taken(name)?;
            bytes.truncate(ty.bytes());
            let tensor = Tensor::from_bytes(ty.clone(), bytes);
            let tensor = tensor.map_err(|bytes| {
                ModelError::Device(format!("output {name} has {bytes} bytes, and {ty} is wanted"))
            })?;
            results.push((name.clone(), tensor));
        }
        Ok(results)
    }
}
