//! `pto run training_loop`: three programs that were compiled apart train a model, and counters say what was copied.

use std::path::Path;
use std::time::{Duration, Instant};

use pto_abi::CoreKind;
use pto_examples::training_loop::{Layouts, NAME, Report, Training, TrainingSizes};
use pto_host::timeline::Trace;
use pto_host::{RunOptions, Session, SessionOptions};
use serde_json::{Map, Value, json};

use crate::args::RunArgs;
use crate::device::Wanted;
use crate::errors::{Exit, Failure};
use crate::form::Form;
use crate::kernels::KernelSet;
use crate::output::answer_with_failures;
use crate::output_file;
use crate::request::check_unique;
use crate::text::{bytes, counted, duration, grouped, table};
use crate::{timeline, virtual_time};

/// What it is, in the list of examples.
pub(crate) const SUMMARY: &str =
    "a model, trained by three programs in a loop that were compiled apart; both kinds of cores";

/// A parameter, as the list of examples shows it: name, default, what is allowed, what it is.
pub(crate) type Param = [String; 4];

/// The parameters.
pub(crate) fn parameters() -> [Param; 8] {
    let TrainingSizes { batch, inner, outer, tile, iterations, rate, seed } =
        TrainingSizes::default();
    let size = |name: &str, default: u64, most: u64, what: &str| {
        let range = format!("1 to {}", grouped(most));
        [name.to_owned(), grouped(default), range, what.to_owned()]
    };
    let text = |parts: [&str; 4]| parts.map(str::to_owned);
    [
        size("iterations", iterations, MOST_ROUNDS, "rounds"),
        size("batch", batch, MOST_EXTENT, "rows of the data"),
        size("inner", inner, MOST_EXTENT, "columns of the data, rows of the weights"),
        size("outer", outer, MOST_EXTENT, "columns of the weights"),
        size(
            "tile",
            tile,
            MOST_EXTENT,
            "rows and columns of a tile of the weights; it divides both",
        ),
        text(["rate", &rate.to_string(), "a number", "the step, times inner"]),
        text(["seed", &seed.to_string(), "1 to 2^64 - 1", "of the data and the first weights"]),
        text([
            "layouts",
            "same",
            "same, differ",
            "whether the optimiser takes tiles, which are converted",
        ]),
    ]
}

/// Whether a run asks for the loop.
pub(crate) fn is_asked(args: &RunArgs) -> bool {
    args.example == NAME
}

/// Trains.
pub(crate) fn run(args: &RunArgs) -> Result<Exit, Failure> {
    refuse_others(args)?;
    let (sizes, layouts) = params(args)?;
    args.trace.as_deref().map_or(Ok(()), |path| output_file::check_form(path, "json"))?;
    let wanted = Wanted::of(args)?;
    for (kind, name) in [(CoreKind::AIC, "AIC"), (CoreKind::AIV, "AIV")] {
        if wanted.cores(kind) == 0 {
            return Err(Failure::usage(format!(
                "'{NAME}' has tasks for AIC and AIV cores, and the device has no {name} core; give it at least one"
            )));
        }
    }
    let mut device = wanted.open(None)?;
    KernelSet::default().register(&mut device)?;
    let run = RunOptions {
        aicpu_instances: args.aicpu.unwrap_or_else(|| wanted.session_aicpu()),
        trace: timeline::options(args),
        ..args.with_budgets(RunOptions::default())
    };
    let options = SessionOptions { run, ..SessionOptions::default() };
    let session = device.session(options)?;
    let trained = trained(&session, sizes, layouts)
        .map_err(|failure| virtual_time::tell_failed(failure, wanted.virtual_options()))
        .map_err(|failure| timeline::keep(failure, args, &wanted, |_| ()))?;
    let failures = trained.report.failures();
    // The result is reported even if the file cannot be written.
    let written = args.trace.as_ref().map(|path| trained.write_timeline(path, args, &wanted));
    let unwritten = written.and_then(Result::err);
    let exit = match (failures.is_empty(), &unwritten) {
        (false, _) => Exit::Wrong,
        (true, Some(_)) => Exit::Internal,
        (true, None) => Exit::Pass,
    };
    answer_with_failures(
        Form::from(args.json),
        exit,
        &unwritten.iter().collect::<Vec<_>>(),
        || text(&trained.report, &failures, trained.took),
        || as_json(&trained.report, &failures, trained.took),
    )
}

/// What came of the loop.
struct Trained {
    report: Report,
    took: Duration,
    /// Of the last launch, if one was asked for.
    trace: Option<Trace>,
}

impl Trained {
    /// Writes the timeline of the last launch, with the counters of the rounds after the first one.
    fn write_timeline(&self, path: &Path, args: &RunArgs, device: &Wanted) -> Result<(), Failure> {
        let trace = self.trace.clone().ok_or_else(|| {
            Failure::internal("the loop has left no timeline; this is an error of the runtime")
        })?;
        let mut trace = timeline::with_facts(trace, args, device);
        let counted = self.report.rest.all().into_iter();
        trace.run.insert("rounds".to_owned(), grouped(self.report.rounds));
        trace.run.extend(
            counted.map(|(name, value)| (format!("{name} after the first round"), grouped(value))),
        );
        timeline::write_run(&trace, path)
    }
}

/// All rounds, and what they took on this machine.
fn trained(session: &Session, sizes: TrainingSizes, layouts: Layouts) -> Result<Trained, Failure> {
    let mut training = Training::new(session, sizes, layouts)?;
    let begun = Instant::now();
    for _ in 0..sizes.iterations {
        training.round()?;
    }
    training.parts().0.synchronize()?;
    let took = begun.elapsed();
    let trace = training.parts().0.take_report().and_then(|report| report.trace);
    let trace = trace.as_deref().cloned();
    Ok(Trained { report: training.finish()?, took, trace })
}

/// Options that belong to a run of one graph.
fn refuse_others(args: &RunArgs) -> Result<(), Failure> {
    let own = [
        ("--input", !args.inputs.is_empty()),
        ("--fault", args.virtual_time.fault.is_some()),
        ("--no-compute", args.virtual_time.no_compute),
    ];
    // The timeline is that of the last launch.
    let others = args.of_one_graph().filter(|(option, _)| *option != "--trace");
    match own.into_iter().chain(others).find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(Failure::usage(format!(
            "{option} is for a run of one graph, and {NAME} runs three programs many times; leave {option} out"
        ))),
        None => Ok(()),
    }
}

/// The longest side of a matrix.
const MOST_EXTENT: u64 = 1 << 16;
/// The most elements of a matrix.
const MOST_ELEMENTS: u64 = 1 << 26;
/// The most rounds: each keeps its loss.
const MOST_ROUNDS: u64 = 1_000_000;

/// Sizes whose matrices this machine and the device can hold.
fn check_sizes(sizes: &TrainingSizes) -> Result<(), Failure> {
    let TrainingSizes { batch, inner, outer, tile, iterations, rate, .. } = *sizes;
    let bounds = [
        ("batch", batch, MOST_EXTENT),
        ("inner", inner, MOST_EXTENT),
        ("outer", outer, MOST_EXTENT),
        ("tile", tile, MOST_EXTENT),
        ("iterations", iterations, MOST_ROUNDS),
    ];
    if let Some((name, value, most)) = bounds.into_iter().find(|(_, value, most)| value > most) {
        return Err(Failure::usage(format!("--param {name}={value}: it must be 1 to {most}")));
    }
    let products = [("batch", batch, "batch", batch), ("batch", batch, "inner", inner)];
    let more = [("batch", batch, "outer", outer), ("inner", inner, "outer", outer)];
    for (left, rows, right, columns) in products.into_iter().chain(more) {
        if rows * columns > MOST_ELEMENTS {
            return Err(Failure::usage(format!(
                "a matrix of {left}={rows} by {right}={columns} is too large; it may have {MOST_ELEMENTS} elements"
            )));
        }
    }
    if !rate.is_finite() {
        return Err(Failure::usage(format!("--param rate={rate}: it must be finite")));
    }
    Ok(())
}

/// The parameters: `layouts=differ`, and numbers.
fn params(args: &RunArgs) -> Result<(TrainingSizes, Layouts), Failure> {
    check_unique("--param", args.params.iter().map(|(name, _)| name))?;
    let (mut sizes, mut layouts) = (TrainingSizes::default(), Layouts::Same);
    for (name, text) in &args.params {
        let wrong = |what: &str| Failure::usage(format!("--param {name}: '{text}' is not {what}"));
        let number = || {
            text.parse::<u64>()
                .ok()
                .filter(|n| *n > 0)
                .ok_or_else(|| wrong("a whole number from 1 on"))
        };
        match name.as_str() {
            "iterations" => sizes.iterations = number()?,
            "batch" => sizes.batch = number()?,
            "inner" => sizes.inner = number()?,
            "outer" => sizes.outer = number()?,
            "tile" => sizes.tile = number()?,
            "seed" => sizes.seed = number()?,
            "rate" => sizes.rate = text.parse().map_err(|_| wrong("a number"))?,
            "layouts" => {
                layouts = match text.as_str() {
                    "same" => Layouts::Same,
                    "differ" => Layouts::Differ,
                    _ => return Err(wrong("same or differ")),
                }
            }
            _ => {
                let known = parameters().map(|[name, ..]| name);
                let known = known.iter().map(String::as_str);
                return Err(pto_examples::host::Error::unknown("parameter", name, known).into());
            }
        }
    }
    check_sizes(&sizes)?;
    if !sizes.inner.is_multiple_of(sizes.tile) || !sizes.outer.is_multiple_of(sizes.tile) {
        return Err(Failure::usage(format!(
            "--param tile={} must divide inner={} and outer={}",
            sizes.tile, sizes.inner, sizes.outer
        )));
    }
    Ok((sizes, layouts))
}

fn text(report: &Report, failures: &[String], took: Duration) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut row = |name: &str, value: String| rows.push(vec![name.to_owned(), value]);
    row(
        "training_loop",
        format!(
            "{} of 3 programs, weights of {}",
            counted(report.rounds, "round"),
            bytes(report.weight_bytes)
        ),
    );
    let ends = report.losses.first().zip(report.losses.last());
    row(
        "loss",
        ends.map_or_else(String::new, |(first, last)| {
            format!("{first:.6} in the first round, {last:.6} in the last")
        }),
    );
    row(
        "PCC",
        format!(
            "weights {:.9}, their change {:.9}, losses {:.9}",
            report.pcc_weights, report.pcc_change, report.pcc_losses
        ),
    );
    row("planned", format!("{} bytes to convert in each round", grouped(report.planned_bytes)));
    report.planned.iter().for_each(|why| row("", why.clone()));
    row("took", format!("{} on this machine", duration(took)));
    let table_of = table(&rows, &[]);
    let first = report.first.all();
    let counted = report.rest.all().into_iter().zip(first);
    let counted = counted
        .map(|((name, rest), (_, first))| vec![name.to_owned(), grouped(first), grouped(rest)]);
    let head = vec![String::new(), "first round".to_owned(), "after it".to_owned()];
    let counters: Vec<_> = std::iter::once(head).chain(counted).collect();
    let verdict = match failures {
        [] => "PASS\n".to_owned(),
        failures => failures.iter().map(|failure| format!("FAIL: {failure}\n")).collect(),
    };
    format!("{table_of}\n{}\n{verdict}", table(&counters, &[1, 2]))
}

fn as_json(report: &Report, failures: &[String], took: Duration) -> Value {
    let counters = |counters: &pto_host::stitch::Counters| -> Map<String, Value> {
        counters.all().into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect()
    };
    json!({
        "example": NAME,
        "rounds": report.rounds,
        "weight_bytes": report.weight_bytes,
        "first_loss": report.losses.first(),
        "last_loss": report.losses.last(),
        "pcc": {
            "weights": report.pcc_weights,
            "change": report.pcc_change,
            "losses": report.pcc_losses,
        },
        "planned_bytes": report.planned_bytes,
        "planned": report.planned,
        "first_round": counters(&report.first),
        "after_it": counters(&report.rest),
        "wall_ns": u64::try_from(took.as_nanos()).unwrap_or(u64::MAX),
        "failures": failures,
    })
}
