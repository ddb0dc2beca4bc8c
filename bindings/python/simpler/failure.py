"""Errors of a run: the field's code and text first, as programs match them; then what we know beyond that."""


class FieldRunError(RuntimeError):
    """A run failed. `code` is the field's negative code; `report` has our own post-mortem, where there is one."""

    def __init__(self, code, lines=(), report=""):
        self.code = code
        self.lines = list(lines)
        self.report = report
        text = f"run failed with code {code}"
        super().__init__("\n".join([text, *self.lines, *([report] if report else [])]))


class WorkerStateError(RuntimeError):
    """A call that the worker cannot do now: before init(), or after close()."""


class DeadHandleError(WorkerStateError, KeyError):
    """A handle that was unregistered, or is of another worker. Programs know it as a KeyError, too."""
