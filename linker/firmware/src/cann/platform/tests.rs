//! The platform against memory instead of registers; the tests do what the core does.

extern crate std;

use pto_abi::handshake::{
    DOORBELL_EXIT, DOORBELL_IDLE, FINISHED, Handshake, LAST_DISPATCH_ID, STATUS_EXITED, STATUS_IDLE,
};
use pto_abi::launch_words::{Architecture, CORE_STRIDE, CorePosition};
use pto_abi::{CoreKind, Fault, GmAddr};
use pto_aicpu_fw::platform::{CoreStatus, Platform, Staged};
use std::vec;
use std::vec::Vec;

use super::RegisterPlatform;
use crate::cann::registers::RegisterWindow;

const TASK: Staged = Staged { task: 1, kernel: GmAddr(2), args: GmAddr(3) };
const POSITION: CorePosition = CorePosition { cluster: 0, sub: 1 };
/// The value of a word that was not written.
const UNTOUCHED: u32 = 0x5555_5555;

/// The memory of one cluster's registers, and where the tested core has its own.
struct Bench {
    memory: *mut u32,
    architecture: Architecture,
    lines: Vec<Handshake>,
}

impl Bench {
    fn new(architecture: Architecture) -> Self {
        // For the life of the process: the platform has references into it.
        let words = vec![UNTOUCHED; usize::try_from(3 * CORE_STRIDE / 4).unwrap()];
        let lines: Vec<Handshake> = (0..8).map(|_| Handshake::default()).collect();
        lines.iter().for_each(Handshake::reset);
        Self { memory: words.leak().as_mut_ptr(), architecture, lines }
    }

    fn platform(&self) -> RegisterPlatform<'_> {
        let (start, bytes) = (self.memory.cast::<u8>(), 3 * CORE_STRIDE);
        // SAFETY: leaked memory of this size, aligned to a register, reached by volatile accesses only.
        let window = unsafe { RegisterWindow::from_raw(start, bytes, self.architecture) };
        let mut platform = RegisterPlatform::new(&self.lines, window, &[POSITION; 8]);
        platform.attach(5);
        platform
    }

    fn register(&self, offset: u64) -> *mut u32 {
        self.memory.wrapping_add(usize::try_from((POSITION.offset() + offset) / 4).unwrap())
    }

    fn read(&self, offset: u64) -> u32 {
        // SAFETY: in the memory of the bench.
        unsafe { self.register(offset).read_volatile() }
    }

    fn doorbell(&self) -> u64 {
        if self.architecture == Architecture::A5 { 0xD0 } else { 0xA0 }
    }

    fn show(&self, status: u32) {
        let cond = if self.architecture == Architecture::A5 { 0x5108 } else { 0x4C8 };
        // SAFETY: in the memory of the bench.
        unsafe { self.register(cond).write_volatile(status) };
    }

    /// A core that has come up.
    fn in_service(&self) -> RegisterPlatform<'_> {
        let mut platform = self.platform();
        platform.greet(0, 3);
        self.show(STATUS_IDLE);
        self.lines[5].introduce(3, 5, CoreKind::AIV);
        assert_eq!(platform.answer(0, 3), Some((5, 1)));
        platform
    }
}

#[test]
fn a_dispatch_goes_through_the_registers_of_each_architecture() {
    for architecture in [Architecture::A2A3, Architecture::A5] {
        let bench = Bench::new(architecture);
        let mut platform = bench.in_service();
        assert_eq!(bench.read(0x18), 0xE, "the fast path is open");
        assert_eq!(bench.read(bench.doorbell()), DOORBELL_IDLE);
        platform.stage(0, TASK).unwrap();
        assert_eq!(bench.read(bench.doorbell()), DOORBELL_IDLE, "the doorbell is not written yet");
        assert_eq!(bench.lines[5].scheduler.dispatch(0).kernel, 2);
        platform.commit();
        assert_eq!(bench.read(bench.doorbell()), 0);
        assert_eq!(bench.read(bench.doorbell() + 4), UNTOUCHED, "a 32-bit store");
        assert_eq!(platform.poll(0), CoreStatus::Busy);
        bench.show(0);
        assert_eq!(platform.poll(0), CoreStatus::Busy, "it has begun");
        bench.show(FINISHED);
        assert_eq!(platform.poll(0), CoreStatus::Finished);
        assert_eq!(platform.poll(0), CoreStatus::Idle, "answered once");
    }
}

#[test]
fn a_core_that_is_not_free_is_refused() {
    let bench = Bench::new(Architecture::A2A3);
    let mut platform = bench.in_service();
    platform.stage(0, TASK).unwrap();
    assert_eq!(platform.stage(0, TASK), Err(Fault::SCHEDULE_CORE_NOT_FREE));
    platform.commit();
    platform.stage(0, TASK).unwrap();
    platform.commit();
    assert_eq!(platform.stage(0, TASK), Err(Fault::SCHEDULE_CORE_NOT_FREE), "it has two");
    bench.show(FINISHED | 7);
    assert_eq!(platform.poll(0), CoreStatus::Foreign(FINISHED | 7));
}

#[test]
fn what_is_staged_ahead_is_started_at_once_or_replaced() {
    let bench = Bench::new(Architecture::A2A3);
    let mut platform = bench.in_service();
    let other = Staged { task: 7, kernel: GmAddr(8), args: GmAddr(9) };
    platform.stage_ahead(0, other);
    assert_eq!(bench.read(bench.doorbell()), DOORBELL_IDLE, "the doorbell is not written");
    assert_eq!(bench.lines[5].scheduler.dispatch(0).task, 7);
    // Something else goes to the core first, in the same entry.
    platform.stage(0, TASK).unwrap();
    assert_eq!(platform.ring_ahead(0, 7), Err(Fault::SCHEDULE_CORE_NOT_FREE), "it is staged");
    platform.commit();
    assert_eq!(bench.lines[5].scheduler.dispatch(0).task, 1);
    // After what the core runs; the entry of the running dispatch is not touched.
    platform.stage_ahead(0, other);
    assert_eq!(bench.lines[5].scheduler.dispatch(0).task, 1);
    platform.settle();
    bench.show(FINISHED);
    assert_eq!(platform.poll(0), CoreStatus::Finished);
    platform.ring_ahead(0, 7).unwrap();
    assert_eq!((bench.read(bench.doorbell()), bench.lines[5].scheduler.dispatch(1).task), (1, 7));
    bench.show(FINISHED | 1);
    assert_eq!(platform.poll(0), CoreStatus::Finished);
}

#[test]
fn an_answer_counts_once_the_status_is_that_of_a_core_that_came_up() {
    let bench = Bench::new(Architecture::A2A3);
    let mut platform = bench.platform();
    platform.greet(0, 3);
    bench.show(STATUS_EXITED);
    assert_eq!(platform.answer(0, 3), None);
    bench.lines[5].introduce(3, 5, CoreKind::AIV);
    assert_eq!(platform.answer(0, 3), None, "the status of the bring-up before");
    bench.show(STATUS_IDLE);
    assert_eq!(platform.answer(0, 3), Some((5, 1)));
}

#[test]
fn ids_of_a_core_in_service_go_on_and_wrap() {
    let bench = Bench::new(Architecture::A2A3);
    drop(bench.in_service());
    bench.show(FINISHED | LAST_DISPATCH_ID);
    let mut platform = bench.platform();
    platform.greet(0, 3);
    assert!(platform.answer(0, 3).is_some());
    for expected in [0, 1] {
        platform.stage(0, TASK).unwrap();
        platform.commit();
        assert_eq!(bench.read(bench.doorbell()), expected);
        bench.show(FINISHED | expected);
        assert_eq!(platform.poll(0), CoreStatus::Finished);
    }
}

#[test]
fn of_two_dispatches_the_older_one_is_answered_first() {
    let bench = Bench::new(Architecture::A2A3);
    let mut platform = bench.in_service();
    let ring_two = |platform: &mut RegisterPlatform<'_>| {
        for _ in 0..2 {
            platform.stage(0, TASK).unwrap();
            platform.commit();
        }
    };
    ring_two(&mut platform);
    assert_eq!(platform.poll(0), CoreStatus::Busy);
    bench.show(FINISHED);
    assert_eq!(platform.poll(0), CoreStatus::Finished);
    assert_eq!(platform.poll(0), CoreStatus::Busy, "the other one runs");
    bench.show(FINISHED | 1);
    assert_eq!(platform.poll(0), CoreStatus::Finished);
    ring_two(&mut platform);
    bench.show(3);
    assert_eq!(platform.poll(0), CoreStatus::Finished, "the newer one has begun");
    bench.show(FINISHED | 3);
    assert_eq!(platform.poll(0), CoreStatus::Finished);
    ring_two(&mut platform);
    bench.show(FINISHED | 5);
    assert_eq!(platform.poll(0), CoreStatus::FinishedMore);
    assert_eq!(platform.poll(0), CoreStatus::Finished);
    assert_eq!(platform.poll(0), CoreStatus::Idle);
}

#[test]
fn a_core_that_was_asked_to_leave_is_cut_off_and_one_in_service_is_not() {
    let bench = Bench::new(Architecture::A2A3);
    drop(bench.in_service());
    assert_eq!(bench.read(0x18), 0xE, "in service");
    let mut platform = bench.in_service();
    platform.stop(0);
    assert_eq!(bench.read(bench.doorbell()), DOORBELL_EXIT);
    assert!(!platform.stopped(0));
    bench.show(STATUS_EXITED);
    assert!(platform.stopped(0));
    drop(platform);
    assert_eq!(bench.read(0x18), 0xF);
}

#[test]
fn a_core_outside_the_window_has_no_registers() {
    let bench = Bench::new(Architecture::A5);
    // SAFETY: as in `platform`.
    let window = unsafe {
        RegisterWindow::from_raw(bench.memory.cast(), CORE_STRIDE + 0x510B, Architecture::A5)
    };
    assert!(window.core(CorePosition { cluster: 0, sub: 0 }).is_some());
    assert!(window.core(CorePosition { cluster: 0, sub: 1 }).is_none(), "a byte is missing");
    assert!(window.core(CorePosition { cluster: u16::MAX, sub: 0 }).is_none());
}
