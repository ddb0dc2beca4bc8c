//! Programs in C (and as C++) against the header and the library: warnings are errors, and each also runs under
//! AddressSanitizer. `cargo xtask race` runs them under ThreadSanitizer, with a library that is built for it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Compilers are called as a user would.
struct Compiler {
    program: &'static str,
    standard: &'static str,
}

const C: Compiler = Compiler { program: "cc", standard: "-std=c11" };
const CPP: Compiler = Compiler { program: "c++", standard: "-std=c++17" };

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn include() -> PathBuf {
    here().join("../include")
}

fn source(name: &str) -> PathBuf {
    here().join("tests/c").join(name)
}

/// Where cargo has put the library: in the folder of this test.
fn library_folder() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let folder = test.parent().expect("and a folder").to_path_buf();
    let library = folder.join("libpto_runtime.so");
    assert!(library.is_file(), "{} is missing", library.display());
    folder
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| {
        panic!("{command:?} cannot be started ({error}): install gcc and g++ (Debian: g++)")
    });
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{said}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn compile(compiler: &Compiler, name: &str, to: &Path, more: &[&str]) {
    let mut command = Command::new(compiler.program);
    command
        .args(["-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-g", "-O1", compiler.standard])
        .arg("-I")
        .arg(include())
        .arg(source(name))
        .arg("-o")
        .arg(to)
        // Libraries come after their users.
        .args(more);
    run(&mut command);
}

/// The archive with ThreadSanitizer's functions, if the library of this test calls them.
fn thread_sanitizer() -> Option<String> {
    std::env::var("PTO_C_THREAD_SANITIZER").ok()
}

fn link(program: &str, to: &Path, more: &[&str]) {
    let sanitizer = thread_sanitizer();
    let object = to.with_extension("o");
    let sanitized: &[&str] = if sanitizer.is_some() { &["-fsanitize=thread"] } else { &[] };
    compile(&C, program, &object, &[&["-pthread", "-c"], sanitized, more].concat());
    let folder = library_folder();
    let mut command = Command::new(C.program);
    command.arg(&object).arg("-o").arg(to).arg("-pthread").args(more).arg("-L").arg(&folder);
    command.arg("-lpto_runtime").arg(format!("-Wl,-rpath,{}", folder.display()));
    if let Some(archive) = &sanitizer {
        // The library finds the functions in the program, all of them.
        command.args(["-Wl,--export-dynamic", "-Wl,--whole-archive", archive]);
        command.args(["-Wl,--no-whole-archive", "-ldl", "-lm", "-lrt"]);
    }
    run(&mut command);
}

/// Compiles `program` twice, as it is and under AddressSanitizer (with leaks, where they are found), and runs it. Two sanitizers do
/// not work in one program.
fn both_ways(program: &str, arguments: &[PathBuf]) {
    let ways = [("plain", &[][..]), ("sanitized", &["-fsanitize=address"][..])];
    let ways = if thread_sanitizer().is_some() { &ways[..1] } else { &ways };
    run_in(ways, program, arguments);
}

/// Compiles `program` with the flags of each way, and runs it.
fn run_in(ways: &[(&str, &[&str])], program: &str, arguments: &[PathBuf]) {
    let folder = tempfile::tempdir().expect("a folder for programs");
    for &(kind, flags) in ways {
        let to = folder.path().join(kind);
        link(program, &to, flags);
        let mut command = Command::new(&to);
        let leaks = if leaks_are_found() { "detect_leaks=1" } else { "detect_leaks=0" };
        command.env("ASAN_OPTIONS", leaks).env("PTO_HOME", folder.path().join("home"));
        run(command.args(arguments));
    }
}

/// Whether the sanitizer finds leaks here: where a process may not trace itself, as in some containers, it does not.
fn leaks_are_found() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder for a program");
        let program = folder.path().join("leaks");
        compile(&C, "leaks.c", &program, &["-fsanitize=address"]);
        let output = Command::new(&program).env("ASAN_OPTIONS", "detect_leaks=1").output();
        let output = output.expect("a program that was just compiled starts");
        let said = String::from_utf8_lossy(&output.stderr);
        let found = said.contains("detected memory leaks");
        if !found {
            println!(
                "leaks are not looked for, since the sanitizer does not find one here: {said}"
            );
        }
        found
    })
}

/// Needs no library: the functions are the program's own.
#[test]
fn tasks_with_shapes_and_recordings_in_cpp() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let to = folder.path().join("shapes");
    compile(&CPP, "shapes.cpp", &to, &[]);
    run(&mut Command::new(&to));
}

#[test]
fn a_builder_that_follows_an_address_of_the_device_is_found() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let program = folder.path().join("follows");
    link("follows.c", &program, &[]);
    let said = |way: &str, check: &str| {
        let mut command = Command::new(&program);
        let output = command.arg(way).env("PTO_CHECK_RAW_ACCESS", check).output();
        String::from_utf8_lossy(&output.expect("it starts").stdout).into_owned()
    };
    for (way, check) in [("read", "0"), ("follow", "0"), ("read", "1")] {
        assert_eq!(said(way, check), "it read the table\n", "{way} {check}");
    }
    let found = said("follow", "1");
    for word in [
        "RAW_ACCESS: the builder program `reads a table` followed",
        "byte 12 of the buffer of 16 bytes",
        "to which word 0 points",
    ] {
        assert!(found.contains(word), "{word:?} is not in {found:?}");
    }
    assert!(said("read", "yes").is_empty(), "another value is refused");
}

#[test]
fn the_headers_are_c11_and_cpp17() {
    let firmware = here().join("../../linker/firmware/include/pto_firmware.h");
    for header in [
        include().join("pto_range.h"),
        include().join("pto_runtime.h"),
        include().join("pto_stream.h"),
        firmware,
    ] {
        for (language, compiler) in [("c", &C), ("c++", &CPP)] {
            let mut command = Command::new(compiler.program);
            command.args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"]);
            command.args(["-x", language, compiler.standard, "-I"]).arg(include());
            run(command.arg(&header));
        }
    }
}

#[test]
fn class_runtime_and_the_sources_that_use_it_are_cpp17() {
    let examples = here().join("../../examples/cpp");
    let mut sources = vec![
        include().join("runtime.h"),
        include().join("pto_stream.hpp"),
        include().join("pto_table.hpp"),
    ];
    let mut folders = vec![examples];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder of examples").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "cpp") {
                sources.push(path);
            }
        }
    }
    assert!(sources.len() > 15, "{sources:?}");
    for source in sources {
        let mut command = Command::new(CPP.program);
        command.args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", CPP.standard]);
        command.args(["-D__gm__=", "-D__aicore__=", "-x", "c++", "-I"]).arg(include());
        run(command.arg(source));
    }
}

#[test]
fn the_first_program_of_the_documentation() {
    both_ways("hello.c", &[]);
}

#[test]
fn ranges_of_tasks_with_and_without_tensors() {
    both_ways("ranges.c", &[]);
}

#[test]
fn bad_input_is_an_error_with_a_name() {
    both_ways("bad_input.c", &[]);
}

#[test]
fn calls_that_a_kernel_cannot_take_are_refused_in_c_and_in_cpp() {
    in_both_languages("calls.c");
}

#[test]
fn builder_programs_that_a_kernel_cannot_take_are_refused_in_c_and_in_cpp() {
    in_both_languages("builder_calls.c");
}

/// [`both_ways`], and compiled as C++.
fn in_both_languages(program: &str) {
    both_ways(program, &[]);
    if thread_sanitizer().is_some() {
        return;
    }
    let (folder, library) = (tempfile::tempdir().expect("a folder"), library_folder());
    let to = folder.path().join("program");
    let rpath = format!("-Wl,-rpath,{}", library.display());
    let link = ["-L", library.to_str().expect("a plain name"), "-lpto_runtime", &rpath];
    compile(&CPP, program, &to, &link);
    run(Command::new(&to).env("PTO_HOME", folder.path().join("home")));
}

#[test]
fn builder_programs_logs_and_cancelled_runs() {
    both_ways("builder.c", &[]);
}

#[test]
fn tensors_scopes_and_elements() {
    both_ways("stream.c", &[]);
}

#[test]
fn tasks_with_shapes_and_recordings() {
    both_ways("shapes.c", &[]);
}

#[test]
fn threads_share_devices_and_have_their_own_errors() {
    both_ways("threads.c", &[]);
}

#[test]
fn a_child_of_fork_gets_errors_and_works_on_its_own() {
    // Not under AddressSanitizer: a thread may hold the lock of its allocator during the fork, and the child then waits for that lock for ever.
    run_in(&[("plain", &[])], "fork.c", &[]);
}

#[test]
fn kernels_are_shared_and_relocatable_objects() {
    let folder = tempfile::tempdir().expect("a folder for objects");
    let object = |name: &str| folder.path().join(name);
    compile(&C, "kernel.c", &object("kernel.so"), &["-shared", "-fPIC", "-lm"]);
    compile(&C, "kernel.c", &object("kernel.o"), &["-c", "-fPIC"]);
    compile(&C, "kernel.c", &object("other.so"), &["-shared", "-fPIC", "-DFACTOR=4", "-lm"]);
    compile(&CPP, "constructor.cpp", &object("constructor.o"), &["-c", "-fPIC"]);
    let names = ["kernel.so", "kernel.o", "other.so", "constructor.o"];
    both_ways("objects.c", &names.map(object));
}

#[test]
fn programs_are_stitched_and_refused_with_names() {
    both_ways("stitching.c", &[]);
}

#[test]
fn what_is_captured_is_launched_again_on_other_tensors() {
    both_ways("capture.c", &[]);
}

#[test]
fn streams_wait_for_values_and_flags_and_are_asked_and_aborted() {
    both_ways("flags.c", &[]);
}

#[test]
fn memory_that_commands_use_stays_theirs() {
    both_ways("held.c", &[]);
}

#[test]
fn a_training_loop_copies_nothing_after_the_first_round() {
    let folder = tempfile::tempdir().expect("a folder for program files");
    let of_example = here().join("../../examples/programs/training_loop");
    let program = "../../../../examples/programs/training_loop/train.c";
    let to = folder.path().join("train");
    link(program, &to, &["-lm"]);
    let said = run(Command::new(&to).arg(of_example).arg(folder.path()));
    assert!(said.contains(", 0 bytes copied after the first round"), "{said}");
}

/// The kernels travel in the file: `pto_program_set_kernels` has read the object, which is not needed afterwards.
#[test]
fn a_program_with_kernels_of_ones_own_is_written_and_run() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let kernels = folder.path().join("kernels.so");
    let (own, as_kernel) =
        ("../../../../examples/programs/own_kernels/own_kernels.c", ["-shared", "-fPIC"]);
    compile(&C, "../../../../examples/kernels/scale.c", &kernels, &as_kernel);
    let (to, file) = (folder.path().join("own_kernels"), folder.path().join("own.ptop"));
    link(own, &to, &["-lm"]);
    let said = run(Command::new(&to).arg(&kernels).arg(&file));
    assert!(said.contains("the mean is 999"), "{said}");
}
