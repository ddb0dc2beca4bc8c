//! `acceptance --simpler DIR --pto-isa DIR --dates COUNT`: the programs of the field's runtime as they were at so many dates of its history, newest first.
//!
//! DIR is a clone with its history. For each date the newest commit before it is taken out of the clone, its programs run as `acceptance --simpler` runs them, and
//! `pto compat simpler` says of the same files what it expects of them. A date whose table is there is not run again with `--resume`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::cargo::cargo;
use crate::{acceptance_field, python};

/// The first date, 2026-02-05 at its end: the first tree with programs for the simulator. The last date is that of the clone's newest commit.
const FIRST_SECOND: i64 = 1_770_335_999;
/// Parts of a tree in which programs are; `golden` is what several of March and April import.
const PARTS: [&str; 3] = ["examples", "tests", "golden"];
/// How many of a hundred programs have to pass, and of how many `pto compat simpler` has to say what happens.
const NEEDED: (usize, usize) = (95, 99);

/// How much of a reason is printed.
const MOST_CHARACTERS: usize = 300;

/// What to run, with which interpreter.
struct DatesRun<'a> {
    clone: &'a str,
    pto_isa: &'a str,
    more: &'a [&'a str],
    python: PathBuf,
    command: PathBuf,
    work: PathBuf,
}

/// Runs the programs of `count` dates. `more` goes to the runner: `--only WORD`; and `--resume`.
pub(crate) fn run(
    root: &Path,
    target: &Path,
    (clone, pto_isa): (&str, &str),
    count: &str,
    more: &[&str],
) -> Result<(), String> {
    acceptance_field::needs()?;
    let count = count.parse::<i64>().ok().filter(|count| (2..=100).contains(count));
    let count = count.ok_or("say how many dates: `--dates 20`, 2 to 100")?;
    let is_resumed = more.contains(&"--resume");
    let more: Vec<&str> = more.iter().copied().filter(|word| *word != "--resume").collect();
    let work = target.join("acceptance-dates");
    std::fs::create_dir_all(&work).map_err(|error| format!("{}: {error}", work.display()))?;
    python::run(cargo(root).args(["build", "--quiet", "-p", "pto-cli"]))?;
    let python = python::install_beside_debian(root, target)?;
    let command = target.join("debug/pto");
    let run = DatesRun { clone, pto_isa, more: &more, python, command, work };
    let mut commits = Vec::new();
    let last: i64 = run.git(&["log", "-1", "--format=%ct"])?.parse().map_err(|_| "no time")?;
    for number in (0..count).rev() {
        let second = FIRST_SECOND + (last - FIRST_SECOND) * number / (count - 1);
        let commit = run.git(&["rev-list", "-1", &format!("--before=@{second}"), "HEAD"])?;
        if !commits.contains(&commit) {
            commits.push(commit);
        }
    }
    let mut counted = Vec::new();
    for commit in &commits {
        counted.push(run.counted(commit, is_resumed)?);
        println!("{}", table(&counted));
    }
    verdict(&counted)
}

/// What became of the programs of one date.
struct DateCounts {
    date: String,
    commit: String,
    programs: Vec<ProgramCounts>,
}

/// A file with cases that a simulator can run.
struct ProgramCounts {
    name: String,
    passed: usize,
    /// Cases that failed, with their reasons.
    failed: Vec<String>,
    /// What `pto compat simpler` says of it.
    expected: String,
}

impl ProgramCounts {
    fn is_right(&self) -> bool {
        self.failed.is_empty()
    }

    fn is_expected(&self) -> bool {
        match self.expected.as_str() {
            "runs" => self.is_right(),
            "runs in part" => self.passed > 0 && !self.is_right(),
            "does not run" => self.passed == 0,
            _ => false,
        }
    }
}

impl DatesRun<'_> {
    fn git(&self, arguments: &[&str]) -> Result<String, String> {
        let mut command = Command::new("git");
        let output = command.arg("-C").arg(self.clone).args(arguments).output();
        let output = output.map_err(|error| format!("git cannot be started: {error}"))?;
        if !output.status.success() {
            return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Runs a commit's programs, unless its table is there.
    fn counted(&self, commit: &str, is_resumed: bool) -> Result<DateCounts, String> {
        let date = self.git(&["log", "-1", "--format=%cs", commit])?;
        let named = format!("{date}-{}", &commit[..9]);
        let tables = [".json", ".migrate.json"].map(|end| self.work.join(format!("{named}{end}")));
        if !(is_resumed && tables.iter().all(|table| table.is_file())) {
            println!("== {date}, commit {}", &commit[..9]);
            let tree = self.tree(commit)?;
            self.run_programs(&tree, &tables[0])?;
            self.ask_migrate(&tree, &tables[1])?;
        }
        let [rows, expected] = tables.map(|table| read(&table));
        Ok(DateCounts {
            date,
            commit: commit[..9].to_owned(),
            programs: programs(&rows?, &self.work, &expected?)?,
        })
    }

    /// The programs of a commit. All commits have the same folder, so that what is the same in two of them is compiled once.
    fn tree(&self, commit: &str) -> Result<PathBuf, String> {
        let tree = self.work.join("tree");
        if tree.exists() {
            std::fs::remove_dir_all(&tree)
                .map_err(|error| format!("{} cannot be removed: {error}", tree.display()))?;
        }
        std::fs::create_dir_all(&tree).map_err(|error| format!("{}: {error}", tree.display()))?;
        let there = self.git(&["ls-tree", "--name-only", commit])?;
        let parts = PARTS.iter().filter(|part| there.lines().any(|line| line == **part));
        let mut archive = Command::new("git");
        archive.arg("-C").arg(self.clone).args(["archive", commit]).args(parts);
        let unstarted = |error| format!("git or tar cannot be started: {error}");
        let mut archive = archive.stdout(Stdio::piped()).spawn().map_err(unstarted)?;
        let packed = archive.stdout.take().ok_or("git archive has no output")?;
        let mut unpack = Command::new("tar");
        unpack.arg("-x").arg("-C").arg(&tree).stdin(packed);
        let unpacked = unpack.status().map_err(unstarted)?;
        let archived = archive.wait().map_err(unstarted)?;
        if unpacked.success() && archived.success() {
            return Ok(tree);
        }
        Err(format!("commit {commit} cannot be unpacked to {}", tree.display()))
    }

    fn run_programs(&self, tree: &Path, table: &Path) -> Result<(), String> {
        let mut command = Command::new(&self.python);
        command.args(["-m", "simpler_setup.folder"]).arg(tree).args(["--pto-isa", self.pto_isa]);
        command.arg("--work").arg(self.work.join("run")).arg("--table").arg(table);
        let status = command.args(self.more).current_dir(&self.work).status();
        let status = status.map_err(|error| format!("{command:?} cannot be started: {error}"))?;
        match status.code() {
            // 1: programs fail. The table says which.
            Some(0 | 1) if table.is_file() => Ok(()),
            _ => Err(format!("{command:?}: {status}")),
        }
    }

    fn ask_migrate(&self, tree: &Path, answer: &Path) -> Result<(), String> {
        let mut command = Command::new(&self.command);
        let output = command.args(["compat", "simpler"]).arg(tree).arg("--json").output();
        let output = output.map_err(|error| format!("{command:?} cannot be started: {error}"))?;
        std::fs::write(answer, output.stdout)
            .map_err(|error| format!("{} cannot be written: {error}", answer.display()))
    }
}

fn read(path: &Path) -> Result<Value, String> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// The programs that a simulator can run, from the rows of the runner and the answer of `pto compat simpler`.
fn programs(rows: &Value, work: &Path, expected: &Value) -> Result<Vec<ProgramCounts>, String> {
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let mut programs: BTreeMap<String, ProgramCounts> = BTreeMap::new();
    for row in rows.as_array().ok_or("the table has no rows")? {
        let (name, state) = (text(row, "file"), text(row, "state"));
        if state != "passed" && state != "failed" {
            continue;
        }
        let new = || ProgramCounts {
            name: name.clone(),
            passed: 0,
            failed: Vec::new(),
            expected: "is not seen".to_owned(),
        };
        let program = programs.entry(name.clone()).or_insert_with(new);
        if state == "passed" {
            program.passed += 1;
        } else {
            let reason = text(row, "reason").split_whitespace().collect::<Vec<_>>().join(" ");
            // Compilers say a lot; all of it is in the table of the date.
            let cut = if reason.chars().nth(MOST_CHARACTERS).is_some() { " .." } else { "" };
            program.failed.push(format!("{}: {reason:.MOST_CHARACTERS$}{cut}", text(row, "case")));
        }
    }
    let tree = work.join("tree");
    for one in expected["programs"].as_array().ok_or("pto compat simpler gave no programs")? {
        let path = PathBuf::from(text(one, "program"));
        let path = path.strip_prefix(&tree).unwrap_or(&path).display().to_string();
        for name in [path.clone(), format!("{path}/golden.py")] {
            if let Some(program) = programs.get_mut(&name) {
                program.expected = text(one, "verdict");
            }
        }
    }
    Ok(programs.into_values().collect())
}

/// The table by date, and every program that does not pass or of which `pto compat simpler` is wrong.
fn table(counted: &[DateCounts]) -> String {
    let mut text = format!(
        "{:<11} {:<10} {:>8} {:>6} {:>6} {:>13} {:>13}\n",
        "date", "commit", "programs", "pass", "fail", "cases passed", "migrate right"
    );
    for date in counted {
        let passed = date.programs.iter().filter(|program| program.is_right()).count();
        let expected = date.programs.iter().filter(|program| program.is_expected()).count();
        let good: usize = date.programs.iter().map(|program| program.passed).sum();
        let bad: usize = date.programs.iter().map(|program| program.failed.len()).sum();
        let (tried, cases) = (date.programs.len(), format!("{good} of {}", good + bad));
        // Writing to a text does not fail.
        let _ = writeln!(
            text,
            "{:<11} {:<10} {tried:>8} {passed:>6} {:>6} {cases:>13} {expected:>13}",
            date.date,
            date.commit,
            tried - passed
        );
    }
    for date in counted {
        for program in date.programs.iter().filter(|one| !one.is_right() || !one.is_expected()) {
            let ProgramCounts { name, passed, failed, expected } = program;
            let count = passed + failed.len();
            let _ = writeln!(
                text,
                "{} {name}: {passed} of {count} cases pass; pto compat simpler: {expected}",
                date.date
            );
            failed.iter().for_each(|reason| {
                let _ = writeln!(text, "    {reason}");
            });
        }
    }
    text
}

fn verdict(counted: &[DateCounts]) -> Result<(), String> {
    let all: Vec<&ProgramCounts> = counted.iter().flat_map(|date| &date.programs).collect();
    let passed = all.iter().filter(|program| program.is_right()).count();
    let expected = all.iter().filter(|program| program.is_expected()).count();
    println!(
        "{} dates: {passed} of {} programs pass; pto compat simpler is right about {expected}",
        counted.len(),
        all.len()
    );
    let (pass, agree) = NEEDED;
    if passed * 100 >= pass * all.len() && expected * 100 >= agree * all.len() {
        return Ok(());
    }
    Err(format!(
        "{pass} of 100 programs have to pass, and pto compat simpler has to be right about {agree} of 100"
    ))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::{DateCounts, programs, table, verdict};

    fn counted(expected: &str) -> DateCounts {
        let row = |file: &str, case: &str, state: &str| json!({ "file": file, "case": case, "state": state, "reason": "no\n such name" });
        let rows = json!([
            row("examples/a/golden.py", "golden::default", "passed"),
            row("tests/test_b.py", "B::one", "passed"),
            row("tests/test_b.py", "B::two", "failed"),
            row("tests/test_c.py", "C::one", "hardware only"),
        ]);
        let answer = json!({ "programs": [
            { "program": "/w/tree/examples/a", "verdict": "runs" },
            { "program": "/w/tree/tests/test_b.py", "verdict": expected },
        ] });
        let programs = programs(&rows, Path::new("/w"), &answer).expect("programs");
        DateCounts { date: "2026-03-01".to_owned(), commit: "012345678".to_owned(), programs }
    }

    #[test]
    fn programs_are_counted_by_file_and_failures_have_reasons() {
        let date = counted("runs in part");
        assert_eq!(date.programs.len(), 2, "what needs hardware is not tried");
        assert!(date.programs.iter().all(super::ProgramCounts::is_expected));
        let text = table(&[date]);
        assert!(text.contains("    B::two: no such name\n"), "{text}");
        assert!(
            text.lines()
                .nth(1)
                .is_some_and(|line| line.contains("2      1      1        2 of 3             2")),
            "{text}"
        );
    }

    #[test]
    fn programs_of_which_migrate_says_something_else_are_named() {
        let date = counted("runs");
        let text = table(std::slice::from_ref(&date));
        assert!(
            text.contains("tests/test_b.py: 1 of 2 cases pass; pto compat simpler: runs"),
            "{text}"
        );
        assert!(verdict(&[date]).is_err());
    }
}
