"""The programs in the documentation run."""

import re
from pathlib import Path

import pytest

PAGES = [Path(__file__).resolve().parents[3] / "docs" / name for name in ("how-to/python.md", "how-to/pto-wsp.md")]
PROGRAMS = re.findall(
    r"<!-- The tests run this. -->\n```python\n(.*?)```", "".join(page.read_text() for page in PAGES), re.S
)


def test_there_are_programs():
    assert len(PROGRAMS) == 5


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_runs(program, tmp_path, monkeypatch):
    # A file: programs of pto_wsp say the lines of their source.
    path = tmp_path / "page.py"
    # Programs may write files.
    monkeypatch.chdir(tmp_path)
    path.write_text(program)
    exec(compile(program, str(path), "exec"), {"__name__": "__main__"})
