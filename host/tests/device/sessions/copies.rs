//! Copies in virtual time: they take the time that the profile says, concurrently with kernels and with copies in another direction.

use std::time::Duration;

use pto_host::session::{HostBuffer, StreamOptions};
use pto_host::{Session, Stream, func};

use super::support::{stepped, virtual_time};

const BYTES: usize = 16 << 20;
/// 2 us, and 42 us for each MiB.
const TO_DEVICE: Duration = Duration::from_micros(2 + 16 * 42);
/// Iterations of a kernel of 1 ms and a little.
const MILLISECOND: u64 = 250_000;

/// What is submitted to a session of this seed, and how long it takes until all is over.
fn makespan(seed: u64, submit: impl Fn(&Session)) -> Duration {
    let session = stepped(virtual_time(seed), seed);
    submit(&session);
    session.synchronize().unwrap();
    session.now()
}

fn copy_in(session: &Session, stream: &Stream) {
    let to = session.zeroed::<u8>(BYTES).unwrap();
    stream.copy_to_device(to.address(), vec![1; BYTES]).unwrap();
}

fn copy_out(session: &Session, stream: &Stream) {
    let from = session.zeroed::<u8>(BYTES).unwrap();
    stream.copy_from_device(from.address(), &HostBuffer::new(BYTES).unwrap()).unwrap();
}

#[test]
fn a_copy_takes_the_time_of_its_bytes() {
    let session = stepped(virtual_time(1), 1);
    let stream = session.stream().unwrap();
    let (before, after) = (session.event().unwrap(), session.event().unwrap());
    stream.record(&before).unwrap();
    copy_in(&session, &stream);
    stream.record(&after).unwrap();
    let small = session.zeroed::<u8>(8).unwrap();
    stream.fill(small.address(), 1, 8).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(after.since(&before), Some(TO_DEVICE));
    assert_eq!(session.now(), TO_DEVICE + Duration::from_nanos(2001));
}

/// Whatever is begun first.
#[test]
fn copies_overlap_with_kernels_and_with_copies_the_other_way() {
    for seed in 0..8 {
        let kernel = |stream: &Stream| stream.launch(func::SPIN_AIV, &[MILLISECOND]).unwrap();
        let of = |submit: &dyn Fn(&Session, [&Stream; 2])| {
            makespan(seed, |session| {
                submit(session, [&session.stream().unwrap(), &session.stream().unwrap()]);
            })
        };
        let alone = of(&|_, [one, _]| {
            kernel(one);
        });
        let concurrent = of(&|session, [one, other]| {
            kernel(one);
            copy_in(session, other);
        });
        assert_eq!(concurrent, alone, "seed {seed}");
        let in_order = of(&|session, [one, _]| {
            kernel(one);
            copy_in(session, one);
        });
        assert_eq!(in_order, alone + TO_DEVICE, "seed {seed}");
        let both_ways = of(&|session, [one, other]| {
            copy_in(session, one);
            copy_out(session, other);
        });
        assert_eq!(both_ways, TO_DEVICE, "seed {seed}");
        let one_way = of(&|session, [one, other]| {
            copy_in(session, one);
            copy_in(session, other);
        });
        assert_eq!(one_way, 2 * TO_DEVICE, "seed {seed}");
    }
}

/// A wait that no command meets ends at its time, also during a copy.
#[test]
fn a_wait_ends_before_a_long_copy() {
    let session = stepped(virtual_time(3), 3);
    let wait_budget = Some(Duration::from_micros(50));
    let options = StreamOptions { wait_budget, ..StreamOptions::default() };
    let (waits, copies) = (session.stream_with(options).unwrap(), session.stream().unwrap());
    let never = session.event().unwrap();
    let ended = session.event().unwrap();
    waits.wait_next(&never).unwrap();
    waits.record(&ended).unwrap();
    copy_in(&session, &copies);
    assert!(waits.synchronize().is_err());
    assert_eq!(ended.time(), wait_budget);
    copies.synchronize().unwrap();
    assert_eq!(session.now(), TO_DEVICE);
}
