//! One operator as a launch of a kernel in a stream, in one or several blocks.
//!
//! ```text
//! words of a launch: what is done | status, or 0 | nanoseconds of a block on a core of the device, or 0 | address of each tensor .. | block context, where there are several blocks
//! ```

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use pto_abi::block::BlockContext;
use pto_abi::limits::MAX_ARGS;

use super::task::PreparedOperator;

/// Words in front of the addresses.
pub const LAUNCH_HEAD: usize = 3;
/// The word that says what a block costs.
pub const LAUNCH_COST_WORD: usize = 2;
/// Tensors of a launch, at most: one word is the block's.
pub const MOST_LAUNCH_TENSORS: usize = MAX_ARGS - LAUNCH_HEAD - 1;
/// About how long a block takes on its core at least, in ns.
const GRAIN_NS: u64 = 4_000;
/// Blocks, at most: the cores of a device.
const MOST_BLOCKS: usize = 24;

/// What the blocks of a launch do.
pub trait BlockWork {
    /// What messages call the operator.
    fn operator(&self) -> &'static str;

    /// How many addresses there are.
    fn tensors(&self) -> usize;

    /// How many blocks there are.
    fn blocks(&self) -> u32;

    /// Does a block.
    ///
    /// # Errors
    /// Why it could not be done, in a sentence.
    ///
    /// # Safety
    /// The addresses are those that the type asks for. Nobody writes what the block reads meanwhile, and nobody else touches what it writes.
    unsafe fn compute(&self, addresses: &[u64], context: BlockContext) -> Result<(), String>;
}

/// How a launch ended: the reason is set once, where it failed.
pub type LaunchStatus = OnceLock<String>;

/// A fault of this library in a launch without a status: the next call reports it.
pub static LOST_FAULT: OnceLock<String> = OnceLock::new();

/// Into how many blocks work is split that takes a core of the device so long.
#[must_use]
pub fn blocks_of(units: usize, cost_ns: u64) -> u32 {
    let wanted = usize::try_from(cost_ns / GRAIN_NS).unwrap_or(usize::MAX);
    u32::try_from(wanted.clamp(1, MOST_BLOCKS).min(units.max(1))).unwrap_or(1)
}

/// The units of a block: first, count.
#[must_use]
pub fn units_of(units: usize, context: BlockContext) -> (usize, usize) {
    let mut size = units.div_ceil(context.blocks.max(1) as usize);
    if size > 1024 {
        size = size.next_multiple_of(64);
    }
    let first = size.saturating_mul(context.block as usize).min(units);
    (first, size.min(units - first))
}

/// The kernel of launches that do `W`.
///
/// # Safety
/// `args` are the words at the head of this file: the work and the status live, and the addresses are those that `W` asks for.
pub unsafe extern "C" fn run_launch<W: BlockWork>(args: *const u64) {
    let word = |at: usize| {
        let word = args.wrapping_add(at);
        // SAFETY: the caller promises the words.
        unsafe { word.read() }
    };
    let address = |at: usize| usize::try_from(word(at)).unwrap_or(0);
    let work = std::ptr::with_exposed_provenance::<W>(address(0));
    // SAFETY: the caller promises the work.
    let work = unsafe { &*work };
    let status = std::ptr::with_exposed_provenance::<LaunchStatus>(address(1));
    // SAFETY: null, or the caller promises the status.
    let status = unsafe { status.as_ref() };
    let tensors = work.tensors();
    let addresses: Vec<u64> = (0..tensors).map(|at| word(LAUNCH_HEAD + at)).collect();
    let context = if work.blocks() > 1 {
        BlockContext::of(word(LAUNCH_HEAD + tensors))
    } else {
        BlockContext::ONLY
    };
    let done = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the caller promises the memory.
        unsafe { work.compute(&addresses, context) }
    }));
    let why = match done {
        Ok(Ok(())) => return,
        Ok(Err(why)) => why,
        Err(_) => format!(
            "operator {}: its kernel panicked; standard error has the location: report it",
            work.operator()
        ),
    };
    match status {
        Some(status) => drop(status.set(why)),
        None => {
            eprintln!("pto: a launch failed: {why}");
            drop(LOST_FAULT.set(why));
        }
    }
}

/// An operator whose tensors are inputs and outputs of a launch. An input of one element may be given by its bits in the place of its address.
#[derive(Clone, Debug)]
pub struct LaunchedOperator {
    operator: PreparedOperator,
    /// Of each input, whether its word is its one element.
    by_value: Vec<bool>,
    blocks: u32,
    block_ns: u64,
}

impl LaunchedOperator {
    /// The operator; `by_value` says of each input whether its word is its one element, the lowest bytes of the word.
    #[must_use]
    pub fn new(operator: PreparedOperator, by_value: Vec<bool>) -> Self {
        let units = operator.work().units;
        let ns = operator.cost((0, units)).ns();
        let blocks = blocks_of(units, ns);
        Self { operator, by_value, blocks, block_ns: ns.div_ceil(blocks.into()) }
    }

    /// What a block takes on a core of the device, in ns.
    #[must_use]
    pub const fn block_ns(&self) -> u64 {
        self.block_ns
    }

    /// The operator.
    #[must_use]
    pub const fn operator(&self) -> &PreparedOperator {
        &self.operator
    }
}

impl BlockWork for LaunchedOperator {
    fn operator(&self) -> &'static str {
        self.operator.name()
    }

    fn tensors(&self) -> usize {
        self.operator.tensors()
    }

    fn blocks(&self) -> u32 {
        self.blocks
    }

    unsafe fn compute(&self, addresses: &[u64], context: BlockContext) -> Result<(), String> {
        let address = |(at, word): (usize, &u64)| match self.by_value.get(at) {
            Some(true) => std::ptr::from_ref(word).expose_provenance() as u64,
            _ => *word,
        };
        let at: Vec<u64> = addresses.iter().enumerate().map(address).collect();
        let units = units_of(self.operator.work().units, context);
        // SAFETY: the caller promises the memory; blocks have different units.
        unsafe { self.operator.run(&at, units) }.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Panics;

    impl BlockWork for Panics {
        fn operator(&self) -> &'static str {
            "Divinate"
        }

        fn tensors(&self) -> usize {
            0
        }

        fn blocks(&self) -> u32 {
            1
        }

        unsafe fn compute(&self, _: &[u64], _: BlockContext) -> Result<(), String> {
            std::panic::resume_unwind(Box::new(()))
        }
    }

    #[test]
    fn a_kernel_that_panics_names_its_operator() {
        let (work, status) = (Panics, LaunchStatus::new());
        let words = [
            std::ptr::from_ref(&work).expose_provenance() as u64,
            std::ptr::from_ref(&status).expose_provenance() as u64,
            0,
        ];
        // SAFETY: the words are those of a launch without tensors, and what they name lives.
        unsafe { run_launch::<Panics>(words.as_ptr()) };
        let why = status.get().map_or("", String::as_str);
        assert!(why.starts_with("operator Divinate: its kernel panicked"), "{why}");
    }
}
