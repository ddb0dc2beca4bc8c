//! The graph compiler, as `libfmk_onnx_parser.so` and `libacl_op_compiler.so` call it: functions of C, below those of C++ with the names of `ge::`.

use crate::common::argument::{Address, In, Out, Text, copied_for_c};
use crate::common::entry::api;
use crate::common::refusal::Answer;
use crate::common::table::Handle;
use crate::device::model_graph::{self, Options};

api! {
    fn ptoAclGraphBegin(names: In<usize>, values: In<usize>, count: usize) {
        model_graph::begin(&options(&names, &values, count)?)
    }

    fn ptoAclGraphParse(model: In<u8>, length: usize, names: In<usize>, values: In<usize>, count: usize, graph: Out<Handle>) {
        let output = graph.required("graph")?;
        let options = options(&names, &values, count)?;
        output.set(reported(model_graph::parse(&model.list("the model", length)?, &options))?);
        Ok(())
    }

    fn ptoAclGraphBuild(graph: Handle, names: In<usize>, values: In<usize>, count: usize, program: Out<Address>, length: Out<u64>) {
        let outputs = (program.required("program")?, length.required("length")?);
        let options = options(&names, &values, count)?;
        let bytes = reported(model_graph::build(graph, &options))?;
        outputs.1.set(bytes.len() as u64);
        outputs.0.set(copied_for_c(&bytes)?);
        Ok(())
    }

    fn ptoAclGraphSave(path: Text, model: In<u8>, length: usize) {
        reported(model_graph::save(&path.read("outputFile")?, &model.list("the model", length)?))
    }

    fn ptoAclGraphDestroy(graph: Handle) {
        model_graph::destroy(graph)
    }
}

/// Says on standard error why a step failed: programs show a number, and users look for the reason.
fn reported<T>(outcome: Answer<T>) -> Answer<T> {
    outcome.inspect_err(|refusal| eprintln!("pto cann: [{}] {}", refusal.code, refusal.text))
}

/// Names and values, as C has them.
fn options(names: &In<usize>, values: &In<usize>, count: usize) -> Answer<Options> {
    let text = |address: usize| In::<std::ffi::c_char>::at(address).text("an option");
    let names = names.list("names", count)?.into_iter().map(text);
    let values = values.list("values", count)?.into_iter().map(text);
    names.zip(values).map(|(name, value)| Ok((name?, value?))).collect()
}
