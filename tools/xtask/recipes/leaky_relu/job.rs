//! The host side of `leaky_relu`.

use std::boxed::Box;
use std::vec;
use std::vec::Vec;

use pto_abi::CoreKind;
use pto_host::Device;

use crate::host::check::Expected;
use crate::host::job::{FloatCheck, GraphSize, Prepared, check_room, index};
use crate::host::random::Rng;
use crate::host::{
    Error, Example, ExampleDescription, Inputs, Needs, ParamSpec, Params, Program, TensorSpec,
    TestSizes,
};
use crate::leaky_relu::graph::{Args, SLOPE};

/// See [`crate::leaky_relu`].
pub struct LeakyRelu;

static PARAMS: &[ParamSpec] = &[
    ParamSpec { name: "n", default: 4096, min: 1, max: 1 << 20, help: "elements of each tensor" },
    ParamSpec { name: "tile", default: 128, min: 1, max: 1 << 20, help: "elements of a tile" },
    ParamSpec::seed("of the random input"),
];

static INPUTS: &[TensorSpec] = &[TensorSpec::f32("x", &["n"], "the input; random without a file")];

static OUTPUTS: &[TensorSpec] =
    &[TensorSpec::f32("y", &["n"], "x where it is not negative, x / 16 elsewhere")];

impl Example for LeakyRelu {
    fn description(&self) -> ExampleDescription {
        ExampleDescription {
            name: "leaky_relu",
            summary: "y = x where x is not negative, x / 16 elsewhere, in tiles; vector cores only",
            program: Program::Graph,
            params: PARAMS,
            sizes: TestSizes { whole: &[], little: &[("n", "700"), ("tile", "64")] },
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
        let elements = params.get("n");
        let tasks = elements.div_ceil(params.get("tile"));
        let size = GraphSize { tasks, arg_words: 4 * tasks, edges: 0 };
        check_room(device, &[elements; 2], &size)?;

        let random = || Rng::new(params.get("seed"), "x").units(index(elements));
        let x = inputs.f32("x").map_or_else(random, <[f32]>::to_vec);
        let (x_gm, y) = (device.upload(&x)?, device.zeroed(index(elements))?);
        let tile = params.non_zero("tile")?;
        let args = Args { x: x_gm.address(), y: y.address(), elements, tile };
        let check = FloatCheck {
            name: "y",
            shape: vec![elements],
            out: y,
            reference: Box::new(move || x.iter().map(reference).collect()),
            expected: Vec::new(),
            _floats: vec![x_gm],
            _tables: Vec::new(),
        };
        Prepared::new(self.name(), (args.words().to_vec(), &Args::NAMES), size, Box::new(check))
    }
}

/// A sixteenth is exact.
fn reference(x: &f32) -> Expected {
    let x = f64::from(*x);
    let value = if x < 0.0 { x * f64::from(SLOPE) } else { x };
    Expected { value, tolerance: 0.0 }
}
