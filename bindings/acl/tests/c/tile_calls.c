/* Launches of tile kernels that are recorded and made again: with words of the host, with pointers to arguments, with arguments step by step,
   and in a captured graph. Each result is copied to the host, and the record holds it. */
#include <stdio.h>
#include <stdlib.h>

#include "acl/acl.h"
#include "try.h"

static const char TEXT[] =
    "kernel scale(x: in f32[8, 64], y: out f32[8, 64], s: f32) {\n"
    "  %0 = load x : f32[8, 64]\n"
    "  %1 = scalar s : f32\n"
    "  %2 = mul %0, %1 by one : f32[8, 64]\n"
    "  store y, %2\n"
    "}\n";

enum { BLOCKS = 3, COUNT = BLOCKS * 8 * 64, BYTES = 4 * COUNT };

static float host[COUNT], result[COUNT];

static void expect(aclrtStream stream, const float *y, float factor) {
    TRY(aclrtSynchronizeStream(stream));
    TRY(aclrtMemcpy(result, BYTES, y, BYTES, ACL_MEMCPY_DEVICE_TO_HOST));
    for (int i = 0; i < COUNT; i++) {
        if (result[i] != host[i] * factor) {
            printf("element %d is %f\n", i, result[i]);
            exit(1);
        }
    }
}

int main(void) {
    aclrtStream stream;
    aclrtBinHandle binary;
    aclrtFuncHandle scale;
    aclrtArgsHandle arguments;
    aclrtParamHandle parameter;
    aclmdlRI graph;
    struct { float *x, *y; float s; float unused; } words = {NULL, NULL, 2, 0};
    TRY(aclInit(NULL));
    TRY(aclrtSetDevice(0));
    TRY(aclrtCreateStream(&stream));
    TRY(aclrtMalloc((void **)&words.x, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    TRY(aclrtMalloc((void **)&words.y, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    for (int i = 0; i < COUNT; i++) host[i] = (float)(i % 29 - 7);
    TRY(aclrtMemcpy(words.x, BYTES, host, BYTES, ACL_MEMCPY_HOST_TO_DEVICE));
    TRY(aclrtBinaryLoadFromData(TEXT, sizeof TEXT - 1, NULL, &binary));
    TRY(aclrtBinaryGetFunction(binary, "scale", &scale));
    TRY(aclrtLaunchKernelWithHostArgs(scale, BLOCKS, stream, NULL, &words, sizeof words, NULL, 0));
    expect(stream, words.y, 2);
    void *array[] = {&words.x, &words.y, &words.s};
    words.s = -0.5f;
    TRY(aclrtLaunchKernelWithArgsArray(scale, BLOCKS, stream, NULL, array));
    expect(stream, words.y, -0.5f);
    words.s = 7;
    TRY(aclrtKernelArgsInit(scale, &arguments));
    TRY(aclrtKernelArgsAppend(arguments, &words.x, 8, &parameter));
    TRY(aclrtKernelArgsAppend(arguments, &words.y, 8, &parameter));
    TRY(aclrtKernelArgsAppend(arguments, &words.s, 4, &parameter));
    TRY(aclrtKernelArgsFinalize(arguments));
    TRY(aclrtLaunchKernelWithConfig(scale, BLOCKS, stream, NULL, arguments, NULL));
    expect(stream, words.y, 7);
    words.s = 4;
    TRY(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    TRY(aclrtLaunchKernelWithHostArgs(scale, BLOCKS, stream, NULL, &words, sizeof words, NULL, 0));
    TRY(aclmdlRICaptureEnd(stream, &graph));
    for (int round = 1; round < 4; round++) {
        for (int i = 0; i < COUNT; i++) host[i] = (float)(i % 31 + round);
        TRY(aclrtMemcpy(words.x, BYTES, host, BYTES, ACL_MEMCPY_HOST_TO_DEVICE));
        TRY(aclmdlRIExecuteAsync(graph, stream));
        expect(stream, words.y, 4);
    }
    TRY(aclmdlRIDestroy(graph));
    TRY(aclrtBinaryUnLoad(binary));
    TRY(aclrtFree(words.x));
    TRY(aclrtFree(words.y));
    TRY(aclrtDestroyStream(stream));
    TRY(aclrtResetDevice(0));
    TRY(aclFinalize());
    printf("done\n");
    return 0;
}
