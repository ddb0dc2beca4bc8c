"""Files that a run writes when its configuration asks for them.

`pto_trace.json` is our timeline of the run. The field's own files are not written yet: a run that is asked for one says so.
"""

from pathlib import Path

from . import _log

_NOT_WRITTEN = {
    "enable_dump_args": "args_dump/",
    "enable_pmu": "pmu.csv",
    "enable_dep_gen": "deps.json",
    "enable_scope_stats": "scope_stats.jsonl",
}


class Diagnostics:
    """What a run is asked to keep, and the files made of it."""

    def __init__(self, config):
        self._config = config
        self._folder = Path(config.output_prefix) if config.output_prefix else None
        if config.has_diagnostics and self._folder is None:
            raise ValueError("the configuration asks for diagnostics and has no output_prefix, the folder for their files")

    def options(self):
        """What the run must keep for the files."""
        return {"trace": bool(self._config.swimlane_level)}

    def write(self, outcome):
        """Writes the files, and says which ones that were asked for are not written."""
        if not self._config.has_diagnostics:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        if self._config.swimlane_level and outcome.report is not None and outcome.report.trace is not None:
            outcome.report.trace.save(self._folder / "pto_trace.json")
            _log.write("warn", f"{self._folder}/chip_swimlane_records.json is not written: pto_trace.json has the timeline")
        for option, name in _NOT_WRITTEN.items():
            if getattr(self._config, option):
                _log.write("warn", f"{self._folder}/{name} is not written: {option} is accepted and not served yet")
