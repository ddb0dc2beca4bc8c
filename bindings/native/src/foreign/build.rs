//! A build that foreign code makes.

use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;

use pto_abi::limits::MAX_ARGS;
use pto_abi::{CoreKind, Fault, FuncId, GmAddr, TaskId};
use pto_graph::{
    Bindings, BuildError, HostedBuilder, Recording, StreamBuilder, TaskSpec, TensorView,
};

use crate::foreign::alias::Alias;
use crate::foreign::numbers::Numbers;

/// Bytes of a word of global memory.
const WORD: u64 = size_of::<u32>() as u64;
/// Words that [`Build::read`] reads at once.
const LINE_WORDS: usize = 16;

/// The graph that a builder program adds to, and what became of its calls.
pub struct Build<'g> {
    graph: &'g mut dyn HostedBuilder,
    numbers: Numbers,
    /// Those of the recording that is being made.
    recorded: Option<Numbers>,
    fault: Option<Fault>,
    alias: Alias,
}

/// How a platform finds the build of a builder program that calls.
pub trait Finder {
    /// Calls `act` on the build of `runtime`; `failed` if there is none on this thread.
    fn find<R>(runtime: *mut c_void, failed: R, act: impl FnOnce(&mut Build<'_>) -> R) -> R;
}

/// A task, as foreign code states it.
#[derive(Clone, Copy, Debug)]
pub struct NewTask<'a> {
    /// A func id.
    pub func_id: i64,
    /// A `CoreKind`.
    pub core_type: i64,
    /// Its words.
    pub args: &'a [u64],
    /// The code; null: as registered.
    pub kernel: GmAddr,
}

/// The func id and the core kind that numbers are.
///
/// # Errors
/// `BUILD_UNKNOWN_FUNC`, `BUILD_UNKNOWN_KIND`.
pub fn known(func_id: i64, core_type: i64) -> Result<(FuncId, CoreKind), Fault> {
    let func_id = u16::try_from(func_id).map_err(|_| Fault::BUILD_UNKNOWN_FUNC)?;
    let kind = u8::try_from(core_type).ok().and_then(|kind| CoreKind::try_from(kind).ok());
    Ok((FuncId(func_id), kind.ok_or(Fault::BUILD_UNKNOWN_KIND)?))
}

impl<'g> Build<'g> {
    /// A build that begins.
    pub fn new(graph: &'g mut dyn HostedBuilder) -> Self {
        Self {
            graph,
            numbers: Numbers::default(),
            recorded: None,
            fault: None,
            alias: Alias::default(),
        }
    }

    /// The program sees other addresses than those of the device.
    #[must_use]
    pub const fn seeing(mut self, alias: Alias) -> Self {
        self.alias = alias;
        self
    }

    /// Which addresses the program sees.
    #[must_use]
    pub const fn alias(&self) -> Alias {
        self.alias
    }

    /// What the build ends with when the program has returned `code`: the first call that failed, whatever it returned.
    ///
    /// # Errors
    /// That fault, or `Failed` with a code that is not zero.
    pub fn end(&self, code: i32) -> Result<(), BuildError> {
        match (self.fault, code) {
            (Some(fault), _) => Err(fault.into()),
            (None, 0) => Ok(()),
            (None, code) => Err(BuildError::Failed(code)),
        }
    }

    /// The first call that failed.
    #[must_use]
    pub const fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// How many tasks were added.
    #[must_use]
    pub const fn tasks(&self) -> u64 {
        self.numbers.count()
    }

    /// The words of the run.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        self.graph.orch_args()
    }

    /// Does one call, unless an earlier one failed.
    ///
    /// # Errors
    /// The fault of the call, or the earlier one.
    pub fn call<R>(&mut self, act: impl FnOnce(&mut Self) -> Result<R, Fault>) -> Result<R, Fault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        act(self).inspect_err(|fault| self.fault = Some(*fault))
    }

    /// Adds a task, unpublished; its number.
    ///
    /// # Errors
    /// Those of [`known`] and `GraphBuilder::add_task`.
    pub fn add_task(&mut self, task: &NewTask<'_>) -> Result<i64, Fault> {
        let (func_id, kind) = known(task.func_id, task.core_type)?;
        let spec = TaskSpec { func_id, kind, args: task.args, kernel: task.kernel };
        let id = if self.alias == Alias::default() {
            self.graph.add_task(spec)?
        } else {
            self.add_seen_task(spec)?
        };
        self.numbers.note(id)
    }

    /// Adds a task whose words are as the program sees them.
    #[cold]
    fn add_seen_task(&mut self, task: TaskSpec<'_>) -> Result<TaskId, Fault> {
        let mut held = [0; MAX_ARGS];
        let args = held.get_mut(..task.args.len()).ok_or(Fault::BUILD_TOO_MANY_ARGS)?;
        args.iter_mut().zip(task.args).for_each(|(to, word)| *to = self.alias.device(*word));
        let task = TaskSpec { args, ..task };
        self.graph.add_task(task)
    }

    /// Makes one task wait for another.
    ///
    /// # Errors
    /// `BUILD_UNKNOWN_TASK`, and those of `GraphBuilder::add_edge`.
    pub fn add_edge(&mut self, producer: i64, consumer: i64) -> Result<(), Fault> {
        let (producer, consumer) = (self.id(producer)?, self.id(consumer)?);
        self.graph.add_edge(producer, consumer).map(drop)
    }

    /// Makes a task visible to the schedulers.
    ///
    /// # Errors
    /// `BUILD_UNKNOWN_TASK`, and those of `GraphBuilder::publish`.
    pub fn publish(&mut self, task: i64) -> Result<(), Fault> {
        let task = self.id(task)?;
        self.graph.publish(task)
    }

    /// Reads a word of global memory.
    ///
    /// # Errors
    /// `BUILD_GM_RANGE`.
    pub fn read_u32(&self, address: GmAddr) -> Result<u32, Fault> {
        self.graph.read_u32(GmAddr(self.alias.device(address.0)))
    }

    /// Reads bytes of global memory. They need no alignment; the words that hold them have to be in global memory.
    ///
    /// # Errors
    /// `BUILD_GM_RANGE`.
    pub fn read(&self, address: GmAddr, to: &mut [MaybeUninit<u8>]) -> Result<(), Fault> {
        let address = GmAddr(self.alias.device(address.0));
        let mut skipped = usize::try_from(address.0 % WORD).unwrap_or(0);
        let mut at = address.0 - address.0 % WORD;
        let mut rest = to;
        let mut words = [0; LINE_WORDS];
        while !rest.is_empty() {
            let count = (skipped + rest.len()).div_ceil(size_of::<u32>()).min(LINE_WORDS);
            self.graph.read_words(GmAddr(at), &mut words[..count])?;
            let bytes = words[..count].iter().flat_map(|word| word.to_le_bytes()).skip(skipped);
            let length = (count * size_of::<u32>() - skipped).min(rest.len());
            let (now, later) = rest.split_at_mut(length);
            now.iter_mut().zip(bytes).for_each(|(to, byte)| _ = to.write(byte));
            (rest, skipped) = (later, 0);
            at = at.checked_add(LINE_WORDS as u64 * WORD).ok_or(Fault::BUILD_GM_RANGE)?;
        }
        Ok(())
    }

    /// The task with a number.
    ///
    /// # Errors
    /// `BUILD_UNKNOWN_TASK`.
    pub fn id(&self, task: i64) -> Result<TaskId, Fault> {
        self.recorded.as_ref().unwrap_or(&self.numbers).id(task)
    }

    /// Notes a task that was added; its number.
    ///
    /// # Errors
    /// `BUILD_TASKS_FULL`.
    pub fn note(&mut self, id: TaskId) -> Result<i64, Fault> {
        self.recorded.as_mut().unwrap_or(&mut self.numbers).note(id)
    }

    /// Begins a recording, whose tasks have numbers of their own. The recording's number in the run.
    ///
    /// # Errors
    /// `BUILD_NOT_STREAMING`, and those of [`StreamBuilder::begin_recording`].
    pub fn begin_recording(&mut self, shapes: &[TensorView<'_>]) -> Result<u32, Fault> {
        let serial = self.stream()?.begin_recording(shapes)?;
        self.recorded = Some(Numbers::default());
        Ok(serial)
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// As [`StreamBuilder::end_recording`].
    pub fn end_recording(&mut self) -> Result<Recording, Fault> {
        let recording = self.stream()?.end_recording()?;
        self.recorded = None;
        Ok(recording)
    }

    /// Replays a recording: its tasks are counted.
    ///
    /// # Errors
    /// As [`StreamBuilder::replay`].
    pub fn replay(&mut self, recording: &Recording, bindings: &Bindings<'_>) -> Result<(), Fault> {
        self.stream()?.replay(recording, bindings)?;
        self.numbers.skip(recording.tasks);
        Ok(())
    }

    /// The builder of the graph.
    pub(crate) fn graph(&mut self) -> &mut dyn HostedBuilder {
        self.graph
    }

    /// The builder of tensors.
    ///
    /// # Errors
    /// `BUILD_NOT_STREAMING`.
    pub fn stream(&mut self) -> Result<&mut dyn StreamBuilder, Fault> {
        self.graph.as_stream().ok_or(Fault::BUILD_NOT_STREAMING)
    }
}

/// Does one call that gives nothing back: 0, or -1.
pub(crate) fn done<F: Finder>(
    runtime: *mut c_void,
    act: impl FnOnce(&mut Build<'_>) -> Result<(), Fault>,
) -> c_int {
    F::find(runtime, -1, |build| build.call(act).map_or(-1, |()| 0))
}
