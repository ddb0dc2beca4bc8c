//! The constants of the interface, group by group, as the C header and the documentation show them.

use pto_abi::kinds::{GraphFlags, RunFlags, TaskState};
use pto_abi::layout::LAYOUT_HASH;
use pto_abi::runtime::{self, region};
use pto_abi::trace::{self, TraceKind};
use pto_abi::{BuildMode, CoreKind, FanoutStrategy, RuntimeVariant};
use pto_abi::{chain, handshake, image, limits, log_ring, task};
use pto_abi::{foreign::ArgKind, limits::MAX_RANK};
use pto_graph::{Comparison, DependencyMode, ElementType, Priority, StartMode};

/// How a value is written.
#[derive(Clone, Copy)]
pub(crate) enum ConstantValue {
    /// 32 bits, decimal.
    Count(u64),
    /// 32 bits, hexadecimal.
    Word(u32),
    /// 64 bits, hexadecimal.
    Long(u64),
}

/// One constant.
pub(crate) struct Constant {
    pub(crate) name: String,
    pub(crate) value: ConstantValue,
    pub(crate) meaning: String,
}

/// A titled list of them.
pub(crate) struct ConstantGroup {
    pub(crate) title: &'static str,
    pub(crate) constants: Vec<Constant>,
}

fn constant(name: impl Into<String>, value: ConstantValue, meaning: impl Into<String>) -> Constant {
    Constant { name: name.into(), value, meaning: meaning.into() }
}

/// Every group.
pub(crate) fn groups() -> Vec<ConstantGroup> {
    vec![
        ConstantGroup { title: "Identity", constants: identity() },
        ConstantGroup { title: "Limits", constants: limits() },
        ConstantGroup { title: "Closed sets", constants: closed_sets() },
        ConstantGroup { title: "Flags", constants: flags() },
        ConstantGroup { title: "Regions", constants: regions() },
        ConstantGroup { title: "Handshake", constants: handshake() },
        ConstantGroup { title: "Tasks", constants: tasks() },
    ]
}

fn identity() -> Vec<Constant> {
    vec![
        constant(
            "RUNTIME_MAGIC",
            ConstantValue::Long(runtime::RUNTIME_MAGIC),
            "RuntimeHeader.magic",
        ),
        constant("GRAPH_MAGIC", ConstantValue::Long(image::GRAPH_MAGIC), "GraphHeader.magic"),
        constant(
            "ABI_MAJOR",
            ConstantValue::Count(runtime::ABI_MAJOR.into()),
            "host and firmware agree on it",
        ),
        constant(
            "ABI_MINOR",
            ConstantValue::Count(runtime::ABI_MINOR.into()),
            "the firmware takes this one and lower ones",
        ),
        constant(
            "LAYOUT_HASH",
            ConstantValue::Long(LAYOUT_HASH),
            "hash over names, offsets and sizes of all shared structs",
        ),
    ]
}

fn limits() -> Vec<Constant> {
    let table = limits::TABLE.iter();
    table
        .map(|(name, value, meaning)| constant(*name, ConstantValue::Count(*value), *meaning))
        .collect()
}

fn closed_sets() -> Vec<Constant> {
    fn members(set: &str, members: &[(&str, u32)]) -> Vec<Constant> {
        // Names that are signs have no letters.
        let spelled = |name: &str| match name {
            "==" => "EQUAL".to_owned(),
            "!=" => "NOT_EQUAL".to_owned(),
            "<" => "LESS".to_owned(),
            "<=" => "LESS_EQUAL".to_owned(),
            ">" => "GREATER".to_owned(),
            ">=" => "GREATER_EQUAL".to_owned(),
            name => name.to_uppercase().replace(['-', ' '], "_"),
        };
        let member = |(name, value): &(&str, u32)| {
            let full = format!("{}_{}", spelled(set), spelled(name));
            constant(full, ConstantValue::Count((*value).into()), format!("{set}: {name}"))
        };
        members.iter().map(member).collect()
    }
    macro_rules! set {
        ($name:literal, $set:ty) => {{
            let all: Vec<_> =
                <$set>::ALL.iter().map(|member| (member.name(), u32::from(member.get()))).collect();
            members($name, &all)
        }};
    }
    [
        set!("core_kind", CoreKind),
        set!("runtime_variant", RuntimeVariant),
        set!("build_mode", BuildMode),
        set!("fanout_strategy", FanoutStrategy),
        set!("task_state", TaskState),
        set!("trace_kind", TraceKind),
        set!("dependency_mode", DependencyMode),
        set!("element_type", ElementType),
        set!("arg_kind", ArgKind),
        set!("priority", Priority),
        set!("start_mode", StartMode),
        set!("comparison", Comparison),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn flags() -> Vec<Constant> {
    let run = RunFlags::all().iter_names().map(|(name, flag)| (name, flag.bits(), "RUN_FLAG"));
    let graph =
        GraphFlags::all().iter_names().map(|(name, flag)| (name, flag.bits(), "GRAPH_FLAG"));
    let meaning =
        |prefix| if prefix == "RUN_FLAG" { "RunConfig.flags" } else { "GraphHeader.flags" };
    run.chain(graph)
        .map(|(name, bits, prefix)| {
            constant(format!("{prefix}_{name}"), ConstantValue::Word(bits), meaning(prefix))
        })
        .collect()
}

fn regions() -> Vec<Constant> {
    let mut constants: Vec<_> = (0_u64..)
        .zip(region::NAMES)
        .map(|(index, name)| {
            let full = format!("REGION_{}", name.to_uppercase());
            constant(full, ConstantValue::Count(index), "index into Runtime.regions")
        })
        .collect();
    let count = ConstantValue::Count(region::COUNT as u64);
    constants.push(constant("REGION_COUNT", count, "entries of Runtime.regions"));
    constants
}

fn handshake() -> Vec<Constant> {
    let word = |name, value, meaning| constant(name, ConstantValue::Word(value), meaning);
    let count = |name, value, meaning| constant(name, ConstantValue::Count(value), meaning);
    vec![
        word("FINISHED", handshake::FINISHED, "in WorkerLine.status: the dispatch is finished"),
        word("LAST_DISPATCH_ID", handshake::LAST_DISPATCH_ID, "then ids start again at 0"),
        word("DOORBELL_IDLE", handshake::DOORBELL_IDLE, "doorbell: nothing was dispatched yet"),
        word("DOORBELL_EXIT", handshake::DOORBELL_EXIT, "doorbell register: leave the loop"),
        word("STATUS_IDLE", handshake::STATUS_IDLE, "status: nothing was run yet"),
        word("STATUS_EXITED", handshake::STATUS_EXITED, "status: the core has left its loop"),
        word("CONTROL_RUN", handshake::CONTROL_RUN, "control: keep running"),
        word("CONTROL_QUIT", handshake::CONTROL_QUIT, "control: leave the loop"),
        count(
            "CHAIN_KERNEL",
            chain::CHAIN_KERNEL.0,
            "DispatchWords.kernel: args are a chain's words",
        ),
        count("CHAIN_VERSION", chain::CHAIN_VERSION.into(), "of a chain's words"),
        count("MAX_CHAIN_ARGS", chain::MAX_CHAIN_ARGS as u64, "arguments of a kernel in a chain"),
        word(
            "CHAIN_WITH_NEXT",
            chain::WITH_NEXT,
            "in the times of a link: the next one takes turns",
        ),
    ]
}

fn tasks() -> Vec<Constant> {
    let word = |name, value, meaning| constant(name, ConstantValue::Word(value), meaning);
    let count =
        |name, value: usize, meaning| constant(name, ConstantValue::Count(value as u64), meaning);
    vec![
        word("TASK_UNPUBLISHED", task::UNPUBLISHED, "in Task.fanin: not published"),
        word("TASK_CLOSED", task::CLOSED, "in Task.fanout: completed"),
        word("TASK_NO_CHUNK", task::NO_CHUNK, "in Task.first_chunk: none"),
        word("NOBODY", runtime::NOBODY, "in Epitaph: no core, instance, func id or slot"),
        count("INLINE_CONSUMERS", task::INLINE_CONSUMERS, "consumers in a task's own line"),
        count("CHUNK_CONSUMERS", task::CHUNK_CONSUMERS, "consumers in one chunk"),
        count("STREAM_RANKS", MAX_RANK, "dimensions of a pto_stream_tensor"),
        count("EPITAPH_BLOCKED", runtime::EPITAPH_BLOCKED, "blocked tasks that an epitaph names"),
        count(
            "TRACE_KIND_BITS",
            trace::KIND_BITS as usize,
            "bits of TraceEvent.what that are the kind",
        ),
        count("LOG_ENTRY_TEXT_BYTES", log_ring::ENTRY_TEXT_BYTES, "bytes of text in a log entry"),
    ]
}
