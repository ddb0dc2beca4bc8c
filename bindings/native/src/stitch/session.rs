//! A session of a device, and the programs in its memory.

use std::fmt;
use std::sync::{Arc, PoisonError};

use pto_host::session::SessionOptions;
use pto_host::stitch::{Counters, LoadedProgram, StitchOptions, Stitcher};
use pto_host::workloads::program::Program;
use pto_host::{Device, RunOptions, Session};

use super::kernel_stream::{SharedEvent, SharedKernelStream, SharedNotify};
use super::stream::SharedStream;
use crate::device::SharedDevice;
use crate::failure::{Failure, FailureKind};

/// A device that stays up, for use from any thread. It ends when its last owner and its last stream let it go.
pub struct SharedSession {
    session: Arc<Session>,
    stitcher: Stitcher<'static>,
}

impl SharedSession {
    /// Opens a session on a device, with the kernels of the library where the device has them not.
    ///
    /// # Errors
    /// Those of [`Device::session`]; the fast region does not fit the device.
    pub fn open(mut device: Device, on_chip_bytes: u64) -> Result<Arc<Self>, Failure> {
        device.register_missing_library()?;
        let options = SessionOptions { run: run_options(&device), ..SessionOptions::default() };
        let session = Arc::new(device.session(options)?);
        let options = StitchOptions { on_chip_bytes };
        let stitcher = Stitcher::shared(Arc::clone(&session), options)?;
        Ok(Arc::new(Self { session, stitcher }))
    }

    /// Puts a program into the memory of the device, and loads its native kernels.
    ///
    /// # Errors
    /// Those of [`Stitcher::load_with`] and of [`kernels`](crate::program::kernels).
    pub fn load(&self, program: Program) -> Result<LoadedProgram, Failure> {
        let native = crate::program::kernels(&program)?;
        Ok(self.stitcher.load_with(program, native)?)
    }

    /// Opens a stream, in which up to `overlap` programs share a launch and overlap task by task; 1: each begins when the one
    /// before it has ended.
    ///
    /// # Errors
    /// Those of [`Stitcher::overlapping_stream`].
    pub fn stream(&self, overlap: usize) -> Result<Arc<SharedStream>, Failure> {
        Ok(SharedStream::new(self.stitcher.overlapping_stream(overlap)?, &self.session))
    }

    /// Opens a stream that launches kernels.
    ///
    /// # Errors
    /// Those of [`Session::stream`].
    pub fn kernel_stream(&self) -> Result<Arc<SharedKernelStream>, Failure> {
        SharedKernelStream::new(&self.session)
    }

    /// An event that was never recorded.
    ///
    /// # Errors
    /// Those of [`Session::event`].
    pub fn event(&self) -> Result<Arc<SharedEvent>, Failure> {
        SharedEvent::new(&self.session)
    }

    /// A flag on the device, which is not raised.
    ///
    /// # Errors
    /// Those of [`Session::notify`].
    pub fn notify(&self) -> Result<Arc<SharedNotify>, Failure> {
        SharedNotify::new(&self.session)
    }

    /// What was copied, converted, bounced and allocated since the device was opened.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.stitcher.counters()
    }

    /// Waits for everything that was submitted.
    ///
    /// # Errors
    /// Those of [`Session::synchronize`].
    pub fn synchronize(&self) -> Result<(), Failure> {
        Ok(self.session.synchronize()?)
    }

    /// Drops what has not begun, forgets failures, and makes streams that have stopped take commands again.
    ///
    /// # Errors
    /// Those of [`Session::reset`].
    pub fn reset(&self) -> Result<(), Failure> {
        Ok(self.session.reset()?)
    }
}

/// The defaults, with no more AICPU instances than find a cluster to schedule, beside the one that builds.
fn run_options(device: &Device) -> RunOptions {
    let defaults = RunOptions::default();
    let most = device.clusters().saturating_add(1);
    RunOptions { aicpu_instances: defaults.aicpu_instances.min(most), ..defaults }
}

impl fmt::Debug for SharedSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.session.fmt(f)
    }
}

impl SharedDevice {
    /// The device alone, for a session; the owner is given back where somebody else uses the device.
    ///
    /// # Errors
    /// The owner: a call of another thread, or an object that stands on the device.
    pub fn into_device(self: Arc<Self>) -> Result<Device, Arc<Self>> {
        Arc::try_unwrap(self).map(Self::only)
    }

    fn only(self) -> Device {
        self.device.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// What to say where [`into_device`](Self::into_device) gives the owner back.
    #[must_use]
    pub fn in_use(&self) -> Failure {
        let message = format!(
            "a session needs {} for itself, and another call or object uses it; end that first",
            self.name()
        );
        Failure::new(FailureKind::BUSY, message)
    }
}
