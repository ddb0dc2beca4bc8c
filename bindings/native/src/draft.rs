//! A graph that another language builds: tasks and edges, without a borrow of the device. It becomes
//! a `HostGraph` when it is finished.

use pto_host::abi::limits::{MAX_ARGS, MAX_FUNC_ID, MAX_TASKS};
use pto_host::abi::{CoreKind, Fault, FuncId, GmAddr};
use pto_host::graph::{BuildError, GraphBuilder, TaskSpec};
use pto_host::{Device, Error, GraphImage, HostGraph};

use crate::failure::Failure;

/// A task as it was written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftTask {
    /// Which kernel.
    pub func_id: FuncId,
    /// Which cores it runs on.
    pub kind: CoreKind,
    /// The kernel's code; null: as registered.
    pub kernel: GmAddr,
    first_arg: usize,
    arg_count: usize,
}

/// A graph as it was written down.
#[derive(Clone, Debug, Default)]
pub struct GraphDraft {
    tasks: Vec<DraftTask>,
    args: Vec<u64>,
    /// Producer and consumer.
    edges: Vec<(u32, u32)>,
    /// What tasks are called, by their id; shorter where the last ones have no name.
    names: Vec<String>,
}

/// Numbers as other languages have them, checked.
///
/// # Errors
/// `BUILD_UNKNOWN_FUNC`, `BUILD_UNKNOWN_KIND`.
pub fn checked(func_id: i64, core_type: i64) -> Result<(FuncId, CoreKind), Failure> {
    let func = u16::try_from(func_id).ok().filter(|id| usize::from(*id) < MAX_FUNC_ID);
    let func = func.ok_or_else(|| {
        let message = format!("func id {func_id} is not below the limit of {MAX_FUNC_ID}");
        Failure::of_fault(Fault::BUILD_UNKNOWN_FUNC, message)
    })?;
    let kind = u8::try_from(core_type).ok().and_then(|kind| CoreKind::try_from(kind).ok());
    let kind = kind.ok_or_else(|| {
        let message = format!("core type {core_type} is neither 0 (AIC) nor 1 (AIV)");
        Failure::of_fault(Fault::BUILD_UNKNOWN_KIND, message)
    })?;
    Ok((FuncId(func), kind))
}

impl GraphDraft {
    /// Writes a task down; its id counts from 0.
    ///
    /// # Errors
    /// `BUILD_TOO_MANY_ARGS`, `BUILD_TASKS_FULL`.
    pub fn add_task(&mut self, task: TaskSpec<'_>) -> Result<u32, Failure> {
        let id = self.tasks.len();
        if task.args.len() > MAX_ARGS {
            let given = task.args.len();
            let message = format!("task {id} has {given} arguments, and the limit is {MAX_ARGS}");
            return Err(Failure::of_fault(Fault::BUILD_TOO_MANY_ARGS, message));
        }
        let number = u32::try_from(id).ok().filter(|id| *id < MAX_TASKS);
        let number = number.ok_or_else(|| {
            let message = format!("a graph has {MAX_TASKS} tasks at most");
            Failure::of_fault(Fault::BUILD_TASKS_FULL, message)
        })?;
        let TaskSpec { func_id, kind, args, kernel } = task;
        let (first_arg, arg_count) = (self.args.len(), args.len());
        self.args.extend_from_slice(args);
        self.tasks.push(DraftTask { func_id, kind, kernel, first_arg, arg_count });
        Ok(number)
    }

    /// Makes `consumer` wait for `producer`.
    ///
    /// # Errors
    /// `BUILD_UNKNOWN_TASK`, `BUILD_SELF_EDGE`.
    pub fn add_edge(&mut self, producer: i64, consumer: i64) -> Result<(), Failure> {
        let (from, to) = (self.number(producer)?, self.number(consumer)?);
        if from == to {
            let message = format!("an edge leads from task {from} to itself");
            return Err(Failure::of_fault(Fault::BUILD_SELF_EDGE, message));
        }
        self.edges.push((from, to));
        Ok(())
    }

    /// The id, if there is such a task.
    ///
    /// # Errors
    /// `BUILD_UNKNOWN_TASK`.
    pub fn number(&self, task: i64) -> Result<u32, Failure> {
        let known = usize::try_from(task).is_ok_and(|task| task < self.tasks.len());
        u32::try_from(task).ok().filter(|_| known).ok_or_else(|| {
            let message = format!("task {task} was named, and the graph has {}", self.tasks.len());
            Failure::of_fault(Fault::BUILD_UNKNOWN_TASK, message)
        })
    }

    /// Says what a task is called in timelines.
    pub fn name_task(&mut self, id: u32, name: String) {
        let at = id as usize;
        if self.names.len() <= at {
            self.names.resize(at + 1, String::new());
        }
        self.names[at] = name;
    }

    /// What the tasks are called, in the order of their ids.
    #[must_use]
    pub fn task_names(&self) -> &[String] {
        &self.names
    }

    /// The tasks.
    #[must_use]
    pub fn tasks(&self) -> &[DraftTask] {
        &self.tasks
    }

    /// The edges: producer and consumer.
    #[must_use]
    pub fn edges(&self) -> &[(u32, u32)] {
        &self.edges
    }

    /// The arguments of one of its tasks.
    #[must_use]
    pub fn args(&self, task: &DraftTask) -> &[u64] {
        self.args.get(task.first_arg..task.first_arg + task.arg_count).unwrap_or(&[])
    }

    /// The task as a builder would add it.
    #[must_use]
    pub fn spec(&self, task: &DraftTask) -> TaskSpec<'_> {
        let DraftTask { func_id, kind, kernel, .. } = *task;
        TaskSpec { func_id, kind, args: self.args(task), kernel }
    }

    /// Other values for a task that is there.
    pub fn replace(&mut self, id: u32, task: TaskSpec<'_>) {
        let Some(held) = self.tasks.get_mut(id as usize) else { return };
        if task.args.len() > held.arg_count {
            held.first_arg = self.args.len();
            self.args.extend_from_slice(task.args);
        } else if let Some(place) =
            self.args.get_mut(held.first_arg..held.first_arg + task.args.len())
        {
            place.copy_from_slice(task.args);
        }
        (held.func_id, held.kind, held.kernel) = (task.func_id, task.kind, task.kernel);
        held.arg_count = task.args.len();
    }

    /// The image of the graph, for `device`.
    ///
    /// # Errors
    /// `Build`: a kernel is missing, or the device has no core of a kind. `Cycle`.
    pub fn finish(&self, device: &Device) -> Result<GraphImage, Error> {
        HostGraph::build(device, &[], |graph| self.replay(graph))
    }

    fn replay<G: GraphBuilder>(&self, graph: &mut G) -> Result<(), BuildError> {
        let mut ids = Vec::with_capacity(self.tasks.len());
        for task in &self.tasks {
            ids.push(graph.add_task(self.spec(task))?);
        }
        for &(producer, consumer) in &self.edges {
            // `add_edge` has bounded both.
            graph.add_edge(ids[producer as usize], ids[consumer as usize])?;
        }
        for id in ids {
            graph.publish(id)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{GraphDraft, checked};
    use pto_host::abi::{CoreKind, Fault, FuncId};
    use pto_host::graph::TaskSpec;

    #[test]
    fn what_a_graph_cannot_have_is_refused_at_once() {
        let mut draft = GraphDraft::default();
        let words = [0; 129];
        let spec = |args| TaskSpec::new(FuncId(1), CoreKind::AIV, args);
        let code = |fault: Fault| fault.code();
        assert_eq!(
            draft.add_task(spec(&words)).unwrap_err().code,
            code(Fault::BUILD_TOO_MANY_ARGS)
        );
        assert_eq!(draft.add_task(spec(&words[..2])), Ok(0));
        assert_eq!(draft.add_edge(0, 0).unwrap_err().code, code(Fault::BUILD_SELF_EDGE));
        assert_eq!(draft.add_edge(0, 1).unwrap_err().code, code(Fault::BUILD_UNKNOWN_TASK));
        assert_eq!(draft.add_edge(-1, 0).unwrap_err().code, code(Fault::BUILD_UNKNOWN_TASK));
        assert_eq!(checked(-1, 0).unwrap_err().code, code(Fault::BUILD_UNKNOWN_FUNC));
        assert_eq!(checked(1024, 0).unwrap_err().code, code(Fault::BUILD_UNKNOWN_FUNC));
        assert_eq!(checked(1, 2).unwrap_err().code, code(Fault::BUILD_UNKNOWN_KIND));
        assert_eq!(checked(1, 1).unwrap(), (FuncId(1), CoreKind::AIV));
    }

    #[test]
    fn a_task_can_be_changed() {
        let mut draft = GraphDraft::default();
        let id = draft.add_task(TaskSpec::new(FuncId(1), CoreKind::AIV, &[1, 2])).unwrap();
        for args in [&[7][..], &[8, 9, 10]] {
            draft.replace(id, TaskSpec::new(FuncId(2), CoreKind::AIC, args));
            let task = &draft.tasks()[0];
            assert_eq!((draft.args(task), task.kind), (args, CoreKind::AIC));
        }
    }
}
