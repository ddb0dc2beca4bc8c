/* Functions of the PTO Runtime in addition to those of the interface. SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef PTO_PTO_ACL_H
#define PTO_PTO_ACL_H

#include "acl/acl_rt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A kernel: its arguments are 64-bit words; in launches with several blocks, the block context follows them. */
typedef void (*ptoAclKernel)(int64_t *args);

/* Makes a kernel function of a function of the program. cores: 0 cube, 1 vector. */
aclError ptoAclKernelFromFunction(const char *name, ptoAclKernel entry, uint32_t cores, aclrtFuncHandle *function);

/* Says which word of each launch, one of the first twelve, is the nanoseconds that a block takes on a core of the device; 0 there: that is not known. In
   virtual time the block takes them. Call it once, before the first launch. */
aclError ptoAclKernelCostWord(aclrtFuncHandle function, size_t word);

/* Declares the parameters of a kernel: the bytes of each, in their order. aclrtLaunchKernelWithArgsArray needs them. */
aclError ptoAclKernelParameters(aclrtFuncHandle function, const uint32_t *sizes, size_t count);

/* Declares them in the source, next to the kernel: PTO_ACL_PARAMETERS(fill, 8, 8, 8); for three words, PTO_ACL_PARAMETERS(nothing, 0); for
   none. Each parameter begins with a word of 64 bits. Use it outside of functions and name spaces. */
#ifdef __cplusplus
#define PTO_ACL_CONSTANT extern "C" const
#else
#define PTO_ACL_CONSTANT extern const
#endif
#define PTO_ACL_PARAMETERS(kernel, ...)                                                         \
    PTO_ACL_CONSTANT __attribute__((visibility("default"))) uint32_t pto_parameters_##kernel[]; \
    const uint32_t pto_parameters_##kernel[] = {__VA_ARGS__}

/* Launches a kernel with words as its arguments. */
aclError ptoAclLaunch(aclrtFuncHandle function, uint32_t blocks, const uint64_t *words, size_t count, aclrtStream stream);

/* Lets the stream raise an exception of a core in its turn; code 0 is 507015. */
aclError ptoAclLaunchException(aclrtStream stream, aclError code);

/* Binds a size or a symbol of a model, for the runs that are submitted from now on. Sizes take whole numbers, as do symbols
   that are not of type f32; another value is refused. */
aclError ptoAclModelBind(uint32_t model, const char *name, double value);

/* Tells how many runs of models, and of single operators, have ended without a failure on the devices of this process. */
aclError ptoAclModelRuns(uint64_t *runs);

/* The graph compiler in C, for the functions of C++ in libfmk_onnx_parser.so and libacl_op_compiler.so. Options are names and values, `count` of each. A failure
   is explained on standard error as well as by aclGetRecentErrMsg: every node that cannot be built, with its type and the reason. */

/* Takes options of the compiler. */
aclError ptoAclGraphBegin(const char *const *names, const char *const *values, size_t count);

/* Parses an ONNX model in memory. */
aclError ptoAclGraphParse(const void *model, size_t length, const char *const *names, const char *const *values, size_t count, uint64_t *graph);

/* Builds a graph for fixed extents (the option input_shape, as in "x:1,3,48,192;y:2"): a program for aclmdlLoadFromMem, which the caller gives to free(). */
aclError ptoAclGraphBuild(uint64_t graph, const char *const *names, const char *const *values, size_t count, void **program, uint64_t *length);

/* Writes a program to a file, with .om behind its name unless it ends so. */
aclError ptoAclGraphSave(const char *outputFile, const void *model, size_t length);

/* Forgets a graph. */
aclError ptoAclGraphDestroy(uint64_t graph);
/* Bytes of memory of the device that an operator uses. */
typedef struct {
    const void *address;
    size_t bytes;
    uint32_t writes; /* 0: it reads them */
} ptoAclOperand;

/* An operator: a kernel with its words, and the memory that it uses. */
typedef struct {
    aclrtFuncHandle function;
    uint32_t blocks;
    const uint64_t *words;
    size_t wordCount;
    const ptoAclOperand *operands;
    size_t operandCount;
    /* Called in the stream's turn behind the kernel: 0, or the code with which the command fails, and why. It may be null. */
    aclError (*outcome)(void *context, char *text, size_t room);
    /* Called once nothing uses the context any more. It may be null. */
    void (*release)(void *context);
    void *context;
} ptoAclOperator;

/* Launches an operator. Memory that is not live memory of the stream's device is refused. The context is released in every case. */
aclError ptoAclLaunchOperator(const ptoAclOperator *launch, aclrtStream stream);

/* Keeps an error of a library above this one, so that aclGetRecentErrMsg has it. Returns the code. */
aclError ptoAclReport(const char *call, aclError code, const char *text);

#ifdef __cplusplus
}
#endif
#endif
