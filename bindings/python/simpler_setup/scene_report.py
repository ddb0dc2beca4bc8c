"""What a command asks of scene tests, and what became of each case: on a file for programs, one JSON object a line."""

import argparse
import contextlib
import json
import time
from dataclasses import dataclass, field
from pathlib import Path

from .scene_case import MANUAL_MODES

_ATTRIBUTE = "_pto_scene_asked"


class Report:
    """Lines `{"case", "state": "begun"|"passed"|"failed"|"skipped", "reason", "seconds"}`; a process that dies leaves the begun one."""

    def __init__(self, path=None, says=None):
        self._path = Path(path) if path else None
        self._says = says or (lambda _line: None)

    def line(self, case, state, reason="", seconds=0.0):
        """Writes a line."""
        if self._path is None:
            return
        with self._path.open("a") as file:
            file.write(json.dumps({"case": case, "state": state, "reason": reason, "seconds": round(seconds, 3)}) + "\n")

    def listed(self, case, platforms, kind):
        """Says that a case exists, and where it can run."""
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps({"case": case, "state": "listed", "platforms": list(platforms), "kind": kind}) + "\n")

    @contextlib.contextmanager
    def case(self, label):
        """Reports a case around its run."""
        ended, start = Ended(), time.perf_counter()
        self.line(label, "begun")
        yield ended
        seconds = time.perf_counter() - start
        self.line(label, ended.state, ended.reason, seconds)
        self._says(f"{label}: {ended.state.upper()} in {seconds:.2f} s{': ' + ended.reason if ended.reason else ''}")


class Ended:
    """How a case ended."""

    def __init__(self):
        self.state, self.reason = "passed", ""

    def failed(self, error):
        """Says that it failed."""
        self.state, self.reason = "failed", f"{type(error).__name__}: {error}"


@dataclass
class Asked:
    """What the command line asks."""

    selection: dict = field(default_factory=dict)
    diagnostics: dict = field(default_factory=dict)
    rounds: int = 1
    skip_golden: bool = False
    stops_at_first: bool = False
    report: Report = field(default_factory=Report)


def asked(config):
    """What this command asks; a configuration of pytest without our options asks nothing special."""
    return getattr(config, _ATTRIBUTE, None) or Asked()


def remember(config, values, says=None):
    """Makes an Asked of parsed options and keeps it with the configuration."""
    made = Asked(
        selection={
            "manual": values.manual,
            "names": tuple(values.case or ()),
            "done": frozenset(_lines(values.scene_done)),
        },
        diagnostics={
            "enable_chip_swimlane": values.enable_chip_swimlane,
            "enable_dump_args": values.dump_args,
            "enable_pmu": values.enable_pmu,
            "enable_dep_gen": values.enable_dep_gen,
            "enable_scope_stats": values.enable_scope_stats,
        },
        rounds=values.rounds,
        skip_golden=values.skip_golden,
        stops_at_first=getattr(values, "stop_first", False),
        report=Report(values.scene_report, says),
    )
    setattr(config, _ATTRIBUTE, made)
    return made


def _lines(path):
    return Path(path).read_text().split("\n") if path else ()


def _positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value}: give 1 or more")
    return value


# Options of a test file's command line and of pytest alike.
OPTIONS = (
    (("--case",), {"action": "append", "help": "run only Class::case, Class, or case; may be given again"}),
    (("--manual",), {"choices": MANUAL_MODES, "default": "exclude", "help": "cases marked manual: leave out (default), include, or only these"}),
    (("--rounds",), {"type": _positive, "default": 1, "help": "how often each case is run (default 1)"}),
    (("--skip-golden",), {"action": "store_true", "help": "do not compare with the golden outputs"}),
    (("--enable-chip-swimlane", "--enable-l2-swimlane"), {"type": int, "nargs": "?", "const": 4, "default": 0, "help": "write chip_swimlane_records.json"}),
    (("--dump-args", "--enable-dump-args"), {"type": int, "nargs": "?", "const": 1, "default": 0, "help": "write the arguments of tasks to args_dump/"}),
    (("--enable-pmu",), {"type": int, "nargs": "?", "const": 2, "default": 0, "help": "write the counters of cores to pmu.csv"}),
    (("--enable-dep-gen",), {"action": "store_true", "help": "write tasks and edges to deps.json"}),
    (("--enable-scope-stats",), {"action": "store_true", "help": "write what scopes hold to scope_stats.jsonl"}),
    (("--runtime",), {"help": "only tests of this runtime"}),
    (("--level",), {"type": int, "choices": (2, 3), "help": "only tests of this level"}),
    (("--max-parallel",), {"type": _positive, "default": 1, "help": "accepted; cases run one after the other, each on all cores"}),
    (("--scene-report",), {"metavar": "FILE", "help": "append what became of each case, one JSON object a line"}),
    (("--scene-done",), {"metavar": "FILE", "help": "leave out the cases that this file names, one a line"}),
)
