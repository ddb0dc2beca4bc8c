//! What the program of an example is: which runtimes take it, in which build modes.

use pto_abi::{BuildMode, RuntimeVariant};

/// What the program of an example is, and thereby under which runtimes it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// A graph, which every runtime takes.
    Graph,
    /// Tasks with tensors.
    Tensors,
    /// Tasks with tensors; and the program waits for values of theirs, so that schedulers must run at the same time.
    TensorsAndValues,
}

impl Program {
    /// The runtimes that take it; the first is the one to use unless a user wants another.
    #[must_use]
    pub const fn variants(self) -> &'static [RuntimeVariant] {
        match self {
            Self::Graph => &[
                RuntimeVariant::AICPU_BUILD_GRAPH,
                RuntimeVariant::HOST_BUILD_GRAPH,
                RuntimeVariant::TENSORMAP_AND_RINGBUFFER,
            ],
            Self::Tensors | Self::TensorsAndValues => &[RuntimeVariant::TENSORMAP_AND_RINGBUFFER],
        }
    }

    /// The build modes in which it comes to an end.
    #[must_use]
    pub const fn build_modes(self) -> &'static [BuildMode] {
        match self {
            Self::Graph | Self::Tensors => BuildMode::ALL,
            Self::TensorsAndValues => &[BuildMode::CONCURRENT],
        }
    }
}
