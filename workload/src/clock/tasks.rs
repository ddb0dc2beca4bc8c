//! Runs tasks: binds views and scalars, and lets the tile machine work.

use crate::tree::{Dispatch, Index, SLOTS, Task, TaskArgument, TensorSlice, TreeNode, Workload};
use pto_aicore_kernels::tile::element::{Element, bits_of};
use pto_aicore_kernels::tile::{Call, DType, Interpreter, ParamKind, TileType, TileView};

use super::bindings::{Bindings, BoundTensor};
use super::eval::Inputs;
use super::foreign;
use super::issue::{Issue, WindowFull};
use super::loop_scope::LoopScope;
use super::report::{RunError, TaskTime};

/// What a task came to.
pub(super) struct TaskCost {
    /// The cycles that the kernel reports.
    pub(super) cycles: u64,
    /// The axes.
    pub(super) axes: Vec<i64>,
    /// All arguments as one list: axes, rows and columns that count of each tensor, scalars.
    arguments: Vec<i64>,
}

/// Runs tasks.
pub(super) struct Runner<'a> {
    workload: &'a Workload,
    inputs: Inputs<'a>,
    tensors: Vec<BoundTensor<'a>>,
    machine: Interpreter,
    scratch: Vec<u64>,
    observer: &'a mut dyn FnMut(TaskTime),
    tasks: u64,
    /// More than these are refused.
    most_tasks: u64,
}

impl<'a> Runner<'a> {
    pub(super) fn new(
        workload: &'a Workload,
        bindings: &'a Bindings<'a>,
        most_tasks: u64,
        observer: &'a mut dyn FnMut(TaskTime),
    ) -> Result<Self, RunError> {
        let words = workload.kernels.iter().map(|kernel| kernel.code().scratch_words()).max();
        Ok(Self {
            workload,
            inputs: Inputs { bindings, slots: [0; SLOTS] },
            tensors: bindings.bound(workload)?,
            machine: Interpreter::new(),
            scratch: vec![0; words.unwrap_or(0)],
            observer,
            tasks: 0,
            most_tasks,
        })
    }

    pub(super) const fn workload(&self) -> &'a Workload {
        self.workload
    }

    pub(super) const fn inputs(&self) -> &Inputs<'a> {
        &self.inputs
    }

    pub(super) const fn tasks(&self) -> u64 {
        self.tasks
    }

    /// Runs a task and shows it.
    pub(super) fn show(
        &mut self,
        task: &Task,
        outcome: &TaskCost,
        lane: u64,
        [start, end]: [u64; 2],
    ) {
        let kernel = self.workload.kernels[task.kernel].name();
        (self.observer)(TaskTime { kernel, axes: &outcome.axes, lane, start, end });
    }

    /// Runs a task and issues it; returns when it ends.
    pub(super) fn dispatched(
        &mut self,
        task: &Task,
        scope: &LoopScope,
        issue: &mut Issue,
        ready: u64,
    ) -> Result<u64, RunError> {
        let outcome = self.run(task, scope)?;
        let key = match &self.workload.schedule.dispatch {
            Dispatch::RoundRobin | Dispatch::WorkSteal | Dispatch::Streams => issue.next_in_turn(),
            Dispatch::Affinity(key)
            | Dispatch::Hash(key)
            | Dispatch::By(key)
            | Dispatch::Stream(key) => self.inputs.eval(key, scope, &outcome.arguments)?.bits(),
        };
        let issued = issue.issue(outcome.cycles, key, ready);
        let (lane, start, end) = issued
            .map_err(|WindowFull(tasks)| RunError::WindowFull { scope: scope.clone(), tasks })?;
        self.show(task, &outcome, lane, [start, end]);
        Ok(end)
    }

    /// Runs a task.
    pub(super) fn run(&mut self, task: &Task, scope: &LoopScope) -> Result<TaskCost, RunError> {
        if self.tasks == self.most_tasks {
            let (least, most) = (self.tasks.saturating_add(1), self.most_tasks);
            return Err(RunError::Tasks { least, most });
        }
        let kernel = &self.workload.kernels[task.kernel];
        let (mut views, mut scalars) = (Vec::new(), Vec::new());
        for (param, argument) in kernel.params().iter().zip(&task.arguments) {
            let named = |error: RunError| error.of_operand(kernel.name(), param.name);
            match (param.kind, argument) {
                (ParamKind::Tensor { tile, .. }, TaskArgument::View(view)) => {
                    views.push(self.view(tile, view, scope).map_err(named)?);
                }
                (ParamKind::Scalar(dtype), argument) => {
                    scalars.push(self.scalar(dtype, argument, scope).map_err(named)?);
                }
                // The workload was checked.
                (ParamKind::Tensor { .. }, _) => {}
            }
        }
        let axes = task.axes.iter().map(|axis| self.inputs.integer(axis, scope));
        let axes: Vec<i64> = axes.collect::<Result<_, _>>()?;
        let counted = views.iter().flat_map(|view| view.extents().map(i64::from));
        let of_scalars = scalars.iter().map(|bits| bits.cast_signed());
        let arguments: Vec<i64> = axes.iter().copied().chain(counted).chain(of_scalars).collect();
        let cycles = match self.inputs.bindings.find_foreign(kernel.name()) {
            Some(body) => foreign::run(body, (kernel, axes.len()), (&views, &arguments), scope)?,
            None => {
                let call = Call { tensors: &views, scalars: &scalars };
                let result = self.machine.run(kernel.code(), &call, &mut self.scratch);
                result.map_err(|fault| RunError::Fault {
                    scope: scope.clone(),
                    fault: Box::new(fault),
                })?
            }
        };
        self.tasks += 1;
        Ok(TaskCost { cycles, axes, arguments })
    }

    /// A scalar argument: the bits of an element of the parameter's type.
    fn scalar(
        &self,
        dtype: DType,
        argument: &TaskArgument,
        scope: &LoopScope,
    ) -> Result<u64, RunError> {
        use super::eval::ScalarValue;
        Ok(match argument {
            TaskArgument::Expr(expr) => match self.inputs.eval(expr, scope, &[])? {
                ScalarValue::Int(value) => bits_of(dtype, value),
                value => bits_of(dtype, value.bits()),
            },
            TaskArgument::Number(value) => bits_of(dtype, *value),
            TaskArgument::Symbol(name) => {
                let bits = self.inputs.bindings.find_symbol(name)?;
                bits_of(dtype, <f32 as Element>::from_bits(bits))
            }
            TaskArgument::View(_) => 0,
        })
    }

    /// The tile that a view is.
    fn view(
        &self,
        tile: TileType,
        view: &TensorSlice,
        scope: &LoopScope,
    ) -> Result<TileView<'a>, RunError> {
        let (tensor, bound) = (&self.workload.tensors[view.tensor], &self.tensors[view.tensor]);
        let mut first = bound.first;
        let mut counted = [tile.rows, tile.cols];
        let free: Vec<usize> = view.free(tensor.shape.len()).collect();
        // Which of rows and columns each dimension that stays is.
        let sides: &[usize] = match free.len() {
            0 => &[],
            1 if tile.rows != 1 => &[0],
            1 => &[1],
            _ => &[0, 1],
        };
        for (dimension, index) in view.indices.iter().enumerate() {
            let stride = bound.strides[dimension];
            let start = match index {
                Index::At(at) => {
                    let start = self.inputs.integer(at, scope)?;
                    self.check_index(view, dimension, start, 1, scope)?;
                    start
                }
                Index::Range { start, length } => {
                    let start = self.inputs.integer(start, scope)?;
                    let length = self.inputs.integer(length, scope)?;
                    self.check_index(view, dimension, start, length, scope)?;
                    let left = i64::try_from(tensor.shape[dimension]).unwrap_or(i64::MAX) - start;
                    let side = free.iter().position(|free| *free == dimension);
                    let side = side.and_then(|number| sides.get(number)).copied().unwrap_or(1);
                    let most = i64::from(counted[side]);
                    counted[side] = u16::try_from(length.min(left).clamp(0, most)).unwrap_or(0);
                    start
                }
            };
            first = first.saturating_add(start.saturating_mul(stride));
        }
        let mut strides = [0, 0];
        for (dimension, side) in free.iter().zip(sides) {
            strides[*side] = bound.strides[*dimension];
        }
        Ok(TileView::new(bound.memory, first, strides, counted))
    }

    /// Whether a range of this many indices begins inside its dimension. An empty range may also begin at the end.
    fn check_index(
        &self,
        view: &TensorSlice,
        dimension: usize,
        start: i64,
        length: i64,
        scope: &LoopScope,
    ) -> Result<(), RunError> {
        let tensor = &self.workload.tensors[view.tensor];
        let extent = tensor.shape[dimension];
        let end = extent.saturating_add(u64::from(length <= 0));
        if u64::try_from(start).is_ok_and(|start| start < end) {
            return Ok(());
        }
        let message = format!(
            "the index of dimension {dimension} of {} is {start}, and the dimension has {extent} places.",
            tensor.name
        );
        Err(RunError::Expression { scope: scope.clone(), message })
    }

    /// Sets or loads a slot.
    pub(super) fn slot(&mut self, node: &TreeNode, scope: &LoopScope) -> Result<(), RunError> {
        let (slot, value) = match node {
            TreeNode::SlotSet { slot, value } => {
                (*slot, self.inputs.eval(value, scope, &[])?.bits())
            }
            TreeNode::SlotLoad { slot, view, row, col } => {
                let row = self.inputs.integer(row, scope)?;
                let col = self.inputs.integer(col, scope)?;
                (*slot, self.element(view, [row, col], scope)?)
            }
            _ => return Ok(()),
        };
        if let Some(found) = self.inputs.slots.get_mut(usize::from(slot)) {
            *found = value;
        }
        Ok(())
    }

    /// An element of a view, as an unsigned integer: floats truncate and saturate, signed integers keep their bits.
    fn element(
        &self,
        view: &TensorSlice,
        at: [i64; 2],
        scope: &LoopScope,
    ) -> Result<u64, RunError> {
        let tensor = &self.workload.tensors[view.tensor];
        let tile = TileType::tile(tensor.dtype, 1, 1);
        let free: Vec<usize> = view.free(tensor.shape.len()).collect();
        let sides = at.iter().skip(2 - free.len().min(2));
        let mut indices = view.indices.clone();
        let whole = || {
            let [start, length] = [0, i64::MAX].map(crate::tree::Expr::Int);
            Index::Range { start, length }
        };
        indices.resize_with(tensor.shape.len(), whole);
        for (dimension, at) in free.iter().zip(sides) {
            let index = indices[*dimension].element_at(crate::tree::Expr::Int(*at));
            indices[*dimension] = Index::At(index);
        }
        let single = TensorSlice { tensor: view.tensor, indices };
        let found = self.view(tile, &single, scope)?;
        found.first_as_u64(tensor.dtype).map_err(|cause| RunError::Expression {
            scope: scope.clone(),
            message: format!("the element of {}: {cause}", tensor.name),
        })
    }
}
