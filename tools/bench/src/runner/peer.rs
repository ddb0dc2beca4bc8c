//! A peer: a program of its own that builds and runs the same graphs, and speaks the protocol of
//! `peers/cpp/peer.h`.
//!
//! Between its turns a peer is stopped: libraries whose idle threads spin would otherwise take part in the
//! measurements of the others.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::str::FromStr;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::{Class, Error, LoadedGraph, Runner, Sample};

/// A running peer.
#[derive(Debug)]
pub struct Peer {
    name: String,
    class: Class,
    threads: usize,
    child: Child,
    pid: Pid,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts `program`, with `arguments` before the number of OS threads. It keeps its files in `folder`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(
        name: &str,
        class: Class,
        program: &Path,
        arguments: &[&str],
        threads: usize,
        folder: &Path,
    ) -> Result<Self, Error> {
        let failed = |what: String| Error::Peer { peer: name.to_owned(), what };
        let mut child = Command::new(program)
            .args(arguments)
            .arg(threads.to_string())
            .env("STARPU_SILENT", "1")
            .env("STARPU_HOME", folder)
            .env("HWLOC_HIDE_ERRORS", "2")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed(format!("{} cannot be started: {error}", program.display())))?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (Some((to, from)), Some(pid)) = (pipes, pid) else {
            return Err(failed("it has no pipes".to_owned()));
        };
        let name = format!("{name}, {threads}");
        Ok(Self { name, class, threads, child, pid, to, from: BufReader::new(from) })
    }

    /// The words of its answer.
    fn ask<T: FromStr>(&mut self, command: &str) -> Result<Vec<T>, Error> {
        // A process that is gone does not answer, which is an error of its own.
        let _ = kill_process(self.pid, Signal::CONT);
        let mut answer = String::new();
        let asked = writeln!(self.to, "{command}").and_then(|()| self.from.read_line(&mut answer));
        let _ = kill_process(self.pid, Signal::STOP);
        let failed = |what: String| Error::Peer { peer: self.name.clone(), what };
        asked.map_err(|error| failed(format!("it does not answer {command:?}: {error}")))?;
        if answer.is_empty() {
            return Err(failed(format!("it ended at {command:?}")));
        }
        let words = answer.trim_end().strip_prefix("ok ");
        let words = words.ok_or_else(|| failed(format!("{command:?}: {}", answer.trim_end())))?;
        let parsed: Result<Vec<T>, _> = words.split(' ').map(str::parse).collect();
        parsed.map_err(|_| failed(format!("its answer to {command:?} is {words:?}")))
    }

    fn ask_one<T: FromStr + Copy>(&mut self, command: &str) -> Result<T, Error> {
        let answer = self.ask(command)?;
        let [one] = *answer else {
            let what = format!("its answer to {command:?} has {} words", answer.len());
            return Err(Error::Peer { peer: self.name.clone(), what });
        };
        Ok(one)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Whether it ends by itself or is gone already does not matter any more.
        let _ = kill_process(self.pid, Signal::CONT);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Runner for Peer {
    fn name(&self) -> &str {
        &self.name
    }

    fn class(&self) -> Class {
        self.class
    }

    fn threads(&self) -> usize {
        self.threads
    }

    fn load(&mut self, loaded: LoadedGraph<'_>) -> Result<(), Error> {
        let no_file = || Error::Peer { peer: self.name.clone(), what: "no graph file".to_owned() };
        let path = loaded.file.ok_or_else(no_file)?.display().to_string();
        let found: Vec<u64> = self.ask(&format!("load {path}"))?;
        if found == [u64::from(loaded.graph.tasks()), loaded.graph.edges()] {
            return Ok(());
        }
        Err(Error::Peer { peer: self.name.clone(), what: format!("it read {found:?}") })
    }

    fn check(&mut self) -> Result<u64, Error> {
        self.ask_one("check")
    }

    fn ns_per_iteration(&mut self) -> Result<f64, Error> {
        self.ask_one("iteration")
    }

    fn sample(&mut self, iterations: u64) -> Result<Sample, Error> {
        let answer: Vec<i64> = self.ask(&format!("sample {iterations}"))?;
        let [build, run, total] = *answer else {
            let what = format!("a sample has three times, not {}", answer.len());
            return Err(Error::Peer { peer: self.name.clone(), what });
        };
        let time = |ns: i64| u64::try_from(ns).ok().map(Duration::from_nanos);
        let total = time(total).unwrap_or_default();
        Ok(Sample { build: time(build), run: time(run), total })
    }

    fn memory_bytes(&mut self) -> Result<Option<u64>, Error> {
        Ok(u64::try_from(self.ask_one::<i64>("memory")?).ok())
    }
}
