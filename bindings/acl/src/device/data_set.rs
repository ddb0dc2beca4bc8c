//! Data sets: lists of buffers that a model reads or writes. A buffer is a range of memory that the program has.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::model::Extent;
use super::tensor_desc::{self, TensorDesc};
use crate::common::refusal::{Answer, Refusal};
use crate::common::table::{Handle, HandleTable, Kind};

static BUFFERS: HandleTable<Buffer> = HandleTable::new(Kind::DataBuffer);
static SETS: HandleTable<Set> = HandleTable::new(Kind::DataSet);

/// A range of memory.
struct Buffer(Mutex<Extent>);

/// The buffers, in the order in which they were added, and what the last run of a model has put into them.
#[derive(Default)]
struct Set {
    buffers: Mutex<Vec<Handle>>,
    described: Mutex<Vec<TensorDesc>>,
    /// Descriptions that the program was given; they live as long as the set.
    handles: Mutex<BTreeMap<usize, Handle>>,
}

impl Buffer {
    fn lock(&self) -> MutexGuard<'_, Extent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Set {
    fn list(&self) -> MutexGuard<'_, Vec<Handle>> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handles(&self) -> MutexGuard<'_, BTreeMap<usize, Handle>> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn described(&self) -> MutexGuard<'_, Vec<TensorDesc>> {
        self.described.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Set {
    fn drop(&mut self) {
        std::mem::take(&mut *self.handles()).into_values().for_each(tensor_desc::forget);
    }
}

/// A buffer over a range.
pub(crate) fn create_buffer(extent: Extent) -> Handle {
    BUFFERS.open(Buffer(Mutex::new(extent)))
}

/// Forgets a buffer; its memory is the program's.
pub(crate) fn destroy_buffer(buffer: Handle) -> Answer {
    BUFFERS.take(buffer).map(drop)
}

/// Gives a buffer another range.
pub(crate) fn update(buffer: Handle, extent: Extent) -> Answer {
    *BUFFERS.get(buffer)?.lock() = extent;
    Ok(())
}

/// The range of a buffer.
pub(crate) fn extent(buffer: Handle) -> Answer<Extent> {
    Ok(*BUFFERS.get(buffer)?.lock())
}

/// A set without buffers.
pub(crate) fn create() -> Handle {
    SETS.open(Set::default())
}

/// Forgets a set; the buffers are the program's.
pub(crate) fn destroy(set: Handle) -> Answer {
    SETS.take(set).map(drop)
}

/// Refuses what is no set.
pub(crate) fn check(set: Handle) -> Answer {
    SETS.get(set).map(drop)
}

/// Adds a buffer to the end of a set.
pub(crate) fn add(set: Handle, buffer: Handle) -> Answer {
    SETS.get(set)?.list().push(buffer);
    Ok(())
}

/// How many buffers a set has.
pub(crate) fn count(set: Handle) -> Answer<usize> {
    Ok(SETS.get(set)?.list().len())
}

/// The buffer with this number.
pub(crate) fn buffer(set: Handle, index: usize) -> Answer<Handle> {
    let held = SETS.get(set)?;
    let list = held.list();
    list.get(index).copied().ok_or_else(|| {
        Refusal::argument(format!("there is no buffer {index}; the data set has {}", list.len()))
    })
}

/// A model that runs now writes tensors of these types into the buffers of a set.
pub(crate) fn describe(set: Handle, tensors: Vec<TensorDesc>) -> Answer {
    let held = SETS.get(set)?;
    std::mem::take(&mut *held.handles()).into_values().for_each(tensor_desc::forget);
    *held.described() = tensors;
    Ok(())
}

/// The description of what is in a buffer; the set keeps it.
pub(crate) fn description(set: Handle, index: usize) -> Answer<Handle> {
    let held = SETS.get(set)?;
    let described = held.described();
    let tensor = described.get(index).ok_or_else(|| {
        let text = match described.len() {
            0 => "no model has written into the data set; run one first".to_owned(),
            count => format!("there is no tensor {index}; the model has written {count}"),
        };
        Refusal::argument(text)
    })?;
    Ok(*held.handles().entry(index).or_insert_with(|| tensor_desc::share(tensor.clone())))
}

/// The buffers of a set.
pub(crate) fn buffers(set: Handle) -> Answer<Vec<Handle>> {
    Ok(SETS.get(set)?.list().clone())
}
