//! A graph that another language builds, without a borrow of the device. It becomes a `HostGraph` when it is finished.

use pto_host::abi::limits::{MAX_ARGS, MAX_FUNC_ID, MAX_TASKS};
use pto_host::abi::{CoreKind, Fault, FuncId};
use pto_host::graph::{GraphBuilder, SubmittedGraph, TaskSpec};
use pto_host::{Device, Error, GraphImage, HostGraph};

use crate::failure::Failure;

/// A graph under construction, and the names of its tasks.
#[derive(Clone, Debug)]
pub struct GraphDraft {
    graph: SubmittedGraph<'static>,
    /// By the numbers of tasks; shorter where the last ones have no name.
    names: Vec<String>,
}

impl Default for GraphDraft {
    fn default() -> Self {
        Self { graph: SubmittedGraph::new(&[]), names: Vec::new() }
    }
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
    /// Adds a task; its id counts from 0.
    ///
    /// # Errors
    /// `BUILD_TOO_MANY_ARGS`, `BUILD_TASKS_FULL`.
    pub fn add_task(&mut self, task: TaskSpec<'_>) -> Result<u32, Failure> {
        let id = self.graph.task_count();
        let number = u32::try_from(id).ok().filter(|id| *id < MAX_TASKS);
        let number = number.ok_or_else(|| {
            let message = format!("a graph has {MAX_TASKS} tasks at most");
            Failure::of_fault(Fault::BUILD_TASKS_FULL, message)
        })?;
        self.graph.add_task(task).map_err(|fault| refused(fault, id, &task))?;
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
        let refused = |fault| {
            Failure::of_fault(fault, format!("the edge from task {from} to task {to} was refused"))
        };
        let (producer, consumer) =
            (self.graph.id(from).map_err(refused)?, self.graph.id(to).map_err(refused)?);
        self.graph.add_edge(producer, consumer).map(drop).map_err(refused)
    }

    /// The id, if there is such a task.
    ///
    /// # Errors
    /// `BUILD_UNKNOWN_TASK`.
    pub fn number(&self, task: i64) -> Result<u32, Failure> {
        let count = self.graph.task_count();
        let known = usize::try_from(task).is_ok_and(|task| task < count);
        u32::try_from(task).ok().filter(|_| known).ok_or_else(|| {
            let message = format!("task {task} was named, and the graph has {count}");
            Failure::of_fault(Fault::BUILD_UNKNOWN_TASK, message)
        })
    }

    /// Gives a task a name for timelines.
    pub fn name_task(&mut self, id: u32, name: String) {
        let at = id as usize;
        if self.names.len() <= at {
            self.names.resize(at + 1, String::new());
        }
        self.names[at] = name;
    }

    /// The names of the tasks, in the order of their ids.
    #[must_use]
    pub fn task_names(&self) -> &[String] {
        &self.names
    }

    /// The draft's tasks, arguments and edges.
    #[must_use]
    pub const fn graph(&self) -> &SubmittedGraph<'static> {
        &self.graph
    }

    /// Gives a task another kernel and other arguments.
    ///
    /// # Errors
    /// `BUILD_UNKNOWN_TASK`, `BUILD_TOO_MANY_ARGS`.
    pub fn replace(&mut self, id: u32, task: TaskSpec<'_>) -> Result<(), Failure> {
        self.graph.replace(id, &task).map_err(|fault| refused(fault, id as usize, &task))
    }

    /// The image of the graph, for `device`.
    ///
    /// # Errors
    /// `Build`: a kernel is missing, or the device has no core of a kind. `Cycle`.
    pub fn finish(&self, device: &Device) -> Result<GraphImage, Error> {
        HostGraph::build(device, &[], |graph| Ok(self.graph.submit_to(graph)?))
    }
}

/// Why task `id` cannot be in a graph.
fn refused(fault: Fault, id: usize, task: &TaskSpec<'_>) -> Failure {
    let given = task.args.len();
    let message = match fault {
        Fault::BUILD_TOO_MANY_ARGS => {
            format!("task {id} has {given} arguments, and the limit is {MAX_ARGS}")
        }
        Fault::BUILD_UNKNOWN_TASK => format!("task {id} was named, and the graph has no such task"),
        _ => format!("task {id} with {given} arguments has no room in the graph"),
    };
    Failure::of_fault(fault, message)
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
            draft.replace(id, TaskSpec::new(FuncId(2), CoreKind::AIC, args)).unwrap();
            let task = draft.graph().spec(0).unwrap();
            assert_eq!((task.args, task.kind), (args, CoreKind::AIC));
        }
    }
}
