//! States: everything that the rest of a run depends on, as one number. A search over all orders of steps that comes to a state
//! again need not go on from there.
//!
//! What is left out is not read again: sums for reports, the trace, logs, the builder's tensor map and recordings once
//! it has returned. While a streaming builder is under way its own state is part: what it has in its fields
//! (`Stream::report_state`), its memory, and the results that its program got, of which the program's stack is a function. Times are part of a state; in a search the clock does not advance as long as an agent has something to do.

use std::hash::{Hash, Hasher};
use std::mem::offset_of;

use pto_abi::arena::Arena;
use pto_abi::handshake::Handshake;
use pto_abi::runtime::{Runtime, region};
use pto_abi::stream::{BLOCK_WORDS, StreamPlan};

use super::device::VirtualDevice;
use super::digest::Digest;

impl VirtualDevice {
    /// Hashes the machine and the memory of the run.
    pub(super) fn hash_state(&self, into: &mut Digest, builder: Builder) {
        let Self {
            launch: _,
            options: _,
            chooser: _,
            agenda,
            cores,
            naps,
            shortest_nap_ns,
            ledger,
            trace: _,
            tracer: _,
            account: _,
            // The model of stale lines is for runs that are not searched.
            lines: _,
            block_ledger,
            busy_ns: _,
            tasks_run: _,
            builder_ns,
            // For the report only.
            built_ns: _,
            // As is trouble.
            corrupts: _,
            build_noticed,
            fault_noticed,
            doorbells_rung,
            beats: _,
            start_ns: _,
            // A search is over one device.
            member: _,
            fast: _,
        } = self;
        (builder_ns, build_noticed, fault_noticed, doorbells_rung).hash(into);
        agenda.hash_state(into);
        cores.iter().for_each(|core| core.hash_state(into));
        (naps, shortest_nap_ns).hash(into);
        ledger.hash_state(into);
        block_ledger.hash_state(into);
        self.hash_memory(into, builder);
    }

    fn hash_memory(&self, into: &mut Digest, builder: Builder) {
        let arena = &self.launch.arena;
        let mut bytes = Vec::new();
        for (offset, count) in live_ranges(arena, self.launch.workers.len(), builder) {
            bytes.resize(count, 0);
            // The arena was checked: every range is in GM.
            arena.gm().read_bytes(offset, &mut bytes).unwrap_or_default();
            into.write(&bytes);
        }
    }
}

/// Whether a builder is under way, or to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Builder {
    Gone,
    UnderWay,
}

/// Everything that schedulers, cores and kernels use of GM, and what only the builder does while it is under way: offsets in GM,
/// and sizes.
pub(super) fn live_ranges(
    arena: &Arena<'_>,
    workers: usize,
    builder: Builder,
) -> Vec<(u64, usize)> {
    let (gm, window, regions) = (arena.gm(), arena.window(), arena.regions());
    let start = window.address().0 - gm.address().0;
    let first = offset_of!(Runtime, progress);
    let lines = offset_of!(Runtime, workers) + workers * size_of::<Handshake>();
    let of_region = |index: usize| (regions[index].offset, regions[index].bytes);
    let mut ranges = vec![(first as u64, (lines - first) as u64)];
    ranges.extend([region::TASKS, region::PAYLOADS, region::EDGES, region::READY].map(of_region));
    let (stream, bytes) = of_region(region::STREAM);
    if bytes > 0 {
        let header = arena.stream_header(regions[region::STREAM]);
        match header.and_then(|header| StreamPlan::of(&header.capacities())) {
            Some(plan) => {
                // Up to the words of parts of the workers that there are, and what kernels have in the heap.
                ranges.push((stream, plan.parts + 8 * (BLOCK_WORDS * workers) as u64));
                ranges.push((stream + plan.heap, bytes.saturating_sub(plan.heap)));
                // The tensor map. The words of recordings after it follow from the results that the program got.
                let (recordings, _) = plan.recordings;
                if builder == Builder::UnderWay {
                    ranges.push((stream + plan.tensors, recordings - plan.tensors));
                }
            }
            None => ranges.push((stream, bytes)),
        }
    }
    // What kernels read and write is after the arena.
    ranges.push((window.bytes(), gm.bytes() - start - window.bytes()));
    let size = |bytes: u64| usize::try_from(bytes).unwrap_or(0);
    ranges.into_iter().map(|(offset, bytes)| (start + offset, size(bytes))).collect()
}
