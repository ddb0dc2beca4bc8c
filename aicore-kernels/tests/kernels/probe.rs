//! empty, `dag_node`, spin, `part`.

use std::time::{Duration, Instant};

use pto_abi::block::BlockContext;
use pto_aicore_kernels::dag_value;
use pto_aicore_kernels::parts::{ALL_BLOCKS, ALONE, BLOCK_WORDS, MEETING, part_value};
use pto_aicore_kernels::probe::mix;

use crate::support::{call, call_with};

#[test]
fn empty_kernels_return() {
    call("empty_aic", &[]);
    call("empty_aiv", &[]);
}

#[test]
fn mix_is_splitmix64() {
    // The published first outputs for the seeds 0 and 1234567.
    assert_eq!(mix(0), 0xE220_A839_7B1D_CDAF);
    assert_eq!(mix(1_234_567), 6_457_827_717_110_365_317);
    let second = 1_234_567_u64.wrapping_add(0x9E37_79B9_7F4A_7C15);
    assert_eq!(mix(second), 3_203_168_211_198_807_973);
}

#[test]
fn dag_value_depends_on_everything() {
    let value = |seed, index, producers: &[u64]| dag_value(seed, index, producers.iter().copied());
    let values = [
        value(1, 2, &[3, 4]),
        value(0, 2, &[3, 4]),
        value(1, 0, &[3, 4]),
        value(2, 1, &[3, 4]),
        value(1, 2, &[4, 3]),
        value(1, 2, &[3]),
        value(1, 2, &[3, 4, 0]),
        value(1, 2, &[]),
        value(1, 2, &[0]),
        value(1, 2, &[3, 5]),
    ];
    for (i, a) in values.iter().enumerate() {
        assert!(values[..i].iter().all(|b| a != b), "value {i} occurs twice");
    }
}

#[test]
fn dag_nodes_count_and_fold_in_order() {
    // 0 and 1 are sources; 2 and 3 have the same producers in opposite orders; 4 has none of its
    // neighbours.
    let graph: [&[u32]; 5] = [&[], &[], &[0, 1], &[1, 0], &[3, 0, 3]];
    let seed = 0x1234_5678_9abc_def0;
    let (mut values, mut counters) = ([0u64; 7], [0u32; 7]);
    let values_address = values.as_mut_ptr().expose_provenance() as u64;
    let counters_address = counters.as_mut_ptr().expose_provenance() as u64;
    for (index, producers) in graph.iter().enumerate() {
        let kernel = ["dag_node_aic", "dag_node_aiv"][index % 2];
        let producers_address = producers.as_ptr().expose_provenance() as u64;
        let count = producers.len() as u64;
        call(
            kernel,
            &[index as u64, seed, values_address, counters_address, producers_address, count],
        );
    }
    call("dag_node_aiv", &[1, seed, values_address, counters_address, 0, 0]);
    let mut expected = Vec::new();
    for (index, producers) in (0..).zip(graph) {
        let producers = producers.iter().map(|&producer| expected[producer as usize]);
        let value = dag_value(seed, index, producers);
        expected.push(value);
    }
    assert_eq!(values[..5], expected);
    assert_ne!(values[2], values[3]);
    assert_eq!(counters, [1, 2, 1, 1, 1, 0, 0], "node 1 has run twice");
    assert_eq!(values[5..], [0, 0]);
}

#[test]
fn spin_takes_longer_for_more_iterations() {
    let shortest = |kernel: &str, iterations: u64| {
        let run = |_| {
            let start = Instant::now();
            call(kernel, &[iterations]);
            start.elapsed()
        };
        (0..5).map(run).min().unwrap_or(Duration::ZERO)
    };
    for kernel in ["spin_aiv", "spin_aic"] {
        call(kernel, &[0]);
        // A factor of 1000 in the work, of which a busy machine leaves at least 10.
        assert!(shortest(kernel, 1_000_000) > 10 * shortest(kernel, 1_000), "{kernel}");
    }
}

/// Runs the parts of a task of `blocks` clusters, each on a thread of its own, on cells that hold their numbers.
fn parts_of(blocks: u32, group: u64) -> Vec<u64> {
    let words = BLOCK_WORDS * u64::from(blocks);
    let mut cells: Vec<u64> =
        (0..words).map(|at| if at % BLOCK_WORDS == MEETING { 0 } else { at }).collect();
    let address = cells.as_mut_ptr().expose_provenance() as u64;
    let parts = (0..blocks).flat_map(|block| [(block, 0, 0), (block, 1, 0), (block, 1, 1)]);
    std::thread::scope(|scope| {
        for (block, kind, lane) in parts {
            let context = BlockContext { block, blocks, lane };
            let kernel = ["part_aic", "part_aiv"][kind];
            scope.spawn(move || call_with(kernel, &[address, 77, group], context.word()));
        }
    });
    cells
}

#[test]
fn each_part_folds_into_its_cell_and_parts_meet() {
    let value = |blocks: u32, at: u64| part_value(at, 77, at, blocks);
    // Those of a block meet at their block, those of all blocks at the first one.
    for (group, met) in [(ALONE, [0, 0]), (3, [1, 1]), (6 | ALL_BLOCKS, [1, 0])] {
        let expected = [0, 1].map(|block| {
            let at = |lane| BLOCK_WORDS * block + lane;
            let met: u64 = met[usize::from(block == 1)];
            [value(2, at(0)), value(2, at(1)), value(2, at(2)), met << 32]
        });
        assert_eq!(parts_of(2, group), expected.concat(), "{group:#x}");
    }
    let all = [value(2, 1), value(3, 1), value(2, 2), part_value(1, 78, 1, 2)];
    assert!((1..all.len()).all(|at| all[at..].iter().all(|other| *other != all[at - 1])));
}
