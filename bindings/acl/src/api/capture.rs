//! Captures and graphs (`aclmdlRI*`).

use std::sync::Arc;

use crate::common::argument::{Out, Text};
use crate::common::entry::api;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::Handle;
use crate::common::thread;
use crate::device::capture::{CaptureMode, Status};
use crate::device::current;
use crate::device::graph::{self, GRAPHS, Graph};

api! {
    fn aclmdlRICaptureBegin(stream: Handle, mode: u32) {
        graph::begin_capture(&*current::submitting(stream)?, CaptureMode::of(mode)?)
    }

    fn aclmdlRICaptureEnd(stream: Handle, graph: Out<Handle>) {
        let output = graph.required("graph")?;
        output.set(graph::end_capture(&*current::submitting(stream)?)?);
        Ok(())
    }

    fn aclmdlRICaptureGetInfo(stream: Handle, status: Out<u32>, graph: Out<Handle>) {
        let output = status.required("status")?;
        let status = current::asked(stream)?.capture().as_ref().map(|member| member.capture.status());
        output.set(match status {
            None | Some(Status::Over) => 0,
            Some(Status::Active) => 1,
            Some(Status::Invalid) => 2,
        });
        if let Some(graph) = graph.optional() {
            graph.set(0);
        }
        Ok(())
    }

    fn aclmdlRICaptureThreadExchangeMode(mode: Out<u32>) {
        let output = mode.required("mode")?;
        let wanted = output.read();
        CaptureMode::of(wanted)?;
        output.set(thread::with(|thread| std::mem::replace(&mut thread.capture_mode, wanted)));
        Ok(())
    }

    fn aclmdlRIExecuteAsync(graph: Handle, stream: Handle) {
        checked(graph)?.execute(&*current::submitting(stream)?)
    }

    fn aclmdlRIExecute(graph: Handle, milliseconds: i32) {
        let limit = super::time::limit(milliseconds)?;
        checked(graph)?.execute_and_wait(&*current::submitting(0)?, limit)
    }

    fn aclmdlRIDestroy(graph: Handle) {
        checked(graph)?;
        GRAPHS.take(graph).map(drop)
    }

    fn aclmdlRIGetId(graph: Handle, id: Out<u32>) {
        let output = id.required("id")?;
        output.set(checked(graph)?.id);
        Ok(())
    }

    fn aclmdlRIDebugJsonPrint(graph: Handle, path: Text, flags: u32) {
        let path = path.read("path")?;
        require(flags <= 1, || Refusal::argument(format!("flags {flags:#x} have unknown bits")))?;
        checked(graph)?.write_json(&path)
    }
}

fn checked(graph: Handle) -> Answer<Arc<Graph>> {
    require(graph != 0, || {
        Refusal::argument("the graph is null; pass what aclmdlRICaptureEnd gave")
    })?;
    GRAPHS.get(graph)
}
