//! Fault paths: every one ends the run with its fault, and the device runs again.

use std::time::Duration;

use pto_abi::launch_words::{Architecture, CorePosition};
use pto_abi::{Fault, launch_words};

use crate::core::Conduct;
use crate::device::{Device, Options, Spoil, Work, call};
use crate::graphs::{Tables, chain, patterns};
use crate::image::Image;
use crate::scenario::{Scenario, expect_fault, expect_success, expect_way_down};

/// Every fault path.
pub(crate) fn all() -> Vec<Scenario> {
    let mut scenarios: Vec<Scenario> = vec![
        ("no arguments".to_owned(), Box::new(no_arguments)),
        ("a builder that fails".to_owned(), Box::new(builder_fails)),
    ];
    let no_builder = Fault::BUILD_NO_BUILDER;
    for (name, what) in
        [("nowhere", "an unknown builder"), ("build_graph_aicpu", "no builder in C")]
    {
        let run = move |image: &Image| {
            faulty(image, &Work::Builder(name, vec![]), |_| Conduct::Good, |_| (), no_builder)
        };
        scenarios.push((what.to_owned(), Box::new(run)));
    }
    for (name, fault, conduct) in [
        ("a core that never answers", Fault::CORE_NO_ANSWER, Conduct::Deaf),
        ("a core that never finishes", Fault::STALL_CORE, Conduct::Hangs),
        ("a core that reports another dispatch", Fault::CORE_WRONG_STATUS, Conduct::Lies),
        ("a core that is another one", Fault::CORE_WRONG_ID, Conduct::Impostor),
    ] {
        scenarios.push((name.to_owned(), Box::new(move |image| bad_core(image, fault, conduct))));
    }
    scenarios.extend(spoilt_arenas());
    scenarios.extend(spoilt_words());
    scenarios
}

fn spoilt_arenas() -> Vec<Scenario> {
    type Change = fn(&Spoil<'_>);
    let cases: [(&str, Fault, Change); 3] = [
        ("the arena's layout hash", Fault::RUNTIME_LAYOUT_HASH, |spoil| {
            let mut header = spoil.arena.header();
            header.layout_hash ^= 1;
            spoil.arena.set_header(&header);
        }),
        ("the arena's magic", Fault::RUNTIME_MAGIC, |spoil| {
            let mut header = spoil.arena.header();
            header.magic ^= 1;
            spoil.arena.set_header(&header);
        }),
        ("the worker count", Fault::RUNTIME_WORKER_COUNT, |spoil| {
            let mut config = spoil.arena.config();
            config.worker_count = 129;
            spoil.arena.set_config(&config);
        }),
    ];
    cases.map(|(name, fault, change)| spoilt(name, fault.code(), change)).into()
}

fn spoilt_words() -> Vec<Scenario> {
    type Change = fn(&Spoil<'_>);
    let cases: [(&str, u32, Change); 12] = [
        ("the launch words' magic", 0x01, |spoil| spoil.plan(|plan| plan.magic ^= 1)),
        ("the launch words' ABI", 0x02, |spoil| spoil.plan(|plan| plan.abi_major += 1)),
        ("the launch words' minor ABI", 0x03, |spoil| spoil.plan(|plan| plan.abi_minor += 1)),
        ("the launch words' size", 0x04, |spoil| spoil.plan(|plan| plan.words_bytes += 64)),
        ("the launch words' layout hash", 0x05, |spoil| spoil.plan(|plan| plan.layout_hash ^= 1)),
        ("an arena outside GM", 0x06, |spoil| spoil.plan(|plan| plan.gm_bytes = 4096)),
        ("the architecture", 0x07, |spoil| spoil.plan(|plan| plan.architecture = 3)),
        ("a reserved word", 0x08, |spoil| spoil.plan(|plan| plan.reserved[4] = 1)),
        ("the core count", 0x09, |spoil| spoil.plan(|plan| plan.core_count -= 1)),
        ("a register window that is too small", 0x0A, |spoil| {
            spoil.plan(|plan| plan.registers_bytes = 2 * launch_words::CLUSTER_STRIDE);
        }),
        ("a position taken twice", 0x0A, |spoil| spoil.position(4, Device::position(5))),
        ("a cube core where a vector core is", 0x0A, |spoil| {
            spoil.position(0, CorePosition { cluster: 0, sub: 1 });
        }),
    ];
    cases.map(|(name, cause, change)| spoilt(name, 0x0008_0000 | cause, change)).into()
}

fn spoilt(name: &str, code: u32, change: fn(&Spoil<'_>)) -> Scenario {
    let fault = Fault::from_code(code).expect("not zero");
    let run = move |image: &Image| {
        let work = Work::Builder("random_dag", vec![]);
        faulty(image, &work, |_| Conduct::Good, change, fault)
    };
    (format!("refused: {name}"), Box::new(run))
}

/// The device runs a graph after the fault.
fn expect_recovery(device: &mut Device, image: &Image) -> Result<(), String> {
    let tables = Tables::upload(&device.gm, &chain(50));
    let outcome = device.run(image, &tables.builder(), &Options::default());
    expect_success(&outcome).map_err(|why| format!("afterwards {why}"))?;
    tables.check(&device.gm, 1).map_err(|why| format!("afterwards {why}"))?;
    expect_way_down(device).map_err(|why| format!("afterwards {why}"))
}

fn faulty(
    image: &Image,
    work: &Work,
    conduct: impl Fn(u32) -> Conduct,
    change: impl FnOnce(&Spoil<'_>),
    fault: Fault,
) -> Result<String, String> {
    let mut device = Device::new(Architecture::A2A3);
    device.start_cores(conduct);
    device.prepare(work, &Options::default(), change);
    let outcome = device.launch(image, &Options::default());
    expect_fault(&outcome, fault)?;
    // Launch words without a magic are not written to.
    let is_of_words = (0x0008_0002..0x0008_0009).contains(&fault.code());
    if is_of_words && outcome.refused != fault.code() {
        return Err(format!("the launch words say {:#x}", outcome.refused));
    }
    expect_recovery(&mut device, image)?;
    Ok(format!("{fault:?}"))
}

fn bad_core(image: &Image, fault: Fault, conduct: Conduct) -> Result<String, String> {
    const BAD: u32 = 4;
    let mut device = Device::new(Architecture::A2A3);
    let tables = Tables::upload(&device.gm, &patterns()[3]);
    let options = Options { task_budget: Duration::from_millis(300), ..Options::default() };
    device.start_cores(|worker| if worker == BAD { conduct } else { Conduct::Good });
    device.prepare(&tables.builder(), &options, |_| ());
    let outcome = device.launch(image, &options);
    expect_fault(&outcome, fault)?;
    if outcome.epitaph.core != BAD {
        return Err(format!("the epitaph names core {}, not {BAD}", outcome.epitaph.core));
    }
    expect_recovery(&mut device, image)?;
    Ok(format!("{fault:?} of core {BAD} after {:.0} ms", outcome.makespan.as_secs_f64() * 1e3))
}

/// A node on a core kind that does not exist.
fn builder_fails(image: &Image) -> Result<String, String> {
    let mut device = Device::new(Architecture::A2A3);
    let tables = Tables::upload(&device.gm, &chain(100));
    let kind = device.gm.window.offset_of(tables.kinds, 4).expect("in GM") + 4 * 70;
    device.gm.window.write(kind, &9_u32).expect("in GM");
    let outcome = device.run(image, &tables.builder(), &Options::default());
    expect_fault(&outcome, Fault::BUILD_FAILED)?;
    if outcome.epitaph.detail[0] != 3 {
        return Err(format!("the epitaph holds {:?}, not the builder's 3", outcome.epitaph.detail));
    }
    expect_recovery(&mut device, image)?;
    Ok("BUILD_FAILED 3".to_owned())
}

fn no_arguments(image: &Image) -> Result<String, String> {
    let mut args = [0_u64; 38];
    let args = args.as_mut_ptr().expose_provenance();
    let found = [
        call(image.stub, 0),
        call(image.init, 0),
        call(image.init, args),
        call(image.server, 0),
        call(image.server, args),
        call(image.run_launch, 0),
        call(image.run_launch, args | 8),
    ];
    if found != [0, -1, 0, -1, -1, -1, -1] {
        return Err(format!("the entries returned {found:?}"));
    }
    Ok("refused".to_owned())
}
