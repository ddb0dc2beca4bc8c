//! Pointers that programs pass. Each type is as large as the pointer, is made by a foreign caller only, and reads or writes what
//! the caller vouches for; null is refused here.

use std::ffi::{CStr, c_char, c_void};

use super::refusal::{Answer, Refusal, require};

/// Where a result goes.
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

/// A pointer to a result that is not null.
pub(crate) struct OutPointer<T>(*mut T);

impl<T> Out<T> {
    /// The address.
    pub(crate) fn address(&self) -> usize {
        self.0.expose_provenance()
    }

    /// The pointer, which must not be null.
    pub(crate) fn required(self, name: &str) -> Answer<OutPointer<T>> {
        require(!self.0.is_null(), || null(name))?;
        Ok(OutPointer(self.0))
    }

    /// The pointer; `None`: the caller does not want the result.
    pub(crate) fn optional(self) -> Option<OutPointer<T>> {
        (!self.0.is_null()).then_some(OutPointer(self.0))
    }

    /// Writes the result.
    pub(crate) fn put(self, name: &str, value: T) -> Answer {
        self.required(name)?.set(value);
        Ok(())
    }
}

impl<T> OutPointer<T> {
    /// Writes the result.
    pub(crate) fn set(self, value: T) {
        // SAFETY: the caller of the entry point vouches for the pointer.
        unsafe { self.0.write_unaligned(value) };
    }
}

impl<T: Copy> OutPointer<T> {
    /// The value there.
    pub(crate) fn read(&self) -> T {
        // SAFETY: the caller of the entry point vouches for the pointer.
        unsafe { self.0.read_unaligned() }
    }
}

impl<T: Copy> OutPointer<T> {
    /// Writes the element `index` of an array.
    pub(crate) fn set_at(&self, index: usize, value: T) {
        // SAFETY: the caller of the entry point vouches for as many elements.
        let element = unsafe { self.0.add(index) };
        // SAFETY: as above.
        unsafe { element.write_unaligned(value) };
    }
}

/// A structure that is read, or an array.
#[repr(transparent)]
pub(crate) struct In<T>(*const T);

impl<T> In<T> {
    /// The value at an address that the program has put into a structure or an array.
    pub(crate) fn at(address: usize) -> Self {
        Self(std::ptr::with_exposed_provenance(address))
    }

    /// The address.
    pub(crate) fn address(&self) -> usize {
        self.0.expose_provenance()
    }
}

impl<T: Copy> In<T> {
    pub(crate) fn get(&self, name: &str) -> Answer<T> {
        require(!self.0.is_null(), || null(name))?;
        Ok(self.read(0))
    }

    pub(crate) fn optional(&self) -> Option<T> {
        (!self.0.is_null()).then(|| self.read(0))
    }

    /// The first `count` elements.
    pub(crate) fn list(&self, name: &str, count: usize) -> Answer<Vec<T>> {
        require(!self.0.is_null() || count == 0, || null(name))?;
        let mut list = Vec::new();
        list.try_reserve_exact(count).map_err(|_| {
            Refusal::value(format!("{name} has {count} elements, which no memory has room for"))
        })?;
        list.extend((0..count).map(|index| self.read(index)));
        Ok(list)
    }

    fn read(&self, index: usize) -> T {
        // SAFETY: the caller of the entry point vouches for as many elements.
        let element = unsafe { self.0.add(index) };
        // SAFETY: as above.
        unsafe { element.read_unaligned() }
    }
}

impl In<c_char> {
    /// The text, which ends with a zero.
    pub(crate) fn text(&self, name: &str) -> Answer<String> {
        Text(self.0).read(name)
    }
}

impl In<u8> {
    /// The bytes as words without a copy, if they are aligned whole words, and at most this many.
    #[inline]
    pub(crate) fn words(&self, bytes: usize, most: usize) -> Option<&[u64]> {
        let words = self.0.cast::<u64>();
        let is_one = !words.is_null() && words.is_aligned();
        if !is_one || !bytes.is_multiple_of(8) || bytes / 8 > most {
            return None;
        }
        // SAFETY: the caller of the entry point vouches for as many bytes, and changes none of them during the call.
        Some(unsafe { std::slice::from_raw_parts(words, bytes / 8) })
    }
}

/// Text that ends with a zero.
#[repr(transparent)]
pub(crate) struct Text(*const c_char);

impl Text {
    /// The address.
    pub(crate) fn address(&self) -> usize {
        self.0.expose_provenance()
    }

    pub(crate) fn read(&self, name: &str) -> Answer<String> {
        self.optional().ok_or_else(|| null(name))
    }

    pub(crate) fn optional(&self) -> Option<String> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: the caller of the entry point vouches for the zero at the end.
        let text = unsafe { CStr::from_ptr(self.0) };
        Some(text.to_string_lossy().into_owned())
    }
}

/// An address: of memory that calls move bytes from and to, or of the program's own for its callbacks.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Address(pub(crate) *mut c_void);

impl Address {
    pub(crate) fn required(self, name: &str) -> Answer<usize> {
        require(!self.0.is_null(), || null(name))?;
        Ok(self.number())
    }

    pub(crate) fn number(self) -> usize {
        self.0.expose_provenance()
    }

    pub(crate) fn of(number: usize) -> Self {
        Self(std::ptr::with_exposed_provenance_mut(number))
    }
}

/// Refuses sizes that no memory has: the address after the last byte would not exist.
pub(crate) fn check_extent(at: usize, bytes: usize) -> Answer {
    const MOST: usize = 1 << 47;
    require(bytes <= MOST && at.checked_add(bytes).is_some(), || {
        Refusal::value(format!("{bytes} bytes at {at:#x} are more than there are addresses"))
    })
}

/// A refusal of a null pointer.
pub(crate) fn null(name: &str) -> Refusal {
    Refusal::argument(format!("{name} is null; pass a pointer"))
}

/// Writes text with a zero at its end into a buffer of `room` bytes.
pub(crate) fn put_text(buffer: &OutPointer<u8>, room: usize, text: &str) -> Answer {
    require(text.len() < room, || {
        Refusal::value(format!("the text needs {} bytes, and there are {room}", text.len() + 1))
    })?;
    for (index, byte) in text.bytes().chain([0]).enumerate() {
        buffer.set_at(index, byte);
    }
    Ok(())
}

/// A copy of bytes for a caller in C, who gives it to `free`.
pub(crate) fn copied_for_c(bytes: &[u8]) -> Answer<Address> {
    // SAFETY: the call has no preconditions.
    let copy = unsafe { libc::malloc(bytes.len().max(1)) };
    require(!copy.is_null(), || {
        Refusal::value(format!("the host has no memory for {} bytes", bytes.len()))
    })?;
    // SAFETY: the allocation is new, and has as many bytes.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr().cast::<c_void>(), copy, bytes.len()) };
    Ok(Address(copy))
}
