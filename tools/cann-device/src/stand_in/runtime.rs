//! `rt*` and `rts*`: binaries, functions, launches.

use std::ffi::{CStr, c_char, c_void};
use std::fs;

use crate::Code;
use crate::acl::{BAD_HANDLE, CANNOT_SET_UP, exports, give, give_handle, number, on_device};
use crate::checks::{BAD_ARGUMENT, Expected, Refusal, bytes_at, half, refuse, word};
use crate::emulator::Code as ElfCode;
use crate::json;
use crate::machine::{CoreProgram, Engine, Held, Operation};

const NOT_FOUND: Code = 507_027;
const OUT_OF_MEMORY: Code = 207_001;
const BAD_FILE: Code = 107_009;

/// The bootstrap's arguments, and the device arguments that they name.
const BOOTSTRAP_BYTES: usize = 304;
const DEVICE_ARGS_BYTES: usize = 160;
const SO_NAME: &[u8] = b"libaicpu_extend_kernels.so\0";
const KERNEL_NAME: &[u8] = b"DynTileFwkKernelServerInit\0";
/// The entries of a worker for both kinds of cores, by which a program is told from a blob of kernels.
const WORKER_ENTRIES: [&[u8]; 2] = [b"pto_worker_0_mix_aic\0", b"pto_worker_0_mix_aiv\0"];
/// AICore code for both kinds of cores.
const MAGIC_MIX: u32 = 0x4355_4245;

fn text(name: &str, string: *const c_char) -> Result<String, Refusal> {
    if string.is_null() {
        return refuse(format!("{name} is null"));
    }
    // SAFETY: not null; the interface obliges the caller to pass a string.
    Ok(unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned())
}

/// Copies arguments to device memory, as a launch does before it returns.
fn keep(machine: &mut Held, args: &[u8]) -> Result<u64, Refusal> {
    let no_room = || (OUT_OF_MEMORY, "no room for the arguments".to_owned());
    let memory = machine.memory.as_mut().ok_or_else(no_room)?;
    let at = memory.alloc(args.len() as u64).ok_or_else(no_room)?;
    memory.write(at, args.as_ptr().cast(), args.len()).ok_or_else(no_room)?;
    Ok(at)
}

fn submit(machine: &mut Held, stream: *mut c_void, operation: Operation) -> Result<(), Refusal> {
    let submitted = machine.submit(number(stream), operation);
    submitted.ok_or_else(|| (BAD_HANDLE, "no stream".to_owned()))
}

/// The device arguments of the bootstrap: two libraries in device memory, the device, and a word of the host's own. Whose code the libraries are.
fn check_device_args(machine: &Held, args: &[u8]) -> Result<ElfCode, Refusal> {
    let Some(memory) = &machine.memory else { return refuse("no device") };
    let device_args = memory.read(word(args, 40), DEVICE_ARGS_BYTES);
    let Some(device_args) = device_args else {
        return refuse("the device arguments are not in device memory");
    };
    let expected =
        Expected::new("the bootstrap's device arguments", DEVICE_ARGS_BYTES).holds(112, &[0; 8]);
    expected.free(96, 16).free(120, 24).check(&device_args)?;
    let code_at = |at: usize| {
        let (start, bytes) = (word(&device_args, at), word(&device_args, at + 8));
        let head = memory.read(start, ElfCode::HEAD).unwrap_or_default();
        let code = ElfCode::of(&head).filter(|_| memory.holds(start, bytes));
        let why = || {
            format!("the library at {at} of the device arguments is no firmware in device memory")
        };
        code.ok_or_else(|| (BAD_ARGUMENT, why()))
    };
    let (dispatcher, firmware) = (code_at(96)?, code_at(120)?);
    if dispatcher != firmware {
        return refuse("the libraries of the device arguments are of two machines");
    }
    Ok(firmware)
}

exports! {
    fn rtAicpuKernelLaunchExWithArgs(
        kind: u32, operator: *const c_char, blocks: u32, args: *const c_void, unused: *const c_void, stream: *mut c_void, flags: u32
    ) -> Code {
        on_device("rtAicpuKernelLaunchExWithArgs", |machine| {
            let operator = text("the operator", operator)?;
            if (kind, operator.as_str(), blocks, flags) != (5, "AST_DYN_AICPU", 1, 0) || !unused.is_null() {
                return refuse(format!("kind {kind}, operator {operator}, {blocks} blocks, flags {flags}"));
            }
            let ex = bytes_at("rtAicpuArgsEx_t", args, 48)?;
            let names = [240_u32.to_le_bytes(), 208_u32.to_le_bytes()].concat();
            let expected = Expected::new("rtAicpuArgsEx_t", 48).free(0, 8).holds(32, &names);
            expected.holds(24, &304_u32.to_le_bytes()).check(&ex)?;
            let args = bytes_at("the arguments", pointer_in(&ex, 0), BOOTSTRAP_BYTES)?;
            let expected = Expected::new("the bootstrap's arguments", BOOTSTRAP_BYTES).free(40, 8);
            expected.holds(208, KERNEL_NAME).holds(240, SO_NAME).check(&args)?;
            let code = check_device_args(machine, &args)?;
            machine.power_up(code).map_err(|why| (CANNOT_SET_UP, why))?;
            let at = keep(machine, &args)?;
            submit(machine, stream, Operation::new(Engine::Aicpu, ("bootstrap", at.to_string()), at))
        })
    }

    fn rtsBinaryLoadFromFile(path: *const c_char, configuration: *const c_void, binary: *mut *mut c_void) -> Code {
        on_device("rtsBinaryLoadFromFile", |machine| {
            let config = bytes_at("rtLoadBinaryConfig_t", configuration, 16)?;
            Expected::new("rtLoadBinaryConfig_t", 16).free(0, 8).holds(8, &[1]).check(&config)?;
            let option = bytes_at("rtLoadBinaryOption_t", pointer_in(&config, 0), 20)?;
            Expected::new("rtLoadBinaryOption_t", 20).holds(0, &[3]).check(&option)?;
            let path = text("the path", path)?;
            let described = fs::read_to_string(&path).map_err(|error| (BAD_FILE, format!("{path}: {error}")))?;
            let entries = json::entries(&described).map_err(|why| (BAD_FILE, format!("{path}: {why}")))?;
            let handle = machine.handle();
            machine.binaries.insert(handle, entries);
            give_handle(binary, handle)
        })
    }

    fn rtsBinaryUnload(binary: *mut c_void) -> Code {
        on_device("rtsBinaryUnload", |machine| {
            let handle = number(binary);
            machine.functions.retain(|_, function| function.0 != handle);
            match machine.binaries.remove(&handle) {
                Some(_) => Ok(()),
                None => Err((BAD_HANDLE, "no binary".to_owned())),
            }
        })
    }

    fn rtsFuncGetByName(binary: *mut c_void, name: *const c_char, function: *mut *mut c_void) -> Code {
        on_device("rtsFuncGetByName", |machine| {
            let name = text("the name", name)?;
            let entries = machine.binaries.get(&number(binary));
            let entries = entries.ok_or_else(|| (BAD_HANDLE, "no binary".to_owned()))?;
            let found = entries.get(&name).cloned();
            let (library, entry) = found.ok_or_else(|| (NOT_FOUND, format!("no function {name}")))?;
            let handle = machine.handle();
            machine.functions.insert(handle, (number(binary), library, entry));
            give_handle(function, handle)
        })
    }

    fn rtsLaunchCpuKernel(
        function: *mut c_void, instances: u32, stream: *mut c_void, configuration: *const c_void, args: *mut c_void
    ) -> Code {
        on_device("rtsLaunchCpuKernel", |machine| {
            let config = bytes_at("rtKernelLaunchCfg_t", configuration, 16)?;
            Expected::new("rtKernelLaunchCfg_t", 16).free(0, 8).check(&config)?;
            let ex = bytes_at("rtCpuKernelArgs_t", args, 72)?;
            Expected::new("rtCpuKernelArgs_t", 72).free(0, 8).free(24, 4).check(&ex)?;
            let bytes = half(&ex, 24) as usize;
            if !(56..=4096).contains(&bytes) || !(1..=6).contains(&instances) {
                return refuse(format!("{bytes} bytes of arguments, {instances} instances"));
            }
            let args = bytes_at("the arguments", pointer_in(&ex, 0), bytes)?;
            // The word at 40 is the bootstrap's: with it, an image would install itself again.
            Expected::new("the arguments", bytes).free(48, 8).check(&args)?;
            let entry = machine.functions.get(&number(function)).cloned();
            let (_, library, entry) = entry.ok_or_else(|| (BAD_HANDLE, "no function".to_owned()))?;
            let at = keep(machine, &args)?;
            let order = format!("{library} {entry} {instances} {at}");
            submit(machine, stream, Operation::new(Engine::Aicpu, ("aicpu", order), at))
        })
    }

    fn rtRegisterAllKernel(binary: *const c_void, handle: *mut *mut c_void) -> Code {
        on_device("rtRegisterAllKernel", |machine| {
            let described = bytes_at("rtDevBinary_t", binary, 24)?;
            let expected = Expected::new("rtDevBinary_t", 24).holds(0, &MAGIC_MIX.to_le_bytes());
            expected.free(8, 16).check(&described)?;
            let head = bytes_at("the code", pointer_in(&described, 8), ElfCode::HEAD)?;
            let code = ElfCode::of(&head).filter(|_| word(&described, 16) >= 64);
            let Some(code) = code else { return refuse("the code is no ELF file of a machine that is known") };
            let bytes = usize::try_from(word(&described, 16)).unwrap_or(0);
            let file = bytes_at("the code", pointer_in(&described, 8), bytes)?;
            let has = |entry: &[u8]| file.windows(entry.len()).any(|bytes| bytes == entry);
            let has_worker = WORKER_ENTRIES.iter().all(|entry| has(entry));
            let worker = has_worker.then_some(file);
            if !machine.registered.is_empty() {
                return Err((OUT_OF_MEMORY, "a second binary in one process, which nothing takes back".to_owned()));
            }
            let made = machine.handle();
            machine.registered.insert(made, CoreProgram { code, worker });
            give_handle(handle, made)
        })
    }

    fn rtKernelLaunchWithHandleV2(
        handle: *mut c_void, tiling: u64, blocks: u32, args: *mut c_void, unused: *mut c_void, stream: *mut c_void,
        configuration: *const c_void
    ) -> Code {
        on_device("rtKernelLaunchWithHandleV2", |machine| {
            let program = machine.registered.get(&number(handle)).cloned();
            let program = program.ok_or_else(|| (BAD_HANDLE, "no AICore binary".to_owned()))?;
            machine.power_up(program.code).map_err(|why| (BAD_ARGUMENT, format!("the kernels: {why}")))?;
            let worker = match (&machine.emulator, &program.worker) {
                (Some(emulator), Some(file)) => {
                    let name = format!("worker-{}.so", number(handle));
                    emulator.keep(&name, file).map_err(|why| (CANNOT_SET_UP, why))?;
                    format!(" {name}")
                }
                _ => String::new(),
            };
            if tiling != 0 || !unused.is_null() || blocks == 0 || blocks > crate::die::clusters() {
                return refuse(format!("tiling {tiling}, {blocks} blocks"));
            }
            let ex = bytes_at("rtArgsEx_t", args, 40)?;
            Expected::new("rtArgsEx_t", 40).free(0, 8).holds(16, &[16]).check(&ex)?;
            let config = bytes_at("rtTaskCfgInfo_t", configuration, 16)?;
            Expected::new("rtTaskCfgInfo_t", 16).holds(2, &[1]).check(&config)?;
            let args = bytes_at("the arguments", pointer_in(&ex, 0), 16)?;
            let expected = Expected::new("the arguments", 16).holds(0, &C2C_ADDRESS.to_le_bytes());
            expected.free(8, 8).check(&args)?;
            let at = keep(machine, &args)?;
            let order = ("aicore", format!("{blocks} {at}{worker}"));
            submit(machine, stream, Operation::new(Engine::Aicore, order, at))
        })
    }

    fn rtGetC2cCtrlAddr(address: *mut u64, bytes: *mut u32) -> Code {
        on_device("rtGetC2cCtrlAddr", |_| {
            give(address, C2C_ADDRESS)?;
            give(bytes, 0x1000)
        })
    }
}

/// Where the cores signal each other.
const C2C_ADDRESS: u64 = 0x0010_0C2C_0000;

/// The address at an offset of a structure.
fn pointer_in(bytes: &[u8], offset: usize) -> *const c_void {
    std::ptr::with_exposed_provenance(usize::try_from(word(bytes, offset)).unwrap_or(0))
}
