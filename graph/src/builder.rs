//! The interface of every graph builder: one builder program serves `host_build_graph` (the host runs it
//! and sends the image) and `aicpu_build_graph` (AICPU instance 0 runs it while the others schedule).
//!
//! The further methods for programs in other languages are in
//! [`HostedBuilder`](crate::HostedBuilder).
//!
//! Why it is so: `docs/decisions/submission.md`.

use pto_abi::chain::MAX_CHAIN_ARGS;
use pto_abi::fault::Fault;
use pto_abi::ids::{GmAddr, TaskId};
use pto_abi::launch_args::LaunchArgs;

use crate::chain::Chain;
use crate::range::TaskRange;
use crate::submission::{Publish, Submission, TaskDesc};
use crate::task::TaskSpec;
use crate::template::{ChainTemplate, NotFilled, Origin};

/// What became of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeOutcome {
    /// The consumer waits for the producer.
    Added,
    /// The producer had completed; there is nothing to wait for.
    AlreadySatisfied,
}

/// Adds tasks and edges, and publishes tasks.
///
/// A task runs once it is published and all producers that it has edges from have completed. Edges *to* a
/// task are added before it is published; edges *from* a task may be added at any time.
///
/// A builder implements [`submit_desc`](Self::submit_desc), edges, publishing and what it reads of GM. The other calls are written here, once, and no builder has
/// its own.
pub trait GraphBuilder {
    /// What the launch passes to the program: its own words, and those of its group.
    fn launch_args(&self) -> LaunchArgs<'_>;

    /// The program's own words.
    fn orch_args(&self) -> &[u64] {
        self.launch_args().program
    }

    /// Submits what is described, and returns the task, of a range the last one, of a replay [`TaskId::NONE`]. `None`: this builder does not take such a
    /// description as it is, and has done nothing.
    ///
    /// # Errors
    /// Those of the call that submits the same: [`add_task`](Self::add_task), [`submit_chain`](Self::submit_chain),
    /// [`submit_template`](Self::submit_template), [`submit_range`](Self::submit_range), and those of [`StreamBuilder`](crate::StreamBuilder). `RUNTIME_VARIANT`:
    /// tensors need a run that streams.
    fn submit_desc(&mut self, submission: Submission<'_>) -> Result<Option<TaskId>, Fault>;

    /// Makes `consumer` wait for `producer`, unless that has completed already.
    ///
    /// # Errors
    /// `BUILD_UNKNOWN_TASK`, `BUILD_STALE_TASK`, `BUILD_SELF_EDGE`, `BUILD_CONSUMER_PUBLISHED`,
    /// `BUILD_EDGES_FULL`, `BUILD_FANIN_LIMIT`.
    fn add_edge(&mut self, producer: TaskId, consumer: TaskId) -> Result<EdgeOutcome, Fault>;

    /// Makes a task visible to the schedulers.
    ///
    /// # Errors
    /// `BUILD_UNKNOWN_TASK`, `BUILD_STALE_TASK`, `BUILD_ALREADY_PUBLISHED`.
    fn publish(&mut self, task: TaskId) -> Result<(), Fault>;

    /// Reads a word of GM, such as an entry of a block table.
    ///
    /// # Errors
    /// `BUILD_GM_RANGE` when the word is not in GM or not aligned to 4 bytes.
    fn read_u32(&self, address: GmAddr) -> Result<u32, Fault>;

    /// Reads a word of 64 bits of GM. A builder that looks at GM itself does it with one load.
    ///
    /// # Errors
    /// `BUILD_GM_RANGE` when the word is not in GM or not aligned to 8 bytes.
    fn read_u64(&self, address: GmAddr) -> Result<u64, Fault> {
        if !address.0.is_multiple_of(size_of::<u64>() as u64) {
            return Err(Fault::BUILD_GM_RANGE);
        }
        let high = GmAddr(address.0.wrapping_add(size_of::<u32>() as u64));
        let [low, high] = [self.read_u32(address)?, self.read_u32(high)?];
        Ok(u64::from(low) | u64::from(high) << 32)
    }

    /// Whether [`read_u32`](Self::read_u32) could read a word there. The builders of a device look only whether it is in GM, because
    /// a kernel may be writing it at that moment.
    fn has_word(&self, address: GmAddr) -> bool {
        self.read_u32(address).is_ok()
    }

    /// Reads consecutive words of GM; `words` is how many. A builder that has to do something before each look at GM does it
    /// once for all of them.
    ///
    /// # Errors
    /// As [`read_u32`](Self::read_u32), of the first word that is not in GM; what `words` holds then means nothing.
    fn read_words(&self, address: GmAddr, words: &mut [u32]) -> Result<(), Fault> {
        let mut at = address.0;
        for word in words {
            *word = self.read_u32(GmAddr(at))?;
            at = at.wrapping_add(size_of::<u32>() as u64);
        }
        Ok(())
    }

    /// Fills a template with a chain: its checks, its kernels' code and its words, once for all chains that differ from it in some words only. A builder
    /// that fills templates itself adds them as well.
    ///
    /// # Errors
    /// `BUILD_TEMPLATE_LIMIT`, and those of [`submit_chain`](Self::submit_chain).
    fn fill_template(
        &mut self,
        template: &mut ChainTemplate,
        chain: &Chain<'_>,
    ) -> Result<(), Fault> {
        let filled = template.fill(chain, Origin::NONE, &mut |task, _| Ok(task.kernel));
        filled.map_err(|(NotFilled::Chain(fault) | NotFilled::Kernel(fault))| fault)
    }

    /// Adds a task, unpublished.
    ///
    /// # Errors
    /// `BUILD_UNKNOWN_FUNC`, `BUILD_KERNEL_MISSING`, `BUILD_TOO_MANY_ARGS`, `BUILD_NO_CORE_OF_KIND`,
    /// `BUILD_TASKS_FULL`, `BUILD_PAYLOADS_FULL`.
    #[inline]
    fn add_task(&mut self, task: TaskSpec<'_>) -> Result<TaskId, Fault> {
        whole(self.submit_desc(Submission::new(TaskDesc::Kernel(task)).unpublished()))
    }

    /// Adds a task that waits for `producers`, and publishes it.
    ///
    /// # Errors
    /// Those of [`add_task`](Self::add_task), [`add_edge`](Self::add_edge), [`publish`](Self::publish).
    #[inline]
    fn submit(&mut self, task: TaskSpec<'_>, producers: &[TaskId]) -> Result<TaskId, Fault> {
        whole(self.submit_desc(Submission::new(TaskDesc::Kernel(task)).after(producers)))
    }

    /// Adds a chain that waits for `producers`, and publishes it. A wait for the chain's id ends when the chain's last kernel has
    /// completed.
    ///
    /// A builder on the device gives one core the whole chain in one dispatch. Where a builder has no chains, each kernel
    /// becomes a task that waits for the one before. In a streaming run, a chain whose links have tensors
    /// ([`Link::on_tensors`](crate::Link::on_tensors)) waits for what these say as well; other builders take the addresses only.
    ///
    /// # Errors
    /// Those of [`submit`](Self::submit), and `BUILD_CHAIN_EMPTY`, `BUILD_CHAIN_KIND`, `BUILD_CHAIN_VARIES`,
    /// `BUILD_CHAIN_TURNS`, `BUILD_CHAIN_LIMIT`.
    #[inline]
    fn submit_chain(&mut self, chain: &Chain<'_>, producers: &[TaskId]) -> Result<TaskId, Fault> {
        match self.submit_desc(Submission::new(TaskDesc::Chain(chain)).after(producers))? {
            Some(id) => Ok(id),
            None => submit_chain_one_by_one(self, chain, producers),
        }
    }

    /// Adds the chain of a template, as its words are now, lets it wait for `producers`, and publishes it. It is the same task as that of
    /// [`submit_chain`](Self::submit_chain).
    ///
    /// # Errors
    /// Those of [`submit_chain`](Self::submit_chain), and `BUILD_TEMPLATE_FOREIGN`.
    #[inline]
    fn submit_template(
        &mut self,
        template: &ChainTemplate,
        producers: &[TaskId],
    ) -> Result<TaskId, Fault> {
        match self.submit_desc(Submission::new(TaskDesc::Template(template)).after(producers))? {
            Some(id) => Ok(id),
            None => template.with_chain(|chain| self.submit_chain(chain, producers)),
        }
    }

    /// Adds the tasks of a range, each of which waits for what its waits say, and publishes them; `ids` are theirs afterwards. After a fault, some of them
    /// may have been submitted.
    ///
    /// # Errors
    /// Those of [`submit`](Self::submit), `BUILD_RANGE_LENGTH`, `BUILD_CHAIN_VARIES`, `BUILD_CHAIN_LIMIT`.
    #[inline]
    fn submit_range(&mut self, range: &TaskRange<'_>, ids: &mut [TaskId]) -> Result<(), Fault> {
        match self.submit_desc(Submission::new(TaskDesc::Range(range, ids)))? {
            Some(_) => Ok(()),
            None => submit_range_one_by_one(self, range, ids),
        }
    }
}

/// What is left of a submission for a builder that has added its task: an edge from each producer, and the publish.
///
/// # Errors
/// Those of [`GraphBuilder::add_edge`] and [`GraphBuilder::publish`].
#[inline]
pub fn link_and_publish<G: GraphBuilder + ?Sized>(
    graph: &mut G,
    task: TaskId,
    (after, publish): (&[TaskId], Publish),
) -> Result<(), Fault> {
    for &producer in after {
        graph.add_edge(producer, task)?;
    }
    if publish == Publish::Now {
        graph.publish(task)?;
    }
    Ok(())
}

/// The task of a description that every builder takes as it is, tensors in runs that stream.
#[inline(always)]
pub(crate) fn whole(submitted: Result<Option<TaskId>, Fault>) -> Result<TaskId, Fault> {
    submitted?.ok_or(Fault::RUNTIME_VARIANT)
}

/// Submits a task for each kernel of a chain, what a builder without chains does: each waits for the one before, and the first one for `producers`. A
/// function of its own, so that builders with chains pay nothing for the one kernel that they submit as a task.
///
/// # Errors
/// Those of [`Chain::check`] and [`GraphBuilder::submit`].
#[inline(never)]
fn submit_chain_one_by_one<G: GraphBuilder + ?Sized>(
    graph: &mut G,
    chain: &Chain<'_>,
    producers: &[TaskId],
) -> Result<TaskId, Fault> {
    chain.check()?;
    let mut words = [0; MAX_CHAIN_ARGS];
    let mut last = None;
    for (link, turn) in chain.turns() {
        let task = link.task_at(turn, &mut words);
        let before = last.as_ref().map_or(producers, core::slice::from_ref);
        last = Some(graph.submit(task, before)?);
    }
    last.ok_or(Fault::BUILD_CHAIN_EMPTY)
}

/// Submits each task of a range by itself: what a builder without ranges does.
///
/// # Errors
/// As [`GraphBuilder::submit_range`].
#[inline(never)]
fn submit_range_one_by_one<G: GraphBuilder + ?Sized>(
    graph: &mut G,
    range: &TaskRange<'_>,
    ids: &mut [TaskId],
) -> Result<(), Fault> {
    range.check(ids.len())?;
    let mut words = [0; MAX_CHAIN_ARGS];
    for (index, id) in (0..).zip(ids) {
        *id = graph.add_task(range.task_at(index, &mut words))?;
        for wait in range.waits() {
            wait.of(index).iter().try_for_each(|at| graph.add_edge(*at, *id).map(drop))?;
        }
        graph.publish(*id)?;
    }
    Ok(())
}
