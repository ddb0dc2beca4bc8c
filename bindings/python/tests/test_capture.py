"""Kernel streams from Python: what is captured of them is launched again, and on other tensors."""

import threading
import types

import interpreter
import numpy as np
import pytest

from pto_runtime import Device, HostBuffer, HostError, KernelStream

# Func ids of the library.
ADD, MUL = 0, 2
COUNT = 64


@pytest.fixture
def session():
    with Device(aic=2, aiv=4, gm_bytes=64 << 20).session() as opened:
        yield opened


def full(programs, value):
    return programs.to_device(np.full(COUNT, value, np.float32))


def test_what_is_captured_of_two_streams_is_launched_on_other_tensors(session):
    programs = session.stream()
    x, other = full(programs, 3), full(programs, 5)
    doubled, squared, total = (full(programs, 0) for _ in range(3))
    programs.synchronize()
    first, second = session.kernel_stream(), session.kernel_stream()
    forked, joined = session.event(), session.event()

    first.begin_capture()
    first.record(forked)
    second.wait(forked)
    first.launch(ADD, [x, x, doubled, COUNT])
    second.launch(MUL, [x, x, squared, COUNT])
    second.record(joined)
    first.wait(joined)
    first.launch(ADD, [doubled, squared, total, COUNT])
    recording = first.end_capture()
    assert not programs.to_host(total).any(), "nothing was done yet"

    for _ in range(3):
        first.launch_recording(recording)
    first.synchronize()
    assert (programs.to_host(total) == 15).all()
    first.launch_recording(recording, [(x, other)])
    first.synchronize(timeout=60)
    assert (programs.to_host(total) == 35).all()

    with pytest.raises(HostError, match="does not name"):
        first.launch_recording(recording, [(other, x)])


def test_a_launch_that_its_kernel_cannot_take_is_refused(session):
    programs, stream = session.stream(), session.kernel_stream()
    x = full(programs, 3)
    for args, says in [
        ([x, x, x], r"add takes 4 arguments \(a, b, out, n\), and the task has 3"),
        ([x, x, x, COUNT, 1], "and the task has 5"),
        ([x, 0, x, COUNT], "add: argument 1, b, is an address, and 0x0 lies in no allocation"),
        ([x, x, x, 1 << 40], "add: argument 0, a, reaches to byte"),
    ]:
        with pytest.raises(HostError, match=says) as caught:
            stream.launch(ADD, args)
        assert caught.value.name == "KERNEL_CALL"
    with pytest.raises(HostError, match="func id 900 has no kernel"):
        stream.launch(900, [])
    stream.launch(ADD, [x, x, x, COUNT])
    stream.synchronize()
    assert (programs.to_host(x) == 6).all()


def test_what_a_kernel_stream_cannot_do_is_refused(session):
    stream = session.kernel_stream()
    with pytest.raises(HostError, match="capture"):
        stream.end_capture()
    stream.begin_capture()
    with pytest.raises(HostError, match="capture"):
        stream.begin_capture()
    with pytest.raises(HostError, match="1000"):
        stream.launch(1000, [])
    with pytest.raises(HostError, match="70000"):
        stream.launch(70000, [])
    with pytest.raises(HostError, match="an integer of 64 bits or a float"):
        stream.launch(ADD, ["x"])
    stream.launch(ADD, [0, 0, 0, 0])
    recording = stream.end_capture()
    with Device(aic=2, aiv=4, gm_bytes=64 << 20).session() as another:
        with pytest.raises(HostError, match="another session"):
            another.kernel_stream().launch_recording(recording)


def test_what_is_no_launch_stands_in_a_recording_as_well(session):
    programs = session.stream()
    x, given, total = full(programs, 3), full(programs, 0), full(programs, 0)
    flag = programs.to_device(np.zeros(COUNT, np.float32))
    programs.synchronize()
    first, second = session.kernel_stream(), session.kernel_stream()
    forked, joined = session.event(), session.event()
    source, result = HostBuffer(4 * COUNT), HostBuffer(4 * COUNT)
    calls = []

    first.begin_capture()
    first.fill(flag, 0, 4 * COUNT)
    first.copy_to_device(given, source)
    first.record(forked)
    second.wait(forked)
    first.wait_value(flag, 7)
    second.call(lambda: calls.append(1))
    second.write_value(flag, 7)
    second.record(joined)
    first.wait(joined)
    first.launch(ADD, [given, x, total, COUNT])
    first.copy(total, given, 4 * COUNT)
    first.reduce("sum", "f32", given, total, 4 * COUNT)
    first.copy_from_device(total, result)
    recording = first.end_capture()
    assert calls == []

    for value in range(3):
        source.write(np.full(COUNT, value, np.float32))
        first.launch_recording(recording)
        first.synchronize(timeout=60)
        assert (np.frombuffer(result.read(), np.float32) == 2 * (value + 3)).all()
        assert len(calls) == value + 1

    with pytest.raises(HostError, match="mean"):
        first.reduce("mean", "f32", given, total, 4 * COUNT)
    with pytest.raises(HostError, match="buffer of 256"):
        source.write(np.zeros(3, np.float32))
    first.call(lambda: 1 // 0)
    with pytest.raises(HostError, match="division"):
        first.synchronize(timeout=60)


def test_streams_wait_for_values_and_flags_and_are_asked_and_aborted(session):
    programs = session.stream()
    word = programs.to_device(np.zeros(COUNT, np.float32))
    programs.synchronize()
    first, second, third = (session.kernel_stream() for _ in range(3))
    flag, event = session.notify(), session.event()

    second.wait_notify(flag)
    second.write_value(word, 9)
    first.wait_value(word, 4, test="at least")
    assert not second.query() and not first.query()
    third.notify(flag)
    first.synchronize(timeout=60)
    second.synchronize(timeout=60)
    assert second.query()

    # The wait has lowered the flag. Any write of its word raises it.
    first.wait_notify(flag)
    assert not first.query()
    third.write_value(flag.address, 1)
    first.synchronize(timeout=60)

    assert event.is_complete() and event.time() is None
    first.reset(event)
    first.synchronize(timeout=60)
    assert not event.is_complete()
    first.record(event)
    first.synchronize(timeout=60)
    assert event.is_complete() and event.time() > 0

    first.wait_value(word, 1234)
    assert not first.query()
    first.abort()
    first.synchronize(timeout=60)
    assert first.query()

    with pytest.raises(HostError, match="at least, equal, and, nor"):
        first.wait_value(word, 1, test="less")
    with Device(aic=2, aiv=4, gm_bytes=64 << 20).session() as another:
        with pytest.raises(HostError, match="another session"):
            another.kernel_stream().notify(flag)


# Every method that submits a command; more of them than the ring of a stream has entries wait for room.
SUBMITS = {
    "launch": lambda parts: parts.stream.launch(NOP, []),
    "copy_to_device": lambda parts: parts.stream.copy_to_device(parts.x, parts.buffer),
    "copy_from_device": lambda parts: parts.stream.copy_from_device(parts.x, parts.buffer),
    "copy": lambda parts: parts.stream.copy(parts.x, parts.y, 8),
    "fill": lambda parts: parts.stream.fill(parts.x, 0, 8),
    "reduce": lambda parts: parts.stream.reduce("sum", "f32", parts.x, parts.y, 8),
    "call": lambda parts: parts.stream.call(int),
    "write_value": lambda parts: parts.stream.write_value(parts.x, 0),
    "wait_value": lambda parts: parts.stream.wait_value(parts.y, 0),
    "notify": lambda parts: parts.stream.notify(parts.notify),
    "wait_notify": lambda parts: (parts.stream.notify(parts.notify), parts.stream.wait_notify(parts.notify)),
    "reset": lambda parts: parts.stream.reset(parts.event),
    "record": lambda parts: parts.stream.record(parts.event),
    "wait": lambda parts: parts.stream.wait(parts.event),
    "launch_recording": lambda parts: parts.stream.launch_recording(parts.recording),
}
# Those that submit none.
OTHERS = {"query", "abort", "begin_capture", "end_capture", "synchronize"}
NOP, RING = 14, 1024


def test_every_method_of_a_stream_is_tried_or_submits_nothing():
    assert {name for name in dir(KernelStream) if not name.startswith("_")} == SUBMITS.keys() | OTHERS


@pytest.mark.parametrize("name", SUBMITS)
def test_who_waits_for_room_lets_other_threads_go_on(session, name):
    programs = session.stream()
    parts = types.SimpleNamespace(stream=session.kernel_stream(), x=full(programs, 0), y=full(programs, 0))
    parts.buffer, parts.event, parts.notify = HostBuffer(8), session.event(), session.notify()
    programs.synchronize()
    other = session.kernel_stream()
    other.begin_capture()
    other.launch(NOP, [])
    parts.recording = other.end_capture()

    # The function returns when another thread of Python has run, which needs the GIL.
    gate = threading.Event()
    parts.stream.call(gate.wait)
    opener = threading.Timer(0.1, gate.set)
    opener.start()
    for _ in range(RING + 1):
        SUBMITS[name](parts)
    opener.join()
    parts.stream.synchronize(timeout=60)


LETS_GO = """
import sys, threading, time
from pto_runtime import Device

def run():
    session = Device(aic=2, aiv=4, gm_bytes=64 << 20).session()
    stream, begun, other = session.kernel_stream(), threading.Event(), session.kernel_stream()
    stream.call(lambda: (begun.set(), time.sleep(0.3), print("returned", flush=True)))
    begun.wait()
    if sys.argv[1] == "exit":
        globals().update(kept=(session, stream, other))
        return
    if sys.argv[1] == "raise":
        raise ValueError("of the program")
    if sys.argv[1] == "close":
        session.close()

try:
    run()
except ValueError as error:
    print(error, flush=True)
print("goes on", flush=True)
"""


@pytest.mark.parametrize("way, says", [
    ("raise", "of the program\nreturned\ngoes on\n"), ("return", "returned\ngoes on\n"), ("close", "returned\ngoes on\n"),
    ("exit", "goes on\nreturned\n"),
])
def test_a_session_goes_while_a_function_of_python_runs(way, says):
    ended = interpreter.run("-c", LETS_GO, way)
    assert (ended.returncode, ended.stdout) == (0, says), ended.stderr


def test_a_recording_holds_its_tensors(session):
    programs, stream, inner = session.stream(), session.kernel_stream(), session.kernel_stream()
    x, y = full(programs, 3), full(programs, 0)
    programs.synchronize()
    stream.begin_capture()
    stream.launch(ADD, [x, x, y, COUNT])
    stream.fill(y, 0, 4)
    recording = stream.end_capture()
    inner.begin_capture()
    inner.launch_recording(recording)
    nested = inner.end_capture()
    del x, y, recording
    later = [full(programs, 9) for _ in range(4)]
    programs.synchronize()
    stream.launch_recording(nested)
    stream.synchronize(timeout=60)
    assert all((programs.to_host(tensor) == 9).all() for tensor in later)


def test_a_recording_of_a_tensor_that_was_given_away_is_refused(session):
    programs, other, stream = session.stream(), session.stream(), session.kernel_stream()
    x, y, z = full(programs, 3), full(programs, 0), full(programs, 0)
    programs.synchronize()
    stream.begin_capture()
    stream.launch(ADD, [x, x, y, COUNT])
    recording = stream.end_capture()
    taken = other.take_over(y, programs)
    with pytest.raises(HostError, match="given to stream") as caught:
        stream.launch_recording(recording)
    assert caught.value.name == "TENSOR_MOVED"
    stream.launch_recording(recording, [(y, z)])
    stream.synchronize(timeout=60)
    assert (programs.to_host(z) == 6).all() and not other.to_host(taken).any()


@pytest.mark.parametrize("name", ["launch", "copy_to_device", "copy_from_device", "copy", "fill", "reduce", "write_value", "wait_value"])
def test_a_tensor_of_another_session_is_refused(session, name):
    programs = session.stream()
    own = full(programs, 0)
    with Device(aic=2, aiv=4, gm_bytes=64 << 20).session() as another:
        strange = full(another.stream(), 3)
        stream, buffer = session.kernel_stream(), HostBuffer(8)
        calls = {
            "launch": lambda: stream.launch(ADD, [own, strange, own, COUNT]),
            "copy_to_device": lambda: stream.copy_to_device(strange, buffer),
            "copy_from_device": lambda: stream.copy_from_device(strange, buffer),
            "copy": lambda: stream.copy(own, strange, 8),
            "fill": lambda: stream.fill(strange, 0, 8),
            "reduce": lambda: stream.reduce("sum", "f32", strange, own, 8),
            "write_value": lambda: stream.write_value(strange, 1),
            "wait_value": lambda: stream.wait_value(strange, 1),
        }
        with pytest.raises(HostError, match="another session") as caught:
            calls[name]()
        assert caught.value.name == "OTHER_SESSION"
