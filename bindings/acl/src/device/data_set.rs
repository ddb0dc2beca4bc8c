//! Data sets: lists of buffers that a model reads or writes. A buffer is a range of memory that the program has.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::model::Extent;
use crate::common::refusal::{Answer, Refusal};
use crate::common::table::{Handle, HandleTable, Kind};

static BUFFERS: HandleTable<Buffer> = HandleTable::new(Kind::DataBuffer);
static SETS: HandleTable<Set> = HandleTable::new(Kind::DataSet);

/// A range of memory.
struct Buffer(Mutex<Extent>);

/// The buffers, in the order in which they were added.
#[derive(Default)]
struct Set(Mutex<Vec<Handle>>);

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

/// The buffers of a set.
pub(crate) fn buffers(set: Handle) -> Answer<Vec<Handle>> {
    Ok(SETS.get(set)?.list().clone())
}
