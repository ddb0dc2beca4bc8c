//! The tile machine: executes a [`Kernel`], one instruction a tile.
//!
//! A run has three kinds of memory: the tensors, through [`TileView`](super::TileView)s that check every access; the frame, in which each value has
//! its slot; and working storage of products. The last two are the caller's scratch memory.

use super::call::Call;
use super::fault::{FaultCause, TileFault};
use super::kernel::Kernel;
use super::op::Op;
use super::param::Param;
use super::run::KernelRun;
use super::step::Step;
use super::wide::Wide;

/// Executes kernels.
#[derive(Clone, Copy, Debug)]
pub struct Interpreter {
    wide: Wide,
}

impl Default for Interpreter {
    fn default() -> Self {
        Self::new()
    }
}

impl Interpreter {
    /// A machine that uses what this processor has.
    #[must_use]
    pub fn new() -> Self {
        Self { wide: Wide::detect() }
    }

    /// A machine for each set of instructions that this processor has, from those of the target to the widest. The results are the
    /// same.
    pub fn all() -> impl Iterator<Item = Self> {
        Wide::detect().and_narrower().map(|wide| Self { wide })
    }

    /// Executes `kernel`; returns the cycles that it reports on the `v9` clock. `scratch` has
    /// [`Kernel::scratch_words`] or more.
    ///
    /// # Errors
    /// The fault that ended the kernel. Stores before it have been done.
    #[expect(
        clippy::result_large_err,
        reason = "a fault ends a kernel, and carries the names that it is read with"
    )]
    pub fn run(self, kernel: &Kernel, call: &Call, scratch: &mut [u64]) -> Result<u64, TileFault> {
        let before = |cause| fault(kernel, None, cause);
        check_call(kernel, call).map_err(before)?;
        let (needed, found) = (kernel.scratch_words(), scratch.len());
        let scratch = scratch.get_mut(..needed);
        let scratch = scratch.ok_or(FaultCause::Scratch { needed, found }).map_err(before)?;
        let parts = scratch.split_at_mut_checked(kernel.frame_words());
        let (frame, work) = parts.ok_or(FaultCause::Broken).map_err(before)?;
        let mut run = KernelRun::new(self.wide, (kernel, call), frame, work);
        for (number, step) in kernel.steps().iter().enumerate() {
            run.step(step).map_err(|cause| fault(kernel, Some((number, step)), cause))?;
        }
        Ok(run.cycles())
    }
}

fn fault(kernel: &Kernel, at: Option<(usize, &Step)>, cause: FaultCause) -> TileFault {
    let param = match at {
        Some((_, Step { op: Op::Load { param, .. } | Op::Store { param, .. }, .. })) => {
            kernel.params().get(usize::from(*param)).map(|param| param.name)
        }
        _ => None,
    };
    let instruction = at.and_then(|(number, _)| u16::try_from(number).ok());
    let name = at.map_or("", |(_, step)| step.op.name());
    TileFault { kernel: *kernel.name(), instruction, name, param, cause }
}

/// Whether a call has what the kernel needs.
fn check_call(kernel: &Kernel, call: &Call) -> Result<(), FaultCause> {
    let params = kernel.params();
    let tiles = || params.iter().filter_map(Param::tensor);
    let (needed, found) = (tiles().count(), call.tensors.len());
    if needed != found {
        return Err(FaultCause::Tensors { needed, found });
    }
    let (needed, found) = (params.len() - needed, call.scalars.len());
    if needed != found {
        return Err(FaultCause::Scalars { needed, found });
    }
    for ((_, tile), view) in tiles().zip(call.tensors) {
        let ([rows, cols], tile) = (view.extents(), [tile.rows, tile.cols]);
        if rows > tile[0] || cols > tile[1] {
            return Err(FaultCause::ViewTooLarge { view: [rows, cols], tile });
        }
    }
    Ok(())
}
