// How the runtime enters a program. In each month an entry got its arguments in another form; `simpler_setup/vintages.py` finds the form in the source.
//
//   PTO_FIELD_ENTRY   arguments                                        months of 2026
//   not defined       const ChipTaskArgs &                             from 28 March on
//   2                 TaskArg * or OrchArg *                           24 to 28 March
//   1                 uint64_t *, int                                  until 26 March
//
// With PTO_FIELD_RUNTIME_FIRST=1 a runtime stands in front of them. Until April an entry also got how many threads orchestrate, and which of them it is: a function
// with fewer parameters does not see these.
//
// Not for programs: they include pto_orchestration_api.h, orchestration_api.h or pto_runtime2.h.
#ifndef PTO_FIELD_ENTRY_H
#define PTO_FIELD_ENTRY_H

#include <tuple>
#include <vector>

#include "pto_field_args.h"

#if !defined(PTO_FIELD_ENTRY)
#define PTO_FIELD_ENTRY 0
#endif

struct PTO2Runtime;
struct PTO2OrchestrationConfig;

#if PTO_FIELD_ENTRY == 2
// A tensor or a scalar of the entry: first all tensors, then all scalars.
struct TaskArg {
    PtoFieldTensorArg tensor;
    uint64_t scalar;

    template <typename T>
    T *data() const {
        return tensor.data_as<T>();
    }
    uint64_t nbytes() const { return tensor.nbytes(); }
    ChipTensor to_tensor() const { return tensor.ref(); }
    template <typename T>
    T value_as() const {
        return from_u64<T>(scalar);
    }
};
using OrchArg = TaskArg;
inline ChipTensor from_task_arg(const TaskArg &arg, bool manual = false, int32_t version = 0) {
    ChipTensor tensor = arg.to_tensor();
    tensor.manual_dep = manual;
    tensor.version = version;
    return tensor;
}
#endif

// Calls `call` with the arguments in the form of this program's month.
template <typename Call>
inline auto pto_field_with_arguments(const ChipTaskArgs &args, Call call) {
#if PTO_FIELD_ENTRY == 1
    // Addresses and sizes of the tensors, then scalars; without scalars the elements of the first tensor. Where the inputs were a list and no dict
    // (PTO_FIELD_LIST_WORDS), there are no sizes.
    std::vector<uint64_t> words;
    for (int32_t at = 0; at < args.tensor_count(); at++) {
        words.push_back(args.tensor(static_cast<uint32_t>(at)).data);
    }
#if !defined(PTO_FIELD_LIST_WORDS)
    for (int32_t at = 0; at < args.tensor_count(); at++) {
        words.push_back(args.tensor(static_cast<uint32_t>(at)).nbytes());
    }
#endif
    for (int32_t at = 0; at < args.scalar_count(); at++) {
        words.push_back(args.scalar(static_cast<uint32_t>(at)));
    }
    if (args.scalar_count() == 0 && args.tensor_count() != 0) {
        words.push_back(args.tensor(0).numel());
    }
#if defined(PTO_FIELD_HEAP_WORDS)
    // The heap and its size: the runtime has its own.
    words.insert(words.end(), {0, 0});
#endif
    return call(words.data(), static_cast<int>(words.size()));
#elif PTO_FIELD_ENTRY == 2
    std::vector<TaskArg> all;
    for (int32_t at = 0; at < args.tensor_count(); at++) {
        all.push_back(TaskArg{args.tensor(static_cast<uint32_t>(at)), 0});
    }
    for (int32_t at = 0; at < args.scalar_count(); at++) {
        all.push_back(TaskArg{PtoFieldTensorArg(nullptr, TensorArgType::INPUT), args.scalar(static_cast<uint32_t>(at))});
    }
    return call(all.data());
#else
    return call(args);
#endif
}
// Their types.
#if PTO_FIELD_ENTRY == 1
#define PTO_FIELD_ENTRY_TYPES uint64_t *, int
#elif PTO_FIELD_ENTRY == 2
#define PTO_FIELD_ENTRY_TYPES TaskArg *
#else
#define PTO_FIELD_ENTRY_TYPES const ChipTaskArgs &
#endif

// Calls an entry that gives nothing back.
inline void pto_field_call_entry(void *entry, const ChipTaskArgs &args) {
    pto_field_with_arguments(args, [&](auto &&...given) {
#if defined(PTO_FIELD_RUNTIME_FIRST)
        // Programs pass it on. The functions that they call are in pto_field_ops.
        // Also large enough for the header of the first days of February.
        alignas(8) static char runtime[64];
        reinterpret_cast<void (*)(PTO2Runtime *, PTO_FIELD_ENTRY_TYPES, int, int)>(entry)(reinterpret_cast<PTO2Runtime *>(runtime), given..., 1, 0);
#else
        reinterpret_cast<void (*)(PTO_FIELD_ENTRY_TYPES, int, int)>(entry)(given..., 1, 0);
#endif
    });
}

// How many arguments the program expects, in the runtime's count of tensors and scalars; 0 or less: any number. `expected` calls its config.
template <typename Expected>
inline int32_t pto_field_expected_of(const ChipTaskArgs &args, Expected expected) {
    return pto_field_with_arguments(args, [&](auto &&...given) -> int32_t {
        const int32_t count = expected(given...);
#if PTO_FIELD_ENTRY == 1
        // A program counts words, of which a tensor has more than one: as many arguments as there are, and the words that are missing.
        const int32_t words = std::get<1>(std::forward_as_tuple(given...));
        return args.tensor_count() + args.scalar_count() + (count > words ? count - words : 0);
#else
        return count;
#endif
    });
}

#endif  // PTO_FIELD_ENTRY_H
