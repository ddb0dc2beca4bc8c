//! What a run gives: tensors by name. They may be given to the next run at once.

use super::error::StitchError;
use super::tensor::Tensor;

/// The outputs of a run, and the tensors that it updated and that were moved into it.
#[derive(Debug)]
pub struct Outputs {
    pub(super) program: String,
    pub(super) tensors: Vec<(String, Tensor)>,
}

impl Outputs {
    /// Takes an output.
    ///
    /// # Errors
    /// `Unknown`: the program has no such output, or it was taken, or it went into a tensor of the caller's.
    pub fn take(&mut self, name: &str) -> Result<Tensor, StitchError> {
        let index = self.tensors.iter().position(|(known, _)| known == name);
        let index = index.ok_or_else(|| StitchError::Unknown {
            program: self.program.clone(),
            tensor: name.to_owned(),
            known: self.names().join(", "),
        })?;
        Ok(self.tensors.remove(index).1)
    }

    /// The names of the outputs that were not taken.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.tensors.iter().map(|(name, _)| name.as_str()).collect()
    }
}

impl IntoIterator for Outputs {
    type Item = (String, Tensor);
    type IntoIter = std::vec::IntoIter<(String, Tensor)>;

    fn into_iter(self) -> Self::IntoIter {
        self.tensors.into_iter()
    }
}
