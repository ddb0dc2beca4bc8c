//! The byte form: written and read again, and bytes of every kind of wrongness: a named error or a kernel that runs within
//! bounds, never a panic.

use pto_aicore_kernels::tile::bytes::{self, Header};
use pto_aicore_kernels::tile::op::Moves;
use pto_aicore_kernels::tile::{
    Binary, Call, Compare, DType, Direction, Interpreter, Kernel, Op, Param, ParamKind, Reduce,
    Rejected, Spread, TileType, TileView, Unary,
};

use crate::number::SplitMix64;
use crate::rig::{Memory, V, name, tensor};

/// The bytes of a kernel, without a check.
fn encode(params: &[Param], ops: &[Op]) -> Vec<u8> {
    let (text, name_bytes) = bytes::write_name(&name("fuzzed"));
    let header = Header {
        magic: bytes::MAGIC,
        version: bytes::VERSION,
        params: params.len() as u16,
        ops: ops.len() as u16,
        name_bytes,
        total_bytes: bytes::bytes_of(params.len(), ops.len()) as u32,
        name: text,
    };
    let mut bytes = bytemuck::bytes_of(&header).to_vec();
    params.iter().for_each(|param| bytes.extend(bytemuck::bytes_of(&bytes::write_param(param))));
    ops.iter().for_each(|op| bytes.extend(bytemuck::bytes_of(&bytes::write(op))));
    bytes
}

/// An instruction of any kind, with operands among the first values.
fn random_op(random: &mut SplitMix64, values: usize) -> Op {
    let dtype = |random: &mut SplitMix64| DType::ALL[random.below(12)];
    // Now and then one that is not there.
    let value = |random: &mut SplitMix64| {
        let beyond = usize::from(random.below(30) == 0);
        V(random.below(values.max(1) + beyond) as u16)
    };
    let (x, a, b) = (value(random), value(random), value(random));
    let extent = |random: &mut SplitMix64| [1, 2, 3, 4, 8, 32][random.below(6)];
    let spread = Spread::ALL[random.below(5)];
    let maybe = |random: &mut SplitMix64| (random.below(3) == 0).then_some(x);
    match random.below(20) {
        0 => Op::Load {
            param: random.below(5) as u8,
            offset: [0, random.below(3) as u16],
            mask: maybe(random),
        },
        1 => Op::Store {
            param: random.below(5) as u8,
            source: x,
            offset: [random.below(3) as u16, 0],
            mask: maybe(random),
        },
        2 => Op::Scalar { param: random.below(5) as u8 },
        3 => Op::Constant { dtype: dtype(random), bits: random.bits() >> random.below(64) },
        4 => Op::Zeros { dtype: dtype(random), shape: [extent(random), extent(random)] },
        5 => Op::Iota { dtype: dtype(random), cols: extent(random) },
        6 => Op::Unary { function: Unary::ALL[random.below(14)], x },
        7 => Op::Binary { function: Binary::ALL[random.below(6)], a, b, spread },
        8 => Op::Compare { function: Compare::ALL[random.below(6)], a, b, spread },
        9 => Op::Select { mask: x, a, b },
        10 => Op::Reduce { function: Reduce::ALL[random.below(5)], x },
        11 => Op::Convert { dtype: dtype(random), x },
        12 => Op::Matmul { a, b, acc: maybe(random), moves: Moves::default() },
        13 => Op::SliceEven { x },
        14 => Op::SliceOdd { x },
        15 => Op::Interleave { a, b },
        16 => Op::Broadcast { x, shape: [extent(random), extent(random)] },
        17 => Op::Sort32 { scores: a, indices: b },
        18 => Op::TopK { pairs: x, k: random.below(34) as u16 },
        _ => Op::AddCycles { x },
    }
}

fn random_params(random: &mut SplitMix64) -> Vec<Param> {
    let mut params = Vec::new();
    for number in 0..4 {
        let dtype = DType::ALL[random.below(12)];
        let text = format!("p{number}");
        if random.below(4) == 0 {
            params.push(Param { name: name(&text), kind: ParamKind::Scalar(dtype) });
            continue;
        }
        let extents = [1, 2, 4, 8, 32];
        let tile = TileType::tile(dtype, extents[random.below(5)], extents[random.below(5)]);
        params.push(tensor(&text, Direction::ALL[random.below(3)], tile));
    }
    params
}

/// Grows a kernel of valid instructions.
fn random_kernel(random: &mut SplitMix64) -> (Vec<Param>, Vec<Op>) {
    let params = random_params(random);
    let (mut ops, mut values) = (Vec::new(), 0);
    for _ in 0..400 {
        let op = random_op(random, values);
        ops.push(op);
        match Kernel::check(name("grown"), &params, &ops) {
            Ok(kernel) => values = kernel.types().len(),
            Err(_) => drop(ops.pop()),
        }
        if ops.len() == 24 {
            break;
        }
    }
    (params, ops)
}

/// Runs a kernel on views at random offsets of small tensors whose surroundings are watched.
fn run_somewhere(kernel: &Kernel, random: &mut SplitMix64) -> bool {
    const GUARD: usize = 64;
    let tiles: Vec<TileType> =
        kernel.params().iter().filter_map(|param| param.tensor().map(|(_, tile)| tile)).collect();
    let mut memories: Vec<Memory> = tiles
        .iter()
        .map(|tile| {
            let spare = random.below(9);
            Memory::new(&random.elements(tile.dtype, tile.elements() + 2 * GUARD + spare))
        })
        .collect();
    let before = memories.clone();
    let views: Vec<TileView> = memories
        .iter_mut()
        .zip(&tiles)
        .map(|(memory, tile)| {
            let guard = GUARD * tile.dtype.bytes();
            let cells = memory.cells();
            let inside = &cells[guard..cells.len() - guard];
            let is_wild = random.below(4) == 0;
            let first = if is_wild {
                random.bits() as i64 >> random.below(64)
            } else {
                random.below(3) as i64
            };
            let counted = [
                random.below(usize::from(tile.rows) + 1) as u16,
                random.below(usize::from(tile.cols) + 1) as u16,
            ];
            let counted = if random.below(2) == 0 { [tile.rows, tile.cols] } else { counted };
            TileView::new(inside, first, [i64::from(tile.cols), 1], counted)
        })
        .collect();
    let scalars: Vec<u64> =
        (0..kernel.params().len() - tiles.len()).map(|_| random.bits() >> 56).collect();
    let call = Call { tensors: &views, scalars: &scalars };
    let mut scratch = vec![0; kernel.scratch_words()];
    let result = Interpreter::new().run(kernel, &call, &mut scratch);
    if let Err(fault) = &result {
        assert!(!fault.to_string().contains("acceptance"), "{fault}");
    }
    for ((memory, before), tile) in memories.iter().zip(&before).zip(&tiles) {
        let guard = GUARD * tile.dtype.bytes();
        let (bytes, old) = (memory.bytes(), before.bytes());
        assert_eq!(bytes[..guard], old[..guard]);
        assert_eq!(bytes[bytes.len() - guard..], old[old.len() - guard..]);
    }
    result.is_ok()
}

#[test]
fn what_is_written_is_read_again() {
    for seed in 0..300 {
        let (params, ops) = random_kernel(&mut SplitMix64(seed));
        if ops.is_empty() {
            continue;
        }
        let kernel = Kernel::accept(&encode(&params, &ops)).unwrap();
        assert_eq!(kernel.params(), params, "seed {seed}");
        assert!(kernel.ops().eq(&ops), "seed {seed}");
    }
}

#[test]
fn valid_kernels_run_or_fault_within_bounds() {
    let (mut done, mut faulted) = (0, 0);
    for seed in 0..1500 {
        let mut random = SplitMix64(seed);
        let (params, ops) = random_kernel(&mut random);
        let Ok(kernel) = Kernel::check(name("random"), &params, &ops) else { continue };
        if run_somewhere(&kernel, &mut random) { done += 1 } else { faulted += 1 }
    }
    assert!(done > 100 && faulted > 100, "{done} done, {faulted} faulted");
}

#[test]
fn changed_bytes_are_refused_or_run_within_bounds() {
    let (mut accepted, mut rejected) = (0, 0);
    for seed in 0..6000 {
        let mut random = SplitMix64(seed);
        let (params, ops) = random_kernel(&mut random);
        if ops.is_empty() {
            continue;
        }
        let mut bytes = encode(&params, &ops);
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
        }
        if random.below(10) == 0 {
            bytes.truncate(random.below(bytes.len() + 1));
        }
        match Kernel::accept(&bytes) {
            Ok(kernel) => {
                accepted += 1;
                run_somewhere(&kernel, &mut random);
            }
            Err(error) => {
                rejected += 1;
                assert!(error.to_string().ends_with('.'), "{error}");
            }
        }
    }
    assert!(accepted > 100 && rejected > 300, "{accepted} accepted, {rejected} rejected");
}

#[test]
fn random_bytes_are_no_kernel() {
    for seed in 0..20_000 {
        let mut random = SplitMix64(seed);
        let mut bytes: Vec<u8> = (0..random.below(400)).map(|_| random.bits() as u8).collect();
        if bytes.len() >= 64 && random.below(2) == 0 {
            bytes[..4].copy_from_slice(b"PTOT");
            bytes[4..6].copy_from_slice(&1u16.to_le_bytes());
        }
        assert!(Kernel::accept(&bytes).is_err());
    }
}

#[test]
fn each_field_of_the_header_has_its_error() {
    let (params, ops) = random_kernel(&mut SplitMix64(3));
    let good = encode(&params, &ops);
    let with = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        Kernel::accept(&bytes).unwrap_err()
    };
    assert!(matches!(with(0, b'X'), Rejected::Magic(_)));
    assert_eq!(with(4, 2), Rejected::Version(2));
    assert_eq!(with(6, 33), Rejected::Params(33));
    assert_eq!(with(8, 0), Rejected::Ops(0));
    assert_eq!(with(9, 2), Rejected::Ops(usize::from(good[8]) + 512));
    assert_eq!(with(10, 50), Rejected::KernelName);
    assert!(matches!(with(12, 0), Rejected::Length { .. }));
    assert_eq!(with(16, b'7'), Rejected::KernelName);
    assert_eq!(with(64, 9), Rejected::Param(0));
    assert!(matches!(Kernel::accept(&good[..good.len() - 1]), Err(Rejected::Length { .. })));
    assert!(matches!(Kernel::accept(&[]), Err(Rejected::Length { needed: 64, found: 0 })));
}
