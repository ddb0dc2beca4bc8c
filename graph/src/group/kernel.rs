//! The kernels that collectives ask for, by their func ids in the kernel library, and the call of the one that reduces.

use pto_abi::fault::Fault;
use pto_abi::ids::{FuncId, TaskId};
use pto_abi::kinds::CoreKind;

use super::reduction::Reduction;
use crate::stream::StreamBuilder;
use crate::tensor::TensorView;
use crate::tensor_task::{Arg, TensorTask};

/// The library's name for what the transfer engine does. It is in the library so that reports can name it.
pub const TRANSFER: FuncId = FuncId(42);
/// The library's kernel `out = a op b` of any element type.
pub const REDUCE: FuncId = FuncId(43);

/// Submits `out = a op b`; `out` may be `a`, or apart from both.
pub(super) fn reduce<G: StreamBuilder>(
    stream: &mut G,
    (a, b, out): (&TensorView<'_>, &TensorView<'_>, &TensorView<'_>),
    reduction: Reduction,
) -> Result<TaskId, Fault> {
    let how = u64::from(a.element().get()) | u64::from(reduction.get()) << 8;
    let in_place = a.address() == out.address();
    let (first, last) =
        if in_place { (Arg::InOut(a), Arg::NoDep(out)) } else { (Arg::In(a), Arg::Out(out)) };
    let args = [first, Arg::In(b), last, Arg::Scalar(out.elements()), Arg::Scalar(how)];
    stream.submit_tensors(&TensorTask::new(REDUCE, CoreKind::AIV, &args))
}
