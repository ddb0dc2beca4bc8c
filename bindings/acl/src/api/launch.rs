//! Launches of kernels, and their arguments.

use std::sync::Arc;

use crate::common::argument::{Address, In, Out};
use crate::common::calls;
use crate::common::entry::{self, api};
use crate::common::notes::{Note, Noted as _, Pointee};
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::Handle;
use crate::common::thread;
use crate::device::kernel::{self, ARGUMENTS, Arguments, FUNCTIONS, KernelFunction};
use crate::device::parameters::MAX_PARAMETERS;
use crate::device::{current, launches};

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

/// `aclrtPlaceHolderInfo`: the word at `address_offset` becomes the address of the data at `data_offset`.
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
        if count == 0 && let Some(words) = arguments.words(bytes, MAX_PARAMETERS) {
            check_blocks(blocks)?;
            let own = thread::own();
            return launches::launch_words(&own, &*current::submitting_from(&own, stream)?, looked_up(function)?, blocks, words);
        }
        let arguments = arguments.list("arguments", bytes)?;
        let holders = holders.list("holders", count)?;
        let holders = holders.iter().map(|holder| (holder.address_offset as usize, holder.data_offset as usize));
        let arguments = launches::with_placeholders(&arguments, holders)?;
        launch(function, blocks, arguments, stream)
    }

    fn aclrtLaunchKernelWithConfig(function: Handle, blocks: u32, stream: Handle, config: In<Config>, arguments: Handle, reserve: Address) {
        require(reserve.number() == 0, || Refusal::argument("reserve is not null; pass NULL"))?;
        check_config(&config)?;
        let passed = launches::of_parts(looked_up(function)?, &*list(arguments)?)?;
        launch(function, blocks, passed, stream)
    }

    fn aclrtKernelArgsInit(function: Handle, arguments: Out<Handle>) {
        let output = arguments.required("arguments")?;
        checked(function)?;
        output.set(kernel::new_arguments());
        Ok(())
    }

    fn aclrtKernelArgsAppend(arguments: Handle, value: In<u8>, bytes: usize, parameter: Out<usize>) {
        let output = parameter.required("parameter")?;
        require(bytes > 0, || Refusal::argument("the size is 0; append one byte at least"))?;
        let value = value.list("value", bytes)?;
        output.set(list(arguments)?.append(value)?);
        Ok(())
    }

    fn aclrtKernelArgsAppendPlaceHolder(arguments: Handle, parameter: Out<usize>) {
        let output = parameter.required("parameter")?;
        output.set(list(arguments)?.append_placeholder()?);
        Ok(())
    }

    fn aclrtKernelArgsGetPlaceHolderBuffer(arguments: Handle, parameter: usize, bytes: usize, buffer: Out<Address>) {
        let output = buffer.required("buffer")?;
        require(bytes > 0, || Refusal::argument("the size is 0; ask for one byte at least"))?;
        require(bytes <= MAX_BUFFER, || {
            Refusal::value(format!("{bytes} bytes for a parameter; a buffer has {MAX_BUFFER} at most"))
        })?;
        output.set(Address::of(list(arguments)?.buffer(parameter, bytes)?));
        Ok(())
    }

    fn aclrtKernelArgsParaUpdate(arguments: Handle, parameter: usize, value: In<u8>, bytes: usize) {
        let value = value.list("value", bytes)?;
        list(arguments)?.update(parameter, value)
    }

    fn aclrtKernelArgsFinalize(arguments: Handle) {
        list(arguments)?.finish();
        Ok(())
    }

    fn aclrtFunctionGetParamCount(function: Handle, count: Out<usize>) {
        let output = count.required("count")?;
        let function = looked_up(function)?;
        output.set(function.declaration.get(function.name())?.count());
        Ok(())
    }

    fn aclrtFunctionGetParamInfo(function: Handle, index: usize, offset: Out<usize>, size: Out<usize>) {
        let outputs = (offset.optional(), size.optional());
        require(outputs.0.is_some() || outputs.1.is_some(), || {
            Refusal::argument("offset and size are null; pass a pointer for one of them")
        })?;
        let function = looked_up(function)?;
        let (offset, size) = function.declaration.get(function.name())?.extent(index)?;
        if let Some(output) = outputs.0 {
            output.set(offset);
        }
        if let Some(output) = outputs.1 {
            output.set(size);
        }
        Ok(())
    }

    fn aclrtGetFunctionName(function: Handle, room: u32, name: Out<u8>) {
        let output = name.required("name")?;
        let function = checked(function)?;
        crate::common::argument::put_text(&output, room as usize, function.name())
    }
}

/// Launches a kernel with an array of pointers to its arguments. A record of calls has the launch as `aclrtLaunchKernelWithHostArgs`, which makes the same
/// command: there the arguments are one piece of memory, whose words a replay translates.
// SAFETY: the interface defines this name, and no other function here has the same name.
#[unsafe(no_mangle)]
extern "C" fn aclrtLaunchKernelWithArgsArray(
    function: Handle,
    blocks: u32,
    stream: Handle,
    config: In<Config>,
    arguments: In<usize>,
) -> i32 {
    let mut begun = None;
    let code = entry::answer("aclrtLaunchKernelWithArgsArray", || {
        check_config(&config)?;
        let found = looked_up(function)?;
        check_blocks(blocks)?;
        let words = words_of_array(found, &arguments)?;
        begun = entry::begun("aclrtLaunchKernelWithHostArgs", || {
            [
                ("function", function.note()),
                ("blocks", blocks.note()),
                ("stream", stream.note()),
                ("config", config.note()),
                ("arguments", Note::In(words.as_ptr().expose_provenance(), 1)),
                ("bytes", size_of_val(&*words).note()),
                ("holders", Note::In(0, size_of::<PlaceHolder>())),
                ("count", 0_usize.note()),
            ]
        });
        let own = thread::own();
        launches::launch_words(
            &own,
            &*current::submitting_from(&own, stream)?,
            found,
            blocks,
            &words,
        )
    });
    calls::end(begun, u64::from(code.cast_unsigned()));
    code
}

/// The words that a kernel's arguments are, where the program passes a pointer to each of them.
fn words_of_array(function: &KernelFunction, arguments: &In<usize>) -> Answer<Vec<u64>> {
    let parameters = function.declaration.get(function.name())?;
    let addresses = arguments.list("arguments", parameters.count())?;
    parameters.gather(|index, size| {
        In::<u8>::at(addresses[index]).list(&format!("arguments[{index}]"), size)
    })
}

/// The function of a handle, to keep.
pub(super) fn checked(function: Handle) -> Answer<Arc<KernelFunction>> {
    looked_up(function).map(Arc::clone)
}

/// The function of a handle.
#[inline]
pub(super) fn looked_up(function: Handle) -> Answer<&'static Arc<KernelFunction>> {
    require(function != 0, || Refusal::argument("function is null; pass a kernel function"))?;
    FUNCTIONS.look(function)
}

pub(super) fn check_blocks(blocks: u32) -> Answer {
    require(blocks > 0, || Refusal::argument("the number of blocks is 0; launch one at least"))
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
    check_blocks(blocks)?;
    let count = launches::check_words_on_device(at, bytes)?;
    launches::launch_from(&*current::submitting(stream)?, function, blocks, at, count)
}

/// Launches a kernel.
pub(super) fn launch(
    function: Handle,
    blocks: u32,
    arguments: launches::Passed,
    stream: Handle,
) -> Answer {
    let function = checked(function)?;
    check_blocks(blocks)?;
    launches::launch(&*current::submitting(stream)?, function, blocks, arguments)
}
