//! The second lane of the suite: steps that need nothing of the others but the build of the tests, in a process of their own that runs at the same time.
//!
//! Most steps leave a processor idle for a part of their time: while one large crate compiles, while one test waits. What the second lane prints
//! goes to a file, and is shown as a whole when the first lane has come to its end: mixed lines of two processes could not be read.

use std::cell::RefCell;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::rc::Rc;

use crate::steps::Step;

/// What a command is called with for the steps of its second lane alone.
pub(crate) const ARGUMENT: &str = "--apart";

/// The two steps of the first lane of a command that start the second one and wait for it.
pub(crate) fn parallel(command: &'static str, target: &Path) -> [Step; 2] {
    let log = target.join("apart.log");
    let lane: Rc<RefCell<Option<LaneProcess>>> = Rc::default();
    let started = Rc::clone(&lane);
    let start = Step::call("steps apart, begun", move || {
        println!("cargo xtask {command} {ARGUMENT}, which prints to {}", log.display());
        started.replace(Some(LaneProcess::start(command, &log)?));
        Ok(())
    });
    let wait = Step::call("steps apart", move || match lane.take() {
        Some(lane) => lane.finish(),
        None => Err("they were not started".to_owned()),
    });
    [start, wait]
}

/// A process that runs the second lane.
struct LaneProcess {
    process: Child,
    log: PathBuf,
}

impl LaneProcess {
    fn start(command: &str, log: &Path) -> Result<Self, String> {
        let program = std::env::current_exe().map(Command::new);
        let mut program = program.map_err(|error| format!("this program is not found: {error}"))?;
        program.args([command, ARGUMENT]);
        Self::run(program, log)
    }

    fn run(mut command: Command, log: &Path) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", log.display());
        if let Some(folder) = log.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let out = File::create(log).map_err(failed)?;
        let err = out.try_clone().map_err(failed)?;
        command.stdout(out).stderr(err);
        let process = command
            .spawn()
            .map_err(|error| format!("the second lane cannot be started: {error}"))?;
        Ok(Self { process, log: log.to_owned() })
    }

    /// Waits for its end, and shows what it has printed.
    fn finish(mut self) -> Result<(), String> {
        let status = self.process.wait().map_err(|error| error.to_string())?;
        let printed =
            std::fs::read(&self.log).map_err(|error| format!("{}: {error}", self.log.display()))?;
        print!("{}", String::from_utf8_lossy(&printed));
        if status.success() { Ok(()) } else { Err(format!("{status}; its own lines stand above")) }
    }
}

impl Drop for LaneProcess {
    /// The second lane ends with the first one.
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::{ARGUMENT, LaneProcess};
    use std::process::Command;

    #[test]
    fn a_lane_that_fails_is_told() {
        let folder = std::env::temp_dir().join(format!("pto-lane-{}", std::process::id()));
        let lane = |program| {
            let mut command = Command::new(program);
            command.arg(ARGUMENT);
            LaneProcess::run(command, &folder.join("apart.log"))
        };
        assert_eq!(lane("true").unwrap().finish(), Ok(()));
        let why = lane("false").unwrap().finish().unwrap_err();
        assert!(why.contains("exit status: 1"), "{why}");
        assert!(lane("/no/such/program").is_err());
        // What it printed is kept, its errors as well.
        lane("ls").unwrap().finish().unwrap_err();
        assert!(std::fs::read_to_string(folder.join("apart.log")).unwrap().contains("--apart"));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
