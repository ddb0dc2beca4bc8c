//! Bring-up and dispatches over handshake lines, the firmware's platform on one side, the core's protocol on
//! the other: the core sees the dispatch words and what was written before the doorbell; the scheduler sees
//! what the kernel wrote; each dispatch runs once.

use loom::thread;
use pto_abi::handshake::{Command, FINISHED, Handshake, STATUS_IDLE, Status};
use pto_abi::sync::{AtomicU32, Concurrent, Ordering};
use pto_abi::{CoreKind, GmAddr};
use pto_aicpu_fw::platform::{CoreStatus, Platform, Staged};
use pto_aicpu_fw::{LinesPlatform, Machine};

use crate::{explore, spawn};

const TASKS: u32 = 2;
/// What the core says of itself, in addition to its kind.
const CORE_ID: u32 = 9;

#[derive(Default)]
struct SharedLines {
    lines: [Handshake; 1],
    /// What the producers of task `i` wrote, and what its kernel writes.
    inputs: [AtomicU32; TASKS as usize],
    outputs: [AtomicU32; TASKS as usize],
}

/// A machine whose cores may have `SLOTS` dispatches.
struct QuietMachine<const SLOTS: usize>;

impl<const SLOTS: usize> Machine for QuietMachine<SLOTS> {
    const SLOTS: usize = SLOTS;

    fn now_ns(&self) -> u64 {
        0
    }
}

/// The two sides' stores that the tests exchange for wrong ones.
#[derive(Clone, Copy)]
struct Sides {
    ring: fn(&Handshake, u32),
    finish: fn(&Handshake, u32),
}

const RIGHT: Sides = Sides { ring: Handshake::ring, finish: Handshake::finish };

fn core(machine: &SharedLines, sides: Sides, dispatches: u32) -> u32 {
    let lines = &machine.lines[0];
    let mut ran = 0;
    while ran < dispatches {
        match lines.command() {
            Command::Greet(epoch) => lines.introduce(epoch, CORE_ID, CoreKind::AIV),
            Command::Run(dispatch) => {
                let words = (dispatch.kernel, dispatch.args);
                let task = dispatch.task as usize;
                assert_eq!(words, (0x100 + task as u64, 0x200 + task as u64), "dispatch words");
                let input = machine.inputs[task].load(Ordering::Relaxed);
                assert_eq!(input, 1, "what was written before the doorbell is not visible");
                let before = machine.outputs[task].load(Ordering::Relaxed);
                assert_eq!(before, 0, "a dispatch runs once");
                machine.outputs[task].store(1, Ordering::Relaxed);
                (sides.finish)(lines, dispatch.id);
                ran += 1;
            }
            Command::Wait => thread::yield_now(),
            Command::Quit => return ran,
        }
    }
    ran
}

fn staged(task: u32) -> Staged {
    let word = u64::from(task);
    Staged { task, kernel: GmAddr(0x100 + word), args: GmAddr(0x200 + word) }
}

#[test]
fn bring_up_and_two_dispatches() {
    explore(5, SharedLines::default, move |machine| {
        machine.lines[0].reset();
        let worker = spawn(move || core(machine, RIGHT, TASKS));
        let mut platform = LinesPlatform::<Concurrent, _>::new(&machine.lines, QuietMachine::<1>);
        platform.attach(0);
        platform.greet(0, 1);
        let answer = loop {
            match platform.answer(0, 1) {
                None => thread::yield_now(),
                Some(answer) => break answer,
            }
        };
        assert_eq!(answer, (CORE_ID, CoreKind::AIV.get().into()), "answered, and not visible");
        for task in 0..TASKS {
            machine.inputs[task as usize].store(1, Ordering::Relaxed);
            platform.stage(0, staged(task)).unwrap();
            platform.commit();
            loop {
                match platform.poll(0) {
                    CoreStatus::Busy => thread::yield_now(),
                    status => break assert_eq!(status, CoreStatus::Finished),
                }
            }
            let output = machine.outputs[task as usize].load(Ordering::Relaxed);
            assert_eq!(output, 1, "what the kernel wrote is not visible");
        }
        assert_eq!(worker.join().unwrap(), TASKS);
    });
}

/// The doorbell of the second dispatch is written while the core has the first: both run, in order, once each, and both are seen.
#[test]
fn two_dispatches_at_once() {
    explore(5, SharedLines::default, move |machine| {
        let lines = &machine.lines[0];
        lines.reset();
        lines.greet(1);
        lines.introduce(1, 0, CoreKind::AIC);
        let worker = spawn(move || core(machine, RIGHT, TASKS));
        let mut platform = LinesPlatform::<Concurrent, _>::new(&machine.lines, QuietMachine::<2>);
        platform.attach(0);
        assert!(platform.answer(0, 1).is_some());
        for task in 0..TASKS {
            machine.inputs[task as usize].store(1, Ordering::Relaxed);
            platform.stage(0, staged(task)).unwrap();
            platform.commit();
        }
        let mut done = 0;
        while done < TASKS {
            match platform.poll(0) {
                CoreStatus::Busy => thread::yield_now(),
                CoreStatus::Finished | CoreStatus::FinishedMore => {
                    let output = machine.outputs[done as usize].load(Ordering::Relaxed);
                    assert_eq!(output, 1, "what the kernel wrote is not visible");
                    done += 1;
                }
                status => panic!("{status:?}"),
            }
        }
        assert_eq!(platform.poll(0), CoreStatus::Idle);
        assert_eq!(worker.join().unwrap(), TASKS);
    });
}

#[test]
fn a_core_leaves_when_it_is_asked_and_comes_back() {
    explore(5, SharedLines::default, move |machine| {
        let lines = &machine.lines[0];
        lines.reset();
        lines.greet(1);
        lines.introduce(1, 0, CoreKind::AIC);
        machine.inputs[0].store(1, Ordering::Relaxed);
        lines.stage(0, 0, 0x100, 0x200);
        lines.ring(0);
        let worker = spawn(move || {
            let ran = core(machine, RIGHT, TASKS);
            machine.lines[0].leave();
            ran
        });
        lines.quit();
        while !lines.exited() {
            thread::yield_now();
        }
        let output = machine.outputs[0].load(Ordering::Relaxed);
        let ran = worker.join().unwrap();
        assert_eq!(output, ran, "what the kernel wrote is visible with the exit");
        lines.greet(2);
        assert_eq!(lines.command(), Command::Greet(2), "and not the old dispatch");
        lines.introduce(2, CORE_ID, CoreKind::AIV);
        assert_eq!(lines.command(), Command::Wait, "and not the old dispatch");
    });
}

/// One dispatch to a core in service, with possibly wrong stores.
fn one_dispatch(sides: Sides) {
    explore(5, SharedLines::default, move |machine| {
        let lines = &machine.lines[0];
        lines.reset();
        lines.greet(1);
        lines.introduce(1, 0, CoreKind::AIC);
        let worker = spawn(move || core(machine, sides, 1));
        machine.inputs[0].store(1, Ordering::Relaxed);
        lines.stage(0, 0, 0x100, 0x200);
        (sides.ring)(lines, 0);
        while lines.status(0, STATUS_IDLE) != Status::Finished {
            thread::yield_now();
        }
        let output = machine.outputs[0].load(Ordering::Relaxed);
        assert_eq!(output, 1, "what the kernel wrote is not visible");
        worker.join().unwrap();
    });
}

#[test]
fn one_dispatch_to_a_core_in_service() {
    one_dispatch(RIGHT);
}

#[test]
#[should_panic]
fn wrong_when_the_doorbell_is_not_released() {
    let ring = |lines: &Handshake, id| lines.scheduler.doorbell.store(id, Ordering::Relaxed);
    one_dispatch(Sides { ring, ..RIGHT });
}

#[test]
#[should_panic(expected = "what the kernel wrote is not visible")]
fn wrong_when_the_status_is_not_released() {
    let finish = |lines: &Handshake, id| {
        lines.worker.status.store(FINISHED | id, Ordering::Relaxed);
    };
    one_dispatch(Sides { finish, ..RIGHT });
}
