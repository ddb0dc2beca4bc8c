//! A graph as a program submits it, kept in the parts that an image is made of: what a host or a test has in hand when it
//! wants to send a graph, or to know its edges.
//!
//! Edges may come in any order; [`GraphParts::order_edges`] puts them into the order of an image: the edges of each task follow those of
//! the task before it. Whether a device can run the graph is for others to say: `pto_host::HostGraph` checks each call.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use pto_abi::fault::Fault;
use pto_abi::gm::GmWindow;
use pto_abi::ids::{FuncId, GmAddr, TaskId};
use pto_abi::image::{ImageParts, ImageTask};
use pto_abi::kinds::{CoreKind, GraphFlags};
use pto_abi::launch_args::LaunchArgs;
use pto_abi::limits::MAX_ARGS;

use crate::builder::{EdgeOutcome, GraphBuilder, link_and_publish};
use crate::submission::{Submission, TaskDesc};
use crate::task::TaskSpec;

/// Tasks, edges and arguments of a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphParts {
    /// The tasks.
    pub tasks: Vec<ImageTask>,
    /// The producers of all tasks, one task's after the other's.
    pub producers: Vec<u32>,
    /// The arguments of all tasks, one task's after the other's.
    pub args: Vec<u64>,
}

impl GraphParts {
    /// The parts as an image has them.
    #[must_use]
    pub fn image(&self, flags: GraphFlags) -> ImageParts<'_> {
        ImageParts { flags, tasks: &self.tasks, producers: &self.producers, args: &self.args }
    }

    /// The bytes of the image.
    #[must_use]
    pub fn to_bytes(&self, flags: GraphFlags) -> Vec<u8> {
        let image = self.image(flags);
        let mut bytes = Vec::new();
        image.put(&image.header(), |part| bytes.extend_from_slice(part));
        bytes
    }

    /// The producers of task `index`; none of a task that is not there.
    #[must_use]
    pub fn producers_of(&self, index: usize) -> &[u32] {
        let Some(task) = self.tasks.get(index) else { return &[] };
        let first = task.first_edge as usize;
        self.producers.get(first..first + task.edge_count as usize).unwrap_or(&[])
    }

    /// Puts edges in order of which edge `i` leads to `consumers[i]`, and gives each task its first one. Edges to one task stay
    /// in the order in which they came. Returns the first edge of each task, and the end.
    pub fn order_edges(&mut self, consumers: &[u32]) -> Vec<usize> {
        let starts = self.number_edges();
        if !consumers.is_sorted() {
            // A counting sort by consumer.
            let mut next = starts.clone();
            let mut ordered = vec![0; consumers.len()];
            for (&producer, &consumer) in self.producers.iter().zip(consumers) {
                let end = &mut next[consumer as usize];
                ordered[*end] = producer;
                *end += 1;
            }
            self.producers = ordered;
        }
        starts
    }

    /// Gives each task its first edge.
    fn number_edges(&mut self) -> Vec<usize> {
        let mut next = 0;
        let mut starts = Vec::with_capacity(self.tasks.len() + 1);
        for task in &mut self.tasks {
            starts.push(next);
            // An image has less than 2^32 edges; of more, the loader finds that the counts disagree.
            task.first_edge = u32::try_from(next).unwrap_or(u32::MAX);
            next += task.edge_count as usize;
        }
        starts.push(next);
        starts
    }
}

/// A builder that keeps what is submitted to it, and checks what an image cannot hold.
#[derive(Clone)]
pub struct SubmittedGraph<'a> {
    orch_args: &'a [u64],
    gm: Option<GmWindow<'a>>,
    parts: GraphParts,
    /// Edge `i` leads from `parts.producers[i]` to `consumers[i]`.
    consumers: Vec<u32>,
    /// Every producer was added before its consumers.
    is_topological: bool,
}

/// The generation in the ids of tasks. It is constant, because a graph is built once.
const GENERATION: u32 = 1;

impl<'a> SubmittedGraph<'a> {
    /// An empty graph; `orch_args` are the words that the program reads.
    #[must_use]
    pub const fn new(orch_args: &'a [u64]) -> Self {
        let parts = GraphParts { tasks: Vec::new(), producers: Vec::new(), args: Vec::new() };
        Self { orch_args, gm: None, parts, consumers: Vec::new(), is_topological: true }
    }

    /// The program reads tables in `gm`.
    #[must_use]
    pub fn reading(self, gm: GmWindow<'a>) -> Self {
        Self { gm: Some(gm), ..self }
    }

    /// The parts of the graph, in the order of an image; and what may be claimed of it.
    #[must_use]
    pub fn finish(mut self) -> (GraphFlags, GraphParts) {
        self.parts.order_edges(&self.consumers);
        let mut flags = GraphFlags::empty();
        flags.set(GraphFlags::TOPOLOGICAL, self.is_topological);
        (flags, self.parts)
    }

    /// How many tasks it has so far.
    #[must_use]
    pub fn task_count(&self) -> usize {
        self.parts.tasks.len()
    }

    /// A task as it was submitted, by its number.
    ///
    /// # Errors
    /// `BUILD_UNKNOWN_TASK`.
    pub fn spec(&self, number: u32) -> Result<TaskSpec<'_>, Fault> {
        let task = self.parts.tasks.get(number as usize).ok_or(Fault::BUILD_UNKNOWN_TASK)?;
        let first = task.first_arg as usize;
        let args = self.parts.args.get(first..first + usize::from(task.arg_count));
        Ok(TaskSpec {
            func_id: FuncId(task.func_id),
            kind: CoreKind::try_from(task.kind).map_err(|_| Fault::BUILD_UNKNOWN_KIND)?,
            args: args.unwrap_or(&[]),
            kernel: GmAddr(task.kernel),
        })
    }

    /// The edges so far, as producer and consumer, in the order in which they were added.
    #[must_use]
    pub fn edges(&self) -> impl ExactSizeIterator<Item = (u32, u32)> {
        self.parts.producers.iter().copied().zip(self.consumers.iter().copied())
    }

    /// Gives a task another kernel and other arguments. Its edges stay.
    ///
    /// # Errors
    /// `BUILD_UNKNOWN_TASK`, `BUILD_TOO_MANY_ARGS`, `BUILD_PAYLOADS_FULL`; the task is as before.
    pub fn replace(&mut self, number: u32, task: &TaskSpec<'_>) -> Result<(), Fault> {
        let old = self.parts.tasks.get(number as usize).ok_or(Fault::BUILD_UNKNOWN_TASK)?;
        let (first, count) = (old.first_arg as usize, usize::from(old.arg_count));
        let room = first..first + task.args.len();
        let mut new = if task.args.len() <= count {
            ImageTask { first_arg: old.first_arg, ..image_task(task, first)? }
        } else {
            image_task(task, self.parts.args.len())?
        };
        (new.first_edge, new.edge_count) = (old.first_edge, old.edge_count);
        match self.parts.args.get_mut(room).filter(|_| task.args.len() <= count) {
            Some(room) => room.copy_from_slice(task.args),
            None => self.parts.args.extend_from_slice(task.args),
        }
        if let Some(old) = self.parts.tasks.get_mut(number as usize) {
            *old = new;
        }
        Ok(())
    }

    /// Submits its tasks to another builder, then its edges, and publishes the tasks.
    ///
    /// # Errors
    /// Those of the builder.
    pub fn submit_to<G: GraphBuilder>(&self, graph: &mut G) -> Result<(), Fault> {
        let mut ids = Vec::with_capacity(self.parts.tasks.len());
        for number in (0..).take(self.parts.tasks.len()) {
            ids.push(graph.add_task(self.spec(number)?)?);
        }
        for (producer, consumer) in self.edges() {
            // `add_edge` has bounded both.
            graph.add_edge(ids[producer as usize], ids[consumer as usize])?;
        }
        ids.into_iter().try_for_each(|id| graph.publish(id))
    }

    /// The id of a task, by its number.
    ///
    /// # Errors
    /// `BUILD_UNKNOWN_TASK`.
    pub fn id(&self, number: u32) -> Result<TaskId, Fault> {
        let id = TaskId { slot: number, generation: GENERATION };
        self.index(id).map(|_| id)
    }

    /// The bytes of the graph's image.
    #[must_use]
    pub fn into_image(self) -> Vec<u8> {
        let (flags, parts) = self.finish();
        parts.to_bytes(flags)
    }

    fn index(&self, task: TaskId) -> Result<usize, Fault> {
        let index = task.slot as usize;
        let is_known = task.generation == GENERATION && index < self.parts.tasks.len();
        if is_known { Ok(index) } else { Err(Fault::BUILD_UNKNOWN_TASK) }
    }

    /// Adds a task.
    fn push(&mut self, task: &TaskSpec<'_>) -> Result<TaskId, Fault> {
        let slot = u32::try_from(self.parts.tasks.len()).map_err(|_| Fault::BUILD_TASKS_FULL)?;
        self.parts.tasks.push(image_task(task, self.parts.args.len())?);
        self.parts.args.extend_from_slice(task.args);
        Ok(TaskId { slot, generation: GENERATION })
    }
}

impl fmt::Debug for SubmittedGraph<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tasks, edges) = (self.parts.tasks.len(), self.parts.producers.len());
        write!(f, "SubmittedGraph of {tasks} tasks and {edges} edges")
    }
}

/// The image's record of a task, without edges. The task's arguments begin at this word.
fn image_task(task: &TaskSpec<'_>, first_arg: usize) -> Result<ImageTask, Fault> {
    let arg_count =
        u8::try_from(task.args.len()).ok().filter(|args| usize::from(*args) <= MAX_ARGS);
    Ok(ImageTask {
        kernel: task.kernel.0,
        first_arg: u32::try_from(first_arg).map_err(|_| Fault::BUILD_PAYLOADS_FULL)?,
        first_edge: 0,
        edge_count: 0,
        func_id: task.func_id.0,
        arg_count: arg_count.ok_or(Fault::BUILD_TOO_MANY_ARGS)?,
        kind: task.kind.get(),
    })
}

impl GraphBuilder for SubmittedGraph<'_> {
    fn launch_args(&self) -> LaunchArgs<'_> {
        LaunchArgs::of(self.orch_args)
    }

    fn submit_desc(&mut self, submission: Submission<'_>) -> Result<Option<TaskId>, Fault> {
        let Submission { desc: TaskDesc::Kernel(task), after, publish, .. } = submission else {
            return Ok(None);
        };
        let id = self.push(&task)?;
        link_and_publish(self, id, (after, publish))?;
        Ok(Some(id))
    }

    fn add_edge(&mut self, producer: TaskId, consumer: TaskId) -> Result<EdgeOutcome, Fault> {
        self.index(producer)?;
        let index = self.index(consumer)?;
        if producer == consumer {
            return Err(Fault::BUILD_SELF_EDGE);
        }
        self.parts.tasks[index].edge_count += 1;
        self.parts.producers.push(producer.slot);
        self.consumers.push(consumer.slot);
        self.is_topological &= producer.slot < consumer.slot;
        Ok(EdgeOutcome::Added)
    }

    fn publish(&mut self, task: TaskId) -> Result<(), Fault> {
        self.index(task).map(drop)
    }

    fn read_u32(&self, address: GmAddr) -> Result<u32, Fault> {
        let gm = self.gm.as_ref().ok_or(Fault::BUILD_GM_RANGE)?;
        let offset = gm.offset_of(address, 4).ok_or(Fault::BUILD_GM_RANGE)?;
        gm.read(offset).ok_or(Fault::BUILD_GM_RANGE)
    }
}

#[cfg(test)]
mod tests {
    use super::SubmittedGraph;
    use crate::{GraphBuilder, TaskSpec};
    use alloc::vec;
    use pto_abi::kinds::GraphFlags;
    use pto_abi::{CoreKind, Fault, FuncId, TaskId};

    const fn task(args: &[u64]) -> TaskSpec<'_> {
        TaskSpec::new(FuncId(3), CoreKind::AIV, args)
    }

    #[test]
    fn edges_stand_with_their_consumers_in_the_order_in_which_they_came() {
        let mut graph = SubmittedGraph::new(&[]);
        let ids = [1, 2, 3].map(|arg| graph.add_task(task(&[arg])).unwrap());
        graph.add_edge(ids[1], ids[2]).unwrap();
        graph.add_edge(ids[0], ids[1]).unwrap();
        graph.add_edge(ids[0], ids[2]).unwrap();
        let (flags, parts) = graph.finish();
        assert_eq!((flags, &parts.args), (GraphFlags::TOPOLOGICAL, &vec![1, 2, 3]));
        assert_eq!([0, 1, 2].map(|index| parts.producers_of(index)), [&[][..], &[0], &[1, 0]]);
        assert_eq!(parts.tasks.iter().map(|task| task.first_edge).max(), Some(1));
    }

    #[test]
    fn an_edge_against_the_order_takes_the_claim_back() {
        let mut graph = SubmittedGraph::new(&[]);
        let ids = [1, 2].map(|arg| graph.add_task(task(&[arg])).unwrap());
        graph.add_edge(ids[1], ids[0]).unwrap();
        assert_eq!(graph.finish().0, GraphFlags::empty());
    }

    #[test]
    fn what_an_image_cannot_hold_is_refused() {
        let mut graph = SubmittedGraph::new(&[]);
        let first = graph.add_task(task(&[])).unwrap();
        assert_eq!(graph.add_task(task(&[0; 129])), Err(Fault::BUILD_TOO_MANY_ARGS));
        assert_eq!(graph.add_edge(first, first), Err(Fault::BUILD_SELF_EDGE));
        let stranger = TaskId { slot: 7, ..first };
        assert_eq!(graph.add_edge(stranger, first), Err(Fault::BUILD_UNKNOWN_TASK));
        assert_eq!(
            graph.publish(TaskId { generation: 9, ..first }),
            Err(Fault::BUILD_UNKNOWN_TASK)
        );
        assert_eq!(graph.read_u32(pto_abi::GmAddr(64)), Err(Fault::BUILD_GM_RANGE));
        assert_eq!(graph.finish().1.tasks.len(), 1, "what is refused leaves nothing behind");
    }
}
