//! Data sets: lists of buffers that a model reads or writes. A buffer is a range of memory that the program has.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::common::argument::Address;
use crate::common::entry::{api, values};
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::{Handle, Kind, Table};
use crate::device::model::Extent;

static BUFFERS: Table<Buffer> = Table::new(Kind::DataBuffer);
static SETS: Table<Set> = Table::new(Kind::DataSet);

/// A range of memory.
struct Buffer(Mutex<Extent>);

/// The buffers, in the order in which they were added.
#[derive(Default)]
struct Set(Mutex<Vec<Handle>>);

values! {
    fn aclCreateDataBuffer(address: Address, bytes: usize) -> Handle, 0, {
        let extent = Extent { address: address.number(), bytes };
        Ok(BUFFERS.open(Buffer(Mutex::new(extent))))
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

    fn aclmdlCreateDataset() -> Handle, 0, { Ok(SETS.open(Set::default())) }

    fn aclmdlGetDatasetNumBuffers(set: Handle) -> usize, 0, { Ok(checked(set)?.list().len()) }

    fn aclmdlGetDatasetBuffer(set: Handle, index: usize) -> Handle, 0, {
        let held = checked(set)?;
        let list = held.list();
        list.get(index).copied().ok_or_else(|| {
            Refusal::argument(format!("there is no buffer {index}; the data set has {}", list.len()))
        })
    }
}

api! {
    fn aclDestroyDataBuffer(buffer: Handle) {
        require(buffer != 0, || Refusal::argument("dataBuffer is null; pass a data buffer"))?;
        BUFFERS.take(buffer).map(drop)
    }

    fn aclUpdateDataBuffer(buffer: Handle, address: Address, bytes: usize) {
        require(buffer != 0, || Refusal::argument("dataBuffer is null; pass a data buffer"))?;
        *BUFFERS.get(buffer)?.lock() = Extent { address: address.number(), bytes };
        Ok(())
    }

    fn aclmdlDestroyDataset(set: Handle) {
        checked(set)?;
        // The buffers are the program's.
        SETS.take(set).map(drop)
    }

    fn aclmdlAddDatasetBuffer(set: Handle, buffer: Handle) {
        let set = checked(set)?;
        extent(buffer)?;
        set.list().push(buffer);
        Ok(())
    }
}

impl Buffer {
    fn lock(&self) -> MutexGuard<'_, Extent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Set {
    fn list(&self) -> MutexGuard<'_, Vec<Handle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn checked(set: Handle) -> Answer<Arc<Set>> {
    require(set != 0, || Refusal::argument("dataset is null; call aclmdlCreateDataset first"))?;
    SETS.get(set)
}

fn extent(buffer: Handle) -> Answer<Extent> {
    require(buffer != 0, || {
        Refusal::argument("dataBuffer is null; call aclCreateDataBuffer first")
    })?;
    Ok(*BUFFERS.get(buffer)?.lock())
}

/// The ranges of a data set; `side` is what messages call it.
pub(super) fn extents(side: &str, set: Handle) -> Answer<Vec<Extent>> {
    require(set != 0, || Refusal::argument(format!("the {side} data set is null; pass one")))?;
    let buffers = SETS.get(set)?.list().clone();
    buffers.into_iter().map(extent).collect()
}
