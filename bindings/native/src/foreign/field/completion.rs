//! The conditions that a kernel registers for its task: each holds when something that the kernel has begun is over.

use core::mem::MaybeUninit;
use core::ptr::with_exposed_provenance;
use core::sync::atomic::{AtomicU32, Ordering};

use super::context::{AsyncContext, Condition};

/// Conditions that a kernel can register.
const CAPACITY: u32 = 64;

/// The conditions that a kernel has registered for its completion.
#[derive(Debug)]
pub struct Conditions {
    count: u32,
    error: i32,
    /// Those that the kernel has not written are not initialised.
    list: [MaybeUninit<Condition>; CAPACITY as usize],
}

impl Default for Conditions {
    fn default() -> Self {
        Self::new()
    }
}

impl Conditions {
    /// The code of the field for a task that waits for too long.
    pub const TIMEOUT: i32 = 100;
    /// The code of the field for a condition that can be none.
    pub const INVALID: i32 = 101;

    /// None.
    #[must_use]
    pub const fn new() -> Self {
        Self { count: 0, error: 0, list: [MaybeUninit::uninit(); CAPACITY as usize] }
    }

    /// Where the kernel of the task with this id writes.
    pub fn context(&mut self, token: u64) -> AsyncContext {
        AsyncContext {
            count: &raw mut self.count,
            error: &raw mut self.error,
            conditions: self.list.as_mut_ptr().cast(),
            capacity: CAPACITY,
            token,
        }
    }

    /// The registered conditions.
    ///
    /// # Safety
    /// The kernel that got the context has returned, and has written as many conditions as it counts.
    pub unsafe fn registered(&self) -> impl Iterator<Item = &Condition> {
        // The kernel writes through pointers.
        // SAFETY: it is a field of ours.
        let count = unsafe { (&raw const self.count).read_volatile() };
        // SAFETY: the caller says that the kernel has written so many.
        self.list.iter().take(count as usize).map(|entry| unsafe { entry.assume_init_ref() })
    }

    /// The code with which the kernel says that it could not register a condition; 0: it has registered all.
    #[must_use]
    pub fn kernel_error(&self) -> i32 {
        // The kernel writes through a pointer.
        // SAFETY: it is a field of ours.
        unsafe { (&raw const self.error).read_volatile() }
    }

    /// Waits until all conditions hold, one after the other: the task completes after that. `look_again` is called with each look at a condition that
    /// does not hold, and with how many looks there were before.
    ///
    /// # Safety
    /// The kernel that got the context has returned, and keeps the rules of its interface: it has written as many conditions as it counts, each the address of a
    /// counter.
    ///
    /// # Errors
    /// The code of what went wrong: the kernel's own, [`Self::INVALID`], or what `look_again` gives.
    #[inline]
    pub unsafe fn wait(
        &self,
        mut look_again: impl FnMut(&Condition, u32) -> Result<(), i32>,
    ) -> Result<(), i32> {
        let error = self.kernel_error();
        if error != 0 {
            return Err(error);
        }
        // SAFETY: the caller vouches for it.
        for condition in unsafe { self.registered() } {
            if !condition.is_counter() {
                return Err(Self::INVALID);
            }
            let mut looks = 0;
            // SAFETY: the caller says that it is the address of a counter, which is aligned.
            while !unsafe { holds(condition) } {
                look_again(condition, looks)?;
                looks = looks.saturating_add(1);
            }
        }
        Ok(())
    }
}

/// # Safety
/// Its address is that of a counter of 32 bits, which is aligned.
unsafe fn holds(condition: &Condition) -> bool {
    const { assert!(size_of::<usize>() == 8) };
    let address = usize::from_ne_bytes(condition.address.to_ne_bytes());
    let counter: *const AtomicU32 = with_exposed_provenance(address);
    // SAFETY: the caller vouches for it.
    let counter = unsafe { &*counter };
    // Acquire: pairs with the Release addition in `pto_async_kernel_api::send_notification`.
    counter.load(Ordering::Acquire) >= condition.expected
}
