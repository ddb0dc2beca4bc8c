//! `FieldDevice`: a device for the field's programs of today: orchestrations that submit tasks with tensors, and kernels.
//!
//! The package `simpler` uses nothing else of the native part. Tensors come as addresses, which the caller keeps alive.

use std::num::NonZero;
use std::path::PathBuf;
use std::ptr::with_exposed_provenance_mut;

use pto_field::{
    Call, CallOptions, Callable, EdgeRule, FieldDevice as Engine, Keeps, KernelCode, MemorySpace,
    ObjectCode, ProgramSource, Rings, Role, Tensor, TheirLimits,
};
use pto_host::Hosting;
use pto_host::abi::CoreKind;
use pto_host::fw::Image;
use pto_host::virtual_time::VirtualOptions;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyDict;

use crate::failure::{invalid, raised, raised_from, unknown};
use crate::options::RunSettings;
use crate::py_resource::PyResource;
use crate::running::interruptible;
use crate::scene_outcome::FieldOutcome;

/// The function of a kernel.
const ENTRY: &str = "kernel_entry";

/// A kernel as Python gives it: func id, kind of core, name, bytes of the object.
type GivenKernel = (u32, String, String, PyBackedBytes);
/// A tensor as Python gives it: address, shape, element type, role, whether the device uses the memory in place.
type GivenTensor = (usize, Vec<u32>, u8, String, bool);
/// Sizes of the rings: window, bytes of each heap, edges.
type GivenRings = (u32, u64, u64);

/// A device that runs programs of the field.
#[pyclass(frozen, module = "pto_runtime")]
pub(crate) struct FieldDevice(PyResource<Engine>);

/// A program that is loaded.
#[pyclass(frozen, module = "pto_runtime")]
pub(crate) struct FieldCallable(PyResource<Callable>);

#[pymethods]
impl FieldDevice {
    /// `hosting`: "threads"; "pool", where few OS threads run all cores; "serial", where one does; or "virtual", in virtual time. "qemu" is the emulated
    /// machine, with the files of a firmware and of a blob of kernels. `clusters` are 8, unless the program says otherwise; the machine has 8.
    #[new]
    #[pyo3(signature = (hosting = "threads", images = None, clusters = None))]
    fn new(
        py: Python<'_>,
        hosting: &str,
        images: Option<(PathBuf, PathBuf)>,
        clusters: Option<u32>,
    ) -> PyResult<Self> {
        if matches!(hosting, "qemu" | "virt") {
            let images = images.ok_or_else(|| {
                invalid("\"qemu\" needs the files of a firmware and of a blob of kernels: pto fw build --kernel")
            })?;
            let opened = py.detach(|| {
                let (firmware, kernels) = (Image::read(&images.0), Image::read(&images.1));
                Engine::open_qemu(&Engine::machine(), &firmware?, &kernels?)
            });
            return Ok(Self(PyResource::new(opened.map_err(raised_from)?)));
        }
        let hosting = match hosting {
            "threads" => Hosting::Threads,
            "pool" => Hosting::Pool { os_threads: pto_host::default_pool_threads() },
            "serial" => Hosting::Pool { os_threads: NonZero::<usize>::MIN },
            "virtual" => Hosting::Virtual(VirtualOptions::default()),
            _ => {
                let names = "\"threads\", \"pool\", \"serial\", \"virtual\" or \"qemu\"";
                return Err(unknown("hosting", hosting, names));
            }
        };
        let mut options = Engine::options(hosting);
        if let Some(clusters) = clusters {
            (options.aic, options.aiv) = (clusters, clusters.saturating_mul(2));
        }
        let opened = py.detach(|| Engine::open(options));
        Ok(Self(PyResource::new(opened.map_err(raised_from)?)))
    }

    /// Loads an orchestration and its kernels.
    #[staticmethod]
    #[pyo3(signature = (orchestration, entry, config, kernels))]
    fn load(
        orchestration: &[u8],
        entry: &str,
        config: Option<&str>,
        kernels: Vec<GivenKernel>,
    ) -> PyResult<FieldCallable> {
        let kernels: Vec<KernelCode<'_>> = kernels.iter().map(kernel).collect::<PyResult<_>>()?;
        let orchestration = ObjectCode::Bytes(orchestration);
        let source = ProgramSource { orchestration, entry, config, kernels: &kernels };
        Ok(FieldCallable(PyResource::new(Callable::load(&source).map_err(raised_from)?)))
    }

    /// Runs a program; other threads of Python go on meanwhile. `edges` is "ours" or "theirs"; `their_limits` are the tasks of a ring and
    /// the edges of a pool that a program asked for, and fails where it would fail there. `reports` may have "races", what the
    /// field's runtime would do otherwise, and "lines", which kernels write parts of one line. `keeps` says what is kept for the field's files:
    /// the graph, when kernels ran, and how many arguments (0 none, 1 marked ones, 2 all, 3 all, with contents of marked ones). With `waits_for_outside`
    /// kernels may wait for what other devices or the host write.
    #[pyo3(signature = (callable, tensors, scalars, rings, edges = "ours", reports = Vec::new(), their_limits = None, keeps = (false, false, 0), waits_for_outside = false, **options))]
    #[expect(clippy::too_many_arguments, reason = "they are the keywords of one call in Python")]
    fn run(
        &self,
        py: Python<'_>,
        callable: &FieldCallable,
        tensors: Vec<GivenTensor>,
        scalars: Vec<u64>,
        rings: GivenRings,
        edges: &str,
        reports: Vec<String>,
        their_limits: Option<(u32, u32)>,
        keeps: (bool, bool, u8),
        waits_for_outside: bool,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<FieldOutcome> {
        let asked = RunSettings::from_keywords(options)?;
        let roles: Vec<Role> = tensors.iter().map(role).collect::<PyResult<_>>()?;
        let (window, heap_bytes, edge_room) = rings;
        let [compares_rules, finds_shared_lines] = asked_reports(&reports)?;
        let options = CallOptions {
            run: asked.options.clone(),
            rings: Rings { window, heap_bytes, edges: edge_room },
            edges: rule(edges)?,
            compares_rules,
            finds_shared_lines,
            waits_for_outside,
            keeps: Keeps { graph: keeps.0, spans: keeps.1, arguments: keeps.2 },
            their_limits: their_limits.map(|(window, dep_pool)| TheirLimits { window, dep_pool }),
            ..CallOptions::default()
        };
        let (engine, callable) = (self.0.get()?, callable.0.get()?);
        let ended = interruptible(py, asked.progress.as_ref(), |control| {
            let tensors: Vec<Tensor<'_>> =
                tensors.iter().zip(&roles).map(|(given, role)| tensor(given, *role)).collect();
            let call = Call { tensors: &tensors, scalars: &scalars };
            // SAFETY: the package keeps what the addresses are of alive, and does not write it during the run.
            unsafe { engine.run(callable, &call, &options, control) }
        })?;
        Ok(FieldOutcome::new(ended.map_err(|failure| raised(&failure))?))
    }
}

fn kernel(given: &GivenKernel) -> PyResult<KernelCode<'_>> {
    let (func_id, kind, name, bytes) = given;
    let kind = match kind.as_str() {
        "aic" => CoreKind::AIC,
        "aiv" => CoreKind::AIV,
        other => return Err(unknown("kind of core", other, "\"aic\" or \"aiv\"")),
    };
    // The machine has it.
    let code = if bytes.is_empty() { ObjectCode::OnDevice } else { ObjectCode::Bytes(bytes) };
    Ok(KernelCode { func_id: *func_id, kind, name, code, symbol: ENTRY })
}

fn role((.., role, _): &GivenTensor) -> PyResult<Role> {
    match role.as_str() {
        "in" => Ok(Role::In),
        "out" => Ok(Role::Out),
        "inout" => Ok(Role::InOut),
        other => Err(unknown("role", other, "\"in\", \"out\" or \"inout\"")),
    }
}

/// Whether what differs from the field's runtime is to be said, and which lines kernels share.
fn asked_reports(names: &[String]) -> PyResult<[bool; 2]> {
    let mut asked = [false; 2];
    for name in names {
        match name.as_str() {
            "races" => asked[0] = true,
            "lines" => asked[1] = true,
            other => return Err(unknown("report", other, "\"races\" or \"lines\"")),
        }
    }
    Ok(asked)
}

fn rule(name: &str) -> PyResult<EdgeRule> {
    match name {
        "ours" => Ok(EdgeRule::Ours),
        "theirs" => Ok(EdgeRule::Theirs),
        other => Err(unknown("rule of edges", other, "\"ours\" or \"theirs\"")),
    }
}

fn tensor((address, shape, dtype, _, is_in_place): &GivenTensor, role: Role) -> Tensor<'_> {
    let space = if *is_in_place { MemorySpace::Device } else { MemorySpace::Host };
    Tensor { pointer: with_exposed_provenance_mut(*address), shape, dtype: *dtype, role, space }
}
