"""Models in files of ONNX from Python: `load_onnx`. The files are written here, field by field."""

import numpy as np
import pytest

from pto_runtime import Device, HostError, load_onnx

FLOAT, INT64, STRING = 1, 7, 8


def field(number, content):
    """A field of a message: a number, or bytes."""

    def varint(value):
        out = b""
        while value >= 128:
            out += bytes([value % 128 + 128])
            value //= 128
        return out + bytes([value])

    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    content = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | 2) + varint(len(content)) + content


def info(name, element, extents):
    dims = b"".join(field(1, field(1, extent) if isinstance(extent, int) else field(2, extent)) for extent in extents)
    return field(1, name) + field(2, field(1, field(1, element) + field(2, dims)))


def node(kind, inputs, outputs):
    return b"".join(field(1, name) for name in inputs) + b"".join(field(2, name) for name in outputs) + field(4, kind)


def model(path, nodes, inputs, outputs):
    graph = b"".join(field(1, one) for one in nodes) + field(2, "tested")
    graph += b"".join(field(11, one) for one in inputs) + b"".join(field(12, one) for one in outputs)
    path.write_bytes(field(1, 9) + field(7, graph) + field(8, field(2, 18)))
    return path


@pytest.fixture
def product(tmp_path):
    nodes = [node("MatMul", ["x", "y"], ["p"]), node("Relu", ["p"], ["z"])]
    inputs = [info("x", FLOAT, ["n", 3]), info("y", FLOAT, [3, 4])]
    return model(tmp_path / "product.onnx", nodes, inputs, [info("z", FLOAT, [])])


@pytest.mark.parametrize("rows", [1, 5])
def test_a_model_runs_with_the_extents_that_it_is_given(product, rows):
    program = load_onnx(product, shapes={"x": (rows, 3)})
    rng = np.random.default_rng(rows)
    x, y = rng.standard_normal((rows, 3), dtype=np.float32), rng.standard_normal((3, 4), dtype=np.float32)
    with Device(aic=4, aiv=8, gm_bytes=64 << 20).session() as session:
        stream = session.stream()
        made = stream.run(session.load(program), {"x": stream.to_device(x), "y": stream.to_device(y)})
        z = np.asarray(stream.to_host(made["z"]))
    assert z.shape == (rows, 4)
    assert np.allclose(z, np.maximum(x.astype(np.float64) @ y, 0), rtol=1e-5, atol=1e-6)


def test_an_extent_with_a_name_can_be_given_by_its_name(product):
    assert load_onnx(product, sizes={"n": 7}).tensors["z"]["shape"] == (7, 4)
    with pytest.raises(HostError, match=r"input x: its extents \[n, 3\] are not all known"):
        load_onnx(product)


def test_a_value_that_decides_a_shape_is_given(tmp_path):
    path = model(
        tmp_path / "reshape.onnx",
        [node("Reshape", ["x", "s"], ["y"])],
        [info("x", FLOAT, [6]), info("s", INT64, [2])],
        [info("y", FLOAT, [])],
    )
    assert load_onnx(path, values={"s": np.array([2, 3])}).tensors["y"]["shape"] == (2, 3)
    with pytest.raises(HostError, match="decides a shape, and depends on the values of s"):
        load_onnx(path)


def test_every_node_that_cannot_run_is_told(tmp_path):
    nodes = [node("NoSuchThing", ["x"], ["a"]), node("Another", ["x"], ["b"])]
    path = model(tmp_path / "bad.onnx", nodes, [info("x", FLOAT, [2])], [info("a", FLOAT, []), info("b", FLOAT, [])])
    with pytest.raises(HostError, match=r"(?s)2 nodes cannot.*node a \(NoSuchThing, version 18\).*node b \(Another, version 18\)"):
        load_onnx(path)
    (tmp_path / "noise.onnx").write_bytes(b"\xff" * 9)
    with pytest.raises(HostError, match="this is no ONNX file"):
        load_onnx(tmp_path / "noise.onnx")
