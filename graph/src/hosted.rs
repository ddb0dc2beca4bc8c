//! The questions that the bindings for other languages ask of a builder. Builders in C and C++ are called with an opaque handle. The object
//! of that handle must know where the run's memory is and whether the run streams.
//!
//! A program in Rust needs none of this, and cannot see it: programs are written for
//! [`GraphBuilder`] and [`StreamBuilder`]. A builder on which a [`BuilderSet`](crate::BuilderSet) runs programs implements this trait as
//! well; its methods have defaults.

use pto_abi::gm::GmWindow;

use crate::builder::GraphBuilder;
use crate::stream::StreamBuilder;

/// A builder that programs of a [`BuilderSet`](crate::BuilderSet) are run on.
pub trait HostedBuilder: GraphBuilder {
    /// The same builder as one of tensors; `None`: the run does not stream.
    fn as_stream(&mut self) -> Option<&mut dyn StreamBuilder> {
        None
    }

    /// The run's arena, where the builder shares memory with the schedulers: builders in C are called with it.
    fn arena(&self) -> Option<GmWindow<'_>> {
        None
    }
}
