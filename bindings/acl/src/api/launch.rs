//! Launches of kernels, and their arguments.

use std::sync::Arc;

use crate::common::argument::{Address, In, Out};
use crate::common::checks;
use crate::common::entry::api;
use crate::common::notes::Pointee;
use crate::common::order::{Touch, Use};
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::Handle;
use crate::device::current;
use crate::device::kernel::{ARGUMENTS, Arguments, FUNCTIONS, Function, Part, words};
use crate::device::lane::{Command, Engine, Work};
use crate::device::places;

/// The most bytes of a parameter that is a buffer.
const MAX_BUFFER: usize = 1 << 30;

/// `aclrtLaunchKernelCfg`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Config {
    attributes: usize,
    count: usize,
}

impl Pointee for Config {}

/// `aclrtPlaceHolderInfo`: the word at `address_offset` becomes the address of what stands at `data_offset`.
#[repr(C)]
#[derive(Clone, Copy)]
struct PlaceHolder {
    address_offset: u32,
    data_offset: u32,
}

impl Pointee for PlaceHolder {}

api! {
    fn aclrtLaunchKernel(function: Handle, blocks: u32, arguments: Address, bytes: usize, stream: Handle) {
        from_device(function, blocks, arguments, bytes, stream)
    }

    fn aclrtLaunchKernelV2(function: Handle, blocks: u32, arguments: Address, bytes: usize, config: In<Config>, stream: Handle) {
        check_config(&config)?;
        from_device(function, blocks, arguments, bytes, stream)
    }

    fn aclrtLaunchKernelWithHostArgs(function: Handle, blocks: u32, stream: Handle, config: In<Config>, arguments: In<u8>,
        bytes: usize, holders: In<PlaceHolder>, count: usize) {
        check_config(&config)?;
        let mut held = words(&arguments.list("arguments", bytes)?)?;
        let mut extra = Vec::new();
        for holder in holders.list("holders", count)? {
            let [address, data] = [holder.address_offset, holder.data_offset].map(|offset| offset as usize);
            require(address.is_multiple_of(8) && address + 8 <= bytes && data < bytes, || {
                Refusal::value(format!("the place holder from {data} at {address} is not within {bytes} bytes of arguments, aligned to 8"))
            })?;
            let buffer: Arc<Vec<u64>> = Arc::new(held[data / 8..].to_vec());
            held[address / 8] = buffer.as_ptr().expose_provenance() as u64 + (data % 8) as u64;
            extra.push(buffer);
        }
        launch(function, blocks, held, extra, stream)
    }

    fn aclrtLaunchKernelWithConfig(function: Handle, blocks: u32, stream: Handle, config: In<Config>, arguments: Handle, reserve: Address) {
        require(reserve.number() == 0, || Refusal::argument("reserve is not null; pass NULL"))?;
        check_config(&config)?;
        let mut held = Vec::new();
        let mut extra = Vec::new();
        {
            let arguments = list(arguments)?;
            let parts = arguments.lock();
            require(parts.is_final, || Refusal::value("the arguments are not final; call aclrtKernelArgsFinalize first"))?;
            for part in &parts.parameters {
                match part {
                    Part::Bytes(bytes) => held.extend(words(bytes)?),
                    Part::Buffer(buffer) => {
                        let buffer = Arc::new(buffer.clone());
                        held.push(buffer.as_ptr().expose_provenance() as u64);
                        extra.push(buffer);
                    }
                }
            }
        }
        launch(function, blocks, held, extra, stream)
    }

    fn aclrtKernelArgsInit(function: Handle, arguments: Out<Handle>) {
        let place = arguments.place("arguments")?;
        checked(function)?;
        place.set(ARGUMENTS.open(Arguments::default()));
        Ok(())
    }

    fn aclrtKernelArgsAppend(arguments: Handle, value: In<u8>, bytes: usize, parameter: Out<usize>) {
        let place = parameter.place("parameter")?;
        require(bytes > 0, || Refusal::argument("the size is 0; append one byte at least"))?;
        let value = value.list("value", bytes)?;
        place.set(list(arguments)?.lock().add(Part::Bytes(value))?);
        Ok(())
    }

    fn aclrtKernelArgsAppendPlaceHolder(arguments: Handle, parameter: Out<usize>) {
        let place = parameter.place("parameter")?;
        place.set(list(arguments)?.lock().add(Part::Buffer(Vec::new()))?);
        Ok(())
    }

    fn aclrtKernelArgsGetPlaceHolderBuffer(arguments: Handle, parameter: usize, bytes: usize, buffer: Out<Address>) {
        let place = buffer.place("buffer")?;
        require(bytes > 0, || Refusal::argument("the size is 0; ask for one byte at least"))?;
        require(bytes <= MAX_BUFFER, || {
            Refusal::value(format!("{bytes} bytes for a parameter; a buffer has {MAX_BUFFER} at most"))
        })?;
        let arguments = list(arguments)?;
        let mut parts = arguments.lock();
        let Part::Buffer(held) = parts.part(parameter)? else {
            return Err(Refusal::value("the parameter is no place holder; append one first"));
        };
        *held = vec![0; bytes.div_ceil(8)];
        place.set(Address::of(held.as_mut_ptr().expose_provenance()));
        Ok(())
    }

    fn aclrtKernelArgsParaUpdate(arguments: Handle, parameter: usize, value: In<u8>, bytes: usize) {
        let value = value.list("value", bytes)?;
        let arguments = list(arguments)?;
        let mut parts = arguments.lock();
        let Part::Bytes(held) = parts.part(parameter)? else {
            return Err(Refusal::value("the parameter is a place holder; write to its buffer"));
        };
        require(held.len() == bytes, || {
            Refusal::value(format!("the parameter has {} bytes, and {bytes} were passed", held.len()))
        })?;
        *held = value;
        Ok(())
    }

    fn aclrtKernelArgsFinalize(arguments: Handle) {
        list(arguments)?.lock().is_final = true;
        Ok(())
    }

    fn aclrtGetFunctionName(function: Handle, room: u32, name: Out<u8>) {
        let place = name.place("name")?;
        let function = checked(function)?;
        crate::common::argument::put_text(&place, room as usize, function.kernel.name())
    }
}

/// The function of a handle.
pub(super) fn checked(function: Handle) -> Answer<Arc<Function>> {
    require(function != 0, || Refusal::argument("function is null; pass a kernel function"))?;
    FUNCTIONS.get(function)
}

fn list(arguments: Handle) -> Answer<Arc<Arguments>> {
    require(arguments != 0, || {
        Refusal::argument("the arguments are null; call aclrtKernelArgsInit first")
    })?;
    ARGUMENTS.get(arguments)
}

fn check_config(config: &In<Config>) -> Answer {
    let config = config.optional();
    require(config.is_none_or(|config| config.count == 0 || config.attributes != 0), || {
        Refusal::argument("the configuration has attributes at null; pass an array")
    })
}

/// Arguments that lie in memory of the device: they are read when the launch's turn comes.
fn from_device(
    function: Handle,
    blocks: u32,
    arguments: Address,
    bytes: usize,
    stream: Handle,
) -> Answer {
    let at = arguments.number();
    require(at != 0 || bytes == 0, || {
        Refusal::argument("arguments is null; pass memory of the device")
    })?;
    let function = checked(function)?;
    require(bytes == 0 || places::device_of(at, bytes)?.is_some(), || {
        Refusal::value(format!(
            "the arguments at {at:#x} are not in memory of a device; use aclrtLaunchKernelWithHostArgs"
        ))
    })?;
    let count = words(&vec![0; bytes])?.len();
    let named = Arc::clone(&function);
    let work: Work = Arc::new(move |lane| function.launch_from(lane, blocks, at, count));
    let launch =
        Command::new(Engine::Cores, "kernel", work).labelled(|| named.kernel.name().to_owned());
    let launch = launch.using([Touch::new(Use::Reads, at, bytes)]);
    current::submitting(stream)?.submit(launch)
}

/// The memory of devices that a kernel gets addresses of.
fn passed(held: &[u64]) -> Vec<Touch> {
    let address =
        |word: &u64| usize::try_from(*word).ok().filter(|at| places::block_at(*at).is_some());
    held.iter().filter_map(address).map(|at| Touch::new(Use::Passes, at, 1)).collect()
}

/// Launches a kernel; `extra` is kept until it is over.
pub(super) fn launch(
    function: Handle,
    blocks: u32,
    held: Vec<u64>,
    extra: Vec<Arc<Vec<u64>>>,
    stream: Handle,
) -> Answer {
    let function = checked(function)?;
    require(blocks > 0, || Refusal::argument("the number of blocks is 0; launch one at least"))?;
    let touches = if checks::is_on() { passed(&held) } else { Vec::new() };
    let named = Arc::clone(&function);
    let work: Work = Arc::new(move |lane| {
        function.launch(lane, blocks, &held)?;
        if extra.is_empty() {
            return Ok(());
        }
        let extra = extra.clone();
        lane.call(move || {
            drop(extra);
            Ok(())
        })
    });
    let launch =
        Command::new(Engine::Cores, "kernel", work).labelled(|| named.kernel.name().to_owned());
    current::submitting(stream)?.submit(launch.using(touches))
}
