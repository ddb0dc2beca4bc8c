//! What kernels read of their tasks: descriptors of tensors, scalars, and which code to run.
//!
//! A frame lives from its task's submission until the task has retired. Frames lie in chunks, one after the other; a chunk
//! is used again when the last task in it is further back than the window reaches. So memory depends on the window, and
//! nothing waits for a frame.
//!
//! Invariant: `full` is in the order of the tasks.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::collections::VecDeque;
use std::ptr::{NonNull, with_exposed_provenance_mut};

use pto_host::DeviceMemory;
use pto_host::abi::GmAddr;
use pto_native::foreign::field::TaskFrame;

use crate::wire::pointer_word;

/// Bytes of a chunk. Large enough for several of the largest frames (4.3 KiB), small enough to stay in a cache.
const CHUNK_BYTES: usize = 64 << 10;

/// A piece of memory for frames.
struct Chunk {
    memory: NonNull<u8>,
    /// The memory of a device that it is of; `None`: memory of this process.
    of: Option<(DeviceMemory, GmAddr)>,
    used: usize,
    /// The number of the last task in it.
    last: u64,
}

// SAFETY: the memory belongs to the chunk alone.
unsafe impl Send for Chunk {}

impl Chunk {
    const LAYOUT: Layout = match Layout::from_size_align(CHUNK_BYTES, TaskFrame::ALIGN) {
        Ok(layout) => layout,
        Err(_) => panic!("a power of two"),
    };

    fn new() -> Self {
        // SAFETY: the layout has a size.
        let memory = unsafe { alloc_zeroed(Self::LAYOUT) };
        let Some(memory) = NonNull::new(memory) else { handle_alloc_error(Self::LAYOUT) };
        Self { memory, of: None, used: 0, last: 0 }
    }

    /// In the memory of a device, which this process has at the same addresses; `None`: it has no room.
    fn on(device: &DeviceMemory) -> Option<Self> {
        let address = device.alloc(CHUNK_BYTES as u64).ok()?;
        let memory = NonNull::new(with_exposed_provenance_mut(pointer_word(address.0)))?;
        Some(Self { memory, of: Some((device.clone(), address)), used: 0, last: 0 })
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        match &self.of {
            // It was allocated by us, and is freed once.
            Some((device, address)) => device.free(*address).unwrap_or_default(),
            // SAFETY: it was allocated with this layout, and this is the only reference to it.
            None => unsafe { dealloc(self.memory.as_ptr(), Self::LAYOUT) },
        }
    }
}

/// See the file.
pub(crate) struct Frames {
    current: Option<Chunk>,
    full: VecDeque<Chunk>,
    window: u64,
    /// Where kernels of another machine find frames, which all live until the run is over; `None`: in this process.
    device: Option<DeviceMemory>,
}

impl Frames {
    /// No frames; at most `window` tasks have not retired.
    pub(crate) fn new(window: u64) -> Self {
        Self { current: None, full: VecDeque::new(), window, device: None }
    }

    /// No frames, in the memory of a device, which this process has at the same addresses.
    pub(crate) fn on(device: DeviceMemory) -> Self {
        Self { current: None, full: VecDeque::new(), window: u64::MAX, device: Some(device) }
    }

    /// Room for the frame of task `number`; the caller writes it. `None`: the memory of the device is full.
    pub(crate) fn take(
        &mut self,
        number: u64,
        tensors: usize,
        scalars: usize,
    ) -> Option<*mut TaskFrame> {
        let bytes = TaskFrame::bytes(tensors, scalars);
        let has_room = |chunk: &Chunk| chunk.used + bytes <= CHUNK_BYTES;
        if !self.current.as_ref().is_some_and(has_room) {
            self.turn_over(number)?;
        }
        let current = self.current.as_mut()?;
        let room = current.memory.as_ptr().wrapping_add(current.used);
        current.used += bytes;
        current.last = number;
        Some(room.cast())
    }

    #[cold]
    fn turn_over(&mut self, number: u64) -> Option<()> {
        // Task `number` is not added yet: those of the window before it may be alive.
        let is_over = |chunk: &Chunk| chunk.last.saturating_add(self.window) < number;
        let next = match self.full.front() {
            Some(oldest) if is_over(oldest) => self.full.pop_front(),
            _ => None,
        };
        let mut next = match (next, &self.device) {
            (Some(next), _) => next,
            (None, None) => Chunk::new(),
            (None, Some(device)) => Chunk::on(device)?,
        };
        next.used = 0;
        self.full.extend(self.current.replace(next));
        Some(())
    }

    /// How many chunks there are.
    #[cfg(test)]
    fn chunks(&self) -> usize {
        usize::from(self.current.is_some()) + self.full.len()
    }
}

#[cfg(test)]
mod tests {
    use super::{CHUNK_BYTES, Frames, TaskFrame};

    #[test]
    fn memory_depends_on_the_window() {
        let mut frames = Frames::new(64);
        for number in 0..100_000 {
            let frame = frames.take(number, 3, 2);
            assert!(frame.is_some_and(|frame| frame.is_aligned()));
        }
        let per_chunk = CHUNK_BYTES / TaskFrame::bytes(3, 2);
        assert!(frames.chunks() <= 3 + 64 / per_chunk, "{}", frames.chunks());
    }

    #[test]
    fn a_frame_in_the_window_is_not_given_out_again() {
        let mut frames = Frames::new(1000);
        let mut held = std::collections::VecDeque::new();
        for number in 0..5_000_u64 {
            let frame = frames.take(number, 32, 16).expect("memory of this process") as usize;
            assert!(!held.contains(&frame), "task {number}");
            held.push_back(frame);
            if held.len() > 1000 {
                held.pop_front();
            }
        }
    }
}
