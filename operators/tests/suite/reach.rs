//! What units touch is what [`work`] says, because edges between tasks follow from that: every other element of an input is changed, and the
//! result is the same; no other element of an output is written.

use pto_operators::{
    AspectPolicy, Binary, Coordinates, DType, Epilogue, Interpolation, Nary, Operator, PadMode,
    Padding, Pooling, Reduction, Resize, ResizeTarget, ScatterReduction, Tensor, TensorType, Unary,
    Window, WorkSplit,
};

fn f(shape: &[usize]) -> Tensor {
    let count: usize = shape.iter().product();
    let values: Vec<f32> =
        (0..u16::try_from(count).unwrap()).map(|at| f32::from(at * 7 % 23) / 23.0 + 0.1).collect();
    Tensor::from_elements(shape, &values).unwrap()
}

fn i(shape: &[usize], most: i64) -> Tensor {
    let count: usize = shape.iter().product();
    let values: Vec<i64> = (0..i64::try_from(count).unwrap()).map(|at| at * 5 % most).collect();
    Tensor::from_elements(shape, &values).unwrap()
}

fn window(kernel: &[usize], strides: &[usize], pads: &[i64]) -> Window {
    Window {
        kernel: kernel.to_vec(),
        strides: strides.to_vec(),
        dilations: vec![],
        padding: Padding::Explicit(pads.to_vec()),
    }
}

fn cases() -> Vec<(Operator, Vec<Tensor>)> {
    let none = || Epilogue::None;
    let reduce = |axes: &[i64], keep_dims: bool| Operator::Reduce {
        reduction: Reduction::Sum,
        axes: Some(axes.to_vec()),
        keep_dims,
    };
    let image = || f(&[2, 6, 5, 7]);
    let resize = Resize {
        interpolation: Interpolation::Linear,
        coordinates: Coordinates::HalfPixel,
        target: ResizeTarget::Sizes { sizes: vec![9, 5], policy: AspectPolicy::Stretch },
        axes: Some(vec![2, 3]),
        exclude_outside: false,
        antialias: false,
        extrapolation: 0.0,
        regions: vec![],
    };
    vec![
        (Operator::Unary(Unary::Exp), vec![f(&[3, 50])]),
        (Operator::Unary(Unary::Identity), vec![f(&[3, 50])]),
        (Operator::Binary(Binary::Add), vec![f(&[4, 3, 5]), f(&[3, 1])]),
        (Operator::Nary(Nary::Max), vec![f(&[4, 5]), f(&[4, 5]), f(&[5])]),
        (reduce(&[1], false), vec![f(&[2, 3, 3])]),
        (reduce(&[1], true), vec![f(&[2, 3, 3])]),
        (reduce(&[0], true), vec![f(&[4, 3])]),
        (reduce(&[-1], false), vec![f(&[4, 3, 2])]),
        (reduce(&[0, 2], true), vec![f(&[1, 3, 4])]),
        (reduce(&[0, 2], false), vec![f(&[2, 3, 4])]),
        (
            Operator::ArgReduce { largest: true, axis: 1, keep_dims: false, select_last: false },
            vec![f(&[4, 3, 3])],
        ),
        (Operator::Softmax { axis: 1 }, vec![f(&[4, 3, 3])]),
        (Operator::CumSum { axis: 1, exclusive: false, reverse: false }, vec![f(&[4, 3])]),
        (Operator::TopK { k: 2, axis: 1, largest: true, sorted: true }, vec![f(&[4, 3, 2])]),
        (Operator::Transpose { permutation: None }, vec![f(&[4, 3, 2])]),
        (Operator::Concat { axis: 1 }, vec![f(&[4, 3]), f(&[4, 2])]),
        (Operator::Split { axis: 0, sizes: vec![1, 3] }, vec![f(&[4, 3])]),
        (
            Operator::Pad { mode: PadMode::Reflect, pads: vec![1, 1, 1, 1], axes: None },
            vec![f(&[4, 3])],
        ),
        (Operator::Gather { axis: 1 }, vec![f(&[2, 5, 3]), i(&[4], 5)]),
        (Operator::GatherElements { axis: 1 }, vec![f(&[2, 5]), i(&[2, 3], 5)]),
        (Operator::GatherNd { batch_dims: 1 }, vec![f(&[2, 5, 3]), i(&[2, 4, 1], 5)]),
        (
            Operator::ScatterNd { reduction: ScatterReduction::Add },
            vec![f(&[5, 3]), i(&[4, 1], 5), f(&[4, 3])],
        ),
        (Operator::MatMul { epilogue: none() }, vec![f(&[2, 70, 5]), f(&[5, 130])]),
        (
            Operator::Gemm {
                alpha: 1.0,
                beta: 1.0,
                trans_a: true,
                trans_b: true,
                epilogue: none(),
            },
            vec![f(&[5, 70]), f(&[140, 5]), f(&[140])],
        ),
        (
            Operator::Conv { window: window(&[], &[], &[1; 4]), groups: 1, epilogue: none() },
            vec![image(), f(&[70, 6, 3, 3]), f(&[70])],
        ),
        (
            Operator::Conv { window: window(&[], &[2, 1], &[1; 4]), groups: 2, epilogue: none() },
            vec![image(), f(&[4, 3, 3, 3])],
        ),
        (
            Operator::Conv { window: window(&[], &[], &[1; 4]), groups: 6, epilogue: none() },
            vec![image(), f(&[6, 1, 3, 3])],
        ),
        (
            Operator::ConvTranspose {
                window: window(&[], &[2, 2], &[]),
                groups: 2,
                output_padding: vec![],
                output_shape: vec![],
                epilogue: none(),
            },
            vec![image(), f(&[6, 9, 2, 2])],
        ),
        (
            Operator::Pool {
                pooling: Pooling::Max { column_major: false },
                window: window(&[3, 3], &[2, 2], &[1; 4]),
                ceil_mode: false,
            },
            vec![image()],
        ),
        (
            Operator::GlobalPool { pooling: Pooling::Average { count_padding: false } },
            vec![image()],
        ),
        (Operator::GlobalPool { pooling: Pooling::Lp { p: 2 } }, vec![image()]),
        (Operator::Resize(resize), vec![image()]),
        (
            Operator::BatchNormalization { epsilon: 0.1 },
            vec![image(), f(&[6]), f(&[6]), f(&[6]), f(&[6])],
        ),
        (Operator::InstanceNormalization { epsilon: 0.1 }, vec![image(), f(&[6]), f(&[6])]),
        (Operator::GroupNormalization { groups: 2, epsilon: 0.1 }, vec![image(), f(&[6]), f(&[6])]),
        (
            Operator::LayerNormalization { axis: 2, epsilon: 0.1 },
            vec![image(), f(&[5, 7]), f(&[7])],
        ),
        (Operator::RmsNormalization { axis: -1, epsilon: 0.1 }, vec![image(), f(&[7])]),
        (Operator::Lrn { size: 3, alpha: 1.0, beta: 0.5, bias: 1.0 }, vec![image()]),
        (
            Operator::Attention { scale: None, causal: true, softcap: 0.0 },
            vec![f(&[2, 4, 3, 5]), f(&[2, 2, 6, 5]), f(&[2, 2, 6, 4])],
        ),
    ]
}

/// The inputs of units; other elements are changed: of floats to NaN, of indices to 0.
fn changed(inputs: &[Tensor], work: &WorkSplit, units: (usize, usize)) -> Vec<Tensor> {
    let changed = |(input, reach): (&Tensor, &pto_operators::Reach)| {
        let size = input.dtype().bytes();
        let (from, to) = reach.of(units, input.ty().elements());
        let mut own = input.clone();
        let bytes = own.bytes_mut();
        bytes.fill(if input.dtype() == DType::I64 { 0 } else { 0xFF });
        bytes[from * size..to * size].copy_from_slice(&input.bytes()[from * size..to * size]);
        own
    };
    inputs.iter().zip(&work.inputs).map(changed).collect()
}

#[test]
fn what_units_touch_is_what_work_says() {
    for (operator, inputs) in cases() {
        let given: Vec<_> = inputs.iter().map(|input| Some(input.ty().into())).collect();
        let types: Vec<TensorType> = operator.infer(&given).unwrap();
        let input_types: Vec<_> = inputs.iter().map(|input| Some(input.ty())).collect();
        let work = operator.work(&input_types, &types).unwrap();
        assert!(work.units > 0, "{operator:?}");
        let tensors: Vec<_> = inputs.iter().map(Some).collect();
        let wanted = operator.evaluate(&tensors).unwrap();
        for part in [1, 2, 3, 7] {
            let fresh =
                |ty: &TensorType| Tensor::from_bytes(ty.clone(), vec![0x5A; ty.bytes()]).unwrap();
            let mut joined: Vec<_> = types.iter().map(fresh).collect();
            for first in (0..work.units).step_by(part) {
                let units = (first, part.min(work.units - first));
                let (before, own) = (joined.clone(), changed(&inputs, &work, units));
                let own: Vec<_> = own.iter().map(Some).collect();
                operator.evaluate_units(&own, &mut joined, units).unwrap();
                for ((before, after), reach) in before.iter().zip(&joined).zip(&work.outputs) {
                    let size = after.dtype().bytes();
                    let (from, to) = reach.of(units, after.ty().elements());
                    let (before, now) = (before.bytes(), after.bytes());
                    let is_same = before[..from * size] == now[..from * size]
                        && before[to * size..] == now[to * size..];
                    assert!(
                        is_same,
                        "units {units:?} of {operator:?} write beyond {from}..{to} of {}",
                        after.ty()
                    );
                }
            }
            assert!(joined == wanted, "{operator:?} in parts of {part} units");
        }
    }
}
