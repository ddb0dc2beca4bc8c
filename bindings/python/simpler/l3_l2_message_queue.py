"""The name of July 2026 for `simpler.worker_chip_message_queue`."""

from .worker_chip_message_queue import WorkerChipQueueOpcode as L3L2QueueOpcode

__all__ = ["L3L2QueueOpcode"]
