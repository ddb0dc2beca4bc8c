"""Reads `chip_swimlane_records.json`."""

import json
from pathlib import Path


def read_perf_data(path):
    """The records of a run's timeline as a dict."""
    return json.loads(Path(path).read_text())
