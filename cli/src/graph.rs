//! `pto graph`: the graph of an example, without a run.

use std::io::Write;

use pto_abi::RuntimeVariant;
use pto_examples::Builders;
use pto_examples::host::{self, Inputs, Params};
use pto_host::{Device, DeviceOptions};
use pto_timeline::graph::{Graph, picture};

use crate::args::GraphArgs;
use crate::errors::{Exit, Failure};
use crate::output::{Form, answer};
use crate::timeline;

/// Shows a graph.
pub(crate) fn graph(args: &GraphArgs) -> Result<Exit, Failure> {
    if let Some(path) = &args.output {
        timeline::check_folder(path)?;
    }
    let graph = built(args)?;
    let text = match (args.dot, args.json) {
        (true, _) => graph.dot(),
        (_, true) => format!("{:#}\n", graph.json()),
        _ => picture(&graph).map_err(Failure::usage)?,
    };
    match &args.output {
        Some(path) => timeline::write(path, |to| to.write_all(text.as_bytes()))?,
        None => answer(Form::Text, || text, || serde_json::Value::Null)?,
    }
    Ok(Exit::Pass)
}

/// The graph, built on the host as `host_build_graph` does.
fn built(args: &GraphArgs) -> Result<Graph, Failure> {
    let example = host::find(&args.example)?;
    if !example.program().variants().contains(&RuntimeVariant::HOST_BUILD_GRAPH) {
        return Err(Failure::usage(format!(
            "'{}' submits tasks with tensors, whose edges are derived while it runs: there is no graph before that; \
             record a run instead: pto run {} --trace FILE",
            example.name(),
            example.name()
        )));
    }
    let mut params = Params::defaults(example.params());
    for (name, value) in &args.params {
        params.set(name, value)?;
    }
    let inputs = Inputs::default();
    host::resolve(example, &mut params, &inputs)?;
    let mut device = Device::open_sim(DeviceOptions::default(), Builders)?;
    device.register_library()?;
    let prepared = example.prepare(&params, &inputs, &device)?;
    let image = prepared.build_on_host(&device)?;
    let kernels =
        device.describe().kernels.into_iter().map(|kernel| (kernel.func_id.0, kernel.name));
    let graph = image.graph(example.name(), &kernels.collect());
    graph.ok_or_else(|| Failure::internal("the graph image contradicts itself: report this"))
}
