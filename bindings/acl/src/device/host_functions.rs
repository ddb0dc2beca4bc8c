//! Functions of the program that streams call: by themselves, or through a thread of the program that takes the calls.

use std::sync::Arc;
use std::time::Duration;

use super::callbacks::{self, Call, Exception, Sort};
use super::lane::{Command, Engine, Work};
use super::stream::Stream;
use crate::common::codes;
use crate::common::races;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::thread;

/// Whether a stream waits for the end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocking {
    No,
    Yes,
}

impl Blocking {
    /// As the interface says it: 1 blocks.
    pub(crate) fn of(number: u32) -> Self {
        if number == 1 { Self::Yes } else { Self::No }
    }
}

/// A stream calls a function in its turn, and waits for it.
pub(crate) fn launch(stream: &Stream, call: Call) -> Answer {
    let handle = stream.handle;
    let work: Work = Arc::new(move |lane| {
        // The function may let any thread of the host know that it was called.
        races::ended(lane.number());
        lane.call(move || {
            if callbacks::is_subscribed(Sort::HostFunction, handle) {
                callbacks::deliver(Sort::HostFunction, handle, thread::number(), call)?.wait()?;
            } else {
                call.make();
            }
            Ok(())
        })
    });
    stream.submit(Command::new(Engine::Stream, "host function", work))
}

/// The thread that takes the calls of a stream makes this one in the stream's turn.
pub(crate) fn launch_report(stream: &Stream, call: Call, blocking: Blocking) -> Answer {
    let handle = stream.handle;
    require(callbacks::is_subscribed(Sort::Report, handle), || {
        let text = "no thread takes the calls of the stream; call aclrtSubscribeReport first";
        Refusal::new(codes::STREAM_NOT_SUBSCRIBED, text)
    })?;
    let work: Work = Arc::new(move |lane| {
        // The function may let any thread of the host know that it was called.
        races::ended(lane.number());
        lane.call(move || {
            let done = callbacks::deliver(Sort::Report, handle, thread::number(), call)?;
            if blocking == Blocking::Yes {
                done.wait()?;
            }
            Ok(())
        })
    });
    stream.submit(Command::new(Engine::Stream, "callback", work))
}

/// Makes a call of this thread.
pub(crate) fn process(sort: Sort, limit: Option<Duration>) -> Answer {
    callbacks::process(sort, thread::number(), limit)
}

/// The next command of a stream raises an exception with this code.
pub(crate) fn raise(stream: &Stream, code: i32) -> Answer {
    let (id, device) = (stream.id.cast_unsigned(), stream.context.open.index);
    let exception = Exception::of_next_command(id, device, code);
    let work: Work =
        Arc::new(move |lane| lane.call(move || exception.raise("raised an exception")));
    stream.submit(Command::new(Engine::Stream, "exception", work))
}
