//! Binaries and their functions: shared and relocatable objects with kernels `void name(int64_t *args)`.

use crate::common::argument::{Address, In, Out, Text};
use crate::common::entry::api;
use crate::common::notes::Pointee;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::Handle;
use crate::device::kernel::{self, BINARIES, Object, TargetCores};

/// `aclrtBinaryLoadOptions`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct LoadOptions {
    list: *const LoadOption,
    count: usize,
}

impl Pointee for LoadOptions {}

/// `aclrtBinaryLoadOption`.
#[repr(C)]
#[derive(Clone, Copy)]
struct LoadOption {
    kind: u32,
    value: [u32; 4],
}

/// The magic of an object for cube cores.
const CUBE: u32 = 1_095_320_387;

const _: () = assert!(size_of::<LoadOption>() == 20);

api! {
    fn aclrtBinaryLoadFromFile(path: Text, options: In<LoadOptions>, binary: Out<Handle>) {
        load_file(&path, &options, binary)
    }

    fn aclrtBinaryLoadFromData(bytes: In<u8>, count: usize, options: In<LoadOptions>, binary: Out<Handle>) {
        let output = binary.required("binary")?;
        require(count > 0, || Refusal::argument("the size is 0; pass an object"))?;
        let bytes = bytes.list("bytes", count)?;
        let object = Object::of(bytes, "the object".to_owned())?;
        output.set(kernel::load(object, cores(&options)?));
        Ok(())
    }

    fn aclrtBinaryGetFunction(binary: Handle, name: Text, function: Out<Handle>) {
        function_of(binary, &name, function)
    }

    fn aclrtBinaryUnLoad(binary: Handle) {
        require(binary != 0, || Refusal::argument("binary is null; load one first"))?;
        // The code stays loaded: a core may still be in it.
        BINARIES.take(binary).map(drop)
    }

    fn aclrtBinaryGetDevAddress(binary: Handle, address: Out<Address>, bytes: Out<usize>) {
        let output = address.required("address")?;
        let binary = BINARIES.get(binary)?;
        output.set(Address::of(binary.bytes().as_ptr().expose_provenance()));
        bytes.put("bytes", binary.bytes().len())
    }
}

/// Loads the object in a file.
pub(super) fn load_file(path: &Text, options: &In<LoadOptions>, binary: Out<Handle>) -> Answer {
    let output = binary.required("binary")?;
    let path = path.read("path")?;
    let object = Object::read(path)?;
    output.set(kernel::load(object, cores(options)?));
    Ok(())
}

/// Gives the function of an object that has this name.
pub(super) fn function_of(binary: Handle, name: &Text, function: Out<Handle>) -> Answer {
    let output = function.required("function")?;
    let name = name.read("name")?;
    require(binary != 0, || Refusal::argument("binary is null; load one first"))?;
    output.set(BINARIES.get(binary)?.function(&name)?);
    Ok(())
}

/// The cores that the options name: vector cores, unless the magic is that of cube cores.
fn cores(options: &In<LoadOptions>) -> Answer<TargetCores> {
    let Some(LoadOptions { list, count }) = options.optional() else {
        return Ok(TargetCores::Vector);
    };
    require(!list.is_null() || count == 0, || {
        Refusal::argument("the options are at null; pass an array")
    })?;
    let mut cores = TargetCores::Vector;
    for index in 0..count {
        // SAFETY: the caller of the entry point vouches for as many options.
        let option = unsafe { list.add(index) };
        // SAFETY: as above.
        let option = unsafe { option.read_unaligned() };
        match option.kind {
            1 | 3 => {}
            2 if option.value[0] == CUBE => cores = TargetCores::Cube,
            2 => cores = TargetCores::Vector,
            other => {
                return Err(Refusal::argument(format!(
                    "there is no option {other} of a binary; there are 1, 2 and 3"
                )));
            }
        }
    }
    Ok(cores)
}
