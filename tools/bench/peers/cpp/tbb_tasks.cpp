// oneTBB's task groups with counters: a task that makes others ready hands one of them to the scheduler as the next
// one of its thread (the library's own bypass), and runs the others.
#define TBB_PREVIEW_TASK_GROUP_EXTENSIONS 1
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include "dataflow.h"

class TbbTasks {
    oneapi::tbb::global_control control;
    oneapi::tbb::task_arena arena;
    peer::Dataflow flow;

    struct Body {
        TbbTasks *peer;
        oneapi::tbb::task_group *group;
        uint32_t task;

        oneapi::tbb::task_handle operator()() const {
            peer::kernel(task);
            oneapi::tbb::task_handle next;
            peer->flow.complete(task, [&](uint32_t consumer) {
                auto handle = group->defer(Body{peer, group, consumer});
                if (next)
                    group->run(std::move(handle));
                else
                    next = std::move(handle);
            });
            return next;
        }
    };

  public:
    static constexpr bool builds_apart = true;

    explicit TbbTasks(int threads)
        : control(oneapi::tbb::global_control::max_allowed_parallelism, threads), arena(threads) {}

    void build(const peer::Graph &graph) { flow.build(graph); }
    void run() {
        arena.execute([&] {
            oneapi::tbb::task_group group;
            for (uint32_t root : flow.roots)
                group.run(group.defer(Body{this, &group, root}));
            group.wait();
        });
    }
    void clear() {}
};

int main(int argc, char **argv) { return peer::serve<TbbTasks>(argc, argv); }
