"""The workload that is being built: `@workload` opens it, and what its function calls adds nodes."""

from __future__ import annotations

import threading
from typing import Any, Callable, Optional


class Building:
    """A workload that is being built: blocks inside of blocks, the innermost last."""

    def __init__(self, checker: Any, node: Callable[..., Any]) -> None:
        self.blocks: list[list[Any]] = [[]]
        #: What `P.otherwise` completes: the block, and the node of the `P.when` before it.
        self.last_when: Optional[tuple[list[Any], Any]] = None
        self.checker = checker
        #: Makes a node of the tree, for the nodes below it.
        self.node = node
        self._names = 0

    def next_name(self) -> str:
        """The default name of the next variable of `P`."""
        names = "bhsdijklmn"
        name = names[self._names % len(names)]
        self._names += 1
        return name

    def add(self, node: Any) -> Any:
        """Adds a node to the innermost block."""
        self.last_when = None
        self.blocks[-1].append(node)
        return node

    def add_around(self, node: Any, inner: list[Any]) -> Any:
        """Adds a node in place of those of the block that stand in it now."""
        block = self.blocks[-1]
        block[:] = [other for other in block if not any(other is one for one in inner)]
        return self.add(node)

    def open(self) -> None:
        """Begins a block."""
        self.blocks.append([])
        self.last_when = None

    def close(self) -> list[Any]:
        """Ends a block; its nodes."""
        self.last_when = None
        return self.blocks.pop()


class _Stack(threading.local):
    def __init__(self) -> None:
        self.building: list[Building] = []


_stack = _Stack()


def current() -> Optional[Building]:
    """The workload that is being built on this thread, if there is one."""
    return _stack.building[-1] if _stack.building else None


def needed(what: str) -> Building:
    """As `current`, where there must be one."""
    found = current()
    if found is None:
        raise RuntimeError(f"{what} stands outside of a @workload function. Move it into one.")
    return found


def begin(building: Building) -> None:
    """Begins to build a workload."""
    _stack.building.append(building)


def end() -> None:
    """Ends it."""
    _stack.building.pop()
