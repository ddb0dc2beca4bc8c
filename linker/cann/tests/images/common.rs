//! Brings the tools that are missing, and builds images.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSymbol};

pub(crate) const TARGET: &str = "aarch64-unknown-linux-gnu";
const LINKER: &str = "aarch64-linux-gnu-gcc";
const QEMU: &str = "qemu-aarch64";
/// Where Debian's cross packages have the target's libraries.
const SYSROOT: &str = "/usr/aarch64-linux-gnu";
const PACKAGES: [&str; 3] = ["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross", "qemu-user"];

const RUSTUP_LIMIT: Duration = Duration::from_secs(60);
const APT_LIMIT: Duration = Duration::from_secs(300);
const BUILD_LIMIT: Duration = Duration::from_secs(600);

/// The profile of firmware images, said in full, so that it holds in any workspace.
const PROFILE: [&str; 4] = [
    "profile.firmware.inherits='release'",
    "profile.firmware.panic='abort'",
    "profile.firmware.lto='fat'",
    "profile.firmware.codegen-units=1",
];

/// Compiler target, linker and emulator; installed where they are missing, once.
pub(crate) fn tools() {
    static DONE: OnceLock<()> = OnceLock::new();
    DONE.get_or_init(|| {
        provide_target();
        provide_packages();
    });
}

fn provide_target() {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let folder = text(Command::new(rustc).args(["--print", "target-libdir", "--target", TARGET]));
    if Path::new(folder.trim()).is_dir() {
        return;
    }
    println!("{TARGET} is missing: rustup target add {TARGET}");
    let output = run(Command::new("rustup").args(["target", "add", TARGET]), RUSTUP_LIMIT);
    assert!(
        output.status.success(),
        "the target {TARGET} cannot be had: run `rustup target add {TARGET}` where there is a network\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn provide_packages() {
    let is_there = |tool: &&str| Command::new(tool).arg("--version").output().is_ok();
    let missing: Vec<&str> = [LINKER, QEMU].into_iter().filter(|tool| !is_there(tool)).collect();
    if missing.is_empty() && Path::new(SYSROOT).join("lib/libc.so.6").exists() {
        return;
    }
    println!("{missing:?} are missing: apt-get install {}", PACKAGES.join(" "));
    run(Command::new("apt-get").args(["update", "-q"]), APT_LIMIT);
    let mut install = Command::new("apt-get");
    install.args(["install", "-y", "-q", "--no-install-recommends"]).args(PACKAGES);
    let output = run(install.env("DEBIAN_FRONTEND", "noninteractive"), APT_LIMIT);
    assert!(
        output.status.success(),
        "the cross tools cannot be installed: as root, run `apt-get install {}`\n{}",
        PACKAGES.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).expect("linker/cann is in a workspace").to_path_buf()
}

/// Where this build of the workspace puts things.
pub(crate) fn target_folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .expect("a folder below the target")
        .to_path_buf()
}

/// Builds a part of a package (`--lib`, `--bins`) from `folder`; the file `name` in the target's folder is what
/// it makes.
pub(crate) fn build(folder: &Path, package: &str, part: &str, name: &str) -> PathBuf {
    tools();
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = Command::new(cargo);
    command.current_dir(folder).args(["build", "--quiet", part, "--package", package]);
    command.args(["--target", TARGET, "--profile", "firmware"]);
    PROFILE.iter().for_each(|setting| {
        command.args(["--config", setting]);
    });
    command.arg("--target-dir").arg(target_folder());
    command.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", LINKER);
    let output = run(&mut command, BUILD_LIMIT);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{package} does not build:\n{errors}");
    target_folder().join(TARGET).join("firmware").join(name)
}

/// The default image.
pub(crate) fn default_image() -> PathBuf {
    build(&root(), "pto-fw-cann", "--lib", "libpto_fw_cann.so")
}

/// Runs the loader's scenarios `set` on an image, and gives what it printed.
pub(crate) fn load(set: &str, image: &Path, limit: Duration) -> String {
    let loader = build(&root(), "pto-cann-loader", "--bins", "pto-cann-loader");
    let mut command = Command::new(QEMU);
    command.args(["-L", SYSROOT]).arg(loader).arg(set).arg(image);
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
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
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
