// Stands in front of the header of PTO-ISA that has this name, includes it, and puts a class of ours in the place of one of its classes: the
// one of which every tile instruction makes a value. Ours tells the runtime which instruction it is, for pmu.csv, and makes a value
// of theirs as well.
//
// PTO-ISA includes it twice: before its barriers for the simulator, which do nothing, and before the instructions that call them.
// In between the barriers have another name, so that the instructions call ours.
#ifndef PTO_FIELD_TRACE_HPP
#define PTO_FIELD_TRACE_HPP

#define SYNCALL_IMPL PTO_FIELD_BARRIER_BELOW
#define SYNCALL_SOFT_IMPL PTO_FIELD_SOFT_BARRIER_BELOW
#define SYNCALL_SOFT_AIC_IMPL PTO_FIELD_SOFT_CUBE_BARRIER_BELOW
#define SYNCALL_SOFT_MIX_IMPL PTO_FIELD_SOFT_MIXED_BARRIER_BELOW

#define PtoInstrTraceScope PtoInstrTraceScopeBelow
#include_next <pto/cpu/trace.hpp>
#undef PtoInstrTraceScope

#include <cstddef>
#include <string_view>
#include <type_traits>

#include "pto_field_counters.h"

namespace pto::cpu_sim {

// How many instructions are open on this thread: some are made of others, and the outermost one counts.
inline thread_local int pto_field_open_instructions = 0;

// The instruction's operands, where they are tiles or tensors.
class PtoFieldOperands {
public:
    template <typename T>
    void add(T &argument) {
        using Argument = std::remove_cvref_t<T>;
        if constexpr (std::is_pointer_v<Argument>) {
            using Pointed = std::remove_cv_t<std::remove_pointer_t<Argument>>;
            if constexpr (is_tile_data_v<Pointed> || is_conv_tile_v<Pointed> || is_global_data_v<Pointed>) {
                if (argument != nullptr) {
                    add(*argument);
                }
            }
        } else if constexpr (is_tile_data_v<Argument>) {
            const auto rows = static_cast<uint64_t>(argument.GetValidRow());
            push(memory_of(Argument::Loc), sizeof(typename Argument::DType), rows, static_cast<uint64_t>(argument.GetValidCol()));
        } else if constexpr (is_conv_tile_v<Argument>) {
            uint64_t all = 1;
            for (int dimension = 0; dimension < Argument::totalDimCount; ++dimension) {
                all *= static_cast<uint64_t>(argument.GetShape(dimension));
            }
            push(memory_of(Argument::Loc), sizeof(typename Argument::DType), 1, all);
        } else if constexpr (is_global_data_v<Argument>) {
            uint64_t rows = 1;
            for (int dimension = 0; dimension + 1 < 5; ++dimension) {
                rows *= static_cast<uint64_t>(argument.GetShape(dimension));
            }
            push(PTO_FIELD_GLOBAL, sizeof(typename Argument::RawDType), rows, static_cast<uint64_t>(argument.GetShape(4)));
        }
    }
    const pto_field_operand *data() const { return list_; }
    std::size_t count() const { return count_; }

private:
    static uint32_t memory_of(TileType location) {
        switch (location) {
            case TileType::Vec: return PTO_FIELD_UNIFIED;
            case TileType::Mat: return PTO_FIELD_L1;
            case TileType::Left: return PTO_FIELD_LEFT;
            case TileType::Right: return PTO_FIELD_RIGHT;
            case TileType::Acc: return PTO_FIELD_SUMS;
            default: return PTO_FIELD_BESIDE;
        }
    }
    void push(uint32_t memory, std::size_t element, uint64_t rows, uint64_t columns) {
        if (count_ < sizeof list_ / sizeof list_[0]) {
            list_[count_++] = {memory, static_cast<uint32_t>(element), rows, columns};
        }
    }

    pto_field_operand list_[8];
    std::size_t count_ = 0;
};

class PtoInstrTraceScope {
public:
    template <typename Outputs, typename... Args>
    explicit PtoInstrTraceScope(std::string_view name, Outputs outputs, Args &&...args) : below_(name, outputs, args...) {
        if (pto_field_open_instructions++ == 0 && pto_field_counts()) {
            PtoFieldOperands operands;
            (operands.add(args), ...);
            pto_field_count({name.data(), name.size(), operands.data(), operands.count()});
        }
    }
    ~PtoInstrTraceScope() { --pto_field_open_instructions; }
    PtoInstrTraceScope(const PtoInstrTraceScope &) = delete;
    PtoInstrTraceScope &operator=(const PtoInstrTraceScope &) = delete;

private:
    PtoInstrTraceScopeBelow below_;
};

}  // namespace pto::cpu_sim

#elif !defined(PTO_FIELD_BARRIERS) && defined(PTO_INSTR_HPP)
#define PTO_FIELD_BARRIERS
#undef SYNCALL_IMPL
#undef SYNCALL_SOFT_IMPL
#undef SYNCALL_SOFT_AIC_IMPL
#undef SYNCALL_SOFT_MIX_IMPL

namespace pto {

// Flags that no program can name: a word has room for 16.
constexpr uint32_t kFieldVectorsMeet = 16, kFieldCubesMeet = 17, kFieldVectorsAreThere = 18, kFieldAllAreThere = 19;

// All cores of the task meet: those of one kind, or of both.
template <SyncCoreType CoreType = SyncCoreType::AIVOnly>
inline void SYNCALL_IMPL() {
#if defined(__DAV_VEC__)
    if constexpr (CoreType == SyncCoreType::AIVOnly) {
        pto_field_raise(0, kFieldVectorsMeet);
        pto_field_wait(kFieldVectorsMeet);
    } else if constexpr (CoreType == SyncCoreType::Mix) {
        pto_field_raise(2, kFieldVectorsAreThere);
        pto_field_wait(kFieldAllAreThere);
    }
#elif defined(__DAV_CUBE__)
    if constexpr (CoreType != SyncCoreType::AIVOnly) {
        if constexpr (CoreType == SyncCoreType::Mix) {
            pto_field_wait(kFieldVectorsAreThere);
        }
        pto_field_raise(0, kFieldCubesMeet);
        pto_field_wait(kFieldCubesMeet);
        if constexpr (CoreType == SyncCoreType::Mix) {
            pto_field_raise(2, kFieldAllAreThere);
        }
    }
#endif
}
template <SyncCoreType CoreType = SyncCoreType::AIVOnly>
inline void SYNCALL_SOFT_IMPL(int32_t *, int32_t) { SYNCALL_IMPL<CoreType>(); }
inline void SYNCALL_SOFT_AIC_IMPL(int32_t *, int32_t) { SYNCALL_IMPL<SyncCoreType::AICOnly>(); }
template <SyncCoreType CoreType = SyncCoreType::Mix>
inline void SYNCALL_SOFT_MIX_IMPL(int32_t *, int32_t) { SYNCALL_IMPL<SyncCoreType::Mix>(); }

}  // namespace pto

#endif  // PTO_FIELD_TRACE_HPP
