//! How many tasks a tree has at least, as its loops say before anything runs.

use crate::tree::{Axis, Node};

use super::bindings::Bindings;

/// So many tasks a tree has, or more: loops over arrays, and what depends on values or tokens, count as none.
pub(super) fn least_tasks(node: &Node, bindings: &Bindings) -> u64 {
    let sum = |nodes: &mut dyn Iterator<Item = &Node>| {
        nodes.fold(0_u64, |sum, node| sum.saturating_add(least_tasks(node, bindings)))
    };
    match node {
        Node::Task(_) | Node::Send { .. } => 1,
        Node::ParallelFor(around, body)
        | Node::Select(around, body)
        | Node::ForEach(around, body) => {
            turns(&around.axis, bindings).saturating_mul(least_tasks(body, bindings))
        }
        Node::Cond { then, otherwise, .. } => {
            least_tasks(then, bindings).min(least_tasks(otherwise, bindings))
        }
        Node::Combine(nodes) | Node::Sequential(nodes) => sum(&mut nodes.iter()),
        Node::Pipeline(processes) => sum(&mut processes.iter().map(|process| &process.body)),
        Node::Empty
        | Node::SlotSet { .. }
        | Node::SlotLoad { .. }
        | Node::Consume { .. }
        | Node::Exchange(_) => 0,
    }
}

/// So many turns of a loop over an axis, or more.
fn turns(axis: &Axis, bindings: &Bindings) -> u64 {
    match axis {
        Axis::Dense(turns) => *turns,
        // That a size is not bound, is told when its loop is reached.
        Axis::DenseDyn { name, default } => bindings.find_size(name, *default).unwrap_or(0),
        Axis::Ragged { .. } | Axis::Sparse { .. } => 0,
    }
}

#[cfg(test)]
mod tests {
    use crate::clock::{Bindings, Bound, RunError, results, row_major};
    use crate::tree::Workload;
    use pto_aicore_kernels::tile::view::tensor_of;

    /// What a workload of such a body comes to that may call its kernel 100 times.
    fn of(body: &str) -> Result<u64, RunError> {
        let kernel =
            "kernel k(x: in f32[1, 8], y: out f32[1, 8]) { %0 = load x : f32[1, 8] store y, %0 }";
        let text = format!("workload w {{ tensor X : f32[2, 8] {kernel} do {body} }}");
        let text = text.replace("CALL", "k[i](x = X[0 for 1], y = X[1 for 1])");
        let checked = Workload::parse(&text).expect("a workload").check().expect("a right one");
        let mut words = vec![0; 8];
        let bound = Bound { memory: tensor_of(&mut words), first: 0, strides: row_major(&[2, 8]) };
        let bindings = Bindings::new().tensor("X", bound).size("n", 1 << 40);
        results(&checked, &bindings, 100)
    }

    #[test]
    fn what_loops_say_is_refused_before_anything_runs() {
        for (body, least) in [
            ("parallel i in dense 4294967296 { CALL }", 1 << 32),
            ("each i in dyn n default 4 { CALL }", 1 << 40),
            (
                "parallel i in dense 3000000000 { parallel j in dense 3000000000 { CALL } }",
                9 * 10_u64.pow(18),
            ),
            (
                "parallel i in dense 3000000000000 { parallel j in dense 3000000000 { CALL } }",
                u64::MAX,
            ),
            // That is seen when the last task that may run has run.
            ("parallel i in dense 300 { if i < 200 { CALL } else { empty } }", 101),
        ] {
            assert_eq!(of(body), Err(RunError::Tasks { least, most: 100 }), "{body}");
        }
        assert_eq!(of("parallel i in dense 100 { CALL }"), Ok(100));
        assert_eq!(of("parallel i in dense 1000 { if i < 50 { CALL } else { empty } }"), Ok(50));
    }
}
