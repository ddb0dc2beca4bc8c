//! Threads that cannot be had: the next ones that this process starts fail, as they do at the limit of a container.

use std::sync::atomic::{AtomicU32, Ordering};

static REFUSED: AtomicU32 = AtomicU32::new(0);

/// The next `count` threads fail.
pub(super) fn begin(count: u32) {
    REFUSED.store(count, Ordering::Relaxed);
}

/// There are threads again.
pub(super) fn end() {
    begin(0);
}

#[cfg(not(feature = "libfuzzer"))]
mod replaced {
    use std::ffi::{c_int, c_void};
    use std::sync::OnceLock;
    use std::sync::atomic::Ordering;

    type Create = unsafe extern "C" fn(
        *mut libc::pthread_t,
        *const libc::pthread_attr_t,
        extern "C" fn(*mut c_void) -> *mut c_void,
        *mut c_void,
    ) -> c_int;

    fn real() -> Create {
        static REAL: OnceLock<Create> = OnceLock::new();
        *REAL.get_or_init(|| {
            // SAFETY: the name is a text.
            let found = unsafe { libc::dlsym(libc::RTLD_NEXT, c"pthread_create".as_ptr()) };
            assert!(!found.is_null(), "the C library starts threads");
            // SAFETY: the C library's function of this name has this type.
            unsafe { std::mem::transmute::<*mut c_void, Create>(found) }
        })
    }

    /// Replaces the C library's function in this whole program.
    ///
    /// # Safety
    /// As the C library's.
    // SAFETY: the name is that of the function that this one replaces, with the same type.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn pthread_create(
        thread: *mut libc::pthread_t,
        attributes: *const libc::pthread_attr_t,
        start: extern "C" fn(*mut c_void) -> *mut c_void,
        argument: *mut c_void,
    ) -> c_int {
        let one_fewer = |left: u32| left.checked_sub(1);
        if super::REFUSED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_fewer).is_ok() {
            return libc::EAGAIN;
        }
        // SAFETY: the caller vouches for the arguments.
        unsafe { real()(thread, attributes, start, argument) }
    }
}
