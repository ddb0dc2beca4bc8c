//! `Group`: devices of this process with ranks, in real or in virtual time, and the collectives that Python calls on arrays.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use pto_host::graph::ElementType;
use pto_host::graph::group::Reduction;
use pto_host::group::{
    Group as Devices, GroupError, GroupOptions, GroupWork, NetFaults, NetworkProfile,
};
use pto_host::virtual_time::VirtualOptions;
use pto_host::{DeviceOptions, Hosting, RunOptions};
use pto_native::{Failure, FailureKind};
use pyo3::prelude::*;

use crate::array::Bytes;
use crate::failure::{invalid, raised, unknown};
use crate::group_program::{Call, CollectivePrograms, KINDS, REDUCTIONS};
use crate::group_workload::{self, Arrays, GroupRunError};
use crate::py_resource::{PyResource, locked};

/// Bytes of the first window; each further one has at least twice as many, so that 16 suffice.
const FIRST_WINDOW: u64 = 1 << 20;

/// Devices with ranks.
#[pyclass(frozen, module = "pto_runtime")]
pub(crate) struct Group(Mutex<Option<PyResource<State>>>);

struct State {
    devices: Devices,
    /// The number of the window that is used, and its bytes.
    window: Option<(u32, u64)>,
}

impl Group {
    fn of(opened: Result<Devices, GroupError>) -> PyResult<Self> {
        let devices = opened.map_err(raised_from_group)?;
        Ok(Self(Mutex::new(Some(PyResource::new(State { devices, window: None })))))
    }

    fn with<R: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut State) -> Result<R, GroupError> + Send,
    ) -> PyResult<R> {
        let closed = || raised(&Failure::new(FailureKind::INVALID_HANDLE, "the group is closed"));
        py.detach(|| {
            let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            call(held.as_mut().ok_or_else(closed)?.get_mut()?).map_err(raised_from_group)
        })
    }
}

fn raised_from_group(error: GroupError) -> PyErr {
    let fault = match &error {
        GroupError::Failed { failures } => failures.first().and_then(|first| first.error.fault()),
        _ => None,
    };
    match fault {
        Some(fault) => raised(&Failure::of_fault(fault, error.to_string())),
        None => invalid(error.to_string()),
    }
}

impl State {
    /// A window of at least so many bytes at every rank; its number.
    fn room(&mut self, bytes: u64) -> Result<u32, GroupError> {
        if let Some((window, has)) = self.window
            && has >= bytes
        {
            return Ok(window);
        }
        let has = self.window.map_or(FIRST_WINDOW / 2, |(_, has)| has);
        let bytes = bytes.max(2 * has);
        let window = self.devices.window(bytes)?;
        self.window = Some((window, bytes));
        Ok(window)
    }

    /// One call on the tensors of all ranks, which follow each other in the window if the call has two. What each rank has
    /// afterwards goes to `results`.
    fn collective(
        &mut self,
        call: Call,
        tensors: &[&[u8]],
        results: &mut [&mut [u8]],
    ) -> Result<f64, GroupError> {
        let bytes = call.stride();
        let call = Call { window: self.room(2 * bytes)?.into(), ..call };
        for (member, tensor) in self.devices.members().iter().zip(tensors) {
            member.write(call.window(), 0, tensor)?;
        }
        let words = call.words();
        let work = GroupWork { builder: "collective", args: &|_| words.to_vec() };
        let options = RunOptions { aicpu_instances: 2, ..RunOptions::default() };
        let report = self.devices.run(&work, &options)?;
        for (member, result) in self.devices.members().iter().zip(results) {
            let found = member.read::<u8>(call.window(), call.result_at(), result.len())?;
            result.copy_from_slice(&found);
        }
        Ok(report.makespan().as_secs_f64())
    }
}

fn device(aic: u32, aiv: u32, gm_bytes: u64) -> DeviceOptions {
    DeviceOptions { aic, aiv, gm_bytes, ..GroupOptions::default().device }
}

/// A name of one of these codes.
fn code_of(what: &str, name: &str, names: &[(&str, u8)]) -> PyResult<u8> {
    let found = names.iter().find(|(known, _)| *known == name).map(|(_, code)| *code);
    let known = || names.iter().map(|(known, _)| *known).collect::<Vec<_>>().join(", ");
    found.ok_or_else(|| unknown(what, name, &known()))
}

#[pymethods]
impl Group {
    /// Devices of this process.
    #[staticmethod]
    #[pyo3(signature = (size, *, aic = 1, aiv = 2, gm_bytes = 1 << 30))]
    fn local(py: Python<'_>, size: u32, aic: u32, aiv: u32, gm_bytes: u64) -> PyResult<Self> {
        let device = device(aic, aiv, gm_bytes);
        let options = GroupOptions { device, ..GroupOptions::default() };
        Self::of(py.detach(|| Devices::open_local(size, &options, CollectivePrograms)))
    }

    /// Devices in virtual time, with a network between them.
    #[staticmethod]
    #[pyo3(name = "virtual", signature = (size, *, network = "a3-pod", seed = 0, aic = 1, aiv = 2, gm_bytes = 1 << 30))]
    fn in_virtual_time(
        py: Python<'_>,
        size: u32,
        network: &str,
        seed: u64,
        aic: u32,
        aiv: u32,
        gm_bytes: u64,
    ) -> PyResult<Self> {
        let profile = NetworkProfile::by_name(network)
            .ok_or_else(|| unknown("network", network, &NetworkProfile::NAMES.join(", ")))?;
        let hosting = Hosting::Virtual(VirtualOptions { seed, ..VirtualOptions::default() });
        let device = DeviceOptions { hosting, ..device(aic, aiv, gm_bytes) };
        let options = GroupOptions { device, ..GroupOptions::default() };
        let network = (profile, NetFaults::default());
        Self::of(py.detach(|| Devices::open_virtual(size, &options, network, CollectivePrograms)))
    }

    /// How many ranks there are.
    #[getter]
    fn size(&self, py: Python<'_>) -> PyResult<u32> {
        self.with(py, |state| Ok(state.devices.size()))
    }

    /// One collective of the ranks of each axis of a mesh: those whose numbers differ by `stride` alone, `extent` of them. `tensors` and
    /// `results` are contiguous arrays of one size, by rank. Returns the seconds that it took.
    #[pyo3(signature = (kind, tensors, results, *, element, reduction = "sum", root = 0, stride = 1, extent))]
    #[expect(clippy::too_many_arguments, reason = "in Python they have names")]
    fn collective(
        &self,
        py: Python<'_>,
        kind: &str,
        tensors: Vec<Bound<'_, PyAny>>,
        results: Vec<Bound<'_, PyAny>>,
        element: &str,
        reduction: &str,
        root: u32,
        stride: u32,
        extent: u32,
    ) -> PyResult<f64> {
        let size = self.size(py)?;
        let ranks = size as usize;
        if tensors.len() != ranks || results.len() != ranks {
            let given = (tensors.len(), results.len());
            return Err(invalid(format!(
                "{} tensors and {} results for {ranks} ranks: give one of each for every rank",
                given.0, given.1
            )));
        }
        if extent == 0 || stride == 0 || !size.is_multiple_of(stride.saturating_mul(extent)) {
            return Err(invalid(format!(
                "{size} ranks have no axis of {extent} ranks {stride} apart: both must divide them"
            )));
        }
        let of_element = |element: &ElementType| (element.name(), element.get());
        let elements: Vec<_> = ElementType::ALL.iter().map(of_element).collect();
        let element = code_of("element type", element, &elements)?;
        let element = ElementType::try_from(element).map_err(|_| invalid("no element type"))?;
        let reduction = code_of("reduction", reduction, &REDUCTIONS)?;
        let reduction = Reduction::try_from(reduction).map_err(|_| invalid("no reduction"))?;
        let kind = code_of("collective", kind, &KINDS)?;
        let bytes = |arrays: &[Bound<'_, PyAny>]| {
            arrays.iter().map(Bytes::of).collect::<PyResult<Vec<_>>>()
        };
        let (from, to) = (bytes(&tensors)?, bytes(&results)?);
        let length = from.first().map_or(0, |first| first.length);
        if from.iter().chain(&to).any(|array| array.length != length) {
            return Err(invalid("the arrays of the ranks have different sizes"));
        }
        let count = length as u64 / element.bytes();
        if !(length as u64).is_multiple_of(element.bytes()) || u32::try_from(count).is_err() {
            return Err(invalid(format!(
                "{length} bytes are no tensor of {}: it has whole elements, below 2^32 of them",
                element.name()
            )));
        }
        if count == 0 {
            return Ok(0.0);
        }
        // SAFETY: the arrays are held by this call, and Python does not give them to others meanwhile by itself.
        let from: Vec<&[u8]> = from.iter().map(|array| unsafe { array.read() }).collect();
        let write = |array: &Bytes| {
            // SAFETY: the same; the caller gives arrays for the results that are apart from each other.
            unsafe { array.write() }
        };
        let mut to = to.iter().map(write).collect::<PyResult<Vec<&mut [u8]>>>()?;
        let axis = (stride, extent);
        let call = Call { kind, element, count, reduction, root, axis, window: 0 };
        self.with(py, |state| state.collective(call, &from, &mut to))
    }

    /// Runs a workload on all ranks. `arrays` are those of each rank by the names of the tensors; they are contiguous, and changed in place. `numbers`
    /// are sizes and symbols, the same at every rank. Returns the seconds that it took.
    fn workload(
        &self,
        py: Python<'_>,
        text: &str,
        arrays: Vec<BTreeMap<String, Bound<'_, PyAny>>>,
        numbers: BTreeMap<String, u64>,
    ) -> PyResult<f64> {
        let size = self.size(py)? as usize;
        if arrays.len() != size {
            return Err(invalid(format!(
                "{} dictionaries of arrays for {size} ranks: give one for every rank",
                arrays.len()
            )));
        }
        let compiled = group_workload::compiled(text).map_err(invalid)?;
        let write = |(name, array): (&String, &Bound<'_, PyAny>)| {
            // SAFETY: the arrays are held by this call, and Python does not give them to others meanwhile by itself; the caller gives
            // arrays that are apart from each other.
            Ok((name.clone(), unsafe { Bytes::of(array)?.write() }?))
        };
        let of_rank = |rank: &BTreeMap<String, Bound<'_, PyAny>>| rank.iter().map(write).collect();
        let mut arrays = arrays.iter().map(of_rank).collect::<PyResult<Vec<Arrays<'_>>>>()?;
        let ran = self.with(py, |state| {
            Ok(group_workload::run(&mut state.devices, &compiled, &numbers, &mut arrays))
        })?;
        ran.map_err(|ended| match ended {
            GroupRunError::Group(error) => raised_from_group(error),
            GroupRunError::Refused(why) => invalid(why),
        })
    }

    /// Closes the devices.
    fn close(&self) -> PyResult<()> {
        let held = locked(&self.0).take();
        // What is left goes with `held`, without the GIL.
        held.as_ref().map_or(Ok(()), |held| held.get().map(drop))
    }
}
