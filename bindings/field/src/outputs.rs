//! Descriptors of the tensors that submissions have made, as programs refer to them.
//!
//! `get_ref` gives programs a reference. It is valid until the scope of the tensor ends. Descriptors of ended scopes are kept
//! for a while before their memory is used again, so that a program which still uses one gets an error: the tensor's owner says
//! to which scope it belongs.

use std::collections::VecDeque;

use crate::wire::ChipTensor;

/// Descriptors of a block.
const BLOCK: usize = 64;
/// Blocks of ended scopes that are kept as they are.
const KEPT: usize = 128;

/// See the file.
#[derive(Default)]
pub(crate) struct Outputs {
    /// Blocks in use, those of the innermost scope last.
    used: Vec<Vec<ChipTensor>>,
    ended: VecDeque<Vec<ChipTensor>>,
}

impl Outputs {
    /// How many blocks are in use: what [`end`](Self::end) goes back to. The next descriptor goes into a new block.
    pub(crate) fn begin(&mut self) -> usize {
        let mark = self.used.len();
        self.add_block();
        mark
    }

    /// The scope that began at `mark` ends.
    pub(crate) fn end(&mut self, mark: usize) {
        self.ended.extend(self.used.drain(mark.min(self.used.len())..));
    }

    /// Keeps the descriptors side by side, and says where.
    pub(crate) fn keep(&mut self, tensors: &[ChipTensor]) -> *const ChipTensor {
        let room = |block: &Vec<ChipTensor>| block.len() + tensors.len() <= BLOCK;
        if !self.used.last().is_some_and(room) {
            self.add_block();
        }
        match self.used.last_mut() {
            Some(block) => {
                let start = block.len();
                // No more than its capacity: what programs refer to does not move.
                block.extend_from_slice(tensors);
                block.as_ptr().wrapping_add(start)
            }
            None => std::ptr::null(),
        }
    }

    fn add_block(&mut self) {
        let again = if self.ended.len() > KEPT { self.ended.pop_front() } else { None };
        let mut block = again.unwrap_or_else(|| Vec::with_capacity(BLOCK));
        block.clear();
        self.used.push(block);
    }
}

#[cfg(test)]
mod tests {
    use super::Outputs;
    use crate::wire::ChipTensor;

    #[test]
    fn descriptors_stay_where_they_are() {
        let mut outputs = Outputs::default();
        let tensor = |address| ChipTensor::dense(address, 0, &[4]);
        let outer = outputs.begin();
        let first = outputs.keep(&[tensor(64), tensor(128)]);
        for at in 0..1000 {
            let mark = outputs.begin();
            outputs.keep(&[tensor(at); 30]);
            outputs.end(mark);
        }
        // SAFETY: the scope of these two has not ended.
        let held = unsafe { std::slice::from_raw_parts(first, 2) };
        assert_eq!([held[0].address, held[1].address], [64, 128]);
        outputs.end(outer);
        assert!(outputs.ended.len() < 200);
    }
}
