"""The tree of a workload as C++: loops that make a task at a time, for the AICPU."""

from __future__ import annotations

import json
import math
from typing import Any, Optional

from .axes import Dense, DenseDyn, Ragged
from .emit_kernels import C_TYPES, c_name, offsets
from .expressions import Names
from .loop_var import LoopVar
from .lowering import Lowered, plain
from .scalar_expr import ScalarExpr, Symbol, TaskView, as_expr
from .types import Tensor
from .tree import Node

#: What a token takes on its way; 0 where a program does not say.
_LATENCY = "__pto_wsp_channel_latency_cycles"
_INTEGERS = {"i64": "int64_t", "u64": "uint64_t", "bool": "bool"}


class CNames(Names):
    """Expressions as C++."""

    def __init__(self, result: Any, symbols: list[str]) -> None:
        super().__init__(result)
        self.symbols = symbols

    def plain(self, name: str) -> str:
        return c_name(name)

    def literal(self, value: Any, type: str) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        if value == -(2**63):
            return "INT64_MIN"
        return f"UINT64_C({value})" if type == "u64" else f"INT64_C({value})"

    def symbol_text(self, name: str) -> str:
        if name not in self.symbols:
            self.symbols.append(name)
        return f"plan->symbols[{self.symbols.index(name)}]"

    def slot_text(self, slot: int, type: str) -> str:
        return f"{_INTEGERS[type]}(plan->slots_u64[{slot}])"

    def param_text(self, number: int) -> str:
        return f"int64_t(task->args[{number}])"

    def cast_text(self, type: str, value: str) -> str:
        return f"{_INTEGERS[type]}({value})"

    def pair_text(self, expr: ScalarExpr, parts: list[str]) -> str:
        left, right = parts
        if expr.op in ("/", "%"):
            remainder = "true" if expr.op == "%" else "false"
            return f"pto_wsp_divided<{_INTEGERS[expr.type]}>(plan, {left}, {right}, {remainder})"
        if expr.op in ("<<", ">>"):
            return f"({left} {expr.op} ({right} & 63))"
        if expr.op not in ("&&", "||") and expr.args[0].type != expr.args[1].type:
            left, right = f"uint64_t({left})", f"uint64_t({right})"
        return f"({left} {expr.op} {right})"


class Expander:
    """Writes the statements of a tree."""

    def __init__(self, root: Node, lowered: Lowered) -> None:
        self.root = root
        self.lowered = lowered
        self.symbols: list[str] = []
        self.arrays: list[str] = []
        self.names = CNames(Lowered(), self.symbols)
        self.tensors = {id(tensor): number for number, tensor in enumerate(lowered.tensors.values())}
        #: Of each kernel and parameter, where its tiles begin.
        self.offsets = {
            name: offsets(kernel.params, None if kernel.cpp is not None else text)
            for (kernel, text), name in zip(lowered.kernel_texts, lowered.kernels.values())
        }
        self.lines: list[str] = []
        self.depth = 1
        #: Where a process is written: its members, which hold what its loops have reached, and the places where it goes on.
        self.members: Optional[list[str]] = None
        self.places = 0
        #: The channels of a pipeline, the processes as types, and what each may send to.
        self.channels: list[Any] = []
        self.types: list[str] = []
        self.processes: list[str] = []
        self.sends: set[int] = set()

    def say(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)

    def inside(self, head: str, *nodes: Node) -> None:
        """Nodes in braces."""
        self.say(f"{head}{{")
        self.depth += 1
        for node in nodes:
            self.node(node)
        self.depth -= 1
        self.say("}")

    def node(self, node: Node) -> None:
        """A node."""
        parts, kind = node._kwargs, node._kind
        if kind == "empty":
            return
        if kind == "connect":
            self.pipeline(parts)
        elif kind == "send":
            self.send(parts)
        elif kind == "consume":
            self.consume(parts)
        elif kind in ("combine", "sequential"):
            self.inside("", *parts["workloads"])
        elif kind == "cond":
            self.inside(f"if ({self.names.text(parts['predicate'])}) ", parts["then"])
            if parts["otherwise"]._kind != "empty":
                self.inside("else ", parts["otherwise"])
        elif kind == "task":
            self.task(node)
        elif kind == "slot_set":
            self.say(f"plan->slots_u64[{parts['slot']}] = uint64_t({self.names.text(parts['value'])});")
        elif kind == "slot_load":
            self.slot_load(parts)
        else:
            self.loop(parts["var"], parts["body"])

    def loop(self, variable: LoopVar, body: Node) -> None:
        """A loop, in program order."""
        axis = variable.axis
        with self.names.around(variable) as name:
            if isinstance(axis, (Dense, DenseDyn)):
                size = f"INT64_C({axis.size})"
                if isinstance(axis, DenseDyn):
                    size = f"int64_t({self.names.symbol_text(plain(variable.name))})"
                self.inside(f"for ({self.variable(name)} = 0; {name} < {size}; ++{name}) ", body)
                return
            places = self.names.places(variable).strip(" ()").split(", ")
            row, place = places if len(places) == 2 else (f"{name}_r", f"{name}_p")
            self.rows((name, row, place), axis, body)

    def variable(self, name: str) -> str:
        """A variable, where it gets its first value: of a process it is a member, which keeps it between the turns."""
        if self.members is None:
            return f"int64_t {name}"
        if name not in self.members:
            self.members.append(name)
        return name

    def rows(self, names: tuple[str, str, str], axis: Any, body: Node) -> None:
        """A loop over rows of different lengths."""
        name, row, place = names
        outer = f"int64_t({self.names.symbol_text(f'outer_{id(axis)}')})"
        head = f"for ({self.variable(row)} = 0; {row} < {outer}; ++{row}) "
        if isinstance(axis, Ragged):
            self.say(f"{{ {self.variable(name)} = 0;")
            length = f"{self.array(f'lengths_{id(axis)}')}[{row}]"
            self.inside(f"{head}for ({self.variable(place)} = 0; {place} < {length}; ++{place}, ++{name}) ", body)
            self.say("}")
            return
        indptr, indices = (self.array(f"{part}_{id(axis)}") for part in ("indptr", "indices"))
        self.say(f"{head}for ({self.variable(place)} = {indptr}[{row}]; {place} < {indptr}[{row} + 1]; ++{place}) {{")
        self.inside(f"{self.variable(name)} = {indices}[{place}]; ", body)
        self.say("}")

    def array(self, name: str) -> str:
        """An array of an axis."""
        if name not in self.arrays:
            self.arrays.append(name)
        return f"plan->arrays[{self.arrays.index(name)}]"

    def view(self, view: Tensor, shape: tuple[int, int]) -> str:
        """A view of a tensor."""
        root = view._root()
        indices = [f"{{{self.names.text(as_expr(index))}, 1, false}}" for index in view.index_exprs]
        for number, part in enumerate(view._ranges):
            start, length = part if part is not None else (0, root.shape[len(view.index_exprs) + number])
            texts = (f"int64_t({self.names.text(as_expr(one))})" for one in (start, length))
            indices.append(f"{{{', '.join(texts)}, true}}")
        inner = ", ".join(indices)
        return f"pto_wsp_view(plan, {self.tensors[id(root)]}, {len(root.shape)}, {shape[0]}, {shape[1]}, {{{inner}}})"

    def slot_load(self, parts: dict[str, Any]) -> None:
        """A slot gets an element, after the tasks before it."""
        tensor = parts["tensor"]
        of, row, col = C_TYPES[tensor.dtype.value], *(self.names.text(parts[name]) for name in ("row", "col"))
        self.say("plan->drain(plan->context);")
        self.say(
            f"plan->slots_u64[{parts['slot']}] = pto_wsp_element<{of}>(plan, {self.tensors[id(tensor._root())]}, "
            f"{len(tensor._root().shape)}, {self.view(tensor, (2, 2))}, {row}, {col});"
        )

    def pipeline(self, parts: dict[str, Any]) -> None:
        """Processes, each as a type with a function that goes on where it stopped, and what runs them in turn."""
        self.channels = parts["channels"]
        names = [f"Process_{number}" for number in range(len(parts["processes"]))]
        self.processes = [process.name for process in parts["processes"]]
        for name, process in zip(names, parts["processes"]):
            self.types += self.process(name, process)
        latency = self.names.symbol_text(_LATENCY)
        self.say(f"const uint64_t latency = {latency};")
        depths = ", ".join(f"{{{channel.depth}, latency}}" for channel in self.channels)
        self.say(f"std::vector<PtoWspChannel> channels = {{{depths}}};")
        for number, name in enumerate(names):
            self.say(f"{name} process_{number};")
        pointers = ", ".join(f"&process_{number}" for number in range(len(names)))
        self.say(f"return pto_wsp_run_pipeline(plan, {{{pointers}}}, channels);")

    def process(self, name: str, process: Any) -> list[str]:
        """The type of a process."""
        lines, depth = self.lines, self.depth
        self.lines, self.depth, self.members, self.places, self.sends = [], 3, [], 0, set()
        self.node(process.body)
        body, members = self.lines, self.members
        self.lines, self.depth, self.members = lines, depth, None
        sends = sum(1 << channel for channel in self.sends)
        return [
            f"// The process {json.dumps(process.name)}.",
            f"struct {name} : PtoWspProcess {{",
            "  uint32_t at = 0;",
            *(f"  int64_t {member} = 0;" for member in members),
            f"  {name}() {{ PtoWspProcess::sends = {sends}; }}",
            "  int go_on(PtoWspPlan* plan, PtoWspTurn* turn) override {",
            "    switch (at) {",
            "      case 0:;",
            *body,
            "    }",
            "    turn->what = PtoWspTurn::DONE;",
            "    return plan->fault;",
            "  }",
            "};",
            "",
        ]

    def turn(self, what: str, channel: Any = None) -> None:
        """A process does something in its turn, and goes on from here in the next one."""
        self.places += 1
        if channel is not None:
            number = next(number for number, one in enumerate(self.channels) if one is channel)
            self.say(f"turn->channel = {number};")
            if what == "SEND":
                self.sends.add(number)
        self.say(f"turn->what = PtoWspTurn::{what};")
        self.say(f"at = {self.places};")
        self.say("return plan->fault;")
        self.say(f"case {self.places}:;")

    def send(self, parts: dict[str, Any]) -> None:
        """A task, and a token with its first axis."""
        self.task(parts["task"], is_sent=True)
        self.turn("SEND", parts["channel"])

    def consume(self, parts: dict[str, Any]) -> None:
        """The body for each token."""
        with self.names.around(parts["var"]) as name:
            token = self.variable(name)
            self.say("for (;;) {")
            self.depth += 1
            self.turn("TAKE", parts["channel"])
            self.say("if (turn->is_closed) break;")
            self.say(f"{token} = turn->token;")
            self.node(parts["body"])
            self.depth -= 1
            self.say("}")

    def task(self, node: Node, is_sent: bool = False) -> None:
        """A task; of a process it is a turn, or the first part of the turn in which it is sent."""
        parts, kernel = node._kwargs, node._kwargs["kernel"]
        given = {**kernel.defaults, **parts["resources"]}
        name = self.lowered.kernel_of[id(node)]
        self.say("{")
        self.depth += 1
        self.say("PtoWspTask record{};")
        self.say("PtoWspTask* task = &record;")
        self.say(f"task->kernel_id = KERNEL_{name};")
        for axis in parts["params"]:
            self.say(f"task->args[task->num_args++] = uint64_t({self.names.text(as_expr(axis))});")
        self.say("task->num_axis_args = task->num_args;")
        for param in kernel.params:
            if param.tile is not None:
                view = given[param.name]
                number, rank, size = self.tensors[id(view._root())], len(view._root().shape), view.dtype.nbytes
                offsets = ", ".join(f"{{{row}, {col}}}" for row, col in self.offsets[name].get(param.name, []))
                whole = self.view(view, param.tile.shape)
                self.say(f"pto_wsp_operand(plan, task, {number}, {rank}, {size}, {whole}, {{{offsets}}});")
        for param in kernel.params:
            if param.scalar is not None:
                self.say(f"task->args[task->num_args++] = {self.scalar(given[param.name], param.scalar.value)};")
        self.say(f"task->target_id = uint32_t({self.target()} % plan->dispatch_num_targets);")
        cycles = "plan->total_cycles" if self.members is None else "turn->cycles"
        self.say(f"if (const int fault = pto_wsp_submit(plan, task, &{cycles})) return fault;")
        if is_sent:
            self.say(f"turn->token = {'int64_t(task->args[0])' if parts['params'] else '0'};")
        self.depth -= 1
        self.say("}")
        if self.members is not None and not is_sent:
            self.turn("TASK")

    def scalar(self, value: Any, of: str) -> str:
        """The bits of a scalar argument."""
        kind, is_float = C_TYPES[of], of.startswith(("f", "bf"))
        if isinstance(value, Symbol):
            found = self.names.symbol_text(value.name)
            return f"pto_wsp_bits(pto_wsp_number<{kind}>({found}))" if is_float else f"pto_wsp_bits({kind}({found}))"
        if isinstance(value, ScalarExpr):
            return f"pto_wsp_bits({kind}({self.names.text(value)}))"
        value = value.item() if hasattr(value, "item") else value
        if is_float:
            words = {math.inf: "HUGE_VAL", -math.inf: "-HUGE_VAL"}
            number = "NAN" if math.isnan(value) else words.get(value, repr(float(value)))
            return f"pto_wsp_bits(pto_wsp::cast<{kind}>(double({number})))"
        return f"pto_wsp_bits({kind}({self.names.literal(int(value), 'u64' if of[0] == 'u' else 'i64')}))"

    def target(self) -> str:
        """What chooses the worker."""
        policy = self.root._dispatch_policy
        options = policy._kwargs if policy is not None else {}
        fn = self.root._stream_by_fn or options.get("key_fn", options.get("fn"))
        if fn is None:
            return "uint64_t(plan->next_target++)"
        return f"uint64_t({self.names.text(as_expr(fn(TaskView())), is_key=True)})"


def expand(root: Node, lowered: Lowered) -> str:
    """The source of the expander."""
    expander = Expander(root, lowered)
    expander.node(root)
    dispatch, workers, window, mode = _schedule(lowered.text)
    policies = ("round_robin", "affinity", "hash", "by", "work_steal")
    modes = ("stall", "abort", "benchmark")
    lines = [
        "// The expander: it makes a task at a time, in program order.",
        '#include "pto/wsp/codegen/abi/pipeline.hpp"' if expander.types else '#include "pto/wsp/codegen/abi/plan.hpp"',
        "",
        f"enum : uint32_t {{ {', '.join(f'KERNEL_{name}' for name in lowered.kernels.values())} }};",
        _table("pto_wsp_symbols", expander.symbols),
        _table("pto_wsp_arrays", expander.arrays),
        _table("pto_wsp_tensors", list(lowered.tensors)),
        _table("pto_wsp_processes", expander.processes),
        *(["namespace {", *expander.types, "}  // namespace", ""] if expander.types else []),
        'extern "C" void pto_wsp_plan(PtoWspPlan* plan) {',
        f"  plan->dispatch_policy = {policies.index(dispatch)};",
        f"  plan->dispatch_num_targets = {workers};",
        f"  plan->task_window_tasks = {window};",
        f"  plan->task_window_mode = {modes.index(mode)};",
        "}",
        "",
        'extern "C" int pto_wsp_expand(PtoWspPlan* plan) {',
        "  plan->next_target = 0;",
        "  plan->tasks = 0;",
        "  plan->fault = PTO_WSP_OK;",
        "  plan->waiting = 0;",
        "  plan->total_cycles = 0;",
        "  std::fill_n(plan->slots_u64, PTO_WSP_NPU_MAX_SLOTS, uint64_t(0));",
        *expander.lines,
        "  return plan->fault;",
        "}",
        "",
    ]
    return "\n".join(lines)


def _schedule(text: str) -> tuple[str, str, str, str]:
    words = text.splitlines()[1].split()
    at = words.index("workers")
    return words[1], words[at + 1], words[at + 3], words[at + 4]


def _table(name: str, entries: list[str]) -> str:
    """Names, ended by a null pointer."""
    inner = ", ".join([json.dumps(entry) for entry in entries] + ["nullptr"])
    return f'extern "C" const char* const {name}[] = {{{inner}}};'
