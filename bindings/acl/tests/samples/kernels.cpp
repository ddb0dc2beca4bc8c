/* The kernels that the public samples of the vendor's runtime call through functions of the host. The functions have the names and the
   parameters that the samples declare; the kernels are ours. SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>

#include "pto_acl.h"

namespace {

/* The block of a launch in several blocks: the low 24 bits of the word after the arguments. */
uint32_t block_of(const int64_t *args, int count, int64_t blocks) {
    return blocks > 1 ? static_cast<uint32_t>(args[count] & 0xFFFFFF) : 0;
}

void add_one(int64_t *args) {
    auto *x = reinterpret_cast<uint32_t *>(args[0]);
    x[block_of(args, 2, args[1])] += 1;
}

void add_one_later(int64_t *args) {
    /* volatile: the work is to be done. */
    volatile double sum = 0;
    for (int i = 0; i < 20'000'000; i++) sum = sum * 0.5 + 1;
    add_one(args);
}

void write_value(int64_t *args) {
    auto *x = reinterpret_cast<int *>(args[0]);
    x[block_of(args, 3, args[2])] = static_cast<int>(args[1]);
    std::printf("Source data: %d\n", static_cast<int>(args[1]));
}

void read_value(int64_t *args) {
    const auto *x = reinterpret_cast<const int *>(args[0]);
    std::printf("Destination data: %d\n", x[block_of(args, 2, args[1])]);
}

void print(int64_t *) { std::printf("Hello from a kernel\n"); }

void add(int64_t *args) {
    const auto *a = reinterpret_cast<const float *>(args[0]);
    const auto *b = reinterpret_cast<const float *>(args[1]);
    auto *sum = reinterpret_cast<float *>(args[2]);
    /* Every block adds all elements: they write the same. */
    for (int64_t i = 0; i < args[3]; i++) sum[i] = a[i] + b[i];
}

void add_scaled(int64_t *args) {
    const auto *a = reinterpret_cast<const float *>(args[0]);
    const auto *b = reinterpret_cast<const float *>(args[1]);
    auto *sum = reinterpret_cast<float *>(args[2]);
    float alpha;
    std::memcpy(&alpha, &args[3], sizeof alpha);
    for (int64_t i = 0; i < args[4]; i++) sum[i] = a[i] + alpha * b[i];
}

void launch(aclrtFuncHandle &function, const char *name, ptoAclKernel kernel, uint32_t blocks, void *stream,
            std::initializer_list<uint64_t> words) {
    aclError failed = function == nullptr ? ptoAclKernelFromFunction(name, kernel, 1, &function) : ACL_SUCCESS;
    if (failed == ACL_SUCCESS) failed = ptoAclLaunch(function, blocks, words.begin(), words.size(), stream);
    if (failed != ACL_SUCCESS) {
        const char *why = aclGetRecentErrMsg();
        std::printf("[kernel] %s was not launched: %s\n", name, why != nullptr ? why : "");
    }
}

uint64_t word(const void *pointer) { return reinterpret_cast<uint64_t>(pointer); }

aclrtFuncHandle easy, later, writes, reads, prints, adds, scales;

}  // namespace

void EasyOP(uint32_t blocks, void *stream, uint32_t *x) { launch(easy, "easy", add_one, blocks, stream, {word(x), blocks}); }
void ShortOP(uint32_t blocks, void *stream, uint32_t *x) { EasyOP(blocks, stream, x); }
void LongOP(uint32_t blocks, void *stream, uint32_t *x) {
    launch(later, "long", add_one_later, blocks, stream, {word(x), blocks});
}
void ErrorOP(uint32_t, void *stream) { ptoAclLaunchException(stream, ACL_ERROR_RT_VECTOR_CORE_EXCEPTION); }
void WriteDo(uint32_t blocks, void *stream, int *x, int value) {
    launch(writes, "write", write_value, blocks, stream, {word(x), static_cast<uint64_t>(value), blocks});
}
void ReadDo(uint32_t blocks, void *stream, int *x) { launch(reads, "read", read_value, blocks, stream, {word(x), blocks}); }
void PrintDo(uint32_t blocks, void *stream) { launch(prints, "print", print, blocks, stream, {0}); }
void AddDo(uint32_t blocks, void *stream, float *a, float *b, float *sum, uint32_t count) {
    launch(adds, "add", add, blocks, stream, {word(a), word(b), word(sum), count});
}
int32_t VectorAddDo(uint32_t blocks, void *stream, float *a, float *b, float *sum, float alpha, uint32_t count) {
    uint32_t bits;
    std::memcpy(&bits, &alpha, sizeof bits);
    launch(scales, "add scaled", add_scaled, blocks, stream, {word(a), word(b), word(sum), bits, count});
    return 0;
}
