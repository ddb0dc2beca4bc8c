//! Programs of ours that call the interface as known clients of it do: each calls every function of its client that works here.

#[path = "support/program.rs"]
mod program;
mod support;

use std::collections::BTreeSet;
use std::path::Path;

use program::{program, said};
use support::{here, start};

/// A client: its name, the program with its pattern below `tests/c`, and the functions that it calls.
struct Client {
    name: &'static str,
    program: &'static str,
    functions: BTreeSet<&'static str>,
}

fn clients() -> Vec<Client> {
    let row = |row: &'static str| {
        let cells: Vec<&str> = row.split('\t').collect();
        let [name, program, functions] = cells[..] else { panic!("three columns: {row}") };
        Client { name, program, functions: functions.split(' ').collect() }
    };
    include_str!("clients.tsv").lines().skip(1).map(row).collect()
}

/// The functions that the documentation says are not supported.
fn refused() -> BTreeSet<&'static str> {
    let page = include_str!("../../../docs/reference/acl-functions.md");
    let rows = page.lines().filter(|row| row.ends_with("| not supported |"));
    rows.filter_map(|row| row.split('`').nth(1)).collect()
}

/// The words of a program in C outside of its comments: what it calls is among them.
fn words(source: &str) -> BTreeSet<&str> {
    let code = source.split("/*").flat_map(|part| part.split_once("*/").map(|(_, code)| code));
    code.flat_map(|code| code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')).collect()
}

#[test]
fn a_program_calls_every_function_of_its_client_that_works() {
    let (refused, mut works) = (refused(), 0);
    let all: BTreeSet<&str> = pto_acl_interface::all().map(|function| function.name).collect();
    for client in clients() {
        let unknown: Vec<_> = client.functions.difference(&all).collect();
        assert!(unknown.is_empty(), "{}: {unknown:?} are no functions", client.name);
        let path = here().join("tests/c").join(client.program);
        let source = std::fs::read_to_string(&path).expect("a program");
        let called = words(&source);
        let wanted: BTreeSet<&str> = client.functions.difference(&refused).copied().collect();
        let missing: Vec<_> = wanted.difference(&called).collect();
        assert!(missing.is_empty(), "{} does not call {missing:?}", client.program);
        works += wanted.len();
    }
    assert_eq!(works, 38 + 116 + 42 + 42 + 29 + 22);
}

#[test]
fn each_program_works_in_real_and_in_virtual_time() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    for client in clients() {
        let stem = Path::new(client.program).file_stem().expect("a file").to_string_lossy();
        let program = program(client.program, folder.path());
        for seed in [None, Some("1"), Some("7")] {
            let mut command = start(Path::new("timeout"));
            command.arg("120").arg(&program).envs(seed.map(|seed| ("PTO_ACL_SEED", seed)));
            let (out, errors, code) = said(&mut command);
            let well = format!("{stem}: ok\n");
            assert_eq!((&*out, &*errors, code), (&*well, "", Some(0)), "{seed:?}");
        }
    }
}
