//! Marks the structures that consist of atomics only. A reference to such a structure may point to memory that others write.

use crate::gm::LiveWords;
use crate::sync::{AtomicU32, AtomicU64};

macro_rules! live_words {
    ($($ty:ty),+ $(,)?) => {
        // SAFETY: declared by `shared_struct!` from atomics (and `TaskLock`, an atomic byte) without
        // padding, or an atomic itself.
        $( unsafe impl LiveWords for $ty {} )+
    };
}
live_words!(
    AtomicU32,
    AtomicU64,
    crate::task::Task,
    crate::task::EdgeChunk,
    crate::handshake::Handshake,
    crate::runtime::Progress,
    crate::runtime::InstanceLine,
    crate::runtime::FaultLine,
    crate::ready::QueueEnds,
    crate::log_ring::LogCursor,
    crate::log_ring::LogEntry,
    crate::trace::TraceCursor,
    crate::trace::TraceReader,
    crate::trace::TraceEvent,
    crate::fw_bytes::boot::BootBlock,
    crate::launch_words::LaunchTickets,
    crate::session::RingProducer,
    crate::session::RingConsumer,
    crate::session::CommandEntry,
    crate::session::EventLine,
    crate::session::SessionOrders,
    crate::session::SessionNews,
    crate::session::StreamLine,
    crate::session::LaneLine,
    crate::session::LaunchNote,
    crate::stream::StreamHeader,
    crate::stream::SlotNote,
    crate::stream::BlockLine,
    crate::stream::MapRow,
    crate::stream::MapGrid,
    crate::stream::MapEntry,
);
