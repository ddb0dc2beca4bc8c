//! Graphs of operators on the simulated device: the bits of the host, with every split into tasks and every order of them.

use pto_host::graph::builder_set;
use pto_host::session::{Session, SessionOptions};
use pto_host::stitch::{HostTensor, Inputs, Stitcher};
use pto_host::virtual_time::{VirtualOptions, VirtualReport};
use pto_host::{Device, DeviceOptions, Hosting, Kernel, RunReport};
use pto_operators::{
    Binary, COST_WORD, DType, Epilogue, LowerOptions, Lowered, Operator, OperatorGraph, Padding,
    Pooling, Reduction, STATUS, Status, Tensor, TensorType, Unary, ValueId, Window, kernels,
    node_titles,
};

use crate::array::Rng;
use crate::random::{Case, case};

builder_set! {
    struct NoPrograms {}
    stream {
        "workload" => pto_host::graph::plan::expand,
    }
}

fn session_on(hosting: Hosting) -> Session {
    let options = DeviceOptions { aic: 4, aiv: 8, gm_bytes: 1 << 30, hosting };
    let mut device = Device::open_sim(options, NoPrograms).unwrap();
    device.register_library().unwrap();
    device.session(SessionOptions::default()).unwrap()
}

fn in_virtual_time(seed: u64) -> Session {
    session_on(Hosting::Virtual(VirtualOptions { seed, ..VirtualOptions::default() }))
}

/// What a program gives on a device, and what its tasks said.
fn run(session: &Session, lowered: &Lowered, inputs: &[Tensor]) -> (Vec<Tensor>, Status) {
    let (found, status, _) = run_and_report(session, lowered, inputs);
    (found, status)
}

/// What the machine in virtual time says of a run.
fn report_of(session: &Session, lowered: &Lowered, inputs: &[Tensor]) -> Box<VirtualReport> {
    run_and_report(session, lowered, inputs).2.and_then(|report| report.virtual_report).unwrap()
}

fn run_and_report(
    session: &Session,
    lowered: &Lowered,
    inputs: &[Tensor],
) -> (Vec<Tensor>, Status, Option<RunReport>) {
    let own: Vec<_> = kernels(&lowered.program)
        .unwrap()
        .into_iter()
        .map(|kernel| Kernel::from_fn(kernel.name, kernel.kind, kernel.entry))
        .map(|kernel| kernel.with_cost_word(COST_WORD))
        .collect();
    let stitcher = Stitcher::new(session).unwrap();
    let program = stitcher.load_with(lowered.program.clone(), own).unwrap();
    let stream = stitcher.stream().unwrap();
    let mut given = Vec::new();
    for ((name, _), tensor) in lowered.inputs.iter().zip(inputs) {
        let of = lowered.program.tensor(name).unwrap();
        let mut bytes = tensor.bytes().to_vec();
        bytes.resize(usize::try_from(of.bytes()).unwrap(), 0);
        let host = HostTensor::new(of.dtype, &of.shape, bytes).unwrap();
        given.push((name, stream.to_device(&host, &of.layout).unwrap()));
    }
    let all = given.iter().fold(Inputs::new(), |all, (name, tensor)| all.borrow(name, tensor));
    let mut outputs = stream.run(&program, all).unwrap();
    let mut found = Vec::new();
    for (name, ty) in &lowered.outputs {
        let tensor = outputs.take(name).unwrap();
        let bytes = stream.to_host(&tensor).unwrap().bytes()[..ty.bytes()].to_vec();
        found.push(Tensor::from_bytes(ty.clone(), bytes).unwrap());
    }
    let status = stream.to_host(&outputs.take(STATUS).unwrap()).unwrap();
    let words: Vec<u64> = status
        .bytes()
        .chunks_exact(8)
        .map(|bytes| u64::from_ne_bytes(bytes.try_into().unwrap()))
        .collect();
    (found, Status::read(&words), stream.take_report())
}

/// A graph of one operator, all of whose inputs are given.
fn graph_of((operator, inputs): &Case) -> OperatorGraph {
    let mut graph = OperatorGraph::new("one");
    let values: Vec<_> = inputs
        .iter()
        .enumerate()
        .map(|(at, input)| {
            input.as_ref().map(|input| graph.add_input(&format!("x{at}"), input.ty().clone()))
        })
        .collect();
    let outputs = graph.add_node("node", operator.clone(), &values).unwrap();
    for (at, output) in outputs.iter().enumerate() {
        graph.add_output(&format!("y{at}"), *output);
    }
    graph
}

const FINE: LowerOptions =
    LowerOptions { cores: [7, 7], grain_ns: 1, dispatch_ns: 0, most_names: 100 };

#[test]
fn tasks_have_the_bits_of_the_host() {
    let session = session_on(Hosting::default());
    for seed in 0..240 {
        let one = case(seed);
        if one.0.needs_elements() {
            continue;
        }
        let given: Vec<_> = one.1.iter().map(Option::as_ref).collect();
        let wanted = one.0.evaluate(&given).unwrap();
        let lowered = graph_of(&one).lower(&FINE).unwrap();
        let inputs: Vec<_> = one.1.iter().flatten().cloned().collect();
        let (found, status) = run(&session, &lowered, &inputs);
        assert_eq!(status, Status::Good, "seed {seed}");
        for (found, wanted) in found.iter().zip(&wanted) {
            assert!(
                found.bytes() == wanted.bytes(),
                "seed {seed}: {:?} gives {found:?}, not {wanted:?}",
                one.0
            );
        }
    }
}

/// A small network with every way in which tasks can depend on each other.
fn network() -> (OperatorGraph, Vec<Tensor>) {
    let mut rng = Rng::new(3);
    let mut graph = OperatorGraph::new("network");
    let x = graph.add_input("x", TensorType::new(DType::F32, &[2, 8, 24, 24]));
    let mut constant = |graph: &mut OperatorGraph, name: &str, shape: &[usize]| {
        let data: Vec<f64> = (0..shape.iter().product()).map(|_| rng.real(-0.3, 0.3)).collect();
        graph.add_constant(name, crate::array::tensor(DType::F32, shape, &data))
    };
    let (w, b) = (constant(&mut graph, "w", &[16, 8, 3, 3]), constant(&mut graph, "b", &[16]));
    let depthwise = constant(&mut graph, "depthwise", &[16, 1, 3, 3]);
    let (gate, matrix) =
        (constant(&mut graph, "gate", &[16, 16, 1, 1]), constant(&mut graph, "matrix", &[16, 10]));
    let window = |padding: Vec<i64>| Window {
        kernel: vec![],
        strides: vec![],
        dilations: vec![],
        padding: Padding::Explicit(padding),
    };
    let relu = Epilogue::Unary(Unary::Relu);
    let add = |graph: &mut OperatorGraph, name: &str, operator: Operator, inputs: &[ValueId]| {
        let inputs: Vec<_> = inputs.iter().copied().map(Some).collect();
        graph.add_node(name, operator, &inputs).unwrap()[0]
    };
    let conv = Operator::Conv { window: window(vec![1; 4]), groups: 1, epilogue: relu };
    let first = add(&mut graph, "conv", conv, &[x, w, b]);
    let second = add(
        &mut graph,
        "depthwise",
        Operator::Conv { window: window(vec![1; 4]), groups: 16, epilogue: Epilogue::None },
        &[first, depthwise],
    );
    let pooled = add(
        &mut graph,
        "squeeze",
        Operator::GlobalPool { pooling: Pooling::Average { count_padding: false } },
        &[second],
    );
    let sigmoid = Epilogue::Unary(Unary::Sigmoid);
    let gated = add(
        &mut graph,
        "excite",
        Operator::Conv { window: window(vec![]), groups: 1, epilogue: sigmoid },
        &[pooled, gate],
    );
    let scaled = add(&mut graph, "scale", Operator::Binary(Binary::Mul), &[second, gated]);
    let sum = add(&mut graph, "shortcut", Operator::Binary(Binary::Add), &[scaled, first]);
    let last = add(
        &mut graph,
        "last",
        Operator::Transpose { permutation: Some(vec![0, 2, 3, 1]) },
        &[sum],
    );
    let rows = add(
        &mut graph,
        "rows",
        Operator::Reshape { shape: vec![2, -1, 16], allow_zero: false },
        &[last],
    );
    let scores =
        add(&mut graph, "scores", Operator::MatMul { epilogue: Epilogue::None }, &[rows, matrix]);
    let best = add(&mut graph, "best", Operator::Softmax { axis: -1 }, &[scores]);
    let mean = add(
        &mut graph,
        "mean",
        Operator::Reduce { reduction: Reduction::Mean, axes: Some(vec![1]), keep_dims: false },
        &[best],
    );
    // Twice the same value, a reshaped one, an input, a constant.
    graph.add_output("mean", mean);
    graph.add_output("again", mean);
    let flat = add(&mut graph, "flat", Operator::Flatten { axis: 1 }, &[sum]);
    graph.add_output("flat", flat);
    graph.add_output("input", x);
    graph.add_output("constant", b);
    let input = rng.tensor(DType::F32, &[2, 8, 24, 24]);
    (graph, vec![input])
}

/// What the nodes give, one after another on the host.
fn evaluated(graph: &OperatorGraph, inputs: &[Tensor]) -> Vec<Tensor> {
    let mut values: Vec<Option<Tensor>> =
        graph.values().iter().map(|value| value.constant.clone()).collect();
    graph
        .inputs()
        .iter()
        .zip(inputs)
        .for_each(|(value, tensor)| values[value.0] = Some(tensor.clone()));
    for node in graph.nodes() {
        let given: Vec<_> = node
            .inputs
            .iter()
            .map(|input| input.and_then(|value| values[value.0].as_ref()))
            .collect();
        let outputs = node.operator.evaluate(&given).unwrap();
        node.outputs.iter().zip(outputs).for_each(|(value, tensor)| values[value.0] = Some(tensor));
    }
    graph.outputs().iter().map(|(_, value)| values[value.0].clone().unwrap()).collect()
}

#[test]
fn a_network_gives_the_same_bits_with_every_seed_and_split() {
    let (graph, inputs) = network();
    let wanted = evaluated(&graph, &inputs);
    let coarse = graph.lower(&LowerOptions::default()).unwrap();
    let fine = graph.lower(&FINE).unwrap();
    assert!(coarse.nodes.len() < fine.nodes.len() && fine.activation_peak < fine.activation_bytes);
    assert!(coarse.nodes.iter().any(|nodes| nodes.len() > 1), "{:?}", coarse.nodes);
    assert!(fine.nodes.iter().all(|nodes| nodes.len() < 2), "{:?}", fine.nodes);
    assert_eq!(run(&session_on(Hosting::default()), &coarse, &inputs).0, wanted);
    for seed in 0..12 {
        let (found, status) = run(&in_virtual_time(seed), &fine, &inputs);
        assert!(found == wanted && status == Status::Good, "seed {seed}");
    }
}

/// A program is the same after its file; a file whose operators were changed is refused.
#[test]
fn a_program_file_brings_its_operators_along() {
    let (graph, inputs) = network();
    let lowered = graph.lower(&FINE).unwrap();
    let bytes = lowered.program.to_bytes();
    let program = pto_host::workloads::program::Program::from_bytes(&bytes).unwrap();
    let names: Vec<_> = kernels(&program).unwrap().into_iter().map(|kernel| kernel.name).collect();
    assert!(
        names.contains(&"Conv/depthwise".to_owned()) && names.contains(&"Softmax/best".to_owned()),
        "{names:?}"
    );
    let again = Lowered { program: program.clone(), ..lowered };
    assert_eq!(run(&session_on(Hosting::default()), &again, &inputs).0, evaluated(&graph, &inputs));
    let words = program.constant(0).unwrap().to_vec();
    let mut refused = 0;
    for at in (0..words.len()).step_by(8) {
        for value in [0_u8, 1, 7, 255] {
            let mut changed = words.clone();
            changed[at] = value;
            let changed = program.clone().with_constant("pto.operators", changed).unwrap();
            refused += usize::from(kernels(&changed).is_err());
        }
    }
    assert!(refused > words.len() / 8, "{refused} of {} changes were refused", words.len() / 2);
}

#[test]
fn an_index_that_stands_for_nothing_is_told_by_its_node() {
    let mut graph = OperatorGraph::new("gather");
    let x = graph.add_input("x", TensorType::new(DType::F32, &[4, 2]));
    let index = graph.add_input("index", TensorType::new(DType::I64, &[3]));
    let y = graph.add_node("pick", Operator::Gather { axis: 0 }, &[Some(x), Some(index)]).unwrap();
    graph.add_output("y", y[0]);
    let lowered = graph.lower(&FINE).unwrap();
    let inputs =
        [Tensor::from_elements(&[4, 2], &[0.0_f32; 8]).unwrap(), Tensor::vector(&[0_i64, -5, 1])];
    let (_, status) = run(&session_on(Hosting::default()), &lowered, &inputs);
    assert_eq!(status, Status::Index { node: 0, index: -5, extent: 4 });
    let wanted = "operator Gather of node pick: the index is -5, and the axis has 4 elements";
    assert_eq!(status.reason(&node_titles(&lowered.program)).as_deref(), Some(wanted));
}

/// Short operators that wait for each other are one task, which says what it costs; a task in virtual time takes that.
#[test]
fn short_operators_share_a_task_and_cost_their_sum() {
    let mut graph = OperatorGraph::new("chain");
    let x = graph.add_input("x", TensorType::new(DType::F32, &[4, 2]));
    let index = graph.add_input("index", TensorType::new(DType::I64, &[3]));
    let add = |graph: &mut OperatorGraph, name: &str, operator: Operator, inputs: &[ValueId]| {
        let inputs: Vec<_> = inputs.iter().copied().map(Some).collect();
        graph.add_node(name, operator, &inputs).unwrap()[0]
    };
    let exp = add(&mut graph, "exp", Operator::Unary(Unary::Exp), &[x]);
    let pick = add(&mut graph, "pick", Operator::Gather { axis: 0 }, &[exp, index]);
    let sum = add(&mut graph, "sum", Operator::Binary(Binary::Add), &[pick, pick]);
    graph.add_output("sum", sum);
    let lowered = graph.lower(&LowerOptions::default()).unwrap();
    assert_eq!(lowered.nodes, [[0, 1, 2]]);
    let names: Vec<_> =
        kernels(&lowered.program).unwrap().into_iter().map(|one| one.name).collect();
    assert_eq!(names, ["Chain/exp+pick+sum"]);
    let apart = graph.lower(&LowerOptions { dispatch_ns: 0, ..LowerOptions::default() }).unwrap();
    assert_eq!(apart.nodes, [[0], [1], [2]]);
    let sum_ns = |lowered: &Lowered| lowered.costs.iter().map(|cost| cost.ns()).sum::<u64>();
    assert!(sum_ns(&lowered).abs_diff(sum_ns(&apart)) < 3 && sum_ns(&lowered) > 0);

    let inputs =
        [Tensor::from_elements(&[4, 2], &[0.5_f32; 8]).unwrap(), Tensor::vector(&[0_i64, -1, 1])];
    let session = in_virtual_time(0);
    let (found, status) = run(&session, &lowered, &inputs);
    assert!(status == Status::Good && found == evaluated(&graph, &inputs));
    let wrong = [inputs[0].clone(), Tensor::vector(&[0_i64, 7, 1])];
    let (_, status) = run(&session, &lowered, &wrong);
    assert_eq!(status, Status::Index { node: 1, index: 7, extent: 4 });
    let titles =
        ["operator Exp of node exp", "operator Gather of node pick", "operator Add of node sum"];
    assert_eq!(node_titles(&lowered.program), titles);
    let broken = Status::read(&[3, 0, u64::MAX, 0]).reason(&titles.map(str::to_owned));
    assert!(
        broken.is_some_and(|why| why.starts_with("operator Add of node sum: its kernel stopped"))
    );
}

/// The cores are busy as long as the tasks say.
#[test]
fn a_run_in_virtual_time_takes_what_its_tasks_say() {
    let (graph, inputs) = network();
    let lowered = graph.lower(&FINE).unwrap();
    let session = in_virtual_time(3);
    let wanted: u64 = lowered.costs.iter().map(|cost| cost.ns()).sum();
    let report = report_of(&session, &lowered, &inputs);
    let busy_ns: u64 = report.kinds.iter().map(|kind| kind.busy_ns).sum();
    assert_eq!(busy_ns, wanted);
    assert!(wanted > 0 && report.makespan_ns > wanted / 12);
}
