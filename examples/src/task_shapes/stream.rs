//! The program of `task_shapes`: whatever the plan in GM says. The same program in C++ is `linker/example-firmware/c/shapes.cpp`.
//!
//! ```text
//! layer 0  recorded on the matrix "first", replayed on first, second, first; the next one submitted on second; and so on
//!   for each task of the plan:   part_aic, part_aiv   on a row of the matrix, if a cell of a row is below a bound, or is not
//! ```
//! A task writes one row, and reads one cell if it has a predicate: these are its only edges, within the layer and to others.

use pto_abi::{CoreKind, Fault, FuncId, GmAddr};
use pto_aicore_kernels::func;
use pto_aicore_kernels::parts::{ALL_BLOCKS, ALONE, BLOCK_WORDS};
use pto_graph::{
    Arg, Bindings, BuildError, Comparison, ElementType, Predicate, Priority, StreamBuilder,
    TensorTask, TensorView,
};

use crate::args::Size;
use crate::streaming::dense;

/// Words of the plan (`u32`) for a task: row, cores, blocks, start, priority, comparison, row and cell of the predicate.
pub const PLAN_WORDS: u64 = 8;
/// The word `comparison` of a task without a predicate; others are one more than the comparison's number.
pub const ALWAYS: u32 = 0;
/// What a predicate compares with: every second value is below.
pub const BOUND: u64 = 1 << 63;
/// Of so many layers the last one is submitted, the others are replayed.
pub const PERIOD: u64 = 4;
/// The builder's own error: the plan has a shape that no task has.
pub const BAD_PLAN: i32 = 1;

crate::orch_args! {
    /// The words of `task_shapes`.
    pub struct Args {
        /// `u64 [rows, blocks, BLOCK_WORDS]`.
        first: GmAddr,
        /// As `first`.
        second: GmAddr,
        /// `u32 [tasks, PLAN_WORDS]`.
        plan: GmAddr,
        /// Rows of a matrix.
        rows: Size,
        /// Most blocks of a task.
        blocks: Size,
        /// Tasks of a layer.
        tasks: Size,
        /// Layers.
        layers: Size,
        /// 1: parts that start together wait for each other.
        meet: u64,
        /// What the layers' salts start from.
        seed: u64,
    }
}

/// Submits the tasks.
///
/// # Errors
/// `BUILD_ORCH_ARGS`, [`BAD_PLAN`], and those of [`StreamBuilder`].
pub fn build<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let args = Args::from_words(stream.orch_args())?;
    let shape = [args.rows.get(), BLOCK_WORDS * args.blocks.get()];
    let first = dense(args.first, ElementType::U64, &shape)?;
    let second = dense(args.second, ElementType::U64, &shape)?;
    let recording = stream.record(&[first], |stream, bound| {
        layer(stream, &args, &bound.tensor(0), bound.scalar(0))
    })?;
    for number in 0..args.layers.get() {
        let matrix = if number % 2 == 0 { first } else { second };
        let salt = args.seed.wrapping_add(number);
        if number % PERIOD == PERIOD - 1 {
            layer(stream, &args, &matrix, Arg::Scalar(salt))?;
        } else {
            stream.replay(&recording, &Bindings { tensors: &[matrix], scalars: &[salt] })?;
        }
    }
    Ok(())
}

/// The tasks of the plan on a matrix.
fn layer<G: StreamBuilder>(
    stream: &mut G,
    args: &Args,
    matrix: &TensorView<'_>,
    salt: Arg<'_>,
) -> Result<(), BuildError> {
    for task in 0..args.tasks.get() {
        Planned::read(stream, args, task)?.submit(stream, args, matrix, salt)?;
    }
    Ok(())
}

/// A task of the plan.
struct Planned {
    row: u32,
    cores: u32,
    blocks: u32,
    start: u32,
    priority: u32,
    comparison: u32,
    cell: [u32; 2],
}

impl Planned {
    fn read<G: StreamBuilder>(stream: &G, args: &Args, task: u64) -> Result<Self, Fault> {
        let at = args.plan.offset(4 * PLAN_WORDS * task);
        let word = |number: u64| stream.read_u32(at.offset(4 * number));
        let cell = [word(6)?, word(7)?];
        Ok(Self {
            row: word(0)?,
            cores: word(1)?,
            blocks: word(2)?,
            start: word(3)?,
            priority: word(4)?,
            comparison: word(5)?,
            cell,
        })
    }

    /// The kernels of a block, by its cores as bits: cube, vector, vector.
    fn kernels(&self) -> Option<(FuncId, CoreKind, &'static [FuncId])> {
        const VECTOR_KERNELS: &[FuncId] = &[func::PART_AIV, func::PART_AIV];
        Some(match self.cores {
            0b001 => (func::PART_AIC, CoreKind::AIC, &[]),
            0b010 => (func::PART_AIV, CoreKind::AIV, &[]),
            0b011 => (func::PART_AIC, CoreKind::AIC, &[func::PART_AIV]),
            0b110 => (func::PART_AIV, CoreKind::AIV, &[func::PART_AIV]),
            0b111 => (func::PART_AIC, CoreKind::AIC, VECTOR_KERNELS),
            _ => return None,
        })
    }

    /// The kernels' word `group`.
    fn group(&self, meet: u64) -> u64 {
        let parts = u64::from(self.cores.count_ones());
        match (meet, self.start) {
            (1, 1) => ALL_BLOCKS | (parts * u64::from(self.blocks)),
            (1, _) => parts,
            _ => ALONE,
        }
    }

    fn submit<G: StreamBuilder>(
        &self,
        stream: &mut G,
        args: &Args,
        matrix: &TensorView<'_>,
        salt: Arg<'_>,
    ) -> Result<(), BuildError> {
        let bad = BuildError::Failed(BAD_PLAN);
        let fits = u64::from(self.blocks) <= args.blocks.get();
        let (func_id, kind, vectors) = self.kernels().filter(|_| fits).ok_or(bad)?;
        let byte = |word: u32| u8::try_from(word).map_err(|_| bad);
        let priority = Priority::try_from(byte(self.priority)?).map_err(|_| bad)?;
        let cells = matrix.slice(0, self.row, 1);
        let words = [Arg::InOut(&cells), salt, Arg::Scalar(self.group(args.meet))];
        let task = TensorTask::new(func_id, kind, &words).mix(vectors);
        let task = task.blocks(self.blocks).priority(priority);
        let task = if self.start == 1 { task.sync_start() } else { task };
        if self.comparison == ALWAYS {
            stream.submit_tensors(&task)?;
            return Ok(());
        }
        let comparison = Comparison::try_from(byte(self.comparison - 1)?).map_err(|_| bad)?;
        let predicate = Predicate::new(matrix, &self.cell, comparison, BOUND);
        stream.submit_tensors(&task.when(&predicate))?;
        Ok(())
    }
}
