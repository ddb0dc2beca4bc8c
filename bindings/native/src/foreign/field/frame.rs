//! The frame of a task: a header, the descriptors of its tensors, its scalars, one after the other.

use core::ffi::{c_char, c_void};

use super::tensor::ChipTensor;

/// Words of a kernel's arguments: the contexts are the last two.
pub const WORDS: usize = 50;
/// The word of the block's context.
pub const LOCAL: usize = 48;
/// The word of the core's context.
pub const GLOBAL: usize = 49;

/// A task, as its kernels find it. Its tensors follow it, and its scalars follow those.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct TaskFrame {
    /// The code for AIC, AIV 0, AIV 1; 0: none. On a device those that are there are not 0, and code is found by other ways.
    pub entries: [usize; 3],
    /// The task's id.
    pub task: u64,
    /// What all tasks of the run share.
    pub shared: *const c_void,
    /// Where the program submitted it, for the host; null: not known.
    pub file: *const c_char,
    /// The line there.
    pub line: i32,
    /// How many tensors it has.
    pub tensors: u8,
    /// How many scalars.
    pub scalars: u8,
    /// The index of the block's word among the arguments of the engine's task.
    pub block_word: u8,
    /// Negative: none.
    pub timing_slot: i8,
    /// How many calls of kernels may wait for each other; 1: none does.
    pub party: u16,
    /// Those are all of the task, and not only those of a block.
    pub starts_at_once: bool,
    /// A bit for each word that is a scalar; 0: the scalars follow the tensors.
    pub scalar_words: u32,
}

const _: () = assert!(size_of::<TaskFrame>() == 64);

impl TaskFrame {
    /// Where frames begin: a multiple of this.
    pub const ALIGN: usize = 64;

    /// Where its tensors are.
    #[must_use]
    pub const fn tensors_of(this: *const Self) -> *const ChipTensor {
        this.wrapping_add(1).cast()
    }

    /// Where its scalars are.
    #[must_use]
    pub const fn scalars_of(this: *const Self, tensors: usize) -> *const u64 {
        Self::tensors_of(this).wrapping_add(tensors).cast()
    }

    /// The bytes of a frame with this many.
    #[must_use]
    pub const fn bytes(tensors: usize, scalars: usize) -> usize {
        let bytes = size_of::<Self>() + tensors * size_of::<ChipTensor>() + scalars * 8;
        bytes.next_multiple_of(Self::ALIGN)
    }

    /// The words of a kernel's arguments, without the contexts.
    ///
    /// # Safety
    /// `this` is a frame with its tensors and scalars.
    #[inline]
    #[must_use]
    pub unsafe fn words(this: *const Self) -> [i64; WORDS] {
        // SAFETY: the caller vouches for it.
        let task = unsafe { &*this };
        let mut words = [0_i64; WORDS];
        let tensors = usize::from(task.tensors);
        let descriptors = Self::tensors_of(this);
        for (at, word) in words.iter_mut().enumerate().take(tensors) {
            *word = signed(descriptors.wrapping_add(at).expose_provenance() as u64);
        }
        let scalars = Self::scalars_of(this, tensors);
        if task.scalar_words != 0 {
            mix(&mut words, scalars, task);
            return words;
        }
        let scalar_words = words.iter_mut().skip(tensors).take(usize::from(task.scalars));
        for (at, word) in scalar_words.enumerate() {
            // SAFETY: so many scalars follow the tensors of a frame.
            *word = signed(unsafe { scalars.wrapping_add(at).read() });
        }
        words
    }
}

/// Words are words.
const fn signed(word: u64) -> i64 {
    word.cast_signed()
}

/// Puts the scalars at the words that the task names; the tensors take the other words, in their order.
fn mix(words: &mut [i64; WORDS], scalars: *const u64, task: &TaskFrame) {
    let tensors = *words;
    let (mut tensors, mut scalar) = (tensors.iter(), 0);
    let count = usize::from(task.tensors) + usize::from(task.scalars);
    for (at, word) in words.iter_mut().enumerate().take(count) {
        if task.scalar_words >> at & 1 == 0 {
            *word = tensors.next().copied().unwrap_or(0);
        } else {
            // SAFETY: the header sets as many bits as the task has scalars, and they follow the tensors of a frame.
            *word = signed(unsafe { scalars.wrapping_add(scalar).read() });
            scalar += 1;
        }
    }
}
