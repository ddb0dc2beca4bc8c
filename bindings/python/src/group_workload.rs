//! A workload on all ranks of a group: each rank has arrays of its own for the tensors, and processes of a pipeline are where the workload puts them.

use std::collections::BTreeMap;

use pto_host::graph::plan::BUILDER;
use pto_host::group::{Group, GroupError, GroupWork};
use pto_host::workload::{WorkloadBindings, WorkloadError, WorkloadRun};
use pto_host::workloads::plan::{Compiled, SymbolUse, compile};
use pto_host::workloads::tree::Workload;
use pto_host::{DeviceBuffer, RunOptions};

/// The arrays of a rank, by the names of the tensors. They are read before a run, and written after it.
pub(crate) type Arrays<'a> = BTreeMap<String, &'a mut [u8]>;

/// Why there is no result.
pub(crate) enum GroupRunError {
    /// The workload is none, or the arrays do not fit it.
    Refused(String),
    /// The run failed.
    Group(GroupError),
}

impl From<WorkloadError> for GroupRunError {
    fn from(error: WorkloadError) -> Self {
        Self::Refused(error.to_string())
    }
}

impl From<pto_host::Error> for GroupRunError {
    fn from(error: pto_host::Error) -> Self {
        Self::Refused(error.to_string())
    }
}

/// Reads, checks and compiles a workload.
pub(crate) fn compiled(text: &str) -> Result<Compiled, String> {
    let workload = Workload::parse(text).map_err(|error| error.to_string())?;
    let checked = workload.check().map_err(|error| error.to_string())?;
    compile(&checked).map_err(|error| error.to_string())
}

/// Runs the workload on all ranks; the seconds that it took on its devices.
pub(crate) fn run(
    group: &mut Group,
    compiled: &Compiled,
    numbers: &BTreeMap<String, u64>,
    arrays: &mut [Arrays<'_>],
) -> Result<f64, GroupRunError> {
    let known: Vec<&str> = compiled.tensors().iter().map(|tensor| tensor.name.as_str()).collect();
    for (rank, arrays) in arrays.iter().enumerate() {
        let found = format_args!("rank {rank} has an array");
        refuse_unknown(found, arrays.keys(), "tensor", &known)?;
    }
    let known: Vec<&str> = compiled.symbols().iter().map(|(name, _)| name.as_str()).collect();
    refuse_unknown(format_args!("there is a number"), numbers.keys(), "number", &known)?;
    let mut ranks = Vec::new();
    for (member, arrays) in group.members().iter().zip(&*arrays) {
        let mut bound = WorkloadBindings::new();
        let mut buffers: Vec<DeviceBuffer<u8>> = Vec::new();
        for tensor in compiled.tensors() {
            let rank = member.rank();
            let bytes = tensor.shape.iter().product::<u64>() * Compiled::element(tensor).bytes();
            let array = arrays.get(&tensor.name).ok_or_else(|| {
                GroupRunError::Refused(format!(
                    "rank {rank} has no array for the tensor {}",
                    tensor.name
                ))
            })?;
            if array.len() as u64 != bytes {
                let found = array.len();
                return Err(GroupRunError::Refused(format!(
                    "the array of rank {rank} for the tensor {} has {found} bytes, and the tensor {bytes}",
                    tensor.name
                )));
            }
            let buffer = member.device().upload(array)?;
            bound = bound.tensor(&tensor.name, buffer.address());
            buffers.push(buffer);
        }
        for (name, used) in compiled.symbols() {
            let Some(number) = numbers.get(name) else { continue };
            bound = match used {
                SymbolUse::Size(_) => bound.size(name, *number),
                SymbolUse::Number | SymbolUse::Float => bound.symbol(name, *number),
            };
        }
        ranks.push((WorkloadRun::bind(member.device(), compiled.clone(), &bound)?, buffers));
    }
    let words = |rank: u32| {
        ranks.get(rank as usize).map(|(run, _)| run.orch_args().to_vec()).unwrap_or_default()
    };
    let options = RunOptions { aicpu_instances: 2, ..RunOptions::default() };
    let report = group.run(&GroupWork { builder: BUILDER, args: &words }, &options);
    let report = report.map_err(|error| with_fault(error, ranks.iter().map(|(run, _)| run)))?;
    for ((_, buffers), arrays) in ranks.iter().zip(arrays) {
        for (tensor, buffer) in compiled.tensors().iter().zip(buffers) {
            if let Some(array) = arrays.get_mut(&tensor.name) {
                array.copy_from_slice(&buffer.read()?);
            }
        }
    }
    Ok(report.makespan().as_secs_f64())
}

/// A name that is none of the workload's is a mistake: its value would not be read.
fn refuse_unknown<'n>(
    found: std::fmt::Arguments<'_>,
    mut names: impl Iterator<Item = &'n String>,
    what: &str,
    known: &[&str],
) -> Result<(), GroupRunError> {
    let Some(unknown) = names.find(|name| !known.contains(&name.as_str())) else { return Ok(()) };
    let there_is = match known {
        [] => format!("it has no {what}s"),
        known => format!("its {what}s are {}", known.join(", ")),
    };
    Err(GroupRunError::Refused(format!(
        "{found} for '{unknown}', which the workload does not have; {there_is}"
    )))
}

/// The failure of a run, with what the first rank says of its workload, if one says something.
fn with_fault<'r>(
    error: GroupError,
    ranks: impl Iterator<Item = &'r WorkloadRun>,
) -> GroupRunError {
    let said = ranks.filter_map(|run| run.fault().ok().flatten()).next();
    match said {
        Some(fault) => GroupRunError::Refused(format!("{fault}\n{error}")),
        None => GroupRunError::Group(error),
    }
}
