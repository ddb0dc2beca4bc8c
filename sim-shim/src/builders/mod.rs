//! The builder programs of a simulated device, as the simulator's firmware sees them.
//!
//! The firmware is generic over its set of programs. An image is compiled around the set that it holds, so that no call of a builder goes
//! through a table. On the simulator each set would mean a firmware of its own in every program that opens a device, and compiling one takes
//! most of a minute. So [`AnyBuilders`] hides the set in a table of functions: the firmware of the simulator is compiled once, in this
//! crate, and each builder program once.
//!
//! ```text
//! Instance --build(symbol, &mut G)--> AnyBuilders --table--> the user's set --build(symbol, &mut Graph)--> program
//!    ^                                                                                                    |
//!    '------------------------------- Graph, Stream: each call --table--> G ------------------------------'
//! ```

mod concurrent;

use std::sync::Arc;

use pto_abi::Fault;
use pto_abi::gm::GmWindow;
use pto_graph::group::Communicator;
use pto_graph::{
    BuildError, BuilderSet, HostedBuilder, OpResult, StreamBuilder, StreamOp,
    forward_graph_builder, plan,
};

use concurrent::HostedStream;

type Built = Option<Result<(), BuildError>>;

/// Any set of builder programs, as a table of functions. Clones are the same set.
#[derive(Clone)]
pub struct AnyBuilders(Arc<dyn DynBuilderSet>);

impl AnyBuilders {
    /// The table of a set.
    pub fn of<B: BuilderSet>(builders: B) -> Self {
        Self::sharing(Arc::new(builders))
    }

    /// The table of a set that is shared.
    pub fn sharing<B: BuilderSet>(builders: Arc<B>) -> Self {
        Self(builders)
    }
}

impl BuilderSet for AnyBuilders {
    fn names(&self) -> &[&str] {
        self.0.graph_names()
    }

    fn build<G: HostedBuilder>(&self, symbol: u64, graph: &mut G) -> Built {
        self.0.build_graph(symbol, &mut Graph(graph))
    }

    fn stream_names(&self) -> &[&str] {
        self.0.stream_names()
    }

    fn build_stream<G: StreamBuilder + HostedBuilder>(&self, symbol: u64, stream: &mut G) -> Built {
        if symbol != pto_graph::symbol(plan::BUILDER) {
            return self.0.build_stream(symbol, &mut Stream::of(stream));
        }
        if let Some(parts) = concurrent::with_builders(stream.orch_args()) {
            return Some(concurrent::build(stream, parts, |symbol, part| self.part(symbol, part)));
        }
        self.part(symbol, stream)
    }
}

impl AnyBuilders {
    fn part(&self, symbol: u64, stream: &mut dyn HostedStream) -> Built {
        let built = self.0.build_stream(symbol, &mut Stream::of(stream));
        // Every simulated device expands plans. A program that was given by this name goes first.
        let is_plan = symbol == pto_graph::symbol(plan::BUILDER);
        built.or_else(|| is_plan.then(|| plan::expand(&mut Stream::of(stream))))
    }
}

/// A [`BuilderSet`] whose programs are called with the two builders of this file, and no others.
trait DynBuilderSet: Send + Sync {
    fn graph_names(&self) -> &[&str];
    fn stream_names(&self) -> &[&str];
    fn build_graph(&self, symbol: u64, graph: &mut Graph<'_>) -> Built;
    fn build_stream(&self, symbol: u64, stream: &mut Stream<'_>) -> Built;
}

impl<B: BuilderSet> DynBuilderSet for B {
    fn graph_names(&self) -> &[&str] {
        self.names()
    }

    fn stream_names(&self) -> &[&str] {
        BuilderSet::stream_names(self)
    }

    fn build_graph(&self, symbol: u64, graph: &mut Graph<'_>) -> Built {
        self.build(symbol, graph)
    }

    fn build_stream(&self, symbol: u64, stream: &mut Stream<'_>) -> Built {
        BuilderSet::build_stream(self, symbol, stream)
    }
}

/// Any builder of graphs.
struct Graph<'g>(&'g mut dyn HostedBuilder);

/// Any builder of a run that streams, and the communicator of its [exchanges](StreamBuilder::exchange), once there was one.
struct Stream<'s>(&'s mut dyn HostedStream, Option<Communicator>);

impl<'s> Stream<'s> {
    fn of(stream: &'s mut dyn HostedStream) -> Self {
        Self(stream, None)
    }

    /// A call of the communicator of the run on this builder.
    fn communicate<R>(
        &mut self,
        call: impl FnOnce(&mut Communicator, &mut Self) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        let taken = self.1.take().map_or_else(|| Communicator::of(self.0.launch_args()), Ok);
        let mut comm = taken?;
        let done = call(&mut comm, self);
        self.1 = Some(comm);
        done
    }
}

// Each call of a builder is the same call of the builder in the table.
forward_graph_builder!(['held] Graph<'held> => 0);
forward_graph_builder!(['held] Stream<'held> => 0);

impl HostedBuilder for Graph<'_> {
    fn arena(&self) -> Option<GmWindow<'_>> {
        self.0.arena()
    }
}

impl HostedBuilder for Stream<'_> {
    fn as_stream(&mut self) -> Option<&mut dyn StreamBuilder> {
        Some(self)
    }

    fn arena(&self) -> Option<GmWindow<'_>> {
        self.0.arena()
    }
}

impl StreamBuilder for Stream<'_> {
    /// What goes between ranks is submitted by the communicator; the builder in the table does everything else.
    fn stream_op(&mut self, op: StreamOp<'_>) -> Result<OpResult, Fault> {
        match op {
            StreamOp::Exchange(exchange) => self
                .communicate(|comm, stream| comm.exchange(stream, exchange))
                .map(|()| OpResult::Done),
            StreamOp::BeginCrossings(print) => self
                .communicate(|comm, stream| comm.begin_crossings(stream, print))
                .map(|(rank, size)| OpResult::Ranks(rank, size)),
            StreamOp::Cross(crossing) => {
                self.communicate(|comm, stream| comm.cross(stream, crossing)).map(OpResult::Task)
            }
            _ => self.0.stream_op(op),
        }
    }
}
