#define ACL_PROF_ACL_API 0x0001ULL
#define ACL_PROF_TASK_TIME 0x0002ULL
#define ACL_PROF_AICORE_METRICS 0x0004ULL
#define ACL_PROF_AICPU 0x0008ULL
#define ACL_PROF_L2CACHE 0x0010ULL
#define ACL_PROF_HCCL_TRACE 0x0020ULL
#define ACL_PROF_TRAINING_TRACE 0x0040ULL
#define ACL_PROF_MSPROFTX 0x0080ULL
#define ACL_PROF_RUNTIME_API 0x0100ULL
#define ACL_PROF_GE_API_L0 0x0200ULL
#define ACL_PROF_TASK_TIME_L0 0x0800ULL
#define ACL_PROF_TASK_MEMORY 0x1000ULL
#define ACL_PROF_TASK_TIME_L2 0x2000ULL
#define ACL_PROF_OP_ATTR 0x4000ULL
#define ACL_PROF_TASK_TIME_L3 0x8000ULL
#define ACL_PROF_GE_API_L1 0x01000000ULL

/* Handles are numbers of the library: they are looked up and never followed. */
typedef struct aclprofConfig aclprofConfig;
typedef struct aclprofAicoreEvents aclprofAicoreEvents;
typedef struct aclprofStepInfo aclprofStepInfo;
typedef struct aclprofSubscribeConfig aclprofSubscribeConfig;
typedef uint32_t aclprofConfigType;

#define ACL_PROF_STORAGE_LIMIT 1
#define ACL_PROF_SYS_HARDWARE_MEM_FREQ 3
#define ACL_PROF_LLC_MODE 4
#define ACL_PROF_SYS_IO_FREQ 5
#define ACL_PROF_SYS_INTERCONNECTION_FREQ 6
#define ACL_PROF_DVPP_FREQ 7
#define ACL_PROF_HOST_SYS 8
#define ACL_PROF_HOST_SYS_USAGE 9
#define ACL_PROF_HOST_SYS_USAGE_FREQ 10
#define ACL_PROF_LOW_POWER_FREQ 11
#define ACL_PROF_SYS_MEM_SERVICEFLOW 12
#define ACL_PROF_SYS_CPU_FREQ 13
#define ACL_PROF_OPTYPE 14
#define ACL_PROF_NTS_METRICS 15
#define ACL_PROF_PATH 16

/* A program that has these three structures itself says so. */
#ifndef ACL_PROF_TENSOR_INFO_DEFINED
#define ACL_PROF_TENSOR_INFO_DEFINED
#define ACL_PROF_EVENT_ATTR_VERSION 1
#define ACL_PROF_MESSAGE_TYPE_TENSOR_INFO 0
#define ACL_PROF_TENSOR_DATA_SHAPE_LEN 8

typedef struct aclprofTensor {
    uint32_t type, format, dataType, shapeDim;
    uint32_t shape[ACL_PROF_TENSOR_DATA_SHAPE_LEN];
} aclprofTensor;

/* An operator: its name and type are numbers of aclprofStr2Id. */
typedef struct aclprofTensorInfo {
    uint64_t opNameId, opTypeId;
    uint32_t resv, tensorNum, kernelType, blockNums;
    void *stream;
    aclprofTensor *tensors;
} aclprofTensorInfo;

typedef struct aclprofEventAttributes {
    uint16_t version, size;
    uint32_t messageType;
    union {
        aclprofTensorInfo *tensorInfo;
    } message;
} aclprofEventAttributes;
#endif
