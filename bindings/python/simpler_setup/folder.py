"""Runs a folder of programs: every scene test and test function that a simulator can run, each file in a process of its own.

    python -m simpler_setup.folder FOLDER [--pto-isa FOLDER] [--only WORD] [--table FILE] [--resume | --failed]

A case that crashes or takes too long ends its process; the others of its file are run in a new one. The table says of each case
whether it passed, and of each other one why not. The table is kept after every file, so that an interrupted run can go on. The
folder itself is not changed: programs run in a copy, because packages in the same folder would be imported instead of ours.
"""

import argparse
import contextlib
import json
import os
import shutil
import sys
import time
from pathlib import Path

# Imported once, here: the processes of the files are forked.
with contextlib.suppress(ImportError):
    import torch  # noqa: F401

from . import pytest_plugin  # noqa: F401
from .folder_process import Limits, run_file
from .folder_table import Table
from .scene_case import platforms_of

PLATFORMS = ("a2a3sim", "a5sim")
# Folders of programs in a checkout; elsewhere the whole folder is taken.
_PARTS = ("examples", "tests")
# What golden.py of March and April 2026 imports.
_SHARED = "golden"


def copied(folder, target):
    """The programs of a folder, elsewhere. Times stay, so that what was compiled is found again."""
    parts = [part for part in _PARTS if (folder / part).is_dir()]
    skipped = shutil.ignore_patterns("__pycache__", ".git")
    if target.exists():
        shutil.rmtree(target)
    shared = [_SHARED] if parts and (folder / _SHARED).is_dir() else []
    for part in [*parts, *shared] or ["."]:
        shutil.copytree(folder / part, target / part, ignore=skipped, symlinks=True, dirs_exist_ok=True)
        # That of a checkout asks which runtimes the checkout builds, and there it builds none.
        if part in parts:
            (target / part / "conftest.py").unlink(missing_ok=True)
    return target


def test_files(folder, only):
    """Test files that have to do with simulators and whose path has one of these words; of February to April 2026 each golden.py."""
    # In those months the simulator ran the programs of the folder `examples`.
    found = [path for path in sorted(folder.rglob("golden.py")) if (path.parent / "kernels" / "kernel_config.py").is_file() and "examples" in path.parts]
    found = [path for path in found if not only or any(word in str(path) for word in only)]
    for path in sorted(folder.rglob("test_*.py")):
        text, name = path.read_text(errors="replace"), str(path.relative_to(folder))
        if "ut/" in name or ("scene_test" not in text and "st_platform" not in text):
            continue
        if not only or any(word in name for word in only):
            found.append(path)
    return found


def simulators_of(path):
    """The simulators that a file names, or whose devices it names where those count."""
    if path.name == "golden.py":
        return ["a5sim" if "a5" in path.parts else "a2a3sim"]
    text = path.read_text(errors="replace")
    return [one for one in PLATFORMS if one in platforms_of(name for name in (one, one.removesuffix("sim")) if f'"{name}"' in text)]


def run(values):
    """Runs everything; the table."""
    folder, work = Path(values.folder).resolve(), Path(values.work).resolve()
    if not folder.is_dir():
        raise SystemExit(f"error: there is no folder {folder}")
    work.mkdir(parents=True, exist_ok=True)
    copy = copied(folder, work / "programs")
    files = test_files(copy, values.only)
    if not files:
        raise SystemExit(f"error: {folder} has no test files with scene tests{' of that name' if values.only else ''}")
    kept, limits = work / "kept.json", Limits(values.case_seconds, values.file_seconds)
    table = _earlier(kept, values)
    for number, path in enumerate(files, 1):
        name, start = str(path.relative_to(copy)), time.monotonic()
        if table.is_known(name):
            continue
        platforms = simulators_of(path)
        if not platforms:
            table.add_hardware(name, path.read_text(errors="replace").count('"platforms":'))
        for platform in platforms:
            ended = run_file(path, copy, work, platform, values.pto_isa, limits, table.done(name), values.options)
            table.add(name, platform, ended)
        kept.write_text(json.dumps(table.kept()))
        print(f"[{number} of {len(files)}] {name}: {table.line_of(name)}, {time.monotonic() - start:.1f} s", flush=True)
    return table


def _earlier(kept, values):
    """The table that an earlier run left, if this one goes on with it: all of its files, or those without a failed case."""
    if not (values.resume or values.failed):
        return Table()
    if not kept.is_file():
        raise SystemExit(f"error: {kept} is not there: no earlier run to go on with. Give the same --work, or leave out --resume and --failed")
    table = Table(json.loads(kept.read_text()))
    if values.failed:
        table.forget_failed()
    return table


def _parser():
    parser = argparse.ArgumentParser(
        description="Runs the scene tests of a folder on the simulators, and prints a table.",
        epilog="example: python -m simpler_setup.folder ~/simpler --pto-isa ~/pto-isa --only paged_attention",
    )
    parser.add_argument("folder", help="a folder of programs, or a checkout with `examples` and `tests`")
    parser.add_argument("--pto-isa", help="a folder with the headers of PTO-ISA, for kernels that include them")
    parser.add_argument("--only", action="append", help="only files with this word in their path; may be given again")
    parser.add_argument("--work", default="field-run", help="where the copy and the reports go (default field-run)")
    parser.add_argument("--hardware", action="store_true", help="also run cases that name a device alone, on the simulator of that device")
    parser.add_argument("--resume", action="store_true", help="go on with the earlier run in --work: files that it ended are not run again")
    parser.add_argument("--failed", action="store_true", help="the same, and cases that failed are run again")
    parser.add_argument("--at-least", type=int, help="succeed if so many scene cases pass, whatever the others do")
    parser.add_argument("--table", help="write the table as JSON to this file, too")
    parser.add_argument("--case-seconds", type=float, default=120, help="how long a case may take, compilers included (default 120)")
    parser.add_argument("--file-seconds", type=float, default=900, help="how long a file may take (default 900)")
    parser.add_argument("--pytest", dest="options", action="append", default=[], help="an option of pytest for each file: --pytest=-x")
    return parser


def main(given=None):
    """0: every case that a simulator can run passed, or as many as --at-least says; 1: not so."""
    values = _parser().parse_args(given)
    if values.hardware:
        os.environ["PTO_FIELD_HARDWARE"] = "1"
    table = run(values)
    print(table.text())
    if values.table:
        Path(values.table).write_text(json.dumps(table.rows(), indent=1))
    if values.at_least is not None:
        return 0 if table.passed_scenes() >= values.at_least else 1
    return 0 if table.is_right() else 1


if __name__ == "__main__":
    sys.exit(main())
