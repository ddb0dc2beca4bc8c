//! Tensors of a device as NumPy files hold them.

use pto_examples::host::{DType as FileType, ElementVec, Tensor as FileTensor};
use pto_host::stitch::HostTensor;

/// A tensor as a NumPy file holds it; `None`: no such file holds its elements.
pub(super) fn file_tensor(tensor: &HostTensor) -> Option<FileTensor> {
    let dtype = FileType::ALL.iter().find(|dtype| dtype.name() == tensor.dtype().name())?;
    FileTensor::new(tensor.shape().to_vec(), ElementVec::from_bytes(*dtype, tensor.bytes()))
}
