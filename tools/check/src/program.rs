//! What a program submitted, step by step: the model between recorder, file and checks.
//!
//! Tasks, tensors and recordings are known by ids of the file's own choice, and by their indices in the tables here; a
//! recorded program counts both from 0.

use std::collections::HashMap;
use std::fmt;

use pto_abi::chain::Turns;
use pto_abi::limits::MAX_RANK;
use pto_abi::{CoreKind, GmAddr, RuntimeVariant};
pub use pto_graph::Publish;
pub use pto_graph::owned::Use;
use pto_graph::owned::{self, OwnedArg, OwnedPredicate};
use pto_graph::{DependencyMode, ElementType};

/// A program as it was submitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// What it is called.
    pub name: String,
    /// Who adds its tasks; edges are derived under `tensormap_and_ringbuffer` only.
    pub variant: RuntimeVariant,
    /// All tensors: the host's, those of the heap, those that recordings leave open.
    pub tensors: Vec<Tensor>,
    /// All tasks, those of recordings included, in order.
    pub tasks: Vec<Task>,
    /// What was done, in order.
    pub steps: Vec<Step>,
    /// Where a recorder saw tensors of the heap, by their indices, if each had memory of its own.
    pub(crate) heap: Vec<(usize, GmAddr)>,
}

impl Program {
    /// An empty program.
    #[must_use]
    pub fn new(name: impl Into<String>, variant: RuntimeVariant) -> Self {
        let name = name.into();
        let (tensors, tasks, steps, heap) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { name, variant, tensors, tasks, steps, heap }
    }

    /// Whether it is one of the streaming runtime, which derives edges and has rings.
    #[must_use]
    pub fn streams(&self) -> bool {
        self.variant == RuntimeVariant::TENSORMAP_AND_RINGBUFFER
    }

    /// How many tasks a run has: those of a record once for each of its replays, and each kernel of a chain.
    #[must_use]
    pub fn task_count(&self) -> usize {
        let (mut count, mut open) = (0, None);
        let mut recorded: HashMap<u32, usize> = HashMap::new();
        for step in &self.steps {
            match step.action {
                Action::Add(index) => {
                    let kernels = self.tasks[index].kernel_count();
                    match open {
                        Some(record) => *recorded.entry(record).or_default() += kernels,
                        None => count += kernels,
                    }
                }
                Action::BeginRecording { record, .. } => open = Some(record),
                Action::EndRecording => open = None,
                Action::Replay { record, .. } => count += recorded.get(&record).unwrap_or(&0),
                _ => {}
            }
        }
        count
    }

    /// A tensor as findings name it.
    #[must_use]
    pub fn tensor_name(&self, tensor: usize) -> String {
        self.tensors.get(tensor).map_or_else(|| format!("tensor #{tensor}"), Tensor::to_string)
    }
}

/// A step, and the line of the file that says it; 0: it was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What is done.
    pub action: Action,
    /// The line, from 1.
    pub line: usize,
}

/// What a program does.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Opens a scope.
    OpenScope(DependencyMode),
    /// Closes the innermost scope.
    CloseScope,
    /// Allocates a tensor, by its index, in the innermost scope.
    Allocate(usize),
    /// Adds a task, by its index.
    Add(usize),
    /// Makes a task that is not published wait for another one; both by id.
    Edge {
        /// Who is waited for.
        producer: u32,
        /// Who waits.
        consumer: u32,
    },
    /// Publishes a task, by id, that was added before.
    Publish(u32),
    /// Waits for those that write an element, and reads it.
    Get(View),
    /// Waits for those that read or write an element, and writes this value; `None`: the file does not say which.
    Set(View, Option<u64>),
    /// Begins a record; its tensors, by their indices, look like these views.
    BeginRecording {
        /// The id.
        record: u32,
        /// What it leaves open.
        tensors: Vec<(usize, View)>,
    },
    /// Ends the record.
    EndRecording,
    /// Replays a record, by id.
    Replay {
        /// The id.
        record: u32,
        /// What it binds.
        tensors: Vec<View>,
        /// Words that it binds.
        scalars: Vec<u64>,
    },
}

/// A tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// How the file names it.
    pub id: u32,
    /// What people call it.
    pub name: Option<String>,
    /// Its size.
    pub bytes: u64,
    /// The type of its elements, where a view says nothing else.
    pub element: ElementType,
    /// Its extents, where they are known.
    pub shape: Option<Vec<u32>>,
    /// Where it is.
    pub location: Location,
}

/// Where a tensor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// In memory of the host's, at this address if it is known.
    Host(Option<GmAddr>),
    /// On the heap of a scope.
    Heap,
    /// Wherever a replay binds it: number so-and-so of the record's tensors.
    Bound(usize),
}

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "tensor {} '{name}'", self.id),
            None => write!(f, "tensor {}", self.id),
        }
    }
}

/// A strided part of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// The tensor, by its index.
    pub tensor: usize,
    /// The type of its elements.
    pub element: ElementType,
    /// Elements from the tensor's first one to the view's first one.
    pub offset: u64,
    rank: u8,
    shape: [u32; MAX_RANK],
    strides: [u64; MAX_RANK],
}

impl View {
    /// A view; `None`: it has more dimensions than there are, or not a stride for each.
    #[must_use]
    pub fn new(
        tensor: usize,
        element: ElementType,
        offset: u64,
        (shape, strides): (&[u32], &[u64]),
    ) -> Option<Self> {
        let rank = u8::try_from(shape.len()).ok()?;
        let mut view =
            Self { tensor, element, offset, rank, shape: [1; MAX_RANK], strides: [0; MAX_RANK] };
        (shape.len() == strides.len()).then_some(())?;
        view.shape.get_mut(..shape.len())?.copy_from_slice(shape);
        view.strides.get_mut(..shape.len())?.copy_from_slice(strides);
        Some(view)
    }

    /// The same part of another tensor, so many elements further on.
    pub(crate) fn moved(self, tensor: usize, elements: u64) -> Self {
        Self { tensor, offset: self.offset.saturating_add(elements), ..self }
    }

    /// Extents.
    #[must_use]
    pub fn shape(&self) -> &[u32] {
        &self.shape[..usize::from(self.rank)]
    }

    /// Distances in elements.
    #[must_use]
    pub fn strides(&self) -> &[u64] {
        &self.strides[..usize::from(self.rank)]
    }
}

/// The strides of a tensor whose elements stand side by side, the last dimension the innermost one.
#[must_use]
pub fn row_major(shape: &[u32]) -> Vec<u64> {
    let mut strides = vec![1; shape.len()];
    for dim in (1..shape.len()).rev() {
        strides[dim - 1] = u64::from(shape[dim]).saturating_mul(strides[dim]);
    }
    strides
}

/// A task.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// How the file names it.
    pub id: u32,
    /// What people call it.
    pub name: Option<String>,
    /// Which kernel.
    pub func: u16,
    /// Which cores it runs on.
    pub kind: CoreKind,
    /// Its arguments.
    pub args: Vec<Argument>,
    /// Ids of tasks that it waits for, besides those that its tensors say.
    pub after: Vec<u32>,
    /// Whether it is published with this step.
    pub publish: Publish,
    /// What it is beyond one kernel on one core.
    pub block_shape: OwnedBlockShape,
    /// The kernels of a chain; empty: it is one kernel. A chain has no arguments of its own, and the func id of its first kernel.
    pub links: Vec<ChainLink>,
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "task {} '{name}'", self.id),
            None => write!(f, "task {}", self.id),
        }
    }
}

/// One kernel of a chain, run once or several times.
#[derive(Clone, Debug, PartialEq)]
pub struct ChainLink {
    /// Which kernel.
    pub func: u16,
    /// Its arguments in the first of its times.
    pub args: Vec<Argument>,
    /// How often it runs.
    pub times: u32,
    /// Whether the next link takes turns with it.
    pub with_next: bool,
    /// How arguments differ from time to time.
    pub vary: Vec<Vary>,
    /// What each of its times does to its arguments, where their extents differ, or only the kernel's words say it; empty: what
    /// `args` and `vary` say.
    pub uses: Vec<Vec<Argument>>,
}

/// How one argument differs from time to time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vary {
    /// Which argument.
    pub arg: usize,
    /// The turns that it counts; `EACH`: each time.
    pub turns: Turns,
    /// See [`Way`].
    pub way: Way,
}

/// How an argument differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// It grows by so much: a scalar by that number, a view by so many bytes.
    By(i64),
    /// For each turn: the word; of a view, bytes from the tensor's first one.
    Of(Vec<u64>),
    /// For each turn: the address of a byte, which may be another tensor's each time.
    At(Vec<TensorByte>),
}

/// A byte of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorByte {
    /// The tensor, by its index.
    pub tensor: usize,
    /// Bytes from its first one.
    pub byte: u64,
}

impl TensorByte {
    /// The byte as a view; `None`: no view can say it.
    #[must_use]
    pub fn view(self) -> Option<View> {
        View::new(self.tensor, ElementType::U8, self.byte, (&[1], &[1]))
    }
}

/// An argument.
pub type Argument = OwnedArg<View>;

/// What a task is beyond one kernel on one core.
pub type OwnedBlockShape = owned::OwnedBlockShape<u16, View>;

/// One element, as a view of its own, compared with a value when the task becomes ready.
pub type Condition = OwnedPredicate<View>;
