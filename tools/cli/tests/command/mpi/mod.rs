//! Ranks in processes of their own, below `mpirun`. These tests need an MPI and its plug-in: `cargo xtask mpi` brings both, and runs them.
//! `PTO_MPI_KILLS` says how many jobs lose a rank; 4 without it.

mod sessions;

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::examples::{all, borrowed};
use crate::pto::pto;

/// The launchers, each with the options that it needs on a machine with fewer cores than ranks.
const LAUNCHERS: [(&str, &[&str]); 2] = [
    (
        "mpirun.openmpi",
        &[
            "--allow-run-as-root",
            "--oversubscribe",
            "--mca",
            "btl",
            "self,vader",
            "--mca",
            "mpi_yield_when_idle",
            "1",
        ],
    ),
    ("mpirun.mpich", &[]),
];
/// How long a job may take to end after it has lost a rank.
const BUDGET: Duration = Duration::from_secs(20);

/// The launchers that this machine has. The first one must be there.
fn launchers() -> Vec<(&'static str, &'static [&'static str])> {
    let is_there = |name: &str| {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&paths).any(|folder| folder.join(name).is_file())
    };
    assert!(is_there(LAUNCHERS[0].0), "{} is missing: cargo xtask mpi", LAUNCHERS[0].0);
    let (found, missing): (Vec<_>, Vec<_>) =
        LAUNCHERS.into_iter().partition(|(name, _)| is_there(name));
    missing.iter().for_each(|(name, _)| eprintln!("{name} is not here, and is NOT tested"));
    found
}

fn job(launcher: (&str, &[&str]), ranks: u32, arguments: &[String]) -> Command {
    job_of(Path::new(env!("CARGO_BIN_EXE_pto")), launcher, ranks, arguments)
}

/// So many processes of a program.
fn job_of(
    program: &Path,
    (name, options): (&str, &[&str]),
    ranks: u32,
    arguments: &[String],
) -> Command {
    let mut command = Command::new(name);
    command.args(options).args(["-n", &ranks.to_string()]);
    command.arg(program).args(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The command line of an example at the sizes of its tests.
fn example(name: &str, more: &[&str]) -> Vec<String> {
    let case = all().find(|case| case.name() == name).expect("it is in the table");
    case.small("run").into_iter().chain(more.iter().map(|word| (*word).to_owned())).collect()
}

fn digest(text: &str) -> &str {
    let at = text.find("digest of the results ").unwrap_or_else(|| panic!("no digest: {text}"));
    text[at..].lines().next().unwrap_or_default()
}

/// What a job answers, and what one process with as many ranks does.
fn digest_over(launcher: (&str, &[&str]), ranks: u32, words: &[String]) -> String {
    let over = [words, &["--group=mpi".to_owned()]].concat();
    let printed = job(launcher, ranks, &over).output().expect("it starts");
    let text = String::from_utf8_lossy(&printed.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&printed.stderr);
    assert!(printed.status.success(), "{} {ranks} {words:?}: {text}{stderr}", launcher.0);
    digest(&text).to_owned()
}

/// Every example on 1, 2, 4 and 8 ranks: over each MPI, on devices of this process, and in virtual time.
#[test]
#[ignore = "needs an MPI: cargo xtask mpi"]
fn results_over_mpi_are_those_of_one_process_bit_for_bit() {
    let launchers = launchers();
    for case in all().filter(|case| case.example().is_for_groups()) {
        let words = case.small("run");
        for ranks in [1, 2, 4, 8] {
            let here = |kind: &str| {
                let group = format!("--group={kind}:{ranks}");
                let printed = pto(&[&borrowed(&words)[..], &[&group]].concat(), 0).stdout;
                digest(&printed).to_owned()
            };
            let local = here("local");
            let name = case.name();
            assert_eq!(here("virtual"), local, "{name} in virtual time on {ranks}");
            for launcher in &launchers {
                let over = digest_over(*launcher, ranks, &words);
                assert_eq!(over, local, "{} {name} on {ranks}", launcher.0);
            }
        }
    }
}

/// Channels between processes of a pipeline on four ranks.
#[test]
#[ignore = "needs an MPI: cargo xtask mpi"]
fn a_pipeline_over_mpi_has_the_bits_of_one_process() {
    let file =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/workloads/fold_on_ranks.workload");
    let words = |group: &str| ["run", file, group].map(str::to_owned).to_vec();
    for launcher in launchers() {
        let printed = job(launcher, 4, &words("--group=mpi")).output().expect("it starts");
        let text = String::from_utf8_lossy(&printed.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&printed.stderr);
        assert!(printed.status.success(), "{}: {text}{stderr}", launcher.0);
        let mut local = Command::new(env!("CARGO_BIN_EXE_pto"));
        let local = local.args(words("--group=local:4")).output().expect("it starts");
        let local = String::from_utf8_lossy(&local.stdout).into_owned();
        assert_eq!(digest(&text), digest(&local), "{}", launcher.0);
    }
}

#[test]
#[ignore = "needs an MPI: cargo xtask mpi"]
fn collectives_over_mpi_are_measured_beside_those_of_mpi() {
    let words = "comm bench --group mpi -b 4K -e 64K -f 16 --rounds 2 --repeats 1";
    let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
    for launcher in launchers() {
        let printed = job(launcher, 2, &words).output().expect("it starts");
        let text = String::from_utf8_lossy(&printed.stdout).into_owned();
        assert!(printed.status.success() && text.contains("of MPI"), "{}: {text}", launcher.0);
        assert_eq!(text.matches(" ok ").count(), 2, "{text}");
    }
}

/// One rank reduces in a ring, and the other one directly: their sends and receives do not meet.
#[test]
#[ignore = "needs an MPI: cargo xtask mpi"]
fn ranks_that_disagree_over_mpi_are_told_what_each_of_them_calls() {
    let words = |algorithm: &str| {
        let words = "comm bench --group mpi -b 4K -e 4K --rounds 1 --repeats 1 --algorithm";
        words.split(' ').chain([algorithm]).map(str::to_owned).collect::<Vec<_>>()
    };
    for launcher in launchers() {
        let mut both = job(launcher, 1, &words("ring"));
        both.args([":", "-n", "1", env!("CARGO_BIN_EXE_pto")]).args(words("direct"));
        let printed = both.output().expect("it starts");
        let said = format!(
            "{}{}",
            String::from_utf8_lossy(&printed.stdout),
            String::from_utf8_lossy(&printed.stderr)
        );
        assert!(!printed.status.success(), "{}: {said}", launcher.0);
        for part in ["rank 0 has", "rank 1 has", "(ring)", "(direct)"] {
            assert!(said.contains(part), "{}: no '{part}': {said}", launcher.0);
        }
    }
}

/// The processes of a job's ranks.
fn ranks_of(child: &Child) -> Vec<u32> {
    let mut found = Vec::new();
    let mut parents = vec![child.id()];
    while let Some(parent) = parents.pop() {
        let tasks = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
        for process in tasks.unwrap_or_default().split_whitespace().filter_map(|p| p.parse().ok()) {
            let name = std::fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
            if name.trim() == "pto" {
                found.push(process);
            }
            parents.push(process);
        }
    }
    found
}

/// What is said of a launcher that does not end though its ranks have.
const LAUNCHER_HANGS: &str = "all ranks have ended, and the launcher does not";

/// Whether a process has ended, and its parent has not heard of it yet.
fn has_ended(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    status.rsplit(')').next().is_none_or(|rest| !rest.trim().starts_with(['R', 'S', 'D']))
}

/// A job of three ranks, which are there, with so many steps that it does not end by itself.
fn long_job(launcher: (&str, &[&str])) -> Child {
    let words = example("dp_training", &["--group=mpi", "--param=seed=5"]);
    let words: Vec<_> = words.iter().map(|word| word.replace("steps=2", "steps=10000")).collect();
    let child = job(launcher, 3, &words).spawn().expect("it starts");
    let start = Instant::now();
    while ranks_of(&child).len() < 3 {
        assert!(start.elapsed() < BUDGET, "the ranks do not come");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

/// Kills one rank of a long job; what the job says, and how long it takes to end after that.
fn kill_one(launcher: (&str, &[&str]), attempt: u64) -> (String, Duration) {
    let mut child = long_job(launcher);
    // At another moment of the job's life in every attempt: MPI comes up, ranks meet, the run is on.
    std::thread::sleep(Duration::from_millis(attempt * 379 % 1500));
    let ranks = ranks_of(&child);
    let victim = ranks.get(usize::try_from(attempt).expect("few") % ranks.len().max(1));
    let killed = Instant::now();
    let kill = |process: &u32| Command::new("kill").args(["-KILL", &process.to_string()]).status();
    victim.map(kill).expect("the job has ended already").expect("kill");
    while child.try_wait().expect("it is ours").is_none() {
        if killed.elapsed() > BUDGET {
            // The launcher of OpenMPI 4.1.4 sometimes waits for itself in PMIx_server_finalize when all ranks have ended.
            assert!(ranks_of(&child).into_iter().all(has_ended), "the job hangs");
            child.kill().expect("it is ours");
            let _ = child.wait();
            return (LAUNCHER_HANGS.to_owned(), BUDGET);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let took = killed.elapsed();
    let printed = child.wait_with_output().expect("it has ended");
    assert!(!printed.status.success(), "the job has lost a rank and says that all is well");
    let mut text = String::from_utf8_lossy(&printed.stdout).into_owned();
    let _ = write!(text, "{}", String::from_utf8_lossy(&printed.stderr));
    (text, took)
}

#[test]
#[ignore = "needs an MPI: cargo xtask mpi"]
fn a_job_that_loses_a_rank_ends_and_says_which() {
    let kills =
        std::env::var("PTO_MPI_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(4);
    for attempt in 0..kills {
        for launcher in launchers() {
            let (text, took) = kill_one(launcher, attempt);
            // The launcher kills the other ranks at once; whether they come to speak depends on it. Of a rank that dies before MPI is up,
            // the launcher alone knows.
            let is_told = text.contains("its process") && text.contains("has failed");
            let words = [
                "exited on signal 9",
                "Killed (signal 9)",
                "the job has been aborted",
                // What MPICH says of a rank that dies while MPI comes up.
                "process manager error",
                LAUNCHER_HANGS,
            ];
            let by_launcher = words.iter().any(|words| text.contains(words));
            assert!(is_told || by_launcher, "{} {attempt}: {text}", launcher.0);
            eprintln!(
                "{} {attempt}: ended after {took:?}, reported by a rank: {is_told}",
                launcher.0
            );
        }
    }
}

/// A rank that is stopped, and does not end: silence alone says so.
#[test]
#[ignore = "needs an MPI: cargo xtask mpi"]
fn a_rank_that_hangs_over_mpi_is_named_by_the_others() {
    let launcher = launchers()[0];
    let mut child = long_job(launcher);
    std::thread::sleep(Duration::from_millis(700));
    let victim = ranks_of(&child).pop().expect("the job has ended before a rank was stopped");
    let environment = std::fs::read(format!("/proc/{victim}/environ")).expect("it is ours");
    let environment = String::from_utf8_lossy(&environment).into_owned();
    let rank = environment.split('\0').find_map(|it| it.strip_prefix("OMPI_COMM_WORLD_RANK="));
    let named = format!("rank {} on ", rank.expect("the launcher says so"));
    Command::new("kill").args(["-STOP", &victim.to_string()]).status().expect("kill");
    let stopped = Instant::now();
    // 5 s in a run, before which it stalls; 30 s before one; and what the launcher takes to end.
    while child.try_wait().expect("it is ours").is_none() {
        if stopped.elapsed() > 3 * BUDGET {
            child.kill().expect("it is ours");
            Command::new("kill").args(["-KILL", &victim.to_string()]).status().expect("kill");
            panic!("the job hangs with its rank");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let printed = child.wait_with_output().expect("it has ended");
    let text = String::from_utf8_lossy(&printed.stderr).into_owned();
    let is_told = ["has not answered within", "has not come within"].map(|it| text.contains(it));
    assert!(!printed.status.success() && text.contains(&named), "no '{named}': {text}");
    assert!(is_told.contains(&true), "{text}");
    eprintln!("{}: a job with a rank that hangs ended after {:?}", launcher.0, stopped.elapsed());
}

/// The lines of a campaign's journal: of each rank's file the first one names the campaign.
fn turns_in(journal: &std::path::Path) -> usize {
    let files = std::fs::read_dir(journal).into_iter().flatten().flatten();
    let text = |file: std::fs::DirEntry| std::fs::read_to_string(file.path()).unwrap_or_default();
    files.map(|file| text(file).lines().count().saturating_sub(1)).sum()
}

#[test]
#[ignore = "needs an MPI: cargo xtask mpi"]
fn a_campaign_that_loses_a_rank_goes_on_with_fewer_and_loses_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let words = "soak --seeds=6000 --no-faults --json";
    let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
    let hash = |text: &str| {
        let line = text.lines().find(|line| line.contains("\"hash\"")).map(str::trim);
        line.unwrap_or_else(|| panic!("no hash: {text}")).to_owned()
    };
    let alone = Command::new(env!("CARGO_BIN_EXE_pto")).args(&words).output().expect("it starts");
    let alone = hash(&String::from_utf8_lossy(&alone.stdout));
    for launcher in launchers() {
        let journal = folder.path().join(launcher.0);
        let journaled = [&words[..], &[format!("--journal={}", journal.display())]].concat();
        let mut child = job(launcher, 3, &journaled).spawn().expect("it starts");
        let start = Instant::now();
        while turns_in(&journal) == 0 {
            assert!(start.elapsed() < 6 * BUDGET, "no turn comes to its end");
            std::thread::sleep(Duration::from_millis(2));
        }
        let victim =
            ranks_of(&child).pop().expect("the campaign has ended before a rank was killed");
        Command::new("kill").args(["-KILL", &victim.to_string()]).status().expect("kill");
        assert!(!child.wait().expect("it ends").success(), "{}: a rank was lost", launcher.0);
        assert!(turns_in(&journal) > 0, "what was tried is kept");
        let printed = job(launcher, 2, &journaled).output().expect("it starts");
        let text = String::from_utf8_lossy(&printed.stdout).into_owned();
        assert!(printed.status.success(), "{}: {text}", launcher.0);
        assert!(text.contains("\"seeds\": 6000") && text.contains("\"seeds_left\": 0"), "{text}");
        assert_eq!(hash(&text), alone, "{}", launcher.0);
        assert!(!journal.exists(), "it is not needed any more");
    }
}
