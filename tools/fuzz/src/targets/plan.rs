//! Plans of workloads: the reader accepts or refuses any words, and what it accepts is expanded by the program and the streaming builder
//! of the firmware, on memory of its own. Nothing panics, and every fault has a name.

use std::cell::Cell;

use pto_check::{Cores, Memory, NotRecorded, record};
use pto_examples::ExampleBuilders;
use pto_host::abi::GmAddr;
use pto_host::graph::plan::layout::{HEADER_WORDS, TENSOR_WORDS, binding, header};
use pto_host::graph::plan::task::descriptor;
use pto_host::graph::plan::{BUILDER, LaunchPart, Plan, epitaph as words};
use pto_host::graph::{BuildError, ElementType, TensorView};

/// Where the parts of the memory begin.
const PLAN: u64 = 0x1_0000;
const BINDINGS: u64 = 0x2_0000;
const EPITAPH: u64 = 0x4_0000;
const SCRATCH: u64 = 0x5_0000;
const ARRAY: u64 = 0x6_0000;
/// Tensors begin here, this far from each other. What they hold is not looked at but by slots, which read zeros.
const TENSORS: u64 = 1 << 32;
/// Elements of an array: each row has 2, begins are 0 2 2 2.., and indices 0 2 2 2..
const ELEMENTS: u64 = 16;
/// After so many looks the record says that a kernel has faulted, so that every expansion ends.
const LOOKS: u32 = 64;
/// Tasks of a window.
const TASKS: usize = 512;

/// The memory of one expansion.
struct PlanMemory {
    plan: Vec<u32>,
    bindings: Vec<u64>,
    epitaph: [Cell<u64>; 32],
    looks: Cell<u32>,
}

impl PlanMemory {
    fn word(&self, address: u64) -> Option<u64> {
        let at = |base: u64| usize::try_from((address - base) / 8).ok();
        match address {
            PLAN..BINDINGS => {
                let at = usize::try_from(((address - PLAN) / 4) & !1).ok()?;
                let half = |at: usize| self.plan.get(at).copied().unwrap_or(0);
                (at < self.plan.len()).then(|| u64::from(half(at)) | u64::from(half(at + 1)) << 32)
            }
            BINDINGS..EPITAPH => self.bindings.get(at(BINDINGS)?).copied(),
            EPITAPH..SCRATCH => {
                let at = at(EPITAPH)?;
                let looks = self.looks.get() + u32::from(at == words::STATE);
                self.looks.set(looks);
                let has_faulted = at == words::STATE && looks > LOOKS;
                if has_faulted { Some(1) } else { self.epitaph.get(at).map(Cell::get) }
            }
            SCRATCH..ARRAY => Some(0),
            ARRAY..TENSORS => (address < ARRAY + 4 * ELEMENTS).then_some(0x2_0000_0002),
            _ => Some(0),
        }
    }
}

impl Memory for PlanMemory {
    fn read(&self, address: GmAddr, bytes: u64) -> Option<u64> {
        address.0.is_multiple_of(bytes).then_some(())?;
        let word = self.word(address.0)? >> (8 * (address.0 % 8));
        Some(if bytes == 8 { word } else { word & ((1 << (8 * bytes)) - 1) })
    }

    fn write(&self, address: GmAddr, _: u64, value: u64) -> Option<()> {
        let at = usize::try_from(address.0.checked_sub(EPITAPH)? / 8).ok()?;
        self.epitaph.get(at)?.set(value);
        Some(())
    }
}

/// Expands the plan as it is, and with a header that passes the first checks.
pub(super) fn expand(bytes: &[u8]) {
    let words: Vec<u32> =
        bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    expand_one(words.clone());
    expand_one(mended(words));
}

/// With the length that the plan has.
fn mended(mut words: Vec<u32>) -> Vec<u32> {
    use pto_host::graph::plan::layout::{MAGIC, VERSION};
    let length = u32::try_from(words.len()).unwrap_or(u32::MAX);
    let fields = [(header::MAGIC, MAGIC), (header::VERSION, VERSION), (header::WORDS, length)];
    for (at, value) in fields {
        if let Some(word) = words.get_mut(at) {
            *word = value;
        }
    }
    words
}

fn expand_one(words: Vec<u32>) {
    let accepted = Plan::accept(&words).map(|plan| plan.counts());
    let bindings = bindings(&words, accepted.unwrap_or_default());
    let part = LaunchPart::Plan {
        plan: GmAddr(PLAN),
        words: u32::try_from(words.len()).unwrap_or(u32::MAX),
        bindings: GmAddr(BINDINGS),
        binding_words: bindings.len() as u64,
    };
    let orch_args = part.words();
    let gm = PlanMemory {
        plan: words,
        bindings,
        epitaph: [const { Cell::new(0) }; 32],
        looks: Cell::new(0),
    };
    let recorded = record((&ExampleBuilders, BUILDER), &orch_args, TASKS, (Cores::default(), &gm));
    let Err(NotRecorded::GaveUp { error, .. }) = recorded else {
        assert!(accepted.is_ok(), "a plan was expanded that the reader refuses");
        return;
    };
    let BuildError::Fault(fault) = error else { panic!("the program gave up without a fault") };
    assert!(fault.entry().is_some(), "a fault without a name: {fault:?}");
    if let Err(stop) = accepted {
        assert!(fault == stop.fault, "refused with {} and with {fault}", stop.fault);
    }
}

/// Bindings that fit a plan of these counts.
fn bindings(words: &[u32], counts: [u32; 4]) -> Vec<u64> {
    let sizes = counts.map(|count| usize::try_from(count).unwrap_or(0));
    let [symbols, arrays, tensors, _] = sizes;
    let mut bound = vec![0; binding::words(sizes)];
    let [a, b, c, d] = counts.map(u64::from);
    bound[binding::COUNTS] = a | b << 16 | c << 32 | d << 48;
    // A kernel of 1 us: some calls are put together.
    bound[binding::costs_at([symbols, arrays, tensors])..].fill(1_000);
    (bound[binding::EPITAPH], bound[binding::SCRATCH]) = (EPITAPH, SCRATCH);
    bound[binding::HEAD..][..symbols].fill(3);
    for array in bound[binding::arrays_at(symbols)..].chunks_mut(binding::ARRAY).take(arrays) {
        array.copy_from_slice(&[ARRAY, ELEMENTS]);
    }
    let at = binding::tensors_at(symbols, arrays);
    let parts = words.get(HEADER_WORDS..).unwrap_or(&[]).chunks(TENSOR_WORDS);
    for ((part, words), base) in
        parts.zip(bound[at..].chunks_mut(binding::TENSOR)).zip((TENSORS..).step_by(1 << 32))
    {
        let [element, rank, ..] = part[0].to_le_bytes();
        let shape = part.get(1..1 + usize::from(rank)).unwrap_or(&[]);
        let Ok(element) = ElementType::try_from(element) else { continue };
        let view = TensorView::dense(GmAddr(base), element, shape);
        words[descriptor::BASE] = base;
        words[descriptor::BYTES] = view.tensor_bytes();
        words[descriptor::STRIDES..][..view.strides().len()].copy_from_slice(view.strides());
    }
    bound
}
