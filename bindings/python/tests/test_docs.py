"""The programs in the documentation run."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs" / "python.md"
PROGRAMS = re.findall(r"<!-- The tests run this. -->\n```python\n(.*?)```", PAGE.read_text(), re.S)


def test_there_are_programs():
    assert len(PROGRAMS) == 2


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_runs(program):
    exec(compile(program, str(PAGE), "exec"), {"__name__": "__main__"})
