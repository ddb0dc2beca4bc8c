"""The handle that a worker gives for something registered."""

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True)
class CallableHandle:
    """Names something registered with a worker. Two handles of the same code have the same hashid and different numbers."""

    hashid: str
    name: str
    slot: int
    number: int

    @property
    def digest(self):
        """The hash as bytes."""
        return hashlib.sha256(self.hashid.encode()).digest()

    @property
    def _handle_id(self):
        return self.number

    def buffer_ptr(self):
        """The same, as programs of April 2026 call it."""
        return self

    @property
    def is_python(self):
        """Whether the handle is of a function of Python."""
        return self.hashid.startswith("python:")
