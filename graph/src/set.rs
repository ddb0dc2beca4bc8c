//! Builder programs by name: the set that a firmware, a simulator or a test holds, and the macro that declares one.

use crate::error::BuildError;
use crate::hosted::HostedBuilder;
use crate::stream::StreamBuilder;

/// The builder programs that are linked into a firmware, found by the symbol of their name.
pub trait BuilderSet: Send + Sync + 'static {
    /// Whether the firmware has the streaming runtime, so that they can be run under it. Where not, its code is not
    /// linked, and a run of that variant ends with `RUNTIME_VARIANT`.
    const STREAMS: bool = true;

    /// Their names.
    fn names(&self) -> &[&str];

    /// Runs the builder with this symbol; `None`: there is none.
    fn build<G: HostedBuilder>(&self, symbol: u64, graph: &mut G)
    -> Option<Result<(), BuildError>>;

    /// Their names, of those that need the streaming runtime.
    fn stream_names(&self) -> &[&str] {
        &[]
    }

    /// Runs the streaming builder with this symbol, or else the builder; `None`: there is neither.
    fn build_stream<G: StreamBuilder + HostedBuilder>(
        &self,
        symbol: u64,
        stream: &mut G,
    ) -> Option<Result<(), BuildError>> {
        self.build(symbol, stream)
    }
}

/// A firmware without builder programs.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoBuilders;

impl BuilderSet for NoBuilders {
    fn names(&self) -> &[&str] {
        &[]
    }

    fn build<G: HostedBuilder>(&self, _: u64, _: &mut G) -> Option<Result<(), BuildError>> {
        None
    }
}

/// Runs one of the builders of a set. It is not inlined. Otherwise the variables of all builders would share one frame, and the stacks of
/// the device are small.
///
/// # Errors
/// Those of the builder.
#[doc(hidden)]
#[inline(never)]
pub fn set_apart<G>(
    graph: &mut G,
    build: impl FnOnce(&mut G) -> Result<(), BuildError>,
) -> Result<(), BuildError> {
    build(graph)
}

/// Declares a [`BuilderSet`]: `builder_set! { pub struct Builders { "name" => function, .. } }`, where each
/// function is `fn build<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError>`. A second part,
/// `stream { "name" => function, .. }`, names functions of a [`StreamBuilder`], which the streaming variant prefers.
#[macro_export]
macro_rules! builder_set {
    (
        $(#[$meta:meta])* $vis:vis struct $set:ident { $( $name:literal => $build:path ),* $(,)? }
        $( stream { $( $stream_name:literal => $stream_build:path ),* $(,)? } )?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default)]
        $vis struct $set;

        impl $crate::BuilderSet for $set {
            fn names(&self) -> &[&str] {
                &[$($name),*]
            }

            fn build<G: $crate::HostedBuilder>(
                &self,
                symbol: u64,
                graph: &mut G,
            ) -> Option<Result<(), $crate::BuildError>> {
                $(
                    const { assert!($crate::symbol($name) != 0) };
                    if symbol == const { $crate::symbol($name) } {
                        return Some($build(graph));
                    }
                )*
                let _ = (symbol, graph);
                None
            }

            $(
                fn stream_names(&self) -> &[&str] {
                    &[$($stream_name),*]
                }

                fn build_stream<G: $crate::StreamBuilder + $crate::HostedBuilder>(
                    &self,
                    symbol: u64,
                    stream: &mut G,
                ) -> Option<Result<(), $crate::BuildError>> {
                    $(
                        const { assert!($crate::symbol($stream_name) != 0) };
                        if symbol == const { $crate::symbol($stream_name) } {
                            return Some($crate::set_apart(stream, $stream_build));
                        }
                    )*
                    $crate::BuilderSet::build(self, symbol, stream)
                }
            )?
        }
    };
}
