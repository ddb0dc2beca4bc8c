"""The level of the log, and writing to it. Lines go to standard error, as the field's do."""

import os
import sys

LEVELS = ("debug", "info", "timing", "warn", "error", "null")


def _checked(level):
    name = str(level).lower()
    name = {"v0": "debug", "warning": "warn"}.get(name, name)
    if name not in LEVELS:
        raise ValueError(f"there is no log level {level!r}: use {', '.join(LEVELS)}")
    return name


_current = _checked(os.environ.get("SIMPLER_LOG_LEVEL", "timing"))


def get_current_config():
    """The level now; `configure` takes the answer back."""
    return _current


def configure(level):
    """Sets the level; says which it was."""
    global _current
    before, _current = _current, _checked(level)
    return before


def is_shown(level):
    """Whether lines of that level are written."""
    return LEVELS.index(_checked(level)) >= LEVELS.index(_current)


def write(level, text):
    """Writes a line if its level is shown."""
    if is_shown(level):
        print(f"[{level.upper()}] {text}", file=sys.stderr, flush=True)
