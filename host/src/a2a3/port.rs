//! One opened device: its context on each thread, its memory, its streams.
//!
//! A thread that has not used the device takes its context first (`enter`); every context that was taken is given back when
//! the port is dropped. A reset by force takes all of them away, and starts a new generation.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_void};
use std::path::Path;
use std::ptr;
use std::sync::{Mutex, PoisonError};

use pto_abi::GmAddr;
use pto_abi::sync::{AtomicU32, AtomicU64, Ordering};

use super::calls::{Calls, Handle};
use super::dma::Dma;
use super::error::A2a3Error;

/// The codes that `aclInit` and its neighbours answer when they were called before.
const INITIALISED_BEFORE: i32 = 100_002;
const HOST_TO_DEVICE: i32 = 1;
const DEVICE_TO_HOST: i32 = 2;
/// Huge pages where there are some.
const HUGE_FIRST: i32 = 0;

/// Ports that are open in this process: the last one finalises the interface.
static OPEN: Mutex<u32> = Mutex::new(0);
/// Numbers the generations of all ports.
static GENERATIONS: AtomicU64 = AtomicU64::new(1);

thread_local! {
    /// The generation whose context this thread has.
    static CURRENT: Cell<u64> = const { Cell::new(0) };
}

/// An opened device.
pub(crate) struct Port {
    pub(crate) calls: Calls,
    device: u32,
    generation: AtomicU64,
    contexts: AtomicU32,
    /// 1: a reset by force was not confirmed, and nothing is called any more.
    lost: AtomicU32,
    /// GM, to be freed at the end; zero: none.
    gm: AtomicU64,
}

impl Port {
    /// Loads the libraries and takes the device.
    pub(crate) fn open(home: Option<&Path>, device: u32) -> Result<Self, A2a3Error> {
        let calls = Calls::load(home)?;
        let port = Self {
            calls,
            device,
            generation: AtomicU64::new(GENERATIONS.fetch_add(1, Ordering::Relaxed)),
            contexts: AtomicU32::new(0),
            lost: AtomicU32::new(0),
            gm: AtomicU64::new(0),
        };
        *OPEN.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        port.initialise()?;
        Ok(port)
    }

    fn initialise(&self) -> Result<(), A2a3Error> {
        // SAFETY: no configuration.
        let code = unsafe { (self.calls.init)(ptr::null()) };
        if code != INITIALISED_BEFORE {
            self.check("initialising CANN", "aclInit", code)?;
        }
        let mut count = 0;
        // SAFETY: a place for a number.
        let code = unsafe { (self.calls.device_count)(&raw mut count) };
        self.check("counting the devices", "aclrtGetDeviceCount", code)?;
        if self.device >= count {
            let what = format!("the driver has {count} devices, from 0 on. Choose another one");
            return Err(A2a3Error::Unfit { device: self.device, what });
        }
        self.enter("taking the device")
    }

    /// The device's id, as `aclrt*` counts.
    pub(crate) const fn device(&self) -> u32 {
        self.device
    }

    /// The name of the processor.
    pub(crate) fn soc_name(&self) -> String {
        // SAFETY: the device is taken.
        let name = unsafe { (self.calls.soc_name)() };
        text(name)
    }

    /// Makes the device the calling thread's.
    pub(crate) fn enter(&self, step: &'static str) -> Result<(), A2a3Error> {
        if self.is_lost() {
            let what = "its last reset by force was not confirmed. Reset it with `npu-smi`, and open it again";
            return Err(A2a3Error::Unfit { device: self.device, what: what.to_owned() });
        }
        let generation = self.generation.load(Ordering::Relaxed);
        if CURRENT.get() == generation {
            return Ok(());
        }
        // SAFETY: takes a number.
        let code = unsafe { (self.calls.set_device)(self.device.cast_signed()) };
        self.check(step, "aclrtSetDevice", code)?;
        self.contexts.fetch_add(1, Ordering::Relaxed);
        CURRENT.set(generation);
        Ok(())
    }

    /// An error if `code` is one, with what the library says of it.
    pub(crate) fn check(
        &self,
        step: &'static str,
        call: &'static str,
        code: i32,
    ) -> Result<(), A2a3Error> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: takes the message of this thread's last failure; it is valid until the next call.
        let message = text(unsafe { (self.calls.recent_message)() });
        Err(A2a3Error::Call { step, call, code, message })
    }

    /// Allocates device memory.
    pub(crate) fn alloc(&self, step: &'static str, bytes: u64) -> Result<GmAddr, A2a3Error> {
        let mut address: *mut c_void = ptr::null_mut();
        let size = usize::try_from(bytes).unwrap_or(usize::MAX);
        // SAFETY: a place for an address.
        let code = unsafe { (self.calls.malloc)(&raw mut address, size, HUGE_FIRST) };
        self.check(step, "aclrtMalloc", code)?;
        Ok(GmAddr(address.expose_provenance() as u64))
    }

    /// Frees device memory.
    pub(crate) fn free(&self, step: &'static str, address: GmAddr) -> Result<(), A2a3Error> {
        // SAFETY: `alloc` returned the address, and nothing uses the memory any more.
        let code = unsafe { (self.calls.free)(pointer(address)) };
        self.check(step, "aclrtFree", code)
    }

    /// Makes this memory the one that goes with the port.
    pub(crate) fn keep_gm(&self, address: GmAddr) {
        self.gm.store(address.0, Ordering::Relaxed);
    }

    /// A new stream.
    pub(crate) fn stream(&self, step: &'static str) -> Result<Handle, A2a3Error> {
        let mut stream: Handle = ptr::null_mut();
        // SAFETY: a place for a handle.
        let code = unsafe { (self.calls.create_stream)(&raw mut stream) };
        self.check(step, "aclrtCreateStream", code)?;
        Ok(stream)
    }

    /// Ends a stream on which nothing is any more.
    pub(crate) fn end_stream(&self, step: &'static str, stream: Handle) -> Result<(), A2a3Error> {
        // SAFETY: `stream` made it, and it is no longer in use.
        let code = unsafe { (self.calls.destroy_stream)(stream) };
        self.check(step, "aclrtDestroyStream", code)
    }

    /// The address of a name for the vendor's calls.
    pub(crate) fn named(text: &str) -> CString {
        CString::new(text).unwrap_or_default()
    }

    /// Every context is gone: a reset by force was made.
    pub(crate) fn forget_contexts(&self) {
        self.contexts.store(0, Ordering::Relaxed);
        self.gm.store(0, Ordering::Relaxed);
        self.generation.store(GENERATIONS.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Nothing is called any more: the device's state is not known.
    pub(crate) fn lose(&self) {
        self.lost.store(1, Ordering::Relaxed);
    }

    fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed) != 0
    }

    /// Gives everything back that the port has.
    fn close(&self) -> Result<(), A2a3Error> {
        const STEP: &str = "closing the device";
        if self.contexts.load(Ordering::Relaxed) > 0 {
            self.enter(STEP)?;
            let gm = self.gm.swap(0, Ordering::Relaxed);
            if gm != 0 {
                self.free(STEP, GmAddr(gm))?;
            }
        }
        for _ in 0..self.contexts.swap(0, Ordering::Relaxed) {
            // SAFETY: takes a number; each call gives one context back that was taken.
            let code = unsafe { (self.calls.reset_device)(self.device.cast_signed()) };
            self.check(STEP, "aclrtResetDevice", code)?;
        }
        Ok(())
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        *open = open.saturating_sub(1);
        if self.is_lost() {
            return;
        }
        if let Err(error) = self.close() {
            log::warn!("{error}");
        }
        CURRENT.set(0);
        if *open == 0 {
            // SAFETY: no port is left that uses the interface.
            let code = unsafe { (self.calls.finalize)() };
            log::debug!("aclFinalize answered {code}");
        }
    }
}

impl Dma for Port {
    fn to_device(&self, to: GmAddr, from: &[u8]) -> Result<(), A2a3Error> {
        const STEP: &str = "copying to the device";
        self.enter(STEP)?;
        let (bytes, source) = (from.len(), from.as_ptr().cast());
        // SAFETY: the source is a slice; the device's range is the caller's, and the driver checks it.
        let code =
            unsafe { (self.calls.memcpy)(pointer(to), bytes, source, bytes, HOST_TO_DEVICE) };
        self.check(STEP, "aclrtMemcpy", code)
    }

    fn to_host(&self, from: GmAddr, to: &mut [u8]) -> Result<(), A2a3Error> {
        const STEP: &str = "copying from the device";
        self.enter(STEP)?;
        let (bytes, target) = (to.len(), to.as_mut_ptr().cast());
        // SAFETY: the target is an exclusively borrowed slice; the driver checks the device's range.
        let code =
            unsafe { (self.calls.memcpy)(target, bytes, pointer(from), bytes, DEVICE_TO_HOST) };
        self.check(STEP, "aclrtMemcpy", code)
    }

    fn fill(&self, to: GmAddr, bytes: u64, byte: u8) -> Result<(), A2a3Error> {
        const STEP: &str = "filling memory of the device";
        self.enter(STEP)?;
        let size = usize::try_from(bytes).unwrap_or(usize::MAX);
        // SAFETY: the driver checks the device's range.
        let code = unsafe { (self.calls.memset)(pointer(to), size, byte.into(), size) };
        self.check(STEP, "aclrtMemset", code)
    }
}

/// A device's address for the vendor's calls; nothing here reads through it.
pub(crate) fn pointer(address: GmAddr) -> *mut c_void {
    ptr::with_exposed_provenance_mut(usize::try_from(address.0).unwrap_or(0))
}

/// A string of the vendor's; null: an empty one.
fn text(string: *const std::ffi::c_char) -> String {
    if string.is_null() {
        return String::new();
    }
    // SAFETY: not null, and the vendor's calls return strings.
    unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned()
}
