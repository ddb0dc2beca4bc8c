//! Handles: numbers that were never used before. The low bits are not zero in a way that a pointer's are, the high ones say what it is.
//!
//! A handle that is not in the table was destroyed, or is none: it is never followed. Looking one up takes no lock (`pto_acl_interface::handles`).

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pto_acl_interface::handles::{Key, PinnedObject, Slots};

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
    TensorDesc = 24,
    OperatorAttributes = 25,
    ModelGraph = 26,
}

const KIND_SHIFT: u32 = 40;
const MARK: usize = 0x5A << 48;

impl Kind {
    const ALL: [Self; 19] = [
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
        Self::TensorDesc,
        Self::OperatorAttributes,
        Self::ModelGraph,
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
            Self::TensorDesc => "a description of a tensor",
            Self::OperatorAttributes => "attributes of an operator",
            Self::ModelGraph => "a graph of the graph compiler",
        })
    }
}

/// The objects of one kind.
pub(crate) struct HandleTable<T> {
    kind: Kind,
    made: AtomicU64,
    slots: Slots<OrderedObject<T>>,
}

/// An object, and how many were made before it.
struct OrderedObject<T> {
    order: u64,
    object: Arc<T>,
}

/// An object that a call looks at; it lives until the look ends.
pub(crate) struct Found<'a, T>(PinnedObject<'a, OrderedObject<T>>);

impl<T> Deref for Found<'_, T> {
    type Target = Arc<T>;

    #[inline]
    fn deref(&self) -> &Arc<T> {
        &self.0.object
    }
}

/// Objects of one kind that stay for as long as the process lives. A look takes no pin.
///
/// Invariant: nothing takes an object out of the table.
pub(crate) struct Lasting<T>(HandleTable<T>);

impl<T> Lasting<T> {
    pub(crate) const fn new(kind: Kind) -> Self {
        Self(HandleTable::new(kind))
    }

    /// Puts an object in, which is made with its handle.
    pub(crate) fn open_with(&self, make: impl FnOnce(Handle) -> T) -> Arc<T> {
        self.0.open_with(make)
    }

    /// The object of a handle.
    #[inline]
    pub(crate) fn look(&self, handle: Handle) -> Answer<&Arc<T>> {
        // SAFETY: the table is that of this type, whose methods take nothing out.
        let found = self.0.key(handle).and_then(|key| unsafe { self.0.slots.kept(key) });
        found.map(|entry| &entry.object).ok_or_else(|| self.0.refuse(handle))
    }
}

impl<T> HandleTable<T> {
    pub(crate) const fn new(kind: Kind) -> Self {
        Self { kind, made: AtomicU64::new(0), slots: Slots::new() }
    }

    fn handle(&self, key: Key) -> Handle {
        // A key has 36 bits, and a word 64.
        let number = usize::try_from(key.number()).unwrap_or(usize::MAX);
        self.mark() | number << 4 | 8
    }

    /// What all handles of the table have in common.
    const fn mark(&self) -> usize {
        MARK | (self.kind as usize) << KIND_SHIFT
    }

    #[inline]
    fn key(&self, handle: Handle) -> Option<Key> {
        let number = handle ^ self.mark() ^ 8;
        let is_own = number >> KIND_SHIFT == 0 && number & 15 == 0;
        if is_own { Key::of(u64::try_from(number >> 4).ok()?) } else { None }
    }

    /// Puts an object in, which is made with its handle.
    pub(crate) fn open_with(&self, make: impl FnOnce(Handle) -> T) -> Arc<T> {
        let key = self.slots.reserve();
        let object = Arc::new(make(self.handle(key)));
        self.put(key, Arc::clone(&object));
        object
    }

    /// Puts an object in, and gives its handle.
    pub(crate) fn open(&self, object: T) -> Handle {
        self.share(Arc::new(object))
    }

    /// Puts an object in that others have as well, and gives its handle.
    pub(crate) fn share(&self, object: Arc<T>) -> Handle {
        let key = self.slots.reserve();
        self.put(key, object);
        self.handle(key)
    }

    fn put(&self, key: Key, object: Arc<T>) {
        // Relaxed: the counter only makes numbers differ.
        let order = self.made.fetch_add(1, Ordering::Relaxed);
        self.slots.insert(key, OrderedObject { order, object });
        checks::born(self.handle(key), self.kind);
    }

    /// The object of a handle, to keep.
    pub(crate) fn get(&self, handle: Handle) -> Answer<Arc<T>> {
        self.look(handle).map(|found| Arc::clone(&found))
    }

    /// The object of a handle, for the time of a call.
    #[inline]
    pub(crate) fn look(&self, handle: Handle) -> Answer<Found<'_, T>> {
        self.find(handle).ok_or_else(|| self.refuse(handle))
    }

    /// The object of a handle, where there is one.
    #[inline]
    pub(crate) fn find(&self, handle: Handle) -> Option<Found<'_, T>> {
        self.slots.find(self.key(handle)?).map(Found)
    }

    /// Takes an object out.
    pub(crate) fn take(&self, handle: Handle) -> Answer<Arc<T>> {
        let taken = self.key(handle).and_then(|key| self.slots.take(key));
        let taken = taken.ok_or_else(|| self.refuse(handle))?;
        checks::died(handle);
        Ok(Arc::clone(&taken.object))
    }

    /// Takes an object out, unless another thread has taken it at the same moment.
    pub(crate) fn forget(&self, handle: Handle) {
        drop(self.key(handle).and_then(|key| self.slots.take(key)));
        checks::died(handle);
    }

    /// All objects, in the order in which they were made.
    pub(crate) fn all(&self) -> Vec<(Handle, Arc<T>)> {
        let mut objects: Vec<_> = self.slots.all().collect();
        objects.sort_by_key(|(_, held)| held.order);
        objects.iter().map(|(key, held)| (self.handle(*key), Arc::clone(&held.object))).collect()
    }

    #[cold]
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
