//! Chains of a streaming run: tasks whose words are the chain's, and whose edges the program states, or the tensors of its links
//! say.
//!
//! A chain is one task to the tensor map: it does what its kernels do, each link with as few accesses as its variations allow, and links that go through adjacent parts of a tensor with one ([`Uses`]).
//! What a kernel takes from one before it in the chain needs no edge. Invariant: the words of a chain are one span of the
//! ring of argument words, which runs on past the ring's end by the most arguments of a task.

use pto_abi::chain::CHAIN_KERNEL;
use pto_abi::limits::MAX_ARGS;
use pto_abi::stream::RingKind;
use pto_abi::{Fault, TaskId};
use pto_graph::{Chain, ChainPlan, DependencyMode, Link, Predicate, TaskSpec, TensorTask};

use super::super::accesses::access_of;
use super::super::map::{AccessKind, Hide, TensorAccess};
use super::super::region::Region;
use super::super::tasks::TaskWords;
use super::super::uses::Uses;
use super::Stream;
use crate::config::Config;

impl<C: Config> Stream<'_, C> {
    /// Adds a chain, of one kernel too.
    #[inline(always)]
    pub(super) fn add_planned_chain(
        &mut self,
        chain: &Chain<'_>,
        plan: &ChainPlan<'_>,
    ) -> Result<TaskId, Fault> {
        if plan.on_tensors > 0 {
            return self.add_chain_on_tensors(chain, plan);
        }
        self.write_chain(chain, plan, 0)
    }

    /// Adds a chain whose tensors use this many entries of the map at most, and says nothing of them to the map.
    #[inline(always)]
    fn write_chain(
        &mut self,
        chain: &Chain<'_>,
        plan: &ChainPlan<'_>,
        entries: u64,
    ) -> Result<TaskId, Fault> {
        self.tasks.make_room(plan.words)?;
        if entries > 0 {
            self.tasks.make_room_in(RingKind::MAP, entries)?;
        }
        let words = self.tasks.storage().next_words(plan.words);
        chain.write(words, |task, args| self.tasks.accept(task, args))?;
        if entries > 0 {
            self.tasks.storage_mut().takes(RingKind::MAP, entries);
        }
        let words = TaskWords::Chain { count: plan.words, kernels: plan.kernels };
        self.tasks.open_slot(&plan.first.task(), CHAIN_KERNEL, words)
    }

    /// As [`write_chain`](Self::write_chain), with what its tensors say. A function of its own, because what it keeps of them is large.
    #[inline(never)]
    fn add_chain_on_tensors(
        &mut self,
        chain: &Chain<'_>,
        plan: &ChainPlan<'_>,
    ) -> Result<TaskId, Fault> {
        let mut uses = Uses::new();
        self.check_tensors(chain, &mut uses)?;
        if chain.links().len() > 1 {
            uses.join();
        }
        let number = self.tasks.storage().window().next();
        let id = self.write_chain(chain, plan, uses.count() * TensorAccess::MAX_ENTRIES)?;
        if uses.is_whole() {
            uses.each(|index, access| self.use_access(access, (number, index)))?;
            return Ok(id);
        }
        for (index, arg, view) in chain.uses() {
            let Some((_, kind)) = access_of(arg) else { continue };
            let region = Region::of(&view);
            self.use_access(&TensorAccess::new(view.base().0, kind, &region), (number, index))?;
        }
        Ok(id)
    }

    /// Every part of a tensor that a chain names can be used; what it does to them goes to `uses`.
    fn check_tensors(&mut self, chain: &Chain<'_>, uses: &mut Uses) -> Result<(), Fault> {
        let is_manual = self.tasks.scopes().mode() == DependencyMode::MANUAL;
        for link in chain.links() {
            for (index, arg) in (0_u32..).zip(link.args()) {
                let Some(view) = arg.tensor() else { continue };
                let kind = access_of(arg).map(|(_, kind)| kind).filter(|_| !is_manual);
                let step = link.step_of(index as usize).filter(|_| self.is_usable(view));
                let whole = step.and_then(|step| {
                    TensorAccess::repeated(
                        view,
                        kind.unwrap_or(AccessKind::Read),
                        (step, link.count()),
                    )
                });
                match whole {
                    Some(access) if kind.is_some() => uses.add(index, access),
                    Some(_) => {}
                    None => self.check_views(link, (index, kind), uses)?,
                }
            }
        }
        Ok(())
    }

    /// As [`check_tensors`](Self::check_tensors), of an argument that has several strides, or several parts, or cannot be used.
    #[cold]
    fn check_views(
        &mut self,
        link: &Link<'_>,
        (index, kind): (u32, Option<AccessKind>),
        uses: &mut Uses,
    ) -> Result<(), Fault> {
        link.each_view(index as usize, |view| {
            if !self.is_usable(view) {
                let task = TensorTask::new(link.task().func_id, link.task().kind, &[]);
                return Err(self.tasks.refuse_view(&task, view, index));
            }
            if let Some(kind) = kind {
                uses.add_view(index, (view, kind));
            }
            Ok(())
        })
    }

    /// Derives the edges of the newest task, which is a chain, from an access, or notes it.
    fn use_access(
        &mut self,
        access: &TensorAccess<'_>,
        (number, index): (u64, u32),
    ) -> Result<(), Fault> {
        if self.tasks.scopes().mode() == DependencyMode::DERIVED {
            return self.derive_one(access, number, index);
        }
        let map = self.tasks.storage().map();
        if let Some(position) = map.locate(access) {
            map.note(&position, access, (number, Hide::Nothing));
        }
        Ok(())
    }

    /// Adds a chain by `add` that begins with this kernel and runs only if the predicate is true when it becomes ready.
    #[inline(always)]
    pub(super) fn add_with(
        &mut self,
        (first, predicate): (TaskSpec<'static>, &Predicate<'_>),
        add: impl FnOnce(&mut Self) -> Result<TaskId, Fault>,
    ) -> Result<TaskId, Fault> {
        let task = TensorTask::new(first.func_id, first.kind, &[]).when(predicate);
        let shape = self.tasks.block_shape_of(&task)?;
        self.check_element(&task, predicate.element(), true)?;
        let number = self.tasks.storage().window().next();
        let id = add(self)?;
        self.tasks.give_block_shape(id.slot, task.kind, &shape);
        self.read_predicate(&task, predicate, number)?;
        Ok(id)
    }

    /// What a chain is that can be run and has room.
    pub(super) fn check_chain<'c>(&mut self, chain: &Chain<'c>) -> Result<ChainPlan<'c>, Fault> {
        let (fault, found, bound) = match chain.plan() {
            Ok(plan) if plan.words <= MAX_ARGS => return Ok(plan),
            Ok(plan) => (Fault::BUILD_CHAIN_WORDS, plan.words as u64, MAX_ARGS as u64),
            Err(fault) => (fault, chain.kernels(), 0),
        };
        let next = self.tasks.storage().window().next_id();
        Err(self.tasks.refuse_task(fault, next, found, bound))
    }
}
