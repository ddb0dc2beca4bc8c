//! `pto compat cann run`: a program on our library for the CANN interface. `pto compat cann replay`: the calls of a program without the program.
//!
//! Programs link or load the library under several names. A folder with links of these names is in front of the library path; the
//! settings of the library go through the environment (docs/reference/acl.md).

use std::ffi::OsString;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use pto_acl_interface::Fault;
use pto_host::QemuDeviceOptions;
use pto_host::abi::numbers::Counted;
use pto_host::fw::Tracing;
use tempfile::TempDir;

use crate::args::{AclArgs, AclCommand, AclSettings, DeviceChoice};
use crate::errors::{Exit, Failure};
use crate::fw::flashed;
use crate::output_file;

/// The names that programs know the library by.
const NAMES: &[&str] = &["libascendcl.so", "libacl_rt.so", "libmsprofiler.so", "libruntime.so"];
const FILE: &str = "libascendcl.so";
/// The graph compiler, which is next to the library, and the names that frameworks know it by.
const COMPILER: &str = "libacl_op_compiler.so";
const COMPILER_NAMES: &[&str] = &[COMPILER, "libfmk_onnx_parser.so"];
/// The names that programs know the library of operators by, which lies next to the library.
const OPERATOR_NAMES: &[&str] = &[
    "libopapi.so",
    "libopapi_nn.so",
    "libopapi_math.so",
    "libnnopbase.so",
    "libgraph.so",
    "libop_common.so",
];
const OPERATOR_FILE: &str = "libopapi.so";
/// The library of collectives, which lies next to the library.
const COLLECTIVES: &str = "libhccl.so";
/// The plug-in for simulated devices and for the emulated machine.
const PLUGIN: &str = "libpto_acl.so";
/// The seed of virtual time, for the library.
const SEED: &str = "PTO_ACL_SEED";
/// The program that makes the calls of a record.
const REPLAY: &str = "pto-acl-replay";

/// Runs a program, and ends as the program does, unless a fault that was asked for did not happen.
pub(crate) fn acl(args: &AclArgs) -> Result<Exit, Failure> {
    match &args.command {
        AclCommand::Run(args) => {
            let (program, arguments) =
                args.program.split_first().unwrap_or_else(|| unreachable!("clap asks for one"));
            let mut command = Command::new(program);
            command.args(arguments);
            if let Some(record) = &args.record {
                output_file::check(record)?;
                command.env("PTO_ACL_RECORD", absolute(record));
            }
            run(command, &args.settings)
        }
        AclCommand::Replay(args) => {
            let mut command = Command::new(sibling(REPLAY).ok_or_else(|| {
                Failure::usage(format!(
                    "there is no {REPLAY} next to this command; build it (`cargo build -p pto-acl`)"
                ))
            })?);
            command.arg(&args.record);
            run(command, &args.settings)
        }
    }
}

fn run(mut command: Command, settings: &AclSettings) -> Result<Exit, Failure> {
    settings.trace.as_deref().map_or(Ok(()), |path| output_file::check_form(path, "json"))?;
    let library = library(settings.library.as_deref())?;
    prepare(settings, &library)?;
    let folder = links(&library, settings.device)?;
    let happened = folder.path().join("happened");
    command.env("LD_LIBRARY_PATH", path(folder.path())).envs(variables(settings));
    if !settings.fails.is_empty() {
        command.env("PTO_ACL_HAPPENED", &happened);
    }
    let end = match settings.seeds {
        None => once(&mut command, settings, &happened),
        Some(count) => each_seed(&mut command, settings, count, &happened),
    };
    drop(folder);
    match end? {
        End::Missed(sentence) => {
            eprintln!("pto: {sentence}");
            Ok(Exit::Wrong)
        }
        End::Own(code) => std::process::exit(code),
    }
}

/// How a program ended.
enum End {
    /// With this code; where a signal ended it, with the one that a shell would give.
    Own(i32),
    /// With 0, although a fault did not happen; a sentence that says so.
    Missed(String),
}

impl End {
    fn of(status: ExitStatus, settings: &AclSettings, happened: &Path) -> Result<Self, Failure> {
        let missed = missed(&settings.fails, happened)?;
        if status.success() && !missed.is_empty() && !settings.allow_missed_fault {
            return Ok(Self::Missed(sentence(&missed)));
        }
        let signalled = status.signal().map(|signal| 128 + signal);
        Ok(Self::Own(status.code().or(signalled).unwrap_or(1)))
    }
}

/// Runs the program once.
fn once(command: &mut Command, settings: &AclSettings, happened: &Path) -> Result<End, Failure> {
    let status = command.status().map_err(|error| cannot_start(command, &error))?;
    End::of(status, settings, happened)
}

/// Runs the program with one seed after the other, and shows what it says with the first one that does not end with 0.
fn each_seed(
    command: &mut Command,
    settings: &AclSettings,
    count: u64,
    happened: &Path,
) -> Result<End, Failure> {
    let first = settings.seed.unwrap_or(0);
    let last = first.checked_add(count - 1).ok_or_else(|| {
        Failure::usage(format!(
            "there are no {count} seeds from {first} on; begin with a lower one"
        ))
    })?;
    command.stdin(Stdio::null());
    for seed in first..=last {
        // The faults of the run before.
        match std::fs::remove_file(happened) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(Failure::internal(format!(
                    "cannot forget which faults happened: {error}"
                )));
            }
            _ => {}
        }
        command.env(SEED, seed.to_string());
        let output = command.output().map_err(|error| cannot_start(command, &error))?;
        let end = End::of(output.status, settings, happened)?;
        if matches!(end, End::Own(0)) {
            continue;
        }
        let shown = std::io::stdout().write_all(&output.stdout);
        shown.and_then(|()| std::io::stderr().write_all(&output.stderr)).unwrap_or_default();
        let passed = Counted(seed - first, "seed");
        eprintln!(
            "pto: seed {seed} fails, after {passed} that passed; --seed {seed} without --seeds repeats it"
        );
        return Ok(end);
    }
    println!("{} passed, from {first} on", Counted(count, "seed"));
    Ok(End::Own(0))
}

fn cannot_start(command: &Command, error: &std::io::Error) -> Failure {
    let program = Path::new(command.get_program()).display();
    Failure::usage(format!("cannot start '{program}': {error}"))
}

/// The faults that are not in the file of those that happened. A fault that is asked for twice happens twice.
fn missed<'a>(asked: &'a [Fault], happened: &Path) -> Result<Vec<&'a Fault>, Failure> {
    let text = match std::fs::read_to_string(happened) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => {
            return Err(Failure::internal(format!("cannot read which faults happened: {error}")));
        }
    };
    let mut lines: Vec<&str> = text.lines().collect();
    let mut has_happened = |fault: &Fault| {
        let index = lines.iter().position(|line| *line == fault.to_string());
        index.map(|index| lines.swap_remove(index)).is_some()
    };
    Ok(asked.iter().filter(|fault| !has_happened(fault)).collect())
}

/// What it means that faults did not happen.
fn sentence(missed: &[&Fault]) -> String {
    let names: Vec<String> = missed.iter().map(|fault| format!("--fail {fault}")).collect();
    format!(
        "the program ended with exit code 0, but not every fault happened, so that they are not tested: {}. Name an earlier call or \
         command, or accept it with --allow-missed-fault",
        names.join(", ")
    )
}

/// A file next to this command, or in `../lib`.
fn sibling(name: &str) -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let own = own.parent()?;
    [own.join(name), own.join("../lib").join(name)].into_iter().find(|file| file.is_file())
}

/// The program may work in another folder.
fn absolute(file: &Path) -> OsString {
    std::path::absolute(file).unwrap_or_else(|_| file.to_path_buf()).into_os_string()
}

/// The library: as named, or next to this command.
fn library(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let found = match named {
        Some(file) => Some(file.to_path_buf()).filter(|file| file.is_file()),
        None => sibling(FILE),
    };
    let found = found.and_then(|file| file.canonicalize().ok());
    found.ok_or_else(|| match named {
        Some(file) => Failure::usage(format!("there is no library '{}'", file.display())),
        None => Failure::usage(format!(
            "there is no {FILE} next to this command; build it (`cargo build -p pto-acl -p pto-acl-entry`), or name it with --library"
        )),
    })
}

/// What the library calls a device.
fn name_of(device: DeviceChoice) -> &'static str {
    match device {
        DeviceChoice::A2a3sim => "a2a3sim",
        DeviceChoice::Qemu => "qemu",
        DeviceChoice::A2a3 => "a2a3",
    }
}

/// Refuses what the device does not have; `qemu` is given an image first, if it has none.
fn prepare(args: &AclSettings, library: &Path) -> Result<(), Failure> {
    let Some(device) = args.device else { return Ok(()) };
    let name = name_of(device);
    if args.is_virtual && device != DeviceChoice::A2a3sim {
        return Err(Failure::usage(format!(
            "--virtual belongs to --device a2a3sim, and {name} runs in real time; leave one of them out"
        )));
    }
    if let (DeviceChoice::Qemu, Some(devices @ 2..)) = (device, args.devices) {
        return Err(Failure::usage(format!(
            "--device qemu has one device in a process, and --devices is {devices}; leave --devices out"
        )));
    }
    check_plugin(device, library)?;
    if device == DeviceChoice::Qemu {
        crate::device::need_qemu(&QemuDeviceOptions::default())?;
        flashed::images_of_qemu(Tracing::Off)?;
    }
    Ok(())
}

/// Refuses a device whose plug-in is not next to the library: the device `a2a3` has the vendor's library for that.
fn check_plugin(device: DeviceChoice, library: &Path) -> Result<(), Failure> {
    if device == DeviceChoice::A2a3 || library.with_file_name(PLUGIN).is_file() {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "there is no {PLUGIN} next to '{}'; build it (`cargo build -p pto-acl`)",
        library.display()
    )))
}

/// A folder with the library under each of its names, and with the graph compiler. On a real device the compiler is the vendor's.
fn links(library: &Path, device: Option<DeviceChoice>) -> Result<TempDir, Failure> {
    let refused = |error: std::io::Error| {
        Failure::internal(format!("cannot make links to the library: {error}"))
    };
    let folder = tempfile::tempdir().map_err(refused)?;
    for name in NAMES {
        symlink(library, folder.path().join(name)).map_err(refused)?;
    }
    let compiler = library.with_file_name(COMPILER);
    if compiler.is_file() && device != Some(DeviceChoice::A2a3) {
        for name in COMPILER_NAMES {
            symlink(&compiler, folder.path().join(name)).map_err(refused)?;
        }
    }
    let operators = library.with_file_name(OPERATOR_FILE);
    for name in OPERATOR_NAMES.iter().filter(|_| operators.is_file()) {
        symlink(&operators, folder.path().join(name)).map_err(refused)?;
    }
    let collectives = library.with_file_name(COLLECTIVES);
    if collectives.is_file() && device != Some(DeviceChoice::A2a3) {
        symlink(&collectives, folder.path().join(COLLECTIVES)).map_err(refused)?;
    }
    Ok(folder)
}

/// The library path with a folder in front.
fn path(folder: &Path) -> OsString {
    let mut path = folder.as_os_str().to_owned();
    if let Some(more) = std::env::var_os("LD_LIBRARY_PATH").filter(|more| !more.is_empty()) {
        path.push(":");
        path.push(more);
    }
    path
}

/// The settings that options ask for.
fn variables(args: &AclSettings) -> Vec<(&'static str, OsString)> {
    let mut settings = Vec::new();
    settings.extend(args.device.map(|device| ("PTO_ACL_DEVICE", name_of(device).into())));
    settings.extend(args.devices.map(|devices| ("PTO_ACL_DEVICES", devices.to_string().into())));
    settings.extend(args.memory.map(|memory| ("PTO_ACL_MEMORY", memory.to_string().into())));
    if args.is_virtual {
        settings.push((SEED, args.seed.unwrap_or(0).to_string().into()));
    }
    settings.extend(args.kernel_us.map(|time| ("PTO_ACL_KERNEL_US", time.to_string().into())));
    if args.check || args.strict {
        settings.push(("PTO_ACL_CHECK", if args.strict { "strict" } else { "report" }.into()));
    }
    if let Some(trace) = &args.trace {
        settings.push(("PTO_ACL_TRACE", absolute(trace)));
    }
    if !args.fails.is_empty() {
        let fails: Vec<String> = args.fails.iter().map(ToString::to_string).collect();
        settings.push(("PTO_ACL_FAIL", fails.join(",").into()));
    }
    settings
}
