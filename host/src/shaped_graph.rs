//! Runs graphs of program files whose tasks are more than one kernel on one core. The host writes the tasks as words into the memory of
//! the device, and a builder adds them there under the streaming runtime, because an image of a graph has no room for such tasks.
//!
//! ```text
//! tasks --words--> GM --build, by the name BUILDER--> tasks whose edges are those of the program: their arguments are words
//! ```
//! Every simulated device has the builder ([`AnyBuilders`](crate::builders::AnyBuilders)). Images of firmware do not.

use pto_abi::{CoreKind, Fault, FuncId, GmAddr};
use pto_graph::{
    Arg, BuildError, Comparison, ElementType, Predicate, Priority, StartMode, StreamBuilder,
    TensorTask, TensorView,
};

/// The name by which a launch asks for [`build`]. Its word is the address of the words.
pub(crate) const BUILDER: &str = "pto.shaped_graph";

/// A task with addresses in the place of tensors.
pub(crate) struct ShapedTask<'t> {
    pub(crate) func: FuncId,
    pub(crate) kind: CoreKind,
    pub(crate) args: Vec<u64>,
    pub(crate) producers: &'t [usize],
    pub(crate) mix: &'t [FuncId],
    pub(crate) blocks: u32,
    pub(crate) start: StartMode,
    pub(crate) priority: Priority,
    pub(crate) when: Option<ShapedCondition>,
}

/// When a task runs.
pub(crate) struct ShapedCondition {
    pub(crate) address: GmAddr,
    pub(crate) element: ElementType,
    pub(crate) comparison: Comparison,
    pub(crate) value: u64,
}

/// The words of tasks.
pub(crate) fn words(tasks: &[ShapedTask<'_>]) -> Vec<u64> {
    let mut words = vec![tasks.len() as u64];
    for task in tasks {
        words.extend([u64::from(task.func.0), task.kind.get().into(), task.args.len() as u64]);
        words.extend(&task.args);
        words.push(task.producers.len() as u64);
        words.extend(task.producers.iter().map(|producer| *producer as u64));
        words.push(task.mix.len() as u64);
        words.extend(task.mix.iter().map(|func| u64::from(func.0)));
        let (start, priority) = (task.start.get(), task.priority.get());
        words.extend([u64::from(task.blocks), start.into(), priority.into()]);
        words.push(task.when.is_some().into());
        if let Some(when) = &task.when {
            let codes = [when.element.get(), when.comparison.get()].map(u64::from);
            words.extend([when.address.0, codes[0], codes[1], when.value]);
        }
    }
    words
}

/// Adds the tasks.
pub(crate) fn build<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let first = stream.orch_args().first().copied().ok_or(Fault::BUILD_FAILED)?;
    let mut words = Words { at: first };
    let mut ids = Vec::new();
    for _ in 0..words.next(stream)? {
        let func = words.func(stream)?;
        let kind = words.code(stream, CoreKind::try_from)?;
        let args: Vec<_> = words.list(stream)?.into_iter().map(Arg::Scalar).collect();
        let producers = words.list(stream)?;
        let after = producers
            .iter()
            .map(|producer| usize::try_from(*producer).ok().and_then(|at| ids.get(at).copied()));
        let after = after.collect::<Option<Vec<_>>>().ok_or(Fault::BUILD_UNKNOWN_TASK)?;
        let mix = words.next(stream)?;
        let mix = (0..mix).map(|_| words.func(stream)).collect::<Result<Vec<_>, _>>()?;
        let blocks = u32::try_from(words.next(stream)?).map_err(|_| Fault::STREAM_BLOCKS)?;
        let start = words.code(stream, StartMode::try_from)?;
        let priority = words.code(stream, Priority::try_from)?;
        let when = words.condition(stream)?;
        let predicate = when.as_ref().map(|when| {
            let view = TensorView::dense(when.address, when.element, &[1]);
            Predicate::new(&view, &[0], when.comparison, when.value)
        });
        let task = TensorTask::new(func, kind, &args).after(&after).mix(&mix).blocks(blocks);
        let mut task = task.priority(priority);
        if start == StartMode::SYNC {
            task = task.sync_start();
        }
        if let Some(predicate) = &predicate {
            task = task.when(predicate);
        }
        ids.push(stream.submit_tensors(&task)?);
    }
    Ok(())
}

/// Where the next word is.
struct Words {
    at: u64,
}

impl Words {
    fn next<G: StreamBuilder>(&mut self, stream: &G) -> Result<u64, Fault> {
        let [low, high] = [self.at, self.at.wrapping_add(4)].map(|at| stream.read_u32(GmAddr(at)));
        self.at = self.at.wrapping_add(8);
        Ok(u64::from(low?) | u64::from(high?) << 32)
    }

    fn list<G: StreamBuilder>(&mut self, stream: &G) -> Result<Vec<u64>, Fault> {
        (0..self.next(stream)?).map(|_| self.next(stream)).collect()
    }

    fn func<G: StreamBuilder>(&mut self, stream: &G) -> Result<FuncId, Fault> {
        let word = u16::try_from(self.next(stream)?);
        word.map(FuncId).map_err(|_| Fault::BUILD_UNKNOWN_FUNC)
    }

    /// A member of a closed set.
    fn code<G: StreamBuilder, T, E>(
        &mut self,
        stream: &G,
        member: impl Fn(u8) -> Result<T, E>,
    ) -> Result<T, Fault> {
        let code = u8::try_from(self.next(stream)?).ok();
        code.and_then(|code| member(code).ok()).ok_or(Fault::BUILD_FAILED)
    }

    fn condition<G: StreamBuilder>(
        &mut self,
        stream: &G,
    ) -> Result<Option<ShapedCondition>, Fault> {
        if self.next(stream)? == 0 {
            return Ok(None);
        }
        let address = GmAddr(self.next(stream)?);
        let element = self.code(stream, ElementType::try_from)?;
        let comparison = self.code(stream, Comparison::try_from)?;
        Ok(Some(ShapedCondition { address, element, comparison, value: self.next(stream)? }))
    }
}
