//! Descriptions of tensors.

use crate::common::argument::{Address, In, Out};
use crate::common::entry::{api, give, values};
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::Handle;
use crate::device::data_set;
use crate::device::tensor_desc::{self, TensorDesc};

/// Dimensions of a tensor at most.
const MAX_DIMS: usize = 128;

values! {
    fn aclCreateTensorDesc(data_type: i32, count: i32, dims: In<i64>, format: i32) -> Handle, 0, {
        let count = usize::try_from(count).ok().filter(|count| *count <= MAX_DIMS).ok_or_else(|| {
            Refusal::argument(format!("numDims is {count}; pass 0 to {MAX_DIMS}"))
        })?;
        tensor_desc::create(data_type, dims.list("dims", count)?, format)
    }

    fn aclGetTensorDescType(description: Handle) -> i32, -1, { Ok(checked(description)?.data_type) }

    fn aclGetTensorDescFormat(description: Handle) -> i32, -1, { Ok(checked(description)?.format) }

    fn aclGetTensorDescSize(description: Handle) -> usize, 0, { checked(description)?.bytes() }

    fn aclGetTensorDescElementCount(description: Handle) -> usize, 0, { checked(description)?.elements() }

    fn aclGetTensorDescNumDims(description: Handle) -> usize, 0, { Ok(checked(description)?.shape.len()) }

    fn aclmdlGetDatasetTensorDesc(set: Handle, index: usize) -> Handle, 0, {
        require(set != 0, || Refusal::argument("dataset is null; call aclmdlCreateDataset first"))?;
        data_set::description(set, index)
    }
}

api! {
    fn aclGetTensorDescDimV2(description: Handle, index: usize, size: Out<i64>) {
        let output = size.required("dimSize")?;
        let description = checked(description)?;
        let extent = description.shape.get(index).ok_or_else(|| {
            let dims = description.shape.len();
            Refusal::argument(format!("there is no dimension {index}; the tensor has {dims}"))
        })?;
        output.set(*extent);
        Ok(())
    }

    fn aclSetTensorConst(description: Handle, elements: Address, bytes: usize) {
        require(description != 0, || Refusal::argument("desc is null; call aclCreateTensorDesc first"))?;
        let at = elements.required("dataBuffer")?;
        let wanted = tensor_desc::get(description)?.bytes()?;
        require(bytes == wanted, || {
            Refusal::argument(format!("the tensor takes {wanted} bytes, and {bytes} are given"))
        })?;
        tensor_desc::set_constant(description, In::<u8>::at(at).list("dataBuffer", bytes)?)
    }
}

/// Destroys a description.
// SAFETY: the interface defines this name, and no other function here has the same name.
#[unsafe(no_mangle)]
extern "C" fn aclDestroyTensorDesc(description: Handle) {
    give("aclDestroyTensorDesc", (), || {
        checked(description)?;
        tensor_desc::destroy(description)
    });
}

/// What a description says.
pub(super) fn checked(description: Handle) -> Answer<TensorDesc> {
    require(description != 0, || {
        Refusal::argument("desc is null; call aclCreateTensorDesc first")
    })?;
    tensor_desc::get(description)
}
