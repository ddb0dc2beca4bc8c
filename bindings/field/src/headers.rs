//! The headers that programs and kernels include, by their paths below the include folder.

/// Path and text of each.
pub const HEADERS: &[(&str, &str)] = &[
    ("pto_orchestration_api.h", include_str!("../include/pto_orchestration_api.h")),
    ("pto_runtime2.h", include_str!("../include/pto_runtime2.h")),
    ("pto_shared_memory.h", include_str!("../include/pto_shared_memory.h")),
    ("pto_field_streams.h", include_str!("../include/pto_field_streams.h")),
    ("pto_arg_with_deps.h", include_str!("../include/pto_arg_with_deps.h")),
    ("pto_field_vintages.h", include_str!("../include/pto_field_vintages.h")),
    ("pto_field_graph.h", include_str!("../include/pto_field_graph.h")),
    ("orchestration_api.h", include_str!("../include/orchestration_api.h")),
    ("task_args.h", include_str!("../include/task_args.h")),
    ("aicpu/l3_l2_orch_endpoint.h", include_str!("../include/aicpu/l3_l2_orch_endpoint.h")),
    ("aicpu/l3_l2_message_queue.h", include_str!("../include/aicpu/l3_l2_message_queue.h")),
    ("pto_field_args.h", include_str!("../include/pto_field_args.h")),
    ("pto_field_codes.h", include_str!("../include/pto_field_codes.h")),
    ("common/platform_config.h", include_str!("../include/common/platform_config.h")),
    ("pto_field_calls.h", include_str!("../include/pto_field_calls.h")),
    ("runtime.h", include_str!("../include/runtime.h")),
    ("tensor.h", include_str!("../include/tensor.h")),
    ("intrinsic.h", include_str!("../include/intrinsic.h")),
    ("pipe_sync.h", include_str!("../include/pipe_sync.h")),
    ("pto_async_kernel_api.h", include_str!("../include/pto_async_kernel_api.h")),
    ("pto_field_prelude.h", include_str!("../include/pto_field_prelude.h")),
    ("pto_field_counters.h", include_str!("../include/pto_field_counters.h")),
    ("platform_comm/comm_context.h", include_str!("../include/platform_comm/comm_context.h")),
    ("aicpu/cache_maintenance.h", include_str!("../include/aicpu/cache_maintenance.h")),
    (
        "aicpu/worker_chip_orch_endpoint.h",
        include_str!("../include/aicpu/worker_chip_orch_endpoint.h"),
    ),
    (
        "aicpu/worker_chip_message_queue.h",
        include_str!("../include/aicpu/worker_chip_message_queue.h"),
    ),
];
