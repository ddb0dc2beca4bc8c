// dispenso: a graph, run by its single-threaded executor, or by a concurrent task set of so many threads.
#include <dispenso/graph.h>
#include <dispenso/graph_executor.h>
#include <dispenso/task_set.h>
#include <dispenso/thread_pool.h>

#include "peer.h"

class Dispenso {
    int threads;
    // The thread that waits takes part.
    dispenso::ThreadPool pool;
    dispenso::SingleThreadExecutor alone;
    dispenso::ConcurrentTaskSetExecutor together;
    std::unique_ptr<dispenso::Graph> graph;
    std::vector<dispenso::Node *> nodes;

  public:
    static constexpr bool builds_apart = true;

    explicit Dispenso(int threads) : threads(threads), pool(static_cast<size_t>(threads > 1 ? threads - 1 : 1)) {}

    void build(const peer::Graph &edges) {
        graph = std::make_unique<dispenso::Graph>();
        nodes.reserve(edges.tasks);
        for (uint32_t task = 0; task < edges.tasks; task++) {
            dispenso::Node &node = graph->addNode([task] { peer::kernel(task); });
            for (uint32_t i = 0; i < edges.count(task); i++)
                node.dependsOn(*nodes[edges.begin(task)[i]]);
            nodes.push_back(&node);
        }
    }
    void run() {
        // A friend of the graph: it is found by its argument alone.
        setAllNodesIncomplete(*graph);
        if (threads == 1) {
            alone(*graph);
        } else {
            dispenso::ConcurrentTaskSet tasks(pool);
            together(tasks, *graph);
        }
    }
    void clear() {
        nodes.clear();
        graph.reset();
    }
};

int main(int argc, char **argv) { return peer::serve<Dispenso>(argc, argv); }
