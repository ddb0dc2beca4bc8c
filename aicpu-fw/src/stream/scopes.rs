//! Scopes, and the tensors on their heaps.

use pto_abi::stream::RingKind;
use pto_abi::sync::{Ordering, Sharing};
use pto_abi::{Fault, GmAddr};
use pto_graph::{DependencyMode, ElementType, HeapTag, ScopeId, TensorView, ViewDefect};

use super::builder::{OpenScope, Stream};
use super::proof::{Patience, Until};
use crate::blame::Blame;
use crate::builder::{BuilderHost, DeviceMemory};
use crate::fanout::FanoutPolicy;

/// Tensors of the heap begin at multiples of this: a line, so that no two share one.
const ALIGN: u64 = 64;

impl<S: Sharing, F: FanoutPolicy, M: DeviceMemory, H: BuilderHost> Stream<'_, S, F, M, H> {
    pub(super) fn open(&mut self, mode: DependencyMode) -> Result<ScopeId, Fault> {
        let depth = self.scopes.len();
        let id =
            ScopeId { depth: u32::try_from(depth).unwrap_or(u32::MAX), serial: self.next_scope };
        if depth >= self.heaps.len() || self.scopes.push(OpenScope { id, mode }).is_err() {
            let blame = Blame::of(Fault::STREAM_SCOPE_DEPTH);
            return Err(self.blame.leave(blame.detail(depth as u64 + 1, self.heaps.len() as u64)));
        }
        self.next_scope += 1;
        self.header.scopes.store(self.next_scope - 1, Ordering::Relaxed);
        Ok(id)
    }

    pub(super) fn close(&mut self, scope: ScopeId) -> Result<(), Fault> {
        let innermost = self.scopes.last().map_or(0, |open| open.id.serial);
        if scope.serial != innermost || scope.serial == 0 {
            let blame = Blame::of(Fault::STREAM_SCOPE_NOT_OPEN).detail(scope.serial, innermost);
            return Err(self.blame.leave(blame));
        }
        self.scopes.pop();
        let next = self.next;
        if let Some(heap) = self.heaps.get_mut(scope.depth as usize) {
            heap.close(next);
        }
        Ok(())
    }

    /// How the innermost scope gets its edges.
    #[inline]
    pub(super) fn mode(&self) -> DependencyMode {
        self.scopes.last().map_or(DependencyMode::DERIVED, |scope| scope.mode)
    }

    /// Whether the scope that a tensor belongs to is open.
    #[inline]
    pub(super) fn is_alive(&self, heap: HeapTag) -> bool {
        heap.depth == 0 || self.is_of_open_scope(heap)
    }

    fn is_of_open_scope(&self, heap: HeapTag) -> bool {
        let open = self.scopes.get(heap.depth as usize - 1);
        open.is_some_and(|open| open.id.serial == heap.serial) || self.is_recorded(heap)
    }

    pub(super) fn allocate(
        &mut self,
        element: ElementType,
        shape: &[u32],
    ) -> Result<TensorView<'static>, Fault> {
        let Some(scope) = self.scopes.last().map(|scope| scope.id) else {
            return Err(Fault::STREAM_SCOPE_DEPTH);
        };
        let depth = scope.depth as usize;
        let measured = TensorView::dense(GmAddr::NULL, element, shape);
        if let Some(defect) = measured.defect() {
            let fault = view_fault(defect);
            return Err(self.blame.leave(Blame::of(fault).detail(shape.len() as u64, 0)));
        }
        let bytes = measured.tensor_bytes().next_multiple_of(ALIGN);
        let base = match self.record_heap(bytes) {
            Some(base) => base,
            None => {
                let place = self.take_heap(depth, scope.serial, bytes)?;
                self.heap.offset(depth as u64 * self.heap_bytes + place)
            }
        };
        let tensors = self.header.tensors.load(Ordering::Relaxed);
        self.header.tensors.store(tensors + 1, Ordering::Relaxed);
        let tag = HeapTag { depth: scope.depth + 1, serial: scope.serial };
        Ok(TensorView::of_heap(base, element, shape, tag))
    }

    /// Takes a part of the heap of `depth`; waits for closed scopes to retire.
    pub(super) fn take_heap(&mut self, depth: usize, scope: u64, bytes: u64) -> Result<u64, Fault> {
        let (mut waits, mut patience) = (false, Patience::new());
        loop {
            let watermark = self.watermark;
            let Some(heap) = self.heaps.get_mut(depth) else {
                return Err(Fault::STREAM_SCOPE_DEPTH);
            };
            heap.retire(watermark);
            let needed = heap.needed(bytes);
            if heap.has_room(bytes) {
                let place = heap.take(bytes);
                let in_use = heap.in_use();
                self.mark_heap(depth, in_use, needed);
                return Ok(place);
            }
            let (is_held, in_use) = (heap.is_held(), heap.in_use());
            let suffices = if is_held { needed } else { heap.needed_beside(bytes) };
            let ring = usize::from(RingKind::HEAP.get()) + depth;
            self.mark_heap(depth, in_use, needed);
            let blame = Blame::of(Fault::STREAM_HEAP_RING).detail(in_use, suffices);
            let blame = blame.ring(u32::try_from(ring).unwrap_or(u32::MAX), scope);
            if is_held {
                return Err(self.blame.leave(blame));
            }
            // Closed scopes go when the watermark passes them; it gets there unless it is stuck itself.
            let is_hopeless = self.is_hopeless(Until::Retired, &mut patience);
            self.advance();
            if is_hopeless && self.watermark == watermark {
                return Err(self.hopeless(blame, watermark));
            }
            if !waits {
                waits = true;
                self.count_wait(ring);
            }
            self.wait_a_turn(bytes)?;
        }
    }
}

/// The fault of a view that cannot be used.
pub(super) const fn view_fault(defect: ViewDefect) -> Fault {
    match defect {
        ViewDefect::Rank => Fault::STREAM_VIEW_RANK,
        ViewDefect::Range => Fault::STREAM_VIEW_RANGE,
        ViewDefect::Element => Fault::STREAM_VIEW_ELEMENT,
    }
}
