// StarPU: tasks with explicit dependencies. The workers are threads of their own; the main thread submits.
#include <starpu.h>

#include "peer.h"

class Starpu {
    starpu_codelet codelet;
    std::vector<starpu_task *> tasks;

    static void body(void *[], void *argument) {
        peer::kernel(static_cast<uint32_t>(reinterpret_cast<uintptr_t>(argument)));
    }

  public:
    // Tasks run while others are submitted.
    static constexpr bool builds_apart = false;

    explicit Starpu(int threads) {
        starpu_conf conf;
        starpu_conf_init(&conf);
        conf.ncpus = threads;
        conf.ncuda = 0;
        conf.nopencl = 0;
        conf.sched_policy_name = "lws";
        if (starpu_init(&conf) != 0)
            throw std::runtime_error("starpu_init failed");
        starpu_codelet_init(&codelet);
        codelet.cpu_funcs[0] = body;
        codelet.nbuffers = 0;
    }
    ~Starpu() { starpu_shutdown(); }

    void build(const peer::Graph &graph) {
        std::vector<starpu_task *> producers;
        for (uint32_t index = 0; index < graph.tasks; index++) {
            starpu_task *task = starpu_task_create();
            task->cl = &codelet;
            task->cl_arg = reinterpret_cast<void *>(static_cast<uintptr_t>(index));
            task->cl_arg_size = 0;
            task->destroy = 0;
            producers.clear();
            for (uint32_t i = 0; i < graph.count(index); i++)
                producers.push_back(tasks[graph.begin(index)[i]]);
            if (!producers.empty())
                starpu_task_declare_deps_array(task, static_cast<unsigned>(producers.size()), producers.data());
            if (starpu_task_submit(task) != 0)
                throw std::runtime_error("starpu_task_submit failed");
            tasks.push_back(task);
        }
    }
    void run() { starpu_task_wait_for_all(); }
    void clear() {
        for (starpu_task *task : tasks)
            starpu_task_destroy(task);
        tasks.clear();
    }
};

int main(int argc, char **argv) { return peer::serve<Starpu>(argc, argv); }
