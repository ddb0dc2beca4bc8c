// OpenMP tasks with `depend`: one thread creates them in order, each names the places of its producers and its own.
#include <omp.h>

#include "peer.h"

class OmpDepend {
    int threads;
    const peer::Graph *graph = nullptr;
    std::vector<char> places;

  public:
    // Tasks run while others are created.
    static constexpr bool builds_apart = false;

    explicit OmpDepend(int threads) : threads(threads) { omp_set_dynamic(0); }

    void build(const peer::Graph &edges) {
        graph = &edges;
        places.resize(edges.tasks);
    }
    void run() {
        [[maybe_unused]] char *place = places.data(); // GCC does not count depend clauses.
        const peer::Graph &edges = *graph;
#pragma omp parallel num_threads(threads)
#pragma omp single
        for (uint32_t task = 0; task < edges.tasks; task++) {
            const uint32_t *producers = edges.begin(task);
            uint32_t count = edges.count(task);
            if (count == 0) {
#pragma omp task firstprivate(task) depend(out : place[task])
                peer::kernel(task);
            } else {
#pragma omp task firstprivate(task) depend(iterator(uint32_t i = 0 : count), in : place[producers[i]]) depend(out : place[task])
                peer::kernel(task);
            }
        }
    }
    void clear() {}
};

int main(int argc, char **argv) { return peer::serve<OmpDepend>(argc, argv); }
