/* Operators through their two functions: results, views, in place, streams, capture, and what is refused. With the argument `time` it prints what a call costs the host. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "acl/acl.h"

typedef struct aclTensor aclTensor;
typedef struct aclScalar aclScalar;
typedef struct aclIntArray aclIntArray;
typedef struct aclTensorList aclTensorList;
typedef struct aclOpExecutor aclOpExecutor;

aclTensor *aclCreateTensor(const int64_t *, uint64_t, aclDataType, const int64_t *, int64_t, aclFormat, const int64_t *, uint64_t, void *);
aclScalar *aclCreateScalar(void *, aclDataType);
aclIntArray *aclCreateIntArray(const int64_t *, uint64_t);
aclTensorList *aclCreateTensorList(const aclTensor *const *, uint64_t);
int aclDestroyTensor(const aclTensor *);
int aclDestroyScalar(const aclScalar *);
int aclDestroyIntArray(const aclIntArray *);
int aclDestroyTensorList(const aclTensorList *);
int aclGetViewShape(const aclTensor *, int64_t **, uint64_t *);
int aclGetDataType(const aclTensor *, aclDataType *);
int aclDestroyAclOpExecutor(aclOpExecutor *);

/* An operator: its two functions, the first one with these parameters in front. */
#define OPERATOR(name, ...)                                                             \
    int aclnn##name##GetWorkspaceSize(__VA_ARGS__, uint64_t *size, aclOpExecutor **executor); \
    int aclnn##name(void *workspace, uint64_t size, aclOpExecutor *executor, aclrtStream stream)

OPERATOR(Add, const aclTensor *, const aclTensor *, const aclScalar *, aclTensor *);
OPERATOR(InplaceAdd, aclTensor *, const aclTensor *, const aclScalar *);
OPERATOR(Muls, const aclTensor *, const aclScalar *, aclTensor *);
OPERATOR(Exp, const aclTensor *, aclTensor *);
OPERATOR(GtScalar, const aclTensor *, const aclScalar *, aclTensor *);
OPERATOR(ReduceSum, const aclTensor *, const aclIntArray *, bool, aclDataType, aclTensor *);
OPERATOR(Permute, const aclTensor *, const aclIntArray *, aclTensor *);
OPERATOR(Cat, const aclTensorList *, int64_t, aclTensor *);
OPERATOR(Matmul, const aclTensor *, const aclTensor *, aclTensor *, int8_t);
OPERATOR(Sort, const aclTensor *, bool, int64_t, bool, aclTensor *, aclTensor *);
OPERATOR(IndexSelect, const aclTensor *, int64_t, const aclTensor *, aclTensor *);
OPERATOR(Cast, const aclTensor *, aclDataType, aclTensor *);
OPERATOR(InplaceFillScalar, aclTensor *, const aclScalar *);
OPERATOR(InplaceUniform, aclTensor *, double, double, uint64_t, uint64_t);

static int cases, failed;
static aclrtStream stream;

static void expect(int holds, int line, const char *what) {
    cases++;
    if (!holds) {
        failed++;
        const char *why = aclGetRecentErrMsg();
        printf("line %d: %s (%s)\n", line, what, why ? why : "no message");
    }
}
#define EXPECT(holds) expect((holds) != 0, __LINE__, #holds)

/* The two calls. */
#define RUN(name, ...)                                                                  \
    do {                                                                                \
        uint64_t size_ = 1;                                                             \
        aclOpExecutor *executor_ = NULL;                                                \
        EXPECT(aclnn##name##GetWorkspaceSize(__VA_ARGS__, &size_, &executor_) == 0 && size_ == 0); \
        EXPECT(aclnn##name(NULL, size_, executor_, stream) == 0);                       \
    } while (0)

/* A first call that is refused, with a code and words of the message. */
#define REFUSED(code, words, name, ...)                                                 \
    do {                                                                                \
        uint64_t size_ = 0;                                                             \
        aclOpExecutor *executor_ = NULL;                                                \
        int found_ = aclnn##name##GetWorkspaceSize(__VA_ARGS__, &size_, &executor_);    \
        const char *said_ = aclGetRecentErrMsg();                                       \
        EXPECT(found_ == (code));                                                       \
        EXPECT(said_ && strstr(said_, "aclnn" #name "GetWorkspaceSize") && strstr(said_, words)); \
        if (said_ && !strstr(said_, words)) printf("  said: %s\n", said_);              \
    } while (0)

static void *device(const void *from, size_t bytes) {
    void *memory = NULL;
    EXPECT(aclrtMalloc(&memory, bytes ? bytes : 1, ACL_MEM_MALLOC_HUGE_FIRST) == 0);
    EXPECT(aclrtMemcpy(memory, bytes, from, bytes, ACL_MEMCPY_HOST_TO_DEVICE) == 0);
    return memory;
}

static aclTensor *matrix(void *memory, aclDataType type, int64_t rows, int64_t columns) {
    int64_t shape[2] = {rows, columns}, strides[2] = {columns, 1};
    return aclCreateTensor(shape, 2, type, strides, 0, ACL_FORMAT_ND, shape, 2, memory);
}

static aclTensor *vector(void *memory, aclDataType type, int64_t count) {
    int64_t one = 1;
    return aclCreateTensor(&count, 1, type, &one, 0, ACL_FORMAT_ND, &count, 1, memory);
}

static void host(void *to, const void *from, size_t bytes) {
    EXPECT(aclrtSynchronizeStream(stream) == 0);
    EXPECT(aclrtMemcpy(to, bytes, from, bytes, ACL_MEMCPY_DEVICE_TO_HOST) == 0);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* What the two calls cost the host for a small operator: the least of many rounds, in ns. */
static void measure(aclTensor *a, aclTensor *b, aclScalar *one, aclTensor *out) {
    enum { ROUNDS = 200, CALLS = 128 };
    double first = 1e9, second = 1e9, whole = 1e9;
    static aclOpExecutor *executors[CALLS];
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t size;
        double start = seconds();
        for (int at = 0; at < CALLS; at++) aclnnAddGetWorkspaceSize(a, b, one, out, &size, &executors[at]);
        double middle = seconds();
        for (int at = 0; at < CALLS; at++) aclnnAdd(NULL, 0, executors[at], stream);
        double end = seconds();
        aclrtSynchronizeStream(stream);
        double over = seconds();
        first = fmin(first, (middle - start) / CALLS);
        second = fmin(second, (end - middle) / CALLS);
        whole = fmin(whole, (over - start) / CALLS);
    }
    printf("a small operator: %.0f ns to prepare, %.0f ns to enqueue, %.0f ns until it is over\n", 1e9 * first, 1e9 * second, 1e9 * whole);
}

int main(int count, char **words) {
    EXPECT(aclInit(NULL) == 0);
    EXPECT(aclrtSetDevice(0) == 0);
    EXPECT(aclrtCreateStream(&stream) == 0);
    float values[6] = {1, 2, 3, 4, 5, 6}, found[12] = {0}, one_value = 1, two_value = 2;
    int64_t indices[2] = {1, 0}, wrong[1] = {7}, order[6];
    void *a_memory = device(values, sizeof values), *b_memory = device(values, sizeof values), *out_memory = device(found, sizeof found);
    void *index_memory = device(indices, sizeof indices), *wrong_memory = device(wrong, sizeof wrong), *order_memory = device(found, sizeof order);
    aclTensor *a = matrix(a_memory, ACL_FLOAT, 2, 3), *b = matrix(b_memory, ACL_FLOAT, 2, 3), *out = matrix(out_memory, ACL_FLOAT, 2, 3);
    aclScalar *one = aclCreateScalar(&one_value, ACL_FLOAT), *two = aclCreateScalar(&two_value, ACL_FLOAT);

    if (count > 1 && strcmp(words[1], "time") == 0) {
        measure(a, b, one, out);
        return failed != 0;
    }

    if (count > 1 && strcmp(words[1], "fault") == 0) {
        RUN(Add, a, b, two, out);
        RUN(Muls, out, two, out);
        EXPECT(aclrtSynchronizeStream(stream) == 507015);
        puts(aclGetRecentErrMsg());
        return failed != 0;
    }

    /* Elementwise, and what is between: the stream keeps the order. */
    RUN(Add, a, b, two, out);
    RUN(Muls, out, two, out);
    host(found, out_memory, sizeof values);
    for (int at = 0; at < 6; at++) EXPECT(found[at] == 6 * values[at]);
    RUN(InplaceFillScalar, out, two);
    RUN(InplaceAdd, out, a, one);
    host(found, out_memory, sizeof values);
    for (int at = 0; at < 6; at++) EXPECT(found[at] == values[at] + 2);
    RUN(Exp, a, out);
    host(found, out_memory, sizeof values);
    for (int at = 0; at < 6; at++) EXPECT(fabsf(found[at] - expf(values[at])) <= 1e-6f * expf(values[at]));

    /* A view: columns of the matrix, read with strides, and written so. */
    int64_t turned[2] = {3, 2}, strides[2] = {1, 3};
    aclTensor *view = aclCreateTensor(turned, 2, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, turned, 2, a_memory);
    aclTensor *tall = matrix(out_memory, ACL_FLOAT, 3, 2);
    RUN(Muls, view, one, tall);
    host(found, out_memory, sizeof values);
    for (int at = 0; at < 6; at++) EXPECT(found[at] == values[at % 2 * 3 + at / 2]);
    aclTensor *turned_out = aclCreateTensor(turned, 2, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, turned, 2, out_memory);
    RUN(Muls, view, two, turned_out);
    host(found, out_memory, sizeof values);
    for (int at = 0; at < 6; at++) EXPECT(found[at] == 2 * values[at]);

    /* Comparisons, reductions, maps, products, sorts. */
    aclTensor *truths = matrix(out_memory, ACL_BOOL, 2, 3);
    RUN(GtScalar, a, two, truths);
    host(found, out_memory, 6);
    EXPECT(memcmp(found, (unsigned char[6]){0, 0, 1, 1, 1, 1}, 6) == 0);
    int64_t axis = 1, swapped[2] = {1, 0};
    aclIntArray *axes = aclCreateIntArray(&axis, 1), *turn = aclCreateIntArray(swapped, 2);
    aclTensor *sums = vector(out_memory, ACL_FLOAT, 2);
    RUN(ReduceSum, a, axes, false, ACL_FLOAT, sums);
    host(found, out_memory, 8);
    EXPECT(found[0] == 6 && found[1] == 15);
    RUN(Permute, a, turn, tall);
    host(found, out_memory, sizeof values);
    EXPECT(found[1] == 4 && found[2] == 2);
    RUN(Permute, b, turn, tall);
    aclTensor *square_out = matrix(order_memory, ACL_FLOAT, 2, 2);
    RUN(Matmul, a, tall, square_out, 0);
    host(found, order_memory, 16);
    EXPECT(found[0] == 14 && found[1] == 32 && found[3] == 77);
    aclTensor *both[2] = {matrix(a_memory, ACL_FLOAT, 2, 3), matrix(b_memory, ACL_FLOAT, 2, 3)};
    aclTensorList *list = aclCreateTensorList((const aclTensor *const *)both, 2);
    aclTensor *four = matrix(out_memory, ACL_FLOAT, 4, 3);
    RUN(Cat, list, 0, four);
    host(found, out_memory, sizeof found);
    EXPECT(found[6] == 1 && found[11] == 6);
    aclTensor *places = matrix(order_memory, ACL_INT64, 2, 3);
    RUN(Sort, a, true, 1, true, out, places);
    host(order, order_memory, sizeof order);
    EXPECT(order[0] == 2 && order[5] == 0);
    aclTensor *index = vector(index_memory, ACL_INT64, 2);
    RUN(IndexSelect, a, 0, index, out);
    host(found, out_memory, sizeof values);
    EXPECT(found[0] == 4 && found[5] == 3);
    aclTensor *whole = matrix(order_memory, ACL_INT64, 2, 3);
    RUN(Cast, a, ACL_INT64, whole);
    host(order, order_memory, sizeof order);
    EXPECT(order[5] == 6);
    RUN(InplaceUniform, out, 2.0, 5.0, 7, 0);
    host(found, out_memory, sizeof values);
    for (int at = 0; at < 6; at++) EXPECT(found[at] >= 2 && found[at] < 5);

    /* A captured graph runs the operators again. */
    aclmdlRI graph = NULL;
    EXPECT(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL) == 0);
    RUN(InplaceAdd, out, a, one);
    EXPECT(aclmdlRICaptureEnd(stream, &graph) == 0);
    RUN(InplaceFillScalar, out, two);
    for (int round = 0; round < 3; round++) EXPECT(aclmdlRIExecuteAsync(graph, stream) == 0);
    host(found, out_memory, sizeof values);
    for (int at = 0; at < 6; at++) EXPECT(found[at] == 2 + 3 * values[at]);
    EXPECT(aclmdlRIDestroy(graph) == 0);

    /* What a tensor says of itself. */
    int64_t *shape = NULL;
    uint64_t rank = 0;
    aclDataType type = ACL_DT_UNDEFINED;
    EXPECT(aclGetViewShape(a, &shape, &rank) == 0 && rank == 2 && shape[1] == 3);
    free(shape);
    EXPECT(aclGetDataType(a, &type) == 0 && type == ACL_FLOAT);
    EXPECT(aclGetDataType(NULL, &type) == 161001);

    /* Refused: nulls, extents, types, attributes, handles that are gone, memory of the host. */
    REFUSED(161001, "other is null", Add, a, NULL, one, out);
    REFUSED(161001, "out is null", Exp, a, NULL);
    REFUSED(161002, "out has the extents [3, 2]", Add, a, b, one, tall);
    REFUSED(161002, "do not broadcast", Add, a, tall, one, out);
    REFUSED(161002, "attribute axes: is 5", ReduceSum, a, (axis = 5, aclCreateIntArray(&axis, 1)), false, ACL_FLOAT, sums);
    REFUSED(161002, "data type 13", Cast, a, ACL_STRING, whole);
    REFUSED(161002, "out is f32, and the result complex64", Exp, matrix((void *)values, ACL_COMPLEX64, 2, 3), out);
    aclTensor *gone = vector(a_memory, ACL_FLOAT, 6);
    EXPECT(aclDestroyTensor(gone) == 0 && aclDestroyTensor(gone) == 161002);
    REFUSED(161002, "was destroyed", Exp, gone, out);
    REFUSED(161002, "is no tensor", Exp, (const aclTensor *)values, out);
    uint64_t size = 0;
    aclOpExecutor *executor = NULL;
    EXPECT(aclnnExpGetWorkspaceSize(a, out, NULL, &executor) == 161001);
    EXPECT(aclnnExp(NULL, 0, NULL, stream) == 161001);
    EXPECT(aclnnExpGetWorkspaceSize(a, out, &size, &executor) == 0);
    EXPECT(aclnnAdd(NULL, 0, executor, stream) == 161002);
    aclTensor *of_host = matrix(values, ACL_FLOAT, 2, 3);
    EXPECT(aclnnExpGetWorkspaceSize(of_host, out, &size, &executor) == 0);
    EXPECT(aclnnExp(NULL, 0, executor, stream) == 361001);
    EXPECT(strstr(aclGetRecentErrMsg(), "not memory of device"));
    EXPECT(aclnnExpGetWorkspaceSize(a, out, &size, &executor) == 0 && aclDestroyAclOpExecutor(executor) == 0);
    EXPECT(aclnnExp(NULL, 0, executor, stream) == 161002);

    /* An index that stands for no element is told by the stream, with the operator's rule; the stream goes on. */
    aclTensor *row = matrix(out_memory, ACL_FLOAT, 1, 3), *bad = vector(wrong_memory, ACL_INT64, 1);
    RUN(IndexSelect, a, 0, bad, row);
    EXPECT(aclrtSynchronizeStream(stream) == 507015);
    const char *said = aclGetRecentErrMsg();
    EXPECT(said && strstr(said, "aclnnIndexSelect: operator Gather, input 1 (indices): the index is 7, and there are 2 elements"));
    RUN(Exp, a, out);
    EXPECT(aclrtSynchronizeStream(stream) == 0);

    EXPECT(aclDestroyTensorList(list) == 0 && aclDestroyIntArray(axes) == 0 && aclDestroyScalar(one) == 0);
    EXPECT(aclrtDestroyStream(stream) == 0 && aclFinalize() == 0);
    printf("%d cases, %d failed\n", cases, failed);
    return failed != 0;
}
