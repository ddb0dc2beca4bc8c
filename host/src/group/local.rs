//! The transport between devices of this process: every rank's bytes are in this process, so that a transfer is over as soon as both
//! sides have started it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pto_sim_shim::group::{ByteRange, Move, Transfer, TransferError, TransferId, TransferMatcher};

use super::transport::{Completion, RankLocation, Transport};

/// What the ranks share.
struct Net {
    exchange: TransferMatcher,
    /// Transfers that are over and were not polled yet, by rank.
    over: Vec<Vec<u64>>,
    /// The rank whose run failed first, and why.
    failed: Option<(u32, String)>,
    has_ended: bool,
    run: u64,
}

/// One rank of a group of this process.
pub(super) struct Local {
    net: Arc<Mutex<Net>>,
    rank: u32,
    size: u32,
    ranks_per_node: u32,
}

/// Where all ranks are.
const HOST: &str = "this process";

/// The transports of this many ranks, by rank.
pub(super) fn transports(size: u32, ranks_per_node: u32) -> Vec<Arc<dyn Transport>> {
    let over = (0..size).map(|_| Vec::new()).collect();
    let exchange = TransferMatcher::new(size);
    let net = Net { exchange, over, failed: None, has_ended: false, run: 0 };
    let net = Arc::new(Mutex::new(net));
    let local = |rank| Local { net: Arc::clone(&net), rank, size, ranks_per_node };
    (0..size).map(|rank| Arc::new(local(rank)) as Arc<dyn Transport>).collect()
}

impl Local {
    fn net(&self) -> MutexGuard<'_, Net> {
        self.net.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Net {
    /// Moves bytes, signals, and notes which transfers are over.
    fn make(&mut self, found: &Move) {
        // SAFETY: the spans lie in the GM of devices of the group, which is mapped as long as the group lives. Both ends are
        // arguments of tasks that are under way, or in a window: the edges of these tasks order every conflicting access.
        unsafe { found.source.copy_to(found.target) };
        let mut over: Vec<TransferId> = found.over.into_iter().flatten().collect();
        if let Some(signal) = found.signal {
            self.exchange.signalled(found.from, found.to, signal, &mut over);
        }
        self.note(&over);
    }

    fn note(&mut self, over: &[TransferId]) {
        for (rank, number) in over {
            if let Some(numbers) = self.over.get_mut(*rank as usize) {
                numbers.push(*number);
            }
        }
    }

    /// Why nothing that is under way at a rank can come to an end, if that is known.
    fn is_hopeless(&self, rank: u32) -> Option<TransferError> {
        if self.exchange.under_way(rank) == 0 {
            return None;
        }
        if let Some((failed, cause)) = &self.failed {
            let (host, cause) = (HOST.to_owned(), cause.clone());
            return Some(TransferError::PeerFailed { rank: *failed, host, cause });
        }
        if self.has_ended { self.exchange.orphan(rank).map(|(_, error)| error) } else { None }
    }
}

impl Transport for Local {
    fn location(&self) -> RankLocation {
        let (rank, size, ranks_per_node) = (self.rank, self.size, self.ranks_per_node);
        RankLocation { rank, size, host: HOST.to_owned(), ranks_per_node }
    }

    fn map(&self, _: u32, memory: ByteRange) -> Result<(), TransferError> {
        self.net().exchange.map(self.rank, memory);
        Ok(())
    }

    fn begin(&self, run: u64) -> Result<(), TransferError> {
        let mut net = self.net();
        net.exchange.begin(self.rank, run);
        net.over[self.rank as usize].clear();
        if net.run != run {
            (net.run, net.failed, net.has_ended) = (run, None, false);
        }
        Ok(())
    }

    fn start(&self, number: u64, transfer: &Transfer) -> Result<(), TransferError> {
        let (mut moves, mut over) = (Vec::new(), Vec::new());
        let mut net = self.net();
        net.exchange.start((self.rank, number), transfer, (&mut moves, &mut over))?;
        net.note(&over);
        moves.iter().for_each(|found| net.make(found));
        Ok(())
    }

    fn poll(&self, over: &mut Vec<Completion>) {
        let mut net = self.net();
        let numbers = net.over[self.rank as usize].drain(..);
        let found = over.len();
        over.extend(numbers.map(|number| Completion { number: Some(number), result: Ok(()) }));
        if over.len() == found
            && let Some(error) = net.is_hopeless(self.rank)
        {
            over.push(Completion { number: None, result: Err(error) });
        }
    }

    fn disagreement(&self) -> Option<TransferError> {
        self.net().exchange.disagreement(self.rank)
    }

    fn end(&self, cause: Option<&str>) {
        let mut net = self.net();
        net.exchange.end(self.rank);
        net.has_ended = true;
        if let Some(cause) = cause {
            net.failed.get_or_insert_with(|| (self.rank, cause.to_owned()));
        }
    }

    fn meet(&self, word: u64, _: Duration) -> Result<Vec<u64>, TransferError> {
        // All ranks run the work of one call of this process.
        Ok(vec![word; self.size as usize])
    }
}
