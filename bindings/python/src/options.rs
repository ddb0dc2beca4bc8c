//! Keyword arguments of a run: names as in `RunOptions` of the host, seconds for times.

use std::time::Duration;

use pto_host::abi::stream::StreamCapacities;
use pto_host::abi::{BuildMode, FanoutStrategy};
use pto_host::{KernelTimes, RunOptions, TraceOptions};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::failure::{invalid, raised_from, unknown};

const KNOWN: &str = "build_mode, fanout, aicpu_instances, tasks, arg_words, edges, task_budget, stall_budget, \
                     bring_up_budget, run_budget, kernel_times, trace, progress, window, map_entries, heap_rings, \
                     heap_bytes";

/// The options of a run, and the function that gets its progress.
pub(crate) struct RunSettings {
    pub(crate) options: RunOptions,
    /// The build mode, if a keyword says it.
    pub(crate) build_mode: Option<BuildMode>,
    pub(crate) progress: Option<Py<PyAny>>,
}

impl RunSettings {
    /// The environment's build mode, then what the keywords say.
    pub(crate) fn from_keywords(keywords: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut options = RunOptions::from_environment().map_err(raised_from)?;
        let (mut asked_mode, mut progress) = (None, None);
        let mut stream = None;
        for (name, value) in keywords.into_iter().flatten() {
            let name: String = name.extract()?;
            match name.as_str() {
                "build_mode" => asked_mode = Some(build_mode(&value)?),
                "fanout" => options.fanout = fanout(&value)?,
                "aicpu_instances" => options.aicpu_instances = value.extract()?,
                "tasks" => options.capacities.tasks = value.extract()?,
                "arg_words" => options.capacities.arg_words = value.extract()?,
                "edges" => options.capacities.edges = value.extract()?,
                "window" => asked(&mut stream).window = value.extract()?,
                "map_entries" => asked(&mut stream).map_entries = value.extract()?,
                "heap_rings" => asked(&mut stream).heap_rings = value.extract()?,
                "heap_bytes" => asked(&mut stream).heap_bytes = value.extract()?,
                "task_budget" => options.task_budget = seconds(&name, &value)?,
                "stall_budget" => options.stall_budget = seconds(&name, &value)?,
                "bring_up_budget" => options.bring_up_budget = seconds(&name, &value)?,
                "run_budget" if value.is_none() => options.run_budget = None,
                "run_budget" => options.run_budget = Some(seconds(&name, &value)?),
                "kernel_times" => {
                    let measure: bool = value.extract()?;
                    options.kernel_times =
                        if measure { KernelTimes::Measure } else { KernelTimes::Skip };
                }
                "trace" => {
                    options.trace = value.extract::<bool>()?.then(TraceOptions::default);
                }
                "progress" => progress = (!value.is_none()).then(|| value.unbind()),
                _ => {
                    let message = format!("a run has no option {name:?}; there are {KNOWN}");
                    return Err(PyTypeError::new_err(message));
                }
            }
        }
        options.build_mode = asked_mode.unwrap_or(options.build_mode);
        options.capacities.stream = stream.unwrap_or(StreamCapacities::OFF);
        Ok(Self { options, build_mode: asked_mode, progress })
    }
}

/// The windows that keywords ask for; what they do not name is as usual.
fn asked(stream: &mut Option<StreamCapacities>) -> &mut StreamCapacities {
    stream.get_or_insert(StreamCapacities::STANDARD)
}

fn build_mode(value: &Bound<'_, PyAny>) -> PyResult<BuildMode> {
    if let Ok(number) = value.extract::<u32>() {
        return BuildMode::try_from(number).map_err(|_| {
            unknown("build mode", &number.to_string(), "0 (sequential), 1 (concurrent)")
        });
    }
    let name: String = value.extract()?;
    let known = BuildMode::from_name(&name);
    known.ok_or_else(|| unknown("build mode", &name, "\"sequential\" or \"concurrent\""))
}

fn fanout(value: &Bound<'_, PyAny>) -> PyResult<FanoutStrategy> {
    let name: String = value.extract()?;
    let known = FanoutStrategy::from_name(&name);
    known.ok_or_else(|| unknown("fanout", &name, "\"lock-free\" or \"locked\""))
}

fn seconds(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let seconds: f64 = value.extract()?;
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| invalid(format!("{name} is {seconds}: give seconds above zero")))
}
