//! Launches of kernels as commands of streams, and what they pass to a kernel.

use std::sync::Arc;

use super::kernel::{Arguments, KernelFunction, Parameter};
use super::lane::{Engine, Lane, labels_are_asked_for};
use super::memory_map;
use super::parameters::{words, words_in};
use super::settings::{DeviceKind, settings};
use super::stream::Stream;
use crate::common::checks;
use crate::common::order::{MemoryUse, Touch};
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::thread::ThreadRef;

/// What a kernel is called with: its words, and memory of the host that words are addresses of.
#[derive(Default)]
pub(crate) struct Passed {
    words: Vec<u64>,
    kept: Vec<Arc<Vec<u64>>>,
}

impl Passed {
    /// Words alone.
    pub(crate) fn words(words: Vec<u64>) -> Self {
        Self { words, kept: Vec::new() }
    }
}

/// Arguments of the host; each of `holders` (offset of the address, offset of the data) gets the address of its data in the arguments.
pub(crate) fn with_placeholders(
    arguments: &[u8],
    holders: impl Iterator<Item = (usize, usize)>,
) -> Answer<Passed> {
    let bytes = arguments.len();
    let mut passed = Passed::words(words(arguments)?);
    for (address, data) in holders {
        require(address.is_multiple_of(8) && address + 8 <= bytes && data < bytes, || {
            Refusal::value(format!(
                "the place holder from {data} at {address} is not within {bytes} bytes of arguments, aligned to 8"
            ))
        })?;
        let buffer: Arc<Vec<u64>> = Arc::new(passed.words[data / 8..].to_vec());
        passed.words[address / 8] = buffer.as_ptr().expose_provenance() as u64 + (data % 8) as u64;
        passed.kept.push(buffer);
    }
    Ok(passed)
}

/// Arguments that were put together step by step, for this function.
pub(crate) fn of_parts(function: &KernelFunction, arguments: &Arguments) -> Answer<Passed> {
    let parts = arguments.lock();
    require(parts.is_final, || {
        Refusal::value("the arguments are not final; call aclrtKernelArgsFinalize first")
    })?;
    let mut passed = Passed::default();
    for (index, part) in parts.parameters.iter().enumerate() {
        match part {
            Parameter::Bytes(bytes) => {
                function.check_size(index, bytes.len())?;
                passed.words.extend(words(bytes)?);
            }
            Parameter::Buffer(buffer) => {
                let buffer = Arc::new(buffer.clone());
                passed.words.push(buffer.as_ptr().expose_provenance() as u64);
                passed.kept.push(buffer);
            }
        }
    }
    Ok(passed)
}

/// How many words so many bytes of arguments in memory of a device are.
pub(crate) fn check_words_on_device(at: usize, bytes: usize) -> Answer<usize> {
    let count = words_in(bytes)?;
    require(count == 0 || memory_map::device_of(at, 8 * count)?.is_some(), || {
        Refusal::value(format!(
            "the arguments at {at:#x} are not in memory of a device; use aclrtLaunchKernelWithHostArgs"
        ))
    })?;
    Ok(count)
}

/// Launches a kernel whose `count` words lie at `at` in memory of the device: they are read when the launch's turn comes.
pub(crate) fn launch_from(
    stream: &Stream,
    function: Arc<KernelFunction>,
    blocks: u32,
    at: usize,
    count: usize,
) -> Answer {
    let named = Arc::clone(&function);
    let label = || named.name().to_owned();
    let touches = [Touch::new(MemoryUse::Reads, at, 8 * count)];
    let work = move |lane: &Lane| function.launch_from(lane, blocks, at, count);
    stream.take_labelled(Engine::Cores, "kernel", label, &touches, work)
}

/// The memory of devices that a launch uses: what the kernel says, or else what it gets addresses of.
fn touched_by(function: &KernelFunction, blocks: u32, held: &[u64]) -> Vec<Touch> {
    if let Some(touches) = function.touches(blocks, held) {
        return touches;
    }
    let address =
        |word: &u64| usize::try_from(*word).ok().filter(|at| memory_map::block_at(*at).is_some());
    held.iter().filter_map(address).map(|at| Touch::new(MemoryUse::Passes, at, 1)).collect()
}

/// Launches a kernel with words alone. A launch that is not kept copies nothing.
#[inline]
pub(crate) fn launch_words(
    own: &ThreadRef,
    stream: &Stream,
    function: &Arc<KernelFunction>,
    blocks: u32,
    words: &[u64],
) -> Answer {
    if stream.is_captured() || labels_are_asked_for() {
        return launch(stream, Arc::clone(function), blocks, Passed::words(words.to_vec()));
    }
    stream.submit_unwatched(own, Engine::Cores, |lane| function.launch(lane, blocks, words))
}

/// Launches a kernel; what its words are addresses of is kept until it is over.
pub(crate) fn launch(
    stream: &Stream,
    function: Arc<KernelFunction>,
    blocks: u32,
    passed: Passed,
) -> Answer {
    let Passed { words, kept } = passed;
    require(kept.is_empty() || settings().machine == DeviceKind::Simulator, || {
        let text = "place holders are memory of the host, which kernels on the device qemu do not see; copy it to the device, and pass its address";
        Refusal::unsupported(text)
    })?;
    if stream.is_captured() {
        function.check(&stream.context.open, blocks, &words)?;
    }
    let is_checked = checks::is_on();
    let touches = if is_checked { touched_by(&function, blocks, &words) } else { Vec::new() };
    let named = Arc::clone(&function);
    let label = || named.name().to_owned();
    let work = move |lane: &Lane| {
        function.launch(lane, blocks, &words)?;
        if kept.is_empty() {
            return Ok(());
        }
        let kept = kept.clone();
        lane.call(move || {
            drop(kept);
            Ok(())
        })
    };
    stream.take_labelled(Engine::Cores, "kernel", label, &touches, work)
}
