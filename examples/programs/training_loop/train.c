/* A training loop of three programs that were compiled apart: forward, backward, optimiser. The weights stay on the device.
 *
 *   cc -Ibindings/include train.c -lpto_runtime -lm -o train && ./train FOLDER_OF_THE_PROGRAMS FOLDER_FOR_FILES
 *
 * It makes a program file of each workload, reads the files, trains, and compares the weights with the same training in double precision. After
 * the first round the counters must not have moved. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pto_runtime.h"

enum { ROUNDS = 12 };
static const float RATE = 0.5f / 64;

#define CHECK(call)                                                                                              \
    do {                                                                                                         \
        if ((call) != 0) {                                                                                       \
            pto_error error;                                                                                     \
            pto_last_error(&error);                                                                              \
            fprintf(stderr, "%s: %s (%s)\nwhat to do: %s\n", #call, error.message, error.name, error.remedy);    \
            exit(1);                                                                                             \
        }                                                                                                        \
    } while (0)

static void fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}

/* The program of FOLDER/NAME.workload, by way of a file FILES/NAME.ptop. */
static pto_program *program(const char *folder, const char *files, const char *name) {
    char path[512], *text = calloc(1, 1 << 16);
    snprintf(path, sizeof path, "%s/%s.workload", folder, name);
    FILE *file = fopen(path, "rb");
    if (text == NULL || file == NULL || fread(text, 1, (1 << 16) - 1, file) == 0) {
        fail(path);
    }
    fclose(file);
    pto_program *made, *read;
    CHECK(pto_program_of_text(text, &made));
    free(text);
    if (strcmp(name, "backward") == 0) {
        /* The losses of earlier rounds stay; the others are nobody's business. */
        CHECK(pto_program_set_role(made, "L", "updated"));
        CHECK(pto_program_set_role(made, "D", "temporary"));
        CHECK(pto_program_set_role(made, "P", "temporary"));
    }
    snprintf(path, sizeof path, "%s/%s.ptop", files, name);
    CHECK(pto_program_save(made, path));
    CHECK(pto_program_destroy(made));
    CHECK(pto_program_read(path, &read));
    return read;
}

static pto_tensor_description tensor_of(const pto_program *program, const char *name) {
    pto_tensor_description found;
    for (uint32_t number = 0;; number++) {
        CHECK(pto_program_tensor(program, number, &found));
        if (strcmp(found.name, name) == 0) {
            return found;
        }
    }
}

/* Numbers between -0.5 and 0.5 that are the same in every run. */
static float drawn(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / (1 << 24) - 0.5f;
}

static pto_tensor *on_device(pto_program_stream *stream, uint64_t rows, uint64_t cols, const float *elements) {
    pto_tensor *tensor;
    const uint64_t shape[] = {rows, cols};
    CHECK(pto_tensor_to_device(stream, "f32", shape, 2, elements, 4 * rows * cols, "row-major", &tensor));
    return tensor;
}

static pto_tensor *zeros(pto_program_stream *stream, const char *element, uint64_t rows) {
    pto_tensor *tensor;
    const uint64_t shape[] = {rows, 1};
    CHECK(pto_tensor_zeros(stream, element, shape, 2, "row-major", &tensor));
    return tensor;
}

static double correlation(const double *a, const float *b, uint64_t count) {
    double mean_a = 0, mean_b = 0, ab = 0, aa = 0, bb = 0;
    for (uint64_t i = 0; i < count; i++) {
        mean_a += a[i] / (double)count;
        mean_b += b[i] / (double)count;
    }
    for (uint64_t i = 0; i < count; i++) {
        ab += (a[i] - mean_a) * (b[i] - mean_b);
        aa += (a[i] - mean_a) * (a[i] - mean_a);
        bb += (b[i] - mean_b) * (b[i] - mean_b);
    }
    return ab / sqrt(aa * bb);
}

/* A round in double precision: W = W - rate X^T ((Y - T) (1 - Y^2)), where Y = tanh(X W). */
static void reference(uint64_t batch, uint64_t inner, uint64_t outer, const float *x, const float *t, double *w) {
    double *delta = calloc(batch * outer, sizeof *delta);
    for (uint64_t b = 0; b < batch; b++) {
        for (uint64_t n = 0; n < outer; n++) {
            double sum = 0;
            for (uint64_t k = 0; k < inner; k++) {
                sum += x[b * inner + k] * w[k * outer + n];
            }
            const double y = tanh(sum);
            delta[b * outer + n] = (y - t[b * outer + n]) * (1 - y * y);
        }
    }
    for (uint64_t k = 0; k < inner; k++) {
        for (uint64_t n = 0; n < outer; n++) {
            for (uint64_t b = 0; b < batch; b++) {
                w[k * outer + n] -= RATE * x[b * inner + k] * delta[b * outer + n];
            }
        }
    }
    free(delta);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fail("usage: train FOLDER_OF_THE_PROGRAMS FOLDER_FOR_FILES");
    }
    pto_device_options options;
    pto_device *device;
    pto_session *session;
    pto_program_stream *stream;
    pto_device_options_init(&options);
    options.aic = 4;
    options.aiv = 8;
    options.gm_bytes = 64 << 20;
    CHECK(pto_device_open("a2a3sim", &options, &device));
    CHECK(pto_session_open(device, 0, &session));
    CHECK(pto_program_stream_open(session, 24, &stream));

    const char *const names[] = {"forward", "backward", "optimiser"};
    pto_program *programs[3];
    pto_loaded_program *loaded[3];
    for (int i = 0; i < 3; i++) {
        programs[i] = program(argv[1], argv[2], names[i]);
        CHECK(pto_program_load(session, programs[i], &loaded[i]));
    }
    const pto_tensor_description of_x = tensor_of(programs[0], "X"), of_w = tensor_of(programs[0], "W");
    const uint64_t batch = of_x.shape[0], inner = of_x.shape[1], outer = of_w.shape[1];

    float *x = malloc(4 * batch * inner), *xt = malloc(4 * batch * inner), *t = malloc(4 * batch * outer);
    float *w = malloc(4 * inner * outer), losses[ROUNDS];
    double *expected = malloc(8 * inner * outer);
    uint32_t seed = 7;
    for (uint64_t i = 0; i < batch * inner; i++) {
        x[i] = drawn(&seed);
        xt[i % inner * batch + i / inner] = x[i];
    }
    for (uint64_t i = 0; i < batch * outer; i++) {
        t[i] = drawn(&seed);
    }
    for (uint64_t i = 0; i < inner * outer; i++) {
        w[i] = drawn(&seed);
        expected[i] = w[i];
    }

    pto_tensor *X = on_device(stream, batch, inner, x), *XT = on_device(stream, inner, batch, xt);
    pto_tensor *T = on_device(stream, batch, outer, t), *W = on_device(stream, inner, outer, w);
    pto_tensor *C = zeros(stream, "i32", 1), *L = zeros(stream, "f32", ROUNDS);
    pto_counters first, last;
    for (int round = 0; round < ROUNDS; round++) {
        const pto_program_tensor_argument of_forward[] = {{"X", X, 0, 0}, {"W", W, 0, 0}};
        pto_program_output y = {"Y", NULL}, g = {"G", NULL};
        CHECK(pto_program_run(stream, loaded[0], of_forward, 2, NULL, 0, &y, 1));
        const pto_program_tensor_argument of_backward[] = {
            {"Y", y.tensor, 1, 0}, {"T", T, 0, 0}, {"XT", XT, 0, 0}, {"C", C, 0, 0}, {"L", L, 0, 0}};
        CHECK(pto_program_run(stream, loaded[1], of_backward, 5, NULL, 0, &g, 1));
        const pto_program_tensor_argument of_optimiser[] = {{"W", W, 0, 0}, {"G", g.tensor, 1, 0}, {"C", C, 0, 0}};
        const pto_program_number rate = {"rate", 1, RATE, 0};
        CHECK(pto_program_run(stream, loaded[2], of_optimiser, 3, &rate, 1, NULL, 0));
        CHECK(pto_tensor_release(y.tensor));
        CHECK(pto_tensor_release(g.tensor));
        if (round == 0) {
            CHECK(pto_program_stream_synchronize(stream, UINT64_MAX));
            CHECK(pto_session_counters(session, &first));
        }
        reference(batch, inner, outer, x, t, expected);
    }
    CHECK(pto_program_stream_synchronize(stream, UINT64_MAX));
    CHECK(pto_session_counters(session, &last));
    CHECK(pto_tensor_to_host(stream, W, w, 4 * inner * outer));
    CHECK(pto_tensor_to_host(stream, L, losses, sizeof losses));

    const uint64_t moved = last.copied_to_device_bytes - first.copied_to_device_bytes + last.copied_to_host_bytes -
                           first.copied_to_host_bytes + last.copied_on_device_bytes - first.copied_on_device_bytes;
    const uint64_t made = last.converted_bytes - first.converted_bytes + last.allocations - first.allocations +
                          last.filled_bytes - first.filled_bytes;
    const double pcc = correlation(expected, w, inner * outer);
    printf("%d rounds, loss %g to %g, correlation %.6f, %d bytes copied after the first round\n", ROUNDS,
           (double)losses[0], (double)losses[ROUNDS - 1], pcc, (int)moved);
    if (moved != 0 || made != 0 || last.runs - first.runs != 3 * (ROUNDS - 1)) {
        fail("something was copied, converted, filled or allocated after the first round");
    }
    if (!(pcc >= 0.999) || !(losses[ROUNDS - 1] < losses[0])) {
        fail("the training has not done what it should");
    }

    pto_tensor *const tensors[] = {X, XT, T, W, C, L};
    for (int i = 0; i < 6; i++) {
        CHECK(pto_tensor_release(tensors[i]));
    }
    for (int i = 0; i < 3; i++) {
        CHECK(pto_loaded_program_release(loaded[i]));
        CHECK(pto_program_destroy(programs[i]));
    }
    CHECK(pto_program_stream_close(stream));
    CHECK(pto_session_close(session));
    free(x);
    free(xt);
    free(t);
    free(w);
    free(expected);
    return 0;
}
