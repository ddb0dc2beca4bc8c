//! The streams of the session that carry the commands of one stream of the program: one, or two if the program told the stream to stop
//! on failures after it had submitted commands.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pto_host::session::{OnFailure, Stream, StreamOptions};

use super::failure::fail_command;
use super::open::Open;
use super::profile;
use crate::common::order::{LaneNumber, Touch};
use crate::common::races;
use crate::common::refusal::Answer;

/// A lane of commands of one device.
pub(crate) struct Lane {
    pub(crate) open: Arc<Open>,
    /// What timelines call it.
    pub(crate) title: String,
    /// Its number among the lanes of the process.
    number: LaneNumber,
    priority: u8,
    normal: Stream,
    stopping: OnceLock<Stream>,
}

/// What a lane is asked to do; a captured graph asks again and again.
pub(crate) type Work = Arc<dyn Fn(&Lane) -> Answer + Send + Sync>;

/// A command: its name, what it does, and which memory it uses.
#[derive(Clone)]
pub(crate) struct Command {
    pub(crate) name: &'static str,
    /// What timelines call it, where they are recorded.
    label: Option<Arc<str>>,
    work: Work,
    touches: Vec<Touch>,
}

static NEXT: AtomicU32 = AtomicU32::new(1);

impl Command {
    pub(crate) fn new(name: &'static str, work: Work) -> Self {
        Self { name, label: None, work, touches: Vec::new() }
    }

    /// The same command, which uses these bytes.
    pub(crate) fn using(mut self, touches: impl IntoIterator<Item = Touch>) -> Self {
        self.touches.extend(touches);
        self
    }

    /// The same command, with what timelines call it.
    pub(crate) fn labelled(mut self, label: impl FnOnce() -> String) -> Self {
        if profile::is_on() {
            self.label = Some(label().into());
        }
        self
    }

    /// Submits it to a lane.
    pub(crate) fn submit(&self, lane: &Lane) -> Answer {
        let label = self.label.as_deref().unwrap_or(self.name);
        lane.submit(label, &self.touches, |lane| (self.work)(lane))
    }
}

impl Lane {
    /// A lane of a device; `title` is what timelines call it.
    pub(crate) fn new(open: &Arc<Open>, priority: u8, title: String) -> Answer<Self> {
        let options = StreamOptions { priority, ..StreamOptions::default() };
        let normal = open.session.stream_with(options)?;
        // Relaxed: the counter only makes numbers differ.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let (open, stopping) = (Arc::clone(open), OnceLock::new());
        Ok(Self { open, title, number, priority, normal, stopping })
    }

    /// Takes a command: what timelines call it, the memory that it uses, and what it does.
    pub(crate) fn submit(
        &self,
        label: &str,
        touches: &[Touch],
        work: impl FnOnce(&Self) -> Answer,
    ) -> Answer {
        races::submitted(self.number, touches);
        let recorded = profile::begin(self.place(), label)?;
        let outcome = work(self);
        if let Some(recorded) = recorded {
            profile::end(self.place(), recorded)?;
        }
        outcome
    }

    fn place(&self) -> profile::Place<'_> {
        profile::Place { open: &self.open, stream: self.stream(), title: &self.title }
    }

    /// Its number among the lanes of the process.
    pub(crate) fn number(&self) -> LaneNumber {
        self.number
    }

    /// The stream that takes commands now.
    pub(crate) fn stream(&self) -> &Stream {
        self.stopping.get().unwrap_or(&self.normal)
    }

    /// From here on a failure stops the lane.
    pub(crate) fn stop_on_failure(&self) -> Answer {
        let options = StreamOptions {
            priority: self.priority,
            on_failure: OnFailure::Stop,
            ..StreamOptions::default()
        };
        let stopping = self.open.session.stream_with(options)?;
        let behind = self.open.session.event()?;
        self.normal.record(&behind)?;
        stopping.wait(&behind)?;
        self.stopping.get_or_init(|| stopping);
        Ok(())
    }

    /// Whether a failure stops it.
    pub(crate) fn stops_on_failure(&self) -> bool {
        self.stopping.get().is_some()
    }

    /// Calls `function` in its turn; where it fails, the command fails with its code.
    pub(crate) fn call(&self, function: impl FnOnce() -> Answer + Send + 'static) -> Answer {
        self.stream().call(move || {
            if let Err(refusal) = function() {
                fail_command(&refusal);
            }
        })?;
        Ok(())
    }

    /// Waits for everything that was submitted.
    pub(crate) fn synchronize(&self, limit: Option<Duration>) -> Answer {
        for stream in self.stopping.get().into_iter().chain([&self.normal]) {
            match limit {
                Some(limit) => stream.synchronize_within(limit)?,
                None => stream.synchronize()?,
            }
        }
        races::ended(self.number);
        Ok(())
    }

    /// Whether everything is over.
    pub(crate) fn is_idle(&self) -> Answer<bool> {
        let is_idle =
            self.normal.query()? && self.stopping.get().map_or(Ok(true), Stream::query)?;
        if is_idle {
            races::ended(self.number);
        }
        Ok(is_idle)
    }

    /// Drops what has not begun.
    pub(crate) fn abort(&self) {
        self.stream().abort();
        self.normal.abort();
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        races::ended(self.number);
    }
}
