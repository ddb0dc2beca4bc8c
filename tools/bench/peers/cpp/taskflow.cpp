// Taskflow: a static graph, run once.
#include <taskflow/taskflow.hpp>

#include "peer.h"

class Taskflow {
    tf::Executor executor;
    std::unique_ptr<tf::Taskflow> flow;
    std::vector<tf::Task> tasks;

  public:
    static constexpr bool builds_apart = true;

    explicit Taskflow(int threads) : executor(static_cast<size_t>(threads)) {}

    void build(const peer::Graph &graph) {
        flow = std::make_unique<tf::Taskflow>();
        tasks.reserve(graph.tasks);
        for (uint32_t index = 0; index < graph.tasks; index++) {
            tf::Task task = flow->emplace([index] { peer::kernel(index); });
            for (uint32_t i = 0; i < graph.count(index); i++)
                tasks[graph.begin(index)[i]].precede(task);
            tasks.push_back(task);
        }
    }
    void run() { executor.run(*flow).wait(); }
    void clear() {
        tasks.clear();
        flow.reset();
    }
};

int main(int argc, char **argv) { return peer::serve<Taskflow>(argc, argv); }
