//! Models as calls of the program use them: read, loaded onto the current device, run.
//!
//! Why it is so: `docs/decisions/cann-behaviour.md`.

use std::sync::Arc;

use pto_host::workloads::program::Program;

use super::lane::{Command, Engine, Work};
use super::model::{self, Extent, LoadedModel};
use super::stream::Stream;
use super::{current, memory_map};
use crate::common::codes;
use crate::common::races;
use crate::common::refusal::{Answer, Refusal, require};

/// The program in a file.
pub(crate) fn from_file(path: &str) -> Answer<Program> {
    let bytes = std::fs::read(path).map_err(|error| {
        Refusal::new(codes::FILE_OPEN, format!("{path} cannot be read: {error}"))
    })?;
    model::read(&bytes, path)
}

/// The program in memory of the host.
pub(crate) fn from_memory(bytes: &[u8]) -> Answer<Program> {
    model::read(bytes, "the model")
}

/// Loads a program onto the device of the current context.
pub(crate) fn load(program: Program) -> Answer<u32> {
    model::load(&current::context()?.open, program)
}

/// Runs a model on buffers, and waits for the end.
pub(crate) fn execute(model: &LoadedModel, inputs: &[Extent], outputs: &[Extent]) -> Answer {
    current::context()?;
    current::check_uncaptured()?;
    let addresses = model.addresses(inputs, outputs)?;
    races::host_uses(&model.touches(&addresses));
    model.run(&addresses)
}

/// A run of a model as a command of a stream.
pub(crate) fn submit(
    stream: &Stream,
    model: Arc<LoadedModel>,
    inputs: &[Extent],
    outputs: &[Extent],
) -> Answer {
    let addresses = model.addresses(inputs, outputs)?;
    let (own, here) = (model.open.index, stream.context.open.index);
    require(own == here, || {
        let text = format!("the model is on device {own}, and the stream on device {here}");
        Refusal::new(codes::OTHER_CONTEXT, text)
    })?;
    let touches = model.touches(&addresses);
    let named = Arc::clone(&model);
    let work: Work = Arc::new(move |lane| model.submit(lane, &addresses));
    let command = Command::new(Engine::Cores, "model", work).labelled(|| named.label());
    stream.submit(command.using(touches))
}

/// Whether the caller has as much memory as the model needs. The library keeps the model in memory of its own.
///
/// A room is an address and its bytes; no address is one of the library's own.
pub(crate) fn check_room(program: &Program, rooms: [(usize, usize); 2]) -> Answer {
    let names = ["workSize", "weightSize"];
    for (((address, bytes), wanted), name) in
        rooms.into_iter().zip(model::sizes(program)).zip(names)
    {
        let is_own = address == 0 && bytes == 0;
        require(is_own || bytes >= wanted, || {
            let text = format!(
                "{name} is {bytes}, and the model needs {wanted} bytes; ask aclmdlQuerySize"
            );
            Refusal::new(codes::MODEL_SIZE, text)
        })?;
        let is_device = is_own || memory_map::device_of(address, bytes)?.is_some();
        require(is_device, || {
            Refusal::value(format!(
                "the memory of {name} is not memory of a device; allocate it with aclrtMalloc"
            ))
        })?;
    }
    Ok(())
}
