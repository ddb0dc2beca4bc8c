//! What a program says of the model that it was made of: the types and extents of its inputs and outputs as the model has them, and the names of its nodes.
//!
//! A [`TensorDescription`] has one to five extents, none of which is 0, and no element type `bool`. A model has scalars, tensors with more dimensions, tensors
//! without elements, and truth values; a program file holds those as vectors, and as `u8`.

use super::bytes::{Reader, Writer};
use super::description::{Role, TensorDescription};
use super::error::ProgramError;
use super::format::Kind;
use pto_aicore_kernels::tile::DType;

/// An input or an output of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelTensor {
    /// The name of the program's tensor that holds it.
    pub name: String,
    /// The extents; none: it is a scalar.
    pub shape: Vec<u64>,
    /// Whether its elements are truth values, which the program has as `u8`.
    pub is_bool: bool,
}

/// The model that a program was made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelDescription {
    /// What a run is given, in the order of the model.
    pub inputs: Vec<ModelTensor>,
    /// What a run gives, in the order of the model.
    pub outputs: Vec<ModelTensor>,
    /// The names of its nodes: tasks have the number of theirs.
    pub nodes: Vec<String>,
}

impl ModelTensor {
    /// The number of elements.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.shape.iter().fold(1, |product: u64, extent| product.saturating_mul(*extent))
    }
}

impl ModelDescription {
    pub(super) fn write(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        for side in [&self.inputs, &self.outputs] {
            writer.count(side.len());
            for ModelTensor { name, shape, is_bool } in side {
                writer.text(name);
                writer.byte(u8::from(*is_bool));
                writer.numbers(shape);
            }
        }
        writer.count(self.nodes.len());
        self.nodes.iter().for_each(|name| writer.text(name));
        writer.0
    }

    pub(super) fn read(content: &[u8]) -> Result<Self, ProgramError> {
        let mut reader = Reader::new(Kind::Model.name(), content);
        let mut side = || -> Result<Vec<ModelTensor>, ProgramError> {
            let count = reader.count()?;
            let tensor = |_| {
                let name = reader.name()?;
                let is_bool = reader.truth("a truth value")?;
                Ok(ModelTensor { name, shape: reader.numbers()?, is_bool })
            };
            (0..count).map(tensor).collect()
        };
        let (inputs, outputs) = (side()?, side()?);
        let nodes = (0..reader.count()?).map(|_| reader.text()).collect::<Result<_, _>>()?;
        reader.end()?;
        Ok(Self { inputs, outputs, nodes })
    }

    /// What does not fit the program's tensors; `None`: nothing.
    pub(super) fn defect(&self, tensors: &[TensorDescription]) -> Option<String> {
        let defect = |role: Role, tensor: &ModelTensor| {
            let found = tensors.iter().find(|found| found.name == tensor.name)?;
            let elements = found.shape.iter().product::<u64>();
            let fits = found.role == role
                && elements == tensor.elements().max(1)
                && (!tensor.is_bool || found.dtype == DType::U8);
            fits.then_some(())
        };
        let of = |role: Role, side: &[ModelTensor]| {
            side.iter().find(|tensor| defect(role, tensor).is_none()).map(|tensor| {
                format!(
                    "{} {} with the extents {:?}, which the program does not have",
                    role.name(),
                    tensor.name,
                    tensor.shape
                )
            })
        };
        of(Role::Input, &self.inputs).or_else(|| of(Role::Output, &self.outputs))
    }
}

#[cfg(test)]
mod tests {
    use super::{ModelDescription, ModelTensor};
    use crate::program::{
        Program, ProgramBody, ProgramError, Role, TensorDescription, TensorLayout,
    };
    use pto_aicore_kernels::tile::DType;

    fn tensor(name: &str, role: Role, dtype: DType, extent: u64) -> TensorDescription {
        TensorDescription {
            name: name.to_owned(),
            role,
            dtype,
            shape: vec![extent],
            layout: TensorLayout::device(),
            begins_with_zeros: false,
        }
    }

    #[test]
    fn extents_that_a_description_cannot_have_are_kept() {
        let tensors = vec![
            tensor("x", Role::Input, DType::F32, 64),
            tensor("none", Role::Input, DType::F32, 1),
            tensor("y", Role::Output, DType::U8, 1),
        ];
        let program = Program::new("m", ProgramBody::Graph(Vec::new()), tensors).unwrap();
        let of = |name: &str, shape: &[u64], is_bool| ModelTensor {
            name: name.to_owned(),
            shape: shape.to_vec(),
            is_bool,
        };
        let model = ModelDescription {
            inputs: vec![of("x", &[2; 6], false), of("none", &[3, 0], false)],
            outputs: vec![of("y", &[], true)],
            nodes: vec!["Conv_0".to_owned(), String::new()],
        };
        let kept = program.clone().with_model(model.clone()).unwrap().to_bytes();
        assert_eq!(Program::from_bytes(&kept).unwrap().model(), Some(&model));
        for wrong in [of("x", &[63], false), of("y", &[1], false), of("x", &[64], true)] {
            let model = ModelDescription { inputs: vec![wrong], ..ModelDescription::default() };
            let refused = program.clone().with_model(model).err();
            assert!(matches!(refused, Some(ProgramError::Section { section: "model", .. })));
        }
    }
}
