//! Derived edges against the oracle, on random programs with strided views that overlap.

use std::collections::BTreeSet;

use pto_abi::GmAddr;
use pto_abi::stream::{ElementType, MapBucket, MapCell, MapEntry, TensorView};
use pto_aicpu_fw::stream::map::{Access, AccessKind, Hide, TensorMap};
use pto_aicpu_fw::stream::region::Region;

use crate::oracle::{Oracle, Touch, all_reachable};
use crate::random::{Random, bytes_of, view};

/// Tensors of a random program.
const TENSORS: u32 = 3;

struct Task {
    views: Vec<(TensorView<'static>, AccessKind)>,
    derived: bool,
}

fn program(random: &mut Random, tasks: u64, all_derived: bool) -> Vec<Task> {
    let task = |random: &mut Random| {
        let count = 1 + random.below(3);
        let views = (0..count).map(|_| {
            let base = GmAddr(0x1000 * u64::from(1 + random.below(TENSORS)));
            let kind = if random.below(2) == 0 { AccessKind::Write } else { AccessKind::Read };
            let whole = TensorView::dense(base, ElementType::F32, &[720]);
            let view = if random.below(6) == 0 { whole } else { view(random, base) };
            (view, kind)
        });
        let views = views.collect();
        Task { views, derived: all_derived || random.below(4) > 0 }
    };
    (0..tasks).map(|_| task(random)).collect()
}

fn touches(task: &Task, number: u64) -> Vec<Touch> {
    let touch = |(view, kind): &(TensorView<'_>, AccessKind)| Touch {
        task: number,
        tensor: view.base().0,
        bytes: bytes_of(view),
        writes: *kind == AccessKind::Write,
    };
    task.views.iter().map(touch).collect()
}

/// The map's answer for one task.
fn derive(map: &mut TensorMap<'_>, task: &Task, number: u64) -> BTreeSet<u64> {
    let mut producers = BTreeSet::new();
    let access = |(view, kind): &(TensorView<'_>, AccessKind)| Access {
        base: view.base().0,
        region: Region::of(view),
        kind: *kind,
    };
    let accesses: Vec<Access> = task.views.iter().map(access).collect();
    if task.derived {
        for access in &accesses {
            map.conflicts(access, Hide::Covered, (), |task| {
                producers.insert(task);
                Ok(())
            })
            .unwrap();
        }
    }
    for access in &accesses {
        map.insert(access, number);
    }
    producers
}

fn with_map(entries: usize, first: u64, test: impl FnOnce(TensorMap<'_>)) {
    let buckets: Vec<MapBucket> = (0..4).map(|_| MapBucket::default()).collect();
    let cells: Vec<MapCell> = (0..8).map(|_| MapCell::default()).collect();
    let entries: Vec<MapEntry> = (0..entries).map(|_| MapEntry::default()).collect();
    test(TensorMap::new((&buckets, &cells), &entries, first).unwrap());
}

#[test]
fn edges_are_those_of_the_oracle() {
    let mut direct = 0;
    for seed in 0..250 {
        let mut random = Random(seed);
        let tasks = 20 + u64::from(random.below(60));
        let program = program(&mut random, tasks, true);
        with_map(512, 0, |mut map| {
            let mut oracle = Oracle::default();
            let mut edges = BTreeSet::new();
            for (number, task) in (0..).zip(&program) {
                let expected = oracle.submit(&touches(task, number), task.derived);
                let found = derive(&mut map, task, number);
                assert_eq!(found, expected, "seed {seed}, task {number}");
                edges.extend(found.into_iter().map(|producer| (producer, number)));
            }
            let pairs = oracle.conflicts();
            assert!(edges.is_subset(&pairs), "seed {seed}: an edge without a conflict");
            assert!(all_reachable(tasks, &edges, &pairs), "seed {seed}: a conflict without a path");
            direct += edges.len();
        });
    }
    assert!(direct > 20_000, "{direct}: the programs hardly conflict");
}

#[test]
fn explicit_tasks_are_waited_for_and_hide_nothing() {
    for seed in 1000..1120 {
        let mut random = Random(seed);
        let program = program(&mut random, 40, false);
        with_map(512, 0, |mut map| {
            let mut oracle = Oracle::default();
            for (number, task) in (0..).zip(&program) {
                let expected = oracle.submit(&touches(task, number), task.derived);
                assert_eq!(derive(&mut map, task, number), expected, "seed {seed}, task {number}");
            }
        });
    }
}

/// A watermark that follows at random distances, a small ring, and positions near the wrap of 32 bits.
#[test]
fn retired_accesses_are_not_found_and_all_others_are() {
    for seed in 2000..2120 {
        let mut random = Random(seed);
        let program = program(&mut random, 300, true);
        let first = (1 << 32) - 200 + u64::from(random.below(100));
        with_map(64, first, |mut map| {
            let mut oracle = Oracle::default();
            let mut starts = Vec::new();
            let mut watermark = 0_u64;
            for (number, task) in (0_u64..).zip(&program) {
                starts.push(map.head());
                watermark = watermark.max(number.saturating_sub(1 + u64::from(random.below(8))));
                map.retire(starts[usize::try_from(watermark).unwrap()]);
                assert!(map.has_room(6));
                let mut expected = oracle.submit(&touches(task, number), true);
                expected.retain(|producer| *producer >= watermark);
                assert_eq!(derive(&mut map, task, number), expected, "seed {seed}, task {number}");
            }
        });
    }
}

/// Tiles of a matrix, whole rows, and parts of any kind: most accesses are sorted by a grid, which changes on the way.
#[test]
fn tiles_are_sorted_and_nothing_is_lost() {
    for seed in 3000..3025 {
        let mut random = Random(seed);
        let size = 1 + random.below(3);
        let tile = |random: &mut Random, size: u32| {
            let base = GmAddr(0x1000 * u64::from(1 + random.below(2)));
            let matrix = TensorView::dense(base, ElementType::F32, &[24, 30]);
            let (row, column) = (random.below(24 / size), random.below(30 / size));
            matrix.slice(0, row * size, size).slice(1, column * size, size)
        };
        with_map(1024, u64::from(u32::MAX) - 300, |mut map| {
            let mut oracle = Oracle::default();
            let mut starts = Vec::new();
            let mut watermark = 0_u64;
            for number in 0..500_u64 {
                // A second size later on, as in the next phase of a program.
                let size = if number < 250 { size } else { 4 - size };
                let views = (0..1 + random.below(3)).map(|_| {
                    let kind =
                        if random.below(3) == 0 { AccessKind::Write } else { AccessKind::Read };
                    let odd = random.below(30) == 0;
                    let base = GmAddr(0x1000);
                    let view = if odd { view(&mut random, base) } else { tile(&mut random, size) };
                    (view, kind)
                });
                let task = Task { views: views.collect(), derived: random.below(20) > 0 };
                starts.push(map.head());
                watermark = watermark.max(number.saturating_sub(80 + u64::from(random.below(40))));
                map.retire(starts[usize::try_from(watermark).unwrap()]);
                let mut expected = oracle.submit(&touches(&task, number), task.derived);
                expected.retain(|producer| *producer >= watermark);
                assert_eq!(derive(&mut map, &task, number), expected, "seed {seed}, task {number}");
            }
        });
    }
}
