//! Memory a task, by calculation: what the arena and the graph image of each family take.

use std::fmt::Write as _;

use crate::family::Family;
use crate::runner::pto::arena_bytes;

/// About how many tasks the graphs have.
const TASKS: u32 = 100_000;
/// Of a graph image: a task, an edge.
const IMAGE_TASK_BYTES: u64 = 24;
const IMAGE_EDGE_BYTES: u64 = 4;

/// One line a family: bytes a task of the arena, and of the graph image, for tasks without arguments.
///
/// # Panics
/// When an arena of 100,000 tasks exceeds a limit.
#[must_use]
pub fn table() -> String {
    let mut table = String::from("graph         arena  image   bytes/task\n");
    for family in Family::programs() {
        let graph = family.graph(TASKS);
        let (tasks, edges) = (graph.tasks(), graph.edges());
        let arena = arena_bytes(tasks, edges).expect("far below the limits");
        let image = u64::from(tasks) * IMAGE_TASK_BYTES + edges * IMAGE_EDGE_BYTES;
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52 bytes")]
        let each = |bytes: u64| bytes as f64 / f64::from(tasks);
        // Writing to a String does not fail.
        let _ = writeln!(table, "{:12} {:6.1} {:6.1}", family.name(), each(arena), each(image));
    }
    table
}
