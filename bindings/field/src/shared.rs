//! What all tasks of a run share: failures, times, and the state that the kernels of a block find by a key.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use pto_host::Hosting;

use crate::counters::PipeCycles;
use crate::dump::{Dump, Dumped, Plan};
use crate::flags::Flags;
use crate::lines::Lines;
use crate::meetings::Meetings;
use crate::options::CallOptions;
use crate::run_log::RunLog;
use crate::spans::KernelSpan;
use crate::watch::{PolledWord, StallDetector};

/// What all tasks of a run share.
pub(crate) struct SharedState {
    /// The first code that a kernel's completion failed with.
    pub(crate) failed: AtomicI32,
    /// A kernel's completion waited for what no other task could do meanwhile.
    pub(crate) waited_alone: AtomicBool,
    /// One kernel at a time runs.
    pub(crate) runs_one: bool,
    /// When the tasks of a timing slot began and ended, in nanoseconds since `start`.
    pub(crate) timing: [[AtomicU64; 2]; 16],
    /// Each core has an OS thread of its own.
    pub(crate) has_own_threads: bool,
    /// Kernels run on threads of their own, and may go on after their call has returned.
    pub(crate) runs_detached: bool,
    /// Where the program submits the first task whose kernel went on.
    went_on: Mutex<Option<String>>,
    /// What its kernels wait for; `None`: each has a thread of its own, or others than kernels may write it.
    watch: Option<StallDetector>,
    /// Flags between the cores of a task.
    pub(crate) flags: Flags,
    /// What a kernel did that ended it, and what to do about it: the first one.
    crash: Mutex<Option<Crash>>,
    start: Instant,
    spans: Option<Mutex<Vec<KernelSpan>>>,
    /// Instructions that the cost model does not know: those that count as similar ones, and those that count nowhere.
    rough: [Mutex<BTreeSet<String>>; 2],
    dump: Option<Mutex<Dump>>,
    /// Lines that kernels write in parts, if that is asked for.
    lines: Option<Mutex<Lines>>,
    /// Where kernels meet that wait for each other; `None`: each core has an OS thread, or one kernel at a time runs.
    meetings: Option<Meetings>,
    /// State that the kernels of one block share, by task, block and key.
    pipes: Mutex<BTreeMap<(u64, u32), Pipes>>,
}

/// Whether one kernel at a time runs in a hosting mode.
pub(crate) const fn runs_one(hosting: Hosting) -> bool {
    match hosting {
        Hosting::Virtual(_) => true,
        Hosting::Pool { os_threads } => os_threads.get() == 1,
        Hosting::Threads => false,
    }
}

/// What a kernel did that ends the run.
#[derive(Clone, Debug)]
pub(crate) struct Crash {
    pub(crate) what: String,
    /// What to do about it.
    pub(crate) hint: &'static str,
}

/// A kernel that has returned, and how long it kept its pipes busy.
pub(crate) struct FinishedKernel {
    /// See [`KernelSpan`].
    pub(crate) slot: usize,
    /// See [`KernelSpan`].
    pub(crate) core: usize,
    /// The number of the block.
    pub(crate) block: u32,
    /// How long its pipes were busy.
    pub(crate) pipes: Option<PipeCycles>,
}

/// The shared state of one block.
#[derive(Default)]
struct Pipes {
    states: BTreeMap<u64, Box<[u64]>>,
    left: u32,
}

impl SharedState {
    pub(crate) fn new(options: &CallOptions, hosting: Hosting) -> Self {
        let keeps = options.keeps;
        // An OS thread runs several cores.
        let has_fewer_threads = !matches!(hosting, Hosting::Threads);
        let runs_detached = matches!(hosting, Hosting::Virtual(_)) && !options.finds_shared_lines;
        let slot = || [AtomicU64::new(u64::MAX), AtomicU64::new(0)];
        Self {
            failed: AtomicI32::new(0),
            waited_alone: AtomicBool::new(false),
            runs_one: runs_one(hosting),
            timing: std::array::from_fn(|_| slot()),
            has_own_threads: !has_fewer_threads,
            runs_detached,
            watch: (has_fewer_threads && !runs_detached && !options.waits_for_outside)
                .then(StallDetector::default),
            went_on: Mutex::new(None),
            flags: Flags::default(),
            crash: Mutex::new(None),
            start: Instant::now(),
            spans: keeps.spans.then(Mutex::default),
            rough: Default::default(),
            dump: (keeps.arguments != 0).then(|| Mutex::new(Dump::new(keeps.arguments))),
            lines: options.finds_shared_lines.then(Mutex::default),
            // Where lines are looked for, kernels of other threads would change memory meanwhile.
            meetings: (has_fewer_threads && !options.finds_shared_lines).then(Meetings::default),
            pipes: Mutex::new(BTreeMap::new()),
        }
    }

    /// A kernel has done what ends the run.
    #[cold]
    pub(crate) fn crashed(&self, crash: Crash) {
        self.crash.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(crash);
    }

    /// A kernel of the task that is submitted there goes on after its call has returned.
    #[cold]
    pub(crate) fn goes_on(&self, location: String) {
        self.went_on.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(location);
    }

    /// The location of the first call of [`goes_on`](Self::goes_on).
    pub(crate) fn went_on(&self) -> Option<String> {
        self.went_on.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Calls the orchestration.
    pub(crate) fn building<R>(&self, build: impl FnOnce() -> R) -> R {
        match &self.watch {
            Some(watch) => watch.building(build),
            None => build(),
        }
    }

    /// Calls a kernel, with what waits for its conditions.
    #[inline]
    pub(crate) fn running<R>(&self, kernel: impl FnOnce() -> R) -> R {
        match &self.watch {
            Some(watch) => watch.running(kernel),
            None => kernel(),
        }
    }

    /// The kernel on this thread looks at a word again and again; whether no kernel can write it meanwhile.
    #[inline]
    pub(crate) fn is_stuck(&self, look: PolledWord) -> bool {
        self.watch.as_ref().is_some_and(|watch| watch.look(look))
    }

    /// As [`is_stuck`](Self::is_stuck), for polls that are some milliseconds apart.
    pub(crate) fn is_stuck_slowly(&self, look: PolledWord) -> bool {
        self.watch.as_ref().is_some_and(|watch| watch.look_slowly(look))
    }

    /// Whether a kernel has done what ends the run.
    pub(crate) fn has_crashed(&self) -> bool {
        self.crash.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// The crash of the first call of [`crashed`](Self::crashed).
    pub(crate) fn crash(&self) -> Option<Crash> {
        self.crash.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Where kernels meet that wait for each other; `None`: they need not.
    #[inline]
    pub(crate) fn meetings(&self) -> Option<&Meetings> {
        self.meetings.as_ref()
    }

    /// The lines that kernels write in parts, if they are kept.
    #[inline]
    pub(crate) fn lines(&self) -> Option<&Mutex<Lines>> {
        self.lines.as_ref()
    }

    /// What is to be said of such lines.
    pub(crate) fn shared_lines(&self, run_log: &RunLog) -> Vec<String> {
        let lines = self.lines.as_ref();
        lines.map_or_else(Vec::new, |lines| {
            lines.lock().unwrap_or_else(PoisonError::into_inner).report(run_log)
        })
    }

    /// Whether [`begins`](Self::begins) and [`ends`](Self::ends) are to be called.
    #[inline]
    pub(crate) fn keeps(&self) -> bool {
        self.spans.is_some() || self.dump.is_some()
    }

    fn with_dump(&self, then: impl FnOnce(&mut Dump)) {
        if let Some(dump) = &self.dump {
            then(&mut dump.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// A task is about to be submitted.
    pub(crate) fn plan(&self, own: u64, plan: impl FnOnce() -> Plan) {
        self.with_dump(|dump| dump.plan(own, plan()));
    }

    /// A kernel of a task begins; when.
    pub(crate) fn begins(&self, own: u64) -> u64 {
        self.with_dump(|dump| dump.begin(own));
        self.now()
    }

    /// A kernel has an instruction that the cost model does not know.
    pub(crate) fn counts_roughly(&self, name: &str, is_counted: bool) {
        let [similar, nowhere] = &self.rough;
        let names = if is_counted { similar } else { nowhere };
        let mut names = names.lock().unwrap_or_else(PoisonError::into_inner);
        if !names.contains(name) {
            names.insert(name.to_owned());
        }
    }

    /// The names that were passed to [`counts_roughly`](Self::counts_roughly).
    pub(crate) fn rough(&self) -> [Vec<String>; 2] {
        self.rough.each_ref().map(|names| {
            let names = names.lock().unwrap_or_else(PoisonError::into_inner);
            names.iter().cloned().collect()
        })
    }

    /// A kernel of a task has returned.
    pub(crate) fn ends(&self, own: u64, ran: FinishedKernel, begin: u64) {
        let end = self.now();
        if let Some(spans) = &self.spans {
            let [slot, core] =
                [ran.slot, ran.core].map(|number| u8::try_from(number).unwrap_or(u8::MAX));
            let thread = crate::spans::this_thread();
            let FinishedKernel { block, pipes, .. } = ran;
            let span = KernelSpan {
                own,
                task: own,
                slot,
                core,
                block,
                pipes,
                func_id: -1,
                thread,
                begin,
                end,
            };
            spans.lock().unwrap_or_else(PoisonError::into_inner).push(span);
        }
        self.with_dump(|dump| dump.end(own));
    }

    /// What was kept of the kernels.
    pub(crate) fn kept(&self) -> (Vec<KernelSpan>, Dumped) {
        let mut dumped = Dumped::default();
        self.with_dump(|dump| dumped = dump.finish());
        let spans = self.spans.as_ref();
        let spans = spans.map(|spans| {
            std::mem::take(&mut *spans.lock().unwrap_or_else(PoisonError::into_inner))
        });
        (spans.unwrap_or_default(), dumped)
    }

    /// Memory of `bytes` zeros that the kernels of a block find by `key`.
    pub(crate) fn pipe(&self, block: (u64, u32), key: u64, bytes: usize) -> *mut u64 {
        let mut pipes = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
        let words = bytes.div_ceil(8).max(1);
        let states = &mut pipes.entry(block).or_default().states;
        // A second look with a larger size gets what is there: the kernels of a block agree on it.
        states.entry(key).or_insert_with(|| vec![0; words].into_boxed_slice()).as_mut_ptr()
    }

    /// One of the `parts` kernels of a block has returned: after the last one the shared state is freed.
    pub(crate) fn leave(&self, block: (u64, u32), parts: u32) {
        let mut pipes = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
        let state = pipes.entry(block).or_default();
        state.left += 1;
        if state.left >= parts {
            pipes.remove(&block);
            drop(pipes);
            self.flags.forget(block.0, block.1);
        }
    }
}
