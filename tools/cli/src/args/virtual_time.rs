//! The options of `--hosting virtual`: what a user can write, and what that asks of the machine.

use std::path::Path;

use clap::Args;
use pto_host::virtual_time::{Compute, Injection, KernelCosts, LineModel, Profile, VirtualOptions};

use super::value::whole;
use crate::errors::Failure;
use crate::input_file;

/// Options of `--hosting virtual`.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Virtual time (--hosting virtual)")]
pub(crate) struct VirtualArgs {
    /// Decides what hardware leaves to chance [default: 0]
    ///
    /// The same seed and options give the same run on every machine.
    #[arg(long, value_name = "N", value_parser = whole(0, u64::MAX))]
    pub(crate) seed: Option<u64>,
    /// Costs and cores: a2a3, a5, ideal, or a file [default: a2a3]
    ///
    /// What operations cost, and how many cores the device has. ideal: only kernels take time. A file is like sim-
    /// shim/profiles/a2a3.toml.
    #[arg(long, value_name = "PROFILE|FILE")]
    pub(crate) profile: Option<String>,
    /// How long kernels take, as in 5us or 5us..20us [default: model:5us]
    ///
    /// A time with its unit (500ns, 5us, 2ms), a range (5us..20us, seed and task choose), `model[:TIME]` (the PTO-ISA cost
    /// model, and TIME for kernels that the model does not know), or table:FILE (lines of `kernel = TIME`, one of them
    /// `default = TIME`).
    #[arg(long, value_name = "SPEC", allow_hyphen_values = true)]
    pub(crate) kernel_cost: Option<String>,
    /// Injects a fault, once, as in hang:core=3,task=1
    ///
    /// `NAME[=VALUE][:core=N][,task=N]`, where task counts the tasks of this core, or those of the builder. Examples:
    /// hang:core=3,task=1, slow=1000, doorbell-lost, status-delayed=1ms, builder-stops:task=8 (docs/reference/injected-
    /// faults.md has all).
    #[arg(long, value_name = "SPEC")]
    pub(crate) fault: Option<String>,
    /// Lets the run pass even if the fault did not happen
    #[arg(long, hide_short_help = true, requires = "fault")]
    pub(crate) allow_missed_fault: bool,
    /// Kernels take time, and compute nothing
    ///
    /// The result is not checked. With --group virtual:N the run follows instead whose values the elements of its collectives
    /// have.
    #[arg(long)]
    pub(crate) no_compute: bool,
    /// Reports where caches that are not coherent would matter
    ///
    /// Follows the cache lines that dag_node and elementwise kernels read and write, and reports where a device without
    /// coherent caches would compute a wrong result.
    #[arg(long, hide_short_help = true)]
    pub(crate) stale_lines: bool,
}

impl VirtualArgs {
    /// The first of them that is given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        // --allow-missed-fault needs --fault.
        let Self { seed, profile, kernel_cost, fault, no_compute, stale_lines, .. } = self;
        let given = [
            (seed.is_some(), "--seed"),
            (profile.is_some(), "--profile"),
            (kernel_cost.is_some(), "--kernel-cost"),
            (fault.is_some(), "--fault"),
            (*no_compute, "--no-compute"),
            (*stale_lines, "--stale-lines"),
        ];
        given.iter().find(|(is_given, _)| *is_given).map(|(_, name)| *name)
    }

    /// What they ask for.
    pub(crate) fn options(&self) -> Result<VirtualOptions, Failure> {
        let base = VirtualOptions::default();
        let seed = self.seed.unwrap_or(base.seed);
        let costs = self.kernel_cost.as_deref().map(|text| costs(text, seed));
        let injection = self.fault.as_deref().map(|text| {
            let parsed = text.parse::<Injection>();
            parsed.map_err(|error| Failure::usage(format!("--fault {text}: {error}")))
        });
        Ok(VirtualOptions {
            seed,
            profile: self.profile.as_deref().map_or(Ok(base.profile), profile)?,
            costs: costs.unwrap_or(Ok(base.costs))?,
            compute: if self.no_compute { Compute::Off } else { Compute::Run },
            lines: if self.stale_lines { LineModel::Results } else { LineModel::Handshake },
            injection: injection.transpose()?,
            keep: base.keep,
        })
    }
}

/// A built-in profile, or that of a file.
pub(crate) fn profile(name: &str) -> Result<&'static Profile, Failure> {
    if let Some(profile) = Profile::by_name(name) {
        return Ok(profile);
    }
    if !Path::new(name).exists() {
        return Err(Failure::usage(format!(
            "there is no profile and no file '{name}'; the profiles are {}",
            Profile::NAMES.join(", ")
        )));
    }
    Profile::load(&input_file::text(Path::new(name))?)
        .map_err(|error| Failure::usage(format!("cannot use '{name}': {error}")))
}

fn costs(text: &str, seed: u64) -> Result<KernelCosts, Failure> {
    let parsed = match text.strip_prefix("table:") {
        Some(name) => KernelCosts::table(&input_file::text(Path::new(name))?),
        None => KernelCosts::parse(text, seed),
    };
    parsed.map_err(|error| Failure::usage(format!("--kernel-cost {text}: {error}")))
}
