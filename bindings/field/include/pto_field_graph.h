// Graphs with explicit edges, as the interfaces until July 2026 build them: first tasks, then edges between them. Nothing is submitted before the
// scope ends (or the entry returns), and then each task after those that it waits for, in a scope without derived edges.
//
// Not for programs: they include pto_orchestration_api.h or orchestration_api.h.
#ifndef PTO_FIELD_GRAPH_H
#define PTO_FIELD_GRAPH_H

#include <algorithm>
#include <deque>
#include <exception>
#include <iterator>
#include <string>
#include <vector>

#include "pto_field_codes.h"
#include "pto_field_entry.h"

class PtoFieldGraph {
public:
    // Takes a task as `pto_field_ops->submit` does. Tensors that the task makes have their memory at once; its id is good for `add_edge` alone.
    void submit(const pto_field_task &task, pto_field_outputs &outputs) {
        outputs = pto_field_outputs{PTO2TaskId::invalid(), nullptr, 0};
        if (task.error != nullptr) {
            return pto_field_ops->fatal(PTO2_ERROR_INVALID_ARGS, task.error, task.place);
        }
        std::vector<pto_field_argument> made;
        std::copy_if(task.tensors, task.tensors + task.tensor_count, std::back_inserter(made), is_made);
        if (!made.empty()) {
            pto_field_ops->alloc(made.data(), static_cast<uint32_t>(made.size()), task.place, &outputs);
        }
        nodes_.emplace_back(task);
        Node &node = nodes_.back();
        size_t output = 0;
        for (uint32_t at = 0; at < task.tensor_count; at++) {
            const pto_field_argument &argument = task.tensors[at];
            if (!is_made(argument)) {
                node.tensors.push_back(*static_cast<const ChipTensor *>(argument.what));
            } else if (output < outputs.count) {
                node.tensors.push_back(outputs.tensors[output++]);
            }
        }
        outputs.task = PTO2TaskId{nodes_.size() - 1};
    }
    // The consumer waits for the producer, also where the producer's scope is over.
    void add_edge(PTO2TaskId producer, PTO2TaskId consumer) {
        if (producer.raw >= nodes_.size() || consumer.raw >= nodes_.size() || consumer.raw < submitted_) {
            return pto_field_ops->fatal(PTO2_ERROR_INVALID_ARGS, "an edge to a task that is not there, or is submitted already", pto_field_place{nullptr, 0, 0});
        }
        nodes_[consumer.raw].producers.push_back(producer.raw);
        if (producer.raw >= submitted_) {
            nodes_[producer.raw].consumers.push_back(consumer.raw);
            nodes_[consumer.raw].waits++;
        }
    }
    void set_timing_slot(PTO2TaskId task, int32_t slot) {
        if (task.raw < nodes_.size()) {
            nodes_[task.raw].task.timing_slot = slot;
        }
    }
    size_t size() const { return nodes_.size(); }
    // Calls `change` with each word of the tasks that are not submitted yet.
    template <typename Change>
    void for_each_word(Change change) {
        for (size_t at = submitted_; at < nodes_.size(); at++) {
            std::for_each(nodes_[at].words.begin(), nodes_[at].words.end(), change);
        }
    }
    void submit_all() {
        std::vector<size_t> ready;
        for (size_t at = submitted_; at < nodes_.size(); at++) {
            if (nodes_[at].waits == 0) {
                ready.push_back(at);
            }
        }
        const size_t all = nodes_.size() - submitted_;
        pto_field_ops->scope_begin(1, pto_field_place{nullptr, 0, 0});
        for (size_t next = 0; next < ready.size() && pto_field_ops->is_fatal() == 0; next++) {
            hand_over(nodes_[ready[next]]);
            for (size_t consumer : nodes_[ready[next]].consumers) {
                if (--nodes_[consumer].waits == 0) {
                    ready.push_back(consumer);
                }
            }
        }
        pto_field_ops->scope_end();
        if (ready.size() < all) {
            pto_field_ops->fatal(PTO2_ERROR_INVALID_ARGS, "the edges of the graph make a cycle", pto_field_place{nullptr, 0, 0});
        }
        submitted_ = nodes_.size();
    }

private:
    struct Node {
        explicit Node(const pto_field_task &given) : task(given), words(given.scalars, given.scalars + given.scalar_count) {}
        pto_field_task task;
        std::vector<ChipTensor> tensors;
        std::vector<uint64_t> words;
        std::vector<size_t> producers, consumers;
        size_t waits = 0;
        PTO2TaskId id = PTO2TaskId::invalid();
    };
    static bool is_made(const pto_field_argument &argument) { return argument.tag == static_cast<uint64_t>(TensorArgType::OUTPUT); }
    void hand_over(Node &node) {
        std::vector<pto_field_argument> arguments;
        for (const ChipTensor &tensor : node.tensors) {
            arguments.push_back(pto_field_argument{&tensor, static_cast<uint64_t>(TensorArgType::NO_DEP)});
        }
        std::vector<PTO2TaskId> producers;
        for (size_t producer : node.producers) {
            producers.push_back(nodes_[producer].id);
        }
        node.task.tensors = arguments.data();
        node.task.scalars = node.words.data();
        node.task.dependencies = producers.data();
        node.task.dependency_kinds = nullptr;
        node.task.dependency_count = static_cast<uint32_t>(producers.size());
        pto_field_outputs outputs;
        pto_field_ops->submit(&node.task, &outputs);
        node.id = outputs.task;
    }

    std::deque<Node> nodes_;  // a task keeps its address while others are added
    size_t submitted_ = 0;
};

// With PTO_FIELD_EXPLICIT_EDGES tasks wait for what the program says alone.
#if defined(PTO_FIELD_EXPLICIT_EDGES)
inline PtoFieldGraph &pto_field_graph() {
    static thread_local PtoFieldGraph graph;
    return graph;
}
#endif
inline pto_field_outputs pto_field_hand_over(const pto_field_task &task) {
    pto_field_outputs outputs;
#if defined(PTO_FIELD_EXPLICIT_EDGES)
    pto_field_graph().submit(task, outputs);
#else
    pto_field_ops->submit(&task, &outputs);
#endif
    return outputs;
}
inline void pto_field_end_scope() {
#if defined(PTO_FIELD_EXPLICIT_EDGES)
    pto_field_graph().submit_all();
#endif
    pto_field_ops->scope_end();
}

// The arguments of an entry.
inline void pto_field_take(ChipTaskArgs &args, const ChipTensor *tensors, uint32_t tensor_count, const uint64_t *scalars, uint32_t scalar_count) {
    for (uint32_t at = 0; at < tensor_count; at++) {
        args.push_tensor(&tensors[at], TensorArgType::INOUT);
    }
    args.add_scalars(scalars, static_cast<int>(scalar_count));
}
// Enters a program with its arguments. An exception becomes a fatal error.
template <typename Call>
inline void pto_field_guarded(const ChipTensor *tensors, uint32_t tensor_count, const uint64_t *scalars, uint32_t scalar_count, Call call) {
    ChipTaskArgs args;
    pto_field_take(args, tensors, tensor_count, scalars, scalar_count);
#if defined(PTO_FIELD_EXPLICIT_EDGES)
    pto_field_graph() = PtoFieldGraph();
#endif
#if defined(__cpp_exceptions)
    const auto failed = [](const std::string &why) {
        pto_field_ops->fatal(PTO2_ERROR_EXPLICIT_ORCH_FATAL, why.c_str(), pto_field_place{nullptr, 0, 0});
    };
    try {
        call(args);
    } catch (const std::exception &error) {
        return failed(std::string("the orchestration threw an exception: ") + error.what());
    } catch (...) {
        return failed("the orchestration threw something that is no std::exception");
    }
#else
    call(args);
#endif
#if defined(PTO_FIELD_EXPLICIT_EDGES)
    pto_field_graph().submit_all();
#endif
}

#endif  // PTO_FIELD_GRAPH_H
