//! The objects that the host keeps for a command until the command is over, because the ring holds plain words only. They are
//! found by the number of the command.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pto_abi::GmAddr;

use super::capture::Recording;
use super::captured::{CapturedObject, CapturedRun};
use super::event::EventCore;
use super::guarded::HostFunction;
use super::host_buffer::HostBuffer;
use super::ids::StreamId;
use super::owned_work::{OwnedWork, RunTicket};
use crate::buffer::DeviceBuffer;
use crate::options::RunOptions;

/// The object of one command.
pub(super) enum CommandObject {
    /// A run.
    Run(Box<RunCommand>),
    /// A recording that the firmware launches: its words in GM.
    Recorded(#[expect(dead_code, reason = "it holds the memory")] Arc<DeviceBuffer<u64>>),
    /// The buffer of a copy from or to the host.
    Buffer(HostBuffer),
    /// The function of a call.
    Function(HostFunction),
    /// The event of a record, and the number of the record.
    Record(Arc<EventCore>, u64),
    /// The event of a wait.
    Event(Arc<EventCore>),
    /// The barrier that the command waits at.
    Barrier(Arc<Barrier>),
}

impl CommandObject {
    /// The object of a command that was captured.
    pub(super) fn of(captured: &CapturedObject) -> Option<Self> {
        match captured {
            CapturedObject::Nothing => None,
            CapturedObject::Buffer(buffer) => Some(Self::Buffer(buffer.clone())),
            CapturedObject::Function(function) => {
                let function = Arc::clone(function);
                Some(Self::Function(HostFunction::new(move || function())))
            }
            CapturedObject::Run(run) => {
                let CapturedRun { work, options, ticket } = CapturedRun::clone(run);
                let work = RunWork::Work(work);
                Some(Self::Run(Box::new(RunCommand { work, options, ticket })))
            }
        }
    }
}

/// A run.
pub(super) struct RunCommand {
    pub(super) work: RunWork,
    /// `None`: those of the session.
    pub(super) options: Option<RunOptions>,
    pub(super) ticket: RunTicket,
}

/// What is run.
pub(super) enum RunWork {
    Work(OwnedWork),
    Recording(Recording, Vec<(GmAddr, GmAddr)>),
}

/// A point at which several streams wait until all of them have reached it.
pub(super) struct Barrier {
    streams: Vec<StreamId>,
    missing: AtomicUsize,
}

impl Barrier {
    /// For these streams.
    pub(super) fn of(streams: Vec<StreamId>) -> Self {
        Self { missing: AtomicUsize::new(streams.len()), streams }
    }

    /// The streams that it is for.
    pub(super) fn streams(&self) -> &[StreamId] {
        &self.streams
    }

    /// One more stream has reached the barrier.
    pub(super) fn arrive(&self) {
        // AcqRel: pairs with the other arrivals and with the Acquire load in `is_open`.
        self.missing.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether every stream has reached it.
    pub(super) fn is_open(&self) -> bool {
        // Acquire: pairs with the Release half of the subtraction in `arrive`.
        self.missing.load(Ordering::Acquire) == 0
    }
}
