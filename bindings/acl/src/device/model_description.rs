//! What a model says of its inputs and outputs.

use std::ffi::CString;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pto_host::workloads::program::{Format, Program, TensorDescription};
use pto_operators::DType;

use super::data_type;
use super::model_memory::{Side, side_of};
use super::tensor_desc::TensorDesc;
use crate::common::refusal::{Answer, Refusal};
use crate::common::table::{Handle, HandleTable, Kind};

static DESCRIPTIONS: HandleTable<ModelDescription> = HandleTable::new(Kind::ModelDescription);

/// A description; empty until a model is described. Its texts live as long as it does.
#[derive(Default)]
pub(crate) struct ModelDescription(Mutex<Vec<Arc<Sides>>>);

/// Inputs and outputs of one model. A description keeps those of earlier models, because programs may hold their names.
pub(crate) struct Sides {
    inputs: Vec<Tensor>,
    outputs: Vec<Tensor>,
}

/// One input or output.
pub(crate) struct Tensor {
    pub(crate) described: TensorDescription,
    /// The extents that the model has, which a program file may not be able to say.
    pub(crate) shape: Vec<u64>,
    /// The element type that the model has.
    pub(crate) dtype: DType,
    pub(crate) name: CString,
}

/// Which side of a model.
#[derive(Clone, Copy)]
pub(crate) enum ModelSide {
    Inputs,
    Outputs,
}

impl ModelDescription {
    fn list(&self) -> MutexGuard<'_, Vec<Arc<Sides>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the description of a program to those before it.
    pub(crate) fn describe(&self, program: &Program) -> Answer {
        let of = |side: Side| {
            let own = program.tensors().iter().filter(|tensor| side_of(program, tensor) == side);
            own.map(|tensor| Tensor::of(program, tensor)).collect::<Answer<Vec<_>>>()
        };
        let sides = Sides { inputs: of(Side::Input)?, outputs: of(Side::Output)? };
        self.list().push(Arc::new(sides));
        Ok(())
    }
}

impl Tensor {
    fn of(program: &Program, described: &TensorDescription) -> Answer<Self> {
        let name = CString::new(described.name.as_str()).map_err(|_| {
            Refusal::value(format!("the name of the tensor {:?} holds a zero", described.name))
        })?;
        let of_model = program.model().and_then(|model| {
            let mut tensors = model.inputs.iter().chain(&model.outputs);
            tensors.find(|tensor| tensor.name == described.name)
        });
        let shape = of_model.map_or(&described.shape, |tensor| &tensor.shape).clone();
        let dtype = match of_model {
            Some(tensor) if tensor.is_bool => DType::Bool,
            _ => data_type::of_stored(described.dtype),
        };
        Ok(Self { described: described.clone(), shape, dtype, name })
    }

    /// Bytes that a buffer for it has at least.
    pub(crate) fn bytes(&self) -> usize {
        if self.shape.contains(&0) {
            return 0;
        }
        usize::try_from(self.described.bytes()).unwrap_or(usize::MAX)
    }

    /// `aclFormat`: the tiles of the device are FRACTAL_NZ, everything else is ND.
    pub(crate) fn format(&self) -> i32 {
        let is_nz = self.described.layout.format == Format::nz(self.described.dtype.bytes());
        if is_nz { 29 } else { 2 }
    }

    /// `aclDataType`.
    pub(crate) fn data_type(&self) -> i32 {
        data_type::number(self.dtype)
    }
}

/// What a model gives, as data sets describe it.
pub(crate) fn output_types(program: &Program) -> Answer<Vec<TensorDesc>> {
    let outputs = program.tensors().iter().filter(|one| side_of(program, one) == Side::Output);
    outputs
        .map(|tensor| {
            let tensor = Tensor::of(program, tensor)?;
            let extent = |extent: &u64| i64::try_from(*extent).unwrap_or(i64::MAX);
            Ok(TensorDesc {
                data_type: tensor.data_type(),
                shape: tensor.shape.iter().map(extent).collect(),
                format: tensor.format(),
                constant: None,
            })
        })
        .collect()
}

impl Sides {
    /// All of one side.
    pub(crate) fn of(&self, side: ModelSide) -> &[Tensor] {
        match side {
            ModelSide::Inputs => &self.inputs,
            ModelSide::Outputs => &self.outputs,
        }
    }

    /// One of a side.
    pub(crate) fn tensor(&self, side: ModelSide, index: usize) -> Answer<&Tensor> {
        let tensors = self.of(side);
        tensors.get(index).ok_or_else(|| {
            let name = side.name();
            Refusal::argument(format!(
                "there is no {name} {index}; the model has {}",
                tensors.len()
            ))
        })
    }
}

impl ModelSide {
    /// What messages call one of it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Inputs => "input",
            Self::Outputs => "output",
        }
    }
}

/// A description of nothing.
pub(crate) fn create() -> Handle {
    DESCRIPTIONS.open(ModelDescription::default())
}

/// Forgets a description, and the names that it gave.
pub(crate) fn destroy(description: Handle) -> Answer {
    DESCRIPTIONS.take(description).map(drop)
}

/// The description of a handle.
pub(crate) fn get(description: Handle) -> Answer<Arc<ModelDescription>> {
    DESCRIPTIONS.get(description)
}

/// The sides of the model that was described last.
pub(crate) fn sides(description: Handle) -> Answer<Arc<Sides>> {
    let last = get(description)?.list().last().cloned();
    last.ok_or_else(|| Refusal::argument("modelDesc describes no model; call aclmdlGetDesc first"))
}
