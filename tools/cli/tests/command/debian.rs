//! Where rustup cannot bring the target: Debian's compiler is looked up, fetched, unpacked, wrapped and used. apt, dpkg,
//! rustup, the compiler in use and cargo are stand-ins here, which say what they were asked for;
//! `cargo xtask debian-compiler` does it in earnest.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::pto::{Answer, answer, command};

/// `rustc` without the target: its folder of libraries is empty. As with rustup, `rust-lld` is next to.
const RUSTC: &str = r#"echo "$SYSROOT_OF_FAKE/lib/rustlib/x86_64-unknown-linux-gnu/lib""#;
const RUSTUP: &str = "echo no network >&2; exit 1";
/// The versions are none that Debian has: nothing may rest on those.
const APT_CACHE: &str = r#"
case "$*" in
"policy rustc-web") echo "rustc-web:"; echo "  Installed: (none)"; echo "  Candidate: 9.9.9+dfsg1-1~deb99u1" ;;
"depends rustc-web") echo "rustc-web"; echo "  Depends: libc6"; echo "  Depends: libllvm99"; echo "  Depends: libstd-rust-web-dev" ;;
"depends libstd-rust-web-dev") echo "  Depends: libstd-rust-web-9.9" ;;
"depends "*) echo "$2" ;;
*) echo "apt-cache $*?" >&2; exit 9 ;;
esac"#;
/// Writes a package for each name.
const APT_GET: &str = r#"
case "$1" in
update) exit 0 ;;
download) shift 2; for name in "$@"; do echo "$name" > "${name}_9.9.9.deb"; done ;;
*) exit 9 ;;
esac"#;
/// Unpacks a compiler out of `rustc-web`, which logs what it sees.
const DPKG: &str = r#"
mkdir -p "$3/usr/bin"
case "$2" in
*/rustc-web_*) printf '#!/bin/sh\necho "compiler $* with $LD_LIBRARY_PATH" >> "$LOG_OF_FAKE"\n' > "$3/usr/bin/rustc"
    chmod +x "$3/usr/bin/rustc" ;;
esac"#;
/// Says where it puts what it builds. Where it should build, it logs its arguments and environment, runs the compiler that it is given, and builds nothing.
const CARGO: &str = r#"
case "$1" in
metadata) echo '{"packages": [], "workspace_members": [], "resolve": null, "version": 1, "workspace_root": "/",' \
    "\"target_directory\": \"$XDG_CACHE_HOME/target\"}"
    exit 0 ;;
esac
echo "RUSTC=$RUSTC BOOTSTRAP=$RUSTC_BOOTSTRAP LINKER=$CARGO_TARGET_AARCH64_UNKNOWN_NONE_LINKER" >> "$LOG_OF_FAKE"
"$RUSTC" --of-cargo
exit 7"#;

/// A machine of stand-ins.
struct StandInMachine(TempDir);

impl StandInMachine {
    fn new() -> Self {
        let machine = Self(TempDir::new().expect("a folder"));
        for folder in ["bin", "sysroot/lib/rustlib/x86_64-unknown-linux-gnu/lib"] {
            fs::create_dir_all(machine.path(folder)).expect("a folder");
        }
        let linker = machine.path("sysroot/lib/rustlib/x86_64-unknown-linux-gnu/bin/rust-lld");
        fs::create_dir_all(linker.parent().expect("a folder")).expect("a folder");
        fs::write(linker, "").expect("a file");
        for (name, script) in [
            ("rustc", RUSTC),
            ("rustup", RUSTUP),
            ("apt-cache", APT_CACHE),
            ("apt-get", APT_GET),
            ("dpkg", DPKG),
            ("cargo", CARGO),
        ] {
            machine.set(name, script);
        }
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Puts a program there that writes down its words first.
    fn set(&self, name: &str, script: &str) {
        let text = format!("#!/bin/sh\necho \"{name} $*\" >> \"$LOG_OF_FAKE\"\n{script}\n");
        let path = self.path("bin").join(name);
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
    }

    /// `pto fw build` there.
    fn build(&self, further: &[&str]) -> Answer {
        let _ = fs::remove_file(self.path("log"));
        let mut pto: Command = command(&[&["fw", "build", "--release"], further].concat());
        let path = std::env::var("PATH").expect("there is one");
        pto.env("PATH", format!("{}:{path}", self.path("bin").display()))
            .env("CARGO", self.path("bin/cargo"))
            .env("RUSTC", self.path("bin/rustc"))
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env("SYSROOT_OF_FAKE", self.path("sysroot"))
            .env("LOG_OF_FAKE", self.path("log"));
        answer(&mut pto)
    }

    /// What the stand-ins were asked for.
    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).expect("something was asked for")
    }

    fn package_folder(&self) -> PathBuf {
        self.path("cache/pto/debian-rust/9.9.9+dfsg1-1~deb99u1")
    }
}

#[test]
fn debians_compiler_is_looked_up_fetched_wrapped_and_used() {
    let machine = StandInMachine::new();
    let output = machine.build(&[]);
    let (log, output) = (machine.log(), output.stderr);
    for sentence in [
        "rustup target add aarch64-unknown-none",
        "cannot be had from rustup (rustup failed",
        "no network",
        "apt-get download libllvm99 libstd-rust-web-9.9 libstd-rust-web-dev rust-web-src rustc-web (about 140 MB",
        "unpacking rustc-web_9.9.9.deb",
        "building pto-images",
    ] {
        assert!(output.contains(sentence), "{sentence} in\n{output}");
    }
    assert!(!log.contains("download -q libc6"), "every system has it\n{log}");
    assert_eq!(log.matches("dpkg -x ").count(), 5, "{log}");
    let package_folder = machine.package_folder();
    let wrapper = package_folder.join("rustc");
    let linker = machine.path("sysroot/lib/rustlib/x86_64-unknown-linux-gnu/lib/../bin/rust-lld");
    let linker = linker.parent().and_then(|bin| bin.canonicalize().ok()).expect("it is there");
    let environment = format!(
        "RUSTC={} BOOTSTRAP=1 LINKER={}",
        wrapper.display(),
        linker.join("rust-lld").display()
    );
    assert!(log.contains(&environment), "{environment} in\n{log}");
    let libraries = package_folder.join("root/usr/lib/x86_64-linux-gnu");
    let ran = format!("compiler --of-cargo with {}:", libraries.display());
    assert!(log.contains(&ran), "{ran} in\n{log}");
    let cargo = log.lines().find(|line| line.starts_with("cargo build")).expect("cargo is called");
    for words in [
        "--target aarch64-unknown-none",
        "-Z build-std=core,alloc,compiler_builtins",
        "--profile firmware",
        "--package pto-images",
    ] {
        assert!(cargo.contains(words), "{words} in {cargo}");
    }
    let left: Vec<_> = fs::read_dir(&package_folder).expect("it is there").flatten().collect();
    assert_eq!(left.len(), 2, "the packages' files are removed: {left:?}");
}

#[test]
fn what_is_in_the_cache_is_not_fetched_again() {
    let machine = StandInMachine::new();
    machine.build(&["--compiler", "debian"]);
    assert!(!machine.log().contains("rustup target"), "it was not asked for");
    let output = machine.build(&["--compiler", "debian"]).stderr;
    assert!(output.contains("Debian's compiler 9.9.9+dfsg1-1~deb99u1 from"), "{output}");
    let log = machine.log();
    assert!(!log.contains("apt-get") && log.contains("cargo build"), "{log}");
}

#[test]
fn what_fails_is_told_and_leaves_nothing_behind() {
    for (program, script, reason) in [
        ("dpkg", "echo broken package >&2; exit 2", "broken package"),
        ("apt-get", "echo no route >&2; exit 100", "no route"),
        ("apt-cache", "exit 0", "apt knows no package rustc-web"),
    ] {
        let machine = StandInMachine::new();
        machine.set(program, script);
        let output = machine.build(&[]);
        assert_ne!(output.code, Some(0));
        assert!(
            output.stderr.contains("rustup:") && output.stderr.contains(reason),
            "{}",
            output.stderr
        );
        assert!(!machine.package_folder().exists());
        let left = fs::read_dir(machine.path("cache/pto/debian-rust"));
        assert_eq!(left.map_or(0, Iterator::count), 0, "{program}");
    }
    let output = StandInMachine::new().build(&["--compiler", "rustup"]).stderr;
    assert!(output.contains("Debian's packages: not asked for"), "{output}");
}
