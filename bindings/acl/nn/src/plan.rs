//! A compiled call: what the cores run for an operator on tensors of these types and extents. Its launches are those of `pto_operators::run_launch`.

use pto_abi::block::BlockContext;
use pto_operators::{BlockWork, Operator, PreparedOperator, Tensor, units_of};

use crate::element::ElementType;
use crate::value::{self, Value, View};

/// Elements that an operator in place computes at a time.
const CHUNK: usize = 16_384;

/// A compiled call.
pub(crate) struct CompiledCall {
    /// The name of its function, without `GetWorkspaceSize`.
    pub(crate) operator: &'static str,
    /// The tensors, in the order of their addresses.
    pub(crate) tensors: Vec<View>,
    pub(crate) body: Body,
    pub(crate) blocks: u32,
    /// What a block takes on a core of the device, in ns; 0: that is not known.
    pub(crate) block_ns: u64,
    /// Whether a call with the same arguments takes it again.
    pub(crate) is_shared: bool,
    /// Whether elements of the inputs may make it fail.
    pub(crate) can_fail: bool,
}

/// What a kernel does.
pub(crate) enum Body {
    /// Nothing: there are no elements.
    Nothing,
    /// One operator on the tensors as they are: inputs, constants, outputs.
    Direct { operator: PreparedOperator, operands: Vec<DirectOperand> },
    /// An elementwise operator whose output is one of its inputs: by chunks, each computed beside the tensors.
    InPlace { operator: PreparedOperator, operands: Vec<DirectOperand>, elements: usize },
    /// A list of steps on copies of the tensors.
    Steps { steps: Vec<CallStep>, sources: Vec<ValueSource>, outputs: Vec<(usize, usize)> },
}

/// An operand of a direct operator.
pub(crate) enum DirectOperand {
    /// The tensor with this number.
    Tensor(usize),
    /// A constant of the plan, in words, so that it is aligned.
    Constant(Vec<u64>),
}

/// Where a value of a list of steps comes from.
pub(crate) enum ValueSource {
    Tensor(usize),
    Constant(Value),
    /// Of a step.
    Computed,
}

/// A function of our own of values: what no operator of the project is.
pub(crate) type Function = Box<dyn Fn(&[&Value]) -> Result<Vec<Value>, String> + Send + Sync>;

/// What a step does.
pub(crate) enum Action {
    Operator(Operator),
    Cast(ElementType),
    Own(Function),
}

/// A step: what it does, and the numbers of the values that it takes and gives.
pub(crate) struct CallStep {
    pub(crate) action: Action,
    pub(crate) inputs: Vec<usize>,
    pub(crate) outputs: Vec<usize>,
}

impl BlockWork for CompiledCall {
    fn operator(&self) -> &'static str {
        self.operator
    }

    fn tensors(&self) -> usize {
        self.tensors.len()
    }

    fn blocks(&self) -> u32 {
        self.blocks
    }

    unsafe fn compute(&self, addresses: &[u64], context: BlockContext) -> Result<(), String> {
        // SAFETY: the caller promises the memory.
        unsafe { self.block(addresses, context) }.map_err(|why| format!("{}: {why}", self.operator))
    }
}

impl CompiledCall {
    /// Computes a block.
    ///
    /// # Safety
    /// Each address is that of live memory of the view; no other thread writes the outputs meanwhile, and only this plan writes inputs.
    unsafe fn block(&self, addresses: &[u64], context: BlockContext) -> Result<(), String> {
        match &self.body {
            Body::Nothing => Ok(()),
            Body::Direct { operator, operands } => {
                let units = units_of(operator.work().units, context);
                let at: Vec<u64> = operands
                    .iter()
                    .map(|operand| match operand {
                        DirectOperand::Tensor(number) => addresses[*number],
                        DirectOperand::Constant(words) => words.as_ptr().expose_provenance() as u64,
                    })
                    .collect();
                // SAFETY: the caller promises the memory; the plan is direct only where outputs overlap no input, and blocks have different units.
                unsafe { operator.run(&at, units) }.map_err(|error| error.to_string())
            }
            Body::InPlace { operator, operands, elements } => {
                // SAFETY: the caller promises the memory.
                unsafe {
                    self.in_place((operator, operands), addresses, units_of(*elements, context))
                }
            }
            Body::Steps { steps, sources, outputs } => {
                let mut values: Vec<Option<Value>> = sources
                    .iter()
                    .map(|source| match source {
                        ValueSource::Tensor(number) => {
                            let at = usize::try_from(addresses[*number]).unwrap_or(0);
                            // SAFETY: the caller promises the memory.
                            Some(unsafe { self.tensors[*number].read(at) })
                        }
                        ValueSource::Constant(value) => Some(value.clone()),
                        ValueSource::Computed => None,
                    })
                    .collect();
                for step in steps {
                    let results = {
                        let given: Option<Vec<&Value>> =
                            step.inputs.iter().map(|at| values[*at].as_ref()).collect();
                        step.action
                            .apply(&given.ok_or("a step takes a value that is not there")?)?
                    };
                    for (at, result) in step.outputs.iter().zip(results) {
                        values[*at] = Some(result);
                    }
                }
                for (value, number) in outputs {
                    let found = values[*value].take().ok_or("a result is not there")?;
                    let view = &self.tensors[*number];
                    let at = usize::try_from(addresses[*number]).unwrap_or(0);
                    // SAFETY: the caller promises the memory.
                    unsafe { view.write(at, &found) }?;
                    values[*value] = Some(found);
                }
                Ok(())
            }
        }
    }

    /// Elements (first, count) of an operator in place.
    ///
    /// # Safety
    /// As for `compute`; operands are dense and have as many elements as the output, or one.
    unsafe fn in_place(
        &self,
        (operator, operands): (&PreparedOperator, &[DirectOperand]),
        addresses: &[u64],
        (first, count): (usize, usize),
    ) -> Result<(), String> {
        let chunk = operator.work().units;
        let mut buffers: Vec<Vec<u64>> = operands
            .iter()
            .map(|operand| match operand {
                DirectOperand::Tensor(number) => {
                    vec![0; (chunk * self.tensors[*number].element.bytes()).div_ceil(8)]
                }
                DirectOperand::Constant(words) => words.clone(),
            })
            .collect();
        let at: Vec<u64> =
            buffers.iter_mut().map(|words| words.as_mut_ptr().expose_provenance() as u64).collect();
        let output = operands.len() - 1;
        let mut done = 0;
        while done < count {
            let length = chunk.min(count - done);
            let part = |number: usize| {
                let view = &self.tensors[number];
                let size = view.element.bytes();
                let is_one = view.elements() == 1;
                let from = usize::try_from(addresses[number]).unwrap_or(0);
                let start = if is_one { 0 } else { (first + done) * size };
                (from + start, size * if is_one { 1 } else { length })
            };
            for (operand, own) in operands[..output].iter().zip(&at) {
                if let DirectOperand::Tensor(number) = operand {
                    let (from, bytes) = part(*number);
                    // SAFETY: the caller promises the memory; the buffer is our own and large enough.
                    unsafe { copy(from, *own, bytes) };
                }
            }
            // SAFETY: the buffers are tensors of the chunk.
            unsafe { operator.run(&at, (0, length)) }.map_err(|error| error.to_string())?;
            if let DirectOperand::Tensor(number) = &operands[output] {
                let (to, bytes) = part(*number);
                // SAFETY: as above.
                unsafe { copy(usize::try_from(at[output]).unwrap_or(0), to as u64, bytes) };
            }
            done += length;
        }
        Ok(())
    }
}

/// Copies bytes.
///
/// # Safety
/// Both ranges are live memory, and do not overlap.
unsafe fn copy(from: usize, to: u64, bytes: usize) {
    let from = std::ptr::with_exposed_provenance::<u8>(from);
    let to = std::ptr::with_exposed_provenance_mut::<u8>(usize::try_from(to).unwrap_or(0));
    // SAFETY: the caller promises it.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
}

/// Elements of a chunk of an operator in place.
pub(crate) fn chunk(elements: usize) -> usize {
    elements.min(CHUNK)
}

impl Action {
    fn apply(&self, inputs: &[&Value]) -> Result<Vec<Value>, String> {
        match self {
            Self::Operator(operator) => value::apply(operator, inputs),
            Self::Cast(element) => Ok(vec![inputs[0].cast(*element)]),
            Self::Own(function) => function(inputs),
        }
    }
}

impl DirectOperand {
    /// A constant.
    pub(crate) fn constant(tensor: &Tensor) -> Self {
        let bytes = tensor.bytes();
        let mut words = vec![0_u64; bytes.len().div_ceil(8).max(1)];
        for (word, chunk) in words.iter_mut().zip(bytes.chunks(8)) {
            let mut whole = [0; 8];
            whole[..chunk.len()].copy_from_slice(chunk);
            *word = u64::from_ne_bytes(whole);
        }
        Self::Constant(words)
    }
}
