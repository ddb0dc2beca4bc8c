//! What a user can write after `pto fw`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::help;

/// Firmware images.
#[derive(Args, Debug)]
#[command(arg_required_else_help = true)]
pub(crate) struct FwArgs {
    #[command(subcommand)]
    pub(crate) command: FwCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FwCommand {
    #[command(after_help = help::FW_BUILD)]
    /// Builds the default images, or those of a firmware crate, and seals them with a checksum
    Build(FwBuildArgs),
    #[command(after_help = help::FW_SEAL)]
    /// Checks what the vendor's compiler has made of a source tree for AICores, and seals it as an image
    Seal(FwSealArgs),
    #[command(after_help = help::FW_INSPECT)]
    /// Shows the contents of an image, and whether this host can use it (exit code 1 if it cannot)
    Inspect(FwInspectArgs),
    #[command(after_help = help::FW_FLASH)]
    /// Verifies images, and makes a device run them from now on
    Flash(FwFlashArgs),
    #[command(after_help = help::FW_LIST)]
    /// Lists the images of each device, and its earlier ones
    List(FwListArgs),
    #[command(after_help = help::FW_ROLLBACK)]
    /// Makes a device run the images from before the last flash
    Rollback(FwRollbackArgs),
}

impl FwCommand {
    /// Whether it answers with one JSON object.
    pub(crate) const fn json(&self) -> bool {
        match self {
            Self::Build(args) => args.json,
            Self::Seal(args) => args.json,
            Self::Inspect(args) => args.json,
            Self::Flash(args) => args.json,
            Self::List(args) => args.json,
            Self::Rollback(args) => args.json,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct FwBuildArgs {
    /// The platform that the image is for
    #[arg(long, value_name = "PLATFORM", value_enum, default_value = "qemu")]
    pub(crate) image: FwPlatform,
    /// The machine that the image is for. An image for CANN may be x86-64 code: the stand-in for an Ascend device runs it
    /// without an emulator (docs/how-to/hardware.md). Its kernels are built with it
    #[arg(long, value_name = "MACHINE", value_enum, default_value = "aarch64")]
    pub(crate) machine: FwMachine,
    /// The folder of a firmware crate of your own
    /// [default: builds the images of the sources that this command was built from]
    #[arg(long = "crate", value_name = "PATH")]
    pub(crate) crate_folder: Option<PathBuf>,
    /// A builder in C (pto_firmware.h) or C++ (class Runtime), which the image holds instead of the examples' builders; may
    /// be given several times. NAME and FUNCTION are build_graph_aicpu if they are left out
    #[arg(
        long = "builder",
        value_name = "[NAME=]FILE[:FUNCTION]",
        conflicts_with = "crate_folder"
    )]
    pub(crate) builders: Vec<String>,
    /// A kernel of a program for simpler, in plain C++, which the blob of kernels holds instead of the library's; or one in Rust (FILE.rs, a `pub unsafe
    /// extern "C" fn(*const u64)` without the standard library), which it holds beside the library's. May be given several times. FUNCTION is kernel_entry if
    /// it is left out
    #[arg(
        long = "kernel",
        value_name = "ID:aic|aiv[:NAME]=FILE[:FUNCTION]",
        conflicts_with = "crate_folder"
    )]
    pub(crate) kernels: Vec<String>,
    /// A file in C or C++ that lists kernels as pto_kernels.h says, which the blob of kernels holds beside the library's; may be given several times
    #[arg(
        long = "kernels",
        value_name = "FILE",
        conflicts_with_all = ["crate_folder", "aicore"]
    )]
    pub(crate) own_kernels: Vec<PathBuf>,
    /// A folder of headers for the kernels; may be given several times
    #[arg(long = "kernel-include", value_name = "FOLDER")]
    pub(crate) kernel_includes: Vec<PathBuf>,
    /// Builds the program of AICores, too, for --image cann: the worker and the kernels, with CANN's compiler (`ccec`, below $ASCEND_HOME_PATH). Without
    /// the compiler it writes the source tree, which builds elsewhere with cmake; `pto fw seal` takes what comes out
    #[arg(long, conflicts_with_all = ["crate_folder", "tracing"])]
    pub(crate) aicore: bool,
    /// The folder of PTO-ISA's headers, with pto/pto-inst.hpp, for --aicore
    #[arg(long, value_name = "FOLDER", requires = "aicore")]
    pub(crate) pto_isa: Option<PathBuf>,
    /// Where --aicore writes the source tree
    /// [default: aicore-dav-c220 in cargo's target folder]
    #[arg(long, value_name = "FOLDER", requires = "aicore")]
    pub(crate) aicore_sources: Option<PathBuf>,
    /// Features of the crate, separated by commas. The default image of qemu can leave parts out: `without-streaming`
    /// (tensormap_and_ringbuffer), `without-examples` (their builders), `without-sessions`, `without-locked` (the locked
    /// strategy of fanout)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) features: Vec<String>,
    /// Builds a firmware for qemu that can record runs (`pto run --trace`), which makes it larger by more than half
    #[arg(long)]
    pub(crate) tracing: bool,
    /// Builds the image as it is shipped: fast, and without any reachable panic. Without this option, overflows and failed
    /// assertions end the run with a fault that names the place
    #[arg(long)]
    pub(crate) release: bool,
    /// As --release, compiled for its size: 40 % less code, and 15 to 45 % more instructions for most tasks
    #[arg(long)]
    pub(crate) small: bool,
    /// Where the compiler comes from
    #[arg(long, value_name = "SOURCE", value_enum, default_value = "any")]
    pub(crate) compiler: CompilerSource,
    /// Answers with one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FwPlatform {
    /// The emulated machine
    #[value(alias = "virt")]
    Qemu,
    /// The CANN driver stack of an Ascend device
    Cann,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FwMachine {
    /// The machine of every device
    Aarch64,
    /// The machine of most who develop; for the stand-in only
    #[value(name = "x86-64")]
    X86_64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompilerSource {
    /// From rustup within 60 seconds; if that fails, from Debian's packages
    Any,
    /// From rustup
    Rustup,
    /// From Debian's packages, which are kept in $XDG_CACHE_HOME/pto or ~/.cache/pto
    Debian,
}

#[derive(Args, Debug)]
pub(crate) struct FwSealArgs {
    /// The source tree that `pto fw build --image cann --aicore` has written, with what was built in it
    pub(crate) folder: PathBuf,
    /// Answers with one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct FwInspectArgs {
    /// The image file
    pub(crate) image: PathBuf,
    /// Answers with one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct FwFlashArgs {
    /// The image files; for qemu a firmware, an image of kernels, or both
    #[arg(required = true, value_name = "IMAGE")]
    pub(crate) images: Vec<PathBuf>,
    /// The device [default: the one that the image is for]
    #[arg(long, value_name = "DEVICE", value_enum)]
    pub(crate) device: Option<FlashTarget>,
    /// Answers with one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct FwListArgs {
    /// Answers with one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct FwRollbackArgs {
    /// The device
    #[arg(long, value_name = "DEVICE", value_enum, default_value = "qemu")]
    pub(crate) device: FlashTarget,
    /// Answers with one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// A device that has flashed images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FlashTarget {
    /// The emulated machine
    #[value(alias = "virt")]
    Qemu,
    /// An Ascend 910B or 910C, through CANN
    A2a3,
}
