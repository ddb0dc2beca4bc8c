//! What a user can write after `pto check`.

use std::path::PathBuf;

use clap::Args;
use pto_abi::{BuildMode, RuntimeVariant};

use super::rings::RingArgs;
use super::value::{MAX_CORES, build_mode, pair, runtime, whole};

/// What to check, and against what.
#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// An example, a workload file (docs/reference/workloads.md), or a graph file (docs/reference/graph-files.md); - is standard input
    #[arg(value_name = "EXAMPLE|FILE")]
    pub(crate) target: String,

    /// Sets a parameter of the example or workload; may be given several times. The shapes of inputs decide the sizes that are not set
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = pair::<String>)]
    pub(crate) params: Vec<(String, String)>,
    /// Of a model (.onnx): the extents of an input, as in x=1,3,48,192
    #[arg(long = "shape", value_name = "NAME=EXTENTS")]
    pub(crate) shapes: Vec<String>,
    /// Reads an input of the example from a NumPy file; may be given several times. Inputs without a file are random
    #[arg(long = "input", value_name = "NAME=FILE.npy", value_parser = pair::<PathBuf>)]
    pub(crate) inputs: Vec<(String, PathBuf)>,
    /// Which runtime the program is checked for: host_build_graph, aicpu_build_graph or tensormap_and_ringbuffer
    /// [default: that of `pto run`, or the one that the file names]
    #[arg(long, value_name = "VARIANT", value_parser = runtime)]
    pub(crate) runtime: Option<RuntimeVariant>,
    /// A shared object with kernels of your own, which the file may use besides those of the library
    #[arg(long, value_name = "OBJECT.so", conflicts_with = "own_kernels")]
    pub(crate) kernels: Option<PathBuf>,
    /// Says that all func ids are those of kernels of your own; they are not compared with the library
    #[arg(long)]
    pub(crate) own_kernels: bool,
    /// Writes the tasks that the example submits to a graph file, which `pto run` takes
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Writes the contents of the example's tensors before a run to a new folder, as NumPy files for `pto run FILE --input`
    #[arg(long, value_name = "DIR", requires = "save")]
    pub(crate) save_inputs: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) rings: RingArgs,
    /// Whether tasks run while the program submits: 1 (concurrent) or 0 (sequential)
    #[arg(long, help_heading = "Rings of tensormap_and_ringbuffer", value_name = "MODE", value_parser = build_mode)]
    #[arg(default_value = "1")]
    pub(crate) build_mode: BuildMode,

    /// Number of cube cores
    #[arg(long, help_heading = "Device", value_name = "N", default_value_t = 24, value_parser = whole(0, MAX_CORES))]
    pub(crate) aic: u32,
    /// Number of vector cores
    #[arg(long, help_heading = "Device", value_name = "N", default_value_t = 48, value_parser = whole(0, MAX_CORES))]
    pub(crate) aiv: u32,

    /// Answers with one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
