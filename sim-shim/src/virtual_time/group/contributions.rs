//! Which ranks' values an element has, where nothing is computed: each collective call of each rank has a book of the bytes that it has changed.
//!
//! ```text
//! call begins        -> a new book: each byte has the value of its own rank, once
//! send meets receive -> what the sender's book has of the source becomes what the receiver's book has of the target
//! kernel reduce      -> what is in its operands, together
//! the run is over    -> the book of each call is compared with what the call must leave in its result
//! ```
//! The tag of a transfer says to which call it belongs. A kernel `reduce` belongs to the call that its parts have come by. Calls that are part
//! of another call have no books of their own: they go on with that of the other one. Other kernels are not followed: by the edges none writes to
//! the tensor of a call while the call is under way.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use pto_graph::group::{CollectiveCall, Holds, part_stride, tag};

use super::intervals::Intervals;
use crate::group::{ByteRange, Move};

/// How many findings the report keeps. Further findings are only counted.
const KEPT: usize = 16;

/// The ranks that contributed to an element: ranges of ranks (first, end, count), in ascending order. `count` says how often each rank of
/// the range contributed, and is never 0.
type Ranks = Arc<[(u32, u32, u32)]>;

fn one(rank: u32) -> Ranks {
    Arc::new([(rank, rank + 1, 1)])
}

fn together(a: &Ranks, b: &Ranks) -> Ranks {
    if b.is_empty() {
        return Arc::clone(a);
    }
    let mut bounds: Vec<u32> = a.iter().chain(&**b).flat_map(|run| [run.0, run.1]).collect();
    bounds.sort_unstable();
    bounds.dedup();
    let times = |of: &Ranks, rank: u32| {
        let at = of.partition_point(|run| run.1 <= rank);
        of.get(at).filter(|run| run.0 <= rank).map_or(0, |run| run.2)
    };
    let mut runs: Vec<(u32, u32, u32)> = Vec::new();
    for pair in bounds.windows(2) {
        let times = times(a, pair[0]) + times(b, pair[0]);
        match runs.last_mut() {
            _ if times == 0 => {}
            Some(last) if last.1 == pair[0] && last.2 == times => last.1 = pair[1],
            _ => runs.push((pair[0], pair[1], times)),
        }
    }
    runs.into()
}

/// An element of a result that has not the values that it must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongContribution {
    /// The rank that has the element.
    pub rank: u32,
    /// The contribution's collective call.
    pub call: CollectiveCall,
    /// The first of these elements, and how many there are.
    pub elements: (u64, u64),
    /// Ranks whose values are not in them.
    pub missing: Vec<u32>,
    /// Ranks whose values are in them more often than they must be, and how often.
    pub surplus: Vec<(u32, u32)>,
}

impl fmt::Display for WrongContribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rank, call, elements: (first, count), missing, surplus } = self;
        let (_, all, _) = call.result;
        write!(f, "rank {rank}: {} (call {}): ", call.collective.name(), call.number)?;
        if *count == 1 {
            write!(f, "element {first} of {all}")?;
        } else {
            write!(f, "elements {first} to {} of {all}", first + count - 1)?;
        }
        let mut sep = " have";
        if *count == 1 {
            sep = " has";
        }
        if !missing.is_empty() {
            write!(f, "{sep} no value of {}", RankList(missing))?;
            sep = ", and";
        }
        for (rank, times) in surplus {
            write!(f, "{sep} the value of rank {rank} {times} {} too often", times_word(*times))?;
            sep = ", and";
        }
        Ok(())
    }
}

const fn times_word(times: u32) -> &'static str {
    if times == 1 { "time" } else { "times" }
}

/// Some ranks, for people.
struct RankList<'r>(&'r [u32]);

impl fmt::Display for RankList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 8;
        f.write_str(if self.0.len() == 1 { "rank " } else { "ranks " })?;
        for (at, rank) in self.0.iter().take(SHOWN).enumerate() {
            write!(f, "{}{rank}", if at == 0 { "" } else { ", " })?;
        }
        let more = self.0.len().saturating_sub(SHOWN);
        if more > 0 { write!(f, " and {more} others") } else { Ok(()) }
    }
}

/// What a run without computation has found of its collectives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContributionReport {
    /// Calls whose results were checked, of all ranks.
    pub calls: u64,
    /// Elements of these results.
    pub elements: u64,
    /// Calls that are in a recording, whose replays are not distinguished: they were not checked.
    pub replayed: u64,
    /// Elements that have not the values that they must have.
    pub wrong: u64,
    /// Some of them, by rank and call.
    pub found: Vec<WrongContribution>,
}

/// A call of a rank: what it must leave, and what is known of the bytes that it has changed.
struct Book {
    call: CollectiveCall,
    is_replayed: bool,
    known: Intervals<Ranks>,
}

/// The calls of a rank.
#[derive(Default)]
struct OfRank {
    books: Vec<Book>,
    /// By the call that the tags of its transfers have: the book.
    by_tags: HashMap<u128, usize>,
    /// The book of the call by which bytes have come, or were reduced, last.
    came_by: Intervals<usize>,
}

/// A call that a rank has begun to submit.
#[derive(Clone, Copy, Debug)]
pub(in crate::virtual_time) struct Submitted {
    pub(in crate::virtual_time) call: CollectiveCall,
    /// It is part of the call before it that is no part.
    pub(in crate::virtual_time) is_part: bool,
    pub(in crate::virtual_time) is_replayed: bool,
}

/// The operands of a kernel `reduce`.
#[derive(Clone, Copy, Debug)]
pub(in crate::virtual_time) struct Reduced {
    /// The addresses of the tensor, of the first part, and of the result; the arguments of the kernel after them.
    pub(in crate::virtual_time) args: [u64; 6],
    pub(in crate::virtual_time) block: u32,
}

/// See the file.
#[derive(Default)]
pub(super) struct Contributions {
    ranks: Vec<OfRank>,
}

impl Contributions {
    pub(super) fn new(size: usize) -> Self {
        Self { ranks: (0..size).map(|_| OfRank::default()).collect() }
    }

    /// A rank begins to submit a call.
    pub(super) fn begin(&mut self, rank: u32, submitted: &Submitted) {
        let Some(of) = self.ranks.get_mut(rank as usize) else { return };
        let Submitted { call, is_part, is_replayed } = *submitted;
        if !is_part {
            of.books.push(Book { call, is_replayed, known: Intervals::default() });
        }
        if let Some(last) = of.books.len().checked_sub(1) {
            of.by_tags.insert(call.tags, last);
        }
    }

    /// Bytes go from one rank to another; `arrives`: the network has not left them out.
    pub(super) fn moved(&mut self, found: &Move, arrives: bool) {
        let tags = tag::call(found.tag);
        let book_of = |ranks: &[OfRank], rank: u32| -> Option<usize> {
            ranks.get(rank as usize)?.by_tags.get(&tags).copied()
        };
        let books = (book_of(&self.ranks, found.from), book_of(&self.ranks, found.to));
        let (Some(from), Some(to)) = books else { return };
        if !tag::is_of_call(found.tag) || found.source.bytes == 0 {
            return;
        }
        let own = one(found.from);
        let mut pieces = Vec::new();
        if arrives {
            let known = &self.ranks[found.from as usize].books[from].known;
            known.pieces(found.source, |span, ranks| {
                pieces.push((span, Arc::clone(ranks.unwrap_or(&own))));
            });
        } else {
            pieces.push((found.source, Arc::new([]) as Ranks));
        }
        let target = &mut self.ranks[found.to as usize];
        for (span, ranks) in pieces {
            let address = found.target.address + (span.address - found.source.address);
            target.books[to].known.set(ByteRange { address, ..span }, ranks);
        }
        target.came_by.set(found.target, to);
    }

    /// A kernel `reduce` has run on a rank.
    pub(super) fn reduced(&mut self, rank: u32, kernel: &Reduced) {
        let Some(of) = self.ranks.get_mut(rank as usize) else { return };
        let [a, parts, out, each, how, which] = kernel.args;
        let (all, count) = (how >> 16, which & 0xFFFF_FFFF);
        let element = pto_graph::ElementType::try_from((how & 0xFF) as u8);
        let Ok(bytes) = element.map(pto_graph::ElementType::bytes) else { return };
        let first = each * u64::from(kernel.block);
        let length = each.min(all.saturating_sub(first)) * bytes;
        let at = |base: u64| ByteRange { address: base + first * bytes, bytes: length };
        // Parts come by a call; the tensor itself can have come by an earlier one.
        let came = if count > 0 { parts } else { a };
        let Some(book) = of.came_by.at(at(came).address).copied() else { return };
        let own = one(rank);
        let stride = part_stride(all) * bytes;
        let operands = std::iter::once(a).chain((0..count).map(|part| parts + part * stride));
        let operands: Vec<ByteRange> = operands.map(at).collect();
        let known = &of.books[book].known;
        // Where the pieces of any operand begin.
        let mut cuts = vec![0, length];
        for operand in &operands {
            known.pieces(*operand, |span, _| cuts.push(span.address - operand.address));
        }
        cuts.sort_unstable();
        cuts.dedup();
        let mut pieces = Vec::new();
        for pair in cuts.windows(2) {
            let of = |operand: &ByteRange| known.at(operand.address + pair[0]).unwrap_or(&own);
            let all = operands.iter().map(of).fold(Arc::new([]) as Ranks, |sum, ranks| {
                if sum.is_empty() { Arc::clone(ranks) } else { together(&sum, ranks) }
            });
            let range = ByteRange { address: at(out).address + pair[0], bytes: pair[1] - pair[0] };
            pieces.push((range, all));
        }
        for (range, ranks) in pieces {
            of.books[book].known.set(range, ranks);
        }
        of.came_by.set(at(out), book);
    }

    /// Compares all calls with what they must leave.
    pub(super) fn report(&self) -> ContributionReport {
        let mut report = ContributionReport::default();
        for (rank, of) in (0..).zip(&self.ranks) {
            for book in &of.books {
                if book.is_replayed {
                    report.replayed += 1;
                } else {
                    book.check(rank, &mut report);
                }
            }
        }
        report
    }
}

impl Book {
    fn check(&self, rank: u32, report: &mut ContributionReport) {
        let (address, _, bytes) = self.call.result;
        let (first, stride, size) = self.call.ranks;
        let own = one(rank);
        report.calls += 1;
        self.call.result_holds(|(start, end), holds| {
            let must = |of: u32| match holds {
                Holds::All => {
                    let range = of.checked_sub(first).filter(|at| at.is_multiple_of(stride));
                    range.is_some_and(|at| at / stride < size)
                }
                Holds::One(rank) => of == rank,
            };
            let wanted: Vec<u32> = match holds {
                Holds::All => (0..size).map(|of| self.call.world_rank(of)).collect(),
                Holds::One(rank) => vec![rank],
            };
            report.elements += end - start;
            let span =
                ByteRange { address: address.0 + start * bytes, bytes: (end - start) * bytes };
            self.known.pieces(span, |piece, ranks| {
                let ranks = ranks.unwrap_or(&own);
                let (missing, surplus) = compare(ranks, &wanted, must);
                if missing.is_empty() && surplus.is_empty() {
                    return;
                }
                let elements = ((piece.address - address.0) / bytes, (piece.bytes / bytes).max(1));
                report.wrong += elements.1;
                if report.found.len() < KEPT {
                    let call = self.call;
                    report.found.push(WrongContribution { rank, call, elements, missing, surplus });
                }
            });
        });
    }
}

/// The ranks that are missing, and those that there are too many times.
fn compare(
    ranks: &Ranks,
    wanted: &[u32],
    must: impl Fn(u32) -> bool,
) -> (Vec<u32>, Vec<(u32, u32)>) {
    let has = |of: u32| {
        let at = ranks.partition_point(|run| run.1 <= of);
        ranks.get(at).is_some_and(|run| run.0 <= of)
    };
    let missing = wanted.iter().copied().filter(|rank| !has(*rank)).collect();
    let each = ranks.iter().flat_map(|(from, to, times)| (*from..*to).map(|rank| (rank, *times)));
    let surplus = each.map(|(rank, times)| (rank, times - u32::from(must(rank))));
    (missing, surplus.filter(|(_, times)| *times > 0).collect())
}

#[cfg(test)]
mod tests {
    use super::{Contributions, Ranks, Reduced, Submitted, one, together};
    use crate::group::{ByteRange, Move};
    use pto_abi::GmAddr;
    use pto_graph::ElementType;
    use pto_graph::group::{Collective, CollectiveCall, tag};

    /// The tag of a transfer in a call.
    const OF_CALL: u128 = 1 << 63 | 1 << 32;

    /// Two ranks add up four elements; the parts come to address 200. Rank 1 reduces what comes so many times.
    fn all_reduce(times: u32) -> Vec<String> {
        let mut found = Contributions::new(2);
        for rank in 0..2 {
            let result = (GmAddr(1000 * u64::from(rank + 1)), 4, 4);
            let (collective, ranks) = (Collective::ALL_REDUCE, (0, 1, 2));
            let call = CollectiveCall {
                collective,
                number: 1,
                ranks,
                rank,
                root: 0,
                tags: tag::call(OF_CALL),
                result,
            };
            found.begin(rank, &Submitted { call, is_part: false, is_replayed: false });
        }
        let how = u64::from(ElementType::F32.get()) | 4 << 16;
        let own = |rank: u32| 1000 * u64::from(rank + 1);
        for to in 0..2 {
            let from = 1 - to;
            let [source, target] =
                [own(from), own(to) + 200].map(|address| ByteRange { address, bytes: 16 });
            let moved =
                Move { from, to, source, target, tag: OF_CALL, over: [None; 2], signal: None };
            found.moved(&moved, true);
        }
        for (rank, times) in [(0, 1), (1, times)] {
            let own = own(rank);
            for _ in 0..times {
                found.reduced(rank, &Reduced { args: [own, own + 200, own, 4, how, 1], block: 0 });
            }
        }
        found.report().found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_value_that_is_reduced_twice_is_told() {
        let doubled = "rank 1: all_reduce (call 1): elements 0 to 3 of 4 have the value of rank 0 1 time too often";
        assert_eq!((all_reduce(1), all_reduce(2)), (vec![], vec![doubled.to_owned()]));
        let missing = "rank 1: all_reduce (call 1): elements 0 to 3 of 4 have no value of rank 0";
        assert_eq!(all_reduce(0), [missing]);
    }

    #[test]
    fn sets_of_ranks_are_put_together() {
        let all = (0..8).rev().map(one).fold(one(8), |sum, rank| together(&sum, &rank));
        assert_eq!(*all, [(0, 9, 1)]);
        let twice = together(&all, &one(4));
        assert_eq!(*twice, [(0, 4, 1), (4, 5, 2), (5, 9, 1)]);
        let none: Ranks = [].into();
        assert_eq!((together(&none, &one(3)), together(&one(3), &none)), (one(3), one(3)));
        assert_eq!(*together(&one(1), &one(3)), [(1, 2, 1), (3, 4, 1)]);
    }
}
