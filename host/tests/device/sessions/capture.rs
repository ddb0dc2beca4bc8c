//! Capture: what was submitted becomes a command of its own.

use pto_host::RunOptions;
use pto_host::func;
use pto_host::session::{CommandKind, SessionError, SessionOptions};

use super::support::{LONG, device, on_each, options, pool, session};

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

/// A fault in a recording is that command's, with its post-mortem; what is behind it goes on.
#[test]
fn a_recording_that_fails_is_told_as_one_command() {
    let run = RunOptions { task_budget: std::time::Duration::from_millis(30), ..options().run };
    let session = device(pool()).session(SessionOptions { run, ..options() }).unwrap();
    let stream = session.stream().unwrap();
    stream.begin_capture().unwrap();
    stream.launch(func::EMPTY_AIV, &[]).unwrap();
    stream.launch(func::SPIN_AIV, &[2_000_000_000]).unwrap();
    stream.launch(func::EMPTY_AIV, &[]).unwrap();
    let recording = stream.end_capture().unwrap();
    stream.launch(func::EMPTY_AIV, &[]).unwrap();
    let number = stream.launch_recording(&recording, &[]).unwrap();
    stream.launch(func::EMPTY_AIV, &[]).unwrap();
    let error = stream.synchronize_within(LONG).unwrap_err();
    let SessionError::Failed(failure) = &error else { panic!("{error}") };
    assert_eq!((failure.command, failure.kind), (number, Some(CommandKind::REPLAY)), "{error}");
    assert!(error.to_string().contains("What to do"), "{error}");
    stream.synchronize_within(LONG).expect("it is told once");
    assert_eq!(stream.completed(), 3);
}

#[test]
fn what_a_captured_stream_does_not_take_is_refused() {
    let session = session();
    let (one, other) = (session.stream().unwrap(), session.stream().unwrap());
    let (event, foreign) = (session.event().unwrap(), session.event().unwrap());
    let byte = session.zeroed::<u8>(1).unwrap();
    other.record(&foreign).unwrap();
    assert!(one.end_capture().is_err());
    one.begin_capture().unwrap();
    let refused = [
        one.begin_capture().unwrap_err(),
        one.synchronize().unwrap_err(),
        one.query().map(drop).unwrap_err(),
        one.fill(byte.address(), 0, 1).map(drop).unwrap_err(),
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
        .expect("the event of a capture that is over keeps nobody waiting");
}
