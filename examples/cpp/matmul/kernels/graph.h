// The graph of matmul: c = a @ b + d, in strips of rows; each strip's tiles are summed over K one product after another.
// Words: a, b, d, ab (scratch), c (addresses of float matrices), m, n, k, rows of a strip, columns of a tile, depth.
#include "../../common/graph.h"

enum { PRODUCT = 0, ADD = 1 };

template <class Graph>
int build(Graph &graph, const uint64_t *words) {
    const uint64_t a = words[0], b = words[1], d = words[2], ab = words[3], c = words[4];
    const uint64_t m = words[5], n = words[6], k = words[7], strip = words[8], tile = words[9], depth = words[10];
    const auto part = [](uint64_t start, uint64_t size, uint64_t end) { return end - start < size ? end - start : size; };
    for (uint64_t row = 0; row < m; row += strip) {
        const uint64_t rows = part(row, strip, m), at = 4 * row * n;
        const int sum = graph.add(ADD, CoreType::AIV, {ab + at, d + at, c + at, rows * n});
        for (uint64_t col = 0; col < n; col += tile) {
            int last = -1;
            for (uint64_t from = 0; from < k; from += depth) {
                const int product = graph.add(PRODUCT, CoreType::AIC,
                                              {a + 4 * (row * k + from), b + 4 * (from * n + col), ab + at + 4 * col, rows,
                                               part(col, tile, n), part(from, depth, k), k, n, from > 0});
                if (last >= 0) {
                    graph.after(last, product);
                }
                graph.publish(product);
                last = product;
            }
            graph.after(last, sum);
        }
        graph.publish(sum);
    }
    return 0;
}
