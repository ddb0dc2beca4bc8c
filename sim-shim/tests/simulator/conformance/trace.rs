//! A run that waits for its host to read the trace rings, and whose host does not: `STALL_TRACE`, not a hang.

use pto_abi::Fault;
use pto_abi::kinds::RunFlags;
use pto_abi::runtime::region;
use pto_abi::trace::{TraceCapacities, TraceOwner, WhenFull};
use pto_sim_shim::Hosting;

use super::dag::Dag;
use super::ways;
use crate::common::{Device, LaunchOptions, hostings};

const RINGS: TraceCapacities =
    TraceCapacities { instances: 4, instance_events: 16, cores: 18, core_events: 16 };

fn with_rings(device: &Device, flags: RunFlags) {
    let mut config = device.arena.config();
    config.flags |= flags.bits();
    device.arena.set_config(&config);
}

#[test]
fn a_host_that_reads_nothing_is_a_fault_in_every_way_of_hosting() {
    // In virtual time the host is one that the machine knows: `tests/system/troubles.rs`.
    for hosting in hostings().into_iter().filter(|way| !matches!(way, Hosting::Virtual(_))) {
        let mut options = LaunchOptions { stall_budget_ms: 400, ..ways::options() };
        options.capacities.trace = RINGS;
        let mut device = ways::device(hosting, options);
        let dag = Dag::random(51, 200);
        let number = dag.register();
        let run = |device: &mut Device, when_full: WhenFull| {
            dag.reset();
            let tamper = |device: &Device| with_rings(device, when_full.flags());
            device.run_tampered("dag", &[number], tamper)
        };
        let outcome = run(&mut device, WhenFull::Wait);
        let epitaph = device.arena.epitaph();
        assert_eq!(outcome.fault, Some(Fault::STALL_TRACE), "{hosting}: {epitaph:?}");
        assert!(!outcome.arena_lost, "{hosting}: everybody returned");
        assert_eq!((epitaph.since_ns, epitaph.detail), (200_000_000, [0, 16]), "{hosting}");
        let at = device.arena.regions()[region::TRACE];
        let lane = device.arena.trace_lane(at, TraceOwner::Instance(0), WhenFull::Wait).unwrap();
        assert!(lane.refused() > 0, "{hosting}: what was not taken is counted");
        // The next run drops what its rings cannot hold, and succeeds.
        assert_eq!(run(&mut device, WhenFull::DropOldest).fault, None, "{hosting}");
        dag.check();
    }
}
