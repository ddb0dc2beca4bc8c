// A host orchestration and its builder plugin, for `class Runtime`: both make the calls of a script.
#include <stdlib.h>

#include "pto_stream.hpp"
#include "pto_table.hpp"
#include "runtime.h"

#include "choices.h"

namespace {

enum { BUFFERS = 6, BYTES = 4096 };

uint8_t host_bytes[BYTES];

// ---- the orchestration ----

void *address(void *const (&buffers)[BUFFERS], Choices &choices) {
    switch (choices.byte() % 12) {
    case 0: return nullptr;
    case 1: return reinterpret_cast<void *>(choices.number());
    default: return buffers[choices.byte() % BUFFERS];
    }
}

void host_call(Runtime *runtime, void *(&buffers)[BUFFERS], Choices &choices) {
    uint64_t args[130] = {choices.number(), 1, 2, 3};
    const int some = choices.byte() % 8 == 0 ? static_cast<int>(choices.word()) : choices.byte() % 6;
    const int task = choices.byte() % 4 == 0 ? static_cast<int>(choices.word()) : choices.byte() % 8;
    int ready[RUNTIME_MAX_ARGS * 64];
    switch (choices.byte() % 16) {
    case 0: case 1: {
        // As many words as are said, or more than a task can have: those are not read.
        const int count = some <= 130 || some > RUNTIME_MAX_ARGS ? some : 4;
        runtime->add_task(args, count, 900, CoreType::AIV);
        break;
    }
    case 2: runtime->add_task(args, 4, task, some); break;
    case 3: runtime->add_successor(task, some); break;
    case 4: runtime->add_successor_conditional(some, task); break;
    case 5:
        if (Task *found = runtime->get_task(task)) {
            found->num_args = some;
            found->func_id = choices.byte() % 2 ? 900 : task;
            found->core_type = static_cast<CoreType>(choices.byte() % 3);
            found->args[choices.byte() % RUNTIME_MAX_ARGS] = choices.number();
            found->fanin = some;
        }
        break;
    case 6: if (runtime->get_task_count() < RUNTIME_MAX_ARGS * 64) runtime->get_initial_ready_tasks(choices.byte() % 2 ? ready : nullptr); break;
    case 7: buffers[choices.byte() % BUFFERS] = runtime->host_api.device_malloc(choices.byte() % 4 == 0 ? choices.number() : BYTES); break;
    case 8: runtime->host_api.device_free(address(buffers, choices)); break;
    case 9: runtime->host_api.copy_to_device(address(buffers, choices), host_bytes, choices.number() % (BYTES + 1)); break;
    case 10: runtime->host_api.copy_from_device(host_bytes, address(buffers, choices), choices.number() % (BYTES + 1)); break;
    case 11: runtime->record_tensor_pair(host_bytes, address(buffers, choices), choices.number() % (BYTES + 1)); break;
    case 12: runtime->record_device_alloc(address(buffers, choices)); break;
    case 13: choices.byte() % 2 ? runtime->clear_tensor_pairs() : runtime->clear_device_allocs(); break;
    case 14: {
        const int pairs = runtime->get_tensor_pair_count(), allocs = runtime->get_device_alloc_count();
        for (int at = 0; at < pairs; at++) host_bytes[at % BYTES] ^= static_cast<uint8_t>(runtime->get_tensor_pairs()[at].size);
        for (int at = 0; at < allocs; at++) host_bytes[at % BYTES] ^= runtime->get_device_allocs()[at].dev_ptr != nullptr;
        break;
    }
    default:
        runtime->orch_argc = choices.byte() % 8 == 0 ? some : 4;
        runtime->build_mode = choices.byte() % 8 == 0 ? some : choices.byte() % 2;
        runtime->set_function_bin_addr(task, runtime->get_function_bin_addr(some));
        break;
    }
}

// ---- the plugin ----

struct Plugin {
    Runtime *runtime;
    pto::Stream stream{runtime};
    pto::Tensor tensors[8];
    int64_t tasks[8] = {-1, -1, -1, -1, -1, -1, -1, -1};

    explicit Plugin(Runtime *runtime) : runtime(runtime) {
        for (pto::Tensor &tensor : tensors) tensor = pto::dense(runtime->orch_args[2], PTO_ELEMENT_TYPE_F32, {16, 16});
    }

    pto::Tensor &tensor(Choices &choices) { return tensors[choices.byte() % 8]; }
    int64_t task(Choices &choices) { return choices.byte() % 6 == 0 ? static_cast<int64_t>(choices.number()) : tasks[choices.byte() % 8]; }

    pto::Arg arg(Choices &choices) {
        switch (choices.byte() % 6) {
        case 0: return pto::in(tensor(choices));
        case 1: return pto::out(tensor(choices));
        case 2: return pto::inout(tensor(choices));
        case 3: return pto::no_dep(tensor(choices));
        case 4: return pto::scalar(choices.number());
        default: return pto::bound_scalar(choices.word());
        }
    }

    void change(Choices &choices) {
        pto::Tensor from = tensor(choices);
        switch (choices.byte() % 7) {
        case 0: from = from.slice(choices.word(), choices.word(), choices.word()); break;
        case 1: from = from.step(choices.word(), choices.word()); break;
        case 2: from = from.transpose(choices.word(), choices.word()); break;
        case 3: from = pto::dense(choices.number(), choices.byte() % 16, {choices.extent(), choices.extent()}); break;
        case 4: from.rank = choices.word(); break;
        case 5: from.strides[choices.byte() % 5] = choices.number(); break;
        default: from = stream.alloc(choices.byte() % 16, {choices.extent(), choices.extent()}); break;
        }
        host_bytes[0] ^= static_cast<uint8_t>(from.address());
        tensors[choices.byte() % 8] = from;
    }

    pto::Task shaped(Choices &choices) {
        pto::Task task(choices.byte() % 12 == 0 ? static_cast<int>(choices.word()) : 900, CoreType::AIV);
        switch (choices.byte() % 8) {
        case 0: return task.blocks(choices.word());
        case 1: return task.mix({900, 901, 900});
        case 2: return task.sync_start();
        case 3: return task.priority(choices.word());
        case 4: return task.when(tensor(choices), {choices.word(), 1, 2, 3, 4, 5, 6}, choices.word(), choices.number());
        default: return task;
        }
    }

    void call(Choices &choices, int depth) {
        int64_t &kept = tasks[choices.byte() % 8];
        switch (depth > 3 ? 0 : choices.byte() % 24) {
        case 0 ... 5: kept = stream.submit(shaped(choices), {arg(choices), arg(choices)}, {task(choices)}); break;
        case 6: kept = stream.submit(900, CoreType::AIV, {}, {task(choices), task(choices)}); break;
        case 7: kept = stream.add(shaped(choices), {arg(choices)}); break;
        case 8: kept = stream.submit_range(choices.word(), shaped(choices), {arg(choices)}, {pto::grows(choices.byte() % 3, static_cast<int64_t>(choices.number()))}, {task(choices)}); break;
        case 9: {
            const uint64_t words[3] = {choices.number(), 2, 3};
            const int64_t numbers[2] = {task(choices), task(choices)};
            const pto::Tasks producers = choices.byte() % 2 ? pto::Tasks(numbers) : pto::Tasks(task(choices), choices.word());
            const pto::Wait wait = choices.byte() % 2 ? pto::all(producers) : pto::window(producers, static_cast<int32_t>(choices.word()), choices.word(), choices.word());
            kept = pto::submit_range(runtime, choices.byte() % 3 ? 3 : choices.word() % 3, 900, CoreType::AIV, {choices.number(), 5}, {pto::listed(choices.byte() % 3, words)}, {wait});
            break;
        }
        case 10 ... 14: change(choices); break;
        case 15: host_bytes[1] ^= static_cast<uint8_t>(stream.get(tensor(choices), {choices.index(), choices.index()})); break;
        // Only where the program has memory: what else is in the device's is the run's own.
        case 16: stream.set(pto::dense(runtime->orch_args[2], PTO_ELEMENT_TYPE_F32, {16, 16}), {choices.index(), choices.index()}, 7); break;
        case 17: case 18: {
            pto::Scope scope(stream, choices.byte() % 3);
            for (int more = 0; more < 3; more++) call(choices, depth + 1);
            break;
        }
        case 19: {
            const pto::Tensor shapes[2] = {tensor(choices), tensor(choices)};
            pto_stream_recording made = stream.record(shapes, [&](pto::Tensor (&bound)[2]) {
                stream.submit(900, CoreType::AIV, {pto::in(bound[0]), pto::out(bound[1])});
                if (choices.byte() % 4 == 0) call(choices, depth + 1);
            });
            if (choices.byte() % 8 == 0) made.tasks = choices.word();
            stream.replay(made, shapes, {choices.number()});
            break;
        }
        case 20: {
            pto::Table<uint32_t> table(runtime, choices.byte() % 4 ? runtime->orch_args[2] : choices.number(), choices.number());
            uint32_t words[4];
            host_bytes[2] ^= static_cast<uint8_t>(table[choices.number()]) ^ table.read(choices.number(), choices.byte() % 5, words);
            break;
        }
        case 21: {
            uint64_t args[130] = {1, 2, 3};
            const int id = aicpu_runtime_add_task(runtime, args, choices.byte() % 8 == 0 ? 129 : choices.byte() % 5, choices.byte() % 8 == 0 ? -1 : 900, static_cast<CoreType>(choices.byte() % 3), choices.byte() % 8 == 0 ? choices.number() : 0);
            aicpu_runtime_add_successor_conditional(runtime, static_cast<int>(task(choices)), id);
            aicpu_runtime_publish_task(runtime, choices.byte() % 8 == 0 ? static_cast<int>(choices.word()) : id);
            break;
        }
        case 22: runtime->aicpu_build_api.device_free(runtime->aicpu_build_api.device_malloc(choices.number())); break;
        default: runtime->add_successor(static_cast<int>(task(choices)), static_cast<int>(task(choices))); break;
        }
    }
};

Choices of_call(uint64_t at, uint64_t number) { return Choices(reinterpret_cast<const uint8_t *>(at) + number * CALL_BYTES + 1, CALL_BYTES - 1); }

}  // namespace

extern "C" {

// The words: the calls of the orchestration, how many there are, those of the plugin, how many there are, the plugin and its bytes.
int orchestrate(Runtime *runtime, uint64_t *args, int count) {
    if (count != 6) return 1;
    void *buffers[BUFFERS] = {};
    void *const block = runtime->host_api.device_malloc(BYTES);
    buffers[0] = block;
    for (uint64_t number = 0; number < args[1]; number++) {
        Choices choices = of_call(args[0], number);
        host_call(runtime, buffers, choices);
    }
    runtime->orch_args[0] = args[2];
    runtime->orch_args[1] = args[3];
    runtime->orch_args[2] = reinterpret_cast<uint64_t>(block);
    runtime->try_set_aicpu_orch_so(reinterpret_cast<const void *>(args[4]), args[5]);
    return 0;
}

int build_graph_aicpu(Runtime *runtime) {
    Plugin plugin(runtime);
    for (uint64_t number = 0; number < runtime->orch_args[1]; number++) {
        Choices choices = of_call(runtime->orch_args[0], number);
        plugin.call(choices, 0);
    }
    return plugin.stream.status();
}
}
