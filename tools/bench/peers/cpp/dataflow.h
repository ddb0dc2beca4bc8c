// Counters of producers and lists of consumers, for peers whose library takes tasks but no graph: a line for each task.
#pragma once

#include <atomic>

#include "peer.h"

namespace peer {

class Dataflow {
    static constexpr uint32_t INLINE = 12, CHUNK = 14, NONE = UINT32_MAX;

    struct alignas(64) Node {
        std::atomic<uint32_t> fanin;
        uint32_t count;
        uint32_t chunk;
        uint32_t consumers[INLINE];
    };
    struct alignas(64) Chunk {
        uint32_t next;
        uint32_t consumers[CHUNK];
    };

    std::unique_ptr<Node[]> nodes;
    uint32_t capacity = 0;
    std::vector<Chunk> chunks;

    template <typename Ready> void release(uint32_t consumer, Ready &ready) {
        if (nodes[consumer].fanin.fetch_sub(1, std::memory_order_acq_rel) == 1)
            ready(consumer);
    }

  public:
    std::vector<uint32_t> roots;
    uint32_t tasks = 0;

    void build(const Graph &graph) {
        if (graph.tasks > capacity) {
            nodes.reset(new Node[graph.tasks]);
            capacity = graph.tasks;
        }
        tasks = graph.tasks;
        chunks.clear();
        roots.clear();
        for (uint32_t task = 0; task < tasks; task++) {
            Node &node = nodes[task];
            uint32_t count = graph.count(task);
            node.fanin.store(count, std::memory_order_relaxed);
            node.count = 0;
            node.chunk = NONE;
            if (count == 0)
                roots.push_back(task);
            const uint32_t *producers = graph.begin(task);
            for (uint32_t i = 0; i < count; i++)
                add(nodes[producers[i]], task);
        }
    }

    // Calls `ready` with each consumer that waited for nothing but this task.
    template <typename Ready> void complete(uint32_t task, Ready ready) {
        const Node &node = nodes[task];
        uint32_t inline_count = node.count < INLINE ? node.count : INLINE;
        for (uint32_t i = 0; i < inline_count; i++)
            release(node.consumers[i], ready);
        // Chunks are linked newest first: only the newest one is not full.
        uint32_t left = node.count - inline_count;
        for (uint32_t at = node.chunk; left > 0; at = chunks[at].next) {
            uint32_t held = (left - 1) % CHUNK + 1;
            for (uint32_t i = 0; i < held; i++)
                release(chunks[at].consumers[i], ready);
            left -= held;
        }
    }

  private:
    void add(Node &node, uint32_t consumer) {
        uint32_t at = node.count++;
        if (at < INLINE) {
            node.consumers[at] = consumer;
            return;
        }
        if ((at - INLINE) % CHUNK == 0) {
            chunks.push_back({node.chunk, {}});
            node.chunk = static_cast<uint32_t>(chunks.size() - 1);
        }
        chunks[node.chunk].consumers[(at - INLINE) % CHUNK] = consumer;
    }
};

} // namespace peer
