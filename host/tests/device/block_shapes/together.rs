//! Blocks, MIX tasks and tasks that start at once: each part runs once, on a core of its kind, with its number; parts that
//! wait for each other meet.

use pto_host::{Device, Hosting, RunReport};

use super::kernels::LANES;
use super::support::{hostings, open, pool, run};

/// Runs a program; its fault, if it has one, is printed.
fn succeeds(device: &mut Device, builder: &str, orch_args: &[u64]) -> RunReport {
    run(device, builder, orch_args)
        .unwrap_or_else(|error| panic!("{builder} {orch_args:?}: {error}"))
}

/// What the cells of a table of `blocks` blocks hold after so many rounds.
fn expected(lanes: u64, blocks: usize, rounds: u64) -> Vec<u64> {
    let history = (1..=rounds).fold(0, |history, value| history << 8 | value);
    let cell = |at: usize| if lanes >> (at % LANES) & 1 == 1 { history } else { 0 };
    (0..LANES * blocks).map(cell).collect()
}

#[test]
fn every_part_of_every_block_runs_once() {
    for hosting in hostings() {
        let mut device = open(hosting, 3, 6);
        let cells = device.zeroed::<u64>(3 * 100).unwrap();
        for (lanes, blocks) in [(1, 1), (2, 1), (3, 1), (6, 1), (7, 1), (1, 7), (2, 100), (7, 10)] {
            cells.write(&[0; 300]).unwrap();
            let report =
                succeeds(&mut device, "every_shape", &[cells.address().0, lanes, blocks, 5, 0]);
            let blocks = usize::try_from(blocks).unwrap();
            let found = cells.read().unwrap();
            assert_eq!(
                found[..LANES * blocks],
                expected(lanes, blocks, 5),
                "{hosting:?} {lanes:b}"
            );
            assert_eq!(report.tasks, 5);
        }
    }
}

#[test]
fn blocks_that_start_at_once_run_once() {
    for hosting in hostings() {
        let mut device = open(hosting, 3, 6);
        let cells = device.zeroed::<u64>(3 * 6).unwrap();
        for (lanes, blocks) in [(1, 3), (2, 6), (2, 1), (3, 3), (6, 3), (7, 3), (7, 1)] {
            cells.write(&[0; 18]).unwrap();
            succeeds(&mut device, "every_shape", &[cells.address().0, lanes, blocks, 6, 1]);
            let blocks = usize::try_from(blocks).unwrap();
            let found = cells.read().unwrap();
            assert_eq!(
                found[..LANES * blocks],
                expected(lanes, blocks, 6),
                "{hosting:?} {lanes:b}"
            );
        }
    }
}

/// Each core has a thread of its own, so that kernels may wait for each other.
#[test]
fn parts_of_a_cluster_meet() {
    let mut device = open(Hosting::Threads, 3, 6);
    let counters = device.zeroed::<u64>(8 * 256).unwrap();
    for lanes in [7, 6] {
        counters.write(&[0; 8 * 256]).unwrap();
        succeeds(&mut device, "meet", &[counters.address().0, lanes, 1, 40]);
        let met = counters.read().unwrap();
        let parts = u64::from(u8::try_from(lanes).unwrap().count_ones());
        assert!((0..40).all(|round| met[8 * round] == parts));
    }
}

#[test]
fn blocks_that_start_at_once_meet() {
    let mut device = open(Hosting::Threads, 3, 6);
    let counters = device.zeroed::<u64>(8 * 256).unwrap();
    for (lanes, blocks, parts) in [(1, 3, 3), (2, 6, 6), (6, 3, 6), (7, 3, 9), (7, 2, 6)] {
        counters.write(&[0; 8 * 256]).unwrap();
        succeeds(&mut device, "meet", &[counters.address().0, lanes, blocks, 20]);
        let met = counters.read().unwrap();
        assert!((0..20).all(|round| met[8 * round] == parts), "{lanes:b} {blocks}");
    }
}

/// Each needs cores that another one has pledged or runs on, across three schedulers.
#[test]
fn rivals_do_not_deadlock() {
    for hosting in hostings() {
        let mut device = open(hosting, 3, 6);
        let cells = device.zeroed::<u64>(32 * 60).unwrap();
        succeeds(&mut device, "rivals", &[cells.address().0, 60]);
        let parts: u64 = cells.read().unwrap().iter().sum();
        let of_round = |round: usize| [6, 9, 3, 4, 5, 6][round % 6];
        assert_eq!(parts, (0..60).map(of_round).sum::<u64>(), "{hosting:?}");
    }
}

#[test]
fn ready_tasks_run_by_priority_and_age() {
    let mut device = open(Hosting::Threads, 1, 1);
    let words = device.zeroed::<u64>(256).unwrap();
    let base = words.address().0;
    succeeds(&mut device, "order", &[base, base + 64, base + 128, 40]);
    let cells = words.read().unwrap();
    let mut ran: Vec<(u64, usize)> = (0..40).map(|number| (cells[16 + number], number)).collect();
    ran.sort_unstable();
    let priorities: Vec<usize> = ran.iter().map(|(_, number)| number % 4).collect();
    let expected: Vec<usize> = (0..40).map(|at| 3 - at / 10).collect();
    assert_eq!(priorities, expected, "urgent ones first, low ones last");
    for level in ran.chunks(10).enumerate().filter(|(at, _)| *at != 2).map(|(_, level)| level) {
        assert!(level.is_sorted_by_key(|(_, number)| *number), "the older one first: {level:?}");
    }
}

#[test]
fn one_vector_core_runs_any_number_of_blocks() {
    let mut device = open(pool(1), 1, 1);
    let cells = device.zeroed::<u64>(3 * 20_000).unwrap();
    succeeds(&mut device, "every_shape", &[cells.address().0, 2, 20_000, 1, 0]);
    assert_eq!(cells.read().unwrap(), expected(2, 20_000, 1));
}
