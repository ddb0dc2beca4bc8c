//! Operators on the host: what folding of constants and references use. The code is that of the device's kernels.

use crate::error::OperatorError;
use crate::infer::Input;
use crate::operator::Operator;
use crate::tensor::Tensor;

impl Operator {
    /// What the operator gives of these tensors: all outputs, with the bits that a device gives.
    ///
    /// # Errors
    /// Those of [`infer`](Self::infer); an index stands for no element.
    pub fn evaluate(&self, inputs: &[Option<&Tensor>]) -> Result<Vec<Tensor>, OperatorError> {
        let given: Vec<_> = inputs.iter().map(|input| input.map(Input::from)).collect();
        let types = self.infer(&given)?;
        let mut outputs: Vec<_> = types.into_iter().map(Tensor::zeros).collect();
        crate::kernel::run(self, inputs, &mut outputs)?;
        Ok(outputs)
    }
}
