/* A model that updates its tensor in place, and a copy of another stream that reads it: `in_place MODEL BYTES WAY`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"

int main(int count, char **arguments) {
    uint32_t model;
    aclrtStream stream, other;
    void *memory, *pinned;
    if (count != 4) return 2;
    size_t bytes = strtoul(arguments[2], NULL, 10);
    int code = aclInit(NULL) | aclrtSetDevice(0) | aclrtCreateStream(&stream) | aclrtCreateStream(&other);
    code |= aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST) | aclrtMallocHost(&pinned, bytes);
    code |= aclmdlLoadFromFile(arguments[1], &model) | aclrtMemset(memory, bytes, 0, bytes);
    aclmdlDataset *inputs = aclmdlCreateDataset(), *outputs = aclmdlCreateDataset();
    aclDataBuffer *buffer = aclCreateDataBuffer(memory, bytes);
    code |= aclmdlAddDatasetBuffer(inputs, buffer) | aclmdlExecuteAsync(model, inputs, outputs, stream);
    if (strcmp(arguments[3], "wait") == 0) code |= aclrtSynchronizeStream(stream);
    code |= aclrtMemcpyAsync(pinned, bytes, memory, bytes, ACL_MEMCPY_DEVICE_TO_HOST, other);
    code |= aclrtSynchronizeStream(other) | aclrtSynchronizeStream(stream);
    code |= aclmdlUnload(model) | aclmdlDestroyDataset(inputs) | aclmdlDestroyDataset(outputs) | aclDestroyDataBuffer(buffer);
    code |= aclrtFree(memory) | aclrtFreeHost(pinned) | aclrtDestroyStream(stream) | aclrtDestroyStream(other);
    code |= aclrtResetDevice(0);
    printf("%d\n", code);
    return 0;
}
