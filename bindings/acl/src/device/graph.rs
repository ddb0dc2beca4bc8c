//! Graphs that were captured, as they are executed: the first member's steps go to the stream that executes, those of the others to
//! lanes of the graph's own, and the events of the capture become events of the session.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pto_host::session::Event as Point;
use pto_host::whole_file::write_whole;

use super::capture::{Capture, CaptureMode, Captured, Step};
use super::lane::{Lane, NO_STREAM};
use super::stream::Stream;
use crate::common::codes;
use crate::common::races;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::{Handle, HandleTable, Kind};

/// The graphs of the process.
pub(crate) static GRAPHS: HandleTable<Graph> = HandleTable::new(Kind::Graph);

/// A captured graph.
pub(crate) struct Graph {
    pub(crate) id: u32,
    device: i32,
    /// The context of the stream that began the capture: the graph goes with it.
    context: Handle,
    captured: Captured,
    /// Lanes of the members after the first, and the events of the capture.
    parts: Mutex<(Vec<Lane>, Vec<Point>)>,
}

impl Graph {
    /// A graph of what was captured, for the device of `stream`.
    pub(crate) fn new(id: u32, captured: Captured, stream: &Stream) -> Answer<Self> {
        let open = &stream.context.open;
        let lanes = captured.members.iter().enumerate().skip(1);
        let lanes = lanes.map(|(member, _)| {
            Lane::new(open, 0, NO_STREAM, format!("graph {id} branch {member}"))
        });
        let lanes = lanes.collect::<Answer<Vec<Lane>>>()?;
        let points = captured.records.iter().map(|_| Ok(open.session.event()?));
        let points = points.collect::<Answer<Vec<Point>>>()?;
        let (device, context) = (open.index, stream.context.handle);
        Ok(Self { id, device, context, captured, parts: Mutex::new((lanes, points)) })
    }

    /// Submits it to a stream.
    pub(crate) fn execute(&self, stream: &Stream) -> Answer {
        stream.check_uncaptured()?;
        stream.context.check_running()?;
        require(stream.context.open.index == self.device, || {
            let text = format!(
                "the graph was captured on device {}; execute it on a stream of that",
                self.device
            );
            Refusal::new(codes::OTHER_CONTEXT, text)
        })?;
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let (lanes, points) = &*parts;
        let mut stuck = vec![None; points.len()];
        for (member, step) in &self.captured.steps {
            let lane = if *member == 0 { &*stream.lane } else { &lanes[member - 1] };
            match step {
                Step::Do(command) => {
                    command.check_memory()?;
                    command.submit(lane)?;
                }
                Step::Record(record) => {
                    races::recorded(lane.number(), self.signal(*record));
                    lane.stream().record(&points[*record])?;
                    stuck[*record] = lane.stuck();
                }
                Step::Wait(record) => {
                    races::waits(lane.number(), self.signal(*record));
                    lane.stream().wait(&points[*record])?;
                    lane.waits_for(stuck[*record].take());
                }
            }
        }
        Ok(())
    }

    /// Executes it on a stream, and waits for the end.
    pub(crate) fn execute_and_wait(&self, stream: &Stream, limit: Option<Duration>) -> Answer {
        self.execute(stream)?;
        stream.synchronize(limit)
    }

    /// Writes its steps into a file, as JSON.
    pub(crate) fn write_json(&self, path: &str) -> Answer {
        write_whole(Path::new(path), |to| to.write_all(self.json().as_bytes())).map_err(|error| {
            Refusal::new(codes::FILE_OPEN, format!("{path} cannot be written: {error}"))
        })
    }

    /// A number for an event of the capture that no other event of the process has: no handle is odd.
    fn signal(&self, record: usize) -> usize {
        (self.id as usize) << 32 | record << 1 | 1
    }

    /// The steps as JSON.
    fn json(&self) -> String {
        let mut text = format!(
            "{{\"graph\": {}, \"streams\": {}, \"steps\": [",
            self.id,
            self.captured.members.len()
        );
        for (index, (member, step)) in self.captured.steps.iter().enumerate() {
            let (name, event) = match step {
                Step::Do(command) => (command.name, None),
                Step::Record(record) => ("record", Some(record)),
                Step::Wait(record) => ("wait", Some(record)),
            };
            let comma = if index == 0 { "" } else { "," };
            let event = event.map(|event| format!(", \"event\": {event}")).unwrap_or_default();
            // Writing to a string does not fail.
            let _ =
                write!(text, "{comma}\n  {{\"stream\": {member}, \"step\": \"{name}\"{event}}}");
        }
        text.push_str("\n]}\n");
        text
    }
}

/// Forgets the graphs of a context that goes.
pub(crate) fn forget_of(context: Handle) {
    for (handle, graph) in GRAPHS.all() {
        if graph.context == context {
            GRAPHS.forget(handle);
        }
    }
}

/// Begins a capture on a stream.
pub(crate) fn begin_capture(stream: &Stream, mode: CaptureMode) -> Answer {
    require(!stream.is_default(), || {
        let text = "the default stream cannot be captured; create a stream";
        Refusal::new(codes::DEFAULT_STREAM_CAPTURED, text)
    })?;
    let mut capture = stream.capture();
    require(capture.is_none(), || {
        let text = "the stream is captured already; end that capture first";
        Refusal::new(codes::STREAM_CAPTURED, text)
    })?;
    stream.context.check_living()?;
    *capture = Some(Capture::begin(stream.handle, mode));
    Ok(())
}

/// Ends the capture that a stream began, and gives the graph.
pub(crate) fn end_capture(stream: &Stream) -> Answer<Handle> {
    let member = stream.capture().clone().ok_or_else(|| {
        Refusal::new(codes::NOT_CAPTURED, "the stream is not captured; begin a capture first")
    })?;
    require(member.index == 0, || {
        let text =
            "the stream joined the capture of another one; end it on the stream that began it";
        Refusal::new(codes::OTHER_CAPTURE, text)
    })?;
    let capture = member.capture;
    capture.check_thread()?;
    let captured = capture.end()?;
    Ok(GRAPHS.open(Graph::new(capture.id, captured, stream)?))
}
