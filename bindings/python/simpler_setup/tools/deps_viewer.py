"""`deps.json` for people: a text, or a page with a drawing.

python -m simpler_setup.tools.deps_viewer outputs/CASE/deps.json --format text
"""

import argparse
import html
import json
import shutil
import subprocess
import sys
from pathlib import Path


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


def page_of(text, direction, engine):
    """A page with the drawing; SystemExit where Graphviz is missing."""
    if shutil.which(engine) is None:
        raise SystemExit(f"error: the drawing needs Graphviz's {engine}: run `apt-get install graphviz`, or use --format text")
    drawn = subprocess.run([engine, "-Tsvg"], input=dot_of(text, direction), capture_output=True, text=True, check=True).stdout
    return f"<!doctype html><title>tasks</title><body>{drawn}<pre>{html.escape(text_of(text))}</pre></body>"


def main(given=None):
    """0: it is written."""
    parser = argparse.ArgumentParser(
        description="Shows which tasks wait for which.", epilog="example: python -m simpler_setup.tools.deps_viewer outputs/CASE/deps.json"
    )
    parser.add_argument("deps", help="a deps.json")
    parser.add_argument("--format", choices=("text", "html"), default="text")
    parser.add_argument("--direction", choices=("TB", "LR"), help="of the drawing")
    parser.add_argument("--engine", help="Graphviz's program for the drawing (default dot)")
    parser.add_argument("-o", "--output", help="the file to write (default deps_viewer.txt or .html beside deps.json)")
    values = parser.parse_args(given)
    for option in ("direction", "engine"):
        if values.format == "text" and getattr(values, option):
            parser.error(f"--{option} is only valid with --format html")
    source = Path(values.deps)
    suffix = "txt" if values.format == "text" else "html"
    target = Path(values.output) if values.output else source.with_name(f"deps_viewer.{suffix}")
    text = source.read_text()
    made = text_of(text) if values.format == "text" else page_of(text, values.direction or "TB", values.engine or "dot")
    target.write_text(made)
    print(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
