// An orchestration's end of a queue in each direction between it and the host function above it, on a region of both.
//
// Layout and protocol are those of simpler/worker_chip_message_queue.py: two rings of descriptors, two arenas, six counters of which
// each has one writer. A message stays where its producer has put it until its consumer's head has passed it.
#ifndef PTO_FIELD_WORKER_CHIP_MESSAGE_QUEUE_H
#define PTO_FIELD_WORKER_CHIP_MESSAGE_QUEUE_H

#include "cache_maintenance.h"
#include "worker_chip_orch_endpoint.h"

#define WORKER_CHIP_QUEUE_MAGIC_VERSION 0x50544F5155450001ull

enum class WorkerChipQueueOpcode : uint64_t { DATA = 1, STOP = 2, ERROR = 3 };
enum class WorkerChipQueueOp : uint32_t { INIT, INPUT_PEEK, INPUT_RELEASE, OUTPUT_RESERVE, OUTPUT_PUBLISH };
enum class WorkerChipQueueErrorKind : uint32_t { NONE, BAD_ARGUMENT, BAD_MESSAGE, ABORTED };

inline const char *worker_chip_queue_op_to_string(WorkerChipQueueOp op) {
    static const char *const names[] = {"INIT", "INPUT_PEEK", "INPUT_RELEASE", "OUTPUT_RESERVE", "OUTPUT_PUBLISH"};
    const uint32_t number = static_cast<uint32_t>(op);
    return number < sizeof names / sizeof *names ? names[number] : "UNKNOWN";
}

struct WorkerChipQueueArgs {
    uint64_t magic_version, depth, input_arena_bytes, output_arena_bytes, payload_bytes, counter_bytes;
};
struct WorkerChipQueueError {
    WorkerChipQueueErrorKind kind = WorkerChipQueueErrorKind::NONE;
    WorkerChipQueueOp op = WorkerChipQueueOp::INIT;
    uint64_t region_id = 0;
    const char *message = "";
};
struct WorkerChipQueueDescSlot {
    uint64_t seq, opcode, payload_offset, payload_nbytes;
};
struct WorkerChipQueueInputHandle {
    uint64_t seq = 0;
    WorkerChipQueueOpcode opcode = WorkerChipQueueOpcode::DATA;
    WorkerChipOrchPayloadView payload;
    uint64_t payload_nbytes = 0;
};
struct WorkerChipQueueOutputReservation {
    uint64_t seq = 0;
    WorkerChipOrchPayloadView payload;
    uint64_t payload_nbytes = 0;
};
struct WorkerChipQueueLayout {
    uint64_t input_desc_offset, output_desc_offset, input_arena_offset, output_arena_offset, payload_bytes, counter_bytes;
};

inline WorkerChipQueueLayout pto_field_queue_layout(uint64_t depth, uint64_t input_bytes, uint64_t output_bytes) {
    const uint64_t ring = (depth * sizeof(WorkerChipQueueDescSlot) + 63) / 64 * 64;
    return WorkerChipQueueLayout{0, ring, 2 * ring, 2 * ring + input_bytes, 2 * ring + input_bytes + output_bytes, 6 * 64};
}

// The counters, each on a line of its own: how many messages were published, and how many were consumed.
enum PtoFieldQueueCounter : uint64_t { PTO_INPUT_TAIL = 0, PTO_INPUT_HEAD = 64, PTO_OUTPUT_TAIL = 128, PTO_OUTPUT_HEAD = 192, PTO_HOST_ABORT = 256, PTO_CHIP_ABORT = 320 };

template <uint64_t MaxInflight = 1>
class WorkerChipQueueEndpoint {
    struct Span {
        uint64_t seq, offset, nbytes;
    };
    static constexpr uint64_t MOST_OUTPUTS = 1024;

public:
    class Input {
    public:
        explicit Input(WorkerChipQueueEndpoint &queue) : queue_(queue) {}
        // The next message that was not taken yet; false: none came in time, or an error.
        bool peek(uint64_t timeout_ns, WorkerChipQueueInputHandle &handle) {
            const uint64_t start = pto_field_now_ns();
            while (!try_peek(handle)) {
                if (!queue_.is_fine() || pto_field_now_ns() - start > timeout_ns) {
                    return false;
                }
                pto_field_pause();
            }
            return true;
        }
        // In June and July 2026 results went to pointers.
        bool peek(uint64_t timeout_ns, WorkerChipQueueInputHandle *handle) { return queue_.is_given(handle, WorkerChipQueueOp::INPUT_PEEK) && peek(timeout_ns, *handle); }
        bool try_peek(WorkerChipQueueInputHandle *handle) { return queue_.is_given(handle, WorkerChipQueueOp::INPUT_PEEK) && try_peek(*handle); }
        bool try_peek(WorkerChipQueueInputHandle &handle) { return queue_.take(handle); }
        bool release(const WorkerChipQueueInputHandle &handle) { return queue_.give_back(handle); }
        // Whether every message that was published has been given back.
        bool drained() const { return queue_.read(PTO_INPUT_TAIL) == queue_.read(PTO_INPUT_HEAD); }

    private:
        WorkerChipQueueEndpoint &queue_;
    };
    class Output {
    public:
        explicit Output(WorkerChipQueueEndpoint &queue) : queue_(queue) {}
        bool reserve(uint64_t nbytes, uint64_t timeout_ns, WorkerChipQueueOutputReservation &reservation) {
            const uint64_t start = pto_field_now_ns();
            while (!try_reserve(nbytes, reservation)) {
                if (!queue_.is_fine() || pto_field_now_ns() - start > timeout_ns) {
                    return false;
                }
                pto_field_pause();
            }
            return true;
        }
        bool reserve(uint64_t nbytes, uint64_t timeout_ns, WorkerChipQueueOutputReservation *reservation) {
            return queue_.is_given(reservation, WorkerChipQueueOp::OUTPUT_RESERVE) && reserve(nbytes, timeout_ns, *reservation);
        }
        bool try_reserve(uint64_t nbytes, WorkerChipQueueOutputReservation *reservation) {
            return queue_.is_given(reservation, WorkerChipQueueOp::OUTPUT_RESERVE) && try_reserve(nbytes, *reservation);
        }
        bool try_reserve(uint64_t nbytes, WorkerChipQueueOutputReservation &reservation) { return queue_.reserve(nbytes, reservation); }
        bool publish(const WorkerChipQueueOutputReservation &reservation, WorkerChipQueueOpcode opcode) { return queue_.publish(reservation, opcode); }

    private:
        WorkerChipQueueEndpoint &queue_;
    };

    WorkerChipQueueEndpoint(const WorkerChipOrchRegionDesc &desc, const WorkerChipQueueArgs &args)
        : region_(desc), args_(args), input_(*this), output_(*this) {
        error_.region_id = desc.region_id;
        layout_ = pto_field_queue_layout(args.depth, args.input_arena_bytes, args.output_arena_bytes);
        const bool is_power = args.depth != 0 && (args.depth & (args.depth - 1)) == 0;
        const bool has_layout = layout_.payload_bytes == args.payload_bytes && layout_.counter_bytes == args.counter_bytes &&
                                desc.payload_bytes == args.payload_bytes && desc.counter_bytes == args.counter_bytes;
        if (region_.error().kind != WorkerChipEndpointErrorKind::NONE || args.magic_version != WORKER_CHIP_QUEUE_MAGIC_VERSION) {
            fail(WorkerChipQueueOp::INIT, WorkerChipQueueErrorKind::BAD_ARGUMENT, "the words describe no queue");
        } else if (!is_power || !has_layout) {
            fail(WorkerChipQueueOp::INIT, WorkerChipQueueErrorKind::BAD_ARGUMENT, "the sizes are not those of a queue of this depth");
        } else if (MaxInflight < 1 || MaxInflight > args.depth) {
            fail(WorkerChipQueueOp::INIT, WorkerChipQueueErrorKind::BAD_ARGUMENT, "MaxInflight is 1 to the queue's depth");
        }
    }
    WorkerChipQueueEndpoint(const WorkerChipQueueEndpoint &) = delete;
    WorkerChipQueueEndpoint &operator=(const WorkerChipQueueEndpoint &) = delete;

    Input &input() { return input_; }
    Output &output() { return output_; }
    const WorkerChipQueueError &error() const { return error_; }
    const WorkerChipQueueLayout &layout() const { return layout_; }

private:
    bool is_fine() const { return error_.kind == WorkerChipQueueErrorKind::NONE; }
    bool is_given(const void *result, WorkerChipQueueOp op) {
        return result != nullptr || fail(op, WorkerChipQueueErrorKind::BAD_ARGUMENT, "the pointer to the result is null");
    }
    bool fail(WorkerChipQueueOp op, WorkerChipQueueErrorKind kind, const char *message) {
        if (is_fine()) {
            error_.kind = kind;
            error_.op = op;
            error_.message = message;
            if (op != WorkerChipQueueOp::INIT) {
                write(PTO_CHIP_ABORT, 1);
            }
        }
        return false;
    }
    uint32_t *counter(uint64_t which) const { return reinterpret_cast<uint32_t *>(static_cast<uintptr_t>(region_.desc().counter_base + which)); }
    // Acquire: pairs with the Release of the other end's `write`.
    uint32_t read(uint64_t which) const { return __atomic_load_n(counter(which), __ATOMIC_ACQUIRE); }
    void write(uint64_t which, uint32_t value) { __atomic_store_n(counter(which), value, __ATOMIC_RELEASE); }
    WorkerChipQueueDescSlot *slot(uint64_t ring, uint64_t seq) const {
        return reinterpret_cast<WorkerChipQueueDescSlot *>(static_cast<uintptr_t>(region_.desc().payload_base + ring)) + seq % args_.depth;
    }
    bool is_aborted(WorkerChipQueueOp op) {
        return read(PTO_HOST_ABORT) != 0 && !fail(op, WorkerChipQueueErrorKind::ABORTED, "the host has given the queue up");
    }

    bool take(WorkerChipQueueInputHandle &handle) {
        if (!is_fine() || is_aborted(WorkerChipQueueOp::INPUT_PEEK) || read(PTO_INPUT_TAIL) == static_cast<uint32_t>(taken_)) {
            return false;
        }
        const WorkerChipQueueDescSlot message = *slot(layout_.input_desc_offset, taken_);
        const bool is_stop = message.opcode == static_cast<uint64_t>(WorkerChipQueueOpcode::STOP);
        if (taken_ - released_ >= MaxInflight + (is_stop ? 1 : 0)) {
            return false;
        }
        const uint64_t arena = layout_.input_arena_offset, end = arena + args_.input_arena_bytes;
        const bool is_inside = message.payload_nbytes == 0 || (message.payload_offset >= arena && message.payload_nbytes <= end - message.payload_offset && message.payload_offset <= end);
        if (message.seq != taken_ + 1 || !is_inside) {
            return fail(WorkerChipQueueOp::INPUT_PEEK, WorkerChipQueueErrorKind::BAD_MESSAGE, "the next descriptor is damaged");
        }
        handle.seq = message.seq;
        handle.opcode = static_cast<WorkerChipQueueOpcode>(message.opcode);
        handle.payload_nbytes = message.payload_nbytes;
        handle.payload.nbytes = message.payload_nbytes;
        handle.payload.gm_addr = message.payload_nbytes == 0 ? 0 : region_.desc().payload_base + message.payload_offset;
        is_done_[taken_ % (MaxInflight + 1)] = false;
        taken_++;
        return true;
    }
    bool give_back(const WorkerChipQueueInputHandle &handle) {
        if (!is_fine()) {
            return false;
        }
        if (handle.seq <= released_ || handle.seq > taken_ || is_done_[(handle.seq - 1) % (MaxInflight + 1)]) {
            return fail(WorkerChipQueueOp::INPUT_RELEASE, WorkerChipQueueErrorKind::BAD_ARGUMENT, "the message is not held");
        }
        is_done_[(handle.seq - 1) % (MaxInflight + 1)] = true;
        while (released_ < taken_ && is_done_[released_ % (MaxInflight + 1)]) {
            released_++;
        }
        write(PTO_INPUT_HEAD, static_cast<uint32_t>(released_));
        return true;
    }
    bool reserve(uint64_t nbytes, WorkerChipQueueOutputReservation &reservation) {
        if (!is_fine() || is_aborted(WorkerChipQueueOp::OUTPUT_RESERVE)) {
            return false;
        }
        if (nbytes > args_.output_arena_bytes) {
            return fail(WorkerChipQueueOp::OUTPUT_RESERVE, WorkerChipQueueErrorKind::BAD_ARGUMENT, "the message is larger than the arena");
        }
        if (is_reserved_) {
            return fail(WorkerChipQueueOp::OUTPUT_RESERVE, WorkerChipQueueErrorKind::BAD_ARGUMENT, "publish the last reservation first");
        }
        const uint32_t head = read(PTO_OUTPUT_HEAD);
        while (first_ < published_ && static_cast<int32_t>(static_cast<uint32_t>(first_) - head) < 0) {
            first_++;
        }
        uint64_t offset = 0;
        if (published_ - first_ >= args_.depth || published_ - first_ >= MOST_OUTPUTS || !find_room(nbytes, offset)) {
            return false;
        }
        spans_[published_ % MOST_OUTPUTS] = Span{published_ + 1, offset, nbytes};
        is_reserved_ = true;
        reservation.seq = published_ + 1;
        reservation.payload_nbytes = reservation.payload.nbytes = nbytes;
        reservation.payload.gm_addr = nbytes == 0 ? 0 : region_.desc().payload_base + layout_.output_arena_offset + offset;
        return true;
    }
    // Room after the newest message, or at the arena's begin.
    bool find_room(uint64_t nbytes, uint64_t &offset) const {
        if (first_ != published_) {
            const Span &newest = spans_[(published_ - 1) % MOST_OUTPUTS];
            offset = (newest.offset + newest.nbytes + 63) / 64 * 64;
        }
        if (offset + nbytes > args_.output_arena_bytes) {
            offset = 0;
        }
        for (uint64_t at = first_; at < published_; at++) {
            const Span &span = spans_[at % MOST_OUTPUTS];
            if (offset < span.offset + span.nbytes && span.offset < offset + nbytes) {
                return false;
            }
        }
        return true;
    }
    bool publish(const WorkerChipQueueOutputReservation &reservation, WorkerChipQueueOpcode opcode) {
        if (!is_fine()) {
            return false;
        }
        if (!is_reserved_ || reservation.seq != published_ + 1 || opcode == WorkerChipQueueOpcode::STOP) {
            return fail(WorkerChipQueueOp::OUTPUT_PUBLISH, WorkerChipQueueErrorKind::BAD_ARGUMENT, "this was not reserved, or is a STOP");
        }
        const Span &span = spans_[published_ % MOST_OUTPUTS];
        const uint64_t offset = span.nbytes == 0 ? 0 : layout_.output_arena_offset + span.offset;
        *slot(layout_.output_desc_offset, published_) = WorkerChipQueueDescSlot{reservation.seq, static_cast<uint64_t>(opcode), offset, span.nbytes};
        published_++;
        is_reserved_ = false;
        write(PTO_OUTPUT_TAIL, static_cast<uint32_t>(published_));
        return true;
    }

    WorkerChipOrchEndpoint region_;
    WorkerChipQueueArgs args_;
    WorkerChipQueueLayout layout_ = {};
    WorkerChipQueueError error_;
    Input input_;
    Output output_;
    // Messages from the host that were taken, and those of them that were given back without a gap.
    uint64_t taken_ = 0, released_ = 0;
    bool is_done_[MaxInflight + 1] = {};
    // Messages to the host: the oldest that it has not consumed, and how many were published.
    uint64_t first_ = 0, published_ = 0;
    bool is_reserved_ = false;
    Span spans_[MOST_OUTPUTS];
};

#endif  // PTO_FIELD_WORKER_CHIP_MESSAGE_QUEUE_H
