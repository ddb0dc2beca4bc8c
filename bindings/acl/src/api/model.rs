//! Models: program files (`.ptop`) that are loaded, described and run.

use std::sync::Arc;

use pto_host::workloads::program::Program;

use super::data_set::extents;
use crate::common::argument::{Address, In, Out, Text};
use crate::common::codes;
use crate::common::entry::api;
use crate::common::races;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::Handle;
use crate::device::lane::{Command, Engine, Work};
use crate::device::model;
use crate::device::{current, places};

api! {
    fn aclmdlLoadFromFile(path: Text, model: Out<u32>) {
        let place = model.place("model")?;
        place.set(load(from_file(&path)?)?);
        Ok(())
    }

    fn aclmdlLoadFromMem(bytes: In<u8>, count: usize, model: Out<u32>) {
        let place = model.place("model")?;
        place.set(load(from_memory(&bytes, count)?)?);
        Ok(())
    }

    fn aclmdlLoadFromFileWithMem(path: Text, model: Out<u32>, work: Address, work_bytes: usize, weights: Address, weight_bytes: usize) {
        let place = model.place("model")?;
        let program = from_file(&path)?;
        check_room(&program, [(work, work_bytes), (weights, weight_bytes)])?;
        place.set(load(program)?);
        Ok(())
    }

    fn aclmdlLoadFromMemWithMem(bytes: In<u8>, count: usize, model: Out<u32>, work: Address, work_bytes: usize, weights: Address,
        weight_bytes: usize) {
        let place = model.place("model")?;
        let program = from_memory(&bytes, count)?;
        check_room(&program, [(work, work_bytes), (weights, weight_bytes)])?;
        place.set(load(program)?);
        Ok(())
    }

    fn aclmdlQuerySize(path: Text, work: Out<usize>, weights: Out<usize>) {
        let places = [work.place("workSize")?, weights.place("weightSize")?];
        let sizes = model::sizes(&from_file(&path)?);
        places.into_iter().zip(sizes).for_each(|(place, bytes)| place.set(bytes));
        Ok(())
    }

    fn aclmdlQuerySizeFromMem(bytes: In<u8>, count: usize, work: Out<usize>, weights: Out<usize>) {
        let places = [work.place("workSize")?, weights.place("weightSize")?];
        let sizes = model::sizes(&from_memory(&bytes, count)?);
        places.into_iter().zip(sizes).for_each(|(place, bytes)| place.set(bytes));
        Ok(())
    }

    fn aclmdlUnload(model: u32) {
        model::unload(model)
    }

    fn aclmdlExecute(model: u32, inputs: Handle, outputs: Handle) {
        let model = model::get(model)?;
        current::context()?;
        current::check_uncaptured()?;
        let (inputs, outputs) = (extents("input", inputs)?, extents("output", outputs)?);
        let addresses = model.addresses(&inputs, &outputs)?;
        races::host_uses(&model.touches(&addresses));
        model.run(&addresses)
    }

    fn aclmdlExecuteAsync(model: u32, inputs: Handle, outputs: Handle, stream: Handle) {
        let model = model::get(model)?;
        let stream = current::submitting(stream)?;
        let (inputs, outputs) = (extents("input", inputs)?, extents("output", outputs)?);
        let addresses = model.addresses(&inputs, &outputs)?;
        let (own, here) = (model.open.index, stream.context.open.index);
        require(own == here, || {
            let text = format!("the model is on device {own}, and the stream on device {here}");
            Refusal::new(codes::OTHER_CONTEXT, text)
        })?;
        let touches = model.touches(&addresses);
        let work: Work = Arc::new(move |lane| model.submit(lane, &addresses));
        stream.submit(Command::new(Engine::Cores, "model", work).using(touches))
    }

    fn ptoAclModelBind(model: u32, name: Text, value: f64) {
        model::get(model)?.bind(&name.read("name")?, value)
    }
}

/// The program in a file.
pub(super) fn from_file(path: &Text) -> Answer<Program> {
    let path = path.read("modelPath")?;
    let bytes = std::fs::read(&path).map_err(|error| {
        Refusal::new(codes::FILE_OPEN, format!("{path} cannot be read: {error}"))
    })?;
    model::read(&bytes, &path)
}

/// The program in memory of the host.
pub(super) fn from_memory(bytes: &In<u8>, count: usize) -> Answer<Program> {
    require(count > 0, || Refusal::argument("modelSize is 0; pass a model"))?;
    model::read(&bytes.list("model", count)?, "the model")
}

/// Loads a program onto the device of the current context.
fn load(program: Program) -> Answer<u32> {
    model::load(&current::context()?.open, program)
}

/// Whether the caller has as much memory as the model needs. The library keeps the model in memory of its own.
fn check_room(program: &Program, rooms: [(Address, usize); 2]) -> Answer {
    let names = ["workSize", "weightSize"];
    for (((address, bytes), wanted), name) in
        rooms.into_iter().zip(model::sizes(program)).zip(names)
    {
        let is_own = address.number() == 0 && bytes == 0;
        require(is_own || bytes >= wanted, || {
            let text = format!(
                "{name} is {bytes}, and the model needs {wanted} bytes; ask aclmdlQuerySize"
            );
            Refusal::new(codes::MODEL_SIZE, text)
        })?;
        let is_device = is_own || places::device_of(address.number(), bytes)?.is_some();
        require(is_device, || {
            Refusal::value(format!(
                "the memory of {name} is not memory of a device; allocate it with aclrtMalloc"
            ))
        })?;
    }
    Ok(())
}
