//! Words for calls of the library's kernels: those of a right call more often than not, and some that are wrong.

use pto_host::{LIBRARY, LibraryKernel};

use crate::Mutator;

/// Memory that calls are about.
#[derive(Clone, Copy)]
pub(super) struct Block {
    pub(super) at: u64,
    pub(super) bytes: u64,
}

/// What a call may end only with others: it waits for parts of its task, or computes for as long as an argument says.
const PATIENT: &[&str] = &["group", "iterations"];
/// The most that such a word is.
const MAX_WAIT_CODE: usize = 2;

/// One of the library's kernels, and words for it.
pub(super) fn call(of: Block, random: &mut Mutator) -> (&'static LibraryKernel, Vec<u64>) {
    let kernel = &LIBRARY[random.below(LIBRARY.len())];
    let is_wild = random.below(8) == 0;
    let mut words: Vec<u64> = kernel
        .args
        .iter()
        .zip(kernel.addresses)
        .map(|(name, is_address)| match is_address {
            _ if PATIENT.contains(name) => random.below(MAX_WAIT_CODE) as u64,
            _ if is_wild => any(of, random),
            true => address(of, random),
            false => size(random),
        })
        .collect();
    if kernel.takes_more {
        words.extend((0..random.below(6)).map(|_| any(of, random)));
    }
    // Another word would stand for how long it takes.
    if kernel.args.iter().any(|name| PATIENT.contains(name)) {
        return (kernel, words);
    }
    if random.below(16) == 0 {
        words.truncate(random.below(words.len() + 1));
    }
    if random.below(16) == 0 {
        words.push(any(of, random));
    }
    (kernel, words)
}

/// Whether a call reaches as far as numbers in memory say. A builder program vouches for those, and a script would not.
pub(super) fn reach_as_memory_says(kernel: &LibraryKernel, words: &[u64]) -> bool {
    let mut footprints = (0..words.len()).filter_map(|at| (kernel.footprint)(words, 1, at));
    footprints.any(|footprint| footprint.follows_memory())
}

fn address(of: Block, random: &mut Mutator) -> u64 {
    match random.below(24) {
        0 => random.edge(),
        // Begins there, and may end after it.
        1 => of.at + random.below(usize::try_from(of.bytes).unwrap_or(1)) as u64,
        2 => of.at + of.bytes - 8,
        _ => of.at + 256 * random.below(usize::try_from(of.bytes / 512).unwrap_or(1)) as u64,
    }
}

fn size(random: &mut Mutator) -> u64 {
    match random.below(24) {
        0 => random.edge(),
        1 => random.below(100_000) as u64,
        _ => random.below(9) as u64,
    }
}

fn any(of: Block, random: &mut Mutator) -> u64 {
    if random.below(2) == 0 { address(of, random) } else { size(random) }
}
