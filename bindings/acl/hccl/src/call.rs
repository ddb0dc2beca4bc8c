//! A call of one rank: what all ranks have to agree in, which call of the others it meets, and its bytes.

use pto_host::graph::ElementType;
use pto_host::graph::group::Reduction;

use crate::failure::{Checked, Failure, NOT_SUPPORTED, PARAMETER, require};

/// What is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    AllReduce,
    Broadcast,
    Reduce,
    AllGather,
    ReduceScatter,
    AllToAll,
    AllToAllCounted,
    Scatter,
    Transfer,
    Barrier,
}

impl Kind {
    /// All of them, in the order of their numbers.
    pub(crate) const ALL: [Self; 10] = [
        Self::AllReduce,
        Self::Broadcast,
        Self::Reduce,
        Self::AllGather,
        Self::ReduceScatter,
        Self::AllToAll,
        Self::AllToAllCounted,
        Self::Scatter,
        Self::Transfer,
        Self::Barrier,
    ];
}

/// Ranks of one process at most (`GroupError::Size`).
pub(crate) const MOST_RANKS: u32 = 384;

/// What all ranks of a call agree in, and the counts of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) kind: Kind,
    pub(crate) element: ElementType,
    pub(crate) reduction: Reduction,
    pub(crate) root: u32,
    /// Elements of a rank's part, or of the tensor where there are no parts.
    pub(crate) count: u64,
    /// Of an all-to-all with counts: what this rank sends to each, then what it receives from each.
    pub(crate) counts: Vec<u64>,
}

impl Call {
    /// What has to be the same at all ranks, for people.
    pub(crate) fn described(&self) -> String {
        let Self { kind, element, reduction, root, count, .. } = self;
        format!("{kind:?} of {count} {element:?}, {reduction:?}, root {root}")
    }

    /// Whether two ranks agree.
    pub(crate) fn agrees(&self, other: &Self) -> bool {
        self.described() == other.described()
    }
}

/// Which calls meet: those with the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    /// The two ranks of a transfer; `None`: all ranks take part.
    pub(crate) pair: Option<(u32, u32)>,
    /// The number of the call at each of its ranks.
    pub(crate) number: u64,
    /// How often it ran before, where a capture has recorded it.
    pub(crate) replay: u64,
}

/// One call with the bytes that the rank gives.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) key: Key,
    pub(crate) call: Call,
    pub(crate) data: Vec<u8>,
}

/// The element type with this number.
pub(crate) fn element(data_type: i32) -> Checked<ElementType> {
    Ok(match data_type {
        0 => ElementType::I8,
        1 => ElementType::I16,
        2 => ElementType::I32,
        3 => ElementType::F16,
        4 => ElementType::F32,
        5 => ElementType::I64,
        6 => ElementType::U64,
        7 => ElementType::U8,
        8 => ElementType::U16,
        9 => ElementType::U32,
        10 => ElementType::F64,
        11 => ElementType::BF16,
        12 | 14..=17 => {
            let text = format!(
                "HcclDataType {data_type}: collectives have integers of 8 to 64 bits, fp16, bfp16, fp32 and fp64; move it as HCCL_DATA_TYPE_UINT8"
            );
            return Err(Failure::new(NOT_SUPPORTED, text));
        }
        _ => {
            let text = format!("there is no HcclDataType {data_type}; pass 0 to 11");
            return Err(Failure::new(PARAMETER, text));
        }
    })
}

/// The reduction with this number.
pub(crate) fn reduction(op: i32) -> Checked<Reduction> {
    let known = [Reduction::SUM, Reduction::PROD, Reduction::MAX, Reduction::MIN];
    let found = usize::try_from(op).ok().and_then(|op| known.get(op).copied());
    found.ok_or_else(|| {
        let text =
            format!("there is no HcclReduceOp {op}; pass 0 (sum), 1 (prod), 2 (max) or 3 (min)");
        Failure::new(PARAMETER, text)
    })
}

/// Bytes of so many elements.
pub(crate) fn bytes(element: ElementType, count: u64) -> Checked<usize> {
    // A tensor of a group counts its elements in 32 bits.
    require(u32::try_from(count).is_ok(), PARAMETER, || {
        format!("{count} elements; a call has up to 4,294,967,295 of all ranks: make several calls")
    })?;
    usize::try_from(count * element.bytes())
        .map_err(|_| Failure::new(PARAMETER, format!("{count} elements have no address")))
}

/// Words and bytes in a frame.
#[derive(Debug, Default)]
pub(crate) struct Frame(pub(crate) Vec<u8>);

impl Frame {
    pub(crate) fn word(&mut self, word: u64) {
        self.0.extend_from_slice(&word.to_le_bytes());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn item(&mut self, item: &Item) {
        let Item { key, call, data } = item;
        let (from, to) = key.pair.unwrap_or((u32::MAX, u32::MAX));
        let head = [
            from.into(),
            to.into(),
            key.number,
            key.replay,
            call.kind as u64,
            call.element.get().into(),
            call.reduction.get().into(),
            call.root.into(),
            call.count,
            call.counts.len() as u64,
        ];
        head.iter().chain(&call.counts).for_each(|word| self.word(*word));
        self.bytes(data);
    }
}

/// Reads a frame. `None`: it is none of ours.
pub(crate) struct Reader<'f>(pub(crate) &'f [u8]);

impl Reader<'_> {
    pub(crate) fn word(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*word))
    }

    fn small<T: TryFrom<u64>>(&mut self) -> Option<T> {
        self.word()?.try_into().ok()
    }

    pub(crate) fn bytes(&mut self) -> Option<Vec<u8>> {
        let length = self.small::<usize>()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes.to_vec())
    }

    pub(crate) fn item(&mut self) -> Option<Item> {
        let pair = (self.small()?, self.small()?);
        let pair = (pair != (u32::MAX, u32::MAX)).then_some(pair);
        let key = Key { pair, number: self.word()?, replay: self.word()? };
        let kind = *Kind::ALL.get(self.small::<usize>()?)?;
        let element = ElementType::try_from(self.small::<u8>()?).ok()?;
        let reduction = Reduction::try_from(self.small::<u8>()?).ok()?;
        let (root, count) = (self.small()?, self.word()?);
        let length = self.word()?.min(2 * u64::from(MOST_RANKS));
        let counts = (0..length).map(|_| self.word()).collect::<Option<Vec<_>>>()?;
        let call = Call { kind, element, reduction, root, count, counts };
        Some(Item { key, call, data: self.bytes()? })
    }
}
