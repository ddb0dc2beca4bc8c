//! Traces made by hand.

/// One AIC, two AIV: tasks 0 and 1 on the AIV, task 2 on the AIC after task 0. Written by hand, from the schema
/// in docs/how-to/timeline.md.
pub(crate) const BY_HAND: &str = r#"{"pto": {
    "schema": "pto-timeline", "version": 3, "run": {"example": "by hand <&>"}, "end_ns": 210,
    "instances": 2, "cores": ["aic", "aiv", "aiv"], "kernels": {"0": "matmul", "1": "add"},
    "lanes": [{"lane": "aicpu 0", "recorded": 9, "dropped": 0}],
    "task_columns": ["func_id", "kind", "core", "scheduler", "added", "published", "ready", "dispatched",
                     "started", "finished", "completed"],
    "tasks": [[1, 1, 1, 1, 0, 0, 0, 10, 20, 120, 130],
              [1, 1, 2, 1, 0, 0, 0, 10, 20, 60, 130],
              [0, 0, 0, 1, 0, 0, 130, 150, 160, 200, 210]],
    "part_columns": ["task", "block", "lane", "run"], "parts": [],
    "edges": [0, 2]}}"#;

/// The same cores: task 0 has two blocks of a kernel on each core.
pub(crate) const WITH_PARTS: &str = r#"{"pto": {
    "schema": "pto-timeline", "version": 3, "run": {"example": "parts"}, "end_ns": 210,
    "instances": 2, "cores": ["aic", "aiv", "aiv"], "kernels": {"0": "matmul", "1": "left", "2": "right"},
    "lanes": [{"lane": "aicpu 0", "recorded": 9, "dropped": 0}],
    "task_columns": ["func_id", "kind", "core", "scheduler", "added", "published", "ready", "dispatched",
                     "started", "finished", "completed"],
    "tasks": [[0, 0, 2, 1, 0, 0, 0, 10, 20, 190, 200]],
    "part_columns": ["task", "block", "lane", "run"],
    "parts": [[0, 0, 0, [0, 0, 0, 1, 0, 0, 0, 10, 20, 90, 95]], [0, 0, 0, [1, 1, 1, 1, 0, 0, 0, 10, 20, 80, 95]],
              [0, 0, 1, [2, 1, 2, 1, 0, 0, 0, 10, 20, 85, 95]], [0, 1, 0, [0, 0, 0, 1, 0, 0, 0, 100, 110, 180, 200]],
              [0, 1, 0, [1, 1, 1, 1, 0, 0, 0, 100, 110, 170, 200]], [0, 1, 1, [2, 1, 2, 1, 0, 0, 0, 100, 110, 190, 200]]],
    "edges": []}}"#;

/// Two tasks near the end of a run of twelve milliseconds.
pub(crate) const LONG: &str = r#"{"pto": {
    "schema": "pto-timeline", "version": 3, "run": {"example": "long"}, "end_ns": 12345678,
    "instances": 1, "cores": ["aic"], "kernels": {"0": "matmul"},
    "lanes": [{"lane": "aicpu 0", "recorded": 9, "dropped": 0}],
    "task_columns": ["func_id", "kind", "core", "scheduler", "added", "published", "ready", "dispatched",
                     "started", "finished", "completed"],
    "tasks": [[0, 0, 0, 0, 0, 0, 0, 10, 20, 40, 50],
              [0, 0, 0, 0, 12345400, 12345400, 12345400, 12345410, 12345420, 12345600, 12345678]],
    "part_columns": ["task", "block", "lane", "run"], "parts": [], "edges": []}}"#;
