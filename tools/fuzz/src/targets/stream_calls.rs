//! Calls that a builder program in C makes while the device runs it: tasks, tensors, scopes, elements, edges, records of
//! unchecked numbers. The run may end with a fault, and the device runs the next input.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::{null, null_mut};

use pto_host::abi::GmAddr;
use pto_host::abi::foreign::{StreamArg, StreamRecording, StreamScope, StreamTask, StreamTensor};
use pto_runtime::builder::{self, OpaqueBuilder};
use pto_runtime::device::{self, DeviceOptions, OpaqueDevice};
use pto_runtime::options::RunOptions;
use pto_runtime::{kernel, memory, run, stream};

use super::c_calls::{SIZE_OF_OPTIONS, checked, count_of, nothing};
use crate::choices::Choices;

/// The most calls of one input.
const MOST_CALLS: usize = 200;
/// Bytes of the tensor that the programs work on.
const BYTES: u64 = 4096;

/// What a caller of this version writes into `pto_stream_task.struct_size`.
#[expect(clippy::cast_possible_truncation, reason = "a few dozen bytes")]
const SIZE_OF_TASK: u32 = size_of::<StreamTask>() as u32;

/// A device with one kernel that does nothing, and one tensor.
#[derive(Clone, Copy)]
struct TestDevice {
    device: *mut OpaqueDevice,
    base: u64,
}

thread_local! {
    /// Opened at the first input.
    static DEVICE: Cell<Option<TestDevice>> = const { Cell::new(None) };
}

/// Runs a program that makes the calls of `bytes`.
pub(super) fn play(bytes: &[u8]) {
    let target = DEVICE.get().unwrap_or_else(open);
    DEVICE.set(Some(target));
    let mut options = RunOptions { run_budget_ns: 500_000_000, ..RunOptions::default() };
    options.build_mode = bytes.first().map_or(0, |byte| u32::from(byte % 2));
    let call = Call { bytes, base: target.base };
    // SAFETY: the program gets the call, which lives here until the run has ended.
    checked(unsafe {
        let user = (&raw const call).cast_mut().cast();
        builder::pto_register_builder(target.device, c"input".as_ptr(), Some(program), user)
    });
    // SAFETY: the name is a text, and the options are valid.
    checked(unsafe {
        run::pto_run_stream(
            target.device,
            c"input".as_ptr(),
            null(),
            0,
            &raw const options,
            null_mut(),
        )
    });
    // SAFETY: the name is a text.
    checked(unsafe { builder::pto_unregister_builder(target.device, c"input".as_ptr()) });
}

fn open() -> TestDevice {
    let options = DeviceOptions {
        size: SIZE_OF_OPTIONS,
        aic: 2,
        aiv: 4,
        hosting: 0,
        os_threads: 1,
        aicpu: 2,
        gm_bytes: 1 << 30,
    };
    let (mut device, mut base) = (null_mut(), 0);
    // SAFETY: every pointer is valid.
    let opened = unsafe {
        device::pto_device_open(c"a2a3sim".as_ptr(), &raw const options, &raw mut device)
    };
    assert!(checked(opened) == 0, "the device does not open");
    for core_type in 0..2 {
        let entry = Some(nothing as unsafe extern "C" fn(*mut i64));
        // SAFETY: the name is a text, and the function takes any words.
        checked(unsafe {
            kernel::pto_register_kernel_function(
                device,
                core_type,
                core_type,
                c"nothing".as_ptr(),
                entry,
            )
        });
    }
    // SAFETY: the result pointer is valid for writes.
    checked(unsafe { memory::pto_device_malloc(device, BYTES, &raw mut base) });
    TestDevice { device, base }
}

/// What the program gets.
struct Call<'a> {
    bytes: &'a [u8],
    base: u64,
}

unsafe extern "C" fn program(builder: *mut OpaqueBuilder, user: *mut c_void) -> i32 {
    // SAFETY: `play` passes a pointer to a call, which is valid until the run has ended.
    let call = unsafe { &*user.cast::<Call<'_>>() };
    let whole = tensor(call.base);
    let mut program = Program {
        builder,
        choices: Choices::new(call.bytes.get(1..).unwrap_or_default()),
        tensors: vec![whole],
        scopes: Vec::new(),
        recording: StreamRecording::default(),
    };
    for _ in 0..MOST_CALLS {
        if program.choices.is_empty() || program.call() != 0 {
            break;
        }
    }
    0
}

/// The tensor of the device, all of it.
fn tensor(base: u64) -> StreamTensor {
    let mut whole =
        StreamTensor { base: GmAddr(base), bytes: BYTES, rank: 1, ..StreamTensor::default() };
    (whole.strides[0], whole.shape[0]) = (1, 64);
    whole
}

struct Program<'a> {
    builder: *mut OpaqueBuilder,
    choices: Choices<'a>,
    tensors: Vec<StreamTensor>,
    scopes: Vec<StreamScope>,
    recording: StreamRecording,
}

impl Program<'_> {
    fn call(&mut self) -> i32 {
        match self.choices.byte() % 12 {
            0..=2 => self.submit(),
            3 => self.open_scope(),
            4 => self.close_scope(),
            5 | 6 => self.alloc(),
            7 => self.get(),
            8 => self.set(),
            9 => self.add_edge(),
            10 => self.begin_recording(),
            _ => self.end_or_replay(),
        }
    }

    /// A tensor of before, one field in six of it with any value.
    fn tensor(&mut self) -> StreamTensor {
        let mut tensor = self.tensors[usize::from(self.choices.byte()) % self.tensors.len()];
        let choices = &mut self.choices;
        match choices.byte() {
            byte @ 0..=159 => tensor.offset = u64::from(byte % 4),
            160..=175 => tensor.offset = choices.number(),
            176..=191 => tensor.strides[usize::from(choices.byte() % 5)] = choices.number(),
            192..=207 => tensor.shape[usize::from(choices.byte() % 5)] = choices.word(),
            208..=219 => tensor.rank = choices.word(),
            220..=229 => tensor.element = choices.word(),
            230..=239 => tensor.bytes = choices.number(),
            240..=245 => tensor.heap_depth = choices.word(),
            246..=250 => tensor.heap_serial = choices.number(),
            _ => tensor.base = GmAddr(choices.number()),
        }
        tensor
    }

    fn args(&mut self) -> Vec<StreamArg> {
        let count = self.choices.byte() % 6;
        let arg = |program: &mut Self| StreamArg {
            kind: u32::from(program.choices.byte() % 7),
            scalar: program.choices.number(),
            tensor: program.tensor(),
            ..StreamArg::default()
        };
        (0..count).map(|_| arg(self)).collect()
    }

    fn task(&mut self) -> StreamTask {
        let mut task = StreamTask { struct_size: SIZE_OF_TASK, ..StreamTask::default() };
        let choices = &mut self.choices;
        (task.func_id, task.core_type) = choices.one_of(&[(0, 0), (1, 1), (1, 1), (7, 1), (1, 9)]);
        if choices.byte().is_multiple_of(4) {
            task.blocks = choices.word();
            task.start = choices.word() % 4;
            task.vector_count = choices.word() % 4;
            task.vectors = [choices.word() % 3, choices.word() % 3];
        }
        if choices.byte().is_multiple_of(4) {
            task.has_predicate = 1;
            task.comparison = choices.word() % 8;
            task.value = choices.number();
            task.index_rank = choices.word() % 7;
            task.element_of = self.tensor();
        }
        task
    }

    fn submit(&mut self) -> i32 {
        let (task, args) = (self.task(), self.args());
        let after: Vec<i64> =
            (0..self.choices.byte() % 3).map(|_| self.choices.signed().into()).collect();
        let (arg_count, after_count) = (count_of(&args), count_of(&after));
        let (args, after) = (args.as_ptr(), after.as_ptr());
        let mut number = 0;
        let target = &raw mut number;
        if !self.choices.byte().is_multiple_of(4) {
            // SAFETY: every pointer is valid for as many elements as are said.
            return checked(unsafe {
                stream::pto_builder_submit(
                    self.builder,
                    &raw const task,
                    args,
                    arg_count,
                    after,
                    after_count,
                    target,
                )
            });
        }
        // SAFETY: every pointer is valid for as many elements as are said.
        let added = checked(unsafe {
            stream::pto_builder_add_tensor_task(
                self.builder,
                &raw const task,
                args,
                arg_count,
                after,
                after_count,
                target,
            )
        });
        let task = i32::try_from(number).unwrap_or(i32::MAX);
        if added == 0 { checked(builder::pto_builder_publish(self.builder, task)) } else { added }
    }

    fn open_scope(&mut self) -> i32 {
        let mut scope = StreamScope::default();
        let mode = u32::from(self.choices.byte() % 3);
        // SAFETY: the result pointer is valid for writes.
        let status =
            checked(unsafe { stream::pto_builder_open_scope(self.builder, mode, &raw mut scope) });
        self.scopes.push(scope);
        status
    }

    fn close_scope(&mut self) -> i32 {
        let mut scope = self.scopes.pop().unwrap_or_default();
        if self.choices.byte() > 240 {
            (scope.depth, scope.serial) = (self.choices.word(), self.choices.number());
        }
        // SAFETY: the scope is valid.
        checked(unsafe { stream::pto_builder_close_scope(self.builder, &raw const scope) })
    }

    fn alloc(&mut self) -> i32 {
        let mut tensor = StreamTensor::default();
        let element = u32::from(self.choices.byte() % 14);
        let shape: Vec<u32> = (0..self.choices.byte() % 6).map(|_| self.choices.word()).collect();
        let rank = count_of(&shape);
        // SAFETY: the shape has `rank` extents, and the result pointer is valid for writes.
        let status = checked(unsafe {
            stream::pto_builder_alloc_tensor(
                self.builder,
                element,
                shape.as_ptr(),
                rank,
                &raw mut tensor,
            )
        });
        if status == 0 {
            self.tensors.push(tensor);
        }
        status
    }

    fn get(&mut self) -> i32 {
        let (tensor, index) = (self.tensor(), [self.choices.word(), self.choices.word()]);
        let (rank, mut word) = (u32::from(self.choices.byte() % 3), 0);
        // SAFETY: the index has two extents at least, and the result pointer is valid for writes.
        checked(unsafe {
            stream::pto_builder_get(
                self.builder,
                &raw const tensor,
                index.as_ptr(),
                rank,
                &raw mut word,
            )
        })
    }

    /// Writes to the device's own tensor only: what else is in GM is the run's own.
    fn set(&mut self) -> i32 {
        let (tensor, index) = (self.tensors[0], [self.choices.word(), self.choices.word()]);
        let (rank, word) = (u32::from(self.choices.byte() % 3), self.choices.number());
        // SAFETY: the index has two extents at least.
        checked(unsafe {
            stream::pto_builder_set(self.builder, &raw const tensor, index.as_ptr(), rank, word)
        })
    }

    fn add_edge(&mut self) -> i32 {
        let (producer, consumer) = (self.choices.signed(), self.choices.signed());
        checked(builder::pto_builder_add_edge(self.builder, producer, consumer))
    }

    fn begin_recording(&mut self) -> i32 {
        let shapes: Vec<_> = (0..self.choices.byte() % 4).map(|_| self.tensor()).collect();
        let mut bound = vec![StreamTensor::default(); shapes.len()];
        let count = count_of(&shapes);
        // SAFETY: there are `count` shapes, and as much room.
        let status = checked(unsafe {
            stream::pto_builder_begin_recording(
                self.builder,
                shapes.as_ptr(),
                count,
                bound.as_mut_ptr(),
            )
        });
        if status == 0 {
            self.tensors.extend(bound);
        }
        status
    }

    fn end_or_replay(&mut self) -> i32 {
        if self.choices.byte().is_multiple_of(2) {
            let recording = &raw mut self.recording;
            // SAFETY: the result pointer is valid for writes.
            return checked(unsafe { stream::pto_builder_end_recording(self.builder, recording) });
        }
        let mut recording = self.recording;
        if self.choices.byte() > 200 {
            (recording.at, recording.tasks, recording.run) =
                (self.choices.word(), self.choices.word(), self.choices.word());
        }
        let tensors: Vec<_> = (0..self.choices.byte() % 4).map(|_| self.tensor()).collect();
        let scalars: Vec<_> = (0..self.choices.byte() % 3).map(|_| self.choices.number()).collect();
        let (tensor_count, scalar_count) = (count_of(&tensors), count_of(&scalars));
        let (tensors, scalars) = (tensors.as_ptr(), scalars.as_ptr());
        // SAFETY: every pointer is valid for as many elements as are said.
        checked(unsafe {
            stream::pto_builder_replay(
                self.builder,
                &raw const recording,
                tensors,
                tensor_count,
                scalars,
                scalar_count,
            )
        })
    }
}
