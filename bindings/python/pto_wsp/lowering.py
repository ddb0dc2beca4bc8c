"""A workload in the textual form of the crate `pto-workload`, which checks and runs it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any, Optional

from .axes import Dense, DenseDyn, Ragged, Sparse
from .errors import CompileError
from .expressions import Names
from .foreign import CppSource, axis_parameter, placeholder
from .kernel import Kernel
from .loop_var import LoopVar
from .scalar_expr import ScalarExpr, Symbol, as_expr
from .schedule_text import schedule_text
from .types import DType, Tensor
from .tree import Node


@dataclass
class Lowered:
    """The text, and what a run has to bind."""

    text: str = ""
    #: Tensors by name.
    tensors: dict[str, Tensor] = field(default_factory=dict)
    #: Dynamic axes: name of the size, and its default.
    sizes: dict[str, int] = field(default_factory=dict)
    #: Symbols by name, with the type that the program takes them for: u64 or f32.
    symbols: dict[str, str] = field(default_factory=dict)
    #: Ragged and sparse axes, by id.
    axes: dict[int, Any] = field(default_factory=dict)
    #: Kernels with bodies in C++, by name: the function, and its source.
    foreign: dict[str, tuple[str, CppSource]] = field(default_factory=dict)
    #: How many axes their tasks have, where a device runs them: their last parameters.
    foreign_axes: dict[str, int] = field(default_factory=dict)
    #: Kernels by identity and constants: their names.
    kernels: dict[tuple, str] = field(default_factory=dict)
    #: The kernel of each task, by the identity of its node.
    kernel_of: dict[int, str] = field(default_factory=dict)
    #: In the same order, kernels and their textual forms.
    kernel_texts: list[tuple[Kernel, str]] = field(default_factory=list)
    #: Where each kernel is called.
    lines: dict[str, list[str]] = field(default_factory=dict)


def plain(name: str, fallback: str = "x") -> str:
    """A name of letters, digits and underscores."""
    name = re.sub(r"\W", "_", name, flags=re.ASCII)[:40] or fallback
    return name if not name[0].isdigit() else f"_{name[:39]}"


def unique(name: str, taken: Any) -> str:
    """A name that is not taken."""
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    return found


class Lowering:
    """Goes through a workload and writes its text."""

    def __init__(self, root: Node, target: str = "cpu_sim") -> None:
        self.root, self.target = root, target
        self.result = Lowered()
        self.kernels: dict[tuple, tuple[str, str]] = {}
        self.tensors: dict[int, str] = {}
        self.channels: dict[int, tuple[str, Any]] = {}
        self.names = Names(self.result)
        self.place: list[str] = []

    def error(self, message: str, node: Optional[Node] = None) -> CompileError:
        """An error at a node."""
        line = f"{node._line}: " if node is not None and node._line else ""
        where = "".join(f", {part}" for part in self.place)
        name = self.root._name or "workload"
        return CompileError(f"{line}Workload {name}{where}: {message}")

    def lowered(self) -> Lowered:
        """The text of the whole workload."""
        body = self.node(self.root, 1)
        schedule = schedule_text(self.root, self.names, self.target)
        lines = [f"workload {plain(self.root._name or 'workload')} {{", f"  {schedule}"]
        for name, tensor in self.result.tensors.items():
            extents = ", ".join(str(int(extent)) for extent in tensor.shape)
            lines.append(f"  tensor {name} : {tensor.dtype.value}[{extents}]")
        for name, channel in self.channels.values():
            lines.append(f"  channel {name} depth {channel.depth}")
        lines += [text for _, text in self.kernels.values()]
        lines += [f"  do {body}", "}"]
        self.result.text = "\n".join(lines) + "\n"
        return self.result

    def block(self, nodes: list[Node], depth: int) -> str:
        """Nodes in braces."""
        inner = "  " * (depth + 1)
        lines = [inner + self.node(node, depth + 1) for node in nodes]
        return "{\n" + "\n".join(lines) + "\n" + "  " * depth + "}"

    def node(self, node: Node, depth: int) -> str:
        """A node."""
        found = getattr(self, f"_{node._kind}", None)
        if found is None:
            raise self.error(f"There is no node of kind {node._kind!r}.", node)
        return found(node, depth)

    def _empty(self, node: Node, depth: int) -> str:
        return "empty"

    def _combine(self, node: Node, depth: int) -> str:
        return "combine " + self.block(node._kwargs["workloads"], depth)

    def _sequential(self, node: Node, depth: int) -> str:
        return "sequential " + self.block(node._kwargs["workloads"], depth)

    def _parallel_for(self, node: Node, depth: int) -> str:
        return self.loop("parallel", node, depth)

    def _for_each(self, node: Node, depth: int) -> str:
        return self.loop("each", node, depth)

    def _select(self, node: Node, depth: int) -> str:
        return self.loop("select", node, depth)

    def loop(self, keyword: str, node: Node, depth: int) -> str:
        """A loop."""
        variable: LoopVar = node._kwargs["var"]
        with self.names.around(variable) as name:
            self.place.append(f"loop {name}")
            axis = self.axis(variable)
            body = self.block([node._kwargs["body"]], depth)
            self.place.pop()
            places = self.names.places(variable)
            return f"{keyword} {name}{places} in {axis} {body}"

    def axis(self, variable: LoopVar) -> str:
        """The axis of a loop."""
        axis = variable.axis
        if isinstance(axis, Dense):
            return f"dense {axis.size}"
        if isinstance(axis, DenseDyn):
            name = plain(variable.name)
            self.result.sizes.setdefault(name, axis.size)
            return f"dyn {name} default {axis.size}"
        assert isinstance(axis, (Ragged, Sparse))
        self.result.axes[id(axis)] = axis
        names = ("outer", "lengths") if isinstance(axis, Ragged) else ("outer", "indptr", "indices")
        kind = "ragged" if isinstance(axis, Ragged) else "sparse"
        return f"{kind}({', '.join(f'{name}_{id(axis)}' for name in names)})"

    def _cond(self, node: Node, depth: int) -> str:
        predicate = self.expression(node._kwargs["predicate"], node)
        then = self.block([node._kwargs["then"]], depth)
        return f"if {predicate} {then} else " + self.block([node._kwargs["otherwise"]], depth)

    def expression(self, expr: Any, node: Node) -> str:
        """An expression at a node."""
        try:
            return self.names.text(as_expr(expr))
        except (TypeError, LookupError) as error:
            raise self.error(str(error), node) from None

    def _slot_set(self, node: Node, depth: int) -> str:
        return f"slot {node._kwargs['slot']} = {self.expression(node._kwargs['value'], node)}"

    def _slot_load(self, node: Node, depth: int) -> str:
        row, col = (self.expression(node._kwargs[name], node) for name in ("row", "col"))
        tensor = node._kwargs["tensor"]
        if not isinstance(tensor, Tensor):
            raise self.error(f"slot_load_u64 needs a tensor, not {type(tensor).__name__}.", node)
        return f"slot {node._kwargs['slot']} from {self.view(tensor, 'slot', node)} at ({row}, {col})"

    def _task(self, node: Node, depth: int) -> str:
        kernel = node._kwargs["kernel"]
        if not isinstance(kernel, Kernel):
            raise self.error(f"The task names the kernel {kernel!r} as text. Give the @kernel function.", node)
        self.place.append(f"kernel {kernel.name}")
        arguments, constants = self.arguments(kernel, node)
        name = self.kernel(kernel, constants, node)
        self.result.kernel_of[id(node)] = name
        if node._line is not None and node._line not in self.result.lines.setdefault(name, []):
            self.result.lines[name].append(node._line)
        axes = [self.expression(axis, node) for axis in node._kwargs["params"]]
        if name in self.result.foreign_axes:
            expected = self.result.foreign_axes[name]
            if expected != len(axes):
                raise self.error(f"A kernel in C++ has the same number of axes in each call: {expected} before, {len(axes)} here.", node)
            more = [f"{axis_parameter(number)} = {axis}" for number, axis in enumerate(axes)]
            arguments = ", ".join([*([arguments] if arguments else []), *more])
        self.place.pop()
        return f"{name}[{', '.join(axes)}]({arguments})"

    def kernel(self, kernel: Kernel, constants: dict[str, Any], node: Node) -> str:
        """The name of a kernel, which is added where it is new."""
        key = (id(kernel), tuple(sorted(constants.items())))
        if key not in self.kernels:
            name = unique(plain(kernel.name), {name for name, _ in self.kernels.values()})
            if kernel.cpp is not None:
                axes = len(node._kwargs["params"]) if self.target == "a2a3sim" else 0
                text = placeholder(name, kernel.params, axes)
                self.result.foreign[name] = (kernel.name, kernel.cpp)
                if self.target == "a2a3sim":
                    self.result.foreign_axes[name] = axes
            else:
                text = kernel.compiled(constants).text
                text = re.sub(r"^kernel \w+\(", f"kernel {name}(", text, count=1)
            self.result.kernels[key] = name
            self.result.kernel_texts.append((kernel, text))
            self.kernels[key] = (name, "".join(f"  {line}\n" for line in text.splitlines()).rstrip("\n"))
        return self.kernels[key][0]

    def arguments(self, kernel: Kernel, node: Node) -> tuple[str, dict[str, Any]]:
        """The arguments of a call as text, and the constants among them."""
        given = node._kwargs["resources"]
        extra = [name for name in given if all(name != param.name for param in kernel.params)]
        if extra:
            raise self.error(f"The kernel has no parameter {extra[0]}.", node)
        texts, constants = [], {}
        for param in kernel.params:
            self.place.append(f"argument {param.name}")
            if param.name not in given and param.name not in kernel.defaults:
                raise self.error("It is missing.", node)
            value = given.get(param.name, kernel.defaults.get(param.name))
            if param.direction == "constexpr" or param.type is int:
                constants[param.name] = self.constant(value, node)
            elif param.scalar is not None:
                texts.append(f"{param.name} = {self.scalar(value, param.scalar, node)}")
            else:
                texts.append(f"{param.name} = {self.tensor(value, param.name, node)}")
                self.check_whole(kernel, param.name, value, node)
            self.place.pop()
        return ", ".join(texts), constants

    def check_whole(self, kernel: Kernel, name: str, view: Tensor, node: Node) -> None:
        """Some instructions need whole tiles."""
        if kernel.is_ptoisa and any(view._ranges) and name in kernel.compiled({}).whole:
            raise self.error("store_topk_indices_i32 needs a whole tile, and a slice may be partial. Index it.", node)

    def constant(self, value: Any, node: Node) -> Any:
        """The value of a `Constexpr`."""
        if isinstance(value, (bool, int, float, str, DType, tuple)):
            return value
        raise self.error(f"A constant is a number or a text, not {type(value).__name__}.", node)

    def tensor(self, value: Any, name: str, node: Node) -> str:
        """A view, for a parameter with this name."""
        if not isinstance(value, Tensor):
            raise self.error(f"A tile is needed, and {value!r} is no Tensor.", node)
        return self.view(value, name, node)

    def view(self, view: Tensor, name: str, node: Node) -> str:
        """A view of a tensor."""
        root = view._root()
        if id(root) not in self.tensors:
            self.tensors[id(root)] = unique(plain(name), self.result.tensors)
            self.result.tensors[self.tensors[id(root)]] = root
            if not all(hasattr(extent, "__index__") for extent in root.shape):
                raise self.error(f"The shape {root.shape} has extents that are no integers.", node)
        indices = [self.expression(index, node) for index in view.index_exprs]
        first = len(view.index_exprs)
        for number, part in enumerate(view._ranges):
            start, length = part if part is not None else (0, root.shape[first + number])
            indices.append(f"{self.expression(start, node)} for {self.expression(length, node)}")
        return self.tensors[id(root)] + (f"[{', '.join(indices)}]" if indices else "")

    def scalar(self, value: Any, dtype: DType, node: Node) -> str:
        """A scalar argument."""
        if isinstance(value, Symbol):
            self.names.symbol(value.name, "f32" if dtype.is_float else "u64")
            return f"number(symbol {value.name})" if dtype.is_float else f"symbol({value.name})"
        if isinstance(value, ScalarExpr):
            return self.expression(value, node)
        value = value.item() if hasattr(value, "item") else value
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.error(f"A scalar {dtype.value} is needed, and {value!r} is no number, Symbol or expression.", node)
        if dtype.is_float:
            return f"number({float(value)!r})" if math.isfinite(value) else f"number(bits {_bits(value)})"
        return self.expression(self.integer(value, dtype, node), node)

    def integer(self, value: Any, dtype: DType, node: Node) -> int:
        """A number that an integer type has."""
        width = 8 * dtype.nbytes
        low, high = (0, 2**width) if dtype.value[0] == "u" else (-(2 ** (width - 1)), 2 ** (width - 1))
        if value != int(value) or not low <= value < high:
            raise self.error(f"{value!r} is no {dtype.value}.", node)
        return int(value)

    def channel(self, channel: Any, node: Node) -> str:
        """The name of a channel."""
        if id(channel) not in self.channels:
            raise self.error(f"The channel {channel.name} is not among those that are connected.", node)
        return self.channels[id(channel)][0]

    def _send(self, node: Node, depth: int) -> str:
        return f"send {self.channel(node._kwargs['channel'], node)} {self._task(node._kwargs['task'], depth)}"

    def _consume(self, node: Node, depth: int) -> str:
        channel = self.channel(node._kwargs["channel"], node)
        with self.names.around(node._kwargs["var"]) as name:
            return f"consume {channel} as {name} " + self.block([node._kwargs["body"]], depth)

    def _connect(self, node: Node, depth: int) -> str:
        for channel in node._kwargs["channels"]:
            if id(channel) not in self.channels:
                taken = {name for name, _ in self.channels.values()}
                self.channels[id(channel)] = (unique(plain(channel.name), taken), channel)
        inner, lines, taken = "  " * (depth + 1), [], set()
        for process in node._kwargs["processes"]:
            name = unique(plain(process.name), taken)
            taken.add(name)
            self.place.append(f"process {name}")
            ends = f" on {process.rank}" if process.rank else ""
            for keyword, channels in (("consumes", process.consumes), ("produces", process.produces)):
                if channels:
                    ends += f" {keyword} " + ", ".join(self.channel(one, node) for one in channels)
            lines.append(f"{inner}process {name}{ends} " + self.block([process.body], depth + 1))
            self.place.pop()
        return "pipeline {\n" + "\n".join(lines) + "\n" + "  " * depth + "}"


def _bits(value: float) -> int:
    import struct

    return struct.unpack("<Q", struct.pack("<d", value))[0]


def lowered(root: Node, target: str = "cpu_sim") -> Lowered:
    """The text of a workload for a target, and what a run has to bind."""
    return Lowering(root, target).lowered()
