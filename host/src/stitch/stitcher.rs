//! The stitcher: loads programs into a session, and makes the streams that run them.

use std::sync::Arc;

use pto_abi::GmAddr;
use pto_workload::program::{
    NativeKernels, Program, ProgramBody, TensorDescription, describe_block_shape,
};

use super::conversion::Conversions;
use super::counters::Counters;
use super::error::StitchError;
use super::loaded::LoadedProgram;
use super::of_recording::{self, Setting};
use super::placed::PlacedProgram;
use super::stitcher_core::StitcherCore;
use super::stream::ProgramStream;
use crate::kernel::Kernel;
use crate::session::{OnFailure, Recording, Session, StreamOptions};

/// How programs are stitched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StitchOptions {
    /// Bytes of the fast region of the device; 0: it has none, and every tensor that should be there is bounced.
    pub on_chip_bytes: u64,
}

/// Loads programs onto the device of a session, and opens streams that run them.
///
/// The stitcher, its streams and its placed programs own the session, as a clone of [`Session`] does.
#[derive(Clone)]
pub struct Stitcher {
    session: Session,
    shared: Arc<StitcherCore>,
    conversions: Arc<Conversions>,
}

impl Stitcher {
    /// A stitcher without a fast region.
    ///
    /// # Errors
    /// Those of [`with_options`](Self::with_options).
    pub fn new(session: &Session) -> Result<Self, StitchError> {
        Self::with_options(session, StitchOptions::default())
    }

    /// A stitcher.
    ///
    /// # Errors
    /// The device has no room for the fast region; the session is closed.
    pub fn with_options(session: &Session, options: StitchOptions) -> Result<Self, StitchError> {
        let shared = StitcherCore::new(session, options.on_chip_bytes)?;
        let conversions = Arc::new(Conversions::new(&shared));
        Ok(Self { session: session.clone(), shared, conversions })
    }

    /// The session.
    #[must_use]
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// Puts a program and its constants into the memory of the device.
    ///
    /// # Errors
    /// The program is for another target, calls a kernel that the library does not have, or does not fit the memory; `Native`: it
    /// has kernels of its own.
    pub fn load(&self, program: Program) -> Result<LoadedProgram, StitchError> {
        self.load_with(program, Vec::new())
    }

    /// Puts a program with kernels of its own into the memory of the device. `native` are these kernels, by their names:
    /// `pto_native::program::kernels` loads them from the program. They may have kernels that this process brings along, which the
    /// tasks call by name as those of the library, which come first.
    ///
    /// # Errors
    /// Those of [`load`](Self::load); a kernel cannot be registered.
    pub fn load_with(
        &self,
        program: Program,
        native: Vec<Kernel>,
    ) -> Result<LoadedProgram, StitchError> {
        self.check_block_shapes(&program)?;
        self.check_builder(&program)?;
        let registered = |kernel: Kernel| {
            let (name, kind) = (kernel.name().to_owned(), kernel.kind());
            Ok((name, kind, self.session.func_id_of(kernel)?))
        };
        let native = native.into_iter().map(registered);
        let native = native.collect::<Result<Vec<_>, StitchError>>()?;
        LoadedProgram::load(&self.shared, program, &native)
    }

    /// Refuses tasks that only the streaming runtime runs where the firmware has no builder that adds them.
    fn check_block_shapes(&self, program: &Program) -> Result<(), StitchError> {
        let ProgramBody::Graph(tasks) = program.body() else { return Ok(()) };
        let mut shapes = tasks
            .iter()
            .map(|task| describe_block_shape(&task.block_shape, program.tensors()))
            .enumerate();
        let Some((task, shape)) = shapes.find_map(|(task, shape)| Some((task, shape?))) else {
            return Ok(());
        };
        let (builds, device) = self
            .session
            .with_device(|device| (device.expands_plans(), device.name().to_owned()))?;
        if builds {
            return Ok(());
        }
        Err(StitchError::BlockShapes { program: program.name().to_owned(), task, shape, device })
    }

    /// Refuses a program whose builder the device does not have.
    fn check_builder(&self, program: &Program) -> Result<(), StitchError> {
        let ProgramBody::Builder(reference) = program.body() else { return Ok(()) };
        let (known, device) =
            self.session.with_device(|device| (device.builders(), device.name().to_owned()))?;
        if known.contains(&reference.name) {
            return Ok(());
        }
        let (program, builder) = (program.name().to_owned(), reference.name.clone());
        Err(StitchError::Builder { program, builder, device, known: known.join(", ") })
    }

    /// A program that does what was recorded, on the tensors that were at these addresses while it was captured: it can be written into a file, and
    /// run on others. An argument that is an address becomes a byte of the tensor at this address.
    ///
    /// # Errors
    /// `Recording`: a kernel is none of the library, or has an address where none of the tensors is; `Program`: a tensor cannot be as described.
    pub fn program_of(
        &self,
        name: &str,
        recording: &Recording,
        tensors: &[(TensorDescription, GmAddr)],
    ) -> Result<Program, StitchError> {
        self.of_recording(name, recording, tensors, None)
    }

    /// As [`program_of`](Self::program_of), of a recording with kernels of its own: `native` has their machine code, and each is the kernel that was
    /// registered under its name. A word of such a kernel is an address if it lies in one of the tensors.
    ///
    /// # Errors
    /// As [`program_of`](Self::program_of); `Recording`: a word of such a kernel lies in the memory of the device, and in none of the tensors.
    pub fn program_with_native(
        &self,
        name: &str,
        recording: &Recording,
        tensors: &[(TensorDescription, GmAddr)],
        native: NativeKernels,
    ) -> Result<Program, StitchError> {
        self.of_recording(name, recording, tensors, Some(native))
    }

    fn of_recording(
        &self,
        name: &str,
        recording: &Recording,
        tensors: &[(TensorDescription, GmAddr)],
        native: Option<NativeKernels>,
    ) -> Result<Program, StitchError> {
        let registered = self.session.with_device(|device| device.describe().kernels)?;
        let memory = self.session.memory();
        let first = memory.address().0;
        let memory = first..first.saturating_add(memory.size().0);
        let setting = Setting { tensors, registered: &registered, memory };
        of_recording::program(name, recording, &setting, native)
    }

    /// Puts a program into the memory of the device, to run on memory that the caller has.
    ///
    /// # Errors
    /// Those of [`load`](Self::load); the device has no room for its temporaries.
    pub fn place(&self, program: Program) -> Result<PlacedProgram, StitchError> {
        self.place_with(program, Vec::new())
    }

    /// As [`place`](Self::place), of a program with kernels of its own.
    ///
    /// # Errors
    /// Those of [`load_with`](Self::load_with) and [`place`](Self::place).
    pub fn place_with(
        &self,
        program: Program,
        native: Vec<Kernel>,
    ) -> Result<PlacedProgram, StitchError> {
        PlacedProgram::new(self.session.clone(), self.load_with(program, native)?)
    }

    /// A stream whose programs follow each other: each begins when the one before it has ended.
    ///
    /// # Errors
    /// Those of [`Session::stream`].
    pub fn stream(&self) -> Result<ProgramStream, StitchError> {
        self.overlapping_stream(1)
    }

    /// A stream whose programs overlap task by task: up to `programs` of them are submitted as one launch, and a task of a later one
    /// begins when the tiles are written that it reads. A launch is submitted when it is full, and when anything but a run is
    /// asked of the stream ([`ProgramStream::flush`]).
    ///
    /// # Errors
    /// Those of [`Session::stream`].
    pub fn overlapping_stream(&self, programs: usize) -> Result<ProgramStream, StitchError> {
        // After a failed program no other one computes on its results.
        let options = StreamOptions { on_failure: OnFailure::Stop, ..StreamOptions::default() };
        let stream = self.session.stream_with(options)?;
        Ok(ProgramStream::new(stream, &self.shared, &self.conversions, programs))
    }

    /// What was copied, converted, bounced and allocated since the device was opened.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.shared.counters()
    }
}

#[cfg(test)]
mod tests {
    use pto_abi::CoreKind;
    use pto_workload::program::{BlockShape, GraphTask, Program, ProgramBody};

    use super::Stitcher;
    use crate::backend::fake::{Fake, SUCCESS};
    use crate::device::Device;
    use crate::options::DeviceOptions;
    use crate::session::SessionOptions;
    use crate::stitch::StitchError;

    /// A device whose firmware lacks the builder of shaped graphs; its name does not matter.
    #[test]
    fn a_device_without_the_builder_refuses_shaped_tasks() {
        let options =
            DeviceOptions { aic: 4, aiv: 8, gm_bytes: 8 << 20, ..DeviceOptions::default() };
        let device = Device::open_fake(options, Fake::new(|_, _| SUCCESS)).unwrap();
        let session = device.session(SessionOptions::default()).unwrap();
        let stitcher = Stitcher::new(&session).unwrap();
        let load = |blocks| {
            let task = GraphTask {
                kernel: "empty_aiv".to_owned(),
                kind: CoreKind::AIV,
                args: vec![],
                producers: vec![],
                block_shape: BlockShape { blocks, ..BlockShape::default() },
            };
            stitcher.load(Program::new("shaped", ProgramBody::Graph(vec![task]), vec![]).unwrap())
        };
        let Err(StitchError::BlockShapes { program, task, shape, device }) = load(2) else {
            panic!("the task has two blocks, which the device cannot add");
        };
        assert_eq!((program.as_str(), task, device.as_str()), ("shaped", 0, "fake"));
        assert!(shape.contains("2 blocks"), "{shape}");
        assert!(!matches!(load(1), Err(StitchError::BlockShapes { .. })));
    }
}
