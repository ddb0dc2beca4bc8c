//! A vCPU as AICore: the worker loop over its handshake lines, and the call of kernels in GM.

use core::arch::asm;

use pto_abi::CoreKind;
use pto_abi::arena::Arena;
use pto_abi::chain::{self, ChainKernel};
use pto_abi::handshake::{Command, Dispatch, Handshake};
use pto_abi::kinds::RunFlags;
use pto_abi::runtime::region;
use pto_abi::sync::Ordering;
use pto_abi::trace::{TraceKind, TraceOwner, TracePoint, WhenFull};
use pto_aicore_kernels::worker::{self, WorkerPort, WorkerStep};
use pto_aicpu_fw::TraceWriter;

use crate::qemu::timer::{self, Backoff};
use crate::qemu::vcpu::{self, Vcpu};
use crate::qemu::wake;

/// Serves the core's lines until it is asked to quit, or until the host gives another order.
pub(crate) fn take_part(me: Vcpu, arena: Arena<'static>, worker: u32) {
    let launch = &vcpu::boot_block().launch;
    let seen = me.line.seen.load(Ordering::Relaxed);
    let Some(mut port) = CorePort::new(&arena, worker, LaunchBinding::Of(seen)) else { return };
    forget_instructions();
    let mut backoff = Backoff::in_run();
    loop {
        match worker::step(&mut port) {
            WorkerStep::Worked => {
                backoff.reset();
                wake::wake_owner(worker);
            }
            WorkerStep::Left => {
                wake::wake_owner(worker);
                return;
            }
            WorkerStep::Idle if launch.look(seen).is_some() => return,
            WorkerStep::Idle => {
                if backoff.relax() {
                    me.count_nap();
                }
            }
        }
    }
}

/// After an exception in a kernel: the core leaves its loop, the task stays unfinished.
pub(crate) fn give_up(arena: &Arena<'static>, worker: u32) {
    if let Some(lines) = arena.workers().get(worker as usize) {
        lines.leave();
    }
}

/// The host may have copied kernels since: none of the old ones is executed any more.
pub(crate) fn forget_instructions() {
    // SAFETY: invalidates this vCPU's instruction cache; memory is not changed.
    unsafe { asm!("dsb ish", "ic iallu", "dsb nsh", "isb", options(nostack, preserves_flags)) };
}

/// What a core does with the times of its kernels.
#[derive(Clone, Copy)]
enum KernelTimes {
    Measure,
    Skip,
    /// Measures, and records when they start and finish.
    Trace(TraceWriter<'static>),
}

/// For which launch a core works.
#[derive(Clone, Copy)]
pub(crate) enum LaunchBinding {
    /// For this one, until there is another.
    Of(u32),
    /// There is no other meanwhile.
    Only,
}

/// One core.
pub(crate) struct CorePort<'a> {
    lines: &'a Handshake,
    worker: u32,
    kind: CoreKind,
    times: KernelTimes,
    binding: LaunchBinding,
}

impl CorePort<'static> {
    /// The core `worker` of an arena, if it has one.
    pub(crate) fn new(arena: &Arena<'static>, worker: u32, binding: LaunchBinding) -> Option<Self> {
        let lines = arena.workers().get(worker as usize)?;
        let entry = arena.worker_entry(worker as usize);
        // No worker table that the firmware accepts has an unknown kind.
        let kind = u8::try_from(entry.kind).ok().and_then(|kind| CoreKind::try_from(kind).ok());
        let times = Self::times(arena, worker);
        Some(Self { lines, worker, kind: kind.unwrap_or(CoreKind::AIV), times, binding })
    }

    fn times(arena: &Arena<'static>, worker: u32) -> KernelTimes {
        let flags = RunFlags::from_bits_retain(arena.config().flags);
        let at = arena.regions()[region::TRACE];
        if crate::qemu::TRACES
            && let owner = TraceOwner::Core(worker)
            && let Some(lane) = arena.trace_lane(at, owner, WhenFull::of(flags))
        {
            return KernelTimes::Trace(TraceWriter::new(lane, *arena, owner));
        }
        if flags.contains(RunFlags::KERNEL_TIMES) {
            KernelTimes::Measure
        } else {
            KernelTimes::Skip
        }
    }
}

impl CorePort<'_> {
    #[inline]
    fn trace(&self, kind: TraceKind, time_ns: u64, (task, extra): (u32, u32)) {
        if crate::qemu::TRACES
            && let KernelTimes::Trace(writer) = &self.times
        {
            let pause = || {
                core::hint::spin_loop();
                timer::now_ns()
            };
            writer.write(TracePoint { time_ns, kind, task, extra }, pause);
        }
    }

    /// Whether there is another launch. A core that stays in service sees the first dispatch of the next run before
    /// it looks for an order; what that run wants of it, it must know first.
    #[inline]
    fn is_over(&self) -> bool {
        match self.binding {
            LaunchBinding::Of(seen) => vcpu::boot_block().launch.look(seen).is_some(),
            LaunchBinding::Only => false,
        }
    }

    /// Runs a kernel and takes its time, if that is wanted. `extra`: of the events, which kernel of a chain it is.
    #[inline(always)]
    fn run_timed(&self, dispatch: &Dispatch, extra: u32) {
        if matches!(self.times, KernelTimes::Skip) {
            Self::call(dispatch);
            self.lines.account(0);
            return;
        }
        let start = timer::now_ns();
        self.trace(TraceKind::STARTED, start, (dispatch.task, extra));
        Self::call(dispatch);
        let end = timer::now_ns();
        self.trace(TraceKind::FINISHED, end, (dispatch.task, extra));
        self.lines.account(end.saturating_sub(start));
    }

    #[inline]
    fn call(dispatch: &Dispatch) {
        // SAFETY: by the firmware's contract. Code that is none ends in an exception, which is a fault of the run.
        unsafe { pto_aicore_kernels::call(dispatch) };
    }
}

impl WorkerPort for CorePort<'_> {
    #[inline]
    fn command(&mut self) -> Command {
        match self.lines.command() {
            Command::Run(_) if self.is_over() => Command::Wait,
            command => command,
        }
    }

    fn introduce(&mut self, epoch: u32) {
        self.lines.introduce(epoch, self.worker, self.kind);
    }

    #[inline]
    fn run(&mut self, dispatch: &Dispatch) {
        self.run_timed(dispatch, 0);
    }

    fn run_link(&mut self, dispatch: &Dispatch, kernel: &ChainKernel, _: &[u64]) -> bool {
        self.lines.note_chain(kernel.number + 1, kernel.func_id);
        self.run_timed(dispatch, chain::event_extra(kernel));
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
