//! How many cycles the pipes of a core are busy in a call of a kernel: the counters of `pmu.csv`.
//!
//! The simulator has no pipes. A kernel reports its instructions (`include/pto_field_counters.h`), and what each takes on the device is the cost
//! model of our own kernels ([`pto_aicore_kernels::cost`]). An instruction that the model does not know counts as a similar one, and
//! has its name in the notes of the file.

use std::ffi::c_char;

use pto_aicore_kernels::cost::{
    CYCLE_PS, GM_TO_L1, GM_TO_UB, L0C_TO_GM, L1_TO_L0A, L1_TO_L0B, UB_TO_GM, V_ADD, V_ADDS, V_CADD,
    V_CGMAX, V_CONV, V_COPY, V_DIV, V_EXP, V_MAX, V_MUL, V_MULS, V_SEL, V_SQRT, V_SUB, Vector,
    product, transfer_bytes, vector_bytes,
};

/// A pipe of a core: its index in [`PipeCycles`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pipe {
    /// Vector instructions.
    Vector,
    /// The matrix unit.
    Cube,
    /// The pipe from L1 to the matrix unit.
    Mte1,
    /// The pipe from global memory.
    Mte2,
    /// The pipe from a vector core to global memory.
    Mte3,
    /// The pipe from the matrix unit to all memories.
    Fixpipe,
}

/// Busy cycles of each pipe at 1.85 GHz.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PipeCycles(pub [u64; 6]);

impl PipeCycles {
    /// Those of one pipe.
    #[must_use]
    pub fn of(&self, pipe: Pipe) -> u64 {
        self.0.get(pipe as usize).copied().unwrap_or(0)
    }

    pub(crate) fn add(&mut self, cost: Cost) {
        if let Some(cycles) = self.0.get_mut(cost.pipe as usize) {
            *cycles += cost.cycles;
        }
    }
}

/// Nanoseconds as cycles of a core.
pub(crate) const fn cycles_of_ns(ns: u64) -> u64 {
    ns.saturating_mul(1_000) / CYCLE_PS
}

/// Where an operand is, as the header numbers it.
mod memory {
    pub(super) const GLOBAL: u32 = 0;
    pub(super) const UNIFIED: u32 = 1;
    pub(super) const L1: u32 = 2;
    pub(super) const LEFT: u32 = 3;
    pub(super) const RIGHT: u32 = 4;
    pub(super) const SUMS: u32 = 5;
    pub(super) const BIAS_AND_SCALES: u32 = 6;
}

/// `pto_field_operand` of the header.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct InstructionOperand {
    pub(crate) memory: u32,
    pub(crate) element_bytes: u32,
    pub(crate) rows: u64,
    pub(crate) columns: u64,
}

impl InstructionOperand {
    const fn bytes(&self) -> u64 {
        self.rows.saturating_mul(self.columns).saturating_mul(self.element_bytes as u64)
    }
}

/// `pto_field_instruction` of the header.
#[repr(C)]
pub(crate) struct Instruction {
    name: *const c_char,
    length: u64,
    operands: *const InstructionOperand,
    count: u64,
}

impl Instruction {
    /// Its name and its operands, of which the first one is what it writes.
    ///
    /// # Safety
    /// Both pointers are valid for what the structure says, as long as the answer lives.
    pub(crate) unsafe fn read<'a>(&self) -> (&'a str, &'a [InstructionOperand]) {
        let within = |count: u64| usize::try_from(count).unwrap_or(0);
        if self.name.is_null() || self.operands.is_null() {
            return ("", &[]);
        }
        // SAFETY: the caller vouches for it.
        let name = unsafe { std::slice::from_raw_parts(self.name.cast(), within(self.length)) };
        // SAFETY: as above.
        let operands = unsafe { std::slice::from_raw_parts(self.operands, within(self.count)) };
        (std::str::from_utf8(name).unwrap_or(""), operands)
    }
}

/// What an instruction takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) pipe: Pipe,
    pub(crate) cycles: u64,
    /// The model has no numbers for it: it counts as a similar one.
    pub(crate) is_rough: bool,
}

/// What the model says of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CostLookup {
    /// It takes so long.
    Takes(Cost),
    /// No pipe is busy: addresses, shapes, waits.
    Nothing,
    /// No pipe is known for it.
    Unknown,
}

/// Instructions about addresses, shapes and waits.
const WITHOUT_A_PIPE: [&str; 6] =
    ["TASSIGN", "TSYNC", "TRESHAPE", "TSUBVIEW", "TPRINT", "TGET_SCALE_ADDR"];

/// What an instruction takes on the device.
pub(crate) fn cost(name: &str, operands: &[InstructionOperand]) -> CostLookup {
    if WITHOUT_A_PIPE.contains(&name) {
        return CostLookup::Nothing;
    }
    if name.starts_with("TMATMUL") || name.starts_with("TGEMV") {
        return product_of(operands);
    }
    let (Some(to), Some(from)) = (operands.first(), operands.get(1).or(operands.first())) else {
        return CostLookup::Unknown;
    };
    let moved = |pipe: Pipe, bytes: u64, bandwidth: u64, is_rough: bool| {
        CostLookup::Takes(Cost { pipe, cycles: cycles(transfer_bytes(bytes, bandwidth)), is_rough })
    };
    match (from.memory, to.memory) {
        (memory::GLOBAL, memory::UNIFIED) => moved(Pipe::Mte2, to.bytes(), GM_TO_UB, false),
        (memory::GLOBAL, memory::L1) => moved(Pipe::Mte2, to.bytes(), GM_TO_L1, false),
        (memory::UNIFIED, memory::GLOBAL) => moved(Pipe::Mte3, from.bytes(), UB_TO_GM, false),
        (memory::SUMS, memory::GLOBAL) => moved(Pipe::Fixpipe, from.bytes(), L0C_TO_GM, false),
        (memory::L1, memory::LEFT) => moved(Pipe::Mte1, to.bytes(), L1_TO_L0A, false),
        (memory::L1, memory::RIGHT) => moved(Pipe::Mte1, to.bytes(), L1_TO_L0B, false),
        (memory::L1, memory::BIAS_AND_SCALES) => moved(Pipe::Mte1, to.bytes(), L1_TO_L0B, true),
        (memory::SUMS, _) => moved(Pipe::Fixpipe, from.bytes(), L0C_TO_GM, true),
        (memory::UNIFIED, memory::L1) => moved(Pipe::Mte3, from.bytes(), UB_TO_GM, true),
        (memory::UNIFIED, memory::UNIFIED) => {
            let bytes = operands.iter().map(InstructionOperand::bytes).max().unwrap_or(0);
            CostLookup::Takes(vector(name, bytes))
        }
        _ => CostLookup::Unknown,
    }
}

const fn cycles(picoseconds: u64) -> u64 {
    picoseconds.div_ceil(CYCLE_PS)
}

fn product_of(operands: &[InstructionOperand]) -> CostLookup {
    let find = |memory: u32| operands.iter().find(|operand| operand.memory == memory);
    let (Some(left), Some(right)) = (find(memory::LEFT), find(memory::RIGHT)) else {
        return CostLookup::Unknown;
    };
    let extents = [left.rows, left.columns, right.columns];
    let took = product(extents, left.element_bytes.into());
    CostLookup::Takes(Cost { pipe: Pipe::Cube, cycles: cycles(took), is_rough: false })
}

/// The instructions of the device that a vector instruction is; without a name here it counts as a sum.
fn parts_of(name: &str) -> Option<&'static [&'static Vector]> {
    Some(match name {
        "TADD" | "TROWEXPANDADD" | "TCOLEXPANDADD" | "TCOLSUM" => &[&V_ADD],
        "TADDS" => &[&V_ADDS],
        "TSUB" | "TSUBS" | "TROWEXPANDSUB" | "TCOLEXPANDSUB" => &[&V_SUB],
        "TMUL" | "TROWEXPANDMUL" | "TCOLEXPANDMUL" => &[&V_MUL],
        "TMULS" | "TNEG" => &[&V_MULS],
        "TMAX" | "TMIN" | "TMAXS" | "TMINS" | "TROWEXPANDMAX" | "TROWEXPANDMIN"
        | "TCOLEXPANDMAX" | "TCOLEXPANDMIN" | "TCOLMAX" | "TCOLMIN" | "TRELU" | "TABS" => &[&V_MAX],
        "TDIV" | "TDIVS" | "TROWEXPANDDIV" | "TCOLEXPANDDIV" => &[&V_DIV],
        "TEXP" | "TLOG" => &[&V_EXP],
        "TROWEXPANDEXPDIF" | "TCOLEXPANDEXPDIF" => &[&V_SUB, &V_EXP],
        "TSQRT" => &[&V_SQRT],
        "TRSQRT" => &[&V_SQRT, &V_DIV],
        "TMOV" | "TEXPANDS" | "TROWEXPAND" | "TCOLEXPAND" => &[&V_COPY],
        "TROWSUM" => &[&V_CADD],
        "TROWMAX" | "TROWMIN" => &[&V_CGMAX],
        "TSEL" | "TSELS" => &[&V_SEL],
        "TCVT" => &[&V_CONV],
        _ => return None,
    })
}

fn vector(name: &str, bytes: u64) -> Cost {
    let known = parts_of(name);
    let parts = known.unwrap_or(&[&V_ADD]);
    let took = parts.iter().map(|part| vector_bytes(part, bytes)).sum();
    Cost { pipe: Pipe::Vector, cycles: cycles(took), is_rough: known.is_none() }
}

#[cfg(test)]
mod tests {
    use super::{Cost, CostLookup, InstructionOperand, Pipe, PipeCycles, cost, memory};

    const fn tile(memory: u32, rows: u64, columns: u64) -> InstructionOperand {
        InstructionOperand { memory, element_bytes: 4, rows, columns }
    }

    fn takes(name: &str, operands: &[InstructionOperand]) -> Cost {
        match cost(name, operands) {
            CostLookup::Takes(cost) => cost,
            other => panic!("{name}: {other:?}"),
        }
    }

    #[test]
    fn where_the_operands_are_says_which_pipe_is_busy() {
        let (global, vector) = (tile(memory::GLOBAL, 128, 128), tile(memory::UNIFIED, 128, 128));
        let (l1, left) = (tile(memory::L1, 128, 128), tile(memory::LEFT, 128, 128));
        let (right, sums) = (tile(memory::RIGHT, 128, 128), tile(memory::SUMS, 128, 128));
        let found = [
            takes("TLOAD", &[vector, global]),
            takes("TLOAD", &[l1, global]),
            takes("TSTORE", &[global, vector]),
            takes("TSTORE", &[global, sums]),
            takes("TMOV", &[left, l1]),
            takes("TMATMUL", &[sums, left, right]),
            takes("TADD", &[vector, vector, vector]),
        ]
        .map(|cost| (cost.pipe, cost.cycles, cost.is_rough));
        // 64 KiB over 100.9, 135, 188.46, 70 and 441 GB/s at 1.85 GHz; 2 cycles for each of 8 x 16 x 8 blocks; 2 for each of 256 repeats.
        let expected = [
            (Pipe::Mte2, 1201, false),
            (Pipe::Mte2, 898, false),
            (Pipe::Mte3, 643, false),
            (Pipe::Fixpipe, 1731, false),
            (Pipe::Mte1, 275, false),
            (Pipe::Cube, 2054, false),
            (Pipe::Vector, 518, false),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_the_model_does_not_know_is_said() {
        let vector = tile(memory::UNIFIED, 8, 8);
        let sorted = takes("TSORT32", &[vector, vector]);
        assert_eq!((sorted.pipe, sorted.cycles, sorted.is_rough), (Pipe::Vector, 8, true));
        let global = tile(memory::GLOBAL, 8, 8);
        assert_eq!(cost("TPUT", &[global, global]), CostLookup::Unknown);
        assert_eq!(cost("TMATMUL", &[vector, vector]), CostLookup::Unknown);
        assert_eq!(cost("TSYNC", &[]), CostLookup::Nothing);
        assert_eq!(cost("TNEW", &[]), CostLookup::Unknown);
        let mut all = PipeCycles::default();
        all.add(sorted);
        all.add(sorted);
        assert_eq!((all.of(Pipe::Vector), all.of(Pipe::Cube)), (16, 0));
    }
}
