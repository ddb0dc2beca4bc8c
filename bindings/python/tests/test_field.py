"""class Runtime: every method, copy-back and release also after errors, builders that fail."""

import os
import subprocess
import sys

import pytest
from conftest import ONE_TASK

from pto_runtime import FaultError, HostError, RuntimeBuilder
from pto_runtime.runner import Example


def run(example, **options):
    return Example(example.kernels, example.golden).run({}, **options)


METHODS = """
    int a = runtime->add_task(words, 2, 0, CoreType::AIV);
    int b = runtime->add_task(words, 2, 0, CoreType::AIV);
    int c = runtime->add_task(words, 2, 0, 1);
    runtime->add_successor(a, b);
    runtime->add_successor_conditional(a, c);
    CHECK(runtime->get_task_count() == 3 && runtime->get_task(3) == nullptr && runtime->get_task(-1) == nullptr);
    Task *task = runtime->get_task(a);
    CHECK(task->task_id == a && task->num_args == 2 && task->args[0] == words[0] && task->core_type == CoreType::AIV);
    CHECK(task->fanin == 0 && task->fanout_count == 2 && task->fanout[0] == b && task->fanout[1] == c);
    CHECK(runtime->get_task(b)->fanin.load() == 1 && runtime->get_task(c)->core_type == CoreType::AIV);
    int ready[RUNTIME_MAX_TASKS > 3 ? 4 : 1];
    CHECK(runtime->get_initial_ready_tasks(ready) == 1 && ready[0] == a);
    CHECK(runtime->get_initial_ready_tasks(nullptr) == 1);
    /* Two of the tasks do nothing: no elements. */
    uint64_t none[] = {words[0], 0};
    runtime->get_task(b)->args[1] = none[1];
    runtime->get_task(c)->args[1] = none[1];
    CHECK(runtime->get_function_bin_addr(0) != 0 && runtime->get_function_bin_addr(0) == runtime->kernel_addrs[0]);
    CHECK(runtime->get_function_bin_addr(-1) == 0 && runtime->get_function_bin_addr(1) == 0);
    runtime->set_function_bin_addr(1023, 5);
    CHECK(runtime->get_function_bin_addr(1023) == 5);
    runtime->get_task(a)->function_bin_addr = runtime->kernel_addrs[0];
    CHECK(runtime->get_tensor_pair_count() == 1 && runtime->get_tensor_pairs()[0].dev_ptr == values);
    TensorPair pair = runtime->get_tensor_pairs()[0];
    runtime->clear_tensor_pairs();
    CHECK(runtime->get_tensor_pair_count() == 0);
    runtime->record_tensor_pair(pair.host_ptr, pair.dev_ptr, pair.size);
    runtime->record_device_alloc(values);
    CHECK(runtime->get_device_alloc_count() == 1 && runtime->get_device_allocs()[0].dev_ptr == values);
    runtime->clear_device_allocs();
    runtime->record_device_alloc(runtime->host_api.device_malloc(64));
    void *freed = runtime->host_api.device_malloc(64);
    runtime->host_api.device_free(freed);
    CHECK(runtime->host_api.device_malloc(1ul << 60) == nullptr);
    float back[16];
    CHECK(runtime->host_api.copy_from_device(back, values, sizeof back) == 0 && back[3] == 0);
    CHECK(runtime->get_aicpu_orch_so_data() == nullptr && runtime->get_aicpu_orch_so_size() == 0);
    CHECK(runtime->try_set_aicpu_orch_so("bytes", 5) && runtime->get_aicpu_orch_so_size() == 5);
    CHECK(static_cast<const char *>(runtime->get_aicpu_orch_so_data())[4] == 's');
    runtime->set_aicpu_orch_so("more", 4);
    CHECK(runtime->get_aicpu_orch_so_size() == 4 && runtime->worker_count == 12);
    runtime->print_runtime();
    return 0;
"""
CHECK = '#include <cstdio>\n#define CHECK(c) do { if (!(c)) { std::printf("line %d: %s\\n", __LINE__, #c); return -9; } } while (0)\n'


def test_every_method_of_the_class(example, capfd):
    example.body(METHODS)
    source = (example.kernels / "orch.cpp").read_text()
    (example.kernels / "orch.cpp").write_text(CHECK + source)
    report = run(example)
    assert (report.tasks, report.edges) == (3, 2)
    out = capfd.readouterr().out
    assert "Runtime: 3 tasks, 2 edges, 1 ready at the start" in out and "fanout [1, 2]" in out


def free_bytes(runtime):
    return runtime.device.memory[1]


def prepared(example):
    """The runtime with its kernel, and what to initialise it with; for tests that look at what is left."""
    made = Example(example.kernels, example.golden)
    orchestration, kernels, env = made.compile()
    runtime = RuntimeBuilder(platform="a2a3sim").build(made.runtime, block_dim=4)
    runtime.register_kernel(0, "aiv", kernels[0])
    return made, runtime, orchestration, env


def test_results_come_back_and_memory_is_freed_also_after_an_error(example):
    made, runtime, orchestration, _ = prepared(example)
    with runtime:
        before = free_bytes(runtime)
        arrays, _ = made.tensors({})
        runtime.initialize(orchestration, "build", arrays.values())
        assert free_bytes(runtime) < before
        runtime.launch()
        assert (arrays["out_x"] == 0).all()
        held = free_bytes(runtime)
        runtime.finalize()
        assert (arrays["out_x"] == 1).all() and free_bytes(runtime) > held
        after_run = free_bytes(runtime)
        runtime.device.unregister_kernel(0)
        runtime.initialize(orchestration, "build", arrays.values())
        with pytest.raises(FaultError, match="BUILD_KERNEL_MISSING"):
            runtime.launch()
        runtime.finalize()
        assert free_bytes(runtime) == after_run and (arrays["out_x"] == 1).all()
        with pytest.raises(Exception, match="initialize first"):
            runtime.launch()


@pytest.mark.parametrize(
    "body, name, says",
    [
        ("return 7;", "ORCHESTRATION_FAILED", "returned 7"),
        ("volatile int *nowhere = nullptr; return *nowhere;", "ORCHESTRATION_FAILED", "raised SIGSEGV"),
        ("runtime->add_task(words, 200, 0, 1); return 0;", "BUILD_TOO_MANY_ARGS", "200 arguments"),
        ("runtime->add_task(words, 2, 4000, 1); return 0;", "BUILD_UNKNOWN_FUNC", "4000"),
        ("runtime->add_task(words, 2, 0, 9); return 0;", "BUILD_UNKNOWN_KIND", "core type 9"),
        ("runtime->add_successor(0, 1); return 0;", "BUILD_UNKNOWN_TASK", "task 0"),
        ("runtime->record_tensor_pair(nullptr, values, 4); return 0;", "INVALID_ARGUMENT", "record_tensor_pair"),
        ("runtime->host_api.copy_to_device(words, values, 8); return 0;", "COPY_OUT_OF_RANGE", "copy of 8 bytes"),
        ("return runtime->host_api.device_malloc(1ul << 60) ? 0 : -5;", "ORCHESTRATION_FAILED", "GM is full"),
        ("runtime->build_mode = 5; return 0;", "INVALID_ARGUMENT", "build_mode is 5"),
        ("std::vector<char> b(RUNTIME_MAX_AICPU_ORCH_SO_SIZE + 1); return !runtime->try_set_aicpu_orch_so(b.data(), b.size());",
         "ORCHESTRATION_FAILED", "plugin has 4194305 bytes"),
    ],
)
def test_an_orchestration_that_fails_says_why(example, body, name, says):
    example.body(body)
    source = (example.kernels / "orch.cpp").read_text()
    (example.kernels / "orch.cpp").write_text("#include <vector>\n" + source)
    with pytest.raises((FaultError, HostError)) as caught:
        run(example)
    assert caught.value.name == name and says in caught.value.message


def test_functions_and_objects_that_are_not_there(example):
    example.config((example.kernels / "kernel_config.py").read_text().replace('"build"', '"no_such"'))
    with pytest.raises(HostError, match="has no function `no_such`"):
        run(example)
    made, runtime, _, _ = prepared(example)
    with runtime, pytest.raises(HostError, match="LOAD_FAILED"):
        runtime.initialize("/no/such.so", "build", [])


ADD = "int task = runtime->aicpu_build_api.add_task(runtime, words, 2, 0, CoreType::AIV, 0);"
PUBLISH = " runtime->aicpu_build_api.publish_task(runtime, task); return 0;"


def test_a_builder_builds_under_another_name_and_by_the_named_functions(example):
    example.plugin(
        "int task = aicpu_runtime_add_task(runtime, words, 2, 0, CoreType::AIV, runtime->kernel_addrs[0]);"
        "uint64_t none[] = {words[0], 0};"
        "int last = runtime->add_task(none, 2, 0, CoreType::AIV);"
        "aicpu_runtime_add_successor_conditional(runtime, task, last);"
        "aicpu_runtime_publish_task(runtime, task); aicpu_runtime_publish_task(runtime, last);"
        "void *memory = runtime->aicpu_build_api.device_malloc(64); runtime->aicpu_build_api.device_free(memory);"
        "return memory != nullptr && runtime->get_task_count() == 2 && runtime->orch_argc == 2 ? 0 : 5;",
        function="my_builder",
    )
    for build_mode in ("sequential", "concurrent"):
        report = run(example, build_mode=build_mode, trace=True)
        assert dict(report.trace.run)["build mode"] == build_mode
        assert (report.tasks, report.edges, report.runtime) == (2, 1, "aicpu_build_graph")


@pytest.mark.parametrize(
    "body, name, says",
    [
        (ADD + " return 3;", "BUILD_FAILED", "build_graph_aicpu"),
        (ADD + " return 0;", "BUILD_NOT_PUBLISHED", "not published"),
        ("runtime->aicpu_build_api.publish_task(runtime, 4); return 0;", "BUILD_UNKNOWN_TASK", ""),
        ("runtime->add_task(words, 2, 77, 1); return 0;", "BUILD_KERNEL_MISSING", ""),
        (ADD + " volatile int *nowhere = nullptr; return *nowhere + task;", "BUILDER_SIGNAL", "`build_graph_aicpu` raised SIGSEGV"),
        ("std::abort();", "BUILDER_SIGNAL", "`build_graph_aicpu` raised SIGABRT"),
        ('throw std::runtime_error("lost");', "BUILDER_SIGNAL", "`build_graph_aicpu` raised SIGABRT"),
    ],
)
def test_a_builder_that_fails_is_named_and_the_process_lives(example, body, name, says):
    example.plugin(body)
    with pytest.raises((FaultError, HostError)) as caught:
        run(example)
    assert caught.value.name == name and says in caught.value.message, str(caught.value)
    example.plugin(ADD + PUBLISH)
    assert run(example).tasks == 1


def test_the_environment_and_the_orchestration_choose_the_build_mode(example):
    example.plugin(ADD + PUBLISH)
    text = (example.kernels / "kernel_config.py").read_text()
    for value, mode in (("0", "sequential"), ("1", "concurrent")):
        example.config(text + f'RUNTIME_ENV = {{"PTO_AICPU_BUILD_GRAPH_BUILD_MODE": "{value}"}}\n')
        assert dict(run(example, trace=True).trace.run)["build mode"] == mode
    source = (example.kernels / "orch.cpp").read_text()
    (example.kernels / "orch.cpp").write_text(source.replace("runtime->orch_argc = 2;", "runtime->orch_argc = 2; runtime->build_mode = 0;"))
    assert dict(run(example, trace=True).trace.run)["build mode"] == "sequential"


def test_a_plugin_that_cannot_be_used(example):
    example.plugin(ADD + PUBLISH)
    config = (example.kernels / "kernel_config.py").read_text()
    example.config(config.replace('"build_graph_aicpu"', '"no_such"'))
    with pytest.raises(HostError, match="has no function `no_such`"):
        run(example)
    example.config(config)
    example.body(ONE_TASK)
    with pytest.raises(HostError, match="PLUGIN_MISSING"):
        run(example)
    example.body('return runtime->try_set_aicpu_orch_so("no object", 9) ? 0 : -1;')
    with pytest.raises(HostError, match="LOAD_FAILED"):
        run(example)


def test_a_signal_outside_of_foreign_code_still_ends_the_process(example):
    example.body("volatile int *nowhere = nullptr; return *nowhere;")
    program = (
        "import ctypes, sys; from pto_runtime.runner import Example\n"
        "try: Example(sys.argv[1], sys.argv[2]).run({})\n"
        "except Exception as error: print(error.name, flush=True)\n"
        "ctypes.string_at(0)\n"
    )
    command = [sys.executable, "-c", program, str(example.kernels), str(example.golden)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ)
    assert done.stdout == "ORCHESTRATION_FAILED\n" and done.returncode == -11
