//! The host side of `task_shapes`: draws the plan, and runs it in order.

use std::boxed::Box;
use std::format;
use std::vec;
use std::vec::Vec;

use pto_abi::GmAddr;
use pto_aicore_kernels::parts::BLOCK_WORDS;
use pto_host::{Device, DeviceBuffer, Error as DeviceError};

use crate::args::Size;
use crate::host::check::{ElementPosition, Verdict};
use crate::host::job::{Check, GraphSize, Prepared, check_room, index};
use crate::host::random::Rng;
use crate::host::{
    Error, Example, ExampleDescription, Inputs, Needs, ParamSpec, Params, Program, Tensor,
    TensorSpec, TestSizes, Together,
};
use crate::task_shapes::reference::{Bounds, Planned, Result as Expected, result};
use crate::task_shapes::stream::{Args, BAD_PLAN};

/// See [`crate::task_shapes`].
pub struct TaskShapes;

const fn size(name: &'static str, default: u64, max: u64, help: &'static str) -> ParamSpec {
    ParamSpec { name, default, min: 1, max, help }
}

pub(crate) static PARAMS: &[ParamSpec] = &[
    size("tasks", 48, 1 << 12, "tasks of a layer"),
    size("layers", 40, 1 << 20, "layers; three of four are replays of a record"),
    size("rows", 16, 1 << 12, "rows of a matrix; tasks on one row are in order"),
    size("blocks", 12, 1 << 12, "most blocks of a task"),
    size("together", 4, 128, "most blocks that start at once; the device has as many clusters"),
    ParamSpec {
        name: "meet",
        default: 0,
        min: 0,
        max: 1,
        help: "1: parts that start together wait for each other; on devices, and hosting threads",
    },
    ParamSpec::seed("of the tasks"),
];

static OUTPUTS: &[TensorSpec] =
    &[TensorSpec::i32("cells", &["matrices", "rows", "words"], "the cells of both matrices")];

impl Example for TaskShapes {
    fn description(&self) -> ExampleDescription {
        ExampleDescription {
            name: "task_shapes",
            summary: "random tasks of every shape, replayed; cells prove that each part ran once, in order",
            program: Program::Tensors,
            params: PARAMS,
            sizes: TestSizes {
                whole: &[("tasks", "30"), ("layers", "9")],
                little: &[("tasks", "24"), ("layers", "9"), ("rows", "6"), ("together", "2")],
            },
            inputs: &[],
            outputs: OUTPUTS,
        }
    }

    fn needs(&self, params: &Params) -> Needs {
        let meets = params.get("meet") == 1;
        Needs { cores: if meets { Together::Needed } else { Together::NotNeeded }, ..Needs::USUAL }
    }

    fn failure(&self, code: i32) -> Option<&'static str> {
        (code == BAD_PLAN).then_some("the plan has a shape that no task has")
    }

    fn extent(&self, dim: &str, params: &Params) -> Option<u64> {
        match dim {
            "matrices" => Some(2),
            // Cells have two words.
            "words" => Some(2 * BLOCK_WORDS * params.get("blocks")),
            _ => Some(params.get(dim)),
        }
    }

    fn prepare(&self, params: &Params, _: &Inputs, device: &Device) -> Result<Prepared, Error> {
        let [tasks, layers, rows, blocks] = [
            params.extent("tasks")?,
            params.extent("layers")?,
            params.extent("rows")?,
            params.extent("blocks")?,
        ];
        let bounds =
            Bounds { rows: rows.get(), blocks: blocks.get(), together: params.get("together") };
        let cells = rows.get() * blocks.get() * BLOCK_WORDS;
        let size = GraphSize::streamed(tasks.get() * layers.get());
        check_room(device, &[2 * cells, 2 * cells, 8 * tasks.get()], &size)?;
        let seed = params.get("seed");
        let mut random = Rng::new(seed, self.name());
        let plan: Vec<_> = (0..tasks.get()).map(|_| Planned::draw(&mut random, bounds)).collect();
        let words: Vec<u32> = plan.iter().flat_map(Planned::words).collect();
        let matrices = [device.zeroed(index(cells))?, device.zeroed(index(cells))?];
        let table = device.upload(&words)?;
        let [first, second] = [0, 1].map(|at: usize| -> GmAddr { matrices[at].address() });
        let (meet, plan_at) = (params.get("meet"), table.address());
        let args = Args { first, second, plan: plan_at, rows, blocks, tasks, layers, meet, seed };
        let check = Cells { plan, bounds, args, matrices, _table: table, expected: None };
        Prepared::new(self.name(), (args.words().to_vec(), &Args::NAMES), size, Box::new(check))
    }
}

/// The matrices, and what they should hold.
struct Cells {
    plan: Vec<Planned>,
    bounds: Bounds,
    args: Args,
    matrices: [DeviceBuffer<u64>; 2],
    _table: DeviceBuffer<u32>,
    /// Once computed.
    expected: Option<Expected>,
}

impl Check for Cells {
    fn reset(&mut self) -> Result<(), DeviceError> {
        // Every task changes its row, so that a run that does nothing is found.
        self.matrices.iter_mut().try_for_each(|matrix| matrix.write(&vec![0; matrix.len()]))
    }

    fn verify(&mut self) -> Result<Verdict, Error> {
        let Args { layers, seed, meet, .. } = self.args;
        let (plan, bounds) = (&self.plan, self.bounds);
        let compute = || result(plan, bounds, Size::get(layers), seed, meet == 1);
        let expected = self.expected.get_or_insert_with(compute);
        let found = [self.matrices[0].read()?, self.matrices[1].read()?];
        Ok(judge(&expected.matrices, &found, index(bounds.blocks * BLOCK_WORDS)))
    }

    fn outputs(&self) -> Result<Vec<(&'static str, Tensor)>, DeviceError> {
        let mut words = Vec::new();
        for matrix in &self.matrices {
            let bytes = matrix.read()?.into_iter().flat_map(u64::to_le_bytes).collect::<Vec<_>>();
            let halves = bytes.as_chunks::<4>().0;
            words.extend(halves.iter().copied().map(i32::from_le_bytes));
        }
        let shape = vec![2, self.bounds.rows, 2 * BLOCK_WORDS * self.bounds.blocks];
        Ok(vec![("cells", Tensor::i32(shape, words))])
    }
}

/// Every cell must be as it should; rows have `width` cells.
fn judge(expected: &[Vec<u64>; 2], found: &[Vec<u64>; 2], width: usize) -> Verdict {
    let of = |matrices: &[Vec<u64>; 2]| matrices.concat();
    let (expected, found, rows) = (of(expected), of(found), expected[0].len() / width.max(1));
    let mut wrong = expected.len().abs_diff(found.len()) as u64;
    let mut position = None;
    for (at, (expected, found)) in expected.iter().zip(&found).enumerate() {
        if expected == found {
            continue;
        }
        wrong += 1;
        let row = at / width;
        position.get_or_insert_with(|| ElementPosition {
            tensor: "cell",
            index: [row / rows, row % rows, at % width].map(|at| at as u64).to_vec(),
            found: format!("{found:#018x}"),
            expected: format!("{expected:#018x}"),
        });
    }
    Verdict::exact(expected.len() as u64, wrong, position)
}
