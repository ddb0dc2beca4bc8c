//! Block shapes: what a task is that needs several cores, or waits for a predicate. The value is worked out of a
//! submission, is written to the notes of a slot when the task is published, and may be stored in a recording in
//! between.

use pto_abi::limits::MAX_BLOCKS;
use pto_abi::stream::{BlockLine, HAS_PREDICATE, MAX_LANES, NO_LIST, SYNC_START};
use pto_abi::sync::Ordering::Relaxed;
use pto_abi::{CoreKind, Fault, FuncId, GmAddr};
use pto_graph::{BlockShape, ElementType, Priority, StartMode};

use crate::blame::Blame;
use crate::block_shapes::{Lanes, List};

/// The kernels of a block, by lane: their func ids and their code.
pub(super) struct LaneKernels {
    pub(super) lanes: Lanes,
    code: [(FuncId, GmAddr); MAX_LANES],
}

impl LaneKernels {
    pub(super) const NONE: Self =
        Self { lanes: Lanes(0), code: [(FuncId(0), GmAddr::NULL); MAX_LANES] };

    /// One more kernel, for a core of `kind`; `false`: a cluster has no more.
    pub(super) fn add(&mut self, kind: CoreKind, func_id: FuncId, code: GmAddr) -> bool {
        let mut lanes = if kind == CoreKind::AIC { 0..1 } else { 1..MAX_LANES };
        let Some(lane) = lanes.find(|lane| !self.lanes.has(*lane)) else { return false };
        self.lanes.0 |= 1 << lane;
        self.code[lane % MAX_LANES] = (func_id, code);
        true
    }
}

/// See the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockSpec {
    kernels: [u64; MAX_LANES],
    func_ids: [u16; MAX_LANES],
    flags: u32,
    blocks: u32,
    list: u32,
    test: u32,
    /// The address of the element that the predicate reads.
    pub(super) address: u64,
    value: u64,
}

impl BlockSpec {
    /// The number of words of a spec in the buffer.
    pub(super) const WORDS: usize = MAX_LANES + 5;

    /// A block of these kernels is one that the device has cores for, `room` of them at once.
    pub(super) fn check(shape: &BlockShape<'_>, lanes: Lanes, room: u32) -> Result<(), Blame> {
        let refuse = |fault, found: u32, bound: u32| {
            Err(Blame::of(fault).detail(found.into(), bound.into()))
        };
        let blocks = shape.blocks();
        if blocks == 0 || blocks > MAX_BLOCKS {
            return refuse(Fault::STREAM_BLOCKS, blocks, MAX_BLOCKS);
        }
        if room == 0 {
            return refuse(Fault::STREAM_MIX, lanes.count(), 0);
        }
        if shape.start() == StartMode::SYNC && blocks > room {
            return refuse(Fault::STREAM_SYNC_BLOCKS, blocks, room);
        }
        Ok(())
    }

    /// The block shape of a task with these kernels.
    pub(super) fn of(shape: &BlockShape<'_>, kernels: &LaneKernels) -> Self {
        let lanes = kernels.lanes;
        let is_sync = shape.start() == StartMode::SYNC;
        let is_plain_with_predicate = shape.blocks() == 1
            && lanes.count() == 1
            && shape.priority() == Priority::NORMAL
            && !is_sync;
        let list = match (is_plain_with_predicate, is_sync) {
            _ if shape.is_transfer() => List::TRANSFERS.0,
            (true, _) => NO_LIST,
            (_, true) => List::sync(shape.priority()).0,
            _ => List::spread(shape.priority(), lanes).0,
        };
        let mut line = Self {
            kernels: kernels.code.map(|(_, code)| code.0),
            func_ids: kernels.code.map(|(func_id, _)| func_id.0),
            flags: u32::from(lanes.0) | if is_sync { SYNC_START } else { 0 },
            blocks: shape.blocks(),
            list,
            test: 0,
            address: 0,
            value: 0,
        };
        if let Some(predicate) = shape.when() {
            let element = predicate.element();
            line.flags |= HAS_PREDICATE;
            line.test =
                u32::from(predicate.comparison().get()) | u32::from(element.element().get()) << 8;
            line.address = element.address().0;
            line.value = predicate.value();
        }
        line
    }

    /// The lanes of a block, and their func ids.
    pub(super) fn lanes(&self) -> impl Iterator<Item = (u32, u32)> + use<> {
        let [lanes, ..] = self.flags.to_le_bytes();
        let all = (0_u32..).zip(self.func_ids.map(u32::from));
        all.filter(move |(lane, _)| Lanes(lanes).has(*lane as usize))
    }

    /// Whether it depends on a predicate.
    pub(super) const fn has_predicate(&self) -> bool {
        self.flags & HAS_PREDICATE != 0
    }

    /// Bytes of the element that the predicate is on.
    pub(super) fn element_bytes(&self) -> u64 {
        let [_, element, ..] = self.test.to_le_bytes();
        ElementType::try_from(element).map_or(0, ElementType::bytes)
    }

    /// The words that hold it on a buffer; `base`: what the address of its predicate is counted from.
    pub(super) fn words(&self, base: u8) -> [u64; Self::WORDS] {
        let two = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let [first, second, third] = self.func_ids.map(u64::from);
        let ids = first | second << 16 | third << 32 | u64::from(base) << 48;
        let [a, b, c] = self.kernels;
        let (flags, list) = (two(self.flags, self.blocks), two(self.list, self.test));
        [a, b, c, ids, flags, list, self.address, self.value]
    }

    /// What [`words`](Self::words) was given.
    pub(super) fn of_words(words: [u64; Self::WORDS]) -> (Self, u8) {
        let half = |word: u64, shift: u32| (word >> shift & 0xFFFF_FFFF) as u32;
        let [k0, k1, k2, ids, flags, list, address, value] = words;
        let [a, b, c, d, e, f, base, _] = ids.to_le_bytes();
        let shape = Self {
            kernels: [k0, k1, k2],
            func_ids: [[a, b], [c, d], [e, f]].map(u16::from_le_bytes),
            flags: half(flags, 0),
            blocks: half(flags, 32),
            list: half(list, 0),
            test: half(list, 32),
            address,
            value,
        };
        (shape, base)
    }

    /// Writes the notes of a task that is not published.
    pub(super) fn write(&self, line: &BlockLine) {
        let kernels = line.kernels.iter().zip(&line.func_ids);
        for ((kernel, func_id), (code, id)) in kernels.zip(self.kernels.iter().zip(self.func_ids)) {
            kernel.store(*code, Relaxed);
            func_id.store(id.into(), Relaxed);
        }
        let [lanes, ..] = self.flags.to_le_bytes();
        line.flags.store(self.flags, Relaxed);
        line.blocks.store(self.blocks, Relaxed);
        line.next_block.store(0, Relaxed);
        line.parts_left.store(self.blocks * Lanes(lanes).count(), Relaxed);
        line.list.store(self.list, Relaxed);
        line.test.store(self.test, Relaxed);
        line.address.store(self.address, Relaxed);
        line.value.store(self.value, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{BlockSpec, LaneKernels};
    use crate::block_shapes::Lanes;
    use pto_abi::stream::BlockLine;
    use pto_abi::sync::Ordering::Relaxed;
    use pto_abi::{CoreKind, Fault, FuncId, GmAddr};
    use pto_graph::{Comparison, ElementType, Predicate, Priority, TensorTask, TensorView};

    #[test]
    fn a_block_shape_survives_a_recording() {
        let flags = TensorView::dense(GmAddr(0xA_0000), ElementType::I16, &[9]);
        let when = Predicate::new(&flags, &[3], Comparison::GREATER_EQUAL, u64::MAX - 4);
        let task = TensorTask::new(FuncId(1023), CoreKind::AIC, &[]);
        let task = task.blocks(0xFF_FFFF).sync_start().priority(Priority::URGENT).when(&when);
        let mut kernels = LaneKernels::NONE;
        for (kind, id) in [(CoreKind::AIC, 1023), (CoreKind::AIV, 7), (CoreKind::AIV, 513)] {
            assert!(kernels.add(kind, FuncId(id), GmAddr(u64::MAX - u64::from(id))));
        }
        assert!(!kernels.add(CoreKind::AIV, FuncId(1), GmAddr(1)), "three are a cluster");
        assert_eq!(kernels.lanes, Lanes(7));
        let line = BlockSpec::of(&task.block_shape, &kernels);
        assert_eq!(BlockSpec::of_words(line.words(65)), (line, 65));
        assert_eq!((line.has_predicate(), line.element_bytes()), (true, 2));
        let written = BlockLine::default();
        written.next_block.store(5, Relaxed);
        line.write(&written);
        let numbers = [&written.next_block, &written.parts_left].map(|word| word.load(Relaxed));
        assert_eq!(numbers, [0, 3 * 0xFF_FFFF]);
    }

    #[test]
    fn blocks_have_cores_or_are_refused() {
        let task = TensorTask::new(FuncId(1), CoreKind::AIV, &[]);
        let lanes = Lanes(0b110);
        let check = |task: TensorTask<'_>, room| {
            BlockSpec::check(&task.block_shape, lanes, room)
                .map_err(|blame| (blame.fault, blame.detail))
        };
        assert_eq!(check(task.blocks(99), 4), Ok(()), "in turn");
        assert_eq!(check(task.blocks(4).sync_start(), 4), Ok(()));
        let at_once = check(task.blocks(5).sync_start(), 4);
        assert_eq!(at_once, Err((Fault::STREAM_SYNC_BLOCKS, [5, 4])));
        assert_eq!(check(task.blocks(1), 0), Err((Fault::STREAM_MIX, [2, 0])));
        assert!(matches!(check(task.blocks(0), 4), Err((Fault::STREAM_BLOCKS, [0, _]))));
    }
}
