"""The vintage of an orchestration: which months' interface its source is written against. The headers get it as flags.

The headers have most names of all months at once. The forms in this table exclude each other.
"""

import re

# What the source says, and the flag that the headers want. docs/reference/simpler-interface.md has the table of months.
_FORMS = (
    # February and March: the entry gets words.
    (r"\(\s*(?:PTO2Runtime|Runtime|void)\s*\*\s*\w+\s*,\s*uint64_t\s*\*\s*\w+\s*,\s*int\s+\w+", "-DPTO_FIELD_VINTAGE=2602"),
    # March and April: the entry gets a runtime and arguments.
    (r"\bPTO2Runtime\s*\*\s*\w+\s*,\s*const\s+ChipStorageTaskArgs\b", "-DPTO_FIELD_VINTAGE=2604"),
    # Until March: a function of the host builds the graph.
    (r"(?<!\w)Runtime\s*\*", "-DPTO_FIELD_HOST_BUILT=1"),
    # March and April: tasks first, then edges.
    (r"\bpto2_rt_add_dependency\b", "-DPTO_FIELD_EXPLICIT_EDGES=1"),
)


def flags_of(source):
    """The flags for an orchestration with this text."""
    return tuple(flag for pattern, flag in _FORMS if re.search(pattern, source))
