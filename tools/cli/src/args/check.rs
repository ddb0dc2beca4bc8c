//! What a user can write after `pto check`.

use std::path::PathBuf;

use clap::Args;
use pto_abi::{BuildMode, RuntimeVariant};

use super::rings::RingArgs;
use super::value::{MAX_CORES, build_mode, pair, runtime, whole};

/// What to check, and against what.
#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// An example, a graph file, a workload or a model; - is standard input
    ///
    /// `pto info examples` shows all examples. Files: a graph (.jsonl, docs/reference/graph-files.md), a workload (.workload,
    /// docs/reference/workloads.md), a model (.onnx, docs/how-to/models.md).
    #[arg(value_name = "EXAMPLE|FILE")]
    pub(crate) target: String,

    /// Sets a parameter; may be given several times
    ///
    /// The shapes of inputs decide the sizes that are not set.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = pair::<String>)]
    pub(crate) params: Vec<(String, String)>,
    /// The extents of an input of a model, as in x=1,3,48,192
    #[arg(long = "shape", value_name = "NAME=EXTENTS")]
    pub(crate) shapes: Vec<String>,
    /// Reads an input; inputs without a file are random
    ///
    /// May be given several times.
    #[arg(long = "input", value_name = "NAME=FILE.npy", value_parser = pair::<PathBuf>)]
    pub(crate) inputs: Vec<(String, PathBuf)>,
    /// Which runtime the program is checked for
    ///
    /// host_build_graph, aicpu_build_graph or tensormap_and_ringbuffer [default: that of `pto run`, or the one that the file names].
    #[arg(long, value_name = "VARIANT", value_parser = runtime)]
    pub(crate) runtime: Option<RuntimeVariant>,
    /// Kernels of your own, which a graph file may use
    ///
    /// A shared object; its kernels are used besides those of the library (docs/how-to/kernels.md).
    #[arg(long, value_name = "OBJECT.so", conflicts_with = "own_kernels")]
    pub(crate) kernels: Option<PathBuf>,
    /// All kernels of the file are your own
    ///
    /// Func ids are not compared with those of the library.
    #[arg(long)]
    pub(crate) own_kernels: bool,
    /// Answers with one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    /// Writes the tasks as a graph file, for `pto run`
    #[arg(long, help_heading = "Files", value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// With --save: writes the tensors, for `--input`
    ///
    /// What the example's tensors hold before a run: NumPy files in a new folder, for `pto run FILE --input`.
    #[arg(long, help_heading = "Files", value_name = "DIR", requires = "save")]
    pub(crate) save_inputs: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) rings: RingArgs,
    /// 1: tasks run while the program submits; 0: afterwards
    ///
    /// 1 is concurrent, 0 is sequential.
    #[arg(long, help_heading = "Rings of tensormap_and_ringbuffer", value_name = "MODE", value_parser = build_mode)]
    #[arg(default_value = "1")]
    pub(crate) build_mode: BuildMode,

    /// Number of cube cores
    #[arg(long, help_heading = "Device", value_name = "N", default_value_t = 24, value_parser = whole(0, MAX_CORES))]
    pub(crate) aic: u32,
    /// Number of vector cores
    #[arg(long, help_heading = "Device", value_name = "N", default_value_t = 48, value_parser = whole(0, MAX_CORES))]
    pub(crate) aiv: u32,
}
