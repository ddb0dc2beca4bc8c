"""The vintage of an orchestration: which months' interface its source is written against. The headers get it as flags.

The headers have most names of all months at once, and names.tsv has them with their dates. The forms here exclude each other.
docs/reference/simpler-interface.md has the table of months.
"""

import functools
import re
from dataclasses import dataclass
from pathlib import Path

# What the first parameters of an entry are, and which form of arguments that is (pto_field_entry.h). Where none is found, they are arguments.
_FRONT = r"\(\s*(?:(?P<runtime>PTO2Runtime|Runtime|void)\s*\*\s*\w+\s*,\s*)?(?:const\s+)?"
_ENTRIES = (
    (re.compile(_FRONT + r"uint64_t\s*\*\s*\w+\s*,\s*int\s+\w+"), "-DPTO_FIELD_ENTRY=1"),
    (re.compile(_FRONT + r"(?:OrchArg|TaskArg)\s*\*\s*\w+"), "-DPTO_FIELD_ENTRY=2"),
)
_ARGUMENTS = re.compile(_FRONT + r"(?:ChipStorageTaskArgs|ChipTaskArgs|L2TaskArgs)\b")
# Until March: a function of the host builds the graph.
_HOST_BUILT = re.compile(r"(?<!\w)Runtime\s*\*")
# Until March: tensors are values, and a task's first writer gives them memory. The last days have TensorCreateInfo instead.
_VALUES = re.compile(r"\bmake_tensor\s*\(|\bPTOParam\b")
_MADE = re.compile(r"\bTensorCreateInfo\b|\bTaskOutputTensors\b")
# February and March: a program of the AICPU finds the words in the runtime.
_WORDS_IN_RUNTIME = re.compile(r"->\s*orch_argc\b")
# Until 12 July an error of an endpoint or a queue named its operation by a text, and a queue had no window.
_OPERATIONS, _OPERATION_TEXT = re.compile(r"\bL3L2\w*Error\b"), re.compile(r"\bl3_l2_\w+_op_to_string\b")
# March and April: tasks first, then edges.
_EDGES = re.compile(r"\bpto2_rt_add_dependency\b")


def flags_of(source):
    """The flags for an orchestration with this text."""
    flags = []
    if _HOST_BUILT.search(source):
        flags.append("-DPTO_FIELD_HOST_BUILT=1")
    elif _VALUES.search(source) and not _MADE.search(source):
        flags.append("-DPTO_FIELD_STREAMS=1")
    if _EDGES.search(source):
        flags.append("-DPTO_FIELD_EXPLICIT_EDGES=1")
    if _OPERATIONS.search(source) and not _OPERATION_TEXT.search(source):
        flags.append("-DPTO_FIELD_EARLY_JULY=1")
    with_arguments = list(_ARGUMENTS.finditer(source))
    entries = with_arguments
    if _WORDS_IN_RUNTIME.search(source):
        flags.append("-DPTO_FIELD_ENTRY=1")
    elif not with_arguments:
        for form, flag in _ENTRIES:
            if entries := list(form.finditer(source)):
                flags.append(flag)
                break
    if any(entry["runtime"] in ("PTO2Runtime", "void") for entry in entries):
        flags.append("-DPTO_FIELD_RUNTIME_FIRST=1")
    return tuple(flags)


@dataclass(frozen=True)
class DatedName:
    """A name, from when until when programs used it (None: no limit), and what it is called today."""

    kind: str
    name: str
    first: str
    last: str
    today: str


@functools.lru_cache(maxsize=1)
def names():
    """All rows of names.tsv."""
    lines = (Path(__file__).parent / "names.tsv").read_text().splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")][1:]
    return tuple(DatedName(kind, name, *(None if date == "-" else date for date in dates), today) for kind, name, *dates, today in rows)


def renamed(source):
    """What a C++ source uses under a name that is not today's: pairs of the row and a text about it."""
    found = [row for row in names() if row.kind == "cxx" and row.last and re.search(rf"\b{row.name}\b", source)]
    return [f"{row.name} is of {row.first} to {row.last}; today: {row.today}" for row in found]
