//! What the programs share: a workload with its inputs, its runs, and the check of its result.

use pto_examples::host::open_sim;
use pto_host::workload::{WorkloadBindings, WorkloadRun};
use pto_host::workloads::clock::{self, Bindings};
use pto_host::workloads::plan::{Compiled, compile};
use pto_host::workloads::{Checked, Workload};
use pto_host::{Device, DeviceOptions, Hosting, RunOptions};

pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// A workload, what it is bound to, and what it is to compute.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    checked: Checked,
    compiled: Compiled,
    pub(crate) floats: Vec<(&'static str, Vec<f32>)>,
    pub(crate) integers: Vec<(&'static str, Vec<i32>)>,
    /// Arrays of axes.
    pub(crate) arrays: Vec<(&'static str, Vec<i32>)>,
    pub(crate) symbols: Vec<(&'static str, u64)>,
    /// The tensor that counts.
    pub(crate) result: &'static str,
    pub(crate) expected: Vec<f64>,
    pub(crate) tasks: u64,
}

/// What a run gave.
pub(crate) struct TileRun {
    pub(crate) result: Vec<f32>,
    pub(crate) tasks: u64,
    /// On the `v9` clock; 0 of a run on a device.
    pub(crate) cycles: u64,
}

/// A small device of the simulator.
pub(crate) fn device(hosting: Hosting) -> Outcome<Device> {
    let mut device = open_sim(DeviceOptions { aic: 4, aiv: 8, gm_bytes: 1 << 30, hosting })?;
    device.register_library()?;
    Ok(device)
}

impl Program {
    /// Reads, checks and compiles the text of a workload.
    pub(crate) fn new(name: &'static str, text: &str, result: &'static str) -> Outcome<Self> {
        let checked = Workload::parse(text)?.check()?;
        let compiled = compile(&checked)?;
        let (floats, integers, arrays) = (Vec::new(), Vec::new(), Vec::new());
        let (symbols, expected, tasks) = (Vec::new(), Vec::new(), 0);
        Ok(Self {
            name,
            checked,
            compiled,
            floats,
            integers,
            arrays,
            symbols,
            result,
            expected,
            tasks,
        })
    }

    #[cfg(test)]
    pub(crate) const fn compiled(&self) -> &Compiled {
        &self.compiled
    }

    /// Runs it on this machine, task by task in program order.
    pub(crate) fn in_program_order(&self) -> Outcome<TileRun> {
        let (mut floats, mut integers) = (self.floats.clone(), self.integers.clone());
        let mut bindings = Bindings::new();
        for (name, values) in &mut floats {
            bindings = bindings.dense(&self.checked, name, values)?;
        }
        for (name, values) in &mut integers {
            bindings = bindings.dense(&self.checked, name, values)?;
        }
        for (name, values) in &self.arrays {
            bindings = bindings.array(name, values);
        }
        for (name, value) in &self.symbols {
            bindings = bindings.symbol(name, *value);
        }
        let report = clock::run(&self.checked, &bindings)?;
        drop(bindings);
        let result = floats.into_iter().find(|(name, _)| *name == self.result);
        let (_, result) = result.ok_or("the result is a tensor")?;
        Ok(TileRun { result, tasks: report.tasks, cycles: report.total_cycles })
    }

    /// Runs it on a device: its AICPU expands the loops, and its cores execute the kernels.
    pub(crate) fn on(&self, device: &mut Device) -> Outcome<TileRun> {
        let mut bound = WorkloadBindings::new();
        let mut floats = Vec::new();
        for (name, values) in &self.floats {
            let buffer = device.upload(values)?;
            bound = bound.tensor(name, buffer.address());
            floats.push((*name, buffer));
        }
        let mut integers = Vec::new();
        for (name, values) in &self.integers {
            let buffer = device.upload(values)?;
            bound = bound.tensor(name, buffer.address());
            integers.push(buffer);
        }
        for (name, values) in &self.arrays {
            let buffer = device.upload(values)?;
            bound = bound.array_of(name, &buffer);
            integers.push(buffer);
        }
        for (name, value) in &self.symbols {
            bound = bound.symbol(name, *value);
        }
        let run = WorkloadRun::bind(device, self.compiled.clone(), &bound)?;
        let report = run.run(device, &RunOptions::default())?;
        let result = floats.iter().find(|(name, _)| *name == self.result);
        let (_, result) = result.ok_or("the result is a tensor")?;
        Ok(TileRun { result: result.read()?, tasks: report.tasks, cycles: 0 })
    }

    /// The first element that is not what it is to be.
    pub(crate) fn wrong(&self, result: &[f32]) -> Option<String> {
        if result.len() != self.expected.len() {
            return Some(format!("{} elements, not {}", result.len(), self.expected.len()));
        }
        let mut pairs = result.iter().zip(&self.expected).enumerate();
        let wrong = pairs.find(|(_, (found, expected))| {
            let distance = (f64::from(**found) - **expected).abs();
            distance.is_nan() || distance > 1e-6 + 1e-5 * expected.abs()
        });
        wrong.map(|(at, (found, expected))| format!("element {at} is {found}, not {expected}"))
    }
}

/// Numbers between -1 and 1, the same for one seed.
pub(crate) fn numbers(seed: u64, count: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    std::iter::repeat_with(next).take(count).collect()
}

/// The product of two matrices, in `f64`.
pub(crate) fn product(a: &[f64], b: &[f64], [rows, inner, cols]: [usize; 3]) -> Vec<f64> {
    let cell = |at: usize| (at / cols, at % cols);
    let sum = |(row, col)| (0..inner).map(|k| a[row * inner + k] * b[k * cols + col]).sum();
    (0..rows * cols).map(|at| sum(cell(at))).collect()
}

pub(crate) fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().copied().map(f64::from).collect()
}
