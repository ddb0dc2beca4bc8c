//! The registry of handles. A handle is a number that was never given out before, dressed as a pointer: what was
//! closed, was never opened, or is of another kind is recognised, and is never followed.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use pto_host::stitch::LoadedProgram;
use pto_host::workloads::program::Program;
use pto_host::{Device, OfProcess, RunControl};
use pto_native::stitch::{
    SharedEvent, SharedKernelStream, SharedNotify, SharedRecording, SharedSession, SharedStream,
    SharedTensor,
};
use pto_native::{Failure, FailureKind, GraphDraft, SharedDevice};

/// What a handle stands for.
pub(crate) enum Object {
    Device(Arc<SharedDevice>),
    Graph(Arc<Mutex<GraphDraft>>),
    Control(RunControl),
    Session(Arc<SharedSession>),
    Stream(Arc<SharedStream>),
    KernelStream(Arc<SharedKernelStream>),
    Event(Arc<SharedEvent>),
    Notify(Arc<SharedNotify>),
    Recording(Arc<SharedRecording>),
    Program(Arc<Mutex<Program>>),
    Loaded(LoadedProgram),
    Tensor(Arc<SharedTensor>),
}

impl Object {
    fn kind(&self) -> &'static str {
        match self {
            Self::Device(_) => "device",
            Self::Graph(_) => "graph",
            Self::Control(_) => "run control",
            Self::Session(_) => "session",
            Self::Stream(_) => "program stream",
            Self::KernelStream(_) => "kernel stream",
            Self::Event(_) => "event",
            Self::Notify(_) => "notify",
            Self::Recording(_) => "recording",
            Self::Program(_) => "program",
            Self::Loaded(_) => "loaded program",
            Self::Tensor(_) => "tensor",
        }
    }
}

/// What a live handle has.
enum Held {
    /// Memory alone, which a child of `fork` has as well.
    Data(Object),
    /// Threads stand behind it, or memory of a device.
    Live(OfProcess<Object>),
}

impl Held {
    fn of(object: Object) -> Self {
        match object {
            Object::Graph(_) | Object::Control(_) | Object::Program(_) => Self::Data(object),
            _ => Self::Live(OfProcess::new(object)),
        }
    }

    fn get(&self) -> Result<&Object, Failure> {
        match self {
            Self::Data(object) => Ok(object),
            Self::Live(object) => Ok(object.get()?),
        }
    }

    fn into_object(self) -> Result<Object, Failure> {
        match self {
            Self::Data(object) => Ok(object),
            Self::Live(object) => Ok(object.into_inner()?),
        }
    }
}

struct Table {
    next: u64,
    live: BTreeMap<u64, Held>,
}

impl Table {
    /// The object of a handle, if it is of this kind.
    fn get(&self, number: u64, kind: &str) -> Result<&Object, Failure> {
        let held = self.live.get(&number).map(Held::get).transpose()?;
        held.filter(|object| object.kind() == kind)
            .ok_or_else(|| wrong(number, kind, held, self.next))
    }

    /// Takes the object of a handle away, if it is of this kind.
    fn take(&mut self, number: u64, kind: &str) -> Result<Object, Failure> {
        self.get(number, kind)?;
        let gone = || Failure::new(FailureKind::INVALID_HANDLE, "the handle is gone");
        self.live.remove(&number).ok_or_else(gone)?.into_object()
    }
}

/// Handles are far above any address of a process, so that following one stops at once.
const FIRST: u64 = 0x7070_0000_0000_0000;

static TABLE: Mutex<Table> = Mutex::new(Table { next: FIRST, live: BTreeMap::new() });

fn table() -> MutexGuard<'static, Table> {
    // Nothing panics while it is held; if it did, the map would still be one.
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// The table while this thread forks.
    static FORKING: Cell<Option<MutexGuard<'static, Table>>> = const { Cell::new(None) };
}

/// Has each fork wait until nobody holds the table: a child has none of the threads that could let it go.
fn hold_over_forks() {
    static HELD: Once = Once::new();
    extern "C" fn before() {
        // At the end of a thread there is no place for it: such a fork does not wait.
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
pub(crate) fn open<H>(object: Object) -> *mut H {
    hold_over_forks();
    let mut table = table();
    let number = table.next;
    table.next += 16;
    table.live.insert(number, Held::of(object));
    std::ptr::without_provenance_mut(usize::try_from(number).unwrap_or(0))
}

/// Closes a handle; what it stands for goes when the last call that uses it has returned.
pub(crate) fn close<H>(handle: *mut H, kind: &str) -> Result<Object, Failure> {
    table().take(handle.addr() as u64, kind)
}

fn wrong(number: u64, kind: &str, held: Option<&Object>, next: u64) -> Failure {
    let what = match held {
        Some(object) => format!("is that of a {}", object.kind()),
        None if number == 0 => "is null".to_owned(),
        None if (FIRST..next).contains(&number) && number.is_multiple_of(16) => {
            "was closed".to_owned()
        }
        None => "was never opened".to_owned(),
    };
    let message = format!("a {kind} is needed, and the handle {number:#x} {what}");
    Failure::new(FailureKind::INVALID_HANDLE, message)
}

fn find<H, T>(
    handle: *const H,
    kind: &str,
    pick: impl FnOnce(&Object) -> Option<T>,
) -> Result<T, Failure> {
    let table = table();
    let number = handle.addr() as u64;
    let object = table.get(number, kind)?;
    pick(object).ok_or_else(|| wrong(number, kind, Some(object), table.next))
}

/// The device of a handle.
pub(crate) fn device<H>(handle: *const H) -> Result<Arc<SharedDevice>, Failure> {
    find(handle, "device", |object| match object {
        Object::Device(device) => Some(Arc::clone(device)),
        _ => None,
    })
}

/// The graph of a handle.
pub(crate) fn graph<H>(handle: *const H) -> Result<Arc<Mutex<GraphDraft>>, Failure> {
    find(handle, "graph", |object| match object {
        Object::Graph(graph) => Some(Arc::clone(graph)),
        _ => None,
    })
}

/// The run control of a handle.
pub(crate) fn control<H>(handle: *const H) -> Result<RunControl, Failure> {
    find(handle, "run control", |object| match object {
        Object::Control(control) => Some(control.clone()),
        _ => None,
    })
}

/// The session of a handle.
pub(crate) fn session<H>(handle: *const H) -> Result<Arc<SharedSession>, Failure> {
    find(handle, "session", |object| match object {
        Object::Session(session) => Some(Arc::clone(session)),
        _ => None,
    })
}

/// The program stream of a handle.
pub(crate) fn stream<H>(handle: *const H) -> Result<Arc<SharedStream>, Failure> {
    find(handle, "program stream", |object| match object {
        Object::Stream(stream) => Some(Arc::clone(stream)),
        _ => None,
    })
}

/// The kernel stream of a handle.
pub(crate) fn kernel_stream<H>(handle: *const H) -> Result<Arc<SharedKernelStream>, Failure> {
    find(handle, "kernel stream", |object| match object {
        Object::KernelStream(stream) => Some(Arc::clone(stream)),
        _ => None,
    })
}

/// The event of a handle.
pub(crate) fn event<H>(handle: *const H) -> Result<Arc<SharedEvent>, Failure> {
    find(handle, "event", |object| match object {
        Object::Event(event) => Some(Arc::clone(event)),
        _ => None,
    })
}

/// The flag of a handle.
pub(crate) fn notify<H>(handle: *const H) -> Result<Arc<SharedNotify>, Failure> {
    find(handle, "notify", |object| match object {
        Object::Notify(notify) => Some(Arc::clone(notify)),
        _ => None,
    })
}

/// The recording of a handle.
pub(crate) fn recording<H>(handle: *const H) -> Result<Arc<SharedRecording>, Failure> {
    find(handle, "recording", |object| match object {
        Object::Recording(recording) => Some(Arc::clone(recording)),
        _ => None,
    })
}

/// The program of a handle.
pub(crate) fn program<H>(handle: *const H) -> Result<Arc<Mutex<Program>>, Failure> {
    find(handle, "program", |object| match object {
        Object::Program(program) => Some(Arc::clone(program)),
        _ => None,
    })
}

/// The loaded program of a handle.
pub(crate) fn loaded<H>(handle: *const H) -> Result<LoadedProgram, Failure> {
    find(handle, "loaded program", |object| match object {
        Object::Loaded(program) => Some(program.clone()),
        _ => None,
    })
}

/// The tensor of a handle.
pub(crate) fn tensor<H>(handle: *const H) -> Result<Arc<SharedTensor>, Failure> {
    find(handle, "tensor", |object| match object {
        Object::Tensor(tensor) => Some(Arc::clone(tensor)),
        _ => None,
    })
}

/// Takes the device of a handle away from everybody, and closes the handle.
///
/// # Errors
/// `BUSY`: another call uses the device; the handle stays open then.
pub(crate) fn take_device<H>(handle: *mut H) -> Result<Device, Failure> {
    let number = handle.addr() as u64;
    // Held to the end: no call finds the handle closed while it is only tried.
    let mut table = table();
    match table.take(number, "device")? {
        Object::Device(owner) => owner.into_device().map_err(|owner| {
            let failure = owner.in_use();
            table.live.insert(number, Held::of(Object::Device(owner)));
            failure
        }),
        other => Err(wrong(number, "device", Some(&other), table.next)),
    }
}
