//! What an access meets, and how it is noted; and both in one for the usual case, in which everything that an access may meet is in
//! one row and is to the same region.
//!
//! In the usual case, look and note are one: one comparison of the region, and the ages of up to four tasks. A tile of a tensor with a
//! grid is found by the address of its first byte: the region in the row says that it is the right one, so nothing is
//! divided. Everything else goes the long way, by [`TensorMap::look`] and [`TensorMap::note`]: chains, other regions of the
//! same tensor, tiles that are met for the first time.

use pto_abi::stream::MapRow;
use pto_abi::sync::Ordering::Relaxed;

use super::access::{AccessKind, Hide, MANY, TensorAccess};
use super::lookup::{Lookup, Stop};
use super::row::{MapRowExt, Now};
use super::tensor_map::{Cells, HAS_GRID, MapPosition, NO_GRID, QUIET, TensorMap};

/// Accesses that a walk passes in vain before the accesses of the tensor are sorted by a grid. 24 comparisons of bounds cost
/// about as much as what a grid costs a submission.
const MISSES: u32 = 24;

/// What an access may meet.
enum Usual<'a> {
    /// What this row holds, and nothing else; the row is of the access's region.
    Row(&'a MapRow),
    /// Nothing: it reads a tensor whose accesses are not sorted, and which no task under way writes. It is noted among the readers at this row.
    OnlyRead(&'a MapRow),
    /// That has to be looked for.
    No,
}

impl<'a> TensorMap<'a> {
    /// Where to look for what an access meets, and to note it.
    #[inline]
    #[must_use]
    pub fn locate(&self, access: &TensorAccess<'_>) -> Option<MapPosition<'a>> {
        let (tensor, at) = self.tensor_of(access.base)?;
        let has_grid = tensor.link.load(Relaxed) != NO_GRID;
        let cells = if has_grid { self.cells_of(at, access) } else { Cells::NoGrid };
        Some(MapPosition { tensor, at, cells })
    }

    /// Calls `found` with the tasks under way before task `number` whose accesses conflict with this one; a task may come
    /// more than once.
    ///
    /// # Errors
    /// That of `found`; `undecided` when two regions cannot be compared.
    #[inline]
    pub fn look<E>(
        &self,
        position: &MapPosition<'a>,
        access: &TensorAccess<'_>,
        (number, hide): (u64, Hide),
        undecided: E,
        found: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let hides = hide == Hide::Covered && access.kind == AccessKind::Write;
        let now = self.now(number);
        let mut look = Lookup { entries: &self.entries, access, hides, now, found, misses: 0 };
        let result = look.row(position.tensor).and_then(|()| match position.cells {
            Cells::NoGrid => Ok(()),
            Cells::One(cell, _) => {
                if cell.base.load(Relaxed) == access.base {
                    look.row(cell)?;
                }
                if self.has_strips() { self.look_at_strip(position, &mut look) } else { Ok(()) }
            }
            Cells::Strip(..) => self.look_at_strip(position, &mut look),
            Cells::All => self.look_at_cells(position, &mut look),
        });
        let misses = look.misses;
        match result {
            Ok(()) if misses > MISSES => {
                self.choose_grid(position, &access.region());
                Ok(())
            }
            Ok(()) => Ok(()),
            Err(Stop::Undecided) => Err(undecided),
            Err(Stop::Found(error)) => Err(error),
        }
    }

    /// Notes an access of task `number`; `hide`: as it was looked for, or [`Hide::Nothing`]. There is room for it.
    #[inline]
    pub fn note(
        &self,
        position: &MapPosition<'a>,
        access: &TensorAccess<'_>,
        (number, hide): (u64, Hide),
    ) {
        let now = self.now(number);
        let row = match position.cells {
            Cells::One(cell, at) if self.owns(position, cell, at, access, now) => cell,
            Cells::NoGrid => position.tensor,
            Cells::Strip(lane, at) if self.owns(position, lane, at, access, now) => {
                position.tensor.link.store(HAS_GRID, Relaxed);
                self.note_in_lane(lane, access, number);
                return;
            }
            _ => {
                position.tensor.link.store(HAS_GRID, Relaxed);
                position.tensor
            }
        };
        if hide == Hide::Nothing || !row.take(access, now) {
            let is_write = access.kind == AccessKind::Write;
            let chain = if is_write { &row.write_chain } else { &row.read_chain };
            self.entries.insert(chain, access, number);
        }
    }

    /// Looks for what an access of task `number`, which is one of derived dependencies, meets, and notes it: as
    /// [`look`](Self::look) and [`note`](Self::note) do with [`Hide::Covered`].
    ///
    /// # Errors
    /// Those of `look`.
    #[inline(always)]
    pub fn derive<E>(
        &self,
        access: &TensorAccess<'_>,
        number: u64,
        undecided: E,
        found: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<(), E> {
        self.derive_at(self.row_of(access.base), access, number, undecided, found)
    }

    /// The row of a tensor. A tensor keeps it.
    #[inline(always)]
    pub fn row_of(&self, base: u64) -> Option<&'a MapRow> {
        self.tensor_of(base).map(|(row, _)| row)
    }

    /// As [`derive`](Self::derive), of an access to the tensor that has this row.
    ///
    /// # Errors
    /// Those of `look`.
    #[inline(always)]
    pub fn derive_at<E>(
        &self,
        tensor: Option<&'a MapRow>,
        access: &TensorAccess<'_>,
        number: u64,
        undecided: E,
        mut found: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let now = self.now(number);
        let row = match self.usual_row(tensor, access, now) {
            Usual::Row(row) => row,
            Usual::OnlyRead(row) => {
                self.entries.insert(&row.read_chain, access, number);
                return Ok(());
            }
            Usual::No => return self.derive_slowly(access, number, undecided, found),
        };
        if access.kind == AccessKind::Write {
            return row.write(now, found);
        }
        if let Some(writer) = now.producer(row.writer.load(Relaxed)) {
            found(writer)?;
        }
        if !row.add_reader(now) {
            self.entries.insert(&row.read_chain, access, number);
        }
        Ok(())
    }

    /// What the access may meet, in the usual cases. A call of it would cost as much as a sixth of what it does.
    #[inline(always)]
    fn usual_row(
        &self,
        tensor: Option<&'a MapRow>,
        access: &TensorAccess<'_>,
        now: Now,
    ) -> Usual<'a> {
        let Some(tensor) = tensor else { return Usual::No };
        let grid = tensor.link.load(Relaxed);
        let row = match grid {
            NO_GRID => tensor,
            QUIET => match self.corner_of(access) {
                Some((cell, _)) => cell,
                None => return Usual::No,
            },
            _ => return Usual::No,
        };
        // A read does not conflict with reads.
        if self.entries.is_live(row.write_chain.load(Relaxed))
            || access.kind == AccessKind::Write
                && self.entries.is_live(row.read_chain.load(Relaxed))
        {
            return Usual::No;
        }
        if !row.is_of(access) {
            let may_begin = grid == NO_GRID && access.rows != MANY;
            if !may_begin || !row.is_free(now) {
                let is_read = grid == NO_GRID && access.kind == AccessKind::Read;
                let meets_nothing = is_read && now.is_gone(&row.writer);
                return if meets_nothing { Usual::OnlyRead(row) } else { Usual::No };
            }
            row.begin(access, now);
        }
        Usual::Row(row)
    }

    #[inline(never)]
    fn derive_slowly<E>(
        &self,
        access: &TensorAccess<'_>,
        number: u64,
        undecided: E,
        found: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(position) = self.locate(access) else { return Ok(()) };
        let how = (number, Hide::Covered);
        self.look(&position, access, how, undecided, found)?;
        self.note(&position, access, how);
        let tensor = position.tensor;
        if matches!(position.cells, Cells::One(..)) && tensor.link.load(Relaxed) == HAS_GRID {
            let is_quiet = !self.has_strips() && self.is_unused(tensor, self.now(number));
            tensor.link.store(if is_quiet { QUIET } else { HAS_GRID }, Relaxed);
        }
        Ok(())
    }
}
