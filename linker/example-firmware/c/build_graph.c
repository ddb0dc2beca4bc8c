/* A graph builder in C: a fork and a join, `width` tasks wide.
 *
 * Words: address of a table of uint64_t [width + 2] (values), address of uint32_t [width + 2] (counters),
 * address of uint32_t [2 * width] (the producers of every node: width times 0, then 1 .. width), width, seed.
 * The nodes are the kernels `dag_node_aiv` (func id 16) and `dag_node_aic` (15): the join runs on a cube core.
 */
#include "pto_firmware.h"

enum { DAG_NODE_AIC = 15, DAG_NODE_AIV = 16, AIC = 0, AIV = 1, BAD_WORDS = 7 };

static int add_node(Runtime *runtime, uint64_t index, uint64_t producers, uint64_t count, int func_id, int core) {
    const uint64_t *words = runtime->orch.orch_args;
    const uint64_t args[6] = {index, words[4], words[0], words[1], producers, count};
    return aicpu_runtime_add_task(runtime, args, 6, func_id, core, 0);
}

int build_graph_aicpu(Runtime *runtime) {
    const uint64_t *words = runtime->orch.orch_args;
    if (runtime->orch.orch_argc != 5) {
        return BAD_WORDS;
    }
    const uint64_t table = words[2], width = words[3];
    const int fork = add_node(runtime, 0, table, 0, DAG_NODE_AIV, AIV);
    const int join = add_node(runtime, width + 1, table + 4 * width, width, DAG_NODE_AIC, AIC);
    aicpu_runtime_publish_task(runtime, fork);
    for (uint64_t i = 0; i < width; i++) {
        const int task = add_node(runtime, i + 1, table + 4 * i, 1, DAG_NODE_AIV, AIV);
        aicpu_runtime_add_successor_conditional(runtime, fork, task);
        aicpu_runtime_add_successor_conditional(runtime, task, join);
        if (aicpu_runtime_publish_task(runtime, task) != 0) {
            return BAD_WORDS;
        }
    }
    return aicpu_runtime_publish_task(runtime, join);
}
