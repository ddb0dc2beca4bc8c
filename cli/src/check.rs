//! `pto check`: records what an example submits, or reads it from a file, and says whether it can run.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use pto_abi::arena::Capacities;
use pto_abi::graph::BuilderSet;
use pto_abi::stream::StreamCapacities;
use pto_abi::symbol::symbol;
use pto_abi::{BuildError, BuildMode, Fault, GmAddr, RuntimeVariant};
use pto_check::file::{self, ReadError};
use pto_check::{
    Cores, Finding, Memory, NotRecorded, Options, Program, Recorder, Recording, Report, Rings,
    check as check_program, record,
};
use pto_examples::Builders;
use pto_examples::host::{self, Example, Prepared};
use pto_host::{Device, DeviceOptions, HostGraph, RunOptions};
use serde_json::{Value, json};

use crate::args::CheckArgs;
use crate::errors::{Exit, Failure};
use crate::output::{Form, answer};
use crate::text::{filled, grouped, table};
use crate::{run, timeline};

/// Findings that are told to people; all of them are in the JSON.
const TOLD: usize = 20;

/// Checks a program.
pub(crate) fn check(args: &CheckArgs) -> Result<Exit, Failure> {
    check_target(args).map_err(|failure| match args.json {
        true => failure.also_as_json(),
        false => failure,
    })
}

fn check_target(args: &CheckArgs) -> Result<Exit, Failure> {
    if let Some(path) = &args.save {
        timeline::check_folder(path)?;
    }
    let (program, how) = program(args)?;
    let rings = rings(args, &program)?;
    let report = check_program(&program, &Options { rings, cores: cores(args) });
    if let Some(path) = &args.save {
        timeline::write(path, |to| file::write(&program, to))?;
    }
    let exit = if report.is_clean() { Exit::Pass } else { Exit::Wrong };
    answer(Form::from(args.json), || text(&report, how, args), || as_json(&report, how, exit))?;
    Ok(exit)
}

/// How a program came to be known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Read,
    WithoutRun,
    WhileItRan,
}

impl How {
    const fn text(self) -> &'static str {
        match self {
            Self::Read => "read from the file",
            Self::WithoutRun => "recorded without running it",
            Self::WhileItRan => "recorded while it ran, for it waits for values of its tasks",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Read => "file",
            Self::WithoutRun => "built",
            Self::WhileItRan => "run",
        }
    }
}

const fn cores(args: &CheckArgs) -> Cores {
    Cores { aic: args.aic, aiv: args.aiv }
}

/// The program: of the example of that name, or in the file.
fn program(args: &CheckArgs) -> Result<(Program, How), Failure> {
    let example = match host::find(&args.target) {
        Ok(example) => example,
        Err(unknown) => {
            let path = Path::new(&args.target);
            if !path.exists() && path.extension().is_none() {
                return Err(Failure::from(unknown).and("There is no file of that name either."));
            }
            return Ok((read(path, args)?, How::Read));
        }
    };
    let variant = run::variant_of(example, args.runtime)?;
    let (params, inputs) = run::request(example, &args.params, &args.inputs)?;
    let recording = Recording::new(Builders, example.name(), variant);
    let options = DeviceOptions { aic: args.aic, aiv: args.aiv, ..DeviceOptions::default() };
    let mut device = Device::open_sim(options, recording.clone())?;
    device.register_library()?;
    let mut prepared = example.prepare(&params, &inputs, &device)?;
    if variant != RuntimeVariant::TENSORMAP_AND_RINGBUFFER {
        return Ok((built(example, variant, &prepared, &device)?, How::WithoutRun));
    }
    let most = usize::try_from(prepared.size().tasks).unwrap_or(usize::MAX).min(1 << 16);
    let set = (&Builders, prepared.builder());
    match record(set, prepared.orch_args(), most, (cores(args), &OnDevice(&device))) {
        Ok(program) => Ok((program, How::WithoutRun)),
        Err(NotRecorded::DependsOnData { .. }) => {
            // What it has set meanwhile is set again.
            prepared.reset()?;
            let work = prepared.work(variant);
            let run = device.run(work, &RunOptions::default());
            run.map_err(|error| run::with_meaning(example, error))?;
            Ok((recording.take(), How::WhileItRan))
        }
        Err(NotRecorded::GaveUp { error, .. }) => Err(gave_up(example, error)),
    }
}

/// A program of tasks and edges, as the host builds it.
fn built(
    example: &dyn Example,
    variant: RuntimeVariant,
    prepared: &Prepared,
    device: &Device,
) -> Result<Program, Failure> {
    let mut program = Program::new(example.name(), variant);
    let mut graph = HostGraph::new(device, prepared.orch_args());
    let built = Builders
        .build(symbol(prepared.builder()), &mut Recorder::new(&mut graph, &mut program))
        .unwrap_or(Err(Fault::BUILD_NO_BUILDER.into()));
    built.map_err(|error| gave_up(example, error))?;
    Ok(program)
}

fn gave_up(example: &dyn Example, error: BuildError) -> Failure {
    let (fault, what) = match error {
        BuildError::Fault(fault) => (fault, "while it was recorded".to_owned()),
        BuildError::Failed(code) => (Fault::BUILD_FAILED, format!("its own code is {code}")),
    };
    let meaning = match error {
        BuildError::Failed(code) => example.failure(code),
        BuildError::Fault(_) => None,
    };
    let failure = Failure::from(pto_host::Error::Build { fault, what });
    match meaning {
        Some(meaning) => failure.and(format!("{}: {meaning}", example.name())),
        None => failure,
    }
}

/// What a builder reads of a device.
struct OnDevice<'d>(&'d Device);

impl Memory for OnDevice<'_> {
    fn read(&self, address: GmAddr, bytes: u64) -> Option<u64> {
        let mut word = [0; 8];
        let part = word.get_mut(..usize::try_from(bytes).ok()?)?;
        address.0.is_multiple_of(bytes).then_some(())?;
        self.0.copy_from_device(address, part).ok()?;
        Some(u64::from_le_bytes(word))
    }

    fn write(&self, address: GmAddr, bytes: u64, value: u64) -> Option<()> {
        let word = value.to_le_bytes();
        let part = word.get(..usize::try_from(bytes).ok()?)?;
        address.0.is_multiple_of(bytes).then_some(())?;
        self.0.copy_to_device(address, part).ok()
    }
}

fn read(path: &Path, args: &CheckArgs) -> Result<Program, Failure> {
    if !args.params.is_empty() || !args.inputs.is_empty() {
        return Err(Failure::usage("--param and --input are for examples; a file is as it is"));
    }
    let shown = path.display();
    let opened =
        File::open(path).map_err(|error| Failure::internal(format!("'{shown}': {error}")))?;
    let program = file::read(BufReader::new(opened)).map_err(|error| match error {
        ReadError::Io(error) => Failure::internal(format!("'{shown}': {error}")),
        error @ ReadError::Line { .. } => Failure::usage(format!("'{shown}', {error}")),
    })?;
    match args.runtime {
        Some(variant) if variant != program.variant => Err(Failure::usage(format!(
            "'{shown}' holds a program of {}, not of {variant}; leave --runtime out",
            program.variant
        ))),
        _ => Ok(program),
    }
}

/// The rings of a run with these options: those that `pto run` would have.
fn rings(args: &CheckArgs, program: &Program) -> Result<Rings, Failure> {
    let window = match args.window {
        Some(window) => window,
        None if args.build_mode == BuildMode::SEQUENTIAL => {
            u32::try_from(program.tasks.len()).unwrap_or(u32::MAX)
        }
        None => StreamCapacities::STANDARD.window,
    };
    let none = Capacities { tasks: window, arg_words: 0, edges: 0, ..Capacities::default() };
    let mut capacities = none.streamed_whole();
    let stream = &mut capacities.stream;
    stream.window = args.window.unwrap_or(stream.window);
    stream.heap_bytes = args.heap_bytes.unwrap_or(stream.heap_bytes);
    stream.heap_rings = args.heap_rings.unwrap_or(stream.heap_rings);
    stream.map_entries = args.map_entries.unwrap_or(stream.map_entries);
    let rings = Rings::of(&capacities, args.build_mode)
        .ok_or_else(|| Failure::usage("the heaps have more than 16 EiB together"))?;
    let rings = Rings {
        arg_words: args.arg_words.unwrap_or(rings.arg_words),
        edge_chunks: args.edge_chunks.unwrap_or(rings.edge_chunks),
        ..rings
    };
    match rings.defect() {
        Some((fault, found)) => {
            let remedy = fault.entry().map_or("", |entry| entry.remedy);
            Err(Failure::usage(format!("{fault} Found {found}. {remedy}")))
        }
        None => Ok(rings),
    }
}

/// For people.
fn text(report: &Report, how: How, args: &CheckArgs) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut row = |name: &str, value: String| rows.push(vec![name.to_owned(), value]);
    let count = |count: usize| grouped(count as u64);
    row("program", how.text().to_owned());
    row("runtime", report.variant.to_owned());
    row("tasks", count(report.tasks));
    let (stated, derived) = (count(report.stated_edges), count(report.derived_edges));
    row("edges", format!("{stated} stated, {derived} derived"));
    let [accesses, parts, tensors] = [report.accesses, report.parts, report.tensors].map(count);
    row("accesses", format!("{accesses} to {parts} parts of {tensors} tensors"));
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
    for (severity, finding) in all.iter().take(TOLD) {
        text += &format!("{severity}: {}: {finding}\n", finding.kind.name());
    }
    if let Some(more) = all.len().checked_sub(TOLD).filter(|more| *more > 0) {
        text += &format!("and {} more; --json shows them\n", count(more));
    }
    text
}

fn title<'r>(report: &'r Report, args: &'r CheckArgs) -> &'r str {
    if report.name.is_empty() { &args.target } else { &report.name }
}

fn verdict(report: &Report) -> String {
    let many = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        _ => format!("{} {what}s", grouped(count as u64)),
    };
    let warnings = many(report.warnings.len(), "warning");
    let more = match report.more_races {
        0 => String::new(),
        more => format!(", and {} more races", grouped(more as u64)),
    };
    match (report.findings.len(), report.warnings.len()) {
        (0, 0) => "CLEAN".to_owned(),
        (0, _) => format!("CLEAN, {warnings}"),
        (errors, 0) => format!("{}{more}", many(errors, "error")),
        (errors, _) => format!("{}{more}, {warnings}", many(errors, "error")),
    }
}

/// For programs.
fn as_json(report: &Report, how: How, exit: Exit) -> Value {
    let mut value = serde_json::to_value(report).unwrap_or(Value::Null);
    if let Some(object) = value.as_object_mut() {
        object.insert("source".to_owned(), json!(how.name()));
        object.insert("exit_code".to_owned(), json!(exit as u8));
    }
    value
}
