//! A program from a file as one that a firmware runs: its steps again, on tensors that have a place in memory.
//!
//! ```text
//! Submission::new --> blocks (what memory it needs) --place--> BuilderSet of one program, Submission::NAME
//! ```
//! Tasks of a graph are added in their order, and published when every task that they wait for is there. Programs of the
//! streaming runtime are not taken yet.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use pto_abi::symbol::symbol;
use pto_abi::{Fault, FuncId, GmAddr, RuntimeVariant, TaskId};
use pto_graph::{BuildError, BuilderSet, GraphBuilder, HostedBuilder, TaskSpec};

use crate::memory_map::Addresses;
use crate::program::{Action, Argument, Program, Publish, Task};

/// See the module.
#[derive(Clone, Debug)]
pub struct Submission {
    program: Arc<Program>,
    /// The tensors, once they have a place; on another device another one.
    placed: Arc<Mutex<Option<Arc<Addresses>>>>,
}

/// A word that is larger is an address of the process that recorded it.
const LARGEST_SCALAR: u64 = u32::MAX as u64;

impl Submission {
    /// What the program is called in the firmware.
    pub const NAME: &'static str = "graph_file";

    /// A program whose tensors have no place yet.
    #[must_use]
    pub fn new(program: Arc<Program>) -> Self {
        Self { program, placed: Arc::default() }
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Why the file does not hold all that a run needs; `None`: it does.
    #[must_use]
    pub fn defect(&self) -> Option<String> {
        if self.program.streams() {
            return Some(format!(
                "it is a program of {}, which can be checked and not run; the header of a file that runs names {} or {}",
                self.program.variant,
                RuntimeVariant::HOST_BUILD_GRAPH,
                RuntimeVariant::AICPU_BUILD_GRAPH
            ));
        }
        let is_address = |arg: &Argument| matches!(arg, Argument::Scalar(w) if *w > LARGEST_SCALAR);
        let hides = |task: &&Task| {
            task.args.iter().all(|arg| arg.view().is_none()) && task.args.iter().any(is_address)
        };
        self.program.tasks.iter().find(hides).map(|task| {
            format!(
                "{task} has addresses of the process that recorded it instead of tensors; record a program with tensors"
            )
        })
    }

    /// Bytes of each piece of memory that the program's tensors are in; tensors with bytes in common are in one.
    #[must_use]
    pub fn blocks(&self) -> Vec<u64> {
        let addresses = Addresses::of(&self.program);
        let mut blocks = vec![0; addresses.count as usize];
        for (tensor, (block, offset)) in self.program.tensors.iter().zip(&addresses.blocks) {
            if let Some(bytes) = blocks.get_mut(*block as usize) {
                *bytes = offset.saturating_add(tensor.bytes).max(*bytes);
            }
        }
        blocks
    }

    /// The block of a tensor of the host's, and its place in there.
    #[must_use]
    pub fn place_of(&self, tensor: usize) -> Option<(usize, u64)> {
        let place = *Addresses::of(&self.program).blocks.get(tensor)?;
        (place.0 != u32::MAX).then_some((place.0 as usize, place.1))
    }

    /// The blocks are at these addresses from now on.
    pub fn place(&self, blocks: &[GmAddr]) {
        let mut addresses = Addresses::of(&self.program);
        for (base, (block, offset)) in addresses.bases.iter_mut().zip(&addresses.blocks) {
            if let Some(start) = blocks.get(*block as usize) {
                *base = start.offset(*offset);
            }
        }
        *self.placed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(addresses));
    }

    fn placed(&self) -> Result<Arc<Addresses>, Fault> {
        let placed = self.placed.lock().unwrap_or_else(PoisonError::into_inner);
        placed.clone().ok_or(Fault::BUILD_GM_RANGE)
    }

    /// Builds the graph.
    ///
    /// # Errors
    /// Those of the builder.
    pub fn build<G: GraphBuilder>(&self, graph: &mut G) -> Result<(), BuildError> {
        let placed = self.placed()?;
        GraphSubmitter::new(&self.program, &placed, graph).submit().map_err(BuildError::from)
    }
}

impl BuilderSet for Submission {
    fn names(&self) -> &[&str] {
        &[Self::NAME]
    }

    fn build<G: HostedBuilder>(
        &self,
        wanted: u64,
        graph: &mut G,
    ) -> Option<Result<(), BuildError>> {
        (wanted == symbol(Self::NAME)).then(|| Self::build(self, graph))
    }
}

/// Adds the tasks of a graph.
struct GraphSubmitter<'p, G> {
    program: &'p Program,
    placed: &'p Addresses,
    graph: &'p mut G,
    ids: HashMap<u32, TaskId>,
    /// Who is waited for, by task.
    producers: HashMap<u32, Vec<u32>>,
    /// Tasks that wait for one which is not there yet.
    deferred: Vec<&'p Task>,
}

impl<'p, G: GraphBuilder> GraphSubmitter<'p, G> {
    fn new(program: &'p Program, placed: &'p Addresses, graph: &'p mut G) -> Self {
        let mut producers: HashMap<u32, Vec<u32>> = HashMap::new();
        for step in &program.steps {
            match step.action {
                Action::Add(place) => {
                    let task = &program.tasks[place];
                    producers.entry(task.id).or_default().extend(&task.after);
                }
                Action::Edge { producer, consumer } => {
                    producers.entry(consumer).or_default().push(producer);
                }
                _ => {}
            }
        }
        Self { program, placed, graph, ids: HashMap::new(), producers, deferred: Vec::new() }
    }

    fn submit(mut self) -> Result<(), Fault> {
        for step in &self.program.steps {
            match step.action {
                Action::Add(place) => self.add(&self.program.tasks[place])?,
                Action::Publish(id) => {
                    let id = *self.ids.get(&id).ok_or(Fault::BUILD_UNKNOWN_TASK)?;
                    self.graph.publish(id)?;
                }
                _ => {}
            }
        }
        let deferred = std::mem::take(&mut self.deferred);
        deferred.into_iter().try_for_each(|task| self.connect(task))
    }

    fn add(&mut self, task: &'p Task) -> Result<(), Fault> {
        let args: Vec<u64> = task.args.iter().map(|arg| self.word(arg)).collect();
        let id = self.graph.add_task(TaskSpec::new(FuncId(task.func), task.kind, &args))?;
        self.ids.insert(task.id, id);
        let producers = self.producers.get(&task.id).map_or(&[][..], Vec::as_slice);
        match producers.iter().all(|producer| self.ids.contains_key(producer)) {
            true => self.connect(task),
            false => {
                self.deferred.push(task);
                Ok(())
            }
        }
    }

    /// Adds the edges of a task, and publishes it unless a line of its own does that.
    fn connect(&mut self, task: &Task) -> Result<(), Fault> {
        let Some(id) = self.ids.get(&task.id).copied() else { return Ok(()) };
        for producer in self.producers.get(&task.id).into_iter().flatten() {
            let producer = self.ids.get(producer).ok_or(Fault::BUILD_UNKNOWN_TASK)?;
            self.graph.add_edge(*producer, id)?;
        }
        match task.publish {
            Publish::Now => self.graph.publish(id),
            Publish::Later => Ok(()),
        }
    }

    /// An argument as the kernel gets it: the address of a tensor's part, or a word.
    fn word(&self, arg: &Argument) -> u64 {
        match (arg, arg.view()) {
            (_, Some((view, _))) => {
                let base = self.placed.bases.get(view.tensor).copied().unwrap_or(GmAddr::NULL);
                base.offset(view.offset * view.element.bytes()).0
            }
            (Argument::Scalar(word), None) => *word,
            _ => 0,
        }
    }
}
