"""Calls that no program should make: whatever a program does, it gets an exception, and the interpreter ends as it should."""

import textwrap
from pathlib import Path

import interpreter
import pytest

CALLS = Path(__file__).with_name("calls.py")


def run(*arguments):
    done = interpreter.run(*arguments)
    assert done.returncode == 0, f"{arguments}: status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    assert "panicked at" not in done.stderr, done.stderr[-4000:]
    return done.stdout


@pytest.mark.parametrize("seed", [1, 1001])
def test_calls_by_seeds(seed):
    """The same calls again: `python bindings/python/tests/calls.py SEED 120 list`."""
    assert run(CALLS, seed, "1000").endswith("done\n")


BEGIN = """
    import gc, os, signal, sys, threading, time, weakref
    import pto_runtime as pto
    class Deliberate(Exception): pass
    def fail(): raise Deliberate("deliberate")
    device = pto.Device(aic=4, aiv=8, gm_bytes=64 << 20, hosting="pool", os_threads=1)
    device.register_library()
    empty = next(number for number, name, _ in device.kernels if name == "empty_aiv")
    session = device.session()
    stream = session.kernel_stream()
"""

ENDS = {
    "an exception of a function that is called is raised by the next wait": """
        for wrong in (fail, lambda: sys.exit(3), lambda: stream.query() or fail()):
            stream.call(wrong)
            try:
                stream.synchronize()
            except pto.PtoError as error:
                print(type(error).__name__)
        stream.call(lambda: None)
        stream.synchronize()
    """,
    "an interrupt ends a wait without a limit": """
        # Where the tests run in the background, this process would ignore the signal.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        entered, go_on = threading.Event(), threading.Event()
        stream.call(lambda: (entered.set(), go_on.wait()))
        main = threading.main_thread().ident
        try:
            # Within: on a busy machine the signal may come before the wait.
            threading.Thread(target=lambda: (entered.wait(), time.sleep(0.2), signal.pthread_kill(main, signal.SIGINT))).start()
            stream.synchronize()
            sys.exit("it was not interrupted")
        except KeyboardInterrupt:
            print("interrupted")
        go_on.set()
        stream.synchronize()
    """,
    "the interpreter ends with everything open": """
        other = session.stream()
        tensor = other.zeros("f32", [64])
        event, flag, buffer = session.event(), session.notify(), pto.HostBuffer(64)
        stream.call(lambda: time.sleep(0.05))
        stream.record(event)
        stream.copy_from_device(tensor, buffer)
        sys.modules["kept"] = [device, session, stream, other, tensor, event, flag, buffer]
    """,
    "the interpreter ends while a function runs": """
        entered = threading.Event()
        def function():
            entered.set()
            for _ in range(20): time.sleep(0.01)
        stream.call(function)
        entered.wait()
    """,
    "the interpreter ends while a stream waits for ever": """
        flag = session.notify()
        stream.wait_notify(flag)
        stream.call(fail)
    """,
    "an exception leaves the program while a function runs": """
        def main(session, stream):
            entered = threading.Event()
            stream.call(lambda: (entered.set(), time.sleep(0.1)))
            entered.wait()
            raise Deliberate()
        arguments = (session, stream)
        del session, stream
        try:
            main(*arguments)
        except Deliberate:
            print("left")
        del arguments
    """,
    "a thread ends that holds the last references": """
        held = threading.local()
        def work(*objects):
            held.objects = objects
            objects[1].call(lambda: time.sleep(0.05))
        thread = threading.Thread(target=work, args=(session, stream, device))
        del session, stream, device
        thread.start()
        thread.join()
        del thread
        gc.collect()
    """,
    "cycles with devices, sessions and functions are collected": """
        class Owner: pass
        owners = []
        for _ in range(3):
            owner = Owner()
            owner.device = pto.Device(aic=1, aiv=2, gm_bytes=64 << 20, hosting="pool", os_threads=1)
            owner.device.register_library()
            owner.session = owner.device.session()
            owner.stream = owner.session.kernel_stream()
            owner.self = owner
            owner.stream.call(lambda owner=owner: owner.self)
            owner.stream.synchronize()
            owners.append(weakref.ref(owner))
            del owner
        gc.collect()
        assert [owner() for owner in owners] == [None] * 3
    """,
    "finalizers use what they hold": """
        class Owner:
            def __init__(self): self.session, self.stream = session, session.kernel_stream()
            def __del__(self):
                self.stream.launch(empty, [])
                self.stream.call(fail)
                self.stream.begin_capture()
        owner = Owner()
        del owner
        last = Owner()
    """,
    "a handler of a signal raises while others wait": """
        def handle(*_): raise Deliberate()
        signal.signal(signal.SIGALRM, handle)
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
        seen = 0
        while seen < 5:
            try:
                for _ in range(50): stream.launch(empty, [])
                stream.synchronize(0.5)
            except Deliberate:
                seen += 1
            except pto.PtoError:
                pass
        signal.setitimer(signal.ITIMER_REAL, 0)
        stream.synchronize()
    """,
}


@pytest.mark.parametrize("name", ENDS)
def test_ends(name):
    run("-c", textwrap.dedent(BEGIN) + textwrap.dedent(ENDS[name]) + '\nprint("done", flush=True)\n')


CLOSED = """
import sys, threading
import pto_runtime as pto
sys.setswitchinterval(1e-6)
device, owner = pto.Device(), pto.Device()
session = owner.session()
device.close(), session.close()
def use(call):
    for _ in range(10000):
        try:
            call()
        except pto.PtoError as error:
            assert error.name == "INVALID_HANDLE", error
for call in (lambda: device.free(64), lambda: session.synchronize(), lambda: owner.session()):
    threads = [threading.Thread(target=use, args=[call]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print("done")
"""


def test_threads_that_use_what_is_closed_do_not_wait_for_each_other():
    """The exception of one thread is made under a lock that the others wait for."""
    assert run("-c", CLOSED) == "done\n"
