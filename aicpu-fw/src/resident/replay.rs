//! Recordings: the launches of a capture, begun as tasks in the order of their nodes.
//!
//! A recording begins when nothing of its stream is on its way, and what follows it in the stream waits until it is over, as with a launch in several
//! blocks: `LaneLine::blocks_begun` and `blocks_over` count nodes. Nodes that are over have given their slots back; no node waits for them.

use pto_abi::session::{CommandHead, RecordedLaunches, RecordedNode};
use pto_abi::sync::Ordering;
use pto_abi::{Fault, GmAddr};

use super::launches::{LaunchTask, Launches};
use super::poll::{HeadOutcome, StreamPoll};
use crate::blame::Blame;
use crate::config::Config;
use crate::machine::Machine;

impl<'a> StreamPoll<'_, 'a> {
    /// Begins as many nodes of the recording at the head as there is room for.
    #[inline(never)]
    pub(super) fn begin_nodes<C: Config>(
        &self,
        launches: &mut Launches<'a, C>,
        head: CommandHead,
    ) -> Result<HeadOutcome, Blame> {
        if self.begun() == 0 {
            launches.machine().refresh(GmAddr(self.word(0)), self.word(1).saturating_mul(8));
        }
        let recording = self.recording()?;
        let nodes = recording.nodes();
        let (mut number, mut moved) = (self.begun(), false);
        while number < nodes && launches.has_room(self.in_flight()) {
            let node = recording.node(number).ok_or_else(|| self.refuse(number.into()))?;
            if !self.begin_node(launches, head, (&recording, number, node))? {
                break;
            }
            (number, moved) = (number + 1, true);
            self.set_begun(number);
        }
        if number == nodes && moved {
            self.pass(head);
        }
        Ok(if moved { HeadOutcome::Moved } else { HeadOutcome::Waits })
    }

    fn recording(&self) -> Result<RecordedLaunches<'a>, Blame> {
        let (address, words) = (GmAddr(self.word(0)), self.word(1));
        let bytes = words.checked_mul(8);
        let offset = bytes.and_then(|bytes| self.around.gm.offset_of(address, bytes));
        let count = usize::try_from(words).ok();
        let words = offset.zip(count).and_then(|(at, count)| self.around.gm.live_slice(at, count));
        words.and_then(RecordedLaunches::of).ok_or_else(|| self.refuse(address.0))
    }

    /// The words of the recording cannot be.
    #[cold]
    fn refuse(&self, found: u64) -> Blame {
        self.lane.refused.store(1, Ordering::Relaxed);
        Blame::of(Fault::BUILD_GM_RANGE).detail(found, 0)
    }

    /// Begins one node; `false`: there is no room.
    #[inline]
    fn begin_node<C: Config>(
        &self,
        launches: &mut Launches<'a, C>,
        head: CommandHead,
        (recording, number, node): (&RecordedLaunches<'a>, u32, RecordedNode<'a>),
    ) -> Result<bool, Blame> {
        let (func, args) = (node.func, node.arg_count());
        let over = self.lane.blocks_over.load(Ordering::Relaxed);
        let open = node.after().filter(|earlier| *earlier >= over);
        let producers = open.map(|earlier| recording.slot(earlier));
        if !producers.clone().all(|slot| launches.takes_consumer(slot)) {
            self.lane.refused.store(1, Ordering::Relaxed);
            return Err(Blame::of(Fault::BUILD_EDGES_FULL).detail(number.into(), 0));
        }
        let arg = |index: usize| node.arg(index);
        let begun = if let Some(kind) = node.kind {
            let Some(kernel) = launches.kernel(func, kind, args) else {
                self.lane.refused.store(1, Ordering::Relaxed);
                return Err(launches.refusal(func, kind, args));
            };
            let budget_us = self.budget_us();
            let part = LaunchTask { func, kind, kernel, args, arg: &arg, context: None, budget_us };
            launches.begin(&part, producers)
        } else {
            let part = self.transfer(launches, (func, args), &arg)?;
            launches.begin_transfer(&part, producers)
        };
        let Some(slot) = begun else { return Ok(false) };
        recording.set_slot(number, slot);
        let nodes = recording.nodes();
        self.note(launches, slot, head, (nodes, number + 1 == nodes));
        Ok(true)
    }
}
