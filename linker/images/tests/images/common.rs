//! Brings the tools that are missing, and builds images.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSymbol};
use pto_host::fw::{ImageKind, Machine};
use pto_image_build::{
    AicoreBuilt, AicoreRequest, Built, KernelSource, Platform, Profile, Request, build_aicore,
    packages, stand_in,
};

const QEMU: &str = packages::QEMU_USER.name;
/// Where Debian's cross packages have the target's libraries.
const SYSROOT: &str = "/usr/aarch64-linux-gnu";
const BUILD_LIMIT: Duration = Duration::from_secs(600);

fn say(sentence: &str) {
    println!("{sentence}");
}

/// Linker and emulator; installed where they are missing, once.
fn tools() {
    static DONE: OnceLock<()> = OnceLock::new();
    DONE.get_or_init(|| {
        let programs = [packages::QEMU_USER, packages::CROSS_C, packages::CROSS_CXX];
        packages::install(&programs, &say).unwrap_or_else(|why| panic!("{why}"));
    });
}

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).expect("linker/images is in a workspace").to_path_buf()
}

/// Where this build of the workspace puts things.
pub(crate) fn target_folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .expect("a folder below the target")
        .to_path_buf()
}

/// Builds an image as it is shipped: of the crate in `folder`, or the default one.
pub(crate) fn build(folder: Option<&Path>) -> PathBuf {
    let built = build_for(Machine::Aarch64, Platform::Cann, folder);
    built.into_iter().next().expect("one image").path
}

fn build_for(machine: Machine, platform: Platform, folder: Option<&Path>) -> Vec<Built> {
    tools();
    let request = Request {
        platform,
        machine,
        profile: match machine {
            Machine::Aarch64 | Machine::DavC220 => Profile::Release,
            // No device runs this code, and code for size takes less time to compile.
            Machine::X86_64 => Profile::Small,
        },
        crate_folder: folder.map(Path::to_path_buf),
        target_folder: Some(target_folder()),
        ..Request::default()
    };
    pto_image_build::build(&request, &say).unwrap_or_else(|why| panic!("{why}"))
}

/// A file for each machine, made once.
type OfMachines = [OnceLock<PathBuf>; 2];

/// The machines whose code is tried here: that of every device, and the one of a development machine where this is one.
pub(crate) const MACHINES: &[Machine] = if cfg!(target_arch = "x86_64") {
    &[Machine::Aarch64, Machine::X86_64]
} else {
    &[Machine::Aarch64]
};

fn of_machine(
    files: &'static OfMachines,
    machine: Machine,
    make: impl FnOnce() -> PathBuf,
) -> PathBuf {
    files[usize::from(machine == Machine::X86_64)].get_or_init(make).clone()
}

fn find(built: Vec<Built>, kind: ImageKind) -> PathBuf {
    let found = built.into_iter().find(|built| built.image.kind == kind);
    found.unwrap_or_else(|| panic!("{kind} was not built")).path
}

/// The default image.
pub(crate) fn default_image(machine: Machine) -> PathBuf {
    static IMAGES: OfMachines = [OnceLock::new(), OnceLock::new()];
    of_machine(&IMAGES, machine, || find(build_for(machine, Platform::Cann, None), ImageKind::Cann))
}

/// The blob of kernels, built once, as it is shipped.
pub(crate) fn kernels(machine: Machine) -> PathBuf {
    static BLOBS: OfMachines = [OnceLock::new(), OnceLock::new()];
    let platform = match machine {
        Machine::Aarch64 | Machine::DavC220 => Platform::Qemu,
        Machine::X86_64 => Platform::Cann,
    };
    of_machine(&BLOBS, machine, || find(build_for(machine, platform, None), ImageKind::Kernels))
}

/// The program of AICores, with the library's kernels in C++, built for this machine by the compiler that replaces the vendor's; once.
pub(crate) fn aicore() -> PathBuf {
    static IMAGE: OnceLock<PathBuf> = OnceLock::new();
    let folder = target_folder().join("aicore-of-tests");
    IMAGE.get_or_init(|| aicore_of(Vec::new(), Vec::new(), &folder)).clone()
}

/// The same with these kernels instead of the library's, if there are some, in a source tree of its own.
pub(crate) fn aicore_of(
    kernels: Vec<KernelSource>,
    kernel_includes: Vec<PathBuf>,
    folder: &Path,
) -> PathBuf {
    let home = target_folder().join("aicore-compiler");
    stand_in::lay_out_compiler(&home).unwrap_or_else(|why| panic!("{why}"));
    let request = AicoreRequest {
        pto_isa: Some(root().join("aicore-kernels/aicore/this_machine")),
        home: Some(home),
        folder: Some(folder.to_path_buf()),
        kernels,
        kernel_includes,
    };
    match build_aicore(&request, &say).unwrap_or_else(|why| panic!("{why}")) {
        AicoreBuilt::Image(built, _) => built.path,
        AicoreBuilt::Tree { looked, .. } => panic!("no compiler in {looked:?}"),
    }
}

/// The program that plays the device, of a machine.
pub(crate) fn loader(machine: Machine) -> PathBuf {
    static LOADERS: OfMachines = [OnceLock::new(), OnceLock::new()];
    of_machine(&LOADERS, machine, || {
        tools();
        let mut cargo = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
        cargo.current_dir(root());
        let (mut build, program) = match machine {
            Machine::X86_64 => stand_in::native(cargo, &target_folder()),
            Machine::Aarch64 | Machine::DavC220 => {
                stand_in::emulator(cargo, &target_folder(), triple(machine), &say)
                    .unwrap_or_else(|why| panic!("{why}"))
            }
        };
        let output = run(&mut build, BUILD_LIMIT);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{} does not build:\n{errors}", program.display());
        program
    })
}

/// The Rust target of a machine's programs.
pub(crate) fn triple(machine: Machine) -> &'static str {
    Request { platform: Platform::Cann, machine, ..Request::default() }.triple()
}

/// Runs the loader's scenarios `set` on an image, and gives what it printed.
pub(crate) fn load(machine: Machine, set: &str, image: &Path, limit: Duration) -> String {
    let mut command = match machine {
        Machine::X86_64 => Command::new(loader(machine)),
        Machine::Aarch64 | Machine::DavC220 => {
            let mut command = Command::new(QEMU);
            command.args(["-L", SYSROOT]).arg(loader(machine));
            command
        }
    };
    let output = run(command.arg(set).arg(image), limit);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    println!("{text}{errors}");
    assert!(output.status.success(), "the loader: {}", output.status);
    text
}

/// The names of all symbols of an image, local ones included.
pub(crate) fn symbols(image: &[u8]) -> Vec<String> {
    let elf = ElfFile64::<Endianness>::parse(image).expect("an ELF file");
    elf.symbols().filter_map(|symbol| symbol.name().ok().map(str::to_owned)).collect()
}

/// Those that belong to the machinery of panics.
pub(crate) fn panics(names: &[String]) -> Vec<&String> {
    let parts = ["panic", "unwind", "unwrap_failed", "expect_failed", "slice_index"];
    names.iter().filter(|name| parts.iter().any(|part| name.contains(part))).collect()
}

/// What a program prints.
pub(crate) fn text(command: &mut Command) -> String {
    let output = run(command, BUILD_LIMIT);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{said}{errors}", output.status);
    said
}

/// Runs a program, and ends it when it takes longer than `limit`.
fn run(command: &mut Command, limit: Duration) -> Output {
    let piped = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child =
        piped.spawn().unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
    let process = child.id();
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    let start = Instant::now();
    match receiver.recv_timeout(limit) {
        Ok(output) => output.expect("its output can be read"),
        Err(_) => {
            let ended = Command::new("kill").args(["-9", &process.to_string()]).status();
            panic!("{command:?} took longer than {:?}; ended: {ended:?}", start.elapsed());
        }
    }
}
