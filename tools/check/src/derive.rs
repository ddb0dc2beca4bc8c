//! The edges that the runtime derives: the firmware's builder is given the whole program on rings that hold all of it.

use std::cell::RefCell;

use pto_abi::limits::MAX_ARGS;
use pto_abi::stream::{MAX_HEAP_RINGS, recording_words};
use pto_abi::{BuildMode, Fault};
use pto_aicpu_fw::blame::Blame;

use crate::memory_map::{Addresses, HEAPS};
use crate::program::{Argument, Program, Task};
use crate::rig::{Cores, Rings, Watch, Words, Zeros};
use crate::rings::{Trouble, Used, used};
use crate::submit::{HostAccess, Refused, Submitter};

/// The most words of recordings that are provided for.
const MOST_RECORDING_WORDS: usize = 1 << 27;

/// What the builder made of a program.
pub(crate) struct Derived {
    /// Producers and consumers, as numbers of nodes.
    pub(crate) edges: Vec<(u32, u32)>,
    /// What it used of its rings.
    pub(crate) used: Used,
}

/// Submits `nodes` nodes of a program; `Err`: what the builder refuses.
pub(crate) fn derive(
    (program, addresses): (&Program, &Addresses),
    nodes: usize,
    cores: Cores,
) -> Result<Derived, Trouble> {
    let mut rings = ample(program, nodes);
    loop {
        let words = Words::new(&rings);
        let edges = RefCell::new(Vec::new());
        let heap = addresses.heap;
        let done = words.with_stream((cores, heap), &[], &Zeros, Watch(&edges), |stream| {
            let submitter = Submitter::new((program, addresses), stream, HostAccess::AsTask);
            let ended = submitter
                .submit()
                .and_then(|()| stream.finish().map_err(|fault| Refused { fault, step: None }));
            ended.map_err(|refused| (refused, stream.blame(refused.fault)))
        });
        let at_start = |fault| (Refused { fault, step: None }, Blame::of(fault));
        let Err((refused, blame)) = done.unwrap_or_else(|fault| Err(at_start(fault))) else {
            return Ok(Derived { edges: edges.into_inner(), used: used(&words) });
        };
        // How many there are is known when they have been given out.
        match refused.fault {
            Fault::STREAM_EDGES_RING => rings.edge_chunks *= 4,
            Fault::STREAM_MAP_RING if rings.map_entries < 1 << 28 => rings.map_entries *= 4,
            Fault::STREAM_RECORDING_FULL if rings.recording_words < MOST_RECORDING_WORDS => {
                rings.recording_words *= 4;
            }
            _ => return Err(Trouble { refused, blame }),
        }
    }
}

/// Rings that hold all tasks at once.
pub(crate) fn ample(program: &Program, nodes: usize) -> Rings {
    let slots = nodes.max(program.tasks.len()).max(1).next_power_of_two();
    // The words of a chain are as many as a task has at most.
    let words = |task: &Task| if task.is_chain() { MAX_ARGS } else { task.args.len() };
    let longest = program.tasks.iter().map(words).max().unwrap_or(0).max(1);
    let has_recordings = program.tasks.len() != nodes
        || program
            .tasks
            .iter()
            .any(|task| task.args.iter().any(|arg| matches!(arg, Argument::BoundScalar(_))));
    let window = u32::try_from(slots).unwrap_or(1 << 25);
    let for_recordings = usize::try_from(recording_words(window)).unwrap_or(MOST_RECORDING_WORDS);
    Rings {
        window,
        arg_words: (nodes as u64 + 1) * (longest as u64 + 1),
        edge_chunks: 1024.max(slots as u64 / 8),
        map_entries: u32::try_from(slots.clamp(1024, 1 << 24)).unwrap_or(1 << 24),
        heap_rings: u32::try_from(MAX_HEAP_RINGS).unwrap_or(1),
        heap_bytes: HEAPS / MAX_HEAP_RINGS as u64,
        recording_words: if has_recordings { for_recordings } else { 8192 },
        // Nothing completes: a ring that is full is a fault at once.
        build_mode: BuildMode::SEQUENTIAL,
    }
}
