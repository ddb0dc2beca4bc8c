//! Lines of 64 bytes of which two kernels write different bytes at the same time.
//!
//! A core of the device writes a whole line back, also the bytes that it did not change. Of two kernels that write parts of one line, and that nothing
//! orders, one loses what it wrote. The simulator shares its memory, so that such a program gives the right result here.
//!
//! What a kernel writes is found by comparing the tensors of its task before and after the call. So one kernel at a time may run, and what
//! a kernel overwrites with the same bytes is not seen.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::memory::append;
use crate::run_log::RunLog;
use crate::wire::{ChipTensor, element_of};

const LINE: u64 = 64;
/// Lines that are kept, at most: 64 MiB of tensors without a single whole line.
const MAX_LINES: usize = 1 << 20;

/// The bytes of the tensors of a task, before a kernel runs.
#[derive(Default)]
pub(crate) struct Before {
    /// Argument, address, and the bytes there.
    spans: Vec<(usize, u64, Vec<u8>)>,
    /// Arguments without memory.
    unreadable: Vec<usize>,
}

/// A kernel that has changed some bytes of a line: its task, its block, and a bit for each byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LineWriter {
    own: u64,
    block: u32,
    bytes: u64,
}

/// See the file.
#[derive(Default)]
pub(crate) struct Lines {
    /// Who has written a part of a line, by the line's address.
    parts: BTreeMap<u64, Vec<LineWriter>>,
    is_full: bool,
    /// Tasks and arguments without memory.
    unreadable: BTreeSet<(u64, usize)>,
}

/// The bytes that a tensor's view spans: address and number.
fn span_of(tensor: &ChipTensor) -> Option<(u64, usize)> {
    let element = element_of(tensor.dtype)?.bytes();
    let reach = tensor.reach().filter(|_| tensor.address != 0)?;
    let begin = reach.start.checked_mul(element)?;
    let end = reach.end.checked_mul(element)?.min(tensor.bytes);
    let bytes = usize::try_from(end.checked_sub(begin)?).ok()?;
    Some((tensor.address.checked_add(begin)?, bytes))
}

impl Before {
    /// What the tensors hold now, while no kernel runs.
    pub(crate) fn of(tensors: &[ChipTensor]) -> Self {
        let mut before = Self::default();
        for (argument, tensor) in tensors.iter().enumerate() {
            let Some((address, count)) = span_of(tensor) else { continue };
            let mut bytes = Vec::new();
            match append(&mut bytes, address, count) {
                Ok(()) => before.spans.push((argument, address, bytes)),
                Err(_none) => before.unreadable.push(argument),
            }
        }
        before
    }
}

impl Lines {
    /// The kernel of a block has returned: what it has changed since `before`.
    pub(crate) fn changed(&mut self, own: u64, block: u32, before: &Before) {
        self.unreadable.extend(before.unreadable.iter().map(|argument| (own, *argument)));
        let mut new = Vec::new();
        for (argument, address, old) in &before.spans {
            new.clear();
            if append(&mut new, *address, old.len()).is_err() {
                self.unreadable.insert((own, *argument));
                continue;
            }
            let mut line: Option<(u64, u64)> = None;
            for (at, _) in
                (*address..).zip(old.iter().zip(&new)).filter(|(_, (old, new))| old != new)
            {
                let (base, bit) = (at - at % LINE, 1 << (at % LINE));
                match &mut line {
                    Some((known, bytes)) if *known == base => *bytes |= bit,
                    _ => {
                        self.note(line.replace((base, bit)), own, block);
                    }
                }
            }
            self.note(line, own, block);
        }
    }

    fn note(&mut self, line: Option<(u64, u64)>, own: u64, block: u32) {
        let Some((base, bytes)) = line.filter(|(_, bytes)| *bytes != u64::MAX) else { return };
        if self.parts.len() >= MAX_LINES && !self.parts.contains_key(&base) {
            self.is_full = true;
            return;
        }
        let writers = self.parts.entry(base).or_default();
        match writers.iter_mut().find(|writer| (writer.own, writer.block) == (own, block)) {
            Some(writer) => writer.bytes |= bytes,
            None => writers.push(LineWriter { own, block, bytes }),
        }
    }

    /// What is to be said: one sentence for each pair of locations in the program.
    pub(crate) fn report(&self, run_log: &RunLog) -> Vec<String> {
        let mut order = TaskOrder::of(run_log);
        let (mut reported, mut notes) = (HashSet::new(), Vec::new());
        for writers in self.parts.values() {
            let mut writers = writers.clone();
            writers.sort_unstable_by_key(|writer| (writer.own, writer.block));
            for (at, one) in writers.iter().enumerate() {
                for other in
                    writers.iter().skip(at + 1).filter(|other| other.bytes & one.bytes == 0)
                {
                    let Some([first, second]) = locations(run_log, one, other) else { continue };
                    if one.own == other.own {
                        if reported.insert([first, second]) {
                            notes.push(of_blocks(first, one, other));
                        }
                    } else if !order.orders(one.own, other.own) && reported.insert([first, second])
                    {
                        notes.push(of_tasks(first, second));
                    }
                }
            }
        }
        notes.extend(
            run_log.no_memory(&self.unreadable, "what kernels write there is not compared"),
        );
        if self.is_full {
            notes.push(format!(
                "only the first {MAX_LINES} lines that are written in parts were compared"
            ));
        }
        notes
    }
}

fn locations<'d>(
    run_log: &'d RunLog,
    one: &LineWriter,
    other: &LineWriter,
) -> Option<[&'d str; 2]> {
    Some([&run_log.task(one.own)?.location, &run_log.task(other.own)?.location])
}

const WHY: &str = "a core of the device writes whole lines back, so that one of the two loses what it wrote. \
    Let each write whole lines: multiples of 64 bytes from an address that is one";

fn of_blocks(location: &str, one: &LineWriter, other: &LineWriter) -> String {
    let (one, other) = (one.block.min(other.block), one.block.max(other.block));
    let who = if one == other {
        format!("the kernels of block {one}")
    } else {
        format!("blocks {one} and {other}")
    };
    format!(
        "{location}: {who} of this task write different bytes of one line of 64 bytes, and {WHY}"
    )
}

fn of_tasks(first: &str, second: &str) -> String {
    format!(
        "{second}: this task and the task of {first} write different bytes of one line of 64 bytes, nothing orders the two under the rule \
         of the field, and {WHY}"
    )
}

/// Which tasks are ordered, by the edges of the field's rule.
struct TaskOrder {
    producers: HashMap<usize, Vec<usize>>,
    task_indices: HashMap<u64, usize>,
    known: HashMap<(usize, usize), bool>,
}

impl TaskOrder {
    fn of(run_log: &RunLog) -> Self {
        let mut producers: HashMap<usize, Vec<usize>> = HashMap::new();
        for edge in run_log.edges() {
            producers.entry(edge.consumer).or_default().push(edge.producer);
        }
        Self { producers, task_indices: run_log.task_indices().collect(), known: HashMap::new() }
    }

    fn orders(&mut self, one: u64, other: u64) -> bool {
        let (Some(&one), Some(&other)) =
            (self.task_indices.get(&one), self.task_indices.get(&other))
        else {
            return false;
        };
        let (early, late) = (one.min(other), one.max(other));
        if let Some(known) = self.known.get(&(early, late)) {
            return *known;
        }
        let (mut open, mut seen) = (vec![late], HashSet::new());
        let mut is_ordered = false;
        while let Some(task) = open.pop() {
            if task == early {
                is_ordered = true;
                break;
            }
            if task > early && seen.insert(task) {
                open.extend(self.producers.get(&task).into_iter().flatten());
            }
        }
        self.known.insert((early, late), is_ordered);
        is_ordered
    }
}
