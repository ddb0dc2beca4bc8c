"""Schedules on the v9 clock: the known cycles of 8 equal tasks of 32 cycles."""

import numpy as np
import pytest
from wsp import copy, run, tensor, tiles

from pto_wsp import (
    AutoScheduler,
    CompileError,
    Deps,
    DispatchPolicy,
    ExecutionError,
    P,
    Pools,
    ReadyPolicy,
    StartPolicy,
    TaskWindow,
    TimingPolicy,
    TracePolicy,
    WindowMode,
    SearchSpace,
    auto_schedule,
    workload,
)
from pto_wsp.scalar_expr import symbol_u64


def eight(names=None):
    x, y = tiles(8)
    a, b = tensor(x), tensor(y)

    @workload
    def tasks():
        for t in P(8, names=names):
            copy[t](a[t], b[t])

    return tasks(), x, y


def window(size, mode=WindowMode.STALL):
    return TaskWindow(size, "tasks", mode)


ROUND_ROBIN = DispatchPolicy.round_robin
SCHEDULES = [
    (lambda w: w, 256),
    (lambda w: w.dispatch(ROUND_ROBIN(4)), 64),
    (lambda w: w.dispatch(ROUND_ROBIN(4)).task_graph(window=window(2)), 128),
    (lambda w: w.dispatch(ROUND_ROBIN(4)).task_graph(window=window(3)), 96),
    (lambda w: w.dispatch(DispatchPolicy.hash(lambda t: t.params[0], 3)), 96),
    (lambda w: w.dispatch(DispatchPolicy.affinity(lambda t: -t.params[0], 3)), 128),
    (lambda w: w.dispatch(DispatchPolicy.dispatch_by(lambda t: t.get("b") // 2, 4)), 64),
    (lambda w: w.dispatch(DispatchPolicy.work_steal()).streams(4), 64),
    (lambda w: w.streams(4), 64),
    (lambda w: w.streams(4).stream_by(lambda t: t.params[0] % 2), 128),
    (lambda w: w.streams(4).timing(TimingPolicy.immediate), 64),
    (lambda w: w.streams(4).task_graph(), 256),
    (lambda w: w.dispatch(ROUND_ROBIN(4)).task_graph(deps=Deps.infer_bytes_overlap(), trace=TracePolicy.cycles()), 64),
]


@pytest.mark.parametrize("number", range(len(SCHEDULES)))
def test_eight_tasks(number):
    schedule, cycles = SCHEDULES[number]
    tasks, x, y = eight()
    assert run(schedule(tasks).compile()) == cycles
    np.testing.assert_array_equal(y, x)


def test_a_full_window_aborts():
    program = eight()[0].dispatch(ROUND_ROBIN(4)).task_graph(window=window(2, WindowMode.ABORT)).compile()
    program.execute()
    with pytest.raises(ExecutionError, match="window"):
        program.synchronize()


def test_a_full_window_is_counted():
    program = eight()[0].dispatch(ROUND_ROBIN(4)).task_graph(window=window(2, WindowMode.BENCHMARK)).compile()
    assert run(program) == 64
    assert program.stats.window_overflows == 6
    assert program.stats.parallel_tasks > 0


def test_keys_read_symbols_of_the_run():
    tasks, _, _ = eight()
    dispatch = DispatchPolicy.affinity(lambda t: t.tags["mask"] & t.params[0].cast_u64(), 2)
    program = tasks.dispatch(dispatch).compile()
    program.set_symbol_u64("mask", 0)
    assert run(program) == 256
    program.set_symbol_u64("mask", 1)
    assert run(program) == 128
    special = DispatchPolicy.affinity(lambda t: (t.params[0] == symbol_u64("one").cast_i64()).where(0, 1), 2)
    program = tasks.dispatch(special).compile()
    program.set_symbol_u64("one", 3)
    assert run(program) == 7 * 32


REFUSED = [
    (lambda w: w.timing(TimingPolicy.batched(4)), "TimingPolicy.batched"),
    (lambda w: w.timing(TimingPolicy.rate_limit(1.0)), "TimingPolicy.rate_limit"),
    (lambda w: w.task_graph(pools=Pools.by_exec_unit()), "Pools.by_exec_unit"),
    (lambda w: w.task_graph(ready=ReadyPolicy.priority(lambda t: 0)), "ReadyPolicy.priority"),
    (lambda w: w.task_graph(start=StartPolicy.threshold(4)), "StartPolicy.threshold"),
    (lambda w: w.task_graph(trace=TracePolicy.cycles(lambda t: 1)), "cost function"),
    (lambda w: w.task_graph(window=TaskWindow(64, "bytes")), "window in bytes"),
    (lambda w: w.dispatch(ROUND_ROBIN(2)).stream_by(lambda t: t.params[0]), "both choose the worker"),
    (lambda w: w.dispatch(DispatchPolicy.hash(lambda t: t.id, 2)), "t.params"),
    (lambda w: w.dispatch(DispatchPolicy.hash(lambda t: t.params[9], 2)), "none with number 9"),
    (lambda w: w.dispatch(DispatchPolicy.hash(lambda t: t.get("z"), 2)), "no loop variable z"),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_the_clock_does_not_do_is_an_error(number):
    schedule, message = REFUSED[number]
    with pytest.raises(CompileError, match=message):
        schedule(eight()[0]).compile()


def test_windows_have_units():
    with pytest.raises(ValueError, match="unit"):
        TaskWindow(4, "pages")


def test_a_search_finds_the_fewest_cycles():
    tasks, x, y = eight()
    space = SearchSpace().add_dispatch(["round_robin", "hash"], [1, 3, 4, 8, 16])
    best, summary = AutoScheduler(tasks).explore(space)
    assert (best.dispatch, best.dispatch_param, summary.best_cycles) == ("round_robin", 8, 32)
    assert summary.speedup == 8 and len(summary.results) == space.size() == 10
    assert not y.any(), "trials run on copies"
    assert run(auto_schedule(tasks).compile()) == 32
    with pytest.raises(ValueError, match="no dispatch"):
        space.add_dispatch(["random"])
    _, summary = AutoScheduler(tasks).explore(SearchSpace().add_timing(["immediate", "batched"], [2]))
    assert [one.success for one in summary.results] == [True, False]


def test_the_class_of_schedules_stands_beside_that_of_workloads():
    from pto_wsp.workload import Schedule, Workload

    assert isinstance(Workload("empty")._schedule, Schedule) and Schedule().to_dict() == {}
