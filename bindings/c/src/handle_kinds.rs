//! The objects that the handles of each type name.

use std::sync::{Arc, Mutex};

use pto_host::RunControl;
use pto_host::session::{Event, Notify, Stream};
use pto_host::stitch::{LoadedProgram, ProgramStream, Stitcher};
use pto_host::workloads::program::Program;
use pto_native::stitch::{SharedTensor, TensorRecording};
use pto_native::{GraphDraft, SharedDevice};

use crate::device::OpaqueDevice;
use crate::graph::OpaqueGraph;
use crate::handle::Opaque;
use crate::kernel_stream::{OpaqueEvent, OpaqueKernelStream, OpaqueNotify, OpaqueRecording};
use crate::options::OpaqueControl;
use crate::program::{OpaqueLoadedProgram, OpaqueProgram};
use crate::program_stream::OpaqueProgramStream;
use crate::session::OpaqueSession;
use crate::tensor::OpaqueTensor;

macro_rules! opaque {
    ($($handle:ty => $object:ty, $kind:literal, is_data: $is_data:literal;)+) => {$(
        impl Opaque for $handle {
            type Object = $object;
            const KIND: &'static str = $kind;
            const IS_DATA: bool = $is_data;
        }
    )+};
}

opaque! {
    OpaqueDevice => Arc<SharedDevice>, "device", is_data: false;
    OpaqueGraph => Arc<Mutex<GraphDraft>>, "graph", is_data: true;
    OpaqueControl => RunControl, "run control", is_data: true;
    OpaqueSession => Stitcher, "session", is_data: false;
    OpaqueProgramStream => Arc<ProgramStream>, "program stream", is_data: false;
    OpaqueKernelStream => Arc<Stream>, "kernel stream", is_data: false;
    OpaqueEvent => Event, "event", is_data: false;
    OpaqueNotify => Notify, "notify", is_data: false;
    OpaqueRecording => Arc<TensorRecording>, "recording", is_data: false;
    OpaqueProgram => Arc<Mutex<Program>>, "program", is_data: true;
    OpaqueLoadedProgram => LoadedProgram, "loaded program", is_data: false;
    OpaqueTensor => Arc<SharedTensor>, "tensor", is_data: false;
}
