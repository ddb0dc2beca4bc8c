//! The kernels of these tests: they say where they ran.

use core::sync::atomic::{AtomicU64, Ordering};

use pto_host::abi::block::BlockContext;
use pto_host::abi::{CoreKind, FuncId};
use pto_host::{Device, Kernel};

/// Arguments: table, value. Shifts the value into the cell of the part; cells are in the order block, lane.
pub(crate) const MARK_AIC: FuncId = FuncId(900);
/// As [`MARK_AIC`].
pub(crate) const MARK_AIV: FuncId = FuncId(901);
/// Arguments: counter, how many. Waits until so many have come.
pub(crate) const MEET_AIC: FuncId = FuncId(902);
/// As [`MEET_AIC`].
pub(crate) const MEET_AIV: FuncId = FuncId(903);
/// Arguments: word, value. Stores the value, 32 bits, after a while.
pub(crate) const STORE: FuncId = FuncId(904);
/// Arguments: counter, cell. Stores in the cell how many came before.
pub(crate) const ORDER_AIV: FuncId = FuncId(905);
/// Never returns until its word is not zero. Argument: word.
pub(crate) const AWAIT_AIV: FuncId = FuncId(906);

/// Cells of a block: one for each lane.
pub(crate) const LANES: usize = 3;

pub(crate) fn register(device: &mut Device) {
    let mut add = |id, name, kind, entry: unsafe extern "C" fn(*const u64)| {
        device.register_kernel(id, Kernel::from_fn(name, kind, entry)).unwrap();
    };
    add(MARK_AIC, "mark_aic", CoreKind::AIC, mark_aic);
    add(MARK_AIV, "mark_aiv", CoreKind::AIV, mark_aiv);
    add(MEET_AIC, "meet_aic", CoreKind::AIC, meet);
    add(MEET_AIV, "meet_aiv", CoreKind::AIV, meet);
    add(STORE, "store", CoreKind::AIV, store);
    add(ORDER_AIV, "order_aiv", CoreKind::AIV, order);
    add(AWAIT_AIV, "await_aiv", CoreKind::AIV, await_word);
}

fn words<const N: usize>(args: *const u64) -> [u64; N] {
    // SAFETY: the programs of these tests pass that many words, and the context.
    unsafe { args.cast::<[u64; N]>().read() }
}

fn cell<'a>(address: u64) -> &'a AtomicU64 {
    let pointer = core::ptr::with_exposed_provenance_mut(usize::try_from(address).unwrap_or(0));
    // SAFETY: the programs pass addresses of live words, aligned, that only these kernels touch during a run.
    unsafe { AtomicU64::from_ptr(pointer) }
}

unsafe extern "C" fn mark_aic(args: *const u64) {
    mark(words(args), 0);
}

unsafe extern "C" fn mark_aiv(args: *const u64) {
    let [.., context] = words::<3>(args);
    mark(words(args), 1 + u64::from(BlockContext::of(context).lane));
}

fn mark([table, value, context]: [u64; 3], lane: u64) {
    let context = BlockContext::of(context);
    let at = u64::from(context.block) * LANES as u64 + lane;
    let cell = cell(table + 8 * at);
    cell.store(cell.load(Ordering::Relaxed) << 8 | value, Ordering::Relaxed);
}

unsafe extern "C" fn meet(args: *const u64) {
    let [counter, count] = words(args);
    let counter = cell(counter);
    counter.fetch_add(1, Ordering::AcqRel);
    while counter.load(Ordering::Acquire) < count {
        std::thread::yield_now();
    }
}

unsafe extern "C" fn store(args: *const u64) {
    let [word, value] = words::<2>(args);
    (0..300).for_each(|_| core::hint::spin_loop());
    let pointer = core::ptr::with_exposed_provenance_mut(usize::try_from(word).unwrap_or(0));
    // SAFETY: the word is an element of a live tensor of `u32`, which this task writes.
    unsafe { core::ptr::write_volatile(pointer, u32::try_from(value).unwrap_or(0)) };
}

unsafe extern "C" fn order(args: *const u64) {
    let [counter, at] = words(args);
    cell(at).store(1 + cell(counter).fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
}

unsafe extern "C" fn await_word(args: *const u64) {
    let [word] = words(args);
    while cell(word).load(Ordering::Acquire) == 0 {
        std::thread::yield_now();
    }
}
