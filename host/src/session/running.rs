//! Decides who steps the service: a thread of its own, which sleeps while there is nothing to do, or the threads that wait.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use pto_abi::wait::spin_while;

use super::bell::Bell;
use super::monitor::{Step, Stepped, has_cpus};
use super::service::{Service, WakeSource};
use super::serving;
use super::session_core::SessionCore;

/// How long the thread looks for news before it sleeps: about what its sleep would cost.
const AWAKE: Duration = Duration::from_micros(50);
/// How often a word of GM is looked at that a stream waits for.
const POLL_EVERY: Duration = Duration::from_micros(200);
/// How often the thread looks how far the firmware is, while a command of it may be waited for: at first, and when nothing has
/// happened for long.
const SHORTEST_SLEEP: Duration = Duration::from_micros(50);
const LONGEST_SLEEP: Duration = Duration::from_millis(1);
/// How long the thread sleeps unless the bell rings.
const LONG: Duration = Duration::from_secs(3600);

/// Steps a service until its session has ended.
pub(super) fn serve(shared: &SessionCore, service: Service) {
    serving::serve(shared.driver.address(), None, || serve_here(shared, service));
}

/// Until the session has ended, and everything that was submitted is over.
fn serve_here(shared: &SessionCore, mut service: Service) {
    let bell = &shared.driver.bell;
    bell.occupy();
    let mut sleep = SHORTEST_SLEEP;
    loop {
        if service.step(None) {
            sleep = SHORTEST_SLEEP;
            continue;
        }
        if shared.has_ended() {
            if service.is_done() {
                shared.driver.leave();
                return;
            }
            shared.ask_to_leave();
        }
        match service.expects() {
            // The firmware needs the CPU more than a thread that only polls.
            WakeSource::Firmware => {
                sleep =
                    if bell.sleep(sleep) { SHORTEST_SLEEP } else { (2 * sleep).min(LONGEST_SLEEP) };
            }
            // While the firmware is up, only commands that are not for it ring: polling would take a CPU from threads that compute.
            _ if has_cpus() && !shared.is_up() && rings_soon(bell) => {}
            WakeSource::PolledValue => {
                bell.sleep(POLL_EVERY);
            }
            WakeSource::Bell => {
                bell.sleep(LONG);
            }
        }
    }
}

fn rings_soon(bell: &Bell) -> bool {
    let start = Instant::now();
    let is_ringing = spin_while(|| start.elapsed() < AWAKE, || bell.is_ringing().then_some(()));
    is_ringing.is_some() && bell.take_ring()
}

/// A service that the waiting threads step.
pub(super) struct SteppedService {
    service: Mutex<Service>,
    /// The number of the thread that steps it; zero: none.
    stepper: AtomicU64,
}

impl SteppedService {
    pub(super) fn new(service: Service) -> Arc<Self> {
        Arc::new(Self { service: Mutex::new(service), stepper: AtomicU64::new(0) })
    }

    /// Steps it until everything is over, because the session has ended. Called by the service, it returns at once, and the service goes on until then.
    pub(super) fn run_dry(&self) {
        self.step(None);
    }

    /// As `run_dry`, but if another thread steps it just now, the call returns, and that thread steps it until everything is over.
    pub(super) fn run_dry_without_waiting(&self) {
        self.try_step(None);
    }

    fn turn(&self, mut service: MutexGuard<'_, Service>, idle: Option<Duration>) -> Stepped {
        self.stepper.store(this_thread(), Ordering::Relaxed);
        let mut worked = service.step(idle);
        while service.has_ended() && !service.is_done() {
            if !service.step(None) {
                // Another thread is about to submit something, or has the device just now.
                std::thread::yield_now();
            }
            worked = true;
        }
        self.stepper.store(0, Ordering::Relaxed);
        if worked { Stepped::Worked } else { Stepped::Idle }
    }

    fn is_mine(&self) -> bool {
        self.stepper.load(Ordering::Relaxed) == this_thread()
    }
}

impl Step for SteppedService {
    fn step(&self, idle: Option<Duration>) -> Stepped {
        if self.is_mine() {
            return Stepped::Within;
        }
        self.turn(self.service.lock().unwrap_or_else(PoisonError::into_inner), idle)
    }

    fn try_step(&self, idle: Option<Duration>) -> Stepped {
        if self.is_mine() {
            return Stepped::Within;
        }
        match self.service.try_lock() {
            Ok(service) => self.turn(service, idle),
            Err(TryLockError::Poisoned(service)) => self.turn(service.into_inner(), idle),
            Err(TryLockError::WouldBlock) => Stepped::Idle,
        }
    }

    fn state(&self) -> String {
        self.service.lock().unwrap_or_else(PoisonError::into_inner).state()
    }
}

/// A number that no other thread of this process has; never zero.
fn this_thread() -> u64 {
    static THREADS: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static NUMBER: u64 = THREADS.fetch_add(1, Ordering::Relaxed);
    }
    NUMBER.with(|number| *number)
}

#[cfg(test)]
mod tests {
    use super::serve;
    use crate::backend::fake::{Fake, SUCCESS};
    use crate::session::executors::Executors;
    use crate::session::job_runner::JobRunner;
    use crate::session::owner::{ServiceRunner, Session};
    use crate::session::service::Service;
    use crate::session::session_core::SessionCore;
    use crate::session::stream::Stream;
    use crate::session::{CommandFailure, FailureCause, OwnedWork, SessionOptions, StreamOptions};
    use crate::{Device, DeviceOptions};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    fn cpu_time() -> Duration {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the call writes to `time`, which lives as long as the call.
        let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
        assert_eq!(failed, 0);
        let seconds = u64::try_from(time.tv_sec).unwrap();
        Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap())
    }

    /// A session whose service is stepped here.
    fn session() -> (Session, Arc<SessionCore>, Service) {
        let options = DeviceOptions { gm_bytes: 1 << 22, ..DeviceOptions::default() };
        let device = Device::open_fake(options, Fake::new(|_, _| SUCCESS)).unwrap();
        let shared = Arc::new(SessionCore::new(&device, SessionOptions::default()).unwrap());
        let device = Arc::new(Mutex::new(device));
        let runner = JobRunner { device: Arc::clone(&device), shared: Arc::clone(&shared) };
        let executors = Executors::pools(&runner).unwrap();
        let session = Session::of(Arc::clone(&shared), device, ServiceRunner::Thread(None));
        (session, Arc::clone(&shared), Service::new(shared, executors, None))
    }

    /// A thread that resets the session finds a stream that has stopped, and waits for it; the service drops the stream without having
    /// seen the reset.
    #[test]
    fn a_reset_does_not_wait_for_a_stopped_stream_that_is_gone() {
        let (session, shared, mut service) = session();
        let core = shared.open_stream(StreamOptions::default()).unwrap();
        let stream = Stream::of(Arc::clone(&core), Arc::clone(&shared), session.clone());
        service.step(None);
        let (stream_id, cause) = (core.id, FailureCause::TimedOut(Duration::ZERO));
        let failure = CommandFailure { stream: stream_id, command: 1, kind: None, cause };
        core.stop(&Arc::new(failure));
        let found = shared.streams();
        drop(stream);
        service.step(None);
        assert!(shared.streams().is_empty(), "the service has let go of it");
        assert!(found[0].status.lock().stopped.is_none());
    }

    /// The thread of the session that has the device goes on, and so do the streams.
    #[test]
    fn a_panic_in_a_run_is_an_error_of_its_command() {
        let mut panics = true;
        let fake = Fake::new(move |_, _| {
            assert!(!std::mem::take(&mut panics), "in the middle of a run");
            SUCCESS
        });
        let options = DeviceOptions { gm_bytes: 64 << 20, ..DeviceOptions::default() };
        let device = Device::open_fake(options, fake).unwrap();
        let session = device.session(SessionOptions::default()).unwrap();
        let stream = session.stream().unwrap();
        let run = || {
            let work = OwnedWork::AicpuBuilder { builder: "known".to_owned(), orch_args: vec![] };
            stream.run(work).unwrap();
            stream.synchronize_within(Duration::from_secs(60))
        };
        let failed = run().unwrap_err().to_string();
        assert!(
            failed.contains("the host panicked while the device ran: in the middle"),
            "{failed}"
        );
        run().unwrap();
        session.close().expect("the session has one owner");
    }

    #[test]
    fn an_idle_service_uses_no_cpu_and_wakes_up() {
        let (session, shared, service) = session();
        let of_service = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            serve(&of_service, service);
            cpu_time()
        });
        let core = shared.open_stream(StreamOptions::default()).unwrap();
        let stream = Stream::of(core, Arc::clone(&shared), session);
        let words = shared.memory.alloc(64, crate::allocator::Owner::User).unwrap();
        for value in 0..10 {
            std::thread::sleep(Duration::from_millis(50));
            stream.write_value(words, value).unwrap();
            stream.synchronize_within(Duration::from_secs(60)).unwrap();
        }
        shared.end();
        let used = thread.join().unwrap();
        assert!(used < Duration::from_millis(100), "{used:?} of half a second");
    }
}
