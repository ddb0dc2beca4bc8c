"""Writes the node cases of the package `onnx` as files: a folder for each, with the model, and its inputs and outputs.

Usage: node_cases.py FOLDER. `cargo xtask acceptance --onnx` calls it, and models/examples/node_cases.rs reads the files.
"""

import pathlib
import sys
import warnings

warnings.simplefilter("ignore")

import numpy
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases


def message(value, of):
    """A value of a case as the message that its type has."""
    kind = of.type.WhichOneof("value")
    if kind == "tensor_type" and isinstance(value, onnx.TensorProto):
        return value
    if kind == "tensor_type":
        return numpy_helper.from_array(numpy.asarray(value), of.name)
    if kind == "sequence_type":
        return numpy_helper.from_list(list(value), of.name)
    return numpy_helper.from_optional(value, of.name)


def main(folder):
    numpy.random.seed(0)
    cases = collect_testcases(None)
    for case in cases:
        home = folder / case.name
        home.mkdir(parents=True, exist_ok=True)
        (home / "model.onnx").write_bytes(case.model.SerializeToString())
        (home / "tolerance").write_text(f"{case.rtol} {case.atol}\n")
        inputs, outputs = case.data_sets[0]
        sides = (("input", case.model.graph.input, inputs), ("output", case.model.graph.output, outputs))
        for side, infos, values in sides:
            for at, (info, value) in enumerate(zip(infos, values)):
                kind = info.type.WhichOneof("value").removesuffix("_type")
                (home / f"{side}_{at}.{kind}.pb").write_bytes(message(value, info).SerializeToString())
    print(len(cases), "cases of onnx", onnx.__version__)


main(pathlib.Path(sys.argv[1]))
