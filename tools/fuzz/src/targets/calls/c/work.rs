//! What devices and streams of the interface of C are given to do: kernels of the library, graphs, builder programs, and programs in files and texts.

use std::ffi::{CString, c_char, c_void};
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};

use pto_runtime::builder::{self, OpaqueBuilder};
use pto_runtime::options::{RunOptions, RunReport};
use pto_runtime::program_run::{self, ProgramNumber, ProgramOutput, ProgramTensor};
use pto_runtime::program_stream::pto_program_stream_synchronize;
use pto_runtime::program_tasks::{self, ProgramArgument, ProgramTask, ProgramTensorSpec};
use pto_runtime::tensor::TensorDescription;
use pto_runtime::{graph, kernel_stream, program, run, tensor};

use super::super::play::tell;
use super::super::words::{self, Block};
use super::{BYTES, ChosenHandle, Handle, HandlePools, MOMENT_NS, NOTHING, to};
use crate::Mutator;
use crate::choices::Choices;
use crate::targets::c_calls::{checked, count_of};

/// How long a run may take.
const RUN_NS: u64 = 50_000_000;

const PROGRAMS: &[&[u8]] = &[
    include_bytes!("../../../../corpus/program_file/matmul.ptop"),
    include_bytes!("../../../../corpus/program_file/softmax.ptop"),
    include_bytes!("../../../../corpus/program_file/row_sums.ptop"),
];
const WORKLOADS: &[&[u8]] = &[
    include_bytes!("../../../../corpus/workload_file/matmul.workload"),
    include_bytes!("../../../../corpus/workload_file/softmax.workload"),
];

fn block(of: &ChosenHandle) -> Block {
    Block { at: of.at().max(4096), bytes: BYTES }
}

/// A text of C; what follows a zero is left out.
fn text(bytes: &[u8]) -> CString {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    CString::new(&bytes[..end]).unwrap_or_default()
}

/// What a builder program gets.
struct BuilderState {
    random: Mutator,
    memory: Block,
}

unsafe extern "C" fn build(building: *mut OpaqueBuilder, user: *mut c_void) -> i32 {
    // SAFETY: `builder` passes a pointer that is valid until the run has ended, and the runtime runs the program once at a time.
    let BuilderState { random, memory } = unsafe { &mut *user.cast::<BuilderState>() };
    let mut task = 0;
    for _ in 0..random.below(20) {
        let (mut func_id, mut kind) = (
            random.one_of(&[900, 900, 900, 901, -1, i32::MAX]),
            random.one_of(&[1, 1, 1, 0, 2, -1]),
        );
        let mut args: Vec<u64> = (0..random.one_of(&[0, 1, 4, 128, 129])).collect();
        let (kernel, words) = words::call(*memory, random);
        if random.below(3) > 0 && !words::reach_as_memory_says(kernel, &words) {
            func_id = i32::try_from(kernel.func_id).unwrap_or(-1);
            (kind, args) = (i32::from(kernel.kind.get() != 0), words);
        }
        let count = count_of(&args);
        let numbers = [task, task - 1, 0, -1, 3, i32::MAX, i32::MIN];
        // SAFETY: the arguments are there, and the result pointer is valid for writes.
        checked(unsafe {
            builder::pto_builder_add_task(
                building,
                func_id,
                kind,
                args.as_ptr(),
                count,
                &raw mut task,
            )
        });
        checked(builder::pto_builder_add_edge(
            building,
            random.one_of(&numbers),
            random.one_of(&numbers),
        ));
        let published = if random.below(8) == 0 { random.one_of(&numbers) } else { task };
        checked(builder::pto_builder_publish(building, published));
        let (at, mut word) = (memory.at + 4 * random.below(2000) as u64, 0);
        // SAFETY: the result pointer is valid for writes.
        checked(unsafe { builder::pto_builder_read_u32(building, at, &raw mut word) });
    }
    random.one_of(&[0, 0, 0, 1, -1])
}

impl HandlePools {
    /// A kernel of the library with words that may be wrong.
    pub(super) fn with_library(&self, choices: &mut Choices<'_>) {
        let chosen = self.choose(&self.streams, choices);
        let mut random = choices.more();
        let (kernel, words) = words::call(block(&chosen), &mut random);
        let blocks = random.one_of(&[1, 1, 1, 2, 5, 0, 65_536]);
        tell(format_args!(
            "stream {:#x}: {} of {words:x?} in {blocks} blocks",
            chosen.0, kernel.name
        ));
        let count = count_of(&words);
        // SAFETY: the words are there.
        let status = unsafe {
            kernel_stream::pto_kernel_stream_launch(
                chosen.raw(),
                kernel.func_id,
                blocks,
                words.as_ptr(),
                count,
            )
        };
        Self::check(status, &[&chosen]);
    }

    /// A graph of its own, on a device that may be a session's.
    pub(super) fn with_graph(&self, choices: &mut Choices<'_>) {
        let chosen = self.choose(&self.devices, choices);
        let mut random = choices.more();
        tell(format_args!("device {:#x}: a graph", chosen.0));
        let mut made = null_mut();
        // SAFETY: the result pointer is valid for writes.
        checked(unsafe { graph::pto_graph_create(&raw mut made) });
        let is_of_library = random.below(2) == 0;
        let tasks = random.below(12);
        for _ in 0..tasks {
            let (kernel, words) = words::call(block(&chosen), &mut random);
            let (func_id, kind, words) = match is_of_library {
                true => (kernel.func_id, i32::from(kernel.kind.get() != 0), words),
                false => (NOTHING, random.one_of(&[1, 1, 1, 0, 2]), words),
            };
            let func_id = i32::try_from(func_id).unwrap_or(-1);
            let (count, mut task) = (count_of(&words), 0);
            // SAFETY: the words are there, and the result pointer is valid for writes.
            checked(unsafe {
                graph::pto_graph_add_task(made, func_id, kind, words.as_ptr(), count, &raw mut task)
            });
            let other = i32::try_from(random.below(tasks + 2)).unwrap_or(0) - 1;
            checked(graph::pto_graph_add_edge(made, other, task));
        }
        let options = RunOptions { run_budget_ns: RUN_NS, ..RunOptions::default() };
        let mut report = MaybeUninit::<RunReport>::uninit();
        // SAFETY: the options are valid, and the result pointer is valid for writes.
        let status = unsafe {
            run::pto_run_graph(chosen.raw(), made, &raw const options, report.as_mut_ptr())
        };
        Self::check(status, &[&chosen]);
        checked(graph::pto_graph_destroy(made));
        checked(graph::pto_graph_destroy(made));
    }

    /// A builder program that makes wrong calls.
    pub(super) fn with_builder(&self, choices: &mut Choices<'_>) {
        let chosen = self.choose(&self.devices, choices);
        let random = choices.more();
        // Of two threads each would run what the other one has registered under the name.
        if self.settings.threads > 1 {
            return;
        }
        tell(format_args!("device {:#x}: a builder program", chosen.0));
        let built: &'static mut BuilderState =
            Box::leak(Box::new(BuilderState { random, memory: block(&chosen) }));
        let user: *mut BuilderState = built;
        // SAFETY: the name is a text, and what the program gets lives for ever.
        checked(unsafe {
            builder::pto_register_builder(chosen.raw(), c"wrong".as_ptr(), Some(build), user.cast())
        });
        let options = RunOptions { run_budget_ns: RUN_NS, ..RunOptions::default() };
        let words = [7_u64; 4];
        let count = choices.one_of(&[0, 4]);
        let (name, options) = (c"wrong".as_ptr(), &raw const options);
        let (device, words) = (chosen.raw(), words.as_ptr());
        let status = if choices.byte() < 128 {
            // SAFETY: the words are there, and the options are valid.
            unsafe { run::pto_run_builder(device, name, words, count, options, null_mut()) }
        } else {
            // SAFETY: the words are there, and the options are valid.
            unsafe { run::pto_run_stream(device, name, words, count, options, null_mut()) }
        };
        Self::check(status, &[&chosen]);
        // SAFETY: the name is a text.
        checked(unsafe { builder::pto_unregister_builder(chosen.raw(), c"wrong".as_ptr()) });
    }

    /// A program of a file, of a text or of tasks, and its runs.
    pub(super) fn with_program(&self, choices: &mut Choices<'_>) {
        let (session, stream) =
            (self.choose(&self.sessions, choices), self.choose(&self.programs, choices));
        let mut random = choices.more();
        let what = random.below(6);
        tell(format_args!("session {:#x}, stream {:#x}: program {what}", session.0, stream.0));
        let mut made = null_mut();
        let status = match what {
            0..=2 => {
                let bytes = changed(WORKLOADS, &mut random);
                let text = text(&bytes);
                // SAFETY: it is a text, and the result pointer is valid for writes.
                unsafe { program::pto_program_of_text(text.as_ptr(), &raw mut made) }
            }
            3 => of_file(&mut random, &mut made),
            _ => of_tasks(&mut random, &mut made),
        };
        if checked(status) != 0 {
            return;
        }
        let mut described = Vec::new();
        for number in 0..8 {
            let mut described_tensor = MaybeUninit::<TensorDescription>::zeroed();
            // SAFETY: the result pointer is valid for writes.
            if checked(unsafe {
                program::pto_program_tensor(made, number, described_tensor.as_mut_ptr())
            }) != 0
            {
                break;
            }
            // SAFETY: it was written.
            described.push(unsafe { described_tensor.assume_init() });
        }
        for tensor in &described {
            let name = tensor.name.as_ptr();
            let role =
                random.one_of(&[c"output", c"updated", c"temporary", c"input", c"?"]).as_ptr();
            let layout = random
                .one_of(&[
                    c"nz",
                    c"row-major",
                    c"column-major",
                    c"nz:500x300",
                    c"on-chip, row-major",
                ])
                .as_ptr();
            match random.below(12) {
                // SAFETY: the names and the role are C strings.
                0 => drop(checked(unsafe { program::pto_program_set_role(made, name, role) })),
                // SAFETY: the names and the layout are C strings.
                1 => drop(checked(unsafe { program::pto_program_set_layout(made, name, layout) })),
                2 => {
                    let bytes = [1_u8; 64];
                    // SAFETY: the name is a C string, and there are 64 bytes.
                    checked(unsafe {
                        program::pto_program_set_constant(made, name, bytes.as_ptr().cast(), 64)
                    });
                }
                _ => (),
            }
        }
        let mut loaded = null_mut();
        // SAFETY: the result pointer is valid for writes.
        let status = unsafe { program::pto_program_load(session.raw(), made, &raw mut loaded) };
        if Self::check(status, &[&session]) == 0 {
            self.run_loaded(&stream, loaded, &described, &mut random);
            checked(program::pto_loaded_program_release(loaded));
            checked(program::pto_loaded_program_release(loaded));
        }
        checked(program::pto_program_destroy(made));
        checked(program::pto_program_destroy(made));
    }

    fn run_loaded(
        &self,
        stream: &ChosenHandle,
        loaded: *mut program::OpaqueLoadedProgram,
        described: &[TensorDescription],
        random: &mut Mutator,
    ) {
        let mut tensors = Vec::new();
        for one in described {
            let rank = u32::try_from(one.rank).unwrap_or(0);
            let mut shape = one.shape;
            if random.below(16) == 0 {
                shape[0] = random.edge();
            }
            let mut made = null_mut();
            // SAFETY: every pointer is valid.
            let status = unsafe {
                tensor::pto_tensor_zeros(
                    stream.raw(),
                    one.element.as_ptr(),
                    shape.as_ptr(),
                    rank,
                    one.layout.text.as_ptr(),
                    &raw mut made,
                )
            };
            checked(status);
            let name = if random.below(16) == 0 { c"?".as_ptr() } else { one.name.as_ptr() };
            let is_given = u32::from(random.below(3) == 0);
            tensors.push(ProgramTensor { name, tensor: made, is_given, reserved: 0 });
        }
        if random.below(8) == 0 {
            let again = tensors.first().copied();
            tensors.extend(again);
        }
        let number =
            |name: *const c_char, integer| ProgramNumber { name, kind: 0, real: 0.0, integer };
        let numbers = [number(c"batch".as_ptr(), random.edge()), number(null(), 1)];
        let number_count = random.one_of(&[0, 0, 0, 1, 2]);
        let name = described.last().map_or(null(), |one| one.name.as_ptr());
        let mut outputs = [ProgramOutput { name, tensor: null_mut() }];
        let output_count = random.one_of(&[0, 1]);
        let count = count_of(&tensors);
        // SAFETY: there are as many of each as is said, and the texts live.
        let status = unsafe {
            program_run::pto_program_run(
                stream.raw(),
                loaded,
                tensors.as_ptr(),
                count,
                numbers.as_ptr(),
                number_count,
                outputs.as_mut_ptr(),
                output_count,
            )
        };
        checked(status);
        checked(pto_program_stream_synchronize(stream.raw(), MOMENT_NS));
        for one in &tensors {
            checked(tensor::pto_tensor_release(one.tensor));
        }
        if !outputs[0].tensor.is_null() {
            self.tensors
                .put(Handle::new(outputs[0].tensor, |raw| tensor::pto_tensor_release(to(raw))));
        }
    }
}

fn changed(files: &[&[u8]], random: &mut Mutator) -> Vec<u8> {
    let (file, other) = (random.one_of(files), random.one_of(files));
    if random.below(2) == 0 { file.to_vec() } else { random.mutate(file, other) }
}

fn of_file(random: &mut Mutator, made: &mut *mut program::OpaqueProgram) -> i32 {
    let mut file = changed(PROGRAMS, random);
    if random.below(4) > 0 {
        pto_host::workloads::program::seal(&mut file);
    }
    let thread = format!("{:?}", std::thread::current().id());
    let path = std::env::temp_dir().join(format!("pto-fuzz-{}-{thread}.ptop", std::process::id()));
    std::fs::write(&path, &file).expect("a file is written");
    let name = text(path.as_os_str().as_encoded_bytes());
    // SAFETY: it is a text, and the result pointer is valid for writes.
    let status = unsafe { program::pto_program_read(name.as_ptr(), made) };
    std::fs::remove_file(&path).unwrap_or_default();
    status
}

/// A program of tasks of the library.
fn of_tasks(random: &mut Mutator, made: &mut *mut program::OpaqueProgram) -> i32 {
    let shape = [random.one_of(&[16, 64, 64, 1, 0, u64::MAX]), 4];
    let tensor = |name: &'static std::ffi::CStr, role: &'static std::ffi::CStr| ProgramTensorSpec {
        name: name.as_ptr(),
        role: role.as_ptr(),
        element: c"f32".as_ptr(),
        layout: c"row-major".as_ptr(),
        shape: shape.as_ptr(),
        rank: 2,
        reserved: 0,
    };
    let tensors = [tensor(c"x", c"input"), tensor(c"y", c"output"), tensor(c"z", c"temporary")];
    let mut calls = Vec::new();
    for _ in 0..random.below(5) {
        let (kernel, words) = words::call(Block { at: 4096, bytes: 4096 }, random);
        let args: Vec<_> = words
            .iter()
            .enumerate()
            .map(|(at, word)| match kernel.addresses.get(at) {
                Some(true) => ProgramArgument {
                    tensor: random.small(4),
                    reserved: 0,
                    value: random.one_of(&[0, 0, 4, 1, 64, u64::MAX]),
                },
                _ => ProgramArgument {
                    tensor: program_tasks::PTO_PROGRAM_WORD,
                    reserved: 0,
                    value: *word,
                },
            })
            .collect();
        calls.push((
            text(kernel.name.as_bytes()),
            args,
            u32::from(kernel.kind.get()),
            random.small(3),
        ));
    }
    let after = [0_u32, 1, u32::MAX];
    let tasks: Vec<_> = calls
        .iter()
        .map(|(kernel, args, kind, after_count)| ProgramTask {
            kernel: kernel.as_ptr(),
            args: args.as_ptr(),
            after: after.as_ptr(),
            arg_count: count_of(args),
            after_count: *after_count,
            kind: *kind,
            reserved: 0,
        })
        .collect();
    let (tensor_count, count) = (count_of(&tensors), count_of(&tasks));
    // SAFETY: there are as many of each as is said, and the texts live.
    unsafe {
        program_tasks::pto_program_of_tasks(
            c"tasks".as_ptr(),
            tensors.as_ptr(),
            tensor_count,
            tasks.as_ptr(),
            count,
            made,
        )
    }
}
