// The graph of vector_example: out = (a + b + 1) * (a + b + 2), tile by tile. Words: a, b, sum, plus_1, plus_2, out
// (addresses of float[n]), n, elements of a tile.
#include "../../common/graph.h"

enum { ADD = 0, ADD_SCALAR = 1, MUL = 2 };

template <class Graph>
int build(Graph &graph, const uint64_t *words) {
    const uint64_t n = words[6], tile = words[7];
    for (uint64_t start = 0; start < n; start += tile) {
        const uint64_t count = n - start < tile ? n - start : tile;
        const auto at = [&](int word) { return words[word] + 4 * start; };
        const int sum = graph.add(ADD, CoreType::AIV, {at(0), at(1), at(2), count});
        graph.publish(sum);
        const int first = graph.add(ADD_SCALAR, CoreType::AIV, {at(2), 1, at(3), count});
        const int second = graph.add(ADD_SCALAR, CoreType::AIV, {at(2), 2, at(4), count});
        const int product = graph.add(MUL, CoreType::AIV, {at(3), at(4), at(5), count});
        graph.after(sum, first);
        graph.after(sum, second);
        graph.after(first, product);
        graph.after(second, product);
        graph.publish(first);
        graph.publish(second);
        graph.publish(product);
    }
    return 0;
}
