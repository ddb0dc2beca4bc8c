//! What a session does again and again allocates nothing, on any thread: not the threads that submit and wait, not the service, not the firmware.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pto_host::graph::NoBuilders;
use pto_host::session::SessionOptions;
use pto_host::{Device, DeviceOptions, Hosting, RunOptions, Session, Stream, func};

/// The allocator of the system, and how often it was asked.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call goes to the allocator of the system, with what the caller has given.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps what `alloc` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: `at` is from `alloc` with this layout, as the caller says.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn session() -> Session {
    let hosting = Hosting::Pool { os_threads: 1.try_into().unwrap() };
    let options = DeviceOptions { aic: 2, aiv: 4, gm_bytes: 256 << 20, hosting };
    let mut device = Device::open_sim(options, NoBuilders).unwrap();
    device.register_library().unwrap();
    let run = RunOptions { aicpu_instances: 2, ..RunOptions::default() };
    // The firmware stays up, so that nothing is counted that it needs to come up again.
    let linger = Duration::from_secs(60);
    device.session(SessionOptions { run, linger, ..SessionOptions::default() }).unwrap()
}

/// How often `work` allocates: the least of several times. The host's queue of command objects grows only when the service is later
/// than it ever was.
fn allocations(mut work: impl FnMut()) -> u64 {
    let once = || {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        work();
        ALLOCATIONS.load(Ordering::Relaxed) - before
    };
    std::iter::repeat_with(once).take(8).min().unwrap_or(u64::MAX)
}

/// One test: a concurrent one would be counted as well.
#[test]
fn launches_and_recordings_allocate_nothing() {
    let session = session();
    let streams: Vec<Stream> = (0..64).map(|_| session.stream().unwrap()).collect();
    let first = &streams[0];
    first.begin_capture().unwrap();
    (0..100).for_each(|_| {
        first.launch(func::EMPTY_AIV, &[]).unwrap();
    });
    let recording = first.end_capture().unwrap();
    let replays = || {
        for _ in 0..100 {
            first.launch_recording(&recording, &[]).unwrap();
            first.synchronize().unwrap();
        }
    };
    assert_eq!(allocations(replays), 0, "100 launches of a recording of 100 launches");
    let launches = || {
        for (_, stream) in (0..20_000).zip(streams.iter().cycle()) {
            stream.launch(func::EMPTY_AIV, &[]).unwrap();
        }
        // One by one: a call of `Session::synchronize` takes a list of the streams.
        streams.iter().for_each(|stream| stream.synchronize().unwrap());
    };
    assert_eq!(allocations(launches), 0, "20,000 launches of 64 streams");
}
