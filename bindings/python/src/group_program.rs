//! The program of [`Group`](crate::group::Group): one collective call on a tensor in a window, by the ranks of an axis of a mesh.

use pto_host::graph::group::{Communicator, Options, Order, Reduction};
use pto_host::graph::{BuildError, ElementType, StreamBuilder, TensorView, builder_set};

builder_set! {
    /// The programs of a group.
    pub(crate) struct CollectivePrograms {}
    stream { "collective" => collective }
}

const ALL_REDUCE: u8 = 0;
const ALL_GATHER: u8 = 1;
const REDUCE_SCATTER: u8 = 2;
const ALL_TO_ALL: u8 = 3;
const BROADCAST: u8 = 4;
const REDUCE: u8 = 5;

/// The collectives by name.
pub(crate) const KINDS: [(&str, u8); 6] = [
    ("all_reduce", ALL_REDUCE),
    ("all_gather", ALL_GATHER),
    ("reduce_scatter", REDUCE_SCATTER),
    ("all_to_all", ALL_TO_ALL),
    ("broadcast", BROADCAST),
    ("reduce", REDUCE),
];

/// The reductions by name.
pub(crate) const REDUCTIONS: [(&str, u8); 4] = [
    ("sum", Reduction::SUM.get()),
    ("max", Reduction::MAX.get()),
    ("min", Reduction::MIN.get()),
    ("prod", Reduction::PROD.get()),
];

/// What is to be done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) kind: u8,
    pub(crate) element: ElementType,
    /// Elements of the tensor of a rank.
    pub(crate) count: u64,
    pub(crate) reduction: Reduction,
    /// Of the axis.
    pub(crate) root: u32,
    /// From one rank of the axis to the next, and how many there are.
    pub(crate) axis: (u32, u32),
    pub(crate) window: u64,
}

impl Call {
    /// Its words.
    pub(crate) fn words(&self) -> [u64; 8] {
        let Self { kind, element, count, reduction, root, axis, window } = *self;
        let codes = [kind, element.get(), reduction.get()].map(u64::from);
        let [root, stride, extent] = [root, axis.0, axis.1].map(u64::from);
        [codes[0], codes[1], count, codes[2], root, stride, extent, window]
    }

    /// The number of the window.
    pub(crate) fn window(&self) -> u32 {
        u32::try_from(self.window).unwrap_or(u32::MAX)
    }

    /// From the tensor to the second one, which an all-to-all writes.
    pub(crate) fn stride(&self) -> u64 {
        (self.count * self.element.bytes()).next_multiple_of(64)
    }

    /// Where the result begins in the window.
    pub(crate) fn result_at(&self) -> u64 {
        if self.kind == ALL_TO_ALL { self.stride() } else { 0 }
    }

    fn of(words: &[u64]) -> Option<Self> {
        let [kind, element, count, reduction, root, stride, extent, window] = *words else {
            return None;
        };
        let byte = |word: u64| u8::try_from(word).ok();
        let number = |word: u64| u32::try_from(word).ok();
        Some(Self {
            kind: byte(kind)?,
            element: ElementType::try_from(byte(element)?).ok()?,
            count,
            reduction: Reduction::try_from(byte(reduction)?).ok()?,
            root: number(root)?,
            axis: (number(stride)?, number(extent)?),
            window,
        })
    }
}

fn collective<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let mut all = Communicator::of(stream.launch_args())?;
    let call = Call::of(stream.orch_args()).ok_or(BuildError::Failed(1))?;
    let count = [u32::try_from(call.count).map_err(|_| BuildError::Failed(2))?];
    let window = all.window(call.window())?;
    let tensor = |at| TensorView::dense(window.at(at), call.element, &count);
    let (values, other) = (tensor(0), tensor(call.stride()));
    let (stride, extent) = call.axis;
    let index = (all.rank() / stride.max(1)) % extent.max(1);
    // This rank is one of them.
    let axis = all.strided(all.rank() - index * stride, stride, extent)?;
    let mut comm = axis.ok_or(BuildError::Failed(3))?;
    // The same bits whatever the algorithm.
    let options = Options { order: Order::FIXED, ..Options::default() };
    match call.kind {
        ALL_REDUCE => comm.all_reduce(stream, &values, call.reduction, &options)?,
        ALL_GATHER => comm.all_gather(stream, &values, &options)?,
        REDUCE_SCATTER => {
            comm.reduce_scatter(stream, &values, call.reduction, &options)?;
        }
        ALL_TO_ALL => comm.all_to_all(stream, (&values, &other), &options)?,
        BROADCAST => comm.broadcast(stream, &values, call.root, &options)?,
        REDUCE => comm.reduce(stream, &values, (call.root, call.reduction), &options)?,
        _ => return Err(BuildError::Failed(4)),
    }
    Ok(())
}
