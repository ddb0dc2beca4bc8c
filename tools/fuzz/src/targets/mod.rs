//! The list of fuzz targets, each with its function over any bytes.

mod c_calls;
pub mod calls;
mod cann_calls;
mod files;
mod graph_image;
mod model;
mod plan;
mod program_file;
mod stream_calls;
mod tile_kernel;
mod timing;
mod workload_file;

/// Something that takes bytes from outside.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, and that of its folder in the corpus.
    pub name: &'static str,
    /// What the bytes are.
    pub about: &'static str,
    /// Takes the bytes; returns whatever they are.
    pub feed: fn(&[u8]),
    /// How many mutations of the corpus the short run feeds; chosen so that each target takes a second or two.
    pub mutations: u32,
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target {
        name: "firmware_image",
        about: "an image as `pto fw inspect` and `flash` read it",
        feed: files::firmware_image,
        mutations: 4_000,
    },
    Target {
        name: "relocatable_object",
        about: "an object file of a kernel, laid out and relocated as for a run",
        feed: files::relocatable_object,
        mutations: 10_000,
    },
    Target {
        name: "graph_file",
        about: "a graph file, read, checked, written and read again",
        feed: files::graph_file,
        mutations: 2_000,
    },
    Target {
        name: "trace",
        about: "a trace of a run, with everything that is made of it",
        feed: files::trace,
        mutations: 1_000,
    },
    Target { name: "npy", about: "a NumPy file", feed: files::npy, mutations: 4_000 },
    Target {
        name: "profile",
        about: "a profile of a device",
        feed: timing::profile,
        mutations: 2_000,
    },
    Target {
        name: "timing",
        about: "costs of kernels and injected faults, as options write them",
        feed: timing::options,
        mutations: 4_000,
    },
    Target {
        name: "graph_image",
        about: "a graph image, which the firmware accepts or refuses, and runs",
        feed: graph_image::run,
        mutations: 1_000,
    },
    Target {
        name: "plan",
        about: "a plan of a workload, which the firmware accepts or refuses, and expands",
        feed: plan::expand,
        mutations: 600,
    },
    Target {
        name: "tile_kernel",
        about: "the bytes of a tile kernel, which the tile machine accepts or refuses, and runs",
        feed: tile_kernel::run,
        mutations: 20_000,
    },
    Target {
        name: "workload_file",
        about: "the text of a workload, read, printed, read again, checked and compiled",
        feed: workload_file::read,
        mutations: 2_000,
    },
    Target {
        name: "program_file",
        about: "a program file, sealed and not, read, written and read again",
        feed: program_file::read,
        mutations: 3_000,
    },
    Target {
        name: "model",
        about: "a model in a file of ONNX, read, and translated to operators",
        feed: model::build,
        mutations: 3_000,
    },
    Target {
        name: "cann_calls",
        about: "calls of the CANN interface as `pto compat cann replay` reads them, and faults as `pto compat cann run` does",
        feed: cann_calls::read,
        mutations: 400,
    },
    Target {
        name: "c_calls",
        about: "calls of the C interface",
        feed: c_calls::play,
        mutations: 300,
    },
    Target {
        name: "stream_calls",
        about: "calls that a builder program in C makes",
        feed: stream_calls::play,
        mutations: 300,
    },
];

/// The target of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
