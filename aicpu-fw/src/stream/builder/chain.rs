//! Chains of a streaming run: tasks whose words are the chain's, and whose edges the program states.
//!
//! Invariant: the words of a chain stand in one span of the ring of argument words, which runs on behind the ring's end for as
//! many as a task has arguments at most.

use pto_abi::chain::CHAIN_KERNEL;
use pto_abi::limits::MAX_ARGS;
use pto_abi::sync::Sharing;
use pto_abi::{Fault, TaskId};
use pto_graph::{Chain, Predicate, TaskSpec, TensorTask};

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
        let count = chain.words();
        self.tasks.make_room(count)?;
        let words = self.tasks.storage().next_words(count);
        chain::write(chain, words, |task| self.tasks.accept(task, task.args.len()))?;
        let id = self.tasks.open_slot(&spec, CHAIN_KERNEL, count)?;
        self.tasks.chain_newest(id.slot, chain.kernels());
        Ok(id)
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
        self.tasks.shape_newest(id.slot, spec.kind, &shape);
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
