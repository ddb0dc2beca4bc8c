//! Launches of operators: a kernel, the memory that it uses, and what says afterwards whether it went well.

use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;

use super::kernel::KernelFunction;
use super::lane::{Engine, Lane, labels_are_asked_for};
use super::memory_map;
use super::settings::{DeviceKind, settings};
use super::stream::Stream;
use crate::common::order::Touch;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::thread::ThreadRef;

/// Says how an operator ended: 0, or a code and why.
pub(crate) type Outcome = extern "C" fn(*mut c_void, *mut c_char, usize) -> i32;

/// Room for the text of an outcome, in bytes.
const ROOM: usize = 512;

/// What the words and the outcome of an operator refer to. It is released with the last use.
#[derive(Clone)]
pub(crate) struct Context(Option<Arc<Held>>);

struct Held {
    address: usize,
    release: Option<extern "C" fn(*mut c_void)>,
}

impl Context {
    /// Takes over a context of the caller; `None` and null: there is nothing to keep.
    pub(crate) fn new(address: usize, release: Option<extern "C" fn(*mut c_void)>) -> Self {
        let is_any = address != 0 || release.is_some();
        Self(is_any.then(|| Arc::new(Held { address, release })))
    }

    fn pointer(&self) -> *mut c_void {
        std::ptr::with_exposed_provenance_mut(self.0.as_ref().map_or(0, |held| held.address))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            release(std::ptr::with_exposed_provenance_mut(self.address));
        }
    }
}

/// What is launched.
pub(crate) struct Launch<'f> {
    pub(crate) function: &'f Arc<KernelFunction>,
    pub(crate) blocks: u32,
    pub(crate) words: Vec<u64>,
    pub(crate) outcome: Option<Outcome>,
    pub(crate) context: Context,
}

/// Launches an operator in a stream.
pub(crate) fn launch(
    own: &ThreadRef,
    stream: &Stream,
    launch: Launch<'_>,
    touches: Vec<Touch>,
) -> Answer {
    require(settings().machine == DeviceKind::Simulator, || {
        Refusal::unsupported(
            "operators run on the device a2a3sim; a program file runs on qemu: build one with `pto program build`",
        )
    })?;
    let device = stream.context.open.index;
    for touch in touches.iter().filter(|touch| touch.bytes > 0) {
        let found = memory_map::device_of(touch.start, touch.bytes)?.map(|open| open.index);
        require(found == Some(device), || {
            let Touch { start, bytes, .. } = touch;
            Refusal::value(format!(
                "{bytes} bytes at {start:#x} are not memory of device {device}, where the stream is; use memory of aclrtMalloc there"
            ))
        })?;
    }
    let Launch { function, blocks, words, outcome, context } = launch;
    let is_plain = outcome.is_none() && context.0.is_none();
    if is_plain && !stream.is_captured() && !labels_are_asked_for() {
        return stream
            .submit_unwatched(own, Engine::Cores, |lane| function.launch(lane, blocks, &words));
    }
    let function = Arc::clone(function);
    let named = Arc::clone(&function);
    let work = move |lane: &Lane| {
        function.launch(lane, blocks, &words)?;
        if is_plain {
            return Ok(());
        }
        let context = context.clone();
        lane.call(move || outcome.map_or(Ok(()), |outcome| ask(outcome, &context)))
    };
    stream.take_labelled(Engine::Cores, "operator", || named.name().to_owned(), &touches, work)
}

fn ask(outcome: Outcome, context: &Context) -> Answer {
    let mut text = [0_u8; ROOM];
    let code = outcome(context.pointer(), text.as_mut_ptr().cast(), ROOM);
    if code == 0 {
        return Ok(());
    }
    text[ROOM - 1] = 0;
    let text = CStr::from_bytes_until_nul(&text).unwrap_or_default();
    Err(Refusal::new(code, text.to_string_lossy()))
}
