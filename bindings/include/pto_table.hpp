// Tables in the device's memory, as graph programs in C++17 read them: in builder plugins and in orchestrations.
//
//     const pto::Table<int32_t> lengths(runtime, runtime->orch_args[4], batch);
//     for (uint64_t b = 0; b < batch; b++) {
//         const int32_t length = lengths[b];
//     }
//     if (!lengths.is_good()) { return 1; }
//
// The host writes such a table. A program that follows its address as a pointer gets what the caches of the device's processor
// happen to hold; a table reads through the runtime, which looks after the caches. In an orchestration it copies from the device.
// A read that fails gives zero, and is the fault of the run, whatever the program returns. What tasks write is read by
// pto::Stream::get, which waits for them.
#ifndef PTO_TABLE_HPP
#define PTO_TABLE_HPP

#include <type_traits>

#include "pto_stream.h"
#include "runtime.h"

namespace pto {

// `count` elements at an address of the device's memory.
template <class Element>
class Table {
    static_assert(std::is_trivially_copyable<Element>::value, "an element is bytes");

public:
    Table(Runtime *runtime, uint64_t address, uint64_t count) : runtime_(runtime), address_(address), count_(count) {}

    // The element with this number; zero after a failure. One that the table does not have is a failure.
    Element operator[](uint64_t index) const {
        Element element = {};
        read(index, 1, &element);
        return element;
    }
    // Reads elements `first` to `first + count`, all at once: cheaper than one after the other. Whether it worked.
    bool read(uint64_t first, uint64_t count, Element *to) const {
        const bool fits = first <= count_ && count <= count_ - first;
        // A size that no memory has is the fault of an index that is out of range.
        const uint64_t bytes = fits ? count * sizeof(Element) : ~uint64_t{0};
        const pto_stream_api *api = runtime_->pto_stream;
        is_good_ = api->read(runtime_, address(first), to, bytes) == 0 && is_good_;
        return is_good_;
    }
    // Where an element is, for the arguments of tasks.
    uint64_t address(uint64_t index) const { return address_ + index * sizeof(Element); }
    // How many elements it has.
    uint64_t size() const { return count_; }
    // Whether no read of this table has failed.
    bool is_good() const { return is_good_; }

private:
    Runtime *runtime_;
    uint64_t address_;
    uint64_t count_;
    mutable bool is_good_ = true;
};

}  // namespace pto

#endif  // PTO_TABLE_HPP
