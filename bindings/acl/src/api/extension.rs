//! Two functions of ours, for programs that have their kernels in themselves, as those that a compiler of kernels makes: `pto_acl.h`.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

use pto_host::abi::CoreKind;
use pto_native::kernels::{KernelSource, from_pointer};

use super::launch::launch;
use crate::common::argument::{Address, In, Out, Text};
use crate::common::codes;
use crate::common::entry::api;
use crate::common::refusal::{Refusal, require};
use crate::common::table::Handle;
use crate::device::callbacks::Exception;
use crate::device::current;
use crate::device::kernel;
use crate::device::lane::{Command, Engine, Work};

api! {
    fn ptoAclKernelFromFunction(name: Text, entry: Address, cores: u32, function: Out<Handle>) {
        let place = function.place("function")?;
        let name = name.read("name")?;
        let entry = NonNull::new(std::ptr::with_exposed_provenance_mut::<c_void>(entry.required("entry")?));
        let entry = entry.ok_or_else(|| Refusal::argument("entry is null; pass a function"))?;
        let kind = match cores {
            0 => CoreKind::AIC,
            1 => CoreKind::AIV,
            _ => return Err(Refusal::argument(format!("there is no kind {cores} of cores; there are 0 (cube) and 1 (vector)"))),
        };
        let source = KernelSource { name: &name, symbol: &name, kind };
        // SAFETY: the caller passes a function `void entry(int64_t *args)` of the program, which stays loaded.
        let kernel = unsafe { from_pointer(entry, source) };
        place.set(kernel::add(kernel, entry.as_ptr().expose_provenance()));
        Ok(())
    }

    fn ptoAclLaunch(function: Handle, blocks: u32, words: In<u64>, count: usize, stream: Handle) {
        let held = words.list("words", count)?;
        require(count <= kernel::MAX_PARAMETERS, || {
            Refusal::value(format!("{count} words; a kernel takes {}", kernel::MAX_PARAMETERS))
        })?;
        launch(function, blocks, held, Vec::new(), stream)
    }

    fn ptoAclLaunchException(stream: Handle, code: i32) {
        let code = if code == 0 { codes::AICORE_EXCEPTION } else { code };
        let stream = current::submitting(stream)?;
        let (id, device) = (stream.id.cast_unsigned(), stream.context.open.index);
        let exception = Exception::of_next_command(id, device, code);
        let work: Work = Arc::new(move |lane| lane.call(move || exception.raise("raised an exception")));
        stream.submit(Command::new(Engine::Stream, "exception", work))
    }
}
