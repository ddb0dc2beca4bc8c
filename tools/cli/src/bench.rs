//! `pto bench`: what a task costs here, on graphs of known kinds, compared with other libraries.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use pto_abi::BuildMode;
use pto_bench::family::Family;
use pto_bench::instructions::{self, CountMode};
use pto_bench::measure::{Plan, measure};
use pto_bench::peers::{self, RECIPES, Recipe};
use pto_bench::report::{At, MachineDescription, Mailboxes, Report, compare, plot};
use pto_bench::runner::floor::{AtomicSweep, PlainSweep};
use pto_bench::runner::peer::Peer;
use pto_bench::runner::pto::{Die, Pto, Variant, pool};
use pto_bench::runner::{Error, Runner};
use pto_bench::sessions::SessionCost;
use pto_bench::small::small_run;
use pto_bench::tracing::TraceCost;
use pto_bench::{metg, probe, tracing};
use pto_host::Hosting;

use crate::args::BenchArgs;
use crate::device_metg;
use crate::errors::{Exit, Failure};
use crate::form::Form;
use crate::output::answer;
use crate::output_file;

/// Lines of the mailboxes that are measured as a floor.
const MAILBOXES: [usize; 3] = [1, 4, 32];
/// Runs of four tasks.
const SMALL_RUNS: u32 = 300;
/// Of the scaling curves.
const SCALE: [u32; 5] = [1_000, 10_000, 100_000, 1_000_000, 10_000_000];
/// The first argument of a call under Valgrind.
const COUNTED: &str = "--counted";

type Runners = Vec<Box<dyn Runner>>;

/// The profile of cargo that is measured. Others leave out what takes long to compile.
const MEASURED_PROFILE: &str = "dist";

/// Measures, and says what was measured.
pub(crate) fn bench(args: &BenchArgs) -> Result<Exit, Failure> {
    if let [mode, graph, tasks, runs] = &*args.counted {
        return counted(mode, graph, tasks, runs);
    }
    if let Some(path) = &args.svg {
        output_file::check_form(path, "svg")?;
    }
    let cache = peers::cache().map_err(Failure::usage)?;
    let (programs, missing) = built_peers(args, &cache)?;
    warn_of_the_profile(args);
    let mut report = Report {
        machine: MachineDescription::this(),
        statistic: args.by.into(),
        series: Vec::new(),
        comparisons: Vec::new(),
        mailboxes: Vec::new(),
        small_runs: Vec::new(),
        metg: Vec::new(),
        device_metg: Vec::new(),
        field_timings: Vec::new(),
        instructions: Vec::new(),
        trace_costs: Vec::new(),
        sessions: Vec::new(),
        missing,
    };
    let folder = (!programs.is_empty()).then_some(cache.as_path());
    if args.sessions {
        report.sessions = sessions(args)?;
    } else if let Some(names) = &args.device_metg {
        report.device_metg =
            device_metg::measure(names, die(args), &instances(args), &mut say(args))?;
    } else if args.field_timings {
        report.field_timings = pto_bench::field_timings::measure(die(args), &mut say(args))?;
    } else if args.metg {
        report.metg = metg(args, &programs, folder)?;
    } else if args.instructions {
        report.instructions = count(args, &programs, &cache)?;
    } else if args.tracing {
        report.trace_costs = trace_costs(args)?;
    } else {
        graphs(args, &programs, folder, &mut report)?;
    }
    if let Some(path) = &args.svg {
        let picture = plot(&report.series, report.statistic);
        output_file::write(path, |to| to.write_all(picture.as_bytes()))?;
    }
    answer(Form::from(args.json), Exit::Pass, || report.text(), || report.json())
}

/// What sessions cost, for each number of OS threads.
fn sessions(args: &BenchArgs) -> Result<Vec<SessionCost>, Failure> {
    let hostings: Vec<Hosting> = args.threads.iter().map(|threads| pool(*threads)).collect();
    pto_bench::sessions::measure(&hostings, args.commands).map_err(Failure::internal)
}

/// What it costs to trace a run; a wavefront is used, if no graph is named: two edges a task.
fn trace_costs(args: &BenchArgs) -> Result<Vec<TraceCost>, Failure> {
    let families = chosen(args, Family::by_name("wavefront").into_iter());
    let tasks = args.tasks.as_deref().unwrap_or(&tracing::TASKS);
    Ok(tracing::measure(&families, tasks, args.rounds, die(args), &mut say(args))?)
}

/// Runners on graphs, the floors, and runs of four tasks.
fn graphs(
    args: &BenchArgs,
    programs: &[BuiltPeer],
    folder: Option<&Path>,
    report: &mut Report,
) -> Result<(), Failure> {
    let plan = Plan {
        families: chosen(args, Family::programs()),
        tasks: if args.scaling { SCALE.to_vec() } else { asked_tasks(args) },
        kernel_us: args.kernel_us.clone(),
        rounds: args.rounds,
        folder: folder.map(Path::to_path_buf),
    };
    let mut runners = runners(args, programs)?;
    report.series = measure(&plan, &mut runners, &mut say(args))?;
    drop(runners);
    for &tasks in &plan.tasks {
        for (&kernel_us, &threads) in plan
            .kernel_us
            .iter()
            .flat_map(|us| args.threads.iter().map(move |threads| (us, threads)))
        {
            let at = At { threads, tasks, kernel_us, by: report.statistic };
            report.comparisons.extend(compare(&report.series, at));
        }
    }
    if args.threads.contains(&2) {
        let measured = |&lines: &usize| Mailboxes { lines, ns: probe::mailbox_ns(lines) };
        report.mailboxes = MAILBOXES.iter().map(measured).collect();
    }
    report.small_runs = small_runs(args)?;
    Ok(())
}

/// About how many tasks each graph has, by default.
const USUAL_TASKS: u32 = 100_000;

fn asked_tasks(args: &BenchArgs) -> Vec<u32> {
    args.tasks.clone().unwrap_or_else(|| vec![USUAL_TASKS])
}

fn chosen(args: &BenchArgs, otherwise: impl Iterator<Item = Family>) -> Vec<Family> {
    if args.graphs.is_empty() { otherwise.collect() } else { args.graphs.clone() }
}

/// AICPU instances, by default.
const AICPU: u32 = 4;
/// AICPU instances of the device that a program may use.
const MOST_AICPU: u32 = 6;

/// The numbers of AICPU instances with which a pattern is measured on the device: its tasks come in ranges, whose builder is fast enough for
/// more schedulers.
fn instances(args: &BenchArgs) -> Vec<u32> {
    args.aicpu.map_or_else(|| (AICPU..=MOST_AICPU).collect(), |aicpu| vec![aicpu])
}

fn die(args: &BenchArgs) -> Die {
    Die { aic: args.aic, aiv: args.aiv, aicpu: args.aicpu.unwrap_or(AICPU) }
}

/// Ours and the peers.
fn metg(
    args: &BenchArgs,
    programs: &[BuiltPeer],
    folder: Option<&Path>,
) -> Result<Vec<metg::Metg>, Failure> {
    let families = chosen(args, metg::PATTERNS.iter().filter_map(|name| Family::by_name(name)));
    let mut runners = Runners::new();
    for &threads in &args.threads {
        for variant in [Variant::Host, Variant::Aicpu(BuildMode::CONCURRENT)] {
            runners.push(Box::new(Pto::open(pool(threads), variant, die(args))?));
        }
    }
    start_peers(args, programs, &mut runners)?;
    Ok(metg::measure(&families, &mut runners, args.rounds, folder, &mut say(args))?)
}

/// Instructions of ours, the sweep and the peers, on one OS thread.
fn count(
    args: &BenchArgs,
    programs: &[BuiltPeer],
    cache: &Path,
) -> Result<Vec<instructions::Counted>, Failure> {
    let program = std::env::current_exe().map_err(Failure::internal)?;
    let mut say = say(args);
    let mut all = Vec::new();
    for family in chosen(args, Family::programs()) {
        for mode in CountMode::ALL {
            say(&format!("counting {family}, {}", mode.name()));
            let counted = instructions::count(&program, &["bench", COUNTED], mode, family);
            all.push(counted.map_err(Failure::internal)?);
        }
        for built in programs {
            say(&format!("counting {family}, {}", built.recipe.name));
            let counted =
                instructions::count_peer(built.recipe.name, &built.program, cache, family);
            all.push(counted.map_err(Failure::internal)?);
        }
    }
    Ok(all)
}

/// The part that Valgrind counts.
fn counted(mode: &str, graph: &str, tasks: &str, runs: &str) -> Result<Exit, Failure> {
    let mode = CountMode::by_name(mode).ok_or_else(|| Failure::usage("no such mode"))?;
    let family = graph.parse().map_err(|why: String| Failure::usage(why))?;
    let numbers = tasks.parse().ok().zip(runs.parse().ok());
    let (tasks, runs) = numbers.ok_or_else(|| Failure::usage("tasks and runs are numbers"))?;
    instructions::run(mode, family, tasks, runs)?;
    Ok(Exit::Pass)
}

/// A peer that can be started.
struct BuiltPeer {
    recipe: &'static Recipe,
    program: peers::Program,
}

/// The peers that were asked for, and what is missing.
fn built_peers(args: &BenchArgs, cache: &Path) -> Result<(Vec<BuiltPeer>, Vec<String>), Failure> {
    let (mut built, mut missing) = (Vec::new(), Vec::new());
    let folder = |recipe: &Recipe| -> Option<&PathBuf> {
        args.peer.iter().find(|(name, _)| name == recipe.name).map(|(_, folder)| folder)
    };
    let named: Vec<&str> =
        RECIPES.iter().filter(|recipe| recipe.needs_folder()).map(|recipe| recipe.name).collect();
    if let Some((name, _)) = args.peer.iter().find(|(name, _)| !named.contains(&name.as_str())) {
        return Err(Failure::usage(format!(
            "--peer knows no library {name:?}; choose one of {}",
            named.join(", ")
        )));
    }
    if let Some((name, folder)) = args.peer.iter().find(|(_, folder)| !folder.is_dir()) {
        return Err(Failure::usage(format!(
            "--peer {name}: there is no folder '{}'; name the library's source folder",
            folder.display()
        )));
    }
    let mut say = say(args);
    let wanted = |recipe: &&Recipe| args.peers || folder(recipe).is_some();
    for recipe in RECIPES.iter().filter(wanted) {
        say(&format!("building {}", recipe.name));
        match recipe.build(cache, folder(recipe).map(PathBuf::as_path)) {
            Ok(program) => built.push(BuiltPeer { recipe, program }),
            Err(why) => missing.push(format!("{}: {why}", recipe.name)),
        }
    }
    Ok((built, missing))
}

fn start_peers(
    args: &BenchArgs,
    programs: &[BuiltPeer],
    runners: &mut Runners,
) -> Result<(), Error> {
    let cache = peers::cache().unwrap_or_default();
    for (&threads, built) in
        args.threads.iter().flat_map(|threads| programs.iter().map(move |built| (threads, built)))
    {
        let BuiltPeer { recipe, program } = built;
        let (class, path) = (recipe.class, &program.path);
        let peer = Peer::start(recipe.name, class, path, &program.arguments, threads, &cache)?;
        runners.push(Box::new(peer));
    }
    Ok(())
}

/// What is measured: ours with so many OS threads, the floor, the peers.
fn runners(args: &BenchArgs, programs: &[BuiltPeer]) -> Result<Runners, Error> {
    let variants = [
        Variant::Host,
        Variant::Prepared,
        Variant::Aicpu(BuildMode::CONCURRENT),
        Variant::Aicpu(BuildMode::SEQUENTIAL),
    ];
    let mut runners = Runners::new();
    for &threads in &args.threads {
        for variant in variants {
            runners.push(Box::new(Pto::open(pool(threads), variant, die(args))?));
        }
    }
    if args.threads.contains(&2) {
        let concurrent = Variant::Aicpu(BuildMode::CONCURRENT);
        runners.push(Box::new(Pto::open(Hosting::Threads, concurrent, die(args))?));
    }
    runners.push(Box::<AtomicSweep>::default());
    runners.push(Box::<PlainSweep>::default());
    start_peers(args, programs, &mut runners)?;
    Ok(runners)
}

fn small_runs(args: &BenchArgs) -> Result<Vec<pto_bench::small::SmallRun>, Error> {
    let mut hostings: Vec<Hosting> = args.threads.iter().map(|threads| pool(*threads)).collect();
    hostings.push(Hosting::Threads);
    let mut runs = Vec::new();
    for hosting in hostings {
        let mut runner = Pto::open(hosting, Variant::Aicpu(BuildMode::CONCURRENT), die(args))?;
        runs.push(small_run(&mut runner, SMALL_RUNS)?);
    }
    Ok(runs)
}

/// Says so where this build is slower than the one whose figures the documentation has. Virtual time knows no builds.
fn warn_of_the_profile(args: &BenchArgs) {
    let profile = env!("PTO_PROFILE");
    let is_virtual = args.device_metg.is_some() || args.field_timings;
    if profile != MEASURED_PROFILE && !is_virtual {
        eprintln!(
            "note: this is a build of the profile `{profile}`, which is slower than what is measured in docs/measurements/task-costs.md. \
             For figures: cargo run --profile {MEASURED_PROFILE} -- bench"
        );
    }
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
