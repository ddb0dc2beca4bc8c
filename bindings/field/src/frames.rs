//! What kernels read of their tasks: descriptors of tensors, scalars, and which code to run.
//!
//! A frame lives from its task's submission until the task has retired. Frames lie in chunks, one after the other; a chunk
//! is used again when the last task in it is further back than the window reaches. So memory depends on the window, and
//! nothing waits for a frame. Frames for a device are written here, and copied to it one by one.
//!
//! Invariant: `full` is in the order of the tasks.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::collections::VecDeque;
use std::ptr::NonNull;

use pto_host::DeviceMemory;
use pto_host::abi::GmAddr;
use pto_native::foreign::field::TaskFrame;

/// Bytes of a chunk. Large enough for several of the largest frames (4.3 KiB), small enough to stay in a cache.
const CHUNK_BYTES: usize = 64 << 10;

/// A piece of memory for frames.
struct Chunk {
    memory: NonNull<u8>,
    /// The memory of a device that its frames are copied to; `None`: kernels read them here.
    copied_to: Option<(DeviceMemory, GmAddr)>,
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
        Self { memory, copied_to: None, used: 0, last: 0 }
    }

    /// With as much memory of a device; `None`: it has no room.
    fn on(device: &DeviceMemory) -> Option<Self> {
        let address = device.alloc(CHUNK_BYTES as u64).ok()?;
        let mut chunk = Self::new();
        chunk.copied_to = Some((device.clone(), address));
        Some(chunk)
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if let Some((device, address)) = &self.copied_to {
            // It was allocated by us, and is freed once.
            device.free(*address).unwrap_or_default();
        }
        // SAFETY: it was allocated with this layout, and this is the only reference to it.
        unsafe { dealloc(self.memory.as_ptr(), Self::LAYOUT) };
    }
}

/// See the file.
pub(crate) struct Frames {
    current: Option<Chunk>,
    full: VecDeque<Chunk>,
    window: u64,
    /// The device whose kernels read frames, which all live until the run is over; `None`: those of this process do.
    device: Option<DeviceMemory>,
}

/// Room for a frame that is to be written.
#[derive(Clone, Copy)]
pub(crate) struct FrameRoom {
    /// Where it is written.
    pub(crate) memory: *mut TaskFrame,
    /// Its first byte in its chunk, and how many it has.
    first: usize,
    bytes: usize,
}

impl Frames {
    /// No frames; at most `window` tasks have not retired.
    pub(crate) fn new(window: u64) -> Self {
        Self { current: None, full: VecDeque::new(), window, device: None }
    }

    /// No frames, for the kernels of a device.
    pub(crate) fn on(device: DeviceMemory) -> Self {
        Self { current: None, full: VecDeque::new(), window: u64::MAX, device: Some(device) }
    }

    /// Room for the frame of task `number`, which the caller writes and then [hands over](Self::hand_over). `None`: the memory of the device is full.
    pub(crate) fn take(
        &mut self,
        number: u64,
        tensors: usize,
        scalars: usize,
    ) -> Option<FrameRoom> {
        let bytes = TaskFrame::bytes(tensors, scalars);
        let has_room = |chunk: &Chunk| chunk.used + bytes <= CHUNK_BYTES;
        if !self.current.as_ref().is_some_and(has_room) {
            self.turn_over(number)?;
        }
        let current = self.current.as_mut()?;
        let first = current.used;
        current.used += bytes;
        current.last = number;
        Some(FrameRoom { memory: current.memory.as_ptr().wrapping_add(first).cast(), first, bytes })
    }

    /// Makes the frame that was written last the kernels': where they find it. `None`: it cannot be copied to the device.
    pub(crate) fn hand_over(&self, room: FrameRoom) -> Option<u64> {
        let current = self.current.as_ref()?;
        let Some((device, address)) = &current.copied_to else {
            return Some(room.memory.expose_provenance() as u64);
        };
        // SAFETY: chunks are zeros at first, and these bytes are of the current one.
        let bytes = unsafe { std::slice::from_raw_parts(room.memory.cast(), room.bytes) };
        let to = address.offset(room.first as u64);
        device.copy_to_device(to, bytes).ok()?;
        Some(to.0)
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
            assert!(frame.is_some_and(|frame| frame.memory.is_aligned()));
        }
        let per_chunk = CHUNK_BYTES / TaskFrame::bytes(3, 2);
        assert!(frames.chunks() <= 3 + 64 / per_chunk, "{}", frames.chunks());
    }

    #[test]
    fn a_frame_in_the_window_is_not_given_out_again() {
        let mut frames = Frames::new(1000);
        let mut held = std::collections::VecDeque::new();
        for number in 0..5_000_u64 {
            let frame = frames.take(number, 32, 16).expect("memory of this process").first;
            let frame = (frames.current.as_ref().map(|chunk| chunk.memory), frame);
            assert!(!held.contains(&frame), "task {number}");
            held.push_back(frame);
            if held.len() > 1000 {
                held.pop_front();
            }
        }
    }
}
