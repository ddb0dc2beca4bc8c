//! The arguments of a tile kernel, as the expansion writes them and a core reads them.
//!
//! ```text
//! code | code bytes, kernel | epitaph | scratch | forms | descriptors | for each parameter: tensor: region, first, sides
//!                                                                                          scalar: word
//! ```

/// Where the kernel's code is.
pub const CODE: usize = 0;
/// Bytes of the code; the kernel's number above 32 bits; its nanoseconds on a core above 40, or 0 if unknown.
pub const CODE_BYTES: usize = 1;
/// The word at [`CODE_BYTES`]. More nanoseconds than fit are as many as fit.
#[must_use]
pub const fn pack_code(bytes: u32, kernel: u8, cost_ns: u64) -> u64 {
    let cost_ns = if cost_ns > MAX_COST_NS { MAX_COST_NS } else { cost_ns };
    bytes as u64 | (kernel as u64) << 32 | cost_ns << 40
}
/// The bytes of the code, out of the word at [`CODE_BYTES`].
#[must_use]
pub const fn code_bytes(word: u64) -> u64 {
    word & 0xFFFF_FFFF
}
/// The number of the kernel, out of the word at [`CODE_BYTES`].
#[must_use]
pub const fn kernel_number(word: u64) -> usize {
    (word >> 32 & 0xFF) as usize
}
/// The nanoseconds of the kernel, out of the word at [`CODE_BYTES`].
#[must_use]
pub const fn cost_ns(word: u64) -> u64 {
    word >> 40
}
/// The longest time that a word of a task says: 16 ms.
const MAX_COST_NS: u64 = (1 << 24) - 1;

/// Where the [epitaph](super::epitaph) is.
pub const EPITAPH: usize = 2;
/// Where the [scratch memory](scratch) is.
pub const SCRATCH: usize = 3;
/// The [forms](super::layout::form) of the scalars.
pub const FORMS: usize = 4;
/// Where the [descriptors](descriptor) of the tensors are.
pub const DESCRIPTORS: usize = 5;
/// Where the arguments of the parameters begin.
pub const PARAMS: usize = 6;
/// Words of a tensor: the region that the task waits for; the tile's first element, counted from the first one of the tensor's memory; the
/// [sides](pack_sides) of the tile.
pub const TENSOR_WORDS: usize = 3;
/// Words that a task has at most.
pub const WORDS: usize = PARAMS + super::layout::limits::PARAMS * TENSOR_WORDS;

const _: () = assert!(WORDS <= pto_abi::limits::MAX_ARGS);

/// A tensor as the bindings describe it.
pub mod descriptor {
    /// First byte of the memory that it is in: what it is known by.
    pub const BASE: usize = 0;
    /// Bytes of that memory.
    pub const BYTES: usize = 1;
    /// Distances in elements, one for each dimension.
    pub const STRIDES: usize = 2;
    /// Elements in front of its first one: tensors that share memory have one base.
    pub const FIRST: usize = STRIDES + super::super::layout::limits::RANK;
    /// Words of a descriptor.
    pub const WORDS: usize = super::super::layout::binding::TENSOR;

    const _: () = assert!(FIRST < WORDS);
}

/// The memory in which cores execute tile kernels: one frame for each core, and one word that says whether the frame is taken. A core takes
/// any free frame for the time of one task, so that no core needs a number.
pub mod scratch {
    /// The number of frames.
    pub const PLACES: usize = 0;
    /// Words of a slot.
    pub const PLACE_WORDS: usize = 1;
    /// Where the words begin that say whether a slot is taken, one line each.
    pub const FLAGS: usize = 8;
    /// After the flag of a slot: the cycles that the kernels executed in it have reported, in sum.
    pub const CYCLES: usize = 1;
    /// Words from one flag to the next.
    pub const FLAG_WORDS: usize = 8;
    /// The beginning of a slot, where a core keeps the kernel that it accepted last.
    pub const KERNEL_WORDS: usize = 4096;

    /// The address of the first frame.
    #[must_use]
    pub const fn places_at(places: usize) -> usize {
        FLAGS + places * FLAG_WORDS
    }

    /// Words for this many frames, for kernels that need up to `frame_words`.
    #[must_use]
    pub const fn words(places: usize, frame_words: usize) -> usize {
        places_at(places) + places * place_words(frame_words)
    }

    /// Words of a frame.
    #[must_use]
    pub const fn place_words(frame_words: usize) -> usize {
        KERNEL_WORDS + frame_words.next_multiple_of(8)
    }
}

/// What a word of sides says: the number of the tensor, rows and columns that count, and the dimensions that they go along; `None`:
/// all rows, or columns, are the same elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sides {
    /// The tensor.
    pub tensor: u8,
    /// Rows and columns that count.
    pub extents: [u16; 2],
    /// Their dimensions.
    pub dims: [Option<u8>; 2],
}

/// Sides as a word.
#[must_use]
#[inline]
pub const fn pack_sides(sides: Sides) -> u64 {
    let [rows, cols] = sides.extents;
    let dims = pack_dim(sides.dims[0]) << 32 | pack_dim(sides.dims[1]) << 40;
    rows as u64 | (cols as u64) << 16 | dims | (sides.tensor as u64) << 48
}

#[inline]
const fn pack_dim(dim: Option<u8>) -> u64 {
    match dim {
        Some(dim) => dim as u64,
        None => 0xFF,
    }
}

/// Sides from their word.
#[must_use]
#[inline]
pub const fn unpack_sides(word: u64) -> Sides {
    let [r0, r1, c0, c1, row, col, tensor, _] = word.to_le_bytes();
    let extents = [u16::from_le_bytes([r0, r1]), u16::from_le_bytes([c0, c1])];
    Sides { tensor, extents, dims: [unpack_dim(row), unpack_dim(col)] }
}

const fn unpack_dim(dim: u8) -> Option<u8> {
    if dim == 0xFF { None } else { Some(dim) }
}

#[cfg(test)]
mod tests {
    use super::{Sides, code_bytes, cost_ns, kernel_number, pack_code, pack_sides, unpack_sides};

    #[test]
    fn a_kernel_comes_back() {
        let word = pack_code(u32::MAX, 31, 7);
        assert_eq!((code_bytes(word), kernel_number(word), cost_ns(word)), (0xFFFF_FFFF, 31, 7));
        assert_eq!(cost_ns(pack_code(0, 0, u64::MAX)), (1 << 24) - 1);
    }

    #[test]
    fn sides_come_back() {
        for dims in [[None, None], [Some(0), Some(4)], [None, Some(1)]] {
            let sides = Sides { tensor: 31, extents: [u16::MAX, 3], dims };
            assert_eq!(unpack_sides(pack_sides(sides)), sides);
        }
    }
}
