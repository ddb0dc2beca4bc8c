//! The timeline of a scenario of a campaign: a run of it, traced as a whole.

use std::collections::BTreeMap;

use crate::timeline::Trace;
use pto_aicore_kernels::LIBRARY;
use pto_sim_shim::virtual_time::soak::{self, Scenario};

use crate::trace;

/// The timeline of the run of a scenario that has this number: 0 is the run with the scenario's trouble, 1 the one after it. `None`: the graph does not fit an arena.
#[must_use]
pub fn soak_timeline(scenario: &Scenario, run: u32) -> Option<Trace> {
    let own = soak::OWN_KERNELS.iter().map(|(func_id, name)| (func_id.0, (*name).to_owned()));
    let library = LIBRARY
        .iter()
        .filter_map(|kernel| Some((u16::try_from(kernel.func_id).ok()?, kernel.name.to_owned())));
    let kernels: BTreeMap<_, _> = library.chain(own).collect();
    let facts = [
        ("seed", scenario.seed.to_string()),
        ("device", scenario.setup.to_string()),
        ("profile", scenario.options.profile.name.clone()),
    ];
    soak::record(scenario, run, |recorded| {
        let known = trace::TraceContext {
            cores: recorded.cores.clone(),
            kernels: &kernels,
            run: facts.map(|(name, fact)| (name.to_owned(), fact)).into(),
            fault: recorded.fault.map(|fault| (fault, Some(&recorded.epitaph))),
        };
        trace::timeline(recorded.arena, Vec::new(), known)
    })?
}
