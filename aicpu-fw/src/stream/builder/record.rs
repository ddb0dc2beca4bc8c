//! Recordings: begins one, writes tasks into it, ends it, and builds it again.

use pto_abi::stream::{RingKind, slots_for_recordings};
use pto_abi::{Fault, TaskId};
use pto_graph::{Bindings, DependencyMode, Recording, TaskSpec, TensorTask, TensorView};

use super::super::accesses::{access_of, arg_count, argument_blame, check_outputs, view_blame};
use super::super::map::{AccessKind, TensorAccess};
use super::super::recording::addresses::base_of;
use super::super::recording::bindings::Bound;
use super::super::recording::buffer::LITERAL;
use super::super::recording::{Draft, Drafted};
use super::Stream;
use crate::blame::Blame;
use crate::builder::DeviceMemory;
use crate::config::Config;

impl<C: Config> Stream<'_, C> {
    /// Begins a recording with bindings of these shapes; its number.
    pub(super) fn begin(&mut self, shapes: &[TensorView<'_>]) -> Result<u32, Fault> {
        self.check_not_recording()?;
        Draft::check_shapes(shapes).map_err(|blame| self.tasks.refuse(blame))?;
        self.tasks.storage_mut().advance();
        let scope = self.tasks.open_scope(DependencyMode::DERIVED)?;
        let recordings = self.tasks.storage_mut().recordings_mut();
        let draft = Draft::begin(recordings, shapes, scope);
        Ok(self.draft.insert(draft).serial())
    }

    /// Ends the recording that is being made, and keeps it.
    pub(super) fn end(&mut self) -> Result<Recording, Fault> {
        let Some(draft) = self.draft.take() else {
            return Err(self.tasks.refuse(Blame::of(Fault::STREAM_NOT_RECORDING)));
        };
        self.tasks.close_scope(draft.scope())?;
        let ended = draft.end(self.tasks.storage_mut().recordings_mut());
        let (at, tasks, used) = ended.map_err(|blame| self.tasks.refuse(blame))?;
        let slots = slots_for_recordings(used);
        self.tasks.storage_mut().takes(RingKind::WINDOW, slots.max(tasks.into()));
        Ok(Recording { run: self.tasks.storage().window().run(), at, tasks })
    }

    /// Writes a task down.
    #[cold]
    #[inline(never)]
    pub(super) fn record(&mut self, task: &TensorTask<'_>) -> Result<TaskId, Fault> {
        let spec = TaskSpec::new(task.func_id, task.kind, &[]);
        let kernel = self.tasks.accept(&spec, task.args.len())?;
        let block_shape = match task.block_shape.is_plain() {
            true => None,
            false => Some(self.tasks.block_shape_of(task)?),
        };
        let entries = self.check_args(task)? * TensorAccess::MAX_ENTRIES;
        let storage = self.tasks.storage();
        if entries > storage.map().capacity() {
            return Err(self.tasks.too_large(RingKind::MAP, entries));
        }
        let (mode, window, map) = (self.tasks.scopes().mode(), storage.window(), storage.map());
        let Some(draft) = &mut self.draft else { return Err(Fault::STREAM_NOT_RECORDING) };
        let added = draft.add(&Drafted { task, kernel, block_shape, mode, window, map });
        added.map_err(|blame| self.tasks.refuse(blame))
    }

    /// Checks the tensors of a task; how many of them it reads or writes.
    fn check_args(&mut self, task: &TensorTask<'_>) -> Result<u64, Fault> {
        let (mut accesses, mut writes) = (0, 0);
        for (index, arg) in (0_u32..).zip(task.args) {
            let Some(view) = arg.tensor() else { continue };
            if !self.is_usable(view) {
                return Err(self.tasks.refuse_next(task, view_blame(view, index)));
            }
            self.check_own(view, task, index)?;
            let Some((_, kind)) = access_of(arg) else { continue };
            accesses += 1;
            if kind == AccessKind::Write {
                if writes > 0 {
                    check_outputs(view, task.args, index)
                        .map_err(|blame| self.tasks.refuse_next(task, blame))?;
                }
                writes += 1;
            }
        }
        if let Some(predicate) = task.block_shape.when() {
            let element = predicate.element();
            self.check_element(task, element, false)?;
            self.check_own(element, task, arg_count(task))?;
            // A bound element is looked at when it is bound.
            self.check_element(task, element, base_of(element) == LITERAL)?;
            accesses += 1;
        }
        Ok(accesses)
    }

    /// A tensor of a heap belongs to the recording.
    fn check_own(
        &mut self,
        view: &TensorView<'_>,
        task: &TensorTask<'_>,
        index: u32,
    ) -> Result<(), Fault> {
        let is_own = self.draft.as_ref().is_some_and(|draft| draft.holds(view.heap()));
        if view.heap().depth > 0 && !is_own {
            let blame = argument_blame(Fault::STREAM_REPLAY_MISFIT, index, 0);
            return Err(self.tasks.refuse_next(task, blame));
        }
        Ok(())
    }

    /// Builds a recording again, with what is bound now.
    pub(super) fn play(
        &mut self,
        recording: &Recording,
        bindings: &Bindings<'_>,
    ) -> Result<(), Fault> {
        self.check_not_recording()?;
        let (tasks, start) = (&mut self.tasks, recording.at as usize);
        let is_of_run = recording.run == tasks.storage().window().run();
        let recordings = tasks.storage().recordings();
        let Some(totals) = recordings.totals(start).filter(|_| is_of_run) else {
            let blame = Blame::of(Fault::STREAM_RECORDING_UNKNOWN);
            let front = recordings.front() as u64;
            return Err(tasks.refuse(blame.detail(recording.at.into(), front)));
        };
        let bound = Bound { buffer: recordings.buffer(), start, totals: &totals, bindings };
        let checked = bound.check_counts().and_then(|()| {
            bound.check_tensors(|heap| tasks.scopes().holds(heap))?;
            bound.check_predicates(|address, bytes| tasks.memory().has_element(address, bytes))
        });
        checked.map_err(|blame| tasks.refuse(blame))?;
        if totals.tasks == 0 {
            return Ok(());
        }
        tasks.replay(bound)
    }
}
