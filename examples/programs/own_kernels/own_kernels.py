"""A program with kernels of one's own: it writes the file, reads it back, and runs it.

    cc -O2 -shared -fPIC -I bindings/include -o kernels.so examples/kernels/scale.c
    python own_kernels.py kernels.so own.ptop

The machine code of the kernels travels in the file: whoever runs it does not need the shared object."""

import sys

import numpy as np

from pto_runtime import Device, program_of_tasks

ELEMENTS = 1000


def write(kernels, path):
    """mean = the mean of 2 * row."""
    tensors = {
        "row": ("input", "f32", [ELEMENTS]),
        "scaled": ("temporary", "f32", [ELEMENTS]),
        "mean": ("output", "f32", [1]),
    }
    tasks = [
        ("scale", "aiv", ["row", 2.0, "scaled", ELEMENTS]),
        ("mean", "aic", ["scaled", "mean", ELEMENTS], [0]),
    ]
    program_of_tasks("own_kernels", tensors, tasks, kernels=[kernels]).save(path)


def main(kernels, path):
    """Writes the program and runs it; the mean."""
    write(kernels, path)
    with Device().session() as session:
        program, stream = session.load(path), session.stream()
        row = stream.to_device(np.arange(ELEMENTS, dtype=np.float32))
        mean = stream.to_host(stream.run(program, {"row": row})["mean"])[0]
    print(f"the mean is {mean:g}")
    return mean


if __name__ == "__main__":
    sys.exit(0 if abs(main(*sys.argv[1:]) - 999) < 1e-3 else 1)
