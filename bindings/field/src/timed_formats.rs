//! The files of the field's diagnostics that are about time: `chip_swimlane_records.json` and `pmu.csv`.
//!
//! What we do not measure is left out, and never zero: empty looks into ready queues, counters of pipes.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::diary::Diary;
use crate::swimlane::{KernelCall, Phase, Work};

/// Times are in nanoseconds.
const CLOCK_HZ: u64 = 1_000_000_000;

fn kind_name(kind: u8) -> &'static str {
    if kind == 0 { "aic" } else { "aiv" }
}

/// A phase as an object.
fn line(kind: &str, phase: &Phase) -> Value {
    json!({
        "kind": kind, "start_cycles": phase.begin, "end_cycles": phase.end,
        "loop_iter": phase.round, "tasks_processed": phase.count,
    })
}

/// The objects of a phase: some of the field's phases stand within others.
fn lines_of(phase: &Phase) -> Vec<Value> {
    let of_task = |kind: &str| {
        let mut value = line(kind, phase);
        value["task_id"] = phase.task.into();
        value
    };
    match phase.work {
        Work::Complete => vec![line("complete", phase)],
        Work::Resolve => vec![line("resolve", phase)],
        Work::Dispatch => {
            let mut value = line("dispatch", phase);
            value["pop_hit"] = phase.count.into();
            vec![value]
        }
        Work::Drain => {
            let published = Phase { begin: phase.end, ..*phase };
            let inner = [line("drain_prepare", phase), line("drain_publish", &published)];
            std::iter::once(line("drain", phase)).chain(inner).collect()
        }
        Work::Dummy => vec![line("dummy", phase), of_task("dummy_task")],
        Work::Skip => vec![line("dummy", phase), of_task("predicated_skip")],
    }
}

impl Diary {
    /// `chip_swimlane_records.json`. Level 1: which kernel ran when on which core. 2: also its doorbell, and when its scheduler saw its
    /// end. 3: also what the schedulers did. 4: also the submissions. A run that failed has level 1.
    #[must_use]
    pub fn swimlane_json(&self, level: u32) -> String {
        let lane = self.swimlane();
        let level = if lane.schedulers.is_empty() { 1 } else { level.clamp(1, 4) };
        let kinds: Vec<&str> = lane.cores.iter().map(|kind| kind_name(*kind)).collect();
        let mut metadata = json!({
            "clock_freq_hz": CLOCK_HZ, "num_cores": lane.cores.len(), "core_types": kinds,
        });
        let calls = lane.calls.iter().enumerate();
        let ran =
            calls.clone().map(|(at, call)| json!([call.core, call.task, at, call.begin, call.end]));
        let seen = calls.filter_map(|(at, KernelCall { core, seen, .. })| {
            seen.map(|seen| json!([core, at, seen.dispatched, seen.finished]))
        });
        let seen: Vec<Value> = if level >= 2 { seen.collect() } else { Vec::new() };
        let mut value = json!({
            "chip_swimlane_level": level,
            "aicore_tasks": ran.collect::<Vec<Value>>(),
            "aicpu_tasks": seen,
        });
        if level >= 3 {
            let schedulers = lane.core_schedulers().into_iter();
            let threads: Vec<Value> =
                schedulers.map(|one| one.map_or_else(|| json!(-1), |one| json!(one))).collect();
            metadata["core_to_thread"] = threads.into();
            let phases = |list: &Vec<Phase>| list.iter().flat_map(lines_of).collect::<Vec<Value>>();
            value["aicpu_scheduler_phases"] = lane.schedulers.iter().map(phases).collect();
        }
        if level >= 4 {
            let submissions = lane.submissions.iter().enumerate().map(|(at, one)| {
                json!({
                    "submit_idx": at, "task_id": one.task, "start_cycles": one.begin, "end_cycles": one.end,
                })
            });
            value["aicpu_orchestrator_phases"] = json!([submissions.collect::<Vec<Value>>()]);
        }
        value["metadata"] = metadata;
        value.to_string()
    }

    /// `pmu.csv`: a line for each call of a kernel. The simulator counts nothing but time: a cycle is a nanosecond of the run, and
    /// there are no columns of counters.
    #[must_use]
    pub fn pmu_csv(&self, event_type: u32) -> String {
        let mut lines =
            "thread_id,core_id,task_id,func_id,core_type,pmu_total_cycles,event_type\n".to_owned();
        for call in &self.swimlane().calls {
            // Writing to a text does not fail.
            let _ = writeln!(
                lines,
                "{},{},0x{:016x},{},{},{},{event_type}",
                call.seen.map_or(0, |seen| seen.instance),
                call.core,
                call.task,
                call.func_id,
                call.slot.min(1),
                call.end - call.begin
            );
        }
        lines
    }
}
