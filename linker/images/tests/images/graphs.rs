//! The default image runs whole graphs and every fault path, of AArch64 under qemu-aarch64, and of this machine.

use std::time::Duration;

use crate::common;

#[test]
fn whole_graphs_and_every_fault_path() {
    for machine in common::MACHINES {
        let image = common::default_image(*machine);
        let printed = common::load(*machine, "default", &image, Duration::from_secs(300));
        assert!(printed.lines().filter(|line| line.starts_with("ok ")).count() >= 50, "{machine}");
    }
}
