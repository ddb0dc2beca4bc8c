//! Functions of the program: of the host, reports, exceptions.

use super::time::limit;
use crate::common::argument::{Address, Out};
use crate::common::entry::{api, give};
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::Handle;
use crate::common::thread;
use crate::device::callbacks::{self, Call, Exception, HostFunction, OfException, Sort};
use crate::device::current;
use crate::device::host_functions::{self, Blocking};

api! {
    fn aclrtLaunchHostFunc(stream: Handle, function: Option<HostFunction>, argument: Address) {
        let call = checked(function, argument)?;
        host_functions::launch(&*current::submitting(stream)?, call)
    }

    fn aclrtLaunchCallback(function: Option<HostFunction>, argument: Address, blocks: u32, stream: Handle) {
        let call = checked(function, argument)?;
        require(blocks <= 1, || Refusal::argument(format!("there is no way {blocks} to block; there are 0 and 1")))?;
        host_functions::launch_report(&*current::submitting(stream)?, call, Blocking::of(blocks))
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
        let exception = checked_exception(exception)?;
        arguments.put("arguments", Address::of(exception.arguments))?;
        bytes.put("bytes", exception.argument_bytes)
    }

    fn aclrtGetFuncHandleFromExceptionInfo(exception: *const Exception, function: Out<Handle>) {
        let exception = checked_exception(exception)?;
        function.put("function", exception.function)
    }
}

/// Functions that read one number of an exception; 2^32 - 1 where there is none.
macro_rules! of_exceptions {
    ($($name:ident: $field:ident),* $(,)?) => {$(
        // SAFETY: the interface defines this name, and no other function here has the same name.
        #[unsafe(no_mangle)]
        extern "C" fn $name(exception: *const Exception) -> u32 {
            give(stringify!($name), u32::MAX, || checked_exception(exception).map(|exception| exception.$field))
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

fn process(sort: Sort, milliseconds: i32) -> Answer {
    host_functions::process(sort, limit(milliseconds)?)
}

fn checked_exception(exception: *const Exception) -> Answer<Exception> {
    require(!exception.is_null(), || {
        Refusal::argument("the exception is null; pass what the callback is given")
    })?;
    Ok(Exception::read(exception))
}

fn named(function: Option<OfException>) -> Answer<OfException> {
    function.ok_or_else(|| Refusal::argument("function is null; pass a function"))
}

fn checked(function: Option<HostFunction>, argument: Address) -> Answer<Call> {
    let function =
        function.ok_or_else(|| Refusal::argument("function is null; pass a function"))?;
    Ok(Call { function, argument: argument.number() })
}
