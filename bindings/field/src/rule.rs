//! The dependency rule of the field: which running tasks write what a task reads.
//!
//! A task waits for the task that made a tensor, and for the registered writers that overlap what it reads. Nothing waits for
//! readers, and an existing output looks for nothing. A task that reads and writes all of what a writer wrote replaces that writer.
//!
//! Invariant: the writers of a buffer are in the order of their tasks.

use std::collections::HashMap;
use std::hash::Hash;

use pto_host::graph::{Arg, TensorView};

use crate::wire::{ChipTensor, MAX_DIMS};

/// An access of a task.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AccessMode {
    Read,
    Write,
    Both,
}

impl AccessMode {
    pub(crate) fn arg<'a>(self, view: &'a TensorView<'a>) -> Arg<'a> {
        match self {
            Self::Read => Arg::In(view),
            Self::Write => Arg::Out(view),
            Self::Both => Arg::InOut(view),
        }
    }
}

/// A region of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BufferRegion {
    /// The first element, and the one after the last.
    low: u64,
    high: u64,
    ndims: u32,
    shapes: [u32; MAX_DIMS],
    strides: [u32; MAX_DIMS],
    dtype: u8,
}

impl BufferRegion {
    /// Elements of the buffer before it.
    pub(crate) fn start(&self) -> u64 {
        self.low
    }

    /// The region's extents.
    pub(crate) fn shape(&self) -> &[u32] {
        self.shapes.get(..self.ndims as usize).unwrap_or(&self.shapes)
    }

    /// Distances in elements.
    pub(crate) fn strides(&self) -> &[u32] {
        self.strides.get(..self.ndims as usize).unwrap_or(&self.strides)
    }

    /// What a tensor is of its buffer; all of it where its numbers say nothing.
    pub(crate) fn of(tensor: &ChipTensor) -> Self {
        let reach = tensor.reach().unwrap_or(0..u64::MAX);
        Self {
            low: reach.start,
            high: reach.end,
            ndims: tensor.ndims,
            shapes: tensor.shapes,
            strides: tensor.strides,
            dtype: tensor.dtype,
        }
    }

    /// Whether both have an element in common; yes where it is not known.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        if self.dtype != other.dtype {
            // Offsets of different units are not compared.
            return true;
        }
        if self.high <= other.low || other.high <= self.low {
            return false;
        }
        match self.boxes(other) {
            Some(mut sides) => sides.all(|((a, m), (b, n))| a < b + n && b < a + m),
            None => true,
        }
    }

    /// Whether it has every element of the other one; no where it is not known.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        if self == other {
            return true;
        }
        let is_known = self.dtype == other.dtype;
        is_known
            && self
                .boxes(other)
                .is_some_and(|mut sides| sides.all(|((a, m), (b, n))| a <= b && b + n <= a + m))
    }

    /// Start and extent of both in each dimension, where both are boxes of one grid.
    fn boxes(&self, other: &Self) -> Option<impl Iterator<Item = ((u64, u64), (u64, u64))>> {
        let dims = self.ndims as usize;
        let is_grid =
            self.ndims == other.ndims && self.strides.get(..dims)? == other.strides.get(..dims)?;
        if !is_grid {
            return None;
        }
        let (mine, its) = (self.grid()?, other.grid()?);
        Some(mine.into_iter().zip(its).take(dims))
    }

    /// Where it begins in each dimension, and its extent there.
    fn grid(&self) -> Option<[(u64, u64); MAX_DIMS]> {
        if self.high == u64::MAX {
            return None;
        }
        let mut rest = self.low;
        let mut sides = [(0, 1); MAX_DIMS];
        let mut outer = u64::MAX;
        for dim in 0..self.ndims as usize {
            let stride = u64::from(*self.strides.get(dim)?);
            let extent = u64::from(*self.shapes.get(dim)?);
            if stride == 0 || (outer != u64::MAX && outer % stride != 0) {
                return None;
            }
            let start = rest / stride;
            if outer != u64::MAX && start + extent > outer / stride {
                return None;
            }
            *sides.get_mut(dim)? = (start, extent);
            (rest, outer) = (rest % stride, stride);
        }
        (rest == 0).then_some(sides)
    }
}

/// A task that writes a region.
#[derive(Clone, Copy, Debug)]
struct RegisteredWriter {
    number: u64,
    region: BufferRegion,
}

/// See the file. A buffer is identified by its address, or by another key of type `B`.
pub(crate) struct Writers<B = u64> {
    by_buffer: HashMap<B, Vec<RegisteredWriter>>,
}

impl<B> Default for Writers<B> {
    fn default() -> Self {
        Self { by_buffer: HashMap::new() }
    }
}

impl<B: Eq + Hash> Writers<B> {
    /// The writers, not older than `oldest`, of what `region` of a buffer has. `takes_over`: those that it covers are forgotten.
    pub(crate) fn look(
        &mut self,
        buffer: B,
        region: &BufferRegion,
        takes_over: bool,
        oldest: u64,
        mut found: impl FnMut(u64, &BufferRegion),
    ) {
        let Some(writers) = self.by_buffer.get_mut(&buffer) else { return };
        writers.retain(|writer| {
            if writer.number < oldest {
                return false;
            }
            if !region.overlaps(&writer.region) {
                return true;
            }
            found(writer.number, &writer.region);
            !(takes_over && region.covers(&writer.region))
        });
    }

    /// How many parts are registered.
    pub(crate) fn count(&self) -> usize {
        self.by_buffer.values().map(Vec::len).sum()
    }

    /// Task `number` writes this region.
    pub(crate) fn register(&mut self, buffer: B, region: BufferRegion, number: u64) {
        self.by_buffer.entry(buffer).or_default().push(RegisteredWriter { number, region });
    }
}

#[cfg(test)]
mod tests {
    use super::{BufferRegion, Writers};
    use crate::wire::ChipTensor;

    fn region(start: [u32; 2], shape: [u32; 2]) -> BufferRegion {
        let mut tensor = ChipTensor::dense(0x1000, 0, &[64, 32]);
        tensor.start_offset = u64::from(start[0] * 32 + start[1]);
        tensor.shapes[..2].copy_from_slice(&shape);
        BufferRegion::of(&tensor)
    }

    #[test]
    fn tiles_of_one_matrix_are_boxes() {
        let left = region([0, 0], [64, 16]);
        assert!(
            !left.overlaps(&region([0, 16], [64, 16])),
            "next to it, though the ranges interleave"
        );
        assert!(left.overlaps(&region([5, 15], [1, 2])));
        assert!(left.covers(&region([1, 2], [3, 4])) && !region([1, 2], [3, 4]).covers(&left));
    }

    #[test]
    fn nothing_waits_for_readers() {
        let mut writers = Writers::default();
        let mut found = Vec::new();
        let whole = region([0, 0], [64, 32]);
        writers.register(0x1000, region([0, 0], [1, 32]), 1);
        writers.register(0x1000, region([1, 0], [1, 32]), 2);
        writers.look(0x1000, &region([1, 0], [1, 1]), false, 0, |number, _| found.push(number));
        writers.look(0x1000, &whole, true, 0, |number, _| found.push(number));
        writers.look(0x1000, &whole, false, 0, |number, _| found.push(number));
        assert_eq!(found, [2, 1, 2], "the second look-up replaced them");
    }
}
