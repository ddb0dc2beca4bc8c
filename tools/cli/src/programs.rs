//! The builder programs of the devices that are not those of the examples alone: one set, so that the firmware is
//! compiled once for it.

use std::sync::{Arc, OnceLock};

use pto_check::{FileProgram, Recording};
use pto_examples::ExampleBuilders;
use pto_graph::{BuildError, BuilderSet, HostedBuilder, StreamBuilder};

/// See the module.
#[derive(Clone, Debug)]
pub(crate) enum ProgramSource {
    /// The examples, recorded while they run.
    Recorded(Recording<ExampleBuilders>),
    /// The program of a graph file.
    File(FileProgram),
    /// The examples, recorded, and such a recording once it is made.
    Again(Recording<ExampleBuilders>, Arc<OnceLock<FileProgram>>),
}

impl ProgramSource {
    /// The recording that is to run.
    fn again(&self) -> Option<&FileProgram> {
        match self {
            Self::Again(_, submission) => submission.get(),
            _ => None,
        }
    }
}

impl BuilderSet for ProgramSource {
    fn names(&self) -> &[&str] {
        match self {
            Self::Recorded(set) | Self::Again(set, _) => set.names(),
            Self::File(set) => set.names(),
        }
    }

    fn build<G: HostedBuilder>(
        &self,
        symbol: u64,
        graph: &mut G,
    ) -> Option<Result<(), BuildError>> {
        match self {
            Self::Recorded(set) | Self::Again(set, _) => set.build(symbol, graph),
            Self::File(set) => BuilderSet::build(set, symbol, graph),
        }
    }

    fn stream_names(&self) -> &[&str] {
        match self {
            Self::Recorded(set) | Self::Again(set, _) => set.stream_names(),
            Self::File(set) => set.stream_names(),
        }
    }

    fn build_stream<G: StreamBuilder + HostedBuilder>(
        &self,
        symbol: u64,
        stream: &mut G,
    ) -> Option<Result<(), BuildError>> {
        if let Some(built) = self.again().and_then(|set| set.build_stream(symbol, stream)) {
            return Some(built);
        }
        match self {
            Self::Recorded(set) | Self::Again(set, _) => set.build_stream(symbol, stream),
            Self::File(set) => set.build_stream(symbol, stream),
        }
    }
}
