//! Operators on the host: what folding of constants and references use. The code is that of the device's kernels.

use crate::error::{Argument, OperatorError};
use crate::infer::Input;
use crate::kernel::WorkSplit;
use crate::operator::Operator;
use crate::tensor::{Tensor, TensorType};

impl Operator {
    /// What the operator gives of these tensors: all outputs, with the bits that a device gives.
    ///
    /// # Errors
    /// Those of [`infer`](Self::infer); an index stands for no element.
    pub fn evaluate(&self, inputs: &[Option<&Tensor>]) -> Result<Vec<Tensor>, OperatorError> {
        let given: Vec<_> = inputs.iter().map(|input| input.map(Input::from)).collect();
        let types = self.infer(&given)?;
        let mut outputs: Vec<_> = types.into_iter().map(Tensor::zeros).collect();
        crate::kernel::run(self, inputs, &mut outputs, None)?;
        Ok(outputs)
    }

    /// How the operator is split, on these types of inputs and outputs.
    ///
    /// # Errors
    /// Those of [`infer`](Self::infer); the outputs are not of the types that it gives.
    pub fn work(
        &self,
        inputs: &[Option<&TensorType>],
        outputs: &[TensorType],
    ) -> Result<WorkSplit, OperatorError> {
        let given: Vec<_> = inputs.iter().map(|input| input.map(Input::from)).collect();
        self.check_outputs(&given, outputs)?;
        Ok(crate::kernel::work(self, inputs, outputs))
    }

    /// Does units (first, count) of the operator: writes the elements of the outputs that these units write, and leaves the others.
    ///
    /// # Errors
    /// Those of [`evaluate`](Self::evaluate) and [`work`](Self::work); there are not as many units.
    pub fn evaluate_units(
        &self,
        inputs: &[Option<&Tensor>],
        outputs: &mut [Tensor],
        units: (usize, usize),
    ) -> Result<(), OperatorError> {
        let given: Vec<_> = inputs.iter().map(|input| input.map(Input::from)).collect();
        let types: Vec<_> = outputs.iter().map(|output| output.ty().clone()).collect();
        self.check_outputs(&given, &types)?;
        let input_types: Vec<_> = inputs.iter().map(|input| input.map(Tensor::ty)).collect();
        let all = crate::kernel::work(self, &input_types, &types).units;
        if units.0.checked_add(units.1).is_none_or(|end| end > all) {
            let rule = format!(
                "units {} to {} are wanted, and there are {all}",
                units.0,
                units.0.saturating_add(units.1)
            );
            return Err(OperatorError {
                operator: self.name(),
                argument: Argument::Operator,
                rule,
            });
        }
        crate::kernel::run(self, inputs, outputs, Some(units))
    }

    fn check_outputs(
        &self,
        given: &[Option<Input<'_>>],
        outputs: &[TensorType],
    ) -> Result<(), OperatorError> {
        let types = self.infer(given)?;
        if !outputs.is_empty() && types.starts_with(outputs) {
            return Ok(());
        }
        let rule = format!("the outputs are {outputs:?}, and the operator gives {types:?}");
        Err(OperatorError { operator: self.name(), argument: Argument::Operator, rule })
    }
}
