//! What the links of a chain do to tensors, worked out once: from the check of the chain to the derivation of its edges.
//!
//! Links that take turns go through adjacent parts of a tensor: of four links with rows at a distance of four, each has the row after that of the link before.
//! Together they are one region, with rows at a distance of one. [`Uses::join`] finds such links, so that the tensor map holds one access instead of
//! four. Invariant: what is joined touches the same bytes as before, no more and no less.

use pto_graph::TensorView;

use super::map::{AccessKind, TensorAccess};
use super::region::Region;

/// Accesses with one stride or none, kept on the stack: most chains have no more.
const SIMPLE: usize = 12;
/// Accesses with several strides.
const OTHERS: usize = 2;

/// See the module.
pub(super) struct Uses {
    /// The number of an argument, and what is done to its tensor.
    simple: heapless::Vec<(u32, TensorAccess<'static>), SIMPLE>,
    /// The number of an argument, its tensor, what is done to it, and the part.
    others: heapless::Vec<(u32, u64, AccessKind, Region), OTHERS>,
    /// How many were added.
    added: u64,
    /// There was no room for one of them: it is not here.
    is_short: bool,
}

impl Uses {
    /// An empty list of uses.
    pub(super) const fn new() -> Self {
        Self {
            simple: heapless::Vec::new(),
            others: heapless::Vec::new(),
            added: 0,
            is_short: false,
        }
    }

    /// Argument `index` is used like this. Inlined, so that an access goes from registers to its entry.
    #[inline(always)]
    pub(super) fn add(&mut self, index: u32, access: TensorAccess<'static>) {
        // Two links may do the same.
        let is_known = self.simple.iter().any(|(_, other)| other.is_same(&access));
        let is_kept = is_known || self.simple.push((index, access)).is_ok();
        self.count_one(is_kept);
    }

    /// Records the use of a view that may have several strides, by argument `index`.
    #[cold]
    pub(super) fn add_view(&mut self, index: u32, (view, kind): (&TensorView<'_>, AccessKind)) {
        let (base, region) = (view.base().0, Region::of(view));
        match TensorAccess::of_rows(base, kind, &region) {
            Some(access) => self.add(index, access),
            None => {
                let is_kept = self.others.push((index, base, kind, region)).is_ok();
                self.count_one(is_kept);
            }
        }
    }

    const fn count_one(&mut self, is_kept: bool) {
        self.added += 1;
        self.is_short |= !is_kept;
    }

    /// How many accesses the chain makes. If not all of them are here, the builder works them out again one by one, so that each one counts.
    pub(super) fn count(&self) -> u64 {
        if self.is_short { self.added } else { self.simple.len() as u64 + self.others.len() as u64 }
    }

    /// Whether all of them are here.
    pub(super) const fn is_whole(&self) -> bool {
        !self.is_short
    }

    /// Shows those that are here, with the numbers of their arguments.
    pub(super) fn each<E>(
        &self,
        mut each: impl FnMut(u32, &TensorAccess<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        for (index, access) in &self.simple {
            each(*index, access)?;
        }
        for (index, base, kind, region) in &self.others {
            each(*index, &TensorAccess::new(*base, *kind, region))?;
        }
        Ok(())
    }

    /// Joins accesses that lie side by side.
    pub(super) fn join(&mut self) {
        let mut at = 0;
        while let Some((_, first)) = self.simple.get(at) {
            at += 1;
            let Some(joined) = self.joined(first, at) else { continue };
            let (first, mut index) = (*first, 0);
            self.simple.retain(|(_, access)| {
                index += 1;
                index <= at || !access.has_same_shape(&first)
            });
            if let Some((_, entry)) = self.simple.get_mut(at - 1) {
                *entry = joined;
            }
        }
    }

    /// One access for `first` and those from `next` on that are like it; `None`: one access cannot describe them.
    fn joined(&self, first: &TensorAccess<'static>, next: usize) -> Option<TensorAccess<'static>> {
        let stride = first.stride()?;
        let similar = self.simple.get(next..)?.iter().map(|(_, access)| access);
        let mut similar = similar.filter(|access| access.has_same_shape(first));
        let second = similar.next()?;
        let distance = second.low.checked_sub(first.low).filter(|distance| *distance > 0)?;
        let mut last = second.low;
        for access in similar {
            if access.low.checked_sub(last) != Some(distance) {
                return None;
            }
            last = access.low;
        }
        // The next one after the last would be the next row of the first.
        (last - first.low + distance == stride).then(|| first.denser(distance, last))
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    extern crate std;
    use super::super::map::AccessKind;
    use super::Uses;
    use core::convert::Infallible;
    use pto_abi::GmAddr;
    use pto_graph::{ElementType, TensorView};
    use std::collections::BTreeSet;
    use std::vec::Vec;

    type Bytes = BTreeSet<u64>;

    fn bytes(low: u64, run: u64, stride: u64, count: u64) -> Bytes {
        (0..count).flat_map(|row| (0..run).map(move |byte| low + row * stride + byte)).collect()
    }

    /// The accesses that are left of these, as bytes; each is given by its first element, its elements, and a distance of rows and their number.
    fn joined(given: &[(u32, u32, i64, u32)], kinds: &[AccessKind]) -> Vec<Bytes> {
        let whole = TensorView::dense(GmAddr(0x1000), ElementType::U8, &[4096]);
        let mut uses = Uses::new();
        for ((first, run, stride, count), kind) in given.iter().zip(kinds.iter().cycle()) {
            let view = whole.slice(0, *first, *run).repeated(*stride, *count).unwrap();
            assert_eq!(view.defect(), None);
            uses.add_view(0, (&view, *kind));
        }
        uses.join();
        assert!(uses.is_whole());
        let mut all = Vec::new();
        let each: Result<(), Infallible> = uses.each(|_, access| {
            let region = access.region();
            let stride = region.dims().first().map_or((0, 1), |dim| (dim.stride, dim.count));
            let found = bytes(region.low, region.run, stride.0, stride.1.into());
            assert_eq!(found.last(), Some(&(region.high - 1)));
            all.push(found);
            Ok(())
        });
        each.unwrap();
        all
    }

    #[test]
    fn what_lies_side_by_side_is_one_access_to_the_same_bytes() {
        use AccessKind::{Read, Write};
        // Four rows in turn, and the same with gaps; what touches becomes one run.
        assert_eq!(
            joined(&[(8, 4, 16, 5), (12, 4, 16, 5), (16, 4, 16, 5), (20, 4, 16, 5)], &[Read]),
            [bytes(8, 80, 0, 1)]
        );
        assert_eq!(joined(&[(8, 3, 20, 5), (18, 3, 20, 5)], &[Write]), [bytes(8, 3, 10, 10)]);
        // Two tensors' worth of kinds: each is joined for itself.
        let turns = [(0, 2, 12, 3), (100, 2, 16, 3), (6, 2, 12, 3), (108, 2, 16, 3)];
        let expected = [bytes(0, 2, 6, 6), bytes(100, 2, 8, 6)];
        assert_eq!(joined(&turns, &[Read, Write]), expected);
        // What two links do is done once; and what comes before those that are joined stays.
        assert_eq!(joined(&[(8, 4, 16, 5), (8, 4, 16, 5)], &[Write]), [bytes(8, 4, 16, 5)]);
        assert_eq!(
            joined(&[(32, 3, 16, 5), (0, 3, 16, 5), (8, 3, 16, 5)], &[Write]),
            [bytes(32, 3, 16, 5), bytes(0, 3, 8, 10)]
        );
    }

    #[test]
    fn what_does_not_lie_side_by_side_stays() {
        use AccessKind::{Read, Write};
        let apart: [&[(u32, u32, i64, u32)]; 7] = [
            &[(8, 4, 16, 5), (12, 4, 16, 5)],
            &[(8, 4, 16, 5), (16, 4, 16, 6)],
            &[(8, 4, 16, 5), (16, 3, 16, 5)],
            &[(16, 4, 16, 5), (8, 4, 16, 5)],
            &[(0, 1, 12, 3), (4, 1, 12, 3), (9, 1, 12, 3)],
            &[(0, 4, 0, 1), (4, 4, 0, 1)],
            &[(32, 4, 16, 5), (8, 4, 16, 5), (12, 4, 16, 5)],
        ];
        for given in apart {
            let each = given.iter().map(|(first, run, stride, count)| {
                bytes((*first).into(), (*run).into(), stride.unsigned_abs(), (*count).into())
            });
            assert_eq!(joined(given, &[Read]), each.collect::<Vec<_>>(), "{given:?}");
        }
        assert_eq!(joined(&[(8, 4, 16, 5), (16, 4, 16, 5)], &[Read, Write]).len(), 2);
    }

    #[test]
    fn more_than_have_room_are_counted() {
        let whole = TensorView::dense(GmAddr(0), ElementType::U8, &[4096]);
        let mut uses = Uses::new();
        let rows = |first| whole.slice(0, first, 1).repeated(12, 5).unwrap();
        for index in 0..12 {
            uses.add_view(index, (&rows(index), AccessKind::Write));
            uses.add_view(index, (&rows(index), AccessKind::Write));
        }
        assert_eq!((uses.count(), uses.is_whole()), (12, true));
        uses.add_view(12, (&whole.slice(0, 100, 1), AccessKind::Write));
        uses.join();
        assert_eq!((uses.count(), !uses.is_whole()), (25, true));
    }
}
