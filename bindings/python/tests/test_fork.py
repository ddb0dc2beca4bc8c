"""A child of fork: what its parent opened is refused, what it opens itself works, and both end as they should."""

import interpreter
import pytest

PROGRAM = """
import os, sys
from pto_runtime import Device, Graph, HostError

EXP, NOP = 3, 14

def graph():
    made = Graph()
    made.add_task(NOP, "aiv", [])
    return made

def opened():
    device = Device(aic=4, aiv=8, gm_bytes=64 << 20, hosting=HOSTING)
    device.register_library()
    return device

def session_of(device):
    session = device.session()
    return session, session.stream(), session.kernel_stream()

HOSTING = sys.argv[1]
device, runs = opened(), opened()
runs.run(graph())
session, programs, kernels = session_of(opened())
kernels.launch(NOP, [])
kernels.synchronize()
tensor = programs.zeros("f32", [16])
event, notify = session.event(), session.notify()
kernels.begin_capture()
kernels.launch(EXP, [tensor, tensor, 16])
recording = kernels.end_capture()
program_stream = session.stream(overlap=2)

USES = {
    "run": lambda: device.run(graph()),
    "run again": lambda: runs.run(graph()),
    "malloc": lambda: runs.malloc(64),
    "name": lambda: runs.name,
    "device.session": lambda: device.session(),
    "device.close": lambda: runs.close(),
    "session.stream": lambda: session.stream(),
    "session.event": lambda: session.event(),
    "session.close": lambda: session.close(),
    "launch": lambda: kernels.launch(NOP, []),
    "synchronize": lambda: kernels.synchronize(2.0),
    "recording": lambda: kernels.launch_recording(recording),
    "event": lambda: event.is_complete(),
    "notify": lambda: notify.address,
    "zeros": lambda: programs.zeros("f32", [16]),
    "to_host": lambda: programs.to_host(tensor),
    "flush": lambda: program_stream.flush(),
    "shape": lambda: tensor.shape,
}

parent, child = os.getpid(), os.fork()
if child == 0:
    for name, use in USES.items():
        try:
            print(name, "gave", use(), flush=True)
        except HostError as error:
            if error.name != "OTHER_PROCESS" or f"opened in process {parent}" not in error.message:
                print(name, "said", error, flush=True)
    repr([device, session, programs, kernels, tensor])
    own = opened()
    own.run(graph())
    own_session, own_programs, own_kernels = session_of(own)
    own_kernels.call(lambda: print("child", flush=True))
    own_kernels.synchronize(60)
    if sys.argv[2] == "drop":
        del device, runs, session, programs, kernels, tensor, event, notify, recording, program_stream, USES
    sys.exit(7)

status = os.waitpid(child, 0)[1] >> 8
device.run(graph())
kernels.launch_recording(recording)
kernels.synchronize(60)
assert programs.to_host(tensor).shape == (16,)
print("parent", status)
"""


@pytest.mark.parametrize("hosting", ["pool", "threads", "virtual"])
@pytest.mark.parametrize("end", ["drop", "exit"])
def test_a_child_is_told_and_works_on_its_own(hosting, end):
    ended = interpreter.run("-W", "ignore::DeprecationWarning", "-c", PROGRAM, hosting, end)
    assert (ended.returncode, ended.stdout) == (0, "child\nparent 7\n"), ended.stdout + ended.stderr


WITH = """
import os, sys
from pto_runtime import Device
with Device(aic=4, aiv=8, gm_bytes=64 << 20) as device, Device(aic=2, aiv=4, gm_bytes=64 << 20).session() as session:
    child = os.fork()
    if child == 0:
        sys.exit(5)
print(os.waitpid(child, 0)[1] >> 8)
"""


def test_a_child_ends_inside_of_a_with():
    ended = interpreter.run("-W", "ignore::DeprecationWarning", "-c", WITH)
    assert (ended.returncode, ended.stdout) == (0, "5\n"), ended.stderr
