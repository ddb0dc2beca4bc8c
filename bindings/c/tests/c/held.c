/* Memory that commands of a session use stays theirs, whatever is released meanwhile. */
#include <stdint.h>

#include "check.h"

static const char *const NEXT =
    "workload next {\n  schedule round_robin workers 1 window 8192 stall\n  tensor X : f32[64, 64]\n  tensor Y : f32[64, 64]\n"
    "  kernel plus(x: in f32[64, 64], y: out f32[64, 64], by: f32) {\n    %0 = load x : f32[64, 64]\n    %1 = scalar by : f32\n"
    "    %2 = add %0, %1 by one : f32[64, 64]\n    store y, %2\n  }\n  do sequential {\n    parallel i in dense 1 {\n"
    "      plus[i](x = X, y = Y, by = number(symbol by))\n    }\n  }\n}\n";

enum { SIDE = 64, N = SIDE * SIDE, RUNS = 50, ROUNDS = 20 };

/* Submits RUNS runs one after the other, and releases every input as soon as the run that reads it is submitted. Meanwhile a stream that
   waits for nothing fills new memory of the same size. */
static void released_while_they_are_read(pto_session *session, pto_program *program, pto_program_stream *stream, pto_program_stream *other) {
    const uint64_t shape[] = {SIDE, SIDE};
    static float x[N], garbage[N], y[N];
    for (int i = 0; i < N; i++) {
        x[i] = (float)i;
        garbage[i] = -1.0f;
    }
    pto_loaded_program *next;
    pto_tensor *tensor;
    OK(pto_program_load(session, program, &next));
    OK(pto_tensor_to_device(stream, "f32", shape, 2, x, sizeof x, "row-major", &tensor));
    for (int run = 0; run < RUNS; run++) {
        const pto_program_tensor_argument given = {"X", tensor, 0, 0};
        const pto_program_number by = {"by", 1, 2.0f, 0};
        pto_program_output result = {"Y", NULL};
        OK(pto_program_run(stream, next, &given, 1, &by, 1, &result, 1));
        OK(pto_tensor_release(tensor));
        tensor = result.tensor;
        pto_tensor *filled;
        OK(pto_tensor_to_device(other, "f32", shape, 2, garbage, sizeof garbage, "row-major", &filled));
        OK(pto_tensor_release(filled));
    }
    /* The program goes as well, before its runs are over, and another one may take its memory. */
    OK(pto_loaded_program_release(next));
    OK(pto_program_load(session, program, &next));
    OK(pto_loaded_program_release(next));
    OK(pto_tensor_to_host(stream, tensor, y, sizeof y));
    OK(pto_tensor_release(tensor));
    for (int i = 0; i < N; i++) {
        CHECK(y[i] == (float)(i + 2 * RUNS));
    }
}

int main(void) {
    pto_device_options options;
    pto_device *device;
    pto_session *session;
    pto_program_stream *stream, *other;
    pto_program *program;
    OK(pto_device_options_init(&options));
    options.aic = 2;
    options.aiv = 4;
    /* Too small for all tensors that a round makes (50 of each kind, 16 KiB each, in 20 rounds: 32 MiB): what is released must come back. */
    options.gm_bytes = 16 << 20;
    OK(pto_device_open("a2a3sim", &options, &device));
    OK(pto_session_open(device, 0, &session));
    OK(pto_program_stream_open(session, 1, &stream));
    OK(pto_program_stream_open(session, 1, &other));
    OK(pto_program_of_text(NEXT, &program));
    for (int round = 0; round < ROUNDS; round++) {
        released_while_they_are_read(session, program, stream, other);
    }
    OK(pto_program_destroy(program));
    /* Streams and the session may go in any order. */
    OK(pto_session_close(session));
    OK(pto_program_stream_close(stream));
    OK(pto_program_stream_close(other));
    return 0;
}
