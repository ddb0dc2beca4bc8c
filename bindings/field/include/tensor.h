// The tensor that orchestrations submit and that kernels receive: 128 bytes, a strided view of a buffer.
//
// Kernels get a pointer to one of these for each tensor argument. The first element of the view is at
// `buffer.addr` plus `start_offset` elements.
#ifndef PTO_FIELD_TENSOR_H
#define PTO_FIELD_TENSOR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Kernels mark what lies in global memory. Outside of PTO-ISA the marks mean nothing.
#ifndef __gm__
#define __gm__
#endif
#ifndef __aicore__
#define __aicore__
#endif

#ifndef PTO2_MAX_TENSOR_DIMS
#define PTO2_MAX_TENSOR_DIMS 5
#endif
#define MAX_TENSOR_DIMS 5

enum class DataType : uint8_t {
    FLOAT32, FLOAT16, INT32, INT16, INT8, UINT8, BFLOAT16, INT64, UINT64, UINT16, UINT32, BOOL,
    FP8E4M3FN, FP8E8M0, FP4E2M1,
};

// Where the memory of an external tensor is.
enum class AddressSpace : uint8_t { HOST = 0, DEVICE = 1 };

// Bytes of an element; 0: there is no such type.
inline uint64_t get_element_size(DataType type) {
    switch (type) {
    case DataType::FLOAT32: case DataType::INT32: case DataType::UINT32: return 4;
    case DataType::FLOAT16: case DataType::INT16: case DataType::BFLOAT16: case DataType::UINT16: return 2;
    case DataType::INT64: case DataType::UINT64: return 8;
    case DataType::INT8: case DataType::UINT8: case DataType::BOOL:
    case DataType::FP8E4M3FN: case DataType::FP8E8M0: case DataType::FP4E2M1: return 1;
    }
    return 0;
}

inline const char *get_dtype_name(DataType type) {
    static const char *const names[] = {"FLOAT32", "FLOAT16", "INT32", "INT16", "INT8", "UINT8", "BFLOAT16", "INT64",
                                        "UINT64", "UINT16", "UINT32", "BOOL", "FP8E4M3FN", "FP8E8M0", "FP4E2M1"};
    const unsigned number = static_cast<unsigned>(type);
    return number < sizeof names / sizeof *names ? names[number] : "UNKNOWN";
}

// A value as a word: its bits, with zeros above them; and back.
template <typename T>
inline uint64_t to_u64(T value) {
    static_assert(sizeof(T) <= 8, "a scalar has at most 8 bytes");
    uint64_t word = 0;
    memcpy(&word, &value, sizeof(T));
    return word;
}
template <typename T>
inline T from_u64(uint64_t word) {
    static_assert(sizeof(T) <= 8, "a scalar has at most 8 bytes");
    T value;
    memcpy(&value, &word, sizeof(T));
    return value;
}

// A task: the ring of its scope and its number there. The bits above the ring are the runtime's own.
struct PTO2TaskId {
    uint64_t raw;

    static constexpr PTO2TaskId make(uint8_t ring, uint32_t local) {
        return PTO2TaskId{(static_cast<uint64_t>(ring) << 32) | local};
    }
    static constexpr PTO2TaskId invalid() { return PTO2TaskId{~static_cast<uint64_t>(0)}; }
    constexpr uint8_t ring() const { return static_cast<uint8_t>(raw >> 32); }
    constexpr uint32_t local() const { return static_cast<uint32_t>(raw); }
    constexpr bool is_valid() const { return raw != ~static_cast<uint64_t>(0); }
    constexpr bool is_invalid() const { return !is_valid(); }
    constexpr bool operator==(const PTO2TaskId &other) const { return raw == other.raw; }
    constexpr bool operator!=(const PTO2TaskId &other) const { return raw != other.raw; }
};
using TaskId = PTO2TaskId;

// The memory that a tensor is a view of.
struct ChipBuffer {
    uint64_t addr;
    uint64_t size;  // bytes
};

class PtoFieldText;

struct alignas(64) ChipTensor {
    ChipBuffer buffer;
    PTO2TaskId owner_task_id;  // the task that made it; invalid: an external tensor
    uint64_t start_offset;     // elements
    int32_t version;
    uint32_t ndims;
    DataType dtype;
    bool manual_dep;
    bool is_contiguous;
    AddressSpace address_space;
    union {
        uint32_t shapes[5];
        uint32_t repeats[5];  // what programs of February 2026 call them
    };
    uint64_t extent_elem_cache;
    uint32_t strides[5];  // elements
    uint32_t reserved[9];

    // Dimensions that the arrays hold, also where `ndims` says more.
    uint32_t dims() const { return ndims <= 5 ? ndims : 5; }
    // No tensor has more than five dimensions; what says so has no elements.
    uint64_t numel() const {
        if (ndims > 5) {
            return 0;
        }
        uint64_t count = 1;
        for (uint32_t dim = 0; dim < ndims; dim++) {
            count *= shapes[dim];
        }
        return count;
    }
    uint64_t nbytes() const { return numel() * get_element_size(dtype); }
    // Elements from the first one of the view to the one after its last.
    uint64_t extent_elem() const {
        if (ndims > 5) {
            return 0;
        }
        uint64_t last = 0;
        for (uint32_t dim = 0; dim < ndims; dim++) {
            if (shapes[dim] == 0) {
                return 0;
            }
            last += static_cast<uint64_t>(shapes[dim] - 1) * strides[dim];
        }
        return last + 1;
    }
    bool is_device_memory() const { return address_space == AddressSpace::DEVICE; }
    // The first byte of the buffer, whatever the view's offset.
    template <typename T>
    T *data_as() const {
        return reinterpret_cast<T *>(static_cast<uintptr_t>(buffer.addr));
    }
    uint64_t compute_flat_offset(const uint32_t *indices, uint32_t count) const {
        uint64_t offset = start_offset;
        for (uint32_t dim = 0; dim < count && dim < 5; dim++) {
            offset += static_cast<uint64_t>(indices[dim]) * strides[dim];
        }
        return offset;
    }

    // A part of it, of these extents, from these indices. A part without elements touches nothing.
    ChipTensor view(const uint32_t view_shapes[], const uint32_t view_offsets[], bool manual = false) const {
        ChipTensor part = *this;
        part.start_offset = compute_flat_offset(view_offsets, ndims);
        for (uint32_t dim = 0; dim < dims(); dim++) {
            part.shapes[dim] = view_shapes[dim];
        }
        part.manual_dep = manual;
        part.settle();
        return part;
    }
    // The same elements in another shape, of as many elements. Contiguous tensors only; what does not fit has no elements.
    ChipTensor reshape(const uint32_t new_shapes[], uint32_t new_ndims, bool manual = false) const {
        ChipTensor other = *this;
        other.ndims = new_ndims <= 5 ? new_ndims : 5;
        other.set_dense(new_shapes);
        other.manual_dep = manual;
        if (!is_contiguous || new_ndims > 5 || other.numel() != numel()) {
            // The submission refuses it: no tensor has six dimensions.
            other.ndims = PTO2_MAX_TENSOR_DIMS + 1;
        }
        return other;
    }
    ChipTensor transpose(uint32_t a, uint32_t b) const {
        ChipTensor other = *this;
        if (a < dims() && b < dims()) {
            const uint32_t shape = shapes[a], stride = strides[a];
            other.shapes[a] = shapes[b], other.strides[a] = strides[b];
            other.shapes[b] = shape, other.strides[b] = stride;
        }
        other.settle();
        return other;
    }
    ChipTensor permute(const uint32_t order[]) const {
        ChipTensor other = *this;
        for (uint32_t dim = 0; dim < dims(); dim++) {
            other.shapes[dim] = shapes[order[dim] % 5];
            other.strides[dim] = strides[order[dim] % 5];
        }
        other.settle();
        return other;
    }
    ChipTensor slice(uint32_t dim, uint32_t start, uint32_t length) const {
        uint32_t extents[5], offsets[5] = {0, 0, 0, 0, 0};
        for (uint32_t at = 0; at < 5; at++) {
            extents[at] = shapes[at];
        }
        if (dim < 5) {
            extents[dim] = length, offsets[dim] = start;
        }
        return view(extents, offsets, manual_dep);
    }

    // For messages; pto_field_args.h has the text.
    template <typename Text = PtoFieldText>
    Text dump() const {
        return Text(*this);
    }

    // For the makers of tensors: extents in row-major order.
    void set_dense(const uint32_t extents[]) {
        uint64_t stride = 1;
        for (uint32_t dim = 5; dim-- > 0;) {
            const bool is_there = dim < ndims;
            shapes[dim] = is_there ? extents[dim] : 0;
            strides[dim] = is_there ? static_cast<uint32_t>(stride) : 0;
            stride *= is_there ? extents[dim] : 1;
        }
        settle();
    }
    void settle() {
        uint64_t inner = 1;
        bool dense = true;
        for (uint32_t dim = dims(); dim-- > 0;) {
            dense = dense && (shapes[dim] == 1 || strides[dim] == inner);
            inner *= shapes[dim];
        }
        is_contiguous = dense;
        extent_elem_cache = extent_elem();
    }
};

static_assert(sizeof(ChipTensor) == 128, "size of ChipTensor");
static_assert(offsetof(ChipTensor, owner_task_id) == 16, "ChipTensor::owner_task_id");
static_assert(offsetof(ChipTensor, start_offset) == 24, "ChipTensor::start_offset");
static_assert(offsetof(ChipTensor, version) == 32, "ChipTensor::version");
static_assert(offsetof(ChipTensor, dtype) == 40, "ChipTensor::dtype");
static_assert(offsetof(ChipTensor, shapes) == 44, "ChipTensor::shapes");
static_assert(offsetof(ChipTensor, extent_elem_cache) == 64, "ChipTensor's extent");
static_assert(offsetof(ChipTensor, strides) == 72, "ChipTensor::strides");

// Kernels of the first days of March 2026 call it so.
using TensorData = ChipTensor;
// Programs from February to July 2026 call it Tensor.
#ifndef PTO_FIELD_OWN_TENSOR
using Tensor = ChipTensor;
#endif
// Programs written after August 2026 find the kernel's tensor in these namespaces.
namespace simpler {
namespace tmr {
using Tensor = ::ChipTensor;
}
namespace hbg {
using Tensor = ::ChipTensor;
}
}  // namespace simpler

#endif  // PTO_FIELD_TENSOR_H
