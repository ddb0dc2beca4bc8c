//! Programs of the field whose times on a2a3 silicon are published, compared with what the machine in virtual time says for the same graphs: with a cost model
//! of the field's scheduler, and with ours.
//!
//! Kernels take what PTO-ISA's cost model says of one 128 x 128 tile, times the four tiles of each call. They do not compute.

use pto_abi::{CoreKind, GmAddr};
use pto_aicore_kernels::func;
use pto_graph::{
    Arg, BuildError, DependencyMode, ElementType, StreamBuilder, TensorTask, TensorView,
    builder_set,
};
use pto_host::virtual_time::{Compute, KernelCosts, Profile, VirtualOptions, VirtualReport};
use pto_host::{
    Capacities, DeviceOptions, Hosting, KernelTimes, RunOptions, StreamCapacities, Work,
};
use serde::Serialize;

use crate::device;
use crate::runner::Error;
use crate::runner::pto::Die;

/// What the field's runtime spends on a task, as a profile.
const FIELD: &str = include_str!("../profiles/field.toml");
/// The seeds of which the median counts.
const SEEDS: std::ops::Range<u64> = 0..3;
/// Rows and columns of a tile.
const TILE: u64 = 128;
/// Tiles of a call of a kernel.
const TILES: u64 = 4;
/// Bytes of the tiles of a call.
const BYTES: u64 = TILES * TILE * TILE * 4;
/// Products, and as many sums.
const PAIRS: u64 = 500;
/// Sums into one tensor, one after the other.
const DEPTH: u64 = 2;
/// The field's window of tasks, and the bytes of its heap.
const WINDOW: u32 = 16_384;
const HEAP_BYTES: u64 = 256 << 20;
/// Memory of the simulated device; pages cost nothing until they are touched.
const GM_BYTES: u64 = 8 << 30;
/// How far the model of the field's scheduler may be from what is published.
pub const TOLERANCE: f64 = 0.2;

/// A program.
struct Published {
    name: &'static str,
    builder: &'static str,
    /// Effective time on the device, in us, oldest first.
    us: &'static [f64],
}

const PROGRAMS: [Published; 2] = [
    Published {
        name: "alternating matmul and add, case 1",
        builder: "alternating",
        us: &[772.0, 773.0],
    },
    Published { name: "batched GEMM, case 0", builder: "bgemm", us: &[598.0, 720.0, 725.0] },
];

/// A program whose time is published, and which no model here predicts.
#[derive(Clone, Copy, Debug)]
pub struct Unpredicted {
    /// The program.
    pub name: &'static str,
    /// Tasks.
    pub tasks: u64,
    /// What is published, in us.
    pub us: f64,
    /// Why it is not predicted.
    pub why: &'static str,
}

/// A layer of the decode step of a public program.
pub const UNPREDICTED: Unpredicted = Unpredicted {
    name: "decoder layer of a 14B model",
    tasks: 542,
    us: 902.9,
    why: "its kernels are for the vendor's compiler, and no time of any of them is published; how many of its tasks run at once depends on those times",
};

/// A row: one program.
#[derive(Clone, Debug, Serialize)]
pub struct FieldTiming {
    /// The program.
    pub program: String,
    /// Tasks.
    pub tasks: u64,
    /// What is published, in us, oldest first.
    pub published_us: Vec<f64>,
    /// In virtual time with the cost model of the field's scheduler, in us. The published times have shaped that model.
    pub theirs_us: f64,
    /// In virtual time with our scheduler, in us.
    pub ours_us: f64,
    /// What the kernels take at least on these cores, in us.
    pub bound_us: f64,
}

impl FieldTiming {
    /// The time with the field's scheduler over the newest time that is published.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.published_us.last().map_or(0.0, |published| self.theirs_us / published)
    }
}

builder_set! {
    struct TimedPrograms {}
    stream {
        "alternating" => alternating,
        "bgemm" => bgemm,
    }
}

fn base<G: StreamBuilder>(stream: &G) -> Result<GmAddr, BuildError> {
    let [base] = stream.orch_args() else { return Err(BuildError::Failed(1)) };
    Ok(GmAddr(*base))
}

/// The tiles of a call.
fn group(base: GmAddr, number: u64) -> TensorView<'static> {
    let elements = u32::try_from(BYTES / 4).unwrap_or(u32::MAX);
    TensorView::dense(base.offset(number * BYTES), ElementType::F32, &[elements])
}

/// Products and sums in turn, on tensors of their own: no task waits for another.
fn alternating<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let base = base(stream)?;
    for number in 0..2 * PAIRS {
        let [left, right, result] = [0, 1, 2].map(|one| group(base, 3 * number + one));
        let args = [Arg::In(&left), Arg::In(&right), Arg::Out(&result)];
        let (func_id, kind) = match number % 2 {
            0 => (func::EMPTY_AIC, CoreKind::AIC),
            _ => (func::EMPTY_AIV, CoreKind::AIV),
        };
        stream.submit_tensors(&TensorTask::new(func_id, kind, &args))?;
    }
    Ok(())
}

/// Each product goes into a temporary tensor, and a sum adds this to its result; two sums to a result, in a scope.
fn bgemm<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let base = base(stream)?;
    let config = TensorView::dense(base, ElementType::I64, &[4]);
    let elements = u32::try_from(BYTES / 4).unwrap_or(u32::MAX);
    for number in 0..PAIRS / DEPTH {
        let scope = stream.open_scope(DependencyMode::DERIVED)?;
        let sum = group(base, 1 + number);
        for depth in 0..DEPTH {
            let pair = 1 + PAIRS / DEPTH + 2 * (DEPTH * number + depth);
            let (left, right) = (group(base, pair), group(base, pair + 1));
            let product = stream.alloc(ElementType::F32, &[elements])?;
            let args = [Arg::In(&left), Arg::In(&right), Arg::Out(&product), Arg::In(&config)];
            stream.submit_tensors(&TensorTask::new(func::EMPTY_AIC, CoreKind::AIC, &args))?;
            let args = [Arg::InOut(&sum), Arg::In(&product), Arg::In(&config)];
            stream.submit_tensors(&TensorTask::new(func::EMPTY_AIV, CoreKind::AIV, &args))?;
        }
        stream.close_scope(scope)?;
    }
    Ok(())
}

/// What the kernels of the programs take: those without code stand for them.
fn costs() -> KernelCosts {
    let of = |kernel: pto_abi::FuncId, args: &[u64]| {
        let mut words = [0; 12];
        words.iter_mut().zip(args).for_each(|(word, arg)| *word = *arg);
        TILES * KernelCosts::Library { fallback: 0 }.of(kernel.0, 0, &words)
    };
    let product = of(func::MATMUL, &[0, 0, 0, TILE, TILE, TILE]);
    let sum = of(func::ADD, &[0, 0, 0, TILE * TILE]);
    let (aic, aiv) = (usize::from(func::EMPTY_AIC.0), usize::from(func::EMPTY_AIV.0));
    let mut by_func = vec![0; aic.max(aiv) + 1];
    (by_func[aic], by_func[aiv]) = (product, sum);
    // One table for the life of the process: every measurement has the same.
    KernelCosts::Table { by_func: Box::leak(by_func.into_boxed_slice()), fallback: 0 }
}

/// Runs a program on a profile.
fn run(
    builder: &str,
    die: Die,
    (seed, profile, costs): (u64, &'static Profile, KernelCosts),
) -> Result<Box<VirtualReport>, Error> {
    let options =
        VirtualOptions { seed, profile, costs, compute: Compute::Off, ..VirtualOptions::default() };
    let hosting = Hosting::Virtual(options);
    let options = DeviceOptions { aic: die.aic, aiv: die.aiv, gm_bytes: GM_BYTES, hosting };
    let mut device = device::open(options, TimedPrograms)?;
    device.register_library()?;
    let memory = device.memory().alloc((6 * PAIRS + 1) * BYTES)?;
    let stream = StreamCapacities {
        window: WINDOW,
        map_entries: 4 * WINDOW,
        heap_rings: 4,
        heap_bytes: HEAP_BYTES,
    };
    let each = 16 * u64::from(WINDOW);
    let capacities = Capacities { stream, arg_words: each, edges: each, ..Capacities::default() };
    let options = RunOptions {
        aicpu_instances: die.aicpu,
        kernel_times: KernelTimes::Skip,
        capacities,
        ..RunOptions::default()
    };
    let report = device.run(Work::Stream { builder, orch_args: &[memory.0] }, &options)?;
    report.virtual_report.ok_or(Error::NotVirtual)
}

/// The median of the seeds, in us.
fn median_us(builder: &str, die: Die, on: (&'static Profile, KernelCosts)) -> Result<f64, Error> {
    let mut all = Vec::new();
    for seed in SEEDS {
        all.push(run(builder, die, (seed, on.0, on.1))?.makespan_ns);
    }
    all.sort_unstable();
    Ok(all[all.len() / 2] as f64 / 1e3)
}

/// Every program of the table.
///
/// # Errors
/// Those of the device.
pub fn measure(die: Die, say: &mut dyn FnMut(&str)) -> Result<Vec<FieldTiming>, Error> {
    let theirs =
        Profile::load(FIELD).map_err(|error| Error::Profile { what: error.to_string() })?;
    let costs = costs();
    let mut rows = Vec::new();
    for Published { name, builder, us } in PROGRAMS {
        say(&format!("field timings of {name}"));
        let report = run(builder, die, (0, Profile::a2a3(), costs))?;
        let bound = report.kinds.iter().map(|kind| kind.work_bound_ns()).max().unwrap_or(0);
        rows.push(FieldTiming {
            program: name.to_owned(),
            tasks: report.kinds.iter().map(|kind| kind.parts).sum(),
            published_us: us.to_vec(),
            theirs_us: median_us(builder, die, (theirs, costs))?,
            ours_us: median_us(builder, die, (Profile::a2a3(), costs))?,
            bound_us: bound.max(report.critical_path_ns) as f64 / 1e3,
        });
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::{Die, TOLERANCE, measure};

    #[test]
    fn published_times_are_met_with_the_scheduler_of_the_field() {
        for row in measure(Die::default(), &mut |_| ()).unwrap() {
            assert_eq!(row.tasks, 1000, "{row:?}");
            assert!((row.ratio() - 1.0).abs() <= TOLERANCE, "{row:?}");
            assert!(row.bound_us < row.ours_us.min(row.theirs_us), "{row:?}");
        }
    }
}
