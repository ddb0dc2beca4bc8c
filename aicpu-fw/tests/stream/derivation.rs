//! Derived edges against the oracle, on random programs with strided views that overlap.

use std::collections::BTreeSet;

use pto_abi::GmAddr;
use pto_abi::stream::{MapEntry, MapGrid, MapRow};
use pto_abi::sync::AtomicU32;
use pto_aicpu_fw::stream::map::{AccessKind, Hide, MapMemory, TensorAccess, TensorMap};
use pto_aicpu_fw::stream::region::Region;
use pto_graph::{ElementType, TensorView};

use crate::oracle::{Oracle, Touch, all_reachable};
use crate::random::{bytes_of, view};
use crate::split_mix::SplitMix64;

/// Tensors of a random program.
const TENSORS: u32 = 3;

struct Task {
    views: Vec<(TensorView<'static>, AccessKind)>,
    derived: bool,
}

fn program(random: &mut SplitMix64, tasks: u64, all_derived: bool) -> Vec<Task> {
    let task = |random: &mut SplitMix64| {
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
        derived: task.derived,
    };
    task.views.iter().map(touch).collect()
}

/// The map's answer for one task.
fn derive(map: &TensorMap<'_>, task: &Task, number: u64) -> BTreeSet<u64> {
    let mut producers = BTreeSet::new();
    for (view, kind) in &task.views {
        let region = Region::of(view);
        // Both ways lead to the same.
        let access = TensorAccess::simple(view, *kind).filter(|_| number.is_multiple_of(2));
        let access = access.unwrap_or(TensorAccess::new(view.base().0, *kind, &region));
        let found = |task| {
            producers.insert(task);
            Ok(())
        };
        if task.derived && !number.is_multiple_of(3) {
            map.derive(&access, number, (), found).unwrap();
            continue;
        }
        // Step by step; or without waiting.
        let position = map.locate(&access).unwrap();
        let hide = if task.derived { Hide::Covered } else { Hide::Nothing };
        if task.derived {
            map.look(&position, &access, (number, hide), (), found).unwrap();
        }
        map.note(&position, &access, (number, hide));
    }
    producers
}

fn with_map(entries: usize, first: u64, test: impl FnOnce(TensorMap<'_>)) {
    with_cells(8, entries, first, test);
}

fn with_cells(cell_count: usize, entries: usize, first: u64, test: impl FnOnce(TensorMap<'_>)) {
    let rows = |count| (0..count).map(|_| MapRow::default()).collect::<Vec<_>>();
    let (tensors, cells) = (rows(4), rows(cell_count));
    let grids: Vec<MapGrid> = (0..4).map(|_| MapGrid::default()).collect();
    let entries: Vec<MapEntry> = (0..entries).map(|_| MapEntry::default()).collect();
    let index = |count| (0..count).map(|_| AtomicU32::new(0)).collect::<Vec<_>>();
    let memory = MapMemory {
        tensors: &tensors,
        tensor_index: &index(4),
        cells: &cells,
        cell_index: &index(cell_count),
        grids: &grids,
        entries: &entries,
    };
    test(TensorMap::new(memory, first).unwrap());
}

#[test]
pub(crate) fn edges_are_those_of_the_oracle() {
    let mut direct = 0;
    for seed in 0..250 {
        let mut random = SplitMix64(seed);
        let tasks = 20 + u64::from(random.below(60));
        let program = program(&mut random, tasks, true);
        with_map(512, 0, |map| {
            let mut oracle = Oracle::default();
            let mut edges = BTreeSet::new();
            for (number, task) in (0..).zip(&program) {
                let expected = oracle.submit(&touches(task, number));
                let found = derive(&map, task, number);
                let accepts = oracle.accepts(number, &expected, &found);
                assert!(accepts, "seed {seed}, task {number}: {found:?}, not {expected:?}");
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
        let mut random = SplitMix64(seed);
        let program = program(&mut random, 40, false);
        with_map(512, 0, |map| {
            let mut oracle = Oracle::default();
            for (number, task) in (0..).zip(&program) {
                let expected = oracle.submit(&touches(task, number));
                let found = derive(&map, task, number);
                let accepts = oracle.accepts(number, &expected, &found);
                assert!(accepts, "seed {seed}, task {number}: {found:?}, not {expected:?}");
            }
        });
    }
}

/// A watermark that follows at random distances, a small ring, and positions near the wrap of 32 bits.
#[test]
fn retired_accesses_are_not_found_and_all_others_are() {
    for seed in 2000..2120 {
        let mut random = SplitMix64(seed);
        let program = program(&mut random, 300, true);
        let first = (1 << 32) - 200 + u64::from(random.below(100));
        with_map(64, first, |map| {
            let mut oracle = Oracle::default();
            let mut starts = Vec::new();
            let mut watermark = first;
            for (number, task) in (first..).zip(&program) {
                starts.push(map.head());
                watermark = watermark.max(number - 1 - u64::from(random.below(8)));
                map.retire(watermark, starts[usize::try_from(watermark - first).unwrap()]);
                assert!(map.has_room(6));
                let mut expected = oracle.submit(&touches(task, number));
                expected.retain(|producer| *producer >= watermark);
                let found = derive(&map, task, number);
                let accepts = oracle.accepts(number, &expected, &found);
                assert!(accepts, "seed {seed}, task {number}: {found:?}, not {expected:?}");
            }
        });
    }
}

/// The map finds what the oracle does, in 500 tasks from `first` on that use such parts, while old ones retire.
fn follow_the_oracle(
    map: &TensorMap<'_>,
    (seed, first): (u64, u64),
    random: &mut SplitMix64,
    part: impl Fn(&mut SplitMix64, u64) -> TensorView<'static>,
) {
    let mut oracle = Oracle::default();
    let mut starts = Vec::new();
    let mut watermark = first;
    for number in first..first + 500 {
        let views = (0..1 + random.below(3)).map(|_| {
            let kind = if random.below(3) == 0 { AccessKind::Write } else { AccessKind::Read };
            (part(random, number), kind)
        });
        let task = Task { views: views.collect(), derived: random.below(20) > 0 };
        starts.push(map.head());
        watermark = watermark.max(number - 80 - u64::from(random.below(40)));
        map.retire(watermark, starts[usize::try_from(watermark - first).unwrap()]);
        let mut expected = oracle.submit(&touches(&task, number));
        expected.retain(|producer| *producer >= watermark);
        let found = derive(map, &task, number);
        let accepts = oracle.accepts(number, &expected, &found);
        assert!(accepts, "seed {seed}, task {number}: {found:?}, not {expected:?}");
    }
}

/// Tiles of a matrix, whole rows, and parts of any kind: most accesses are sorted by a grid, which changes on the way.
#[test]
fn tiles_are_sorted_and_nothing_is_lost() {
    for seed in 3000..3025 {
        let mut random = SplitMix64(seed);
        let size = 1 + random.below(3);
        let tile = |random: &mut SplitMix64, size: u32| {
            let base = GmAddr(0x1000 * u64::from(1 + random.below(2)));
            let matrix = TensorView::dense(base, ElementType::F32, &[24, 30]);
            let (row, column) = (random.below(24 / size), random.below(30 / size));
            matrix.slice(0, row * size, size).slice(1, column * size, size)
        };
        let first = u64::from(u32::MAX) - 300;
        with_map(1024, first, |map| {
            follow_the_oracle(&map, (seed, first), &mut random, |random, number| {
                // A second size later on, as in the next phase of a program.
                let size = if number < first + 250 { size } else { 4 - size };
                let odd = random.below(30) == 0;
                if odd { view(random, GmAddr(0x1000)) } else { tile(random, size) }
            });
        });
    }
}

/// Tiles, and strips of them along a row and along a column, some of which end within a tile: as the steps of a factorisation have them.
/// With many cells each has a row of its own; with few they share rows.
#[test]
pub(crate) fn strips_meet_the_tiles_and_the_strips_that_cross_them() {
    for seed in 4000..4080 {
        let mut random = SplitMix64(seed);
        let size = 1 + random.below(3);
        let part = |random: &mut SplitMix64, extent: u32| {
            let first = random.below(extent / size);
            let most = (extent / size - first).min(if random.below(8) == 0 { 30 } else { 6 });
            let (start, length) = (first * size, (1 + random.below(most)) * size);
            // Not always at the edges of tiles.
            let off = if random.below(8) == 0 { random.below(length) } else { 0 };
            (start + off, length - off)
        };
        let form = |random: &mut SplitMix64| {
            let matrix = TensorView::dense(GmAddr(0x1000), ElementType::F32, &[24, 30]);
            let tile = (random.below(24 / size) * size, random.below(30 / size) * size);
            let (rows, columns) = match random.below(8) {
                0 | 1 => ((tile.0, size), part(random, 30)),
                2 | 3 => (part(random, 24), (tile.1, size)),
                4 if random.below(8) == 0 => (part(random, 24), part(random, 30)),
                _ => ((tile.0, size), (tile.1, size)),
            };
            matrix.slice(0, rows.0, rows.1).slice(1, columns.0, columns.1)
        };
        let cells = if seed % 2 == 0 { 8 } else { 1024 };
        let first = u64::from(u32::MAX) - 300;
        with_cells(cells, 1024, first, |map| {
            follow_the_oracle(&map, (seed, first), &mut random, |random, _| form(random));
        });
    }
}

/// Tasks are noted by the low halves of their numbers: 2^32 tasks later the number is that of a task under way.
#[test]
fn a_task_of_long_ago_is_not_taken_for_a_young_one() {
    let producers = |sweeps: u64| {
        let mut producers = BTreeSet::new();
        with_map(64, 0, |map| {
            let views =
                vec![(TensorView::dense(GmAddr(64), ElementType::F32, &[8]), AccessKind::Write)];
            let task = Task { views, derived: true };
            derive(&map, &task, 5);
            for number in (1..=sweeps).map(|sweep| sweep << 30) {
                map.retire(number, map.head());
                map.sweep(number);
            }
            let number = (1 << 32) + 6;
            map.retire(number - 4, map.head());
            producers = derive(&map, &task, number);
        });
        producers
    };
    assert_eq!(producers(4), BTreeSet::new());
    assert_eq!(producers(0), BTreeSet::from([(1 << 32) + 5]), "what the sweeps are for");
}
