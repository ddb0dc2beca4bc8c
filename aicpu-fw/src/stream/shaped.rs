//! Submission of shaped tasks: what a record says, checked.

use pto_abi::limits::MAX_BLOCKS;
use pto_abi::stream::{MAX_LANES, RingKind};
use pto_abi::sync::{Ordering, Sharing};
use pto_abi::task::SHAPED;
use pto_abi::trace::TraceKind;
use pto_abi::{CoreKind, Fault, TaskId};
use pto_graph::{DependencyMode, Predicate, StartMode, TaskSpec, TensorTask, TensorView};

use super::builder::Stream;
use super::map::{Access, AccessKind, Hide};
use super::region::Region;
use super::scopes::view_fault;
use super::shape_line::{Kernels, ShapeLine};
use crate::blame::Blame;
use crate::builder::{BuilderHost, DeviceMemory};
use crate::fanout::FanoutPolicy;
use crate::shapes::{List, ShapeMemory, has_predicate};

impl<S: Sharing, F: FanoutPolicy, M: DeviceMemory, H: BuilderHost> Stream<'_, S, F, M, H> {
    /// Adds a task that is more than one kernel on one core.
    #[inline(never)]
    pub(super) fn add_shaped_task(&mut self, task: &TensorTask<'_>) -> Result<TaskId, Fault> {
        if self.draft.is_some() {
            return self.record_task(task);
        }
        let line = self.shape_of(task)?;
        if let Some(predicate) = task.block_shape.when() {
            let at = u32::try_from(task.args.len()).unwrap_or(u32::MAX);
            self.look_at_element(task, predicate.element(), at)?;
            let (address, bytes) = (predicate.element().address(), line.element_bytes());
            if !self.memory.has_element(address, bytes) {
                return Err(self.refuse_argument(Fault::STREAM_PREDICATE, task, at, address.0));
            }
        }
        let number = self.next;
        let id = self.add_plain_task(task)?;
        if let Some(to) = self.state.task(id.slot) {
            to.kind.store(task.kind.get() | SHAPED, Ordering::Relaxed);
        }
        self.write_shape(id.slot, &line);
        if H::TRACES {
            self.trace_lanes(id.slot, &line);
        }
        if let Some(predicate) = task.block_shape.when() {
            self.read_predicate(task, predicate, number)?;
        }
        Ok(id)
    }

    /// The newest task reads the element of its predicate, as if it stood behind its arguments.
    fn read_predicate(
        &mut self,
        task: &TensorTask<'_>,
        predicate: &Predicate<'_>,
        number: u64,
    ) -> Result<(), Fault> {
        let mode = self.mode();
        if mode == DependencyMode::MANUAL {
            return Ok(());
        }
        if !self.has_room(RingKind::MAP, Access::MAX_ENTRIES) {
            self.wait_for_room(RingKind::MAP, Access::MAX_ENTRIES)?;
        }
        let first =
            self.record(number).map_or(0, |record| record.first_entry.load(Ordering::Relaxed));
        self.takes(RingKind::MAP, self.map.since_low(first) + Access::MAX_ENTRIES);
        let (view, region) = (predicate.element(), Region::of(predicate.element()));
        let access = Access::new(view.base().0, AccessKind::Read, &region);
        if mode == DependencyMode::DERIVED {
            let at = u32::try_from(task.args.len()).unwrap_or(u32::MAX);
            let derived = self.derive_one(&access, number);
            return derived.map_err(|fault| fault.unwrap_or_else(|| self.undecided(number, at)));
        }
        if let Some(place) = self.map.place(&access) {
            self.map.note(&place, &access, (number, Hide::Nothing));
        }
        Ok(())
    }

    /// What a task with a shape is: its kernels are registered, and the device has cores for its blocks.
    pub(super) fn shape_of(&mut self, task: &TensorTask<'_>) -> Result<ShapeLine, Fault> {
        let Some(shapes) = self.state.shapes else {
            return Err(self.blame.leave(Blame::of(Fault::RUNTIME_REGION_STREAM)));
        };
        let kernels = self.kernels_of(task)?;
        self.check_blocks(task, &kernels, &shapes)?;
        Ok(ShapeLine::of(&task.block_shape, &kernels))
    }

    /// Writes the record of the task in `slot`, which is not published.
    pub(super) fn write_shape(&self, slot: u32, line: &ShapeLine) {
        let shapes = self.state.shapes;
        if let Some(record) = shapes.and_then(|shapes| shapes.record(slot)) {
            line.write(record);
        }
    }

    /// The newest task has these kernels, if that is wanted.
    pub(super) fn trace_lanes(&mut self, slot: u32, line: &ShapeLine) {
        for (lane, func_id) in line.lanes() {
            self.trace(TraceKind::LANE, slot, func_id | lane << 16);
        }
    }

    /// The kernels of a task, each of which is registered and has cores.
    fn kernels_of(&mut self, task: &TensorTask<'_>) -> Result<Kernels, Fault> {
        let mut kernels = Kernels::NONE;
        let vectors = task.block_shape.vectors().iter().map(|func_id| (*func_id, CoreKind::AIV));
        for (func_id, kind) in [(task.func_id, task.kind)].into_iter().chain(vectors) {
            let spec = TaskSpec::new(func_id, kind, &[]);
            let code = self.accept(&spec, task.args.len())?;
            if !kernels.add(kind, func_id, code) {
                let found = 1 + task.block_shape.vectors().len() as u64;
                return Err(self.refuse_shape(Fault::STREAM_MIX, task, found, MAX_LANES as u64));
            }
        }
        Ok(kernels)
    }

    fn check_blocks(
        &mut self,
        task: &TensorTask<'_>,
        kernels: &Kernels,
        shapes: &ShapeMemory<'_>,
    ) -> Result<(), Fault> {
        let blocks = task.block_shape.blocks();
        if blocks == 0 || blocks > MAX_BLOCKS {
            let (found, bound) = (blocks.into(), MAX_BLOCKS.into());
            return Err(self.refuse_shape(Fault::STREAM_BLOCKS, task, found, bound));
        }
        let room = shapes.room.get(usize::from(kernels.lanes.0)).copied().unwrap_or(0);
        if room == 0 {
            let found = kernels.lanes.count().into();
            return Err(self.refuse_shape(Fault::STREAM_MIX, task, found, 0));
        }
        if task.block_shape.start() == StartMode::SYNC && blocks > room {
            let (found, bound) = (blocks.into(), room.into());
            return Err(self.refuse_shape(Fault::STREAM_SYNC_BLOCKS, task, found, bound));
        }
        Ok(())
    }

    /// The element of a predicate is there.
    pub(super) fn look_at_element(
        &mut self,
        task: &TensorTask<'_>,
        element: &TensorView<'_>,
        at: u32,
    ) -> Result<(), Fault> {
        if let Some(defect) = element.defect() {
            let detail = element.shape().len() as u64;
            return Err(self.refuse_argument(view_fault(defect), task, at, detail));
        }
        if !self.is_alive(element.heap()) {
            let scope = element.heap().serial;
            return Err(self.refuse_argument(Fault::STREAM_STALE_TENSOR, task, at, scope));
        }
        Ok(())
    }

    #[cold]
    fn refuse_shape(
        &mut self,
        fault: Fault,
        task: &TensorTask<'_>,
        found: u64,
        bound: u64,
    ) -> Fault {
        let blame = Blame::of(fault).func(task.func_id.0.into()).task(self.id_of(self.next));
        self.blame.leave(blame.detail(found, bound))
    }

    /// A shaped task is ready when it is published: it goes where the schedulers look.
    #[cold]
    pub(super) fn post_shaped(&self, slot: u32) {
        let Some(shapes) = self.state.shapes else { return };
        let Some(record) = shapes.record(slot) else { return };
        let list = if has_predicate(record) { Some(List::ARRIVALS) } else { List::of(record) };
        if let Some(list) = list {
            shapes.post(list, slot);
        }
    }
}
