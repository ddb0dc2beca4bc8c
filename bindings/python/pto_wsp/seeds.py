"""Runs a program on the virtual machine with many seeds: `python -m pto_wsp.seeds PROGRAM.py --seeds 1000`.

Every run of a workload in the program is made in program order first. Then it is made once for each seed on a device in virtual
time, where the seed decides what happens at the same time, and the memory of its tensors must have the same bits each time.
With `--qemu` it is made once more on the emulated machine, with the firmware and the kernels that are flashed to it.
Options that are not of this command are those of the program."""

from __future__ import annotations

import argparse
import runpy
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Optional, Sequence

import numpy as np

from pto_runtime import Device

from .errors import CompileError
from .on_device import OnDevice
from .program import Program

#: Enough cores for tasks to overtake each other, and few enough to be fast.
_CORES = {"aic": 4, "aiv": 8, "gm_bytes": 1 << 30}


def root_of(array: np.ndarray) -> np.ndarray:
    """The array whose memory an array shows: arrays that share memory have one."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


class Seeds:
    """Compares runs on the virtual machine, once on each of other hostings, and on the emulated machine, with program order."""

    def __init__(self, seeds: range, hostings: Sequence[str] = (), qemu: bool = False) -> None:
        self.devices: list[tuple[str, dict[str, Any]]] = [
            (f"seed {seed}", {"hosting": "virtual", "seed": seed}) for seed in seeds
        ]
        self.devices += [(hosting, {"hosting": hosting}) for hosting in hostings]
        if qemu:
            self.devices.append(("qemu", {"name": "qemu"}))
        #: Runs that were compared, and what was wrong.
        self.runs = 0
        self.failures: list[str] = []
        #: What cannot run on the emulated machine: bodies of kernels in C++ are functions of this process.
        self.refused: list[str] = []
        self._qemu: Optional[Device] = None

    def close(self) -> None:
        """Ends the emulated machine."""
        if self._qemu is not None:
            self._qemu.close()
            self._qemu = None

    def _opened(self, options: dict[str, Any]) -> AbstractContextManager[Device]:
        """A device of its own for a run; the emulated machine, which takes a second to boot, is one for all."""
        if "name" not in options:
            return Device(**options, **_CORES)
        if self._qemu is None:
            self._qemu = Device(**options, **_CORES)
        return nullcontext(self._qemu)

    def check(self, program: Program, given: dict[str, Any], run: Any) -> None:
        """Makes a run in program order, by `run`, and then on every device."""
        roots = {id(root): root for root in map(root_of, given["tensors"].values())}
        before = {key: root.copy() for key, root in roots.items()}
        run(program, given)
        if program._error is not None:
            return
        after = {key: root.tobytes() for key, root in roots.items()}
        name = program.workload._name or "workload"
        try:
            for label, options in self.devices:
                self._compare(program, given, (f"{name}, {label}", options), (roots, before, after))
        except (CompileError, ValueError) as error:
            self.failures.append(f"{name}: {error}")
        for key, root in roots.items():
            if root.flags.writeable:
                root[...] = np.frombuffer(after[key], root.dtype).reshape(root.shape)

    def _compare(self, program: Program, given: dict[str, Any], what: tuple, memory: tuple) -> None:
        (label, options), (roots, before, after) = what, memory
        for key, root in roots.items():
            if root.flags.writeable:
                root[...] = before[key]
        checked, lowered = program._for_device()
        with self._opened(options) as device:
            try:
                OnDevice(checked, device, lowered).run(given, traced=False)
            except RuntimeError as error:
                is_refused = "name" in options and lowered.foreign and "is a function of this process" in str(error)
                (self.refused if is_refused else self.failures).append(f"{label}: {error}")
                return
        self.runs += 1
        wrong = [key for key, root in roots.items() if root.tobytes() != after[key]]
        if wrong:
            self.failures.append(f"{label}: {len(wrong)} of {len(roots)} arrays differ from program order.")


def watch(seeds: Seeds) -> Any:
    """Lets `seeds` check every run of every program from here on; what undoes it."""
    run = Program._run

    def checked(program: Program, given: dict[str, Any]) -> None:
        if program.target == "cpu_sim":
            seeds.check(program, given, run)
        else:
            run(program, given)

    Program._run = checked  # type: ignore[method-assign]
    return lambda: setattr(Program, "_run", run)


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m pto_wsp.seeds", description=__doc__.splitlines()[0])
    parser.add_argument("program", help="the file of a program that uses pto_wsp")
    parser.add_argument("--seeds", type=int, default=100, help="how many seeds to run (default: 100)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument("--qemu", "--virt", action="store_true", help="run once more on the emulated machine, with what is flashed to it")
    asked, arguments = parser.parse_known_args()
    seeds = Seeds(range(asked.first, asked.first + asked.seeds), qemu=asked.qemu)
    watch(seeds)
    sys.argv = [asked.program, *arguments]
    ended: Any = 0
    try:
        runpy.run_path(asked.program, run_name="__main__")
    except SystemExit as exit:
        ended = exit.code or 0
    seeds.close()
    for refused in seeds.refused:
        print(f"not run: {refused}", file=sys.stderr)
    for failure in seeds.failures[:20]:
        print(failure, file=sys.stderr)
    where = "the virtual machine and qemu" if asked.qemu else "the virtual machine"
    print(f"{asked.program}: {seeds.runs} runs on {where}, {len(seeds.failures)} failures")
    return 1 if seeds.failures or ended or not seeds.runs else 0


if __name__ == "__main__":
    sys.exit(main())
