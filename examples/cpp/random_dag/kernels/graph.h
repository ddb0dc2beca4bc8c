// The graph of random_dag: what the tables say. Words: values (uint64[n]), counters (uint32[n]), first (int32[n + 1]),
// producers (int32), kinds (int32[n]), n, seed. Tasks are counted from 0 in the order in which they are added: as the nodes.
#include "../../common/graph.h"

enum { NODE_AIC = 0, NODE_AIV = 1 };

template <class Graph>
int build(Graph &graph, const uint64_t *words) {
    const uint64_t n = words[5], seed = words[6];
    const auto first = graph.template table<int32_t>(words[2], n + 1);
    const auto kinds = graph.template table<int32_t>(words[4], n);
    const auto producers = graph.template table<int32_t>(words[3], static_cast<uint64_t>(first[n]));
    int32_t from = first[0];
    for (uint64_t node = 0; node < n; node++) {
        const int32_t end = first[node + 1];
        const CoreType core = kinds[node] == 0 ? CoreType::AIC : CoreType::AIV;
        const uint64_t own = words[3] + 4 * static_cast<uint64_t>(from);
        const uint64_t count = static_cast<uint64_t>(end - from);
        const int task = graph.add(core == CoreType::AIC ? NODE_AIC : NODE_AIV, core,
                                   {node, seed, words[0], words[1], own, count});
        for (; from < end; from++) {
            const int32_t producer = producers[static_cast<uint64_t>(from)];
            if (!producers.is_good() || producer < 0 || static_cast<uint64_t>(producer) >= node) {
                return 1;
            }
            graph.after(producer, task);
        }
        graph.publish(task);
    }
    return first.is_good() && kinds.is_good() && producers.is_good() ? 0 : 1;
}
