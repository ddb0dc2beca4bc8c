//! `bindings/include/pto_runtime.h` as the crate `pto-c` says it: its functions and structures, with the sizes and offsets of these.
//!
//! `PTO_BLESS=1 cargo test --workspace --test c_header` writes the file (`cargo xtask generate` does so). It is no test of `pto-c` itself because whoever builds
//! `pto-c` with its programs, as the race detector does with a compiler's options of its own, has no use for what reads Rust.

mod released;

use std::fmt::Write as _;
use std::mem::offset_of;
use std::path::Path;

use cbindgen::{Builder, Config, DocumentationStyle, ExportConfig, Language, Style};
use pto_runtime::device::{DeviceDescription, DeviceOptions};
use pto_runtime::error::LastError;
use pto_runtime::image::FlashedImage;
use pto_runtime::options::{RunOptions, RunReport};
use pto_runtime::program_run::{ProgramNumber, ProgramOutput, ProgramTensor};
use pto_runtime::program_tasks::{ProgramArgument, ProgramTask, ProgramTensorSpec};
use pto_runtime::run::RunProgress;
use pto_runtime::session::Counters;
use pto_runtime::tensor::TensorDescription;
use pto_runtime::version::Versions;

const OPENING: &str = "\
/* The host side of the PTO Runtime for C11 and C++17: link with -lpto_runtime.
 *
 * Generated from bindings/c by `cargo xtask generate`; do not edit.
 *
 * Functions return 0, or a status: a fault of the runtime (pto_abi.h, below 0x40000000) or an error of the host (below,
 * PTO_ERROR_*). Then nothing was done unless it says so, and pto_last_error tells name, message and remedy.
 * A handle that is null, closed or of another kind is INVALID_HANDLE; it is never followed. Pointers that a function is
 * given are valid for its duration, except where it says more. */";

/// Names here, names in C.
const NAMES: &[(&str, &str)] = &[
    ("OpaqueDevice", "pto_device"),
    ("OpaqueGraph", "pto_graph"),
    ("OpaqueControl", "pto_control"),
    ("OpaqueBuilder", "pto_builder"),
    ("DeviceOptions", "pto_device_options"),
    ("DeviceDescription", "pto_device_description"),
    ("LastError", "pto_error"),
    ("FlashedImage", "pto_flashed_image"),
    ("RunOptions", "pto_run_options"),
    ("RunReport", "pto_run_report"),
    ("RunProgress", "pto_run_progress"),
    ("Versions", "pto_library_versions"),
    ("KernelFunction", "pto_kernel_function"),
    ("BuilderProgram", "pto_builder_program"),
    ("LogCallback", "pto_log_callback"),
    ("StreamTensor", "pto_stream_tensor"),
    ("StreamArg", "pto_stream_arg"),
    ("StreamTask", "pto_stream_task"),
    ("StreamScope", "pto_stream_scope"),
    ("StreamVariation", "pto_stream_variation"),
    ("RangeOfTasks", "pto_task_range"),
    ("StreamRecording", "pto_stream_recording"),
    ("OpaqueSession", "pto_session"),
    ("OpaqueProgram", "pto_program"),
    ("OpaqueLoadedProgram", "pto_loaded_program"),
    ("OpaqueProgramStream", "pto_program_stream"),
    ("OpaqueTensor", "pto_tensor"),
    ("OpaqueKernelStream", "pto_kernel_stream"),
    ("OpaqueEvent", "pto_event"),
    ("OpaqueNotify", "pto_notify"),
    ("OpaqueRecording", "pto_recording"),
    ("RecordingBinding", "pto_recording_binding"),
    ("StreamFunction", "pto_stream_function"),
    ("Counters", "pto_counters"),
    ("Layout", "pto_layout"),
    ("TensorDescription", "pto_tensor_description"),
    ("ProgramTensor", "pto_program_tensor_argument"),
    ("ProgramNumber", "pto_program_number"),
    ("ProgramOutput", "pto_program_output"),
    ("ProgramTensorSpec", "pto_program_tensor_spec"),
    ("ProgramArgument", "pto_program_argument"),
    ("ProgramTask", "pto_program_task"),
];

/// The text of the header.
fn generated() -> String {
    let rename = NAMES.iter().map(|(here, c)| ((*here).to_owned(), (*c).to_owned())).collect();
    let config = Config {
        language: Language::C,
        style: Style::Both,
        cpp_compat: true,
        header: Some(OPENING.to_owned()),
        include_guard: Some("PTO_RUNTIME_H".to_owned()),
        no_includes: true,
        includes: vec!["pto_abi.h".to_owned(), "pto_range.h".to_owned()],
        sys_includes: vec!["stddef.h".to_owned(), "stdint.h".to_owned()],
        after_includes: Some(errors()),
        documentation_style: DocumentationStyle::C,
        line_length: 120,
        export: ExportConfig { rename, ..ExportConfig::default() },
        trailer: Some(assertions()),
        ..Config::default()
    };
    let interface = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bindings/c");
    let bindings = Builder::new().with_crate(interface).with_config(config).generate();
    let mut text = Vec::new();
    bindings.expect("the crate is readable").write(&mut text);
    without_safety(&String::from_utf8(text).expect("a header is text"))
}

fn errors() -> String {
    let mut text = String::from("\n/* Errors of the host: what happened, and what to do */\n");
    for kind in pto_native::FailureKind::TABLE {
        // Writing to a String does not fail.
        let _ = writeln!(text, "/* {} {} */", kind.sentence, kind.remedy);
        let _ = writeln!(text, "#define PTO_ERROR_{} {:#010x}", kind.name, kind.code);
    }
    text
}

/// What Rust says to Rust is for the reader of Rust.
fn without_safety(header: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut in_safety = false;
    for line in header.lines() {
        in_safety |= line.trim() == "# Safety";
        if in_safety && line.trim() == "*/" {
            in_safety = false;
            while kept.last().is_some_and(|last| last.trim().is_empty()) {
                kept.pop();
            }
        }
        if !in_safety {
            kept.push(line);
        }
    }
    kept.join("\n") + "\n"
}

macro_rules! layout {
    ($text:ident, $c:literal, $here:ty, $($field:ident),+) => {
        let _ = writeln!($text, "PTO_ASSERT(sizeof({}) == {}, \"size of {}\");", $c, size_of::<$here>(), $c);
        $(
            let (field, offset) = (stringify!($field), offset_of!($here, $field));
            let _ = writeln!($text, "PTO_ASSERT(offsetof({}, {field}) == {offset}, \"{}.{field}\");", $c, $c);
        )+
    };
}

fn assertions() -> String {
    let mut text = String::from(
        "\n#ifdef __cplusplus\n#define PTO_ASSERT(condition, text) static_assert(condition, text)\n#else\n\
         #define PTO_ASSERT(condition, text) _Static_assert(condition, text)\n#endif\n",
    );
    layout!(
        text,
        "pto_device_options",
        DeviceOptions,
        size,
        aic,
        aiv,
        hosting,
        os_threads,
        aicpu,
        gm_bytes
    );
    layout!(
        text,
        "pto_device_description",
        DeviceDescription,
        aic,
        aiv,
        gm_bytes,
        gm_free_bytes,
        kernels,
        builders,
        name
    );
    layout!(text, "pto_error", LastError, code, reserved, name, message, remedy);
    layout!(
        text,
        "pto_flashed_image",
        FlashedImage,
        generation,
        is_current,
        flashed_at_s,
        firmware,
        firmware_sha256,
        kernels,
        kernels_sha256
    );
    layout!(
        text,
        "pto_run_options",
        RunOptions,
        size,
        build_mode,
        fanout,
        aicpu_instances,
        tasks,
        skip_kernel_times,
        arg_words,
        edges,
        task_budget_ns,
        stall_budget_ns,
        bring_up_budget_ns,
        run_budget_ns,
        trace_file,
        control,
        window,
        map_entries,
        heap_bytes,
        heap_rings,
        reserved
    );
    layout!(
        text,
        "pto_run_report",
        RunReport,
        tasks,
        edges,
        edges_satisfied,
        makespan_ns,
        busy_ns,
        tasks_run,
        logs_dropped
    );
    layout!(text, "pto_run_progress", RunProgress, running, reserved, added, published, completed);
    layout!(
        text,
        "pto_library_versions",
        Versions,
        interface,
        abi_major,
        abi_minor,
        reserved,
        layout_hash
    );
    layout!(
        text,
        "pto_counters",
        Counters,
        copied_to_device_bytes,
        copied_to_host_bytes,
        copied_on_device_bytes,
        filled_bytes,
        converted_bytes,
        conversions,
        bounced_bytes,
        allocations,
        pool_hits,
        runs,
        binding_hits,
        launches
    );
    layout!(
        text,
        "pto_tensor_description",
        TensorDescription,
        name,
        role,
        element,
        rank,
        shape,
        bytes,
        layout
    );
    layout!(text, "pto_program_tensor_argument", ProgramTensor, name, tensor, is_given, reserved);
    layout!(text, "pto_program_number", ProgramNumber, name, kind, real, integer);
    layout!(text, "pto_program_output", ProgramOutput, name, tensor);
    layout!(
        text,
        "pto_program_tensor_spec",
        ProgramTensorSpec,
        name,
        role,
        element,
        layout,
        shape,
        rank,
        reserved
    );
    layout!(text, "pto_program_argument", ProgramArgument, tensor, reserved, value);
    layout!(
        text,
        "pto_program_task",
        ProgramTask,
        kernel,
        args,
        after,
        arg_count,
        after_count,
        kind,
        reserved
    );
    text.push_str("#undef PTO_ASSERT");
    text
}

#[test]
fn the_header_is_current() {
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bindings/include/pto_runtime.h");
    let text = generated();
    if std::env::var_os("PTO_BLESS").is_some() {
        std::fs::write(&header, &text).expect("the header is writable");
    }
    let held = std::fs::read_to_string(&header).unwrap_or_default();
    assert!(held == text, "bindings/include/pto_runtime.h is stale: run `cargo xtask generate`");
}

#[test]
fn every_function_is_documented_with_its_thread_safety() {
    let text = generated();
    let mut functions = 0;
    for declaration in text.split(");\n").filter(|part| part.contains("pto_")) {
        let Some((doc, signature)) = declaration.rsplit_once("*/") else { continue };
        if signature.contains('#') || signature.contains("typedef") {
            continue;
        }
        functions += 1;
        let doc = doc.rsplit_once("/*").map_or(doc, |(_, doc)| doc);
        let doc = doc.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(doc.contains("Thread safety:"), "{declaration}");
        assert!(!doc.contains("# Safety"), "{declaration}");
    }
    assert!(functions >= 40, "{functions} functions");
}
