//! Why a call fails: a code of the interface, and a sentence.

use std::ffi::CStr;

/// An argument that cannot be.
pub(crate) const PARAMETER: i32 = 1;
/// A null pointer.
pub(crate) const POINTER: i32 = 2;
/// A device has no room.
pub(crate) const MEMORY: i32 = 3;
/// A fault of this library.
pub(crate) const INTERNAL: i32 = 4;
pub(crate) const NOT_SUPPORTED: i32 = 5;
pub(crate) const NOT_FOUND: i32 = 6;
pub(crate) const TIMEOUT: i32 = 9;
pub(crate) const OPEN_FILE: i32 = 10;
pub(crate) const TCP_CONNECT: i32 = 11;
pub(crate) const TCP_TRANSFER: i32 = 13;
/// A function of `libascendcl.so` refuses.
pub(crate) const RUNTIME: i32 = 15;
/// Another rank is gone.
pub(crate) const REMOTE: i32 = 21;

/// The names of the codes, for people.
const NAMES: [&CStr; 25] = [
    c"HCCL_SUCCESS",
    c"HCCL_E_PARA",
    c"HCCL_E_PTR",
    c"HCCL_E_MEMORY",
    c"HCCL_E_INTERNAL",
    c"HCCL_E_NOT_SUPPORT",
    c"HCCL_E_NOT_FOUND",
    c"HCCL_E_UNAVAIL",
    c"HCCL_E_SYSCALL",
    c"HCCL_E_TIMEOUT",
    c"HCCL_E_OPEN_FILE_FAILURE",
    c"HCCL_E_TCP_CONNECT",
    c"HCCL_E_ROCE_CONNECT",
    c"HCCL_E_TCP_TRANSFER",
    c"HCCL_E_ROCE_TRANSFER",
    c"HCCL_E_RUNTIME",
    c"HCCL_E_DRV",
    c"HCCL_E_PROFILING",
    c"HCCL_E_CCE",
    c"HCCL_E_NETWORK",
    c"HCCL_E_AGAIN",
    c"HCCL_E_REMOTE",
    c"HCCL_E_SUSPENDING",
    c"HCCL_E_OPRETRY_FAIL",
    c"HCCL_E_OOM",
];

/// The name of a code.
pub(crate) fn name(code: i32) -> &'static CStr {
    let known = usize::try_from(code).ok().and_then(|code| NAMES.get(code).copied());
    known.unwrap_or(c"a code that is not one of HcclResult")
}

/// The error of a call.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) code: i32,
    pub(crate) text: String,
}

/// What a call gives.
pub(crate) type Checked<T = ()> = Result<T, Failure>;

impl Failure {
    #[cold]
    pub(crate) fn new(code: i32, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }
}

/// Refuses unless something holds.
pub(crate) fn require(holds: bool, code: i32, text: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(Failure::new(code, text())) }
}
