//! The two sides of the protocol, played in turn.

use super::{
    Command, Dispatch, FINISHED, Handshake, LAST_DISPATCH_ID, STATUS_IDLE, Status,
    next_dispatch_id, previous_dispatch_id,
};
use crate::kinds::CoreKind;
use crate::sync::Ordering;

fn in_service() -> Handshake {
    let lines = Handshake::default();
    lines.reset();
    lines.greet(7);
    assert_eq!(lines.command(), Command::Greet(7));
    lines.introduce(7, 3, CoreKind::AIV);
    lines
}

#[test]
fn bring_up_then_dispatch_then_stop() {
    let lines = in_service();
    assert_eq!(lines.answer(7), Some((3, 1)));
    assert_eq!(lines.answer(8), None);
    assert_eq!(lines.command(), Command::Wait);
    lines.stage(0, 11, 22, 33);
    assert_eq!(lines.command(), Command::Wait, "the doorbell is not written yet");
    lines.ring(0);
    let dispatch = Dispatch { id: 0, task: 11, kernel: 22, args: 33 };
    assert_eq!(lines.command(), Command::Run(dispatch));
    assert_eq!(lines.status(0, STATUS_IDLE), Status::Busy);
    lines.finish(0);
    assert_eq!(lines.status(0, STATUS_IDLE), Status::Finished);
    assert_eq!(lines.command(), Command::Wait, "a dispatch runs once");
    lines.quit();
    assert_eq!(lines.command(), Command::Quit);
    lines.leave();
    assert!(lines.exited());
}

#[test]
fn a_core_in_service_is_not_greeted_twice() {
    let lines = in_service();
    lines.stage(5, 1, 2, 3);
    lines.ring(5);
    lines.finish(5);
    lines.greet(7);
    assert_eq!(lines.answer(7), Some((3, 1)));
    assert_eq!(lines.last_dispatch_id(), 5, "ids go on");
    assert_eq!(lines.command(), Command::Wait);
}

#[test]
fn an_old_doorbell_does_not_start_a_core_that_comes_back() {
    let lines = in_service();
    lines.ring(5);
    lines.finish(5);
    lines.quit();
    assert_eq!(lines.command(), Command::Quit);
    lines.leave();
    assert_eq!(lines.command(), Command::Wait, "neither the old order nor the old greeting");
    assert_eq!(lines.answer(7), None, "it is not in service");
    lines.greet(8);
    assert_eq!(lines.command(), Command::Greet(8));
    lines.introduce(8, 3, CoreKind::AIV);
    assert_eq!(lines.command(), Command::Wait);
}

#[test]
fn a_foreign_status_is_seen() {
    let lines = in_service();
    lines.ring(5);
    lines.finish(4);
    assert_eq!(lines.status(5, STATUS_IDLE), Status::Foreign(FINISHED | 4));
}

#[test]
fn two_dispatches_run_in_order_and_are_distinguished() {
    let lines = in_service();
    let (mut last, mut previous) = (LAST_DISPATCH_ID - 2, STATUS_IDLE);
    lines.ring(last);
    lines.finish(last);
    for _ in 0..3 {
        let (older, newer) = (next_dispatch_id(last), next_dispatch_id(next_dispatch_id(last)));
        lines.stage(older, 11, 22, 33);
        lines.ring(older);
        lines.stage(newer, 44, 55, 66);
        lines.ring(newer);
        let dispatch = Dispatch { id: older, task: 11, kernel: 22, args: 33 };
        assert_eq!(lines.command(), Command::Run(dispatch));
        assert_eq!(lines.status_of_two(newer, previous), Status::Foreign(FINISHED | last));
        assert_eq!(lines.status_of_two(newer, FINISHED | last), Status::Busy);
        lines.finish(older);
        assert_eq!(lines.status_of_two(newer, FINISHED | last), Status::Finished);
        lines.worker.status.store(newer, Ordering::Relaxed);
        assert_eq!(lines.status_of_two(newer, FINISHED | last), Status::Finished, "has begun");
        lines.finish(older);
        let dispatch = Dispatch { id: newer, task: 44, kernel: 55, args: 66 };
        assert_eq!(lines.command(), Command::Run(dispatch));
        assert_eq!(lines.status(newer, FINISHED | older), Status::Busy);
        lines.finish(newer);
        assert_eq!(lines.status_of_two(newer, FINISHED | last), Status::FinishedBoth);
        assert_eq!(lines.command(), Command::Wait);
        (last, previous) = (newer, STATUS_IDLE);
    }
}

#[test]
fn a_core_that_is_asked_to_quit_drops_what_it_has_not_started() {
    let lines = in_service();
    lines.ring(0);
    lines.ring(1);
    assert!(matches!(lines.command(), Command::Run(Dispatch { id: 0, .. })));
    lines.quit();
    lines.finish(0);
    assert_eq!(lines.command(), Command::Quit);
    lines.leave();
    lines.greet(8);
    lines.introduce(8, 3, CoreKind::AIV);
    assert_eq!(lines.command(), Command::Wait, "what was dropped stays so");
}

#[test]
fn ids_wrap_below_the_reserved_values() {
    let (first, last) = (next_dispatch_id(LAST_DISPATCH_ID), previous_dispatch_id(0));
    assert_eq!((first, last), (0, LAST_DISPATCH_ID));
    assert_eq!(LAST_DISPATCH_ID & 1, 1, "the low bits alternate over the wrap");
    assert_eq!(next_dispatch_id(super::DOORBELL_IDLE), 0);
    assert_eq!(next_dispatch_id(6), 7);
}

/// It left without having answered; what it finds in its next life, before it is greeted, is not for it.
#[test]
fn a_greeting_that_was_taken_back_is_not_answered() {
    let lines = Handshake::default();
    lines.reset();
    lines.greet(1);
    lines.introduce(1, 0, CoreKind::AIV);
    lines.greet(2);
    lines.quit();
    assert_eq!(lines.command(), Command::Quit);
    lines.leave();
    assert_eq!(lines.command(), Command::Wait, "neither the greeting nor the order");
    lines.greet(3);
    assert_eq!(lines.command(), Command::Greet(3));
}
