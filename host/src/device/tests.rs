//! A device over a backend that plays the firmware.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use pto_abi::arena::Arena;
use pto_abi::kinds::RunFlags;
use pto_abi::runtime::{Epitaph, RUNTIME_MAGIC, Runtime, region};
use pto_abi::symbol::symbol;
use pto_abi::sync::Ordering;
use pto_abi::{CoreKind, Fault, FuncId, RuntimeVariant};
use pto_graph::{GraphBuilder, TaskSpec};

use crate::backend::RunOutcome;
use crate::backend::fake::{Fake, SUCCESS};
use crate::{Capacities, Device, DeviceBuffer, DeviceMemory, DeviceOptions, Error, GraphImage};
use crate::{HostGraph, Kernel, RunOptions, Work, func};

pub(crate) fn options(aic: u32, aiv: u32, gm_bytes: u64) -> DeviceOptions {
    DeviceOptions {
        aic,
        aiv,
        gm_bytes,
        #[cfg(feature = "sim")]
        hosting: crate::Hosting::default(),
    }
}

/// 1 AIC, 2 AIV, 8 MiB, the kernel library.
pub(crate) fn device_that(
    play: impl FnMut(Arena<'static>, u32) -> RunOutcome + Send + 'static,
) -> Device {
    let mut device = Device::open_fake(options(1, 2, 8 << 20), Fake::new(play)).expect("8 MiB");
    device.register_library().expect("an empty table");
    device
}

pub(crate) fn device() -> Device {
    device_that(|_, _| SUCCESS)
}

const BUILDER: Work<'_> = Work::AicpuBuilder { builder: "known", orch_args: &[11, 12] };

/// Runs `runs` times and returns what `see` saw of each launch.
fn seen<T: Send + 'static>(
    device_runs: impl FnOnce(&mut Device),
    see: impl Fn(Arena<'static>) -> T + Send + 'static,
) -> Vec<T> {
    let log = Arc::new(Mutex::new(Vec::new()));
    let to = Arc::clone(&log);
    let mut device = device_that(move |arena, _| {
        to.lock().unwrap().push(see(arena));
        SUCCESS
    });
    device_runs(&mut device);
    drop(device);
    Arc::into_inner(log).unwrap().into_inner().unwrap()
}

fn one_task(device: &Device) -> GraphImage {
    let mut graph = HostGraph::new(device, &[]);
    graph.submit(TaskSpec::new(func::SPIN_AIV, CoreKind::AIV, &[1]), &[]).unwrap();
    graph.finish().unwrap()
}

#[test]
fn the_arena_says_what_the_firmware_needs_to_know() {
    let launches = seen(
        |device| {
            let options = RunOptions {
                run_budget: Some(Duration::from_secs(2)),
                aicpu_instances: 3,
                ..RunOptions::default()
            };
            device.run(BUILDER, &options).unwrap();
        },
        |arena| (arena.header(), arena.config(), arena.orch_args(), arena.kernel_addr(func::MUL)),
    );
    let (header, config, orch, kernel) = launches[0];
    assert_eq!(header.magic, RUNTIME_MAGIC);
    assert_eq!(header.header_bytes as usize, size_of::<Runtime>());
    assert_eq!((header.run_epoch, header.bring_up_epoch, header.gm_bytes), (1, 1, 8 << 20));
    assert_eq!(config.variant, RuntimeVariant::AICPU_BUILD_GRAPH.get());
    assert_eq!((config.worker_count, config.aicpu_instances), (3, 3));
    assert_eq!((config.builder, config.run_budget_ns), (symbol("known"), 2_000_000_000));
    assert_eq!((orch.orch_argc, &orch.orch_args[..3]), (2, &[11, 12, 0][..]));
    assert_eq!(kernel.0, 0x1002);
}

#[test]
fn the_image_arrives_with_its_own_size() {
    let images = seen(
        |device| {
            let image = one_task(device);
            let large = GraphImage::from_bytes(vec![1; 5_000]);
            device.run(Work::HostGraph(&large), &RunOptions::default()).unwrap();
            device.run(Work::HostGraph(&image), &RunOptions::default()).unwrap();
            device.run(BUILDER, &RunOptions::default()).unwrap();
        },
        |arena| {
            let at = arena.regions()[region::GRAPH];
            let window = arena.region_window(at, Fault::RUNTIME_REGION_GRAPH).unwrap();
            let mut bytes = vec![0; usize::try_from(at.bytes).unwrap()];
            window.read_bytes(0, &mut bytes).unwrap();
            bytes
        },
    );
    assert_eq!(images[0], [1; 5_000]);
    assert_eq!(images[1], one_task(&device()).to_bytes(), "the region is cut to the image");
    assert!(images[2].is_empty(), "an image of an earlier run is not offered again");
}

/// A firmware that says, like ours, which graph is resident.
#[test]
fn a_graph_is_sent_once_while_nothing_changes() {
    let launches = seen(
        |device| {
            let (one, other) = (one_task(device), one_task(device));
            let options = RunOptions::default();
            let run = |device: &mut Device, image: &GraphImage| {
                device.run(Work::HostGraph(image), &options).unwrap();
            };
            run(device, &one);
            run(device, &one);
            run(device, &one.clone());
            run(device, &other);
            run(device, &one);
            device.run(BUILDER, &options).unwrap();
            run(device, &one);
            device.unregister_kernel(func::MUL).unwrap();
            run(device, &one);
            let capacities = Capacities { tasks: 20_000, ..Capacities::default() };
            let larger = RunOptions { capacities, ..RunOptions::default() };
            device.run(Work::HostGraph(&one), &larger).unwrap();
            run(device, &one);
        },
        |arena| {
            let progress = arena.progress();
            let epoch = arena.header().run_epoch;
            let is_graph = arena.config().variant == RuntimeVariant::HOST_BUILD_GRAPH.get();
            progress.loaded_run.store(if is_graph { epoch } else { 0 }, Ordering::Relaxed);
            arena.config().flags & RunFlags::RUN_AGAIN.bits() != 0
        },
    );
    let again = [false, true, true, false, false, false, false, false, false, true];
    assert_eq!(launches, again);
}

/// A firmware that does not say it.
#[test]
fn a_graph_that_is_not_resident_is_sent_again() {
    let launches = seen(
        |device| {
            let image = one_task(device);
            for _ in 0..2 {
                device.run(Work::HostGraph(&image), &RunOptions::default()).unwrap();
            }
        },
        |arena| arena.config().flags & RunFlags::RUN_AGAIN.bits(),
    );
    assert_eq!(launches, [0, 0]);
}

#[test]
fn the_arena_is_kept_while_it_fits_and_grown_when_it_does_not() {
    let launches = seen(
        |device| {
            let free = device.describe().gm_free_bytes;
            device.run(BUILDER, &RunOptions::default()).unwrap();
            let capacities = Capacities { tasks: 10, ..Capacities::default() };
            let smaller = RunOptions { capacities, ..RunOptions::default() };
            device.run(BUILDER, &smaller).unwrap();
            let capacities = Capacities { tasks: 20_000, arg_words: 0, ..Capacities::default() };
            let larger = RunOptions { capacities, ..RunOptions::default() };
            device.run(BUILDER, &larger).unwrap();
            assert!(device.describe().gm_free_bytes > free - (6 << 20), "the old one was freed");
        },
        |arena| (arena.header(), arena.regions()[region::TASKS].bytes / 64),
    );
    let epochs: Vec<_> =
        launches.iter().map(|(header, _)| (header.run_epoch, header.bring_up_epoch)).collect();
    assert_eq!(epochs, [(1, 1), (2, 1), (3, 2)]);
    let tasks: Vec<_> = launches.iter().map(|(_, tasks)| *tasks).collect();
    assert_eq!(tasks, [16_384, 16_384, 20_000]);
}

#[test]
fn the_report_counts_this_run_only() {
    let mut device = device_that(|arena, _| {
        let instance = &arena.instances()[1];
        instance.completed.store(7, Ordering::Relaxed);
        instance.edges.store(3, Ordering::Relaxed);
        arena.instances()[0].edges_satisfied.store(2, Ordering::Relaxed);
        arena.workers()[0].account(1_000);
        arena.workers()[2].account(500_000);
        let rings = arena.regions()[region::LOGS];
        arena.log_ring(rings, 1).unwrap().write(3, 77, "hello");
        SUCCESS
    });
    for _ in 0..3 {
        let report = device.run(BUILDER, &RunOptions::default()).unwrap();
        assert_eq!((report.tasks, report.edges, report.edges_satisfied), (7, 5, 2));
        assert_eq!((report.cores, report.parts_run), ([1, 2], [1, 1]));
        assert_eq!(report.busy, [Duration::from_micros(1), Duration::from_micros(500)]);
        assert!((report.utilisation(CoreKind::AIV) - 0.125).abs() < 1e-9);
        let texts: Vec<_> = report.logs.iter().map(|message| message.text.as_str()).collect();
        assert_eq!((texts, report.logs_dropped), (vec!["hello"], 0));
    }
}

fn fail(arena: Arena<'static>, arena_lost: bool) -> RunOutcome {
    let fault = Fault::STALL_CORE;
    arena.fault().raise(fault);
    arena.set_epitaph(&Epitaph { core: 2, ..Epitaph::of(fault) });
    arena.fault().seal_epitaph();
    RunOutcome { fault: Some(fault), arena_lost, ..SUCCESS }
}

#[test]
fn after_a_fault_the_cores_are_brought_up_again() {
    let mut runs = 0;
    let mut device = device_that(move |arena, renewed| {
        runs += 1;
        assert_eq!(renewed, 0);
        assert_eq!(arena.fault().first(), None, "the last run's fault is gone");
        assert_eq!(arena.header().bring_up_epoch, if runs == 1 { 1 } else { 2 });
        if runs == 1 { fail(arena, false) } else { SUCCESS }
    });
    let error = device.run(BUILDER, &RunOptions::default()).unwrap_err();
    assert_eq!(error.fault(), Some(Fault::STALL_CORE));
    let Error::Fault { report, .. } = error else { panic!("{error}") };
    assert!(report.to_string().contains("core 2 (aiv, cluster 0)."), "{report}");
    device.run(BUILDER, &RunOptions::default()).unwrap();
    device.run(BUILDER, &RunOptions::default()).unwrap();
}

#[test]
fn a_lost_arena_is_given_up_and_the_device_goes_on() {
    let mut addresses = Vec::new();
    let mut device = device_that(move |arena, renewed| {
        let runs = u32::try_from(addresses.len()).unwrap();
        assert_eq!(renewed, runs, "each loss takes a new machine");
        let address = arena.header().arena_address;
        assert!(!addresses.contains(&address), "a lost arena is never used again");
        addresses.push(address);
        if runs < 2 { fail(arena, true) } else { SUCCESS }
    });
    let capacities = Capacities { tasks: 100, edges: 0, arg_words: 0, ..Capacities::default() };
    let options = RunOptions { capacities, ..RunOptions::default() };
    for _ in 0..2 {
        let error = device.run(BUILDER, &options).unwrap_err();
        assert!(error.to_string().contains("did not come back"), "{error}");
    }
    device.run(BUILDER, &options).unwrap();
}

#[test]
fn what_cannot_be_launched_leaves_the_device_usable() {
    let mut device = device();
    let with = |capacities| RunOptions { capacities, ..RunOptions::default() };
    let huge = with(Capacities { tasks: 1 << 22, ..Capacities::default() });
    let error = device.run(BUILDER, &huge).unwrap_err();
    assert!(matches!(error, Error::ArenaMemory { .. }), "{error}");
    let over = with(Capacities { tasks: u32::MAX, ..Capacities::default() });
    assert!(matches!(device.run(BUILDER, &over), Err(Error::Capacity(_))));
    let words = [0; 129];
    let many = Work::AicpuBuilder { builder: "known", orch_args: &words };
    let error = device.run(many, &RunOptions::default()).unwrap_err();
    assert_eq!(error.fault(), Some(Fault::RUNTIME_ORCH_ARGC));
    device.run(BUILDER, &RunOptions::default()).unwrap();
}

#[test]
fn a_device_has_1_to_128_cores() {
    let open =
        |aic, aiv| Device::open_fake(options(aic, aiv, 1 << 20), Fake::new(|_, _| SUCCESS)).err();
    assert!(open(0, 1).is_none() && open(64, 64).is_none());
    for (aic, aiv) in [(0, 0), (64, 65), (u32::MAX, 1)] {
        assert!(matches!(open(aic, aiv), Some(Error::Workers { .. })));
    }
}

#[test]
fn kernels_are_registered_once() {
    let mut device = device();
    let error = device.register_kernel(func::ADD, Kernel::library("mul").unwrap()).unwrap_err();
    assert!(matches!(&error, Error::DuplicateFuncId { registered, refused, .. }
        if registered == "add" && refused == "mul"));
    assert!(matches!(device.register_library(), Err(Error::DuplicateFuncId { .. })));
    let free = FuncId(1023);
    device.register_kernel(free, Kernel::library("mul").unwrap()).unwrap();
    device.unregister_kernel(free).unwrap();
    assert!(matches!(device.unregister_kernel(free), Err(Error::FuncIdNotRegistered { .. })));
    let over = device.register_kernel(FuncId(1024), Kernel::library("mul").unwrap());
    assert!(matches!(over, Err(Error::FuncIdLimit { .. })));
    let error = Kernel::library("mull").unwrap_err().to_string();
    assert!(error.contains("\"mull\"") && error.contains("matmul_acc"), "{error}");
}

#[test]
fn a_kernel_that_the_device_cannot_run_is_refused() {
    extern "C" fn nothing(_: *const u64) {}
    let kernel = Kernel::from_fn("mine", CoreKind::AIC, nothing);
    assert_eq!((kernel.name(), kernel.kind()), ("mine", CoreKind::AIC));
    let error = device().register_kernel(FuncId(100), kernel).unwrap_err();
    assert!(error.to_string().contains("kernel mine"), "{error}");
}

#[test]
fn buffers_hold_values_and_free_themselves() {
    let device = device();
    let free = device.describe().gm_free_bytes;
    let buffer = device.upload(&[1.5_f32, 2.5, 3.5]).unwrap();
    assert_eq!((buffer.read().unwrap(), buffer.len()), (vec![1.5, 2.5, 3.5], 3));
    buffer.write(&[9.0]).unwrap();
    assert_eq!(buffer.read().unwrap(), [9.0, 2.5, 3.5]);
    assert!(matches!(buffer.write(&[0.0; 4]), Err(Error::CopyOutOfRange { bytes: 16, .. })));
    assert_eq!(device.zeroed::<u64>(100).unwrap().read().unwrap(), [0; 100]);
    drop(device.describe());
    drop(buffer);
    assert_eq!(device.describe().gm_free_bytes, free);
}

/// Drops a buffer in the middle of a run with this outcome. Whether its memory was not allocated again during the run, and
/// whether it was afterwards.
fn dropped_during_a_run(end: fn(Arena<'static>) -> RunOutcome) -> [bool; 2] {
    type Dropped = (DeviceBuffer<u8>, DeviceMemory);
    let (send, receive) = mpsc::channel::<Dropped>();
    let (send_back, answer) = mpsc::channel();
    let mut device = device_that(move |arena, _| {
        let (buffer, memory) = receive.recv().unwrap();
        let address = buffer.address();
        drop(buffer);
        // As large: the allocator takes the smallest hole that fits.
        let other = memory.alloc(64).unwrap();
        assert!(matches!(memory.free(address), Err(Error::DoubleFree { .. })));
        assert!(memory.copy_to_device(address, &[1]).is_err(), "its user has given it away");
        memory.free(other).unwrap();
        send_back.send((address, other)).unwrap();
        end(arena)
    });
    let buffer = device.zeroed::<u8>(64).unwrap();
    // The next block keeps its hole apart from the rest of GM.
    let _next = device.zeroed::<u8>(64).unwrap();
    send.send((buffer, device.memory())).unwrap();
    let capacities = Capacities { tasks: 100, edges: 0, arg_words: 0, ..Capacities::default() };
    // `end` decides whether it ends with a fault.
    let _ = device.run(BUILDER, &RunOptions { capacities, ..RunOptions::default() });
    let (address, other) = answer.recv().unwrap();
    [other != address, device.alloc(64).unwrap() == address]
}

#[test]
fn a_buffer_that_is_dropped_during_a_run_is_free_after_it() {
    assert_eq!(dropped_during_a_run(|_| SUCCESS), [true, true]);
}

#[test]
fn a_buffer_that_is_dropped_during_a_run_is_free_after_its_fault() {
    assert_eq!(dropped_during_a_run(|arena| fail(arena, false)), [true, true]);
}

#[test]
fn a_buffer_that_a_lost_kernel_may_write_is_never_given_away() {
    assert_eq!(dropped_during_a_run(|arena| fail(arena, true)), [true, false]);
}

#[test]
fn sizes_that_overflow_or_exceed_memory_are_errors() {
    let device = device();
    let overflow = device.zeroed::<u64>(usize::MAX / 4).unwrap_err();
    assert!(matches!(overflow, Error::SizeOverflow { element_bytes: 8, .. }), "{overflow}");
    let full = device.zeroed::<u8>(usize::MAX).unwrap_err();
    assert!(matches!(full, Error::OutOfMemory { .. }), "{full}");
    assert!(matches!(device.upload::<f32>(&[]), Err(Error::ZeroSize)));
    assert!(matches!(device.alloc(9 << 20), Err(Error::OutOfMemory { free: 8_388_608, .. })));
}

#[test]
fn memory_is_used_by_its_rules() {
    let device = device();
    let address = device.alloc(10).unwrap();
    assert_eq!(address.0 % 64, 0);
    device.copy_to_device(address, &[1; 10]).unwrap();
    let mut read = [0; 11];
    assert!(device.copy_from_device(address, &mut read).is_err());
    assert_eq!(read, [0; 11], "a copy that is refused copies nothing");
    device.free(address).unwrap();
    assert!(matches!(device.free(address), Err(Error::DoubleFree { .. })));
    assert!(matches!(device.copy_to_device(address, &[1]), Err(Error::CopyOutOfRange { .. })));
}

#[test]
fn a_watcher_gets_the_progress_of_the_run() {
    let mut device = device_that(|arena, _| {
        arena.instances()[0].added.store(7, Ordering::Relaxed);
        arena.instances()[2].completed.store(3, Ordering::Relaxed);
        // Longer than the watcher's interval; what is asserted does not depend on how much longer.
        std::thread::sleep(Duration::from_millis(350));
        SUCCESS
    });
    let mut seen = Vec::new();
    device.run_watched(BUILDER, &RunOptions::default(), |progress| seen.push(progress)).unwrap();
    let expected = crate::RunProgress { added: 7, published: 0, completed: 3 };
    assert_eq!(seen.last(), Some(&expected));
}

/// A dropped device frees its arena when the cores have left it, and not before, because other owners may have its memory.
#[test]
fn a_dropped_device_lets_its_cores_go_before_its_arena_is_free() {
    let (send_back, answer) = mpsc::channel();
    let (give, given) = mpsc::channel::<DeviceMemory>();
    let mut fake = Fake::new(|_, _| SUCCESS);
    fake.on_release = Box::new(move || {
        let memory = given.recv().unwrap();
        send_back.send(memory.size()).unwrap();
    });
    let mut device = Device::open_fake(options(1, 2, 8 << 20), fake).unwrap();
    device.run(BUILDER, &RunOptions::default()).unwrap();
    let memory = device.memory();
    give.send(memory.clone()).unwrap();
    drop(device);
    let (bytes, free) = answer.try_recv().expect("the cores were asked to leave");
    assert!(free < bytes, "the arena was free before");
    assert_eq!(memory.size(), (bytes, bytes));
}

/// Cores may still poll the arena of a run that ended with a panic.
#[test]
fn the_arena_of_a_run_that_panicked_is_never_used_again() {
    let mut panics = true;
    let mut device = device_that(move |_, _| {
        assert!(!std::mem::take(&mut panics), "in the middle of a run");
        SUCCESS
    });
    let capacities = Capacities { tasks: 100, edges: 0, arg_words: 0, ..Capacities::default() };
    let options = RunOptions { capacities, ..RunOptions::default() };
    let free = device.describe().gm_free_bytes;
    let run = std::panic::AssertUnwindSafe(|| device.run(BUILDER, &options).map(drop));
    std::panic::catch_unwind(run).unwrap_err();
    assert!(device.describe().gm_free_bytes < free);
    device.run(BUILDER, &options).unwrap();
}
