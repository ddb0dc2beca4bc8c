/* Kernels in tile IR, from text: launched in every way, over several blocks, in a captured graph; what cannot be launched; a kernel that leaves its
   tensor. */
#include "cases.h"

static const char TEXT[] =
    "# Kernels of the conformance suite.\n"
    "kernel scale(x: in f32[8, 64], y: out f32[8, 64], s: f32) {\n"
    "  %0 = load x : f32[8, 64]\n"
    "  %1 = scalar s : f32\n"
    "  %2 = mul %0, %1 by one : f32[8, 64]\n"
    "  store y, %2\n"
    "}\n"
    "kernel shift(x: inout i32[1, 16], near: i8, far: u32) {\n"
    "  %0 = load x : i32[1, 16]\n"
    "  %1 = scalar near : i8\n"
    "  %2 = convert %1 : i32\n"
    "  %3 = add %0, %2 by one : i32[1, 16]\n"
    "  %4 = scalar far : u32\n"
    "  %5 = convert %4 : i32\n"
    "  %6 = add %3, %5 by one : i32[1, 16]\n"
    "  store x, %6\n"
    "}\n"
    "kernel exact(x: inout f64[1, 4], d: f64, h: f16, w: i64) {\n"
    "  %0 = load x : f64[1, 4]\n"
    "  %1 = scalar d : f64\n"
    "  %2 = add %0, %1 by one : f64[1, 4]\n"
    "  %3 = scalar h : f16\n"
    "  %4 = convert %3 : f64\n"
    "  %5 = add %2, %4 by one : f64[1, 4]\n"
    "  %6 = scalar w : i64\n"
    "  %7 = convert %6 : f64\n"
    "  %8 = add %5, %7 by one : f64[1, 4]\n"
    "  store x, %8\n"
    "}\n"
    "kernel product(a: in f32[16, 16], b: in f32[16, 16], c: out f32[16, 16]) {\n"
    "  %0 = load a : f32[16, 16]\n"
    "  %1 = load b : f32[16, 16]\n"
    "  %2 = matmul %0, %1 : f32[16, 16]\n"
    "  store c, %2\n"
    "}\n"
    "kernel beyond(x: in f32[8, 64], y: out f32[8, 64]) {\n"
    "  %0 = load x at [8, 0] : f32[8, 64]\n"
    "  store y, %0\n"
    "}\n";

#define ONE "kernel a(x: inout f32[1, 8]) {\n  %0 = load x : f32[1, 8]\n  store x, %0\n}\n"

enum { BLOCKS = 5, TILE = 8 * 64, COUNT = BLOCKS * TILE, BYTES = 4 * COUNT };

static int says(const char *part) {
    const char *text = aclGetRecentErrMsg();
    int found = text && strstr(text, part);
    if (!found) printf("no \"%s\" in: %s\n", part, text ? text : "no message");
    return found;
}

static float host[COUNT], result[COUNT];

/* The first `count` elements of y are those of x times `factor`, and the others are 0. */
static int is_scaled(const float *y, int count, float factor) {
    int wrong = 0;
    OK(aclrtMemcpy(result, BYTES, y, BYTES, ACL_MEMCPY_DEVICE_TO_HOST));
    for (int i = 0; i < COUNT; i++) wrong += result[i] != (i < count ? host[i] * factor : 0);
    return wrong == 0;
}

/* Files that are none, and names that are not there. */
static aclrtBinHandle load(void) {
    static const char none[] = "kernels are not what this text has", broken[] = "kernel broken(x: in f32[8, 64]) {\n  %0 = nothing x : f32[8, 64]\n}\n",
                      twice[] = ONE ONE, program[] = "PTOPROG\nno more";
    aclrtBinHandle binary = NULL;
    aclrtFuncHandle function;
    size_t count = 0, offset = 0, size = 0;
    char name[16];
    (void)aclGetRecentErrMsg();
    IS(100003, aclrtBinaryLoadFromData(none, sizeof none - 1, NULL, &binary));
    HOLDS(says("no text of tile kernels; pass a shared"));
    IS(100003, aclrtBinaryLoadFromData(broken, sizeof broken - 1, NULL, &binary));
    HOLDS(says("line 2, column"));
    IS(100003, aclrtBinaryLoadFromData(twice, sizeof twice - 1, NULL, &binary));
    HOLDS(says("two kernels `a`"));
    IS(100003, aclrtBinaryLoadFromData(program, sizeof program - 1, NULL, &binary));
    IS(100003, aclrtBinaryLoadFromData(TEXT, sizeof TEXT - 3, NULL, &binary));
    OK(aclrtBinaryLoadFromData(TEXT, sizeof TEXT - 1, NULL, &binary));
    IS(107042, aclrtBinaryGetFunction(binary, "none", &function));
    HOLDS(says("has no tile kernel none; it has [scale, shift, exact, product, beyond]"));
    OK(aclrtBinaryGetFunction(binary, "shift", &function));
    OK(aclrtGetFunctionName(function, sizeof name, name));
    HOLDS(strcmp(name, "shift") == 0);
    OK(aclrtFunctionGetParamCount(function, &count));
    OK(aclrtFunctionGetParamInfo(function, 2, &offset, &size));
    HOLDS(count == 3 && offset == 16 && size == 4);
    OK(aclrtFunctionGetParamInfo(function, 1, NULL, &size));
    IS(1, (long)size);
    return binary;
}

/* One kernel in every way in which a kernel is launched. */
static void every_way(aclrtFuncHandle scale, float *x, float *y, aclrtStream stream) {
    struct { float *x, *y; float s; float unused; } words = {x, y, 2, 0};
    void *array[] = {&words.x, &words.y, &words.s}, *on_device;
    aclrtLaunchKernelCfg config = {NULL, 0};
    aclrtArgsHandle arguments;
    aclrtParamHandle parameter;
    OK(aclrtLaunchKernelWithHostArgs(scale, 1, stream, &config, &words, sizeof words, NULL, 0));
    OK(aclrtSynchronizeStream(stream));
    HOLDS(is_scaled(y, TILE, 2));
    words.s = -0.5f;
    OK(aclrtLaunchKernelWithArgsArray(scale, BLOCKS, stream, NULL, array));
    words.s = 0;
    OK(aclrtSynchronizeStream(stream));
    HOLDS(is_scaled(y, COUNT, -0.5f));
    /* Arguments in memory of the device, which an earlier command writes. */
    words.s = 3;
    OK(aclrtMalloc(&on_device, sizeof words + 8, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMemcpyAsync(on_device, sizeof words, &words, sizeof words, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    OK(aclrtLaunchKernel(scale, BLOCKS, on_device, sizeof words, stream));
    OK(aclrtSynchronizeStream(stream));
    HOLDS(is_scaled(y, COUNT, 3));
    OK(aclrtMemset(y, BYTES, 0, BYTES));
    OK(aclrtLaunchKernelV2(scale, 2, on_device, sizeof words, &config, stream));
    OK(aclrtSynchronizeStream(stream));
    HOLDS(is_scaled(y, 2 * TILE, 3));
    /* Words need not be aligned. */
    char *odd = (char *)on_device + 4;
    OK(aclrtMemcpy(odd, 24, &words, 20, ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclrtMemset(y, BYTES, 0, BYTES));
    OK(aclrtLaunchKernel(scale, 3, odd, 20, stream));
    OK(aclrtSynchronizeStream(stream));
    HOLDS(is_scaled(y, 3 * TILE, 3));
    IS(VALUE, aclrtLaunchKernel(scale, 1, odd, 16, stream));
    IS(ARGUMENT, aclrtLaunchKernel(scale, 0, odd, 20, stream));
    OK(aclrtFree(on_device));
    /* Step by step. A scalar has its own size, or that of a word. */
    OK(aclrtKernelArgsInit(scale, &arguments));
    OK(aclrtKernelArgsAppend(arguments, &x, 8, &parameter));
    OK(aclrtKernelArgsAppend(arguments, &y, 8, &parameter));
    words.s = 7;
    OK(aclrtKernelArgsAppend(arguments, &words.s, 4, &parameter));
    OK(aclrtKernelArgsFinalize(arguments));
    OK(aclrtLaunchKernelWithConfig(scale, BLOCKS, stream, &config, arguments, NULL));
    OK(aclrtSynchronizeStream(stream));
    HOLDS(is_scaled(y, COUNT, 7));
    /* In a graph, after the command that writes its input. */
    aclmdlRI graph;
    words.s = 4;
    OK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    OK(aclrtMemsetAsync(y, BYTES, 0, BYTES, stream));
    OK(aclrtLaunchKernelWithHostArgs(scale, 3, stream, NULL, &words, sizeof words, NULL, 0));
    words.y = NULL;
    IS(VALUE, aclrtLaunchKernelWithHostArgs(scale, 3, stream, NULL, &words, sizeof words, NULL, 0));
    OK(aclmdlRICaptureEnd(stream, &graph));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++) host[i] = (float)(i % 31 + round);
        OK(aclrtMemcpy(x, BYTES, host, BYTES, ACL_MEMCPY_HOST_TO_DEVICE));
        OK(aclmdlRIExecuteAsync(graph, stream));
        OK(aclrtSynchronizeStream(stream));
        HOLDS(is_scaled(y, 3 * TILE, 4));
    }
    OK(aclmdlRIDestroy(graph));
}

/* Scalars of every size, and a product, which is for cube cores. */
static void types(aclrtBinHandle binary, float *memory, aclrtStream stream) {
    aclrtFuncHandle shift, exact, product;
    int32_t numbers[32];
    double wide[4];
    float square[256];
    int wrong = 0;
    OK(aclrtBinaryGetFunction(binary, "shift", &shift));
    OK(aclrtBinaryGetFunction(binary, "exact", &exact));
    OK(aclrtBinaryGetFunction(binary, "product", &product));
    for (int i = 0; i < 32; i++) numbers[i] = 1000 * i;
    OK(aclrtMemcpy(memory, sizeof numbers, numbers, sizeof numbers, ACL_MEMCPY_HOST_TO_DEVICE));
    int8_t near = -3;
    uint32_t far = 4000000000u;
    void *of_shift[] = {&memory, &near, &far};
    OK(aclrtLaunchKernelWithArgsArray(shift, 2, stream, NULL, of_shift));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtMemcpy(numbers, sizeof numbers, memory, sizeof numbers, ACL_MEMCPY_DEVICE_TO_HOST));
    for (int i = 0; i < 32; i++) wrong += numbers[i] != (int32_t)(1000u * (uint32_t)i - 3u + 4000000000u);
    IS(0, wrong);
    for (int i = 0; i < 4; i++) wide[i] = i;
    OK(aclrtMemcpy(memory, sizeof wide, wide, sizeof wide, ACL_MEMCPY_HOST_TO_DEVICE));
    /* No float has these two numbers. */
    double d = 1e-9 + 3;
    int64_t w = -((int64_t)1 << 40) - 1;
    uint16_t h = 0xC100;
    void *of_exact[] = {&memory, &d, &h, &w};
    for (int round = 0; round < 3; round++, d += 0.125) OK(aclrtLaunchKernelWithArgsArray(exact, 1, stream, NULL, of_exact));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtMemcpy(wide, sizeof wide, memory, sizeof wide, ACL_MEMCPY_DEVICE_TO_HOST));
    for (int i = 0; i < 4; i++) {
        double wanted = i;
        for (int round = 0; round < 3; round++) wanted = wanted + (1e-9 + 3 + 0.125 * round) - 2.5 + (double)w;
        wrong += wide[i] != wanted;
    }
    IS(0, wrong);
    for (int i = 0; i < 256; i++) square[i] = (float)(i % 5 - 2);
    OK(aclrtMemcpy(memory, sizeof square, square, sizeof square, ACL_MEMCPY_HOST_TO_DEVICE));
    float *sum = memory + 256, found[256];
    void *of_product[] = {&memory, &memory, &sum};
    OK(aclrtLaunchKernelWithArgsArray(product, 1, stream, NULL, of_product));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtMemcpy(found, sizeof found, sum, sizeof found, ACL_MEMCPY_DEVICE_TO_HOST));
    for (int i = 0; i < 256; i++) {
        float wanted = 0;
        for (int k = 0; k < 16; k++) wanted += square[i / 16 * 16 + k] * square[k * 16 + i % 16];
        wrong += found[i] != wanted;
    }
    IS(0, wrong);
}

/* Arguments that are too many, too few, too large, and no memory of the device. */
static void refused(aclrtFuncHandle scale, float *x, float *y, aclrtStream stream) {
    uint64_t words[5] = {(uintptr_t)x, (uintptr_t)y, 0, 0, 0};
    aclrtArgsHandle arguments;
    aclrtParamHandle parameter;
    aclrtPlaceHolderInfo place = {0, 24};
    IS(VALUE, aclrtLaunchKernelWithHostArgs(scale, 1, stream, NULL, words, 16, NULL, 0));
    HOLDS(says("the kernel scale takes 3 parameters, a word of 8 bytes for each, and 2 words were passed"));
    IS(VALUE, aclrtLaunchKernelWithHostArgs(scale, 1, stream, NULL, words, 32, NULL, 0));
    IS(VALUE, aclrtLaunchKernelWithHostArgs(scale, 1, stream, NULL, words, 0, NULL, 0));
    IS(ARGUMENT, aclrtLaunchKernelWithHostArgs(scale, 0, stream, NULL, words, 24, NULL, 0));
    IS(VALUE, aclrtLaunchKernelWithHostArgs(scale, BLOCKS + 20, stream, NULL, words, 24, NULL, 0));
    HOLDS(says("parameter x of the kernel scale: "));
    IS(VALUE, aclrtLaunchKernelWithHostArgs(scale, 65536, stream, NULL, words, 24, NULL, 0));
    HOLDS(says("65535 at most"));
    words[1] += 2;
    IS(VALUE, aclrtLaunchKernelWithHostArgs(scale, 1, stream, NULL, words, 24, NULL, 0));
    HOLDS(says("parameter y of the kernel scale: 0x"));
    words[1] = (uintptr_t)host;
    IS(VALUE, aclrtLaunchKernelWithHostArgs(scale, 1, stream, NULL, words, 24, NULL, 0));
    HOLDS(says("is not memory of device 0, where the stream is; allocate 2048 bytes"));
    words[1] = UINT64_MAX - 3;
    IS(VALUE, aclrtLaunchKernelWithHostArgs(scale, 1, stream, NULL, words, 24, NULL, 0));
    words[1] = (uintptr_t)y;
    /* An address of the host instead of a tensor. */
    (void)aclGetRecentErrMsg();
    HOLDS(aclrtLaunchKernelWithHostArgs(scale, 1, stream, NULL, words, 32, &place, 1) != 0);
    OK(aclrtKernelArgsInit(scale, &arguments));
    OK(aclrtKernelArgsAppend(arguments, words, 8, &parameter));
    OK(aclrtKernelArgsAppend(arguments, words + 1, 8, &parameter));
    OK(aclrtKernelArgsAppend(arguments, words + 2, 2, &parameter));
    OK(aclrtKernelArgsFinalize(arguments));
    IS(VALUE, aclrtLaunchKernelWithConfig(scale, 1, stream, NULL, arguments, NULL));
    HOLDS(says("parameter 2 of the kernel scale has 4 bytes, and 2 were passed"));
    OK(aclrtKernelArgsInit(scale, &arguments));
    OK(aclrtKernelArgsAppend(arguments, words, 24, &parameter));
    OK(aclrtKernelArgsFinalize(arguments));
    IS(VALUE, aclrtLaunchKernelWithConfig(scale, 1, stream, NULL, arguments, NULL));
    OK(aclrtSynchronizeStream(stream));
}

static aclrtFuncHandle struck;
static uint32_t told_code;
static void on_exception(aclrtExceptionInfo *info) {
    told_code = aclrtGetErrorCodeFromExceptionInfo(info);
    (void)aclrtGetFuncHandleFromExceptionInfo(info, &struck);
}

void tile_cases(void) {
    aclrtFuncHandle scale, beyond;
    aclrtStream stream;
    float *x, *y;
    OK(aclrtCreateStream(&stream));
    OK(aclrtMalloc((void **)&x, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMalloc((void **)&y, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    for (int i = 0; i < COUNT; i++) host[i] = (float)(i % 97) / 4;
    OK(aclrtMemcpy(x, BYTES, host, BYTES, ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclrtMemset(y, BYTES, 0, BYTES));
    aclrtBinHandle binary = load();
    OK(aclrtBinaryGetFunction(binary, "scale", &scale));
    OK(aclrtBinaryGetFunction(binary, "beyond", &beyond));
    every_way(scale, x, y, stream);
    types(binary, y, stream);
    refused(scale, x, y, stream);
    /* A kernel that leaves its tensor: the fault names it, and the stream goes on. */
    float *pair[2] = {x, y};
    OK(aclrtSetExceptionInfoCallback(on_exception));
    OK(aclrtLaunchKernelWithHostArgs(beyond, 1, stream, NULL, pair, sizeof pair, NULL, 0));
    IS(507015, aclrtSynchronizeStream(stream));
    HOLDS(says("beyond"));
    HOLDS(told_code == 507015 && struck == beyond);
    OK(aclrtSetExceptionInfoCallback(NULL));
    struct { float *x, *y; uint64_t s; } words = {x, y, 0x40A00000};
    OK(aclrtMemset(y, BYTES, 0, BYTES));
    OK(aclrtLaunchKernelWithHostArgs(scale, 1, stream, NULL, &words, sizeof words, NULL, 0));
    /* The code is not needed any more by what was submitted. */
    OK(aclrtBinaryUnLoad(binary));
    OK(aclrtSynchronizeStream(stream));
    HOLDS(is_scaled(y, TILE, 5));
    OK(aclrtFree(x));
    OK(aclrtFree(y));
    OK(aclrtDestroyStream(stream));
}
