//! `pto check`: records what an example submits, or reads it from a file, and says whether it can run.

use std::path::Path;

use pto_abi::BuildMode;
use pto_abi::arena::{ArenaLayout, Capacities};
use pto_abi::stream::StreamCapacities;
use pto_abi::task::edges_for;
use pto_check::file;
use pto_check::program::Location;
use pto_check::{Cores, Finding, Kind, Options, Program, Report, Rings, check as check_program};
use pto_host::{Device, DeviceOptions};
use serde_json::{Value, json};

use crate::args::CheckArgs;
use crate::compiled_folder;
use crate::errors::{Exit, Failure};
use crate::form::Form;
use crate::kernels::KernelSet;
use crate::model;
use crate::output::answer;
use crate::output_file;
use crate::program::{How, ProgramRequest};
use crate::tensor_folder::{self, Heading, Located};
use crate::text::{bytes, counted, filled, grouped, table};

/// Findings that the text shows; the JSON has all of them.
const MAX_SHOWN: usize = 20;

/// Checks a program.
pub(crate) fn check(args: &CheckArgs) -> Result<Exit, Failure> {
    if compiled_folder::is_folder(&args.target) {
        return compiled_folder::check(args);
    }
    if let Some(path) = &args.save {
        output_file::check_form(path, "jsonl")?;
    }
    if let Some(folder) = &args.save_inputs {
        tensor_folder::check("--save-inputs", folder)?;
    }
    if model::is_model(&args.target) {
        return model::check(args);
    }
    model::refuse_shapes(&args.shapes)?;
    let source = ProgramRequest {
        target: &args.target,
        params: &args.params,
        inputs: &args.inputs,
        runtime: args.runtime,
        cores: cores(args),
    };
    let (program, how, warnings) =
        source.program_on(|program, device| match &args.save_inputs {
            Some(folder) => save_inputs(folder, program, device),
            None => Ok(()),
        })?;
    if let (Some(_), How::Read) = (&args.save_inputs, how) {
        return Err(Failure::usage(
            "--save-inputs writes the inputs of an example, and a graph file has none; leave it out",
        ));
    }
    let kernels = KernelSet::with(args.kernels.as_deref())?.signatures();
    if let (Some(_), Some(of_a_plan)) = (&args.save, kernels.of_a_plan(&program)) {
        return Err(Failure::usage(format!("--save: {of_a_plan}")));
    }
    let rings = rings(args, &program)?;
    let kernels = (!args.own_kernels).then_some(kernels);
    let options = Options { rings, cores: cores(args), kernels };
    let mut report = check_program(&program, &options);
    if let (How::Read, Some(kernels), 0) = (how, &options.kernels, report.count(Kind::Kernel)) {
        report.findings.extend(kernels.compare_arguments(&program));
    }
    report.warnings.extend(warnings.into_iter().map(Finding::of_view));
    if let Some(path) = &args.save {
        output_file::write(path, |to| file::write(&program, to))?;
    }
    let exit = if report.is_clean() { Exit::Pass } else { Exit::Wrong };
    answer(Form::from(args.json), exit, || text(&report, how, args), || as_json(&report, how))
}

/// Writes what the tensors of the host's hold.
fn save_inputs(folder: &Path, program: &Program, device: &Device) -> Result<(), Failure> {
    let located = program.tensors.iter().filter_map(|tensor| match tensor.location {
        Location::Host(Some(address)) => Some(Located { tensor, address, origin: "host" }),
        _ => None,
    });
    let heading = Heading { format: "pto-inputs", name: &program.name };
    tensor_folder::write(folder, &heading, &located.collect::<Vec<_>>(), Vec::new(), device)
}

const fn cores(args: &CheckArgs) -> Cores {
    Cores { aic: args.aic, aiv: args.aiv }
}

/// The rings of a run with these options: those that `pto run` would have.
fn rings(args: &CheckArgs, program: &Program) -> Result<Rings, Failure> {
    let window = match args.rings.window {
        Some(window) => window,
        None if args.build_mode == BuildMode::SEQUENTIAL => {
            u32::try_from(program.task_count()).unwrap_or(u32::MAX)
        }
        None => StreamCapacities::STANDARD.window,
    };
    let none = Capacities { tasks: window, arg_words: 0, edges: 0, ..Capacities::default() };
    let mut capacities = none.streamed_whole();
    let stream = &mut capacities.stream;
    stream.window = args.rings.window.unwrap_or(stream.window);
    stream.heap_bytes = args.rings.heap_bytes.unwrap_or(stream.heap_bytes);
    stream.heap_rings = args.rings.heap_rings.unwrap_or(stream.heap_rings);
    stream.map_entries = args.rings.map_entries.unwrap_or(stream.map_entries);
    let rings = Rings::of(&capacities, args.build_mode)
        .ok_or_else(|| Failure::usage("the heaps have more than 16 EiB together"))?;
    let rings = Rings {
        arg_words: args.rings.arg_words.unwrap_or(rings.arg_words),
        edge_chunks: args.rings.edge_chunks.unwrap_or(rings.edge_chunks),
        ..rings
    };
    match rings.defect() {
        Some((fault, found)) => {
            let remedy = fault.entry().map_or("", |entry| entry.remedy);
            Err(Failure::usage(format!("{fault} Found {found}. {remedy}")))
        }
        None => check_room(&rings, &capacities).map(|()| rings),
    }
}

/// Refuses rings for which the device of `pto run` has no room: the check makes them, all but the heaps.
fn check_room(rings: &Rings, capacities: &Capacities) -> Result<(), Failure> {
    let whole = Capacities {
        tasks: rings.window,
        arg_words: rings.arg_words.saturating_sub(rings.window.into()),
        edges: edges_for(rings.edge_chunks),
        stream: StreamCapacities { heap_bytes: 0, ..capacities.stream },
        ..*capacities
    };
    let most = DeviceOptions::default().gm_bytes;
    let needs = ArenaLayout::plan(&whole).map_err(|error| Failure::usage(error.to_string()))?;
    if needs.total_bytes <= most {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "the rings need {} of device memory without their heaps, and the device has {}; make --window, --arg-words, --edge-chunks or --map-entries smaller",
        bytes(needs.total_bytes),
        bytes(most)
    )))
}

/// For people.
fn text(report: &Report, how: How, args: &CheckArgs) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut row = |name: &str, value: String| rows.push(vec![name.to_owned(), value]);
    let count = |count: usize| grouped(count as u64);
    row("program", how.text().to_owned());
    row("runtime", report.variant.to_owned());
    row(
        "tasks",
        format!("{}, of {}", count(report.tasks), counted(report.kernels as u64, "kernel")),
    );
    let (stated, derived) = (count(report.stated_edges), count(report.derived_edges));
    row("edges", format!("{stated} stated, {derived} derived"));
    let accesses = count(report.accesses);
    let [parts, tensors] = [(report.parts, "part"), (report.tensors, "tensor")]
        .map(|(count, what)| counted(count as u64, what));
    row("accesses", format!("{accesses} to {parts} of {tensors}"));
    let rings: Vec<String> = report
        .rings
        .iter()
        .filter(|ring| ring.needs > 0)
        .map(|ring| {
            let (given, needs) = (grouped(ring.given), grouped(ring.needs));
            format!("{} needs {needs} of {given} {}", ring.name, ring.unit)
        })
        .collect();
    for (index, line) in filled(&rings).into_iter().enumerate() {
        row(if index == 0 { "rings" } else { "" }, line);
    }
    for (index, note) in report.notes.iter().enumerate() {
        row(if index == 0 { "note" } else { "" }, note.clone());
    }
    if let Some(path) = &args.save {
        row("written", format!("what it submits, to {}", path.display()));
    }
    row("check", verdict(report));
    let mut text = format!("{}\n\n{}", title(report, args), table(&rows, &[]));
    let all = report.findings.iter().map(|finding| ("error", finding));
    let all: Vec<(&str, &Finding)> =
        all.chain(report.warnings.iter().map(|finding| ("warning", finding))).collect();
    if !all.is_empty() {
        text.push('\n');
    }
    for (severity, finding) in all.iter().take(MAX_SHOWN) {
        text += &format!("{severity}: {}: {finding}\n", finding.kind.name());
    }
    if let Some(more) = all.len().checked_sub(MAX_SHOWN).filter(|more| *more > 0) {
        text += &format!("and {} more; --json shows them\n", count(more));
    }
    text
}

fn title<'r>(report: &'r Report, args: &'r CheckArgs) -> &'r str {
    if report.name.is_empty() { &args.target } else { &report.name }
}

fn verdict(report: &Report) -> String {
    let many = |count: usize, what: &str| counted(count as u64, what);
    let warnings = many(report.warnings.len(), "warning");
    let more = match report.more_races {
        0 => String::new(),
        more => format!(
            ", and {} more {}",
            grouped(more as u64),
            if more == 1 { "race" } else { "races" }
        ),
    };
    match (report.findings.len(), report.warnings.len()) {
        (0, 0) => "CLEAN".to_owned(),
        (0, _) => format!("CLEAN, {warnings}"),
        (errors, 0) => format!("{}{more}", many(errors, "error")),
        (errors, _) => format!("{}{more}, {warnings}", many(errors, "error")),
    }
}

/// For programs.
fn as_json(report: &Report, how: How) -> Value {
    let mut value = serde_json::to_value(report).unwrap_or(Value::Null);
    if let Some(object) = value.as_object_mut() {
        object.insert("source".to_owned(), json!(how.name()));
    }
    value
}
