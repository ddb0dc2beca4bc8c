//! Sessions on the device `a2a3`: a series of launches of the real image on the stand-in, with the session's state in the memory of the
//! device. Neither side sees what the other writes while a launch lasts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use pto_abi::{CoreKind, Fault};
use pto_host::graph::{GraphBuilder, TaskSpec};
use pto_host::session::{HostBuffer, Reduction, SessionError, ValueTest};
use pto_host::workloads::tile::DType;
use pto_host::{Device, HostGraph, RunOptions, Session, SessionOptions, func};

use crate::a2a3::{alone, inject, nothing_is_open, open};

/// No test waits longer.
const LONG: Duration = Duration::from_secs(120);

fn session_of(device: Device) -> Session {
    let run = RunOptions { aicpu_instances: 2, ..RunOptions::default() };
    let session = device.session(SessionOptions { run, ..SessionOptions::default() });
    session.unwrap_or_else(|error| panic!("{error}"))
}

fn device() -> Device {
    open().unwrap_or_else(|error| panic!("{error}"))
}

fn done(session: &Session) {
    session.synchronize_within(LONG).unwrap_or_else(|error| panic!("{error}"));
}

fn floats(value: f32) -> Vec<u8> {
    value.to_le_bytes().repeat(64)
}

/// Every kind of command, in streams that wait for each other.
#[test]
fn a_session_is_a_series_of_launches() {
    let _alone = alone();
    let session = session_of(device());
    let (adds, copies) = (session.stream().unwrap(), session.stream().unwrap());
    let (arrived, computed) = (session.event().unwrap(), session.event().unwrap());
    let [one, sum, other] = [(); 3].map(|()| session.zeroed::<f32>(64).unwrap());
    let word = session.zeroed::<u64>(2).unwrap();
    let calls = Arc::new(AtomicU32::new(0));
    copies.copy_to_device(one.address(), floats(1.0)).unwrap();
    copies.record(&arrived).unwrap();
    adds.wait(&arrived).unwrap();
    let (from, to) = (one.address().0, sum.address().0);
    for _ in 0..40 {
        adds.launch(func::ADD, &[from, to, to, 64]).unwrap();
    }
    adds.launch_blocks(func::EMPTY_AIV, 5, &[]).unwrap();
    adds.write_value(word.address(), 9).unwrap();
    adds.record(&computed).unwrap();
    copies.wait(&computed).unwrap();
    copies.wait_value(word.address(), ValueTest::EQUAL, 9).unwrap();
    let (result, called) = (HostBuffer::new(256).unwrap(), Arc::clone(&calls));
    copies.copy_from_device(sum.address(), &result).unwrap();
    copies.call(move || called.store(7, Ordering::Relaxed)).unwrap();
    copies.copy_on_device(sum.address(), other.address(), 256).unwrap();
    copies.reduce((Reduction::Sum, DType::F32), one.address(), other.address(), 256).unwrap();
    copies.fill(word.address().offset(8), 7, 8).unwrap();
    done(&session);
    assert_eq!(result.to_vec(), floats(40.0));
    assert_eq!(other.read().unwrap(), [41.0; 64]);
    assert_eq!(word.read().unwrap(), [9, 0x0707_0707_0707_0707]);
    assert_eq!(calls.load(Ordering::Relaxed), 7);
    assert!(computed.since(&arrived).is_some());
    let starts = session.firmware_starts();

    adds.begin_capture().unwrap();
    for _ in 0..6 {
        adds.launch(func::ADD, &[from, to, to, 64]).unwrap();
    }
    let recording = adds.end_capture().unwrap();
    for _ in 0..3 {
        adds.launch_recording(&recording, &[]).unwrap();
    }
    let graph = session
        .with_device(|device| {
            HostGraph::build(device, &[], |graph| {
                graph.submit(TaskSpec::new(func::ADD, CoreKind::AIV, &[from, to, to, 64]), &[])?;
                Ok(())
            })
        })
        .unwrap();
    adds.run(Arc::new(graph.unwrap())).unwrap();
    adds.launch(func::ADD, &[from, to, to, 64]).unwrap();
    done(&session);
    assert_eq!(sum.read().unwrap(), [60.0; 64]);
    assert!(session.firmware_starts() > starts, "each launch does what was submitted before it");
    drop((one, sum, other, word, adds, copies, arrived, computed));
    drop(session.close().expect("nobody else has the device"));
    nothing_is_open();
}

/// A launch may last for less than its stream needs: the firmware returns in time and comes up again, where it was.
#[test]
fn a_session_goes_on_over_launches_with_short_limits() {
    let _alone = alone();
    let budget = Duration::from_secs(3);
    let run = RunOptions { aicpu_instances: 2, run_budget: Some(budget), ..RunOptions::default() };
    // Of the launches, one is on its way at a time, and has half of the budget to end in.
    let options = SessionOptions { run, batch_launches: 1, ..SessionOptions::default() };
    let session = device().session(options).unwrap_or_else(|error| panic!("{error}"));
    let (stream, gate) = (session.stream().unwrap(), session.stream().unwrap());
    let event = session.event().unwrap();
    let sum = session.zeroed::<f32>(64).unwrap();
    let one = session.upload(&[1.0_f32; 64]).unwrap();
    let spun = |iterations: u64| {
        let start = Instant::now();
        stream.launch(func::SPIN_AIV, &[iterations]).unwrap();
        done(&session);
        start.elapsed()
    };
    // A tenth of the time in which launches are begun; together three times of it.
    let tenth = budget / 20;
    let mut iterations = 100_000;
    while spun(iterations) < tenth {
        iterations *= 2;
    }
    let (mut rounds, mut starts) = (0_u8, 0);
    // The machine may have been busy when the kernel was timed: then the next round has longer ones.
    while starts <= 2 && rounds < 12 {
        stream.wait_next(&event).unwrap();
        for _ in 0..30 {
            stream.launch(func::SPIN_AIV, &[iterations << rounds]).unwrap();
            let (from, to) = (one.address().0, sum.address().0);
            stream.launch(func::ADD, &[from, to, to, 64]).unwrap();
        }
        starts = session.firmware_starts();
        gate.record(&event).unwrap();
        done(&session);
        // One launch records the event, and one would do for the rest.
        starts = session.firmware_starts() - starts;
        rounds += 1;
    }
    assert_eq!(sum.read().unwrap(), [30.0 * f32::from(rounds); 64]);
    assert!(starts > 2, "{starts}");
    drop((stream, gate, event, sum, one));
    drop(session);
    nothing_is_open();
}

/// A device that is lost: its stream is told, and the device that was reset by force serves the session on.
#[test]
fn a_session_outlives_a_fault_of_the_device() {
    let _alone = alone();
    let session = session_of(device());
    let stream = session.stream().unwrap();
    stream.launch(func::EMPTY_AIV, &[]).unwrap();
    done(&session);
    inject("aicpu:507018");
    stream.launch(func::EMPTY_AIV, &[]).unwrap();
    let error = stream.synchronize_within(LONG).expect_err("the fault is told");
    assert!(matches!(error, SessionError::Failed(_)), "{error}");
    assert_eq!(error.fault(), Some(Fault::FW_LOST), "{error}");
    assert!(error.to_string().contains("reset by force, and works again"), "{error}");
    let sum = session.upload(&[1.0_f32; 64]).unwrap();
    let at = sum.address().0;
    stream.launch(func::ADD, &[at, at, at, 64]).unwrap();
    done(&session);
    assert_eq!(sum.read().unwrap(), [2.0; 64]);
    drop((stream, sum));
    drop(session);
    nothing_is_open();
}
