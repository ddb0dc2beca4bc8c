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
    Body, BuilderReference, GraphArgument, GraphCondition, GraphTask, Layout, OwnedBlockShape,
    Program, Role, TensorDescription,
};
use pto_host::{Device, DeviceOptions, Hosting, RunOptions, func};

use super::{Builders, add_one, compiled, tensor, values};

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
        Some(name) => Body::Builder(BuilderReference {
            name: name.to_owned(),
            variant: RuntimeVariant::TENSORMAP_AND_RINGBUFFER,
            words: vec![
                of(0, 0),
                of(1, 0),
                GraphArgument::Word(rows / 8),
                GraphArgument::Word(columns),
            ],
        }),
        None => Body::Graph(
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
                    block_shape: OwnedBlockShape::default(),
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
    let options = DeviceOptions { aic: 1, aiv: 2, gm_bytes: 1 << 30, hosting };
    let mut device = Device::open_sim(options, Builders).unwrap();
    device.register_library().unwrap();
    let run = RunOptions { aicpu_instances: 2, ..RunOptions::default() };
    let options = SessionOptions { run, ..SessionOptions::default() };
    let session = device.session(options).unwrap();
    let stitcher = Stitcher::new(&session).unwrap();
    let stream = stitcher.overlapping_stream(overlap).unwrap();
    let ones = vec![1.0_f32; usize::try_from(ROWS * COLUMNS).unwrap()];
    let x = HostTensor::of_f32(&[ROWS, COLUMNS], &ones).unwrap();
    let mut x = stream.to_device(&x, &Layout::device()).unwrap();
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
    assert_eq!(wrong, None, "seed {seed}: {} and not {expected}", found[wrong.unwrap_or(0)]);
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

/// What a builder hides from the runtime is kept in order by gates, whatever order a seed chooses; so are tasks of which nobody knows what they touch.
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
            // And so would the plan behind tasks that wait at a gate.
            [&plan, &plan, &hidden, &plan],
            [&plan, &hidden, &read, &gated],
        ] {
            assert_eq!(run(&order, 4, seed).1, 1);
        }
    }
}

/// `Y = X + X` as a graph whose tasks have a predicate that is always true. Nobody says what such tasks touch.
fn conditional() -> Program {
    let program = doubled(None, ROWS, COLUMNS);
    let Body::Graph(tasks) = program.body() else { panic!("it is a graph") };
    let when = GraphCondition {
        tensor: 0,
        offset: 0,
        element: ElementType::F32,
        comparison: Comparison::GREATER_EQUAL,
        value: 0.0_f32.to_bits().into(),
    };
    let block_shape = OwnedBlockShape { when: Some(when), ..OwnedBlockShape::default() };
    let tasks =
        tasks.iter().map(|task| GraphTask { block_shape: block_shape.clone(), ..task.clone() });
    let body = Body::Graph(tasks.collect());
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
