//! The state that the library keeps for a thread. A key of the operating system finds it, because a library that is loaded late gets no
//! more room for thread-local variables on some systems.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::{CString, c_void};
use std::ops::Range;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use super::refusal::Refusal;

/// Messages that a thread keeps.
const KEPT_MESSAGES: usize = 32;

/// Memory that a thread has looked up, and how often the table had been changed then.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recent {
    pub(crate) generation: u64,
    pub(crate) range: Range<usize>,
    /// `None`: pinned memory of the host.
    pub(crate) device: Option<i32>,
}

/// The state of one thread.
#[derive(Debug, Default)]
pub(crate) struct Thread {
    /// The handle of the current context.
    pub(crate) context: Option<usize>,
    /// The last error that counts.
    pub(crate) last_error: i32,
    messages: VecDeque<String>,
    /// What `aclGetRecentErrMsg` returned last; it stays valid until the next call.
    spoken: CString,
    /// The mode that calls of this thread take captures in.
    pub(crate) capture_mode: u32,
    /// The stream whose core limits hold for this thread.
    pub(crate) limits_of: Option<usize>,
    /// The call that the thread is in; empty unless the validation layer is on.
    pub(crate) call: &'static str,
    /// Where the two sides of its last copy were: those of the next one are often there as well.
    pub(crate) recent: [Recent; 2],
    /// What it copied last from a device at once: where, and how many bytes.
    pub(crate) last_read: (usize, usize),
    /// The number of the last task that this thread submitted.
    pub(crate) last_task: u32,
    /// The thread's number in timelines; 0 before it has one.
    pub(crate) number: u32,
    /// The command that it submits just now, in the record of a timeline.
    pub(crate) command: Option<u32>,
    /// Goes when the thread ends.
    life: Arc<()>,
}

impl Thread {
    /// Keeps the message of a call that failed.
    pub(crate) fn keep(&mut self, call: &str, refusal: &Refusal) {
        if refusal.is_kept() {
            self.last_error = refusal.code;
        }
        let message = format!("[{}] {call}: {}", refusal.code, refusal.text);
        if let Some(shared) = &mut *shared_messages() {
            push(shared, message);
        } else {
            push(&mut self.messages, message);
        }
    }

    /// Takes the messages, the newest first.
    pub(crate) fn speak(&mut self) -> Option<*const std::ffi::c_char> {
        let shared = shared_messages().as_mut().map(std::mem::take).unwrap_or_default();
        let text: Vec<String> = shared.into_iter().chain(self.messages.drain(..)).collect();
        if text.is_empty() {
            return None;
        }
        self.spoken = CString::new(text.join("\n").replace('\0', " ")).unwrap_or_default();
        Some(self.spoken.as_ptr())
    }
}

/// The messages of all threads, for the setting in which each thread sees all of them.
static SHARED: Mutex<Option<VecDeque<String>>> = Mutex::new(None);

fn shared_messages() -> MutexGuard<'static, Option<VecDeque<String>>> {
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn push(messages: &mut VecDeque<String>, message: String) {
    messages.truncate(KEPT_MESSAGES - 1);
    messages.push_front(message);
}

/// From now on messages are those of all threads, or those of each thread.
pub(crate) fn share_messages(is_shared: bool) {
    *shared_messages() = is_shared.then(VecDeque::new);
}

/// The state of the calling thread, for a call that looks at it more than once. It stays in its thread.
pub(crate) struct ThreadRef(*const RefCell<Thread>);

/// Finds the state of the calling thread.
#[inline]
pub(crate) fn own() -> ThreadRef {
    let Some(key) = *KEY.get_or_init(make_key) else {
        return ThreadRef(ptr::null());
    };
    // SAFETY: the key was made by `make_key` and is never deleted.
    let state = unsafe { libc::pthread_getspecific(key) }.cast::<RefCell<Thread>>();
    ThreadRef(if state.is_null() { make_state(key) } else { state })
}

impl ThreadRef {
    /// Calls `look` with it.
    #[inline]
    pub(crate) fn with<R>(&self, look: impl FnOnce(&mut Thread) -> R) -> R {
        // SAFETY: null where there is no key; or the value belongs to this thread, which a pointer does not leave, and lives until the
        // thread ends.
        let cell = unsafe { self.0.as_ref() };
        match cell.map(RefCell::try_borrow_mut) {
            Some(Ok(mut thread)) => look(&mut thread),
            // No key, or a callback within a look, which there is none of today.
            None | Some(Err(_)) => look(&mut Thread::default()),
        }
    }
}

/// Calls `look` with the state of the calling thread.
#[inline]
pub(crate) fn with<R>(look: impl FnOnce(&mut Thread) -> R) -> R {
    own().with(look)
}

/// The state of a thread that has none.
#[cold]
fn make_state(key: libc::pthread_key_t) -> *mut RefCell<Thread> {
    let state = Box::into_raw(Box::<RefCell<Thread>>::default());
    // SAFETY: the key was made by `make_key`; the value is freed by `forget`.
    unsafe { libc::pthread_setspecific(key, state.cast_const().cast()) };
    state
}

static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();

fn make_key() -> Option<libc::pthread_key_t> {
    let mut key = 0;
    // SAFETY: `key` is writable, and `forget` frees what `with` stores.
    let made = unsafe { libc::pthread_key_create(&raw mut key, Some(forget)) };
    (made == 0).then_some(key)
}

extern "C" fn forget(state: *mut c_void) {
    // SAFETY: `with` made it from a box, and the thread that it belongs to ends.
    drop(unsafe { Box::from_raw(state.cast::<RefCell<Thread>>()) });
}

/// What lives as long as the calling thread.
pub(crate) fn life() -> Weak<()> {
    with(|thread| Arc::downgrade(&thread.life))
}

/// Whether this is the life of the calling thread.
pub(crate) fn is_own(life: &Weak<()>) -> bool {
    with(|thread| std::ptr::eq(life.as_ptr(), Arc::as_ptr(&thread.life)))
}

/// A number for the calling thread, as callbacks name it.
pub(crate) fn number() -> u64 {
    // SAFETY: the call has no preconditions.
    unsafe { libc::pthread_self() }
}
