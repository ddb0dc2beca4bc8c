// Orchestrations of the tests: three additions, an exchange between two ranks, an error.
#include "pto_orchestration_api.h"

extern "C" {
// out = (a + b) + (a + b), over a tensor of the runtime's.
void twice_the_sum(const ChipTaskArgs &args) {
    const ChipTensor &a = args.tensor(0).ref(), &b = args.tensor(1).ref(), &out = args.tensor(2).ref();
    uint32_t shape[1] = {a.shapes[0]};
    TensorCreateInfo sum(shape, 1, DataType::FLOAT32);
    CoreTaskArgs first;
    first.add_input(a, b);
    first.add_output(sum);
    TaskOutputTensors made = rt_submit_aiv_task(0, first);
    CoreTaskArgs second;
    second.add_input(made.get_ref(0), made.get_ref(0));
    second.add_output(out);
    rt_submit_aiv_task(0, second);
}

PTO2OrchestrationConfig twice_the_sum_config(const ChipTaskArgs &) { return PTO2OrchestrationConfig{3}; }

void exchange(const ChipTaskArgs &args) {
    CoreTaskArgs task;
    task.add_input(args.tensor(0).ref());
    task.add_output(args.tensor(1).ref());
    task.add_inout(args.tensor(2).ref(), args.tensor(3).ref());
    task.add_scalar(args.scalar(0));
    rt_submit_aiv_task(1, task);
}

void gives_up(const ChipTaskArgs &) { rt_report_fatal(9, "the program gives up after %d steps", 3); }
}
