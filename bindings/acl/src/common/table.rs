//! Handles: numbers that were never used before. The low bits are not zero in a way that a pointer's are, the high ones say what it is.
//!
//! A handle that is not in the table was destroyed, or is none: it is never followed.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::refusal::{Answer, Refusal};
use super::{checks, codes};

/// A handle as programs have it.
pub(crate) type Handle = usize;

/// What a handle can be of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Context = 1,
    Stream = 2,
    Event = 3,
    Notify = 4,
    Physical = 5,
    Binary = 6,
    Function = 7,
    Arguments = 8,
    Graph = 9,
    Allocator = 10,
    ModelDescription = 11,
    DataSet = 12,
    DataBuffer = 13,
    ProfileConfig = 14,
    Stamp = 15,
    StepInfo = 16,
}

const KIND_SHIFT: u32 = 40;
const MARK: usize = 0x5A << 48;

impl Kind {
    const ALL: [Self; 16] = [
        Self::Context,
        Self::Stream,
        Self::Event,
        Self::Notify,
        Self::Physical,
        Self::Binary,
        Self::Function,
        Self::Arguments,
        Self::Graph,
        Self::Allocator,
        Self::ModelDescription,
        Self::DataSet,
        Self::DataBuffer,
        Self::ProfileConfig,
        Self::Stamp,
        Self::StepInfo,
    ];

    fn of(handle: Handle) -> Option<Self> {
        let is = |kind: &Self| handle >> KIND_SHIFT == (MARK >> KIND_SHIFT) | *kind as usize;
        Self::ALL.into_iter().find(is)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Context => "a context",
            Self::Stream => "a stream",
            Self::Event => "an event",
            Self::Notify => "a notify",
            Self::Physical => "physical memory",
            Self::Binary => "a binary",
            Self::Function => "a kernel function",
            Self::Arguments => "kernel arguments",
            Self::Graph => "a captured graph",
            Self::Allocator => "a description of an allocator",
            Self::ModelDescription => "a description of a model",
            Self::DataSet => "a data set",
            Self::DataBuffer => "a data buffer",
            Self::ProfileConfig => "a configuration of the profiler",
            Self::Stamp => "a stamp",
            Self::StepInfo => "a step of the profiler",
        })
    }
}

/// The objects of one kind.
pub(crate) struct Table<T> {
    kind: Kind,
    next: AtomicUsize,
    objects: RwLock<BTreeMap<Handle, Arc<T>>>,
}

impl<T> Table<T> {
    pub(crate) const fn new(kind: Kind) -> Self {
        Self { kind, next: AtomicUsize::new(1), objects: RwLock::new(BTreeMap::new()) }
    }

    /// A handle for an object that is yet to be made.
    pub(crate) fn reserve(&self) -> Handle {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        MARK | (self.kind as usize) << KIND_SHIFT | number << 4 | 8
    }

    /// Puts the object of a reserved handle in.
    pub(crate) fn insert(&self, handle: Handle, object: Arc<T>) {
        self.write().insert(handle, object);
        checks::born(handle, self.kind);
    }

    /// A handle for an object.
    pub(crate) fn open(&self, object: T) -> Handle {
        let handle = self.reserve();
        self.insert(handle, Arc::new(object));
        handle
    }

    /// The object of a handle.
    pub(crate) fn get(&self, handle: Handle) -> Answer<Arc<T>> {
        self.find(handle).ok_or_else(|| self.refuse(handle))
    }

    /// The object of a handle, where there is one.
    pub(crate) fn find(&self, handle: Handle) -> Option<Arc<T>> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner).get(&handle).cloned()
    }

    /// Takes an object out.
    pub(crate) fn take(&self, handle: Handle) -> Answer<Arc<T>> {
        let taken = self.write().remove(&handle);
        if taken.is_some() {
            checks::died(handle);
        }
        taken.ok_or_else(|| self.refuse(handle))
    }

    /// Takes an object out, where somebody else has not done so at the same moment.
    pub(crate) fn forget(&self, handle: Handle) {
        drop(self.write().remove(&handle));
        checks::died(handle);
    }

    /// All objects, in the order in which they were made.
    pub(crate) fn all(&self) -> Vec<(Handle, Arc<T>)> {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        objects.iter().map(|(handle, object)| (*handle, Arc::clone(object))).collect()
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, BTreeMap<Handle, Arc<T>>> {
        self.objects.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn refuse(&self, handle: Handle) -> Refusal {
        let wanted = self.kind;
        let text = match Kind::of(handle) {
            Some(kind) if kind == wanted => format!("{handle:#x} is {wanted} that was destroyed"),
            Some(kind) => format!("{handle:#x} is {kind}; pass {wanted}"),
            None => format!("{handle:#x} is no handle of this library; pass {wanted}"),
        };
        let is_dead = Kind::of(handle) == Some(wanted);
        checks::misused(
            if is_dead { checks::DEAD_HANDLE } else { checks::NO_HANDLE },
            handle,
            &text,
        );
        Refusal::new(codes::BAD_HANDLE, text)
    }
}
