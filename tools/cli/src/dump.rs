//! `--dump`: every tensor that the tasks of a run write, as NumPy files.
//!
//! ```text
//! an example's program --recorded--> with_kept_heap --> the run --> written tensors --> tensor_folder.rs
//! ```
//! What is on the heap is overwritten as soon as a scope has ended. So a program with such tensors runs from its recording,
//! in which each of them has memory of its own; it submits the same tasks on the same views.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use pto_abi::{CoreKind, GmAddr, RuntimeVariant};
use pto_check::program::{Location, Program};
use pto_check::{Cores, FileProgram, Recording, with_kept_heap, written};
use pto_examples::ExampleBuilders;
use pto_examples::host::{Params, Prepared};
use pto_host::{Device, DeviceBuffer, Work};
use serde_json::{Value, json};

use crate::args::RunArgs;
use crate::arguments::lost_address;
use crate::device::Wanted;
use crate::errors::Failure;
use crate::program::Recordable;
use crate::programs::ProgramSource;
use crate::target::Target;
use crate::tensor_folder::{self, Heading, Located};
use crate::text::counted;

/// What is written after a run.
pub(crate) struct Dump {
    folder: PathBuf,
    submission: FileProgram,
    /// The tensors of the heap, in memory of their own.
    kept: Vec<DeviceBuffer<u8>>,
    /// By index: whether a tensor is one of the heap's.
    is_of_heap: Vec<bool>,
    /// Tensors that cannot be written, by index.
    left_out: Vec<usize>,
    source: TaskSource,
}

/// What became of a dump.
pub(crate) struct WrittenDump<'a> {
    pub(crate) folder: &'a Path,
    /// Tensors in it.
    pub(crate) count: usize,
    /// Tensors that cannot be in it; the index names them.
    pub(crate) left_out: usize,
    /// Why it is not complete.
    pub(crate) unwritten: Option<Failure>,
}

impl WrittenDump<'_> {
    /// For people.
    pub(crate) fn text(&self) -> String {
        let index = tensor_folder::index_of(self.folder);
        let written =
            format!("{}, {} says which", counted(self.count as u64, "tensor"), index.display());
        match (&self.unwritten, self.left_out) {
            (Some(_), _) => format!("the tensors to {}", self.folder.display()),
            (None, 0) => written,
            (None, left) => format!("{written}; {left} of records are left out"),
        }
    }

    /// For programs.
    pub(crate) fn json(&self) -> Value {
        json!({
            "folder": self.folder.display().to_string(),
            "tensors": self.count,
            "left_out": self.left_out,
            "error": self.unwritten.as_ref().map(Failure::message),
        })
    }
}

/// Who submits the tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TaskSource {
    /// The program of the example, or of the file.
    Itself,
    /// Its recording.
    Recording,
}

impl Dump {
    /// That of a graph file, whose program keeps its heap already: `before` is the program in the file.
    pub(crate) fn of_file(folder: &Path, submission: &FileProgram, before: &Program) -> Self {
        let is_of_heap = heap_of(before);
        let left = submission.program().tensors.iter().enumerate();
        let left =
            left.filter(|(_, tensor)| tensor.location == Location::Heap).map(|(index, _)| index);
        Self {
            folder: folder.to_owned(),
            submission: submission.clone(),
            kept: Vec::new(),
            is_of_heap,
            left_out: left.collect(),
            source: TaskSource::Itself,
        }
    }

    /// That of an example, whose program was recorded on this device.
    pub(crate) fn of_example(
        folder: &Path,
        program: &Program,
        device: &Device,
    ) -> Result<Self, Failure> {
        let is_of_heap = heap_of(program);
        // Without a heap everything stays where it is.
        let source =
            if is_of_heap.contains(&true) { TaskSource::Recording } else { TaskSource::Itself };
        if let Some(lost) = lost_address(program).filter(|_| source == TaskSource::Recording) {
            return Err(Failure::usage(format!(
                "--dump runs a program with tensors on the heap from its recording, and the recording does not know into which tensor an address points. \
                 It is an address of {lost}. Give the kernel a tensor there, or leave --dump out."
            )));
        }
        let (program, left_out) = with_kept_heap(program);
        let mut kept = Vec::new();
        let mut placed = Vec::new();
        for tensor in &program.tensors {
            placed.push(match tensor.location {
                Location::Host(Some(base)) => base,
                Location::Host(None) => {
                    let bytes = usize::try_from(tensor.bytes).unwrap_or(usize::MAX);
                    let buffer = device.zeroed(bytes)?;
                    let address = buffer.address();
                    kept.push(buffer);
                    address
                }
                Location::Heap | Location::Bound(_) => GmAddr::NULL,
            });
        }
        let submission = FileProgram::new(Arc::new(program));
        submission.set_addresses(&placed);
        Ok(Self { folder: folder.to_owned(), submission, kept, is_of_heap, left_out, source })
    }

    /// The program that submits the tasks; `None`: the example's own does.
    pub(crate) fn recording(&self) -> Option<&FileProgram> {
        (self.source == TaskSource::Recording).then_some(&self.submission)
    }

    /// What is to run instead of the example's own program; `None`: that one.
    pub(crate) fn work(&self) -> Option<Work<'_>> {
        self.recording().map(|_| Work::Stream { builder: FileProgram::NAME, orch_args: &[] })
    }

    /// Forgets what the run before has left in the tensors of the heap.
    pub(crate) fn reset(&self) -> Result<(), Failure> {
        for buffer in &self.kept {
            buffer.write(&vec![0; buffer.len()])?;
        }
        Ok(())
    }

    /// Writes the folder.
    pub(crate) fn write(&self, name: &str, device: &Device) -> WrittenDump<'_> {
        let (folder, left_out) = (self.folder.as_path(), self.left_out.len());
        match self.try_write(name, device) {
            Ok(count) => WrittenDump { folder, count, left_out, unwritten: None },
            Err(failure) => WrittenDump { folder, count: 0, left_out, unwritten: Some(failure) },
        }
    }

    /// How many tensors were written.
    fn try_write(&self, name: &str, device: &Device) -> Result<usize, Failure> {
        let program = self.submission.program();
        let is_written = written(program);
        let tensors = program.tensors.iter().enumerate().filter(|(index, _)| is_written[*index]);
        let mut tensors: Vec<_> = tensors
            .filter_map(|(index, tensor)| {
                let address = self.submission.address_of(index)?;
                let of = if self.is_of_heap[index] { "heap" } else { "host" };
                Some(Located { tensor, address, origin: of })
            })
            .collect();
        tensors.sort_by_key(|located| located.tensor.id);
        let left_out = self.left_out.iter().map(|index| left(&program.tensors[*index])).collect();
        let heading = Heading { format: "pto-dump", name };
        tensor_folder::write(&self.folder, &heading, &tensors, left_out, device)?;
        Ok(tensors.len())
    }
}

fn heap_of(program: &Program) -> Vec<bool> {
    program.tensors.iter().map(|tensor| tensor.location == Location::Heap).collect()
}

fn left(tensor: &pto_check::program::Tensor) -> Value {
    json!({
        "name": tensor.name,
        "id": tensor.id,
        "why": "a record allocates it, and each replay has its own",
    })
}

/// A dump that was asked for, before there is a device.
pub(crate) struct DumpRequest<'a> {
    folder: &'a Path,
    target: &'a Target,
    variant: RuntimeVariant,
    cores: Cores,
    recording: Recording<ExampleBuilders>,
    /// The recording that is to run, once it is made.
    again: Arc<OnceLock<FileProgram>>,
    runs_here: bool,
}

impl<'a> DumpRequest<'a> {
    /// What `--dump` asks for; `None`: nothing.
    pub(crate) fn of(
        args: &'a RunArgs,
        target: &'a Target,
        (wanted, variant): (&Wanted, RuntimeVariant),
    ) -> Result<Option<Self>, Failure> {
        let Some(folder) = &args.dump else { return Ok(None) };
        if args.virtual_time.no_compute {
            return Err(Failure::usage(
                "--dump writes what kernels compute, and with --no-compute no kernel runs; leave one of the two out",
            ));
        }
        let runs_here = wanted.runs_here();
        if !runs_here && variant == RuntimeVariant::TENSORMAP_AND_RINGBUFFER {
            return Err(Failure::usage(format!(
                "--dump under {variant} runs the program from its recording, which is not in the image of this device; use the simulator"
            )));
        }
        let cores = Cores { aic: wanted.cores(CoreKind::AIC), aiv: wanted.cores(CoreKind::AIV) };
        let recording = Recording::new(ExampleBuilders, target.example.name(), variant);
        let again = Arc::default();
        Ok(Some(Self { folder, target, variant, cores, recording, again, runs_here }))
    }

    /// What the firmware of the device is to have; `None`: the examples.
    pub(crate) fn programs(&self) -> Option<ProgramSource> {
        let again = || ProgramSource::Again(self.recording.clone(), Arc::clone(&self.again));
        let is_stream = self.variant == RuntimeVariant::TENSORMAP_AND_RINGBUFFER;
        self.target.programs().or_else(|| (self.runs_here && is_stream).then(again))
    }

    /// Records the program, and makes room for the tensors of its heap.
    pub(crate) fn prepare(
        &self,
        params: &Params,
        prepared: &mut Prepared,
        device: &mut Device,
    ) -> Result<Dump, Failure> {
        if let (Some(submission), Some(before)) = (&self.target.file, &self.target.before) {
            return Ok(Dump::of_file(self.folder, submission, before));
        }
        let Self { variant, cores, recording, .. } = self;
        let (variant, cores, example) = (*variant, *cores, self.target.example);
        let (program, _) =
            Recordable { example, variant, params, recording, cores }.record(prepared, device)?;
        let dump = Dump::of_example(self.folder, &program, device)?;
        if let Some(submission) = dump.recording() {
            // It is set here alone.
            let _ = self.again.set(submission.clone());
        }
        Ok(dump)
    }
}
