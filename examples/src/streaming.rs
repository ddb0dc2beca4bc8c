//! What the programs with tensors share: tensors from orchestration words, their tiles, and tasks.

use pto_abi::limits::MAX_RANK;
use pto_abi::{CoreKind, Fault, FuncId, GmAddr};
use pto_graph::{Arg, BuildError, ElementType, Predicate, StreamBuilder, TensorTask, TensorView};

/// Most arguments of a task of the examples.
const MAX_ARGS: usize = 16;
/// Elements of 4 bytes in a line. What several cores write stands in lines of their own: a core writes whole lines back.
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

/// A task on a cube core: tensors first, then words.
///
/// # Errors
/// As [`Task::submit`].
pub(crate) fn cube<G: StreamBuilder>(
    stream: &mut G,
    func_id: FuncId,
    tensors: &[Arg<'_>],
    words: &[u64],
) -> Result<(), BuildError> {
    Task::new(func_id, CoreKind::AIC).submit(stream, tensors, words)
}

/// A task on a vector core: tensors first, then words.
///
/// # Errors
/// As [`Task::submit`].
pub(crate) fn vector<G: StreamBuilder>(
    stream: &mut G,
    func_id: FuncId,
    tensors: &[Arg<'_>],
    words: &[u64],
) -> Result<(), BuildError> {
    Task::new(func_id, CoreKind::AIV).submit(stream, tensors, words)
}

/// What runs, where, and whether.
pub(crate) struct Task<'a> {
    /// The kernel.
    pub(crate) func_id: FuncId,
    /// Where it runs.
    pub(crate) kind: CoreKind,
    /// Kernels on the vector cores of the same cluster.
    pub(crate) vectors: &'a [FuncId],
    /// What it depends on whether it runs; `None`: it does.
    pub(crate) when: Option<&'a Predicate<'a>>,
}

impl Task<'_> {
    /// One kernel on one core.
    pub(crate) const fn new(func_id: FuncId, kind: CoreKind) -> Self {
        Self { func_id, kind, vectors: &[], when: None }
    }

    /// Submits it: tensors first, then words.
    ///
    /// # Errors
    /// Those of [`StreamBuilder::submit_tensors`]; `BUILD_TOO_MANY_ARGS`.
    // Not inlined: programs are called with each kind of builder, and this is most of what they do.
    #[inline(never)]
    pub(crate) fn submit<G: StreamBuilder>(
        &self,
        stream: &mut G,
        tensors: &[Arg<'_>],
        words: &[u64],
    ) -> Result<(), BuildError> {
        let mut args = [Arg::Scalar(0); MAX_ARGS];
        let count = tensors.len() + words.len();
        let words = words.iter().map(|word| Arg::Scalar(*word));
        for (arg, given) in args.iter_mut().zip(tensors.iter().copied().chain(words)) {
            *arg = given;
        }
        let args = args.get(..count).ok_or(Fault::BUILD_TOO_MANY_ARGS)?;
        let task = TensorTask::new(self.func_id, self.kind, args).mix(self.vectors);
        match self.when {
            Some(predicate) => stream.submit_tensors(&task.when(predicate))?,
            None => stream.submit_tensors(&task)?,
        };
        Ok(())
    }
}
