//! The builders of one launch: those of the image's set, and `build_graph_aicpu` in C.

use pto_abi::graph::{BuildError, BuilderSet, GraphBuilder};
use pto_abi::stream::StreamBuilder;
use pto_aicpu_fw::Launch;
use pto_c_builder::CBuilder;

/// See the file's head.
pub(crate) struct DeviceBuilders<B> {
    set: B,
    c: CBuilder,
}

impl<B> DeviceBuilders<B> {
    /// For a checked launch: C knows its graph by the address of the runtime.
    pub(crate) fn new(set: B, launch: &Launch<'static>) -> Self {
        Self { set, c: CBuilder::new(launch.arena.window(), launch.run_epoch) }
    }
}

impl<B: BuilderSet> BuilderSet for DeviceBuilders<B> {
    const STREAMS: bool = B::STREAMS && crate::STREAMS;

    fn names(&self) -> &[&str] {
        self.set.names()
    }

    fn build<G: GraphBuilder>(&self, symbol: u64, graph: &mut G) -> Option<Result<(), BuildError>> {
        if symbol == pto_c_builder::SYMBOL {
            return Some(self.c.build(graph));
        }
        self.set.build(symbol, graph)
    }

    fn stream_names(&self) -> &[&str] {
        self.set.stream_names()
    }

    fn build_stream<G: StreamBuilder>(
        &self,
        symbol: u64,
        stream: &mut G,
    ) -> Option<Result<(), BuildError>> {
        if symbol == pto_c_builder::SYMBOL {
            return Some(self.c.build(stream));
        }
        self.set.build_stream(symbol, stream)
    }
}
