//! Trace rings: what is written, what is read, what is missing.

extern crate std;
use super::{
    MAX_EXTRA, TraceCapacities, TraceCursor, TraceEvent, TraceKind, TraceLane, TraceOwner,
    TracePoint, TraceReader, WhenFull,
};
use std::vec::Vec;

fn point(time_ns: u64) -> TracePoint {
    TracePoint { time_ns, kind: TraceKind::READY, task: 7, extra: MAX_EXTRA }
}

fn with_ring(when_full: WhenFull, test: impl Fn(&TraceLane<'_>)) {
    let events: Vec<_> = (0..8).map(|_| TraceEvent::default()).collect();
    let (cursor, reader) = (TraceCursor::default(), TraceReader::default());
    let ends = (&cursor, &reader);
    for owner in [TraceOwner::Instance(0), TraceOwner::Core(0)] {
        let lane = TraceLane::new(owner, ends, &events, when_full).unwrap();
        lane.reset();
        test(&lane);
    }
    assert!(TraceLane::new(TraceOwner::Core(0), ends, &events[..7], when_full).is_none());
}

fn drained(lane: &TraceLane<'_>) -> (Vec<TracePoint>, u64) {
    let mut points = Vec::new();
    let missing = lane.read_all(|point, lap| {
        assert_eq!(lap, 127);
        points.push(point);
    });
    (points, missing)
}

#[test]
fn what_is_written_is_read() {
    with_ring(WhenFull::DropOldest, |lane| {
        (0..8).for_each(|time| assert!(lane.write(point(time), 127)));
        assert_eq!(drained(lane), ((0..8).map(point).collect(), 0));
        lane.reset();
        assert_eq!(drained(lane), (Vec::new(), 0));
    });
}

#[test]
fn a_full_ring_drops_its_oldest_events_and_counts_them() {
    with_ring(WhenFull::DropOldest, |lane| {
        (0..19).for_each(|time| assert!(lane.write(point(time), 127)));
        assert_eq!(drained(lane), ((11..19).map(point).collect(), 11));
    });
}

#[test]
fn a_full_ring_keeps_its_oldest_events_if_asked_to() {
    with_ring(WhenFull::KeepOldest, |lane| {
        (0..19).for_each(|time| assert!(lane.write(point(time), 127)));
        assert_eq!(drained(lane), ((0..8).map(point).collect(), 11));
    });
}

#[test]
fn a_full_ring_waits_for_its_reader_if_asked_to() {
    with_ring(WhenFull::Wait, |lane| {
        let mut read = Vec::new();
        let mut written = 0;
        for _ in 0..5 {
            while lane.write(point(written), 127) {
                written += 1;
            }
            assert_eq!(written - read.len() as u64, 8, "full, and nothing overwritten");
            assert_eq!(lane.read_new(|point, _| read.push(point)), (8, 0));
        }
        assert_eq!(read, (0..written).map(point).collect::<Vec<_>>());
        assert_eq!(drained(lane), (Vec::new(), 0), "all of it has been read");
        lane.refuse();
        assert_eq!((drained(lane).1, lane.refused()), (1, 1));
    });
}

#[test]
fn the_flags_say_what_a_full_ring_does() {
    for when_full in [WhenFull::DropOldest, WhenFull::KeepOldest, WhenFull::Wait] {
        assert_eq!(WhenFull::of(when_full.flags()), when_full);
    }
}

#[test]
fn a_kind_that_does_not_exist_is_missing_not_invented() {
    with_ring(WhenFull::DropOldest, |lane| {
        assert!(lane.write(point(1), 127));
        lane.event(0).unwrap().what.store(99, super::Ordering::Relaxed);
        assert_eq!(drained(lane), (Vec::new(), 1));
    });
}

#[test]
fn rings_follow_each_other_on_lines_of_their_own() {
    let asked = TraceCapacities { instances: 3, instance_events: 9, cores: 2, core_events: 1 };
    let header = asked.header();
    assert_eq!((header.instance_events, header.core_events), (16, 4));
    let at = |owner| header.ring(owner).unwrap();
    assert_eq!(at(TraceOwner::Instance(0)), (64, 16));
    assert_eq!(at(TraceOwner::Instance(2)), (64 + 2 * (128 + 256), 16));
    assert_eq!(at(TraceOwner::Core(1)), (64 + 3 * 384 + 192, 4));
    assert_eq!(header.bytes(), 64 + 3 * 384 + 2 * 192);
    assert_eq!((asked.bytes(), TraceCapacities::OFF.bytes()), (header.bytes(), 0));
    assert!(header.ring(TraceOwner::Instance(3)).is_none());
    assert!(header.ring(TraceOwner::Core(2)).is_none());
}
