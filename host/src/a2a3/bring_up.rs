//! Image and kernels reach the device.
//!
//! ```text
//! bootstrap: image and device arguments to device memory -> the driver's own kernel loads the image, which writes itself to a file
//! register:  a description in JSON -> the driver finds the file and its functions
//! init:      the image's initialisation, once
//! kernels:   registered with the driver once a process; it cannot take them back
//! ```

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};
use std::{env, fs, process, ptr};

use pto_abi::GmAddr;
use pto_abi::bootstrap as abi;
use serde_json::json;

use super::calls::Handle;
use super::dma::Dma;
use super::error::A2a3Error;
use super::layouts::{
    AicpuArgs, BinaryConfig, BinaryOption, CpuKernelArgs, DevBinary, LaunchConfig,
};
use super::port::Port;
use crate::fw::Image;

const BOOTSTRAP: &str = "the bootstrap of the firmware";
const REGISTER: &str = "registering the firmware";
const INIT: &str = "initialising the firmware";
const KERNELS: &str = "registering the kernels";
/// The entries of an image.
const ENTRY_INIT: &str = "DynTileFwkBackendKernelServerInit";
const ENTRY_RUN: &str = "DynTileFwkBackendKernelServer";
/// The kind of an AICPU kernel whose caches see what AICores write.
const KERNEL_KIND_KFC: u32 = 5;
const OPERATOR: &str = "AST_DYN_AICPU";
/// The option of a binary that says what its file is, and the value for a description in JSON.
const OPTION_CPU_MODE: u32 = 3;
const MODE_JSON: u32 = 0;
/// AICore code for cubes and vectors.
const MAGIC_MIX: u32 = 0x4355_4245;
/// How long the driver may take for the bootstrap and the initialisation.
const WAIT_MS: i32 = 30_000;

/// What this process has brought to devices: the driver keeps it until the process ends.
#[derive(Default)]
struct Brought {
    firmware: BTreeSet<String>,
    kernels: Option<(String, usize)>,
}

static BROUGHT: Mutex<Option<Brought>> = Mutex::new(None);

/// The functions of a firmware that is registered.
pub(crate) struct Registered {
    binary: Handle,
    /// What every AICPU instance of a launch enters.
    pub(crate) run: Handle,
}

/// Brings the firmware to the device and initialises it.
pub(crate) fn firmware(
    port: &Port,
    image: &Image,
    stream: Handle,
) -> Result<Registered, A2a3Error> {
    with_brought(|brought| {
        if brought.firmware.insert(image.sha256.clone()) && brought.firmware.len() > 1 {
            brought.firmware.remove(&image.sha256);
            return Err(A2a3Error::OnePerProcess { what: "firmware" });
        }
        Ok(())
    })?;
    let tag = u64::from_str_radix(image.build_id.get(..16).unwrap_or(""), 16);
    let tag = tag.map_err(|_| A2a3Error::Bootstrap {
        what: "the image has no build id, from which its name on the device is made. Build it with `pto fw build`".to_owned(),
    })?;
    bootstrap(port, image, stream, tag)?;
    let device = u16::try_from(port.device()).unwrap_or(u16::MAX);
    let file = abi::file_name(device, tag);
    let registered = register(port, &String::from_utf8_lossy(&file), tag)?;
    let initialised =
        function(port, registered.binary, &operator(ENTRY_INIT, tag)).and_then(|init| {
            launch(port, init, 1, stream, GmAddr::NULL, INIT)?;
            wait(port, stream, INIT)
        });
    initialised.map(|()| registered)
}

fn with_brought<R>(act: impl FnOnce(&mut Brought) -> R) -> R {
    let mut brought = BROUGHT.lock().unwrap_or_else(PoisonError::into_inner);
    act(brought.get_or_insert_default())
}

fn bootstrap(port: &Port, image: &Image, stream: Handle, tag: u64) -> Result<(), A2a3Error> {
    let code = port.alloc(BOOTSTRAP, image.bytes().len() as u64)?;
    let device_args = port.alloc(BOOTSTRAP, abi::DEVICE_ARGS_BYTES as u64)?;
    let launched = port
        .to_device(code, image.bytes())
        .and_then(|()| {
            let words = device_args_words(port.device(), (code, image.bytes().len() as u64), tag);
            port.to_device(device_args, bytemuck::cast_slice(&words))
        })
        .and_then(|()| launch_bootstrap(port, stream, device_args))
        .and_then(|()| wait(port, stream, BOOTSTRAP));
    // What the device still uses after a failure goes with the reset that follows.
    launched?;
    port.free(BOOTSTRAP, device_args)?;
    port.free(BOOTSTRAP, code)
}

/// The device arguments: the image is both the library that is loaded first and the firmware.
fn device_args_words(
    device: u32,
    image: (GmAddr, u64),
    tag: u64,
) -> [u64; abi::DEVICE_ARGS_BYTES / 8] {
    let mut words = [0; abi::DEVICE_ARGS_BYTES / 8];
    words[abi::DEVICE_ARGS_DISPATCHER / 8] = image.0.0;
    words[abi::DEVICE_ARGS_DISPATCHER / 8 + 1] = image.1;
    words[abi::DEVICE_ARGS_DEVICE / 8] = device.into();
    words[abi::DEVICE_ARGS_FIRMWARE / 8] = image.0.0;
    words[abi::DEVICE_ARGS_FIRMWARE / 8 + 1] = image.1;
    words[abi::DEVICE_ARGS_TAG / 8] = tag;
    words
}

fn launch_bootstrap(port: &Port, stream: Handle, device_args: GmAddr) -> Result<(), A2a3Error> {
    let mut args = [0_u64; abi::ARGS_BYTES / 8];
    args[abi::ARGS_DEVICE_ARGS / 8] = device_args.0;
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut args);
    bytes[abi::ARGS_KERNEL_NAME..][..abi::KERNEL_NAME.len()].copy_from_slice(abi::KERNEL_NAME);
    bytes[abi::ARGS_SO_NAME..][..abi::SO_NAME.len()].copy_from_slice(abi::SO_NAME);
    let ex = AicpuArgs::of(&mut args, (abi::ARGS_SO_NAME, abi::ARGS_KERNEL_NAME));
    let name = Port::named(OPERATOR);
    let call = port.calls.launch_aicpu_by_args;
    // SAFETY: the structure is as the vendor knows it, and the call copies the arguments.
    let code =
        unsafe { call(KERNEL_KIND_KFC, name.as_ptr(), 1, &raw const ex, ptr::null(), stream, 0) };
    port.check(BOOTSTRAP, "rtAicpuKernelLaunchExWithArgs", code)
}

/// The name of an entry among all operators of the process.
fn operator(entry: &str, tag: u64) -> String {
    format!("{entry}_{tag:016x}")
}

fn register(port: &Port, file: &str, tag: u64) -> Result<Registered, A2a3Error> {
    let path = env::temp_dir().join(format!("pto-a2a3-{}-{}.json", process::id(), port.device()));
    let trouble = |source| A2a3Error::File { what: "writing the firmware's description", source };
    let described = description(file, tag);
    let written = fs::File::create(&path).and_then(|mut to| to.write_all(described.as_bytes()));
    written.map_err(trouble)?;
    let binary = load(port, &path.to_string_lossy());
    fs::remove_file(&path).map_err(trouble)?;
    let binary = binary?;
    let run = function(port, binary, &operator(ENTRY_RUN, tag));
    run.map(|run| Registered { binary, run })
}

/// The description of the entries for the driver.
fn description(file: &str, tag: u64) -> String {
    let entry = |name: &str| {
        json!({ "opInfo": {
            "functionName": name,
            "kernelSo": file,
            "opKernelLib": "AICPUKernel",
            "computeCost": "100",
            "engine": "DNN_VM_AICPU",
            "flagAsync": "False",
            "flagPartial": "False",
            "userDefined": "False",
        } })
    };
    let entries = [ENTRY_INIT, ENTRY_RUN].map(|name| (operator(name, tag), entry(name)));
    serde_json::Value::Object(entries.into_iter().collect()).to_string()
}

fn load(port: &Port, path: &str) -> Result<Handle, A2a3Error> {
    let option = BinaryOption { id: OPTION_CPU_MODE, value: [MODE_JSON, 0, 0, 0] };
    let config = BinaryConfig { options: &raw const option, count: 1 };
    let (name, mut binary) = (Port::named(path), ptr::null_mut());
    // SAFETY: the structures are as the vendor knows them.
    let code =
        unsafe { (port.calls.load_binary)(name.as_ptr(), &raw const config, &raw mut binary) };
    port.check(REGISTER, "rtsBinaryLoadFromFile", code)?;
    Ok(binary)
}

fn function(port: &Port, binary: Handle, name: &str) -> Result<Handle, A2a3Error> {
    let (name, mut function) = (Port::named(name), ptr::null_mut());
    let call = port.calls.function_by_name;
    // SAFETY: the binary is loaded, and there is a place for the handle.
    let code = unsafe { call(binary, name.as_ptr(), &raw mut function) };
    port.check(REGISTER, "rtsFuncGetByName", code)?;
    Ok(function)
}

/// Launches `instances` AICPU instances of a function, which find the launch words in their arguments.
pub(crate) fn launch(
    port: &Port,
    function: Handle,
    instances: u32,
    stream: Handle,
    words: GmAddr,
    step: &'static str,
) -> Result<(), A2a3Error> {
    let mut args = [0_u64; 8];
    args[pto_abi::launch_words::ARGS_LAUNCH_OFFSET / 8] = words.0;
    let base = AicpuArgs::of(&mut args, (0, 0));
    let mut args = CpuKernelArgs { base, head_offset: 0, reserved: [0; 4] };
    // The vendor's callers pass a buffer for attributes, and a count of zero.
    let attributes = [0_u64; 8];
    let config = LaunchConfig { attributes: attributes.as_ptr().cast(), count: 0 };
    let call = port.calls.launch_cpu_kernel;
    // SAFETY: the structures are as the vendor knows them, and the call copies the arguments.
    let code = unsafe { call(function, instances, stream, &raw const config, &raw mut args) };
    port.check(step, "rtsLaunchCpuKernel", code)
}

fn wait(port: &Port, stream: Handle, step: &'static str) -> Result<(), A2a3Error> {
    // SAFETY: the stream exists.
    let code = unsafe { (port.calls.synchronize_stream)(stream, WAIT_MS) };
    port.check(step, "aclrtSynchronizeStreamWithTimeout", code)
}

impl Registered {
    /// Lets the driver forget the firmware.
    pub(crate) fn unload(&self, port: &Port) -> Result<(), A2a3Error> {
        // SAFETY: the binary is loaded, and nothing of it runs.
        let code = unsafe { (port.calls.unload_binary)(self.binary) };
        port.check("letting the firmware go", "rtsBinaryUnload", code)
    }
}

/// Registers the AICores' code; once a process.
pub(crate) fn kernels(port: &Port, blob: &Image) -> Result<Handle, A2a3Error> {
    with_brought(|brought| match &brought.kernels {
        Some((sha256, handle)) if *sha256 == blob.sha256 => {
            Ok(ptr::with_exposed_provenance_mut(*handle))
        }
        Some(_) => Err(A2a3Error::OnePerProcess { what: "blob of kernels" }),
        None => {
            let handle = register_kernels(port, blob)?;
            brought.kernels = Some((blob.sha256.clone(), handle.expose_provenance()));
            Ok(handle)
        }
    })
}

fn register_kernels(port: &Port, blob: &Image) -> Result<Handle, A2a3Error> {
    let bytes = blob.core_program();
    let binary = DevBinary {
        magic: MAGIC_MIX,
        version: 0,
        code: bytes.as_ptr().cast(),
        bytes: bytes.len() as u64,
    };
    let mut handle = ptr::null_mut();
    // SAFETY: the structure is as the vendor knows it; the call copies the code.
    let code = unsafe { (port.calls.register_all_kernel)(&raw const binary, &raw mut handle) };
    port.check(KERNELS, "rtRegisterAllKernel", code)?;
    Ok(handle)
}
