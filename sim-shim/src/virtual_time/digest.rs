//! States: everything that the rest of a run depends on, as one number. A search over all orders of steps that comes to a state
//! again need not go on from there.
//!
//! What is left out is what nobody reads again: sums for reports, the trace, logs, the builder's tensor map and recordings once
//! it has returned. While a streaming builder is under way its own state is part: what it has in its fields
//! (`Stream::tell_state`), its memory, and what its program was told, of which the program's stack is a function. Times are part of a state; in a search the clock stands still as long as anybody has something to do.

use std::hash::{Hash, Hasher};
use std::mem::offset_of;

use pto_abi::arena::Arena;
use pto_abi::handshake::Handshake;
use pto_abi::runtime::{Runtime, region};
use pto_abi::stream::{BLOCK_WORDS, StreamPlan};

use super::world::World;

/// 128 bits of a state: two lanes of multiplication with different odd factors (the first digits of the golden ratio and of the
/// square root of two). A million states have one chance in 2^89 to collide.
#[derive(Clone, Copy, Debug)]
pub(super) struct Digest([u64; 2]);

impl Digest {
    pub(super) const fn new() -> Self {
        Self([1, 2])
    }

    /// The number.
    pub(super) fn number(self) -> u128 {
        let [low, high] = self.halves();
        u128::from(low) | u128::from(high) << 64
    }

    fn halves(self) -> [u64; 2] {
        self.0.map(|lane| {
            let lane = (lane ^ lane >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
            lane ^ lane >> 32
        })
    }

    #[inline]
    fn mix(&mut self, word: u64) {
        let [low, high] = &mut self.0;
        *low = folded(*low ^ word, 0x9E37_79B9_7F4A_7C15).wrapping_add(1);
        *high = folded(*high ^ word, 0x6A09_E667_F3BC_C909).wrapping_add(1);
    }
}

/// Both halves of a product on each other: every bit of a factor changes bits everywhere.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the halves of a product")]
fn folded(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    product as u64 ^ (product >> 64) as u64
}

impl Hasher for Digest {
    fn finish(&self) -> u64 {
        let [low, _] = self.halves();
        low
    }

    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            self.mix(u64::from_le_bytes(last));
        }
        self.mix(bytes.len() as u64);
    }

    fn write_u8(&mut self, word: u8) {
        self.mix(word.into());
    }

    fn write_u32(&mut self, word: u32) {
        self.mix(word.into());
    }

    fn write_u64(&mut self, word: u64) {
        self.mix(word);
    }

    fn write_usize(&mut self, word: usize) {
        self.mix(word as u64);
    }
}

impl World {
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
            parts,
            busy_ns: _,
            tasks_run: _,
            builder_ns,
            // For the report only.
            built_ns: _,
            build_noticed,
            fault_noticed,
            rung,
            beats: _,
            start_ns: _,
            // A search is over one device.
            seat: _,
        } = self;
        (builder_ns, build_noticed, fault_noticed, rung).hash(into);
        agenda.hash_state(into);
        cores.iter().for_each(|core| core.hash_state(into));
        (naps, shortest_nap_ns).hash(into);
        ledger.hash_state(into);
        parts.hash_state(into);
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
                // The tensor map. The words of recordings behind it follow from what the program was told.
                let (tape, _) = plan.tape;
                if builder == Builder::UnderWay {
                    ranges.push((stream + plan.tensors, tape - plan.tensors));
                }
            }
            None => ranges.push((stream, bytes)),
        }
    }
    // What kernels read and write stands behind the arena.
    ranges.push((window.bytes(), gm.bytes() - start - window.bytes()));
    let size = |bytes: u64| usize::try_from(bytes).unwrap_or(0);
    ranges.into_iter().map(|(offset, bytes)| (start + offset, size(bytes))).collect()
}

#[cfg(test)]
mod tests {
    use super::Digest;
    use std::collections::HashSet;
    use std::hash::{Hash, Hasher};

    #[test]
    fn what_differs_in_a_bit_or_in_its_place_differs() {
        let number = |value: &[u8]| {
            let mut digest = Digest::new();
            value.hash(&mut digest);
            digest.number()
        };
        let mut seen = HashSet::new();
        for at in 0..200 {
            for bit in 0..8 {
                let mut bytes = [0; 200];
                bytes[at] = 1 << bit;
                assert!(seen.insert(number(&bytes)), "byte {at}, bit {bit}");
            }
        }
        assert!((0..200).all(|len| seen.insert(number(&[0; 200][..len]))), "the length counts");
        let halves: HashSet<u64> = seen.iter().map(|number| (number >> 64) as u64).collect();
        assert_eq!(halves.len(), seen.len());
        assert_ne!(Digest::new().finish(), 0);
    }
}
