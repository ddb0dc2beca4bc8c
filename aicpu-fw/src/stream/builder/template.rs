//! Templates of chains in a streaming run: their words are copied to where they are given out next.
//!
//! A template says nothing of tensors, so that the program states the edges of its chains. Invariant: what is added has the words of a chain that was
//! checked, and the kernels of this run.

use pto_abi::chain::CHAIN_KERNEL;
use pto_abi::limits::MAX_ARGS;
use pto_abi::{Fault, TaskId};
use pto_graph::{Chain, ChainTemplate, NotFilled};

use super::super::tasks::{TaskWords, Tasks};
use crate::config::Config;

impl<C: Config> Tasks<'_, C> {
    /// Fills a template with a chain.
    #[inline(never)]
    pub(super) fn fill_template(
        &mut self,
        template: &mut ChainTemplate,
        chain: &Chain<'_>,
    ) -> Result<(), Fault> {
        let origin = self.storage().window().origin();
        let filled = template.fill(chain, origin, &mut |task, args| self.accept(task, args));
        filled.map_err(|why| match why {
            NotFilled::Kernel(fault) => fault,
            NotFilled::Chain(fault) => {
                let next = self.storage().window().next_id();
                self.refuse_task(fault, next, chain.words() as u64, MAX_ARGS as u64)
            }
        })
    }

    /// Adds the chain of a template.
    #[inline(never)]
    pub(super) fn add_template(&mut self, template: &ChainTemplate) -> Result<TaskId, Fault> {
        if let Err(fault) = template.check(self.storage().window().origin()) {
            let next = self.storage().window().next_id();
            return Err(self.refuse_task(fault, next, 0, 0));
        }
        let count = template.word_count();
        self.make_room(count)?;
        template.copy_to(self.storage().next_words(count));
        let words = TaskWords::Chain { count, kernels: template.kernels() };
        self.open_slot(&template.task(), CHAIN_KERNEL, words)
    }
}
