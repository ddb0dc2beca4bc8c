//! What in a line keeps a program from running here.

/// Words, and what a program that has them needs and does not get.
pub(super) struct UnsupportedUse {
    words: &'static [&'static str],
    pub(super) sentence: &'static str,
}

const fn rule(words: &'static [&'static str], sentence: &'static str) -> UnsupportedUse {
    UnsupportedUse { words, sentence }
}

/// Of Python.
const PYTHON: &[UnsupportedUse] = &[
    rule(
        &[
            "simpler.remote_l3",
            "MpiL3GroupSpec",
            "RemoteWorkerSpec",
            "SceneTestLevel.NETWORK1",
            "level=4",
        ],
        "It needs workers on several hosts, and ours are in one process: use device_ids of one worker of level 3.",
    ),
    rule(
        &[
            "_mailbox_load_i32",
            "_chip_shms",
            "_native_run",
            "_run_slot_with_pipeline_lease",
            "arena_bank_",
            "retained_temp_addr",
            ".pipeline_depth",
            "_OFF_ACCEPTED",
            "._callable_registry",
        ],
        "It looks into the memory of the field's own workers, which ours do not have.",
    ),
    rule(
        &["/proc/self/maps"],
        "It looks for files that the field's runtime maps into the process; ours maps none.",
    ),
    rule(
        &["goldens.qwen3", "goldens.deepseek", "goldens.mx_fp"],
        "It uses a reference of the field's package that ours does not have: put the reference next to the program.",
    ),
    rule(
        &["tools.strace_timing", "tools.critical_path"],
        "It uses a tool of the field's package that ours does not have: use `pto analyze`.",
    ),
];

/// Of C++.
const CXX: &[UnsupportedUse] = &[
    rule(
        &[
            "\"kernel_operator",
            "basic_api/kernel_",
            "\"utils/std/",
            "kernel_vec_intf",
            "kernel_cube_intf",
        ],
        "It includes headers of the vendor's compiler, which the simulator does not have.",
    ),
    rule(
        &["PTO2TaskParam", "PTOBufferHandle", "TensorDescriptor t("],
        "It is of the days until 9 February 2026, before parameters were tensors: use make_tensor, PTOParam and PTO2_ORCHESTRATION of pto_runtime2.h.",
    ),
    rule(
        &["->try_set_aicpu_orch_so("],
        "It gives the AICPU a plug-in that builds the graph: use `python -m pto_runtime.runner`, which runs kernels in plain C++.",
    ),
    rule(
        &["backend/sdma", "backend/urma", "sdma_completion", "urma_completion"],
        "It drives the copy engine of a device.",
    ),
];

/// The rules for a language.
pub(super) fn of(is_python: bool) -> &'static [UnsupportedUse] {
    if is_python { PYTHON } else { CXX }
}

/// The rule that a line breaks; comments break none.
pub(super) fn broken(
    line: &str,
    rules: &'static [UnsupportedUse],
) -> Option<&'static UnsupportedUse> {
    let code = line.trim_start();
    if code.starts_with("//") || code.starts_with("# ") || code.starts_with('*') {
        return None;
    }
    rules.iter().find(|rule| rule.words.iter().any(|word| code.contains(word)))
}

/// The text in quotes after `#include`.
pub(super) fn quoted_include(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("#include")?.trim_start().strip_prefix('"')?;
    rest.split_once('"').map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::{broken, of, quoted_include};

    #[test]
    fn comments_break_no_rule() {
        assert!(broken("from simpler.remote_l3_session import x", of(true)).is_some());
        assert!(broken("# from simpler.remote_l3_session import x", of(true)).is_none());
        assert!(broken("#include \"kernel_operator.h\"", of(false)).is_some());
        assert!(broken("// #include \"kernel_operator.h\"", of(false)).is_none());
        assert!(broken("PTO2TaskParam params[] = {", of(false)).is_some());
        assert!(broken("    runtime->try_set_aicpu_orch_so(bytes, size);", of(false)).is_some());
        assert!(broken("-m simpler_setup.tools.sched_overhead_analysis", of(true)).is_none());
    }

    #[test]
    fn includes_are_read() {
        assert_eq!(quoted_include("  #include \"tensor.h\"  // why"), Some("tensor.h"));
        assert_eq!(quoted_include("#include <cstdint>"), None);
    }
}
