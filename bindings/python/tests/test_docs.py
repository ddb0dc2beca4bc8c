"""The programs in the documentation run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGES = [DOCS / name for name in ("how-to/python.md", "how-to/pto-wsp.md", "how-to/operators.md")]
PROGRAMS = re.findall(
    r"<!-- The tests run this. -->\n```python\n(.*?)```", "".join(page.read_text() for page in PAGES), re.S
)


def test_there_are_programs():
    assert len(PROGRAMS) == 6


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_runs(program, tmp_path, monkeypatch):
    # A file: programs of pto_wsp say the lines of their source.
    path = tmp_path / "page.py"
    # Programs may write files.
    monkeypatch.chdir(tmp_path)
    path.write_text(program)
    exec(compile(program, str(path), "exec"), {"__name__": "__main__"})


def is_shown(shown, printed):
    """Whether lines of a page are those of a command: `..` stands for any lines, and at the end of a line for its rest."""
    if not shown:
        return not printed
    if shown[0] == "..":
        return any(is_shown(shown[1:], printed[at:]) for at in range(len(printed) + 1))
    if not printed:
        return False
    start = shown[0].removesuffix("..")
    is_like = printed[0].startswith(start) if start != shown[0] else printed[0].rstrip() == shown[0].rstrip()
    return is_like and is_shown(shown[1:], printed[1:])


def test_a_page_that_shows_something_else_is_found():
    printed = ["one", "two", "three 3"]
    assert is_shown(["one", "..", "three .."], printed) and is_shown([".."], printed)
    assert not is_shown(["one", "three .."], printed) and not is_shown(["one", "two"], printed)
    assert not is_shown(["one", "..", "four"], printed)


@pytest.mark.parametrize("page, commands", [("python.md", 5), ("model.md", 9)])
def test_the_commands_of_a_tutorial_print_what_it_shows(page, commands, tmp_path):
    page = (DOCS / "tutorial" / page).read_text()
    command = os.environ.get("PTO_COMMAND")
    assert command, "set PTO_COMMAND to the command pto, as `cargo xtask python` does"
    programs = {"python": sys.executable, "pto": command}
    # The width of a chart would be that of the terminal.
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    count = 0
    for tag, text in re.findall(r"^```(.*?)\n(.*?)^```$", page, re.S | re.M):
        _, _, name = tag.partition(" file=")
        if name:
            (tmp_path / name).write_text(text)
        elif tag != "shell":
            for shown in re.split(r"^\$ ", text, flags=re.M)[1:]:
                line, *shown = shown.rstrip().split("\n")
                program, *arguments = line.split()
                told = subprocess.run(
                    [programs[program], *arguments],
                    cwd=tmp_path,
                    env=environment,
                    text=True,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                )
                assert told.returncode == 0, told.stdout
                assert is_shown(shown, told.stdout.rstrip().split("\n")), f"{line}\n{told.stdout}"
                count += 1
    assert count == commands
