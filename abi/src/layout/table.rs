//! The table of all shared structs, and the hash over it by which host and firmware know that they mean the same bytes.

use crate::shared_struct::{SharedLayout, StructLayout};
use crate::symbol;

/// Every shared struct.
pub const ALL: &[StructLayout] = &[
    crate::runtime::Runtime::LAYOUT,
    crate::runtime::RuntimeHeader::LAYOUT,
    crate::runtime::RunConfig::LAYOUT,
    crate::runtime::Region::LAYOUT,
    crate::runtime::OrchArgs::LAYOUT,
    crate::runtime::WorkerEntry::LAYOUT,
    crate::runtime::Progress::LAYOUT,
    crate::runtime::InstanceLine::LAYOUT,
    crate::runtime::FaultLine::LAYOUT,
    crate::runtime::Epitaph::LAYOUT,
    crate::runtime::BlockedTask::LAYOUT,
    crate::handshake::DispatchWords::LAYOUT,
    crate::handshake::SchedulerLine::LAYOUT,
    crate::handshake::WorkerLine::LAYOUT,
    crate::handshake::Handshake::LAYOUT,
    crate::task::Task::LAYOUT,
    crate::task::EdgeChunk::LAYOUT,
    crate::ready::QueueEnds::LAYOUT,
    crate::log_ring::LogCursor::LAYOUT,
    crate::log_ring::LogEntry::LAYOUT,
    crate::trace::TraceHeader::LAYOUT,
    crate::trace::TraceCursor::LAYOUT,
    crate::trace::TraceReader::LAYOUT,
    crate::trace::TraceEvent::LAYOUT,
    crate::stream::RingLine::LAYOUT,
    crate::stream::StreamHeader::LAYOUT,
    crate::stream::SlotNote::LAYOUT,
    crate::stream::BlockLine::LAYOUT,
    crate::stream::ListEnds::LAYOUT,
    crate::stream::BlockBoard::LAYOUT,
    crate::stream::MapRow::LAYOUT,
    crate::stream::MapGrid::LAYOUT,
    crate::stream::MapEntry::LAYOUT,
    crate::foreign::StreamTensor::LAYOUT,
    crate::foreign::StreamArg::LAYOUT,
    crate::foreign::StreamTask::LAYOUT,
    crate::foreign::StreamScope::LAYOUT,
    crate::foreign::StreamRecording::LAYOUT,
    crate::graph_header::GraphHeader::LAYOUT,
    crate::graph_header::ImageTask::LAYOUT,
    crate::fw_bytes::identity::FwIdentity::LAYOUT,
    crate::fw_bytes::blob::KernelBlobHeader::LAYOUT,
    crate::fw_bytes::blob::KernelBlobEntry::LAYOUT,
    crate::fw_bytes::boot::BootHeader::LAYOUT,
    crate::fw_bytes::boot::FirmwareLine::LAYOUT,
    crate::fw_bytes::boot::LaunchLine::LAYOUT,
    crate::fw_bytes::boot::VcpuLine::LAYOUT,
    crate::fw_bytes::boot::ExceptionFrame::LAYOUT,
    crate::fw_bytes::boot::BootBlock::LAYOUT,
    crate::launch_words::CorePosition::LAYOUT,
    crate::launch_words::LaunchPlan::LAYOUT,
    crate::launch_words::LaunchTickets::LAYOUT,
    crate::launch_words::LaunchWords::LAYOUT,
    crate::session::RingProducer::LAYOUT,
    crate::session::RingConsumer::LAYOUT,
    crate::session::CommandEntry::LAYOUT,
    crate::session::EventLine::LAYOUT,
    crate::session::SessionOrders::LAYOUT,
    crate::session::SessionNews::LAYOUT,
    crate::session::StreamLine::LAYOUT,
    crate::session::LaneLine::LAYOUT,
    crate::session::LaunchNote::LAYOUT,
];

/// Hash over the names, offsets and sizes of everything in [`ALL`]; host and firmware compare it.
pub const LAYOUT_HASH: u64 = hash_all(ALL);

const fn hash_all(structs: &[StructLayout]) -> u64 {
    let mut hash = symbol::symbol("pto");
    let mut i = 0;
    while i < structs.len() {
        hash = hash_struct(hash, &structs[i]);
        i += 1;
    }
    hash
}

const fn hash_struct(mut hash: u64, layout: &StructLayout) -> u64 {
    hash = symbol::extend(hash, layout.name.as_bytes());
    hash = hash_number(hash, layout.size);
    hash = hash_number(hash, layout.align);
    let mut i = 0;
    while i < layout.fields.len() {
        let field = &layout.fields[i];
        hash = symbol::extend(hash, field.name.as_bytes());
        hash = hash_number(hash, field.offset);
        hash = hash_number(hash, field.size);
        i += 1;
    }
    hash
}

const fn hash_number(hash: u64, number: usize) -> u64 {
    symbol::extend(hash, &(number as u64).to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::{ALL, LAYOUT_HASH, StructLayout, hash_all, hash_struct};

    #[test]
    fn names_are_unique_and_fields_are_in_order() {
        for (i, layout) in ALL.iter().enumerate() {
            assert!(ALL[..i].iter().all(|other| other.name != layout.name), "{}", layout.name);
            let mut end = 0;
            for field in layout.fields {
                assert_eq!(field.offset, end, "{}.{}", layout.name, field.name);
                end += field.size;
            }
            assert_eq!(end, layout.size, "{}", layout.name);
        }
    }

    #[test]
    fn the_hash_sees_every_part() {
        let base = ALL[0];
        let renamed = StructLayout { name: "Other", ..base };
        let resized = StructLayout { size: base.size + 64, ..base };
        let shorter = StructLayout { fields: &base.fields[1..], ..base };
        for changed in [renamed, resized, shorter] {
            assert_ne!(hash_struct(0, &base), hash_struct(0, &changed));
        }
        assert_ne!(LAYOUT_HASH, hash_all(&ALL[1..]));
    }
}
