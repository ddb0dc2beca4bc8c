/* Every function of hccl.h, with ranks that are threads of this process (`collectives all N`, `root N`), or of this process and another one (`table FILE RANK`,
   `processes`). `dies`, `root-dies`: the process of rank 1, or of rank 0, ends in the middle. */
#include <hccl/hccl.h>
#include <acl/acl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                                                          \
    do {                                                                                                          \
        if (!(condition)) {                                                                                       \
            const char *why = aclGetRecentErrMsg();                                                               \
            printf("line %d: %s (%s)\n", __LINE__, #condition, why ? why : "");                                   \
            fflush(stdout);                                                                                       \
            _exit(1);                                                                                             \
        }                                                                                                         \
    } while (0)

enum { MOST = 8, COUNT = 5 };
static HcclRootInfo info;
static HcclComm given[MOST];
static const char *table;
static uint32_t ranks;

typedef struct {
    uint32_t rank;
    HcclComm comm;
    aclrtStream stream;
    int32_t *from, *to;
} Rank;

/* The value that a rank has at an index. */
static int32_t value(uint32_t rank, uint32_t at) { return (int32_t)(100 * (rank + 1) + at); }

static void begin(Rank *own) {
    for (uint32_t at = 0; at < MOST * COUNT; at++) own->from[at] = value(own->rank, at), own->to[at] = -1;
}

static int32_t summed(uint32_t at) {
    int32_t all = 0;
    for (uint32_t rank = 0; rank < ranks; rank++) all += value(rank, at);
    return all;
}

#define SYNC() CHECK(aclrtSynchronizeStream(own->stream) == 0)

static void calls(Rank *own) {
    uint32_t rank = own->rank, size = 0, number = 99, last = ranks - 1;
    char name[HCCL_COMM_NAME_LENGTH];
    CHECK(HcclGetRankId(own->comm, &number) == 0 && number == rank);
    CHECK(HcclGetRankSize(own->comm, &size) == 0 && size == ranks);
    CHECK(HcclGetCommName(own->comm, name) == 0 && strlen(name) > 0);

    /* Behind a copy, in front of another one. */
    begin(own);
    int32_t host[COUNT];
    CHECK(aclrtMemcpyAsync(own->to, sizeof host, own->from, sizeof host, ACL_MEMCPY_DEVICE_TO_DEVICE, own->stream) == 0);
    CHECK(HcclAllReduce(own->to, own->to, COUNT, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, own->comm, own->stream) == 0);
    CHECK(aclrtMemcpyAsync(host, sizeof host, own->to, sizeof host, ACL_MEMCPY_DEVICE_TO_HOST, own->stream) == 0);
    SYNC();
    for (uint32_t at = 0; at < COUNT; at++) CHECK(host[at] == summed(at));

    begin(own);
    CHECK(HcclAllReduce(own->from, own->to, COUNT, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_MAX, own->comm, own->stream) == 0);
    CHECK(HcclAllReduce(own->from, own->from, 0, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_MIN, own->comm, own->stream) == 0);
    CHECK(HcclBroadcast(own->from, COUNT, HCCL_DATA_TYPE_INT32, last, own->comm, own->stream) == 0);
    SYNC();
    for (uint32_t at = 0; at < COUNT; at++) CHECK(own->to[at] == value(last, at) && own->from[at] == value(last, at));

    begin(own);
    CHECK(HcclReduce(own->from, own->to, COUNT, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, last, own->comm, own->stream) == 0);
    SYNC();
    for (uint32_t at = 0; at < COUNT; at++) CHECK(own->to[at] == (rank == last ? summed(at) : -1));

    begin(own);
    CHECK(HcclAllGather(own->from, own->to, COUNT, HCCL_DATA_TYPE_INT32, own->comm, own->stream) == 0);
    SYNC();
    for (uint32_t at = 0; at < COUNT * ranks; at++) CHECK(own->to[at] == value(at / COUNT, at % COUNT));

    begin(own);
    CHECK(HcclReduceScatter(own->from, own->to, COUNT, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, own->comm, own->stream) == 0);
    SYNC();
    for (uint32_t at = 0; at < COUNT; at++) CHECK(own->to[at] == summed(rank * COUNT + at));

    begin(own);
    CHECK(HcclScatter(own->from, own->to, COUNT, HCCL_DATA_TYPE_INT32, last, own->comm, own->stream) == 0);
    SYNC();
    for (uint32_t at = 0; at < COUNT; at++) CHECK(own->to[at] == value(last, rank * COUNT + at));

    begin(own);
    CHECK(HcclAlltoAll(own->from, COUNT, HCCL_DATA_TYPE_INT32, own->to, COUNT, HCCL_DATA_TYPE_INT32, own->comm, own->stream) == 0);
    SYNC();
    for (uint32_t at = 0; at < COUNT * ranks; at++) CHECK(own->to[at] == value(at / COUNT, rank * COUNT + at % COUNT));

    /* Rank i sends i + j elements to rank j. */
    uint64_t matrix[MOST * MOST], sends[MOST], at_send[MOST], receives[MOST], at_receive[MOST];
    for (uint32_t peer = 0; peer < ranks; peer++) {
        for (uint32_t other = 0; other < ranks; other++) matrix[peer * ranks + other] = (peer + other) % COUNT;
        sends[peer] = receives[peer] = (rank + peer) % COUNT;
        at_send[peer] = at_receive[peer] = peer * COUNT;
    }
    begin(own);
    CHECK(HcclAlltoAllV(own->from, sends, at_send, HCCL_DATA_TYPE_INT32, own->to, receives, at_receive, HCCL_DATA_TYPE_INT32, own->comm,
                        own->stream) == 0);
    SYNC();
    for (uint32_t at = 0; at < COUNT * ranks; at++) {
        int is_there = at % COUNT < (rank + at / COUNT) % COUNT;
        CHECK(own->to[at] == (is_there ? value(at / COUNT, rank * COUNT + at % COUNT) : -1));
    }
    begin(own);
    CHECK(HcclAlltoAllVC(own->from, matrix, HCCL_DATA_TYPE_INT32, own->to, HCCL_DATA_TYPE_INT32, own->comm, own->stream) == 0);
    SYNC();
    uint32_t to = 0;
    for (uint32_t peer = 0; peer < ranks; peer++) {
        uint32_t first = 0;
        for (uint32_t before = 0; before < rank; before++) first += matrix[peer * ranks + before];
        for (uint32_t at = 0; at < matrix[peer * ranks + rank]; at++) CHECK(own->to[to++] == value(peer, first + at));
    }

    begin(own);
    if (rank == 0) CHECK(HcclSend(own->from, COUNT, HCCL_DATA_TYPE_INT32, 1, own->comm, own->stream) == 0);
    if (rank == 1) CHECK(HcclRecv(own->to, COUNT, HCCL_DATA_TYPE_INT32, 0, own->comm, own->stream) == 0);
    SYNC();
    for (uint32_t at = 0; rank == 1 && at < COUNT; at++) CHECK(own->to[at] == value(0, at));

    begin(own);
    uint32_t next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    HcclSendRecvItem items[2] = {
        {HCCL_SEND, own->from, COUNT, HCCL_DATA_TYPE_INT32, next},
        {HCCL_RECV, own->to, COUNT, HCCL_DATA_TYPE_INT32, before},
    };
    CHECK(HcclBatchSendRecv(items, 2, own->comm, own->stream) == 0);
    CHECK(HcclBarrier(own->comm, own->stream) == 0);
    SYNC();
    for (uint32_t at = 0; at < COUNT; at++) CHECK(own->to[at] == value(before, at));

    /* A capture, of which the graph is executed twice. */
    begin(own);
    aclmdlRI graph;
    CHECK(aclmdlRICaptureBegin(own->stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL) == 0);
    CHECK(HcclAllReduce(own->from, own->from, COUNT, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, own->comm, own->stream) == 0);
    CHECK(aclmdlRICaptureEnd(own->stream, &graph) == 0 && own->from[0] == value(rank, 0));
    for (int time = 0; time < 2; time++) CHECK(aclmdlRIExecuteAsync(graph, own->stream) == 0);
    SYNC();
    for (uint32_t at = 0; at < COUNT; at++) CHECK(own->from[at] == (int32_t)ranks * summed(at));
    CHECK(aclmdlRIDestroy(graph) == 0);

    /* What is refused, before it reaches a stream. */
    int32_t *buf = own->from;
    CHECK(HcclAllReduce(NULL, buf, 1, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, own->comm, own->stream) == HCCL_E_PTR);
    CHECK(strstr(aclGetRecentErrMsg(), "sendBuf is null"));
    CHECK(HcclAllReduce(buf, buf, 1, HCCL_DATA_TYPE_INT128, HCCL_REDUCE_SUM, own->comm, own->stream) == HCCL_E_NOT_SUPPORT);
    CHECK(HcclAllReduce(buf, buf, 1, (HcclDataType)77, HCCL_REDUCE_SUM, own->comm, own->stream) == HCCL_E_PARA);
    CHECK(HcclAllReduce(buf, buf, 1, HCCL_DATA_TYPE_INT32, (HcclReduceOp)9, own->comm, own->stream) == HCCL_E_PARA);
    CHECK(HcclBroadcast(buf, 1, HCCL_DATA_TYPE_INT32, ranks, own->comm, own->stream) == HCCL_E_PARA);
    CHECK(strstr(aclGetRecentErrMsg(), "root is"));
    CHECK(HcclSend(buf, 1, HCCL_DATA_TYPE_INT32, rank, own->comm, own->stream) == HCCL_E_PARA);
    CHECK(HcclBarrier(NULL, own->stream) == HCCL_E_PTR && HcclBarrier((HcclComm)1, own->stream) == HCCL_E_PARA);
    int32_t outside[1];
    CHECK(HcclAllReduce(outside, buf, 1, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, own->comm, own->stream) == HCCL_E_RUNTIME);
    CHECK(strcmp(HcclGetErrorString(HCCL_E_REMOTE), "HCCL_E_REMOTE") == 0);

    /* Ranks that differ fail, with both calls named; the communicator is of use afterwards. */
    HcclResult failed = HCCL_SUCCESS;
    CHECK(HcclGetCommAsyncError(own->comm, &failed) == 0 && failed == HCCL_SUCCESS);
    CHECK(HcclAllReduce(buf, buf, 1 + rank, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, own->comm, own->stream) == 0);
    CHECK(aclrtSynchronizeStream(own->stream) != 0);
    CHECK(HcclGetCommAsyncError(own->comm, &failed) == 0 && failed == HCCL_E_PARA);
}

static void set_up(Rank *own, uint32_t rank) {
    size_t bytes = MOST * COUNT * sizeof(int32_t);
    own->rank = rank;
    CHECK(aclrtSetDevice((int32_t)rank) == 0 && aclrtCreateStream(&own->stream) == 0);
    CHECK(aclrtMalloc((void **)&own->from, bytes, ACL_MEM_MALLOC_NORMAL_ONLY) == 0);
    CHECK(aclrtMalloc((void **)&own->to, bytes, ACL_MEM_MALLOC_NORMAL_ONLY) == 0);
    if (given[rank]) own->comm = given[rank];
    else if (table) CHECK(HcclCommInitClusterInfo(table, rank, &own->comm) == 0);
    else {
        HcclCommConfig config;
        HcclCommConfigInit(&config);
        if (rank % 2) CHECK(HcclCommInitRootInfoConfig(ranks, &info, rank, &config, &own->comm) == 0);
        else CHECK(HcclCommInitRootInfo(ranks, &info, rank, &own->comm) == 0);
    }
}

static void *whole(void *number) {
    Rank own;
    set_up(&own, (uint32_t)(size_t)number);
    calls(&own);
    CHECK(HcclCommDestroy(own.comm) == 0 && HcclCommDestroy(own.comm) == HCCL_E_PARA);
    return NULL;
}

static void threads(uint32_t first, uint32_t end) {
    pthread_t all[MOST];
    for (uint32_t rank = first; rank < end; rank++) CHECK(pthread_create(&all[rank], NULL, whole, (void *)(size_t)rank) == 0);
    for (uint32_t rank = first; rank < end; rank++) pthread_join(all[rank], NULL);
}

int main(int count, char **words) {
    if (count < 3) return 2;
    ranks = (uint32_t)atoi(words[2]);
    const char *how = words[1];
    int pipes[2];
    int is_two = !strcmp(how, "processes") || strstr(how, "dies") || !strcmp(how, "table");
    CHECK(pipe(pipes) == 0);
    pid_t child = is_two ? fork() : 1;
    CHECK(aclInit(NULL) == 0 && aclrtSetDevice(0) == 0);
    if (!strcmp(how, "table")) table = words[3];
    else if (child == 0) CHECK(read(pipes[0], &info, sizeof info) == sizeof info);
    else if (!strcmp(how, "all")) {
        int32_t devices[MOST] = {0, 1, 2, 3, 4, 5, 6, 7};
        CHECK(HcclCommInitAll(ranks, devices, given) == 0);
        devices[1] = 0;
        HcclComm none[2] = {NULL, NULL};
        CHECK(HcclCommInitAll(2, devices, none) == HCCL_E_PARA && !none[0]);
    } else {
        HcclRootInfo none = {{0}};
        HcclComm comm;
        CHECK(HcclCommInitRootInfo(2, &none, 0, &comm) == HCCL_E_PARA && HcclGetRootInfo(NULL) == HCCL_E_PTR);
        CHECK(HcclGetRootInfo(&info) == 0 && HcclCommInitRootInfo(2, &info, 2, &comm) == HCCL_E_PARA);
        CHECK(write(pipes[1], &info, sizeof info) == sizeof info);
    }
    if (strstr(how, "dies")) {
        Rank me, *own = &me;
        set_up(own, child == 0 ? 1 : 0);
        CHECK(HcclBarrier(own->comm, own->stream) == 0);
        SYNC();
        if ((child == 0) == !strcmp(how, "dies")) raise(SIGKILL);
        CHECK(HcclBarrier(own->comm, own->stream) == 0 && aclrtSynchronizeStream(own->stream) != 0);
        HcclResult failed = HCCL_SUCCESS;
        CHECK(HcclGetCommAsyncError(own->comm, &failed) == 0 && failed == HCCL_E_REMOTE);
        printf("%s\n", aclGetRecentErrMsg());
        return 0;
    }
    threads(is_two && child == 0 ? 1 : 0, is_two && child != 0 ? 1 : ranks);
    if (child == 0) return 0;
    int status = 0;
    if (is_two) CHECK(waitpid(child, &status, 0) == child && status == 0);
    printf("%u ranks, every function\n", ranks);
    return 0;
}
