//! The first fault wins, and an epitaph that is sealed is whole and belongs to it.

use pto_abi::Fault;
use pto_abi::runtime::FaultLine;
use pto_abi::sync::{AtomicU32, Ordering};

use crate::{explore, spawn};

#[derive(Default)]
struct Report {
    line: FaultLine,
    /// Represent the epitaph, which is plain data.
    epitaph: [AtomicU32; 2],
    /// What led to the fault, by instance.
    cause: [AtomicU32; 2],
}

const FAULTS: [Fault; 2] = [Fault::STALL_CORE, Fault::BUILD_FAILED];

impl Report {
    fn raise(&self, instance: usize) -> bool {
        self.cause[instance].store(1, Ordering::Relaxed);
        let fault = FAULTS[instance];
        let first = self.line.raise(fault);
        if first {
            self.epitaph.iter().for_each(|word| word.store(fault.code(), Ordering::Relaxed));
            self.line.seal_epitaph();
        }
        first
    }

    /// What the host does when it looks.
    fn look(&self) {
        if let Some(fault) = self.line.first() {
            let instance = FAULTS.iter().position(|known| *known == fault).unwrap();
            assert_eq!(self.cause[instance].load(Ordering::Relaxed), 1, "the cause is not visible");
        }
        if self.line.epitaph_is_sealed() {
            let fault = self.line.first().unwrap();
            let read: Vec<u32> =
                self.epitaph.iter().map(|word| word.load(Ordering::Relaxed)).collect();
            assert_eq!(read, [fault.code(); 2], "sealed, and not whole");
        }
    }
}

fn two_raise(raise: fn(&Report, usize) -> bool) {
    explore(5, Report::default, move |report| {
        let raisers = [0, 1].map(|i| spawn(move || raise(report, i)));
        report.look();
        let firsts = raisers.map(|raiser| raiser.join().unwrap());
        assert!(firsts[0] != firsts[1], "exactly one is the first");
        let winner = if firsts[0] { 0 } else { 1 };
        assert_eq!(report.line.first(), Some(FAULTS[winner]));
        assert!(report.line.is_raised() && report.line.epitaph_is_sealed());
        report.look();
    });
}

#[test]
fn the_first_fault_wins_and_its_epitaph_is_whole() {
    two_raise(Report::raise);
}

#[test]
#[should_panic(expected = "sealed, and not whole")]
fn wrong_when_the_seal_comes_first() {
    two_raise(|report, instance| {
        report.cause[instance].store(1, Ordering::Relaxed);
        let first = report.line.raise(FAULTS[instance]);
        if first {
            report.line.seal_epitaph();
            report
                .epitaph
                .iter()
                .for_each(|word| word.store(FAULTS[instance].code(), Ordering::Relaxed));
        }
        first
    });
}

#[test]
#[should_panic(expected = "the cause is not visible")]
fn wrong_when_the_fault_is_not_released() {
    two_raise(|report, instance| {
        report.cause[instance].store(1, Ordering::Relaxed);
        let (code, relaxed) = (FAULTS[instance].code(), Ordering::Relaxed);
        let first = report.line.code.compare_exchange(0, code, relaxed, relaxed).is_ok();
        if first {
            report.epitaph.iter().for_each(|word| word.store(code, Ordering::Relaxed));
            report.line.seal_epitaph();
        }
        first
    });
}

#[test]
#[should_panic(expected = "exactly one is the first")]
fn wrong_when_raising_is_not_one_operation() {
    two_raise(|report, instance| {
        report.cause[instance].store(1, Ordering::Relaxed);
        let first = report.line.first().is_none();
        if first {
            report.line.code.store(FAULTS[instance].code(), Ordering::Release);
        }
        first
    });
}
