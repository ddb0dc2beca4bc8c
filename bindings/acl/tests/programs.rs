//! Programs in C against the headers and the library: the conformance suite, the pattern of a real backend, how processes end.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where cargo has put the library: beside this test.
fn library_folder() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let folder = test.parent().expect("and a folder").to_path_buf();
    let library = folder.join("libascendcl.so");
    assert!(library.is_file(), "{} is missing", library.display());
    folder
}

fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| {
        panic!("{command:?} cannot be started ({error}): install gcc and g++ (Debian: g++)")
    })
}

fn run(command: &mut Command) -> String {
    let output = output(command);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{said}\n{errors}", output.status);
    said
}

/// A compiler with warnings as errors, and our headers.
fn compiler(program: &str, standard: &str) -> Command {
    let mut command = Command::new(program);
    command.args([
        "-D_GNU_SOURCE",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-O1",
        standard,
        "-pthread",
        "-I",
    ]);
    command.arg(here().join("include"));
    command
}

/// Compiles C sources below `tests/c` to a program.
fn build(sources: &[&str], to: &Path) {
    let mut command = compiler("cc", "-std=c11");
    command.args(sources.iter().map(|source| here().join("tests/c").join(source)));
    command.arg("-o").arg(to).arg("-L").arg(library_folder()).arg("-lascendcl");
    run(command.arg(format!("-Wl,-rpath,{}", library_folder().display())));
}

const CONFORMANCE: &[&str] = &[
    "conformance/main.c",
    "conformance/basics.c",
    "conformance/streams.c",
    "conformance/memory.c",
    "conformance/order.c",
    "conformance/kernels.c",
];

/// The columns of the table of functions: tier, header, result, name, parameters.
fn names() -> BTreeSet<String> {
    let table = include_str!("../interface/functions.tsv");
    table
        .lines()
        .skip(1)
        .map(|row| row.split('\t').nth(3).expect("five columns").to_owned())
        .collect()
}

#[test]
fn the_conformance_suite_passes() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let (program, object) = (folder.path().join("conformance"), folder.path().join("kernels.so"));
    build(CONFORMANCE, &program);
    let source = here().join("tests/c/conformance/object.c");
    run(compiler("cc", "-std=c11").args(["-shared", "-fPIC"]).arg(source).arg("-o").arg(&object));
    let said = run(Command::new(&program).arg(&object));
    let count: u32 = said.split(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0);
    assert!(said.contains(", 0 failed") && count >= 800, "{said}");
}

#[test]
fn a_pool_with_streams_events_and_a_graph_works() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let program = folder.path().join("pool");
    build(&["pool.c"], &program);
    assert_eq!(run(&mut Command::new(&program)), "pool: ok\n");
    // In virtual time, for some orders of the same commands.
    for seed in ["1", "7"] {
        assert_eq!(run(Command::new(&program).env("PTO_ACL_SEED", seed)), "pool: ok\n");
    }
}

#[test]
fn a_process_may_end_in_any_way() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let program = folder.path().join("ends");
    build(&["ends.c"], &program);
    for way in ["return", "_exit", "fork", "busy", "reset", "cycles"] {
        let said = run(Command::new("timeout").arg("30").arg(&program).arg(way));
        assert_eq!(said, format!("{way}: ok\n"));
    }
}

#[test]
fn the_list_of_visible_devices_ends_at_the_first_that_is_none() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let program = folder.path().join("ends");
    build(&["ends.c"], &program);
    let count = |list: &str| {
        run(Command::new(&program).arg("count").env("ASCEND_RT_VISIBLE_DEVICES", list))
    };
    assert_eq!(count("5,2"), "0 2 2\n");
    assert_eq!(count("2,9,1"), "0 1 2\n");
    assert_eq!(count(""), "0 0 -1\n");
}

#[test]
fn the_headers_are_c11_and_cpp17_and_the_layouts_are_those_of_the_facts() {
    for (program, standard, language) in [("cc", "-std=c11", "c"), ("c++", "-std=c++17", "c++")] {
        let source = here().join("tests/c/layout.c");
        run(compiler(program, standard).args(["-fsyntax-only", "-x", language]).arg(source));
    }
}

#[test]
fn every_function_of_the_table_is_exported_and_no_other() {
    let library = library_folder().join("libascendcl.so");
    let said = run(Command::new("nm").args(["-D", "--defined-only"]).arg(&library));
    let exported: BTreeSet<String> =
        said.lines().filter_map(|line| line.split(' ').next_back()).map(str::to_owned).collect();
    let names = names();
    let missing: Vec<&String> = names.difference(&exported).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let more = exported.difference(&names).filter(|name| name.starts_with("acl"));
    assert_eq!(more.collect::<Vec<_>>(), Vec::<&String>::new());
    assert_eq!(names.len(), 404);
}
