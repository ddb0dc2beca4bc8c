//! A run of a scenario with its trace, for a timeline.

use pto_abi::arena::Arena;
use pto_abi::runtime::Epitaph;
use pto_abi::{CoreKind, Fault, FuncId};

use super::super::chooser::Chooser;
use super::super::options::VirtualOptions;
use super::scenario::Scenario;
use super::shaped;
use super::soak_device::{SoakDevice, SoakRun};

/// A run that has ended, and whose rings can be read.
pub struct RecordedRun<'a> {
    /// The arena that it ran in.
    pub arena: &'a Arena<'static>,
    /// How it ended.
    pub fault: Option<Fault>,
    /// What is known of the fault.
    pub epitaph: Epitaph,
    /// The cores, by their numbers.
    pub cores: Vec<CoreKind>,
}

/// The kernels that only a campaign has, with their names.
pub const OWN_KERNELS: [(FuncId, &str); CoreKind::COUNT] =
    [(shaped::KERNELS[0].0, "part_aic"), (shaped::KERNELS[1].0, "part_aiv")];

/// Makes the run of a scenario that has this number, traced as a whole, and lets `read` look at it: 0 is the run with the scenario's trouble, 1 the one after it. `None`:
/// the graph does not fit an arena.
pub fn record<R>(
    scenario: &Scenario,
    number: u32,
    read: impl FnOnce(&RecordedRun<'_>) -> R,
) -> Option<R> {
    let mut soak_device = SoakDevice::traced(scenario.setup, &scenario.graph)?;
    let mut run = soak_device.run(scenario.options, Chooser::seeded(scenario.options.seed));
    if number > 0 {
        let options = VirtualOptions { injection: None, ..scenario.options };
        run = soak_device.run(options, run.chooser);
    }
    let SoakRun { fault, epitaph, .. } = run;
    let kinds = [(CoreKind::AIC, scenario.setup.aic), (CoreKind::AIV, scenario.setup.aiv)];
    let cores = kinds.into_iter().flat_map(|(kind, count)| (0..count).map(move |_| kind));
    Some(read(&RecordedRun { arena: soak_device.arena(), fault, epitaph, cores: cores.collect() }))
}
