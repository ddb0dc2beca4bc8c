//! Submission: a task with tensors, from its arguments to its edges.

use pto_abi::graph::{EdgeOutcome, GraphBuilder, TaskSpec};
use pto_abi::kinds::TaskState;
use pto_abi::stream::{
    Arg, DependencyMode, ElementType, RingKind, ScopeId, StreamBuilder, TensorTask, TensorView,
};
use pto_abi::sync::Sharing;
use pto_abi::{Fault, GmAddr, TaskId};

use super::builder::Stream;
use super::map::{Access, AccessKind, Hide};
use super::overlap::overlap;
use super::region::Region;
use super::room::Outlook;
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
        let kernel = self.accept(&spec, spec.args.len())?;
        self.make_room(spec.args.len())?;
        self.open_slot(&spec, kernel, spec.args.iter().copied())
    }

    #[inline]
    fn add_edge(&mut self, producer: TaskId, consumer: TaskId) -> Result<EdgeOutcome, Fault> {
        self.explicit_edge(producer, consumer)
    }

    #[inline]
    fn publish(&mut self, id: TaskId) -> Result<(), Fault> {
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
        if !task.shape.is_plain() {
            return self.add_shaped_task(task);
        }
        let spec = TaskSpec::new(task.func_id, task.kind, &[]);
        let kernel = self.accept(&spec, task.args.len())?;
        let entries = self.look_at(task)?;
        let mode = self.mode();
        self.make_room(task.args.len())?;
        if !self.has_room(RingKind::MAP, entries) {
            self.wait_for_room(RingKind::MAP, entries)?;
        }
        let number = self.next;
        let id = self.open_slot(&spec, kernel, task.args.iter().map(word))?;
        for &producer in task.after {
            self.explicit_edge(producer, id)?;
        }
        if mode == DependencyMode::DERIVED {
            for (index, arg) in (0_u32..).zip(task.args) {
                if let Some(access) = access_of(arg) {
                    self.derive(&access, index, number)?;
                }
            }
        }
        if mode != DependencyMode::MANUAL {
            for access in task.args.iter().filter_map(access_of) {
                self.map.insert(&access, number);
            }
        }
        Ok(id)
    }

    fn open_scope(&mut self, mode: DependencyMode) -> Result<ScopeId, Fault> {
        self.open(mode)
    }

    fn close_scope(&mut self, scope: ScopeId) -> Result<(), Fault> {
        self.close(scope)
    }

    fn alloc(&mut self, element: ElementType, shape: &[u32]) -> Result<TensorView<'static>, Fault> {
        self.allocate(element, shape)
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
pub(super) fn access_of(arg: &Arg<'_>) -> Option<Access> {
    let (view, kind) = match arg {
        Arg::In(view) => (view, AccessKind::Read),
        Arg::Out(view) | Arg::InOut(view) => (view, AccessKind::Write),
        Arg::NoDep(_) | Arg::Scalar(_) => return None,
    };
    Some(Access { base: view.base().0, region: Region::of(view), kind })
}

/// The word that a kernel gets for an argument.
#[inline]
pub(super) fn word(arg: &Arg<'_>) -> u64 {
    match arg {
        Arg::Scalar(word) => *word,
        Arg::In(view) | Arg::Out(view) | Arg::InOut(view) | Arg::NoDep(view) => view.address().0,
    }
}

impl<S: Sharing, F: FanoutPolicy, M: DeviceMemory, H: BuilderHost> Stream<'_, S, F, M, H> {
    /// Checks the tensors of a task; how many entries of the map their accesses take.
    #[inline]
    pub(super) fn look_at(&mut self, task: &TensorTask<'_>) -> Result<u64, Fault> {
        let mut entries = 0;
        for (index, arg) in (0_u32..).zip(task.args) {
            let Some(view) = arg.tensor() else { continue };
            if let Some(defect) = view.defect() {
                let detail = view.shape().len() as u64;
                return Err(self.refuse_argument(view_fault(defect), task, index, detail));
            }
            if !self.is_alive(view.heap()) {
                let scope = view.heap().serial;
                return Err(self.refuse_argument(Fault::STREAM_STALE_TENSOR, task, index, scope));
            }
            let Some(access) = access_of(arg) else { continue };
            if access.kind == AccessKind::Write {
                self.check_outputs(&access, task, index)?;
            }
            entries += access.entries();
        }
        Ok(entries)
    }

    /// No two arguments write the same element.
    #[inline]
    fn check_outputs(
        &mut self,
        access: &Access,
        task: &TensorTask<'_>,
        index: u32,
    ) -> Result<(), Fault> {
        for (at, arg) in (0..index).zip(task.args) {
            let (Arg::Out(view) | Arg::InOut(view)) = arg else { continue };
            if view.base().0 != access.base {
                continue;
            }
            match overlap(&Region::of(view), &access.region) {
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

    /// The edges that an access of the newest task makes.
    #[inline]
    pub(super) fn derive(
        &mut self,
        access: &Access,
        argument: u32,
        number: u64,
    ) -> Result<(), Fault> {
        let map = self.map;
        let result = map.conflicts(access, Hide::Covered, None, |producer| {
            // The stamp says that there is an edge already, from another argument or another entry.
            let record = self.record(producer);
            let stamp = record.map_or(0, |r| r.edge_stamp.load(pto_abi::sync::Ordering::Relaxed));
            if producer >= self.watermark && stamp != number + 1 {
                let outcome = self.edge(producer, number).map_err(Some)?;
                let slots = (self.slot_of(producer), self.slot_of(number));
                self.host.derived(slots.0, slots.1, outcome);
            }
            Ok(())
        });
        result.map_err(|fault| {
            fault.unwrap_or_else(|| {
                let blame = Blame::of(Fault::STREAM_VIEW_IRREGULAR).task(self.id_of(number));
                self.blame.leave(blame.argument(argument))
            })
        })
    }

    /// Waits until nothing is under way that conflicts with an access to one element; where it is, and its size.
    fn settle(
        &mut self,
        view: &TensorView<'_>,
        index: &[u32],
        kind: AccessKind,
    ) -> Result<(GmAddr, u64), Fault> {
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
        let region = Region::from_parts(low, low + bytes, bytes, &[]);
        let access = Access { base: view.base().0, region, kind };
        self.advance();
        while let Some(producer) = self.newest_conflict(&access)? {
            self.wait_for_task(producer)?;
        }
        Ok((address, bytes))
    }

    /// A task under way that conflicts with an access.
    fn newest_conflict(&mut self, access: &Access) -> Result<Option<u64>, Fault> {
        let is_under_way = |task: u64| task >= self.watermark && !self.has_completed(task);
        let found = self.map.conflicts(access, Hide::Nothing, None, |producer| {
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
        while number >= self.watermark && !self.has_completed(number) {
            let is_unpublished = self.state_of(number) == TaskState::ADDED.get();
            if is_unpublished || self.outlook() == Outlook::Stuck {
                let blame = Blame::of(Fault::STREAM_WAIT_FOREVER).task(self.id_of(number));
                return Err(self.blame.leave(blame));
            }
            self.wait_a_turn()?;
        }
        Ok(())
    }

    fn has_completed(&self, number: u64) -> bool {
        self.state_of(number) == TaskState::COMPLETED.get()
    }
}
