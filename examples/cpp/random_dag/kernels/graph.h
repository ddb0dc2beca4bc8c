// The graph of random_dag: what the tables say. Words: values (uint64[n]), counters (uint32[n]), first (int32[n + 1]),
// producers (int32), kinds (int32[n]), n, seed. Tasks are counted from 0 in the order in which they are added: as the nodes.
#include "../../common/graph.h"

enum { NODE_AIC = 0, NODE_AIV = 1 };

template <class Graph>
int build(Graph &graph, const uint64_t *words) {
    const uint64_t n = words[5], seed = words[6];
    const int32_t *first = reinterpret_cast<const int32_t *>(words[2]);
    const int32_t *producers = reinterpret_cast<const int32_t *>(words[3]);
    const int32_t *kinds = reinterpret_cast<const int32_t *>(words[4]);
    for (uint64_t node = 0; node < n; node++) {
        const CoreType core = kinds[node] == 0 ? CoreType::AIC : CoreType::AIV;
        const uint64_t own = words[3] + 4 * static_cast<uint64_t>(first[node]);
        const uint64_t count = static_cast<uint64_t>(first[node + 1] - first[node]);
        const int task = graph.add(core == CoreType::AIC ? NODE_AIC : NODE_AIV, core,
                                   {node, seed, words[0], words[1], own, count});
        for (int32_t i = first[node]; i < first[node + 1]; i++) {
            if (producers[i] < 0 || static_cast<uint64_t>(producers[i]) >= node) {
                return 1;
            }
            graph.after(producers[i], task);
        }
        graph.publish(task);
    }
    return 0;
}
