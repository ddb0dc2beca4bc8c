"""The nodes of workloads, made by functions instead of loops of `P`."""

from __future__ import annotations

from typing import Any, Callable, Optional

from . import tracing
from .axes import as_axis
from .loop_var import LoopVar
from .p_namespace import _sparse
from .scalar_expr import BOOL, as_expr
from .workload import Workload, empty, group


def _body(fn: Callable[[Any], Any], variable: LoopVar, order: str) -> Workload:
    """What a function gives for a loop's variable, or adds to the workload that is being built."""
    building = tracing.current()
    if building is None:
        result, added = fn(variable), []
    else:
        building.open()
        try:
            result = fn(variable)
        finally:
            added = building.close()
    if isinstance(result, Workload):
        return result
    if result is None:
        return group(added, order)
    raise TypeError(f"The body of a loop gave {type(result).__name__}, which is no workload.")


def _added(node: Workload, inner: list[Any]) -> Workload:
    building = tracing.current()
    if building is not None:
        building.add_around(node, inner)
    return node


def parallel_for(axis: Any, fn: Callable[[LoopVar], Any]) -> Workload:
    """The body for each element, in no order."""
    variable = LoopVar("i", as_axis(axis))
    body = _body(fn, variable, "combine")
    return _added(Workload("parallel_for", axis=variable.axis, var=variable, body=body), [])


def for_each(axis: Any, fn: Callable[[LoopVar], Any]) -> Workload:
    """The body for each element, one after the other."""
    variable = LoopVar("i", as_axis(axis))
    body = _body(fn, variable, "sequential")
    return _added(Workload("for_each", axis=variable.axis, var=variable, body=body), [])


def select(sparse: Any, fn: Callable[[LoopVar], Any]) -> Workload:
    """The body for each element of a sparse axis or of a list of indices, in no order."""
    variable = LoopVar("e", _sparse(sparse))
    body = _body(fn, variable, "combine")
    return _added(Workload("select", axis=variable.axis, var=variable, body=body), [])


def _workload(value: Any, what: str) -> Workload:
    if not isinstance(value, Workload):
        raise TypeError(f"{what} is {type(value).__name__} and must be a workload.")
    return value


def cond(predicate: Any, then: Workload, otherwise: Optional[Workload] = None) -> Workload:
    """One of two, by a predicate that is evaluated when it is reached."""
    predicate = as_expr(predicate)
    if predicate.type != BOOL:
        raise TypeError(f"cond needs a truth value, not {predicate.type}. Compare it with a number.")
    otherwise = empty() if otherwise is None else otherwise
    inner = [_workload(then, "The first branch"), _workload(otherwise, "The second branch")]
    return _added(Workload("cond", predicate=predicate, then=then, otherwise=otherwise), inner)


def task(kernel: Any, params: Any, resources: Any) -> Workload:
    """A call of a kernel: its axes, and its arguments by name."""
    from .kernel import Kernel

    if isinstance(kernel, Kernel) and not isinstance(resources, dict):
        raise TypeError(
            f"task({kernel.name}, ..): the arguments of a @kernel are a dict by name, not {type(resources).__name__}."
        )
    return _added(Workload("task", kernel=kernel, params=list(params), resources=resources), [])


def combine(*workloads: Workload) -> Workload:
    """All of them, in no order."""
    inner = [_workload(one, "An argument of combine") for one in workloads]
    return _added(Workload("combine", workloads=inner), inner)


def sequential(*workloads: Workload) -> Workload:
    """One after the other."""
    inner = [_workload(one, "An argument of sequential") for one in workloads]
    return _added(Workload("sequential", workloads=inner), inner)


def slot_set_u64(slot: int, value: Any) -> Workload:
    """One of 256 slots gets a value."""
    return _added(Workload("slot_set", slot=slot, value=as_expr(value)), [])


def slot_load_u64(slot: int, tensor: Any, row: Any = 0, col: Any = 0) -> Workload:
    """A slot gets an element of a tensor, after the tasks before it."""
    node = Workload("slot_load", slot=slot, tensor=tensor, row=as_expr(row), col=as_expr(col))
    return _added(node, [])
