"""Exceptions of the package. Each message says what happened and where."""

from __future__ import annotations


class PtoError(Exception):
    """The base of all of them."""


class CompileError(PtoError):
    """A workload cannot be compiled."""


class TypeCheckError(CompileError):
    """An argument has the wrong type, shape or direction."""


class IRConversionError(CompileError):
    """A workload has no textual form."""


class IRBridgeError(Exception):
    """A module of workloads cannot be made or read."""


class ExecutionError(PtoError, RuntimeError):
    """A run ended before its end."""


class KernelError(ExecutionError):
    """A kernel cannot be built or did not run."""


class ScheduleError(PtoError):
    """A schedule asks for what the target does not do."""


class ChannelError(PtoError):
    """A channel is used wrongly."""


class ChannelClosed(ChannelError):
    """A channel is closed."""


class ChannelFull(ChannelError):
    """A channel has no room."""


class WorkloadWarning(UserWarning):
    """A workload does something that may not be meant."""
