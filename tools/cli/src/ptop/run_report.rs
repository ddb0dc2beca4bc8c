//! The report of a program's run, as text and as JSON.

use std::time::Duration;

use pto_examples::host::check::Nans;
use pto_host::stitch::{Counters, HostTensor};
use pto_host::workloads::tile::DType;
use pto_host::workloads::tile::element::{bf16, f16};
use serde_json::{Map, Value, json};

use super::judge::Judged;
use crate::errors::{Exit, Failure};
use crate::form::Form;
use crate::output::answer_with_failures;
use crate::text::{counted, duration, grouped, table};

/// What is reported of a run.
pub(crate) struct RunSummary {
    pub(crate) program: String,
    pub(crate) rounds: u64,
    /// The tensors that were given, with how many of their elements are NaN.
    pub(crate) given: Vec<(String, u64)>,
    pub(crate) outputs: Vec<(String, HostTensor)>,
    pub(crate) judged: Vec<Judged>,
    pub(crate) counters: Counters,
    /// Of each run, on this machine.
    pub(crate) times: Vec<Duration>,
    /// Of all runs, in virtual time.
    pub(crate) virtual_time: Option<Duration>,
    /// Bytes of device memory that were not given back.
    pub(crate) left_bytes: u64,
    /// Whether a fault that was asked for did not happen, and had to.
    pub(crate) missed_fault: bool,
    /// What a model says of itself.
    pub(crate) facts: Vec<(&'static str, String)>,
    pub(crate) files: Files,
}

/// The files that were asked for.
#[derive(Default)]
pub(crate) struct Files {
    /// Outputs that are there.
    pub(crate) saved: Vec<String>,
    /// Why others are not.
    pub(crate) unwritten: Vec<Failure>,
}

/// Answers; a result that is wrong, memory that is left, or a fault that did not happen is a failure.
pub(crate) fn answer_run(json: bool, summary: &RunSummary) -> Result<Exit, Failure> {
    let is_right = summary.judged.iter().all(|one| one.is_right)
        && summary.left_bytes == 0
        && !summary.missed_fault;
    let exit = match (is_right, summary.files.unwritten.is_empty()) {
        (false, _) => Exit::Wrong,
        (true, false) => Exit::Internal,
        (true, true) => Exit::Pass,
    };
    let unwritten: Vec<_> = summary.files.unwritten.iter().collect();
    answer_with_failures(Form::from(json), exit, &unwritten, || text(summary), || as_json(summary))
}

/// How many elements are NaN.
fn nans(tensor: &HostTensor) -> u64 {
    fn count<const SIZE: usize>(bytes: &[u8], is_nan: fn([u8; SIZE]) -> bool) -> u64 {
        bytes.as_chunks().0.iter().filter(|element| is_nan(**element)).count() as u64
    }
    match tensor.dtype() {
        DType::F16 => count(tensor.bytes(), |element| f16::from_le_bytes(element).is_nan()),
        DType::BF16 => count(tensor.bytes(), |element| bf16::from_le_bytes(element).is_nan()),
        DType::F32 => count(tensor.bytes(), |element| f32::from_le_bytes(element).is_nan()),
        DType::F64 => count(tensor.bytes(), |element| f64::from_le_bytes(element).is_nan()),
        // Integers are always numbers.
        _ => 0,
    }
}

/// The shortest, the median, and the longest of the runs.
fn spread(times: &[Duration]) -> [Duration; 3] {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let at = |index: usize| sorted.get(index).copied().unwrap_or_default();
    [at(0), at(sorted.len() / 2), at(sorted.len().saturating_sub(1))]
}

fn text(summary: &RunSummary) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut row = |name: &str, value: String| rows.push(vec![name.to_owned(), value]);
    row("program", format!("{}, {}", summary.program, counted(summary.rounds, "run")));
    summary.facts.iter().for_each(|(name, fact)| row(name, fact.clone()));
    let [least, median, most] = spread(&summary.times).map(duration);
    row("a run", format!("{median} (from {least} to {most} on this machine)"));
    if let Some(time) = summary.virtual_time {
        row("all runs", format!("{} of virtual time", duration(time)));
    }
    for (name, value) in summary.counters.all().into_iter().filter(|(_, value)| *value > 0) {
        row(name, grouped(value));
    }
    let leak = match summary.left_bytes {
        0 => "everything was given back".to_owned(),
        bytes => format!("{} bytes were NOT given back", grouped(bytes)),
    };
    row("device memory", leak);
    for (name, nan) in summary.given.iter().filter(|(_, nan)| *nan > 0) {
        row("given", format!("{name}: {} of its values are NaN", grouped(*nan)));
    }
    for (name, tensor) in &summary.outputs {
        let nans = match nans(tensor) {
            0 => String::new(),
            nan => format!(", {} of its values are NaN", grouped(nan)),
        };
        row("gives", format!("{name} {}{:?}{nans}", tensor.dtype(), tensor.shape()));
    }
    for one in &summary.judged {
        row(if one.is_right { "PASS" } else { "FAIL" }, judged_text(one));
    }
    summary.files.saved.iter().for_each(|path| row("saved", path.clone()));
    table(&rows, &[])
}

fn judged_text(judged: &Judged) -> String {
    let Judged { name, elements, wrong, largest_error, pcc, nans, .. } = judged;
    let nan = match nans {
        Nans { found: 0, expected: 0 } => String::new(),
        Nans { found, expected } => format!(
            "; NaN: {} of the result, {} of the file",
            counted(*found, "value"),
            grouped(*expected)
        ),
    };
    format!(
        "{name}: {} of {} too far away, the largest error is {largest_error:.3e}, PCC {pcc:.6}{nan}",
        grouped(*wrong as u64),
        counted(*elements as u64, "value"),
    )
}

/// Whole nanoseconds; of more than 584 years as many as fit.
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn as_json(summary: &RunSummary) -> Value {
    let counters: Map<String, Value> = summary
        .counters
        .all()
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();
    let [least, median, most] = spread(&summary.times).map(nanoseconds);
    let judged = |one: &Judged| {
        json!({
            "name": one.name,
            "elements": one.elements,
            "wrong": one.wrong,
            "largest_error": one.largest_error,
            "pcc": one.pcc,
            "nan": { "found": one.nans.found, "expected": one.nans.expected },
            "is_right": one.is_right,
        })
    };
    let output = |(name, tensor): &(String, HostTensor)| json!({ "name": name, "dtype": tensor.dtype().name(), "shape": tensor.shape(), "nan": nans(tensor) });
    json!({
        "program": summary.program,
        "rounds": summary.rounds,
        "facts": summary.facts.iter().map(|(name, text)| json!({ "name": name, "text": text })).collect::<Vec<_>>(),
        "outputs": summary.outputs.iter().map(output).collect::<Vec<_>>(),
        "compared": summary.judged.iter().map(judged).collect::<Vec<_>>(),
        "counters": counters,
        "run_ns": { "least": least, "median": median, "most": most },
        "virtual_ns": summary.virtual_time.map(nanoseconds),
        "left_bytes": summary.left_bytes,
        "saved": summary.files.saved,
        "unwritten": summary.files.unwritten.iter().map(Failure::message).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use pto_host::stitch::HostTensor;
    use pto_host::workloads::tile::DType;

    use super::nans;

    #[test]
    fn nan_of_every_float_is_counted() {
        // All bits set: a NaN of each float, and -1 of an integer; then zeros.
        for (dtype, size, found) in [
            (DType::F16, 2, 1),
            (DType::BF16, 2, 1),
            (DType::F32, 4, 1),
            (DType::F64, 8, 1),
            (DType::I32, 4, 0),
        ] {
            let mut bytes = vec![0xFF; size];
            bytes.extend(vec![0; 2 * size]);
            let tensor = HostTensor::new(dtype, &[3], bytes).expect("three elements");
            assert_eq!(nans(&tensor), found, "{dtype}");
        }
    }
}
