// Stands in for dispenso where that is not at hand, so that its adapter is compiled: the same names, tasks run one after
// the other. Nothing is measured with it.
#pragma once
#include <cstddef>
#include <deque>
#include <functional>
#include <vector>

namespace dispenso {

struct Node {
    std::function<void()> work;
    std::vector<Node *> dependents;
    std::size_t predecessors = 0;
    std::size_t incomplete = 0;
    template <typename... Nodes> void dependsOn(Nodes &...nodes) {
        (nodes.dependents.push_back(this), ...);
        predecessors += sizeof...(nodes);
    }
};

class Graph {
  public:
    std::deque<Node> nodes;
    template <typename F> Node &addNode(F &&work) { return nodes.emplace_back(Node{work, {}, 0, 0}); }

    // As in the library, only its argument leads to it: a call that names the namespace does not compile.
    template <typename G> friend void setAllNodesIncomplete(const G &graph) {
        for (const Node &node : graph.nodes)
            const_cast<Node &>(node).incomplete = node.predecessors;
    }
};

} // namespace dispenso
