"""Programs in the names that the field's interface had in each month of 2026: twice(a) + 1 in two tasks, by the runtime of that month."""

import importlib

import numpy as np
import pytest
from _task_interface import timing
from pto_runtime.errors import CompileError, ConfigError
from simpler.task_interface import (
    ArgDirection,
    ChipBootstrapConfig,
    ChipBufferSpec,
    ChipCallConfig,
    ChipCommBootstrapConfig,
    ChipStorageTaskArgs,
    ChipTensor,
    ContinuousTensor,
    DataType,
    TensorArgType,
    WorkerPayload,
    WorkerType,
    make_tensor_arg,
)
from simpler.worker import Worker

from simpler_setup import KernelCompiler, Tensor, TensorArg, ensure_pto_isa_root, vintages
from simpler_setup.february import GoldenExample
from simpler_setup.scene_test import _compile_chip_callable_from_spec
from simpler_setup.torch_interop import make_tensor_arg as arg_of_july

COUNT = 64

# Of kernels that get tensors, and of those that get words.
TENSORS = """
#include "tensor.h"
extern "C" void kernel_entry(int64_t *args) {
    const Tensor *from = reinterpret_cast<Tensor *>(args[0]), *to = reinterpret_cast<Tensor *>(args[1]);
    for (uint64_t i = 0; i < from->numel(); i++) {
        to->data_as<float>()[i] = from->data_as<float>()[i] * args[2] + args[3];
    }
    dcci(to->data_as<float>(), SINGLE_CACHE_LINE, CACHELINE_OUT);
}
"""
WORDS = """
#include <stdint.h>
extern "C" void kernel_entry(int64_t *args) {
    const float *from = reinterpret_cast<const float *>(args[0]);
    float *to = reinterpret_cast<float *>(args[1]);
    for (int64_t i = 0; i < 64; i++) {
        to[i] = from[i] * args[2] + args[3];
    }
}
"""

# Explicit edges, a runtime in front, parameters in one object, words: March.
MARCH = """
#include "pto_orchestration_api.h"
extern "C" PTO2OrchestrationConfig aicpu_orchestration_config(uint64_t *args, int count) { return PTO2OrchestrationConfig{.expected_arg_count = 5}; }
extern "C" void aicpu_orchestration_entry(PTO2Runtime *rt, uint64_t *args, int count, int threads, int thread) {
    uint32_t shape[1] = {static_cast<uint32_t>(args[4])};
    Tensor a = make_tensor_external((void *)args[0], shape, 1, DataType::FLOAT32);
    Tensor out = make_tensor_external((void *)args[1], shape, 1);
    Tensor twice = make_tensor(shape, 1);
    LOG_ALWAYS(rt, "%d words, thread %d of %d: %s", count, thread, threads, a.dump().c_str());
    PTO2_SCOPE(rt) {
        PTOParam first, second;
        first.add_input(a), first.add_output(twice), first.add_scalar(uint64_t(2)), first.add_scalar(uint64_t(0));
        PTO2TaskId t0 = pto2_rt_submit_aiv_task(rt, 0, first);
        second.add_input(twice), second.add_output(out), second.add_scalar(uint64_t(1)), second.add_scalar(uint64_t(1));
        PTO2TaskId t1 = pto2_rt_submit_aiv_task(rt, 0, second);
        pto2_rt_add_dependency(rt, t0, t1);
    }
}
"""
# The same runtime with arguments and temporaries: April.
APRIL = """
#include "pto_orchestration_api.h"
extern "C" void aicpu_orchestration_entry(PTO2Runtime *rt, const ChipStorageTaskArgs &orch_args) {
    Tensor a = from_tensor_arg(orch_args.tensor(0)), out = from_tensor_arg(orch_args.tensor(1));
    LOG_INFO(rt, "%u elements", orch_args.tensor(0).shapes[0]);
    PTO2_SCOPE(rt) {
        Arg first, second;
        first.add_input(a), first.add_output(TensorCreateInfo(orch_args.tensor(0).shapes, 1, DataType::FLOAT32)), first.add_scalar(uint64_t(2)), first.add_scalar(uint64_t(0));
        SubmitResult r0 = pto2_rt_submit_aiv_task(rt, 0, first);
        second.add_input(r0.outputs.get_ref(0)), second.add_inout(out), second.add_scalar(uint64_t(1)), second.add_scalar(uint64_t(1));
        SubmitResult r1 = pto2_rt_submit_aiv_task(rt, 0, second);
        pto2_rt_add_dependency(rt, r0.task_id, r1.task_id);
    }
}
"""
# Edges from tensors: March to June, and July.
MAY = """
#include "pto_orchestration_api.h"
extern "C" PTO2OrchestrationConfig aicpu_orchestration_config(const ChipStorageTaskArgs &) { return PTO2OrchestrationConfig{.expected_arg_count = 2}; }
extern "C" void aicpu_orchestration_entry(const ChipStorageTaskArgs &orch_args) {
    const ContinuousTensor &arg = orch_args.tensor(0);
    always_assert(arg.data != 0 && arg.ndims == 1 && arg.nbytes() == 4 * arg.numel());
    Tensor a = from_tensor_arg(arg), out = from_tensor_arg(orch_args.tensor(1));
    TensorCreateInfo info(arg.shapes, arg.ndims, arg.dtype);
    Arg first, second;
    first.add_input(a), first.add_output(info), first.add_scalar(uint64_t(2)), first.add_scalar(uint64_t(0));
    TaskOutputTensors made = pto2_rt_submit_aiv_task(0, first);
    second.add_input(made.get_ref(0)), second.add_output(out), second.add_scalar(uint64_t(1)), second.add_scalar(uint64_t(1)), second.add_dep(made.task_id());
    LOG_INFO_V3("submitted");
    rt_submit_aiv_task(0, second);
}
"""
JULY = """
#include "pto_arg_with_deps.h"
extern "C" void aicpu_orchestration_entry(const L2TaskArgs &orch_args) {
    const Tensor &a = orch_args.tensor(0).ref(), &out = orch_args.tensor(1).ref();
    TensorCreateInfo info(a.shapes, a.ndims, a.dtype);
    L0TaskArgs first;
    L0TaskArgsWithDeps<2> second;
    first.add_input(a), first.add_output(info), first.add_scalar(uint64_t(2)), first.add_scalar(uint64_t(0));
    TaskOutputTensors made = rt_submit_aiv_task(0, first);
    second.add_input(made.get_ref(0)), second.add_output(out), second.add_scalar(uint64_t(1)), second.add_scalar(uint64_t(1)), second.add_dep(made.task_id());
    rt_submit_aiv_task(0, second);
}
"""
# Late March: no runtime in front, and the same arguments as words, and as an array; tensors are values.
WORDS_ALONE = """
#include "pto_orchestration_api.h"
extern "C" PTO2OrchestrationConfig aicpu_orchestration_config(uint64_t *args, int count) { return PTO2OrchestrationConfig{.expected_arg_count = 5, .heap_size = 1}; }
extern "C" void aicpu_orchestration_entry(uint64_t *args, int count, int threads, int thread) {
    uint32_t shape[1] = {static_cast<uint32_t>(args[4])};
    Tensor a = make_tensor_external((void *)args[0], shape, 1), out = make_tensor_external((void *)args[1], shape, 1);
    LOG_INFO("%d words", count);
    PTO2_SCOPE() {
        Tensor made = make_tensor(shape, 1);
        PTOParam first, second;
        first.add_input(a), first.add_output(made), first.add_scalar(uint64_t(2)), first.add_scalar(uint64_t(0));
        pto2_rt_submit_aiv_task(0, first);
        second.add_input(made), second.add_output(out), second.add_scalar(uint64_t(1)), second.add_scalar(uint64_t(1));
        pto2_rt_submit_aiv_task(0, second);
    }
}
"""
ARRAY = """
#include "pto_orchestration_api.h"
extern "C" PTO2OrchestrationConfig aicpu_orchestration_config(OrchArg *args) { return PTO2OrchestrationConfig{.expected_arg_count = 3}; }
extern "C" void aicpu_orchestration_entry(RUNTIME OrchArg *args, int threads, int thread) {
    Tensor a = args[0].to_tensor(), out = from_task_arg(args[1]), made = make_tensor(args[0].tensor.shapes, 1, args[0].tensor.dtype);
    always_assert(args[2].value_as<int64_t>() == 64 && args[1].nbytes() == 256 && args[0].data<float>()[1] == 1);
    set_tensor_data(out, 1, args[1].tensor.shapes + 1, 0.5f);
    PTO2_SCOPE(GIVEN) {
        Arg first, second;
        first.add_input(a), first.add_output(made), first.add_scalar(uint64_t(2)), first.add_scalar(uint64_t(0));
        pto2_rt_submit_aiv_task(COMMA 0, first);
        second.add_input(made), second.add_output(out), second.add_scalar(uint64_t(1)), second.add_scalar(uint64_t(1));
        pto2_rt_submit_task(COMMA MixedKernels{-1, 0, -1}, second);
    }
}
"""
ARRAY_ALONE = ARRAY.replace("RUNTIME", "").replace("GIVEN", "").replace("COMMA", "")
ARRAY_AND_RUNTIME = ARRAY.replace("RUNTIME", "PTO2Runtime *rt,").replace("GIVEN", "rt").replace("COMMA", "rt,").replace("OrchArg", "TaskArg")
# First days of February: the program makes its runtime in memory that it is given.
OWN_MEMORY = """
#include "pto_runtime2.h"
#include "pto_shared_memory.h"
extern "C" void aicpu_orchestration_entry(void *memory, uint64_t *args, int count) {
    auto *header = static_cast<PTO2SharedMemoryHeader *>(memory);
    int32_t bytes = pto2_sm_calculate_size(16384, 65536);
    PTO2SharedMemoryHandle *handle = pto2_sm_create_from_buffer(memory, bytes, 16384, 262144, 65536);
    PTO2Runtime *rt = pto2_runtime_create_from_sm(PTO2_MODE_EXECUTE, handle, (void *)args[count - 2], 262144);
    TensorDescriptor a = make_tensor_external((void *)args[0], args[2]), out = make_tensor_external((void *)args[1], args[3]), made = make_tensor(args[2]);
    PTO2_SCOPE(rt) {
        PTOParam first[] = {make_input_param(a), make_output_param(made), make_scalar_param(2), make_scalar_param(0)};
        pto2_rt_submit_task(rt, 0, PTO2_WORKER_VECTOR, "first", first, 4);
        PTOParam second[] = {make_input_param(made), make_output_param(out), make_scalar_param(1), make_scalar_param(1)};
        pto2_rt_submit_task(rt, 0, PTO2_WORKER_VECTOR, "second", second, 4);
    }
    pto2_rt_orchestration_done(rt), pto2_runtime_destroy(rt), header->orchestrator_done = 1;
}
"""
# February and March: the AICPU builds the graph with what it finds in the runtime.
ON_AICPU = """
#include "runtime.h"
extern "C" int aicpu_orchestration_entry(Runtime *runtime) {
    const AicpuBuildApi &api = runtime->aicpu_build_api;
    if (runtime->orch_argc != 5 || runtime->kernel_addrs[0] == 0) return -1;
    uint64_t made = (uint64_t)api.device_malloc(runtime->orch_args[2]);
    uint64_t first[] = {runtime->orch_args[0], made, 2, 0}, second[] = {made, runtime->orch_args[1], 1, 1};
    int t0 = api.add_task(runtime, first, 4, 0, CoreType::AIV, 0), t1 = api.add_task(runtime, second, 4, 0, CoreType::AIV, 0);
    api.add_successor_conditional(runtime, t0, t1);
    api.publish_task(runtime, t0), api.publish_task(runtime, t1);
    return 0;
}
"""
# Late April: the submission says that a task completes after its kernel.
DEFERRED = MAY.replace("rt_submit_aiv_task(0, second)", "rt_submit_aiv_task_deferred(0, second)")
# The host-built runtime, whose edges may come in any order: February and March, and April to July.
HOST_OF_MARCH = """
#include "runtime.h"
extern "C" int aicpu_orchestration_entry(Runtime *runtime, uint64_t *args, int count) {
    void *a = runtime->host_api.device_malloc(args[2]), *twice = runtime->host_api.device_malloc(args[2]), *out = runtime->host_api.device_malloc(args[3]);
    runtime->host_api.copy_to_device(a, (void *)args[0], args[2]);
    runtime->record_tensor_pair((void *)args[1], out, args[3]);
    uint64_t second[] = {(uint64_t)twice, (uint64_t)out, 1, 1}, first[] = {(uint64_t)a, (uint64_t)twice, 2, 0};
    int t1 = runtime->add_task(second, 4, 0, CoreType::AIV), t0 = runtime->add_task(first, 4, 0, 1);
    runtime->add_successor(t0, t1);
    return runtime->get_task_count() == 2 && count == 5 ? 0 : -1;
}
"""
HOST_OF_JULY = """
#include "orchestration_api.h"
extern "C" int aicpu_orchestration_entry(OrchestrationRuntime *runtime, const ChipStorageTaskArgs &orch_args) {
    const size_t bytes = orch_args.tensor(0).nbytes();
    void *a = device_malloc(runtime, bytes), *twice = device_malloc(runtime, bytes), *out = device_malloc(runtime, bytes);
    copy_to_device(runtime, a, orch_args.tensor(0).data_as<void>(), bytes);
    record_tensor_pair(runtime, orch_args.tensor(1).data_as<void>(), out, bytes);
    uint64_t second[] = {(uint64_t)twice, (uint64_t)out, 1, 1}, first[] = {(uint64_t)a, (uint64_t)twice, 2, 0};
    TensorInfo infos[] = {make_tensor_info_from_tensor_arg(orch_args.tensor(0))};
    int t1 = add_task_with_tensor_info(runtime, second, 4, 0, CoreType::AIV, infos, 1), t0 = add_task(runtime, first, 4, 0, CoreType::AIV);
    add_successor(runtime, t0, t1);
    LAST
    return 0;
}
"""


def chip(folder, orchestration, kernel=TENSORS, runtime="tensormap_and_ringbuffer"):
    (folder / "orchestration.cpp").write_text(orchestration)
    (folder / "kernel.cpp").write_text(kernel)
    source = {"source": str(folder / "orchestration.cpp"), "function_name": "aicpu_orchestration_entry"}
    incore = {"func_id": 0, "source": str(folder / "kernel.cpp"), "core_type": "aiv", "signature": [ArgDirection.IN, ArgDirection.OUT]}
    return _compile_chip_callable_from_spec({"orchestration": source, "incores": [incore]}, "a2a3sim", runtime, "key")


def run(built, runtime="tensormap_and_ringbuffer", scalars=()):
    a, out = np.arange(COUNT, dtype=np.float32), np.zeros(COUNT, dtype=np.float32)
    args = ChipStorageTaskArgs()
    args.add_tensor(make_tensor_arg(a), TensorArgType.INPUT)
    args.add_tensor(arg_of_july(out), TensorArgType.OUTPUT_EXISTING)
    for scalar in scalars:
        args.add_scalar(scalar)
    with Worker(2, platform="a2a3sim", runtime=runtime, build=False) as worker:
        # Until May the callable itself was given.
        worker.run(built, args, ChipCallConfig())
    return out


@pytest.mark.parametrize(
    ("orchestration", "kernel", "runtime"),
    [
        (MARCH, TENSORS, "aicpu_build_graph"),
        (APRIL, TENSORS, "aicpu_build_graph"),
        (MAY, TENSORS, "tensormap_and_ringbuffer"),
        (JULY, TENSORS, "tensormap_and_ringbuffer"),
        (WORDS_ALONE, TENSORS.replace("Tensor ", "TensorData "), "tensormap_and_ringbuffer"),
        (ARRAY_ALONE, TENSORS, "tensormap_and_ringbuffer"),
        (ARRAY_AND_RUNTIME, TENSORS, "aicpu_build_graph"),
        (OWN_MEMORY, TENSORS, "tensormap_and_ringbuffer"),
        (ON_AICPU, WORDS, "aicpu_build_graph"),
        (DEFERRED, TENSORS, "tensormap_and_ringbuffer"),
        (HOST_OF_MARCH, WORDS, "host_build_graph"),
        (HOST_OF_JULY.replace("LAST", ""), WORDS, "host_build_graph"),
    ],
    ids=[
        *("march", "april", "may", "july", "words-alone", "array-alone", "array-and-runtime"),
        *("own-memory", "on-aicpu", "deferred", "host-march", "host-july"),
    ],
)
def test_programs_of_each_month_run(tmp_path, orchestration, kernel, runtime):
    # Where the entry gets an array, a scalar is part of it.
    scalars = (COUNT,) if "args[2].value_as" in orchestration else ()
    found = run(chip(tmp_path, orchestration, kernel, runtime), runtime, scalars)
    np.testing.assert_array_equal(found, 2 * np.arange(COUNT, dtype=np.float32) + 1)


def test_a_cycle_of_explicit_edges_is_refused(tmp_path):
    built = chip(tmp_path, HOST_OF_JULY.replace("LAST", "add_successor(runtime, t1, t0);"), WORDS, "host_build_graph")
    with pytest.raises(RuntimeError, match="the edges of the graph make a cycle"):
        run(built, "host_build_graph")


GOLDEN = """
import ctypes
import numpy as np
__outputs__ = ["out"]
ALL_CASES = {"large": {"count": 1 << 40}, "small": {"count": 64}}
DEFAULT_CASE = "small"
def generate_inputs(params):
    return [("a", np.arange(params["count"], dtype=np.float32)), ("out", np.zeros(params["count"], dtype=np.float32)), ("count", ctypes.c_int64(params["count"]))]
def compute_golden(tensors, params):
    tensors["out"][:] = 2 * tensors["a"] + 1
"""
CONFIG = """
from pathlib import Path
from task_interface import ArgDirection as D
HERE = Path(__file__).parent
ORCHESTRATION = {"source": str(HERE / "orchestration.cpp"), "function_name": "aicpu_orchestration_entry", "signature": [D.IN, D.OUT, D.SCALAR]}
KERNELS = [{"func_id": 0, "source": str(HERE / "kernel.cpp"), "core_type": "aiv", "signature": [D.IN, D.OUT]}]
RUNTIME_CONFIG = {"runtime": "aicpu_build_graph", "aicpu_thread_num": 4, "block_dim": 3, "rounds": 2, "orch_thread_num": 1}
"""


def test_a_folder_of_march_with_a_list_of_inputs_runs(tmp_path):
    # A list has no sizes: the words are two addresses and the count.
    program = MARCH.replace("args[4]", "args[2]").replace("expected_arg_count = 5", "expected_arg_count = 3")
    for name, text in (("orchestration.cpp", program), ("kernel.cpp", TENSORS), ("kernel_config.py", CONFIG), ("golden.py", GOLDEN)):
        (tmp_path / name).write_text(text)
    example = GoldenExample(tmp_path, tmp_path / "golden.py")
    assert [example.run(params) for params in example.golden.params] == [2]
    (tmp_path / "kernel_config.py").write_text(CONFIG + 'AICPU_ORCHESTRATION = {"source": str(HERE / "kernel.cpp"), "function_name": "f"}\n')
    with pytest.raises(ConfigError, match="pto_runtime.runner"):
        GoldenExample(tmp_path, tmp_path / "golden.py")


def test_what_a_source_says_decides_its_vintage():
    early = "#include \"aicpu/l3_l2_orch_endpoint.h\"\nvoid f(L3L2OrchEndpoint &e) { const L3L2EndpointError &error = e.error(); puts(error.op); }"
    forms = [
        (MARCH, {"STREAMS", "ENTRY=1", "RUNTIME_FIRST", "EXPLICIT_EDGES"}),
        (APRIL, {"RUNTIME_FIRST", "EXPLICIT_EDGES"}),
        (MAY, set()),
        (WORDS_ALONE, {"STREAMS", "ENTRY=1"}),
        (ARRAY_ALONE, {"STREAMS", "ENTRY=2"}),
        (ARRAY_AND_RUNTIME, {"STREAMS", "ENTRY=2", "RUNTIME_FIRST"}),
        (OWN_MEMORY, {"STREAMS", "ENTRY=1", "RUNTIME_FIRST"}),
        (ON_AICPU, {"HOST_BUILT", "ENTRY=1"}),
        (HOST_OF_MARCH, {"HOST_BUILT", "ENTRY=1"}),
        (HOST_OF_JULY, set()),
        (early, {"EARLY_JULY"}),
        (early + "// l3_l2_endpoint_op_to_string", set()),
    ]
    for source, flags in forms:
        assert {flag.removeprefix("-DPTO_FIELD_") for flag in vintages.flags_of(source)} == {f if "=" in f else f"{f}=1" for f in flags}


def test_the_table_of_names_has_what_is_here(tmp_path, monkeypatch):
    # Its type is among the names.
    monkeypatch.setattr(timing, "is_asked", False)
    for row in vintages.names():
        if row.kind == "python":
            module, name = row.name.rsplit(".", 1)
            assert hasattr(importlib.import_module(module), name), row.name
    (tmp_path / "broken.cpp").write_text("void f(OrchArg *args) { nothing(); }\n")
    with pytest.raises(CompileError, match="OrchArg is of 2026-03-24 to 2026-03-26; today: ChipTaskArgs"):
        KernelCompiler("a2a3sim").compile_orchestration("tensormap_and_ringbuffer", tmp_path / "broken.cpp")


# Early July: results go to pointers, and an error names its operation by a text.
EARLY_JULY = """
#include "aicpu/l3_l2_message_queue.h"
#include "pto_orchestration_api.h"
void failed(const L3L2QueueEndpoint &queue) {
    const L3L2QueueError &error = queue.error();
    rt_report_fatal(PTO2_ERROR_EXPLICIT_ORCH_FATAL, "%s: %s", error.op ? error.op : "", error.message);
}
extern "C" void aicpu_orchestration_entry(const L2TaskArgs &args) {
    uint64_t words[6] = {0, 0, 0, 0, 0, 0};
    L3L2OrchEndpoint endpoint(words, 6);
    L3L2QueueEndpoint queue(endpoint.desc(), L3L2QueueArgs{});
    uint64_t address = 0;
    L3L2OrchPayloadView view;
    int32_t observed = 0;
    L3L2QueueInputHandle handle;
    L3L2QueueOutputReservation reservation;
    if (!endpoint.counter_addr(0, &address) && !endpoint.payload_read(0, 8, &view) && !endpoint.signal_wait(0, 1, L3L2OrchWaitCmp::GE, 1, &observed) &&
        !queue.input().peek(1, &handle) && !queue.output().reserve(8, 1, &reservation)) {
        failed(queue);
    }
}
"""


def test_errors_of_early_july_name_their_operation(tmp_path):
    with pytest.raises(RuntimeError, match=r"run_prepared failed with code -9") as error:
        run(chip(tmp_path, EARLY_JULY))
    assert "the words describe no queue" in str(error.value)


# As many blocks at once as the configuration has clusters.
AT_ONCE = """
#include "pto_orchestration_api.h"
extern "C" void aicpu_orchestration_entry(const ChipStorageTaskArgs &args) {
    Tensor a = from_tensor_arg(args.tensor(0)), out = from_tensor_arg(args.tensor(1));
    Arg task;
    task.launch_spec.set_block_num(rt_available_cluster_count() * 2), task.launch_spec.set_require_sync_start(true);
    task.add_input(a), task.add_inout(out), task.add_scalar(uint64_t(2)), task.add_scalar(uint64_t(rt_available_cluster_count()));
    rt_submit_aiv_task(0, task);
}
"""


def test_a_device_has_the_clusters_that_the_configuration_names(tmp_path):
    built = chip(tmp_path, AT_ONCE)
    with Worker(2, platform="a2a3sim") as worker:
        # The device has 8 at least, and each size that a run asks for.
        for asked, clusters in ((0, 8), (3, 8), (12, 12), (0, 8)):
            a, out = np.arange(COUNT, dtype=np.float32), np.zeros(COUNT, dtype=np.float32)
            args = ChipStorageTaskArgs()
            args.add_tensor(make_tensor_arg(a), TensorArgType.INPUT)
            args.add_tensor(make_tensor_arg(out), TensorArgType.INOUT)
            worker.run(built, args, block_dim=asked, aicpu_thread_num=4)
            np.testing.assert_array_equal(out, 2 * a + clusters)
        worker.finalize()


def test_times_are_for_those_who_import_their_type(tmp_path, monkeypatch):
    monkeypatch.setattr(timing, "is_asked", False)
    built, a = chip(tmp_path, MAY), np.zeros(COUNT, dtype=np.float32)
    args = ChipStorageTaskArgs()
    args.add_tensor(make_tensor_arg(a))
    args.add_tensor(make_tensor_arg(a.copy()), TensorArgType.INOUT)
    with Worker(2, platform="a2a3sim") as worker:
        assert worker.run(built, args) is None
        from _task_interface import RunTiming

        ended = worker.run(built, args)
        assert isinstance(ended, RunTiming) and ended.host_wall_ns >= ended.device_wall_ns > 0 and ended.host_wall_us == ended.host_wall_ns / 1000


def test_options_have_their_earlier_names():
    config = ChipCallConfig()
    config.enable_dump_tensor, config.enable_profiling = 2, True
    assert (config.enable_dump_args, config.enable_dump_tensor, config.swimlane_level) == (2, 2, 1)
    with pytest.raises(AttributeError, match="CallConfig has no 'enable_nothing'"):
        config.enable_nothing  # noqa: B018


def test_numbers_of_may_share_nothing(tmp_path):
    built = chip(tmp_path, MAY)
    with Worker(2, platform="a2a3sim") as worker:
        for number in (0, 1):
            worker.prepare_callable(number, built)
        with pytest.raises(RuntimeError, match="number 1 has a callable already"):
            worker.prepare_callable(1, built)
        assert worker.aicpu_dlopen_count == 2
        # Memory of the device needs no mark, and what is written there stays.
        a, out = worker.malloc(4 * COUNT), worker.malloc(4 * COUNT)
        worker.copy_to(a, np.arange(COUNT, dtype=np.float32))
        args, found = ChipStorageTaskArgs(), np.zeros(COUNT, dtype=np.float32)
        args.add_tensor(ContinuousTensor.make(a, (COUNT,), DataType.FLOAT32))
        args.add_tensor(ContinuousTensor.make(out, (COUNT,), DataType.FLOAT32))
        worker.unregister_callable(0)
        worker.run(1, args)
        worker.copy_from(found, out)
        np.testing.assert_array_equal(found, 2 * np.arange(COUNT, dtype=np.float32) + 1)


def test_payloads_of_april_wait_for_outputs_that_they_name(tmp_path):
    built = chip(tmp_path, MAY)
    built.signature = (ArgDirection.IN, ArgDirection.OUT)
    a, outs, seen = np.arange(COUNT, dtype=np.float32), [np.zeros(COUNT, dtype=np.float32) for _ in range(3)], []
    with Worker(3, platform="a2a3sim", device_ids=[0, 1], num_sub_workers=1) as worker:
        program, function = worker.register(built), worker.register(lambda: seen.append([out.copy() for out in outs]))

        def orchestrate(orch, _args, _config):
            given = []
            for out in outs:
                given.append(ChipStorageTaskArgs())
                given[-1].add_tensor(make_tensor_arg(a))
                given[-1].add_tensor(make_tensor_arg(out))
            chip_payload, sub_payload = WorkerPayload(), WorkerPayload()
            chip_payload.callable, sub_payload.callable_id = program.buffer_ptr(), function
            group = orch.submit(WorkerType.CHIP, chip_payload, args_list=[one.__ptr__() for one in given[:2]], outputs=[4])
            chip_payload.args = given[2].__ptr__()
            alone = orch.submit(WorkerType.CHIP, chip_payload, outputs=[8])
            orch.submit(WorkerType.SUB, sub_payload, inputs=[group.outputs[0].ptr, alone.outputs[0].ptr])
            with pytest.raises(ValueError, match="no submission of this run made the memory at 0x1"):
                orch.submit(WorkerType.SUB, sub_payload, inputs=[1])

        worker.run(orchestrate)
    np.testing.assert_array_equal(seen, [[2 * a + 1] * 3])


def test_windows_are_there_from_the_beginning():
    comm = [ChipCommBootstrapConfig(rank=rank, nranks=2, rootinfo_path="", window_size=4096) for rank in range(2)]
    configs = [ChipBootstrapConfig(comm=one, buffers=[ChipBufferSpec("mailbox", "float32", 8, 32)]) for one in comm]
    with Worker(3, platform="a2a3sim", device_ids=[0, 1], chip_bootstrap_configs=configs) as worker:
        contexts = worker.chip_contexts
        assert [(one.rank, one.nranks) for one in contexts] == [(0, 2), (1, 2)]
        tensor = ContinuousTensor.make(data=contexts[1].buffer_ptrs["mailbox"], shapes=(8,), dtype=DataType.FLOAT32, child_memory=True)
        assert tensor.buffer.is_device and contexts[1].local_window_base <= tensor.data < contexts[1].local_window_base + 4096


def test_memory_is_an_address():
    with Worker(2, platform="a2a3sim") as worker:
        memory, source, target = worker.malloc(16), np.arange(4, dtype=np.float32), np.zeros(4, dtype=np.float32)
        worker.copy_to(memory, source.ctypes.data, 16)
        worker.copy_from(target.ctypes.data, memory + 0, 16)
        np.testing.assert_array_equal(target, source)
        tensor = ChipTensor.make(memory, (4,), DataType.FLOAT32, child_memory=True)
        assert f"{memory:#x}" == hex(tensor.data) and tensor.nbytes() == tensor.nbytes == 16


def test_earlier_names_are_the_same_things(monkeypatch, tmp_path):
    assert Tensor is TensorArg and ChipTensor is ContinuousTensor
    (tmp_path / "include/pto").mkdir(parents=True)
    monkeypatch.setenv("PTO_ISA_ROOT", str(tmp_path))
    assert ensure_pto_isa_root(commit="83d01313", clone_protocol="https") == str(tmp_path)
