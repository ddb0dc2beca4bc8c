"""Streaming builder plugins in C++ (pto_stream.hpp): what they compute, how long they may be, what is refused."""

import pytest

from pto_runtime import FaultError
from pto_runtime.runner import Example

# The array as a tensor of 16 floats; SUBMIT adds 1 to it, through a tensor of the heap where one is named.
STREAM = """
    #include <cstdlib>
    #include "pto_stream.hpp"
    extern "C" int build_graph_aicpu(Runtime *runtime) {
        pto::Stream stream(runtime);
        const pto::Tensor x = pto::dense(runtime->orch_args[0], PTO_ELEMENT_TYPE_F32, {16});
        const auto add_one = [&](const pto::Tensor &tensor, uint32_t n) {
            return stream.submit(0, CoreType::AIV, {pto::inout(tensor), pto::scalar(n)});
        };
        (void)add_one;
        BODY
    }
"""
DONE = "return stream.status();"


def written(example, body):
    example.plugin("return 0;")
    config = (example.kernels / "kernel_config.py").read_text()
    example.config(config.replace("aicpu_build_graph\"", "tensormap_and_ringbuffer\""))
    example.write("kernels/plugin.cpp", STREAM.replace("BODY", body))
    return Example(example.kernels, example.golden)


def test_tensors_make_the_edges(example):
    report = written(
        example,
        """
        const pto::Tensor low = x.slice(0, 0, 8), high = x.slice(0, 8, 8);
        if (add_one(low, 8) != 0 || add_one(high, 8) != 1 || high.address() != x.base + 32) { return 3; }
        /* Waits for both; and so that the sum stays one: no elements. */
        add_one(x, 0);
        pto::Scope scope(stream);
        const pto::Tensor other = stream.alloc(PTO_ELEMENT_TYPE_F32, {4, 4});
        stream.submit(0, CoreType::AIV, {pto::out(other.step(0, 2).transpose(0, 1)), pto::scalar(0)}, {0, 1});
        """
        + DONE,
    ).run({}, trace=True)
    assert (report.tasks, report.runtime) == (4, "tensormap_and_ringbuffer")
    assert sorted(report.trace.edges) == [(0, 2), (0, 3), (1, 2), (1, 3)]


def test_elements_are_read_and_written(example):
    written(
        example,
        """
        add_one(x, 16);
        float value = 0;
        const uint64_t bits = stream.get(x, {3});
        static_assert(sizeof bits == 8, "a word");
        const uint32_t low = static_cast<uint32_t>(bits);
        __builtin_memcpy(&value, &low, 4);
        if (value != 1.0f) { return 4; }
        stream.set(x, {3}, 0);
        add_one(x.slice(0, 3, 1), 1);
        """
        + DONE,
    ).run({})


LONG = """
    for (int i = 0; i < 2000; i++) {
        const int64_t task = stream.add(0, CoreType::AIV, {pto::inout(x), pto::scalar(0)});
        if (task != 2 * i) { return 5; }
        if (i > 0) { runtime->add_successor_conditional(2 * i - 1, static_cast<int>(task)); }
        aicpu_runtime_publish_task(runtime, static_cast<int>(task));
        if (stream.submit(0, CoreType::AIV, {pto::no_dep(x), pto::scalar(0)}, {task}) != task + 1) { return 6; }
    }
    add_one(x, 16);
"""


def test_a_run_may_be_longer_than_its_window(example):
    """Numbers of tasks go on where slots come again; also those of programs without tensors."""
    report = written(example, LONG + DONE).run({}, window=64, heap_bytes=1 << 16)
    assert report.tasks == 4001
    example.plugin(
        """
        for (int i = 0; i < 1000; i++) {
            uint64_t none[] = {words[0], i == 500 ? words[1] : 0};
            int task = runtime->add_task(none, 2, 0, 1);
            if (task != i || runtime->get_task_count() != i + 1) { return 5; }
            if (i > 0) { runtime->add_successor_conditional(i - 1, i); }
            aicpu_runtime_publish_task(runtime, i);
        }
        return 0;"""
    )
    plain = Example(example.kernels, example.golden, runtime="tensormap_and_ringbuffer")
    assert plain.run({}, window=32).tasks == 1000


def raw(change):
    """One submission through the table, with something wrong in it."""
    return f"""
        pto_stream_task task = {{}};
        task.struct_size = sizeof task;
        task.core_type = 1;
        pto_stream_arg args[2] = {{pto::inout(x), pto::scalar(16)}};
        const pto_stream_task *passed = &task;
        const int64_t *after = nullptr;
        uint32_t arg_count = 2, after_count = 0;
        {change}
        if (runtime->pto_stream->submit(runtime, passed, args, arg_count, after, after_count) != -1) {{ return 9; }}
        /* Whatever is returned, the first failure counts, and nothing is done after it. */
        return add_one(x, 16) == -1 && stream.status() == -1 ? 0 : 8;
    """


WRONG = [
    ("task.struct_size = 8;", "BUILD_FOREIGN_STRUCT"),
    ("task.struct_size = 1 << 20;", "BUILD_FOREIGN_STRUCT"),
    ("task.reserved = 1;", "BUILD_FOREIGN_STRUCT"),
    ("struct { pto_stream_task known; uint64_t later; } more = {task, 1}; more.known.struct_size = sizeof more; passed = &more.known;",
     "BUILD_FOREIGN_STRUCT"),
    ("passed = nullptr;", "BUILD_NULL_POINTER"),
    ("after_count = 1;", "BUILD_NULL_POINTER"),
    ("static const int64_t unknown[] = {0}; after = unknown; after_count = 1;", "BUILD_UNKNOWN_TASK"),
    ("task.func_id = 77;", "BUILD_KERNEL_MISSING"),
    ("task.func_id = 1u << 20;", "BUILD_UNKNOWN_FUNC"),
    ("task.core_type = 9;", "BUILD_UNKNOWN_KIND"),
    ("arg_count = 200;", "BUILD_TOO_MANY_ARGS"),
    ("args[0].kind = 7;", "STREAM_ARG_KIND"),
    ("args[0].tensor.element = 99;", "STREAM_VIEW_ELEMENT"),
    ("args[0].tensor.rank = 6;", "STREAM_VIEW_RANK"),
    ("args[0].tensor.offset = 1;", "STREAM_VIEW_RANGE"),
    ("args[0].tensor.heap_depth = 1; args[0].tensor.heap_serial = 99;", "STREAM_STALE_TENSOR"),
    ("args[1] = args[0];", "STREAM_OUT_OVERLAP"),
]
MORE = [
    ("add_one(x.slice(0, 10, 10), 1);", "STREAM_VIEW_RANGE"),
    ("add_one(x.slice(3, 0, 1), 1);", "STREAM_VIEW_RANK"),
    ("add_one(pto::dense(x.base, PTO_ELEMENT_TYPE_F32, {1, 1, 1, 1, 1, 16}), 1);", "STREAM_VIEW_RANK"),
    ("pto::Tensor kept = {}; { pto::Scope scope(stream); kept = stream.alloc(PTO_ELEMENT_TYPE_U8, {64}); } add_one(kept, 0);",
     "STREAM_STALE_TENSOR"),
    ("pto::Scope scope(stream, 7);", "STREAM_SCOPE_MODE"),
    ("pto_stream_scope scope = {}; runtime->pto_stream->close_scope(runtime, &scope);", "STREAM_SCOPE_NOT_OPEN"),
    ("pto_stream_scope scope = {}; runtime->pto_stream->open_scope(runtime, 0, &scope);", "STREAM_SCOPE_LEFT_OPEN"),
    ("runtime->pto_stream->open_scope(runtime, 0, nullptr);", "BUILD_NULL_POINTER"),
    ("stream.alloc(99, {1});", "STREAM_VIEW_ELEMENT"),
    ("stream.alloc(PTO_ELEMENT_TYPE_F64, {1, 1, 1, 1, 1, 1});", "STREAM_VIEW_RANK"),
    ("stream.alloc(PTO_ELEMENT_TYPE_F64, {1u << 28});", "STREAM_HEAP_RING"),
    ("stream.get(x, {16});", "STREAM_VIEW_RANGE"),
    ("stream.get(pto::dense(64, PTO_ELEMENT_TYPE_U32, {4}), {0});", "BUILD_GM_RANGE"),
    ("runtime->pto_stream->get(runtime, &x, nullptr, 1, nullptr);", "BUILD_NULL_POINTER"),
]
# One plugin for all of them: it is compiled once.
CASES = [(raw(change), name) for change, name in WRONG] + [(f"{body} return 0;", name) for body, name in MORE]
SWITCH = "switch (std::atoi(std::getenv(\"PTO_TEST_CASE\"))) {" + "".join(
    f"\ncase {number}: {{ {body} }}" for number, (body, _) in enumerate(CASES)
) + "\ndefault: return 100; }"


@pytest.mark.parametrize("number", range(len(CASES)), ids=[f"{n}-{name}" for n, (_, name) in enumerate(CASES)])
def test_what_is_wrong_is_the_fault_that_it_is_in_rust(example, monkeypatch, number):
    monkeypatch.setenv("PTO_TEST_CASE", str(number))
    with pytest.raises(FaultError) as caught:
        written(example, SWITCH).run({})
    assert caught.value.name == CASES[number][1], str(caught.value)


def test_tensors_need_a_run_that_streams(example):
    made = written(example, "add_one(x, 16);" + DONE)
    with pytest.raises(FaultError, match="BUILD_NOT_STREAMING"):
        Example(example.kernels, example.golden, runtime="aicpu_build_graph").run({})
    assert made.run({}).tasks == 1
