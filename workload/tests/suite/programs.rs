//! Program files: what was written is read as the same program; what is not as written is refused, with what is wanted.

use pto_abi::CoreKind;
use pto_abi::block::BlockContext;
use pto_graph::{Comparison, ElementType, Priority, StartMode};
use pto_workload::Workload;
use pto_workload::plan::compile;
use pto_workload::program::{
    BlockShape, Format, GraphArgument, GraphTask, MemorySpace, OwnedPredicate, Program,
    ProgramBody, ProgramError, Role, TensorDescription, TensorElement, TensorLayout, differences,
    seal,
};
use pto_workload::tile::DType;

use super::plans::FILES;

fn program(text: &str) -> Program {
    Program::of_workload(&Workload::parse(text).unwrap().check().unwrap()).unwrap()
}

#[test]
fn a_program_comes_back() {
    for (name, text) in FILES {
        let written = program(text);
        let file = written.to_bytes();
        let read = Program::from_bytes(&file).unwrap();
        assert!(read.to_bytes() == file, "{name}");
        assert_eq!(differences(&written, &read), [], "{name}");
        let checked = Workload::parse(read.source().unwrap()).unwrap().check().unwrap();
        let ProgramBody::Plan(compiled) = read.body() else { panic!("{name} has a plan") };
        assert_eq!(compiled.words(), compile(&checked).unwrap().words(), "{name}");
    }
}

#[test]
fn a_flipped_bit_anywhere_is_refused() {
    let file = program(FILES[0].1).to_bytes();
    for at in 0..file.len() {
        for bit in [1, 0x80] {
            let mut damaged = file.clone();
            damaged[at] ^= bit;
            assert!(Program::from_bytes(&damaged).is_err(), "byte {at}");
        }
    }
    for length in 0..file.len() {
        assert!(Program::from_bytes(&file[..length]).is_err(), "{length} bytes");
    }
}

/// A file that was changed and sealed again is refused, or it is what the writer writes.
#[test]
fn a_seal_proves_nothing() {
    let file = program(FILES[1].1).to_bytes();
    let mut accepted = 0;
    for at in 0..file.len() {
        let mut changed = file.clone();
        changed[at] ^= 1;
        seal(&mut changed);
        if let Ok(read) = Program::from_bytes(&changed) {
            // What only a newer reader knows is not written again.
            if read.sections().iter().any(|section| !section.is_known) {
                continue;
            }
            // The minor version may be another one.
            changed[10..12].copy_from_slice(&file[10..12]);
            seal(&mut changed);
            assert!(read.to_bytes() == changed, "byte {at}");
            accepted += 1;
        }
    }
    assert!(accepted > 0, "names, texts and constants may be others");
}

#[test]
fn what_is_no_program_is_told_what_is_wanted() {
    let message = |file: &[u8]| Program::from_bytes(file).unwrap_err().to_string();
    assert!(message(b"\x7fELF and so on").contains("begins with 'PTOPROG'"));
    assert!(message(b"").contains("not a program file"));
    let mut damaged = program(FILES[0].1).to_bytes();
    *damaged.last_mut().unwrap() ^= 1;
    assert!(message(&damaged).contains("damaged: its checksum is"));
    let for_a5 = program(FILES[0].1).for_target("a5").unwrap();
    let read = Program::from_bytes(&for_a5.to_bytes()).unwrap();
    let refused = read.check_target("a2a3").unwrap_err().to_string();
    assert!(refused.contains("target 'a5', and 'a2a3' is wanted"), "{refused}");
    assert!(read.check_target("a5").is_ok());
}

/// Whatever the writer takes, the reader takes as well.
#[test]
fn names_that_no_file_holds_are_refused_by_the_writer() {
    let long = "n".repeat(129);
    for (name, what) in
        [("a\u{1b}[2J", "control characters"), (&long, "129 bytes"), ("", "0 bytes")]
    {
        let program = program(FILES[0].1);
        let (body, tensors) = (program.body().clone(), program.tensors().to_vec());
        let named = Program::new(name, body.clone(), tensors.clone());
        assert!(named.unwrap_err().to_string().contains(what), "{name:?}");
        let targeted = program.for_target(name);
        assert!(targeted.unwrap_err().to_string().contains(what), "{name:?}");
        let described = TensorDescription { name: name.to_owned(), ..tensors[0].clone() };
        assert!(described.defect().is_some_and(|message| message.contains(what)), "{name:?}");
    }
}

fn roles_of(program: &Program) -> Vec<(&str, Role, bool)> {
    let tensors = program.tensors().iter();
    tensors.map(|one| (one.name.as_str(), one.role, one.begins_with_zeros)).collect()
}

#[test]
fn roles_follow_from_the_tasks() {
    // The last tiles are partial: they still write all that is there. A branch may not be taken.
    let matmul = [("A", Role::Input, false), ("B", Role::Input, false), ("C", Role::Output, true)];
    assert_eq!(roles_of(&program(FILES[0].1)), matmul);
    let text = FILES[1].1.replace("dyn tiles default 4", "dense 4");
    let softmax = program(&text);
    let of = |name| softmax.tensor(name).map(|one| (one.role, one.begins_with_zeros)).unwrap();
    assert_eq!(of("X"), (Role::Input, false));
    assert_eq!(["M", "S", "Y"].map(of), [(Role::Output, false); 3]);
    let fewer = program(&FILES[1].1.replace("dyn tiles default 4", "dense 3"));
    assert!(fewer.tensor("Y").unwrap().begins_with_zeros, "the last rows are not written");
    let updates = program(
        "workload adds {
  schedule round_robin workers 1 window 8192 stall
  tensor X : f32[8, 8]
  kernel add(x: inout f32[8, 8]) {
    %0 = load x : f32[8, 8]
    %1 = add %0, %0 : f32[8, 8]
    store x, %1
  }
  do parallel i in dense 1 { add[i](x = X) }
}",
    );
    assert_eq!(roles_of(&updates), [("X", Role::Updated, false)]);
}

#[test]
fn layouts_and_constants_stand_in_the_file() {
    let text = "workload stored {
  schedule round_robin workers 1 window 8192 stall
  tensor W : f32[2, 32, 8]
  tensor Y : f32[2, 32, 8]
  kernel copy(x: in f32[32, 8], y: out f32[32, 8]) {
    %0 = load x : f32[32, 8]
    store y, %0
  }
  do parallel n in dense 2 { copy[n](x = W[n], y = Y[n]) }
}";
    let nz = |shape: [u64; 2]| {
        move |tensor: &mut TensorDescription| {
            tensor.shape = shape.to_vec();
            tensor.layout =
                TensorLayout::device().with_format(Format::nz(4)).with_memory(MemorySpace::OnChip);
        }
    };
    let stored = program(text).with_tensor("W", nz([20, 12])).unwrap();
    let stored = stored.with_constant("W", vec![7; 2048]).unwrap();
    let read = Program::from_bytes(&stored.to_bytes()).unwrap();
    let tensor = read.tensor("W").unwrap();
    assert_eq!(tensor.to_string(), "constant W : f32[20, 12], on-chip, tiles 16x8");
    assert_eq!((tensor.bytes(), read.constant(0)), (2048, Some(&[7; 2048][..])));

    let refused = program(text).with_tensor("W", nz([20, 17])).unwrap_err().to_string();
    assert!(
        refused.contains("the extents [3, 32, 8] in memory; the plan has W f32[2, 32, 8]"),
        "{refused}"
    );
    let refused = program(text).with_constant("Y", vec![0; 2048]).unwrap_err().to_string();
    assert!(refused.contains("is output, and only an input"), "{refused}");
    let refused = program(text).with_constant("W", vec![0; 8]).unwrap_err().to_string();
    assert!(refused.contains("2048 bytes, and the file has 8"), "{refused}");
    let refused = program(text).with_constant("Z", vec![]).unwrap_err().to_string();
    assert!(refused.contains("no tensor Z. It has: W, Y"), "{refused}");

    let before = program(text);
    let found: Vec<_> =
        differences(&before, &read).into_iter().map(|one| (one.what, one.is_interface)).collect();
    assert_eq!(
        found,
        [("tensor W".to_owned(), true), ("elements of constant W".to_owned(), false)]
    );
}

#[test]
fn a_graph_names_tensors_instead_of_addresses() {
    let tensor = |name: &str, role| TensorDescription {
        name: name.to_owned(),
        role,
        dtype: DType::F32,
        shape: vec![16],
        layout: TensorLayout::device(),
        begins_with_zeros: false,
    };
    let task = |offset, producers: &[usize]| GraphTask {
        kernel: "own".to_owned(),
        kind: CoreKind::AIV,
        args: vec![
            GraphArgument::Tensor { tensor: 0, offset },
            GraphArgument::Tensor { tensor: 1, offset: 0 },
            GraphArgument::Word(16),
        ],
        producers: producers.to_vec(),
        block_shape: BlockShape::plain(),
    };
    let of = |tasks: Vec<GraphTask>| {
        let tensors = vec![tensor("x", Role::Input), tensor("y", Role::Output)];
        Program::new("sum", ProgramBody::Graph(tasks), tensors)
    };
    let graph = of(vec![task(0, &[]), task(32, &[0])]).unwrap();
    let read = Program::from_bytes(&graph.to_bytes()).unwrap();
    let ProgramBody::Graph(tasks) = read.body() else { panic!("it is a graph") };
    assert_eq!(tasks, &[task(0, &[]), task(32, &[0])]);
    let refused = |tasks| match of(tasks) {
        Err(ProgramError::Section { what, .. }) => what,
        other => panic!("{other:?}"),
    };
    assert!(refused(vec![task(64, &[])]).contains("byte 64 of tensor x, which has 64"));
    assert!(refused(vec![task(0, &[0])]).contains("waits for task 0"));
}

/// Kernels of the library are trusted with their words, so that a program whose tasks give them others is none.
#[test]
fn a_call_that_a_kernel_of_the_library_cannot_take_is_refused() {
    let tensor = |name: &str, role| TensorDescription {
        name: name.to_owned(),
        role,
        dtype: DType::F32,
        shape: vec![4],
        layout: TensorLayout::device(),
        begins_with_zeros: false,
    };
    let tensors = || vec![tensor("a", Role::Input), tensor("b", Role::Output)];
    let at = |tensor, offset| GraphArgument::Tensor { tensor, offset };
    let (a, b, n) = (at(0, 0), at(1, 0), GraphArgument::Word);
    let of = |kind, mix: &[&str], args: &[GraphArgument]| {
        let mix = mix.iter().map(|name| (*name).to_owned()).collect();
        let block_shape = BlockShape { mix, ..BlockShape::default() };
        let (kernel, args, producers) = ("exp".to_owned(), args.to_vec(), Vec::new());
        let task = GraphTask { kernel, kind, args, producers, block_shape };
        Program::new("calls", ProgramBody::Graph(vec![task]), tensors())
    };
    of(CoreKind::AIV, &[], &[a, b, n(4)]).expect("it is right");
    of(CoreKind::AIV, &[], &[n(0), n(0), n(0)]).expect("of nothing the address is not used");
    // The context of a block follows the arguments.
    let context = BlockContext { block: 1, blocks: 2, lane: 0 }.word();
    of(CoreKind::AIV, &[], &[a, b, n(4), n(context)]).expect("a block of a recording");
    for (kind, mix, args, says) in [
        (
            CoreKind::AIV,
            &[][..],
            &[a, b][..],
            "exp takes 3 arguments (a, out, n), and the task has 2",
        ),
        (CoreKind::AIV, &[], &[], "and the task has 0"),
        (CoreKind::AIV, &[], &[a, b, n(4), n(7)], "and the task has 4"),
        (
            CoreKind::AIV,
            &[],
            &[n(0), b, n(4)],
            "exp: argument 0, a, is an address, and the program has",
        ),
        (CoreKind::AIV, &[], &[a, b, a], "exp: argument 2, n, is a number, and a tensor is given"),
        (
            CoreKind::AIV,
            &[],
            &[a, b, n(5)],
            "argument 0, a, reaches to byte 20 of tensor a, which has 16",
        ),
        (
            CoreKind::AIV,
            &[],
            &[a, at(1, 4), n(4)],
            "argument 1, out, reaches to byte 20 of tensor b",
        ),
        (CoreKind::AIV, &[], &[a, b, n(1 << 62)], "reaches to byte more than 2^64 of tensor a"),
        (CoreKind::AIV, &[], &[at(0, 1), b, n(1)], "argument 0, a, begins at byte 1 of tensor a"),
        (CoreKind::AIC, &[], &[a, b, n(4)], "exp runs on aiv cores, and the task is for aic"),
        (CoreKind::AIV, &["add"], &[a, b, n(4)], "add takes 4 arguments"),
    ] {
        let message = of(kind, mix, args).expect_err(says).to_string();
        assert!(
            message.contains("task 0 (exp) cannot run: ") && message.contains(says),
            "{message}"
        );
    }
}

/// A program with a task of every shape; `change` changes the last one.
fn with_shapes(change: impl FnOnce(&mut BlockShape)) -> Result<Program, ProgramError> {
    let tensor = TensorDescription {
        name: "x".to_owned(),
        role: Role::Updated,
        dtype: DType::F32,
        shape: vec![16],
        layout: TensorLayout::device(),
        begins_with_zeros: false,
    };
    let when = OwnedPredicate {
        element: TensorElement { tensor: 0, offset: 60, element: ElementType::F32 },
        comparison: Comparison::GREATER,
        value: 7,
    };
    let mut shape = BlockShape {
        mix: vec!["own".to_owned()],
        blocks: 3,
        start: StartMode::SYNC,
        priority: Priority::URGENT,
        when: Some(when),
    };
    change(&mut shape);
    let task = |shape| GraphTask {
        kernel: "own".to_owned(),
        kind: CoreKind::AIV,
        args: vec![GraphArgument::Tensor { tensor: 0, offset: 0 }],
        producers: Vec::new(),
        block_shape: shape,
    };
    let tasks = vec![task(BlockShape::default()), task(shape)];
    Program::new("shapes", ProgramBody::Graph(tasks), vec![tensor])
}

#[test]
fn shapes_of_tasks_are_kept_and_compared() {
    let program = with_shapes(|_| ()).unwrap();
    let read = Program::from_bytes(&program.to_bytes()).unwrap();
    let tasks = |program: &Program| match program.body() {
        ProgramBody::Graph(tasks) => tasks.clone(),
        ProgramBody::Plan(_) | ProgramBody::Builder(_) => panic!("it is a graph"),
    };
    assert_eq!(tasks(&read), tasks(&program));
    assert_eq!(differences(&program, &read), []);
    let changes: [fn(&mut BlockShape); 9] = [
        |shape| shape.mix.clear(),
        |shape| shape.blocks = 4,
        |shape| shape.start = StartMode::SPREAD,
        |shape| shape.priority = Priority::LOW,
        |shape| shape.when = None,
        |shape| shape.when.as_mut().unwrap().element.offset = 56,
        |shape| shape.when.as_mut().unwrap().element.element = ElementType::I32,
        |shape| shape.when.as_mut().unwrap().comparison = Comparison::LESS,
        |shape| shape.when.as_mut().unwrap().value = 8,
    ];
    for change in changes {
        let other = with_shapes(change).unwrap();
        let read = Program::from_bytes(&other.to_bytes()).unwrap();
        let found: Vec<_> = differences(&program, &read).into_iter().map(|one| one.what).collect();
        assert_eq!(found, ["shape of task 1"]);
    }
    let has_section = |program: &Program| {
        let read = Program::from_bytes(&program.to_bytes()).unwrap();
        read.sections().iter().any(|section| section.name == "shapes")
    };
    assert!(has_section(&program));
    assert!(!has_section(&with_shapes(|shape| *shape = BlockShape::default()).unwrap()));
}

#[test]
fn shapes_that_no_task_can_have_are_refused() {
    let refused = |change: fn(&mut BlockShape)| with_shapes(change).unwrap_err().to_string();
    assert!(refused(|shape| shape.blocks = 0).contains("task 1 (own) has 0 blocks"));
    assert!(refused(|shape| shape.mix.push("own".to_owned())).contains("has 2 kernels"));
    let tensor = refused(|shape| shape.when.as_mut().unwrap().element.tensor = 1);
    assert!(tensor.contains("a predicate on tensor 1 of 1"), "{tensor}");
    for offset in [62, 64, u64::MAX] {
        let changed = with_shapes(|shape| shape.when.as_mut().unwrap().element.offset = offset);
        let told = changed.unwrap_err().to_string();
        assert!(told.contains(&format!("at byte {offset} of tensor x, which has 64")), "{told}");
    }
}

/// A file whose shapes were damaged and sealed again is refused, or is one that the writer writes.
#[test]
fn damaged_shapes_are_refused() {
    let program = with_shapes(|_| ()).unwrap();
    let file = program.to_bytes();
    let read = Program::from_bytes(&file).unwrap();
    let section = read.sections().iter().find(|section| section.name == "shapes").unwrap();
    let mut refused = 0;
    for at in section.offset..section.offset + section.bytes {
        for bit in 0..8 {
            let mut file = file.clone();
            file[at] ^= 1 << bit;
            seal(&mut file);
            match Program::from_bytes(&file) {
                Ok(read) => assert_eq!(read.to_bytes(), file, "byte {at}"),
                Err(error) => {
                    assert!(error.to_string().contains("Section '"), "{error}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 100, "{refused}");
}
