//! Kernels: binaries, their functions, and arguments that are put together step by step.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use pto_host::abi::{CoreKind, FuncId};
use pto_host::workloads::TileKernel;
use pto_host::{Kernel, KernelFn};
use pto_native::kernels::{self, KernelSource};

use super::fleet;
use super::lane::Lane;
use super::memory_map;
use super::open::Open;
use super::parameters::{Declaration, MAX_PARAMETERS, Parameters};
use super::settings::{DeviceKind, MOST_DEVICES, settings};
use super::tile::{self, TileFunction};
use crate::common::codes;
use crate::common::order::Touch;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::{Handle, HandleTable, Kind, Lasting};

pub(crate) static BINARIES: HandleTable<Binary> = HandleTable::new(Kind::Binary);
/// Code stays loaded for as long as the process lives, and so do its functions.
pub(crate) static FUNCTIONS: Lasting<KernelFunction> = Lasting::new(Kind::Function);
pub(crate) static ARGUMENTS: HandleTable<Arguments> = HandleTable::new(Kind::Arguments);

/// Code with kernels in it.
pub(crate) struct Binary {
    object: Object,
    kind: CoreKind,
    functions: Mutex<Vec<(String, Handle)>>,
}

/// The cores that a kernel is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetCores {
    Cube,
    Vector,
}

impl TargetCores {
    const fn kind(self) -> CoreKind {
        match self {
            Self::Cube => CoreKind::AIC,
            Self::Vector => CoreKind::AIV,
        }
    }
}

/// Code with kernels in it, before it is loaded.
pub(crate) struct Object {
    bytes: Vec<u8>,
    name: String,
    form: Form,
}

/// What kind of code it is.
enum Form {
    /// A shared or a relocatable object, as far as its first bytes say.
    Machine,
    /// Kernels in tile IR. Their instructions say which cores they are for.
    Tiles(Vec<TileKernel>),
}

impl Object {
    /// Takes bytes that are code; `name` is what messages call it.
    pub(crate) fn of(bytes: Vec<u8>, name: String) -> Answer<Self> {
        if bytes.starts_with(b"\x7FELF") {
            check_object(&bytes, &name)?;
            return Ok(Self { bytes, name, form: Form::Machine });
        }
        let kernels = tile::read(&bytes, &name)?.ok_or_else(|| {
            let text = format!(
                "{name} is no ELF object, no program file and no text of tile kernels; pass a shared or a relocatable object with kernels for this machine, or \
                 kernels in tile IR"
            );
            Refusal::new(codes::INVALID_FILE, text)
        })?;
        Ok(Self { bytes, name, form: Form::Tiles(kernels) })
    }

    /// Reads the code in a file.
    pub(crate) fn read(path: String) -> Answer<Self> {
        let bytes = std::fs::read(&path).map_err(|error| {
            Refusal::new(codes::FILE_OPEN, format!("{path} cannot be read: {error}"))
        })?;
        Self::of(bytes, path)
    }
}

/// Refuses a shared object that is cut off: loading it would crash. Code for an emulated machine is not code of this process.
fn check_object(bytes: &[u8], name: &str) -> Answer {
    const KIND: usize = 16;
    const SHARED: [u8; 2] = 3_u16.to_ne_bytes();
    let is_shared = bytes.get(KIND..KIND + 2).is_none_or(|kind| kind == SHARED);
    if settings().machine == DeviceKind::Qemu || !is_shared {
        return Ok(());
    }
    pto_host::check_shared_object(bytes)
        .map_err(|why| Refusal::new(codes::INVALID_FILE, format!("{name} {why}")))
}

/// Takes code with kernels for these cores.
pub(crate) fn load(object: Object, cores: TargetCores) -> Handle {
    BINARIES.open(Binary { object, kind: cores.kind(), functions: Mutex::default() })
}

/// Makes a kernel of a function of the program.
pub(crate) fn of_function(name: &str, entry: usize, cores: TargetCores) -> Answer<Handle> {
    require(settings().machine == DeviceKind::Simulator, || {
        let text = format!(
            "{name} is a function of this process, which the cores of qemu do not run; load an object, and get the kernel by its name"
        );
        Refusal::unsupported(text)
    })?;
    let function = NonNull::new(std::ptr::with_exposed_provenance_mut::<c_void>(entry));
    let function = function.ok_or_else(|| Refusal::argument("entry is null; pass a function"))?;
    let source = KernelSource { name, symbol: name, kind: cores.kind() };
    // SAFETY: the caller passes a function `void entry(int64_t *args)` of the program, which stays loaded.
    let kernel = unsafe { kernels::from_pointer(function, source) };
    Ok(add(kernel, entry, Declaration::default()))
}

/// A kernel that can be launched.
pub(crate) struct KernelFunction {
    pub(crate) declaration: Declaration,
    code: FunctionCode,
}

/// What a launch runs.
#[expect(
    clippy::large_enum_variant,
    reason = "functions are few and stay where they are; a launch of machine code finds its number without one more pointer"
)]
enum FunctionCode {
    Machine(MachineFunction),
    Tile(Box<TileFunction>),
}

/// A kernel in machine code.
struct MachineFunction {
    handle: Handle,
    kernel: Kernel,
    /// The address of its code.
    entry: usize,
    /// The word of a launch that says what it costs.
    cost_word: OnceLock<usize>,
    /// The number that it has on each device, from its first launch there on.
    numbers: [AtomicU32; MOST_DEVICES],
}

/// The number of a function that was not launched on that device yet.
const NO_NUMBER: u32 = u32::MAX;

impl Binary {
    /// The code as it was loaded.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.object.bytes
    }

    /// The function of this name.
    pub(crate) fn function(&self, symbol: &str) -> Answer<Handle> {
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = functions.iter().find(|(name, _)| name == symbol) {
            return Ok(*known);
        }
        let handle = match &self.object.form {
            Form::Machine => self.of_machine_code(symbol)?,
            Form::Tiles(kernels) => self.of_tiles(kernels, symbol)?,
        };
        functions.push((symbol.to_owned(), handle));
        Ok(handle)
    }

    fn of_machine_code(&self, symbol: &str) -> Answer<Handle> {
        let Object { bytes, name, .. } = &self.object;
        let declaration = Declaration::of_object(bytes, name, symbol);
        if settings().machine == DeviceKind::Qemu {
            return Ok(add(of_machine(symbol)?, NO_ENTRY, declaration?));
        }
        let source = KernelSource { name: symbol, symbol, kind: self.kind };
        let entry = kernels::entry_of(bytes, source)
            .map_err(|failure| Refusal::new(codes::NO_SYMBOL, format!("{name}: {failure}")))?;
        // SAFETY: what the object calls a kernel is one; its author vouches for it, as for any code that is loaded.
        let kernel = unsafe { kernels::from_pointer(entry, source) };
        Ok(add(kernel, entry.as_ptr().expose_provenance(), declaration?))
    }

    fn of_tiles(&self, kernels: &[TileKernel], name: &str) -> Answer<Handle> {
        let found = kernels.iter().find(|kernel| kernel.name() == name);
        let kernel = found.ok_or_else(|| {
            let known: Vec<&str> = kernels.iter().map(TileKernel::name).collect();
            let (file, known) = (&self.object.name, known.join(", "));
            let text = format!("{file} has no tile kernel {name}; it has [{known}]");
            Refusal::new(codes::NO_SYMBOL, text)
        })?;
        let parameters = Parameters::of(name, &TileFunction::sizes(kernel))?;
        let declaration = Declaration::from(parameters);
        let code = |handle| FunctionCode::Tile(Box::new(TileFunction::new(handle, kernel.clone())));
        Ok(add_code(declaration, code))
    }
}

/// Kernels of a machine have no entry in this process.
const NO_ENTRY: usize = 0;

/// The kernel of this name among those that are flashed to the machine.
fn of_machine(name: &str) -> Answer<Kernel> {
    fleet::open(0)?.flashed(name).ok_or_else(|| {
        let text = format!(
            "the kernels that are flashed to qemu have no {name}; build yours into an image of kernels, and flash it with `pto fw flash`"
        );
        Refusal::new(codes::NO_SYMBOL, text)
    })
}

/// Makes a function of a kernel.
fn add(kernel: Kernel, entry: usize, declaration: Declaration) -> Handle {
    let numbers = [const { AtomicU32::new(NO_NUMBER) }; MOST_DEVICES];
    let cost_word = OnceLock::new();
    let code = |handle| {
        FunctionCode::Machine(MachineFunction { handle, kernel, entry, cost_word, numbers })
    };
    add_code(declaration, code)
}

/// Makes a function of what `code` gives for its handle.
fn add_code(declaration: Declaration, code: impl FnOnce(Handle) -> FunctionCode) -> Handle {
    let mut given = 0;
    FUNCTIONS.open_with(|handle| {
        given = handle;
        KernelFunction { declaration, code: code(handle) }
    });
    given
}

/// What calls a kernel whose arguments lie in memory of the device: its words are the kernel, where its arguments are, how many, whether there are
/// several blocks, and null or a flag that is set instead where an argument is an address that nothing is mapped at; followed by the block context.
unsafe extern "C" fn fetch(args: *const u64) {
    const ENTRY: usize = 0;
    let word = |index| {
        // SAFETY: `launch_from` passes five words, and the device one more.
        let word = unsafe { args.add(index) };
        // SAFETY: as above.
        unsafe { word.read() }
    };
    let address = |index| usize::try_from(word(index)).unwrap_or(0);
    let count = address(2).min(MAX_PARAMETERS - 1);
    let mut held = [0_u64; MAX_PARAMETERS];
    // SAFETY: `launch_from` has these words looked up in a live block.
    unsafe { copy_words(address(1), &mut held[..count]) };
    let flag = std::ptr::with_exposed_provenance::<AtomicBool>(address(4));
    // SAFETY: null, or `launch_from` keeps the flag until the launch is over.
    let flag = unsafe { flag.as_ref() };
    if let Some(flag) = flag
        && memory_map::check_words(&held[..count]).is_err()
    {
        // Relaxed: the stream orders the kernel before who looks.
        return flag.store(true, Ordering::Relaxed);
    }
    if address(3) == 1 {
        held[count] = word(5);
    }
    let entry = std::ptr::with_exposed_provenance::<()>(address(ENTRY));
    // SAFETY: the entry is that of a kernel.
    let entry = unsafe { std::mem::transmute::<*const (), KernelFn>(entry) };
    // SAFETY: it is called with its words, as the device would.
    unsafe { entry(held.as_ptr()) };
}

/// Copies words from an address, which need not be one of words.
///
/// # Safety
/// As many words can be read there.
unsafe fn copy_words(from: usize, to: &mut [u64]) {
    let from = std::ptr::with_exposed_provenance::<u8>(from);
    // SAFETY: the caller promises the words; those of a slice are no memory of a device.
    unsafe { std::ptr::copy_nonoverlapping(from, to.as_mut_ptr().cast(), size_of_val(to)) };
}

/// The handle under which `fetch` is registered. Handles of functions never have this value.
const FETCH: Handle = 1;

impl KernelFunction {
    pub(crate) fn name(&self) -> &str {
        match &self.code {
            FunctionCode::Machine(machine) => machine.kernel.name(),
            FunctionCode::Tile(tile) => tile.name(),
        }
    }

    /// A word of each launch says what the launch costs in virtual time. It holds from the first launch on.
    pub(crate) fn set_cost_word(&self, at: usize) -> Answer {
        match &self.code {
            FunctionCode::Machine(machine) => {
                let set = machine.cost_word.set(at);
                set.map_err(|_| Refusal::value("the function has a word for its cost already"))
            }
            FunctionCode::Tile(_) => Err(Refusal::value(
                "the function is a tile kernel, whose instructions say what it costs",
            )),
        }
    }

    /// Launches it in a lane.
    #[inline]
    pub(crate) fn launch(&self, lane: &Lane, blocks: u32, words: &[u64]) -> Answer {
        match &self.code {
            FunctionCode::Machine(machine) => machine.launch(lane, blocks, words),
            FunctionCode::Tile(tile) => tile.launch(lane, blocks, words),
        }
    }

    /// Refuses what cannot be launched, as far as its words say.
    pub(crate) fn check(&self, open: &Open, blocks: u32, words: &[u64]) -> Answer {
        match &self.code {
            FunctionCode::Machine(_) => memory_map::check_words(words),
            FunctionCode::Tile(tile) => tile.check(open, blocks, words),
        }
    }

    /// Refuses a parameter of another size than the kernel's, where the kernel knows it. A whole word is one for every scalar.
    pub(crate) fn check_size(&self, index: usize, bytes: usize) -> Answer {
        let FunctionCode::Tile(tile) = &self.code else { return Ok(()) };
        let (_, wanted) = self.declaration.get(tile.name())?.extent(index)?;
        require(bytes == wanted || bytes == size_of::<u64>(), || {
            let name = tile.name();
            Refusal::value(format!(
                "parameter {index} of the kernel {name} has {wanted} bytes, and {bytes} were passed"
            ))
        })
    }

    /// The memory that a launch uses, where the kernel says it.
    pub(crate) fn touches(&self, blocks: u32, words: &[u64]) -> Option<Vec<Touch>> {
        match &self.code {
            FunctionCode::Machine(_) => None,
            FunctionCode::Tile(tile) => Some(tile.touches(blocks, words)),
        }
    }

    /// Launches it with `count` words at `at` in memory of the device.
    pub(crate) fn launch_from(&self, lane: &Lane, blocks: u32, at: usize, count: usize) -> Answer {
        match &self.code {
            FunctionCode::Machine(machine) if machine.entry != NO_ENTRY => {
                machine.launch_from(lane, blocks, at, count)
            }
            FunctionCode::Machine(_) | FunctionCode::Tile(_) => {
                self.launch_after(lane, blocks, at, count)
            }
        }
    }

    /// As `launch_from`, where no function of this process can fetch the words: the host waits for the turn, and reads them itself.
    fn launch_after(&self, lane: &Lane, blocks: u32, at: usize, count: usize) -> Answer {
        lane.synchronize(None)?;
        let mut held = vec![0_u64; count];
        // SAFETY: the words were looked up in a live block, and the caller frees it after the launch.
        unsafe { copy_words(at, &mut held) };
        self.launch(lane, blocks, &held)
    }
}

impl MachineFunction {
    /// Launches it in a lane.
    #[inline]
    fn launch(&self, lane: &Lane, blocks: u32, words: &[u64]) -> Answer {
        memory_map::check_words(words)?;
        let id = self.number_on(&lane.open)?;
        lane.stream().launch_blocks(id, blocks, words)?;
        Ok(())
    }

    /// The number that it has on a device.
    #[inline]
    fn number_on(&self, open: &Open) -> Answer<FuncId> {
        let number = usize::try_from(open.index).ok().and_then(|index| self.numbers.get(index));
        // Acquire: pairs with the Release below, after the registration.
        let known = number.map_or(NO_NUMBER, |number| number.load(Ordering::Acquire));
        if let Ok(known) = u16::try_from(known) {
            return Ok(FuncId(known));
        }
        let kernel = match self.cost_word.get() {
            Some(word) => &self.kernel.clone().with_cost_word(*word),
            None => &self.kernel,
        };
        let id = open.kernel(self.handle, kernel)?;
        if let Some(number) = number {
            // Release: pairs with the Acquire above. A device keeps the number as long as the process.
            number.store(id.0.into(), Ordering::Release);
        }
        Ok(id)
    }

    /// Launches it with `count` words at `at` in memory of the device: a function of this process fetches them.
    fn launch_from(&self, lane: &Lane, blocks: u32, at: usize, count: usize) -> Answer {
        let kernel =
            Kernel::from_fn("kernel with arguments on the device", self.kernel.kind(), fetch);
        let id = lane.open.kernel(FETCH, &kernel)?;
        let several = u64::from(blocks > 1);
        let is_unmapped = memory_map::has_reserved().then(Arc::<AtomicBool>::default);
        let flag = is_unmapped.as_ref().map_or(0, |flag| Arc::as_ptr(flag).expose_provenance());
        let words = [self.entry as u64, at as u64, count as u64, several, flag as u64];
        lane.stream().launch_blocks(id, blocks, &words)?;
        let Some(is_unmapped) = is_unmapped else { return Ok(()) };
        let name = self.kernel.name().to_owned();
        lane.call(move || {
            // Relaxed: the stream orders the kernel before this.
            require(!is_unmapped.load(Ordering::Relaxed), || {
                Refusal::value(format!(
                    "the kernel {name} was not run: an argument is a reserved address, and no physical memory is mapped there; call aclrtMapMem first"
                ))
            })
        })
    }
}

/// Arguments that are put together step by step; each parameter has a word of its own, or a buffer in `extra` whose address is the word.
#[derive(Default)]
pub(crate) struct Arguments {
    state: Mutex<LaunchArgs>,
}

/// The parts of arguments.
#[derive(Default)]
pub(crate) struct LaunchArgs {
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) is_final: bool,
}

/// One parameter.
pub(crate) enum Parameter {
    Bytes(Vec<u8>),
    /// Memory of the host, which the kernel reads through its address.
    Buffer(Vec<u64>),
}

/// Arguments without parameters.
pub(crate) fn new_arguments() -> Handle {
    ARGUMENTS.open(Arguments::default())
}

impl Arguments {
    /// Adds a parameter of these bytes; its number from 1 is its handle.
    pub(crate) fn append(&self, bytes: Vec<u8>) -> Answer<usize> {
        self.lock().add(Parameter::Bytes(bytes))
    }

    /// Adds a parameter whose bytes get a buffer of their own.
    pub(crate) fn append_placeholder(&self) -> Answer<usize> {
        self.lock().add(Parameter::Buffer(Vec::new()))
    }

    /// Resizes the buffer of a parameter, and returns its address.
    pub(crate) fn buffer(&self, parameter: usize, bytes: usize) -> Answer<usize> {
        let mut parts = self.lock();
        let Parameter::Buffer(held) = parts.part(parameter)? else {
            return Err(Refusal::value("the parameter is no place holder; append one first"));
        };
        *held = vec![0; bytes.div_ceil(8)];
        Ok(held.as_mut_ptr().expose_provenance())
    }

    /// Gives a parameter other bytes, as many as it has.
    pub(crate) fn update(&self, parameter: usize, value: Vec<u8>) -> Answer {
        let mut parts = self.lock();
        let Parameter::Bytes(held) = parts.part(parameter)? else {
            return Err(Refusal::value("the parameter is a place holder; write to its buffer"));
        };
        require(held.len() == value.len(), || {
            Refusal::value(format!(
                "the parameter has {} bytes, and {} were passed",
                held.len(),
                value.len()
            ))
        })?;
        *held = value;
        Ok(())
    }

    /// No parameter is added any more.
    pub(crate) fn finish(&self) {
        self.lock().is_final = true;
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, LaunchArgs> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LaunchArgs {
    /// Adds a parameter; its number from 1 is its handle.
    pub(crate) fn add(&mut self, part: Parameter) -> Answer<usize> {
        require(!self.is_final, || Refusal::value("the arguments are final; begin new ones"))?;
        require(self.parameters.len() < MAX_PARAMETERS, || {
            Refusal::value(format!(
                "a kernel takes {MAX_PARAMETERS} parameters, and there are so many"
            ))
        })?;
        self.parameters.push(part);
        Ok(self.parameters.len())
    }

    /// The parameter with this handle.
    pub(crate) fn part(&mut self, handle: usize) -> Answer<&mut Parameter> {
        let index = handle.checked_sub(1);
        let part = index.and_then(|index| self.parameters.get_mut(index));
        part.ok_or_else(|| Refusal::new(codes::BAD_HANDLE, "there is no such parameter"))
    }
}
