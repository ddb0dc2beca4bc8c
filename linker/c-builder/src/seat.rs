//! Which graph belongs to which runtime, while a builder in C is on the stack.
//!
//! C hands back nothing but the runtime's address. A table of seats finds the graph: taken before the builder
//! is called, given back when it has returned.

use pto_abi::sync::{AtomicU64, Ordering};

use crate::calls::CGraph;

/// Builders in C that run at once in one process: one for each device.
const SEATS: usize = 4;

struct Seat {
    /// Address of the runtime; zero: free.
    runtime: AtomicU64,
    /// Address of the `Erased` on the stack of `with`.
    graph: AtomicU64,
}

static TABLE: [Seat; SEATS] =
    [const { Seat { runtime: AtomicU64::new(0), graph: AtomicU64::new(0) } }; SEATS];

/// A graph behind a thin pointer.
struct Erased<'g>(&'g mut dyn CGraph);

/// Calls `build` while the functions that C calls find `graph` by `runtime`. `None`: all seats are taken, and
/// nothing was called.
pub(crate) fn with<R>(
    runtime: usize,
    graph: &mut dyn CGraph,
    build: impl FnOnce() -> R,
) -> Option<R> {
    let free = |seat: &&Seat| {
        let runtime = runtime as u64;
        // Acquire: pairs with the Release store below; the builder before is done with the seat.
        seat.runtime.compare_exchange(0, runtime, Ordering::Acquire, Ordering::Relaxed).is_ok()
    };
    let seat = TABLE.iter().find(free)?;
    let mut erased = Erased(graph);
    // Relaxed: only this thread looks for this runtime.
    seat.graph.store((&raw mut erased).expose_provenance() as u64, Ordering::Relaxed);
    let returned = build();
    seat.runtime.store(0, Ordering::Release);
    Some(returned)
}

/// Calls `with` on the graph of `runtime`; `None`: no builder of it is on the stack.
///
/// # Safety
/// The caller is, by way of C, the `build` of the `with` that took the seat, and has no other reference to
/// the graph.
pub(crate) unsafe fn on_graph<R>(
    runtime: usize,
    act: impl FnOnce(&mut dyn CGraph) -> R,
) -> Option<R> {
    let is_ours = |seat: &&Seat| seat.runtime.load(Ordering::Relaxed) == runtime as u64;
    let seat = TABLE.iter().find(is_ours).filter(|_| runtime != 0)?;
    let graph = usize::try_from(seat.graph.load(Ordering::Relaxed)).ok()?;
    let graph = core::ptr::with_exposed_provenance_mut::<Erased<'_>>(graph);
    // SAFETY: `with` is below on the stack of this thread, so that its `Erased` lives; by this function's
    // contract there is no other reference.
    let graph = unsafe { &mut *graph };
    Some(act(graph.0))
}
