//! Arguments of tasks with their contents: inputs before the first kernel of a task, outputs after its last one.
//!
//! Invariant: a task is planned before it can run, and its plan goes when its last kernel has returned.

use std::collections::{BTreeSet, HashMap};

use crate::memory::{NoMemory, append};
use crate::wire::{ChipTensor, element_of, tag};

/// Bytes of contents that a run keeps.
const MOST_BYTES: usize = 1 << 30;
/// The bits of a dump mask from here on say that a scalar's name covers several.
const AMBIGUOUS: usize = 48;

/// What an argument was.
#[derive(Clone, Copy, Debug)]
pub enum Content {
    /// A tensor, and where its bytes are: first byte and count.
    Tensor {
        /// Its descriptor.
        tensor: ChipTensor,
        /// The first byte.
        offset: usize,
        /// How many.
        bytes: usize,
        /// Whether bytes are missing that should be there.
        is_truncated: bool,
    },
    /// A word.
    Scalar {
        /// Its bits.
        value: u64,
        /// Whether the program's mark fits several scalars, of which this is the first one.
        is_ambiguous: bool,
    },
}

/// An argument before or after its task.
#[derive(Clone, Copy, Debug)]
pub struct DumpEntry {
    /// The task's id of ours.
    pub(crate) own: u64,
    /// The argument.
    pub argument: usize,
    /// The entry's [`tag`].
    pub tag: u64,
    /// After the task.
    pub is_after: bool,
    /// What it was.
    pub content: Content,
}

/// What was kept.
#[derive(Clone, Debug, Default)]
pub struct Dumped {
    /// Entries in the order of time.
    pub entries: Vec<DumpEntry>,
    /// Contents of tensors, one after the other.
    pub bytes: Vec<u8>,
    /// Tasks of ours, and arguments that have no memory.
    pub(crate) unreadable: BTreeSet<(u64, usize)>,
}

/// A task that will run.
pub(crate) struct Plan {
    /// Calls of kernels: blocks times kernels.
    pub(crate) calls: u32,
    pub(crate) tensors: Vec<(u64, ChipTensor)>,
    pub(crate) scalars: Vec<u64>,
    /// The program's mark.
    pub(crate) mask: u64,
}

/// See the file.
pub(crate) struct Dump {
    level: u8,
    planned: HashMap<u64, (Plan, u32, u32)>,
    dumped: Dumped,
}

impl Dump {
    pub(crate) fn new(level: u8) -> Self {
        Self { level, planned: HashMap::new(), dumped: Dumped::default() }
    }

    /// A task that is about to be submitted.
    pub(crate) fn plan(&mut self, own: u64, plan: Plan) {
        if self.level != 1 || plan.mask != 0 {
            self.planned.insert(own, (plan, 0, 0));
        }
    }

    /// A kernel of a task begins.
    pub(crate) fn begin(&mut self, own: u64) {
        let Some((plan, begun, _)) = self.planned.get_mut(&own) else { return };
        *begun += 1;
        if *begun == 1 {
            take(&mut self.dumped, self.level, own, plan, false);
        }
    }

    /// A kernel of a task has returned.
    pub(crate) fn end(&mut self, own: u64) {
        let Some((plan, _, ended)) = self.planned.get_mut(&own) else { return };
        *ended += 1;
        if *ended >= plan.calls {
            take(&mut self.dumped, self.level, own, plan, true);
            self.planned.remove(&own);
        }
    }

    /// The run is over.
    pub(crate) fn finish(&mut self) -> Dumped {
        std::mem::take(&mut self.dumped)
    }
}

fn is_marked(mask: u64, argument: usize) -> bool {
    argument < AMBIGUOUS && mask >> argument & 1 == 1
}

fn take(dumped: &mut Dumped, level: u8, own: u64, plan: &Plan, is_after: bool) {
    for (argument, (tag, tensor)) in plan.tensors.iter().enumerate() {
        let is_marked = is_marked(plan.mask, argument);
        let is_its_time = match *tag {
            tag::INPUT => !is_after,
            tag::OUTPUT | tag::OUTPUT_EXISTING => is_after,
            _ => true,
        };
        if !is_its_time || (level == 1 && !is_marked) {
            continue;
        }
        let offset = dumped.bytes.len();
        let is_wanted = (level != 3 || is_marked) && !tensor.is_empty();
        let gathered = if is_wanted { gather(&mut dumped.bytes, tensor) } else { Ok(true) };
        if gathered.is_err() {
            dumped.bytes.truncate(offset);
            dumped.unreadable.insert((own, argument));
        }
        let content = Content::Tensor {
            tensor: *tensor,
            offset,
            bytes: dumped.bytes.len() - offset,
            is_truncated: gathered != Ok(true),
        };
        dumped.entries.push(DumpEntry { own, argument, tag: *tag, is_after, content });
    }
    if is_after {
        return;
    }
    for (at, value) in plan.scalars.iter().enumerate() {
        let argument = plan.tensors.len() + at;
        if level == 1 && !is_marked(plan.mask, argument) {
            continue;
        }
        // A mark for everything means each one.
        let is_ambiguous = plan.mask != u64::MAX && plan.mask >> (AMBIGUOUS + at.min(15)) & 1 == 1;
        let content = Content::Scalar { value: *value, is_ambiguous };
        dumped.entries.push(DumpEntry { own, argument, tag: tag::INPUT, is_after, content });
    }
}

/// Copies the elements of a view, side by side; `false`: it reaches beyond its buffer, or there is no more room.
fn gather(bytes: &mut Vec<u8>, tensor: &ChipTensor) -> Result<bool, NoMemory> {
    let (Some(shape), Some(element)) = (tensor.shape(), element_of(tensor.dtype)) else {
        return Ok(false);
    };
    let element = element.bytes();
    let end = tensor.reach().and_then(|reach| reach.end.checked_mul(element));
    let is_inside = tensor.address.checked_add(tensor.bytes).is_some()
        && end.is_some_and(|end| end <= tensor.bytes);
    let more = shape.iter().fold(element, |more, extent| more.saturating_mul((*extent).into()));
    let is_room = usize::try_from(more).is_ok_and(|more| more <= MOST_BYTES - bytes.len());
    if tensor.address == 0 || !is_inside || !is_room {
        return Ok(false);
    }
    // Neighbouring elements are copied at once.
    let (outer, run) = match shape.split_last() {
        Some((extent, outer)) if tensor.strides[outer.len()] == 1 => (outer, *extent),
        _ => (shape, 1),
    };
    let run = usize::try_from(u64::from(run) * element).unwrap_or(0);
    let mut index = [0_u32; crate::wire::MAX_DIMS];
    for _ in 0..outer.iter().map(|extent| u64::from(*extent)).product() {
        let sides = index.iter().zip(tensor.strides);
        let at: u64 = sides.map(|(at, stride)| u64::from(*at) * u64::from(stride)).sum();
        append(bytes, tensor.address + (tensor.start_offset + at) * element, run)?;
        step(&mut index, outer);
    }
    Ok(true)
}

/// The next index in row-major order.
fn step(index: &mut [u32], shape: &[u32]) {
    for (at, extent) in index.iter_mut().zip(shape).rev() {
        *at += 1;
        if *at < *extent {
            return;
        }
        *at = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::{Content, Dump, Plan};
    use crate::wire::{ChipTensor, tag};

    #[test]
    fn a_view_is_gathered_in_its_order_and_outputs_come_last() {
        let memory: Vec<u8> = (0..24).collect();
        let address = memory.as_ptr().expose_provenance() as u64;
        let mut view = ChipTensor::dense(address, 5, &[4, 6]);
        (view.start_offset, view.shapes[0], view.shapes[1]) = (7, 2, 3);
        let mut beyond = view;
        beyond.start_offset = 20;
        let tensors = vec![(tag::INPUT, view), (tag::OUTPUT_EXISTING, beyond)];
        let mut dump = Dump::new(2);
        dump.plan(9, Plan { calls: 2, tensors, scalars: vec![77], mask: 0 });
        dump.begin(9);
        dump.begin(9);
        dump.end(9);
        dump.end(9);
        dump.end(9);
        let dumped = dump.finish();
        assert_eq!(dumped.bytes, [7, 8, 9, 13, 14, 15]);
        let stages: Vec<_> =
            dumped.entries.iter().map(|entry| (entry.argument, entry.is_after)).collect();
        assert_eq!(stages, [(0, false), (2, false), (1, true)]);
        let Content::Tensor { is_truncated, bytes, .. } = dumped.entries[2].content else {
            panic!("a tensor")
        };
        assert!(is_truncated && bytes == 0, "nothing is read beyond the buffer");
    }

    #[test]
    fn marks_choose_at_level_1_and_contents_at_level_3() {
        let memory = [1_u8; 8];
        let tensor = ChipTensor::dense(memory.as_ptr().expose_provenance() as u64, 5, &[8]);
        let plan = |mask| Plan {
            calls: 1,
            tensors: vec![(tag::INPUT, tensor), (tag::INPUT, tensor)],
            scalars: vec![5],
            mask,
        };
        let run = |level, mask| {
            let mut dump = Dump::new(level);
            dump.plan(1, plan(mask));
            dump.begin(1);
            dump.end(1);
            let dumped = dump.finish();
            (dumped.entries.len(), dumped.bytes.len())
        };
        assert_eq!(run(1, 0), (0, 0));
        assert_eq!(run(1, 0b110), (2, 8));
        assert_eq!(run(2, 0), (3, 16));
        assert_eq!(run(3, 0b1), (3, 8));
    }
}
