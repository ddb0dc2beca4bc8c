//! The CPUs on which the threads of a pool run. A system may put two busy threads on one CPU for some milliseconds although another CPU is
//! idle: a kernel that packs the threads of a virtual machine onto few CPUs does so at each wake-up. Then two threads are slower than one.
//!
//! Each thread publishes its CPU. One that finds a thread of a lower number on its own CPU moves to another CPU, and is then free to run anywhere again: no
//! thread is bound to a CPU. Between two runs, a thread that expects the next one leaves the CPU to the thread that has asked for the last one: each of the two would
//! look for the other there, and keep it from running.

use pto_abi::sync::{AtomicU32, Ordering};

use crate::clock;

/// A thread that has not published its CPU.
const UNKNOWN_CPU: u32 = u32::MAX;
/// A thread does not move twice within this time: the system may have its reasons, and a move costs some microseconds.
const MIN_MOVE_INTERVAL_NS: u64 = 500_000;

/// The CPU of one thread; in a cache line of its own, which is written when it changes.
#[repr(align(64))]
struct CpuSlot(AtomicU32);

/// The CPU of each thread of a run, and the CPU of the thread that started the run.
pub(super) struct CpuMap {
    threads: Vec<CpuSlot>,
    /// The CPU on which the run was asked for, where that is known.
    caller: Option<u32>,
}

impl CpuMap {
    /// The CPUs of a run that the calling thread starts.
    pub(super) fn new(threads: usize) -> Self {
        let threads = (0..threads).map(|_| CpuSlot(AtomicU32::new(UNKNOWN_CPU))).collect();
        Self { threads, caller: current_cpu() }
    }

    /// Publishes the CPU of the thread `me`, which is the caller; `None`: the CPU is not known.
    #[inline]
    pub(super) fn note(&self, me: usize) -> Option<u32> {
        // It does not matter for a single thread.
        let slot = self.threads.get(me).filter(|_| self.threads.len() > 1)?;
        let cpu = current_cpu()?;
        if slot.0.load(Ordering::Relaxed) != cpu {
            slot.0.store(cpu, Ordering::Relaxed);
        }
        Some(cpu)
    }

    /// Whether a thread of a lower number has published this CPU.
    #[inline]
    fn is_taken(&self, cpu: u32, me: usize) -> bool {
        self.threads.iter().take(me).any(|slot| slot.0.load(Ordering::Relaxed) == cpu)
    }

    /// The CPUs on which the threads other than `me` run.
    fn others(&self, me: usize) -> impl Iterator<Item = u32> {
        let others = self.threads.iter().enumerate().filter(move |(index, _)| *index != me);
        others.map(|(_, slot)| slot.0.load(Ordering::Relaxed))
    }
}

/// The moves of one thread.
#[derive(Default)]
pub(super) struct CpuMigration {
    moved_ns: u64,
}

impl CpuMigration {
    /// Publishes the CPU of the thread, and moves the thread if another one has this CPU.
    #[inline]
    pub(super) fn look(&mut self, cpus: &CpuMap, me: usize) {
        if let Some(cpu) = cpus.note(me)
            && cpus.is_taken(cpu, me)
        {
            self.step_aside(cpus, (me, cpu));
        }
    }

    /// Moves the thread if it is on the CPU of the thread that has asked for the run.
    pub(super) fn leave_to_caller(&mut self, cpus: &CpuMap, me: usize) {
        if let Some(cpu) = current_cpu()
            && cpus.caller == Some(cpu)
        {
            self.step_aside(cpus, (me, cpu));
        }
    }

    #[cold]
    fn step_aside(&mut self, cpus: &CpuMap, (me, cpu): (usize, u32)) {
        let now_ns = clock::now_ns();
        if self.moved_ns != 0 && now_ns < self.moved_ns + MIN_MOVE_INTERVAL_NS {
            return;
        }
        self.moved_ns = now_ns.max(1);
        leave(cpus.others(me).chain([cpu]));
        cpus.note(me);
    }
}

/// The CPU of the calling thread.
#[cfg(all(target_os = "linux", not(miri)))]
#[inline]
pub(super) fn current_cpu() -> Option<u32> {
    // SAFETY: it takes nothing, and reads what the kernel says of this thread.
    let cpu = unsafe { libc::sched_getcpu() };
    u32::try_from(cpu).ok()
}

#[cfg(any(not(target_os = "linux"), miri))]
#[inline]
pub(super) fn current_cpu() -> Option<u32> {
    None
}

/// Moves the calling thread to a CPU that it may use and that is none of these, if there is one. Afterwards it may use the same CPUs as before.
#[cfg(target_os = "linux")]
pub(super) fn leave(cpus: impl Iterator<Item = u32>) {
    let bytes = size_of::<libc::cpu_set_t>();
    // SAFETY: a set of CPUs is an array of integers, for which zero is a value: the empty set.
    let mut allowed: libc::cpu_set_t = unsafe { core::mem::zeroed() };
    // SAFETY: the set is a variable of this function and has `bytes` bytes; 0 is the calling thread.
    let failed = unsafe { libc::sched_getaffinity(0, bytes, &raw mut allowed) };
    if failed != 0 {
        return;
    }
    let mut elsewhere = allowed;
    for cpu in cpus.map(|cpu| cpu as usize).filter(|cpu| *cpu < 8 * bytes) {
        // SAFETY: the number is below that of the set's bits.
        unsafe { libc::CPU_CLR(cpu, &mut elsewhere) };
    }
    // A set without a CPU is refused, and the thread stays where it is.
    // SAFETY: the set is a variable of this function and has `bytes` bytes; 0 is the calling thread.
    let refused = unsafe { libc::sched_setaffinity(0, bytes, &raw const elsewhere) };
    if refused == 0 {
        // SAFETY: the set is a variable of this function and has `bytes` bytes. These CPUs were allowed a moment ago.
        unsafe { libc::sched_setaffinity(0, bytes, &raw const allowed) };
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn leave(_: impl Iterator<Item = u32>) {}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::{CpuMap, CpuMigration, UNKNOWN_CPU, current_cpu, leave};

    #[test]
    fn a_thread_leaves_the_cpu_of_its_caller_and_not_again_at_once() {
        let mut cpus = CpuMap::new(1);
        let mut moves = |migration: &mut CpuMigration, caller: fn() -> Option<u32>| {
            let before = migration.moved_ns;
            cpus.caller = caller();
            migration.leave_to_caller(&cpus, 0);
            migration.moved_ns != before
        };
        let mut migration = CpuMigration::default();
        assert!(!moves(&mut migration, || None), "the caller's CPU is not known");
        assert!(!moves(&mut migration, || Some(UNKNOWN_CPU)), "the caller is somewhere else");
        // The test's own thread may be moved between its two looks.
        assert!((0..100).any(|_| moves(&mut migration, current_cpu)));
        migration.moved_ns = u64::MAX / 2;
        assert!(!moves(&mut migration, current_cpu), "it has moved just now");
    }

    /// The CPUs that the calling thread may use.
    fn allowed() -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }

    #[test]
    fn a_thread_leaves_a_cpu_and_may_use_all_of_them_afterwards() {
        let before = allowed();
        for _ in 0..10 {
            let cpu = current_cpu().unwrap();
            leave([cpu].into_iter());
            assert_eq!(allowed(), before);
        }
        leave(0..1_000_000);
        assert_eq!(allowed(), before, "there is no other CPU");
        assert!(current_cpu().is_some());
    }

    #[test]
    fn the_thread_of_the_higher_number_moves_and_not_again_at_once() {
        let cpus = CpuMap::new(2);
        let moves = |me: usize, other: usize, migration: &mut CpuMigration| {
            let before = migration.moved_ns;
            cpus.threads[other].0.store(current_cpu().unwrap(), super::Ordering::Relaxed);
            migration.look(&cpus, me);
            migration.moved_ns != before
        };
        let (mut first, mut second) = (CpuMigration::default(), CpuMigration::default());
        assert!(!moves(0, 1, &mut first), "it has the lower number");
        // The test's own thread may be moved between its two looks.
        assert!((0..100).any(|_| moves(1, 0, &mut second)));
        second.moved_ns = u64::MAX / 2;
        assert!(!moves(1, 0, &mut second), "it has moved just now");
        assert!(cpus.others(0).all(|cpu| cpu != UNKNOWN_CPU));
        assert_eq!(CpuMap::new(1).note(0), None, "it does not matter for a single thread");
    }
}
