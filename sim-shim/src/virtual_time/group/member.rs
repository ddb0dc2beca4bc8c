//! A machine's side of a group: its transfers under way, and how far it may go on.

use std::sync::Arc;

use pto_abi::{Fault, TaskId};

use super::contributions::{Reduced, Submitted};
use super::net::{Leave, VirtualNet};
use crate::group::{ByteRange, Posted, RunPort, Transfer, TransferError};
use crate::virtual_time::digest::Keyed;

/// Which rank a machine is, of which group.
#[derive(Clone)]
pub struct NetEndpoint {
    /// The group's network.
    pub net: Arc<VirtualNet>,
    /// The rank.
    pub rank: u32,
}

/// See the file.
pub(in crate::virtual_time) struct GroupMember {
    of: NetEndpoint,
    port: RunPort,
    horizon_ns: u64,
    under_way: Keyed<u64, TaskId>,
    next: u64,
    failure: Option<TransferError>,
    follows: bool,
}

impl GroupMember {
    pub(in crate::virtual_time) fn new(of: NetEndpoint, port: RunPort) -> Self {
        let (under_way, follows) = (Keyed::default(), of.net.follows());
        Self { of, port, horizon_ns: 0, under_way, next: 0, failure: None, follows }
    }

    /// Whether it is followed whose values elements have.
    #[inline]
    pub(in crate::virtual_time) const fn follows(&self) -> bool {
        self.follows
    }

    /// The builder begins to submit a collective call.
    pub(in crate::virtual_time) fn submitted(&self, submitted: &Submitted) {
        self.of.net.submitted(self.of.rank, submitted);
    }

    /// A kernel `reduce` has run.
    pub(in crate::virtual_time) fn reduced(&self, kernel: &Reduced) {
        self.of.net.reduced(self.of.rank, kernel);
    }

    /// The time up to which the machine may run on.
    #[inline]
    pub(in crate::virtual_time) const fn horizon_ns(&self) -> u64 {
        self.horizon_ns
    }

    /// Gives the others their turn, and waits for its own. `next_ns`: when the machine's next event is.
    pub(in crate::virtual_time) fn turn(&mut self, next_ns: u64) -> Leave {
        let leave = self.of.net.turn(self.of.rank, next_ns);
        self.horizon_ns = leave.horizon_ns;
        leave
    }

    /// Starts the transfers that have become ready; when the first effect comes by that.
    pub(in crate::virtual_time) fn start_all(&mut self, now_ns: u64) -> u64 {
        let mut first_ns = u64::MAX;
        while let Some(posted) = self.port.take() {
            match self.start(&posted, now_ns) {
                Ok(effect_ns) => first_ns = first_ns.min(effect_ns),
                Err(error) => self.fail(error, Some(posted.task), now_ns),
            }
        }
        first_ns
    }

    /// Finishes what has come until `now_ns`: how many transfers, and when the next effect comes.
    pub(in crate::virtual_time) fn finish_all(&mut self, now_ns: u64) -> (usize, u64) {
        let (numbers, failure, effect_ns) = self.of.net.take(self.of.rank, now_ns);
        let finished = numbers.len();
        for number in numbers {
            if let Some(task) = self.under_way.remove(&number) {
                self.port.finish(task);
            }
        }
        if let Some(error) = failure
            && !self.under_way.is_empty()
        {
            self.fail(error, None, now_ns);
        }
        (finished, effect_ns)
    }

    /// The run is over, at `now_ns`, with this fault if there was one: the other ranks learn it.
    pub(in crate::virtual_time) fn leave(self, now_ns: u64, fault: Option<Fault>) {
        let text = self.failure.as_ref().map(ToString::to_string);
        let cause = fault.map(|fault| text.unwrap_or_else(|| fault.name().to_owned()));
        self.of.net.leave(self.of.rank, now_ns, cause);
    }

    /// Starts a transfer; when the next effect comes.
    fn start(&mut self, posted: &Posted, now_ns: u64) -> Result<u64, TransferError> {
        let number = self.next;
        self.next += 1;
        self.under_way.insert(number, posted.task);
        let rank = self.of.rank;
        let transfer = resolve(posted, rank)?;
        let (effect_ns, answer_ns) = self.of.net.start((rank, number), &transfer, now_ns)?;
        self.horizon_ns = self.horizon_ns.min(answer_ns);
        Ok(effect_ns)
    }

    /// Transfers cannot go on.
    fn fail(&mut self, error: TransferError, task: Option<TaskId>, now_ns: u64) {
        let task = task.or_else(|| self.under_way.iter().min().map(|(_, task)| *task));
        self.port.fail_at(Fault::TRANSFER_FAILED, task, now_ns);
        self.failure.get_or_insert(error);
    }
}

/// The transfer that the words of a task say, with its count read.
fn resolve(posted: &Posted, rank: u32) -> Result<Transfer, TransferError> {
    let refused = |why: String| TransferError::Refused { rank, why };
    let words = Transfer::of_words(&posted.words);
    let mut transfer =
        words.ok_or_else(|| refused("the words of the task are none of a transfer".to_owned()))?;
    if let Some((at, unit)) = transfer.count {
        // SAFETY: the builder has checked that the view is in GM; who writes the count has completed.
        let count = unsafe { ByteRange { address: at.0, bytes: 4 }.read_u32() }.unwrap_or(0);
        let bytes = u64::from(count).checked_mul(unit).filter(|bytes| *bytes <= transfer.bytes);
        let has = transfer.bytes;
        transfer.bytes = bytes.ok_or_else(|| {
            refused(format!("its count of {count}, of {unit} bytes each, is more than {has} bytes"))
        })?;
    }
    Ok(transfer)
}
