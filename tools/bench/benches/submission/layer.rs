//! A layer of 64 tasks from an input through temporaries to an output: submitted, or recorded once and replayed.

use pto_abi::{FuncId, GmAddr};
use pto_check::run_memory::{LAYER, layer};
use pto_graph::{Bindings, ElementType, Recording, StreamBuilder, TensorView};

use super::{TestStream, best_of_rounds, with_stream, words};

/// Inputs and outputs in turn.
const TENSORS: u64 = 64;

fn tensor(number: u64) -> TensorView<'static> {
    TensorView::dense(GmAddr(0x10_0000 + 4096 * (number % TENSORS)), ElementType::F32, &[32, 32])
}

const FUNC: FuncId = FuncId(3);

/// ns a task, submitted and replayed.
pub(crate) fn measure<const N: usize>(window: usize) -> [f64; 2] {
    [submitted::<N>, replayed::<N>].map(|way: fn(&mut TestStream<'_>) -> Option<Recording>| {
        let words = words(window);
        with_stream(&words, |stream| {
            let recording = way(stream);
            let step = |number: u64| {
                if !number.is_multiple_of(LAYER as u64) {
                    return;
                }
                let turn = number / LAYER as u64;
                let tensors = [tensor(turn), tensor(turn + 1)];
                let bindings = Bindings { tensors: &tensors, scalars: &[] };
                match &recording {
                    Some(recording) => stream.replay(recording, &bindings).unwrap(),
                    None => layer::<N, _>(stream, FUNC, &tensors[0], &tensors[1]).unwrap(),
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
    let recording = stream.record(&shapes, |stream, bound| {
        layer::<N, _>(stream, FUNC, &bound.tensor(0), &bound.tensor(1))
    });
    Some(recording.unwrap())
}
