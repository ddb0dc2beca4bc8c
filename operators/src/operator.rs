//! The operators, with their attributes.
//!
//! Names and meanings are those of the newest version of ONNX, where it has the operator. An argument that decides a shape is an attribute here,
//! even where ONNX has it as an input: who reads a model takes it from the constant. Negative axes count from the last dimension. Defaults are ONNX's; they
//! are for callers by name (`OperatorSchema`), and mean nothing to Rust.

use crate::dtype::DType;
use crate::words::{words, words_of};

words! {
    /// Elementwise, of one operand.
    #[derive(Copy, Eq, Hash)]
    pub enum Unary {
        /// The same elements.
        Identity,
        /// The absolute value; of the least integer that integer.
        Abs,
        /// The negative; wraps.
        Neg,
        /// -1, 0 or 1; of NaN NaN.
        Sign,
        /// The next integer below.
        Floor,
        /// The next integer above.
        Ceil,
        /// The nearest integer, of two the even one.
        Round,
        /// The next integer towards zero.
        Trunc,
        /// The square root.
        Sqrt,
        /// One over the square root.
        Rsqrt,
        /// One over x.
        Reciprocal,
        /// x x.
        Square,
        /// e to the power x.
        Exp,
        /// 2 to the power x.
        Exp2,
        /// e to the power x, less 1.
        Expm1,
        /// The natural logarithm.
        Log,
        /// The logarithm to the base 2.
        Log2,
        /// The logarithm to the base 10.
        Log10,
        /// The natural logarithm of 1 + x.
        Log1p,
        /// Sine.
        Sin,
        /// Cosine.
        Cos,
        /// Tangent.
        Tan,
        /// Arc sine.
        Asin,
        /// Arc cosine.
        Acos,
        /// Arc tangent.
        Atan,
        /// Hyperbolic sine.
        Sinh,
        /// Hyperbolic cosine.
        Cosh,
        /// Hyperbolic tangent.
        Tanh,
        /// Inverse of the hyperbolic sine.
        Asinh,
        /// Inverse of the hyperbolic cosine.
        Acosh,
        /// Inverse of the hyperbolic tangent.
        Atanh,
        /// The error function.
        Erf,
        /// 1 / (1 + e^-x).
        Sigmoid,
        /// max(x, 0).
        Relu,
        /// log(1 + e^x).
        Softplus,
        /// x / (1 + |x|).
        Softsign,
        /// x times the distribution function of the normal distribution.
        Gelu,
        /// The approximation of `Gelu` by a hyperbolic tangent.
        GeluTanh,
        /// x max(0, min(1, x / 6 + 1 / 2)).
        HardSwish,
        /// x tanh(softplus(x)).
        Mish,
        /// Of `bool`: true where x is false.
        Not,
        /// Of integers: each bit turned.
        BitwiseNot,
        /// Whether x is NaN.
        IsNaN,
    }
}

words! {
    /// Elementwise, of one operand, with numbers.
    pub enum Activation {
        /// alpha x below 0, x above.
        LeakyRelu {
            /// Slope below 0.
            alpha: f64 = 0.01,
        },
        /// alpha (e^x - 1) below 0, x above.
        Elu {
            /// Limit at minus infinity.
            alpha: f64 = 1.0,
        },
        /// gamma (alpha e^x - alpha) below 0, gamma x above.
        Selu {
            /// Alpha.
            alpha: f64 = 1.673_263_242_354_377_2,
            /// Gamma.
            gamma: f64 = 1.050_700_987_355_480_5,
        },
        /// max(0, x) + min(0, alpha (e^(x / alpha) - 1)).
        Celu {
            /// Alpha.
            alpha: f64 = 1.0,
        },
        /// max(0, min(1, alpha x + beta)).
        HardSigmoid {
            /// Slope.
            alpha: f64 = 0.2,
            /// Value at 0.
            beta: f64 = 0.5,
        },
        /// x above alpha, 0 elsewhere.
        ThresholdedRelu {
            /// Threshold.
            alpha: f64 = 1.0,
        },
        /// x + bias below -lambda, x - bias above lambda, 0 between.
        Shrink {
            /// Bias.
            bias: f64 = 0.0,
            /// Lambda.
            lambda: f64 = 0.5,
        },
        /// x / (1 + e^(-alpha x)).
        Swish {
            /// Alpha.
            alpha: f64 = 1.0,
        },
        /// max(low, min(high, x)), with constant limits; NaN stays NaN.
        Clamp {
            /// Lower limit.
            low: f64 = f64::NEG_INFINITY,
            /// Upper limit.
            high: f64 = f64::INFINITY,
        },
        /// Whether x is infinite.
        IsInf {
            /// Whether minus infinity counts.
            negative: bool = true,
            /// Whether plus infinity counts.
            positive: bool = true,
        },
        /// alpha x + beta.
        Affine {
            /// Factor.
            alpha: f64 = 1.0,
            /// Addend.
            beta: f64 = 0.0,
        },
    }
}

words! {
    /// Elementwise, of two operands that are broadcast.
    #[derive(Copy, Eq, Hash)]
    pub enum Binary {
        /// a + b; integers wrap.
        Add,
        /// a - b; integers wrap.
        Sub,
        /// a b; integers wrap.
        Mul,
        /// a / b; integers towards zero, and 0 where b is 0.
        Div,
        /// The remainder, with the sign of b (as Python); 0 where an integer b is 0.
        Mod,
        /// The remainder, with the sign of a (as C).
        Fmod,
        /// a to the power b. The operands may have different types; the result has that of a.
        Pow,
        /// The larger one; NaN if one is NaN.
        Max,
        /// The smaller one; NaN if one is NaN.
        Min,
        /// x where x is at least 0, elsewhere slope x; the slope is broadcast to x.
        PRelu,
        /// Bits of both.
        BitwiseAnd,
        /// Bits of either.
        BitwiseOr,
        /// Bits of one.
        BitwiseXor,
        /// a shifted left by b bits; 0 from the number of bits on.
        ShiftLeft,
        /// a shifted right by b bits: the sign of a signed number moves in, and is all that is left from the number of bits on, and for a negative b.
        ShiftRight,
        /// Both are true.
        And,
        /// One is true.
        Or,
        /// One is true, and not both.
        Xor,
        /// a = b.
        Equal,
        /// a is not b.
        NotEqual,
        /// a < b.
        Less,
        /// a <= b.
        LessOrEqual,
        /// a > b.
        Greater,
        /// a >= b.
        GreaterOrEqual,
        /// The angle of the point (b, a).
        Atan2,
    }
}

words! {
    /// Elementwise, of one or more operands that are broadcast.
    #[derive(Copy, Eq, Hash)]
    pub enum Nary {
        /// The sum.
        Sum,
        /// The mean.
        Mean,
        /// The largest.
        Max,
        /// The smallest.
        Min,
    }
}

words! {
    /// What a reduction computes. Sums are added in `f64`, of integers in 64 bits that wrap, and rounded once.
    #[derive(Copy, Eq, Hash)]
    pub enum Reduction {
        /// The sum.
        Sum,
        /// The mean; of integers towards zero.
        Mean,
        /// The largest; of nothing minus infinity, or the least integer.
        Max,
        /// The smallest.
        Min,
        /// The product.
        Prod,
        /// The sum of absolute values.
        L1,
        /// The square root of the sum of squares.
        L2,
        /// The logarithm of the sum.
        LogSum,
        /// The logarithm of the sum of exponentials.
        LogSumExp,
        /// The sum of squares.
        SumSquare,
        /// Whether all are true (not 0).
        All,
        /// Whether one is true (not 0).
        Any,
    }
}

words! {
    /// How `Pad` fills.
    #[derive(Copy, Eq, Hash)]
    pub enum PadMode {
        /// With the value.
        Constant,
        /// With the mirror image, without the edge itself.
        Reflect,
        /// With the element at the edge.
        Edge,
        /// With the other end.
        Wrap,
    }
}

words! {
    /// How a scatter combines an update with the element that is there.
    #[derive(Copy, Eq, Hash)]
    pub enum ScatterReduction {
        /// The last update wins.
        None,
        /// The sum.
        Add,
        /// The product.
        Mul,
        /// The larger one.
        Max,
        /// The smaller one.
        Min,
    }
}

words! {
    /// How a window is laid over the spatial dimensions, for convolutions and pooling. Each list has one number for each spatial dimension;
    /// an empty list stands for ones, or for no padding.
    #[derive(Eq, Hash)]
    pub struct Window {
        /// Extents of the kernel. Convolutions take it from the weights where it is empty.
        pub kernel: Vec<usize> = Vec::new(),
        /// Steps of the window.
        pub strides: Vec<usize> = Vec::new(),
        /// Distances between elements of the kernel.
        pub dilations: Vec<usize> = Vec::new(),
        /// Padding: all beginnings, then all ends.
        pub padding: Padding = Padding::Explicit(Vec::new()),
    }
}

words! {
    /// Padding of a window.
    #[derive(Eq, Hash)]
    pub enum Padding {
        /// So many elements: all beginnings, then all ends; none, if empty. Negative ones are refused.
        Explicit(Vec<i64>),
        /// As many as make the output ceil(input / stride); an odd one at the end.
        SameUpper,
        /// The same, an odd one at the beginning.
        SameLower,
        /// None.
        Valid,
    }
}

words! {
    /// What a pooling computes.
    #[derive(Eq, Hash)]
    pub enum Pooling {
        /// The largest element; a second output has its index in the flattened tensor.
        Max {
            /// Indices count with the first spatial dimension innermost.
            column_major: bool = false,
        },
        /// The mean.
        Average {
            /// Whether padding counts as elements.
            count_padding: bool = false,
        },
        /// The root of the sum of powers.
        Lp {
            /// The power.
            p: usize = 2,
        },
    }
}

words! {
    /// How `Resize` computes an element.
    pub enum Interpolation {
        /// By the nearest element.
        Nearest(NearestMode = NearestMode::RoundPreferFloor),
        /// Linear in each dimension.
        Linear,
        /// Cubic in each dimension.
        Cubic {
            /// The coefficient a.
            a: f64 = -0.75,
        },
    }
}

words! {
    /// Which element is the nearest.
    #[derive(Copy, Eq, Hash)]
    pub enum NearestMode {
        /// Rounded, halves down.
        RoundPreferFloor,
        /// Rounded, halves up.
        RoundPreferCeil,
        /// The one below.
        Floor,
        /// The one above.
        Ceil,
    }
}

words! {
    /// From a coordinate of the output to one of the input.
    #[derive(Copy, Eq, Hash)]
    pub enum Coordinates {
        /// Centres of pixels: (x + 0.5) / scale - 0.5.
        HalfPixel,
        /// The same, around the centre of the image, where the scale does not divide.
        HalfPixelSymmetric,
        /// The same; 0 where the output has one element.
        PytorchHalfPixel,
        /// Corners on corners.
        AlignCorners,
        /// x / scale.
        Asymmetric,
        /// A part of the input, by the regions of the operator.
        CropAndResize,
    }
}

words! {
    /// To which size `Resize` goes.
    pub enum ResizeTarget {
        /// By these factors; the output is floor(input * factor).
        Scales(Vec<f64>),
        /// To these extents.
        Sizes {
            /// The extents.
            sizes: Vec<usize>,
            /// The aspect ratio.
            policy: AspectPolicy = AspectPolicy::Stretch,
        },
    }
}

words! {
    /// What becomes of the aspect ratio, where sizes are given.
    #[derive(Copy, Eq, Hash)]
    pub enum AspectPolicy {
        /// Nothing: each dimension gets its size.
        Stretch,
        /// It stays; no dimension is larger than its size.
        NotLarger,
        /// It stays; no dimension is smaller than its size.
        NotSmaller,
    }
}

words! {
    /// `Resize`.
    pub struct Resize {
        /// How an element is computed.
        pub interpolation: Interpolation = Interpolation::Nearest(NearestMode::RoundPreferFloor),
        /// From output to input.
        pub coordinates: Coordinates = Coordinates::HalfPixel,
        /// The size.
        pub target: ResizeTarget,
        /// The dimensions that the target names; `None`: all.
        pub axes: Option<Vec<i64>> = None,
        /// Weights outside of the input count as 0, and the others are scaled.
        pub exclude_outside: bool = false,
        /// A filter is stretched where the output is smaller.
        pub antialias: bool = false,
        /// The value outside of the region, for `CropAndResize`.
        pub extrapolation: f64 = 0.0,
        /// For `CropAndResize`: beginnings, then ends, from 0 to 1.
        pub regions: Vec<f64> = Vec::new(),
    }
}

words! {
    /// What a product or a convolution does with its result before it stores it.
    pub enum Epilogue {
        /// Nothing.
        None,
        /// An elementwise function.
        Unary(Unary),
        /// An elementwise function with numbers.
        Activation(Activation),
        /// Several functions, of `f32` and `f64`: operand 0 is the result of the product, 1 that of the first step, and so on. What is left is the result of
        /// the last one.
        Steps(Vec<Step>),
    }
}

words! {
    /// The order of channels and blocks of `DepthToSpace`.
    #[derive(Copy, Eq, Hash)]
    pub enum DepthOrder {
        /// Depth, column, row: the block is the outer part of the channel.
        Dcr,
        /// Column, row, depth: the block is the inner part.
        Crd,
    }
}

words! {
    /// A function of elements.
    pub enum Function {
        /// Of one operand.
        Unary(Unary),
        /// Of one operand, with numbers.
        Activation(Activation),
        /// Of two operands.
        Binary(Binary),
        /// Of one or more operands.
        Nary(Nary),
        /// Condition, x, y.
        Where,
        /// x, min (optional), max (optional).
        Clip,
        /// To this type.
        Cast(DType),
    }
}

words! {
    /// A step of a fused elementwise operator.
    pub struct Step {
        /// What it computes.
        pub function: Function,
        /// Its operands: first count the inputs of the operator, behind them the steps. `None`: an optional one is not given.
        pub operands: Vec<Option<usize>>,
    }
}

words! {
    /// An operator.
    pub enum Operator {
        /// Any number of inputs, which are broadcast; the result is that of the last step. The bits are those of single operators.
        Fused {
            /// The steps.
            steps: Vec<Step>,
        },
        /// x. Elementwise.
        Unary(Unary),
        /// x. Elementwise with numbers.
        Activation(Activation),
        /// a, b. Elementwise and broadcast.
        Binary(Binary),
        /// Any number of inputs, elementwise and broadcast.
        Nary(Nary),
        /// condition (`bool`), x, y; all are broadcast.
        Where,
        /// x, min (scalar, optional), max (scalar, optional). Elementwise.
        Clip,
        /// x. Each element as another type; floats become integers towards zero and saturate, NaN becomes 0, integers become smaller ones by dropping bits.
        Cast {
            /// The type.
            to: DType,
        },
        /// x. Over some axes.
        Reduce {
            /// What is computed.
            reduction: Reduction,
            /// The axes; `None`: all; an empty list: none, so that each element is a group.
            axes: Option<Vec<i64>> = None,
            /// Whether a reduced dimension stays, with extent 1.
            keep_dims: bool = true,
        },
        /// x. The position of the largest or smallest element along an axis, as `i64`.
        ArgReduce {
            /// Whether it is the largest.
            largest: bool,
            /// The axis.
            axis: i64 = 0,
            /// Whether the dimension stays, with extent 1.
            keep_dims: bool = true,
            /// Of equal elements the last.
            select_last: bool = false,
        },
        /// x. The same elements in other extents: -1 is what is left, 0 is that of the input.
        Reshape {
            /// The extents.
            shape: Vec<i64>,
            /// 0 is an extent of 0.
            allow_zero: bool = false,
        },
        /// x. Without dimensions of extent 1.
        Squeeze {
            /// Which; `None`: all of them.
            axes: Option<Vec<i64>> = None,
        },
        /// x. With more dimensions of extent 1.
        Unsqueeze {
            /// Where in the result.
            axes: Vec<i64>,
        },
        /// x. As a matrix: the dimensions before the axis, and the rest.
        Flatten {
            /// The axis.
            axis: i64 = 1,
        },
        /// x. Dimensions in another order.
        Transpose {
            /// For each dimension of the result that of the input; `None`: reversed.
            permutation: Option<Vec<usize>> = None,
        },
        /// x. A part, with steps.
        Slice {
            /// Beginnings.
            starts: Vec<i64>,
            /// Ends.
            ends: Vec<i64>,
            /// The axes; `None`: the first ones.
            axes: Option<Vec<i64>> = None,
            /// Steps; `None`: 1.
            steps: Option<Vec<i64>> = None,
        },
        /// One or more inputs, one behind the other along an axis.
        Concat {
            /// The axis.
            axis: i64,
        },
        /// x. Parts along an axis, one output each.
        Split {
            /// The axis.
            axis: i64 = 0,
            /// Extents of the parts.
            sizes: Vec<usize>,
        },
        /// x. Broadcast to extents (in both directions, as ONNX has it).
        Expand {
            /// The extents.
            shape: Vec<i64>,
        },
        /// x. Repeated along each dimension.
        Tile {
            /// How often.
            repeats: Vec<i64>,
        },
        /// x, value (scalar, optional). Filled up at both ends; negative numbers cut off.
        Pad {
            /// How it is filled.
            mode: PadMode = PadMode::Constant,
            /// All beginnings, then all ends.
            pads: Vec<i64>,
            /// The axes of `pads`; `None`: all.
            axes: Option<Vec<i64>> = None,
        },
        /// data, indices (`i32`, `i64`). Slices of an axis, chosen by indices; negative ones count from the end.
        Gather {
            /// The axis.
            axis: i64 = 0,
        },
        /// data, indices. Elements, chosen along an axis.
        GatherElements {
            /// The axis.
            axis: i64 = 0,
        },
        /// data, indices. Slices, chosen by tuples in the last dimension of the indices.
        GatherNd {
            /// Leading dimensions that both have.
            batch_dims: usize = 0,
        },
        /// data, indices, updates. Elements, put along an axis.
        ScatterElements {
            /// The axis.
            axis: i64 = 0,
            /// How they are combined.
            reduction: ScatterReduction = ScatterReduction::None,
        },
        /// data, indices, updates. Slices, put by tuples in the last dimension of the indices.
        ScatterNd {
            /// How they are combined.
            reduction: ScatterReduction = ScatterReduction::None,
        },
        /// x (batch, channels, height, width). Blocks of pixels become channels.
        SpaceToDepth {
            /// Side of a block.
            block: usize,
        },
        /// x (batch, channels, height, width). Channels become blocks of pixels.
        DepthToSpace {
            /// Side of a block.
            block: usize,
            /// Which channels are a block.
            order: DepthOrder = DepthOrder::Dcr,
        },
        /// indices, values ([off, on]). A new dimension with `on` at the index.
        OneHot {
            /// Extent of the new dimension.
            depth: usize,
            /// Where it is in the result.
            axis: i64 = -1,
        },
        /// start, limit, delta (scalars, constant).
        Range,
        /// value (one element). A tensor of that value.
        Fill {
            /// The extents.
            shape: Vec<usize>,
        },
        /// x. The extents of a part of the dimensions, as `i64`.
        Shape {
            /// The first dimension.
            start: i64 = 0,
            /// The one behind the last; `None`: all the rest.
            end: Option<i64> = None,
        },
        /// x. The number of elements, as an `i64` scalar.
        Size,
        /// x (matrix). Ones on a diagonal.
        EyeLike {
            /// The diagonal.
            k: i64 = 0,
            /// The type.
            dtype: DType,
        },
        /// x. The upper or lower triangle of the last two dimensions; zeros elsewhere.
        Trilu {
            /// Whether it is the upper one.
            upper: bool = true,
            /// The diagonal.
            k: i64 = 0,
        },
        /// x (constant). The indices of elements that are not 0: one column each.
        NonZero,
        /// x, condition (`bool`, constant). The slices of an axis where the condition is true.
        Compress {
            /// The axis; `None`: of the flattened input.
            axis: Option<i64> = None,
        },
        /// x. Sums of the elements so far along an axis.
        CumSum {
            /// The axis.
            axis: i64,
            /// Without the element itself.
            exclusive: bool = false,
            /// From the end.
            reverse: bool = false,
        },
        /// x. Products of the elements so far along an axis.
        CumProd {
            /// The axis.
            axis: i64,
            /// Without the element itself.
            exclusive: bool = false,
            /// From the end.
            reverse: bool = false,
        },
        /// x, lengths (`i64`, one for each batch). The first elements of each sequence in reverse order.
        ReverseSequence {
            /// The dimension of sequences, 0 or 1.
            batch_axis: usize = 1,
            /// The dimension of time, 0 or 1.
            time_axis: usize = 0,
        },
        /// a, b, bias (optional, broadcast to the result). Products of matrices, batches broadcast as NumPy's `matmul`.
        MatMul {
            /// Applied to the result.
            epilogue: Epilogue = Epilogue::None,
        },
        /// a, b, c (optional, broadcast). alpha a b + beta c.
        Gemm {
            /// Factor of the product.
            alpha: f64 = 1.0,
            /// Factor of c.
            beta: f64 = 1.0,
            /// Whether a is transposed.
            trans_a: bool = false,
            /// Whether b is transposed.
            trans_b: bool = false,
            /// Applied to the result.
            epilogue: Epilogue = Epilogue::None,
        },
        /// x (batch, channels, spatial..), weights (out, channels / groups, kernel..), bias (optional, out). One to three spatial dimensions.
        Conv {
            /// The window.
            window: Window,
            /// Groups of channels.
            groups: usize = 1,
            /// Applied to the result.
            epilogue: Epilogue = Epilogue::None,
        },
        /// x (batch, channels, spatial..), weights (channels, out / groups, kernel..), bias (optional, out). One to three spatial dimensions.
        ConvTranspose {
            /// The window.
            window: Window,
            /// Groups of channels.
            groups: usize = 1,
            /// Added to one end of each extent; empty: zeros.
            output_padding: Vec<usize> = Vec::new(),
            /// The spatial extents of the result, from which padding follows; empty: they follow from the padding.
            output_shape: Vec<usize> = Vec::new(),
            /// Applied to the result.
            epilogue: Epilogue = Epilogue::None,
        },
        /// x (batch, channels, spatial..). Over windows.
        Pool {
            /// What is computed.
            pooling: Pooling,
            /// The window.
            window: Window,
            /// The number of windows is rounded up.
            ceil_mode: bool = false,
        },
        /// x (batch, channels, spatial..). Over all spatial dimensions, which stay with extent 1.
        GlobalPool {
            /// What is computed.
            pooling: Pooling,
        },
        /// x.
        Resize(Resize),
        /// x (batch, channels, ..), scale, bias, mean, variance (each: channels). With these statistics.
        BatchNormalization {
            /// Added to the variance.
            epsilon: f64 = 1e-5,
        },
        /// x, scale, bias (optional), both broadcast to x. Over the axes from `axis` on. Outputs: y, mean, 1 / standard deviation.
        LayerNormalization {
            /// The first axis.
            axis: i64 = -1,
            /// Added to the variance.
            epsilon: f64 = 1e-5,
        },
        /// x, scale, broadcast to x. Divided by the root of the mean of squares over the axes from `axis` on.
        RmsNormalization {
            /// The first axis.
            axis: i64 = -1,
            /// Added to the mean of squares.
            epsilon: f64 = 1e-5,
        },
        /// x (batch, channels, ..), scale, bias (each: channels). Over the spatial dimensions.
        InstanceNormalization {
            /// Added to the variance.
            epsilon: f64 = 1e-5,
        },
        /// x (batch, channels, ..), scale, bias (each: channels). Over the spatial dimensions and groups of channels.
        GroupNormalization {
            /// Groups of channels.
            groups: usize,
            /// Added to the variance.
            epsilon: f64 = 1e-5,
        },
        /// x (batch, channels, ..). Divided by a power of the sum of squares of near channels.
        Lrn {
            /// How many channels.
            size: usize,
            /// Factor.
            alpha: f64 = 1e-4,
            /// Power.
            beta: f64 = 0.75,
            /// Addend.
            bias: f64 = 1.0,
        },
        /// x. Divided by the norm along an axis.
        LpNormalization {
            /// The axis.
            axis: i64 = -1,
            /// 1 or 2.
            p: usize = 2,
        },
        /// x. Less the mean, divided by the standard deviation, over some axes.
        MeanVarianceNormalization {
            /// The axes.
            axes: Vec<i64> = vec![0, 2, 3],
        },
        /// x. Along an axis.
        Softmax {
            /// The axis.
            axis: i64 = -1,
        },
        /// x. The logarithm of `Softmax`.
        LogSoftmax {
            /// The axis.
            axis: i64 = -1,
        },
        /// x. One at the first largest element along an axis, 0 elsewhere.
        Hardmax {
            /// The axis.
            axis: i64 = -1,
        },
        /// q (.., queries, d), k (.., keys, d), v (.., keys, dv), mask (optional, broadcast to (.., queries, keys); `bool`: false excludes; floats are added).
        /// softmax(scale q k^T + mask) v. Heads of k and v may be fewer: each serves as many heads of q that follow each other.
        Attention {
            /// The factor; `None`: 1 / sqrt(d).
            scale: Option<f64> = None,
            /// A query sees no later keys.
            causal: bool = false,
            /// Scores become softcap tanh(score / softcap); 0: they do not.
            softcap: f64 = 0.0,
        },
        /// x. The largest or smallest elements along an axis, and their positions as `i64`.
        TopK {
            /// How many.
            k: usize,
            /// The axis.
            axis: i64 = -1,
            /// Whether these are the largest.
            largest: bool = true,
            /// Whether they are in order.
            sorted: bool = true,
        },
        /// x. Sorted along an axis, NaN last, and the positions as `i64`; stable.
        Sort {
            /// The axis.
            axis: i64 = -1,
            /// Largest first.
            descending: bool = false,
        },
        /// No input. Uniform numbers from `low` to `high`, by Philox 4x32-10: the same seed, the same bits.
        RandomUniform {
            /// The type: a float.
            dtype: DType = DType::F32,
            /// The extents.
            shape: Vec<usize>,
            /// Lower limit.
            low: f64 = 0.0,
            /// Upper limit.
            high: f64 = 1.0,
            /// The seed.
            seed: u64,
        },
        /// No input. Normally distributed numbers, by Philox and Box-Muller.
        RandomNormal {
            /// The type: a float.
            dtype: DType = DType::F32,
            /// The extents.
            shape: Vec<usize>,
            /// Mean.
            mean: f64 = 0.0,
            /// Standard deviation.
            deviation: f64 = 1.0,
            /// The seed.
            seed: u64,
        },
    }
}

impl Operator {
    /// The operator as words: the same ones for the same operator with the same attributes.
    #[must_use]
    pub fn words(&self) -> Vec<u64> {
        words_of(self)
    }

    /// Whether the extents of the results depend on elements of the inputs, which have to be known then ([`Input::constant`](crate::Input)).
    #[must_use]
    pub const fn needs_elements(&self) -> bool {
        matches!(self, Self::NonZero | Self::Compress { .. } | Self::Range)
    }

    /// Whether the operator gives the elements of its first input as they are, in the same order.
    #[must_use]
    pub const fn keeps_elements(&self) -> bool {
        matches!(
            self,
            Self::Unary(Unary::Identity)
                | Self::Reshape { .. }
                | Self::Squeeze { .. }
                | Self::Unsqueeze { .. }
                | Self::Flatten { .. }
        )
    }

    /// How many of the results every use of the operator has; the others are optional.
    #[must_use]
    pub const fn usual_results(&self) -> usize {
        match self {
            Self::TopK { .. } | Self::Sort { .. } => 2,
            Self::Split { sizes, .. } => sizes.len(),
            _ => 1,
        }
    }

    /// The name in errors and timelines: that of the function, where the operator is elementwise.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Unary(unary) => unary.variant(),
            Self::Activation(activation) => activation.variant(),
            Self::Binary(binary) => binary.variant(),
            Self::Nary(nary) => nary.variant(),
            Self::Reduce { reduction, .. } => reduction.operator_name(),
            Self::ArgReduce { largest: true, .. } => "ArgMax",
            Self::ArgReduce { largest: false, .. } => "ArgMin",
            other => other.variant(),
        }
    }
}

impl Reduction {
    const fn operator_name(self) -> &'static str {
        match self {
            Self::Sum => "ReduceSum",
            Self::Mean => "ReduceMean",
            Self::Max => "ReduceMax",
            Self::Min => "ReduceMin",
            Self::Prod => "ReduceProd",
            Self::L1 => "ReduceL1",
            Self::L2 => "ReduceL2",
            Self::LogSum => "ReduceLogSum",
            Self::LogSumExp => "ReduceLogSumExp",
            Self::SumSquare => "ReduceSumSquare",
            Self::All => "ReduceAll",
            Self::Any => "ReduceAny",
        }
    }
}

impl Operator {
    /// The function of elements that it is; `None`: it is no elementwise operator of one function.
    #[must_use]
    pub fn function(&self) -> Option<Function> {
        Some(match self {
            Self::Unary(unary) => Function::Unary(*unary),
            Self::Activation(activation) => Function::Activation(activation.clone()),
            Self::Binary(binary) => Function::Binary(*binary),
            Self::Nary(nary) => Function::Nary(*nary),
            Self::Where => Function::Where,
            Self::Clip => Function::Clip,
            Self::Cast { to } => Function::Cast(*to),
            _ => return None,
        })
    }

    /// The operator of one function of elements.
    #[must_use]
    pub fn of_function(function: &Function) -> Self {
        match function {
            Function::Unary(unary) => Self::Unary(*unary),
            Function::Activation(activation) => Self::Activation(activation.clone()),
            Function::Binary(binary) => Self::Binary(*binary),
            Function::Nary(nary) => Self::Nary(*nary),
            Function::Where => Self::Where,
            Function::Clip => Self::Clip,
            Function::Cast(to) => Self::Cast { to: *to },
        }
    }
}
