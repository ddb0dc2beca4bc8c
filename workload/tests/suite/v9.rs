//! The known programs: their results, and the cycles of the `v9` clock, exactly.

use pto_workload::clock::{Bindings, BoundTensor, Report, run};
use pto_workload::tile::element::f16;
use pto_workload::tile::view::tensor_of;
use pto_workload::tile::{Binary, DType, Direction, Reduce, Unary};
use pto_workload::tree::{
    Axis, Channel, Dispatch, Expr, Loop, Process, Schedule, Task, TaskArgument, Tensor,
    TensorSlice, TreeNode,
};
use pto_workload::{Checked, KernelBuilder, TileKernel, Workload};

use crate::random::TestRng;

const F32: DType = DType::F32;

/// A workload over f32 tensors, on workers in turn.
pub(crate) fn workload(
    name: &str,
    workers: u64,
    tensors: &[(&str, DType, &[u64])],
    kernels: Vec<TileKernel>,
    root: TreeNode,
) -> Workload {
    let tensors = tensors.iter().map(|(name, dtype, shape)| Tensor {
        name: (*name).to_owned(),
        dtype: *dtype,
        shape: shape.to_vec(),
    });
    let schedule = Schedule { dispatch: Dispatch::RoundRobin, workers, ..Schedule::default() };
    let mut workload = Workload::new(name, root);
    workload.tensors = tensors.collect();
    (workload.kernels, workload.schedule) = (kernels, schedule);
    workload
}

pub(crate) fn parallel(var: &str, size: u64, body: TreeNode) -> TreeNode {
    TreeNode::ParallelFor(Loop::new(var, Axis::Dense(size)), Box::new(body))
}

pub(crate) fn each(var: &str, size: u64, body: TreeNode) -> TreeNode {
    TreeNode::ForEach(Loop::new(var, Axis::Dense(size)), Box::new(body))
}

/// A task whose arguments are views at loop variables.
pub(crate) fn task(kernel: usize, axes: &[&str], views: &[(usize, &[&str])]) -> Task {
    let places = |names: &[&str]| names.iter().map(|name| Expr::var(name)).collect::<Vec<_>>();
    let views =
        views.iter().map(|(tensor, at)| TaskArgument::View(TensorSlice::at(*tensor, places(at))));
    Task { kernel, axes: places(axes), arguments: views.collect() }
}

/// Checks, prints and reads again; both are the same.
pub(crate) fn checked(workload: Workload) -> Checked {
    let text = workload.to_string();
    let again = Workload::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(again, workload, "{text}");
    workload.check().unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn assert_close(found: &[f32], expected: &[f64], relative: f64, absolute: f64) {
    assert_eq!(found.len(), expected.len());
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let allowed = absolute + relative * expected.abs();
        let distance = (f64::from(*found) - expected).abs();
        assert!(distance <= allowed, "element {at}: {found}, not {expected}");
    }
}

fn product(a: &[f64], b: &[f64], [m, k, n]: [usize; 3]) -> Vec<f64> {
    let mut c = vec![0.0; m * n];
    for i in 0..m {
        for j in 0..n {
            c[i * n + j] = (0..k).map(|p| a[i * k + p] * b[p * n + j]).sum();
        }
    }
    c
}

fn wide(x: &[f32]) -> Vec<f64> {
    x.iter().map(|x| f64::from(*x)).collect()
}

#[test]
fn a_product_of_one_tile_takes_4864() {
    let mut k = KernelBuilder::new("matmul");
    let a = k.tensor("a", Direction::In, F32, [16, 16]).unwrap();
    let b = k.tensor("b", Direction::In, F32, [16, 16]).unwrap();
    let c = k.tensor("c", Direction::Out, F32, [16, 16]).unwrap();
    let product_ = k.matmul(a, b, None).unwrap();
    k.store(c, product_, [0, 0], None).unwrap();
    let root =
        parallel("i", 1, TreeNode::Task(task(0, &["i"], &[(0, &["i"]), (1, &["i"]), (2, &["i"])])));
    let shape: &[u64] = &[1, 16, 16];
    let tensors = [("A", F32, shape), ("B", F32, shape), ("C", F32, shape)];
    let checked =
        checked(workload("validated_matmul", 4, &tensors, vec![k.finish().unwrap()], root));
    let mut random = TestRng(42);
    let (mut a, mut b, mut c) = (random.normals(256), random.normals(256), vec![0f32; 256]);
    let expected = product(&wide(&a), &wide(&b), [16, 16, 16]);
    let report = {
        let bindings = Bindings::new().dense(&checked, "A", &mut a).unwrap();
        let bindings = bindings.dense(&checked, "B", &mut b).unwrap();
        run(&checked, &bindings.dense(&checked, "C", &mut c).unwrap()).unwrap()
    };
    assert_eq!(report, Report { total_cycles: 4864, tasks: 1, overflows: 0 });
    assert_close(&c, &expected, 1e-6, 1e-7);
}

fn attention_kernel(tile: u64, d: u64) -> TileKernel {
    let mut k = KernelBuilder::new("attention_tile");
    let q = k.tensor("q", Direction::In, F32, [tile, d]).unwrap();
    let k_t = k.tensor("k_t", Direction::In, F32, [d, tile]).unwrap();
    let v = k.tensor("v", Direction::In, F32, [tile, d]).unwrap();
    let out = k.tensor("out", Direction::Out, F32, [tile, d]).unwrap();
    let scores = k.matmul(q, k_t, None).unwrap();
    let scale = k.constant(1.0 / (d as f64).sqrt(), F32).unwrap();
    let scores = k.binary(Binary::Mul, scores, scale).unwrap();
    let most = k.reduce(Reduce::RowMax, scores).unwrap();
    let scores = k.binary(Binary::Sub, scores, most).unwrap();
    let exp = k.unary(Unary::Exp, scores).unwrap();
    let sum = k.reduce(Reduce::RowSum, exp).unwrap();
    let w = k.binary(Binary::Div, exp, sum).unwrap();
    let result = k.matmul(w, v, None).unwrap();
    k.store(out, result, [0, 0], None).unwrap();
    k.finish().unwrap()
}

/// Attention of one tile in double precision.
fn attention(q: &[f64], k: &[f64], v: &[f64], tile: usize, d: usize) -> Vec<f64> {
    let mut out = Vec::new();
    for i in 0..tile {
        let score =
            |j: usize| (0..d).map(|p| q[i * d + p] * k[j * d + p]).sum::<f64>() / (d as f64).sqrt();
        let exp: Vec<f64> = (0..tile).map(|j| score(j).exp()).collect();
        let sum: f64 = exp.iter().sum();
        out.extend((0..d).map(|p| (0..tile).map(|j| exp[j] / sum * v[j * d + p]).sum::<f64>()));
    }
    out
}

#[test]
fn attention_takes_1680() {
    let body = TreeNode::Task(task(
        0,
        &["b", "h", "s"],
        &[0, 1, 2, 3].map(|t| (t, &["b", "h", "s"] as &[&str])),
    ));
    let root = parallel("b", 1, parallel("h", 2, parallel("s", 2, body)));
    let (rows, turned): (&[u64], &[u64]) = (&[1, 2, 2, 8, 8], &[1, 2, 2, 8, 8]);
    let tensors = [("Q", F32, rows), ("K_t", F32, turned), ("V", F32, rows), ("O", F32, rows)];
    let checked = checked(workload("attention", 4, &tensors, vec![attention_kernel(8, 8)], root));
    let mut random = TestRng(0);
    let (mut q, mut k, mut v) = (random.normals(256), random.normals(256), random.normals(256));
    let mut o = vec![0f32; 256];
    let expected: Vec<f64> = (0..4)
        .flat_map(|tile| {
            let part = |x: &[f32]| wide(&x[tile * 64..][..64]);
            attention(&part(&q), &part(&k), &part(&v), 8, 8)
        })
        .collect();
    let report = {
        // The keys are turned by their strides.
        let turned =
            BoundTensor { memory: tensor_of(&mut k), first: 0, strides: vec![256, 128, 64, 1, 8] };
        let bindings = Bindings::new().tensor("K_t", turned);
        let bindings = bindings.dense(&checked, "Q", &mut q).unwrap();
        let bindings = bindings.dense(&checked, "V", &mut v).unwrap();
        run(&checked, &bindings.dense(&checked, "O", &mut o).unwrap()).unwrap()
    };
    assert_eq!((report.total_cycles, report.tasks), (1680, 4));
    assert_close(&o, &expected, 1e-5, 1e-6);
}

#[test]
fn a_product_of_many_tiles_takes_275968() {
    let mut k = KernelBuilder::new("gemm_tile");
    let a = k.tensor("a_tile", Direction::In, DType::F16, [16, 16]).unwrap();
    let b = k.tensor("b_tile", Direction::In, DType::F16, [16, 16]).unwrap();
    let c = k.tensor("c_tile", Direction::InOut, F32, [16, 16]).unwrap();
    let acc = k.matmul(a, b, None).unwrap();
    let out = k.binary(Binary::Add, c, acc).unwrap();
    k.store(c, out, [0, 0], None).unwrap();
    let body = TreeNode::Task(task(
        0,
        &["b", "tm", "tn", "tk"],
        &[(0, &["b", "tm", "tk"]), (1, &["b", "tn", "tk"]), (2, &["b", "tm", "tn"])],
    ));
    let root = parallel("b", 1, parallel("tm", 4, parallel("tn", 4, each("tk", 4, body))));
    let shape: &[u64] = &[1, 4, 4, 16, 16];
    let tensors = [("A", DType::F16, shape), ("B", DType::F16, shape), ("C", F32, shape)];
    let checked = checked(workload("bgemm", 4, &tensors, vec![k.finish().unwrap()], root));
    let mut random = TestRng(0);
    let halves = |random: &mut TestRng| -> Vec<f16> {
        random.normals(4096).into_iter().map(f16::from_f32).collect()
    };
    let (mut a, mut b, mut c) = (halves(&mut random), halves(&mut random), vec![0f32; 4096]);
    let exact = |x: &[f16]| x.iter().map(|x| x.to_f64()).collect::<Vec<f64>>();
    let expected = product(&exact(&a), &exact(&b), [64, 64, 64]);
    let report = {
        // All three are 64 x 64, seen as tiles; those of B by column first.
        let tiles =
            |memory, strides: [i64; 5]| BoundTensor { memory, first: 0, strides: strides.to_vec() };
        let bindings = Bindings::new()
            .tensor("A", tiles(tensor_of(&mut a), [4096, 1024, 16, 64, 1]))
            .tensor("B", tiles(tensor_of(&mut b), [4096, 16, 1024, 64, 1]))
            .tensor("C", tiles(tensor_of(&mut c), [4096, 1024, 16, 64, 1]));
        run(&checked, &bindings).unwrap()
    };
    assert_eq!((report.total_cycles, report.tasks), (275_968, 64));
    assert_close(&c, &expected, 1e-5, 1e-5);
}

fn softmax_kernels() -> Vec<TileKernel> {
    let tile = [8, 64];
    let mut k = KernelBuilder::new("update_rowmax");
    let x = k.tensor("x_tile", Direction::In, F32, tile).unwrap();
    let m = k.tensor("m_acc", Direction::InOut, F32, [8, 1]).unwrap();
    let most = k.reduce(Reduce::RowMax, x).unwrap();
    let new = k.binary(Binary::Max, m, most).unwrap();
    k.store(m, new, [0, 0], None).unwrap();
    let first = k.finish().unwrap();

    let mut k = KernelBuilder::new("exp_and_accumulate");
    let x = k.tensor("x_tile", Direction::In, F32, tile).unwrap();
    let m = k.tensor("m_tile", Direction::In, F32, [8, 1]).unwrap();
    let y = k.tensor("y_tile", Direction::Out, F32, tile).unwrap();
    let l = k.tensor("l_acc", Direction::InOut, F32, [8, 1]).unwrap();
    let shifted = k.binary(Binary::Sub, x, m).unwrap();
    let exp = k.unary(Unary::Exp, shifted).unwrap();
    let sum = k.reduce(Reduce::RowSum, exp).unwrap();
    let new = k.binary(Binary::Add, l, sum).unwrap();
    k.store(l, new, [0, 0], None).unwrap();
    k.store(y, exp, [0, 0], None).unwrap();
    let second = k.finish().unwrap();

    let mut k = KernelBuilder::new("rescale");
    let y = k.tensor("y_tile", Direction::InOut, F32, tile).unwrap();
    let l = k.tensor("l_tile", Direction::In, F32, [8, 1]).unwrap();
    let scaled = k.binary(Binary::Div, y, l).unwrap();
    k.store(y, scaled, [0, 0], None).unwrap();
    vec![first, second, k.finish().unwrap()]
}

/// Three phases; as the known program has it, or with views that are the tiles.
fn softmax(tensor_shape: &[u64], view: &[&str]) -> Workload {
    let (b, s, v) = ("b", "s", "v");
    let axes = [b, s, v];
    let rows: &[&str] = &[b, s];
    let phase = |kernel, views: &[(usize, &[&str])]| TreeNode::Task(task(kernel, &axes, views));
    let seq = |body| parallel(b, 1, parallel(s, 4, each(v, 4, body)));
    let root = TreeNode::Combine(vec![
        seq(phase(0, &[(0, view), (2, rows)])),
        seq(phase(1, &[(0, view), (2, rows), (1, view), (3, rows)])),
        parallel(b, 1, parallel(s, 4, parallel(v, 4, phase(2, &[(1, view), (3, rows)])))),
    ]);
    let state: &[u64] = &[1, 4, 8, 1];
    let tensors = [
        ("logits", F32, tensor_shape),
        ("probs", F32, tensor_shape),
        ("running_max", F32, state),
        ("running_sum", F32, state),
    ];
    workload("softmax", 4, &tensors, softmax_kernels(), root)
}

fn run_softmax(checked: &Checked, strides: &[i64]) -> (u64, Vec<f32>, Vec<f64>, Vec<f32>) {
    let mut x = TestRng(0).normals(32 * 256);
    let (mut y, mut m, mut l) = (vec![0f32; 32 * 256], vec![f32::NEG_INFINITY; 32], vec![0f32; 32]);
    let expected: Vec<f64> = x
        .chunks(256)
        .flat_map(|row| {
            let exp: Vec<f64> = row.iter().map(|x| f64::from(*x).exp()).collect();
            let sum: f64 = exp.iter().sum();
            exp.into_iter().map(move |e| e / sum)
        })
        .collect();
    let report = {
        let bound = |memory| BoundTensor { memory, first: 0, strides: strides.to_vec() };
        let bindings = Bindings::new()
            .tensor("logits", bound(tensor_of(&mut x)))
            .tensor("probs", bound(tensor_of(&mut y)));
        let bindings = bindings.dense(checked, "running_max", &mut m).unwrap();
        run(checked, &bindings.dense(checked, "running_sum", &mut l).unwrap()).unwrap()
    };
    (report.total_cycles, y, expected, l)
}

#[test]
fn softmax_as_it_is_known_takes_39848() {
    // The views are rows of the wrong dimension: tiles leave them, not the tensor.
    let checked = checked(softmax(&[1, 4, 8, 4, 64], &["b", "s", "v"]));
    assert_eq!(checked.warnings().len(), 4, "{:?}", checked.warnings());
    let (cycles, ..) = run_softmax(&checked, &[8192, 2048, 256, 64, 1]);
    assert_eq!(cycles, 39_848);
}

#[test]
fn a_softmax_whose_views_are_its_tiles_is_a_softmax() {
    let checked = checked(softmax(&[1, 4, 4, 8, 64], &["b", "s", "v"]));
    assert!(checked.warnings().is_empty());
    let (cycles, y, expected, l) = run_softmax(&checked, &[8192, 2048, 64, 256, 1]);
    assert_eq!(cycles, 39_848);
    assert_close(&y, &expected, 1e-5, 1e-8);
    assert!(l.iter().all(|sum| *sum >= 1.0));
}

fn rmsnorm_kernel() -> TileKernel {
    let mut k = KernelBuilder::new("rmsnorm");
    let x = k.tensor("x", Direction::In, F32, [16, 16]).unwrap();
    let out = k.tensor("out", Direction::Out, F32, [16, 16]).unwrap();
    let square = k.binary(Binary::Mul, x, x).unwrap();
    let mean = k.reduce(Reduce::RowMean, square).unwrap();
    let inverse = k.unary(Unary::Rsqrt, mean).unwrap();
    let y = k.binary(Binary::Mul, x, inverse).unwrap();
    k.store(out, y, [0, 0], None).unwrap();
    k.finish().unwrap()
}

#[test]
fn a_norm_of_two_tiles_takes_1072() {
    let root = parallel(
        "b",
        1,
        parallel(
            "s",
            2,
            TreeNode::Task(task(0, &["b", "s"], &[(0, &["b", "s"]), (1, &["b", "s"])])),
        ),
    );
    let shape: &[u64] = &[1, 2, 16, 16];
    let checked = checked(workload(
        "e2e_rmsnorm",
        4,
        &[("X", F32, shape), ("Y", F32, shape)],
        vec![rmsnorm_kernel()],
        root,
    ));
    let (mut x, mut y) = (TestRng(0).normals(512), vec![0f32; 512]);
    let expected: Vec<f64> = x
        .chunks(16)
        .flat_map(|row| {
            let mean = row.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / 16.0;
            row.iter().map(move |x| f64::from(*x) / mean.sqrt())
        })
        .collect();
    let report = {
        let bindings = Bindings::new().dense(&checked, "X", &mut x).unwrap();
        run(&checked, &bindings.dense(&checked, "Y", &mut y).unwrap()).unwrap()
    };
    assert_eq!((report.total_cycles, report.tasks), (1072, 2));
    assert_close(&y, &expected, 1e-6, 1e-6);
}

/// A kernel of one function of pairs.
pub(crate) fn pair_kernel(
    name: &str,
    function: Binary,
    extents: [u64; 2],
    is_square: bool,
) -> TileKernel {
    let mut k = KernelBuilder::new(name);
    let a = k.tensor("a", Direction::In, F32, extents).unwrap();
    let b = if is_square { a } else { k.tensor("b", Direction::In, F32, extents).unwrap() };
    let c = k.tensor("c", Direction::Out, F32, extents).unwrap();
    let z = k.binary(function, a, b).unwrap();
    k.store(c, z, [0, 0], None).unwrap();
    k.finish().unwrap()
}

#[test]
fn sums_of_tensors_take_8192_and_squares_6144() {
    let at: &[&str] = &["bb", "i", "j"];
    let root = parallel(
        "bb",
        2,
        parallel(
            "i",
            2,
            parallel("j", 2, TreeNode::Task(task(0, at, &[(0, at), (1, at), (2, at)]))),
        ),
    );
    let shape: &[u64] = &[2, 2, 2, 32, 32];
    let kernel = pair_kernel("add_tiles", Binary::Add, [32, 32], false);
    let add = checked(workload(
        "add",
        4,
        &[("A", F32, shape), ("B", F32, shape), ("C", F32, shape)],
        vec![kernel],
        root,
    ));
    let mut random = TestRng(0);
    let (mut a, mut b, mut c) = (random.normals(8192), random.normals(8192), vec![0f32; 8192]);
    let expected: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
    let report = {
        let bindings = Bindings::new().dense(&add, "A", &mut a).unwrap();
        let bindings = bindings.dense(&add, "B", &mut b).unwrap();
        run(&add, &bindings.dense(&add, "C", &mut c).unwrap()).unwrap()
    };
    assert_eq!((report.total_cycles, report.tasks, c), (8192, 8, expected));

    let at: &[&str] = &["bb", "t"];
    let root =
        parallel("bb", 2, parallel("t", 4, TreeNode::Task(task(0, at, &[(0, at), (1, at)]))));
    let shape: &[u64] = &[2, 4, 32, 32];
    let kernel = pair_kernel("square_tile", Binary::Mul, [32, 32], true);
    let square =
        checked(workload("square", 4, &[("X", F32, shape), ("Y", F32, shape)], vec![kernel], root));
    let (mut x, mut y) = (random.normals(8192), vec![0f32; 8192]);
    let expected: Vec<f32> = x.iter().map(|x| x * x).collect();
    let report = {
        let bindings = Bindings::new().dense(&square, "X", &mut x).unwrap();
        run(&square, &bindings.dense(&square, "Y", &mut y).unwrap()).unwrap()
    };
    assert_eq!((report.total_cycles, report.tasks, y), (6144, 8, expected));
}

/// A kernel that copies a tile.
pub(crate) fn copy_kernel(name: &str, extents: [u64; 2]) -> TileKernel {
    let mut k = KernelBuilder::new(name);
    let x = k.tensor("src", Direction::In, F32, extents).unwrap();
    let y = k.tensor("dst", Direction::Out, F32, extents).unwrap();
    k.store(y, x, [0, 0], None).unwrap();
    k.finish().unwrap()
}

/// Loads, squares and stores tiles in three processes.
fn square_pipeline(tiles: u64, depth: u64) -> Workload {
    let at: &[&str] = &["t"];
    let call = |kernel, from, to| task(kernel, at, &[(from, at), (to, at)]);
    let process = |name: &str, consumes: &[usize], produces: &[usize], body| Process {
        name: name.to_owned(),
        rank: 0,
        consumes: consumes.to_vec(),
        produces: produces.to_vec(),
        body,
    };
    let consume =
        |channel, body| TreeNode::Consume { channel, var: "t".to_owned(), body: Box::new(body) };
    let root = TreeNode::Pipeline(vec![
        process(
            "loader",
            &[],
            &[0],
            each("t", tiles, TreeNode::Send { channel: 0, task: call(0, 0, 1) }),
        ),
        process(
            "computer",
            &[0],
            &[1],
            consume(0, TreeNode::Send { channel: 1, task: call(1, 1, 2) }),
        ),
        process("storer", &[1], &[], consume(1, TreeNode::Task(call(2, 2, 3)))),
    ]);
    let kernels = vec![
        copy_kernel("load_tile", [64, 64]),
        pair_kernel("square_tile", Binary::Mul, [64, 64], true),
        copy_kernel("store_tile", [64, 64]),
    ];
    let shape: &[u64] = &[tiles, 64, 64];
    let mut workload =
        workload("csp", 4, &["X", "T0", "T1", "Y"].map(|name| (name, F32, shape)), kernels, root);
    workload.channels =
        ["l2c", "c2s"].map(|name| Channel { name: name.to_owned(), depth }).to_vec();
    workload
}

#[test]
fn a_pipeline_of_three_processes_takes_114688() {
    for depth in [1, 2, 0, 8] {
        let checked = checked(square_pipeline(8, depth));
        let mut x = TestRng(0).normals(8 * 4096);
        let (mut t0, mut t1, mut y) =
            (vec![0f32; 8 * 4096], vec![0f32; 8 * 4096], vec![0f32; 8 * 4096]);
        let expected: Vec<f32> = x.iter().map(|x| x * x).collect();
        let report = {
            let bindings = Bindings::new().dense(&checked, "X", &mut x).unwrap();
            let bindings = bindings.dense(&checked, "T0", &mut t0).unwrap();
            let bindings = bindings.dense(&checked, "T1", &mut t1).unwrap();
            run(&checked, &bindings.dense(&checked, "Y", &mut y).unwrap()).unwrap()
        };
        // Every stage takes the same time for each token: the depth does not matter.
        assert_eq!((report.total_cycles, report.tasks), (114_688, 24), "depth {depth}");
        assert_eq!(y, expected);
    }
}
