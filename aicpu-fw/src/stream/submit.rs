//! Submission: a task with tensors, from its arguments to its edges.

use pto_abi::stream::RingKind;
use pto_abi::sync::{Ordering, Sharing};
use pto_abi::{Fault, GmAddr, TaskId};
use pto_graph::{
    Arg, Bindings, DependencyMode, EdgeOutcome, ElementType, GraphBuilder, Recording, ScopeId,
    StreamBuilder, TaskSpec, TensorTask, TensorView,
};

use super::builder::Stream;
use super::map::{Access, AccessKind, Hide};
use super::overlap::overlap;
use super::proof::{Patience, Until};
use super::region::Region;
use super::scopes::view_fault;
use crate::blame::Blame;
use crate::builder::{BuilderHost, DeviceMemory};
use crate::fanout::FanoutPolicy;

impl<S: Sharing, F: FanoutPolicy, M: DeviceMemory, H: BuilderHost> GraphBuilder
    for Stream<'_, S, F, M, H>
{
    fn orch_args(&self) -> &[u64] {
        self.orch_args
    }

    #[inline]
    fn add_task(&mut self, spec: TaskSpec<'_>) -> Result<TaskId, Fault> {
        self.check_not_recording()?;
        let kernel = self.accept(&spec, spec.args.len())?;
        self.make_room(spec.args.len())?;
        for (word, arg) in self.next_words(spec.args.len()).iter().zip(spec.args) {
            word.store(*arg, Ordering::Relaxed);
        }
        self.open_slot(&spec, kernel, spec.args.len())
    }

    #[inline]
    fn add_edge(&mut self, producer: TaskId, consumer: TaskId) -> Result<EdgeOutcome, Fault> {
        self.check_not_recording()?;
        self.explicit_edge(producer, consumer)
    }

    #[inline]
    fn publish(&mut self, id: TaskId) -> Result<(), Fault> {
        if self.draft.is_some() {
            // A replay publishes what it adds.
            return Ok(());
        }
        self.publish_task(id)
    }

    fn read_u32(&self, address: GmAddr) -> Result<u32, Fault> {
        self.memory.read_u32(address).ok_or(Fault::BUILD_GM_RANGE)
    }
}

impl<S: Sharing, F: FanoutPolicy, M: DeviceMemory, H: BuilderHost> StreamBuilder
    for Stream<'_, S, F, M, H>
{
    #[inline]
    fn add_tensor_task(&mut self, task: &TensorTask<'_>) -> Result<TaskId, Fault> {
        if !task.block_shape.is_plain() {
            return self.add_shaped_task(task);
        }
        if self.draft.is_some() {
            return self.record_task(task);
        }
        self.add_plain_task(task)
    }

    #[inline]
    fn submit_tensors(&mut self, task: &TensorTask<'_>) -> Result<TaskId, Fault> {
        let id = self.add_tensor_task(task)?;
        if self.draft.is_none() {
            self.publish_added(id.slot)?;
        }
        Ok(id)
    }

    fn open_scope(&mut self, mode: DependencyMode) -> Result<ScopeId, Fault> {
        self.open(mode)
    }

    fn close_scope(&mut self, scope: ScopeId) -> Result<(), Fault> {
        if self.draft.as_ref().is_some_and(|draft| draft.is_in(scope)) {
            return Err(self.blame.leave(Blame::of(Fault::STREAM_SCOPE_NOT_OPEN)));
        }
        self.close(scope)
    }

    fn alloc(&mut self, element: ElementType, shape: &[u32]) -> Result<TensorView<'static>, Fault> {
        self.allocate(element, shape)
    }

    fn begin_recording(&mut self, shapes: &[TensorView<'_>]) -> Result<u32, Fault> {
        self.begin(shapes)
    }

    fn end_recording(&mut self) -> Result<Recording, Fault> {
        self.end()
    }

    fn replay(&mut self, record: &Recording, bindings: &Bindings<'_>) -> Result<(), Fault> {
        self.play(record, bindings)
    }

    fn get(&mut self, view: &TensorView<'_>, index: &[u32]) -> Result<u64, Fault> {
        let (address, bytes) = self.settle(view, index, AccessKind::Read)?;
        self.memory.read_element(address, bytes).ok_or(Fault::BUILD_GM_RANGE)
    }

    fn set(&mut self, view: &TensorView<'_>, index: &[u32], value: u64) -> Result<(), Fault> {
        let (address, bytes) = self.settle(view, index, AccessKind::Write)?;
        self.memory.write_element(address, bytes, value).ok_or(Fault::BUILD_GM_RANGE)
    }
}

/// What an argument does to its tensor, which is checked; `None`: nothing.
#[inline]
pub(super) fn access_of<'v>(arg: &Arg<'v>) -> Option<(&'v TensorView<'v>, AccessKind)> {
    match arg {
        Arg::In(view) => Some((view, AccessKind::Read)),
        Arg::Out(view) | Arg::InOut(view) => Some((view, AccessKind::Write)),
        Arg::NoDep(_) | Arg::Scalar(_) | Arg::BoundScalar(_) => None,
    }
}

impl<S: Sharing, F: FanoutPolicy, M: DeviceMemory, H: BuilderHost> Stream<'_, S, F, M, H> {
    /// Adds one kernel on one core.
    #[inline]
    pub(super) fn add_plain_task(&mut self, task: &TensorTask<'_>) -> Result<TaskId, Fault> {
        let spec = TaskSpec::new(task.func_id, task.kind, &[]);
        let args = task.args.len();
        let kernel = self.accept(&spec, args)?;
        self.make_room(args)?;
        // At most: scalars take none.
        if !self.has_room(RingKind::MAP, args as u64 * Access::MAX_ENTRIES) {
            let accesses = task.args.iter().filter_map(access_of).count() as u64;
            self.wait_for_room(RingKind::MAP, accesses * Access::MAX_ENTRIES)?;
        }
        let accesses = self.write_args(task)?;
        self.takes(RingKind::MAP, accesses * Access::MAX_ENTRIES);
        let number = self.next;
        let id = self.open_slot(&spec, kernel, args)?;
        for &producer in task.after {
            self.edge_after(producer, number)?;
        }
        match self.mode() {
            DependencyMode::DERIVED => self.derive(task, number)?,
            DependencyMode::EXPLICIT => self.note(task, number),
            _ => {}
        }
        Ok(id)
    }

    /// Checks the arguments of a task and writes its words to where they are given out next; how many tensors it reads or
    /// writes.
    #[inline]
    fn write_args(&mut self, task: &TensorTask<'_>) -> Result<u64, Fault> {
        let mut words = self.next_words(task.args.len()).iter();
        let (mut index, mut accesses, mut writes) = (0, 0, 0);
        for arg in task.args {
            let word = match arg {
                Arg::Scalar(scalar) => *scalar,
                Arg::BoundScalar(_) => {
                    let fault = Fault::STREAM_NOT_RECORDING;
                    return Err(self.refuse_argument(fault, task, index, 0));
                }
                Arg::In(view) | Arg::Out(view) | Arg::InOut(view) | Arg::NoDep(view) => {
                    if view.defect().is_some() || !self.is_alive(view.heap()) {
                        return Err(self.refuse_view(view, task, index));
                    }
                    if let Some((_, kind)) = access_of(arg) {
                        accesses += 1;
                        if kind == AccessKind::Write {
                            if writes > 0 {
                                self.check_outputs(view, task, index)?;
                            }
                            writes += 1;
                        }
                    }
                    view.address().0
                }
            };
            if let Some(place) = words.next() {
                place.store(word, Ordering::Relaxed);
            }
            index += 1;
        }
        Ok(accesses)
    }

    #[cold]
    pub(super) fn refuse_view(
        &mut self,
        view: &TensorView<'_>,
        task: &TensorTask<'_>,
        index: u32,
    ) -> Fault {
        match view.defect() {
            Some(defect) => {
                let detail = view.shape().len() as u64;
                self.refuse_argument(view_fault(defect), task, index, detail)
            }
            None => {
                let scope = view.heap().serial;
                self.refuse_argument(Fault::STREAM_STALE_TENSOR, task, index, scope)
            }
        }
    }

    /// No two arguments write the same element.
    pub(super) fn check_outputs(
        &mut self,
        output: &TensorView<'_>,
        task: &TensorTask<'_>,
        index: u32,
    ) -> Result<(), Fault> {
        for (at, arg) in (0..index).zip(task.args) {
            let (Arg::Out(view) | Arg::InOut(view)) = arg else { continue };
            if view.base() != output.base() {
                continue;
            }
            match overlap(&Region::of(view), &Region::of(output)) {
                Ok(false) => {}
                Ok(true) => {
                    let fault = Fault::STREAM_OUT_OVERLAP;
                    return Err(self.refuse_argument(fault, task, index, at.into()));
                }
                Err(_) => {
                    let fault = Fault::STREAM_VIEW_IRREGULAR;
                    return Err(self.refuse_argument(fault, task, index, 0));
                }
            }
        }
        Ok(())
    }

    /// A record holds tasks with tensors only, and nothing that waits.
    #[inline]
    pub(super) fn check_not_recording(&mut self) -> Result<(), Fault> {
        if self.draft.is_none() {
            return Ok(());
        }
        Err(self.blame.leave(Blame::of(Fault::STREAM_RECORDING_OPEN)))
    }

    #[cold]
    pub(super) fn refuse_argument(
        &mut self,
        fault: Fault,
        task: &TensorTask<'_>,
        index: u32,
        found: u64,
    ) -> Fault {
        let blame = Blame::of(fault).func(task.func_id.0.into()).task(self.id_of(self.next));
        self.blame.leave(blame.argument(index).detail(found, 0))
    }

    /// The edges that the accesses of the newest task make. Each is noted before the next one is looked at: what it hides
    /// has its edge already, and a task has none to itself.
    #[inline]
    fn derive(&mut self, task: &TensorTask<'_>, number: u64) -> Result<(), Fault> {
        for (index, arg) in (0_u32..).zip(task.args) {
            let Some((view, kind)) = access_of(arg) else { continue };
            let region;
            let access = match Access::simple(view, kind) {
                Some(access) => access,
                None => {
                    region = Region::of(view);
                    Access::new(view.base().0, kind, &region)
                }
            };
            let looked = self.derive_one(&access, number);
            if let Err(fault) = looked {
                return Err(fault.unwrap_or_else(|| self.undecided(number, index)));
            }
        }
        Ok(())
    }

    /// `Err(None)`: it takes too long to decide what the access meets.
    #[inline]
    pub(super) fn derive_one(
        &mut self,
        access: &Access<'_>,
        number: u64,
    ) -> Result<(), Option<Fault>> {
        let map = self.map;
        map.derive(access, number, None, |producer| {
            self.derived_edge(producer, number).map_err(Some)
        })
    }

    /// Notes the accesses of the newest task.
    fn note(&mut self, task: &TensorTask<'_>, number: u64) {
        for (view, kind) in task.args.iter().filter_map(access_of) {
            let region = Region::of(view);
            let access = Access::new(view.base().0, kind, &region);
            if let Some(place) = self.map.place(&access) {
                self.map.note(&place, &access, (number, Hide::Nothing));
            }
        }
    }

    #[cold]
    pub(super) fn undecided(&mut self, number: u64, argument: u32) -> Fault {
        let blame = Blame::of(Fault::STREAM_VIEW_IRREGULAR).task(self.id_of(number));
        self.blame.leave(blame.argument(argument))
    }

    /// Waits until nothing is under way that conflicts with an access to one element; where it is, and its size.
    fn settle(
        &mut self,
        view: &TensorView<'_>,
        index: &[u32],
        kind: AccessKind,
    ) -> Result<(GmAddr, u64), Fault> {
        self.check_not_recording()?;
        if !self.is_alive(view.heap()) {
            let blame = Blame::of(Fault::STREAM_STALE_TENSOR).detail(view.heap().serial, 0);
            return Err(self.blame.leave(blame));
        }
        let Some(address) = view.element_address(index) else {
            let fault = view.defect().map_or(Fault::STREAM_VIEW_RANGE, view_fault);
            return Err(self.blame.leave(Blame::of(fault).detail(index.len() as u64, 0)));
        };
        let bytes = view.element().bytes();
        let low = address.0.wrapping_sub(view.base().0);
        let access = Access::run(view.base().0, kind, low, low + bytes);
        self.advance();
        while let Some(producer) = self.newest_conflict(&access)? {
            self.wait_for_task(producer)?;
        }
        Ok((address, bytes))
    }

    /// A task under way that conflicts with an access.
    fn newest_conflict(&mut self, access: &Access<'_>) -> Result<Option<u64>, Fault> {
        let is_under_way = |task: u64| !self.has_completed(task);
        let Some(place) = self.map.place(access) else { return Ok(None) };
        let look = (self.next, Hide::Nothing);
        let found = self.map.look(&place, access, look, None, |producer| {
            if is_under_way(producer) { Err(Some(producer)) } else { Ok(()) }
        });
        match found {
            Ok(()) => Ok(None),
            Err(Some(producer)) => Ok(Some(producer)),
            Err(None) => Err(Fault::STREAM_VIEW_IRREGULAR),
        }
    }

    /// Waits for one task.
    fn wait_for_task(&mut self, number: u64) -> Result<(), Fault> {
        let mut patience = Patience::new();
        while !self.has_completed(number) {
            let is_hopeless = self.is_hopeless(Until::Complete(number), &mut patience);
            if is_hopeless && !self.has_completed(number) {
                return Err(self.hopeless(Blame::of(Fault::STREAM_WAIT_FOREVER), number));
            }
            self.wait_a_turn(number)?;
        }
        Ok(())
    }
}
