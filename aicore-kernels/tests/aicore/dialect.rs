//! The sources as the vendor's compiler gets them, with the words of its dialect defined away.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The intrinsics that the sources use, declared.
const INTRINSICS: &str = r#"
#define PTO_AICORE
#define PTO_GM
#define __global__
#include <stdint.h>
int64_t get_block_idx(), get_block_num(), get_subblockid(), get_subblockdim();
void set_cond(uint32_t);
void set_ffts_base_addr(uint64_t);
void trap();
enum { SINGLE_CACHE_LINE, ENTIRE_DATA_CACHE };
enum { CACHELINE_OUT };
void dcci(void *, int);
void dcci(void *, int, int);
template <typename T> T ld_dev(T *from, int64_t) { return *from; }
template <typename T> void st_dev(T value, T *to, int64_t) { *to = value; }
"#;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("aicore")
}

fn kernels() -> Vec<PathBuf> {
    let files = fs::read_dir(folder().join("kernels")).expect("it is there");
    let files = files.map(|entry| entry.expect("it is read").path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "cpp")).collect()
}

fn compiler() -> Command {
    let mut command = Command::new("c++");
    command.args(["-std=c++17", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-I"]);
    command.arg(folder()).arg("-I").arg(folder().join("this_machine"));
    command.arg("-I").arg(folder().join("../../bindings/include"));
    command
}

fn assert_compiles(command: &mut Command) {
    let output = command.output().expect("a C++ compiler is installed: apt-get install g++");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Every line that is for the device only is C++ as well.
#[test]
fn the_sources_for_the_device_have_no_error_of_syntax() {
    let out = tempfile::tempdir().expect("a folder");
    let intrinsics = out.path().join("intrinsics.h");
    // The pipes' barrier of the worker: that of the header which replaces PTO-ISA.
    let barrier = "\n#include \"pto/pto-inst.hpp\"\n";
    fs::write(&intrinsics, format!("{INTRINSICS}{barrier}")).expect("writable");
    let of_device = |sources: &[PathBuf], kind: &str| {
        let mut command = compiler();
        command.args(["-fsyntax-only", kind, "-include"]).arg(&intrinsics).args(sources);
        assert_compiles(&mut command);
    };
    for kind in ["-D__DAV_CUBE__", "-D__DAV_VEC__"] {
        of_device(&[folder().join("worker.cpp")], kind);
    }
    assert!(kernels().len() >= 42, "{}", kernels().len());
    of_device(&kernels(), "-D__DAV_VEC__");
}
