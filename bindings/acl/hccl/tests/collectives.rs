//! A program in C that calls every function of `libhccl.so`: with several ranks in one process, and with a rank in a process of its own.

use std::path::{Path, PathBuf};
use std::process::Output;

#[path = "../../tests/support/commands.rs"]
mod commands;
#[path = "../../tests/support/mod.rs"]
mod support;

use commands::run;
use support::{compiler, here, library_folder, start};

fn built(folder: &Path) -> PathBuf {
    let (source, program) = (here().join("tests/c/collectives.c"), folder.join("collectives"));
    let mut command = compiler("cc", "-std=c11");
    command.arg(source).arg("-o").arg(&program).arg("-L").arg(library_folder());
    run(command.args(["-lhccl", "-lascendcl"]));
    program
}

/// Starts the program with so many devices, so that a rank that waits for ever ends the test.
fn said(program: &Path, words: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = start(Path::new("timeout"));
    command.args(["60".as_ref(), program.as_os_str()]).args(words);
    let output =
        commands::output(command.envs(variables.iter().copied()).env("PTO_ACL_DEVICES", "4"));
    let [out, errors] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(output.status.success(), "{words:?}: {}\n{out}\n{errors}", output.status);
    output
}

#[test]
fn every_function_with_ranks_in_one_process_and_in_two() {
    let folder = tempfile::tempdir().expect("a folder for the program");
    let program = built(folder.path());
    for words in [["all", "3"], ["root", "2"], ["processes", "2"]] {
        let output = said(&program, &words, &[]);
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(out.ends_with(&format!("{} ranks, every function\n", words[1])), "{out}");
    }
}

#[test]
fn a_rank_that_dies_is_named() {
    let folder = tempfile::tempdir().expect("a folder for the program");
    let program = built(folder.path());
    let output = said(&program, &["dies", "2"], &[]);
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(out.contains("rank 1 has died; rank 0 waits for it"), "{out}");
    // The shell stands for the process that is killed; the other one writes on behind its end.
    let mut shell = start(Path::new("timeout"));
    let script = format!("('{}' root-dies 2 | cat) 2>/dev/null", program.display());
    let out = run(shell.args(["60", "sh", "-c", &script]).env("PTO_ACL_DEVICES", "4"));
    assert!(out.contains("rank 0 has died") && out.contains("rank 1 waits for it"), "{out}");
}

#[test]
fn ranks_of_a_rank_table_meet_in_two_processes() {
    let folder = tempfile::tempdir().expect("a folder for the program");
    let table = folder.path().join("ranks.json");
    let device = |rank: u32| {
        format!(r#"{{"device_id": "{rank}", "device_ip": "10.0.0.{rank}", "rank_id": "{rank}"}}"#)
    };
    let text = format!(
        r#"{{"version": "1.0", "status": "completed", "server_count": "1", "server_list": [{{"server_id": "10.0.0.9", "device": [{}, {}]}}]}}"#,
        device(0),
        device(1)
    );
    std::fs::write(&table, text).expect("a rank table");
    // A port that nobody has now.
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = free.local_addr().expect("an address").port().to_string();
    drop(free);
    let program = built(folder.path());
    let words = ["table", "2", &table.to_string_lossy()];
    said(&program, &words, &[("HCCL_IF_BASE_PORT", &port)]);
}

/// The library has the functions that its header declares.
#[test]
fn the_header_and_the_library_have_the_same_functions() {
    let library = std::fs::read(library_folder().join("libhccl.so")).expect("the library");
    let header = std::fs::read_to_string(here().join("include/hccl/hccl.h")).expect("the header");
    let names: Vec<&str> = header
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| word.starts_with("Hccl"))
        .filter(|word| {
            header.contains(&format!(" {word}(")) || header.contains(&format!("*{word}("))
        })
        .collect();
    assert_eq!(names.len(), 25);
    for name in names {
        let text = format!("\0{name}\0");
        assert!(library.windows(text.len()).any(|bytes| bytes == text.as_bytes()), "{name}");
    }
}
