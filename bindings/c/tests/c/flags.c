/* Streams wait for values and flags, are asked whether they are idle, and drop what has not begun. */
#include <stdint.h>
#include <stdio.h>

#include "expect.h"
#include "pto_runtime.h"

static void idle(int line, const pto_kernel_stream *stream, uint32_t wanted) {
    uint32_t found = 7;
    DONE(pto_kernel_stream_query(stream, &found));
    if (found != wanted) {
        fprintf(stderr, "line %d: the stream's idleness is %u\n", line, (unsigned)found);
        wrong = 1;
    }
}

static void complete(int line, const pto_event *event, uint32_t wanted) {
    uint32_t found = 7;
    DONE(pto_event_query(event, &found));
    if (found != wanted) {
        fprintf(stderr, "line %d: the event's completeness is %u\n", line, (unsigned)found);
        wrong = 1;
    }
}

static void both_over(const pto_kernel_stream *first, const pto_kernel_stream *second) {
    DONE(pto_kernel_stream_synchronize(first, UINT64_MAX));
    DONE(pto_kernel_stream_synchronize(second, UINT64_MAX));
}

int main(void) {
    const uint64_t shape[] = {64};
    pto_device_options options;
    pto_device *device;
    pto_session *session;
    pto_program_stream *programs;
    pto_kernel_stream *first, *second, *third;
    pto_event *event;
    pto_notify *flag;
    pto_tensor *words;
    uint64_t at, raised;
    pto_device_options_init(&options);
    options.aic = 2;
    options.aiv = 4;
    options.gm_bytes = 64 << 20;
    DONE(pto_device_open("a2a3sim", &options, &device));
    DONE(pto_session_open(device, 0, &session));
    DONE(pto_program_stream_open(session, 1, &programs));
    DONE(pto_tensor_zeros(programs, "f32", shape, 1, "row-major", &words));
    DONE(pto_tensor_address(words, &at));
    DONE(pto_program_stream_synchronize(programs, UINT64_MAX));
    DONE(pto_kernel_stream_open(session, &first));
    DONE(pto_kernel_stream_open(session, &second));
    DONE(pto_kernel_stream_open(session, &third));
    DONE(pto_event_open(session, &event));
    DONE(pto_notify_open(session, &flag));
    DONE(pto_notify_address(flag, &raised));

    /* The second stream waits for the flag, and the first one for what the second one writes then. */
    DONE(pto_kernel_stream_wait_notify(second, flag));
    DONE(pto_kernel_stream_write_value(second, at, 9));
    DONE(pto_kernel_stream_wait_value_test(first, at, "at least", 4));
    idle(__LINE__, second, 0);
    idle(__LINE__, first, 0);
    REFUSED(pto_kernel_stream_synchronize(first, 1000000), PTO_ERROR_TIMED_OUT, "");
    DONE(pto_kernel_stream_notify(third, flag));
    DONE(pto_kernel_stream_synchronize(third, UINT64_MAX));
    both_over(first, second);
    idle(__LINE__, first, 1);

    /* The wait has lowered the flag. Any write of its word raises it, of a kernel as well. */
    DONE(pto_kernel_stream_wait_notify(first, flag));
    DONE(pto_kernel_stream_write_value(first, at, 16));
    DONE(pto_kernel_stream_wait_value_test(second, at, "and", 24));
    idle(__LINE__, first, 0);
    DONE(pto_kernel_stream_write_value(third, raised, 1));
    both_over(first, second);

    complete(__LINE__, event, 1);
    DONE(pto_kernel_stream_reset(first, event));
    DONE(pto_kernel_stream_synchronize(first, UINT64_MAX));
    complete(__LINE__, event, 0);
    DONE(pto_kernel_stream_record(first, event));
    DONE(pto_kernel_stream_synchronize(first, UINT64_MAX));
    complete(__LINE__, event, 1);

    /* A wait that no command meets is dropped. */
    DONE(pto_kernel_stream_wait_value(first, at, 1234));
    idle(__LINE__, first, 0);
    DONE(pto_kernel_stream_abort(first));
    DONE(pto_kernel_stream_synchronize(first, UINT64_MAX));
    idle(__LINE__, first, 1);

    REFUSED(pto_kernel_stream_wait_value_test(first, at, "less", 1), PTO_ERROR_INVALID_ARGUMENT, "at least, equal, and, nor");
    REFUSED(pto_kernel_stream_wait_value_test(first, at, NULL, 1), PTO_ERROR_NULL_ARGUMENT, "test");
    REFUSED(pto_kernel_stream_wait_value_test(first, at + 4, "and", 1), PTO_ERROR_INVALID_ARGUMENT, "8");
    REFUSED(pto_kernel_stream_notify(first, (pto_notify *)event), PTO_ERROR_INVALID_HANDLE, "is that of a event");
    REFUSED(pto_kernel_stream_query(first, NULL), PTO_ERROR_NULL_ARGUMENT, "is_idle");
    DONE(pto_notify_close(flag));
    REFUSED(pto_kernel_stream_notify(first, flag), PTO_ERROR_INVALID_HANDLE, "was closed");
    DONE(pto_event_close(event));
    DONE(pto_kernel_stream_close(first));
    DONE(pto_kernel_stream_close(second));
    DONE(pto_kernel_stream_close(third));
    DONE(pto_tensor_release(words));
    DONE(pto_program_stream_close(programs));
    DONE(pto_session_close(session));
    puts(wrong ? "flags: wrong" : "flags: right");
    return wrong;
}
