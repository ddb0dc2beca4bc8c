//! Allocators that a program registers with a stream: the library keeps them, and gives them to who asks.

use std::sync::{Arc, Mutex, PoisonError};

use super::stream::Stream;
use crate::common::codes;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::{Handle, HandleTable, Kind};

static ALLOCATORS: HandleTable<AllocatorDescription> = HandleTable::new(Kind::Allocator);

/// An allocator: its object, and its functions to allocate, free, advise and get an address.
#[derive(Default)]
pub(crate) struct AllocatorDescription([Mutex<usize>; 5]);

impl AllocatorDescription {
    /// A part as it is set; 0: it is not.
    pub(crate) fn part(&self, part: usize) -> usize {
        *self.0[part].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets a part.
    pub(crate) fn set(&self, part: usize, value: usize) {
        *self.0[part].lock().unwrap_or_else(PoisonError::into_inner) = value;
    }
}

/// A description without parts.
pub(crate) fn create() -> Handle {
    ALLOCATORS.open(AllocatorDescription::default())
}

/// The description of a handle.
pub(crate) fn get(description: Handle) -> Answer<Arc<AllocatorDescription>> {
    ALLOCATORS.get(description)
}

/// Forgets a description.
pub(crate) fn destroy(description: Handle) -> Answer {
    ALLOCATORS.take(description).map(drop)
}

/// Registers an allocator that is complete with a stream.
pub(crate) fn register(stream: &Stream, description: Handle) -> Answer {
    let allocator = get(description)?;
    let complete = [0, 1, 2, 4].into_iter().all(|part| allocator.part(part) != 0);
    require(complete, || {
        Refusal::argument("the allocator lacks its object or a function; set them first")
    })?;
    stream.attributes().allocator = Some(description);
    Ok(())
}

/// The allocator that is registered with a stream.
pub(crate) fn of(stream: &Stream) -> Answer<Handle> {
    let held = stream.attributes().allocator;
    held.ok_or_else(|| {
        Refusal::new(
            codes::BAD_VALUE,
            "no allocator is registered with the stream; register one first",
        )
    })
}
