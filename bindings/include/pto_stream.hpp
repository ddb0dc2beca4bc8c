// Streaming builder plugins in C++17: pto_stream.h with views that are values, and scopes that close themselves. No
// exceptions, no allocation, nothing of the C++ library but <initializer_list>.
//
//     extern "C" int build_graph_aicpu(Runtime *runtime) {
//         pto::Stream stream(runtime);
//         const pto::Tensor x = pto::dense(runtime->orch_args[0], PTO_ELEMENT_TYPE_F32, {64});
//         pto::Scope scope(stream);
//         const pto::Tensor half = stream.alloc(PTO_ELEMENT_TYPE_F32, {64});
//         stream.submit(SCALE, CoreType::AIV, {pto::in(x), pto::out(half), pto::scalar(64)});
//         stream.submit(STORE, CoreType::AIV, {pto::in(half), pto::out(x), pto::scalar(64)});
//         return stream.status();
//     }
#ifndef PTO_STREAM_HPP
#define PTO_STREAM_HPP

#include <initializer_list>

#include "pto_stream.h"
#include "runtime.h"

namespace pto {

// Bytes of an element of a type PTO_ELEMENT_TYPE_*; 0: there is no such type.
inline uint64_t element_bytes(uint32_t element) {
    switch (element) {
        case PTO_ELEMENT_TYPE_I8:
        case PTO_ELEMENT_TYPE_U8:
            return 1;
        case PTO_ELEMENT_TYPE_F16:
        case PTO_ELEMENT_TYPE_BF16:
        case PTO_ELEMENT_TYPE_I16:
        case PTO_ELEMENT_TYPE_U16:
            return 2;
        case PTO_ELEMENT_TYPE_F32:
        case PTO_ELEMENT_TYPE_I32:
        case PTO_ELEMENT_TYPE_U32:
            return 4;
        case PTO_ELEMENT_TYPE_I64:
        case PTO_ELEMENT_TYPE_U64:
        case PTO_ELEMENT_TYPE_F64:
            return 8;
        default:
            return 0;
    }
}

// A strided part of a tensor. What does not fit is refused where the view is used, with a fault that names the argument.
struct Tensor : pto_stream_tensor {
    bool has(uint32_t dimension) const { return dimension < rank && rank <= PTO_STREAM_RANKS; }
    // Elements `start` to `start + length` of a dimension.
    Tensor slice(uint32_t dimension, uint32_t start, uint32_t length) const {
        Tensor view = *this;
        if (!has(dimension)) {
            view.rank = PTO_STREAM_RANKS + 1;
        } else if (length == 0 || start > shape[dimension] || length > shape[dimension] - start) {
            view.bytes = 0;
        } else {
            view.offset += start * strides[dimension];
            view.shape[dimension] = length;
        }
        return view;
    }
    // Every `step`-th element of a dimension, from its first one.
    Tensor step(uint32_t dimension, uint32_t step) const {
        Tensor view = *this;
        if (!has(dimension)) {
            view.rank = PTO_STREAM_RANKS + 1;
        } else if (step == 0) {
            view.bytes = 0;
        } else {
            view.shape[dimension] = shape[dimension] / step + (shape[dimension] % step != 0);
            view.strides[dimension] *= step;
        }
        return view;
    }
    // Two dimensions exchanged.
    Tensor transpose(uint32_t a, uint32_t b) const {
        Tensor view = *this;
        if (!has(a) || !has(b)) {
            view.rank = PTO_STREAM_RANKS + 1;
        } else {
            view.shape[a] = shape[b];
            view.shape[b] = shape[a];
            view.strides[a] = strides[b];
            view.strides[b] = strides[a];
        }
        return view;
    }
    // Where its first element is.
    uint64_t address() const { return base + offset * element_bytes(element); }
};

// A whole tensor of the host's, in row-major order.
inline Tensor dense(uint64_t address, uint32_t element, std::initializer_list<uint32_t> shape) {
    Tensor view = {};
    view.base = address;
    view.element = element;
    view.rank = static_cast<uint32_t>(shape.size());
    if (shape.size() > PTO_STREAM_RANKS) {
        return view;
    }
    uint64_t elements = 1;
    for (uint32_t i = view.rank; i > 0; i--) {
        view.shape[i - 1] = shape.begin()[i - 1];
        view.strides[i - 1] = elements;
        elements *= view.shape[i - 1];
    }
    view.bytes = elements * element_bytes(element);
    return view;
}

// An argument of a task.
struct Arg : pto_stream_arg {};

inline Arg argument(uint32_t kind, const Tensor &tensor) {
    Arg arg = {};
    arg.kind = kind;
    arg.tensor = tensor;
    return arg;
}
inline Arg in(const Tensor &tensor) { return argument(PTO_ARG_KIND_IN, tensor); }
inline Arg out(const Tensor &tensor) { return argument(PTO_ARG_KIND_OUT, tensor); }
inline Arg inout(const Tensor &tensor) { return argument(PTO_ARG_KIND_INOUT, tensor); }
inline Arg no_dep(const Tensor &tensor) { return argument(PTO_ARG_KIND_NO_DEP, tensor); }
inline Arg scalar(uint64_t word) {
    Arg arg = {};
    arg.kind = PTO_ARG_KIND_SCALAR;
    arg.scalar = word;
    return arg;
}

// The word that a replay binds in place number `number`.
inline Arg bound_scalar(uint32_t number) {
    Arg arg = {};
    arg.kind = PTO_ARG_KIND_BOUND_SCALAR;
    arg.scalar = number;
    return arg;
}

// How an argument of a range differs from task to task: it grows by a step (a tensor by so many bytes), or is one word of a list for each task (of
// a tensor, the address where its view begins). The list lives as long as the call.
struct Variation : pto_stream_variation {};

inline Variation grows(uint32_t arg, int64_t step) {
    Variation variation = {};
    variation.arg = arg;
    variation.step = step;
    return variation;
}
template <uint32_t N>
inline Variation listed(uint32_t arg, const uint64_t (&words)[N]) {
    Variation variation = {};
    variation.arg = arg;
    variation.count = N;
    variation.words = words;
    return variation;
}

// Tasks that others wait for, by their numbers: `count` of them from `first` on, such as those of a range, or those of a list, which lives as long as
// the call.
struct Tasks {
    Tasks(int64_t first, uint32_t count) : first(first), count(count) {}
    template <uint32_t N>
    Tasks(const int64_t (&numbers)[N]) : count(N), numbers(numbers) {}

    int64_t first = 0;
    uint32_t count;
    const int64_t *numbers = nullptr;
};

// What each task of a range waits for.
struct Wait : pto_range_wait {};

inline Wait waits_for(uint32_t kind, const Tasks &producers) {
    Wait wait = {};
    wait.kind = kind;
    wait.count = producers.count;
    wait.producers = producers.numbers;
    wait.first = producers.first;
    return wait;
}
// Each task waits for all of them.
inline Wait all(const Tasks &producers) { return waits_for(PTO_RANGE_WAIT_ALL, producers); }
// Task n waits for `width` of them from number n * stride + from on, as far as there are such.
inline Wait window(const Tasks &producers, int32_t from, uint32_t width, uint32_t stride = 1) {
    Wait wait = waits_for(PTO_RANGE_WAIT_WINDOW, producers);
    wait.from = from;
    wait.width = width;
    wait.stride = stride;
    return wait;
}
// Task n waits for number n of them.
inline Wait each(const Tasks &producers) { return window(producers, 0, 1); }
// Task n waits for those from ends[n - 1] up to ends[n]; there is an end for each task, and the list lives as long as the call.
inline Wait listed_up_to(const Tasks &producers, const uint32_t *ends) {
    Wait wait = waits_for(PTO_RANGE_WAIT_LISTED, producers);
    wait.ends = ends;
    return wait;
}

// Adds so many tasks without tensors and publishes them, as if each were submitted by itself; in every run. The first one has these words, the others
// words that differ as the variations say. The number of the first one, behind which the others follow, or -1. At most PTO_RANGE_TASKS.
inline int64_t submit_range(Runtime *runtime, uint32_t tasks, int func_id, CoreType core, std::initializer_list<uint64_t> words,
                            std::initializer_list<Variation> variations, std::initializer_list<Wait> waits = {}) {
    static_assert(sizeof(Variation) == sizeof(pto_stream_variation), "a Variation is a pto_stream_variation");
    static_assert(sizeof(Wait) == sizeof(pto_range_wait), "a Wait is a pto_range_wait");
    pto_task_range range = {};
    range.struct_size = sizeof(pto_task_range);
    range.func_id = static_cast<uint32_t>(func_id);
    range.core_type = static_cast<uint32_t>(core);
    range.tasks = tasks;
    range.args = words.begin();
    range.variations = variations.begin();
    range.waits = waits.begin();
    range.arg_count = static_cast<uint32_t>(words.size());
    range.variation_count = static_cast<uint32_t>(variations.size());
    range.wait_count = static_cast<uint32_t>(waits.size());
    return runtime->pto_stream->submit_task_range(runtime, &range);
}

// A task and what it is beyond one kernel on one core: Task(F, CoreType::AIC).mix({G, G}).blocks(8).sync_start().
struct Task : pto_stream_task {
    Task(int func_id, CoreType core) : pto_stream_task() {
        struct_size = sizeof(pto_stream_task);
        this->func_id = static_cast<uint32_t>(func_id);
        core_type = static_cast<uint32_t>(core);
    }
    // Kernels on vector cores of the same cluster, started together with the task's own one: one or two.
    Task mix(std::initializer_list<int> func_ids) const {
        Task task = *this;
        for (const int func_id : func_ids) {
            if (task.vector_count < 2) {
                task.vectors[task.vector_count] = static_cast<uint32_t>(func_id);
            }
            task.vector_count++;  // More than there is room for are refused.
        }
        return task;
    }
    // So many blocks, each on cores of its own, as they become free.
    Task blocks(uint32_t count) const {
        Task task = *this;
        static_cast<pto_stream_task &>(task).blocks = count;
        return task;
    }
    // All blocks at once, as soon as there is a free core for each.
    Task sync_start() const {
        Task task = *this;
        task.start = PTO_START_MODE_SYNC;
        return task;
    }
    // Before ready tasks of lower priority: PTO_PRIORITY_*.
    Task priority(uint32_t priority) const {
        Task task = *this;
        static_cast<pto_stream_task &>(task).priority = PTO_STREAM_PRIORITY(priority);
        return task;
    }
    // Runs only if an element compares so (PTO_COMPARISON_*) with a value when the task is ready.
    Task when(const Tensor &tensor, std::initializer_list<uint32_t> index, uint32_t comparison, uint64_t value) const {
        Task task = *this;
        task.has_predicate = 1;
        task.comparison = comparison;
        task.index_rank = static_cast<uint32_t>(index.size());
        for (uint32_t i = 0; i < index.size() && i < PTO_STREAM_RANKS; i++) {
            task.index[i] = index.begin()[i];
        }
        task.value = value;
        task.element_of = tensor;
        return task;
    }
};

// The streaming interface of a runtime, while its builder runs.
class Stream {
public:
    explicit Stream(Runtime *runtime) : runtime_(runtime), api_(runtime->pto_stream) {}

    // Adds a task and publishes it: its number, or -1. It waits for what its tensors say, and for the tasks in `after`.
    int64_t submit(int func_id, CoreType core, std::initializer_list<Arg> args, std::initializer_list<int64_t> after = {}) {
        return add_with(api_->submit, Task(func_id, core), args, after);
    }
    // The same of a task with a shape.
    int64_t submit(const Task &task, std::initializer_list<Arg> args, std::initializer_list<int64_t> after = {}) {
        return add_with(api_->submit, task, args, after);
    }
    // Adds so many tasks and publishes them, as if each were submitted by itself: the first one with these arguments, the others with arguments that
    // differ as the variations say. The number of the first one, behind which the others follow, or -1. At most PTO_STREAM_RANGE_TASKS.
    int64_t submit_range(uint32_t tasks, const Task &task, std::initializer_list<Arg> args, std::initializer_list<Variation> variations,
                         std::initializer_list<int64_t> after = {}) {
        static_assert(sizeof(Arg) == sizeof(pto_stream_arg), "an Arg is a pto_stream_arg");
        static_assert(sizeof(Variation) == sizeof(pto_stream_variation), "a Variation is a pto_stream_variation");
        const int64_t number = api_->submit_range(runtime_, &task, args.begin(), static_cast<uint32_t>(args.size()), after.begin(),
                                                  static_cast<uint32_t>(after.size()), tasks, variations.begin(),
                                                  static_cast<uint32_t>(variations.size()));
        note(number < 0 ? -1 : 0);
        return number;
    }
    // The same, unpublished: aicpu_build_api adds edges to it and publishes it.
    int64_t add(int func_id, CoreType core, std::initializer_list<Arg> args, std::initializer_list<int64_t> after = {}) {
        return add_with(api_->add, Task(func_id, core), args, after);
    }
    // The same of a task with a shape.
    int64_t add(const Task &task, std::initializer_list<Arg> args, std::initializer_list<int64_t> after = {}) {
        return add_with(api_->add, task, args, after);
    }
    // Records what `body` submits, with one tensor in the place of each that replays bind: body(bound), an array of N.
    template <uint32_t N, typename Body>
    pto_stream_recording record(const Tensor (&shapes)[N], Body body) {
        pto_stream_tensor raw[N], placeholders[N] = {};
        Tensor bound[N];
        for (uint32_t i = 0; i < N; i++) {
            raw[i] = shapes[i];
        }
        pto_stream_recording made = {};
        note(api_->begin_recording(runtime_, raw, N, placeholders));
        for (uint32_t i = 0; i < N; i++) {
            static_cast<pto_stream_tensor &>(bound[i]) = placeholders[i];
        }
        body(bound);
        note(api_->end_recording(runtime_, &made));
        return made;
    }
    // Adds and publishes the tasks of a recording, on these tensors and scalars.
    template <uint32_t N>
    void replay(const pto_stream_recording &recording, const Tensor (&tensors)[N], std::initializer_list<uint64_t> scalars = {}) {
        pto_stream_tensor raw[N];
        for (uint32_t i = 0; i < N; i++) {
            raw[i] = tensors[i];
        }
        note(api_->replay(runtime_, &recording, raw, N, scalars.begin(), static_cast<uint32_t>(scalars.size())));
    }
    // A tensor on the heap of the innermost scope, not initialised.
    Tensor alloc(uint32_t element, std::initializer_list<uint32_t> shape) {
        Tensor tensor = {};
        note(api_->alloc(runtime_, element, shape.begin(), static_cast<uint32_t>(shape.size()), &tensor));
        return tensor;
    }
    // An element, in the low bits, when what writes it has completed; 0 after a failure.
    uint64_t get(const Tensor &tensor, std::initializer_list<uint32_t> index) {
        uint64_t word = 0;
        note(api_->get(runtime_, &tensor, index.begin(), static_cast<uint32_t>(index.size()), &word));
        return word;
    }
    // Writes an element when what reads or writes it has completed.
    void set(const Tensor &tensor, std::initializer_list<uint32_t> index, uint64_t word) {
        note(api_->set(runtime_, &tensor, index.begin(), static_cast<uint32_t>(index.size()), word));
    }
    // 0, or -1 after a call that failed: what a builder returns.
    int status() const { return status_; }

private:
    friend class Scope;
    using Add = int64_t (*)(void *, const pto_stream_task *, const pto_stream_arg *, uint32_t, const int64_t *, uint32_t);

    int64_t add_with(Add function, const Task &task, std::initializer_list<Arg> args, std::initializer_list<int64_t> after) {
        static_assert(sizeof(Arg) == sizeof(pto_stream_arg), "an Arg is a pto_stream_arg");
        const int64_t number = function(runtime_, &task, args.begin(), static_cast<uint32_t>(args.size()), after.begin(),
                                        static_cast<uint32_t>(after.size()));
        note(number < 0 ? -1 : 0);
        return number;
    }
    void note(int result) { status_ = result == 0 ? status_ : -1; }

    Runtime *runtime_;
    const pto_stream_api *api_;
    int status_ = 0;
};

// A scope, open as long as the object lives. Its tensors end with it.
class Scope {
public:
    explicit Scope(Stream &stream, uint32_t mode = PTO_DEPENDENCY_MODE_DERIVED) : stream_(stream) {
        stream.note(stream.api_->open_scope(stream.runtime_, mode, &scope_));
    }
    ~Scope() { stream_.note(stream_.api_->close_scope(stream_.runtime_, &scope_)); }
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

private:
    Stream &stream_;
    pto_stream_scope scope_ = {};
};

}  // namespace pto

#endif  // PTO_STREAM_HPP
