//! Broken ranges and heaps, and that the campaigns of random graphs find each within a few seeds. In a build with `--cfg pto_mutants` only: what is wrong
//! is chosen for the whole process.

use pto_abi::Fault;
use pto_aicpu_fw::mutant::{Mutant, choose};
use pto_sim_shim::virtual_time::SoakOptions;
use pto_sim_shim::virtual_time::soak::{FailureCause, Scenario, Troubles, try_scenario};

use super::soak::{SEEDS_OF_A_CAMPAIGN, parts_behind_parts};

/// Seeds of a campaign.
const SEEDS: u64 = 300;
/// Tasks of a graph.
const TASKS: u32 = 100;

/// Mutant, and a part of what the campaign says.
const TABLE: &[(Mutant, &str)] = &[
    (Mutant::RangeForgetsAnEdge, "LineOwnership"),
    (Mutant::RangePublishesEarly, "EdgeOrder"),
    (Mutant::RangeTakesTheWrongTile, ""),
    (Mutant::RangeRepeatsItsEnd, ""),
    (Mutant::ReusesTheHeapEarly, ""),
];

/// The first seed whose scenario fails, and what is said of it.
fn found() -> Option<(u64, String)> {
    (0..SEEDS).find_map(|seed| {
        let scenario = Scenario::draw(seed, TASKS, Troubles::None);
        try_scenario(&scenario).err().map(|failure| (seed, failure.to_string()))
    })
}

#[test]
fn broken_ranges_and_heaps_are_found() {
    choose(Mutant::None);
    assert_eq!(found(), None);
    let mut missed = Vec::new();
    for &(mutant, words) in TABLE {
        choose(mutant);
        let found = found();
        choose(Mutant::None);
        println!("{mutant:?}: {found:?}");
        if !found.is_some_and(|(_, text)| text.contains(words)) {
            missed.push(mutant);
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}

/// The campaign of the suite meets the states in which it matters that a watchdog compares what it has seen.
#[test]
fn a_watchdog_that_takes_one_part_for_another_is_found() {
    choose(Mutant::FoldsWhatRuns);
    let blamed = (0..20).filter(|seed| try_scenario(&parts_behind_parts(*seed)).is_err()).count();
    let options = SoakOptions { troubles: Troubles::None, ..SoakOptions::default() };
    let mut seeds = 0..SEEDS_OF_A_CAMPAIGN;
    let found = seeds.find_map(|seed| try_scenario(&options.scenario(seed)).err());
    choose(Mutant::None);
    println!("{blamed} of 20 machine seeds, and a campaign: {found:?}");
    assert!(blamed > 5, "{blamed} of 20 machine seeds");
    assert_eq!(
        found.map(|failure| failure.cause),
        Some(FailureCause::End(Some(Fault::STALL_CORE)))
    );
}
