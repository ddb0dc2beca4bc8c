//! A kernel: what it is called, which cores it is for, and where its code comes from.

use std::fmt;

use pto_abi::CoreKind;
use pto_aicore_kernels::{KernelFn, LibraryKernel, by_name};
use pto_graph::signature::Signature;

use crate::error::Error;

/// A kernel that can be registered.
#[derive(Clone, Debug)]
pub struct Kernel {
    name: String,
    kind: CoreKind,
    code: KernelCode,
    cost_word: Option<usize>,
}

/// Where a kernel's code comes from.
#[derive(Clone, Copy)]
pub(crate) enum KernelCode {
    /// The kernel library, which is part of every device image.
    Library(&'static LibraryKernel),
    /// A function of this process.
    Function(KernelFn),
    /// The flashed kernel of the same name.
    Flashed,
}

impl fmt::Debug for KernelCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Library(_) => "library",
            Self::Function(_) => "function",
            Self::Flashed => "flashed",
        })
    }
}

impl Kernel {
    /// The library kernel of this name.
    ///
    /// # Errors
    /// `UnknownKernel`, with the names that there are.
    pub fn library(name: &str) -> Result<Self, Error> {
        let unknown = || Error::UnknownKernel { name: name.to_owned() };
        by_name(name).map(Self::of_library).ok_or_else(unknown)
    }

    /// A function of this process, for cores of `kind`. Runs on the simulator only.
    ///
    /// The function is called with the words of its task, and it is trusted with them: a device does not
    /// protect memory from kernels, and the simulator does not protect this process.
    #[must_use]
    pub fn from_fn(name: impl Into<String>, kind: CoreKind, entry: KernelFn) -> Self {
        let code = KernelCode::Function(entry);
        Self { name: name.into(), kind, code, cost_word: None }
    }

    /// A kernel of the blob that the device has, for cores of `kind`; see `Device::flashed_kernels`.
    pub(crate) fn flashed(name: String, kind: CoreKind) -> Self {
        Self { name, kind, code: KernelCode::Flashed, cost_word: None }
    }

    pub(crate) fn of_library(kernel: &'static LibraryKernel) -> Self {
        let name = kernel.name.to_owned();
        let code = KernelCode::Library(kernel);
        Self { name, kind: kernel.kind, code, cost_word: None }
    }

    /// Sets the kernel's name in reports.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// The word of each task that says how many nanoseconds a core of the device takes for it, one of the first twelve; 0 there: that is not known. In virtual
    /// time a task takes them where costs come from a model (`KernelCosts::Library`).
    #[must_use]
    pub fn with_cost_word(self, at: usize) -> Self {
        Self { cost_word: Some(at), ..self }
    }

    /// The word of a task with its cost.
    pub(crate) const fn cost_word(&self) -> Option<usize> {
        self.cost_word
    }

    /// The name that reports use.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The core kind that it is written for.
    #[must_use]
    pub fn kind(&self) -> CoreKind {
        self.kind
    }

    /// Whether both run the same code under the same name on cores of the same kind.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let is_same_code = match (self.code, other.code) {
            (KernelCode::Function(one), KernelCode::Function(other)) => {
                std::ptr::fn_addr_eq(one, other)
            }
            (KernelCode::Flashed, KernelCode::Flashed) => true,
            _ => self.is_same_of_library(other),
        };
        is_same_code && self.name == other.name && self.kind == other.kind
    }

    /// Whether both are the same kernel of the library.
    pub(crate) fn is_same_of_library(&self, other: &Self) -> bool {
        match (self.code, other.code) {
            (KernelCode::Library(one), KernelCode::Library(other)) => std::ptr::eq(one, other),
            _ => false,
        }
    }

    /// The kernel of the library that it is.
    pub(crate) fn as_library(&self) -> Option<&'static LibraryKernel> {
        match self.code {
            KernelCode::Library(kernel) => Some(kernel),
            KernelCode::Function(_) | KernelCode::Flashed => None,
        }
    }

    /// What it expects of a call; of a kernel that is not of the library, only its cores are known.
    pub(crate) fn signature(&self) -> Signature<'_> {
        match self.as_library() {
            Some(kernel) => kernel.signature(),
            None => Signature::own(&self.name, self.kind, None),
        }
    }

    pub(crate) fn code(&self) -> KernelCode {
        self.code
    }
}
