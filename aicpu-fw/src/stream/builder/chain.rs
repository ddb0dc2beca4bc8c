//! Chains of a streaming run: tasks whose words are the chain's, and whose edges the program states, or the tensors of its links
//! say.
//!
//! A chain is one task to the tensor map: it does what its kernels do, each link with as few accesses as its variations allow, and links that go through a tensor side by side with one ([`Uses`]).
//! What a kernel takes from one before it in the chain needs no edge. Invariant: the words of a chain stand in one span of the
//! ring of argument words, which runs on behind the ring's end for as many as a task has arguments at most.

use pto_abi::chain::CHAIN_KERNEL;
use pto_abi::limits::MAX_ARGS;
use pto_abi::stream::RingKind;
use pto_abi::sync::Sharing;
use pto_abi::{Fault, TaskId};
use pto_graph::{Chain, DependencyMode, Predicate, TaskSpec, TensorTask};

use super::super::accesses::{access_of, view_blame};
use super::super::map::{Access, Hide};
use super::super::region::Region;
use super::super::uses::Uses;
use super::Stream;
use crate::blame::Blame;
use crate::builder::{BuilderHost, DeviceMemory, chain};
use crate::fanout::FanoutPolicy;

impl<S: Sharing, F: FanoutPolicy, M: DeviceMemory, H: BuilderHost> Stream<'_, S, F, M, H> {
    /// Adds a chain, of one kernel too.
    #[inline(never)]
    pub(super) fn add_chain_now(&mut self, chain: &Chain<'_>) -> Result<TaskId, Fault> {
        self.check_not_recording()?;
        let spec = self.check_chain(chain)?;
        let mut uses = Uses::new();
        self.check_tensors(chain, &mut uses)?;
        uses.join();
        let entries = uses.count() * Access::MAX_ENTRIES;
        let count = chain.words();
        self.tasks.make_room(count)?;
        self.tasks.make_room_in(RingKind::MAP, entries)?;
        let words = self.tasks.storage().next_words(count);
        chain::write(chain, words, |task, args| self.tasks.accept(task, args))?;
        self.tasks.storage_mut().takes(RingKind::MAP, entries);
        let number = self.tasks.storage().window().next();
        let id = self.tasks.open_slot(&spec, CHAIN_KERNEL, count)?;
        self.tasks.chain_newest(id.slot, chain.kernels());
        match uses.all() {
            Some(mut all) => {
                all.try_for_each(|(index, access)| self.use_access(&access, (number, index)))?
            }
            None => self.use_tensors(chain, number)?,
        }
        Ok(id)
    }

    /// Every part of a tensor that a chain names can be used; what it does to them goes to `uses`.
    fn check_tensors(&mut self, chain: &Chain<'_>, uses: &mut Uses) -> Result<(), Fault> {
        let is_manual = self.tasks.scopes().mode() == DependencyMode::MANUAL;
        for link in chain.links() {
            for (index, arg) in (0_u32..).zip(link.args()) {
                if arg.tensor().is_none() {
                    continue;
                }
                for view in link.views(index as usize) {
                    if view.defect().is_some() || !self.is_alive(view.heap()) {
                        let task = TensorTask::new(link.task().func_id, link.task().kind, &[]);
                        return Err(self.tasks.refuse_next(&task, view_blame(&view, index)));
                    }
                    if let Some((_, kind)) = access_of(arg).filter(|_| !is_manual) {
                        uses.add(index, (&view, kind));
                    }
                }
            }
        }
        Ok(())
    }

    /// Derives the edges of the newest task, which is a chain, or notes what it does: from the tensors of its links.
    #[cold]
    fn use_tensors(&mut self, chain: &Chain<'_>, number: u64) -> Result<(), Fault> {
        for (index, arg, view) in chain.uses() {
            let Some((_, kind)) = access_of(arg) else { continue };
            let region = Region::of(&view);
            let access = Access::new(view.base().0, kind, &region);
            self.use_access(&access, (number, index))?;
        }
        Ok(())
    }

    fn use_access(
        &mut self,
        access: &Access<'_>,
        (number, index): (u64, u32),
    ) -> Result<(), Fault> {
        if self.tasks.scopes().mode() == DependencyMode::DERIVED {
            return self.derive_one(access, number, index);
        }
        let map = self.tasks.storage().map();
        if let Some(place) = map.place(access) {
            map.note(&place, access, (number, Hide::Nothing));
        }
        Ok(())
    }

    /// Adds a chain that runs only if `predicate` is true when it becomes ready.
    #[inline(never)]
    pub(super) fn add_chain_with(
        &mut self,
        chain: &Chain<'_>,
        predicate: &Predicate<'_>,
    ) -> Result<TaskId, Fault> {
        self.check_not_recording()?;
        let spec = self.check_chain(chain)?;
        let task = TensorTask::new(spec.func_id, spec.kind, &[]).when(predicate);
        let shape = self.tasks.block_shape_of(&task)?;
        self.check_element(&task, predicate.element(), true)?;
        let number = self.tasks.storage().window().next();
        let id = self.add_chain_now(chain)?;
        self.tasks.give_block_shape(id.slot, spec.kind, &shape);
        self.read_predicate(&task, predicate, number)?;
        Ok(id)
    }

    /// The first kernel of a chain that can be run and has room.
    fn check_chain<'c>(&mut self, chain: &Chain<'c>) -> Result<TaskSpec<'c>, Fault> {
        let (words, next) = (chain.words(), self.tasks.storage().window().next_id());
        let first = chain.check().and(chain.links().first().ok_or(Fault::BUILD_CHAIN_EMPTY));
        match first {
            Ok(first) if words <= MAX_ARGS => Ok(first.task()),
            Ok(_) => {
                let blame = Blame::of(Fault::BUILD_CHAIN_WORDS).task(next);
                Err(self.tasks.refuse(blame.detail(words as u64, MAX_ARGS as u64)))
            }
            Err(fault) => {
                let blame = Blame::of(fault).task(next).detail(chain.kernels(), 0);
                Err(self.tasks.refuse(blame))
            }
        }
    }
}
