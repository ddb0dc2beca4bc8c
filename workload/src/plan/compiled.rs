//! A workload that was compiled.

use pto_abi::FuncId;
use pto_graph::ElementType;
use pto_graph::plan::layout::{
    HEADER_WORDS, KERNEL_WORDS, MAGIC, PARAM_WORDS, TENSOR_WORDS, VERSION, header, limits,
};
use pto_graph::plan::{Plan, Stop, TensorUse};

use crate::kernel::TileKernel;
use crate::tree::{Checked, Schedule, TaskWindow, Tensor, TreeNode, WindowMode, Workload};

use super::error::PlanError;
use super::kernels::{self, element};
use super::names::{SymbolTable, SymbolUse, number};
use super::nodes::{PlanWriter, lanes};
use super::source_map::SourceMap;

/// A workload that was compiled: what a device gets, and what errors name. [`Plan::accept`] accepts its words.
#[derive(Clone, Debug)]
pub struct Compiled {
    pub(super) name: String,
    pub(super) words: Vec<u32>,
    pub(super) code: Vec<u8>,
    pub(super) tensors: Vec<Tensor>,
    pub(super) kernels: Vec<TileKernel>,
    pub(super) symbols: Vec<(String, SymbolUse)>,
    pub(super) arrays: Vec<String>,
    pub(super) window: TaskWindow,
    pub(super) places: SourceMap,
}

/// Slots of a ring where the schedule has no window, and at most.
const MOST_SLOTS: u64 = 8192;

impl Compiled {
    /// The name of the workload.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The plan.
    #[must_use]
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// The plan, whose kernels have the func ids `first`, `first + 1`, and so on, instead of that of the library's kernel.
    #[must_use]
    pub fn words_from_func(&self, first: FuncId) -> Vec<u32> {
        let mut words = self.words.clone();
        let mut at = HEADER_WORDS + self.tensors.len() * TENSOR_WORDS;
        for func in (u32::from(first.0)..).take(self.kernels.len()) {
            let Some(word) = words.get_mut(at) else { break };
            *word = *word & !0xFFFF | func & 0xFFFF;
            at += KERNEL_WORDS + (*word >> 24) as usize * PARAM_WORDS;
        }
        words
    }

    /// The kernels, in the order of their numbers: name, and the kernel of the library that executes it.
    pub fn kernels(&self) -> impl Iterator<Item = (&str, &'static str)> {
        self.kernels.iter().map(|kernel| (kernel.name(), kernels::executor(kernel)))
    }

    /// The code of the kernels.
    #[must_use]
    pub fn code(&self) -> &[u8] {
        &self.code
    }

    /// The tensors, in the order in which their descriptors are bound.
    #[must_use]
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// The symbols, in the order in which their values are bound.
    #[must_use]
    pub fn symbols(&self) -> &[(String, SymbolUse)] {
        &self.symbols
    }

    /// For each tile kernel the parameters whose tiles are always tiles of tensors of which `is_one` says so, by the tensor's number.
    #[must_use]
    pub fn params_of(&self, is_one: impl Fn(usize) -> bool) -> Vec<Vec<usize>> {
        let mut uses = std::collections::BTreeMap::new();
        let accepted = Plan::accept_with(&self.words, |used: TensorUse| {
            let all = uses.entry((used.kernel as usize, used.param as usize)).or_insert(true);
            *all &= is_one(used.tensor as usize);
        });
        debug_assert!(accepted.is_ok(), "it was checked when it was made: {accepted:?}");
        let of = |kernel: usize| {
            let all = uses.iter().filter(|((of, _), all)| *of == kernel && **all);
            all.map(|((_, param), _)| *param).collect()
        };
        (0..self.tile_kernels().len()).map(of).collect()
    }

    /// The arrays, in the order in which they are bound.
    #[must_use]
    pub fn arrays(&self) -> &[String] {
        &self.arrays
    }

    /// The kernels themselves.
    #[must_use]
    pub fn tile_kernels(&self) -> &[TileKernel] {
        &self.kernels
    }

    /// Which words of the plan are which loop, kernel and argument.
    #[must_use]
    pub const fn places(&self) -> &SourceMap {
        &self.places
    }

    /// Tasks that may be under way, as the schedule says.
    #[must_use]
    pub const fn task_window(&self) -> TaskWindow {
        self.window
    }

    /// Slots of the ring: the largest power of two that is in the schedule's window, so that at most this many tasks are under way as
    /// it says.
    #[must_use]
    pub fn window(&self) -> u32 {
        let tasks =
            if self.window.tasks == 0 { MOST_SLOTS } else { self.window.tasks.min(MOST_SLOTS) };
        u32::try_from(1 << tasks.ilog2()).unwrap_or(1)
    }

    /// Words of scratch memory that a core needs to execute any of the kernels.
    #[must_use]
    pub fn frame_words(&self) -> usize {
        self.kernels.iter().map(|kernel| kernel.code().scratch_words()).max().unwrap_or(0)
    }

    /// The element type of a tensor in GM.
    #[must_use]
    pub const fn element(tensor: &Tensor) -> ElementType {
        element(tensor.dtype)
    }
}

/// Compiles a workload.
///
/// # Errors
/// It has more of something than a plan holds, or a schedule that a device does not keep.
pub fn compile(checked: &Checked) -> Result<Compiled, PlanError> {
    let workload = checked.workload();
    check_schedule(workload)?;
    check_pipeline(workload)?;
    check_counts(
        workload,
        [
            ("tensors", workload.tensors.len(), limits::TENSORS),
            ("kernels", workload.kernels.len(), limits::KERNELS),
        ],
    )?;
    let mut words = vec![0; HEADER_WORDS];
    for tensor in &workload.tensors {
        words.extend(tensor_words(tensor)?);
    }
    let mut code = Vec::new();
    for kernel in &workload.kernels {
        kernels::write(kernel, &mut words, &mut code);
    }
    let root = words.len();
    let (names, places, process) = (SymbolTable::default(), SourceMap::default(), String::new());
    let mut writer = PlanWriter { workload, words, names, places, process };
    writer.schedule();
    writer.node(&workload.root);
    let PlanWriter { mut words, names, places, .. } = writer;
    let counts = [
        ("symbols", names.symbols.len(), limits::SYMBOLS),
        ("arrays", names.arrays.len(), limits::ARRAYS),
        ("words of plan", words.len(), limits::WORDS),
    ];
    check_counts(workload, counts)?;
    if let Some(number) = names.missing {
        return Err(PlanError::Param { workload: workload.name.clone(), number });
    }
    let head = [
        (header::MAGIC, MAGIC),
        (header::VERSION, VERSION),
        (header::WORDS, number(words.len())),
        (header::TENSORS, number(workload.tensors.len())),
        (header::KERNELS, number(workload.kernels.len())),
        (header::SYMBOLS, number(names.symbols.len())),
        (header::ARRAYS, number(names.arrays.len())),
        (header::ROOT, number(root)),
    ];
    for (at, value) in head {
        words[at] = value;
    }
    // What is nested too deep, the reader of plans finds.
    if let Err(Stop { fault, at, .. }) = Plan::accept(&words) {
        let location = places.of(at).map_or("the head", |part| &part.text).to_owned();
        return Err(PlanError::Refused { location, fault, at });
    }
    let Workload { name, tensors, kernels, schedule, .. } = workload.clone();
    let SymbolTable { symbols, arrays, .. } = names;
    let window = schedule.window;
    Ok(Compiled { name, words, code, tensors, kernels, symbols, arrays, window, places })
}

/// Whether a device keeps the schedule.
fn check_schedule(workload: &Workload) -> Result<(), PlanError> {
    let Schedule { workers, window, batch, start, .. } = &workload.schedule;
    let name = || workload.name.clone();
    if window.mode != WindowMode::Stall {
        return Err(PlanError::WindowMode { workload: name(), mode: window.mode.name() });
    }
    // A task that is held back has a slot of the ring.
    let slots = usize::try_from(slots(*window)).unwrap_or(0);
    let size = |tasks: u64| usize::try_from(tasks).unwrap_or(usize::MAX);
    check_counts(
        workload,
        [
            ("workers", size(*workers), limits::LANES),
            ("tasks in a batch", size(*batch), limits::HELD.min(slots)),
            ("tasks before the first one starts", size(*start), limits::HELD.min(slots)),
        ],
    )
}

/// Whether a plan has room for the processes and channels, where there are some.
fn check_pipeline(workload: &Workload) -> Result<(), PlanError> {
    let TreeNode::Pipeline(processes) = &workload.root else { return Ok(()) };
    if lanes(workload).is_some() {
        return Err(PlanError::Pipeline(workload.name.clone()));
    }
    let places = workload.channels.iter().map(|channel| match channel.depth {
        0 => processes.len(),
        depth => usize::try_from(depth).unwrap_or(usize::MAX),
    });
    check_counts(
        workload,
        [
            ("processes", processes.len(), limits::PROCESSES),
            ("channels", workload.channels.len(), limits::CHANNELS),
            (
                "places for tokens in its channels",
                places.fold(0, usize::saturating_add),
                limits::TOKENS,
            ),
        ],
    )
}

/// Slots of the ring.
fn slots(window: TaskWindow) -> u64 {
    let tasks = if window.tasks == 0 { MOST_SLOTS } else { window.tasks.min(MOST_SLOTS) };
    1 << tasks.ilog2()
}

fn check_counts<const N: usize>(
    workload: &Workload,
    counts: [(&'static str, usize, usize); N],
) -> Result<(), PlanError> {
    let wrong = counts.into_iter().find(|(_, found, limit)| found > limit);
    wrong.map_or(Ok(()), |(what, found, limit)| {
        Err(PlanError::TooMany { workload: workload.name.clone(), what, found, limit })
    })
}

fn tensor_words(tensor: &Tensor) -> Result<Vec<u32>, PlanError> {
    let (name, rank) = (tensor.name.clone(), tensor.shape.len());
    if rank > limits::RANK {
        return Err(PlanError::Rank { name, found: rank, limit: limits::RANK });
    }
    let mut words = vec![u32::from(element(tensor.dtype).get()) | number(rank) << 8];
    for extent in &tensor.shape {
        let found = u32::try_from(*extent).ok().filter(|extent| *extent > 0);
        words.push(found.ok_or_else(|| PlanError::Extent { name: name.clone(), extent: *extent })?);
    }
    words.resize(1 + limits::RANK, 0);
    Ok(words)
}
