// Arguments of tasks: tensors first, then scalars. They keep pointers to the program's tensors.
//
// Not for programs: they include pto_orchestration_api.h.
#ifndef PTO_FIELD_ARGS_H
#define PTO_FIELD_ARGS_H

#include <deque>
#include <string>
#include <type_traits>

#include "pto_field_calls.h"

enum class TensorArgType : uint8_t { INPUT, OUTPUT, INOUT, OUTPUT_EXISTING, NO_DEP };
enum class ArgDirection : uint8_t { SCALAR, IN, OUT, INOUT };

// A tensor for a message: buffer, offset in elements, shape, distances.
class PtoFieldText : public std::string {
public:
    explicit PtoFieldText(const ChipTensor &tensor) {
        char text[512];
        int length = snprintf(text, sizeof text, "Tensor(addr %#llx, %llu bytes, from element %llu, %s", static_cast<unsigned long long>(tensor.buffer.addr),
                              static_cast<unsigned long long>(tensor.buffer.size), static_cast<unsigned long long>(tensor.start_offset), get_dtype_name(tensor.dtype));
        for (uint32_t dim = 0; dim < tensor.dims(); dim++) {
            length += snprintf(text + length, sizeof text - static_cast<size_t>(length), "%s%u by %u", dim == 0 ? ", " : " x ", tensor.shapes[dim], tensor.strides[dim]);
        }
        assign(text).append(")");
    }
};

// A tensor that the runtime makes when the task is submitted.
class TensorCreateInfo {
public:
    TensorCreateInfo(const uint32_t extents[], uint32_t ndims, DataType type = DataType::FLOAT32, bool manual = false)
        : ndims_(ndims), dtype(type), manual_dep_(manual) {
        for (uint32_t dim = 0; dim < 5; dim++) {
            shapes_[dim] = dim < ndims ? extents[dim] : 0;
        }
    }
    // Every element is this value before the task runs.
    template <typename T>
    void set_initial_value(T value) {
        initial_ = to_u64(value);
        has_initial_ = true;
    }
    uint64_t buffer_size_bytes() const {
        uint64_t bytes = get_element_size(dtype);
        for (uint32_t dim = 0; dim < ndims_ && dim < 5; dim++) {
            bytes *= shapes_[dim];
        }
        return bytes;
    }

private:
    // The runtime reads these by their offsets.
    uint64_t initial_ = 0;
    uint32_t ndims_;
    uint32_t shapes_[5];

public:
    DataType dtype;

private:
    bool manual_dep_;
    bool has_initial_ = false;
    uint8_t reserved_[5] = {0, 0, 0, 0, 0};
};
static_assert(sizeof(TensorCreateInfo) == 40, "size of TensorCreateInfo");

enum class PredicateOp : uint8_t { NONE, EQ, NE, GT, LT, GE, LE };

struct CorePredicateOperand {
    const ChipTensor *tensor = nullptr;
    uint32_t ndims = 0;
    uint32_t indices[5] = {0, 0, 0, 0, 0};
};

// The task runs only if the element compares so with the target when the task becomes ready.
struct CoreTaskPredicate {
    CorePredicateOperand operand;
    PredicateOp op = PredicateOp::NONE;
    int64_t target = 0;
};

// How many blocks a task has. The platforms call the number by different names, and programs look which one is there: with
// PTO_FIELD_A5=1 it is that of a5 under tensormap_and_ringbuffer.
class PTO2LaunchSpec {
public:
#if !defined(PTO_FIELD_A5) || !PTO_FIELD_A5
    int16_t block_num() const { return blocks_; }
    void set_block_num(int16_t blocks) { blocks_ = blocks; }
#else
    int16_t core_num() const { return blocks_; }
    void set_core_num(int16_t blocks) { blocks_ = blocks; }
#endif
    int16_t blocks() const { return blocks_; }
    bool require_sync_start() const { return sync_start_; }
    void set_require_sync_start(bool sync_start) { sync_start_ = sync_start; }

private:
    int16_t blocks_ = 1;
    bool sync_start_ = false;
};

typedef uint8_t DepFlags;
enum : DepFlags { DEP_NONE = 0, DEP_WAIT = 1, DEP_RETAIN = 2, DEP_DEFAULT = 3 };

// One argument, as programs read it. One that was not added is a tensor without elements, at no address. Until June 2026 programs read the fields.
class PtoFieldTensorArg {
public:
    uint64_t data = 0;
    uint32_t shapes[5] = {0, 0, 0, 0, 0};
    uint32_t ndims = 0;
    DataType dtype = DataType::FLOAT32;

    PtoFieldTensorArg(const void *what, TensorArgType tag) : what_(what) {
        if (what != nullptr && tag != TensorArgType::OUTPUT) {
            const ChipTensor &tensor = *ptr();
            data = tensor.buffer.addr + tensor.start_offset * get_element_size(tensor.dtype);
            ndims = tensor.dims();
            dtype = tensor.dtype;
            memcpy(shapes, tensor.shapes, sizeof shapes);
        }
    }
    uint64_t numel() const {
        uint64_t count = 1;
        for (uint32_t dim = 0; dim < ndims; dim++) {
            count *= shapes[dim];
        }
        return count;
    }
    uint64_t nbytes() const { return numel() * get_element_size(dtype); }
    template <typename T>
    T *data_as() const {
        return reinterpret_cast<T *>(static_cast<uintptr_t>(data));
    }
    const ChipTensor &ref() const {
        static const ChipTensor none = {};
        return what_ == nullptr ? none : *ptr();
    }
    const ChipTensor *ptr() const { return static_cast<const ChipTensor *>(what_); }
    const TensorCreateInfo &create_info() const {
        static const TensorCreateInfo none(nullptr, 0);
        return what_ == nullptr ? none : *static_cast<const TensorCreateInfo *>(what_);
    }

private:
    const void *what_;
};

template <uint32_t TENSORS, uint32_t SCALARS>
class PtoFieldArgs {
public:
    PTO2LaunchSpec launch_spec;

    PtoFieldArgs() = default;
    PtoFieldArgs(const PtoFieldArgs &) = delete;
    PtoFieldArgs &operator=(const PtoFieldArgs &) = delete;

    template <typename... Ts>
    void add_input(Ts &&...tensors) {
        (add_existing(tensors, TensorArgType::INPUT, std::is_lvalue_reference<Ts>()), ...);
    }
    template <typename... Ts>
    void add_inout(Ts &&...tensors) {
        (add_existing(tensors, TensorArgType::INOUT, std::is_lvalue_reference<Ts>()), ...);
    }
    template <typename... Ts>
    void add_no_dep(Ts &&...tensors) {
        (add_existing(tensors, TensorArgType::NO_DEP, std::is_lvalue_reference<Ts>()), ...);
    }
    // A TensorCreateInfo is a tensor that the runtime makes, a ChipTensor one that exists.
    template <typename... Ts>
    void add_output(Ts &&...tensors) {
        (add_one_output(tensors, std::is_lvalue_reference<Ts>()), ...);
    }
    template <typename... Ts>
    void add_scalar(Ts &&...values) {
        (push_scalar(to_u64(values), std::is_lvalue_reference<Ts>::value ? static_cast<const void *>(&values) : nullptr), ...);
    }
    void add_scalars(const uint64_t *values, int count) {
        for (int at = 0; at < count; at++) {
            push_scalar(values[at]);
        }
    }
    void add_scalars_i32(const int32_t *values, int count) {
        for (int at = 0; at < count; at++) {
            push_scalar(to_u64(values[at]));
        }
    }
    template <uint32_t T, uint32_t S>
    void copy_scalars_from(const PtoFieldArgs<T, S> &source, int offset, int count) {
        if (offset < 0 || count < 0 || offset > source.scalar_count() || count > source.scalar_count() - offset) {
            return set_error("copy_scalars_from: the source has no such scalars");
        }
        for (int at = 0; at < count; at++) {
            push_scalar(source.scalar(offset + at));
        }
    }

    // Tasks that this one waits for in addition to the producers of its tensors; 0 takes them back.
    void set_dependencies(const PTO2TaskId *ids, uint32_t count) {
        if (count != 0 && dependency_count_ != 0) {
            return set_error("set_dependencies was called twice: call it once, with all tasks");
        }
        if (count != 0 && ids == nullptr) {
            return set_error("set_dependencies: the pointer to the tasks is null");
        }
        dependencies_ = ids;
        dependency_kinds_ = nullptr;
        dependency_count_ = count;
    }
    void set_dependencies_with_kinds(const PTO2TaskId *ids, const DepFlags *kinds, uint32_t count) {
        set_dependencies(ids, count);
        dependency_kinds_ = kinds;
    }
    void set_allow_early_resolve(bool allow = true) {
        flags_ = allow ? flags_ | PTO_FIELD_EARLY_RESOLVE : flags_ & ~PTO_FIELD_EARLY_RESOLVE;
    }
    void set_predicate(const CoreTaskPredicate &predicate) { predicate_ = predicate; }
    void set_task_timing_slot(int32_t slot) {
        if (slot < 0 || slot > 15) {
            return set_error("set_task_timing_slot: a slot is 0 to 15");
        }
        timing_slot_ = slot;
    }
    // Marks arguments for a dump: tensors and scalars by the names that they were added with; none: all of them. A name that was
    // added several times is the first one of these.
    template <typename... Ts>
    void dump(Ts &&...arguments) {
        static_assert((std::is_lvalue_reference<Ts>::value && ...), "dump() knows arguments by their names: give no temporary");
        if (sizeof...(arguments) == 0) {
            dump_ = ~static_cast<uint64_t>(0);
        }
        (mark_dump(static_cast<const void *>(&arguments)), ...);
    }

    bool has_error() const { return error_ != nullptr; }
    const char *error_msg() const { return error_ == nullptr ? "" : error_; }
    void set_error(const char *text) {
        if (error_ == nullptr) {
            error_ = text;
        }
    }
    void clear() {
        tensor_count_ = scalar_count_ = dependency_count_ = 0;
        dependencies_ = nullptr;
        dependency_kinds_ = nullptr;
        predicate_ = CoreTaskPredicate();
        timing_slot_ = -1;
        flags_ = 0;
        dump_ = 0;
        error_ = nullptr;
        launch_spec = PTO2LaunchSpec();
    }
    void reset() { clear(); }

    PtoFieldTensorArg tensor(uint32_t index) const { return PtoFieldTensorArg(index < tensor_count_ ? tensors_[index].what : nullptr, tag(index)); }
    TensorArgType tag(uint32_t index) const {
        return index < tensor_count_ ? static_cast<TensorArgType>(tensors_[index].tag) : TensorArgType::INPUT;
    }
    uint64_t scalar(uint32_t index) const { return index < scalar_count_ ? scalars_[index] : 0; }
    int32_t tensor_count() const { return static_cast<int32_t>(tensor_count_); }
    int32_t scalar_count() const { return static_cast<int32_t>(scalar_count_); }

    // As the runtime takes it.
    pto_field_task as_task(int32_t aic, int32_t aiv0, int32_t aiv1, const char *file, int line) const {
        pto_field_task task;
        task.tensors = tensors_;
        task.scalars = scalars_;
        task.dependencies = dependencies_;
        task.dependency_kinds = dependency_kinds_;
        const bool is_conditional = predicate_.op != PredicateOp::NONE;
        task.predicate = is_conditional ? predicate_.operand.tensor : nullptr;
        task.error = error_;
        if (is_conditional && predicate_.operand.tensor == nullptr) {
            task.error = "the predicate has no tensor";
        }
        task.tensor_count = tensor_count_;
        task.scalar_count = scalar_count_;
        task.dependency_count = dependency_count_;
        task.predicate_ndims = predicate_.operand.ndims;
        for (int dim = 0; dim < 5; dim++) {
            task.predicate_indices[dim] = predicate_.operand.indices[dim];
        }
        task.predicate_op = static_cast<uint32_t>(predicate_.op);
        task.predicate_target = predicate_.target;
        task.kernels[0] = aic;
        task.kernels[1] = aiv0 < 0 ? aiv1 : aiv0;
        task.kernels[2] = aiv0 < 0 ? -1 : aiv1;
        task.blocks = launch_spec.blocks();
        task.timing_slot = timing_slot_;
        task.flags = flags_ | (launch_spec.require_sync_start() ? PTO_FIELD_SYNC_START : 0u);
        task.dump = dump_;
        task.place = pto_field_place{file, line, 0};
        task.scalar_words = 0;
        task.reserved = 0;
        return task;
    }

    // For the makers of arguments.
    void push_tensor(const void *what, TensorArgType tag) {
        if (scalar_count_ != 0) {
            return set_error("a tensor was added after a scalar: add all tensors first");
        }
        if (tensor_count_ == TENSORS) {
            return set_error("too many tensors");
        }
        tensors_[tensor_count_++] = pto_field_argument{what, static_cast<uint64_t>(tag)};
    }
    void push_scalar(uint64_t word, const void *name = nullptr) {
        if (scalar_count_ == SCALARS) {
            return set_error("too many scalars");
        }
        scalar_names_[scalar_count_] = name;
        scalars_[scalar_count_++] = word;
    }

private:
    template <typename Lvalue>
    void add_existing(const ChipTensor &tensor, TensorArgType tag, Lvalue) {
        static_assert(Lvalue::value, "arguments keep pointers: give the tensor a name first");
        push_tensor(&tensor, tag);
    }
    template <typename Lvalue>
    void add_one_output(const ChipTensor &tensor, Lvalue is_lvalue) {
        add_existing(tensor, TensorArgType::OUTPUT_EXISTING, is_lvalue);
    }
    template <typename Lvalue>
    void add_one_output(const TensorCreateInfo &tensor, Lvalue) {
#if defined(PTO_FIELD_EXPLICIT_EDGES)
        infos_.push_back(tensor);
        push_tensor(&infos_.back(), TensorArgType::OUTPUT);
#else
        static_assert(Lvalue::value, "arguments keep pointers: give the TensorCreateInfo a name first");
        push_tensor(&tensor, TensorArgType::OUTPUT);
#endif
    }
    void mark_dump(const void *name) {
        for (uint32_t at = 0; at < tensor_count_ && at < PTO_FIELD_DUMP_ARGUMENTS; at++) {
            if (tensors_[at].what == name) {
                dump_ |= static_cast<uint64_t>(1) << at;
            }
        }
        uint32_t first = SCALARS;
        for (uint32_t at = 0; at < scalar_count_ && at < 16; at++) {
            if (scalar_names_[at] != name) {
                continue;
            }
            if (first != SCALARS) {
                dump_ |= static_cast<uint64_t>(1) << (PTO_FIELD_DUMP_ARGUMENTS + first);
                return;
            }
            first = at;
            dump_ |= static_cast<uint64_t>(1) << (tensor_count_ + at);
        }
    }
#if defined(PTO_FIELD_EXPLICIT_EDGES)
    std::deque<TensorCreateInfo> infos_;  // programs of March and April 2026 give temporaries
#endif
    const PTO2TaskId *dependencies_ = nullptr;
    const uint8_t *dependency_kinds_ = nullptr;
    const char *error_ = nullptr;
    uint32_t tensor_count_ = 0;
    uint32_t scalar_count_ = 0;
    uint32_t dependency_count_ = 0;
    int32_t timing_slot_ = -1;
    uint32_t flags_ = 0;
    uint64_t dump_ = 0;
    CoreTaskPredicate predicate_;
    pto_field_argument tensors_[TENSORS];
    uint64_t scalars_[SCALARS];
    const void *scalar_names_[SCALARS];
};

class CoreTaskArgs : public PtoFieldArgs<32, 16> {};
class ChipTaskArgs : public PtoFieldArgs<256, 128> {};
class GraphTaskArgs : public PtoFieldArgs<128, 64> {};

#endif  // PTO_FIELD_ARGS_H
