//! The sources as the vendor's compiler gets them, with the words of its dialect defined away; and what a core's program may not have.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The intrinsics that the sources use, declared.
const INTRINSICS: &str = r#"
#define PTO_AICORE
#define PTO_GM
#define __global__
#include <stdint.h>
int64_t get_block_idx(), get_block_num(), get_subblockid(), get_subblockdim();
void set_cond(uint32_t);
void set_ffts_base_addr(uint64_t);
void trap();
enum { SINGLE_CACHE_LINE, ENTIRE_DATA_CACHE };
enum { CACHELINE_OUT };
void dcci(void *, int);
void dcci(void *, int, int);
template <typename T> T ld_dev(T *from, int64_t) { return *from; }
template <typename T> void st_dev(T value, T *to, int64_t) { *to = value; }
"#;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("aicore")
}

fn kernels() -> Vec<PathBuf> {
    let files = fs::read_dir(folder().join("kernels")).expect("it is there");
    let files = files.map(|entry| entry.expect("it is read").path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "cpp")).collect()
}

fn compiler() -> Command {
    let mut command = Command::new("c++");
    command.args(["-std=c++17", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-I"]);
    command.arg(folder()).arg("-I").arg(folder().join("this_machine"));
    command.arg("-I").arg(folder().join("../../bindings/include"));
    command
}

fn assert_compiles(command: &mut Command) {
    let output = command.output().expect("a C++ compiler is installed: apt-get install g++");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Every line that is for the device only is C++ as well.
#[test]
fn the_sources_for_the_device_have_no_error_of_syntax() {
    let out = tempfile::tempdir().expect("a folder");
    let intrinsics = out.path().join("intrinsics.h");
    // The pipes' barrier of the worker: that of the header which replaces PTO-ISA.
    let barrier = "\n#include \"pto/pto-inst.hpp\"\n";
    fs::write(&intrinsics, format!("{INTRINSICS}{barrier}")).expect("writable");
    let of_device = |sources: &[PathBuf], kind: &str| {
        let mut command = compiler();
        command.args(["-fsyntax-only", kind, "-include"]).arg(&intrinsics).args(sources);
        assert_compiles(&mut command);
    };
    for kind in ["-D__DAV_CUBE__", "-D__DAV_VEC__"] {
        of_device(&[folder().join("worker.cpp")], kind);
    }
    assert!(kernels().len() >= 41, "{}", kernels().len());
    of_device(&kernels(), "-D__DAV_VEC__");
}

/// The worker: no function calls itself, nothing is written but the stack and GM, and the stack is below what a core has.
#[test]
fn the_worker_has_nothing_that_a_core_forbids() {
    let out = tempfile::tempdir().expect("a folder");
    for kind in ["-D__DAV_CUBE__", "-D__DAV_VEC__"] {
        let object = out.path().join("worker.o");
        let mut command = compiler();
        // Without inlining, so that every call is one.
        command.args([
            "-O0",
            "-c",
            "-fcallgraph-info",
            "-Wstack-usage=16384",
            "-DPTO_ON_THIS_MACHINE",
            kind,
        ]);
        assert_compiles(command.arg(folder().join("worker.cpp")).arg("-o").arg(&object));
        let graph =
            fs::read_to_string(out.path().join("worker.ci")).expect("the compiler has written it");
        assert_eq!(in_a_circle(&graph), BTreeSet::new(), "functions that call themselves");
        let sizes = Command::new("size").arg(&object).output().expect("binutils are installed");
        let sizes = String::from_utf8_lossy(&sizes.stdout).into_owned();
        let words: Vec<&str> = sizes.lines().nth(1).expect("a row").split_whitespace().collect();
        assert_eq!(words[1..3], ["0", "0"], "data and bss: {sizes}");
    }
}

/// The functions that reach themselves, of a graph as the compiler writes it.
fn in_a_circle(graph: &str) -> BTreeSet<&str> {
    let mut calls = BTreeMap::<&str, Vec<&str>>::new();
    for line in graph.lines().filter(|line| line.starts_with("edge:")) {
        let mut names = line.split('"').skip(1).step_by(2);
        if let (Some(from), Some(to)) = (names.next(), names.next()) {
            calls.entry(from).or_default().push(to);
        }
    }
    assert!(calls.len() > 5, "the graph was not read: {graph}");
    let reaches_itself = |start: &&str| {
        let (mut seen, mut next) = (BTreeSet::new(), calls[start].clone());
        while let Some(name) = next.pop() {
            if seen.insert(name) {
                next.extend(calls.get(name).into_iter().flatten());
            }
        }
        seen.contains(start)
    };
    calls.keys().filter(|start| reaches_itself(start)).copied().collect()
}

#[test]
fn a_function_that_calls_itself_is_found() {
    let edge = |from: &str, to: &str| {
        format!("edge: {{ sourcename: \"{from}\" targetname: \"{to}\" label: \"x\" }}\n")
    };
    let straight: String = (0..7).map(|at| edge(&at.to_string(), &(at + 1).to_string())).collect();
    assert!(in_a_circle(&straight).is_empty());
    let round = format!("{straight}{}", edge("7", "5"));
    assert_eq!(in_a_circle(&round), BTreeSet::from(["5", "6", "7"]));
}
