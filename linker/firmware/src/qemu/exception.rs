//! What an exception or a panic leaves: the exception frame of its vCPU, the run's fault and epitaph, a line on
//! the console. The vCPU itself goes on with `serve`, which gives up what it was doing.

use core::arch::asm;
use core::mem::offset_of;

use pto_abi::arena::Arena;
use pto_abi::fw_image::{ExceptionFrame, VCPU_DEAD, VCPU_INSTANCE, VCPU_READY, VCPU_WORKER};
use pto_abi::runtime::{Epitaph, InstanceLine};
use pto_abi::sync::{AtomicU64, Ordering};
use pto_abi::{Fault, TaskId};

use crate::qemu::vcpu::{self, Vcpu};
use crate::qemu::{timer, uart};

/// `ExceptionFrame::vector` of a panic.
const VECTOR_PANIC: u32 = 16;

/// What `vectors.rs` saves.
#[repr(C)]
pub(crate) struct SavedRegisters {
    x: [u64; 31],
    sp: u64,
    syndrome: u64,
    pc: u64,
    fault_address: u64,
    status: u64,
}

const _: () = {
    assert!(offset_of!(SavedRegisters, sp) == 248);
    assert!(offset_of!(SavedRegisters, syndrome) == 256);
    assert!(offset_of!(SavedRegisters, fault_address) == 272);
    assert!(size_of::<SavedRegisters>().is_multiple_of(16));
};

/// An exception in ordinary code.
pub(crate) extern "C" fn on_exception(frame: &SavedRegisters, vector: u64) {
    let me = vcpu::current();
    keep(me, u32::try_from(vector).unwrap_or(u32::MAX), frame);
    let fault = match me.line.state.load(Ordering::Relaxed) {
        VCPU_WORKER => Fault::CORE_EXCEPTION,
        _ => Fault::FW_EXCEPTION,
    };
    raise(me, fault, [frame.syndrome, frame.fault_address]);
    say(me, fault, frame);
    if me.line.state.load(Ordering::Relaxed) == VCPU_READY {
        // Nothing of a run: the image itself is defect, and would be again.
        die(me);
    }
}

/// An exception in a handler: nothing can be relied on.
pub(crate) extern "C" fn on_double_exception() {
    die(vcpu::current());
}

fn die(me: Vcpu) {
    // Release: pairs with the host's Acquire load in `QemuMachine::has_dead_vcpu`.
    me.line.state.store(VCPU_DEAD, Ordering::Release);
    loop {
        timer::sleep(timer::LONG_SLEEP_NS);
    }
}

fn keep(me: Vcpu, vector: u32, frame: &SavedRegisters) {
    let kept: &ExceptionFrame = me.exceptions;
    kept.state.store(me.line.state.load(Ordering::Relaxed), Ordering::Relaxed);
    kept.role.store(me.line.role.load(Ordering::Relaxed), Ordering::Relaxed);
    kept.vector.store(vector, Ordering::Relaxed);
    kept.syndrome.store(frame.syndrome, Ordering::Relaxed);
    kept.pc.store(frame.pc, Ordering::Relaxed);
    kept.fault_address.store(frame.fault_address, Ordering::Relaxed);
    kept.status.store(frame.status, Ordering::Relaxed);
    kept.sp.store(frame.sp, Ordering::Relaxed);
    kept.time_ns.store(timer::now_ns(), Ordering::Relaxed);
    for (to, from) in kept.x.iter().zip(frame.x) {
        to.store(from, Ordering::Relaxed);
    }
    let stamp = kept.stamp.load(Ordering::Relaxed);
    // Release: pairs with the host's Acquire load in `boot::read_exception`.
    kept.stamp.store(stamp.wrapping_add(1), Ordering::Release);
}

/// Makes it the run's fault, if it is the first; only in a run.
fn raise(me: Vcpu, fault: Fault, detail: [u64; 2]) {
    let Some(arena) = me.arena() else { return };
    if !arena.fault().raise(fault) {
        return;
    }
    let role = me.line.role.load(Ordering::Relaxed);
    let mut epitaph = Epitaph::of(fault);
    (epitaph.detail, epitaph.time_ns) = (detail, timer::now_ns());
    match me.line.state.load(Ordering::Relaxed) {
        VCPU_WORKER => name_task(&arena, role, &mut epitaph),
        VCPU_INSTANCE => epitaph.instance = role,
        _ => {}
    }
    let sum = |counter: fn(&InstanceLine) -> &AtomicU64| {
        let counts = arena.instances().iter().map(|line| counter(line).load(Ordering::Relaxed));
        counts.fold(0, u64::wrapping_add)
    };
    epitaph.added = sum(|line| &line.added);
    epitaph.published = sum(|line| &line.published);
    epitaph.completed = sum(|line| &line.completed);
    arena.set_epitaph(&epitaph);
    arena.fault().seal_epitaph();
}

/// The core, and what it was given.
fn name_task(arena: &Arena<'_>, worker: u32, epitaph: &mut Epitaph) {
    epitaph.core = worker;
    let Some(lines) = arena.workers().get(worker as usize) else { return };
    let dispatch = lines.current_dispatch();
    let slot = dispatch.task;
    epitaph.task = TaskId { slot, generation: arena.header().run_epoch };
    epitaph.kernel = dispatch.kernel;
    let tasks = arena.regions().first().and_then(|at| arena.tasks(*at).ok());
    if let Some(task) = tasks.and_then(|tasks| tasks.get(slot as usize)) {
        epitaph.func_id = task.func_id.load(Ordering::Relaxed).into();
    }
}

fn say(me: Vcpu, fault: Fault, frame: &SavedRegisters) {
    uart::line(format_args!(
        "vcpu {}: fault {:#010x} esr {:#x} elr {:#x} far {:#x} sp {:#x}",
        me.index,
        fault.code(),
        frame.syndrome,
        frame.pc,
        frame.fault_address,
        frame.sp
    ));
}

/// In a release image nothing refers to this, and the linker leaves it out; a test holds that.
#[panic_handler]
fn on_panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let me = vcpu::current();
    uart::line(format_args!("vcpu {}: {info}", me.index));
    let (line, column) = info.location().map_or((0, 0), |at| (at.line(), at.column()));
    let mut frame =
        SavedRegisters { x: [0; 31], sp: 0, syndrome: 0, pc: 0, fault_address: 0, status: 0 };
    (frame.syndrome, frame.fault_address) = (line.into(), column.into());
    keep(me, VECTOR_PANIC, &frame);
    raise(me, Fault::FW_PANIC, [line.into(), column.into()]);
    // SAFETY: an exception gives up what runs here and goes on with `serve`; `raise` keeps the first fault.
    unsafe { asm!("brk #0xf01", options(noreturn)) }
}
