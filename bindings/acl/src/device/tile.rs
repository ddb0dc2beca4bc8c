//! Kernels in tile IR: read from a program file or from text, and launched over tiles of tensors in memory of a device.
//!
//! A launch becomes a program whose loop calls the kernel once for each block: block `b` gets tile `b` of every tensor, whose tiles lie one after the other.
//! So it runs wherever models run, and its faults are those of models.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pto_acl_interface::TileCode;
use pto_host::stitch::PlacedProgram;
use pto_host::workload::WorkloadBindings;
use pto_host::workloads::TileKernel;
use pto_host::workloads::program::{MAGIC, Program, ProgramBody};
use pto_host::workloads::tile::element::bits_as;
use pto_host::workloads::tile::{DType, Direction, Param, ParamKind, TileType};
use pto_host::workloads::tree::{
    Axis, Expr, Loop, ScalarType, Task, TaskArgument, Tensor, TensorSlice, TreeNode, Workload,
};

use super::callbacks::Exception;
use super::lane::Lane;
use super::memory_map;
use super::open::{Open, gm};
use crate::common::codes;
use crate::common::order::{MemoryUse, Touch};
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::Handle;

const _: () = assert!(u64::from_ne_bytes(*MAGIC) == u64::from_ne_bytes(*TileCode::PROGRAM));

/// The most blocks of a launch, as for every kernel.
const MOST_BLOCKS: u32 = 65_535;
/// Programs of launches that stay on their devices: one for each kernel, device and number of blocks. Each takes memory of the device for its code and for the
/// scratch memory of every core.
const MOST_PLACED: usize = 64;
/// The variable of the loop over blocks.
const BLOCK: &str = "block";

/// The kernels in a file; `None`: it has none in tile IR. `name` is what messages call it.
pub(crate) fn read(bytes: &[u8], name: &str) -> Answer<Option<Vec<TileKernel>>> {
    let refuse = |why: String| Refusal::new(codes::INVALID_FILE, format!("{name}: {why}"));
    let kernels = match TileCode::of(bytes) {
        None => return Ok(None),
        Some(TileCode::Program) => of_program(bytes),
        Some(TileCode::Text) => of_text(bytes),
    };
    kernels.map(Some).map_err(refuse)
}

fn of_program(bytes: &[u8]) -> Result<Vec<TileKernel>, String> {
    let program = Program::from_bytes(bytes).map_err(|error| error.to_string())?;
    let ProgramBody::Plan(compiled) = program.body() else {
        return Err(format!(
            "the program is a {}, which has no tile kernels; load it with aclmdlLoadFromFile, or load the shared object with its kernels",
            program.body().name()
        ));
    };
    Ok(compiled.tile_kernels().to_vec())
}

fn of_text(bytes: &[u8]) -> Result<Vec<TileKernel>, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    TileKernel::parse_all(text).map_err(|error| format!("no text of tile kernels: {error}"))
}

/// A kernel that can be launched.
pub(crate) struct TileFunction {
    handle: Handle,
    kernel: TileKernel,
}

/// What a parameter of a launch is.
#[derive(Clone, Copy)]
struct LaunchParam<'f> {
    param: &'f Param,
    word: u64,
}

impl LaunchParam<'_> {
    fn name(&self) -> &str {
        self.param.name.as_str()
    }

    /// The tensor: its type, its direction and its address.
    fn tensor(&self) -> Option<(TileType, Direction, usize)> {
        let (direction, tile) = self.param.tensor()?;
        // An address that is none lies in no block.
        Some((tile, direction, usize::try_from(self.word).unwrap_or(usize::MAX)))
    }

    /// The scalar: its type and its bits.
    fn scalar(&self) -> Option<(DType, u64)> {
        let ParamKind::Scalar(dtype) = self.param.kind else { return None };
        let unused = 64 - 8 * dtype.bytes();
        Some((dtype, self.word << unused >> unused))
    }

    /// The bits of a scalar that is a constant in the program, because no symbol holds it.
    fn constant(&self) -> Option<u64> {
        self.scalar().filter(|(dtype, _)| *dtype == DType::F64).map(|(_, bits)| bits)
    }
}

impl TileFunction {
    pub(crate) const fn new(handle: Handle, kernel: TileKernel) -> Self {
        Self { handle, kernel }
    }

    pub(crate) fn name(&self) -> &str {
        self.kernel.name()
    }

    /// Bytes of each parameter: an address, or a scalar.
    pub(crate) fn sizes(kernel: &TileKernel) -> Vec<u32> {
        let size = |param: &Param| match param.kind {
            ParamKind::Tensor { .. } => size_of::<u64>(),
            ParamKind::Scalar(dtype) => dtype.bytes(),
        };
        kernel.params().iter().map(|param| u32::try_from(size(param)).unwrap_or(0)).collect()
    }

    fn operands<'f>(&'f self, words: &'f [u64]) -> impl Iterator<Item = LaunchParam<'f>> + Clone {
        let params = self.kernel.params().iter().zip(words);
        params.map(|(param, word)| LaunchParam { param, word: *word })
    }

    /// Refuses a launch that cannot be.
    pub(crate) fn check(&self, open: &Open, blocks: u32, words: &[u64]) -> Answer {
        let (name, wanted, found) = (self.name(), self.kernel.params().len(), words.len());
        require(blocks <= MOST_BLOCKS, || {
            Refusal::value(format!("{blocks} blocks; a launch has {MOST_BLOCKS} at most"))
        })?;
        require(wanted == found, || {
            Refusal::value(format!(
                "the kernel {name} takes {wanted} parameters, a word of 8 bytes for each, and {found} words were passed"
            ))
        })?;
        self.operands(words).try_for_each(|operand| self.check_tensor(open, blocks, operand))
    }

    fn check_tensor(&self, open: &Open, blocks: u32, operand: LaunchParam<'_>) -> Answer {
        let Some((tile, _, address)) = operand.tensor() else { return Ok(()) };
        let bytes = bytes_of(tile, blocks);
        let refuse = |why: String| {
            let kernel = self.name();
            Refusal::value(format!("parameter {} of the kernel {kernel}: {why}", operand.name()))
        };
        require(address.is_multiple_of(tile.dtype.bytes()), || {
            refuse(format!("{address:#x} is not aligned to elements of type {}", tile.dtype))
        })?;
        let owner = memory_map::device_of(address, bytes).map_err(|why| {
            refuse(format!("{}; {blocks} tiles {tile} take {bytes} bytes", why.text))
        })?;
        require(owner.is_some_and(|owner| owner.index == open.index), || {
            refuse(format!(
                "{address:#x} is not memory of device {}, where the stream is; allocate {bytes} bytes there with aclrtMalloc",
                open.index
            ))
        })
    }

    /// The memory that a launch uses.
    pub(crate) fn touches(&self, blocks: u32, words: &[u64]) -> Vec<Touch> {
        let touch = |operand: LaunchParam<'_>| {
            let (tile, direction, address) = operand.tensor()?;
            let how = if direction.is_written() { MemoryUse::Writes } else { MemoryUse::Reads };
            Some(Touch::new(how, address, bytes_of(tile, blocks)))
        };
        self.operands(words).filter_map(touch).collect()
    }

    /// Launches it in a lane. A fault of the kernel is that of the command.
    pub(crate) fn launch(&self, lane: &Lane, blocks: u32, words: &[u64]) -> Answer {
        self.check(&lane.open, blocks, words)?;
        let placed = self.placed(&lane.open, blocks, words)?;
        let tensors = self.operands(words).filter_map(|operand| operand.tensor());
        let addresses: Vec<_> = tensors.map(|(_, _, address)| gm(address)).collect();
        let run = placed.submit(lane.stream(), &addresses, self.bindings(words))?;
        let exception =
            Exception { function: self.handle, ..lane.exception(codes::AICORE_EXCEPTION) };
        lane.call(move || run.check().or_else(|fault| exception.raise(&format!("failed: {fault}"))))
    }

    /// The scalars of a launch.
    fn bindings(&self, words: &[u64]) -> WorkloadBindings {
        let bind = |bindings: WorkloadBindings, operand: LaunchParam<'_>| match operand.scalar() {
            None | Some((DType::F64, _)) => bindings,
            Some((dtype, bits)) if dtype.is_float() => {
                bindings.symbol(operand.name(), bits_as(dtype, bits, DType::F32))
            }
            // Signed ones get their sign in the upper bits.
            Some((dtype, bits)) => {
                bindings.symbol(operand.name(), bits_as(dtype, bits, DType::I64))
            }
        };
        self.operands(words).fold(WorkloadBindings::new(), bind)
    }

    /// The program of such a launch in the memory of the device.
    fn placed(&self, open: &Open, blocks: u32, words: &[u64]) -> Answer<Arc<PlacedProgram>> {
        let constants: Vec<u64> =
            self.operands(words).filter_map(|operand| operand.constant()).collect();
        let key = Key { device: open.index, function: self.handle, blocks, constants };
        let mut all = all_placed();
        if let Some((_, placed)) = all.iter().find(|(known, _)| *known == key) {
            return Ok(Arc::clone(placed));
        }
        let placed = Arc::new(open.stitcher()?.place(self.program(blocks, words)?)?);
        if all.len() == MOST_PLACED {
            all.pop_front();
        }
        all.push_back((key, Arc::clone(&placed)));
        Ok(placed)
    }

    /// A loop over the blocks, whose task is the kernel.
    fn program(&self, blocks: u32, words: &[u64]) -> Answer<Program> {
        let mut tensors = Vec::new();
        let mut arguments = Vec::new();
        for operand in self.operands(words) {
            let name = operand.name();
            arguments.push(match operand.param.kind {
                ParamKind::Tensor { tile, .. } => {
                    let shape = vec![blocks.into(), tile.rows.into(), tile.cols.into()];
                    tensors.push(Tensor { name: name.to_owned(), dtype: tile.dtype, shape });
                    TaskArgument::View(TensorSlice::at(tensors.len() - 1, [Expr::var(BLOCK)]))
                }
                ParamKind::Scalar(DType::F64) => TaskArgument::Number(f64::from_bits(operand.word)),
                ParamKind::Scalar(dtype) if dtype.is_float() => {
                    TaskArgument::Symbol(name.to_owned())
                }
                ParamKind::Scalar(dtype) if dtype.is_unsigned() => {
                    TaskArgument::Expr(Expr::symbol(name))
                }
                ParamKind::Scalar(_) => {
                    TaskArgument::Expr(Expr::cast(ScalarType::I64, Expr::symbol(name)))
                }
            });
        }
        let task = TreeNode::Task(Task { kernel: 0, axes: vec![Expr::var(BLOCK)], arguments });
        let blocks = Loop::new(BLOCK, Axis::Dense(blocks.into()));
        let mut workload =
            Workload::new(self.name(), TreeNode::ParallelFor(blocks, Box::new(task)));
        workload.tensors = tensors;
        workload.kernels = vec![self.kernel.clone()];
        let refuse = |why: String| {
            Refusal::unsupported(format!("the kernel {} cannot be launched: {why}", self.name()))
        };
        let checked = workload.check().map_err(|error| refuse(error.to_string()))?;
        Program::of_workload(&checked).map_err(|error| refuse(error.to_string()))
    }
}

/// Bytes of this many tiles.
fn bytes_of(tile: TileType, blocks: u32) -> usize {
    let blocks = usize::try_from(blocks).unwrap_or(usize::MAX);
    (tile.elements() * tile.dtype.bytes()).saturating_mul(blocks)
}

/// What a program on a device was made for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    device: i32,
    function: Handle,
    blocks: u32,
    constants: Vec<u64>,
}

type Placed = VecDeque<(Key, Arc<PlacedProgram>)>;

/// The programs of launches, the oldest first.
static PLACED: Mutex<Placed> = Mutex::new(VecDeque::new());

fn all_placed() -> MutexGuard<'static, Placed> {
    PLACED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Forgets what is on a device that is reset.
pub(crate) fn forget_all(device: i32) {
    all_placed().retain(|(key, _)| key.device != device);
}
