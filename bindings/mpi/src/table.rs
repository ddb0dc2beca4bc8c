//! The functions that the plug-in offers to the program that loads it. The plug-in and its caller compile the same
//! file, so that the two agree; [`PluginTable::VERSION`] and [`PluginTable::bytes`] show whether a plug-in has another version.
//!
//! Every function returns 0, or MPI's own error number, which [`PluginTable::error_text`] explains. Any thread may call
//! them, one at a time.

use std::ffi::c_char;

/// The symbol under which a plug-in exports its [`PluginTable`].
pub const SYMBOL: &std::ffi::CStr = c"pto_mpi_table";

/// How many bytes a text has room for, with the zero at its end.
pub const TEXT_BYTES: usize = 256;

/// The most bytes of one message. MPI counts them in an `int`.
pub const MAX_MESSAGE_BYTES: usize = 1 << 30;

/// A message from any rank.
pub const ANY_PEER: i32 = -1;

/// Messages of one channel never match those of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Channel {
    /// Short messages between the progress threads.
    Control = 0,
    /// Contents of tensors.
    Payload = 1,
}

/// What a rank learns of all of them when it starts.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MpiWorld {
    /// This rank.
    pub rank: i32,
    /// The number of ranks.
    pub ranks: i32,
    /// The largest tag of a message.
    pub max_tag: i32,
    /// Not used.
    pub reserved: i32,
    /// The name of this rank's host.
    pub host: [c_char; TEXT_BYTES],
    /// MPI's name and version.
    pub library: [c_char; TEXT_BYTES],
}

/// How far a message is.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Progress {
    /// 1: the message is through, and its request is gone.
    pub is_complete: i32,
    /// Of a received message: the rank that sent it.
    pub peer: i32,
    /// Of a received message: its tag.
    pub tag: i32,
    /// Not used.
    pub reserved: i32,
    /// Of a received message: its bytes.
    pub bytes: u64,
}

/// The functions.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct PluginTable {
    /// [`PluginTable::VERSION`] of the plug-in.
    pub version: u32,
    /// The size of this struct in the plug-in.
    pub bytes: u32,
    /// Starts MPI.
    pub start: unsafe extern "C" fn(world: *mut MpiWorld) -> i32,
    /// Begins to send `bytes` bytes. They stay as they are until the request is complete.
    pub send: unsafe extern "C" fn(
        channel: Channel,
        from: *const u8,
        bytes: usize,
        peer: i32,
        tag: i32,
        request: *mut u64,
    ) -> i32,
    /// Begins to receive at most `bytes` bytes. Nothing touches them until the request is complete.
    pub receive: unsafe extern "C" fn(
        channel: Channel,
        to: *mut u8,
        bytes: usize,
        peer: i32,
        tag: i32,
        request: *mut u64,
    ) -> i32,
    /// Asks how far so many requests are, of which MPI looks at the network once. A request that is complete, or that failed, is gone.
    pub test:
        unsafe extern "C" fn(requests: *const u64, count: usize, progress: *mut Progress) -> i32,
    /// Gives a request up. MPI may still touch its bytes until [`PluginTable::finish`].
    pub cancel: unsafe extern "C" fn(request: u64) -> i32,
    /// Sums `f32`s over all ranks with MPI's own collective; waits for all ranks.
    pub all_reduce_sum: unsafe extern "C" fn(from: *const f32, to: *mut f32, count: usize) -> i32,
    /// Waits until all ranks have come.
    pub barrier: unsafe extern "C" fn() -> i32,
    /// Writes what an error number means, with a zero at its end.
    pub error_text: unsafe extern "C" fn(error: i32, text: *mut c_char, bytes: usize),
    /// Ends MPI; waits for all ranks.
    pub finish: unsafe extern "C" fn() -> i32,
}

impl PluginTable {
    /// Raised whenever the table changes.
    pub const VERSION: u32 = 2;
    /// The size of the table.
    #[expect(clippy::cast_possible_truncation, reason = "the line before asserts it")]
    pub const BYTES: u32 = {
        assert!(size_of::<Self>() < u32::MAX as usize);
        size_of::<Self>() as u32
    };
}
