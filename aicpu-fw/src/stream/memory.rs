//! The region `stream` of an arena, checked: nothing that the host says of its rings is trusted.

use pto_abi::arena::Arena;
use pto_abi::runtime::Region;
use pto_abi::stream::{MAX_HEAP_RINGS, StreamCapacities, StreamPlan};
use pto_abi::sync::Ordering;
use pto_abi::{Fault, GmAddr};

use super::FEWEST_ENTRIES;
use super::map::{MapMemory, TensorMap};
use super::storage::StreamMemory;
use crate::blame::Blame;
use crate::state::SharedState;

impl<'a> StreamMemory<'a> {
    /// Checks the region at `at`, and empties the tensor map.
    ///
    /// # Errors
    /// `RUNTIME_REGION_STREAM`, `STREAM_WINDOW_SIZE`, `STREAM_MAP_SIZE`, `STREAM_HEAP_SIZE`, `STREAM_RING_SIZE`, with what was
    /// found.
    pub fn accept(arena: &Arena<'a>, at: Region, state: &SharedState<'a>) -> Result<Self, Blame> {
        let unusable = Blame::of(Fault::RUNTIME_REGION_STREAM).detail(at.bytes, 0);
        let header = arena.stream_header(at).ok_or(unusable)?;
        // Read once: what is checked is what is used.
        let sizes = header.capacities();
        let arg_words = header.arg_words.load(Ordering::Relaxed);
        let edge_chunks = header.edge_chunks.load(Ordering::Relaxed);
        check(&sizes, state)?;
        check_ring(arg_words, state.payloads.len())?;
        check_ring(edge_chunks, state.chunks.len())?;
        let plan = StreamPlan::of(&sizes).filter(|plan| plan.bytes <= at.bytes).ok_or(unusable)?;
        let window = arena.region_window(at, Fault::RUNTIME_REGION_STREAM).map_err(Blame::of)?;
        let entries = sizes.map_entries as usize;
        let map = MapMemory {
            tensors: window.live_slice(plan.tensors, plan.rows).ok_or(unusable)?,
            tensor_index: window.live_slice(plan.tensor_index, plan.rows).ok_or(unusable)?,
            cells: window.live_slice(plan.cells, entries).ok_or(unusable)?,
            cell_index: window.live_slice(plan.cell_index, entries).ok_or(unusable)?,
            grids: window.live_slice(plan.grids, plan.rows).ok_or(unusable)?,
            entries: window.live_slice(plan.entries, entries).ok_or(unusable)?,
        };
        let first_task = header.first_task.load(Ordering::Relaxed).into();
        let map = TensorMap::new(map, first_task).ok_or(unusable)?;
        let notes = window.live_slice(plan.slots, sizes.window as usize).ok_or(unusable)?;
        Ok(Self {
            header,
            notes,
            map,
            recordings: window.live_slice(plan.recordings.0, plan.recordings.1).ok_or(unusable)?,
            arg_words,
            edge_chunks,
            heap_rings: sizes.heap_rings as usize,
            heap_bytes: sizes.heap_bytes,
            heap: GmAddr(window.address().0).offset(plan.heap),
            first_task,
        })
    }
}

fn check(sizes: &StreamCapacities, state: &SharedState<'_>) -> Result<(), Blame> {
    let refuse = |fault, found: u64, bound: u64| Err(Blame::of(fault).detail(found, bound));
    let tasks = state.tasks.len() as u64;
    if !sizes.window.is_power_of_two() || u64::from(sizes.window) > tasks {
        return refuse(Fault::STREAM_WINDOW_SIZE, sizes.window.into(), tasks);
    }
    if !sizes.map_entries.is_power_of_two() || sizes.map_entries < FEWEST_ENTRIES {
        return refuse(Fault::STREAM_MAP_SIZE, sizes.map_entries.into(), FEWEST_ENTRIES.into());
    }
    if sizes.heap_rings == 0 || sizes.heap_rings as usize > MAX_HEAP_RINGS {
        return refuse(Fault::STREAM_HEAP_SIZE, sizes.heap_rings.into(), MAX_HEAP_RINGS as u64);
    }
    if !sizes.heap_bytes.is_multiple_of(64) {
        return refuse(Fault::STREAM_HEAP_SIZE, sizes.heap_bytes, 64);
    }
    Ok(())
}

fn check_ring(units: u64, held: usize) -> Result<(), Blame> {
    if units == 0 || units > held as u64 {
        return Err(Blame::of(Fault::STREAM_RING_SIZE).detail(units, held as u64));
    }
    Ok(())
}
