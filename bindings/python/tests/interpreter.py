"""Interpreters of their own, for programs whose end is what is tested."""

import signal
import subprocess
import sys

import pytest

# A process that has not ended by then hangs.
LIMIT_S = 120


def run(*arguments, **options):
    """Runs an interpreter with these arguments and gives what it printed. One that hangs fails the test, which shows where each of its threads is."""
    command = [sys.executable, "-X", "faulthandler", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options) as process:
        try:
            stdout, stderr = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            # The handler of faults writes the stack of every thread.
            process.send_signal(signal.SIGABRT)
            stdout, stderr = process.communicate()
            pytest.fail(f"{arguments}: no end within {LIMIT_S} s\n{stdout[-2000:]}\n{stderr[-8000:]}")
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)
