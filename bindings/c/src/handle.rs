//! The registry of handles. A handle is a number that was never given out before, dressed as a pointer: what was
//! closed, was never opened, or is of another kind is recognised, and is never followed.
//!
//! Why it is so: `docs/decisions/c-interface.md`.

use std::any::Any;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use pto_host::OfProcess;
use pto_native::{Failure, FailureKind};

/// The objects that handles of a type in C name.
pub(crate) trait Opaque {
    /// The object. A clone is another owner of the same one.
    type Object: Clone + Send + 'static;
    /// Its name in errors.
    const KIND: &'static str;
    /// Whether it is memory alone, which a child of `fork` has as well. Others have threads, or memory of a device.
    const IS_DATA: bool;
}

/// The object of a live handle.
enum HandleEntry {
    Data(&'static str, Box<dyn Any + Send>),
    Live(&'static str, OfProcess<Box<dyn Any + Send>>),
}

impl HandleEntry {
    fn of<H: Opaque>(object: H::Object) -> Self {
        match H::IS_DATA {
            true => Self::Data(H::KIND, Box::new(object)),
            false => Self::Live(H::KIND, OfProcess::new(Box::new(object))),
        }
    }

    const fn kind(&self) -> &'static str {
        match self {
            Self::Data(kind, _) | Self::Live(kind, _) => kind,
        }
    }

    fn get(&self) -> Result<&(dyn Any + Send), Failure> {
        match self {
            Self::Data(_, object) => Ok(&**object),
            Self::Live(_, object) => Ok(&**object.get()?),
        }
    }

    fn into_object(self) -> Result<Box<dyn Any + Send>, Failure> {
        match self {
            Self::Data(_, object) => Ok(object),
            Self::Live(_, object) => Ok(object.into_inner()?),
        }
    }
}

struct HandleTable {
    next: u64,
    live: BTreeMap<u64, HandleEntry>,
}

impl HandleTable {
    /// The object of a handle, if it is of this type.
    fn get<H: Opaque>(&self, number: u64) -> Result<&H::Object, Failure> {
        let entry = self.live.get(&number);
        let object =
            entry.map(HandleEntry::get).transpose()?.and_then(<dyn Any + Send>::downcast_ref);
        object.ok_or_else(|| self.wrong::<H>(number))
    }

    /// Takes the object of a handle away, if it is of this type.
    fn take<H: Opaque>(&mut self, number: u64) -> Result<H::Object, Failure> {
        self.get::<H>(number)?;
        let object = self.live.remove(&number).map(HandleEntry::into_object).transpose()?;
        let object = object.and_then(|object| object.downcast().ok());
        object.map(|object| *object).ok_or_else(|| self.wrong::<H>(number))
    }

    fn wrong<H: Opaque>(&self, number: u64) -> Failure {
        let what = match self.live.get(&number) {
            Some(entry) => format!("is that of a {}", entry.kind()),
            None if number == 0 => "is null".to_owned(),
            None if (FIRST..self.next).contains(&number) && number.is_multiple_of(16) => {
                "was closed".to_owned()
            }
            None => "was never opened".to_owned(),
        };
        let message = format!("a {} is needed, and the handle {number:#x} {what}", H::KIND);
        Failure::new(FailureKind::INVALID_HANDLE, message)
    }
}

/// Handles are far above any address of a process, so that following one stops at once.
const FIRST: u64 = 0x7070_0000_0000_0000;

static TABLE: Mutex<HandleTable> = Mutex::new(HandleTable { next: FIRST, live: BTreeMap::new() });

fn table() -> MutexGuard<'static, HandleTable> {
    // Nothing panics while it is held; if it did, the map would still be one.
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// The table while this thread forks.
    static FORKING: Cell<Option<MutexGuard<'static, HandleTable>>> = const { Cell::new(None) };
}

/// Makes each fork wait until no other thread holds the table: a child has none of the threads that could release it.
fn hold_over_forks() {
    static HELD: Once = Once::new();
    extern "C" fn before() {
        // At the end of a thread its thread-local value is gone: such a fork does not wait.
        FORKING.try_with(|forking| forking.set(Some(table()))).unwrap_or_default();
    }
    extern "C" fn after() {
        FORKING.try_with(|forking| drop(forking.take())).unwrap_or_default();
    }
    HELD.call_once(|| {
        // SAFETY: the functions take the lock and give it back, on the thread that forks and in the child on the same one.
        unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after)) };
    });
}

/// Opens a handle.
pub(crate) fn open<H: Opaque>(object: H::Object) -> *mut H {
    hold_over_forks();
    let mut table = table();
    let number = table.next;
    table.next += 16;
    table.live.insert(number, HandleEntry::of::<H>(object));
    std::ptr::without_provenance_mut(usize::try_from(number).unwrap_or(0))
}

/// Closes a handle; its object is dropped when the last call that uses it has returned.
pub(crate) fn close<H: Opaque>(handle: *mut H) -> Result<H::Object, Failure> {
    table().take::<H>(handle.addr() as u64)
}

/// The object of a handle, for a call.
pub(crate) fn get<H: Opaque>(handle: *const H) -> Result<H::Object, Failure> {
    table().get::<H>(handle.addr() as u64).cloned()
}

/// Takes the object of a handle away from everybody by `take`, and closes the handle.
///
/// # Errors
/// What `take` says of an object that others use, which it gives back; the handle stays open then.
pub(crate) fn take<H: Opaque, R>(
    handle: *mut H,
    take: impl FnOnce(H::Object) -> Result<R, (H::Object, Failure)>,
) -> Result<R, Failure> {
    let number = handle.addr() as u64;
    // Held to the end: no call finds the handle closed while it is only tried.
    let mut table = table();
    take(table.take::<H>(number)?).map_err(|(object, failure)| {
        table.live.insert(number, HandleEntry::of::<H>(object));
        failure
    })
}
