//! The library against the real simulator: from memory to result, faults, and the next run after them.

use std::num::NonZeroUsize;
use std::time::Duration;

use pto_host::abi::arena::Capacities;
use pto_host::abi::{CoreKind, Fault, FuncId};
use pto_host::graph::{BuildError, GraphBuilder, TaskSpec, builder_set};
use pto_host::{
    Device, DeviceOptions, Error, GraphImage, HostGraph, Hosting, Kernel, RunOptions,
    SessionOptions, Work, func,
};

/// Builder words: a, b, out, n.
fn add_twice<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let [a, b, out, n] = *graph.orch_args() else { return Err(BuildError::Failed(-22)) };
    let first = graph.submit(TaskSpec::new(func::ADD, CoreKind::AIV, &[a, b, out, n]), &[])?;
    graph.submit(TaskSpec::new(func::ADD, CoreKind::AIV, &[a, out, out, n]), &[first])?;
    Ok(())
}

builder_set! {
    /// The firmware's builders in these tests.
    struct AddTwiceBuilders { "add_twice" => add_twice }
}

const HOSTINGS: [Hosting; 2] = [Hosting::Threads, Hosting::Pool { os_threads: NonZeroUsize::MIN }];

fn open(hosting: Hosting) -> Device {
    let options = DeviceOptions { aic: 2, aiv: 4, gm_bytes: 64 << 20, hosting };
    let mut device = Device::open_sim(options, AddTwiceBuilders).expect("64 MiB");
    device.register_library().expect("an empty table");
    device
}

fn options() -> RunOptions {
    RunOptions { aicpu_instances: 2, ..RunOptions::default() }
}

#[test]
fn both_variants_compute_and_report() {
    for hosting in HOSTINGS {
        let mut device = open(hosting);
        let (a, b) =
            (device.upload(&[2.0_f32; 256]).unwrap(), device.upload(&[3.0_f32; 256]).unwrap());
        let out = device.zeroed::<f32>(256).unwrap();
        let words = [a.address().0, b.address().0, out.address().0, 256];
        let image = HostGraph::build(&device, &words, add_twice).unwrap();
        let builder = Work::AicpuBuilder { builder: "add_twice", orch_args: &words };
        for work in [Work::HostGraph(&image), builder, Work::HostGraph(&image)] {
            out.write(&[0.0; 256]).unwrap();
            let report = device.run(work, &options()).unwrap();
            assert_eq!(out.read().unwrap(), [7.0; 256], "{hosting}");
            assert_eq!((report.tasks, report.edges, report.parts_run), (2, 1, [0, 2]));
            assert!(report.makespan > Duration::ZERO && report.cores == [2, 4]);
        }
    }
}

/// Where nobody says how many AICPU instances there are, each one finds cores.
#[test]
fn a_small_device_takes_the_default_options() {
    for (aic, aiv) in [(0, 1), (1, 2), (2, 4)] {
        let options = DeviceOptions { aic, aiv, gm_bytes: 64 << 20, ..DeviceOptions::default() };
        let mut device = Device::open_sim(options, AddTwiceBuilders).unwrap();
        device.register_library().unwrap();
        let [a, b, out] = [1.0_f32, 2.0, 0.0].map(|value| device.upload(&[value; 64]).unwrap());
        let words = [a.address().0, b.address().0, out.address().0, 64];
        let image = HostGraph::build(&device, &words, add_twice).unwrap();
        let builder = Work::AicpuBuilder { builder: "add_twice", orch_args: &words };
        for work in [Work::HostGraph(&image), builder] {
            out.write(&[0.0; 64]).unwrap();
            device.run(work, &RunOptions::default()).unwrap();
            assert_eq!(out.read().unwrap(), [4.0; 64], "{aic} AIC, {aiv} AIV");
        }
        let too_many = RunOptions { aicpu_instances: 4, ..RunOptions::default() };
        match device.run(Work::HostGraph(&image), &too_many) {
            Err(Error::Fault { fault, .. }) => assert_eq!(fault, Fault::SCHEDULE_NO_CORES),
            other => panic!("four schedulers have no cores: {other:?}"),
        }
        let session = device.session(SessionOptions::default()).unwrap();
        session.stream().unwrap().run(image.clone()).unwrap();
        session.synchronize().unwrap();
    }
}

/// What a run leaves does not show in the next one of the same graph, in whatever way it is run between.
#[test]
fn a_graph_runs_again_and_again() {
    for hosting in HOSTINGS {
        let mut device = open(hosting);
        let one = device.upload(&[1.0_f32; 64]).unwrap();
        let sum = device.zeroed::<f32>(64).unwrap();
        let words = [sum.address().0, one.address().0, sum.address().0, 64];
        let add = TaskSpec::new(func::ADD, CoreKind::AIV, &words);
        let image = HostGraph::build(&device, &[], |graph| {
            let mut before = graph.submit(add, &[])?;
            for _ in 1..40 {
                before = graph.submit(add, &[before])?;
            }
            Ok(())
        });
        let image = image.unwrap();
        for run in 1..=5_u8 {
            let report = device.run(Work::HostGraph(&image), &options()).unwrap();
            assert_eq!((report.tasks, report.edges, report.parts_run), (40, 39, [0, 40]));
            assert_eq!(sum.read().unwrap(), [40.0 * f32::from(run); 64], "{hosting}, run {run}");
        }
        // Without its kernel it does not run, and what stood before does not either.
        device.unregister_kernel(func::ADD).unwrap();
        let (fault, text) = fault_of(&mut device, Work::HostGraph(&image), &options());
        assert_eq!(fault, Fault::BUILD_KERNEL_MISSING, "{text}");
    }
}

#[test]
fn a_larger_graph_after_a_smaller_one_grows_the_arena() {
    for hosting in HOSTINGS {
        let mut device = open(hosting);
        let free = device.describe().gm_free_bytes;
        for tasks in [1, 20_000, 40_000, 10] {
            let empty = TaskSpec::new(func::EMPTY_AIV, CoreKind::AIV, &[]);
            let image = HostGraph::build(&device, &[], |graph| {
                (0..tasks).try_for_each(|_| graph.submit(empty, &[]).map(drop))?;
                Ok(())
            });
            let report = device.run(Work::HostGraph(&image.unwrap()), &options()).unwrap();
            assert_eq!(report.tasks, tasks, "{hosting}");
        }
        assert!(free - device.describe().gm_free_bytes < 32 << 20, "old arenas were freed");
    }
}

fn fault_of(device: &mut Device, work: Work<'_>, options: &RunOptions) -> (Fault, String) {
    match device.run(work, options) {
        Err(Error::Fault { fault, report }) => (fault, report.to_string()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn refused_launches_are_faults_and_the_device_goes_on() {
    for hosting in HOSTINGS {
        let mut device = open(hosting);
        let good = HostGraph::build(&device, &[], |_| Ok(())).unwrap();
        let mut bytes = good.to_bytes();
        bytes[0] ^= 1;
        let bad = GraphImage::from_bytes(bytes);
        let (fault, _) = fault_of(&mut device, Work::HostGraph(&bad), &options());
        assert_eq!(fault, Fault::GRAPH_MAGIC);
        let none = GraphImage::from_bytes(Vec::new());
        let (fault, _) = fault_of(&mut device, Work::HostGraph(&none), &options());
        assert_eq!(fault, Fault::GRAPH_TOTAL_BYTES);
        let unknown = Work::AicpuBuilder { builder: "nobody", orch_args: &[] };
        let (fault, text) = fault_of(&mut device, unknown, &options());
        assert_eq!(fault, Fault::BUILD_NO_BUILDER);
        assert!(text.contains("\"nobody\"; the firmware has: add_twice"), "{text}");
        let failing = Work::AicpuBuilder { builder: "add_twice", orch_args: &[1] };
        let (fault, text) = fault_of(&mut device, failing, &options());
        assert_eq!(fault, Fault::BUILD_FAILED);
        assert!(text.contains("22"), "{text}");
        let alone = RunOptions { aicpu_instances: 1, ..options() };
        let (fault, _) = fault_of(&mut device, failing, &alone);
        assert_eq!(fault, Fault::RUNTIME_AICPU_INSTANCES);
        device.run(Work::HostGraph(&good), &options()).unwrap();
    }
}

#[test]
fn capacities_that_a_builder_exceeds_are_named() {
    let mut device = open(Hosting::default());
    let capacities = Capacities { tasks: 1, ..Capacities::default() };
    let tight = RunOptions { capacities, ..options() };
    let out = device.zeroed::<f32>(1).unwrap();
    let words = [out.address().0, out.address().0, out.address().0, 1];
    let work = Work::AicpuBuilder { builder: "add_twice", orch_args: &words };
    let (fault, text) = fault_of(&mut device, work, &tight);
    assert_eq!(fault, Fault::BUILD_TASKS_FULL);
    assert!(text.contains("capacities.tasks"), "{text}");
}

extern "C" fn naps(_: *const u64) {
    std::thread::sleep(Duration::from_secs(1));
}

#[test]
fn a_core_that_does_not_come_back_costs_its_arena_only() {
    for hosting in HOSTINGS {
        let mut device = open(hosting);
        let naps = Kernel::from_fn("naps", CoreKind::AIC, naps);
        device.register_kernel(FuncId(100), naps).unwrap();
        let nap = TaskSpec::new(FuncId(100), CoreKind::AIC, &[]);
        let image =
            HostGraph::build(&device, &[], |graph| Ok(graph.submit(nap, &[]).map(drop)?)).unwrap();
        let budget = Duration::from_millis(50);
        let impatient = RunOptions { task_budget: budget, bring_up_budget: budget, ..options() };
        let (fault, text) = fault_of(&mut device, Work::HostGraph(&image), &impatient);
        assert!([Fault::STALL_CORE, Fault::STALL_INSTANCE].contains(&fault), "{hosting}: {text}");
        let empty = HostGraph::build(&device, &[], |graph| {
            let task = TaskSpec::new(func::EMPTY_AIC, CoreKind::AIC, &[]);
            Ok(graph.submit(task, &[]).map(drop)?)
        });
        let report = device.run(Work::HostGraph(&empty.unwrap()), &options()).unwrap();
        assert_eq!(report.parts_run, [1, 0], "{hosting}");
    }
}
