//! Programs that were compiled apart, on tensors that stay on the device.

mod overlap;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use pto_host::abi::block::BlockContext;
use pto_host::abi::{CoreKind, Fault, FuncId, RuntimeVariant};
use pto_host::graph::{
    Arg, BuildError, Comparison, ElementType, GraphBuilder, Priority, StartMode, StreamBuilder,
    TaskSpec, TensorTask, builder_set,
};
use pto_host::session::{Session, SessionError, SessionOptions};
use pto_host::stitch::{
    HostTensor, Inputs, LoadedProgram, ProgramStream, Sequence, Step, StitchError, StitchOptions,
    Stitcher, Tensor,
};
use pto_host::virtual_time::VirtualOptions;
use pto_host::workloads::Workload;
use pto_host::workloads::program::{
    BlockShape, BuilderReference, Format, GraphArgument, GraphTask, MemorySpace, NativeKernel,
    NativeKernels, NativeObject, OwnedPredicate, Program, ProgramBody, Role, TensorDescription,
    TensorElement, TensorLayout,
};
use pto_host::workloads::tile::DType;
use pto_host::{Device, DeviceOptions, Error, Hosting, Kernel, func};

builder_set! {
    struct StitchingBuilders { "thrice" => thrice_as_graph }
    stream {
        "workload" => pto_host::graph::plan::expand,
        "thrice" => thrice,
        "add_rows" => overlap::add_rows,
        "hidden" => overlap::hidden,
        "as_it_reads" => overlap::as_it_reads,
        "add_ones" => overlap::add_ones,
    }
}

fn session_on(hosting: Hosting) -> Session {
    let options = DeviceOptions { aic: 4, aiv: 8, gm_bytes: 1 << 30, hosting };
    let mut device = Device::open_sim(options, StitchingBuilders).unwrap();
    device.register_library().unwrap();
    device.session(SessionOptions::default()).unwrap()
}

fn session() -> Session {
    session_on(Hosting::default())
}

fn compiled(text: &str) -> Program {
    Program::of_workload(&Workload::parse(text).unwrap().check().unwrap()).unwrap()
}

/// `Y = X + 1`, in tiles of 8 rows.
fn add_one(rows: u64) -> String {
    format!(
        "workload add_one {{
  schedule round_robin workers 1 window 8192 stall
  tensor X : f32[{rows}, 16]
  tensor Y : f32[{rows}, 16]
  kernel add(x: in f32[8, 16], y: out f32[8, 16]) {{
    %0 = load x : f32[8, 16]
    %1 = constant 1.0 : f32
    %2 = add %0, %1 by one : f32[8, 16]
    store y, %2
  }}
  do parallel i in dense {} {{ add[i](x = X[i * 8 for 8], y = Y[i * 8 for 8]) }}
}}",
        rows.div_ceil(8)
    )
}

/// Doubles X in place.
const DOUBLE: &str = "workload double {
  schedule round_robin workers 1 window 8192 stall
  tensor X : f32[32, 16]
  kernel double(x: inout f32[8, 16]) {
    %0 = load x : f32[8, 16]
    %1 = add %0, %0 : f32[8, 16]
    store x, %1
  }
  do parallel i in dense 4 { double[i](x = X[i * 8 for 8]) }
}";

fn numbers(count: u16) -> Vec<f32> {
    (0..count).map(f32::from).collect()
}

fn matrix(rows: u16, cols: u16) -> HostTensor {
    HostTensor::of_f32(&[rows.into(), cols.into()], &numbers(rows * cols)).unwrap()
}

fn values(stream: &ProgramStream, tensor: &Tensor) -> Vec<f32> {
    stream.to_host(tensor).unwrap().to_f32().unwrap()
}

/// Bytes of the largest piece of memory that is free.
fn largest_piece(session: &Session) -> u64 {
    let full = session.alloc(u64::MAX / 2).unwrap_err();
    let SessionError::Device(error) = &full else { panic!("{full}") };
    let Error::OutOfMemory { largest, .. } = **error else { panic!("{full}") };
    largest
}

#[test]
fn what_closed_streams_had_is_one_piece_again() {
    let session = session();
    let stitcher = Stitcher::new(&session).unwrap();
    let add = stitcher.load(compiled(&add_one(32))).unwrap();
    let run = || {
        let stream = stitcher.stream().unwrap();
        let x = stream.to_device(&matrix(32, 16), &TensorLayout::device()).unwrap();
        let y = stream.run(&add, Inputs::new().give("X", x)).unwrap().take("Y").unwrap();
        values(&stream, &y);
        // It is dropped after its stream.
        y
    };
    drop(run());
    let before = largest_piece(&session);
    for _ in 0..20 {
        drop(run());
    }
    let start = Instant::now();
    while largest_piece(&session) < before {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "{} of {before}",
            largest_piece(&session)
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn outputs_feed_the_next_program_and_nothing_is_copied() {
    let session = session();
    let stitcher = Stitcher::new(&session).unwrap();
    let (add, double) = (compiled(&add_one(32)), compiled(DOUBLE));
    // They come from files, as they would.
    let load = |program: &Program| {
        stitcher.load(Program::from_bytes(&program.to_bytes()).unwrap()).unwrap()
    };
    let (add, double) = (load(&add), load(&double));
    for overlap in [1, 5] {
        let stream = stitcher.overlapping_stream(overlap).unwrap();
        let mut x = stream.to_device(&matrix(32, 16), &TensorLayout::device()).unwrap();
        let round = |x: Tensor| {
            let mut sum = stream.run(&add, Inputs::new().give("X", x)).unwrap();
            let sum = sum.take("Y").unwrap();
            stream.run(&double, Inputs::new().give("X", sum)).unwrap().take("X").unwrap()
        };
        x = round(round(x));
        stream.synchronize().unwrap();
        let before = stitcher.counters();
        for _ in 0..6 {
            x = round(x);
        }
        stream.synchronize().unwrap();
        let used = stitcher.counters().since(&before);
        let mut expected = numbers(32 * 16);
        expected.iter_mut().for_each(|x| (0..8).for_each(|_| *x = (*x + 1.0) * 2.0));
        assert_eq!(values(&stream, &x), expected);
        assert_eq!((used.copied_bytes(), used.traffic.filled_bytes), (0, 0), "{used}");
        assert_eq!(
            (used.converted_bytes, used.allocations, used.bounced_bytes),
            (0, 0, 0),
            "{used}"
        );
        assert_eq!((used.runs, used.binding_hits), (12, 12), "{used}");
        assert_eq!(used.launches, if overlap == 1 { 12 } else { 3 }, "{used}");
        drop(x);
    }
}

/// Rows and columns, formats, and what a conversion of both is on the host.
#[test]
fn conversions_on_the_device_keep_every_element() {
    let session = session();
    let stitcher = Stitcher::new(&session).unwrap();
    let stream = stitcher.stream().unwrap();
    for (rows, cols) in [(32, 16), (20, 12), (1, 3), (70, 50)] {
        let shape = [u64::from(rows), u64::from(cols)];
        let formats = [
            Format::RowMajor,
            Format::column_major(&shape),
            Format::nz(4),
            Format::Tiles { rows: 4, cols: 12 },
            Format::Strided(vec![shape[1] + 3, 1]),
        ];
        let source = matrix(rows, cols);
        for from in &formats {
            let from = TensorLayout::device().with_format(from.clone());
            for to in &formats {
                let to = TensorLayout::device().with_format(to.clone());
                let first = stream.to_device(&source, &from).unwrap();
                let before = stitcher.counters();
                let second = stream.converted(&first, &to).unwrap();
                let used = stitcher.counters().since(&before);
                let is_same = from == to;
                let converted = if is_same { 0 } else { second.bytes() };
                assert_eq!(used.converted_bytes, converted, "{from} -> {to}");
                assert!(second.has_layout(&to));
                let back = stream.to_host(&second).unwrap();
                assert!(back == source, "{rows} x {cols}, {from} -> {to}");
            }
        }
    }
}

#[test]
fn tiles_are_filled_up_with_zeros_and_types_are_converted() {
    let session = session();
    let stitcher = Stitcher::new(&session).unwrap();
    let stream = stitcher.stream().unwrap();
    let nz = TensorLayout::device().with_format(Format::nz(4));
    // What the memory held before must not be seen.
    let ones = HostTensor::of_f32(&[512], &[1.0; 512]).unwrap();
    drop(stream.to_device(&ones, &TensorLayout::device()).unwrap());
    let source = matrix(20, 12);
    let tensor = stream.to_device(&source, &nz).unwrap();
    assert_eq!((tensor.bytes(), stitcher.counters().pool_hits), (2048, 1), "the same block");
    stream.synchronize().unwrap();
    let mut stored = vec![0; 2048];
    session.memory().copy_from_device(tensor.address(), &mut stored).unwrap();
    let of = |[n, m, c]: [usize; 3]| {
        let at = 4 * ((n * 32 + m) * 8 + c);
        f32::from_le_bytes(stored[at..at + 4].try_into().unwrap())
    };
    for (n, m, c) in (0..2).flat_map(|n| (0..32).flat_map(move |m| (0..8).map(move |c| (n, m, c))))
    {
        let is_there = m < 20 && 8 * n + c < 12;
        let expected = if is_there { numbers(240)[m * 12 + 8 * n + c] } else { 0.0 };
        assert_eq!(of([n, m, c]), expected, "{n} {m} {c}");
    }
    let half = stream.to_dtype(&tensor, DType::BF16).unwrap();
    let whole = stream.to_dtype(&half, DType::F32).unwrap();
    assert_eq!(stream.to_host(&whole).unwrap(), source, "numbers below 256 are exact in bf16");
    let cube = HostTensor::of_f32(&[2, 3, 4], &numbers(24)).unwrap();
    let cube = stream.to_device(&cube, &TensorLayout::device()).unwrap();
    let cube = stream.to_dtype(&cube, DType::I32).unwrap();
    let elements: Vec<u8> = (0..24_i32).flat_map(i32::to_le_bytes).collect();
    assert_eq!(stream.to_host(&cube).unwrap().bytes(), elements);
    let refused = stream.converted(&cube, &nz).unwrap_err().to_string();
    assert!(refused.contains("tiles need two dimensions"), "{refused}");
}

/// What a tensor of f32 holds in the memory of the device.
fn stored(session: &Session, tensor: &Tensor) -> Vec<f32> {
    let mut bytes = vec![0; usize::try_from(tensor.bytes()).unwrap()];
    session.memory().copy_from_device(tensor.address(), &mut bytes).unwrap();
    bytes.as_chunks().0.iter().map(|element| f32::from_le_bytes(*element)).collect()
}

#[test]
fn tiles_are_filled_up_with_the_value_of_their_layout() {
    let session = session();
    let stitcher = Stitcher::new(&session).unwrap();
    let stream = stitcher.stream().unwrap();
    let padding = f32::NEG_INFINITY.to_bits().into();
    let padded = TensorLayout { padding, ..TensorLayout::device().with_format(Format::nz(4)) };
    let source = matrix(20, 12);
    let fills = |found: &[f32]| {
        let all = (0..2 * 32 * 8).map(|at| (at / 256, at / 8 % 32, at % 8));
        let is_there = |(n, m, c): &(usize, usize, usize)| *m < 20 && 8 * n + c < 12;
        all.zip(found).all(|(at, found)| is_there(&at) || *found == f32::NEG_INFINITY)
    };
    let tensor = stream.to_device(&source, &padded).unwrap();
    let zeros = stream.zeros(DType::F32, &[20, 12], &padded).unwrap();
    stream.synchronize().unwrap();
    assert!(fills(&stored(&session, &tensor)) && fills(&stored(&session, &zeros)));
    assert_eq!(stored(&session, &zeros)[..8], [0.0; 8]);
    assert_eq!(stream.to_host(&tensor).unwrap(), source);
    // Other bits there are another layout, and a type of fewer bits has them converted.
    let nz = TensorLayout { padding: 0, ..padded.clone() };
    assert!(!tensor.has_layout(&nz));
    let plain = stream.converted(&tensor, &nz).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(stored(&session, &plain)[255], 0.0);
    let half = stream.to_dtype(&tensor, DType::F16).unwrap();
    assert_eq!(half.layout().padding, 0xfc00, "minus infinity in f16");
    let back = stream.to_dtype(&half, DType::F32).unwrap();
    stream.synchronize().unwrap();
    assert!(fills(&stored(&session, &back)) && back.has_layout(&padded));
    let error = stream.zeros(DType::F16, &[20, 12], &padded).unwrap_err().to_string();
    assert!(error.contains("bits 0xff800000, and an element of type f16 has 16 bits"), "{error}");
}

/// `Y[p] = X[row of p] + 1` for each p of a ragged axis.
const RAGGED: &str = "workload spread {
  schedule round_robin workers 1 window 8192 stall
  tensor X : f32[3, 16]
  tensor Y : f32[6, 16]
  kernel add(x: in f32[1, 16], y: out f32[1, 16]) {
    %0 = load x : f32[1, 16]
    %1 = constant 1.0 : f32
    %2 = add %0, %1 by one : f32[1, 16]
    store y, %2
  }
  do parallel p (row, at) in ragged(rows, lengths) { add[p](x = X[row], y = Y[p]) }
}";

/// Adds 1 to numbers of type i32.
const COUNT: &str = "workload count {
  schedule round_robin workers 1 window 8192 stall
  tensor C : i32[1, 3]
  kernel count(c: inout i32[1, 3]) {
    %0 = load c : i32[1, 3]
    %1 = constant 1 : i32
    %2 = add %0, %1 by one : i32[1, 3]
    store c, %2
  }
  do parallel i in dense 1 { count[i](c = C) }
}";

#[test]
fn arrays_of_axes_are_tensors_of_the_stream() {
    for hosting in
        [Hosting::default(), Hosting::Threads, Hosting::Virtual(VirtualOptions::default())]
    {
        let session = session_on(hosting);
        let stitcher = Stitcher::new(&session).unwrap();
        let (spread, count) =
            (stitcher.load(compiled(RAGGED)).unwrap(), stitcher.load(compiled(COUNT)).unwrap());
        let stream = stitcher.overlapping_stream(8).unwrap();
        let of_lengths = |lengths: [i32; 3]| {
            let bytes = lengths.iter().flat_map(|length| length.to_le_bytes()).collect();
            let lengths = HostTensor::new(DType::I32, &[1, 3], bytes).unwrap();
            stream.to_device(&lengths, &TensorLayout::device()).unwrap()
        };
        let x = stream.to_device(&matrix(3, 16), &TensorLayout::device()).unwrap();
        let inputs =
            |array| Inputs::new().borrow("X", &x).array("lengths", array).symbol("rows", 3);
        // A program of the same stream computes the lengths: 2, 1, 3.
        let mut lengths = of_lengths([1, 0, 2]);
        stream.run(&count, Inputs::new().update("C", &mut lengths)).unwrap();
        let y = stream.run(&spread, inputs(&lengths)).unwrap().take("Y").unwrap();
        let rows: Vec<_> = values(&stream, &y).chunks(16).map(|row| row[0]).collect();
        assert_eq!(rows, [1.0, 1.0, 17.0, 33.0, 33.0, 33.0], "{hosting}");

        let error = refused(&stream, &spread, Inputs::new().borrow("X", &x).symbol("rows", 3));
        assert!(error.contains("the array lengths is not bound"), "{error}");
        let error = refused(&stream, &spread, inputs(&x));
        assert!(
            error.contains(
                "needs the array lengths as i32, side by side, and the tensor is f32[3, 16]"
            ),
            "{error}"
        );
        let error = refused(
            &stream,
            &count,
            Inputs::new().update("C", &mut of_lengths([0; 3])).array("n", &lengths),
        );
        assert!(error.contains("has no array n"), "{error}");
        let other = stitcher.stream().unwrap();
        let foreign = other.zeros(DType::I32, &[3], &TensorLayout::device()).unwrap();
        let error = refused(&stream, &spread, inputs(&foreign));
        assert!(error.contains("stream.take_over(tensor, &other)"), "{error}");
        // Five lengths of three are reported when the plan is expanded.
        stream.run(&spread, inputs(&lengths).symbol("rows", 5)).unwrap();
        let Err(StitchError::Fault { fault, .. }) = stream.synchronize() else {
            panic!("there are three lengths")
        };
        assert!(fault.to_string().contains('3'), "{fault}");
    }
}

/// `Y[at] = X[e] + 1` for each index of a sparse axis, whose number is `at`.
fn sparse() -> String {
    let head =
        RAGGED.replace("workload spread", "workload gather").replace("f32[6, 16]", "f32[3, 16]");
    let body =
        "do select e (row, at) in sparse(rows, indptr, indices) { add[e](x = X[e], y = Y[at]) }";
    format!("{}{body}\n}}", head.split("do parallel").next().unwrap())
}

#[test]
fn both_arrays_of_a_sparse_axis_are_tensors_of_the_stream() {
    for hosting in
        [Hosting::default(), Hosting::Threads, Hosting::Virtual(VirtualOptions::default())]
    {
        let session = session_on(hosting);
        let stitcher = Stitcher::new(&session).unwrap();
        let (gather, count) =
            (stitcher.load(compiled(&sparse())).unwrap(), stitcher.load(compiled(COUNT)).unwrap());
        let stream = stitcher.overlapping_stream(8).unwrap();
        let array = |shape: &[u64], values: &[i32]| {
            let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            let values = HostTensor::new(DType::I32, shape, bytes).unwrap();
            stream.to_device(&values, &TensorLayout::device()).unwrap()
        };
        let x = stream.to_device(&matrix(3, 16), &TensorLayout::device()).unwrap();
        // Rows of 2, 0 and 1 indices. A program of the same stream computes the indices: 2, 0, 1.
        let indptr = array(&[4], &[0, 2, 2, 3]);
        let mut indices = array(&[1, 3], &[1, -1, 0]);
        stream.run(&count, Inputs::new().update("C", &mut indices)).unwrap();
        let inputs = |indices| {
            let inputs = Inputs::new().borrow("X", &x).symbol("rows", 3);
            inputs.array("indptr", &indptr).array("indices", indices)
        };
        let y = stream.run(&gather, inputs(&indices)).unwrap().take("Y").unwrap();
        let rows: Vec<_> = values(&stream, &y).chunks(16).map(|row| row[0]).collect();
        assert_eq!(rows, [33.0, 1.0, 17.0], "{hosting}");

        let without = Inputs::new().borrow("X", &x).symbol("rows", 3).array("indptr", &indptr);
        let error = refused(&stream, &gather, without);
        assert!(error.contains("the array indices is not bound"), "{error}");
        // An index beyond the rows of X is reported when the plan is expanded.
        let beyond = array(&[1, 3], &[0, 3, 1]);
        stream.run(&gather, inputs(&beyond)).unwrap();
        let Err(StitchError::Fault { program, .. }) = stream.synchronize() else {
            panic!("there are three rows")
        };
        assert_eq!(program, "gather");
    }
}

fn refused(stream: &ProgramStream, program: &LoadedProgram, inputs: Inputs<'_>) -> String {
    stream.run(program, inputs).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn a_wrong_tensor_is_refused_with_what_to_do() {
    let session = session();
    let stitcher = Stitcher::new(&session).unwrap();
    let (add, double) =
        (stitcher.load(compiled(&add_one(32))).unwrap(), stitcher.load(compiled(DOUBLE)).unwrap());
    let stream = stitcher.stream().unwrap();
    let columns = TensorLayout::device().with_format(Format::column_major(&[32, 16]));
    let x = stream.to_device(&matrix(32, 16), &columns).unwrap();
    let error = refused(&stream, &add, Inputs::new().borrow("X", &x));
    assert!(error.contains("stream.to_layout(tensor, &program.input_layout(\"X\")?)"), "{error}");
    let x = stream.to_layout(x, &add.input_layout("X").unwrap()).unwrap();
    let address = x.address();
    let x = stream.to_layout(x, &add.input_layout("X").unwrap()).unwrap();
    assert_eq!(x.address(), address, "nothing was to be done");
    assert!(stream.run(&add, Inputs::new().borrow("X", &x)).is_ok());

    let error = refused(&stream, &add, Inputs::new());
    assert!(error.contains("needs X, which was not given; use inputs.borrow"), "{error}");
    let error = refused(&stream, &add, Inputs::new().borrow("X", &x).borrow("Q", &x));
    assert!(error.contains("no tensor Q that can be given or taken; it has X, Y"), "{error}");
    let error = refused(&stream, &add, Inputs::new().borrow("X", &x).borrow("Y", &x));
    assert!(error.contains("Y is an output, and was borrowed; use into"), "{error}");
    let error = refused(&stream, &double, Inputs::new().borrow("X", &x));
    assert!(error.contains("use update or give, because the program changes it"), "{error}");
    let error = refused(&stream, &add, Inputs::new().borrow("X", &x).size("n", 3));
    assert!(error.contains("no size n"), "{error}");
    let small = stream.to_device(&matrix(8, 16), &TensorLayout::device()).unwrap();
    let error = refused(&stream, &add, Inputs::new().borrow("X", &small));
    assert!(error.contains("needs X as f32[32, 16], and the tensor is f32[8, 16]"), "{error}");

    let other = stitcher.stream().unwrap();
    let error = refused(&other, &add, Inputs::new().borrow("X", &x));
    assert!(error.contains("stream.take_over(tensor, &other)"), "{error}");
    let x = other.take_over(x, &stream).unwrap();
    assert!(other.run(&add, Inputs::new().borrow("X", &x)).is_ok());
    let session = self::session();
    let elsewhere = Stitcher::new(&session).unwrap();
    let foreign = elsewhere.load(compiled(&add_one(32))).unwrap();
    let error = refused(&other, &foreign, Inputs::new().borrow("X", &x));
    assert!(error.contains("belongs to another session"), "{error}");
    let refused =
        stitcher.load(compiled(DOUBLE).for_target("a5").unwrap()).map(|_| ()).unwrap_err();
    assert!(refused.to_string().contains("target 'a5'"), "{refused}");
}

#[test]
fn a_fault_is_reported_in_the_words_of_the_program() {
    let text = include_str!("../../../../workload/tests/texts/indexed.workload");
    let session = session();
    let stitcher = Stitcher::new(&session).unwrap();
    let program = stitcher.load(compiled(text)).unwrap();
    let stream = stitcher.overlapping_stream(4).unwrap();
    stream.run(&program, Inputs::new()).unwrap();
    stream.run(&program, Inputs::new().size("n", 5)).unwrap();
    let Err(StitchError::Fault { program: name, fault }) = stream.synchronize() else {
        panic!("a fault of the program")
    };
    assert_eq!(name, "indexed");
    assert!(
        fault.to_string().contains("with i = 4: the index is 4, and the dimension has 4"),
        "{fault}"
    );
    session.reset().unwrap();
    let stream = stitcher.stream().unwrap();
    stream.run(&program, Inputs::new()).unwrap();
    stream.synchronize().unwrap();

    // A kernel that faults lets the launch end as if nothing was: the record says so.
    let small = "workload small {
  schedule round_robin workers 1 window 8192 stall
  tensor X : f32[12, 16]
  tensor Y : f32[16, 16]
  kernel copy(x: in f32[8, 16], y: out f32[8, 16]) {
    %0 = load x : f32[8, 16]
    store y, %0
  }
  do parallel i in dense 2 { copy[i](x = X[i * 8 for 8], y = Y[i * 8 for 8]) }
}";
    let small = stitcher.load(compiled(small)).unwrap();
    let x = stream.to_device(&matrix(12, 16), &TensorLayout::device()).unwrap();
    let y = stream.run(&small, Inputs::new().borrow("X", &x)).unwrap().take("Y").unwrap();
    let error = stream.to_host(&y).unwrap_err().to_string();
    assert!(error.contains("program small") && error.contains("store"), "{error}");
    assert_eq!(values(&stream, &x), numbers(12 * 16), "the fault is reported once");
}

#[test]
fn what_finds_no_room_on_the_chip_is_counted_as_bounced() {
    let session = session();
    let options = StitchOptions { on_chip_bytes: 3072 };
    let stitcher = Stitcher::with_options(&session, options).unwrap();
    let stream = stitcher.stream().unwrap();
    let on_chip = |program: Program, name: &str| {
        program.with_tensor(name, |tensor| tensor.layout.memory = MemorySpace::OnChip).unwrap()
    };
    let add = on_chip(on_chip(compiled(&add_one(32)), "X"), "Y");
    let add = stitcher.load(add).unwrap();
    let on_chip = TensorLayout::device().with_memory(MemorySpace::OnChip);
    let x = stream.to_device(&matrix(32, 16), &on_chip).unwrap();
    assert!(!x.is_bounced() && x.has_layout(&on_chip));
    let mut outputs = stream.run(&add, Inputs::new().borrow("X", &x)).unwrap();
    let y = outputs.take("Y").unwrap();
    assert!(y.is_bounced(), "two tensors of 2,048 bytes do not fit 3,072");
    assert_eq!(stitcher.counters().bounced_bytes, 2048);
    assert_eq!(values(&stream, &y), numbers(512).iter().map(|x| x + 1.0).collect::<Vec<_>>());
    drop((x, y));
    let x = stream.to_device(&matrix(32, 16), &on_chip).unwrap();
    assert!(!x.is_bounced(), "its memory is free again");
}

/// What lies in the fast region costs what the profile says, and what found no room there costs what memory does.
#[test]
fn tensors_on_the_chip_save_time_as_the_profile_says() {
    // Tiles of 64 KiB: moving them takes longer than what a schedule gains or loses by chance.
    const ROWS: u16 = 2048;
    let took = |place, on_chip_bytes| {
        let session = session_on(Hosting::Virtual(VirtualOptions::default()));
        let options = StitchOptions { on_chip_bytes };
        let stitcher = Stitcher::with_options(&session, options).unwrap();
        let stream = stitcher.stream().unwrap();
        let mut add = compiled(
            &add_one(ROWS.into())
                .replace("[8, 16]", "[1024, 16]")
                .replace("8 for 8", "1024 for 1024")
                .replace("dense 256", "dense 2"),
        );
        for name in ["X", "Y"] {
            add = add.with_tensor(name, |tensor| tensor.layout.memory = place).unwrap();
        }
        let add = stitcher.load(add).unwrap();
        let mut x = stream.to_device(&matrix(ROWS, 16), &add.input_layout("X").unwrap()).unwrap();
        stream.synchronize().unwrap();
        let before = session.now();
        for _ in 0..16 {
            let inputs = Inputs::new().grain(1).give("X", x);
            x = stream.run(&add, inputs).unwrap().take("Y").unwrap();
        }
        stream.synchronize().unwrap();
        (
            (session.now() - before).as_nanos(),
            stitcher.counters().bounced_bytes,
            values(&stream, &x),
        )
    };
    let (memory, none, expected) = took(MemorySpace::Device, 4 << 20);
    let (bounced, bytes, of_bounced) = took(MemorySpace::OnChip, 0);
    let (fast, not_bounced, of_fast) = took(MemorySpace::OnChip, 4 << 20);
    assert_eq!((none, bytes, not_bounced), (0, 16 * 2 * u64::from(ROWS) * 16 * 4, 0));
    assert_eq!(bounced, memory, "what is not there costs what memory does");
    assert!(fast < memory, "{fast} of {memory} ns");
    assert!(of_bounced == expected && of_fast == expected);
}

/// The same for a kernel of the library, in a graph: the model of its costs knows its tensors by the kernels' table.
#[test]
fn tensors_on_the_chip_save_time_for_kernels_of_the_library() {
    const ROWS: u16 = 1 << 10;
    let elements = u64::from(ROWS) * 16;
    let took = |place, on_chip_bytes| {
        let session = session_on(Hosting::Virtual(VirtualOptions::default()));
        let options = StitchOptions { on_chip_bytes };
        let stitcher = Stitcher::with_options(&session, options).unwrap();
        let stream = stitcher.stream().unwrap();
        let tensors = [("x", Role::Input), ("y", Role::Output)].map(|(name, role)| {
            let mut described = tensor(name, role);
            described.shape = vec![ROWS.into(), 16];
            described.layout = described.layout.with_memory(place);
            described
        });
        let twice = GraphTask {
            kernel: "add".to_owned(),
            kind: CoreKind::AIV,
            args: [0, 0, 1]
                .map(|tensor| GraphArgument::Tensor { tensor, offset: 0 })
                .into_iter()
                .chain([GraphArgument::Word(elements)])
                .collect(),
            producers: Vec::new(),
            block_shape: BlockShape::plain(),
        };
        let program =
            Program::new("twice", ProgramBody::Graph(vec![twice]), tensors.to_vec()).unwrap();
        let program = stitcher.load(program).unwrap();
        let mut x =
            stream.to_device(&matrix(ROWS, 16), &program.input_layout("x").unwrap()).unwrap();
        stream.synchronize().unwrap();
        let before = session.now();
        for _ in 0..4 {
            x = stream.run(&program, Inputs::new().give("x", x)).unwrap().take("y").unwrap();
        }
        stream.synchronize().unwrap();
        ((session.now() - before).as_nanos(), values(&stream, &x))
    };
    let (memory, expected) = took(MemorySpace::Device, 1 << 20);
    let (bounced, of_bounced) = took(MemorySpace::OnChip, 0);
    let (fast, of_fast) = took(MemorySpace::OnChip, 1 << 20);
    assert_eq!(bounced, memory, "what is not there costs what memory does");
    assert!(fast + 2_000 < memory, "{fast} of {memory} ns");
    assert!(of_bounced == expected && of_fast == expected);
}

/// A tensor of a program: 32 rows of 16 elements.
fn tensor(name: &str, role: Role) -> TensorDescription {
    TensorDescription {
        name: name.to_owned(),
        role,
        dtype: DType::F32,
        shape: vec![32, 16],
        layout: TensorLayout::device(),
        begins_with_zeros: false,
    }
}

/// The step that a program of a graph file does: two tasks of the library with an edge.
#[test]
fn a_graph_is_a_program_like_any_other() {
    let add = |from: usize, to: usize, producers: &[usize]| GraphTask {
        kernel: "add".to_owned(),
        kind: CoreKind::AIV,
        args: [from, from, to]
            .map(|tensor| GraphArgument::Tensor { tensor, offset: 0 })
            .into_iter()
            .chain([GraphArgument::Word(512)])
            .collect(),
        producers: producers.to_vec(),
        block_shape: BlockShape::plain(),
    };
    let tensors =
        vec![tensor("x", Role::Input), tensor("twice", Role::Temporary), tensor("y", Role::Output)];
    let tasks = vec![add(0, 1, &[]), add(1, 2, &[0])];
    let program = Program::new("four_times", ProgramBody::Graph(tasks), tensors).unwrap();
    let program = Program::from_bytes(&program.to_bytes()).unwrap();
    let session = session();
    let stitcher = Stitcher::new(&session).unwrap();
    let (graph, plan) =
        (stitcher.load(program).unwrap(), stitcher.load(compiled(&add_one(32))).unwrap());
    let stream = stitcher.overlapping_stream(8).unwrap();
    let x = stream.to_device(&matrix(32, 16), &TensorLayout::device()).unwrap();
    let mut first = stream.run(&plan, Inputs::new().give("X", x)).unwrap();
    let mut second = stream.run(&graph, Inputs::new().give("x", first.take("Y").unwrap())).unwrap();
    let y = second.take("y").unwrap();
    let error = refused(&stream, &graph, Inputs::new().borrow("x", &y).size("n", 3));
    assert!(error.contains("program four_times") && error.contains("no size n"), "{error}");
    let mut third = stream.run(&plan, Inputs::new().give("X", y)).unwrap();
    let expected: Vec<_> = numbers(512).iter().map(|x| (x + 1.0) * 4.0 + 1.0).collect();
    assert_eq!(values(&stream, &third.take("Y").unwrap()), expected);
}

/// What was captured of two streams is a program: it goes through a file, and runs in another session on other tensors.
#[test]
fn a_recording_is_a_program_like_any_other() {
    let described = |name: &str, role| TensorDescription {
        name: name.to_owned(),
        role,
        dtype: DType::F32,
        shape: vec![64],
        layout: TensorLayout::device(),
        begins_with_zeros: false,
    };
    let session_of_capture = session();
    let [x, y] = [0; 2].map(|_| session_of_capture.zeroed::<f32>(64).unwrap());
    let (stream, other) =
        (session_of_capture.stream().unwrap(), session_of_capture.stream().unwrap());
    let (fork, join) = (session_of_capture.event().unwrap(), session_of_capture.event().unwrap());
    let [of_x, of_y] = [&x, &y].map(|buffer| buffer.address().0);
    let add = |from, value: f32, to, len| [from, value.to_bits().into(), to, len];
    stream.begin_capture().unwrap();
    stream.launch(func::ADD_SCALAR, &add(of_x, 1.0, of_y, 64)).unwrap();
    stream.record(&fork).unwrap();
    other.wait(&fork).unwrap();
    other.launch(func::ADD_SCALAR, &add(of_y, 10.0, of_y, 32)).unwrap();
    other.record(&join).unwrap();
    stream.launch(func::ADD_SCALAR, &add(of_y + 128, 20.0, of_y + 128, 32)).unwrap();
    stream.wait(&join).unwrap();
    stream.launch_blocks(func::EMPTY_AIV, 3, &[]).unwrap();
    stream.launch(func::ADD, &[of_y, of_x, of_y, 64]).unwrap();
    let recording = stream.end_capture().unwrap();

    let stitcher = Stitcher::new(&session_of_capture).unwrap();
    let tensors =
        [(described("X", Role::Input), x.address()), (described("Y", Role::Output), y.address())];
    let program = stitcher.program_of("captured", &recording, &tensors).unwrap();
    let missing = stitcher.program_of("captured", &recording, &tensors[..1]).unwrap_err();
    let error = missing.to_string();
    assert!(
        error.contains("task 0 of the recording") && error.contains("none of the tensors"),
        "{error}"
    );
    let file = program.to_bytes();

    for hosting in
        [Hosting::default(), Hosting::Threads, Hosting::Virtual(VirtualOptions::default())]
    {
        let session = session_on(hosting);
        let stitcher = Stitcher::new(&session).unwrap();
        let loaded = stitcher.load(Program::from_bytes(&file).unwrap()).unwrap();
        let stream = stitcher.stream().unwrap();
        let given = HostTensor::of_f32(&[64], &numbers(64)).unwrap();
        let x = stream.to_device(&given, &loaded.input_layout("X").unwrap()).unwrap();
        let y = stream.run(&loaded, Inputs::new().borrow("X", &x)).unwrap().take("Y").unwrap();
        let expected = numbers(64).into_iter().enumerate();
        let expected = expected.map(|(at, x)| x + 1.0 + if at < 32 { 10.0 } else { 20.0 } + x);
        assert_eq!(values(&stream, &y), expected.collect::<Vec<_>>(), "{hosting}");
    }
}

extern "C" fn twice(args: *const u64) {
    // SAFETY: the task has three words.
    let [from, to, count] = *unsafe { &*args.cast::<[u64; 3]>() };
    for at in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: both tensors have so many elements.
        let value = unsafe { (from as *const f32).wrapping_add(at).read() };
        // SAFETY: as above.
        unsafe { (to as *mut f32).wrapping_add(at).write(2.0 * value) };
    }
}

/// A kernel of one's own says nothing of its words: those that lie in a tensor are addresses.
#[test]
fn a_recording_with_kernels_of_ones_own_is_a_program() {
    let kernel = || Kernel::from_fn("twice", CoreKind::AIV, twice);
    let options = DeviceOptions { gm_bytes: 1 << 30, aic: 4, aiv: 8, ..DeviceOptions::default() };
    let mut device = Device::open_sim(options, StitchingBuilders).unwrap();
    device.register_library().unwrap();
    device.register_kernel(FuncId(500), kernel()).unwrap();
    let of_capture = device.session(SessionOptions::default()).unwrap();
    let [x, y] = [0; 2].map(|_| of_capture.zeroed::<f32>(64).unwrap());
    let [of_x, of_y] = [&x, &y].map(|buffer| buffer.address().0);
    let stream = of_capture.stream().unwrap();
    stream.begin_capture().unwrap();
    stream.launch(FuncId(500), &[of_x, of_y, 64]).unwrap();
    let one = u64::from(1.0_f32.to_bits());
    stream.launch(func::ADD_SCALAR, &[of_y, one, of_y, 64]).unwrap();
    stream.launch(FuncId(500), &[of_y + 128, of_y + 128, 32]).unwrap();
    let recording = stream.end_capture().unwrap();

    let described = |name: &str, role| TensorDescription {
        name: name.to_owned(),
        role,
        dtype: DType::F32,
        shape: vec![64],
        layout: TensorLayout::device(),
        begins_with_zeros: false,
    };
    let tensors =
        [(described("X", Role::Input), x.address()), (described("Y", Role::Output), y.address())];
    let stitcher = Stitcher::new(&of_capture).unwrap();
    let native = |kind| {
        let kernels = vec![NativeKernel { name: "twice".to_owned(), kind }];
        let object = NativeObject { processor: "any".to_owned(), code: vec![1] };
        NativeKernels::new(kernels, vec![object]).unwrap()
    };
    let own = native(CoreKind::AIV);
    let text_of = |refused: Result<Program, StitchError>| refused.unwrap_err().to_string();
    let plain = text_of(stitcher.program_of("captured", &recording, &tensors));
    assert!(
        plain.contains("runs kernel twice (func id 500) on aiv cores, which is none"),
        "{plain}"
    );
    let kind =
        text_of(stitcher.program_with_native("p", &recording, &tensors, native(CoreKind::AIC)));
    assert!(kind.contains("none that was given"), "{kind}");
    let less = text_of(stitcher.program_with_native("p", &recording, &tensors[..1], own.clone()));
    assert!(
        less.contains("as argument 1 of twice, which lies in the memory of the device"),
        "{less}"
    );
    let program = stitcher.program_with_native("p", &recording, &tensors, own).unwrap();
    let file = program.to_bytes();

    for hosting in
        [Hosting::default(), Hosting::Threads, Hosting::Virtual(VirtualOptions::default())]
    {
        let session = session_on(hosting);
        let stitcher = Stitcher::new(&session).unwrap();
        let program = Program::from_bytes(&file).unwrap();
        let loaded = stitcher.load_with(program, vec![kernel()]).unwrap();
        let stream = stitcher.stream().unwrap();
        let given = HostTensor::of_f32(&[64], &numbers(64)).unwrap();
        let x = stream.to_device(&given, &TensorLayout::device()).unwrap();
        let y = stream.run(&loaded, Inputs::new().borrow("X", &x)).unwrap().take("Y").unwrap();
        let expected = numbers(64).into_iter().enumerate();
        let expected = expected.map(|(at, x)| (2.0 * x + 1.0) * if at < 32 { 1.0 } else { 2.0 });
        assert_eq!(values(&stream, &y), expected.collect::<Vec<_>>(), "{hosting}");
    }
}

/// `Y = X + X + X` in two tasks of the library. Its words are both tensors, and how many elements they have.
fn thrice<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let &[x, y, count] = stream.orch_args() else { return Err(Fault::BUILD_FAILED.into()) };
    let args = [x, x, y, count].map(Arg::Scalar);
    let first = stream.submit_tensors(&TensorTask::new(func::ADD, CoreKind::AIV, &args))?;
    let args = [y, x, y, count].map(Arg::Scalar);
    stream.submit_tensors(&TensorTask::new(func::ADD, CoreKind::AIV, &args).after(&[first]))?;
    Ok(())
}

/// The same, as a graph.
fn thrice_as_graph<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let &[x, y, count] = graph.orch_args() else { return Err(Fault::BUILD_FAILED.into()) };
    let first = graph.submit(TaskSpec::new(func::ADD, CoreKind::AIV, &[x, x, y, count]), &[])?;
    graph.submit(TaskSpec::new(func::ADD, CoreKind::AIV, &[y, x, y, count]), &[first])?;
    Ok(())
}

#[test]
fn a_program_may_name_a_builder_of_the_device() {
    let reference = |name: &str, variant, words: u64| {
        let tensors = [0, 1].map(|tensor| GraphArgument::Tensor { tensor, offset: 0 });
        let words = tensors.into_iter().chain((0..words).map(|_| GraphArgument::Word(512)));
        let reference = BuilderReference { name: name.to_owned(), variant, words: words.collect() };
        let tensors = vec![tensor("X", Role::Input), tensor("Y", Role::Output)];
        let program = Program::new("of_builder", ProgramBody::Builder(reference), tensors).unwrap();
        Program::from_bytes(&program.to_bytes()).unwrap()
    };
    let variants = [RuntimeVariant::AICPU_BUILD_GRAPH, RuntimeVariant::TENSORMAP_AND_RINGBUFFER];
    for hosting in
        [Hosting::default(), Hosting::Threads, Hosting::Virtual(VirtualOptions::default())]
    {
        let session = session_on(hosting);
        let stitcher = Stitcher::new(&session).unwrap();
        let stream = stitcher.overlapping_stream(4).unwrap();
        let add = stitcher.load(compiled(&add_one(32))).unwrap();
        for variant in variants {
            let builder = stitcher.load(reference("thrice", variant, 1)).unwrap();
            let x = stream.to_device(&matrix(32, 16), &TensorLayout::device()).unwrap();
            let x = stream.run(&add, Inputs::new().give("X", x)).unwrap().take("Y").unwrap();
            let y = stream.run(&builder, Inputs::new().give("X", x)).unwrap().take("Y").unwrap();
            let y = stream.run(&add, Inputs::new().give("X", y)).unwrap().take("Y").unwrap();
            let expected: Vec<_> = numbers(512).iter().map(|x| (x + 1.0) * 3.0 + 1.0).collect();
            assert_eq!(values(&stream, &y), expected, "{hosting} {variant}");
        }
    }
    let session = session();
    let stitcher = Stitcher::new(&session).unwrap();
    let missing = stitcher.load(reference("once", variants[0], 1)).map(|_| ()).unwrap_err();
    let missing = missing.to_string();
    assert!(missing.contains("builder once, which a2a3sim does not have"), "{missing}");
    assert!(missing.contains("one of: thrice"), "{missing}");
    // What the builder itself refuses is reported by the stream.
    let less = stitcher.load(reference("thrice", variants[1], 0)).unwrap();
    let stream = stitcher.stream().unwrap();
    let x = stream.to_device(&matrix(32, 16), &TensorLayout::device()).unwrap();
    let _ = stream.run(&less, Inputs::new().borrow("X", &x)).unwrap();
    let error = stream.synchronize().unwrap_err().to_string();
    assert!(error.contains("BUILD_FAILED"), "{error}");
}

/// Both programs as one.
fn both(rows: u64) -> String {
    let tiles = rows.div_ceil(8);
    let one = add_one(rows);
    let head = one.split("  do ").next().unwrap().replace("workload add_one", "workload both");
    let head = head.replace("  kernel", &format!("  tensor Z : f32[{rows}, 16]\n  kernel"));
    format!(
        "{head}  do sequential {{
    parallel i in dense {tiles} {{ add[i](x = X[i * 8 for 8], y = Y[i * 8 for 8]) }}
    parallel i in dense {tiles} {{ add[i](x = Y[i * 8 for 8], y = Z[i * 8 for 8]) }}
  }}
}}"
    )
}

/// Each call a task, and as many calls in a dispatch as the device thinks right; on few cores and on many.
#[test]
fn two_stitched_programs_overlap_as_one_does() {
    const ROWS: u64 = 8 * 100;
    let ones = vec![1.0; usize::try_from(ROWS * 16).unwrap()];
    let input = HostTensor::of_f32(&[ROWS, 16], &ones).unwrap();
    let (add, both) = (compiled(&add_one(ROWS)), compiled(&both(ROWS)));
    for (grain, aiv) in [(1, 8), (0, 8), (0, 48)] {
        let makespan = |programs: &[&Program], overlap| {
            let hosting = Hosting::Virtual(VirtualOptions::default());
            let options = DeviceOptions { aic: aiv / 2, aiv, gm_bytes: 1 << 30, hosting };
            let mut device = Device::open_sim(options, StitchingBuilders).unwrap();
            device.register_library().unwrap();
            let session = device.session(SessionOptions::default()).unwrap();
            let stitcher = Stitcher::new(&session).unwrap();
            let stream = stitcher.overlapping_stream(overlap).unwrap();
            let mut x = stream.to_device(&input, &TensorLayout::device()).unwrap();
            stream.synchronize().unwrap();
            let before = session.now();
            for program in programs {
                let loaded = stitcher.load((*program).clone()).unwrap();
                let inputs = Inputs::new().grain(grain).give("X", x);
                let mut outputs = stream.run(&loaded, inputs).unwrap();
                x = outputs.take(if programs.len() == 1 { "Z" } else { "Y" }).unwrap();
            }
            stream.synchronize().unwrap();
            let took = (session.now() - before).as_secs_f64();
            let z = values(&stream, &x);
            assert!(z.iter().all(|z| (*z - 3.0).abs() < f32::EPSILON));
            took
        };
        let one = makespan(&[&both], 1);
        let (overlapped, apart) = (makespan(&[&add, &add], 2), makespan(&[&add, &add], 1));
        println!(
            "grain {grain}, {aiv} cores: one program {one:.9} s, stitched {overlapped:.9} s, apart {apart:.9} s"
        );
        assert!(overlapped <= 1.05 * one, "grain {grain}, {aiv}: {overlapped} of {one}");
        assert!(apart > overlapped, "without overlap the second one waits: {apart}");
    }
}

/// Strides of three dimensions and more, in any order of the dimensions and with gaps, to row-major, to each other, and to other element types.
#[test]
fn strided_tensors_of_more_dimensions_are_converted() {
    let session = session();
    let stitcher = Stitcher::new(&session).unwrap();
    let stream = stitcher.stream().unwrap();
    for (shape, strides) in [
        (vec![3, 4, 5], vec![vec![20, 5, 1], vec![1, 3, 12], vec![40, 1, 4], vec![64, 16, 3]]),
        (vec![2, 3, 70, 66], vec![vec![1, 2, 6, 420], vec![13_860, 1, 198, 3]]),
        (vec![2, 2, 3, 2, 5], vec![vec![60, 30, 10, 5, 1], vec![1, 2, 4, 12, 24]]),
    ] {
        let count = shape.iter().product::<u64>();
        let numbers = numbers(u16::try_from(count).unwrap());
        let source = HostTensor::of_f32(&shape, &numbers).unwrap();
        let formats = strides.into_iter().map(Format::Strided).chain([Format::RowMajor]);
        let layouts: Vec<_> = formats
            .map(|format| TensorLayout::device().with_format(format.normal(&shape)))
            .collect();
        for from in &layouts {
            let first = stream.to_device(&source, from).unwrap();
            for to in &layouts {
                let second = stream.converted(&first, to).unwrap();
                assert!(second.has_layout(to));
                assert!(stream.to_host(&second).unwrap() == source, "{shape:?}: {from} -> {to}");
            }
            let wide = stream.to_dtype(&first, DType::F64).unwrap();
            let back = stream.to_dtype(&wide, DType::F32).unwrap();
            assert!(stream.to_host(&back).unwrap() == source, "{shape:?}: {from}");
        }
    }
}

/// Every element type becomes every other one.
#[test]
fn every_element_type_is_converted_to_every_other_one() {
    let session = session();
    let stitcher = Stitcher::new(&session).unwrap();
    let stream = stitcher.stream().unwrap();
    // Every type has these numbers.
    let numbers = [0.0_f32, 1.0, 2.0, 3.0, 64.0, 100.0, 126.0];
    let floats = HostTensor::of_f32(&[7], &numbers).unwrap();
    for from in DType::ALL {
        let first = stream.to_device(&floats, &TensorLayout::device()).unwrap();
        let first = stream.to_dtype(&first, from).unwrap();
        assert_eq!(first.bytes(), 7 * from.bytes() as u64);
        for to in DType::ALL {
            let second = stream.to_dtype(&first, to).unwrap();
            let back = stream.to_dtype(&second, DType::F32).unwrap();
            assert_eq!(values(&stream, &back), numbers, "{from} -> {to}");
        }
    }
}

#[test]
fn a_sequence_converts_the_fewest_bytes() {
    let nz = |program: Program, name: &str, shape: [u64; 2]| {
        program.with_tensor(name, move |tensor| {
            tensor.shape = shape.to_vec();
            tensor.layout = TensorLayout::device().with_format(Format::nz(4));
        })
    };
    // X as tiles: 2 x 32 x 8.
    let tiled = DOUBLE
        .replace("f32[32, 16]", "f32[2, 32, 8]")
        .replace("[8, 16]", "[32, 8]")
        .replace("dense 4", "dense 2")
        .replace("X[i * 8 for 8]", "X[i]");
    let (rows, tiles) = (compiled(&add_one(32)), nz(compiled(&tiled), "X", [32, 16]).unwrap());
    let round = Sequence::new()
        .then(Step::new(&rows).with("X", "w").with("Y", "y"))
        .then(Step::new(&rows).with("X", "w").with("Y", "z"))
        .then(Step::new(&tiles).with("X", "w"));
    let plan = round.plan();
    assert_eq!(plan.initial["w"].format, Format::nz(4), "a round leaves it so");
    assert_eq!((plan.bytes_each_round(), plan.bytes_once()), (2048, 0));
    let [one] = plan.conversions.as_slice() else { panic!("{plan:?}") };
    assert_eq!((one.tensor.as_str(), one.before, &one.to), ("w", 0, &TensorLayout::device()));
    assert!(one.why.contains("program double writes w as 'device, tiles 16x8'"), "{}", one.why);

    // What no program writes is converted once.
    let reads = nz(
        compiled(
            &add_one(32)
                .replace("tensor X : f32[32, 16]", "tensor X : f32[2, 32, 8]")
                .replace("x: in f32[8, 16]", "x: in f32[8, 8]")
                .replace("%0 = load x : f32[8, 16]", "%0 = load x : f32[8, 8]")
                .replace("by one : f32[8, 16]", "by one : f32[8, 8]")
                .replace("y: out f32[8, 16]", "y: out f32[8, 8]")
                .replace("X[i * 8 for 8]", "X[0, i * 8 for 8]")
                .replace("Y[i * 8 for 8]", "Y[i * 8 for 8, 0 for 8]"),
        ),
        "X",
        [32, 16],
    )
    .unwrap();
    let plan = Sequence::new()
        .then(Step::new(&rows).with("X", "w"))
        .then(Step::new(&reads).with("X", "w").with("Y", "v"))
        .plan();
    assert_eq!((plan.bytes_each_round(), plan.bytes_once()), (0, 2048));
    // What is read after its write serves the next round, but not the first one.
    let plan = Sequence::new()
        .then(Step::new(&rows).with("X", "w"))
        .then(Step::new(&tiles).with("X", "w"))
        .then(Step::new(&rows).with("X", "w").with("Y", "z"))
        .plan();
    assert_eq!((plan.bytes_each_round(), plan.bytes_once()), (2048, 2048), "{plan:?}");
    assert_eq!(plan.before(2).count(), 1);
}

extern "C" fn context_of_cube(args: *const u64) {
    write_context(args, 0);
}

extern "C" fn context_of_vector(args: *const u64) {
    write_context(args, 1);
}

/// Writes the number of blocks and the number of its part to the element of its block. The lanes of vector cores count from 0.
fn write_context(args: *const u64, first: u32) {
    // SAFETY: the task has three words, followed by the context.
    let args = unsafe { std::slice::from_raw_parts(args, 4) };
    let context = BlockContext::of(args[3]);
    let part = first + context.lane.min(1);
    let at = args[part as usize] as *mut f32;
    let value = f32::from(u16::try_from(10 * context.blocks + part).unwrap_or(0));
    // SAFETY: each tensor has an element for each block.
    unsafe { at.wrapping_add(context.block as usize).write(value) };
}

/// Writes how many of its kind ran before it.
extern "C" fn write_turn(args: *const u64) {
    static TURN: AtomicU32 = AtomicU32::new(0);
    // SAFETY: the task has one word.
    let at = unsafe { args.read() } as *mut f32;
    let turn = u16::try_from(TURN.fetch_add(1, Ordering::Relaxed)).unwrap_or(u16::MAX);
    // SAFETY: it is the address of an element.
    unsafe { at.write(f32::from(turn)) };
}

fn of_shapes(name: &str, tasks: Vec<GraphTask>, tensors: &[(&str, Role)]) -> Program {
    let tensor = |(name, role): &(&str, Role)| TensorDescription {
        name: (*name).to_owned(),
        role: *role,
        dtype: DType::F32,
        shape: vec![32],
        layout: TensorLayout::device(),
        begins_with_zeros: *role == Role::Output,
    };
    let tensors = tensors.iter().map(tensor).collect();
    let kernel = |name: &str, kind| NativeKernel { name: name.to_owned(), kind };
    let kernels = vec![
        kernel("cube", CoreKind::AIC),
        kernel("vector", CoreKind::AIV),
        kernel("turn", CoreKind::AIV),
    ];
    let object = NativeObject { processor: "any".to_owned(), code: vec![1] };
    let program = Program::new(name, ProgramBody::Graph(tasks), tensors).unwrap();
    let program = program.with_native(NativeKernels::new(kernels, vec![object]).unwrap()).unwrap();
    Program::from_bytes(&program.to_bytes()).unwrap()
}

fn kernels_of_shapes() -> Vec<Kernel> {
    vec![
        Kernel::from_fn("cube", CoreKind::AIC, context_of_cube),
        Kernel::from_fn("vector", CoreKind::AIV, context_of_vector),
        Kernel::from_fn("turn", CoreKind::AIV, write_turn),
    ]
}

fn shaped(kernel: &str, kind: CoreKind, tensors: &[usize], shape: BlockShape) -> GraphTask {
    let args = tensors.iter().map(|tensor| GraphArgument::Tensor { tensor: *tensor, offset: 0 });
    GraphTask {
        kernel: kernel.to_owned(),
        kind,
        args: args.collect(),
        producers: vec![],
        block_shape: shape,
    }
}

#[test]
fn tasks_of_program_files_have_kernels_on_several_cores_and_blocks() {
    for start in [StartMode::SPREAD, StartMode::SYNC] {
        let mix = vec!["vector".to_owned(); 2];
        let shape = BlockShape { mix, blocks: 3, start, ..BlockShape::default() };
        let task = shaped("cube", CoreKind::AIC, &[0, 1, 2], shape);
        let outputs = [("a", Role::Output), ("b", Role::Output), ("c", Role::Output)];
        let program = of_shapes("blocks", vec![task], &outputs);
        let session = session();
        let stitcher = Stitcher::new(&session).unwrap();
        let program = stitcher.load_with(program, kernels_of_shapes()).unwrap();
        let stream = stitcher.stream().unwrap();
        for _ in 0..2 {
            let mut outputs = stream.run(&program, Inputs::new()).unwrap();
            for (name, lane) in [("a", 0.0), ("b", 1.0), ("c", 2.0)] {
                let found = values(&stream, &outputs.take(name).unwrap());
                assert_eq!(found[..4], [30.0 + lane, 30.0 + lane, 30.0 + lane, 0.0], "{name}");
            }
        }
    }
}

#[test]
fn blocks_of_program_files_that_cannot_start_at_once_are_refused() {
    let run = |start| {
        let shape = BlockShape { blocks: 20, start, ..BlockShape::default() };
        let task = shaped("cube", CoreKind::AIC, &[0, 0, 0], shape);
        let program = of_shapes("many", vec![task], &[("a", Role::Output)]);
        let session = session();
        let stitcher = Stitcher::new(&session).unwrap();
        let program = stitcher.load_with(program, kernels_of_shapes()).unwrap();
        let stream = stitcher.stream().unwrap();
        let _ = stream.run(&program, Inputs::new()).unwrap();
        stream.synchronize().map_err(|error| error.to_string())
    };
    assert_eq!(run(StartMode::SPREAD), Ok(()));
    let refused = run(StartMode::SYNC).unwrap_err();
    assert!(refused.contains("STREAM_SYNC_BLOCKS"), "{refused}");
}

#[test]
fn tasks_of_program_files_have_predicates() {
    let when = |offset, comparison| OwnedPredicate {
        element: TensorElement { tensor: 0, offset, element: ElementType::F32 },
        comparison,
        value: 7.0_f32.to_bits().into(),
    };
    for (offset, comparison, runs) in [
        (28, Comparison::EQUAL, true),
        (24, Comparison::EQUAL, false),
        (24, Comparison::LESS, true),
        (32, Comparison::LESS, false),
    ] {
        let shape = BlockShape { when: Some(when(offset, comparison)), ..BlockShape::default() };
        let tasks = vec![shaped("cube", CoreKind::AIC, &[1, 1, 1], shape)];
        let program = of_shapes("maybe", tasks, &[("x", Role::Input), ("y", Role::Output)]);
        let session = session();
        let stitcher = Stitcher::new(&session).unwrap();
        let program = stitcher.load_with(program, kernels_of_shapes()).unwrap();
        let stream = stitcher.stream().unwrap();
        let x = HostTensor::of_f32(&[32], &numbers(32)).unwrap();
        let x = stream.to_device(&x, &TensorLayout::device()).unwrap();
        let y = stream.run(&program, Inputs::new().give("x", x)).unwrap().take("y").unwrap();
        let expected = if runs { 10.0 } else { 0.0 };
        assert_eq!(values(&stream, &y)[0], expected, "{offset} {comparison}");
    }
}

#[test]
fn tasks_of_program_files_have_priorities() {
    // The gate, 64 tasks that wait for it, and one more that goes before most of them.
    let mut tasks: Vec<_> = (0..66)
        .map(|number| {
            let task = shaped("turn", CoreKind::AIV, &[0], BlockShape::default());
            let producers = (0..number.min(1)).collect();
            GraphTask { producers, ..task }
        })
        .collect();
    tasks[64].args = vec![GraphArgument::Tensor { tensor: 2, offset: 0 }];
    tasks[65].args = vec![GraphArgument::Tensor { tensor: 1, offset: 0 }];
    tasks[65].block_shape.priority = Priority::URGENT;
    let outputs = [("gate", Role::Output), ("urgent", Role::Output), ("normal", Role::Output)];
    let program = of_shapes("order", tasks, &outputs);
    let hosting = Hosting::Virtual(VirtualOptions::default());
    let session = session_on(hosting);
    let stitcher = Stitcher::new(&session).unwrap();
    let program = stitcher.load_with(program, kernels_of_shapes()).unwrap();
    let stream = stitcher.stream().unwrap();
    let mut outputs = stream.run(&program, Inputs::new()).unwrap();
    let turn = |tensor| values(&stream, &tensor)[0];
    let urgent = turn(outputs.take("urgent").unwrap());
    assert!(urgent < turn(outputs.take("normal").unwrap()), "the urgent one goes first");
}
