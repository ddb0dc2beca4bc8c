//! The programs, compiled once, and devices to run them on.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use pto_field::{
    Call, CallOptions, Callable, FieldDevice, KernelCode, MemorySpace, ObjectCode, ProgramSource,
    Role, RunOutcome, Tensor,
};
use pto_host::abi::CoreKind;
use pto_host::virtual_time::VirtualOptions;
use pto_host::{Hosting, RunControl, default_pool_threads};

use crate::table::ProgramTensors;

/// Kernels by func id; those from 32 on are for cube cores.
pub(crate) const KERNELS: [(u32, &str); 35] = [
    (0, "k_add"),
    (1, "k_mul"),
    (2, "k_add_scalar"),
    (3, "k_bump"),
    (4, "k_fill"),
    (5, "k_copy"),
    (6, "k_accumulate"),
    (7, "k_blocks"),
    (8, "k_mark_vector"),
    (9, "k_meet"),
    (10, "k_words"),
    (11, "k_describe"),
    (12, "k_notify"),
    (13, "k_await"),
    (14, "k_await_too_much"),
    (15, "k_slow"),
    (16, "k_crash"),
    (17, "k_pattern"),
    (18, "k_soften"),
    (19, "k_update"),
    (20, "k_tile_of_block"),
    (21, "k_pong"),
    (22, "k_between"),
    (23, "k_follow"),
    (24, "k_all_meet"),
    (25, "k_lonely"),
    (26, "k_handshake"),
    (27, "k_handshake_by_prelude"),
    (28, "k_reads_for_long"),
    (32, "k_matmul"),
    (33, "k_mark_cube"),
    (34, "k_scores"),
    (35, "k_weigh"),
    (36, "k_ping"),
    (37, "k_lead"),
];

/// Compiles a source with flags of its own into an object of this name.
fn compiled([name, source, flags]: [&str; 3]) -> PathBuf {
    // The tests of the images run these programs, too.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bindings/field");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("field-programs");
    std::fs::create_dir_all(&folder).unwrap();
    let object = folder.join(format!("{name}-{}.so", std::process::id()));
    let mut compiler = Command::new("g++");
    compiler.args(["-shared", "-fPIC", "-O1", "-std=c++17", "-fno-gnu-unique", "-Wall", "-Werror"]);
    compiler.args(flags.split_whitespace());
    // More flags, such as those of a sanitizer: docs/how-to/simpler-cpp.md has the command.
    let more = std::env::var("PTO_FIELD_CXXFLAGS").unwrap_or_default();
    compiler.args(more.split_whitespace());
    compiler.arg("-I").arg(root.join("include"));
    compiler.arg("-include").arg(root.join("include/pto_field_prelude.h"));
    compiler.arg(root.join("tests/programs").join(format!("{source}.cpp")));
    let output = compiler.arg("-o").arg(&object).output().expect("g++ starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    object
}

/// The objects: name, source, flags. Those with orchestrations have the programs whose entries begin with their name; the first one has the rest.
const SOURCES: [[&str; 3]; 4] = [
    ["orchestrations", "orchestrations", "-DPTO_FIELD_A5=0"],
    ["kernels", "kernels", "-DPTO_FIELD_A5=0"],
    [
        "february",
        "february",
        "-DPTO_FIELD_STREAMS=1 -DPTO_FIELD_ENTRY=1 -DPTO_FIELD_RUNTIME_FIRST=1",
    ],
    ["first_weeks", "february", "-DFIRST_WEEKS -DPTO_FIELD_ENTRY=1 -DPTO_FIELD_RUNTIME_FIRST=1"],
];

fn objects() -> &'static [PathBuf; 4] {
    static OBJECTS: OnceLock<[PathBuf; 4]> = OnceLock::new();
    OBJECTS.get_or_init(|| SOURCES.map(compiled))
}

/// The program whose entry has this name.
pub(crate) fn program(entry: &str) -> Callable {
    let code = ObjectCode::Path(&objects()[1]);
    let kernels = KERNELS.map(|(func_id, symbol)| {
        let kind = if func_id >= 32 { CoreKind::AIC } else { CoreKind::AIV };
        KernelCode { func_id, kind, name: symbol, symbol, code }
    });
    with_kernels(entry, &kernels)
}

/// The same with other kernels.
pub(crate) fn with_kernels(entry: &str, kernels: &[KernelCode<'_>]) -> Callable {
    let [orchestrations, _, february, first_weeks] = objects();
    let orchestrations = match entry {
        _ if entry.starts_with("february") => february,
        _ if entry.starts_with("first_weeks") => first_weeks,
        _ => orchestrations,
    };
    let config = format!("{entry}_config");
    let orchestration = ObjectCode::Path(orchestrations);
    Callable::load(&ProgramSource { orchestration, entry, config: Some(&config), kernels }).unwrap()
}

/// The hosting modes.
pub(crate) fn modes() -> [Hosting; 3] {
    [
        Hosting::Pool { os_threads: default_pool_threads() },
        Hosting::Threads,
        Hosting::Virtual(VirtualOptions::default()),
    ]
}

pub(crate) fn device(hosting: Hosting) -> FieldDevice {
    FieldDevice::open(FieldDevice::options(hosting)).unwrap()
}

/// Runs a program on these tensors.
pub(crate) fn run(
    device: &FieldDevice,
    program: &Callable,
    tensors: &[Tensor<'_>],
    scalars: &[u64],
    options: &CallOptions,
) -> RunOutcome {
    // SAFETY: the tensors are slices of the tests'.
    unsafe { device.run(program, &Call { tensors, scalars }, options, &RunControl::default()) }
        .unwrap()
}

/// Runs a program on tensors of its own.
pub(crate) fn run_on(
    device: &FieldDevice,
    entry: &str,
    options: &CallOptions,
) -> (RunOutcome, ProgramTensors) {
    run_loaded(device, &program(entry), options)
}

/// The same of a program that is loaded.
pub(crate) fn run_loaded(
    device: &FieldDevice,
    program: &Callable,
    options: &CallOptions,
) -> (RunOutcome, ProgramTensors) {
    let mut held = ProgramTensors::new();
    let (whole, few) = ([1024], [64]);
    let tensors = [
        (held.a.as_mut_ptr().cast(), &whole, 0),
        (held.b.as_mut_ptr().cast(), &whole, 0),
        (held.out.as_mut_ptr().cast(), &whole, 0),
        (held.counts.as_mut_ptr().cast(), &few, 2),
    ];
    let tensors = tensors.map(|(pointer, shape, dtype)| Tensor {
        pointer,
        shape,
        dtype,
        role: Role::InOut,
        space: MemorySpace::Host,
    });
    let outcome = run(device, program, &tensors, &[5], options);
    (outcome, held)
}
