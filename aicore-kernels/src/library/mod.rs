//! The kernel library: what a host registers in `kernel_addrs`, what `pto info kernels` lists, and a checked call of each
//! kernel for programs.
//!
//! ```
//! use pto_abi::GmAddr;
//! use pto_aicore_kernels::library;
//!
//! let [a, b, out] = [0x1000, 0x2000, 0x3000].map(GmAddr);
//! let call = library::add(a, b, out, 64);
//! assert_eq!(call.task().args, [0x1000, 0x2000, 0x3000, 64]);
//! ```
//! The row of a kernel in `library/table.rs` gives its func id ([`func`]), its entry ([`entry`]), its call and its
//! description ([`LIBRARY`]).

mod table;

use pto_abi::{CoreKind, FuncId};
use pto_graph::group;
pub use pto_graph::signature::{Access, Elements, Extents, Footprint};
use pto_graph::signature::{FootprintFn, Signature};

/// A kernel's entry: its argument words, see [`crate::args`].
pub type KernelFn = unsafe extern "C" fn(*const u64);

/// One kernel of the library.
#[derive(Clone, Copy, Debug)]
pub struct LibraryKernel {
    /// The name by which graphs and people refer to it.
    pub name: &'static str,
    /// The kernel's function id; equal to its index in [`LIBRARY`].
    pub func_id: u32,
    /// The kind of core that it runs on.
    pub kind: CoreKind,
    /// The code.
    pub entry: KernelFn,
    /// What it computes, in one line.
    pub summary: &'static str,
    /// The names of its argument words in order. `*_ld` are strides in elements; `f32` scalars are bits in the
    /// low half.
    pub args: &'static [&'static str],
    /// For each of them whether it is the address of a tensor.
    pub addresses: &'static [bool],
    /// Whether more argument words may follow these: the kernel reads how many there are.
    pub takes_more: bool,
    /// Whether what it touches depends on which block it is.
    pub takes_context: bool,
    /// What a call does to its tensors.
    pub footprint: FootprintFn,
}

impl LibraryKernel {
    /// What the kernel expects of a call.
    #[must_use]
    pub const fn signature(&self) -> Signature<'static> {
        let Self { name, kind, args, takes_more, footprint, .. } = *self;
        Signature { name, kind, args: Some(args), takes_more, footprint: Some(footprint) }
    }
}

/// The kernel of this name.
#[cfg(feature = "code")]
#[must_use]
pub fn by_name(name: &str) -> Option<&'static LibraryKernel> {
    LIBRARY.iter().find(|kernel| kernel.name == name)
}

/// What an argument is in the arithmetic, from its word.
#[cfg(feature = "code")]
macro_rules! operand {
    (Size $arg:ident) => {};
    (F32 $arg:ident) => {
        let $arg = crate::args::scalar($arg);
    };
    ($role:ident $arg:ident) => {};
    ($role:ident $arg:ident [$rows:expr, $cols:expr; $ld:expr]) => {
        // SAFETY: the caller keeps the argument contract: a matrix of these extents.
        let [$arg] = unsafe { crate::args::matrices([[$arg, $rows, $cols, $ld]]) };
    };
    ($role:ident $arg:ident [$n:expr]) => {
        // SAFETY: the caller keeps the argument contract: so many elements.
        let [$arg] = unsafe { crate::args::vectors([$arg], $n) };
    };
}

/// Whether an argument of this role is the address of a tensor.
#[cfg(feature = "code")]
macro_rules! is_address {
    (Size) => {
        false
    };
    (F32) => {
        false
    };
    ($role:ident) => {
        true
    };
}

/// What a call does to an argument of this role.
#[cfg(feature = "code")]
macro_rules! footprint {
    (Size) => {
        None
    };
    (F32) => {
        None
    };
    ($role:ident) => {
        Some(Footprint { access: Access::$role, extents: None, elements: None })
    };
    ($role:ident {$elements:expr}) => {
        Some(Footprint { access: Access::$role, extents: None, elements: Some($elements) })
    };
    ($role:ident [$rows:expr, $cols:expr; $ld:expr]) => {
        footprint!(@ $role Extents::Matrix([$rows, $cols, $ld]))
    };
    ($role:ident [$n:expr]) => {
        footprint!(@ $role Extents::Vector($n))
    };
    (@ $role:ident $extents:expr) => {
        Some(Footprint { access: Access::$role, extents: Some($extents), elements: None })
    };
}

/// So many elements of this many bytes; as many bytes as there are where 64 bits do not count them.
#[cfg(feature = "code")]
const fn elements(count: u64, element: u64) -> Elements {
    Elements { bytes: count.saturating_mul(element), element }
}

/// The elements up to this one.
#[cfg(feature = "code")]
const fn up_to(index: u64, element: u64) -> Elements {
    elements(index.saturating_add(1), element)
}

/// Writes ids, entries, calls and the list from the rows, so that an id is its index by construction.
macro_rules! library {
    ($(
        $id:literal $constant:ident $name:ident $kind:ident $summary:literal
        ($($arg:ident: $role:ident $([$($extent:tt)*])? $({$elements:expr})?),* $(; $context:ident)? $(| $words:ident)?) => { $($body:tt)* };
    )*) => {
        /// The function ids of the library kernels.
        pub mod func {
            use super::FuncId;
            $(#[doc = concat!("The id of `", stringify!($name), "`.")]
            pub const $constant: FuncId = FuncId($id);)*
        }

        /// The code of the kernels: from argument words to operands, and the arithmetic.
        #[cfg(feature = "code")]
        pub mod entry {
            use crate::{
                args, attention, cholesky, combine, elementwise, experts, layer, matmul, newton, parts, probe, reduce, tile_task,
            };
            $(
                #[doc = concat!("`", $summary, "`")]
                ///
                /// # Safety
                #[doc = concat!(
                    "The [argument contract](crate::args), for the words ", stringify!($($arg),*),
                    ", with the extents that the table states."
                )]
                pub unsafe extern "C" fn $name(args: *const u64) {
                    // SAFETY: the caller keeps the argument contract: so many words.
                    let [$($arg,)* $($context)?] = unsafe { args::words(args) };
                    // What only another part of the same task uses.
                    let _ = ($($arg,)*);
                    // Where a kernel has more words than the row names.
                    $(let $words = args.expose_provenance() as u64;)?
                    $(operand!($role $arg $([$($extent)*])?);)*
                    $($body)*
                }
            )*
        }

        /// A call of each kernel.
        #[expect(clippy::too_many_arguments, reason = "as many as the kernel has")]
        mod calls {
            use crate::library::func;
            use pto_abi::CoreKind;
            use pto_graph::call::{self, Call};
            $(
                #[doc = concat!("A call of `", stringify!($name), "`: `", $summary, "`.")]
                #[must_use]
                #[inline]
                pub fn $name<W>(
                    $($arg: impl call::$role<W>),*
                ) -> Call<W, { <[&str]>::len(&[$(stringify!($arg)),*]) }> {
                    Call::new(func::$constant, CoreKind::$kind, [$(call::$role::arg($arg)),*])
                }
            )*
        }
        pub use calls::{$($name),*};

        /// What the calls do to their tensors.
        #[cfg(feature = "code")]
        mod footprints {
            use crate::library::{Access, Extents, Footprint, elements, up_to};
            use crate::{attention, combine, parts};
            use pto_graph::plan::task;
            $(
                pub(super) fn $name(words: &[u64], blocks: u32, at: usize) -> Option<Footprint> {
                    const COUNT: usize = <[&str]>::len(&[$(stringify!($arg)),*]);
                    let [$($arg),*] = *words.first_chunk::<COUNT>()?;
                    $(let $context = u64::from(blocks);)?
                    let _ = ($($arg,)* $($context,)? blocks);
                    let all: [Option<Footprint>; COUNT] = [$(footprint!($role $([$($extent)*])? $({$elements})?)),*];
                    all.get(at).copied().flatten()
                }
            )*
        }

        /// All library kernels; the index is the function id.
        #[cfg(feature = "code")]
        pub static LIBRARY: &[LibraryKernel] = &[$(LibraryKernel {
            name: stringify!($name),
            func_id: $id,
            kind: CoreKind::$kind,
            entry: entry::$name,
            summary: $summary,
            args: &[$(stringify!($arg)),*],
            addresses: &[$(is_address!($role)),*],
            takes_more: !<[&str]>::is_empty(&[$(stringify!($words))?]),
            takes_context: !<[&str]>::is_empty(&[$(stringify!($context))?]),
            footprint: footprints::$name,
        }),*];
    };
}

crate::kernels! { [library] }

// Collectives name these two, and do not know the table.
const _: () = assert!(func::REDUCE.0 == group::REDUCE.0 && func::TRANSFER.0 == group::TRANSFER.0);
