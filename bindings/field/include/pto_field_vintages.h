// The orchestration interface's earlier names. pto_orchestration_api.h includes this header.
//
//   months of 2026      names
//   February, March     a class of its own for tensors, PTOParam, PTO2Runtime: pto_field_streams.h
//   March to April      pto2_rt_*, LOG_ALWAYS, aicpu_orchestration_entry(args, threads, thread)
//   March to June       ChipStorageTaskArgs, ContinuousTensor, from_tensor_arg, Arg, ArgWithDeps
//   February to July    Tensor (tensor.h); L0 and L2 in names of arguments, dependencies and predicates
//   June to July        aicpu/l3_l2_orch_endpoint.h, aicpu/l3_l2_message_queue.h
//   until July          orchestration_api.h of the host-built runtime, a header of its own
#ifndef PTO_FIELD_VINTAGES_H
#define PTO_FIELD_VINTAGES_H

#include "pto_orchestration_api.h"

using L0TaskArgs = CoreTaskArgs;
using L2TaskArgs = ChipTaskArgs;
using L0TaskPredicate = CoreTaskPredicate;
using L0PredicateOperand = CorePredicateOperand;
template <uint32_t N = 16>
using L0TaskArgsWithDeps = CoreTaskArgsWithDeps<N>;

using ChipStorageTaskArgs = ChipTaskArgs;
using ContinuousTensor = PtoFieldTensorArg;
// In May the arguments themselves held the tasks to wait for.
using Arg = CoreTaskArgsWithDeps<>;
// In the last days of March it still had this name.
using PTOParam = Arg;
template <uint32_t N = 16>
using ArgWithDeps = CoreTaskArgsWithDeps<N>;

inline ChipTensor from_tensor_arg(const PtoFieldTensorArg &arg, bool manual = false, int32_t version = 0) {
    ChipTensor tensor = arg.ref();
    tensor.manual_dep = manual;
    tensor.version = version;
    return tensor;
}

// In March and April a runtime that takes explicit edges alone stood in front of all arguments.
struct PTO2Runtime {
    const void *reserved;
};
struct SubmitResult {
    PTO2TaskId task_id;
    TaskOutputTensors outputs;
};
template <typename Args>
inline SubmitResult pto2_rt_submit_task(PTO2Runtime *, const MixedKernels &kernels, const Args &args, PTO_FIELD_HERE) {
    const TaskOutputTensors outputs = rt_submit_task(kernels, args, file, line);
    return SubmitResult{outputs.task_id(), outputs};
}
template <typename Args>
inline SubmitResult pto2_rt_submit_aic_task(PTO2Runtime *rt, int32_t kernel_id, const Args &args, PTO_FIELD_HERE) {
    return pto2_rt_submit_task(rt, MixedKernels{kernel_id, -1, -1}, args, file, line);
}
template <typename Args>
inline SubmitResult pto2_rt_submit_aiv_task(PTO2Runtime *rt, int32_t kernel_id, const Args &args, PTO_FIELD_HERE) {
    return pto2_rt_submit_task(rt, MixedKernels{-1, kernel_id, -1}, args, file, line);
}
#if defined(PTO_FIELD_EXPLICIT_EDGES)
inline void pto2_rt_add_dependency(PTO2Runtime *, PTO2TaskId producer, PTO2TaskId consumer) { pto_field_graph().add_edge(producer, consumer); }
#endif

// Which arguments are dumped is said by the marks of each task.
inline void enable_dump_tensor_selective() {}

template <typename Args>
inline TaskOutputTensors pto2_rt_submit_task(const MixedKernels &kernels, const Args &args, PTO_FIELD_HERE) {
    return rt_submit_task(kernels, args, file, line);
}
template <typename Args>
inline TaskOutputTensors pto2_rt_submit_aic_task(int32_t kernel_id, const Args &args, PTO_FIELD_HERE) {
    return rt_submit_aic_task(kernel_id, args, file, line);
}
template <typename Args>
inline TaskOutputTensors pto2_rt_submit_aiv_task(int32_t kernel_id, const Args &args, PTO_FIELD_HERE) {
    return rt_submit_aiv_task(kernel_id, args, file, line);
}
// In the last days of April 2026 the submission said that the task completes after its kernel; here the kernel says so (register_completion_condition).
template <typename Args>
inline TaskOutputTensors rt_submit_aiv_task_deferred(int32_t kernel_id, const Args &args, PTO_FIELD_HERE) {
    return rt_submit_aiv_task(kernel_id, args, file, line);
}
template <typename Args>
inline TaskOutputTensors pto2_rt_submit_aiv_task_deferred(int32_t kernel_id, const Args &args, PTO_FIELD_HERE) {
    return rt_submit_aiv_task(kernel_id, args, file, line);
}
inline void pto2_rt_scope_begin(PTO2ScopeMode mode = PTO2ScopeMode::AUTO, PTO_FIELD_HERE) { rt_scope_begin(mode, file, line); }
inline void pto2_rt_scope_end() { rt_scope_end(); }
inline bool pto2_rt_is_fatal() { return rt_is_fatal(); }
#define pto2_rt_report_fatal(...) rt_report_fatal(__VA_ARGS__)
inline void pto2_rt_orchestration_done() {}
inline void rt_orchestration_done() {}

#endif  // PTO_FIELD_VINTAGES_H
