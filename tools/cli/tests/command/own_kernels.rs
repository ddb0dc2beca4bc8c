//! `--kernels`: kernels of a shared object, compiled here from `examples/kernels`.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::files::Files;
use crate::pto::{command, pto, refused};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compiles a source in C into `to`.
fn compile(source: &Path, to: &Path, options: &[&str]) {
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-Wall", "-Wextra", "-Werror", "-fPIC"]).args(options);
    cc.arg("-I").arg(root().join("bindings/include")).arg("-o").arg(to).arg(source);
    let printed = cc.output().expect("a C compiler (Debian: gcc)");
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
}

/// The kernels of the example as a shared object.
pub(crate) fn example(to: &Path) {
    compile(&root().join("examples/kernels/scale.c"), to, &["-shared"]);
}

#[test]
fn a_graph_file_runs_on_kernels_of_a_users_own() {
    let (files, folder) = (Files::new(), tempfile::tempdir().expect("a folder"));
    let object = folder.path().join("kernels.so");
    example(&object);
    let object = object.to_str().expect("UTF-8");
    let graph = root().join("examples/graphs/own_kernels.jsonl");
    let graph = graph.to_str().expect("UTF-8");
    let row: Vec<f32> = (0_u16..1000).map(f32::from).collect();
    files.put("row", &[1000], &row);
    files.put("mean", &[1], &[999.0_f32]);
    let (input, expect) = (files.option("row"), files.option("mean"));
    let run = ["run", graph, "--kernels", object, "--input", &input, "--expect", &expect];
    for hosting in ["pool", "threads", "virtual"] {
        let printed = pto(&[&run[..], &["--hosting", hosting]].concat(), 0).stdout;
        assert!(
            printed.contains("100 scale, 101 mean of '") && printed.contains("PASS"),
            "{printed}"
        );
    }
    let printed = pto(&[&run[..], &["--predict"]].concat(), 0).stdout;
    assert!(printed.contains("on profile a2a3"), "{printed}");
    assert!(pto(&["check", graph, "--kernels", object], 0).stdout.contains("CLEAN"));
    refused(&["run", graph], 2, &["line 6", "func id 100", "--kernels names a shared object"]);
    refused(
        &["run", "matmul", "--kernels", object],
        2,
        &["--kernels adds kernels for graph files"],
    );
    // The kind and the number of arguments are those that the object states.
    let text = fs::read_to_string(graph).expect("the graph");
    let broken = folder.path().join("g.jsonl");
    let with = |from: &str, to: &str, words: &[&str]| {
        fs::write(&broken, text.replace(from, to)).expect("a file");
        let file = broken.to_str().expect("UTF-8");
        refused(&["run", file, "--kernels", object], 2, words);
        let printed = pto(&["check", file, "--kernels", object], 1).stdout;
        assert!(printed.contains(words[1]), "{printed}");
    };
    with(
        "\"kind\": \"aic\"",
        "\"kind\": \"aiv\"",
        &["line 7", "func id 101: mean runs on aic cores"],
    );
    with(", 1000]}\n{\"task\": 1", "]}\n{\"task\": 1", &["line 6", "(a, factor, out, n)"]);
    with("\"func\": 101", "\"func\": 102", &["line 7", "no kernel has func id 102"]);
}

/// The process ends by the signal, and says first what raised it, in every hosting mode.
#[test]
fn a_kernel_that_crashes_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, object) = (folder.path().join("k.c"), folder.path().join("k.so"));
    let text = "#include <stdlib.h>\n#include \"pto_kernels.h\"\n\
        static void wild(int64_t *args) { *(volatile int *)(args[0] + 8) = 1; }\n\
        static void gives_up(int64_t *args) { (void)args; abort(); }\n\
        PTO_KERNELS = { {300, PTO_AIV, \"wild\", \"a\", wild}, {301, PTO_AIC, \"gives_up\", \"a\", gives_up} };\n";
    fs::write(&source, text).expect("a file");
    compile(&source, &object, &["-shared"]);
    let graph = folder.path().join("g.jsonl");
    const SIGSEGV: i32 = 11;
    const SIGABRT: i32 = 6;
    for (task, signal, words) in [
        (
            r#"{"task":0,"func":300,"kind":"aiv","args":[16]}"#,
            SIGSEGV,
            "wild (func id 300) raised SIGSEGV at address 0x18 in task 0 on core",
        ),
        (
            r#"{"task":0,"func":301,"kind":"aic","args":[16]}"#,
            SIGABRT,
            "gives_up (func id 301) raised SIGABRT in task 0 on core",
        ),
    ] {
        let head = r#"{"format":"pto-graph","version":1,"variant":"host_build_graph"}"#;
        fs::write(&graph, format!("{head}\n{task}\n")).expect("a file");
        for hosting in ["pool", "threads", "virtual"] {
            let mut run = command(&["run", graph.to_str().expect("UTF-8"), "--hosting", hosting]);
            run.arg("--kernels").arg(&object);
            let ended = run.output().expect("the binary starts");
            let printed = String::from_utf8(ended.stderr).expect("UTF-8");
            assert_eq!(ended.status.signal(), Some(signal), "{hosting}: {printed}");
            assert!(printed.contains(&format!("error: kernel {words}")), "{hosting}: {printed}");
            assert!(
                printed.contains("Mend the kernel, or the arguments of the task."),
                "{printed}"
            );
        }
    }
}

#[test]
fn an_object_that_is_none_is_told_with_what_is_wanted() {
    let folder = tempfile::tempdir().expect("a folder");
    let graph = root().join("examples/graphs/own_kernels.jsonl");
    let graph = graph.to_str().expect("UTF-8");
    let (source, object) = (folder.path().join("k.c"), folder.path().join("k.so"));
    let path = object.to_str().expect("UTF-8");
    let says = |code: i32, words: &[&str]| {
        refused(&["run", graph, "--kernels", path], code, words);
        refused(&["check", graph, "--kernels", path], code, words);
    };
    says(4, &["k.so' cannot be read"]);
    fs::write(&object, "not an object").expect("a file");
    says(2, &["is no shared object"]);
    let with = |entries: &str, options: &[&str], words: &[&str]| {
        let text = format!(
            "#include \"pto_kernels.h\"\nvoid run(int64_t *args);\nvoid run(int64_t *args) {{ (void)args; }}\n{entries}\n"
        );
        fs::write(&source, text).expect("a file");
        compile(&source, &object, options);
        says(2, words);
    };
    let table =
        |entry: &str| format!("PTO_KERNELS = {{ {{1, PTO_AIC, \"a\", 0, run}}, {{{entry}}} }};");
    with("", &["-shared"], &["exports no array `pto_kernels`", "pto_kernels.h"]);
    with(&table("2, 0, \"b\", 0, run"), &["-c"], &["is a relocatable object", "cc -shared"]);
    with(
        "const int pto_kernels[3] = {1};",
        &["-shared"],
        &["12 bytes", "an entry of pto_kernels.h has 32"],
    );
    for (entry, what) in [
        ("4096, 0, \"b\", 0, run", "func is 4096; it is below"),
        ("2, 7, \"b\", 0, run", "kind is 7; it is PTO_AIC (0) or PTO_AIV (1)"),
        ("2, 0, 0, 0, run", "it has no name"),
        ("2, 0, \"b\", 0, 0", "b has no function"),
        ("1, 0, \"b\", 0, run", "func 1 is that of an entry above"),
    ] {
        with(&table(entry), &["-shared"], &["pto_kernels[1]", what]);
    }
}

/// A kernel is trusted with its words, so that the words are checked as far as the library's table knows them.
#[test]
fn words_that_a_kernel_of_the_library_cannot_take_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("g.jsonl");
    let graph = path.to_str().expect("UTF-8");
    let with = |args: &str, words: &[&str]| {
        let lines = [
            r#"{"format":"pto-graph","version":1,"variant":"host_build_graph"}"#,
            r#"{"tensor":0,"name":"x","element":"f32","shape":[8,8]}"#,
            &format!(r#"{{"task":0,"func":5,"kind":"aiv","args":[{args}]}}"#),
        ];
        fs::write(&path, lines.join("\n")).expect("a file");
        refused(&["run", graph], 2, words);
    };
    let view = r#"{"out":{"tensor":0,"shape":[4]}}"#;
    with(&format!("5, {view}, 4, 8, 8"), &["line 3", "argument 0, a, is an address"]);
    with(&format!(r#"{{"in":0}}, {view}, 4, {{"in":0}}, 8"#), &["argument 3, cols, is a number"]);
    with(
        &format!(r#"{{"in":0}}, {view}, 9, 8, 8"#),
        &["argument 0, a, reaches to byte 288 of tensor 0 'x', which has 256"],
    );
    with(
        r#"{"in":0}, {"out":{"tensor":0,"offset":60,"shape":[4]}}, 5, 8, 8"#,
        &["argument 1, out, reaches to byte 260"],
    );
    with(&format!(r#"{{"in":0}}, {view}, 4, 8, 1000000000"#), &["a, reaches to byte 12000000032"]);
    with(&format!(r#"{{"in":0}}, {view}, 4, 8"#), &["row_sum takes 5 arguments", "has 4"]);
    with(&format!(r#"{{"in":0}}, {view}, 4, 8, 8, 8"#), &["row_sum takes 5 arguments", "has 6"]);
    // The words of a kernel without matrices say how much memory there is at least.
    let node = r#"{"task":0,"func":16,"kind":"aiv","args":[31, 0, {"inout":0}, {"inout":0}, {"in":0}, 0]}"#;
    let lines = [
        r#"{"format":"pto-graph","version":1,"variant":"host_build_graph"}"#,
        r#"{"tensor":0,"name":"x","element":"u64","shape":[31]}"#,
        node,
    ];
    fs::write(&path, lines.join("\n")).expect("a file");
    refused(&["run", graph], 2, &["argument 2, values, reaches to byte 256", "which has 248"]);
}
