//! Compares the kernels in C++ with those in Rust: on the same arguments they leave the same bytes, or sums in another order; and their pipes are in order.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{CString, c_void};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use pto_aicore_kernels::library::{Extents, LIBRARY, LibraryKernel};

use super::costs::assert_golden;
use super::pipes::{PIPE_CALLS, PipeCalls, PipeModel, SPACES, watch};

/// Kernels whose sums are in another order, and the largest error that this may make.
const IN_ANOTHER_ORDER: &[(&str, f32)] = &[
    ("attention_qk", 1e-4),
    ("row_sum", 1e-4),
    ("rms_norm", 1e-5),
    ("attention_softmax_partial", 1e-4),
];
/// Kernels of the library that are not written in C++: the tile machine.
const NOT_IN_CPP: &[&str] = &["tile_aic", "tile_aiv"];

/// The folder of the sources.
fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("aicore")
}

/// `pto_core_services` of the header that replaces PTO-ISA.
#[repr(C)]
struct CoreServices {
    raise: extern "C" fn(u64),
    wait: extern "C" fn(u32),
    ticks: extern "C" fn() -> u64,
    look: extern "C" fn(),
}

thread_local! {
    /// What a kernel has asked of its core: words of flags that it has raised, and flags that it has waited for.
    static ASKED: RefCell<(Vec<u64>, Vec<u32>)> = RefCell::default();
}

extern "C" fn raise(word: u64) {
    ASKED.with_borrow_mut(|asked| asked.0.push(word));
}
extern "C" fn wait(flag: u32) {
    ASKED.with_borrow_mut(|asked| asked.1.push(flag));
}
extern "C" fn ticks() -> u64 {
    0
}
extern "C" fn look() {}

static SERVICES: CoreServices = CoreServices { raise, wait, ticks, look };

/// A kernel, compiled so that it reports what its pipes do.
struct CheckedKernel {
    entry: unsafe extern "C" fn(*mut i64, &'static CoreServices),
    handle: *mut c_void,
}

impl CheckedKernel {
    /// Compiles a kernel of the sources in `folder`.
    fn build(folder: &Path, name: &str, out: &Path) -> Result<Self, String> {
        let library = out.join(format!("{name}.so"));
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/aicore");
        let compiled = Command::new("c++")
            .args([
                "-std=c++17",
                "-O1",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-ffp-contract=off",
                "-fno-math-errno",
                "-fPIC",
                "-shared",
            ])
            .args(["-DPTO_ON_THIS_MACHINE", "-DPTO_CHECK_PIPES", "-I"])
            .arg(folder.join("this_machine"))
            .arg(folder.join(format!("kernels/{name}.cpp")))
            .arg(tests.join("pipes.cpp"))
            .arg("-o")
            .arg(&library)
            .output()
            .expect("a C++ compiler is installed: apt-get install g++");
        if !compiled.status.success() {
            return Err(String::from_utf8_lossy(&compiled.stderr).into_owned());
        }
        let path = CString::new(library.to_string_lossy().as_bytes()).expect("no zero in a path");
        // SAFETY: the object was just compiled from sources that have no static constructors.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!handle.is_null(), "{} does not load", library.display());
        let symbol = |name: &std::ffi::CStr| {
            // SAFETY: the library is loaded, and the name is a string.
            let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
            assert!(!found.is_null(), "{name:?} is missing");
            found
        };
        let (bind, entry) = (symbol(c"pto_pipes_bind"), symbol(c"kernel_entry"));
        // SAFETY: `pipes.cpp` declares it so.
        let bind = unsafe {
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*const PipeCalls)>(bind)
        };
        // SAFETY: the table lives as long as the process.
        unsafe { bind(&raw const PIPE_CALLS) };
        // SAFETY: `kernel.h` declares it so.
        let entry = unsafe {
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut i64, &'static CoreServices)>(
                entry,
            )
        };
        Ok(Self { entry, handle })
    }
}

impl Drop for CheckedKernel {
    fn drop(&mut self) {
        // SAFETY: loaded by `build`, and nothing of it is used any more.
        unsafe { libc::dlclose(self.handle) };
    }
}

/// A word that is a size or a scalar.
fn number(name: &str) -> u64 {
    let scalar = |value: f32| u64::from(value.to_bits());
    match name {
        "n" => 70,
        "rows" | "tokens" => 19,
        "cols" => 700,
        "m" => 150,
        "k" => 130,
        "head_dim" => 72,
        "inner" => 130,
        "group" => 2,
        "n_experts" => 8,
        "top_k" => 2,
        "entries" => 38,
        "expert" => 3,
        "diagonal" => 5,
        "stride" => 3,
        "iterations" => 9,
        "index" => 20,
        "flags" | "first_row" => 0,
        "how" => 100 << 16,
        "parts" => 3 | 1 << 32,
        "scale" => scalar(0.125),
        "scalar" => scalar(-1.75),
        "epsilon" => scalar(1e-5),
        "ld" => 800,
        _ if name.ends_with("_ld") => 800,
        _ => 11,
    }
}

/// Elements of a table whose length depends on numbers in memory.
const ELEMENTS: usize = 40 * 800;

/// The words of a call, and the memory of its tensors.
#[derive(Clone)]
struct KernelArguments {
    words: Vec<u64>,
    tensors: BTreeMap<usize, Vec<u32>>,
}

impl KernelArguments {
    /// A call with these words instead of the usual ones.
    fn of(kernel: &LibraryKernel, given: &[(&str, u64)]) -> Self {
        let value = |name: &&str| {
            let found = given.iter().find(|(one, _)| one == name);
            found.map_or_else(|| number(name), |(_, value)| *value)
        };
        let mut words: Vec<u64> = kernel.args.iter().map(value).collect();
        let mut tensors = BTreeMap::new();
        for (at, name) in kernel.args.iter().enumerate().filter(|(at, _)| kernel.addresses[*at]) {
            let footprint = (kernel.footprint)(&words, 1, at);
            let count = match footprint.map(|one| (one.extents, one.elements)) {
                Some((Some(Extents::Vector(n)), _)) => n as usize,
                Some((Some(Extents::Matrix([rows, _, ld])), _)) => (rows * ld) as usize,
                Some((None, Some(elements))) => (elements.bytes / 4) as usize,
                _ => ELEMENTS,
            };
            tensors.insert(
                at,
                (0..count.max(1) as u32).map(|index| element(kernel.name, name, index)).collect(),
            );
        }
        words.push(1 << 32);
        Self { words, tensors }
    }

    /// The words with the addresses of the tensors.
    fn args(&mut self) -> Vec<u64> {
        let mut words = self.words.clone();
        for (at, tensor) in &mut self.tensors {
            words[*at] = tensor.as_mut_ptr().expose_provenance() as u64;
        }
        words
    }
}

/// The contents of a tensor before the call.
fn element(kernel: &str, name: &str, index: u32) -> u32 {
    let random = index.wrapping_mul(0x9E37_79B9) ^ (name.len() as u32) << 20;
    let random = (random ^ random >> 15).wrapping_mul(0x2C1B_3C6D);
    let value = (random >> 8) as f32 / (1 << 24) as f32 - 0.5;
    match name {
        "count" => 9,
        "ran" | "counters" => index,
        "list" => index * 2 + 1,
        "experts" => random >> 4 & 7,
        "positions" => 1 + index % 3,
        "producers" => index % 20,
        "values" | "cells" | "status" => random,
        // Sums of exponentials.
        "l_block" | "l_acc" => (value.abs() + 1.0).to_bits(),
        // A matrix that can be factorised, and triangles with a diagonal that divides.
        "a" | "l" if kernel.starts_with("cholesky_potrf") || name == "l" => {
            let is_diagonal = index.is_multiple_of(801);
            (if is_diagonal { 60.0 } else { value * 0.5 }).to_bits()
        }
        _ => (value * 4.0).to_bits(),
    }
}

/// Further calls of a kernel.
fn more(name: &str) -> Vec<Vec<(&'static str, u64)>> {
    match name {
        "add" | "mul" | "exp" | "add_scalar" => {
            vec![vec![("n", 9_001)], vec![("n", 0)], vec![("n", 512)]]
        }
        "matmul" | "matmul_acc" | "matmul_add" => {
            vec![vec![("k", 0)], vec![("m", 1), ("n", 300)], vec![("n", 0)], vec![("k", 64)]]
        }
        "attention_update" => (1..4).map(|flags| vec![("flags", flags)]).collect(),
        "row_sum" | "row_max" => vec![vec![("cols", 13)], vec![("cols", 512), ("rows", 1)]],
        // Every element type and operation, and the tensor at several places between the parts.
        "reduce" => (0..12 * 4)
            .flat_map(|of| {
                let how = (100 << 16) | ((of % 4) << 8) | (of / 4);
                [0, 1, 1 | 1 << 32, 3 | 2 << 32, 2 | 2 << 32]
                    .map(|parts| vec![("n", 72), ("how", how), ("parts", parts)])
            })
            .collect(),
        "cholesky_syrk" => vec![vec![("n", 7)]],
        "copy" | "silu_mul" => vec![vec![("rows", 1), ("cols", 3)], vec![("rows", 0)]],
        _ => Vec::new(),
    }
}

fn differs(rust: u32, cpp: u32, error: f32) -> bool {
    let (rust_value, cpp_value) = (f32::from_bits(rust), f32::from_bits(cpp));
    let distance = (rust_value - cpp_value).abs();
    // A NaN differs from everything but the same bits.
    rust != cpp && (distance.is_nan() || distance > error * rust_value.abs().max(1.0))
}

/// Runs a kernel in both ways; what differs, and what its pipes did wrong.
fn compare(
    kernel: &LibraryKernel,
    checked: &CheckedKernel,
    given: &[(&str, u64)],
) -> Result<PipeModel, String> {
    let mut rust = KernelArguments::of(kernel, given);
    let mut cpp = rust.clone();
    let (rust_args, mut cpp_args) = (rust.args(), cpp.args());
    // SAFETY: the words of a call of this kernel, with memory as large as its footprint says.
    unsafe { (kernel.entry)(rust_args.as_ptr()) };
    // SAFETY: the same, of the kernel in C++.
    let pipes = watch(|| unsafe { (checked.entry)(cpp_args.as_mut_ptr().cast(), &SERVICES) });
    let order = IN_ANOTHER_ORDER.iter().find(|(name, _)| *name == kernel.name);
    let error = order.map_or(0.0, |(_, error)| *error);
    for (at, tensor) in &rust.tensors {
        let pairs = tensor.iter().zip(&cpp.tensors[at]);
        if let Some((index, (rust, cpp))) =
            pairs.enumerate().find(|(_, (rust, cpp))| differs(**rust, **cpp, error))
        {
            let (rust, cpp) = (f32::from_bits(*rust), f32::from_bits(*cpp));
            return Err(format!(
                "{} {given:?}, {}[{index}]: Rust {rust:e}, C++ {cpp:e}",
                kernel.name, kernel.args[*at]
            ));
        }
    }
    match pipes.errors.first() {
        Some(error) => Err(format!("{} {given:?}: {error}", kernel.name)),
        None => Ok(pipes),
    }
}

/// Compares all calls of a kernel of the sources in a folder.
fn check(folder: &Path, kernel: &LibraryKernel, out: &Path) -> Result<Vec<PipeModel>, String> {
    let checked = CheckedKernel::build(folder, kernel.name, out)?;
    let calls = [Vec::new()].into_iter().chain(more(kernel.name));
    calls.map(|given| compare(kernel, &checked, &given)).collect()
}

#[test]
fn kernels_leave_the_same_bytes_and_their_pipes_are_in_order() {
    let out = tempfile::tempdir().expect("a folder");
    let (mut wrong, mut rows) = (Vec::new(), String::new());
    for kernel in LIBRARY.iter().filter(|kernel| !NOT_IN_CPP.contains(&kernel.name)) {
        match check(&sources(), kernel, out.path()) {
            Err(why) => wrong.push(why),
            Ok(pipes) => {
                rows.push_str(&format!("{}: {}\n", kernel.name, takes(&pipes)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_golden("kernels.txt", &rows);
}

/// Instructions on tiles of the first call, and the most bytes of each local memory.
fn takes(calls: &[PipeModel]) -> String {
    let most = |space: usize| calls.iter().map(|pipes| pipes.used[space]).max().unwrap_or(0);
    let memories = SPACES.iter().enumerate().skip(1).filter(|(space, _)| most(*space) > 0);
    let memories = memories.map(|(space, (name, _))| format!(", {name} {} bytes", most(space)));
    format!("{} instructions{}", calls[0].instructions, memories.collect::<String>())
}

/// Statements that order pipes, and a kernel that runs each: taken out, alone and with the statement that answers it, the model finds it.
const ORDERED: &[(&str, &str)] = &[
    ("vector.h", "add"),
    ("matrix.h", "matmul"),
    ("matrix.h", "matmul_add"),
    ("silu.h", "silu_mul"),
];

#[test]
fn a_flag_or_a_barrier_that_is_missing_is_found() {
    let out = tempfile::tempdir().expect("a folder");
    let mut kept = Vec::new();
    let mut found = 0;
    for (header, name) in ORDERED {
        let kernel = LIBRARY.iter().find(|kernel| kernel.name == *name).expect("it exists");
        let text = fs::read_to_string(sources().join("kernels").join(header)).expect("it is there");
        for lines in mutants(&text, *name == "matmul_add") {
            let mutant = text.lines().enumerate().filter(|(at, _)| !lines.contains(at));
            let mutant = mutant.map(|(_, line)| format!("{line}\n")).collect::<String>();
            let folder = out.path().join("mutant");
            copy_sources(&folder);
            fs::write(folder.join("kernels").join(header), mutant).expect("writable");
            match check(&folder, kernel, out.path()) {
                Ok(_) => kept.push(format!("{header} without lines {lines:?} ({name})")),
                Err(_) => found += 1,
            }
        }
    }
    assert!(found >= 30, "the sources were not understood: {found} mutants");
    println!("{found} kernels without a flag or a barrier, each found");
    assert!(kept.is_empty(), "not found:\n{}", kept.join("\n"));
}

/// A kernel that raises a flag for the other cores of its cluster, and waits for one of theirs.
const OF_A_CLUSTER: &str = r#"#include "vector.h"
PTO_KERNEL(args) {
    kernel::elementwise(args.size(2), {args.gm(0)}, args.gm(1), [](auto &out, auto &in) { pto::TEXP(out, in[0]); });
    ffts_cross_core_sync(PIPE, 1 | 2 << 4 | 3 << 8);
    wait_flag_dev(4);
}
"#;

#[test]
fn a_flag_for_other_cores_that_is_raised_too_early_is_found() {
    let out = tempfile::tempdir().expect("a folder");
    copy_sources(out.path());
    let errors = |pipe: &str| {
        let source = out.path().join("kernels/cluster.cpp");
        fs::write(source, OF_A_CLUSTER.replace("PIPE,", &format!("{pipe},"))).expect("writable");
        let checked = CheckedKernel::build(out.path(), "cluster", out.path());
        let checked = checked.unwrap_or_else(|why| panic!("{why}"));
        let (mut from, mut to) = (vec![0.0_f32; 9_000], vec![0.0_f32; 9_000]);
        let address = |tensor: &mut Vec<f32>| tensor.as_mut_ptr().expose_provenance() as i64;
        let mut words = [address(&mut from), address(&mut to), 9_000, 1 << 32];
        // SAFETY: two tensors of so many elements.
        let pipes = watch(|| unsafe { (checked.entry)(words.as_mut_ptr(), &SERVICES) });
        assert!(to.iter().all(|value| *value == 1.0), "exp(0)");
        pipes.errors
    };
    // Behind the pipe that writes GM.
    assert_eq!(errors("PIPE_MTE3"), Vec::<String>::new());
    let asked = ASKED.with_borrow_mut(std::mem::take);
    assert_eq!(asked, (vec![0x321], vec![4]));
    // Others do not know that it is done, but for the vector pipe, which has waited for its buffers.
    for early in ["PIPE_MTE2", "PIPE_S"] {
        let errors = errors(early);
        let [error, ..] = &errors[..] else { panic!("{early} is not found") };
        assert!(error.contains("raises a flag for other cores behind"), "{errors:?}");
    }
}

/// The lines to take out: each that orders pipes, and each flag with the wait for it in the next line. Of `copy` in `matrix.h`, or of everything else there.
fn mutants(text: &str, is_copy: bool) -> Vec<Vec<usize>> {
    let lines: Vec<&str> = text.lines().collect();
    let copy = lines.iter().position(|line| line.contains("void copy(")).unwrap_or(lines.len());
    let orders = |at: usize| {
        let line = lines.get(at).map_or("", |line| line.trim_start());
        ["set_flag(", "wait_flag(", "pipe_barrier("].iter().any(|call| line.starts_with(call))
            && (at > copy) == is_copy
    };
    let alone = (0..lines.len()).filter(|at| orders(*at)).map(|at| vec![at]);
    let answers = |at: &usize| {
        let flag =
            |line: &str| line.trim_start().split_once("_flag").map(|(_, flag)| flag.to_owned());
        orders(*at) && orders(at + 1) && flag(lines[*at]) == flag(lines[at + 1])
    };
    let pairs = (0..lines.len()).filter(answers).map(|at| vec![at, at + 1]);
    alone.chain(pairs).collect()
}

fn copy_sources(to: &Path) {
    for folder in ["kernels", "this_machine/pto"] {
        fs::create_dir_all(to.join(folder)).expect("writable");
        for entry in fs::read_dir(sources().join(folder)).expect("it is there") {
            let path = entry.expect("it is read").path();
            fs::copy(&path, to.join(folder).join(path.file_name().expect("a file")))
                .expect("writable");
        }
    }
}
