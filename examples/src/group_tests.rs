//! Every example for groups on 1, 2, 4 and 8 devices of this process, against its reference; and bit for bit against one device where its
//! sums do not depend on the number of ranks.

use pto_host::group::{Group, GroupOptions, GroupWork};
use pto_host::{DeviceOptions, RunOptions};
use std::vec::Vec;

use crate::host::{EXAMPLES, Example, GroupRank, Inputs, Params, Prepared, Tensor, open_group};

fn params(example: &dyn Example) -> Params {
    let mut params = Params::defaults(example.params());
    for (name, value) in example.sizes().little {
        params.set(name, value).unwrap();
    }
    params
}

fn group(size: u32) -> Group {
    let base = GroupOptions::default();
    let device = DeviceOptions { aic: 1, aiv: 2, gm_bytes: 1 << 30, ..base.device };
    open_group(size, &GroupOptions { device, ..base }).unwrap()
}

/// The first output of every rank.
fn run(example: &dyn Example, size: u32) -> Vec<Tensor> {
    let (params, mut group) = (params(example), group(size));
    let prepare = |member: &pto_host::group::RankDevice| {
        let of = GroupRank { rank: member.rank(), size };
        let prepared = example.prepare_member(of, &params, &Inputs::default(), member.device());
        let mut prepared = prepared.unwrap();
        prepared.reset().unwrap();
        prepared
    };
    let mut prepared: Vec<_> = group.members().iter().map(prepare).collect();
    let words: Vec<_> = prepared.iter().map(|one| one.orch_args().to_vec()).collect();
    let args = |rank: u32| words[rank as usize].clone();
    let largest = prepared.iter().map(Prepared::capacities).max_by_key(|one| one.tasks);
    let capacities = largest.unwrap().streamed_whole();
    let options = RunOptions { capacities, aicpu_instances: 2, ..RunOptions::default() };
    let work = GroupWork { builder: example.name(), args: &args };
    let report = group.run(&work, &options).unwrap();
    for (rank, ran) in prepared.iter_mut().zip(&report.ranks) {
        let verdict = rank.verify().unwrap();
        assert!(verdict.passed(), "{} on {size}: {verdict:?}", example.name());
        let foreseen = rank.size().tasks;
        assert!(
            ran.run.kernels <= foreseen,
            "{}: {} > {foreseen}",
            example.name(),
            ran.run.kernels
        );
        assert!(size > 1 || ran.run.kernels == foreseen, "{} alone", example.name());
    }
    prepared.iter().map(|one| one.outputs().unwrap().remove(0).1).collect()
}

#[test]
fn every_example_for_groups_is_right_on_any_number_of_devices() {
    let all: Vec<_> = EXAMPLES.iter().filter(|example| example.is_for_groups()).collect();
    assert!(all.len() >= 5);
    for example in all {
        for size in [1, 2, 4, 8] {
            run(*example, size);
        }
    }
}

fn bits(tensor: &Tensor) -> Vec<u32> {
    tensor.bytes().chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

#[test]
fn the_tiles_of_a_factor_are_those_of_one_device() {
    let example = crate::host::find("dist_cholesky").unwrap();
    let whole = bits(&run(example, 1)[0]);
    for size in [2, 4] {
        // Each rank has zeros where others have tiles.
        let mut sum = std::vec![0; whole.len()];
        for part in run(example, size) {
            sum.iter_mut().zip(bits(&part)).for_each(|(sum, bits)| *sum |= bits);
        }
        assert!(sum == whole, "{size} ranks");
    }
}

#[test]
fn a_pipeline_computes_what_one_device_does() {
    let example = crate::host::find("pp_decoder").unwrap();
    let alone = bits(&run(example, 1)[0]);
    for size in [2, 8] {
        assert!(bits(run(example, size).last().unwrap()) == alone, "{size} ranks");
    }
}

#[test]
fn experts_elsewhere_make_the_same_of_every_token() {
    let example = crate::host::find("ep_moe").unwrap();
    let alone = bits(&run(example, 1)[0]);
    for size in [2, 4] {
        let parts: Vec<u32> = run(example, size).iter().flat_map(bits).collect();
        assert!(parts == alone, "{size} ranks");
    }
}

#[test]
fn sums_over_ranks_are_the_same_at_every_rank() {
    for name in ["tp_decoder", "dp_training"] {
        let example = crate::host::find(name).unwrap();
        let found = run(example, 4);
        assert!(found.iter().all(|one| bits(one) == bits(&found[0])), "{name}");
        let again = run(example, 4);
        assert!(bits(&again[1]) == bits(&found[1]), "{name} again");
    }
}

#[test]
fn what_ranks_cannot_share_is_refused_with_both_numbers() {
    let example = crate::host::find("tp_decoder").unwrap();
    let group = group(1);
    let of = GroupRank { rank: 0, size: 3 };
    let device = group.members()[0].device();
    let refused = example.prepare_member(of, &params(example), &Inputs::default(), device);
    let error = std::string::ToString::to_string(&refused.err().unwrap());
    assert!(error.contains("kv_heads = 8") && error.contains("3 ranks"), "{error}");
    let matmul = crate::host::find("matmul").unwrap();
    let refused = matmul.prepare_member(of, &params(matmul), &Inputs::default(), device);
    assert!(std::string::ToString::to_string(&refused.err().unwrap()).contains("one device"));
}
