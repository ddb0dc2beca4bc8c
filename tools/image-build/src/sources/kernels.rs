//! Compiles kernels in plain C and C++ to objects that a blob can hold: code and constants that do not depend on where they stand.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Language;
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

/// How kernels are written.
#[derive(Clone, Copy, Debug)]
pub enum Interface<'a> {
    /// For simpler: each file is compiled for one kind of core, with this header before it.
    Simpler(Core, &'a Path),
    /// For `pto_kernels.h`, with the table [`TABLE`](super::TABLE).
    Words,
}

/// A file with kernels.
#[derive(Clone, Copy, Debug)]
pub struct KernelSource<'a> {
    /// The file.
    pub path: &'a Path,
    /// For what it is written.
    pub interface: Interface<'a>,
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
    includes: &[PathBuf],
    folder: &Path,
) -> Result<PathBuf, Refused> {
    let KernelSource { path, interface, names, stem } = *source;
    let name = path.display();
    let say = |said: String| Refused(format!("{name}: {said}"));
    let file = |part: &str| folder.join(format!("{stem}{part}.o"));
    let (compiled, whole, own) = (file(".compiled"), file(".whole"), file(""));
    let mut command = compiler(path, includes)?;
    match interface {
        Interface::Simpler(core, prelude) => {
            command.args(["-fvisibility=hidden", "-DPTO_FIELD_DEVICE=1"]);
            command.arg(match core {
                Core::Cube => "-D__DAV_CUBE__",
                Core::Vector => "-D__DAV_VEC__",
            });
            command.arg("-include").arg(prelude);
        }
        Interface::Words => {}
    }
    whole_object(&mut command, path, [&compiled, &whole]).map_err(with_hint)?;
    if let Interface::Words = interface {
        // The table has addresses, and the blob has a table of its own.
        let mut command = Tool::Objcopy.command()?;
        command.arg("--strip-debug").args(OF_TABLE.map(|one| format!("--remove-section={one}")));
        tool::run(command.arg(&whole)).map_err(say)?;
    }
    check::kernels(&whole, &name.to_string(), names)?;
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

/// The sections of the table and of what it refers to.
const OF_TABLE: [&str; 2] = [".data*.pto_kernels", ".rela.data*.pto_kernels"];

/// A call of the compiler for a file of kernels, with the flags that all of them have.
fn compiler(path: &Path, includes: &[PathBuf]) -> Result<Command, Refused> {
    let name = path.display();
    let language = Language::of(path)
        .ok_or_else(|| Refused(format!("{name}: a file of kernels ends with .c or .cpp")))?;
    let (tool, flags) = match language {
        Language::C => (Tool::Cc, &["-std=c11"][..]),
        Language::Cpp => (
            Tool::Cxx,
            &["-std=c++17", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics"][..],
        ),
    };
    let mut command = tool.command()?;
    command.args(FLAGS).args(flags).args(["-fno-math-errno", "-fpie"]);
    for include in includes.iter().map(PathBuf::as_path).chain(path.parent()) {
        // An empty path is the current folder.
        let here = include.as_os_str().is_empty();
        command.arg("-I").arg(if here { Path::new(".") } else { include });
    }
    Ok(command)
}

/// Compiles a file with a table of kernels to an object, so that the table can be read from it.
///
/// # Errors
/// What the compiler says.
pub fn compile_table(path: &Path, includes: &[PathBuf], object: &Path) -> Result<(), Refused> {
    let mut command = compiler(path, includes)?;
    let said = tool::run(command.arg("-c").arg(path).arg("-o").arg(object));
    said.map(drop).map_err(|said| Refused(format!("{} does not compile:\n{said}", path.display())))
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
    includes: &[PathBuf],
) -> Result<(), Refused> {
    let out = std::env::var_os("OUT_DIR").map(PathBuf::from);
    let out = out.ok_or_else(|| Refused("OUT_DIR: this is for build scripts".to_owned()))?;
    for changed in includes.iter().map(PathBuf::as_path).chain([source.path]) {
        println!("cargo::rerun-if-changed={}", changed.display());
    }
    let object = compile_kernels(source, includes, &out)?;
    println!("cargo::rustc-link-arg-bin={binary}={}", object.display());
    Ok(())
}
