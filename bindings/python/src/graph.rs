//! `Graph`: tasks and edges, built on the host.

use std::sync::{Mutex, MutexGuard};

use pto_host::abi::limits::{MAX_ARGS, MAX_TASKS};
use pto_host::abi::numbers::Counted;
use pto_host::abi::{CoreKind, Fault, GmAddr};
use pto_host::graph::TaskSpec;
use pto_native::{Failure, GraphDraft, checked};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyRange;

use crate::failure::{invalid, raised, unknown};
use crate::py_resource::locked;

/// A graph that is being built.
#[pyclass(frozen, module = "pto_runtime")]
#[derive(Default)]
pub(crate) struct Graph(Mutex<GraphDraft>);

/// A core type as users write it: "aic", "aiv", 0 or 1.
#[derive(FromPyObject)]
pub(crate) enum CoreType {
    Name(String),
    Number(i64),
}

impl CoreType {
    pub(crate) fn number(&self) -> PyResult<i64> {
        match self {
            Self::Number(number) => Ok(*number),
            Self::Name(name) => match CoreKind::from_name(name) {
                Some(kind) => Ok(kind.get().into()),
                None => Err(unknown("core type", name, "\"aic\" or \"aiv\"")),
            },
        }
    }
}

/// What a kernel gets for an argument: an integer, or the bits of a float, which is an f32 as in program files.
#[derive(Clone, Copy)]
pub(crate) struct ScalarWord(pub(crate) u64);

impl<'py> FromPyObject<'_, 'py> for ScalarWord {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(word) = value.extract() {
            return Ok(Self(word));
        }
        if value.hasattr("__index__")? || !value.hasattr("__float__")? {
            let shown = value.repr()?;
            return Err(invalid(format!(
                "an argument is an integer of 64 bits or a float, and not {shown}"
            )));
        }
        let wide: f64 = value.extract()?;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it is rounded to an f32, and what none can hold is refused"
        )]
        let float = wide as f32;
        if wide.is_finite() && float.is_infinite() {
            return Err(invalid(format!("{wide:e} is beyond the largest f32, {:e}", f32::MAX)));
        }
        Ok(Self(float.to_bits().into()))
    }
}

/// An argument of a range.
#[derive(FromPyObject)]
enum RangeArg {
    /// One for each task.
    Words(Vec<ScalarWord>),
    /// The same for all tasks.
    Word(ScalarWord),
}

impl RangeArg {
    /// The argument of a task; there is one for each.
    fn word(&self, index: usize) -> u64 {
        match self {
            Self::Word(word) => word.0,
            Self::Words(words) => words.get(index).map_or(0, |word| word.0),
        }
    }
}

/// The tasks that one task of a range waits for.
#[derive(FromPyObject)]
enum Producers {
    One(i64),
    Several(Vec<i64>),
}

impl Producers {
    fn all(&self) -> &[i64] {
        match self {
            Self::One(id) => std::slice::from_ref(id),
            Self::Several(ids) => ids,
        }
    }
}

/// How many tasks a range has; all that say it have to agree.
fn count_of(count: Option<usize>, args: &[RangeArg], each: Option<usize>) -> PyResult<usize> {
    let lists = args.iter().enumerate().filter_map(|(at, arg)| match arg {
        RangeArg::Word(_) => None,
        RangeArg::Words(words) => Some((format!("argument {at}"), words.len())),
    });
    let said = count.map(|count| ("count".to_owned(), count));
    let each = each.map(|count| ("after_each".to_owned(), count));
    let mut all = said.into_iter().chain(lists).chain(each);
    let Some((who, first)) = all.next() else {
        let what = "nothing says how many tasks the range has; give `count`, or an argument that is a sequence";
        return Err(PyValueError::new_err(what));
    };
    match all.find(|(_, count)| *count != first) {
        Some((other, count)) => Err(PyValueError::new_err(format!(
            "{who} is for {}, and {other} for {}; give one for each task",
            Counted(first as u64, "task"),
            Counted(count as u64, "task")
        ))),
        None => Ok(first),
    }
}

impl Graph {
    pub(crate) fn draft(&self) -> MutexGuard<'_, GraphDraft> {
        locked(&self.0)
    }
}

#[pymethods]
impl Graph {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Adds a task; its id counts from 0. An argument is an integer, or a float, of which the kernel gets the bits of an f32. The task waits for the
    /// tasks in `after`; timelines show its name.
    #[pyo3(signature = (func_id, core_type, args, after = Vec::new(), *, name = None))]
    fn add_task(
        &self,
        func_id: i64,
        core_type: CoreType,
        args: Vec<ScalarWord>,
        after: Vec<i64>,
        name: Option<String>,
    ) -> PyResult<u32> {
        let known = checked(func_id, core_type.number()?);
        let (func_id, kind) = known.map_err(|failure| raised(&failure))?;
        let mut draft = self.draft();
        for producer in &after {
            draft.number(*producer).map_err(|failure| raised(&failure))?;
        }
        let args: Vec<u64> = args.iter().map(|word| word.0).collect();
        let spec = TaskSpec { func_id, kind, args: &args, kernel: GmAddr::NULL };
        let task = draft.add_task(spec).map_err(|failure| raised(&failure))?;
        if let Some(name) = name {
            draft.name_task(task, name);
        }
        for producer in after {
            let added = draft.add_edge(producer, task.into());
            added.map_err(|failure| raised(&failure))?;
        }
        Ok(task)
    }

    /// Adds many tasks of one kernel; their ids follow one another. An argument is one number for all of them, or a sequence with a number for
    /// each, such as `range(start, stop, step)`. `count` says how many tasks there are where no argument and no `after_each` does. Each task waits for
    /// the tasks in `after`, and for its own entry of `after_each`: one id, or several. Nothing is added where something is wrong.
    ///
    /// A row of points, each of which waits for its neighbours in the row above::
    ///
    ///     near = [above[max(n - 1, 0) : n + 2] for n in range(64)]
    ///     row = graph.add_range(ADD, "aiv", [range(a, a + 64 * 1024, 1024), b, 256], after_each=near)
    #[pyo3(signature = (func_id, core_type, args, *, count = None, after = Vec::new(), after_each = None))]
    #[expect(clippy::too_many_arguments, reason = "Python passes most of them by name")]
    fn add_range<'py>(
        &self,
        py: Python<'py>,
        func_id: i64,
        core_type: CoreType,
        args: Vec<RangeArg>,
        count: Option<usize>,
        after: Vec<i64>,
        after_each: Option<Vec<Producers>>,
    ) -> PyResult<Bound<'py, PyRange>> {
        let known = checked(func_id, core_type.number()?);
        let (func_id, kind) = known.map_err(|failure| raised(&failure))?;
        let each: Vec<Vec<i64>> =
            after_each.iter().flatten().map(|producers| producers.all().to_vec()).collect();
        let count = count_of(count, &args, after_each.is_some().then_some(each.len()))?;
        let mut draft = self.draft();
        let first = draft.graph().task_count();
        let fits = first.checked_add(count).is_some_and(|end| end <= MAX_TASKS as usize);
        if !fits || args.len() > MAX_ARGS {
            let (fault, what) = match fits {
                false => {
                    (Fault::BUILD_TASKS_FULL, format!("a graph has {MAX_TASKS} tasks at most"))
                }
                true => {
                    let given = args.len();
                    let what =
                        format!("a range has {given} arguments, and the limit is {MAX_ARGS}");
                    (Fault::BUILD_TOO_MANY_ARGS, what)
                }
            };
            return Err(raised(&Failure::of_fault(fault, what)));
        }
        for producer in after.iter().chain(each.iter().flatten()) {
            draft.number(*producer).map_err(|failure| raised(&failure))?;
        }
        for index in 0..count {
            let words: Vec<u64> = args.iter().map(|arg| arg.word(index)).collect();
            let spec = TaskSpec { func_id, kind, args: &words, kernel: GmAddr::NULL };
            let task = draft.add_task(spec).map_err(|failure| raised(&failure))?;
            for producer in after.iter().chain(each.get(index).into_iter().flatten()) {
                let added = draft.add_edge(*producer, task.into());
                added.map_err(|failure| raised(&failure))?;
            }
        }
        let number = |task: usize| isize::try_from(task).unwrap_or(isize::MAX);
        PyRange::new(py, number(first), number(first + count))
    }

    /// Makes `consumer` wait for `producer`.
    fn add_edge(&self, producer: i64, consumer: i64) -> PyResult<()> {
        self.draft().add_edge(producer, consumer).map_err(|failure| raised(&failure))
    }

    #[getter]
    fn task_count(&self) -> usize {
        self.draft().graph().task_count()
    }

    #[getter]
    fn edge_count(&self) -> usize {
        self.draft().graph().edges().len()
    }

    fn __repr__(&self) -> String {
        let draft = self.draft();
        let (tasks, edges) = (draft.graph().task_count(), draft.graph().edges().len());
        format!(
            "<Graph of {} and {}>",
            Counted(tasks as u64, "task"),
            Counted(edges as u64, "edge")
        )
    }
}
