//! The builders of a device: those of its image, which see the arena, and in what they read what the host wrote.

use pto_abi::gm::GmWindow;
use pto_abi::{Fault, GmAddr, TaskId};
use pto_graph::{
    BuildError, BuilderSet, Chain, ChainTemplate, EdgeOutcome, GraphBuilder, HostedBuilder,
    LaunchArgs, OpResult, StreamBuilder, StreamOp, Submission, TensorView,
};

/// How a platform reads what the host wrote into GM.
pub trait DeviceReads: Clone + Send + Sync + 'static {
    /// Whether the image has the streaming runtime.
    const STREAMS: bool = true;

    /// Before `bytes` bytes at `address` are read.
    fn look(&self, address: GmAddr, bytes: u64);
}

/// The builders of one launch.
#[derive(Clone)]
pub struct DeviceBuilders<B, R> {
    set: B,
    arena: GmWindow<'static>,
    reads: R,
}

impl<B, R> DeviceBuilders<B, R> {
    /// Those of `set`, in this arena.
    #[must_use]
    pub const fn new(set: B, arena: GmWindow<'static>, reads: R) -> Self {
        Self { set, arena, reads }
    }
}

impl<B: BuilderSet, R: DeviceReads> BuilderSet for DeviceBuilders<B, R> {
    const STREAMS: bool = B::STREAMS && R::STREAMS;

    fn names(&self) -> &[&str] {
        self.set.names()
    }

    fn build<G: HostedBuilder>(
        &self,
        symbol: u64,
        graph: &mut G,
    ) -> Option<Result<(), BuildError>> {
        self.set.build(symbol, &mut OnDevice { graph, arena: self.arena, reads: &self.reads })
    }

    fn stream_names(&self) -> &[&str] {
        self.set.stream_names()
    }

    fn build_stream<G: StreamBuilder + HostedBuilder>(
        &self,
        symbol: u64,
        stream: &mut G,
    ) -> Option<Result<(), BuildError>> {
        let graph = OnDevice { graph: stream, arena: self.arena, reads: &self.reads };
        self.set.build_stream(symbol, &mut Streaming(graph))
    }
}

/// A graph that is built on the device.
struct OnDevice<'g, G, R> {
    graph: &'g mut G,
    arena: GmWindow<'static>,
    reads: &'g R,
}

impl<G: GraphBuilder, R: DeviceReads> GraphBuilder for OnDevice<'_, G, R> {
    #[inline]
    fn launch_args(&self) -> LaunchArgs<'_> {
        self.graph.launch_args()
    }

    // Always: the compiler knows what is submitted where the program calls, but not across a call.
    #[inline(always)]
    fn submit_desc(&mut self, submission: Submission<'_>) -> Result<Option<TaskId>, Fault> {
        self.graph.submit_desc(submission)
    }

    #[inline]
    fn add_edge(&mut self, producer: TaskId, consumer: TaskId) -> Result<EdgeOutcome, Fault> {
        self.graph.add_edge(producer, consumer)
    }

    #[inline]
    fn publish(&mut self, task: TaskId) -> Result<(), Fault> {
        self.graph.publish(task)
    }

    #[inline]
    fn fill_template(
        &mut self,
        template: &mut ChainTemplate,
        chain: &Chain<'_>,
    ) -> Result<(), Fault> {
        self.graph.fill_template(template, chain)
    }

    #[inline]
    fn read_u32(&self, address: GmAddr) -> Result<u32, Fault> {
        self.reads.look(address, 4);
        self.graph.read_u32(address)
    }

    fn read_words(&self, address: GmAddr, words: &mut [u32]) -> Result<(), Fault> {
        self.reads.look(address, size_of_val(words) as u64);
        self.graph.read_words(address, words)
    }
}

impl<G: GraphBuilder, R: DeviceReads> HostedBuilder for OnDevice<'_, G, R> {
    fn arena(&self) -> Option<GmWindow<'_>> {
        Some(self.arena)
    }
}

/// A streaming program's.
struct Streaming<'g, G, R>(OnDevice<'g, G, R>);

pto_graph::forward_graph_builder!(['g, G: StreamBuilder, R: DeviceReads] Streaming<'g, G, R> => 0);

impl<G: StreamBuilder, R: DeviceReads> HostedBuilder for Streaming<'_, G, R> {
    fn as_stream(&mut self) -> Option<&mut dyn StreamBuilder> {
        Some(self)
    }

    fn arena(&self) -> Option<GmWindow<'_>> {
        self.0.arena()
    }
}

impl<G: StreamBuilder, R: DeviceReads> StreamBuilder for Streaming<'_, G, R> {
    #[inline(always)]
    fn stream_op(&mut self, op: StreamOp<'_>) -> Result<OpResult, Fault> {
        // An element that no task has written is the host's; what the cores write needs no look. The neighbours in the line of an element that is set are
        // written back with it.
        if let StreamOp::Get(view, index) | StreamOp::Set(view, index, _) = op {
            self.look(view, index);
        }
        self.0.graph.stream_op(op)
    }
}

impl<G, R: DeviceReads> Streaming<'_, G, R> {
    fn look(&self, view: &TensorView<'_>, index: &[u32]) {
        if let Some(address) = view.element_address(index) {
            self.0.reads.look(address, view.element().bytes());
        }
    }
}
