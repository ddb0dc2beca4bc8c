//! A function on a stack of its own: it gives its thread back in the middle, and goes on later, where it was.
//!
//! ```text
//! Coroutine::new --resume--> the body runs --suspend--> it waits --resume--> .. --the body returns--> it is over
//! ```
//! Invariants:
//! - `own` is where the body goes on, and `back` where the call of `resume` does: the switch that leaves a context writes it.
//! - What a body holds lives on its stack. So the stack of a body that is not over is never given back.
//!
//! A body may go on on another thread than before. The functions that reach thread-local state between two switches are not inlined, so
//! that no code uses the address that it had on the previous thread.

use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::ptr::{NonNull, null_mut};

use libc::ucontext_t;

/// As much as a thread of Rust's has.
const STACK_BYTES: usize = 2 << 20;
/// Below the stack: a write there is a stack overflow.
const GUARD_BYTES: usize = 64 << 10;

/// The memory of a stack.
pub(in crate::virtual_time) struct Stack {
    lowest: NonNull<libc::c_void>,
}

// SAFETY: the mapping belongs to the owner of the value, on any thread.
unsafe impl Send for Stack {}

impl Stack {
    /// Maps one.
    ///
    /// # Errors
    /// The process gets no memory.
    pub(in crate::virtual_time) fn new() -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
        // SAFETY: a new mapping, at an address that the system chooses.
        let mapped =
            unsafe { libc::mmap(null_mut(), GUARD_BYTES + STACK_BYTES, access, kind, -1, 0) };
        let lowest = NonNull::new(mapped).filter(|_| mapped != libc::MAP_FAILED);
        let stack = Self { lowest: lowest.ok_or_else(io::Error::last_os_error)? };
        // SAFETY: the pages are the lowest ones of the mapping, which are not used yet.
        let failed = unsafe { libc::mprotect(mapped, GUARD_BYTES, libc::PROT_NONE) };
        if failed == 0 { Ok(stack) } else { Err(io::Error::last_os_error()) }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's, and nothing that lives is on it.
        unsafe { libc::munmap(self.lowest.as_ptr(), GUARD_BYTES + STACK_BYTES) };
    }
}

/// What a coroutine runs. It does not unwind.
pub(super) type Body = Box<dyn FnOnce() + Send>;

struct CoroutineState {
    own: MaybeUninit<ucontext_t>,
    back: MaybeUninit<ucontext_t>,
    body: Option<Body>,
    is_over: bool,
    stack: Option<Stack>,
}

/// See the file.
pub(super) struct Coroutine {
    /// Made by a box: while the body runs, both it and the call of `resume` reach it.
    inner: *mut CoroutineState,
}

// SAFETY: the body may be sent, and what is on its stack moves along with it as a whole: one thread at a time runs it.
unsafe impl Send for Coroutine {}

thread_local! {
    /// The coroutine that this thread runs.
    static CURRENT: Cell<*mut CoroutineState> = const { Cell::new(null_mut()) };
}

#[inline(never)]
fn current() -> *mut CoroutineState {
    CURRENT.get()
}

/// Whether a coroutine is on this thread.
pub(super) fn is_inside() -> bool {
    !current().is_null()
}

/// Gives the thread back to the call of `resume`; returns when the coroutine is resumed. Outside of a coroutine other threads get a chance.
#[inline(never)]
pub(super) fn suspend() {
    let inner = current();
    if inner.is_null() {
        return std::thread::yield_now();
    }
    switch_back(inner);
}

extern "C" fn enter() {
    let inner = current();
    // SAFETY: `resume` has set it to the coroutine whose stack this is.
    let body = unsafe { (*inner).body.take() };
    if let Some(body) = body {
        body();
    }
    // SAFETY: the coroutine lives as long as it is not over.
    unsafe { (*inner).is_over = true };
    // It is not resumed again.
    switch_back(inner);
}

/// Goes on after the call of `resume`, from the coroutine that runs here.
#[inline(never)]
fn switch_back(inner: *mut CoroutineState) {
    // SAFETY: the coroutine lives until `resume` has returned, and longer if it is not over.
    let own = unsafe { (*inner).own.as_mut_ptr() };
    // SAFETY: the coroutine lives until `resume` has returned, and `resume` has written the context before.
    let back = unsafe { (*inner).back.as_ptr() };
    // SAFETY: both contexts are valid, and `back` is resumed once.
    unsafe { libc::swapcontext(own, back) };
}

impl Coroutine {
    /// One that has not begun.
    pub(super) fn new(stack: Stack, body: Body) -> Self {
        let (own, back) = (MaybeUninit::zeroed(), MaybeUninit::zeroed());
        let base = stack.lowest.as_ptr().cast::<u8>().wrapping_add(GUARD_BYTES);
        let body = Some(body);
        let inner = Box::into_raw(Box::new(CoroutineState {
            own,
            back,
            body,
            is_over: false,
            stack: Some(stack),
        }));
        // SAFETY: the box is this value's alone.
        let own = unsafe { (*inner).own.as_mut_ptr() };
        // SAFETY: the context is valid, and has zeros.
        unsafe { libc::getcontext(own) };
        // SAFETY: it was written just now.
        let context = unsafe { &mut *own };
        context.uc_stack.ss_sp = base.cast();
        context.uc_stack.ss_size = STACK_BYTES;
        context.uc_link = null_mut();
        // SAFETY: the context is complete, and its stack lives as long as it.
        unsafe { libc::makecontext(own, enter, 0) };
        Self { inner }
    }

    /// Lets the body go on until it suspends itself or returns. Its stack, if it has returned: it is not to be resumed again.
    pub(super) fn resume(&mut self) -> Option<Stack> {
        let inner = self.inner;
        CURRENT.set(inner);
        // SAFETY: the box lives as long as this value.
        let back = unsafe { (*inner).back.as_mut_ptr() };
        // SAFETY: the box lives as long as this value, and `new` or the last `suspend` has written the context.
        let own = unsafe { (*inner).own.as_ptr() };
        // SAFETY: both contexts are valid, and `own` is resumed once, because it is not over.
        unsafe { libc::swapcontext(back, own) };
        CURRENT.set(null_mut());
        // SAFETY: the box lives as long as this value, and the body does not run.
        let inner = unsafe { &mut *inner };
        if inner.is_over { inner.stack.take() } else { None }
    }
}

impl Drop for Coroutine {
    /// What a body that is not over holds stays where it is.
    fn drop(&mut self) {
        // SAFETY: the body does not run, because the caller owns the value.
        if unsafe { (*self.inner).is_over } {
            // SAFETY: the box was this value's alone.
            drop(unsafe { Box::from_raw(self.inner) });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::{Coroutine, Stack, is_inside, suspend};

    #[test]
    fn a_body_goes_on_where_it_was_and_on_any_thread() {
        let (sender, heard) = channel();
        let body = Box::new(move || {
            let mut sum = 0;
            for step in 1..=3 {
                sum += step;
                sender.send((sum, is_inside(), std::thread::current().id())).unwrap();
                suspend();
            }
        });
        let mut coroutine = Coroutine::new(Stack::new().unwrap(), body);
        assert!(coroutine.resume().is_none());
        assert!(!is_inside());
        let mut coroutine = std::thread::spawn(move || {
            assert!(coroutine.resume().is_none());
            coroutine
        })
        .join()
        .unwrap();
        assert!(coroutine.resume().is_none());
        let stack = coroutine.resume();
        assert!(stack.is_some(), "it has returned");
        drop(coroutine);
        let sender: Vec<_> = heard.iter().collect();
        assert_eq!(sender.iter().map(|sender| sender.0).collect::<Vec<_>>(), [1, 3, 6]);
        assert!(sender.iter().all(|sender| sender.1));
        assert_eq!(sender[0].2, sender[2].2);
        // The stack is of use again.
        let mut again = Coroutine::new(stack.unwrap(), Box::new(suspend));
        assert!(again.resume().is_none());
        assert!(again.resume().is_some());
    }

    #[test]
    fn a_panic_is_caught_on_its_stack() {
        let body = || {
            let caught = std::panic::catch_unwind(|| {
                suspend();
                std::panic::resume_unwind(Box::new(1));
            });
            assert!(caught.is_err());
        };
        let mut coroutine = Coroutine::new(Stack::new().unwrap(), Box::new(body));
        assert!(coroutine.resume().is_none());
        assert!(coroutine.resume().is_some());
    }
}
