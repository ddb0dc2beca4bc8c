//! What a program submits: recorded from an example, or read from a graph file.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use pto_abi::symbol::symbol;
use pto_abi::{Fault, GmAddr, RuntimeVariant};
use pto_check::file::{self, ReadError};
use pto_check::{Cores, Memory, NotRecorded, Program, Recorder, Recording, record};
use pto_examples::Builders;
use pto_examples::host::{self, Example, Prepared};
use pto_graph::BuilderSet;
use pto_host::{Device, DeviceOptions, HostGraph, RunOptions};

use crate::errors::Failure;
use crate::meaning::{gave_up, with_meaning};
use crate::programs::Programs;
use crate::request;

/// How a program came to be known.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// It stands in a file.
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
            Self::WhileItRan => "recorded while it ran, for it waits for values of its tasks",
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

/// Which program.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    /// An example, or a graph file.
    pub(crate) target: &'a str,
    /// Of the example.
    pub(crate) params: &'a [(String, String)],
    /// Of the example.
    pub(crate) inputs: &'a [(String, PathBuf)],
    /// The one that was asked for.
    pub(crate) runtime: Option<RuntimeVariant>,
    /// The cores that it would run on.
    pub(crate) cores: Cores,
}

impl Source<'_> {
    /// The program: of the example of that name, or in the file.
    pub(crate) fn program(&self) -> Result<(Program, How), Failure> {
        let example = match host::find(self.target) {
            Ok(example) => example,
            Err(unknown) => {
                let path = Path::new(self.target);
                if !path.exists() && path.extension().is_none() {
                    return Err(Failure::from(unknown).and("There is no file of that name either."));
                }
                return Ok((self.read(path)?, How::Read));
            }
        };
        let variant = request::variant_of(example, self.runtime)?;
        let (params, inputs) = request::request(example, self.params, self.inputs)?;
        let recording = Recording::new(Builders, example.name(), variant);
        let options =
            DeviceOptions { aic: self.cores.aic, aiv: self.cores.aiv, ..DeviceOptions::default() };
        let mut device = Device::open_sim(options, Programs::Recorded(recording.clone()))?;
        example.needs(&params).check_kinds(example.name(), &device)?;
        device.register_library()?;
        let mut prepared = example.prepare(&params, &inputs, &device)?;
        if variant != RuntimeVariant::TENSORMAP_AND_RINGBUFFER {
            return Ok((built(example, variant, &prepared, &device)?, How::WithoutRun));
        }
        let most = usize::try_from(prepared.size().tasks).unwrap_or(usize::MAX).min(1 << 16);
        let set = (&Builders, prepared.builder());
        match record(set, prepared.orch_args(), most, (self.cores, &OnDevice(&device))) {
            Ok(program) => Ok((program, How::WithoutRun)),
            Err(NotRecorded::DependsOnData { .. }) => {
                // What it has set meanwhile is set again.
                prepared.reset()?;
                let work = prepared.work(variant);
                let run = device.run(work, &RunOptions::default());
                run.map_err(|error| with_meaning(example, error))?;
                Ok((recording.take(), How::WhileItRan))
            }
            Err(NotRecorded::GaveUp { error, .. }) => Err(gave_up(example, error)),
        }
    }

    fn read(&self, path: &Path) -> Result<Program, Failure> {
        if !self.params.is_empty() || !self.inputs.is_empty() {
            return Err(Failure::usage("--param and --input are for examples; a file is as it is"));
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

/// The program in a graph file.
pub(crate) fn read(path: &Path) -> Result<Program, Failure> {
    let shown = path.display();
    let opened =
        File::open(path).map_err(|error| Failure::internal(format!("'{shown}': {error}")))?;
    file::read(BufReader::new(opened)).map_err(|error| match error {
        ReadError::Io(error) => Failure::internal(format!("'{shown}': {error}")),
        error @ ReadError::Line { .. } => Failure::usage(format!("'{shown}', {error}")),
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
    let built = Builders
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
