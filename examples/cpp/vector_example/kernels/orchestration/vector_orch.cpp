// Words: addresses of a, b, out_f; their bytes; elements of a.
#include "../../../common/orchestration.h"
#include "../graph.h"

extern "C" int build_vector_graph(Runtime *runtime, uint64_t *args, int count) {
    if (runtime == nullptr || count != 7) {
        return -1;
    }
    const uint64_t bytes = args[3], n = args[6], tile = 512;
    const std::vector<uint64_t> words = {
        upload(runtime, args[0], bytes), upload(runtime, args[1], bytes), scratch(runtime, bytes),
        scratch(runtime, bytes),         scratch(runtime, bytes),         result(runtime, args[2], bytes),
        n,                               tile,
    };
    return run_program(runtime, words, [](auto &graph, const uint64_t *of) { return build(graph, of); });
}
