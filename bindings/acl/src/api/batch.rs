//! Batches of copies. The copies of a batch have no order among them.

use crate::common::argument::{In, Out, OutPointer};
use crate::common::entry::api;
use crate::common::notes::Pointee;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::Handle;
use crate::device::transfer::Transfer;
use crate::device::virtual_memory::Location;
use crate::device::{copies, current, memory_map};

/// `aclrtMemcpyBatchAttr`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Attribute {
    to: Location,
    from: Location,
    reserve: [u8; 16],
}

impl Pointee for Attribute {}

const _: () = assert!(size_of::<Attribute>() == 32);

/// What a batch is called with.
struct Batch {
    to: In<usize>,
    rooms: In<usize>,
    from: In<usize>,
    sizes: In<usize>,
    count: usize,
    attributes: In<Attribute>,
    firsts: In<usize>,
    attribute_count: usize,
}

api! {
    fn aclrtMemcpyBatch(to: In<usize>, rooms: In<usize>, from: In<usize>, sizes: In<usize>, count: usize,
        attributes: In<Attribute>, firsts: In<usize>, attribute_count: usize, failed: Out<usize>) {
        let batch = Batch { to, rooms, from, sizes, count, attributes, firsts, attribute_count };
        perform(&batch, Some(&failed.required("failed")?))
    }

    fn aclrtMemcpyBatchV2(to: In<usize>, rooms: In<usize>, from: In<usize>, sizes: In<usize>, count: usize,
        attributes: In<Attribute>, firsts: In<usize>, attribute_count: usize) {
        perform(&Batch { to, rooms, from, sizes, count, attributes, firsts, attribute_count }, None)
    }

    fn aclrtMemcpyBatchAsync(to: In<usize>, rooms: In<usize>, from: In<usize>, sizes: In<usize>, count: usize,
        attributes: In<Attribute>, firsts: In<usize>, attribute_count: usize, failed: Out<usize>, stream: Handle) {
        let batch = Batch { to, rooms, from, sizes, count, attributes, firsts, attribute_count };
        submit(&batch, Some(&failed.required("failed")?), stream)
    }

    fn aclrtMemcpyBatchAsyncV2(to: In<usize>, rooms: In<usize>, from: In<usize>, sizes: In<usize>, count: usize,
        attributes: In<Attribute>, firsts: In<usize>, attribute_count: usize, stream: Handle) {
        submit(&Batch { to, rooms, from, sizes, count, attributes, firsts, attribute_count }, None, stream)
    }
}

fn perform(batch: &Batch, failed: Option<&OutPointer<usize>>) -> Answer {
    let copies = batch.checked(failed)?;
    copies::copy_now(copies.iter().flatten())
}

fn submit(batch: &Batch, failed: Option<&OutPointer<usize>>, stream: Handle) -> Answer {
    let copies = batch.checked(failed)?;
    let stream = current::submitting(stream)?;
    copies.into_iter().try_for_each(|copy| copies::copy(&stream, copy, copies::DEFAULT_KIND))
}

impl Batch {
    /// The copies. `failed` gets the number of the first that cannot be, or the count where it is the batch that cannot.
    fn checked(&self, failed: Option<&OutPointer<usize>>) -> Answer<Vec<Option<Transfer>>> {
        let report = |index: usize| {
            if let Some(output) = failed {
                output.set_at(0, index);
            }
        };
        report(usize::MAX);
        require(self.count > 0 && self.attribute_count > 0, || {
            Refusal::argument("the batch has no copy or no attribute; pass one at least")
        })?;
        let [to, rooms, from, sizes] = [
            ("to", &self.to),
            ("rooms", &self.rooms),
            ("from", &self.from),
            ("sizes", &self.sizes),
        ]
        .map(|(name, list)| list.list(name, self.count));
        let (to, rooms, from, sizes) = (to?, rooms?, from?, sizes?);
        self.check_attributes(&to, &from)?;
        let copy = |index: usize| {
            let kind = copies::DEFAULT_KIND;
            Transfer::checked(to[index], rooms[index], from[index], sizes[index], kind)
                .inspect_err(|_| report(index))
        };
        (0..self.count).map(copy).collect()
    }

    fn check_attributes(&self, to: &[usize], from: &[usize]) -> Answer {
        let firsts = self.firsts.list("firsts", self.attribute_count)?;
        let attributes = self.attributes.list("attributes", self.attribute_count)?;
        let rises = firsts.windows(2).all(|pair| pair[0] < pair[1]);
        require(firsts[0] == 0 && rises && firsts.iter().all(|first| *first < self.count), || {
            Refusal::value(
                "the first copies of the attributes do not begin at 0 and rise below the count",
            )
        })?;
        let is_device =
            |address| -> Answer<bool> { Ok(memory_map::device_of(address, 1)?.is_some()) };
        for (index, attribute) in attributes.iter().enumerate() {
            let end = firsts.get(index + 1).copied().unwrap_or(self.count);
            require(attribute.to.kind <= 1 && attribute.from.kind <= 1, || {
                Refusal::argument("an attribute names a location that is neither host nor device")
            })?;
            require(attribute.to.kind != attribute.from.kind, || {
                Refusal::unsupported("batches within the host or within a device")
            })?;
            for copy in firsts[index]..end {
                let fits = is_device(to[copy])? == (attribute.to.kind == 1)
                    && is_device(from[copy])? == (attribute.from.kind == 1);
                require(fits, || {
                    Refusal::value(format!(
                        "copy {copy} is not between the locations that its attribute names"
                    ))
                })?;
            }
        }
        Ok(())
    }
}
