// Words: addresses of out_values, out_counters, first, producers, kinds; their bytes; elements of out_values.
#include "../../../common/orchestration.h"
#include "../graph.h"

extern "C" int build_dag(Runtime *runtime, uint64_t *args, int count) {
    if (runtime == nullptr || count != 11) {
        return -1;
    }
    const std::vector<uint64_t> words = {
        result(runtime, args[0], args[5]), result(runtime, args[1], args[6]), upload(runtime, args[2], args[7]),
        upload(runtime, args[3], args[8]), upload(runtime, args[4], args[9]), args[10], 11,
    };
    return run_program(runtime, words, [](auto &graph, const uint64_t *of) { return build(graph, of); });
}
