//! What a device is opened with, and what a run is started with.

use std::borrow::Cow;
use std::time::Duration;

use pto_abi::arena::Capacities;
use pto_abi::{BuildMode, CoreKind, FanoutStrategy, RuntimeVariant};
#[cfg(feature = "sim")]
use pto_sim_shim::Hosting;

use crate::error::Error;
use crate::image::GraphImage;
use crate::trace_options::TraceOptions;

/// The environment variable that chooses the build mode where no option does: 0 sequential, 1 concurrent.
pub const BUILD_MODE_VARIABLE: &str = "PTO_AICPU_BUILD_GRAPH_BUILD_MODE";

/// What a simulated device consists of. The default is a full a2a3 die with 4 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceOptions {
    /// Cube cores.
    pub aic: u32,
    /// Vector cores. Cores of both kinds together: 1 to 128.
    pub aiv: u32,
    /// Size of GM in bytes. Memory is used as it is touched, not as it is provided.
    pub gm_bytes: u64,
    /// How firmware and cores are run on this machine.
    #[cfg(feature = "sim")]
    pub hosting: Hosting,
}

impl Default for DeviceOptions {
    fn default() -> Self {
        Self {
            aic: 24,
            aiv: 48,
            gm_bytes: 4 << 30,
            #[cfg(feature = "sim")]
            hosting: Hosting::default(),
        }
    }
}

impl DeviceOptions {
    /// How many cores of `kind`.
    #[must_use]
    pub fn cores(&self, kind: CoreKind) -> u32 {
        if kind == CoreKind::AIC { self.aic } else { self.aiv }
    }
}

/// What a run executes.
#[derive(Clone, Copy, Debug)]
pub enum Work<'a> {
    /// Runtime variant `host_build_graph`: the graph travels as an image.
    HostGraph(&'a GraphImage),
    /// Runtime variant `aicpu_build_graph`: a builder program of the firmware builds the graph on AICPU
    /// instance 0, while (or before) the others schedule.
    AicpuBuilder {
        /// The program's name, as in [`Device::builders`](crate::Device::builders).
        builder: &'a str,
        /// The words that it reads; at most 128.
        orch_args: &'a [u64],
    },
    /// Runtime variant `tensormap_and_ringbuffer`: a program of the firmware submits tasks with tensors on AICPU
    /// instance 0, while the others schedule. Memory depends on `capacities.stream` and on `arg_words` and `edges`, which
    /// are rings here, not on the number of tasks. With [`StreamCapacities::OFF`] the run gets
    /// [`StreamCapacities::STANDARD`], and 16 argument words and 16 edges a slot.
    ///
    /// [`StreamCapacities::OFF`]: pto_abi::stream::StreamCapacities::OFF
    /// [`StreamCapacities::STANDARD`]: pto_abi::stream::StreamCapacities::STANDARD
    Stream {
        /// The program's name, as in [`Device::builders`](crate::Device::builders).
        builder: &'a str,
        /// The words that it reads; at most 128.
        orch_args: &'a [u64],
    },
}

impl Work<'_> {
    /// Who adds its tasks.
    #[must_use]
    pub const fn variant(&self) -> RuntimeVariant {
        match self {
            Self::HostGraph(_) => RuntimeVariant::HOST_BUILD_GRAPH,
            Self::AicpuBuilder { .. } => RuntimeVariant::AICPU_BUILD_GRAPH,
            Self::Stream { .. } => RuntimeVariant::TENSORMAP_AND_RINGBUFFER,
        }
    }

    /// The builder program that it runs; `None`: the host has built the graph.
    #[must_use]
    pub const fn builder(&self) -> Option<&str> {
        match self {
            Self::HostGraph(_) => None,
            Self::AicpuBuilder { builder, .. } | Self::Stream { builder, .. } => Some(builder),
        }
    }
}

/// Whether the time that kernels take is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KernelTimes {
    /// Two clock reads a task; utilisation is reported.
    #[default]
    Measure,
    /// No clock reads; utilisation is reported as zero.
    Skip,
}

/// How a run is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunOptions {
    /// Whether schedulers wait for the builder (`aicpu_build_graph`).
    pub build_mode: BuildMode,
    /// How an edge is added while its producer may complete.
    pub fanout: FanoutStrategy,
    /// AICPU instances: 1 to 16; `aicpu_build_graph` needs 2, of which one builds. 0: as many as find a cluster of cores to schedule
    /// ([`RunOptions::fitting_instances`]), four at most.
    pub aicpu_instances: u32,
    /// What the arena provides for. A graph image raises what it needs; a builder on the AICPU must get
    /// along with it.
    pub capacities: Capacities,
    /// How long one task may run on a core.
    pub task_budget: Duration,
    /// How long the run may go without progress while no core is busy.
    pub stall_budget: Duration,
    /// How long a core may take to answer the greeting.
    pub bring_up_budget: Duration,
    /// How long the whole run may take; `None`: no limit.
    pub run_budget: Option<Duration>,
    /// Whether the time that kernels take is measured.
    pub kernel_times: KernelTimes,
    /// Whether the run is recorded; then kernel times are measured as well.
    pub trace: Option<TraceOptions>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            build_mode: BuildMode::CONCURRENT,
            fanout: FanoutStrategy::LOCK_FREE,
            aicpu_instances: 0,
            capacities: Capacities::default(),
            task_budget: Duration::from_secs(60),
            stall_budget: Duration::from_secs(5),
            bring_up_budget: Duration::from_secs(10),
            run_budget: None,
            kernel_times: KernelTimes::Measure,
            trace: None,
        }
    }
}

impl RunOptions {
    /// AICPU instances of a device with many clusters, where nobody says how many.
    pub const USUAL_INSTANCES: u32 = 4;

    /// How many of `most` AICPU instances a device with that many clusters has work for: each scheduler needs a cluster, and the builder of a `variant` that
    /// has one needs none.
    #[must_use]
    pub fn fitting_instances(most: u32, variant: RuntimeVariant, clusters: u32) -> u32 {
        let builders = u32::from(variant.has_builder());
        most.min(builders + clusters).max(builders + 1)
    }

    /// The options of a run on a device with that many clusters, with a number of AICPU instances where they have none.
    #[must_use]
    pub fn fitted(&self, variant: RuntimeVariant, clusters: u32) -> Cow<'_, Self> {
        if self.aicpu_instances > 0 {
            return Cow::Borrowed(self);
        }
        let most = Self::USUAL_INSTANCES;
        let aicpu_instances = Self::fitting_instances(most, variant, clusters);
        Cow::Owned(Self { aicpu_instances, ..self.clone() })
    }

    /// The defaults, with the build mode from [`BUILD_MODE_VARIABLE`] where that is set.
    ///
    /// # Errors
    /// `BuildModeVariable` when the variable is neither 0 nor 1 nor a name of a build mode.
    pub fn from_environment() -> Result<Self, Error> {
        let options = Self::default();
        match std::env::var_os(BUILD_MODE_VARIABLE) {
            None => Ok(options),
            Some(value) => {
                Ok(Self { build_mode: parse_build_mode(&value.to_string_lossy())?, ..options })
            }
        }
    }
}

fn parse_build_mode(value: &str) -> Result<BuildMode, Error> {
    let by_number = value.parse().ok().and_then(|number: u32| BuildMode::try_from(number).ok());
    let mode = by_number.or_else(|| BuildMode::from_name(value));
    mode.ok_or_else(|| Error::BuildModeVariable {
        variable: BUILD_MODE_VARIABLE,
        value: value.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::parse_build_mode;
    use pto_abi::BuildMode;

    #[test]
    fn a_build_mode_is_a_number_or_a_name() {
        assert_eq!(parse_build_mode("0").unwrap(), BuildMode::SEQUENTIAL);
        assert_eq!(parse_build_mode("1").unwrap(), BuildMode::CONCURRENT);
        assert_eq!(parse_build_mode("sequential").unwrap(), BuildMode::SEQUENTIAL);
        for bad in ["", "2", "-1", "parallel", " 1"] {
            let error = parse_build_mode(bad).unwrap_err().to_string();
            assert!(
                error.contains(&format!("\"{bad}\"")) && error.contains("concurrent"),
                "{error}"
            );
        }
    }
}
