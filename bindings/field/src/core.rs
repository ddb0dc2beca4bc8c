//! What runs on a core: a function that takes a task's frame, and calls the program's kernel as it expects to be called.
//!
//! The engine calls [`on_cube`] or [`on_vector`] with the words of the task. The first word is the frame; the word after the
//! arguments says which block it is. Kernels expect pointers to descriptors, then scalars, and two contexts in words 48 and 49.

use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Instant;

use pto_host::abi::block::BlockContext;
use pto_native::call_guarded_often;
use pto_native::foreign::field::{Conditions, GLOBAL, LOCAL, TaskFrame};

use crate::counters::{CostLookup, Instruction, PipeCycles, cost};
use crate::flags::{FlagMode, LaunchShape, TaskCore};
use crate::lines::Before;
use crate::shared::{Crash, FinishedKernel, SharedState};
use crate::watch::PolledWord;
use crate::wire::{ChipTensor, GlobalContext, LocalContext, SourceLocation, pointer_word};

/// How long a task waits for its conditions.
const CONDITION_TIMEOUT_S: u64 = 60;

/// A kernel of a program.
type Entry = unsafe extern "C" fn(*mut i64);

/// The kernel that runs on this thread.
#[derive(Clone, Copy)]
struct RunningKernel {
    shared: *const SharedState,
    block: (u64, u32),
    lane: u32,
    used_pipes: bool,
    /// The task, and which of its kernels this is; null: none.
    frame: *const TaskFrame,
    slot: usize,
    /// Blocks of the task.
    blocks: u32,
}

const NOTHING: RunningKernel = RunningKernel {
    shared: std::ptr::null(),
    block: (0, 0),
    lane: 0,
    used_pipes: false,
    frame: std::ptr::null(),
    slot: 0,
    blocks: 0,
};

thread_local! {
    static RUNNING: Cell<RunningKernel> = const { Cell::new(NOTHING) };
    /// How long the pipes were busy with the instructions that the kernel on this thread has reported; `None`: it reported none.
    static COUNTED: Cell<Option<PipeCycles>> = const { Cell::new(None) };
}

/// Runs a task's kernel on a cube core.
///
/// # Safety
/// The engine calls it with the words of a task that this crate has submitted.
pub(crate) unsafe extern "C" fn on_cube(args: *const u64) {
    // SAFETY: the caller vouches for the words.
    unsafe { run(args, 0) }
}

/// Runs a task's kernel on a vector core.
///
/// # Safety
/// As [`on_cube`].
pub(crate) unsafe extern "C" fn on_vector(args: *const u64) {
    // SAFETY: the caller vouches for the words.
    unsafe { run(args, 1) }
}

/// # Safety
/// As [`on_cube`]; `first` is the index of the first kernel of this kind in a frame.
unsafe fn run(args: *const u64, first: usize) {
    // SAFETY: a task of ours has its frame as the first word.
    let address = unsafe { args.read() };
    let frame: *const TaskFrame = std::ptr::with_exposed_provenance(pointer_word(address));
    // SAFETY: a frame lives until its task has retired.
    let task = unsafe { &*frame };
    // SAFETY: the engine writes the block's word after the arguments.
    let word = unsafe { args.wrapping_add(usize::from(task.block_word)).read() };
    let block = BlockContext::of(word);
    let lane = if first == 0 { 0 } else { block.lane };
    let (slot, entry) = match task.entries.get(first + lane as usize) {
        Some(&entry) if entry != 0 => (first + lane as usize, entry),
        // A single vector kernel runs on either core of a cluster.
        _ => (first, task.entries[first]),
    };
    if entry == 0 {
        return;
    }
    // SAFETY: the run's shared state lives as long as its tasks.
    let shared = unsafe { &*task.shared.cast::<SharedState>() };
    let kernel = TaskKernel { frame, first, slot, entry, block, lane };
    let Some(meetings) = shared.meetings().filter(|_| task.party > 1 || shared.runs_detached)
    else {
        // SAFETY: the task has not completed.
        return unsafe { kernel.run() };
    };
    let group = (task.task, (!task.starts_at_once).then_some(block.block));
    let run = move || {
        // SAFETY: the task completes after the last kernel of the group, which waits for the others.
        unsafe { { kernel }.run() }
    };
    if task.party == 1 {
        return call(shared, task, run);
    }
    if let Some(together) = meetings.arrive(group, task.party.into(), run) {
        call(shared, task, move || {
            if let Err(error) = together() {
                // SAFETY: as above.
                report_no_thread(unsafe { { kernel }.shared() }, &error);
            }
        });
    }
}

/// Calls what is left of a task's kernels, on a thread of its own where the machine goes on meanwhile.
fn call(shared: &SharedState, task: &TaskFrame, kernel: impl FnOnce() + Send + 'static) {
    if !shared.runs_detached {
        return kernel();
    }
    match crate::kernel_thread::run(kernel) {
        Ok(true) => {
            let location = SourceLocation { file: task.file, line: task.line, reserved: 0 };
            shared.goes_on(location.describe());
        }
        Ok(false) => (),
        Err(error) => report_no_thread(shared, &error),
    }
}

#[cold]
fn report_no_thread(shared: &SharedState, error: &std::io::Error) {
    shared.crashed(Crash {
        what: format!("no thread could be started for a kernel that may wait: {error}"),
        hint: "Raise the limit of threads (`ulimit -u`, or that of the container), or open the device with hosting mode `threads`.",
    });
}

/// A kernel that is to be called.
#[derive(Clone, Copy)]
struct TaskKernel {
    frame: *const TaskFrame,
    /// The index of the first kernel of this kind in the frame.
    first: usize,
    slot: usize,
    entry: usize,
    block: BlockContext,
    lane: u32,
}

// SAFETY: a frame is only read once it is written, and lives until its task has retired.
unsafe impl Send for TaskKernel {}

impl TaskKernel {
    /// What the tasks of its run share.
    ///
    /// # Safety
    /// Its task has not completed.
    unsafe fn shared<'r>(self) -> &'r SharedState {
        // SAFETY: the caller vouches for it.
        let task = unsafe { &*self.frame };
        // SAFETY: the run's shared state lives as long as its tasks.
        unsafe { &*task.shared.cast::<SharedState>() }
    }

    /// Calls the kernel on this thread.
    ///
    /// # Safety
    /// Its task has not completed.
    unsafe fn run(self) {
        let Self { frame, slot, entry, block, lane, .. } = self;
        // SAFETY: the caller vouches for it.
        let task = unsafe { &*frame };
        // SAFETY: the run's shared state lives as long as its tasks.
        let shared = unsafe { &*task.shared.cast::<SharedState>() };
        let mut conditions = Conditions::new();
        let local = LocalContext {
            block_idx: i32::try_from(block.block).unwrap_or(i32::MAX),
            block_num: i32::try_from(block.blocks).unwrap_or(i32::MAX),
            asynchronous: conditions.context(task.task),
        };
        let global = GlobalContext {
            sub_block_id: i32::try_from(lane).unwrap_or(0),
            reserved: 0,
            dma_workspace: [0; 2],
        };
        // SAFETY: the task has not completed, so its frame, tensors and scalars are alive.
        let mut words = unsafe { TaskFrame::words(frame) };
        words[LOCAL] = ((&raw const local).expose_provenance() as u64).cast_signed();
        words[GLOBAL] = ((&raw const global).expose_provenance() as u64).cast_signed();
        let blocks = block.blocks;
        let block = (task.task, block.block);
        let running = RunningKernel { shared, block, lane, used_pipes: false, frame, slot, blocks };
        let before = RUNNING.replace(running);
        let begin = if task.timing_slot >= 0 { shared.now() } else { 0 };
        // Where lines are looked for one kernel at a time runs.
        let written = shared.lines().map(|_| Before::of(tensors_of(frame, task)));
        COUNTED.set(None);
        let kept = shared.keeps().then(|| shared.begins(task.task));
        let kernel = std::ptr::with_exposed_provenance_mut::<c_void>(entry);
        shared.running(|| {
            let arguments = (kernel, words.as_mut_ptr().cast());
            // SAFETY: the loader took it for a kernel, whose author vouches for it; the words are as kernels expect them.
            match unsafe { call_guarded_often(call_kernel, arguments, c"a kernel") } {
                Ok(_) => complete(&conditions, shared),
                Err(signal) => report_crash(shared, task, entry, signal),
            }
        });
        if let Some((lines, before)) = shared.lines().zip(written) {
            let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
            lines.changed(task.task, block.1, &before);
        }
        if let Some(begin) = kept {
            let core = self.first + lane as usize;
            let ran = FinishedKernel { slot, core, block: block.1, pipes: COUNTED.get() };
            shared.ends(task.task, ran, begin);
        }
        if let Some([least, most]) =
            usize::try_from(task.timing_slot).ok().and_then(|at| shared.timing.get(at))
        {
            least.fetch_min(begin, Ordering::Relaxed);
            most.fetch_max(shared.now(), Ordering::Relaxed);
        }
        let parts = task.entries.iter().filter(|entry| **entry != 0).count();
        if RUNNING.replace(before).used_pipes || parts > 1 {
            shared.leave(block, u32::try_from(parts).unwrap_or(1));
        }
    }
}

/// The descriptors of a task.
fn tensors_of<'f>(frame: *const TaskFrame, task: &TaskFrame) -> &'f [ChipTensor] {
    // SAFETY: so many descriptors follow the frame until its task has retired.
    unsafe { std::slice::from_raw_parts(TaskFrame::tensors_of(frame), task.tensors.into()) }
}

/// # Safety
/// `kernel` is a kernel, and `words` are its arguments.
unsafe extern "C" fn call_kernel(kernel: *mut c_void, words: *mut u64, _: c_int) -> c_int {
    // SAFETY: the caller vouches for it.
    let kernel = unsafe { std::mem::transmute::<*mut c_void, Entry>(kernel) };
    // SAFETY: as above. A signal jumps over this frame, which holds nothing.
    unsafe { kernel(words.cast()) };
    0
}

#[cold]
fn report_crash(shared: &SharedState, task: &TaskFrame, entry: usize, signal: &str) {
    let location = SourceLocation { file: task.file, line: task.line, reserved: 0 };
    let number = task.task & 0x7FFF_FFFF;
    let kernel = symbol_at(entry);
    shared.crashed(Crash {
        what: format!(
            "{}: {kernel}, the kernel of task {number}, raised {signal}",
            location.describe()
        ),
        hint: "Debug the kernel: compile it with -g -fsanitize=address, or without optimisation.",
    });
}

/// The name of the function at an address, with its object.
fn symbol_at(entry: usize) -> String {
    let address = std::ptr::with_exposed_provenance::<c_void>(entry);
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the function writes what it finds; the address is not read.
    let is_found = unsafe { libc::dladdr(address, found.as_mut_ptr()) } != 0;
    // SAFETY: zeros are a value of this type, as is what the function writes.
    let found = unsafe { found.assume_init() };
    if !is_found || found.dli_sname.is_null() {
        return "a function without a name".to_owned();
    }
    // SAFETY: dladdr gives a C string of an object that stays loaded.
    let name = unsafe { CStr::from_ptr(found.dli_sname) };
    format!("`{}`", name.to_string_lossy())
}

/// Waits for what the kernel has registered for its completion.
fn complete(conditions: &Conditions, shared: &SharedState) {
    let mut since = None;
    // SAFETY: the kernel has returned; the program says that it keeps the rules of kernels.
    let mut registered = unsafe { conditions.registered() };
    let is_readable =
        |address: u64| address == 0 || crate::memory::read(address, &mut [0; 4]).is_ok();
    let has_counters = registered.all(|condition| is_readable(condition.address));
    drop(registered);
    // SAFETY: as above.
    let mut wait = || unsafe {
        conditions.wait(|condition, _| {
            let is_alone = shared.runs_one && !shared.runs_detached;
            let look = PolledWord { address: condition.address, value: 0 };
            if is_alone || shared.is_stuck(look) {
                shared.waited_alone.store(true, Ordering::Relaxed);
                return Err(Conditions::TIMEOUT);
            }
            if since.get_or_insert_with(Instant::now).elapsed().as_secs() > CONDITION_TIMEOUT_S {
                let has_fewer_threads = !shared.has_own_threads && !shared.runs_detached;
                shared.waited_alone.store(has_fewer_threads, Ordering::Relaxed);
                return Err(Conditions::TIMEOUT);
            }
            std::thread::yield_now();
            Ok(())
        })
    };
    let is_refused = conditions.kernel_error() != 0;
    let completed = if is_refused || has_counters { wait() } else { Err(Conditions::INVALID) };
    if let Err(code) = completed {
        let _first = shared.failed.compare_exchange(0, code, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// The functions that PTO-ISA's simulator asks for, as `include/pto_field_prelude.h` declares them.
#[repr(C)]
pub(crate) struct SimTable {
    version: u64,
    subblock: extern "C" fn() -> u32,
    pipe: extern "C" fn(u64, usize) -> *mut u64,
    ticks: extern "C" fn() -> u64,
    count: unsafe extern "C" fn(*const Instruction),
    raise: extern "C" fn(u32, u32),
    wait: extern "C" fn(u32),
    look: extern "C" fn(u64, u64),
}

/// What the loader gives to kernels.
pub(crate) static SIM_TABLE: SimTable =
    SimTable { version: 3, subblock, pipe, ticks, count, raise, wait, look };

/// The kernel on this thread, if it is one of a task: its run, its task, its core and the others of it.
fn core_of_task<'r>(
    running: &RunningKernel,
) -> Option<(&'r SharedState, &'r TaskFrame, TaskCore, LaunchShape)> {
    // SAFETY: null, or the shared state of the run whose kernel is on this thread.
    let shared = unsafe { running.shared.as_ref() }?;
    // SAFETY: null, or the frame of the task whose kernel is on this thread: it has not retired.
    let task = unsafe { running.frame.as_ref() }?;
    let slot = u8::try_from(running.slot).ok()?;
    let core = TaskCore { task: running.block.0, block: running.block.1, slot };
    let launch =
        LaunchShape { blocks: running.blocks.max(1), has: task.entries.map(|entry| entry != 0) };
    Some((shared, task, core, launch))
}

/// Ends the run because a flag cannot come, or because no core takes it.
#[cold]
fn refuse_flag(shared: &SharedState, task: &TaskFrame, why: &str, hint: &'static str) {
    let location = SourceLocation { file: task.file, line: task.line, reserved: 0 };
    let what =
        format!("{}: a kernel of task {} {why}", location.describe(), task.task & 0x7FFF_FFFF);
    shared.crashed(Crash { what, hint });
}

/// The kernel on this thread raises a flag for other cores.
extern "C" fn raise(mode: u32, flag: u32) {
    RUNNING.set(RunningKernel { used_pipes: true, ..RUNNING.get() });
    let Some((shared, task, core, launch)) = core_of_task(&RUNNING.get()) else { return };
    let Some(mode) = FlagMode::of(mode) else {
        let why = format!("raises flag {flag} with mode {mode}: modes are 0 to 2, and 4");
        return refuse_flag(shared, task, &why, "Correct the word that the kernel raises.");
    };
    let meets_all = mode == FlagMode::Task && launch.blocks > 1;
    if meets_all && !task.starts_at_once && !shared.has_own_threads {
        let why = format!(
            "waits for the cores of all {} blocks, and here those that have not started cannot start meanwhile",
            launch.blocks
        );
        let hint = "Submit the task with launch_spec.set_require_sync_start(true), or open the device with hosting mode `threads`.";
        return refuse_flag(shared, task, &why, hint);
    }
    shared.flags.raise(core, launch, mode, flag);
}

/// The kernel on this thread waits until a flag is raised for its core.
extern "C" fn wait(flag: u32) {
    RUNNING.set(RunningKernel { used_pipes: true, ..RUNNING.get() });
    let Some((shared, task, core, launch)) = core_of_task(&RUNNING.get()) else { return };
    // If shared lines are looked for, the kernels of a task run one after the other.
    let is_alone = !shared.has_own_threads && shared.meetings().is_none();
    let is_never_raised = launch.cores() == 1 || is_alone;
    let is_over = || {
        is_never_raised || shared.has_crashed() || shared.is_stuck_slowly(PolledWord::flag(flag))
    };
    if shared.flags.wait(core, flag, is_over) {
        return;
    }
    let why = format!("waits for flag {flag}, which no core of its task raises");
    let hint = if is_alone && launch.cores() > 1 {
        "Run it without the report of shared lines, which needs one kernel at a time."
    } else {
        "Raise the flag on a core of the same task: flags do not go from one task to another."
    };
    refuse_flag(shared, task, &why, hint);
}

/// The kernel on this thread reports an instruction.
///
/// # Safety
/// The pointer is null, or all that it leads to is valid.
unsafe extern "C" fn count(instruction: *const Instruction) {
    // SAFETY: null, or the shared state of the run whose kernel is on this thread.
    let shared = unsafe { RUNNING.get().shared.as_ref() };
    // SAFETY: the caller vouches for the pointer.
    let instruction = unsafe { instruction.as_ref() };
    let (Some(shared), Some(instruction)) = (shared, instruction) else { return };
    if !shared.keeps() {
        return;
    }
    // SAFETY: the caller vouches for it, until this call returns.
    let (name, operands) = unsafe { instruction.read() };
    let mut pipes = COUNTED.get().unwrap_or_default();
    match cost(name, operands) {
        CostLookup::Takes(cost) => {
            pipes.add(cost);
            if cost.is_rough {
                shared.counts_roughly(name, true);
            }
        }
        CostLookup::Nothing => (),
        CostLookup::Unknown => shared.counts_roughly(name, false),
    }
    COUNTED.set(Some(pipes));
}

extern "C" fn subblock() -> u32 {
    RUNNING.get().lane
}

extern "C" fn pipe(key: u64, bytes: usize) -> *mut u64 {
    let running = RUNNING.get();
    RUNNING.set(RunningKernel { used_pipes: true, ..running });
    // SAFETY: null, or the shared state of the run whose kernel is on this thread.
    match unsafe { running.shared.as_ref() } {
        Some(shared) => shared.pipe(running.block, key, bytes),
        None => std::ptr::null_mut(),
    }
}

/// The clock of a core, in ticks of 20 ns.
extern "C" fn ticks() -> u64 {
    let running = RUNNING.get();
    look_at(&running, PolledWord::CLOCK);
    // SAFETY: as above.
    let nanoseconds = unsafe { running.shared.as_ref() }.map_or(0, SharedState::now);
    nanoseconds / 20
}

/// The kernel on this thread has looked at a word that others may write.
extern "C" fn look(address: u64, value: u64) {
    look_at(&RUNNING.get(), PolledWord { address, value });
}

/// Ends a kernel that waits for what no other kernel can do meanwhile.
fn look_at(running: &RunningKernel, look: PolledWord) {
    // SAFETY: null, or the shared state of the run whose kernel is on this thread.
    let Some(shared) = (unsafe { running.shared.as_ref() }) else { return };
    if shared.is_stuck(look) {
        refuse_wait(running, shared, look);
    }
}

#[cold]
fn refuse_wait(running: &RunningKernel, shared: &SharedState, look: PolledWord) {
    if let Some((_, task, ..)) = core_of_task(running) {
        let what = if look == PolledWord::CLOCK { "the clock" } else { "memory" };
        let location = SourceLocation { file: task.file, line: task.line, reserved: 0 };
        shared.crashed(Crash {
            what: format!(
                "{}: a kernel of task {} looks at {what} again and again, and all kernels that run wait: those that could write what they wait for have no thread here",
                location.describe(),
                task.task & 0x7FFF_FFFF
            ),
            hint: if shared.lines().is_some() {
                "If it waits for another task, run it without the report of shared lines, which needs one kernel at a time."
            } else {
                "If it waits for another task, open the device with hosting mode `threads`, or `virtual`."
            },
        });
    }
    // SAFETY: the kernel's guard takes the signal and leaves the kernel; the frames between the two hold nothing.
    unsafe { libc::raise(libc::SIGABRT) };
}
