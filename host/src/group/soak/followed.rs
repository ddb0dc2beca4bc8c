//! Runs without computation that follow whose values each element has: right collectives are found right, and a transfer that is left out is named.

use super::program::{self, SoakPrograms, TENSOR_BYTES};
use super::setting::{Call, CallKind, Setting, Trouble};
use super::tried;
use crate::group::error::GroupError;
use crate::group::ranks::{Group, GroupOptions};
use crate::options::DeviceOptions;
use pto_graph::group::{Algorithm, Order, Reduction};
use pto_sim_shim::Hosting;
use pto_sim_shim::virtual_time::group::{ContributionReport, NetFaults};
use pto_sim_shim::virtual_time::{Compute, VirtualOptions};

fn run(setting: &Setting, left_out: Option<u64>) -> Result<(ContributionReport, u64), GroupError> {
    let compute = Compute::Contributions;
    let options = VirtualOptions { seed: setting.seed, compute, ..VirtualOptions::default() };
    let hosting = Hosting::Virtual(options);
    let device = DeviceOptions { aic: 2, aiv: setting.aiv, gm_bytes: 8 << 20, hosting };
    let options = GroupOptions { device, ..GroupOptions::default() };
    let faults = NetFaults { left_out, ..NetFaults::default() };
    let network = (setting.network, faults);
    let mut group = Group::open_virtual(setting.ranks, &options, network, SoakPrograms)?;
    group.window((2 + setting.calls.len() as u64) * TENSOR_BYTES)?;
    let words = |rank| program::words(setting, rank, false);
    let report = group.run(&program::work(&words), &tried::options(setting))?;
    let transfers = report.transfers().transfers;
    Ok((report.contributions.expect("it was asked for"), transfers))
}

#[test]
fn collectives_of_the_campaign_leave_the_values_of_the_right_ranks() {
    let (mut calls, mut elements) = (0, 0);
    for seed in 0..60 {
        let mut setting = Setting::drawn(seed);
        setting.trouble = Trouble::None;
        let (report, _) = run(&setting, None).unwrap_or_else(|error| panic!("{setting}: {error}"));
        assert!(report.wrong == 0, "{setting}: {}", report.found[0]);
        calls += report.calls;
        elements += report.elements;
    }
    assert!(calls > 400 && elements > 20_000, "{calls} calls, {elements} elements");
}

fn one_call(ranks: u32, what: CallKind, algorithm: Algorithm) -> Setting {
    let call = Call {
        what,
        reduction: Reduction::SUM,
        algorithm,
        order: Order::ANY,
        elements: 24,
        root: 1,
        tile_bytes: 4096,
    };
    let drawn = Setting::drawn(0);
    let network =
        pto_sim_shim::virtual_time::group::NetworkProfile { ranks_per_node: 2, ..drawn.network };
    Setting { ranks, calls: vec![call], trouble: Trouble::None, network, ..drawn }
}

/// Each transfer of each collective, one at a time.
#[test]
fn whichever_transfer_is_left_out_is_missed() {
    let algorithms = [
        Algorithm::DIRECT,
        Algorithm::RING,
        Algorithm::HALVING,
        Algorithm::TREE,
        Algorithm::TWO_LEVEL,
        Algorithm::DOUBLING,
    ];
    let whats = [
        CallKind::BROADCAST,
        CallKind::REDUCE,
        CallKind::ALL_REDUCE,
        CallKind::SCATTER_GATHER,
        CallKind::ALL_TO_ALL,
    ];
    for what in whats {
        for algorithm in algorithms {
            let setting = one_call(4, what, algorithm);
            let (whole, transfers) = run(&setting, None).unwrap();
            assert_eq!(whole.wrong, 0, "{setting}");
            // A send and a receive are one.
            assert!(transfers >= 6, "{setting}");
            for number in 0..transfers / 2 {
                let (report, _) = run(&setting, Some(number)).unwrap();
                let found = report.found.first();
                let found = found.unwrap_or_else(|| panic!("{setting}: {number} is not missed"));
                assert!(!found.missing.is_empty() && report.wrong >= 1, "{setting}: {found}");
            }
        }
    }
}

#[test]
fn the_rank_whose_value_is_missing_and_the_elements_are_named() {
    // Of a ring of two, the first transfer is half of what a rank has to the other one.
    let (report, _) = run(&one_call(2, CallKind::ALL_REDUCE, Algorithm::RING), Some(0)).unwrap();
    let texts: Vec<String> = report.found.iter().map(ToString::to_string).collect();
    assert_eq!(report.calls, 2);
    assert_eq!(texts.len(), 2, "the other rank gets the half back: {texts:?}");
    let missing: Vec<_> = report.found.iter().map(|found| (found.rank, found.elements)).collect();
    assert!(
        missing == [(0, (0, 12)), (1, (0, 12))] || missing == [(0, (12, 12)), (1, (12, 12))],
        "{texts:?}"
    );
    let missing_of = |rank: u32| format!("have no value of rank {rank}");
    assert!(
        texts.iter().all(|text| text.contains(&missing_of(0)) || text.contains(&missing_of(1))),
        "{texts:?}"
    );
    assert!(texts[0].starts_with("rank 0: all_reduce (call 1): elements "), "{texts:?}");
}
