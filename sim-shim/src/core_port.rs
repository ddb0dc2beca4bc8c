//! One simulated core: the worker loop's port over a handshake line, and the call of kernels.

use pto_abi::CoreKind;
use pto_abi::chain::{self, ChainKernel};
use pto_abi::handshake::{Command, Dispatch, Handshake};
use pto_abi::kinds::RunFlags;
use pto_abi::runtime::WorkerEntry;
use pto_abi::trace::{TraceKind, TraceOwner, TracePoint};
use pto_aicore_kernels::worker::WorkerPort;
use pto_aicpu_fw::{Launch, TraceWriter};

use crate::clock;
use crate::crash;

/// What a core does with the times of its kernels.
#[derive(Clone, Copy)]
pub(crate) enum KernelTimes<'a> {
    Measure,
    Skip,
    /// Measures, and records when they start and finish.
    Trace(TraceWriter<'a>),
}

/// One core.
#[derive(Clone, Copy)]
pub(crate) struct CorePort<'a> {
    lines: &'a Handshake,
    worker: u32,
    kind: CoreKind,
    times: KernelTimes<'a>,
}

impl CorePort<'static> {
    /// Every core of a launch.
    pub(crate) fn of_launch(launch: &Launch<'static>) -> Vec<Self> {
        let untraced = if launch.flags.contains(RunFlags::KERNEL_TIMES) {
            KernelTimes::Measure
        } else {
            KernelTimes::Skip
        };
        let workers = launch.arena.workers().iter().enumerate().take(launch.workers.len());
        let port = |(worker, lines)| {
            let number = u32::try_from(worker).unwrap_or(u32::MAX);
            let writer = launch.trace_writer(TraceOwner::Core(number));
            let times = writer.map_or(untraced, KernelTimes::Trace);
            Self::new(lines, number, launch.arena.worker_entry(worker), times)
        };
        workers.map(port).collect()
    }
}

impl<'a> CorePort<'a> {
    pub(crate) fn new(
        lines: &'a Handshake,
        worker: u32,
        entry: WorkerEntry,
        times: KernelTimes<'a>,
    ) -> Self {
        // An unknown kind is in no worker table that the firmware accepts.
        let kind = u8::try_from(entry.kind).ok().and_then(|kind| CoreKind::try_from(kind).ok());
        Self { lines, worker, kind: kind.unwrap_or(CoreKind::AIV), times }
    }

    #[inline]
    fn trace(&self, kind: TraceKind, time_ns: u64, (task, extra): (u32, u32)) {
        if let KernelTimes::Trace(writer) = &self.times {
            writer.write(TracePoint { time_ns, kind, task, extra }, clock::pause);
        }
    }

    /// `extra`: of the events, which kernel of a chain it is.
    #[inline(never)]
    fn run_timed(&self, dispatch: &Dispatch, extra: u32) {
        let start = clock::now_ns();
        self.trace(TraceKind::STARTED, start, (dispatch.task, extra));
        crash::watched(dispatch, (self.worker, self.kind), || CorePort::call(dispatch));
        let end = clock::now_ns();
        self.trace(TraceKind::FINISHED, end, (dispatch.task, extra));
        self.lines.account(end - start);
    }

    /// Calls the kernel of a dispatch.
    #[inline]
    pub(crate) fn call(dispatch: &Dispatch) {
        // SAFETY: by the firmware's contract, with functions and memory of this process.
        unsafe { pto_aicore_kernels::call(dispatch) };
    }
}

/// All state is in the core's lines: any agent that has the core may step it.
impl WorkerPort for &CorePort<'_> {
    #[inline(always)]
    fn next_dispatch(&mut self) -> Option<Dispatch> {
        self.lines.next_dispatch()
    }

    fn command(&mut self) -> Command {
        self.lines.command()
    }

    fn introduce(&mut self, epoch: u32) {
        self.lines.introduce(epoch, self.worker, self.kind);
    }

    // As `worker::step`, which calls it.
    #[inline(always)]
    fn run(&mut self, dispatch: &Dispatch) {
        if matches!(self.times, KernelTimes::Skip) {
            CorePort::call(dispatch);
            self.lines.count_task();
        } else {
            self.run_timed(dispatch, 0);
        }
    }

    fn run_link(&mut self, dispatch: &Dispatch, kernel: &ChainKernel, _: &[u64]) -> bool {
        self.lines.note_chain(kernel.number + 1, kernel.func_id);
        if matches!(self.times, KernelTimes::Skip) {
            self.run(dispatch);
        } else {
            self.run_timed(dispatch, chain::event_extra(kernel));
        }
        true
    }

    #[inline]
    fn finish(&mut self, id: u32) {
        self.lines.finish(id);
    }

    fn leave(&mut self) {
        self.lines.leave();
    }
}

/// The lines of a core in a run that wants no times of kernels, for the thread that has just rung its doorbell.
pub(crate) struct UntimedPort<'a>(pub(crate) &'a Handshake);

impl WorkerPort for UntimedPort<'_> {
    fn command(&mut self) -> Command {
        self.0.command()
    }

    /// Only a core in service gets a doorbell.
    fn introduce(&mut self, _: u32) {}

    #[inline(always)]
    fn run(&mut self, dispatch: &Dispatch) {
        CorePort::call(dispatch);
        self.0.count_task();
    }

    fn run_link(&mut self, dispatch: &Dispatch, kernel: &ChainKernel, _: &[u64]) -> bool {
        self.0.note_chain(kernel.number + 1, kernel.func_id);
        self.run(dispatch);
        true
    }

    #[inline(always)]
    fn finish(&mut self, id: u32) {
        self.0.finish(id);
    }

    fn leave(&mut self) {
        self.0.leave();
    }
}
