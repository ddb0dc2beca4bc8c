//! Allocators that a program registers with a stream.

use crate::common::argument::{Address, Out};
use crate::common::entry::{api, values};
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::Handle;
use crate::device::{allocator, current};

values! {
    fn aclrtAllocatorCreateDesc() -> Handle, 0, { Ok(allocator::create()) }
}

/// Functions that set one part of a description.
macro_rules! setters {
    ($($name:ident: $part:literal),* $(,)?) => {
        api! {$(
            fn $name(description: Handle, value: Address) {
                let value = value.required("value")?;
                allocator::get(checked(description)?)?.set($part, value);
                Ok(())
            }
        )*}
    };
}

setters! {
    aclrtAllocatorSetObjToDesc: 0,
    aclrtAllocatorSetAllocFuncToDesc: 1,
    aclrtAllocatorSetFreeFuncToDesc: 2,
    aclrtAllocatorSetAllocAdviseFuncToDesc: 3,
    aclrtAllocatorSetGetAddrFromBlockFuncToDesc: 4,
}

api! {
    fn aclrtAllocatorDestroyDesc(description: Handle) {
        allocator::destroy(checked(description)?)
    }

    fn aclrtAllocatorRegister(stream: Handle, description: Handle) {
        allocator::get(checked(description)?)?;
        allocator::register(&*current::submitting(stream)?, description)
    }

    fn aclrtAllocatorUnregister(stream: Handle) {
        current::submitting(stream)?.attributes().allocator = None;
        Ok(())
    }

    fn aclrtAllocatorGetByStream(stream: Handle, description: Out<Handle>, object: Out<usize>, allocate: Out<usize>,
        free: Out<usize>, advise: Out<usize>, address: Out<usize>) {
        let held = allocator::of(&*current::asked(stream)?)?;
        let parts = allocator::get(held)?;
        description.put("description", held)?;
        let outputs = [("object", object), ("allocate", allocate), ("free", free), ("advise", advise), ("address", address)];
        outputs.into_iter().enumerate().try_for_each(|(part, (name, output))| output.put(name, parts.part(part)))
    }
}

fn checked(description: Handle) -> Answer<Handle> {
    require(description != 0, || Refusal::argument("the description is null; create one first"))?;
    Ok(description)
}
