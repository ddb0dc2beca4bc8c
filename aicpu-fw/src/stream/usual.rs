//! Derivation in the usual case: what an access may meet stands in one record, and is to its very region.
//!
//! Look and note are one then: one comparison of the region, and the ages of up to four tasks. A tile of a tensor with a
//! grid is found by the address of its first byte: the region in the record says that it is the right one, so nothing is
//! divided. Everything else goes the long way, by [`TensorMap::look`] and [`TensorMap::note`]: chains, other regions of the
//! same tensor, tiles that are met for the first time.

use pto_abi::stream::MapRow;
use pto_abi::sync::Ordering::Relaxed;

use super::access::{Access, AccessKind, Hide, MANY};
use super::looks::{Keep, Now};
use super::map::{Cells, HAS_GRID, NO_GRID, QUIET, TensorMap};

impl<'a> TensorMap<'a> {
    /// Looks for what an access of task `number`, which is one of derived dependencies, meets, and notes it: as
    /// [`look`](Self::look) and [`note`](Self::note) do with [`Hide::Covered`].
    ///
    /// # Errors
    /// Those of `look`.
    #[inline(always)]
    pub fn derive<E>(
        &self,
        access: &Access<'_>,
        number: u64,
        undecided: E,
        mut found: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let now = self.now(number);
        let Some(record) = self.usual_record(access, now) else {
            return self.derive_slowly(access, number, undecided, found);
        };
        if access.kind == AccessKind::Write {
            return record.write(now, found);
        }
        if let Some(writer) = now.producer(record.writer.load(Relaxed)) {
            found(writer)?;
        }
        if !record.add_reader(now) {
            self.insert(&record.read_chain, access, number);
        }
        Ok(())
    }

    /// The record that holds all that the access may meet, and nothing else; `None`: there is none.
    #[inline]
    fn usual_record(&self, access: &Access<'_>, now: Now) -> Option<&'a MapRow> {
        let (tensor, _) = self.tensor_of(access.base)?;
        let grid = tensor.link.load(Relaxed);
        let record = match grid {
            NO_GRID => tensor,
            QUIET => self.corner_of(access)?.0,
            _ => return None,
        };
        // Who reads does not meet readers.
        if self.is_live(record.write_chain.load(Relaxed))
            || access.kind == AccessKind::Write && self.is_live(record.read_chain.load(Relaxed))
        {
            return None;
        }
        if !record.is_of(access) {
            let is_free = grid == NO_GRID && access.rows != MANY && record.is_free(now);
            if !is_free {
                return None;
            }
            record.begin(access, now);
        }
        Some(record)
    }

    #[inline(never)]
    fn derive_slowly<E>(
        &self,
        access: &Access<'_>,
        number: u64,
        undecided: E,
        found: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(place) = self.place(access) else { return Ok(()) };
        let how = (number, Hide::Covered);
        self.look(&place, access, how, undecided, found)?;
        self.note(&place, access, how);
        let tensor = place.tensor;
        if matches!(place.cells, Cells::One(..)) && tensor.link.load(Relaxed) == HAS_GRID {
            let is_quiet = self.is_unused(tensor, self.now(number));
            tensor.link.store(if is_quiet { QUIET } else { HAS_GRID }, Relaxed);
        }
        Ok(())
    }
}
