//! Functions of the program: of the host, reports, exceptions.

use std::sync::Arc;

use super::time::limit;
use crate::common::argument::{Address, Out};
use crate::common::codes;
use crate::common::entry::{api, give};
use crate::common::races;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::Handle;
use crate::common::thread;
use crate::device::callbacks::{self, Call, Exception, Function, OfException, Sort};
use crate::device::lane::{Command, Engine, Work};
use crate::device::settings::settings;
use crate::device::{current, fleet};

api! {
    fn aclrtLaunchHostFunc(stream: Handle, function: Option<Function>, argument: Address) {
        let call = checked(function, argument)?;
        let stream = current::submitting(stream)?;
        let handle = stream.handle;
        let work: Work = Arc::new(move |lane| {
            // The function may tell any thread of the host that it was called.
            races::ended(lane.number());
            lane.call(move || {
                if callbacks::is_subscribed(Sort::HostFunction, handle) {
                    callbacks::deliver(Sort::HostFunction, handle, thread::number(), call)?.wait();
                } else {
                    call.make();
                }
                Ok(())
            })
        });
        stream.submit(Command::new(Engine::Stream, "host function", work))
    }

    fn aclrtLaunchCallback(function: Option<Function>, argument: Address, blocks: u32, stream: Handle) {
        let call = checked(function, argument)?;
        require(blocks <= 1, || Refusal::argument(format!("there is no way {blocks} to block; there are 0 and 1")))?;
        let stream = current::submitting(stream)?;
        require(callbacks::is_subscribed(Sort::Report, stream.handle), || {
            let text = "no thread takes the calls of the stream; call aclrtSubscribeReport first";
            Refusal::new(codes::STREAM_NOT_SUBSCRIBED, text)
        })?;
        let handle = stream.handle;
        let work: Work = Arc::new(move |lane| {
            // The function may tell any thread of the host that it was called.
            races::ended(lane.number());
            lane.call(move || {
                let done = callbacks::deliver(Sort::Report, handle, thread::number(), call)?;
                if blocks == 1 {
                    done.wait();
                }
                Ok(())
            })
        });
        stream.submit(Command::new(Engine::Stream, "callback", work))
    }

    fn aclrtSubscribeReport(thread: u64, stream: Handle) {
        callbacks::subscribe(Sort::Report, thread, current::submitting(stream)?.handle)
    }

    fn aclrtUnSubscribeReport(thread: u64, stream: Handle) {
        callbacks::unsubscribe(Sort::Report, thread, current::submitting(stream)?.handle)
    }

    fn aclrtProcessReport(milliseconds: i32) {
        process(Sort::Report, milliseconds)
    }

    fn aclrtSubscribeHostFunc(thread: u64, stream: Handle) {
        callbacks::subscribe(Sort::HostFunction, thread, current::submitting(stream)?.handle)
    }

    fn aclrtUnSubscribeHostFunc(thread: u64, stream: Handle) {
        callbacks::unsubscribe(Sort::HostFunction, thread, current::submitting(stream)?.handle)
    }

    fn aclrtProcessHostFunc(milliseconds: i32) {
        process(Sort::HostFunction, milliseconds)
    }

    fn aclrtSetExceptionInfoCallback(function: Option<OfException>) {
        callbacks::set_exception(function);
        Ok(())
    }

    fn aclrtExceptionInfoCallbackRegister(function: Option<OfException>) {
        callbacks::add_exception(named(function)?);
        Ok(())
    }

    fn aclrtExceptionInfoCallbackUnregister(function: Option<OfException>) {
        callbacks::remove_exception(named(function)?);
        Ok(())
    }

    fn aclrtGetThreadLastTaskId(task: Out<u32>) {
        task.put("task", thread::with(|thread| thread.last_task))
    }

    fn aclrtGetArgsFromExceptionInfo(exception: *const Exception, arguments: Out<Address>, bytes: Out<u32>) {
        let exception = told(exception)?;
        arguments.put("arguments", Address::of(exception.arguments))?;
        bytes.put("bytes", exception.argument_bytes)
    }

    fn aclrtGetFuncHandleFromExceptionInfo(exception: *const Exception, function: Out<Handle>) {
        let exception = told(exception)?;
        function.put("function", exception.function)
    }
}

/// Functions that read one number of an exception; 2^32 - 1 where there is none.
macro_rules! of_exceptions {
    ($($name:ident: $field:ident),* $(,)?) => {$(
        // SAFETY: the name is that of the interface, and no other function here has it.
        #[unsafe(no_mangle)]
        extern "C" fn $name(exception: *const Exception) -> u32 {
            give(stringify!($name), u32::MAX, || told(exception).map(|exception| exception.$field))
        }
    )*};
}

of_exceptions! {
    aclrtGetTaskIdFromExceptionInfo: task,
    aclrtGetStreamIdFromExceptionInfo: stream,
    aclrtGetThreadIdFromExceptionInfo: thread,
    aclrtGetDeviceIdFromExceptionInfo: device,
    aclrtGetErrorCodeFromExceptionInfo: code,
}

/// Makes a call of this thread. In virtual time nobody else steps the devices while it waits.
fn process(sort: Sort, milliseconds: i32) -> Answer {
    let limit = limit(milliseconds)?;
    let step = || fleet::all_opened().fold(false, |worked, open| open.session.step() | worked);
    let step: &dyn Fn() -> bool = &step;
    callbacks::process(sort, thread::number(), limit, settings().seed.map(|_| step))
}

fn told(exception: *const Exception) -> Answer<Exception> {
    require(!exception.is_null(), || {
        Refusal::argument("the exception is null; pass what the callback is given")
    })?;
    // SAFETY: the caller has it as the argument of its callback, during the call.
    Ok(unsafe { exception.read() })
}

fn named(function: Option<OfException>) -> Answer<OfException> {
    function.ok_or_else(|| Refusal::argument("function is null; pass a function"))
}

fn checked(function: Option<Function>, argument: Address) -> Answer<Call> {
    let function =
        function.ok_or_else(|| Refusal::argument("function is null; pass a function"))?;
    Ok(Call { function, argument: argument.number() })
}
