//! Copies, fills and reductions as commands of streams.

use std::sync::Arc;

use super::element::Element;
use super::lane::{Engine, Lane};
use super::open::gm;
use super::stream::Stream;
use super::transfer::{self, Transfer};
use super::{current, fleet};
use crate::common::codes;
use crate::common::order::{MemoryUse, Touch};
use crate::common::races;
use crate::common::refusal::{Answer, Refusal, require};

/// The kind of a copy whose direction follows from the addresses.
pub(crate) const DEFAULT_KIND: u32 = 4;

/// A copy as a command. Memory of the host that is not pinned may change once the call returns: then the call waits.
#[inline(always)]
pub(crate) fn copy(stream: &Stream, copy: Option<Transfer>, kind: u32) -> Answer {
    let Some(copy) = copy else { return Ok(()) };
    require(kind != 0 || !copy.is_on_host(), || {
        Refusal::unsupported("asynchronous copies within the host; use aclrtMemcpy")
    })?;
    let waits = copy.is_pageable();
    check_pageable(waits, stream)?;
    copy.take(stream)?;
    if waits { stream.synchronize(None) } else { Ok(()) }
}

/// Copies that are made at once, in a call of the host.
pub(crate) fn copy_now<'a>(copies: impl IntoIterator<Item = &'a Transfer>) -> Answer {
    check_host()?;
    copies.into_iter().try_for_each(Transfer::perform_on_host)
}

fn check_host() -> Answer {
    current::context()?;
    current::check_uncaptured()
}

fn check_pageable(waits: bool, stream: &Stream) -> Answer {
    require(!waits || !stream.is_captured(), || {
        let text = "the stream is captured, and memory of the host that is not pinned takes part; use aclrtMallocHost";
        Refusal::new(codes::BAD_VALUE, text)
    })
}

/// Rows as one command.
pub(crate) fn copy_rows(stream: &Stream, rows: Vec<Transfer>) -> Answer {
    let Some(first) = rows.first() else { return Ok(()) };
    let waits = first.is_pageable();
    check_pageable(waits, stream)?;
    let touches: Vec<Touch> = rows.iter().flat_map(Transfer::touches).collect();
    let rows = Arc::new(rows);
    let work = move |lane: &Lane| {
        let rows = Arc::clone(&rows);
        lane.call(move || {
            rows.iter().for_each(Transfer::perform);
            Ok(())
        })
    };
    stream.take(Engine::Copies, "copy of rows", &touches, work)?;
    if waits { stream.synchronize(None) } else { Ok(()) }
}

/// What bytes are filled with: one byte, or four again and again.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FillPattern {
    Byte(u8),
    Word(u32),
}

impl FillPattern {
    fn write(self, at: usize, count: usize) {
        match self {
            Self::Byte(byte) => transfer::fill(at, byte, count),
            Self::Word(word) => {
                let bytes = word.to_le_bytes();
                for index in 0..count {
                    transfer::fill(at + index, bytes[index % 4], 1);
                }
            }
        }
    }
}

/// Fills bytes at once.
pub(crate) fn fill_now(at: usize, pattern: FillPattern, count: usize) -> Answer {
    check_host()?;
    transfer::check_healthy(at, count)?;
    races::host_uses(&[Touch::new(MemoryUse::Writes, at, count)]);
    pattern.write(at, count);
    Ok(())
}

/// A fill as a command.
pub(crate) fn fill(stream: &Stream, at: usize, pattern: FillPattern, count: usize) -> Answer {
    let own = stream.context.open.index;
    let is_device = fleet::owner(at).is_some_and(|open| open.index == own);
    let work = move |lane: &Lane| {
        if let (true, FillPattern::Byte(byte)) = (is_device, pattern) {
            lane.stream().fill(gm(at), byte, count as u64)?;
            return Ok(());
        }
        lane.call(move || {
            pattern.write(at, count);
            Ok(())
        })
    };
    stream.take(Engine::Copies, "fill", &[Touch::new(MemoryUse::Writes, at, count)], work)
}

/// A reduction of elements in memory of devices, as a command.
pub(crate) fn reduce(
    stream: &Stream,
    element: Element,
    [to, from]: [usize; 2],
    bytes: usize,
    kind: u32,
) -> Answer {
    let work = move |lane: &Lane| {
        lane.call(move || {
            element.reduce(to, from, bytes, kind);
            Ok(())
        })
    };
    let touches =
        [Touch::new(MemoryUse::Reads, from, bytes), Touch::new(MemoryUse::Writes, to, bytes)];
    stream.take(Engine::Copies, "reduction", &touches, work)
}
