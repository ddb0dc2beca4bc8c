// See graph.h.
#pragma once
#include <dispenso/graph.h>
#include <dispenso/task_set.h>

namespace dispenso {

struct SingleThreadExecutor {
    void operator()(const Graph &graph) {
        std::vector<const Node *> ready;
        for (const Node &node : graph.nodes)
            if (node.incomplete == 0)
                ready.push_back(&node);
        while (!ready.empty()) {
            const Node *node = ready.back();
            ready.pop_back();
            node->work();
            for (Node *dependent : node->dependents)
                if (--dependent->incomplete == 0)
                    ready.push_back(dependent);
        }
    }
};

struct ConcurrentTaskSetExecutor {
    void operator()(ConcurrentTaskSet &, const Graph &graph, bool = true) { SingleThreadExecutor()(graph); }
};

} // namespace dispenso
