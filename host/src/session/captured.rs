//! Commands of a recording that are no launches: copies, fills, reductions, values, functions of the host, runs. Each launch of the recording
//! submits them anew.

use std::fmt;
use std::sync::Arc;

use pto_abi::GmAddr;
use pto_abi::session::CommandKind;

use super::host_buffer::HostBuffer;
use super::owned_work::{OwnedWork, RunTicket};
use crate::options::RunOptions;

/// Addresses of a capture, and those that replace them in one launch of the recording.
pub(super) type Bindings<'b> = &'b [(GmAddr, GmAddr)];

/// A command as it was captured.
#[derive(Clone)]
pub(super) struct CapturedCommand {
    pub(super) kind: CommandKind,
    pub(super) words: Vec<u64>,
    pub(super) object: CapturedObject,
}

/// What the host keeps for it.
#[derive(Clone)]
pub(super) enum CapturedObject {
    Nothing,
    Buffer(HostBuffer),
    Function(Arc<dyn Fn() + Send + Sync>),
    Run(Box<CapturedRun>),
}

/// A run.
#[derive(Clone)]
pub(super) struct CapturedRun {
    pub(super) work: OwnedWork,
    /// `None`: those of the session.
    pub(super) options: Option<RunOptions>,
    /// The ticket has the report of the last launch.
    pub(super) ticket: RunTicket,
}

impl CapturedCommand {
    /// The ranges that it copies, fills, writes or reads: address and bytes.
    pub(super) fn ranges(&self) -> Vec<(GmAddr, u64)> {
        let word = |at: usize| self.words.get(at).copied().unwrap_or(0);
        let addresses = self.addresses();
        let bytes = if self.is_of_word() { size_of::<u64>() as u64 } else { word(addresses) };
        (0..addresses).map(|at| (GmAddr(word(at)), bytes)).collect()
    }

    /// Whether it reads or writes one word of GM.
    pub(super) fn is_of_word(&self) -> bool {
        matches!(self.kind, CommandKind::WRITE_VALUE | CommandKind::WAIT_VALUE)
    }

    /// How many of its words, from the first one on, are addresses.
    const fn addresses(&self) -> usize {
        match self.kind {
            CommandKind::COPY | CommandKind::REDUCE => 2,
            CommandKind::COPY_IN
            | CommandKind::COPY_OUT
            | CommandKind::FILL
            | CommandKind::WRITE_VALUE
            | CommandKind::WAIT_VALUE => 1,
            _ => 0,
        }
    }

    /// Whether it waits for another command.
    pub(super) fn waits(&self) -> bool {
        self.kind == CommandKind::WAIT_VALUE
    }

    /// Whether it names an address, which can be bound to another one.
    pub(super) fn has_address(&self, address: GmAddr) -> bool {
        let mut command = self.clone();
        command.bindable().any(|word| *word == address.0)
    }

    /// The command with other addresses.
    pub(super) fn bound(&self, bindings: Bindings<'_>) -> Self {
        let mut command = self.clone();
        command.bindable().for_each(|word| *word = bound_word(*word, bindings));
        command
    }

    /// The words that may be bound: addresses, and the words that a builder reads.
    fn bindable(&mut self) -> impl Iterator<Item = &mut u64> {
        let addresses = self.addresses();
        let of_builder = match &mut self.object {
            CapturedObject::Run(run) => match &mut run.work {
                OwnedWork::Stream { orch_args, .. } | OwnedWork::AicpuBuilder { orch_args, .. } => {
                    orch_args.as_mut_slice()
                }
                OwnedWork::HostGraph(_) => &mut [],
            },
            _ => &mut [],
        };
        self.words.iter_mut().take(addresses).chain(of_builder)
    }
}

/// A word, or the one that replaces it.
pub(super) fn bound_word(word: u64, bindings: Bindings<'_>) -> u64 {
    bindings.iter().find(|(from, _)| from.0 == word).map_or(word, |(_, to)| to.0)
}

impl fmt::Debug for CapturedCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?}", self.kind, self.words)
    }
}
