//! A poll of one stream: reports what is over, begins what is next.
//!
//! ```text
//! head of the ring     with launches on their way                without
//! launch               follows the last one                      begun
//! launch of blocks     waits                                     begun, block by block
//! record, write        waits                                     done
//! wait                 waits                                     over, or looked at again
//! anything else        waits                                     handed over to the host
//! ```
//! Commands become over in their order.

use pto_abi::block::BlockContext;
use pto_abi::gm::GmWindow;
use pto_abi::session::command::LAUNCH_WORDS;
use pto_abi::session::{
    CommandDefect, CommandEntry, CommandHead, CommandKind, CommandRing, EventLine, LaneLine,
    RingConsumer, RingProducer, SessionBoard, StreamLine, ValueTest,
};
use pto_abi::sync::{AtomicU64, Ordering};
use pto_abi::task::{NO_CHUNK, TRANSFER};
use pto_abi::{CoreKind, Fault, FuncId, GmAddr};

use super::launches::{LaunchTask, Launches};
use crate::blame::Blame;
use crate::config::Config;
use crate::machine::Machine;

/// Launches of one stream that are on their way at once. A guess: enough that a stream of short kernels keeps a core busy
/// between two polls, and few enough that other streams find room.
const DEPTH: u32 = 64;

/// What all streams share.
pub(super) struct Surroundings<'a> {
    pub(super) gm: GmWindow<'a>,
    pub(super) board: SessionBoard<'a>,
    /// The number of this run.
    pub(super) run: u32,
}

/// A stream while it is polled.
pub(super) struct StreamPoll<'v, 'a> {
    pub(super) around: &'v Surroundings<'a>,
    stream: usize,
    line: &'a StreamLine,
    pub(super) lane: &'a LaneLine,
    ring: CommandRing<'a>,
    is_done: bool,
    /// The head has been accepted, and waits.
    pub(super) knows_head: bool,
}

/// The host has written the ring since this firmware came up.
#[inline(never)]
fn refresh_ring(line: &StreamLine, machine: &mut impl Machine) {
    let entries = line.entry_count.load(Ordering::Relaxed);
    for (word, bytes) in [
        (&line.producer, size_of::<RingProducer>() as u64),
        (&line.consumer, size_of::<RingConsumer>() as u64),
        (&line.entries, entries.saturating_mul(size_of::<CommandEntry>() as u64)),
    ] {
        machine.refresh(GmAddr(word.load(Ordering::Relaxed)), bytes);
    }
}

/// What comes of a look at the head.
pub(super) enum HeadOutcome {
    /// The head command began, or it has ended.
    Moved,
    /// The head command has to wait.
    Waits,
    /// There is no head command.
    Nothing,
    /// The head command is for the host.
    Host,
}

impl<'v, 'a> StreamPoll<'v, 'a> {
    /// Begins a poll. `None`: there is no such stream, or the host has its head.
    #[inline]
    pub(super) fn begin(
        around: &'v Surroundings<'a>,
        machine: &mut impl Machine,
        stream: usize,
    ) -> Option<Self> {
        let board = &around.board;
        let (line, lane) = (board.streams.get(stream)?, board.lanes.get(stream)?);
        if board.is_handed(stream) {
            return None;
        }
        let at = |word: &AtomicU64, bytes: usize| {
            around.gm.offset_of(GmAddr(word.load(Ordering::Relaxed)), bytes as u64)
        };
        // Acquire: pairs with the Release store in the host's `RingMemory::put_into`: the words below are of the same stream.
        let producer = GmAddr(line.producer.load(Ordering::Acquire));
        let producer = around.gm.live(around.gm.offset_of(producer, 64)?)?;
        let count = usize::try_from(line.entry_count.load(Ordering::Relaxed)).ok()?;
        if lane.run.load(Ordering::Relaxed) != around.run {
            refresh_ring(line, machine);
        }
        let consumer = around.gm.live(at(&line.consumer, 64)?)?;
        let entries = around.gm.live_slice(at(&line.entries, 64)?, count)?;
        let ring = CommandRing::new(producer, consumer, entries)?;
        let poll = Self { around, stream, line, lane, ring, is_done: false, knows_head: false };
        poll.arrive();
        Some(poll)
    }

    /// Whether it has nothing more to do just now.
    pub(super) const fn is_done(&self) -> bool {
        self.is_done
    }

    /// With nothing on its way, the stream is where its ring says: the host may have had it since.
    #[inline]
    fn arrive(&self) {
        if self.lane.run.load(Ordering::Relaxed) != self.around.run {
            self.lane.run.store(self.around.run, Ordering::Relaxed);
            self.lane.in_flight.store(0, Ordering::Relaxed);
            self.lane.blocks_begun.store(0, Ordering::Relaxed);
            self.lane.blocks_over.store(0, Ordering::Relaxed);
            self.lane.refused.store(0, Ordering::Relaxed);
        }
        if self.in_flight() == 0 {
            self.lane.at.store(self.ring.taken(), Ordering::Relaxed);
        }
    }

    #[inline]
    pub(super) fn in_flight(&self) -> u32 {
        self.lane.in_flight.load(Ordering::Relaxed)
    }

    /// All of the head has begun.
    #[inline]
    pub(super) fn pass(&self, head: CommandHead) {
        self.lane.at.store(self.at().wrapping_add(head.entries()), Ordering::Relaxed);
    }

    /// Parts of the head that have begun, where it has several: blocks, or nodes.
    pub(super) fn begun(&self) -> u32 {
        self.lane.blocks_begun.load(Ordering::Relaxed)
    }

    pub(super) fn set_begun(&self, parts: u32) {
        self.lane.blocks_begun.store(parts, Ordering::Relaxed);
    }

    #[inline]
    fn at(&self) -> u64 {
        self.lane.at.load(Ordering::Relaxed)
    }

    /// Reports what is over, and begins at most `limit` commands; whether anything moved.
    #[inline]
    pub(super) fn serve<C: Config>(
        &mut self,
        launches: &mut Launches<'a, C>,
        limit: u32,
    ) -> Result<bool, Blame> {
        let mut moved = self.collect(launches);
        for _ in 0..limit {
            match self.turn(launches)? {
                HeadOutcome::Moved => (moved, self.knows_head) = (true, false),
                HeadOutcome::Waits => break,
                HeadOutcome::Nothing => {
                    self.is_done = self.in_flight() == 0;
                    break;
                }
                HeadOutcome::Host => {
                    if self.in_flight() == 0 {
                        self.around.board.hand_over(self.stream);
                        self.is_done = true;
                        moved = true;
                    }
                    break;
                }
            }
        }
        Ok(moved)
    }

    /// Takes the launches that are over, oldest first; whether there were any.
    #[inline]
    fn collect<C: Config>(&self, launches: &mut Launches<'a, C>) -> bool {
        let (lane, mut over, mut moved) = (self.lane, None, false);
        let mut in_flight = self.in_flight();
        while in_flight > 0 {
            let slot = lane.first.load(Ordering::Relaxed);
            let Some(note) = launches.note(slot) else { break };
            // The note is the next one's as soon as the slot is free.
            let next = note.next.load(Ordering::Relaxed);
            if !launches.take_over(slot) {
                break;
            }
            in_flight -= 1;
            lane.first.store(next, Ordering::Relaxed);
            if note.is_last.load(Ordering::Relaxed) != 0 {
                over =
                    Some((note.end.load(Ordering::Relaxed), note.number.load(Ordering::Relaxed)));
                lane.blocks_begun.store(0, Ordering::Relaxed);
                lane.blocks_over.store(0, Ordering::Relaxed);
            } else {
                lane.blocks_over
                    .store(lane.blocks_over.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            }
            moved = true;
        }
        lane.in_flight.store(in_flight, Ordering::Relaxed);
        if let Some((end, number)) = over {
            self.over(end, number);
        }
        moved
    }

    /// Commands up to `number`, which end at `end`, are over.
    #[inline]
    fn over(&self, end: u64, number: u64) {
        self.ring.take(end);
        // Release: pairs with the Acquire load in `StreamCore::completed` of the host, which then sees what the commands did.
        self.ring.consumer().completed.store(number, Ordering::Release);
    }

    /// The head. While it waits, the line that submitters write is not read.
    #[inline]
    fn accept(&mut self) -> Option<Result<CommandHead, CommandDefect>> {
        if self.knows_head {
            return self.ring.accepted(self.at()).map(Ok);
        }
        let head = self.ring.accept(self.at());
        self.knows_head = matches!(head, Some(Ok(_)));
        head
    }

    /// Looks at the head, and does what can be done.
    #[inline]
    fn turn<C: Config>(&mut self, launches: &mut Launches<'a, C>) -> Result<HeadOutcome, Blame> {
        let is_in_blocks = self.lane.blocks_begun.load(Ordering::Relaxed) > 0;
        if is_in_blocks && self.at() != self.ring.taken() {
            // All of them have begun; what follows them waits until they are over.
            return Ok(HeadOutcome::Waits);
        }
        let head = match self.accept() {
            None => return Ok(HeadOutcome::Nothing),
            Some(Err(_)) => return Ok(HeadOutcome::Host),
            Some(Ok(head)) => head,
        };
        if is_in_blocks {
            return match head.kind {
                CommandKind::REPLAY => self.begin_nodes(launches, head),
                _ => self.begin_blocks(launches, head),
            };
        }
        if launches.has_ended() {
            return Ok(HeadOutcome::Waits);
        }
        if self.is_skipped(head.number) {
            return Ok(HeadOutcome::Host);
        }
        let turn = match head.kind {
            CommandKind::LAUNCH => self.begin_launch(launches, head)?,
            _ if self.in_flight() > 0 => HeadOutcome::Waits,
            CommandKind::REPLAY => self.begin_nodes(launches, head)?,
            _ => self.do_here(launches, head),
        };
        if matches!(turn, HeadOutcome::Moved) {
            launches.count_command();
        }
        Ok(turn)
    }

    #[inline]
    fn is_skipped(&self, number: u64) -> bool {
        // Acquire: pairs with the Release in the host's `StreamCore::abort`.
        number <= self.line.skip_to.load(Ordering::Acquire)
            || self.ring.consumer().stopped.load(Ordering::Relaxed) != 0
    }

    /// Commands that take no time, with nothing of the stream on its way.
    fn do_here<C: Config>(&self, launches: &mut Launches<'a, C>, head: CommandHead) -> HeadOutcome {
        let (now_ns, machine) = (launches.session_ns(), launches.machine());
        let turn = match head.kind {
            CommandKind::RECORD => self.record(now_ns, machine),
            CommandKind::WAIT => self.wait(machine),
            CommandKind::RESET => HeadOutcome::Moved,
            CommandKind::WRITE_VALUE => self.write_value(machine),
            CommandKind::WAIT_VALUE => self.wait_value(machine),
            _ => HeadOutcome::Host,
        };
        if matches!(turn, HeadOutcome::Moved) {
            let end = self.at().wrapping_add(head.entries());
            self.lane.at.store(end, Ordering::Relaxed);
            self.over(end, head.number);
        }
        turn
    }

    pub(super) fn word(&self, index: usize) -> u64 {
        self.ring.word(self.at(), index)
    }

    fn event(&self, machine: &mut impl Machine) -> Option<&'a EventLine> {
        let address = GmAddr(self.word(0));
        machine.refresh(address, size_of::<EventLine>() as u64);
        self.around.gm.live(self.around.gm.offset_of(address, size_of::<EventLine>() as u64)?)
    }

    /// A record that is not the next one of its event is the host's, which knows the others.
    fn record(&self, now_ns: u64, machine: &mut impl Machine) -> HeadOutcome {
        let record = self.word(1);
        // Acquire: pairs with the Release store in `EventLine::complete`. A waiter for the record before this one may see this one,
        // and then sees what was done before that one.
        let is_next =
            |line: &&EventLine| line.completed.load(Ordering::Acquire).wrapping_add(1) == record;
        let Some(line) = self.event(machine).filter(is_next) else { return HeadOutcome::Host };
        line.time_ns.store(now_ns, Ordering::Relaxed);
        // Release: pairs with the Acquire loads in `wait`, and in `EventCore::look_at_line` of the host.
        line.completed.store(record, Ordering::Release);
        machine.refresh(GmAddr(self.word(0)), size_of::<EventLine>() as u64);
        HeadOutcome::Moved
    }

    fn wait(&self, machine: &mut impl Machine) -> HeadOutcome {
        let Some(line) = self.event(machine) else { return HeadOutcome::Host };
        // Acquire: pairs with the Release stores in `record`, and in `EventLine::complete`, which the host calls.
        let is_complete = line.completed.load(Ordering::Acquire) >= self.word(1);
        if is_complete { HeadOutcome::Moved } else { HeadOutcome::Waits }
    }

    fn value(&self, machine: &mut impl Machine) -> Option<&'a AtomicU64> {
        machine.refresh(GmAddr(self.word(0)), 8);
        self.around.gm.live(self.around.gm.offset_of(GmAddr(self.word(0)), 8)?)
    }

    fn write_value(&self, machine: &mut impl Machine) -> HeadOutcome {
        let Some(word) = self.value(machine) else { return HeadOutcome::Host };
        // Release: pairs with the Acquire load in `wait_value`.
        word.store(self.word(1), Ordering::Release);
        machine.refresh(GmAddr(self.word(0)), 8);
        HeadOutcome::Moved
    }

    fn wait_value(&self, machine: &mut impl Machine) -> HeadOutcome {
        let test = u32::try_from(self.word(2)).ok().and_then(|test| ValueTest::try_from(test).ok());
        let Some((test, word)) = test.zip(self.value(machine)) else { return HeadOutcome::Host };
        // Acquire: pairs with the Release store in `write_value`, or with whatever a kernel does.
        let is_met = test.is_met(word.load(Ordering::Acquire), self.word(1));
        if is_met { HeadOutcome::Moved } else { HeadOutcome::Waits }
    }

    /// The kernel that the head asks for, and its blocks.
    #[inline]
    fn call(&self, head: CommandHead) -> (FuncId, Option<CoreKind>, u32, usize) {
        let func = FuncId(u16::try_from(self.word(0)).unwrap_or(u16::MAX));
        let kind = u8::try_from(self.word(1)).ok().and_then(|kind| CoreKind::try_from(kind).ok());
        let blocks = u32::try_from(self.word(2)).unwrap_or(1).max(1);
        (func, kind, blocks, head.words.saturating_sub(LAUNCH_WORDS))
    }

    /// How long a kernel of the stream may take, in microseconds; `NO_CHUNK`: as long as the run says.
    #[inline]
    pub(super) fn budget_us(&self) -> u32 {
        match self.line.kernel_budget_us.load(Ordering::Relaxed) {
            0 => NO_CHUNK,
            budget => u32::try_from(budget).unwrap_or(NO_CHUNK),
        }
    }

    #[inline]
    fn begin_launch<C: Config>(
        &self,
        launches: &mut Launches<'a, C>,
        head: CommandHead,
    ) -> Result<HeadOutcome, Blame> {
        let in_flight = self.in_flight();
        if self.word(2) != 1 {
            return if in_flight > 0 {
                Ok(HeadOutcome::Waits)
            } else {
                self.begin_blocks(launches, head)
            };
        }
        if in_flight >= DEPTH || !launches.has_room(in_flight) {
            return Ok(HeadOutcome::Waits);
        }
        let after = (in_flight > 0).then(|| self.lane.last.load(Ordering::Relaxed));
        let begun = self.begin_task(launches, head, None, after)?;
        if begun {
            self.pass(head);
        }
        Ok(if begun { HeadOutcome::Moved } else { HeadOutcome::Waits })
    }

    /// Begins as many blocks of a launch as there is room for.
    #[inline(never)]
    fn begin_blocks<C: Config>(
        &self,
        launches: &mut Launches<'a, C>,
        head: CommandHead,
    ) -> Result<HeadOutcome, Blame> {
        let (_, _, blocks, _) = self.call(head);
        let (mut block, mut moved) = (self.lane.blocks_begun.load(Ordering::Relaxed), false);
        while block < blocks && launches.has_room(self.in_flight()) {
            let context = BlockContext { block, blocks, lane: 0 };
            if !self.begin_task(launches, head, Some(context), None)? {
                break;
            }
            (block, moved) = (block + 1, true);
            self.lane.blocks_begun.store(block, Ordering::Relaxed);
        }
        if block == blocks && moved {
            self.pass(head);
        }
        Ok(if moved { HeadOutcome::Moved } else { HeadOutcome::Waits })
    }

    /// Begins one task; `false`: there is no room.
    #[inline]
    fn begin_task<C: Config>(
        &self,
        launches: &mut Launches<'a, C>,
        head: CommandHead,
        block: Option<BlockContext>,
        after: Option<u32>,
    ) -> Result<bool, Blame> {
        let (func, kind, blocks, args) = self.call(head);
        let Some(kind) = kind else {
            return self.begin_transfer(launches, head, (func, args), after);
        };
        let words = args + usize::from(block.is_some());
        let Some(kernel) = launches.kernel(func, kind, words) else {
            self.lane.refused.store(1, Ordering::Relaxed);
            return Err(launches.refusal(func, kind, words));
        };
        let (ring, at) = (self.ring, self.at());
        let arg = |index: usize| ring.word(at, LAUNCH_WORDS + index);
        let context = block.map(BlockContext::word);
        let budget_us = self.budget_us();
        let part = LaunchTask { func, kind, kernel, args, arg: &arg, context, budget_us };
        let Some(slot) = launches.begin(&part, after.into_iter()) else { return Ok(false) };
        let is_last = block.is_none_or(|block| block.block + 1 == blocks);
        self.note(launches, slot, head, (blocks, is_last));
        Ok(true)
    }

    /// Begins a transfer; `false`: there is no room.
    #[cold]
    #[inline(never)]
    fn begin_transfer<C: Config>(
        &self,
        launches: &mut Launches<'a, C>,
        head: CommandHead,
        (func, args): (FuncId, usize),
        after: Option<u32>,
    ) -> Result<bool, Blame> {
        let (ring, at) = (self.ring, self.at());
        if self.word(1) != u64::from(TRANSFER) {
            self.lane.refused.store(1, Ordering::Relaxed);
            let blame = Blame::of(Fault::BUILD_UNKNOWN_KIND).func(func.0.into());
            return Err(blame.detail(self.word(1), 0));
        }
        let arg = |index: usize| ring.word(at, LAUNCH_WORDS + index);
        let part = self.transfer(launches, (func, args), &arg)?;
        let Some(slot) = launches.begin_transfer(&part, after.into_iter()) else {
            return Ok(false);
        };
        self.note(launches, slot, head, (1, true));
        Ok(true)
    }

    /// A transfer, if the device moves any.
    #[cold]
    pub(super) fn transfer<'w, C: Config, W>(
        &self,
        launches: &Launches<'a, C>,
        (func, args): (FuncId, usize),
        arg: &'w W,
    ) -> Result<LaunchTask<'w, W>, Blame> {
        // The kind of core that its kernel has in the library.
        let kind = CoreKind::AIV;
        let kernel = launches.kernel(func, kind, args);
        let Some(kernel) = kernel.filter(|_| launches.takes_transfers()) else {
            self.lane.refused.store(1, Ordering::Relaxed);
            return Err(match kernel {
                None => launches.refusal(func, kind, args),
                Some(_) => Blame::of(Fault::TRANSFER_NO_ENGINE).func(func.0.into()),
            });
        };
        Ok(LaunchTask { func, kind, kernel, args, arg, context: None, budget_us: NO_CHUNK })
    }

    #[inline]
    pub(super) fn note<C: Config>(
        &self,
        launches: &Launches<'a, C>,
        slot: u32,
        head: CommandHead,
        (blocks, is_last): (u32, bool),
    ) {
        let Some(note) = launches.note(slot) else { return };
        note.number.store(head.number, Ordering::Relaxed);
        note.end.store(self.at().wrapping_add(head.entries()), Ordering::Relaxed);
        note.blocks.store(blocks, Ordering::Relaxed);
        note.is_last.store(is_last.into(), Ordering::Relaxed);
        let in_flight = self.in_flight();
        if in_flight == 0 {
            self.lane.first.store(slot, Ordering::Relaxed);
        } else if let Some(last) = launches.note(self.lane.last.load(Ordering::Relaxed)) {
            last.next.store(slot, Ordering::Relaxed);
        }
        self.lane.last.store(slot, Ordering::Relaxed);
        self.lane.in_flight.store(in_flight + 1, Ordering::Relaxed);
    }
}
