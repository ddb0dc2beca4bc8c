//! `Device`: a simulated device or an emulated machine, its memory, kernels and runs.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use pto_host::abi::{CoreKind, FuncId, GmAddr};
use pto_host::virtual_time::{KernelCosts, VirtualOptions};
use pto_host::{Hosting, Kernel, QemuDeviceOptions, RunControl, Work};
use pto_native::kernels::{self, KERNEL_SYMBOL, KernelSource};
use pto_native::stitch::open_session;
use pto_native::{Failure, FailureKind, HostedBuilders, SharedDevice, checked};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::array::Bytes;
use crate::failure::{invalid, raised, raised_from, unknown};
use crate::graph::{CoreType, Graph};
use crate::options::RunSettings;
use crate::py_resource::{PyResource, Unlocked, locked};
use crate::report::Report;
use crate::running::interruptible;
use crate::session::Session;

/// The simulator `a2a3sim`, or the emulated machine `qemu`.
#[pyclass(frozen, module = "pto_runtime")]
pub(crate) struct Device(Mutex<Option<PyResource<Arc<SharedDevice>>>>);

fn closed() -> PyErr {
    raised(&Failure::new(FailureKind::INVALID_HANDLE, "the device is closed"))
}

impl Device {
    /// The device, if it is open.
    pub(crate) fn open_one(&self) -> PyResult<Unlocked<Arc<SharedDevice>>> {
        let held = locked(&self.0);
        held.as_ref().ok_or_else(closed)?.share()
    }

    fn register(&self, py: Python<'_>, func_id: FuncId, kernel: Kernel) -> PyResult<()> {
        let device = self.open_one()?;
        let registered =
            py.detach(|| device.with(|device| device.register_kernel(func_id, kernel)));
        registered.map_err(raised_from)?.map_err(raised_from)
    }
}

/// How the simulator is hosted. `seed` and `kernel_cost` are those of virtual time.
fn hosting_of(
    name: &str,
    os_threads: Option<usize>,
    (seed, kernel_cost): (Option<u64>, Option<&str>),
) -> PyResult<Hosting> {
    let options = [
        ("os_threads", os_threads.is_some(), "pool"),
        ("seed", seed.is_some(), "virtual"),
        ("kernel_cost", kernel_cost.is_some(), "virtual"),
    ];
    let is_known = ["pool", "threads", "virtual"].contains(&name);
    let wrong = options.iter().find(|(_, is_given, wanted)| *is_given && *wanted != name);
    if let Some((option, _, wanted)) = wrong.filter(|_| is_known) {
        return Err(invalid(format!(
            "{option} is an option of hosting={wanted:?}, and the hosting is {name:?}: leave it out, or ask for that hosting"
        )));
    }
    let (seed, costs) = (seed.unwrap_or(0), kernel_cost.unwrap_or("model"));
    match name {
        "pool" => {
            let none = || invalid("os_threads is 0: give at least 1");
            let asked = os_threads.map(|count| NonZeroUsize::new(count).ok_or_else(none));
            let os_threads = asked.transpose()?.unwrap_or_else(pto_host::default_pool_threads);
            Ok(Hosting::Pool { os_threads })
        }
        "threads" => Ok(Hosting::Threads),
        "virtual" => {
            let costs = KernelCosts::parse(costs, seed);
            let costs = costs.map_err(|error| invalid(error.to_string()))?;
            Ok(Hosting::Virtual(VirtualOptions { seed, costs, ..VirtualOptions::default() }))
        }
        other => Err(unknown("hosting", other, "\"pool\", \"threads\" or \"virtual\"")),
    }
}

#[pymethods]
impl Device {
    /// `aic`, `aiv` and `gm_bytes` have a default for each device. The others are options of the simulator.
    #[new]
    #[pyo3(signature = (name = "a2a3sim", *, aic = None, aiv = None, gm_bytes = None, hosting = None, os_threads = None, seed = None, kernel_cost = None))]
    #[expect(clippy::too_many_arguments, reason = "in Python they have names")]
    fn new(
        py: Python<'_>,
        name: &str,
        aic: Option<u32>,
        aiv: Option<u32>,
        gm_bytes: Option<u64>,
        hosting: Option<&str>,
        os_threads: Option<usize>,
        seed: Option<u64>,
        kernel_cost: Option<&str>,
    ) -> PyResult<Self> {
        let opened = match name {
            "a2a3sim" => {
                let usual = pto_host::DeviceOptions::default();
                let options = pto_host::DeviceOptions {
                    aic: aic.unwrap_or(usual.aic),
                    aiv: aiv.unwrap_or(usual.aiv),
                    gm_bytes: gm_bytes.unwrap_or(usual.gm_bytes),
                    hosting: hosting_of(
                        hosting.unwrap_or("pool"),
                        os_threads,
                        (seed, kernel_cost),
                    )?,
                };
                py.detach(|| SharedDevice::open_sim(options))
            }
            // Its earlier name was `virt`.
            "qemu" | "virt" => {
                let of_simulator = [
                    ("hosting", hosting.is_some()),
                    ("os_threads", os_threads.is_some()),
                    ("seed", seed.is_some()),
                    ("kernel_cost", kernel_cost.is_some()),
                ];
                if let Some((option, _)) = of_simulator.into_iter().find(|(_, given)| *given) {
                    let text = format!(
                        "{option} is an option of a2a3sim; qemu runs in real time: leave it out"
                    );
                    return Err(invalid(text));
                }
                let usual = QemuDeviceOptions::default();
                let options = QemuDeviceOptions {
                    aic: aic.unwrap_or(usual.aic),
                    aiv: aiv.unwrap_or(usual.aiv),
                    gm_bytes: gm_bytes.unwrap_or(usual.gm_bytes),
                    ..usual
                };
                let opened = py.detach(|| pto_native::open_qemu(&options));
                opened.map(|device| SharedDevice::over(device, HostedBuilders::default()))
            }
            other => return Err(unknown("device", other, "\"a2a3sim\" or \"qemu\"")),
        };
        Ok(Self(Mutex::new(Some(PyResource::new(opened.map_err(raised_from)?)))))
    }

    #[getter]
    fn name(&self) -> PyResult<String> {
        Ok(self.open_one()?.name().to_owned())
    }

    /// Cores of each kind: (aic, aiv).
    #[getter]
    fn cores(&self) -> PyResult<(u32, u32)> {
        let device = self.open_one()?;
        Ok((device.cores(CoreKind::AIC), device.cores(CoreKind::AIV)))
    }

    /// Bytes of global memory, and those of them that are free.
    #[getter]
    fn memory(&self) -> PyResult<(u64, u64)> {
        Ok(self.open_one()?.memory().size())
    }

    /// Registered kernels: (func id, name, core type).
    #[getter]
    fn kernels(&self, py: Python<'_>) -> PyResult<Vec<(u16, String, &'static str)>> {
        let device = self.open_one()?;
        let described = py.detach(|| device.describe()).map_err(|failure| raised(&failure))?;
        let row = |kernel: pto_host::KernelDescription| {
            (kernel.func_id.0, kernel.name, kernel.kind.name())
        };
        Ok(described.kernels.into_iter().map(row).collect())
    }

    /// Allocates global memory; gives its address.
    fn malloc(&self, bytes: u64) -> PyResult<u64> {
        Ok(self.open_one()?.memory().alloc(bytes).map_err(raised_from)?.0)
    }

    /// Frees what `malloc` or `upload` gave.
    fn free(&self, address: u64) -> PyResult<()> {
        self.open_one()?.memory().free(GmAddr(address)).map_err(raised_from)
    }

    /// Copies a contiguous array to the device.
    fn copy_to_device(&self, address: u64, array: &Bound<'_, PyAny>) -> PyResult<()> {
        let device = self.open_one()?;
        // SAFETY: the array lives as long as the call, and no other thread writes it while this one has the GIL.
        let bytes = unsafe { Bytes::of(array)?.read() };
        device.memory().copy_to_device(GmAddr(address), bytes).map_err(raised_from)
    }

    /// Fills a contiguous array from the device.
    fn copy_from_device(&self, array: &Bound<'_, PyAny>, address: u64) -> PyResult<()> {
        let device = self.open_one()?;
        // SAFETY: the array lives as long as the call, and no other thread uses it while this one has the GIL.
        let bytes = unsafe { Bytes::of(array)?.write() }?;
        device.memory().copy_from_device(GmAddr(address), bytes).map_err(raised_from)
    }

    /// Registers every kernel of the library under its own func id.
    fn register_library(&self, py: Python<'_>) -> PyResult<()> {
        let device = self.open_one()?;
        let registered = py.detach(|| device.with(pto_host::Device::register_library));
        registered.map_err(raised_from)?.map_err(raised_from)
    }

    /// Registers a library kernel under a func id of the caller's choice.
    fn register_library_kernel(&self, py: Python<'_>, func_id: i64, kernel: &str) -> PyResult<()> {
        let (func_id, _) = checked(func_id, 0).map_err(|failure| raised(&failure))?;
        self.register(py, func_id, Kernel::library(kernel).map_err(raised_from)?)
    }

    /// Registers a kernel of a shared or relocatable object: a path or bytes.
    #[pyo3(signature = (func_id, core_type, source, *, name = None, symbol = KERNEL_SYMBOL))]
    fn register_kernel(
        &self,
        py: Python<'_>,
        func_id: i64,
        core_type: CoreType,
        source: &Bound<'_, PyAny>,
        name: Option<&str>,
        symbol: &str,
    ) -> PyResult<()> {
        let known = checked(func_id, core_type.number()?);
        let (func_id, kind) = known.map_err(|failure| raised(&failure))?;
        let kernel = if let Ok(bytes) = source.cast::<PyBytes>() {
            let name = name.unwrap_or("kernel");
            kernels::from_bytes(bytes.as_bytes(), KernelSource { name, symbol, kind })
        } else {
            let path: PathBuf = source.extract()?;
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let name = name.unwrap_or(&stem);
            kernels::from_file(&path, KernelSource { name, symbol, kind })
        };
        self.register(py, func_id, kernel.map_err(|failure| raised(&failure))?)
    }

    /// Takes the kernel of a func id away.
    fn unregister_kernel(&self, py: Python<'_>, func_id: i64) -> PyResult<()> {
        let (func_id, _) = checked(func_id, 0).map_err(|failure| raised(&failure))?;
        let device = self.open_one()?;
        let gone = py.detach(|| device.with(|device| device.unregister_kernel(func_id)));
        gone.map_err(raised_from)?.map_err(raised_from)
    }

    /// Runs a graph to its end; the GIL is free meanwhile.
    #[pyo3(signature = (graph, **options))]
    fn run(
        &self,
        py: Python<'_>,
        graph: &Bound<'_, Graph>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Report> {
        let device = self.open_one()?;
        let asked = RunSettings::from_keywords(options)?;
        let draft = graph.get().draft().clone();
        let ended = interruptible(py, asked.progress.as_ref(), |control| {
            let image = device.finish(&draft)?;
            let mut report = device.run(Work::HostGraph(&image), &asked.options, control)?;
            if let Some(trace) = &mut report.trace
                && !trace.run.contains_key("recorded")
            {
                // If a timeline has only a part of the tasks, it is unknown which they are.
                trace.task_names = draft.task_names().to_vec();
            }
            Ok(report)
        })?;
        Ok(Report::new(ended.map_err(|failure: Failure| raised(&failure))?))
    }

    /// How many seconds the same run takes from Rust: what `run` costs beyond it is Python's part (`benches/overhead.py`).
    #[pyo3(signature = (graph, **options))]
    fn _run_from_rust(
        &self,
        py: Python<'_>,
        graph: &Bound<'_, Graph>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<f64> {
        let device = self.open_one()?;
        let asked = RunSettings::from_keywords(options)?;
        let draft = graph.get().draft().clone();
        let ended = py.detach(|| {
            let start = Instant::now();
            let image = device.finish(&draft)?;
            let report = device.run(Work::HostGraph(&image), &asked.options, &RunControl::new())?;
            drop(report);
            Ok(start.elapsed().as_secs_f64())
        });
        ended.map_err(|failure: Failure| raised(&failure))
    }

    /// Opens a session, which has the device for itself: this object is closed. `on_chip_bytes` are those of a fast region for tensors.
    #[pyo3(signature = (*, on_chip_bytes = 0))]
    fn session(&self, py: Python<'_>, on_chip_bytes: u64) -> PyResult<Session> {
        let mut held = locked(&self.0);
        held.as_ref().ok_or_else(closed)?.get()?;
        let owner = held.take().ok_or_else(closed)?.into_inner()?;
        let device = owner.into_device().map_err(|owner| {
            let failure = owner.in_use();
            *held = Some(PyResource::new(owner));
            raised(&failure)
        })?;
        drop(held);
        let session = py.detach(|| open_session(device, on_chip_bytes));
        Ok(Session::new(session.map_err(raised_from)?))
    }

    /// Closes the device; runs of other threads end first.
    fn close(&self) -> PyResult<()> {
        let held = locked(&self.0).take();
        // What is left goes with `held`, without the GIL.
        held.as_ref().map_or(Ok(()), |held| held.get().map(drop))
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(
        &self,
        kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        match self.close() {
            // The exception that is on its way says more; the end of a child of fork is one.
            Err(_) if !kind.is_none() => Ok(()),
            closed => closed,
        }
    }

    fn __repr__(&self) -> String {
        match self.open_one() {
            Ok(device) => format!("<Device {:?}>", **device),
            Err(_) => "<Device, closed>".to_owned(),
        }
    }
}
