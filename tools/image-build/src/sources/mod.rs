//! Compiles graph builders in C and C++ to objects that a firmware image can hold. Build scripts of images use this module.
//!
//! ```text
//! Source --g++ -c--> object --ld -r--> one without groups --checked--> what it defines and needs (check.rs)
//!        --objcopy--> an object whose only global symbol is the builder's --> the image
//! ```
//! Sources that a host loads as plugins need no change. A source that needs what an image does not have (the C++ library, constructors,
//! thread-local variables) is refused, and the error names it. Two sources may define the same names.

mod check;
mod kernels;
mod object;
mod refused;
mod tool;

use std::path::{Path, PathBuf};

use object::{FLAGS, whole_object};

pub use check::Named;
pub use kernels::{Core, Interface, KernelSource, compile_kernels, compile_table, link_kernels};
pub use refused::Refused;
pub use tool::Tool;

/// What is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Image {
    /// For the device `qemu`: code at a fixed address.
    Qemu,
    /// For the CANN driver stack: position-independent code.
    Cann,
}

impl Image {
    /// The image that a build script's target is; `None`: it is none.
    #[must_use]
    pub fn of_target() -> Option<Self> {
        let part = |name: &str| std::env::var(format!("CARGO_CFG_TARGET_{name}"));
        match (part("ARCH").as_deref(), part("OS").as_deref()) {
            (Ok("aarch64"), Ok("linux")) => Some(Self::Cann),
            (Ok("aarch64"), Ok("none")) => Some(Self::Qemu),
            _ => None,
        }
    }
}

/// In which language a builder is written, and for which `Runtime`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// For `pto_firmware.h`.
    C,
    /// For `class Runtime` of `runtime.h`.
    Cpp,
}

impl Language {
    /// As the file's name says; `None`: it does not.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "c" => Some(Self::C),
            "cpp" | "cc" | "cxx" | "C" => Some(Self::Cpp),
            _ => None,
        }
    }
}

/// A builder's source.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The file.
    pub path: &'a Path,
    /// The function in it, `extern "C"`.
    pub function: &'a str,
    /// What the image calls it: the name in `c_builder!` or `cpp_builder!`.
    pub symbol: &'a str,
}

/// Compiles `source` for `image`; the object is in `folder`. `includes` are where headers are, besides the source's own
/// folder and the one around it.
///
/// # Errors
/// What the compiler says; what the source needs and an image has not.
pub fn compile(
    image: Image,
    source: &Source<'_>,
    includes: &[PathBuf],
    folder: &Path,
) -> Result<PathBuf, Refused> {
    let Source { path, function, symbol } = *source;
    let name = path.display();
    let language = Language::of(path)
        .ok_or_else(|| Refused(format!("{name}: a builder's file ends with .c or .cpp")))?;
    let compiler = match language {
        Language::C => Tool::Cc,
        Language::Cpp => Tool::Cxx,
    };
    let file = |part: &str| folder.join(format!("{symbol}{part}.o"));
    let (compiled, whole, own) = (file(".compiled"), file(".whole"), file(""));
    let mut command = compiler.command()?;
    command.args(FLAGS).args(match language {
        Language::C => &["-std=c11", "-ffreestanding"][..],
        Language::Cpp => &["-std=c++17", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics"],
    });
    command.args(match image {
        Image::Qemu => &["-fno-pic", "-fno-pie"][..],
        Image::Cann => &["-fPIC"],
    });
    let around = path.parent().into_iter().flat_map(|own| [Some(own), own.parent()]).flatten();
    for include in includes.iter().map(PathBuf::as_path).chain(around) {
        // An empty path is the current folder.
        command.arg("-I").arg(if include.as_os_str().is_empty() {
            Path::new(".")
        } else {
            include
        });
    }
    whole_object(&mut command, path, [&compiled, &whole])?;
    check::object(&whole, &name.to_string(), function)?;
    let mut command = Tool::Objcopy.command()?;
    command.arg(format!("--redefine-sym={function}={symbol}")).arg(&whole);
    tool::run(&mut command).map_err(|said| Refused(format!("{name}: {said}")))?;
    let mut command = Tool::Objcopy.command()?;
    command.arg(format!("--keep-global-symbol={symbol}")).arg(&whole).arg(&own);
    tool::run(&mut command).map_err(|said| Refused(format!("{name}: {said}")))?;
    Ok(own)
}

/// For a build script: compiles sources, and has the linker take the objects into the image: the binary `binary` for
/// `qemu`, the shared object for `cann`. Objects, not an archive: nothing is left out.
///
/// # Errors
/// Those of [`compile`].
pub fn link(
    image: Image,
    binary: &str,
    sources: &[Source<'_>],
    includes: &[PathBuf],
) -> Result<(), Refused> {
    let out = std::env::var_os("OUT_DIR").map(PathBuf::from);
    let out = out.ok_or_else(|| Refused("OUT_DIR: this is for build scripts".to_owned()))?;
    for source in sources {
        println!("cargo::rerun-if-changed={}", source.path.display());
        let object = compile(image, source, includes, &out)?;
        match image {
            Image::Qemu => println!("cargo::rustc-link-arg-bin={binary}={}", object.display()),
            Image::Cann => println!("cargo::rustc-link-arg-cdylib={}", object.display()),
        }
    }
    for include in includes {
        println!("cargo::rerun-if-changed={}", include.display());
    }
    Ok(())
}

/// The array of the kernels that a file has (`pto_kernels.h`).
pub const TABLE: &str = "pto_kernels";

#[cfg(all(test, feature = "toolchain"))]
mod tests;
