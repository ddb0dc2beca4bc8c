// Stands in for enkiTS where that is not at hand, so that its adapter is compiled: the same names, tasks run one after
// the other. Nothing is measured with it.
#pragma once
#include <cstdint>
#include <vector>

namespace enki {

struct TaskSetPartition {
    uint32_t start;
    uint32_t end;
};

class ICompletable;

class Dependency {
    friend class ICompletable;
    ICompletable *task = nullptr;
};

class ICompletable {
  public:
    std::vector<ICompletable *> dependents;
    uint32_t waits = 0;
    virtual ~ICompletable() = default;
    void SetDependency(Dependency &dependency, const ICompletable *on) {
        dependency.task = this;
        const_cast<ICompletable *>(on)->dependents.push_back(this);
        waits++;
    }
};

class ITaskSet : public ICompletable {
  public:
    virtual void ExecuteRange(TaskSetPartition range, uint32_t thread) = 0;
};

class TaskScheduler {
    std::vector<ITaskSet *> ready;

  public:
    void Initialize(uint32_t) {}
    void AddTaskSetToPipe(ITaskSet *task) { ready.push_back(task); }
    void WaitforAll() {
        while (!ready.empty()) {
            ITaskSet *task = ready.back();
            ready.pop_back();
            task->ExecuteRange({0, 1}, 0);
            for (ICompletable *dependent : task->dependents)
                if (--dependent->waits == 0)
                    ready.push_back(static_cast<ITaskSet *>(dependent));
        }
    }
};

} // namespace enki
