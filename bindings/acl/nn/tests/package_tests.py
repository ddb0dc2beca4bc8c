"""Runs the tests of a package that calls CANN on our device, file by file, and counts how they end.

    python package_tests.py FOLDER [--cases 12] [--seconds 45] [--minutes 20] [--processes 2] [--only WORD]

Of the cases of a parametrised test at most `--cases` are run, evenly chosen. A file has `--seconds`; all together have `--minutes`. A test that ends the
process is counted and left out of a second run of its file. pytest loads this file as its plugin, too."""

import argparse
import collections
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# Why a test cannot pass here: words of its message, and what it lacks. The package would compile kernels by the vendor's compiler, or it lacks the part itself.
CANNOT = [
    ("no implementation registered", "a kernel in source, which the vendor's compiler compiles"),
    ("RawKernel", "a kernel in source, which the vendor's compiler compiles"),
    ("RawModule", "a kernel in source, which the vendor's compiler compiles"),
    ("not supported on the Ascend backend", "the package says that it does not support it"),
    ("not supported on Ascend", "the package says that it does not support it"),
    ("does not support", "the package says that it does not support it"),
    ("not supported yet", "the package says that it does not support it"),
    ("ASCEND:", "the package says that it does not support it"),
    ("CPU fallback", "the package computes it with NumPy"),
    ("DISABLE_CPU_FALLBACK", "the package computes it with NumPy"),
    ("No module named", "a module that the package does not have"),
    ("cannot import name", "a module that the package does not have"),
    ("has no attribute", "a module that the package does not have"),
    ("CUDADriverError", "CUDA"),
    ("No such file or directory", "a source file that the package does not have"),
    ("different dtypes are returned", "the package gives another type than NumPy"),
    ("Unsupported dtype", "the package says that it does not support it"),
    ("NotImplementedError", "the package says that it does not support it"),
]


def reason(text):
    return next((why for words, why in CANNOT if words in text), None)


# What pytest calls.
def pytest_collection_modifyitems(items):
    most, skipped = int(os.environ["PTO_CASES"]), os.environ.get("PTO_LEFT_OUT", "").split("\n")
    groups = collections.OrderedDict()
    for item in items:
        name = re.sub(r"_param_\d+_\{.*?\}(?=::|$)", "", item.nodeid.split("[")[0])
        groups.setdefault(name, []).append(item)
    kept = [item for group in groups.values() for item in group[:: max(1, -(-len(group) // most))]]
    write("collected", len(items), len(groups))
    items[:] = [item for item in kept if item.nodeid not in skipped]


def pytest_runtest_logstart(nodeid, location):
    write("start", nodeid)


def pytest_runtest_logreport(report):
    if report.when != "call" and report.outcome == "passed":
        return
    outcome = "skipped" if hasattr(report, "wasxfail") and report.outcome == "skipped" else report.outcome
    text = str(report.longrepr)[-3000:].replace("\n", " ").replace("\t", " ") if report.outcome == "failed" else ""
    write(outcome, report.nodeid, text)


def write(*words):
    with open(os.environ["PTO_OUTCOMES"], "a", encoding="utf-8") as file:
        file.write("\t".join(str(word).replace("\n", " ") for word in words) + "\n")


class Count(collections.Counter):
    """How the tests of a file ended."""


def run_file(path, folder, options):
    """Runs a file, again without the tests that end the process."""
    count, left_out, whys, lines = Count(), [], [], []
    outcomes = Path(options.outcomes) / (path.replace("/", "_") + ".txt")
    if time.monotonic() > options.end:
        count["not run: no time"] += 1
        return count, []
    for _ in range(8):
        outcomes.unlink(missing_ok=True)
        environment = dict(os.environ, PTO_OUTCOMES=str(outcomes), PTO_CASES=str(options.cases), PTO_LEFT_OUT="\n".join(left_out),
                           PYTHONPATH=str(Path(__file__).parent), CUPY_ASCEND_DISABLE_CPU_FALLBACK="1")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "package_tests", "-p", "no:cacheprovider", "--tb=native", "--timeout=20", f"--session-timeout={options.seconds}", path]
        try:
            code = subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=options.seconds + 60).returncode
        except subprocess.TimeoutExpired:
            code = 124
        lines = [line.split("\t") for line in outcomes.read_text(encoding="utf-8").splitlines()] if outcomes.exists() else []
        if code in (0, 1, 5) or not lines:
            break
        started = [line[1] for line in lines if line[0] == "start"]
        ended = {line[1] for line in lines if line[0] in ("passed", "failed", "skipped")}
        hung = [test for test in started if test not in ended]
        if not hung:
            break
        left_out.append(hung[-1])
    if not lines:
        count["file cannot be loaded"] += 1
        return count, [(path, "pytest cannot load it")]
    ends = {}
    for line in lines:
        if line[0] == "collected":
            count["cases"], count["functions"] = int(line[1]), int(line[2])
        elif line[0] in ("passed", "failed", "skipped"):
            ends[line[1]] = (line[0], line[2] if len(line) > 2 else "")
    for test, (outcome, text) in ends.items():
        why = reason(text) if outcome == "failed" else None
        count["cannot pass" if why else outcome] += 1
        if outcome == "failed":
            whys.append((test, why or text[-300:]))
    count["ends the process"] += len(left_out)
    return count, whys + [(test, "ends the process") for test in left_out]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--cases", type=int, default=12)
    parser.add_argument("--seconds", type=int, default=45)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--outcomes", default="outcomes")
    options = parser.parse_args()
    folder = Path(options.folder).resolve()
    options.outcomes = str(Path(options.outcomes).resolve())
    Path(options.outcomes).mkdir(exist_ok=True)
    options.end = time.monotonic() + 60 * options.minutes
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("test_*.py") if options.only in str(path))
    # Files of all folders come early, so that a run that is cut off has seen some of each.
    files = [path for first in range(8) for path in files[first::8]]
    total, groups, whys = Count(), collections.defaultdict(Count), []
    with ThreadPoolExecutor(options.processes) as pool:
        for path, (count, found) in zip(files, pool.map(lambda path: run_file(path, folder, options), files)):
            group = "/".join(Path(path).parts[1:3]) if len(Path(path).parts) > 3 else "/".join(Path(path).parts[1:2])
            total.update(count)
            groups[group].update(count)
            whys += found
            print(".", end="", flush=True, file=sys.stderr)
    print(file=sys.stderr)
    with open(Path(options.outcomes) / "failures.tsv", "w", encoding="utf-8") as file:
        file.writelines(f"{test}\t{why}\n" for test, why in whys)
    columns = ["functions", "cases", "passed", "failed", "cannot pass", "skipped", "ends the process"]
    print("| tests | " + " | ".join(columns) + " |")
    print("|---|" + "---|" * len(columns))
    for group, count in sorted(groups.items()) + [("all", total)]:
        print(f"| {group} | " + " | ".join(str(count[column]) for column in columns) + " |")
    for why, number in collections.Counter(why for _, why in whys if why in {reason for _, reason in CANNOT}).most_common():
        print(f"cannot pass: {number} need {why}")
    print(f"files that cannot be loaded: {total['file cannot be loaded']}; files without time: {total['not run: no time']}")
    print(f"package tests: {total['passed']} passed, {total['failed']} failed, {total['cannot pass']} cannot pass, {total['ends the process']} end the process")


if __name__ == "__main__":
    main()
