//! Kernels of a few instructions, run on dense tensors.

use pto_aicore_kernels::tile::view::tensor_of;
use pto_aicore_kernels::tile::{
    Call, DType, Direction, Interpreter, Kernel, Name, Op, Param, ParamKind, Rejected, TileFault,
    TileType, TileView, ValueId,
};

pub(crate) const V: fn(u16) -> ValueId = ValueId;

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub(crate) fn tensor(text: &str, direction: Direction, tile: TileType) -> Param {
    Param { name: name(text), kind: ParamKind::Tensor { direction, tile } }
}

pub(crate) fn load(param: u8) -> Op {
    Op::Load { param, offset: [0, 0], mask: None }
}

pub(crate) fn store(param: u8, source: u16) -> Op {
    Op::Store { param, source: V(source), offset: [0, 0], mask: None }
}

/// Memory for a tensor, aligned to every element type.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    words: Vec<u64>,
    bytes: usize,
}

impl Memory {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let mut words = vec![0u64; bytes.len().div_ceil(8).max(1)];
        bytemuck::cast_slice_mut::<_, u8>(&mut words)[..bytes.len()].copy_from_slice(bytes);
        Self { words, bytes: bytes.len() }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.bytes]
    }

    pub(crate) fn cells(&mut self) -> &[std::cell::Cell<u8>] {
        &tensor_of(&mut self.words)[..self.bytes]
    }

    /// The element at an index.
    pub(crate) fn element(&self, dtype: DType, at: usize) -> &[u8] {
        &self.bytes()[at * dtype.bytes()..][..dtype.bytes()]
    }
}

/// A kernel with inputs, one output, and instructions between the loads and the store.
pub(crate) struct Small {
    pub(crate) inputs: Vec<TileType>,
    pub(crate) output: TileType,
    pub(crate) ops: Vec<Op>,
}

impl Small {
    /// The kernel: loads every input in its order, so that input `i` is value `i`; stores the last value.
    pub(crate) fn kernel(&self) -> Result<Kernel, Rejected> {
        let mut params = Vec::new();
        let mut ops = Vec::new();
        for (number, input) in self.inputs.iter().enumerate() {
            params.push(tensor(&format!("in{number}"), Direction::In, *input));
            ops.push(load(u8::try_from(number).unwrap()));
        }
        ops.extend(&self.ops);
        let values = ops.iter().filter(|op| !matches!(op, Op::Store { .. } | Op::AddCycles { .. }));
        let last = u16::try_from(values.count() - 1).unwrap();
        params.push(tensor("out", Direction::Out, self.output));
        ops.push(store(u8::try_from(self.inputs.len()).unwrap(), last));
        Kernel::check(name("small"), &params, &ops)
    }

    /// Runs it on dense inputs of which `counted` rows and columns count.
    pub(crate) fn run_partial(
        &self,
        inputs: &[Vec<u8>],
        counted: &[[u16; 2]],
    ) -> Result<(Memory, u64), Box<TileFault>> {
        let kernel = self.kernel().unwrap();
        let output = vec![0xA5; self.output.elements() * self.output.dtype.bytes()];
        let mut memories: Vec<Memory> =
            inputs.iter().chain([&output]).map(|bytes| Memory::new(bytes)).collect();
        let tiles = self.inputs.iter().chain([&self.output]);
        let views: Vec<TileView> = memories
            .iter_mut()
            .zip(tiles.zip(counted))
            .map(|(memory, (tile, counted))| {
                TileView::new(memory.cells(), 0, [i64::from(tile.cols), 1], *counted)
            })
            .collect();
        let call = Call { tensors: &views, scalars: &[] };
        let mut scratch = vec![0x5A5A_5A5A_5A5A_5A5A; kernel.scratch_words()];
        let wide = Interpreter::new().run(&kernel, &call, &mut scratch);
        let cycles = wide.map_err(Box::new)?;
        let first = memories.last().unwrap().clone();
        for machine in Interpreter::all() {
            let found = self.again(machine, &kernel, inputs, counted);
            assert_eq!(found, first.bytes(), "{machine:?}");
        }
        Ok((first, cycles))
    }

    /// What a machine makes of it, with dirty scratch memory of another kind.
    fn again(
        &self,
        machine: Interpreter,
        kernel: &Kernel,
        inputs: &[Vec<u8>],
        counted: &[[u16; 2]],
    ) -> Vec<u8> {
        let output = vec![0xA5; self.output.elements() * self.output.dtype.bytes()];
        let mut memories: Vec<Memory> =
            inputs.iter().chain([&output]).map(|bytes| Memory::new(bytes)).collect();
        let tiles = self.inputs.iter().chain([&self.output]);
        let views: Vec<TileView> = memories
            .iter_mut()
            .zip(tiles.zip(counted))
            .map(|(memory, (tile, counted))| {
                TileView::new(memory.cells(), 0, [i64::from(tile.cols), 1], *counted)
            })
            .collect();
        let mut scratch = vec![0; kernel.scratch_words()];
        let call = Call { tensors: &views, scalars: &[] };
        machine.run(kernel, &call, &mut scratch).unwrap();
        memories.last().unwrap().bytes().to_vec()
    }

    /// Runs it on whole tiles.
    pub(crate) fn run(&self, inputs: &[Vec<u8>]) -> (Memory, u64) {
        let tiles = self.inputs.iter().chain([&self.output]);
        let counted: Vec<[u16; 2]> = tiles.map(|tile| [tile.rows, tile.cols]).collect();
        self.run_partial(inputs, &counted).unwrap()
    }
}
