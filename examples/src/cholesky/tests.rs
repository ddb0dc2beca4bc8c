//! Tests of `cholesky`: the program on a simulated device, and its reference.

use crate::args::Size;
use crate::cholesky::graph::{Args, build};
use crate::cholesky::job::{Cholesky, PARAMS, chained, drawn, graph_size, room};
use crate::cholesky::reference::{expected, factor, product};
use crate::dry_run::{DryRun, Submitted, SubmittedTask};
use crate::host::check::compare;
use crate::host::{Error, Inputs, Params, Tensor};
use crate::testing::{POOL, attempt_in, run_with, with_kernels_of};
use pto_abi::{GmAddr, RuntimeVariant};
use pto_aicore_kernels::func;
use pto_host::Hosting;
use std::collections::HashMap;
use std::format;
use std::string::ToString;
use std::vec;
use std::vec::Vec;

fn params(n: &str, tile: &str) -> Params {
    let mut params = Params::defaults(PARAMS);
    params.set("n", n).unwrap();
    params.set("tile", tile).unwrap();
    params
}

/// The graph, and the program with tensors.
const PROGRAMS: [RuntimeVariant; 2] =
    [RuntimeVariant::AICPU_BUILD_GRAPH, RuntimeVariant::TENSORMAP_AND_RINGBUFFER];

/// Runs it, and asks for the factor and for all tasks. `part`: columns of a part.
fn factors(of: (Hosting, RuntimeVariant), (n, tile): (u64, u64), part: u64) {
    let context = format!("{n} by {tile}, {of:?}");
    let params = params(&n.to_string(), &tile.to_string());
    let (report, mut prepared, device) =
        attempt_in(of, &Cholesky, &params, &Inputs::default()).unwrap();
    assert_eq!(chained(&device, Size::new(tile).unwrap()).get(), part, "{context}");
    assert_eq!(report.kernels, graph_size(n.div_ceil(tile), part).tasks, "{context}");
    assert!(prepared.verify().unwrap().passed(), "{context}");
}

#[test]
fn sizes_that_tiles_divide_and_that_they_do_not() {
    for size in [(1, 1), (1, 9), (32, 8), (37, 8), (50, 49), (9, 1), (37, 1)] {
        for program in PROGRAMS {
            factors((POOL, program), size, 16);
        }
    }
}

/// Long products have tasks of their own, so that no core waits during a chain; the factor and the number of tasks are those of chains.
#[test]
fn chains_are_as_long_as_their_products_allow() {
    for (ns, part) in [(0, 16), (1_000, 16), (5_000, 5), (10_000, 2), (20_000, 1), (50_000, 1)] {
        for program in PROGRAMS {
            factors((with_kernels_of(ns), program), (100, 8), part);
        }
    }
}

/// A column has more rows than a stage remembers, or there are more rows and parts than the program remembers.
#[test]
fn more_than_is_remembered() {
    factors((POOL, RuntimeVariant::AICPU_BUILD_GRAPH), (70, 1), 16);
    factors((with_kernels_of(50_000), RuntimeVariant::AICPU_BUILD_GRAPH), (40, 1), 1);
}

const MATRIX: GmAddr = GmAddr(0x1000_0000);

/// The graph of a matrix of so many rows.
fn graph(n: u64, tile: u64, part: u64) -> Submitted {
    let [n, tile, chained] = [n, tile, part].map(|size| Size::new(size).unwrap());
    let args = Args { matrix: MATRIX, status: GmAddr(0x2000_0000), n, tile, chained };
    DryRun::new(&args.words()).of(build).unwrap()
}

/// The last row of tiles is narrower than those whose templates there are.
#[test]
fn a_kernel_has_the_rows_of_its_tile() {
    for (n, tile) in [(37, 8), (41, 8)] {
        for task in graph(n, tile, 16).tasks {
            let (changed, reads) = accesses(&task);
            let row = (changed - MATRIX.0) / 4 / n;
            // After the tensors; of a factor there are two, and one is no tile.
            let rows = task.args[if reads.is_empty() { 2 } else { reads.len() + 1 }];
            assert_eq!(rows, tile.min(n - row), "{:?} {:?}", task.func_id, task.args);
        }
    }
}

#[test]
fn the_size_of_the_graph_is_exact() {
    for part in [1, 2, 3, 5, 16] {
        for columns in [1, 2, 3, 5, 6, 17, 32] {
            let found = graph(columns, 1, part).size();
            assert_eq!(found, graph_size(columns, part), "{columns} columns, parts of {part}");
        }
    }
    for (columns, part) in [(70, 16), (40, 1)] {
        let found = graph(columns, 1, part).size();
        let (least, room) = (graph_size(columns, part), room(columns, part));
        assert!((least.edges + 1..=room.edges).contains(&found.edges), "{columns} columns");
    }
}

/// A task is after what has written what it reads or writes, and after what has read what it writes.
#[test]
fn every_access_is_behind_those_before() {
    for (columns, part) in [(1, 1), (9, 1), (9, 2), (9, 4), (9, 16), (20, 16), (35, 1)] {
        let graph = graph(columns, 1, part);
        let mut predecessors = Predecessors::default();
        let (mut writers, mut readers) = (HashMap::new(), HashMap::<u64, Vec<usize>>::new());
        for (number, task) in graph.tasks.iter().enumerate() {
            predecessors.add(&task.producers);
            let (changed, reads) = accesses(task);
            let others = reads.iter().chain([&changed]).filter_map(|tile| writers.get(tile));
            let read = readers.remove(&changed).unwrap_or_default();
            for other in others.chain(&read) {
                let context = format!("{columns} columns, parts of {part}");
                assert!(predecessors.has(number, *other), "{context}: {number} after {other}");
            }
            reads.iter().for_each(|tile| readers.entry(*tile).or_default().push(number));
            writers.insert(changed, number);
        }
    }
}

/// The tile that a task changes, and those that it reads.
fn accesses(task: &SubmittedTask) -> (u64, &[u64]) {
    let reads = match task.func_id {
        func::CHOLESKY_POTRF => 0,
        func::CHOLESKY_GEMM => 2,
        _ => 1,
    };
    (task.args[reads], &task.args[..reads])
}

/// For each task, which ones it waits for, and these for, and so on.
#[derive(Default)]
struct Predecessors(Vec<Vec<u64>>);

impl Predecessors {
    fn add(&mut self, producers: &[usize]) {
        let mut all = vec![0; self.0.len() / 64 + 1];
        for producer in producers {
            all.iter_mut().zip(&self.0[*producer]).for_each(|(all, more)| *all |= more);
            all[producer / 64] |= 1 << (producer % 64);
        }
        self.0.push(all);
    }

    fn has(&self, task: usize, producer: usize) -> bool {
        self.0[task].get(producer / 64).is_some_and(|word| word >> (producer % 64) & 1 == 1)
    }
}

#[test]
fn what_is_not_definite_is_an_error_with_its_row() {
    for (row, tile) in [(0, "4"), (13, "4"), (22, "23")] {
        let mut a = drawn(Size::new(23).unwrap(), 5);
        a[row * 23 + row] = -1.0;
        let mut inputs = Inputs::default();
        inputs.insert("a", Tensor::f32(vec![23, 23], a));
        let (_, verdict) = run_with(&Cholesky, &params("23", tile), &inputs);
        let error = verdict.unwrap_err();
        assert!(
            matches!(error, Error::NotDefinite { row: found } if found == row as u64),
            "{error}"
        );
        assert!(error.to_string().contains("not positive definite"), "{error}");
    }
}

#[test]
fn the_reference_by_hand() {
    // [2 0 0; 1 3 0; -1 2 1].
    let a = [4.0, 2.0, -2.0, 2.0, 10.0, 5.0, -2.0, 5.0, 6.0];
    let l = factor(&a, 3).unwrap();
    assert_eq!(l, [2.0, 0.0, 0.0, 1.0, 3.0, 0.0, -1.0, 2.0, 1.0]);
    assert!(expected(&l, 3).iter().all(|element| element.tolerance < 1e-4));
    let found: Vec<f32> = l.iter().map(|element| nearest(*element)).collect();
    let back = product(&found, 3);
    assert!((0..9).filter(|at| at % 3 <= at / 3).all(|at| back[at].value == f64::from(a[at])));
    assert_eq!(factor(&[1.0, 2.0, 2.0, 1.0], 2), Err(1));
}

/// A tile that misses one of its updates is far outside of what roundings can do.
#[test]
fn a_lost_update_is_seen() {
    let n = 96;
    let a = drawn(Size::new(96).unwrap(), 1);
    let l = factor(&a, n).unwrap();
    let mut found: Vec<f32> = l.iter().map(|element| nearest(*element)).collect();
    let verdict = |found: &[f32]| compare("l", &[96, 96], found, &expected(&l, n));
    assert!(verdict(&found).passed());
    // Row 80 without the product of columns 0 to 15, in column 64.
    let lost: f64 = (0..16).map(|k| l[80 * n + k] * l[64 * n + k]).sum();
    found[80 * n + 64] += nearest(lost / l[64 * n + 64]);
    assert!(!verdict(&found).passed(), "lost {lost}");
}

#[expect(clippy::cast_possible_truncation, reason = "rounds to the nearest f32")]
fn nearest(value: f64) -> f32 {
    value as f32
}
