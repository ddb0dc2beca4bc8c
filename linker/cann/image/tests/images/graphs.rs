//! The default image runs whole graphs and every fault path, under qemu-aarch64.

use std::time::Duration;

use crate::common;

#[test]
fn whole_graphs_and_every_fault_path() {
    let printed = common::load("default", &common::default_image(), Duration::from_secs(300));
    assert!(printed.lines().filter(|line| line.starts_with("ok ")).count() >= 50);
}
