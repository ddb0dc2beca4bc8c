//! The typed view of an arena: the parts of a region do not overlap, and a new run starts clean.

use pto_abi::arena::{Arena, ArenaLayout, Capacities};
use pto_abi::runtime::region;
use pto_abi::sync::Ordering;
use pto_abi::{CoreKind, Fault, FuncId, GmAddr};

use crate::memory::{GM, with_gm};

fn with_arena(capacities: Capacities, test: impl FnOnce(Arena<'_>)) {
    let layout = ArenaLayout::plan(&capacities).unwrap();
    with_gm(layout.total_bytes, |gm| {
        let arena = Arena::new(gm, GM, layout.total_bytes).unwrap();
        arena.set_regions(&layout.regions);
        test(arena);
    });
}

/// Every size, small and odd ones above all: each queue and each ring is there, and is its own.
#[test]
fn queues_and_rings_of_every_size() {
    for tasks in [0, 1, 2, 3, 5, 8, 9, 100] {
        for log_entries in [0, 1, 2, 7] {
            let capacities = Capacities { tasks, log_entries, ..Capacities::default() };
            with_arena(capacities, |arena| {
                let [ready, logs] = [region::READY, region::LOGS].map(|r| arena.regions()[r]);
                for &kind in CoreKind::ALL {
                    let (ends, slots) = arena.ready_queue(ready, kind).unwrap();
                    assert!(slots.len() >= tasks as usize, "{tasks}");
                    let mark = u64::from(kind.get()) + 1;
                    ends.tail.store(mark, Ordering::Relaxed);
                    slots.iter().for_each(|slot| slot.store(mark, Ordering::Relaxed));
                }
                for &kind in CoreKind::ALL {
                    let (ends, slots) = arena.ready_queue(ready, kind).unwrap();
                    let mark = u64::from(kind.get()) + 1;
                    assert_eq!(ends.tail.load(Ordering::Relaxed), mark);
                    assert!(slots.iter().all(|slot| slot.load(Ordering::Relaxed) == mark));
                }
                for instance in 0..16 {
                    let ring = arena.log_ring(logs, instance).unwrap();
                    assert_eq!(ring.entries.len(), log_entries as usize);
                    ring.write(1, instance as u64, "x");
                }
                for instance in 0..16 {
                    let ring = arena.log_ring(logs, instance).unwrap();
                    assert_eq!(ring.written(), u64::from(log_entries > 0));
                    if let Some(entry) = ring.read(0) {
                        assert_eq!(entry.time_ns, instance as u64);
                    }
                }
                assert!(arena.log_ring(logs, 16).is_none());
            });
        }
    }
}

#[test]
fn a_new_run_starts_clean() {
    with_arena(Capacities::default(), |arena| {
        let progress = arena.progress();
        progress.build_done.store(1, Ordering::Relaxed);
        progress.outstanding.store(9, Ordering::Relaxed);
        assert!(arena.fault().raise(Fault::STALL_CORE));
        arena.fault().seal_epitaph();
        for line in arena.instances() {
            line.phase.store(2, Ordering::Relaxed);
            line.busy_cores.store(3, Ordering::Relaxed);
            for word in [&line.added, &line.published, &line.completed, &line.edges] {
                word.store(4, Ordering::Relaxed);
            }
            line.edges_satisfied.store(5, Ordering::Relaxed);
        }
        let ready = arena.regions()[region::READY];
        let (ends, _) = arena.ready_queue(ready, CoreKind::AIV).unwrap();
        ends.tail.store(77, Ordering::Relaxed);
        arena.workers()[3].worker.tasks_run.store(6, Ordering::Relaxed);
        arena.prepare_run();
        assert_eq!(progress.build_done.load(Ordering::Relaxed), 0);
        assert_eq!(progress.outstanding.load(Ordering::Relaxed), 0);
        assert!(arena.fault().first().is_none() && !arena.fault().epitaph_is_sealed());
        for line in arena.instances() {
            assert_eq!(line.phase.load(Ordering::Relaxed), 0);
            assert_eq!(line.busy_cores.load(Ordering::Relaxed), 0);
            let counts = [&line.added, &line.published, &line.completed, &line.edges];
            assert!(counts.iter().all(|word| word.load(Ordering::Relaxed) == 0));
            assert_eq!(line.edges_satisfied.load(Ordering::Relaxed), 0);
        }
        assert_eq!(ends.head.load(Ordering::Relaxed), 77, "positions go on, the queue is empty");
        let tasks_run = arena.workers()[3].worker.tasks_run.load(Ordering::Relaxed);
        assert_eq!(tasks_run, 6, "counted since bring-up");
    });
}

#[test]
fn kernels_are_found_by_func_id() {
    with_arena(Capacities::default(), |arena| {
        let mut table = [0; 1024];
        (table[0], table[1023]) = (0x40, 0x80);
        arena.set_kernel_addrs(&table);
        assert_eq!(arena.kernel_addr(FuncId(0)), GmAddr(0x40));
        assert_eq!(arena.kernel_addr(FuncId(1023)), GmAddr(0x80));
        assert!(arena.kernel_addr(FuncId(1)).is_null());
        assert!(
            arena.kernel_addr(FuncId(1024)).is_null()
                && arena.kernel_addr(FuncId(u16::MAX)).is_null()
        );
    });
}
