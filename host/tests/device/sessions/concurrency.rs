//! Threads that use one session at once, functions that panic, and functions that do what their own stream waits for.

use std::future::Future;
use std::panic::panic_any;
use std::pin::pin;
use std::sync::{Arc, Barrier, mpsc};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use pto_host::func;
use pto_host::session::{
    Drive, FailureCause, HostBuffer, MAX_STREAMS, OnFailure, Session, SessionError, SessionOptions,
    Stream, StreamOptions, Submitted, ValueTest,
};

use super::support::{LONG, device, on_each, options, pool, session};

/// A launch of the stream comes to its end, and does what it is asked.
fn check_works(session: &Session, stream: &Stream) {
    let value = session.upload(&[1.0_f32; 64]).unwrap();
    let at = value.address().0;
    stream.launch(func::ADD_SCALAR, &[at, 2.0_f32.to_bits().into(), at, 64]).unwrap();
    stream.synchronize_within(LONG).unwrap();
    assert_eq!(value.read().unwrap(), [3.0; 64]);
}

#[test]
fn of_threads_that_open_the_last_stream_one_has_it() {
    let few = SessionOptions { ring_entries: 32, ..options() };
    let session = device(pool()).session(few).unwrap();
    let others: Vec<_> = (1..MAX_STREAMS).map(|_| session.stream().unwrap()).collect();
    for _ in 0..10 {
        let together = Barrier::new(8);
        let open = || {
            together.wait();
            session.stream()
        };
        let opened: Vec<_> = std::thread::scope(|scope| {
            let threads = [(); 8].map(|()| scope.spawn(open));
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let refused = |opened: &&Result<_, _>| matches!(opened, Err(SessionError::TooManyStreams));
        assert_eq!(opened.iter().filter(refused).count(), 7);
        opened.iter().flatten().for_each(|stream| check_works(&session, stream));
        check_works(&session, &others[0]);
    }
}

#[test]
fn closed_streams_give_their_memory_to_new_ones_before_gm_is_full() {
    // About a hundred rings fit, and the firmware is always up.
    let large = SessionOptions { ring_entries: 1 << 13, ..options() };
    let session = device(pool()).session(large).unwrap();
    for _ in 0..600 {
        let stream = session.stream().unwrap();
        stream.launch(func::EMPTY_AIV, &[]).unwrap();
    }
    // Without a closed one, GM is full.
    let mut kept = Vec::new();
    let full = loop {
        match session.stream() {
            Ok(stream) => kept.push(stream),
            Err(error) => break error,
        }
    };
    assert!(full.to_string().contains("GM is full"), "{full}");
    // The firmware may have left meanwhile, and needs memory to come up again.
    kept.truncate(kept.len() / 2);
    check_works(&session, &session.stream_with(StreamOptions::default()).unwrap());
}

/// Panics when it is dropped, and so does what that panic carries.
struct Bomb(u32);

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.0 > 0 && !std::thread::panicking() {
            panic_any(Self(self.0 - 1));
        }
    }
}

impl Wake for Bomb {
    fn wake(self: Arc<Self>) {
        panic!("the waker");
    }
}

fn message(result: Result<(), SessionError>) -> String {
    match result {
        Err(SessionError::Failed(failure)) => match &failure.cause {
            FailureCause::HostFunction(message) => message.clone(),
            other => panic!("{other}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_panic_of_a_function_and_of_what_it_holds_fails_its_command_and_nothing_else() {
    on_each(|session, mode| {
        let stop = StreamOptions { on_failure: OnFailure::Stop, ..StreamOptions::default() };
        let stream = session.stream_with(stop).unwrap();
        stream.call(|| panic!("first")).unwrap();
        let bomb = Bomb(2);
        // It is skipped, and dropped by the session.
        let skipped = stream.call(move || drop(bomb));
        assert_eq!(message(stream.synchronize_within(LONG)), "first", "{mode}");
        drop(skipped);
        let going = session.stream().unwrap();
        going.call(|| panic_any(Bomb(3))).unwrap();
        assert_eq!(message(going.synchronize_within(LONG)), "without a message", "{mode}");
        let bomb = Bomb(1);
        going.call(move || drop(bomb)).unwrap();
        assert_eq!(message(going.synchronize_within(LONG)), "without a message", "{mode}");
        let event = session.event().unwrap();
        let other = session.stream().unwrap();
        going.wait_next(&event).unwrap();
        going.call(|| ()).unwrap();
        {
            let reset = session.event().unwrap();
            other.wait_next(&event).unwrap();
            other.record(&reset).unwrap();
            let waker = Waker::from(Arc::new(Bomb(0)));
            let mut completed = pin!(reset.completed());
            assert!(
                completed.as_mut().poll(&mut Context::from_waker(&waker)).is_pending(),
                "{mode}"
            );
        }
        session.stream().unwrap().record(&event).unwrap();
        session.synchronize_within(LONG).unwrap();
        check_works(session, &session.stream().unwrap());
    });
}

#[test]
fn the_limit_of_a_refused_wait_applies_to_no_other_command() {
    let session = session();
    let stop = StreamOptions { on_failure: OnFailure::Stop, ..StreamOptions::default() };
    let (stream, other) = (session.stream_with(stop).unwrap(), session.stream().unwrap());
    let (event, word) = (session.event().unwrap(), session.zeroed::<u64>(1).unwrap());
    let soon = Duration::from_millis(1);
    let refused: [&dyn Fn() -> Result<Submitted, SessionError>; 3] = [
        &|| stream.wait_next_within(&event, soon),
        &|| stream.wait_value_within(word.address(), ValueTest::EQUAL, 1, soon),
        &|| {
            other.record(&event)?;
            stream.wait_within(&event, soon)
        },
    ];
    for refused in refused {
        stream.call(|| panic!("stops the stream")).unwrap();
        stream.synchronize_within(LONG).unwrap_err();
        assert!(matches!(refused(), Err(SessionError::Stopped { .. })));
        session.reset().unwrap();
        stream.wait_next(&event).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        other.record(&event).unwrap();
        stream.synchronize_within(LONG).unwrap();
    }
}

#[test]
fn one_notify_satisfies_one_wait() {
    let session = session();
    let (stream, other) = (session.stream().unwrap(), session.stream().unwrap());
    let notify = session.notify().unwrap();
    for _ in 0..100 {
        let together = Barrier::new(2);
        let wait = || {
            together.wait();
            stream.wait_notify(&notify).unwrap().number().unwrap()
        };
        let numbers = std::thread::scope(|scope| {
            [(); 2].map(|()| scope.spawn(wait)).map(|thread| thread.join().unwrap())
        });
        assert_eq!(numbers[0].abs_diff(numbers[1]), 2, "a wait and its lowering are neighbours");
        for _ in 0..2 {
            let over = stream.completed();
            other.notify(&notify).unwrap();
            while stream.completed() < over + 2 {
                std::thread::yield_now();
            }
        }
        stream.synchronize_within(LONG).unwrap();
    }
}

#[test]
fn a_barrier_takes_each_stream_of_its_session_once() {
    let (session, foreign) = (session(), session());
    let (one, two, other) =
        (session.stream().unwrap(), session.stream().unwrap(), foreign.stream().unwrap());
    let twice = session.barrier(&[&one, &two, &one]).unwrap_err();
    assert!(twice.to_string().contains("stream 0 is named twice"), "{twice}");
    let refused = session.barrier(&[&one, &other]).unwrap_err();
    assert!(matches!(refused, SessionError::OtherSession { .. }), "{refused}");
    assert_eq!(
        (one.mark().is_passed(), other.query().unwrap()),
        (true, true),
        "nothing came of it"
    );
    // Two threads with the same streams in another order.
    std::thread::scope(|scope| {
        for streams in [[&one, &two], [&two, &one]] {
            let session = &session;
            scope.spawn(move || (0..50).for_each(|_| session.barrier(&streams).unwrap()));
        }
    });
    session.synchronize_within(LONG).unwrap();
}

#[test]
fn a_function_may_close_the_session_that_calls_it() {
    for drive in [None, Some(Drive::Stepped { seed: 3 })] {
        let session = device(pool()).session(SessionOptions { drive, ..options() }).unwrap();
        let stream = session.stream().unwrap();
        let (send_back, answer) = mpsc::channel();
        stream.call(move || send_back.send(session.close().is_some()).unwrap()).unwrap();
        if drive.is_some() {
            // The waiting thread steps the session, which ends during a step.
            stream.synchronize_within(LONG).unwrap_or_default();
        }
        assert!(!answer.recv_timeout(LONG).unwrap(), "the function has no device to give back");
        assert!(matches!(stream.call(|| ()), Err(SessionError::Ended)));
    }
}

/// A stream is an owner of its session, and with the last owner the session goes, also from a function that it calls.
#[test]
fn a_function_may_drop_the_last_owner_of_the_session_that_calls_it() {
    for drive in [None, Some(Drive::Stepped { seed: 3 })] {
        let session = device(pool()).session(SessionOptions { drive, ..options() }).unwrap();
        let (stream, event) = (session.stream().unwrap(), session.event().unwrap());
        drop(session);
        let (give, given) = mpsc::channel::<Stream>();
        let (send_back, answer) = mpsc::channel();
        let drops = move || {
            drop(given.recv());
            send_back.send(()).unwrap();
        };
        stream.call(drops).expect("the stream keeps the session open");
        stream.record(&event).unwrap();
        give.send(stream).unwrap();
        event.synchronize_within(LONG).unwrap_or_default();
        answer.recv_timeout(LONG).unwrap();
        assert!(event.is_complete() && event.time().is_none(), "its record was skipped");
    }
}

/// Each of two sessions has a function that drops the last owner of the other one.
#[test]
fn functions_may_drop_the_session_of_each_other() {
    for drive in [None, Some(Drive::Stepped { seed: 3 })] {
        let open = || device(pool()).session(SessionOptions { drive, ..options() }).unwrap();
        let [one, other] = [open(), open()];
        let streams = [one.stream().unwrap(), other.stream().unwrap()];
        let events = [one.event().unwrap(), other.event().unwrap()];
        let together = Arc::new(Barrier::new(3));
        let (send_back, answer) = mpsc::channel();
        for ((stream, event), dropped) in streams.iter().zip(&events).zip([other, one]) {
            let (together, send_back) = (Arc::clone(&together), send_back.clone());
            let drops = move || {
                together.wait();
                drop(dropped);
                send_back.send(()).unwrap();
            };
            stream.call(drops).unwrap();
            stream.record(event).unwrap();
        }
        drop(streams);
        for event in events {
            // The waiting threads step a stepped session.
            std::thread::spawn(move || event.synchronize_within(LONG).unwrap_or_default());
        }
        together.wait();
        for _ in 0..2 {
            answer.recv_timeout(LONG).expect("neither function waits for the other one");
        }
    }
}

#[test]
fn a_function_does_not_wait_for_the_stream_that_calls_it() {
    let session = Arc::new(session());
    let stream = Arc::new(session.stream().unwrap());
    let (of_function, own) = (Arc::clone(&session), Arc::clone(&stream));
    let (send_back, answer) = mpsc::channel();
    stream
        .call(move || {
            let other = of_function.stream().unwrap();
            other.call(|| ()).unwrap();
            other.synchronize_within(LONG).unwrap();
            send_back
                .send([own.synchronize(), of_function.synchronize(), of_function.reset()])
                .unwrap();
            drop((own, of_function));
        })
        .unwrap();
    for refused in answer.recv_timeout(LONG).unwrap() {
        let refused = refused.unwrap_err();
        assert!(matches!(refused, SessionError::Stuck { .. }), "{refused}");
        assert!(refused.to_string().contains("waits for the stream that calls it"), "{refused}");
    }
    session.synchronize_within(LONG).unwrap_or_default();
}

#[test]
fn a_copy_and_the_host_may_touch_the_same_bytes_at_once() {
    let session = session();
    let stream = session.stream().unwrap();
    // Parts that begin and end within words.
    let buffer = session.zeroed::<u8>(4099).unwrap();
    let host = HostBuffer::new(4099).unwrap();
    let part = host.part(3, 4091).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..2_u8 {
            let (buffer, host, part) = (&buffer, &host, &part);
            scope.spawn(move || {
                for round in 0..50 {
                    buffer.write(&vec![round + thread; 4097]).unwrap();
                    let _ = buffer.read().unwrap();
                    part.write(&[round; 4090]).unwrap();
                    let _ = host.to_vec();
                }
            });
        }
        for _ in 0..50 {
            stream.copy_to_device(buffer.address().offset(5), &part).unwrap();
            stream.copy_from_device(buffer.address().offset(1), &part).unwrap();
            stream.fill(buffer.address().offset(2), 7, 4000).unwrap();
        }
        stream.synchronize_within(LONG).unwrap();
    });
    buffer.write(&[9; 4099]).unwrap();
    stream.copy_from_device(buffer.address(), &host).unwrap();
    stream.synchronize_within(LONG).unwrap();
    assert_eq!(host.to_vec(), [9; 4099]);
}

/// A time-out names the limit of the call, and the caller may end the wait.
#[test]
fn a_wait_that_asks_now_and_then_ends_with_its_own_limit() {
    let session = session();
    let (stream, event) = (session.stream().unwrap(), session.event().unwrap());
    stream.wait_next(&event).unwrap();
    let limit = Duration::from_millis(160);
    let mut asked = 0;
    let mut count = || {
        asked += 1;
        true
    };
    let late = [
        stream.synchronize_while(Some(limit), &mut count).unwrap_err(),
        stream.synchronize_within(limit).unwrap_err(),
        session.synchronize_within(limit).unwrap_err(),
    ];
    for late in late {
        assert!(late.to_string().contains("stream 0 is not done after 160ms"), "{late}");
    }
    assert!((1..=3).contains(&asked), "asked {asked} times");
    let ended = stream.synchronize_while(None, &mut || false).unwrap_err();
    assert!(matches!(ended, SessionError::Interrupted { .. }), "{ended}");
    session.stream().unwrap().record(&event).unwrap();
    stream.synchronize_while(None, &mut || true).unwrap();
}

/// The commands that a session still had when it ended are skipped, and waits for them end, on streams and for events.
#[test]
fn no_wait_outlasts_a_session_that_has_ended() {
    for drive in [None, Some(Drive::Stepped { seed: 5 })] {
        let session = device(pool()).session(SessionOptions { drive, ..options() }).unwrap();
        let [caller, waiting] = [(); 2].map(|()| session.stream().unwrap());
        let [recorded, never] = [(); 2].map(|()| session.event().unwrap());
        let flag = session.notify().unwrap();
        waiting.wait_notify(&flag).unwrap();
        waiting.record(&recorded).unwrap();
        waiting.launch(func::EMPTY_AIV, &[]).unwrap();
        caller.reset(&never).unwrap();
        caller.synchronize_within(LONG).unwrap();
        std::thread::scope(|scope| {
            // Only a thread of the session lets them wait.
            let waits = drive.is_none().then(|| {
                let (never, waiting) = (&never, &waiting);
                (scope.spawn(|| never.synchronize()), scope.spawn(|| waiting.synchronize()))
            });
            let (give, given) = mpsc::channel::<Session>();
            let ends = move || {
                let session = given.recv().unwrap();
                session.abort();
                drop(session.close());
            };
            caller.call(ends).unwrap();
            give.send(session).unwrap();
            caller.synchronize_within(LONG).unwrap_or_default();
            let waited = waiting.synchronize_within(LONG);
            assert!(matches!(waited, Ok(()) | Err(SessionError::Aborted { .. })), "{waited:?}");
            assert!(
                waiting.query().unwrap() && recorded.is_complete() && recorded.time().is_none()
            );
            if let Some((event, stream)) = waits {
                let error = event.join().unwrap().unwrap_err().to_string();
                assert!(error.contains("the session has ended"), "{error}");
                let waited = stream.join().unwrap();
                assert!(matches!(waited, Ok(()) | Err(SessionError::Aborted { .. })), "{waited:?}");
            }
        });
        let error = never.synchronize().unwrap_err().to_string();
        assert!(error.contains("the session has ended"), "{error}");
    }
}

/// Threads submit while the session ends: what was taken is over, the rest is refused.
#[test]
fn what_is_submitted_while_a_session_ends_is_over_or_refused() {
    for round in 0..40_u64 {
        let drive = (round % 2 == 1).then_some(Drive::Stepped { seed: round });
        let session = device(pool()).session(SessionOptions { drive, ..options() }).unwrap();
        let streams = [(); 3].map(|()| session.stream().unwrap());
        let together = Barrier::new(streams.len() + 1);
        std::thread::scope(|scope| {
            for stream in &streams {
                let together = &together;
                scope.spawn(move || {
                    together.wait();
                    while stream.launch(func::EMPTY_AIV, &[]).is_ok() {}
                    stream.synchronize_within(LONG).unwrap_or_default();
                    assert!(stream.query().unwrap(), "{stream:?}");
                });
            }
            together.wait();
            std::thread::sleep(Duration::from_micros(50 * round));
            drop(session.close());
        });
    }
}

/// Other threads go on while a session is reset: it waits for what was there, and for nothing that they submit.
#[test]
fn a_reset_waits_for_no_later_command() {
    let session = session();
    let [stream, busy] = [(); 2].map(|()| session.stream().unwrap());
    let flag = session.notify().unwrap();
    let (send_back, answer) = mpsc::channel();
    std::thread::scope(|scope| {
        let (begun, begins) = mpsc::channel();
        // The reset waits for the end of this function.
        busy.call(move || {
            begun.send(()).unwrap();
            answer.recv_timeout(LONG).unwrap();
        })
        .unwrap();
        begins.recv_timeout(LONG).unwrap();
        let reset = scope.spawn(|| session.reset());
        // Time for the reset to have begun; where it has not, this is skipped, and nothing was tried.
        std::thread::sleep(Duration::from_millis(20));
        stream.wait_notify(&flag).unwrap();
        send_back.send(()).unwrap();
        reset.join().unwrap().unwrap();
    });
    busy.notify(&flag).unwrap();
    stream.synchronize_within(LONG).unwrap();
}

/// In a session that is stepped, a thread that waits for room in a ring runs the functions of the host, and they may use the same stream.
#[test]
fn a_function_submits_to_the_stream_that_a_thread_waits_for_room_in() {
    let few = SessionOptions { ring_entries: 32, ..options() };
    let drive = Some(Drive::Stepped { seed: 11 });
    let session = device(pool()).session(SessionOptions { drive, ..few }).unwrap();
    let [stream, other] = [(); 2].map(|()| Arc::new(session.stream().unwrap()));
    let (of_function, event) = (Arc::clone(&stream), session.event().unwrap());
    let recorded = event.clone();
    other
        .call(move || {
            assert!(!of_function.is_captured());
            of_function.query().unwrap();
        })
        .unwrap();
    other.record(&event).unwrap();
    stream.wait(&recorded).unwrap();
    for _ in 0..100 {
        stream.launch(func::EMPTY_AIV, &[]).unwrap();
    }
    stream.synchronize_within(LONG).unwrap();
}
