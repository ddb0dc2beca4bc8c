// What a kernel knows of the devices that it works with: one window of memory for each rank.
#ifndef PTO_FIELD_COMM_CONTEXT_H
#define PTO_FIELD_COMM_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

#define COMM_MAX_RANK_NUM 64

struct CommContext {
    uint64_t workSpace;
    uint64_t workSpaceSize;
    uint32_t rankId;
    uint32_t rankNum;
    uint64_t winSize;
    uint64_t windowsIn[64];
    uint64_t windowsOut[64];
};

static_assert(sizeof(CommContext) == 1056, "size of CommContext");
static_assert(offsetof(CommContext, rankId) == 16, "CommContext::rankId");
static_assert(offsetof(CommContext, winSize) == 24, "CommContext::winSize");
static_assert(offsetof(CommContext, windowsIn) == 32, "CommContext::windowsIn");
static_assert(offsetof(CommContext, windowsOut) == 544, "CommContext::windowsOut");

#endif  // PTO_FIELD_COMM_CONTEXT_H
