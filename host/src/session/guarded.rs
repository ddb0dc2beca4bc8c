//! Code and values of the user that threads of a session call and drop: a panic in them is reported, and the thread goes on.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

/// Calls `what`.
///
/// # Errors
/// It panicked: its message.
pub(super) fn guarded<R>(what: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(what)).map_err(message)
}

/// The message of a panic. What the panic carries is dropped, which may panic as well.
fn message(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        // Dropping this one may go on so for ever.
        std::mem::forget(again);
    }
    text.unwrap_or_else(|| "without a message".to_owned())
}

/// Wakes a task of an executor, which is code of the user.
pub(super) fn wake(waker: Waker) {
    log_panic("the waker of a task", guarded(|| waker.wake()));
}

/// Logs a panic, because no caller waits for the result.
fn log_panic(what: &str, result: Result<(), String>) {
    if let Err(message) = result {
        log::error!("{what} panicked: {message}");
    }
}

/// A function of the host. What it has captured may be dropped on any thread.
pub(super) struct HostFunction(Option<Box<dyn FnOnce() + Send>>);

impl HostFunction {
    pub(super) fn new(function: impl FnOnce() + Send + 'static) -> Self {
        Self(Some(Box::new(function)))
    }

    /// Calls it.
    ///
    /// # Errors
    /// It panicked, or dropping what it has captured did: the message.
    pub(super) fn call(mut self) -> Result<(), String> {
        self.0.take().map_or(Ok(()), guarded)
    }
}

impl Drop for HostFunction {
    fn drop(&mut self) {
        let function = self.0.take();
        log_panic("dropping a function that was not called", guarded(|| drop(function)));
    }
}

#[cfg(test)]
mod tests {
    use super::{HostFunction, guarded};

    /// Panics whenever it is dropped, and so does what that panic carries.
    struct Bomb(u32);

    impl Drop for Bomb {
        fn drop(&mut self) {
            if self.0 > 0 {
                std::panic::panic_any(Self(self.0 - 1));
            }
        }
    }

    #[test]
    fn a_panic_is_reported_and_goes_no_further() {
        assert_eq!(guarded(|| 7), Ok(7));
        let message = |what: fn()| guarded(what).unwrap_err();
        assert_eq!(message(|| panic!("a text")), "a text");
        assert_eq!(message(|| panic!("a number: {}", 7)), "a number: 7");
        assert_eq!(message(|| std::panic::panic_any(Bomb(2))), "without a message");
        let bomb = Bomb(1);
        let called = HostFunction::new(move || drop(bomb));
        assert_eq!(called.call(), Err("without a message".to_owned()));
        let bomb = Bomb(1);
        drop(HostFunction::new(move || drop(bomb)));
    }
}
