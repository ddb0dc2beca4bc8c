//! Lists of tasks: graphs as words in the memory of a device, which the streaming runtime adds.
//!
//! The host writes a list (`write.rs`) once for each binding of a program, and [`add`] walks it, with memory that does not depend on its length. A list has
//! what an image of a graph has no room for: block shapes, predicates and priorities; and views instead of addresses, so that edges between a list and
//! what was submitted before and after it follow from the tensors.
//!
//! ```text
//! words of 64 bits:  tasks n | n places for their ids | task 0 | task 1 | ..
//! task:              head | blocks, arguments a (32 bits each) | producers p | func ids of the mix | predicate, if it has one
//!                    | a arguments | p numbers of earlier tasks
//! head of a task:    func (16 bits), kind, start, priority, kernels in the mix, whether it has a predicate, whether a later task names it (8 each)
//! argument:          head: role, element, rank (8 bits each) | a word, or a view
//! predicate:         head as of an argument | view of one element | comparison | value
//! view:              base | bytes | offset in elements | extents | strides, if it has several dimensions
//! ```
//! Nothing in it is trusted: what does not fit is a fault of the builder.

mod role;
#[cfg(feature = "alloc")]
mod write;

use heapless::Vec;
use pto_abi::fault::Fault;
use pto_abi::ids::{FuncId, GmAddr, TaskId};
use pto_abi::kinds::CoreKind;
use pto_abi::limits::{MAX_ARGS, MAX_RANK};

use crate::block_shape::{Priority, StartMode};
use crate::builder::GraphBuilder;
use crate::element::ElementType;
use crate::error::BuildError;
use crate::predicate::{Comparison, Predicate};
use crate::stream::StreamBuilder;
use crate::tensor::{RawView, TensorView};
use crate::tensor_task::{Arg, TensorTask};

pub use role::{IN, IN_OUT, OUT, WORD};
#[cfg(feature = "alloc")]
pub use write::{ListedArg, ListedTask, in_order, words};

/// Words in front of the ids.
pub const HEAD: u32 = 1;
/// Views that a task has at most, without that of its predicate.
pub const MAX_VIEWS: usize = 16;
/// The number of kernels that are read in addition to the task's own kernel; the runtime checks which of them it supports.
const MAX_MIX: usize = 4;

/// Adds the tasks of the list at this address.
///
/// # Errors
/// `BUILD_FAILED`: the list is none; `BUILD_UNKNOWN_TASK`: a task waits for one that does not come before it; those of [`StreamBuilder`].
// Not inlined, because its variables would otherwise use stack of every other program as well.
#[inline(never)]
pub fn add<G: StreamBuilder>(stream: &mut G, at: GmAddr) -> Result<(), BuildError> {
    let mut words = Words { at: at.0 };
    let count = narrow(words.next(stream)?)?;
    let ids = TensorView::dense(at, ElementType::U64, &[count.saturating_add(1)]);
    words.at = at.0.wrapping_add(8 * (u64::from(HEAD) + u64::from(count)));
    for number in 0..count {
        let added = add_one(stream, &mut words)?;
        let id = added.id;
        for _ in 0..added.producers {
            let producer = narrow(words.next(stream)?)?;
            if producer >= number {
                return Err(Fault::BUILD_UNKNOWN_TASK.into());
            }
            let producer = unpacked(stream.get(&ids, &[HEAD + producer])?);
            stream.add_edge(producer, id)?;
        }
        if added.is_named {
            stream.set(&ids, &[HEAD + number], packed(id))?;
        }
        stream.publish(id)?;
    }
    Ok(())
}

/// A task of a list that was added, and is not published.
struct Added {
    id: TaskId,
    /// How many producers it has, whose numbers follow in the list.
    producers: u64,
    /// Whether a later task of the list waits for it.
    is_named: bool,
}

/// Adds the task at the words, which go on to its producers.
fn add_one<G: StreamBuilder>(stream: &mut G, words: &mut Words) -> Result<Added, Fault> {
    let head = words.next(stream)?;
    let func = FuncId(u16::try_from(head & 0xFFFF).unwrap_or(u16::MAX));
    let [kind, start, priority, vectors, has_predicate, is_named] = bytes_from(head, 16);
    let kind = CoreKind::try_from(kind).map_err(|_| Fault::BUILD_FAILED)?;
    let start = StartMode::try_from(start).map_err(|_| Fault::BUILD_FAILED)?;
    let priority = Priority::try_from(priority).map_err(|_| Fault::BUILD_FAILED)?;
    let sizes = words.next(stream)?;
    let (blocks, count) = (low_half(sizes), low_half(sizes >> 32));
    let producers = words.next(stream)?;
    let mut mix = Vec::<FuncId, MAX_MIX>::new();
    for _ in 0..vectors {
        let vector = words.func(stream)?;
        mix.push(vector).map_err(|_| Fault::BUILD_FAILED)?;
    }
    let condition = if has_predicate == 0 { None } else { Some(words.condition(stream)?) };
    let predicate = condition
        .as_ref()
        .map(|(view, index, comparison, value)| Predicate::new(view, index, *comparison, *value));
    let (mut views, mut given) = (Vec::<_, MAX_VIEWS>::new(), Vec::<_, MAX_ARGS>::new());
    for _ in 0..count {
        let head = words.next(stream)?;
        let [role, ..]: [u8; 3] = bytes_from(head, 0);
        let word = match role {
            WORD => words.next(stream)?,
            _ => {
                views.push(words.view(stream, head)?).map_err(|_| Fault::BUILD_FAILED)?;
                views.len() as u64 - 1
            }
        };
        given.push((role, word)).map_err(|_| Fault::BUILD_TOO_MANY_ARGS)?;
    }
    let mut args = Vec::<_, MAX_ARGS>::new();
    for (role, word) in &given {
        let view = || {
            let at = usize::try_from(*word).ok();
            at.and_then(|at| views.get(at)).ok_or(Fault::BUILD_FAILED)
        };
        let arg = match *role {
            WORD => Arg::Scalar(*word),
            IN => Arg::In(view()?),
            OUT => Arg::Out(view()?),
            IN_OUT => Arg::InOut(view()?),
            _ => return Err(Fault::BUILD_FAILED),
        };
        args.push(arg).map_err(|_| Fault::BUILD_TOO_MANY_ARGS)?;
    }
    let task = TensorTask::new(func, kind, &args).mix(&mix).blocks(blocks).priority(priority);
    let task = if start == StartMode::SYNC { task.sync_start() } else { task };
    let task = predicate.as_ref().map_or(task, |predicate| task.when(predicate));
    let id = stream.add_tensor_task(&task)?;
    Ok(Added { id, producers, is_named: is_named != 0 })
}

/// Bytes of a word, from this bit on.
fn bytes_from<const N: usize>(word: u64, first: u32) -> [u8; N] {
    let mut rest = word >> first;
    [(); N].map(|()| {
        let byte = rest.to_le_bytes()[0];
        rest >>= 8;
        byte
    })
}

pub(crate) fn low_half(word: u64) -> u32 {
    u32::try_from(word & u64::from(u32::MAX)).unwrap_or(u32::MAX)
}

fn narrow(word: u64) -> Result<u32, Fault> {
    u32::try_from(word).map_err(|_| Fault::BUILD_FAILED)
}

const fn packed(id: TaskId) -> u64 {
    id.slot as u64 | (id.generation as u64) << 32
}

fn unpacked(word: u64) -> TaskId {
    TaskId { slot: low_half(word), generation: low_half(word >> 32) }
}

/// Where the next word is, in the memory of a device.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// Its address.
    pub at: u64,
}

/// The element of a predicate, its index, and how it is compared with a value.
type Condition = (TensorView<'static>, [u32; 1], Comparison, u64);

impl Words {
    /// The next word.
    ///
    /// # Errors
    /// `BUILD_GM_RANGE`.
    pub fn next<G: GraphBuilder + ?Sized>(&mut self, stream: &G) -> Result<u64, Fault> {
        let word = stream.read_u64(GmAddr(self.at))?;
        self.at = self.at.wrapping_add(size_of::<u64>() as u64);
        Ok(word)
    }

    /// A func id.
    ///
    /// # Errors
    /// `BUILD_UNKNOWN_FUNC`: there can be none of this number; `BUILD_GM_RANGE`.
    pub fn func<G: GraphBuilder + ?Sized>(&mut self, stream: &G) -> Result<FuncId, Fault> {
        let word = u16::try_from(self.next(stream)?);
        word.map(FuncId).map_err(|_| Fault::BUILD_UNKNOWN_FUNC)
    }

    /// A member of a closed set.
    ///
    /// # Errors
    /// `BUILD_FAILED`: it has no such member; `BUILD_GM_RANGE`.
    pub fn code<G: GraphBuilder + ?Sized, T, E>(
        &mut self,
        stream: &G,
        member: impl Fn(u8) -> Result<T, E>,
    ) -> Result<T, Fault> {
        let code = u8::try_from(self.next(stream)?).ok();
        code.and_then(|code| member(code).ok()).ok_or(Fault::BUILD_FAILED)
    }

    /// Reads the view that follows the head of an argument.
    fn view<G: StreamBuilder>(
        &mut self,
        stream: &G,
        head: u64,
    ) -> Result<TensorView<'static>, Fault> {
        // A number that is no element type makes the view defective.
        let [_, element, rank] = bytes_from(head, 0);
        let (base, bytes) = (GmAddr(self.next(stream)?), self.next(stream)?);
        let offset = self.next(stream)?;
        let rank = usize::from(rank);
        if rank > MAX_RANK {
            return Err(Fault::STREAM_VIEW_RANK);
        }
        let (mut shape, mut strides) = ([0; MAX_RANK], [1; MAX_RANK]);
        for extent in shape.iter_mut().take(rank) {
            *extent = u32::try_from(self.next(stream)?).map_err(|_| Fault::STREAM_VIEW_RANGE)?;
        }
        for stride in strides.iter_mut().take(rank).filter(|_| rank > 1) {
            *stride = self.next(stream)?;
        }
        let (shape, strides) = (shape.get(..rank), strides.get(..rank));
        let (shape, strides) = (shape.unwrap_or(&[]), strides.unwrap_or(&[]));
        Ok(TensorView::alleged(&RawView { base, bytes, element, offset, shape, strides }))
    }

    fn condition<G: StreamBuilder>(&mut self, stream: &G) -> Result<Condition, Fault> {
        let head = self.next(stream)?;
        let view = self.view(stream, head)?;
        Ok((view, [0], self.code(stream, Comparison::try_from)?, self.next(stream)?))
    }
}
