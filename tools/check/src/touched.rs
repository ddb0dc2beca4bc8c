//! What the kernels of a program touch, where that is more than the views that its tasks declare.
//!
//! The runtime orders tasks by their views. A kernel whose words say that it touches more reads what is not written yet, or overwrites what
//! somebody else has, and no run needs to show it. So the search for races looks at a program whose views are what the kernels touch; the
//! edges stay those that the runtime derives from the views as they are.

use std::borrow::Cow;

use pto_abi::GmAddr;
use pto_graph::ElementType;
use pto_graph::signature::Extents;

use crate::finding::{Finding, Kind};
use crate::program::{Action, Argument, Program, Task, Use, View};
use crate::signatures::{Signatures, are_words_known, words};
use crate::submit::tensor_view;

/// Bytes from a tensor's first one, and the byte after the last.
type Range = [u64; 2];

/// A view that is smaller than what the kernel touches.
struct Narrow {
    kernel: String,
    at: usize,
    name: String,
    tensor: usize,
    declared: Range,
    touched: Range,
}

/// The program with views of what its kernels touch, and a warning for each task with a view that is smaller.
pub(crate) fn touched<'p>(
    program: &'p Program,
    kernels: &Signatures,
) -> (Cow<'p, Program>, Vec<Finding>) {
    let (mut changed, mut warnings) = (Cow::Borrowed(program), Vec::new());
    for step in &program.steps {
        let Action::Add(index) = step.action else { continue };
        let Some((task, narrow)) = widened(program, &program.tasks[index], kernels) else {
            continue;
        };
        if let Some(narrow) = narrow {
            warnings.push(warning(program, &task, step.line, &narrow));
        }
        changed.to_mut().tasks[index] = task;
    }
    (changed, warnings)
}

/// The task with views of what its kernels touch, and the first of its views that is smaller and says what is waited for; `None`: no view is
/// smaller.
fn widened(program: &Program, task: &Task, kernels: &Signatures) -> Option<(Task, Option<Narrow>)> {
    let mut wide = Widening { program, kernels, narrow: None, is_changed: false };
    let mut new = task.clone();
    if !task.is_chain() {
        let funcs = std::iter::once(task.func).chain(task.block_shape.mix.iter().copied());
        funcs.for_each(|func| wide.widen(func, &task.args, &mut new.args));
    }
    for link in &mut new.links {
        let mut uses = Vec::new();
        for turn in 0..link.times {
            let mut args = link.uses_at(turn).into_owned();
            wide.widen(link.func, &link.args_at(turn), &mut args);
            uses.push(args);
        }
        if wide.is_changed {
            link.uses = uses;
        }
    }
    wide.is_changed.then_some((new, wide.narrow))
}

struct Widening<'p> {
    program: &'p Program,
    kernels: &'p Signatures,
    narrow: Option<Narrow>,
    is_changed: bool,
}

impl Widening<'_> {
    /// Makes the views of `args` those that the kernel touches when it is called with `call`.
    fn widen(&mut self, func: u16, call: &[Argument], args: &mut [Argument]) {
        let Some(kernel) = self.kernels.of(func).filter(|_| are_words_known(call)) else { return };
        let Some(footprint) = kernel.footprint.filter(|_| call.len() == kernel.args.len()) else {
            return;
        };
        let words = words(call);
        for (at, arg) in args.iter_mut().enumerate() {
            let (Argument::In(view)
            | Argument::Out(view)
            | Argument::InOut(view)
            | Argument::NoDep(view, Use::Unknown | Use::Read | Use::Write)) = arg
            else {
                continue;
            };
            let extents = footprint(&words, 1, at).and_then(|footprint| footprint.extents);
            let declared = *view;
            let wide = extents.and_then(|extents| beyond(self.program, &declared, extents));
            let Some(wide) = wide else { continue };
            *view = wide;
            self.is_changed = true;
            if !matches!(arg, Argument::NoDep(..)) && self.narrow.is_none() {
                self.narrow = Some(Narrow {
                    kernel: kernel.name.clone(),
                    at,
                    name: kernel.args[at].clone(),
                    tensor: declared.tensor,
                    declared: range(self.program, &declared),
                    touched: range(self.program, &wide),
                });
            }
        }
    }
}

fn warning(program: &Program, task: &Task, line: usize, narrow: &Narrow) -> Finding {
    let Narrow { kernel, at, name, tensor, declared, touched } = narrow;
    let ([from, to], [first, end]) = (touched, declared);
    let tensor = program.tensor_name(*tensor);
    let view = match touched == declared {
        true => "its view leaves some of these out".to_owned(),
        false => format!("its view is bytes {first} to {end}"),
    };
    let message = format!(
        "{task}: {kernel}: argument {at}, {name}, touches bytes {from} to {to} of {tensor}, and {view}; \
         tasks wait for views alone, so make the view as large as what the kernel touches"
    );
    Finding::new(Kind::NarrowView, message).line(line).tasks([task.id])
}

/// From the first byte of a view to the end of its last one.
fn range(program: &Program, view: &View) -> Range {
    let bytes = program.tensors[view.tensor].bytes;
    let view = tensor_view(view, GmAddr::NULL, bytes);
    let first = view.address().0;
    [first, first.saturating_add(view.span_bytes())]
}

/// The view of these elements from where a view begins, if the view does not have all of them, and its tensor does.
fn beyond(program: &Program, view: &View, extents: Extents) -> Option<View> {
    const ELEMENT: u64 = Extents::ELEMENT;
    let [rows, cols, distance] = extents.matrix();
    if rows == 0 || cols == 0 || covers(view, extents) {
        return None;
    }
    let start = view.offset.checked_mul(view.element.bytes())?;
    let first = start.is_multiple_of(ELEMENT).then_some(start / ELEMENT)?;
    let shape = [u32::try_from(rows).ok()?, u32::try_from(cols).ok()?];
    let (shape, strides): (&[u32], &[u64]) =
        if rows == 1 { (&shape[1..], &[1]) } else { (&shape, &[distance, 1]) };
    let wide = View::new(view.tensor, ElementType::F32, first, (shape, strides))?;
    let bytes = program.tensors[view.tensor].bytes;
    tensor_view(&wide, GmAddr::NULL, bytes).defect().is_none().then_some(wide)
}

/// Whether a view has all of these elements, from its first one on.
fn covers(view: &View, extents: Extents) -> bool {
    let element = view.element.bytes();
    let mut dims: Vec<(u64, u64)> = view
        .strides()
        .iter()
        .zip(view.shape())
        .filter(|(_, extent)| **extent > 1)
        .map(|(stride, extent)| (stride * element, u64::from(*extent)))
        .collect();
    dims.sort_unstable();
    // Bytes that stand side by side, and the dimensions around them.
    let mut run = element;
    let around = dims.iter().position(|(stride, extent)| {
        let joins = *stride <= run;
        if joins {
            run = run.max(stride * (extent - 1) + run);
        }
        !joins
    });
    let around = around.map_or(&[][..], |at| &dims[at..]);
    let [rows, cols, distance] = extents.matrix();
    let [wide, step] = [cols, distance].map(|count| count.saturating_mul(Extents::ELEMENT));
    let has = |start: u64| {
        let mut left = start;
        for (stride, extent) in around.iter().rev() {
            let index = (left / stride).min(extent - 1);
            left -= index * stride;
        }
        left.checked_add(wide).is_some_and(|end| end <= run)
    };
    let rows = if step == 0 { 1 } else { rows };
    if around.is_empty() {
        return (rows - 1).checked_mul(step).is_some_and(has);
    }
    (0..rows).all(|row| row.checked_mul(step).is_some_and(has))
}

#[cfg(test)]
mod tests {
    use super::covers;
    use crate::program::View;
    use pto_graph::ElementType;
    use pto_graph::signature::Extents;

    #[test]
    fn a_view_has_the_elements_that_it_is_made_of() {
        let view = |element, shape: &[u32], strides: &[u64]| {
            View::new(0, element, 0, (shape, strides)).unwrap()
        };
        let float = |shape, strides| view(ElementType::F32, shape, strides);
        let (flat, tile) = (float(&[64], &[1]), float(&[8, 4], &[16, 1]));
        for (view, extents, expected) in [
            (flat, Extents::Vector(64), true),
            (flat, Extents::Vector(65), false),
            (flat, Extents::Matrix([8, 8, 8]), true),
            (flat, Extents::Matrix([8, 4, 9]), false),
            (flat, Extents::Matrix([1 << 40, 64, 0]), true),
            (float(&[8, 8], &[8, 1]), Extents::Vector(64), true),
            (view(ElementType::U8, &[256], &[1]), Extents::Vector(64), true),
            (view(ElementType::F16, &[64], &[1]), Extents::Vector(64), false),
            (tile, Extents::Matrix([8, 4, 16]), true),
            (tile, Extents::Matrix([8, 5, 16]), false),
            (tile, Extents::Matrix([9, 4, 16]), false),
            (tile, Extents::Matrix([4, 4, 32]), true),
            (tile, Extents::Matrix([8, 4, 8]), false),
            (tile, Extents::Vector(4), true),
            (tile, Extents::Vector(8), false),
            (float(&[2, 3, 4], &[100, 10, 1]), Extents::Matrix([2, 4, 100]), true),
            (float(&[2, 3, 4], &[100, 10, 1]), Extents::Matrix([3, 4, 10]), true),
            (float(&[2, 3, 4], &[100, 10, 1]), Extents::Matrix([4, 4, 10]), false),
            (float(&[], &[]), Extents::Vector(1), true),
            (float(&[], &[]), Extents::Vector(2), false),
        ] {
            assert_eq!(covers(&view, extents), expected, "{view:?} {extents:?}");
        }
    }
}
