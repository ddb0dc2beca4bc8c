// enkiTS: task sets of one, with its dependencies between them.
#include <TaskScheduler.h>

#include "peer.h"

class EnkiTs {
    struct Task : enki::ITaskSet {
        uint32_t index = 0;
        void ExecuteRange(enki::TaskSetPartition, uint32_t) override { peer::kernel(index); }
    };

    enki::TaskScheduler scheduler;
    std::unique_ptr<Task[]> tasks;
    std::unique_ptr<enki::Dependency[]> dependencies;
    std::vector<uint32_t> roots;

  public:
    static constexpr bool builds_apart = true;

    explicit EnkiTs(int threads) { scheduler.Initialize(static_cast<uint32_t>(threads)); }

    void build(const peer::Graph &graph) {
        tasks.reset(new Task[graph.tasks]);
        dependencies.reset(new enki::Dependency[graph.producers.size()]);
        for (uint32_t task = 0; task < graph.tasks; task++) {
            tasks[task].index = task;
            if (graph.count(task) == 0)
                roots.push_back(task);
            for (uint32_t i = graph.starts[task]; i < graph.starts[task + 1]; i++)
                tasks[task].SetDependency(dependencies[i], &tasks[graph.producers[i]]);
        }
    }
    void run() {
        for (uint32_t root : roots)
            scheduler.AddTaskSetToPipe(&tasks[root]);
        scheduler.WaitforAll();
    }
    void clear() {
        roots.clear();
        dependencies.reset();
        tasks.reset();
    }
};

int main(int argc, char **argv) { return peer::serve<EnkiTs>(argc, argv); }
