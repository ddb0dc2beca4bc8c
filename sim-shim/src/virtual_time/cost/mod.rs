//! What a kernel costs on its core, in virtual time.
//!
//! [`KernelCosts::Library`] follows the PTO-ISA cost model (public pto-isa project, include/pto/costmodel, a2a3,
//! 1.85 GHz): vector instructions of 256 bytes with head, slope and tail; cube instructions of 16 x 32 bytes x 16;
//! transfers by bandwidth. Our kernels are one transfer in, the computation, one transfer out, one after the
//! other: what a kernel without double buffering does. A kernel that is not of the library costs what a word of its task says ([`set_cost_word`]), or the
//! fallback.

mod factorisation;
mod fast_region;
mod layers;
mod words;

use pto_aicore_kernels::probe::mix;
use pto_aicore_kernels::{KernelFn, LIBRARY, func};
use pto_graph::plan::task;

use pto_aicore_kernels::cost::{
    GM_TO_L1, GM_TO_UB, UB_TO_GM, V_ADD, V_ADDS, V_CADD, V_CGMAX, V_DIV, V_EXP, V_MAX, V_MUL,
    V_MULS, V_SUB, Vector, cube, rows_of, transfer, vector,
};

pub use fast_region::{FastRegion, FastRegions};
pub use words::set_cost_word;

/// Where the costs of kernels come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelCosts {
    /// Every kernel takes this many nanoseconds.
    Constant(u64),
    /// Each task takes between the two, in nanoseconds, as a hash of seed and slot says.
    Drawn {
        /// At least.
        low: u64,
        /// At most.
        high: u64,
        /// What the draws start from.
        seed: u64,
    },
    /// By function id, in nanoseconds; a kernel beyond the end costs `fallback`.
    Table {
        /// The costs.
        by_func: &'static [u64],
        /// The cost of other kernels, in nanoseconds.
        fallback: u64,
    },
    /// The cost model of the library kernels; others cost what a word of their tasks says, or `fallback`.
    Library {
        /// The cost of other kernels, in nanoseconds.
        fallback: u64,
    },
}

/// Argument words that a cost may depend on.
pub(super) const COST_ARGS: usize = 12;

impl KernelCosts {
    /// The cost of a task in nanoseconds. `args`: its first words, zero where it has fewer.
    #[must_use]
    pub fn of(self, func_id: u16, slot: u32, args: &[u64; COST_ARGS]) -> u64 {
        match self {
            Self::Constant(cost) => cost,
            Self::Drawn { low, high, seed } => {
                let width = high.saturating_sub(low).saturating_add(1);
                low + mix(seed ^ u64::from(slot)) % width
            }
            Self::Table { by_func, fallback } => {
                by_func.get(usize::from(func_id)).copied().unwrap_or(fallback)
            }
            Self::Library { fallback } => library(func_id, args).unwrap_or(fallback),
        }
    }

    /// The cost of a task whose code is at this address.
    pub(super) fn of_code(
        self,
        (func_id, code): (u16, u64),
        slot: u32,
        args: &[u64; COST_ARGS],
    ) -> u64 {
        let said = self.needs_args().then(|| words::cost_ns(code, args)).flatten();
        said.unwrap_or_else(|| self.of(model_of(func_id, code), slot, args))
    }

    /// The cost of a kernel with these arguments in nanoseconds, before it is a task: of draws, their mean.
    #[must_use]
    pub fn expected(self, func_id: u16, args: &[u64]) -> u64 {
        match self {
            Self::Drawn { low, high, .. } => low + high.saturating_sub(low) / 2,
            _ => {
                let mut first = [0; COST_ARGS];
                first.iter_mut().zip(args).for_each(|(word, arg)| *word = *arg);
                self.of(func_id, 0, &first)
            }
        }
    }

    /// No task of a random graph costs more, in nanoseconds.
    pub(super) fn longest_drawn_ns(self) -> u64 {
        match self {
            Self::Constant(cost) | Self::Drawn { high: cost, .. } => cost,
            Self::Table { by_func, fallback } => by_func.iter().copied().fold(fallback, u64::max),
            Self::Library { fallback } => fallback,
        }
    }

    /// Whether [`of`](Self::of) looks at the arguments: it is the cost model of the library then.
    pub(super) const fn needs_args(self) -> bool {
        matches!(self, Self::Library { .. })
    }
}

/// The kernel whose costs are those of the code at an address: a workload gives the kernels that execute its tile kernels
/// func ids of their own, and their code is that of the library.
fn model_of(func_id: u16, code: u64) -> u16 {
    let is_tile = |tile: &pto_abi::FuncId| {
        let entry: Option<KernelFn> = LIBRARY.get(usize::from(tile.0)).map(|kernel| kernel.entry);
        entry.is_some_and(|entry| entry as usize as u64 == code)
    };
    let found = [func::TILE_AIC, func::TILE_AIV].into_iter().find(is_tile);
    found.map_or(func_id, |tile| tile.0)
}

const fn elementwise(of: &Vector, inputs: u64, n: u64) -> u64 {
    transfer(inputs * n, GM_TO_UB) + vector(of, n) + transfer(n, UB_TO_GM)
}

/// Nanoseconds of a library kernel; `None`: it is none.
fn library(func_id: u16, args: &[u64; COST_ARGS]) -> Option<u64> {
    // Larger ones do not fit GM; so no sum below overflows.
    let (length, arg) = (|at: usize| args[at].min(1 << 36), |at: usize| args[at].min(1 << 18));
    let ps = match pto_abi::FuncId(func_id) {
        func::ADD => elementwise(&V_ADD, 2, length(3)),
        func::ADD_SCALAR => elementwise(&V_ADDS, 1, length(3)),
        func::MUL => elementwise(&V_MUL, 2, length(3)),
        func::EXP => elementwise(&V_EXP, 1, length(2)),
        func::REDUCE => reduce(length(3), args[4], (args[5] & 0xFFFF_FFFF).min(1 << 8)),
        func::ROW_MAX => reduction(&V_CGMAX, arg(2), arg(3)),
        func::ROW_SUM => reduction(&V_CADD, arg(2), arg(3)),
        func::MATMUL => cube(arg(3), arg(5), arg(4)),
        func::MATMUL_ACC => cube(arg(3), arg(5), arg(4)) + transfer(arg(3) * arg(4), GM_TO_L1),
        func::MATMUL_ADD => cube(arg(4), arg(6), arg(5)) + transfer(arg(4) * arg(5), GM_TO_L1),
        // q [rows, head_dim] @ k^T [head_dim, cols]; p [rows, cols] @ v [cols, head_dim].
        func::ATTENTION_QK => cube(arg(3), arg(5), arg(4)),
        func::ATTENTION_PV => cube(arg(3), arg(4), arg(5)),
        func::ATTENTION_SOFTMAX_PARTIAL => softmax_partial(arg(4), arg(5)),
        func::ATTENTION_UPDATE => update(arg(7), arg(8)),
        func::EMPTY_AIC | func::EMPTY_AIV => 0,
        // The program that submitted it knows the kernel's instructions.
        func::TILE_AIC | func::TILE_AIV => match task::cost_ns(args[task::CODE_BYTES]) {
            0 => return None,
            cost_ns => cost_ns * 1_000,
        },
        // Not kernels of a model: 100 ns and a line miss a producer; 4 ns an iteration.
        func::DAG_NODE_AIC | func::DAG_NODE_AIV => 100_000 + arg(5) * 41_000,
        func::SPIN_AIC | func::SPIN_AIV => length(0) * 4_000,
        // 100 ns and two line misses.
        func::PART_AIC | func::PART_AIV => 182_000,
        other => {
            factorisation::picoseconds(other, arg).or_else(|| layers::picoseconds(other, arg))?
        }
    };
    Some(ps / 1_000)
}

/// A tensor and its parts in, one out, an instruction for each vector of 256 bytes and part: as of this many `f32` as there are bytes for.
const fn reduce(n: u64, how: u64, parts: u64) -> u64 {
    let bytes_log2 = match how & 0xFF {
        // As `ElementType` numbers them: 8 bits, 16 bits, 64 bits; the others have 32.
        3 | 4 => 0,
        1 | 2 | 5 | 6 => 1,
        9..=11 => 3,
        _ => 2,
    };
    let n = (n << bytes_log2).div_ceil(4);
    transfer((1 + parts) * n, GM_TO_UB) + parts * vector(&V_ADD, n) + transfer(n, UB_TO_GM)
}

const fn reduction(of: &Vector, rows: u64, cols: u64) -> u64 {
    let n = rows * cols;
    transfer(n, GM_TO_UB) + rows_of(of, rows, cols) + transfer(rows, UB_TO_GM)
}

/// Scale, row maximum, subtract, exponential, row sum.
const fn softmax_partial(rows: u64, cols: u64) -> u64 {
    let n = rows * cols;
    let vectors = rows_of(&V_MULS, rows, cols)
        + rows_of(&V_CGMAX, rows, cols)
        + rows_of(&V_SUB, rows, cols)
        + rows_of(&V_EXP, rows, cols)
        + rows_of(&V_CADD, rows, cols);
    transfer(n, GM_TO_UB) + vectors + transfer(n + 2 * rows, UB_TO_GM)
}

/// Merges a block into the online softmax: per row a maximum, two exponentials and four operations; per element
/// two products and a sum, and the final division (counted always).
const fn update(rows: u64, head_dim: u64) -> u64 {
    let n = rows * head_dim;
    let per_row = vector(&V_MAX, rows)
        + 2 * vector(&V_SUB, rows)
        + 2 * vector(&V_EXP, rows)
        + 2 * vector(&V_MUL, rows)
        + vector(&V_ADD, rows);
    let per_element = 2 * rows_of(&V_MUL, rows, head_dim)
        + rows_of(&V_ADD, rows, head_dim)
        + rows_of(&V_DIV, rows, head_dim);
    let read = 2 * n + 4 * rows;
    transfer(read, GM_TO_UB) + per_row + per_element + transfer(n + 2 * rows, UB_TO_GM)
}

#[cfg(test)]
mod tests {
    use super::{COST_ARGS, KernelCosts};
    use pto_aicore_kernels::func;

    fn cost(func_id: pto_abi::FuncId, args: &[u64]) -> u64 {
        let mut words = [0; COST_ARGS];
        words[..args.len()].copy_from_slice(args);
        KernelCosts::Library { fallback: 77 }.of(func_id.0, 0, &words)
    }

    #[test]
    fn the_cost_model_of_the_library() {
        // 64 K floats: 2 x 262,144 bytes at 100.9 GB/s, 6 + 2 x 1024 cycles, 262,144 bytes at 188.46 GB/s.
        let add = cost(func::ADD, &[0, 0, 0, 65_536]);
        assert_eq!(add, (5_196_114 + (6 + 2 * 1024) * 541 + 1_390_979) / 1_000);
        let small = cost(func::MATMUL, &[0, 0, 0, 16, 16, 16]);
        let large = cost(func::MATMUL, &[0, 0, 0, 128, 128, 128]);
        // 6 + 2 * 8 * 16 * 8 cycles, 65,536 bytes each way.
        assert!(small < 100, "{small}");
        assert_eq!(large, (2 * 485 + 148 + 297) + 2054 * 541 / 1_000 + 936 + 2, "rounded once");
        let symmetric = [0, 0, 0, 64, 128, 32];
        assert_ne!(cost(func::ATTENTION_QK, &symmetric), cost(func::ATTENTION_PV, &symmetric));
        assert_eq!(cost(func::EMPTY_AIV, &[]), 0);
        let tile = |ns| cost(func::TILE_AIV, &[0, pto_graph::plan::task::pack_code(96, 3, ns)]);
        assert_eq!([tile(0), tile(1_234)], [77, 1_234], "as the task says");
        assert_eq!(cost(pto_abi::FuncId(500), &[]), 77);
    }

    #[test]
    fn a_tile_kernel_has_the_costs_of_the_librarys_kernel_under_any_func_id() {
        let entry = |func_id: pto_abi::FuncId| {
            pto_aicore_kernels::LIBRARY[usize::from(func_id.0)].entry as usize as u64
        };
        assert_eq!(super::model_of(1_000, entry(func::TILE_AIC)), func::TILE_AIC.0);
        assert_eq!(super::model_of(1_000, entry(func::ADD)), 1_000);
    }

    #[test]
    fn other_sources() {
        let of = |costs: KernelCosts, func_id, slot| costs.of(func_id, slot, &[0; COST_ARGS]);
        assert_eq!(of(KernelCosts::Constant(5), 1, 1), 5);
        let table = KernelCosts::Table { by_func: &[1, 2], fallback: 9 };
        assert_eq!((of(table, 1, 0), of(table, 2, 0)), (2, 9));
        let drawn = KernelCosts::Drawn { low: 10, high: 12, seed: 4 };
        let all: Vec<_> = (0..99).map(|slot| of(drawn, 0, slot)).collect();
        assert!(all.iter().all(|cost| (10..=12).contains(cost)));
        assert!([10, 11, 12].iter().all(|cost| all.contains(cost)));
    }

    #[test]
    fn what_is_expected_is_what_a_task_costs_and_the_mean_of_draws() {
        let args = [0, 0, 0, 1 << 16];
        let model = KernelCosts::Library { fallback: 77 };
        assert_eq!(model.expected(func::ADD.0, &args), cost(func::ADD, &args));
        assert_eq!(model.expected(u16::MAX, &[]), 77);
        assert_eq!(KernelCosts::Constant(5).expected(1, &[1; 40]), 5);
        let drawn = KernelCosts::Drawn { low: 5_000, high: 20_000, seed: 4 };
        assert_eq!(drawn.expected(1, &args), 12_500);
    }

    #[test]
    fn absurd_arguments_do_not_overflow() {
        for kernel in pto_aicore_kernels::LIBRARY {
            let _ = cost(
                pto_abi::FuncId(u16::try_from(kernel.func_id).unwrap()),
                &[1 << 30; COST_ARGS],
            );
        }
    }
}
