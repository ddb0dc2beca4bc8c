/* Kernels, data types, allocators, what is not supported. */
#include "acl/acl_rt_memory_soma.h"
#include "cases.h"

/* A kernel that takes longer than operators may ends with its code. In virtual time a kernel takes the time of its model. */
static void operators_have_limits(aclrtBinHandle binary, aclrtStream stream) {
    const int late = is_virtual ? 0 : 507014;
    aclrtFuncHandle linger;
    uint64_t milliseconds = 300, real = 0;
    OK(aclrtBinaryGetFunction(binary, "linger", &linger));
    OK(aclrtSetOpExecuteTimeOutV2(20000, &real));
    IS(20000, (long)real);
    OK(aclrtLaunchKernelWithHostArgs(linger, 1, stream, NULL, &milliseconds, 8, NULL, 0));
    IS(late, aclrtSynchronizeStream(stream));
    /* The stream goes on, and so do shorter kernels. */
    milliseconds = 0;
    OK(aclrtLaunchKernelWithHostArgs(linger, 1, stream, NULL, &milliseconds, 8, NULL, 0));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtSetOpExecuteTimeOutWithMs(20));
    milliseconds = 300;
    OK(aclrtLaunchKernelWithHostArgs(linger, 1, stream, NULL, &milliseconds, 8, NULL, 0));
    IS(late, aclrtSynchronizeStream(stream));
    OK(aclrtSetOpExecuteTimeOut(60));
    OK(aclrtLaunchKernelWithHostArgs(linger, 1, stream, NULL, &milliseconds, 8, NULL, 0));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtSetOpExecuteTimeOut(0));
}

/* Arguments as an array of pointers: how many there are, and how large, the object of the kernel declares. */
static void arguments_in_arrays(aclrtBinHandle binary, aclrtStream stream, uint64_t *device, size_t bytes) {
    aclrtFuncHandle fill, spread, idle, blocks, unknown;
    aclrtLaunchKernelCfg config = {NULL, 0}, broken = {NULL, 1};
    uint64_t words[3] = {(uintptr_t)device, 3, 77}, result[16];
    void *array[3] = {&words[0], &words[1], &words[2]};
    size_t count = 0, offset = 0, size = 0;
    OK(aclrtBinaryGetFunction(binary, "fill", &fill));
    OK(aclrtBinaryGetFunction(binary, "spread", &spread));
    OK(aclrtBinaryGetFunction(binary, "idle", &idle));
    OK(aclrtBinaryGetFunction(binary, "number_blocks", &blocks));
    OK(aclrtMemset(device, bytes, 0, bytes));
    OK(aclrtLaunchKernelWithArgsArray(fill, 1, stream, NULL, array));
    /* The call has read the arguments when it returns. */
    words[2] = 0;
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtMemcpy(result, sizeof result, device, sizeof result, ACL_MEMCPY_DEVICE_TO_HOST));
    HOLDS(result[0] == 77 && result[2] == 77 && result[3] == 0);
    /* Parameters that are smaller and larger than a word. */
    struct { int32_t count, behind; } elements = {5, -1};
    unsigned char text[20] = "abcdefghijklmnopqrs";
    array[1] = &elements.count, array[2] = text;
    OK(aclrtLaunchKernelWithArgsArray(spread, 1, stream, &config, array));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtMemcpy(result, sizeof result, device, sizeof result, ACL_MEMCPY_DEVICE_TO_HOST));
    HOLDS(result[0] == 'a' && result[4] == 'e' && result[5] == 0);
    OK(aclrtLaunchKernelWithArgsArray(idle, 2, stream, NULL, NULL));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtFunctionGetParamCount(spread, &count));
    IS(3, (long)count);
    OK(aclrtFunctionGetParamCount(idle, &count));
    IS(0, (long)count);
    OK(aclrtFunctionGetParamInfo(spread, 2, &offset, &size));
    HOLDS(offset == 16 && size == 20);
    OK(aclrtFunctionGetParamInfo(spread, 1, NULL, &size));
    IS(4, (long)size);
    OK(aclrtFunctionGetParamInfo(spread, 1, &offset, NULL));
    IS(8, (long)offset);
    IS(VALUE, aclrtFunctionGetParamInfo(spread, 3, &offset, &size));
    IS(ARGUMENT, aclrtFunctionGetParamInfo(spread, 1, NULL, NULL));
    IS(ARGUMENT, aclrtFunctionGetParamCount(spread, NULL));
    IS(ARGUMENT, aclrtFunctionGetParamCount(NULL, &count));
    IS(HANDLE, aclrtFunctionGetParamCount(BAD, &count));
    IS(HANDLE, aclrtFunctionGetParamInfo(BAD, 0, &offset, &size));
    /* What cannot be launched. */
    IS(ARGUMENT, aclrtLaunchKernelWithArgsArray(NULL, 1, stream, NULL, array));
    IS(HANDLE, aclrtLaunchKernelWithArgsArray(BAD, 1, stream, NULL, array));
    IS(HANDLE, aclrtLaunchKernelWithArgsArray(fill, 1, BAD, NULL, array));
    IS(ARGUMENT, aclrtLaunchKernelWithArgsArray(fill, 0, stream, NULL, array));
    IS(ARGUMENT, aclrtLaunchKernelWithArgsArray(fill, 1, stream, &broken, array));
    IS(ARGUMENT, aclrtLaunchKernelWithArgsArray(fill, 1, stream, NULL, NULL));
    array[1] = NULL;
    (void)aclGetRecentErrMsg();
    IS(ARGUMENT, aclrtLaunchKernelWithArgsArray(fill, 1, stream, NULL, array));
    const char *text_of_refusal = aclGetRecentErrMsg();
    HOLDS(text_of_refusal && strstr(text_of_refusal, "arguments[1] is null"));
    /* A kernel that declares nothing. */
    void *target[1] = {&words[0]};
    IS(VALUE, aclrtFunctionGetParamCount(blocks, &count));
    IS(VALUE, aclrtLaunchKernelWithArgsArray(blocks, 2, stream, NULL, target));
    text_of_refusal = aclGetRecentErrMsg();
    HOLDS(text_of_refusal && strstr(text_of_refusal, "PTO_ACL_PARAMETERS(number_blocks"));
    IS(VALUE, aclrtBinaryGetFunction(binary, "wrong", &unknown));
}

void kernel_cases(const char *object) {
    enum { COUNT = 16 };
    aclrtBinHandle binary, second;
    aclrtFuncHandle function, blocks, unknown;
    aclrtArgsHandle arguments;
    aclrtParamHandle parameter, holder;
    aclrtLaunchKernelCfg config = {NULL, 0};
    aclrtPlaceHolderInfo place;
    aclrtStream stream;
    uint64_t *device, *on_device, result[COUNT], words[4];
    void *buffer;
    OK(aclrtCreateStream(&stream));
    OK(aclrtMalloc((void **)&device, sizeof result, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMalloc((void **)&on_device, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    IS(107009, aclrtBinaryLoadFromFile("/no/such/object.o", NULL, &binary));
    IS(100003, aclrtBinaryLoadFromFile("/etc/passwd", NULL, &binary));
    IS(ARGUMENT, aclrtBinaryLoadFromFile(NULL, NULL, &binary));
    OK(aclrtBinaryLoadFromFile(object, NULL, &binary));
    IS(ARGUMENT, aclrtBinaryGetFunction(binary, NULL, &function));
    IS(107042, aclrtBinaryGetFunction(binary, "no_such_kernel", &unknown));
    IS(HANDLE, aclrtBinaryGetFunction(BAD, "fill", &unknown));
    OK(aclrtBinaryGetFunction(binary, "fill", &function));
    rest_of_kernel_cases(binary, function, "fill");
    OK(aclrtBinaryGetFunction(binary, "number_blocks", &blocks));
    IS(100003, aclrtBinaryLoadFromData("text", 4, NULL, &second));
    IS(ARGUMENT, aclrtBinaryLoadFromData("text", 0, NULL, &second));
    /* Arguments of the host. */
    words[0] = (uintptr_t)device, words[1] = COUNT, words[2] = 7;
    OK(aclrtLaunchKernelWithHostArgs(function, 1, stream, &config, words, 24, NULL, 0));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtMemcpy(result, sizeof result, device, sizeof result, ACL_MEMCPY_DEVICE_TO_HOST));
    HOLDS(result[0] == 7 && result[COUNT - 1] == 7);
    IS(HANDLE, aclrtLaunchKernelWithHostArgs(BAD, 1, stream, &config, words, 24, NULL, 0));
    IS(HANDLE, aclrtLaunchKernelWithHostArgs(function, 1, BAD, &config, words, 24, NULL, 0));
    IS(ARGUMENT, aclrtLaunchKernelWithHostArgs(function, 0, stream, &config, words, 24, NULL, 0));
    IS(ARGUMENT, aclrtLaunchKernelWithHostArgs(function, 1, stream, &config, NULL, 24, NULL, 0));
    /* A place holder: the third word becomes the address of the fourth. */
    OK(aclrtBinaryGetFunction(binary, "fill_from", &unknown));
    words[3] = 99;
    place.addrOffset = 16, place.dataOffset = 24;
    OK(aclrtLaunchKernelWithHostArgs(unknown, 1, stream, NULL, words, 32, &place, 1));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtMemcpy(result, sizeof result, device, sizeof result, ACL_MEMCPY_DEVICE_TO_HOST));
    IS(99, result[3]);
    place.addrOffset = 30;
    IS(VALUE, aclrtLaunchKernelWithHostArgs(unknown, 1, stream, NULL, words, 32, &place, 1));
    /* Arguments in memory of the device, which an earlier command writes. */
    words[2] = 21;
    OK(aclrtMemset(on_device, 64, 0, 64));
    OK(aclrtMemcpyAsync(on_device, 64, words, 24, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    OK(aclrtLaunchKernel(function, 1, on_device, 24, stream));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtMemcpy(result, sizeof result, device, sizeof result, ACL_MEMCPY_DEVICE_TO_HOST));
    IS(21, result[5]);
    IS(VALUE, aclrtLaunchKernel(function, 1, words, 24, stream));
    OK(aclrtLaunchKernelV2(function, 1, on_device, 24, &config, stream));
    OK(aclrtSynchronizeStream(stream));
    words[2] = 22;
    OK(aclrtMemcpy((char *)on_device + 12, 24, words, 24, ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclrtLaunchKernel(function, 1, (char *)on_device + 12, 24, stream));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtMemcpy(result, sizeof result, device, sizeof result, ACL_MEMCPY_DEVICE_TO_HOST));
    IS(22, result[5]);
    OK(aclrtMemset(device, sizeof result, 0, sizeof result));
    words[0] = (uintptr_t)device;
    OK(aclrtMemcpy(on_device, 64, words, 8, ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtMemset(device, sizeof result, 0, sizeof result));
    OK(aclrtLaunchKernel(blocks, 4, on_device, 8, stream));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtMemcpy(result, sizeof result, device, sizeof result, ACL_MEMCPY_DEVICE_TO_HOST));
    HOLDS(result[0] == 1 && result[3] == 4 && result[4] == 0);
    /* Arguments step by step. */
    OK(aclrtKernelArgsInit(function, &arguments));
    OK(aclrtKernelArgsAppend(arguments, &device, 8, &parameter));
    words[1] = COUNT;
    OK(aclrtKernelArgsAppend(arguments, &words[1], 8, &parameter));
    words[2] = 5;
    OK(aclrtKernelArgsAppend(arguments, &words[2], 8, &parameter));
    IS(ARGUMENT, aclrtKernelArgsAppend(arguments, &words[2], 0, &parameter));
    IS(VALUE, aclrtLaunchKernelWithConfig(function, 1, stream, &config, arguments, NULL));
    words[2] = 6;
    OK(aclrtKernelArgsParaUpdate(arguments, parameter, &words[2], 8));
    IS(VALUE, aclrtKernelArgsParaUpdate(arguments, parameter, &words[2], 4));
    OK(aclrtKernelArgsFinalize(arguments));
    IS(VALUE, aclrtKernelArgsAppend(arguments, &words[2], 8, &parameter));
    OK(aclrtLaunchKernelWithConfig(function, 1, stream, &config, arguments, NULL));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtMemcpy(result, sizeof result, device, sizeof result, ACL_MEMCPY_DEVICE_TO_HOST));
    IS(6, result[1]);
    IS(ARGUMENT, aclrtLaunchKernelWithConfig(function, 1, stream, &config, arguments, device));
    OK(aclrtKernelArgsInit(unknown, &arguments));
    OK(aclrtKernelArgsAppend(arguments, &device, 8, &parameter));
    OK(aclrtKernelArgsAppend(arguments, &words[1], 8, &parameter));
    OK(aclrtKernelArgsAppendPlaceHolder(arguments, &holder));
    OK(aclrtKernelArgsGetPlaceHolderBuffer(arguments, holder, 8, &buffer));
    *(uint64_t *)buffer = 1234;
    IS(VALUE, aclrtKernelArgsGetPlaceHolderBuffer(arguments, parameter, 8, &buffer));
    OK(aclrtKernelArgsFinalize(arguments));
    OK(aclrtLaunchKernelWithConfig(unknown, 1, stream, NULL, arguments, NULL));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtMemcpy(result, sizeof result, device, sizeof result, ACL_MEMCPY_DEVICE_TO_HOST));
    IS(1234, result[COUNT - 1]);
    arguments_in_arrays(binary, stream, device, sizeof result);
    operators_have_limits(binary, stream);
    OK(aclrtBinaryUnLoad(binary));
    IS(HANDLE, aclrtBinaryUnLoad(binary));
    OK(aclrtFree(device));
    OK(aclrtFree(on_device));
    OK(aclrtDestroyStream(stream));
}

static void *allocate(aclrtAllocator allocator, size_t size) {
    (void)allocator;
    return malloc(size);
}
static void release(aclrtAllocator allocator, aclrtAllocatorBlock block) {
    (void)allocator;
    free(block);
}
static void *address_of(aclrtAllocatorBlock block) { return block; }

void value_cases(void) {
    static const struct { aclDataType type; size_t bytes; } sizes[] = {
        {ACL_FLOAT, 4}, {ACL_FLOAT16, 2}, {ACL_INT8, 1}, {ACL_INT64, 8}, {ACL_DOUBLE, 8}, {ACL_BF16, 2}, {ACL_COMPLEX128, 16},
        {ACL_BOOL, 1}, {ACL_UINT16, 2}, {ACL_DT_UNDEFINED, 0}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) IS((long)sizes[i].bytes, aclDataTypeSize(sizes[i].type));
    static const struct { float wide; aclFloat16 half; } halves[] = {
        {0, 0}, {1, 0x3C00}, {-2, 0xC000}, {65504, 0x7BFF}, {1e6f, 0x7C00}, {0.5f, 0x3800}, {5.9604645e-8f, 1},
        {65519, 0x7BFF}, {65520, 0x7C00}, {1 + 1.0f / 2048, 0x3C00}};
    for (size_t i = 0; i < sizeof halves / sizeof *halves; i++) IS(halves[i].half, aclFloatToFloat16(halves[i].wide));
    int changed = 0;
    for (uint32_t half = 0; half < 0x10000; half++) {
        int is_number = (half & 0x7C00) != 0x7C00 || (half & 0x3FF) == 0;
        changed += is_number && aclFloatToFloat16(aclFloat16ToFloat((aclFloat16)half)) != half;
    }
    IS(0, changed);
    HOLDS(aclFloat16ToFloat(0x3C00) == 1 && aclFloat16ToFloat(0xC000) == -2);
    int bytes[4];
    aclDataBuffer *buffer = aclCreateDataBuffer(bytes, sizeof bytes);
    HOLDS(buffer && aclGetDataBufferAddr(buffer) == bytes);
    IS(16, aclGetDataBufferSizeV2(buffer));
    IS(16, aclGetDataBufferSize(buffer));
    OK(aclUpdateDataBuffer(buffer, bytes, 8));
    IS(8, aclGetDataBufferSizeV2(buffer));
    OK(aclDestroyDataBuffer(buffer));
    IS(ARGUMENT, aclDestroyDataBuffer(NULL));
    HOLDS(aclGetDataBufferAddr(NULL) == NULL);
    /* Allocators of the program. */
    int object;
    aclrtStream stream;
    aclrtAllocatorDesc description = aclrtAllocatorCreateDesc(), found;
    aclrtAllocator allocator;
    aclrtAllocatorAllocFunc take;
    aclrtAllocatorFreeFunc give;
    aclrtAllocatorAllocAdviseFunc advise;
    aclrtAllocatorGetAddrFromBlockFunc where;
    OK(aclrtCreateStream(&stream));
    IS(ARGUMENT, aclrtAllocatorRegister(stream, description));
    OK(aclrtAllocatorSetObjToDesc(description, &object));
    OK(aclrtAllocatorSetAllocFuncToDesc(description, allocate));
    OK(aclrtAllocatorSetFreeFuncToDesc(description, release));
    OK(aclrtAllocatorSetGetAddrFromBlockFuncToDesc(description, address_of));
    IS(ARGUMENT, aclrtAllocatorSetAllocFuncToDesc(description, NULL));
    IS(VALUE, aclrtAllocatorGetByStream(stream, &found, &allocator, &take, &give, &advise, &where));
    OK(aclrtAllocatorRegister(stream, description));
    OK(aclrtAllocatorGetByStream(stream, &found, &allocator, &take, &give, &advise, &where));
    HOLDS(allocator == &object && take == allocate && give == release && where == address_of && advise == NULL);
    OK(aclrtAllocatorUnregister(stream));
    OK(aclrtAllocatorDestroyDesc(description));
    IS(HANDLE, aclrtAllocatorDestroyDesc(description));
    OK(aclrtDestroyStream(stream));
    /* What is not supported says so, with its name. */
    aclrtLabel label;
    (void)aclGetRecentErrMsg();
    IS(UNSUPPORTED, aclrtCreateLabel(&label));
    const char *text = aclGetRecentErrMsg();
    HOLDS(text && strstr(text, "aclrtCreateLabel is not supported"));
    IS(UNSUPPORTED, aclrtMemPoolDestroy(NULL));
    HOLDS(aclrtCreateBinary("x", 1) == NULL);
}
