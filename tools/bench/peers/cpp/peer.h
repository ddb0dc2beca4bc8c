// What every peer shares: the graph file, what a task does, the protocol with `pto bench`.
//
// A peer is a class with `build(const Graph &)` and `run()`; `clear()` gives back what they took, untimed. Every task calls
// `peer::kernel(task)` once. Commands come in lines on standard input, answers go to standard output:
//
//   load FILE           ok TASKS EDGES
//   check               ok CHECKSUM                     runs once with tasks that prove their order
//   iteration           ok NS                           of the kernel's loop
//   sample ITERATIONS   ok BUILD_NS RUN_NS TOTAL_NS     -1: not apart from the other
//   memory              ok BYTES                        by which the process grew while it built and ran; -1: unknown
//   quit
//
// Anything that goes wrong is answered with `error WHAT`.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iostream>
#include <malloc.h>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace peer {

// For each task its producers, all of them tasks before it.
struct Graph {
    uint32_t tasks = 0;
    std::vector<uint32_t> starts;
    std::vector<uint32_t> producers;

    const uint32_t *begin(uint32_t task) const { return producers.data() + starts[task]; }
    uint32_t count(uint32_t task) const { return starts[task + 1] - starts[task]; }

    static Graph read(const std::string &path) {
        std::ifstream file(path, std::ios::binary);
        char magic[8];
        uint64_t counts[2];
        file.read(magic, sizeof magic);
        file.read(reinterpret_cast<char *>(counts), sizeof counts);
        if (!file || std::memcmp(magic, "PTOCSR01", 8) != 0)
            throw std::runtime_error(path + " is not a graph file");
        Graph graph;
        graph.tasks = static_cast<uint32_t>(counts[0]);
        graph.starts.resize(counts[0] + 1);
        graph.producers.resize(counts[1]);
        file.read(reinterpret_cast<char *>(graph.starts.data()), 4 * (counts[0] + 1));
        file.read(reinterpret_cast<char *>(graph.producers.data()), 4 * counts[1]);
        if (!file)
            throw std::runtime_error(path + " is shorter than it says");
        return graph;
    }
};

// One step of splitmix64.
inline uint64_t mix(uint64_t value) {
    uint64_t z = value + 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

// What tasks do; set before a run.
struct Work {
    const Graph *graph = nullptr;
    uint64_t iterations = 0;
    std::vector<uint64_t> values;
};
inline Work work;

inline void spin(uint64_t iterations) {
    uint64_t state = iterations;
    for (uint64_t i = 0; i < iterations; i++) {
        state = mix(state);
        asm volatile("" : "+m"(state));
    }
}

inline void empty_task(uint32_t) {}
inline void spinning_task(uint32_t) { spin(work.iterations); }

// Mixes its value from its producers' values. A task that runs twice adds twice.
inline void checking_task(uint32_t task) {
    uint64_t value = mix(mix(0) ^ task);
    const uint32_t *producers = work.graph->begin(task);
    for (uint32_t i = 0; i < work.graph->count(task); i++)
        value = mix(value ^ work.values[producers[i]]);
    work.values[task] += value;
}

// What a task calls: a function that the compiler does not know.
inline void (*volatile chosen)(uint32_t) = empty_task;
using Kernel = void (*)(uint32_t);
inline Kernel kernel = empty_task;

using Clock = std::chrono::steady_clock;
inline long long ns_between(Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(to - from).count();
}

// Greatest resident size since the last reset, or -1.
inline long long peak_bytes() {
    std::ifstream status("/proc/self/status");
    std::string line;
    while (std::getline(status, line))
        if (line.rfind("VmHWM:", 0) == 0)
            return std::atoll(line.c_str() + 6) * 1024;
    return -1;
}

inline bool reset_peak() {
    malloc_trim(0);
    std::ofstream refs("/proc/self/clear_refs");
    refs << "5";
    return static_cast<bool>(refs.flush());
}

template <typename Peer> class Server {
    Graph graph;
    std::unique_ptr<Peer> runner;

    void choose(void (*function)(uint32_t)) {
        chosen = function;
        kernel = chosen;
    }

    std::string sample(uint64_t iterations) {
        work.iterations = iterations;
        choose(iterations == 0 ? empty_task : spinning_task);
        auto start = Clock::now();
        runner->build(graph);
        auto built = Clock::now();
        runner->run();
        auto end = Clock::now();
        runner->clear();
        std::ostringstream answer;
        bool apart = Peer::builds_apart;
        answer << (apart ? ns_between(start, built) : -1) << ' ' << (apart ? ns_between(built, end) : -1) << ' '
               << ns_between(start, end);
        return answer.str();
    }

    std::string check() {
        work.graph = &graph;
        work.values.assign(graph.tasks, 0);
        choose(checking_task);
        runner->build(graph);
        runner->run();
        runner->clear();
        uint64_t sum = 0;
        for (uint64_t value : work.values)
            sum = mix(sum ^ value);
        work.values = {};
        return std::to_string(sum);
    }

    std::string memory() {
        bool reset = reset_peak();
        long long before = peak_bytes();
        sample(0);
        long long after = peak_bytes();
        return std::to_string(reset && before >= 0 ? after - before : -1);
    }

    static std::string iteration() {
        double least = 1e9;
        for (int i = 0; i < 9; i++) {
            auto start = Clock::now();
            spin(20000);
            double each = static_cast<double>(ns_between(start, Clock::now())) / 20000;
            least = each < least ? each : least;
        }
        return std::to_string(least);
    }

    std::string answer(const std::string &line) {
        std::istringstream words(line);
        std::string command, path;
        uint64_t iterations = 0;
        words >> command;
        if (command == "load") {
            std::getline(words >> std::ws, path);
            graph = Graph::read(path);
            return std::to_string(graph.tasks) + ' ' + std::to_string(graph.producers.size());
        }
        if (command == "sample" && words >> iterations)
            return sample(iterations);
        if (command == "check")
            return check();
        if (command == "memory")
            return memory();
        if (command == "iteration")
            return iteration();
        throw std::runtime_error("no such command: " + line);
    }

  public:
    explicit Server(int threads) : runner(std::make_unique<Peer>(threads)) {}

    void serve() {
        std::string line;
        while (std::getline(std::cin, line) && line != "quit") {
            try {
                std::cout << "ok " + answer(line) << std::endl;
            } catch (const std::exception &problem) {
                std::cout << "error " << problem.what() << std::endl;
            }
        }
    }
};

// `main` of a peer: the one argument is the number of OS threads.
template <typename Peer> int serve(int argc, char **argv) {
    int threads = argc == 2 ? std::atoi(argv[1]) : 0;
    if (threads < 1) {
        std::cerr << "usage: " << argv[0] << " THREADS" << std::endl;
        return 2;
    }
    Server<Peer>(threads).serve();
    return 0;
}

} // namespace peer
