/* A program with kernels of one's own: it writes the file, reads it back, and runs it.
 *
 *     cc -O2 -shared -fPIC -I bindings/include -o kernels.so examples/kernels/scale.c
 *     cc -I bindings/include -o own_kernels examples/programs/own_kernels/own_kernels.c -lpto_runtime
 *     ./own_kernels kernels.so own.ptop
 *
 * The machine code of the kernels travels in the file: whoever runs it does not need the shared object.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pto_runtime.h"

enum { ELEMENTS = 1000 };

static void done(int32_t code) {
    if (code != 0) {
        pto_error error;
        pto_last_error(&error);
        fprintf(stderr, "%s: %s\n%s\n", error.name, error.message, error.remedy);
        exit(1);
    }
}

/* mean = the mean of 2 * row */
static void write_program(const char *kernels, const char *path) {
    const uint64_t row[] = {ELEMENTS}, one[] = {1};
    const pto_program_tensor_spec tensors[] = {
        {"row", "input", "f32", "row-major", row, 1, 0},
        {"scaled", "temporary", "f32", "row-major", row, 1, 0},
        {"mean", "output", "f32", "row-major", one, 1, 0},
    };
    const float factor = 2.0f;
    uint32_t bits;
    memcpy(&bits, &factor, sizeof bits);
    const pto_program_argument scale[] = {{0, 0, 0}, {PTO_PROGRAM_WORD, 0, bits}, {1, 0, 0}, {PTO_PROGRAM_WORD, 0, ELEMENTS}};
    const pto_program_argument mean[] = {{1, 0, 0}, {2, 0, 0}, {PTO_PROGRAM_WORD, 0, ELEMENTS}};
    const uint32_t after[] = {0};
    const pto_program_task tasks[] = {
        {"scale", scale, NULL, 4, 0, 1 /* AIV */, 0},
        {"mean", mean, after, 3, 1, 0 /* AIC */, 0},
    };
    pto_program *program;
    done(pto_program_of_tasks("own_kernels", tensors, 3, tasks, 2, &program));
    done(pto_program_set_kernels(program, &kernels, 1));
    done(pto_program_save(program, path));
    done(pto_program_destroy(program));
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: own_kernels KERNELS.so FILE.ptop\n");
        return 2;
    }
    write_program(argv[1], argv[2]);

    pto_device_options options;
    pto_device *device;
    pto_session *session;
    pto_program_stream *stream;
    pto_program *program;
    pto_loaded_program *loaded;
    pto_device_options_init(&options);
    done(pto_device_open("a2a3sim", &options, &device));
    done(pto_session_open(device, 0, &session));
    done(pto_program_stream_open(session, 1, &stream));
    done(pto_program_read(argv[2], &program));
    done(pto_program_load(session, program, &loaded));

    float row[ELEMENTS], mean;
    const uint64_t shape[] = {ELEMENTS};
    for (int i = 0; i < ELEMENTS; i++) {
        row[i] = (float)i;
    }
    pto_tensor *on_device;
    done(pto_tensor_to_device(stream, "f32", shape, 1, row, sizeof row, "row-major", &on_device));
    const pto_program_tensor_argument given[] = {{"row", on_device, 0, 0}};
    pto_program_output output = {"mean", NULL};
    done(pto_program_run(stream, loaded, given, 1, NULL, 0, &output, 1));
    done(pto_tensor_to_host(stream, output.tensor, &mean, sizeof mean));
    printf("the mean is %g\n", (double)mean);

    done(pto_tensor_release(output.tensor));
    done(pto_tensor_release(on_device));
    done(pto_loaded_program_release(loaded));
    done(pto_program_destroy(program));
    done(pto_program_stream_close(stream));
    done(pto_session_close(session));
    return fabsf(mean - 999.0f) < 1e-3f ? 0 : 1;
}
