//! What kernels read of their tasks: descriptors of tensors, scalars, and which code to run.
//!
//! A frame lives from its task's submission until the task has retired. Frames stand in chunks, one behind the other; a chunk
//! is used again when the last task in it is further back than the window reaches. So memory depends on the window, and
//! nothing waits for a frame.
//!
//! Invariant: `full` is in the order of the tasks.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::collections::VecDeque;
use std::ffi::c_char;
use std::ptr::NonNull;

use crate::shared::Shared;
use crate::wire::ChipTensor;

/// Bytes of a chunk. Large enough for several of the largest frames (4.3 KiB), small enough to stay in a cache.
const CHUNK_BYTES: usize = 64 << 10;
const ALIGN: usize = 64;

/// A piece of memory for frames.
struct Chunk {
    memory: NonNull<u8>,
    used: usize,
    /// The number of the last task in it.
    last: u64,
}

// SAFETY: the memory belongs to the chunk alone.
unsafe impl Send for Chunk {}

impl Chunk {
    const LAYOUT: Layout = match Layout::from_size_align(CHUNK_BYTES, ALIGN) {
        Ok(layout) => layout,
        Err(_) => panic!("a power of two"),
    };

    fn new() -> Self {
        // SAFETY: the layout has a size.
        let memory = unsafe { alloc_zeroed(Self::LAYOUT) };
        let Some(memory) = NonNull::new(memory) else { handle_alloc_error(Self::LAYOUT) };
        Self { memory, used: 0, last: 0 }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout, and nobody else has it.
        unsafe { dealloc(self.memory.as_ptr(), Self::LAYOUT) }
    }
}

/// See the file.
pub(crate) struct Frames {
    current: Chunk,
    full: VecDeque<Chunk>,
    window: u64,
}

impl Frames {
    /// No frames; at most `window` tasks have not retired.
    pub(crate) fn new(window: u64) -> Self {
        Self { current: Chunk::new(), full: VecDeque::new(), window }
    }

    /// Room for the frame of task `number`; the caller writes it.
    pub(crate) fn take(&mut self, number: u64, tensors: usize, scalars: usize) -> *mut Frame {
        let bytes = Frame::bytes(tensors, scalars);
        if self.current.used + bytes > CHUNK_BYTES {
            self.turn_over(number);
        }
        let place = self.current.memory.as_ptr().wrapping_add(self.current.used);
        self.current.used += bytes;
        self.current.last = number;
        place.cast()
    }

    #[cold]
    fn turn_over(&mut self, number: u64) {
        // Task `number` is not added yet: those of the window before it may be alive.
        let is_over = |chunk: &Chunk| chunk.last + self.window < number;
        let next = match self.full.front() {
            Some(oldest) if is_over(oldest) => self.full.pop_front(),
            _ => None,
        };
        let mut next = next.unwrap_or_else(Chunk::new);
        next.used = 0;
        self.full.push_back(std::mem::replace(&mut self.current, next));
    }

    /// How many chunks there are.
    #[cfg(test)]
    fn chunks(&self) -> usize {
        1 + self.full.len()
    }
}

#[cfg(test)]
mod tests {
    use super::{CHUNK_BYTES, Frame, Frames};

    #[test]
    fn memory_depends_on_the_window() {
        let mut frames = Frames::new(64);
        for number in 0..100_000 {
            let frame = frames.take(number, 3, 2);
            assert!(frame.is_aligned());
        }
        let per_chunk = CHUNK_BYTES / Frame::bytes(3, 2);
        assert!(frames.chunks() <= 3 + 64 / per_chunk, "{}", frames.chunks());
    }

    #[test]
    fn a_frame_in_the_window_is_not_given_out_again() {
        let mut frames = Frames::new(1000);
        let mut held = std::collections::VecDeque::new();
        for number in 0..5_000_u64 {
            let frame = frames.take(number, 32, 16) as usize;
            assert!(!held.contains(&frame), "task {number}");
            held.push_back(frame);
            if held.len() > 1000 {
                held.pop_front();
            }
        }
    }
}
