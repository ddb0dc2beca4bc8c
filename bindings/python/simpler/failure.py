"""Errors of a run: the field's code and text first, as programs match them; then what we know beyond that."""


# Until April, and from May to July 2026.
_EARLIER = ("run_runtime", "run_prepared")


class FieldRunError(RuntimeError):
    """A run failed. `code` is the field's negative code; `report` has our own post-mortem, where there is one."""

    def __init__(self, code, lines=(), report=""):
        self.code = code
        self.lines = list(lines)
        self.report = report
        text = f"run failed with code {code}"
        # Programs look for the name that the call had in their month.
        earlier = " and ".join(f"{name} failed with code {code}" for name in _EARLIER)
        super().__init__("\n".join([text, *self.lines, *([report] if report else []), f"(the same in earlier months: {earlier})"]))


class WorkerStateError(RuntimeError):
    """A call that the worker cannot do now: before init(), or after close()."""


class DeadHandleError(WorkerStateError, KeyError):
    """A handle that was unregistered, or is of another worker. Programs know it as a KeyError, too."""
