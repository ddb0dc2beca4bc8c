//! Every way to run an example on a device: runtime variant, build mode and fanout strategy. What tests go through in a loop,
//! and what one iteration of the loop does, is here once.

use std::fmt;

use pto_abi::{BuildMode, FanoutStrategy, RuntimeVariant};
use pto_host::{Capacities, Device, RunOptions, RunReport, Work};

use super::error::Error;
use super::job::Prepared;
use super::program::Program;

/// One way to run an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunMode {
    /// Who builds the graph.
    pub variant: RuntimeVariant,
    /// Whether schedulers run meanwhile.
    pub build_mode: BuildMode,
    /// How edges are added to running tasks.
    pub fanout: FanoutStrategy,
}

impl fmt::Display for RunMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { variant, build_mode, fanout } = self;
        write!(f, "{variant}, {build_mode}, {fanout}")
    }
}

impl RunMode {
    /// Every way in which a program comes to an end.
    pub fn of(program: Program) -> impl Iterator<Item = Self> {
        program.variants().iter().flat_map(move |&variant| {
            program.build_modes().iter().flat_map(move |&build_mode| {
                let fanouts = FanoutStrategy::ALL.iter();
                fanouts.map(move |&fanout| Self { variant, build_mode, fanout })
            })
        })
    }

    /// What a run provides for: the whole graph, or a window that holds all of it.
    #[must_use]
    pub fn capacities(self, prepared: &Prepared) -> Capacities {
        match self.variant {
            RuntimeVariant::TENSORMAP_AND_RINGBUFFER => prepared.capacities().streamed_whole(),
            _ => prepared.capacities(),
        }
    }

    /// Runs what was prepared in this way, its outputs reset before; the other options are those of `base`.
    ///
    /// # Errors
    /// Those of the device.
    pub fn run(
        self,
        device: &mut Device,
        prepared: &mut Prepared,
        base: &RunOptions,
    ) -> Result<RunReport, Error> {
        prepared.reset()?;
        let (build_mode, fanout) = (self.build_mode, self.fanout);
        let capacities = self.capacities(prepared);
        let options = RunOptions { build_mode, fanout, capacities, ..base.clone() };
        if self.variant == RuntimeVariant::HOST_BUILD_GRAPH {
            let image = prepared.build_on_host(device)?;
            return Ok(device.run(Work::HostGraph(&image), &options)?);
        }
        Ok(device.run(prepared.work(self.variant), &options)?)
    }
}
