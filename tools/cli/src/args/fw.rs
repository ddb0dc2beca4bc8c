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
    #[command(after_help = help::FW_INSPECT)]
    /// Shows what an image is and holds, and whether this host can use it (exit code 1: it cannot)
    Inspect(FwInspectArgs),
    #[command(after_help = help::FW_FLASH)]
    /// Verifies images and makes them the ones that a device runs from now on
    Flash(FwFlashArgs),
    #[command(after_help = help::FW_LIST)]
    /// Lists what each device has, and had
    List(FwListArgs),
    #[command(after_help = help::FW_ROLLBACK)]
    /// Makes a device run what it had before the last flash
    Rollback(FwRollbackArgs),
}

impl FwCommand {
    /// Whether it answers with one JSON object.
    pub(crate) const fn json(&self) -> bool {
        match self {
            Self::Build(args) => args.json,
            Self::Inspect(args) => args.json,
            Self::Flash(args) => args.json,
            Self::List(args) => args.json,
            Self::Rollback(args) => args.json,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct FwBuildArgs {
    /// For which platform
    #[arg(long, value_name = "PLATFORM", value_enum, default_value = "virt")]
    pub(crate) image: FwPlatform,
    /// The folder of a firmware crate of your own
    /// [default: the images of the sources that this program was built from]
    #[arg(long = "crate", value_name = "PATH")]
    pub(crate) crate_folder: Option<PathBuf>,
    /// A builder in C (pto_firmware.h) or C++ (class Runtime), which the firmware holds instead of the examples'; may be
    /// given several times. NAME and FUNCTION are build_graph_aicpu where they are left out
    #[arg(
        long = "builder",
        value_name = "[NAME=]FILE[:FUNCTION]",
        conflicts_with = "crate_folder"
    )]
    pub(crate) builders: Vec<String>,
    /// Features of the crate, separated by commas (`without-streaming`: a virt image with two runtimes, 25 KB smaller)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) features: Vec<String>,
    /// Builds a firmware for virt that records runs (`pto run --trace`): half as large again
    #[arg(long)]
    pub(crate) tracing: bool,
    /// Builds the image as it is shipped: small, no panic reachable. Without it, overflows and failed
    /// assertions end in a fault that says where
    #[arg(long)]
    pub(crate) release: bool,
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
    Virt,
    /// The CANN driver stack of an Ascend device
    Cann,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompilerSource {
    /// rustup within 60 seconds; where that fails, Debian's packages, in a cache
    Any,
    /// rustup
    Rustup,
    /// Debian's packages, in a cache: $XDG_CACHE_HOME/pto or ~/.cache/pto
    Debian,
}

#[derive(Args, Debug)]
pub(crate) struct FwInspectArgs {
    /// The image
    pub(crate) image: PathBuf,
    /// Answers with one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct FwFlashArgs {
    /// The image; for virt a firmware, a blob of kernels, or both
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
    #[arg(long, value_name = "DEVICE", value_enum, default_value = "virt")]
    pub(crate) device: FlashTarget,
    /// Answers with one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// A device that has flashed images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FlashTarget {
    /// The emulated machine
    Virt,
    /// An Ascend 910B or 910C, through CANN
    A2a3,
}
