"""Channels and processes: results, times, and pipelines that cannot go on."""

import numpy as np
import pytest
from wsp import F32, copy, mark, run, tensor, tiles

from pto_runtime import Device
from pto_wsp import (
    Channel, ChannelClosed, CompileError, Dense, DenseDyn, Event, ExecutionError, Tensor, connect, consume, for_each, process,
    query, record, replicate, send, sequential, synchronize, task, try_send,
)  # fmt: skip


def call(t, source, target):
    return task(copy, [t], {"src": source[t], "dst": target[t]})


def two_stages(axis, depth, count=4):
    x, y = tiles(count)
    a, b, middle = tensor(x), tensor(y), Tensor(None, x.shape, F32)
    channel = Channel("c", depth)
    first = process("first").produces(channel).body(for_each(axis, lambda t: send(channel, call(t, a, middle))))
    second = process("second").consumes(channel).body(consume(channel, lambda t: call(t, middle, b)))
    return connect([first, second], [channel]), x, y


@pytest.mark.parametrize("depth", [0, 1, 2, 8])
def test_tokens_arrive(depth):
    pipeline, x, y = two_stages(Dense[4](), depth)
    assert run(pipeline.compile()) == 5 * 32
    np.testing.assert_array_equal(y, x)


def on_device(pipeline, **more):
    """A traced run on the virtual machine."""
    with Device(hosting="virtual", aic=4, aiv=8, gm_bytes=1 << 28, **more) as device:
        program = pipeline.compile(target="a2a3sim", device=device)
        program.enable_tracing()
        program.execute()
        program.synchronize()
        return program


@pytest.mark.parametrize("depth", [0, 1, 2, 8])
def test_a_device_keeps_the_depth(depth):
    """The sender, which is quick, runs ahead of the receiver by as many tokens as the channel holds, and by no more."""
    counts = np.zeros((16, 1, 1), np.int32)
    x = tiles(16)
    a, b, y = tensor(x[0]), tensor(x[1]), tensor(counts)
    channel = Channel("c", depth)
    sender = process("sender").produces(channel).body(for_each(16, lambda t: send(channel, call(t, a, b))))
    uses = lambda t: sequential(*[task(mark, [t], {"y": y[t]}) for _ in range(3)])  # noqa: E731
    taker = process("taker").consumes(channel).body(consume(channel, uses))
    program = on_device(connect([sender, taker], [channel]), kernel_cost="10us")
    assert (x[1] == x[0]).all() and (counts == 3).all()
    tasks = sorted(program.trace.timeline.tasks, key=lambda found: found[3])
    sent = [begin for _, name, _, begin, _ in tasks if name == "copy"]
    used = [end for _, name, _, _, end in tasks if name == "mark"][2::3]
    for number in range(depth + 2, 16):
        assert used[number - depth - 2] <= sent[number], number
    assert sent[15] < used[14 - depth], "the sender is as far ahead as it may be"


def test_a_deadlock_on_a_device_is_told():
    with pytest.raises(ExecutionError, match="first waits for a token of back from second; second waits for a token of there"):
        on_device(deadlocked())


def test_latency_is_a_symbol():
    program = two_stages(Dense[4](), 1)[0].compile()
    before = run(program)
    program.set_symbol_u64("__pto_wsp_channel_latency_cycles", 50)
    assert run(program) > before


def test_a_device_has_no_latency_of_channels():
    with Device(hosting="virtual", aic=4, aiv=8, gm_bytes=1 << 28) as device:
        program = two_stages(Dense[4](), 1)[0].compile(target="a2a3sim", device=device)
        program.set_symbol_u64("__pto_wsp_channel_latency_cycles", 50)
        program.execute()
        with pytest.raises(ExecutionError, match="A device has no __pto_wsp_channel_latency_cycles"):
            program.synchronize()


@pytest.mark.parametrize("target", ["cpu_sim", "a2a3sim"])
def test_an_event_orders_processes(target):
    """The receiver copies what the sender has copied to the same tiles: without the tokens it would read zeros."""
    x, y = tiles(4)
    a, b, middle = tensor(x), tensor(y), Tensor(None, x.shape, F32)
    done = Event("done")
    first = process("first").produces(done).body(for_each(4, lambda t: send(done, call(t, a, middle))))
    second = process("second").consumes(done).body(consume(done, lambda t: call(t, middle, b)))
    run(connect([second, first], [done]).compile(target=target))
    np.testing.assert_array_equal(y, x)


def test_a_dynamic_axis_in_a_process():
    pipeline, x, y = two_stages(DenseDyn(0), 2)
    program = pipeline.compile()
    program.set_axis_sizes({"i": 3})
    run(program)
    np.testing.assert_array_equal(y[:3], x[:3])
    assert not y[3:].any()


@pytest.mark.parametrize("senders", [2, 3])
def test_no_token_is_lost_with_several_senders(senders):
    counts = np.zeros((4, 1, 1), np.int32)
    y, x = tensor(counts), tiles(4)
    a, b = tensor(x[0]), tensor(x[1])
    channel = Channel("c", 1)
    sender = process("sender").produces(channel).body(for_each(4, lambda t: send(channel, call(t, a, b))))
    taker = process("taker").consumes(channel).body(consume(channel, lambda t: task(mark, [t], {"y": y[t]})))
    run(connect([replicate(sender, senders), taker]).compile())
    assert counts.ravel().tolist() == [senders] * 4


def test_receivers_share_tokens():
    counts = np.zeros((6, 1, 1), np.int32)
    y = tensor(counts)
    channel = Channel("c", 2)
    x = tiles(6)
    a, b = map(tensor, x)
    sender = process("sender").produces(channel).body(for_each(6, lambda t: send(channel, call(t, a, b))))
    taker = process("taker").consumes(channel).body(consume(channel, lambda t: task(mark, [t], {"y": y[t]})))
    run(connect([sender, replicate(taker, 3)]).compile())
    assert counts.ravel().tolist() == [1] * 6


def deadlocked():
    x = tiles(4)
    a, b = map(tensor, x)
    there, back = Channel("there", 0), Channel("back", 0)
    first = process("first").consumes(back).produces(there)
    second = process("second").consumes(there).produces(back)
    return connect(
        [
            first.body(consume(back, lambda t: send(there, call(t, a, b)))),
            second.body(consume(there, lambda t: send(back, call(t, a, b)))),
        ],
        [there, back],
    )


def test_a_deadlock_is_told():
    program = deadlocked().compile()
    program.execute()
    with pytest.raises(ExecutionError, match="first waits for a token of back from second"):
        program.synchronize()


def test_wrong_pipelines():
    x = tiles(4)
    a, b = map(tensor, x)
    channel, other = Channel("c"), Channel("d")
    sends = for_each(4, lambda t: send(channel, call(t, a, b)))
    takes = consume(channel, lambda t: call(t, a, b))
    cases = [
        (connect([process("p").consumes(channel).body(takes)], [channel]), "No process sends"),
        (connect([process("p").produces(channel).body(sends)], [channel]), "No process consumes"),
        (connect([process("p").body(sends)], [channel]), "does not declare"),
        (connect([process("p").produces(channel).body(sends)], [other]), "not among those that are connected"),
        (sends, "not among those that are connected"),
    ]
    for pipeline, message in cases:
        with pytest.raises(CompileError, match=message):
            pipeline.compile()
    with pytest.raises(TypeError, match="needs a task"):
        send(channel, takes)
    with pytest.raises(TypeError, match="needs processes"):
        connect([process("p")])
    with pytest.raises(ValueError, match="depth"):
        Channel("c", -1)


def test_channels_of_the_host():
    channel = Channel[int]("c", depth=2)
    assert channel.is_open() and channel.empty() and not channel.full()
    assert [try_send(channel, 1), try_send(channel, 2), try_send(channel, 3)] == [True, True, False]
    assert channel.size() == 2 and channel.full()
    channel.close()
    with pytest.raises(ChannelClosed):
        try_send(channel, 4)
    event = Event("e")
    assert not query(event)
    with pytest.raises(ChannelClosed, match="not recorded"):
        synchronize(event)
    record(event)
    synchronize(event)
    assert query(event)
