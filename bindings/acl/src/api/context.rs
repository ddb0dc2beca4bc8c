//! Functions on contexts.

use crate::common::argument::Out;
use crate::common::codes;
use crate::common::entry::api;
use crate::common::refusal::{Refusal, require};
use crate::common::table::Handle;
use crate::device::{current, fleet};

api! {
    fn aclrtCreateContext(context: Out<Handle>, device: i32) {
        let output = context.required("context")?;
        fleet::check(device)?;
        let made = current::make_context(device, false)?;
        current::set(&made);
        output.set(made.handle);
        Ok(())
    }

    fn aclrtDestroyContext(context: Handle) {
        require(context != 0, || Refusal::argument("context is null; pass a context"))?;
        let context = fleet::context(context)?;
        require(!context.is_primary, || {
            let text = "the context is the primary one of its device; reset the device instead";
            Refusal::new(codes::NO_CONTEXT, text)
        })?;
        current::destroy(&context);
        Ok(())
    }

    fn aclrtSetCurrentContext(context: Handle) {
        require(context != 0, || Refusal::argument("context is null; pass a context"))?;
        current::set(&*fleet::context(context)?);
        Ok(())
    }

    fn aclrtGetCurrentContext(context: Out<Handle>) {
        let output = context.required("context")?;
        output.set(current::context()?.handle);
        Ok(())
    }

    fn aclrtCtxGetCurrentDefaultStream(stream: Out<Handle>) {
        let output = stream.required("stream")?;
        output.set(current::context()?.default_stream());
        Ok(())
    }
}
