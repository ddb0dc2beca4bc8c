//! The kernels of the library as `pto check` knows kernels: name, kind and arguments of each func id.

use pto_check::{Signature, Signatures};

/// The signatures of all kernels of the library.
pub(crate) fn signatures() -> Signatures {
    let signature = |kernel: &pto_aicore_kernels::LibraryKernel| {
        Some(Signature {
            func: u16::try_from(kernel.func_id).ok()?,
            name: kernel.name.to_owned(),
            kind: kernel.kind,
            args: kernel.args.iter().map(|arg| (*arg).to_owned()).collect(),
        })
    };
    Signatures::new(pto_aicore_kernels::LIBRARY.iter().filter_map(signature).collect())
}
