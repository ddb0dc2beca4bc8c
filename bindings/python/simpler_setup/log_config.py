"""The log level, as programs set it."""

from simpler import _log

DEFAULT_LOG_LEVEL = "timing"


def configure_logging(level):
    """Sets the level by name; says which it was."""
    return _log.configure(level)
