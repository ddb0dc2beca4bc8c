"""The same program on the field's own simulator and on ours, in turn, in one run: how long the device was busy.

    python -m simpler_setup.overhead PROGRAM.py --theirs CHECKOUT --their-python INTERPRETER [--rounds 5]

The checkout is one of the field's runtime in which its simulator is built, and the interpreter is one that runs its tests. A program
whose kernels do nothing measures the time outside kernels.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

# Their package names types that Debian's torch does not have. Its interpreter finds this where it starts, and programs that use none of them run.
_TYPES = """
import torch
for name in ("uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e8m0fnu"):
    if not hasattr(torch, name):
        setattr(torch, name, object())
"""
# What both write to standard error after each run.
_SPAN = re.compile(r"name=chip\.run\.runner_run\.device_wall ts=\d+ dur=(\d+)")
_ENDED = re.compile(r"(\w+::\w+):? (?:PASSED|FAILED)")


def spans_of(text):
    """Nanoseconds of the runs of each case, as a program's output reports them."""
    cases, pending = {}, []
    for line in text.splitlines():
        if found := _SPAN.search(line):
            pending.append(int(found[1]))
        if found := _ENDED.search(line):
            cases[found[1]], pending = pending, []
    return cases


def _run(interpreter, program, folder, environment, options):
    command = [str(interpreter), str(program), "-p", "a2a3sim", *options]
    done = subprocess.run(command, cwd=folder, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    spans = spans_of(done.stdout)
    if done.returncode != 0 or not spans:
        raise SystemExit(f"error: {' '.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}")
    return spans


def measured(values, types):
    """Nanoseconds by case: theirs and ours, from rounds in turn. `types` is a folder for what their interpreter starts with."""
    options = ["--rounds", str(values.runs), *values.option]
    theirs = Path(values.theirs).resolve()
    (Path(types) / "sitecustomize.py").write_text(_TYPES)
    folders = [str(theirs / "python"), str(theirs), types, *filter(None, [os.environ.get("THEIR_PYTHONPATH")])]
    own = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    both = {}
    for _ in range(values.rounds):
        for side, run in (
            ("theirs", (values.their_python, theirs, {"PYTHONPATH": os.pathsep.join(reversed(folders))})),
            ("ours", (sys.executable, Path.cwd(), own)),
        ):
            interpreter, folder, environment = run
            for case, spans in _run(interpreter, Path(values.program).resolve(), folder, environment, options).items():
                # The first run of a process loads and maps.
                both.setdefault(case, {}).setdefault(side, []).extend(spans[1:] or spans)
    return both


def main(given=None):
    """0: both ran."""
    parser = argparse.ArgumentParser(
        description="Measures a program on the field's simulator and on ours.",
        epilog="example: python -m simpler_setup.overhead overhead.py --theirs ~/simpler --their-python ~/venv/bin/python",
    )
    parser.add_argument("program", help="a scene test of level 2")
    parser.add_argument("--theirs", required=True, help="a checkout of the field's runtime with its simulator built")
    parser.add_argument("--their-python", required=True, help="the interpreter that runs their tests")
    parser.add_argument("--rounds", type=int, default=3, help="how often each side is started, in turn (default 3)")
    parser.add_argument("--runs", type=int, default=4, help="runs in each start; the first one is left out (default 4)")
    parser.add_argument("--option", action="append", default=[], help="an option for the program on both sides: --option=--manual=include")
    with tempfile.TemporaryDirectory() as types:
        both = measured(parser.parse_args(given), types)
    print(f"{'case':<40} {'theirs ms':>12} {'ours ms':>12} {'times':>8}")
    for case, sides in both.items():
        theirs, ours = (statistics.median(sides[side]) / 1e6 for side in ("theirs", "ours"))
        print(f"{case:<40} {theirs:>12.3f} {ours:>12.3f} {theirs / ours:>8.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
