//! Random workloads come back from their texts; changed texts are refused with a position, or are workloads.

use pto_workload::Workload;
use pto_workload::tile::DType;
use pto_workload::tree::{
    Axis, BinaryOp, Channel, Dispatch, Expr, Index, Loop, Process, ScalarType, Schedule, Task,
    TaskArgument, TaskWindow, Tensor, TensorSlice, TreeNode, UnaryOp, WindowMode,
};

use crate::expressions::keep;
use crate::random::TestRng;
use crate::v9::copy_kernel;

fn expr(random: &mut TestRng, depth: usize) -> Expr {
    let inner = |random: &mut TestRng| expr(random, depth - 1);
    let of = [ScalarType::Bool, ScalarType::I64, ScalarType::U64][random.below(3)];
    let kind = if depth == 0 { random.below(7) } else { random.below(11) };
    match kind {
        0 => Expr::Bool(random.below(2) == 0),
        1 => Expr::Int(random.bits().cast_signed() >> random.below(64)),
        2 => Expr::Unsigned(random.bits() >> random.below(64)),
        3 => Expr::var(["i", "from", "load", "number", "slot"][random.below(5)]),
        4 => Expr::symbol(["size", "param", "true_"][random.below(3)]),
        5 => Expr::Slot(random.below(256) as u16, of),
        6 => Expr::Param(random.below(9) as u16),
        7 => Expr::unary(
            [UnaryOp::Not, UnaryOp::Negate, UnaryOp::Complement][random.below(3)],
            inner(random),
        ),
        8 => Expr::choice(inner(random), inner(random), inner(random)),
        9 => Expr::cast(of, inner(random)),
        _ => {
            let (a, b) = (inner(random), inner(random));
            Expr::binary(BinaryOp::ALL[random.below(18)], a, b)
        }
    }
}

fn view(random: &mut TestRng) -> TensorSlice {
    let tensor = random.below(2);
    let indices = (0..random.below(3)).map(|_| {
        let start = expr(random, 2);
        if random.below(2) == 0 {
            return Index::At(start);
        }
        Index::Range { start, length: expr(random, 1) }
    });
    TensorSlice { tensor, indices: indices.collect() }
}

fn task(random: &mut TestRng) -> Task {
    let axes = (0..random.below(4)).map(|_| expr(random, 2)).collect();
    if random.below(2) == 0 {
        let arguments = vec![TaskArgument::View(view(random)), TaskArgument::View(view(random))];
        return Task { kernel: 0, axes, arguments };
    }
    let scalar = match random.below(4) {
        0 => TaskArgument::Expr(expr(random, 3)),
        1 => TaskArgument::Number(f64::from(random.normal()) * 1e-30),
        2 => TaskArgument::Number([f64::INFINITY, f64::NEG_INFINITY, -0.0, 1e300][random.below(4)]),
        _ => TaskArgument::Symbol("scale".to_owned()),
    };
    Task { kernel: 1, axes, arguments: vec![scalar, TaskArgument::View(view(random))] }
}

fn around(random: &mut TestRng) -> Loop {
    let name = |text: &str| text.to_owned();
    let axis = match random.below(5) {
        0 => Axis::Dense(random.bits() >> random.below(64)),
        1 => Axis::DenseDyn { name: name("rows"), default: None },
        2 => Axis::DenseDyn { name: name("rows"), default: Some(random.bits() >> 40) },
        3 => Axis::Ragged { outer: name("outer"), lengths: name("lengths") },
        _ => {
            Axis::Sparse { outer: name("outer"), indptr: name("indptr"), indices: name("indices") }
        }
    };
    let places = (random.below(3) == 0).then(|| [name("row"), name("at")]);
    Loop { var: name(["i", "j", "each"][random.below(3)]), places, axis }
}

fn node(random: &mut TestRng, depth: usize) -> TreeNode {
    let inner = |random: &mut TestRng| Box::new(node(random, depth - 1));
    let many =
        |random: &mut TestRng| (0..random.below(4)).map(|_| node(random, depth - 1)).collect();
    let kind = if depth == 0 { random.below(5) } else { random.below(12) };
    match kind {
        0 => TreeNode::Empty,
        1 => TreeNode::Task(task(random)),
        2 => TreeNode::SlotSet { slot: random.below(256) as u16, value: expr(random, 3) },
        3 => TreeNode::SlotLoad {
            slot: 3,
            view: view(random),
            row: expr(random, 1),
            col: expr(random, 1),
        },
        4 => TreeNode::Send { channel: random.below(2), task: task(random) },
        5 => TreeNode::ParallelFor(around(random), inner(random)),
        6 => TreeNode::ForEach(around(random), inner(random)),
        7 => TreeNode::Select(around(random), inner(random)),
        8 => TreeNode::Cond {
            predicate: expr(random, 3),
            then: inner(random),
            otherwise: inner(random),
        },
        9 => TreeNode::Combine(many(random)),
        10 => TreeNode::Sequential(many(random)),
        _ => {
            TreeNode::Consume { channel: random.below(2), var: "t".to_owned(), body: inner(random) }
        }
    }
}

fn random_workload(random: &mut TestRng) -> Workload {
    let root = if random.below(4) == 0 {
        let processes = (0..random.below(4)).map(|number| Process {
            name: format!("p{number}"),
            rank: u16::try_from(random.below(3)).unwrap(),
            consumes: (0..random.below(3)).collect(),
            produces: (0..random.below(3)).collect(),
            body: node(random, 3),
        });
        TreeNode::Pipeline(processes.collect())
    } else {
        node(random, 5)
    };
    let key = expr(random, 2);
    let dispatch = match random.below(7) {
        0 => Dispatch::RoundRobin,
        1 => Dispatch::WorkSteal,
        2 => Dispatch::Affinity(key),
        3 => Dispatch::Hash(key),
        4 => Dispatch::By(key),
        5 => Dispatch::Stream(key),
        _ => Dispatch::Streams,
    };
    let window = TaskWindow { tasks: random.bits() >> 40, mode: WindowMode::ALL[random.below(3)] };
    let mut workload = Workload::new("random", root);
    let priority = (random.below(2) == 0).then(|| expr(random, 2));
    let [workers, batch, start] = [50, 63, 60].map(|shift| random.bits() >> shift);
    workload.schedule = Schedule { dispatch, workers, window, priority, batch, start };
    workload.kernels = vec![copy_kernel("copy", [4, 4]), keep(DType::F32)];
    let tensor = |name: &str, shape: &[u64]| Tensor {
        name: name.to_owned(),
        dtype: DType::F32,
        shape: shape.to_vec(),
    };
    workload.tensors = vec![tensor("X", &[4, 4]), tensor("Y", &[])];
    workload.channels =
        [("c", 0), ("d", 7)].map(|(name, depth)| Channel { name: name.to_owned(), depth }).to_vec();
    workload
}

#[test]
fn random_workloads_come_back_from_their_texts() {
    for seed in 0..3000 {
        let workload = random_workload(&mut TestRng(seed));
        let text = workload.to_string();
        let again =
            Workload::parse(&text).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
        assert_eq!(again, workload, "seed {seed}\n{text}");
        // A check answers, whatever the tree says.
        if let Err(error) = workload.check() {
            assert!(error.to_string().ends_with('.'), "{error}");
        }
    }
}

#[test]
fn changed_texts_are_refused_or_workloads() {
    let mut read = 0;
    for seed in 0..6000 {
        let mut random = TestRng(seed);
        let mut bytes = random_workload(&mut TestRng(seed % 40)).to_string().into_bytes();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len());
            match random.below(3) {
                0 => bytes[at] = b" 0129afx%,:[]{}()=-.?\n"[random.below(22)],
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, b"0%[{ex (-"[random.below(9)]),
            }
        }
        if let Ok(workload) = Workload::parse(&String::from_utf8_lossy(&bytes)) {
            read += 1;
            // As texts: a number that is not one is not equal to itself.
            let text = workload.to_string();
            assert_eq!(Workload::parse(&text).unwrap().to_string(), text);
        }
    }
    assert!(read > 300, "{read}");
}

#[test]
fn depth_is_limited_and_told() {
    let nested =
        format!("workload w {{ do {} empty {} }}", "combine { ".repeat(5000), "} ".repeat(5000));
    let error = Workload::parse(&nested).unwrap_err();
    assert_eq!(error.message, "nodes stand in one another more than 200 deep");
    for open in ["(", "!", "-(", "1 + (", "true ? "] {
        let text = format!("workload w {{ do slot 1 = {}1 }}", open.repeat(5000));
        let error = Workload::parse(&text).unwrap_err();
        assert_eq!(error.message, "expressions stand in one another more than 200 deep", "{open}");
    }
}
