// Programs with the shapes that programs of the field have: attention over pages, products, blocks, graphs. Part of orchestrations.cpp.
//
// Attention: `a` has the queries of four sequences (16 heads of 16), keys and values are made on the device, a page holds 16 tokens.

namespace attention {

const uint32_t HEADS = 16, WIDTH = 16, PAGE = 16;
const uint32_t SQUARE[2] = {16, 16}, ROW[1] = {16};

// What one sequence has so far: largest score, sum of weights, weighted values.
struct State {
    ChipTensor largest, sum, values;
};

inline ChipTensor pattern(uint32_t pages, uint32_t seed) {
    const uint32_t shape[2] = {pages * PAGE, WIDTH};
    TensorCreateInfo info(shape, 2);
    CoreTaskArgs task;
    task.add_output(info);
    task.add_scalar(seed);
    return rt_submit_aiv_task(PATTERN, task).get_ref(0);
}
inline ChipTensor rows(const ChipTensor &of, uint32_t first, uint32_t count) {
    const uint32_t shape[2] = {count, of.shapes[1]}, at[2] = {first, 0};
    return of.view(shape, at);
}
inline PTO2TaskId with(CoreTaskArgs &task, int32_t kernel, bool is_cube, const PTO2TaskId *after, uint32_t count, TaskOutputTensors *made) {
    if (count != 0) {
        task.set_dependencies(after, count);
    }
    *made = is_cube ? rt_submit_aic_task(kernel, task) : rt_submit_aiv_task(kernel, task);
    return made->task_id();
}

// One page of one sequence: scores, weights, values, and what they make of the state. `is_named`: edges by name alone.
inline PTO2TaskId page(const ChipTensor &q, const ChipTensor &k, const ChipTensor &v, State &state, const ChipTensor &out, bool is_first, bool is_last,
                       bool is_named, PTO2TaskId before) {
    TensorCreateInfo square(SQUARE, 2), row(ROW, 1);
    TaskOutputTensors scores, weights, values, none;
    CoreTaskArgs product, soften, weigh, update;
    product.add_input(q, k);
    product.add_output(square);
    const PTO2TaskId one = with(product, SCORES, true, &k.owner_task_id, is_named ? 1 : 0, &scores);
    soften.add_input(scores.get_ref(0));
    soften.add_output(square, row, row);
    soften.add_scalar(0.25f);
    const PTO2TaskId two = with(soften, SOFTEN, false, &one, is_named ? 1 : 0, &weights);
    weigh.add_input(weights.get_ref(0), v);
    weigh.add_output(square);
    const PTO2TaskId sources[2] = {two, v.owner_task_id};
    const PTO2TaskId three = with(weigh, WEIGH, true, sources, is_named ? 2 : 0, &values);
    update.add_input(weights.get_ref(1), weights.get_ref(2), values.get_ref(0));
    update.add_inout(state.largest, state.sum, state.values, out);
    update.add_scalar(is_first, is_last);
    const PTO2TaskId after[2] = {three, before};
    return with(update, UPDATE, false, after, is_named ? (before.is_valid() ? 2 : 1) : 0, &none);
}

// `batch` sequences of `pages` pages each.
inline void run(const ChipTaskArgs &args, uint32_t batch, uint32_t pages, PTO2ScopeMode mode) {
    const uint32_t all[2] = {4 * HEADS, WIDTH};
    const ChipTensor queries = a_of(args).reshape(all, 2), results = out_of(args).reshape(all, 2);
    const ChipTensor keys = pattern(batch * pages, 3), contents = pattern(batch * pages, 5);
    const bool is_named = mode == PTO2ScopeMode::MANUAL;
    for (uint32_t sequence = 0; sequence < batch; sequence++) {
        const ChipTensor q = rows(queries, HEADS * sequence, HEADS), out = rows(results, HEADS * sequence, HEADS);
        PTO2_SCOPE(mode) {
            TensorCreateInfo square(SQUARE, 2), row(ROW, 1);
            TaskOutputTensors made = alloc_tensors(row, row, square);
            State state{made.get_ref(0), made.get_ref(1), made.get_ref(2)};
            PTO2TaskId before = PTO2TaskId::invalid();
            for (uint32_t at = 0; at < pages; at++) {
                const uint32_t first = (sequence * pages + at) * PAGE;
                const ChipTensor k = rows(keys, first, PAGE), v = rows(contents, first, PAGE);
                before = page(q, k, v, state, out, at == 0, at + 1 == pages, is_named, before);
            }
        }
    }
}

}  // namespace attention

extern "C" {

void attention_1(const ChipTaskArgs &args) { attention::run(args, 1, 3, PTO2ScopeMode::AUTO); }
void attention_2(const ChipTaskArgs &args) { attention::run(args, 2, 2, PTO2ScopeMode::AUTO); }
void attention_4(const ChipTaskArgs &args) { attention::run(args, 4, 4, PTO2ScopeMode::AUTO); }
void attention_manual(const ChipTaskArgs &args) { attention::run(args, 4, 2, PTO2ScopeMode::MANUAL); }
// The same again and again over the same tensors: the last round counts.
void attention_rounds(const ChipTaskArgs &args) {
    for (int round = 0; round < 3; round++) {
        PTO2_SCOPE() { attention::run(args, 3, 2, PTO2ScopeMode::AUTO); }
    }
}

// Products on cube cores and sums on vector cores in turn, on tiles of their own.
void alternating(const ChipTaskArgs &args) {
    const uint32_t square[2] = {8, 8}, flat[1] = {64}, start[1] = {0};
    const ChipTensor left = a_of(args).view(flat, start).reshape(square, 2), right = b_of(args).view(flat, start).reshape(square, 2);
    for (uint32_t turn = 0; turn < 16; turn++) {
        const uint32_t at[1] = {64 * turn};
        const ChipTensor part = out_of(args).view(flat, at), tile = part.reshape(square, 2);
        CoreTaskArgs task;
        if (turn % 2 == 0) {
            task.add_input(left, right);
            task.add_output(tile);
            rt_submit_aic_task(MATMUL, task);
        } else {
            const ChipTensor x = a_of(args).view(flat, at), y = b_of(args).view(flat, at);
            task.add_input(x, y);
            task.add_output(part);
            rt_submit_aiv_task(ADD, task);
        }
    }
}
// Scopes that take nothing between scopes that take much: a ring that is empty begins anew.
void empty_ring(const ChipTaskArgs &args) {
    const uint32_t large[1] = {24u << 20};
    TensorCreateInfo like(large, 1);
    for (uint32_t turn = 0; turn < 8; turn++) {
        PTO2_SCOPE() {}
        PTO2_SCOPE() {
            TaskOutputTensors made = alloc_tensors(like, like);
            const ChipTensor part = tile(made.get_ref(1), 3), to = tile(out_of(args), turn);
            fill(part, static_cast<float>(turn));
            copy(part, to);
        }
    }
}
// Thirty-two writers, and readers of all they wrote.
void many_producers(const ChipTaskArgs &args) {
    for (int round = 0; round < 4; round++) {
        for (uint32_t at = 0; at < 32; at++) {
            const ChipTensor part = tile(b_of(args), at);
            bump(part, 1);
        }
        CoreTaskArgs sum;
        sum.add_input(b_of(args));
        sum.add_inout(out_of(args));
        rt_submit_aiv_task(ACCUMULATE, sum);
    }
}
// More producers of one task than the field keeps with it: 100 by name.
void many_names(const ChipTaskArgs &args) {
    PTO2_SCOPE(PTO2ScopeMode::MANUAL) {
        std::vector<PTO2TaskId> ids;
        PTO2TaskId last[32];
        for (uint32_t at = 0; at < 100; at++) {
            const ChipTensor part = tile(out_of(args), at % 32);
            last[at % 32] = at < 32 ? bump(part, 1) : bump_after(part, 1, &last[at % 32], 1);
            ids.push_back(last[at % 32]);
        }
        bump_after(out_of(args), 10, ids.data(), 100);
    }
}
// A tree of dummies over the tiles.
void dummy_tree(const ChipTaskArgs &args) {
    PTO2_SCOPE(PTO2ScopeMode::MANUAL) {
        std::vector<PTO2TaskId> level;
        for (uint32_t at = 0; at < 32; at++) {
            const ChipTensor part = tile(out_of(args), at);
            level.push_back(fill(part, 4));
        }
        while (level.size() > 1) {
            std::vector<PTO2TaskId> next;
            for (size_t at = 0; at < level.size(); at += 2) {
                CoreTaskArgs join;
                join.set_dependencies(&level[at], 2);
                next.push_back(rt_submit_dummy_task(join).task_id());
            }
            level = next;
        }
        bump_after(out_of(args), 3, level.data(), 1);
    }
}
// A thousand tasks that nothing orders but their tiles.
void wide(const ChipTaskArgs &args) {
    for (uint32_t turn = 0; turn < 1024; turn++) {
        const ChipTensor part = tile(out_of(args), turn % 32);
        bump(part, 2);
    }
}
// Every way to place kernels on a cluster, in scopes of both modes.
void mix_in_scopes(const ChipTaskArgs &args) {
    const MixedKernels all[] = {{MARK_CUBE, MARK_VECTOR, MARK_VECTOR}, {MARK_CUBE, MARK_VECTOR, -1}, {MARK_CUBE, -1, -1},
                                {-1, MARK_VECTOR, MARK_VECTOR}, {-1, MARK_VECTOR, -1}};
    PTO2TaskId last = PTO2TaskId::invalid();
    for (const MixedKernels &kernels : all) {
        PTO2_SCOPE() {
            CoreTaskArgs task;
            task.add_inout(counts_of(args));
            last = rt_submit_task(kernels, task).task_id();
        }
    }
    // The first task waits for the last one above: in a manual scope no edge follows from tensors.
    PTO2_SCOPE(PTO2ScopeMode::MANUAL) {
        for (const MixedKernels &kernels : all) {
            CoreTaskArgs task;
            task.add_inout(counts_of(args));
            task.set_dependencies(&last, 1);
            last = rt_submit_task(kernels, task).task_id();
        }
    }
}
// More blocks than there are cores: each takes its tile.
void spmd_tiles(const ChipTaskArgs &args) {
    CoreTaskArgs task;
    task.add_input(a_of(args));
    task.add_inout(out_of(args));
    task.launch_spec.set_block_num(32);
    rt_submit_aiv_task(TILE_OF_BLOCK, task);
    bump(out_of(args), 1);
}
// All blocks at once, then one task after them.
void sync_start(const ChipTaskArgs &args) {
    for (int round = 0; round < 3; round++) {
        CoreTaskArgs task;
        task.add_inout(counts_of(args));
        task.launch_spec.set_block_num(8);
        task.launch_spec.set_require_sync_start(true);
        rt_submit_task(MixedKernels{MARK_CUBE, MARK_VECTOR, MARK_VECTOR}, task);
    }
}

// ---- graphs ----

static void tiles_of(const GraphTaskArgs &args, uint32_t first) {
    for (uint32_t at = first; at < first + 8; at++) {
        const ChipTensor part = tile(args.tensor(0).ref(), at);
        bump(part, from_u64<float>(args.scalar(0)));
        bump(part, 1);
    }
}
// Two graphs in turn, with other scalars each time.
void graph_keys(const ChipTaskArgs &args) {
    for (uint32_t turn = 0; turn < 6; turn++) {
        GraphTaskArgs boundary;
        boundary.add_inout(out_of(args));
        boundary.add_scalar(static_cast<float>(turn));
        rt_submit_graph(turn % 2 == 0 ? GRAPH_KEY("even") : GRAPH_KEY("odd"), &tiles_of, boundary, turn % 2 == 0 ? 0u : 8u);
    }
}
static void through_memory(const GraphTaskArgs &args) {
    TensorCreateInfo like(WHOLE, 1);
    CoreTaskArgs sum;
    sum.add_input(args.tensor(0).ref(), args.tensor(1).ref());
    sum.add_output(like);
    TaskOutputTensors made = rt_submit_aiv_task(ADD, sum);
    copy(made.get_ref(0), args.tensor(1).ref());
}
// A graph with a tensor of its own, whose result is its own next input.
void graph_rounds(const ChipTaskArgs &args) {
    for (int round = 0; round < 5; round++) {
        GraphTaskArgs boundary;
        boundary.add_input(a_of(args));
        boundary.add_inout(out_of(args));
        PTO2_SCOPE() { rt_submit_graph(&through_memory, boundary); }
    }
}
// The scalar of a recorded graph changes: nothing of it is frozen here.
static void by_scalar(const GraphTaskArgs &args) {
    const uint32_t turns = static_cast<uint32_t>(args.scalar(0));
    for (uint32_t turn = 0; turn < turns; turn++) {
        bump(args.tensor(0).ref(), 1);
    }
}
void graph_scalars(const ChipTaskArgs &args) {
    for (uint32_t turns = 1; turns <= 4; turns++) {
        GraphTaskArgs boundary;
        boundary.add_inout(out_of(args));
        boundary.add_scalar(turns);
        rt_submit_graph(GRAPH_KEY("scalar"), &by_scalar, boundary);
    }
}
}
