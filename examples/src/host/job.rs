//! An example that is ready to run: words, sizes, and the buffers that the check reads.

use std::boxed::Box;
use std::string::String;
use std::vec;
use std::vec::Vec;

use pto_abi::arena::ArenaLayout;
use pto_abi::limits::{MAX_IMAGE_EDGES, MAX_TASKS};
use pto_abi::symbol::symbol;
use pto_abi::{Fault, GmAddr, RuntimeVariant};
use pto_graph::BuilderSet;
use pto_host::{
    Capacities, Device, DeviceBuffer, Error as DeviceError, GraphImage, HostGraph, Work,
};

use crate::host::check::{Expected, UNWRITTEN, Verdict, compare};
use crate::host::error::Error;
use crate::host::tensor::Tensor;

/// The number of everything that a graph program adds: computed by the example, exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GraphSize {
    /// Tasks.
    pub tasks: u64,
    /// Argument words of all tasks.
    pub arg_words: u64,
    /// Edges.
    pub edges: u64,
}

impl GraphSize {
    /// That of a program with tensors, whose edges are derived: rings for arguments and edges have room for each task's.
    #[must_use]
    pub const fn streamed(tasks: u64) -> Self {
        Self { tasks, arg_words: 0, edges: 0 }
    }

    /// What a launch must provide for.
    ///
    /// # Errors
    /// The limit of the runtime that the graph exceeds.
    pub fn capacities(&self) -> Result<Capacities, Error> {
        let limit = |what, found: u64, limit: u64| {
            if found <= limit { Ok(found) } else { Err(Error::Limit { what, found, limit }) }
        };
        let max_tasks = u64::from(MAX_TASKS);
        let tasks = limit("tasks", self.tasks, max_tasks)?;
        let edges = limit("edges", self.edges, MAX_IMAGE_EDGES)?;
        let arg_words = limit("argument words", self.arg_words, u64::from(u32::MAX) - max_tasks)?;
        let tasks = u32::try_from(tasks).map_err(|_| Error::Limit {
            what: "tasks",
            found: tasks,
            limit: max_tasks,
        })?;
        Ok(Capacities { tasks, arg_words, edges, ..Capacities::default() })
    }
}

/// What an example keeps of itself: the buffers, and how to judge them.
pub trait Check: Send {
    /// Fills the outputs with values that no run produces, so that each run has to write them.
    ///
    /// # Errors
    /// What the device refuses.
    fn reset(&mut self) -> Result<(), DeviceError>;

    /// Compares the outputs with the reference. The reference is computed once, at the first call.
    ///
    /// # Errors
    /// What the device refuses; an input that has no result.
    fn verify(&mut self) -> Result<Verdict, Error>;

    /// Reads the outputs, by name.
    ///
    /// # Errors
    /// What the device refuses.
    fn outputs(&self) -> Result<Vec<(&'static str, Tensor)>, DeviceError>;

    /// Why the last run ended with a fault, as far as the program has said so in memory of its own.
    fn explain(&self) -> Option<String> {
        None
    }

    /// What the last run has left in memory of its own, for its timeline.
    ///
    /// # Errors
    /// What the device refuses.
    fn facts(&self) -> Result<Vec<(String, String)>, DeviceError> {
        Ok(Vec::new())
    }
}

/// Memory of an example's, as its program's words tell of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedBuffer {
    /// What the word is called.
    pub name: &'static str,
    /// Where it begins.
    pub address: GmAddr,
    /// How large it is.
    pub bytes: u64,
}

/// An example that is ready to run on one device, any number of times.
pub struct Prepared {
    builder: &'static str,
    orch_args: Vec<u64>,
    /// What the words are called, and which of them are addresses.
    names: &'static [(&'static str, bool)],
    size: GraphSize,
    capacities: Capacities,
    check: Box<dyn Check>,
}

impl Prepared {
    /// A program of the firmware, its words with their names and which of them are addresses, how large it is, and who
    /// judges its results.
    ///
    /// # Errors
    /// The limit of the runtime that the graph exceeds.
    pub fn new(
        builder: &'static str,
        (orch_args, names): (Vec<u64>, &'static [(&'static str, bool)]),
        size: GraphSize,
        check: Box<dyn Check>,
    ) -> Result<Self, Error> {
        Ok(Self { builder, orch_args, names, size, capacities: size.capacities()?, check })
    }

    /// The name of the graph program.
    #[must_use]
    pub const fn builder(&self) -> &'static str {
        self.builder
    }

    /// The orchestration words.
    #[must_use]
    pub fn orch_args(&self) -> &[u64] {
        &self.orch_args
    }

    /// The memory that the words tell of, on the device that the example is prepared for.
    #[must_use]
    pub fn buffers(&self, device: &Device) -> Vec<NamedBuffer> {
        let words =
            self.names.iter().zip(&self.orch_args).filter(|((_, is_address), _)| *is_address);
        let buffer = |((name, _), word): (&(&'static str, bool), &u64)| {
            let address = GmAddr(*word);
            let (start, bytes) = device.allocation(address)?;
            // A word may be an address within an allocation: the buffer is the rest.
            Some(NamedBuffer { name, address, bytes: start.0 + bytes - address.0 })
        };
        words.filter_map(buffer).collect()
    }

    /// What a device is to do where a builder on it runs the program.
    #[must_use]
    pub fn work(&self, variant: RuntimeVariant) -> Work<'_> {
        let (builder, orch_args) = (self.builder, self.orch_args.as_slice());
        match variant {
            RuntimeVariant::TENSORMAP_AND_RINGBUFFER => Work::Stream { builder, orch_args },
            _ => Work::AicpuBuilder { builder, orch_args },
        }
    }

    /// How large the graph is.
    #[must_use]
    pub const fn size(&self) -> GraphSize {
        self.size
    }

    /// What a launch must provide for.
    #[must_use]
    pub const fn capacities(&self) -> Capacities {
        self.capacities
    }

    /// Runs the graph program on this side, for `host_build_graph`.
    ///
    /// # Errors
    /// Those of the graph program and of [`HostGraph::finish`].
    pub fn build_on_host(&self, device: &Device) -> Result<GraphImage, Error> {
        let image = HostGraph::build(device, &self.orch_args, |graph| {
            let built = crate::ExampleBuilders.build(symbol(self.builder), graph);
            built.unwrap_or(Err(Fault::BUILD_NO_BUILDER.into()))
        });
        Ok(image?)
    }

    /// Fills the outputs with values that no run produces. Call it before each run.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn reset(&mut self) -> Result<(), Error> {
        Ok(self.check.reset()?)
    }

    /// Compares the outputs of the last run with the reference.
    ///
    /// # Errors
    /// What the device refuses; an input that has no result, such as [`Error::NotDefinite`].
    pub fn verify(&mut self) -> Result<Verdict, Error> {
        self.check.verify()
    }

    /// Why the last run ended with a fault, as far as the program has said so in memory of its own.
    #[must_use]
    pub fn explain(&self) -> Option<String> {
        self.check.explain()
    }

    /// What the last run has left in memory of its own, for its timeline.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn facts(&self) -> Result<Vec<(String, String)>, Error> {
        Ok(self.check.facts()?)
    }

    /// The outputs of the last run, by name.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn outputs(&self) -> Result<Vec<(&'static str, Tensor)>, Error> {
        Ok(self.check.outputs()?)
    }
}

/// Computes what every element of an output should be.
pub(crate) type Reference = Box<dyn Fn() -> Vec<Expected> + Send>;

/// The check of an example with one output of `f32`.
pub(crate) struct FloatCheck {
    /// The output's name.
    pub(crate) name: &'static str,
    /// Its extents.
    pub(crate) shape: Vec<u64>,
    /// Where it is.
    pub(crate) out: DeviceBuffer<f32>,
    /// What it should be.
    pub(crate) reference: Reference,
    /// The reference, once computed.
    pub(crate) expected: Vec<Expected>,
    /// Inputs and scratch, which the tasks use.
    pub(crate) _floats: Vec<DeviceBuffer<f32>>,
    /// Tables, which the graph program reads.
    pub(crate) _tables: Vec<DeviceBuffer<i32>>,
}

impl Check for FloatCheck {
    fn reset(&mut self) -> Result<(), DeviceError> {
        self.out.write(&vec![UNWRITTEN; self.out.len()])
    }

    fn verify(&mut self) -> Result<Verdict, Error> {
        if self.expected.is_empty() {
            self.expected = (self.reference)();
        }
        Ok(compare(self.name, &self.shape, &self.out.read()?, &self.expected))
    }

    fn outputs(&self) -> Result<Vec<(&'static str, Tensor)>, DeviceError> {
        Ok(vec![(self.name, Tensor::f32(self.shape.clone(), self.out.read()?))])
    }
}

/// Refuses a job that the device has no room for, before anything of it is made: tensors, in elements of
/// 4 bytes, and what the runtime needs for a graph of this size.
pub(crate) fn check_room(device: &Device, elements: &[u64], size: &GraphSize) -> Result<(), Error> {
    let bytes = elements.iter().map(|count| count.saturating_mul(4));
    check_room_for(device, bytes, size)
}

/// The same of tensors with so many bytes each.
pub(crate) fn check_room_for(
    device: &Device,
    bytes: impl Iterator<Item = u64>,
    size: &GraphSize,
) -> Result<(), Error> {
    let arena = ArenaLayout::plan(&size.capacities()?).map_err(DeviceError::Capacity)?;
    let tensors = bytes.fold(0, u64::saturating_add);
    let available = device.describe().gm_free_bytes;
    if tensors.saturating_add(arena.total_bytes) <= available {
        return Ok(());
    }
    Err(Error::Memory { tensors, graph: arena.total_bytes, available })
}

/// A number of elements as an index. Host and device have 64-bit addresses, and `check_room` has seen that
/// the tensor fits.
#[expect(clippy::cast_possible_truncation, reason = "usize has 64 bits, asserted below")]
pub(crate) const fn index(number: u64) -> usize {
    number as usize
}
const _: () = assert!(usize::BITS == 64);
