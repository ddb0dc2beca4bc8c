//! Findings in words: what, where, what to do.

use pto_abi::{Fault, TaskId};

use crate::finding::{Finding, Kind};
use crate::layout::{Access, Layout, What};
use crate::memory_map::Addresses;
use crate::program::{Action, Argument, Program, Task};
use crate::races::{Race, common_bytes};
use crate::rig::Rings;
use crate::rings::{Trouble, name, unit};

/// Tasks of a cycle that are named before the rest is counted.
const NAMED: usize = 32;

/// Tasks that wait for each other.
pub(crate) fn cycle(program: &Program, layout: &Layout, cycle: &[u32], left: usize) -> Finding {
    let ids = cycle.iter().filter_map(|node| Some(program.tasks[layout.task(*node)?].id));
    let ids: Vec<u32> = ids.collect();
    let mut way: Vec<String> = ids.iter().take(NAMED).map(ToString::to_string).collect();
    if ids.len() > NAMED {
        let more = ids.len() - NAMED;
        way.push(format!("({more} more {})", if more == 1 { "task" } else { "tasks" }));
    }
    way.extend(ids.first().map(ToString::to_string));
    let blocked = match left - cycle.len() {
        0 => String::new(),
        1 => ", nor can 1 task behind them".to_owned(),
        blocked => format!(", nor can {blocked} tasks behind them"),
    };
    let message = format!(
        "tasks wait for each other: {}; none of them can start{blocked}. Take out one of these edges",
        way.join(" -> "),
    );
    let line = cycle.first().map_or(0, |node| layout.nodes[*node as usize].line);
    Finding::new(Kind::Cycle, message).line(line).tasks(ids)
}

/// A task of a streaming program that waits for one which is not there yet.
pub(crate) fn early_edges(program: &Program, layout: &Layout, findings: &mut Vec<Finding>) {
    let positions: std::collections::HashMap<u32, usize> = layout
        .nodes
        .iter()
        .enumerate()
        .filter_map(|(at, node)| match node.what {
            What::Task(task) => Some((program.tasks[task].id, at)),
            _ => None,
        })
        .collect();
    for (at, node) in layout.nodes.iter().enumerate() {
        let What::Task(task) = node.what else { continue };
        let task = &program.tasks[task];
        for after in task.after.iter().filter(|after| positions.get(after).is_some_and(|p| *p > at))
        {
            let message = format!(
                "{task} waits for task {after}, which is added later: a program of the streaming runtime cannot name it \
                 yet. Add task {after} first, or add {task} with \"publish\": \"later\", and behind task {after} the \
                 lines {{\"edge\": [{after}, {}]}} and {{\"publish\": {}}}",
                task.id, task.id
            );
            let finding = Finding::new(Kind::UnknownTask, message);
            findings.push(finding.line(node.line).tasks([task.id, *after]));
        }
    }
}

/// What argument of which task, and what it does.
fn access(program: &Program, layout: &Layout, access: &Access) -> String {
    let verb = if access.writes { "writes" } else { "reads" };
    let who = layout.name(program, access.node);
    let Some(task) = layout.task(access.node).map(|task| &program.tasks[task]) else {
        return format!("{who}, which {verb} an element");
    };
    match task.argument(access.argument) {
        Some((kernel, at)) => {
            let how = kernel.args[at].view().map_or("scalar", |(_, how)| how);
            let of = if task.is_chain() {
                format!(" of its kernel {}", kernel.number)
            } else {
                String::new()
            };
            format!("{who} (func {}, argument {at}{of}, {how}) {verb}", kernel.func)
        }
        None => format!("{who} (func {}, its predicate) {verb}", task.func),
    }
}

/// Two accesses without an order.
pub(crate) fn race(program: &Program, layout: &Layout, race: &Race) -> Finding {
    let Race { one, other, classes } = race;
    let [a, b] = [classes.0, classes.1].map(|class| &layout.classes[class]);
    let bytes = common_bytes(&a.region, &b.region)
        .unwrap_or((a.region.low.max(b.region.low), a.region.high.min(b.region.high)));
    let bytes = [bytes.0 - one.origin, bytes.1 - one.origin];
    let ids = [one, other].map(|access| layout.task(access.node).map(|task| &program.tasks[task]));
    let remedy = match ids {
        [Some(one), Some(other)] => {
            let derive = if program.streams() {
                ", or declare both accesses in scopes that derive edges"
            } else {
                ""
            };
            format!("let task {} wait for task {} (\"after\"){derive}", other.id, one.id)
        }
        _ => "declare the access of the task in a scope that derives or notes accesses, so that \
              the program waits for it"
            .to_owned(),
    };
    let message = format!(
        "{} bytes {} to {} of {}, {} them as well, and no edges order the two: {remedy}",
        access(program, layout, one),
        bytes[0],
        bytes[1],
        program.tensor_name(one.tensor),
        access(program, layout, other),
    );
    let line = layout.nodes[other.node as usize].line;
    let tasks: Vec<u32> = ids.iter().flatten().map(|task| task.id).collect();
    Finding {
        arguments: vec![one.argument, other.argument],
        tensor: Some(program.tensors[one.tensor].id),
        bytes: Some(bytes),
        ..Finding::new(Kind::Race, message).line(line).tasks(tasks)
    }
}

/// Two parts of a tensor that take too long to compare.
pub(crate) fn undecided(
    program: &Program,
    layout: &Layout,
    (one, other): (usize, usize),
) -> Finding {
    let [one, other] = [one, other].map(|class| layout.classes[class].accesses[0]);
    let message = format!(
        "whether {} what {} takes too many steps to decide: use strides that are multiples of each other",
        access(program, layout, &one),
        access(program, layout, &other),
    );
    Finding {
        fault: Some(Fault::STREAM_VIEW_IRREGULAR.name()),
        ..Finding::new(Kind::Refused, message)
    }
}

/// Where the builder stopped: the line, and the task that it was about to add.
fn line_and_task<'p>(program: &'p Program, trouble: &Trouble) -> (usize, Option<&'p Task>) {
    let Some(step) = trouble.refused.step.and_then(|step| program.steps.get(step)) else {
        return (0, None);
    };
    let task = match &step.action {
        Action::Add(task) => program.tasks.get(*task),
        _ => None,
    };
    (step.line, task)
}

fn fault(trouble: &Trouble) -> (&'static str, String, &'static str) {
    let fault = trouble.refused.fault;
    let entry = fault.entry();
    let sentence = entry.map_or_else(|| fault.to_string(), |entry| entry.sentence.to_owned());
    (fault.name(), sentence, entry.map_or("", |entry| entry.remedy))
}

/// What the runtime refuses, whatever its rings are.
pub(crate) fn refused(program: &Program, trouble: &Trouble) -> Finding {
    let (line, task) = line_and_task(program, trouble);
    let blame = &trouble.blame;
    let mut whom = match (task, trouble.refused.step) {
        (Some(task), _) => format!("{task} (func {})", task.func),
        (None, Some(step)) => what(program, step),
        (None, None) => "the end of the program".to_owned(),
    };
    if let Some(argument) = blame.argument.checked_sub(1) {
        whom += &format!(", argument {argument}");
    } else if trouble.refused.step.is_none() && blame.task != TaskId::NONE {
        // On rings that hold everything, slots are numbers of nodes.
        whom += &format!(" (task {})", blame.task.slot);
    }
    let (name, sentence, remedy) = fault(trouble);
    let mut message = format!("{whom} is refused, {name}: {sentence} {remedy}");
    let [found, expected] = blame.detail;
    if expected > 0 {
        message += &format!(" Found {found}, expected {expected}.");
    }
    let tasks = task.map(|task| task.id);
    Finding { fault: Some(name), ..Finding::new(Kind::Refused, message).line(line).tasks(tasks) }
}

/// A step that adds no task.
fn what(program: &Program, step: usize) -> String {
    match program.steps.get(step).map(|step| &step.action) {
        Some(Action::OpenScope(_)) => "a scope".to_owned(),
        Some(Action::CloseScope) => "the end of a scope".to_owned(),
        Some(Action::Allocate(tensor)) => program.tensor_name(*tensor),
        Some(Action::Edge { producer, consumer }) => format!("the edge {producer} -> {consumer}"),
        Some(Action::Publish(task)) => format!("the publish of task {task}"),
        Some(Action::Get(_)) => "a get".to_owned(),
        Some(Action::Set(..)) => "a set".to_owned(),
        Some(Action::BeginRecording { record, .. }) => format!("record {record}"),
        Some(Action::EndRecording) => "the end of a record".to_owned(),
        Some(Action::Replay { record, .. }) => format!("a replay of record {record}"),
        _ => "a step".to_owned(),
    }
}

/// A program that does not get through on the rings that it is given.
pub(crate) fn too_small(
    program: &Program,
    trouble: &Trouble,
    given: &Rings,
    least: Option<&Rings>,
) -> Finding {
    let (line, task) = line_and_task(program, trouble);
    let (fault, sentence, remedy) = fault(trouble);
    let at = match (task, trouble.refused.step) {
        (Some(task), _) => task.to_string(),
        (None, Some(step)) => what(program, step),
        (None, None) => "the end of the program".to_owned(),
    };
    let (ring, scope) = trouble.blame.ring;
    let [in_use, suffices] = trouble.blame.detail;
    let mut message = match ring.checked_sub(1) {
        Some(ring) => {
            let ring = ring as usize;
            format!(
                "{fault} at {at}: {} (scope {scope}) has {in_use} {unit} in use and would need {suffices}. {sentence}",
                name(ring),
                unit = unit(ring)
            )
        }
        None => format!("{fault} at {at}: {sentence} {remedy}"),
    };
    match least {
        Some(least) if least.window > given.window => {
            message += &format!(" The program runs with a window of {}.", least.window);
        }
        Some(least) if least.heap_bytes > given.heap_bytes => {
            message += &format!(" The program runs with {} bytes a heap.", least.heap_bytes);
        }
        Some(least) if least.heap_rings > given.heap_rings => {
            message += &format!(" The program opens scopes {} deep.", least.heap_rings);
        }
        _ => {}
    }
    let tasks = task.map(|task| task.id);
    Finding { fault: Some(fault), ..Finding::new(Kind::Ring, message).line(line).tasks(tasks) }
}

/// What happened to a tensor of the heap.
#[derive(Clone, Copy, Default)]
struct Life {
    first_write: Option<u32>,
    /// The first argument that only reads.
    first_in: Option<u32>,
    is_read: bool,
}

/// Tensors of the heap that are read too early, or not at all.
pub(crate) fn unused(program: &Program, layout: &Layout, warnings: &mut Vec<Finding>) {
    let mut lives = vec![Life::default(); program.tensors.len()];
    for access in layout.classes.iter().flat_map(|class| &class.accesses) {
        let life = &mut lives[access.tensor];
        let task = layout.task(access.node).map(|task| &program.tasks[task]);
        let found = task.and_then(|task| task.argument(access.argument));
        let arg = found.as_ref().and_then(|(kernel, at)| kernel.args.get(*at));
        let earliest = |first: &mut Option<u32>| {
            *first = Some(first.map_or(access.node, |first| first.min(access.node)));
        };
        if access.writes {
            earliest(&mut life.first_write);
            life.is_read |= !matches!(arg, Some(Argument::Out(_)));
        } else {
            life.is_read = true;
            if !matches!(arg, Some(Argument::NoDep(..))) {
                earliest(&mut life.first_in);
            }
        }
    }
    for (position, life) in
        lives.iter().enumerate().filter(|(position, _)| layout.is_allocated[*position])
    {
        let name = program.tensor_name(position);
        let (kind, message, node) = match *life {
            Life { first_write: None, is_read: false, .. } => {
                let message = format!("{name} of the heap is allocated, and no task uses it");
                (Kind::NeverUsed, message, None)
            }
            Life { first_in: Some(read), first_write, .. }
                if first_write.is_none_or(|write| write > read) =>
            {
                let who = layout.name(program, read);
                let message = format!(
                    "{who} reads {name} of the heap before anything writes it: what it finds there is left over from others"
                );
                (Kind::ReadBeforeWrite, message, Some(read))
            }
            Life { first_write: Some(write), is_read: false, .. } => {
                let who = layout.name(program, write);
                let message = format!("{who} writes {name} of the heap, and nothing reads it");
                (Kind::NeverRead, message, Some(write))
            }
            _ => continue,
        };
        let line = node.map_or(0, |node| layout.nodes[node as usize].line);
        let task = node.and_then(|node| layout.task(node)).map(|task| program.tasks[task].id);
        let finding = Finding::new(kind, message).line(line).tasks(task);
        warnings.push(Finding { tensor: Some(program.tensors[position].id), ..finding });
    }
}

/// Tensors that meet in memory, although the runtime takes them for disjoint.
pub(crate) fn aliases(program: &Program, addresses: &Addresses, warnings: &mut Vec<Finding>) {
    if !program.streams() {
        return;
    }
    for (one, other) in &addresses.aliases {
        let [a, b] = [one, other].map(|position| program.tensor_name(*position));
        let message = format!(
            "{a} and {b} have bytes in common and different base addresses: the runtime takes them for disjoint, and derives \
             no edges between them. Make both views of one tensor"
        );
        let tensor = Some(program.tensors[*other].id);
        warnings.push(Finding { tensor, ..Finding::new(Kind::Alias, message) });
    }
}
