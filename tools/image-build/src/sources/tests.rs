//! Sources that can be in an image, and what is said of those that cannot.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

use super::{
    Core, Image, Interface, KernelSource, Named, Refused, Source, Tool, compile, compile_kernels,
};
use crate::toolchain::packages;

fn include() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bindings/include")
}

fn tools() {
    static TOOLS: Once = Once::new();
    TOOLS.call_once(|| {
        let brought = packages::install(&[packages::CROSS_CXX], &|said| println!("{said}"));
        brought.unwrap_or_else(|why| panic!("{why}"));
    });
}

/// The object of a source with this text.
fn object(text: &str, image: Image) -> Result<String, Refused> {
    tools();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("plugin.cpp");
    std::fs::write(&path, text).expect("a file");
    let source = Source { path: &path, function: "build_graph_aicpu", symbol: "pto_plugin_7" };
    let object = compile(image, &source, &[include()], folder.path())?;
    let listed = Command::new(Tool::Nm.name()).arg("-g").arg(object).output().expect("binutils");
    Ok(String::from_utf8_lossy(&listed.stdout).into_owned())
}

fn refused(text: &str) -> String {
    object(text, Image::Qemu).expect_err("it cannot be in an image").to_string()
}

const GOOD: &str = r#"
    #include "runtime.h"
    template <class T> int twice(T n) { return 2 * n; }
    inline int shared_name() { return twice(21); }
    extern "C" int build_graph_aicpu(Runtime *runtime) {
        uint64_t args[] = {runtime->orch_args[0], static_cast<uint64_t>(shared_name())};
        const int task = runtime->aicpu_build_api.add_task(runtime, args, 2, 0, CoreType::AIV, 0);
        runtime->aicpu_build_api.publish_task(runtime, task);
        return 0;
    }"#;

#[test]
fn a_plugin_has_one_global_symbol() {
    for image in [Image::Qemu, Image::Cann] {
        let symbols = object(GOOD, image).unwrap_or_else(|refused| panic!("{refused}"));
        let symbols: Vec<_> = symbols.lines().collect();
        assert!(matches!(symbols[..], [one] if one.ends_with(" T pto_plugin_7")), "{symbols:?}");
    }
}

#[test]
fn what_an_image_has_not_is_named() {
    let vector = GOOD
        .replace("uint64_t args[] =", "std::vector<uint64_t> args")
        .replace("args, 2", "args.data(), 2");
    let said = refused(&format!("#include <vector>\n{vector}"));
    assert!(
        said.contains("plugin.cpp needs what a firmware has not")
            && said.contains("operator new(unsigned long)"),
        "{said}"
    );
    let said = refused(&format!(
        "#include <iostream>\n{}",
        GOOD.replace("twice(21)", "(std::cout << 1, 2)")
    ));
    assert!(said.contains("constructors"), "{said}");
    let said = refused(&GOOD.replace("return 0;", "throw 1;"));
    assert!(
        said.contains("plugin.cpp does not compile")
            && said.contains("A firmware has no exceptions"),
        "{said}"
    );
    let said = refused(
        &GOOD
            .replace("inline int", "thread_local int counter; inline int")
            .replace("twice(21)", "counter++"),
    );
    assert!(said.contains("thread-local"), "{said}");
    let said = refused(&GOOD.replace("build_graph_aicpu", "build_other"));
    assert!(
        said.contains("no function `build_graph_aicpu`") && said.contains("there are: build_other"),
        "{said}"
    );
    let said = refused("int missing() { return 1 }");
    assert!(said.contains("plugin.cpp does not compile") && said.contains("expected"), "{said}");
}

/// The global symbols of a file of kernels with this text.
fn kernels(text: &str, names: &[Named<'_>]) -> Result<Vec<String>, Refused> {
    tools();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("softmax.cpp");
    std::fs::write(&path, text).expect("a file");
    let prelude = include().join("../field/include/pto_field_prelude.h");
    let includes = [include().join("../field/include")];
    let source = KernelSource {
        path: &path,
        interface: Interface::Simpler(Core::Vector, &prelude),
        names,
        stem: "kernels_0",
    };
    let object = compile_kernels(&source, &includes, folder.path())?;
    let listed = Command::new(Tool::Nm.name()).arg("-g").arg(object).output().expect("binutils");
    Ok(String::from_utf8_lossy(&listed.stdout).lines().map(str::to_owned).collect())
}

const KERNEL: &str = r#"
    #include <cmath>
    #include "intrinsic.h"
    #include "tensor.h"
    inline float shared_name(float x) { return std::exp(x); }
    extern "C" void kernel_entry(int64_t *args) {
        const ChipTensor *x = reinterpret_cast<const ChipTensor *>(args[0]);
        x->data_as<float>()[get_block_idx(args)] = shared_name(get_sys_cnt());
    }"#;

#[test]
fn kernels_have_their_own_symbols_alone() {
    let named = |symbol| Named { function: "kernel_entry", symbol };
    let both = [named("pto_field_kernel_3"), named("pto_field_kernel_40")];
    let symbols = kernels(KERNEL, &both).unwrap_or_else(|refused| panic!("{refused}"));
    let (needed, own): (Vec<_>, Vec<_>) = symbols.iter().partition(|line| line.contains(" U "));
    assert_eq!(own.len(), 2, "{symbols:?}");
    assert!(
        own.iter().zip(&both).all(|(line, named)| line.ends_with(&format!(" T {}", named.symbol)))
    );
    assert!(needed.iter().any(|line| line.ends_with(" expf")), "{needed:?}");
}

#[test]
fn what_a_device_has_not_is_named() {
    let refused = |text: &str| {
        let named = Named { function: "kernel_entry", symbol: "pto_field_kernel_0" };
        kernels(text, &[named]).expect_err("it cannot be on a device").to_string()
    };
    let said = refused(
        &KERNEL.replace("inline", "static int calls; inline").replace("std::exp(x)", "x + calls++"),
    );
    assert!(said.contains("softmax.cpp has variables (.bss: calls)"), "{said}");
    let said = refused(
        &KERNEL
            .replace("inline", "float powers(float *, int); inline")
            .replace("std::exp(x)", "powers(&x, 2)"),
    );
    assert!(
        said.contains("softmax.cpp needs what a device has not: powers(float*, int)"),
        "{said}"
    );
    let said = refused(&KERNEL.replace("#include <cmath>", "#include <pto/pto-inst.hpp>"));
    assert!(said.contains("the headers of PTO-ISA do not compile for it"), "{said}");
    let said = refused(&KERNEL.replace("kernel_entry", "softmax"));
    assert!(said.contains("no function `kernel_entry` (extern \"C\", void kernel_entry(int64_t *args)); there are: softmax"), "{said}");
}

#[test]
fn a_file_says_its_language() {
    let source = Source { path: Path::new("plugin.py"), function: "f", symbol: "s" };
    let said = compile(Image::Qemu, &source, &[], Path::new(".")).unwrap_err().to_string();
    assert!(said.contains(".c or .cpp"), "{said}");
}
