//! Allocators that a program registers with a stream: the library keeps them, and gives them to who asks.

use std::sync::{Arc, Mutex, PoisonError};

use crate::common::argument::{Address, Out};
use crate::common::codes;
use crate::common::entry::{api, values};
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::{Handle, Kind, Table};
use crate::device::current;

static ALLOCATORS: Table<Description> = Table::new(Kind::Allocator);

/// An allocator: its object, and its functions to allocate, free, advise and get an address.
#[derive(Default)]
struct Description([Mutex<usize>; 5]);

values! {
    fn aclrtAllocatorCreateDesc() -> Handle, 0, { Ok(ALLOCATORS.open(Description::default())) }
}

/// Functions that set one part of a description.
macro_rules! setters {
    ($($name:ident: $part:literal),* $(,)?) => {
        api! {$(
            fn $name(description: Handle, value: Address) {
                let value = value.required("value")?;
                checked(description)?.set($part, value);
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
        checked(description)?;
        ALLOCATORS.take(description).map(drop)
    }

    fn aclrtAllocatorRegister(stream: Handle, description: Handle) {
        let allocator = checked(description)?;
        let complete = [0, 1, 2, 4].into_iter().all(|part| allocator.part(part) != 0);
        require(complete, || Refusal::argument("the allocator lacks its object or a function; set them first"))?;
        current::submitting(stream)?.attributes().allocator = Some(description);
        Ok(())
    }

    fn aclrtAllocatorUnregister(stream: Handle) {
        current::submitting(stream)?.attributes().allocator = None;
        Ok(())
    }

    fn aclrtAllocatorGetByStream(stream: Handle, description: Out<Handle>, object: Out<usize>, allocate: Out<usize>,
        free: Out<usize>, advise: Out<usize>, address: Out<usize>) {
        let held = current::asked(stream)?.attributes().allocator;
        let held = held.ok_or_else(|| {
            Refusal::new(codes::BAD_VALUE, "no allocator is registered with the stream; register one first")
        })?;
        let allocator = checked(held)?;
        description.put("description", held)?;
        let places = [("object", object), ("allocate", allocate), ("free", free), ("advise", advise), ("address", address)];
        places.into_iter().enumerate().try_for_each(|(part, (name, place))| place.put(name, allocator.part(part)))
    }
}

impl Description {
    fn part(&self, part: usize) -> usize {
        *self.0[part].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, part: usize, value: usize) {
        *self.0[part].lock().unwrap_or_else(PoisonError::into_inner) = value;
    }
}

fn checked(description: Handle) -> Answer<Arc<Description>> {
    require(description != 0, || Refusal::argument("the description is null; create one first"))?;
    ALLOCATORS.get(description)
}
