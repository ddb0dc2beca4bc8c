//! What kernels see of their block and their core: words 48 and 49 of their arguments.

/// What kernels see of their block, at word 48 of their arguments.
#[repr(C)]
#[derive(Debug)]
pub struct LocalContext {
    /// Its number.
    pub block_idx: i32,
    /// How many there are.
    pub block_num: i32,
    /// For completion after the kernel's return.
    pub asynchronous: AsyncContext,
}

/// Where a kernel writes what its task waits for after the kernel's return.
#[repr(C)]
#[derive(Debug)]
pub struct AsyncContext {
    /// How many conditions there are.
    pub count: *mut u32,
    /// What went wrong; 0: nothing.
    pub error: *mut i32,
    /// Room for them.
    pub conditions: *mut Condition,
    /// How many there is room for.
    pub capacity: u32,
    /// The task's id.
    pub token: u64,
}

/// A counter, and the value that it must reach.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Condition {
    /// A word of 32 bits.
    pub address: u64,
    /// The least value.
    pub expected: u32,
    /// Of the token; not used.
    pub engine: u32,
    /// Of the token; not used.
    pub completion_type: u32,
    /// Nothing.
    pub reserved: u32,
    /// Of the token; not used.
    pub cookie: u64,
}

/// What kernels see of their core, at word 49 of their arguments.
#[repr(C)]
#[derive(Debug)]
pub struct GlobalContext {
    /// 1 on the second vector core of a cluster.
    pub sub_block_id: i32,
    /// Nothing.
    pub reserved: i32,
    /// None here.
    pub dma_workspace: [u64; 2],
}

impl Condition {
    /// Whether its address can be one of a counter.
    #[must_use]
    pub const fn is_counter(&self) -> bool {
        self.address != 0 && self.address.is_multiple_of(4)
    }
}

const _: () = assert!(size_of::<Condition>() == 32);
const _: () = assert!(size_of::<LocalContext>() == 48);
const _: () = assert!(size_of::<GlobalContext>() == 24);
