//! A machine of one vCPU: it steps all instances and all workers in turn. Nothing waits there, so that a run
//! is the same every time; with QEMU's `-icount shift=4` a tick of the clock is an instruction, and what an
//! instance took is its number of instructions.

use heapless::Vec;
use pto_abi::arena::Arena;
use pto_abi::sync::Ordering;
use pto_abi::{FanoutStrategy, Fault};
use pto_aicore_kernels::worker::{self, WorkerStep};
use pto_aicpu_fw::blame::Blame;
use pto_aicpu_fw::{FanoutPolicy, Launch, LockFree, Locked, NoTrace, Progressed, instance};
use pto_graph::BuilderSet;

use crate::qemu::device_builders;
use crate::qemu::instance::{QemuInstance, fits_image, instance_of, turn};
use crate::qemu::timer;
use crate::qemu::vcpu::{self, Vcpu};
use crate::qemu::worker::{CorePort, LaunchBinding, forget_instructions};

/// Instances that the stack has room for: a builder and a scheduler; and workers, with a program with tensors.
const MAX_INSTANCES: usize = 2;
const MAX_SOLO_WORKERS: usize = 32;

/// Runs a whole launch. Not inlined: it needs more stack than others.
#[inline(never)]
pub(crate) fn take_part<B: BuilderSet>(me: Vcpu, arena: Arena<'static>, builders: B) {
    let launch = match Launch::accept(arena).and_then(fits_image).and_then(fits_stack) {
        Ok(launch) => launch,
        Err(blame) => {
            instance::refuse(&arena, &blame, 0, timer::now_ns());
            return;
        }
    };
    forget_instructions();
    match launch.fanout {
        FanoutStrategy::LOCKED if crate::qemu::LOCKED => run::<Locked, B>(me, &launch, builders),
        _ => run::<LockFree, B>(me, &launch, builders),
    }
}

fn fits_stack(launch: Launch<'static>) -> Result<Launch<'static>, Blame> {
    let instances = launch.aicpu_instances.into();
    if instances > MAX_INSTANCES as u64 {
        let blame = Blame::of(Fault::RUNTIME_AICPU_INSTANCES);
        return Err(blame.detail(instances, MAX_INSTANCES as u64));
    }
    let workers = launch.workers.len() as u64;
    if workers > MAX_SOLO_WORKERS as u64 {
        let blame = Blame::of(Fault::RUNTIME_WORKER_COUNT);
        return Err(blame.detail(workers, MAX_SOLO_WORKERS as u64));
    }
    if launch.is_traced() {
        // One vCPU is for counting.
        return Err(Blame::of(Fault::RUNTIME_REGION_TRACE));
    }
    Ok(launch)
}

/// One instance, and what it has taken so far.
struct SoloInstance<F> {
    instance: QemuInstance<F, NoTrace>,
    ticks: u64,
    has_returned: bool,
}

fn run<F: FanoutPolicy, B: BuilderSet>(me: Vcpu, launch: &Launch<'static>, builders: B) {
    let builders = device_builders::of(builders, launch);
    // There is room for all: `fits_stack`.
    let mut instances: Vec<SoloInstance<F>, MAX_INSTANCES> = Vec::new();
    for number in 0..launch.aicpu_instances {
        let instance = instance_of(me, launch.clone(), number);
        let instance = SoloInstance { instance, ticks: 0, has_returned: false };
        instances.push(instance).unwrap_or_default();
    }
    let mut cores: Vec<CorePort<'static>, MAX_SOLO_WORKERS> = Vec::new();
    for (worker, _) in (0_u32..).zip(0..launch.workers.len()) {
        if let Some(core) = CorePort::new(&launch.arena, worker, LaunchBinding::Only) {
            cores.push(core).unwrap_or_default();
        }
    }
    while instances.iter().any(|solo| !solo.has_returned) {
        for (number, solo) in
            instances.iter_mut().enumerate().filter(|(_, solo)| !solo.has_returned)
        {
            me.set_log_ring(launch.arena.log_ring(launch.log_region(), number));
            let start = timer::ticks();
            let progressed = turn(&mut solo.instance, &builders);
            solo.ticks += timer::ticks() - start;
            solo.has_returned = matches!(progressed, Progressed::Returned(_));
        }
        for core in &mut cores {
            while worker::step(core) == WorkerStep::Worked {}
        }
    }
    for (line, solo) in vcpu::boot_block().vcpus.iter().zip(&instances) {
        line.step_ticks.store(solo.ticks, Ordering::Relaxed);
    }
}
