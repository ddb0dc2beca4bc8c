"""Files that a run writes when its configuration asks for them: the field's, and `pto_trace.json`, which is our timeline.

What the field's formats have fields for and the simulator does not measure is left out.
"""

import os
from pathlib import Path

from . import _log, deps_text

# Groups of counters of the field: the simulator has what the second one is about. Numbers that are no group mean the second one there.
_GROUPS = {1: "arithmetic", 4: "memory", 5: "L0 memory", 6: "conflicts", 7: "unified buffer", 8: "L2 cache"}
_PIPE_UTILIZATION = 2


def _check_group(config):
    """Refuses counters that nothing here could count."""
    if not config.enable_pmu:
        return
    asked = os.environ.get("SIMPLER_PMU_EVENT_TYPE") or config.enable_pmu
    group = int(asked)
    if group in _GROUPS:
        raise ValueError(
            f"--enable-pmu {group} asks for the group {_GROUPS[group]!r}, and the simulator has no counters of it: "
            f"use --enable-pmu {_PIPE_UTILIZATION}, the busy cycles of pipes"
        )
    if group != _PIPE_UTILIZATION:
        _log.write("warn", f"--enable-pmu {group} is no group of counters: the busy cycles of pipes are counted ({_PIPE_UTILIZATION})")


class Diagnostics:
    """What a run is asked to keep, and the files made of it."""

    def __init__(self, config, platform="a2a3sim"):
        _check_group(config)
        self._config, self._platform = config, platform
        self._folder = Path(config.output_prefix) if config.output_prefix else None
        if config.has_diagnostics and self._folder is None:
            raise ValueError("the configuration asks for diagnostics and has no output_prefix, the folder for their files")

    def options(self):
        """What the run must keep for the files."""
        config = self._config
        has_graph = bool(config.enable_dep_gen) or bool(config.enable_scope_stats)
        has_spans = bool(config.swimlane_level) or bool(config.enable_pmu)
        return {"trace": bool(config.swimlane_level), "keeps": (has_graph, has_spans, int(config.enable_dump_args))}

    def write(self, outcome):
        """Writes the files that were asked for."""
        if not self._config.has_diagnostics:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        if self._config.swimlane_level:
            self._swimlane(outcome)
        if self._config.enable_dep_gen:
            self._deps(outcome)
        if self._config.enable_scope_stats:
            self._text("scope_stats/scope_stats.jsonl", outcome.scope_stats_jsonl())
        if self._config.enable_pmu:
            self._counters(outcome)
        if self._config.enable_dump_args:
            self._arguments(outcome)

    def _text(self, name, text):
        if text is None:
            _log.write("warn", f"{self._folder / name} is not written: nothing of the program ran")
            return
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def _counters(self, outcome):
        counted = outcome.pmu(self._platform.startswith("a5"))
        table, notes = counted or (None, ())
        self._text("pmu.csv", table)
        if counted:
            self._text("pmu_notes.txt", "".join(f"{note}\n" for note in notes))

    def _swimlane(self, outcome):
        self._text("chip_swimlane_records.json", outcome.swimlane_json(int(self._config.swimlane_level)))
        if outcome.report is not None and outcome.report.trace is not None:
            outcome.report.trace.save(self._folder / "pto_trace.json")

    def _deps(self, outcome):
        text = outcome.deps_json()
        self._text("deps.json", text)
        if text is not None:
            self._text("deps_viewer.txt", deps_text.text_of(text))

    def _arguments(self, outcome):
        kept = outcome.args_dump()
        if kept is None:
            _log.write("warn", f"{self._folder}/args_dump/ is not written: no argument was marked, or nothing ran")
            return
        manifest, contents = kept
        self._text("args_dump/args_dump.json", manifest)
        if '"bin_file":"args.bin"' in manifest:
            (self._folder / "args_dump" / "args.bin").write_bytes(contents)
