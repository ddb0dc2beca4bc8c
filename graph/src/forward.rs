//! Builders that hold another one and hand its calls on.

/// Implements [`GraphBuilder`](crate::GraphBuilder) for a type by the builder that it holds:
/// `forward_graph_builder!(['g] Wrapped<'g> => 0)` for the generic parameters, the type, and the field. Each call that a builder may implement is the
/// same call of that builder, those with a default included. A method of the field's type, `=> 0, checked`, submits instead.
#[doc(hidden)]
#[macro_export]
macro_rules! forward_graph_builder {
    ([$($parameter:tt)*] $builder:ty => $($field:tt).+) => {
        impl<$($parameter)*> $crate::GraphBuilder for $builder {
            // Always inlined, so that the compiler knows the submission in the calling program.
            #[inline(always)]
            fn submit_desc(
                &mut self,
                submission: $crate::Submission<'_>,
            ) -> ::core::result::Result<
                ::core::option::Option<$crate::abi::TaskId>,
                $crate::abi::Fault,
            > {
                self.$($field).+.submit_desc(submission)
            }

            $crate::forward_graph_builder!(@calls $($field).+);
        }
    };
    ([$($parameter:tt)*] $builder:ty => $($field:tt).+, $submit:ident) => {
        impl<$($parameter)*> $crate::GraphBuilder for $builder {
            fn submit_desc(
                &mut self,
                submission: $crate::Submission<'_>,
            ) -> ::core::result::Result<
                ::core::option::Option<$crate::abi::TaskId>,
                $crate::abi::Fault,
            > {
                self.$submit(submission)
            }

            $crate::forward_graph_builder!(@calls $($field).+);
        }
    };
    (@calls $($field:tt).+) => {
            #[inline]
            fn launch_args(&self) -> $crate::LaunchArgs<'_> {
                self.$($field).+.launch_args()
            }

            #[inline]
            fn add_edge(
                &mut self,
                producer: $crate::abi::TaskId,
                consumer: $crate::abi::TaskId,
            ) -> ::core::result::Result<$crate::EdgeOutcome, $crate::abi::Fault> {
                self.$($field).+.add_edge(producer, consumer)
            }

            #[inline]
            fn publish(
                &mut self,
                task: $crate::abi::TaskId,
            ) -> ::core::result::Result<(), $crate::abi::Fault> {
                self.$($field).+.publish(task)
            }

            #[inline]
            fn read_u32(
                &self,
                address: $crate::abi::GmAddr,
            ) -> ::core::result::Result<u32, $crate::abi::Fault> {
                self.$($field).+.read_u32(address)
            }

            #[inline]
            fn read_u64(
                &self,
                address: $crate::abi::GmAddr,
            ) -> ::core::result::Result<u64, $crate::abi::Fault> {
                self.$($field).+.read_u64(address)
            }

            #[inline]
            fn has_word(&self, address: $crate::abi::GmAddr) -> bool {
                self.$($field).+.has_word(address)
            }

            #[inline]
            fn read_words(
                &self,
                address: $crate::abi::GmAddr,
                words: &mut [u32],
            ) -> ::core::result::Result<(), $crate::abi::Fault> {
                self.$($field).+.read_words(address, words)
            }

            #[inline]
            fn fill_template(
                &mut self,
                template: &mut $crate::ChainTemplate,
                chain: &$crate::Chain<'_>,
            ) -> ::core::result::Result<(), $crate::abi::Fault> {
                self.$($field).+.fill_template(template, chain)
            }
    };
}
