//! Calls of kernels whose arguments are known: a kernel library states of each argument what it is to the kernel, and
//! the compiler checks the call.
//!
//! ```
//! use pto_abi::{CoreKind, FuncId, GmAddr};
//! use pto_graph::call::{Call, In, Out, Size};
//! use pto_graph::{ElementType, TensorView};
//!
//! /// `out = a * a`, of n elements, as a library states it.
//! fn square<W>(a: impl In<W>, out: impl Out<W>, n: impl Size<W>) -> Call<W, 3> {
//!     Call::new(FuncId(64), CoreKind::AIV, [a.arg(), out.arg(), n.arg()])
//! }
//!
//! // In a graph of addresses it is a task with words, in a stream of tensors one with accesses.
//! assert_eq!(square(GmAddr(64), GmAddr(128), 8).task().args, [64, 128, 8]);
//! let [a, out] = [GmAddr(64), GmAddr(128)].map(|at| TensorView::dense(at, ElementType::F32, &[8]));
//! assert_eq!(square(&a, &out, 8).task().args.len(), 3);
//! ```
//! `W` is the word of the interface: `u64` for [`GraphBuilder`](crate::GraphBuilder), [`Arg`] for
//! [`StreamBuilder`](crate::StreamBuilder). It follows from the operands: a [`GmAddr`] or a `&TensorView`.

use pto_abi::ids::{FuncId, GmAddr};
use pto_abi::kinds::CoreKind;

use crate::task::TaskSpec;
use crate::tensor::TensorView;
use crate::tensor_task::{Arg, TensorTask};

/// One call of a kernel, with all of its arguments.
#[derive(Clone, Copy, Debug)]
pub struct Call<W, const N: usize> {
    func_id: FuncId,
    kind: CoreKind,
    args: [W; N],
}

impl<W, const N: usize> Call<W, N> {
    /// A call of the kernel `func_id`, which runs on such cores.
    #[must_use]
    #[inline]
    pub const fn new(func_id: FuncId, kind: CoreKind, args: [W; N]) -> Self {
        Self { func_id, kind, args }
    }
}

impl<const N: usize> Call<u64, N> {
    /// The task of a graph.
    #[must_use]
    #[inline]
    pub const fn task(&self) -> TaskSpec<'_> {
        TaskSpec::new(self.func_id, self.kind, &self.args)
    }
}

impl<'a, const N: usize> Call<Arg<'a>, N> {
    /// The task of a stream.
    #[must_use]
    #[inline]
    pub const fn task(&'a self) -> TensorTask<'a> {
        TensorTask::new(self.func_id, self.kind, &self.args)
    }
}

/// A tensor that is two arguments of one call: the kernel reads it as [`In`] or [`InOut`], and writes what it
/// has as [`Out`] in the same place.
#[derive(Clone, Copy, Debug)]
pub struct InPlace<'a>(pub &'a TensorView<'a>);

macro_rules! argument {
    ($(#[$meta:meta])* $role:ident { $( ($($lifetime:lifetime)?) $from:ty => $word:ty: |$value:ident| $arg:expr; )+ }) => {
        $(#[$meta])*
        pub trait $role<W> {
            /// The word that the task gets.
            fn arg(self) -> W;
        }

        $(impl<$($lifetime)?> $role<$word> for $from {
            #[inline]
            fn arg(self) -> $word {
                let $value = self;
                $arg
            }
        })+
    };
}

argument! {
    /// A tensor that the kernel reads.
    In {
        () GmAddr => u64: |at| at.0;
        ('a) &'a TensorView<'a> => Arg<'a>: |view| Arg::In(view);
        ('a) InPlace<'a> => Arg<'a>: |view| Arg::InOut(view.0);
    }
}

argument! {
    /// A tensor that the kernel overwrites and does not read.
    Out {
        () GmAddr => u64: |at| at.0;
        ('a) &'a TensorView<'a> => Arg<'a>: |view| Arg::Out(view);
        ('a) InPlace<'a> => Arg<'a>: |view| Arg::NoDep(view.0);
    }
}

argument! {
    /// A tensor that the kernel reads and writes.
    InOut {
        () GmAddr => u64: |at| at.0;
        ('a) &'a TensorView<'a> => Arg<'a>: |view| Arg::InOut(view);
        ('a) InPlace<'a> => Arg<'a>: |view| Arg::InOut(view.0);
    }
}

argument! {
    /// A size, a count, a stride, or another number of 64 bits.
    Size {
        () u64 => u64: |word| word;
        ('a) u64 => Arg<'a>: |word| Arg::Scalar(word);
        // A word that a replay binds.
        ('a) Arg<'a> => Arg<'a>: |arg| arg;
    }
}

argument! {
    /// A number of the type `f32`.
    F32 {
        () f32 => u64: |value| u64::from(value.to_bits());
        ('a) f32 => Arg<'a>: |value| Arg::f32(value);
    }
}

#[cfg(test)]
mod tests {
    use super::{Call, F32, In, InPlace, Out, Size};
    use crate::element::ElementType;
    use crate::tensor::TensorView;
    use crate::tensor_task::Arg;
    use pto_abi::ids::{FuncId, GmAddr};
    use pto_abi::kinds::CoreKind;

    fn scaled<W>(a: impl In<W>, out: impl Out<W>, n: impl Size<W>, by: impl F32<W>) -> Call<W, 4> {
        Call::new(FuncId(7), CoreKind::AIC, [a.arg(), out.arg(), n.arg(), by.arg()])
    }

    #[test]
    fn a_call_of_addresses_is_a_task_with_words() {
        let call = scaled(GmAddr(0x40), GmAddr(0x80), 8, 1.5);
        let task = call.task();
        assert_eq!((task.func_id, task.kind), (FuncId(7), CoreKind::AIC));
        assert_eq!(task.args, [0x40, 0x80, 8, 1.5_f32.to_bits().into()]);
    }

    #[test]
    fn a_call_of_tensors_says_what_is_read_and_written() {
        let view = |at| TensorView::dense(GmAddr(at), ElementType::F32, &[8]);
        let (a, out) = (view(0x40), view(0x80));
        let call = scaled(&a, &out, 8, 1.5);
        assert!(matches!(
            call.task().args,
            [Arg::In(_), Arg::Out(_), Arg::Scalar(8), Arg::Scalar(_)]
        ));
        let call = scaled(InPlace(&a), InPlace(&a), Arg::BoundScalar(3), 1.5);
        let args = call.task().args;
        assert!(matches!(
            args,
            [Arg::InOut(_), Arg::NoDep(_), Arg::BoundScalar(3), Arg::Scalar(_)]
        ));
    }
}
