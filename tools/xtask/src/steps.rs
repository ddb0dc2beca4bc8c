//! Running steps one after the other: each is named, timed and never skipped in silence; a failure does not hide the
//! results of the steps after it. Where this machine cannot have what a step needs, the step says so, and so does the
//! summary ([`StepResult::Not`]).

use std::time::{Duration, Instant};

use crate::cargo::cargo;

/// One step of a suite.
pub(crate) struct Step {
    name: &'static str,
    action: Action,
}

type Check = Box<dyn Fn() -> Result<StepResult, String>>;

/// Whether a step that did not fail did what it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StepResult {
    /// It did.
    Whole,
    /// It could not, because this machine cannot have what it needs: what that is.
    Not(String),
}

enum Action {
    /// Cargo, with its arguments and environment.
    Run { arguments: Vec<String>, environment: Vec<(String, String)> },
    /// A function of ours.
    Call(Check),
}

impl Step {
    /// `cargo` with these arguments, in the folder of the workspace.
    pub(crate) fn cargo(name: &'static str, arguments: &str) -> Self {
        let arguments = arguments.split_whitespace().map(str::to_owned).collect();
        Self { name, action: Action::Run { arguments, environment: Vec::new() } }
    }

    /// Sets a variable for the step's program.
    pub(crate) fn with(mut self, variable: &str, value: impl Into<String>) -> Self {
        if let Action::Run { environment, .. } = &mut self.action {
            environment.push((variable.to_owned(), value.into()));
        }
        self
    }

    /// A function of ours.
    pub(crate) fn call(
        name: &'static str,
        check: impl Fn() -> Result<(), String> + 'static,
    ) -> Self {
        Self::call_where_possible(name, move || check().map(|()| StepResult::Whole))
    }

    /// A function of ours that needs what some machines cannot have.
    pub(crate) fn call_where_possible(
        name: &'static str,
        check: impl Fn() -> Result<StepResult, String> + 'static,
    ) -> Self {
        Self { name, action: Action::Call(Box::new(check)) }
    }

    /// What a person would type for it.
    fn command_line(&self) -> String {
        match &self.action {
            Action::Call(_) => format!("({})", self.name),
            Action::Run { arguments, environment } => {
                let set = environment.iter().map(|(name, value)| format!("{name}='{value}' "));
                format!("{}cargo {}", set.collect::<String>(), arguments.join(" "))
            }
        }
    }

    fn run(&self) -> Result<StepResult, String> {
        match &self.action {
            Action::Call(check) => check(),
            Action::Run { arguments, environment } => {
                let environment = environment.iter().map(|(name, value)| (name, value));
                let status = cargo(&crate::root::root())
                    .args(arguments)
                    .envs(environment)
                    .status()
                    .map_err(|error| format!("cargo cannot be started: {error}"))?;
                if status.success() { Ok(StepResult::Whole) } else { Err(status.to_string()) }
            }
        }
    }
}

struct Finished {
    name: &'static str,
    time: Duration,
    /// Of the processors, by the step's programs.
    busy: Duration,
    result: Result<StepResult, String>,
}

/// Runs every step.
pub(crate) fn run_all(steps: &[Step]) -> Result<(), String> {
    let finished: Vec<Finished> = steps
        .iter()
        .enumerate()
        .map(|(index, step)| {
            println!(
                "\n==> [{}/{}] {}: {}",
                index + 1,
                steps.len(),
                step.name,
                step.command_line()
            );
            let (start, busy) = (Instant::now(), time_of_children());
            let result = step.run();
            let (time, busy) = (start.elapsed(), time_of_children().saturating_sub(busy));
            match &result {
                Ok(StepResult::Whole) => {}
                Ok(StepResult::Not(why)) => println!("==> {} DID NOT RUN: {why}", step.name),
                Err(why) => {
                    println!("==> {} FAILED after {:.1} s: {why}", step.name, time.as_secs_f64());
                }
            }
            Finished { name: step.name, time, busy, result }
        })
        .collect();
    print!("{}", summary(&finished));
    let failed: Vec<&str> =
        finished.iter().filter(|step| step.result.is_err()).map(|step| step.name).collect();
    if failed.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{} of {} steps failed: {}; the lines above that begin with `==>` say how to run one alone",
        failed.len(),
        finished.len(),
        failed.join(", ")
    ))
}

fn summary(finished: &[Finished]) -> String {
    let mut text = String::from("\n==> summary\n");
    for step in finished {
        let verdict = match &step.result {
            Ok(StepResult::Whole) => "ok",
            Ok(StepResult::Not(_)) => "DID NOT RUN, see above",
            Err(_) => "FAILED",
        };
        text += &line(step.name, step.time, step.busy, verdict);
    }
    let total = |time: fn(&Finished) -> Duration| finished.iter().map(time).sum();
    text += &line("total", total(|step| step.time), total(|step| step.busy), "");
    text
}

/// How long a step took, and how long its programs used processors: what is far from their number times the first waited.
fn line(name: &str, time: Duration, busy: Duration, verdict: &str) -> String {
    let (time, busy) = (time.as_secs_f64(), busy.as_secs_f64());
    let line = format!("    {name:<30} {time:>7.1} s  {busy:>7.1} s of processors  {verdict}");
    line.trim_end().to_owned() + "\n"
}

/// How long the programs that have ended, and were waited for, have used processors. Zero where the system does not say.
fn time_of_children() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the program's name: the numbers 16 and 17, in hundredths of a second, see proc(5).
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let hundredths: u64 =
        fields.skip(13).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(10 * hundredths)
}

#[cfg(test)]
mod tests {
    use super::{Finished, Step, StepResult, run_all, summary, time_of_children};
    use std::time::Duration;

    #[test]
    fn a_failure_is_named_and_does_not_stop_the_rest() {
        let ran = std::rc::Rc::new(std::cell::Cell::new(false));
        let seen = ran.clone();
        let steps = [
            Step::call("good", || Ok(())),
            Step::call("bad", || Err("because".to_owned())),
            Step::call("last", move || {
                seen.set(true);
                Ok(())
            }),
        ];
        let message = run_all(&steps).unwrap_err();
        assert!(message.starts_with("1 of 3 steps failed: bad"), "{message}");
        assert!(ran.get());
        assert!(run_all(&steps[..1]).is_ok());
    }

    #[test]
    fn a_step_that_cannot_run_does_not_fail_and_is_not_called_ok() {
        let step = Step::call_where_possible("x", || Ok(StepResult::Not("no tool".into())));
        assert!(run_all(&[step]).is_ok());
        let finished = Finished {
            name: "x",
            time: Duration::ZERO,
            busy: Duration::ZERO,
            result: Ok(StepResult::Not(String::new())),
        };
        let text = summary(&[finished]);
        assert!(text.contains("DID NOT RUN") && !text.contains("ok"), "{text}");
    }

    #[test]
    fn the_time_of_processors_is_counted() {
        let before = time_of_children();
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done"]);
        assert!(command.status().unwrap().success());
        assert!(time_of_children() > before);
    }

    #[test]
    fn a_program_that_fails_or_is_not_there_fails_its_step() {
        assert!(Step::cargo("nonsense", "no-such-command").run().is_err());
        let step = Step::cargo("x", "test --release").with("RUSTFLAGS", "--cfg loom");
        assert_eq!(step.command_line(), "RUSTFLAGS='--cfg loom' cargo test --release");
    }
}
