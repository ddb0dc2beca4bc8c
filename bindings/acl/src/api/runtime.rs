//! The functions `rt*` of `libruntime.so` that programs and this project's own host name. Those with a counterpart in `aclrt*` do the same;
//! the others start images and cores of a real device, and are refused by name.

use std::ffi::{CStr, c_char};

use crate::common::argument::{In, Out, Text};
use crate::common::entry::{self, api, refused};
use crate::common::refusal::Refusal;
use crate::common::table::Handle;
use crate::device::current;
use crate::device::event::EVENTS;

/// Returns the version of the table of functions of this plug-in, for the library of entry points.
// SAFETY: no other function of the plug-in has the name.
#[unsafe(no_mangle)]
extern "C" fn ptoAclPlugin() -> u32 {
    pto_acl_interface::PLUGIN_VERSION
}

/// The library of entry points reports a call that it refuses.
// SAFETY: no other function of the plug-in has the name.
#[unsafe(no_mangle)]
extern "C" fn ptoAclRefused(call: *const c_char, code: i32, text: *const c_char) -> i32 {
    report(call, code, text)
}

/// Another library of ours refuses a call of its own.
pub(super) fn report(call: *const c_char, code: i32, text: *const c_char) -> i32 {
    if call.is_null() {
        return code;
    }
    // SAFETY: the library passes a name of its table, which stays as long as the process.
    let call = unsafe { CStr::from_ptr::<'static>(call) }.to_str().unwrap_or_default();
    entry::refused_above(call, &Refusal::new(code, super::values::said(text)))
}

api! {
    fn rtSetDevice(device: i32) {
        current::set_device(device)
    }

    fn rtEventDestroy(event: Handle) {
        super::event::checked(event)?;
        EVENTS.take(event).map(drop)
    }

    fn rtsBinaryLoadFromFile(path: Text, options: In<super::binary::LoadOptions>, binary: Out<Handle>) {
        super::binary::load_file(&path, &options, binary)
    }

    fn rtsFuncGetByName(binary: Handle, name: Text, function: Out<Handle>) {
        super::binary::function_of(binary, &name, function)
    }
}

fn refusal(name: &str) -> Refusal {
    Refusal::unsupported(format!(
        "{name} starts images and cores of a real device, and this one is simulated; launch kernels with aclrtLaunchKernel, or set PTO_ACL_DEVICE=a2a3"
    ))
}

refused! {
    refusal;
    rtsLaunchCpuKernel,
    rtRegisterAllKernel,
    rtKernelLaunchWithHandleV2,
    rtGetC2cCtrlAddr,
    rtAicpuKernelLaunchExWithArgs,
}
