"""Operators on arrays: `pto_runtime.ops`, beside NumPy."""

import ctypes
import gc
import inspect
import os
import textwrap
from pathlib import Path

import interpreter
import numpy as np
import pytest

from pto_runtime import Device, HostError, load_onnx, ops

STUBS = Path(ops.__file__).with_suffix(".pyi")
FLOATS = {"f16": (np.float16, 2e-3), "f32": (np.float32, 2e-6), "f64": (np.float64, 1e-12)}
WHOLE = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


@pytest.fixture(scope="module")
def stream():
    with Device(aic=4, aiv=8, gm_bytes=128 << 20).session() as session:
        yield session.stream()


def near(found, expected, rtol=2e-6):
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.dtype == expected.dtype and found.shape == expected.shape, (found.dtype, found.shape, expected.dtype, expected.shape)
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), rtol=rtol, atol=rtol)
    else:
        np.testing.assert_array_equal(found, expected)


def test_arrays_come_back_as_they_were(stream):
    rng = np.random.default_rng(1)
    for dtype in [np.bool_, np.float16, np.float32, np.float64, *WHOLE]:
        for shape in [(), (3,), (2, 0, 4), (2, 1, 3), (2, 1, 2, 1, 2, 1, 2)]:
            x = rng.integers(0, 2, shape).astype(dtype)
            there = ops.array(x, stream)
            assert (there.shape, there.ndim, there.size, there.nbytes) == (x.shape, x.ndim, x.size, x.nbytes)
            near(there, x)
    big = np.arange(6, dtype=">f4").reshape(2, 3)[:, ::-1]
    near(ops.array(big, stream), big.astype(np.float32))
    assert ops.array([1.5, 2], stream).dtype == "f64" and ops.array(True, stream).dtype == "bool"
    assert repr(ops.array([[1, 2]], stream, dtype="bf16")) == "<Array bf16[1, 2]>"


def test_bf16_has_the_values_that_it_rounds_to(stream):
    x = np.array([1, 1.00390625, 3.14159, -2e38, np.inf, np.nan], np.float32)
    found = np.asarray(ops.array(x, stream, dtype="bf16"))
    assert found.dtype == np.float32
    bits = x.view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).view(np.float32)
    np.testing.assert_array_equal(found[:5], rounded[:5])
    assert np.isnan(found[5])


def random_case(rng):
    """An operator with its arrays, its attributes, and what NumPy gives in f64."""
    dtype, rtol = FLOATS[rng.choice(list(FLOATS))]
    shape = tuple(rng.integers(0 if rng.random() < 0.1 else 1, 6, rng.integers(0, 4)))
    draw = lambda shape: rng.uniform(-2, 2, shape).astype(dtype)  # noqa: E731
    x = draw(shape)
    other = draw(tuple(extent if rng.random() < 0.7 else 1 for extent in shape[rng.integers(0, len(shape) + 1) :]))
    axis = int(rng.integers(-x.ndim, x.ndim)) if x.ndim else None
    wide = x.astype(np.float64)
    kind = rng.integers(0, 11)
    if kind == 0:
        name = rng.choice(["add", "sub", "mul", "atan2"])
        function = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "atan2": np.arctan2}[name]
        return name, [x, other], {}, function(wide, other.astype(np.float64)), dtype, rtol
    if kind == 1:
        name = rng.choice(["exp", "tanh", "sin", "floor", "abs", "neg", "square"])
        function = {"abs": np.abs, "neg": np.negative}.get(name) or getattr(np, name)
        return name, [x], {}, function(wide), dtype, rtol
    if kind == 2:
        name = rng.choice(["less", "greater_or_equal", "equal", "not_equal"])
        function = {"greater_or_equal": np.greater_equal}.get(name) or getattr(np, name)
        return name, [x, other], {}, function(x, other), np.bool_, 0
    if kind == 3 and x.size and x.ndim:
        name, keep = rng.choice(["sum", "mean", "max", "min", "prod"]), bool(rng.random() < 0.5)
        return f"reduce_{name}", [x], {"axes": [axis], "keep_dims": keep}, getattr(np, name)(wide, axis=axis, keepdims=keep), dtype, 8 * rtol
    if kind == 4 and x.size and x.ndim:
        shifted = np.exp(wide - wide.max(axis, keepdims=True))
        return "softmax", [x], {"axis": axis}, shifted / shifted.sum(axis, keepdims=True), dtype, rtol
    if kind == 5:
        a, b = draw((2, *rng.integers(1, 9, 2))), None
        b = draw((a.shape[-1], int(rng.integers(1, 9))))
        return "matmul", [a, b], {}, a.astype(np.float64) @ b.astype(np.float64), dtype, 20 * rtol
    if kind == 6 and x.ndim and x.shape[axis]:
        at = rng.integers(-x.shape[axis], x.shape[axis], (2, 3))
        return "gather", [x, at], {"axis": axis}, np.take(wide, at, axis=axis), dtype, 0
    if kind == 7:
        order = [int(one) for one in rng.permutation(x.ndim)]
        return "transpose", [x], {"permutation": order}, wide.transpose(order), dtype, 0
    if kind == 8 and x.ndim:
        name = rng.choice(["concat", "cumsum"])
        if name == "concat":
            return name, [x, x], {"axis": axis}, np.concatenate([wide, wide], axis), dtype, 0
        return name, [x], {"axis": axis}, np.cumsum(wide, axis), dtype, 8 * rtol
    if kind == 9 and x.ndim and x.shape[axis]:
        count = int(rng.integers(1, x.shape[axis] + 1))
        return "topk", [x], {"k": count, "axis": axis}, np.flip(np.sort(wide, axis), axis).take(range(count), axis), dtype, 0
    condition = rng.random(shape) < 0.5
    return "where", [condition, x, x], {}, wide, dtype, 0


def test_random_operators_give_what_numpy_gives(stream):
    rng, names = np.random.default_rng(11), set()
    for number in range(200):
        name, inputs, attributes, expected, dtype, rtol = random_case(rng)
        found = getattr(ops, name)(*[ops.array(one, stream) for one in inputs], **attributes)
        found = found[0] if isinstance(found, tuple) else found
        try:
            near(found, expected.astype(dtype), rtol)
        except AssertionError as error:
            raise AssertionError(f"case {number}: {name} {[one.shape for one in inputs]} {attributes}: {error}") from None
        names.add(name)
    assert len(names) > 25, names


def test_operators_of_python(stream):
    rng = np.random.default_rng(2)
    a, b = rng.uniform(0.5, 2, (2, 3, 4)).astype(np.float32)[0], rng.uniform(0.5, 2, (4,)).astype(np.float32)
    x, y = ops.array(a, stream), ops.array(b, stream)
    near(x + y * 2 - 1, a + b * 2 - 1)
    near((x - y) / y, (a - b) / b)
    near(1 / x, 1 / a)
    near(2**x, (2.0**a).astype(np.float32))
    near(-abs(-x), -a)
    near(x @ y, a @ b, 1e-5)
    near(b + x, b + a)
    near(x // 0.3, np.floor(a / np.float32(0.3)))
    near(((x > y) & ~(x >= 1.5)) | (x == y), ((a > b) & ~(a >= 1.5)) | (a == b))
    near(x.T, a.T)
    near(x.reshape(2, -1).sum(axis=1), a.reshape(2, -1).sum(axis=1), 1e-5)
    near(x.transpose(1, 0).max(axis=-1, keepdims=True), a.T.max(axis=-1, keepdims=True))
    assert (float(x.mean()), int(ops.array(7, stream)), bool((x > 0).all())) == (pytest.approx(a.mean()), 7, True)
    i, j = np.array([7, -7, 7, -7], np.int32), np.array([2, 2, -2, -2], np.int32)
    s, t = ops.array(i, stream), ops.array(j, stream)
    near(s // t, i // j)
    near(s % t, i % j)
    near((s ^ t) << 2 >> 1 & 12, (i ^ j) << 2 >> 1 & 12)
    near(~s, ~i)
    assert [float(one) for one in y] == b.tolist() == y.tolist()
    with pytest.raises(TypeError, match="/ is for floats: use //"):
        s / t
    with pytest.raises(TypeError):
        x + "1"


INDICES = [
    2, -1, slice(None), slice(1, 3), slice(1, 1), slice(None, None, 2), slice(None, None, -1), slice(5, 0, -2), (1, 2), (1, slice(1, 3)), (slice(1, 3), slice(None)),
    (slice(None), 1), (slice(None), slice(1, 2)), (..., 0), (..., slice(None, None, -1)), (0, ...), (None, 1), (slice(None), None, 2), (1, 2, 3), (1, 2, slice(1, 3)), (slice(0, 1), slice(1, 2), slice(2, 4)),
]  # fmt: skip


def test_parts_of_an_array(stream):
    a = np.arange(60, dtype=np.int32).reshape(5, 3, 4)
    x = ops.array(a, stream)
    for index in INDICES:
        near(x[index], a[index])
    before = x[1:3]
    # A part along the first dimension shares the memory, so that no operator runs for it; its own tensor is larger.
    with pytest.raises(HostError, match="part of a tensor"):
        before.tensor  # noqa: B018
    near(before + 1, a[1:3] + 1)
    del x
    gc.collect()
    near(before[1, 2, 1:], a[2, 2, 1:])
    for wrong, kind in ((5, IndexError), ((0, 0, 0, 0), IndexError), ("a", TypeError), ([1], TypeError), ((..., ...), IndexError)):
        with pytest.raises(kind):
            before[wrong]
    with pytest.raises(IndexError, match="index 3 for axis 1, which has 3 elements: use -3 to 2"):
        before[0, 3]


def test_every_function_comes_from_the_table():
    functions = ops.operators()
    assert len(functions) > 130
    for name, function in functions.items():
        assert getattr(ops, name) is function and function.__name__ == name
        assert function.__doc__.startswith("Operator ") and "results: " in function.__doc__
    assert str(inspect.signature(ops.softmax)) == "(x, axis=-1, *, results=None)"
    assert str(inspect.signature(ops.conv)) == (
        "(x, weights, bias=None, *, kernel=[], strides=[], dilations=[], padding=[], groups=1, epilogue='none', results=None)"
    )
    assert "axis: The axis. Give an integer (default -1)." in ops.softmax.__doc__
    assert "alpha: Slope below 0. Give a number (default 0.01)." in ops.leaky_relu.__doc__


WRONG = [
    (lambda x: ops.add(x), HostError, r"operator Add, input 1 \(b\): is missing; give it"),
    (lambda x: x + ops.array(np.ones((2, 3)), None), HostError, "another stream"),
    (lambda x: x + x.astype("f16"), HostError, r"operator Add, input 1 \(b\): is f16\[2, 3\]; it has to be of type f32"),
    (lambda x: x @ x, HostError, "operator MatMul"),
    (lambda x: ops.softmax(x, axis=5), HostError, "operator Softmax, attribute axis: is 5, and the tensor has 2 dimensions; use -2 to 1"),
    (lambda x: ops.softmax(x, axis=0.5), HostError, "operator Softmax, attribute axis: is 0.5; give an integer"),
    (lambda x: ops.softmax(x, axis=1 << 70), ValueError, "operator Softmax, attribute axis: .*more than 64 bits"),
    (lambda x: ops.softmax(x, axis=object()), TypeError, "operator Softmax, attribute axis: an attribute is a number"),
    (lambda x: ops.softmax(x, 1, axis=1), TypeError, "operator Softmax: axis is there twice"),
    (lambda x: ops.softmax(x, 1, 2), TypeError, "operator Softmax: there are 3 arguments by position; give at most 2; it is ops.softmax"),
    (lambda x: ops.softmax(x, axes=1), TypeError, "operator Softmax: there is no argument axes"),
    (lambda x: ops.softmax(x, results=2), HostError, "operator Softmax: 2 results are asked for; ask for 1 to 1"),
    (lambda x: ops.softmax(x, results=0), HostError, "operator Softmax: 0 results"),
    (lambda x: ops.reshape(x, [4]), HostError, "operator Reshape"),
    (lambda x: ops.reshape(x), HostError, "operator Reshape, attribute shape: is missing; give a list of integers"),
    (lambda x: ops.reshape(x, [1, "a"]), HostError, "operator Reshape, attribute shape: at 1 is 'a'; give an integer"),
    (lambda x: ops.cast(x, to="f99"), HostError, "operator Cast, attribute to: is 'f99'; give one of bool, f16, bf16"),
    (lambda x: ops.pad(x, mode="mirror", pads=[0, 0, 1, 1]), HostError, "attribute mode: is 'mirror'; give one of constant, reflect, edge, wrap"),
    (lambda x: ops.matmul(x, x.T, epilogue="relux"), HostError, "operator MatMul, attribute epilogue: is 'relux'; give one of none, identity"),
    (lambda x: ops.matmul(x, x.T, epilogue={"elu": {"beta": 1}}), HostError, "attribute epilogue: has the member beta; give alpha"),
    (lambda x: ops.conv(x, x), HostError, "operator Conv"),
    (lambda x: ops.sum(x), TypeError, "operator Sum: there is 1 input; give 2 or more; the sum over axes is reduce_sum"),
    (lambda x: ops.max(x), TypeError, "the max over axes is reduce_max"),
    (lambda x: ops.add(1, 2), HostError, "operator Add: none of the inputs is an array"),
    (lambda x: ops.add(x, "a"), TypeError, "an input is an array or a number, and not str"),
    (lambda x: ops.add(x, [1, 2]), TypeError, "an input is an array or a number, and not list"),
    (lambda x: x.astype("u8") + 300, HostError, r"operator Add, input 1 \(b\): is 300, which is no element of type u8"),
    (lambda x: x.astype("u8") - -1, HostError, "is -1, which is no element of type u8"),
    (lambda x: x.astype("i32") + 0.5, HostError, "is 0.5, which is no element of type i32"),
    (lambda x: x.astype("f16") + 1e6, HostError, "is 1000000.0, which is no element of type f16"),
    (lambda x: x + True, HostError, "is True, which is no element of type f32"),
    (lambda x: ops.concat(*[x] * 200, axis=0), HostError, "operator Concat: there are 201 inputs and results; a launch takes 124"),
    (lambda x: ops.concat(axis=0), TypeError, "operator Concat: there are 0 inputs; give 1 or more"),
    (lambda x: ops.random_uniform([2, 3]), HostError, "operator RandomUniform, attribute seed: is missing"),
    (lambda x: ops.array(np.zeros(2, complex)), TypeError, "no operator takes elements of type complex128"),
    (lambda x: ops.array(["a"]), TypeError, "no operator takes elements of type"),
    (lambda x: ops.array([1], "stream"), TypeError, "stream is a stream of a session"),
    (lambda x: ops.Array(), TypeError, "make an array with ops.array"),
    (lambda x: bool(x), ValueError, "6 elements is neither true nor false"),
    (lambda x: x.item(), ValueError, r"item\(\) is for one"),
    (lambda x: hash(x), TypeError, "unhashable"),
    (lambda x: np.asarray(x, copy=False), ValueError, "NumPy gets a copy"),
    (lambda x: len(x.sum()), TypeError, "has no length"),
    (lambda x: [1, 2][x.sum()], TypeError, "is no index"),
    (lambda x: x.__dlpack__(copy=False), BufferError, "others get a copy"),
    (lambda x: x.__dlpack__(dl_device=(2, 0)), BufferError, r"memory of the host, \(1, 0\)"),
    (lambda x: ops.from_dlpack(3), TypeError, "int has no __dlpack__"),
    (lambda x: ops.from_tensor(x.tensor, ops.default_stream()), HostError, "OTHER_SESSION"),
]


@pytest.mark.parametrize("wrong, kind, text", WRONG, ids=range(len(WRONG)))
def test_a_wrong_call_says_what_and_why(stream, wrong, kind, text):
    x = ops.array(np.ones((2, 3), np.float32), stream)
    with pytest.raises(kind, match=text):
        wrong(x)
    near(x + 1, np.full((2, 3), 2, np.float32))


def test_an_index_beyond_its_axis_is_told_by_the_next_wait_once(stream):
    x = ops.array(np.arange(4, dtype=np.float32), stream)
    made = ops.gather(x, ops.array([0, 7], stream))
    with pytest.raises(HostError, match=r"operator Gather, input 1 \(indices\): the index is 7, and there are 4 elements; use -4 to 3"):
        (made + 1).synchronize()
    near(ops.gather(x, ops.array([0, 3], stream)), np.array([0, 3], np.float32))
    near(ops.gather(x, -1), np.array(3, np.float32))
    for _ in range(1030):
        made = ops.gather(x, -1)
    made.synchronize()


def test_results_whose_extents_depend_on_elements(stream):
    x = ops.array(np.array([[0, 3], [5, 0]], np.float32), stream)
    near(ops.nonzero(x), np.array([[0, 1], [1, 0]]))
    near(ops.compress(x, x.sum(axis=0) > 4, axis=1), np.array([[0], [5]], np.float32))
    near(ops.range(x.min(), 4, 1), np.arange(4, dtype=np.float32))


def test_attributes_in_every_form(stream):
    rng = np.random.default_rng(3)
    a = rng.standard_normal((1, 2, 6, 6)).astype(np.float32)
    x, w = ops.array(a, stream), ops.array(np.ones((2, 1, 3, 3), np.float32), stream)
    y = ops.conv(x, w, padding=[1, 1, 1, 1], groups=2, epilogue={"leaky_relu": {"alpha": 0.5}})
    padded = np.pad(a, ((0, 0), (0, 0), (1, 1), (1, 1))).astype(np.float64)
    sums = sum(padded[:, :, row : row + 6, column : column + 6] for row in range(3) for column in range(3))
    near(y, np.where(sums < 0, sums / 2, sums).astype(np.float32), 1e-5)
    near(ops.conv(x, w, padding="same_upper", groups=2, epilogue="relu"), np.maximum(sums, 0).astype(np.float32), 1e-5)
    values, places = ops.pool(x, "max", kernel=(2, 2), strides=np.array([2, 2]), results=2)
    blocks = a.reshape(1, 2, 3, 2, 3, 2).transpose(0, 1, 2, 4, 3, 5).reshape(1, 2, 3, 3, 4)
    near(values, blocks.max(-1))
    np.testing.assert_array_equal(a.ravel()[np.asarray(places)], np.asarray(values))
    near(ops.resize(x, {"scales": [1, 1, 2, 2]}, interpolation="nearest", coordinates="asymmetric"), a.repeat(2, 2).repeat(2, 3))
    near(ops.resize(x, {"sizes": {"sizes": [1, 2, 3, 3]}}, interpolation={"nearest": "floor"}, coordinates="asymmetric"), a[:, :, ::2, ::2])
    one, two = ops.split(x, [1, 1], axis=1)
    near(ops.concat(two, one, axis=1), a[:, ::-1])
    first, second = (ops.random_uniform([3, 3], 5, dtype=np.float64, stream=stream) for _ in range(2))
    near(first, np.asarray(second))
    near(ops.add(np.ones(2, np.float32), np.float32(2)), np.full(2, 3, np.float32))


def test_dlpack_both_ways(stream):
    rng = np.random.default_rng(4)
    for dtype in [np.bool_, np.float16, np.float32, np.float64, *WHOLE]:
        for shape in [(), (4,), (2, 0), (3, 4, 5)]:
            a = rng.integers(0, 2, shape).astype(dtype)
            x = ops.from_dlpack(a, stream) if dtype != np.bool_ or np.__version__ >= "1.25" else ops.array(a, stream)
            near(x, a)
            near(np.from_dlpack(x), a)
    strided = np.arange(24, dtype=np.int64).reshape(2, 3, 4)[:, ::2, ::-1]
    near(ops.from_dlpack(strided, stream), strided)
    x = ops.array(rng.standard_normal((3, 5)), stream, dtype="bf16")
    again = ops.from_dlpack(x, stream)
    assert again.dtype == "bf16"
    near(again, np.asarray(x))
    near(ops.from_dlpack(x.T), np.asarray(x).T)
    # A copy of another one's array: neither sees what the other one changes. Who knows no versions gets the older form.
    kept = np.from_dlpack(ops.array(np.zeros(3), stream))
    del x, again
    gc.collect()
    near(kept, np.zeros(3))

    class Old:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self):
            return self.array.__dlpack__()

        def __dlpack_device__(self):
            return (1, 0)

    near(ops.from_dlpack(Old(ops.array([1, 2], stream))), np.array([1, 2]))
    near(ops.from_dlpack(Old(np.array([1.5, 2]))), np.array([1.5, 2]))


def test_capsules_that_nobody_takes_and_those_that_are_none(stream):
    x = ops.array(np.arange(3), stream)
    for version in (None, (1, 0)):
        capsule = x.__dlpack__(max_version=version)
        del capsule
    taken = x.__dlpack__(max_version=(1, 0))

    class Held:
        def __init__(self, capsule):
            self.capsule = capsule

        def __dlpack__(self, max_version=None):
            return self.capsule

        def __dlpack_device__(self):
            return (1, 0)

    near(ops.from_dlpack(Held(taken)), np.arange(3))
    for wrong in (taken, 5, None, object()):
        with pytest.raises(BufferError, match="no capsule of DLPack, or one that was taken"):
            ops.from_dlpack(Held(wrong))
    ctypes.pythonapi.PyCapsule_New.restype = ctypes.py_object
    ctypes.pythonapi.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    # data, device, dimensions, code and bits and lanes, extents, strides, first byte | context, deleter
    for code, dimensions, device, text in ((5, 0, 1, "code 5, 64 bits"), (0, -1, 1, "-1 dimensions"), (0, 99, 1, "99 dimensions"), (0, 0, 2, "device of type 2")):
        words = (ctypes.c_uint64 * 8)(0, device, (dimensions & 0xFFFFFFFF) | code << 32 | 64 << 40 | 1 << 48)
        capsule = ctypes.pythonapi.PyCapsule_New(ctypes.addressof(words), b"dltensor", None)
        with pytest.raises(BufferError, match=text):
            ops.from_dlpack(Held(capsule))


def test_programs_and_operators_share_a_stream(tmp_path):
    from test_models import FLOAT, info, model, node

    path = model(tmp_path / "relu.onnx", [node("Relu", ["x"], ["y"])], [info("x", FLOAT, [2, 3])], [info("y", FLOAT, [])])
    a = np.array([[-1, 2, -3], [4, -5, 6]], np.float32)
    with Device(aic=4, aiv=8, gm_bytes=64 << 20).session() as session:
        stream = session.stream(overlap=4)
        x = ops.array(a, stream) * 2
        made = stream.run(session.load(load_onnx(path)), {"x": x.tensor})["y"]
        y = ops.from_tensor(made, stream) + 1
        near(y, np.maximum(2 * a, 0) + 1)
        given = ops.from_tensor(made, stream)
        stream.run(session.load(load_onnx(path)), {}, give={"x": made})
        with pytest.raises(HostError, match="TENSOR_MOVED"):
            given + 1
        assert ops.from_tensor(stream.zeros("u8", [2]), stream, "bool").dtype == "bool"
    # The session is closed; its stream is there as long as an array.
    near(x + y, 2 * a + np.maximum(2 * a, 0) + 1)


def test_every_order_of_virtual_time_gives_the_same_bits():
    found = []
    for seed in (1, 2):
        with Device(aic=4, aiv=8, gm_bytes=64 << 20, hosting="virtual", seed=seed).session() as session:
            x = ops.array(np.linspace(-1, 1, 60_000, dtype=np.float32), session.stream())
            found.append(np.asarray(ops.softmax((x * x + 1).reshape(300, 200), axis=0).T @ x[:300]))
    assert (found[0] == found[1]).all() and found[0].shape == (200,)


def test_many_shapes_do_not_fill_the_memory(stream):
    x = ops.array(np.ones(5000, np.float32), stream)
    for length in range(1, 4600):
        y = x[:length] + 1
    near(y, np.full(4599, 2, np.float32))


def test_an_interpreter_ends_with_operators_under_way():
    program = """
        import numpy as np
        from pto_runtime import ops
        x = ops.array(np.ones((256, 256), np.float32))
        for _ in range(50):
            x = ops.softmax(x @ x)
        print("done")
    """
    done = interpreter.run("-c", textwrap.dedent(program))
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-4000:]


def test_a_child_of_fork_has_arrays_of_its_own(stream):
    x = ops.array(np.ones(3), stream)
    ops.default_stream()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        said = b"nothing"
        try:
            x + 1
        except HostError as error:
            said = error.name.encode()
        os.write(writing, said + b" " + str((ops.array([1.0]) + 1).tolist()).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 99) == b"OTHER_PROCESS [2.0]"


def stub(name, function):
    """The line of a function for tools that look at types."""
    parts, is_named = [], False
    for parameter in inspect.signature(function).parameters.values():
        kind = "Operand" if parameter.default is inspect.Parameter.empty and parameter.name in function.inputs else None
        if kind is None:
            kind = "Optional[Operand]" if parameter.name in function.inputs else "Any"
        kind = {"results": "Optional[int]", "stream": "Optional[ProgramStream]"}.get(parameter.name, kind)
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            parts, is_named = [*parts, f"*{parameter.name}: Operand"], True
            continue
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not is_named:
            parts, is_named = [*parts, "*"], True
        default = "" if parameter.default is inspect.Parameter.empty else " = ..."
        parts.append(f"{parameter.name}: {kind}{default}")
    several = ("topk", "sort", "split")
    result = "Tuple[Array, ...]" if name in several else "Any" if name in ("pool", "layer_normalization") else "Array"
    return f"def {name}({', '.join(parts)}) -> {result}: ..."


def test_the_stubs_are_those_of_the_table():
    """`PTO_BLESS=1` writes them."""
    mark = "# The operators.\n"
    text = STUBS.read_text()
    wanted = text[: text.index(mark)] + mark + "".join(f"{stub(name, function)}\n" for name, function in sorted(ops.operators().items()))
    source = Path(__file__).resolve().parents[1] / "pto_runtime" / "ops.pyi"
    if os.environ.get("PTO_BLESS") == "1":
        source.write_text(wanted)
    assert source.read_text() == wanted, "the stubs are of another table: PTO_BLESS=1 writes them"
