//! Ring sizes: whether a program can run with given ones, and the least that suffice.
//!
//! Nothing is estimated: the firmware's builder submits the program on rings of that size while tasks complete as late as
//! they may ([`crate::rig::Lazy`]), and says itself what it refuses and what it would have needed.

use std::collections::VecDeque;

use pto_abi::stream::{RingKind, recording_words};
use pto_abi::sync::Ordering;
use pto_abi::{BuildMode, Fault};
use pto_aicpu_fw::blame::Blame;
use serde::Serialize;

use crate::memory_map::Addresses;
use crate::program::{Action, Program, Step};
use crate::rig::{Cores, Lazy, Rings, Words, Zeros};
use crate::submit::{HostAccess, Refused, Submitter};

/// One ring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RingReport {
    /// Its name, such as `window` or `heap 1` (by depth of scopes).
    pub name: String,
    /// What it counts: slots, words, chunks, entries, bytes.
    pub unit: &'static str,
    /// Units that it was given.
    pub given: u64,
    /// Units with which the program runs, as few as the runtime knows to do; zero: it does not use the ring.
    pub needs: u64,
}

/// Why a program does not get through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) refused: Refused,
    pub(crate) blame: Blame,
}

/// What a run used.
#[derive(Clone, Debug)]
pub(crate) struct Used {
    /// By `RingKind`, then the heaps by depth.
    pub(crate) needed: Vec<u64>,
    pub(crate) high_water: Vec<u64>,
}

/// Units of a ring, by its number.
pub(crate) fn unit(ring: usize) -> &'static str {
    ["slots", "words", "chunks", "entries"].get(ring).copied().unwrap_or("bytes")
}

/// The name of a ring, by its number.
pub(crate) fn name(ring: usize) -> String {
    let heap = usize::from(RingKind::HEAP.get());
    match ring.checked_sub(heap) {
        Some(depth) => format!("heap {depth}"),
        None => u8::try_from(ring)
            .ok()
            .and_then(|ring| RingKind::try_from(ring).ok())
            .map_or_else(|| format!("ring {ring}"), |ring| ring.name().to_owned()),
    }
}

/// Reads the marks that a builder has left.
pub(crate) fn used(words: &Words) -> Used {
    let lines = &words.header().rings;
    let read = |word: &pto_abi::sync::AtomicU64| word.load(Ordering::Relaxed);
    Used {
        needed: lines.iter().map(|line| read(&line.needed)).collect(),
        high_water: lines.iter().map(|line| read(&line.high_water)).collect(),
    }
}

/// Submits a program on these rings.
pub(crate) fn attempt(
    (program, addresses): (&Program, &Addresses),
    cores: Cores,
    rings: &Rings,
) -> Result<Used, Trouble> {
    let words = Words::new(rings);
    let host = Lazy { words: &words, alive: VecDeque::new() };
    let trouble = |refused: Refused, blame| Trouble { refused, blame };
    let done = words.with_stream((cores, addresses.heap), &[], &Zeros, host, |stream| {
        let submitter = Submitter::new((program, addresses), stream, HostAccess::AsItIs);
        let ended = submitter
            .submit()
            .and_then(|()| stream.finish().map_err(|fault| Refused { fault, step: None }));
        ended.map_err(|refused| trouble(refused, stream.blame(refused.fault)))
    });
    let at_start = |fault| trouble(Refused { fault, step: None }, Blame::of(fault));
    done.map_err(at_start)??;
    Ok(used(&words))
}

/// How often sizes are raised to what the builder asks for, before they are doubled.
const ROUNDS_BEFORE_DOUBLING: usize = 64;
/// And how often in all.
const MOST_ROUNDS: usize = 96;

/// The least rings with which the builder gets through: it is asked again with what it asked for. `ample`: what it used
/// of rings without bounds. `None`: something else keeps it from running.
pub(crate) fn least(
    program: (&Program, &Addresses),
    cores: Cores,
    given: &Rings,
    ample: &Used,
) -> Option<Rings> {
    // While schedulers wait, nothing retires: all that is ever in use has to fit.
    let start = match given.build_mode {
        BuildMode::SEQUENTIAL => &ample.high_water,
        _ => &ample.needed,
    };
    let of = |ring: RingKind| start[usize::from(ring.get())];
    let heaps = &start[usize::from(RingKind::HEAP.get())..];
    let deepest = heaps.iter().rposition(|bytes| *bytes > 0).map_or(1, |depth| depth + 1);
    // While tasks are kept back, how many edges and entries there are depends on what has completed: here nothing has.
    let at_once = |ring: RingKind| match given.build_mode {
        BuildMode::SEQUENTIAL => of(ring),
        _ => 0,
    };
    let mut rings = Rings {
        window: power(of(RingKind::WINDOW))?,
        arg_words: of(RingKind::ARGS).max(1),
        edge_chunks: at_once(RingKind::EDGES).max(1),
        map_entries: power(at_once(RingKind::MAP))?.max(256),
        heap_rings: u32::try_from(deepest).ok()?.max(given.heap_rings),
        heap_bytes: heaps.iter().copied().max().unwrap_or(0).next_multiple_of(64),
        ..*given
    };
    let first = rings;
    for round in 0..MOST_ROUNDS {
        let Err(trouble) = attempt(program, cores, &rings) else {
            let gets_through = |rings: &Rings| attempt(program, cores, rings).is_ok();
            let mut too_small = first.arg_words;
            if is_estimated(program.0) {
                too_small = 0;
                let half = |rings: &Rings| Rings { window: rings.window / 2, ..*rings };
                while rings.window > 1 && gets_through(&half(&rings)) {
                    rings = half(&rings);
                }
            }
            tighten(&mut rings, too_small, |rings| &mut rings.arg_words, &gets_through);
            tighten(&mut rings, first.edge_chunks, |rings| &mut rings.edge_chunks, &gets_through);
            return Some(rings);
        };
        rings.raise(&trouble, round < ROUNDS_BEFORE_DOUBLING)?;
    }
    None
}

/// Whether slots and words that suffice may be more than the least: what the program itself reads and writes counts as
/// tasks where nothing runs, and who waits for later tasks for longer than it does (`aicpu-fw/src/stream/unpublished.rs`).
fn is_estimated(program: &Program) -> bool {
    let waits =
        |step: &Step| matches!(step.action, Action::Get(_) | Action::Set(..) | Action::Edge { .. });
    program.steps.iter().any(waits)
}

/// Halves the way from a size that was too small to one that suffices.
fn tighten(
    rings: &mut Rings,
    too_small: u64,
    size: fn(&mut Rings) -> &mut u64,
    gets_through: &impl Fn(&Rings) -> bool,
) {
    let (mut low, mut high) = (too_small, *size(rings));
    while low + 1 < high {
        let middle = low.midpoint(high);
        *size(rings) = middle;
        if gets_through(rings) { high = middle } else { low = middle }
    }
    *size(rings) = high;
}

impl Rings {
    /// Makes larger what is too small; `None`: it is not a ring that is wanting.
    fn raise(&mut self, trouble: &Trouble, patiently: bool) -> Option<()> {
        let suffices = trouble.blame.detail[1];
        let larger = |size: u64| suffices.max(if patiently { size + 1 } else { 2 * size });
        let ring = match trouble.refused.fault {
            Fault::STREAM_WINDOW_RING => 0,
            Fault::STREAM_ARGS_RING => 1,
            Fault::STREAM_EDGES_RING => 2,
            Fault::STREAM_MAP_RING => 3,
            Fault::STREAM_HEAP_RING => 4,
            Fault::STREAM_SCOPE_DEPTH if self.heap_rings < 8 => {
                self.heap_rings += 1;
                return Some(());
            }
            // A record takes words with the window, and no more tasks than it has slots.
            Fault::STREAM_RECORDING_FULL => {
                self.window = power(2 * u64::from(self.window))?;
                self.recording_words = usize::try_from(recording_words(self.window)).ok()?;
                return Some(());
            }
            _ => return None,
        };
        match ring {
            0 => self.window = power(larger(self.window.into()))?,
            1 => self.arg_words = larger(self.arg_words),
            2 => self.edge_chunks = larger(self.edge_chunks),
            3 => self.map_entries = power(larger(self.map_entries.into()))?,
            _ => self.heap_bytes = larger(self.heap_bytes).next_multiple_of(64),
        }
        Some(())
    }
}

fn power(size: u64) -> Option<u32> {
    u32::try_from(size.max(1).checked_next_power_of_two()?).ok()
}

/// What is reported of each ring: those that a program uses, and how large they were given.
pub(crate) fn report(given: &Rings, least: &Rings, ample: &Used) -> Vec<RingReport> {
    let sizes = |rings: &Rings| {
        [u64::from(rings.window), rings.arg_words, rings.edge_chunks, rings.map_entries.into()]
    };
    let (have, need) = (sizes(given), sizes(least));
    let flat = have.iter().zip(need).enumerate().map(|(ring, (given, needs))| RingReport {
        name: name(ring),
        unit: unit(ring),
        given: *given,
        needs: if ample.high_water[ring] == 0 { 0 } else { needs },
    });
    let heap = usize::from(RingKind::HEAP.get());
    let heaps = ample.needed[heap..].iter().enumerate().filter(|(_, needs)| **needs > 0);
    let heaps = heaps.map(|(depth, needs)| RingReport {
        name: name(heap + depth),
        unit: unit(heap),
        given: if depth < given.heap_rings as usize { given.heap_bytes } else { 0 },
        needs: match given.build_mode {
            BuildMode::SEQUENTIAL => ample.high_water[heap + depth],
            _ => *needs,
        },
    });
    flat.chain(heaps).collect()
}
