//! From an epitaph to sentences: what happened, who and where, which tasks wait for which, what to do.

use std::fmt;
use std::time::Duration;

use pto_abi::arena::Arena;
use pto_abi::block::BlockContext;
use pto_abi::chain::CHAIN_KERNEL;
use pto_abi::kinds::TaskState;
use pto_abi::runtime::{Epitaph, NOBODY, WorkerEntry, region};
use pto_abi::sync::Ordering;
use pto_abi::task::UNPUBLISHED;
use pto_abi::{CoreKind, Fault, FuncId, GmAddr, TaskId};

use crate::timeline::Trace;
#[cfg(feature = "sim")]
use pto_sim_shim::virtual_time::VirtualReport;

use crate::cycle;
use crate::cycle::Cycle;
use crate::logs::LogMessage;
use crate::logs::Logs;
use crate::stream_report::{ring_name, ring_unit};

/// The post-mortem of a run that ended with a fault; `Display` prints it as a page.
#[derive(Clone, Debug)]
pub struct FaultReport {
    /// The run's first fault.
    pub fault: Fault,
    /// What the firmware left, if it came to that.
    pub epitaph: Option<Epitaph>,
    /// The kind of the core that it names.
    pub core_kind: Option<CoreKind>,
    /// What happened, sentence by sentence.
    pub sentences: Vec<String>,
    /// A cycle among the blocked tasks that the epitaph names.
    pub cycle: Option<Cycle>,
    /// What to do.
    pub remedy: String,
    /// Whether the arena was lost with cores that did not come back. The device got a new one.
    pub arena_lost: bool,
    /// What the firmware logged, in the order of its clocks.
    pub logs: Vec<LogMessage>,
    /// Log entries that were overwritten before the host read them.
    pub logs_dropped: u64,
    /// The timeline up to the fault, if the run was recorded.
    pub trace: Option<Box<Trace>>,
    /// What the machine saw in virtual time, if that is how the run was hosted.
    #[cfg(feature = "sim")]
    pub virtual_report: Option<Box<VirtualReport>>,
}

/// What the device knows and the epitaph does not.
pub(crate) struct Context<'a> {
    pub(crate) workers: &'a [WorkerEntry],
    /// The name of the kernel of a func id.
    pub(crate) kernel_name: &'a dyn Fn(FuncId) -> Option<String>,
    pub(crate) builders: Vec<String>,
    pub(crate) builder: Option<&'a str>,
}

impl FaultReport {
    pub(crate) fn new(
        fault: Fault,
        epitaph: Option<Epitaph>,
        arena_lost: bool,
        context: &Context<'_>,
        logs: Logs,
    ) -> Self {
        let mut sentences = vec![fault.to_string()];
        match &epitaph {
            Some(epitaph) => describe(epitaph, fault, context, &mut sentences),
            None => sentences.push("The firmware did not say more about the fault.".to_owned()),
        }
        if fault == Fault::BUILD_NO_BUILDER {
            sentences.push(describe_builders(context));
        }
        if arena_lost {
            sentences.push(
                "Some cores did not come back, so that their arena cannot be used again."
                    .to_owned(),
            );
        }
        let unknown = "Use host and firmware of the same release.";
        Self {
            fault,
            core_kind: epitaph.as_ref().and_then(|epitaph| kind_of(epitaph, context.workers)),
            cycle: epitaph.as_ref().and_then(|epitaph| cycle::among(&edges_of(epitaph))),
            epitaph,
            sentences,
            remedy: fault.entry().map_or(unknown, |entry| entry.remedy).to_owned(),
            arena_lost,
            logs: logs.messages,
            logs_dropped: logs.dropped,
            trace: None,
            #[cfg(feature = "sim")]
            virtual_report: None,
        }
    }
}

impl fmt::Display for FaultReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, sentence) in self.sentences.iter().enumerate() {
            writeln!(f, "{}{sentence}", if index == 0 { "" } else { "  " })?;
        }
        if let Some(cycle) = &self.cycle {
            writeln!(f, "  These tasks wait for each other: {cycle}.")?;
        }
        write!(f, "  What to do: {}", self.remedy)?;
        if self.logs_dropped > 0 {
            write!(f, "\n  {} older log entries were overwritten.", self.logs_dropped)?;
        }
        for message in &self.logs {
            write!(f, "\n  {message}")?;
        }
        Ok(())
    }
}

fn describe(epitaph: &Epitaph, fault: Fault, context: &Context<'_>, to: &mut Vec<String>) {
    if epitaph.fault != fault.code()
        && let Some(other) = Fault::from_code(epitaph.fault)
    {
        to.push(format!("What follows is about another fault: {other}"));
    }
    to.push(describe_who(epitaph));
    match epitaph.ring {
        0 => to.extend(describe_detail(epitaph)),
        ring => to.push(describe_ring(epitaph, ring as usize - 1)),
    }
    if let Some(argument) = epitaph.argument.checked_sub(1) {
        to.push(format!("It concerns argument {argument} (counted from 0)."));
    }
    to.extend(describe_task(epitaph, context));
    to.extend(describe_part(epitaph, context.workers));
    to.extend(describe_core(epitaph, context.workers));
    to.push(describe_progress(epitaph));
    describe_blocked(epitaph, to);
}

fn describe_who(epitaph: &Epitaph) -> String {
    let who = match epitaph.instance {
        NOBODY => "The machine raised it".to_owned(),
        instance => format!("AICPU instance {instance} raised it"),
    };
    let time = Duration::from_nanos(epitaph.time_ns);
    match epitaph.since_ns {
        0 => format!("{who} at {time:?} of its clock."),
        since => {
            let since = Duration::from_nanos(since);
            format!("{who} at {time:?} of its clock. The cause had lasted for {since:?}.")
        }
    }
}

fn describe_detail(epitaph: &Epitaph) -> Option<String> {
    let [found, expected] = epitaph.detail;
    let fault = Fault::from_code(epitaph.fault)?;
    match (fault, fault.subsystem()) {
        (Fault::BUILD_FAILED, _) => Some(format!("The builder returned {}.", found.cast_signed())),
        (Fault::STALL_TRACE, _) => Some(format!(
            "{expected} events were written to its trace ring, and {found} of them were read."
        )),
        (Fault::BUILD_GM_RANGE, _) => Some(format!("It read at {found:#x}.")),
        // `describe_builders` and `describe_progress` say it better.
        (Fault::BUILD_NO_BUILDER, _) | (_, "STALL") => None,
        _ if epitaph.detail == [0, 0] => None,
        _ if expected == 0 => Some(format!("Found {found} ({found:#x}).")),
        _ => Some(format!(
            "Found {found} ({found:#x}); expected was {expected} ({expected:#x}), or at most that."
        )),
    }
}

fn describe_ring(epitaph: &Epitaph, index: usize) -> String {
    let [in_use, suffices] = epitaph.detail;
    let (name, unit) = (ring_name(index), ring_unit(index));
    let scope = match epitaph.scope {
        0 => "the program's own scope".to_owned(),
        scope => format!("scope {scope}"),
    };
    format!(
        "Ring \"{name}\", in {scope}: {in_use} {unit} are in use; {suffices} suffice for what was asked so far."
    )
}

fn describe_task(epitaph: &Epitaph, context: &Context<'_>) -> Option<String> {
    let kernel = describe_kernel(epitaph, context.kernel_name);
    match (epitaph.task == TaskId::NONE, kernel) {
        (true, None) => None,
        (true, Some(kernel)) => Some(format!("It concerns {kernel}.")),
        (false, None) => Some(format!("It concerns task {}.", epitaph.task)),
        (false, Some(kernel)) => Some(format!("It concerns task {}, {kernel}.", epitaph.task)),
    }
}

fn describe_kernel(
    epitaph: &Epitaph,
    kernel_name: &dyn Fn(FuncId) -> Option<String>,
) -> Option<String> {
    if epitaph.func_id == NOBODY {
        return None;
    }
    let name = u16::try_from(epitaph.func_id).ok().and_then(|id| kernel_name(FuncId(id)));
    let name = name.map_or("an unregistered kernel".to_owned(), |name| format!("kernel {name}"));
    let address = match epitaph.kernel {
        // A chain has no code of its own.
        address if address == 0 || address == CHAIN_KERNEL.0 => String::new(),
        address => format!(" at {}", GmAddr(address)),
    };
    Some(format!("{name} (func id {}){address}", epitaph.func_id))
}

/// Which kernel of a chain a core was in, when that is what the epitaph names.
pub(crate) fn describe_chain(
    arena: &Arena<'_>,
    epitaph: &Epitaph,
    kernel_name: &dyn Fn(FuncId) -> Option<String>,
) -> Option<String> {
    let tasks = arena.tasks(arena.regions()[region::TASKS]).ok()?;
    let task = tasks.get(usize::try_from(epitaph.task.slot).ok()?)?;
    if task.kernel.load(Ordering::Relaxed) != CHAIN_KERNEL.0 {
        return None;
    }
    let lines = arena.workers().get(usize::try_from(epitaph.core).ok()?)?;
    let (number, func_id) = lines.chain_kernel()?;
    let name = u16::try_from(func_id).ok().and_then(|id| kernel_name(FuncId(id)));
    let name = name.unwrap_or_else(|| "an unregistered kernel".to_owned());
    Some(format!(
        "The task is a chain. Its core was in kernel {number} of it, {name} (func id {func_id})."
    ))
}

fn describe_part(epitaph: &Epitaph, workers: &[WorkerEntry]) -> Option<String> {
    let BlockContext { block, blocks, lane } =
        (epitaph.part != 0).then(|| BlockContext::of(epitaph.part))?;
    let entry = usize::try_from(epitaph.core).ok().and_then(|core| workers.get(core));
    let core = match (entry.map(|entry| entry.kind), lane) {
        (Some(0), _) => "the cube core",
        (_, 0) => "the first vector core",
        _ => "the second vector core",
    };
    Some(format!(
        "Of the task it concerns the part of {core} in block {block} of {blocks} (counted from 0)."
    ))
}

fn describe_core(epitaph: &Epitaph, workers: &[WorkerEntry]) -> Option<String> {
    if epitaph.core == NOBODY {
        return None;
    }
    let entry = usize::try_from(epitaph.core).ok().and_then(|core| workers.get(core));
    let Some(entry) = entry else {
        return Some(format!(
            "It concerns core {}, which the worker table does not hold.",
            epitaph.core
        ));
    };
    let kind = kind_of(epitaph, workers).map_or("of unknown kind", CoreKind::name);
    Some(format!("It concerns core {} ({kind}, cluster {}).", epitaph.core, entry.cluster))
}

fn kind_of(epitaph: &Epitaph, workers: &[WorkerEntry]) -> Option<CoreKind> {
    let entry = workers.get(usize::try_from(epitaph.core).ok()?)?;
    CoreKind::try_from(u8::try_from(entry.kind).ok()?).ok()
}

fn describe_progress(epitaph: &Epitaph) -> String {
    let Epitaph { added, published, completed, ready, busy_cores, .. } = epitaph;
    let shaped = match epitaph.shaped {
        0 => String::new(),
        shaped => format!(", {shaped} by priority or for several cores"),
    };
    let busy = match *busy_cores {
        1 => "1 core is".to_owned(),
        cores => format!("{cores} cores are"),
    };
    format!(
        "Of the tasks {added} were added, {published} published and {completed} completed; \
         {} are ready for aic, {} for aiv{shaped}; {busy} busy.",
        ready[CoreKind::AIC.index()],
        ready[CoreKind::AIV.index()],
    )
}

fn describe_blocked(epitaph: &Epitaph, to: &mut Vec<String>) {
    let named = named_blocked(epitaph);
    for blocked in named {
        let state = u8::try_from(blocked.producer_state).ok();
        let state = state.and_then(|state| TaskState::try_from(state).ok());
        let state = state.map_or("in an unknown state", TaskState::name);
        let (task, producers) = (blocked.task, blocked.fanin & !UNPUBLISHED);
        let waits =
            if blocked.fanin & UNPUBLISHED == 0 { "waits" } else { "is unpublished and waits" };
        to.push(match blocked.producer {
            NOBODY => format!(
                "Task {task} {waits} for {producers} producer{}, and no edge leads to it: a lost edge.",
                if producers == 1 { "" } else { "s" }
            ),
            producer if producers == 1 => {
                format!("Task {task} {waits} for task {producer} ({state}).")
            }
            producer => format!(
                "Task {task} {waits} for {producers} producers, one of them task {producer} ({state})."
            ),
        });
    }
    let unnamed = (epitaph.blocked_count as usize).saturating_sub(named.len());
    if unnamed > 0 {
        let wait = if unnamed == 1 { "task waits" } else { "tasks wait" };
        to.push(format!("{unnamed} more {wait}; the report has no room to name all."));
    }
}

fn named_blocked(epitaph: &Epitaph) -> &[pto_abi::runtime::BlockedTask] {
    let held = (epitaph.blocked_count as usize).min(epitaph.blocked.len());
    epitaph.blocked.get(..held).unwrap_or(&[])
}

fn edges_of(epitaph: &Epitaph) -> Vec<(u32, u32)> {
    let waiting = named_blocked(epitaph).iter();
    let known = waiting.filter(|blocked| blocked.producer != NOBODY);
    known.map(|blocked| (blocked.producer, blocked.task)).collect()
}

fn describe_builders(context: &Context<'_>) -> String {
    let asked = match context.builder {
        Some(name) => format!("The run asks for builder \"{name}\""),
        None => "The run names no builder".to_owned(),
    };
    if context.builders.is_empty() {
        return format!("{asked}; the firmware has no builders.");
    }
    format!("{asked}; the firmware has: {}.", context.builders.join(", "))
}

#[cfg(test)]
mod tests {
    use super::{Context, FaultReport};
    use crate::logs::Logs;
    use pto_abi::block::BlockContext;
    use pto_abi::launch::worker_table;
    use pto_abi::runtime::{BlockedTask, Epitaph, NOBODY};
    use pto_abi::{Fault, FuncId, TaskId};

    fn text_of(fault: Fault, epitaph: Option<Epitaph>) -> String {
        let workers: Vec<_> = worker_table([1, 2]).collect();
        let context = Context {
            workers: &workers,
            kernel_name: &|id| (id == FuncId(3)).then(|| "exp".to_owned()),
            builders: vec!["chain".to_owned(), "tree".to_owned()],
            builder: Some("tre"),
        };
        FaultReport::new(fault, epitaph, false, &context, Logs::default()).to_string()
    }

    #[test]
    fn a_core_stall_names_task_kernel_and_core() {
        let epitaph = Epitaph {
            instance: 2,
            core: 2,
            func_id: 3,
            task: TaskId { slot: 41, generation: 1 },
            kernel: 0x1003,
            time_ns: 1_500_000,
            since_ns: 60_000_000_000,
            added: 100,
            ..Epitaph::of(Fault::STALL_CORE)
        };
        let text = text_of(Fault::STALL_CORE, Some(epitaph));
        for part in [
            "STALL_CORE 0x00060001: A task runs on a core for longer than the task budget.",
            "AICPU instance 2 raised it at 1.5ms of its clock. The cause had lasted for 60s.",
            "task 41, kernel exp (func id 3) at 0x1003.",
            "It concerns core 2 (aiv, cluster 0).",
            "Of the tasks 100 were added",
            "What to do: The report names kernel and core",
        ] {
            assert!(text.contains(part), "{part:?} in\n{text}");
        }
    }

    #[test]
    fn a_part_is_named_by_block_and_core() {
        let part = BlockContext { block: 3, blocks: 8, lane: 1 }.word();
        let epitaph = Epitaph { core: 2, part, shaped: 4, ..Epitaph::of(Fault::STALL_CORE) };
        let text = text_of(Fault::STALL_CORE, Some(epitaph));
        for part in [
            "the part of the second vector core in block 3 of 8 (counted from 0).",
            "for aiv, 4 by priority or for several cores; 0 cores are busy.",
        ] {
            assert!(text.contains(part), "{part:?} in\n{text}");
        }
        let cube = Epitaph { core: 0, part: BlockContext::ONLY.word(), ..epitaph };
        assert!(text_of(Fault::STALL_CORE, Some(cube)).contains("the cube core in block 0 of 1"));
    }

    #[test]
    fn a_deadlock_names_tasks_producers_and_the_cycle() {
        let mut epitaph = Epitaph::of(Fault::STALL_DEADLOCK);
        let blocked =
            |task, producer, fanin| BlockedTask { task, fanin, producer, producer_state: 2 };
        epitaph.blocked[..4].copy_from_slice(&[
            blocked(7, 3, 1),
            blocked(9, 7, 2),
            blocked(3, 9, 1),
            blocked(12, NOBODY, 1),
        ]);
        epitaph.blocked_count = 4;
        let text = text_of(Fault::STALL_DEADLOCK, Some(epitaph));
        for part in [
            "Task 9 waits for 2 producers, one of them task 7 (published).",
            "Task 12 waits for 1 producer, and no edge leads to it: a lost edge.",
            "Task 3 waits for task 9 (published).",
            "These tasks wait for each other: 3 -> 7 -> 9 -> 3.",
        ] {
            assert!(text.contains(part), "{part:?} in\n{text}");
        }
        epitaph.blocked_count = 30;
        assert!(text_of(Fault::STALL_DEADLOCK, Some(epitaph)).contains("14 more tasks wait"));
    }

    #[test]
    fn a_missing_builder_is_reported_with_those_that_exist() {
        let text = text_of(Fault::BUILD_NO_BUILDER, None);
        assert!(text.contains("builder \"tre\"; the firmware has: chain, tree."), "{text}");
        assert!(text.contains("did not say more"), "{text}");
    }

    #[test]
    fn a_builders_code_and_a_refused_field_are_reported() {
        let failed =
            Epitaph { detail: [(-7_i64).cast_unsigned(), 0], ..Epitaph::of(Fault::BUILD_FAILED) };
        assert!(text_of(Fault::BUILD_FAILED, Some(failed)).contains("The builder returned -7."));
        let field = Epitaph { detail: [17, 16], ..Epitaph::of(Fault::RUNTIME_AICPU_INSTANCES) };
        let text = text_of(Fault::RUNTIME_AICPU_INSTANCES, Some(field));
        assert!(
            text.contains("Found 17 (0x11); expected was 16 (0x10), or at most that."),
            "{text}"
        );
    }

    #[test]
    fn unknown_codes_and_foreign_indices_are_reported_too() {
        let fault = Fault::from_code(0x00FF_0001).unwrap();
        let epitaph = Epitaph { core: 99, func_id: 700, ..Epitaph::of(Fault::CORE_NO_ANSWER) };
        let text = text_of(fault, Some(epitaph));
        assert!(text.contains("which this release does not know"), "{text}");
        assert!(text.contains("another fault: CORE_NO_ANSWER"), "{text}");
        assert!(text.contains("core 99, which the worker table does not hold."), "{text}");
        assert!(text.contains("an unregistered kernel (func id 700)"), "{text}");
    }
}
