//! A program from a file as one that a firmware runs: its steps again, on tensors that have addresses in memory.
//!
//! ```text
//! FileProgram::new --> blocks (what memory it needs) --set_blocks--> BuilderSet of one program, FileProgram::NAME
//! ```
//! Graphs are submitted by `graph_submitter.rs`, programs of the streaming runtime by `submit.rs`. What a file does not say, and a
//! run needs, is a defect, which names the line.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use pto_abi::symbol::symbol;
use pto_abi::{Fault, GmAddr};
use pto_graph::{BuildError, BuilderSet, GraphBuilder, HostedBuilder, StreamBuilder};

use crate::graph_submitter::GraphSubmitter;
use crate::layout::{edge_of_unknown, never_published, published_twice};
use crate::memory_map::Addresses;
use crate::program::{Action, Argument, Location, Program, Publish, Step, Task};
use crate::submit::{HostAccess, Refused, Submitter};

/// See the module.
#[derive(Clone, Debug)]
pub struct FileProgram {
    program: Arc<Program>,
    /// The tensors, once they have addresses; on another device another one.
    placed: Arc<Mutex<Option<Arc<Addresses>>>>,
    /// The step that the builder refused in the last run.
    refused: Arc<Mutex<Option<usize>>>,
}

/// What the steps above a step have left.
#[derive(Default)]
struct Above {
    tasks: HashSet<u32>,
    /// The lines that begin them.
    open_scopes: Vec<usize>,
    /// Tasks that wait for a line that publishes them, with their own line.
    unpublished: BTreeMap<u32, usize>,
}

/// A word that is larger is an address of the process that recorded it.
const LARGEST_SCALAR: u64 = u32::MAX as u64;

impl FileProgram {
    /// What the program is called in the firmware.
    pub const NAME: &'static str = "graph_file";

    /// A program whose tensors have no addresses yet.
    #[must_use]
    pub fn new(program: Arc<Program>) -> Self {
        Self { program, placed: Arc::default(), refused: Arc::default() }
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Why the file does not hold all that a run needs, with the line; `None`: it does.
    #[must_use]
    pub fn defect(&self) -> Option<String> {
        let mut above = Above::default();
        let of_a_step = self.program.steps.iter().find_map(|step| {
            let what = self.missing(step, &mut above)?;
            Some((step.line, what))
        });
        let (line, what) = of_a_step.or_else(|| self.missing_at_end(&above))?;
        Some(if line > 0 { format!("line {line}: {what}") } else { what })
    }

    /// What a run needs and a step does not say.
    fn missing(&self, step: &Step, above: &mut Above) -> Option<String> {
        match &step.action {
            Action::OpenScope(_) => above.open_scopes.push(step.line),
            Action::CloseScope => drop(above.open_scopes.pop()),
            Action::Publish(id) => {
                let is_published = above.unpublished.remove(id).is_none();
                return is_published.then(|| published_twice(*id));
            }
            Action::Add(index) => {
                let task = &self.program.tasks[*index];
                let missing = self.missing_of(task, &above.tasks);
                above.tasks.insert(task.id);
                if task.publish == Publish::Later {
                    above.unpublished.insert(task.id, step.line);
                }
                return missing;
            }
            Action::Edge { producer, consumer } if self.program.streams() => {
                let unknown =
                    [producer, consumer].into_iter().find(|id| !above.tasks.contains(id))?;
                return Some(format!(
                    "edge: no task {unknown} is known here; put the edge behind both tasks"
                ));
            }
            Action::Set(_, None) => {
                return Some(
                    "set: the line does not say which value is written; add a \"value\" beside it, or check the file only".into(),
                );
            }
            _ => {}
        }
        None
    }

    /// What the whole program lacks, and the line that needs it. The runtime finds it when the builder returns, and knows no line.
    fn missing_at_end(&self, above: &Above) -> Option<(usize, String)> {
        if let Some(line) = above.open_scopes.last() {
            return Some((
                *line,
                r#"the scope that begins here does not end; add {"end": "scope"}"#.into(),
            ));
        }
        if let Some((task, line)) = above.unpublished.first_key_value() {
            return Some((*line, never_published(*task)));
        }
        self.program.steps.iter().find_map(|step| {
            let edges: Vec<(u32, u32)> = match step.action {
                Action::Add(index) => {
                    let task = &self.program.tasks[index];
                    task.after.iter().map(|producer| (*producer, task.id)).collect()
                }
                Action::Edge { producer, consumer } => vec![(producer, consumer)],
                _ => return None,
            };
            edges.into_iter().find_map(|(producer, consumer)| {
                let unknown =
                    [producer, consumer].into_iter().find(|id| !above.tasks.contains(id))?;
                Some((step.line, edge_of_unknown((producer, consumer), unknown)))
            })
        })
    }

    fn missing_of(&self, task: &Task, known: &HashSet<u32>) -> Option<String> {
        let is_address = |arg: &Argument| matches!(arg, Argument::Scalar(w) if *w > LARGEST_SCALAR);
        let has_addresses = |args: &[Argument]| {
            args.iter().all(|arg| arg.view().is_none()) && args.iter().any(is_address)
        };
        if has_addresses(&task.args) || task.links.iter().any(|link| has_addresses(&link.args)) {
            return Some(format!(
                "{task} has addresses of the process that recorded it instead of tensors; record it again with kernels of the library"
            ));
        }
        if task.after.contains(&task.id) {
            return Some(format!(
                "{task} waits for itself, so that it never starts; take the edge out"
            ));
        }
        let later = task.after.iter().find(|id| self.program.streams() && !known.contains(id))?;
        Some(format!("{task} waits for task {later}, which is not known here; put that task above"))
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

    /// The block of a tensor of the host's, and its offset in that.
    #[must_use]
    pub fn block_of(&self, tensor: usize) -> Option<(usize, u64)> {
        let block = *Addresses::of(&self.program).blocks.get(tensor)?;
        (block.0 != u32::MAX).then_some((block.0 as usize, block.1))
    }

    /// The blocks are at these addresses from now on.
    pub fn set_blocks(&self, blocks: &[GmAddr]) {
        let mut addresses = Addresses::of(&self.program);
        for (base, (block, offset)) in addresses.bases.iter_mut().zip(&addresses.blocks) {
            if let Some(start) = blocks.get(*block as usize) {
                *base = start.offset(*offset);
            }
        }
        self.put(addresses);
    }

    /// The tensors are at these addresses from now on.
    pub fn set_addresses(&self, tensors: &[GmAddr]) {
        let mut addresses = Addresses::of(&self.program);
        addresses.bases.clear();
        addresses.bases.extend_from_slice(tensors);
        self.put(addresses);
    }

    fn put(&self, addresses: Addresses) {
        *self.placed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(addresses));
    }

    /// Where a tensor is; `None`: it has no address of its own, or none yet.
    #[must_use]
    pub fn address_of(&self, tensor: usize) -> Option<GmAddr> {
        let is_host = matches!(self.program.tensors.get(tensor)?.location, Location::Host(_));
        let placed = self.placed().ok()?;
        placed.bases.get(tensor).copied().filter(|_| is_host)
    }

    /// The line that the builder refused in the last run; `None`: it took all of them, or the program is not from a file.
    #[must_use]
    pub fn refused_line(&self) -> Option<usize> {
        let refused = *self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        self.program.steps.get(refused?).map(|step| step.line).filter(|line| *line > 0)
    }

    fn note(&self, submitted: Result<(), Refused>) -> Result<(), BuildError> {
        let step = submitted.err().and_then(|refused| refused.step);
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = step;
        submitted.map_err(|refused| refused.fault.into())
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
        self.note(GraphSubmitter::new(&self.program, &placed, graph).submit())
    }

    /// Submits a program of the streaming runtime.
    fn stream<G: StreamBuilder>(&self, stream: &mut G) -> Result<(), BuildError> {
        let placed = self.placed()?;
        self.note(Submitter::new((&self.program, &placed), stream, HostAccess::AsItIs).submit())
    }
}

impl BuilderSet for FileProgram {
    fn names(&self) -> &[&str] {
        if self.program.streams() { &[] } else { &[Self::NAME] }
    }

    fn build<G: HostedBuilder>(
        &self,
        wanted: u64,
        graph: &mut G,
    ) -> Option<Result<(), BuildError>> {
        (wanted == symbol(Self::NAME) && !self.program.streams()).then(|| Self::build(self, graph))
    }

    fn stream_names(&self) -> &[&str] {
        if self.program.streams() { &[Self::NAME] } else { &[] }
    }

    fn build_stream<G: StreamBuilder + HostedBuilder>(
        &self,
        wanted: u64,
        stream: &mut G,
    ) -> Option<Result<(), BuildError>> {
        (wanted == symbol(Self::NAME)).then(|| match self.program.streams() {
            true => self.stream(stream),
            // Every runtime takes a graph.
            false => Self::build(self, stream),
        })
    }
}
