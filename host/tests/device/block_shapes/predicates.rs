//! Predicates: read after the producers, before later writers; a task that does not run releases its consumers.

use super::kernels::LANES;
use super::support::{hostings, open, pool, run};

const COUNT: usize = 48;

/// What task `i` of the program `predicates` leaves: its blocks and lanes, if its flag is 1; then the values of the next task.
fn expected(i: usize) -> Vec<u64> {
    let runs = i % 3 == 1;
    let lanes = [1, 2, 3, 7][i % 4];
    let blocks = 1 + i / 4 % 2;
    let cell = |at: usize| {
        let is_part = runs && at / LANES < blocks && lanes >> (at % LANES) & 1 == 1;
        let own = u64::from(is_part);
        if at == 0 { own << 8 | 2 } else { own }
    };
    (0..2 * LANES).map(cell).collect()
}

#[test]
fn a_task_runs_if_its_predicate_is_true() {
    for hosting in hostings() {
        let mut device = open(hosting, 3, 6);
        let cells = device.zeroed::<u64>(6 * COUNT).unwrap();
        let flags = device.zeroed::<u32>(COUNT).unwrap();
        let args = [cells.address().0, flags.address().0, COUNT as u64];
        let report =
            run(&mut device, "predicates", &args).unwrap_or_else(|error| panic!("{error}"));
        let expected: Vec<u64> = (0..COUNT).flat_map(expected).collect();
        assert_eq!(cells.read().unwrap(), expected, "{hosting:?}");
        assert_eq!(report.tasks, 4 * COUNT as u64);
    }
}

#[test]
fn a_group_shares_a_predicate() {
    let mut device = open(pool(1), 3, 6);
    let cells = device.zeroed::<u64>(3).unwrap();
    let flag = device.zeroed::<u32>(1).unwrap();
    for (value, expected) in [(4, 9), (5, 0x01_0203_0405_0109)] {
        cells.write(&[0; 3]).unwrap();
        let args = [cells.address().0, flag.address().0, value, 6];
        run(&mut device, "shared_predicate", &args).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(cells.read().unwrap()[1], expected);
    }
}

/// Far more than a step reads, through a window of 64.
#[test]
fn a_long_chain_that_does_not_run_is_over_at_once() {
    for hosting in hostings() {
        let mut device = open(hosting, 1, 2);
        let cells = device.zeroed::<u64>(3).unwrap();
        let flag = device.zeroed::<u32>(1).unwrap();
        let args = [cells.address().0, flag.address().0, 0, 2_000];
        let report = run(&mut device, "shared_predicate", &args).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((report.tasks, report.parts_run), (2_002, [0, 2]));
        assert_eq!(cells.read().unwrap()[1], 9);
    }
}
