//! A firmware crate of one's own, with a builder in Rust and one in C: in this workspace, and from outside it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pto_host::fw::Machine;

use crate::{common, examples};

const LIMIT: Duration = Duration::from_secs(120);

#[test]
fn in_this_workspace() {
    let image = common::build(Some(&common::root().join("linker/example-firmware")));
    let printed = common::load(Machine::Aarch64, "example", &image, LIMIT);
    // The program in C++ makes the bits of the one in Rust.
    let shapes = examples::on_simulator("task_shapes:tasks=12:layers=4:rows=3:meet=1");
    let expected = format!("bits {shapes:#018x}");
    assert_eq!(printed.lines().filter(|line| line.ends_with(&expected)).count(), 4, "{expected}");
}

#[test]
fn from_outside() {
    let image = build_outside("outside-firmware", |source| source);
    common::load(Machine::Aarch64, "example", &image, LIMIT);
    assert_eq!(common::panics(&common::symbols(&fs::read(&image).unwrap())), [""; 0]);
}

/// The control of `image::no_panic_is_in_it`: a builder that may panic is found.
#[test]
fn the_method_sees_a_panic() {
    let image = build_outside("panicking-firmware", |source| {
        let changed = source.replace("for _ in 0..times {", "for _ in 0..100 / times {");
        assert_ne!(changed, source, "the example has changed");
        changed
    });
    let names = common::symbols(&fs::read(&image).unwrap());
    let panics = common::panics(&names);
    assert!(panics.iter().any(|name| name.contains("panicking")), "{panics:#?}");
}

/// Builds a copy of the example, changed, under this name, in a folder outside of this workspace.
fn build_outside(name: &str, change: impl FnOnce(String) -> String) -> PathBuf {
    let example = common::root().join("linker/example-firmware");
    let outside = tempfile::tempdir().expect("a temporary folder");
    let folder = outside.path();
    for part in [
        "c/build_graph.c",
        "c/increments.cpp",
        "c/shapes.cpp",
        "build.rs",
        "src/lib.rs",
        "src/qemu.rs",
        "src/kernels.rs",
    ] {
        copy(&example.join(part), &folder.join(part));
    }
    let source = fs::read_to_string(example.join("src/builders.rs")).expect("the example");
    fs::write(folder.join("src/builders.rs"), change(source)).expect("writable");
    let manifest = fs::read_to_string(example.join("Cargo.toml")).expect("a manifest");
    let linker = common::root().join("linker").display().to_string();
    let manifest =
        manifest.replace("\"../", &format!("\"{linker}/")).replace("pto-example-firmware", name);
    fs::write(folder.join("Cargo.toml"), manifest).expect("writable");
    let lock = common::root().join("Cargo.lock");
    if lock.exists() {
        copy(&lock, &folder.join("Cargo.lock"));
    }
    common::build(Some(folder))
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().expect("a file has a folder")).expect("writable");
    fs::copy(from, to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
}
