//! A stream that runs programs on tensors.
//!
//! ```text
//! run --check, bind--> pending --flush--> one launch of the session's stream: the programs, one after the other
//!      pending is full, or anything but a run is asked: flush
//! ```

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pto_abi::stream::StreamCapacities;
use pto_abi::{FuncId, GmAddr};
use pto_graph::plan::LaunchPart;
use pto_graph::task_list::ListedTask;
use pto_workload::program::{Format, MemorySpace, Role, TensorDescription, TensorLayout};
use pto_workload::tile::DType;
use pto_workload::tile::element::bits_as;

use super::conversion::{Conversions, SOURCE, TARGET};
use super::error::{StitchError, role_text};
use super::host_tensor::HostTensor;
use super::inputs::{Inputs, RunInput};
use super::joined;
use super::loaded::{BoundProgram, LoadedProgram, Neighbours, ProgramCore};
use super::outputs::Outputs;
use super::stitcher_core::{Block, StitcherCore};
use super::tensor::{Form, Tensor};
use crate::image::GraphImage;
use crate::options::RunOptions;
use crate::report::RunReport;
use crate::session::{HostBuffer, RunTicket, Session, SessionError, Stream, StreamId};
use crate::workload::{ArrayBinding, for_plans};

/// A stream that runs programs, and owns its session. When it is dropped, what was asked of it is still submitted.
pub struct ProgramStream {
    stream: Stream,
    shared: Arc<StitcherCore>,
    conversions: Arc<Conversions>,
    /// Programs of one launch.
    overlap: usize,
    state: Mutex<State>,
}

/// Images of joined graphs that a stream keeps.
const KEPT_JOINED: usize = 64;

/// Requests that are not known to be over.
#[derive(Default)]
struct State {
    /// The parts of the next launch.
    pending: Vec<Arc<BoundProgram>>,
    /// Graphs that were joined, with their image, in the order of their last use.
    joined: Vec<(Vec<Arc<BoundProgram>>, Arc<GraphImage>)>,
    /// What has run or is to run since the last synchronise, by the address of the binding: who may have left a fault.
    used: HashMap<usize, (Arc<ProgramCore>, Arc<BoundProgram>)>,
    /// For the report of the last launch.
    last: Option<RunTicket>,
}

/// An argument of a kernel that a stream launches between programs.
#[derive(Clone, Copy, Debug)]
pub enum KernelArgument<'t> {
    /// A word.
    Word(u64),
    /// So many bytes behind the first one of a tensor.
    Tensor(&'t Tensor, u64),
}

/// A tensor of a run.
enum RunTensor<'t> {
    Given(RunInput<'t>),
    /// An output or a temporary.
    New(Tensor),
    /// A constant, at this address.
    Constant(u64),
}

impl RunTensor<'_> {
    fn address(&self) -> u64 {
        match self {
            Self::Given(given) => given.tensor().address().0,
            Self::New(tensor) => tensor.address().0,
            Self::Constant(address) => *address,
        }
    }
}

impl ProgramStream {
    pub(super) fn new(
        stream: Stream,
        shared: &Arc<StitcherCore>,
        conversions: &Arc<Conversions>,
        overlap: usize,
    ) -> Self {
        shared.open(stream.id());
        Self {
            stream,
            shared: Arc::clone(shared),
            conversions: Arc::clone(conversions),
            overlap: overlap.clamp(1, shared.most_parts()),
            state: Mutex::default(),
        }
    }

    /// The stream's session.
    #[must_use]
    pub fn session(&self) -> &Session {
        self.stream.session()
    }

    /// The stream's number in the session.
    #[must_use]
    pub fn id(&self) -> StreamId {
        self.stream.id()
    }

    /// Runs a program. The call returns at once; the outputs may be given to the next run, which the device begins when they are
    /// there.
    ///
    /// # Errors
    /// A tensor is missing, unknown, of another shape or layout than the program needs, given in another way than its role allows,
    /// of another stream or session; something is not bound; the device has no room. Nothing ran then, and tensors that were moved are
    /// gone.
    pub fn run(&self, program: &LoadedProgram, inputs: Inputs<'_>) -> Result<Outputs, StitchError> {
        let loaded = &program.0;
        if !Arc::ptr_eq(&loaded.shared, &self.shared) {
            let what = format!("program {}", loaded.program.name());
            return Err(StitchError::OtherSession { what });
        }
        let Inputs { tensors, arrays, mut values } = inputs;
        for (name, array) in &arrays {
            values = values.array(name, self.array(program, name, array)?);
        }
        let parts = self.parts(loaded, tensors)?;
        let addresses: Vec<_> = parts.iter().map(RunTensor::address).collect();
        let shared = (values, self.neighbours());
        let bound = loaded.bind(&addresses, shared, self.session())?;
        self.fill_zeros(loaded, &parts)?;
        self.count_bounces(&parts);
        if !arrays.is_empty() {
            // The builder reads them while it expands the plan: what writes them has to be over.
            self.flush()?;
        }
        self.submit(loaded, bound)?;
        let described = loaded.program.tensors().iter();
        let tensors = described.zip(parts).filter_map(|(tensor, part)| match (tensor.role, part) {
            (Role::Output, RunTensor::New(output)) => Some((tensor.name.clone(), output)),
            (Role::Updated, RunTensor::Given(RunInput::Moved(moved))) => {
                Some((tensor.name.clone(), moved))
            }
            _ => None,
        });
        Ok(Outputs { program: loaded.program.name().to_owned(), tensors: tensors.collect() })
    }

    /// The tensors of a run, in the order of the program.
    fn parts<'t>(
        &self,
        loaded: &ProgramCore,
        mut given: Vec<(String, RunInput<'t>)>,
    ) -> Result<Vec<RunTensor<'t>>, StitchError> {
        let program = &loaded.program;
        let mut parts = Vec::with_capacity(program.tensors().len());
        for (number, tensor) in program.tensors().iter().enumerate() {
            let index = given.iter().position(|(name, _)| *name == tensor.name);
            let part = match (index.map(|index| given.swap_remove(index).1), tensor.role) {
                (Some(given), _) => {
                    self.check_given(program.name(), tensor, &given)?;
                    RunTensor::Given(given)
                }
                (None, Role::Constant) => {
                    let constant = loaded.constants.get(number).and_then(Option::as_ref);
                    RunTensor::Constant(constant.map_or(0, |buffer| buffer.address().0))
                }
                (None, Role::Output | Role::Temporary) => {
                    RunTensor::New(self.fresh(&form_of(tensor))?)
                }
                (None, role) => return Err(missing(program.name(), tensor, role)),
            };
            parts.push(part);
        }
        match given.pop() {
            None => Ok(parts),
            Some((tensor, _)) => {
                let names = program.tensors().iter().filter(|one| one.role != Role::Temporary);
                let names: Vec<_> = names.map(|one| one.name.as_str()).collect();
                let (program, known) = (program.name().to_owned(), names.join(", "));
                Err(StitchError::Unknown { program, tensor, known })
            }
        }
    }

    fn check_given(
        &self,
        program: &str,
        wanted: &TensorDescription,
        given: &RunInput<'_>,
    ) -> Result<(), StitchError> {
        let (program, tensor) = (|| program.to_owned(), || wanted.name.clone());
        if let Some(how) = refused_way(wanted.role, given) {
            let (role, given) = (role_text(wanted.role), given.how());
            let (program, tensor) = (program(), tensor());
            return Err(StitchError::Given { program, tensor, role, given, how });
        }
        let found = given.tensor();
        self.check_own(found, &wanted.name)?;
        let form = form_of(wanted);
        if (form.dtype, &form.shape) != (found.form.dtype, &found.form.shape) {
            let (wanted, found) = (form.kind(), found.form.kind());
            return Err(StitchError::Shape { program: program(), tensor: tensor(), wanted, found });
        }
        if form.layout != found.form.layout {
            let (wanted, found) = (Box::new(form.layout), Box::new(found.form.layout.clone()));
            return Err(StitchError::Layout {
                program: program(),
                tensor: tensor(),
                wanted,
                found,
            });
        }
        Ok(())
    }

    /// Where an array of an axis is.
    fn array(
        &self,
        program: &LoadedProgram,
        name: &str,
        array: &Tensor,
    ) -> Result<ArrayBinding, StitchError> {
        self.check_own(array, name)?;
        let Form { dtype, shape, layout } = &array.form;
        if *dtype != DType::I32 || layout.format != Format::RowMajor {
            return Err(StitchError::Array {
                program: program.program().name().to_owned(),
                array: name.to_owned(),
                found: array.form.to_string(),
            });
        }
        Ok(ArrayBinding { address: array.address(), length: shape.iter().product() })
    }

    fn check_own(&self, tensor: &Tensor, name: &str) -> Result<(), StitchError> {
        let what = || format!("tensor {name}");
        if !tensor.block.is_of(&self.shared) {
            return Err(StitchError::OtherSession { what: what() });
        }
        let (found, here) = (tensor.stream(), self.id());
        if found == here {
            Ok(())
        } else {
            Err(StitchError::OtherStream { what: what(), found, here })
        }
    }

    /// A tensor whose elements are nothing in particular.
    fn fresh(&self, form: &Form) -> Result<Tensor, StitchError> {
        let block = self.block(form)?;
        Ok(Tensor::new(block, form.clone()))
    }

    fn block(&self, form: &Form) -> Result<Block, StitchError> {
        let take = || self.shared.block(self.id(), form.bytes(), form.layout.memory);
        match take() {
            Ok(block) => {
                // What used its bytes before has to be over: nothing else orders them.
                if block.is_unordered {
                    self.flush()?;
                }
                Ok(block)
            }
            // What waits to be submitted holds the pool.
            Err(_) => {
                self.flush()?;
                Ok(self.shared.reclaiming(take)?)
            }
        }
    }

    fn fill_zeros(&self, loaded: &ProgramCore, parts: &[RunTensor<'_>]) -> Result<(), StitchError> {
        for (tensor, part) in loaded.program.tensors().iter().zip(parts) {
            if tensor.begins_with_zeros {
                self.flush()?;
                self.stream.fill(GmAddr(part.address()), 0, tensor.bytes())?;
            }
        }
        Ok(())
    }

    fn count_bounces(&self, parts: &[RunTensor<'_>]) {
        let bounced = parts.iter().filter_map(|part| match part {
            RunTensor::Given(given) => Some(given.tensor()),
            RunTensor::New(tensor) => Some(tensor),
            RunTensor::Constant(_) => None,
        });
        let bytes = bounced.filter(|tensor| tensor.is_bounced()).map(Tensor::bytes).sum();
        self.shared.counts.bounced_bytes.add(bytes);
    }

    fn submit(
        &self,
        loaded: &Arc<ProgramCore>,
        bound: Arc<BoundProgram>,
    ) -> Result<(), StitchError> {
        self.shared.counts.runs.add(1);
        let is_full = match &*bound {
            BoundProgram::Plan { .. } | BoundProgram::Listed { .. } => {
                let mut state = self.state();
                while !bound.belongs(state.pending.iter().map(|part| &**part))
                    && !state.pending.is_empty()
                {
                    drop(state);
                    self.flush()?;
                    state = self.state();
                }
                state.pending.push(Arc::clone(&bound));
                self.shared.hold(self.id());
                state.pending.len() >= self.overlap
            }
            BoundProgram::Graph(image) => {
                self.flush()?;
                self.launched(self.stream.run(Arc::clone(image))?);
                false
            }
            BoundProgram::Builder(work) => {
                self.flush()?;
                self.launched(self.stream.run(work.clone())?);
                false
            }
        };
        let key = Arc::as_ptr(&bound).addr();
        self.state().used.insert(key, (Arc::clone(loaded), bound));
        if is_full { self.flush() } else { Ok(()) }
    }

    /// Whom the programs of this stream share their launches with.
    const fn neighbours(&self) -> Neighbours {
        if self.overlap > 1 { Neighbours::Programs } else { Neighbours::None }
    }

    fn launched(&self, ticket: RunTicket) {
        self.shared.counts.launches.add(1);
        self.state().last = Some(ticket);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Submits the runs that wait for others to share their launch.
    ///
    /// # Errors
    /// Those of [`Stream::run`].
    pub fn flush(&self) -> Result<(), StitchError> {
        let pending = std::mem::take(&mut self.state().pending);
        if pending.is_empty() {
            self.shared.submitted(self.id(), 0);
            return Ok(());
        }
        let submitted = self.launch(&pending);
        self.shared.submitted(self.id(), pending.len() as u64);
        self.launched(submitted?);
        Ok(())
    }

    /// Submits these programs as one launch: as one graph where all of them are graphs that the host can join, and as parts that the device
    /// adds otherwise.
    fn launch(&self, parts: &[Arc<BoundProgram>]) -> Result<RunTicket, StitchError> {
        let graphs: Option<Vec<_>> = parts.iter().map(|part| part.tasks()).collect();
        if let Some(graphs) = graphs {
            return Ok(self.stream.run(self.joined(parts, &graphs)?)?);
        }
        let words: Option<Vec<_>> = parts.iter().map(|part| part.part()).collect();
        let words = words.expect("programs that are no parts of a launch share none: `belongs`");
        let options = launch_options(self.session(), &words, self.shared.is_in_group());
        Ok(self.stream.run_with(StitcherCore::launch(&words), options)?)
    }

    /// The image of these graphs; `graphs` are their tasks.
    fn joined(
        &self,
        parts: &[Arc<BoundProgram>],
        graphs: &[&[ListedTask]],
    ) -> Result<Arc<GraphImage>, StitchError> {
        let kept = &mut self.state().joined;
        let is_known = |(known, _): &(Vec<Arc<BoundProgram>>, _)| {
            known.len() == parts.len()
                && known.iter().zip(parts).all(|(one, other)| Arc::ptr_eq(one, other))
        };
        if let Some(at) = kept.iter().position(is_known) {
            let last = kept.len() - 1;
            kept[at..].rotate_left(1);
            return Ok(Arc::clone(&kept[last].1));
        }
        let image = self.session().with_device(|device| joined::image(device, graphs))??;
        let image = Arc::new(image);
        if kept.len() == KEPT_JOINED {
            kept.remove(0);
        }
        kept.push((parts.to_vec(), Arc::clone(&image)));
        Ok(image)
    }

    /// Takes the report of the last launch, with its timeline, where the options of the session ask for one. `None`: the launch is not over, has failed,
    /// or its report was taken. [`synchronize`](Self::synchronize) waits for it.
    #[must_use]
    pub fn take_report(&self) -> Option<RunReport> {
        self.state().last.as_ref()?.take_report()
    }

    /// Waits until everything that was asked is over. Nothing that a program computed comes to the host before.
    ///
    /// # Errors
    /// The fault of a program that failed, in the words of its workload; those of [`Stream::synchronize`].
    pub fn synchronize(&self) -> Result<(), StitchError> {
        self.synchronize_within(None)
    }

    /// As [`synchronize`](Self::synchronize), at most for `limit`, if there is one.
    ///
    /// # Errors
    /// Those of [`synchronize`](Self::synchronize); `TimedOut` in `Session`: what was asked goes on, and can be waited for again.
    pub fn synchronize_within(
        &self,
        limit: impl Into<Option<Duration>>,
    ) -> Result<(), StitchError> {
        self.flush()?;
        self.checked(self.stream.synchronize_within(limit))
    }

    /// As [`synchronize_within`](Self::synchronize_within); `goes_on` is called now and then, and when it returns `false`, the wait ends.
    ///
    /// # Errors
    /// Those of [`synchronize_within`](Self::synchronize_within); `Interrupted` in `Session`.
    pub fn synchronize_while(
        &self,
        limit: Option<Duration>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), StitchError> {
        self.flush()?;
        self.checked(self.stream.synchronize_while(limit, goes_on))
    }

    /// Drops the runs that have not begun. A wait for the stream fails with `Aborted`.
    pub fn abort(&self) {
        let dropped = std::mem::take(&mut self.state().pending).len() as u64;
        self.shared.submitted(self.id(), dropped);
        self.stream.abort();
    }

    /// The result of a wait, with the fault of a program instead of that of its task.
    fn checked(&self, result: Result<(), SessionError>) -> Result<(), StitchError> {
        if let Err(error @ (SessionError::TimedOut { .. } | SessionError::Interrupted { .. })) =
            result
        {
            return Err(error.into());
        }
        let used = std::mem::take(&mut self.state().used);
        // A kernel that ends with a fault lets the launch go on: only its record says so.
        for (loaded, bound) in used.into_values() {
            if let Some(fault) = loaded.take_fault(&bound)? {
                let program = loaded.program.name().to_owned();
                return Err(StitchError::Fault { program, fault: Box::new(fault) });
            }
        }
        Ok(result?)
    }
}

/// The options of a session, with the windows that plans need, and the heaps that builders and collectives need.
pub(super) fn launch_options(
    session: &Session,
    parts: &[LaunchPart],
    is_in_group: bool,
) -> RunOptions {
    let of_session = session.run_options();
    let usual = StreamCapacities::STANDARD;
    let mut capacities = for_plans(of_session.capacities, usual.window);
    let has_builder = parts.iter().any(|part| matches!(part, LaunchPart::Builder(_)));
    // The parts of other ranks come into heaps. Whether a plan has collectives, its words alone say.
    let has_heaps = has_builder || is_in_group;
    if has_heaps && of_session.capacities.stream == StreamCapacities::OFF {
        capacities.stream.heap_rings = usual.heap_rings;
        capacities.stream.heap_bytes = usual.heap_bytes;
    }
    RunOptions { capacities, ..of_session.clone() }
}

/// Tensors of a stream.
impl ProgramStream {
    /// Copies a tensor of the host to the device, and converts it there if the layout asks for that.
    ///
    /// # Errors
    /// The device has no room; there is no such conversion.
    pub fn to_device(
        &self,
        from: &HostTensor,
        layout: &TensorLayout,
    ) -> Result<Tensor, StitchError> {
        let tensor = self.fresh(&row_major(from.dtype(), from.shape()))?;
        self.flush()?;
        self.stream.copy_to_device(tensor.address(), from.bytes().to_vec())?;
        self.to_layout(tensor, layout)
    }

    /// A dense tensor whose elements are nothing in particular until a command of this stream writes them.
    ///
    /// # Errors
    /// The device has no room; there is no tensor of these extents.
    pub fn uninitialised(&self, dtype: DType, shape: &[u64]) -> Result<Tensor, StitchError> {
        let form = row_major(dtype, shape);
        check_form(&form)?;
        self.fresh(&form)
    }

    /// Launches a kernel, as [`Stream::launch_blocks`] does, after the programs that were asked for before. Tensors that are dropped after the call keep their
    /// memory until the launch is over.
    ///
    /// # Errors
    /// A tensor is of another stream, or has fewer bytes; those of [`Stream::launch_blocks`].
    pub fn launch_kernel(
        &self,
        func_id: FuncId,
        blocks: u32,
        args: &[KernelArgument<'_>],
    ) -> Result<(), StitchError> {
        let word = |arg: &KernelArgument<'_>| match arg {
            KernelArgument::Word(word) => Ok::<_, StitchError>(*word),
            KernelArgument::Tensor(tensor, offset) => {
                self.check_own(tensor, "of the launch")?;
                self.check_bytes(tensor, *offset, 0)?;
                Ok(tensor.address().0 + offset)
            }
        };
        let words: Vec<u64> = args.iter().map(word).collect::<Result<_, _>>()?;
        self.flush()?;
        self.stream.launch_blocks(func_id, blocks, &words)?;
        Ok(())
    }

    /// Waits for a tensor, and copies bytes of it to the host: so many from `first` on.
    ///
    /// # Errors
    /// The tensor is of another stream, or has fewer bytes; those of [`synchronize`](Self::synchronize).
    pub fn read_bytes(
        &self,
        tensor: &Tensor,
        first: u64,
        bytes: usize,
    ) -> Result<Vec<u8>, StitchError> {
        self.check_own(tensor, "to copy")?;
        self.check_bytes(tensor, first, bytes as u64)?;
        let copy = HostBuffer::new(bytes)?;
        if bytes > 0 {
            self.flush()?;
            self.stream.copy_from_device(GmAddr(tensor.address().0 + first), &copy)?;
        }
        self.synchronize()?;
        Ok(copy.to_vec())
    }

    fn check_bytes(&self, tensor: &Tensor, first: u64, bytes: u64) -> Result<(), StitchError> {
        if first.checked_add(bytes).is_some_and(|end| end <= tensor.bytes()) {
            return Ok(());
        }
        Err(StitchError::Session(SessionError::Argument {
            what: "bytes of a tensor",
            found: format!("{bytes} bytes from byte {first} on, of {}", tensor.bytes()),
            allowed: "bytes that the tensor has",
        }))
    }

    /// A tensor of zeros.
    ///
    /// # Errors
    /// The device has no room; a tensor of these extents has no such layout.
    pub fn zeros(
        &self,
        dtype: DType,
        shape: &[u64],
        layout: &TensorLayout,
    ) -> Result<Tensor, StitchError> {
        let form = Form { dtype, shape: shape.to_vec(), layout: layout.clone() };
        check_form(&form)?;
        if layout.padding != 0 && fills_up(&form) {
            let row_major = self.zeros(dtype, shape, &TensorLayout::device())?;
            return self.to_layout(row_major, layout);
        }
        let tensor = self.fresh(&form)?;
        self.flush()?;
        self.stream.fill(tensor.address(), 0, tensor.bytes())?;
        Ok(tensor)
    }

    /// Waits for a tensor, and copies it to the host, converted to row-major on the device where it is not.
    ///
    /// # Errors
    /// Those of [`synchronize`](Self::synchronize) and [`converted`](Self::converted).
    pub fn to_host(&self, tensor: &Tensor) -> Result<HostTensor, StitchError> {
        self.check_own(tensor, "to copy")?;
        let wanted = row_major(tensor.form.dtype, &tensor.form.shape);
        let converted;
        let from = match tensor.form.layout.format == wanted.layout.format {
            true => tensor,
            false => {
                converted = self.converted(tensor, &wanted.layout)?;
                &converted
            }
        };
        let elements = HostBuffer::new(usize::try_from(from.bytes()).unwrap_or(usize::MAX))?;
        self.flush()?;
        self.stream.copy_from_device(from.address(), &elements)?;
        self.synchronize()?;
        HostTensor::new(tensor.form.dtype, &tensor.form.shape, elements.to_vec())
    }

    /// The tensor in a layout. It is the same tensor where it has the layout; otherwise it is converted, and the old one is given up.
    ///
    /// # Errors
    /// There is no such conversion; the device has no room.
    pub fn to_layout(&self, tensor: Tensor, layout: &TensorLayout) -> Result<Tensor, StitchError> {
        if tensor.has_layout(layout) { Ok(tensor) } else { self.converted(&tensor, layout) }
    }

    /// A new tensor in a layout, with the elements of another one.
    ///
    /// # Errors
    /// As [`to_layout`](Self::to_layout).
    pub fn converted(&self, tensor: &Tensor, layout: &TensorLayout) -> Result<Tensor, StitchError> {
        self.convert(tensor, Form { layout: layout.clone(), ..tensor.form.clone() })
    }

    /// A new tensor of another element type, in the layout of the first one; what fills up its tiles is converted as its elements are.
    ///
    /// # Errors
    /// As [`to_layout`](Self::to_layout).
    pub fn to_dtype(&self, tensor: &Tensor, dtype: DType) -> Result<Tensor, StitchError> {
        let mut form = Form { dtype, ..tensor.form.clone() };
        form.layout.padding = bits_as(tensor.form.dtype, form.layout.padding, dtype);
        self.convert(tensor, form)
    }

    fn convert(&self, tensor: &Tensor, form: Form) -> Result<Tensor, StitchError> {
        self.check_own(tensor, "to convert")?;
        check_form(&form)?;
        if matches!(form.layout.memory, MemorySpace::Host | MemorySpace::Pinned) {
            return Err(StitchError::Conversion {
                from: tensor.form.to_string(),
                to: form.to_string(),
                why: "a tensor of the host is another type; use to_host",
            });
        }
        let target = self.fresh(&form)?;
        let moved = TensorLayout { memory: form.layout.memory, ..tensor.form.layout.clone() };
        if form.layout == moved && form.dtype == tensor.form.dtype {
            self.flush()?;
            self.stream.copy_on_device(tensor.address(), target.address(), tensor.bytes())?;
            return Ok(target);
        }
        self.shared.counts.conversions.add(1);
        self.shared.counts.converted_bytes.add(target.bytes());
        let program = self.conversions.program(&tensor.form, &form)?;
        debug_assert!(
            program.0.program.tensors().iter().map(|one| one.name.as_str()).eq([SOURCE, TARGET])
        );
        if fills_up(&form) {
            self.flush()?;
            let (address, padding) = (target.address(), form.layout.padding);
            self.stream.fill_elements(address, form.dtype, padding, target.bytes())?;
        }
        let addresses = [tensor.address().0, target.address().0];
        let values = (crate::workload::WorkloadBindings::new(), self.neighbours());
        let bound = program.0.bind(&addresses, values, self.session())?;
        self.submit(&program.0, bound)?;
        Ok(target)
    }

    /// Takes a tensor over from another stream of the same session: this stream waits for what the other one was asked so far.
    ///
    /// # Errors
    /// The tensor is not one of `from`; those of [`Stream::record`] and [`Stream::wait`].
    pub fn take_over(
        &self,
        mut tensor: Tensor,
        from: &ProgramStream,
    ) -> Result<Tensor, StitchError> {
        from.check_own(&tensor, "to take over")?;
        if !tensor.block.is_of(&self.shared) {
            return Err(StitchError::OtherSession { what: "the other stream".to_owned() });
        }
        from.flush()?;
        self.flush()?;
        let event = self.session().event()?;
        from.stream.record(&event)?;
        self.stream.wait(&event)?;
        tensor.block.transfer_to(self.id());
        Ok(tensor)
    }
}

fn form_of(tensor: &TensorDescription) -> Form {
    Form { dtype: tensor.dtype, shape: tensor.shape.clone(), layout: tensor.layout.clone() }
}

fn row_major(dtype: DType, shape: &[u64]) -> Form {
    Form { dtype, shape: shape.to_vec(), layout: TensorLayout::device() }
}

/// Whether there are elements that only fill up tiles.
fn fills_up(form: &Form) -> bool {
    matches!(form.layout.format, Format::Tiles { .. }) && form.layout.has_padding(&form.shape)
}

fn check_form(form: &Form) -> Result<(), StitchError> {
    let described = TensorDescription {
        name: "tensor".to_owned(),
        role: Role::Temporary,
        dtype: form.dtype,
        shape: form.shape.clone(),
        layout: form.layout.clone(),
        begins_with_zeros: false,
    };
    let wrong = |what| pto_workload::program::ProgramError::Tensor { name: form.to_string(), what };
    described.defect().map_or(Ok(()), |what| Err(wrong(what).into()))
}

/// What to do instead, where a tensor of a role cannot be given so.
const fn refused_way(role: Role, given: &RunInput<'_>) -> Option<&'static str> {
    match (role, given) {
        (Role::Input, RunInput::Borrowed(_) | RunInput::Moved(_))
        | (Role::Updated, RunInput::Updated(_) | RunInput::Moved(_))
        | (Role::Output, RunInput::Into(_)) => None,
        (Role::Input, _) => Some("use borrow or give"),
        (Role::Updated, _) => Some("use update or give, because the program changes it"),
        (Role::Output, _) => Some("use into, or leave it out and take it from the outputs"),
        (Role::Temporary | Role::Constant, _) => Some("leave it out"),
    }
}

fn missing(program: &str, tensor: &TensorDescription, role: Role) -> StitchError {
    let how = match role {
        Role::Updated => "use inputs.update or inputs.give",
        _ => "use inputs.borrow or inputs.give",
    };
    StitchError::Missing { program: program.to_owned(), tensor: tensor.name.clone(), how }
}

impl Drop for ProgramStream {
    fn drop(&mut self) {
        if let Err(error) = self.flush() {
            log::warn!("runs of a stream that was dropped are not submitted: {error}");
        }
        self.shared.close(self.id());
    }
}
