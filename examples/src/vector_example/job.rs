//! The host side of `vector_example`.

use std::boxed::Box;
use std::vec;
use std::vec::Vec;

use pto_abi::CoreKind;
use pto_host::Device;

use crate::host::check::{Expected, UNIT_ROUNDOFF};
use crate::host::job::{FloatCheck, GraphSize, Prepared, check_room, index};
use crate::host::random::Rng;
use crate::host::tensor::count;
use crate::host::{
    Error, Example, ExampleDescription, Inputs, Needs, ParamSpec, Params, Program, TensorSpec,
    TestSizes,
};
use crate::vector_example::graph::{Args, EDGES_PER_TILE, TASKS_PER_TILE, WORDS_PER_TILE};

/// See [`crate::vector_example`].
pub struct VectorExample;

static PARAMS: &[ParamSpec] = &[
    ParamSpec { name: "rows", default: 128, min: 1, max: 1 << 20, help: "rows of each tensor" },
    ParamSpec { name: "cols", default: 128, min: 1, max: 1 << 20, help: "columns of each tensor" },
    ParamSpec { name: "tile_rows", default: 4, min: 1, max: 1 << 20, help: "rows of a tile" },
    ParamSpec {
        name: "seed",
        default: 0,
        min: 0,
        max: u64::MAX,
        help: "of the inputs; 0: a is 2 and b is 3 everywhere",
    },
];

static INPUTS: &[TensorSpec] = &[
    TensorSpec::f32("a", &["rows", "cols"], "a summand"),
    TensorSpec::f32("b", &["rows", "cols"], "a summand"),
];

static OUTPUTS: &[TensorSpec] =
    &[TensorSpec::f32("f", &["rows", "cols"], "(a + b + 1) * (a + b + 2)")];

impl Example for VectorExample {
    fn description(&self) -> ExampleDescription {
        ExampleDescription {
            name: "vector_example",
            summary: "f = (a + b + 1) * (a + b + 2), elementwise, in tiles; vector cores only",
            program: Program::Graph,
            params: PARAMS,
            sizes: TestSizes { whole: &[], little: &[("rows", "20"), ("cols", "70")] },
            inputs: INPUTS,
            outputs: OUTPUTS,
        }
    }

    fn needs(&self, _: &Params) -> Needs {
        Needs { kinds: &[CoreKind::AIV], ..Needs::USUAL }
    }

    fn prepare(
        &self,
        params: &Params,
        inputs: &Inputs,
        device: &Device,
    ) -> Result<Prepared, Error> {
        let shape = ["rows", "cols"].map(|name| params.get(name));
        let elements = count(&shape);
        let size = graph_size(shape[0], params.get("tile_rows"));
        check_room(device, &[elements; 6], &size)?;

        let a = input(params, inputs, "a", 2.0, elements);
        let b = input(params, inputs, "b", 3.0, elements);
        let (a_gm, b_gm) = (device.upload(&a)?, device.upload(&b)?);
        let [sum, plus_1, plus_2, out] = [(); 4].map(|()| device.zeroed(index(elements)));
        let (sum, plus_1, plus_2, out) = (sum?, plus_1?, plus_2?, out?);
        let tile = params.non_zero("tile_rows")?.saturating_mul(params.non_zero("cols")?);
        let args = Args {
            a: a_gm.address(),
            b: b_gm.address(),
            sum: sum.address(),
            plus_1: plus_1.address(),
            plus_2: plus_2.address(),
            out: out.address(),
            elements,
            tile,
        };
        let check = FloatCheck {
            name: "f",
            shape: shape.to_vec(),
            out,
            reference: Box::new(move || reference(&a, &b)),
            expected: Vec::new(),
            _floats: vec![a_gm, b_gm, sum, plus_1, plus_2],
            _tables: Vec::new(),
        };
        Prepared::new(self.name(), (args.words().to_vec(), &Args::NAMES), size, Box::new(check))
    }
}

/// The size of the graph.
fn graph_size(rows: u64, tile_rows: u64) -> GraphSize {
    let tiles = rows.div_ceil(tile_rows);
    GraphSize {
        tasks: tiles * TASKS_PER_TILE,
        arg_words: tiles * WORDS_PER_TILE,
        edges: tiles * EDGES_PER_TILE,
    }
}

fn input(params: &Params, inputs: &Inputs, name: &str, fill: f32, elements: u64) -> Vec<f32> {
    match (inputs.f32(name), params.get("seed")) {
        (Some(values), _) => values.to_vec(),
        (None, 0) => vec![fill; index(elements)],
        (None, seed) => Rng::new(seed, name).units(index(elements)),
    }
}

/// Four roundings, each relative to a sum of magnitudes: the error of the product is at most 5 units.
fn reference(a: &[f32], b: &[f32]) -> Vec<Expected> {
    let element = |(a, b): (&f32, &f32)| {
        let (a, b) = (f64::from(*a), f64::from(*b));
        let magnitude = (a.abs() + b.abs() + 1.0) * (a.abs() + b.abs() + 2.0);
        Expected {
            value: (a + b + 1.0) * (a + b + 2.0),
            tolerance: 6.0 * UNIT_ROUNDOFF * magnitude,
        }
    };
    a.iter().zip(b).map(element).collect()
}

#[cfg(test)]
mod tests {
    use super::{graph_size, reference};
    use crate::dry_run::DryRun;
    use crate::vector_example::graph::{Args, build};
    use core::num::NonZeroU64;
    use pto_abi::{CoreKind, Fault, GmAddr};

    fn args(rows: u64, cols: u64, tile_rows: u64) -> Args {
        let at = |index: u64| GmAddr(0x10_0000 * (index + 1));
        Args {
            a: at(0),
            b: at(1),
            sum: at(2),
            plus_1: at(3),
            plus_2: at(4),
            out: at(5),
            elements: rows * cols,
            tile: NonZeroU64::new(tile_rows * cols).unwrap(),
        }
    }

    #[test]
    fn the_size_of_the_graph_is_exact() {
        for (rows, cols, tile_rows) in [(128, 128, 4), (1, 1, 1), (7, 3, 2), (5, 9, 100)] {
            let graph = DryRun::new(&args(rows, cols, tile_rows).words()).of(build).unwrap();
            assert_eq!(graph.size(), graph_size(rows, tile_rows), "{rows} {cols} {tile_rows}");
            assert_eq!(graph.tasks_of(CoreKind::AIC), 0);
        }
    }

    #[test]
    fn the_last_tile_takes_what_is_left() {
        let graph = DryRun::new(&args(7, 3, 2).words()).of(build).unwrap();
        let elements: u64 = graph.tasks.iter().map(|task| task.args[3]).sum();
        assert_eq!(elements, 4 * 21);
        assert_eq!(graph.tasks.last().unwrap().args[3], 3);
    }

    #[test]
    fn words_that_no_tensor_has_are_refused() {
        let mut words = args(4, 4, 1).words();
        words[6] = u64::MAX / 2;
        let error = DryRun::new(&words).of(build).err().unwrap();
        assert_eq!(error, Fault::BUILD_ORCH_ARGS.into());
    }

    #[test]
    fn two_and_three_make_forty_two() {
        assert_eq!(reference(&[2.0], &[3.0])[0].value, 42.0);
    }
}
