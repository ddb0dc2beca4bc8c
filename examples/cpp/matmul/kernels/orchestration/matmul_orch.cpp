// Words: addresses of a, b, d, out_c, shape (int64: m, n, k); their bytes; elements of a.
#include "../../../common/orchestration.h"
#include "../graph.h"

extern "C" int build_matmul_graph(Runtime *runtime, uint64_t *args, int count) {
    if (runtime == nullptr || count != 11) {
        return -1;
    }
    const int64_t *shape = reinterpret_cast<const int64_t *>(args[4]);
    const uint64_t m = shape[0], n = shape[1], k = shape[2];
    const std::vector<uint64_t> words = {
        upload(runtime, args[0], args[5]), upload(runtime, args[1], args[6]), upload(runtime, args[2], args[7]),
        scratch(runtime, args[8]),         result(runtime, args[3], args[8]), m, n, k, 32, 48, 40,
    };
    return run_program(runtime, words, [](auto &graph, const uint64_t *of) { return build(graph, of); });
}
