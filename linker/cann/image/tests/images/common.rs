//! Brings the tools that are missing, and builds images.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSymbol};
use pto_host::fw::ImageKind;
use pto_image_build::{Platform, Profile, Request, Source, Toolchain, packages};

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
    package.ancestors().nth(3).expect("linker/cann/image is in a workspace").to_path_buf()
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
    tools();
    let request = Request {
        platform: Platform::Cann,
        profile: Profile::Release,
        crate_folder: folder.map(Path::to_path_buf),
        target_folder: Some(target_folder()),
        ..Request::default()
    };
    let built = pto_image_build::build(&request, &say).unwrap_or_else(|why| panic!("{why}"));
    built.into_iter().next().expect("one image").path
}

/// The default image.
pub(crate) fn default_image() -> PathBuf {
    static IMAGE: OnceLock<PathBuf> = OnceLock::new();
    IMAGE.get_or_init(|| build(None)).clone()
}

/// The blob of kernels, built once, as it is shipped.
pub(crate) fn kernels() -> PathBuf {
    static BLOB: OnceLock<PathBuf> = OnceLock::new();
    BLOB.get_or_init(|| {
        tools();
        let request = Request {
            profile: Profile::Release,
            target_folder: Some(target_folder()),
            ..Request::default()
        };
        let built = pto_image_build::build(&request, &say).unwrap_or_else(|why| panic!("{why}"));
        let blob = built.into_iter().find(|built| built.image.kind == ImageKind::Kernels);
        blob.expect("a blob beside the firmware").path
    })
    .clone()
}

/// The program that plays driver and cores.
pub(crate) fn loader() -> PathBuf {
    static LOADER: OnceLock<PathBuf> = OnceLock::new();
    LOADER.get_or_init(build_loader).clone()
}

fn build_loader() -> PathBuf {
    const NAME: &str = "pto-cann-emulator";
    tools();
    let triple = Platform::Cann.triple();
    let toolchain = Toolchain::provide(triple, Source::Rustup, &say);
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = Command::new(cargo);
    command.current_dir(root()).args(["build", "--quiet", "--package", NAME, "--bin", NAME]);
    // Under an emulator it is to be fast, but not at the price of a long build.
    command.args(["--target", triple, "--release", "--config", "profile.release.lto=false"]);
    command.arg("--target-dir");
    command.arg(target_folder());
    command.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", packages::CROSS_C.name);
    toolchain.unwrap_or_else(|why| panic!("{why}")).equip(&mut command);
    let output = run(&mut command, BUILD_LIMIT);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{NAME} does not build:\n{errors}");
    target_folder().join(triple).join("release").join(NAME)
}

/// Runs the loader's scenarios `set` on an image, and gives what it printed.
pub(crate) fn load(set: &str, image: &Path, limit: Duration) -> String {
    let mut command = Command::new(QEMU);
    command.args(["-L", SYSROOT]).arg(loader()).arg(set).arg(image);
    let output = run(&mut command, limit);
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
