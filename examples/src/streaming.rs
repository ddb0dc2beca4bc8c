//! What the programs with tensors share: tensors from orchestration words, their tiles, and tasks.

use pto_abi::limits::MAX_RANK;
use pto_abi::{Fault, GmAddr, TaskId};
use pto_graph::{
    BuildError, Chain, ChainTemplate, ElementType, GraphBuilder, Link, StreamBuilder, TaskSpec,
    TensorRange, TensorTask, TensorView, Variation,
};

/// Elements of 4 bytes in a line. What several cores write is in lines of their own: a core writes whole lines back.
pub(crate) const LINE: u64 = 16;

/// An extent, or a position, of a tensor.
///
/// # Errors
/// `BUILD_ORCH_ARGS`: no tensor has it.
pub(crate) fn extent(size: u64) -> Result<u32, Fault> {
    u32::try_from(size).map_err(|_| Fault::BUILD_ORCH_ARGS)
}

/// A whole tensor of the host's, in row-major order.
///
/// # Errors
/// `BUILD_ORCH_ARGS`: no tensor has these extents.
pub(crate) fn dense(
    at: GmAddr,
    element: ElementType,
    shape: &[u64],
) -> Result<TensorView<'static>, Fault> {
    let mut extents = [0; MAX_RANK];
    let extents = extents.get_mut(..shape.len()).ok_or(Fault::BUILD_ORCH_ARGS)?;
    for (to, from) in extents.iter_mut().zip(shape) {
        *to = extent(*from)?;
    }
    Ok(TensorView::dense(at, element, extents))
}

/// [`dense`], of `f32`.
pub(crate) fn floats(at: GmAddr, shape: &[u64]) -> Result<TensorView<'static>, Fault> {
    dense(at, ElementType::F32, shape)
}

/// A part of one dimension: its start and its extent, as [`tiles`](crate::args::tiles) gives them.
pub(crate) fn part<'s>(
    view: TensorView<'s>,
    dim: usize,
    (start, len): (u64, u64),
) -> Result<TensorView<'s>, Fault> {
    Ok(view.slice(dim, extent(start)?, extent(len)?))
}

/// A tile of a matrix.
pub(crate) fn tile<'s>(
    matrix: TensorView<'s>,
    rows: (u64, u64),
    cols: (u64, u64),
) -> Result<TensorView<'s>, Fault> {
    part(part(matrix, 0, rows)?, 1, cols)
}

/// Bytes of an `f32`.
pub(crate) const F32: u64 = 4;

/// An address that grows by so many elements of `f32` from kernel to kernel.
pub(crate) const fn moves(arg: usize, elements: u64) -> Variation<'static> {
    Variation::by(arg, (elements * F32).cast_signed())
}

/// Submits a task of which the program needs no id.
///
/// # Errors
/// Those of [`StreamBuilder::submit_tensors`].
// Not inlined: programs are called with each kind of builder, and this is most of what they do.
#[inline(never)]
pub(crate) fn submit<G: StreamBuilder>(
    stream: &mut G,
    task: &TensorTask<'_>,
) -> Result<(), BuildError> {
    stream.submit_tensors(task)?;
    Ok(())
}

/// Submits a range of up to [`WIDTH`] tasks of which the program needs no ids.
///
/// # Errors
/// Those of [`StreamBuilder::submit_tensor_range`].
#[inline(never)]
pub(crate) fn submit_range<G: StreamBuilder>(
    stream: &mut G,
    range: &TensorRange<'_>,
) -> Result<(), BuildError> {
    let mut ids = [TaskId::NONE; WIDTH];
    let count = range.tasks() as usize;
    let ids = ids.get_mut(..count).ok_or(Fault::BUILD_RANGE_LENGTH)?;
    stream.submit_tensor_range(range, ids)?;
    Ok(())
}

/// Tasks of a stage that run side by side, at most: more than a device has cores of one kind.
pub(crate) const WIDTH: usize = 64;

/// The tasks of a stage that later tasks wait for. A stage may have more than `W` tasks: each waits for the one that
/// many before, so that the last ones stand for all of them.
pub(crate) struct StageTasks<const W: usize = WIDTH> {
    ids: [TaskId; W],
    count: usize,
}

impl StageTasks {
    pub(crate) const fn new() -> Self {
        Self::narrow()
    }
}

impl<const W: usize> StageTasks<W> {
    /// A stage of which few tasks run side by side.
    pub(crate) const fn narrow() -> Self {
        Self { ids: [TaskId::NONE; W], count: 0 }
    }

    /// What waits for all of these waits for the whole stage.
    pub(crate) fn tasks(&self) -> &[TaskId] {
        self.ids.get(..self.count).unwrap_or(&self.ids)
    }

    /// Takes one more task. It has to wait for what [`before`](Self::before) says.
    pub(crate) fn push(&mut self, id: TaskId) {
        self.ids[self.count % W] = id;
        self.count += 1;
    }

    /// The task that came last.
    pub(crate) fn newest(&self) -> Option<TaskId> {
        self.count.checked_sub(1).map(|last| self.ids[last % W])
    }

    /// The task whose slot the next task takes, and for which it has to wait.
    pub(crate) fn before(&self) -> Option<TaskId> {
        (self.count >= W).then(|| self.ids[self.count % W])
    }

    /// Task number `index` of the stage, or one that waits for it.
    ///
    /// # Errors
    /// `BUILD_UNKNOWN_TASK`: there is none.
    pub(crate) fn at(&self, index: usize) -> Result<TaskId, Fault> {
        if index < self.count { Ok(self.ids[index % W]) } else { Err(Fault::BUILD_UNKNOWN_TASK) }
    }

    /// Submits one more task of the stage, after all of `after`.
    pub(crate) fn task<G: GraphBuilder>(
        &mut self,
        graph: &mut G,
        task: TaskSpec<'_>,
        after: &[Option<TaskId>],
    ) -> Result<(), BuildError> {
        let id = graph.add_task(task)?;
        for before in after.iter().copied().chain([self.before()]).flatten() {
            graph.add_edge(before, id)?;
        }
        graph.publish(id)?;
        self.push(id);
        Ok(())
    }

    /// Submits a chain of these links as one more task of the stage, after all of `after`.
    pub(crate) fn chain<G: GraphBuilder>(
        &mut self,
        graph: &mut G,
        links: &[Link<'_>],
        after: &[TaskId],
    ) -> Result<(), BuildError> {
        let (all, count) = self.producers_with(after);
        let id = graph.submit_chain(&Chain::new(links), all.get(..count).unwrap_or(&all))?;
        self.push(id);
        Ok(())
    }

    /// The same, of the chain of a template.
    pub(crate) fn template<G: GraphBuilder>(
        &mut self,
        graph: &mut G,
        template: &ChainTemplate,
        after: &[TaskId],
    ) -> Result<(), BuildError> {
        let (all, count) = self.producers_with(after);
        let id = graph.submit_template(template, all.get(..count).unwrap_or(&all))?;
        self.push(id);
        Ok(())
    }

    /// What the next task has to wait for: all of `after`, and the task whose slot it takes; so many of these.
    fn producers_with(&self, after: &[TaskId]) -> ([TaskId; WIDTH + 1], usize) {
        let mut all = [TaskId::NONE; WIDTH + 1];
        let known = after.iter().copied().chain(self.before());
        let count = all.iter_mut().zip(known).map(|(to, id)| *to = id).count();
        (all, count)
    }
}
