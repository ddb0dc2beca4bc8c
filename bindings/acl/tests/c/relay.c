/* Two streams that wait for each other again and again, by an event one way and by a notify back. */
#include <stdint.h>

#include "try.h"

enum { TURNS = 2000 };

int main(void) {
    aclrtStream there, back;
    aclrtEvent event;
    aclrtNotify notify;
    TRY(aclInit(NULL));
    TRY(aclrtSetDevice(0));
    TRY(aclrtCreateStream(&there));
    TRY(aclrtCreateStream(&back));
    TRY(aclrtCreateEvent(&event));
    TRY(aclrtCreateNotify(&notify, 0));
    for (int turn = 0; turn < TURNS; turn++) {
        TRY(aclrtRecordEvent(event, there));
        TRY(aclrtStreamWaitEvent(back, event));
        TRY(aclrtRecordNotify(notify, back));
        TRY(aclrtWaitAndResetNotify(notify, there, 0));
    }
    TRY(aclrtSynchronizeStream(there));
    TRY(aclrtSynchronizeStream(back));
    TRY(aclrtDestroyNotify(notify));
    TRY(aclrtDestroyEvent(event));
    TRY(aclrtDestroyStream(there));
    TRY(aclrtDestroyStream(back));
    TRY(aclrtResetDevice(0));
    TRY(aclFinalize());
    printf("relay: ok\n");
    return 0;
}
