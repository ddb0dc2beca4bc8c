//! Whether the tasks of a host's graph, launches of a session, and the tasks of builder programs of this process (`builder_calls.rs`) call kernels with what
//! these take.
//!
//! A kernel is trusted with its words, so that a zero instead of an address, or more elements than an allocation has, would end the
//! process or overwrite the runtime. [`pto_graph::signature`] has the rules; this file knows the memory of a device. Transfers and tasks
//! that bring the address of their code are not checked: only their author knows what they take.

use std::collections::BTreeMap;
use std::fmt;

use pto_abi::{CoreKind, FuncId, GmAddr};
use pto_graph::PLACEHOLDER;
use pto_graph::signature::{ArgumentMemory, Arguments, Signature};

use crate::error::Error;
use crate::image::{Checked, GraphImage};
use crate::kernels::KernelTable;
use crate::memory::Memory;

/// Checks a graph, unless it was checked before and nothing was freed or registered since. What contradicts itself is left to the
/// firmware, which refuses it.
pub(crate) fn check_graph(
    image: &GraphImage,
    kernels: &KernelTable,
    memory: &Memory,
) -> Result<(), Error> {
    let [memory_id, freed] = memory.generation();
    let now = Checked { memory: memory_id, freed, kernels: kernels.version() };
    if image.checked() == Some(now) {
        return Ok(());
    }
    let Some((tasks, args)) = image.tasks() else { return Ok(()) };
    // Neighbours mostly run the same kernel.
    let mut known: Option<(u16, Option<Signature<'_>>)> = None;
    // A call without arguments that was accepted: another one of the same kernel is the same call.
    let mut accepted = None;
    for (number, task) in tasks.iter().enumerate() {
        let call = (task.kernel, task.func_id, task.kind);
        if task.arg_count == 0 && accepted == Some(call) {
            continue;
        }
        if task.kernel != 0 {
            let known = kernels.kinds().check_code(FuncId(task.func_id), GmAddr(task.kernel));
            known.map_err(|what| Error::Call { what: format!("task {number}: {what}") })?;
            continue;
        }
        let (first, count) = (task.first_arg as usize, usize::from(task.arg_count));
        let words = args.get(first..first.saturating_add(count));
        let (Ok(kind), Some(words)) = (CoreKind::try_from(task.kind), words) else { continue };
        let signature = match known {
            Some((func_id, signature)) if func_id == task.func_id => signature,
            _ => kernels.signature(FuncId(task.func_id)),
        };
        known = Some((task.func_id, signature));
        if let Some(signature) = signature {
            check_call((&signature, kind), (words, 1), memory)
                .map_err(|what| Error::Call { what: format!("task {number}: {what}") })?;
        }
        if count == 0 {
            accepted = Some(call);
        }
    }
    image.set_checked(now);
    Ok(())
}

/// Checks one call of a kernel in this many blocks; what is wrong with it.
pub(crate) fn check_call(
    (signature, kind): (&Signature<'_>, CoreKind),
    (words, blocks): (&[u64], u32),
    memory: &Memory,
) -> Result<(), String> {
    DeviceCall { words, blocks, memory, builder: None }.check(signature, kind)
}

/// Words, and the memory that they may point into.
pub(crate) struct DeviceCall<'c> {
    pub(crate) words: &'c [u64],
    pub(crate) blocks: u32,
    pub(crate) memory: &'c Memory,
    /// What a builder program says in addition to its words.
    pub(crate) builder: Option<OfBuilder<'c>>,
}

/// What a builder program says of a call in addition to its words.
#[derive(Clone, Copy)]
pub(crate) struct OfBuilder<'c> {
    /// The arguments, as many as there are words.
    pub(crate) given: &'c [ArgumentValue],
    /// Tensors on the heap of the run.
    pub(crate) heap: &'c Heap,
    /// Whether a replay gives the numbers.
    pub(crate) is_recorded: bool,
}

/// An argument of a task.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ArgumentValue {
    /// A word.
    Word(u64),
    /// The word that a replay gives.
    Bound(u32),
    /// A tensor.
    View(ArgumentView),
}

/// A tensor that is an argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArgumentView {
    /// Address of the tensor's first byte.
    pub(crate) base: GmAddr,
    /// Size of the tensor in bytes.
    pub(crate) bytes: u64,
    /// Address of the view's first element.
    pub(crate) address: GmAddr,
}

/// Tensors on the heap of a run: where they begin, and their bytes.
#[derive(Default)]
pub(crate) struct Heap(BTreeMap<u64, u64>);

impl Heap {
    /// A tensor that begins there. Those that had the memory before it are gone.
    pub(crate) fn add(&mut self, GmAddr(start): GmAddr, bytes: u64) {
        let end = start.saturating_add(bytes);
        while let Some((&before, _)) =
            self.0.range(..end).next_back().filter(|(at, bytes)| **at + **bytes > start)
        {
            self.0.remove(&before);
        }
        self.0.insert(start, bytes);
    }

    fn allocation(&self, GmAddr(address): GmAddr) -> Option<(GmAddr, u64)> {
        let (start, bytes) = self.0.range(..=address).next_back()?;
        (address - start < *bytes).then_some((GmAddr(*start), *bytes))
    }
}

impl DeviceCall<'_> {
    /// Whether a kernel takes it; what is wrong with it.
    pub(crate) fn check(&self, signature: &Signature<'_>, kind: CoreKind) -> Result<(), String> {
        signature.check(kind, self).map_err(|defect| defect.describe(signature, self).to_string())
    }

    fn view(&self, at: usize) -> Option<&ArgumentView> {
        match self.builder?.given.get(at)? {
            ArgumentValue::View(view) => Some(view),
            ArgumentValue::Word(_) | ArgumentValue::Bound(_) => None,
        }
    }

    /// What a word is an address in.
    fn allocation(&self, at: usize) -> Option<(GmAddr, u64)> {
        self.allocation_of(GmAddr(*self.words.get(at)?))
    }

    fn allocation_of(&self, address: GmAddr) -> Option<(GmAddr, u64)> {
        let of_user = self.memory.allocation(address);
        of_user.or_else(|| self.builder?.heap.allocation(address))
    }

    /// Where a tensor begins, and how many bytes of it are there.
    fn tensor(&self, view: &ArgumentView) -> Option<(GmAddr, u64)> {
        if view.base.0 & PLACEHOLDER == PLACEHOLDER {
            // Of a recording: it has its memory in a replay.
            return Some((view.base, view.bytes));
        }
        let (start, bytes) = self.allocation_of(view.base)?;
        Some((view.base, view.bytes.min(bytes - (view.base.0 - start.0))))
    }

    fn word(&self, at: usize) -> u64 {
        self.words.get(at).copied().unwrap_or(0)
    }
}

impl Arguments for DeviceCall<'_> {
    fn words(&self) -> &[u64] {
        self.words
    }

    fn blocks(&self) -> u32 {
        self.blocks
    }

    fn memory_of(&self, at: usize) -> ArgumentMemory {
        let found = match self.view(at) {
            Some(view) => self.tensor(view).map(|found| (view.address, found)),
            None => self.allocation(at).map(|found| (GmAddr(self.word(at)), found)),
        };
        found.map_or(ArgumentMemory::Nowhere, |(address, (start, bytes))| ArgumentMemory::Memory {
            offset: address.0.wrapping_sub(start.0),
            bytes,
        })
    }

    fn is_view(&self, at: usize) -> bool {
        self.view(at).is_some()
    }

    fn has_sizes(&self) -> bool {
        self.builder.is_none_or(|builder| !builder.is_recorded)
    }

    fn is_vouched_for(&self) -> bool {
        self.builder.is_some()
    }

    fn describe_nowhere(&self, at: usize, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.view(at).map_or_else(|| self.word(at), |view| view.base.0);
        write!(
            to,
            "{word:#x} lies in no allocation of the device; give the address of memory that was allocated and is not freed"
        )
    }

    fn describe_memory(&self, at: usize, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((start, _)) = self.view(at).and_then(|view| self.tensor(view)) {
            return write!(to, "the tensor at {start}");
        }
        match self.allocation(at) {
            Some((start, _)) => write!(to, "the allocation at {start}"),
            None => to.write_str("an allocation that was freed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Heap;
    use pto_abi::GmAddr;

    #[test]
    fn memory_of_a_heap_belongs_to_its_last_tensor() {
        let mut heap = Heap::default();
        for start in [0, 64, 128] {
            heap.add(GmAddr(start), 64);
        }
        // The ring begins again: both tensors that had the memory are gone.
        heap.add(GmAddr(32), 64);
        let found = [0, 31, 32, 95, 96, 128, 191, 192].map(|at| heap.allocation(GmAddr(at)));
        let (new, old) = (Some((GmAddr(32), 64)), Some((GmAddr(128), 64)));
        assert_eq!(found, [None, None, new, new, None, old, old, None]);
    }
}
