//! `pto bench`: what a task costs here, on graphs of known shape.

use std::io::{IsTerminal, Write};

use pto_abi::BuildMode;
use pto_bench::measure::{Plan, measure};
use pto_bench::probe;
use pto_bench::report::{At, Machine, Mailboxes, Report, compare};
use pto_bench::runner::floor::{AtomicSweep, PlainSweep};
use pto_bench::runner::pto::{Die, Pto, Variant, pool};
use pto_bench::runner::{Error, Runner};
use pto_bench::shape::Shape;
use pto_bench::small::small_run;
use pto_host::Hosting;

use crate::args::BenchArgs;
use crate::errors::{Exit, Failure};
use crate::output::{Form, answer};

/// Lines of the mailboxes that are measured as a floor.
const MAILBOXES: [usize; 3] = [1, 4, 32];
/// Runs of four tasks.
const SMALL_RUNS: u32 = 300;

/// Measures, and says what was measured.
pub(crate) fn bench(args: &BenchArgs) -> Result<Exit, Failure> {
    let die = Die { aic: args.aic, aiv: args.aiv, aicpu: args.aicpu };
    let shapes =
        if args.graphs.is_empty() { Shape::programs().collect() } else { args.graphs.clone() };
    let plan = Plan {
        shapes,
        tasks: args.tasks.clone(),
        kernel_us: args.kernel_us.clone(),
        rounds: args.rounds,
        folder: None,
    };
    let machine = Machine::this();
    let mut runners = runners(args, die)?;
    let series = measure(&plan, &mut runners, &mut say(args))?;
    drop(runners);
    let mut report = Report {
        machine,
        statistic: args.by.into(),
        comparisons: Vec::new(),
        mailboxes: Vec::new(),
        small_runs: Vec::new(),
        missing: Vec::new(),
        series,
    };
    for (&tasks, &us) in
        plan.tasks.iter().flat_map(|n| plan.kernel_us.iter().map(move |us| (n, us)))
    {
        let by = report.statistic;
        let of =
            |&threads: &usize| compare(&report.series, At { threads, tasks, kernel_us: us, by });
        report.comparisons.extend(args.threads.iter().filter_map(of).collect::<Vec<_>>());
    }
    if args.threads.contains(&2) {
        let measured = |&lines: &usize| Mailboxes { lines, ns: probe::mailbox_ns(lines) };
        report.mailboxes = MAILBOXES.iter().map(measured).collect();
    }
    report.small_runs = small_runs(args, die)?;
    answer(Form::from(args.json), || report.text(), || report.json())?;
    Ok(Exit::Pass)
}

/// What is measured: ours with so many OS threads, and the floor.
fn runners(args: &BenchArgs, die: Die) -> Result<Vec<Box<dyn Runner>>, Error> {
    let variants = [
        Variant::Host,
        Variant::Aicpu(BuildMode::CONCURRENT),
        Variant::Aicpu(BuildMode::SEQUENTIAL),
    ];
    let mut runners: Vec<Box<dyn Runner>> = Vec::new();
    for &threads in &args.threads {
        for variant in variants {
            runners.push(Box::new(Pto::open(pool(threads), variant, die)?));
        }
    }
    if args.threads.contains(&2) {
        let concurrent = Variant::Aicpu(BuildMode::CONCURRENT);
        runners.push(Box::new(Pto::open(Hosting::Threads, concurrent, die)?));
    }
    runners.push(Box::<AtomicSweep>::default());
    runners.push(Box::<PlainSweep>::default());
    Ok(runners)
}

fn small_runs(args: &BenchArgs, die: Die) -> Result<Vec<pto_bench::small::SmallRun>, Error> {
    let mut hostings: Vec<Hosting> = args.threads.iter().map(|threads| pool(*threads)).collect();
    hostings.push(Hosting::Threads);
    let mut runs = Vec::new();
    for hosting in hostings {
        let mut runner = Pto::open(hosting, Variant::Aicpu(BuildMode::CONCURRENT), die)?;
        runs.push(small_run(&mut runner, SMALL_RUNS)?);
    }
    Ok(runs)
}

/// Says on a terminal what is being done, in one line.
fn say(args: &BenchArgs) -> impl FnMut(&str) {
    let shown = !args.json && std::io::stderr().is_terminal();
    move |what| {
        if shown {
            // A terminal that is gone needs no message.
            let _ = write!(std::io::stderr(), "\r\x1b[K{what}\r");
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Device(error) => error.into(),
            Error::Wrong { .. } => Self::wrong(error),
            error => Self::internal(error),
        }
    }
}
