//! A vCPU as AICPU instance of one run.

use pto_abi::arena::Arena;
use pto_abi::sync::{Concurrent, Ordering};
use pto_abi::trace::{TraceOwner, TracePoint};
use pto_abi::{FanoutStrategy, Fault};
use pto_aicpu_fw::blame::Blame;
use pto_aicpu_fw::{
    FanoutPolicy, Instance, Launch, LinesPlatform, LockFree, Locked, Machine, NoTrace, Platform,
    Progressed, TraceWriter, Tracer, instance,
};
use pto_graph::BuilderSet;

use crate::qemu::device_builders;
use crate::qemu::timer::{self, Backoff};
use crate::qemu::vcpu::{self, Vcpu};
use crate::qemu::wake;

/// Runs the instance until it has returned. Not inlined: workers need not keep room for it.
/// What is wrong with the launch is said by instance 0.
#[inline(never)]
pub(crate) fn take_part<B: BuilderSet>(me: Vcpu, arena: Arena<'static>, builders: B) {
    let launch = match Launch::accept(arena).and_then(fits_image).and_then(fits_machine) {
        Ok(launch) => launch,
        Err(blame) => {
            if me.index == 0 {
                instance::refuse(&arena, &blame, 0, timer::now_ns());
            }
            return;
        }
    };
    me.set_log_ring(arena.log_ring(launch.log_region(), me.index));
    match (launch.fanout, crate::qemu::TRACES && launch.is_traced()) {
        (FanoutStrategy::LOCKED, false) if crate::qemu::LOCKED => {
            take_part_with::<Locked, NoTrace, B>(me, launch, builders);
        }
        (_, false) => take_part_with::<LockFree, NoTrace, B>(me, launch, builders),
        (FanoutStrategy::LOCKED, true) if crate::qemu::LOCKED => {
            take_part_with::<Locked, Ring, B>(me, launch, builders);
        }
        (_, true) => take_part_with::<LockFree, Ring, B>(me, launch, builders),
    }
}

/// Refuses the strategy of fanout that the image does not have.
pub(crate) fn fits_image(launch: Launch<'static>) -> Result<Launch<'static>, Blame> {
    if !crate::qemu::LOCKED && launch.fanout == FanoutStrategy::LOCKED {
        return Err(Blame::of(Fault::RUNTIME_FANOUT).detail(launch.fanout.get().into(), 0));
    }
    Ok(launch)
}

/// The trace ring of an instance.
pub(crate) type Ring = Option<TraceWriter<'static>>;

/// An instance on this machine.
pub(crate) type QemuInstance<F, T> =
    Instance<'static, LinesPlatform<'static, Concurrent, QemuMachine<T>>, F>;

/// Instance `number` of a launch.
pub(crate) fn instance_of<F: FanoutPolicy, T: Tracer<'static>>(
    me: Vcpu,
    launch: Launch<'static>,
    number: u32,
) -> QemuInstance<F, T> {
    let last_vcpu = vcpu::boot_block().header.vcpus.load(Ordering::Relaxed).wrapping_sub(1);
    let (instances, backoff) = (launch.aicpu_instances, Backoff::in_run());
    let writer = if T::TRACES { launch.trace_writer(TraceOwner::Instance(number)) } else { None };
    let tracer = T::over(writer);
    let machine = QemuMachine { me, instances, last_vcpu, backoff, tracer };
    let platform = LinesPlatform::new(launch.arena.workers(), machine);
    Instance::new(launch, number, platform)
}

/// One turn of an instance. One copy of the firmware in the image: not inlined.
#[inline(never)]
pub(crate) fn turn<F: FanoutPolicy, T: Tracer<'static>, B: BuilderSet>(
    instance: &mut QemuInstance<F, T>,
    builders: &B,
) -> Progressed {
    instance.step(builders)
}

fn take_part_with<F: FanoutPolicy, T: Tracer<'static>, B: BuilderSet>(
    me: Vcpu,
    launch: Launch<'static>,
    builders: B,
) {
    let number = u32::try_from(me.index).unwrap_or(u32::MAX);
    let builders = device_builders::of(builders, &launch);
    let mut instance = instance_of::<F, T>(me, launch, number);
    loop {
        match turn(&mut instance, &builders) {
            Progressed::Worked => {}
            Progressed::Idle => instance.platform().machine().relax(),
            // The fault is in the arena, where the host finds it.
            Progressed::Returned(_) => return,
        }
    }
}

/// The machine has a vCPU for each instance and each worker.
fn fits_machine(launch: Launch<'static>) -> Result<Launch<'static>, Blame> {
    let vcpus = u64::from(vcpu::boot_block().header.vcpus.load(Ordering::Relaxed));
    let needed = u64::from(launch.aicpu_instances) + launch.workers.len() as u64;
    if needed > vcpus {
        return Err(Blame::of(Fault::RUNTIME_WORKER_COUNT).detail(needed, vcpus));
    }
    if launch.is_traced() && !crate::qemu::TRACES {
        // The host does not ask an image for what it does not say it can.
        return Err(Blame::of(Fault::RUNTIME_REGION_TRACE));
    }
    Ok(launch)
}

/// After an exception in this instance: stops its cores, as far as they can be stopped, and returns.
pub(crate) fn give_up(arena: Arena<'static>, role: u32) {
    if let Ok(launch) = Launch::accept(arena) {
        let lines = || launch.share(role).filter_map(|worker| arena.workers().get(worker as usize));
        lines().for_each(|core| core.quit());
        let until = timer::now_ns().saturating_add(launch.bring_up_budget_ns);
        let mut backoff = Backoff::in_run();
        while lines().any(|core| !core.exited()) && timer::now_ns() < until {
            backoff.relax();
        }
    }
    if let Some(line) = arena.instances().get(role as usize) {
        // Relaxed: the phase is for reports. The host waits for `done` of the vCPU.
        line.phase.store(2, Ordering::Relaxed);
    }
}

/// What the platform needs of this machine: cores poll their lines, so that only who naps has to be woken.
pub(crate) struct QemuMachine<T> {
    me: Vcpu,
    instances: u32,
    /// The vCPU of worker 0: workers are counted from the last vCPU.
    last_vcpu: u32,
    backoff: Backoff,
    tracer: T,
}

impl<T: Tracer<'static>> Machine for QemuMachine<T> {
    const BLOCK_SHAPES: bool = !cfg!(feature = "without-streaming");
    const SESSIONS: bool = !cfg!(feature = "without-sessions");
    const TRANSFERS: bool = false;
    // The store of a doorbell is a release of its own: a batch has no barrier to share.
    const RINGS_AT_ONCE: bool = true;

    #[inline]
    fn now_ns(&self) -> u64 {
        timer::now_ns()
    }

    #[inline]
    fn relax(&mut self) {
        if self.backoff.relax() {
            self.me.count_nap();
        }
    }

    fn wake_siblings(&mut self) {
        (0..self.instances as usize).for_each(wake::wake);
    }

    fn own(&mut self, worker: u32) {
        wake::own(self.me.index, worker);
    }

    #[inline]
    fn ring(&mut self, worker: u32) {
        self.backoff.reset();
        wake::wake(self.last_vcpu.wrapping_sub(worker) as usize);
    }

    #[inline(always)]
    fn traces(&self) -> bool {
        self.tracer.is_on()
    }

    #[inline]
    fn trace(&mut self, point: TracePoint) {
        self.tracer.write(point, || {
            core::hint::spin_loop();
            timer::now_ns()
        });
    }
}
