/* Launches and other commands of two streams are captured, and launched again, and on other tensors. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "expect.h"
#include "pto_runtime.h"

/* Func ids of the library. */
enum { ADD = 0, MUL = 2, N = 64 };

static void is(int line, const pto_program_stream *programs, const pto_tensor *tensor, float wanted) {
    float found[N];
    DONE(pto_tensor_to_host(programs, tensor, found, sizeof found));
    for (int i = 0; i < N; i++) {
        if (found[i] != wanted) {
            fprintf(stderr, "line %d: element %d is %g, and %g is wanted\n", line, i, (double)found[i], (double)wanted);
            wrong = 1;
            return;
        }
    }
}

static void count(void *user) {
    ++*(int *)user;
}

/* Commands other than launches are in a recording as well: total = 2 * (host + x), and the host gets it. */
static void commands(const pto_session *session, const pto_program_stream *programs, const pto_kernel_stream *first,
                     const pto_kernel_stream *second, pto_tensor *const tensors[5], const uint64_t at[5]) {
    const uint64_t bytes = N * sizeof(float), sums[] = {at[2], at[0], at[4], N};
    float given[N], found[N];
    int called = 0;
    uint64_t flag = at[3];
    pto_event *forked, *joined;
    pto_recording *recording = NULL;
    DONE(pto_event_open(session, &forked));
    DONE(pto_event_open(session, &joined));
    DONE(pto_kernel_stream_begin_capture(first));
    DONE(pto_kernel_stream_fill(first, at[3], 0, bytes));
    DONE(pto_kernel_stream_copy_to_device(first, at[2], given, bytes));
    DONE(pto_kernel_stream_record(first, forked));
    DONE(pto_kernel_stream_wait(second, forked));
    DONE(pto_kernel_stream_wait_value(first, flag, 7));
    DONE(pto_kernel_stream_call(second, count, &called));
    DONE(pto_kernel_stream_write_value(second, flag, 7));
    DONE(pto_kernel_stream_record(second, joined));
    DONE(pto_kernel_stream_wait(first, joined));
    DONE(pto_kernel_stream_launch(first, ADD, 1, sums, 4));
    DONE(pto_kernel_stream_copy(first, at[4], at[2], bytes));
    DONE(pto_kernel_stream_reduce(first, "sum", "f32", at[2], at[4], bytes));
    DONE(pto_kernel_stream_copy_from_device(first, at[4], found, bytes));
    REFUSED(pto_kernel_stream_synchronize(first, UINT64_MAX), PTO_ERROR_SESSION, "synchronize");
    DONE(pto_kernel_stream_end_capture(first, &recording));
    for (int i = 0; i < 3; i++) {
        for (int n = 0; n < N; n++) {
            given[n] = (float)i;
        }
        DONE(pto_kernel_stream_launch_recording(first, recording, NULL, 0));
        DONE(pto_kernel_stream_synchronize(first, UINT64_MAX));
        is(__LINE__, programs, tensors[4], 2.0F * ((float)i + 3.0F));
        if (called != i + 1 || found[N - 1] != 2.0F * ((float)i + 3.0F)) {
            fprintf(stderr, "called %d times, and the last element is %g\n", called, (double)found[N - 1]);
            wrong = 1;
        }
    }
    REFUSED(pto_kernel_stream_reduce(first, "mean", "f32", at[2], at[4], bytes), PTO_ERROR_INVALID_ARGUMENT, "mean");
    REFUSED(pto_kernel_stream_reduce(first, "sum", "f33", at[2], at[4], bytes), PTO_ERROR_INVALID_ARGUMENT, "f33");
    REFUSED(pto_kernel_stream_copy_to_device(first, at[2], NULL, bytes), PTO_ERROR_NULL_ARGUMENT, "from");
    REFUSED(pto_kernel_stream_call(first, NULL, NULL), PTO_ERROR_NULL_ARGUMENT, "function");
    DONE(pto_recording_close(recording));
    DONE(pto_event_close(forked));
    DONE(pto_event_close(joined));
}

int main(void) {
    const uint64_t shape[] = {N};
    float values[N];
    pto_device_options options;
    pto_device *device;
    pto_session *session;
    pto_program_stream *programs;
    pto_device_options_init(&options);
    options.aic = 2;
    options.aiv = 4;
    options.gm_bytes = 64 << 20;
    DONE(pto_device_open("a2a3sim", &options, &device));
    DONE(pto_session_open(device, 0, &session));
    DONE(pto_program_stream_open(session, 1, &programs));

    /* x: 3; other: 5; doubled, squared and sum: what is computed. */
    pto_tensor *tensors[5];
    uint64_t at[5];
    for (int i = 0; i < 5; i++) {
        for (int n = 0; n < N; n++) {
            values[n] = i == 0 ? 3.0F : i == 1 ? 5.0F : 0.0F;
        }
        DONE(pto_tensor_to_device(programs, "f32", shape, 1, values, sizeof values, "row-major", &tensors[i]));
        DONE(pto_tensor_address(tensors[i], &at[i]));
    }
    DONE(pto_program_stream_synchronize(programs, UINT64_MAX));

    pto_kernel_stream *first, *second;
    pto_event *forked, *joined;
    pto_recording *recording = NULL;
    DONE(pto_kernel_stream_open(session, &first));
    DONE(pto_kernel_stream_open(session, &second));
    DONE(pto_event_open(session, &forked));
    DONE(pto_event_open(session, &joined));
    REFUSED(pto_kernel_stream_end_capture(first, &recording), PTO_ERROR_SESSION, "capture");
    DONE(pto_kernel_stream_begin_capture(first));
    REFUSED(pto_kernel_stream_begin_capture(first), PTO_ERROR_SESSION, "capture");
    const uint64_t doubles[] = {at[0], at[0], at[2], N}, squares[] = {at[0], at[0], at[3], N}, sums[] = {at[2], at[3], at[4], N};
    DONE(pto_kernel_stream_record(first, forked));
    DONE(pto_kernel_stream_wait(second, forked));
    DONE(pto_kernel_stream_launch(first, ADD, 1, doubles, 4));
    DONE(pto_kernel_stream_launch(second, MUL, 1, squares, 4));
    DONE(pto_kernel_stream_record(second, joined));
    DONE(pto_kernel_stream_wait(first, joined));
    DONE(pto_kernel_stream_launch(first, ADD, 1, sums, 4));
    DONE(pto_kernel_stream_end_capture(first, &recording));
    is(__LINE__, programs, tensors[4], 0.0F);

    for (int i = 0; i < 3; i++) {
        DONE(pto_kernel_stream_launch_recording(first, recording, NULL, 0));
    }
    DONE(pto_kernel_stream_synchronize(first, UINT64_MAX));
    is(__LINE__, programs, tensors[4], 15.0F);

    const pto_recording_binding other = {at[0], at[1]}, unknown = {at[1], at[0]};
    DONE(pto_kernel_stream_launch_recording(first, recording, &other, 1));
    DONE(pto_kernel_stream_synchronize(first, UINT64_MAX));
    is(__LINE__, programs, tensors[4], 35.0F);

    REFUSED(pto_kernel_stream_launch_recording(first, recording, &unknown, 1), PTO_ERROR_INVALID_ARGUMENT, "does not name");
    REFUSED(pto_kernel_stream_launch_recording(first, recording, NULL, 1), PTO_ERROR_NULL_ARGUMENT, "bindings");
    REFUSED(pto_kernel_stream_launch(first, 70000, 1, NULL, 0), PTO_ERROR_INVALID_ARGUMENT, "70000");
    REFUSED(pto_kernel_stream_launch(first, 1000, 1, NULL, 0), PTO_ERROR_INVALID_ARGUMENT, "1000");
    REFUSED(pto_kernel_stream_wait(first, (pto_event *)recording), PTO_ERROR_INVALID_HANDLE, "is that of a recording");
    commands(session, programs, first, second, tensors, at);
    DONE(pto_recording_close(recording));
    REFUSED(pto_kernel_stream_launch_recording(first, recording, NULL, 0), PTO_ERROR_INVALID_HANDLE, "was closed");
    DONE(pto_event_close(forked));
    DONE(pto_event_close(joined));
    DONE(pto_kernel_stream_close(first));
    DONE(pto_kernel_stream_close(second));
    for (int i = 0; i < 5; i++) {
        DONE(pto_tensor_release(tensors[i]));
    }
    DONE(pto_program_stream_close(programs));
    DONE(pto_session_close(session));
    puts(wrong ? "capture: wrong" : "capture: right");
    return wrong;
}
