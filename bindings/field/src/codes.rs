//! The codes by which programs of the field know what ended a run, and what to do about each.

use std::fmt;

use pto_host::abi::Fault;

macro_rules! codes {
    ($( $number:literal $name:ident: $hint:literal; )+) => {
        /// What ended a run.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct ErrorCode(
            /// Its number.
            pub u32,
        );

        impl ErrorCode {
            $(
                #[doc = $hint]
                pub const $name: Self = Self($number);
            )+

            /// The error's name; `USER_DEFINED` for a program's own code.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self.0 { $($number => stringify!($name),)+ _ => "USER_DEFINED" }
            }

            /// What to do.
            #[must_use]
            pub const fn hint(self) -> &'static str {
                match self.0 { $($number => $hint,)+ _ => "The program reported this code itself." }
            }
        }
    };
}

codes! {
    1 SCOPE_DEADLOCK: "A scope has more tasks than the window holds: close it earlier, or raise ring_task_window.";
    2 HEAP_RING_DEADLOCK: "The tensors of open scopes are larger than the heap: close scopes earlier, or raise ring_heap.";
    3 FLOW_CONTROL_DEADLOCK: "The window is full and nothing in it can complete: look for tasks that wait for later ones, or raise ring_task_window.";
    4 DEP_POOL_OVERFLOW: "The tasks have more edges than the pool holds: raise ring_dep_pool.";
    5 INVALID_ARGS: "Correct the call that the detail names.";
    6 DEPENDENCY_OVERFLOW: "A task waits for more tasks than it can: put a dummy task between them.";
    7 REQUIRE_SYNC_START_INVALID: "A task with sync_start has more blocks than the device has cores: lower its number of blocks.";
    8 TENSOR_WAIT_TIMEOUT: "The element is written by a task that cannot complete before the program goes on: look at what this task waits for.";
    9 EXPLICIT_ORCH_FATAL: "The program reported the error itself.";
    10 SCOPE_TASKS_OVERFLOW: "A scope has too many tasks: close it earlier.";
    11 TENSORMAP_OVERFLOW: "The running tasks have more accesses than the tensor map holds: close scopes earlier.";
    100 SCHEDULER_TIMEOUT: "Tasks did not complete: the report names them.";
    101 ASYNC_COMPLETION_INVALID: "A kernel registered a completion that cannot be: correct its address and counter.";
    102 ASYNC_WAIT_OVERFLOW: "A kernel registered more than 64 completions: register fewer.";
    103 ASYNC_REGISTRATION_FAILED: "A kernel could not register a completion.";
    104 READY_QUEUE_OVERFLOW: "More tasks are ready than the queue holds.";
}

impl ErrorCode {
    /// Whether the scheduler found it, and not the orchestration.
    #[must_use]
    pub const fn is_scheduler(self) -> bool {
        self.0 >= 100 && self.0 <= 104
    }

    /// What a fault of our runtime is by their codes.
    #[must_use]
    pub fn of_fault(fault: Fault) -> Self {
        match fault {
            Fault::STREAM_HEAP_RING => Self::HEAP_RING_DEADLOCK,
            Fault::STREAM_WINDOW_RING | Fault::STREAM_ARGS_RING => Self::FLOW_CONTROL_DEADLOCK,
            Fault::STREAM_EDGES_RING => Self::DEP_POOL_OVERFLOW,
            Fault::STREAM_MAP_RING => Self::TENSORMAP_OVERFLOW,
            Fault::STREAM_SYNC_BLOCKS => Self::REQUIRE_SYNC_START_INVALID,
            Fault::STREAM_WAIT_FOREVER => Self::TENSOR_WAIT_TIMEOUT,
            Fault::BUILD_FANIN_LIMIT => Self::DEPENDENCY_OVERFLOW,
            Fault::STALL_CORE
            | Fault::STALL_READY
            | Fault::STALL_DEADLOCK
            | Fault::STALL_BUILDER
            | Fault::STALL_RUN_BUDGET
            | Fault::STALL_INSTANCE
            | Fault::CORE_EXCEPTION
            | Fault::FW_LOST => Self::SCHEDULER_TIMEOUT,
            _ => Self::INVALID_ARGS,
        }
    }
}

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// By their codes.
    pub code: ErrorCode,
    /// What happened, and where.
    pub detail: String,
    /// What to do.
    pub hint: String,
}

impl FieldError {
    /// An error with the hint of its code.
    #[must_use]
    pub fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), hint: code.hint().to_owned() }
    }

    /// The lines by which their tests know it.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let who = if self.code.is_scheduler() { "sched" } else { "orch" };
        vec![
            format!("{who}_error_code={}", self.code.0),
            format!("error detail: {} ({})", self.code.name(), self.detail),
            format!("error hint: {}", self.hint),
        ]
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "code {} {}: {} {}", self.code.0, self.code.name(), self.detail, self.hint)
    }
}

#[cfg(test)]
mod tests {
    use super::{ErrorCode, FieldError};
    use pto_host::abi::Fault;

    #[test]
    fn faults_have_the_codes_of_the_field() {
        let code = |fault| ErrorCode::of_fault(fault).0;
        assert_eq!(code(Fault::STREAM_HEAP_RING), 2);
        assert_eq!(code(Fault::STREAM_SYNC_BLOCKS), 7);
        assert_eq!(code(Fault::STALL_CORE), 100);
        assert_eq!(code(Fault::CORE_EXCEPTION), 100);
        assert_eq!(code(Fault::STREAM_STALE_TENSOR), 5);
    }

    #[test]
    fn lines_are_those_that_tests_match() {
        let lines = FieldError::new(ErrorCode::SCHEDULER_TIMEOUT, "task 3").lines();
        assert_eq!(lines[0], "sched_error_code=100");
        assert!(lines[1].starts_with("error detail: SCHEDULER_TIMEOUT"));
        assert_eq!(FieldError::new(ErrorCode(42), "").lines()[0], "orch_error_code=42");
        assert_eq!(ErrorCode(42).name(), "USER_DEFINED");
    }
}
