"""The name of June and July 2026 for `simpler.worker_chip_orch_comm`."""

from .worker_chip_orch_comm import *  # noqa: F403
from .worker_chip_orch_comm import NotifyOp, WaitCmp

__all__ = ["NotifyOp", "WaitCmp"]
