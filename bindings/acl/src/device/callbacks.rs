//! Functions of the program that the library calls: for the states of streams, for exceptions, and reports that a thread of the
//! program processes.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::c_void;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::waits;
use crate::common::codes;
use crate::common::notes::Pointee;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::Handle;
use crate::common::thread;

/// A function with one argument of the program's own.
pub(crate) type HostFunction = extern "C" fn(*mut c_void);
/// A callback for streams that are made or destroyed.
pub(crate) type OfStream = extern "C" fn(*mut c_void, u32, *mut c_void);
/// A callback for exceptions.
pub(crate) type OfException = extern "C" fn(*const Exception);

/// A command that failed on a device, as callbacks see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exception {
    pub(crate) task: u32,
    pub(crate) stream: u32,
    pub(crate) thread: u32,
    pub(crate) device: u32,
    pub(crate) code: u32,
    /// The kernel function, and its arguments.
    pub(crate) function: Handle,
    pub(crate) arguments: usize,
    pub(crate) argument_bytes: u32,
}

impl Pointee for Exception {}

impl Exception {
    /// An exception of the command that the calling thread submits.
    pub(crate) fn of_next_command(stream: u32, device: i32, code: i32) -> Self {
        Self {
            task: thread::with(|thread| thread.last_task).wrapping_add(1),
            stream,
            thread: u32::try_from(thread::number() & 0xFFFF_FFFF).unwrap_or(0),
            device: device.cast_unsigned(),
            code: code.cast_unsigned(),
            function: 0,
            arguments: 0,
            argument_bytes: 0,
        }
    }

    /// What the program passes on that a callback was given.
    pub(crate) fn read(info: *const Self) -> Self {
        // SAFETY: the program receives it as the argument of its callback, for the duration of the call.
        unsafe { info.read() }
    }

    /// Calls the registered callbacks, and lets its command fail.
    pub(crate) fn raise(&self, why: &str) -> Answer {
        report_exception(self);
        let text = format!("task {} of stream {} {why}", self.task, self.stream);
        Err(Refusal::new(self.code.cast_signed(), text))
    }
}

/// A call of the program: the function, and the address of its argument.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    pub(crate) function: HostFunction,
    pub(crate) argument: usize,
}

impl Call {
    /// Calls it.
    pub(crate) fn make(self) {
        (self.function)(std::ptr::with_exposed_provenance_mut(self.argument));
    }
}

#[derive(Default)]
struct CallbackRegistry {
    of_streams: BTreeMap<String, (OfStream, usize)>,
    of_exceptions: Vec<OfException>,
}

static REGISTERED: Mutex<CallbackRegistry> =
    Mutex::new(CallbackRegistry { of_streams: BTreeMap::new(), of_exceptions: Vec::new() });

fn registered() -> MutexGuard<'static, CallbackRegistry> {
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers a function for the states of streams; `None` removes it.
pub(crate) fn watch_streams(name: String, function: Option<(OfStream, usize)>) {
    let of_streams = &mut registered().of_streams;
    match function {
        Some(function) => of_streams.insert(name, function),
        None => of_streams.remove(&name),
    };
}

/// A stream was made.
pub(crate) fn stream_made(stream: Handle) {
    report_stream(stream, 1);
}

/// A stream is about to be destroyed.
pub(crate) fn stream_ends(stream: Handle) {
    report_stream(stream, 2);
}

fn report_stream(stream: Handle, state: u32) {
    let functions: Vec<_> = registered().of_streams.values().copied().collect();
    for (function, argument) in functions {
        let [stream, argument] = [stream, argument].map(std::ptr::with_exposed_provenance_mut);
        function(stream, state, argument);
    }
}

/// Sets the one function for exceptions; `None` removes all.
pub(crate) fn set_exception(function: Option<OfException>) {
    registered().of_exceptions = function.into_iter().collect();
}

/// Adds a function for exceptions.
pub(crate) fn add_exception(function: OfException) {
    registered().of_exceptions.push(function);
}

/// Removes a function for exceptions.
pub(crate) fn remove_exception(function: OfException) {
    registered().of_exceptions.retain(|other| !std::ptr::fn_addr_eq(*other, function));
}

/// Calls the registered callbacks with an exception.
fn report_exception(exception: &Exception) {
    let functions = registered().of_exceptions.clone();
    functions.into_iter().for_each(|function| function(&raw const *exception));
}

/// Which calls a thread takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// A callback of `aclrtLaunchCallback`.
    Report,
    /// A function of `aclrtLaunchHostFunc`.
    HostFunction,
}

/// What a thread of the program processes.
#[derive(Default)]
struct Queue {
    waiting: Mutex<PendingCalls>,
    came: Condvar,
}

/// Calls that the thread is to make, and how many of its calls were made while it stepped a device.
#[derive(Default)]
struct PendingCalls {
    calls: VecDeque<(Call, Arc<Done>)>,
    made: u64,
}

/// How long a thread waits that has no limit.
const LONG: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Whether a call is over.
#[derive(Default)]
pub(crate) struct Done {
    is_over: Mutex<bool>,
    changed: Condvar,
}

impl Done {
    fn set(&self) {
        *self.lock() = true;
        self.changed.notify_all();
    }

    /// Waits until the call is over. In virtual time it fails if no thread can make the call any more.
    pub(crate) fn wait(&self) -> Answer {
        if waits::are_virtual() {
            return waits::wait_until(None, || *self.lock()).map_err(|_| {
                let text = "the thread that takes the calls of the stream does not process them; call aclrtProcessReport there";
                Refusal::new(codes::WAIT_TIMEOUT, text)
            });
        }
        let waited = self.changed.wait_while(self.lock(), |is_over| !*is_over);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.is_over.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A subscription: the stream, and the thread that takes its calls.
struct Subscription {
    sort: Sort,
    stream: Handle,
    thread: u64,
    queue: Arc<Queue>,
}

static SUBSCRIPTIONS: Mutex<Vec<Subscription>> = Mutex::new(Vec::new());

fn subscriptions() -> MutexGuard<'static, Vec<Subscription>> {
    SUBSCRIPTIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The calls of a stream go to a thread from now on.
pub(crate) fn subscribe(sort: Sort, thread: u64, stream: Handle) -> Answer {
    let mut all = subscriptions();
    let is_taken = all.iter().any(|held| held.sort == sort && held.stream == stream);
    require(!is_taken, || {
        let text = "the stream is subscribed; one thread takes its calls";
        Refusal::new(codes::ALREADY_SUBSCRIBED, text)
    })?;
    let known = all.iter().find(|held| held.sort == sort && held.thread == thread);
    let queue = known.map(|held| Arc::clone(&held.queue)).unwrap_or_default();
    all.push(Subscription { sort, stream, thread, queue });
    Ok(())
}

/// No thread takes the calls of a stream from now on.
pub(crate) fn unsubscribe(sort: Sort, thread: u64, stream: Handle) -> Answer {
    let mut all = subscriptions();
    let is_it =
        |held: &Subscription| (held.sort, held.thread, held.stream) == (sort, thread, stream);
    let found = all.iter().position(is_it);
    let found = found.ok_or_else(|| {
        Refusal::new(codes::THREAD_NOT_SUBSCRIBED, "the thread is not subscribed to the stream")
    })?;
    all.remove(found);
    Ok(())
}

/// Whether a thread takes the calls of a stream.
pub(crate) fn is_subscribed(sort: Sort, stream: Handle) -> bool {
    subscriptions().iter().any(|held| held.sort == sort && held.stream == stream)
}

/// Queues a call for the thread that takes it; `number` is that of the calling thread. In virtual time that thread may be the one that steps the
/// device: then it makes the call now.
pub(crate) fn deliver(sort: Sort, stream: Handle, number: u64, call: Call) -> Answer<Arc<Done>> {
    let all = subscriptions();
    let held = all.iter().find(|held| held.sort == sort && held.stream == stream);
    let held = held.map(|held| (held.thread, Arc::clone(&held.queue)));
    let (thread, queue) = held.ok_or_else(|| {
        Refusal::new(
            codes::STREAM_NOT_SUBSCRIBED,
            "no thread takes the calls of the stream; subscribe one",
        )
    })?;
    drop(all);
    let done = Arc::<Done>::default();
    if thread == number {
        call.make();
        done.set();
        queue.lock().made += 1;
        return Ok(done);
    }
    queue.lock().calls.push_back((call, Arc::clone(&done)));
    queue.came.notify_all();
    Ok(done)
}

/// Makes the next call of the calling thread; waits for one at most for `limit`.
pub(crate) fn process(sort: Sort, thread: u64, limit: Option<Duration>) -> Answer {
    let queue = {
        let all = subscriptions();
        let held = all.iter().find(|held| held.sort == sort && held.thread == thread);
        held.map(|held| Arc::clone(&held.queue))
    };
    let queue = queue.ok_or_else(|| {
        Refusal::new(
            codes::THREAD_NOT_SUBSCRIBED,
            "this thread takes the calls of no stream; subscribe it first",
        )
    })?;
    let came = queue.wait(limit);
    require(came, || {
        Refusal::new(codes::REPORT_TIMEOUT, "no call came in the time that was given")
    })?;
    let mut waiting = queue.lock();
    let Some((call, done)) = waiting.calls.pop_front() else {
        waiting.made -= 1;
        return Ok(());
    };
    drop(waiting);
    call.make();
    done.set();
    Ok(())
}

impl PendingCalls {
    fn has_any(&self) -> bool {
        !self.calls.is_empty() || self.made > 0
    }
}

impl Queue {
    /// Waits for a call; whether there is one. Only one thread takes calls out.
    fn wait(&self, limit: Option<Duration>) -> bool {
        if waits::are_virtual() {
            return waits::wait_until(limit, || self.lock().has_any()).is_ok();
        }
        let limit = limit.unwrap_or(LONG);
        let is_empty = |waiting: &mut PendingCalls| !waiting.has_any();
        let waited = self.came.wait_timeout_while(self.lock(), limit, is_empty);
        waited.unwrap_or_else(PoisonError::into_inner).0.has_any()
    }

    fn lock(&self) -> MutexGuard<'_, PendingCalls> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
