//! Sources that can be in an image, and what is said of those that cannot.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

use pto_toolchain::packages;

use crate::{Image, Refused, Source, Tool, compile};

fn include() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bindings/include")
}

/// The object of a source with this text.
fn object(text: &str, image: Image) -> Result<String, Refused> {
    static TOOLS: Once = Once::new();
    TOOLS.call_once(|| {
        let brought = packages::install(&[packages::CROSS_CXX], &|said| println!("{said}"));
        brought.unwrap_or_else(|why| panic!("{why}"));
    });
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("plugin.cpp");
    std::fs::write(&path, text).expect("a file");
    let source = Source { path: &path, function: "build_graph_aicpu", symbol: "pto_plugin_7" };
    let object = compile(image, &source, &[include()], folder.path())?;
    let listed = Command::new(Tool::Nm.name()).arg("-g").arg(object).output().expect("binutils");
    Ok(String::from_utf8_lossy(&listed.stdout).into_owned())
}

fn refused(text: &str) -> String {
    object(text, Image::Virt).expect_err("it cannot be in an image").to_string()
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
    for image in [Image::Virt, Image::Cann] {
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

#[test]
fn a_file_says_its_language() {
    let source = Source { path: Path::new("plugin.py"), function: "f", symbol: "s" };
    let said = compile(Image::Virt, &source, &[], Path::new(".")).unwrap_err().to_string();
    assert!(said.contains(".c or .cpp"), "{said}");
}
