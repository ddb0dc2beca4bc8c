// Choices from the bytes of a script: 16 for each call. Behind the last byte they follow from the bytes before. As src/choices.rs otherwise.
#ifndef PTO_FUZZ_CHOICES_H
#define PTO_FUZZ_CHOICES_H

#include <stdint.h>

enum { CALL_BYTES = 16 };

// What a program throws that means to.
struct Deliberate {};

class Choices {
public:
    Choices(const uint8_t *at, uint64_t bytes) : at_(at), end_(at + bytes) {}

    uint8_t byte() {
        const uint8_t next = at_ == end_ ? 0 : *at_++;
        state_ = (state_ ^ next) * 6364136223846793005u + 1442695040888963407u;
        return at_ == end_ ? static_cast<uint8_t>(state_ >> 56) : next;
    }
    template <typename T, uint32_t N>
    T one_of(const T (&values)[N]) {
        return values[byte() % N];
    }
    // Mostly a small number; sometimes one at an edge of 32 or 64 bits.
    uint64_t number() {
        const uint8_t first = byte();
        if (first < 200) return first;
        if (first < 220) return static_cast<uint64_t>(byte()) << 8;
        if (first < 230) return UINT32_MAX - static_cast<uint64_t>(byte());
        if (first < 240) return static_cast<uint64_t>(1) << (byte() % 64);
        if (first < 250) return UINT64_MAX - byte();
        return static_cast<uint64_t>(INT64_MAX) + byte();
    }
    uint32_t word() { return static_cast<uint32_t>(number()); }
    uint32_t extent() { return byte() % 16 == 0 ? word() : 1 + byte() % 16; }
    uint32_t index() { return byte() % 16 == 0 ? word() : byte() % 16; }

private:
    const uint8_t *at_, *end_;
    uint64_t state_ = 1;
};

#endif
