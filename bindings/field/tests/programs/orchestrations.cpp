// The test programs: one entry each, written against the interface of August 2026. tests/field/table.rs says what each gives.
//
// Every program gets four tensors: a, b and out of 1,024 floats, and counts of 64 integers.
#include "pto_orchestration_api.h"

#include <stdexcept>
#include <vector>

namespace {

enum Kernel {
    ADD, MUL, ADD_SCALAR, BUMP, FILL, COPY, ACCUMULATE, BLOCKS, MARK_VECTOR, MEET, WORDS, DESCRIBE, NOTIFY, AWAIT,
    AWAIT_TOO_MUCH, SLOW, CRASH, PATTERN, SOFTEN, UPDATE, TILE_OF_BLOCK, PONG, FOLLOW = 23, ALL_MEET, LONELY, HANDSHAKE, HANDSHAKE_BY_PRELUDE,
    READS_FOR_LONG,
    MATMUL = 32, MARK_CUBE, SCORES, WEIGH, PING, LEAD,
};
const uint32_t N = 1024;
const uint32_t WHOLE[1] = {N};
const uint32_t TILE[1] = {32};

const ChipTensor &a_of(const ChipTaskArgs &args) { return args.tensor(0).ref(); }
const ChipTensor &b_of(const ChipTaskArgs &args) { return args.tensor(1).ref(); }
const ChipTensor &out_of(const ChipTaskArgs &args) { return args.tensor(2).ref(); }
const ChipTensor &counts_of(const ChipTaskArgs &args) { return args.tensor(3).ref(); }

ChipTensor tile(const ChipTensor &of, uint32_t at) {
    const uint32_t offset[1] = {32 * at};
    return of.view(TILE, offset);
}
PTO2TaskId bump(const ChipTensor &x, float by) {
    CoreTaskArgs args;
    args.add_inout(x);
    args.add_scalar(by);
    return rt_submit_aiv_task(BUMP, args).task_id();
}
PTO2TaskId bump_after(const ChipTensor &x, float by, const PTO2TaskId *ids, uint32_t count) {
    CoreTaskArgs args;
    args.add_inout(x);
    args.add_scalar(by);
    args.set_dependencies(ids, count);
    return rt_submit_aiv_task(BUMP, args).task_id();
}
PTO2TaskId fill(const ChipTensor &x, float value) {
    CoreTaskArgs args;
    args.add_output(x);
    args.add_scalar(value);
    return rt_submit_aiv_task(FILL, args).task_id();
}
PTO2TaskId copy(const ChipTensor &from, const ChipTensor &to) {
    CoreTaskArgs args;
    args.add_input(from);
    args.add_output(to);
    return rt_submit_aiv_task(COPY, args).task_id();
}

}  // namespace

#include "shapes.h"

extern "C" {

// ---- plain tasks ----

// out = (a + b + 1) * (a + b + 2) + (a + b): five tasks, three of them on tensors of an inner scope.
void vector_example(const ChipTaskArgs &args) {
    const ChipTensor &a = a_of(args), &b = b_of(args), &f = out_of(args);
    const uint32_t shape[1] = {a.shapes[0]};
    TensorCreateInfo like(shape, 1, DataType::FLOAT32);
    CoreTaskArgs sum;
    sum.add_input(a, b);
    sum.add_output(like);
    TaskOutputTensors sums = rt_submit_aiv_task(ADD, sum);
    const ChipTensor &c = sums.get_ref(0);
    PTO2_SCOPE() {
        CoreTaskArgs one, two, product, last;
        one.add_input(c);
        one.add_output(like);
        one.add_scalar(1.0f);
        TaskOutputTensors ones = rt_submit_aiv_task(ADD_SCALAR, one);
        two.add_input(c);
        two.add_output(like);
        two.add_scalar(2.0f);
        TaskOutputTensors twos = rt_submit_aiv_task(ADD_SCALAR, two);
        product.add_input(ones.get_ref(0), twos.get_ref(0));
        product.add_output(like);
        TaskOutputTensors products = rt_submit_aiv_task(MUL, product);
        last.add_input(products.get_ref(0), c);
        last.add_output(f);
        rt_submit_aiv_task(ADD, last);
    }
}
PTO2OrchestrationConfig vector_example_config(const ChipTaskArgs &) { return PTO2OrchestrationConfig{3}; }

void nothing(const ChipTaskArgs &) {}

void tiles(const ChipTaskArgs &args) {
    for (uint32_t at = 0; at < 32; at++) {
        const ChipTensor a = tile(a_of(args), at), b = tile(b_of(args), at), out = tile(out_of(args), at);
        CoreTaskArgs task;
        task.add_input(a, b);
        task.add_output(out);
        rt_submit_aiv_task(ADD, task);
    }
}

// out, seen as 32 rows of 32: the left half of each row + 1, the right half + 2, all of it + 4.
void strided_tiles(const ChipTaskArgs &args) {
    const uint32_t square[2] = {32, 32}, half[2] = {32, 16}, left[2] = {0, 0}, right[2] = {0, 16};
    const ChipTensor matrix = out_of(args).reshape(square, 2);
    const ChipTensor west = matrix.view(half, left), east = matrix.view(half, right);
    bump(west, 1);
    bump(east, 2);
    bump(matrix, 4);
}
void transposed(const ChipTaskArgs &args) {
    const uint32_t square[2] = {32, 32};
    const ChipTensor from = a_of(args).reshape(square, 2), to = out_of(args).reshape(square, 2).transpose(0, 1);
    copy(from, to);
}
void sliced(const ChipTaskArgs &args) {
    const ChipTensor part = out_of(args).slice(0, 100, 50);
    bump(part, 1);
}
void empty_view(const ChipTaskArgs &args) {
    const uint32_t none[1] = {0}, start[1] = {5};
    const ChipTensor nothing_of_it = out_of(args).view(none, start);
    bump(nothing_of_it, 1);
    bump(out_of(args), 1);
}
void chain(const ChipTaskArgs &args) {
    for (int turn = 0; turn < 50; turn++) {
        bump(out_of(args), 1);
    }
}
void existing_output(const ChipTaskArgs &args) {
    fill(b_of(args), 7);
    copy(b_of(args), out_of(args));
}
// Two outputs of one task.
void two_outputs(const ChipTaskArgs &args) {
    TensorCreateInfo like(WHOLE, 1);
    CoreTaskArgs sum;
    sum.add_input(a_of(args), b_of(args));
    sum.add_output(like, like);
    TaskOutputTensors outs = rt_submit_aiv_task(ADD, sum);
    if (outs.size() != 2 || outs.empty() || !(outs.get_ref(0).owner_task_id == outs.task_id())) {
        rt_report_fatal(77, "the outputs are wrong");
    }
    copy(outs.get_ref(0), out_of(args));
}
// 500 products of 8 x 8 on cube cores, each added up on vector cores.
void bgemm(const ChipTaskArgs &args) {
    const uint32_t square[2] = {8, 8}, flat[1] = {64};
    TensorCreateInfo product(square, 2);
    const uint32_t start[1] = {0};
    const ChipTensor left = a_of(args).view(flat, start).reshape(square, 2);
    const ChipTensor right = b_of(args).view(flat, start).reshape(square, 2);
    for (int turn = 0; turn < 500; turn++) {
        const uint32_t at[1] = {static_cast<uint32_t>(turn % 16) * 64};
        const ChipTensor sum = out_of(args).view(flat, at).reshape(square, 2);
        PTO2_SCOPE() {
            CoreTaskArgs multiply, add;
            multiply.add_input(left, right);
            multiply.add_output(product);
            TaskOutputTensors made = rt_submit_aic_task(MATMUL, multiply);
            add.add_input(made.get_ref(0));
            add.add_inout(sum);
            rt_submit_aiv_task(ACCUMULATE, add);
        }
    }
}
// As many tasks as the field's host-built runtime cannot hold.
void large(const ChipTaskArgs &args) {
    for (uint32_t turn = 0; turn < 65792; turn++) {
        const ChipTensor part = tile(out_of(args), turn % 32);
        bump(part, 1);
    }
}
void scalars(const ChipTaskArgs &args) {
    const uint32_t shape[1] = {12};
    ChipTensor words = make_tensor_external(counts_of(args).data_as<void>(), shape, 1, DataType::UINT64);
    CoreTaskArgs task, source;
    const int32_t signed_words[2] = {-1, 7};
    const uint64_t plain[2] = {11, 12};
    source.add_scalar(21, 22u, 23.0f);
    task.add_output(words);
    task.add_scalar(-1, 2.5f, 3.5, true, static_cast<int8_t>(-2));
    task.add_scalars_i32(signed_words, 2);
    task.add_scalars(plain, 2);
    task.copy_scalars_from(source, 1, 2);
    task.add_scalar(args.scalar(0));
    rt_submit_aiv_task(WORDS, task);
}
void descriptor(const ChipTaskArgs &args) {
    const uint32_t square[2] = {32, 32}, part[2] = {3, 4}, at[2] = {2, 5}, eight[1] = {8};
    const ChipTensor view = a_of(args).reshape(square, 2).view(part, at);
    ChipTensor out = make_tensor_external(counts_of(args).data_as<void>(), eight, 1, DataType::UINT64);
    CoreTaskArgs task;
    task.add_input(view);
    task.add_output(out);
    rt_submit_aiv_task(DESCRIBE, task);
}
void basics(const ChipTaskArgs &args) {
    const uint32_t square[2] = {32, 32}, at[2] = {3, 4};
    const ChipTensor matrix = a_of(args).reshape(square, 2);
    bool holds = matrix.numel() == 1024 && matrix.nbytes() == 4096 && matrix.extent_elem() == 1024;
    holds = holds && matrix.compute_flat_offset(at, 2) == 100 && get_element_size(DataType::FP8E8M0) == 1;
    holds = holds && TensorCreateInfo(square, 2, DataType::FLOAT16).buffer_size_bytes() == 2048;
    holds = holds && from_u64<float>(to_u64(1.5f)) == 1.5f && to_u64(-1) == 0xFFFFFFFFull;
    holds = holds && PTO2TaskId::make(2, 9).ring() == 2 && PTO2TaskId::make(2, 9).local() == 9;
    holds = holds && PTO2TaskId::invalid().is_invalid() && args.tensor_count() == 4 && args.scalar_count() == 1;
    holds = holds && rt_available_cluster_count() == 8 && rt_available_aiv_count() == 16 && !rt_is_fatal();
    always_assert(holds);
    LOG_INFO("scalar=%d", static_cast<int>(args.scalar(0)));
    LOG_DEBUG("not said");
    LOG_WARN("careful");
}

// ---- edges ----

// A reader, then a writer. The field has no edge here.
void write_after_read(const ChipTaskArgs &args) {
    CoreTaskArgs slow;
    slow.add_inout(b_of(args));
    rt_submit_aiv_task(SLOW, slow);
    CoreTaskArgs sum;
    sum.add_input(a_of(args), b_of(args));
    sum.add_output(out_of(args));
    rt_submit_aiv_task(ADD, sum);
    fill(a_of(args), -5);
}
void no_dep(const ChipTaskArgs &args) {
    TensorCreateInfo like(WHOLE, 1);
    CoreTaskArgs sum, last;
    sum.add_input(a_of(args), b_of(args));
    sum.add_output(like);
    TaskOutputTensors outs = rt_submit_aiv_task(ADD, sum);
    // The edge to the task that made it is there all the same.
    last.add_no_dep(outs.get_ref(0));
    last.add_output(out_of(args));
    rt_submit_aiv_task(COPY, last);
}
void manual_dep(const ChipTaskArgs &args) {
    const uint32_t start[1] = {0};
    const ChipTensor loose = out_of(args).view(WHOLE, start, true);
    PTO2TaskId last = bump(loose, 1);
    for (int turn = 0; turn < 9; turn++) {
        last = bump_after(loose, 1, &last, 1);
    }
}
void manual_scope(const ChipTaskArgs &args) {
    PTO2_SCOPE(PTO2ScopeMode::MANUAL) {
        PTO2TaskId last = fill(out_of(args), 1);
        for (int turn = 0; turn < 9; turn++) {
            last = bump_after(out_of(args), 1, &last, 1);
        }
        const ChipTensor value = tile(out_of(args), 0);
        PTO2TaskId ids[1] = {last};
        CoreTaskArgs task;
        task.add_input(value);
        const ChipTensor to = tile(b_of(args), 0);
        task.add_output(to);
        task.set_dependencies(ids, 1);
        rt_submit_aiv_task(COPY, task);
    }
}
void dependency_kinds(const ChipTaskArgs &args) {
    PTO2_SCOPE(PTO2ScopeMode::MANUAL) {
        const PTO2TaskId first = fill(out_of(args), 3), other = fill(b_of(args), 4);
        const PTO2TaskId ids[3] = {first, other, first};
        const DepFlags kinds[3] = {DEP_WAIT, DEP_WAIT | DEP_RETAIN, DEP_RETAIN};
        CoreTaskArgs task;
        task.add_input(b_of(args));
        task.add_inout(out_of(args));
        task.set_dependencies_with_kinds(ids, kinds, 3);
        rt_submit_aiv_task(ACCUMULATE, task);
    }
}
void with_deps(const ChipTaskArgs &args) {
    PTO2_SCOPE(PTO2ScopeMode::MANUAL) {
        const PTO2TaskId first = fill(out_of(args), 3), other = fill(b_of(args), 4);
        CoreTaskArgsWithDeps<> task;
        task.add_dep(first);
        task.add_dep_wait(other);
        task.add_input(b_of(args));
        task.add_inout(out_of(args));
        rt_submit_aiv_task(ACCUMULATE, task);
        task.reset();
    }
}
// 64 tasks, a dummy that joins them, and one task after it.
void dummies(const ChipTaskArgs &args) {
    PTO2_SCOPE(PTO2ScopeMode::MANUAL) {
        std::vector<PTO2TaskId> parts;
        for (uint32_t at = 0; at < 32; at++) {
            const ChipTensor part = tile(out_of(args), at);
            parts.push_back(fill(part, static_cast<float>(at)));
        }
        CoreTaskArgs join, again;
        join.set_dependencies(parts.data(), static_cast<uint32_t>(parts.size()));
        PTO2TaskId joined = rt_submit_dummy_task(join).task_id();
        again.set_dependencies(&joined, 1);
        const PTO2TaskId second = rt_submit_dummy_task(again).task_id();
        bump_after(out_of(args), 100, &second, 1);
    }
}
void retired_dependency(const ChipTaskArgs &args) {
    const PTO2TaskId first = bump(out_of(args), 1);
    for (int turn = 0; turn < 999; turn++) {
        bump(out_of(args), 1);
    }
    bump_after(out_of(args), 1, &first, 1);
}
// The same tensor twice: read and written by one task.
void twice_in_a_task(const ChipTaskArgs &args) {
    CoreTaskArgs task;
    task.add_inout(out_of(args), out_of(args));
    task.add_output(out_of(args));
    rt_submit_aiv_task(ADD, task);
    bump(out_of(args), 1);
}

// ---- scopes and tensors ----

void nested_scopes(const ChipTaskArgs &args) {
    TensorCreateInfo like(WHOLE, 1);
    for (int depth = 0; depth < 20; depth++) {
        rt_scope_begin();
        CoreTaskArgs task;
        task.add_input(a_of(args));
        task.add_output(like);
        task.add_scalar(static_cast<float>(depth));
        TaskOutputTensors outs = rt_submit_aiv_task(ADD_SCALAR, task);
        CoreTaskArgs sum;
        sum.add_input(outs.get_ref(0));
        sum.add_inout(out_of(args));
        rt_submit_aiv_task(ACCUMULATE, sum);
    }
    for (int depth = 0; depth < 20; depth++) {
        rt_scope_end();
    }
}
void guarded_scope(const ChipTaskArgs &args) {
    PTO2_SCOPE_GUARD();
    {
        SIMPLER_SCOPE_GUARD(ScopeMode::MANUAL);
        fill(out_of(args), 2);
    }
}
// Four times as much as a heap holds, in scopes.
void heap_reuse(const ChipTaskArgs &args) {
    const uint32_t large[1] = {16u << 20};
    TensorCreateInfo like(large, 1);
    for (int turn = 0; turn < 16; turn++) {
        PTO2_SCOPE() {
            TaskOutputTensors made = alloc_tensors(like);
            const ChipTensor part = tile(made.get_ref(0), 5);
            fill(part, 1);
            CoreTaskArgs sum;
            const ChipTensor to = tile(out_of(args), static_cast<uint32_t>(turn));
            sum.add_input(part);
            sum.add_inout(to);
            rt_submit_aiv_task(ACCUMULATE, sum);
        }
    }
}
void alloc(const ChipTaskArgs &args) {
    TensorCreateInfo like(WHOLE, 1), small(TILE, 1);
    TaskOutputTensors made = alloc_tensors(like, small, like);
    const TensorCreateInfo list[2] = {like, small};
    TaskOutputTensors more = alloc_tensors(list, 2);
    CoreTaskArgs by_args;
    by_args.add_output(like);
    TaskOutputTensors third = alloc_tensors(by_args);
    always_assert(made.size() == 3 && more.size() == 2 && third.size() == 1);
    always_assert(made.task_id().is_valid() && made.get_ref(1).numel() == 32);
    fill(made.get_ref(0), 1);
    fill(more.get_ref(0), 2);
    fill(third.get_ref(0), 4);
    for (const ChipTensor *part : {&made.get_ref(0), &more.get_ref(0), &third.get_ref(0)}) {
        CoreTaskArgs sum;
        sum.add_input(*part);
        sum.add_inout(out_of(args));
        const PTO2TaskId after = made.task_id();
        sum.set_dependencies(&after, 1);
        rt_submit_aiv_task(ACCUMULATE, sum);
    }
}
void initial_value(const ChipTaskArgs &args) {
    TensorCreateInfo like(WHOLE, 1);
    like.set_initial_value(2.5f);
    TaskOutputTensors made = alloc_tensors(like);
    copy(made.get_ref(0), out_of(args));
}
void get_and_set(const ChipTaskArgs &args) {
    const uint32_t at[1] = {3}, next[1] = {4};
    fill(out_of(args), 5);
    const float value = get_tensor_data<float>(out_of(args), 1, at);
    set_tensor_data(out_of(args), 1, next, value + 1);
    bump(out_of(args), 10);
}
// Repeats a task until a value on the device is large enough.
void until(const ChipTaskArgs &args) {
    const uint32_t at[1] = {0};
    int turns = 0;
    while (get_tensor_data<float>(out_of(args), 1, at) < 20.0f && turns < 100) {
        bump(out_of(args), 3);
        turns++;
    }
    set_tensor_data(counts_of(args), 1, at, turns);
}
void get_of_manual(const ChipTaskArgs &args) {
    TensorCreateInfo like(WHOLE, 1);
    const uint32_t at[1] = {7};
    PTO2_SCOPE(PTO2ScopeMode::MANUAL) {
        CoreTaskArgs task;
        task.add_input(a_of(args), b_of(args));
        task.add_output(like);
        TaskOutputTensors outs = rt_submit_aiv_task(ADD, task);
        set_tensor_data(out_of(args), 1, at, get_tensor_data<float>(outs.get_ref(0), 1, at));
    }
}

// ---- block shapes ----

// Bit n of counts[n] says whether the n-th comparison held: of the values 5 (counts[40]) and -3 (counts[41]).
void predicates(const ChipTaskArgs &args) {
    const uint32_t one[1] = {1}, five[1] = {40}, minus[1] = {41};
    set_tensor_data(counts_of(args), 1, five, 5);
    set_tensor_data(counts_of(args), 1, minus, -3);
    const PredicateOp ops[6] = {PredicateOp::EQ, PredicateOp::NE, PredicateOp::GT,
                                PredicateOp::LT, PredicateOp::GE, PredicateOp::LE};
    for (uint32_t n = 0; n < 18; n++) {
        CoreTaskPredicate predicate;
        predicate.operand.tensor = &counts_of(args);
        predicate.operand.ndims = 1;
        predicate.operand.indices[0] = n < 12 ? 40 : 41;
        predicate.op = ops[n % 6];
        predicate.target = n < 6 ? 5 : n < 12 ? 4 : -2;
        const uint32_t at[1] = {n};
        const ChipTensor to = out_of(args).view(one, at);
        CoreTaskArgs task;
        task.add_inout(to);
        task.add_scalar(1.0f);
        task.set_predicate(predicate);
        rt_submit_aiv_task(BUMP, task);
    }
}
// What a task that did not run would have written stays, and the tasks that wait for it run.
void skipped(const ChipTaskArgs &args) {
    const uint32_t at[1] = {0};
    set_tensor_data(counts_of(args), 1, at, 0);
    CoreTaskPredicate predicate;
    predicate.operand = {&counts_of(args), 1, {0}};
    predicate.op = PredicateOp::GT;
    CoreTaskArgs task;
    task.add_output(out_of(args));
    task.add_scalar(9.0f);
    task.set_predicate(predicate);
    rt_submit_aiv_task(FILL, task);
    bump(out_of(args), 1);
}
// The predicate's value comes from a task that must have run before.
void routed(const ChipTaskArgs &args) {
    CoreTaskArgs route;
    route.add_inout(counts_of(args));
    route.launch_spec.set_block_num(4);
    const PTO2TaskId routes = rt_submit_aiv_task(BLOCKS, route).task_id();
    for (uint32_t expert = 0; expert < 8; expert++) {
        CoreTaskPredicate predicate;
        predicate.operand = {&counts_of(args), 1, {expert}};
        predicate.op = PredicateOp::GT;
        const ChipTensor part = tile(out_of(args), expert);
        CoreTaskArgs task;
        task.add_inout(part);
        task.add_scalar(1.0f);
        task.set_predicate(predicate);
        task.set_dependencies(&routes, 1);
        rt_submit_aiv_task(BUMP, task);
    }
}
void mix(const ChipTaskArgs &args) {
    CoreTaskArgs task;
    task.add_inout(counts_of(args));
    rt_submit_task(MixedKernels{MARK_CUBE, MARK_VECTOR, MARK_VECTOR}, task);
}
void mix_blocks(const ChipTaskArgs &args) {
    CoreTaskArgs task;
    task.add_inout(counts_of(args));
    task.launch_spec.set_block_num(20);
    rt_submit_task(MixedKernels{MARK_CUBE, MARK_VECTOR, MARK_VECTOR}, task);
}
void mix_pairs(const ChipTaskArgs &args) {
    CoreTaskArgs vectors, lone, one;
    vectors.add_inout(counts_of(args));
    rt_submit_task(MixedKernels{-1, MARK_VECTOR, MARK_VECTOR}, vectors);
    lone.add_inout(counts_of(args));
    rt_submit_task(MixedKernels{-1, -1, MARK_VECTOR}, lone);
    one.add_inout(counts_of(args));
    rt_submit_task(MixedKernels{MARK_CUBE, MARK_VECTOR}, one);
}
void blocks(const ChipTaskArgs &args) {
    CoreTaskArgs task;
    task.add_inout(counts_of(args));
    task.launch_spec.set_block_num(60);
    rt_submit_aiv_task(BLOCKS, task);
}
void early_resolve(const ChipTaskArgs &args) {
    for (int turn = 0; turn < 5; turn++) {
        CoreTaskArgs task;
        task.add_inout(out_of(args));
        task.add_scalar(1.0f);
        task.set_allow_early_resolve();
        task.dump(out_of(args));
        rt_submit_aiv_task(BUMP, task);
    }
}
// One task whose scalar is marked for a dump; the name covers two scalars.
void basics_of_dumps(const ChipTaskArgs &args) {
    const ChipTensor part = tile(out_of(args), 3);
    const float by = 3.0f;
    CoreTaskArgs task;
    task.add_inout(part);
    task.add_scalar(by, by);
    task.dump(by);
    rt_submit_aiv_task(BUMP, task);
}
// 16 blocks that wait for each other.
void meet(const ChipTaskArgs &args) {
    CoreTaskArgs task;
    task.add_inout(counts_of(args));
    task.launch_spec.set_block_num(16);
    task.launch_spec.set_require_sync_start(true);
    rt_submit_aiv_task(MEET, task);
}
// The kernels of each block wait for each other. There are more blocks than clusters.
void ping_pong(const ChipTaskArgs &args) {
    CoreTaskArgs task;
    task.add_inout(counts_of(args));
    task.launch_spec.set_block_num(20);
    rt_submit_task(MixedKernels{PING, PONG, -1}, task);
}
// Flags go from the cube core of each block to its vector cores and back.
void cross_core(const ChipTaskArgs &args) {
    CoreTaskArgs task;
    task.add_inout(counts_of(args));
    task.launch_spec.set_block_num(20);
    rt_submit_task(MixedKernels{LEAD, FOLLOW, FOLLOW}, task);
}
// A flag that comes when all 16 vector cores have raised it.
static void meet_by_flag(const ChipTaskArgs &args, bool starts_at_once) {
    CoreTaskArgs task;
    task.add_inout(counts_of(args));
    task.launch_spec.set_block_num(16);
    task.launch_spec.set_require_sync_start(starts_at_once);
    rt_submit_aiv_task(ALL_MEET, task);
}
void all_meet(const ChipTaskArgs &args) { meet_by_flag(args, true); }
void meeting_that_may_not_begin(const ChipTaskArgs &args) { meet_by_flag(args, false); }
// Two tasks without an order between them wait for each other, and a third one waits for both.
void tasks_that_wait(const ChipTaskArgs &args) {
    PTO2TaskId ids[2];
    for (int64_t own = 0; own < 2; own++) {
        CoreTaskArgs task;
        task.add_no_dep(counts_of(args));
        task.add_scalar(own);
        ids[own] = rt_submit_aiv_task(HANDSHAKE, task).task_id();
    }
    CoreTaskArgsWithDeps<2> last;
    last.add_dep(ids[0], ids[1]);
    last.add_inout(out_of(args));
    last.add_scalar(1.0f);
    rt_submit_aiv_task(BUMP, last);
}
// The same, with the functions of the prelude that a kernel looks with.
static void wait_by(const ChipTaskArgs &args, int64_t with) {
    for (int64_t own = 0; own < 2; own++) {
        CoreTaskArgs task;
        task.add_no_dep(counts_of(args));
        task.add_scalar(own + 2 * with);
        rt_submit_aiv_task(HANDSHAKE_BY_PRELUDE, task);
    }
}
void wait_by_ld_dev(const ChipTaskArgs &args) { wait_by(args, 0); }
void wait_by_dcci(const ChipTaskArgs &args) { wait_by(args, 1); }
void reads_for_long(const ChipTaskArgs &args) {
    CoreTaskArgs task;
    task.add_inout(counts_of(args));
    rt_submit_aiv_task(READS_FOR_LONG, task);
}
void bad_flag(const ChipTaskArgs &args) {
    CoreTaskArgs task;
    task.add_inout(counts_of(args));
    rt_submit_aiv_task(LONELY, task);
}
// Three tasks without an order write a third of a line each; a fourth one, after them, writes in the same line.
void thirds_of_a_line(const ChipTaskArgs &args) {
    const uint32_t five[1] = {5};
    PTO2TaskId ids[3];
    for (uint32_t at = 0; at < 3; at++) {
        const uint32_t offset[1] = {5 * at};
        const ChipTensor third = out_of(args).view(five, offset);
        ids[at] = fill(third, 1.0f + static_cast<float>(at));
    }
    const uint32_t one[1] = {1}, last[1] = {15};
    const ChipTensor rest = out_of(args).view(one, last);
    bump_after(rest, 9, ids, 3);
}
// A scalar that the body of a graph computes, next to one that it passes on.
static void doubled(const GraphTaskArgs &args) {
    bump(args.tensor(0).ref(), from_u64<float>(args.scalar(0)));
    bump(args.tensor(0).ref(), 2 * from_u64<float>(args.scalar(0)));
}
void frozen(const ChipTaskArgs &args) {
    for (int turn = 1; turn <= 3; turn++) {
        GraphTaskArgs boundary;
        boundary.add_inout(out_of(args));
        boundary.add_scalar(static_cast<float>(turn));
        rt_submit_graph(GRAPH_KEY("doubled"), &doubled, boundary);
    }
}
void timing(const ChipTaskArgs &args) {
    CoreTaskArgs task;
    task.add_inout(out_of(args));
    task.set_task_timing_slot(3);
    rt_submit_aiv_task(SLOW, task);
}
// The last task's kernel returns at once, and the task completes when four others have notified it, each of them after a slow one if there is one.
static void notify_and_await(const ChipTaskArgs &args, const PTO2TaskId *slow, bool await_has_edges) {
    const ChipTensor counter = counts_of(args);
    PTO2TaskId notifies[4];
    for (PTO2TaskId &id : notifies) {
        CoreTaskArgs notify;
        notify.add_inout(counter);
        if (slow) notify.set_dependencies(slow, 1);
        id = rt_submit_aiv_task(NOTIFY, notify).task_id();
    }
    CoreTaskArgs task;
    task.add_inout(counter);
    task.add_scalar(4);
    if (await_has_edges) task.set_dependencies(notifies, 4);
    const PTO2TaskId all = rt_submit_aiv_task(AWAIT, task).task_id();
    bump_after(out_of(args), 1, &all, 1);
}
void notified(const ChipTaskArgs &args) {
    PTO2_SCOPE(PTO2ScopeMode::MANUAL) { notify_and_await(args, nullptr, true); }
}
// Without edges to those that notify: it waits on its core.
void notified_later(const ChipTaskArgs &args) {
    PTO2_SCOPE(PTO2ScopeMode::MANUAL) {
        CoreTaskArgs slow;
        slow.add_inout(b_of(args));
        const PTO2TaskId id = rt_submit_aiv_task(SLOW, slow).task_id();
        notify_and_await(args, &id, false);
    }
}

// ---- graphs of the host-built runtime ----

static void layer(const GraphTaskArgs &args, int turns) {
    for (int turn = 0; turn < turns; turn++) {
        bump(args.tensor(0).ref(), from_u64<float>(args.scalar(0)));
    }
}
static void plain_layer(const GraphTaskArgs &args) { bump(args.tensor(0).ref(), 100); }
void graphs(const ChipTaskArgs &args) {
    for (int turn = 0; turn < 3; turn++) {
        GraphTaskArgs boundary;
        boundary.add_inout(out_of(args));
        boundary.add_scalar(static_cast<float>(turn));
        const GraphSubmitResult result = rt_submit_graph(&layer, boundary, 2);
        if (result.recording != (turn == 0) || !result.task_id.is_valid()) {
            rt_report_fatal(77, "recording is wrong");
        }
    }
    GraphTaskArgs boundary;
    boundary.add_inout(out_of(args));
    rt_submit_graph(GRAPH_KEY("plain"), &plain_layer, boundary);
    rt_submit_graph(+[](const GraphTaskArgs &inner) { bump(inner.tensor(0).ref(), 1000); }, boundary);
    rt_graph_commit();
}

// ---- what is wrong ----

void bad_many_tensors(const ChipTaskArgs &args) {
    CoreTaskArgs task;
    for (int at = 0; at < 33; at++) {
        task.add_input(a_of(args));
    }
    if (!task.has_error()) {
        return;
    }
    rt_submit_aiv_task(ADD, task);
}
void bad_many_scalars(const ChipTaskArgs &) {
    CoreTaskArgs task;
    for (int at = 0; at < 17; at++) {
        task.add_scalar(at);
    }
    rt_submit_aiv_task(ADD, task);
}
void bad_order(const ChipTaskArgs &args) {
    CoreTaskArgs task;
    task.add_scalar(1);
    task.add_input(a_of(args));
    rt_submit_aiv_task(ADD, task);
}
void bad_kernel(const ChipTaskArgs &args) {
    CoreTaskArgs task;
    task.add_input(a_of(args));
    rt_submit_aiv_task(31, task);
}
void bad_kind(const ChipTaskArgs &args) {
    CoreTaskArgs task;
    task.add_input(a_of(args));
    rt_submit_aic_task(ADD, task);
}
void bad_dependency(const ChipTaskArgs &args) {
    const PTO2TaskId id = PTO2TaskId::make(0, 12345);
    bump_after(out_of(args), 1, &id, 1);
}
void bad_null_dependencies(const ChipTaskArgs &args) { bump_after(out_of(args), 1, nullptr, 4); }
void bad_dependencies_twice(const ChipTaskArgs &args) {
    const PTO2TaskId id = bump(out_of(args), 1);
    CoreTaskArgs task;
    task.add_inout(out_of(args));
    task.set_dependencies(&id, 1);
    task.set_dependencies(&id, 1);
    rt_submit_aiv_task(BUMP, task);
}
void bad_auto_in_manual(const ChipTaskArgs &) {
    PTO2_SCOPE(PTO2ScopeMode::MANUAL) {
        PTO2_SCOPE() {}
    }
}
void bad_scope_end(const ChipTaskArgs &) { rt_scope_end(); }
void bad_depth(const ChipTaskArgs &) {
    for (int depth = 0; depth < 70; depth++) {
        rt_scope_begin();
    }
}
void bad_sync_start(const ChipTaskArgs &args) {
    CoreTaskArgs task;
    task.add_inout(counts_of(args));
    task.launch_spec.set_block_num(17);
    task.launch_spec.set_require_sync_start(true);
    rt_submit_aiv_task(MEET, task);
}
void bad_blocks(const ChipTaskArgs &args) {
    CoreTaskArgs task;
    task.add_inout(counts_of(args));
    task.launch_spec.set_block_num(0);
    rt_submit_aiv_task(BLOCKS, task);
}
void bad_calls(const ChipTaskArgs &args) {
    CoreTaskArgs task;
    task.add_inout(counts_of(args));
    task.launch_spec.set_block_num(10923);
    rt_submit_task(MixedKernels{MARK_CUBE, MARK_VECTOR, MARK_VECTOR}, task);
}
void bad_own_code(const ChipTaskArgs &args) {
    fill(out_of(args), 1);
    rt_report_fatal(42, "the batch is %d", 9);
    if (rt_is_fatal()) {
        rt_report_fatal(43, "not this one");
        fill(out_of(args), 2);
    }
}
void bad_exception(const ChipTaskArgs &) { throw std::runtime_error("no such table"); }
void bad_signal(const ChipTaskArgs &) {
    volatile int *nowhere = nullptr;
    *nowhere = 1;
}
// Reads beyond its memory, where only a sanitizer sees it.
void planted(const ChipTaskArgs &args) {
    std::vector<int> few(args.tensor_count());
    const volatile int *beyond = few.data() + few.size();
    const int found = *beyond;
    static_cast<void>(found);
}
void bad_assert(const ChipTaskArgs &args) { always_assert(args.tensor_count() == 99); }
void bad_stale(const ChipTaskArgs &args) {
    TensorCreateInfo like(WHOLE, 1);
    ChipTensor kept = a_of(args);
    PTO2_SCOPE() {
        TaskOutputTensors made = alloc_tensors(like);
        kept = made.get_ref(0);
    }
    bump(kept, 1);
}
void bad_heap(const ChipTaskArgs &) {
    const uint32_t large[1] = {40u << 20};
    TensorCreateInfo like(large, 1);
    alloc_tensors(like);
    alloc_tensors(like);
}
void bad_element(const ChipTaskArgs &args) {
    const uint32_t at[1] = {1024};
    get_tensor_data<float>(out_of(args), 1, at);
}
// A tensor where this process has no memory.
static ChipTensor nowhere() { return make_tensor_external(reinterpret_cast<void *>(0xA00), WHOLE, 1, DataType::FLOAT32); }
void bad_pointer_to_read(const ChipTaskArgs &) {
    const uint32_t at[1] = {3};
    get_tensor_data<float>(nowhere(), 1, at);
}
void bad_pointer_to_write(const ChipTaskArgs &) {
    const uint32_t at[1] = {3};
    set_tensor_data<float>(nowhere(), 1, at, 1.0f);
}
// A view that is not in its buffer: its offset and its element are beyond 64 bits.
static ChipTensor beyond(const ChipTaskArgs &args) {
    const uint32_t two[2] = {1, 64};
    ChipTensor forged = counts_of(args).reshape(two, 2);
    forged.start_offset = UINT64_MAX - 2;
    return forged;
}
void bad_offset(const ChipTaskArgs &args) {
    const uint32_t at[2] = {0, 5};
    get_tensor_data<int32_t>(beyond(args), 2, at);
}
void bad_offset_of_a_predicate(const ChipTaskArgs &args) {
    const ChipTensor forged = beyond(args);
    CoreTaskPredicate predicate;
    predicate.operand = {&forged, 2, {0, 5}};
    predicate.op = PredicateOp::EQ;
    CoreTaskArgs task;
    task.add_inout(out_of(args));
    task.set_predicate(predicate);
    rt_submit_aiv_task(SLOW, task);
}
// Its kernel looks at its scalar alone.
void unused_pointers(const ChipTaskArgs &args) {
    const ChipTensor none = nowhere(), forged = beyond(args);
    CoreTaskArgs task;
    task.add_inout(counts_of(args));
    task.add_no_dep(none);
    task.add_inout(forged);
    rt_submit_aiv_task(NOTIFY, task);
}
void counter_of_no_memory(const ChipTaskArgs &) {
    const ChipTensor none = nowhere();
    CoreTaskArgs task;
    task.add_no_dep(none);
    task.add_scalar(4);
    rt_submit_aiv_task(AWAIT, task);
}
void bad_owner(const ChipTaskArgs &args) {
    const uint32_t at[1] = {0};
    ChipTensor forged = out_of(args);
    forged.owner_task_id = PTO2TaskId::make(0, 17);
    get_tensor_data<float>(forged, 1, at);
}
void bad_owner_of_an_argument(const ChipTaskArgs &args) {
    ChipTensor forged = out_of(args);
    forged.owner_task_id = PTO2TaskId::make(0, 17);
    bump(forged, 1);
}
void bad_rank(const ChipTaskArgs &) {
    const uint32_t shape[6] = {1, 1, 1, 1, 1, 1};
    TensorCreateInfo like(shape, 6);
    alloc_tensors(like);
}
void bad_reshape(const ChipTaskArgs &args) {
    const uint32_t shape[2] = {32, 33};
    const ChipTensor other = out_of(args).reshape(shape, 2);
    bump(other, 1);
}
void bad_transposed(const ChipTaskArgs &args) {
    ChipTensor other = out_of(args);
    other.ndims = 1u << 30;
    other = other.transpose(1u << 29, 0);
    bump(other, 1);
}
void bad_output_index(const ChipTaskArgs &args) {
    CoreTaskArgs task;
    task.add_inout(out_of(args));
    task.add_scalar(1.0f);
    TaskOutputTensors outs = rt_submit_aiv_task(BUMP, task);
    outs.get_ref(0);
}
void bad_slot(const ChipTaskArgs &args) {
    CoreTaskArgs task;
    task.add_inout(out_of(args));
    task.set_task_timing_slot(16);
    rt_submit_aiv_task(SLOW, task);
}
void bad_conditions(const ChipTaskArgs &args) {
    CoreTaskArgs task;
    task.add_inout(counts_of(args));
    rt_submit_aiv_task(AWAIT_TOO_MUCH, task);
}
void bad_predicate(const ChipTaskArgs &args) {
    CoreTaskPredicate predicate;
    predicate.operand = {&counts_of(args), 1, {64}};
    predicate.op = PredicateOp::EQ;
    CoreTaskArgs task;
    task.add_inout(out_of(args));
    task.set_predicate(predicate);
    rt_submit_aiv_task(SLOW, task);
}
void bad_kernel_crash(const ChipTaskArgs &args) {
    CoreTaskArgs task;
    task.add_inout(out_of(args));
    rt_submit_aiv_task(CRASH, task);
}
void bad_count(const ChipTaskArgs &) {}
PTO2OrchestrationConfig bad_count_config(const ChipTaskArgs &args) { return PTO2OrchestrationConfig{args.tensor_count() + 2}; }
}
