//! The request: which image to build, from which sources, and how.

use std::path::PathBuf;

use crate::toolchain::{self, Source};
use pto_host::abi::CoreKind;
use pto_host::abi::limits::MAX_FUNC_ID;
use pto_host::fw::{Machine, Tracing};

/// For which platform an image is built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Platform {
    /// The emulated machine: a firmware and, without a crate of one's own, the blob of kernels.
    #[default]
    Qemu,
    /// The CANN driver stack: a shared object.
    Cann,
}

impl Request {
    /// The Rust target.
    #[must_use]
    pub const fn triple(&self) -> &'static str {
        match (self.platform, self.machine) {
            (Platform::Qemu, _) => toolchain::BARE_METAL,
            // AICPUs are AArch64 processors besides AICores.
            (Platform::Cann, Machine::Aarch64 | Machine::DavC220) => toolchain::LINUX,
            (Platform::Cann, Machine::X86_64) => toolchain::DEVELOPMENT,
        }
    }
}

/// How an image is built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// With overflow checks and debug assertions: a panic becomes a fault that says where.
    #[default]
    Checked,
    /// As it is shipped: fast, and no panic is reachable.
    Release,
    /// The same, compiled for its size: a third less code, and more instructions a task.
    Small,
}

/// Which kernels an image for CANN brings with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CoreCode {
    /// A blob of the firmware's machine, for the stand-in's cores.
    #[default]
    Blob,
    /// None: the program of AICores is built besides it ([`build_aicore`](super::aicore::build_aicore)).
    Aicore,
}

/// What to build.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// For which platform.
    pub platform: Platform,
    /// For which machine: an image for CANN that the stand-in loads may be x86-64 code, and brings a blob of kernels of its machine.
    pub machine: Machine,
    /// A firmware crate of one's own; `None`: the default images, from the sources of this program.
    pub crate_folder: Option<PathBuf>,
    /// Sources in C and C++ that are the firmware's builders, instead of those of the default image.
    pub builders: Vec<BuilderSource>,
    /// Kernels for simpler in plain C++, of which the blob for `qemu` consists, instead of those of the library; or kernels in Rust, which it has beside
    /// those of the library.
    pub kernels: Vec<KernelSource>,
    /// Files in C and C++ with a table `pto_kernels` (`pto_kernels.h`), whose kernels are in the blob beside those of the library.
    pub own_kernels: Vec<PathBuf>,
    /// Folders of headers for them, besides ours and their own.
    pub kernel_includes: Vec<PathBuf>,
    /// Which kernels an image for CANN brings with it.
    pub core_code: CoreCode,
    /// How.
    pub profile: Profile,
    /// Which compiler.
    pub source: Source,
    /// Features of the crate with the firmware.
    pub features: Vec<String>,
    /// Whether the firmware records runs, of the platform `qemu`: the feature `tracing` of a crate of one's own.
    pub tracing: Tracing,
    /// Where cargo puts what it builds; `None`: where it does without being told.
    pub target_folder: Option<PathBuf>,
}

impl Request {
    /// Whether the kernels are in the blob beside those of the library.
    pub(crate) fn adds_to_library(&self) -> bool {
        !self.own_kernels.is_empty() || self.kernels.iter().any(KernelSource::is_rust)
    }
}

/// A builder in C (for `pto_firmware.h`) or C++ (for `class Runtime`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuilderSource {
    /// The name by which runs ask for it.
    pub name: String,
    /// Its function, `extern "C"`.
    pub function: String,
    /// The file: `.c`, or `.cpp`, `.cc`, `.cxx`.
    pub path: PathBuf,
}

impl BuilderSource {
    /// The function that plugins have, and its builder's name, unless they say others.
    pub const FUNCTION: &str = "build_graph_aicpu";

    /// `[NAME=]FILE[:FUNCTION]`, as a command line has it.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let (name, rest) = text.split_once('=').unwrap_or((Self::FUNCTION, text));
        let (path, function) = file_and_function(rest, Self::FUNCTION);
        Self { name: name.to_owned(), function, path }
    }

    pub(crate) fn is_cpp(&self) -> bool {
        self.path.extension().is_some_and(|extension| extension != "c")
    }
}

/// A kernel: of a program for simpler, in plain C++, or one in Rust that gets the words of its task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelSource {
    /// The number by which the program submits it: 0 to 1022.
    pub func_id: u32,
    /// The cores that it runs on.
    pub kind: CoreKind,
    /// What reports call it.
    pub name: String,
    /// Its function, `extern "C"`: in Rust, a `pub unsafe extern "C" fn(*const u64)`.
    pub function: String,
    /// The file: `.rs`, or C++.
    pub path: PathBuf,
}

impl KernelSource {
    /// The function that kernels have, unless they say another.
    pub const FUNCTION: &str = "kernel_entry";

    /// `ID:aic|aiv[:NAME]=FILE[:FUNCTION]`, as a command line has it; `None`: it is nothing of this form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (head, rest) = text.split_once('=')?;
        let mut head = head.splitn(3, ':');
        let func_id = head.next()?.parse().ok()?;
        let kind = match head.next()? {
            "aic" => CoreKind::AIC,
            "aiv" => CoreKind::AIV,
            _ => return None,
        };
        let (path, function) = file_and_function(rest, Self::FUNCTION);
        let of_file =
            || path.file_stem().map(|stem| format!("{func_id}_{}", stem.to_string_lossy()));
        let name = head.next().map(str::to_owned).or_else(of_file)?;
        Some(Self { func_id, kind, name, function, path })
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.extension().is_some_and(|extension| extension == "rs")
    }
}

/// `FILE[:FUNCTION]`.
fn file_and_function(text: &str, usual: &str) -> (PathBuf, String) {
    let is_function = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let (path, function) = match text.rsplit_once(':') {
        Some((path, function)) if is_function(function) => (path, function),
        _ => (text, usual),
    };
    (path.into(), function.to_owned())
}

/// The header of PTO-ISA that kernels for AICores include.
pub(crate) const PTO_ISA_HEADER: &str = "pto/pto-inst.hpp";

/// What to build of the program of AICores.
#[derive(Clone, Debug, Default)]
pub struct AicoreRequest {
    /// The folder with `pto/pto-inst.hpp`, PTO-ISA's headers. Kernels of the library need it.
    pub pto_isa: Option<PathBuf>,
    /// Kernels in C++ instead of those of the library: each a file with a function `kernel_entry`.
    pub kernels: Vec<KernelSource>,
    /// Folders of headers for them.
    pub kernel_includes: Vec<PathBuf>,
    /// The folder of the compiler; `None`: `$ASCEND_HOME_PATH`.
    pub home: Option<PathBuf>,
    /// Where the source tree goes; `None`: `aicore-dav-c220` where cargo puts what it builds.
    pub folder: Option<PathBuf>,
}

/// Whether a func id can be that of a kernel.
pub(crate) fn is_func_id(id: u32) -> bool {
    usize::try_from(id).is_ok_and(|id| id < MAX_FUNC_ID - 1)
}
