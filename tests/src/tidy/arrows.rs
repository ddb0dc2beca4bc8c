//! Dependencies between crates point one way (DESIGN.md, section 2).

use super::Finding;

/// What a crate of ours may depend on among ours; `?` after a name: only as an optional dependency; `~`: only in its tests.
const ARROWS: &[(&str, &[&str])] = &[
    ("pto-abi", &[]),
    ("pto-graph", &["pto-abi"]),
    ("pto-aicpu-fw", &["pto-abi", "pto-graph", "pto-check~"]),
    ("pto-aicore-kernels", &["pto-abi", "pto-graph"]),
    ("pto-sim-shim", &["pto-abi", "pto-graph", "pto-aicpu-fw", "pto-aicore-kernels"]),
    ("pto-workload", &["pto-abi", "pto-graph", "pto-aicore-kernels"]),
    ("pto-operators", &["pto-abi", "pto-aicore-kernels", "pto-workload", "pto-host~"]),
    ("pto-models", &["pto-host", "pto-operators"]),
    ("pto-check", &["pto-abi", "pto-graph", "pto-aicpu-fw"]),
    ("pto-host", &["pto-abi", "pto-graph", "pto-aicore-kernels", "pto-workload", "pto-sim-shim?"]),
    ("pto-examples", &["pto-abi", "pto-graph", "pto-aicore-kernels", "pto-workload", "pto-host"]),
    (
        "pto-fuzz",
        &[
            "pto-host",
            "pto-check",
            "pto-examples",
            "pto-c",
            "pto-native",
            "pto-field",
            "pto-acl-interface",
            "pto-models",
        ],
    ),
    ("pto-image-build", &["pto-host?"]),
    (
        "pto-bench",
        &["pto-abi", "pto-graph", "pto-aicore-kernels", "pto-host", "pto-check", "pto-aicpu-fw~"],
    ),
    // Other languages.
    ("pto-native", &["pto-abi", "pto-graph", "pto-host?", "pto-operators?"]),
    ("pto-c", &["pto-host", "pto-native"]),
    ("pto-acl-interface", &[]),
    ("pto-acl-entry", &["pto-acl-interface"]),
    ("pto-acl-graph", &[]),
    (
        "pto-acl",
        &[
            "pto-acl-interface",
            "pto-host",
            "pto-models",
            "pto-native",
            "pto-operators",
            "pto-acl-entry~",
            "pto-acl-graph~",
            "pto-image-build~",
        ],
    ),
    (
        "pto-acl-nn",
        &["pto-abi", "pto-acl-interface", "pto-operators", "pto-acl~", "pto-acl-entry~"],
    ),
    ("pto-acl-hccl", &["pto-acl-interface", "pto-host", "pto-acl~", "pto-acl-entry~"]),
    ("pto-mpi", &["pto-abi", "pto-host"]),
    ("pto-field", &["pto-aicore-kernels", "pto-host", "pto-native", "pto-image-build~"]),
    (
        "pto-python",
        &[
            "pto-field",
            "pto-host",
            "pto-models",
            "pto-native",
            "pto-operators",
            "pto-workload",
            "pto-aicore-kernels",
        ],
    ),
    (
        "pto-cli",
        &[
            "pto-abi",
            "pto-acl-interface",
            "pto-graph",
            "pto-aicore-kernels",
            "pto-host",
            "pto-check",
            "pto-examples",
            "pto-image-build",
            "pto-models",
            "pto-mpi",
            "pto-operators",
            "pto-bench",
            "pto-native",
            "pto-cann-device~",
        ],
    ),
    (
        "pto-tests",
        &[
            "pto-abi",
            "pto-aicpu-fw",
            "pto-aicore-kernels",
            "pto-sim-shim",
            "pto-host",
            "pto-native",
            "pto-c~",
            "pto-check",
            "pto-examples",
            "pto-cli",
            "pto-image-build",
            "pto-bench",
        ],
    ),
    ("xtask", &["pto-abi", "pto-graph", "pto-image-build"]),
    // The images. A firmware crate of a user's own depends on `pto-firmware`, and on `pto-kernels-blob` for
    // kernels, and on nothing else of ours.
    ("pto-firmware", &["pto-abi", "pto-graph", "pto-aicpu-fw", "pto-aicore-kernels", "pto-native"]),
    (
        "pto-images",
        &[
            "pto-firmware",
            "pto-examples",
            "pto-image-build",
            "pto-abi~",
            "pto-graph~",
            "pto-aicore-kernels~",
            "pto-host~",
            "pto-cann-device~",
            "pto-acl-entry~",
            "pto-field~",
        ],
    ),
    ("pto-kernels-blob", &["pto-abi", "pto-aicore-kernels", "pto-native", "pto-image-build?"]),
    ("pto-example-firmware", &["pto-firmware", "pto-kernels-blob", "pto-image-build"]),
    // What plays the device around the images.
    (
        "pto-cann-device",
        &["pto-abi", "pto-graph", "pto-aicpu-fw", "pto-aicore-kernels", "pto-examples", "pto-host"],
    ),
];

/// Crates that run on the device, and what they may take from others: nothing of it needs std.
const DEVICE_CRATES: &[&str] = &["pto-abi", "pto-graph", "pto-aicpu-fw", "pto-aicore-kernels"];
const DEVICE_EXTERNALS: &[&str] =
    &["bitflags", "bytemuck", "half", "heapless", "log", "spin", "volatile-register"];

/// What a dependency is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// The crate itself, or its build script.
    Product,
    /// The crate itself, if a feature asks for it.
    Optional,
    /// The crate under a model checker.
    ModelChecker,
    /// Its tests.
    Test,
}

/// One dependency.
#[derive(Clone, Debug)]
pub struct Arrow {
    /// Who depends.
    pub from: String,
    /// On whom.
    pub to: String,
    /// What for.
    pub used_by: Use,
}

/// The arrows that point the wrong way. `ours` are the names of all workspace members.
#[must_use]
pub fn wrong(ours: &[String], arrows: &[Arrow]) -> Vec<Finding> {
    let is_known = |name: &&String| ARROWS.iter().any(|(known, _)| known == *name);
    let unknown = ours.iter().filter(|name| !is_known(name)).map(|name| Finding {
        location: name.clone(),
        message: "a new crate: say in tests/src/tidy/arrows.rs what it may depend on".to_owned(),
    });
    let wrong = arrows.iter().filter_map(|arrow| {
        let message = judge(ours, arrow)?;
        Some(Finding { location: format!("{} -> {}", arrow.from, arrow.to), message })
    });
    unknown.chain(wrong).collect()
}

fn judge(ours: &[String], arrow: &Arrow) -> Option<String> {
    if ours.contains(&arrow.to) {
        return judge_inner(arrow);
    }
    let on_device = DEVICE_CRATES.contains(&arrow.from.as_str());
    let in_product = matches!(arrow.used_by, Use::Product | Use::Optional);
    let is_bare = DEVICE_EXTERNALS.contains(&arrow.to.as_str());
    (on_device && in_product && !is_bare)
        .then(|| format!("a device crate takes only {}", DEVICE_EXTERNALS.join(", ")))
}

fn judge_inner(arrow: &Arrow) -> Option<String> {
    let (_, allowed) = ARROWS.iter().find(|(name, _)| *name == arrow.from)?;
    if allowed.contains(&arrow.to.as_str()) {
        return None;
    }
    if allowed.contains(&format!("{}~", arrow.to).as_str()) {
        return (arrow.used_by != Use::Test).then(|| "only tests may take it".to_owned());
    }
    let behind_feature = format!("{}?", arrow.to);
    if !allowed.contains(&behind_feature.as_str()) {
        return Some("the arrow points the wrong way".to_owned());
    }
    let is_product = arrow.used_by == Use::Product;
    is_product.then(|| "only behind a feature: make it optional".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{ARROWS, Arrow, Use, wrong};

    fn verdict(from: &str, to: &str, used_by: Use) -> Vec<String> {
        let ours: Vec<_> = ARROWS.iter().map(|(name, _)| (*name).to_owned()).collect();
        let arrow = Arrow { from: from.to_owned(), to: to.to_owned(), used_by };
        wrong(&ours, &[arrow]).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_wrong_arrow_is_found() {
        assert_eq!(
            verdict("pto-abi", "pto-host", Use::Product),
            ["pto-abi -> pto-host: the arrow points the wrong way"]
        );
        assert_eq!(verdict("pto-aicpu-fw", "pto-sim-shim", Use::Test).len(), 1);
        assert!(verdict("pto-sim-shim", "pto-aicpu-fw", Use::Product).is_empty());
    }

    #[test]
    fn the_simulator_stands_behind_a_feature() {
        assert_eq!(verdict("pto-host", "pto-sim-shim", Use::Product).len(), 1);
        assert!(verdict("pto-host", "pto-sim-shim", Use::Optional).is_empty());
    }

    #[test]
    fn the_firmware_takes_the_memory_of_its_tests_only_there() {
        assert_eq!(verdict("pto-aicpu-fw", "pto-check", Use::Product).len(), 1);
        assert!(verdict("pto-aicpu-fw", "pto-check", Use::Test).is_empty());
    }

    #[test]
    fn a_device_crate_takes_bare_crates_only() {
        assert_eq!(verdict("pto-aicpu-fw", "thiserror", Use::Product).len(), 1);
        assert!(verdict("pto-aicpu-fw", "loom", Use::ModelChecker).is_empty());
        assert!(verdict("pto-aicpu-fw", "spin", Use::Product).is_empty());
        assert!(verdict("pto-host", "thiserror", Use::Product).is_empty());
    }

    #[test]
    fn a_crate_that_is_not_in_the_table_is_found() {
        let found = wrong(&["pto-new".to_owned()], &[]);
        assert!(found[0].to_string().contains("pto-new: a new crate"));
    }
}
