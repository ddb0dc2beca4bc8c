//! What a task does to its tensors, and why it may not.

use pto_abi::Fault;
use pto_graph::{Arg, TensorTask, TensorView, ViewDefect};

use super::map::AccessKind;
use super::overlap::overlap;
use super::region::Region;
use crate::blame::Blame;

/// What an argument does to its tensor, which is checked; `None`: nothing.
#[inline]
pub(super) fn access_of<'v>(arg: &Arg<'v>) -> Option<(&'v TensorView<'v>, AccessKind)> {
    match arg {
        Arg::In(view) => Some((view, AccessKind::Read)),
        Arg::Out(view) | Arg::InOut(view) => Some((view, AccessKind::Write)),
        Arg::NoDep(_) | Arg::Scalar(_) | Arg::BoundScalar(_) => None,
    }
}

/// What a task does to its tensors, by argument. It reads the element of its predicate as if that were its last argument.
pub(super) fn accesses_of<'t>(
    task: &TensorTask<'t>,
) -> impl Iterator<Item = (u32, &'t TensorView<'t>, AccessKind)> {
    let predicate = task.block_shape.when().map(|when| (arg_count(task), when.element()));
    let predicate = predicate.map(|(at, element)| (at, element, AccessKind::Read));
    let args = (0_u32..).zip(task.args).filter_map(|(index, arg)| {
        let (view, kind) = access_of(arg)?;
        Some((index, view, kind))
    });
    args.chain(predicate)
}

/// How many arguments a task has: the number under which its predicate is named.
pub(super) fn arg_count(task: &TensorTask<'_>) -> u32 {
    u32::try_from(task.args.len()).unwrap_or(u32::MAX)
}

/// The fault of a view that cannot be used.
pub(super) const fn view_fault(defect: ViewDefect) -> Fault {
    match defect {
        ViewDefect::Rank => Fault::STREAM_VIEW_RANK,
        ViewDefect::Range => Fault::STREAM_VIEW_RANGE,
        ViewDefect::Element => Fault::STREAM_VIEW_ELEMENT,
    }
}

/// An argument is to blame; `found`: what was found in it.
pub(super) const fn argument_blame(fault: Fault, index: u32, found: u64) -> Blame {
    Blame::of(fault).argument(index).detail(found, 0)
}

/// Why a view cannot be used that has a defect, or whose scope is closed.
#[cold]
pub(super) fn view_blame(view: &TensorView<'_>, index: u32) -> Blame {
    match view.defect() {
        Some(defect) => argument_blame(view_fault(defect), index, view.shape().len() as u64),
        None => argument_blame(Fault::STREAM_STALE_TENSOR, index, view.heap().serial),
    }
}

/// No two arguments write the same element; `output`: what argument `index` writes.
pub(super) fn check_outputs(
    output: &TensorView<'_>,
    args: &[Arg<'_>],
    index: u32,
) -> Result<(), Blame> {
    for (at, arg) in (0..index).zip(args) {
        let (Arg::Out(view) | Arg::InOut(view)) = arg else { continue };
        if view.base() != output.base() {
            continue;
        }
        match overlap(&Region::of(view), &Region::of(output)) {
            Ok(false) => {}
            Ok(true) => return Err(argument_blame(Fault::STREAM_OUT_OVERLAP, index, at.into())),
            Err(_) => return Err(argument_blame(Fault::STREAM_VIEW_IRREGULAR, index, 0)),
        }
    }
    Ok(())
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::check_outputs;
    use pto_abi::{Fault, GmAddr};
    use pto_graph::{Arg, ElementType, TensorView};

    #[test]
    fn two_outputs_may_touch_and_not_overlap() {
        let whole = TensorView::dense(GmAddr(0x1000), ElementType::F32, &[16]);
        let (low, high) = (whole.slice(0, 0, 8), whole.slice(0, 8, 8));
        let args = [Arg::In(&whole), Arg::Out(&low), Arg::InOut(&high)];
        assert_eq!(check_outputs(&high, &args, 2), Ok(()), "inputs do not count");
        let found = check_outputs(&whole, &args, 3).unwrap_err();
        assert_eq!(
            (found.fault, found.argument, found.detail),
            (Fault::STREAM_OUT_OVERLAP, 4, [1, 0])
        );
    }
}
