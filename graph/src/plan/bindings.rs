//! What a plan is bound to in a run: read from GM once, before anything is expanded.

use pto_abi::fault::Fault;
use pto_abi::ids::GmAddr;

use super::accept::Plan;
use super::epitaph;
use super::layout::{binding, limits};
use super::stop::Stop;
use super::task::descriptor;
use super::values::Values;
use crate::builder::GraphBuilder;
use crate::element::ElementType;
use crate::tensor::{RawView, TensorView};

/// An array of an axis.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Array {
    /// The array's elements; one byte where it has none.
    pub(super) view: TensorView<'static>,
    pub(super) length: u64,
}

/// What a plan is bound to.
pub(super) struct Bindings {
    pub(super) code: GmAddr,
    pub(super) code_bytes: u64,
    pub(super) epitaph: GmAddr,
    pub(super) scratch: GmAddr,
    pub(super) descriptors: GmAddr,
    pub(super) cores: u64,
    /// Tasks of a dispatch, as the bindings ask for them.
    pub(super) grain: u64,
    costs_ns: [u64; limits::KERNELS],
    arrays: [Array; limits::ARRAYS],
    tensors: [TensorView<'static>; limits::TENSORS],
}

/// The bindings in GM.
#[derive(Clone, Copy)]
pub(super) struct BindingWords {
    pub(super) base: GmAddr,
    pub(super) words: u64,
}

impl BindingWords {
    /// One of the words.
    fn word<G: GraphBuilder>(self, graph: &G, at: usize) -> Result<u64, Stop> {
        let (at, wrong) = (at as u64, Stop::new(Fault::PLAN_BINDINGS, at));
        let address = self.base.offset(at.wrapping_mul(8));
        if at >= self.words {
            return Err(wrong.detail(at, self.words));
        }
        graph.read_u64(address).map_err(|_| wrong.detail(address.0, 0))
    }

    /// Where the epitaph is.
    pub(super) fn epitaph<G: GraphBuilder>(self, graph: &G) -> Result<GmAddr, Stop> {
        let epitaph = GmAddr(self.word(graph, binding::EPITAPH)?);
        check_range(graph, epitaph, u64::from(epitaph::WORDS) * 8, binding::EPITAPH)?;
        Ok(epitaph)
    }
}

/// Whether the first and the last word of a range are in GM. Neither is read: tasks of a program before this one may be writing them.
fn check_range<G: GraphBuilder>(
    graph: &G,
    base: GmAddr,
    bytes: u64,
    at: usize,
) -> Result<(), Stop> {
    let last = base.offset(bytes.saturating_sub(1) & !3);
    for address in [GmAddr(base.0 & !3), last] {
        if !graph.has_word(address) {
            return Err(Stop::new(Fault::PLAN_BINDINGS, at).detail(address.0, bytes));
        }
    }
    Ok(())
}

impl Bindings {
    /// Reads the bindings of a plan, and the values of its symbols.
    pub(super) fn read<G: GraphBuilder>(
        graph: &G,
        plan: &Plan<'_>,
        source: BindingWords,
    ) -> Result<(Self, Values), Stop> {
        let sizes = plan.counts().map(|count| count as usize);
        let [symbol_count, array_count, tensor_count, kernel_count] = sizes;
        let counts = plan.counts().map(u64::from);
        let expected = counts[0] | counts[1] << 16 | counts[2] << 32 | counts[3] << 48;
        let found = source.word(graph, binding::COUNTS)?;
        let words = binding::words(sizes) as u64;
        if found != expected || source.words != words {
            return Err(Stop::new(Fault::PLAN_BINDINGS, binding::COUNTS).detail(found, expected));
        }
        let mut symbols = [0; limits::SYMBOLS];
        for (number, symbol) in symbols.iter_mut().enumerate().take(symbol_count) {
            *symbol = source.word(graph, binding::HEAD + number)?;
        }
        let tensors_at = binding::tensors_at(symbol_count, array_count);
        let mut bound = Self {
            code: GmAddr(source.word(graph, binding::CODE)?),
            code_bytes: source.word(graph, binding::CODE_BYTES)?,
            epitaph: source.epitaph(graph)?,
            scratch: GmAddr(source.word(graph, binding::SCRATCH)?),
            descriptors: source.base.offset(tensors_at as u64 * 8),
            cores: source.word(graph, binding::CORES)?,
            grain: source.word(graph, binding::GRAIN)?,
            costs_ns: [0; limits::KERNELS],
            arrays: [Array::default(); limits::ARRAYS],
            tensors: [TensorView::default(); limits::TENSORS],
        };
        check_range(graph, bound.scratch, 8, binding::SCRATCH)?;
        if bound.code_bytes > 0 {
            check_range(graph, bound.code, bound.code_bytes, binding::CODE)?;
        }
        for (number, array) in bound.arrays.iter_mut().enumerate().take(array_count) {
            let at = binding::arrays_at(symbol_count) + number * binding::ARRAY;
            *array = read_array(graph, source, at)?;
        }
        for (number, tensor) in (0_u32..).zip(&mut bound.tensors).take(tensor_count) {
            let at = tensors_at + number as usize * binding::TENSOR;
            *tensor = read_tensor(graph, (plan, number), source, at)?;
        }
        let costs_at = binding::costs_at([symbol_count, array_count, tensor_count]);
        for (number, cost_ns) in bound.costs_ns.iter_mut().enumerate().take(kernel_count) {
            *cost_ns = source.word(graph, costs_at + number)?;
        }
        Ok((bound, Values::new(symbols)))
    }

    /// An array; the plan was checked, so that there is one.
    pub(super) fn array(&self, number: u32) -> Array {
        self.arrays.get(number as usize).copied().unwrap_or_default()
    }

    /// The time that a kernel takes on a core; 0 if it is unknown.
    #[inline]
    pub(super) fn cost_ns(&self, kernel: u32) -> u64 {
        self.costs_ns.get(kernel as usize).copied().unwrap_or(0)
    }

    /// A tensor; the plan was checked, so that there is one.
    #[inline]
    pub(super) fn tensor(&self, number: u32) -> Option<&TensorView<'static>> {
        self.tensors.get(number as usize)
    }
}

fn read_array<G: GraphBuilder>(graph: &G, source: BindingWords, at: usize) -> Result<Array, Stop> {
    let (base, length) = (GmAddr(source.word(graph, at)?), source.word(graph, at + 1)?);
    if length == 0 {
        return Ok(Array::default());
    }
    let wrong = Stop::new(Fault::PLAN_BINDINGS, at).detail(length, u32::MAX.into());
    let extent = u32::try_from(length).map_err(|_| wrong)?;
    check_range(graph, base, length * 4, at)?;
    Ok(Array { view: TensorView::dense(base, ElementType::I32, &[extent]), length })
}

/// A tensor with the shape and the elements of the plan, in the memory that its descriptor says.
fn read_tensor<G: GraphBuilder>(
    graph: &G,
    (plan, number): (&Plan<'_>, u32),
    source: BindingWords,
    at: usize,
) -> Result<TensorView<'static>, Stop> {
    let base = GmAddr(source.word(graph, at + descriptor::BASE)?);
    let wrong = Stop::new(Fault::PLAN_BINDINGS, at);
    let planned = plan.tensor(number, base).ok_or(wrong)?;
    let bytes = source.word(graph, at + descriptor::BYTES)?;
    let offset = source.word(graph, at + descriptor::FIRST)?;
    let mut strides = [0; limits::RANK];
    for (dimension, stride) in strides.iter_mut().enumerate() {
        *stride = source.word(graph, at + descriptor::STRIDES + dimension)?;
    }
    let (shape, element) = (planned.shape(), planned.element());
    let tensor = TensorView::alleged(&RawView {
        base,
        bytes,
        element: element.get(),
        offset,
        shape,
        strides: strides.get(..shape.len()).unwrap_or(&[]),
    });
    if tensor.defect().is_some() || !base.0.is_multiple_of(element.bytes()) {
        return Err(wrong.detail(bytes, planned.tensor_bytes()));
    }
    check_range(graph, base, bytes, at)?;
    Ok(tensor)
}
