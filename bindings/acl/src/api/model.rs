//! Models: program files (`.ptop`) that are loaded, described and run.

use super::data_set::extents;
use crate::common::argument::{Address, In, Out, Text};
use crate::common::entry::api;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::Handle;
use crate::device::model::{self, Program};
use crate::device::model_description::output_types;
use crate::device::{current, data_set, models};

api! {
    fn aclmdlLoadFromFile(path: Text, model: Out<u32>) {
        let output = model.required("model")?;
        output.set(models::load(from_file(&path)?)?);
        Ok(())
    }

    fn aclmdlLoadFromMem(bytes: In<u8>, count: usize, model: Out<u32>) {
        let output = model.required("model")?;
        output.set(models::load(from_memory(&bytes, count)?)?);
        Ok(())
    }

    fn aclmdlLoadFromFileWithMem(path: Text, model: Out<u32>, work: Address, work_bytes: usize, weights: Address, weight_bytes: usize) {
        let output = model.required("model")?;
        let program = from_file(&path)?;
        check_room(&program, [(work, work_bytes), (weights, weight_bytes)])?;
        output.set(models::load(program)?);
        Ok(())
    }

    fn aclmdlLoadFromMemWithMem(bytes: In<u8>, count: usize, model: Out<u32>, work: Address, work_bytes: usize, weights: Address,
        weight_bytes: usize) {
        let output = model.required("model")?;
        let program = from_memory(&bytes, count)?;
        check_room(&program, [(work, work_bytes), (weights, weight_bytes)])?;
        output.set(models::load(program)?);
        Ok(())
    }

    fn aclmdlQuerySize(path: Text, work: Out<usize>, weights: Out<usize>) {
        let outputs = [work.required("workSize")?, weights.required("weightSize")?];
        let sizes = model::sizes(&from_file(&path)?);
        outputs.into_iter().zip(sizes).for_each(|(output, bytes)| output.set(bytes));
        Ok(())
    }

    fn aclmdlQuerySizeFromMem(bytes: In<u8>, count: usize, work: Out<usize>, weights: Out<usize>) {
        let outputs = [work.required("workSize")?, weights.required("weightSize")?];
        let sizes = model::sizes(&from_memory(&bytes, count)?);
        outputs.into_iter().zip(sizes).for_each(|(output, bytes)| output.set(bytes));
        Ok(())
    }

    fn aclmdlUnload(model: u32) {
        model::unload(model)
    }

    fn aclmdlExecute(model: u32, inputs: Handle, outputs: Handle) {
        let model = model::get(model)?;
        models::execute(&model, &extents("input", inputs)?, &extents("output", outputs)?)?;
        data_set::describe(outputs, output_types(model.program())?)
    }

    fn aclmdlExecuteAsync(model: u32, inputs: Handle, outputs: Handle, stream: Handle) {
        let model = model::get(model)?;
        let stream = current::submitting(stream)?;
        let (ins, outs) = (extents("input", inputs)?, extents("output", outputs)?);
        let types = output_types(model.program())?;
        models::submit(&stream, model, &ins, &outs)?;
        data_set::describe(outputs, types)
    }

    fn ptoAclModelRuns(runs: Out<u64>) {
        runs.put("runs", model::runs())
    }

    fn ptoAclModelBind(model: u32, name: Text, value: f64) {
        model::get(model)?.bind(&name.read("name")?, value)
    }
}

/// The program in a file.
pub(super) fn from_file(path: &Text) -> Answer<Program> {
    models::from_file(&path.read("modelPath")?)
}

/// The program in memory of the host.
pub(super) fn from_memory(bytes: &In<u8>, count: usize) -> Answer<Program> {
    require(count > 0, || Refusal::argument("modelSize is 0; pass a model"))?;
    models::from_memory(&bytes.list("model", count)?)
}

fn check_room(program: &Program, rooms: [(Address, usize); 2]) -> Answer {
    models::check_room(program, rooms.map(|(address, bytes)| (address.number(), bytes)))
}
