//! A compiled workload from its parts: what a program file holds of it. Nothing in the parts is trusted.

use pto_graph::plan::Plan;
use pto_graph::plan::layout::{HEADER_WORDS, KERNEL_WORDS, PARAM_WORDS, TENSOR_WORDS, header};

use super::compiled::Compiled;
use super::kernels::{self, element};
use super::names::SymbolUse;
use super::source_map::SourceMap;
use crate::kernel::TileKernel;
use crate::tree::{TaskWindow, Tensor, WindowMode};
use pto_aicore_kernels::tile::{DType, Kernel};

/// The parts of a compiled workload.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The name of the workload.
    pub name: String,
    /// The plan.
    pub words: Vec<u32>,
    /// The code of the kernels.
    pub code: Vec<u8>,
    /// The names of the tensors.
    pub tensors: Vec<String>,
    /// The symbols.
    pub symbols: Vec<(String, SymbolUse)>,
    /// The arrays.
    pub arrays: Vec<String>,
    /// Tasks that may be under way; 0: any number.
    pub window: u64,
    /// Which words are which loop, kernel and argument.
    pub places: SourceMap,
}

/// The word of the plan at which the check stopped, and what is wrong.
type Refusal = (usize, String);

impl Compiled {
    /// A compiled workload from its parts.
    ///
    /// # Errors
    /// The word of the plan at which the check stopped, and what is wrong: the plan itself, a kernel, or names that are not as many as
    /// the plan has.
    pub fn restore(stored: Stored) -> Result<Self, (usize, String)> {
        let Stored { name, words, code, tensors, symbols, arrays, window, places } = stored;
        let accepted = Plan::accept(&words).map(|plan| plan.counts());
        let counts = accepted.map_err(|stop| (stop.at, stop.fault.to_string()))?;
        let counted =
            [("symbols", symbols.len()), ("arrays", arrays.len()), ("tensors", tensors.len())];
        for ((what, found), wanted) in counted.into_iter().zip(counts) {
            if found as u64 != u64::from(wanted) {
                return Err((0, format!("the plan has {wanted} {what}, and {found} have names")));
            }
        }
        // A device knows no other mode.
        let window = TaskWindow { tasks: window, mode: WindowMode::Stall };
        let kernels = kernels_of(&words, &code, tensors.len())?;
        let named = tensors.into_iter().enumerate();
        let tensors =
            named.map(|(number, name)| tensor(&words, number, name)).collect::<Result<_, _>>()?;
        Ok(Self { name, words, code, tensors, kernels, symbols, arrays, window, places })
    }
}

fn tensor(words: &[u32], number: usize, name: String) -> Result<Tensor, Refusal> {
    let at = HEADER_WORDS + number * TENSOR_WORDS;
    let words = words.get(at..at + TENSOR_WORDS).unwrap_or(&[0]);
    let [code, rank, ..] = words[0].to_le_bytes();
    let dtype = DType::ALL.into_iter().find(|dtype| element(*dtype).get() == code);
    let dtype = dtype.ok_or_else(|| (at, format!("tensor {name} has no element type of tiles")))?;
    let extents = words.get(1..1 + usize::from(rank)).unwrap_or(&[]);
    Ok(Tensor { name, dtype, shape: extents.iter().map(|extent| u64::from(*extent)).collect() })
}

/// The kernels, which give the same words and the same code when they are written again.
fn kernels_of(words: &[u32], code: &[u8], tensors: usize) -> Result<Vec<TileKernel>, Refusal> {
    let table = HEADER_WORDS + tensors * TENSOR_WORDS;
    let mut at = table;
    let mut found = Vec::new();
    for number in 0..words[header::KERNELS] {
        let Some([head, start, bytes]) = words.get(at..).and_then(|rest| rest.first_chunk()) else {
            return Err((at, format!("kernel {number} is not there")));
        };
        let start = usize::try_from(*start).unwrap_or(usize::MAX);
        let end = start.saturating_add(usize::try_from(*bytes).unwrap_or(usize::MAX));
        let of_kernel = code.get(start..end);
        let of_kernel = of_kernel.ok_or_else(|| (at, format!("kernel {number} has no code")))?;
        let accepted = Kernel::accept(of_kernel);
        let accepted = accepted.map_err(|rejected| (at, format!("kernel {number}: {rejected}")))?;
        found.push(TileKernel::new(accepted));
        at += KERNEL_WORDS + PARAM_WORDS * (*head >> 24) as usize;
    }
    let (mut again, mut code_again) = (words[..table].to_vec(), Vec::new());
    found.iter().for_each(|kernel| kernels::write(kernel, &mut again, &mut code_again));
    if words.starts_with(&again) && code == code_again {
        Ok(found)
    } else {
        Err((table, "the kernels of the plan are not those of its code".to_owned()))
    }
}
