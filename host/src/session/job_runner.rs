//! Runs the jobs of a session, on a thread of a pool or on the thread that steps the service.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::command_object::{RunCommand, RunWork};
use super::copies::CopyCommand;
use super::error::FailureCause;
use super::guarded::guarded;
use super::memory_sync::MemorySync;
use super::owned_work::OwnedWork;
use super::resident;
use super::serving;
use super::session_core::SessionCore;
use super::work::{FirmwareExit, Job, Report};
use crate::control::RunControl;
use crate::device::Device;
use crate::error::Error;
use crate::options::{RunOptions, Work};

/// Runs jobs.
#[derive(Clone)]
pub(super) struct JobRunner {
    pub(super) device: Arc<Mutex<Device>>,
    pub(super) shared: Arc<SessionCore>,
}

impl JobRunner {
    /// Runs a job to its end. A panic becomes an error of the job, because the service waits for its report.
    pub(super) fn perform(&self, job: Job) -> Report {
        let stream = job.stream();
        guarded(|| self.perform_job(job)).unwrap_or_else(|message| {
            let error = Arc::new(Error::Panicked { message });
            match stream {
                Some(stream) => Report::Over(stream, Err(FailureCause::Device(error))),
                None => Report::FirmwareExited(FirmwareExit {
                    result: Err(error),
                    interrupted: Vec::new(),
                }),
            }
        })
    }

    fn perform_job(&self, job: Job) -> Report {
        match job {
            Job::Resident(control) => self.come_up(&control),
            Job::Run(stream, command, control) => {
                Report::Over(stream, self.run(&command, &control).map_err(of_device))
            }
            Job::Copy(stream, copy, _) => Report::Over(stream, self.copy(&copy)),
            Job::Call(stream, function) => {
                let called =
                    serving::serve(self.shared.driver.address(), Some(stream), || function.call());
                Report::Over(stream, called.map_err(FailureCause::HostFunction))
            }
        }
    }

    fn device(&self) -> MutexGuard<'_, Device> {
        // After a panic in a run the device begins the next one with a new arena.
        self.device.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn come_up(&self, control: &RunControl) -> Report {
        let mut device = self.device();
        let ended = match MemorySync::send(&self.shared) {
            Ok(sync) => {
                let options = &self.shared.options.run;
                resident::run(&mut device, &self.shared.board, &sync, options, control)
            }
            Err(error) => FirmwareExit { result: Err(Arc::new(error)), interrupted: Vec::new() },
        };
        drop(device);
        if let Ok(makespan) = &ended.result {
            self.shared.clock.advance(*makespan);
        }
        Report::FirmwareExited(ended)
    }

    fn run(&self, command: &RunCommand, control: &RunControl) -> Result<(), Error> {
        let mut device = self.device();
        let options = match &command.options {
            Some(options) => Cow::Borrowed(options),
            None => self.options_of(&command.work, &device),
        };
        let options = &*options;
        let report = match &command.work {
            RunWork::Work(work) => device.run_controlled(work.as_work(), options, control)?,
            RunWork::Recording(recording, bindings) => {
                let image = recording.image(&device, bindings)?;
                device.run_controlled(Work::HostGraph(&image), options, control)?
            }
        };
        self.shared.clock.advance(report.makespan);
        command.ticket.set(report);
        Ok(())
    }

    /// The options of the session for a run. A graph needs no builder instance: all instances schedule, and each needs a cluster.
    fn options_of(&self, work: &RunWork, device: &Device) -> Cow<'_, RunOptions> {
        let options = &self.shared.options.run;
        let is_graph =
            matches!(work, RunWork::Work(OwnedWork::HostGraph(_)) | RunWork::Recording(..));
        if !is_graph || options.aicpu_instances <= device.clusters() {
            return Cow::Borrowed(options);
        }
        Cow::Owned(RunOptions { aicpu_instances: device.clusters(), ..options.clone() })
    }

    pub(super) fn copy(&self, copy: &CopyCommand) -> Result<(), FailureCause> {
        copy.perform(&self.shared.memory)
    }
}

fn of_device(error: Error) -> FailureCause {
    FailureCause::Device(Arc::new(error))
}
