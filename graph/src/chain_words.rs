//! The one writer of a chain's words, for all builders and for templates.
//!
//! Invariant: what it writes is what [`Chain::words`] counts, and what a core's `ChainReader` reads.

use pto_abi::chain::{header, shape, shape_with_next};
use pto_abi::sync::{AtomicU64, Ordering::Relaxed};
use pto_abi::{Fault, GmAddr};

use crate::chain::Chain;
use crate::link::Link;
use crate::task::TaskSpec;

/// Stores words that there is room for. Four at a time, which takes fewer instructions.
#[inline]
fn store_all(to: &[AtomicU64], words: &[u64]) {
    let ((to, to_rest), (words, rest)) = (to.as_chunks::<4>(), words.as_chunks::<4>());
    for (to, words) in to.iter().zip(words) {
        // Loaded before the first one is stored, so that two loads can be one instruction.
        let [first, second, third, fourth] = *words;
        to[0].store(first, Relaxed);
        to[1].store(second, Relaxed);
        to[2].store(third, Relaxed);
        to[3].store(fourth, Relaxed);
    }
    for (to, word) in to_rest.iter().zip(rest) {
        to.store(*word, Relaxed);
    }
}

/// Words of a payload, written one after another: those that are left.
struct ChainWords<'w>(&'w [AtomicU64]);

impl<'w> ChainWords<'w> {
    /// The next ones, so many.
    #[inline]
    fn take(&mut self, count: usize) -> &'w [AtomicU64] {
        let (taken, rest) = self.0.split_at_checked(count).unwrap_or_default();
        self.0 = rest;
        taken
    }

    #[inline]
    fn put<const N: usize>(&mut self, words: [u64; N]) {
        if let Some((to, rest)) = self.0.split_first_chunk::<N>() {
            to.iter().zip(words).for_each(|(to, word)| to.store(word, Relaxed));
            self.0 = rest;
        }
    }
}

impl Chain<'_> {
    /// Writes it into `words`, for a core to read. It was checked, and they are as many as [it has](Self::words). `code` gives the code of each kernel with
    /// so many arguments.
    ///
    /// # Errors
    /// Those of `code`, and `BUILD_CHAIN_LIMIT`.
    pub fn write(
        &self,
        words: &[AtomicU64],
        mut code: impl FnMut(&TaskSpec<'_>, usize) -> Result<GmAddr, Fault>,
    ) -> Result<(), Fault> {
        let total = u32::try_from(words.len()).map_err(|_| Fault::BUILD_CHAIN_LIMIT)?;
        let links = u32::try_from(self.links().len()).map_err(|_| Fault::BUILD_CHAIN_LIMIT)?;
        let mut words = ChainWords(words);
        words.put([header(links, total)]);
        for link in self.links() {
            let code = code(&link.task(), link.arg_count())?;
            words = write_link(link, code, words);
        }
        Ok(())
    }
}

/// Writes a link to the first ones of these words; what is left of them. A function of its own, for all builders.
#[inline(never)]
fn write_link<'w>(link: &Link<'_>, code: GmAddr, mut words: ChainWords<'w>) -> ChainWords<'w> {
    let (func_id, variations) = (link.task().func_id, link.variations());
    // `Chain::check` has bounded both by MAX_CHAIN_ARGS, which is 31.
    let [args, varying] = [link.arg_count(), variations.len()].map(|count| count.to_le_bytes()[0]);
    let shape = shape(func_id.0, args, varying, link.count());
    words.put([code.0, if link.is_with_next() { shape_with_next(shape) } else { shape }]);
    let to = words.take(link.arg_count());
    match link.plain_words() {
        Some(args) => store_all(to, args),
        None => to.iter().zip(link.words()).for_each(|(to, arg)| to.store(arg, Relaxed)),
    }
    // The columns follow the words of all variations.
    for (to, variation) in words.take(variations.len()).iter().zip(variations) {
        let column = variation.column();
        if !column.is_empty() {
            store_all(words.take(column.len()), column);
        }
        to.store(variation.word(), Relaxed);
    }
    words
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    extern crate std;
    use crate::chain::Chain;
    use crate::link::{Link, Variation};
    use crate::task::TaskSpec;
    use pto_abi::chain::{ChainReader, MAX_CHAIN_ARGS};
    use pto_abi::sync::{AtomicU64, Ordering::Relaxed};
    use pto_abi::{CoreKind, Fault, FuncId, GmAddr};
    use std::vec::Vec;

    fn written(chain: &Chain<'_>) -> Result<Vec<u64>, Fault> {
        let words: Vec<_> = (0..chain.words()).map(|_| AtomicU64::new(u64::MAX)).collect();
        let code = |task: &TaskSpec<'_>, _| match task.func_id.0 {
            0 => Err(Fault::BUILD_KERNEL_MISSING),
            func => Ok(GmAddr(u64::from(func) << 8)),
        };
        chain.write(&words, code)?;
        Ok(words.iter().map(|word| word.load(Relaxed)).collect())
    }

    #[test]
    fn a_core_reads_what_the_program_said() {
        let (args, other) = ([100, 7, 0], [3]);
        let varies = [Variation::of(2, &[9, 8]), Variation::by(0, -64), Variation::of(1, &[1, 2])];
        let task = TaskSpec::new(FuncId(5), CoreKind::AIV, &args);
        let last = TaskSpec::new(FuncId(6), CoreKind::AIV, &other);
        let links = [Link::new(task).times(2).varying(&varies), Link::new(last)];
        let words = written(&Chain::new(&links)).unwrap();
        let mut reader = ChainReader::new(|at| words[at]);
        let mut own = [0; MAX_CHAIN_ARGS + 1];
        let mut kernels = Vec::new();
        while let Some(kernel) = reader.next(&mut own) {
            kernels.push((kernel.func_id, kernel.kernel, own[..kernel.args].to_vec()));
        }
        let expected = [(5, 0x500, Vec::from([100, 1, 9])), (5, 0x500, Vec::from([36, 2, 8]))];
        assert_eq!(kernels[..2], expected);
        assert_eq!(kernels[2..], [(6, 0x600, Vec::from([3]))]);
    }

    #[test]
    fn a_core_runs_links_in_turns_as_the_program_said() {
        let varies = [Variation::by(0, 10), Variation::of(0, &[7, 9, 8])];
        let [first, second] = [5, 6].map(|func| TaskSpec::new(FuncId(func), CoreKind::AIV, &[1]));
        let links = [
            Link::new(first).times(3).varying(&varies[..1]).with_next(),
            Link::new(second).times(3).varying(&varies[1..]),
            Link::new(first).times(2),
        ];
        let chain = Chain::new(&links);
        let words = written(&chain).unwrap();
        let mut reader = ChainReader::new(|at| words[at]);
        let mut own = [0; MAX_CHAIN_ARGS + 1];
        let mut kernels = Vec::new();
        while let Some(kernel) = reader.next(&mut own) {
            kernels.push((kernel.number, kernel.func_id, own[0]));
        }
        let mut words = [0; MAX_CHAIN_ARGS];
        let turns = (0..).zip(chain.turns()).map(|(number, (link, turn))| {
            let task = link.task_at(turn, &mut words);
            (number, task.func_id.0, task.args[0])
        });
        assert_eq!(kernels, turns.collect::<Vec<_>>());
        assert_eq!(
            kernels.iter().map(|kernel| kernel.2).collect::<Vec<_>>(),
            [1, 7, 11, 9, 21, 8, 1, 1]
        );
    }

    #[test]
    fn a_kernel_that_is_missing_is_a_fault() {
        let links = [Link::new(TaskSpec::new(FuncId(0), CoreKind::AIV, &[]))];
        assert_eq!(written(&Chain::new(&links)), Err(Fault::BUILD_KERNEL_MISSING));
    }
}
