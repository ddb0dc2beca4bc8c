// An orchestration that makes the calls of a script: tensors that do not fit, ids of tasks that there are not, too many arguments, scopes that nobody
// opened, exceptions. Tensors may be where no memory is; all other pointers are valid: that is what a caller of C++ vouches for.
#include <stdexcept>

#include "pto_orchestration_api.h"

#include "choices.h"

namespace {

enum { TENSORS = 12, TASKS = 12 };

struct Program {
    ChipTensor tensors[TENSORS];
    PTO2TaskId tasks[TASKS];
    const ChipTensor own;

    explicit Program(const ChipTaskArgs &args) : own(args.tensor(0).ref()) {
        for (ChipTensor &tensor : tensors) tensor = args.tensor(0).ref();
        for (PTO2TaskId &task : tasks) task = PTO2TaskId::invalid();
    }

    // Most calls get one that is right: an error ends what the program can do.
    const ChipTensor &tensor(Choices &choices) { return choices.byte() % 4 ? own : tensors[choices.byte() % TENSORS]; }

    PTO2TaskId task(Choices &choices) {
        switch (choices.byte() % 32) {
        case 0: return PTO2TaskId{choices.number()};
        case 1: return PTO2TaskId::make(choices.byte(), choices.word());
        default: return tasks[choices.byte() % TASKS];
        }
    }

    // A view of a tensor, and what can be asked of any view.
    void change(Choices &choices) {
        ChipTensor from = tensor(choices), made = from;
        const uint32_t shape[5] = {choices.extent(), choices.extent(), choices.extent(), choices.extent(), choices.extent()};
        const uint32_t offsets[5] = {choices.extent(), choices.extent(), 0, 0, choices.word()};
        const uint32_t order[5] = {choices.byte(), choices.byte(), 2, 3, choices.byte()};
        switch (choices.byte() % 10) {
        case 0: made = from.view(shape, offsets); break;
        case 1: made = from.reshape(shape, choices.word()); break;
        case 2: made = from.transpose(choices.word(), choices.word()); break;
        case 3: made = from.permute(order); break;
        case 4: made = from.slice(choices.word(), choices.word(), choices.word()); break;
        case 5: made = make_tensor_external(from.data_as<void>(), shape, choices.word(), static_cast<DataType>(choices.byte() % 20)); break;
        case 6: made = make_tensor_external(reinterpret_cast<void *>(choices.number()), shape, choices.byte() % 6); break;
        case 7: made.start_offset = choices.number(); break;
        case 8: made.ndims = choices.word(); break;
        default: made.strides[choices.byte() % 5] = choices.word(); break;
        }
        asked = made.numel() ^ made.nbytes() ^ made.extent_elem() ^ made.compute_flat_offset(offsets, made.ndims);
        asked ^= get_element_size(made.dtype) ^ static_cast<uint64_t>(*get_dtype_name(made.dtype));
        tensors[choices.byte() % TENSORS] = made;
    }

    template <typename Args>
    void fill(Args &args, Choices &choices, ChipTensor (&held)[4], TensorCreateInfo &info, PTO2TaskId (&after)[3], DepFlags (&kinds)[3]) {
        const uint32_t count = choices.byte() % 64 == 0 ? 300 : choices.byte() % 4;
        for (uint32_t at = 0; at < count; at++) {
            held[at % 4] = tensor(choices);
            switch (choices.byte() % 6) {
            case 0: args.add_input(held[at % 4]); break;
            case 1: args.add_inout(held[at % 4]); break;
            case 2: args.add_no_dep(held[at % 4]); break;
            case 3: args.add_output(held[at % 4]); break;
            default: args.add_output(info); break;
            }
        }
        const uint64_t words[4] = {choices.number(), 1, 2, 3};
        args.add_scalars(words, choices.byte() % 16 == 0 ? -1 : choices.byte() % 5);
        switch (choices.byte() % 32) {
        case 0: args.set_dependencies(after, choices.byte() % 4); break;
        case 1: args.set_dependencies_with_kinds(after, kinds, choices.byte() % 4); break;
        case 2: args.set_dependencies(nullptr, choices.byte() % 4); break;
        case 3: args.set_task_timing_slot(static_cast<int32_t>(choices.word())); break;
        case 4: args.copy_scalars_from(args, static_cast<int>(choices.word()), static_cast<int>(choices.word())); break;
        case 5: args.launch_spec.set_block_num(static_cast<int16_t>(choices.word())); break;
        case 6: args.launch_spec.set_require_sync_start(true); break;
        case 7: args.set_error("the program's own"); break;
        case 8: {
            CoreTaskPredicate predicate;
            predicate.operand.tensor = choices.byte() % 4 == 0 ? nullptr : &held[0];
            predicate.operand.ndims = choices.byte() % 8 == 0 ? choices.word() : 1;
            predicate.op = static_cast<PredicateOp>(choices.byte() % 9);
            args.set_predicate(predicate);
            break;
        }
        case 9: args.dump(held[0]); break;
        case 10: args.set_allow_early_resolve(); break;
        default: break;
        }
        // What is not there can be asked for.
        asked ^= args.scalar(choices.word()) ^ static_cast<uint64_t>(args.tag(choices.word()));
        const PtoFieldTensorArg one = args.tensor(choices.word());
        asked ^= reinterpret_cast<uintptr_t>(one.ptr());
        const bool is_made = one.ptr() != nullptr && one.ptr() == static_cast<const void *>(&info);
        asked ^= is_made ? one.create_info().buffer_size_bytes() : one.ref().numel();
    }

    void submit(Choices &choices) {
        ChipTensor held[4] = {tensors[0], tensors[0], tensors[0], tensors[0]};
        const uint32_t shape[5] = {choices.extent(), choices.extent(), 1, 1, 1};
        TensorCreateInfo info(shape, choices.byte() % 16 == 0 ? choices.word() : 1, static_cast<DataType>(choices.byte() % 16));
        if (choices.byte() % 4 == 0) info.set_initial_value(1.5f);
        PTO2TaskId after[3] = {task(choices), task(choices), task(choices)};
        DepFlags kinds[3] = {choices.byte(), DEP_WAIT, DEP_RETAIN};
        CoreTaskArgs args;
        fill(args, choices, held, info, after, kinds);
        const int32_t kernel = choices.byte() % 32 == 0 ? static_cast<int32_t>(choices.word()) : 0;
        TaskOutputTensors made;
        switch (choices.byte() % 5) {
        case 0: made = rt_submit_aic_task(1, args); break;
        case 1: made = rt_submit_dummy_task(args); break;
        case 2: made = rt_submit_task(MixedKernels{1, 0, kernel}, args); break;
        default: made = rt_submit_aiv_task(kernel, args); break;
        }
        take(made, choices);
    }

    void take(const TaskOutputTensors &made, Choices &choices) {
        tasks[choices.byte() % TASKS] = made.task_id();
        if (made.size() != 0 || choices.byte() % 64 == 0) {
            tensors[choices.byte() % TENSORS] = made.get_ref(choices.byte() % 64 == 0 ? choices.word() : 0);
        }
    }

    void alloc(Choices &choices) {
        const uint32_t shape[5] = {choices.extent(), choices.extent(), 1, 1, 1};
        const TensorCreateInfo one(shape, choices.byte() % 16 == 0 ? choices.word() : 2);
        const TensorCreateInfo infos[40] = {one, one, one, one, one, one, one, one, one, one, one, one, one, one, one, one, one, one, one, one,
                                            one, one, one, one, one, one, one, one, one, one, one, one, one, one, one, one, one, one, one, one};
        asked ^= one.buffer_size_bytes();
        take(choices.byte() % 4 ? alloc_tensors(one, one) : alloc_tensors(infos, choices.byte() % 34), choices);
    }

    void element(Choices &choices) {
        const ChipTensor of = choices.byte() % 2 ? own : tensors[choices.byte() % TENSORS];
        const uint32_t index[5] = {choices.index(), choices.index(), 0, 0, choices.word()};
        // No further than the program has indices.
        const uint32_t ndims = choices.byte() % 16 == 0 ? choices.byte() % 6 : of.ndims % 6;
        if (choices.byte() % 2) {
            asked ^= get_tensor_data<uint32_t>(of, ndims, index);
        } else {
            // What else is in the process's memory, and in the device's, is not the program's to write.
            set_tensor_data<uint32_t>(own, choices.byte() % 16 == 0 ? ndims : 2, index, 7);
        }
    }

    void scope(Choices &choices, int depth) {
        switch (choices.byte() % 6) {
        case 0: rt_scope_begin(static_cast<PTO2ScopeMode>(choices.byte() % 3)); break;
        case 1: rt_scope_end(); break;
        default: {
            // It closes when an exception leaves it, too.
            PTO2ScopeGuard guard(choices.byte() % 2 ? PTO2ScopeMode::AUTO : PTO2ScopeMode::MANUAL);
            for (int more = 0; more < 3; more++) call(choices, depth + 1);
        }
        }
    }

    void graph(Choices &choices, int depth) {
        GraphTaskArgs args;
        ChipTensor held[4] = {tensors[0], tensors[0], tensors[0], tensors[0]};
        const uint32_t shape[5] = {4, 4, 1, 1, 1};
        TensorCreateInfo info(shape, 1);
        PTO2TaskId after[3] = {task(choices), task(choices), task(choices)};
        DepFlags kinds[3] = {1, 2, 3};
        fill(args, choices, held, info, after, kinds);
        const GraphSubmitResult result =
            rt_submit_graph_impl(choices.byte() % 3, args, [&](const GraphTaskArgs &) { call(choices, depth + 1); });
        tasks[0] = result.task_id;
        rt_graph_commit();
    }

    void call(Choices &choices, int depth = 0) {
        if (depth > 4) return;
        switch (choices.byte() % 32) {
        case 0 ... 9: submit(choices); break;
        case 10 ... 15: change(choices); break;
        case 16 ... 18: alloc(choices); break;
        case 19 ... 21: element(choices); break;
        case 22 ... 24: scope(choices, depth); break;
        case 25: graph(choices, depth); break;
        case 26: asked ^= static_cast<uint64_t>(rt_available_cluster_count() + rt_available_aiv_count() + rt_is_fatal()); break;
        case 27: LOG_WARN("%u%%s", choices.word()); break;
        case 28: if (choices.byte() % 8 == 0) rt_report_fatal(static_cast<int32_t>(choices.word()), "%s", "the program's own"); break;
        case 29: if (choices.byte() % 8 == 0) always_assert(choices.byte() > 300); break;
        case 30: if (choices.byte() % 8 == 0) throw std::runtime_error("deliberate"); break;
        default: if (choices.byte() % 8 == 0) throw Deliberate(); break;
        }
    }

    uint64_t asked = 0;
};

}  // namespace

extern "C" {

// The scalars are the address of the script's calls and how many bytes they have.
void aicpu_orchestration_entry(const ChipTaskArgs &args) {
    Program program(args);
    const uint8_t *at = reinterpret_cast<const uint8_t *>(args.scalar(0));
    for (uint64_t bytes = args.scalar(1); bytes >= CALL_BYTES; bytes -= CALL_BYTES, at += CALL_BYTES) {
        Choices choices(at + 1, CALL_BYTES - 1);
        program.call(choices);
    }
}

// For both kinds of cores: looks at none of its words.
void kernel_entry(int64_t *) {}
}
