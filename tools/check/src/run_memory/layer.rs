//! A layer of 64 tasks from an input through temporaries to an output: what submission and replay are measured with.

use pto_abi::{CoreKind, Fault, FuncId};
use pto_graph::{Arg, DependencyMode, ElementType, StreamBuilder, TensorTask, TensorView};

/// Tasks of a layer.
pub const LAYER: usize = 64;
/// How many of them read its input.
const WIDTH: usize = 8;

/// Submits a layer of tasks of `func`, vector kernels with `N` tensors, of which the last one is written.
///
/// # Errors
/// Those of the builder.
pub fn layer<const N: usize, G: StreamBuilder>(
    stream: &mut G,
    func: FuncId,
    input: &TensorView<'_>,
    output: &TensorView<'_>,
) -> Result<(), Fault> {
    stream.scope(DependencyMode::DERIVED, |scope| {
        let mut temporaries = [None; LAYER];
        for number in 0..LAYER {
            let target = match number {
                _ if number + 1 == LAYER => output.detach(),
                _ => scope.tensor(ElementType::F32, &[32, 32])?.detach(),
            };
            let source = |arg: usize| {
                let before = number.checked_sub(WIDTH + arg);
                before.and_then(|before| temporaries[before].as_ref()).unwrap_or(input)
            };
            let mut args: [_; N] = core::array::from_fn(|arg| Arg::In(source(arg)));
            args[N - 1] = Arg::Out(&target);
            scope.submit_tensors(&TensorTask::new(func, CoreKind::AIV, &args))?;
            temporaries[number] = Some(target);
        }
        Ok(())
    })
}
