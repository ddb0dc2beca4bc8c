"""Operations of `pto` and `ptoisa` against NumPy, and arguments that are wrong."""

from __future__ import annotations

import numpy as np
import pytest
from wsp import F32, I32, TILE, run, tensor

from pto_wsp import (
    CompileError,
    Constexpr,
    DType,
    In,
    InOut,
    KernelError,
    Location,
    Out,
    Scalar,
    Tensor,
    Tile,
    TileType,
    kernel,
    pto,
    ptoisa,
    ptoisa_kernel,
    workload,
)
from pto_wsp.types import as_array

F16, F64, U32 = DType.F16, DType.F64, DType.U32
RANDOM = np.random.default_rng(0)


def dtype_of(array):
    return DType("f" + str(8 * array.itemsize) if array.dtype.kind == "f" else array.dtype.kind + str(8 * array.itemsize))


def computed(body, *inputs, out, dtype=F32):
    """What a kernel with this body writes; inputs are arrays of two dimensions."""
    result = np.zeros(out, dtype.numpy)
    types = [Tile[x.shape[0], x.shape[1], dtype_of(x)] for x in inputs]
    names = [f"x{number}" for number in range(len(inputs))]
    code = f"def traced({', '.join(names)}, y): body([{', '.join(names)}], y)"
    scope = {"body": body}
    exec(code, scope)
    traced = scope["traced"]
    traced.__annotations__ = {n: In[t] for n, t in zip(names, types)} | {"y": Out[Tile[out[0], out[1], dtype]]}
    made = kernel(traced)
    run(workload(lambda: made(*[tensor(x, dtype_of(x)) for x in inputs], tensor(result, dtype)))().compile())
    return result


def of(function, *inputs, out=None, dtype=F32):
    return computed(lambda x, y: pto.store(y, function(*x)), *inputs, out=out or inputs[0].shape, dtype=dtype)


def floats(*shape, dtype=np.float32, low=0.1, high=2.0):
    return RANDOM.uniform(low, high, shape).astype(dtype)


UNARY = {
    "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "tanh": np.tanh, "sin": np.sin, "cos": np.cos, "abs": np.abs,
    "neg": np.negative, "rsqrt": lambda x: 1 / np.sqrt(x), "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "relu": lambda x: np.maximum(x, 0), "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype, rtol", [(F16, 2e-3), (F32, 1e-6), (F64, 1e-12)])
def test_functions_of_elements(name, dtype, rtol):
    positive = name in ("log", "sqrt", "rsqrt")
    x = floats(6, 10, dtype=dtype.numpy, low=0.1 if positive else -3)
    found = of(getattr(pto, name), x, dtype=dtype)
    np.testing.assert_allclose(found, UNARY[name](x.astype(np.float64)), rtol=rtol, atol=rtol / 10)


BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "max": np.maximum, "min": np.minimum}


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("shape, reshaped", [((6, 10), (6, 10)), ((6, 1), (6, 1)), ((1, 6), (6, 1)), ((1, 10), (1, 10))])
def test_pairs_with_broadcasts(name, shape, reshaped):
    x, b = floats(6, 10), floats(*shape)
    np.testing.assert_array_equal(of(getattr(pto, name), x, b, out=(6, 10)), BINARY[name](x, b.reshape(reshaped)))


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint32, np.uint64])
def test_integers(dtype):
    x, y = (RANDOM.integers(1, 100, (3, 5)).astype(dtype) for _ in range(2))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(of(pto.add, x, y, dtype=dtype_of(x)), x + y)
        np.testing.assert_array_equal(of(pto.mul, x, y, dtype=dtype_of(x)), x * y)
    np.testing.assert_array_equal(of(pto.div, x, y, dtype=dtype_of(x)), x // y)


def test_a_vector_on_a_square_goes_by_rows():
    x, row = floats(4, 4), floats(1, 4)
    np.testing.assert_array_equal(of(pto.mul, x, row), x * row.T)
    np.testing.assert_array_equal(of(pto.colmul, x, row), x * row)
    np.testing.assert_array_equal(of(pto.rowadd, x, row), x + row.T)
    np.testing.assert_array_equal(of(pto.coladd, x, row), x + row)


def test_scalars_on_both_sides():
    x = floats(3, 4)
    np.testing.assert_array_equal(of(lambda x: pto.sub(1.0, x), x), 1 - x)
    np.testing.assert_array_equal(of(lambda x: pto.div(x, pto.constant(4.0)), x), x / 4)
    counts = np.arange(8, dtype=np.int32).reshape(2, 4)
    np.testing.assert_array_equal(of(lambda x: pto.add(x, pto.constant(1.9, I32)), counts, dtype=I32), counts + 1)


@pytest.mark.parametrize("name", ["rowsum", "rowmax", "rowmean", "colsum", "colmax"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_reductions(name, dtype):
    x = floats(5, 9, dtype=dtype)
    axis, function = (1, 0)[name[:3] == "col"], getattr(np, name[3:])
    out = (5, 1) if axis == 1 else (1, 9)
    found = of(getattr(pto, name), x, out=out)
    np.testing.assert_allclose(found, function(x.astype(np.float64), axis, keepdims=True), rtol=1e-6)


def test_products_and_accumulation():
    a, b, c = floats(4, 6), floats(6, 5), floats(4, 5)
    np.testing.assert_allclose(of(pto.matmul, a, b, out=(4, 5)), a @ b, rtol=1e-6)
    found = of(lambda a, b, c: pto.matmul(a, b, acc=c), a, b, c, out=(4, 5))
    np.testing.assert_allclose(found, a @ b + c, rtol=1e-6)
    half = a.astype(np.float16), b.astype(np.float16)
    np.testing.assert_allclose(of(pto.matmul, *half, out=(4, 5)), half[0].astype(np.float32) @ half[1], rtol=1e-3)


def test_columns():
    x = floats(3, 8)
    np.testing.assert_array_equal(of(pto.slice_even, x, out=(3, 4)), x[:, ::2])
    np.testing.assert_array_equal(of(pto.slice_odd, x, out=(3, 4)), x[:, 1::2])
    both = of(lambda x: pto.interleave(pto.slice_odd(x), pto.slice_even(x)), x)
    np.testing.assert_array_equal(both, x.reshape(3, 4, 2)[..., ::-1].reshape(3, 8))
    np.testing.assert_array_equal(of(lambda x: pto.broadcast(x, (3, 4)), x[:, :1].copy(), out=(3, 4)), x[:, :1].repeat(4, 1))
    np.testing.assert_array_equal(of(lambda x: pto.add(pto.alloc((3, 8), F32), x), x), x)


def test_masks_offsets_and_casts():
    x = floats(4, 4, low=-1, high=1)
    np.testing.assert_array_equal(of(lambda x: pto.where(pto.less(x, 0.0), pto.neg(x), x), x), abs(x))
    np.testing.assert_array_equal(of(lambda x: pto.cast(pto.mul(x, 9.0), I32), x, dtype=I32), (x * 9).astype(np.int32))
    kept = computed(lambda x, y: pto.store(y, x[0], mask=pto.greater(x[0], 0.0)), x, out=(4, 4))
    np.testing.assert_array_equal(kept, np.where(x > 0, x, 0))

    @kernel
    def lower(x: In[Tile[2, 4, F32]], y: Out[Tile[2, 4, F32]]):
        pto.store(y, pto.load(x, offset=(2, 0)), offset=(1, 0))

    y = np.zeros((3, 4), np.float32)
    with pytest.warns():
        run(workload(lambda: lower(tensor(x), tensor(y)))().compile())
    np.testing.assert_array_equal(y[1:], x[2:])


def test_a_store_rounds_to_nearest_even():
    x = np.array([[1 + 2**-11, 1 + 3 * 2**-11, 65520, -(2.0**-25)]], np.float32)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(of(pto.relu, abs(x), dtype=F16), abs(x).astype(np.float16))


def test_sort_and_top():
    scores = RANDOM.integers(0, 8, (1, 32)).astype(np.float32)
    order = np.argsort(-scores[0], kind="stable")
    sort = lambda x: pto.tsort32(x, pto.iota_u32(32))  # noqa: E731
    pairs = of(sort, scores, out=(1, 64))
    np.testing.assert_array_equal(pairs[0, ::2], scores[0, order])
    np.testing.assert_array_equal(pairs[0, 1::2], order)
    for k in (1, 5, 32):
        top = of(lambda x: pto.extract_topk_indices(sort(x), k), scores, out=(1, k), dtype=I32)  # noqa: B023
        np.testing.assert_array_equal(top[0], order[:k])


def test_a_parameter_keeps_its_old_value_and_load_reads_in_place():
    y = np.ones((4, 4), np.float32)

    @kernel
    def twice(y: InOut[TILE]):
        pto.store(y, pto.add(y, 1.0))
        pto.store(y, pto.add(y, pto.load(y)))

    run(workload(lambda: twice(tensor(y)))().compile())
    assert (y == 3).all()


def test_bfloat_is_bits_in_numpy():
    x = floats(2, 4)
    bits = np.zeros((2, 4), np.uint16)

    @kernel
    def narrow(x: In[Tile[2, 4, F32]], y: Out[Tile[2, 4, DType.BF16]]):
        pto.store(y, x)

    run(workload(lambda: narrow(tensor(x), Tensor(bits, (2, 4), DType.BF16)))().compile())
    np.testing.assert_allclose((bits.astype(np.uint32) << 16).view(np.float32), x, rtol=2**-8)


def test_constants_make_kernels_of_their_own():
    x, y = floats(2, 4), np.zeros((2, 2, 4), np.float32)

    @kernel
    def scale(x: In[Tile[2, 4, F32]], y: Out[Tile[2, 4, F32]], n: Constexpr[int]):
        for _ in range(n):
            x = pto.add(x, x)
        pto.store(y, x)

    @workload
    def both():
        scale(tensor(x), tensor(y)[0], n=1)
        scale(tensor(x), tensor(y)[1], n=3)

    run(both().compile())
    np.testing.assert_array_equal(y, np.stack([x * 2, x * 8]))


def test_traces_have_shapes():
    @kernel
    def product(a: In[Tile[4, 8, F32]], b: In[Tile[8, 2, F32]], c: Out[Tile[4, 2, F32]], s: Scalar[I32] = 3):
        pto.store(c, pto.matmul(a, b))

    found = product()
    assert [(name, value.shape, value.dtype) for name, value in found.params[:2]] == [("a", (4, 8), F32), ("b", (8, 2), F32)]
    assert str(found).splitlines()[1].endswith("matmul(a, b)")
    assert list(product.signature) == ["a", "b", "c", "s"] and product.name == "product"
    assert product[1, 2].axes == (1, 2) and product[1].kernel_ref is product
    for wrong in (product.compile, lambda: product[0](None)):
        with pytest.raises(RuntimeError):
            wrong()


X, Y = In[Tile[4, 6, F32]], Out[Tile[4, 6, F32]]
WRONG = [
    (lambda x, y: pto.store(y, pto.matmul(x, x)), KernelError, "do not go together"),
    (lambda x, y: pto.store(y, pto.rowsum(x)), KernelError, "shapes"),
    (lambda x, y: pto.store(x, x), KernelError, "Declare it `inout`"),
    (lambda x, y: pto.store(y, pto.add(y, x)), KernelError, "Declare it `inout`"),
    (lambda x, y: pto.add(x, x), KernelError, "stores nothing"),
    (lambda x, y: pto.store(y, pto.add(x, pto.broadcast(pto.rowsum(x), (4, 5)))), KernelError, "do not go together"),
    (lambda x, y: pto.add(x, "1"), TypeError, "str is no operand"),
    (lambda x, y: pto.matmul(x, 2), TypeError, "needs a tile"),
    (lambda x, y: pto.matmul(x, x, acc=pto.cast(x, F16)), TypeError, "acc is f16"),
    (lambda x, y: pto.tsort32(x, pto.iota_u32(32)), ValueError, r"f32\[1, 32\]"),
    (lambda x, y: pto.extract_topk_indices(x, 8), ValueError, "pairs"),
    (lambda x, y: pto.load(x, offset=3), TypeError, "a row and a column"),
    (lambda x, y: pto.store(y, x if x else y), TypeError, "pto.where"),
    (lambda x, y: pto.alloc((0, 4)), KernelError, "not allowed"),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_wrong_operands(number):
    body, kind, message = WRONG[number]

    @kernel
    def wrong(x: X, y: Y):
        body(x, y)

    with pytest.raises(kind, match=message) as error:
        wrong.trace()
    assert kind is not KernelError or "test_wsp_kernels.py:" in str(error.value)


def test_wrong_declarations():
    for parts in ((1, 2, 3), (4,), (0, 4), (4, 4, "f32")):
        with pytest.raises(TypeError):
            Tile[parts]
    with pytest.raises(TypeError):
        Scalar["f32"]
    with pytest.raises(ValueError, match="one source"):
        kernel(cpp_src="", cpp_body_path="x")
    with pytest.raises(RuntimeError, match="outside of a kernel"):
        pto.add(1, 2)
    assert Tile[2, 3] == TileType(2, 3, F16, Location.UB)

    @kernel
    def tensors(x: In[Tensor]):
        pass

    with pytest.raises(KernelError, match="has no tile"):
        tensors.trace()
    with pytest.raises(TypeError, match="no array|Use a NumPy"):
        as_array(3, F32)


def test_ptoisa_instructions():
    x, row, col, y = floats(4, 6), floats(4, 1), floats(1, 6), np.zeros((4, 6), np.float32)

    @ptoisa_kernel
    def chain(x: In[Tile[4, 6, F32]], r: In[Tile[4, 1, F32]], c: In[Tile[1, 6, F32]], y: Out[Tile[4, 6, F32]], s: Scalar[F32]):
        a = ptoisa.tload(x)
        a = ptoisa.TROWEXPANDMUL(a, ptoisa.tload(r))
        a = ptoisa.TCOLEXPANDDIV(a, ptoisa.tload(c))
        a = ptoisa.TMAX(ptoisa.TADDS(a, s), ptoisa.TEXP(ptoisa.TMOV(a)))
        ptoisa.tstore(y, a)
        ptoisa.cpu_sim_add_cycles(5)

    call = workload(lambda: chain(*map(tensor, (x, row, col, y)), 0.5))
    # Loads, two expansions, four pairs and functions, a store, and 5.
    assert run(call().compile()) == 24 + 4 + 24 + 6 + 24 + 24 * 4 + 24 + 5
    expected = x * row / col
    np.testing.assert_allclose(y, np.maximum(expected + np.float32(0.5), np.exp(expected)), rtol=1e-6)


@pytest.mark.parametrize(
    "text, n, cycles",
    [
        ("n", 7, 7), ("n * 3 + 1", 4, 13), ("(n > 32) ? (uint64_t)(n / 32) * 128ull : 0ull", 100, 384),
        ("(n > 32) ? (uint64_t)(n / 32) * 128ull : 0ull", 32, 0), ("(n == 2) - -0x10", 2, 17), ("n <= 3 ? 1 : n >= 9 ? 2 : 3", 9, 2),
    ],
)  # fmt: skip
def test_cycles_as_text_of_c(text, n, cycles):
    y = np.zeros((1, 8), np.float32)

    @ptoisa_kernel
    def counted(y: InOut[Tile[1, 8, F32]], n: Scalar[I32]):
        ptoisa.tstore(y, ptoisa.tload(y))
        ptoisa.cpu_sim_add_cycles(text)

    assert run(workload(lambda: counted(tensor(y), n))().compile()) == 16 + cycles


PTOISA_WRONG = [
    (lambda x: ptoisa.TADD(x, ptoisa.tload(x)), None, None),
    (lambda x: ptoisa.TADD(ptoisa.tload(x), 1), ValueError, "two tiles"),
    (lambda x: ptoisa.TROLL(x), AttributeError, "no instruction TROLL"),
    (lambda x: ptoisa.cpu_sim_add_cycles("m + 1"), ValueError, "no scalar parameter 'm'"),
    (lambda x: ptoisa.cpu_sim_add_cycles("n +"), ValueError, "too early"),
    (lambda x: ptoisa.cpu_sim_add_cycles("n; 1"), ValueError, "not understood"),
    (lambda x: ptoisa.store_topk_indices_i32(x, x, 33), ValueError, "1 to 32"),
]


@pytest.mark.parametrize("number", range(1, len(PTOISA_WRONG)))
def test_wrong_ptoisa(number):
    body, kind, message = PTOISA_WRONG[number]
    with pytest.raises(kind, match=message):

        @ptoisa_kernel
        def wrong(x: InOut[Tile[4, 6, F32]], n: Scalar[I32]):
            body(x)

    with pytest.raises(TypeError, match="tiles and scalars"):

        @ptoisa_kernel
        def typed(x: In[Tensor]):
            pass


CPP = """
  const float* x = (const float*)task->tensor_ptrs[0];
  float* y = (float*)task->tensor_ptrs[1];
  const uint64_t* s = task->tensor_strides;
  for (int r = 0; r < 4; ++r)
    for (int c = 0; c < 4; ++c)
      y[r * (int64_t)s[2] + c * (int64_t)s[3]] = 2 * x[r * (int64_t)s[0] + c * (int64_t)s[1]];
  cycles = 11 + task->args[task->num_axis_args] + task->args[0];
"""


def test_a_body_in_cpp():
    x, y = floats(2, 4, 4), np.zeros((2, 4, 4), np.float32)

    @kernel(cpp_src=CPP)
    def double(x: In[TILE], y: Out[TILE], n: Scalar[I32]):
        raise AssertionError("it is not called")

    @workload
    def both():
        double[0](tensor(x)[0], tensor(y.swapaxes(1, 2))[0], 100)
        double[1](tensor(x)[1], tensor(y.swapaxes(1, 2))[1], 100)

    assert run(both().compile()) == 2 * 111 + 1
    np.testing.assert_array_equal(y.swapaxes(1, 2), 2 * x)

    @kernel(cpp_src="this is no C++;")
    def broken(x: In[TILE]):
        pass

    with pytest.raises(CompileError, match="refused"):
        workload(lambda: broken(tensor(x)[0]))().compile()

    @kernel(cpp_src="return 0;")
    def outside(x: In[Tile[9, 4, F32]]):
        pass

    with pytest.warns():
        program = workload(lambda: outside(tensor(x)[0]))().compile()
    program.execute()
    with pytest.raises(Exception, match="kernel outside: argument x: the tile leaves"):
        program.synchronize()


def test_a_body_from_files(tmp_path):
    body, unit = tmp_path / "body.cpp", tmp_path / "unit.cpp"
    body.write_text("pto::cpu_sim::add_cycles(7);")
    unit.write_text(
        '#include "pto/wsp/codegen/abi/kernel_abi.hpp"\n'
        'extern "C" uint64_t from_unit(const KernelTaskDesc* task, CSPTContext*) { return task->num_tensors; }\n'
    )

    @kernel(cpp_body_path=str(body))
    def from_body(x: In[TILE]):
        pass

    @kernel(cpp_tu_path=str(unit))
    def from_unit(x: In[TILE]):
        pass

    body.unlink()
    x = floats(4, 4)

    @workload
    def both():
        from_body(tensor(x))
        from_unit(tensor(x))

    assert run(both().compile()) == 8
