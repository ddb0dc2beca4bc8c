//! Scopes: which are open, and how their tasks get their edges.
//!
//! Invariants: the scope of the whole run is always open; scopes close in the opposite order; the serial number of a scope
//! is never given out again, so that a tensor of a closed scope is known.

use core::hash::{Hash, Hasher};

use heapless::Vec;
use pto_abi::Fault;
use pto_abi::stream::MAX_HEAP_RINGS;
use pto_graph::{DependencyMode, HeapTag, ScopeId};

use crate::blame::Blame;

/// A scope that is open.
#[derive(Clone, Copy)]
struct OpenScope {
    id: ScopeId,
    mode: DependencyMode,
}

/// See the file.
pub(super) struct Scopes {
    /// The open scopes, from the outermost one to the innermost one.
    open: Vec<OpenScope, MAX_HEAP_RINGS>,
    next_serial: u64,
    /// How many may be open: each depth has a heap of its own.
    most: usize,
}

impl Scopes {
    /// The scope of the whole run; `most`: how many may be open at once.
    pub(super) fn new(most: usize) -> Self {
        let root = ScopeId { depth: 0, serial: 0 };
        let mut open = Vec::new();
        // There is room for eight.
        open.push(OpenScope { id: root, mode: DependencyMode::DERIVED }).unwrap_or_default();
        Self { open, next_serial: 1, most }
    }

    pub(super) fn open(&mut self, mode: DependencyMode) -> Result<ScopeId, Blame> {
        let depth = self.open.len();
        let serial = self.next_serial;
        let id = ScopeId { depth: u32::try_from(depth).unwrap_or(u32::MAX), serial };
        if depth >= self.most || self.open.push(OpenScope { id, mode }).is_err() {
            let blame = Blame::of(Fault::STREAM_SCOPE_DEPTH);
            return Err(blame.detail(depth as u64 + 1, self.most as u64));
        }
        self.next_serial += 1;
        Ok(id)
    }

    /// Closes the innermost scope, which is to be `scope`.
    pub(super) fn close(&mut self, scope: ScopeId) -> Result<(), Blame> {
        let innermost = self.innermost().serial;
        if scope.serial != innermost || scope.serial == 0 {
            return Err(Blame::of(Fault::STREAM_SCOPE_NOT_OPEN).detail(scope.serial, innermost));
        }
        self.open.pop();
        Ok(())
    }

    /// The innermost scope.
    pub(super) fn innermost(&self) -> ScopeId {
        self.open.last().map_or(ScopeId { depth: 0, serial: 0 }, |scope| scope.id)
    }

    /// A scope was left open, where only that of the whole run may be.
    pub(super) fn check_closed(&self) -> Result<(), Blame> {
        match self.open.as_slice() {
            [_, .., left] => {
                Err(Blame::of(Fault::STREAM_SCOPE_LEFT_OPEN).detail(left.id.serial, 0))
            }
            _ => Ok(()),
        }
    }

    /// How the innermost scope gets its edges.
    #[inline]
    pub(super) fn mode(&self) -> DependencyMode {
        self.open.last().map_or(DependencyMode::DERIVED, |scope| scope.mode)
    }

    /// Whether the scope that a tensor of a heap belongs to is open; a tensor of the host's belongs to none.
    #[inline]
    pub(super) fn holds(&self, heap: HeapTag) -> bool {
        let open = self.open.get((heap.depth as usize).wrapping_sub(1));
        heap.depth == 0 || open.is_some_and(|open| open.id.serial == heap.serial)
    }

    /// Scopes that were opened so far.
    pub(super) const fn opened(&self) -> u64 {
        self.next_serial - 1
    }

    /// Hashes which are open.
    pub(super) fn hash_state<H: Hasher>(&self, into: &mut H) {
        self.next_serial.hash(into);
        for scope in &self.open {
            (scope.id.depth, scope.id.serial, scope.mode).hash(into);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::Scopes;
    use pto_abi::Fault;
    use pto_graph::{DependencyMode, HeapTag, ScopeId};

    #[test]
    fn scopes_close_in_the_opposite_order() {
        let mut scopes = Scopes::new(3);
        let outer = scopes.open(DependencyMode::EXPLICIT).unwrap();
        let inner = scopes.open(DependencyMode::MANUAL).unwrap();
        let deepest = scopes.open(DependencyMode::DERIVED).unwrap_err();
        assert_eq!((deepest.fault, deepest.detail), (Fault::STREAM_SCOPE_DEPTH, [4, 3]));
        assert_eq!(scopes.close(outer).unwrap_err().fault, Fault::STREAM_SCOPE_NOT_OPEN);
        assert_eq!((scopes.mode(), scopes.innermost()), (DependencyMode::MANUAL, inner));
        assert_eq!(scopes.check_closed().unwrap_err().detail, [inner.serial, 0]);
        scopes.close(inner).unwrap();
        scopes.close(outer).unwrap();
        let root = ScopeId { depth: 0, serial: 0 };
        assert_eq!(scopes.close(root).unwrap_err().fault, Fault::STREAM_SCOPE_NOT_OPEN);
        assert_eq!((scopes.check_closed(), scopes.opened()), (Ok(()), 2));
    }

    #[test]
    fn a_tensor_of_a_closed_scope_is_known() {
        let mut scopes = Scopes::new(3);
        let first = scopes.open(DependencyMode::DERIVED).unwrap();
        let tag = HeapTag { depth: first.depth + 1, serial: first.serial };
        assert!(scopes.holds(tag) && scopes.holds(HeapTag { depth: 0, serial: 99 }));
        scopes.close(first).unwrap();
        assert!(!scopes.holds(tag));
        scopes.open(DependencyMode::DERIVED).unwrap();
        assert!(!scopes.holds(tag), "another one is at its depth");
    }
}
