"""What a `deps.json` says: its tasks and which waits for which, as a text or for Graphviz."""

import json


def _name(raw):
    number = int(raw)
    return f"r{number >> 32 & 0xFF}t{number & 0xFFFFFFFF}"


def _kernels(task):
    used = [f"{kind}={number}" for kind, number in zip(("aic", "aiv0", "aiv1"), task["kernel_ids"]) if number >= 0]
    return " ".join(used) or "no kernel"


def _pairs(deps):
    """Why a task waits for another one, by pair."""
    pairs = {}
    for edge in deps["edges"]:
        pairs.setdefault((int(edge["pred"]), int(edge["succ"])), set()).add(edge["source"])
    return pairs


def text_of(text):
    """The content of a `deps.json` as a text."""
    deps = json.loads(text)
    pairs = _pairs(deps)
    lines = ["SUMMARY", f"  tasks {len(deps['tasks'])}, tensors {len(deps['tensors'])}, pairs of tasks with an edge {len(pairs)}", ""]
    lines.append("TASK INDEX")
    for task in deps["tasks"]:
        number = int(task["task_id"])
        lines.append(f"  {_name(number)}  {_kernels(task)}  blocks {task['block_num']}  {task['scope']}  {task.get('place', '')}".rstrip())
        waits = [f"{_name(one)} ({', '.join(sorted(why))})" for (one, other), why in pairs.items() if other == number]
        if waits:
            lines.append(f"    waits for {', '.join(waits)}")
    return "\n".join(lines) + "\n"


def dot_of(text, direction="TB"):
    """The content of a `deps.json` for Graphviz."""
    deps = json.loads(text)
    nodes = [f'"{_name(task["task_id"])}" [label="{_name(task["task_id"])}\\n{_kernels(task)}"];' for task in deps["tasks"]]
    edges = [f'"{_name(one)}" -> "{_name(other)}" [label="{", ".join(sorted(why))}"];' for (one, other), why in _pairs(deps).items()]
    return "\n".join([f"digraph tasks {{ rankdir={direction}; node [shape=box];", *nodes, *edges, "}"])
