//! The loop with small weights and few rounds: what it computes, what it copies, and that a copy more is seen.

use std::string::String;
use std::vec::Vec;

use pto_host::virtual_time::VirtualOptions;
use pto_host::{DeviceOptions, Hosting, Session, SessionOptions};

use super::report::Report;
use super::sizes::TrainingSizes;
use super::texts;
use super::training::{Layouts, Training};
use crate::host::open_sim;

const SIZES: TrainingSizes =
    TrainingSizes { batch: 4, inner: 64, outer: 96, tile: 32, iterations: 12, rate: 0.5, seed: 1 };

fn session(hosting: Hosting) -> Session {
    let options = DeviceOptions { aic: 4, aiv: 8, gm_bytes: 64 << 20, hosting };
    let mut device = open_sim(options).unwrap();
    device.register_library().unwrap();
    device.session(SessionOptions::default()).unwrap()
}

fn trained(
    hosting: Hosting,
    layouts: Layouts,
    between: impl Fn(&Training, u64),
) -> (Report, Vec<String>) {
    let session = session(hosting);
    let mut training = Training::new(&session, SIZES, layouts).unwrap();
    for round in 0..SIZES.iterations {
        training.round().unwrap();
        between(&training, round);
    }
    let report = training.finish().unwrap();
    let failures = report.failures();
    (report, failures)
}

/// The programs of `examples/programs/training_loop`, which are in C and in Python.
#[test]
fn the_programs_of_other_languages_are_these() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/programs/training_loop");
    let texts = [
        ("forward", texts::forward(&SIZES)),
        ("backward", texts::backward(&SIZES)),
        ("optimiser", texts::optimiser(&SIZES, None)),
    ];
    for (name, text) in texts {
        let path = std::format!("{folder}/{name}.workload");
        if std::env::var_os("PTO_BLESS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        assert!(std::fs::read_to_string(&path).unwrap() == text, "{path} is stale: bless it");
    }
}

#[test]
fn nothing_is_copied_or_converted_after_the_first_round() {
    let virtual_time = Hosting::Virtual(VirtualOptions::default());
    for hosting in [Hosting::default(), Hosting::Threads, virtual_time] {
        let (report, failures) = trained(hosting, Layouts::Same, |_, _| {});
        assert!(failures.is_empty(), "{hosting}: {failures:?}\n{}", report.rest);
        assert_eq!((report.rest.runs, report.rest.binding_hits), (33, 33), "{}", report.rest);
        assert!(report.losses[11] < 0.5 * report.losses[0], "{:?}", report.losses);
    }
}

#[test]
fn differing_layouts_convert_exactly_the_planned_bytes() {
    let (report, failures) = trained(Hosting::default(), Layouts::Differ, |_, _| {});
    assert!(failures.is_empty(), "{failures:?}\n{}", report.rest);
    // Weights for the forward program, the gradient for the optimiser.
    assert_eq!(report.planned_bytes, 2 * 4 * 64 * 96);
    assert_eq!(report.rest.converted_bytes, 11 * report.planned_bytes);
    assert_eq!((report.rest.conversions, report.planned.len()), (22, 2), "{:?}", report.planned);
}

#[test]
fn one_copy_more_is_counted_and_fails_the_check() {
    let copy = |training: &Training, round: u64| {
        if round == 5 {
            let (stream, weights) = training.parts();
            stream.to_host(weights).unwrap();
        }
    };
    let (report, failures) = trained(Hosting::default(), Layouts::Same, copy);
    assert_eq!(report.rest.traffic.to_host_bytes, 4 * 64 * 96);
    let [failure] = failures.as_slice() else { panic!("{failures:?}") };
    assert!(
        failure.contains("there were 24576 bytes copied") && failure.contains("0 are expected"),
        "{failure}"
    );
}

#[test]
fn a_wrong_result_fails_the_check() {
    let (mut report, failures) = trained(Hosting::default(), Layouts::Same, |_, _| {});
    assert!(failures.is_empty(), "{failures:?}");
    report.pcc_change = 0.99;
    report.losses.reverse();
    let failures = report.failures();
    assert!(
        failures.iter().any(|failure| failure.contains("the loss does not fall")),
        "{failures:?}"
    );
    assert!(
        failures.iter().any(|failure| failure.contains("change of the weights")),
        "{failures:?}"
    );
}
