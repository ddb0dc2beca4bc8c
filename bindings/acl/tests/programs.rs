//! Programs in C against the headers and the library: the conformance suite, the pattern of a real backend, how processes end.

#[path = "support/commands.rs"]
mod commands;
mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use commands::{output, run};
use pto_host::timeline::{Analysis, Edge, Task, Trace};
use pto_host::workloads::program::{Program, Role, TensorDescription};
use pto_host::workloads::tree::Workload;
use support::{compiler, here, library_folder, start};

/// Compiles C sources below `tests/c` to a program.
fn build(sources: &[&str], to: &Path) {
    let mut command = compiler("cc", "-std=c11");
    let source = |word: &&str| here().join("tests/c").join(word);
    let (sources, options): (Vec<&str>, Vec<&str>) =
        sources.iter().partition(|word| word.ends_with(".c"));
    command.args(sources.iter().map(source)).args(options);
    command.arg("-o").arg(to).arg("-L").arg(library_folder()).arg("-lascendcl");
    run(command.args(thread_sanitizer()));
}

/// How a program is linked whose library calls ThreadSanitizer's functions: it has all of them, and the library and its plug-in find them there.
fn thread_sanitizer() -> Vec<String> {
    let Ok(archive) = std::env::var("PTO_ACL_THREAD_SANITIZER") else { return Vec::new() };
    let object = ["-Wl,--export-dynamic", "-Wl,--whole-archive", &archive];
    let libraries = ["-Wl,--no-whole-archive", "-ldl", "-lm", "-lrt"];
    object.into_iter().chain(libraries).map(str::to_owned).collect()
}

const CONFORMANCE: &[&str] = &[
    "conformance/main.c",
    "conformance/basics.c",
    "conformance/streams.c",
    "conformance/memory.c",
    "conformance/order.c",
    "conformance/kernels.c",
    "conformance/tiles.c",
    "conformance/rest.c",
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
    // The rules that it breaks on purpose are reported, and no race is among them.
    let output = output(start(&program).arg(&object).env("PTO_ACL_CHECK", "report"));
    let (said, reports) = (output.stdout, output.stderr);
    let [said, reports] = [said, reports].map(|text| String::from_utf8_lossy(&text).into_owned());
    let finds = |rule| reports.contains(rule);
    assert!(finds("ACL-HANDLE-01") && finds("ACL-WAIT-01") && !finds("ACL-RACE"), "{reports}");
    let count: u32 = said.split(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0);
    assert!(said.contains(", 0 failed") && count >= 800, "{said}");
    // In virtual time it ends, with the same codes, but for what has to do with the time of the host.
    let mut command = start(Path::new("timeout"));
    command.arg("60").arg(&program).arg(&object).arg("virtual").env("PTO_ACL_SEED", "7");
    let said = run(&mut command);
    assert!(said.ends_with(&format!("{count} cases, 0 failed\n")), "{said}");
}

/// Kernels in a shared and in a relocatable object, in C++ as well, and a function of the program.
#[test]
fn kernels_declare_their_parameters() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let program = folder.path().join("parameters");
    build(&["parameters.c"], &program);
    let source = here().join("tests/c/conformance/object.c");
    let other = folder.path().join("object.cpp");
    let text = format!("extern \"C\" {{\n#include {:?}\n}}\n", source.display().to_string());
    std::fs::write(&other, text).expect("a file");
    for (program_of, standard, source, options) in [
        ("cc", "-std=c11", &source, &["-shared", "-fPIC", "-s"][..]),
        ("cc", "-std=c11", &source, &["-c", "-fPIC", "-fdata-sections"]),
        ("c++", "-std=c++17", &other, &["-shared", "-fPIC"]),
    ] {
        let object = folder.path().join("kernels.o");
        run(compiler(program_of, standard).args(options).arg(source).arg("-o").arg(&object));
        assert_eq!(run(start(&program).arg(&object)), "parameters: ok\n", "{options:?}");
    }
}

/// A shared object that is cut off is refused when it is loaded, and a relocatable one by then or when its kernel is looked for.
#[test]
fn code_that_is_cut_off_is_refused() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let (program, whole) = (folder.path().join("cut"), folder.path().join("kernels"));
    build(&["cut.c"], &program);
    let source = here().join("tests/c/conformance/object.c");
    for (options, refusals) in [(["-shared", "-fPIC"], "r"), (["-c", "-fPIC"], "rn")] {
        run(compiler("cc", "-std=c11").args(options).arg(&source).arg("-o").arg(&whole));
        let bytes = std::fs::read(&whole).expect("an object");
        let parts = (0..16).map(|part| part * bytes.len() / 16).chain([1, 5, 20, 63, 64, 65]);
        let files = parts.map(|length| {
            let file = folder.path().join(format!("cut-{length}"));
            std::fs::write(&file, &bytes[..length]).expect("a file");
            file
        });
        let said = run(start(&program).arg("fill").args(files).arg(&whole));
        let (last, cut) =
            said.chars().next_back().zip(Some(&said[..said.len() - 1])).expect("letters");
        assert_eq!((last, cut.len()), ('k', 22), "{options:?}: {said}");
        assert!(cut.chars().all(|letter| refusals.contains(letter)), "{options:?}: {said}");
    }
}

#[test]
fn a_pool_with_streams_events_and_a_graph_works() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let program = folder.path().join("pool");
    build(&["pool.c"], &program);
    assert_eq!(run(&mut start(&program)), "pool: ok\n");
    // It breaks no rule.
    assert_eq!(run(start(&program).env("PTO_ACL_CHECK", "strict")), "pool: ok\n");
    // In virtual time, for some orders of the same commands.
    for seed in ["1", "7"] {
        assert_eq!(run(start(&program).env("PTO_ACL_SEED", seed)), "pool: ok\n");
    }
}

/// Eight threads make, use and destroy what the others look at, in real time and with the validation layer.
#[test]
fn threads_share_one_library() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let program = folder.path().join("threads");
    build(&["threads.c"], &program);
    for check in ["off", "report"] {
        let mut command = start(Path::new("timeout"));
        command.arg("120").arg(&program).args(["8", "25"]).env("PTO_ACL_CHECK", check);
        assert_eq!(run(&mut command), "threads: 0 failed\n", "{check}");
    }
}

#[test]
fn a_device_has_so_many_streams_and_no_more() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let program = folder.path().join("many");
    build(&["many.c"], &program);
    let said = run(&mut start(&program));
    assert!(said.contains(" holds 1984") && said.ends_with("many: ok\n"), "{said}");
}

/// Memory by handles of both kinds, with and without a list of processes, and events, between a program and its other process.
#[test]
fn memory_and_events_are_shared_by_handles() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let program = folder.path().join("shares");
    build(&["shares.c"], &program);
    for seed in [None, Some("7")] {
        let mut command = start(Path::new("timeout"));
        command.arg("60").arg(&program).envs(seed.map(|seed| ("PTO_ACL_SEED", seed)));
        assert_eq!(run(&mut command), "shares: ok\n");
    }
}

/// In virtual time a query takes time, a wait lasts as long as a thread may end it, and one that no thread can end fails at once.
#[test]
fn a_wait_lasts_as_long_as_a_thread_may_end_it() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let program = folder.path().join("waits");
    build(&["waits.c"], &program);
    for variant in ["polls", "shared", "threads", "endless", "devices"] {
        for seed in ["0", "7"] {
            let mut command = start(Path::new("timeout"));
            command.arg("60").arg(&program).arg(variant).env("PTO_ACL_SEED", seed);
            assert_eq!(run(&mut command), format!("{variant}: ok\n"), "{seed}");
        }
    }
}

/// Reserved addresses are no memory, a reset takes what is mapped, and shared memory takes few descriptors.
#[test]
fn memory_is_what_is_mapped() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let program = folder.path().join("reserved");
    build(&["reserved.c"], &program);
    for way in ["addresses", "reset", "descriptors"] {
        for seed in [None, Some("7")] {
            let mut command = start(Path::new("timeout"));
            command.arg("60").arg(&program).arg(way);
            command.envs(seed.map(|seed| ("PTO_ACL_SEED", seed)));
            assert_eq!(run(&mut command), format!("{way}: ok\n"), "{seed:?}");
        }
    }
}

fn program_of(text: &str) -> Program {
    let checked = Workload::parse(text).expect("a workload").check().expect("a sound one");
    Program::of_workload(&checked).expect("a program")
}

/// The example softmax as a program file, with what its phases pass on as temporaries.
fn softmax() -> Vec<u8> {
    let temporary = |program: Program, name| {
        let change = |tensor: &mut TensorDescription| tensor.role = Role::Temporary;
        program.with_tensor(name, change).expect("a tensor that the program writes first")
    };
    let program = program_of(include_str!("../../../examples/workloads/softmax.workload"));
    ["M", "S"].into_iter().fold(program, temporary).to_bytes()
}

const DOUBLES: &str = include_str!("doubles.workload");

/// The program `model.c`, and the models that it gets.
fn program_with_models(folder: &Path) -> (PathBuf, [PathBuf; 2]) {
    let program = folder.join("model");
    build(&["model.c", "-lm"], &program);
    let models = [("softmax.ptop", softmax()), ("doubles.ptop", program_of(DOUBLES).to_bytes())];
    let models = models.map(|(name, bytes)| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).expect("a file");
        path
    });
    (program, models)
}

#[test]
fn a_model_is_loaded_described_and_run() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let (program, models) = program_with_models(folder.path());
    assert_eq!(run(start(&program).args(&models)), "model: ok\n");
    for seed in ["1", "7"] {
        assert_eq!(run(start(&program).args(&models).env("PTO_ACL_SEED", seed)), "model: ok\n");
    }
}

/// The one file in a folder.
fn only_file(folder: &Path) -> PathBuf {
    let mut entries = std::fs::read_dir(folder).expect("a folder");
    let file = entries.next().expect("a file").expect("an entry").path();
    assert!(entries.next().is_none(), "several files in {}", folder.display());
    file
}

fn timeline(file: &Path) -> Trace {
    let bytes = std::fs::read(file).expect("a timeline");
    pto_host::timeline::file::read(&bytes).expect("a timeline that can be read")
}

/// The tasks of a timeline that are called so.
fn called<'t>(trace: &'t Trace, name: &str) -> Vec<(u32, &'t Task)> {
    let tasks = (0_u32..).zip(&trace.tasks);
    tasks.filter(|(_, task)| trace.kernel(task.func_id) == name).collect()
}

#[test]
fn the_profiler_records_streams_calls_ranges_and_who_waits_for_whom() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let program = folder.path().join("profile");
    build(&["profile.c"], &program);
    for seed in [None, Some("7")] {
        let results = folder.path().join(seed.unwrap_or("real"));
        let mut command = start(&program);
        command.arg(&results).envs(seed.map(|seed| ("PTO_ACL_SEED", seed)));
        assert_eq!(run(&mut command), "profile: ok\n");
        let trace = timeline(&only_file(&results.join("later")));
        assert_eq!(trace.run.get("not recorded").map(String::as_str), Some("L2CACHE, LLC_MODE"));
        check_profile(&trace, seed.is_some());
        // Only what lies between start and stop is there.
        assert_eq!(called(&trace, "fill").len(), 1);
    }
    // The whole program, without a call of the profiler.
    let file = folder.path().join("whole.json");
    assert_eq!(run(start(&program).env("PTO_ACL_TRACE", &file)), "profile: ok\n");
    check_profile(&timeline(&file), false);
    let nowhere = folder.path().join("no/such/folder.json");
    let output = output(start(&program).env("PTO_ACL_TRACE", &nowhere));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("cannot be written") && output.status.success(), "{said}");
}

fn check_profile(trace: &Trace, is_virtual: bool) {
    let rows = &trace.names.as_ref().expect("rows with names").rows;
    let streams = rows.iter().filter(|row| row.starts_with("device 0 stream ")).count();
    assert_eq!(streams, 2, "{rows:?}");
    assert_eq!(rows.iter().any(|row| row == "thread 1 calls"), !is_virtual, "{rows:?}");
    assert_eq!(called(trace, "aclrtMemsetAsync").len(), usize::from(!is_virtual));
    let one = |name| {
        let found = called(trace, name);
        assert_eq!(found.len(), 1, "{name}");
        found[0]
    };
    let spans = ["fill", "event record", "event wait", "copy from device, 65536 bytes"];
    let [fill, record, wait, copy] = spans.map(|name| (one(name).0, one(name).1.span()));
    assert!(trace.edges.contains(&Edge { producer: record.0, consumer: wait.0 }));
    let time = |(_, span): (u32, Option<(u64, u64)>)| span.expect("a command that ran");
    assert!(time(fill).1 <= time(record).1 && time(record).1 <= time(wait).1);
    assert!(time(wait).1 <= time(copy).1 && time(copy).1 <= trace.end_ns);
    let [outer, inner] = ["the whole step", "inner"].map(|name| called(trace, name)[0].1.span());
    let (outer, inner) = (outer.expect("a range"), inner.expect("a range"));
    assert!(outer.0 <= inner.0 && inner.1 <= outer.1 && time(copy).1 <= outer.1);
    assert!(one("here").1.span().is_some());
    let operator = one("operator add of type Add, 3 tensors, 8 blocks").1.span().expect("a range");
    assert!(inner.0 <= operator.0 && operator.1 <= inner.1);
    let analysis = Analysis::of(trace).expect("a timeline with an analysis");
    let page = pto_host::timeline::html::page(trace, &analysis);
    assert!(page.contains("device 0 stream ") && page.contains("event wait"));
}

/// A record may wake who waits for it before its own stream goes on. It is over first in the timeline all the same.
#[test]
fn a_record_is_over_before_the_wait_for_it() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let (program, file) = (folder.path().join("relay"), folder.path().join("relay.json"));
    build(&["relay.c"], &program);
    for seed in [None, Some("7")] {
        let mut command = start(&program);
        command.env("PTO_ACL_TRACE", &file).envs(seed.map(|seed| ("PTO_ACL_SEED", seed)));
        assert_eq!(run(&mut command), "relay: ok\n");
        let trace = timeline(&file);
        assert_eq!(trace.edges.len(), 4000);
        let finished = |task: u32| trace.tasks[task as usize].at.finished.expect("it ran");
        for Edge { producer, consumer } in &trace.edges {
            assert!(finished(*producer) <= finished(*consumer), "{producer} before {consumer}");
        }
    }
}

/// The letter of `fuzz.c` for a parameter.
fn letter(parameter: &str, enums: &BTreeSet<&str>, function: &str) -> char {
    let words = parameter.trim().trim_start_matches("const ").trim();
    let base = words.trim_end_matches('*').trim_end_matches("const").trim();
    let is_looked_up = |name: &str| {
        let opaque = ["Desc", "Dataset", "DataBuffer", "Config", "StepInfo", "ConfigHandle"];
        name.starts_with("acl") && opaque.iter().any(|end| name.ends_with(end))
    };
    match words.matches('*').count() {
        // What waits is to come back soon.
        0 if function.contains("Process") && base == "int32_t" => '1',
        // A stream waits for the thread that takes its calls: one that is not there would be waited for for ever.
        0 if function.contains("Subscribe") && base == "uint64_t" => 't',
        0 if base.ends_with("Callback") || base.ends_with("HostFunc") => 'c',
        0 if matches!(base, "size_t" | "uint64_t") => 'z',
        0 if base.starts_with("acl") && !enums.contains(base) && base != "aclError" => 'h',
        0 => 'i',
        1 if base == "char" && parameter.contains("const") => 's',
        1 if base == "void" => 'a',
        1 if is_looked_up(base) && base.starts_with("aclmdl")
            || base.starts_with("aclprof") && base != "aclprofEventAttributes"
            || matches!(base, "aclDataBuffer" | "aclTensorDesc" | "aclopAttr") =>
        {
            'h'
        }
        _ => 'p',
    }
}

/// The functions, and a letter for each of their parameters.
fn plan() -> String {
    let constants = include_str!("../interface/constants.tsv");
    let enums = constants.lines().filter_map(|row| {
        let cells: Vec<&str> = row.split('\t').collect();
        (cells[1] == "enum").then_some(cells[2])
    });
    let enums: BTreeSet<&str> = enums.collect();
    let rows = include_str!("../interface/functions.tsv").lines().skip(1);
    let row = |row: &str| {
        let cells: Vec<&str> = row.split('\t').collect();
        let kinds = cells[4].split(',').filter(|parameter| *parameter != "void");
        let kinds: String = kinds.map(|parameter| letter(parameter, &enums, cells[3])).collect();
        format!("{} {}\n", cells[3], if kinds.is_empty() { "-" } else { &kinds })
    };
    // After an export a wait gives other processes time to import, which none does here: the functions that export come last.
    let exports = |row: &&str| row.contains("Export") || row.contains("aclrtIpcGetEventHandle");
    let (last, first): (Vec<&str>, Vec<&str>) = rows.partition(exports);
    let plan = |rows: Vec<&str>| rows.into_iter().map(row).collect::<String>();
    format!("{}last -\n{}", plan(first), plan(last))
}

/// Puts the program that calls every function, and what it reads of them, into a folder.
fn build_fuzz(folder: &Path) {
    build(&["fuzz.c", "-ldl"], &folder.join("fuzz"));
    std::fs::write(folder.join("plan"), plan()).expect("a file");
}

/// That program, for so many seconds at most: it calls every function once in a round, with arguments that the seed chooses.
fn fuzz(folder: &Path, (seed, rounds): (u64, u64), seconds: u64) -> Command {
    let mut command = start(Path::new("timeout"));
    command.arg(seconds.to_string()).arg(folder.join("fuzz")).arg(folder.join("plan"));
    command.args([seed, rounds].map(|number| number.to_string())).current_dir(folder);
    command.env("PTO_ACL_SEED", seed.to_string()).env("PTO_ACL_MEMORY", "67108864");
    command
}

/// `PTO_ACL_FUZZ_ROUNDS=5000 PTO_ACL_FUZZ_SEEDS=8` makes a long run; each seed calls every function once in a round.
#[test]
fn no_handle_and_no_argument_crashes_a_call() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    build_fuzz(folder.path());
    let rounds = number_in("PTO_ACL_FUZZ_ROUNDS", 150);
    for seed in 1..=number_in("PTO_ACL_FUZZ_SEEDS", 4) {
        // In virtual time, a wait that no thread can end fails at once. A call that hangs would be a defect.
        let output = output(&mut fuzz(folder.path(), (seed, rounds), 60 + rounds));
        let [said, errors] =
            [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        let status = output.status;
        assert!(
            status.success() && said.ends_with(" calls\n"),
            "seed {seed}, {status}: {said}\n{errors}"
        );
        assert!(!errors.contains("panicked"), "seed {seed}: {errors}");
    }
}

/// Random calls from three threads, with captures, resets, and functions that make calls themselves.
///
/// `PTO_ACL_STORM_CALLS=100000 PTO_ACL_STORM_SEEDS=100` makes a long run; a seed makes so many calls.
#[test]
fn no_order_of_calls_crashes_or_hangs() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let program = folder.path().join("storm");
    build(&["storm.c"], &program);
    let calls = number_in("PTO_ACL_STORM_CALLS", 4000);
    for seed in 1..=number_in("PTO_ACL_STORM_SEEDS", 4) {
        for (way, check) in [("virtual", "off"), ("virtual", "report"), ("real", "off")] {
            let mut command = start(Path::new("timeout"));
            command.arg((60 + calls / 50).to_string()).arg(&program);
            command.args([seed, calls].map(|number| number.to_string()));
            command.env("PTO_ACL_CHECK", check);
            if way == "virtual" {
                command.env("PTO_ACL_SEED", seed.to_string());
            } else {
                command.arg("free");
            }
            let output = output(&mut command);
            let [said, errors] =
                [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
            assert!(
                output.status.success() && said == "storm: ok\n" && !errors.contains("panicked"),
                "seed {seed}, {way}, check {check}, {}: {said}\n{errors}",
                output.status
            );
        }
    }
}

/// What a variable asks for.
fn number_in(variable: &str, otherwise: u64) -> u64 {
    let text = std::env::var(variable).unwrap_or_else(|_| otherwise.to_string());
    text.parse().unwrap_or_else(|_| panic!("{variable} is {text}, and no number"))
}

/// Arguments that name more memory than there is: the record holds the beginning, and a replay says what it lacks.
#[test]
fn calls_with_absurd_sizes_are_recorded_and_not_replayed() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    build_fuzz(folder.path());
    let record = folder.path().join("record");
    let ended = output(fuzz(folder.path(), (1, 5), 60).env("PTO_ACL_RECORD", &record));
    assert!(ended.status.success(), "{ended:?}");
    let text = std::fs::read_to_string(&record).expect("a record");
    assert!(text.len() < 64 << 20, "{} bytes", text.len());
    let calls = pto_acl_interface::read(&text).unwrap_or_else(|why| panic!("{why}"));
    let lacks = calls.iter().filter(|call| call.reads.iter().any(|memory| memory.left_out > 0));
    assert!(lacks.count() > 0, "a size of the program is absurd");
}

#[test]
fn a_process_may_end_in_any_way() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let program = folder.path().join("ends");
    build(&["ends.c"], &program);
    for way in ["return", "_exit", "fork", "busy", "reset", "cycles", "any"] {
        let said = run(start(Path::new("timeout")).arg("60").arg(&program).arg(way));
        assert_eq!(said, format!("{way}: ok\n"));
    }
}

#[test]
fn the_validation_layer_names_the_rule_the_call_and_the_location() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let program = folder.path().join("misuse");
    build(&["misuse.c", "-rdynamic"], &program);
    let check = |words: &[&str], mode: &str| {
        let output = output(start(&program).args(words).env("PTO_ACL_CHECK", mode));
        assert_eq!(String::from_utf8_lossy(&output.stdout), "over\n");
        (String::from_utf8_lossy(&output.stderr).into_owned(), output.status.code())
    };
    let rules: [(&str, &[&str]); 13] = [
        ("handle", &["ACL-HANDLE-01: aclrtSynchronizeStream", "made by aclrtCreateStream in main"]),
        ("free", &["ACL-MEMORY-01: aclrtFree in frees_twice", "ended by aclrtFree in frees_twice"]),
        ("never", &["ACL-HANDLE-02: aclrtSynchronizeStream in uses_no_handle: 0x1238"]),
        (
            "twice",
            &[
                "ACL-HANDLE-01: aclrtDestroyEvent in destroys_twice",
                "made by aclrtCreateEvent in destroys_twice",
                "ended by aclrtDestroyEvent in destroys_twice",
            ],
        ),
        (
            "wait",
            &[
                "ACL-WAIT-01: aclrtSynchronizeStream in waits_for_itself",
                "made by aclrtCreateStream in main, waits",
                "which stream 1 has before it",
            ],
        ),
        (
            "kernel",
            &[
                "ACL-MEMORY-02: aclrtFree in frees_under_kernel",
                "made by aclrtMalloc in frees_under_kernel",
                "passed to a kernel may still run, submitted by ptoAclLaunch in frees_under_kernel",
            ],
        ),
        (
            "copy",
            &[
                "ACL-COPY-01: aclrtMemcpyAsync in changes_source: 4096 bytes",
                "made by aclrtMallocHost in changes_source",
            ],
        ),
        ("leak", &["ACL-LEAK-01: an event is left", "aclrtCreateEvent in leaks, 3 times"]),
        (
            "context",
            &[
                "ACL-CONTEXT-01: aclrtLaunchHostFunc in main",
                "made by aclrtCreateStream in main, belongs to another context",
            ],
        ),
        ("reset", &["ACL-DEVICE-01: aclrtResetDevice in main"]),
        (
            "race",
            &[
                "ACL-RACE-01: aclrtMemsetAsync in races",
                "64 bytes at",
                "submitted by aclrtMemsetAsync in races",
            ],
        ),
        (
            "early",
            &["ACL-RACE-01: aclrtMemcpy in reads_early", "by aclrtMemsetAsync in reads_early"],
        ),
        (
            "release",
            &[
                "ACL-MEMORY-02: aclrtFree in frees_early",
                "made by aclrtMalloc in frees_early",
                "by aclrtMemsetAsync in frees_early",
            ],
        ),
    ];
    for (word, parts) in rules {
        let (said, code) = check(&[word], "report");
        assert!(parts.iter().all(|part| said.contains(part)), "{word}: {said}");
        assert_eq!((said.lines().count(), code), (1, Some(0)), "{said}");
        // Each rule says what to do.
        assert!(said.trim_end().rsplit_once("; ").is_some_and(|(_, remedy)| remedy.len() > 20));
        assert_eq!(check(&[word], "strict").1, Some(1));
        assert_eq!(check(&[word], "off"), (String::new(), Some(0)));
    }
    for words in [&[][..], &["order"]] {
        assert_eq!(check(words, "strict"), (String::new(), Some(0)));
    }
}

#[test]
fn a_call_fails_where_a_user_asks_for_it() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let program = folder.path().join("misuse");
    build(&["misuse.c"], &program);
    for seed in [None, Some("1"), Some("7")] {
        let mut command = start(&program);
        command.args(["fail", "fail", "fail"]).env("PTO_ACL_FAIL", "aclrtMalloc:3:207001");
        command.envs(seed.map(|seed| ("PTO_ACL_SEED", seed)));
        assert_eq!(run(&mut command), "0 207001 0 over\n", "{seed:?}");
        // A device that is too small fails every one of them, in real and in virtual time.
        let mut command = start(&program);
        command.args(["fail", "fail"]).env("PTO_ACL_MEMORY", "4095");
        command.envs(seed.map(|seed| ("PTO_ACL_SEED", seed)));
        assert_eq!(run(&mut command), "207001 207001 over\n", "{seed:?}");
    }
}

#[test]
fn every_function_fails_where_a_user_asks_for_it_or_naming_it_is_refused() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let (program, file) = (folder.path().join("every"), folder.path().join("calls"));
    build(&["every.c", "-ldl"], &program);
    let can_fail = |function: &pto_acl_interface::AclFunction| {
        pto_acl_interface::AclFunction::why_it_never_fails(*function).is_none()
    };
    let functions: Vec<_> = pto_acl_interface::all().filter(can_fail).collect();
    let line = |function: &pto_acl_interface::AclFunction| {
        format!("{} {}\n", function.name, if function.has_code { 4711 } else { 0 })
    };
    std::fs::write(&file, functions.iter().map(line).collect::<String>()).expect("a file");
    let faults: Vec<_> =
        functions.iter().map(|function| format!("{}:1:4711", function.name)).collect();
    let mut command = start(&program);
    let said = run(command.arg(&file).env("PTO_ACL_FAIL", faults.join(",")));
    assert_eq!(said, format!("{} calls\n", functions.len()));
}

/// Of every function of the interface, as the list of the documentation says.
#[test]
fn what_is_not_supported_says_so_with_its_name_and_nothing_else_does() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let (program, file) = (folder.path().join("supported"), folder.path().join("functions"));
    build(&["supported.c", "-ldl"], &program);
    let page = include_str!("../../../docs/reference/acl-functions.md");
    let refused: BTreeSet<&str> = page
        .lines()
        .filter(|row| row.ends_with("| not supported |"))
        .filter_map(|row| row.split('`').nth(1))
        .collect();
    assert!(refused.len() > 100, "the page lists what is not supported: {refused:?}");
    let functions: Vec<_> =
        pto_acl_interface::all().filter(|one| one.name != "aclGetRecentErrMsg").collect();
    let line = |function: &pto_acl_interface::AclFunction| {
        let works = !refused.contains(function.name);
        format!("{} {} {}\n", function.name, u8::from(works), u8::from(function.has_code))
    };
    std::fs::write(&file, functions.iter().map(line).collect::<String>()).expect("a file");
    let said = run(start(&program).arg(&file));
    assert!(said.ends_with(&format!("{} calls, 0 wrong\n", functions.len())), "{said}");
}

#[test]
fn faults_that_there_are_not_fail_every_call() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let program = folder.path().join("misuse");
    build(&["misuse.c"], &program);
    for (list, why) in [
        (
            "aclrtMaloc:3:207001",
            "there is no function aclrtMaloc; the nearest names are aclrtMalloc",
        ),
        ("aclrtFree:9:1,aclrtGetLastError:1:5", "aclrtGetLastError never fails"),
        ("poisoned:1", "there is no fault poisoned"),
    ] {
        let output = output(start(&program).arg("fail").env("PTO_ACL_FAIL", list));
        assert_eq!(String::from_utf8_lossy(&output.stdout), "107000 over\n");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(why) && said.contains("every call fails"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn a_fault_strikes_a_command_and_the_next_synchronise_tells_it() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let program = folder.path().join("struck");
    build(&["conformance/struck.c"], &program);
    let model = folder.path().join("doubles.ptop");
    std::fs::write(&model, program_of(DOUBLES).to_bytes()).expect("a file");
    let kernels = [
        ("aicore-timeout", "507014"),
        ("aicore-exception", "507015"),
        ("aicpu-timeout", "507017"),
        ("aicpu-exception", "507018"),
    ];
    let mut cases: Vec<(&str, &str, &str)> = Vec::new();
    for way in ["kernel", "stop", "graph"] {
        cases.extend(kernels.map(|(fault, code)| (fault, way, code)));
    }
    let stuck =
        ["abort", "reset", "destroy", "force", "destroy-force", "branch", "words", "unload"];
    cases.extend(stuck.map(|way| ("stuck-stream", way, "0")));
    cases.push(("poisoned-device", "poisoned", "0"));
    for (fault, way, code) in cases {
        for seed in [None, Some("7")] {
            // A wait that does not end would be a defect.
            let mut command = start(Path::new("timeout"));
            command.arg("60").arg(&program).args([way, code]).arg(&model);
            command.env("PTO_ACL_FAIL", format!("{fault}:2"));
            command.envs(seed.map(|seed| ("PTO_ACL_SEED", seed)));
            let output = output(&mut command);
            let said = String::from_utf8_lossy(&output.stdout);
            assert_eq!(
                (&*said, output.status.code()),
                ("0 failed\n", Some(0)),
                "{fault} {way} {seed:?}"
            );
        }
    }
}

#[test]
fn a_kernel_that_takes_too_long_ends_in_virtual_time_as_well() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let program = folder.path().join("slow");
    build(&["slow.c"], &program);
    // Without the variable a kernel takes 5 us, whatever its function does.
    for (seed, kernel_us, code) in
        [("0", Some("2000"), "507014"), ("7", Some("2000"), "507014"), ("7", None, "0")]
    {
        let mut command = start(Path::new("timeout"));
        command.arg("60").arg(&program).arg(code).env("PTO_ACL_SEED", seed);
        command.envs(kernel_us.map(|time| ("PTO_ACL_KERNEL_US", time)));
        assert_eq!(run(&mut command), "0 failed\n", "{seed} {kernel_us:?}");
    }
    // In real time it does nothing, and says so.
    let output = output(start(&program).arg("0").env("PTO_ACL_KERNEL_US", "2000"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("PTO_ACL_KERNEL_US has no effect"), "{said}");
}

#[test]
fn faults_that_did_not_happen_are_reported_at_the_end() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let program = folder.path().join("misuse");
    build(&["misuse.c"], &program);
    let faults = "aclrtMalloc:2:207001,aclrtMalloc:9:207001,aicore-timeout:1,stuck-stream:4";
    let happened = folder.path().join("happened");
    let mut command = start(&program);
    command.arg("fail").env("PTO_ACL_FAIL", faults).env("PTO_ACL_HAPPENED", &happened);
    let output = output(&mut command);
    let faults = std::fs::read_to_string(&happened).expect("a line for each fault that happened");
    assert_eq!(faults, "aclrtMalloc:2:207001\n");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "207001 over\n");
    let said = String::from_utf8_lossy(&output.stderr);
    let lines = [
        "the fault aclrtMalloc:9:207001 did not happen: there were 2 calls of aclrtMalloc",
        "the fault aicore-timeout:1 did not happen: there were 0 kernels and models",
        "the fault stuck-stream:4 did not happen: there were 0 commands",
    ];
    assert_eq!(said, lines.map(|line| format!("pto cann: {line}\n")).concat());
}

#[test]
fn a_fault_strikes_a_model() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let (program, models) = program_with_models(folder.path());
    for number in 1..=2 {
        let fault = format!("aicore-exception:{number}");
        let output = output(start(&program).args(&models).env("PTO_ACL_FAIL", fault));
        let said = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        let all = format!("{said}{errors}");
        assert!(all.contains("507015") && all.contains("(model softmax) failed"), "{all}");
    }
}

#[test]
fn the_log_has_what_its_variables_ask_for() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let (program, logs) = (folder.path().join("misuse"), folder.path().join("logs"));
    build(&["misuse.c"], &program);
    let command = |level: &str| {
        let mut command = start(&program);
        command.args(["fail"]).env("PTO_ACL_FAIL", "aclrtMalloc:2:207001").env("HOME", &logs);
        command.env("ASCEND_GLOBAL_LOG_LEVEL", level);
        command
    };
    let said = run(command("3").env("ASCEND_SLOG_PRINT_TO_STDOUT", "1"));
    let errors: Vec<&str> = said.lines().filter(|line| line.contains("[ERROR] ACL(")).collect();
    assert!(errors.len() == 1 && errors[0].contains("[aclrtMalloc] 207001: "), "{said}");
    // A file of the process, in the folder that is named or else below the home folder.
    assert_eq!(run(&mut command("0")), "207001 over\n");
    let at_home = logs.join("ascend/log/debug/plog");
    let [file] = &files(&at_home)[..] else { panic!("one file in {}", at_home.display()) };
    for part in ["[DEBUG]", "[aclrtSetDevice] called", "[ERROR]", "[aclrtMalloc] 207001: "] {
        assert!(file.contains(part), "{part}: {file}");
    }
    run(command("1").env("ASCEND_PROCESS_LOG_PATH", logs.join("named")));
    let named = files(&logs.join("named/debug/plog"));
    assert!(named.len() == 1 && named[0].lines().count() == 1, "{named:?}");
    run(&mut command("4"));
    assert_eq!(files(&at_home).len(), 1);
    // What cannot be is said once, and the program runs.
    let not_a_folder = [("7", "ascend"), ("0", "/dev/null/logs")];
    for (level, path) in not_a_folder {
        let output = output(command(level).env("ASCEND_PROCESS_LOG_PATH", path));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.starts_with("pto cann: there is no log: ") && said.lines().count() == 1);
        assert_eq!(output.status.code(), Some(0));
    }
}

/// The contents of the files of a folder.
fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    entries
        .map(|entry| std::fs::read_to_string(entry.expect("a file").path()).expect("text"))
        .collect()
}

#[test]
fn the_list_of_visible_devices_ends_at_the_first_that_is_none() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let program = folder.path().join("ends");
    build(&["ends.c"], &program);
    let count =
        |list: &str| run(start(&program).arg("count").env("ASCEND_RT_VISIBLE_DEVICES", list));
    assert_eq!(count("5,2"), "0 2 2\n");
    assert_eq!(count("2,9,1"), "0 1 2\n");
    assert_eq!(count(""), "0 0 -1\n");
}

/// A source that compiles where our structures have the sizes and offsets of the table.
fn layouts() -> String {
    let table = include_str!("../interface/layouts.tsv");
    let rows = table.lines().skip(1).map(|row| row.split('\t').collect::<Vec<_>>());
    let mut text = String::from(
        "#include <assert.h>\n#include <stddef.h>\n#include \"acl/acl.h\"\n#include \"acl/acl_prof.h\"\n#include \"pto_acl.h\"\n",
    );
    for row in rows {
        let [name, bytes, fields, owner] = row[..] else { panic!("four columns: {row:?}") };
        if owner == "ours" {
            text += &format!("static_assert(sizeof({name}) == {bytes}, \"{name}\");\n");
            let field = |field: &str| {
                let (field, offset) = field.split_once('@').expect("a field and its offset");
                format!(
                    "static_assert(offsetof({name}, {field}) == {offset}, \"{name} {field}\");\n"
                )
            };
            text.extend(fields.split_whitespace().map(field));
        }
    }
    text
}

#[test]
fn the_headers_are_c11_and_cpp17_and_the_layouts_are_those_of_the_facts() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let source = folder.path().join("layout.c");
    std::fs::write(&source, layouts()).expect("a file");
    for (program, standard, language) in [("cc", "-std=c11", "c"), ("c++", "-std=c++17", "c++")] {
        run(compiler(program, standard).args(["-fsyntax-only", "-x", language]).arg(&source));
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
    assert_eq!(names.len(), 404 + 36 + 17 + 36);
}
