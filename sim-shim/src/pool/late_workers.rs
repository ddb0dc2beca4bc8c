//! The late workers of a run: threads of the pool that have no part in it until kernels are long enough to be handed off.
//!
//! One thread is as fast as several while kernels are short, and faster than several that look for work: a thread that is woken for a run and put to sleep
//! after it takes some 40 us, and its looks take lines away from the thread that schedules. So the first thread runs alone, and calls the others when
//! there is something for them.

use std::sync::mpsc::Sender;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Thread;

/// A thread of the pool, and where it takes its jobs from.
pub(super) struct LateWorker<J> {
    pub(super) jobs: Sender<J>,
    pub(super) thread: Thread,
}

/// Who has a part in a run, and who may be called.
pub(super) struct LateWorkers<J> {
    /// Those who have not been called.
    uncalled: Mutex<Vec<LateWorker<J>>>,
    /// Those who have, and the first thread.
    present: Mutex<Vec<Thread>>,
}

impl<J: Clone> LateWorkers<J> {
    /// The late workers of a run that `first` begins.
    pub(super) fn new(first: Thread, others: Vec<LateWorker<J>>) -> Self {
        Self { uncalled: Mutex::new(others), present: Mutex::new(vec![first]) }
    }

    /// Calls those who have not been called: `expect` hears how many will return from the job, before they begin it.
    pub(super) fn call(&self, job: &J, expect: impl FnOnce(usize)) {
        let called = core::mem::take(&mut *locked(&self.uncalled));
        expect(called.len());
        let mut present = locked(&self.present);
        for LateWorker { jobs, thread } in called {
            // A thread of the pool ends only when its sender is dropped.
            jobs.send(job.clone()).unwrap_or_default();
            present.push(thread);
        }
    }

    /// The run is over: wakes the threads that have a part in it, which need not sleep any longer.
    pub(super) fn wake_present(&self) {
        locked(&self.present).iter().for_each(Thread::unpark);
    }
}

/// What is locked is whole between any two calls.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{LateWorker, LateWorkers};
    use crate::supervisor::Finish;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn guests_are_called_once_and_the_run_waits_for_them() {
        let finish = Finish::of(1);
        let (calls, called): (Vec<_>, Vec<_>) = (0..3).map(|_| channel()).unzip();
        std::thread::scope(|scope| {
            let late_worker = |(jobs, receiver): (_, std::sync::mpsc::Receiver<u32>)| {
                let finish = &finish;
                let serve = move || {
                    let jobs: Vec<u32> = receiver.iter().collect();
                    // The run is not over before the late worker has returned from it.
                    std::thread::sleep(Duration::from_millis(5));
                    assert!(jobs.is_empty() || !finish.wait(Duration::ZERO));
                    jobs.iter().for_each(|_| finish.returned());
                    jobs
                };
                let handle = scope.spawn(serve);
                let thread = handle.thread().clone();
                (LateWorker { jobs, thread }, handle)
            };
            let (others, handles): (Vec<_>, Vec<_>) =
                calls.into_iter().zip(called).map(late_worker).unzip();
            let late_workers = LateWorkers::new(std::thread::current(), others);
            let call = || late_workers.call(&7, |count| finish.expect(count));
            call();
            call();
            finish.returned();
            assert!(finish.wait(LONG));
            for handle in handles {
                assert_eq!(handle.join().unwrap(), [7], "called once");
            }
        });
    }

    #[test]
    fn who_has_no_part_is_not_woken() {
        let (jobs, _receiver) = channel();
        let sleeper = std::thread::spawn(|| std::thread::park_timeout(LONG));
        let others = vec![LateWorker { jobs, thread: sleeper.thread().clone() }];
        let late_workers: LateWorkers<u32> = LateWorkers::new(std::thread::current(), others);
        late_workers.wake_present();
        std::thread::park_timeout(LONG);
        std::thread::sleep(Duration::from_millis(20));
        assert!(!sleeper.is_finished());
        late_workers.call(&7, |count| assert_eq!(count, 1));
        late_workers.wake_present();
        sleeper.join().unwrap();
    }
}
