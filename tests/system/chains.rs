//! Chains on whole devices: every kernel of one runs once, in order, with a start and an end of its own, in every hosting
//! mode; and a core that does not come back from one names it.

use std::collections::BTreeMap;

use pto_examples::host::{self, Inputs, Params, Prepared};
use pto_host::abi::{CoreKind, FanoutStrategy, Fault};
use pto_host::timeline::Trace;
use pto_host::virtual_time::{Injection, LineModel, VirtualOptions};
use pto_host::{
    Device, DeviceOptions, Error, FaultReport, Hosting, RunOptions, RunReport, TraceOptions, Work,
};

/// Requests of up to 19 blocks, two heads: runs of some blocks, and rests.
const SIZES: &[(&str, &str)] = &[
    ("batch", "24"),
    ("heads", "4"),
    ("kv_heads", "2"),
    ("head_dim", "8"),
    ("block_size", "4"),
    ("max_context", "76"),
];
const KERNELS: [&str; 4] =
    ["attention_qk", "attention_softmax_partial", "attention_pv", "attention_update"];

fn open(hosting: Hosting) -> Device {
    let options = DeviceOptions { aic: 4, aiv: 8, hosting, ..DeviceOptions::default() };
    let mut device = host::open_sim(options).expect("the device opens");
    device.register_library().expect("the library registers");
    device
}

fn prepare(device: &Device) -> Prepared {
    let example = host::find("paged_attention").expect("the example exists");
    let mut params = Params::defaults(example.params());
    for (name, value) in SIZES {
        params.set(name, value).expect("the size is accepted");
    }
    example.prepare(&params, &Inputs::default(), device).expect("there is room")
}

fn run(
    device: &mut Device,
    prepared: &mut Prepared,
    fanout: FanoutStrategy,
) -> Result<RunReport, Box<FaultReport>> {
    prepared.reset().expect("the outputs are reset");
    let trace = Some(TraceOptions::default());
    let options =
        RunOptions { capacities: prepared.capacities(), fanout, trace, ..RunOptions::default() };
    let work = Work::AicpuBuilder { builder: prepared.builder(), orch_args: prepared.orch_args() };
    match device.run(work, &options) {
        Ok(report) => Ok(report),
        Err(Error::Fault { report, .. }) => Err(report),
        Err(error) => panic!("{error}"),
    }
}

/// How often each kernel ran, and that those of a chain follow each other on one core.
fn counted(trace: &Trace, way: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for run in trace.runs().map(|run| run.run) {
        assert!(run.span().is_some_and(|(start, end)| start <= end), "{way}: {run:?}");
        *counts.entry(trace.kernel(run.func_id)).or_default() += 1;
    }
    for pair in trace.parts.windows(2).filter(|pair| pair[0].task == pair[1].task) {
        assert_eq!(pair[0].block + 1, pair[1].block, "{way}: {pair:?}");
        assert_eq!(pair[0].run.core, pair[1].run.core, "{way}: {pair:?}");
        assert!(pair[0].run.at.finished <= pair[1].run.at.started, "{way}: {pair:?}");
    }
    counts
}

#[test]
fn every_kernel_of_a_chain_has_a_start_and_an_end_of_its_own_in_every_hosting_mode() {
    let lines = VirtualOptions { lines: LineModel::Results, ..VirtualOptions::default() };
    let pool = |n| Hosting::Pool { os_threads: std::num::NonZeroUsize::new(n).expect("not zero") };
    for hosting in [pool(1), pool(3), Hosting::Threads, Hosting::Virtual(lines)] {
        let mut device = open(hosting);
        let mut prepared = prepare(&device);
        for &fanout in FanoutStrategy::ALL {
            let way = format!("{hosting}, {fanout}");
            let report = run(&mut device, &mut prepared, fanout).expect("the run passes");
            assert!(prepared.verify().expect("the outputs are read").passed(), "{way}");
            let [aic, aiv] =
                [CoreKind::AIC, CoreKind::AIV].map(|kind| report.parts_run[kind.index()]);
            assert_eq!((aic, aic + aiv), (aiv, report.kernels), "{way}");
            let trace = report.trace.expect("it was recorded");
            let counts = counted(&trace, &way);
            let each = usize::try_from(report.kernels).expect("few") / KERNELS.len();
            assert!(
                each > 200 && trace.tasks.len() < each,
                "{way}: {each} units in fewer dispatches"
            );
            assert_eq!(counts, KERNELS.map(|name| (name.to_owned(), each)).into(), "{way}");
            if let Some(report) = report.virtual_report {
                assert_eq!(report.violation_count, 0, "{way}: {:?}", report.violations);
                assert_eq!(report.kernels, each as u64 * 4, "{way}");
            }
        }
    }
}

#[test]
fn a_core_that_hangs_in_a_chain_names_the_kernel_and_the_next_run_succeeds() {
    let injection: Injection = "hang:core=2,task=20".parse().expect("a fault");
    let options = VirtualOptions { injection: Some(injection), ..VirtualOptions::default() };
    let mut device = open(Hosting::Virtual(options));
    let mut prepared = prepare(&device);
    let report = run(&mut device, &mut prepared, FanoutStrategy::LOCK_FREE).unwrap_err();
    assert_eq!(report.fault, Fault::STALL_CORE, "{report}");
    let text = report.to_string();
    let (_, rest) = text.split_once("The task is a chain. Its core was in kernel ").expect(&text);
    let (number, kernel) = rest.split_once(" of it, attention_").expect(&text);
    // The twentieth kernel after the core's first one, in its first chain or in a later one.
    assert!(
        (1..=21).contains(&number.parse().unwrap_or(0)) && kernel.contains("(func id "),
        "{text}"
    );
    assert!(!text.contains(" at 0x1."), "no code stands at a chain's own address: {text}");
    run(&mut device, &mut prepared, FanoutStrategy::LOCK_FREE).expect("the next run passes");
    assert!(prepared.verify().expect("the outputs are read").passed());
}
