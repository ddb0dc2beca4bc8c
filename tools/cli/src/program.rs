//! What a program submits: recorded from an example, or read from a graph file.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use pto_abi::symbol::symbol;
use pto_abi::{Fault, GmAddr, RuntimeVariant};
use pto_check::file::{self, ReadError};
use pto_check::program::Argument;
use pto_check::{
    Buffer, Cores, Memory, NotRecorded, Program, Recorder, Recording, declare, record,
};
use pto_examples::ExampleBuilders;
use pto_examples::host::{self, Example, Params, Prepared};
use pto_examples::training_loop;
use pto_examples::workload::WorkloadFile;
use pto_graph::BuilderSet;
use pto_graph::plan::task;
use pto_host::{Device, DeviceOptions, HostGraph, RunOptions};

use crate::arguments::operands;
use crate::errors::Failure;
use crate::input_file;
use crate::meaning::{gave_up, with_meaning};
use crate::programs::ProgramSource;
use crate::request;

/// How a program came to be known.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// It is in a file.
    Read,
    /// The builder was called, and nothing ran.
    WithoutRun,
    /// A run was recorded.
    WhileItRan,
}

impl How {
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Read => "read from the file",
            Self::WithoutRun => "recorded without running it",
            Self::WhileItRan => {
                "recorded while it ran, because it reads values that its tasks compute"
            }
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Read => "file",
            Self::WithoutRun => "built",
            Self::WhileItRan => "run",
        }
    }
}

/// What the name on the command line names.
pub(crate) enum NamedProgram<'a> {
    /// An example of the table.
    Example(&'static dyn Example),
    /// A file that holds a workload.
    Workload(&'static WorkloadFile),
    /// A graph file.
    Graph(&'a Path),
}

impl<'a> NamedProgram<'a> {
    /// The example of this name, or the file.
    pub(crate) fn find(name: &'a str) -> Result<Self, Failure> {
        let unknown = match example(name) {
            Ok(example) => return Ok(Self::Example(example)),
            Err(unknown) => unknown,
        };
        let path = Path::new(name);
        if input_file::is_standard_input(path) {
            // A graph file begins with an object, and a workload never does.
            let is_graph = input_file::text(path)?.trim_start().starts_with('{');
            return Ok(if is_graph { Self::Graph(path) } else { Self::Workload(workload(path)?) });
        }
        match path.extension() {
            None if !path.exists() => Err(unknown.and("There is no file of that name either.")),
            Some(extension) if extension == PROGRAM => Err(Failure::usage(format!(
                "'{name}' is a program file; run it with `pto program run {name}`, and see its graph with `pto program inspect {name}`"
            ))),
            Some(extension) if extension == WORKLOAD => Ok(Self::Workload(workload(path)?)),
            _ => Ok(Self::Graph(path)),
        }
    }
}

/// The example of this name.
pub(crate) fn example(name: &str) -> Result<&'static dyn Example, Failure> {
    if name == training_loop::NAME {
        return Err(Failure::usage(format!(
            "{name} is three programs in a loop, and this command takes one graph; run the loop with `pto run {name}`"
        )));
    }
    host::find(name).map_err(|_| {
        let known = host::EXAMPLES.iter().map(|example| example.name());
        host::Error::unknown("example", name, known.chain([training_loop::NAME])).into()
    })
}

/// The extension of a file that holds a workload.
const WORKLOAD: &str = "workload";

/// The extension of a program file.
const PROGRAM: &str = "ptop";

/// The workload in a file.
fn workload(path: &Path) -> Result<&'static WorkloadFile, Failure> {
    let shown = path.display();
    let text = input_file::text(path)?;
    let file = WorkloadFile::read(&text);
    file.map_err(|error| Failure::usage(format!("'{shown}', {error}")))
}

/// Which program.
#[derive(Clone, Copy)]
pub(crate) struct ProgramRequest<'a> {
    /// An example, a workload file, or a graph file.
    pub(crate) target: &'a str,
    /// Of the example or workload.
    pub(crate) params: &'a [(String, String)],
    /// Of the example or workload.
    pub(crate) inputs: &'a [(String, PathBuf)],
    /// The one that was asked for.
    pub(crate) runtime: Option<RuntimeVariant>,
    /// The cores that it would run on.
    pub(crate) cores: Cores,
}

impl ProgramRequest<'_> {
    /// The program: of the example of that name, or in the file.
    pub(crate) fn program(&self) -> Result<(Program, How), Failure> {
        let (program, how, _) = self.program_on(|_, _| Ok(()))?;
        Ok((program, how))
    }

    /// The same; of an example `look` sees what the tensors hold before the program runs. With them comes what is allowed in a workload, and may
    /// not be meant.
    pub(crate) fn program_on(
        &self,
        look: impl FnOnce(&Program, &Device) -> Result<(), Failure>,
    ) -> Result<(Program, How, Vec<String>), Failure> {
        let (example, workload): (&dyn Example, _) = match NamedProgram::find(self.target)? {
            NamedProgram::Example(example) => (example, None),
            NamedProgram::Workload(workload) => (workload, Some(workload)),
            NamedProgram::Graph(path) => return Ok((self.read(path)?, How::Read, Vec::new())),
        };
        let variant = request::variant_of(example, self.runtime)?;
        let (params, inputs) = request::request(example, self.params, self.inputs)?;
        let recording = Recording::new(ExampleBuilders, example.name(), variant);
        let options =
            DeviceOptions { aic: self.cores.aic, aiv: self.cores.aiv, ..DeviceOptions::default() };
        let mut device = Device::open_sim(options, ProgramSource::Recorded(recording.clone()))?;
        example.needs(&params).check_kinds(example.name(), &device)?;
        device.register_library()?;
        let mut prepared = example.prepare(&params, &inputs, &device)?;
        prepared.reset()?;
        let recorded = Recordable {
            example,
            variant,
            params: &params,
            recording: &recording,
            cores: self.cores,
        };
        let (mut program, how) = recorded.record(&mut prepared, &mut device)?;
        if let Some(workload) = workload {
            name_tasks(&mut program, workload);
        }
        look(&program, &device)?;
        let warnings = workload.map_or_else(Vec::new, |workload| workload.warnings().collect());
        Ok((program, how, warnings))
    }

    fn read(&self, path: &Path) -> Result<Program, Failure> {
        if !self.params.is_empty() || !self.inputs.is_empty() {
            return Err(Failure::usage(
                "--param and --input set values of an example or a workload, and a graph file has none to set; leave them out",
            ));
        }
        let (shown, program) = (path.display(), read(path)?);
        match self.runtime {
            Some(variant) if variant != program.variant => Err(Failure::usage(format!(
                "'{shown}' holds a program of {}, not of {variant}; leave --runtime out",
                program.variant
            ))),
            _ => Ok(program),
        }
    }
}

/// Gives each task of a workload the name of its tile kernel: all of them run on two kernels of the library. A chain has one
/// kernel several times.
fn name_tasks(program: &mut Program, workload: &WorkloadFile) {
    let names: Vec<&str> = workload.compiled().kernels().map(|(name, _)| name).collect();
    for held in &mut program.tasks {
        let (link, args) = match held.links.first() {
            Some(link) => (Some(link), &link.args),
            None => (None, &held.args),
        };
        let Some(Argument::Scalar(word)) = args.get(task::CODE_BYTES) else { continue };
        let times = link.map_or(String::new(), |link| format!(", {} times", link.times));
        held.name = names.get(task::kernel_number(*word)).map(|name| format!("{name}{times}"));
    }
}

/// An example whose program is to be recorded.
#[derive(Clone, Copy)]
pub(crate) struct Recordable<'a> {
    pub(crate) example: &'a dyn Example,
    pub(crate) variant: RuntimeVariant,
    pub(crate) params: &'a Params,
    /// What the device records whose programs these are.
    pub(crate) recording: &'a Recording<ExampleBuilders>,
    pub(crate) cores: Cores,
}

impl Recordable<'_> {
    /// Records the program, with names, roles and shapes of its tensors. The tensors are then as they were before.
    pub(crate) fn record(
        &self,
        prepared: &mut Prepared,
        device: &mut Device,
    ) -> Result<(Program, How), Failure> {
        let (mut program, how) = match self.variant {
            RuntimeVariant::TENSORMAP_AND_RINGBUFFER => self.stream(prepared, device)?,
            _ => (built(self.example, self.variant, prepared, device)?, How::WithoutRun),
        };
        // The builder of every workload has the same name.
        self.example.name().clone_into(&mut program.name);
        let buffers = prepared.buffers(device).into_iter().map(|buffer| Buffer {
            name: buffer.name.to_owned(),
            address: buffer.address,
            bytes: buffer.bytes,
            shape: self.shape_of(buffer.name),
        });
        declare(&mut program, &buffers.collect::<Vec<_>>(), operands);
        Ok((program, how))
    }

    /// The extents of an input or output of this name.
    fn shape_of(&self, name: &str) -> Option<Vec<u32>> {
        let mut specs = self.example.inputs().iter().chain(self.example.outputs());
        let spec = specs.find(|spec| spec.name == name)?;
        let extents = spec.dims.iter().map(|dim| self.example.extent(dim, self.params));
        extents.map(|extent| u32::try_from(extent?).ok()).collect()
    }

    fn stream(
        &self,
        prepared: &mut Prepared,
        device: &mut Device,
    ) -> Result<(Program, How), Failure> {
        let most = usize::try_from(prepared.size().tasks).unwrap_or(usize::MAX).min(1 << 16);
        let set = (&ExampleBuilders, prepared.builder());
        match record(set, prepared.orch_args(), most, (self.cores, &OnDevice(device))) {
            Ok(program) => Ok((program, How::WithoutRun)),
            Err(NotRecorded::DependsOnData { .. }) => {
                // What it has set meanwhile is set again.
                prepared.reset()?;
                let work = prepared.work(self.variant);
                let run = device.run(work, &RunOptions::default());
                run.map_err(|error| with_meaning(self.example, error))?;
                prepared.reset()?;
                Ok((self.recording.take(), How::WhileItRan))
            }
            Err(NotRecorded::GaveUp { error, .. }) => Err(gave_up(self.example, error)),
        }
    }
}

/// The program in a graph file.
pub(crate) fn read(path: &Path) -> Result<Program, Failure> {
    let read = match input_file::is_standard_input(path) {
        true => file::read(&input_file::bytes(path)?[..]),
        false => {
            let opened = File::open(path).map_err(|error| input_file::cannot_read(path, &error))?;
            file::read(BufReader::new(opened))
        }
    };
    read.map_err(|error| match error {
        ReadError::Io(error) => input_file::cannot_read(path, &error),
        error @ ReadError::Line { .. } => Failure::usage(format!("'{}', {error}", path.display())),
    })
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
    let built = ExampleBuilders
        .build(symbol(prepared.builder()), &mut Recorder::new(&mut graph, &mut program))
        .unwrap_or(Err(Fault::BUILD_NO_BUILDER.into()));
    built.map_err(|error| gave_up(example, error))?;
    Ok(program)
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
