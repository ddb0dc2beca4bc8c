//! For the build script: compiles the kernels that `PTO_FW_KERNELS` names, and writes the table of the blob. Each line of the variable is a kernel: its func
//! id, `AIC` or `AIV`, its name, its function and its file, with tabs between. `PTO_FW_KERNEL_INCLUDES` are more folders of headers.
//!
//! With the feature `field` they are kernels for simpler, and the whole blob. With `own` they get the words of their task, and stand beside those of the library;
//! a file in Rust is then a module of the blob.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use pto_image_build::sources::{Core, Image, Interface, KernelSource, Named};

const IS_OWN: bool = cfg!(feature = "own");
const BINARY: &str = if IS_OWN { "pto-own-kernels" } else { "pto-field-kernels" };
/// The headers that the kernels include, from here.
const HEADERS: &str =
    if IS_OWN { "../../bindings/include" } else { "../../bindings/field/include" };

struct Kernel<'a> {
    id: &'a str,
    core: Core,
    name: &'a str,
    function: &'a str,
    path: &'a Path,
    symbol: String,
}

impl Kernel<'_> {
    fn is_rust(&self) -> bool {
        self.path.extension().is_some_and(|extension| extension == "rs")
    }
}

pub(crate) fn compile() {
    println!("cargo::rerun-if-changed=listed_kernels.rs");
    println!("cargo::rerun-if-env-changed=PTO_FW_KERNELS");
    println!("cargo::rerun-if-env-changed=PTO_FW_KERNEL_INCLUDES");
    let asked = env::var("PTO_FW_KERNELS").unwrap_or_default();
    let kernels: Vec<_> = asked.lines().map(kernel).collect();
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("kernels.rs"), table(&kernels)).expect("OUT_DIR is writable");
    if Image::of_target() != Some(Image::Qemu) {
        return;
    }
    let headers =
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join(HEADERS);
    let more = env::var_os("PTO_FW_KERNEL_INCLUDES").unwrap_or_default();
    let includes: Vec<_> = env::split_paths(&more).chain([headers.clone()]).collect();
    // A file for simpler is compiled once for each kind of core.
    let mut files = BTreeMap::<_, Vec<_>>::new();
    for kernel in kernels.iter().filter(|kernel| !kernel.is_rust()) {
        let core = (!IS_OWN).then_some(kernel.core);
        files.entry((kernel.path, core)).or_default().push(kernel);
    }
    for (number, ((path, core), kernels)) in files.iter().enumerate() {
        let names: Vec<_> = kernels
            .iter()
            .map(|kernel| Named { function: kernel.function, symbol: &kernel.symbol })
            .collect();
        let stem = format!("kernels_{number}");
        let prelude = headers.join("pto_field_prelude.h");
        let interface = core.map_or(Interface::Words, |core| Interface::Simpler(core, &prelude));
        let source = KernelSource { path, interface, names: &names, stem: &stem };
        if let Err(refused) = pto_image_build::sources::link_kernels(BINARY, &source, &includes) {
            eprintln!("{refused}");
            for line in refused.to_string().lines() {
                println!("cargo::error={line}");
            }
        }
    }
}

fn kernel(line: &str) -> Kernel<'_> {
    let mut parts = line.splitn(5, '\t');
    let mut part = || parts.next().expect("PTO_FW_KERNELS: five parts in each line");
    let (id, kind, name, function, path) = (part(), part(), part(), part(), Path::new(part()));
    let core = if kind == "AIC" { Core::Cube } else { Core::Vector };
    Kernel { id, core, name, function, path, symbol: format!("pto_listed_kernel_{id}") }
}

/// A module for each file in Rust, a function for each other kernel, which is called with the words of a task, and the table of the blob.
fn table(kernels: &[Kernel<'_>]) -> String {
    let (mut functions, mut entries) = (String::new(), String::new());
    let mut modules = BTreeMap::new();
    for kernel in kernels {
        let Kernel { id, core, name, function, path, symbol } = kernel;
        let (kind, first) = match core {
            Core::Cube => ("AIC", 0),
            Core::Vector => ("AIV", 1),
        };
        // Writing to a String does not fail.
        if kernel.is_rust() {
            let number = modules.len();
            let module = *modules.entry(*path).or_insert(number);
            let _ = writeln!(
                entries,
                "    {id} {kind} {name:?} crate::table::kernels_{module}::{function};"
            );
            continue;
        }
        let call = match IS_OWN {
            true => format!("{symbol}(args.cast_mut().cast())"),
            false => format!("crate::call::run(args, {first}, {symbol})"),
        };
        let _ = writeln!(
            functions,
            "unsafe extern \"C\" {{ fn {symbol}(args: *mut i64); }}\n\
             unsafe extern \"C\" fn on_{id}(args: *const u64) {{\n    \
                 // SAFETY: the engine calls it with the words of a task; the function is a kernel.\n    \
                 unsafe {{ {call} }}\n}}"
        );
        let _ = writeln!(entries, "    {id} {kind} {name:?} crate::table::on_{id};");
    }
    for (path, number) in modules {
        let _ = writeln!(
            functions,
            "#[allow(missing_docs, unreachable_pub, dead_code)]\n#[path = {path:?}]\npub(crate) mod kernels_{number};"
        );
    }
    if IS_OWN {
        return format!(
            "{functions}\npto_kernels_blob::kernel_blob! {{\n    library;\n{entries}}}\n"
        );
    }
    format!(
        "{functions}\nunsafe extern \"C\" fn nothing(_: *const u64) {{}}\n\n\
         pto_kernels_blob::kernel_blob! {{\n{entries}    1023 AIV \"(no kernel)\" crate::table::nothing;\n}}\n"
    )
}
