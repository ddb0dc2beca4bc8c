//! The program of a campaign: the calls that its words say, on tensors in window 0.
//!
//! The window has two tensors, and a slot for each put: the first tensor is what the calls work on.

use pto_graph::group::{Algorithm, Communicator, Options, Order, Reduction, RemoteAddress, Signal};
use pto_graph::{BuildError, ElementType, StreamBuilder, TensorView, builder_set};

use super::setting::{Call, CallKind, MOST, Setting, Trouble};
use crate::group::ranks::GroupWork;

/// Bytes of a tensor.
pub(super) const TENSOR_BYTES: u64 = 4 * MOST as u64;
/// Words of a call.
const WORDS: usize = 7;
/// What the builder of a rank does besides its calls.
const COMES: u64 = 0;
const NEVER_COMES: u64 = 1;
const FAILS: u64 = 2;

builder_set! {
    pub(super) struct SoakPrograms {}
    stream { "soak" => build }
}

/// The inputs of a rank.
pub(super) fn words(setting: &Setting, rank: u32, is_troubled: bool) -> Vec<u64> {
    let own = |of: u32| is_troubled && of == rank;
    let how = match setting.trouble {
        Trouble::NeverComes(of) if own(of) => NEVER_COMES,
        Trouble::Fails(of) if own(of) => FAILS,
        _ => COMES,
    };
    let mut words = vec![how];
    for call in &setting.calls {
        let Call { what, reduction, algorithm, order, elements, root, tile_bytes } = *call;
        let codes = [what.get(), reduction.get(), algorithm.get(), order.get()].map(u64::from);
        words.extend(codes);
        words.extend([elements as u64, root.into(), tile_bytes]);
    }
    if let Trouble::Differs(of) = setting.trouble
        && own(of)
        && let Some(elements) = words.len().checked_sub(3)
    {
        // As many as the last call has not: a part more or less for every rank.
        let ranks = u64::from(setting.ranks);
        words[elements] =
            if words[elements] > ranks { words[elements] - ranks } else { words[elements] + ranks };
    }
    words
}

/// The work of a run.
pub(super) fn work<'a>(words: &'a (dyn Fn(u32) -> Vec<u64> + Sync)) -> GroupWork<'a> {
    GroupWork { builder: "soak", args: words }
}

fn build<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let mut comm = Communicator::of(stream.launch_args())?;
    let (how, words) = split(stream.orch_args())?;
    let calls: Vec<[u64; WORDS]> = words.as_chunks().0.to_vec();
    if how == NEVER_COMES {
        return Ok(());
    }
    for (at, words) in (0_u32..).zip(calls) {
        make(stream, &mut comm, at, &read(words)?)?;
    }
    if how == FAILS { Err(BuildError::Failed(9)) } else { Ok(()) }
}

fn split(words: &[u64]) -> Result<(u64, &[u64]), BuildError> {
    words.split_first().map(|(how, words)| (*how, words)).ok_or(BuildError::Failed(1))
}

fn read(words: [u64; WORDS]) -> Result<Call, BuildError> {
    let [what, reduction, algorithm, order, elements, root, tile_bytes] = words;
    let wrong = || BuildError::Failed(2);
    let byte = |word: u64| u8::try_from(word).map_err(|_| wrong());
    Ok(Call {
        what: CallKind::try_from(byte(what)?).map_err(|_| wrong())?,
        reduction: Reduction::try_from(byte(reduction)?).map_err(|_| wrong())?,
        algorithm: Algorithm::try_from(byte(algorithm)?).map_err(|_| wrong())?,
        order: Order::try_from(byte(order)?).map_err(|_| wrong())?,
        elements: usize::try_from(elements).map_err(|_| wrong())?,
        root: u32::try_from(root).map_err(|_| wrong())?,
        tile_bytes,
    })
}

#[inline(never)]
fn make<G: StreamBuilder>(
    stream: &mut G,
    comm: &mut Communicator,
    at: u32,
    call: &Call,
) -> Result<(), BuildError> {
    let window = comm.window(0)?;
    let count = [u32::try_from(call.elements).map_err(|_| BuildError::Failed(3))?];
    let tensor =
        |at: u64| TensorView::dense(window.at(at * TENSOR_BYTES), ElementType::I32, &count);
    let (first, second, slot) = (tensor(0), tensor(1), 2 + u64::from(at));
    let options =
        Options { algorithm: call.algorithm, order: call.order, tile_bytes: call.tile_bytes };
    let (next, before) =
        ((comm.rank() + 1) % comm.size(), (comm.rank() + comm.size() - 1) % comm.size());
    match call.what {
        CallKind::BROADCAST => comm.broadcast(stream, &first, call.root, &options)?,
        CallKind::REDUCE => {
            comm.reduce(stream, &first, (call.root, call.reduction), &options)?;
            comm.broadcast(stream, &first, call.root, &options)?;
        }
        CallKind::ALL_REDUCE => comm.all_reduce(stream, &first, call.reduction, &options)?,
        CallKind::SCATTER_GATHER => {
            comm.reduce_scatter(stream, &first, call.reduction, &options)?;
            comm.all_gather(stream, &first, &options)?;
        }
        CallKind::ALL_TO_ALL => comm.all_to_all(stream, (&first, &second), &options)?,
        CallKind::PUT => {
            let signal = Signal { slot: at, value: 1 };
            let remote = RemoteAddress { rank: next, window: 0, offset: slot * TENSOR_BYTES };
            comm.put(stream, &first, remote, Some(signal))?;
            comm.wait(stream, signal, &tensor(slot))?;
        }
        CallKind::SEND => {
            comm.send(stream, &first, next, at)?;
            comm.receive(stream, &second, before, at)?;
        }
        _ => comm.barrier(stream, &first)?,
    }
    Ok(())
}
