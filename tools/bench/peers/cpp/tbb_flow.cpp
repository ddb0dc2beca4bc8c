// oneTBB's flow graph: a `continue_node` for each task.
#include <deque>
#include <optional>

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include "peer.h"

namespace flow = oneapi::tbb::flow;

class TbbFlow {
    using Node = flow::continue_node<flow::continue_msg>;

    oneapi::tbb::global_control control;
    oneapi::tbb::task_arena arena;
    std::optional<flow::graph> graph;
    std::deque<Node> nodes;
    std::vector<Node *> roots;

  public:
    static constexpr bool builds_apart = true;

    explicit TbbFlow(int threads)
        : control(oneapi::tbb::global_control::max_allowed_parallelism, threads), arena(threads) {}

    void build(const peer::Graph &edges) {
        arena.execute([&] {
            graph.emplace();
            for (uint32_t task = 0; task < edges.tasks; task++) {
                Node &node = nodes.emplace_back(*graph, [task](const flow::continue_msg &) { peer::kernel(task); });
                if (edges.count(task) == 0)
                    roots.push_back(&node);
                const uint32_t *producers = edges.begin(task);
                for (uint32_t i = 0; i < edges.count(task); i++)
                    flow::make_edge(nodes[producers[i]], node);
            }
        });
    }
    void run() {
        arena.execute([&] {
            for (Node *root : roots)
                root->try_put(flow::continue_msg());
            graph->wait_for_all();
        });
    }
    void clear() {
        roots.clear();
        nodes.clear();
        graph.reset();
    }
};

int main(int argc, char **argv) { return peer::serve<TbbFlow>(argc, argv); }
