//! Errors name operator, argument and rule.

use pto_operators::{
    Binary, DType, Epilogue, Operator, Padding, Reduction, Tensor, TensorType, Unary, Window,
};

fn refused(operator: &Operator, inputs: &[Option<TensorType>]) -> String {
    let given: Vec<_> = inputs.iter().map(|ty| ty.as_ref().map(Into::into)).collect();
    operator.infer(&given).unwrap_err().to_string()
}

fn ty(dtype: DType, shape: &[usize]) -> Option<TensorType> {
    Some(TensorType::new(dtype, shape))
}

#[test]
fn errors_name_operator_argument_and_rule() {
    let f = |shape: &[usize]| ty(DType::F32, shape);
    let window =
        Window { kernel: vec![], strides: vec![], dilations: vec![], padding: Padding::Valid };
    let cases = [
        (
            Operator::Binary(Binary::Add),
            vec![f(&[2, 3]), f(&[4])],
            "operator Add, input 1 (b): has the extents [4], which do not broadcast with [2, 3]",
        ),
        (
            Operator::Binary(Binary::Add),
            vec![f(&[2]), ty(DType::I32, &[2])],
            "operator Add, input 1 (b): is i32[2]; it has to be of type f32",
        ),
        (Operator::Binary(Binary::Add), vec![f(&[2])], "operator Add, input 1 (b): is missing"),
        (
            Operator::Unary(Unary::Exp),
            vec![f(&[2]), f(&[2])],
            "operator Exp: there are 2 inputs; 1 are the most",
        ),
        (
            Operator::Unary(Unary::Exp),
            vec![ty(DType::I8, &[])],
            "operator Exp, input 0 (x): is i8[]; the operator is for floats",
        ),
        (
            Operator::Softmax { axis: 2 },
            vec![f(&[2, 3])],
            "operator Softmax, attribute axis: is 2, and the tensor has 2 dimensions; use -2 to 1",
        ),
        (
            Operator::Reshape { shape: vec![5, -1], allow_zero: false },
            vec![f(&[2, 3])],
            "operator Reshape, attribute shape: is [5, -1], and x, f32[2, 3], has 6 elements",
        ),
        (
            Operator::Reduce {
                reduction: Reduction::Sum,
                axes: Some(vec![0, -2]),
                keep_dims: true,
            },
            vec![f(&[2, 3])],
            "operator ReduceSum, attribute axes: names axis 0 twice",
        ),
        (
            Operator::Conv { window, groups: 2, epilogue: Epilogue::None },
            vec![f(&[1, 4, 8, 8]), f(&[6, 4, 3, 3])],
            "operator Conv, input 1 (weights): is f32[6, 4, 3, 3], and x is f32[1, 4, 8, 8], in 2 groups",
        ),
        (
            Operator::MatMul { epilogue: Epilogue::None },
            vec![f(&[2, 3]), f(&[4, 5])],
            "operator MatMul, input 1 (b): is f32[4, 5], and a is f32[2, 3]; the inner extents, 3 and 4, have to be equal",
        ),
        (
            Operator::NonZero,
            vec![f(&[2])],
            "operator NonZero, input 0 (x): is computed, and the shape of the result depends on its elements; give a constant",
        ),
        (
            Operator::Fill { shape: vec![1 << 40, 1 << 40] },
            vec![f(&[1])],
            "operator Fill: the result is f32[1099511627776, 1099511627776]",
        ),
    ];
    for (operator, inputs, wanted) in cases {
        let told = refused(&operator, &inputs);
        assert!(told.starts_with(wanted), "{told}");
    }
}

#[test]
fn an_index_that_stands_for_nothing_is_told() {
    let data = Tensor::vector(&[1.0_f32, 2.0]);
    let chosen = Tensor::vector(&[1_i64, 2]);
    let error = Operator::Gather { axis: 0 }.evaluate(&[Some(&data), Some(&chosen)]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "operator Gather, input 1 (indices): the index is 2, and there are 2 elements; use -2 to 1"
    );
}
