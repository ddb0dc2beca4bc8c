// Stands in for Taskflow where that is not at hand, so that its adapter is compiled: the same names, tasks run one after
// the other. Nothing is measured with it.
#pragma once
#include <cstddef>
#include <deque>
#include <functional>
#include <vector>

namespace tf {

struct Node {
    std::function<void()> work;
    std::vector<Node *> successors;
    std::size_t waits = 0;
};

class Task {
    Node *node = nullptr;

  public:
    Task() = default;
    explicit Task(Node *node) : node(node) {}
    Task &precede(Task other) {
        node->successors.push_back(other.node);
        other.node->waits++;
        return *this;
    }
};

class Taskflow {
    friend class Executor;
    std::deque<Node> nodes;

  public:
    template <typename F> Task emplace(F work) {
        nodes.push_back({work, {}, 0});
        return Task(&nodes.back());
    }
};

struct Future {
    void wait() {}
};

class Executor {
  public:
    explicit Executor(std::size_t) {}
    Future run(Taskflow &flow) {
        std::vector<Node *> ready;
        for (Node &node : flow.nodes)
            if (node.waits == 0)
                ready.push_back(&node);
        while (!ready.empty()) {
            Node *node = ready.back();
            ready.pop_back();
            node->work();
            for (Node *successor : node->successors)
                if (--successor->waits == 0)
                    ready.push_back(successor);
        }
        return {};
    }
};

} // namespace tf
