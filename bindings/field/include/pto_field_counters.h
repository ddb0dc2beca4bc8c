// How a kernel reports its instructions, for the counters of pmu.csv. Kernels with PTO-ISA need not call it: the header
// `pto/cpu/trace.hpp` of the Python package, in front of PTO-ISA's, does it. Other kernels may.
#ifndef PTO_FIELD_COUNTERS_H
#define PTO_FIELD_COUNTERS_H

#include "pto_field_prelude.h"

// Where an operand is.
enum pto_field_memory : uint32_t {
    PTO_FIELD_GLOBAL = 0,
    PTO_FIELD_UNIFIED = 1,  // the buffer of a vector core
    PTO_FIELD_L1 = 2,
    PTO_FIELD_LEFT = 3,    // the sides of the matrix unit
    PTO_FIELD_RIGHT = 4,
    PTO_FIELD_SUMS = 5,    // its results
    PTO_FIELD_BESIDE = 6,  // bias and scales
};

// The part of a tile that is used.
struct pto_field_operand {
    uint32_t memory;
    uint32_t element_bytes;
    uint64_t rows;
    uint64_t columns;
};

// The first operand is what it writes.
struct pto_field_instruction {
    const char *name;
    uint64_t length;
    const pto_field_operand *operands;
    uint64_t count;
};

#ifdef PTO_FIELD_DEVICE
// On a device nothing is counted.
static inline bool pto_field_counts(void) { return false; }
static inline void pto_field_count(const pto_field_instruction &) {}
#else
// Whether anybody counts.
static inline bool pto_field_counts(void) {
    return pto_field_sim_table != nullptr && pto_field_sim_table->version >= 2;
}

static inline void pto_field_count(const pto_field_instruction &instruction) {
    if (pto_field_counts()) {
        pto_field_sim_table->count(&instruction);
    }
}
#endif

#endif  // PTO_FIELD_COUNTERS_H
