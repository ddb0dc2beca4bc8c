//! The sets of builders that a simulated device has in its firmware. Most are called through a table of functions, so that the simulator's
//! crate compiles the firmware once; for a set whose calls are measured, a firmware of its own is compiled.

use std::any::Any;
use std::sync::Arc;

use pto_graph::{BuildError, BuilderSet, HostedBuilder, StreamBuilder};
use pto_sim_shim::{AnyBuilders, Hosting, SimulatedMachine};

type Built = Option<Result<(), BuildError>>;

/// A set of programs that the firmware of a simulated device is made with.
pub(crate) trait SimulatedSet: Clone + Send + 'static {
    /// Whether builders of the firmware share a launch with plans.
    const SHARES_LAUNCHES: bool;

    /// A machine with this firmware, as [`SimulatedMachine::new`] makes it.
    fn machine(self, hosting: Hosting, memory: Arc<dyn Any + Send + Sync>) -> SimulatedMachine;
}

impl SimulatedSet for AnyBuilders {
    const SHARES_LAUNCHES: bool = true;

    fn machine(self, hosting: Hosting, memory: Arc<dyn Any + Send + Sync>) -> SimulatedMachine {
        SimulatedMachine::of_any(hosting, memory, self)
    }
}

/// One set of builders for all machines that a device uses in its life. The firmware is compiled for it, so that the costs of a builder's
/// calls can be measured.
pub(crate) struct CompiledIn<B>(Arc<B>);

impl<B: BuilderSet> CompiledIn<B> {
    pub(crate) fn of(builders: B) -> Self {
        Self(Arc::new(builders))
    }
}

impl<B: BuilderSet> SimulatedSet for CompiledIn<B> {
    const SHARES_LAUNCHES: bool = false;

    fn machine(self, hosting: Hosting, memory: Arc<dyn Any + Send + Sync>) -> SimulatedMachine {
        SimulatedMachine::new(hosting, memory, self)
    }
}

impl<B> Clone for CompiledIn<B> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<B: BuilderSet> BuilderSet for CompiledIn<B> {
    fn names(&self) -> &[&str] {
        self.0.names()
    }

    fn build<G: HostedBuilder>(&self, symbol: u64, graph: &mut G) -> Built {
        self.0.build(symbol, graph)
    }

    fn stream_names(&self) -> &[&str] {
        self.0.stream_names()
    }

    fn build_stream<G: StreamBuilder + HostedBuilder>(&self, symbol: u64, stream: &mut G) -> Built {
        self.0.build_stream(symbol, stream)
    }
}
