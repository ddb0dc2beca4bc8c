//! The builders of an image: those of its set, and `build_graph_aicpu` in C.

use pto_abi::gm::GmWindow;
use pto_abi::graph::{BuildError, BuilderSet, EdgeOutcome, GraphBuilder, TaskSpec};
use pto_abi::stream::StreamBuilder;
use pto_abi::{Fault, GmAddr, TaskId};
use pto_c_builder::CBuilder;

use crate::coherence::Coherence;

/// The builders of one launch.
pub struct DeviceBuilders<B> {
    /// Those of the image.
    pub set: B,
    /// The one in C.
    pub c: CBuilder,
    /// All of GM.
    pub gm: GmWindow<'static>,
    /// How the host writes it.
    pub coherence: Coherence,
}

impl<B: BuilderSet> BuilderSet for DeviceBuilders<B> {
    fn names(&self) -> &[&str] {
        self.set.names()
    }

    fn build<G: GraphBuilder>(&self, symbol: u64, graph: &mut G) -> Option<Result<(), BuildError>> {
        let mut graph = FreshReads { graph, gm: self.gm, coherence: self.coherence };
        if symbol == pto_c_builder::SYMBOL {
            return Some(self.c.build(&mut graph));
        }
        self.set.build(symbol, &mut graph)
    }

    fn stream_names(&self) -> &[&str] {
        self.set.stream_names()
    }

    // What a streaming program reads of GM while it runs, the device has written: `get` waits for it.
    fn build_stream<G: StreamBuilder>(
        &self,
        symbol: u64,
        stream: &mut G,
    ) -> Option<Result<(), BuildError>> {
        if symbol == pto_c_builder::SYMBOL {
            return self.build(symbol, stream);
        }
        self.set.build_stream(symbol, stream)
    }
}

/// A graph whose reads of GM see what the host's DMA wrote.
struct FreshReads<'g, G> {
    graph: &'g mut G,
    gm: GmWindow<'static>,
    coherence: Coherence,
}

impl<G: GraphBuilder> GraphBuilder for FreshReads<'_, G> {
    fn orch_args(&self) -> &[u64] {
        self.graph.orch_args()
    }

    #[inline]
    fn add_task(&mut self, task: TaskSpec<'_>) -> Result<TaskId, Fault> {
        self.graph.add_task(task)
    }

    #[inline]
    fn add_edge(&mut self, producer: TaskId, consumer: TaskId) -> Result<EdgeOutcome, Fault> {
        self.graph.add_edge(producer, consumer)
    }

    #[inline]
    fn publish(&mut self, task: TaskId) -> Result<(), Fault> {
        self.graph.publish(task)
    }

    fn read_u32(&self, address: GmAddr) -> Result<u32, Fault> {
        self.coherence.look(self.gm, address, 4);
        self.graph.read_u32(address)
    }
}
