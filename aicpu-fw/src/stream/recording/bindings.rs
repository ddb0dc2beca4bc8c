//! What a replay is given, compared with what was recorded.

use pto_abi::{Fault, GmAddr};
use pto_graph::{Bindings, HeapTag, TensorView};

use super::super::accesses::view_fault;
use super::super::overlap::overlap;
use super::super::region::Region;
use super::buffer::{RecordingBuffer, TENSORS, Totals};
use crate::blame::Blame;

/// A recording, and what a replay is given for it.
pub(in crate::stream) struct Bound<'r, 'a> {
    pub(in crate::stream) buffer: RecordingBuffer<'a>,
    /// Where the recording begins in the buffer.
    pub(in crate::stream) start: usize,
    pub(in crate::stream) totals: &'r Totals,
    pub(in crate::stream) bindings: &'r Bindings<'r>,
}

impl Bound<'_, '_> {
    /// As many tensors and scalars as were recorded.
    pub(in crate::stream) fn check_counts(&self) -> Result<(), Blame> {
        let counts = [
            (self.bindings.tensors.len(), self.totals.tensors as usize),
            (self.bindings.scalars.len(), self.totals.scalars as usize),
        ];
        match counts.into_iter().find(|(found, wanted)| found != wanted) {
            Some((found, wanted)) => {
                Err(Blame::of(Fault::STREAM_REPLAY_MISFIT).detail(found as u64, wanted as u64))
            }
            None => Ok(()),
        }
    }

    /// Each tensor has the shape of the one that was recorded for it, and none is written that another one overlaps. `is_alive`:
    /// whether the scope that a tensor belongs to is open.
    pub(in crate::stream) fn check_tensors(
        &self,
        is_alive: impl Fn(HeapTag) -> bool,
    ) -> Result<(), Blame> {
        for (index, view) in (0_u32..).zip(self.bindings.tensors) {
            if let Some(defect) = view.defect() {
                return Err(Blame::of(view_fault(defect)).argument(index));
            }
            if !is_alive(view.heap()) {
                let blame = Blame::of(Fault::STREAM_STALE_TENSOR).argument(index);
                return Err(blame.detail(view.heap().serial, 0));
            }
            if !self.buffer.fits(self.binding(index), view) {
                return Err(Blame::of(Fault::STREAM_REPLAY_MISFIT).argument(index));
            }
            self.check_alias(index, view)?;
        }
        Ok(())
    }

    fn check_alias(&self, index: u32, view: &TensorView<'_>) -> Result<(), Blame> {
        let is_written = |index| self.buffer.is_written(self.binding(index));
        for (other, earlier) in (0..index).zip(self.bindings.tensors) {
            let are_written = is_written(index) || is_written(other);
            if view.base() == earlier.base()
                && are_written
                && overlap(&Region::of(view), &Region::of(earlier)) != Ok(false)
            {
                let blame = Blame::of(Fault::STREAM_REPLAY_ALIAS).argument(index);
                return Err(blame.detail(other.into(), 0));
            }
        }
        Ok(())
    }

    /// The schedulers can read each element of a bound tensor that a predicate is on. It is not read here: a kernel may be
    /// writing it.
    pub(in crate::stream) fn check_predicates(
        &self,
        has_element: impl Fn(GmAddr, u64) -> bool,
    ) -> Result<(), Blame> {
        let list = self.totals.starters.0 as usize + self.totals.starters.1 as usize;
        for at in (list..).take(self.totals.predicates as usize) {
            let at = usize::try_from(self.buffer.get(at)).unwrap_or(usize::MAX);
            let (shape, base) = self.buffer.block_shape(at);
            let index = base.wrapping_sub(TENSORS);
            let Some(view) = self.bindings.tensors.get(usize::from(index)) else { continue };
            let address = view.address().offset(shape.address);
            if !has_element(address, shape.element_bytes()) {
                let blame = Blame::of(Fault::STREAM_PREDICATE).argument(index.into());
                return Err(blame.detail(address.0, 0));
            }
        }
        Ok(())
    }

    fn binding(&self, index: u32) -> usize {
        RecordingBuffer::binding(self.start, index as usize)
    }
}
