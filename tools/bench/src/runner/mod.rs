//! What builds and runs a graph, and can be measured: the runtime in its hosting modes, the floor, the peers.

pub mod floor;
pub mod peer;
pub mod pto;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::csr::Csr;

/// Why something was not measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The runtime.
    #[error(transparent)]
    Device(#[from] pto_host::Error),
    /// A file.
    #[error("{what}: {source}")]
    File {
        /// Which.
        what: String,
        /// What the operating system says.
        source: std::io::Error,
    },
    /// A peer.
    #[error("{peer}: {what}")]
    Peer {
        /// Which.
        peer: String,
        /// What it says, or did.
        what: String,
    },
    /// A profile of the benchmark's own cannot be read.
    #[error("the profile of the field's scheduler: {what}")]
    Profile {
        /// Where, and why.
        what: String,
    },
    /// A device that does not run in virtual time was asked for its report.
    #[error("the device does not run in virtual time; open it with `Hosting::Virtual`")]
    NotVirtual,
    /// A runner ran tasks in a wrong order, not at all, or twice.
    #[error(
        "{runner} ran the graph wrongly: its checksum is {found:#018x}, and must be {expected:#018x}"
    )]
    Wrong {
        /// Which.
        runner: String,
        /// Its own.
        found: u64,
        /// The graph's.
        expected: u64,
    },
}

/// What a runner is, for comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// This runtime.
    Ours,
    /// This runtime with a graph that it has run before. It is not compared with runners that build the graph.
    Prepared,
    /// Less than which no runtime does.
    Floor,
    /// A library that takes tasks and their order.
    Library,
    /// A scheduler written by hand for these graphs.
    ByHand,
}

/// One measurement of build and run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Adding tasks and edges; `None`: not apart from running them.
    pub build: Option<Duration>,
    /// From the first task to the last; `None`: not apart from building.
    pub run: Option<Duration>,
    /// Both, from call to return.
    pub total: Duration,
}

/// A graph, as it is handed to runners.
#[derive(Clone, Copy, Debug)]
pub struct LoadedGraph<'a> {
    /// The graph.
    pub graph: &'a Arc<Csr>,
    /// The same as a file ([`Csr::write`]), for runners outside of this process; `None` where there are none.
    pub file: Option<&'a Path>,
}

/// Builds and runs graphs.
pub trait Runner {
    /// Its name, with the mode that it is run in.
    fn name(&self) -> &str;

    /// What it is.
    fn class(&self) -> Class;

    /// How many OS threads it uses.
    fn threads(&self) -> usize;

    /// The most tasks that it is asked to run; beyond it takes too long.
    fn most_tasks(&self) -> u32 {
        u32::MAX
    }

    /// Takes a graph; what it had is gone.
    ///
    /// # Errors
    /// When it cannot.
    fn load(&mut self, graph: LoadedGraph<'_>) -> Result<(), Error>;

    /// Runs the graph with tasks that prove their order, untimed; returns its checksum, which is
    /// [`Csr::checksum`] if each task ran once and after its producers.
    ///
    /// # Errors
    /// When the run fails.
    fn check(&mut self) -> Result<u64, Error>;

    /// How long an iteration of its kernel takes.
    ///
    /// # Errors
    /// When it cannot be asked.
    fn ns_per_iteration(&mut self) -> Result<f64, Error>;

    /// Builds and runs once with kernels of so many iterations, 0: empty ones.
    ///
    /// # Errors
    /// When the run fails.
    fn sample(&mut self, iterations: u64) -> Result<Sample, Error>;

    /// Bytes of memory that the graph takes, without what it was loaded from; `None`: unknown.
    ///
    /// # Errors
    /// When it cannot be asked.
    fn memory_bytes(&mut self) -> Result<Option<u64>, Error> {
        Ok(None)
    }
}

/// How long an iteration of the kernel takes in this process, in ns: the least of a few tries.
#[must_use]
pub fn own_ns_per_iteration() -> f64 {
    const ITERATIONS: u32 = 20_000;
    let tries = (0..9).map(|_| {
        let start = std::time::Instant::now();
        pto_aicore_kernels::spin(ITERATIONS.into());
        start.elapsed().as_secs_f64() * 1e9 / f64::from(ITERATIONS)
    });
    tries.fold(f64::INFINITY, f64::min)
}
