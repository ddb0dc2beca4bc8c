//! Submission: a task with tensors, from its arguments to its edges; tensors on the heap, and single elements.

use pto_abi::stream::RingKind;
use pto_abi::sync::Ordering;
use pto_abi::{Fault, GmAddr, TaskId};
use pto_graph::{
    Arg, DependencyMode, ElementType, HeapTag, Predicate, TaskSpec, TensorTask, TensorView,
};

use super::super::accesses::{
    access_of, arg_count, argument_blame, check_outputs, view_blame, view_fault,
};
use super::super::map::{AccessKind, Hide, TensorAccess};
use super::super::region::Region;
use super::super::tasks::{TaskWords, Tasks};
use super::Stream;
use crate::builder::DeviceMemory;
use crate::config::Config;

/// Tensors of the heap begin at multiples of this: a line, so that no two share one.
const ALIGN: u64 = 64;

impl<C: Config> Stream<'_, C> {
    /// Adds one kernel on one core.
    #[inline]
    pub(super) fn add_plain_task(&mut self, task: &TensorTask<'_>) -> Result<TaskId, Fault> {
        let spec = TaskSpec::new(task.func_id, task.kind, &[]);
        let args = task.args.len();
        let kernel = self.tasks.accept(&spec, args)?;
        self.tasks.make_room(args)?;
        // At most: scalars take none.
        if !self.tasks.storage().has_room(RingKind::MAP, args as u64 * TensorAccess::MAX_ENTRIES) {
            let accesses = task.args.iter().filter_map(access_of).count() as u64;
            self.tasks.make_room_in(RingKind::MAP, accesses * TensorAccess::MAX_ENTRIES)?;
        }
        let accesses = self.write_args(task)?;
        self.tasks.storage_mut().takes(RingKind::MAP, accesses * TensorAccess::MAX_ENTRIES);
        let number = self.tasks.storage().window().next();
        let id = self.tasks.open_slot(&spec, kernel, TaskWords::Arguments(args))?;
        for &producer in task.after {
            self.tasks.edge_after(producer, number)?;
        }
        match self.tasks.scopes().mode() {
            DependencyMode::DERIVED => self.derive(task, number)?,
            DependencyMode::EXPLICIT => self.note(task, number),
            _ => {}
        }
        Ok(id)
    }

    /// Adds a task with a block shape.
    #[inline(never)]
    pub(super) fn add_shaped_task(&mut self, task: &TensorTask<'_>) -> Result<TaskId, Fault> {
        let shape = self.tasks.block_shape_of(task)?;
        if let Some(predicate) = task.block_shape.when() {
            self.check_element(task, predicate.element(), true)?;
        }
        let number = self.tasks.storage().window().next();
        let id = self.add_plain_task(task)?;
        self.tasks.give_block_shape(id.slot, task.kind, &shape);
        if let Some(predicate) = task.block_shape.when() {
            self.read_predicate(task, predicate, number)?;
        }
        Ok(id)
    }

    /// The element of a predicate can be used; and, where it `is_placed`, the schedulers can read it. It is not read here: a
    /// kernel may be writing it.
    pub(super) fn check_element(
        &mut self,
        task: &TensorTask<'_>,
        element: &TensorView<'_>,
        is_placed: bool,
    ) -> Result<(), Fault> {
        let (at, address) = (arg_count(task), element.address());
        let blame = if !self.is_usable(element) {
            view_blame(element, at)
        } else if is_placed && !self.tasks.memory().has_element(address, element.element().bytes())
        {
            argument_blame(Fault::STREAM_PREDICATE, at, address.0)
        } else {
            return Ok(());
        };
        Err(self.tasks.refuse_next(task, blame))
    }

    /// The newest task reads the element of its predicate, as if it were its last argument.
    pub(super) fn read_predicate(
        &mut self,
        task: &TensorTask<'_>,
        predicate: &Predicate<'_>,
        number: u64,
    ) -> Result<(), Fault> {
        let mode = self.tasks.scopes().mode();
        if mode == DependencyMode::MANUAL {
            return Ok(());
        }
        self.tasks.make_room_in(RingKind::MAP, TensorAccess::MAX_ENTRIES)?;
        self.tasks.storage_mut().takes_more_entries(number, TensorAccess::MAX_ENTRIES);
        let (view, region) = (predicate.element(), Region::of(predicate.element()));
        let access = TensorAccess::new(view.base().0, AccessKind::Read, &region);
        if mode == DependencyMode::DERIVED {
            return self.derive_one(&access, number, arg_count(task));
        }
        let map = self.tasks.storage().map();
        if let Some(position) = map.locate(&access) {
            map.note(&position, &access, (number, Hide::Nothing));
        }
        Ok(())
    }

    /// Checks the arguments of a task and writes its words to where they are given out next; how many tensors it reads or
    /// writes.
    #[inline]
    fn write_args(&mut self, task: &TensorTask<'_>) -> Result<u64, Fault> {
        let mut words = self.tasks.storage().next_words(task.args.len()).iter();
        let (mut index, mut accesses, mut writes) = (0, 0, 0);
        for arg in task.args {
            let word = match arg {
                Arg::Scalar(scalar) => *scalar,
                Arg::BoundScalar(_) => {
                    return Err(self.tasks.refuse_bound_scalar(task, index));
                }
                Arg::In(view) | Arg::Out(view) | Arg::InOut(view) | Arg::NoDep(view) => {
                    if !self.is_usable(view) {
                        return Err(self.tasks.refuse_view(task, view, index));
                    }
                    if let Some((_, kind)) = access_of(arg) {
                        accesses += 1;
                        if kind == AccessKind::Write {
                            if writes > 0 {
                                self.tasks.check_output(task, view, index)?;
                            }
                            writes += 1;
                        }
                    }
                    view.address().0
                }
            };
            if let Some(target) = words.next() {
                target.store(word, Ordering::Relaxed);
            }
            index += 1;
        }
        Ok(accesses)
    }

    /// The edges that the accesses of the newest task make. Each is noted before the next one is looked at: what it hides
    /// has its edge already, and a task has none to itself. A function of its own: tasks whose edges the program names pay
    /// nothing for it.
    #[inline(never)]
    fn derive(&mut self, task: &TensorTask<'_>, number: u64) -> Result<(), Fault> {
        for (index, arg) in (0_u32..).zip(task.args) {
            let Some((view, kind)) = access_of(arg) else { continue };
            let region;
            let access = match TensorAccess::simple(view, kind) {
                Some(access) => access,
                None => {
                    region = Region::of(view);
                    TensorAccess::new(view.base().0, kind, &region)
                }
            };
            self.derive_one(&access, number, index)?;
        }
        Ok(())
    }

    #[inline(always)]
    pub(super) fn derive_one(
        &mut self,
        access: &TensorAccess<'_>,
        number: u64,
        index: u32,
    ) -> Result<(), Fault> {
        let (map, tasks) = (self.tasks.storage().map(), &mut self.tasks);
        let derived = map.derive(access, number, None, |producer| {
            tasks.derived_edge(producer, number).map_err(Some)
        });
        match derived {
            Ok(()) => Ok(()),
            // `None`: it takes too long to decide what the access meets.
            Err(fault) => Err(fault.unwrap_or_else(|| self.tasks.undecided(number, index))),
        }
    }

    /// Notes the accesses of the newest task.
    fn note(&self, task: &TensorTask<'_>, number: u64) {
        let map = self.tasks.storage().map();
        for (view, kind) in task.args.iter().filter_map(access_of) {
            let region = Region::of(view);
            let access = TensorAccess::new(view.base().0, kind, &region);
            if let Some(position) = map.locate(&access) {
                map.note(&position, &access, (number, Hide::Nothing));
            }
        }
    }

    /// Whether a view has no defect, and the scope that its tensor belongs to is open.
    #[inline]
    pub(super) fn is_usable(&self, view: &TensorView<'_>) -> bool {
        view.defect().is_none() && self.is_alive(view.heap())
    }

    /// Whether the scope that a tensor belongs to is open.
    #[inline]
    pub(super) fn is_alive(&self, heap: HeapTag) -> bool {
        self.tasks.scopes().holds(heap)
            || self.draft.as_ref().is_some_and(|draft| draft.has_bound(heap))
    }

    /// A tensor on the heap of the innermost scope, or of the recording that is being made.
    pub(super) fn allocate(
        &mut self,
        element: ElementType,
        shape: &[u32],
    ) -> Result<TensorView<'static>, Fault> {
        let measured = TensorView::dense(GmAddr::NULL, element, shape);
        if let Some(defect) = measured.defect() {
            let dimensions = shape.len() as u64;
            return Err(self.tasks.refuse_task(view_fault(defect), TaskId::NONE, dimensions, 0));
        }
        let bytes = measured.tensor_bytes().next_multiple_of(ALIGN);
        let base = match &mut self.draft {
            Some(draft) => draft.take_heap(bytes),
            None => self.tasks.take_heap(bytes)?,
        };
        self.tasks.storage().marks().tensor();
        let scope = self.tasks.scopes().innermost();
        let tag = HeapTag { depth: scope.depth + 1, serial: scope.serial };
        Ok(TensorView::of_heap(base, element, shape, tag))
    }

    /// Waits until nothing is under way that conflicts with an access to one element; where it is, and its size.
    pub(super) fn settle(
        &mut self,
        view: &TensorView<'_>,
        index: &[u32],
        kind: AccessKind,
    ) -> Result<(GmAddr, u64), Fault> {
        self.check_not_recording()?;
        if !self.is_alive(view.heap()) {
            let (fault, scope) = (Fault::STREAM_STALE_TENSOR, view.heap().serial);
            return Err(self.tasks.refuse_task(fault, TaskId::NONE, scope, 0));
        }
        let Some(address) = view.element_address(index) else {
            let fault = view.defect().map_or(Fault::STREAM_VIEW_RANGE, view_fault);
            let dimensions = index.len() as u64;
            return Err(self.tasks.refuse_task(fault, TaskId::NONE, dimensions, 0));
        };
        let bytes = view.element().bytes();
        let low = address.0.wrapping_sub(view.base().0);
        let access = TensorAccess::run(view.base().0, kind, low, low + bytes);
        self.tasks.storage_mut().advance();
        while let Some(producer) = self.newest_conflict(&access)? {
            self.tasks.wait_for_task(producer)?;
        }
        Ok((address, bytes))
    }

    /// A task under way that conflicts with an access.
    fn newest_conflict(&self, access: &TensorAccess<'_>) -> Result<Option<u64>, Fault> {
        let (map, window) = (self.tasks.storage().map(), self.tasks.storage().window());
        let Some(position) = map.locate(access) else { return Ok(None) };
        let look = (window.next(), Hide::Nothing);
        let found = map.look(&position, access, look, None, |producer| {
            if window.has_completed(producer) { Ok(()) } else { Err(Some(producer)) }
        });
        match found {
            Ok(()) => Ok(None),
            Err(Some(producer)) => Ok(Some(producer)),
            Err(None) => Err(Fault::STREAM_VIEW_IRREGULAR),
        }
    }
}

impl<C: Config> Tasks<'_, C> {
    /// Why a task cannot have this view as an argument.
    #[cold]
    #[inline(never)]
    pub(super) fn refuse_view(
        &mut self,
        task: &TensorTask<'_>,
        view: &TensorView<'_>,
        index: u32,
    ) -> Fault {
        self.refuse_next(task, view_blame(view, index))
    }

    #[cold]
    #[inline(never)]
    fn refuse_bound_scalar(&mut self, task: &TensorTask<'_>, index: u32) -> Fault {
        self.refuse_next(task, argument_blame(Fault::STREAM_NOT_RECORDING, index, 0))
    }

    /// What argument `index` writes, no argument before it does. A function of its own: most tasks have one output.
    #[inline(never)]
    fn check_output(
        &mut self,
        task: &TensorTask<'_>,
        view: &TensorView<'_>,
        index: u32,
    ) -> Result<(), Fault> {
        let checked = check_outputs(view, task.args, index);
        checked.map_err(|blame| self.refuse_next(task, blame))
    }
}
