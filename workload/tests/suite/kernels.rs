//! Kernels: what the builder makes, texts and bytes that come back as the same kernel, and what is refused.

use pto_workload::kernel::TileValue;
use pto_workload::tile::{Binary, Compare, DType, Direction, Kernel, Op, Reduce, Spread, Unary};
use pto_workload::{KernelBuilder, KernelError, TileKernel};

use crate::random::TestRng;

const F32: DType = DType::F32;

fn again(kernel: &TileKernel) {
    let text = kernel.to_string();
    let read = TileKernel::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(&read, kernel, "{text}");
    assert_eq!(read.to_string(), text);
    let accepted = Kernel::accept(&kernel.encode()).unwrap();
    assert_eq!(TileKernel::new(accepted), *kernel, "{text}");
}

#[test]
fn a_kernel_as_text() {
    let mut k = KernelBuilder::new("scale");
    let x = k.tensor("x", Direction::In, F32, [8, 64]).unwrap();
    let y = k.tensor("y", Direction::Out, DType::F16, [8, 64]).unwrap();
    let s = k.scalar("s", F32).unwrap();
    let scaled = k.binary(Binary::Mul, x, s).unwrap();
    let half = k.constant(0.5, F32).unwrap();
    let more = k.binary(Binary::Sub, half, scaled).unwrap();
    k.store(y, more, [0, 0], None).unwrap();
    let kernel = k.finish().unwrap();
    let expected = "\
kernel scale(x: in f32[8, 64], y: out f16[8, 64], s: f32) {
  %0 = load x : f32[8, 64]
  %1 = scalar s : f32
  %2 = mul %0, %1 by one : f32[8, 64]
  %3 = constant 0.5 : f32
  %4 = sub %3, %2 by first : f32[8, 64]
  %5 = convert %4 : f16[8, 64]
  store y, %5
}
";
    assert_eq!(kernel.to_string(), expected);
    again(&kernel);
}

#[test]
fn a_text_of_several_kernels() {
    let kernel = |name: &str| {
        format!(
            "kernel {name}(x: inout f32[1, 8]) {{\n  %0 = load x : f32[1, 8]\n  store x, %0\n}}\n"
        )
    };
    let text = format!("# Two.\n{}\n# The other one.\n{}", kernel("a"), kernel("b"));
    let names = TileKernel::parse_all(&text).unwrap();
    let names: Vec<&str> = names.iter().map(TileKernel::name).collect();
    assert_eq!(names, ["a", "b"]);
    let refused = |text: &str| TileKernel::parse_all(text).unwrap_err().to_string();
    assert!(refused(&text.replace(" b(", " a(")).contains("there are two kernels `a`"));
    assert!(refused("").contains("kernel"));
    assert!(
        refused(&format!("{text} store")).contains("line 12"),
        "{}",
        refused(&format!("{text} store"))
    );
}

#[test]
fn loads_and_moves_stand_where_the_clock_counts_them() {
    let mut k = KernelBuilder::new("both");
    let a = k.tensor("a", Direction::In, F32, [4, 4]).unwrap();
    let c = k.tensor("c", Direction::InOut, F32, [4, 4]).unwrap();
    let first = k.matmul(a, a, None).unwrap();
    let sum = k.binary(Binary::Add, c, first).unwrap();
    let second = k.matmul(sum, a, Some(first)).unwrap();
    k.store(c, second, [0, 0], None).unwrap();
    let text = k.finish().unwrap().to_string();
    let expected = "\
kernel both(a: in f32[4, 4], c: inout f32[4, 4]) {
  %0 = load c : f32[4, 4]
  %1 = load a : f32[4, 4]
  %2 = load a : f32[4, 4]
  %3 = matmul %1, %2 move result : f32[4, 4]
  %4 = add %0, %3 : f32[4, 4]
  %5 = load a : f32[4, 4]
  %6 = matmul %4, %5 acc %3 move left : f32[4, 4]
  store c, %6
}
";
    assert_eq!(text, expected);
}

#[test]
fn two_element_types_meet_in_the_wider_one() {
    let mut k = KernelBuilder::new("mixed");
    let x = k.tensor("x", Direction::InOut, DType::F16, [4, 8]).unwrap();
    let most = k.reduce(Reduce::RowMax, x).unwrap();
    assert_eq!(k.type_of(most).dtype, F32);
    let shifted = k.binary(Binary::Sub, x, most).unwrap();
    assert_eq!(k.type_of(shifted).dtype, DType::F16);
    k.store(x, shifted, [0, 0], None).unwrap();
    let kernel = k.finish().unwrap();
    let names: Vec<&str> = kernel.ops().map(Op::name).collect();
    assert_eq!(names, ["load", "rowmax", "convert", "sub", "convert", "store"]);
    again(&kernel);
}

#[test]
fn mistakes_name_kernel_instruction_and_operands() {
    let mut k = KernelBuilder::new("wrong");
    let a = k.tensor("a", Direction::In, F32, [4, 8]).unwrap();
    let b = k.tensor("b", Direction::Out, F32, [3, 8]).unwrap();
    let h = k.tensor("h", Direction::In, DType::F16, [8, 4]).unwrap();
    let n = k.tensor("n", Direction::InOut, DType::I32, [4, 8]).unwrap();
    let text = |result: Result<TileValue, KernelError>| result.unwrap_err().to_string();
    let cases = [
        (
            text(k.binary(Binary::Add, b, a)),
            "Kernel wrong, add(f32[3, 8], f32[4, 8]): the shapes do not go together. The second operand needs the shape of the first, or one element for each row, for each column, or for all.",
        ),
        (
            text(k.unary(Unary::Exp, b)),
            "Kernel wrong, exp(b: f32[3, 8]): Parameter 1 is `out` and the kernel reads it. Declare it `inout`.",
        ),
        (
            text(k.unary(Unary::Exp, n)),
            "Kernel wrong, exp(n: i32[4, 8]): The function is not defined for i32, the type of %3.",
        ),
        (
            text(k.matmul(a, h, None)),
            "Kernel wrong, matmul(a: f32[4, 8], h: f16[8, 4]): The element types of f32[4, 8] and f16[8, 4] differ. Convert one of them.",
        ),
        (
            text(k.matmul(a, a, None)),
            "Kernel wrong, matmul(a: f32[4, 8], a: f32[4, 8]): The shapes of f32[4, 8] and f32[4, 8] do not go together.",
        ),
        (
            text(k.store(a, a, [0, 0], None).map(|()| a)),
            "Kernel wrong, store(a: f32[4, 8]): Parameter 0 is `in` and the kernel writes it. Declare it `inout`.",
        ),
        (
            text(k.topk(a, 4)),
            "Kernel wrong, topk(a: f32[4, 8]): The shapes of f32[1, 64] and f32[4, 8] do not go together.",
        ),
    ];
    for (found, expected) in cases {
        assert_eq!(found, expected);
    }
    assert_eq!(
        k.finish().unwrap_err().to_string(),
        "Kernel wrong stores nothing. Store a tile to an `out` or `inout` parameter."
    );
    let mut k = KernelBuilder::new("wrong");
    assert!(matches!(k.tensor("a b", Direction::In, F32, [1, 1]), Err(KernelError::Name { .. })));
    assert!(matches!(k.tensor("a", Direction::In, F32, [0, 1]), Err(KernelError::Extents { .. })));
    assert!(matches!(
        k.tensor("a", Direction::In, F32, [1, 70_000]),
        Err(KernelError::Extents { .. })
    ));
}

#[test]
fn texts_that_are_no_kernel_say_where() {
    let text = |body: &str| format!("kernel k(x: inout f32[2, 2]) {{\n  {body}\n}}\n");
    for (body, line, column, message) in [
        ("%0 = load z : f32[2, 2]", 2, 13, "the kernel has no parameter `z`"),
        ("%1 = load x : f32[2, 2]", 2, 3, "the next value is %0"),
        ("%0 = load x : f32[2, 3]", 2, 25, "`load` gives f32[2, 2], and the text says f32[2, 3]"),
        ("%0 = load x", 2, 13, "`load` gives f32[2, 2], and the text says none"),
        ("%0 = exp : f32[2, 2]", 2, 22, "`exp` has too few operands"),
        ("%0 = exp %0, %1 : f32[2, 2]", 2, 29, "`exp` has 2 operands and takes 1"),
        ("%0 = exp %4 : f32[2, 2]", 2, 25, "No instruction before this one defines the value %4."),
        ("%0 = twist x : f32[2, 2]", 2, 14, "expected the end of this, found `x`"),
        ("%0 = constant 300 : u8", 2, 24, "u8 has no number 300"),
        ("%0 = constant 1e39 : f32", 2, 25, "f32 has no number 1e39"),
        ("%0 = constant 7e4 : f16", 2, 24, "f16 has no number 7e4"),
        ("%0 = constant ? : u8", 2, 17, "expected a number, found `?`"),
        ("store x, @", 2, 12, "'@' belongs to no word"),
    ] {
        let error = TileKernel::parse(&text(body)).unwrap_err();
        if body.contains("twist") {
            assert!(error.line == 2, "{error}");
            continue;
        }
        assert_eq!((error.line, error.message.as_str()), (line, message), "{body}");
        assert!(error.column.abs_diff(column) <= 3, "{body}: {error}");
    }
    assert!(TileKernel::parse("").is_err() && TileKernel::parse("kernel").is_err());
}

/// An operand among those that there are.
fn pick(random: &mut TestRng, operands: &[TileValue]) -> TileValue {
    operands[random.below(operands.len())]
}

/// Adds a random instruction; most fit, and those that do not are refused.
fn grow(k: &mut KernelBuilder, random: &mut TestRng, operands: &mut Vec<TileValue>) {
    let (a, b, c) = (pick(random, operands), pick(random, operands), pick(random, operands));
    let dtype = DType::ALL[random.below(12)];
    let result = match random.below(17) {
        0 => k.unary(Unary::ALL[random.below(14)], a),
        1 | 2 => k.binary(Binary::ALL[random.below(6)], a, b),
        3 => k.compare(Compare::ALL[random.below(6)], a, b),
        4 => k.select(a, b, c),
        5 => k.reduce(Reduce::ALL[random.below(5)], a),
        6 => k.convert(dtype, a),
        7 => k.matmul(a, b, (random.below(3) == 0).then_some(c)),
        8 => k.slice(a, random.below(2) == 0),
        9 => k.interleave(a, b),
        10 => k.broadcast(a, [4, 8]),
        11 => k.constant_bits(random.bits() >> (64 - 8 * dtype.bytes()), dtype),
        12 => k.constant(f64::from(random.normal()), dtype),
        13 => k.zeros(dtype, [4, 8]),
        14 => k.load(a, [random.below(2) as u16, 0], (random.below(2) == 0).then_some(b)),
        15 => k.spread(Binary::Mul, a, b, Spread::ALL[random.below(5)]),
        _ => k.iota(dtype, 8),
    };
    operands.extend(result);
}

#[test]
fn random_kernels_come_back_from_text_and_bytes() {
    let mut lengths = 0;
    for seed in 0..400 {
        let mut random = TestRng(seed);
        let mut k = KernelBuilder::new("random");
        let mut operands = Vec::new();
        for number in 0..3 {
            let dtype = DType::ALL[random.below(12)];
            let shape = [[4, 8], [4, 1], [8, 4]][random.below(3)];
            operands.push(k.tensor(&format!("p{number}"), Direction::InOut, dtype, shape).unwrap());
        }
        operands.push(k.scalar("s", DType::ALL[random.below(12)]).unwrap());
        let first = operands[0];
        for _ in 0..random.below(40) {
            grow(&mut k, &mut random, &mut operands);
        }
        let last = operands
            .iter()
            .rev()
            .find(|x| k.type_of(**x).has_shape_of(k.type_of(first)) && !k.type_of(**x).is_scalar);
        k.store(first, *last.unwrap(), [0, 0], None).unwrap();
        let kernel = k.finish().unwrap();
        lengths += kernel.ops().len();
        again(&kernel);
    }
    assert!(lengths > 400 * 10, "{lengths}");
}

#[test]
fn changed_texts_are_refused_or_kernels() {
    let mut k = KernelBuilder::new("mutated");
    let x = k.tensor("x", Direction::InOut, F32, [4, 8]).unwrap();
    let most = k.reduce(Reduce::RowMax, x).unwrap();
    let y = k.binary(Binary::Sub, x, most).unwrap();
    let z = k.load(x, [0, 1], None).unwrap();
    let z = k.binary(Binary::Add, y, z).unwrap();
    k.store(x, z, [0, 0], None).unwrap();
    let text = k.finish().unwrap().to_string();
    for seed in 0..4000 {
        let mut random = TestRng(seed);
        let mut bytes = text.clone().into_bytes();
        for _ in 0..=random.below(2) {
            let at = random.below(bytes.len());
            match random.below(3) {
                0 => bytes[at] = b" 0129afx%,:[]{}()=-.\n"[random.below(21)],
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, b"0%[{ex "[random.below(7)]),
            }
        }
        if let Ok(kernel) = TileKernel::parse(&String::from_utf8_lossy(&bytes)) {
            again(&kernel);
        }
    }
}
