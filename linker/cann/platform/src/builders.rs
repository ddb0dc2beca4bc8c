//! The builders of an image: those of its set, and `build_graph_aicpu` in C.

use pto_abi::gm::GmWindow;
use pto_abi::graph::{BuildError, BuilderSet, EdgeOutcome, GraphBuilder, TaskSpec};
use pto_abi::stream::{
    Bindings, DependencyMode, ElementType, Record, ScopeId, StreamBuilder, TensorTask, TensorView,
};
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

    fn build_stream<G: StreamBuilder>(
        &self,
        symbol: u64,
        stream: &mut G,
    ) -> Option<Result<(), BuildError>> {
        if symbol == pto_c_builder::SYMBOL {
            return self.build(symbol, stream);
        }
        let mut stream = FreshReads { graph: stream, gm: self.gm, coherence: self.coherence };
        self.set.build_stream(symbol, &mut stream)
    }
}

/// A graph whose reads of GM see what the host's DMA wrote. What `get` reads, the device has written: it is as it is.
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

impl<G: StreamBuilder> StreamBuilder for FreshReads<'_, G> {
    #[inline]
    fn add_tensor_task(&mut self, task: &TensorTask<'_>) -> Result<TaskId, Fault> {
        self.graph.add_tensor_task(task)
    }

    fn open_scope(&mut self, mode: DependencyMode) -> Result<ScopeId, Fault> {
        self.graph.open_scope(mode)
    }

    fn close_scope(&mut self, scope: ScopeId) -> Result<(), Fault> {
        self.graph.close_scope(scope)
    }

    fn alloc(&mut self, element: ElementType, shape: &[u32]) -> Result<TensorView<'static>, Fault> {
        self.graph.alloc(element, shape)
    }

    fn begin_record(&mut self, shapes: &[TensorView<'_>]) -> Result<u32, Fault> {
        self.graph.begin_record(shapes)
    }

    fn end_record(&mut self) -> Result<Record, Fault> {
        self.graph.end_record()
    }

    fn replay(&mut self, record: &Record, bindings: &Bindings<'_>) -> Result<(), Fault> {
        self.graph.replay(record, bindings)
    }

    fn get(&mut self, view: &TensorView<'_>, index: &[u32]) -> Result<u64, Fault> {
        self.graph.get(view, index)
    }

    fn set(&mut self, view: &TensorView<'_>, index: &[u32], value: u64) -> Result<(), Fault> {
        self.graph.set(view, index, value)
    }
}
