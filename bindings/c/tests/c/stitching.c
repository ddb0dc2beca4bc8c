/* Programs, tensors and streams: what is refused, with which code, and what stays as it was. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "pto_runtime.h"

static const char *const DOUBLE =
    "workload twice {\n  schedule round_robin workers 1 window 8192 stall\n  tensor X : f32[32, 32]\n  tensor Y : f32[32, 32]\n"
    "  kernel double(x: in f32[32, 32], y: out f32[32, 32], by: f32) {\n    %0 = load x : f32[32, 32]\n    %1 = scalar by : f32\n"
    "    %2 = mul %0, %1 by one : f32[32, 32]\n    store y, %2\n  }\n  do sequential {\n    parallel i in dense 1 {\n"
    "      double[i](x = X, y = Y, by = number(symbol by))\n    }\n  }\n}\n";

int main(void) {
    enum { N = 32 * 32 };
    float x[N], y[N];
    for (int i = 0; i < N; i++) {
        x[i] = (float)i;
    }
    pto_device_options options;
    pto_device *device;
    pto_session *session;
    pto_program_stream *stream, *other;
    pto_device_options_init(&options);
    options.aic = 2;
    options.aiv = 4;
    options.gm_bytes = 64 << 20;
    DONE(pto_device_open("a2a3sim", &options, &device));
    DONE(pto_session_open(device, 0, &session));
    REFUSED(pto_device_close(device), PTO_ERROR_INVALID_HANDLE, "was closed");
    DONE(pto_program_stream_open(session, 1, &stream));
    DONE(pto_program_stream_open(session, 1, &other));

    pto_program *program;
    pto_loaded_program *twice;
    REFUSED(pto_program_of_text("workload", &program), PTO_ERROR_PROGRAM, "line 1");
    REFUSED(pto_program_read("/nowhere/x.ptop", &program), PTO_ERROR_PROGRAM, "/nowhere/x.ptop");
    DONE(pto_program_of_text(DOUBLE, &program));
    REFUSED(pto_program_set_role(program, "X", "output"), PTO_ERROR_PROGRAM, "no task writes it");
    REFUSED(pto_program_set_role(program, "Z", "output"), PTO_ERROR_PROGRAM, "It has: X, Y");
    REFUSED(pto_program_set_role(program, "Y", "king"), PTO_ERROR_INVALID_ARGUMENT, "king");
    REFUSED(pto_program_set_layout(program, "X", "fractal"), PTO_ERROR_PROGRAM, "no layout");
    DONE(pto_program_set_layout(program, "X", "column-major"));
    pto_tensor_description description;
    DONE(pto_program_tensor(program, 0, &description));
    REFUSED(pto_program_tensor(program, 2, &description), PTO_ERROR_INVALID_ARGUMENT, "has 2 tensors");
    if (strcmp(description.layout.text, "device, strides [1, 32]") != 0 || strcmp(description.role, "input") != 0) {
        fprintf(stderr, "%s, %s\n", description.layout.text, description.role);
        wrong = 1;
    }
    DONE(pto_program_load(session, program, &twice));

    /* Programs of tasks. */
    pto_program *tasks;
    const uint64_t four[] = {4};
    const char *const nowhere = "/nowhere/kernels.so";
    pto_program_tensor_spec specs[] = {{"a", "input", "f32", "row-major", four, 1, 0}, {"b", "output", "f32", "row-major", four, 1, 0}};
    pto_program_argument args[] = {{0, 0, 0}, {0, 0, 0}, {1, 0, 0}, {PTO_PROGRAM_WORD, 0, 4}};
    uint32_t producers[] = {0};
    pto_program_task task = {"add", args, producers, 4, 0, 1, 0};
    DONE(pto_program_of_tasks("sum", specs, 2, &task, 1, &tasks));
    REFUSED(pto_program_set_kernels(tasks, &nowhere, 1), PTO_ERROR_LOAD_FAILED, "/nowhere/kernels.so");
    REFUSED(pto_program_set_kernels(tasks, NULL, 0), PTO_ERROR_INVALID_ARGUMENT, "give an object");
    DONE(pto_program_destroy(tasks));
    task.after_count = 1;
    REFUSED(pto_program_of_tasks("sum", specs, 2, &task, 1, &tasks), PTO_ERROR_PROGRAM, "waits for task 0");
    task.after_count = 0;
    task.kind = 2;
    REFUSED(pto_program_of_tasks("sum", specs, 2, &task, 1, &tasks), PTO_ERROR_INVALID_ARGUMENT, "kind of task 0 is 2");
    task.kind = 1;
    args[2].tensor = 2;
    REFUSED(pto_program_of_tasks("sum", specs, 2, &task, 1, &tasks), PTO_ERROR_PROGRAM, "names tensor 2 of 2");
    args[2].tensor = 1;
    args[0].reserved = 1;
    REFUSED(pto_program_of_tasks("sum", specs, 2, &task, 1, &tasks), PTO_ERROR_INVALID_ARGUMENT, "tasks.args.reserved");
    args[0].reserved = 0;
    specs[1].role = "constant";
    REFUSED(pto_program_of_tasks("sum", specs, 2, &task, 1, &tasks), PTO_ERROR_PROGRAM, "tensor b: 'constant' is no role here");
    specs[1].role = "output";
    specs[0].element = "f31";
    REFUSED(pto_program_of_tasks("sum", specs, 2, &task, 1, &tasks), PTO_ERROR_PROGRAM, "f31");

    const uint64_t shape[] = {32, 32};
    pto_tensor *X, *converted, *same, *more;
    REFUSED(pto_tensor_to_device(stream, "f33", shape, 2, x, sizeof x, "row-major", &X), PTO_ERROR_INVALID_ARGUMENT, "f33");
    REFUSED(pto_tensor_to_device(stream, "f32", shape, 2, x, 8, "row-major", &X), PTO_ERROR_PROGRAM_ARGUMENT, "8 were given");
    DONE(pto_tensor_to_device(stream, "f32", shape, 2, x, sizeof x, "row-major", &X));

    pto_program_tensor_argument given[] = {{"X", X, 0, 0}, {"Y", X, 0, 0}};
    pto_program_number by = {"by", 1, 2.0f, 0}, none = {"bye", 1, 2.0f, 0};
    pto_program_output result = {"Y", NULL}, unknown = {"Z", NULL};
    REFUSED(pto_program_run(stream, twice, given, 1, &by, 1, &result, 1), PTO_ERROR_TENSOR_LAYOUT, "strides [1, 32]");
    pto_layout layout;
    DONE(pto_loaded_program_layout(twice, "X", &layout));
    DONE(pto_tensor_to_layout(stream, X, layout.text, &converted));
    DONE(pto_tensor_to_layout(stream, converted, layout.text, &same));
    given[0].tensor = converted;
    REFUSED(pto_program_run(stream, twice, given, 0, &by, 1, &result, 1), PTO_ERROR_PROGRAM_ARGUMENT, "needs X");
    REFUSED(pto_program_run(stream, twice, given, 1, NULL, 0, &result, 1), PTO_ERROR_PROGRAM_ARGUMENT, "by is not bound");
    REFUSED(pto_program_run(stream, twice, given, 1, &none, 1, &result, 1), PTO_ERROR_PROGRAM_ARGUMENT, "no number bye");
    REFUSED(pto_program_run(stream, twice, given, 1, &by, 1, &unknown, 1), PTO_ERROR_PROGRAM_ARGUMENT, "no output Z");
    REFUSED(pto_program_run(other, twice, given, 1, &by, 1, &result, 1), PTO_ERROR_OTHER_STREAM, "belongs to");
    given[1].tensor = converted;
    REFUSED(pto_program_run(stream, twice, given, 2, &by, 1, NULL, 0), PTO_ERROR_PROGRAM_ARGUMENT, "give it two tensors");

    /* Nothing was taken so far; now it is given for good, under one of its handles. */
    pto_counters before, after;
    DONE(pto_session_counters(session, &before));
    given[0].is_given = 1;
    DONE(pto_program_run(stream, twice, given, 1, &by, 1, &result, 1));
    REFUSED(pto_program_run(stream, twice, given, 1, &by, 1, &result, 1), PTO_ERROR_TENSOR_MOVED, "program twice");
    REFUSED(pto_tensor_describe(same, &description), PTO_ERROR_TENSOR_MOVED, "program twice");
    DONE(pto_tensor_to_host(stream, result.tensor, y, sizeof y));
    REFUSED(pto_tensor_to_host(stream, result.tensor, y, 4), PTO_ERROR_INVALID_ARGUMENT, "take 4096");
    DONE(pto_session_counters(session, &after));
    if (y[37] != 74.0f || after.copied_to_host_bytes - before.copied_to_host_bytes != sizeof y || after.conversions != 1) {
        fprintf(stderr, "y[37] = %g, %d conversions\n", (double)y[37], (int)after.conversions);
        wrong = 1;
    }

    /* The other stream waits for this one. */
    DONE(pto_tensor_take_over(other, result.tensor, stream, &more));
    REFUSED(pto_tensor_take_over(other, result.tensor, stream, &more), PTO_ERROR_TENSOR_MOVED, "stream");
    DONE(pto_tensor_to_host(other, more, y, sizeof y));
    DONE(pto_program_stream_synchronize(other, 1000000000));
    REFUSED(pto_tensor_release((pto_tensor *)stream), PTO_ERROR_INVALID_HANDLE, "program stream");

    pto_tensor *const tensors[] = {X, converted, same, result.tensor, more};
    for (int i = 0; i < 5; i++) {
        DONE(pto_tensor_release(tensors[i]));
    }
    REFUSED(pto_tensor_release(X), PTO_ERROR_INVALID_HANDLE, "was closed");
    DONE(pto_loaded_program_release(twice));
    DONE(pto_program_destroy(program));
    DONE(pto_program_stream_close(stream));
    DONE(pto_program_stream_close(other));
    DONE(pto_session_close(session));
    return wrong;
}
