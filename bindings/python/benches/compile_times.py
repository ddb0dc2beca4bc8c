"""How long it takes to compile each example for a device: trace, check, plan. The best of some rounds, in milliseconds.

`--rounds N` for another number. Bodies in C++ are compiled by the compiler of this machine, once a process: the best round has none of that."""

import argparse
import contextlib
import io
import runpy
import sys
import time
from pathlib import Path

import pto_wsp.workload  # noqa: F401
from pto_wsp.on_device import OnDevice
from pto_wsp.program import Program

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "python"
AIM_MS = 10.0


class Compiled:
    """What was compiled while an example ran: name, milliseconds of trace, of check and of plan, words of the plan."""

    def __init__(self):
        self.rows = []
        self.trace_ms = 0.0

    def traced(self, build):
        def timed(*arguments):
            begin = time.perf_counter()
            node = build(*arguments)
            self.trace_ms = 1e3 * (time.perf_counter() - begin)
            return node

        return timed

    def compiled(self, init):
        def timed(program, *arguments):
            init(program, *arguments)
            begin = time.perf_counter()
            on_device = OnDevice(*for_device(program))
            plan_ms = 1e3 * (time.perf_counter() - begin)
            name = program.workload._name or "workload"
            self.rows.append((name, self.trace_ms, program.stats.compile_time_ms, plan_ms, on_device.plan_words))
            self.trace_ms = 0.0

        return timed


def for_device(program):
    """The arguments of a program on a device."""
    checked, lowered = program._for_device()
    return checked, None, lowered


def best(rows):
    """Of the rows of one workload the one that took the shortest time."""
    fastest = {}
    for row in rows:
        name, *_ = row
        if name not in fastest or sum(row[1:4]) < sum(fastest[name][1:4]):
            fastest[name] = row
    return fastest.values()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    module = sys.modules["pto_wsp.workload"]
    found = Compiled()
    module._build = found.traced(module._build)
    Program.__init__ = found.compiled(Program.__init__)
    sys.path.insert(0, str(EXAMPLES))
    print(f"{'example':18} {'workload':18} {'trace':>7} {'check':>7} {'plan':>7} {'all':>7} ms {'words':>6}")
    is_met = True
    for path in sorted(EXAMPLES.glob("*.py")):
        found.rows.clear()
        for _ in range(rounds):
            with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
                runpy.run_path(str(path), run_name="__main__")
        for name, trace, check, plan, words in best(found.rows):
            whole = trace + check + plan
            is_met &= whole < AIM_MS
            print(f"{path.stem:18} {name:18} {trace:7.2f} {check:7.2f} {plan:7.2f} {whole:7.2f}    {words:6}")
    print(f"each below {AIM_MS:.0f} ms: {'yes' if is_met else 'no'}")
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
