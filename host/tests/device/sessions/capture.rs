//! Capture: what was submitted becomes a command of its own.

use pto_host::abi::CoreKind;
use pto_host::graph::{GraphBuilder, TaskSpec};
use pto_host::{HostGraph, RunOptions, func};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use pto_host::session::{
    CommandKind, HostBuffer, Reduction, SessionError, SessionOptions, Stream, ValueTest,
};
use pto_host::workloads::tile::DType;

use super::support::{LONG, device, far_beyond, on_each, options, pool, session};

#[test]
fn a_recording_of_two_streams_is_launched_again_and_again() {
    on_each(|session, mode| {
        let (one, other) = (session.stream().unwrap(), session.stream().unwrap());
        let ones = session.upload(&[1.0_f32; 64]).unwrap();
        let (a, b) = (session.zeroed::<f32>(64).unwrap(), session.zeroed::<f32>(64).unwrap());
        let (fork, join) = (session.event().unwrap(), session.event().unwrap());
        let [a_at, b_at, one_at] = [a.address().0, b.address().0, ones.address().0];
        one.begin_capture().unwrap();
        one.launch(func::ADD, &[a_at, one_at, a_at, 64]).unwrap();
        one.record(&fork).unwrap();
        other.wait(&fork).unwrap();
        other.launch(func::ADD, &[b_at, a_at, b_at, 64]).unwrap();
        other.record(&join).unwrap();
        one.wait(&join).unwrap();
        one.launch(func::ADD, &[a_at, one_at, a_at, 64]).unwrap();
        let recording = one.end_capture().unwrap();
        assert!(!one.is_captured() && !other.is_captured() && recording.launches() == 3);
        assert_eq!(a.read().unwrap(), [0.0; 64], "{mode}: nothing was done");
        for _ in 0..3 {
            one.launch_recording(&recording, &[]).unwrap();
        }
        one.synchronize_within(LONG).unwrap();
        assert_eq!((a.read().unwrap()[0], b.read().unwrap()[0]), (6.0, 1.0 + 3.0 + 5.0), "{mode}");
        let bound = session.zeroed::<f32>(64).unwrap();
        let bindings = [(a.address(), bound.address())];
        one.launch_recording(&recording, &bindings).unwrap();
        one.synchronize_within(LONG).unwrap();
        assert_eq!((a.read().unwrap()[0], bound.read().unwrap()[0]), (6.0, 2.0), "{mode}");
    });
}

/// The diamond is begun by the firmware, and the fan, in which six tasks follow one, by the host; long recordings do not need a slot for each task.
#[test]
fn recordings_of_every_shape_are_launched() {
    on_each(|session, mode| {
        let stream = session.stream().unwrap();
        let ones = session.upload(&[1.0_f32; 64]).unwrap();
        let sums = session.zeroed::<f32>(64).unwrap();
        let [one_at, sum_at] = [ones.address().0, sums.address().0];
        let add = || stream.launch(func::ADD, &[sum_at, one_at, sum_at, 64]).unwrap();
        let mut done = 0.0;
        for launches in [1_u16, 100, 3000] {
            stream.begin_capture().unwrap();
            (0..launches).for_each(|_| {
                add();
            });
            let recording = stream.end_capture().unwrap();
            (0..3).for_each(|_| {
                add();
                stream.launch_recording(&recording, &[]).unwrap();
                add();
            });
            stream.synchronize_within(LONG).unwrap();
            done += 3.0 * (f32::from(launches) + 2.0);
            assert_eq!(sums.read().unwrap(), [done; 64], "{mode}, {launches} launches");
        }
        let others: Vec<_> = (0..6).map(|_| session.stream().unwrap()).collect();
        let (fork, joins) =
            (session.event().unwrap(), others.iter().map(|_| session.event().unwrap()));
        stream.begin_capture().unwrap();
        add();
        stream.record(&fork).unwrap();
        let parts: Vec<_> = others.iter().map(|_| session.zeroed::<f32>(64).unwrap()).collect();
        for ((other, join), part) in others.iter().zip(joins).zip(&parts) {
            other.wait(&fork).unwrap();
            let part = part.address().0;
            other.launch(func::ADD, &[part, sum_at, part, 64]).unwrap();
            other.record(&join).unwrap();
            stream.wait(&join).unwrap();
        }
        let recording = stream.end_capture().unwrap();
        stream.launch_recording(&recording, &[]).unwrap();
        stream.synchronize_within(LONG).unwrap();
        for part in &parts {
            assert_eq!(part.read().unwrap(), [done + 1.0; 64], "{mode}");
        }
    });
}

/// A recording that the host runs makes the firmware return; one that the firmware begins does not.
#[test]
fn the_firmware_stays_up_for_recordings() {
    let linger = std::time::Duration::from_secs(30);
    let session = device(pool()).session(SessionOptions { linger, ..options() }).unwrap();
    let stream = session.stream().unwrap();
    stream.begin_capture().unwrap();
    for _ in 0..100 {
        stream.launch(func::EMPTY_AIV, &[]).unwrap();
    }
    let recording = stream.end_capture().unwrap();
    for _ in 0..50 {
        stream.launch(func::EMPTY_AIC, &[]).unwrap();
        stream.launch_recording(&recording, &[]).unwrap();
    }
    stream.synchronize_within(LONG).unwrap();
    assert_eq!(session.firmware_starts(), 1);
}

/// A fault in a recording is that command's, with its post-mortem; the next command goes on.
#[test]
fn a_recording_that_fails_is_reported_as_one_command() {
    let budget = Duration::from_millis(30);
    let run = RunOptions { task_budget: budget, ..options().run };
    let session = device(pool()).session(SessionOptions { run, ..options() }).unwrap();
    let stream = session.stream().unwrap();
    stream.begin_capture().unwrap();
    stream.launch(func::EMPTY_AIV, &[]).unwrap();
    stream.launch(func::SPIN_AIV, &[far_beyond(budget)]).unwrap();
    stream.launch(func::EMPTY_AIV, &[]).unwrap();
    let recording = stream.end_capture().unwrap();
    stream.launch(func::EMPTY_AIV, &[]).unwrap();
    let number = stream.launch_recording(&recording, &[]).unwrap().number();
    stream.launch(func::EMPTY_AIV, &[]).unwrap();
    let error = stream.synchronize_within(LONG).unwrap_err();
    let SessionError::Failed(failure) = &error else { panic!("{error}") };
    assert_eq!(
        (Some(failure.command), failure.kind),
        (number, Some(CommandKind::REPLAY)),
        "{error}"
    );
    assert!(error.to_string().contains("What to do"), "{error}");
    stream.synchronize_within(LONG).expect("it is reported once");
    assert_eq!(stream.completed(), 3);
}

#[test]
fn what_a_captured_stream_does_not_take_is_refused() {
    let session = session();
    let (one, other) = (session.stream().unwrap(), session.stream().unwrap());
    let (event, foreign) = (session.event().unwrap(), session.event().unwrap());
    let word = session.zeroed::<u64>(1).unwrap();
    other.record(&foreign).unwrap();
    assert!(one.end_capture().is_err());
    one.begin_capture().unwrap();
    let refused = [
        one.begin_capture().unwrap_err(),
        one.synchronize().unwrap_err(),
        one.query().map(drop).unwrap_err(),
        one.reset(&event).map(drop).unwrap_err(),
        one.wait_next(&event).map(drop).unwrap_err(),
        one.wait_within(&event, LONG).map(drop).unwrap_err(),
        one.wait_value_within(word.address(), ValueTest::EQUAL, 0, LONG).map(drop).unwrap_err(),
        one.call(|| ()).map(drop).unwrap_err(),
        session.barrier(&[&one]).map(drop).unwrap_err(),
        one.wait(&foreign).map(drop).unwrap_err(),
    ];
    for error in refused {
        assert!(matches!(error, SessionError::Capture { .. }), "{error}");
    }
    one.launch(func::EMPTY_AIV, &[]).unwrap();
    one.record(&event).unwrap();
    other.wait(&event).unwrap();
    other.launch(func::EMPTY_AIV, &[]).unwrap();
    let unjoined = one.end_capture().unwrap_err().to_string();
    assert!(unjoined.contains("stream 1: end_capture"), "{unjoined}");
    assert!(!one.is_captured() && !other.is_captured());
    other.wait(&event).unwrap();
    session
        .synchronize_within(LONG)
        .expect("no wait for the event of a capture lasts longer than the capture");
}

/// Copies, fills, reductions, functions, flags and graphs are in a recording together with launches, in their order, over two streams.
#[test]
fn every_kind_of_command_is_captured() {
    on_each(|session, mode| {
        let (one, other) = (session.stream().unwrap(), session.stream().unwrap());
        let (fork, join) = (session.event().unwrap(), session.event().unwrap());
        let [x, y, z] = [(); 3].map(|()| session.zeroed::<f32>(64).unwrap());
        let flag = session.notify().unwrap();
        let [x_at, y_at, z_at] = [x.address(), y.address(), z.address()];
        let (source, result) = (HostBuffer::new(256).unwrap(), HostBuffer::new(256).unwrap());
        let called = Arc::new(AtomicU32::new(0));
        let count = {
            let called = Arc::clone(&called);
            move || {
                called.fetch_add(1, Ordering::Relaxed);
            }
        };
        let image = session
            .with_device(|device| {
                HostGraph::build(device, &[], |graph| {
                    let args = [z_at.0, z_at.0, z_at.0, 64];
                    graph.submit(TaskSpec::new(func::ADD, CoreKind::AIV, &args), &[])?;
                    Ok(())
                })
            })
            .unwrap();
        let (image, sum) = (image.unwrap(), (Reduction::Sum, DType::F32));
        // z = 2 * (x + y + 2), where x comes from the host, and y is filled with 3.
        one.begin_capture().unwrap();
        one.copy_to_device(x_at, source.clone()).unwrap();
        one.record(&fork).unwrap();
        other.wait(&fork).unwrap();
        // Captured before what it waits for, and launched after it.
        one.wait_notify(&flag).unwrap();
        other.fill_elements(y_at, DType::F32, u64::from(3.0_f32.to_bits()), 256).unwrap();
        other.call_each(count).unwrap();
        other.notify(&flag).unwrap();
        other.record(&join).unwrap();
        one.wait(&join).unwrap();
        one.launch(func::ADD, &[x_at.0, y_at.0, z_at.0, 64]).unwrap();
        one.launch(func::ADD_SCALAR, &[z_at.0, u64::from(1.0_f32.to_bits()), z_at.0, 64]).unwrap();
        one.copy_on_device(z_at, x_at, 256).unwrap();
        one.fill_elements(z_at, DType::F32, u64::from(1.0_f32.to_bits()), 256).unwrap();
        one.reduce(sum, x_at, z_at, 256).unwrap();
        let ticket = one.run(image).unwrap();
        one.copy_from_device(z_at, &result).unwrap();
        let recording = one.end_capture().unwrap();
        assert_eq!(recording.launches(), 2, "{recording:?}");
        one.synchronize_within(LONG).unwrap();
        assert_eq!((called.load(Ordering::Relaxed), x.read().unwrap()[0]), (0, 0.0), "{mode}");
        for (times, value) in [(1, 5.0_f32), (2, 7.0)] {
            source.write(&value.to_le_bytes().repeat(64)).unwrap();
            one.launch_recording(&recording, &[]).unwrap();
            one.synchronize_within(LONG).unwrap();
            let expected = (2.0 * (value + 3.0 + 2.0)).to_le_bytes().repeat(64);
            assert_eq!(result.to_vec(), expected, "{mode}, launch {times}");
            assert_eq!(called.load(Ordering::Relaxed), times, "{mode}");
            assert!(ticket.take_report().is_some(), "{mode}");
        }
        // As a part of another recording, and with another x, which is copied to, read and copied from.
        let bound = session.zeroed::<f32>(64).unwrap();
        one.begin_capture().unwrap();
        one.launch_recording(&recording, &[(x_at, bound.address())]).unwrap();
        let outer = one.end_capture().unwrap();
        x.write(&[0.0; 64]).unwrap();
        source.write(&1.0_f32.to_le_bytes().repeat(64)).unwrap();
        one.launch_recording(&outer, &[]).unwrap();
        one.synchronize_within(LONG).unwrap();
        assert_eq!(result.to_vec(), 12.0_f32.to_le_bytes().repeat(64), "{mode}");
        assert_eq!((x.read().unwrap()[0], bound.read().unwrap()[0]), (0.0, 5.0), "{mode}");
        // What it copies to is looked at when it is launched.
        drop(bound);
        one.synchronize_within(LONG).unwrap();
        let gone = one.launch_recording(&outer, &[]).map(drop);
        assert!(gone.is_err(), "{mode}");
    });
}

/// A recording that does not fit the ring, or is bound to what cannot be, is refused before anything is done.
#[test]
fn recordings_that_cannot_be_launched_are_refused() {
    let session = device(pool()).session(SessionOptions { ring_entries: 64, ..options() }).unwrap();
    let stream = session.stream().unwrap();
    let bytes = session.zeroed::<u8>(64).unwrap();
    let captured = |stream: &Stream, fills: u8| {
        stream.begin_capture().unwrap();
        for byte in 0..fills {
            stream.fill(bytes.address(), byte + 1, 64).unwrap();
        }
        stream.end_capture().unwrap()
    };
    let (few, many) = (captured(&stream, 20), captured(&stream, 200));
    let refused = stream.launch_recording(&many, &[]).unwrap_err();
    assert!(matches!(refused, SessionError::Argument { .. }), "{refused}");
    assert_eq!(stream.completed(), 0);
    stream.launch_recording(&few, &[]).unwrap();
    stream.launch_recording(&few, &[]).unwrap();
    stream.synchronize_within(LONG).unwrap();
    assert_eq!((stream.completed(), bytes.read().unwrap()[0]), (40, 20));
    // The bound address of a word or a copy is checked as a direct one is.
    let words = session.zeroed::<u64>(2).unwrap();
    let word = words.address();
    let (to, from) = (bytes.address(), bytes.address().offset(32));
    stream.begin_capture().unwrap();
    stream.write_value(word, 7).unwrap();
    stream.copy_on_device(from, to, 32).unwrap();
    let bound = stream.end_capture().unwrap();
    for pair in [(word, word.offset(4)), (from, to.offset(8))] {
        assert!(stream.launch_recording(&bound, &[pair]).is_err(), "{pair:?}");
    }
    assert_eq!(stream.completed(), 40);
}
