// An orchestration's end of a region that it shares with the host function above it: bytes of payload, and counters of 32 bits.
//
// The region is memory of this process. The host function makes it (create_worker_chip_region) and passes six words.
#ifndef PTO_FIELD_WORKER_CHIP_ORCH_ENDPOINT_H
#define PTO_FIELD_WORKER_CHIP_ORCH_ENDPOINT_H

#include <stdint.h>
#include <string.h>
#include <time.h>

#define WORKER_CHIP_ORCH_REGION_DESC_SCALAR_COUNT 6
// What the first word of a region's description is; simpler/worker_chip_orch_comm.py has the same.
#define WORKER_CHIP_ORCH_REGION_MAGIC_VERSION 0x50544F5245470001ull

struct WorkerChipOrchRegionDesc {
    uint64_t magic_version, region_id, payload_base, payload_bytes, counter_base, counter_bytes;
};

enum class WorkerChipOrchWaitCmp : uint32_t { EQ, NE, GT, GE, LT, LE };
enum class WorkerChipOrchNotifyOp : uint32_t { Set, Add };
enum class WorkerChipEndpointOp : uint32_t { INIT, COUNTER_ADDR, PAYLOAD_READ, PAYLOAD_WRITE, SIGNAL_NOTIFY, SIGNAL_TEST, SIGNAL_WAIT };
enum class WorkerChipEndpointErrorKind : uint32_t { NONE, BAD_DESCRIPTOR, BAD_ARGUMENT, OUT_OF_BOUNDS, TIMEOUT };

inline const char *worker_chip_endpoint_op_to_string(WorkerChipEndpointOp op) {
    static const char *const names[] = {"INIT", "COUNTER_ADDR", "PAYLOAD_READ", "PAYLOAD_WRITE", "SIGNAL_NOTIFY", "SIGNAL_TEST", "SIGNAL_WAIT"};
    const uint32_t number = static_cast<uint32_t>(op);
    return number < sizeof names / sizeof *names ? names[number] : "UNKNOWN";
}

struct WorkerChipEndpointError {
    WorkerChipEndpointErrorKind kind = WorkerChipEndpointErrorKind::NONE;
    WorkerChipEndpointOp op = WorkerChipEndpointOp::INIT;
    uint64_t region_id = 0;
    uint64_t counter_addr = 0;
    int32_t counter_operand = 0;
    int32_t observed_counter = 0;
    const char *message = "";
};

struct WorkerChipOrchPayloadView {
    uint64_t gm_addr = 0;
    uint64_t nbytes = 0;
};
struct WorkerChipOrchSignalTestResult {
    bool matched = false;
    int32_t observed = 0;
};

inline uint64_t pto_field_now_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1000000000ull + static_cast<uint64_t>(now.tv_nsec);
}
// Lets others go on while this thread waits.
inline void pto_field_pause() {
    const timespec moment = {0, 20000};
    nanosleep(&moment, nullptr);
}

class WorkerChipOrchEndpoint {
public:
    WorkerChipOrchEndpoint(const uint64_t words[], uint32_t count) {
        if (words == nullptr || count != WORKER_CHIP_ORCH_REGION_DESC_SCALAR_COUNT) {
            fail(WorkerChipEndpointOp::INIT, WorkerChipEndpointErrorKind::BAD_DESCRIPTOR, "a region is described by six words");
            return;
        }
        init(WorkerChipOrchRegionDesc{words[0], words[1], words[2], words[3], words[4], words[5]});
    }
    explicit WorkerChipOrchEndpoint(const WorkerChipOrchRegionDesc &desc) { init(desc); }

    const WorkerChipOrchRegionDesc &desc() const { return desc_; }
    const WorkerChipEndpointError &error() const { return error_; }

    // The address of the counter at this offset.
    bool counter_addr(uint64_t offset, uint64_t &address) {
        if (offset % 4 != 0 || offset >= desc_.counter_bytes) {
            return fail(WorkerChipEndpointOp::COUNTER_ADDR, WorkerChipEndpointErrorKind::OUT_OF_BOUNDS, "the region has no counter at this offset");
        }
        address = desc_.counter_base + offset;
        return is_fine();
    }
    // A view of these bytes: nothing is copied.
    bool payload_read(uint64_t offset, uint64_t nbytes, WorkerChipOrchPayloadView &view) {
        if (nbytes > desc_.payload_bytes || offset > desc_.payload_bytes - nbytes) {
            return fail(WorkerChipEndpointOp::PAYLOAD_READ, WorkerChipEndpointErrorKind::OUT_OF_BOUNDS, "the bytes reach beyond the region");
        }
        view.gm_addr = desc_.payload_base + offset;
        view.nbytes = nbytes;
        return is_fine();
    }
    bool payload_write(uint64_t offset, const void *source, uint64_t nbytes) {
        if (nbytes > desc_.payload_bytes || offset > desc_.payload_bytes - nbytes || (source == nullptr && nbytes != 0)) {
            return fail(WorkerChipEndpointOp::PAYLOAD_WRITE, WorkerChipEndpointErrorKind::OUT_OF_BOUNDS, "the bytes reach beyond the region");
        }
        if (nbytes != 0) {
            memcpy(reinterpret_cast<void *>(static_cast<uintptr_t>(desc_.payload_base + offset)), source, nbytes);
        }
        return is_fine();
    }
    // What was written before is visible to a reader that sees the counter's new value.
    bool signal_notify(uint64_t address, int32_t value, WorkerChipOrchNotifyOp op) {
        int32_t *counter = checked(address, WorkerChipEndpointOp::SIGNAL_NOTIFY);
        if (counter == nullptr) {
            return false;
        }
        // Release: pairs with the Acquire in `read` and in the host's counters.
        const int32_t base = op == WorkerChipOrchNotifyOp::Add ? __atomic_load_n(counter, __ATOMIC_RELAXED) : 0;
        __atomic_store_n(counter, static_cast<int32_t>(static_cast<uint32_t>(base) + static_cast<uint32_t>(value)), __ATOMIC_RELEASE);
        return true;
    }
    bool signal_test(uint64_t address, int32_t value, WorkerChipOrchWaitCmp cmp, WorkerChipOrchSignalTestResult &result) {
        int32_t *counter = checked(address, WorkerChipEndpointOp::SIGNAL_TEST);
        if (counter == nullptr) {
            return false;
        }
        result.observed = read(counter);
        result.matched = holds(result.observed, value, cmp);
        return true;
    }
    bool signal_wait(uint64_t address, int32_t value, WorkerChipOrchWaitCmp cmp, uint64_t timeout_ns, int32_t &observed) {
        int32_t *counter = checked(address, WorkerChipEndpointOp::SIGNAL_WAIT);
        if (counter == nullptr) {
            return false;
        }
        const uint64_t start = pto_field_now_ns();
        for (;;) {
            observed = read(counter);
            if (holds(observed, value, cmp)) {
                return true;
            }
            if (pto_field_now_ns() - start > timeout_ns) {
                error_.counter_addr = address;
                error_.counter_operand = value;
                error_.observed_counter = observed;
                return fail(WorkerChipEndpointOp::SIGNAL_WAIT, WorkerChipEndpointErrorKind::TIMEOUT, "the counter did not reach the value in time");
            }
            pto_field_pause();
        }
    }

    // In June and July 2026 results went to pointers.
    bool counter_addr(uint64_t offset, uint64_t *address) { return is_given(address, WorkerChipEndpointOp::COUNTER_ADDR) && counter_addr(offset, *address); }
    bool payload_read(uint64_t offset, uint64_t nbytes, WorkerChipOrchPayloadView *view) {
        return is_given(view, WorkerChipEndpointOp::PAYLOAD_READ) && payload_read(offset, nbytes, *view);
    }
    bool signal_test(uint64_t address, int32_t value, WorkerChipOrchWaitCmp cmp, WorkerChipOrchSignalTestResult *result) {
        return is_given(result, WorkerChipEndpointOp::SIGNAL_TEST) && signal_test(address, value, cmp, *result);
    }
    bool signal_wait(uint64_t address, int32_t value, WorkerChipOrchWaitCmp cmp, uint64_t timeout_ns, int32_t *observed) {
        return is_given(observed, WorkerChipEndpointOp::SIGNAL_WAIT) && signal_wait(address, value, cmp, timeout_ns, *observed);
    }

private:
    bool is_given(const void *result, WorkerChipEndpointOp op) {
        return result != nullptr || fail(op, WorkerChipEndpointErrorKind::BAD_ARGUMENT, "the pointer to the result is null");
    }
    void init(const WorkerChipOrchRegionDesc &desc) {
        desc_ = desc;
        error_.region_id = desc.region_id;
        const bool is_aligned = desc.counter_base % 64 == 0 && desc.counter_bytes % 4 == 0;
        if (desc.magic_version != WORKER_CHIP_ORCH_REGION_MAGIC_VERSION || desc.region_id == 0 || !is_aligned) {
            fail(WorkerChipEndpointOp::INIT, WorkerChipEndpointErrorKind::BAD_DESCRIPTOR, "the words describe no region");
        }
    }
    bool is_fine() const { return error_.kind == WorkerChipEndpointErrorKind::NONE; }
    // The first error stays.
    bool fail(WorkerChipEndpointOp op, WorkerChipEndpointErrorKind kind, const char *message) {
        if (is_fine()) {
            error_.kind = kind;
            error_.op = op;
            error_.message = message;
        }
        return false;
    }
    int32_t *checked(uint64_t address, WorkerChipEndpointOp op) {
        if (address % 4 != 0 || address < desc_.counter_base || address - desc_.counter_base >= desc_.counter_bytes) {
            error_.counter_addr = is_fine() ? address : error_.counter_addr;
            fail(op, WorkerChipEndpointErrorKind::OUT_OF_BOUNDS, "the address is no counter of the region");
        }
        return is_fine() ? reinterpret_cast<int32_t *>(static_cast<uintptr_t>(address)) : nullptr;
    }
    // Acquire: pairs with the Release of `signal_notify` and with the host's stores.
    static int32_t read(const int32_t *counter) { return __atomic_load_n(counter, __ATOMIC_ACQUIRE); }
    static bool holds(int32_t observed, int32_t value, WorkerChipOrchWaitCmp cmp) {
        switch (cmp) {
        case WorkerChipOrchWaitCmp::EQ: return observed == value;
        case WorkerChipOrchWaitCmp::NE: return observed != value;
        case WorkerChipOrchWaitCmp::GT: return observed > value;
        case WorkerChipOrchWaitCmp::GE: return observed >= value;
        case WorkerChipOrchWaitCmp::LT: return observed < value;
        case WorkerChipOrchWaitCmp::LE: return observed <= value;
        }
        return false;
    }

    WorkerChipOrchRegionDesc desc_ = {};
    WorkerChipEndpointError error_;
};

#endif  // PTO_FIELD_WORKER_CHIP_ORCH_ENDPOINT_H
