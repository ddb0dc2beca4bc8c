// The graph program as a plugin: AICPU instance 0 runs it while the others schedule.
#include "../graph.h"

extern "C" int build_graph_aicpu(Runtime *runtime) {
    AicpuGraph graph(runtime);
    return build(graph, runtime->orch_args);
}
