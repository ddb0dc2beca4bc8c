//! `pto program run`: runs a program on tensors from files, or drawn, and says what it gave and what it cost.

use std::path::Path;
use std::time::{Duration, Instant};

use pto_examples::host::random::Rng;
use pto_examples::host::{self, Tensor as FileTensor};
use pto_host::stitch::{
    Counters, HostTensor, Inputs, LoadedProgram, ProgramStream, Stitcher, Tensor,
};
use pto_host::timeline::Trace;
use pto_host::workloads::plan::SymbolUse;
use pto_host::workloads::program::{Needs, Program, Role, TensorDescription, TensorLayout};
use pto_host::workloads::tile::DType;
use pto_host::workloads::tile::element::bits_of;
use pto_host::{Device, RunOptions, RunReport, Session, SessionOptions, TraceOptions};

use super::file_tensor::file_tensor;
use super::judge::{self, Judged, Tolerance, judge};
use super::run_report::{Files, RunSummary, answer_run};
use crate::args::{HostingMode, ProgramRunArgs};
use crate::device::Wanted;
use crate::errors::{Exit, Failure};
use crate::kernels::KernelSet;
use crate::request::check_unique;
use crate::text::grouped;
use crate::{npy, output_file, replay, timeline};

/// Runs a program.
pub(super) fn run(args: &ProgramRunArgs, program: Program) -> Result<Exit, Failure> {
    check_names(args, &program)?;
    let expected = read_all(&args.expect)?;
    judge::check(&program, &expected)?;
    let given = read_all(&args.inputs)?;
    if let Some(folder) = &args.save {
        output_file::check_folder("--save", folder)?;
        std::fs::create_dir_all(folder).map_err(|error| {
            Failure::internal(format!("cannot make the folder '{}': {error}", folder.display()))
        })?;
    }
    args.trace.as_deref().map_or(Ok(()), |path| output_file::check_form(path, "json"))?;
    let session = session(args, &program)?;
    let before_run = session.memory().user_bytes();
    let name = program.name().to_owned();
    let ran = run_on(&session, args, program, &given);
    let ran = ran.map_err(|failure| told_of_a_fault(failure, args, &name))?;
    let left_bytes = session.memory().user_bytes().saturating_sub(before_run);
    let judged = expected
        .iter()
        .map(|(name, wanted)| judge(name, ran.output(name)?, wanted, Tolerance::of(args)))
        .collect::<Result<Vec<Judged>, Failure>>()?;
    // The run is reported even if a file cannot be written.
    let mut files = args.save.as_deref().map_or_else(Files::default, |folder| ran.save(folder));
    if let Some(path) = &args.trace {
        let written = ran.timeline(args).and_then(|trace| timeline::write_run(&trace, path));
        files.unwritten.extend(written.err());
    }
    let RunResult { name, outputs, before, after, times, virtual_time, report: _ } = ran;
    let run_report = RunSummary {
        program: name,
        rounds: args.rounds,
        given: given.iter().map(|(name, file)| (name.clone(), file.not_finite().nan)).collect(),
        outputs: outputs.iter().map(|(name, tensor)| (name.clone(), tensor.clone())).collect(),
        judged,
        counters: after.since(&before),
        times,
        virtual_time,
        facts: Vec::new(),
        left_bytes,
        missed_fault: false,
        files,
    };
    answer_run(args.json, &run_report)
}

/// What came of a run.
struct RunResult {
    name: String,
    outputs: Vec<(String, HostTensor)>,
    before: Counters,
    after: Counters,
    times: Vec<Duration>,
    virtual_time: Option<Duration>,
    /// Of the last run.
    report: Option<RunReport>,
}

impl RunResult {
    /// The timeline of the last run, with the counters of all of them.
    fn timeline(&self, args: &ProgramRunArgs) -> Result<Trace, Failure> {
        let trace = self.report.as_ref().and_then(|report| report.trace.as_deref()).cloned();
        let mut trace = trace.ok_or_else(|| {
            Failure::internal("the run has left no timeline; this is an error of the runtime")
        })?;
        let counted = self.after.since(&self.before).all().into_iter();
        let counted = counted.map(|(name, value)| (name.to_owned(), grouped(value)));
        trace = with_facts(trace, args, &self.name);
        trace.run.extend(counted);
        Ok(trace)
    }

    fn output(&self, name: &str) -> Result<&HostTensor, Failure> {
        let found = self.outputs.iter().find(|(known, _)| known == name).map(|(_, tensor)| tensor);
        found.ok_or_else(|| {
            Failure::internal(format!(
                "the run has not given output '{name}'; this is an error of the runtime"
            ))
        })
    }

    /// Writes each output; one that cannot be written does not keep the others from their files.
    fn save(&self, folder: &Path) -> Files {
        let mut files = Files::default();
        for (name, tensor) in &self.outputs {
            match save(folder, name, tensor) {
                Ok(path) => files.saved.push(path),
                Err(unwritten) => files.unwritten.push(unwritten),
            }
        }
        files
    }
}

/// What every timeline of a program says.
fn with_facts(mut trace: Trace, args: &ProgramRunArgs, program: &str) -> Trace {
    let facts = [
        ("program", program.to_owned()),
        ("runs", grouped(args.rounds)),
        ("pto", env!("CARGO_PKG_VERSION").to_owned()),
    ];
    trace.run.extend(facts.map(|(name, fact)| (name.to_owned(), fact)));
    trace
}

/// A run that ended with a fault keeps its timeline, and says in virtual time how it is repeated.
fn told_of_a_fault(failure: Failure, args: &ProgramRunArgs, program: &str) -> Failure {
    let path = args.trace.as_deref();
    let had_trace = failure.has_trace();
    let mut failure = timeline::keep_in(failure, path, |trace| with_facts(trace, args, program));
    if let Some(path) = path.filter(|_| failure.is_fault() && !had_trace) {
        let left = "because the run left no timeline";
        failure = failure.and(format!("'{}' was not written, {left}.", path.display()));
    }
    if args.hosting != Some(HostingMode::Virtual) || !failure.is_fault() {
        return failure;
    }
    let replay = replay::this_command();
    failure.and(format!("To replay it: {replay}")).replayed_by(replay)
}

/// Writes an output; the name of its file.
fn save(folder: &Path, name: &str, tensor: &HostTensor) -> Result<String, Failure> {
    let safe: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let path = folder.join(format!("{safe}.npy"));
    let file = file_tensor(tensor).ok_or_else(|| {
        Failure::usage(format!(
            "{name} has elements of type {}, which NumPy files do not hold",
            tensor.dtype()
        ))
    })?;
    output_file::check(&path)?;
    npy::write(&path, &file)?;
    Ok(path.display().to_string())
}

/// Every tensor is made for the run, so that the device needs room for all of them.
fn check_room(program: &Program, device: &Device) -> Result<(), Failure> {
    let Needs { tensor_bytes: tensors, code_bytes: graph, .. } = program.needs();
    let available = device.describe().gm_free_bytes;
    if tensors.saturating_add(graph) <= available {
        return Ok(());
    }
    Err(host::Error::Memory { tensors, graph, available }.into())
}

fn session(args: &ProgramRunArgs, program: &Program) -> Result<Session, Failure> {
    let wanted = Wanted::of_program(args)?;
    let mut device = wanted.open(None)?;
    check_room(program, &device)?;
    KernelSet::default().register(&mut device)?;
    let trace = args.trace.as_ref().map(|_| TraceOptions::default());
    let run =
        RunOptions { aicpu_instances: wanted.session_aicpu(), trace, ..RunOptions::default() };
    let options = SessionOptions { run, ..SessionOptions::default() };
    Ok(device.session(options)?)
}

fn run_on(
    session: &Session,
    args: &ProgramRunArgs,
    program: Program,
    given: &[(String, FileTensor)],
) -> Result<RunResult, Failure> {
    let stitcher = Stitcher::new(session)?;
    let stream = stitcher.stream()?;
    let native = pto_native::program::kernels(&program);
    let native = native.map_err(|failure| Failure::usage(failure.message))?;
    let program = stitcher.load_with(program, native)?;
    let mut tensors = tensors(&stream, args, (&program, given))?;
    let arrays = arrays(&stream, (program.program(), given))?;
    let (mut times, mut outputs) = (Vec::new(), None::<pto_host::stitch::Outputs>);
    stream.synchronize()?;
    let (before, start) = (stitcher.counters(), session.now());
    for _ in 0..args.rounds {
        // The outputs of the run before go back to the pool.
        drop(outputs.take());
        let begun = Instant::now();
        let inputs = inputs(args, program.program(), &mut tensors)?;
        let inputs = arrays.iter().fold(inputs, |inputs, (name, one)| inputs.array(name, one));
        let of_run = stream.run(&program, inputs)?;
        stream.synchronize()?;
        times.push(begun.elapsed());
        outputs = Some(of_run);
    }
    let (after, end) = (stitcher.counters(), session.now());
    let report = stream.take_report();
    let mut found = Vec::new();
    for tensor in program.program().tensors() {
        let taken = outputs.as_mut().and_then(|outputs| outputs.take(&tensor.name).ok());
        let updated =
            tensors.iter().find(|(name, role, _)| *name == tensor.name && *role == Role::Updated);
        if let Some(from) = taken.as_ref().or(updated.map(|(_, _, tensor)| tensor)) {
            found.push((tensor.name.clone(), stream.to_host(from)?));
        }
    }
    let is_virtual = args.hosting == Some(HostingMode::Virtual);
    let virtual_time = is_virtual.then(|| end.saturating_sub(start));
    let name = program.program().name().to_owned();
    Ok(RunResult { name, outputs: found, before, after, times, virtual_time, report })
}

/// What the program has to be given, on the device, in its layouts.
fn tensors(
    stream: &ProgramStream,
    args: &ProgramRunArgs,
    (program, given): (&LoadedProgram, &[(String, FileTensor)]),
) -> Result<Vec<(String, Role, Tensor)>, Failure> {
    let needed = program.program().tensors().iter().filter(|tensor| tensor.role.is_given());
    let tensor = |wanted: &TensorDescription| {
        let host = match given.iter().find(|(name, _)| *name == wanted.name) {
            Some((_, file)) => of_file(wanted, file)?,
            None => drawn(wanted, args.seed)?,
        };
        let tensor = stream.to_device(&host, &wanted.layout)?;
        Ok((wanted.name.clone(), wanted.role, tensor))
    };
    needed.map(tensor).collect()
}

/// The arrays of the program's axes that were given, on the device. The run reports those that are missing.
fn arrays(
    stream: &ProgramStream,
    (program, given): (&Program, &[(String, FileTensor)]),
) -> Result<Vec<(String, Tensor)>, Failure> {
    let given = given.iter().filter(|(name, _)| program.arrays().contains(name));
    let array = |(name, file): &(String, FileTensor)| {
        if file.dtype().name() != DType::I32.name() {
            return Err(Failure::usage(format!(
                "--input {name}: the file has elements of type {}, and an array of an axis has i32",
                file.dtype()
            )));
        }
        let shape: Vec<u64> = file.shape().to_vec();
        let tensor = HostTensor::new(DType::I32, &shape, file.bytes())?;
        Ok((name.clone(), stream.to_device(&tensor, &TensorLayout::device())?))
    };
    given.map(array).collect()
}

fn of_file(wanted: &TensorDescription, file: &FileTensor) -> Result<HostTensor, Failure> {
    if file.dtype().name() != wanted.dtype.name() || file.shape() != wanted.shape {
        return Err(Failure::usage(format!(
            "--input {}: the file has {} {:?}, and the program needs {} {:?}",
            wanted.name,
            file.dtype(),
            file.shape(),
            wanted.dtype,
            wanted.shape
        )));
    }
    Ok(HostTensor::new(wanted.dtype, &wanted.shape, file.bytes())?)
}

fn drawn(wanted: &TensorDescription, seed: u64) -> Result<HostTensor, Failure> {
    let (count, size) = (wanted.shape.iter().product::<u64>(), wanted.dtype.bytes());
    let count = usize::try_from(count).map_err(Failure::usage)?;
    let mut random = Rng::new(seed, &wanted.name);
    let mut elements = vec![0; count * size];
    if wanted.dtype.is_float() {
        for element in elements.chunks_mut(size) {
            let bits = bits_of(wanted.dtype, random.unit()).to_le_bytes();
            element.copy_from_slice(&bits[..size]);
        }
    }
    Ok(HostTensor::new(wanted.dtype, &wanted.shape, elements)?)
}

fn inputs<'t>(
    args: &ProgramRunArgs,
    program: &Program,
    tensors: &'t mut [(String, Role, Tensor)],
) -> Result<Inputs<'t>, Failure> {
    let mut inputs = Inputs::new();
    for (name, role, tensor) in tensors {
        inputs = match role {
            Role::Updated => inputs.update(name, tensor),
            _ => inputs.borrow(name, tensor),
        };
    }
    for (name, text) in &args.params {
        inputs = with_param(inputs, program, name, text)?;
    }
    Ok(inputs)
}

fn with_param<'t>(
    inputs: Inputs<'t>,
    program: &Program,
    name: &str,
    text: &str,
) -> Result<Inputs<'t>, Failure> {
    let symbols = program.symbols();
    let wrong = |what: &str| Failure::usage(format!("--param {name}: '{text}' is not {what}"));
    let found = symbols.iter().find(|(known, _)| known == name).map(|(_, used)| *used);
    match found {
        None => Err(Failure::usage(format!("the program has no size or symbol '{name}'"))),
        Some(SymbolUse::Float) => {
            let value = host::f32_of(text).ok_or_else(|| wrong("a number that an f32 can hold"))?;
            Ok(inputs.symbol_f32(name, value))
        }
        Some(used) => {
            let value = text.parse().map_err(|_| wrong("a whole number from 0 on"))?;
            Ok(if matches!(used, SymbolUse::Size(_)) {
                inputs.size(name, value)
            } else {
                inputs.symbol(name, value)
            })
        }
    }
}

fn check_names(args: &ProgramRunArgs, program: &Program) -> Result<(), Failure> {
    check_unique("--input", args.inputs.iter().map(|(name, _)| name))?;
    check_unique("--param", args.params.iter().map(|(name, _)| name))?;
    let of_program = args.inputs.iter().filter(|(name, _)| !program.arrays().contains(name));
    for (name, _) in of_program {
        let tensor = program.tensor(name).map_err(Failure::usage)?;
        if !tensor.role.is_given() {
            return Err(Failure::usage(format!(
                "--input {name}: the program is given no such tensor, because it is {}; leave it out",
                tensor.role.name()
            )));
        }
    }
    Ok(())
}

fn read_all(files: &[(String, std::path::PathBuf)]) -> Result<Vec<(String, FileTensor)>, Failure> {
    files.iter().map(|(name, path)| Ok((name.clone(), npy::read(path)?))).collect()
}
