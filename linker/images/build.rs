//! Tells the linker what each image needs. With the feature `plugins` it also compiles the builders that `PTO_FW_BUILDERS` names.

use std::env;

#[cfg(feature = "plugins")]
mod plugins {
    //! Compiles the builders, and writes the `firmware!` of them. Each line of the variable is a builder's name, its function, and its
    //! file, with tabs between.

    use std::fmt::Write as _;
    use std::path::{Path, PathBuf};
    use std::{env, fs};

    use pto_image_build::sources::{Image, Language, Source, link};

    pub(super) fn compile() {
        println!("cargo::rerun-if-env-changed=PTO_FW_BUILDERS");
        let asked = env::var("PTO_FW_BUILDERS").unwrap_or_default();
        let builders: Vec<_> = asked.lines().map(builder).collect();
        let mut macros = String::new();
        let mut names = String::new();
        let mut sources = Vec::new();
        for (number, (name, function, path)) in builders.iter().enumerate() {
            let symbol: &str = Box::leak(format!("pto_plugin_{number}").into_boxed_str());
            let kind = match Language::of(path) {
                Some(Language::C) => "c_builder",
                _ => "cpp_builder",
            };
            // Writing to a String does not fail.
            let _ = writeln!(macros, "pto_firmware::{kind}!(plugin_{number} = {symbol:?});");
            let _ = write!(names, "{name:?} => plugin_{number}, ");
            sources.push(Source { path, function, symbol });
        }
        let text = format!(
            "{macros}\npto_firmware::firmware! {{\n/// The builders of this image.\npub struct Builders {{ {names} }}\n}}\n"
        );
        let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
        fs::write(out.join("firmware.rs"), text).expect("OUT_DIR is writable");
        let Some(image) = Image::of_target() else { return };
        let include = env::var_os("DEP_PTO_FIRMWARE_INCLUDE").expect("pto-firmware says where");
        let includes: Vec<_> = env::split_paths(&include).collect();
        if let Err(refused) = link(image, super::QEMU, &sources, &includes) {
            eprintln!("{refused}");
            for line in refused.to_string().lines() {
                println!("cargo::error={line}");
            }
        }
    }

    fn builder(line: &str) -> (&str, &str, &Path) {
        let mut parts = line.splitn(3, '\t');
        let mut part =
            || parts.next().expect("PTO_FW_BUILDERS: name, function and file in each line");
        (part(), part(), Path::new(part()))
    }
}

/// The binary that is the image `qemu`.
const QEMU: &str = "pto-fw-qemu";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |name: &str| env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    match (target("OS").as_str(), target("ARCH").as_str()) {
        ("none", _) => {
            for argument in ["-Tpto-qemu.ld", "--build-id=sha1"] {
                println!("cargo::rustc-link-arg-bin={QEMU}={argument}");
            }
        }
        // A build id, from which the driver stack's dispatcher makes the name of the installed file; no start files, which only carry
        // what a library with destructors needs.
        ("linux", "aarch64") => {
            for argument in ["-nostartfiles", "-Wl,--build-id=sha1", "-Wl,-z,relro,-z,now"] {
                println!("cargo::rustc-cdylib-link-arg={argument}");
            }
        }
        // Of a development machine the library may be one of tests as well, whose standard library needs the start files.
        ("linux", "x86_64") => println!("cargo::rustc-cdylib-link-arg=-Wl,--build-id=sha1"),
        _ => {}
    }
    #[cfg(feature = "plugins")]
    plugins::compile();
}
