//! Kernels: binaries, their functions, and arguments that are put together step by step.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pto_host::abi::CoreKind;
use pto_host::{Kernel, KernelFn};
use pto_native::kernels::{self, KernelSource};

use super::lane::Lane;
use crate::common::codes;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::{Handle, Kind, Table};

pub(crate) static BINARIES: Table<Binary> = Table::new(Kind::Binary);
pub(crate) static FUNCTIONS: Table<Function> = Table::new(Kind::Function);
pub(crate) static ARGUMENTS: Table<Arguments> = Table::new(Kind::Arguments);

/// The most parameters of a kernel.
pub(crate) const MAX_PARAMETERS: usize = 128;

/// Code with kernels in it: a shared or relocatable object.
pub(crate) struct Binary {
    pub(crate) bytes: Vec<u8>,
    pub(crate) name: String,
    pub(crate) kind: CoreKind,
    pub(crate) functions: Mutex<Vec<(String, Handle)>>,
}

/// A kernel that can be launched.
pub(crate) struct Function {
    pub(crate) handle: Handle,
    pub(crate) kernel: Kernel,
    /// The address of its code.
    entry: usize,
}

impl Binary {
    /// The function of this name.
    pub(crate) fn function(&self, symbol: &str) -> Answer<Handle> {
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = functions.iter().find(|(name, _)| name == symbol) {
            return Ok(*known);
        }
        let source = KernelSource { name: symbol, symbol, kind: self.kind };
        let entry = kernels::entry_of(&self.bytes, source).map_err(|failure| {
            Refusal::new(codes::NO_SYMBOL, format!("{}: {failure}", self.name))
        })?;
        // SAFETY: what the object calls a kernel is one; its author vouches for it, as for any code that is loaded.
        let kernel = unsafe { kernels::from_pointer(entry, source) };
        let handle = add(kernel, entry.as_ptr().expose_provenance());
        functions.push((symbol.to_owned(), handle));
        Ok(handle)
    }
}

/// Makes a function of a kernel.
pub(crate) fn add(kernel: Kernel, entry: usize) -> Handle {
    FUNCTIONS.open_with(|handle| Function { handle, kernel, entry }).handle
}

/// What calls a kernel whose arguments lie in memory of the device: its words are the kernel, where its arguments are, and how many;
/// behind them the block context.
unsafe extern "C" fn fetch(args: *const u64) {
    const ENTRY: usize = 0;
    let word = |index| {
        // SAFETY: `launch_from` passes three words, and the device one more.
        let place = unsafe { args.add(index) };
        // SAFETY: as above.
        unsafe { place.read() }
    };
    let address = |index| usize::try_from(word(index)).unwrap_or(0);
    let count = address(2).min(MAX_PARAMETERS - 1);
    let mut held = [0_u64; MAX_PARAMETERS];
    let from = std::ptr::with_exposed_provenance::<u64>(address(1));
    // SAFETY: `launch_from` has these words looked up in a live block.
    unsafe { std::ptr::copy_nonoverlapping(from, held.as_mut_ptr(), count) };
    if address(3) == 1 {
        held[count] = word(4);
    }
    let entry = std::ptr::with_exposed_provenance::<()>(address(ENTRY));
    // SAFETY: the entry is that of a kernel.
    let entry = unsafe { std::mem::transmute::<*const (), KernelFn>(entry) };
    // SAFETY: it is called with its words, as the device would.
    unsafe { entry(held.as_ptr()) };
}

/// The handle that `fetch` is registered under: no function has it.
const FETCH: Handle = 1;

impl Function {
    /// Launches it in a lane.
    pub(crate) fn launch(&self, lane: &Lane, blocks: u32, words: &[u64]) -> Answer {
        let id = lane.open.kernel(self.handle, &self.kernel)?;
        lane.stream().launch_blocks(id, blocks, words)?;
        Ok(())
    }

    /// Launches it with `count` words at `at` in memory of the device.
    pub(crate) fn launch_from(&self, lane: &Lane, blocks: u32, at: usize, count: usize) -> Answer {
        let kernel =
            Kernel::from_fn("kernel with arguments on the device", self.kernel.kind(), fetch);
        let id = lane.open.kernel(FETCH, &kernel)?;
        let several = u64::from(blocks > 1);
        let words = [self.entry as u64, at as u64, count as u64, several];
        lane.stream().launch_blocks(id, blocks, &words)?;
        Ok(())
    }
}

/// Bytes of arguments as the words that a kernel takes.
pub(crate) fn words(bytes: &[u8]) -> Answer<Vec<u64>> {
    require(bytes.len() <= 8 * MAX_PARAMETERS, || {
        Refusal::value(format!(
            "{} bytes of arguments; a kernel takes {} words",
            bytes.len(),
            MAX_PARAMETERS
        ))
    })?;
    let word = |part: &[u8]| {
        let mut whole = [0; 8];
        whole[..part.len()].copy_from_slice(part);
        u64::from_ne_bytes(whole)
    };
    Ok(bytes.chunks(8).map(word).collect())
}

/// Arguments that are put together step by step; each parameter has a word of its own, or a place in `extra` whose address is the word.
#[derive(Default)]
pub(crate) struct Arguments {
    state: Mutex<Parts>,
}

/// The parts of arguments.
#[derive(Default)]
pub(crate) struct Parts {
    pub(crate) parameters: Vec<Part>,
    pub(crate) is_final: bool,
}

/// One parameter.
pub(crate) enum Part {
    Bytes(Vec<u8>),
    /// Memory of the host, which the kernel reads through its address.
    Buffer(Vec<u64>),
}

impl Arguments {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Parts> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Parts {
    /// Adds a parameter; its number from 1 is its handle.
    pub(crate) fn add(&mut self, part: Part) -> Answer<usize> {
        require(!self.is_final, || Refusal::value("the arguments are final; begin new ones"))?;
        require(self.parameters.len() < MAX_PARAMETERS, || {
            Refusal::value(format!(
                "a kernel takes {MAX_PARAMETERS} parameters, and there are so many"
            ))
        })?;
        self.parameters.push(part);
        Ok(self.parameters.len())
    }

    /// The parameter with this handle.
    pub(crate) fn part(&mut self, handle: usize) -> Answer<&mut Part> {
        let index = handle.checked_sub(1);
        let part = index.and_then(|index| self.parameters.get_mut(index));
        part.ok_or_else(|| Refusal::new(codes::BAD_HANDLE, "there is no such parameter"))
    }
}
