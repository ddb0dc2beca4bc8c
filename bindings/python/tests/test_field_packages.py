"""The field's Python interface: scene tests as files, under pytest and as a folder; workers; errors. Kernels are of the C++ compiler."""

import json
import os
from pathlib import Path

import interpreter
import numpy as np
import pytest
from simpler.chip_worker import _Progress, check_target
from simpler.task_interface import CallConfig, ChipCallable, DataType, TaskArgs, TensorArgType, scalar_to_uint64
from simpler.failure import WorkerStateError
from simpler.worker import Worker
from simpler.worker_chip_orch_comm import NotifyOp, Region, WaitCmp

from simpler_setup import KernelCompiler, TaskArgsBuilder, TensorArg, extract_text_section, scene_test
from simpler_setup.comparison import difference
from simpler_setup.scene_case import Selection
from simpler_setup.tools.swimlane_converter import read_perf_data
from _task_interface import CoreCallable
from pto_runtime.errors import ConfigError

FOLDER = Path(__file__).parent / "field"


def program(entry, platform="a2a3sim"):
    compiler = KernelCompiler(platform)
    kernel = compiler.compile_incore(FOLDER / "kernels/add.cpp", "aiv")
    source = compiler.compile_orchestration("tensormap_and_ringbuffer", FOLDER / "kernels/orchestration.cpp")
    return ChipCallable.build([], entry, source, [(0, CoreCallable.build([], kernel))])


def python(*words, cwd=FOLDER, **variables):
    env = {**os.environ, **variables}
    return interpreter.run(*words, cwd=cwd, env=env)


def test_a_file_runs_its_cases_and_compares():
    done = python("test_scene.py", "-p", "a2a3sim")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "TestTwiceTheSum::right: PASSED" in done.stdout
    assert "TestExchange::pair: PASSED" in done.stdout
    assert "wrong" not in done.stdout
    done = python("test_scene.py", "-p", "a2a3sim", "--manual", "only")
    assert done.returncode == 1
    assert "64 of 64 elements differ; the largest error is 64 at [63]: 128.0, golden 192.0" in done.stdout
    assert python("test_scene.py", "-p", "a2a3sim", "--case", "nothing").returncode == 2


@pytest.mark.parametrize("hosting", ["threads", "pool", "serial", "virtual"])
def test_groups_of_2_and_4_ranks_exchange_tensors(hosting):
    done = python("collectives.py", "-p", "a2a3sim", PTO_FIELD_HOSTING=hosting)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": PASSED") == 10, done.stdout


def test_a_folder_becomes_a_table(tmp_path):
    table = tmp_path / "table.json"
    run = ("-m", "simpler_setup.folder", FOLDER, "--pto-isa", tmp_path, "--work", tmp_path / "work", "--table", table)
    done = python(*run, cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "scene cases: 2 of 3 that a simulator can run passed; 1 need hardware" in done.stdout
    rows = {row["case"]: row for row in json.loads(table.read_text())}
    assert rows["TestTwiceTheSum::right"]["state"] == "passed"
    assert rows["TestTwiceTheSum::device"]["state"] == "hardware only"
    assert "MismatchError" in rows["TestTwiceTheSum::wrong"]["reason"]


def test_a_conftest_may_have_options_of_the_same_names(tmp_path):
    programs = tmp_path / "programs"
    programs.mkdir()
    option = 'def pytest_addoption(parser):\n    parser.addoption("--platform", default="a2a3")\n    parser.getgroup("own").addoption("--device")\n    parser.addoption("--own", default=3)\n'
    (programs / "conftest.py").write_text(option)
    test = 'def test_own(st_platform, request):\n    assert (st_platform, request.config.option.own) == ("a2a3sim", 3)\n'
    (programs / "test_own.py").write_text(test)
    done = python("-m", "simpler_setup.folder", programs, "--work", tmp_path / "work", cwd=tmp_path)
    assert "test functions: 1 of 1 that a simulator can run passed" in done.stdout, done.stdout + done.stderr


def test_an_interrupted_folder_goes_on_and_failed_cases_run_again(tmp_path):
    run = ("-m", "simpler_setup.folder", FOLDER, "--work", tmp_path / "work")
    refused = python(*run, "--resume", cwd=tmp_path)
    assert refused.returncode == 1 and "no earlier run to go on with" in refused.stderr
    first = python(*run, cwd=tmp_path)
    again = python(*run, "--resume", cwd=tmp_path)
    assert "[1 of 1]" in first.stdout and "[1 of 1]" not in again.stdout
    sums = [done.stdout[done.stdout.index("scene cases:") :] for done in (first, again)]
    assert sums[0] == sums[1]
    assert "[1 of 1]" in python(*run, "--failed", cwd=tmp_path).stdout, "the file has a case that failed"


def test_diagnostics_are_files_that_their_tools_read(tmp_path):
    options = ("--enable-chip-swimlane", "--enable-dep-gen", "--enable-pmu", "--enable-scope-stats", "--dump-args=2")
    scene = FOLDER / "test_scene.py"
    done = python(scene, "-p", "a2a3sim", "--case", "TestTwiceTheSum::right", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (folder,) = (tmp_path / "outputs").iterdir()
    deps = json.loads((folder / "deps.json").read_text())
    assert [edge["source"] for edge in deps["edges"]] == ["creator", "creator"], "the second task reads the first one's tensor twice"
    assert "waits for r0t0 (creator)" in (folder / "deps_viewer.txt").read_text()
    scopes = [json.loads(line) for line in (folder / "scope_stats/scope_stats.jsonl").read_text().splitlines()]
    assert (scopes[0]["version"], scopes[0]["total"], scopes[2]["task_window_end"]) == (6, 2, 2)
    assert len((folder / "pmu.csv").read_text().splitlines()) == 3
    assert "func id 0 have no tile instruction" in (folder / "pmu_notes.txt").read_text()
    shown = python("-m", "simpler_setup.tools.dump_viewer", folder / "args_dump", "--stage", "after", "--export", cwd=tmp_path)
    assert shown.stdout.count("after_completion") == 2, shown.stdout + shown.stderr
    swimlane = read_perf_data(folder / "chip_swimlane_records.json")
    assert [task["func_id"] for task in swimlane["tasks"]] == [0, 0] and swimlane["chip_swimlane_level"] == 4
    assert all(task["dispatch_time_us"] <= task["start_time_us"] <= task["end_time_us"] <= task["finish_time_us"] for task in swimlane["tasks"])
    phases = [record for thread in swimlane["aicpu_scheduler_phases"] for record in thread]
    assert sum(record["tasks_processed"] for record in phases if record["phase"] == "dispatch") == 2
    assert [record["phase"] for record in swimlane["aicpu_orchestrator_phases"][0]] == ["orch_submit"] * 2
    trace = tmp_path / "trace.json"
    python("-m", "simpler_setup.tools.swimlane_converter", folder / "chip_swimlane_records.json", "-o", trace, cwd=tmp_path)
    slices = [event["pid"] for event in json.loads(trace.read_text())["traceEvents"] if event["ph"] == "X"]
    assert (slices.count(1), slices.count(3), slices.count(4)) == (2, 2, 2) and slices.count(2) >= 4
    result = python("-m", "simpler_setup.tools.sched_overhead_analysis", "--chip-swimlane-records-json", folder / "chip_swimlane_records.json")
    assert "Fanout (consumers told): total edges=1, max_degree=1" in result.stdout and "Pop: hit=2" in result.stdout, result.stdout + result.stderr


def test_a_level_1_swimlane_has_no_phases_and_the_analysis_says_what_it_needs(tmp_path):
    done = python(FOLDER / "test_scene.py", "-p", "a2a3sim", "--case", "TestTwiceTheSum::right", "--enable-chip-swimlane", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (folder,) = (tmp_path / "outputs").iterdir()
    swimlane = read_perf_data(folder / "chip_swimlane_records.json")
    assert (swimlane["chip_swimlane_level"], len(swimlane["tasks"]), swimlane["aicpu_scheduler_phases"]) == (1, 2, [])
    result = python("-m", "simpler_setup.tools.sched_overhead_analysis", "--chip-swimlane-records-json", folder / "chip_swimlane_records.json")
    assert result.returncode == 2 and "--enable-dep-gen" in result.stderr


def test_reports_are_asked_for_by_name():
    case = (FOLDER / "test_scene.py", "-p", "a2a3sim", "--case", "TestTwiceTheSum::right")
    assert python(*case, PTO_FIELD_REPORTS="races, lines").returncode == 0
    refused = python(*case, PTO_FIELD_REPORTS="laces")
    assert refused.returncode == 1 and 'laces' in refused.stdout + refused.stderr and '"races" or "lines"' in refused.stdout + refused.stderr
    for hosting in ("pool", "serial", "virtual"):
        assert python(*case, PTO_FIELD_HOSTING=hosting).returncode == 0, hosting


@pytest.fixture
def on_qemu():
    """What runs programs on the emulated machine. `cargo xtask` says where the command is; by hand, PTO_COMMAND does."""
    if not os.environ.get("PTO_COMMAND"):
        pytest.skip("PTO_COMMAND names no command pto, which builds kernels for the emulated machine")
    return {"PTO_FIELD_HOSTING": "qemu"}


def test_a_scene_runs_on_the_emulated_machine(on_qemu):
    for platform in ("a2a3sim", "a5sim"):
        done = python("test_scene.py", "-p", platform, "--case", "TestTwiceTheSum::right", **on_qemu)
        assert done.returncode == 0 and "TestTwiceTheSum::right: PASSED" in done.stdout, done.stdout + done.stderr
    done = python("test_scene.py", "-p", "a2a3sim", "--case", "TestTwiceTheSum::wrong", "--manual", "only", **on_qemu)
    assert done.returncode == 1 and "64 of 64 elements differ" in done.stdout, done.stdout + done.stderr


def test_what_the_emulated_machine_has_not_is_named(on_qemu, tmp_path):
    def refused(*words, cwd=FOLDER, **variables):
        done = python(*words, cwd=cwd, **{**on_qemu, **variables})
        assert done.returncode != 0
        return done.stdout + done.stderr

    assert "a process has one emulated machine" in refused("test_scene.py", "-p", "a2a3sim", "--case", "TestExchange")
    case = ("test_scene.py", "-p", "a2a3sim", "--case", "TestTwiceTheSum::right")
    assert "neither swimlanes nor counters are kept on the device qemu" in refused(*case, "--enable-pmu", cwd=FOLDER, PTO_FIELD_OUTPUTS=str(tmp_path / "out"))
    assert "there is no command /nowhere" in refused(*case, PTO_COMMAND="/nowhere")
    (tmp_path / "kernels").mkdir()
    scene = (FOLDER / "test_scene.py").read_text()
    (tmp_path / "test_scene.py").write_text(scene)
    kernels = tmp_path / "kernels"
    for source in (FOLDER / "kernels").iterdir():
        (kernels / source.name).write_text(source.read_text())
    add = (FOLDER / "kernels/add.cpp").read_text()
    (kernels / "add.cpp").write_text(add.replace("#include", "#include <pto/pto-inst.hpp>\n#include", 1))
    assert "the headers of PTO-ISA do not compile for it" in refused(*case, cwd=tmp_path)
    (kernels / "add.cpp").write_text(add.replace("extern", "static int calls;\nextern", 1).replace("uint32_t count", "calls++;\n    uint32_t count", 1))
    assert "has variables (.bss: calls)" in refused(*case, cwd=tmp_path)


KERNEL_OF_FEBRUARY = """
#include "tensor.h"
extern "C" void kernel_entry(int64_t *args) {
    const Tensor *from = reinterpret_cast<const Tensor *>(args[0]);
    const Tensor *to = reinterpret_cast<const Tensor *>(args[2]);
    const float *a = from->data_as<float>();
    float *out = to->data_as<float>();
    for (uint64_t i = 0; i < to->numel(); i++) out[i] = a[i] * from_u64<float>(static_cast<uint64_t>(args[1]));
}
"""
PROGRAM_OF_FEBRUARY = """
#include "pto_runtime2.h"
#include "pto_shared_memory.h"
extern "C" void aicpu_orchestration_entry(void *memory, uint64_t *args, int count) {
    PTO2OrchestrationBeginInfo info{.sm_ptr = memory, .args = args, .arg_count = count, .expected_arg_count = EXPECTED};
    PTO2_ORCHESTRATION(rt, info) {
        Tensor a = make_tensor_external((void *)args[0], args[2]), out = make_tensor_external((void *)args[1], args[3]);
        Tensor half = make_tensor(args[2]);
        PTOParam first[] = {make_input_param(a), make_scalar_param(0x3f000000), make_output_param(half)};
        pto2_rt_submit_task(rt, 0, PTO2_WORKER_VECTOR, "half", first, 3);
        PTOParam second[] = {make_input_param(half), make_scalar_param(0x41000000), make_output_param(out)};
        pto2_rt_submit_task(rt, 0, PTO2_WORKER_VECTOR, "eight", second, 3);
    }
}
"""
CONFIG_OF_FEBRUARY = """
from pathlib import Path
HERE = Path(__file__).parent
ORCHESTRATION = {"source": str(HERE / "orchestration.cpp"), "function_name": "aicpu_orchestration_entry"}
KERNELS = [{"func_id": 0, "source": str(HERE / "scale.cpp"), "core_type": "aiv"}]
RUNTIME_CONFIG = {"runtime": "tensormap_and_ringbuffer", "aicpu_thread_num": 4, "block_dim": 3}
"""
GOLDEN_OF_FEBRUARY = """
import numpy as np
__outputs__ = ["f"]
TENSOR_ORDER = ["a", "f"]
RTOL = ATOL = 0.0
def generate_inputs(params):
    return {"a": np.arange(256, dtype=np.float32), "f": np.zeros(256, dtype=np.float32)}
def compute_golden(tensors, params):
    tensors["f"][:] = 4 * tensors["a"]
"""


@pytest.mark.parametrize(("expected", "code", "said"), [(5, 0, "case 0: PASSED, 2 tasks"), (6, 1, "expects 6 words, and gets 5")])
def test_a_streaming_program_of_february_runs(tmp_path, expected, code, said):
    files = {"scale.cpp": KERNEL_OF_FEBRUARY, "kernel_config.py": CONFIG_OF_FEBRUARY, "golden.py": GOLDEN_OF_FEBRUARY}
    files["orchestration.cpp"] = PROGRAM_OF_FEBRUARY.replace("EXPECTED", str(expected))
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    done = python("-m", "simpler_setup.february", "-k", tmp_path, "-g", tmp_path / "golden.py", "--hosting", "serial")
    assert done.returncode == code and said in done.stdout, done.stdout + done.stderr


def test_a_function_feeds_an_orchestration_that_runs():
    messages = [bytes([number]) * length for number, length in enumerate((1, 300, 0, 64, 200, 256, 3, 130))]
    answers = []

    def feed(orch, _args, config):
        queue = orch.create_worker_chip_queue(0, depth=4, input_arena_bytes=320, output_arena_bytes=320)
        words = TaskArgs()
        for word in queue.chip_task_arg_scalars():
            words.add_scalar(word)
        orch.submit_next_level(handle, words, config, worker=0)
        assert queue.output.try_peek() is None
        for message in messages:
            queue.input.enqueue(message or None, nbytes=len(message), timeout=60)
            answer = bytearray(len(message))
            queue.output.dequeue_into(answer, timeout=60)
            answers.append(bytes(answer))
        with pytest.raises(ValueError, match="the arena has 320"):
            queue.input.try_enqueue(bytes(321), 321)
        queue.request_stop(timeout=60)
        queue.free()
        with pytest.raises(WorkerStateError, match="given back"):
            queue.region.descriptor_scalars()

    with Worker(3, platform="a2a3sim", device_ids=[0]) as worker:
        handle = worker.register(program("echo"))
        worker.run(feed)
    assert answers == messages


def test_counters_of_a_region_are_compared_and_waits_end():
    region = Region(100, 128)
    counter = region.counter(64)
    counter.notify(5)
    counter.notify(-2, NotifyOp.Add)
    assert (counter.test(3, WaitCmp.EQ).matched, counter.test(3, WaitCmp.LT).observed) == (True, 3)
    with pytest.raises(TimeoutError, match="is 3 after 0 s, and GE 4 is waited for"):
        counter.wait(4, timeout=0)
    with pytest.raises(ValueError, match="the region has 100"):
        region.payload_write(99, b"ab")


@pytest.fixture
def worker():
    with Worker(2, platform="a2a3sim") as made:
        yield made


def test_memory_of_the_device_is_used_in_place(worker):
    handle = worker.register(program("twice_the_sum"))
    a, b = np.arange(64, dtype=np.float32), np.ones(64, dtype=np.float32)
    memory = [worker.malloc(a.nbytes) for _ in range(3)]
    worker.copy_to(memory[0], a)
    worker.copy_to(memory[1], b)
    args = TaskArgs()
    for one, tag in zip(memory, (TensorArgType.INPUT, TensorArgType.INPUT, TensorArgType.OUTPUT_EXISTING)):
        args.add_tensor(one.tensor((64,), DataType.FLOAT32), tag)
    config = CallConfig()
    config.runtime_env.ring_task_window = 16
    run = worker.submit(handle, args, config)
    run.wait(60)
    assert run.done
    found = np.zeros_like(a)
    worker.copy_from(found, memory[2])
    assert (found == 2 * (a + b)).all()
    assert worker.aicpu_dlopen_count == 1


def test_errors_have_the_texts_that_tests_match(worker, capfd):
    handle = worker.register(program("gives_up"))
    with pytest.raises(RuntimeError, match=r"(run_runtime|run) failed with code -9\b"):
        worker.run(handle)
    log = capfd.readouterr().err
    assert "orch_error_code=9" in log
    assert "EXPLICIT_ORCH_FATAL" in log
    assert "error hint:" in log
    with pytest.raises(RuntimeError, match="missing"):
        worker.register(program("missing"))
    with pytest.raises(RuntimeError, match=r"failed with code -1\b"):
        worker.run(worker.register(_with_config(program("twice_the_sum"))))


def _with_config(chip):
    chip.config_name = "twice_the_sum_config"
    return chip


def test_handles_count_and_capacity_is_named(worker):
    first, second = worker.register(print), worker.register(print)
    assert (first.hashid, first != second) == (second.hashid, True)
    worker.unregister(first)
    with pytest.raises(RuntimeError, match="not live"):
        worker.unregister(first)
    functions = [lambda _args, n=n: n for n in range(64)]
    with pytest.raises(RuntimeError, match="MAX_REGISTERED_CALLABLE_IDS"):
        for one in functions:
            worker.register(one)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: check_target("a2a3", "host_build_graph"), "a2a3sim or a5sim"),
        (lambda: check_target("a2a3sim", "other"), "there is no runtime 'other'"),
        (lambda: CallConfig().__setattr__("threads", 2), "CallConfig has no 'threads'"),
        (lambda: CallConfig().runtime_env.__setattr__("ring_task_window", 5), "power of two"),
        (lambda: CallConfig().runtime_env.__setattr__("ring_heap", [1, 2]), "one for each of the 4"),
        (lambda: TaskArgsBuilder(TensorArg("a", np.ones((4, 4))[:, 1])), "not contiguous"),
        (lambda: TaskArgsBuilder(TensorArg("a", np.ones(4)), TensorArg("a", np.ones(4))), "two arguments"),
        (lambda: extract_text_section(b"text"), "no 64-bit ELF"),
        (lambda: scalar_to_uint64(1 << 64), "more than 64 bits"),
        (lambda: scene_test()(type("T", (), {"CASES": [{"name": "x", "plattforms": []}]})), "plattforms"),
        (lambda: scene_test(level=4), "levels 2 and 3"),
    ],
)
def test_what_cannot_be_is_refused_and_says_why(make, words):
    with pytest.raises((ValueError, TypeError, AttributeError, RuntimeError, ConfigError), match=words):
        make()


def test_a_long_run_says_how_far_it_is(capfd):
    now = [0.0]
    progress = _Progress(10, lambda: now[0])
    for second in range(0, 26):
        now[0] = float(second)
        progress(100 * second, 5000)
    said = [line for line in capfd.readouterr().err.splitlines() if "progress:" in line]
    assert said == [
        "[TIMING] progress: 1,000 of 5,000 tasks so far are completed after 10 s",
        "[TIMING] progress: 2,000 of 5,000 tasks so far are completed after 20 s",
    ]


def test_scalars_are_words():
    assert scalar_to_uint64(1.0) == 0x3F800000
    assert scalar_to_uint64(-1) == (1 << 64) - 1


def test_cases_are_chosen_by_name_platform_and_mark():
    case = {"name": "small", "platforms": ["a2a3sim"], "manual": ["a2a3sim"]}
    assert not Selection("a2a3sim").has("TestA", case)
    assert Selection("a2a3sim", "include").has("TestA", case)
    assert not Selection("a5sim", "include").has("TestA", case)
    assert Selection("a2a3sim", "only", ("TestA::small",)).has("TestA", case)
    assert not Selection("a2a3sim", "only", ("TestB::small",)).has("TestA", case)


def test_differences_say_how_much_and_where():
    found, golden = np.array([1, 2, 9], dtype=np.int64), np.array([1, 2, 3], dtype=np.int64)
    assert difference("out", found, found.copy(), 0, 0) is None
    assert "1 of 3 elements differ; the largest error is 6 at [2]" in difference("out", found, golden, 0, 0)
    assert "the shape is [3]" in difference("out", found, golden[:2], 0, 0)
    assert difference("out", np.array([np.nan]), np.array([np.nan]), 1, 1) is not None
