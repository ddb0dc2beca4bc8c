//! The files of the field's diagnostics that are about time: `chip_swimlane_records.json` and `pmu.csv`.
//!
//! What we do not measure is left out, and never zero: empty looks into ready queues. In `pmu.csv` a counter that is not known is an empty cell,
//! and the notes next to the file say why.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::counters::{Pipe, cycles_of_ns};
use crate::run_log::RunLog;
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

/// The objects of a phase: some of the field's phases lie within others.
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

impl RunLog {
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

    /// `pmu.csv`: a line for each call of a kernel, with the counters of the field's group 2. Pipes are busy as long as the instructions that the kernel
    /// reported take on the device; the total is the time of the run. All are cycles at 1.85 GHz. An empty cell: it is not known, and
    /// [`pmu_notes`](Self::pmu_notes) says why.
    #[must_use]
    pub fn pmu_csv(&self, architecture: Architecture) -> String {
        let columns = architecture.columns();
        let mut text = "thread_id,core_id,task_id,func_id,core_type,pmu_total_cycles".to_owned();
        for (name, _) in columns {
            // Writing to a text does not fail.
            let _ = write!(text, ",{name}");
        }
        text.push_str(",event_type\n");
        for call in &self.swimlane().calls {
            let KernelCall { core, task, func_id, slot, .. } = call;
            let total = cycles_of_ns(call.end - call.begin);
            let thread = call.seen.map_or(0, |seen| seen.instance);
            let kind = slot.min(&1);
            let _ = write!(text, "{thread},{core},0x{task:016x},{func_id},{kind},{total}");
            for (_, pipe) in columns {
                text.push(',');
                if let Some((pipe, pipes)) = pipe.zip(call.pipes) {
                    let _ = write!(text, "{}", pipes.of(pipe));
                }
            }
            let _ = writeln!(text, ",{PIPE_UTILIZATION}");
        }
        text
    }

    /// What the counters of `pmu.csv` mean here, and which are not known: a sentence each.
    #[must_use]
    pub fn pmu_notes(&self, architecture: Architecture) -> Vec<String> {
        let mut notes = vec![
            "Busy cycles are what the tile instructions of the kernel take on the device by the cost model of a2a3 at 1.85 GHz: no counter of a device was read."
                .to_owned(),
            "pmu_total_cycles is the time of the call in the run, at the same clock: in virtual time it is virtual, and otherwise that of the simulator, so that a share of it says little."
                .to_owned(),
        ];
        let unknown: Vec<&str> = architecture
            .columns()
            .iter()
            .filter_map(|(name, pipe)| pipe.is_none().then_some(*name))
            .collect();
        notes.push(format!(
            "{} are empty: the simulator has no scalar unit and no cache of instructions.",
            unknown.join(", ")
        ));
        if architecture == Architecture::A2a3 {
            notes.push(
                "What the matrix unit writes to global memory has no column in this group of a2a3."
                    .to_owned(),
            );
        }
        let mut silent: Vec<i32> = self
            .swimlane()
            .calls
            .iter()
            .filter_map(|call| call.pipes.is_none().then_some(call.func_id))
            .collect();
        silent.sort_unstable();
        silent.dedup();
        if !silent.is_empty() {
            let silent: Vec<String> = silent.iter().map(i32::to_string).collect();
            notes.push(format!(
                "The kernels with func id {} have no tile instruction of PTO-ISA that was counted: their cells are empty. A kernel can tell its instructions with pto_field_counters.h.",
                silent.join(", ")
            ));
        }
        let [similar, nowhere] = self.rough();
        if !similar.is_empty() {
            notes.push(format!(
                "The cost model has no numbers for {}: they count as a similar instruction.",
                similar.join(", ")
            ));
        }
        if !nowhere.is_empty() {
            notes.push(format!(
                "No pipe is known for {}: they are missing in the cells of their kernels.",
                nowhere.join(", ")
            ));
        }
        notes
    }
}

/// The group of counters that `pmu.csv` has.
const PIPE_UTILIZATION: u32 = 2;

/// Whose counters the columns are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// Eight counters.
    A2a3,
    /// Ten counters.
    A5,
}

impl Architecture {
    /// The counters of the group in their order, and which pipe each is about; `None`: nothing here knows it.
    const fn columns(self) -> &'static [(&'static str, Option<Pipe>)] {
        match self {
            Self::A2a3 => &[
                ("vec_busy_cycles", Some(Pipe::Vector)),
                ("cube_busy_cycles", Some(Pipe::Cube)),
                ("scalar_busy_cycles", None),
                ("mte1_busy_cycles", Some(Pipe::Mte1)),
                ("mte2_busy_cycles", Some(Pipe::Mte2)),
                ("mte3_busy_cycles", Some(Pipe::Mte3)),
                ("icache_miss", None),
                ("icache_req", None),
            ],
            Self::A5 => &[
                ("pmu_idc_aic_vec_busy_o", Some(Pipe::Vector)),
                ("cube_instr_busy", Some(Pipe::Cube)),
                ("scalar_instr_busy", None),
                ("mte1_instr_busy", Some(Pipe::Mte1)),
                ("mte2_instr_busy", Some(Pipe::Mte2)),
                ("mte3_instr_busy", Some(Pipe::Mte3)),
                ("icache_req", None),
                ("icache_miss", None),
                ("pmu_fix_instr_busy", Some(Pipe::Fixpipe)),
            ],
        }
    }
}
