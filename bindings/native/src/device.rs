//! A device that several threads and languages share: one run at a time, memory at any time.

use std::cell::Cell;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use pto_host::abi::stream::StreamCapacities;
use pto_host::abi::{BuildMode, CoreKind};
use pto_host::fw::{FlashDevice, Store, StoreError};
use pto_host::{
    CallRefusal, Device, DeviceDescription, DeviceMemory, DeviceOptions, QemuDeviceOptions,
    RunControl, RunOptions, WhenFull,
};
use pto_host::{GraphImage, RunReport, Work};

use crate::builders::HostedBuilders;
use crate::draft::GraphDraft;
use crate::failure::{Failure, FailureKind};

/// A device for use from any thread. Calls that need it whole wait for a run of another thread to end.
pub struct SharedDevice {
    device: Mutex<Device>,
    memory: DeviceMemory,
    call_refusal: CallRefusal,
    builders: HostedBuilders,
    /// Why a builder program did not return, until the run's failure is made of it.
    builder_failure: Mutex<Option<Failure>>,
    name: String,
    cores: [u32; CoreKind::COUNT],
}

thread_local! {
    /// Whether a builder program is on the stack of this thread.
    static BUILDS: Cell<bool> = const { Cell::new(false) };
}

/// Calls a builder program: one that waits for its own run gets `BUSY` instead.
pub fn building<R>(build: impl FnOnce() -> R) -> R {
    let before = BUILDS.replace(true);
    let result = build();
    BUILDS.set(before);
    result
}

/// The options of a streaming run: one that is recorded is recorded as a whole, however long it is, and one that is sequential
/// and asks for no windows holds all of its tasks at once, since none retires before all are there.
#[must_use]
pub fn streaming(options: &RunOptions) -> RunOptions {
    let mut options = options.clone();
    let is_asked = options.capacities.stream != StreamCapacities::OFF;
    let is_whole = options.build_mode == BuildMode::SEQUENTIAL;
    if let Some(trace) = &mut options.trace {
        trace.when_full = WhenFull::Wait;
    }
    if is_asked {
        let per_slot = 16 * u64::from(options.capacities.stream.window);
        options.capacities.arg_words = options.capacities.arg_words.max(per_slot);
        options.capacities.edges = options.capacities.edges.max(per_slot);
    } else if is_whole {
        options.capacities = options.capacities.streamed_whole();
    }
    options
}

/// Opens the simulator for one owner, without builders: the same copy of the firmware as that of [`SharedDevice`].
///
/// # Errors
/// `WORKERS`, `MAP_GM`.
pub fn open_device(options: DeviceOptions) -> Result<Device, Failure> {
    Ok(Device::open_sim(options, HostedBuilders::default())?)
}

/// Opens the emulated machine with what is flashed to it.
///
/// # Errors
/// `IMAGE`, also where nothing is flashed; `STORE`, `QEMU`.
pub fn open_qemu(options: &QemuDeviceOptions) -> Result<Device, Failure> {
    let flashed = Store::open()?.load_both(FlashDevice::Qemu);
    let (firmware, kernels) = flashed.map_err(|error| match error {
        StoreError::NothingFlashed { .. } => Failure::new(FailureKind::IMAGE, error.to_string()),
        error => error.into(),
    })?;
    Ok(Device::open_qemu(options, &firmware, &kernels)?)
}

impl SharedDevice {
    /// Opens the simulator.
    ///
    /// # Errors
    /// `WORKERS`, `MAP_GM`.
    pub fn open_sim(options: DeviceOptions) -> Result<Arc<Self>, Failure> {
        let builders = HostedBuilders::default();
        let device = Device::open_sim(options, builders.clone())?;
        Ok(Self::over(device, builders))
    }

    /// Shares an open device. Builders can be given to it if `builders` are those that it was opened with.
    #[must_use]
    pub fn over(device: Device, builders: HostedBuilders) -> Arc<Self> {
        Arc::new(Self {
            memory: device.memory(),
            call_refusal: device.call_refusal(),
            builders,
            builder_failure: Mutex::default(),
            name: device.name().to_owned(),
            cores: [device.cores(CoreKind::AIC), device.cores(CoreKind::AIV)],
            device: Mutex::new(device),
        })
    }

    /// The device's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many cores of `kind` it has.
    #[must_use]
    pub fn cores(&self, kind: CoreKind) -> u32 {
        self.cores[kind.index()]
    }

    /// The device's memory; usable during runs.
    #[must_use]
    pub fn memory(&self) -> &DeviceMemory {
        &self.memory
    }

    /// Why a task of the builder program that builds now was refused.
    #[must_use]
    pub fn refused_call(&self) -> Option<Failure> {
        self.call_refusal.error().map(Failure::from)
    }

    /// Its builder programs; they can change during runs, for the next run.
    #[must_use]
    pub fn builders(&self) -> &HostedBuilders {
        &self.builders
    }

    /// A builder program did not return: its run fails with this ([`failure_of`](Self::failure_of)).
    pub fn fail_builder(&self, failure: Failure) {
        *self.builder_failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
    }

    /// Whether [`builders`](Self::builders) can be given to it.
    ///
    /// # Errors
    /// `BUILDER_NOT_FOR_DEVICE`: it takes them from its image.
    pub fn takes_builders(&self) -> Result<(), Failure> {
        if self.name != "qemu" {
            return Ok(());
        }
        let message = "qemu runs the builders of its firmware image, and none of this process";
        Err(Failure::new(FailureKind::BUILDER_NOT_FOR_DEVICE, message))
    }

    /// Calls `act` on the device, when no run is on.
    ///
    /// # Errors
    /// `BUSY` on the thread of a builder program: its run would wait for it, and it for the run.
    pub fn with<R>(&self, act: impl FnOnce(&mut Device) -> R) -> Result<R, Failure> {
        if BUILDS.get() {
            let message =
                format!("a builder program cannot call this on {}: its run is on", self.name);
            return Err(Failure::new(FailureKind::BUSY, message));
        }
        // A panic in the host is an error of it; what it leaves is still memory-safe to use.
        Ok(act(&mut self.device.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// What it is and holds.
    ///
    /// # Errors
    /// `BUSY`.
    pub fn describe(&self) -> Result<DeviceDescription, Failure> {
        self.with(|device| device.describe())
    }

    /// The image of a graph for this device.
    ///
    /// # Errors
    /// Those of [`GraphDraft::finish`]; `BUSY`.
    pub fn finish(&self, draft: &GraphDraft) -> Result<GraphImage, Failure> {
        Ok(self.with(|device| draft.finish(device))??)
    }

    /// Runs work to its end.
    ///
    /// # Errors
    /// Those of [`Device::run`]; `BUSY`.
    pub fn run(
        &self,
        work: Work<'_>,
        options: &RunOptions,
        control: &RunControl,
    ) -> Result<RunReport, Failure> {
        let ended = self.with(|device| device.run_controlled(work, options, control))?;
        ended.map_err(|error| self.failure_of(error))
    }

    /// Why a run ended with `error`: the builder program that did not return, if there is one.
    pub fn failure_of(&self, error: pto_host::Error) -> Failure {
        let builder_failure =
            self.builder_failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        match builder_failure {
            Some(failure) => Failure { message: format!("{failure}\n{error}"), ..failure },
            None => error.into(),
        }
    }
}

/// The device alone, for a session.
impl SharedDevice {
    /// The device, if this owner is the only one.
    ///
    /// # Errors
    /// `self`: a call of another thread, or an object of the device, also holds it.
    pub fn into_device(self: Arc<Self>) -> Result<Device, Arc<Self>> {
        let only = |owner: Self| owner.device.into_inner().unwrap_or_else(PoisonError::into_inner);
        Arc::try_unwrap(self).map(only)
    }

    /// What to say where [`into_device`](Self::into_device) gives the owner back.
    #[must_use]
    pub fn in_use(&self) -> Failure {
        let message = format!(
            "a session needs {} for itself, and another call or object uses it; end that first",
            self.name
        );
        Failure::new(FailureKind::BUSY, message)
    }
}

impl fmt::Debug for SharedDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {} AIC and {} AIV", self.name, self.cores[0], self.cores[1])
    }
}
