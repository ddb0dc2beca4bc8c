//! `pto graph`: the graph of an example or of a graph file, without a run.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};

use pto_abi::RuntimeVariant;
use pto_check::{Cores, task_graph};
use pto_examples::host::{self, Example};
use pto_host::DeviceOptions;
use pto_host::timeline::Edge;
use pto_host::timeline::graph::{Graph, GraphTask, page, picture};

use crate::args::GraphArgs;
use crate::errors::{Exit, Failure};
use crate::form::Form;
use crate::model;
use crate::output::{answer, say};
use crate::output_file;
use crate::program::{How, ProgramRequest};
use crate::request;

/// Shows a graph.
pub(crate) fn graph(args: &GraphArgs) -> Result<Exit, Failure> {
    let form = form(args)?;
    let output = args.output.as_deref().filter(|path| !output_file::is_standard_output(path));
    if let Some(path) = output {
        output_file::check(path)?;
    }
    let file = match form {
        GraphForm::Picture => Some(("picture", "graph.svg")),
        GraphForm::Page => Some(("page", "graph.html")),
        GraphForm::Dot | GraphForm::Json => None,
    };
    if let (Some((what, name)), None) = (file, &args.output)
        && std::io::stdout().is_terminal()
    {
        return Err(Failure::usage(format!(
            "the {what} of a graph is a file, and standard output is a terminal; add -o {name}, or --dot or --json for a text (-o - prints the {what})"
        )));
    }
    let is_model = model::is_model(&args.target);
    if !is_model {
        model::refuse_shapes(&args.shapes)?;
    }
    let graph = match host::find(&args.target) {
        _ if is_model => model::graph(args)?,
        Ok(example) if is_built(example, args)? => built(example, args)?,
        _ => submitted(args)?,
    };
    let text = match form {
        GraphForm::Json if output.is_none() => {
            return answer(Form::Json, Exit::Pass, String::new, || graph.json());
        }
        GraphForm::Json => format!("{:#}\n", graph.json()),
        GraphForm::Dot => graph.dot(),
        GraphForm::Page => page(&graph).map_err(Failure::usage)?,
        GraphForm::Picture => picture(&graph).map_err(Failure::usage)?,
    };
    let Some(path) = output else { return say(text) };
    output_file::write(path, |to| to.write_all(text.as_bytes()))?;
    Ok(Exit::Pass)
}

/// The form of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GraphForm {
    Picture,
    Page,
    Dot,
    Json,
}

/// What was asked for: by a flag, or by the name of the file.
fn form(args: &GraphArgs) -> Result<GraphForm, Failure> {
    let flags = [
        (args.svg, GraphForm::Picture),
        (args.html, GraphForm::Page),
        (args.dot, GraphForm::Dot),
        (args.json, GraphForm::Json),
    ];
    let flagged = flags.iter().find(|(is_given, _)| *is_given).map(|(_, form)| *form);
    let known = [
        ("svg", GraphForm::Picture),
        ("html", GraphForm::Page),
        ("dot", GraphForm::Dot),
        ("gv", GraphForm::Dot),
        ("json", GraphForm::Json),
    ];
    let named = args.output.as_deref().map(|path| output_file::form_of(path, &known));
    match (flagged, named.transpose()?.flatten()) {
        (Some(flagged), Some(named)) if flagged != named => Err(Failure::usage(
            "the option asks for one form of the graph, and the name of the file for another; leave the option out, or rename the file",
        )),
        (flagged, named) => Ok(flagged.or(named).unwrap_or(GraphForm::Picture)),
    }
}

/// Whether the host builds the graph of the runtime that is wanted.
fn is_built(example: &dyn Example, args: &GraphArgs) -> Result<bool, Failure> {
    Ok(request::variant_of(example, args.runtime)? == RuntimeVariant::HOST_BUILD_GRAPH)
}

/// The graph, built on the host as `host_build_graph` does.
fn built(example: &dyn Example, args: &GraphArgs) -> Result<Graph, Failure> {
    let (params, inputs) = request::request(example, &args.params, &args.inputs)?;
    let mut device = host::open_sim(DeviceOptions::default())?;
    device.register_library()?;
    let prepared = example.prepare(&params, &inputs, &device)?;
    let image = prepared.build_on_host(&device)?;
    let graph = image.graph(example.name(), &library());
    graph.ok_or_else(|| {
        Failure::internal(
            "the graph image contradicts itself; this is an error of `pto`: report it",
        )
    })
}

/// The names of the library's kernels.
fn library() -> BTreeMap<u16, String> {
    let named = |kernel: &pto_aicore_kernels::LibraryKernel| {
        Some((u16::try_from(kernel.func_id).ok()?, kernel.name.to_owned()))
    };
    pto_aicore_kernels::LIBRARY.iter().filter_map(named).collect()
}

/// The graph of what a program submits, with the edges that the runtime derives.
fn submitted(args: &GraphArgs) -> Result<Graph, Failure> {
    let cores = Cores::default();
    let GraphArgs { target, params, inputs, runtime, .. } = args;
    let source = ProgramRequest { target, params, inputs, runtime: *runtime, cores };
    let (program, how) = source.program()?;
    let shown = task_graph(&program, cores).map_err(|refused| {
        Failure::usage(format!(
            "the runtime refuses a task of '{target}', so that its edges are not known: {refused}; \
             pto check {target} says more"
        ))
    })?;
    // A file's func ids are its own.
    let names = if how == How::Read { BTreeMap::new() } else { library() };
    let named = how == How::Read && !program.name.is_empty();
    let name = if named { program.name.clone() } else { target.clone() };
    let mut graph = Graph { name, ..Graph::default() };
    for index in shown.tasks {
        let task = &program.tasks[index];
        let shape = &task.block_shape;
        let when = shape.when.as_ref().map(|when| program.condition(when));
        let (mix, blocks) = (shape.mix.clone(), shape.blocks);
        let chain: Vec<_> = task.links.iter().map(|link| (link.func, link.times)).collect();
        let of_chain = chain.iter().map(|(func, _)| func);
        for func in std::iter::once(&task.func).chain(&mix).chain(of_chain) {
            let name = names.get(func).cloned().unwrap_or_else(|| format!("func {func}"));
            graph.kernels.insert(*func, name);
        }
        let (start, priority) = (shape.start, shape.priority);
        let plain = GraphTask::plain(task.func, task.kind);
        let name = task.name.clone();
        graph.tasks.push(GraphTask { name, mix, blocks, start, priority, when, chain, ..plain });
    }
    let edge = |(producer, consumer): (u32, u32)| Edge { producer, consumer };
    graph.edges = shown.edges.into_iter().map(edge).collect();
    Ok(graph)
}
