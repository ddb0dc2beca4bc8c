//! Chains as `docs/how-to/chains.md` has them, on a device, in a stream, with a predicate, and where a builder has none.

use std::num::NonZeroUsize;

use pto_host::abi::{CoreKind, Fault, GmAddr, TaskId};
use pto_host::graph::{
    Arg, BuildError, Chain, ChainTemplate, Comparison, DependencyMode, ElementType, GraphBuilder,
    Link, Predicate, StreamBuilder, Submission, TaskDesc, TaskSpec, TensorRange, TensorTask,
    TensorView, Variation, builder_set,
};
use pto_host::virtual_time::VirtualOptions;
use pto_host::{Device, DeviceOptions, HostGraph, Hosting, RunOptions, Work, func};

builder_set! { struct Programs { "build" => build, "alike" => alike, "nested" => nested, "wide" => wide } stream { "build" => build, "alike" => alike, "nested" => nested, "nested_tensors" => nested_tensors, "in_recording" => in_recording, "perhaps" => perhaps, "perhaps_alike" => perhaps_alike, "wide" => wide, "derived" => derived, "rows" => rows } }

/// out = a + b, in 64 pieces of 256 elements: eight chains of eight kernels.
fn build<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let &[a, b, out] = graph.orch_args() else { return Err(BuildError::Failed(1)) };
    for part in 0..8 {
        let at = |tensor: u64| tensor + part * 8 * 256 * 4;
        let args = [at(a), at(b), at(out), 256];
        let first = TaskSpec::new(func::ADD, CoreKind::AIV, &args);
        // From one kernel to the next, the three addresses grow by a piece.
        let grows = [0, 1, 2].map(|arg| Variation::by(arg, 256 * 4));
        let links = [Link::new(first).times(8).varying(&grows)];
        graph.submit_chain(&Chain::new(&links), &[])?;
    }
    Ok(())
}

/// out = a + b, in 64 pieces of 256 elements: eight chains of eight kernels.
fn alike<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let &[a, b, out] = graph.orch_args() else { return Err(BuildError::Failed(1)) };
    let args = [a, b, out, 256];
    let first = TaskSpec::new(func::ADD, CoreKind::AIV, &args);
    let grows = [0, 1, 2].map(|arg| Variation::by(arg, 256 * 4));
    let links = [Link::new(first).times(8).varying(&grows)];
    // Checked and written once.
    let mut pieces = ChainTemplate::new();
    graph.fill_template(&mut pieces, &Chain::new(&links))?;
    for _ in 0..8 {
        graph.submit_template(&pieces, &[])?;
        // The next eight pieces of each tensor.
        for arg in 0..3 {
            pieces.advance(0, arg, 8 * 256 * 4)?;
        }
    }
    Ok(())
}

/// As `perhaps`, of a template.
fn perhaps_alike<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let &[a, b, out] = stream.orch_args() else { return Err(BuildError::Failed(1)) };
    let flags = TensorView::dense(GmAddr(b), ElementType::U32, &[16_384]);
    stream.scope::<(), BuildError>(DependencyMode::MANUAL, |scope| {
        let (args, grows) = ([a, b, out, 256], [Variation::by(2, 1024)]);
        let task = TaskSpec::new(func::ADD, CoreKind::AIV, &args);
        let mut template = ChainTemplate::new();
        let links = [Link::new(task).times(2).varying(&grows)];
        scope.fill_template(&mut template, &Chain::new(&links))?;
        let mut last = Vec::new();
        for (part, comparison) in [(0, Comparison::EQUAL), (1, Comparison::NOT_EQUAL)] {
            let holds = Predicate::new(&flags, &[part], comparison, 0);
            template.set(0, 2, out + u64::from(part) * 2048)?;
            last.push(scope.submit_template_when(&template, &[], &holds)?);
        }
        let args = [out, out + 2048, out + 8192, 512];
        scope.submit(TaskSpec::new(func::ADD, CoreKind::AIV, &args), &last)?;
        Ok(())
    })
}

/// A template in a recording, which cannot hold chains.
fn in_recording<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let &[a, b, out] = stream.orch_args() else { return Err(BuildError::Failed(1)) };
    let args = [a, b, out, 256];
    let links = [Link::new(TaskSpec::new(func::ADD, CoreKind::AIV, &args)).times(2)];
    let mut template = ChainTemplate::new();
    stream.fill_template(&mut template, &Chain::new(&links))?;
    stream.begin_recording(&[])?;
    stream.submit_template(&template, &[])?;
    stream.end_recording()?;
    Ok(())
}

/// Two chains of two kernels each, one of which its predicate keeps from running; then one that reads what both left.
fn perhaps<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let &[a, b, out] = stream.orch_args() else { return Err(BuildError::Failed(1)) };
    let flags = TensorView::dense(GmAddr(b), ElementType::U32, &[16_384]);
    stream.scope::<(), BuildError>(DependencyMode::MANUAL, |scope| {
        let mut last = Vec::new();
        for (part, comparison) in [(0, Comparison::EQUAL), (1, Comparison::NOT_EQUAL)] {
            let holds = Predicate::new(&flags, &[part], comparison, 0);
            let args = [a, b, out + u64::from(part) * 2048, 256];
            let task = TaskSpec::new(func::ADD, CoreKind::AIV, &args);
            let grows = [Variation::by(2, 1024)];
            let links = [Link::new(task).times(2).varying(&grows)];
            last.push(scope.submit_chain_when(&Chain::new(&links), &[], &holds)?);
        }
        let args = [out, out + 2048, out + 8192, 512];
        scope.submit(TaskSpec::new(func::ADD, CoreKind::AIV, &args), &last)?;
        Ok(())
    })
}

/// out = a + b, then out = out + out from its last piece to its first one, then a task that reads the whole of it into `a`. No edge is stated.
fn derived<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let &[a, b, out] = stream.orch_args() else { return Err(BuildError::Failed(1)) };
    let whole = |at: u64| TensorView::dense(GmAddr(at), ElementType::F32, &[64, 256]);
    let (a, b, out) = (whole(a), whole(b), whole(out));
    for part in 0..8 {
        let [a, b, out] = [a, b, out].map(|all| all.slice(0, part * 8, 1));
        let args = [Arg::In(&a), Arg::In(&b), Arg::Out(&out), Arg::Scalar(256)];
        let grows = [0, 1, 2].map(|arg| Variation::by(arg, 256 * 4));
        let links = [Link::on_tensors(func::ADD, CoreKind::AIV, &args).times(8).varying(&grows)];
        stream.submit_chain(&Chain::new(&links), &[])?;
    }
    let last = out.slice(0, 63, 1);
    let args = [Arg::In(&last), Arg::In(&last), Arg::InOut(&last), Arg::Scalar(256)];
    let shrinks = [0, 1, 2].map(|arg| Variation::by(arg, -256 * 4));
    let links = [Link::on_tensors(func::ADD, CoreKind::AIV, &args).times(64).varying(&shrinks)];
    stream.submit_chain(&Chain::new(&links), &[])?;
    let args = [Arg::In(&out), Arg::In(&out), Arg::Out(&a), Arg::Scalar(16_384)];
    stream.submit_tensors(&TensorTask::new(func::ADD, CoreKind::AIV, &args))?;
    Ok(())
}

/// out = a + b, in 64 tasks of one range. It fails where the firmware would submit them one by one.
fn rows<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let &[a, b, out] = stream.orch_args() else { return Err(BuildError::Failed(1)) };
    let [a, b, out] = [a, b, out]
        .map(|at| TensorView::dense(GmAddr(at), ElementType::F32, &[64, 256]).slice(0, 0, 1));
    let args = [Arg::In(&a), Arg::In(&b), Arg::Out(&out), Arg::Scalar(256)];
    let grows = [0, 1, 2].map(|arg| Variation::by(arg, 256 * 4));
    let range = TensorRange::new(TensorTask::new(func::ADD, CoreKind::AIV, &args));
    let range = range.times(64).varying(&grows);
    let mut ids = [TaskId::NONE; 64];
    let taken = stream.submit_desc(Submission::new(TaskDesc::TensorRange(&range, &mut ids)))?;
    if taken.is_none() {
        return Err(BuildError::Failed(2));
    }
    Ok(())
}

/// out = a + b for four pieces of each of three rows of `a`, which lie apart; `b` has one row.
fn nested<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let &[a, b, out] = graph.orch_args() else { return Err(BuildError::Failed(1)) };
    let args = [a, b, out, 256];
    let task = TaskSpec::new(func::ADD, CoreKind::AIV, &args);
    let rows = [a, a + (8 << 10), a + (20 << 10)];
    let piece = 256 * 4;
    let varies = [
        Variation::of(0, &rows).every(4),
        Variation::by(0, piece).within(4),
        Variation::by(1, piece).within(4),
        Variation::by(2, piece),
    ];
    graph.submit_chain(&Chain::new(&[Link::new(task).times(12).varying(&varies)]), &[])?;
    Ok(())
}

/// Piece `16 p + q` of out is piece `p` of a, after a chain that doubles it, and piece `q` of b, before one that doubles it. No edge is stated.
fn nested_tensors<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let &[a, b, out] = stream.orch_args() else { return Err(BuildError::Failed(1)) };
    let pieces = |at: u64, n| TensorView::dense(GmAddr(at), ElementType::F32, &[n, 256]);
    let (a, b, out) = (pieces(a, 16), pieces(b, 16), pieces(out, 256));
    let [a, b, out] = [a, b, out].map(|all| all.slice(0, 0, 1));
    let double = |stream: &mut G, first: &TensorView| {
        let args = [Arg::In(first), Arg::In(first), Arg::InOut(first), Arg::Scalar(256)];
        let grows = [0, 1, 2].map(|arg| Variation::by(arg, 1024));
        let links = [Link::on_tensors(func::ADD, CoreKind::AIV, &args).times(16).varying(&grows)];
        stream.submit_chain(&Chain::new(&links), &[])
    };
    double(stream, &a)?;
    let args = [Arg::In(&a), Arg::In(&b), Arg::Out(&out), Arg::Scalar(256)];
    let [p, q, both] = [0, 1, 2].map(|arg| Variation::by(arg, 1024));
    let varies = [p.every(16), q.within(16), both];
    let links = [Link::on_tensors(func::ADD, CoreKind::AIV, &args).times(256).varying(&varies)];
    stream.submit_chain(&Chain::new(&links), &[])?;
    double(stream, &b)?;
    Ok(())
}

/// A chain of more words than a streaming run has room for at once.
fn wide<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let &[a, b, out] = graph.orch_args() else { return Err(BuildError::Failed(1)) };
    let (args, words) = ([a, b, out, 256], [out; 200]);
    let task = TaskSpec::new(func::ADD, CoreKind::AIV, &args);
    let column = [Variation::of(2, &words)];
    graph.submit_chain(&Chain::new(&[Link::new(task).times(200).varying(&column)]), &[])?;
    Ok(())
}

fn hostings() -> [Hosting; 4] {
    let pool = |n| Hosting::Pool { os_threads: NonZeroUsize::new(n).expect("not zero") };
    [pool(1), pool(2), Hosting::Threads, Hosting::Virtual(VirtualOptions::default())]
}

/// A device with the builders of this file and the library's kernels.
fn device(hosting: Hosting) -> Result<Device, pto_host::Error> {
    let mut device =
        Device::open_sim(DeviceOptions { hosting, ..DeviceOptions::default() }, Programs)?;
    device.register_library()?;
    Ok(device)
}

/// A device with a = 2, b = 3 and an output, of 16,384 elements each; runs `work`, and gives back tasks and output.
fn run(
    hosting: Hosting,
    work: impl Fn(&[u64]) -> Work<'_>,
) -> Result<(u64, [u64; 2], Vec<f32>), pto_host::Error> {
    let mut device = device(hosting)?;
    let (a, b) = (device.upload(&[2.0_f32; 16_384])?, device.upload(&[3.0_f32; 16_384])?);
    let out = device.zeroed::<f32>(16_384)?;
    let orch_args = [a.address().0, b.address().0, out.address().0];
    let report = device.run(work(&orch_args), &RunOptions::default())?;
    Ok((report.kernels, report.parts_run, out.read()?))
}

#[test]
fn the_documented_chains_run_in_every_hosting_mode_and_runtime() -> Result<(), pto_host::Error> {
    for hosting in hostings() {
        for builder in ["build", "alike"] {
            for streams in [false, true] {
                let found = run(hosting, |orch_args| match streams {
                    false => Work::AicpuBuilder { builder, orch_args },
                    true => Work::Stream { builder, orch_args },
                })?;
                let expected = (64, [0, 64], vec![5.0; 16_384]);
                assert_eq!(found, expected, "{hosting}, {builder}, {streams}");
            }
        }
    }
    Ok(())
}

#[test]
fn a_builder_without_chains_makes_a_task_of_each_kernel() -> Result<(), Box<dyn std::error::Error>>
{
    let mut device = Device::open_sim(DeviceOptions::default(), Programs)?;
    device.register_library()?;
    let (a, b) = (device.upload(&[2.0_f32; 16_384])?, device.upload(&[3.0_f32; 16_384])?);
    let out = device.zeroed::<f32>(16_384)?;
    let mut graph = HostGraph::new(&device, &[a.address().0, b.address().0, out.address().0]);
    build(&mut graph).map_err(|error| format!("{error:?}"))?;
    let report = device.run(Work::HostGraph(&graph.finish()?), &RunOptions::default())?;
    assert_eq!((report.kernels, report.edges), (64, 56));
    assert_eq!(out.read()?, [5.0; 16_384]);
    // And of each kernel of a template: a + out = 7.
    let mut graph = HostGraph::new(&device, &[a.address().0, out.address().0, out.address().0]);
    alike(&mut graph).map_err(|error| format!("{error:?}"))?;
    let report = device.run(Work::HostGraph(&graph.finish()?), &RunOptions::default())?;
    assert_eq!((report.kernels, report.edges), (64, 56));
    assert_eq!(out.read()?, [7.0; 16_384]);
    Ok(())
}

#[test]
fn a_chain_runs_or_is_skipped_as_its_predicate_says() -> Result<(), pto_host::Error> {
    for hosting in hostings() {
        for builder in ["perhaps", "perhaps_alike"] {
            let (tasks, ran, out) = run(hosting, |orch_args| Work::Stream { builder, orch_args })?;
            // b is 3.0: not zero. Five kernels, of which two are skipped.
            let parts = (&out[..512], &out[512..1024], &out[2048..2560]);
            let expected = (&[0.0; 512][..], &[5.0; 512][..], &[5.0; 512][..]);
            assert_eq!((tasks, ran, parts), (5, [0, 3], expected), "{hosting}, {builder}");
        }
    }
    Ok(())
}

#[test]
fn a_chain_waits_for_what_its_tensors_say() -> Result<(), pto_host::Error> {
    for hosting in hostings() {
        let mut device = device(hosting)?;
        let (a, b) = (device.upload(&[2.0_f32; 16_384])?, device.upload(&[3.0_f32; 16_384])?);
        let out = device.zeroed::<f32>(16_384)?;
        let orch_args = [a.address().0, b.address().0, out.address().0];
        let work = Work::Stream { builder: "derived", orch_args: &orch_args };
        let report = device.run(work, &RunOptions::default())?;
        assert_eq!(report.kernels, 64 + 64 + 1, "{hosting}");
        assert_eq!((out.read()?, a.read()?), (vec![10.0; 16_384], vec![20.0; 16_384]), "{hosting}");
    }
    Ok(())
}

/// Pieces of 256 elements, the p-th of which holds `of(p)`.
fn pieces(count: u16, of: fn(u16) -> f32) -> Vec<f32> {
    (0..count).flat_map(|p| [of(p); 256]).collect()
}

#[test]
fn two_nested_loops_are_one_link() -> Result<(), pto_host::Error> {
    let expected = [0, 8, 20].into_iter().flat_map(|row| (0_u16..4).map(move |p| (row + p, p)));
    let expected = expected.map(|(p, q)| f32::from(p) + f32::from(100 * q));
    let expected: Vec<f32> = expected.flat_map(|sum| [sum; 256]).collect();
    for hosting in hostings() {
        for streams in [false, true] {
            let mut device = device(hosting)?;
            let a = device.upload(&pieces(24, f32::from))?;
            let b = device.upload(&pieces(4, |q| f32::from(100 * q)))?;
            let out = device.zeroed::<f32>(12 * 256)?;
            let orch_args = [a.address().0, b.address().0, out.address().0];
            let work = match streams {
                false => Work::AicpuBuilder { builder: "nested", orch_args: &orch_args },
                true => Work::Stream { builder: "nested", orch_args: &orch_args },
            };
            device.run(work, &RunOptions::default())?;
            assert!(out.read()? == expected, "{hosting}, {streams}");
        }
    }
    Ok(())
}

#[test]
fn nested_loops_wait_for_what_their_tensors_say() -> Result<(), pto_host::Error> {
    let sums = (0_u16..16).flat_map(|p| (0_u16..16).map(move |q| f32::from(2 * p + 100 * q)));
    let expected: Vec<f32> = sums.flat_map(|sum| [sum; 256]).collect();
    for hosting in hostings() {
        let mut device = device(hosting)?;
        let a = device.upload(&pieces(16, f32::from))?;
        let b = device.upload(&pieces(16, |q| f32::from(100 * q)))?;
        let out = device.zeroed::<f32>(256 * 256)?;
        let orch_args = [a.address().0, b.address().0, out.address().0];
        let work = Work::Stream { builder: "nested_tensors", orch_args: &orch_args };
        device.run(work, &RunOptions::default())?;
        assert!(out.read()? == expected, "{hosting}");
        assert!(b.read()? == pieces(16, |q| f32::from(200 * q)), "{hosting}");
    }
    Ok(())
}

#[test]
fn a_range_on_tensors_reaches_the_firmware_as_one() -> Result<(), pto_host::Error> {
    for hosting in hostings() {
        let found = run(hosting, |orch_args| Work::Stream { builder: "rows", orch_args })?;
        assert_eq!(found, (64, [0, 64], vec![5.0; 16_384]), "{hosting}");
    }
    Ok(())
}

#[test]
fn a_chain_of_too_many_words_is_refused_in_a_stream_alone() -> Result<(), pto_host::Error> {
    let pool = hostings()[0];
    run(pool, |orch_args| Work::AicpuBuilder { builder: "wide", orch_args })?;
    let refused = run(pool, |orch_args| Work::Stream { builder: "wide", orch_args });
    assert_eq!(refused.unwrap_err().fault(), Some(Fault::BUILD_CHAIN_WORDS));
    Ok(())
}

#[test]
fn a_recording_holds_no_template() {
    let pool = hostings()[0];
    let refused = run(pool, |orch_args| Work::Stream { builder: "in_recording", orch_args });
    assert_eq!(refused.unwrap_err().fault(), Some(Fault::STREAM_RECORDING_OPEN));
}

#[test]
fn the_documentation_shows_this_file() {
    let lines = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    let here = lines(include_str!("chains.rs"));
    let page = include_str!("../../../docs/how-to/chains.md");
    for number in [1, 2, 3] {
        let program = page.split("```rust\n").nth(number).and_then(|rest| rest.split("```").next());
        let (_, body) = program.and_then(|it| it.split_once("\n\n")).expect("imports come first");
        assert!(here.contains(lines(body).trim()), "not in this file:\n{body}");
    }
}
