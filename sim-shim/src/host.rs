//! The trait that every hosting mode implements for the machine.

use std::any::Any;
use std::io;
use std::sync::Arc;

use pto_aicpu_fw::Launch;
use pto_graph::BuilderSet;

use crate::doorbell::Doorbell;
use crate::group::TransferEngine;

/// What keeps GM mapped; every OS thread that may touch it holds one.
pub(crate) type Memory = Arc<dyn Any + Send + Sync>;

/// A way of hosting.
pub(crate) trait Host: Send {
    /// Runs a launch to its end; `false`: a thread did not return.
    fn run(&mut self, launch: &Launch<'static>) -> bool;

    /// Releases the arena of the last run; `false`: a thread still uses it.
    fn release(&mut self) -> bool;

    /// Why the last run had a thread too few, if that is what ended it.
    fn take_thread_error(&mut self) -> Option<io::Error> {
        None
    }

    /// The doorbell that wakes the thread of a resident firmware after a submission; no effect where no thread sleeps on it.
    fn hang(&mut self, _doorbell: &Arc<Doorbell>) {}

    /// Who moves the transfers of all further runs: threads that wait help.
    fn attach(&mut self, _engine: &Arc<dyn TransferEngine>) {}

    /// The names of the builders.
    fn builders(&self) -> Vec<String>;
}

/// The names of the builder programs of a set, those of the streaming runtime included.
pub(crate) fn names_of<B: BuilderSet>(builders: &B) -> Vec<String> {
    let mut names: Vec<String> = builders.names().iter().map(ToString::to_string).collect();
    for name in builders.stream_names() {
        if !builders.names().contains(name) {
            names.push((*name).to_owned());
        }
    }
    names
}
