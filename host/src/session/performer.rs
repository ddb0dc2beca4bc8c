//! Does the jobs of a session. A thread of a crew calls it, or the thread that steps the service.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::copies::Copy;
use super::error::Cause;
use super::exchange::Exchange;
use super::guarded::guarded;
use super::kept::{RunCommand, RunWork};
use super::owned_work::OwnedWork;
use super::resident;
use super::serving;
use super::shared::Shared;
use super::work::{Ended, Job, Report};
use crate::control::RunControl;
use crate::device::Device;
use crate::error::Error;
use crate::options::{RunOptions, Work};

/// What does the jobs.
#[derive(Clone)]
pub(super) struct Performer {
    pub(super) device: Arc<Mutex<Device>>,
    pub(super) shared: Arc<Shared>,
}

impl Performer {
    /// Does a job to the end. A panic is an error of the job: whoever gave it waits for the report.
    pub(super) fn perform(&self, job: Job) -> Report {
        let stream = job.stream();
        guarded(|| self.perform_job(job)).unwrap_or_else(|message| {
            let error = Arc::new(Error::Panicked { message });
            match stream {
                Some(stream) => Report::Over(stream, Err(Cause::Device(error))),
                None => Report::Ended(Ended { result: Err(error), left: Vec::new() }),
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
                Report::Over(stream, called.map_err(Cause::HostFunction))
            }
        }
    }

    fn device(&self) -> MutexGuard<'_, Device> {
        // After a panic in a run the device begins the next one with a new arena.
        self.device.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn come_up(&self, control: &RunControl) -> Report {
        let mut device = self.device();
        let ended = match Exchange::send(&self.shared) {
            Ok(exchange) => {
                let options = &self.shared.options.run;
                resident::run(&mut device, (&self.shared.board, &exchange), options, control)
            }
            Err(error) => Ended { result: Err(Arc::new(error)), left: Vec::new() },
        };
        drop(device);
        if let Ok(makespan) = &ended.result {
            self.shared.clock.advance(*makespan);
        }
        Report::Ended(ended)
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

    /// The options of the session for a run. Nobody feeds a graph: all of its instances schedule, and each needs a cluster.
    fn options_of(&self, work: &RunWork, device: &Device) -> Cow<'_, RunOptions> {
        let options = &self.shared.options.run;
        let is_graph =
            matches!(work, RunWork::Work(OwnedWork::HostGraph(_)) | RunWork::Recording(..));
        if !is_graph || options.aicpu_instances <= device.clusters() {
            return Cow::Borrowed(options);
        }
        Cow::Owned(RunOptions { aicpu_instances: device.clusters(), ..options.clone() })
    }

    pub(super) fn copy(&self, copy: &Copy) -> Result<(), Cause> {
        copy.perform(&self.shared.memory)
    }
}

fn of_device(error: Error) -> Cause {
    Cause::Device(Arc::new(error))
}
