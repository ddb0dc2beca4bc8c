//! The operators of the library: for each its name, its twin in place, its arguments and outputs as C passes them, and its rule. The two functions of each are
//! made of its row, and so are those of the twin, whose output is its first argument.
//!
//! | letter | type in C |
//! |---|---|
//! | `T` `S` `I` `L` | `aclTensor *`, `aclScalar *`, `aclIntArray *`, `aclTensorList *` |
//! | `B` `C` `W` `N` `u64` | `bool`, `int8_t`, `int32_t` and `aclDataType`, `int64_t`, `uint64_t` |
//! | `F` `D` `X` | `float`, `double`, `const char *` |

use std::ffi::c_void;
use std::sync::OnceLock;

use pto_operators::Binary as Bi;
use pto_operators::{Reduction, Unary};

use crate::call::{
    B, C, D, F, Gathered, I, L, N, Output, Parameter, Row, S, T, W, X, first_as_output, prepare,
    run, tensor,
};
use crate::rules::elementwise::{self as e, OperandForm};
use crate::rules::{index, linear, random, reduce, search, shape};

/// The two functions of an operator: a name, arguments of the first call, its outputs, and arguments behind them.
macro_rules! functions {
    ($name:literal, [$($arg:ident: $Kind:ty),*], [$($out:ident),*], [$($late:ident: $Late:ty),*], $is_in_place:literal, $rule:expr) => {
        const _: () = {
            static ROW: Row = Row {
                names: [
                    // SAFETY of the conversion: the literal ends with the only zero.
                    match std::ffi::CStr::from_bytes_with_nul(concat!("aclnn", $name, "\0").as_bytes()) { Ok(name) => name, Err(_) => panic!("a name has no zero") },
                    match std::ffi::CStr::from_bytes_with_nul(concat!("aclnn", $name, "GetWorkspaceSize\0").as_bytes()) { Ok(name) => name, Err(_) => panic!("a name has no zero") },
                ],
                kernel: concat!("aclnn", $name),
                build: $rule,
                function: OnceLock::new(),
            };

            #[unsafe(export_name = concat!("aclnn", $name, "GetWorkspaceSize"))]
            unsafe extern "C" fn workspace($($arg: $Kind,)* $($out: T,)* $($late: $Late,)* size: *mut u64, executor: *mut usize) -> i32 {
                let gather = || {
                    let mut tensors = 0;
                    let count = &mut tensors;
                    let args = vec![
                        // SAFETY: the caller vouches for text.
                        $((named(stringify!($arg)), unsafe { $arg.arg(named(stringify!($arg)), count) }?),)*
                        // SAFETY: as above.
                        $((named(stringify!($late)), unsafe { $late.arg(named(stringify!($late)), count) }?),)*
                    ];
                    let own: Vec<Output> = vec![$((named(stringify!($out)), tensor(named(stringify!($out)), $out.0, count)?)),*];
                    let outs = if $is_in_place { first_as_output(&args, count) } else { own };
                    Ok(Gathered { args, outs, tensors })
                };
                // SAFETY: the caller vouches for the pointers.
                unsafe { prepare(&ROW, size, executor, gather) }
            }

            #[unsafe(export_name = concat!("aclnn", $name))]
            unsafe extern "C" fn launch(_workspace: *mut c_void, _size: u64, executor: usize, stream: usize) -> i32 {
                run(&ROW, executor, stream)
            }
        };
    };
}

/// The name of an argument, as the interface has it.
const fn named(name: &'static str) -> &'static str {
    match name.as_bytes() {
        b"self_" => "self",
        _ => name,
    }
}

/// Rows: `NAME / TWIN (arguments | outputs | arguments behind them) => rule`. The twin, and what follows a bar, may be left out.
macro_rules! operators {
    ($($name:literal $(/ $twin:literal)? ($($args:tt)*) => $rule:expr;)*) => {
        $(operators!(@row [$name $($twin)?] ($($args)*) $rule);)*
        /// The names of all operators.
        pub const OPERATORS: &[&str] = &[$(concat!("aclnn", $name), $(concat!("aclnn", $twin),)?)*];
    };
    (@row [$name:literal] ($($arg:ident: $Kind:ty),*) $rule:expr) => {
        functions!($name, [$($arg: $Kind),*], [], [], true, $rule);
    };
    (@row [$name:literal] ($($arg:ident: $Kind:ty),* | $($out:ident),+) $rule:expr) => {
        functions!($name, [$($arg: $Kind),*], [$($out),+], [], false, $rule);
    };
    (@row [$name:literal] ($($arg:ident: $Kind:ty),* | $($out:ident),+ | $($late:ident: $Late:ty),+) $rule:expr) => {
        functions!($name, [$($arg: $Kind),*], [$($out),+], [$($late: $Late),+], false, $rule);
    };
    (@row [$name:literal $twin:literal] ($($arg:ident: $Kind:ty),* | $out:ident) $rule:expr) => {
        functions!($name, [$($arg: $Kind),*], [$out], [], false, $rule);
        functions!($twin, [$($arg: $Kind),*], [], [], true, $rule);
    };
}

operators! {
    // Functions of one number.
    "Abs" (self_: T | out) => |c| e::number(c, Unary::Abs);
    "Acos" / "InplaceAcos" (self_: T | out) => |c| e::float(c, Unary::Acos);
    "Acosh" / "InplaceAcosh" (self_: T | out) => |c| e::float(c, Unary::Acosh);
    "Asin" / "InplaceAsin" (self_: T | out) => |c| e::float(c, Unary::Asin);
    "Asinh" / "InplaceAsinh" (self_: T | out) => |c| e::float(c, Unary::Asinh);
    "Atan" / "InplaceAtan" (self_: T | out) => |c| e::float(c, Unary::Atan);
    "Atanh" / "InplaceAtanh" (self_: T | out) => |c| e::float(c, Unary::Atanh);
    "Ceil" / "InplaceCeil" (self_: T | out) => |c| e::number(c, Unary::Ceil);
    "Cos" / "InplaceCos" (self_: T | out) => |c| e::float(c, Unary::Cos);
    "Cosh" / "InplaceCosh" (self_: T | out) => |c| e::float(c, Unary::Cosh);
    "Erf" / "InplaceErf" (self_: T | out) => |c| e::float(c, Unary::Erf);
    "Erfc" / "InplaceErfc" (self_: T | out) => e::erfc;
    "Erfinv" / "InplaceErfinv" (self_: T | out) => e::erfinv;
    "Exp" / "InplaceExp" (self_: T | out) => |c| e::float(c, Unary::Exp);
    "Exp2" / "InplaceExp2" (self_: T | out) => |c| e::float(c, Unary::Exp2);
    "Expm1" / "InplaceExpm1" (self_: T | out) => |c| e::float(c, Unary::Expm1);
    "Floor" / "InplaceFloor" (self_: T | out) => |c| e::number(c, Unary::Floor);
    "Log" / "InplaceLog" (self_: T | out) => |c| e::float(c, Unary::Log);
    "Log10" / "InplaceLog10" (self_: T | out) => |c| e::float(c, Unary::Log10);
    "Log1p" / "InplaceLog1p" (self_: T | out) => |c| e::float(c, Unary::Log1p);
    "Log2" / "InplaceLog2" (self_: T | out) => |c| e::float(c, Unary::Log2);
    "Neg" / "InplaceNeg" (self_: T | out) => |c| e::number(c, Unary::Neg);
    "Reciprocal" / "InplaceReciprocal" (self_: T | out) => |c| e::float(c, Unary::Reciprocal);
    "Round" / "InplaceRound" (self_: T | out) => |c| e::number(c, Unary::Round);
    "Sign" (self_: T | out) => |c| e::number(c, Unary::Sign);
    "Signbit" (self_: T | out) => e::sign_bit;
    "Sin" / "InplaceSin" (self_: T | out) => |c| e::float(c, Unary::Sin);
    "Sinc" / "InplaceSinc" (self_: T | out) => e::sinc;
    "Sinh" / "InplaceSinh" (self_: T | out) => |c| e::float(c, Unary::Sinh);
    "Sqrt" / "InplaceSqrt" (self_: T | out) => |c| e::float(c, Unary::Sqrt);
    "Tan" / "InplaceTan" (self_: T | out) => |c| e::float(c, Unary::Tan);
    "Tanh" / "InplaceTanh" (self_: T | out) => |c| e::float(c, Unary::Tanh);
    "Trunc" / "InplaceTrunc" (self_: T | out) => |c| e::number(c, Unary::Trunc);
    "BitwiseNot" (self_: T | out) => e::bitwise_not;
    "LogicalNot" (self_: T | out) => e::logical_not;
    "IsFinite" (self_: T | out) => e::is_finite;
    "IsInf" (self_: T | out) => |c| e::is_infinite(c, true, true);
    "IsNegInf" (self_: T | out) => |c| e::is_infinite(c, true, false);
    "IsPosInf" (self_: T | out) => |c| e::is_infinite(c, false, true);
    "Real" (self_: T | out) => e::real;
    "Cast" (self_: T, dtype: W | out) => e::cast;
    "NanToNum" (self_: T, nan: F, posinf: F, neginf: F | out) => e::nan_to_num;
    "RoundDecimals" (self_: T, decimals: N | out) => e::round_decimals;
    "Clamp" (self_: T, clipValueMin: S, clipValueMax: S | out) => e::clamp;

    // Functions of two numbers.
    "Add" / "InplaceAdd" (self_: T, other: T, alpha: S | out) => |c| e::sum(c, Bi::Add, OperandForm::Tensors);
    "Adds" (self_: T, other: S, alpha: S | out) => |c| e::sum(c, Bi::Add, OperandForm::Scalar);
    "Sub" / "InplaceSub" (self_: T, other: T, alpha: S | out) => |c| e::sum(c, Bi::Sub, OperandForm::Tensors);
    "Subs" (self_: T, other: S, alpha: S | out) => |c| e::sum(c, Bi::Sub, OperandForm::Scalar);
    "Rsubs" (self_: T, other: S, alpha: S | out) => |c| e::sum(c, Bi::Sub, OperandForm::Reversed);
    "Mul" / "InplaceMul" (self_: T, other: T | out) => |c| e::arithmetic(c, Bi::Mul, OperandForm::Tensors);
    "Muls" (self_: T, other: S | out) => |c| e::arithmetic(c, Bi::Mul, OperandForm::Scalar);
    "Div" / "InplaceDiv" (self_: T, other: T | out) => |c| e::divide(c, OperandForm::Tensors);
    "Divs" (self_: T, other: S | out) => |c| e::divide(c, OperandForm::Scalar);
    "DivMod" (self_: T, other: T, mode: W | out) => e::divide_mode;
    "FloorDivide" / "InplaceFloorDivide" (self_: T, other: T | out) => |c| e::floor_divide(c, OperandForm::Tensors);
    "FloorDivides" / "InplaceFloorDivides" (self_: T, other: S | out) => |c| e::floor_divide(c, OperandForm::Scalar);
    "FmodTensor" / "InplaceFmodTensor" (self_: T, other: T | out) => |c| e::arithmetic(c, Bi::Fmod, OperandForm::Tensors);
    "FmodScalar" / "InplaceFmodScalar" (self_: T, other: S | out) => |c| e::arithmetic(c, Bi::Fmod, OperandForm::Scalar);
    "RemainderTensorTensor" / "InplaceRemainderTensorTensor" (self_: T, other: T | out) => |c| e::arithmetic(c, Bi::Mod, OperandForm::Tensors);
    "RemainderTensorScalar" (self_: T, other: S | out) => |c| e::arithmetic(c, Bi::Mod, OperandForm::Scalar);
    "RemainderScalarTensor" (self_: S, other: T | out) => |c| e::arithmetic(c, Bi::Mod, OperandForm::Reversed);
    "PowTensorTensor" (self_: T, exponent: T | out) => |c| e::power(c, OperandForm::Tensors);
    "PowTensorScalar" / "InplacePowTensorScalar" (self_: T, exponent: S | out) => |c| e::power(c, OperandForm::Scalar);
    "PowScalarTensor" (self_: S, exponent: T | out) => |c| e::power(c, OperandForm::Reversed);
    "Maximum" (self_: T, other: T | out) => |c| e::arithmetic(c, Bi::Max, OperandForm::Tensors);
    "Minimum" (self_: T, other: T | out) => |c| e::arithmetic(c, Bi::Min, OperandForm::Tensors);
    "Atan2" (self_: T, other: T | out) => |c| e::float_pair(c, Bi::Atan2);
    "LogAddExp" (self_: T, other: T | out) => |c| e::log_add_exp(c, false);
    "LogAddExp2" (self_: T, other: T | out) => |c| e::log_add_exp(c, true);
    "Gcd" (self_: T, other: T | out) => e::gcd;
    "Heaviside" (self_: T, values: T | out) => e::heaviside;
    "LeftShift" (self_: T, shiftBits: T | out) => |c| e::bitwise(c, Bi::ShiftLeft, OperandForm::Tensors);
    "RightShift" (self_: T, shiftBits: T | out) => |c| e::bitwise(c, Bi::ShiftRight, OperandForm::Tensors);
    "BitwiseAndTensor" / "InplaceBitwiseAndTensor" (self_: T, other: T | out) => |c| e::bitwise(c, Bi::BitwiseAnd, OperandForm::Tensors);
    "BitwiseAndScalar" / "InplaceBitwiseAndScalar" (self_: T, other: S | out) => |c| e::bitwise(c, Bi::BitwiseAnd, OperandForm::Scalar);
    "BitwiseOrTensor" / "InplaceBitwiseOrTensor" (self_: T, other: T | out) => |c| e::bitwise(c, Bi::BitwiseOr, OperandForm::Tensors);
    "BitwiseOrScalar" / "InplaceBitwiseOrScalar" (self_: T, other: S | out) => |c| e::bitwise(c, Bi::BitwiseOr, OperandForm::Scalar);
    "BitwiseXorTensor" / "InplaceBitwiseXorTensor" (self_: T, other: T | out) => |c| e::bitwise(c, Bi::BitwiseXor, OperandForm::Tensors);
    "BitwiseXorScalar" / "InplaceBitwiseXorScalar" (self_: T, other: S | out) => |c| e::bitwise(c, Bi::BitwiseXor, OperandForm::Scalar);
    "LogicalAnd" (self_: T, other: T | out) => |c| e::logical(c, Bi::And);
    "LogicalOr" (self_: T, other: T | out) => |c| e::logical(c, Bi::Or);
    "LogicalXor" (self_: T, other: T | out) => |c| e::logical(c, Bi::Xor);
    "EqTensor" (self_: T, other: T | out) => |c| e::compare(c, Bi::Equal, OperandForm::Tensors);
    "EqScalar" (self_: T, other: S | out) => |c| e::compare(c, Bi::Equal, OperandForm::Scalar);
    "NeTensor" (self_: T, other: T | out) => |c| e::compare(c, Bi::NotEqual, OperandForm::Tensors);
    "NeScalar" (self_: T, other: S | out) => |c| e::compare(c, Bi::NotEqual, OperandForm::Scalar);
    "LtTensor" (self_: T, other: T | out) => |c| e::compare(c, Bi::Less, OperandForm::Tensors);
    "LtScalar" (self_: T, other: S | out) => |c| e::compare(c, Bi::Less, OperandForm::Scalar);
    "LeTensor" (self_: T, other: T | out) => |c| e::compare(c, Bi::LessOrEqual, OperandForm::Tensors);
    "LeScalar" (self_: T, other: S | out) => |c| e::compare(c, Bi::LessOrEqual, OperandForm::Scalar);
    "GtTensor" (self_: T, other: T | out) => |c| e::compare(c, Bi::Greater, OperandForm::Tensors);
    "GtScalar" (self_: T, other: S | out) => |c| e::compare(c, Bi::Greater, OperandForm::Scalar);
    "GeTensor" (self_: T, other: T | out) => |c| e::compare(c, Bi::GreaterOrEqual, OperandForm::Tensors);
    "GeScalar" (self_: T, other: S | out) => |c| e::compare(c, Bi::GreaterOrEqual, OperandForm::Scalar);
    "Complex" (real: T, imag: T | out) => e::complex;

    // Choices and constants.
    "SWhere" (condition: T, self_: T, other: T | out) => e::choose;
    "MaxN" (tensors: L | out) => |c| e::of_list(c, Bi::Max);
    "MinN" (tensors: L | out) => |c| e::of_list(c, Bi::Min);
    "InplaceFillScalar" (selfRef: T, value: S) => |c| e::fill(c, false);
    "InplaceFillTensor" (selfRef: T, value: T) => |c| e::fill(c, true);
    "InplaceMaskedFillScalar" (selfRef: T, mask: T, value: S) => |c| e::masked_fill(c, false);
    "InplaceMaskedFillTensor" (selfRef: T, mask: T, value: T) => |c| e::masked_fill(c, true);

    // Reductions and scans.
    "ReduceSum" (self_: T, dims: I, keepDims: B, dtype: W | out) => |c| reduce::sum(c, Reduction::Sum, false);
    "ReduceNansum" (self_: T, dims: I, keepDims: B, dtype: W | out) => |c| reduce::sum(c, Reduction::Sum, true);
    "Mean" (self_: T, dim: I, keepDim: B, dtype: W | out) => |c| reduce::sum(c, Reduction::Mean, false);
    "ProdDim" (self_: T, dim: N, keepDim: B, dtype: W | out) => reduce::product;
    "Amax" (self_: T, dim: I, keepDim: B | out) => |c| reduce::extreme(c, Reduction::Max);
    "Amin" (self_: T, dim: I, keepDim: B | out) => |c| reduce::extreme(c, Reduction::Min);
    "MaxV2" (self_: T, dims: I, keepDims: B, noopWithEmptyDims: B | out) => reduce::largest;
    "AminmaxAll" (self_: T | minOut, maxOut) => |c| reduce::extremes(c, false);
    "AminmaxDim" (self_: T, dim: N, keepDim: B | minOut, maxOut) => |c| reduce::extremes(c, true);
    "All" (self_: T, dim: I, keepDim: B | out) => |c| reduce::logical(c, Reduction::All);
    "Any" (self_: T, dim: I, keepDim: B | out) => |c| reduce::logical(c, Reduction::Any);
    "ArgMax" (self_: T, dim: N, keepDim: B | out) => |c| reduce::position(c, true);
    "ArgMin" (self_: T, dim: N, keepDim: B | out) => |c| reduce::position(c, false);
    "Var" (self_: T, dim: I, unbiased: B, keepDim: B | out) => |c| reduce::variance(c, false);
    "Std" (self_: T, dim: I, correction: N, keepDim: B | out) => |c| reduce::variance(c, true);
    "Median" (self_: T | out) => reduce::median;
    "Cumsum" (self_: T, dim: N, dtype: W | out) => |c| reduce::scan(c, false);
    "Cumprod" (self_: T, dim: S, dtype: W | out) => |c| reduce::scan(c, true);
    "Trace" (self_: T | out) => reduce::trace;

    // Elements in other places.
    "Permute" (self_: T, dims: I | out) => shape::permute;
    "Flip" (self_: T, dims: I | out) => shape::flip;
    "Roll" (self_: T, shifts: I, dims: I | out) => shape::roll;
    "Flatten" (self_: T, axis: N | out) => shape::flatten;
    "Repeat" (self_: T, repeats: I | out) => shape::repeat;
    "Cat" (tensors: L, dim: N | out) => |c| shape::join(c, false);
    "Stack" (tensors: L, dim: N | out) => |c| shape::join(c, true);
    "Tril" (self_: T, diagonal: N | out) => |c| shape::triangle(c, false);
    "Triu" (self_: T, diagonal: N | out) => |c| shape::triangle(c, true);
    "Arange" (start: S, end: S, step: S | out) => shape::arange;
    "InplaceFillDiagonal" (selfRef: T, fillValue: S, wrap: B) => shape::fill_diagonal;

    // Elements chosen or replaced by indices and masks.
    "Gather" (self_: T, dim: N, index: T | out) => index::gather;
    "GatherNd" (self_: T, indices: T, negativeIndexSupport: B | out) => index::gather_tuples;
    "IndexSelect" (self_: T, dim: N, index: T | out) => index::select;
    "Take" (self_: T, index: T | out) => index::take;
    "ScatterAdd" (self_: T, dim: N, index: T, src: T | out) => index::scatter_add;
    "InplaceScatterUpdate" (data: T, indices: T, updates: T, axis: N) => index::scatter_update;
    "InplaceIndexCopy" (selfRef: T, dim: N, index: T, source: T) => index::index_copy;
    "InplacePut" (selfRef: T, index: T, source: T, accumulate: B) => index::put;
    "IndexPutImpl" (selfRef: T, indices: L, values: T, accumulate: B, unsafe_: B) => index::index_put;
    "MaskedSelect" (self_: T, mask: T | out) => index::masked_select;
    "InplaceMaskedScatter" (selfRef: T, mask: T, source: T) => index::masked_scatter;
    "Nonzero" (self_: T | out) => index::non_zero;

    // Order and counts.
    "Sort" (self_: T, stable: B, dim: N, descending: B | valuesOut, indicesOut) => |c| search::sort(c, true);
    "Argsort" (self_: T, dim: N, descending: B | out) => |c| search::sort(c, false);
    "SearchSorted" (sortedSequence: T, self_: T, outInt32: B, right: B, sorter: T | out) => search::search_sorted;
    "Unique2" (self_: T, sorted: B, returnInverse: B, returnCounts: B | valueOut, inverseOut, countsOut) => |c| search::unique(c, false);
    "UniqueConsecutive" (self_: T, returnInverse: B, returnCounts: B, dim: N | valueOut, inverseOut, countsOut) => |c| search::unique(c, true);
    "Histc" (self_: T, bins: N, min: S, max: S | out) => search::histogram;
    "Bincount" (self_: T, weights: T, minlength: N | out) => search::count_numbers;

    // Matrices.
    "Matmul" (self_: T, mat2: T | out | cubeMathType: C) => linear::product;
    "Dot" (self_: T, tensor_: T | out) => linear::product;
    "Einsum" (tensors: L, equation: X | out) => linear::einsum;
    "Inverse" (self_: T | out) => linear::inverse;
    "Slogdet" (self_: T | signOut, logOut) => linear::determinant;
    "Qr" (self_: T, some: B | Q, R) => linear::orthogonal;
    "Svd" (self_: T, fullMatrices: B, computeUV: B | sigma, u, v) => linear::singular;

    // Random numbers.
    "InplaceUniform" (selfRef: T, from: D, to: D, seed: u64, offset: u64) => random::uniform;
    "InplaceNormal" (selfRef: T, mean: F, std: F, seed: N, offset: N) => random::normal;
    "InplaceRandom" (selfRef: T, from: N, to: N, seed: N, offset: N) => random::integers;
    "Multinomial" (self_: T, numsamples: N, replacement: B, seed: N, offset: N | out) => random::multinomial;
}
