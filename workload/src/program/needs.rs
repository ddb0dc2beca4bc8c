//! What a program needs of the device that runs it.

use pto_abi::CoreKind;

use super::content::{Program, ProgramBody};
use super::graph::GraphTask;
use pto_aicore_kernels::tile::Op;

/// What a program needs of the device that runs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needs {
    /// The kinds of cores that its kernels run on.
    pub kinds: Vec<CoreKind>,
    /// The kernels of the library that its tasks call.
    pub kernels: Vec<String>,
    /// The builder program that the device has to have; `None`: it needs none.
    pub builder: Option<String>,
    /// Bytes of all its tensors.
    pub tensor_bytes: u64,
    /// The processors that it has native kernels for; empty: it has none, and runs on every processor.
    pub processors: Vec<String>,
    /// Bytes of the plan or the graph, with the tile kernels.
    pub code_bytes: u64,
}

/// Bytes that a task of a graph takes on its way, without its arguments.
const TASK_BYTES: u64 = 24;

impl Program {
    /// What it needs of the device that runs it.
    #[must_use]
    pub fn needs(&self) -> Needs {
        let (uses_kind, kernels, code_bytes): (Vec<CoreKind>, Vec<String>, u64) = match self.body()
        {
            ProgramBody::Plan(compiled) => {
                let is_product = |op: &Op| matches!(op, Op::Matmul { .. });
                let kind = |is_product| if is_product { CoreKind::AIC } else { CoreKind::AIV };
                let kinds =
                    compiled.tile_kernels().iter().map(|one| kind(one.ops().any(is_product)));
                let bytes = 4 * compiled.words().len() + compiled.code().len();
                (kinds.collect(), Vec::new(), bytes as u64)
            }
            ProgramBody::Graph(tasks) => {
                let words: usize = tasks.iter().map(|task| task.args.len()).sum();
                let is_own =
                    |name: &str| self.native().is_some_and(|own| own.kernel(name).is_some());
                let all = tasks.iter().flat_map(GraphTask::kernels);
                let names = all.map(|(name, _)| name).filter(|name| !is_own(name));
                let kernels = names.map(ToOwned::to_owned).collect();
                let bytes = TASK_BYTES * tasks.len() as u64 + 8 * words as u64;
                let kinds = tasks.iter().flat_map(GraphTask::kernels).map(|(_, kind)| kind);
                (kinds.collect(), kernels, bytes)
            }
            // Its tasks are not known before it runs.
            ProgramBody::Builder(reference) => {
                (Vec::new(), Vec::new(), 8 * reference.words.len() as u64)
            }
        };
        let kinds = CoreKind::ALL.iter().copied().filter(|kind| uses_kind.contains(kind));
        let mut kernels = kernels;
        kernels.sort_unstable();
        kernels.dedup();
        let tensor_bytes =
            self.tensors().iter().fold(0_u64, |sum, one| sum.saturating_add(one.bytes()));
        let objects = self.native().map_or(&[][..], |native| native.objects());
        let processors = objects.iter().map(|object| object.processor.clone()).collect();
        let builder = match self.body() {
            ProgramBody::Builder(reference) => Some(reference.name.clone()),
            ProgramBody::Plan(_) | ProgramBody::Graph(_) => None,
        };
        Needs { kinds: kinds.collect(), kernels, builder, processors, tensor_bytes, code_bytes }
    }
}
