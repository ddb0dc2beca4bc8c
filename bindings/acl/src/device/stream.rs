//! Streams: a lane of commands in a context, and what programs set on it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::callbacks;
use super::capture::{self, CaptureMember, Status};
use super::context::Context;
use super::lane::{Command, Engine, Lane, labels_are_asked_for};
use super::open::Open;
use super::waits;
use crate::common::order::Touch;
use crate::common::races;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::{Handle, HandleTable, Kind};
use crate::common::thread::{self, ThreadRef};
use crate::common::{checks, codes};

/// The streams of the process.
pub(crate) static STREAMS: HandleTable<Stream> = HandleTable::new(Kind::Stream);

/// Streams that the host does not wait for: PERSISTENT, CPU_SCHEDULE, DEVICE_USE_ONLY.
const NOT_WAITED_FOR: u32 = 4 | 16 | 32;
/// Every flag that there is.
const FLAGS: u32 = 1 | 2 | 4 | 8 | 16 | 32;
/// The priority that is served last.
pub(crate) const LAST_PRIORITY: u32 = 7;
/// Streams of a device.
const MAX_STREAMS: usize = 1984;

/// What a program may set on a stream.
#[derive(Debug, Default)]
pub(crate) struct Attributes {
    pub(crate) limits: [Option<u32>; 2],
    pub(crate) failure_mode: Option<u64>,
    pub(crate) overflow: u32,
    pub(crate) tag: u32,
    pub(crate) keeps_names: u32,
    pub(crate) allocator: Option<Handle>,
}

/// A stream.
pub(crate) struct Stream {
    pub(crate) handle: Handle,
    pub(crate) id: i32,
    pub(crate) context: Arc<Context>,
    pub(crate) lane: Arc<Lane>,
    pub(crate) priority: u32,
    pub(crate) flags: u32,
    capture: Mutex<Option<CaptureMember>>,
    attributes: Mutex<Attributes>,
}

impl Stream {
    /// Opens a stream in `context`.
    pub(crate) fn new(context: &Arc<Context>, priority: u32, flags: u32) -> Answer<Arc<Self>> {
        require(priority <= LAST_PRIORITY, || {
            Refusal::value(format!("priority {priority} is none; use 0 (first) to {LAST_PRIORITY}"))
        })?;
        require(flags & !FLAGS == 0, || {
            Refusal::value(format!("flags {flags:#x} have unknown bits"))
        })?;
        let open = &context.open;
        check_count(open)?;
        let id = open.next_stream();
        let title = format!("stream {id}");
        let priority_of_lane = u8::try_from(priority).unwrap_or(0);
        let lane = Arc::new(Lane::new(open, priority_of_lane, id.cast_unsigned(), title)?);
        Ok(STREAMS.open_with(|handle| Self {
            handle,
            id,
            context: Arc::clone(context),
            lane,
            priority,
            flags,
            capture: Mutex::default(),
            attributes: Mutex::default(),
        }))
    }

    pub(crate) fn is_default(&self) -> bool {
        self.context.default_stream() == self.handle
    }

    /// What is set on it.
    pub(crate) fn attributes(&self) -> MutexGuard<'_, Attributes> {
        self.attributes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stream's part in a capture that is not over.
    pub(crate) fn capture(&self) -> MutexGuard<'_, Option<CaptureMember>> {
        let mut capture = self.capture.lock().unwrap_or_else(PoisonError::into_inner);
        if capture.as_ref().is_some_and(|member| member.capture.status() == Status::Over) {
            *capture = None;
        }
        capture
    }

    /// The stream goes: its capture cannot be ended any more.
    pub(crate) fn leave_capture(&self) {
        if let Some(member) = self.capture().take() {
            member.leave();
        }
    }

    /// Gives a command to the stream, or to the capture that it takes part in.
    pub(crate) fn submit(&self, command: Command) -> Answer {
        self.context.check_running()?;
        if self.is_captured()
            && let Some(member) = &*self.capture()
        {
            return member.take(command);
        }
        self.perform(|lane| command.submit(lane))
    }

    /// Gives a command to the lane at once.
    #[inline]
    fn perform(&self, submit: impl FnOnce(&Lane) -> Answer) -> Answer {
        self.perform_from(&thread::own(), submit)
    }

    /// As [`Stream::perform`], for a call that has looked at its thread already.
    #[inline]
    fn perform_from(&self, own: &ThreadRef, submit: impl FnOnce(&Lane) -> Answer) -> Answer {
        submit(&self.lane).inspect_err(|refusal| self.note(refusal))?;
        own.with(|thread| thread.last_task = thread.last_task.wrapping_add(1));
        Ok(())
    }

    /// Does what no capture has to keep: as [`Stream::submit`] for a stream that is not captured, without an object for the command.
    #[inline]
    pub(crate) fn submit_at_once(
        &self,
        engine: Engine,
        name: &str,
        work: impl FnOnce(&Lane) -> Answer,
    ) -> Answer {
        self.context.check_running()?;
        self.perform(|lane| lane.submit(engine, name, &[], work))
    }

    /// As [`Stream::submit_at_once`], for a caller that has found that commands are neither recorded nor watched.
    #[inline]
    pub(crate) fn submit_unwatched(
        &self,
        own: &ThreadRef,
        engine: Engine,
        work: impl FnOnce(&Lane) -> Answer,
    ) -> Answer {
        self.context.check_running()?;
        self.perform_from(own, |lane| lane.perform(engine, "kernel", work))
    }

    /// Takes a command; only a capture has to keep it, so that only then an object is made for it.
    pub(crate) fn take(
        &self,
        engine: Engine,
        name: &'static str,
        touches: &[Touch],
        work: impl Fn(&Lane) -> Answer + Send + Sync + 'static,
    ) -> Answer {
        self.take_labelled(engine, name, || name.to_owned(), touches, work)
    }

    /// As [`Stream::take`], with what timelines and injected faults call the command.
    #[inline]
    pub(crate) fn take_labelled(
        &self,
        engine: Engine,
        name: &'static str,
        label: impl FnOnce() -> String,
        touches: &[Touch],
        work: impl Fn(&Lane) -> Answer + Send + Sync + 'static,
    ) -> Answer {
        if self.is_captured() || labels_are_asked_for() {
            let command = Command::new(engine, name, Arc::new(work)).labelled(label);
            return self.submit(command.using(touches.iter().copied()));
        }
        self.context.check_running()?;
        self.perform(|lane| {
            races::submitted(lane.number(), touches);
            lane.perform(engine, name, work)
        })
    }

    /// Whether a capture takes the commands of the stream.
    #[inline]
    pub(crate) fn is_captured(&self) -> bool {
        capture::is_any_open() && self.capture().is_some()
    }

    /// Refuses while the stream is captured.
    pub(crate) fn check_uncaptured(&self) -> Answer {
        require(!self.is_captured(), || {
            let text = "the stream is captured; end the capture first";
            Refusal::new(codes::STREAM_CAPTURED, text)
        })
    }

    /// Whether everything that was submitted is over.
    pub(crate) fn is_idle(&self) -> Answer<bool> {
        self.check_uncaptured()?;
        let is_idle = self.lane.is_idle()?;
        if !is_idle {
            waits::query_takes_time();
        }
        Ok(is_idle)
    }

    /// Drops what has not begun.
    pub(crate) fn abort(&self) -> Answer {
        self.check_uncaptured()?;
        self.lane.abort();
        Ok(())
    }

    /// Waits for the stream.
    pub(crate) fn synchronize(&self, limit: Option<Duration>) -> Answer {
        self.check_uncaptured()?;
        if self.flags & NOT_WAITED_FOR != 0 {
            return Ok(());
        }
        self.lane.synchronize(limit).map_err(|refusal| {
            self.note(&refusal);
            self.with_maker(refusal)
        })
    }

    /// From here on a failure stops the stream, and with it its context.
    pub(crate) fn stop_on_failure(&self) -> Answer {
        self.lane.stop_on_failure()
    }

    /// A wait that did not end says whose stream waits, where the validation layer knows.
    #[cold]
    fn with_maker(&self, refusal: Refusal) -> Refusal {
        let made = checks::made(self.handle);
        if refusal.code != codes::WAIT_TIMEOUT || made.is_empty() {
            return refusal;
        }
        let text = format!("the stream {:#x}{made} waits: {}", self.handle, refusal.text);
        Refusal::new(refusal.code, text)
    }

    #[cold]
    fn note(&self, refusal: &Refusal) {
        let is_of_device = (507_000..508_000).contains(&refusal.code);
        if self.lane.stops_on_failure() && is_of_device && refusal.code != codes::STREAM_TIMEOUT {
            self.context.fail(refusal);
        }
    }
}

/// Makes a stream, and notifies those who watch streams.
pub(crate) fn make(context: &Arc<Context>, priority: u32, flags: u32) -> Answer<Handle> {
    let made = Stream::new(context, priority, flags)?;
    callbacks::stream_made(made.handle);
    Ok(made.handle)
}

/// Destroys a stream when what was submitted is over.
pub(crate) fn destroy(stream: &Stream) -> Answer {
    check_own(stream)?;
    // No call is left that could return these failures.
    stream.lane.synchronize(None).unwrap_or_default();
    forget(stream)
}

/// Destroys a stream, and drops what has not begun.
pub(crate) fn destroy_by_force(stream: &Stream) -> Answer {
    check_own(stream)?;
    stream.lane.abort();
    forget(stream)
}

fn check_own(stream: &Stream) -> Answer {
    require(!stream.is_default(), || {
        Refusal::new(
            codes::BAD_VALUE,
            "the stream is the default one of its context; it goes with the context",
        )
    })?;
    stream.check_uncaptured()
}

fn forget(stream: &Stream) -> Answer {
    callbacks::stream_ends(stream.handle);
    let taken = STREAMS.take(stream.handle)?;
    // Another thread may have begun a capture meanwhile.
    taken.leave_capture();
    Ok(())
}

fn check_count(open: &Arc<Open>) -> Answer {
    let of_device = |stream: &Arc<Stream>| stream.context.open.index == open.index;
    let streams = STREAMS.all();
    let count = streams.iter().filter(|(_, stream)| of_device(stream)).count();
    require(count < MAX_STREAMS, || {
        let mut holders: Vec<String> = Vec::new();
        for (handle, _) in crate::device::context::CONTEXTS.all() {
            let held = streams.iter().filter(|(_, stream)| stream.context.handle == handle).count();
            holders.push(format!("context {handle:#x} holds {held}"));
        }
        let text = format!(
            "device {} has {MAX_STREAMS} streams: {}; destroy some",
            open.index,
            holders.join(", ")
        );
        Refusal::new(codes::NO_STREAMS, text)
    })
}
