"""Workloads as modules: their nodes, and their textual form, for programs that look at them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional

from .errors import IRBridgeError
from .workload import Workload


@dataclass
class Node:
    """A node: its kind, its fields, and the nodes in it."""

    kind: str
    fields: dict[str, Any] = field(default_factory=dict)
    children: list[Node] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join(self._lines(0))

    def _lines(self, depth: int) -> list[str]:
        shown = "".join(f" {name}={value!r}" for name, value in self.fields.items())
        lines = ["  " * depth + self.kind + shown]
        for child in self.children:
            lines += child._lines(depth + 1)
        return lines


@dataclass
class WorkloadDef:
    """A workload of a module."""

    name: str
    body: Node


@dataclass
class ScheduleDef:
    """The schedule of a workload: its directives."""

    workload: str
    directives: list[str] = field(default_factory=list)


@dataclass
class Module:
    """Workloads and their schedules."""

    name: str = ""
    version: str = "1.0"
    targets: list[str] = field(default_factory=list)
    workloads: list[WorkloadDef] = field(default_factory=list)
    schedules: list[ScheduleDef] = field(default_factory=list)


class IRFactory:
    """Makes nodes."""

    def create_dense_axis(self, size: int) -> Node:
        """An axis of a fixed size."""
        return Node("dense", {"size": size})

    def create_task(self, kernel: str, params: list[str], resources: list[str]) -> Node:
        """A task."""
        return Node("task", {"kernel": kernel, "params": list(params), "resources": list(resources)})


def _node(node: Workload) -> Node:
    kind, parts = node._kind, node._kwargs
    if kind == "task":
        kernel = getattr(parts["kernel"], "name", parts["kernel"])
        resources = parts["resources"]
        names = list(resources) if isinstance(resources, dict) else [str(one) for one in resources or ()]
        return Node(kind, {"kernel": kernel, "params": [str(p) for p in parts["params"]], "resources": names})
    shown = ("axis", "predicate", "slot", "value", "row", "col")
    fields: dict[str, Any] = {name: str(parts[name]) for name in shown if name in parts}
    for name in ("var", "channel"):
        if name in parts:
            fields[name] = parts[name].name
    children = [parts[name] for name in ("body", "then", "otherwise", "task") if isinstance(parts.get(name), Workload)]
    children += parts.get("workloads", [])
    children += [process.body for process in parts.get("processes", [])]
    return Node(kind, fields, [_node(child) for child in children])


def workload_to_ir(workload: Workload, name: Optional[str] = None) -> Module:
    """A module with one workload, and its schedule where it has one."""
    name = name or workload._name or "workload"
    module = Module(name, targets=["cpu_sim"])
    module.workloads.append(WorkloadDef(name, _node(workload)))
    directives = [f"{what} {value!r}" for what, value in workload._schedule.to_dict().items()]
    if workload._task_graph_config is not None:
        directives.append(f"task_graph {workload._task_graph_config!r}")
    if directives:
        module.schedules.append(ScheduleDef(name, directives))
    return module


def workload_to_codegen_ir(workload: Workload, name: Optional[str] = None) -> str:
    """The workload in the textual form of the crate `pto-workload`, which is what runs."""
    return workload.named(name or workload._name or "workload").compile().text


def module_to_string(module: Module) -> str:
    """A module as text."""
    lines = [f"module {module.name} version {module.version} targets {' '.join(module.targets)}"]
    for workload in module.workloads:
        lines += [f"workload {workload.name}", *(f"  {line}" for line in str(workload.body).splitlines())]
    for schedule in module.schedules:
        lines += [f"schedule {schedule.workload}", *(f"  {line}" for line in schedule.directives)]
    return "\n".join(lines) + "\n"


def parse_ir_string(text: str) -> Module:
    """A module with a workload in the textual form of the crate `pto-workload`."""
    from pto_runtime import _native

    try:
        checked = _native.CheckedWorkload(text)
    except ValueError as error:
        raise IRBridgeError(f"The text is no workload: {error}") from None
    name = checked.text.split()[1]
    return Module(name, workloads=[WorkloadDef(name, Node("text", {"text": checked.text}))])
