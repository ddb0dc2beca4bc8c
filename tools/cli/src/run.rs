//! `pto run`: checks the request, runs the graph, checks the result, says how it went.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pto_abi::limits::MIN_AICPU_BUILD_INSTANCES;
use pto_abi::task::edges_for;
use pto_abi::{BuildMode, RuntimeVariant};
use pto_check::Cores;
use pto_examples::host::{self, Example, Inputs, Prepared, Verdict};
use pto_host::timeline::Trace;
use pto_host::{
    Capacities, Device, GraphImage, RunOptions, RunProgress, StreamCapacities, WhenFull, Work,
};

use crate::args::{RingArgs, RunArgs};
use crate::device::Wanted;
use crate::dump::{Dump, DumpRequest};
use crate::errors::{Exit, Failure};
use crate::form::Form;
use crate::golden::Golden;
use crate::meaning::with_meaning;
use crate::output::answer_with_failures;
use crate::predict::predict;
use crate::program::ProgramRequest;
use crate::progress::Phase;
use crate::request::{check_unique, request, variant_of};
use crate::round::Round;
use crate::summary::{GivenInput, MissedFault, Summary, WrittenOutput, WrittenTrace};
use crate::target::{Heap, Target};
use crate::{
    compiled_folder, group, logging, model, npy, output_file, tensor_folder, timeline, training,
    virtual_time,
};

/// Runs an example.
pub(crate) fn run(args: &RunArgs) -> Result<Exit, Failure> {
    logging::install(args.log)?;
    if compiled_folder::is_folder(&args.example) {
        return compiled_folder::run(args);
    }
    if model::is_model(&args.example) && args.group.is_none() {
        return model::run(args);
    }
    model::refuse_shapes(&args.shapes)?;
    if let Some(target) = &args.group {
        return group::run::run(args, target);
    }
    if training::is_asked(args) {
        return training::run(args);
    }
    let heap = if args.dump.is_some() { Heap::Kept } else { Heap::Shared };
    let target = Target::find(&args.example, args.kernels.as_deref(), heap)?;
    let example = target.example;
    let outputs = check_outputs(example, &args.outputs)?;
    if let Some(path) = &args.trace {
        output_file::check_form(path, "json")?;
    }
    if let Some(folder) = &args.dump {
        tensor_folder::check("--dump", folder)?;
    }
    let mut wanted = Wanted::of(args)?;
    let own = target.file.as_ref().map(|file| file.program().variant);
    let variant = variant_of(example, args.runtime.or(own))?;
    if target.file.is_some() && !wanted.runs_here() && variant.has_builder() {
        return Err(Failure::usage(format!(
            "{} runs graph files only if the host builds the graph, and {variant} builds it on the device; use the simulator, or --runtime {} for a file of tasks and edges",
            wanted.name(),
            RuntimeVariant::HOST_BUILD_GRAPH
        )));
    }
    let options = run_options(example, variant, args, &wanted)?;
    let (params, inputs) = request(example, &args.params, &args.inputs)?;
    let golden = Golden::read(example, args)?;

    let asked = DumpRequest::of(args, &target, (&wanted, variant))?;
    let programs = asked.as_ref().map_or_else(|| target.programs(), DumpRequest::programs);
    let mut device = wanted.open(programs)?;
    wanted.learn(&device);
    let needs = example.needs(&params);
    needs.check_kinds(example.name(), &device)?;
    needs.check_together(example.name(), &device)?;
    target.kernels.register(&mut device)?;
    let phase = Phase::begin("preparing inputs", 1);
    let mut prepared = example.prepare(&params, &inputs, &device)?;
    let dump = asked.as_ref().map(|asked| asked.prepare(&params, &mut prepared, &mut device));
    let dump = dump.transpose()?;
    drop(phase);
    golden.check(&prepared)?;
    let given = given_inputs(args, &inputs);
    // The tensors are on the device now, and the reference has its own.
    let inputs = args.predict.then_some(inputs);

    let checks = match args.virtual_time.no_compute {
        true => Checks::Off,
        false => Checks::Results,
    };
    let image = None;
    let mut job =
        RunJob { target: &target, device, prepared, options, variant, image, checks, golden, dump };
    job.provide(args);
    let build_time = job.build_on_host()?;
    let finish = |trace: &mut Trace, job: &RunJob<'_>| finish_timeline(trace, job, args);
    let rounds = match job.rounds(args.rounds) {
        Ok(rounds) => rounds,
        Err(failure) => {
            let failure = timeline::keep(failure, args, &wanted, |trace| finish(trace, &job));
            return Err(virtual_time::tell_failed(failure, wanted.virtual_options()));
        }
    };
    let traced = timeline::traced(&rounds, args, &wanted, |trace| finish(trace, &job));
    let trace = traced.as_ref().zip(args.trace.as_deref()).map(|(trace, path)| WrittenTrace {
        trace,
        path,
        unwritten: timeline::write_run(trace, path).err(),
    });
    let written = write_outputs(&job.prepared, &outputs)?;
    let dumped = job.dump.as_ref().map(|dump| dump.write(example.name(), &job.device));

    let prediction = inputs
        .map(|inputs| predict(&target, &params, &inputs, &wanted, variant, &job.options))
        .transpose()?;

    let summary = Summary {
        prediction: prediction.as_ref(),
        example: example.name(),
        device: job.device.name(),
        wanted: &wanted,
        start_times: job.device.start_times(),
        options: &job.options,
        variant,
        params: &params,
        build_time,
        rounds: &rounds,
        missed_fault: match args.virtual_time.allow_missed_fault {
            true => MissedFault::Passes,
            false => MissedFault::Fails,
        },
        inputs: &given,
        outputs: &written,
        dump: dumped,
        kernels: &target.kernels,
        trace,
        chart: traced.as_ref().filter(|_| args.gantt),
    };
    let unwritten: Vec<_> = summary.unwritten().collect();
    let (form, exit) = (Form::from(args.json), summary.exit());
    answer_with_failures(form, exit, &unwritten, || summary.text(), || summary.json())
}

/// What a timeline has of a file: the names of the graph and of its tasks.
fn finish_timeline(trace: &mut Trace, job: &RunJob<'_>, args: &RunArgs) {
    let [aic, aiv] = job.device.describe().cores;
    let source = ProgramRequest {
        target: &args.example,
        params: &args.params,
        inputs: &args.inputs,
        runtime: Some(job.variant),
        cores: Cores { aic, aiv },
    };
    let name = job.target.example.name();
    if name != args.example {
        trace.run.insert("example".to_owned(), name.to_owned());
        trace.run.insert("file".to_owned(), args.example.clone());
    }
    let when_full = job.options.trace.map(|trace| trace.when_full).unwrap_or_default();
    timeline::name_tasks(trace, job.target.task_names(&source), when_full);
}

/// The inputs that were given, as the summary shows them.
fn given_inputs(args: &RunArgs, inputs: &Inputs) -> Vec<GivenInput> {
    let given = args.inputs.iter().filter_map(|(name, path)| {
        let not_finite = inputs.get(name)?.not_finite();
        Some(GivenInput { name: name.clone(), path: path.clone(), not_finite })
    });
    given.collect()
}

/// The outputs and their files; nothing runs for a file that cannot be written in the end.
fn check_outputs<'a>(
    example: &dyn Example,
    outputs: &'a [(String, PathBuf)],
) -> Result<Vec<(&'a str, &'a Path)>, Failure> {
    check_unique("--output", outputs.iter().map(|(name, _)| name))?;
    for (name, path) in outputs {
        if !example.outputs().iter().any(|spec| spec.name == name) {
            let known = example.outputs().iter().map(|spec| spec.name);
            return Err(host::Error::unknown("output", name, known).into());
        }
        output_file::check_form(path, "npy")?;
    }
    Ok(outputs.iter().map(|(name, path)| (name.as_str(), path.as_path())).collect())
}

/// Everything but the capacities, which the example computes.
fn run_options(
    example: &dyn Example,
    variant: RuntimeVariant,
    args: &RunArgs,
    wanted: &Wanted,
) -> Result<RunOptions, Failure> {
    let streams = variant == RuntimeVariant::TENSORMAP_AND_RINGBUFFER;
    let of_rings = args.rings.given().into_iter().find(|(_, is_given)| *is_given);
    if let Some((option, _)) = of_rings.filter(|_| !streams) {
        return Err(Failure::usage(format!(
            "{option} works only with --runtime {}; add that, or leave it out",
            RuntimeVariant::TENSORMAP_AND_RINGBUFFER
        )));
    }
    let aicpu = args.aicpu.unwrap_or_else(|| wanted.aicpu(variant));
    if variant.has_builder() && aicpu < MIN_AICPU_BUILD_INSTANCES {
        return Err(Failure::usage(format!(
            "--aicpu {aicpu} is too few for {variant}: one instance builds the graph, and at least one more must schedule; \
             use {MIN_AICPU_BUILD_INSTANCES} to 16"
        )));
    }
    let base = match args.build_mode {
        Some(build_mode) => RunOptions { build_mode, ..RunOptions::default() },
        None => RunOptions::from_environment()?,
    };
    if !example.program().build_modes().contains(&base.build_mode) {
        return Err(Failure::usage(format!(
            "'{}' reads values that its tasks compute, so that tasks must run while it submits others: \
             it cannot run in build mode {}; use --build-mode {}",
            example.name(),
            base.build_mode.get(),
            BuildMode::CONCURRENT.get()
        )));
    }
    Ok(RunOptions {
        fanout: args.fanout,
        aicpu_instances: aicpu,
        trace: timeline::options(args),
        ..args.with_budgets(base)
    })
}

/// What ends a run that hangs.
const ENDED_BY: &str =
    "a task may take 60 s, unless --task-budget-ms says otherwise, and Ctrl-C ends the run";

/// An example on a device.
struct RunJob<'t> {
    target: &'t Target,
    device: Device,
    prepared: Prepared,
    options: RunOptions,
    variant: RuntimeVariant,
    /// The graph, if the host builds it.
    image: Option<GraphImage>,
    checks: Checks,
    golden: Golden,
    dump: Option<Dump>,
}

/// What a stream with a window of so many tasks provides for, of what the whole graph needs.
pub(crate) fn streamed_in(whole: Capacities, window: u32) -> Capacities {
    Capacities { tasks: window, arg_words: 0, edges: 0, ..whole }.streamed_whole()
}

/// Whether results are looked at: without kernels there are none.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Checks {
    Results,
    Off,
}

impl RunJob<'_> {
    /// What the run provides for: the whole graph, or the rings of a stream.
    fn provide(&mut self, args: &RunArgs) {
        self.options.capacities = self.prepared.capacities();
        if self.variant != RuntimeVariant::TENSORMAP_AND_RINGBUFFER {
            return;
        }
        // In sequential mode no task retires before all are there.
        let is_whole = self.options.build_mode == BuildMode::SEQUENTIAL;
        let capacities = &mut self.options.capacities;
        let RingArgs { window, heap_bytes, heap_rings, arg_words, edge_chunks, map_entries } =
            args.rings;
        match window {
            None if is_whole => *capacities = capacities.streamed_whole(),
            given => {
                let window = given.unwrap_or(StreamCapacities::STANDARD.window);
                *capacities = streamed_in(*capacities, window);
                // As it is given: the firmware says what a window must be.
                capacities.stream.window = window;
            }
        }
        // The capacities count neither the block context of each slot, nor what a chunk holds besides.
        let slots = u64::from(capacities.stream.window);
        capacities.arg_words =
            arg_words.map_or(capacities.arg_words, |words| words.saturating_sub(slots));
        capacities.edges = edge_chunks.map_or(capacities.edges, edges_for);
        let stream = &mut capacities.stream;
        stream.heap_bytes = heap_bytes.unwrap_or(stream.heap_bytes);
        stream.heap_rings = heap_rings.unwrap_or(stream.heap_rings);
        stream.map_entries = map_entries.unwrap_or(stream.map_entries);
        // Rings have room for the events of one window.
        let is_longer = self.prepared.size().tasks > u64::from(capacities.stream.window);
        if let Some(trace) = &mut self.options.trace
            && is_longer
            && args.trace_keep.is_none()
        {
            trace.when_full = WhenFull::Wait;
        }
    }

    /// Builds the graph here, if it is for the host to do; how long it took.
    fn build_on_host(&mut self) -> Result<Option<Duration>, Failure> {
        if self.variant != RuntimeVariant::HOST_BUILD_GRAPH {
            return Ok(None);
        }
        let _phase = Phase::begin("building the graph", 1);
        let start = Instant::now();
        self.image = Some(self.target.build_on_host(&self.prepared, &self.device)?);
        Ok(Some(start.elapsed()))
    }

    /// The bar counts rounds; where there is only one, the tasks of its run.
    fn rounds(&mut self, count: u32) -> Result<Vec<Round>, Failure> {
        if count == 1 {
            let phase = Phase::begin_bounded("running", self.prepared.size().tasks, ENDED_BY);
            return Ok(vec![self.round(|tasks| phase.reach(tasks))?]);
        }
        let phase = Phase::begin_bounded("running and checking", count.into(), ENDED_BY);
        let mut rounds = Vec::new();
        for _ in 0..count {
            rounds.push(self.round(|_| {})?);
            phase.step();
        }
        Ok(rounds)
    }

    /// The result against the reference, and against what the user expects.
    fn judge(&mut self) -> Result<Verdict, Failure> {
        let verdict = self.prepared.verify()?;
        let golden = self.golden.judge(&self.prepared)?;
        Ok(match golden {
            Some(golden) => verdict.and(golden),
            None => verdict,
        })
    }

    fn round(&mut self, watch: impl Fn(u64) + Send + Sync) -> Result<Round, Failure> {
        self.prepared.reset()?;
        self.dump.as_ref().map_or(Ok(()), Dump::reset)?;
        let work = match (&self.image, self.dump.as_ref().and_then(Dump::work)) {
            (Some(image), _) => Work::HostGraph(image),
            (None, Some(recording)) => recording,
            (None, None) => self.prepared.work(self.variant),
        };
        let watch = |progress: RunProgress| watch(progress.completed);
        let start = Instant::now();
        let report = self.device.run_watched(work, &self.options, watch);
        let mut report = report.map_err(|error| {
            let failure = self.target.with_line(with_meaning(self.target.example, error));
            match self.prepared.explain() {
                Some(why) => failure.and(why),
                None => failure,
            }
        })?;
        let wall = start.elapsed();
        let facts = self.prepared.facts()?;
        if let Some(trace) = &mut report.trace {
            trace.run.extend(facts.iter().cloned());
        }
        logging::show(&report.logs, report.logs_dropped);
        let verdict = match self.checks {
            Checks::Results => Some(self.judge()?),
            Checks::Off => None,
        };
        Ok(Round { report, verdict, facts, wall })
    }
}

/// Writes what was asked for, also of a run whose result is wrong; a file that cannot be written keeps no other one from it.
fn write_outputs<'a>(
    prepared: &Prepared,
    files: &[(&'a str, &'a Path)],
) -> Result<Vec<WrittenOutput<'a>>, Failure> {
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let _phase = Phase::begin("writing outputs", 1);
    let tensors = prepared.outputs()?;
    let written = files.iter().filter_map(|(name, path)| {
        let (_, tensor) = tensors.iter().find(|(output, _)| output == name)?;
        Some(WrittenOutput { name, path, unwritten: npy::write(path, tensor).err() })
    });
    Ok(written.collect())
}
