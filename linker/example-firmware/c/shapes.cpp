// A streaming program in C++: tasks of every shape, in layers that are recorded once and replayed, every fourth of them submitted.
// The same as the example "task_shapes" in Rust (examples/src/task_shapes/stream.rs), which documents its words.
//
// The kernels are part_aic and part_aiv of the library.
#include "pto_stream.hpp"
#include "pto_table.hpp"

namespace {

enum { PART_AIC = 38, PART_AIV = 39 };
enum { ROW, CORES, BLOCKS, START, PRIORITY, COMPARISON, CELL_ROW, CELL, PLAN_WORDS };

constexpr uint32_t BLOCK_WORDS = 4;
constexpr uint64_t BOUND = 1ull << 63, ALL_BLOCKS = 1ull << 32;

struct Words {
    uint64_t first, second, plan;
    uint32_t rows, blocks, tasks;
    uint64_t layers, meet, seed;
};

// The kernels of a block, by its cores as bits: cube, vector, vector.
bool of_cores(uint32_t cores, pto::Task &task) {
    const pto::Task cube(PART_AIC, CoreType::AIC), vector(PART_AIV, CoreType::AIV);
    switch (cores) {
        case 1: task = cube; return true;
        case 2: task = vector; return true;
        case 3: task = cube.mix({PART_AIV}); return true;
        case 6: task = vector.mix({PART_AIV}); return true;
        case 7: task = cube.mix({PART_AIV, PART_AIV}); return true;
        default: return false;
    }
}

// The kernels' word `group`: how many parts wait for each other.
uint64_t group(const Words &words, const uint32_t *planned) {
    const uint64_t parts = static_cast<uint64_t>(__builtin_popcount(planned[CORES]));
    if (words.meet != 1) { return 0; }
    return planned[START] == 1 ? ALL_BLOCKS | parts * planned[BLOCKS] : parts;
}

using Plan = pto::Table<uint32_t>;

bool layer(pto::Stream &stream, const Plan &plan, const Words &words, const pto::Tensor &matrix, const pto::Arg &salt) {
    uint32_t planned[PLAN_WORDS] = {};
    for (uint32_t number = 0; number < words.tasks; number++) {
        if (!plan.read(uint64_t{PLAN_WORDS} * number, PLAN_WORDS, planned)) { return false; }
        pto::Task task(PART_AIC, CoreType::AIC);
        if (!of_cores(planned[CORES], task) || planned[BLOCKS] > words.blocks) { return false; }
        task = task.blocks(planned[BLOCKS]).priority(planned[PRIORITY]);
        if (planned[START] == 1) { task = task.sync_start(); }
        if (planned[COMPARISON] != 0) {
            task = task.when(matrix, {planned[CELL_ROW], planned[CELL]}, planned[COMPARISON] - 1, BOUND);
        }
        const pto::Tensor cells = matrix.slice(0, planned[ROW], 1);
        stream.submit(task, {pto::inout(cells), salt, pto::scalar(group(words, planned))});
    }
    return true;
}

}  // namespace

extern "C" int build_graph_aicpu(Runtime *runtime) {
    if (runtime->orch_argc != 9 || runtime->get_function_bin_addr(PART_AIC) == 0) { return 7; }
    const uint64_t *given = runtime->orch_args;
    const auto size = [&](int number) { return static_cast<uint32_t>(given[number]); };
    const Words words = {given[0], given[1], given[2], size(3), size(4), size(5), given[6], given[7], given[8]};
    pto::Stream stream(runtime);
    const Plan plan(runtime, words.plan, uint64_t{PLAN_WORDS} * words.tasks);
    const auto matrix = [&](uint64_t at) { return pto::dense(at, PTO_ELEMENT_TYPE_U64, {words.rows, BLOCK_WORDS * words.blocks}); };
    const pto::Tensor shapes[] = {matrix(words.first)};
    bool is_good = true;
    const pto_stream_recording record = stream.record(shapes, [&](const pto::Tensor(&bound)[1]) {
        is_good = layer(stream, plan, words, bound[0], pto::bound_scalar(0));
    });
    for (uint64_t number = 0; is_good && number < words.layers; number++) {
        const pto::Tensor on[] = {matrix(number % 2 == 0 ? words.first : words.second)};
        const uint64_t salt = words.seed + number;
        if (number % 4 == 3) {
            is_good = layer(stream, plan, words, on[0], pto::scalar(salt));
        } else {
            stream.replay(record, on, {salt});
        }
    }
    return is_good ? stream.status() : 1;
}
