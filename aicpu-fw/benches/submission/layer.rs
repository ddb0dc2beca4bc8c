//! A layer of 64 tasks from an input through temporaries to an output: submitted, or recorded once and replayed.

use pto_abi::{CoreKind, Fault, FuncId, GmAddr};
use pto_graph::{
    Arg, Bindings, DependencyMode, ElementType, Recording, StreamBuilder, TensorTask, TensorView,
};

use super::{TestStream, Words, best_of_rounds, with_stream};

/// Tasks of a layer, and how many of them read its input.
const LAYER: usize = 64;
const WIDTH: usize = 8;
/// Inputs and outputs in turn.
const TENSORS: u64 = 64;

fn tensor(number: u64) -> TensorView<'static> {
    TensorView::dense(GmAddr(0x10_0000 + 4096 * (number % TENSORS)), ElementType::F32, &[32, 32])
}

/// Tasks with `N` tensors, of which the last one is written.
fn layer<const N: usize, G: StreamBuilder>(
    stream: &mut G,
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
            scope.submit_tensors(&TensorTask::new(FuncId(3), CoreKind::AIV, &args))?;
            temporaries[number] = Some(target);
        }
        Ok(())
    })
}

/// ns a task, submitted and replayed.
pub(crate) fn measure<const N: usize>(window: usize) -> [f64; 2] {
    [submitted::<N>, replayed::<N>].map(|way: fn(&mut TestStream<'_>) -> Option<Recording>| {
        let words = Words::new(window);
        with_stream(&words, |stream| {
            let record = way(stream);
            let step = |number: u64| {
                if !number.is_multiple_of(LAYER as u64) {
                    return;
                }
                let turn = number / LAYER as u64;
                let tensors = [tensor(turn), tensor(turn + 1)];
                let bindings = Bindings { tensors: &tensors, scalars: &[] };
                match &record {
                    Some(record) => stream.replay(record, &bindings).unwrap(),
                    None => layer::<N, _>(stream, &tensors[0], &tensors[1]).unwrap(),
                }
            };
            best_of_rounds(window, step, || words.complete_all())
        })
    })
}

const fn submitted<const N: usize>(_: &mut TestStream<'_>) -> Option<Recording> {
    None
}

fn replayed<const N: usize>(stream: &mut TestStream<'_>) -> Option<Recording> {
    let shapes = [tensor(0); 2];
    let record = stream
        .record(&shapes, |stream, bound| layer::<N, _>(stream, &bound.tensor(0), &bound.tensor(1)));
    Some(record.unwrap())
}
