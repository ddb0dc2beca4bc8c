//! Calls of the C interface in any order, with handles that are open, closed, null or of another kind, and with numbers at
//! their edges. Pointers are valid or null: that is what a caller of C vouches for.
//!
//! No call may panic inside the library, which would say PANIC. Kernels of the library are not registered: a device does
//! not protect memory from kernels, and the words here are wild.

use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};

use pto_runtime::device::{self, DeviceDescription, DeviceOptions, OpaqueDevice};
use pto_runtime::graph::{self, OpaqueGraph};
use pto_runtime::kernel;
use pto_runtime::options::{self, OpaqueControl, RunOptions, RunReport};
use pto_runtime::{error, memory, run};

use crate::choices::Choices;

/// The most calls of one input.
const MOST_CALLS: usize = 200;
/// The most devices open at once.
const MOST_DEVICES: usize = 3;

/// What a caller of this version writes into `pto_device_options.size`.
#[expect(clippy::cast_possible_truncation, reason = "a few dozen bytes")]
pub(super) const SIZE_OF_OPTIONS: u32 = size_of::<DeviceOptions>() as u32;

/// The length of a short list.
pub(super) fn count_of<T>(list: &[T]) -> u32 {
    u32::try_from(list.len()).unwrap_or(0)
}

/// Fails when the library met an error of its own. Gives the status.
pub(super) fn checked(status: i32) -> i32 {
    let name = error::pto_error_name(status);
    // SAFETY: the names of errors are texts that stay.
    let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) });
    assert!(name != Some(c"PANIC"), "the library panicked");
    status
}

/// Does nothing with unchecked words.
pub(super) unsafe extern "C" fn nothing(_: *mut i64) {}

/// Handles that a sequence opened, closed ones as well.
struct Handles<T>(Vec<*mut T>);

impl<T> Handles<T> {
    /// Mostly the last one; sometimes an older one, null, or a number that was never a handle.
    fn any(&self, choices: &mut Choices<'_>) -> *mut T {
        match choices.byte() {
            250.. => null_mut(),
            245..=249 => std::ptr::without_provenance_mut(16 * usize::from(choices.byte())),
            older @ 200..=244 if !self.0.is_empty() => self.0[usize::from(older) % self.0.len()],
            _ => self.0.last().copied().unwrap_or(null_mut()),
        }
    }
}

struct Player<'a> {
    choices: Choices<'a>,
    devices: Handles<OpaqueDevice>,
    graphs: Handles<OpaqueGraph>,
    controls: Handles<OpaqueControl>,
    open_devices: usize,
    addresses: Vec<u64>,
}

/// Plays the calls.
pub(super) fn play(bytes: &[u8]) {
    let mut player = Player {
        choices: Choices::new(bytes),
        devices: Handles(Vec::new()),
        graphs: Handles(Vec::new()),
        controls: Handles(Vec::new()),
        open_devices: 0,
        addresses: vec![0],
    };
    for _ in 0..MOST_CALLS {
        if player.choices.is_empty() {
            break;
        }
        player.call();
    }
    player.close_all();
}

impl Player<'_> {
    fn call(&mut self) {
        match self.choices.byte() % 16 {
            0 => self.open(),
            1 => self.close(),
            2 => self.describe(),
            3 => self.malloc(),
            4 => self.free(),
            5 => self.copy(),
            6 => self.register(),
            7 => self.register_object(),
            8 => self.unregister(),
            9 => self.new_graph(),
            10 => self.destroy_graph(),
            11 => self.add_task(),
            12 => self.add_edge(),
            13 => self.size(),
            14 => self.control(),
            _ => self.run(),
        }
    }

    fn open(&mut self) {
        if self.open_devices == MOST_DEVICES {
            return;
        }
        let choices = &mut self.choices;
        let options = DeviceOptions {
            size: SIZE_OF_OPTIONS + u32::from(choices.byte() == 255),
            aic: u32::from(choices.byte() % 8),
            aiv: choices.word() % 300,
            hosting: choices.word() % 3,
            os_threads: u32::from(choices.byte() % 4),
            aicpu: choices.word(),
            gm_bytes: choices.one_of(&[64 << 20, 64 << 20, 1 << 20, 0, 4097, u64::MAX, 1 << 63]),
        };
        let name: *const c_char =
            choices.one_of(&[c"a2a3sim", c"a2a3sim", c"a2a3sim", c"a2a3", c"\xFF"]).as_ptr();
        let mut device = null_mut();
        // SAFETY: every pointer is valid.
        let status =
            checked(unsafe { device::pto_device_open(name, &raw const options, &raw mut device) });
        if status == 0 {
            self.devices.0.push(device);
            self.open_devices += 1;
        }
    }

    fn close(&mut self) {
        let device = self.devices.any(&mut self.choices);
        if checked(device::pto_device_close(device)) == 0 {
            self.open_devices -= 1;
        }
    }

    fn describe(&mut self) {
        let mut description = MaybeUninit::<DeviceDescription>::uninit();
        let device = self.devices.any(&mut self.choices);
        // SAFETY: the result pointer is valid for writes.
        checked(unsafe { device::pto_device_describe(device, description.as_mut_ptr()) });
    }

    fn malloc(&mut self) {
        let (device, bytes) = (self.devices.any(&mut self.choices), self.choices.number());
        let mut address = 0;
        // SAFETY: the result pointer is valid for writes.
        if checked(unsafe { memory::pto_device_malloc(device, bytes, &raw mut address) }) == 0 {
            self.addresses.push(address);
        }
    }

    /// An address that was given out, or one near it.
    fn address(&mut self) -> u64 {
        let held = self.addresses[usize::from(self.choices.byte()) % self.addresses.len()];
        if self.choices.byte() < 200 { held } else { held.wrapping_add(self.choices.number()) }
    }

    fn free(&mut self) {
        let (device, address) = (self.devices.any(&mut self.choices), self.address());
        checked(memory::pto_device_free(device, address));
    }

    fn copy(&mut self) {
        let (device, address) = (self.devices.any(&mut self.choices), self.address());
        let mut bytes = [7_u8; 256];
        let count = u64::from(self.choices.byte());
        let buffer = if self.choices.byte() == 0 { null_mut() } else { bytes.as_mut_ptr().cast() };
        // SAFETY: the pointer is null, or has room for what is copied.
        checked(unsafe { memory::pto_copy_to_device(device, address, buffer, count) });
        // SAFETY: the pointer is null, or has room for what is copied.
        checked(unsafe { memory::pto_copy_from_device(device, buffer, address, count) });
    }

    fn register(&mut self) {
        let device = self.devices.any(&mut self.choices);
        let func_id = self.choices.signed();
        let core_type = i32::from(self.choices.byte() % 4) - 1;
        let entry = if self.choices.byte() == 0 {
            None
        } else {
            Some(nothing as unsafe extern "C" fn(*mut i64))
        };
        // SAFETY: the name is a text, and the function takes any words.
        checked(unsafe {
            kernel::pto_register_kernel_function(
                device,
                func_id,
                core_type,
                c"nothing".as_ptr(),
                entry,
            )
        });
    }

    /// An object that is none: what the linker gets to see is no code of anybody.
    fn register_object(&mut self) {
        let device = self.devices.any(&mut self.choices);
        let bytes: Vec<u8> = (0..self.choices.byte()).map(|_| self.choices.byte()).collect();
        // SAFETY: the object has so many bytes, and the names are texts.
        checked(unsafe {
            let (object, count) = (bytes.as_ptr().cast(), bytes.len() as u64);
            kernel::pto_register_kernel_object(device, 1, 1, c"o".as_ptr(), object, count, null())
        });
    }

    fn unregister(&mut self) {
        let (device, func_id) = (self.devices.any(&mut self.choices), self.choices.signed());
        checked(kernel::pto_unregister_kernel(device, func_id));
    }

    fn new_graph(&mut self) {
        let mut graph = null_mut();
        // SAFETY: the result pointer is valid for writes.
        checked(unsafe { graph::pto_graph_create(&raw mut graph) });
        self.graphs.0.push(graph);
    }

    fn destroy_graph(&mut self) {
        checked(graph::pto_graph_destroy(self.graphs.any(&mut self.choices)));
    }

    fn add_task(&mut self) {
        let graph = self.graphs.any(&mut self.choices);
        let (func_id, core_type) = (self.choices.signed(), i32::from(self.choices.byte() % 4) - 1);
        let args: Vec<u64> = (0..self.choices.byte()).map(|_| self.choices.number()).collect();
        let mut task = 0;
        let count = count_of(&args);
        // SAFETY: the arguments are there, and the result pointer is valid for writes.
        checked(unsafe {
            graph::pto_graph_add_task(
                graph,
                func_id,
                core_type,
                args.as_ptr(),
                count,
                &raw mut task,
            )
        });
    }

    fn add_edge(&mut self) {
        let graph = self.graphs.any(&mut self.choices);
        checked(graph::pto_graph_add_edge(graph, self.choices.signed(), self.choices.signed()));
    }

    fn size(&mut self) {
        let (mut tasks, mut edges) = (0, 0);
        let graph = self.graphs.any(&mut self.choices);
        // SAFETY: the result pointers are valid for writes.
        checked(unsafe { graph::pto_graph_size(graph, &raw mut tasks, &raw mut edges) });
    }

    fn control(&mut self) {
        match self.choices.byte() % 3 {
            0 => {
                let mut control = null_mut();
                // SAFETY: the result pointer is valid for writes.
                checked(unsafe { options::pto_control_create(&raw mut control) });
                self.controls.0.push(control);
            }
            1 => {
                checked(options::pto_control_cancel(self.controls.any(&mut self.choices)));
            }
            _ => {
                checked(options::pto_control_destroy(self.controls.any(&mut self.choices)));
            }
        }
    }

    fn run(&mut self) {
        let (device, graph) =
            (self.devices.any(&mut self.choices), self.graphs.any(&mut self.choices));
        let mut options = RunOptions { run_budget_ns: 200_000_000, ..RunOptions::default() };
        for _ in 0..self.choices.byte() % 4 {
            self.spoil(&mut options);
        }
        let mut report = MaybeUninit::<RunReport>::uninit();
        // SAFETY: the options are valid, and the result pointer is valid for writes.
        checked(unsafe {
            run::pto_run_graph(device, graph, &raw const options, report.as_mut_ptr())
        });
    }

    /// Gives an option any value.
    fn spoil(&mut self, options: &mut RunOptions) {
        let choices = &mut self.choices;
        match choices.byte() % 12 {
            0 => options.build_mode = choices.word(),
            1 => options.fanout = choices.word(),
            2 => options.aicpu_instances = choices.word(),
            3 => options.tasks = choices.word(),
            4 => options.arg_words = choices.number(),
            5 => options.edges = choices.number(),
            6 => options.task_budget_ns = choices.number(),
            7 => options.stall_budget_ns = choices.number(),
            8 => options.window = choices.word(),
            9 => options.heap_bytes = choices.number(),
            10 => options.map_entries = choices.word(),
            _ => options.control = self.controls.any(choices),
        }
    }

    /// What is still open is closed, so that inputs do not pile up devices.
    fn close_all(&mut self) {
        for device in &self.devices.0 {
            checked(device::pto_device_close(*device));
        }
        for graph in &self.graphs.0 {
            checked(graph::pto_graph_destroy(*graph));
        }
        for control in &self.controls.0 {
            checked(options::pto_control_destroy(*control));
        }
    }
}
