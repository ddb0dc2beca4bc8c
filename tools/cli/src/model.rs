//! Models in files of ONNX: `pto run`, `pto check`, `pto graph` and `pto program build` of one.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::Instant;

use pto_abi::CoreKind;
use pto_examples::host::random::Rng;
use pto_examples::host::{DType as FileType, ElementVec, Tensor as FileTensor};
use pto_host::stitch::HostTensor;
use pto_host::timeline::graph::{Graph, GraphTask};
use pto_host::timeline::{Edge, Trace};
use pto_host::virtual_time::{Injection, VirtualOptions};
use pto_host::workloads::program::{Program, ProgramBody};
use pto_host::{DeviceOptions, Hosting, RunOptions, RunReport, SessionOptions};
use pto_models::{Built, Given, Model, ModelError, Runner, parse_shape};
use pto_operators::{DType, LowerOptions, Lowered, Tensor, TensorType};
use serde_json::json;

use crate::args::{CheckArgs, GraphArgs, RunArgs};
use crate::device::Wanted;
use crate::errors::{Exit, Failure};
use crate::form::Form;
use crate::kernels::KernelSet;
use crate::output::answer;
use crate::predict::Prediction;
use crate::ptop::judge::{Judged, Tolerance, compared};
use crate::ptop::run_report::{Files, RunSummary, answer_run};
use crate::request::check_unique;
use crate::text::{bytes, counted, table};
use crate::{npy, output_file, timeline, virtual_time};

/// Whether a name is that of a model.
pub(crate) fn is_model(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("onnx"))
}

/// Refuses `--shape` for everything that is no model.
pub(crate) fn refuse_shapes(shapes: &[String]) -> Result<(), Failure> {
    if shapes.is_empty() {
        return Ok(());
    }
    Err(Failure::usage(
        "--shape gives the extents of a model's inputs (a file .onnx); leave it out",
    ))
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        match error {
            ModelError::Device(_) => Self::internal(error),
            _ => Self::usage(error),
        }
    }
}

/// A model for certain extents, as a program.
struct Ready {
    nodes: usize,
    built: Built,
    lowered: Lowered,
    /// What each input is given.
    values: BTreeMap<String, Tensor>,
}

/// What a user says of a model.
struct Asked<'a> {
    path: &'a Path,
    shapes: &'a [String],
    params: &'a [(String, String)],
    inputs: &'a [(String, PathBuf)],
    /// Cores of each kind.
    cores: [u32; CoreKind::COUNT],
}

impl Asked<'_> {
    /// Reads the model and its inputs, and builds its program.
    fn ready(&self) -> Result<Ready, Failure> {
        let mut model = Model::read(self.path)?;
        check_unique("--input", self.inputs.iter().map(|(name, _)| name))?;
        check_unique("--param", self.params.iter().map(|(name, _)| name))?;
        for shape in self.shapes {
            let (name, shape) =
                parse_shape(shape).map_err(|what| Failure::usage(format!("--shape {what}")))?;
            model.set_shape(&name, shape)?;
        }
        let mut given = Given::default();
        for (name, text) in self.params {
            let extent = text.parse().map_err(|_| {
                Failure::usage(format!("--param {name}: '{text}' is not a whole number from 0 on"))
            })?;
            given.symbols.insert(name.clone(), extent);
        }
        for (name, path) in self.inputs {
            let input = model.inputs().iter().find(|input| input.name == *name);
            let known = || {
                model
                    .inputs()
                    .iter()
                    .map(|input| input.name.as_str())
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            let input = input.ok_or_else(|| {
                Failure::usage(format!(
                    "--input {name}: the model has no such input; its inputs are {}",
                    known()
                ))
            })?;
            given.values.insert(name.clone(), of_file(name, input.dtype, &npy::read(path)?)?);
        }
        let built = model.build(&given)?;
        let cores = self.cores.map(|cores| cores.max(1) as usize);
        let lowered = built.lower(&LowerOptions { cores, ..LowerOptions::default() })?;
        let mut values = given.values;
        for (name, ty) in &lowered.inputs {
            if !values.contains_key(name) {
                values.insert(name.clone(), drawn(name, ty));
            }
        }
        Ok(Ready { nodes: model.node_count(), built, lowered, values })
    }
}

impl Ready {
    /// What a model says of itself.
    fn facts(&self) -> Vec<(&'static str, String)> {
        let Lowered { nodes, activation_bytes, activation_peak, .. } = &self.lowered;
        let operators = self.built.graph.nodes().len();
        let constants =
            self.built.graph.values().iter().filter_map(|value| value.constant.as_ref());
        let weights: usize = constants.map(|tensor| tensor.bytes().len()).sum();
        let mut facts = vec![
            (
                "model",
                format!(
                    "{} of the file, {}, {}",
                    counted(self.nodes as u64, "node"),
                    counted(operators as u64, "operator"),
                    counted(nodes.len() as u64, "task")
                ),
            ),
            (
                "memory",
                format!(
                    "constants {}; activations {}, and {} if none shared memory",
                    bytes(weights as u64),
                    bytes(*activation_peak),
                    bytes(*activation_bytes)
                ),
            ),
        ];
        let decided: Vec<_> = self.built.decided.keys().map(String::as_str).collect();
        if !decided.is_empty() {
            facts.push((
                "decided",
                format!(
                    "the values of {} decide shapes: the program holds for these values alone",
                    decided.join(", ")
                ),
            ));
        }
        facts.extend(self.built.notes.iter().map(|note| ("note", note.clone())));
        facts
    }

    /// How long the cores of each kind together take for transfers from and to memory, in ns.
    fn transfers_ns(&self) -> [u64; CoreKind::COUNT] {
        let mut all = [0; CoreKind::COUNT];
        if let ProgramBody::Graph(tasks) = self.lowered.program.body() {
            for (task, cost) in tasks.iter().zip(&self.lowered.costs) {
                all[task.kind.index()] += cost.transfer_ps;
            }
        }
        all.map(|picoseconds| picoseconds / 1_000)
    }

    /// The name of each task: those of its nodes.
    fn task_names(&self) -> Vec<String> {
        let nodes = self.built.graph.nodes();
        let name = |of: &Vec<usize>| {
            let names: Vec<_> = of
                .iter()
                .filter_map(|node| nodes.get(*node))
                .map(|node| node.name.as_str())
                .collect();
            if names.is_empty() { "join".to_owned() } else { names.join("+") }
        };
        self.lowered.nodes.iter().map(name).collect()
    }
}

/// A file as a tensor of this type. A NumPy file has no `f16` and `bf16`: it holds their bits as `u16`, and `bool` as `u8`.
fn of_file(name: &str, dtype: DType, file: &FileTensor) -> Result<Tensor, Failure> {
    let stored = file_type(dtype);
    if file.dtype() != stored {
        let how = if stored.name() == dtype.name() {
            String::new()
        } else {
            format!(", which a file holds as {stored}")
        };
        return Err(Failure::usage(format!(
            "{name}: the file has elements of type {}, and the model has {dtype} there{how}",
            file.dtype()
        )));
    }
    let shape: Vec<usize> =
        file.shape().iter().map(|extent| usize::try_from(*extent).unwrap_or(usize::MAX)).collect();
    let tensor = Tensor::from_bytes(TensorType::new(dtype, &shape), file.bytes());
    tensor.map_err(|found| {
        Failure::usage(format!(
            "{name}: the file has {found} bytes, and {dtype}{shape:?} is wanted"
        ))
    })
}

/// The type with which a file holds elements.
fn file_type(dtype: DType) -> FileType {
    let name = match dtype {
        DType::Bool => "u8",
        DType::F16 | DType::BF16 => "u16",
        other => other.name(),
    };
    FileType::ALL.iter().copied().find(|dtype| dtype.name() == name).unwrap_or(FileType::F32)
}

fn to_file(tensor: &Tensor) -> Option<FileTensor> {
    let shape = tensor.shape().iter().map(|extent| *extent as u64).collect();
    FileTensor::new(shape, ElementVec::from_bytes(file_type(tensor.dtype()), tensor.bytes()))
}

/// An input that is not given: floats are random, everything else is 0.
fn drawn(name: &str, ty: &TensorType) -> Tensor {
    let mut tensor = Tensor::zeros(ty.clone());
    let mut random = Rng::new(1, name);
    let dtype = ty.dtype;
    if dtype.is_float() {
        for element in tensor.bytes_mut().chunks_mut(dtype.bytes()) {
            let bits = pto_host::workloads::tile::element::bits_of(dtype.stored(), random.unit())
                .to_ne_bytes();
            element.copy_from_slice(&bits[..dtype.bytes()]);
        }
    }
    tensor
}

/// Runs a model.
pub(crate) fn run(args: &RunArgs) -> Result<Exit, Failure> {
    let served = ["--output", "--expect", "--trace", "--predict", "--rounds"];
    let other =
        args.of_one_graph().find(|(option, is_given)| *is_given && !served.contains(option));
    if let Some((option, _)) = other {
        return Err(Failure::usage(format!("{option} is not for models; leave it out")));
    }
    check_unique("--output", args.outputs.iter().map(|(name, _)| name))?;
    args.outputs.iter().try_for_each(|(_, path)| output_file::check_form(path, "npy"))?;
    args.trace.as_deref().map_or(Ok(()), |path| output_file::check_form(path, "json"))?;
    let wanted = Wanted::of(args)?;
    if !wanted.runs_here() {
        return Err(Failure::usage(format!(
            "the operators of a model are code of this process, and {} runs none of it; use the simulator",
            wanted.name()
        )));
    }
    let asked = Asked {
        path: Path::new(&args.example),
        shapes: &args.shapes,
        params: &args.params,
        inputs: &args.inputs,
        cores: [CoreKind::AIC, CoreKind::AIV].map(|kind| wanted.cores(kind)),
    };
    let ready = asked.ready()?;
    let expected = expected(args, &ready)?;
    check_outputs(args, &ready)?;
    let ran = run_on(args, &wanted, &ready)
        .map_err(|failure| virtual_time::tell_failed(failure, wanted.virtual_options()))
        .map_err(|failure| timeline::keep(failure, args, &wanted, |trace| name(trace, &ready)))?;
    let mut facts = ready.facts();
    if args.predict {
        let prediction = predict(args, &wanted, &ready)?;
        let [first, second] = prediction.text();
        let bounds = prediction.bounds(ready.transfers_ns());
        facts.extend([("predicted", first), ("", second), ("bounds", bounds)]);
    }
    let injection = wanted.virtual_options().and_then(|options| options.injection);
    let (fault, missed_fault) = told_fault(injection, &ran, args.virtual_time.allow_missed_fault);
    facts.extend(fault);
    let judged = expected
        .iter()
        .map(|(name, expected)| judged(name, &ran, expected, args))
        .collect::<Result<Vec<_>, Failure>>()?;
    let mut files = Files::default();
    for (name, path) in &args.outputs {
        match ran.output(name).and_then(|tensor| {
            let file = to_file(tensor)
                .ok_or_else(|| Failure::internal(format!("output {name} does not fit a file")))?;
            npy::write(path, &file)
        }) {
            Ok(()) => files.saved.push(path.display().to_string()),
            Err(unwritten) => files.unwritten.push(unwritten),
        }
    }
    if let Some(path) = &args.trace {
        let trace = ran.report.as_ref().and_then(|report| report.trace.as_deref()).cloned();
        let written = trace.ok_or_else(|| {
            Failure::internal("the run has left no timeline; this is an error of the runtime")
        });
        let written = written.and_then(|trace| {
            let mut trace = timeline::with_facts(trace, args, &wanted);
            name(&mut trace, &ready);
            timeline::write_run(&trace, path)
        });
        files.unwritten.extend(written.err());
    }
    let given =
        args.inputs.iter().map(|(name, _)| (name.clone(), nans(&ready.values[name]))).collect();
    let outputs = ran
        .outputs
        .iter()
        .filter_map(|(name, tensor)| Some((name.clone(), shown(tensor)?)))
        .collect();
    let summary = RunSummary {
        program: ready.built.graph.name().to_owned(),
        rounds: u64::from(args.rounds),
        given,
        outputs,
        judged,
        counters: ran.counters,
        times: ran.times,
        virtual_time: ran.virtual_time,
        left_bytes: 0,
        missed_fault,
        facts,
        files,
    };
    answer_run(args.json, &summary)
}

/// What is said of a fault that was asked for, and whether it is missed; a run that it ended says more.
fn told_fault(
    injection: Option<Injection>,
    ran: &Ran,
    may_be_missed: bool,
) -> (Option<(&'static str, String)>, bool) {
    let Some(injection) = injection else { return (None, false) };
    if ran.is_disturbed {
        return (Some(("fault", format!("{injection} happened"))), false);
    }
    let what = if may_be_missed {
        ""
    } else {
        "; FAIL: name a core and a task that the run has, or add --allow-missed-fault"
    };
    (Some(("fault", format!("{injection} did NOT happen{what}"))), !may_be_missed)
}

/// The names of a model's tasks, in its timeline.
fn name(trace: &mut Trace, ready: &Ready) {
    timeline::name_tasks(trace, ready.task_names(), pto_host::WhenFull::DropOldest);
}

fn nans(tensor: &Tensor) -> u64 {
    tensor.to_doubles().iter().filter(|value| value.is_nan()).count() as u64
}

/// An output, as the report tells it.
fn shown(tensor: &Tensor) -> Option<HostTensor> {
    let shape: Vec<u64> = tensor.shape().iter().map(|extent| *extent as u64).collect();
    HostTensor::new(tensor.dtype().stored(), &shape, tensor.bytes().to_vec()).ok()
}

/// What came of a run.
struct Ran {
    outputs: Vec<(String, Tensor)>,
    times: Vec<std::time::Duration>,
    virtual_time: Option<std::time::Duration>,
    counters: pto_host::stitch::Counters,
    /// Whether an injected fault has happened in a round.
    is_disturbed: bool,
    /// Of the last round.
    report: Option<RunReport>,
}

impl Ran {
    fn output(&self, name: &str) -> Result<&Tensor, Failure> {
        let found = self.outputs.iter().find(|(known, _)| known == name).map(|(_, tensor)| tensor);
        found.ok_or_else(|| {
            Failure::internal(format!(
                "the run has not given output '{name}'; this is an error of the runtime"
            ))
        })
    }
}

fn run_on(args: &RunArgs, wanted: &Wanted, ready: &Ready) -> Result<Ran, Failure> {
    let mut device = wanted.open(None)?;
    KernelSet::default().register(&mut device)?;
    let run = RunOptions {
        aicpu_instances: args.aicpu.unwrap_or_else(|| wanted.session_aicpu()),
        trace: timeline::options(args),
        ..args.with_budgets(RunOptions::default())
    };
    let session = device.session(SessionOptions { run, ..SessionOptions::default() })?;
    let runner = Runner::new(&session)?;
    let model = runner.load(ready.lowered.clone())?;
    let (before, begun) = (runner.counters(), session.now());
    let (mut times, mut outputs) = (Vec::new(), Vec::new());
    let (mut report, mut is_disturbed) = (None, false);
    for _ in 0..args.rounds {
        let started = Instant::now();
        outputs = runner.run(&model, &ready.values)?;
        times.push(started.elapsed());
        report = runner.stream().take_report();
        let seen = report.as_ref().and_then(|report| report.virtual_report.as_ref());
        is_disturbed |= seen.is_some_and(|report| report.injections > 0);
    }
    let virtual_time = wanted.virtual_options().map(|_| session.now().saturating_sub(begun));
    let counters = runner.counters().since(&before);
    Ok(Ran { outputs, times, virtual_time, counters, is_disturbed, report })
}

/// The same run once more, in virtual time, on as many cores.
fn predict(args: &RunArgs, wanted: &Wanted, ready: &Ready) -> Result<Prediction, Failure> {
    let options = VirtualOptions::default();
    let [aic, aiv] = [CoreKind::AIC, CoreKind::AIV].map(|kind| wanted.cores(kind));
    let hosting = Hosting::Virtual(options);
    let machine =
        Wanted::Simulator(DeviceOptions { aic, aiv, gm_bytes: wanted.gm_bytes(), hosting });
    let mut device = machine.open(None)?;
    KernelSet::default().register(&mut device)?;
    let run = RunOptions {
        aicpu_instances: args.aicpu.unwrap_or_else(|| machine.session_aicpu()),
        ..RunOptions::default()
    };
    let session = device.session(SessionOptions { run, ..SessionOptions::default() })?;
    let runner = Runner::new(&session)?;
    let model = runner.load(ready.lowered.clone())?;
    runner.run(&model, &ready.values)?;
    let report = runner.stream().take_report().and_then(|report| report.virtual_report);
    let report = report.ok_or_else(|| {
        Failure::internal(
            "the run has left no report in virtual time; this is an error of the runtime",
        )
    })?;
    Ok(Prediction::new(options, report, 0))
}

/// The files of `--expect`; nothing runs for a file that no output can be compared with.
fn expected(args: &RunArgs, ready: &Ready) -> Result<Vec<(String, Vec<f64>)>, Failure> {
    check_unique("--expect", args.expect.iter().map(|(name, _)| name))?;
    let mut all = Vec::new();
    for (name, path) in &args.expect {
        let ty = output(ready, "--expect", name)?;
        let file = npy::read(path)?;
        let is_wider = (file.dtype(), ty.dtype) == (FileType::F64, DType::F32);
        let tensor = of_file(
            &format!("--expect {name}"),
            if is_wider { DType::F64 } else { ty.dtype },
            &file,
        )?;
        if tensor.shape() != ty.shape {
            return Err(Failure::usage(format!(
                "--expect {name}: the file has the extents {:?}, and the output is {ty}",
                tensor.shape()
            )));
        }
        all.push((name.clone(), tensor.to_doubles()));
    }
    Ok(all)
}

fn output<'r>(ready: &'r Ready, option: &str, name: &str) -> Result<&'r TensorType, Failure> {
    let outputs = &ready.lowered.outputs;
    let known: Vec<_> = outputs.iter().map(|(name, _)| name.as_str()).collect();
    let found = outputs.iter().find(|(known, _)| known == name).map(|(_, ty)| ty);
    found.ok_or_else(|| {
        Failure::usage(format!(
            "{option} {name}: the model has no output '{name}'; its outputs are {}",
            known.join(", ")
        ))
    })
}

fn check_outputs(args: &RunArgs, ready: &Ready) -> Result<(), Failure> {
    args.outputs.iter().try_for_each(|(name, _)| output(ready, "--output", name).map(|_| ()))
}

fn judged(name: &str, ran: &Ran, expected: &[f64], args: &RunArgs) -> Result<Judged, Failure> {
    let tolerance = Tolerance { rtol: args.rtol, atol: args.atol, pcc: None };
    Ok(compared(name, (&ran.output(name)?.to_doubles(), expected), tolerance))
}

/// The program of a model.
pub(crate) fn program(path: &Path, shapes: &[String]) -> Result<Program, Failure> {
    let DeviceOptions { aic, aiv, .. } = DeviceOptions::default();
    let cores = [aic, aiv];
    let ready = Asked { path, shapes, params: &[], inputs: &[], cores }.ready()?;
    Ok(ready.lowered.program)
}

/// Says whether a model can run.
pub(crate) fn check(args: &CheckArgs) -> Result<Exit, Failure> {
    let asked = Asked {
        path: Path::new(&args.target),
        shapes: &args.shapes,
        params: &args.params,
        inputs: &args.inputs,
        cores: [args.aic, args.aiv],
    };
    let ready = asked.ready()?;
    let facts = ready.facts();
    let typed = |(name, ty): &(String, TensorType)| (name.clone(), ty.to_string());
    let as_text = || {
        let mut rows: Vec<Vec<String>> =
            facts.iter().map(|(name, fact)| vec![(*name).to_owned(), fact.clone()]).collect();
        rows.extend(
            ready
                .lowered
                .inputs
                .iter()
                .map(typed)
                .map(|(name, ty)| vec!["takes".to_owned(), format!("{name} {ty}")]),
        );
        rows.extend(
            ready
                .lowered
                .outputs
                .iter()
                .map(typed)
                .map(|(name, ty)| vec!["gives".to_owned(), format!("{name} {ty}")]),
        );
        format!("{}\nEvery node becomes operators.\n", table(&rows, &[]))
    };
    let as_json = || {
        json!({
            "model": ready.built.graph.name(),
            "facts": facts.iter().map(|(name, text)| json!({ "name": name, "text": text })).collect::<Vec<_>>(),
            "inputs": ready.lowered.inputs.iter().map(typed).collect::<BTreeMap<_, _>>(),
            "outputs": ready.lowered.outputs.iter().map(typed).collect::<BTreeMap<_, _>>(),
        })
    };
    answer(Form::from(args.json), Exit::Pass, as_text, as_json)
}

/// The graph of a model's operators.
pub(crate) fn graph(args: &GraphArgs) -> Result<Graph, Failure> {
    let DeviceOptions { aic, aiv, .. } = DeviceOptions::default();
    let cores = [aic, aiv];
    let GraphArgs { target, shapes, params, inputs, .. } = args;
    let ready = Asked { path: Path::new(target), shapes, params, inputs, cores }.ready()?;
    let operators = &ready.built.graph;
    let mut graph = Graph { name: operators.name().to_owned(), ..Graph::default() };
    let mut makers = HashMap::new();
    for (number, node) in (0_u32..).zip(operators.nodes()) {
        let is_product = matches!(
            node.operator.name(),
            "MatMul" | "Gemm" | "Conv" | "ConvTranspose" | "Attention"
        );
        let kind = if is_product { CoreKind::AIC } else { CoreKind::AIV };
        let known = graph
            .kernels
            .iter()
            .find(|(_, name)| *name == node.operator.name())
            .map(|(func, _)| *func);
        let func = known.unwrap_or_else(|| u16::try_from(graph.kernels.len()).unwrap_or(u16::MAX));
        graph.kernels.insert(func, node.operator.name().to_owned());
        graph
            .tasks
            .push(GraphTask { name: Some(node.name.clone()), ..GraphTask::plain(func, kind) });
        let mut producers: Vec<u32> =
            node.inputs.iter().flatten().filter_map(|value| makers.get(value).copied()).collect();
        producers.sort_unstable();
        producers.dedup();
        graph
            .edges
            .extend(producers.into_iter().map(|producer| Edge { producer, consumer: number }));
        makers.extend(node.outputs.iter().map(|value| (*value, number)));
    }
    Ok(graph)
}
