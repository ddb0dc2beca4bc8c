//! Programs of the field on the device `a2a3`: their orchestrations on the host, and on the cores of the stand-in the worker and the programs' kernels in C++,
//! which come through the door of `pto fw build --aicore --kernel`.

use std::fs;
use std::path::Path;

use pto_field::{CallOptions, FieldDevice, KernelCode, ObjectCode};
use pto_host::abi::CoreKind;
use pto_host::fw::{Image, Machine};
use pto_image_build::KernelSource;

use crate::bench::{KERNELS, run_loaded, with_kernels};
use crate::shapes::{SHAPES, has_exponentials, is_close};
use crate::table::{GOOD, ProgramTensors};
use crate::{a2a3, common};

/// `all` runs every program; the suite has a few.
const VARIABLE: &str = "PTO_TEST_SCENES";

/// The programs of the suite, which need few kernels.
const FEW: &[&str] = &["vector_example", "chain", "mix_blocks", "cross_core"];
/// The kernels of these, besides those that leave a mark.
const OF_FEW: &[&str] = &["k_add", "k_add_scalar", "k_mul", "k_bump", "k_lead", "k_follow"];

/// Kernels that AICores of a2a3 cannot run, and one that breaks its core.
const NOT_ON_CORES: &[&str] = &["k_crash", "k_ping", "k_pong", "k_all_meet", "k_lonely"];

/// Programs that do not run there, each with the reason.
const LEFT_OUT: &[(&str, &str)] = &[
    ("basics", "it asserts the number of clusters of the simulator"),
    ("ping_pong", "its kernels share memory that only simulators have"),
    ("all_meet", "it needs more vector cores at once than the device has"),
    ("meet", "it needs more vector cores at once than the device has"),
    ("sync_start", "it needs more clusters at once than the device has"),
];

/// What a file with one kernel has before the kernels of all programs.
const PROLOGUE: &str = r#"#include "field_kernel.h"
#include <sched.h>
#define sched_yield() (PTO_SERVICE(look)(), 0)
#define KERNELS namespace
#include "programs.h"

/* The exponential, to a few units in the last place: a core has no library. */
extern "C" __attribute__((visibility("hidden"), used)) float expf(float x) {
    const float clamped = x < -87.0f ? -87.0f : x > 88.0f ? 88.0f : x;
    const float scaled = clamped * 1.44269504f;
    const int whole = static_cast<int>(scaled + (scaled < 0 ? -0.5f : 0.5f));
    const double rest = clamped - whole * 0.69314718055994531;
    double sum = 1;
    for (int term = 9; term > 0; --term) {
        sum = 1 + sum * rest / term;
    }
    return static_cast<float>(sum) * from_u64<float>(static_cast<uint64_t>(whole + 127) << 23);
}
"#;

/// The program of AICores with these kernels.
fn image(kernels: &[(u32, &str)], folder: &Path) -> Image {
    let fixtures = common::root().join("bindings/field");
    let of_all = fixtures.join("tests/programs/kernels.cpp");
    fs::copy(of_all, folder.join("programs.h")).expect("writable");
    let source = |(func_id, name): &(u32, &str)| {
        let path = folder.join(format!("{name}.cpp"));
        fs::write(&path, format!("{PROLOGUE}PTO_FIELD_KERNEL({name})\n")).expect("writable");
        let (kind, name) = (kind_of(*func_id), (*name).to_owned());
        KernelSource { func_id: *func_id, kind, name, function: "kernel_entry".to_owned(), path }
    };
    let kernels = kernels.iter().map(source).collect();
    let path = common::aicore_of(kernels, vec![fixtures.join("include")], &folder.join("tree"));
    Image::read(&path).expect("an image of this release")
}

const fn kind_of(func_id: u32) -> CoreKind {
    if func_id >= 32 { CoreKind::AIC } else { CoreKind::AIV }
}

/// In a process of its own, because one has one program of AICores.
#[test]
fn programs_of_the_field_run_on_aicores() {
    if *common::MACHINES.last().expect("there is one") != Machine::X86_64
        || a2a3::ran_alone("scenes::programs_of_the_field_run_on_aicores")
    {
        return;
    }
    let all = std::env::var(VARIABLE).is_ok_and(|asked| asked == "all");
    let is_asked = |name: &str| all || FEW.contains(&name);
    let on_cores = |name: &str| match all {
        true => !NOT_ON_CORES.contains(&name),
        false => OF_FEW.contains(&name) || name.starts_with("k_mark"),
    };
    let kernels: Vec<_> = KERNELS.into_iter().filter(|(_, name)| on_cores(name)).collect();
    let folder = tempfile::tempdir().expect("a folder");
    let program = image(&kernels, folder.path());
    let device = a2a3::open_field(&program);
    let code = ObjectCode::OnDevice;
    let kernels: Vec<_> = kernels
        .iter()
        .map(|(func_id, name)| {
            let (func_id, kind, name) = (*func_id, kind_of(*func_id), *name);
            KernelCode { func_id, kind, name, symbol: "", code }
        })
        .collect();
    let programs = GOOD.iter().chain(SHAPES).filter(|(entry, _)| is_asked(entry));
    let left_out = |entry: &str| LEFT_OUT.iter().any(|(name, _)| *name == entry);
    let programs: Vec<_> = programs.filter(|(entry, _)| !left_out(entry)).collect();
    let wrong: Vec<_> = programs
        .iter()
        .filter_map(|(entry, expected)| check(&device, entry, &kernels, expected).err())
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    drop(device);
    a2a3::nothing_is_open();
    println!("{} programs of the field", programs.len());
}

/// Runs a program; what is wrong with what it has left.
fn check(
    device: &FieldDevice,
    entry: &str,
    kernels: &[KernelCode<'_>],
    expected: &fn(ProgramTensors) -> ProgramTensors,
) -> Result<(), String> {
    let program = with_kernels(entry, kernels);
    let (outcome, found) = run_loaded(device, &program, &CallOptions::default());
    if outcome.code != 0 {
        return Err(format!("{entry}: {:?}", outcome.error));
    }
    let expected = expected(ProgramTensors::new());
    let is_right = match has_exponentials(entry) {
        true => is_close(&found, &expected),
        false => found == expected,
    };
    println!("{entry}: {}", if is_right { "right" } else { "wrong" });
    is_right.then_some(()).ok_or_else(|| format!("{entry}: {found:?}, and not {expected:?}"))
}
