//! `pto fw build --image cann --aicore` and `pto fw seal`: the program of AICores is built with the compiler that stands in for the vendor's, on this
//! machine by `pto` and elsewhere by cmake; what no core can run is refused.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use pto_image_build::{
    AicoreBuilt, AicoreRequest, BuildError, KernelSource, build_aicore, packages, stand_in,
};
use serde_json::Value;

use crate::a2a3;
use crate::files::Files;
use crate::firmware::Home;
use crate::pto::answer;
use crate::schema::conforms;

/// A kernel of a user's own: it multiplies elements by a scalar.
const SCALE: &str = r#"#include "kernel.h"
#include "factor.h"

PTO_KERNEL(args) {
    for (int64_t at = 0; at < args.size(2); ++at) {
        kernel::store(args.gm(1), at, kernel::load(args.gm(0), at) * FACTOR);
    }
}
"#;

/// A task on it: it has the func id of `exp`, whose arguments are the same.
const GRAPH: &str = r#"{"format": "pto-graph", "version": 1, "name": "three times a row", "variant": "host_build_graph"}
{"tensor": 0, "name": "row", "element": "f32", "shape": [100]}
{"tensor": 1, "name": "tripled", "element": "f32", "shape": [100]}
{"task": 0, "name": "scale", "func": 3, "kind": "aiv", "args": [{"in": 0}, {"out": 1}, 100]}
"#;

/// A folder with a kernel, its header, and the compiler.
struct Sources {
    folder: tempfile::TempDir,
}

impl Sources {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        stand_in::lay_out_compiler(&folder.path().join("cann")).expect("writable");
        fs::write(folder.path().join("scale.cpp"), SCALE).expect("writable");
        fs::write(folder.path().join("factor.h"), "constexpr float FACTOR = 3.0f;\n")
            .expect("writable");
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn word(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// What comes of this text as a kernel.
    fn build(&self, text: &str) -> Result<AicoreBuilt, BuildError> {
        self.build_and_tell(text, &|_| ())
    }

    /// The same, and what is said meanwhile.
    fn build_and_tell(&self, text: &str, say: &dyn Fn(&str)) -> Result<AicoreBuilt, BuildError> {
        let path = self.path("one.cpp");
        fs::write(&path, text).expect("writable");
        let kernel = KernelSource::parse(&format!("100:aiv:one={}", path.display()));
        let request = AicoreRequest {
            pto_isa: Some(this_machine()),
            kernels: vec![kernel.expect("it has the form of one")],
            kernel_includes: Vec::new(),
            home: Some(self.path("cann")),
            folder: Some(self.path("tree")),
        };
        build_aicore(&request, say)
    }
}

/// The headers that replace PTO-ISA on a development machine.
fn this_machine() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../aicore-kernels/aicore/this_machine")
}

/// The words of a command that builds the kernel for the stand-in.
fn build_words(sources: &Sources) -> Vec<String> {
    let fixed = ["fw", "build", "--image", "cann", "--machine", "x86-64", "--release", "--aicore"];
    let mut words: Vec<String> = fixed.map(str::to_owned).into();
    let kernel = format!("3:aiv:scale={}", sources.word("scale.cpp"));
    words.extend(["--kernel".to_owned(), kernel, "--json".to_owned()]);
    words.extend(["--pto-isa".to_owned(), this_machine().display().to_string()]);
    words.extend(["--aicore-sources".to_owned(), sources.word("tree")]);
    words
}

fn run(command: &mut Command) -> Value {
    let told = answer(command);
    assert_eq!(told.code, Some(0), "{command:?}\n{}{}", told.stdout, told.stderr);
    conforms("fw_build", &["fw", "build"], &told)
}

/// The image of a kind among those that a command has made.
fn image_of(built: &Value, kind: &str) -> String {
    let images = built["images"].as_array().expect("a list");
    let image = images.iter().find(|image| image["kind"] == kind).expect("it is built");
    image["file"].as_str().expect("a path").to_owned()
}

#[test]
fn a_program_for_aicores_is_built_here_or_elsewhere_and_sealed() {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    let (sources, home) = (Sources::new(), Home::new());
    let words = build_words(&sources);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    // With the compiler: firmware and program, sealed.
    let built = run(home.command(&words).env("ASCEND_HOME_PATH", sources.path("cann")));
    let objects = &built["aicore"]["objects"];
    assert_eq!((&objects[0]["name"], &objects[1]["name"]), (&"worker".into(), &"scale".into()));
    assert!(objects[1]["text_bytes"].as_u64().is_some_and(|bytes| (20..500).contains(&bytes)));
    let (firmware, here) = (image_of(&built, "cann"), image_of(&built, "aicore"));
    let first = fs::read(&here).expect("it is there");
    // Without it: the source tree, and what to do with it.
    let left = run(home.command(&words).env_remove("ASCEND_HOME_PATH"));
    assert_eq!(left["aicore"]["sources"], sources.word("tree"), "{left}");
    assert!(!sources.path("tree/out").exists(), "what an earlier build made is gone");
    // Elsewhere: cmake finds the compiler, and makes the same objects.
    packages::install(&[packages::CMAKE], &|what| println!("{what}"))
        .unwrap_or_else(|why| panic!("{why}"));
    let cmake = |arguments: &[String]| {
        let mut command = Command::new("cmake");
        let output = command.args(arguments).env("ASCEND_HOME_PATH", sources.path("cann")).output();
        let output = output.expect("cmake is installed");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), said)
    };
    let (tree, out) = (sources.word("tree"), sources.word("build"));
    let configure = |isa: &str| {
        cmake(&["-S".into(), tree.clone(), "-B".into(), out.clone(), format!("-DPTO_ISA={isa}")])
    };
    let (is_done, said) = configure("/no/such/headers");
    assert!(!is_done && said.contains("pto/pto-inst.hpp"), "{said}");
    let (is_done, said) = configure(&this_machine().display().to_string());
    assert!(is_done, "{said}");
    let (is_done, said) = cmake(&["--build".into(), out.clone()]);
    assert!(is_done, "{said}");
    let sealed = run(&mut home.command(&["fw", "seal", &tree, "--json"]));
    let there = image_of(&sealed, "aicore");
    assert_eq!(fs::read(&there).expect("it is there"), first, "here and elsewhere");
    // It is shown, and flashed beside the firmware.
    let shown = ["fw", "inspect", &there, "--json"];
    let shown = conforms("fw_inspect", &shown, &home.pto(&shown, 0));
    assert_eq!((&shown["kind"], &shown["machine"]), (&"aicore".into(), &"x86_64".into()));
    assert_eq!(shown["kernels"][0]["name"], "scale");
    assert_eq!(shown["checksum_is_right"], true);
    let text = home.pto(&["fw", "inspect", &there], 0).stdout;
    for word in ["a program for AICores", ".pto.worker", "scale"] {
        assert!(text.contains(word), "{word:?} is not in {text}");
    }
    home.pto(&["fw", "flash", &firmware, &there], 0);
    runs_behind_the_stand_in(&home);
    let refused = home.pto(&["fw", "flash", &there, "--device", "qemu"], 2).stderr;
    assert!(refused.contains("a2a3 (--device a2a3)"), "{refused}");
}

/// A graph file on the kernel of one's own, on the cores of the stand-in.
fn runs_behind_the_stand_in(home: &Home) {
    let (files, cann) = (Files::new(), a2a3::cann(&home.path()));
    let row: Vec<f32> = (0_u16..100).map(f32::from).collect();
    let tripled: Vec<f32> = row.iter().map(|element| 3.0 * element).collect();
    files.put("row", &[100], &row);
    files.put("tripled", &[100], &tripled);
    let graph = home.path().join("graph.jsonl");
    fs::write(&graph, GRAPH).expect("writable");
    let (graph, input, expect) =
        (graph.display().to_string(), files.option("row"), files.option("tripled"));
    let run = ["run", &graph, "--device", "a2a3", "--input", &input, "--expect", &expect];
    let told = answer(home.command(&run).env("ASCEND_HOME_PATH", cann));
    assert_eq!(told.code, Some(0), "{}{}", told.stdout, told.stderr);
    assert!(told.stdout.contains("PASS"), "{}", told.stdout);
}

/// What is wrong with a kernel or with a tree, and what is said of it.
#[test]
fn what_no_core_can_run_is_refused() {
    let sources = Sources::new();
    let with = |from: &str, to: &str| {
        let text = "#include \"kernel.h\"\nint helper(int);\nPTO_KERNEL(args) { BODY; }\n";
        text.replace(from, to)
    };
    let cases: &[(String, &str)] = &[
        (
            with("BODY", "static int calls; kernel::store(args.gm(0), 0, float(calls++))"),
            "only .text goes to GM",
        ),
        (
            with("BODY", "kernel::store(args.gm(0), 0, float(helper(1)))"),
            "undefined reference to `helper(int)",
        ),
        (
            with("PTO_KERNEL(args) { BODY; }", "extern \"C\" void other(int64_t *) {}"),
            "no function `kernel_entry`",
        ),
        (
            with(
                "PTO_KERNEL(args) { BODY; }",
                "extern \"C\" __attribute__((section(\".text.kernel_entry\"), visibility(\"default\"))) int before() { return 1; }\nextern \"C\" __attribute__((visibility(\"default\"))) void kernel_entry(int64_t *) { before(); }",
            ),
            "bytes behind the start of .text",
        ),
        (
            format!(
                "{}static int fold(int n) {{ return n > 1 ? n * fold(n - 1) : 1; }}\n{}",
                "#include \"kernel.h\"\n",
                with("BODY", "kernel::store(args.gm(0), 0, float(fold(int(args.size(1)))))")
            ),
            "kernel `one`: `int fold(int)` calls itself",
        ),
        (with("BODY", "syntax error"), "cannot be built for AICores"),
    ];
    for (text, words) in cases {
        let error = sources.build(text).expect_err(words).to_string();
        assert!(error.contains(words), "{words:?} is not in {error}");
    }
    // A tree that is none, and one whose build is not complete.
    let seal = |folder: &Path| {
        let told = pto_image_build::seal_aicore(folder);
        told.err()
            .map_or_else(|| panic!("{} is sealed", folder.display()), |error| error.to_string())
    };
    assert!(seal(&sources.path("cann")).contains("aicore.json"));
    let tree = sources.path("tree");
    let put = |from: &str, to: &str| {
        fs::copy(tree.join(from), tree.join(to)).expect("writable");
    };
    // Objects that were not linked.
    let (object, linked) = ("out/kernels/own_0.o", "out/kernels/own_0.elf");
    sources.build(&with("BODY", "helper(1)")).expect_err("it is not linked");
    put("out/worker-aic.o", "out/worker.elf");
    put("out/kernels/no_kernel.o", "out/kernels/no_kernel.elf");
    put(object, linked);
    assert!(seal(&tree).contains("it needs what a core has not: "));
    sources
        .build(SCALE.replace("FACTOR", "3.0f").replace("#include \"factor.h\"", "").as_str())
        .expect("it is one");
    let worker = fs::read(tree.join("out/worker.elf")).expect("it is built");
    put(linked, "out/worker.elf");
    assert!(seal(&tree).contains("it has no entry `pto_worker_0_mix_aic`"));
    fs::write(tree.join("out/worker.elf"), &worker).expect("writable");
    put(object, linked);
    let said = seal(&tree);
    assert!(said.contains("relocations are left in "), "{said}");
    fs::write(tree.join("out/worker.elf"), &worker[..100]).expect("writable");
    assert!(seal(&tree).contains("it is no ELF file"));
    fs::remove_file(tree.join("out/worker.elf")).expect("it is there");
    assert!(seal(&tree).contains("out/worker.elf"));
    let manifest = fs::read_to_string(tree.join("aicore.json")).expect("it is there");
    fs::write(
        tree.join("aicore.json"),
        manifest.replace("\"layout_hash\": \"0x", "\"layout_hash\": \"1x"),
    )
    .expect("writable");
    assert!(seal(&tree).contains("of another release"));
    // A folder with something else in it is left alone.
    fs::write(sources.path("cann/note"), "mine").expect("writable");
    let request = AicoreRequest { folder: Some(sources.path("cann")), ..AicoreRequest::default() };
    let error = build_aicore(&request, &|_| ()).expect_err("it is occupied").to_string();
    assert!(error.contains("name another folder"), "{error}");
}

/// What a kernel may lack without an error: the arguments of the field, and a check.
#[test]
fn what_is_not_sure_of_a_kernel_is_said() {
    let sources = Sources::new();
    let told = |text: &str| {
        let said = RefCell::new(Vec::new());
        let tell = |sentence: &str| said.borrow_mut().push(sentence.to_owned());
        // Whether it is built is another question.
        drop(sources.build_and_tell(text, &tell));
        said.into_inner().join("\n")
    };
    let plain = told("extern \"C\" void kernel_entry(long *args) { args[0] = 1; }\n");
    assert!(plain.contains("kernel `one` in '") && plain.contains("PTO_FIELD_KERNEL"), "{plain}");
    let good = told("#include \"kernel.h\"\nPTO_KERNEL(args) { (void)args; }\n");
    assert!(!good.contains("kernel `one`"), "{good}");
    let unknown = told("#include <no/such/header.h>\n#include \"kernel.h\"\nPTO_KERNEL(args) {}\n");
    assert!(unknown.contains("kernel `one` was not checked for recursion"), "{unknown}");
}

/// The stand-in for the compiler knows every flag, so that a flag which is lost or added is found.
#[test]
fn each_flag_of_the_compiler_is_checked() {
    let sources = Sources::new();
    sources.build("#include \"kernel.h\"\nPTO_KERNEL(args) { (void)args; }\n").expect("it is one");
    let text = fs::read_to_string(sources.path("tree/CMakeLists.txt")).expect("it is written");
    let line = text.lines().find(|line| line.contains("${CCEC}\" ") && line.contains("own_0"));
    let words = line.expect("a command").trim().replace("${TREE}", &sources.word("tree"));
    let words = words.replace("${PTO_ISA}", &this_machine().display().to_string()).replace('"', "");
    let words: Vec<&str> = words.split(' ').skip(2).collect();
    let compiles = |words: &[&str]| {
        let told = Command::new(sources.path("cann/bin/ccec")).args(words).output();
        told.expect("it starts").status.success()
    };
    assert!(compiles(&words), "{words:?}");
    let flags = words.iter().enumerate().filter(|(_, word)| word.starts_with('-'));
    let mut taken_out = 0;
    for (at, _) in flags {
        let without = [&words[..at], &words[at + 1..]].concat();
        assert!(!compiles(&without), "without {}", words[at]);
        taken_out += 1;
    }
    assert!(taken_out >= 15, "{words:?}");
    assert!(!compiles(&[&words[..], &["-fast"]].concat()), "a flag more");
}
