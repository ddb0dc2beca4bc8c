//! Graphs and builders share launches with plans: they overlap where the runtime sees what they touch, and are kept in order where not.

use pto_host::abi::{CoreKind, Fault, GmAddr, RuntimeVariant};
use pto_host::graph::{
    Arg, BuildError, Comparison, DependencyMode, ElementType, Priority, StreamBuilder, TaskSpec,
    TensorTask, TensorView,
};
use pto_host::session::SessionOptions;
use pto_host::stitch::{HostTensor, Inputs, Stitcher};
use pto_host::virtual_time::VirtualOptions;
use pto_host::workloads::program::{
    BlockShape, BuilderReference, GraphArgument, GraphTask, OwnedPredicate, Program, ProgramBody,
    Role, TensorDescription, TensorElement, TensorLayout,
};
use pto_host::{Device, DeviceOptions, Hosting, RunOptions, func};

use super::{StitchingBuilders, add_one, compiled, tensor, values};

/// `Y = X + X`, eight rows in each task, whose tensors are views.
pub(super) fn add_rows<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let &[x, y, tiles, columns] = stream.orch_args() else {
        return Err(Fault::BUILD_FAILED.into());
    };
    let [tiles, width] = [tiles, columns].map(|word| u32::try_from(word).unwrap_or(0));
    let [x, y] =
        [x, y].map(|at| TensorView::dense(GmAddr(at), ElementType::F32, &[tiles * 8, width]));
    for tile in 0..tiles {
        let [x, y] = [x, y].map(|view| view.slice(0, tile * 8, 8));
        let args = [Arg::In(&x), Arg::In(&x), Arg::Out(&y), Arg::Scalar(8 * columns)];
        stream.submit_tensors(&TensorTask::new(func::ADD, CoreKind::AIV, &args))?;
    }
    Ok(())
}

/// A program `Y = X + X` of so many rows: as a graph of the library's kernels, or by the builder of this name.
fn doubled(builder: Option<&str>, rows: u64, columns: u64) -> Program {
    let tensors = [("X", Role::Input), ("Y", Role::Output)]
        .map(|(name, role)| TensorDescription { shape: vec![rows, columns], ..tensor(name, role) });
    let of = |tensor, offset| GraphArgument::Tensor { tensor, offset };
    let body = match builder {
        Some(name) => ProgramBody::Builder(BuilderReference {
            name: name.to_owned(),
            variant: RuntimeVariant::TENSORMAP_AND_RINGBUFFER,
            words: vec![
                of(0, 0),
                of(1, 0),
                GraphArgument::Word(rows / 8),
                GraphArgument::Word(columns),
            ],
        }),
        None => ProgramBody::Graph(
            (0..rows / 8)
                .map(|tile| GraphTask {
                    kernel: "add".to_owned(),
                    kind: CoreKind::AIV,
                    args: [0, 0, 1]
                        .map(|tensor| of(tensor, tile * 8 * columns * 4))
                        .into_iter()
                        .chain([GraphArgument::Word(8 * columns)])
                        .collect(),
                    producers: vec![],
                    block_shape: BlockShape::plain(),
                })
                .collect(),
        ),
    };
    Program::new("doubled", body, tensors.to_vec()).unwrap()
}

const ROWS: u64 = 8 * 20;
/// So that a task takes longer than adding it.
const COLUMNS: u64 = 4096;

fn plan() -> Program {
    compiled(&add_one(ROWS).replace("16]", &format!("{COLUMNS}]")))
}

/// Runs these programs, each on what the one before it has written, up to `overlap` of them in one launch: how long they take in virtual time, and how many
/// launches it were. Two vector cores have more to do than the builder.
fn run(order: &[&Program], overlap: usize, seed: u64) -> (f64, u64) {
    let hosting = Hosting::Virtual(VirtualOptions { seed, ..VirtualOptions::default() });
    run_on(hosting, order, overlap)
}

fn run_on(hosting: Hosting, order: &[&Program], overlap: usize) -> (f64, u64) {
    let options = DeviceOptions { aic: 1, aiv: 2, gm_bytes: 1 << 30, hosting };
    let mut device = Device::open_sim(options, StitchingBuilders).unwrap();
    device.register_library().unwrap();
    let run = RunOptions { aicpu_instances: 2, ..RunOptions::default() };
    let options = SessionOptions { run, ..SessionOptions::default() };
    let session = device.session(options).unwrap();
    let stitcher = Stitcher::new(&session).unwrap();
    let stream = stitcher.overlapping_stream(overlap).unwrap();
    let ones = vec![1.0_f32; usize::try_from(ROWS * COLUMNS).unwrap()];
    let x = HostTensor::of_f32(&[ROWS, COLUMNS], &ones).unwrap();
    let mut x = stream.to_device(&x, &TensorLayout::device()).unwrap();
    stream.synchronize().unwrap();
    let (before, launches) = (session.now(), stitcher.counters().launches);
    let mut expected = 1.0_f32;
    for program in order {
        let loaded = stitcher.load((*program).clone()).unwrap();
        let is_plan = program.name() == "add_one";
        let inputs = Inputs::new().give("X", x);
        let inputs = if is_plan { inputs.grain(1) } else { inputs };
        x = stream.run(&loaded, inputs).unwrap().take("Y").unwrap();
        expected += if is_plan { 1.0 } else { expected };
    }
    stream.synchronize().unwrap();
    let took = (session.now() - before).as_secs_f64();
    let found = values(&stream, &x);
    let wrong = found.iter().position(|found| (*found - expected).abs() > 0.0);
    assert_eq!(wrong, None, "{hosting}: {} and not {expected}", found[wrong.unwrap_or(0)]);
    (took, stitcher.counters().launches - launches)
}

/// Plans, graphs and builders, one after the other, take less time in one launch than in three.
#[test]
fn graphs_and_builders_overlap_as_plans_do() {
    let wide = |builder| doubled(builder, ROWS, COLUMNS);
    let (plan, graph, builder) = (plan(), wide(None), wide(Some("add_rows")));
    for order in [[&plan, &graph, &plan], [&plan, &builder, &plan], [&graph, &builder, &graph]] {
        let ((overlapped, one), (apart, three)) = (run(&order, 3, 0), run(&order, 1, 0));
        let names = order.map(Program::name);
        println!("{names:?}: in one launch {overlapped:.9} s, apart {apart:.9} s");
        assert_eq!((one, three), (1, 3));
        assert!(overlapped < apart, "{names:?}: {overlapped} of {apart}");
    }
}

/// On threads of this machine as well, with what the runtime sees and what it does not see.
#[test]
fn builders_share_launches_in_every_hosting() {
    let by = |builder| doubled(Some(builder), ROWS, COLUMNS);
    let (plan, seen, hidden, gated) = (plan(), by("add_rows"), by("hidden"), conditional());
    for hosting in [Hosting::default(), Hosting::Threads] {
        for order in [[&plan, &seen, &plan], [&plan, &hidden, &plan], [&gated, &plan, &hidden]] {
            assert_eq!(run_on(hosting, &order, 3).1, 1, "{hosting}");
        }
    }
}

/// What a builder hides from the runtime is kept in order by gates, whatever order a seed chooses; so are tasks of which it is unknown what they touch.
#[test]
fn what_the_runtime_cannot_see_is_kept_in_order() {
    let by = |builder| doubled(Some(builder), ROWS, COLUMNS);
    let (plan, hidden, read, gated) = (plan(), by("hidden"), by("as_it_reads"), conditional());
    for seed in 0..10 {
        for order in [
            // Tasks of the third plan become ready late: what does not wait for them would go first.
            [&plan, &plan, &plan, &hidden],
            [&plan, &plan, &plan, &gated],
            [&plan, &plan, &plan, &read],
            // And so would the plan after tasks that wait at a gate.
            [&plan, &plan, &hidden, &plan],
            [&plan, &hidden, &read, &gated],
        ] {
            assert_eq!(run(&order, 4, seed).1, 1);
        }
    }
}

/// `Y = X + X` as a graph whose tasks have a predicate that is always true. It is unknown what such tasks touch.
fn conditional() -> Program {
    let program = doubled(None, ROWS, COLUMNS);
    let ProgramBody::Graph(tasks) = program.body() else { panic!("it is a graph") };
    let when = OwnedPredicate {
        element: TensorElement { tensor: 0, offset: 0, element: ElementType::F32 },
        comparison: Comparison::GREATER_EQUAL,
        value: 0.0_f32.to_bits().into(),
    };
    let block_shape = BlockShape { when: Some(when), ..BlockShape::default() };
    let tasks =
        tasks.iter().map(|task| GraphTask { block_shape: block_shape.clone(), ..task.clone() });
    let body = ProgramBody::Graph(tasks.collect());
    Program::new("conditional", body, program.tensors().to_vec()).unwrap()
}

/// `Y = X + X` in tasks that the runtime sees nothing of: plain tasks, words that are addresses, and tasks of scopes without derived edges.
pub(super) fn hidden<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let &[x, y, tiles, columns] = stream.orch_args() else {
        return Err(Fault::BUILD_FAILED.into());
    };
    let count = 8 * columns;
    for tile in 0..tiles {
        let [a, b, out] = [x, x, y].map(|base| base + tile * count * 4);
        match tile % 3 {
            0 => {
                let words = [a, b, out, count];
                stream.submit(TaskSpec::new(func::ADD, CoreKind::AIV, &words), &[])?;
            }
            1 => {
                let args = [a, b, out, count].map(Arg::Scalar);
                let task = TensorTask::new(func::ADD, CoreKind::AIV, &args);
                // Nothing but the gate holds it back.
                stream.submit_tensors(&task.priority(Priority::URGENT))?;
            }
            _ => stream.scope::<(), BuildError>(DependencyMode::MANUAL, |scope| {
                let shape = [u32::try_from(count).unwrap_or(0)];
                let [from, to] =
                    [a, out].map(|at| TensorView::dense(GmAddr(at), ElementType::F32, &shape));
                let args = [Arg::In(&from), Arg::In(&from), Arg::Out(&to), Arg::Scalar(count)];
                scope.submit_tensors(&TensorTask::new(func::ADD, CoreKind::AIV, &args))?;
                Ok(())
            })?,
        }
    }
    Ok(())
}

/// `Y = X + X`, where all elements of X are the same: the builder itself reads the first one of each eight rows, and a kernel adds it to the rows.
pub(super) fn as_it_reads<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let &[x, y, tiles, columns] = stream.orch_args() else {
        return Err(Fault::BUILD_FAILED.into());
    };
    let [tiles, width] = [tiles, columns].map(|word| u32::try_from(word).unwrap_or(0));
    let [from, to] =
        [x, y].map(|at| TensorView::dense(GmAddr(at), ElementType::F32, &[tiles * 8, width]));
    for tile in 0..tiles {
        let [from, to] = [from, to].map(|view| view.slice(0, tile * 8, 8));
        let word = stream.read_u32(from.address())?;
        let args =
            [Arg::In(&from), Arg::Scalar(word.into()), Arg::Out(&to), Arg::Scalar(8 * columns)];
        stream.submit_tensors(&TensorTask::new(func::ADD_SCALAR, CoreKind::AIV, &args))?;
    }
    Ok(())
}

/// Rows, columns, and vector cores.
type Size = (u64, u64, u32);

/// `Y = X + 1` by a kernel of the library, eight rows in each task; with two halves `Z = (X + 1) + 1` by as many tasks again.
fn added(is_builder: bool, halves: usize, (rows, columns, _): Size) -> Program {
    let names: &[(&str, Role)] = match halves {
        1 => &[("X", Role::Input), ("Y", Role::Output)],
        _ => &[("X", Role::Input), ("Y", Role::Temporary), ("Z", Role::Output)],
    };
    let tensors = names.iter().map(|(name, role)| TensorDescription {
        shape: vec![rows, columns],
        ..tensor(name, *role)
    });
    let of = |tensor, offset| GraphArgument::Tensor { tensor, offset };
    let tiles = rows / 8;
    let body = if is_builder {
        let mut words = vec![GraphArgument::Word(tiles), GraphArgument::Word(columns)];
        words.extend((0..=halves).map(|at| of(at, 0)));
        ProgramBody::Builder(BuilderReference {
            name: "add_ones".to_owned(),
            variant: RuntimeVariant::TENSORMAP_AND_RINGBUFFER,
            words,
        })
    } else {
        let task = |half: usize, tile: u64| {
            let at = tile * 8 * columns * 4;
            GraphTask {
                kernel: "add_scalar".to_owned(),
                kind: CoreKind::AIV,
                args: vec![
                    of(half, at),
                    GraphArgument::Word(1.0_f32.to_bits().into()),
                    of(half + 1, at),
                    GraphArgument::Word(8 * columns),
                ],
                producers: (half > 0)
                    .then_some(usize::try_from(tile).unwrap())
                    .into_iter()
                    .collect(),
                block_shape: BlockShape::plain(),
            }
        };
        ProgramBody::Graph(
            (0..halves).flat_map(|half| (0..tiles).map(move |tile| task(half, tile))).collect(),
        )
    };
    Program::new("added", body, tensors.collect()).unwrap()
}

/// One half after the other.
pub(super) fn add_ones<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let words = stream.orch_args().to_vec();
    let [tiles, width] = [words[0], words[1]].map(|word| u32::try_from(word).unwrap_or(0));
    for pair in words[2..].windows(2) {
        let [x, y] = [pair[0], pair[1]]
            .map(|at| TensorView::dense(GmAddr(at), ElementType::F32, &[tiles * 8, width]));
        for tile in 0..tiles {
            let [x, y] = [&x, &y].map(|view| view.slice(0, tile * 8, 8));
            let args = [
                Arg::In(&x),
                Arg::Scalar(1.0_f32.to_bits().into()),
                Arg::Out(&y),
                Arg::Scalar(u64::from(width) * 8),
            ];
            stream.submit_tensors(&TensorTask::new(func::ADD_SCALAR, CoreKind::AIV, &args))?;
        }
    }
    Ok(())
}

/// Runs these programs, each on what the one before it has written, up to `overlap` of them in one launch: the seconds that they take in virtual time.
fn makespan(order: &[&Program], overlap: usize, (rows, columns, aiv): Size) -> f64 {
    let hosting = Hosting::Virtual(VirtualOptions::default());
    let options = DeviceOptions { aic: aiv.div_ceil(2), aiv, gm_bytes: 1 << 30, hosting };
    let mut device = Device::open_sim(options, StitchingBuilders).unwrap();
    device.register_library().unwrap();
    let run = RunOptions { aicpu_instances: if aiv < 8 { 2 } else { 4 }, ..RunOptions::default() };
    let session = device.session(SessionOptions { run, ..SessionOptions::default() }).unwrap();
    let stitcher = Stitcher::new(&session).unwrap();
    let stream = stitcher.overlapping_stream(overlap).unwrap();
    let ones = vec![1.0_f32; usize::try_from(rows * columns).unwrap()];
    let x = HostTensor::of_f32(&[rows, columns], &ones).unwrap();
    let mut x = stream.to_device(&x, &TensorLayout::device()).unwrap();
    stream.synchronize().unwrap();
    let before = session.now();
    for program in order {
        let loaded = stitcher.load((*program).clone()).unwrap();
        let is_plan = matches!(program.body(), ProgramBody::Plan(_));
        let inputs = Inputs::new().give("X", x);
        let inputs = if is_plan { inputs.grain(1) } else { inputs };
        x = stream
            .run(&loaded, inputs)
            .unwrap()
            .take(if order.len() == 1 { "Z" } else { "Y" })
            .unwrap();
    }
    stream.synchronize().unwrap();
    let took = (session.now() - before).as_secs_f64();
    assert!(values(&stream, &x).iter().all(|z| (*z - 3.0).abs() < f32::EPSILON));
    took
}

/// Two programs in one launch take no more than 1.05 of what the same tasks take that were compiled as one: of the same kind, or where two kinds meet, of the kind
/// whose tasks the device itself adds.
#[test]
fn two_stitched_programs_of_any_kinds_take_what_one_takes() {
    for columns in [16, 1024, 4096] {
        for aiv in [2, 8, 48] {
            let size = (800, columns, aiv);
            let wide = |text: String| compiled(&text.replace("16]", &format!("{columns}]")));
            let (plan, plan_of_both) = (wide(add_one(800)), wide(super::both(800)));
            let [graph, builder] = [false, true].map(|is_builder| added(is_builder, 1, size));
            let [graph_of_both, builder_of_both] =
                [false, true].map(|is_builder| added(is_builder, 2, size));
            let one = |program: &Program| makespan(&[program], 1, size);
            let (as_plan, as_graph) = (one(&plan_of_both), one(&graph_of_both));
            let as_builder = one(&builder_of_both);
            // Half of the pair is a graph: it takes what the slower one of the two kinds takes.
            let as_mixture = as_plan.max(as_graph);
            for (kinds, pair, one) in [
                ("plan, plan", [&plan, &plan], as_plan),
                ("graph, graph", [&graph, &graph], as_graph),
                ("graph, plan", [&graph, &plan], as_mixture),
                ("plan, graph", [&plan, &graph], as_mixture),
                ("builder, plan", [&builder, &plan], as_plan.min(as_builder)),
                ("builder, builder", [&builder, &builder], as_builder),
            ] {
                let two = makespan(&pair, 2, size);
                println!("{size:?} {kinds}: {:.1} us, as one {:.1} us", two * 1e6, one * 1e6);
                assert!(two <= 1.05 * one, "{size:?} {kinds}: {two} s, as one {one} s");
            }
        }
    }
}

/// The first graph's tasks run one after the other: tasks of the second one that did not wait for them would run first.
#[test]
fn graphs_that_are_joined_keep_their_order() {
    let size = (8 * 20, 16, 4);
    let graph = added(false, 1, size);
    let ProgramBody::Graph(tasks) = graph.body() else { panic!("it is a graph") };
    let chained = |(number, task): (usize, &GraphTask)| {
        let producers = number.checked_sub(1).into_iter().collect();
        GraphTask { producers, ..task.clone() }
    };
    let tasks = tasks.iter().enumerate().map(chained).collect();
    let row = Program::new("row", ProgramBody::Graph(tasks), graph.tensors().to_vec()).unwrap();
    // It looks at the result.
    let (joined, apart) = (makespan(&[&row, &graph], 2, size), makespan(&[&row, &graph], 1, size));
    assert!(joined < apart, "{joined} s, apart {apart} s");
}

/// A graph shares a launch with a plan or a builder where that is faster than a launch for each, and has a launch for itself where not.
#[test]
fn mixtures_take_no_longer_than_one_program_after_the_other() {
    let mut chosen = [0; 2];
    for rows in [80, 800] {
        for columns in [16, 1024, 4096] {
            for aiv in [2, 8, 48] {
                let size = (rows, columns, aiv);
                let plan = compiled(&add_one(rows).replace("16]", &format!("{columns}]")));
                let (graph, builder) = (added(false, 1, size), added(true, 1, size));
                for pair in [[&graph, &plan], [&plan, &graph], [&builder, &graph]] {
                    let (chose, apart) = (makespan(&pair, 2, size), makespan(&pair, 1, size));
                    assert!(chose <= 1.05 * apart, "{size:?}: {chose} s, apart {apart} s");
                    chosen[usize::from(chose < 0.97 * apart)] += 1;
                }
            }
        }
    }
    // Both are there.
    assert!(chosen.iter().all(|times| *times > 10), "{chosen:?}");
}
