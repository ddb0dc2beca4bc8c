//! Reading callgrind's profile: what each function executed itself, summed by the part of the runtime it belongs to.

use std::collections::BTreeMap;

/// Parts of a task's path, by what their functions' names contain; the first that matches counts.
const PARTS: &[(&str, &[&str])] = &[
    // A program is inlined into its caller: what runs a set's builders, or what builds on the host.
    (
        "graph program",
        &[
            "pto_bench::program",
            "pto_bench::stream",
            "pto_bench::runner::pto",
            "pto_graph::set",
            "BuilderSet>::build",
        ],
    ),
    // A builder's methods with a default are inlined into, and hold, those of the firmware.
    ("streaming builder", &["pto_aicpu_fw::stream", "pto_graph::stream"]),
    ("builder", &["pto_aicpu_fw::builder"]),
    ("loader", &["pto_aicpu_fw::loader", "pto_abi::image"]),
    ("host: image", &["pto_host"]),
    (
        "scheduler",
        &["pto_aicpu_fw::scheduler", "pto_aicpu_fw::ready_queue", "pto_aicpu_fw::fanout"],
    ),
    ("instance: steps", &["pto_aicpu_fw"]),
    ("cores", &["core_port", "worker", "CoreRunner", "pto_aicore_kernels"]),
    ("pool: turns", &["pto_sim_shim::pool"]),
    ("sweep", &["pto_bench::runner::floor"]),
];
/// What none of them has: the thread that waits for the end of the run, and the C library, whose copies have as many
/// instructions as the processor's vectors allow.
pub(super) const REST: &str = "other";

/// The names of the parts, in the order of a task's path.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    PARTS.iter().map(|(name, _)| *name).chain([REST])
}

/// Instructions by part. In a profile, a cost line counts for the function that was named last, unless it follows a
/// `calls=` line: then it is the callee's.
pub(super) fn parts(profile: &str) -> BTreeMap<&'static str, u64> {
    let mut functions: BTreeMap<&str, &'static str> = BTreeMap::new();
    let mut sums = BTreeMap::new();
    let (mut part, mut is_call) = (REST, false);
    for line in profile.lines() {
        // A name follows its number where the number appears first, also of a callee.
        if let Some((key, function)) = line.split_once('=') {
            if matches!(key, "fn" | "cfn") {
                let (number, name) = function.split_once(' ').unwrap_or((function, ""));
                if !name.is_empty() {
                    functions.insert(number, part_of(name));
                }
                if key == "fn" {
                    part = functions.get(number).copied().unwrap_or(REST);
                }
            }
            is_call = key == "calls";
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            let cost = line.split_whitespace().nth(1).and_then(|cost| cost.parse::<u64>().ok());
            if !is_call {
                *sums.entry(part).or_default() += cost.unwrap_or(0);
            }
            is_call = false;
        }
    }
    sums
}

fn part_of(function: &str) -> &'static str {
    let has = |words: &[&str]| words.iter().any(|word| function.contains(word));
    PARTS.iter().find(|(_, words)| has(words)).map_or(REST, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::parts;

    /// Which function a program is inlined into differs from build to build; its cost counts with each of them.
    #[test]
    fn a_program_counts_wherever_it_is_inlined() {
        for name in [
            "pto_bench::program::Job::build",
            "pto_bench::runner::pto::Pto::image",
            "pto_graph::set::set_apart",
            "<pto_bench::stream::Programs as pto_graph::set::BuilderSet>::build_stream",
        ] {
            let profile = format!("events: Ir\n\nfn=(7) {name}\n10 5\n");
            assert_eq!(parts(&profile).into_iter().collect::<Vec<_>>(), [("graph program", 5)]);
        }
    }

    #[test]
    fn costs_belong_to_functions_and_calls_to_callees() {
        let profile = "events: Ir\n\nfl=(1) a.rs\nfn=(7) pto_aicpu_fw::builder::Builder<S>::publish\n10 5\n+1 2\n\
                       cfn=(8) pto_aicpu_fw::scheduler::Scheduler<P>::step\ncalls=1 3\n* 100\n* 1\n\n\
                       fn=(8)\n3 60\nfn=(9) memset\n0 40\ntotals: 108\n";
        let found: Vec<_> = parts(profile).into_iter().collect();
        assert_eq!(found, [("builder", 8), ("other", 40), ("scheduler", 60)]);
    }
}
