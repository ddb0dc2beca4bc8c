//! Memory depends on the windows, not on the number of tasks; loops depend on data.

use pto_host::{Device, Work};

use super::support::{open, pool, small};

fn endless(device: &mut Device, tasks: u64, window: u32) -> u64 {
    let tensors = device.zeroed::<u32>(61 * 16).unwrap();
    let orch_args = [tasks, tensors.address().0];
    let mut options = small(window);
    options.capacities.stream.map_entries = 4 * window;
    let work = Work::Stream { builder: "endless", orch_args: &orch_args };
    let report = device.run(work, &options).unwrap();
    assert_eq!(report.tasks, tasks);
    let stream = report.stream.unwrap();
    assert_eq!(stream.tensors, tasks.div_ceil(100));
    stream.rings.iter().map(|ring| ring.high_water).sum()
}

/// Ten million in a release build; here one million, 244 laps of the window.
#[test]
fn a_long_stream_needs_no_more_than_a_short_one() {
    let mut device = open(pool(1));
    let short = endless(&mut device, 100_000, 4096);
    let free = device.describe().gm_free_bytes;
    let tasks = if cfg!(debug_assertions) { 1_000_000 } else { 10_000_000 };
    let long = endless(&mut device, tasks, 4096);
    assert_eq!(device.describe().gm_free_bytes, free);
    assert!(long <= short + short / 4, "{long} against {short}");
}

#[test]
fn a_loop_may_depend_on_what_the_device_computes() {
    for hosting in [pool(1), pool(2), pto_host::Hosting::Threads] {
        let mut device = open(hosting);
        let numbers = device.zeroed::<u32>(32).unwrap();
        let orch_args = [1000, numbers.address().0];
        let work = Work::Stream { builder: "loop", orch_args: &orch_args };
        let report = device.run(work, &small(8)).unwrap();
        // x = 31 x + x, from 1 until it is above 1000.
        assert_eq!((numbers.read().unwrap()[0], report.tasks), (1024, 4));
    }
}

/// What a run says that it would have needed is enough for it, and is said of every ring that was used.
#[test]
fn what_is_needed_suffices() {
    let mut device = open(pool(1));
    let tensors = device.zeroed::<u32>(3 * 16 * 24).unwrap();
    let orch_args = [3, 20, tensors.address().0];
    let work = Work::Stream { builder: "random", orch_args: &orch_args };
    let report = device.run(work, &small(256)).unwrap();
    let rings = report.stream.unwrap().rings;
    for ring in rings.iter().filter(|ring| ring.high_water > 0) {
        assert!((1..=ring.capacity).contains(&ring.needed), "{ring:?}");
    }
    let needed = |name: &str| rings.iter().find(|ring| ring.name == name).unwrap().needed;
    let window = u32::try_from(needed("window").next_power_of_two()).unwrap();
    let mut options = small(window);
    options.capacities.arg_words = needed("arguments") - u64::from(window);
    options.capacities.edges = needed("edges");
    options.capacities.stream.heap_bytes = needed("heap 1").max(needed("heap 2"));
    assert_eq!(device.run(work, &options).unwrap().tasks, report.tasks);
}
