//! Captures and graphs (`aclmdlRI*`).

use std::sync::Arc;

use crate::common::argument::{Out, Text};
use crate::common::codes;
use crate::common::entry::api;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::Handle;
use crate::common::thread;
use crate::device::capture::{Capture, Mode};
use crate::device::current;
use crate::device::graph::{GRAPHS, Graph};
use crate::device::stream::STREAMS;

api! {
    fn aclmdlRICaptureBegin(stream: Handle, mode: u32) {
        let mode = Mode::of(mode)?;
        let stream = current::submitting(stream)?;
        require(!stream.is_default(), || {
            let text = "the default stream cannot be captured; create a stream";
            Refusal::new(codes::DEFAULT_STREAM_CAPTURED, text)
        })?;
        let mut capture = stream.capture();
        require(capture.is_none(), || {
            Refusal::new(codes::STREAM_CAPTURED, "the stream is captured already; end that capture first")
        })?;
        *capture = Some(Capture::begin(stream.handle, mode, thread::number()));
        Ok(())
    }

    fn aclmdlRICaptureEnd(stream: Handle, graph: Out<Handle>) {
        let place = graph.place("graph")?;
        let stream = current::submitting(stream)?;
        let member = stream.capture().clone().ok_or_else(|| {
            Refusal::new(codes::NOT_CAPTURED, "the stream is not captured; begin a capture first")
        })?;
        require(member.index == 0, || {
            let text = "the stream joined the capture of another one; end it on the stream that began it";
            Refusal::new(codes::OTHER_CAPTURE, text)
        })?;
        let capture = Arc::clone(&member.capture);
        require(capture.mode == Mode::Relaxed || capture.thread == thread::number(), || {
            let text = "another thread began the capture; end it there, or begin it relaxed";
            Refusal::new(codes::CAPTURE_THREAD, text)
        })?;
        let captured = capture.end()?;
        place.set(GRAPHS.open(Graph::new(capture.id, captured, &stream)?));
        Ok(())
    }

    fn aclmdlRICaptureGetInfo(stream: Handle, status: Out<u32>, graph: Out<Handle>) {
        let place = status.place("status")?;
        let is_active = current::asked(stream)?.capture().is_some();
        place.set(u32::from(is_active));
        if let Some(graph) = graph.optional() {
            graph.set(0);
        }
        Ok(())
    }

    fn aclmdlRICaptureThreadExchangeMode(mode: Out<u32>) {
        let place = mode.place("mode")?;
        let wanted = place.read();
        Mode::of(wanted)?;
        place.set(thread::with(|thread| std::mem::replace(&mut thread.capture_mode, wanted)));
        Ok(())
    }

    fn aclmdlRIExecuteAsync(graph: Handle, stream: Handle) {
        checked(graph)?.execute(&*current::submitting(stream)?)
    }

    fn aclmdlRIExecute(graph: Handle, milliseconds: i32) {
        let limit = super::time::limit(milliseconds)?;
        let stream = STREAMS.get(current::context()?.default_stream())?;
        checked(graph)?.execute(&stream)?;
        stream.synchronize(limit)
    }

    fn aclmdlRIDestroy(graph: Handle) {
        checked(graph)?;
        GRAPHS.take(graph).map(drop)
    }

    fn aclmdlRIGetId(graph: Handle, id: Out<u32>) {
        let place = id.place("id")?;
        place.set(checked(graph)?.id);
        Ok(())
    }

    fn aclmdlRIDebugJsonPrint(graph: Handle, path: Text, flags: u32) {
        let path = path.read("path")?;
        require(flags <= 1, || Refusal::argument(format!("flags {flags:#x} have unknown bits")))?;
        let graph = checked(graph)?;
        std::fs::write(&path, graph.json()).map_err(|error| {
            Refusal::new(codes::FILE_OPEN, format!("{path} cannot be written: {error}"))
        })
    }
}

fn checked(graph: Handle) -> Answer<Arc<Graph>> {
    require(graph != 0, || {
        Refusal::argument("the graph is null; pass what aclmdlRICaptureEnd gave")
    })?;
    GRAPHS.get(graph)
}
