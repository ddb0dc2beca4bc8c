//! How much of its rings a streaming run used, and what it would have needed.

use pto_abi::BuildMode;
use pto_abi::arena::Arena;
use pto_abi::runtime::region;
use pto_abi::stream::RingKind;
use pto_abi::sync::Ordering;

/// One ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingUse {
    /// The ring's name, such as `window` or `heap 1` (by depth of scopes).
    pub name: String,
    /// What it counts: slots, words, chunks, entries, bytes.
    pub unit: &'static str,
    /// Units that it held.
    pub capacity: u64,
    /// The most units that were in use at once.
    pub high_water: u64,
    /// How often the builder waited for room in it.
    pub waits: u64,
    /// Units that suffice for the run (`docs/how-to/streaming.md`, "Memory"): the largest task, the largest scope, what is kept back.
    pub needed: u64,
}

/// The rings of a streaming run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamReport {
    /// The rings that the run had.
    pub rings: Vec<RingUse>,
    /// Scopes that were opened.
    pub scopes: u64,
    /// Tensors that were allocated on the heap.
    pub tensors: u64,
}

impl StreamReport {
    /// Only when the builder has returned.
    pub(crate) fn read(arena: &Arena<'_>) -> Option<Self> {
        let header = arena.stream_header(arena.regions()[region::STREAM])?;
        let is_sequential = arena.config().build_mode == BuildMode::SEQUENTIAL.get();
        let rings = header.rings.iter().enumerate().filter_map(|(index, line)| {
            let capacity = line.capacity.load(Ordering::Relaxed);
            let high_water = line.high_water.load(Ordering::Relaxed);
            let needed = line.needed.load(Ordering::Relaxed);
            (capacity > 0).then(|| RingUse {
                name: ring_name(index),
                unit: ring_unit(index),
                capacity,
                high_water,
                waits: line.waits.load(Ordering::Relaxed),
                needed: if is_sequential { needed.max(whole(index, high_water)) } else { needed },
            })
        });
        Some(Self {
            rings: rings.collect(),
            scopes: header.scopes.load(Ordering::Relaxed),
            tensors: header.tensors.load(Ordering::Relaxed),
        })
    }
}

/// What is needed where nothing retires before the program has returned: all of it. The builder counts the entries of the map
/// itself.
const fn whole(ring: usize, high_water: u64) -> u64 {
    const WINDOW: usize = RingKind::WINDOW.get() as usize;
    const MAP: usize = RingKind::MAP.get() as usize;
    match ring {
        WINDOW if high_water > 0 => high_water.next_power_of_two(),
        MAP => 0,
        _ => high_water,
    }
}

fn kind_of(index: usize) -> RingKind {
    let kind = u8::try_from(index).ok().and_then(|kind| RingKind::try_from(kind).ok());
    kind.unwrap_or(RingKind::HEAP)
}

/// The name of a ring, by its index in the stream's header.
pub(crate) fn ring_name(index: usize) -> String {
    match index.checked_sub(usize::from(RingKind::HEAP.get())) {
        Some(depth) => format!("heap {depth}"),
        None => kind_of(index).name().to_owned(),
    }
}

/// What the ring counts.
pub(crate) fn ring_unit(index: usize) -> &'static str {
    match kind_of(index) {
        RingKind::WINDOW => "slots",
        RingKind::ARGS => "words",
        RingKind::EDGES => "chunks",
        RingKind::MAP => "entries",
        _ => "bytes",
    }
}
