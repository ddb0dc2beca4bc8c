// What an orchestration calls the runtime through. The loader fills `pto_field_ops`; sources link with nothing.
//
// Not for programs: they include pto_orchestration_api.h.
#ifndef PTO_FIELD_CALLS_H
#define PTO_FIELD_CALLS_H

#include <stdarg.h>
#include <stdio.h>

#include "pto_field_codes.h"
#include "tensor.h"

// Where in the program a call is.
struct pto_field_place {
    const char *file;
    int32_t line;
    int32_t reserved;
};

// The last parameters of a function that programs call: the file and line of the call.
#define PTO_FIELD_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

// One argument of a task.
struct pto_field_argument {
    const void *what;  // ChipTensor; TensorCreateInfo where `tag` is OUTPUT
    uint64_t tag;      // TensorArgType
};

struct pto_field_task {
    const pto_field_argument *tensors;
    const uint64_t *scalars;
    const PTO2TaskId *dependencies;
    const uint8_t *dependency_kinds;  // nullptr: all wait and retain
    const ChipTensor *predicate;      // nullptr: none
    const char *error;                // nullptr: none; what was wrong with the arguments before the submission
    uint32_t tensor_count;
    uint32_t scalar_count;
    uint32_t dependency_count;
    uint32_t predicate_ndims;
    uint32_t predicate_indices[5];
    uint32_t predicate_op;
    int64_t predicate_target;
    int32_t kernels[3];  // AIC, AIV 0, AIV 1; negative: none. All three: a task without a kernel
    int32_t blocks;
    int32_t timing_slot;  // negative: none
    uint32_t flags;       // pto_field_flag
    // A bit for each argument that is marked for a dump, tensors first; bit 48 + n: the name of scalar n covers several.
    uint64_t dump;
    pto_field_place place;
    // A bit for each word of the kernel's arguments that is a scalar; 0: the scalars follow the tensors.
    uint32_t scalar_words;
    uint32_t reserved;
};

enum : uint32_t { PTO_FIELD_DUMP_ARGUMENTS = 48 };

enum pto_field_flag : uint32_t {
    PTO_FIELD_SYNC_START = 1,
    PTO_FIELD_EARLY_RESOLVE = 2,
};

// What a submission gives back.
struct pto_field_outputs {
    PTO2TaskId task;
    const ChipTensor *tensors;
    uint64_t count;
};

struct pto_field_ops_table {
    uint32_t version;
    int32_t log_level;  // messages above it are not even written: 0 error, 1 warning, 2 timing, 3 info, 4 debug
    void (*submit)(const pto_field_task *task, pto_field_outputs *outputs);
    void (*alloc)(const pto_field_argument *infos, uint32_t count, pto_field_place place, pto_field_outputs *outputs);
    void (*scope_begin)(int32_t mode, pto_field_place place);
    void (*scope_end)(void);
    uint64_t (*get)(const ChipTensor *tensor, uint32_t ndims, const uint32_t *indices, pto_field_place place);
    void (*set)(const ChipTensor *tensor, uint32_t ndims, const uint32_t *indices, uint64_t value, pto_field_place place);
    int32_t (*available)(int32_t kind);  // 0 clusters, 1 vector cores
    int32_t (*is_fatal)(void);
    void (*fatal)(int32_t code, const char *text, pto_field_place place);
    void (*log)(int32_t level, const char *text, pto_field_place place);
    // A graph of the host-built runtime begins or ends. `begin` gives how often the key was seen before.
    uint64_t (*graph_begin)(uint64_t key, const pto_field_task *boundary);
    PTO2TaskId (*graph_end)(uint64_t key);
    uint64_t (*ticks)(void);
};

extern "C" {
__attribute__((weak, visibility("default"))) const pto_field_ops_table *pto_field_ops;
}

static_assert(sizeof(pto_field_task) == 152, "size of pto_field_task");
static_assert(sizeof(pto_field_argument) == 16, "size of pto_field_argument");
static_assert(sizeof(pto_field_ops_table) == 112, "size of pto_field_ops_table");

// An element of a tensor. Both wait for the tasks that write it; `set` also for those that read it.
template <typename T = uint64_t>
inline T get_tensor_data(const ChipTensor &tensor, uint32_t ndims, const uint32_t indices[], PTO_FIELD_HERE) {
    return from_u64<T>(pto_field_ops->get(&tensor, ndims, indices, pto_field_place{file, line, 0}));
}
template <typename T = uint64_t>
inline void set_tensor_data(const ChipTensor &tensor, uint32_t ndims, const uint32_t indices[], T value,
                            PTO_FIELD_HERE) {
    pto_field_ops->set(&tensor, ndims, indices, to_u64(value), pto_field_place{file, line, 0});
}

// A message of the program, if its level is asked for; the macros LOG_* of each month call it.
__attribute__((format(printf, 4, 5))) inline void pto_field_log(int32_t level, const char *file, int line,
                                                                const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    pto_field_ops->log(level, text, pto_field_place{file, line, 0});
}

struct PTO2Runtime;
// In March and April 2026 programs gave their runtime first.
template <typename... Values>
inline void pto_field_log(int32_t level, const char *file, int line, PTO2Runtime *, const char *format, Values... values) {
    pto_field_log(level, file, line, format, values...);
}

#define PTO_FIELD_LOG(level, ...) \
    ((level) <= pto_field_ops->log_level ? pto_field_log(level, __FILE__, __LINE__, __VA_ARGS__) : (void)0)

#ifndef LOG_ERROR
#define LOG_ERROR(...) PTO_FIELD_LOG(0, __VA_ARGS__)
#define LOG_WARN(...) PTO_FIELD_LOG(1, __VA_ARGS__)
#define LOG_TIMING(...) PTO_FIELD_LOG(2, __VA_ARGS__)
#define LOG_INFO(...) PTO_FIELD_LOG(3, __VA_ARGS__)
#define LOG_DEBUG(...) PTO_FIELD_LOG(4, __VA_ARGS__)
#define LOG_ALWAYS(...) LOG_INFO(__VA_ARGS__)
#define LOG_INFO_V0(...) LOG_INFO(__VA_ARGS__)
#define LOG_INFO_V1(...) LOG_INFO(__VA_ARGS__)
#define LOG_INFO_V2(...) LOG_INFO(__VA_ARGS__)
#define LOG_INFO_V3(...) LOG_INFO(__VA_ARGS__)
#define LOG_INFO_V4(...) LOG_INFO(__VA_ARGS__)
#define LOG_INFO_V5(...) LOG_INFO(__VA_ARGS__)
#define LOG_INFO_V6(...) LOG_INFO(__VA_ARGS__)
#define LOG_INFO_V7(...) LOG_INFO(__VA_ARGS__)
#define LOG_INFO_V8(...) LOG_INFO(__VA_ARGS__)
#define LOG_INFO_V9(...) LOG_INFO(__VA_ARGS__)
#endif

inline void pto_field_assert(bool holds, const char *text, const char *file, int line) {
    if (!holds) {
        pto_field_ops->fatal(PTO2_ERROR_EXPLICIT_ORCH_FATAL, text, pto_field_place{file, line, 0});
    }
}
#define always_assert(condition) pto_field_assert(static_cast<bool>(condition), "always_assert(" #condition ") failed", __FILE__, __LINE__)
#ifdef NDEBUG
#define debug_assert(condition) ((void)0)
#else
#define debug_assert(condition) pto_field_assert(static_cast<bool>(condition), "debug_assert(" #condition ") failed", __FILE__, __LINE__)
#endif

#endif  // PTO_FIELD_CALLS_H
