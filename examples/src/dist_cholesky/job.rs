//! The host side of `dist_cholesky`. A rank has its tiles alone; all of them have the matrix, from which they cut them, and the reference.

use std::boxed::Box;
use std::vec;
use std::vec::Vec;

use pto_host::{Device, DeviceBuffer, Error as DeviceError};

use crate::cholesky::job::drawn;
use crate::cholesky::reference::{expected, factor};
use crate::dist_cholesky::grid::Grid;
use crate::dist_cholesky::stream::{Args, tasks};
use crate::host::check::{Expected, UNWRITTEN, Verdict, compare};
use crate::host::job::{Check, GraphSize, Prepared, check_room, index};
use crate::host::{
    Error, Example, ExampleDescription, GroupRank, Inputs, ParamSpec, Params, Program, Tensor,
    TensorSpec, TestSizes, for_groups,
};
use crate::streaming::LINE;

/// See [`crate::dist_cholesky`].
pub struct DistCholesky;

static PARAMS: &[ParamSpec] = &[
    ParamSpec { name: "n", default: 512, min: 1, max: 16_384, help: "rows of the matrix" },
    ParamSpec { name: "tile", default: 32, min: 1, max: 16_384, help: "rows of a tile" },
    ParamSpec::seed("of the random matrix"),
];

static INPUTS: &[TensorSpec] = &[TensorSpec::f32(
    "a",
    &["n", "n"],
    "a symmetric positive definite matrix, of which the lower triangle is read",
)];

static OUTPUTS: &[TensorSpec] = &[TensorSpec::f32(
    "l",
    &["n", "n"],
    "its factor: lower triangular, l @ l^T = a; of a device of a group its tiles, and zeros elsewhere",
)];

impl Example for DistCholesky {
    fn description(&self) -> ExampleDescription {
        ExampleDescription {
            name: "dist_cholesky",
            summary: "the factor of a positive definite matrix on a grid of devices; both kinds of cores",
            program: Program::Tensors,
            params: PARAMS,
            sizes: TestSizes {
                whole: &[("n", "70"), ("tile", "12")],
                little: &[("n", "30"), ("tile", "12")],
            },
            inputs: INPUTS,
            outputs: OUTPUTS,
        }
    }

    for_groups!();

    fn prepare_member(
        &self,
        member: GroupRank,
        params: &Params,
        inputs: &Inputs,
        device: &Device,
    ) -> Result<Prepared, Error> {
        let (n, tile) = (params.extent("n")?, params.extent("tile")?);
        let count = n.get().div_ceil(tile.get());
        let grid = Grid::new(member.rank, member.size, count);
        let size = GraphSize::streamed(tasks(&grid, count));
        let room = tile.get() * tile.get();
        let elements = [grid.places() * room, count * LINE, count * room];
        check_room(device, &elements, &size)?;
        let a = match inputs.f32("a") {
            Some(values) => values.to_vec(),
            None => drawn(n, params.get("seed")),
        };
        let [tiles, status, arrived] = elements.map(index);
        let (tiles, arrived) = (device.zeroed::<f32>(tiles)?, device.zeroed::<f32>(arrived)?);
        let status = device.zeroed::<i32>(status)?;
        let args = Args {
            tiles: tiles.address(),
            status: status.address(),
            arrived: arrived.address(),
            n,
            tile,
        };
        let words = args.words().to_vec();
        let cut = Cut { grid, n: index(n.get()), tile: index(tile.get()) };
        let check = TilesCheck { a, cut, tiles, status, arrived, expected: Vec::new() };
        Prepared::new(self.name(), (words, &Args::NAMES), size, Box::new(check))
    }
}

/// How the matrix is cut.
struct Cut {
    grid: Grid,
    n: usize,
    tile: usize,
}

impl Cut {
    /// Every element of this rank's tiles: where it is in the matrix, and where among the tiles.
    fn elements(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        let count = self.n.div_ceil(self.tile);
        let tiles = (0..count).flat_map(move |row| (0..=row).map(move |col| (row, col)));
        let own = tiles.filter(|(row, col)| self.grid.has(*row as u64, *col as u64));
        own.flat_map(move |(row, col)| {
            let base = index(self.grid.tile_index(row as u64, col as u64)) * self.tile * self.tile;
            let cols = self.tile.min(self.n - col * self.tile);
            let rows = self.tile.min(self.n - row * self.tile);
            (0..rows * cols).map(move |at| {
                (row * self.tile + at / cols, col * self.tile + at % cols, base + at)
            })
        })
    }
}

/// The tiles, which are overwritten, and what they should be.
struct TilesCheck {
    a: Vec<f32>,
    cut: Cut,
    tiles: DeviceBuffer<f32>,
    status: DeviceBuffer<i32>,
    arrived: DeviceBuffer<f32>,
    /// Of the whole factor, once computed.
    expected: Vec<Expected>,
}

impl TilesCheck {
    /// The factor as far as this rank has it, with zeros elsewhere.
    fn found(&self) -> Result<Vec<f32>, DeviceError> {
        let (tiles, n) = (self.tiles.read()?, self.cut.n);
        let mut found = vec![0.0; n * n];
        for (i, j, at) in self.cut.elements().filter(|(i, j, _)| j <= i) {
            found[i * n + j] = tiles[at];
        }
        Ok(found)
    }

    /// The first row without a pivot, from 0, as this rank's kernels report it.
    fn failed_row(&self) -> Result<Option<u64>, DeviceError> {
        let status = self.status.read()?;
        let rows = status.into_iter().step_by(index(LINE));
        Ok(rows.filter_map(|row| u64::try_from(row).ok()?.checked_sub(1)).min())
    }
}

impl Check for TilesCheck {
    fn reset(&mut self) -> Result<(), DeviceError> {
        self.status.write(&vec![-1; self.status.len()])?;
        self.arrived.write(&vec![UNWRITTEN; self.arrived.len()])?;
        let mut tiles = vec![UNWRITTEN; self.tiles.len()];
        for (i, j, at) in self.cut.elements() {
            tiles[at] = self.a[i * self.cut.n + j];
        }
        self.tiles.write(&tiles)
    }

    fn verify(&mut self) -> Result<Verdict, Error> {
        if let Some(row) = self.failed_row()? {
            return Err(Error::NotDefinite { row });
        }
        let n = self.cut.n;
        if self.expected.is_empty() {
            let l = factor(&self.a, n).map_err(|row| Error::NotDefinite { row: row as u64 })?;
            let mut whole = expected(&l, n);
            let mut is_own = vec![false; n * n];
            self.cut.elements().for_each(|(i, j, _)| is_own[i * n + j] = j <= i);
            whole.iter_mut().zip(is_own).filter(|(_, own)| !own).for_each(|(other, _)| {
                *other = Expected::default();
            });
            self.expected = whole;
        }
        let verdict = compare("l", &[n as u64; 2], &self.found()?, &self.expected);
        let checked = self.cut.elements().filter(|(i, j, _)| j <= i).count() as u64;
        Ok(Verdict { checked, ..verdict })
    }

    fn outputs(&self) -> Result<Vec<(&'static str, Tensor)>, DeviceError> {
        Ok(vec![("l", Tensor::f32(vec![self.cut.n as u64; 2], self.found()?))])
    }
}
