/* Builder programs that call library kernels with what the kernels cannot take are refused, with task and argument, and the device goes on: in C and in C++,
 * in both kinds of runs, one by one, in ranges and in recordings. */
#include "check.h"
#include "pto_range.h"
#include "pto_stream.h"

enum { EXP = 3, EMPTY_AIC = 13, EMPTY_AIV = 14, OWN = 900, AIC = 0, AIV = 1, N = 16 };

static void nothing(int64_t *args) { (void)args; }

static pto_stream_tensor numbers(uint64_t address, uint32_t n) {
    pto_stream_tensor tensor;
    memset(&tensor, 0, sizeof tensor);
    tensor.base = address;
    tensor.bytes = 4 * (uint64_t)n;
    tensor.strides[0] = 1;
    tensor.shape[0] = n;
    tensor.rank = 1;
    tensor.element = PTO_ELEMENT_TYPE_F32;
    return tensor;
}

static pto_stream_arg of(uint32_t kind, pto_stream_tensor tensor) {
    pto_stream_arg arg;
    memset(&arg, 0, sizeof arg);
    arg.kind = kind;
    arg.tensor = tensor;
    return arg;
}

static pto_stream_arg word(uint32_t kind, uint64_t scalar) {
    pto_stream_arg arg;
    memset(&arg, 0, sizeof arg);
    arg.kind = kind;
    arg.scalar = scalar;
    return arg;
}

/* exp of `in` into `out`, of as many numbers as `n` says. */
static int32_t submit_exp(pto_builder *builder, pto_stream_tensor in, pto_stream_tensor out, pto_stream_arg n) {
    const pto_stream_arg args[] = {of(PTO_ARG_KIND_IN, in), of(PTO_ARG_KIND_OUT, out), n};
    pto_stream_task task;
    memset(&task, 0, sizeof task);
    task.struct_size = sizeof task;
    task.func_id = EXP;
    task.core_type = AIV;
    return pto_builder_submit(builder, &task, args, 3, NULL, 0, NULL);
}

/* ---- tasks with words. Words: the case, and two tensors of N numbers ---- */

static int32_t with_words(pto_builder *builder, void *user) {
    const uint64_t *words;
    uint32_t count;
    int32_t task = -1;
    (void)user;
    OK(pto_builder_words(builder, &words, &count));
    const uint64_t a = words[1], out = words[2];
    const uint64_t right[] = {a, out, N}, null[] = {0, out, N}, five[] = {a, out, N + 1}, shifted[] = {a + 2, out, 1};
    switch (words[0]) {
        case 0: return pto_builder_add_task(builder, EXP, AIV, right, 2, &task);
        case 1: return pto_builder_add_task(builder, EXP, AIC, right, 3, &task);
        case 2: return pto_builder_add_task(builder, EXP, AIV, null, 3, &task);
        case 3: return pto_builder_add_task(builder, EXP, AIV, five, 3, &task);
        case 4: return pto_builder_add_task(builder, EXP, AIV, shifted, 3, &task);
        case 5: return pto_builder_add_task(builder, OWN, AIC, NULL, 0, &task);
        case 6: {
            /* Task 2 of the range is the first one that leaves its memory. */
            pto_stream_variation grows;
            memset(&grows, 0, sizeof grows);
            grows.arg = 1;
            grows.step = 4 * N / 2;
            const uint64_t half[] = {a, out, N / 2};
            pto_task_range range;
            memset(&range, 0, sizeof range);
            range.struct_size = sizeof range;
            range.func_id = EXP;
            range.core_type = AIV;
            range.tasks = 4;
            range.args = half;
            range.variations = &grows;
            range.arg_count = 3;
            range.variation_count = 1;
            return pto_builder_submit_range(builder, &range, NULL);
        }
        default:
            if (pto_builder_add_task(builder, EXP, AIV, right, 3, &task) != 0) return 1;
            return pto_builder_publish(builder, task);
    }
}

static const char *const of_words[] = {
    "task 0: exp takes 3 arguments (a, out, n), and the task has 2",
    "task 0: exp runs on aiv cores, and the task is for aic",
    "task 0: exp: argument 0, a, is an address, and 0x0 lies in no allocation",
    "task 0: exp: argument 0, a, reaches to byte 68 of the allocation at",
    "task 0: exp: argument 0, a, begins at byte 2",
    "task 0: the kernel of func id 900 runs on aiv cores, and the task is for aic",
    "task 2: exp: argument 1, out, is an address",
};

/* ---- tasks with tensors. Words: the same ---- */

/* exp of a tensor and a number that a replay binds; replayed with these. */
static int32_t replayed(pto_builder *builder, pto_stream_tensor shape, pto_stream_tensor in, pto_stream_tensor out, uint64_t n) {
    const pto_stream_tensor shapes[] = {shape, shape};
    const pto_stream_tensor tensors[] = {in, out};
    pto_stream_tensor bound[2];
    pto_stream_recording made;
    OK(pto_builder_begin_recording(builder, shapes, 2, bound));
    OK(submit_exp(builder, bound[0], bound[1], word(PTO_ARG_KIND_BOUND_SCALAR, 0)));
    OK(pto_builder_end_recording(builder, &made));
    return pto_builder_replay(builder, &made, tensors, 2, &n, 1);
}

static int32_t with_tensors(pto_builder *builder, void *user) {
    const uint64_t *words;
    uint32_t count;
    (void)user;
    OK(pto_builder_words(builder, &words, &count));
    const pto_stream_tensor a = numbers(words[1], N), out = numbers(words[2], N);
    const pto_stream_tensor part = numbers(words[1], N / 2), nowhere = numbers(64, N), huge = numbers(words[1], 1000 * N);
    const pto_stream_arg all = word(PTO_ARG_KIND_SCALAR, N);
    switch (words[0]) {
        case 0: return submit_exp(builder, part, out, all);
        case 1: return submit_exp(builder, nowhere, out, all);
        case 2: return submit_exp(builder, huge, out, word(PTO_ARG_KIND_SCALAR, 2 * N));
        case 3: return submit_exp(builder, a, out, of(PTO_ARG_KIND_IN, a));
        case 4: {
            OK(submit_exp(builder, a, out, all));
            const uint32_t shape[] = {N / 2};
            pto_stream_tensor between;
            OK(pto_builder_alloc_tensor(builder, PTO_ELEMENT_TYPE_F32, shape, 1, &between));
            return submit_exp(builder, a, between, all);
        }
        case 5: return replayed(builder, a, a, out, N + 1);
        case 6: return replayed(builder, a, nowhere, out, N);
        case 7: {
            const pto_stream_arg args[] = {of(PTO_ARG_KIND_IN, a), of(PTO_ARG_KIND_OUT, out), word(PTO_ARG_KIND_SCALAR, N / 4)};
            pto_stream_variation grows;
            memset(&grows, 0, sizeof grows);
            grows.arg = 2;
            grows.step = N / 4;
            pto_stream_task task;
            memset(&task, 0, sizeof task);
            task.struct_size = sizeof task;
            task.func_id = EXP;
            task.core_type = AIV;
            return pto_builder_submit_tensor_range(builder, &task, args, 3, NULL, 0, 5, &grows, 1, NULL);
        }
        case 8: {
            /* A vector kernel of the library together with a cube kernel gets the same arguments. */
            pto_stream_task task;
            memset(&task, 0, sizeof task);
            task.struct_size = sizeof task;
            task.func_id = EMPTY_AIC;
            task.core_type = AIC;
            task.vector_count = 1;
            task.vectors[0] = EMPTY_AIC;
            return pto_builder_submit(builder, &task, NULL, 0, NULL, 0, NULL);
        }
        default: {
            const uint32_t shape[] = {N};
            pto_stream_tensor between;
            OK(submit_exp(builder, a, out, all));
            OK(pto_builder_alloc_tensor(builder, PTO_ELEMENT_TYPE_F32, shape, 1, &between));
            OK(submit_exp(builder, a, between, all));
            /* Its address as a word: it is a tensor of the run. */
            OK(submit_exp(builder, a, between, all));
            const pto_stream_arg args[] = {word(PTO_ARG_KIND_SCALAR, between.base), of(PTO_ARG_KIND_NO_DEP, between), all};
            pto_stream_task task;
            memset(&task, 0, sizeof task);
            task.struct_size = sizeof task;
            task.func_id = EXP;
            task.core_type = AIV;
            OK(pto_builder_submit(builder, &task, args, 3, NULL, 0, NULL));
            return replayed(builder, a, a, out, N);
        }
    }
}

static const char *const of_tensors[] = {
    "task 0: exp: argument 0, a, reaches to byte 64 of the tensor at",
    "task 0: exp: argument 0, a, is an address, and 0x40 lies in no allocation",
    "task 0: exp: argument 0, a, reaches to byte 128 of the tensor at",
    "task 0: exp: argument 2, n, is a number, and a tensor is given",
    "task 1: exp: argument 1, out, reaches to byte 64 of the tensor at",
    "task 0 of a recording: exp: argument 0, a, reaches to byte 68 of the tensor at",
    "task 0 of a recording: exp: argument 0, a, is an address, and 0x40 lies in no allocation",
    "task 4: exp: argument 0, a, reaches to byte 80 of the tensor at",
    "task 0: empty_aic runs on aic cores, and the task is for aiv",
};

/* The run fails with the text, which a call of the builder has failed with. */
static void refused(int32_t status, const char *says) {
    pto_error error;
    FAILS(PTO_ERROR_KERNEL_CALL, status);
    OK(pto_last_error(&error));
    if (strstr(error.message, says) == NULL) {
        fprintf(stderr, "\"%s\" is not in \"%s\"\n", says, error.message);
        exit(1);
    }
}

static int32_t fails(pto_builder *builder, void *user) {
    const uint64_t none[] = {0, 0, N};
    int32_t task;
    (void)user;
    FAILS(PTO_ERROR_KERNEL_CALL, pto_builder_add_task(builder, EXP, AIV, none, 3, &task));
    /* The first failure stays. */
    FAILS(PTO_ERROR_KERNEL_CALL, pto_builder_add_task(builder, EMPTY_AIV, AIV, NULL, 0, &task));
    return 0;
}

int main(void) {
    pto_device_options options;
    pto_device *device = NULL;
    OK(pto_device_options_init(&options));
    options.gm_bytes = 512 << 20;
    OK(pto_device_open("a2a3sim", &options, &device));
    uint64_t words[3] = {0, 0, 0};
    OK(pto_register_library(device));
    OK(pto_register_kernel_function(device, OWN, AIV, "nothing", nothing));
    OK(pto_register_builder(device, "with_words", with_words, NULL));
    OK(pto_register_builder(device, "with_tensors", with_tensors, NULL));
    OK(pto_register_builder(device, "fails", fails, NULL));
    float ones[N] = {0}, back[N];
    OK(pto_device_malloc(device, sizeof ones, &words[1]));
    OK(pto_device_malloc(device, sizeof ones, &words[2]));
    OK(pto_copy_to_device(device, words[1], ones, sizeof ones));
    for (words[0] = 0; words[0] < sizeof of_words / sizeof *of_words; words[0]++) {
        refused(pto_run_builder(device, "with_words", words, 3, NULL, NULL), of_words[words[0]]);
        refused(pto_run_stream(device, "with_words", words, 3, NULL, NULL), of_words[words[0]]);
    }
    words[0] = 99;
    OK(pto_run_builder(device, "with_words", words, 3, NULL, NULL));
    for (words[0] = 0; words[0] < sizeof of_tensors / sizeof *of_tensors; words[0]++) {
        refused(pto_run_stream(device, "with_tensors", words, 3, NULL, NULL), of_tensors[words[0]]);
    }
    refused(pto_run_builder(device, "fails", NULL, 0, NULL, NULL), "task 0: exp: argument 0");
    words[0] = 99;
    OK(pto_run_stream(device, "with_tensors", words, 3, NULL, NULL));
    OK(pto_copy_from_device(device, back, words[2], sizeof back));
    CHECK(back[0] == 1 && back[N - 1] == 1);
    /* What is freed meanwhile is no memory of the next run. */
    OK(pto_device_free(device, words[1]));
    refused(pto_run_stream(device, "with_words", words, 3, NULL, NULL), "argument 0, a, is an address");
    OK(pto_device_close(device));
    return 0;
}
