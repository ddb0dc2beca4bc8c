// Arguments of a task that hold the tasks to wait for themselves.
#ifndef PTO_FIELD_ARG_WITH_DEPS_H
#define PTO_FIELD_ARG_WITH_DEPS_H

#include "pto_orchestration_api.h"

template <uint32_t N = 16>
class CoreTaskArgsWithDeps : public CoreTaskArgs {
public:
    template <typename... Ids>
    void add_dep(Ids... ids) {
        (push(ids, DEP_DEFAULT), ...);
    }
    // Waits for the tasks, and lets their tensors go.
    template <typename... Ids>
    void add_dep_wait(Ids... ids) {
        (push(ids, DEP_WAIT), ...);
    }
    void clear() {
        CoreTaskArgs::clear();
        count_ = 0;
    }
    void reset() { clear(); }

private:
    void push(PTO2TaskId id, DepFlags kind) {
        if (count_ == N) {
            return set_error("add_dep: more tasks than the arguments hold; raise N of CoreTaskArgsWithDeps<N>");
        }
        ids_[count_] = id;
        kinds_[count_++] = kind;
        set_dependencies(nullptr, 0);
        set_dependencies_with_kinds(ids_, kinds_, count_);
    }

    PTO2TaskId ids_[N];
    DepFlags kinds_[N];
    uint32_t count_ = 0;
};

#include "pto_field_vintages.h"

#endif  // PTO_FIELD_ARG_WITH_DEPS_H
