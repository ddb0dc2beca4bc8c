//! The host side of `matmul`.

use std::boxed::Box;
use std::vec;
use std::vec::Vec;

use core::num::NonZeroU64;
use pto_host::Device;

use crate::args::Size;
use crate::host::check::{Expected, UNIT_ROUNDOFF};
use crate::host::job::{FloatCheck, GraphSize, Prepared, check_room, index};
use crate::host::random::Rng;
use crate::host::tensor::count;
use crate::host::{
    Error, Example, ExampleDescription, Inputs, ParamSpec, Params, Program, TensorSpec, TestSizes,
    parallel,
};
use crate::matmul::graph::{Args, WORDS_PER_ADD, WORDS_PER_CHAIN, WORDS_PER_PRODUCT};

/// See [`crate::matmul`].
pub struct Matmul;

static PARAMS: &[ParamSpec] = &[
    ParamSpec::extent("m", 512, "rows of a and c"),
    ParamSpec::extent("n", 512, "columns of b and c"),
    ParamSpec::extent("k", 512, "columns of a, rows of b"),
    ParamSpec::extent("tile_m", 64, "rows of a tile"),
    ParamSpec::extent("tile_n", 64, "columns of a tile"),
    ParamSpec::extent("tile_k", 64, "depth of one product"),
    ParamSpec::seed("of the random inputs"),
];

static INPUTS: &[TensorSpec] = &[
    TensorSpec::f32("a", &["m", "k"], "left factor"),
    TensorSpec::f32("b", &["k", "n"], "right factor"),
    TensorSpec::f32("d", &["m", "n"], "summand"),
];

static OUTPUTS: &[TensorSpec] = &[TensorSpec::f32("c", &["m", "n"], "a @ b + d")];

impl Example for Matmul {
    fn description(&self) -> ExampleDescription {
        ExampleDescription {
            name: "matmul",
            summary: "c = a @ b + d, tiled; products on cube cores, the sum on vector cores",
            program: Program::Graph,
            params: PARAMS,
            sizes: TestSizes {
                whole: &[("m", "130"), ("n", "70"), ("k", "200")],
                little: &[("m", "70"), ("n", "33"), ("k", "90")],
            },
            inputs: INPUTS,
            outputs: OUTPUTS,
        }
    }

    fn prepare(
        &self,
        params: &Params,
        inputs: &Inputs,
        device: &Device,
    ) -> Result<Prepared, Error> {
        let sizes = Extents::new(params)?;
        let [a_count, b_count, c_count] = sizes.counts();
        let size = sizes.room();
        check_room(device, &[a_count, b_count, c_count, c_count, c_count], &size)?;

        let given = |name: &str, count: u64| match inputs.f32(name) {
            Some(values) => values.to_vec(),
            None => Rng::new(params.get("seed"), name).units(index(count)),
        };
        let (a, b, d) = (given("a", a_count), given("b", b_count), given("d", c_count));
        let (a_gm, b_gm, d_gm) = (device.upload(&a)?, device.upload(&b)?, device.upload(&d)?);
        let (ab, c) = (device.zeroed(index(c_count))?, device.zeroed(index(c_count))?);
        let args = Args {
            a: a_gm.address(),
            b: b_gm.address(),
            d: d_gm.address(),
            ab: ab.address(),
            c: c.address(),
            m: sizes.m,
            n: sizes.n,
            k: sizes.k,
            tile_m: sizes.tile[0],
            tile_n: sizes.tile[1],
            tile_k: sizes.tile[2],
        };
        let columns = index(sizes.n.get());
        let check = FloatCheck {
            name: "c",
            shape: vec![sizes.m.get(), sizes.n.get()],
            out: c,
            reference: Box::new(move || reference(&a, &b, &d, columns)),
            expected: Vec::new(),
            _floats: vec![a_gm, b_gm, d_gm, ab],
            _tables: Vec::new(),
        };
        Prepared::new(self.name(), (args.words().to_vec(), &Args::NAMES), size, Box::new(check))
    }
}

/// The parameters, checked.
struct Extents {
    m: Size,
    n: Size,
    k: Size,
    tile: [NonZeroU64; 3],
}

impl Extents {
    fn new(params: &Params) -> Result<Self, Error> {
        let extent = |name| params.extent(name);
        let tile = |name| params.non_zero(name);
        Ok(Self {
            m: extent("m")?,
            n: extent("n")?,
            k: extent("k")?,
            tile: [tile("tile_m")?, tile("tile_n")?, tile("tile_k")?],
        })
    }

    /// Elements of a, b and c.
    fn counts(&self) -> [u64; 3] {
        let [m, n, k] = [self.m, self.n, self.k].map(Size::get);
        [count(&[m, k]), count(&[k, n]), count(&[m, n])]
    }

    /// Room for the graph, whether its builder has chains or not: one of few products takes more words than its tasks.
    fn room(&self) -> GraphSize {
        let [tile_m, tile_n, _] = self.tile.map(NonZeroU64::get);
        let strips = self.m.get().div_ceil(tile_m);
        let chains = strips * self.n.get().div_ceil(tile_n) * WORDS_PER_CHAIN;
        let size = self.graph_size();
        let arg_words = size.arg_words.max(chains + strips * WORDS_PER_ADD);
        GraphSize { arg_words, ..size }
    }

    fn graph_size(&self) -> GraphSize {
        let [tile_m, tile_n, tile_k] = self.tile.map(NonZeroU64::get);
        let strips = self.m.get().div_ceil(tile_m);
        let products = strips * self.n.get().div_ceil(tile_n) * self.k.get().div_ceil(tile_k);
        GraphSize {
            tasks: products + strips,
            arg_words: products * WORDS_PER_PRODUCT + strips * WORDS_PER_ADD,
            // Each product has one consumer: the next of its tile, or the sum of its strip.
            edges: products,
        }
    }
}

/// Row by row in `f64`. A sum of `k + 1` products and summands in `f32`, in any order, is off by at most
/// `(k + 1)` roundings of the sum of magnitudes (Higham, Accuracy and Stability, section 3.1).
fn reference(a: &[f32], b: &[f32], d: &[f32], columns: usize) -> Vec<Expected> {
    let mut results = vec![Expected::default(); d.len()];
    let depth = b.len() / columns;
    let roundings = (depth as f64 + 2.0) * UNIT_ROUNDOFF;
    parallel::rows(&mut results, columns, |row, results| {
        for (result, d) in results.iter_mut().zip(&d[row * columns..]) {
            *result = Expected { value: f64::from(*d), tolerance: f64::from(*d).abs() };
        }
        for (a, b) in a[row * depth..][..depth].iter().zip(b.chunks_exact(columns)) {
            for (result, b) in results.iter_mut().zip(b) {
                let product = f64::from(*a) * f64::from(*b);
                result.value += product;
                result.tolerance += product.abs();
            }
        }
        for result in results {
            result.tolerance *= roundings;
        }
    });
    results
}

#[cfg(test)]
mod tests {
    use super::{Extents, reference};
    use crate::args::Size;
    use crate::dry_run::DryRun;
    use crate::matmul::graph::{Args, build};
    use core::num::NonZeroU64;
    use pto_abi::{CoreKind, GmAddr};
    use pto_aicore_kernels::func;

    const BASE: u64 = 0x10_0000;

    fn args(sizes: &Extents) -> Args {
        let at = |index: u64| GmAddr(BASE * (index + 1));
        Args {
            a: at(0),
            b: at(1),
            d: at(2),
            ab: at(3),
            c: at(4),
            m: sizes.m,
            n: sizes.n,
            k: sizes.k,
            tile_m: sizes.tile[0],
            tile_n: sizes.tile[1],
            tile_k: sizes.tile[2],
        }
    }

    fn sizes(extents: [u64; 3], tile: [u64; 3]) -> Extents {
        let [m, n, k] = extents.map(|extent| Size::new(extent).unwrap());
        Extents { m, n, k, tile: tile.map(|tile| NonZeroU64::new(tile).unwrap()) }
    }

    #[test]
    fn the_size_of_the_graph_is_exact() {
        for (extents, tile) in
            [([512; 3], [64; 3]), ([1; 3], [1; 3]), ([5, 7, 3], [2, 3, 2]), ([3; 3], [100; 3])]
        {
            let sizes = sizes(extents, tile);
            let graph = DryRun::new(&args(&sizes).words()).of(build).unwrap();
            assert_eq!(graph.size(), sizes.graph_size(), "{extents:?} {tile:?}");
            let strips = extents[0].div_ceil(tile[0]);
            assert_eq!(graph.tasks_of(CoreKind::AIV) as u64, strips);
        }
    }

    #[test]
    fn every_product_of_the_matrices_is_in_one_task() {
        let sizes = sizes([5, 7, 3], [2, 3, 2]);
        let graph = DryRun::new(&args(&sizes).words()).of(build).unwrap();
        let products = graph.tasks.iter().filter(|task| task.kind == CoreKind::AIC);
        let volume: u64 = products.map(|task| task.args[3..6].iter().product::<u64>()).sum();
        assert_eq!(volume, 5 * 7 * 3);
    }

    #[test]
    fn a_tile_starts_with_matmul_and_goes_on_with_matmul_acc_in_order() {
        let sizes = sizes([2, 2, 6], [2, 2, 2]);
        let graph = DryRun::new(&args(&sizes).words()).of(build).unwrap();
        let ids: std::vec::Vec<_> = graph.tasks.iter().map(|task| task.func_id).collect();
        assert_eq!(ids, [func::ADD, func::MATMUL, func::MATMUL_ACC, func::MATMUL_ACC]);
        assert!(graph.tasks[1].producers.is_empty());
        assert_eq!(graph.tasks[2].producers, [1]);
        assert_eq!(graph.tasks[3].producers, [2]);
        assert_eq!(graph.tasks[0].producers, [3]);
        // The third product: columns 4 and 5 of a, rows 4 and 5 of b.
        assert_eq!(graph.tasks[3].args[..2], [BASE + 4 * 4, 2 * BASE + 4 * 2 * 4]);
    }

    #[test]
    fn the_reference_by_hand() {
        let results = reference(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0], &[0.5, -0.5], 1);
        assert_eq!(results.iter().map(|r| r.value).collect::<std::vec::Vec<_>>(), [17.5, 38.5]);
        assert!(results.iter().all(|r| r.tolerance > 0.0 && r.tolerance < 1e-4));
    }
}
