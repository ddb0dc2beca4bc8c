//! What a `Runtime` object holds: the graph that is being written, what is to be copied back and freed, the plugin.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pto_host::abi::limits::MAX_ARGS;
use pto_host::abi::{Fault, GmAddr};
use pto_host::graph::TaskSpec;

use crate::device::SharedDevice;
use crate::draft::{GraphDraft, checked};
use crate::failure::{Failure, FailureKind};
use crate::foreign::Alias;
use crate::foreign::object::{DeviceAlloc, MAX_PLUGIN_BYTES, MAX_TASKS, TaskView, TensorPair};
use crate::guard::Signal;
use crate::raw_access::Decoy;

/// The state of one `Runtime` object.
pub(super) struct State {
    pub(super) device: Arc<SharedDevice>,
    /// The addresses that sources see instead of the device's, if their accesses are watched.
    decoy: Option<Decoy>,
    inner: Mutex<MutableState>,
}

/// The part of the state that the functions of the object change.
#[derive(Default)]
pub(super) struct MutableState {
    pub(super) draft: GraphDraft,
    /// By task: producers that it waits for, and its consumers.
    fanin: Vec<c_int>,
    fanout: Vec<Vec<c_int>>,
    /// Tasks that a source has asked for; they stay where they are.
    views: BTreeMap<u32, Box<TaskView>>,
    pub(super) pairs: Vec<TensorPair>,
    pub(super) allocs: Vec<DeviceAlloc>,
    /// Memory that was allocated through `host_api` and not freed.
    pub(super) live: BTreeSet<u64>,
    pub(super) plugin: Vec<u8>,
    /// The first call that failed and cannot be undone.
    pub(super) failure: Option<Failure>,
    /// The last call that failed at all.
    pub(super) last: Option<Failure>,
    alias: Alias,
}

// SAFETY: the pointers in it are addresses that sources gave; only the owner of the runtime uses them,
// when the runtime is finalised.
unsafe impl Send for MutableState {}

impl State {
    pub(super) fn new(device: Arc<SharedDevice>, decoy: Option<Decoy>) -> Self {
        let alias = decoy.as_ref().map(Decoy::alias).unwrap_or_default();
        Self { device, decoy, inner: Mutex::new(MutableState { alias, ..MutableState::default() }) }
    }

    /// Which addresses sources see.
    pub(super) fn alias(&self) -> Alias {
        self.decoy.as_ref().map(Decoy::alias).unwrap_or_default()
    }

    /// What a signal of `name` was: raw access, or something else of this kind.
    pub(super) fn explain(
        &self,
        name: &str,
        signal: Signal,
        words: &[u64],
        kind: FailureKind,
    ) -> Failure {
        let memory = self.device.memory();
        let found = self.decoy.as_ref();
        let found = found.and_then(|decoy| decoy.explain(name, signal.address, words, memory));
        found.unwrap_or_else(|| Failure::new(kind, format!("{name} raised {}", signal.name())))
    }

    /// The device's address of a pointer that a source has.
    pub(super) fn address(&self, pointer: *mut c_void) -> GmAddr {
        GmAddr(self.alias().device(address(pointer).0))
    }

    pub(super) fn inner(&self) -> MutexGuard<'_, MutableState> {
        // Every state that a panic could leave is a valid one.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MutableState {
    /// Remembers a failure that the whole fails with.
    pub(super) fn fail(&mut self, failure: Failure) {
        self.last = Some(failure.clone());
        self.failure.get_or_insert(failure);
    }

    pub(super) fn add_task(
        &mut self,
        args: &[u64],
        func_id: c_int,
        core_type: c_int,
    ) -> Result<c_int, Failure> {
        if self.draft.graph().task_count() >= MAX_TASKS {
            let message = format!("a Runtime has {MAX_TASKS} tasks at most (RUNTIME_MAX_TASKS)");
            return Err(Failure::of_fault(Fault::BUILD_TASKS_FULL, message));
        }
        let (func_id, kind) = checked(func_id.into(), core_type.into())?;
        let args: Vec<_> = args.iter().map(|word| self.alias.device(*word)).collect();
        let task = TaskSpec { func_id, kind, args: &args, kernel: GmAddr::NULL };
        let id = self.draft.add_task(task)?;
        self.fanin.push(0);
        self.fanout.push(Vec::new());
        // MAX_TASKS is far below the sign.
        Ok(c_int::try_from(id).unwrap_or(c_int::MAX))
    }

    pub(super) fn add_edge(&mut self, from: c_int, to: c_int) -> Result<(), Failure> {
        self.draft.add_edge(from.into(), to.into())?;
        let (producer, consumer) = (self.draft.number(from.into())?, self.draft.number(to.into())?);
        self.fanin[consumer as usize] += 1;
        self.fanout[producer as usize].push(to);
        self.refresh(producer);
        self.refresh(consumer);
        Ok(())
    }

    /// The task as `get_task` shows it.
    pub(super) fn view(&mut self, id: c_int) -> Option<*mut TaskView> {
        let number = self.draft.number(id.into()).ok()?;
        if !self.views.contains_key(&number) {
            let task = self.draft.graph().spec(number).ok()?;
            let words = task.args;
            let mut args = [0; MAX_ARGS];
            for (to, word) in args.iter_mut().zip(words) {
                *to = self.alias.seen(*word);
            }
            let view = TaskView {
                task_id: id,
                func_id: task.func_id.0.into(),
                args,
                num_args: c_int::try_from(words.len()).unwrap_or(0),
                reserved: 0,
                function_bin_addr: task.kernel.0,
                core_type: task.kind.get().into(),
                fanin: 0,
                fanout: std::ptr::null(),
                fanout_count: 0,
                published: 0,
                completed: 0,
                reserved2: 0,
                start_time: 0,
                end_time: 0,
            };
            self.views.insert(number, Box::new(view));
            self.refresh(number);
        }
        self.views.get_mut(&number).map(|view| &raw mut **view)
    }

    fn refresh(&mut self, task: u32) {
        let Some(view) = self.views.get_mut(&task) else { return };
        let fanout = &self.fanout[task as usize];
        view.fanin = self.fanin[task as usize];
        view.fanout = fanout.as_ptr();
        view.fanout_count = c_int::try_from(fanout.len()).unwrap_or(c_int::MAX);
    }

    /// Takes over what sources have written into tasks.
    pub(super) fn take_views(&mut self) -> Result<(), Failure> {
        for (number, view) in &self.views {
            let (func_id, kind) = checked(view.func_id.into(), view.core_type.into())?;
            let count = usize::try_from(view.num_args).ok().filter(|count| *count <= MAX_ARGS);
            let args = count.and_then(|count| view.args.get(..count)).ok_or_else(|| {
                let message = format!("task {number}: num_args is {}", view.num_args);
                Failure::of_fault(Fault::BUILD_TOO_MANY_ARGS, message)
            })?;
            let args: Vec<_> = args.iter().map(|word| self.alias.device(*word)).collect();
            let args = args.as_slice();
            let kernel = GmAddr(view.function_bin_addr);
            self.draft.replace(*number, TaskSpec { func_id, kind, args, kernel })?;
        }
        Ok(())
    }

    /// Ids of the tasks that wait for none.
    pub(super) fn ready(&self) -> impl Iterator<Item = c_int> {
        let tasks = (0..).zip(&self.fanin);
        tasks.filter(|(_, fanin)| **fanin == 0).map(|(id, _)| id)
    }

    /// The graph as text.
    pub(super) fn describe(&self) -> String {
        let mut text = format!(
            "Runtime: {} tasks, {} edges, {} ready at the start\n",
            self.draft.graph().task_count(),
            self.draft.graph().edges().len(),
            self.ready().count()
        );
        let specs = (0..).map_while(|number| self.draft.graph().spec(number).ok());
        for (id, task) in specs.enumerate() {
            let args: Vec<_> = task.args.iter().map(|word| format!("{word:#x}")).collect();
            text += &format!(
                "  task {id}: func {} on {}, args [{}], fanin {}, fanout {:?}\n",
                task.func_id,
                task.kind,
                args.join(", "),
                self.fanin[id],
                self.fanout[id]
            );
        }
        text
    }

    pub(super) fn set_plugin(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.plugin.clear();
        if bytes.len() > MAX_PLUGIN_BYTES {
            let message = format!(
                "the AICPU builder plugin has {} bytes, and the limit is {MAX_PLUGIN_BYTES}",
                bytes.len()
            );
            return Err(Failure::new(FailureKind::PLUGIN_TOO_LARGE, message));
        }
        if bytes.is_empty() {
            let message = "the AICPU builder plugin that was embedded has no bytes";
            return Err(Failure::new(FailureKind::PLUGIN_MISSING, message));
        }
        self.plugin.extend_from_slice(bytes);
        Ok(())
    }

    /// Copies back what was recorded and frees everything; gives the first failure.
    ///
    /// # Safety
    /// The host buffers that sources have recorded are still there.
    pub(super) unsafe fn finalize(&mut self, device: &SharedDevice) -> Result<(), Failure> {
        let memory = device.memory();
        let mut result = Ok(());
        for pair in std::mem::take(&mut self.pairs) {
            // SAFETY: the source says that the host buffer has as many bytes, and the caller that it is there.
            let to =
                unsafe { std::slice::from_raw_parts_mut(pair.host_ptr.cast::<u8>(), pair.size) };
            let from = GmAddr(self.alias.device(address(pair.dev_ptr).0));
            let copied = memory.copy_from_device(from, to);
            result = result.and(copied.map_err(Failure::from));
            self.live.insert(from.0);
        }
        // A buffer may have been recorded as a pair, as an allocation, and allocated through `host_api`.
        let alias = self.alias;
        self.live.extend(self.allocs.drain(..).map(|alloc| alias.device(address(alloc.dev_ptr).0)));
        for address in std::mem::take(&mut self.live) {
            let freed = memory.free(GmAddr(address));
            result = result.and(freed.map_err(Failure::from));
        }
        result
    }
}

/// The address that a pointer is.
pub(super) fn address(pointer: *mut c_void) -> GmAddr {
    GmAddr(pointer.addr() as u64)
}
