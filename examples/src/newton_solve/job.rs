//! The host side of `newton_solve`.

use std::boxed::Box;
use std::vec;
use std::vec::Vec;

use pto_host::{Device, DeviceBuffer, Error as DeviceError};

use crate::args::Size;
use crate::host::check::{Expected, UNWRITTEN, Verdict, compare, compare_counts};
use crate::host::error::invalid;
use crate::host::job::{Check, GraphSize, Prepared, check_room, index};
use crate::host::parallel;
use crate::host::random::Rng;
use crate::host::tensor::count;
use crate::host::{
    Error, Example, ExampleDescription, Inputs, ParamSpec, Params, Program, Tensor, TensorSpec,
    TestSizes,
};
use crate::newton_solve::reference::{Solution, System};
use crate::newton_solve::stream::{Args, MAX_WAVE, NOT_CONVERGED};

/// See [`crate::newton_solve`].
pub struct NewtonSolve;

pub(crate) static PARAMS: &[ParamSpec] = &[
    ParamSpec { name: "batch", default: 16, min: 1, max: 1 << 16, help: "systems" },
    ParamSpec { name: "n", default: 128, min: 1, max: 4096, help: "equations of a system" },
    ParamSpec {
        name: "columns",
        default: 8,
        min: 1,
        max: 4096,
        help: "right-hand sides of a system",
    },
    ParamSpec { name: "tile", default: 64, min: 1, max: 4096, help: "rows and columns of a tile" },
    ParamSpec {
        name: "wave",
        default: 16,
        min: 1,
        max: MAX_WAVE,
        help: "systems that are on their way at once",
    },
    ParamSpec {
        name: "digits",
        default: 3,
        min: 1,
        max: 6,
        help: "a system is done when the residual is at most 10^-digits",
    },
    ParamSpec {
        name: "limit",
        default: 40,
        min: 0,
        max: 1000,
        help: "iterations after which a system is given up",
    },
    ParamSpec::seed("of the random systems"),
];

static INPUTS: &[TensorSpec] = &[
    TensorSpec::f32("a", &["batch", "n", "n"], "matrices"),
    TensorSpec::f32("b", &["batch", "n", "columns"], "right-hand sides"),
];

static OUTPUTS: &[TensorSpec] = &[
    TensorSpec::f32("x", &["batch", "n", "columns"], "a^-1 @ b"),
    TensorSpec::i32("iterations", &["batch"], "iterations of each system"),
];

impl Example for NewtonSolve {
    fn description(&self) -> ExampleDescription {
        ExampleDescription {
            name: "newton_solve",
            summary: "linear equations by Newton's iteration; the program reads when to stop; both kinds of cores",
            program: Program::TensorsAndValues,
            params: PARAMS,
            sizes: TestSizes {
                whole: &[
                    ("batch", "5"),
                    ("n", "40"),
                    ("tile", "16"),
                    ("columns", "3"),
                    ("wave", "3"),
                ],
                little: &[
                    ("batch", "3"),
                    ("n", "20"),
                    ("tile", "16"),
                    ("columns", "3"),
                    ("wave", "2"),
                ],
            },
            inputs: INPUTS,
            outputs: OUTPUTS,
        }
    }

    fn failure(&self, code: i32) -> Option<&'static str> {
        (code == NOT_CONVERGED).then_some(
            "a system is not solved within the parameter 'limit': its matrix has no inverse, or is close to one that has \
             none, or roundings do not let the residual become as small as the parameter 'digits' asks for",
        )
    }

    fn prepare(
        &self,
        params: &Params,
        inputs: &Inputs,
        device: &Device,
    ) -> Result<Prepared, Error> {
        let shape = SolveShape::new(params)?;
        let [batch, n, columns] = [shape.batch, shape.n, shape.columns].map(Size::get);
        let (matrices, sides) = (count(&[batch, n, n]), count(&[batch, n, columns]));
        let mut args = shape.args();
        let size = GraphSize::streamed(args.most_tasks());
        check_room(device, &[matrices, sides, sides, batch], &size)?;
        let a = match inputs.f32("a") {
            Some(values) => values.to_vec(),
            None => drawn(&shape, params.get("seed")),
        };
        let b = match inputs.f32("b") {
            Some(values) => values.to_vec(),
            None => Rng::new(params.get("seed"), "b").units(index(sides)),
        };
        let (a_gm, b_gm) = (device.upload(&a)?, device.upload(&b)?);
        let (out, iterations) = (device.zeroed(index(sides))?, device.zeroed(index(batch))?);
        args.a = a_gm.address();
        args.b = b_gm.address();
        args.out = out.address();
        args.iterations = iterations.address();
        let check =
            SystemsCheck { shape, a, b, out, iterations, expected: None, _inputs: [a_gm, b_gm] };
        Prepared::new(self.name(), (args.words().to_vec(), &Args::NAMES), size, Box::new(check))
    }
}

/// The parameters, checked.
#[derive(Clone, Copy)]
struct SolveShape {
    batch: Size,
    n: Size,
    columns: Size,
    tile: Size,
    wave: Size,
    /// What the norm of the residual may be.
    tolerance: f64,
    limit: u64,
}

impl SolveShape {
    fn new(params: &Params) -> Result<Self, Error> {
        let digits = i32::try_from(params.get("digits"));
        let digits = digits.map_err(|_| invalid!("parameter 'digits' is too large"))?;
        Ok(Self {
            batch: params.extent("batch")?,
            n: params.extent("n")?,
            columns: params.extent("columns")?,
            tile: params.extent("tile")?,
            wave: params.extent("wave")?,
            tolerance: 10_f64.powi(-digits),
            limit: params.get("limit"),
        })
    }

    /// The words; addresses are null.
    #[expect(clippy::cast_possible_truncation, reason = "rounds to the nearest f32")]
    fn args(&self) -> Args {
        let Self { batch, n, columns, tile, wave, tolerance, limit } = *self;
        let null = pto_abi::GmAddr::NULL;
        Args {
            a: null,
            b: null,
            out: null,
            iterations: null,
            batch,
            n,
            columns,
            tile,
            wave,
            tolerance: (tolerance * tolerance) as f32,
            limit,
        }
    }
}

/// Matrices `1 + spread * g / sqrt(n)`, from easy ones, with which the iteration ends early, to harder ones.
#[expect(clippy::cast_possible_truncation, reason = "rounds to the nearest f32")]
fn drawn(shape: &SolveShape, seed: u64) -> Vec<f32> {
    let (batch, n) = (index(shape.batch.get()), index(shape.n.get()));
    let mut random = Rng::new(seed, "a");
    let mut a = Vec::with_capacity(batch * n * n);
    for system in 0..batch {
        let spread = 0.1 + 0.9 * system as f64 / batch as f64;
        for at in 0..n * n {
            let unit = if at / n == at % n { 1.0 } else { 0.0 };
            let random = f64::from(random.unit()) * spread / (n as f64).sqrt();
            a.push((unit + random) as f32);
        }
    }
    a
}

/// What should come out, and the bounds of the iterations.
type Solutions = (Vec<Expected>, Vec<(i32, i32)>);

/// The systems, and what should come out.
struct SystemsCheck {
    shape: SolveShape,
    a: Vec<f32>,
    b: Vec<f32>,
    out: DeviceBuffer<f32>,
    iterations: DeviceBuffer<i32>,
    /// Once computed.
    expected: Option<Solutions>,
    _inputs: [DeviceBuffer<f32>; 2],
}

impl SystemsCheck {
    fn out_shape(&self) -> Vec<u64> {
        [self.shape.batch, self.shape.n, self.shape.columns].map(Size::get).to_vec()
    }

    fn solutions(&self) -> Solutions {
        let [batch, n, columns] =
            [self.shape.batch, self.shape.n, self.shape.columns].map(|size| index(size.get()));
        let mut solutions: Vec<Option<Solution>> = vec![None; batch];
        parallel::rows(&mut solutions, 1, |number, solution| {
            let a = &self.a[number * n * n..][..n * n];
            let b = &self.b[number * n * columns..][..n * columns];
            let system = System { a, b, n, columns };
            solution[0] = Solution::of(&system, self.shape.tolerance, self.shape.limit);
        });
        let (mut out, mut iterations) = (Vec::new(), Vec::new());
        for solution in solutions {
            // The device came to an end where it should not have: its values are wrong.
            let none = Expected { value: f64::NAN, tolerance: 0.0 };
            let none = || Solution { out: vec![none; n * columns], iterations: (-1, -1) };
            let solution = solution.unwrap_or_else(none);
            out.extend(solution.out);
            iterations.push(solution.iterations);
        }
        (out, iterations)
    }
}

impl Check for SystemsCheck {
    fn reset(&mut self) -> Result<(), DeviceError> {
        self.iterations.write(&vec![-1; self.iterations.len()])?;
        self.out.write(&vec![UNWRITTEN; self.out.len()])
    }

    fn verify(&mut self) -> Result<Verdict, Error> {
        if self.expected.is_none() {
            self.expected = Some(self.solutions());
        }
        let (out, iterations) =
            self.expected.as_ref().map_or((&[][..], &[][..]), |(out, n)| (out, n));
        let counts = compare_counts("iterations", &self.iterations.read()?, iterations);
        Ok(compare("x", &self.out_shape(), &self.out.read()?, out).and(counts))
    }

    fn outputs(&self) -> Result<Vec<(&'static str, Tensor)>, DeviceError> {
        let batch = vec![self.shape.batch.get()];
        Ok(vec![
            ("x", Tensor::f32(self.out_shape(), self.out.read()?)),
            ("iterations", Tensor::i32(batch, self.iterations.read()?)),
        ])
    }
}
