/* A model that is loaded, described and run: `model SOFTMAX.ptop DOUBLES.ptop`, the softmax of 28 rows of 96 elements with the symbol `scale`,
   and a model that leaves its tensors where its size `n` is more than 4. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"
#include "pto_acl.h"

#define FAIL(...) (printf("line %d: ", __LINE__), printf(__VA_ARGS__), printf("; %s\n", message()), exit(1))
#define IS(code, call)                                                          \
    do {                                                                        \
        long found_ = (long)(call);                                             \
        if (found_ != (long)(code)) FAIL("%s: %ld, not %ld", #call, found_, (long)(code)); \
    } while (0)
#define OK(call) IS(0, call)
#define HOLDS(condition) IS(1, (condition) ? 1 : 0)

enum { ROWS = 28, COLUMNS = 96, COUNT = ROWS * COLUMNS, BYTES = 4 * COUNT };

static const char *message(void) {
    const char *text = aclGetRecentErrMsg();
    return text ? text : "no message";
}

static float elements[COUNT], result[COUNT];

/* Compares the result with the softmax of `elements`. */
static void check(double scale) {
    for (int row = 0; row < ROWS; row++) {
        const float *x = elements + row * COLUMNS, *y = result + row * COLUMNS;
        double most = -INFINITY, sum = 0;
        for (int i = 0; i < COLUMNS; i++) most = fmax(most, x[i]);
        for (int i = 0; i < COLUMNS; i++) sum += exp((x[i] - most) * scale);
        for (int i = 0; i < COLUMNS; i++) {
            double wanted = exp((x[i] - most) * scale) / sum;
            if (!(fabs(y[i] - wanted) <= 1e-6 + 1e-5 * wanted)) FAIL("row %d, column %d: %g, not %g", row, i, y[i], wanted);
        }
    }
}

static char *content(const char *path, size_t *bytes) {
    FILE *file = fopen(path, "rb");
    HOLDS(file && fseek(file, 0, SEEK_END) == 0);
    *bytes = (size_t)ftell(file);
    char *text = malloc(*bytes);
    rewind(file);
    HOLDS(text && fread(text, 1, *bytes, file) == *bytes);
    fclose(file);
    return text;
}

static void describe(uint32_t model, const char *path, const void *bytes, size_t count) {
    aclmdlDesc *description = aclmdlCreateDesc();
    aclmdlIODims dims;
    size_t index;
    HOLDS(description);
    IS(0, aclmdlGetNumInputs(description));
    HOLDS(strstr(message(), "call aclmdlGetDesc first"));
    OK(aclmdlGetDesc(description, model));
    IS(1, aclmdlGetNumInputs(description));
    IS(1, aclmdlGetNumOutputs(description));
    const char *name = aclmdlGetInputNameByIndex(description, 0);
    HOLDS(strcmp(name, "X") == 0 && strcmp(aclmdlGetOutputNameByIndex(description, 0), "Y") == 0);
    IS(BYTES, aclmdlGetInputSizeByIndex(description, 0));
    IS(BYTES, aclmdlGetOutputSizeByIndex(description, 0));
    IS(ACL_FLOAT, aclmdlGetInputDataType(description, 0));
    IS(ACL_FORMAT_ND, aclmdlGetOutputFormat(description, 0));
    OK(aclmdlGetInputDims(description, 0, &dims));
    HOLDS(dims.dimCount == 2 && dims.dims[0] == ROWS && dims.dims[1] == COLUMNS && strcmp(dims.name, "X") == 0);
    OK(aclmdlGetCurOutputDims(description, 0, &dims));
    HOLDS(strcmp(dims.name, "Y") == 0);
    OK(aclmdlGetOutputIndexByName(description, "Y", &index));
    IS(0, index);
    IS(100000, aclmdlGetInputIndexByName(description, "Z", &index));
    HOLDS(strstr(message(), "the model has no input Z; it has X"));
    IS(100000, aclmdlGetInputDims(description, 1, &dims));
    HOLDS(strstr(message(), "there is no input 1; the model has 1"));
    IS(100000, aclmdlGetInputDims(description, 0, NULL));
    HOLDS(aclmdlGetInputNameByIndex(description, 7) == NULL);
    OK(aclmdlGetDescFromFile(description, path));
    OK(aclmdlGetDescFromMem(description, bytes, count));
    HOLDS(strcmp(name, "X") == 0);
    OK(aclmdlDestroyDesc(description));
    IS(107017, aclmdlDestroyDesc(description));
}

static aclmdlDataset *set_of(void *address, size_t bytes) {
    aclmdlDataset *set = aclmdlCreateDataset();
    OK(aclmdlAddDatasetBuffer(set, aclCreateDataBuffer(address, bytes)));
    IS(1, aclmdlGetDatasetNumBuffers(set));
    return set;
}

int main(int count, char **arguments) {
    uint32_t model, other, doubles;
    size_t bytes, work, weights;
    float *x, *y;
    void *memory[2];
    aclrtStream stream;
    if (count != 3) FAIL("name two models");
    const char *path = arguments[1];
    char *file = content(path, &bytes);
    OK(aclInit(NULL));
    IS(107002, aclmdlLoadFromFile(path, &model));
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    /* Files that are none. */
    IS(107009, aclmdlLoadFromFile("/no/such/model.ptop", &model));
    IS(100013, aclmdlLoadFromFile("/etc/passwd", &model));
    HOLDS(strstr(message(), "pto program build"));
    IS(100000, aclmdlLoadFromFile(NULL, &model));
    IS(100000, aclmdlLoadFromMem(file, 0, &model));
    IS(100013, aclmdlLoadFromMem(file, bytes - 1, &model));
    IS(100011, aclmdlUnload(4711));
    file[bytes / 2] ^= 1;
    IS(100013, aclmdlLoadFromMem(file, bytes, &model));
    file[bytes / 2] ^= 1;
    OK(aclmdlLoadFromFile(path, &model));
    OK(aclmdlLoadFromMem(file, bytes, &other));
    HOLDS(model != other);
    OK(aclmdlUnload(other));
    IS(100011, aclmdlUnload(other));
    OK(aclmdlQuerySize(path, &work, &weights));
    /* The temporaries M and S have a column of 28 elements each. */
    HOLDS(work >= 2 * 4 * ROWS && weights > 0);
    OK(aclrtMalloc(&memory[0], work, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMalloc(&memory[1], weights, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclmdlLoadFromFileWithMem(path, &other, memory[0], work, memory[1], weights));
    IS(100015, aclmdlLoadFromMemWithMem(file, bytes, &other, memory[0], work - 1, memory[1], weights));
    IS(107000, aclmdlLoadFromFileWithMem(path, &other, elements, sizeof elements, memory[1], weights));
    describe(model, path, file, bytes);
    /* Buffers that are not what the model takes. */
    OK(aclrtMalloc((void **)&x, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMalloc((void **)&y, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    aclmdlDataset *inputs = set_of(x, BYTES), *outputs = set_of(y, BYTES), *none = aclmdlCreateDataset();
    IS(100000, aclmdlExecute(model, NULL, outputs));
    IS(107017, aclmdlExecute(model, outputs, (aclmdlDataset *)stream));
    IS(100017, aclmdlExecute(model, none, outputs));
    HOLDS(strstr(message(), "has an input 0 (X), and the data set has 0 buffers"));
    IS(100018, aclmdlExecute(model, inputs, none));
    aclDataBuffer *buffer = aclmdlGetDatasetBuffer(inputs, 0);
    HOLDS(buffer && aclmdlGetDatasetBuffer(inputs, 1) == NULL);
    OK(aclUpdateDataBuffer(buffer, x, BYTES - 4));
    IS(100017, aclmdlExecute(model, inputs, outputs));
    HOLDS(strstr(message(), "input 0 (X): the buffer has 10748 bytes, and the tensor takes 10752"));
    OK(aclUpdateDataBuffer(buffer, elements, BYTES));
    IS(100017, aclmdlExecute(model, inputs, outputs));
    OK(aclUpdateDataBuffer(buffer, x, BYTES));
    OK(aclmdlAddDatasetBuffer(outputs, buffer));
    IS(100018, aclmdlExecute(model, inputs, outputs));
    HOLDS(strstr(message(), "has 1 outputs, and the data set has 2 buffers"));
    OK(aclmdlDestroyDataset(outputs));
    outputs = set_of(y, BYTES);
    /* A symbol that is not bound, and what no symbol can be. */
    IS(107000, aclmdlExecute(model, inputs, outputs));
    HOLDS(strstr(message(), "the symbol scale is not bound"));
    IS(107000, ptoAclModelBind(model, "factor", 1));
    HOLDS(strstr(message(), "it has [tiles, scale]"));
    IS(107000, ptoAclModelBind(model, "tiles", 1.5));
    OK(ptoAclModelBind(model, "scale", 0.5));
    /* It runs: at once, and in a stream after a copy; with another scale, and from a graph. */
    for (int i = 0; i < COUNT; i++) elements[i] = (float)((i * 37) % 101) / 16;
    OK(aclrtMemcpy(x, BYTES, elements, BYTES, ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclmdlExecute(model, inputs, outputs));
    OK(aclrtMemcpy(result, BYTES, y, BYTES, ACL_MEMCPY_DEVICE_TO_HOST));
    check(0.5);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < COUNT; i++) elements[i] = (float)((i * 37 + round) % 101) / 16;
        OK(ptoAclModelBind(model, "scale", 0.25 + round));
        OK(aclrtMemcpyAsync(x, BYTES, elements, BYTES, ACL_MEMCPY_HOST_TO_DEVICE, stream));
        OK(aclmdlExecuteAsync(model, inputs, outputs, stream));
        OK(aclrtMemcpyAsync(result, BYTES, y, BYTES, ACL_MEMCPY_DEVICE_TO_HOST, stream));
        OK(aclrtSynchronizeStream(stream));
        check(0.25 + round);
    }
    aclmdlRI graph;
    OK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    OK(aclmdlExecuteAsync(model, inputs, outputs, stream));
    OK(aclmdlRICaptureEnd(stream, &graph));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++) elements[i] = (float)((i * 11 + round) % 97) / 32;
        OK(aclrtMemcpy(x, BYTES, elements, BYTES, ACL_MEMCPY_HOST_TO_DEVICE));
        OK(aclmdlRIExecuteAsync(graph, stream));
        OK(aclrtSynchronizeStream(stream));
        OK(aclrtMemcpy(result, BYTES, y, BYTES, ACL_MEMCPY_DEVICE_TO_HOST));
        check(19.25);
    }
    OK(aclmdlRIDestroy(graph));
    /* A fault of the model names the loop, the kernel and the argument; the next run works. */
    OK(aclmdlLoadFromFile(arguments[2], &doubles));
    OK(ptoAclModelBind(doubles, "n", 5));
    IS(507015, aclmdlExecute(doubles, inputs, outputs));
    HOLDS(strstr(message(), "kernel double, argument x, with i = 4: the index is 4, and the dimension has 4 places"));
    OK(aclmdlExecuteAsync(doubles, inputs, outputs, stream));
    IS(507015, aclrtSynchronizeStream(stream));
    HOLDS(strstr(message(), "PLAN_INDEX"));
    OK(ptoAclModelBind(doubles, "n", 4));
    OK(aclmdlExecute(doubles, inputs, outputs));
    OK(aclrtMemcpy(result, BYTES, y, BYTES, ACL_MEMCPY_DEVICE_TO_HOST));
    for (int i = 0; i < 4 * 8 * 64; i++) HOLDS(result[i] == 2 * elements[i]);
    /* A model that is unloaded has still run. */
    OK(aclmdlExecuteAsync(model, inputs, outputs, stream));
    OK(aclmdlUnload(model));
    OK(aclrtSynchronizeStream(stream));
    IS(100011, aclmdlExecute(model, inputs, outputs));
    OK(aclrtResetDevice(0));
    IS(100011, aclmdlUnload(other));
    OK(aclFinalize());
    puts("model: ok");
    free(file);
    return 0;
}
