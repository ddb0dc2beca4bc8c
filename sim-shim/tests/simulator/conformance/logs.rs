//! What firmware and builder log arrives in the ring of the instance that logged it.

use std::sync::Once;

use pto_abi::runtime::region;
use pto_graph::{BuildError, GraphBuilder};

use super::dag::Dag;
use super::ways::{check, for_every_way, launch};
use crate::common::Device;
use pto_sim_shim::logging;

/// Logs a line that does not fit one entry.
pub(crate) fn build<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    log::warn!("builder says {} {}", graph.orch_args()[0], "word ".repeat(40));
    Ok(())
}

fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        logging::install(logging::NoLogger).unwrap();
        log::set_max_level(log::LevelFilter::Debug);
    });
}

/// Each instance's messages with their levels, in order.
fn messages(device: &Device, instance: usize) -> Vec<(u8, String)> {
    let at = device.arena.regions()[region::LOGS];
    let ring = device.arena.log_ring(at, instance).unwrap();
    let mut messages = Vec::new();
    let mut bytes = Vec::new();
    let mut last_ns = 0;
    for number in 0..ring.written() {
        let entry = ring.read(number).unwrap();
        assert!(entry.time_ns >= last_ns, "the clock goes back");
        last_ns = entry.time_ns;
        bytes.extend_from_slice(entry.bytes());
        if !entry.continues {
            let text = String::from_utf8(std::mem::take(&mut bytes)).unwrap();
            messages.push((entry.level, text));
        }
    }
    messages
}

#[test]
fn every_instance_logs_into_its_own_ring() {
    install();
    for_every_way(|device| {
        check(device, &Dag::random(51, 20));
        for instance in 0..device.options.aicpu as usize {
            let said = messages(device, instance);
            assert!(!said.is_empty(), "instance {instance} says nothing");
            let prefix = format!("instance {instance}:");
            for (_, text) in &said {
                assert!(text.starts_with(&prefix), "in the ring of instance {instance}: {text}");
            }
        }
        assert!(
            messages(device, 0)
                .iter()
                .any(|(_, text)| text.ends_with("graph of 20 tasks is built"))
        );
        assert!(
            messages(device, device.options.aicpu as usize).is_empty(),
            "there is no such instance"
        );
    });
}

#[test]
fn a_builder_logs_into_the_ring_of_instance_0() {
    install();
    for hosting in crate::common::hostings() {
        let mut device = super::ways::device(hosting, super::ways::options());
        assert_eq!(device.run("logs", &[4711]).fault, None);
        let line = format!("builder says 4711 {}", "word ".repeat(40));
        assert!(messages(&device, 0).contains(&(2, line)), "{:?}", messages(&device, 0));
        for instance in 1..4 {
            assert!(messages(&device, instance).iter().all(|(level, _)| *level == 4));
        }
    }
}

#[test]
fn a_fault_is_logged_where_it_was_raised() {
    install();
    for hosting in crate::common::hostings() {
        let mut device = super::ways::device(hosting, super::ways::options());
        assert!(device.run("unknown_func", &[]).fault.is_some());
        let errors = messages(&device, 0).into_iter().filter(|(level, _)| *level == 1);
        let errors: Vec<_> = errors.map(|(_, text)| text).collect();
        assert_eq!(errors.len(), 1);
        assert!(errors[0].contains("BUILD_UNKNOWN_FUNC"), "{}", errors[0]);
        assert_eq!(launch(&mut device, &Dag::random(52, 20)).fault, None);
    }
}
