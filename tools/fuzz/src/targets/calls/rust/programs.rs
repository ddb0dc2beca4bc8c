//! Programs, graph files, workloads and groups: files with a few bytes changed, tensors that do not fit, transfers without a partner.

use std::sync::Arc;
use std::time::Duration;

use pto_check::{FileProgram, file};
use pto_host::abi::GmAddr;
use pto_host::graph::group::{RemoteAddress, Signal};
use pto_host::graph::{ElementType, GraphBuilder, NoBuilders, TaskSpec, TensorView};
use pto_host::group::{Group, GroupOptions};
use pto_host::stitch::{Inputs, ProgramStream, StitchError, Stitcher, Tensor};
use pto_host::workload::{WorkloadBindings, WorkloadRun};
use pto_host::workloads::program::{
    Format, MemorySpace, Program, TensorDescription, TensorLayout, seal,
};
use pto_host::workloads::tile::DType;
use pto_host::workloads::{Workload, plan};
use pto_host::{DeviceOptions, GraphImage, HostGraph, Hosting, RunOptions, Session};

use super::super::play::tell;
use super::super::words::{self, Block};
use super::{MOMENT, ObjectPools, run_options};
use crate::Mutator;
use crate::choices::Choices;

const PROGRAMS: &[&[u8]] = &[
    include_bytes!("../../../../corpus/program_file/matmul.ptop"),
    include_bytes!("../../../../corpus/program_file/row_sums.ptop"),
    include_bytes!("../../../../corpus/program_file/softmax.ptop"),
    include_bytes!("../../../../corpus/program_file/ragged_attention.ptop"),
    include_bytes!("../../../../corpus/program_file/native.ptop"),
];
const GRAPHS: &[&[u8]] = &[
    include_bytes!("../../../../corpus/graph_file/vector_example.jsonl"),
    include_bytes!("../../../../corpus/graph_file/cholesky.jsonl"),
    include_bytes!("../../../../corpus/graph_file/newton_solve.jsonl"),
];
const WORKLOADS: &[&[u8]] = &[
    include_bytes!("../../../../corpus/workload_file/matmul.workload"),
    include_bytes!("../../../../corpus/workload_file/softmax.workload"),
    include_bytes!("../../../../corpus/workload_file/ragged_attention.workload"),
];
/// Tensors that are larger are not asked for: zeros would take most of the time.
const MOST_ELEMENTS: u64 = 1 << 16;
/// How long a run may take that waits for transfers of others.
const RUN: Duration = Duration::from_millis(20);

/// One of the files, as it is or changed.
fn changed(files: &[&[u8]], random: &mut Mutator) -> Vec<u8> {
    let (file, other) = (random.one_of(files), random.one_of(files));
    if random.below(2) == 0 { file.to_vec() } else { random.mutate(file, other) }
}

impl ObjectPools {
    pub(super) fn program(&self, choices: &mut Choices<'_>) {
        let Some(of) = self.sessions.any(choices) else { return };
        let mut random = choices.more();
        match choices.byte() % 8 {
            0..=2 => {
                let mut file = changed(PROGRAMS, &mut random);
                seal(&mut file);
                let Ok(program) = Program::from_bytes(&file) else { return };
                tell(format_args!("program {} of {} bytes", program.name(), file.len()));
                let _: Result<(), _> = run_program(&of.session, program, &mut random);
            }
            3 => {
                let text = changed(WORKLOADS, &mut random);
                let workload = Workload::parse(&String::from_utf8_lossy(&text));
                let Some(checked) = workload.ok().and_then(|workload| workload.check().ok()) else {
                    return;
                };
                let Ok(program) = Program::of_workload(&checked) else { return };
                tell(format_args!("program of the workload {}", program.name()));
                let _: Result<(), _> = run_program(&of.session, program, &mut random);
            }
            4 | 5 => {
                let text = changed(GRAPHS, &mut random);
                let Ok(program) = file::read(text.as_slice()) else { return };
                tell(format_args!("graph file {}", program.name));
                let Some(graph) = graph_of_file(&of.session, of.common.block(), program) else {
                    return;
                };
                of.common.disturb();
                self.graphs.put(graph);
            }
            6 => self.workload(choices, &mut random),
            _ if choices.byte() < 64 => group(&mut random),
            _ => (),
        }
    }

    /// A workload on a device that no session has, bound to memory that may be too small.
    fn workload(&self, choices: &mut Choices<'_>, random: &mut Mutator) {
        let text = changed(WORKLOADS, random);
        let Ok(workload) = Workload::parse(&String::from_utf8_lossy(&text)) else { return };
        let Some(compiled) = workload.check().ok().and_then(|checked| plan::compile(&checked).ok())
        else {
            return;
        };
        let Ok(mut device) = Self::device(choices.byte(), 32 << 20) else { return };
        tell(format_args!("workload {}", compiled.name()));
        let Ok(memory) = device.zeroed::<u8>(1 << 16) else { return };
        let mut bound = WorkloadBindings::new();
        for name in names_of(&text) {
            let offset = 8 * random.below(1 << 10) as u64;
            bound = match random.below(8) {
                0 => bound,
                1 => bound.tensor(&name, GmAddr(random.edge())),
                _ => bound.tensor(&name, GmAddr(memory.address().0 + offset)),
            };
            bound = bound.size(&name, random.below(40) as u64);
        }
        let options = RunOptions { run_budget: Some(RUN), ..run_options() };
        let run = WorkloadRun::bind(&device, compiled, &bound);
        let _ = run.map(|run| run.run(&mut device, &options).is_ok());
    }
}

/// The words of a text that may be names, each once.
fn names_of(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let is_end = |letter: char| !letter.is_alphanumeric() && letter != '_';
    let mut names: Vec<_> =
        text.split(is_end).filter(|word| !word.is_empty()).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    names.truncate(64);
    names
}

/// Runs a program on tensors that mostly are as it wants them.
fn run_program(
    session: &Session,
    program: Program,
    random: &mut Mutator,
) -> Result<(), StitchError> {
    let stitcher = Stitcher::new(session)?;
    let described = program.tensors().to_vec();
    let loaded = stitcher.load(program)?;
    let stream = stitcher.overlapping_stream(random.below(4))?;
    let mut tensors = Vec::new();
    for one in &described {
        tensors.push(tensor_for(&stream, one, random)?);
    }
    let mut inputs = Inputs::new();
    for (one, tensor) in described.iter().zip(tensors.iter_mut()) {
        inputs = match random.below(12) {
            0 => inputs,
            1 => inputs.borrow(&one.name, tensor).borrow(&one.name, tensor),
            2 => inputs.array(&one.name, tensor),
            3 => inputs.into(&one.name, tensor),
            4 => inputs.borrow("nobody", tensor),
            5..=7 => inputs.update(&one.name, tensor),
            _ => inputs.borrow(&one.name, tensor),
        };
        inputs = inputs.size(&one.name, random.edge()).grain(random.below(3) as u64);
    }
    let ran = stream.run(&loaded, inputs);
    let mut outputs = ran?;
    for one in &described {
        if let Ok(output) = outputs.take(&one.name) {
            let next = Inputs::new().give(&one.name, output);
            drop(stream.run(&loaded, next));
        }
    }
    if random.below(2) == 0 {
        stream.abort();
    }
    stream.synchronize_within(MOMENT)
}

fn tensor_for(
    stream: &ProgramStream,
    one: &TensorDescription,
    random: &mut Mutator,
) -> Result<Tensor, StitchError> {
    let mut shape = one.shape.clone();
    let mut dtype = one.dtype;
    let mut layout = one.layout.clone();
    match random.below(24) {
        0 => shape.push(1),
        1 => shape = vec![random.edge()],
        2 => dtype = random.one_of(&[DType::U8, DType::F16, DType::I64]),
        3 => {
            layout = TensorLayout {
                memory: MemorySpace::Device,
                format: Format::RowMajor,
                padding: random.edge(),
            }
        }
        _ => (),
    }
    let elements = shape.iter().fold(1_u64, |all, extent| all.saturating_mul(*extent));
    if elements > MOST_ELEMENTS && elements < 1 << 40 {
        shape = vec![4, 4];
    }
    stream.zeros(dtype, &shape, &layout)
}

/// The graph of a file, whose tensors are in this memory, or partly after it.
fn graph_of_file(
    session: &Session,
    memory: Block,
    program: pto_check::Program,
) -> Option<GraphImage> {
    let submission = FileProgram::new(Arc::new(program));
    if submission.defect().is_some() {
        return None;
    }
    let places: Vec<_> = (0_u64..)
        .zip(submission.blocks())
        .map(|(number, _)| GmAddr(memory.at + 512 * number))
        .collect();
    submission.set_blocks(&places);
    session
        .with_device(|device| HostGraph::build(device, &[], |graph| submission.build(graph)).ok())
        .ok()?
}

/// Devices that run graphs with transfers together: some of them wait for what never comes, or name memory that is not there.
fn group(random: &mut Mutator) {
    let ranks = random.one_of(&[1, 2, 2, 3, 0, 385]);
    tell(format_args!("group of {ranks}"));
    let device = DeviceOptions {
        aic: 1,
        aiv: 2,
        gm_bytes: 24 << 20,
        hosting: Hosting::Pool { os_threads: std::num::NonZeroUsize::MIN },
    };
    let options = GroupOptions { device, meet_budget: RUN, ..GroupOptions::default() };
    let Ok(mut group) = Group::open_local(ranks, &options, NoBuilders) else { return };
    for _ in 0..random.below(3) {
        let _: Result<u32, _> = group.window(random.one_of(&[64, 4096, 0, 1 << 40]));
    }
    for _ in 0..2 {
        let graphs: Option<Vec<_>> =
            (0..ranks).map(|rank| graph_with_transfers(&group, rank, random)).collect();
        let Some(mut graphs) = graphs else { return };
        if random.below(16) == 0 {
            graphs.pop();
        }
        let options = RunOptions { run_budget: Some(RUN), ..run_options() };
        let _ = group.run_graphs(&graphs, &options).is_ok();
        let member = &group.members()[0];
        let _: (Result<(), _>, Result<Vec<u64>, _>) = (
            member.write(random.small(3), random.edge(), &[1_u64; 4]),
            member.read(0, random.edge(), random.below(9)),
        );
    }
}

fn graph_with_transfers(group: &Group, rank: u32, random: &mut Mutator) -> Option<GraphImage> {
    let member = group.members().iter().find(|member| member.rank() == rank)?;
    let mut graph = HostGraph::new(member.device(), &[]);
    let communicator = group.communicator(rank).ok()?;
    let own = member.window(0).map_or(0, |at| at.0);
    for _ in 0..random.below(6) {
        let at =
            if random.below(8) == 0 { random.edge() } else { own + 8 * random.below(600) as u64 };
        let extents = [random.one_of(&[1, 8, 16, 16, 1024, u32::MAX])];
        let view = TensorView::dense(GmAddr(at), ElementType::F32, &extents);
        let (peer, slot) = (random.small(4), random.small(5));
        let remote = RemoteAddress {
            rank: peer,
            window: random.small(2),
            offset: if random.below(8) == 0 { random.edge() } else { 64 },
        };
        let signal = Signal { slot: if random.below(8) == 0 { u32::MAX } else { slot }, value: 1 };
        let transfer = match random.below(6) {
            0 => communicator.send_transfer(&view, peer, slot),
            1 => communicator.receive_transfer(&view, peer, slot),
            2 => communicator.put_transfer(&view, remote, (slot > 1).then_some(signal)),
            3 => communicator.get_transfer(remote, &view),
            4 => communicator.signal_transfer(peer, signal),
            _ => communicator.wait_transfer(signal),
        };
        let _ = transfer.and_then(|transfer| graph.submit_transfer(&transfer, &[]));
    }
    let (kernel, args) = words::call(Block { at: own.max(4096), bytes: 4096 }, random);
    let func_id = super::func_id(kernel);
    let _: Result<_, _> = graph.submit(TaskSpec::new(func_id, kernel.kind, &args), &[]);
    graph.finish().ok()
}
