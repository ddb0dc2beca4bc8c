//! Whether the tasks of a host's graph, and launches of a session, call kernels with what these take.
//!
//! A kernel is trusted with its words, so that a zero in the place of an address, or more elements than an allocation has, would end the
//! process or overwrite the runtime. [`pto_graph::signature`] has the rules; this file knows the memory of a device. Transfers and tasks
//! that bring the address of their code are not looked at: nobody but their author knows what they take.

use std::fmt;

use pto_abi::{CoreKind, FuncId, GmAddr};
use pto_graph::signature::{Arguments, Place, Signature};

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
    let mut accepted = (u64::MAX, 0, 0);
    for (number, task) in tasks.iter().enumerate() {
        let call = (task.kernel, task.func_id, task.kind);
        if task.arg_count == 0 && call == accepted {
            continue;
        }
        let (first, count) = (task.first_arg as usize, usize::from(task.arg_count));
        let words = args.get(first..first.saturating_add(count));
        let (Ok(kind), 0, Some(words)) = (CoreKind::try_from(task.kind), task.kernel, words) else {
            continue;
        };
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
            accepted = call;
        }
    }
    image.set_checked(now);
    Ok(())
}

/// Checks one call of a kernel in so many blocks; what is wrong with it.
pub(crate) fn check_call(
    (signature, kind): (&Signature<'_>, CoreKind),
    (words, blocks): (&[u64], u32),
    memory: &Memory,
) -> Result<(), String> {
    let call = DeviceCall { words, blocks, memory };
    signature.check(kind, &call).map_err(|defect| defect.tell(signature, &call).to_string())
}

/// Words, and the memory that they may point into.
struct DeviceCall<'c> {
    words: &'c [u64],
    blocks: u32,
    memory: &'c Memory,
}

impl DeviceCall<'_> {
    fn allocation(&self, at: usize) -> Option<(GmAddr, u64)> {
        self.memory.allocation(GmAddr(*self.words.get(at)?))
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

    fn place(&self, at: usize) -> Place {
        self.allocation(at).map_or(Place::Nowhere, |(start, bytes)| Place::Memory {
            offset: self.word(at) - start.0,
            bytes,
        })
    }

    fn tell_nowhere(&self, at: usize, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word(at);
        write!(
            to,
            "{word:#x} lies in no allocation of the device; give the address of memory that was allocated and is not freed"
        )
    }

    fn tell_memory(&self, at: usize, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.allocation(at) {
            Some((start, _)) => write!(to, "the allocation at {start}"),
            None => to.write_str("an allocation that was freed"),
        }
    }
}
