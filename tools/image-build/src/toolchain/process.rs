//! Runs programs within a limit.

use std::io::Read;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How often a program is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Runs a program to its end, or ends it after `limit`. Its standard output, or why there is none, in words.
pub(crate) fn output(command: &mut Command, limit: Duration) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child =
        command.spawn().map_err(|error| format!("{name} cannot be started: {error}"))?;
    let out = child.stdout.take().map(collect);
    let errors = child.stderr.take().map(collect);
    let status = wait(&mut child, limit);
    let text = |reader: Option<thread::JoinHandle<String>>| {
        reader.and_then(|reader| reader.join().ok()).unwrap_or_default()
    };
    match status {
        Ok(status) if status.success() => Ok(text(out)),
        Ok(status) => {
            let errors = text(errors);
            let last = errors.lines().rev().find(|line| !line.trim().is_empty());
            Err(format!("{name} failed ({status}): {}", last.unwrap_or("it does not say why")))
        }
        Err(why) => Err(format!("{name}: {why}")),
    }
}

fn collect(mut pipe: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut text = Vec::new();
        // What was read before an error is all that there is.
        let _ = pipe.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    })
}

/// Waits for a program, and ends it after `limit`.
pub(crate) fn wait(child: &mut std::process::Child, limit: Duration) -> Result<ExitStatus, String> {
    let start = Instant::now();
    loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) => return Ok(status),
            None if start.elapsed() < limit => thread::sleep(LOOK_EVERY),
            None => {
                child.kill().and_then(|()| child.wait()).map_err(|error| error.to_string())?;
                return Err(format!("it took longer than {} s", limit.as_secs()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::output;
    use std::process::Command;
    use std::time::Duration;

    #[test]
    fn a_program_ends_within_its_limit_or_is_ended() {
        let second = Duration::from_secs(10);
        assert_eq!(output(Command::new("echo").arg("x"), second), Ok("x\n".to_owned()));
        let late = output(Command::new("sleep").arg("60"), Duration::from_millis(50));
        assert!(late.unwrap_err().contains("longer than"));
        let failed = output(Command::new("sh").args(["-c", "echo no >&2; exit 3"]), second);
        assert!(failed.as_ref().is_err_and(|why| why.contains("no") && why.contains('3')));
        let missing = output(&mut Command::new("pto-no-such-program"), second);
        assert!(missing.unwrap_err().contains("cannot be started"));
    }
}
