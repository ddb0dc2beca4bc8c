//! Compiles kernels of the field, in plain C++, to objects that a blob can hold: code and constants that do not depend on where they stand.

use std::path::{Path, PathBuf};

use super::check::{self, Named};
use super::object::{FLAGS, whole_object};
use super::refused::Refused;
use super::tool::{self, Tool};

/// The core that a kernel is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Core {
    /// AIC.
    Cube,
    /// AIV.
    Vector,
}

/// A file with kernels for one kind of core.
#[derive(Clone, Copy, Debug)]
pub struct KernelSource<'a> {
    /// The file.
    pub path: &'a Path,
    /// For which core it is compiled.
    pub core: Core,
    /// Its kernels. A function may have several symbols.
    pub names: &'a [Named<'a>],
    /// How its objects are called.
    pub stem: &'a str,
}

/// Compiles a file; the object is in `folder`. Everything in it but its kernels is its own.
///
/// # Errors
/// What the compiler says; what the kernels need and a device has not.
pub fn compile_kernels(
    source: &KernelSource<'_>,
    prelude: &Path,
    includes: &[PathBuf],
    folder: &Path,
) -> Result<PathBuf, Refused> {
    let KernelSource { path, core, names, stem } = *source;
    let name = path.display();
    let file = |part: &str| folder.join(format!("{stem}{part}.o"));
    let (compiled, whole, own) = (file(".compiled"), file(".whole"), file(""));
    let mut command = Tool::Cxx.command()?;
    command.args(FLAGS).args([
        "-std=c++17",
        "-fno-exceptions",
        "-fno-rtti",
        "-fno-threadsafe-statics",
        "-fno-math-errno",
        "-fpie",
        "-fvisibility=hidden",
        "-DPTO_FIELD_DEVICE=1",
    ]);
    command.arg(match core {
        Core::Cube => "-D__DAV_CUBE__",
        Core::Vector => "-D__DAV_VEC__",
    });
    command.arg("-include").arg(prelude);
    for include in includes.iter().map(PathBuf::as_path).chain(path.parent()) {
        command.arg("-I").arg(include);
    }
    whole_object(&mut command, path, [&compiled, &whole]).map_err(with_hint)?;
    check::kernels(&whole, &name.to_string(), names)?;
    let say = |said: String| Refused(format!("{name}: {said}"));
    // An alias for each kernel, and no other symbol.
    let symbols = tool::run(Tool::Nm.command()?.arg(&whole)).map_err(say)?;
    let mut command = Tool::Objcopy.command()?;
    for Named { function, symbol } in names {
        let value = symbols.lines().find_map(|line| {
            let mut words = line.split_whitespace();
            let (value, _, found) = (words.next()?, words.next()?, words.next()?);
            (found == *function).then_some(value)
        });
        // `check::kernels` has seen that it is there.
        let value = value.unwrap_or("0");
        command.arg(format!(
            "--add-symbol={symbol}={}:0x{value},function,global",
            section_of(&whole, function)?
        ));
    }
    command.args(names.iter().map(|named| format!("--keep-global-symbol={}", named.symbol)));
    tool::run(command.arg(&whole).arg(&own)).map_err(say)?;
    Ok(own)
}

/// The section that a function is in.
fn section_of(object: &Path, function: &str) -> Result<String, Refused> {
    let say = |said: String| Refused(format!("{}: {said}", object.display()));
    let table = tool::run(Tool::Objdump.command()?.arg("-t").arg(object)).map_err(say)?;
    let found = table.lines().find_map(|line| {
        let mut words = line.split_whitespace().rev();
        let name = words.next()?;
        let section = line.split_whitespace().find(|word| word.starts_with(".text"))?;
        (name == function).then(|| section.to_owned())
    });
    found.ok_or_else(|| say(format!("`{function}` stands in no code")))
}

/// What a message of the compiler means for a kernel.
fn with_hint(refused: Refused) -> Refused {
    if refused.0.contains("pto/") {
        let hint = "Kernels of the emulated machine are plain C++: the headers of PTO-ISA do not compile for it. Run this program on the simulator.";
        return Refused(format!("{}\n{hint}", refused.0));
    }
    refused
}

/// For a build script: compiles a file of kernels, and has the linker take the object into the blob `binary`.
///
/// # Errors
/// Those of [`compile_kernels`].
pub fn link_kernels(
    binary: &str,
    source: &KernelSource<'_>,
    prelude: &Path,
    includes: &[PathBuf],
) -> Result<(), Refused> {
    let out = std::env::var_os("OUT_DIR").map(PathBuf::from);
    let out = out.ok_or_else(|| Refused("OUT_DIR: this is for build scripts".to_owned()))?;
    for changed in includes.iter().map(PathBuf::as_path).chain([source.path]) {
        println!("cargo::rerun-if-changed={}", changed.display());
    }
    let object = compile_kernels(source, prelude, includes, &out)?;
    println!("cargo::rustc-link-arg-bin={binary}={}", object.display());
    Ok(())
}
