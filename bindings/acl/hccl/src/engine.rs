//! The group that computes the calls: a device for each rank, and a program that makes the call of the communicator.

use std::collections::BTreeMap;

use pto_host::abi::{Fault, GmAddr};
use pto_host::graph::group::{Communicator, Options, Order, Reduction};
use pto_host::graph::{BuildError, ElementType, StreamBuilder, TensorView, builder_set};
use pto_host::group::{Group, GroupError, GroupOptions, GroupWork};
use pto_host::{DeviceOptions, RunOptions};

use crate::call::{Call, Kind};
use crate::failure::{Checked, Failure, INTERNAL, MEMORY, PARAMETER, require};

/// The smallest window. Each further one is at least twice as large, so that a group's sixteen are enough.
const SMALLEST_WINDOW: u64 = 1 << 20;
/// Memory of each device; it is used as it is touched.
const GM_BYTES: u64 = 64 << 30;
/// Tensors in a window begin at multiples of it.
const ALIGNMENT: u64 = 512;

/// What one call is at one rank: bytes given, or the result.
pub(crate) type OfRanks<T> = BTreeMap<u32, T>;

/// The group, once a call has needed it.
#[derive(Default)]
pub(crate) struct Engine {
    group: Option<Group>,
    /// Bytes of the window that was made last, and its number.
    window: Option<(u64, u32)>,
}

/// The words of the program.
#[derive(Clone, Copy)]
struct Words {
    kind: u64,
    element: u64,
    reduction: u64,
    order: u64,
    root: u64,
    /// The other rank of a transfer.
    to: u64,
    /// Elements of the tensor.
    elements: u64,
    /// Bytes from one tensor of the window to the next.
    stride: u64,
    window: u64,
}

impl Words {
    fn list(self) -> Vec<u64> {
        let Self { kind, element, reduction, order, root, to, elements, stride, window } = self;
        vec![kind, element, reduction, order, root, to, elements, stride, window]
    }

    fn of(words: &[u64]) -> Option<Self> {
        let [kind, element, reduction, order, root, to, elements, stride, window] = *words else {
            return None;
        };
        Some(Self { kind, element, reduction, order, root, to, elements, stride, window })
    }
}

fn small<T: TryFrom<u64>>(word: u64) -> Result<T, BuildError> {
    T::try_from(word).map_err(|_| Fault::BUILD_ORCH_ARGS.into())
}

builder_set! { struct Programs {} stream { "hccl" => program } }

/// Makes the call on the tensors of the window.
fn program<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let words = Words::of(stream.launch_args().program).ok_or(Fault::BUILD_ORCH_ARGS)?;
    let mut comm = Communicator::of(stream.launch_args())?;
    let base = comm.window(small(words.window)?)?.base;
    let at = |number: u64| base.offset(number * words.stride);
    let number = small::<u8>(words.element)?;
    let element = ElementType::try_from(number).map_err(|_| Fault::BUILD_ORCH_ARGS)?;
    let whole = |base: GmAddr| -> Result<TensorView<'_>, BuildError> {
        Ok(TensorView::dense(base, element, &[small(words.elements)?]))
    };
    let tensor = whole(at(0))?;
    let reduction = Reduction::try_from(small::<u8>(words.reduction)?);
    let reduction = reduction.map_err(|_| Fault::BUILD_ORCH_ARGS)?;
    let order = Order::try_from(small::<u8>(words.order)?).map_err(|_| Fault::BUILD_ORCH_ARGS)?;
    let options = Options { order, ..Options::default() };
    let root = small(words.root)?;
    let kind = Kind::ALL.get(small::<usize>(words.kind)?).ok_or(Fault::BUILD_ORCH_ARGS)?;
    match kind {
        Kind::AllReduce => comm.all_reduce(stream, &tensor, reduction, &options)?,
        Kind::Broadcast => comm.broadcast(stream, &tensor, root, &options)?,
        Kind::Reduce => comm.reduce(stream, &tensor, (root, reduction), &options)?,
        Kind::AllGather => comm.all_gather(stream, &tensor, &options)?,
        Kind::ReduceScatter => {
            comm.reduce_scatter(stream, &tensor, reduction, &options)?;
        }
        Kind::AllToAll => comm.all_to_all(stream, (&tensor, &whole(at(1))?), &options)?,
        Kind::AllToAllCounted => {
            let counts = |base| TensorView::dense(base, ElementType::U32, &[comm.size()]);
            let (given, got) = (counts(at(2)), counts(at(3)));
            let (from, to) = ((&tensor, &given), (&whole(at(1))?, &got));
            comm.all_to_all_counted(stream, from, to, (1, &options))?;
        }
        Kind::Scatter if comm.rank() == root => {
            for rank in (0..comm.size()).filter(|rank| *rank != root) {
                let part = comm.part(&tensor, rank)?.ok_or(Fault::TRANSFER_TENSOR)?;
                comm.send(stream, &part, rank, rank)?;
            }
        }
        Kind::Scatter => {
            let part = comm.part(&tensor, comm.rank())?.ok_or(Fault::TRANSFER_TENSOR)?;
            comm.receive(stream, &part, root, comm.rank())?;
        }
        Kind::Transfer if comm.rank() == root => {
            comm.send(stream, &tensor, small(words.to)?, 0)?;
        }
        Kind::Transfer if u64::from(comm.rank()) == words.to => {
            comm.receive(stream, &tensor, root, 0)?;
        }
        Kind::Transfer => {}
        Kind::Barrier => comm.barrier(stream, &tensor)?,
    }
    Ok(())
}

impl Engine {
    /// Runs a call that all its ranks agree in; what each of them gets. `pair`: the ranks of a transfer.
    pub(crate) fn run(
        &mut self,
        size: u32,
        order: Order,
        pair: Option<(u32, u32)>,
        given: &OfRanks<(Call, Vec<u8>)>,
    ) -> Checked<OfRanks<Vec<u8>>> {
        let layout = Layout::of(size, given)?;
        let call = &layout.call;
        if layout.elements == 0 {
            return Ok(given.keys().map(|rank| (*rank, Vec::new())).collect());
        }
        let stride = layout.bytes(layout.elements).next_multiple_of(ALIGNMENT);
        let stride = stride.max((u64::from(size) * 4).next_multiple_of(ALIGNMENT));
        let window = self.window(size, stride * layout.tensors())?;
        let group =
            self.group.as_mut().ok_or_else(|| Failure::new(INTERNAL, "there is no group"))?;
        for (rank, (own, data)) in given {
            layout.write(group, (window, stride), *rank, (own, data)).map_err(failed)?;
        }
        let words = Words {
            kind: call.kind as u64,
            element: call.element.get().into(),
            reduction: call.reduction.get().into(),
            order: order.get().into(),
            root: pair.map_or(call.root, |(from, _)| from).into(),
            to: pair.map_or(0, |(_, to)| to).into(),
            elements: layout.elements,
            stride,
            window: window.into(),
        };
        let options = RunOptions { aicpu_instances: 2, ..RunOptions::default() };
        let work = GroupWork { builder: "hccl", args: &|_| words.list() };
        group.run(&work, &options).map_err(failed)?;
        let read = |(rank, (own, _)): (&u32, &(Call, Vec<u8>))| {
            let data = layout.read(group, (window, stride), *rank, (own, pair))?;
            Ok((*rank, data))
        };
        given.iter().map(read).collect::<Result<_, GroupError>>().map_err(failed)
    }

    /// A window of at least so many bytes. Opens the group first.
    fn window(&mut self, size: u32, bytes: u64) -> Checked<u32> {
        if self.group.is_none() {
            let options = GroupOptions::default();
            let device = DeviceOptions { aic: 1, aiv: 2, gm_bytes: GM_BYTES, ..options.device };
            let options = GroupOptions { device, ..options };
            self.group = Some(Group::open_local(size, &options, Programs).map_err(failed)?);
        }
        if let Some((_, window)) = self.window.filter(|(has, _)| *has >= bytes) {
            return Ok(window);
        }
        let bytes = bytes.next_power_of_two().max(SMALLEST_WINDOW);
        let group =
            self.group.as_mut().ok_or_else(|| Failure::new(INTERNAL, "there is no group"))?;
        let made = group.window(bytes).map_err(|error| {
            Failure::new(MEMORY, format!("{bytes} bytes for the tensors of a call: {error}"))
        })?;
        self.window = Some((bytes, made));
        Ok(made)
    }
}

fn failed(error: GroupError) -> Failure {
    Failure::new(INTERNAL, format!("the group: {error}"))
}

/// Where the bytes of the ranks lie in their windows.
struct Layout {
    call: Call,
    size: u32,
    /// Elements of a rank's part.
    part: u64,
    /// Elements of the tensor.
    elements: u64,
}

impl Layout {
    /// Checks that the ranks agree.
    fn of(size: u32, given: &OfRanks<(Call, Vec<u8>)>) -> Checked<Self> {
        let mut ranks = given.iter();
        let (first, (call, _)) =
            ranks.next().ok_or_else(|| Failure::new(INTERNAL, "a call without ranks"))?;
        for (rank, (other, _)) in ranks {
            require(call.agrees(other), PARAMETER, || {
                let [one, other] = [call, other].map(Call::described);
                format!(
                    "rank {first} calls {one}, and rank {rank} calls {other}; all ranks of a communicator make the same calls in the same order"
                )
            })?;
        }
        if call.kind == Kind::AllToAllCounted {
            check_counts(size, given)?;
        }
        let largest = given.values().flat_map(|(own, _)| own.counts.iter()).max();
        let part = largest.copied().unwrap_or(call.count);
        let has_parts = !matches!(
            call.kind,
            Kind::AllReduce | Kind::Broadcast | Kind::Reduce | Kind::Transfer | Kind::Barrier
        );
        let elements = part.checked_mul(if has_parts { size.into() } else { 1 });
        let elements = elements.filter(|elements| u32::try_from(*elements).is_ok());
        let elements = elements.ok_or_else(|| {
            Failure::new(PARAMETER, format!("{part} elements for each of {size} ranks are more than 4,294,967,295; make several calls"))
        })?;
        Ok(Self { call: call.clone(), size, part, elements })
    }

    fn bytes(&self, elements: u64) -> u64 {
        elements * self.call.element.bytes()
    }

    fn tensors(&self) -> u64 {
        match self.call.kind {
            Kind::AllToAll => 2,
            Kind::AllToAllCounted => 4,
            _ => 1,
        }
    }

    /// Puts what a rank gives where the program finds it.
    fn write(
        &self,
        group: &Group,
        (window, stride): (u32, u64),
        rank: u32,
        (own, data): (&Call, &[u8]),
    ) -> Result<(), GroupError> {
        let member = &group.members()[rank as usize];
        match self.call.kind {
            Kind::AllGather => member.write(window, self.bytes(self.part) * u64::from(rank), data),
            Kind::AllToAllCounted => {
                let counts = &own.counts[..self.size as usize];
                let mut rest = data;
                for (peer, count) in (0_u64..).zip(counts) {
                    let length = usize::try_from(self.bytes(*count)).unwrap_or(usize::MAX);
                    let (piece, behind) = rest.split_at(length.min(rest.len()));
                    member.write(window, self.bytes(self.part) * peer, piece)?;
                    rest = behind;
                }
                // No larger than the part, whose elements 32 bits count.
                let words: Vec<u32> =
                    counts.iter().map(|count| u32::try_from(*count).unwrap_or(u32::MAX)).collect();
                member.write(window, 2 * stride, &words)
            }
            _ => member.write(window, 0, data),
        }
    }

    /// What a rank gets.
    fn read(
        &self,
        group: &Group,
        (window, stride): (u32, u64),
        rank: u32,
        (own, pair): (&Call, Option<(u32, u32)>),
    ) -> Result<Vec<u8>, GroupError> {
        let member = &group.members()[rank as usize];
        let read = |at: u64, elements: u64| {
            let bytes = usize::try_from(self.bytes(elements)).unwrap_or(usize::MAX);
            member.read::<u8>(window, at, bytes)
        };
        match self.call.kind {
            Kind::Barrier => Ok(Vec::new()),
            Kind::Reduce if rank != self.call.root => Ok(Vec::new()),
            Kind::Transfer if pair.is_some_and(|(_, to)| to != rank) => Ok(Vec::new()),
            Kind::ReduceScatter | Kind::Scatter => {
                read(self.bytes(self.part) * u64::from(rank), self.part)
            }
            Kind::AllToAll => read(stride, self.elements),
            Kind::AllToAllCounted => {
                let counts = own.counts[self.size as usize..].iter();
                let pieces = (0_u64..).zip(counts);
                let pieces =
                    pieces.map(|(peer, count)| read(stride + self.bytes(self.part) * peer, *count));
                Ok(pieces.collect::<Result<Vec<_>, _>>()?.concat())
            }
            _ => read(0, self.elements),
        }
    }
}

/// What a rank sends to another one, that one receives.
fn check_counts(size: u32, given: &OfRanks<(Call, Vec<u8>)>) -> Checked {
    let size = size as usize;
    let counts = |rank: usize| {
        let own = u32::try_from(rank).ok().and_then(|rank| given.get(&rank));
        own.map(|(own, _)| own.counts.as_slice()).filter(|counts| counts.len() == 2 * size)
    };
    for (from, to) in (0..size).flat_map(|from| (0..size).map(move |to| (from, to))) {
        let (Some(sends), Some(receives)) = (counts(from), counts(to)) else {
            return Err(Failure::new(PARAMETER, "an all-to-all without the counts of a rank"));
        };
        let (sent, received) = (sends[to], receives[size + from]);
        require(sent == received, PARAMETER, || {
            format!(
                "rank {from} sends {sent} elements to rank {to}, which receives {received} of it; sendCounts and recvCounts have to match"
            )
        })?;
    }
    Ok(())
}
