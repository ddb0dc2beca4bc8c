//! Data sets, and the buffers in them.

use crate::common::argument::Address;
use crate::common::entry::{api, values};
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::Handle;
use crate::device::data_set;
use crate::device::model::Extent;

values! {
    fn aclCreateDataBuffer(address: Address, bytes: usize) -> Handle, 0, {
        Ok(data_set::create_buffer(Extent { address: address.number(), bytes }))
    }

    fn aclGetDataBufferAddr(buffer: Handle) -> Address, Address::of(0), {
        Ok(Address::of(extent(buffer)?.address))
    }

    fn aclGetDataBufferSizeV2(buffer: Handle) -> usize, 0, { Ok(extent(buffer)?.bytes) }

    fn aclGetDataBufferSize(buffer: Handle) -> u32, 0, {
        let bytes = extent(buffer)?.bytes;
        u32::try_from(bytes).map_err(|_| {
            Refusal::value(format!("{bytes} bytes are more than aclGetDataBufferSize can say; call aclGetDataBufferSizeV2"))
        })
    }

    fn aclmdlCreateDataset() -> Handle, 0, { Ok(data_set::create()) }

    fn aclmdlGetDatasetNumBuffers(set: Handle) -> usize, 0, { data_set::count(checked(set)?) }

    fn aclmdlGetDatasetBuffer(set: Handle, index: usize) -> Handle, 0, { data_set::buffer(checked(set)?, index) }
}

api! {
    fn aclDestroyDataBuffer(buffer: Handle) {
        require(buffer != 0, || Refusal::argument("dataBuffer is null; pass a data buffer"))?;
        data_set::destroy_buffer(buffer)
    }

    fn aclUpdateDataBuffer(buffer: Handle, address: Address, bytes: usize) {
        require(buffer != 0, || Refusal::argument("dataBuffer is null; pass a data buffer"))?;
        data_set::update(buffer, Extent { address: address.number(), bytes })
    }

    fn aclmdlDestroyDataset(set: Handle) {
        data_set::destroy(checked(set)?)
    }

    fn aclmdlAddDatasetBuffer(set: Handle, buffer: Handle) {
        data_set::check(checked(set)?)?;
        extent(buffer)?;
        data_set::add(set, buffer)
    }
}

fn checked(set: Handle) -> Answer<Handle> {
    require(set != 0, || Refusal::argument("dataset is null; call aclmdlCreateDataset first"))?;
    Ok(set)
}

pub(super) fn extent(buffer: Handle) -> Answer<Extent> {
    require(buffer != 0, || {
        Refusal::argument("dataBuffer is null; call aclCreateDataBuffer first")
    })?;
    data_set::extent(buffer)
}

/// The ranges of a data set; `side` is what messages call it.
pub(super) fn extents(side: &str, set: Handle) -> Answer<Vec<Extent>> {
    require(set != 0, || Refusal::argument(format!("the {side} data set is null; pass one")))?;
    data_set::buffers(set)?.into_iter().map(extent).collect()
}
