//! Events: across streams, with times, as futures; and streams that wait for each other.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use pto_host::func;
use pto_host::session::{SessionError, StreamOptions};

use super::support::{LONG, on_each, pool, session, stepped, virtual_time};

#[test]
fn a_stream_waits_for_what_another_one_has_done_before_its_record() {
    on_each(|session, mode| {
        let (one, other) = (session.stream().unwrap(), session.stream().unwrap());
        let sum = session.zeroed::<f32>(64).unwrap();
        let ones = session.upload(&[1.0_f32; 64]).unwrap();
        let (at, one_at) = (sum.address().0, ones.address().0);
        let ready = session.event().unwrap();
        for round in 1..=20_u8 {
            one.launch(func::ADD, &[at, one_at, at, 64]).unwrap();
            one.record(&ready).unwrap();
            other.wait(&ready).unwrap();
            other.launch(func::MUL, &[at, one_at, at, 64]).unwrap();
            other.launch(func::ADD, &[at, one_at, at, 64]).unwrap();
            let back = session.event().unwrap();
            other.record(&back).unwrap();
            one.wait(&back).unwrap();
            if round == 20 {
                one.synchronize_within(LONG).unwrap();
            }
        }
        assert_eq!(sum.read().unwrap(), [40.0; 64], "{mode}");
    });
}

#[test]
fn an_event_has_a_state_and_a_time() {
    on_each(|session, mode| {
        let stream = session.stream().unwrap();
        let (start, end) = (session.event().unwrap(), session.event().unwrap());
        assert!(start.is_complete() && !start.was_recorded() && start.time().is_none());
        start.synchronize().unwrap();
        stream.record(&start).unwrap();
        stream.launch(func::SPIN_AIV, &[1000]).unwrap();
        stream.record(&end).unwrap();
        end.synchronize_within(LONG).unwrap();
        assert!(end.since(&start).unwrap() > Duration::ZERO, "{mode}");
        assert!(start.since(&end).is_none());
        stream.reset(&end).unwrap();
        assert!(!end.is_complete() && end.time().is_none(), "{mode}");
        stream.record(&end).unwrap();
        end.synchronize_within(LONG).unwrap();
        assert!(end.is_complete());
    });
}

#[test]
fn a_stream_can_wait_for_a_record_that_comes_later() {
    on_each(|session, mode| {
        let (one, other) = (session.stream().unwrap(), session.stream().unwrap());
        let byte = session.zeroed::<u8>(1).unwrap();
        let event = session.event().unwrap();
        one.wait(&event).unwrap();
        one.synchronize_within(LONG).expect("never recorded: nothing to wait for");
        one.wait_next(&event).unwrap();
        one.fill(byte.address(), 2, 1).unwrap();
        let early = one.synchronize_within(Duration::from_millis(2)).unwrap_err().to_string();
        assert!(early.contains("command 2 (wait)"), "{mode}: {early}");
        other.fill(byte.address(), 1, 1).unwrap();
        other.record(&event).unwrap();
        one.synchronize_within(LONG).unwrap();
        assert_eq!(byte.read().unwrap(), [2], "{mode}");
    });
}

#[test]
fn the_cycle_of_streams_that_wait_for_each_other_is_reported() {
    on_each(|session, mode| {
        let (one, other) = (session.stream().unwrap(), session.stream().unwrap());
        let (first, second) = (session.event().unwrap(), session.event().unwrap());
        one.wait_next(&second).unwrap();
        other.wait_next(&first).unwrap();
        one.record(&first).unwrap();
        other.record(&second).unwrap();
        for stream in [&one, &other] {
            let failure = stream.synchronize_within(LONG).unwrap_err();
            let text = failure.to_string();
            assert!(matches!(failure, SessionError::Failed(_)), "{mode}: {text}");
            for part in
                ["stream 0 waits for record 1 of event 1", "stream 1 waits for record 1 of event 0"]
            {
                assert!(text.contains(part), "{mode}: {text}");
            }
            stream.synchronize_within(LONG).expect("it is reported once");
        }
    });
}

#[test]
fn a_wait_that_can_never_end_fails_in_a_stepped_session() {
    let session = stepped(pool(), 1);
    let stream = session.stream().unwrap();
    let event = session.event().unwrap();
    stream.wait_next(&event).unwrap();
    let text = stream.synchronize().unwrap_err().to_string();
    assert!(text.contains("event 0, record 1, which was not submitted"), "{text}");
    stream.abort();
    let text = stream.synchronize().map_err(|error| error.to_string());
    assert!(text.is_ok(), "the wait was dropped: {text:?}");
}

#[test]
fn a_barrier_is_passed_by_all_or_none() {
    on_each(|session, mode| {
        let options = StreamOptions::default();
        let streams: Vec<_> = (0..5).map(|_| session.stream_with(options).unwrap()).collect();
        let bytes = session.zeroed::<u8>(5).unwrap();
        let all: Vec<_> = streams.iter().collect();
        for (index, stream) in (0..).zip(&streams) {
            stream.fill(bytes.address().offset(index), 1, 1).unwrap();
        }
        session.barrier(&all).unwrap();
        let copies: Vec<_> = streams
            .iter()
            .map(|stream| {
                let copy = pto_host::session::HostBuffer::new(5).unwrap();
                stream.copy_from_device(bytes.address(), &copy).unwrap();
                copy
            })
            .collect();
        session.synchronize_within(LONG).unwrap();
        assert!(copies.iter().all(|copy| copy.to_vec() == [1; 5]), "{mode}");
    });
}

/// Unparks a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The smallest executor there is.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => return result,
            Poll::Pending => std::thread::park_timeout(LONG),
        }
    }
}

#[test]
fn an_event_is_a_future() {
    for session in [session(), stepped(virtual_time(3), 3)] {
        let (one, other) = (session.stream().unwrap(), session.stream().unwrap());
        let byte = session.zeroed::<u8>(1).unwrap();
        let (ready, done) = (session.event().unwrap(), session.event().unwrap());
        block_on(async {
            one.fill(byte.address(), 4, 1).unwrap();
            one.launch(func::SPIN_AIV, &[1000]).unwrap();
            one.record(&ready).unwrap();
            (&ready).await;
            other.fill(byte.address(), 5, 1).unwrap();
            other.record(&done).unwrap();
            done.completed().await;
        });
        assert_eq!(byte.read().unwrap(), [5]);
    }
}
