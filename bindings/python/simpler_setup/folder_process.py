"""One file of programs in processes of its own, until every case has ended, well or not."""

import json
import os
import signal
import sys
import time
from dataclasses import dataclass

import pytest

# How often the report is looked at.
_LOOK_SECONDS = 0.1
# A file that loses this many processes is given up.
_MOST_PROCESSES = 40


@dataclass(frozen=True)
class Limits:
    """Seconds that a case and a file may take."""

    case: float
    file: float


def read(report):
    """The lines of a report so far."""
    try:
        text = report.read_text()
    except OSError:
        return []
    return [json.loads(line) for line in text.splitlines() if line.endswith("}")]


def running(lines):
    """The case that has begun and not ended."""
    open_ones = []
    for line in lines:
        if line["state"] == "begun":
            open_ones.append(line["case"])
        elif line["case"] in open_ones:
            open_ones.remove(line["case"])
    return open_ones[-1] if open_ones else None


def run_file(path, root, work, platform, pto_isa, limits, done, options):
    """What became of each case: a dict of the last line of each, and `""` for the file as a whole if it could not be read."""
    ended, left = {}, _MOST_PROCESSES
    deadline = time.monotonic() + limits.file
    while left and time.monotonic() < deadline:
        left -= 1
        lines, reason = _one_process(path, root, work, platform, pto_isa, limits, {*done, *_over(ended)}, options)
        for line in lines:
            if line["state"] == "listed":
                ended.setdefault(line["case"], line)
            elif line["state"] != "begun":
                ended[line["case"]] = {**ended.get(line["case"], {}), **line}
        lost = running(lines)
        if lost is None:
            if reason and not any(line["state"] not in ("listed",) for line in lines):
                ended[""] = {"case": "", "state": "failed", "reason": reason, "seconds": 0}
            return ended
        ended[lost] = {**ended.get(lost, {}), "case": lost, "state": "failed", "reason": reason, "seconds": 0}
    return ended


def _over(ended):
    return {case for case, line in ended.items() if line["state"] in ("passed", "failed")}


def _one_process(path, root, work, platform, pto_isa, limits, done, options):
    report, known, log = work / "report.jsonl", work / "done.txt", work / "last.log"
    report.unlink(missing_ok=True)
    known.write_text("\n".join(sorted(case for case in done if case)))
    arguments = [
        *("-q", "--tb=short", "-p", "no:cacheprovider", "-p", "simpler_setup.pytest_plugin"),
        *("-c", os.devnull, "--rootdir", str(root), "--import-mode=importlib", "--platform", platform),
        *("--manual", "include", "--scene-report", str(report), "--scene-done", str(known), str(path), *options),
    ]
    environment = {"PTO_FIELD_OUTPUTS": str(work / "outputs")}
    if pto_isa is not None:
        environment["PTO_ISA_ROOT"] = str(pto_isa)
    process = _forked(arguments, root, {**environment, "PYTHONDONTWRITEBYTECODE": "1"}, log)
    code, reason = _watched(process, report, limits)
    text = log.read_text(errors="replace")
    with (work / "all.log").open("a") as everything:
        everything.write(f"==== {path} on {platform}\n{text}\n")
    return read(report), reason or _last_words(code, text)


def _forked(arguments, folder, environment, log):
    """A process that runs pytest. Forked, because torch takes longer to import than most files take to run."""
    sys.stdout.flush()
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        os.setsid()
        os.chdir(folder)
        os.environ.update(environment)
        # After everything else: files import one another as `examples.x` and `tests.y`.
        sys.path.append(str(folder))
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(output, stream)
        code = int(pytest.main(arguments))
        sys.stdout.flush()
    finally:
        os._exit(code)


def _watched(process, report, limits):
    """Waits for a process; ends it if a case, or the file, takes too long. Its code, and the reason if it was ended."""
    start, current, since = time.monotonic(), None, time.monotonic()
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status), None
        time.sleep(_LOOK_SECONDS)
        now, case = time.monotonic(), running(read(report))
        if case != current:
            current, since = case, now
        if now - since > limits.case or now - start > limits.file:
            os.killpg(process, signal.SIGKILL)
            os.waitpid(process, 0)
            return -signal.SIGKILL, f"takes more than {limits.case if now - since > limits.case else limits.file:g} s"


def _last_words(code, text):
    if code in (0, 5):
        return ""
    if code < 0:
        name = signal.Signals(-code).name
        return f"the process died of {name}"
    errors = [line for line in text.splitlines() if line.startswith("E ")]
    return errors[-1][1:].strip() if errors else (text.strip().splitlines() or ["no output"])[-1]
