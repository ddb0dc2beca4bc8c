// By hand: counters, a stack of ready tasks for each thread, the next task of a finished one on the same thread
// (continuation bypass); a thread without work is given half of a stack by one that has some.
#include <mutex>
#include <thread>

#include "dataflow.h"

class Counters {
    static constexpr uint32_t LEAST_SHARED = 2;

    struct alignas(128) Shared {
        std::mutex lock;
        std::vector<uint32_t> tasks;
    };

    int threads;
    peer::Dataflow flow;
    Shared shared;
    alignas(128) std::atomic<uint32_t> hungry{0};
    alignas(128) std::atomic<uint32_t> offered{0};
    alignas(128) std::atomic<uint32_t> done{0};
    alignas(128) std::atomic<uint64_t> epoch{0};
    std::atomic<int> busy{0};
    std::atomic<bool> stop{false};
    std::vector<std::thread> others;

    void offer_half(std::vector<uint32_t> &stack) {
        std::lock_guard<std::mutex> guard(shared.lock);
        size_t half = stack.size() / 2;
        shared.tasks.insert(shared.tasks.end(), stack.begin(), stack.begin() + half);
        stack.erase(stack.begin(), stack.begin() + half);
        offered.store(static_cast<uint32_t>(shared.tasks.size()), std::memory_order_relaxed);
    }

    // Waits for an offer, or for the end.
    bool take(std::vector<uint32_t> &stack, uint32_t &mine) {
        done.fetch_add(mine, std::memory_order_acq_rel);
        mine = 0;
        hungry.fetch_add(1, std::memory_order_relaxed);
        bool found = false;
        while (!found && done.load(std::memory_order_acquire) != flow.tasks) {
            if (offered.load(std::memory_order_relaxed) == 0) {
                __builtin_ia32_pause();
                continue;
            }
            std::lock_guard<std::mutex> guard(shared.lock);
            stack.swap(shared.tasks);
            shared.tasks.clear();
            offered.store(0, std::memory_order_relaxed);
            found = !stack.empty();
        }
        hungry.fetch_sub(1, std::memory_order_relaxed);
        return found;
    }

    void work(std::vector<uint32_t> &stack) {
        uint32_t mine = 0;
        do {
            while (!stack.empty()) {
                uint32_t task = stack.back();
                stack.pop_back();
                bool goes_on = true;
                while (goes_on) {
                    peer::kernel(task);
                    mine++;
                    goes_on = false;
                    uint32_t next = 0;
                    flow.complete(task, [&](uint32_t consumer) {
                        if (goes_on)
                            stack.push_back(consumer);
                        else
                            next = consumer;
                        goes_on = true;
                    });
                    task = next;
                    if (threads > 1 && hungry.load(std::memory_order_relaxed) > 0 && stack.size() >= LEAST_SHARED)
                        offer_half(stack);
                }
            }
        } while (take(stack, mine));
    }

    void serve() {
        std::vector<uint32_t> stack;
        uint64_t seen = 0;
        while (true) {
            uint64_t now;
            while ((now = epoch.load(std::memory_order_acquire)) == seen)
                epoch.wait(seen, std::memory_order_acquire);
            seen = now;
            if (stop)
                return;
            work(stack);
            busy.fetch_sub(1, std::memory_order_release);
        }
    }

  public:
    static constexpr bool builds_apart = true;

    explicit Counters(int threads) : threads(threads) {
        for (int i = 1; i < threads; i++)
            others.emplace_back([this] { serve(); });
    }
    ~Counters() {
        stop = true;
        wake();
        for (auto &thread : others)
            thread.join();
    }
    void wake() {
        epoch.fetch_add(1, std::memory_order_release);
        epoch.notify_all();
    }
    void build(const peer::Graph &graph) { flow.build(graph); }
    void run() {
        done = 0;
        busy = threads - 1;
        if (threads > 1)
            wake();
        work(flow.roots);
        while (busy.load(std::memory_order_acquire) > 0)
            __builtin_ia32_pause();
    }
    void clear() {}
};

int main(int argc, char **argv) { return peer::serve<Counters>(argc, argv); }
