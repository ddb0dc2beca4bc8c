//! The graphs of the benchmark, by name: one generator each, which everything that is measured builds from.
//!
//! Ten families of programs, and the dependency patterns of Task Bench (Slaughter and others, SC 2020), whose
//! names begin with `tb_`: rows of 64 points, each of which depends on points of the row before.

mod layers;
mod plain;
mod task_bench;
mod width;

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use crate::csr::Csr;

pub use width::WIDTH;

/// A family of graphs, one for each number of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Family(usize);

type Generator = fn(u32) -> Csr;

/// Name, what it is, the generator.
const TABLE: &[(&str, &str, Generator)] = &[
    ("chain", "each task waits for the one before", plain::chain),
    ("independent", "no task waits", plain::independent),
    (
        "fork_join",
        "one task, 64 that wait for it, one that waits for those, and so on",
        plain::fork_join,
    ),
    (
        "wavefront",
        "a square grid: each task waits for its left and its upper neighbour",
        plain::wavefront,
    ),
    ("stencil", "rows of 64: each task waits for three neighbours of the row before", |tasks| {
        task_bench::stencil_1d(WIDTH, tasks)
    }),
    ("fft", "butterflies: each task waits for two of the row before", plain::fft),
    ("tree", "each task releases two others", plain::tree),
    ("random", "each task waits for 4 of the last 1,000", plain::random),
    ("cholesky", "the factorisation of a matrix in square blocks", layers::cholesky),
    ("transformer", "layers of attention heads and feed-forward blocks", layers::transformer),
    ("tb_trivial", "rows without dependencies", task_bench::trivial),
    ("tb_no_comm", "64 chains", task_bench::no_comm),
    ("tb_stencil_1d", "three neighbours, ends cut off", |tasks| {
        task_bench::stencil_1d(WIDTH, tasks)
    }),
    ("tb_stencil_1d_periodic", "three neighbours, ends wrapped", task_bench::stencil_1d_periodic),
    ("tb_dom", "a sweep across the grid: point and left neighbour", task_bench::dom),
    (
        "tb_tree",
        "a row twice as wide as the one before, then the point of half the number",
        task_bench::tree,
    ),
    ("tb_fft", "the point, and both at the distance 2^row", |tasks| task_bench::fft(WIDTH, tasks)),
    ("tb_nearest", "five neighbours", |tasks| task_bench::nearest(WIDTH, tasks)),
    ("tb_spread", "five points, spread over the row", task_bench::spread),
    ("tb_random_nearest", "the point, and a quarter of its five neighbours", |tasks| {
        task_bench::random_nearest(WIDTH, tasks)
    }),
    ("tb_all_to_all", "the whole row before", task_bench::all_to_all),
];

/// How many families are programs; the others are Task Bench's.
const PROGRAMS: usize = 10;

impl Family {
    /// The ten families of programs.
    pub fn programs() -> impl Iterator<Item = Self> {
        (0..PROGRAMS).map(Self)
    }

    /// The patterns of Task Bench.
    pub fn task_bench() -> impl Iterator<Item = Self> {
        (PROGRAMS..TABLE.len()).map(Self)
    }

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..TABLE.len()).map(Self)
    }

    /// The family of this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        TABLE.iter().position(|(known, ..)| *known == name).map(Self)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        TABLE[self.0].0
    }

    /// What it is, in one line.
    #[must_use]
    pub fn summary(self) -> &'static str {
        TABLE[self.0].1
    }

    /// The graph with about `tasks` tasks: whole rows, stages or layers, at least one.
    #[must_use]
    pub fn graph(self, tasks: u32) -> Csr {
        TABLE[self.0].2(tasks.max(1))
    }
}

/// A pattern of Task Bench with rows of `width` points and about `tasks` tasks; `None` if its rows are of one width only.
#[must_use]
pub fn pattern(name: &str, width: NonZeroU32, tasks: u32) -> Option<Csr> {
    let generate = match name {
        "tb_stencil_1d" => task_bench::stencil_1d,
        "tb_fft" => task_bench::fft,
        "tb_nearest" => task_bench::nearest,
        "tb_random_nearest" => task_bench::random_nearest,
        _ => return None,
    };
    // The butterflies of `tb_fft` need two points.
    Some(generate(width.get().max(2), tasks))
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Family {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let names: Vec<_> = Self::all().map(Self::name).collect();
        Self::by_name(name).ok_or_else(|| {
            format!("there is no graph {name:?}; choose one of {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests;
