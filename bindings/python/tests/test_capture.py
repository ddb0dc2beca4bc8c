"""Kernel streams from Python: what is captured of them is launched again, and on other tensors."""

import numpy as np
import pytest

from pto_runtime import Device, HostBuffer, HostError

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
    with pytest.raises(HostError, match="a tensor, or an integer"):
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

    # The wait has lowered the flag. Whoever writes its word raises it.
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
