"""Calls every operator of libopapi.so through its two functions, and compares what it gives with NumPy.

    pto compat cann run -- python operators.py [NAME ..]

It prints a line for each operator that is not right, and the counts. `--list` prints a line for each operator."""

import ctypes
import sys

import numpy as np

ACL = ctypes.CDLL("libascendcl.so")
NN = ctypes.CDLL("libopapi.so")
NUMBERS = {"float32": 0, "float16": 1, "int8": 2, "int32": 3, "uint8": 4, "int16": 6, "uint16": 7, "uint32": 8, "int64": 9, "uint64": 10,
           "float64": 11, "bool": 12, "complex64": 16, "complex128": 17}
for name in ["aclCreateTensor", "aclCreateScalar", "aclCreateIntArray", "aclCreateTensorList"]:
    getattr(NN, name).restype = ctypes.c_void_p
ACL.aclGetRecentErrMsg.restype = ctypes.c_char_p
RANDOM = np.random.default_rng(7)


class Refused(Exception):
    """A call failed."""


def check(code, call):
    if code:
        text = ACL.aclGetRecentErrMsg()
        raise Refused(f"{call} gives {code}: {text.decode() if text else 'no message'}")


class Memory:
    """Memory of the device with the elements of an array, as a tensor."""

    def __init__(self, array):
        self.array = np.array(array, order="C", copy=True)
        self.address = ctypes.c_void_p()
        size = max(self.array.nbytes, 1)
        check(ACL.aclrtMalloc(ctypes.byref(self.address), ctypes.c_size_t(size), 0), "aclrtMalloc")
        if self.array.nbytes:
            check(ACL.aclrtMemcpy(self.address, ctypes.c_size_t(size), self.array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(size), 1), "aclrtMemcpy")
        integers = lambda values: (ctypes.c_int64 * max(len(values), 1))(*values)
        strides = [stride // self.array.itemsize for stride in self.array.strides]
        shape = self.array.shape
        self.handle = ctypes.c_void_p(NN.aclCreateTensor(
            integers(shape), ctypes.c_uint64(len(shape)), NUMBERS[self.array.dtype.name], integers(strides), ctypes.c_int64(0), 2, integers(shape),
            ctypes.c_uint64(len(shape)), self.address))

    def read(self):
        size = self.array.nbytes
        if size:
            check(ACL.aclrtMemcpy(self.array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(size), self.address, ctypes.c_size_t(size), 2), "aclrtMemcpy")
        return self.array

    def free(self):
        NN.aclDestroyTensor(self.handle)
        ACL.aclrtFree(self.address)


class Scalar:
    def __init__(self, value, dtype=np.float32):
        self.value = np.array(value, dtype)

    def pass_to(self, kept):
        return ctypes.c_void_p(NN.aclCreateScalar(self.value.ctypes.data_as(ctypes.c_void_p), NUMBERS[self.value.dtype.name]))


class Integers(list):
    pass


class Tensors(list):
    pass


class Type:
    def __init__(self, dtype):
        self.number = NUMBERS[np.dtype(dtype).name]


class Mode(Type):
    """An `int` of C."""

    def __init__(self, number):
        self.number = number


class Float(float):
    """A `float` of C; a plain number is a `double`."""


class Byte(int):
    """An `int8_t` of C."""


class Unsigned(int):
    """A `uint64_t` of C."""


def call(name, args, outs, late=(), stream=None):
    """Calls an operator: arguments, arrays for the outputs. Returns what the outputs are; without outputs what the first argument is."""
    memory = []

    def passed(arg):
        if isinstance(arg, np.ndarray):
            memory.append(Memory(arg))
            return memory[-1].handle
        if arg is None:
            return ctypes.c_void_p()
        if isinstance(arg, Scalar):
            return arg.pass_to(memory)
        if isinstance(arg, Integers):
            return ctypes.c_void_p(NN.aclCreateIntArray((ctypes.c_int64 * max(len(arg), 1))(*arg), ctypes.c_uint64(len(arg))))
        if isinstance(arg, Tensors):
            handles = [passed(tensor) for tensor in arg]
            array = (ctypes.c_void_p * len(handles))(*[handle.value for handle in handles])
            return ctypes.c_void_p(NN.aclCreateTensorList(array, ctypes.c_uint64(len(handles))))
        if isinstance(arg, Type):
            return ctypes.c_int32(arg.number)
        if isinstance(arg, bool):
            return ctypes.c_bool(arg)
        if isinstance(arg, Byte):
            return ctypes.c_int8(arg)
        if isinstance(arg, Unsigned):
            return ctypes.c_uint64(arg)
        if isinstance(arg, Float):
            return ctypes.c_float(arg)
        if isinstance(arg, float):
            return ctypes.c_double(arg)
        if isinstance(arg, str):
            return ctypes.c_char_p(arg.encode())
        return ctypes.c_int64(arg)

    values = [passed(arg) for arg in args]
    first = len(memory)
    values += [passed(out) for out in outs]
    results = memory[first:] if outs else memory[:1]
    values += [passed(arg) for arg in late]
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    check(getattr(NN, f"aclnn{name}GetWorkspaceSize")(*values, ctypes.byref(size), ctypes.byref(executor)), f"aclnn{name}GetWorkspaceSize")
    check(getattr(NN, f"aclnn{name}")(ctypes.c_void_p(), size, executor, stream), f"aclnn{name}")
    check(ACL.aclrtSynchronizeDevice(), "aclrtSynchronizeDevice")
    found = [result.read().copy() for result in results]
    for piece in memory:
        piece.free()
    return found


def like(values):
    return [np.zeros_like(np.asarray(value)) for value in values]


CASES = {}


def case(name, args, expected, late=(), tolerance=None):
    """A case: arguments, and what the outputs are."""
    expected = [np.asarray(value) for value in (expected if isinstance(expected, (list, tuple)) else [expected])]
    CASES.setdefault(name, []).append((list(args), expected, list(late), tolerance))


def in_place(name, args, expected, **more):
    """A case without outputs: its first argument becomes what is expected."""
    case(name, args, expected, **more)
    CASES[name][-1] += (True,)


def numbers(dtype, low=-3.0, high=3.0, shape=(4, 5)):
    values = RANDOM.uniform(low, high, shape)
    return values.astype(dtype) if np.dtype(dtype).kind != "b" else values > 0


FLOATS = [np.float32, np.float64, np.float16]
WHOLE = [np.int32, np.int64, np.int8, np.uint8, np.int16]


def erf(x):
    import math
    return np.vectorize(math.erf, otypes=[float])(np.asarray(x, np.float64))


def erfc(x):
    import math
    return np.vectorize(math.erfc, otypes=[float])(np.asarray(x, np.float64))


def of_type(values, dtype):
    return np.asarray(values).astype(dtype)


def unary(name, function, low=-3.0, high=3.0, dtypes=FLOATS, twin=True, shapes=((4, 5), (3,), (), (70000,), (2, 0))):
    for dtype in dtypes:
        for shape in shapes if dtype == dtypes[0] else shapes[:1]:
            x = np.asarray(numbers(dtype, low, high, shape))
            y = of_type(function(x.astype(np.float64) if x.dtype.kind == "f" else x), dtype)
            case(name, [x], y)
            if twin:
                in_place("Inplace" + name, [x], y)


with np.errstate(all="ignore"):
    for name, function, low, high in [
            ("Acos", np.arccos, -1, 1), ("Acosh", np.arccosh, 1, 9), ("Asin", np.arcsin, -1, 1), ("Asinh", np.arcsinh, -9, 9), ("Atan", np.arctan, -9, 9),
            ("Atanh", np.arctanh, -0.9, 0.9), ("Ceil", np.ceil, -9, 9), ("Cos", np.cos, -9, 9), ("Cosh", np.cosh, -3, 3), ("Erf", erf, -3, 3),
            ("Erfc", erfc, -3, 5), ("Exp", np.exp, -5, 5), ("Exp2", np.exp2, -5, 5), ("Expm1", np.expm1, -2, 2), ("Floor", np.floor, -9, 9),
            ("Log", np.log, 0.1, 9), ("Log10", np.log10, 0.1, 9), ("Log1p", np.log1p, -0.9, 9), ("Log2", np.log2, 0.1, 9), ("Neg", np.negative, -9, 9),
            ("Reciprocal", lambda x: 1 / x, 0.5, 9), ("Round", np.round, -9, 9), ("Sin", np.sin, -9, 9), ("Sinc", np.sinc, -3, 3), ("Sinh", np.sinh, -3, 3),
            ("Sqrt", np.sqrt, 0, 9), ("Tan", np.tan, -1, 1), ("Tanh", np.tanh, -3, 3), ("Trunc", np.trunc, -9, 9)]:
        unary(name, function, low, high)
    unary("Abs", np.abs, twin=False)
    unary("Abs", np.abs, -100, 100, [np.int32, np.int64, np.int8], twin=False)
    unary("Neg", np.negative, -100, 100, [np.int32, np.int64, np.int8])
    unary("Sign", np.sign, twin=False, dtypes=FLOATS + [np.int32])
    for dtype in [np.float32, np.float64]:
        x = numbers(dtype, -0.999, 0.999)
        roots = np.array([0.0])
        y = np.zeros(x.shape)
        for _ in range(60):  # Newton's steps from 0: the derivative of erf is known.
            y = np.clip(y - (erf(y) - x) / (2 / np.sqrt(np.pi) * np.exp(-y * y)), -6, 6)
        case("Erfinv", [x], of_type(y, dtype), tolerance=1e-5 if dtype == np.float32 else 1e-10)
        in_place("InplaceErfinv", [x], of_type(y, dtype), tolerance=1e-5 if dtype == np.float32 else 1e-10)

    SPECIAL = np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan], np.float32)
    case("Signbit", [SPECIAL[:6]], np.signbit(SPECIAL[:6]))
    case("IsFinite", [SPECIAL], np.isfinite(SPECIAL))
    case("IsFinite", [np.arange(4)], np.ones(4, bool))
    case("IsInf", [SPECIAL], np.isinf(SPECIAL))
    case("IsPosInf", [SPECIAL], np.isposinf(SPECIAL))
    case("IsNegInf", [SPECIAL], np.isneginf(SPECIAL))
    case("NanToNum", [SPECIAL, Float(7.0), Float(8.0), Float(-9.0)], np.nan_to_num(SPECIAL, nan=7.0, posinf=8.0, neginf=-9.0))
    case("LogicalNot", [np.array([0, 1, 2], np.int32)], np.array([True, False, False]))
    case("BitwiseNot", [np.array([0, 1, -7], np.int32)], ~np.array([0, 1, -7], np.int32))
    case("BitwiseNot", [np.array([True, False])], np.array([False, True]))
    for source in [np.float32, np.int64, np.float16, np.uint8, np.complex64]:
        for to in [np.float32, np.int32, np.float64, np.bool_, np.complex128]:
            if np.dtype(source).kind == "c" and np.dtype(to).kind != "c":
                continue
            x = np.asarray(numbers(source, 0, 9))
            case("Cast", [x, Type(to)], x.astype(to))
    z = (numbers(np.float32) + 1j * numbers(np.float32)).astype(np.complex64)
    z2 = (numbers(np.float64) + 1j * numbers(np.float64)).astype(np.complex128)
    case("Real", [z], z.real)
    case("Real", [z2], z2.real)
    case("Complex", [z.real.copy(), z.imag.copy()], z)
    case("Abs", [z2], np.abs(z2))
    for name, function in [("Exp", np.exp), ("Log", np.log), ("Sqrt", np.sqrt), ("Sin", np.sin), ("Cos", np.cos), ("Tan", np.tan), ("Sinh", np.sinh),
                           ("Cosh", np.cosh), ("Tanh", np.tanh), ("Neg", np.negative), ("Reciprocal", lambda x: 1 / x)]:
        case(name, [z2], function(z2))
        case(name, [z], function(z), tolerance=1e-5)
    case("RoundDecimals", [np.array([1.234, -2.345, 9.876], np.float64), 2], np.round(np.array([1.234, -2.345, 9.876]), 2))
    case("RoundDecimals", [np.array([1234.0, 5678.0], np.float64), -2], np.round(np.array([1234.0, 5678.0]), -2))
    case("Round", [9 * z2], np.round(9 * z2))
    for decimals in [1, -1]:
        case("RoundDecimals", [9 * z2, decimals], np.round(9 * z2, decimals))
    x = numbers(np.float32)
    case("Clamp", [x, Scalar(-1.0), Scalar(1.5)], np.clip(x, np.float32(-1), np.float32(1.5)))
    case("Clamp", [x, Scalar(-1.0), None], np.maximum(x, np.float32(-1)))
    case("Clamp", [np.arange(9), Scalar(2, np.int64), Scalar(5, np.int64)], np.clip(np.arange(9), 2, 5))

    # Two operands.
    def binary(name, function, dtypes, low=-3.0, high=3.0, twin=None, late=(), result=None):
        for dtype in dtypes:
            a, b = numbers(dtype, low, high), numbers(dtype, low, high)
            if dtype in WHOLE and name in ("FloorDivide", "FmodTensor", "RemainderTensorTensor", "Div", "DivMod"):
                b = np.where(b == 0, 1, b).astype(dtype)
            for x, y in [(a, b), (a, b[0]), (a[:, :1].copy(), b), (np.asarray(a[0, 0]), b)]:
                expected = function(x, y)
                expected = of_type(expected, result or (dtype if expected.dtype != bool else bool))
                case(name, [x, y, *late], expected)
            if twin:
                in_place(twin, [a, b, *late], of_type(function(a, b), dtype))
                in_place(twin, [a, b[0], *late], of_type(function(a, b[0]), dtype))

    one = Scalar(1.0)
    binary("Add", np.add, FLOATS + WHOLE, -50, 50, twin="InplaceAdd", late=[one])
    binary("Sub", np.subtract, FLOATS + [np.int32, np.int64], -50, 50, twin="InplaceSub", late=[one])
    binary("Mul", np.multiply, FLOATS + WHOLE, -9, 9, twin="InplaceMul")
    binary("Div", np.divide, FLOATS, 0.5, 9, twin="InplaceDiv")
    binary("Div", np.divide, [np.int32], 1, 9, result=np.float32)
    binary("FloorDivide", np.floor_divide, FLOATS + [np.int32, np.int64], -9, 9, twin="InplaceFloorDivide")
    binary("FmodTensor", np.fmod, [np.float32, np.float64, np.int32, np.int64], -9, 9, twin="InplaceFmodTensor")
    binary("RemainderTensorTensor", np.remainder, [np.float32, np.float64, np.int32, np.int64], -9, 9, twin="InplaceRemainderTensorTensor")
    binary("PowTensorTensor", np.power, [np.float32, np.float64], 0.5, 3)
    binary("PowTensorTensor", np.power, [np.int32, np.int64], 0, 5)
    binary("Maximum", np.maximum, FLOATS + WHOLE, -50, 50)
    binary("Minimum", np.minimum, FLOATS + WHOLE, -50, 50)
    binary("Atan2", np.arctan2, [np.float32, np.float64])
    binary("LogAddExp", np.logaddexp, [np.float32, np.float64])
    binary("LogAddExp2", np.logaddexp2, [np.float32, np.float64])
    binary("Gcd", np.gcd, [np.int32, np.int64], -60, 60)
    binary("Heaviside", np.heaviside, [np.float32, np.float64])
    binary("LeftShift", np.left_shift, [np.int32, np.int64], 0, 6)
    binary("RightShift", np.right_shift, [np.int32, np.int64], 0, 6)
    case("Maximum", [SPECIAL, np.zeros(7, np.float32)], np.maximum(SPECIAL, np.float32(0)))
    case("Heaviside", [SPECIAL, np.full(7, 0.5, np.float32)], np.heaviside(SPECIAL, np.float32(0.5)))
    a, b = numbers(np.float32), numbers(np.float32)
    case("Add", [a, b, Scalar(2.5)], a + np.float32(2.5) * b)
    case("Add", [z2, z2[0], one], z2 + z2[0])
    case("Mul", [z2, z2[0]], z2 * z2[0])
    case("Div", [z2, z2[0]], z2 / z2[0])
    case("Add", [a > 0, b > 0, Scalar(True, np.bool_)], ((a > 0) | (b > 0)).astype(np.float32))
    case("Mul", [a > 0, b > 0], (a > 0) & (b > 0))
    case("Adds", [a, Scalar(2.0), one], a + np.float32(2))
    case("Subs", [a, Scalar(2.0), one], a - np.float32(2))
    case("Rsubs", [a, Scalar(2.0), one], np.float32(2) - a)
    case("Muls", [a, Scalar(2.5)], a * np.float32(2.5))
    case("Muls", [np.arange(5), Scalar(3, np.int64)], np.arange(5) * 3)
    case("Divs", [a, Scalar(2.5)], a / np.float32(2.5))
    whole, other = numbers(np.int32, -50, 50), numbers(np.int32, -9, 9)
    other[other == 0] = 3
    for mode, function in [(1, lambda x, y: np.trunc(x / y)), (2, np.floor_divide)]:
        case("DivMod", [whole, other, Mode(mode)], function(whole, other).astype(np.int32))
    for name, function in [("FloorDivides", np.floor_divide), ("FmodScalar", np.fmod), ("RemainderTensorScalar", np.remainder)]:
        case(name, [a, Scalar(1.5)], function(a, np.float32(1.5)))
        case(name, [whole, Scalar(7, np.int32)], function(whole, np.int32(7)))
        if name != "RemainderTensorScalar":
            in_place("Inplace" + name, [whole, Scalar(7, np.int32)], function(whole, np.int32(7)))
    case("RemainderScalarTensor", [Scalar(7, np.int32), other], np.remainder(np.int32(7), other))
    case("PowTensorScalar", [np.abs(a), Scalar(2.5)], np.abs(a) ** np.float32(2.5))
    case("PowTensorScalar", [whole, Scalar(2, np.int32)], whole ** 2)
    in_place("InplacePowTensorScalar", [np.abs(a), Scalar(0.5)], np.sqrt(np.abs(a)))
    case("PowScalarTensor", [Scalar(2.0), a], np.float32(2) ** a)
    for name, function in [("And", np.bitwise_and), ("Or", np.bitwise_or), ("Xor", np.bitwise_xor)]:
        for dtype in [np.int32, np.int64, np.uint8, np.bool_]:
            x, y = numbers(dtype, 0, 100), numbers(dtype, 0, 100)
            case(f"Bitwise{name}Tensor", [x, y], function(x, y))
            in_place(f"InplaceBitwise{name}Tensor", [x, y], function(x, y))
        case(f"Bitwise{name}Scalar", [whole, Scalar(6, np.int32)], function(whole, np.int32(6)))
        in_place(f"InplaceBitwise{name}Scalar", [whole, Scalar(6, np.int32)], function(whole, np.int32(6)))
        logical = {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}[name]
        x, y = numbers(np.int32, -2, 2), numbers(np.int32, -2, 2)
        case(f"Logical{name}", [x, y], logical(x, y))
    for name, function in [("Eq", np.equal), ("Ne", np.not_equal), ("Lt", np.less), ("Le", np.less_equal), ("Gt", np.greater), ("Ge", np.greater_equal)]:
        for dtype in FLOATS + WHOLE + [np.bool_]:
            x, y = numbers(dtype, 0, 3), numbers(dtype, 0, 3)
            case(f"{name}Tensor", [x, y], function(x, y))
            case(f"{name}Tensor", [x, y[0]], function(x, y[0]))
        x = numbers(np.int32, 0, 3)
        case(f"{name}Scalar", [x, Scalar(1, np.int32)], function(x, 1))
        case(f"{name}Scalar", [x, Scalar(1.5)], function(x, 1.5))
    x = numbers(np.float32)
    case("SWhere", [x > 0, x, x * 2], np.where(x > 0, x, x * 2))
    case("SWhere", [x[0] > 0, x, np.asarray(x[0, 0])], np.where(x[0] > 0, x, x[0, 0]))
    case("MaxN", [Tensors([x, x[::-1].copy(), -x])], np.maximum(np.maximum(x, x[::-1]), -x))
    case("MinN", [Tensors([x, x[::-1].copy(), -x])], np.minimum(np.minimum(x, x[::-1]), -x))
    in_place("InplaceFillScalar", [x, Scalar(2.5)], np.full_like(x, 2.5))
    in_place("InplaceFillScalar", [whole, Scalar(-3, np.int64)], np.full_like(whole, -3))
    in_place("InplaceFillTensor", [x, np.asarray(np.float32(3.5))], np.full_like(x, 3.5))
    in_place("InplaceMaskedFillScalar", [x, x > 0, Scalar(9.0)], np.where(x > 0, np.float32(9), x))
    in_place("InplaceMaskedFillTensor", [x, x > 0, np.asarray(np.float32(9))], np.where(x > 0, np.float32(9), x))

    # Reductions and scans.
    cube = numbers(np.float32, shape=(3, 4, 5))
    for dtype in [np.float32, np.float64, np.int64, np.int32]:
        x = numbers(dtype, -9, 9, (3, 4, 5))
        for axes in [(1,), (0, 2), (0, 1, 2), (-1,)]:
            for keep in [False, True]:
                dims = Integers(axes)
                case("ReduceSum", [x, dims, keep, Type(dtype)], x.sum(axis=axes, keepdims=keep, dtype=dtype))
                case("Amax", [x, dims, keep], x.max(axis=axes, keepdims=keep))
                case("Amin", [x, dims, keep], x.min(axis=axes, keepdims=keep))
                case("All", [x, dims, keep], x.all(axis=axes, keepdims=keep))
                case("Any", [x, dims, keep], x.any(axis=axes, keepdims=keep))
                if np.dtype(dtype).kind == "f":
                    case("Mean", [x, dims, keep, Type(dtype)], x.mean(axis=axes, keepdims=keep))
                    case("Var", [x, dims, True, keep], x.var(axis=axes, keepdims=keep, ddof=1))
                    case("Std", [x, dims, 0, keep], x.std(axis=axes, keepdims=keep))
        case("ProdDim", [x, 1, False, Type(dtype)], x.prod(axis=1, dtype=dtype))
        case("ProdDim", [x, -1, True, Type(dtype)], x.prod(axis=-1, keepdims=True, dtype=dtype))
        case("ArgMax", [x, 1, False], x.argmax(axis=1))
        case("ArgMin", [x, -1, True], x.argmin(axis=-1, keepdims=True))
        case("Cumsum", [x, 1, Type(dtype)], x.cumsum(axis=1, dtype=dtype))
        case("Cumprod", [x, Scalar(2, np.int64), Type(dtype)], x.cumprod(axis=2, dtype=dtype))
        case("AminmaxAll", [x], [x.min(), x.max()])
        case("AminmaxDim", [x, 1, False], [x.min(axis=1), x.max(axis=1)])
        case("MaxV2", [x, Integers([0, 2]), False, False], x.max(axis=(0, 2)))
        case("Median", [x.ravel()[:7].copy()], np.median(x.ravel()[:7]).astype(dtype))
        case("Median", [x], np.sort(x.ravel())[29])
        case("Trace", [x[0]], of_type(np.trace(x[0]), dtype if np.dtype(dtype).kind == "f" else np.int64))
    case("ReduceSum", [np.array([True, True, False]), Integers([0]), False, Type(np.int64)], np.int64(2))
    case("ReduceSum", [z2, Integers([1]), False, Type(np.complex128)], z2.sum(axis=1))
    # A sum or product is made in the type of the output, where that has more bits than the type of the call.
    large, small = np.full((3, 8), 1 << 30, np.int32), numbers(np.float16, shape=(3, 2000))
    case("ReduceSum", [large, Integers([1]), False, Type(np.int32)], large.sum(axis=1, dtype=np.int64))
    case("ReduceSum", [small, Integers([1]), False, Type(np.float16)], small.sum(axis=1, dtype=np.float64).astype(np.float32), tolerance=1e-6)
    case("ProdDim", [large, 1, False, Type(np.int32)], large.prod(axis=1, dtype=np.int64))
    case("ProdDim", [large[:, :0].copy(), 1, False, Type(np.int32)], np.ones(3, np.int64))
    case("Cumsum", [large, 1, Type(np.int32)], large.cumsum(axis=1, dtype=np.int64))
    case("Cumprod", [large, Scalar(1, np.int64), Type(np.int32)], large.cumprod(axis=1, dtype=np.int64))
    holed = np.where(cube > 2, np.float32(np.nan), cube)
    case("ReduceNansum", [holed, Integers([1]), False, Type(np.float32)], np.nansum(holed, axis=1))
    case("Amax", [holed, Integers([1]), False], holed.max(axis=1))

    # Elements in other places.
    for dtype in [np.float32, np.int64, np.bool_, np.complex64]:
        x = np.asarray(numbers(dtype, shape=(3, 4, 5)))
        case("Permute", [x, Integers([2, 0, 1])], x.transpose(2, 0, 1).copy())
        case("Flip", [x, Integers([0, 2])], x[::-1, :, ::-1].copy())
        case("Roll", [x, Integers([2, -1]), Integers([1, 2])], np.roll(x, (2, -1), (1, 2)))
        case("Roll", [x, Integers([7]), Integers([])], np.roll(x, 7))
        case("Flatten", [x, 2], x.reshape(12, 5))
        case("Repeat", [x, Integers([2, 1, 3, 1])], np.tile(x, (2, 1, 3, 1)))
        case("Cat", [Tensors([x, x[:1].copy()]), 0], np.concatenate([x, x[:1]]))
        case("Cat", [Tensors([x, x]), -1], np.concatenate([x, x], axis=-1))
        case("Stack", [Tensors([x, x]), 1], np.stack([x, x], axis=1))
        if dtype != np.bool_:
            case("Tril", [x, -1], np.tril(x, -1))
            case("Triu", [x, 1], np.triu(x, 1))
    case("Arange", [Scalar(1.0), Scalar(4.0), Scalar(0.5)], np.arange(1, 4, 0.5, np.float32))
    case("Arange", [Scalar(9, np.int64), Scalar(0, np.int64), Scalar(-2, np.int64)], np.arange(9, 0, -2))
    square = numbers(np.float32, shape=(5, 5))
    filled = square.copy()
    np.fill_diagonal(filled, 7)
    in_place("InplaceFillDiagonal", [square, Scalar(7.0), False], filled)
    tall = numbers(np.float32, shape=(9, 3))
    for wrap in [False, True]:
        filled = tall.copy()
        np.fill_diagonal(filled, 7, wrap)
        in_place("InplaceFillDiagonal", [tall, Scalar(7.0), wrap], filled)

    # Indices and masks.
    table = numbers(np.float32, shape=(6, 5))
    rows = np.array([4, 0, 3], np.int64)
    case("IndexSelect", [table, 0, rows], table[rows])
    case("IndexSelect", [table, 1, rows.astype(np.int32)], table[:, rows])
    case("Take", [table, np.array([[7, 29], [0, 11]])], table.ravel()[[[7, 29], [0, 11]]])
    places = np.array([[0, 2, 1, 5, 4]], np.int64)
    case("Gather", [table, 0, places], np.take_along_axis(table, places, 0))
    case("GatherNd", [table, np.array([[1, 2], [5, 4]], np.int64), False], table[[1, 5], [2, 4]])
    updates = numbers(np.float32, shape=(3, 5))
    replaced = table.copy()
    replaced[rows] = updates
    in_place("InplaceIndexCopy", [table, 0, rows, updates], replaced)
    in_place("IndexPutImpl", [table, Tensors([rows]), updates, False, False], replaced)
    wide = np.broadcast_to(rows[:, None], (3, 5)).copy()
    in_place("InplaceScatterUpdate", [table, wide, updates, 0], replaced)
    again = np.array([1, 1, 2], np.int64)
    added = table.copy()
    np.add.at(added, again, updates)
    in_place("IndexPutImpl", [table, Tensors([again]), updates, True, False], added)
    case("ScatterAdd", [table, 0, np.broadcast_to(again[:, None], (3, 5)).copy(), updates], added)
    put = table.copy()
    np.put(put, [3, 17, 3], [1.0, 2.0, 3.0])
    in_place("InplacePut", [table, np.array([3, 17, 3]), np.array([1.0, 2.0, 3.0], np.float32), False], put)
    mask = table > 0
    case("MaskedSelect", [table, mask], table[mask])
    scattered = table.copy()
    scattered[mask] = np.arange(mask.sum(), dtype=np.float32)
    in_place("InplaceMaskedScatter", [table, mask, np.arange(30, dtype=np.float32)], scattered)
    case("Nonzero", [mask], np.argwhere(mask))

    # Order and counts.
    for dtype in [np.float32, np.int64, np.uint8]:
        x = numbers(dtype, -50 if dtype != np.uint8 else 0, 50, (4, 9))
        for axis in [0, 1, -1]:
            order = np.argsort(x, axis=axis, kind="stable")
            case("Sort", [x, True, axis, False], [np.sort(x, axis=axis), order])
            case("Argsort", [x, axis, False], order)
        order = np.argsort(-x.astype(np.float64), axis=1, kind="stable")
        case("Sort", [x, True, 1, True], [np.take_along_axis(x, order, 1), order])
    case("Sort", [np.array([3, np.nan, 1, 2], np.float32), True, 0, False], [np.array([1, 2, 3, np.nan], np.float32), np.array([2, 3, 0, 1])])
    edges = np.sort(numbers(np.float32, shape=(9,)))
    probes = numbers(np.float32, shape=(3, 4))
    for right in [False, True]:
        case("SearchSorted", [edges, probes, False, right, None], np.searchsorted(edges, probes, "right" if right else "left"))
    repeated = np.array([3, 1, 3, 2, 1, 1], np.int64)
    values, inverse, counts = np.unique(repeated, return_inverse=True, return_counts=True)
    case("Unique2", [repeated, True, True, True], [values, inverse, counts])
    runs = np.array([1, 1, 2, 2, 2, 1], np.int64)
    case("UniqueConsecutive", [runs, True, True, 0], [np.array([1, 2, 1]), np.array([0, 0, 1, 1, 1, 2]), np.array([2, 3, 1])])
    x = numbers(np.float32, 0, 10, (100,))
    case("Histc", [x, 5, Scalar(0.0), Scalar(10.0)], of_type(np.histogram(x, 5, (0, 10))[0], np.float32))
    case("Bincount", [repeated, None, 0], np.bincount(repeated))
    case("Bincount", [repeated, np.arange(6, dtype=np.float64), 6], np.bincount(repeated, np.arange(6.0), 6))

    # Matrices.
    for dtype in [np.float32, np.float64]:
        a, b = numbers(dtype, shape=(6, 7)), numbers(dtype, shape=(7, 8))
        case("Matmul", [a, b], a @ b, late=[Byte(0)])
        batch = numbers(dtype, shape=(3, 6, 7))
        case("Matmul", [batch, b], batch @ b, late=[Byte(0)])
        case("Dot", [a[0], b[:, 0].copy()], a[0] @ b[:, 0])
        case("Einsum", [Tensors([a, b]), "ij,jk->ik"], np.einsum("ij,jk->ik", a, b))
        case("Einsum", [Tensors([batch]), "bij->bji"], batch.transpose(0, 2, 1).copy())
        regular = numbers(dtype, shape=(2, 5, 5)) + 5 * np.eye(5, dtype=dtype)
        case("Inverse", [regular], np.linalg.inv(regular))
        case("Slogdet", [regular], list(np.linalg.slogdet(regular)))
    case("Matmul", [z2, z2.T.copy()], z2 @ z2.T, late=[Byte(0)])


def product_of(name, found, args):
    """What the parts of a decomposition make: the matrix, and that they are orthogonal."""
    x = args[0].astype(np.float64)
    if name == "Qr":
        q, r = (part.astype(np.float64) for part in found)
        return [q @ r - x, q.T @ q - np.eye(q.shape[1]), np.tril(r, -1)]
    sigma, u, v = (part.astype(np.float64) for part in found)
    k = len(sigma)
    return [u[:, :k] * sigma @ v[:k] - x, u.T @ u - np.eye(u.shape[1]), v @ v.T - np.eye(v.shape[0]), np.clip(np.diff(sigma), 0, None)]


def of_decompositions():
    for shape in [(6, 4), (4, 6), (5, 5)]:
        x = numbers(np.float32, shape=shape)
        m, n = shape
        k = min(shape)
        for whole in [False, True]:
            q, r = ((m, m), (m, n)) if whole else ((m, k), (k, n))
            yield "Qr", [x, not whole], [np.zeros(q, np.float32), np.zeros(r, np.float32)]
            u, v = ((m, m), (n, n)) if whole else ((m, k), (k, n))
            yield "Svd", [x, whole, True], [np.zeros(k, np.float32), np.zeros(u, np.float32), np.zeros(v, np.float32)]


def of_random():
    """Distributions: of many numbers the mean and the deviation are near those that are asked for; the same seed gives the same bits."""
    big = np.zeros(40000, np.float32)
    uniform = lambda seed: call("InplaceUniform", [big, 2.0, 5.0, Unsigned(seed), Unsigned(3)], [])[0]
    first = uniform(11)
    yield "InplaceUniform", abs(first.mean() - 3.5) < 0.05 and first.min() >= 2 and first.max() < 5 and (first == uniform(11)).all() and (first != uniform(12)).any()
    normal = call("InplaceNormal", [big, Float(1.0), Float(2.0), 5, 0], [])[0]
    yield "InplaceNormal", abs(normal.mean() - 1) < 0.05 and abs(normal.std() - 2) < 0.05
    whole = call("InplaceRandom", [np.zeros(40000, np.int64), -3, 4, 5, 0], [])[0]
    yield "InplaceRandom", set(whole) == set(range(-3, 4)) and abs(whole.mean()) < 0.1
    drawn = call("Multinomial", [np.array([1.0, 0.0, 3.0], np.float32), 40000, True, 5, 0], [np.zeros(40000, np.int64)])[0]
    yield "Multinomial", set(drawn) == {0, 2} and abs((drawn == 2).mean() - 0.75) < 0.02
    few = call("Multinomial", [np.array([1.0, 0.0, 3.0], np.float32), 2, False, 5, 0], [np.zeros(2, np.int64)])[0]
    yield "Multinomial", sorted(few) == [0, 2]


def differs(found, expected, tolerance):
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return f"gives {found.dtype}{found.shape}, not {expected.dtype}{expected.shape}"
    if expected.dtype.kind in "fc":
        wanted = tolerance or {2: 2e-3, 4: 2e-6, 8: 1e-12}.get(expected.dtype.itemsize // (2 if expected.dtype.kind == "c" else 1))
        with np.errstate(all="ignore"):
            wrong = ~np.isclose(found, expected, rtol=wanted, atol=wanted, equal_nan=True)
    else:
        wrong = found != expected
    if wrong.any():
        at = tuple(np.argwhere(wrong)[0])
        return f"gives {found[at]!r} at {at}, not {expected[at]!r}"
    return None


def main(words):
    check(ACL.aclInit(None), "aclInit")
    check(ACL.aclrtSetDevice(0), "aclrtSetDevice")
    results, cases = {}, 0
    wanted = [word for word in words if not word.startswith("-")]

    def note(name, why):
        results.setdefault(name, None)
        if why and results[name] is None:
            results[name] = why

    for name, group in CASES.items():
        if wanted and name not in wanted:
            continue
        for args, expected, late, tolerance, *rest in group:
            cases += 1
            try:
                found = call(name, args, [] if rest else like(expected), late)
                whys = [differs(result, value, tolerance) for result, value in zip(found, expected)]
                note(name, next((why for why in whys if why), None))
            except (Refused, AttributeError) as error:
                note(name, str(error))
    for name, args, outs in of_decompositions():
        if wanted and name not in wanted:
            continue
        cases += 1
        try:
            rests = product_of(name, call(name, args, outs), args)
            note(name, None if all(np.abs(rest).max(initial=0) < 1e-5 for rest in rests) else "does not give the matrix back")
        except Refused as error:
            note(name, str(error))
    if not wanted:
        try:
            for name, is_right in of_random():
                cases += 1
                note(name, None if is_right else "is distributed in another way")
        except Refused as error:
            note("Multinomial", str(error))
    wrong = {name: why for name, why in results.items() if why}
    for name, why in sorted(results.items()):
        if why or "--list" in words:
            print(f"aclnn{name}: {why or 'right'}")
    print(f"operators: {len(results)} called in {cases} cases, {len(results) - len(wrong)} right, {len(wrong)} not")
    check(ACL.aclFinalize(), "aclFinalize")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
