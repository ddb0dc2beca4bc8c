// Orchestrations of the tests: three additions, an exchange between two ranks, operations of more ranks, an error.
#include "aicpu/worker_chip_message_queue.h"
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

void collective(const ChipTaskArgs &args) {
    CoreTaskArgs task;
    task.add_input(args.tensor(0).ref());
    task.add_output(args.tensor(1).ref());
    task.add_inout(args.tensor(2).ref(), args.tensor(3).ref());
    task.add_scalar(args.scalar(0), args.scalar(1));
    rt_submit_aiv_task(2, task);
}

void gives_up(const ChipTaskArgs &) { rt_report_fatal(9, "the program gives up after %d steps", 3); }
}

// Sends every message back until it is told to stop, and counts them in the region's counters: kernels have no part in it.
extern "C" void echo(const ChipTaskArgs &args) {
    const WorkerChipOrchRegionDesc region{args.scalar(0), args.scalar(1), args.scalar(2), args.scalar(3), args.scalar(4), args.scalar(5)};
    const WorkerChipQueueArgs sizes{args.scalar(6), args.scalar(7), args.scalar(8), args.scalar(9), args.scalar(10), args.scalar(11)};
    WorkerChipQueueEndpoint<2> queue(region, sizes);
    const uint64_t patience = 30000000000ull;
    WorkerChipQueueInputHandle message;
    while (queue.input().peek(patience, message)) {
        if (message.opcode == WorkerChipQueueOpcode::STOP) {
            queue.input().release(message);
            return;
        }
        WorkerChipQueueOutputReservation answer;
        if (!queue.output().reserve(message.payload_nbytes, patience, answer)) {
            break;
        }
        if (message.payload_nbytes != 0) {
            memcpy(reinterpret_cast<void *>(answer.payload.gm_addr), reinterpret_cast<void *>(message.payload.gm_addr), message.payload_nbytes);
        }
        queue.output().publish(answer, WorkerChipQueueOpcode::DATA);
        queue.input().release(message);
    }
    rt_report_fatal(PTO2_ERROR_EXPLICIT_ORCH_FATAL, "%s: %s", worker_chip_queue_op_to_string(queue.error().op), queue.error().message);
}
