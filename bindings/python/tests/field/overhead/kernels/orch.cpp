// `tasks` tasks whose kernels do nothing: one behind the other (chain), or on tiles of their own.
#include "pto_orchestration_api.h"

extern "C" void aicpu_orchestration_entry(const ChipTaskArgs &args) {
    const ChipTensor &out = args.tensor(0).ref();
    const uint32_t tasks = static_cast<uint32_t>(args.scalar(0)), tiles = static_cast<uint32_t>(args.scalar(1));
    const uint32_t shape[1] = {16};
    for (uint32_t turn = 0; turn < tasks; turn++) {
        const uint32_t at[1] = {16 * (turn % tiles)};
        const ChipTensor tile = out.view(shape, at);
        CoreTaskArgs task;
        task.add_inout(tile);
        rt_submit_aiv_task(0, task);
    }
}
