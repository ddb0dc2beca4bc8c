//! `pto completions`, `pto man`, `--version`; and tools that are missing.

use std::fs;

use crate::pto::{answer, command, pto};

#[test]
fn every_shell_gets_a_script_that_knows_the_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = pto(&["completions", shell], 0).stdout;
        for word in ["soak", "--hosting", "rollback"] {
            assert!(script.contains(word.trim_start_matches('-')), "{shell}: no {word}");
        }
    }
    // The one that is on every machine takes it.
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("pto.bash");
    fs::write(&script, pto(&["completions", "bash"], 0).stdout).expect("a file");
    let sourced = format!("source {} && complete -p pto", script.display());
    let output = answer(std::process::Command::new("bash").args(["-c", &sourced]));
    assert!(
        output.code == Some(0) && output.stdout.contains("_pto"),
        "{}{}",
        output.stdout,
        output.stderr
    );
    // Names of examples and of runtimes; where none begins so, bash offers files.
    for (words, completed) in [
        ("pto run vec", "vector_example"),
        ("pto check train", "training_loop"),
        ("pto run x --runtime host", "host_build_graph"),
        ("pto run x --fanout lock-", "lock-free"),
        ("pto run examples/", ""),
        ("pto run x --param kv_h", "kv_heads="),
        ("pto check x --input context", "context_lens="),
    ] {
        let asked = format!(
            "source {}; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _pto pto \"${{COMP_WORDS[-1]}}\" \"${{COMP_WORDS[-2]}}\"; echo ${{COMPREPLY[@]}}",
            script.display()
        );
        let output = answer(std::process::Command::new("bash").args(["-c", &asked]));
        assert_eq!(output.stdout.trim(), completed, "{words}: {}", output.stderr);
    }
    let zsh = pto(&["completions", "zsh"], 0).stdout;
    assert!(zsh.contains("training_loop)\" \"files:file:_files\"}"), "files as well");
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let pages = folder.path().join("man1");
    let output = pto(&["man", pages.to_str().expect("UTF-8")], 0).stdout;
    for page in ["pto.1", "pto-run.1", "pto-soak.1", "pto-fw.1", "pto-fw-build.1"] {
        assert!(output.contains(page), "{output}");
        let text = fs::read_to_string(pages.join(page)).expect("it was written");
        assert!(text.contains(".TH pto") && text.contains("pto "), "{page}");
    }
    let run = fs::read_to_string(pages.join("pto-run.1")).expect("it was written");
    assert!(run.contains("hosting") && run.contains(env!("CARGO_PKG_VERSION")), "{run}");
    // The sections that readers look for, and no other way to say it.
    for section in [".SH EXAMPLES\n.nf\n  pto run", ".SH EXIT STATUS\n.nf\n0  success"] {
        assert!(run.contains(section), "no {section:?} in {run}");
    }
    assert!(["EXTRA", "\nExamples:", "\nExit codes:"].iter().all(|old| !run.contains(old)));
}

#[test]
fn the_version_says_what_was_built() {
    let version = pto(&["--version"], 0).stdout;
    assert!(version.starts_with(&format!("pto {} (", env!("CARGO_PKG_VERSION"))), "{version}");
    assert!(version.contains("development build") || version.contains("commit "), "{version}");
}

/// Building the images takes minutes: what they are for is looked for first.
#[test]
fn qemu_is_looked_for_before_anything_is_built() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut without = command(&["run", "vector_example", "--device=qemu"]);
    let output = answer(without.env("PATH", folder.path()).env("PTO_HOME", folder.path()));
    assert_eq!(output.code, Some(2), "{}", output.stderr);
    assert!(output.stderr.contains("needs QEMU") && output.stderr.contains("qemu-system-aarch64"));
    assert!(!output.stderr.contains("building"), "{}", output.stderr);
}
