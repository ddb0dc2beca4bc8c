//! Times operators on one thread, in time of the processor, so that other programs on the machine matter little: `cargo run --release -p pto-operators --example operator_speed`.

use pto_operators::{
    Binary, DType, Epilogue, Operator, Padding, Pooling, Reduction, Tensor, TensorType, Unary,
    Window,
};

fn tensor(shape: &[usize]) -> Tensor {
    let count = shape.iter().product();
    let values: Vec<f32> =
        (0..count).map(|at: usize| ((at * 37) % 101) as f32 / 101.0 - 0.5).collect();
    Tensor::from_elements(shape, &values)
        .unwrap_or_else(|| Tensor::zeros(TensorType::new(DType::F32, shape)))
}

/// How long this thread has run (Linux).
fn cpu_seconds() -> f64 {
    let said = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = said.split(' ').next().and_then(|word| word.parse::<f64>().ok());
    nanoseconds.unwrap_or(f64::NAN) / 1e9
}

fn time(name: &str, operator: &Operator, shapes: &[&[usize]], operations: f64) {
    let inputs: Vec<_> = shapes.iter().map(|shape| tensor(shape)).collect();
    let given: Vec<_> = inputs.iter().map(Some).collect();
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let start = cpu_seconds();
        if let Err(error) = operator.evaluate(&given) {
            println!("{error}");
            return;
        }
        best = best.min(cpu_seconds() - start);
    }
    println!("{name:<40} {:9.3} ms  {:7.2} G/s", best * 1e3, operations / best / 1e9);
}

fn conv(name: &str, [channels, out, side, kernel]: [usize; 4], stride: usize, groups: usize) {
    let pad = (kernel / 2).cast_signed() as i64;
    let window = Window {
        kernel: vec![],
        strides: vec![stride; 2],
        dilations: vec![],
        padding: Padding::Explicit(vec![pad; 4]),
    };
    let operator = Operator::Conv { window, groups, epilogue: Epilogue::Unary(Unary::Relu) };
    let per_group = channels / groups;
    let operations = 2 * out * (side / stride).pow(2) * per_group * kernel * kernel;
    time(
        name,
        &operator,
        &[&[1, channels, side, side], &[out, per_group, kernel, kernel], &[out]],
        operations as f64,
    );
}

fn main() {
    conv("conv 3x3, 3 to 16, 736, stride 2", [3, 16, 736, 3], 2, 1);
    conv("conv 3x3, 64 to 64, 92", [64, 64, 92, 3], 1, 1);
    conv("conv 1x1, 96 to 24, 184", [96, 24, 184, 1], 1, 1);
    conv("conv 1x1, 512 to 512, 23", [512, 512, 23, 1], 1, 1);
    conv("conv 3x3, depthwise, 96, 184", [96, 96, 184, 3], 1, 96);
    conv("conv 5x5, depthwise, 256, 46, stride 2", [256, 256, 46, 5], 2, 256);
    let product = Operator::MatMul { epilogue: Epilogue::None };
    time("matmul 512 x 512 x 512", &product, &[&[512, 512], &[512, 512]], 2.0 * 512.0_f64.powi(3));
    time("matmul 1 x 1024 x 4096", &product, &[&[1, 1024], &[1024, 4096]], 2.0 * 1024.0 * 4096.0);
    let image: &[usize] = &[1, 16, 368, 368];
    let count = 16.0 * 368.0 * 368.0;
    time("add, 2 M", &Operator::Binary(Binary::Add), &[image, image], count);
    time("mul by channel, 2 M", &Operator::Binary(Binary::Mul), &[image, &[1, 16, 1, 1]], count);
    time("relu, 2 M", &Operator::Unary(Unary::Relu), &[image], count);
    time("sigmoid, 2 M", &Operator::Unary(Unary::Sigmoid), &[image], count);
    time("gelu, 2 M", &Operator::Unary(Unary::Gelu), &[image], count);
    time("hard swish, 2 M", &Operator::Unary(Unary::HardSwish), &[image], count);
    time(
        "global average, 2 M",
        &Operator::GlobalPool { pooling: Pooling::Average { count_padding: false } },
        &[image],
        count,
    );
    let sum = Operator::Reduce { reduction: Reduction::Sum, axes: Some(vec![1]), keep_dims: true };
    time("sum over channels, 2 M", &sum, &[image], count);
    let window = Window {
        kernel: vec![3, 3],
        strides: vec![2, 2],
        dilations: vec![],
        padding: Padding::Explicit(vec![1; 4]),
    };
    time(
        "max pool 3x3, stride 2, 2 M",
        &Operator::Pool { pooling: Pooling::Max { column_major: false }, window, ceil_mode: false },
        &[image],
        count,
    );
    time(
        "transpose to channels last, 2 M",
        &Operator::Transpose { permutation: Some(vec![0, 2, 3, 1]) },
        &[image],
        count,
    );
    time("softmax 4096 x 512", &Operator::Softmax { axis: -1 }, &[&[4096, 512]], 4096.0 * 512.0);
}
