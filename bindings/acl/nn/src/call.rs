//! The two calls of an operator: the first one checks the arguments and finds or makes a plan, the second one launches it.
//!
//! ```text
//! aclnnXGetWorkspaceSize(arguments.., outputs.., &size, &executor)   arguments -> key -> plan (kept) -> executor
//! aclnnX(workspace, size, executor, stream)                          executor -> words -> launch in the stream
//! ```
//! Plans are kept by operator, types, extents, strides and attributes. No operator needs a workspace.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use pto_operators::{
    LAUNCH_COST_WORD, LAUNCH_HEAD, LOST_FAULT, LaunchStatus, MOST_LAUNCH_TENSORS, run_launch,
};

use crate::device::{self, KernelEntry};
use crate::element::ElementType;
use crate::objects::{
    INTEGERS, ObjectTable, SCALARS, ScalarObject, TENSOR_LISTS, TENSORS, TensorObject,
    dense_strides, extent_of, put,
};
use crate::plan::{self, CompiledCall};
use crate::refusal::{Checked, INNER, INVALID, Rejection};
use crate::value::View;

/// Plans that are kept, at most. A plan beyond them is made for each call again.
const MOST_PLANS: usize = 1 << 16;

/// An operator of the library: a row of the table.
pub(crate) struct Row {
    /// Its name, and that of its first call.
    pub(crate) names: [&'static CStr; 2],
    /// The name of its kernel in timelines.
    pub(crate) kernel: &'static str,
    pub(crate) build: fn(&OperatorCall) -> Checked<CompiledCall>,
    /// Its kernel, once it is made.
    pub(crate) function: OnceLock<usize>,
}

/// A tensor of a call.
#[derive(Clone)]
pub(crate) struct TensorRef {
    pub(crate) name: &'static str,
    pub(crate) object: Arc<TensorObject>,
    pub(crate) element: ElementType,
    /// Its number among the tensors of the call.
    pub(crate) index: usize,
    /// The address of its first element, its lowest address, and how many bytes there are from there on.
    extent: (usize, usize, usize),
}

/// An argument.
pub(crate) enum Arg {
    Tensor(Option<TensorRef>),
    Tensors(Vec<TensorRef>),
    Scalar(Option<ScalarObject>),
    Integers(Option<Vec<i64>>),
    Integer(i64),
    Number(f64),
    Text(String),
}

/// Whether an output lies where an input lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alias {
    /// Nowhere.
    None,
    /// Element by element.
    Same,
    /// In another way.
    Partial,
}

/// An output by its name; `None`: it is left out.
pub(crate) type Output = (&'static str, Option<TensorRef>);

/// A call: its arguments and its outputs.
pub(crate) struct OperatorCall {
    /// The name of its function, without `GetWorkspaceSize`.
    pub(crate) operator: &'static str,
    args: Vec<(&'static str, Arg)>,
    outs: Vec<Output>,
    pub(crate) alias: Alias,
}

/// What the second call launches.
pub(crate) struct Executor {
    row: &'static Row,
    plan: Arc<CompiledCall>,
    is_kept: bool,
    addresses: Vec<u64>,
    operands: Vec<device::OperandBytes>,
}

static EXECUTORS: ObjectTable<Executor> = ObjectTable::new(5, "executor");

/// A parameter of a first call, as C passes it.
pub(crate) trait Parameter {
    /// The argument; `tensors` counts those of the call.
    ///
    /// # Safety
    /// A pointer to text is null, or ends with a zero.
    unsafe fn arg(self, name: &'static str, tensors: &mut usize) -> Checked<Arg>;
}

/// `aclTensor *`
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct T(pub(crate) usize);
/// `aclScalar *`
#[repr(transparent)]
pub(crate) struct S(usize);
/// `aclIntArray *`
#[repr(transparent)]
pub(crate) struct I(usize);
/// `aclTensorList *`
#[repr(transparent)]
pub(crate) struct L(usize);
/// `bool`
pub(crate) type B = u8;
/// `int64_t`
pub(crate) type N = i64;
/// `int32_t`, `aclDataType`
pub(crate) type W = i32;
/// `int8_t`
pub(crate) type C = i8;
/// `float`
pub(crate) type F = f32;
/// `double`
pub(crate) type D = f64;
/// `char *`
#[repr(transparent)]
pub(crate) struct X(*const c_char);

pub(crate) fn tensor(
    name: &'static str,
    handle: usize,
    tensors: &mut usize,
) -> Checked<Option<TensorRef>> {
    if handle == 0 {
        return Ok(None);
    }
    let object = Arc::clone(&*TENSORS.get(name, handle)?);
    let element = object.element(name)?;
    let extent = extent_of(&object)
        .ok_or_else(|| Rejection::invalid(name, "has more bytes than there are addresses"))?;
    if extent.2 > 0 && object.data == 0 {
        return Err(Rejection::new(
            crate::refusal::NULL_POINTER,
            format!("{name} has null data; give memory of the device"),
        ));
    }
    let index = *tensors;
    *tensors += 1;
    Ok(Some(TensorRef { name, object, element, index, extent }))
}

impl Parameter for T {
    unsafe fn arg(self, name: &'static str, tensors: &mut usize) -> Checked<Arg> {
        tensor(name, self.0, tensors).map(Arg::Tensor)
    }
}

impl Parameter for S {
    unsafe fn arg(self, name: &'static str, _: &mut usize) -> Checked<Arg> {
        if self.0 == 0 {
            return Ok(Arg::Scalar(None));
        }
        Ok(Arg::Scalar(Some(*SCALARS.get(name, self.0)?)))
    }
}

impl Parameter for I {
    unsafe fn arg(self, name: &'static str, _: &mut usize) -> Checked<Arg> {
        if self.0 == 0 {
            return Ok(Arg::Integers(None));
        }
        Ok(Arg::Integers(Some(INTEGERS.get(name, self.0)?.clone())))
    }
}

impl Parameter for L {
    unsafe fn arg(self, name: &'static str, tensors: &mut usize) -> Checked<Arg> {
        let list = TENSOR_LISTS.get(name, self.0)?;
        let found = list
            .iter()
            .map(|handle| tensor(name, *handle, tensors)?.ok_or_else(|| Rejection::null(name)));
        found.collect::<Checked<_>>().map(Arg::Tensors)
    }
}

macro_rules! integers {
    ($($Type:ty),*) => {$(
        impl Parameter for $Type {
            unsafe fn arg(self, _: &'static str, _: &mut usize) -> Checked<Arg> {
                Ok(Arg::Integer(i64::from(self)))
            }
        }
    )*};
}
integers!(u8, i64, i32, i8);

impl Parameter for u64 {
    unsafe fn arg(self, _: &'static str, _: &mut usize) -> Checked<Arg> {
        Ok(Arg::Integer(self.cast_signed()))
    }
}

impl Parameter for f32 {
    unsafe fn arg(self, _: &'static str, _: &mut usize) -> Checked<Arg> {
        Ok(Arg::Number(f64::from(self)))
    }
}

impl Parameter for f64 {
    unsafe fn arg(self, _: &'static str, _: &mut usize) -> Checked<Arg> {
        Ok(Arg::Number(self))
    }
}

impl Parameter for X {
    unsafe fn arg(self, name: &'static str, _: &mut usize) -> Checked<Arg> {
        if self.0.is_null() {
            return Err(Rejection::null(name));
        }
        // SAFETY: the caller promises the zero at the end.
        Ok(Arg::Text(unsafe { CStr::from_ptr(self.0) }.to_string_lossy().into_owned()))
    }
}

impl TensorRef {
    fn view(&self) -> View {
        let TensorObject { shape, strides, .. } = &*self.object;
        let is_dense =
            is_dense(shape, strides) && self.extent.0.is_multiple_of(self.element.part().bytes());
        View { element: self.element, shape: shape.clone(), strides: strides.clone(), is_dense }
    }

    pub(crate) fn shape(&self) -> &[usize] {
        &self.object.shape
    }

    pub(crate) fn rank(&self) -> usize {
        self.object.shape.len()
    }

    fn key(&self, words: &mut Vec<u64>) {
        let TensorObject { number, shape, strides, .. } = &*self.object;
        words.push(u64::from(number.cast_unsigned()) << 32 | shape.len() as u64);
        words.extend(shape.iter().map(|extent| *extent as u64));
        let is_aligned = self.extent.0.is_multiple_of(self.element.part().bytes());
        if is_dense(shape, strides) && is_aligned {
            words.push(1);
        } else {
            words.push(0);
            words.extend(strides.iter().map(|stride| stride.cast_unsigned()));
        }
    }
}

fn is_dense(shape: &[usize], strides: &[i64]) -> bool {
    let mut distance = 1_i64;
    for (extent, stride) in shape.iter().zip(strides).rev() {
        if *extent != 1 && *stride != distance {
            return shape.contains(&0);
        }
        distance = distance.saturating_mul(i64::try_from(*extent).unwrap_or(i64::MAX));
    }
    true
}

impl OperatorCall {
    fn tensors(&self) -> impl Iterator<Item = &TensorRef> {
        let args = self.args.iter().flat_map(|(_, arg)| match arg {
            Arg::Tensor(tensor) => tensor.as_slice(),
            Arg::Tensors(tensors) => tensors.as_slice(),
            _ => &[],
        });
        args.chain(self.outs.iter().filter_map(|(_, tensor)| tensor.as_ref()))
    }

    /// The tensors, in the order of their addresses.
    pub(crate) fn views(&self) -> Vec<View> {
        self.tensors().map(TensorRef::view).collect()
    }

    fn key(&self, row: &'static Row) -> Vec<u64> {
        let mut words = Vec::with_capacity(64);
        words.push(std::ptr::from_ref(row).expose_provenance() as u64 | (self.alias as u64) << 62);
        for (_, arg) in &self.args {
            match arg {
                Arg::Tensor(None) | Arg::Scalar(None) | Arg::Integers(None) => words.push(0),
                Arg::Tensor(Some(tensor)) => tensor.key(&mut words),
                Arg::Tensors(tensors) => {
                    words.push(tensors.len() as u64);
                    tensors.iter().for_each(|tensor| tensor.key(&mut words));
                }
                Arg::Scalar(Some(scalar)) => {
                    words.push(1 << 32 | u64::from(scalar.element.number().cast_unsigned()));
                    let (low, high) = scalar.value.0.split_at(8);
                    let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_ne_bytes);
                    words.extend([word(low), word(high)]);
                }
                Arg::Integers(Some(values)) => {
                    words.push(values.len() as u64 + 1);
                    words.extend(values.iter().map(|value| value.cast_unsigned()));
                }
                Arg::Integer(value) => words.push(value.cast_unsigned()),
                Arg::Number(value) => words.push(value.to_bits()),
                Arg::Text(text) => {
                    words.push(text.len() as u64);
                    words.extend(text.bytes().map(u64::from));
                }
            }
        }
        for (_, out) in &self.outs {
            match out {
                Some(tensor) => tensor.key(&mut words),
                None => words.push(0),
            }
        }
        words
    }

    fn with_alias(mut self) -> Self {
        let out_from =
            self.tensors().count() - self.outs.iter().filter(|(_, out)| out.is_some()).count();
        let mut alias = Alias::None;
        let all: Vec<&TensorRef> = self.tensors().collect();
        for (number, out) in all.iter().enumerate().skip(out_from) {
            for (other_number, other) in all.iter().enumerate() {
                let (_, low, bytes) = out.extent;
                let (_, other_low, other_bytes) = other.extent;
                let overlap = low < other_low + other_bytes && other_low < low + bytes;
                if !overlap
                    || number == other_number
                    || (other_number >= out_from && other_number < number)
                {
                    continue;
                }
                let is_same = other_number < out_from
                    && out.extent == other.extent
                    && out.object.shape == other.object.shape
                    && out.object.strides == other.object.strides
                    && out.element.bytes() == other.element.bytes();
                alias = match (alias, is_same) {
                    (Alias::Partial, _) | (_, false) => Alias::Partial,
                    (_, true) => Alias::Same,
                };
            }
        }
        self.alias = alias;
        self
    }

    fn arg(&self, at: usize) -> (&'static str, &Arg) {
        let (name, arg) = &self.args[at];
        (name, arg)
    }

    /// Argument `at`, a tensor.
    pub(crate) fn tensor(&self, at: usize) -> Checked<&TensorRef> {
        self.optional(at).ok_or_else(|| Rejection::null(self.arg(at).0))
    }

    /// Argument `at`, a tensor that may be left out.
    pub(crate) fn optional(&self, at: usize) -> Option<&TensorRef> {
        match self.arg(at).1 {
            Arg::Tensor(tensor) => tensor.as_ref(),
            _ => None,
        }
    }

    /// Argument `at`, a list of tensors.
    pub(crate) fn list(&self, at: usize) -> Checked<&[TensorRef]> {
        match self.arg(at).1 {
            Arg::Tensors(tensors) if !tensors.is_empty() => Ok(tensors),
            _ => Err(Rejection::invalid(self.arg(at).0, "has no tensors; give one at least")),
        }
    }

    /// Argument `at`, a scalar.
    pub(crate) fn scalar(&self, at: usize) -> Checked<ScalarObject> {
        match self.arg(at).1 {
            Arg::Scalar(Some(scalar)) => Ok(*scalar),
            _ => Err(Rejection::null(self.arg(at).0)),
        }
    }

    /// Argument `at`, a scalar that may be left out.
    pub(crate) fn optional_scalar(&self, at: usize) -> Option<ScalarObject> {
        match self.arg(at).1 {
            Arg::Scalar(scalar) => *scalar,
            _ => None,
        }
    }

    /// Argument `at`, an array of integers.
    pub(crate) fn integers(&self, at: usize) -> Checked<&[i64]> {
        match self.arg(at).1 {
            Arg::Integers(Some(values)) => Ok(values),
            _ => Err(Rejection::null(self.arg(at).0)),
        }
    }

    /// Argument `at`, an array of integers that may be left out.
    pub(crate) fn optional_integers(&self, at: usize) -> Option<&[i64]> {
        match self.arg(at).1 {
            Arg::Integers(values) => values.as_deref(),
            _ => None,
        }
    }

    /// Argument `at`, an integer.
    pub(crate) fn integer(&self, at: usize) -> i64 {
        match self.arg(at).1 {
            Arg::Integer(value) => *value,
            _ => 0,
        }
    }

    /// Argument `at`, a truth value.
    pub(crate) fn flag(&self, at: usize) -> bool {
        self.integer(at) != 0
    }

    /// Argument `at`, a number.
    pub(crate) fn number(&self, at: usize) -> f64 {
        match self.arg(at).1 {
            Arg::Number(value) => *value,
            _ => 0.0,
        }
    }

    /// Argument `at`, text.
    pub(crate) fn text(&self, at: usize) -> &str {
        match self.arg(at).1 {
            Arg::Text(text) => text,
            _ => "",
        }
    }

    /// Argument `at`, the number of an element type.
    pub(crate) fn element(&self, at: usize) -> Checked<ElementType> {
        let number = i32::try_from(self.integer(at)).unwrap_or(-1);
        ElementType::of(number).ok_or_else(|| {
            Rejection::invalid(
                self.arg(at).0,
                format!("is the data type {number}, which no operator takes"),
            )
        })
    }

    /// The name of argument `at`.
    pub(crate) fn name(&self, at: usize) -> &'static str {
        self.arg(at).0
    }

    /// Output `at`.
    pub(crate) fn out(&self, at: usize) -> Checked<&TensorRef> {
        self.optional_out(at).ok_or_else(|| Rejection::null(self.outs[at].0))
    }

    /// Output `at`, which may be left out.
    pub(crate) fn optional_out(&self, at: usize) -> Option<&TensorRef> {
        self.outs.get(at).and_then(|(_, tensor)| tensor.as_ref())
    }
}

/// What a first call is given.
pub(crate) struct Gathered {
    pub(crate) args: Vec<(&'static str, Arg)>,
    pub(crate) outs: Vec<Output>,
    /// How many tensors there are.
    pub(crate) tensors: usize,
}

/// The first argument as the output, for an operator in place.
pub(crate) fn first_as_output(args: &[(&'static str, Arg)], tensors: &mut usize) -> Vec<Output> {
    let Some((name, Arg::Tensor(first))) = args.first() else { return Vec::new() };
    let mut own = first.clone();
    if let Some(own) = &mut own {
        own.index = *tensors;
        *tensors += 1;
    }
    vec![(*name, own)]
}

/// The first call of an operator.
///
/// # Safety
/// `size` and `executor` are null, or can be written.
pub(crate) unsafe fn prepare(
    row: &'static Row,
    size: *mut u64,
    executor: *mut usize,
    gather: impl FnOnce() -> Checked<Gathered>,
) -> i32 {
    let made = guarded(|| {
        if let Some(fault) = LOST_FAULT.get() {
            return Err(Rejection::new(INNER, format!("an operator failed before: {fault}")));
        }
        if size.is_null() || executor.is_null() {
            let name = if size.is_null() { "workspaceSize" } else { "executor" };
            return Err(Rejection::null(name));
        }
        let Gathered { args, outs, tensors } = gather()?;
        if tensors > MOST_LAUNCH_TENSORS {
            return Err(Rejection::new(
                INVALID,
                format!("there are {tensors} tensors; a call takes {MOST_LAUNCH_TENSORS}"),
            ));
        }
        let call =
            OperatorCall { operator: row.kernel, args, outs, alias: Alias::None }.with_alias();
        let (plan, is_kept) = found_plan(row, &call)?;
        let addresses = call.tensors().map(|tensor| tensor.extent.0 as u64).collect();
        let out_from = tensors - call.outs.iter().filter(|(_, out)| out.is_some()).count();
        let operands = call
            .tensors()
            .enumerate()
            .map(|(at, tensor)| device::OperandBytes {
                address: tensor.extent.1,
                bytes: tensor.extent.2,
                writes: u32::from(at >= out_from),
            })
            .collect();
        Ok(EXECUTORS.open(Executor { row, plan, is_kept, addresses, operands }))
    });
    match made {
        Ok(handle) => {
            // SAFETY: not null, and the caller promises them.
            let results = unsafe { put("workspaceSize", size, 0) }
                // SAFETY: as above.
                .and_then(|()| unsafe { put("executor", executor, handle) });
            results.map_or_else(|rejection| device::report(row.names[1], &rejection), |()| 0)
        }
        Err(rejection) => device::report(row.names[1], &rejection),
    }
}

/// Runs a call, from which no panic leaves.
fn guarded<R>(act: impl FnOnce() -> Checked<R>) -> Checked<R> {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|_| {
        Err(Rejection::new(
            INNER,
            "the library panicked; standard error has the location: report it",
        ))
    })
}

/// Plans by the words of their calls.
type Plans = RwLock<HashMap<Box<[u64]>, Arc<CompiledCall>>>;

/// The plan of a call, and whether it is kept.
fn found_plan(row: &'static Row, call: &OperatorCall) -> Checked<(Arc<CompiledCall>, bool)> {
    static PLANS: OnceLock<Plans> = OnceLock::new();
    let plans = PLANS.get_or_init(RwLock::default);
    let key = call.key(row);
    if let Some(plan) = plans.read().unwrap_or_else(PoisonError::into_inner).get(key.as_slice()) {
        return Ok((Arc::clone(plan), true));
    }
    let plan = Arc::new((row.build)(call)?);
    let mut plans = plans.write().unwrap_or_else(PoisonError::into_inner);
    let is_kept = plan.is_shared && plans.len() < MOST_PLANS;
    if is_kept {
        let kept = plans.entry(key.into_boxed_slice()).or_insert(plan);
        return Ok((Arc::clone(kept), true));
    }
    Ok((plan, false))
}

/// What a launch that is asked for its outcome, or whose plan is not kept, refers to.
struct LaunchContext {
    /// The plan lives as long as the launch.
    _plan: Arc<CompiledCall>,
    status: LaunchStatus,
}

extern "C" fn outcome(context: *mut c_void, text: *mut c_char, room: usize) -> i32 {
    /// An AICore raised an exception.
    const EXCEPTION: i32 = 507_015;
    // SAFETY: `run` passes such a context, which lives until it is released.
    let context = unsafe { &*context.cast::<LaunchContext>() };
    let Some(why) = context.status.get() else { return 0 };
    for (at, byte) in why.bytes().take(room.saturating_sub(1)).chain([0]).enumerate() {
        let to = text.cast::<u8>().wrapping_add(at);
        // SAFETY: the caller has `room` bytes there.
        unsafe { to.write(byte) };
    }
    EXCEPTION
}

extern "C" fn release(context: *mut c_void) {
    // SAFETY: `run` made it from a box, and nothing uses it any more.
    drop(unsafe { Box::from_raw(context.cast::<LaunchContext>()) });
}

/// The second call of an operator.
pub(crate) fn run(row: &'static Row, executor: usize, stream: usize) -> i32 {
    let done = guarded(|| {
        let taken = EXECUTORS.take("executor", executor)?;
        if !std::ptr::eq(taken.row, row) {
            return Err(Rejection::invalid(
                "executor",
                format!("is one of {}", taken.row.names[0].to_string_lossy()),
            ));
        }
        if matches!(taken.plan.body, plan::Body::Nothing) {
            return Ok(());
        }
        let function = kernel(row)?;
        let mut words = [0_u64; 128];
        let count = LAUNCH_HEAD + taken.addresses.len();
        words[0] = Arc::as_ptr(&taken.plan).expose_provenance() as u64;
        words[LAUNCH_COST_WORD] = taken.plan.block_ns;
        words[LAUNCH_HEAD..count].copy_from_slice(&taken.addresses);
        let context = (taken.plan.can_fail || !taken.is_kept).then(|| {
            let context =
                LaunchContext { _plan: Arc::clone(&taken.plan), status: LaunchStatus::default() };
            Box::into_raw(Box::new(context))
        });
        if let Some(context) = context {
            words[1] = context.expose_provenance() as u64
                + std::mem::offset_of!(LaunchContext, status) as u64;
        }
        let launch = device::OperatorLaunch {
            function,
            blocks: taken.plan.blocks,
            words: words.as_ptr(),
            word_count: count,
            operands: taken.operands.as_ptr(),
            operand_count: taken.operands.len(),
            outcome: context.map(|_| outcome as _),
            release: context.map(|_| release as _),
            context: context.map_or(std::ptr::null_mut(), <*mut LaunchContext>::cast),
        };
        device::launch(&launch, stream)
    });
    done.map_or_else(|rejection| device::report(row.names[0], &rejection), |()| 0)
}

fn kernel(row: &'static Row) -> Checked<usize> {
    if let Some(function) = row.function.get() {
        return Ok(*function);
    }
    let is_cube = ["Matmul", "Dot", "Einsum"].iter().any(|name| row.kernel.ends_with(name));
    let entry: KernelEntry = run_launch::<CompiledCall>;
    let function = device::make_kernel(row.kernel, entry, u32::from(!is_cube), LAUNCH_COST_WORD)?;
    Ok(*row.function.get_or_init(|| function))
}

/// Gives an executor up that is not run.
#[unsafe(no_mangle)]
extern "C" fn aclDestroyAclOpExecutor(executor: usize) -> i32 {
    match EXECUTORS.take("executor", executor) {
        Ok(_) => 0,
        Err(rejection) => device::report(c"aclDestroyAclOpExecutor", &rejection),
    }
}

/// The strides of a dense tensor of these extents.
pub(crate) fn strides(shape: &[usize]) -> Vec<i64> {
    dense_strides(shape)
}
