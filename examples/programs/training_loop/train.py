"""A training loop of three programs that were compiled apart: forward, backward, optimiser. The weights stay on the device.

    python train.py [FOLDER]

It writes a program file of each workload into FOLDER (a temporary one), loads the files, trains, and compares the weights with the same training in double
precision. After the first round the counters of the device must not have moved."""

import sys
import tempfile
from pathlib import Path

import numpy as np

from pto_runtime import Device, program_of

ROUNDS, RATE = 12, 0.5 / 64
HERE = Path(__file__).resolve().parent
#: The losses of earlier rounds stay; D and P are nobody's business.
ROLES = {"backward": {"L": "updated", "D": "temporary", "P": "temporary"}}


def write(folder):
    """A program file of each workload."""
    for name in ("forward", "backward", "optimiser"):
        text = (HERE / f"{name}.workload").read_text()
        program_of(text, roles=ROLES.get(name)).save(folder / f"{name}.ptop")


def reference(x, target, weights):
    """The same training in double precision."""
    x, weights = x.astype(np.float64), weights.astype(np.float64)
    for _ in range(ROUNDS):
        y = np.tanh(x @ weights)
        weights = weights - RATE * (x.T @ ((y - target) * (1 - y * y)))
    return weights


def train(session, folder, between=lambda stream, weights, number: None):
    """Trains; the weights, the losses, the reference, and what the rounds after the first one added to the counters."""
    forward, backward, optimiser = (session.load(folder / f"{name}.ptop") for name in ("forward", "backward", "optimiser"))
    (batch, inner), (_, outer) = (forward.program.tensors[name]["shape"] for name in "XW")
    random = np.random.default_rng(7)
    x, target, start = (random.uniform(-0.5, 0.5, shape).astype(np.float32) for shape in ((batch, inner), (batch, outer), (inner, outer)))

    stream = session.stream(overlap=24)
    on_device = {"X": stream.to_device(x), "XT": stream.to_device(x.T.copy()), "T": stream.to_device(target)}
    weights = stream.to_device(start, forward.layout("W"))
    count, losses = stream.zeros("i32", (1, 1)), stream.zeros("f32", (ROUNDS, 1))
    settled = {}
    for number in range(ROUNDS):
        y = stream.run(forward, {"X": on_device["X"], "W": weights})["Y"]
        shared = {"XT": on_device["XT"], "T": on_device["T"], "C": count, "L": losses}
        gradient = stream.run(backward, shared, give={"Y": y})["G"]
        stream.run(optimiser, {"W": weights, "C": count}, give={"G": gradient}, numbers={"rate": RATE})
        if number == 0:
            stream.synchronize()
            settled = session.counters
        between(stream, weights, number)
    stream.synchronize()
    added = {name: value - settled[name] for name, value in session.counters.items()}
    return stream.to_host(weights), stream.to_host(losses).ravel(), reference(x, target, start), added


def check(weights, losses, expected, added):
    """Fails if anything was copied, converted, filled or allocated, or if the training is wrong."""
    moved = {name: added[name] for name in added if name.endswith("_bytes") or name in ("conversions", "allocations")}
    assert not any(moved.values()), f"after the first round there were {moved}"
    correlation = np.corrcoef(weights.ravel(), expected.ravel())[0, 1]
    assert correlation >= 0.999, f"the weights have a correlation of {correlation} with the reference"
    assert losses[-1] < losses[0], f"the loss does not fall: {losses}"
    return correlation


def main(folder):
    write(folder)
    with Device(aic=4, aiv=8, gm_bytes=64 << 20).session() as session:
        weights, losses, expected, added = train(session, folder)
    correlation = check(weights, losses, expected, added)
    print(f"{ROUNDS} rounds, loss {losses[0]:.4f} to {losses[-1]:.4f}, correlation {correlation:.6f}, {added['runs']} runs")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as made:
            main(Path(made))
