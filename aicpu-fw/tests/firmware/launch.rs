//! `Launch::accept`: every field of what the host claims, wrong in turn, gives the fault that names it.

use pto_abi::arena::Arena;
use pto_abi::layout::LAYOUT_HASH;
use pto_abi::limits::MAX_ARGS;
use pto_abi::runtime::{
    ABI_MINOR, RUNTIME_MAGIC, Region, RunConfig, Runtime, RuntimeHeader, WorkerEntry, region,
};
use pto_abi::{BuildMode, CoreKind, FanoutStrategy, Fault, GmAddr, RuntimeVariant};
use pto_aicpu_fw::blame::Blame;
use pto_aicpu_fw::{Launch, instance};

use crate::arena::{CAPACITIES, with_arena};

/// What the firmware says of a launch that `tamper` has changed.
fn refusal(tamper: impl FnOnce(&Arena<'_>)) -> Option<Blame> {
    with_arena(|arena| {
        tamper(&arena);
        Launch::accept(arena).err()
    })
}

#[track_caller]
fn check_refused(expected: Fault, detail: Option<[u64; 2]>, tamper: impl FnOnce(&Arena<'_>)) {
    let blame = refusal(tamper).unwrap_or_else(|| panic!("accepted; {expected:?} expected"));
    assert_eq!(blame.fault, expected);
    if let Some(detail) = detail {
        assert_eq!(blame.detail, detail, "{expected:?}");
    }
}

#[test]
fn what_is_right_is_accepted_as_it_is() {
    with_arena(|arena| {
        let launch = Launch::accept(arena).unwrap();
        assert_eq!(launch.variant, RuntimeVariant::AICPU_BUILD_GRAPH);
        assert_eq!(launch.build_mode, BuildMode::CONCURRENT);
        assert_eq!(launch.fanout, FanoutStrategy::LOCK_FREE);
        assert_eq!((launch.run_epoch, launch.bring_up_epoch, launch.builder), (5, 2, 99));
        let budgets = launch.budgets;
        assert_eq!((budgets.task_ns, budgets.stall_ns, budgets.run_ns), (1, 2, 4));
        assert_eq!(launch.bring_up_budget_ns, 3);
        assert_eq!(launch.state.tasks.len(), CAPACITIES.tasks as usize);
        // Arguments, a word of context a task, and what the streaming builder's ring runs on into.
        assert_eq!(launch.state.payloads.len(), 32 + 8 + MAX_ARGS);
        assert_eq!(launch.has_kind(), [true, true]);
        let shares: Vec<Vec<u32>> = (0..3).map(|i| launch.share(i).collect()).collect();
        assert_eq!(shares, [vec![], vec![0, 3, 4], vec![1, 2, 5, 6, 7, 8]]);
    });
}

#[test]
fn instance_0_schedules_where_the_host_builds() {
    with_arena(|arena| {
        let variant = RuntimeVariant::HOST_BUILD_GRAPH.get();
        arena.set_config(&RunConfig { variant, ..arena.config() });
        let launch = Launch::accept(arena).unwrap();
        let shares: Vec<Vec<u32>> = (0..3).map(|i| launch.share(i).collect()).collect();
        assert_eq!(shares, [[0, 3, 4], [1, 5, 6], [2, 7, 8]], "clusters stay together");
    });
}

#[test]
fn every_field_of_the_header() {
    let total = with_arena(|arena| arena.window().bytes());
    let runtime = size_of::<Runtime>() as u64;
    let minor = u64::from(ABI_MINOR);
    type Change = fn(&mut RuntimeHeader);
    let cases: &[(Fault, Change, [u64; 2])] = &[
        (Fault::RUNTIME_MAGIC, |h| h.magic += 1, [RUNTIME_MAGIC + 1, RUNTIME_MAGIC]),
        (Fault::RUNTIME_ABI_MAJOR, |h| h.abi_major += 1, [2, 1]),
        (Fault::RUNTIME_ABI_MAJOR, |h| h.abi_major = 0, [0, 1]),
        (Fault::RUNTIME_ABI_MINOR, |h| h.abi_minor += 1, [minor + 1, minor]),
        (Fault::RUNTIME_HEADER_BYTES, |h| h.header_bytes -= 64, [runtime - 64, runtime]),
        (Fault::RUNTIME_LAYOUT_HASH, |h| h.layout_hash = 0, [0, LAYOUT_HASH]),
        (Fault::RUNTIME_TOTAL_BYTES, |h| h.total_bytes -= 64, [total - 64, total]),
        (Fault::RUNTIME_TOTAL_BYTES, |h| h.total_bytes += 64, [total + 64, total]),
        (Fault::RUNTIME_ARENA_ADDRESS, |h| h.arena_address = GmAddr::NULL, [0, 0x8000_1000]),
        (Fault::RUNTIME_GM_WINDOW, |h| h.gm_address.0 += 64, [0x8000_0040, 0x8000_0000]),
        (Fault::RUNTIME_GM_WINDOW, |h| h.gm_bytes += 64, [total + 8256, total + 8192]),
        (Fault::RUNTIME_RUN_EPOCH, |h| h.run_epoch = 0, [0, 1]),
        (Fault::RUNTIME_BRING_UP_EPOCH, |h| h.bring_up_epoch = 0, [0, 1]),
    ];
    for (fault, change, detail) in cases {
        check_refused(*fault, Some(*detail), |arena| {
            let mut header = arena.header();
            change(&mut header);
            arena.set_header(&header);
        });
    }
}

#[test]
fn every_field_of_the_configuration() {
    type Change = fn(&mut RunConfig);
    let cases: &[(Fault, Change, [u64; 2])] = &[
        (Fault::RUNTIME_VARIANT, |c| c.variant = 0, [0, 0]),
        (Fault::RUNTIME_VARIANT, |c| c.variant = 4, [4, 0]),
        (Fault::RUNTIME_BUILD_MODE, |c| c.build_mode = 2, [2, 0]),
        (Fault::RUNTIME_FANOUT, |c| c.fanout = 2, [2, 0]),
        (Fault::RUNTIME_FLAGS, |c| c.flags |= 1 << 31, [1 << 31 | 2, 0]),
        (Fault::RUNTIME_AICPU_INSTANCES, |c| c.aicpu_instances = 0, [0, 2]),
        (Fault::RUNTIME_AICPU_INSTANCES, |c| c.aicpu_instances = 1, [1, 2]),
        (Fault::RUNTIME_AICPU_INSTANCES, |c| c.aicpu_instances = 17, [17, 16]),
        (Fault::RUNTIME_WORKER_COUNT, |c| c.worker_count = 0, [0, 1]),
        (Fault::RUNTIME_WORKER_COUNT, |c| c.worker_count = 129, [129, 128]),
        (Fault::RUNTIME_BUDGETS, |c| c.task_budget_ns = 0, [0, 1]),
        (Fault::RUNTIME_BUDGETS, |c| c.stall_budget_ns = 0, [0, 1]),
        (Fault::RUNTIME_BUDGETS, |c| c.bring_up_budget_ns = 0, [0, 1]),
        // Three clusters, four schedulers.
        (Fault::SCHEDULE_NO_CORES, |c| c.aicpu_instances = 5, [3, 4]),
    ];
    for (fault, change, detail) in cases {
        check_refused(*fault, Some(*detail), |arena| {
            let mut config = arena.config();
            change(&mut config);
            arena.set_config(&config);
        });
    }
    // One instance suffices where the host builds; no run budget means no limit.
    let variant = RuntimeVariant::HOST_BUILD_GRAPH.get();
    let alone = |config| RunConfig { variant, aicpu_instances: 1, run_budget_ns: 0, ..config };
    assert_eq!(refusal(|arena| arena.set_config(&alone(arena.config()))), None);
}

#[test]
fn every_region() {
    const FAULTS: [Fault; region::COUNT] = [
        Fault::RUNTIME_REGION_TASKS,
        Fault::RUNTIME_REGION_PAYLOADS,
        Fault::RUNTIME_REGION_EDGES,
        Fault::RUNTIME_REGION_READY,
        Fault::RUNTIME_REGION_LOGS,
        Fault::RUNTIME_REGION_GRAPH,
        Fault::RUNTIME_REGION_TRACE,
        Fault::RUNTIME_REGION_STREAM,
    ];
    let total = with_arena(|arena| arena.window().bytes());
    let tamper = |index: usize, change: &dyn Fn(&mut Region)| {
        let refused = refusal(|arena| {
            let mut regions = arena.regions();
            change(&mut regions[index]);
            arena.set_regions(&regions);
        });
        refused.map(|blame| blame.fault)
    };
    for (index, fault) in FAULTS.into_iter().enumerate() {
        let refused = Some(fault);
        assert_eq!(tamper(index, &|r| r.offset = total), refused, "past the arena");
        assert_eq!(tamper(index, &|r| r.bytes = total), refused, "larger than the arena");
        assert_eq!(tamper(index, &|r| r.offset = u64::MAX - 63), refused, "wraps");
        assert_eq!(tamper(index, &|r| r.bytes = u64::MAX - 63), refused, "wraps");
        assert_eq!(tamper(index, &|r| r.offset = 0), refused, "on the header");
        let last_byte = size_of::<Runtime>() as u64 - 1;
        assert_eq!(tamper(index, &|r| r.offset = last_byte), refused, "on the handshake lines");
        if index != region::GRAPH {
            // The image is read by copies and checked when it is loaded.
            assert_eq!(
                tamper(index, &|r| (r.offset, r.bytes) = (r.offset + 4, r.bytes - 4)),
                refused,
                "misaligned"
            );
        }
    }
    for index in [region::TASKS, region::PAYLOADS, region::EDGES] {
        assert_eq!(tamper(index, &|r| r.bytes -= 4), Some(FAULTS[index]), "half an element");
    }
    assert_eq!(tamper(region::READY, &|r| r.bytes /= 2), Some(Fault::RUNTIME_REGION_READY));
    assert_eq!(tamper(region::READY, &|r| r.bytes = 0), Some(Fault::RUNTIME_REGION_READY));
    assert_eq!(tamper(region::LOGS, &|r| r.bytes = 0), Some(Fault::RUNTIME_REGION_LOGS));
    // Ring 0 is aligned whatever the size; those after it are not.
    assert_eq!(tamper(region::LOGS, &|r| r.bytes -= 16 * 32), Some(Fault::RUNTIME_REGION_LOGS));
    assert_eq!(tamper(region::TRACE, &|r| r.bytes -= 64), Some(Fault::RUNTIME_REGION_TRACE));
    assert_eq!(tamper(region::TRACE, &|r| r.bytes = 8), Some(Fault::RUNTIME_REGION_TRACE));
    // Regions of no bytes are nowhere.
    let nothing = |r: &mut Region| *r = Region { offset: 0, bytes: 0 };
    for index in [region::PAYLOADS, region::EDGES, region::GRAPH, region::TRACE, region::STREAM] {
        assert_eq!(tamper(index, &nothing), None);
    }
}

#[test]
fn regions_that_overlap() {
    // The graph image in the logs; a line that the payloads share with the tasks before them.
    check_refused(Fault::RUNTIME_REGIONS_OVERLAP, Some([4, 5]), |arena| {
        let mut regions = arena.regions();
        regions[region::GRAPH].offset = regions[region::LOGS].offset;
        arena.set_regions(&regions);
    });
    check_refused(Fault::RUNTIME_REGIONS_OVERLAP, Some([0, 1]), |arena| {
        let mut regions = arena.regions();
        regions[region::PAYLOADS].offset -= 8;
        arena.set_regions(&regions);
    });
}

#[test]
fn reserved_words_of_the_orchestration() {
    for word in [0, 13] {
        check_refused(Fault::RUNTIME_ORCH_RESERVED, Some([7, 0]), |arena| {
            let mut orch = arena.orch_args();
            orch.reserved[word] = 7;
            arena.set_orch_args(&orch);
        });
    }
}

#[test]
fn more_tasks_than_the_ready_queues_hold() {
    // 8 tasks need 8 slots in each queue; 16 lines of tasks are claimed by taking in the payloads.
    check_refused(Fault::RUNTIME_REGION_READY, None, |arena| {
        let mut regions = arena.regions();
        regions[region::TASKS].bytes += 64;
        arena.set_regions(&regions);
    });
}

#[test]
fn every_field_of_the_worker_table() {
    let cases = [
        (4, WorkerEntry { kind: 2, cluster: 0 }, 2),
        (4, WorkerEntry { kind: 256, cluster: 0 }, 256),
        (0, WorkerEntry { kind: u32::MAX, cluster: 0 }, u64::from(u32::MAX)),
        (8, WorkerEntry { kind: 1, cluster: 0 }, 0),
        (2, WorkerEntry { kind: 0, cluster: 1 }, 1),
        (8, WorkerEntry { kind: 1, cluster: 128 }, 128),
        (8, WorkerEntry { kind: 1, cluster: u32::MAX }, u64::from(u32::MAX)),
    ];
    for (worker, entry, found) in cases {
        let blame = refusal(|arena| arena.set_worker_entry(worker, &entry)).unwrap();
        assert_eq!(blame.fault, Fault::RUNTIME_WORKER_ENTRY);
        assert_eq!((blame.worker as usize, blame.detail), (worker, [found, 0]));
    }
    // Cluster 3 is empty.
    let gap = |arena: &Arena<'_>| arena.set_worker_entry(8, &WorkerEntry { kind: 1, cluster: 4 });
    check_refused(Fault::RUNTIME_WORKER_ENTRY, Some([3, 0]), gap);
}

#[test]
fn the_count_of_orchestration_words() {
    let counts =
        [(128, 0), (100, 28), (0, 128), (129, 0), (100, 29), (0, 129), (u32::MAX, u32::MAX)];
    for (program, group) in counts {
        let tamper = |arena: &Arena<'_>| {
            let mut orch = arena.orch_args();
            (orch.orch_argc, orch.group_argc) = (program, group);
            arena.set_orch_args(&orch);
        };
        let words = u64::from(program) + u64::from(group);
        if words > 128 {
            check_refused(Fault::RUNTIME_ORCH_ARGC, Some([words, 128]), tamper);
        } else {
            assert_eq!(refusal(tamper), None);
        }
    }
}

#[test]
fn an_arena_must_hold_a_runtime() {
    with_arena(|arena| {
        let (gm, at) = (arena.gm(), arena.window().address());
        let runtime = size_of::<Runtime>() as u64;
        assert!(Arena::new(gm, at, runtime).is_some());
        assert!(Arena::new(gm, at, runtime - 1).is_none(), "too small");
        assert!(Arena::new(gm, at.offset(8), runtime).is_none(), "misaligned");
        assert!(Arena::new(gm, GmAddr(0), runtime).is_none(), "before GM");
        assert!(Arena::new(gm, at, gm.bytes()).is_none(), "ends past GM");
        assert!(Arena::new(gm, GmAddr(u64::MAX - 63), runtime).is_none(), "wraps");
    });
}

#[test]
fn a_refused_launch_leaves_an_epitaph_that_names_the_first_refusal() {
    with_arena(|arena| {
        arena.set_worker_entry(4, &WorkerEntry { kind: 9, cluster: 0 });
        let blame = Launch::accept(arena).err().unwrap();
        instance::refuse(&arena, &blame, 2, 77);
        instance::refuse(&arena, &Blame::of(Fault::RUNTIME_MAGIC), 1, 78);
        assert_eq!(arena.fault().first(), Some(Fault::RUNTIME_WORKER_ENTRY));
        assert!(arena.fault().epitaph_is_sealed());
        let epitaph = arena.epitaph();
        assert_eq!(epitaph.fault, Fault::RUNTIME_WORKER_ENTRY.code());
        assert_eq!((epitaph.instance, epitaph.core, epitaph.time_ns), (2, 4, 77));
        assert_eq!(epitaph.detail, [9, 0]);
    });
}

#[test]
fn a_device_with_one_kind_of_core_says_so() {
    with_arena(|arena| {
        arena.set_config(&RunConfig { worker_count: 3, ..arena.config() });
        let launch = Launch::accept(arena).unwrap();
        assert_eq!(launch.has_kind(), [true, false]);
        assert_eq!(launch.workers.kind(0), Some(CoreKind::AIC));
        assert_eq!(launch.workers.kind(3), None);
    });
}
